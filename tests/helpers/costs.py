"""What tests take, and which of them ``make test`` leaves out in a run because they take long."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TypeVar

import pytest

COSTS = Path(__file__).parents[1] / "costs.txt"
"""Seconds that a case of a test takes, of tests whose cases take long together; ``--write-costs`` measures them."""
BUDGET_S = 1.0
"""Seconds that the cases of a test may take together with ``--turns``; of a test with longer cases one runs."""
_LEAST_S = 0.01
TURNS = 5
"""A test of which one case takes longer than the budget runs in one of so many runs."""

Item = TypeVar("Item", bound=pytest.Item)


def read_costs() -> dict[str, float]:
    """Return the seconds of a case of each test that takes long, by its name."""
    lines = (line.split(maxsplit=1) for line in COSTS.read_text(encoding="utf-8").splitlines())
    return {name: float(seconds) for seconds, name in lines}


def write_costs(reports: Iterable[pytest.TestReport]) -> None:
    """Write what the cases of each test took; a test that did not run keeps the seconds that it had."""
    seconds: dict[str, dict[str, float]] = {}
    for report in reports:
        cases = seconds.setdefault(report.nodeid.partition("[")[0], {})
        cases[report.nodeid] = cases.get(report.nodeid, 0.0) + report.duration
    long = {name: sum(cases.values()) / len(cases) for name, cases in seconds.items() if sum(cases.values()) > BUDGET_S}
    others = {name: value for name, value in read_costs().items() if name not in seconds}
    lines = [f"{value:.2f} {name}\n" for name, value in sorted({**others, **long}.items()) if value >= _LEAST_S]
    COSTS.write_text("".join(lines), encoding="utf-8")


def by_test(items: Iterable[Item]) -> dict[str, list[Item]]:
    """Return the cases of each test, by its name."""
    tables: dict[str, list[Item]] = {}
    for item in items:
        tables.setdefault(item.nodeid.partition("[")[0], []).append(item)
    return tables


def beyond(cases: Sequence[Item], count: int, first: int) -> list[Item]:
    """Return the cases beside ``count`` that lie evenly over them from ``first`` on: neighbours are often alike."""
    chosen = {(first + number * len(cases) // count) % len(cases) for number in range(count)}
    return [case for place, case in enumerate(cases) if place not in chosen]


def back_in_turn(left_out: Iterable[Item], families: Iterable[Sequence[Item]], seed: int) -> list[Item]:
    """Return a test of each family of which a run would leave out all."""
    others = set(left_out)
    return [family[seed % len(family)] for family in families if family and others.issuperset(family)]


def out_of_turn(items: Iterable[Item], seed: int) -> list[Item]:
    """Return the cases of costly tests that a run leaves out; a run with another seed leaves out others."""
    costs, tables = read_costs(), by_test(items)
    left_out: list[Item] = []
    for name in tables.keys() & costs.keys():
        cases, number = tables[name], zlib.crc32(name.encode()) + seed
        is_out = costs[name] > BUDGET_S and number % TURNS > 0
        count = min(len(cases), max(1, int(BUDGET_S / costs[name])))
        left_out += cases if is_out else beyond(cases, count, number // TURNS)
    return left_out
