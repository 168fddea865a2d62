"""A language model that grades one completion by criteria: :class:`LLMJudge`, a reward as any other.

Owns what becomes of one completion: whether it is asked about at all, how many samples are asked, and the score with
its reason and metrics. The prompt, the reading and the asking are the other modules'.
"""

from __future__ import annotations

import asyncio
import functools
import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Unpack

from builtin_rewards.judge.conversation import turns_of
from builtin_rewards.judge.costs import cost_metrics
from builtin_rewards.judge.endpoint.values import Reply
from builtin_rewards.judge.errors import JudgeError, JudgeReplyError, JudgeSetupError
from builtin_rewards.judge.formats import Format
from builtin_rewards.judge.likelihood import GradeLikelihood, weighted
from builtin_rewards.judge.model import Answer, Asking, JudgeModel, Question
from builtin_rewards.judge.prompt import MAX_CHARS, Template
from builtin_rewards.judge.prompted import (
    Prompted,
    PromptedReward,
    check_column,
    chosen_template,
    filled_by,
    judging_options,
)
from builtin_rewards.judge.rubric import Criterion, Rubric
from builtin_rewards.judge.verdict import Verdict, combine, joined, read_verdict
from rewardkit import Score

_SAMPLING_TEMPERATURE = 0.7
"""Of several samples, where none is given: that of the self-consistency paper (arXiv 2203.11171, section 3.1)."""
_SHOWN_REASON_CHARS = 400
_CRITERIA_OF_A_ROW = 20
"""Of a row's own rubric so many questions, one a criterion, have room in a call's deadline."""
_SCALE = (1, 5)
_ROWS_SCALE = (0, 1)
"""A criterion of a row's own is met or not, as in HealthBench."""


class Read(NamedTuple):
    """What was read from one reply."""

    verdict: Verdict
    likelihoods: Mapping[str, GradeLikelihood]


class _Plan(NamedTuple):
    """What is asked of one completion: a question a sample and part of the rubric, the parts of a sample together."""

    rubric: Rubric
    parts: tuple[Rubric, ...]
    questions: list[Question]
    left_out: Mapping[str, float]


@dataclass(frozen=True, eq=False, kw_only=True)
class Grading(Prompted):
    """The function of an :class:`LLMJudge`: grades one completion."""

    rubric: Rubric
    samples: int
    likelihoods: bool
    each: bool

    @property
    def rounds(self) -> int:
        # As many calls are under way as questions at once: the last sample waits for all the others of each call.
        criteria = _CRITERIA_OF_A_ROW if self.columns.rubric else len(self.rubric.names)
        return 1 + self.samples * (criteria if self.each else 1)

    async def __call__(self, **columns: Any) -> Score:
        plan = self._plan(columns)
        if isinstance(plan, Score):
            return plan
        scored = self._score(await self._ask(plan), plan)
        return replace(scored, metrics={**scored.metrics, **plan.left_out})

    def rendered(self, columns: Mapping[str, Any]) -> tuple[Question, ...]:
        plan = self._plan(columns)
        return () if isinstance(plan, Score) else tuple(question for question in plan.questions if not question.index)

    def _plan(self, columns: Mapping[str, Any]) -> _Plan | Score:
        """Gives what is asked; the score where nothing is."""
        if why := self.columns.missing(columns):
            return Score(None, why)
        prompt, answer = turns_of(columns.get("prompt", ""), "prompt"), turns_of(columns["completion"], "completion")
        values = self.columns.values(columns)
        if why := self.unseen(prompt, answer):
            return Score(None, why)
        if why := self.says_nothing(answer, values.get("reference")):
            return Score(0.0, f"not asked: {why}", {"prefiltered": 1.0})
        view = self.view(prompt, {"completion": answer})
        rubric: Rubric = columns[self.columns.rubric] if self.columns.rubric else self.rubric
        parts = rubric.alone() if self.each else (rubric,)
        asked = []
        for part in parts:
            texts = {**view.values, **values, **part.words()}
            filled = view.template.fill(texts, max_chars=self.max_chars, images=view.images)
            schema = part.json_schema(self.reason_chars)
            asked.append(Question(filled, schema, self.prompt_version, likelihoods=self.likelihoods))
        questions = [replace(one, index=at) for at in range(self.samples) for one in asked]
        return _Plan(rubric, parts, questions, self.left_out(prompt) | self.shortened(view, values))

    async def _ask(self, plan: _Plan) -> list[Answer[Read | JudgeReplyError] | JudgeError]:
        reads = itertools.cycle([functools.partial(self._read, part) for part in plan.parts])
        asked = [self.attempt(question, read) for question, read in zip(plan.questions, reads, strict=False)]
        if len(asked) == 1:
            return [await asked[0]]
        came = await asyncio.gather(*asked, return_exceptions=True)
        for one in came:
            if isinstance(one, BaseException) and (isinstance(one, JudgeSetupError) or not isinstance(one, JudgeError)):
                raise one  # no sample that was lost: none can be had so
        return came  # type: ignore[return-value]  # everything else was raised

    def _read(self, rubric: Rubric, reply: Reply, format: Format) -> Read:
        verdict = read_verdict(reply, rubric, format)
        return Read(*weighted(reply, verdict, rubric)) if self.likelihoods else Read(verdict, {})

    def _score(self, came: Sequence[Answer[Read | JudgeReplyError] | JudgeError], plan: _Plan) -> Score:
        answers = [one for one in came if isinstance(one, Answer)]
        values = [one.value if isinstance(one, Answer) else one for one in came]
        width = len(plan.parts)
        samples = [_joined(values[at : at + width], plan.rubric) for at in range(0, len(values), width)]
        verdicts = [sample.verdict if isinstance(sample, Read) else sample for sample in samples]
        verdict = _only(verdicts[0]) if len(verdicts) == 1 else combine(verdicts, plan.rubric)
        metrics = self._metrics(verdict, [sample for sample in samples if isinstance(sample, Read)], plan.rubric)
        return Score(verdict.score, _words(verdict, plan.rubric), metrics | cost_metrics(answers))

    def _metrics(self, verdict: Verdict, read: Sequence[Read], rubric: Rubric) -> dict[str, float]:
        known = {name: grade for name, grade in verdict.grades.items() if grade is not None}
        if self.columns.rubric:  # what a name stands for differs from row to row
            metrics = {"criteria": float(len(rubric.names))}
        else:
            metrics = {f"grade/{name}": float(grade) for name, grade in known.items()}
        if rubric.not_applicable:
            metrics["not_applicable"] = float(len(rubric.names) - len(known))
        if any(criterion.must for criterion in rubric.criteria):
            metrics["must_failed"] = float(len(rubric.failed(verdict.grades)))
        if self.samples > 1:
            metrics |= {"samples": float(verdict.samples), "spread": verdict.spread}
        if self.likelihoods and not self.columns.rubric:
            for name in rubric.names:
                masses = [one.likelihoods[name].mass if name in one.likelihoods else 0.0 for one in read]
                metrics[f"mass/{name}"] = sum(masses) / len(masses)
        return metrics


def _joined(parts: Sequence[Read | JudgeError], rubric: Rubric) -> Read | JudgeError:
    """Gives what one sample says of all criteria, or why one of its questions has no answer."""
    read = [part for part in parts if isinstance(part, Read)]
    if len(read) < len(parts):
        return next(part for part in parts if isinstance(part, JudgeError))
    likelihoods = {name: found for part in read for name, found in part.likelihoods.items()}
    return Read(joined([part.verdict for part in read], rubric), likelihoods)


def _words(verdict: Verdict, rubric: Rubric) -> str:
    failed = rubric.failed(verdict.grades)
    capped = f"at most {rubric.cap:g}, for {', '.join(failed)} must be: " if failed else ""
    return capped + "; ".join(
        f"{name} {_grade(verdict.grades[name], rubric)}: {verdict.reasons[name][:_SHOWN_REASON_CHARS]}"
        for name in rubric.names
    )


def _grade(grade: float | None, rubric: Rubric) -> str:
    return "does not apply" if grade is None else f"{grade:.3g} of {rubric.scale.high}"


class LLMJudge(PromptedReward):
    """A language model that grades a completion by criteria; its score is in [0, 1].

    The score is the weighted mean of the grades, each normalised to the scale; with negative weights the sum over that
    of the positive ones, held in [0, 1], see :meth:`Rubric.normalised`. A reply that cannot be read, refuses or
    is cut short is a failure, never a score; a row without its reference is skipped. Answers that say nothing (empty,
    ``":"``, ``"Thought process:"``) get 0.0 without being asked about.

    Metrics of a score: ``grade/<criterion>``, ``requests``, ``cached``, ``prompt_tokens``, ``completion_tokens``,
    ``cost_usd`` where the model has a price; with several samples ``samples`` and ``spread``; with likelihoods
    ``mass/<criterion>``; ``must_failed`` with must-haves, ``not_applicable``, ``left_out/...``; ``criteria`` in
    place of the grades where they are the row's; ``prefiltered`` where it was not asked.

    Args:
        model: The model's name, as its server knows it.
        criteria: What is graded, each a :class:`Criterion` or a text; by default what the template has of its own.
        criteria_column: The dataset column with the criteria of a row, a list or JSON of one, of texts or objects:
            ``{"text": "Names a dose.", "weight": 5, "kind": "must"}``.
        each: Ask about one criterion at a time, rather than about all in one question.
        not_applicable: Let the judge say that a criterion does not apply; it is left out then.
        cap: What the score is at most where a must-have fails.
        scale: Lowest and highest grade, whole numbers; by default 1 to 5, and 0 and 1 for criteria of a row.
        reference: The dataset column with the right answer, for templates with ``{reference}``.
        template: A built-in template's name (``"correctness"``, ``"rubric"``, ``"helpfulness"``, ``"faithfulness"``,
            ``"safety"``) or a :class:`Template`. By default ``"correctness"`` with a reference, else ``"rubric"``.
        columns: Dataset columns for further fields, such as ``{"source": "article"}``; by default those of the
            fields' own names.
        samples: How often each completion is asked about; more than half must give a verdict, and grades are means.
        likelihoods: Weight grades by the likelihood of each, where the server gives log-probabilities (G-Eval).
        prefilter: Whether answers that say nothing get 0.0 without being asked about.
        max_chars: Characters kept of each text shown to the judge; of longer ones the middle is left out.
        reason_chars: ``maxLength`` of each reason in the schema, for small local models; some providers refuse it.
        images: Whether the model takes images; where it does not, a completion with one is skipped.
        default: The score that stands in for a failed call; ``None`` leaves the completion out of the baseline.
        name: The reward's name.
        asking: How the model is asked, see :class:`JudgeModel`: ``base_url``, ``key_env``, ``temperature`` (0.0, or
            0.7 for several samples), ``max_tokens``, ``deadline_s``, ``budget``, ``prices``, ``cache``, ``load``,
            ``retry``, ``format``, ``options``, ``client``, ``verify``.

    Raises:
        JudgeSetupError: A setting makes no sense; names it and the fix.

    Example:
        >>> from rewardkit.testing import FakeJudge
        >>> says = FakeJudge('{"correct": {"reason": "It is 4.", "score": 5}}')
        >>> judge = LLMJudge("any", [Criterion("correct", "Is it right?")], reference="answer", client=says)
        >>> judge(prompt="2+2=", completion="4", answer="4").value
        1.0
    """

    def __init__(
        self,
        model: str,
        criteria: Sequence[Criterion | str] | None = None,
        *,
        criteria_column: str | None = None,
        each: bool = False,
        not_applicable: bool = False,
        cap: float = 0.0,
        scale: tuple[int, int] | None = None,
        reference: str | None = None,
        template: str | Template | None = None,
        columns: Mapping[str, str] | None = None,
        samples: int = 1,
        likelihoods: bool = False,
        prefilter: bool = True,
        max_chars: int = MAX_CHARS,
        reason_chars: int | None = None,
        images: bool = False,
        default: float | None = None,
        name: str = "judge",
        **asking: Unpack[Asking],
    ) -> None:
        chosen = chosen_template(template, "rubric" if reference is None else "correctness")
        if samples != 1:
            asking.setdefault("temperature", _SAMPLING_TEMPERATURE)
        if criteria_column is None:
            scale = _SCALE if scale is None else scale
            rubric = Rubric(_criteria(criteria, chosen), scale, not_applicable=not_applicable, cap=cap)
        else:
            check_column(criteria_column, "criteria", "criteria_column")
            if criteria is not None:
                raise JudgeSetupError("criteria and criteria_column: give one of them; the column has all of a row's")
            if "criteria" in chosen.instructs:
                raise JudgeSetupError(
                    f"criteria_column={criteria_column!r}: template {chosen.name!r} has {{criteria}} in the system "
                    f"message, which is for instructions only; put it into the user message"
                )
            scale = _ROWS_SCALE if scale is None else scale
            rubric = Rubric(["criteria"], scale, not_applicable=not_applicable, cap=cap)
        filling = replace(filled_by(chosen, reference, columns), rubric=criteria_column, like=rubric)
        _check_samples(samples, asking.get("temperature", 0.0))
        asked = JudgeModel.of(model, asking)  # last, for it looks for a key
        grading = Grading(
            name=name,
            model=asked,
            template=chosen,
            columns=filling,
            prefilter=prefilter,
            max_chars=max_chars,
            reason_chars=reason_chars,
            images=images,
            rubric=rubric,
            samples=samples,
            likelihoods=likelihoods,
            each=each,
        )
        super().__init__(grading, judging_options(grading, default))


def _only(verdict: Verdict | JudgeError) -> Verdict:
    if isinstance(verdict, JudgeError):
        raise verdict
    return verdict


def _criteria(given: Sequence[Criterion | str] | None, template: Template) -> Sequence[Criterion | str]:
    if given is not None:
        return given
    if not template.criteria:
        raise JudgeSetupError(
            f"criteria: template {template.name!r} has none of its own; give [Criterion('correct', 'Is it right?')]"
        )
    return template.criteria


def _check_samples(samples: int, temperature: float | None) -> None:
    if isinstance(samples, bool) or not isinstance(samples, int) or samples < 1:
        raise JudgeSetupError(f"samples={samples!r}: expected a whole number, 1 or more")
    if samples > 1 and temperature == 0:
        raise JudgeSetupError(
            f"samples={samples} at temperature={temperature} are one answer {samples} times; "
            f"set temperature={_SAMPLING_TEMPERATURE}"
        )
