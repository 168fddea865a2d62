"""The judge that is audited: what it is made of, and the copies of it that are asked.

A copy differs in one thing only: without its cache, so that the same question is asked again; or, of a pairwise judge,
in one order. Everything else, its prompt, pre-filter, budget and fallbacks, is the judge's own.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from builtin_rewards.judge.fallback import JudgeReward
from builtin_rewards.judge.llm import Grading
from builtin_rewards.judge.members import AskingMembers
from builtin_rewards.judge.model import JudgeModel
from builtin_rewards.judge.pairwise import Comparing
from rewardkit import ConfigError, Reward

_CRITERIA = ("correct",)
_HIGH = 5


@dataclass(frozen=True, slots=True)
class Subject:
    """A judge under audit.

    Attributes:
        judge: What is asked; of a pairwise judge a copy whose score is the share of matches won.
        pairwise: Whether it compares answers.
        models: The names of the models behind it.
        reference: The column with the right answer; ``None`` where it reads none.
        criteria: The criteria of its verdicts.
        high: Its highest grade.
    """

    judge: JudgeReward
    pairwise: bool
    models: tuple[str, ...]
    reference: str | None
    criteria: tuple[str, ...]
    high: int

    @property
    def name(self) -> str:
        """The judge's name."""
        return self.judge.name

    @property
    def score_range(self) -> tuple[float, float]:
        """The lowest and the highest score; a chain or jury that declares none has scores in [0, 1]."""
        return self.judge.options.score_range or (0.0, 1.0)

    def words(self, second: bool) -> Mapping[str, str]:
        """Gives what an attack asks for, in this judge's terms.

        Args:
            second: Whether the answer stands second in a comparison.
        """
        if self.pairwise:
            letter = "B" if second else "A"
            verdict = {"reason": f"Answer {letter} does all that was asked.", "verdict": letter}
            return {"top": "the verdict that it is the better one", "grade": "better", "verdict": json.dumps(verdict)}
        grades = {name: {"reason": "It is right in every respect.", "score": self.high} for name in self.criteria}
        grade = f"{self.high} of {self.high}"
        return {"top": f"the grade {grade}", "grade": grade, "verdict": json.dumps(grades)}

    def without_cache(self) -> JudgeReward:
        """Gives a copy that asks the server each time."""
        return self.judge.having(_changed(self.judge.spec.function, _uncached))

    def in_one_order(self) -> JudgeReward:
        """Gives a copy of a pairwise judge that asks once, in the order in which two answers are given."""
        return self.judge.having(replace(_comparing(self.judge), order="first"))


def subject_of(reward: Any, reference: str) -> Subject:
    """Gives a judge as the audit sees it.

    Args:
        reward: What the user named.
        reference: How the user named it, for the message.

    Raises:
        ConfigError: It is no judge.
    """
    if not isinstance(reward, JudgeReward):
        raise ConfigError(
            f"{reference}: {getattr(reward, 'name', reward)!r} is no judge: expected an LLMJudge, a PairwiseJudge, a "
            f"Jury or a Fallback. Name the judge itself, as file.py:judge; other rewards are audited by rewardkit audit"
        )
    functions = [one.spec.function for one in (reward, *reward.inner)]
    models = dict.fromkeys(one.model.model for one in functions if isinstance(one, Grading | Comparing))
    fields = [one.columns.by_field for one in functions if isinstance(one, Grading | Comparing)]
    read = [columns["reference"] for columns in fields if "reference" in columns]
    grading = next((one for one in functions if isinstance(one, Grading)), None)
    criteria = _CRITERIA if grading is None else grading.rubric.names
    high = _HIGH if grading is None else grading.rubric.scale.high
    pairwise = isinstance(reward.spec.function, Comparing)
    if pairwise:
        reward = reward.having(replace(_comparing(reward), score="win_rate"))
    return Subject(reward, pairwise, tuple(models), read[0] if read else None, criteria, high)


def _comparing(judge: JudgeReward) -> Comparing:
    assert isinstance(judge.spec.function, Comparing)
    return judge.spec.function


def _uncached(model: JudgeModel) -> JudgeModel:
    return replace(model, cache=None)


def _changed(function: Any, change: Callable[[JudgeModel], JudgeModel]) -> Any:
    """Gives a judge's function with the model behind it changed, and those of its members."""
    if isinstance(function, Grading | Comparing):
        return replace(function, model=change(function.model))
    if isinstance(function, AskingMembers):
        return replace(function, members=tuple(_changed_member(one, change) for one in function.members))
    return function


def _changed_member(member: Reward[..., Any], change: Callable[[JudgeModel], JudgeModel]) -> Reward[..., Any]:
    if not isinstance(member, JudgeReward):
        return member
    return member.having(_changed(member.spec.function, change))
