"""Another package with our import name and command, ``harbor-rewardkit``: one line says so where it is installed too.

It is looked for by the folder that pip leaves, because a look at all distributions takes long.
"""

from __future__ import annotations

import logging
import os
import sys
from pathlib import Path

WAY_OUT = (
    "give each an environment of its own; until then `python -m rewardkit` is this one's command wherever "
    "`import rewardkit` finds it; in one environment they share files, so uninstall the other, then install this again"
)
"""What to do where two packages have our names."""
_OF_POOL = "REWARDKIT_POOL"  # what a pool of workers sets in its processes
_FOLDERS = ("site-packages", "dist-packages")
_log = logging.getLogger("rewardkit")


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
