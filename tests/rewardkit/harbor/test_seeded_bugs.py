"""Tasks of seeded bugs: a package with its own tests, mistakes that these notice, and folders that are graded so."""

from __future__ import annotations

import io
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path
from random import Random

import pytest

from rewardkit import SealedWorkspace, check_suite, from_harbor
from rewardkit.errors import SuiteError
from rewardkit.harbor.seeded_bugs import PackageWithTests, read_package, seed_bugs, with_passing
from rewardkit.harbor.task_folder import write_task
from rewardkit.loading.packages import cache_folder

FILES = {
    "setup.py": "raise SystemExit('is not run')\n",
    "README": "words\n",
    "shapes.py": '''\
"""Shapes."""

def area(side, scale=1):
    # a comment
    if side < 0:
        raise ValueError("negative")
    return side * side * scale

def unseen(x):
    return x + 1
''',
    "tests/test_shapes.py": """\
import pytest
from shapes import area

@pytest.mark.parametrize("side, expected", [(2, 4), (12, 144), (0, 0)])
def test_area(side, expected):
    assert area(side) == expected

def test_scale():
    assert area(3, 2) == 18

def test_negative():
    with pytest.raises(ValueError):
        area(-1)

def test_broken():
    assert area(1) == 2
""",
}


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> PackageWithTests:
    """The small package, with its tests that pass."""
    return with_passing(read_package(_folder(tmp_path_factory.mktemp("packages"))))


def _folder(parent: Path) -> Path:
    folder = parent / "shapes-1.0"
    for name, text in FILES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    return folder


def _archives(folder: Path) -> dict[str, Path]:
    """Return the folder packed in both ways, bytecode and a name that leads out of it too."""
    packed = {"tar": folder.with_name("shapes-1.0.tar.gz"), "zip": folder.with_name("shapes-1.0.zip")}
    names = {**FILES, "../outside.py": "x = 1\n", "shapes.pyc": "\0"}
    with tarfile.open(packed["tar"], "w:gz") as tar, zipfile.ZipFile(packed["zip"], "w") as archive:
        for name, text in names.items():
            member = tarfile.TarInfo(f"shapes-1.0/{name}")
            member.size = len(text)
            tar.addfile(member, io.BytesIO(text.encode()))
            archive.writestr(f"shapes-1.0/{name}", text)
        link = tarfile.TarInfo("shapes-1.0/link.py")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        tar.addfile(link)
    return packed


def test_a_package_is_read_from_a_folder_and_from_archives(tmp_path: Path) -> None:
    """The same sources and tests; nothing of it is run."""
    folder = _folder(tmp_path)
    for path in (folder, *_archives(folder).values()):
        package = read_package(path)
        assert ("shapes-1.0", ["README", "setup.py", "shapes.py"]) == (package.name, list(package.sources.files))
        assert ["tests/test_shapes.py"] == list(package.tests)


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("test_a.py", "tests/test_a.py"),
        ("tests/unit/test_a.py", "tests/unit/test_a.py"),
        ("test/data.json", "tests/data.json"),
        ("pkg/tests/test_a.py", "tests/test_a.py"),
        ("conftest.py", "tests/conftest.py"),
    ],
)
def test_tests_lie_in_one_folder_beside_the_sources(path: str, name: str, tmp_path: Path) -> None:
    """Wherever the package has them."""
    (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / path).write_text("x = 1\n")
    package = read_package(tmp_path)
    assert ([name], []) == (list(package.tests), list(package.sources.files))


def test_tests_that_start_processes_are_left_out(tmp_path: Path) -> None:
    """The jail has no other process, and no network."""
    _folder(tmp_path)
    (tmp_path / "shapes-1.0" / "tests" / "test_cli.py").write_text("import subprocess\n\ndef test_it():\n    pass\n")
    package = with_passing(read_package(tmp_path / "shapes-1.0"))
    assert ["tests/test_shapes.py"] == list(package.tests)


def test_a_package_that_cannot_be_read_is_said(tmp_path: Path) -> None:
    """With its path; a file that is too large with its name."""
    broken = tmp_path / "broken.tar.gz"
    broken.write_bytes(b"no archive")
    for path in (broken, tmp_path / "absent.zip"):
        with pytest.raises(SuiteError, match=path.name):
            read_package(path)
    (tmp_path / "large").mkdir()
    (tmp_path / "large" / "data.py").write_bytes(b"#" * (5 << 20))
    with pytest.raises(SuiteError, match=r"data\.py.*at most"):
        read_package(tmp_path / "large")


def test_tests_that_do_not_pass_are_set_apart(package: PackageWithTests) -> None:
    assert ("tests/test_shapes.py::test_broken",) == package.broken
    assert 5 == len(package.passing)


def test_tests_whose_names_change_are_of_no_use(tmp_path: Path) -> None:
    """Their parameters stand in a set, whose order is another one in each process."""
    rows = ", ".join(f"('{letter}', ({number},))" for number, letter in enumerate("abcdefgh"))
    mark = f"@pytest.mark.parametrize(('a', 'b'), {{{rows}}})"
    text = f"import pytest\n\n{mark}\ndef test_set(a, b):\n    assert a\n"
    (tmp_path / "test_a.py").write_text(f"{text}\ndef test_steady():\n    assert True\n")
    assert ("tests/test_a.py::test_steady",) == with_passing(read_package(tmp_path)).passing


def test_a_mistake_is_noticed_by_some_tests_and_not_by_most(package: PackageWithTests) -> None:
    """Each names the tests that fail by it and why; the code that no test reaches is left as it is."""
    bugs = list(seed_bugs(package, 4, Random(1), tries=30))
    assert 4 == len(bugs)
    for bug in bugs:
        assert "shapes.py" == bug.file
        assert b"return x + 1" in bug.content
        assert b"# a comment" in bug.content
        assert 1 <= len(bug.failing) <= 2
        assert {*package.passing} == {*bug.failing, *bug.passing}
        assert all(bug.failing.values())


def test_the_solution_passes_and_the_folder_with_the_mistake_fails(package: PackageWithTests, tmp_path: Path) -> None:
    """With canaries, as a task of Harbor."""
    for number, bug in enumerate(seed_bugs(package, 2, Random(2), tries=30)):
        task = from_harbor(write_task(bug, tmp_path, number))
        assert () == task.needs
        fixed, unfixed = task.grade(package.sources), task.grade(bug.workspace())
        assert ("passed", "failed") == (fixed.status, unfixed.status)
        assert unfixed.suite is not None
        assert (0.0, 1.0) == (unfixed.suite.share("fail_to_pass"), unfixed.suite.share("pass_to_pass"))


def test_a_package_without_tests_has_no_mistakes(tmp_path: Path) -> None:
    (tmp_path / "shapes.py").write_text(FILES["shapes.py"])
    package = with_passing(read_package(tmp_path))
    assert ((), ()) == (package.passing, package.broken)
    assert [] == list(seed_bugs(package, 1, Random(0)))


SDISTS = cache_folder() / "sdists"


MOST_PACKAGES = 4
"""The smallest of those that are cached."""


@pytest.mark.slow
@pytest.mark.full
def test_the_tasks_of_real_packages_are_graded_rightly(root: Path) -> None:
    """Of cached source distributions a task each: the solution passes with canaries, the folder as it is fails."""
    listed = (root / "docs" / "examples" / "seeded_bugs" / "packages.txt").read_text(encoding="utf-8").split()
    cached = sorted(SDISTS.glob("*.tar.gz"), key=lambda path: path.stat().st_size) if SDISTS.is_dir() else []
    paths = [path for path in cached if path.name.rpartition("-")[0].replace("_", "-").lower() in listed]
    if not paths:
        pytest.skip(f"no source distributions in {SDISTS}; docs/examples/seeded_bugs/seeded_bugs.py fetches them")
    for path in paths[:MOST_PACKAGES]:
        package = with_passing(read_package(path))
        bug = next(seed_bugs(package, 1, Random(path.name)))
        expected = {"fail_to_pass": list(bug.failing), "pass_to_pass": bug.passing}
        fixed = check_suite(package.sources, package.tests, expected=expected)
        assert fixed.passed, (path.name, fixed.reason())
        assert "failed" == check_suite(bug.workspace(), package.tests, expected=expected).status


def test_the_script_makes_tasks_of_what_is_cached(root: Path, tmp_path: Path) -> None:
    """Without a network, where the source distribution lies in the cache; what cannot be used is said."""
    _archives(_folder(tmp_path))["zip"].unlink()
    (tmp_path / "empty-2.tar.gz").write_bytes(b"")
    script = root / "docs" / "examples" / "seeded_bugs" / "seeded_bugs.py"
    options = ["--cache", str(tmp_path), "--output", str(tmp_path / "tasks"), "--count", "2"]
    done = subprocess.run(
        [sys.executable, script, *options, "shapes", "empty==2"], capture_output=True, text=True, check=True
    )
    assert "2 tasks,     5 tests" in done.stdout
    assert "left out: package" in done.stdout
    assert ["shapes-1.0-1", "shapes-1.0-2"] == sorted(path.name for path in (tmp_path / "tasks").iterdir())


def test_names_in_any_writing_find_the_same_archive(root: Path, tmp_path: Path) -> None:
    """pip's names and those of files differ in dashes, dots and capitals."""
    import runpy

    names = runpy.run_path(str(root / "docs" / "examples" / "seeded_bugs" / "seeded_bugs.py"))
    for file in ("dotty_dict-1.3.1.tar.gz", "more-itertools-10.1.0.tar.gz", "more-itertools-10.2.0.tar.gz"):
        (tmp_path / file).write_bytes(b"")
    find = names["fetched"]
    assert "dotty_dict-1.3.1.tar.gz" == find("Dotty-Dict", tmp_path).name
    assert "more-itertools-10.2.0.tar.gz" == find("more_itertools", tmp_path).name
    assert "more-itertools-10.1.0.tar.gz" == find("more.itertools==10.1.0", tmp_path).name


def test_a_sealed_workspace_has_the_mistake(package: PackageWithTests) -> None:
    bug = next(seed_bugs(package, 1, Random(3), tries=30))
    files = bug.workspace().files
    assert SealedWorkspace({**package.sources.files, bug.file: bug.content}).digest == SealedWorkspace(files).digest
