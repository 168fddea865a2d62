"""The version of rewardkit that runs, whatever distribution installed it, and where none did."""

from __future__ import annotations

import sys


def own_version() -> str:
    """Return ``rewardkit.__version__``."""
    version: str = sys.modules["rewardkit"].__version__  # imported by name it would be a circle
    return version
