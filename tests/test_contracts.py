"""What the project promises of itself: public modules, one meaning a class name, and what its pages say is there."""

from __future__ import annotations

import ast
import importlib
import os
import re
import subprocess
import sys
import tomllib
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import rewardkit

ROOT = Path(__file__).parents[1]
FLOORS = ("sandbox", "rewardkit", "builtin_rewards", "trainer_adapter")
"""The packages, from the lowest to the highest."""
PAGES = [*ROOT.glob("*.md"), *(page for folder in ("docs", ".github") for page in (ROOT / folder).rglob("*.md"))]
"""Every page of the project."""
PUBLIC = {
    "builtin_rewards.judge": ("reference/judge.md", "reference/errors.md"),
    "builtin_rewards.reading.completion_json": ("reference/api.md",),
    "builtin_rewards.reading.transcript": ("reference/api.md",),
    "builtin_rewards.reward_model": ("reference/reward_model.md",),
    "rewardkit": ("reference/api.md",),
    "rewardkit.changing": ("reference/api.md",),
    "rewardkit.credit": ("reference/api.md",),
    "rewardkit.cli": ("reference/api.md",),
    "rewardkit.commands": ("reference/api.md",),
    "rewardkit.advantages": ("reference/api.md",),
    "rewardkit.extending": ("reference/api.md",),
    "rewardkit.health": ("reference/api.md",),
    "rewardkit.moving": ("how-to/move-in.md", "reference/api.md"),
    "rewardkit.rows": ("reference/api.md",),
    "rewardkit.serving": ("reference/api.md",),
    "rewardkit.statistics": ("reference/api.md",),
    "rewardkit.testing": ("reference/api.md",),
    "sandbox": ("reference/sandbox.md",),
    "sandbox.errors": ("reference/errors.md",),
    "sandbox.folders": ("reference/sandbox.md",),
    "sandbox.plain": ("reference/sandbox.md",),
    "sandbox.workers": ("reference/sandbox.md",),
    "trainer_adapter.atropos": ("how-to/use-with-other-trainers.md",),
    "trainer_adapter.credit_trainer": ("how-to/reward-steps.md",),
    "trainer_adapter.environments": ("how-to/use-with-trl.md",),
    "trainer_adapter.objectives": ("reference/api.md",),
    "trainer_adapter.openenv": ("how-to/use-with-other-trainers.md",),
    "trainer_adapter.openrlhf": ("how-to/use-with-other-trainers.md",),
    "trainer_adapter.reward_evaluation": ("reference/reward_model.md",),
    "trainer_adapter.reward_training": ("how-to/train-a-reward-model.md",),
    "trainer_adapter.slime": ("how-to/use-with-other-trainers.md",),
    "trainer_adapter.swift": ("how-to/use-with-other-trainers.md",),
    "trainer_adapter.tunix": ("how-to/use-with-other-trainers.md",),
    "trainer_adapter.verifiers": ("how-to/use-with-other-trainers.md",),
    "trainer_adapter.verl": ("how-to/use-with-other-trainers.md",),
    "trainer_adapter": (
        "how-to/use-with-trl.md",
        "how-to/use-with-other-trainers.md",
        "how-to/train-with-a-config.md",
    ),
}
"""The public modules, with the pages below docs/ that have every name of theirs."""
SAME_NAME = {"Score"}
"""Names that two classes have: a reward given as text meets a ``Score`` of its own inside the jail."""
_FENCED = re.compile(r"^ *```.*?^ *```", re.MULTILINE | re.DOTALL)
_RIDDLE = re.compile(r"\b(?:is|are|was|were)\s+(?:# )?none\b|\"{3}Gives\b")
_PATH = re.compile(r"`((?:sandbox|rewardkit|builtin_rewards|trainer_adapter|tests|docs)/[\w./-]*(?:\.\w+|/))`")


@cache
def _sources() -> dict[str, tuple[Path, ast.Module]]:
    """Each module of the product by its name, with its file and its tree."""
    found = {}
    for path in (path for floor in FLOORS for path in sorted((ROOT / floor).rglob("*.py"))):
        name = ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
        found[name] = path, ast.parse(path.read_text(encoding="utf-8"))
    return found


@cache
def _nodes(module: str) -> list[ast.AST]:
    """Return all nodes of a module's tree, of which there are millions: they are walked through once."""
    return list(ast.walk(_sources()[module][1]))


@cache
def _bound_names(module: str) -> frozenset[str]:
    """Return the names of a module's classes, functions and arguments, and those that it assigns to."""
    defined = {str(getattr(node, "name", "")) for node in _nodes(module)}
    stored = {node.id for node in _nodes(module) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    return frozenset(defined | stored)


def _listed(module: str) -> list[str]:
    return list(importlib.import_module(module).__all__)


def _offered(module: str) -> set[str]:
    """The public names that a module defines; of one that only collects, those that it imports from the product."""
    statements = _sources()[module][1].body
    late = [one for body in statements if isinstance(body, ast.If) for one in body.body]
    defined, imported = set(), set()
    for one in (*statements, *late):
        if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            defined.add(one.name)
        elif isinstance(one, ast.Assign | ast.AnnAssign):
            targets = one.targets if isinstance(one, ast.Assign) else [one.target]
            defined |= {node.id for target in targets for node in ast.walk(target) if isinstance(node, ast.Name)}
        elif isinstance(one, ast.ImportFrom) and (one.module or "").partition(".")[0] in FLOORS:
            imported |= {name.asname or name.name for name in one.names}
    own = {name for name in defined if not name.startswith("_")}
    return own or imported


def test_the_public_modules_are_those_with_a_list_of_names() -> None:
    """A module has ``__all__`` if and only if it is one of the public modules."""
    with_list = {
        name
        for name, (_, tree) in _sources().items()
        if any(isinstance(one, ast.Assign) and ast.unparse(one.targets[0]) == "__all__" for one in tree.body)
    }
    assert set(PUBLIC) == with_list


@pytest.mark.parametrize("module", PUBLIC)
def test_a_public_module_lists_what_it_offers(module: str) -> None:
    """Its ``__all__`` has the public names bound there and no others, and each can be had from it."""
    names = _listed(module)
    assert _offered(module) == set(names)
    assert len(set(names)) == len(names)
    assert all(hasattr(importlib.import_module(module), name) for name in names)


@pytest.mark.parametrize("module", PUBLIC)
def test_a_public_list_is_sorted(module: str) -> None:
    """Constants come first, then classes, then functions, each by the alphabet, as ruff sorts them."""
    names = _listed(module)
    assert sorted(names, key=lambda name: (not name.isupper(), not name[0].isupper(), name)) == names


@pytest.mark.parametrize("module", PUBLIC)
def test_every_public_name_is_documented(module: str) -> None:
    """The reference has each name of a public module, in code type or as a heading, and the module's own name."""
    text = "\n".join((ROOT / "docs" / page).read_text(encoding="utf-8") for page in PUBLIC[module])
    assert module in text
    assert [] == [name for name in _listed(module) if not re.search(rf"`[^`\n]*\b{name}\b|^#+ {name}$", text, re.M)]


def _imports_of_lower_floors() -> Iterator[tuple[str, str]]:
    """Where a module imports from a floor below its own, and what; recipes are files of the user's, and no modules."""
    for module, (path, _) in _sources().items():
        if module.startswith("rewardkit.recipes."):
            continue
        own = module.partition(".")[0]
        for node in _nodes(module):
            names = []
            if isinstance(node, ast.ImportFrom) and node.module:
                names = [f"{node.module}:{one.name}" for one in node.names]
            elif isinstance(node, ast.Import):
                names = [one.name for one in node.names]
            for name in names:
                if (floor := re.split("[.:]", name)[0]) in FLOORS and floor != own:
                    yield f"{path.relative_to(ROOT)}:{node.lineno}", name


def test_upper_floors_import_public_names_alone() -> None:
    """What a floor imports from one below is a public module, or a name that such a module lists."""
    inner = []
    for place, name in _imports_of_lower_floors():
        module, _, member = name.partition(":")
        if module in PUBLIC and member:
            public = member in _listed(module) or f"{module}.{member}" in PUBLIC
        else:
            public = module in (*PUBLIC, *FLOORS) and not member
        if not public:
            inner.append(f"{place} imports {name}")
    assert [] == inner


def test_a_reward_module_offers_the_rewards_of_its_entry_points() -> None:
    """The rewards that a module of ``builtin_rewards`` binds by a public name are those that pyproject.toml lists."""
    from rewardkit import Reward

    points = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["entry-points"]
    listed = defaultdict(set)
    for name, place in points["rewardkit.rewards"].items():
        module, _, member = place.partition(":")
        assert name == member
        listed[module].add(member)
    for module, names in listed.items():
        bound = vars(importlib.import_module(module)).items()
        assert names == {name for name, value in bound if isinstance(value, Reward) and name in _offered(module)}


def test_the_typed_example_uses_every_public_name() -> None:
    """tests/typing/api.py, which must type-check, uses all of ``rewardkit.__all__`` but its errors."""
    text = (ROOT / "tests" / "typing" / "api.py").read_text(encoding="utf-8")
    assert [] == [n for n in _listed("rewardkit") if not n.endswith("Error") and len(re.findall(rf"\b{n}\b", text)) < 2]


def test_no_two_classes_share_a_name() -> None:
    """One word has one meaning: a class's name is given once in the four packages, ``_Private`` ones aside."""
    places = defaultdict(list)
    for module, (path, _) in _sources().items():
        for node in _nodes(module):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].append(f"{path.relative_to(ROOT)}:{node.lineno}")
    assert {} == {name: found for name, found in places.items() if len(found) > 1 and name not in SAME_NAME}


def test_possessive_groups_are_atomic() -> None:
    """``(?>...)*+``, not ``(?:...)*+``: before Python 3.11.5 a half-matched last repetition moves on what follows.

    https://github.com/python/cpython/issues/106052
    """
    repeated = re.compile(r"\)(?:[*+?]|\{[\d,]+\})\+")
    texts = [text for module in _sources() for text in _texts(module) if repeated.search(text)]
    patterns = [text for text in texts if _is_pattern(text)]
    assert len(patterns) > 10
    assert [] == [text for text in patterns if any(_repeats(re._parser.parse(text)))]  # type: ignore[attr-defined]


def test_sentences_say_what_is_missing() -> None:
    """No line of the packages and no prose of a page says "is none", and no docstring begins with "Gives".

    "``nan`` for a completion without a score" says what is missing, "``nan`` where there is none" does not.
    """
    modules = [path for floor in FLOORS for path in (ROOT / floor).rglob("*.py")]
    found = []
    for path in [*modules, *PAGES]:
        text = path.read_text(encoding="utf-8")
        prose = text if path.suffix == ".py" else _FENCED.sub(lambda block: "\n" * block[0].count("\n"), text)
        for bad in _RIDDLE.finditer(prose):
            found.append(f"{path.relative_to(ROOT)}:{prose.count(chr(10), 0, bad.start()) + 1}: {bad[0]!r}")
    assert [] == found


def _texts(module: str) -> Iterator[str]:
    """Yield a module's texts; what is put into one stands in it as ``x``."""
    for node in _nodes(module):
        if isinstance(node, ast.JoinedStr):
            yield "".join(str(part.value) if isinstance(part, ast.Constant) else "x" for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def _is_pattern(text: str) -> bool:
    try:
        re.compile(text)
    except re.error:
        return False  # a part of one, or prose
    return True


def _repeats(pattern: Any) -> Iterator[Any]:
    """Yield what a pattern repeats possessively, if it is neither one character nor atomic."""
    if isinstance(pattern, tuple) and len(pattern) == 2 and str(pattern[0]) == "POSSESSIVE_REPEAT":
        body = list(pattern[1][2])
        if len(body) != 1 or str(body[0][0]) not in ("ATOMIC_GROUP", "IN", "LITERAL", "NOT_LITERAL", "ANY"):
            yield body
    if not isinstance(pattern, str | int) and pattern is not None:
        for part in pattern:
            yield from _repeats(part)


def test_nobody_is_told_to_install_rewardkit_from_an_index() -> None:
    """No message and no page says ``pip install rewardkit``, with extras or not: the name there is a stranger's."""
    files = [*(path for path, _ in _sources().values()), *(ROOT / "docs").rglob("*.py"), ROOT / "Makefile", *PAGES]
    wrong = re.compile(r"\bpip install (?:[-\w=<>.,]+ )*['\"]?rewardkit\b(?![\w/-])|\buvx? [^`\n]*\brewardkit\b")
    assert [] == [
        f"{path.relative_to(ROOT)}: {match[0]}" for path in files for match in wrong.finditer(path.read_text())
    ]


@pytest.fixture
def foreign(tmp_path: Path) -> Path:
    """A folder with another distribution's package named rewardkit."""
    (tmp_path / "rewardkit").mkdir()
    (tmp_path / "rewardkit" / "__init__.py").write_text("class Reward:\n    pass\n\n__version__ = '0.2'\n")
    about = tmp_path / "other_kit-0.2.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: other-kit\nVersion: 0.2\n")
    (about / "top_level.txt").write_text("rewardkit\n")
    return tmp_path


@pytest.mark.parametrize("command", ["import builtin_rewards.math", "import trainer_adapter", "the script"])
def test_a_foreign_rewardkit_is_named(foreign: Path, command: str) -> None:
    """Where ``import rewardkit`` gives another package, one sentence says so, with its file and who installed it."""
    if command == "the script":
        scripts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["scripts"]
        command = "from {0} import {1}; {1}()".format(*scripts["rewardkit"].split(":"))
    done = subprocess.run(
        [sys.executable, "-c", command],
        capture_output=True, text=True, cwd=foreign,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(foreign), str(ROOT)])},
    )  # fmt: skip
    named = f"another package named 'rewardkit' is in the way, {foreign}/rewardkit/__init__.py"
    fix = "uninstall it (pip uninstall other-kit) and install this one again, or give each an environment of its own"
    expected = f"ImportError: {named}: {fix}"
    assert (1, expected) == (done.returncode, done.stderr.splitlines()[-1])


def test_doctor_names_distributions_that_took_our_names(foreign: Path) -> None:
    """Where ours is imported and another distribution has the name as well, ``rewardkit doctor`` says which."""
    probe = "from rewardkit.cli.doctor import taken_names; print(taken_names()['rewardkit'])"
    paths = os.pathsep.join([str(ROOT), str(foreign)])
    done = subprocess.run(
        [sys.executable, "-c", probe], capture_output=True, text=True, env={**os.environ, "PYTHONPATH": paths}
    )
    assert ("['other-kit']\n", "") == (done.stdout, done.stderr)


@pytest.mark.parametrize("command", ["import rewardkit", "import trainer_adapter", "a worker"])
def test_harbors_package_beside_ours_is_named_in_one_line(command: str, tmp_path: Path) -> None:
    """Where ours is imported and harbor-rewardkit is installed too, a line says so with the way out; workers do not."""
    (tmp_path / "site-packages/harbor_rewardkit-0.2.3.dist-info").mkdir(parents=True)
    paths = os.pathsep.join([str(ROOT), str(tmp_path / "site-packages")])
    env = {**os.environ, "PYTHONPATH": paths} | ({"REWARDKIT_POOL": "1-2"} if command == "a worker" else {})
    program = "import rewardkit" if command == "a worker" else command
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=env, check=True)
    named = "harbor-rewardkit 0.2.3 is installed beside rewardkit, with the same import name and the same command: "
    lines = done.stderr.splitlines()
    assert ([] if command == "a worker" else [named]) == [line[: len(named)] for line in lines]
    assert all("an environment of its own" in line and "`python -m rewardkit`" in line for line in lines)


@pytest.mark.parametrize(
    "page",
    [page for page in PAGES if not page.name.startswith("CHANGELOG")],
    ids=lambda page: str(page.relative_to(ROOT)),
)
def test_files_that_a_page_names_exist(page: Path) -> None:
    """Each path of the project in a page's code type is there."""
    text = page.read_text(encoding="utf-8")
    assert [] == [path for path in _PATH.findall(text) if not (ROOT / path).exists()]


def _way_in() -> list[list[str]]:
    """Return the rows of CONTRIBUTING's "Where things are": question, place, and what to look for there."""
    page = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    section = page.partition("## Where things are")[2].partition("\n## ")[0]
    rows = [[cell.strip() for cell in row.strip("|").split("|")] for row in re.findall(r"^\|.*\|$", section, re.M)]
    return [row for row in rows if row[0] != "question" and set(row[0]) != {"-"}]


def test_the_way_to_a_change_leads_there() -> None:
    """Each row of "Where things are" has a question, a file or folder that exists, and what is defined there."""
    for question, place, look_for in _way_in():
        path = ROOT / place.strip("`")
        assert question.endswith("?")
        assert path.exists(), place
        words = re.findall("`([^`]+)`", look_for)
        paths = [path, *(ROOT / word for word in words if "/" in word)]
        modules = {name: file for name, (file, _) in _sources().items() if any(map(file.is_relative_to, paths))}
        names = {file.name for file in modules.values()}.union(*map(_bound_names, modules))
        assert [] == [word for word in words if word not in names and not (ROOT / word).exists()], question


def test_the_way_in_has_every_room() -> None:
    """Each folder of modules is named in "Where things are", or lies in a room that is."""
    text = "\n".join(cell for row in _way_in() for cell in row[1:])
    folders = [ROOT / folder for folder in re.findall(r"`(\w+/[\w/]+/)`", text)]
    rooms = {path.parent for path, _ in _sources().values()} - {ROOT / floor for floor in FLOORS}
    assert [] == [room for room in rooms if not any(room.is_relative_to(folder) for folder in folders)]


def test_the_changelog_begins_with_what_is_unreleased_and_then_this_version() -> None:
    """CHANGELOG.md has "Unreleased" first, then the newest release, whose version is the package's, with its date."""
    headings = re.findall(r"^## (.*)$", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.M)
    assert "[Unreleased]" == headings[0]
    assert re.fullmatch(rf"\[{re.escape(rewardkit.__version__)}\] - \d{{4}}-\d\d-\d\d", headings[1])


def test_the_changelog_is_grouped_by_room() -> None:
    """Each entry stands below a room's heading, and each kind of change has a room once."""
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    unreleased = re.split(r"^## ", text, flags=re.M)[1]
    for kind in re.split(r"^### ", unreleased, flags=re.M)[1:]:
        assert "\n- " not in kind.partition("\n#### ")[0]
        rooms = re.findall(r"^#### (.*)$", kind, re.M)
        assert len({*rooms}) == len(rooms)


def test_the_changelog_can_be_read_in_five_minutes() -> None:
    """What is unreleased has at most 1,400 words; details stand in a file that it links."""
    unreleased = re.split(r"^## ", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), flags=re.M)[1]
    assert 1400 >= len(unreleased.split())
    assert all((ROOT / name).is_file() for name in re.findall(r"\]\((CHANGELOG-[\d.]+md)\)", unreleased))


def test_every_dependency_has_its_reason_and_its_pin() -> None:
    """dependencies.md has a row for each library of pyproject.toml, under its extra, and constraints.txt pins it."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    page = (ROOT / "docs" / "explanation" / "dependencies.md").read_text(encoding="utf-8")
    pins = re.findall(r"^([\w.-]+)==", (ROOT / "constraints.txt").read_text(encoding="utf-8"), re.M)
    extras = {"": project["dependencies"], **project["optional-dependencies"]}
    for extra, wanted in extras.items():
        for name in (re.split(r"[<>=\[]", one)[0] for one in wanted):
            if name == project["name"]:
                continue
            shown = f"`{extra}` | " if extra not in ("", "dev") else ""
            assert re.search(rf"^\| {shown}(?:[\w-]+, )?{re.escape(name)}(?:, [\w-]+)* \|", page, re.M), (
                f"{extra} {name}"
            )
            assert name.lower() in [pin.lower().replace("_", "-") for pin in pins], name


def test_folders_of_tests_mirror_the_packages() -> None:
    """Each folder of a package's tests is named for a folder of that package."""
    folders = [path for floor in FLOORS for path in (ROOT / "tests" / floor).rglob("*/") if path.name != "__pycache__"]
    assert [] == [path for path in folders if not (ROOT / path.relative_to(ROOT / "tests")).is_dir()]


def test_the_tests_of_a_module_lie_at_the_mirrored_place() -> None:
    """A file of tests with the name of a module of its room, or of a room inside it, lies where that module does."""
    elsewhere = []
    for test in (path for floor in FLOORS for path in (ROOT / "tests" / floor).rglob("test_*.py")):
        room, name = ROOT / test.parent.relative_to(ROOT / "tests"), test.name.removeprefix("test_")
        if not (room / name).exists():
            elsewhere += [f"{test.relative_to(ROOT)}: {module.relative_to(ROOT)}" for module in room.rglob(name)]
    assert [] == elsewhere


def test_a_list_of_modules_names_those_that_are_there() -> None:
    """A package's docstring that lists modules, one a line, names none that is missing."""
    missing = []
    for path, tree in _sources().values():
        for name in re.findall(r"^(\w+\.py)  ", ast.get_docstring(tree) or "", re.M):
            if not (path.parent / name).exists():
                missing.append(f"{path.relative_to(ROOT)}: {name}")
    assert [] == missing
