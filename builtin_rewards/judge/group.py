"""What judges of groups share: which completions of a prompt compete, and how they share their questions' cost."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple, TypeVar

from builtin_rewards.judge.conversation import Turns, turns_of
from builtin_rewards.judge.costs import cost_metrics, open_bill
from builtin_rewards.judge.errors import JudgeError, JudgeSetupError
from builtin_rewards.judge.formats import Format
from builtin_rewards.judge.messages import Reply
from builtin_rewards.judge.model import Question
from builtin_rewards.judge.prompted import PromptedFunction
from rewardkit import CoercionError, RewardError, Score

K = TypeVar("K")
T = TypeVar("T")


class Group(NamedTuple):
    """The completions of a prompt that compete, and what else the template shows."""

    prompt: Turns
    answers: Sequence[Turns]
    values: Mapping[str, str]


@dataclass(frozen=True, eq=False, kw_only=True)
class GroupFunction(PromptedFunction):
    """The function of a judge that scores the completions of a prompt by each other."""

    field: ClassVar[str]  # a field of its templates that shows completions
    rounds = 8  # a large group's questions wait for each other

    async def __call__(self, **columns: Any) -> list[Score | RewardError]:
        said, group, places = self._competitors(columns)
        if len(places) == 1:
            said[places[0]] = Score(None, "a single completion has nothing to be compared with")
        if len(places) < 2:
            return said
        with open_bill() as bill:
            scores = await self.judged(group)
        sharing = max(1, sum(isinstance(score, Score) for score in scores))
        costs = {name: value / sharing for name, value in cost_metrics(bill).items() if name != "cached"}
        shared = costs | self.left_out(group.prompt)
        for place, turns, score in zip(places, group.answers, scores, strict=True):
            said[place] = score
            if isinstance(score, Score):
                short = self.shortened(self.view(group.prompt, {self.field: turns}), group.values)
                said[place] = replace(score, metrics={**score.metrics, **shared, **short})
        return said

    def rendered(self, columns: Mapping[str, Any]) -> tuple[Question, ...]:
        if len(columns["completions"]) < 2:
            raise JudgeSetupError(
                "a judge of groups compares two completions or more; give rollouts of a prompt, or completions=[...]"
            )
        _, group, _ = self._competitors(columns)
        return tuple(self.questions(group).values())

    def _competitors(self, columns: Mapping[str, Any]) -> tuple[list[Score | RewardError], Group, list[int]]:
        """Return what is known without asking, the completions that compete, and their places."""
        prompt = self.columns.asked(columns)
        missing = self.columns.missing(columns)
        said: list[Score | RewardError] = []
        seen: dict[int, Turns] = {}
        for place, completion in enumerate(columns["completions"]):
            try:
                turns = turns_of(completion, "completion")
            except CoercionError as wrong:  # it leaves the others to compete
                said.append(wrong)
                continue
            why = missing or self.unseen(prompt, turns)
            said.append(Score(None, why))
            if why is None:
                seen[place] = turns
        values = {} if missing else self.columns.values(columns)
        return said, Group(prompt, list(seen.values()), values), list(seen)

    def empty(self, group: Group) -> dict[Turns, str]:
        """Return the answers without content, each with the reason."""
        reference = group.values.get("reference")
        return {one: why for one in group.answers if (why := self.why_content_free(one, reference)) is not None}

    def question(self, group: Group, answers: Mapping[str, Turns], schema: Mapping[str, Any]) -> Question:
        """Return the question that shows these answers, by field."""
        view = self.view(group.prompt, answers)
        filled = view.template.fill({**view.values, **group.values}, max_chars=self.max_chars, images=view.images)
        return Question(filled, schema, self.prompt_version)

    def questions(self, group: Group) -> Mapping[Any, Question]:
        """Return the questions about two answers or more, each under a key of its own."""
        raise NotImplementedError

    async def judged(self, group: Group) -> list[Score | RewardError]:
        """Return the score or the error of each of two answers or more."""
        raise NotImplementedError

    async def ask(self, asked: Mapping[K, Question], read: Callable[[K, Reply, Format], T]) -> dict[K, T | JudgeError]:
        """Ask all questions together; return what was read of each reply, or the error that tells why nothing was."""
        found = await self.attempts([*asked.values()], [functools.partial(read, key) for key in asked])
        return dict(zip(asked, found, strict=True))
