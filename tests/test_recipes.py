"""Recipes: their pages say what their files and the commands say, and ``rewardkit new --recipe`` starts from each."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import re
import shlex
import shutil
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from tiny_grpo import third_party_warnings, tiny_model
from typer.testing import CliRunner

from rewardkit import Rollout, Run, Runtime
from rewardkit.cli.new import recipe_names
from rewardkit.cli.program import app
from rewardkit.testing import FakeJudge

NAMES = recipe_names()


@pytest.fixture(scope="module")
def pages(root: Path) -> ModuleType:
    """What writes the pages."""
    return load_path(root / "docs" / "recipes_page.py")


def load_path(path: Path) -> ModuleType:
    """Import a file as a module."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _new(*arguments: str) -> tuple[int, str, str]:
    done = CliRunner().invoke(app, ["new", *arguments], prog_name="rewardkit")
    return done.exit_code, done.stdout, done.stderr


def test_there_is_a_recipe_for_each_kind_of_task() -> None:
    """Ten of them."""
    assert [
        *("classification", "code-with-tests", "json-extraction", "long-reasoning", "mathematics"),
        *("retrieval", "sql", "style", "summaries", "tool-use"),
    ] == NAMES


@pytest.mark.cases(3)
@pytest.mark.parametrize("name", NAMES)
def test_a_section_is_up_to_date(name: str, pages: ModuleType) -> None:
    """Its files, what its cases come to, the scores of completions that cheat; ``python docs/recipes_page.py``."""
    text = pages.written(pages.RECIPES / name.replace("-", "_"), pages._before(name))
    assert text == pages.section_of(name)
    assert "as expected\n" in text
    assert "not as expected" not in text


QUICK = "json-extraction"
"""The recipe whose audit takes the least."""
one_of_them = pytest.mark.parametrize(
    "name", [QUICK, *(pytest.param(name, marks=pytest.mark.full) for name in NAMES if name != QUICK)]
)


@pytest.mark.slow
@one_of_them
def test_a_section_says_what_the_audit_says(name: str, pages: ModuleType) -> None:
    """Its last lines."""
    assert pages._before(name) == pages._audited(pages.RECIPES / name.replace("-", "_"))


@pytest.mark.slow
@third_party_warnings
@one_of_them
def test_a_section_plugs_into_trl(
    name: str, pages: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its code trains for a step, here with a tiny model, and no call fails."""
    import trl

    trainer_of, model = trl.GRPOTrainer, str(tiny_model(tmp_path / "model"))

    def small(_: str, *arguments: Any, **options: Any) -> trl.GRPOTrainer:
        sizes = {"max_steps": 1, "num_generations": 4, "per_device_train_batch_size": 4, "max_completion_length": 8}
        plain = {"use_cpu": True, "bf16": False, "report_to": "none", "save_strategy": "no", "disable_tqdm": True}
        return trainer_of(model, *arguments, args=trl.GRPOConfig(str(tmp_path / "out"), **sizes, **plain), **options)

    folder = shutil.copytree(pages.RECIPES / name.replace("-", "_"), tmp_path / "recipe")
    monkeypatch.setattr(trl, "GRPOTrainer", small)
    monkeypatch.setattr("datasets.config.HF_DATASETS_CACHE", tmp_path / "cache")
    monkeypatch.syspath_prepend(folder)
    code = re.search(r": training\n\n```python no-run\n(.*?)```", pages.section_of(name), re.DOTALL)
    assert code is not None
    with contextlib.chdir(folder):
        exec(code[1], {})
        with Run.open(f"runs/{name}") as run:
            outcomes = [outcome for one in run.completions() for outcome in one.outcomes.values()]
    assert 4 == len(outcomes)
    assert [] == [outcome.error for outcome in outcomes if outcome.cause]


def _commands(printed: str) -> list[list[str]]:
    """Return the commands of rewardkit that a text tells to run, in their order."""
    lines = re.findall(r"^(?:next: +| +|\$ )rewardkit (.*)$", printed, re.MULTILINE)
    return [shlex.split(line) for line in lines]


def _run(command: list[str]) -> tuple[int, str]:
    done = CliRunner().invoke(app, command, prog_name="rewardkit")
    return done.exit_code, done.output


@pytest.mark.cases(2)
@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_a_project_starts_from_a_recipe(name: str, tmp_path: Path) -> None:
    """In a folder of its name: what ``new`` prints works in its order, and nothing is overwritten."""
    with contextlib.chdir(tmp_path):
        code, out, _ = _new("--recipe", name)
        assert 0 == code
        commands = _commands(out)
        assert ["test", "score", "check", "audit"] == [command[0] for command in commands]
        assert (0, True) == (_run(commands[0])[0], "as expected" in _run(commands[0])[1])
        assert 0 == _run([*commands[1], "--fail-on-error"])[0]
        code, _, err = _new("--recipe", name)
        assert (2, True) == (code, "is there already" in err)


@pytest.mark.slow
@one_of_them
def test_a_section_is_followed_as_printed(name: str, pages: ModuleType, tmp_path: Path) -> None:
    """Its commands, in the folder that its first one makes; then those of ``new``, which end as the page says."""
    text = pages.section_of(name)
    with contextlib.chdir(tmp_path):
        make, *others = _commands(text)
        code, printed, _ = _new(*make[1:])
        assert (0, True) == (code, f"$ cd {name}\n" in text)
        verdict = {"passed": 0, "NOT passed": 1, "not judged": 4}[pages._before(name).partition(":")[0]]
        assert [0, verdict] == [_run(command)[0] for command in _commands(printed)[2:]]
        os.chdir(name)
        assert [] == [command for command in others if _run(command)[0] not in (0, verdict)]


@pytest.mark.parametrize(
    ("recipe", "make", "verdict", "total"),
    [
        ("style", "judged_style", {"concrete": (5, "so"), "kind": (3, "so")}, 0.5 * 1.0 + 0.5 * 0.75),
        ("summaries", "judged_summary", {"true": (5, "so"), "readable": (1, "so")}, 0.6 * 1.0 + 0.4 * 2 / 3),
    ],
)
def test_a_recipes_judge_grades_what_rules_do_not(
    recipe: str, make: str, verdict: dict[str, tuple[int, str]], total: float, pages: ModuleType
) -> None:
    """Its part of the score is the weighted mean of the grades."""
    reply = json.dumps({name: {"reason": reason, "score": score} for name, (score, reason) in verdict.items()})
    made = getattr(load_path(pages.RECIPES / recipe / f"{recipe}.py"), make)("any", client=FakeJudge(reply))
    rows = {
        "style": Rollout("Write.", "The lamp lights a desk for ten hours. Its battery can be replaced.", {}),
        "summaries": Rollout("A text.", "From May the park is open and free of cars.", {"answer": ["May", "park"]}),
    }
    with Runtime([made], lane="inline") as runtime:
        assert [pytest.approx(total, abs=0.01)] == runtime.score([rows[recipe]]).totals


def test_a_confidence_nested_without_end_is_none(pages: ModuleType) -> None:
    """It is no JSON that anyone reads, and the call does not fail."""
    calibrated = load_path(pages.RECIPES / "classification" / "classification.py").calibrated
    assert 0.0 == calibrated(completion='{"label": ' + "[" * 100_000 + "}", label="positive").value


def test_names_are_helped_with(tmp_path: Path) -> None:
    """A near one is offered, and all are listed; NAME and a recipe exclude each other."""
    with contextlib.chdir(tmp_path):
        code, _, err = _new("--recipe", "json-extracton")
        assert 2 == code
        assert "did you mean 'json-extraction'" in err
        assert 2 == _new("--recipe", "sql", "mine")[0]
        code, _, err = _new()
        assert 2 == code
        assert all(name in err for name in NAMES)
        code, _, err = _new("--recipe", "sql", "--dir", "none")
        assert (2, True) == (code, "no such folder" in err)
        assert [] == list(tmp_path.iterdir())


def test_a_folder_of_ones_own_and_json(tmp_path: Path) -> None:
    """The files are named in the answer."""
    code, out, _ = _new("--recipe", "tool_use", "--dir", str(tmp_path), "--json")
    told = json.loads(out)
    assert 0 == code
    assert all(Path(told[name]).is_file() for name in ("reward_file", "cases_file", "data_file"))
