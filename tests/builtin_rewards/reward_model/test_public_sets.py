"""Rows of public preference sets are read in the columns that they come with, or refused by row and column."""

from __future__ import annotations

import csv
import gzip
import json
import logging
from pathlib import Path
from typing import Any

import pytest

from builtin_rewards.reward_model import Calibrated, preferences_of, read_preferences
from rewardkit import DataError, reward
from rewardkit.extending import InvalidRows

Row = dict[str, Any]

ASK = {"role": "user", "content": "2+2="}
JUDGEBENCH: Row = {
    "pair_id": "81ec57f2", "original_id": "10646", "source": "mmlu-pro-math", "question": "2+2=",
    "response_model": "gpt-4o-2024-05-13", "response_A": "5", "response_B": "4", "label": "B>A",
}  # fmt: skip
PPE: Row = {
    "question_id": "q", "model_a": "a", "model_b": "b", "winner": "model_a", "language": "English", "prompt": "2+2=",
    "response_1": "4", "response_2": "5", "conv_metadata": {"turns": 1},
}  # fmt: skip
BEST_OF_K: Row = {
    "question_id": "q", "model_name": "m", "prompt": "2+2=", "response_1": "3", "response_2": "4", "response_3": "5",
    "response_4": "four", "scores": [False, True, False, True], "conflict_pairs": [[0, 1], [3, 2]],
}  # fmt: skip
HELPSTEER: Row = {
    "domain": "stem", "language": "english", "context": [ASK], "response1": "5", "response2": "4",
    "overall_preference": 3, "individual_preference": [{"score": 3, "reasoning": "right"}],
}  # fmt: skip
HELPSTEER2: Row = {"split": "train", "prompt": "2+2=", "response_1": "4", "response_2": "5", "preference_strength": -1}
LLMBAR: Row = {"input": "2+2=", "output_1": "5", "output_2": "4", "label": 2}
RMB_PAIR: Row = {
    "pair_uid": "7989", "conversation_input": [{**ASK, "language": "English"}],
    "chosen": {"llm_name": "x", "answer": "4", "score": 5.0}, "reject": {"llm_name": "y", "answer": "5", "score": 1.0},
    "category_path": "Pairwise_set/Helpfulness/Chat",
}  # fmt: skip
RMB_BEST: Row = {
    "conversation_input": [{**ASK, "language": "English"}], "bon_best": {"llm_name": "x", "answer": "4"},
    "loser_list": [{"llm_name": "y", "answer": "5"}, {"llm_name": "z", "answer": "3"}], "bon_uid": "1679",
    "category_path": "BoN_set/Helpfulness/Chat",
}  # fmt: skip

SETS: dict[str, tuple[Row, list[tuple[Any, tuple[str, ...], tuple[str, ...]]], set[str]]] = {
    "JudgeBench": (JUDGEBENCH, [("2+2=", ("4",), ("5",))], {"pair_id", "original_id", "source", "response_model"}),
    "JudgeBench, the first": ({**JUDGEBENCH, "label": "A>B"}, [("2+2=", ("5",), ("4",))], {"source"}),
    "PPE": (PPE, [("2+2=", ("4",), ("5",))], {"question_id", "model_a", "model_b", "language", "conv_metadata"}),
    "PPE, the second": ({**PPE, "winner": "model_b"}, [("2+2=", ("5",), ("4",))], {"language"}),
    "PPE best of k": (
        BEST_OF_K,
        [("2+2=", ("4",), ("3",)), ("2+2=", ("four",), ("5",))],
        {"question_id", "model_name"},
    ),
    "PPE best of k without pairs": (
        {name: value for name, value in BEST_OF_K.items() if name != "conflict_pairs"},
        [("2+2=", ("4", "four"), ("3", "5"))],
        {"question_id", "model_name"},
    ),
    "PPE best of k with sampled pairs": (
        {**BEST_OF_K, "sampled_conflict_pairs": [[2, 1]]},
        [("2+2=", ("4",), ("5",))],
        {"question_id", "model_name"},
    ),
    "HelpSteer3": (HELPSTEER, [([ASK], ("4",), ("5",))], {"domain", "language", "individual_preference"}),
    "HelpSteer3, the first": ({**HELPSTEER, "overall_preference": -1}, [([ASK], ("5",), ("4",))], {"domain"}),
    "HelpSteer2": (HELPSTEER2, [("2+2=", ("4",), ("5",))], {"split"}),
    "LLMBar": (LLMBAR, [("2+2=", ("4",), ("5",))], set()),
    "RMB pairs": (RMB_PAIR, [([ASK], ("4",), ("5",))], {"pair_uid", "category_path"}),
    "RMB best of n": (RMB_BEST, [([ASK], ("4",), ("5", "3"))], {"bon_uid", "category_path"}),
}


@pytest.mark.parametrize(("row", "expected", "columns"), SETS.values(), ids=SETS)
def test_rows_are_read_in_their_own_columns(row: Row, expected: list[Any], columns: set[str]) -> None:
    """The prompt, the better and the worse; the columns that say none of these go along."""
    found = preferences_of([row])
    assert expected == [(preference.prompt, preference.chosen, preference.rejected) for preference in found]
    assert columns <= found[0].columns.keys()
    used = {"response_1", "response_A", "response1", "output_1", "winner", "scores", "conflict_pairs", "bon_best"}
    assert set() == used & found[0].columns.keys()


@pytest.mark.parametrize("form", ["jsonl", "jsonl.gz", "json", "csv", "parquet"])
@pytest.mark.parametrize("name", [name for name in SETS if "," not in name])
def test_files_of_each_form_are_read(name: str, form: str, tmp_path: Path) -> None:
    """Lists and objects stand as JSON in a cell of CSV."""
    row, expected, _ = SETS[name]
    path = tmp_path / f"rows.{form}"
    if form == "csv":
        with path.open("w", newline="") as file:
            table = csv.DictWriter(file, list(row))
            table.writeheader()
            table.writerow(
                {key: json.dumps(cell) if isinstance(cell, list | dict) else cell for key, cell in row.items()}
            )
    elif form == "parquet":
        pytest.importorskip("datasets", reason="it writes Parquet").Dataset.from_list([row]).to_parquet(path)
    elif form == "json":
        path.write_text(json.dumps([row]))
    else:
        text = (json.dumps(row) + "\n").encode()
        path.write_bytes(gzip.compress(text) if form.endswith("gz") else text)
    found = read_preferences(path)
    assert expected == [(preference.prompt, preference.chosen, preference.rejected) for preference in found]


TIES = {
    "JudgeBench": {**JUDGEBENCH, "label": "A=B"},
    "PPE": {**PPE, "winner": "tie"},
    "PPE, both bad": {**PPE, "winner": "tie (bothbad)"},
    "PPE, one text": {**PPE, "response_2": "4"},
    "PPE best of k, all right": {**BEST_OF_K, "scores": [True] * 4, "conflict_pairs": []},
    "PPE best of k, all wrong": {**BEST_OF_K, "scores": [False] * 4, "conflict_pairs": None},
    "HelpSteer3": {**HELPSTEER, "overall_preference": 0},
    "HelpSteer2": {**HELPSTEER2, "preference_strength": 0},
}


@pytest.mark.parametrize("row", TIES.values(), ids=TIES)
def test_a_row_that_prefers_neither_is_left_out_and_counted(row: Row, caplog: pytest.LogCaptureFixture) -> None:
    """A tie is no wrong row: the others are read, and a warning says how many were left out."""
    with caplog.at_level(logging.WARNING, "rewardkit"):
        found = preferences_of([row, JUDGEBENCH, row])
    assert ["row 1"] == [preference.where for preference in found]
    assert ["rows: 2 of the rows prefer no completion to another, and are left out"] == [
        r.message for r in caplog.records
    ]
    with pytest.raises(DataError, match=r"^rows: no row prefers a completion to another$"):
        preferences_of([row])


WRONG = {
    "a verdict of JudgeBench": (
        {**JUDGEBENCH, "label": "C>A"},
        "row 0: column 'label' expected one of a>b, b>a, a=b, got 'C>A'",
    ),
    "no verdict": ({**PPE, "winner": None}, "row 0: column 'winner' expected one of model_a, .*got None"),
    "a strength": ({**HELPSTEER, "overall_preference": 4}, "'overall_preference' expected a whole number from -3 to 3"),
    "half a strength": ({**HELPSTEER, "overall_preference": 0.5}, "'overall_preference' expected a whole number"),
    "a flag": ({**HELPSTEER, "overall_preference": True}, "'overall_preference' expected a whole number"),
    "no strength": ({**HELPSTEER, "overall_preference": None}, "'overall_preference' expected .* got None"),
    "no response": ({**PPE, "response_2": ""}, "row 0: column 'rejected' is empty"),
    "no context": ({**HELPSTEER, "context": None}, "row 0: column 'prompt' is missing"),
    "scores too few": ({**BEST_OF_K, "scores": [True]}, "column 'scores' expected a number for each of 4 responses"),
    "scores as text": ({**BEST_OF_K, "scores": "all"}, "column 'scores' expected a list, got 'all'"),
    "a pair of equals": ({**BEST_OF_K, "conflict_pairs": [[0, 2]]}, r"column 'conflict_pairs' \[0\]: expected a right"),
    "a pair off the end": ({**BEST_OF_K, "conflict_pairs": [[0, 1], [0, 4]]}, r"column 'conflict_pairs' \[1\]: exp"),
    "a pair of one": ({**BEST_OF_K, "conflict_pairs": [[0]]}, r"column 'conflict_pairs' \[0\]: expected a right"),
    "an answer": ({**RMB_PAIR, "reject": "5"}, "column 'reject' expected an object with the text 'answer', got '5'"),
    "a loser": ({**RMB_BEST, "loser_list": [{}]}, "column 'loser_list' expected an object with the text 'answer'"),
    "no losers": ({**RMB_BEST, "loser_list": None}, "column 'loser_list' expected a list, got None"),
    "a conversation": ({**RMB_PAIR, "conversation_input": ["2+2="]}, "column 'conversation_input' expected a list of"),
    "columns of no set": (
        {"prompt": "p", "response_1": "a"},
        "row 0: column 'chosen' is missing; it has 'prompt', 're",
    ),
}


@pytest.mark.parametrize(("row", "words"), WRONG.values(), ids=WRONG)
def test_a_wrong_row_is_one_line_with_its_place(row: Row, words: str) -> None:
    """Or left out and counted, where wrong rows are dropped."""
    with pytest.raises(DataError, match=words) as raised:
        preferences_of([row])
    assert "\n" not in str(raised.value)
    invalid = InvalidRows("drop")
    assert 1 == len(preferences_of([row, JUDGEBENCH], invalid=invalid))
    assert 1 == invalid.count


def test_usual_columns_count_before_a_sets_own() -> None:
    """Rows of HelpSteer3 that someone gave chosen and rejected are read by these."""
    (found,) = preferences_of([{**HELPSTEER, "prompt": "p", "chosen": "a", "rejected": "b"}])
    assert ("p", ("a",), ("b",)) == (found.prompt, found.chosen, found.rejected)


def test_a_reward_is_calibrated_on_a_public_set() -> None:
    """Pairs are seen by their columns, whatever these are called."""

    @reward
    def number(completion: str) -> float:
        return float(completion)

    rows = [{**JUDGEBENCH, "label": "A>B" if index % 3 else "B>A", "question": f"{index}"} for index in range(40)]
    assert 40 == Calibrated.fit(number, rows, output="logit", lane="inline").calibration.examples


def test_the_whole_of_a_real_set_is_read(data: Path) -> None:
    """LLMBar's pairs, each with the output that follows the instruction as chosen."""
    for path in sorted((data / "llmbar").glob("*.json")):
        rows = json.loads(path.read_text())
        found = read_preferences(path)
        assert len(rows) == len(found)
        assert [row[f"output_{row['label']}"] for row in rows] == [preference.chosen[0] for preference in found]
