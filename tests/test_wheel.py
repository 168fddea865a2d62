"""What is published: the source distribution is what git has, the wheel the packages, and both say who they are."""

from __future__ import annotations

import email
import importlib.util
import re
import runpy
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from email.message import Message
from pathlib import Path
from typing import NamedTuple

import pytest
from release_check import faults_of_checkout, faults_of_files, metadata_of_source, metadata_of_wheel

PACKAGES = {"rewardkit", "sandbox", "builtin_rewards", "trainer_adapter"}
GENERATED = re.compile(r"PKG-INFO|setup\.cfg|[\w.]+\.egg-info/.+")  # what setuptools writes into a source distribution


class BuiltFiles(NamedTuple):
    """What was built: the files that git has, a source distribution, the wheel of it and the wheel of a checkout."""

    listed: set[str]
    source: Path
    wheel: Path
    wheel_of_checkout: Path


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory, root: Path) -> BuiltFiles:
    """Everything, built from what git would check out."""
    if importlib.util.find_spec("build") is None:
        pytest.skip("the package 'build' is not installed")
    checkout, out = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("dist")
    git = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"], cwd=root, capture_output=True, text=True
    )
    if git.returncode != 0:
        pytest.skip("not a git checkout: what belongs to the project is not known")
    listed = {name for name in git.stdout.splitlines() if (root / name).is_file()}
    for name in listed:
        (checkout / name).parent.mkdir(parents=True, exist_ok=True)
        (checkout / name).write_bytes((root / name).read_bytes())
    for kind in ([], ["--wheel"]):  # by default the wheel is built from the source distribution
        command = [sys.executable, "-m", "build", *kind, "--outdir", str(out / "".join(kind)), str(checkout)]
        done = subprocess.run(command, capture_output=True, text=True)
        assert 0 == done.returncode, done.stdout[-2000:] + done.stderr[-2000:]
    (source,), (wheel,) = out.glob("*.tar.gz"), out.glob("*.whl")
    (wheel_of_checkout,) = (out / "--wheel").glob("*.whl")
    wheel_of_checkout = wheel_of_checkout.replace(tmp_path_factory.mktemp("second") / wheel_of_checkout.name)
    (out / "--wheel").rmdir()
    return BuiltFiles(listed, source, wheel, wheel_of_checkout)


@pytest.fixture
def metadata(built: BuiltFiles) -> Message:
    """The wheel's metadata."""
    return email.message_from_string(metadata_of_wheel(built.wheel))


def test_the_wheel_holds_the_packages_and_nothing_else(built: BuiltFiles, root: Path) -> None:
    """Each file of the packages is in it, with styles, pages, drivers, the skill and type markers; no test or page."""
    names = set(zipfile.ZipFile(built.wheel).namelist())
    own = {name for name in names if ".dist-info/" not in name}
    assert PACKAGES == {name.split("/")[0] for name in own}
    expected = {name for name in built.listed if name.split("/")[0] in PACKAGES}
    assert set() == expected ^ own
    assert expected >= {f"{package}/py.typed" for package in PACKAGES} | {"rewardkit/skills/rewardkit/SKILL.md"}
    assert any(name.endswith("licenses/LICENSE") for name in names)


def test_the_source_distribution_is_what_git_has(built: BuiltFiles) -> None:
    """So it can be built and tested by itself, and nothing else that lay in the folder is in it."""
    with tarfile.open(built.source) as files:
        names = {member.name.partition("/")[2] for member in files if member.isfile()}
    assert set() == {name for name in names - built.listed if not GENERATED.fullmatch(name)}
    assert set() == built.listed - names


def test_the_wheel_of_the_source_distribution_is_that_of_the_checkout(built: BuiltFiles) -> None:
    """File by file, but for the list of them."""
    first, second = (
        {name: archive.read(name) for name in archive.namelist() if not name.endswith("/RECORD")}
        for archive in map(zipfile.ZipFile, (built.wheel, built.wheel_of_checkout))
    )
    assert first == second


def test_the_metadata_say_what_an_index_shows(metadata: Message, root: Path) -> None:
    """Name, licence, systems, Pythons, and urls of the one address."""
    settings = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
    project, repository = settings["project"], settings["tool"]["rewardkit"]["repository"]
    assert (project["name"], project["version"]) == (metadata["Name"], metadata["Version"])
    assert ("Apache-2.0", "text/markdown") == (metadata["License-Expression"], metadata["Description-Content-Type"])
    assert {*project["classifiers"]} == {*metadata.get_all("Classifier", [])}
    assert {"Operating System :: POSIX :: Linux", "Operating System :: MacOS"} <= {*project["classifiers"]}
    addresses = dict(line.split(", ") for line in metadata.get_all("Project-URL", []))
    assert {"Repository", "Documentation", "Changelog", "Issues"} == addresses.keys()
    assert all(address.startswith(repository) for address in addresses.values())
    for path in (address.partition(f"/blob/v{project['version']}/")[2] for address in addresses.values()):
        assert (root / path).exists()


def test_the_address_is_written_once(built: BuiltFiles, root: Path) -> None:
    """Whoever sets it in pyproject.toml has set it everywhere."""
    settings = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
    address = settings["tool"]["rewardkit"]["repository"].encode().partition(b"://")[2]
    assert ["pyproject.toml"] == [name for name in sorted(built.listed) if address in (root / name).read_bytes()]


def test_readme_on_an_index_has_no_link_that_leads_nowhere(metadata: Message, root: Path) -> None:
    """Each relative link and picture of README is an absolute one of a file that is there, and nothing else differs."""
    text = str(metadata.get_payload())
    settings = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
    repository, version = settings["tool"]["rewardkit"]["repository"], settings["project"]["version"]
    targets = re.findall(r"\]\(([^)\s]+)\)", text)
    assert [] == [target for target in targets if "://" not in target and not target.startswith("#")]
    relative = re.sub(rf"{re.escape(repository)}/(?:blob|raw)/v{re.escape(version)}/", "", text)
    assert (root / "README.md").read_text(encoding="utf-8").strip() == relative.strip()
    pictures = re.findall(r"!\[[^\]]*\]\(([^)]+)\)", text)
    assert pictures
    assert all(f"{repository}/raw/v{version}/" in picture for picture in pictures)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[a](docs/a.md#b)", "[a](R/blob/v1/docs/a.md#b)"),
        ("![a](a.png)", "![a](R/raw/v1/a.png)"),
        ("[![a](a.png)](b.md)", "[![a](R/raw/v1/a.png)](R/blob/v1/b.md)"),
        ("[a](https://b.c/d) [e](#f) x[0](y)", "[a](https://b.c/d) [e](#f) x[0](R/blob/v1/y)"),
    ],
    ids=["a page", "a picture", "a picture that is a link", "absolute, and in the page"],
)
def test_relative_links_become_absolute(text: str, expected: str, root: Path) -> None:
    """Pages by the way that shows them, pictures by the way that has their bytes."""
    assert expected == runpy.run_path(str(root / "setup.py"), run_name="setup")["absolute"](text, "R", "1")


def test_a_placeholder_is_not_published(built: BuiltFiles, root: Path) -> None:
    """Nor a version that is not the tag's, nor one without a heading in the changelog, nor a file too many."""
    faults = [*faults_of_checkout(root, "v9.9"), *faults_of_files(built.wheel.parent, "v9.9")]
    for part in ("under [tool.rewardkit] is", "expected the tag 'v", ".whl: its version is", ".tar.gz: its version is"):
        assert 1 == len([fault for fault in faults if part in fault])
    assert 3 == len([fault for fault in faults if "a placeholder" in fault])
    assert ["expected one wheel and one source distribution"] == [
        fault.partition(": ")[2].partition(",")[0] for fault in faults_of_files(built.wheel_of_checkout.parent, "v9.9")
    ]


def test_a_release_with_an_address_is_published(tmp_path: Path) -> None:
    """Where address, tag, version and changelog agree."""
    (tmp_path / "pyproject.toml").write_text(
        '[project]\nversion = "1.2.0"\n[tool.rewardkit]\nrepository = "https://code.host/us/rewardkit"\n'
    )
    (tmp_path / "CHANGELOG.md").write_text("## [Unreleased]\n\n## [1.2.0] - 2026-12-01\n")
    assert [] == [*faults_of_checkout(tmp_path, "v1.2.0")]
    (tmp_path / "CHANGELOG.md").write_text("## [Unreleased]\n\n## [1.1.0] - 2026-12-01\n")
    assert ["CHANGELOG.md: no heading '## [1.2.0] - DATE'"] == [*faults_of_checkout(tmp_path, "v1.2.0")]


def test_both_files_have_the_same_metadata(built: BuiltFiles) -> None:
    """What an index reads of the one holds for the other."""
    wheel, source = metadata_of_wheel(built.wheel), metadata_of_source(built.source)
    assert [*email.message_from_string(wheel).items()] == [*email.message_from_string(source).items()]


def test_the_wheel_works_by_itself(built: BuiltFiles, tmp_path: Path) -> None:
    """Unpacked away from the checkout, its runtime scores in worker processes and its command answers."""
    zipfile.ZipFile(built.wheel).extractall(tmp_path / "site")
    script = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "import rewardkit\n"
        "assert rewardkit.__file__.startswith(sys.argv[1]), rewardkit.__file__\n"
        "from rewardkit import Rollout, Runtime\n"
        "def n(completion: str) -> float:\n    return float(len(completion))\n"
        "with Runtime([n], workers=1) as runtime:\n    print(runtime.score([Rollout('p', 'abc')]).totals)\n"
    )
    command = [sys.executable, "-c", script, str(tmp_path / "site")]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert ("[3.0]\n", "") == (done.stdout, done.stderr)
