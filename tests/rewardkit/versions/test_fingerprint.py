"""What a reward's version covers: all of the user's own that decides the score, found without running anything."""

from __future__ import annotations

import importlib
import linecache
import os
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import date
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from rewardkit import Rollout, Runtime, clip, gate, maximum, minimum, reward, scheduled
from rewardkit.loading.registry import resolve
from rewardkit.versions import dependencies

ROOT = Path(__file__).parents[3]
ON_IMPORT = "raise RuntimeError('this module must not be imported')\n"

PROJECT = {
    "rewards.py": """\
        import functools
        import math
        import re
        import statistics
        from dataclasses import dataclass

        import pkg.shapes
        import registered
        from constants import *
        from helpers import half as halved
        from kinds import kind
        from pkg import deep, table
        from pkg.base import Base
        from rewardkit import reward

        LIMIT = 3
        TABLE = {"a": 1}
        TABLE["b"] = 2
        WORDS = []
        WORDS.append("yes")
        UNUSED = 1
        first, second = 1, 2
        if LIMIT > 2:
            MODE = "strict"
        else:
            MODE = "loose"
        CHECKS = {}

        def check(function):
            CHECKS[function.__name__] = function
            return function

        @check
        def registered_here(x):
            return x + 4

        def unused():
            return 1

        def twice(function):
            @functools.wraps(function)
            def wrapper(completion: str, answer: str) -> float:
                return 2 * function(completion, answer)
            return wrapper

        @dataclass
        class Counted(Base):
            factor: int = 1

            def count(self, text):
                return inner(text) * self.factor

        def inner(text):  # counts
            '''Return the letters.'''
            return len([letter for letter in text if letter.isalpha()])

        def even(n):
            return n == 0 or odd(n - 1)

        def odd(n):
            return n != 0 and even(n - 1)

        def shadowed():
            return "a module's name that a local hides"

        key = lambda text: len(text) + 5

        @reward(timeout_s=5)
        @twice
        def score(completion: str, answer: str) -> float:
            '''Scores.'''
            from local_import import bonus

            shadowed = 0  # a local
            if completion == "lazy":
                import never_imported
                return never_imported.value
            found = Counted().count(completion) + LIMIT + TABLE["b"] + len(WORDS) + second + len(MODE) + key(answer)
            found += halved(found) + pkg.shapes.area(2) + table.ROWS[0] + deep.depth() + STAR + even(2) + shadowed
            found += kind(1) + statistics.mean([1])
            found += len(re.findall("a", completion)) + math.floor(1.5) + bonus() + len(CHECKS) + len(registered.ALL)
            return float(found)

        if __name__ == "__main__":
            print("the main part")
        """,
    "helpers.py": "def half(x):\n    return quarter(x) * 2\n\ndef quarter(x):\n    return x / 4\n\n"
    "def other():\n    return 1\n",
    "kinds.py": "import functools\n\n@functools.singledispatch\ndef kind(x):\n    return 0\n\n"
    "@kind.register\ndef _(x: int):\n    return 7\n",
    "constants.py": "STAR = 1\nNOT_USED = 2\n",
    "local_import.py": "def bonus():\n    return 1\n",
    "never_imported.py": ON_IMPORT + "value = 1\nother = 2\n",
    "registered.py": "ALL = []\n\ndef add(x):\n    ALL.append(x)\n\nadd(1)\n",
    "unrelated.py": "VALUE = 1\n",
    "pkg/__init__.py": "from .table import ROWS\n",
    "pkg/base.py": "class Base:\n    def count(self, text):\n        return 0\n",
    "pkg/shapes.py": "from . import units\nfrom .deep import depth\n\ndef area(x):\n    return x * units.SCALE\n",
    "pkg/units.py": "SCALE = 2\nNAME = 'm'\n",
    "pkg/table.py": "ROWS = [1, 2]\n",
    "pkg/deep.py": "def depth():\n    from .shapes import area\n    return area(1) if False else 1\n",
}


def written(folder: Path, files: Mapping[str, str] = PROJECT) -> Path:
    """Return the folder with a project's files in it."""
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(textwrap.dedent(text))
    return folder


@contextmanager
def as_if_fresh() -> Iterator[None]:
    """Forgets what was imported meanwhile, as another process would not have it."""
    modules, path = set(sys.modules), list(sys.path)
    try:
        yield
    finally:
        for name in set(sys.modules) - modules:
            del sys.modules[name]
        sys.path[:] = path
        importlib.invalidate_caches()


def version_in(folder: Path, reference: str = "rewards.py:score") -> str:
    """Return the version of a reward in a folder."""
    with as_if_fresh():
        version: str = resolve(f"{folder}/{reference}").version  # type: ignore[attr-defined]
        return version


COUNTS = {
    "a helper of the same file": ("rewards.py", "letter.isalpha()", "letter.isdigit()"),
    "a helper's helper in another file": ("helpers.py", "x / 4", "x / 5"),
    "a constant": ("rewards.py", "LIMIT = 3", "LIMIT = 4"),
    "an entry set in a constant": ("rewards.py", 'TABLE["b"] = 2', 'TABLE["b"] = 3'),
    "a constant's method called": ("rewards.py", 'WORDS.append("yes")', 'WORDS.append("no")'),
    "one of two names assigned at once": ("rewards.py", "first, second = 1, 2", "first, second = 1, 3"),
    "a constant set under a condition": ("rewards.py", "if LIMIT > 2", "if LIMIT > 5"),
    "a class": ("rewards.py", "* self.factor", "+ self.factor"),
    "a class's default": ("rewards.py", "factor: int = 1", "factor: int = 2"),
    "a base class in a package": ("pkg/base.py", "return 0", "return 1"),
    "an own decorator": ("rewards.py", "2 * function", "3 * function"),
    "a lambda": ("rewards.py", "len(text) + 5", "len(text) + 6"),
    "one of two that call each other": ("rewards.py", "n != 0", "n > 0"),
    "what a decorator collects": ("rewards.py", "x + 4", "x + 5"),
    "what a call collects in another module": ("registered.py", "add(1)", "add(2)"),
    "what a function takes in": ("kinds.py", "return 7", "return 8"),
    "a name taken by a star": ("constants.py", "STAR = 1", "STAR = 2"),
    "import pkg.mod": ("pkg/shapes.py", "x * units", "x + units"),
    "a module that a package's module imports": ("pkg/units.py", "SCALE = 2", "SCALE = 3"),
    "from pkg import mod": ("pkg/table.py", "[1, 2]", "[3, 2]"),
    "an import inside a function": ("local_import.py", "return 1", "return 2"),
    "an import that is not run": ("never_imported.py", "value = 1", "value = 2"),
    "an annotation of a column": (
        "rewards.py",
        "score(completion: str, answer: str",
        "score(completion: str, answer: int",
    ),
    "an option": ("rewards.py", "timeout_s=5", "timeout_s=6"),
    "where a helper comes from": ("rewards.py", "import math", "import cmath as math"),
}
DOES_NOT_COUNT = {
    "a comment": ("rewards.py", "# counts", "# counts letters"),
    "layout": ("rewards.py", "n == 0 or odd(n - 1)", "(n == 0\n        or odd( n-1 ))"),
    "a docstring": ("rewards.py", "Return the letters.", "Return the number of letters."),
    "the reward's docstring": ("rewards.py", "'''Scores.'''", ""),
    "a helper that is not used": ("rewards.py", "return 1", "return 2"),
    "a constant that is not used": ("rewards.py", "UNUSED = 1", "UNUSED = 2"),
    "a helper that is not used, elsewhere": ("helpers.py", "return 1", "return 2"),
    "a constant that is not used, elsewhere": ("pkg/units.py", "'m'", "'km'"),
    "a module that is not imported": ("unrelated.py", "VALUE = 1", "VALUE = 2"),
    "a name of the module that a local hides": ("rewards.py", "that a local hides", "that one hides"),
    "the main part of a script": ("rewards.py", "the main part", "another main part"),
    "an alias": ("rewards.py", "import functools\n", "import functools\nimport os\n"),
    "how an option is written": ("rewards.py", "timeout_s=5", "timeout_s=2 + 3"),
    "options that decide no score": ("rewards.py", "timeout_s=5", "timeout_s=5, cache=True, concurrency=2"),
    "lines above": ("rewards.py", "import functools\n", "\n\n\nimport functools\n"),
}


@pytest.fixture(scope="module")
def usual(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The version of the project's reward as it stands."""
    return version_in(written(tmp_path_factory.mktemp("usual")))


def _changed(folder: Path, name: str, old: str, new: str) -> Path:
    written(folder)
    text = (folder / name).read_text()
    assert old in text
    (folder / name).write_text(text.replace(old, new, 1))
    return folder


@pytest.mark.parametrize(("name", "old", "new"), COUNTS.values(), ids=list(COUNTS))
def test_the_version_follows(usual: str, tmp_path: Path, name: str, old: str, new: str) -> None:
    """What decides the score changes the version, wherever the user wrote it."""
    assert usual != version_in(_changed(tmp_path, name, old, new))


@pytest.mark.parametrize(("name", "old", "new"), DOES_NOT_COUNT.values(), ids=list(DOES_NOT_COUNT))
def test_the_version_does_not_follow(usual: str, tmp_path: Path, name: str, old: str, new: str) -> None:
    """What decides nothing leaves the version as it was; so does the folder, which is another each time."""
    assert usual == version_in(_changed(tmp_path, name, old, new))


def test_nothing_is_imported_to_find_out(tmp_path: Path) -> None:
    """A module that the reward would import only when called stays unimported, though its source counts."""
    with as_if_fresh():
        assert resolve(f"{written(tmp_path)}/rewards.py:score").version  # type: ignore[attr-defined]
        assert not {"never_imported", "local_import", "pkg.deep"} & (set(sys.modules) - {"pkg.deep"})


TELL = """\
import sys
sys.path.insert(0, {root!r})
{arrive}
print(score.version)
"""
PYTHONS = [f"python3.{minor}" for minor in (11, 12, 13)]


@pytest.mark.parametrize("seed", ["1", "2"])
@pytest.mark.parametrize(
    "arrive",
    [
        "from rewards import score",
        "from rewardkit.loading.registry import resolve\nscore = resolve('rewards.py:score')",
    ],
    ids=["imported", "by path"],
)
def test_the_version_is_the_same_in_other_processes(usual: str, tmp_path: Path, arrive: str, seed: str) -> None:
    """However the module was found, and whatever the hash seed."""
    text = TELL.format(root=str(ROOT), arrive=arrive)
    environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(written(tmp_path))}
    done = subprocess.run(
        [sys.executable, "-c", text], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300
    )
    assert (usual, "") == (done.stdout.strip(), done.stderr)


def test_the_version_is_the_same_as_a_script_and_in_workers(usual: str, tmp_path: Path) -> None:
    """The main script's reward goes to the workers by value, and has the version there that it has at home."""
    written(tmp_path)
    text = (tmp_path / "rewards.py").read_text()
    tell = (
        "import pickle, cloudpickle\n    print(score.version)\n"
        "    print(pickle.loads(cloudpickle.dumps(score)).version)\n    print(score.with_options(timeout_s=5).version)"
    )
    (tmp_path / "rewards.py").write_text(text.replace('print("the main part")', tell))
    done = subprocess.run(
        [sys.executable, "rewards.py"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert ([usual] * 3, "") == (done.stdout.split(), done.stderr)


SHAPES = '''\
def f(x: "int", *rest, y=[1, 2.5, 3j, b"b", ...], **more):
    """Gives."""
    a = f"{x!r:>{y}} and {x=} {{braces}}" "tail" f"{x:}"
    async def g(): return [await z async for z in x if z]
    match x:
        case {"k": [1, *tail], **left} if (n := 3) > 2: return n
        case str(name) | name: pass
    try: pass
    except* ValueError as e: raise
    with (open(a) as b, open(b) as c): pass
    return lambda *, k=1: -k ** 2, x[1:2, ..., ::3], {*rest}, not x, x if y else 1
'''


def _interpreter(python: str) -> str | None:
    """Return a Python that works: on PATH, where pyenv leaves shims that may not, or among those that pyenv keeps."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    kept = sorted(pyenv.glob(f"{python.removeprefix('python')}.*/bin/python"))
    for found in (shutil.which(python), *map(str, kept)):
        if found is not None and subprocess.run([found, "-c", ""], capture_output=True, timeout=300).returncode == 0:
            return found
    return None


@pytest.mark.parametrize("python", PYTHONS)
def test_the_version_is_the_same_in_other_versions_of_python(tmp_path: Path, python: str) -> None:
    """The shape of source, and the names that it uses, are the same in each Python that is here."""
    found = _interpreter(python)
    names_used = str(ROOT / "rewardkit" / "versions" / "names_used.py")
    program = (
        "import importlib.util, sys, ast\n"
        f"spec = importlib.util.spec_from_file_location('n', {names_used!r})\n"
        "n = importlib.util.module_from_spec(spec); sys.modules['n'] = n; spec.loader.exec_module(n)\n"
        "tree = ast.parse(sys.stdin.read())\nprint(n.shape(tree), n.uses(tree))\n"
    )

    def told(command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([command, "-c", program], input=SHAPES, capture_output=True, text=True, timeout=300)

    if found is None:
        pytest.skip(f"no {python} here")
    there = told(found)
    assert (0, told(sys.executable).stdout) == (there.returncode, there.stdout), there.stderr


def test_settings_of_an_own_object_count() -> None:
    """An object that is called counts with its attributes, and with the class that it is of."""

    class Scorer:
        def __init__(self, bonus: float) -> None:
            self.bonus = bonus

        def __call__(self, completion: str) -> float:
            return self.bonus

        def method(self, completion: str) -> float:
            return self.bonus

    versions = [reward(Scorer(bonus)).version for bonus in (1.0, 2.0, 1.0)]
    methods = [reward(Scorer(bonus).method).version for bonus in (1.0, 2.0, 1.0)]
    assert versions[0] == versions[2] != versions[1]
    assert methods[0] == methods[2] != methods[1]


def test_settings_count_as_they_were_when_the_reward_was_made() -> None:
    """What calls change later in a default does not change the version."""

    def remembers(completion: str, _seen: list[str] = []) -> float:  # noqa: B006 - that is the point
        _seen.append(completion)
        return 0.0

    made = reward(remembers)
    remembers("x")
    again = made.version
    remembers.__defaults__[0].clear()  # type: ignore[index]
    assert again == reward(remembers).version


def test_classes_of_one_name_are_told_apart() -> None:
    """Each counts by its own body, though both are called the same."""

    def one() -> object:
        class Scorer:
            def __call__(self, completion: str) -> float:
                return 1.0

        return Scorer()

    def other() -> object:
        class Scorer:
            def __call__(self, completion: str) -> float:
                return 2.0

        return Scorer()

    versions = [reward(made()).version for made in (one, other, one)]  # type: ignore[type-var]
    assert versions[0] == versions[2] != versions[1]


def test_values_that_say_what_they_are_count() -> None:
    """Numbers and dates of the standard library, also inside a called object's settings."""

    def version(value: object) -> str:
        def closed(completion: str) -> float:
            return float(value == 1)

        return reward(closed).version

    values = [Decimal("1"), Decimal("1.0"), Fraction(1, 3), Fraction(2, 3), date(2026, 1, 1), date(2026, 1, 2)]
    assert len(values) == len({version(value) for value in values})


def test_what_an_object_pretends_to_have_is_not_asked_for() -> None:
    """An object whose ``__getattr__`` answers to everything counts by its type, and nothing of it runs."""

    class Answers:
        def __getattr__(self, name: str) -> object:
            if not name.startswith("__") or name == "__wrapped__":
                raise RuntimeError("this must not run")
            raise AttributeError(name)

    held = Answers()

    def closed(completion: str) -> float:
        return float(held is None)

    assert reward(closed).version == reward(closed).version


def test_a_project_reached_by_a_link_is_the_same(usual: str, tmp_path: Path) -> None:
    """Modules count once, by whichever path they were found."""
    written(tmp_path / "real")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    with as_if_fresh():
        sys.path.insert(0, str(tmp_path / "link"))
        assert usual == resolve("rewards:score").version  # type: ignore[attr-defined]


def test_a_module_that_hides_one_of_the_standard_library_counts(tmp_path: Path) -> None:
    """Where the user's own file is what an import finds first, it decides."""
    versions = []
    for value in (1, 2):
        files = {
            "rewards.py": "from rewardkit import reward\n\n@reward\ndef score(completion: str) -> float:\n"
            "    import antigravity\n    return antigravity.VALUE\n",
            "antigravity.py": f"VALUE = {value}\n",
        }
        folder = written(tmp_path / str(value), files)
        with as_if_fresh():
            sys.path.insert(0, str(folder))
            versions.append(resolve("rewards:score").version)  # type: ignore[attr-defined]
    assert versions[0] != versions[1]


def test_two_lambdas_on_one_line_are_told_apart() -> None:
    """Each counts by its own body."""
    one, other = (lambda completion: 1.0), (lambda completion: 2.0)
    named = [reward(name="same")(f).version for f in (one, other, one)]
    assert named[0] == named[2] != named[1]


def test_a_wrapper_made_by_hand_counts() -> None:
    """A wrapper that hides behind ``functools.wraps`` decides the score, and counts, with what it closes over."""
    import functools

    def times(factor: float) -> Any:
        def wrap(function: Any) -> Any:
            @functools.wraps(function)
            def wrapper(completion: str) -> float:
                return factor * float(function(completion))

            return wrapper

        return wrap

    def plain(completion: str) -> float:
        return 1.0

    versions = [reward(made).version for made in (plain, times(2)(plain), times(3)(plain), functools.cache(plain))]
    assert 4 == len(set(versions))


def _cell(number: int, text: str, space: dict[str, Any]) -> None:
    """Runs text as a notebook runs a cell: its source is in ``linecache`` alone."""
    name = f"<cell {number}>"
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    exec(compile(text, name, "exec"), space)


@pytest.mark.parametrize("source", [True, False], ids=["with source", "without source"])
def test_a_notebooks_cells_count(source: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """A helper, a constant and a class of other cells count by what they are now."""

    def version(limit: int, body: str) -> str:
        space: dict[str, Any] = {"__name__": "notebook", "reward": reward}
        cells = [
            f"limit = {limit}\nclass C:\n    def m(self):\n        return {body}\n",
            "def helper(x):\n    return C().m() + limit if x else score(completion=x)\n",  # in a circle
            "@reward\ndef score(completion: str) -> float:\n    return float(helper(completion))\n",
        ]
        for number, text in enumerate(cells):
            if source:
                _cell(number, text, space)
            else:
                exec(text, space)
        found: str = space["score"].version
        return found

    monkeypatch.setitem(sys.modules, "notebook", ModuleType("notebook"))  # as a notebook's main module, in no file
    try:
        assert version(1, "1") == version(1, "1")
        assert version(1, "1") != version(2, "1")
        assert version(1, "1") != version(1, "2")
    finally:
        for number in range(3):
            linecache.cache.pop(f"<cell {number}>", None)


def test_a_composition_counts_with_its_parts_and_how_they_are_put_together() -> None:
    """Weights, thresholds, schedules and the parts' versions, at any depth."""

    @reward
    def one(completion: str) -> float:
        return 1.0

    @reward
    def other(completion: str) -> float:
        return 2.0

    def deep(bound: float) -> Any:
        found: Any = clip(one, 0, bound)
        for _ in range(10):
            found = minimum(found, other).named("found")
        return found

    def schedule(factor: float) -> Any:
        return scheduled(one, lambda step: factor * step)

    made = [one + other, other + one, one + 2 * other, gate(one, other), gate(one, other, threshold=0.7), deep(1)]
    made += [deep(2), schedule(1), schedule(2), one + other.with_options(timeout_s=3), maximum(one, other)]
    assert len(made) == len({composition.version for composition in made})
    assert (one + other).version == made[0].version
    assert deep(1).version == made[5].version


CIRCLE = {
    "rewards.py": "import other\nfrom rewardkit import reward\n\n@reward\ndef score(completion: str) -> float:\n"
    "    return float(other.f(1))\n\ndef back():\n    return other\n",
    "other.py": "from rewards import *\nimport other as me\n\ndef f(x):\n    import rewards\n"
    "    return rewards.back() if x > 9 else me.g()\n\ndef g():\n    return 1\n",
}


def test_circles_end(tmp_path: Path) -> None:
    """Modules that import each other, by name and by star, are read once."""
    same = [version_in(written(tmp_path / name, CIRCLE)) for name in "ab"]
    changed = {**CIRCLE, "other.py": CIRCLE["other.py"].replace("return 1", "return 2")}
    assert same[0] == same[1] != version_in(written(tmp_path / "c", changed))


def test_names_taken_in_a_circle_end(tmp_path: Path) -> None:
    """Two modules that take one name from each other, which one of them also binds, are followed once."""
    files = {
        "rewards.py": "from rewardkit import reward\n\n@reward\ndef score(completion: str) -> float:\n"
        "    from one import name\n    return name\n",
        "one.py": "from two import name\n",
        "two.py": "try:\n    from one import name\nexcept ImportError:\n    name = 1\n",
    }
    changed = {**files, "two.py": files["two.py"].replace("name = 1", "name = 2")}
    assert version_in(written(tmp_path / "a", files)) != version_in(written(tmp_path / "b", changed))


UNPARSED = {"large": "VALUE = 1\nDATA = '" + "x" * 2_100_000 + "'\n", "wrong": "VALUE = 1\nthis is no Python\n"}


@pytest.mark.parametrize("text", UNPARSED.values(), ids=list(UNPARSED))
def test_a_file_that_is_not_parsed_counts_by_its_bytes(tmp_path: Path, text: str) -> None:
    """One of many megabytes, which would take long, and one that cannot be."""
    rewards = (
        "from rewardkit import reward\n\n@reward\ndef score(completion: str) -> float:\n"
        "    import data\n    return data.VALUE\n"
    )
    versions = []
    for value in "121":
        files = {"rewards.py": rewards, "data.py": text.replace("VALUE = 1", f"VALUE = {value}")}
        versions.append(version_in(written(tmp_path / str(len(versions)), files)))
    assert versions[0] == versions[2] != versions[1]


def test_what_is_followed_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first file beyond the bound counts by its bytes; as long as it is not reached, comments do not count."""
    files = {
        "rewards.py": "from rewardkit import reward\n\n@reward\ndef score(completion: str) -> float:\n"
        "    import a0\n    return a0.f()\n",
        **{f"a{n}.py": f"import a{n + 1}\n\ndef f():\n    return a{n + 1}.f()\n" for n in range(20)},
        "a20.py": "def f():\n    return 1\n",
    }
    variants = [{**files, f"a{n}.py": files[f"a{n}.py"] + "# a comment\n"} for n in range(21)]
    usual = version_in(written(tmp_path / "usual", files))
    assert {usual} == {version_in(written(tmp_path / f"all{n}", variants[n])) for n in (0, 5, 20)}
    monkeypatch.setattr(dependencies, "MOST_BYTES", 250)
    usual = version_in(written(tmp_path / "bound", files))
    differ = [version_in(written(tmp_path / str(n), one)) != usual for n, one in enumerate(variants)]
    assert usual == version_in(written(tmp_path / "again", files))
    assert [True] == sorted(set(differ[4:8]))[-1:]
    assert not differ[0]


def test_source_that_is_nested_deep_counts(tmp_path: Path) -> None:
    """A sum of seven hundred terms is too deep to walk, and changes the version all the same."""

    def project(last: str) -> dict[str, str]:
        terms = " + ".join(["1"] * 700 + [last])
        text = f"from rewardkit import reward\n\n@reward\ndef score(completion: str) -> float:\n    return {terms}\n"
        return {"rewards.py": text}

    versions = [version_in(written(tmp_path / name, project(last))) for name, last in (("a", "1"), ("b", "2"))]
    assert versions[0] != versions[1]


def test_what_is_installed_does_not_count(tmp_path: Path) -> None:
    """A library in site-packages, or in a folder that pip filled, changes without changing the version."""
    versions = []
    for value in (1, 2):
        folder = tmp_path / str(value)
        written(
            folder,
            {
                "site-packages/library_a.py": f"VALUE = {value}\n",
                "filled/library_b/__init__.py": f"VALUE = {value}\n",
                "filled/library_b-1.0.dist-info/METADATA": "",
                "rewards.py": "import library_a\nimport library_b\nfrom rewardkit import reward\n\n@reward\n"
                "def score(completion: str) -> float:\n    return float(library_a.VALUE + library_b.VALUE)\n",
            },
        )
        with as_if_fresh():
            sys.path += [str(folder / "site-packages"), str(folder / "filled")]
            versions.append(resolve(f"{folder}/rewards.py:score").version)  # type: ignore[attr-defined]
    assert versions[0] == versions[1]


def test_an_installed_reward_covers_its_own_package(tmp_path: Path) -> None:
    """A reward that comes with an installed package counts with that package's modules."""
    versions = []
    for value in (1, 2):
        folder = written(
            tmp_path / str(value) / "site-packages",
            {
                "given/__init__.py": "",
                "given/rewards.py": "from rewardkit import reward\nfrom .values import VALUE\n\n@reward\n"
                "def score(completion: str) -> float:\n    return VALUE\n",
                "given/values.py": f"VALUE = {value}\n",
            },
        )
        with as_if_fresh():
            sys.path.append(str(folder))
            versions.append(resolve("given.rewards:score").version)  # type: ignore[attr-defined]
    assert versions[0] != versions[1]


def test_outcomes_carry_the_version(tmp_path: Path) -> None:
    """A run in workers reports the version that the reward has."""
    written(tmp_path)
    with as_if_fresh():
        score = resolve(f"{tmp_path}/rewards.py:score")
        with Runtime([score], workers=1) as runtime:
            (outcome,) = runtime.score([Rollout("?", "abc", {"answer": "4"})])["score"]
        assert ("scored", score.version) == (outcome.status, outcome.version)  # type: ignore[attr-defined]
