"""The rows as the audit sees them: how the data itself writes a final answer."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rewardkit import DataError
from rewardkit.audit.gold import gold_of, spot_of
from rewardkit.audit.rows import choose_rows, row_of
from rewardkit.rows import Row, read_rows

ENDINGS = {
    "a label": ("9 * 2 = 18\nA: 18", "18", [("A: ", "")]),
    "text behind it": ("Work\nA: **18**.\n", "18", [("A: **", "**.")]),
    "twice": ("Work\nA: 18, so 18", "18", []),
    "another spelling": ("Work\nA: $1,250.00", "1250", [("A: $", "")]),
    "a sentence": ("She has two left. So the answer is (B).", "B", [("So the answer is (", ").")]),
    "another answer": ("Not 18.\nA: 26", "18", []),
    "a part of a number": ("Work\nA: 180", "18", []),
    "the end of a number": ("Work\nA: 1,500", "500", []),
    "decimals of a number": ("Work\nx = 3.5", "5", []),
    "a part of a word": ("Work\nA: Boxes", "B", []),
    "the answer alone": ("Work\n18", "18", []),
    "one sentence": ("It is 18", "18", []),
}


@pytest.mark.parametrize(("text", "answer", "expected"), ENDINGS.values(), ids=ENDINGS)
def test_an_ending_is_what_stands_around_the_answer_in_the_last_sentence(
    text: str, answer: str, expected: list[tuple[str, str]]
) -> None:
    """From a reference or the row's own completion, where the answer is in its last line as a word or number."""
    for column in ("completion", "reference"):
        assert expected == list(row_of(1, {"prompt": "", "answer": answer, column: text}, "answer").endings)


def test_rows_share_the_usual_ending_of_the_data(tmp_path: Path) -> None:
    """A row whose completion is wrong has the ending of the others; one with numbers of a row's own is not shared."""
    path = tmp_path / "rows.jsonl"
    texts = {"18": "Work\nA: 18", "3": "Work\nA: 3", "7": "Work\n3 + 4 = 7", "9": "Work\nA: 26"}
    path.write_text(
        "".join(json.dumps({"prompt": "How many?", "answer": a, "completion": t}) + "\n" for a, t in texts.items())
    )
    rows = choose_rows(read_rows(path), str(path), count=4, seed=0, gold=None, named=[]).rows
    label = ("A: ", "")
    assert [(label,), (label,), (label, ("3 + 4 = ", "")), (label,)] == [row.endings for row in rows]


def test_the_spot_of_a_long_last_line_is_near_its_end() -> None:
    """Only the end of a line is searched, however long it is."""
    gold = gold_of("18")
    assert gold is not None
    assert (999_996, 999_998) == spot_of("x" * 999_995 + " 18 ", gold)
    assert spot_of("18 " + "x" * 999_995, gold) is None


def test_the_spot_of_a_gold_of_megabytes_is_looked_for() -> None:
    """No pattern is made of it, which would take minutes."""
    gold = gold_of("x" * 10**7)
    assert gold is not None
    assert spot_of("The answer is x.", gold) is None


def test_a_json_file_with_a_list_is_rows_too(tmp_path: Path) -> None:
    """Numbered as they stand."""
    (tmp_path / "rows.json").write_text('[{"prompt": "a"}, {"prompt": "b"}]')
    assert [Row(1, {"prompt": "a"}), Row(2, {"prompt": "b"})] == read_rows(tmp_path / "rows.json")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[]", "no rows"),
        ("{}", "a list of objects"),
        ("{", "not JSON"),
        ('[{"a": 1}, {"b": 1}]', ":2: lacks 'a', which line 1 has; has 'b'"),
        (None, "No such file"),
    ],
)
def test_a_json_file_that_is_no_list_of_rows_is_refused(text: str | None, words: str, tmp_path: Path) -> None:
    """The message says what is expected."""
    path = tmp_path / "rows.json"
    if text is not None:
        path.write_text(text, encoding="utf-8")
    with pytest.raises(DataError, match=words):
        read_rows(path)
