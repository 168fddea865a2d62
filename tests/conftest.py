"""What all tests share: the options --full and --brief, and where the real data lies."""

from __future__ import annotations

import gc
import os
import random
import shutil
import signal
import sys
import tempfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import hypothesis
import pytest
from costs import back_in_turn, beyond, by_test, out_of_turn, write_costs

ROOT = Path(__file__).parents[1]


def pytest_configure(config: pytest.Config) -> None:
    """Draw the same examples each time and under any load, and let Ctrl-C end what tests start.

    ``--full`` draws new examples. A shell's background ignores Ctrl-C, and what is started there would as well.
    """
    unhurried = hypothesis.settings(
        deadline=None,
        derandomize=not config.getoption("--full"),
        print_blob=True,
        suppress_health_check=[hypothesis.HealthCheck.too_slow],
    )
    hypothesis.settings.register_profile("unhurried", unhurried)
    hypothesis.settings.load_profile("unhurried")
    if config.option.draw_seed is None:
        of_the_run: dict[str, Any] = getattr(config, "workerinput", {})
        config.option.draw_seed = of_the_run.get("draw_seed", random.randrange(10**6))
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Give a process of pytest-xdist the seed of the run: all of them collect the same tests."""
    node.workerinput["draw_seed"] = node.config.option.draw_seed


@pytest.hookimpl(hookwrapper=True)
def pytest_collection() -> Iterator[None]:
    """Collect without the garbage collector, and let it look at no test later: 20,000 of them are no garbage.

    It takes a fifth of the collection's time, and each full run of it half a second.
    """
    gc.disable()
    yield
    gc.enable()
    gc.freeze()


SLOW = ("browser", "slow", "fuzz", "postgres", "ray", "real_model", "servers", "soak", "trainers")
"""Markers of tests that take long in full."""
LATER = pytest.StashKey[list[pytest.Item]]()
"""Tests that only ``--full`` runs."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what runs with ``--full`` only, and put files with slow tests first.

    Processes share out whole files (``--dist loadfile``), so none is left with a slow one at the end.
    """
    marks = {item: {mark.name for mark in item.iter_markers()} for item in items}
    later = [] if config.getoption("--full") else [item for item in items if "full" in marks[item]]
    later += [] if config.getoption("--full") else _cases_left_out([item for item in items if "cases" in marks[item]])
    config.stash[LATER] = later
    left_out = set(later)
    if config.getoption("--turns"):
        choosable, seed = [item for item in items if item not in left_out], config.option.draw_seed
        left_out.update(out_of_turn(choosable, seed))
        families = [[item for item in choosable if name in marks[item]] for name in SLOW]
        left_out.difference_update(back_in_turn(left_out, families, seed))
    if config.getoption("--brief"):
        left_out.update(_cases_left_out([item for item in items if item not in left_out], most=1))
    config.hook.pytest_deselected(items=list(left_out))
    items[:] = [item for item in items if item not in left_out]
    slow = {item.path for item in items if not marks[item].isdisjoint(SLOW)}
    items.sort(key=lambda item: item.path not in slow)


def _cases_left_out(items: list[pytest.Item], most: int | None = None) -> list[pytest.Item]:
    """Return the cases beyond those that ``cases(n)`` has a test run, or beyond ``most``, whatever the test says.

    Those that run lie evenly over the table: neighbours are often alike, as all of one language are. Which ones it
    runs differs from test to test, with ``most`` also from Python to Python.
    """
    python = "" if most is None else sys.version_info[:2]
    left_out = []
    for name, cases in by_test(items).items():
        count = most or cases[0].get_closest_marker("cases").args[0]  # type: ignore[union-attr]
        left_out += beyond(cases, count, zlib.crc32(f"{name}{python}".encode()) % len(cases))
    return left_out


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Write what the tests took, with ``--write-costs``."""
    if config.option.write_costs:
        reports = [report for reports in terminalreporter.stats.values() for report in reports]
        write_costs([report for report in reports if isinstance(report, pytest.TestReport)])


@pytest.fixture
def later(pytestconfig: pytest.Config) -> list[pytest.Item]:
    """The tests that only ``--full`` runs, and this run leaves out."""
    return pytestconfig.stash[LATER]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--full", action="store_true", help="run slow tests in full, not in their short form")
    parser.addoption("--brief", action="store_true", help="run one case of each test, another on another Python")
    parser.addoption("--turns", action="store_true", help="of tests that take long, run a part that differs by run")
    parser.addoption("--write-costs", action="store_true", help="write to tests/costs.txt what tests take")
    parser.addoption("--draw-seed", type=int, help="the seed that labelled pairs are drawn from; a new one by default")


def pytest_report_header(config: pytest.Config) -> str:
    return f"labelled pairs: --draw-seed {config.option.draw_seed}"


@pytest.fixture(scope="session")
def full(pytestconfig: pytest.Config) -> bool:
    """Whether slow tests are to run in full."""
    return bool(pytestconfig.getoption("--full"))


@pytest.fixture(scope="session")
def draw_seed(pytestconfig: pytest.Config) -> int:
    """The seed from which this run draws labelled pairs."""
    return int(pytestconfig.option.draw_seed)


@pytest.fixture(autouse=True)
def _path_as_it_was() -> Iterator[None]:
    """Take back what loading reward files put on sys.path: one test's files are not the next one's modules."""
    before = list(sys.path)
    yield
    sys.path[:] = before


@pytest.fixture(autouse=True, scope="module")
def _no_jail_of_rewards_left() -> Iterator[None]:
    """End the jails that rewards made in this process: other modules count the processes of theirs."""
    yield
    jail = sys.modules.get("rewardkit.jailed.jail")
    if jail is not None:
        jail.close_shared()


@pytest.fixture(scope="session")
def root() -> Path:
    """The project's folder."""
    return ROOT


@pytest.fixture(scope="session")
def data() -> Path:
    """The folder of real data sets; the test is skipped where they are absent."""
    folder = Path(os.environ.get("REWARDKIT_DATA", ROOT.parent / "shared" / "data"))
    if not folder.is_dir():
        pytest.skip(f"no data sets at {folder}; set REWARDKIT_DATA")
    return folder


@pytest.fixture(scope="session")
def postgres() -> Iterator[Any]:
    """A PostgreSQL server of this process's, ended with it; without one the test is skipped."""
    yield from _server()


@pytest.fixture
def own_postgres() -> Iterator[Any]:
    """A server that a test may stop."""
    yield from _server()


def _server() -> Iterator[Any]:
    from databases import serving

    folder = Path(tempfile.mkdtemp(prefix="rk-pg-"))  # short, and open to the server's own user
    try:
        with serving(folder) as server:
            yield server
    finally:
        shutil.rmtree(folder, ignore_errors=True)
