"""What compilers made, kept by content: equal sources are compiled once for all processes of this user.

*Covered:* only this user may write and read the folder; an artefact appears whole, by a rename, and is never changed.
Its key covers the toolchain with its files, the commands and their walls, and the name and content of every source.
What holds more than :data:`MOST_BYTES` is swept, the longest unused first.

*Not covered:* another process of this user can write there, as it can change the user's own programs.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sandbox import folders
from sandbox.errors import SandboxUnavailableError

MOST_BYTES = 2 << 30
"""Bytes that all artefacts together may take before the longest unused go."""
_YOUNG_S = 900.0  # an artefact that was used within these seconds stays, because a program may be about to start
_SWEEP_EVERY = 64  # artefacts between two looks at the bytes of all
_LOCK_S = 600.0  # seconds that one process waits for another that compiles the same
_FAILURE = "failure.json"


def key_of(*parts: str, files: Mapping[str, bytes]) -> str:
    """Return the key of what is made of files: 32 hexadecimal digits."""
    digest = hashlib.sha256()
    for part in parts:
        digest.update(f"{len(part)}:".encode() + part.encode())
    for name, content in files.items():
        digest.update(f"{len(name)}:{name}:{len(content)}:".encode("utf-8", "surrogateescape") + content)
    return digest.hexdigest()[:32]


class ArtefactStore:
    """The folder of artefacts of this user."""

    def __init__(self) -> None:
        self.folder = folders.of_user("rewardkit-artefacts")
        self._made = 0

    def path(self, key: str) -> Path:
        return Path(self.folder, key)

    def has(self, key: str) -> bool:
        """Return whether an artefact is there, and note that it is used."""
        with contextlib.suppress(OSError):
            os.utime(self.path(key))
            return True
        return False

    def failure(self, key: str) -> Mapping[str, Any] | None:
        """Return why sources do not compile, as it was kept; ``None`` if they do."""
        with contextlib.suppress(OSError, ValueError):
            failure: Mapping[str, Any] = json.loads(self.path(key).joinpath(_FAILURE).read_bytes())
            return failure
        return None

    def put(self, key: str, files: Mapping[str, bytes]) -> None:
        """Keep files under a key; if they are there already, nothing changes."""
        folder = tempfile.mkdtemp(prefix="new-", dir=self.folder)
        try:
            for name, content in files.items():
                path = os.path.join(folder, name)
                os.makedirs(os.path.dirname(path), 0o755, exist_ok=True)
                with open(path, "xb") as file:
                    file.write(content)
                os.chmod(path, 0o755)  # noqa: S103 - the jail's user reads it; the folder above is this user's alone
            os.chmod(folder, 0o755)  # noqa: S103
            os.rename(folder, self.path(key))
        except OSError:
            shutil.rmtree(folder, ignore_errors=True)
            if not self.has(key):
                raise
        self._made += 1
        if self._made % _SWEEP_EVERY == 1:
            self.sweep()

    def put_failure(self, key: str, failure: Mapping[str, Any]) -> None:
        """Keep that sources do not compile, which the compiler would say again."""
        self.put(key, {_FAILURE: json.dumps(failure).encode()})

    @contextmanager
    def lock(self, key: str) -> Iterator[None]:
        """Let one process at a time make an artefact; the others wait, and then find it."""
        path = self.path(f"{key}.lock")
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            until = time.monotonic() + _LOCK_S
            while not _try_lock(descriptor):
                if time.monotonic() > until:
                    raise SandboxUnavailableError(f"another process has not compiled within {_LOCK_S:g} s: {path}")
                time.sleep(0.02)
            yield
        finally:
            os.close(descriptor)

    def sweep(self) -> None:
        """Remove the artefacts that were not used for the longest time, until all take at most three quarters."""
        artefacts = []
        for path in Path(self.folder).iterdir():
            with contextlib.suppress(OSError):
                used = path.stat().st_mtime
                if path.is_dir():
                    artefacts.append((used, sum(file.stat().st_size for file in path.rglob("*")), path))
                elif used < time.time() - _LOCK_S:
                    path.unlink()
        total = sum(size for _, size, _ in artefacts)
        if total <= MOST_BYTES:
            return
        for used, size, path in sorted(artefacts):
            if total <= MOST_BYTES * 3 // 4 or used > time.time() - _YOUNG_S:
                break
            shutil.rmtree(path, ignore_errors=True)
            total -= size


def _try_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
