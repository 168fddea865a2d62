"""What coding assistants write: the skill that they read is in the wheel, and their usual mistakes name the fix."""

from __future__ import annotations

import runpy
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rewardkit import DataError, RewardDefinitionError, Rollout, Runtime, group_reward, reward
from rewardkit.loading.registry import entry_points


def _score(function: Callable[..., Any]) -> str:
    """Return the error of a reward's call."""
    with Runtime([reward(function)], lane="inline") as runtime:
        (outcome,) = next(iter(runtime.score([Rollout("2+2=", "4", {"answer": "4"})]).outcomes.values()))
    return str(outcome.error)


def _trl(prompts, completions, answer, **kwargs):  # type: ignore[no-untyped-def]
    return [1.0 for _ in completions]


def _positional(completion, answer, /):  # type: ignore[no-untyped-def]
    return 1.0


def _verl(data_source, solution_str, ground_truth, extra_info=None):  # type: ignore[no-untyped-def]
    return 1.0


def _state(completion: str, state: object) -> float:
    return 1.0


def _right(completion: str, answer: str) -> float:
    return float(completion == answer)


def _score_dicts() -> None:
    with Runtime([reward(_right)], lane="inline") as runtime:
        runtime.score([{"prompt": "2+2=", "completion": "4"}])  # type: ignore[list-item]


def _import(name: str) -> None:
    exec(f"from rewardkit import {name}")


MISTAKES: dict[str, tuple[Callable[[], object], type[Exception], str]] = {
    "TRL's form": (lambda: reward(_trl), RewardDefinitionError, "hand over from_trl("),
    "TRL's form for a group": (lambda: group_reward(_trl), RewardDefinitionError, "in_groups=True"),
    "verl's form": (lambda: reward(_verl), RewardDefinitionError, "from_verl("),
    "arguments by position": (lambda: reward(_positional), RewardDefinitionError, "rewards are filled by name"),
    "only *args": (lambda: reward(lambda *args: 1.0), RewardDefinitionError, "rewards are filled by name"),
    "timeout": (lambda: reward(timeout=5)(_right), RewardDefinitionError, "did you mean 'timeout_s'?"),  # type: ignore[call-overload]
    "weight": (lambda: reward(weight=0.5)(_right), RewardDefinitionError, "0.8 * _right + 0.2 * other"),  # type: ignore[call-overload]
    "rows as dictionaries": (_score_dicts, DataError, "Rollout(prompt, completion, {"),
    "a call with lists": (
        lambda: reward(_right)(completions=["4"], answer=["4"]),  # type: ignore[call-arg]
        TypeError,
        "did you mean 'completion'?",
    ),
    "a call that lacks a column": (lambda: reward(_right)(completion="4"), TypeError, "it takes completion, answer"),  # type: ignore[call-arg]
    "a judge from rewardkit": (lambda: _import("LLMJudge"), ImportError, "from builtin_rewards.judge import LLMJudge"),
    "a built-in from rewardkit": (lambda: _import("math_answer"), ImportError, "from builtin_rewards.math import"),
    "the adapter from rewardkit": (lambda: _import("RewardAdapter"), ImportError, "from trainer_adapter import"),
    "verifiers' state": (lambda: _score(_state), DataError, "here that is 'messages'"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_usual_mistake_is_an_error_that_names_the_fix(mistake: str) -> None:
    make, error, fix = MISTAKES[mistake]
    with pytest.raises(error) as raised:
        make()
    assert fix in str(raised.value)


@pytest.mark.parametrize(
    ("value", "fix"),
    [
        ("1.0", "Score(number, reason=text)"),
        ([1.0], "from_trl of rewardkit.moving"),
        ((1.0, "why"), "Score(number, reason)"),
        ({"score": 1.0}, "Score(number, metrics={...})"),
    ],
    ids=["text", "list", "tuple", "dict"],
)
def test_a_value_that_is_no_score_says_what_to_return(value: object, fix: str) -> None:
    """The call fails, and its error has the form that was meant."""

    def returns(completion: str) -> object:
        return value

    assert fix in _score(returns)


def test_keywords_of_any_name_get_the_columns() -> None:
    """``**kwargs`` is no mistake: it has every column as the data has it."""

    def any_column(completion: str, **kwargs: object) -> float:
        return float(completion == kwargs["answer"])

    assert "None" == _score(any_column)


def test_every_name_that_is_elsewhere_is_there() -> None:
    """The homes that errors name have the names."""
    import rewardkit

    for name, home in rewardkit._ELSEWHERE.items():
        scope: dict[str, Any] = {}
        exec(f"from {home} import {name}", scope)
        assert name in scope


def test_a_reward_that_is_imported_from_the_package_itself_has_its_module_named() -> None:
    """Every reward that the package offers by name."""
    homes = {name: point.module for name, point in entry_points().items()}
    modules = {home.rpartition(".")[2] for home in homes.values()}  # where a reward has their name, they come first
    names = [name for name, home in homes.items() if home.startswith("builtin_rewards.") and name not in modules]
    assert len(names) > 35
    for name in names:
        with pytest.raises(ImportError) as raised:
            exec(f"from builtin_rewards import {name}")
        scope: dict[str, Any] = {}
        exec(str(raised.value).partition(": ")[2], scope)
        assert name in scope


def test_the_skill_in_the_wheel_is_the_page(root: Path) -> None:
    """``python docs/skill_file.py`` writes it; its header is what assistants choose a skill by."""
    written = runpy.run_path(str(root / "docs" / "skill_file.py"))
    text = written["SKILL"].read_text(encoding="utf-8")
    assert written["skill"]() == text
    assert text.startswith("---\nname: rewardkit\ndescription: ")


def test_the_lists_for_language_models_need_no_site(root: Path, tmp_path: Path) -> None:
    """``make llms`` writes them of the pages of docs/; each of their links leads to one."""
    for name in ("docs/site_hook.py", "docs/index.md", "docs/navigation.yaml", "docs/tutorial/first-reward.md"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes((root / name).read_bytes())
    (tmp_path / "docs/navigation.yaml").write_text(
        "Begin:\n- {page: tutorial/first-reward.md, title: Your first reward, about: all of it.}\n"
    )
    subprocess.run([sys.executable, str(tmp_path / "docs/site_hook.py")], check=True)
    links = (tmp_path / "build/llms.txt").read_text(encoding="utf-8")
    assert "- [Your first reward](tutorial/first-reward.md): all of it." in links
    assert "# " == (tmp_path / "build/llms-full.txt").read_text(encoding="utf-8")[:2]
