"""The wheel: it holds the four packages and nothing else, and works where nothing but it is installed."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

PACKAGES = {"rewardkit", "sandbox", "builtin_rewards", "trainer_adapter"}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory, root: Path) -> Path:
    """The wheel, built from what git would check out."""
    if importlib.util.find_spec("build") is None:
        pytest.skip("the package 'build' is not installed")
    source, out = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("wheel")
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"], cwd=root, capture_output=True, text=True
    )
    if listed.returncode != 0:
        pytest.skip("not a git checkout: what belongs to the project is not known")
    for name in listed.stdout.splitlines():
        if (root / name).is_file():
            (source / name).parent.mkdir(parents=True, exist_ok=True)
            (source / name).write_bytes((root / name).read_bytes())
    command = [sys.executable, "-m", "build", "--wheel", "--outdir", str(out), str(source)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert 0 == done.returncode, done.stdout[-2000:] + done.stderr[-2000:]
    (built,) = out.glob("*.whl")
    return built


def test_the_wheel_holds_the_packages_and_nothing_else(wheel: Path, root: Path) -> None:
    """Every module, style and type marker is in it; no test, example or document is."""
    names = set(zipfile.ZipFile(wheel).namelist())
    assert PACKAGES == {name.split("/")[0] for name in names if ".dist-info/" not in name}
    files = [path for package in PACKAGES for kind in ("*.py", "*.css") for path in (root / package).rglob(kind)]
    expected = {str(path.relative_to(root)) for path in files} | {f"{package}/py.typed" for package in PACKAGES}
    expected.add("rewardkit/skills/rewardkit/SKILL.md")
    assert set() == expected - names
    assert any(name.endswith("licenses/LICENSE") for name in names)


def test_the_wheel_works_by_itself(wheel: Path, tmp_path: Path) -> None:
    """Unpacked away from the checkout, its runtime scores in worker processes and its command answers."""
    zipfile.ZipFile(wheel).extractall(tmp_path / "site")
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
