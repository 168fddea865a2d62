"""Columns of data sets whose names trainers do not want, and which to rename."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rewardkit import DataError
from rewardkit.rows import read_rollouts, read_rows, rename_hint, trainer_warnings


@pytest.mark.parametrize("other", ["question", "problem", "instruction", "Question", "text", "messages"])
def test_a_missing_prompt_has_a_likely_name(other: str, tmp_path: Path) -> None:
    """A warning before a training says which column to rename, and so does the error of a file of completions."""
    assert f"; rename {other!r} to 'prompt' if that is it" == rename_hint("prompt", ["answer", other])
    assert [other in warning for warning in trainer_warnings(["answer", other])] == [True]
    file = tmp_path / "rows.jsonl"
    file.write_text(json.dumps({other: "2+2?", "answer": "4", "completion": "4"}))
    with pytest.raises(DataError, match=rf"'prompt' is missing; it has .*; rename '{other}' to 'prompt'"):
        read_rollouts(file)
    assert 1 == len(read_rows(file))


def test_a_missing_completion_has_one_too(tmp_path: Path) -> None:
    """As generators of completions call it."""
    file = tmp_path / "rows.jsonl"
    file.write_text(json.dumps({"prompt": "2+2?", "response": "4"}))
    with pytest.raises(DataError, match=r"'completion' is missing; .*; rename 'response' to 'completion'"):
        read_rollouts(file)


@pytest.mark.parametrize("columns", [[], ["answer"], ["level", "subject"]])
def test_other_columns_are_no_hint(columns: list[str]) -> None:
    """An answer is no prompt."""
    assert "" == rename_hint("prompt", columns)
    assert "" == rename_hint("answer", [*columns, "question"])
