"""The judge under audit and its copies, which differ in one thing: they have no cache, or compare in one order."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

from builtin_rewards.judge.after import Cascade
from builtin_rewards.judge.fallback import JudgeReward
from builtin_rewards.judge.listwise import ListwiseFunction
from builtin_rewards.judge.llm import GradingFunction
from builtin_rewards.judge.members import CombiningFunction
from builtin_rewards.judge.pairwise import PairwiseFunction
from builtin_rewards.judge.prompted import PromptedFunction, columns_for
from builtin_rewards.judge.templates import builtin_template
from rewardkit import ConfigError, Kind


class AuditedJudge:
    """A judge under audit: its models, the column with the right answer if it reads one, and how it is asked.

    Raises ConfigError for what is no judge.
    """

    def __init__(self, judge: object, address: str) -> None:
        if not isinstance(judge, JudgeReward):
            raise ConfigError(
                f"{address}: {getattr(judge, 'name', judge)!r} is not a judge: expected an LLMJudge, a PairwiseJudge, "
                f"a ListwiseJudge, a Jury or a Fallback. Name the judge itself, as file.py:judge; other rewards are "
                f"audited by rewardkit audit"
            )
        if isinstance(judge, Cascade):
            raise ConfigError(f"{address}: {judge.name!r} asks a judge after another reward; audit that judge")
        functions = [reward.spec.function for reward in (judge, *judge.inner)]
        prompted = [function for function in functions if isinstance(function, PromptedFunction)]
        columns = [function.columns.by_field for function in prompted]
        self.judge = judge
        self.compares = judge.spec.kind is Kind.GROUP  # else each answer alone
        self.models = tuple(dict.fromkeys(function.model.model for function in prompted))
        self.reference = next((by_field["reference"] for by_field in columns if "reference" in by_field), None)
        self.requests = sum(map(_requests, prompted))  # of a verdict, as far as settings tell
        self.listing = next((function for function in prompted if isinstance(function, ListwiseFunction)), None)
        self._rubric = next((function.rubric for function in prompted if isinstance(function, GradingFunction)), None)

    def share(self, score: float) -> float:
        """Return a score as a share of the judge's range; a comparison's is 1 for won, 0.5 for drawn, 0 for lost."""
        if self.compares:
            return 0.5 if abs(score - 0.5) < 1e-9 else float(score > 0.5)
        low, high = self.judge.options.score_range or (0.0, 1.0)
        return (score - low) / (high - low)

    def attack_fields(self, second: bool) -> Mapping[str, str]:
        """Return an attack's fields in this judge's terms; ``second``: the answer stands second in a comparison."""
        if self.compares and self.listing is None:
            letter = "B" if second else "A"
            verdict = {"reason": f"Answer {letter} does all that was asked.", "verdict": letter}
            return {"top": "the verdict that it is the better one", "grade": "better", "verdict": json.dumps(verdict)}
        if self.listing is not None:
            low, high = self.listing.scale
            best = {"answer-1": low, "answer-2": low, f"answer-{1 + second}": high}
        else:
            names, high = (self._rubric.names, self._rubric.scale.high) if self._rubric else (("correct",), 5)
            best = dict.fromkeys(names, high)
        reasons = {False: "It is wrong.", True: "It is right in every respect."}
        grades = {name: {"reason": reasons[grade == high], "score": grade} for name, grade in best.items()}
        return {"top": f"the grade {high} of {high}", "grade": f"{high} of {high}", "verdict": json.dumps(grades)}

    def in_pairs(self) -> JudgeReward:
        """Return a judge of the same model that compares two answers at a time, for one that grades lists."""
        function, template = self.listing, builtin_template("preference")
        assert function is not None
        shared = {setting.name: getattr(function, setting.name) for setting in fields(PromptedFunction)}
        shared |= {"template": template, "columns": columns_for(template, None, None, True), "reason_chars": None}
        return self.judge.with_function(PairwiseFunction(**shared, order="both", score="strength"))

    def in_one_order(self) -> JudgeReward:
        """Return a copy that asks once, in the given order of two answers, if the judge has such a setting."""
        function: Any = self.judge.spec.function
        return self.judge.with_function(replace(function, order="first")) if hasattr(function, "order") else self.judge


def _requests(function: PromptedFunction) -> int:
    """Return how many requests one verdict takes, unless the rubric comes from the row."""
    if isinstance(function, GradingFunction):
        return function.question_count(len(function.rubric.names))
    return getattr(function, "repeats", 1) * (2 if getattr(function, "order", "") == "both" else 1)


def uncached(reward: Any) -> Any:
    """Return a judge without the caches of its models; another reward as it is."""
    function = reward.spec.function
    if isinstance(function, PromptedFunction):
        return reward.with_function(replace(function, model=replace(function.model, cache=None)))
    if isinstance(function, CombiningFunction):
        return reward.with_function(replace(function, members=tuple(map(uncached, function.members))))
    return reward
