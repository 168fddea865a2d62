"""What differs between versions of TRL, as far as an adapter depends on it.

Before 1.0 a trainer gives reward functions no ``log_metric``: it is known to an adapter by ``attach`` alone, and
metrics go into its logs. Before 1.6 it compares a completion without any score as if its reward were 0.
"""

from __future__ import annotations

import logging
import re
import sys

from rewardkit import ConfigError

TESTED_TRL = (0, 22), (1, 17)
"""The versions of TRL that the tests run with: from the first up to, and without, the second."""
_LEAVES_OUT = (1, 6)  # The first version that leaves a completion without any score out of its group
_log = logging.getLogger("trainer_adapter")
_logged: set[str] = set()


def _version() -> tuple[str, tuple[int, int]] | None:
    """Return TRL's version where TRL is loaded, as text and as numbers."""
    text = str(getattr(sys.modules.get("trl"), "__version__", ""))
    match = re.match(r"(\d+)\.(\d+)", text)
    return None if match is None else (text, (int(match[1]), int(match[2])))


def counts_unknown_as_zero() -> bool:
    """Return whether the trainer takes 0 for the reward of a completion that no reward has scored."""
    version = _version()
    return version is not None and version[1] < _LEAVES_OUT


def check_version() -> None:
    """Log once what this version of TRL does otherwise, or that it is newer than those that the tests run with.

    Refuse an older one: there a completion without a score ends the training, by a ``TypeError`` of TRL's.
    """
    version = _version()
    if version is None:
        return
    first, end = (".".join(map(str, bound)) for bound in TESTED_TRL)
    if version[1] < TESTED_TRL[0]:
        raise ConfigError(
            f"trl {version[0]} is too old for RewardAdapter: a completion without a score would end the training; "
            f"pip install 'trl>={first},<{end}'"
        )
    if version[0] in _logged:
        return
    _logged.add(version[0])
    if version[1] >= TESTED_TRL[1]:
        _log.warning(
            "trl %s is outside the versions that RewardAdapter is tested with, >=%s,<%s: its rewards may be called in "
            "another way; look at rewards/*/mean and at the record of the first steps", version[0], first, end,
        )  # fmt: skip
    if counts_unknown_as_zero():
        _log.warning(
            "trl %s takes 0 for the reward of a completion that has no score (skipped by every reward, or failed "
            "without a default) when it compares the completions of a prompt; trl %s and later leave it out. Give the "
            "rewards a default that you mean, or a later trl",
            version[0], ".".join(map(str, _LEAVES_OUT)),
        )  # fmt: skip
