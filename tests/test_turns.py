"""``make test`` runs a part of what takes long, and each test in one of five runs at least."""

from __future__ import annotations

import re
from pathlib import Path

import costs
import pytest

COSTLY, TABLE, CHEAP = "tests/a.py::costly", "tests/a.py::table", "tests/a.py::cheap"


class _Case:
    """A collected test."""

    def __init__(self, nodeid: str) -> None:
        self.nodeid = nodeid


CASES = [_Case(COSTLY), *(_Case(f"{TABLE}[{number}]") for number in range(12)), _Case(CHEAP)]


@pytest.fixture
def _prices(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "costs.txt").write_text(f"{4 * costs.BUDGET_S} {COSTLY}\n{costs.BUDGET_S / 4} {TABLE}\n")
    monkeypatch.setattr(costs, "COSTS", tmp_path / "costs.txt")


@pytest.mark.usefixtures("_prices")
def test_each_run_has_a_part_and_all_runs_together_have_everything() -> None:
    """A seed has its part again; a test without an entry is in each."""
    runs = []
    for seed in range(12 * costs.TURNS):
        left_out = {case.nodeid for case in costs.out_of_turn(CASES, seed)}  # type: ignore[type-var]
        assert left_out == {case.nodeid for case in costs.out_of_turn(CASES, seed)}  # type: ignore[type-var]
        runs.append({case.nodeid for case in CASES} - left_out)
    assert [COSTLY in run for run in runs].count(True) == len(runs) / costs.TURNS
    assert {4} == {sum(name.startswith(TABLE) for name in run) for run in runs}
    assert {case.nodeid for case in CASES} == set.union(*runs)
    assert all(CHEAP in run for run in runs)


def test_a_run_has_a_test_of_each_family() -> None:
    """Also where all of them are costly and none of them has its turn."""
    out, tables = CASES[:3], [CASES[:2], CASES[2:4], CASES[4:], []]
    assert [[CASES[0]], [CASES[1]]] == [costs.back_in_turn(out, tables, seed) for seed in (2, 3)]  # type: ignore[type-var]


def test_what_has_a_cost_is_a_test(root: Path) -> None:
    """One that was renamed would run in full again; ``python -m pytest --write-costs FILE`` measures it."""
    names = costs.read_costs()
    sources = [path.read_text(encoding="utf-8") for path in (root / "tests").rglob("*.py")]
    functions = {name for source in sources for name in re.findall(r"def (test_\w+)\(|^ *(test_\w+) = ", source, re.M)}
    defined = set().union(*functions)
    assert [] == [
        name
        for name in names
        if not (root / name.partition("::")[0]).is_file() or name.rpartition("::")[2] not in defined
    ]


def test_the_processes_of_a_run_have_one_seed(request: pytest.FixtureRequest, draw_seed: int) -> None:
    """They collect the same tests only so."""
    assert getattr(request.config, "workerinput", {}).get("draw_seed", draw_seed) == draw_seed
    if hasattr(request.config, "workerinput"):
        assert "draw_seed" in request.config.workerinput
