"""A client on its own, as this user or as nobody, with a copy of the package that everyone may read."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

NOBODY = 65534


@contextmanager
def readable_copy(root: Path, *more: str) -> Iterator[Path]:
    """Return a folder that everyone may read, with the package in it, and more of the project's folders."""
    folder = Path(tempfile.mkdtemp(prefix="readable-", dir="/tmp"))
    folder.chmod(0o755)
    for name in ("sandbox", *more):
        shutil.copytree(root / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    for path in folder.rglob("*"):
        path.chmod(0o755 if path.is_dir() else 0o644)
    yield folder
    shutil.rmtree(folder)


def interpreter(as_nobody: bool) -> str:
    """Return a Python for the client: for nobody one that nobody may execute."""
    if not as_nobody:
        return sys.executable
    folder = sysconfig.get_config_var("BINDIR")
    names = [f"{folder}/python3", sys.executable, "/usr/bin/python3", "/usr/local/bin/python3"]
    for name in names:
        check = "import sys; sys.exit(sys.version_info < (3, 11))"
        user = {"user": NOBODY, "group": NOBODY, "extra_groups": []} if os.getuid() == 0 else {}
        try:
            if subprocess.run([name, "-I", "-c", check], **user, capture_output=True, cwd="/").returncode == 0:
                return name
        except OSError:
            continue
    pytest.skip("no Python of 3.11 or later that nobody may execute")


def ask(command: Sequence[str], asked: Any, *, as_nobody: bool) -> Any:
    """Run a client, give it something as JSON on its standard input, and give what it printed, read as JSON."""
    if as_nobody and os.getuid() not in (0, NOBODY):
        pytest.skip("only root can become nobody")
    user: dict[str, Any] = (
        {"user": NOBODY, "group": NOBODY, "extra_groups": []} if as_nobody and os.getuid() == 0 else {}
    )
    done = subprocess.run(
        [interpreter(as_nobody), "-I", "-c", *command],
        input=json.dumps(asked), capture_output=True, text=True, cwd="/", env={"PATH": "/usr/bin:/bin"}, **user,
    )  # fmt: skip
    assert 0 == done.returncode, done.stderr
    return json.loads(done.stdout)
