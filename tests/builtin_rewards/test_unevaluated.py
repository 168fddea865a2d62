"""Unevaluated arithmetic is no answer: the audit on rows of sums finds nothing that is wrongly paid for it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from typer.testing import CliRunner

from rewardkit.cli.program import app

MATHEMATICS = ["math_answer", "numeric_close"]
WHOLE = [("4+9=", "13"), ("18 - 9 =", "9"), ("17*23", "391"), ("81 / 9 =", "9"), ("2^10 = ?", "1024")]
SHORT = [(prompt, answer) for prompt, answer in WHOLE if len(answer) <= 2]
"""Rows whose answers are as long as the demo's."""
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


def audited(rewards: list[str], rows: list[tuple[str, str]], folder: Path) -> dict[str, dict[str, Any]]:
    """Return what one audit of several rewards on the same rows finds, by reward."""
    path = folder / "rows.jsonl"
    path.write_text("".join(json.dumps({"prompt": prompt, "answer": answer}) + "\n" for prompt, answer in rows))
    done = CliRunner().invoke(app, ["audit", ",".join(rewards), "--data", str(path), "--workers=1", "--json", *SKIPPED])
    found: list[dict[str, Any]] = json.loads(done.stdout)["rewards"]
    assert [len(rows)] * len(rewards) == [one["audited_rows"] for one in found], done.stdout
    return dict(zip(rewards, found, strict=True))


def test_the_mathematics_rewards_pay_nothing_wrong(tmp_path: Path, full: bool) -> None:
    """For whole numbers, fractions, percentages, units and roots; with ``--full`` on twice as many rows."""
    rows = [*WHOLE, *OTHER]
    found = audited(MATHEMATICS, rows if full else rows[1::2], tmp_path)
    assert dict.fromkeys(MATHEMATICS, 0) == {name: one["false_accepts"] for name, one in found.items()}


def test_the_demo_and_the_reward_to_begin_from_accept_nothing_wrong(root: Path, tmp_path: Path) -> None:
    """Neither the demo's reward nor what ``rewardkit new`` writes scores a wrong completion as right."""
    assert 0 == CliRunner().invoke(app, ["new", "my_first_sum", "--dir", str(tmp_path)]).exit_code
    demo, new = f"{root}/docs/examples/demo/rewards.py:correct", f"{tmp_path}/my_first_sum.py"
    found = audited([demo, new], SHORT, tmp_path)
    assert [0, 0] == [found[name]["false_accepts"] for name in (demo, new)]
