"""What judges of groups share: which completions of a prompt compete, and how they share their questions' cost."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple, TypeAlias, TypeVar

from builtin_rewards.endpoint.errors import JudgeError, JudgeSetupError
from builtin_rewards.endpoint.messages import Reply
from builtin_rewards.judge.conversation import Turns
from builtin_rewards.judge.formats import Format
from builtin_rewards.judge.llm import criteria_of
from builtin_rewards.judge.model import Question, cost_metrics, open_bill
from builtin_rewards.judge.prompted import PromptedFunction
from builtin_rewards.judge.rubric import Criterion, Rubric
from rewardkit import CoercionError, RewardError, Score

Criteria: TypeAlias = Sequence[Criterion | str] | None
K = TypeVar("K")
T = TypeVar("T")
F = TypeVar("F", bound="GroupFunction")
Read: TypeAlias = Callable[[K, Reply, Format], T]


class Group(NamedTuple):
    """The completions of a prompt that compete, and what else the template shows."""

    prompt: Turns
    answers: Sequence[Turns]
    values: Mapping[str, str]


@dataclass(frozen=True, eq=False, kw_only=True)
class GroupFunction(PromptedFunction):
    """The function of a judge that scores the completions of a prompt by each other."""

    field: ClassVar[str]  # a field of its templates that shows completions
    rubric: Rubric | None = None  # what answers are compared by; the column's takes its place
    rounds = 8  # a large group's questions wait for each other

    async def __call__(self, **columns: Any) -> list[Score | RewardError]:
        """Return a score or an error for each completion, scores with an even share of the costs."""
        results, group, indices = self._competitors(columns)
        if len(indices) == 1:
            results[indices[0]] = Score(None, "a single completion has nothing to be compared with")
        if len(indices) < 2:
            return results
        with open_bill() as bill:
            scores = await self.score_group(group)
        score_count = max(1, sum(isinstance(score, Score) for score in scores))
        costs = {name: value / score_count for name, value in cost_metrics(bill).items() if name != "cached"}
        for index, turns, score in zip(indices, group.answers, scores, strict=True):
            if isinstance(score, Score):
                cut = self.cut_chars(self.view(group.prompt, {self.field: turns}), group.values)
                score = replace(score, metrics={**score.metrics, **costs, **self.omissions(group.prompt, turns), **cut})
            results[index] = score
        return results

    def build_questions(self, columns: Mapping[str, Any]) -> tuple[Question, ...]:
        if len(columns["completions"]) < 2:
            fix = "give rollouts of a prompt, or completions=[...]"
            raise JudgeSetupError(f"a judge of groups compares two completions or more; {fix}")
        _, group, _ = self._competitors(columns)
        return tuple(self.questions(group).values())

    def _competitors(self, columns: Mapping[str, Any]) -> tuple[list[Score | RewardError], Group, list[int]]:
        """Return the results that need no judge, the completions that compete, and their indices."""
        prompt = self.columns.prompt_turns(columns, self.shows)
        missing = self.columns.missing(columns)
        results: list[Score | RewardError] = []
        competitors: dict[int, Turns] = {}
        for index, completion in enumerate(columns["completions"]):
            try:
                turns = self.answer_turns(completion, columns)
            except CoercionError as error:  # it leaves the others to compete
                results.append(error)
                continue
            reason = missing or self.why_unseen(prompt, turns)
            results.append(Score(None, reason))
            if reason is None:
                competitors[index] = turns
        values = {} if missing else self.columns.values(columns)
        rubric = columns[self.columns.rubric] if self.columns.rubric else self.rubric
        if rubric is not None:
            values["criteria"] = rubric.prompt_fields(with_weights=True)["criteria"]
        return results, Group(prompt, list(competitors.values()), values), list(competitors)

    def compared_by(self: F, criteria: Criteria, column: str | None, scale: tuple[int, int] | None = None) -> F:
        """Return the same function with criteria, or a row's rubric; JudgeSetupError for wrong ones."""
        if criteria is None and column is None and "criteria" not in self.template.uses:
            return self
        chosen = criteria_of(criteria, column, self.template)
        rubric = Rubric(chosen, scale or ((1, 5) if column is None else (0, 1)))
        return replace(self, rubric=rubric, columns=replace(self.columns, rubric=column, like=rubric))

    def empty_answers(self, group: Group) -> dict[Turns, str]:
        """Return the answers without content, each with the reason."""
        reference = group.values.get("reference")
        reasons = {answer: self.why_content_free(answer, reference) for answer in group.answers}
        return {answer: reason for answer, reason in reasons.items() if reason is not None}

    def question(self, group: Group, answers: Mapping[str, Turns], schema: Mapping[str, Any]) -> Question:
        """Return the question that shows these answers, by field."""
        view = self.view(group.prompt, answers)
        return Question(self.fill(view, group.values), schema, self.prompt_version)

    def questions(self, group: Group) -> Mapping[Any, Question]:
        """Return the questions about two answers or more, each under a key of its own."""
        raise NotImplementedError

    async def score_group(self, group: Group) -> list[Score | RewardError]:
        """Return the score or the error of each of two answers or more."""
        raise NotImplementedError

    async def ask(self, questions: Mapping[K, Question], read: Read[K, T]) -> dict[K, T | JudgeError]:
        """Ask all questions together; return each reply's reading, or the error that says why it has none."""
        answers = await self.attempts([*questions.values()], [functools.partial(read, key) for key in questions])
        return dict(zip(questions, answers, strict=True))
