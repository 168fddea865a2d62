"""What the tab on reward graphs shows."""

from __future__ import annotations

from typing import Any

from rewardkit.dashboard.query import Query
from rewardkit.dashboard.readers import Opened


def view(opened: Opened, query: Query) -> dict[str, Any]:
    """Return nothing."""
    return {}
