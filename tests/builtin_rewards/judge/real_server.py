"""A real small model behind a real server: the fixture ``real_judge``, started once for all tests that ask for it.

Where it cannot be had, offline or on a machine of another kind, these tests are skipped with the reason; with
``REWARDKIT_REQUIRE_REAL_MODEL=1`` they fail instead, so that CI cannot pass without them.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from builtin_rewards.judge.errors import JudgeError
from builtin_rewards.judge.local import LocalJudgeServer

REQUIRED = "REWARDKIT_REQUIRE_REAL_MODEL"


@pytest.fixture(scope="session")
def real_judge() -> Iterator[LocalJudgeServer]:
    """A running server: ``real_judge.base_url``, ``real_judge.model``."""
    server = LocalJudgeServer()
    try:
        server.start()
    except JudgeError as reason:
        if os.environ.get(REQUIRED) == "1":
            raise
        pytest.skip(f"no real model ({REQUIRED}=1 makes this a failure): {reason}")
    yield server
    server.stop()
