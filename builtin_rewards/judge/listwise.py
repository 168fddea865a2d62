"""A language model that grades all completions of a prompt in one question, as ART's RULER: :class:`ListwiseJudge`."""

from __future__ import annotations

import math
import random
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias, Unpack

from builtin_rewards.endpoint.errors import JudgeError
from builtin_rewards.endpoint.messages import Reply
from builtin_rewards.judge.conversation import Turns
from builtin_rewards.judge.formats import Format
from builtin_rewards.judge.group import Criteria, Group, GroupFunction
from builtin_rewards.judge.llm import REASON_CHARS
from builtin_rewards.judge.model import Question
from builtin_rewards.judge.prompt import MAX_CHARS
from builtin_rewards.judge.prompted import PromptedReward, function_fields, judging_options, question_limit
from builtin_rewards.judge.rubric import Rubric
from builtin_rewards.judge.settings import JudgeSettings, check
from builtin_rewards.judge.verdict import read_verdict
from rewardkit import Kind, RewardError, Score

_QUESTION_CHARS = 8 * MAX_CHARS  # of a question's answers: some 64,000 tokens, half of a context of 128,000

Part: TypeAlias = tuple[Turns, ...]  # the answers of one question, in their order


@dataclass(frozen=True, eq=False, kw_only=True)
class ListwiseFunction(GroupFunction):
    """The function of a :class:`ListwiseJudge`: grades the completions of a group beside each other."""

    field = "answers"
    repeats: int
    most: int
    scale: tuple[int, int]

    async def score_group(self, group: Group) -> list[Score | RewardError]:
        """Return the scores; where half of the repeats or more are lost, an error for each answer that was shown."""
        empty = self.empty_answers(group)
        replies = await self.ask(self.questions(group), self._read)
        errors = {repeat: reply for (repeat, _), reply in replies.items() if isinstance(reply, JudgeError)}
        failure = next(iter(errors.values())) if errors and 2 * len(errors) >= self.repeats else None
        grades: dict[Turns, list[tuple[float, str]]] = {answer: [] for answer in group.answers}
        for (repeat, _), reply in replies.items():
            if repeat not in errors and not isinstance(reply, JudgeError):
                for answer, grade in reply.items():
                    grades[answer].append(grade)
        # An answer beside only its equals and answers without content needs no judge, and is the best there is.
        worth = {answer: statistics.fmean(grade for grade, _ in own) if own else 1.0 for answer, own in grades.items()}
        worth |= dict.fromkeys(empty, 0.0)
        scores: list[Score | RewardError] = []
        for index, answer in enumerate(group.answers):
            if answer in empty:
                scores.append(Score(0.0, f"not asked: {empty[answer]}", {"prefiltered": 1.0}))
                continue
            rivals = [worth[rival] for at, rival in enumerate(group.answers) if at != index]
            lead = worth[answer] - statistics.fmean(rivals)
            scores.append(failure or self._score(0.5 + lead / 2, worth[answer], grades[answer]))
        return scores

    def questions(self, group: Group) -> dict[tuple[int, Part], Question]:
        """Return the questions by their repeat and the answers that they show."""
        empty = self.empty_answers(group)
        answers = [answer for answer in dict.fromkeys(group.answers) if answer not in empty]
        if len(answers) < 2:
            return {}
        keys = [(repeat, part) for repeat in range(self.repeats) for part in self._parts(group, answers, repeat)]
        return {(repeat, part): self._question(group, part, repeat) for repeat, part in keys}

    def _question(self, group: Group, part: Part, repeat: int) -> Question:
        rubric = self._rubric(part)
        group = group._replace(values={"scale": rubric.prompt_fields()["scale"], **group.values})
        answers = dict(zip(rubric.names, part, strict=True))
        return replace(self.question(group, answers, rubric.json_schema(self.reason_chars)), index=repeat)

    def _parts(self, group: Group, answers: Sequence[Turns], repeat: int) -> list[Part]:
        """Return a repeat's answers as even parts of an order; every second repeat reverses and mixes the last."""
        order = sorted(answers, key=repr)
        random.Random(f"{group.prompt}{order}{repeat // 2}").shuffle(order)  # noqa: S311 (an order is no secret)
        sizes = [sum(len(text) for turn in answer for _, text in turn.parts) for answer in answers]
        chars = sum(min(self.max_chars, size) for size in sizes)
        count = math.ceil(max(len(order) / self.most, chars / _QUESTION_CHARS))
        count = max(1, min(count, len(order) // 2))  # an answer alone is beside nothing
        if repeat % 2:
            order = [answer for at in range(count) for answer in order[at::count]][::-1]
        return [tuple(order[at::count]) for at in range(count)]

    def _rubric(self, part: Part) -> Rubric:
        """Return the form of the grades, with names by position, so that all groups of a size share it."""
        return Rubric([f"answer-{number}" for number in range(1, len(part) + 1)], self.scale)

    def _read(self, key: tuple[int, Part], reply: Reply, format: Format) -> dict[Turns, tuple[float, str]]:
        """Return each answer's grade, from 0 to 1, and the reason."""
        _, part = key
        low, high = self.scale
        verdict = read_verdict(reply, self._rubric(part), format)
        grades = [((grade or 0) - low) / (high - low) for grade in verdict.grades.values()]
        return dict(zip(part, zip(grades, verdict.reasons.values(), strict=True), strict=True))

    def _score(self, score: float, worth: float, grades: Sequence[tuple[float, str]]) -> Score:
        """Return an answer's score with its reason and metrics; its worth is its mean grade, from 0 to 1."""
        if not grades:
            return Score(score, "not asked: no other completion says anything else")
        low, high = self.scale
        mean = low + worth * (high - low)
        metrics = {"grade": mean}
        if self.repeats > 1:
            metrics |= {"samples": float(len(grades)), "spread": statistics.pstdev(grade for grade, _ in grades)}
        return Score(score, f"{mean:.3g} of {high}: {grades[0][1][:REASON_CHARS]}", metrics)


class ListwiseJudge(PromptedReward):
    """A language model that grades all completions of a prompt in one question; a group reward, 0 to 1.

    A completion with grade g, from 0 to 1, has the score 0.5 + (g - the mean of the others' grades) / 2: the group's
    mean is one half, and of two the better one is above it. The order is drawn from the group's content, and grades
    are means over ``repeats`` questions, every second of which reverses the order of the one before. Equal completions
    are shown once; one without content is not shown, counts as grade 0 and scores 0.0. A reply must grade each answer
    once, and more than half of the repeats must be read, or all that were shown fail. A group of more than ``most``
    answers, or 256,000 characters, is graded in even parts, which differ between repeats.

    Metrics of a score: ``grade`` on the scale; with several repeats ``samples``, how many were read, and ``spread``,
    the standard deviation of its grades from 0 to 1; ``prefiltered`` if it was not shown; an even share of the costs.

    Args:
        criteria: What answers are graded by, each a :class:`Criterion` or a text; the judge sees their weights.
        criteria_column: The dataset column with the criteria of a row, as for :class:`LLMJudge`.
        repeats: How often a group is asked about, 1 to 8.
        most: How many completions one question shows, 2 to 90; by default the window of RankGPT (arXiv 2304.09542).
        scale: Lowest and highest grade, whole numbers; OpenAI's schemas take 1,000 grades of all answers together.
        template: ``"ranking"``, with criteria ``"ranking_by_criteria"``, or a :class:`Template` with ``{answers}``,
            ``{scale}``, or also ``{criteria}``.
        settings: As for :class:`LLMJudge`; ``max_tokens`` is 4096, for all answers of a question.

    Raises:
        JudgeSetupError: A setting is wrong; names it and the fix.
    """

    kind = Kind.GROUP

    def __init__(
        self,
        model: str,
        criteria: Criteria = None,
        *,
        criteria_column: str | None = None,
        repeats: int = 2,
        most: int = 20,
        scale: tuple[int, int] = (0, 10),
        **settings: Unpack[JudgeSettings],
    ) -> None:
        check({"repeats": repeats, "most": most})
        settings.setdefault("max_tokens", 4096)
        default = "ranking" if criteria is None and criteria_column is None else "ranking_by_criteria"
        shared = function_fields(ListwiseJudge, model, settings, "ranking", default)
        listing = ListwiseFunction(**shared, repeats=repeats, most=most, scale=Rubric(["grade"], scale).scale)
        listing = listing.compared_by(criteria, criteria_column, listing.scale)
        groups = 1 + math.ceil(question_limit(listing.model) / repeats)  # with more, large ones would time out
        super().__init__(listing, replace(judging_options(listing, settings.get("default")), concurrency=groups))
