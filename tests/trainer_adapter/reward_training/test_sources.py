"""Rows come from files, from datasets and from a run's record, and a wrong one is named wherever it came from."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from rewardkit import DataError, RecordError, Rollout, Runtime, reward
from trainer_adapter.reward_training import RewardModelConfig, RunPairs, pairs_from_run
from trainer_adapter.reward_training.reading import read_groups

ROOT = Path(__file__).parents[3]
ROWS: dict[str, list[dict[str, Any]]] = {
    "bradley_terry": [
        {"prompt": "p", "chosen": "a", "rejected": "b", "margin": "0.5"},
        {"prompt": [{"role": "user", "content": "q"}], "chosen": [{"role": "assistant", "content": "c"}],
         "rejected": [{"role": "assistant", "content": "d"}], "margin": "1"},
    ],
    "plackett_luce": [{"prompt": "p", "completions": ["a", "b", "c"], "ranks": [0, 2, 1]}],
    "orm": [{"prompt": "p", "completion": "a", "correct": True}],
    "prm": [{"prompt": "p", "steps": ["a", "b"], "labels": [1, -1]}],
}  # fmt: skip
WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "bradley_terry": ({"prompt": "p", "chosen": "a", "rejected": " ", "margin": "0"}, "column 'rejected' is empty"),
    "plackett_luce": ({"prompt": "p", "completions": ["a", "b"], "ranks": [0]}, "column 'ranks' has 1 values for 2"),
    "orm": ({"prompt": "p", "completion": "", "correct": True}, "column 'completion' is empty"),
    "prm": ({"prompt": "p", "steps": ["a"], "labels": [7]}, "column 'labels' of step 0: expected"),
}


def stored(rows: list[dict[str, Any]], form: str, folder: Path) -> Any:
    """Return rows as a ``datasets.Dataset``, or as a file of Parquet."""
    datasets = pytest.importorskip("datasets", reason="the rows are a datasets.Dataset")
    made = datasets.Dataset.from_list(rows)
    if form == "dataset":
        return made
    made.to_parquet(str(folder / "rows.parquet"))
    return folder / "rows.parquet"


@pytest.mark.parametrize("form", ["dataset", "parquet"])
@pytest.mark.parametrize("kind", list(ROWS))
def test_datasets_and_parquet_are_read_as_lists_are(kind: Any, form: str, tmp_path: Path) -> None:
    """Groups of all kinds are the same as those of a list, by the name that the configuration takes them under."""
    rows = ROWS[kind] if kind != "bradley_terry" else ROWS[kind][:1]
    source = RewardModelConfig.model_validate(
        {"base_model": "m", "dataset": stored(rows, form, tmp_path), "output_dir": "o", "kind": kind}
    ).dataset
    found, expected = read_groups(kind, source), read_groups(kind, rows)
    assert [(one.prompt, one.completions, one.pairs, one.ranks, one.correct, one.step_labels) for one in found] == [
        (one.prompt, one.completions, one.pairs, one.ranks, one.correct, one.step_labels) for one in expected
    ]


@pytest.mark.parametrize("form", ["dataset", "parquet"])
def test_messages_of_a_dataset_are_read(form: str, tmp_path: Path) -> None:
    """Columns of chat messages give the pairs that the list gives."""
    rows = ROWS["bradley_terry"][1:]
    found = read_groups("bradley_terry", stored(rows, form, tmp_path))
    assert [(one.prompt, one.completions) for one in found] == [
        (one.prompt, one.completions) for one in read_groups("bradley_terry", rows)
    ]


@pytest.mark.parametrize("form", ["dataset", "parquet"])
@pytest.mark.parametrize("kind", list(WRONG))
def test_a_wrong_row_of_a_dataset_is_named(kind: Any, form: str, tmp_path: Path) -> None:
    """The message has the second row's place, its column, and what was expected."""
    wrong, words = WRONG[kind]
    source = stored([ROWS[kind][0], wrong], form, tmp_path)
    where = "dataset, row 1" if form == "dataset" else f"{tmp_path / 'rows.parquet'}:2"
    with pytest.raises(DataError, match=re.escape(f"{where}: {words}")):
        read_groups(kind, source)


@reward
def length(completion: str) -> float | None:
    """Score by length; short ones are skipped, and one fails."""
    if completion == "boom":
        raise ValueError(completion)
    if len(completion) < 2:
        return None
    return float(len(completion))


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A record of two groups of four, of which one completion failed and one was skipped."""
    folder = tmp_path_factory.mktemp("run")
    groups = {"first": ["aaaa", "bb", "boom", "c"], "second": ["dd", "ee", "ffffff", "ggg"]}
    with Runtime([length], record=folder, lane="inline") as runtime:
        for prompt, completions in groups.items():
            runtime.score([Rollout(prompt, one) for one in completions])
    return folder


def test_pairs_of_a_record_are_those_that_the_reward_tells_apart(recorded: Path) -> None:
    """Of each group, completions a gap or more apart; what failed or was skipped, and other prompts, are in none."""
    rows = pairs_from_run(recorded, "length", min_gap=2)
    assert [(row["prompt"], row["chosen"], row["rejected"], row["gap"]) for row in rows] == [
        ("first", "aaaa", "bb", 2.0),
        ("second", "ffffff", "dd", 4.0),
        ("second", "ffffff", "ee", 4.0),
        ("second", "ffffff", "ggg", 3.0),
    ]
    assert [row["gap"] for row in pairs_from_run(recorded, "length", min_gap=2, pairs_per_group=1)] == [2.0, 4.0]
    groups = read_groups("bradley_terry", rows)
    assert [len(one.pairs) for one in groups] == [1, 3]


def test_what_a_record_does_not_give_is_said(recorded: Path, tmp_path: Path) -> None:
    """A reward that it has not, a gap that no pair has, a gap of nothing, and a folder without a record."""
    with pytest.raises(RecordError, match="no reward 'judge' in it; it has 'length'"):
        pairs_from_run(recorded, "judge", min_gap=1)
    with pytest.raises(DataError, match=r"no two completions of a group are min_gap=50 apart by reward 'length'"):
        pairs_from_run(recorded, "length", min_gap=50)
    with pytest.raises(DataError, match="min_gap=0: expected a number above 0"):
        pairs_from_run(recorded, "length", min_gap=0)
    with pytest.raises(RecordError, match="nothing"):
        pairs_from_run(tmp_path / "nothing", "length", min_gap=1)


@pytest.mark.parametrize(("model", "begins"), [(RewardModelConfig, "kind"), (RunPairs, "run")])
def test_the_page_has_every_field(model: Any, begins: str) -> None:
    """The tables of the how-to have all fields, each once, with their defaults and descriptions."""
    page = (ROOT / "docs/how-to/train-a-reward-model.md").read_text(encoding="utf-8")
    table = page[page.index(f"| field | default | meaning |\n|---|---|---|\n| `{begins}` |") :].split("\n\n")[0]
    rows = [line.split(" | ", 2) for line in table.splitlines()[2:]]
    assert sorted(cells[0].strip("| `") for cells in rows) == sorted(model.model_fields)
    for cells in rows:
        field = model.model_fields[cells[0].strip("| `")]
        default = "required" if field.is_required() else f"`{_spelled(field.default)}`"
        assert (cells[1], cells[2].removesuffix(" |")) == (default, " ".join(field.description.split()))


def _spelled(value: Any) -> str:
    if value is None:
        return "null"
    return '"' + value.replace("\n", "\\n") + '"' if isinstance(value, str) else repr(value)


def test_a_records_completions_without_text_and_those_that_spell_lists_leave_the_training_whole(tmp_path: Path) -> None:
    """A model writes line breaks alone, and lists of JSON; neither refuses the rows or becomes other completions."""
    prompt, spelled = '["Which", "pets?"]', '["a cat", "a dog"]'
    with Runtime([length], record=tmp_path, lane="inline") as runtime:
        runtime.score([Rollout(prompt, one) for one in (spelled, "[[1, 2]]", " \n ")])
    (group,) = read_groups("bradley_terry", pairs_from_run(tmp_path, "length", min_gap=2))
    assert [prompt, [spelled, "[[1, 2]]"]] == [
        group.prompt[0]["content"], [one[0]["content"] for one in group.completions]
    ]  # fmt: skip


@pytest.mark.parametrize("answer", ["[2, 3]", "[[1, 2], [3, 4]]", '[{"name": "cat"}]', "[]"])
def test_an_answer_that_spells_a_list_is_a_text(answer: str) -> None:
    """An interval, a matrix or records of JSON are neither messages nor several answers."""
    (one,) = read_groups("orm", [{"prompt": answer, "completion": answer, "correct": True}])
    assert (one.prompt, one.completions) == (answer, (answer,))
    (pair,) = read_groups("bradley_terry", [{"prompt": answer, "chosen": answer, "rejected": "no"}])
    assert (pair.prompt, pair.completions) == (answer, (answer, "no"))
