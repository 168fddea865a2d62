"""The pytest plugin: fixtures for authors of rewards.

It is imported whenever pytest starts where rewardkit is installed, so it loads nothing until a fixture is asked for.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from rewardkit.testing.fixtures import Runtimes


@pytest.fixture(scope="module")
def runtime() -> Iterator[Runtimes]:
    """Make runtimes with worker processes: ``runtime([my_reward]).score(rollouts)``; by default with one worker.

    Equal requests of a module get the same runtime, started once. All are closed after the module's last test.
    """
    yield from _runtimes("worker")


@pytest.fixture(scope="module")
def inline_runtime() -> Iterator[Runtimes]:
    """Make runtimes in the test's own process: ``inline_runtime([my_reward])``. No isolation, no deadlines."""
    yield from _runtimes("inline")


def _runtimes(lane: str) -> Iterator[Runtimes]:
    from rewardkit.testing.fixtures import Runtimes  # on demand: see above

    runtimes = Runtimes(lane)
    try:
        yield runtimes
    finally:
        runtimes.close()
