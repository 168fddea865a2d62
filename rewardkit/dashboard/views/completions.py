"""What the tab on completions shows."""

from __future__ import annotations

from typing import Any

from rewardkit.dashboard.query import Query
from rewardkit.dashboard.readers import Opened


def prompts(opened: Opened, query: Query) -> dict[str, Any]:
    """Return nothing."""
    return {}


def prompt(opened: Opened, query: Query) -> dict[str, Any]:
    """Return nothing."""
    return {}


def completions(opened: Opened, query: Query) -> dict[str, Any]:
    """Return nothing."""
    return {}


def completion(opened: Opened, query: Query) -> dict[str, Any]:
    """Return nothing."""
    return {}
