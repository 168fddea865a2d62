"""Flaws that are planted in rows are named with their lines, and rows without any are accused of nothing."""

from __future__ import annotations

import random
from typing import Any

import pytest

from rewardkit.examinations.data_flaws import data_flaws
from rewardkit.rows.reader import Row

SOUND: list[dict[str, Any]] = [{"prompt": f"{n} + 1?", "answer": str(n + 1), "source": "x" * 50} for n in range(12)]

PLANTED: dict[str, tuple[dict[int, dict[str, Any]], dict[str, tuple[int, ...]]]] = {
    "nothing": ({}, {}),
    "other gold": ({5: {"prompt": "0 + 1?"}}, {"contradictory_golds": (1, 6)}),
    "other gold of another source": ({5: {"prompt": "0 + 1?", "source": "y" * 50}}, {}),
    "the same gold in another writing": ({5: {"prompt": "0 + 1?", "answer": "1.0"}}, {}),
    "copy": ({5: SOUND[0], 7: SOUND[0]}, {"copies": (6, 8)}),
    "copy with blanks in the prompt": ({5: {**SOUND[0], "prompt": " 0  + 1?\n"}}, {"copies": (6,)}),
    "copy of another source": ({5: {**SOUND[0], "source": "y" * 50}}, {}),
    "other gold, blanks in the prompt": ({5: {"prompt": "0 + 1? "}}, {"contradictory_golds": (1, 6)}),
    "blanks": ({2: {"prompt": " \n"}}, {"empty_prompt": (3,)}),
    "messages": ({2: {"prompt": [{"role": "user", "content": " "}]}}, {"empty_prompt": (3,)}),
    "messages as text": ({2: {"prompt": '[{"role": "user", "content": "2?"}]'}}, {"packed_prompt": (3,)}),
    "a list as text": ({2: {"prompt": "[1, 2] + [3]?"}, 3: {"prompt": '["role"]'}, 4: {"prompt": "[]"}}, {}),
    "no gold": ({2: {"answer": None}, 3: {"answer": " "}}, {"no_gold": (3, 4)}),
    "an empty object": ({2: {"answer": {}}}, {"empty_gold": (3,), "odd_gold": (3,), "odd_type": (3,)}),
    "an empty object as text": ({2: {"answer": "{ }"}}, {"empty_gold": (3,), "odd_gold": (3,)}),
    "a word": ({2: {"answer": "many"}}, {"odd_gold": (3,)}),
    "a number of JSON": ({2: {"answer": 3}}, {"odd_type": (3,)}),
    "a list of JSON": ({2: {"answer": [3]}}, {"odd_gold": (3,), "odd_type": (3,)}),
    "many words": ({line: {"answer": "many"} for line in range(3)}, {}),
}


@pytest.mark.parametrize("planted", PLANTED)
def test_planted_flaws_are_named(planted: str) -> None:
    changes, expected = PLANTED[planted]
    rows = [Row(number + 1, {**row, **changes.get(number, {})}) for number, row in enumerate(SOUND)]
    assert expected == {flaw.kind: flaw.lines for flaw in data_flaws(rows, "answer")}


def test_a_number_among_texts_is_not_called_something_else() -> None:
    """The words say as what it stands in the file; as a gold it is a number, as the others are."""
    rows = [Row(n + 1, {**row, "answer": 3} if n == 2 else row) for n, row in enumerate(SOUND)]
    (flaw,) = data_flaws(rows, "answer")
    assert "a gold in 'answer' that is a number in the file, where the others are text" == flaw.meaning


def test_an_odd_gold_is_shown_with_what_it_reads_as() -> None:
    """A text that is a number among words is no text to a reader of golds, and the value shows why."""
    golds = ["5" if line == 7 else f"word {line}" for line in range(20)]
    rows = [Row(line, {"prompt": f"Which {line}?", "answer": gold}) for line, gold in enumerate(golds)]
    flaws = [flaw.describe("line") for flaw in data_flaws(rows, "answer")]
    expected = "a gold in 'answer' that is not a text, as the others are, such as \"5\", a number"
    assert [f"1 row (line 7): {expected}"] == flaws


_IDS = {  # the ids of twelve rows, which of these copy an earlier one, and the flaws
    "as they should be": ({}, {}, {}),
    "the same id": ({}, {5: 0}, {"copies": (6,)}),
    "another id": ({5: "new"}, {5: 0}, {"renamed_copies": (6,)}),
    "both": ({5: "new"}, {5: 0, 7: 0}, {"copies": (8,), "renamed_copies": (6,)}),
    "copies of a renamed one": ({5: "new", 7: "new"}, {5: 0, 7: 0}, {"copies": (8,), "renamed_copies": (6,)}),
    "an id of another row": ({5: "q0"}, {}, {"repeated_id": (6,)}),
    "three of an id": ({5: "q0", 7: "q0"}, {}, {"repeated_id": (6, 8)}),
    "no id": ({5: None, 7: None, 8: "", 9: ""}, {}, {}),
    "an id of few values": (dict.fromkeys(range(12), "train"), {}, {}),
}


@pytest.mark.parametrize("name", ["id", "question_id"])
@pytest.mark.parametrize(("ids", "copied", "expected"), _IDS.values(), ids=_IDS)
def test_ids_tell_copies_from_repeated_ids(
    name: str, ids: dict[int, Any], copied: dict[int, int], expected: dict[str, tuple[int, ...]]
) -> None:
    """A copy with the same id is not called one but for the id, and an id that stands twice is named."""
    rows = [
        Row(n + 1, {**SOUND[copied.get(n, n)], name: ids.get(n, f"q{copied.get(n, n)}")}) for n in range(len(SOUND))
    ]
    flaws = {flaw.kind: flaw for flaw in data_flaws(rows, "answer")}
    assert expected == {kind: flaw.lines for kind, flaw in flaws.items()}
    assert all((f"but for {name!r}" in flaw.meaning) == (kind == "renamed_copies") for kind, flaw in flaws.items())


@pytest.mark.parametrize(("name", "meaning"), [("id", "a copy of an earlier row but for 'id'"), ("level", None)])
def test_a_copy_with_another_id_is_a_copy(name: str, meaning: str | None) -> None:
    """A row with its own id trains as the earlier row does; any other column that differs may matter."""
    values = [{**row, name: f"q{number}"} for number, row in enumerate([*SOUND, SOUND[4]])]
    flaws = data_flaws([Row(number + 1, row) for number, row in enumerate(values)], "answer")
    assert ([] if meaning is None else [(meaning, (13,))]) == [(flaw.meaning, flaw.lines) for flaw in flaws]


def test_data_without_golds_or_prompts_is_looked_at_as_far_as_it_goes() -> None:
    rows = [Row(number, {"text": "the same"}) for number in (1, 2)]
    assert [("copies", "1 row (line 2 of line 1): a copy of an earlier row")] == [
        (flaw.kind, flaw.describe("line")) for flaw in data_flaws(rows, None)
    ]


@pytest.mark.parametrize("seed", range(4))
def test_rows_that_are_wrong_beside_each_other_are_named_set_by_set(seed: int) -> None:
    """Prompts with several golds, and rows with copies, are drawn: each set is one line's, and no two are one heap."""
    draw = random.Random(seed)
    texts = [(f"{draw.randrange(9)} + 1?", str(draw.randrange(2))) for _ in range(24)]
    rows = [Row(line, {"prompt": prompt, "answer": gold}) for line, (prompt, gold) in enumerate(texts, 1)]
    flaws = {flaw.kind: flaw for flaw in data_flaws(rows, "answer")}
    prompts: dict[str, list[int]] = {}
    for row in rows:
        prompts.setdefault(row.values["prompt"], []).append(row.line)
    differ = {tuple(lines) for lines in prompts.values() if len({texts[line - 1][1] for line in lines}) > 1}
    assert differ == set(flaws["contradictory_golds"].sets)
    for lines in flaws["copies"].sets:
        assert 1 == len({texts[line - 1] for line in lines})
        assert set(lines[1:]) == set(lines) & set(flaws["copies"].lines)
    for flaw in flaws.values():
        assert list(flaw.lines) == sorted(line for line, _ in flaw.by_line())
        assert [list(lines) for lines in flaw.sets] == flaw.as_json()["sets"]


def test_two_pairs_are_two_pairs_in_words() -> None:
    """The line, and what --out says of a row, tell which rows belong together."""
    texts = {5: ("a", "1"), 12: ("b", "1"), 29: ("a", "2"), 43: ("b", "2"), 50: ("c", "1"), 60: ("c", "1")}
    rows = [Row(line, {"prompt": prompt, "answer": gold}) for line, (prompt, gold) in texts.items()]
    contradictory, copies = data_flaws(rows, "answer")
    meaning = "one prompt, and golds in 'answer' that differ"
    assert f"4 rows in 2 sets (line 5, 29; line 12, 43): {meaning}" == contradictory.describe("line")
    assert (12, f"{meaning}; beside 43") in list(contradictory.by_line())
    assert "1 row (line 60 of line 50): a copy of an earlier row" == copies.describe("line")


def test_of_many_sets_the_first_are_shown() -> None:
    """The line stays short; JSON has all."""
    rows = [Row(line, {"prompt": str(line % 50), "answer": str(line)}) for line in range(1, 101)]
    (flaw,) = data_flaws(rows, "answer")
    assert "100 rows in 50 sets (line 1, 51; line 2, 52; line 3, 53; line 4, 54; 46 more): " in flaw.describe("line")
    assert 50 == len(flaw.as_json()["sets"])
