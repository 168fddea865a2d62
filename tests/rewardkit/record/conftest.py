"""Where the tests of the record are run: on a file each, and in a schema of a PostgreSQL server each."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from databases import STORES, place_on


@pytest.fixture(params=STORES)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    """The place of a run, which ``place / "one"`` makes further ones of."""
    return place_on(request.param, request, tmp_path)
