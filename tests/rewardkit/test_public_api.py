"""The public names, what importing costs, and the floors."""

from __future__ import annotations

import importlib
import importlib.metadata
import pickle
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from types import ModuleType

import public_signatures
import pytest

import rewardkit
import rewardkit.errors
import sandbox.errors
from rewardkit.loading.same_name import DISTRIBUTION, own_distributions

HEAVY = ("torch", "trl", "transformers", "openai", "httpx2", "ray", "starlette", "uvicorn", "datasets", "peft")


def test_the_version_is_that_of_the_package(root: Path) -> None:
    """``rewardkit.__version__`` is the version in pyproject.toml, and what pip says of each installation of ours."""
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert (rewardkit.__version__, DISTRIBUTION) == (project["version"], project["name"])
    installed = own_distributions(importlib.metadata.packages_distributions())
    assert {rewardkit.__version__} >= {importlib.metadata.version(name) for name in installed}


@pytest.mark.parametrize("package", ["rewardkit", "rewardkit.cli", "sandbox", "builtin_rewards", "trainer_adapter"])
def test_importing_loads_nothing_heavy(package: str) -> None:
    """No package loads torch, trl, openai or a web framework by being imported with its public names."""
    probe = f"import sys\nfrom {package} import *\nprint(*[m for m in {HEAVY!r} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True)
    assert "" == done.stdout.strip()


@pytest.mark.parametrize(
    ("module", "root_error", "public"),
    [
        pytest.param(rewardkit.errors, rewardkit.RewardError, rewardkit.__all__, id="rewardkit"),
        pytest.param(sandbox.errors, sandbox.errors.SandboxError, sandbox.errors.__all__, id="sandbox"),
    ],
)
def test_every_error_is_in_the_tree_that_its_module_draws_and_pickles(
    module: ModuleType, root_error: type[Exception], public: list[str]
) -> None:
    """Each class stands in the drawing, derives from the root of the tree, is public, and survives a pickle."""
    assert module.__doc__ is not None
    drawn = {*re.findall(r"[├└]── (\w+)", module.__doc__), root_error.__name__}
    defined = {name for name, value in vars(module).items() if isinstance(value, type) and issubclass(value, Exception)}
    assert defined == drawn
    for name in defined:
        error = getattr(module, name)("what", "why")
        again = pickle.loads(pickle.dumps(error))
        assert (type(error), error.args) == (type(again), again.args)
        assert name in public
        assert isinstance(error, root_error)


def test_what_is_not_used_is_not_imported() -> None:
    """The package alone imports neither rewards nor the runtime; public names and modules are there on demand."""
    probe = (
        "import sys, rewardkit\n"
        "parts = ('rewardkit.declare', 'rewardkit.runtime', 'sandbox.workers')\n"
        "assert not [name for name in sys.modules if name.startswith(parts)]\n"
        "assert {*rewardkit.__all__} <= {*dir(rewardkit)}\n"
        "assert all(getattr(rewardkit, name) is getattr(rewardkit, name) for name in rewardkit.__all__)\n"
        "assert rewardkit.testing.cases.__module__ and not hasattr(rewardkit, 'nothing')\n"
    )
    subprocess.run([sys.executable, "-c", probe], check=True)


def test_importing_has_no_effects() -> None:
    """Importing starts no thread, sets up no logging and reads no environment of ours."""
    probe = (
        "import logging, threading, sandbox.workers.pool\nfrom rewardkit import *\n"
        "assert threading.active_count() == 1 and not logging.getLogger().handlers"
    )
    subprocess.run([sys.executable, "-c", probe], check=True)


def test_all_modules_say_what_they_own() -> None:
    """Every module of the four packages starts with a docstring."""
    silent = []
    for package in ("rewardkit", "sandbox", "builtin_rewards", "trainer_adapter"):
        folder = Path(importlib.import_module(package).__file__ or "").parent
        for path in folder.rglob("*.py"):
            if not path.read_text().lstrip().startswith(('"""', 'r"""', "#!")):
                silent.append(str(path))
    assert [] == silent


def test_a_public_signature_changes_with_a_line_in_the_changelog(root: Path) -> None:
    """Each difference from the last release is named under "Unreleased": the callable, and the parameter."""
    before = public_signatures.from_text(public_signatures.RELEASED.read_text(encoding="utf-8"))
    differences = public_signatures.changes(before, public_signatures.signatures())
    assert [] == public_signatures.untold(differences, (root / "CHANGELOG.md").read_text(encoding="utf-8"))


def test_every_kind_of_change_of_a_signature_is_seen() -> None:
    """A parameter that comes, goes, or has another type, default or place, and a callable that comes or goes."""
    before = {"m.f": {"a": "keyword_only int", "b": "keyword_only = 1"}, "m.gone": {}}
    changed = [
        ({"m.f": {"a": "keyword_only int"}, "m.gone": {}}, [("m.f", "b")]),
        ({"m.f": {**before["m.f"], "c": "keyword_only"}, "m.gone": {}}, [("m.f", "c")]),
        ({"m.f": {**before["m.f"], "b": "keyword_only = 2"}, "m.gone": {}}, [("m.f", "b")]),
        ({"m.f": dict(reversed(before["m.f"].items())), "m.gone": {}}, [("m.f", "")]),
        ({"m.f": before["m.f"], "m.new": {}}, [("m.gone", ""), ("m.new", "")]),
    ]
    assert [expected for _, expected in changed] == [public_signatures.changes(before, after) for after, _ in changed]
    text = "## [Unreleased]\n\n- `f` takes `c`.\n\n## [0.1.0]\n\n- `f` takes `b`.\n"
    assert ["m.f: b"] == public_signatures.untold([("m.f", "b"), ("m.f", "c")], text)
    assert before == public_signatures.from_text(public_signatures.to_text(before))
