"""Unevaluated arithmetic is no answer: the audit on rows of sums finds nothing that is wrongly paid for it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from rewardkit.cli.program import app

WHOLE = [("4+9=", "13"), ("18 - 9 =", "9"), ("17*23", "391"), ("81 / 9 =", "9"), ("2^10 = ?", "1024")]
OTHER = [
    ("Compute $\\frac12+\\frac13$.", "\\frac{5}{6}"),
    ("Simplify 72/96.", "3/4"),
    ("What is 50% of 100?", "50"),
    ("Write 50% as a decimal.", "0.5"),
    ("How many meters are 500 cm?", "5 meters"),
    ("What is 18 squared?", "324"),
    ("$\\sqrt{1764} =$", "42"),
]
SKIPPED = [f"--skip={name}" for name in ("long", "judge", "bomb", "code", "work")]


def audited(reward: str, rows: list[tuple[str, str]], folder: Path, *options: str) -> dict[str, Any]:
    path = folder / "rows.jsonl"
    path.write_text("".join(json.dumps({"prompt": prompt, "answer": answer}) + "\n" for prompt, answer in rows))
    done = CliRunner().invoke(app, ["audit", reward, "--data", str(path), "--workers=1", "--json", *options])
    found: dict[str, Any] = json.loads(done.stdout)["rewards"][0]
    assert len(rows) == found["audited_rows"], done.stdout
    return found


@pytest.mark.parametrize("reward", ["math_answer", "numeric_close"])
@pytest.mark.parametrize("rows", [WHOLE, OTHER], ids=["whole", "other"])
def test_the_mathematics_rewards_pay_nothing_wrong(reward: str, rows: list[tuple[str, str]], tmp_path: Path) -> None:
    assert 0 == audited(reward, rows, tmp_path, *SKIPPED)["false_accepts"]


def test_the_demo_pays_nothing_wrong(root: Path, tmp_path: Path) -> None:
    assert 0 == audited(f"{root}/docs/examples/demo/rewards.py:correct", WHOLE, tmp_path, *SKIPPED)["false_accepts"]


def test_the_reward_to_begin_from_pays_for_no_sum_of_the_prompt(tmp_path: Path) -> None:
    """What ``rewardkit new`` writes reads the last number, but no operand."""
    assert 0 == CliRunner().invoke(app, ["new", "my_first_sum", "--dir", str(tmp_path)]).exit_code
    found = audited(f"{tmp_path}/my_first_sum.py", WHOLE, tmp_path, *SKIPPED)
    assert 0 == found["families"]["echo"]["accepted"]
    assert 0.01 > found["false_reject_share"]
