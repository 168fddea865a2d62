"""A folder that an agent left behind, as a reward reads it: files, and commands run in the jail over a copy.

The agent may have written anything there; :mod:`rewardkit.jailed.folder` opens what is read. Every list and size has a
bound, and the folder itself is never written to.
"""

from __future__ import annotations

import fnmatch
import hashlib
import mmap
import os
import re
import tempfile
from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from rewardkit.errors import WorkspaceError
from rewardkit.jailed.folder import FolderContents, OpenFolder, reason_of
from rewardkit.jailed.sealed import SealedWorkspace

if TYPE_CHECKING:
    from sandbox import ExecutionResult, Limits

ROOTS_VARIABLE = "REWARDKIT_WORKSPACES"
"""Environment variable: the folders in which workspaces may lie, separated as in ``PATH``; unless set, the current one
and that of temporary files."""
MOST_BYTES = 1 << 20  # Bytes of a file that is read, unless told otherwise
MOST_COPIED_BYTES = 32 << 20  # Bytes of all files together that a command gets
_PAGE_BYTES = mmap.PAGESIZE  # A file in the jail takes whole pages, of 4, 16 or 64 KiB
_NAME = re.compile(r"[A-Za-z_][A-Za-z_0-9]*+(?>\.[A-Za-z_][A-Za-z_0-9]*+)*+")
_PROGRAM = "import runpy, sys\nsys.path.insert(0, {folder!r})\nsys.argv = {arguments!r}\n{act}\n"


class Workspace:
    """A folder that an agent left, read-only; annotate a reward's parameter with it, and the column holds the path.

    >>> from rewardkit import reward
    >>> @reward
    ... def noted(workspace: Workspace) -> float:
    ...     return float("double" in workspace.read_text("notes.txt"))

    Names of files are relative to the folder, with ``/``, such as ``"src/main.py"``.

    Args:
        path: The folder, absolute or relative to the current one.

    Raises:
        WorkspaceError: There is no such folder, or it is not in one of those where workspaces may lie.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        text = os.fspath(path)
        if not isinstance(text, str) or not text.strip() or "\0" in text:
            raise WorkspaceError(f"workspace {text!r:.80}: expected the path of a folder")
        try:
            target = os.path.realpath(text)
            is_folder = os.path.isdir(target)
        except (OSError, ValueError) as wrong:
            raise WorkspaceError(f"workspace {text!r:.200}: no path: {wrong}") from None
        if not is_folder:
            raise WorkspaceError(f"workspace {text!r:.200}: no such folder")
        roots = workspace_roots()
        root = next((root for root in roots if f"{target}/".startswith(f"{root.rstrip('/')}/")), None)
        if root is None:
            raise WorkspaceError(
                f"workspace {text!r:.200}: outside the folders of workspaces, {', '.join(roots)}; "
                f"name its folder in the environment variable {ROOTS_VARIABLE}"
            )
        self.path = Path(target)
        try:
            self._folder = OpenFolder(target, root)
        except OSError as refused:
            raise WorkspaceError(f"workspace {text!r:.200}: {reason_of(refused)}") from None

    def __repr__(self) -> str:
        return f"Workspace({str(self.path)!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        return _reopened, (str(self.path), self._folder.identity)

    def __deepcopy__(self, memo: object) -> Workspace:
        return self  # nothing of it changes

    def files(self, pattern: str = "*") -> list[str]:
        """Return the names of its files in order; links, sockets and other things that are not files are left out.

        Args:
            pattern: Only names that match, as ``fnmatch`` has it: ``"*.py"`` matches ``"src/main.py"`` too.

        Raises:
            WorkspaceError: There are more than 10,000, they lie more than 64 folders deep, or the folder is deleted.
        """
        return sorted(name for name in self._listing().files if fnmatch.fnmatchcase(name, pattern))

    def unreadable(self) -> dict[str, str]:
        """Return why files and folders in it cannot be read, by name; raise as :meth:`files`.

        Each of them costs itself alone: the others are listed, read and run. A folder's name ends with ``/``.
        """
        listing = self._listing()
        reasons = dict(listing.unreadable)
        for name in listing.files:
            try:
                self._folder.read(name.split("/"), 0)
            except OSError as refused:
                reasons |= {} if isinstance(refused, FileNotFoundError) else {name: reason_of(refused)}
        return dict(sorted(reasons.items()))

    def exists(self, name: str) -> bool:
        """Whether there is a plain file of this name, which a folder or a link is not.

        Raises:
            WorkspaceError: The name leads out of the folder, or the system cannot tell, such as of a name too long.
        """
        parts = _parts(name)
        try:
            is_file = self._folder.is_file(parts)
        except OSError as refused:
            raise WorkspaceError(f"workspace file {name!r:.200}: {reason_of(refused)}") from None
        if not is_file:
            self._folder.check()
        return is_file

    def read_bytes(self, name: str, *, most_bytes: int = MOST_BYTES) -> bytes:
        """Return a file's content.

        Raises:
            FileNotFoundError: There is no such file.
            WorkspaceError: The name leads out of the folder, it is not a plain file or cannot be read, with the reason,
                it is larger than ``most_bytes``, or the folder is deleted.
        """
        try:
            content = self._folder.read(_parts(name), most_bytes)
        except FileNotFoundError:
            self._folder.check()
            raise FileNotFoundError(f"the workspace {self.path} has no file {name!r:.200}") from None
        except OSError as refused:
            raise WorkspaceError(f"workspace file {name!r:.200}: {reason_of(refused)}") from None
        if content is None:
            raise WorkspaceError(f"workspace file {name!r:.200}: more than {most_bytes:,} bytes (most_bytes)")
        return content

    def read_text(self, name: str, *, most_bytes: int = MOST_BYTES) -> str:
        """Return a file's text, read as UTF-8; raise as :meth:`read_bytes`.

        Raises:
            WorkspaceError: It is not UTF-8.
        """
        try:
            return self.read_bytes(name, most_bytes=most_bytes).decode()
        except UnicodeDecodeError as wrong:
            raise WorkspaceError(f"workspace file {name!r:.200}: no UTF-8 text: {wrong.reason}") from None

    def digest(self, name: str, *, most_bytes: int = MOST_COPIED_BYTES) -> str:
        """Return the SHA-256 of a file's content, 64 hexadecimal digits; raise as :meth:`read_bytes`."""
        return hashlib.sha256(self.read_bytes(name, most_bytes=most_bytes)).hexdigest()

    def sealed(self, *, most_bytes: int = MOST_COPIED_BYTES) -> SealedWorkspace:
        """Read the folder once and return its files; call it when the agent's processes have ended.

        Links, devices, sockets and what cannot be read are not in it, and are named in its ``left_out``; neither is
        ``__pycache__``, whose bytecode would run in place of the source beside it.

        Args:
            most_bytes: Bytes of all files together.

        Raises:
            WorkspaceError: The folder is deleted, or larger, or has more than 10,000 files and folders.
        """
        listing = self._listing()
        left_out = listing.unreadable | listing.others
        files = self._contents(listing, left_out, most_bytes)
        return SealedWorkspace(files, left_out)

    def run(
        self, *command: str, stdin: str = "", timeout_s: float = 10.0, limits: Limits | None = None
    ) -> ExecutionResult:
        """Run a command in the jail, in a copy of the folder that is gone afterwards.

        ``__pycache__`` is left out, and so is what cannot be read; see :meth:`unreadable`.

        The jail runs Python alone, without network and other processes: ``run("python", "tests/all.py", "-v")``,
        ``run("python", "-m", "unittest")`` or ``run("python", "-c", "import main")``.

        Args:
            command: ``"python"``, then a file of the folder, ``"-m"`` and a module, or ``"-c"`` and code; then its
                arguments.
            stdin: What it reads from standard input.
            timeout_s: Seconds that it may take.
            limits: What it may use, its time included, in place of ``timeout_s``.

        Returns:
            Its ``exit_code``, ``stdout``, ``stderr`` and ``status``. The agent's code decides them: it may end the
            process before a test has run. They are no verdict; :func:`~rewardkit.check_suite` and
            :func:`~sandbox.check_asserts` give one.

        Raises:
            WorkspaceError: It is another command, its file is missing or cannot be read, or the folder is deleted or
                too large to copy: more than 32 MiB, or than 10,000 files and folders.
            InfrastructureError: The sandbox itself failed.
        """
        from sandbox import Limits
        from sandbox.workers import stopped

        source = self._program(command)
        files = self._contents()
        if command[1] not in ("-m", "-c") and (script := "/".join(_parts(command[1]))) not in files:
            self.read_bytes(script, most_bytes=MOST_COPIED_BYTES)  # says why it is left out
        size = sum(-(-len(content) // _PAGE_BYTES) * _PAGE_BYTES for content in files.values())
        limits = limits or Limits(timeout_s=timeout_s, file_bytes=(16 << 20) + 2 * size)
        if size > limits.file_bytes:
            raise WorkspaceError(
                f"{self!r}: its files take {size:,} bytes in whole pages, and limits.file_bytes is "
                f"{limits.file_bytes:,}; give more, or leave limits out"
            )
        with stopped():  # starting a jail is not the call's time
            from rewardkit.jailed.jail import shared_sandbox  # slow to import

            sandbox = shared_sandbox()
        return sandbox.run(source, stdin=stdin, files=files, limits=limits)

    def _program(self, command: Sequence[str]) -> str:
        """Return the source that does what a command says."""
        for argument in command:
            if not isinstance(argument, str):
                raise WorkspaceError(
                    f"workspace command {argument!r:.80}: expected strings, as in run('python', 'main.py')"
                )
        if len(command) == 1 and " " in command[0]:
            raise WorkspaceError(f"workspace command {command[0]!r:.200}: give its words one by one")
        program, *rest = command or ("",)
        if program not in ("python", "python3") or not rest or (rest[0] in ("-m", "-c") and len(rest) < 2):
            raise WorkspaceError(
                f"workspace command {' '.join(command)!r:.200}: the jail runs Python alone: 'python' and a file of the "
                "folder, 'python', '-m' and a module, or 'python', '-c' and code"
            )
        if rest[0] == "-c":
            act = f"exec(compile({rest[1]!r}, '<string>', 'exec'))"
            return _PROGRAM.format(folder="", arguments=["-c", *rest[2:]], act=act)
        if rest[0] == "-m":
            if not _NAME.fullmatch(rest[1]):
                raise WorkspaceError(f"workspace command: {rest[1]!r:.200} is not a module's name")
            act = f"runpy.run_module({rest[1]!r}, run_name='__main__', alter_sys=True)"
            return _PROGRAM.format(folder="", arguments=rest[1:], act=act)
        if not self.exists(rest[0]):
            raise WorkspaceError(f"workspace command: the folder has no file {rest[0]!r:.200}")
        name = "/".join(_parts(rest[0]))
        act = f"runpy.run_path({name!r}, run_name='__main__')"
        return _PROGRAM.format(folder=str(PurePosixPath(name).parent), arguments=[name, *rest[1:]], act=act)

    def _listing(self) -> FolderContents:
        listing = self._folder.listing()
        self._folder.check()
        return listing

    def _contents(
        self,
        listing: FolderContents | None = None,
        left_out: dict[str, str] | None = None,
        most_bytes: int = MOST_COPIED_BYTES,
    ) -> dict[str, bytes]:
        """Return the files' contents by name, as a command gets them; raise WorkspaceError where they are too large.

        ``left_out`` takes the reasons why the others are not among them.
        """
        files: dict[str, bytes] = {}
        reasons: dict[str, str] = {} if left_out is None else left_out
        left = most_bytes
        with self._folder.reading() as read:
            for name in (listing or self._listing()).files:
                if "__pycache__" in name.split("/"):
                    continue  # bytecode there runs in place of the source beside it, whatever that says
                try:
                    content = read(name, left)
                except OSError as refused:  # it went away meanwhile, became something else, or cannot be read
                    reasons[name] = reason_of(refused)
                    continue
                if content is None:
                    raise WorkspaceError(
                        f"{self!r}: more than {most_bytes:,} bytes of files, which is too large to run in"
                    )
                files[name] = content
                left -= len(content)
        self._folder.check()
        return files


def _reopened(path: str, identity: tuple[int, int]) -> Workspace:
    """Return the workspace of a pickle; raise WorkspaceError where another folder is at its path by now."""
    workspace = Workspace(path)
    if workspace._folder.identity != identity:
        raise WorkspaceError(f"workspace {path!r:.200}: another folder than the one that was handed on")
    return workspace


def workspace_roots() -> list[str]:
    """Return the folders in which workspaces may lie, without links.

    Raises WorkspaceError where the variable names something else than absolute paths.
    """
    variable = os.environ.get(ROOTS_VARIABLE, "")
    if not variable:
        default_folders = (os.getcwd(), tempfile.gettempdir())
        return [root for root in dict.fromkeys(map(os.path.realpath, default_folders)) if root != os.sep]
    folders = [folder for folder in variable.split(os.pathsep) if folder]
    for folder in folders:
        if not os.path.isabs(folder):
            raise WorkspaceError(f"{ROOTS_VARIABLE}={variable!r:.200}: {folder!r:.200} is not an absolute path")
    return [os.path.realpath(folder) for folder in folders]


def _parts(name: str) -> list[str]:
    """Return the steps of a name that stays within the folder."""
    if not isinstance(name, str):
        raise WorkspaceError(f"workspace file {name!r:.80}: expected its name as a string")
    try:
        os.fsencode(name)
    except UnicodeEncodeError:
        raise WorkspaceError(f"workspace file {name!r:.200}: expected a name that a file can have") from None
    parts = [part for part in name.split("/") if part not in ("", ".")]
    if not parts or name.startswith("/") or ".." in parts or "\0" in name:
        raise WorkspaceError(f"workspace file {name!r:.200}: expected a name that stays within the folder")
    return parts
