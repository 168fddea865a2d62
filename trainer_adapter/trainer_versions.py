"""Which versions of a trainer an adapter is tested with, and a warning where another is installed.

It is a warning and no error: most versions call rewards as the one before did. It comes once a process, as the trainer
makes its rewards, through the logger ``trainer_adapter``.

An adapter for TRL depends on more. Before 1.0 a trainer gives reward functions no ``log_metric``: it is known to an
adapter by ``attach`` alone, and metrics go into its logs. Before 1.6 it compares a completion without any score as if
its reward were 0. Before 0.22 such a completion ends the training, by a ``TypeError`` of TRL's.
"""

from __future__ import annotations

import importlib.metadata
import logging
import re
import sys
from dataclasses import dataclass

from rewardkit import ConfigError

_log = logging.getLogger("trainer_adapter")


@dataclass(frozen=True, slots=True)
class TrainerVersions:
    """The versions of a trainer that are tested.

    Attributes:
        distribution: The trainer's name, as pip knows it.
        first: The first of them.
        before: The first version after the last of them.
    """

    distribution: str
    first: str
    before: str

    def warn_of_another(self, trainer: str, setting: str) -> None:
        """Warn, once a process, if another version than these is installed.

        Args:
            trainer: The trainer's name.
            setting: The setting that leads to the rewards.
        """
        if self in _WARNED:
            return
        try:
            version = importlib.metadata.version(self.distribution)
        except importlib.metadata.PackageNotFoundError:
            return
        if _numbers(self.first) <= _numbers(version) < _numbers(self.before):
            return
        _WARNED.add(self)
        _log.warning(
            "%s %s is installed, and rewardkit is tested with %s to below %s: it may call what %s names in another "
            "way; look at the rewards of the first step, or install '%s>=%s,<%s'",
            trainer, version, self.first, self.before, setting, self.distribution, self.first, self.before,
        )  # fmt: skip


_WARNED: set[TrainerVersions | str] = set()  # Trainers, and TRL's versions
TESTED_TRL = TrainerVersions("trl", "0.22", "1.17")
_LEAVES_OUT = "1.6"  # The first TRL that leaves a completion without any score out of its group


def _trl_version() -> str:
    """Return TRL's version where TRL is loaded, and ``""`` where it is not."""
    return str(getattr(sys.modules.get("trl"), "__version__", ""))


def counts_unknown_as_zero() -> bool:
    """Return whether the trainer takes 0 for the reward of a completion that no reward has scored."""
    return () < _numbers(_trl_version()) < _numbers(_LEAVES_OUT)  # () where TRL is not loaded


def check_trl_version() -> None:
    """Log once what this version of TRL does otherwise, or that it is newer than the tested ones; refuse an older."""
    version, first, before = _trl_version(), TESTED_TRL.first, TESTED_TRL.before
    if not _numbers(version):
        return
    if _numbers(version) < _numbers(first):
        raise ConfigError(
            f"trl {version} is too old for RewardAdapter: a completion without a score would end the training; "
            f"pip install 'trl>={first},<{before}'"
        )
    if version in _WARNED:
        return
    _WARNED.add(version)
    if _numbers(version) >= _numbers(before):
        _log.warning(
            "trl %s is outside the versions that RewardAdapter is tested with, >=%s,<%s: its rewards may be called in "
            "another way; look at rewards/*/mean and at the record of the first steps", version, first, before,
        )  # fmt: skip
    if counts_unknown_as_zero():
        _log.warning(
            "trl %s takes 0 for the reward of a completion that has no score (skipped by every reward, or failed "
            "without a default) when it compares the completions of a prompt; trl %s and later leave it out. Give the "
            "rewards a default that you mean, or a later trl", version, _LEAVES_OUT,
        )  # fmt: skip


def _numbers(version: str) -> tuple[int, ...]:
    """Return the numbers of a version; what follows them, as in ``0.9.1.dev0``, does not count."""
    match = re.match(r"v?(\d+(?:\.\d+)*)", version)
    return tuple(int(part) for part in match[1].split(".")) if match else ()
