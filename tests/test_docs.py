"""The documentation: its examples run, its links lead somewhere, and it leaves no name, option or error out.

In a Markdown page a block that begins with ``# name.py`` or ``# name.yaml`` is a file of that name; a Python file is
imported, and ``# test_name.py`` is run with pytest. A block marked ``output`` is what the Python block before prints,
which is run for it also where it needs a trainer.
"""

from __future__ import annotations

import inspect
import json
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import MISSING, fields
from itertools import zip_longest
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import typer.main
import yaml
from typer.core import TyperGroup

import rewardkit
import rewardkit.errors
import sandbox
import sandbox.errors
from rewardkit.cli.program import app
from rewardkit.declare.spec import GROUP_RESERVED, RESERVED
from sandbox.workers.pool import DEFAULT_MEMORY_BYTES

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = [page for page in (ROOT / "README.md", *sorted(DOCS.rglob("*.md"))) if page.is_file()]
ALL_PAGES = [*PAGES, *(ROOT / name for name in ("CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md"))]
API, ERRORS, CLI = (DOCS / "reference" / name for name in ("api.md", "errors.md", "cli.md"))

_BLOCK = re.compile(r"^(?P<indent> *)```(?P<info>[^\n`]*)\n(?P<text>.*?)^(?P=indent)```$", re.MULTILINE | re.DOTALL)
_FILE = re.compile(r"# ([\w-]+\.(?:py|ya?ml))\b.*\n")
_NEEDS_THE_EXTRA = re.compile(
    r"^\s*(?:from|import) (?:torch|trl|transformers|datasets"
    r"|trainer_adapter(?!\.(?:atropos|openenv|openrlhf|slime|swift|tunix|verifiers|verl) | import TrainerRewards\b))\b",
    re.MULTILINE,
)
_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)
_FORBIDDEN = {
    "a path of one machine": re.compile(r"(?<![\w.~}>-])/(?:work|root|home|Users|tmp)(?:/|\b)|\.pyenv"),
    "an issue's number": re.compile(r"\b(?:issue|pull request|PR) ?#?\d+|(?<![\w&])#\d+\b"),
    "a package registry": re.compile(r"pypi\.org|/simple/|artifactory|\bnexus\b|index-url", re.IGNORECASE),
    "a promise": re.compile(r"\bcoming soon\b|\bTODO\b|\bFIXME\b|\bTBD\b|\bnot yet (?:implemented|supported)\b"),
}

_NO_PROSE = ("CHANGELOG.md", "rewards.md")
"""Pages made of list points, and of docstrings."""

RUNNER = """\
import contextlib, io, json, os, sys

sys.path.insert(0, os.getcwd())
blocks = json.load(sys.stdin)
names = sys.modules["__main__"].__dict__
for where, source, expected in blocks:
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(source, where, "exec"), names)
    if expected is not None and printed.getvalue().rstrip() != expected.rstrip():
        sys.exit(f"{where} prints\\n{printed.getvalue()}\\nand not\\n{expected}")
"""


class Block(NamedTuple):
    """A fenced block: the words after its fence, its text, and the line that it begins on."""

    info: str
    text: str
    line: int


def _blocks(page: Path) -> list[Block]:
    text = page.read_text(encoding="utf-8")
    found = []
    for match in _BLOCK.finditer(text):
        indent = len(match["indent"])
        lines = [line[indent:] for line in match["text"].splitlines()]
        found.append(Block(match["info"].strip(), "\n".join(lines) + "\n", text.count("\n", 0, match.start()) + 2))
    return found


def _name(page: Path) -> str:
    return str(page.relative_to(ROOT))


def _to_run_of(blocks: Sequence[Block]) -> list[tuple[Block, str | None]]:
    """Return the blocks that are run, each with what it should print: those that say so, and all without trainers."""
    pairs = [
        (block, after.text if after is not None and after.info == "output" else None)
        for block, after in zip_longest(blocks, blocks[1:])
        if block.info == "python"
    ]
    return [(block, output) for block, output in pairs if output is not None or not _NEEDS_THE_EXTRA.search(block.text)]


def _to_run(page: Path, folder: Path) -> Iterator[tuple[str, str, str | None]]:
    """Writes the page's files and gives what is to be run: place, source, and what it should print."""
    blocks = _blocks(page)
    for block in blocks:
        if (name := _FILE.match(block.text)) is not None and block.info in ("python", "yaml"):
            (folder / name[1]).write_text(block.text, encoding="utf-8")
    for block, expected in _to_run_of(blocks):
        source = "\n" * (block.line - 1) + block.text
        if (name := _FILE.match(block.text)) is not None:
            if name[1].startswith("test_"):
                continue
            source = f"from {Path(name[1]).stem} import *"
        yield f"{_name(page)}, line {block.line}", source, expected


def _environment(folder: Path) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(folder), str(ROOT)]), "REWARDKIT_CACHE": str(folder)}


@pytest.mark.cases(8)
@pytest.mark.slow  # all pages are one file's: it begins with the run, and does not outlast it
@pytest.mark.parametrize("page", [page for page in PAGES if _to_run_of(_blocks(page))], ids=_name)
def test_the_examples_of_a_page_run_in_order(page: Path, tmp_path: Path) -> None:
    """The Python blocks of a page run one after another in one namespace, and print what the page says."""
    blocks = list(_to_run(page, tmp_path))
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", RUNNER],
        input=json.dumps(blocks),
        capture_output=True,
        text=True,
        timeout=900,
        cwd=tmp_path,
        env=_environment(tmp_path),
    )
    assert 0 == done.returncode, done.stderr


@pytest.mark.parametrize(
    "page", [page for page in PAGES if any(b.text.startswith("# test_") for b in _blocks(page))], ids=_name
)
def test_the_tests_that_a_page_shows_pass(page: Path, tmp_path: Path) -> None:
    """A page's test files pass with pytest, beside the other files that the page shows."""
    list(_to_run(page, tmp_path))
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=900,
        cwd=tmp_path,
        env=_environment(tmp_path),
    )
    assert 0 == done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_an_output_is_never_empty(page: Path) -> None:
    """An empty one would say nothing, and hold for a block that prints nothing."""
    assert [] == [block.line for block in _blocks(page) if block.info == "output" and not block.text.strip()]


@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_every_python_block_compiles(page: Path) -> None:
    """Blocks that are not run, for they need a trainer or the network, are Python all the same."""
    for block in _blocks(page):
        if block.info.split()[:1] == ["python"]:
            compile(block.text, f"{_name(page)}, line {block.line}", "exec")


def _anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    seen: Counter[str] = Counter()
    anchors = set()
    for heading in _HEADING.findall(_BLOCK.sub("", page.read_text(encoding="utf-8"))):
        anchor = re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")
        anchors.add(f"{anchor}-{seen[anchor]}" if seen[anchor] else anchor)
        seen[anchor] += 1
    return anchors


@pytest.mark.parametrize("page", ALL_PAGES, ids=_name)
def test_every_link_leads_somewhere(page: Path) -> None:
    """Each relative link names a file that is there and, after a #, a heading in it."""
    broken = []
    for link in _LINK.findall(_BLOCK.sub("", page.read_text(encoding="utf-8"))):
        if re.match(r"[a-z]+:", link):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        found = target.exists() and (not anchor or anchor in _anchors(target))
        if not found:
            broken.append(link)
    assert [] == broken


def test_every_page_is_on_the_map() -> None:
    """Seven sections and 45 pages at most; a page of none of them is one that these or CONTRIBUTING.md lead to."""
    sections = yaml.safe_load((DOCS / "navigation.yaml").read_text(encoding="utf-8"))
    mapped = {(DOCS / entry["page"]).resolve() for entries in sections.values() for entry in entries}
    assert (7, 45) >= (len(sections), len(mapped))
    assert 45 >= sum(map(len, sections.values()))
    reached, fresh = set[Path](), {ROOT / "CONTRIBUTING.md", *mapped}
    while fresh:
        reached |= fresh
        fresh = {target for page in fresh if page.suffix == ".md" for target in _targets(page)} - reached
    assert [] == [_name(page) for page in sorted(DOCS.rglob("*.md")) if page.resolve() not in reached]


def _targets(page: Path) -> set[Path]:
    """Return the pages that a page links to."""
    links = _LINK.findall(page.read_text(encoding="utf-8"))
    targets = {(page.parent / link.partition("#")[0]).resolve() for link in links if ":" not in link}
    return {target for target in targets if target.suffix == ".md"}


def test_the_first_page_fits_on_a_screen() -> None:
    assert 40 >= len((DOCS / "index.md").read_text(encoding="utf-8").splitlines())


@pytest.mark.parametrize("page", ALL_PAGES, ids=_name)
def test_no_page_says_what_it_should_not(page: Path) -> None:
    """No page names one machine's paths, issue numbers or registries, or promises what is not there."""
    text = page.read_text(encoding="utf-8")
    found = [(what, match[0]) for what, pattern in _FORBIDDEN.items() for match in pattern.finditer(text)]
    assert [] == found


@pytest.mark.parametrize("page", [page for page in ALL_PAGES if page.name not in _NO_PROSE], ids=_name)
def test_a_line_of_prose_is_one_sentence(page: Path) -> None:
    """No line ends a sentence and begins another; lists, tables and quotations may."""
    prose = _BLOCK.sub("", page.read_text(encoding="utf-8")).splitlines()
    lines = [re.sub(r'"[^"]*"', '""', line) for line in prose if not re.match(r" *([|#*-]|\d+\.)", line)]
    assert [] == [line for line in lines if re.search(r"[a-z)`*][.!?] (?=[A-Z`])", line)]


ARCHITECTURE = [DOCS / "explanation" / "architecture.md", *sorted((DOCS / "explanation" / "architecture").glob("*.md"))]


@pytest.mark.parametrize("page", ARCHITECTURE, ids=_name)
def test_a_part_of_the_architecture_is_read_in_ten_minutes(page: Path) -> None:
    """A page has at most 1,500 words, code and tables included."""
    assert len(page.read_text(encoding="utf-8").split()) <= 1_500


@pytest.mark.parametrize("page", ARCHITECTURE, ids=_name)
def test_the_architecture_names_modules_that_are_there(page: Path) -> None:
    """Each module, room or folder in the first column of a table, and each ``package.module``, is in the tree."""
    packages = ("sandbox", "rewardkit", "builtin_rewards", "trainer_adapter")
    files = [path for package in packages for path in (ROOT / package).rglob("*") if path.suffix in ("", ".py")]
    names = {path.stem for path in files} | {".".join(path.relative_to(ROOT).with_suffix("").parts) for path in files}
    text = page.read_text(encoding="utf-8")
    tables = re.findall(r"^\| (?:module|room|folder) \|.*\n\|[-|]*\|\n((?:\|.*\n)+)", text, re.MULTILINE)
    cells = [row.split("|")[1] for table in tables for row in table.splitlines()]
    modules = [name for cell in cells for name in re.findall("`([^`]+)`", cell)]
    modules += re.findall(rf"`((?:{'|'.join(packages)})(?:\.[a-z_]+)+)`", text)
    points = (ROOT / "pyproject.toml").read_text(encoding="utf-8")  # groups of entry points look like modules
    missing = [name for name in modules if not {name, name.replace("/", ".")} & names]
    assert [] == [name for name in missing if f'entry-points."{name}"' not in points]


def test_every_field_of_limits_and_results_is_documented() -> None:
    """sandbox.md has every field of ``Limits`` and ``ExecutionResult``."""
    text = (DOCS / "reference" / "sandbox.md").read_text(encoding="utf-8")
    names = [field.name for kind in (sandbox.Limits, sandbox.ExecutionResult) for field in fields(kind)]
    assert [] == [name for name in names if not re.search(rf"`[^`\n]*\b{name}\b", text)]


def _row(text: str, name: str) -> list[str]:
    """The cells of the table row that begins with a name in backquotes."""
    match = re.search(rf"^\| `{name}` \|(.*)\|$", text, re.MULTILINE)
    assert match is not None, f"no table row for {name}"
    return [cell.strip() for cell in match[1].split("|")]


def _section(text: str, heading: str) -> str:
    match = re.search(rf"^(#+) {re.escape(heading)}\n(.*?)(?=^\1 |\Z)", text, re.MULTILINE | re.DOTALL)
    assert match is not None, f"no section {heading!r}"
    return match[2]


def _written(value: Any) -> str:
    if value == DEFAULT_MEMORY_BYTES and value is not True:
        return "4 GiB"
    if isinstance(value, str):
        return f'`"{value!s}"`'
    return f"`{value!r}`"


@pytest.mark.parametrize("field", fields(rewardkit.RewardOptions), ids=lambda field: field.name)
def test_every_reward_option_is_documented_with_its_default(field: Any) -> None:
    """The table of options has a row for each, and the row has its default."""
    row = _row(_section(API.read_text(encoding="utf-8"), "RewardOptions"), field.name)
    assert field.default is MISSING or _written(field.default) in row


def test_every_runtime_parameter_is_documented_with_its_default() -> None:
    """The table of Runtime's parameters has a row for each, and the row has its default."""
    text = _section(API.read_text(encoding="utf-8"), "Runtime")
    for name, parameter in inspect.signature(rewardkit.Runtime).parameters.items():
        row = _row(text, name)
        if parameter.default not in (None, parameter.empty):
            assert _written(parameter.default) in row, name


def test_every_field_of_an_outcome_and_every_cause_is_documented() -> None:
    """The reference has each field of an Outcome, each status and cause, and each reserved name."""
    text = API.read_text(encoding="utf-8")
    words = [*rewardkit.Outcome._fields, *rewardkit.Status, *rewardkit.Cause, *RESERVED, *GROUP_RESERVED]
    assert [] == [word for word in words if f"`{word}`" not in text]


def _error_classes() -> list[type]:
    return [
        value
        for module in (rewardkit.errors, sandbox.errors)
        for value in vars(module).values()
        if isinstance(value, type) and issubclass(value, Exception)
    ]


@pytest.mark.parametrize("error", _error_classes(), ids=lambda error: error.__name__)
def test_every_error_is_documented(error: type) -> None:
    """errors.md has a heading for each error, says when it is raised and what to do, and draws it in a tree."""
    text = ERRORS.read_text(encoding="utf-8")
    assert len(_section(text, error.__name__).strip().splitlines()) >= 2
    assert any(error.__name__ in block.text for block in _blocks(ERRORS))


def _commands() -> Iterator[tuple[str, Any]]:
    program = typer.main.get_command(app)
    assert isinstance(program, TyperGroup)
    context = program.context_class(program, info_name="rewardkit")
    for name in program.list_commands(context):
        command = program.get_command(context, name)
        if isinstance(command, TyperGroup):
            yield from ((f"{name} {one}", member) for one, member in command.commands.items())
        else:
            yield name, command


@pytest.mark.parametrize(("name", "command"), [pytest.param(*pair, id=pair[0]) for pair in _commands()])
def test_every_command_and_option_is_documented(name: str, command: Any) -> None:
    """cli.md has a section for each command, and each of its long options in it."""
    text = _section(CLI.read_text(encoding="utf-8"), f"rewardkit {name}")
    options = [flag for parameter in command.params for flag in (*parameter.opts, *parameter.secondary_opts)]
    assert [] == [flag for flag in options if flag.startswith("--") and flag != "--help" and flag not in text]
