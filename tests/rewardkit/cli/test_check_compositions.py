"""``rewardkit check`` of compositions: a line of their own, by what was found of their parts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from rewardkit import Rollout, Runtime
from rewardkit.cli.program import app

REWARDS = """
from rewardkit import clip, gate, group_reward, maximum, product, reward


@reward(score_range=(0, 1))
def right(completion: str, answer: str) -> float:
    return float(answer in completion)


@reward(score_range=(-1, 1))
def brief(completion: str, most: int) -> float | None:
    return None if most == 0 else 1.0 if len(completion) <= most else -0.5


@reward
def open_ended(completion: str) -> float:
    return len(completion) / 10


@group_reward(score_range=(0, 1))
def shortest(completions: list[str], answer: str) -> list[float]:
    least = min(map(len, completions))
    return [float(len(text) == least) for text in completions]


whole = {composition}
"""
COMPOSITIONS = {
    "a sum": '(0.8 * right + 0.2 * brief).named("whole")',
    "a penalty": '(right - 0.5 * brief).named("whole")',
    "a gate": 'gate(right, brief, otherwise=-1.0).named("whole")',
    "a product": 'product(right, open_ended).named("whole")',
    "the most": 'maximum(right, brief, open_ended).named("whole")',
    "a clip": 'clip(open_ended, 0, 0.3).named("whole")',
    "without a name": "0.5 * right + 0.5 * brief",
}
ROWS = [
    {"prompt": "1 + 1?", "answer": "2", "reference": "It is 2.", "most": 20},
    {"prompt": "1 + 2?", "answer": "3", "reference": "It is 3, as everybody knows.", "most": 20},
    {"prompt": "1 + 3?", "answer": "4", "reference": "It is 4.", "most": 0},
    {"prompt": "1 + 4?", "answer": "5", "reference": "It is five.", "most": 20},
    {"prompt": "1 + 5?", "answer": "6", "reference": "It is 6.", "most": "many"},
]


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    Path("rows.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in ROWS))
    return tmp_path


def _checked(reference: str, *options: str) -> dict[str, Any]:
    done = CliRunner().invoke(app, ["check", reference, "rows.jsonl", "--workers", "1", "--json", *options])
    result: dict[str, Any] = json.loads(done.output)
    return result


@pytest.mark.parametrize("case", COMPOSITIONS)
def test_a_composition_scores_right_answers_as_a_run_does(case: str, work: Path) -> None:
    """Named or in the file: its rows are those of its parts, and its scores those that a runtime gives."""
    (work / "rewards.py").write_text(REWARDS.format(composition=COMPOSITIONS[case]))
    (named,), (of_file,) = (_checked(name)["compositions"] for name in ("rewards.py:whole", "rewards.py"))
    fails = [5] if "brief" in COMPOSITIONS[case] else []
    assert fails == named["failing_lines"] == of_file["failing_lines"]
    assert named["scores"] == of_file["scores"]
    rows = [(line, row) for line, row in enumerate(ROWS, 1) if line not in fails]
    rollouts = [Rollout(row["prompt"], row["reference"], row) for _, row in rows]
    with Runtime(["rewards.py:whole"], workers=1) as runtime:
        (scores,) = runtime.score(rollouts).scores.values()
    assert pytest.approx({str(line): score for (line, _), score in zip(rows, scores, strict=True)}) == named["scores"]


TWO_FORMS = """
import re

from rewardkit import gate, product, reward


@reward(score_range=(0, 1))
def right(completion: str, answer: str) -> float:
    return float(re.findall(r"[0-9,]+", completion)[-1:] == [answer.split()[-1]])


@reward(score_range=(0, 1))
def tagged(completion: str) -> float:
    return float(re.fullmatch(r"<think>.*</think>\\s*<answer>.*</answer>", completion, re.DOTALL) is not None)


whole = {composition}
"""


@pytest.mark.parametrize("composition", ["0.8 * right + 0.2 * tagged", "product(right, tagged)", "gate(right, tagged)"])
def test_parts_are_paid_in_a_form_that_all_of_them_want(composition: str, work: Path) -> None:
    """One is paid in any form, the other in tags alone: the whole is what a right answer in tags earns."""
    (work / "rewards.py").write_text(TWO_FORMS.format(composition=composition))
    rows = [{"prompt": "1 + 1?", "answer": "1 + 1 = 2\n#### 2"}, {"prompt": "1 + 2?", "answer": "#### 3"}]
    Path("rows.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    for reference in ("rewards.py", "rewards.py:whole"):
        (whole,) = _checked(reference)["compositions"]
        assert {"1": 1.0, "2": 1.0} == pytest.approx(whole["scores"])


def test_a_composition_with_a_group_reward_has_a_line(work: Path) -> None:
    """Groups are scored on fewer rows, and these are what the composition has."""
    (work / "rewards.py").write_text(REWARDS.format(composition='(right + shortest).named("whole")'))
    (whole,) = _checked("rewards.py:whole", "--num-generations", "2")["compositions"]
    assert {"1", "2"} <= set(whole["scores"])


def test_the_table_has_the_line_below_the_parts(work: Path) -> None:
    """A file without compositions has no further line, and JSON has an empty list."""
    (work / "rewards.py").write_text(REWARDS.format(composition=COMPOSITIONS["a sum"]))
    printed = CliRunner().invoke(app, ["check", "rewards.py:whole", "rows.jsonl", "--workers", "1"]).output
    names = [line.split()[0] for line in printed.splitlines() if line[:1].isalpha() and len(line.split()) > 5]
    assert ["reward", "right", "brief", "whole"] == [
        name for name in names if name in {"reward", "right", "brief", "whole"}
    ]
    (line,) = (line.split() for line in printed.splitlines() if line.startswith("whole "))
    assert ["whole", "5", "1", "4"] == line[:4]
    assert [] == _checked("rewards.py:right")["compositions"]
