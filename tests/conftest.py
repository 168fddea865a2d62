"""What all tests share: the --full option, and where the real data lies."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--full", action="store_true", help="run slow tests in full, not in their short form")


@pytest.fixture(scope="session")
def full(pytestconfig: pytest.Config) -> bool:
    """Whether slow tests are to run in full."""
    return bool(pytestconfig.getoption("--full"))


@pytest.fixture(scope="session")
def root() -> Path:
    """The project's folder."""
    return ROOT


@pytest.fixture(scope="session")
def data() -> Path:
    """The folder of real data sets; the test is skipped where they are absent."""
    folder = Path(os.environ.get("REWARDKIT_DATA", ROOT.parent / "shared" / "data"))
    if not folder.is_dir():
        pytest.skip(f"no data sets at {folder}; set REWARDKIT_DATA")
    return folder
