"""The documentation as a site: it builds without a warning, and has every page."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from urllib.parse import unquote, urljoin, urlsplit

import pytest
import yaml


@pytest.fixture(scope="module")
def site(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the site as ``make site`` does."""
    place = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--site-dir", str(place)]
    env = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    built = subprocess.run(command, cwd=root, env=env, capture_output=True, text=True, timeout=300, check=False)
    assert (built.returncode, built.stdout + built.stderr) == (0, "")
    return place


def test_every_page_is_on_the_site(root: Path, site: Path) -> None:
    """Each page of docs/, and those above it; a link to none would end the build."""
    pages = {path.relative_to(root / "docs").with_suffix("") for path in (root / "docs").rglob("*.md")}
    pages = {page for page in pages if page.parts[0] != "examples" and page.name not in ("index", "README")}
    assert [] == [str(page) for page in sorted(pages) if not (site / page / "index.html").is_file()]
    assert all((site / "project" / name / "index.html").exists() for name in ("CONTRIBUTING", "SECURITY", "CHANGELOG"))


def test_every_page_of_the_navigation_is_in_it(root: Path, site: Path) -> None:
    sections = yaml.safe_load((root / "docs" / "navigation.yaml").read_text(encoding="utf-8"))
    home = (site / "index.html").read_text(encoding="utf-8")
    paths = [entry["page"].rpartition(".")[0] for entries in sections.values() for entry in entries]
    assert [] == [path for path in paths if path != "index" and not re.search(rf'href="{path}/"', home)]


def test_language_models_have_a_list_and_the_text_of_each_page(root: Path, site: Path) -> None:
    """llms.txt names every page with what it is about, and leads to its Markdown; llms-full.txt has all of it."""
    text = (site / "llms.txt").read_text(encoding="utf-8")
    links = re.findall(r"^- \[[^\]]+\]\(([^)]+)\): \S", text, re.MULTILINE)
    assert len(links) > 40
    assert [link for link in links if not (site / link).read_text(encoding="utf-8").startswith("# ")] == []
    tutorial = (root / "docs/tutorial/first-reward.md").read_text(encoding="utf-8")
    assert tutorial.strip() in (site / "llms-full.txt").read_text(encoding="utf-8")


def test_a_notebook_is_a_page_and_a_file(root: Path, site: Path) -> None:
    """It can be read with what its cells show, be searched and be taken along."""
    notebooks = sorted((root / "docs/examples/notebooks").glob("*.ipynb"))
    assert notebooks
    for notebook in notebooks:
        place = site / "examples/notebooks" / notebook.stem
        assert f'href="../{notebook.name}" download' in (place / "index.html").read_text(encoding="utf-8")
        assert notebook.read_bytes() == place.with_suffix(".ipynb").read_bytes()
    shown = (site / "examples/notebooks/quickstart/index.html").read_text(encoding="utf-8")
    assert "3 cases: 3 as expected" in shown
    assert "<td" in shown


def test_every_link_of_the_site_leads_somewhere(site: Path) -> None:
    """Also one to what is no page, of which mkdocs says nothing."""
    dead = set()
    for page in site.rglob("index.html"):
        here = f"http://site/{page.parent.relative_to(site).as_posix()}/".replace("/./", "/")
        for target in re.findall(r'(?:href|src)="([^"]+)"', page.read_text(encoding="utf-8")):
            place = urlsplit(urljoin(here, target))
            if place.netloc == "site" and not (site / unquote(place.path).lstrip("/")).exists():
                dead.add((here, target))
    assert dead == set()


def test_the_site_asks_no_other_server(site: Path) -> None:
    """A page loads nothing from elsewhere: no fonts, no scripts, no counters."""
    home = (site / "index.html").read_text(encoding="utf-8")
    assert re.findall(r'<(?:script|link|img)[^>]+(?:src|href)="(https?:)?//', home) == []


def test_code_keeps_its_brackets_on_the_site(site: Path) -> None:
    """What looks like a link inside a block of code is not taken for one."""
    page = (site / "reference" / "api" / "index.html").read_text(encoding="utf-8")
    assert "no-run" not in page
    assert "<pre>" in page
