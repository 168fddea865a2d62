"""What the pytest fixtures are: runtimes made as tests ask for them, and closed together."""

from __future__ import annotations

import operator
from typing import Any

from rewardkit.errors import RuntimeClosedError
from rewardkit.runtime.runtime import Runtime


class Runtimes:
    """Runtimes of one lane, made on request; equal requests get the same one, so that its workers start once.

    Args:
        lane: ``"worker"`` or ``"inline"``.
    """

    def __init__(self, lane: str) -> None:
        self._lane = lane
        self._made: list[tuple[tuple[Any, ...], dict[str, Any], Runtime]] = []

    def __call__(self, *rewards: object, **options: Any) -> Runtime:
        """Return a runtime that has been started.

        Args:
            rewards: One argument that :class:`~rewardkit.Runtime` takes, or several rewards.
            options: Options of :class:`~rewardkit.Runtime`; ``workers`` is 1 unless given.
        """
        request = tuple(rewards[0]) if len(rewards) == 1 and isinstance(rewards[0], list | tuple) else rewards
        for earlier, same, runtime in self._made:
            is_equal = len(earlier) == len(request) and all(map(operator.is_, earlier, request)) and same == options
            if is_equal and _try_start(runtime):
                return runtime
        subject = rewards[0] if len(rewards) == 1 else list(rewards)
        runtime = Runtime(subject, **{"workers": 1, "lane": self._lane, **options}).start()
        self._made.append((request, options, runtime))
        return runtime

    def close(self) -> None:
        """Close every runtime made."""
        for _, _, runtime in self._made:
            runtime.close()
        self._made.clear()


def _try_start(runtime: Runtime) -> bool:
    """Start a runtime, and return whether that was possible: a test may have closed it."""
    try:
        runtime.start()
    except RuntimeClosedError:
        return False
    return True
