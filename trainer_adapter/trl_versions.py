"""What differs between versions of TRL, as far as an adapter depends on it.

Before 1.0 a trainer gives reward functions no ``log_metric``: it is known to an adapter by ``attach`` alone, and
metrics go into its logs. Before 1.6 it compares a completion without any score as if its reward were 0.
"""

from __future__ import annotations

import logging
import re
import sys

TESTED_TRL = (0, 22), (1, 17)
"""The versions of TRL that the tests run with: from the first up to, and without, the second."""
_LEAVES_OUT = (1, 6)
"""The first version that leaves a completion without any score out of its group."""
_log = logging.getLogger("trainer_adapter")
_told: set[str] = set()


def _version() -> tuple[str, tuple[int, int]] | None:
    """Return TRL's version where TRL is loaded, as text and as numbers."""
    text = str(getattr(sys.modules.get("trl"), "__version__", ""))
    found = re.match(r"(\d+)\.(\d+)", text)
    return None if found is None else (text, (int(found[1]), int(found[2])))


def counts_unknown_as_zero() -> bool:
    """Return whether the trainer takes 0 for the reward of a completion that no reward has scored."""
    version = _version()
    return version is not None and version[1] < _LEAVES_OUT


def warn_of_version() -> None:
    """Log once what this version of TRL does otherwise, or that the tests do not run with it."""
    version = _version()
    if version is None or version[0] in _told:
        return
    _told.add(version[0])
    first, end = TESTED_TRL
    if not first <= version[1] < end:
        _log.warning(
            "trl %s is outside the versions that RewardAdapter is tested with, >=%s,<%s: its rewards may be called in "
            "another way; look at rewards/*/mean and at the record of the first steps",
            version[0], *(".".join(map(str, bound)) for bound in TESTED_TRL),
        )  # fmt: skip
    if counts_unknown_as_zero():
        _log.warning(
            "trl %s takes 0 for the reward of a completion that has no score (skipped by every reward, or failed "
            "without a default) when it compares the completions of a prompt; trl %s and later leave it out. Give the "
            "rewards a default that you mean, or a later trl",
            version[0], ".".join(map(str, _LEAVES_OUT)),
        )  # fmt: skip
