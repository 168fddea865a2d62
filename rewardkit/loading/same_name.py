"""Our names, of the distribution and of the packages, and another package with our import name, ``harbor-rewardkit``.

Where that one is installed too, one line says so. It is looked for by the folder that pip leaves, because a look at
all distributions takes long.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

DISTRIBUTION = "rewardkit-rl"
"""What pip calls this project; ``pyproject.toml`` has the same name."""
PACKAGES = ("rewardkit", "sandbox", "builtin_rewards", "trainer_adapter")
"""The import names that this project installs."""
WAY_OUT = (
    "give each an environment of its own; until then `python -m rewardkit` is this one's command wherever "
    "`import rewardkit` finds it; in one environment they share files, so uninstall the other, then install this again"
)
"""What to do where two packages have our names."""
_OF_POOL = "REWARDKIT_POOL"  # what a pool of workers sets in its processes
_FOLDERS = ("site-packages", "dist-packages")
_log = logging.getLogger("rewardkit")


def own_distributions(holders: Mapping[str, Sequence[str]]) -> list[str]:
    """Return the installed distributions that have all of our import names: this project, by any name that it had.

    Args:
        holders: The distributions of each import name, as :func:`importlib.metadata.packages_distributions` has them.
    """
    return sorted(set.intersection(*({*holders.get(name, ())} for name in PACKAGES)))


def warn_of_harbor() -> None:
    """Log a warning if ``harbor-rewardkit`` is installed where this process imports from; workers say nothing."""
    if _OF_POOL in os.environ:
        return
    for folder in dict.fromkeys(sys.path):
        if not Path(folder).name.endswith(_FOLDERS):
            continue
        for about in Path(folder).glob("harbor_rewardkit-*.dist-info"):
            version = about.name.removesuffix(".dist-info").partition("-")[2]
            _log.warning(
                "harbor-rewardkit %s is installed beside rewardkit, with the same import name and the same command: %s",
                version,
                WAY_OUT,
            )
            return
