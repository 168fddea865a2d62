"""What the site has beside the pages of docs/: the pages above them, the notebooks, and lists for language models.

mkdocs calls the functions whose names begin with ``on_``; ``make site`` builds the site.
"""

from __future__ import annotations

import json
import posixpath
import re
from pathlib import Path
from typing import Any, NamedTuple

import yaml

DOCS = Path(__file__).parent
ABOVE = ("CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md")
"""Pages that stand above docs/, where GitHub looks for them; the site has them in its own folder ``project``."""
_LINK = re.compile(r"(?<!!)\[((?:[^\[\]]|\[[^\[\]]*\])*)\]\(([^)\s#]+)(#[^)\s]*)?\)")
_CODE = re.compile(r"(^```.*?^```$)", re.MULTILINE | re.DOTALL)
_FENCE = re.compile(r"^(```\w+) .*$", re.MULTILINE)
"""The first line of a block with a word for the tests behind the language, such as ``no-run``."""


_SEARCH_BOOSTS = {"Look up": 0.7}
"""How much a section's pages count in the site's search, where it is not 1."""
_OTHER_BOOST = 0.2
"""The same for pages that are in no section: contributors read them."""


class PageEntry(NamedTuple):
    """A page in the navigation: its path below docs/, its title, and what it is about."""

    path: str
    title: str
    about: str


def sections() -> dict[str, list[PageEntry]]:
    """Return the pages of ``navigation.yaml``, by the section of the site."""
    entries = yaml.safe_load((DOCS / "navigation.yaml").read_text(encoding="utf-8"))
    return {
        section: [PageEntry(entry["page"], entry["title"], entry["about"]) for entry in pages]
        for section, pages in entries.items()
    }


def pages() -> list[PageEntry]:
    """Return the pages of all sections, in order."""
    return [page for entries in sections().values() for page in entries]


def llms_txt(index: str) -> str:
    """Return the list of pages in the form of llmstxt.org: a title, a summary, and links with what they lead to.

    Args:
        index: The text of ``index.md``, of which title and first paragraph are taken.
    """
    title, summary = index.split("\n\n")[:2]
    parts = [title, f"> {' '.join(summary.split())}"]
    for section, entries in sections().items():
        links = [f"- [{page.title}]({_on_site(page.path)}): {page.about}" for page in entries]
        parts += [f"## {section}", "\n".join(links)]
    return "\n\n".join(parts) + "\n"


def llms_full() -> str:
    """Return all pages of the navigation as one text."""
    return "\n\n".join(_markdown(page.path).strip() for page in pages()) + "\n"


def notebook_page(path: Path) -> str:
    """Return a notebook as Markdown: its words, its code, and what its cells show."""
    parts = []
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            parts.append(source)
            continue
        parts.append(f"```{'bash' if source.startswith('%%bash') else 'python'}\n{source}\n```")
        for shown in cell["outputs"]:
            data = shown.get("data", {})
            text = "".join(shown.get("text") or data.get("text/plain", ()))
            parts.append("".join(data.get("text/html", ())) or f"```text\n{text.rstrip()}\n```")
    parts.insert(1, f'This page is a notebook: <a href="../{path.name}" download>{path.name}</a>.')
    return "\n\n".join(parts) + "\n"


def _markdown(path: str) -> str:
    """Return the Markdown of a page that is named from docs/."""
    place = (DOCS / path).resolve()
    return notebook_page(place) if place.suffix == ".ipynb" else place.read_text(encoding="utf-8")


def _on_site(path: str) -> str:
    """Return the path on the site of a page that is named from docs/."""
    path = f"{path.removesuffix('.ipynb')}.md" if path.endswith(".ipynb") else path
    return f"project/{path[3:]}" if path.startswith("../") and path[3:] in ABOVE else path


def _search_boost(path: str) -> float:
    """Return the weight in the search of a page of the site."""
    for section, entries in sections().items():
        if path in (_on_site(entry.path) for entry in entries):
            return _SEARCH_BOOSTS.get(section, 1.0)
    return _OTHER_BOOST


def on_config(config: Any) -> Any:
    """Give the site its navigation."""
    config.nav = [
        {section: [{page.title: _on_site(page.path)} for page in entries]} for section, entries in sections().items()
    ]
    return config


def on_files(files: Any, config: Any) -> Any:
    """Add the pages above docs/, the notebooks as pages, and the lists for language models."""
    from mkdocs.structure.files import File

    for name in ABOVE:
        text = (DOCS.parent / name).read_text(encoding="utf-8")
        files.append(File.generated(config, f"project/{name}", content=text))
    for path in sorted(DOCS.glob("examples/notebooks/*.ipynb")):
        place = path.relative_to(DOCS).as_posix()
        files.append(File.generated(config, _on_site(place), content=notebook_page(path)))
    index = (DOCS / "index.md").read_text(encoding="utf-8")
    files.append(File.generated(config, "llms.txt", content=llms_txt(index)))
    files.append(File.generated(config, "llms-full.txt", content=llms_full()))
    return files


def on_post_build(config: Any) -> None:
    """Put each page's Markdown beside it, to which the list for language models leads."""
    for page in pages():
        place = Path(config.site_dir, _on_site(page.path))
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(_markdown(page.path), encoding="utf-8")


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Let links lead to where the site has the page; one to a file or folder of the source becomes a name.

    The page's weight in the search is set here too, so that what newcomers look for comes before what contributors do.
    """
    page.meta.setdefault("search", {"boost": _search_boost(page.file.src_uri)})
    folder = posixpath.dirname(page.file.src_uri)
    source = ".." if folder == "project" else folder  # where the page stands, from docs/

    def link(found: re.Match[str]) -> str:
        words, target, anchor = found[1], found[2], found[3] or ""
        if ":" in target:
            return found[0]
        path = posixpath.normpath(posixpath.join(source, target)).removeprefix("../docs/")
        path = _on_site(path)
        file = files.get_file_from_path(path)
        if file is None or file.inclusion.is_excluded():
            return words
        return f"[{words}]({posixpath.relpath(path, folder or '.')}{anchor})"

    parts = _CODE.split(markdown)
    parts[::2] = [_LINK.sub(link, part) for part in parts[::2]]
    return "".join(_FENCE.sub(r"\1", part) for part in parts)


if __name__ == "__main__":  # `make llms`: the lists for language models alone, with links into docs/
    written = DOCS.parent / "build"
    written.mkdir(exist_ok=True)
    contents = (DOCS / "index.md").read_text(encoding="utf-8")
    (written / "llms.txt").write_text(llms_txt(contents), encoding="utf-8")
    (written / "llms-full.txt").write_text(llms_full(), encoding="utf-8")
