"""The folders that were graded in a run, unpacked again for rewards that read a workspace.

*Covered:* a kept file is read by the digest that the recorded reason names, and its content must have that digest; a
name that leads out of the folder is refused.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Collection
from pathlib import Path

from rewardkit.errors import WorkspaceError
from rewardkit.jailed.sealed import SealedWorkspace
from rewardkit.jailed.sealed_store import sealed_file, sealed_folders
from rewardkit.jailed.workspace import workspace_roots
from rewardkit.record.values import Completion
from rewardkit.suites.suite_verdict import graded_digest

NO_DIGEST = "its record does not name the folder that was graded"
SEVERAL_DIGESTS = "its rewards graded different folders"
SEVERAL_COLUMNS = "it reads several workspaces, and the record does not say which was graded"
NOT_KEPT = "the folder that was graded was not kept"
DAMAGED = "the folder that was graded cannot be read"
_PORTIONS_IN_USE = 2  # one is scored while the next is read


class GradedFolders:
    """Unpacks sealed folders; use it in a ``with`` statement, at whose end they are gone.

    Args:
        home: The folder of the run's record.
    """

    def __init__(self, home: Path) -> None:
        self._stores = sealed_folders(home)
        self._top: Path | None = None
        self._portions: list[Path] = []
        self._paths: dict[str, str] = {}

    def __enter__(self) -> GradedFolders:
        return self

    def __exit__(self, *error: object) -> None:
        if self._top is not None:
            shutil.rmtree(self._top, ignore_errors=True)

    def begin_portion(self) -> None:
        """Forget what was unpacked for the portions that are no longer in use."""
        self._paths = {}
        if self._top is not None:
            self._portions.append(Path(tempfile.mkdtemp(dir=self._top)))
        while len(self._portions) > _PORTIONS_IN_USE:
            shutil.rmtree(self._portions.pop(0), ignore_errors=True)

    def columns(self, completion: Completion, workspaces: Collection[str]) -> dict[str, object]:
        """Return a completion's columns in which the graded folder is a path again.

        Args:
            completion: With the outcomes of the rewards that may have graded it.
            workspaces: The columns that hold workspaces.

        Raises:
            WorkspaceError: It cannot be had again; the message is the reason.
        """
        columns = dict(completion.columns)
        digests = {
            digest for outcome in completion.outcomes.values() if (digest := graded_digest(outcome.reason or ""))
        }
        if not digests and all(os.path.isdir(str(columns.get(name))) for name in workspaces):
            return columns  # what a data set names is read where it is
        if len(digests) != 1:
            raise WorkspaceError(SEVERAL_DIGESTS if digests else NO_DIGEST)
        absent = [name for name in workspaces if name not in columns]
        if len(workspaces) > 1 and len(absent) != 1:
            raise WorkspaceError(SEVERAL_COLUMNS)
        (name,) = absent if len(workspaces) > 1 else workspaces
        return {**columns, name: self.path(digests.pop())}

    def path(self, digest: str) -> str:
        """Return the path of a kept folder, unpacked for this portion; raise WorkspaceError where that cannot be."""
        if digest not in self._paths:
            self._paths[digest] = self._unpack(digest)
        return self._paths[digest]

    def _unpack(self, digest: str) -> str:
        file = sealed_file(self._stores, digest)
        if file is None:
            raise WorkspaceError(NOT_KEPT)
        if self._top is None:
            self._top = Path(tempfile.mkdtemp(prefix="rewardkit-graded-", dir=_root()))
            self._portions.append(Path(tempfile.mkdtemp(dir=self._top)))
        folder = self._portions[-1] / digest
        try:
            _write(SealedWorkspace.load(file), folder)
        except (WorkspaceError, OSError, ValueError):
            raise WorkspaceError(DAMAGED) from None
        return str(folder)


def _root() -> str:
    """Return a folder in which workspaces may lie: that of temporary files, where it is one of them."""
    roots, temporary = workspace_roots(), os.path.realpath(tempfile.gettempdir())
    is_within = any(f"{temporary}/".startswith(f"{root.rstrip('/')}/") for root in roots)
    return temporary if is_within else roots[0]


def _write(workspace: SealedWorkspace, folder: Path) -> None:
    folder.mkdir()
    for name, content in workspace.files.items():
        if name.startswith("/") or ".." in name.split("/") or "\0" in name:
            raise WorkspaceError(f"sealed workspace: {name!r:.80} leads out of the folder")
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)
