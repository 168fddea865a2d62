"""Sealed folders that are kept beside a record, so that a grading can be repeated from what it saw.

They lie in one folder, each as :meth:`SealedWorkspace.save` writes it, so equal folders take one file. Two variables
of the environment say where and how much, as rewards run in processes of their own. Each of several processes that
save at once may exceed the bound by one folder; nothing that is there is ever removed.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from pathlib import Path

from rewardkit.errors import WorkspaceError
from rewardkit.jailed.sealed import SealedWorkspace

FOLDER_VARIABLE = "REWARDKIT_SEALED"
"""Environment variable: the folder that keeps what gradings saw; unless set, nothing is kept."""
BYTES_VARIABLE = "REWARDKIT_SEALED_BYTES"  # Environment variable: bytes of all that it keeps, a gigabyte unless set
MOST_SEALED_BYTES = 1_000_000_000
HOME_FOLDER = "sealed"  # Where commands look for it beside a record
_log = logging.getLogger("rewardkit")


def keep_sealed(workspace: SealedWorkspace) -> None:
    """Keep a sealed folder where the environment says so; a fault of the disk is logged and costs no score.

    Raises:
        WorkspaceError: The bound is not a whole number.
    """
    name = os.environ.get(FOLDER_VARIABLE, "")
    if not name:
        return
    most_bytes = _most_bytes()
    folder = Path(name)
    try:
        if sealed_file([folder], workspace.digest) is not None:
            return
        size = sum(map(len, workspace.files.values()))
        total = sum(entry.stat().st_size for entry in os.scandir(folder)) if folder.is_dir() else 0
        if total + size > most_bytes:
            _log.warning("%r is not kept: %s would hold more than %s bytes", workspace, folder, f"{most_bytes:,}")
            return
        workspace.save(folder)
    except OSError as refused:
        _log.warning("%r is not kept: %s", workspace, refused)


def sealed_folders(home: Path) -> list[Path]:
    """Return where the sealed folders of a run may lie; ``home`` is the folder of its record."""
    variable = os.environ.get(FOLDER_VARIABLE, "")
    return [home / HOME_FOLDER, *([Path(variable)] if variable else [])]


def sealed_file(folders: Sequence[Path], digest: str) -> Path | None:
    """Return the file of a sealed folder; ``None`` where it was not kept."""
    files = [folder / f"{digest}.zip" for folder in folders]
    return next((file for file in files if file.is_file()), None)


def _most_bytes() -> int:
    value = os.environ.get(BYTES_VARIABLE, "") or str(MOST_SEALED_BYTES)
    if not value.isascii() or not value.isdigit():
        raise WorkspaceError(f"{BYTES_VARIABLE}={value!r:.80}: expected a whole number of bytes")
    return int(value)
