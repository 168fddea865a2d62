"""A folder as an agent left it, read once: no file that the agent can still write to is read afterwards."""

from __future__ import annotations

import hashlib
import os
import tempfile
import zipfile
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from rewardkit.errors import WorkspaceError

_FORM = "rewardkit sealed workspace 1"


class SealedWorkspace:
    """The plain files of a folder, in memory, and the digest of their names and contents.

    Made by :meth:`Workspace.sealed() <rewardkit.Workspace.sealed>`, or by :meth:`load` from what :meth:`save` kept.

    Args:
        files: Each file's content by its name relative to the folder, such as ``"src/main.py"``.
        left_out: Why other entries are not in it, by name; a folder's name ends with ``/``.
    """

    def __init__(self, files: Mapping[str, bytes], left_out: Mapping[str, str] | None = None) -> None:
        self.files: Mapping[str, bytes] = MappingProxyType({name: files[name] for name in sorted(files)})
        self.left_out: Mapping[str, str] = MappingProxyType(dict(sorted((left_out or {}).items())))
        self.digest = digest_of(self.files)
        """SHA-256 of all names and contents, 64 hexadecimal digits."""

    def __repr__(self) -> str:
        return f"SealedWorkspace({len(self.files):,} files, digest {self.digest[:12]})"

    def __reduce__(self) -> tuple[type[SealedWorkspace], tuple[dict[str, bytes], dict[str, str]]]:
        return SealedWorkspace, (dict(self.files), dict(self.left_out))

    def save(self, folder: str | os.PathLike[str]) -> Path:
        """Keep it in a folder as one file, named by its digest, which appears whole; return its path.

        Raises:
            OSError: The folder cannot be written.
        """
        target = Path(folder, f"{self.digest}.zip")
        if target.exists():
            return target
        target.parent.mkdir(parents=True, exist_ok=True)
        descriptor, name = tempfile.mkstemp(prefix=".new-", dir=target.parent)
        try:
            with os.fdopen(descriptor, "wb") as file, zipfile.ZipFile(file, "w") as archive:
                archive.comment = _FORM.encode()
                for number, content in enumerate(self.files.values()):
                    archive.writestr(f"{number}", content)
                archive.writestr("names", b"\0".join(map(os.fsencode, self.files)))
            os.replace(name, target)
        except BaseException:
            os.unlink(name)
            raise
        return target

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> SealedWorkspace:
        """Return what :meth:`save` kept.

        Raises:
            WorkspaceError: There is no such file, it is of another form, or its content is not what its name says.
        """
        source = Path(path)
        try:
            with zipfile.ZipFile(source) as archive:
                if archive.comment != _FORM.encode():
                    raise WorkspaceError(f"sealed workspace {str(source)!r:.200}: it is of another form than {_FORM!r}")
                names = [os.fsdecode(name) for name in archive.read("names").split(b"\0") if name]
                files = {name: archive.read(f"{number}") for number, name in enumerate(names)}
        except (OSError, KeyError, zipfile.BadZipFile) as wrong:
            raise WorkspaceError(f"sealed workspace {str(source)!r:.200}: cannot be read: {wrong}") from None
        workspace = cls(files)
        if source.stem != workspace.digest:
            raise WorkspaceError(
                f"sealed workspace {str(source)!r:.200}: its content has the digest {workspace.digest}, not its name's"
            )
        return workspace


def digest_of(files: Mapping[str, bytes]) -> str:
    """Return the SHA-256 of files' names and contents, in the order of their names: 64 hexadecimal digits."""
    digest = hashlib.sha256()
    for name in sorted(files):
        encoded = os.fsencode(name)
        digest.update(b"%d:%b%d:" % (len(encoded), encoded, len(files[name])))
        digest.update(files[name])
    return digest.hexdigest()
