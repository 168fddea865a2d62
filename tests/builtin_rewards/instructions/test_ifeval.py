"""IFEval's own prompts and recorded verdicts: every instruction is understood, and judged as recorded."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from builtin_rewards.instructions import instructions
from builtin_rewards.instructions.kinds import IFEVAL
from builtin_rewards.instructions.reward import build_instruction

RANDOM_LETTER = {
    (1122, "keywords:letter_frequency"): "the letter is '#', for which the original draws a letter without a seed",
    (1129, "keywords:letter_frequency"): "the letter is '!', for which the original draws a letter without a seed",
}
"""The only rows whose recorded verdicts cannot be had again, with the reason."""

_REFUSED_WRONGLY = {
    (1813, "change_case:english_capital"): "24 English words in capitals, German to langdetect",
    (1954, "length_constraints:nth_paragraph_first_word"): "a colon stands behind the first word, 'Summary:'",
    (202, "change_case:english_lowercase"): "one English word, 'etchings'",
    (3456, "change_case:english_capital"): "100 names in capitals",
}
DIFFERENCES = {
    "strict": dict.fromkeys([(1122, "keywords:letter_frequency"), *_REFUSED_WRONGLY], (False, True)),
    "loose": dict.fromkeys(_REFUSED_WRONGLY, (False, True)),
}
"""The instructions judged otherwise, by key and kind: the recorded verdict, then this one. The program refuses four
responses that do as the prompt asks; the text of row 1122 has four ``#``, as its prompt asks."""


@pytest.fixture(scope="module")
def rows(data: Path) -> list[dict[str, Any]]:
    return _lines(data / "ifeval" / "en_input_data.jsonl")


def _lines(file: Path) -> list[dict[str, Any]]:
    if not file.is_file():
        pytest.skip(f"no {file}")
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


def test_every_instruction_builds_its_checker(rows: list[dict[str, Any]]) -> None:
    """All 541 prompts' 834 instructions, of all 25 kinds, have arguments that are understood."""
    built = [
        build_instruction(one, arguments)
        for row in rows
        for one, arguments in zip(row["instruction_id_list"], row["kwargs"], strict=True)
    ]
    assert (len(rows), len(built)) == (541, 834)
    assert {one.kind for one in built} == set(IFEVAL)


def test_the_rows_with_a_random_letter_are_the_named_ones(rows: list[dict[str, Any]]) -> None:
    """The original draws a letter where the argument is none of a to z."""
    odd = {
        (row["key"], one.removeprefix("en:"))
        for row in rows
        for one, arguments in zip(row["instruction_id_list"], row["kwargs"], strict=True)
        if not arguments.get("letter", "a").isalpha()
    }
    assert set(RANDOM_LETTER) == odd


@pytest.mark.slow
@pytest.mark.parametrize(("mode", "agreed", "prompts"), [("strict", 829, 460), ("loose", 830, 479)])
def test_recorded_verdicts(rows: list[dict[str, Any]], data: Path, mode: str, agreed: int, prompts: int) -> None:
    """The reward judges as recorded, but for the named differences, by instruction and by prompt."""
    recorded = _lines(data / "ifeval" / f"gpt-4o-2024-08-06_{mode}.jsonl")
    differences: dict[tuple[int, str], tuple[bool, bool]] = {}
    same = all_followed = 0
    for row, verdict in zip(rows, recorded, strict=True):
        assert row["prompt"] == verdict["prompt"]
        ids = [one.removeprefix("en:") for one in row["instruction_id_list"]]
        built = [build_instruction(one, given) for one, given in zip(ids, row["kwargs"], strict=True)]
        judged = [one.followed_by(verdict["response"], loose=mode == "loose") for one in built]
        all_followed += all(judged)
        for kind, old, new in zip(ids, verdict["follow_instruction_list"], judged, strict=True):
            same += old == new
            if old != new:
                differences[row["key"], kind] = (old, new)
    assert DIFFERENCES[mode] == differences
    assert set(differences) <= {*RANDOM_LETTER, *_REFUSED_WRONGLY}
    assert (agreed, prompts) == (same, all_followed)


def test_the_data_set_s_columns_are_the_reward_s(rows: list[dict[str, Any]], data: Path) -> None:
    """A row goes in as it is: the share followed is the share of the recorded verdicts."""
    recorded = _lines(data / "ifeval" / "gpt-4o-2024-08-06_strict.jsonl")
    for row, verdict in list(zip(rows, recorded, strict=True))[:60]:
        score = instructions(
            completion=verdict["response"], instruction_id_list=row["instruction_id_list"], kwargs=row["kwargs"]
        )
        followed = verdict["follow_instruction_list"]
        if (row["key"], "keywords:letter_frequency") not in RANDOM_LETTER:
            assert score.value == sum(followed) / len(followed), row["key"]
