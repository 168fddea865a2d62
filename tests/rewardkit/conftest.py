"""What several tests of rewardkit share: the jail that rewards given as text share."""

from __future__ import annotations

import pytest

from rewardkit import InfrastructureError
from rewardkit.jailed.jail import shared_sandbox


@pytest.fixture(scope="module")
def shared_jail() -> None:
    """Start the jail of this process, or skip the module's tests where there is none."""
    try:
        shared_sandbox()
    except InfrastructureError as reason:
        pytest.skip(f"no jail here: {reason}")
