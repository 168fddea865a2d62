"""Reward functions as a configuration, and packages that only the workers see."""

from __future__ import annotations

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
from rewardkit.loading.packages import overlay_for


def _wheel(folder: Path, bonus: float) -> Path:
    """A wheel of one module, made by hand: no network, no build."""
    path = folder / "tinybonus-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("tinybonus.py", f"BONUS = {bonus}\n")
        file.writestr("tinybonus-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: tinybonus\nVersion: 1.0\n")
        file.writestr("tinybonus-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        file.writestr("tinybonus-1.0.dist-info/RECORD", "")
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


def test_a_package_that_cannot_be_installed_is_named(tmp_path: Path) -> None:
    """pip's own words are in the error, and nothing is left behind."""
    missing = str(tmp_path / "nothing-1.0-py3-none-any.whl")
    with pytest.raises(PackageInstallError, match=r"nothing-1\.0"):
        overlay_for([missing])
    assert [] == [path for path in (tmp_path / "cache" / "packages").iterdir() if path.is_dir()]


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
