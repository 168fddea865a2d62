"""What the page brings with it is what its list says."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

FOLDER = Path(__file__).parents[3] / "rewardkit" / "dashboard" / "page" / "vendor"


def test_each_vendored_file_fits_the_sum_that_the_list_has() -> None:
    """LICENSES.md names every file of the folder with the SHA-256 of what npm has."""
    rows = re.findall(r"^\| `([^`]+)` \|.*\| `([0-9a-f]{64})` \|$", (FOLDER / "LICENSES.md").read_text(), re.M)
    files = [path for path in sorted(FOLDER.iterdir()) if path.name != "LICENSES.md"]
    assert dict(rows) == {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def test_all_that_the_page_names_is_there() -> None:
    """Each address of index.html and each import of a module is a file of the page."""
    page = FOLDER.parent
    named = re.findall(r'(?:href|src)="/([^"]+)"', (page / "index.html").read_text(encoding="utf-8"))
    assert [] == [one for one in named if not (page / one).is_file()]
    for module in page.rglob("*.js"):
        imported = re.findall(r'(?:from|import\() ?"(\.[^"]+)"', module.read_text(encoding="utf-8"))
        assert [] == [one for one in imported if not (module.parent / one).is_file()], module.name


def test_the_page_loads_nothing_from_elsewhere() -> None:
    """No file of the page names a server; only comments of what is vendored and names of XML do."""
    for path in sorted(FOLDER.parent.rglob("*")):
        if path.suffix in {".js", ".css", ".html"} and path.parent != FOLDER:
            text = path.read_text(encoding="utf-8").replace("http://www.w3.org/", "")
            text = text.replace('"http://page"', "")  # the base that a path of the page is resolved against
            assert [] == re.findall(r"https?://[^\s`\"')]+", text), path.name
