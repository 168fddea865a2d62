"""What several tests of the sandbox share: one jail a module, and a copy of the package for other users."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from other_user import readable_copy

from sandbox import Limits, Sandbox
from sandbox.errors import SandboxUnavailableError


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    """One jail for all tests of a module that has no other of this name."""
    try:
        with Sandbox(workers=1, limits=Limits(timeout_s=60.0)) as sandbox:
            yield sandbox
    except SandboxUnavailableError as reason:
        pytest.skip(f"no jail here: {reason}")


@pytest.fixture(scope="module")
def readable(root: Path) -> Iterator[Path]:
    """A copy of the package that everyone may read."""
    with readable_copy(root) as folder:
        yield folder
