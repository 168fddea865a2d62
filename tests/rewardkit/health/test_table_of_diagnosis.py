"""The public table of the diagnosis: its script runs, its page is what the script says, and its trainings learn."""

from __future__ import annotations

import json
import random
import re
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from simulated.tasks import math_task
from simulated.training import Habit, Pay, Policy, Sample, Training, sigmoid
from typer.testing import CliRunner

from rewardkit.cli.program import app
from rewardkit.health.detectors import DETECTORS

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
import table_of_diagnosis as table

SMALL = "strict newline"
"""A trouble whose runs are small."""


def test_the_flags_of_each_trouble_are_detectors() -> None:
    """No trouble counts as named by a flag that no detector has."""
    assert {} == {
        name: kind.flags - set(DETECTORS) for name, kind in table.TROUBLES.items() if kind.flags - set(DETECTORS)
    }


def test_the_how_to_names_every_detector(root: Path) -> None:
    """Each flag stands beside the trouble that it names."""
    page = (root / "docs" / "how-to" / "why-is-my-reward-flat.md").read_text(encoding="utf-8")
    _, _, section = page.partition("### Each trouble and its flag")
    assert set() == set(DETECTORS) - set(re.findall(r"`(\w+)`", section.partition("\n## ")[0]))


def test_the_page_lists_all_kinds_in_order() -> None:
    """A row for each trouble, and one for each healthy kind."""
    names = re.findall(r"^\| ([\w ]+) \|", table.PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert [*table.TROUBLES, *table.HEALTHY] == [name for name in names if name not in ("trouble", "kind")]


def test_the_page_says_what_the_first_runs_give(monkeypatch: pytest.MonkeyPatch) -> None:
    """``--check`` makes some runs anew, and finds nothing that the page says otherwise."""
    monkeypatch.setattr(sys, "argv", ["table", "--check"])
    assert 0 == table.main()


def test_a_page_that_is_out_of_date_is_told() -> None:
    """A trouble without its row, and a mark that is not so."""
    text = table.PAGE.read_text(encoding="utf-8")
    assert [] != table.check(text.replace(f"| {table.CHECKED[0]} |", "| other |"))


def test_nearly_all_troubles_are_named_and_no_healthy_run_is_flagged() -> None:
    """22 of 25 in four runs of five each, as the page has them, and at most one flag in 5,000 healthy steps."""
    text = table.PAGE.read_text(encoding="utf-8")
    marks = re.findall(rf"\| ([{table.NAMED}{table.MISSED}]+) \|", text)
    assert len(table.TROUBLES) == len(marks)
    assert sum(run.count(table.NAMED) >= len(run) - 1 for run in marks) / len(marks) >= 22 / 25
    (rate,) = re.findall(r"\((\d+\.\d+) in 1,000\)", text)
    assert float(rate) <= 0.2


def test_the_command_says_the_same(tmp_path: Path) -> None:
    """What is counted is what ``rewardkit diagnose RUN --json`` prints of the recorded folder."""
    result = table.diagnose(SMALL, 0, tmp_path)
    (run,) = tmp_path.iterdir()
    done = CliRunner().invoke(app, ["diagnose", str(run), "--json"], prog_name="rewardkit")
    assert 0 == done.exit_code
    assert [detector for detector, *_ in result.flags] == [
        flag["detector"] for flag in json.loads(done.stdout)["flags"]
    ]
    assert table.is_named_in(result)


def test_one_kind_is_printed_and_the_page_stays(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """``--only`` has progress and the flags, and writes nothing."""
    before = table.PAGE.stat().st_mtime_ns
    monkeypatch.setattr(sys, "argv", ["table", "--only", SMALL, "--seeds", "1", "--jobs", "1"])
    assert 0 == table.main()
    assert f"{table.NAMED} {SMALL}, seed 0" in capsys.readouterr().out
    assert before == table.PAGE.stat().st_mtime_ns


def _chance_after(score: Callable[[Sample, random.Random], float], folder: Path) -> float:
    """Return the chance of a habit after a training with a reward."""
    policy = Policy(5, {"habit": Habit(0.2, 2.0)})
    Training(math_task(), {"reward": Pay(score)}, policy, 30, 6, 6, rng=random.Random(0)).record(folder)
    return sigmoid(policy.habits["habit"].logit)


def test_a_policy_learns_what_pays_and_nothing_else(tmp_path: Path) -> None:
    """A habit that is paid spreads, and one that is not stays as it was, about."""
    paid = _chance_after(lambda sample, rng: float("habit" in sample.habits), tmp_path / "paid")
    unpaid = _chance_after(lambda sample, rng: float(sample.right), tmp_path / "unpaid")
    assert (True, True) == (paid > 0.9, unpaid < 0.5)
