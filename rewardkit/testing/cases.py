"""``cases``: a table as pytest cases, one each."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from rewardkit.declare.options import RewardDefinitionWarning
from rewardkit.loading.registry import RewardLike, resolve
from rewardkit.testing.table import Case, read_table, table_of
from rewardkit.testing.verdict import Bench


def cases(
    reward: RewardLike,
    table: str | Path | Iterable[Mapping[str, Any]],
    *,
    lane: str | None = None,
    tolerance: float | None = None,
) -> Callable[..., None]:
    """Return a test function of a table, which pytest runs once a case.

    >>> from rewardkit import reward
    >>> @reward
    ... def correct(completion: str, answer: int) -> float:
    ...     return float(completion == str(answer))
    >>> test_correct = cases(correct, [{"completion": "4", "answer": "4", "expect": 1.0}])

    A key that no reward reads, such as ``name`` for ``id``, is a :class:`~rewardkit.RewardDefinitionWarning`.
    Each case goes through the runtime alone, so columns are coerced and defaults filled in as in training.

    Args:
        reward: A reward, a composition, a function, or a reference such as ``"my_rewards.py:correct"``.
        table: A YAML or JSON Lines file, relative to the folder of the calling file; or the cases themselves.
            A ``reward`` that the file names is for ``rewardkit test`` and not looked at here.
        lane: ``"inline"``, ``"worker"``, or ``None`` for inline unless a case expects a timeout or a crash.
        tolerance: How far a score may be from the expected one, instead of what the table says.

    Raises:
        ConfigError: The lane cannot run a case.
        DataError: The table is wrong; names file, line and key.
        RewardLoadError: The reference leads nowhere.
    """
    try:
        import pytest
    except ImportError as missing:
        raise ImportError("cases(...) makes tests for pytest: pip install pytest") from missing
    if isinstance(table, str | Path):
        folder = Path(sys._getframe(1).f_globals.get("__file__", "")).parent
        loaded = read_table(folder / table, tolerance=tolerance)
    else:
        loaded = table_of(table, tolerance=tolerance)
    resolved = resolve(reward)
    loaded.check(resolved)
    for note in loaded.unread(resolved):
        warnings.warn(note, RewardDefinitionWarning, stacklevel=2)
    runs_in = loaded.lane(lane)  # a lane that cannot run a case is told before any of it runs
    open_benches: list[Bench] = []

    @pytest.mark.parametrize("case", [pytest.param(case, id=case.id) for case in loaded.cases])
    def test(case: Case, request: pytest.FixtureRequest) -> None:
        """The outcome is the one that the table expects."""
        if not open_benches:
            open_benches.append(Bench(resolved, runs_in))
            module = request.node.getparent(pytest.Module)
            module.addfinalizer(lambda: open_benches.pop().close())
        verdict = open_benches[0].run(case)
        if not verdict.passed:
            pytest.fail(verdict.diff(), pytrace=False)

    return test
