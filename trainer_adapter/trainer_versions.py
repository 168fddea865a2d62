"""Which versions of a trainer an adapter is tested with, and a warning where another is installed.

It is a warning and no error: most versions call rewards as the one before did. It comes once a process, as the trainer
makes its rewards, through the logger ``trainer_adapter``.
"""

from __future__ import annotations

import importlib.metadata
import logging
import re
from dataclasses import dataclass

_log = logging.getLogger("trainer_adapter")


@dataclass(frozen=True, slots=True)
class TrainerVersions:
    """The versions of a trainer that are tested.

    Attributes:
        distribution: The trainer's name, as pip knows it.
        first: The first version.
        before: The first version after them.
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


_WARNED: set[TrainerVersions] = set()


def _numbers(version: str) -> tuple[int, ...]:
    """Return the numbers of a version; what follows them, as in ``0.9.1.dev0``, does not count."""
    match = re.match(r"v?(\d+(?:\.\d+)*)", version)
    return tuple(int(part) for part in match[1].split(".")) if match else ()
