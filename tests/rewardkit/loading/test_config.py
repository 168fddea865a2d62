"""Reward functions as a configuration, and packages that only the workers see."""

from __future__ import annotations

import importlib.util
import pickle
import sys
import threading
import zipfile
from pathlib import Path
from typing import Any

import pytest

from rewardkit import (
    ConfigError,
    PackageInstallError,
    RewardFunctionsConfig,
    RewardFunctionsRuntimeConfig,
    RewardLoadError,
    Rollout,
    Runtime,
)
from rewardkit.loading.packages import located, overlay_for
from rewardkit.run_code import Package


def _wheel(folder: Path, bonus: float) -> Path:
    """A wheel of one module, made by hand: no network, no build."""
    path = folder / "tinybonus-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as file:
        file.writestr(zipfile.ZipInfo("tinybonus.py"), f"BONUS = {bonus}\n")
        file.writestr(
            zipfile.ZipInfo("tinybonus-1.0.dist-info/METADATA"),
            "Metadata-Version: 2.1\nName: tinybonus\nVersion: 1.0\n",
        )
        file.writestr(
            zipfile.ZipInfo("tinybonus-1.0.dist-info/WHEEL"),
            "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        )
        file.writestr(zipfile.ZipInfo("tinybonus-1.0.dist-info/RECORD"), "")
    return path


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REWARDKIT_CACHE", str(tmp_path / "cache"))


def test_packages_are_installed_once_and_seen_by_the_workers_only(tmp_path: Path) -> None:
    """Threads that ask at once get one folder, nothing half-made is left, and a runtime's workers import from it."""

    def uses_it(completion: str) -> float:
        import tinybonus

        return float(tinybonus.BONUS)

    settings = RewardFunctionsRuntimeConfig(packages=[str(_wheel(tmp_path, 2.5))])
    config = RewardFunctionsConfig({"bonus": uses_it}, settings)
    found: list[str] = []
    threads = [threading.Thread(target=lambda: found.extend(config.resolve().overlay)) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with Runtime(config, workers=1) as runtime:
        assert [2.5] == runtime.score([Rollout("p", "c")]).totals
    with pytest.raises(ModuleNotFoundError):
        __import__("tinybonus")
    installed = [str(path) for path in (tmp_path / "cache" / "packages").iterdir() if path.is_dir()]
    assert installed * 3 == found
    assert 1 == len(installed)


def _plain(completion: str) -> float:
    return 0.0


@pytest.mark.parametrize("missing", ["nothing-1.0-py3-none-any.whl", "broken-1.0-py3-none-any.whl"])
def test_a_package_that_cannot_be_installed_is_named(tmp_path: Path, missing: str) -> None:
    """A file that is not there, and one that pip refuses in its own words; nothing is left behind."""
    (tmp_path / "cache" / "packages").mkdir(parents=True)
    (tmp_path / "broken-1.0-py3-none-any.whl").write_text("")
    missing = str(tmp_path / missing)
    with pytest.raises(PackageInstallError, match=missing):
        RewardFunctionsConfig({"a": _plain}, RewardFunctionsRuntimeConfig(packages=[missing])).resolve()
    assert [] == [path for path in (tmp_path / "cache" / "packages").iterdir() if path.is_dir()]


USES_IT = "def uses_it(completion: str) -> float:\n    import tinybonus\n    return float(tinybonus.BONUS)\n"
YAML = "functions: {bonus: mine.py:uses_it}\nruntime:\n  packages: [./tinybonus-1.0-py3-none-any.whl]\n"


def _project(folder: Path, bonus: float) -> Path:
    """A configuration with a wheel beside it; each project's reward is the same."""
    folder.mkdir(exist_ok=True)
    _wheel(folder, bonus)
    (folder / "mine.py").write_text(USES_IT)
    (folder / "rewards.yaml").write_text(YAML)
    return folder / "rewards.yaml"


def _score(config: Path) -> tuple[float | None, str]:
    with Runtime(RewardFunctionsConfig.from_yaml(config), workers=1) as runtime:
        (outcome,) = runtime.score([Rollout("p", "c")])["bonus"]
        rebuilt = pickle.loads(pickle.dumps(runtime))
        assert [outcome.version] == [reward.version for reward in rebuilt.rewards.values()]
        rebuilt.close()
    return outcome.score, outcome.version


def test_a_local_wheel_counts_by_where_it_lies_and_what_it_is(tmp_path: Path) -> None:
    """One beside each YAML file, and one that is built anew at its path; the rewards' versions say it."""
    scores = [_score(_project(tmp_path / "a", 1.0)), _score(_project(tmp_path / "b", 2.0))]
    scores += [_score(_project(tmp_path / "a", 3.0)), _score(_project(tmp_path / "a", 1.0))]
    assert [1.0, 2.0, 3.0, 1.0] == [score for score, _ in scores]
    assert scores[0] == scores[3]
    assert 3 == len({version for _, version in scores})


@pytest.mark.parametrize(
    "spelling",
    ["{path}", "{path}[extra]", "{path}; python_version > '3'", "file://{path}", "tiny @ file://{path}", "{folder}"],
)
def test_every_spelling_of_a_local_package_counts_by_its_content(tmp_path: Path, spelling: str) -> None:
    """Also in folders whose names have spaces and brackets; what an installation leaves in a folder does not count."""
    folder = tmp_path / ("x y" if "file:" in spelling else "x [y] z")
    folder.mkdir()
    (folder / "setup.py").write_text("")
    path = str(_wheel(folder, 1.0))
    requirement = spelling.format(path=path.replace(" ", "%20") if "file:" in spelling else path, folder=folder)
    before = located([requirement])
    (folder / "build").mkdir()
    (folder / "build" / "left.py").write_text("")
    assert before == located([requirement, f" {requirement}"])
    _wheel(folder, 2.0)
    (again,) = located([requirement])
    assert before[0].requirement == again.requirement
    assert "" != before[0].digest != again.digest


@pytest.mark.parametrize(
    "requirement", ["sqlglot>=25", "a[b]==1; python_version>'3'", "https://a/b.whl", "git+https://a/b"]
)
def test_what_is_not_local_counts_by_its_text(requirement: str) -> None:
    assert [Package(requirement)] == located([requirement])


@pytest.mark.parametrize("package", ["-r wanted.txt", "-e ./folder", "--no-deps", "a==1 --hash=sha256:0"])
def test_options_of_pip_are_refused(package: str) -> None:
    with pytest.raises(ConfigError, match="has an option of pip"):
        RewardFunctionsRuntimeConfig(packages=[package])


def test_what_a_killed_installation_left_does_not_count(tmp_path: Path) -> None:
    """It goes with the next one."""
    found = located([str(_wheel(tmp_path, 1.0))])
    folder = overlay_for(found)
    left = folder.rename(folder.with_name(f"{folder.name}-left"))
    (left / "tinybonus.py").write_text("BONUS = ")
    assert folder == overlay_for(found)
    assert "BONUS = 1.0\n" == (folder / "tinybonus.py").read_text()
    assert [folder] == [path for path in folder.parent.iterdir() if path.is_dir()]


def test_a_wheel_that_is_another_one_meanwhile_is_refused(tmp_path: Path) -> None:
    """As on another machine, whose file at that path is not the driver's."""
    found = located([str(_wheel(tmp_path, 1.0))])
    _wheel(tmp_path, 2.0)
    with pytest.raises(PackageInstallError, match="is another file than when the runtime was made"):
        overlay_for(found)


UV = """#!/bin/sh
while [ $# -gt 0 ]; do
  [ "$1" = --target ] && target=$2
  shift
done
echo "BONUS = 4.0" > "$target/tinybonus.py"
"""


def test_an_environment_without_pip_gets_uv_or_the_fix(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """uv's own environments have no pip."""
    found = located([str(_wheel(tmp_path, 1.0))])
    find_spec = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "pip" else find_spec(name))
    monkeypatch.setattr(sys, "_base_executable", "/bin/false", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    with pytest.raises(PackageInstallError, match="-m ensurepip, or install uv"):
        overlay_for(found)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "uv").write_text(UV)
    (tmp_path / "bin" / "uv").chmod(0o755)
    assert "BONUS = 4.0\n" == (overlay_for(found) / "tinybonus.py").read_text()


def test_a_yaml_file_names_rewards_beside_it(tmp_path: Path) -> None:
    """References start from the file's folder; the names in the file are the rewards' names."""
    (tmp_path / "mine.py").write_text(
        "from rewardkit import reward\n"
        "@reward\ndef one(completion: str) -> float:\n    return 1.0\n"
        "def two(completion: str) -> float:\n    return 2.0\n"
    )
    (tmp_path / "rewards.yaml").write_text("functions:\n  first: mine.py:one\n  second: mine.py:two\n")
    with Runtime(RewardFunctionsConfig.from_yaml(tmp_path / "rewards.yaml"), lane="inline") as runtime:
        assert {"first": [1.0], "second": [2.0]} == runtime.score([Rollout("p", "c")]).scores


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("functions: {", "rewards.yaml: not YAML"),
        ("- a\n", "expected a mapping"),
        ("functions:\n  a: b.py\n  a: c.py\n", r"rewards.yaml:3: 'a' is there twice"),
        ("functions: {a: b.py}\nruntime: {}\n'functions': {}\n", r"rewards.yaml:3: 'functions' is there twice"),
        ("runtime: {}\n", "field 'functions' is missing"),
        ("functions: {}\n", "functions: expected a mapping of names"),
        ("functions: {a: b.py}\nrewards: {}\n", "unknown field 'rewards'"),
        ("functions: {a: b.py}\nruntime: {pakages: []}\n", "unknown field 'pakages'; the fields are env, packages"),
        ("functions: {a: b.py}\nruntime: {packages: sqlglot}\n", "runtime.packages: expected a list"),
        ("functions: {a: b.py}\nruntime: {env: {A: 1}}\n", "runtime.env: expected names and values that are strings"),
        *[
            (
                f"functions: {{a: b.py}}\nruntime: {{env: {{{name}: none}}}}\n",
                f"runtime.env: '{name}' is not for a conf",
            )
            for name in (
                "REWARDKIT_SANDBOX_LEVEL",
                "REWARDKIT_SANDBOX_PROFILE",
                "REWARDKIT_WORKSPACES",
                "LD_PRELOAD",
                "LD_LIBRARY_PATH",
                "PYTHONPATH",
                "PYTHONHOME",
            )
        ],
    ],
)
def test_a_wrong_configuration_is_named(tmp_path: Path, text: str, words: str) -> None:
    """The message has the file, the field and what was expected."""
    (tmp_path / "rewards.yaml").write_text(text)
    with pytest.raises(ConfigError, match=words):
        RewardFunctionsConfig.from_yaml(tmp_path / "rewards.yaml")


def test_a_yaml_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    """No such file is our error."""
    with pytest.raises(ConfigError, match=r"absent\.yaml: No such file"):
        RewardFunctionsConfig.from_yaml(tmp_path / "absent.yaml")


@pytest.mark.parametrize(
    ("reference", "words"),
    [
        ("absent.py", "absent.py: no such file"),
        ("broken.py", r"broken.py does not import:(.|\n)*nmupy"),
        ("option.py", r"^\S+option.py:2: reward 'f': unknown option 'timeout'; did you mean 'timeout_s'\? [^\n]*$"),
        ("option", r"^\S+option.py:2: reward 'f': unknown option 'timeout'; did you mean 'timeout_s'\? [^\n]*$"),
        ("empty.py", "no reward in it"),
        (".", r"'\.' is a folder; name a file in it, such as my_rewards\.py"),
        ("./", r"'\./' is a folder; "),
        ("mine.py:corect", "did you mean 'correct'"),
        ("twins.py:frst", r"did you mean 'first'\?"),
        ("mine.py:NUMBER", "is a int, not a reward"),
        ("no_such_module:f", "no module or built-in reward named 'no_such_module'"),
        ("math_anser", r"no module or built-in reward named 'math_anser'; did you mean 'math_answer'\?$"),
        ("json:lods", "did you mean 'loads'"),
        (":f", "expected file.py"),
    ],
)
def test_a_reference_that_leads_nowhere_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reference: str, words: str
) -> None:
    """The message has the reference, the reason and a near name."""
    (tmp_path / "broken.py").write_text("import nmupy\n")
    (tmp_path / "option.py").write_text("import rewardkit\n@rewardkit.reward(timeout=1)\ndef f(): ...\n")
    (tmp_path / "empty.py").write_text("NUMBER = 1\n")
    (tmp_path / "mine.py").write_text(
        "from rewardkit import reward\nNUMBER = 7\n@reward\ndef correct(completion: str) -> float:\n    return 1.0\n"
    )
    (tmp_path / "twins.py").write_text(
        "from rewardkit import reward\n"
        "def made(n):\n    def first(completion: str) -> float:\n        return n\n    return reward(first)\n"
        "first, second = made(1.0), made(2.0)\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    rewards: Any = [reference]
    with pytest.raises(RewardLoadError, match=words):
        Runtime(rewards)
