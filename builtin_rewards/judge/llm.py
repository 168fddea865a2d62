"""A language model that grades one completion by criteria: :class:`LLMJudge`, a reward as any other."""

from __future__ import annotations

import functools
import math
import statistics
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple, Unpack

from builtin_rewards.endpoint.errors import JudgeError, JudgeSetupError
from builtin_rewards.endpoint.messages import Reply
from builtin_rewards.judge.after import Cascade, Keeps
from builtin_rewards.judge.conversation import last_text, turns_of
from builtin_rewards.judge.formats import Format
from builtin_rewards.judge.members import UNSEEN
from builtin_rewards.judge.model import Question, cost_metrics, open_bill
from builtin_rewards.judge.prompt import Template
from builtin_rewards.judge.prompted import (
    PromptedFunction,
    PromptedReward,
    View,
    check_column,
    function_fields,
    judging_options,
)
from builtin_rewards.judge.rubric import MOST_CRITERIA, Criterion, Rubric
from builtin_rewards.judge.settings import JudgeSettings, check
from builtin_rewards.judge.verdict import Verdict, combine, join_verdicts, read_verdict, weigh_grades
from rewardkit import Reward, Score

_SAMPLING_TEMPERATURE = 0.7  # by default of several samples: self-consistency's (arXiv 2203.11171, section 3.1)
REASON_CHARS = 400  # of each reason, in a score's own reason
_CRITERIA_OF_A_ROW = 20  # criteria of a row's own rubric for whose questions a call's deadline has room
_TOKENS_A_CRITERION = 128  # of a reply: a reason of two or three sentences with its grade and their keys


class _QuestionPlan(NamedTuple):
    """What is asked about one completion: for each sample a question for each part of the rubric."""

    rubric: Rubric
    parts: tuple[Rubric, ...]
    questions: list[Question]
    omissions: dict[str, float]


@dataclass(frozen=True, eq=False, kw_only=True)
class GradingFunction(PromptedFunction):
    """The function of an :class:`LLMJudge`: grades one completion."""

    rubric: Rubric
    samples: int
    likelihoods: bool
    together: Literal["all", "each"] | int  # how many criteria a question is about
    check_swapped: bool  # whether each sample is also asked with answer and reference in each other's place
    grows: bool  # whether the model's ``max_tokens`` is more for many criteria

    @property
    def rounds(self) -> int:
        """One for a call's last question, and one for each question that it may wait for.

        As many calls are under way as questions are asked at once, so all the others of its call may come before it.
        """
        return 1 + self.question_count(_CRITERIA_OF_A_ROW if self.columns.rubric else len(self.rubric.names))

    def question_count(self, criteria: int) -> int:
        """Return how many questions one completion takes by a rubric of so many criteria."""
        return self.samples * (1 + self.check_swapped) * math.ceil(criteria / self._part_size(criteria))

    async def __call__(self, **columns: Any) -> Score:
        """Return the score of all samples; JudgeError where too few gave a verdict."""
        plan = self._plan(columns)
        if isinstance(plan, Score):
            return plan
        masses: dict[str, list[float]] = {name: [] for name in plan.rubric.names}
        negative = frozenset(criterion.name for criterion in plan.rubric.criteria if criterion.weight < 0)
        reads = [functools.partial(self._read, part, negative, masses) for part in plan.parts]
        reads *= len(plan.questions) // len(reads)
        with open_bill() as bill:
            verdict = _verdict_of(await self.attempts(plan.questions, reads), plan)
        metrics = self._metrics(verdict, plan.rubric, masses) | cost_metrics(bill) | plan.omissions
        return Score(verdict.score, _explain(verdict, plan.rubric), metrics)

    def build_questions(self, columns: Mapping[str, Any]) -> tuple[Question, ...]:
        plan = self._plan(columns)
        return () if isinstance(plan, Score) else tuple(question for question in plan.questions if not question.index)

    def _plan(self, columns: Mapping[str, Any]) -> _QuestionPlan | Score:
        """Return the questions to ask, or the score where there is nothing to ask."""
        if reason := self.columns.missing(columns):
            return Score(None, reason)
        prompt = self.columns.prompt_turns(columns, self.shows)
        answer = self.answer_turns(columns["completion"], columns)
        values = self.columns.values(columns)
        if reason := self.why_unseen(prompt, answer):
            return Score(None, reason, {UNSEEN: 1.0} if any(turn.graded for turn in answer) else {})
        if reason := self.why_content_free(answer, values.get("reference")):
            return Score(0.0, f"not asked: {reason}", {"prefiltered": 1.0} | self.omissions(prompt, answer))
        view = self.view(prompt, {"completion": answer})
        rubric: Rubric = columns[self.columns.rubric] if self.columns.rubric else self.rubric
        parts = rubric.split(self._part_size(len(rubric.names)))
        questions = [self._question(view, values, part) for part in parts]
        if self.check_swapped and (text := last_text(answer, "assistant")):
            swapped = self.view(prompt, {"completion": turns_of(values["reference"], "completion")})
            questions += [self._question(swapped, {**values, "reference": text}, part) for part in parts]
        samples = [replace(question, index=index) for index in range(self.samples) for question in questions]
        return _QuestionPlan(rubric, parts, samples, self.omissions(prompt, answer) | self.cut_chars(view, values))

    def _question(self, view: View, values: Mapping[str, str], part: Rubric) -> Question:
        messages = self.fill(view, {**values, **part.prompt_fields()})
        schema, limit = part.json_schema(self.reason_chars), self._token_limit(len(part.names))
        return Question(messages, schema, self.prompt_version, likelihoods=self.likelihoods, max_tokens=limit)

    def _part_size(self, criteria: int) -> int:
        if isinstance(self.together, int):
            return min(self.together, MOST_CRITERIA)
        return 1 if self.together == "each" else min(criteria, MOST_CRITERIA)

    def _token_limit(self, criteria: int) -> int | None:
        """Return the tokens that a reply with so many grades needs; ``None`` if the model's own setting will do."""
        tokens = _TOKENS_A_CRITERION * criteria
        return tokens if self.grows and tokens > (self.model.max_tokens or tokens) else None

    def _read(
        self, rubric: Rubric, negative: Set[str], masses: dict[str, list[float]], reply: Reply, format: Format
    ) -> Verdict:
        """Return a reply's verdict, and append the mass of each grade to ``masses``."""
        verdict, likely = read_verdict(reply, rubric, format, negative), dict[str, float]()
        if self.likelihoods:
            verdict, likely = weigh_grades(reply, verdict, rubric)
        for name in rubric.names:
            masses[name].append(likely.get(name, 0.0))
        return verdict

    def _metrics(self, verdict: Verdict, rubric: Rubric, masses: Mapping[str, list[float]]) -> dict[str, float]:
        """Return a verdict's metrics without costs; docs/reference/judge.md, Metrics of a score, explains them."""
        grades = {name: grade for name, grade in verdict.grades.items() if grade is not None}
        if self.columns.rubric:  # what a name stands for differs from row to row
            metrics = {"criteria": float(len(rubric.names))}
        else:
            metrics = {f"grade/{name}": float(grade) for name, grade in grades.items()}
            metrics |= {f"mass/{name}": statistics.fmean(mass) for name, mass in masses.items() if self.likelihoods}
        if rubric.not_applicable:
            metrics["not_applicable"] = float(len(rubric.names) - len(grades))
        if any(criterion.must for criterion in rubric.criteria):
            metrics["must_failed"] = float(len(rubric.failed(verdict.grades)))
        if self.samples > 1 or self.check_swapped:
            metrics |= {"samples": float(verdict.samples), "spread": verdict.spread}
        return metrics


def _verdict_of(answers: Sequence[Verdict | JudgeError], plan: _QuestionPlan) -> Verdict:
    """Return the verdict of all samples; one with an unanswered question is lost, and too few raise a JudgeError."""
    width, samples = len(plan.parts), list[Verdict | JudgeError]()
    for start in range(0, len(answers), width):
        sample = answers[start : start + width]
        error = next((answer for answer in sample if isinstance(answer, JudgeError)), None)
        verdicts = [answer for answer in sample if isinstance(answer, Verdict)]
        samples.append(error or join_verdicts(verdicts, plan.rubric))
    verdict = combine(samples, plan.rubric) if len(samples) > 1 else samples[0]
    if isinstance(verdict, JudgeError):
        raise verdict
    return verdict


def _explain(verdict: Verdict, rubric: Rubric) -> str:
    """Return a score's reason: whether it is capped, then each criterion's grade and reason."""
    failed, grades = rubric.failed(verdict.grades), []
    for name, grade in verdict.grades.items():
        text = "does not apply" if grade is None else f"{grade:.3g} of {rubric.scale.high}"
        reason = verdict.reasons[name][:REASON_CHARS]
        grades.append(f"{name} {text}: {reason}" if rubric.reasoned else f"{name} {text}")
    cap = f"at most {rubric.cap:g}, because {', '.join(failed)} must be met: " if failed else ""
    return cap + "; ".join(grades)


class LLMJudge(PromptedReward):
    """A language model that grades a completion by criteria; its score is in [0, 1], see :meth:`Rubric.normalised`.

    A reply that cannot be read, refuses or is cut short is a failure, never a score; a row without its reference is
    skipped. Answers without content (empty, ``":"``, ``"Thought process:"``) get 0.0 without being asked about.
    docs/reference/judge.md, Metrics of a score, explains its metrics.

    Args:
        model: The model's name, as its server knows it.
        criteria: What is graded, each a :class:`Criterion` or a text; by default the template's own.
        criteria_column: The dataset column with the criteria of a row, a list or JSON of one, of texts or objects:
            ``{"text": "Names a dose.", "weight": 5, "kind": "must"}``.
        together: How many criteria a question is about: ``"all"``, ``"each"`` on its own, or a number, as 10.
        each: The same as ``together="each"``.
        not_applicable: Let the judge say that a criterion does not apply; it is left out then.
        cap: What the score is at most if a must-have fails.
        scale: Lowest and highest grade, whole numbers; by default 1 to 5, and 0 and 1 for criteria of a row.
        samples: How often each completion is asked about; more than half must give a verdict, and grades are means.
        check_swapped: Ask each sample again with the answer and the reference in each other's place, so that what the
            completion says of itself is judged as a reference's too; grades are means of both.
        likelihoods: Weight grades by their likelihood (G-Eval), if the server gives log-probabilities; the scale must
            lie within 0 to 9.
        settings: What all judges share, see docs/reference/judge.md, Showing and Asking.

    Raises:
        JudgeSetupError: A setting is wrong; names it and the fix.

    Example:
        >>> from rewardkit.testing import FakeJudge
        >>> judge = LLMJudge("any", ["correct"], client=FakeJudge.verdict(correct=5))
        >>> judge(prompt="2+2=", completion="4").value
        1.0
    """

    def __init__(
        self,
        model: str,
        criteria: Sequence[Criterion | str] | None = None,
        *,
        criteria_column: str | None = None,
        together: Literal["all", "each"] | int = "all",
        each: bool = False,
        not_applicable: bool = False,
        cap: float = 0.0,
        scale: tuple[int, int] | None = None,
        samples: int = 1,
        check_swapped: bool = False,
        likelihoods: bool = False,
        **settings: Unpack[JudgeSettings],
    ) -> None:
        check({"samples": samples, "likelihoods": likelihoods, "not_applicable": not_applicable})
        check({"together": together, "each": each, "check_swapped": check_swapped})
        if each and together not in ("all", "each"):
            raise JudgeSetupError(f"each=True and together={together!r}: give one of them")
        if samples > 1 and settings.setdefault("temperature", _SAMPLING_TEMPERATURE) == 0:
            raise JudgeSetupError(
                f"samples={samples} at temperature=0 are one answer {samples} times; "
                f"set temperature={_SAMPLING_TEMPERATURE}"
            )
        default = "rubric" if settings.get("reference") is None else "correctness"
        default_scale = (1, 5) if criteria_column is None else (0, 1)  # a row's are met or not, as in HealthBench
        shared = function_fields(LLMJudge, model, settings, "judge", default)
        criteria = criteria_of(criteria, criteria_column, shared["template"])
        rubric = Rubric(criteria, default_scale if scale is None else scale, not_applicable=not_applicable, cap=cap)
        if likelihoods and not 0 <= rubric.scale.low < rubric.scale.high <= 9:
            raise JudgeSetupError(
                f"likelihoods=True with scale={tuple(rubric.scale)}: a grade's likelihood is that of one token, so "
                f"grades are single digits; set scale=(1, 5), or another from 0 to 9"
            )
        if check_swapped and "reference" not in shared["template"].uses:
            problem = f"check_swapped=True: template {shared['template'].name!r} shows no reference"
            raise JudgeSetupError(f"{problem}; name the column of the right answer, as reference='answer'")
        shared["columns"] = replace(shared["columns"], rubric=criteria_column, like=rubric)
        own: dict[str, Any] = {"rubric": rubric, "samples": samples, "likelihoods": likelihoods}
        own |= {"together": "each" if each else together, "check_swapped": check_swapped}
        grading = GradingFunction(**shared, **own, grows="max_tokens" not in settings)
        super().__init__(grading, judging_options(grading, settings.get("default")))

    def after(
        self, cheap: Reward[..., Any], *, margin: float, keeps: Keeps = "sign", name: str | None = None
    ) -> Cascade:
        """Return a :class:`Cascade`: of a group it asks the cheap reward first, and this judge where it matters."""
        return Cascade(self, cheap, margin=margin, keeps=keeps, name=name)


def criteria_of(
    criteria: Sequence[Criterion | str] | None, column: str | None, template: Template
) -> Sequence[Criterion | str]:
    """Return the criteria; for a column, whose rows have their own, a stand-in."""
    if column is not None:
        check_column(column, "criteria", "criteria_column")
        if criteria is not None:
            raise JudgeSetupError("criteria and criteria_column: give one of them; the column has all of a row's")
    in_system = column is not None and "criteria" in template.instructs
    is_own = criteria is None and column is None
    if not is_own and (in_system or "criteria" not in template.uses):
        has = "{criteria} in the system message, which is for instructions only" if in_system else "no {criteria}"
        raise JudgeSetupError(f"template {template.name!r} has {has}; put {{criteria}} into the user message")
    if is_own and not template.criteria:
        raise JudgeSetupError(
            f"criteria: template {template.name!r} has no criteria of its own; "
            "give [Criterion('correct', 'Is it right?')]"
        )
    return ["criteria"] if column is not None else template.criteria if criteria is None else criteria
