"""The notebooks run from their first cell to the last, and show what is kept in them."""

from __future__ import annotations

import importlib.util
import re
import tomllib
from pathlib import Path
from typing import Any

import nbformat
import pytest

ROOT = Path(__file__).parents[1]
NOTEBOOKS = sorted((ROOT / "docs/examples/notebooks").glob("*.ipynb"))


def _runner() -> Any:
    spec = importlib.util.spec_from_file_location("notebooks", ROOT / "docs/notebooks.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _shown(notebook: Any) -> list[Any]:
    """What each cell shows, as text and as a notebook shows it."""
    return [
        [one.get("text") or {kind: one.data[kind] for kind in sorted(one.data)} for one in cell.outputs]
        for cell in notebook.cells
        if cell.cell_type == "code"
    ]


@pytest.mark.cases(1)
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of the packages that run notebooks
@pytest.mark.parametrize("path", NOTEBOOKS, ids=[path.stem for path in NOTEBOOKS])
def test_a_notebook_runs_and_shows_what_it_keeps(path: Path, tmp_path: Path) -> None:
    """Every cell of it, in an empty folder; `python docs/notebooks.py` keeps what a changed one shows."""
    kept = nbformat.read(path, as_version=4)
    assert _shown(_runner().run(path, str(tmp_path))) == _shown(kept)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=[path.stem for path in NOTEBOOKS])
def test_a_notebook_is_short(path: Path) -> None:
    """What it shows can be read, and it does not swell the checkout."""
    assert path.stat().st_size < 60_000
    assert nbformat.read(path, as_version=4).cells[0].source.startswith("# ")


@pytest.mark.parametrize("path", NOTEBOOKS, ids=[path.stem for path in NOTEBOOKS])
def test_a_notebook_without_its_extra_says_what_to_install(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its first cell names the packages that are missing, and the extra that it names has them."""
    first, *cells = nbformat.read(path, as_version=4).cells
    check = next((cell.source for cell in cells if "find_spec" in cell.source), None)
    words = " ".join(cell.source for cell in (first, *cells) if cell.cell_type == "markdown")
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    (extra,) = set(re.findall(r"pip install '\.\[(\w+)\]'", words))
    assert extra in extras
    if check is None:
        return
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(AssertionError) as missed:
        exec(check, {})
    names, _, told = str(missed.value).partition(" missing: ")
    assert told.startswith(f"pip install '.[{extra}]' in the checkout")
    installed = {re.split(r"[<>=\[]", one)[0] for one in extras[extra]}
    assert set(names.split(", ")) <= installed
