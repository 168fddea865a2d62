"""Graders of texts of other projects, as their documentation calls them, and this house's own."""

from __future__ import annotations

import functools
import importlib
import sys
from collections.abc import Callable
from importlib import util
from pathlib import Path
from typing import Any

from .harnesses import Grade, GradedText, Harness, HarnessVerdict
from .secret_task import SecretTask

_BOX = r"The answer is $\boxed{ANSWER}$."
_HASHES = "#### ANSWER"
_ANSWER = "Answer: ANSWER"
_HALF = 0.5


def _scored(score: Callable[[str], Any]) -> Grade:
    def grade(completion: GradedText) -> HarnessVerdict:
        value = float(score(completion.text) or 0.0)
        return HarnessVerdict(value >= _HALF, f"score {value:g}")

    return grade


def _math_verify(task: SecretTask) -> Grade:
    from math_verify import parse, verify

    return _scored(lambda text: verify(parse(f"${task.gold}$"), parse(text)))


def _verl(task: SecretTask, module: str) -> Grade:
    spec = util.find_spec("verl")
    if spec is None or not spec.submodule_search_locations:
        raise ModuleNotFoundError("No module named 'verl'")
    sys.path.insert(0, str(Path(spec.submodule_search_locations[0], "utils", "reward_score")))
    grader = importlib.import_module(module)

    def score(text: str) -> Any:
        value = grader.compute_score(text, str(task.gold))
        return value["score"] if isinstance(value, dict) else value

    return _scored(score)


def _skyrl(task: SecretTask, module: str) -> Grade:
    grader = importlib.import_module(f"skyrl_gym.envs.{module}.utils")

    def score(text: str) -> Any:
        value = grader.compute_score(text, str(task.gold))
        return value["score"] if isinstance(value, dict) else value

    return _scored(score)


def _reward_doctor(task: SecretTask, name: str) -> Grade:
    from reward_doctor import reference

    function = getattr(reference, name)
    return _scored(lambda text: function(text, str(task.gold)))


def _trl(task: SecretTask) -> Grade:
    accuracy_reward = importlib.import_module("trl.rewards").accuracy_reward

    def score(text: str) -> Any:
        return accuracy_reward([[{"role": "assistant", "content": text}]], [rf"\boxed{{{task.gold}}}"])[0]

    return _scored(score)


def _lm_eval_filter(task: SecretTask, name: str) -> Grade:
    """A filter of gsm8k and its metric, both as the task's file has them."""
    import yaml
    from lm_eval.api.metrics import exact_match_hf_evaluate
    from lm_eval.filters import build_filter_ensemble, extraction, selection  # noqa: F401 - they register themselves

    (package,) = util.find_spec("lm_eval").submodule_search_locations  # type: ignore[union-attr, misc]
    settings = yaml.safe_load(Path(package, "tasks", "gsm8k", "gsm8k.yaml").read_text(encoding="utf-8"))
    (filters,) = (row["filter"] for row in settings["filter_list"] if row["name"] == name)
    parts = [(row["function"], {key: row[key] for key in row if key != "function"}) for row in filters]
    ensemble = build_filter_ensemble(name, parts)
    (metric,) = settings["metric_list"]
    chosen = {key: metric[key] for key in ("regexes_to_ignore", "ignore_case", "ignore_punctuation")}

    def score(text: str) -> Any:
        responses: Any = [[text]]
        for make in ensemble.filters:
            responses = make().apply(responses, [{}])
        (extracted,) = responses
        return exact_match_hf_evaluate([extracted], [f"#### {task.gold}"], **chosen)["exact_match"]

    return _scored(score)


def _lm_eval_math(task: SecretTask) -> Grade:
    graders = importlib.import_module("lm_eval.tasks.hendrycks_math.utils")
    document = {"solution": rf"\boxed{{{task.gold}}}"}
    return _scored(lambda text: graders.process_results(document, [text])["exact_match"])


def _own(task: SecretTask) -> Grade:
    from rewardkit import Rollout, Runtime
    from rewardkit.loading.registry import resolve

    runtime = Runtime([resolve("math_answer")], workers=1)
    runtime.__enter__()
    return _scored(lambda text: runtime.score([Rollout("q", text, {"answer": str(task.gold)})]).totals[0])


def _grader(name: str, build: Callable[[SecretTask], Grade], frame: str, package: str, note: str) -> Harness:
    is_inline = package == "rewardkit"
    note = f"{note}, half a point passes"
    return Harness(name, build, "text", "text", (package,), note, is_inline=is_inline, frame=frame)


TEXT_GRADERS = (
    _grader("math-verify", _math_verify, _BOX, "math-verify", "verify(parse(gold), parse(text))"),
    _grader("trl-accuracy", _trl, _BOX, "trl", "rewards.accuracy_reward"),
    _grader("verl-gsm8k", functools.partial(_verl, module="gsm8k"), _HASHES, "verl", "gsm8k.compute_score"),
    _grader("verl-math", functools.partial(_verl, module="math_reward"), _BOX, "verl", "math_reward.compute_score"),
    _grader("verl-dapo", functools.partial(_verl, module="math_dapo"), _ANSWER, "verl", "math_dapo.compute_score"),
    _grader("skyrl-gsm8k", functools.partial(_skyrl, module="gsm8k"), _HASHES, "skyrl-gym", "gsm8k's compute_score"),
    _grader("skyrl-aime", functools.partial(_skyrl, module="aime"), _ANSWER, "skyrl-gym", "aime's compute_score"),
    _grader(
        "reward-doctor", functools.partial(_reward_doctor, name="robust_match"), _BOX, "reward-doctor", "robust_match"
    ),
    _grader(
        "lm-eval-strict",
        functools.partial(_lm_eval_filter, name="strict-match"),
        _HASHES,
        "lm-eval",
        "gsm8k's filter strict-match and its exact_match",
    ),
    _grader(
        "lm-eval-flexible",
        functools.partial(_lm_eval_filter, name="flexible-extract"),
        _HASHES,
        "lm-eval",
        "gsm8k's filter flexible-extract and its exact_match",
    ),
    _grader("lm-eval-math", _lm_eval_math, "$ANSWER$", "lm-eval", "hendrycks_math's process_results"),
    _grader("rewardkit-math", _own, _BOX, "rewardkit", "math_answer"),
    _grader("rewardkit-math-hashes", _own, _HASHES, "rewardkit", "math_answer"),
)
