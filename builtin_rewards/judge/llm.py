"""A language model that grades one completion by criteria: :class:`LLMJudge`, a reward as any other.

Owns what becomes of one completion: whether it is asked about at all, how many samples are asked, and the score with
its reason and metrics. The prompt, the reading and the asking are the other modules'.
"""

from __future__ import annotations

import asyncio
import inspect
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Unpack

from builtin_rewards.judge.endpoint.values import Reply
from builtin_rewards.judge.errors import JudgeError, JudgeSetupError
from builtin_rewards.judge.fallback import JudgeReward, judge_options
from builtin_rewards.judge.formats import Format
from builtin_rewards.judge.likelihood import GradeLikelihood, weighted
from builtin_rewards.judge.model import Answer, Asking, JudgeModel, Question
from builtin_rewards.judge.prefilter import content_free
from builtin_rewards.judge.prompt import MAX_CHARS, Template
from builtin_rewards.judge.rubric import Criterion, Rubric
from builtin_rewards.judge.templates import builtin_template
from builtin_rewards.judge.verdict import Verdict, combine, read_verdict
from rewardkit import Reward, Score

MARGIN_S = 10.0
"""Seconds that a call's deadline has beyond the judgement's own: importing the client library is not charged to it."""
_CALLS_A_REQUEST = 1.25
"""Calls under way for each request that may be in flight, lest those that wait for their next try leave room unused: at
20 % of faults and a latency of 1 s they wait for a sixth of their time."""
_SAMPLING_TEMPERATURE = 0.7
"""Of several samples, where none is given: that of the self-consistency paper (arXiv 2203.11171, section 3.1)."""
_RESERVED = frozenset({"prompt", "completion", "completions", "messages", "completion_ids", "example", "step", "epoch"})
_SHOWN_REASON_CHARS = 400


class Read(NamedTuple):
    """What was read from one reply."""

    verdict: Verdict
    likelihoods: Mapping[str, GradeLikelihood]


@dataclass(frozen=True, eq=False)
class Columns:
    """Which dataset columns fill a template's fields.

    Attributes:
        by_field: Column by field, for the fields beside prompt and completion.
        prompt: Whether the template shows the prompt.
        group: Whether one call judges all completions of a prompt.
    """

    by_field: Mapping[str, str]
    prompt: bool
    group: bool = False

    @property
    def signature(self) -> inspect.Signature:
        """The parameters that a run fills."""
        return inspect.Signature([inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY) for name in self.hints])

    @property
    def hints(self) -> dict[str, Any]:
        """The parameters' annotations: a gold column that says nothing, ``""`` or ``"None"``, is ``None``."""
        reserved: dict[str, Any] = {"prompt": str} if self.prompt else {}
        reserved |= {"completions": list[str]} if self.group else {"completion": str}
        return reserved | dict.fromkeys(self.by_field.values(), str | None)

    def missing(self, columns: Mapping[str, Any]) -> str | None:
        """Gives the first column without a value; ``None`` where all have one."""
        return next((column for column in self.by_field.values() if columns[column] is None), None)

    def values(self, columns: Mapping[str, Any]) -> dict[str, str]:
        """Gives the text of each field but the completions."""
        values = {field: columns[column] for field, column in self.by_field.items()}
        return values | ({"prompt": columns["prompt"]} if self.prompt else {})


@dataclass(frozen=True, eq=False)
class Grading:
    """The function of an :class:`LLMJudge`: grades one completion."""

    name: str
    model: JudgeModel
    rubric: Rubric
    template: Template
    columns: Columns
    samples: int
    likelihoods: bool
    prefilter: bool
    max_chars: int
    reason_chars: int | None

    @property
    def __signature__(self) -> inspect.Signature:
        return self.columns.signature

    @property
    def hints(self) -> dict[str, Any]:
        """The parameters' annotations."""
        return self.columns.hints

    @property
    def inner(self) -> tuple[Reward[..., Any], ...]:
        """No rewards."""
        return ()

    @property
    def version(self) -> str:
        """What scores depend on, as words: the model, what it is asked, and how it is read."""
        asked = (self.model.model, self.model.where, self.model.temperature, self.model.max_tokens, self.model.options)
        read = (self.rubric, self.template, self.columns, self.samples, self.likelihoods, self.prefilter)
        return repr((asked, read, self.model.format, self.max_chars, self.reason_chars))

    def named(self, name: str) -> Grading:
        """Gives the same under another name, which messages and a budget's ledger then use."""
        return replace(self, name=name)

    async def __call__(self, **columns: Any) -> Score:
        missing = self.columns.missing(columns)
        if missing is not None:
            return Score(None, f"the row has nothing in column {missing!r}")
        completion: str = columns["completion"]
        values = self.columns.values(columns)
        if self.prefilter and (why := content_free(completion, values.get("reference"))):
            return Score(0.0, f"not asked: {why}", {"prefiltered": 1.0})
        messages = self.template.fill(
            {**values, "completion": completion, **self.rubric.words()}, max_chars=self.max_chars
        )
        schema = self.rubric.json_schema(self.reason_chars)
        version = f"{self.template.name} {self.template.version}"
        questions = [Question(messages, schema, version, at, self.likelihoods) for at in range(self.samples)]
        return self._score(await self._ask(questions))

    async def _ask(self, questions: Sequence[Question]) -> list[Answer[Read] | JudgeError]:
        if len(questions) == 1:
            return [await self.model.ask(self.name, questions[0], self._read)]
        asked = (self.model.ask(self.name, question, self._read) for question in questions)
        came = await asyncio.gather(*asked, return_exceptions=True)
        for one in came:
            if isinstance(one, BaseException) and not isinstance(one, JudgeError):
                raise one
        return came  # type: ignore[return-value]  # everything else was raised

    def _read(self, reply: Reply, format: Format) -> Read:
        verdict = read_verdict(reply, self.rubric, format)
        return Read(*weighted(reply, verdict, self.rubric)) if self.likelihoods else Read(verdict, {})

    def _score(self, came: Sequence[Answer[Read] | JudgeError]) -> Score:
        answers = [one for one in came if isinstance(one, Answer)]
        verdicts = [one.value.verdict if isinstance(one, Answer) else one for one in came]
        verdict = answers[0].value.verdict if len(came) == 1 else combine(verdicts, self.rubric)
        return Score(verdict.score, self._words(verdict), self._metrics(verdict, answers, len(came)))

    def _words(self, verdict: Verdict) -> str:
        high = self.rubric.scale.high
        each = (
            f"{name} {verdict.grades[name]:.3g} of {high}: {verdict.reasons[name][:_SHOWN_REASON_CHARS]}"
            for name in self.rubric.names
        )
        return "; ".join(each)

    def _metrics(self, verdict: Verdict, answers: Sequence[Answer[Read]], asked: int) -> dict[str, float]:
        metrics = {f"grade/{name}": float(grade) for name, grade in verdict.grades.items()}
        metrics |= cost_metrics(answers)
        if asked > 1:
            metrics |= {"samples": float(verdict.samples), "spread": verdict.spread}
        if self.likelihoods:
            known = [answer.value.likelihoods for answer in answers]
            for name in self.rubric.names:
                masses = [one[name].mass if name in one else 0.0 for one in known]
                metrics[f"mass/{name}"] = sum(masses) / len(masses)
        return metrics


def cost_metrics(answers: Sequence[Answer[Any]]) -> dict[str, float]:
    """Gives what answers took: requests, tokens, USD where it is known, and the share that the cache had."""
    sent = [answer for answer in answers if answer.requests]
    used = [answer.reply.usage for answer in sent if answer.reply.usage is not None]
    metrics = {
        "requests": float(sum(answer.requests for answer in sent)),
        "cached": sum(answer.cached for answer in answers) / max(1, len(answers)),
    }
    if len(used) == len(sent):
        metrics["prompt_tokens"] = float(sum(usage.prompt_tokens for usage in used))
        metrics["completion_tokens"] = float(sum(usage.completion_tokens for usage in used))
    costs = [answer.cost_usd for answer in sent]
    if all(cost is not None for cost in costs):
        metrics["cost_usd"] = sum(cost for cost in costs if cost is not None)
    return metrics


class LLMJudge(JudgeReward):
    """A language model that grades a completion by criteria; its score is in [0, 1].

    The score is the weighted mean of the grades, each normalised to the scale. A reply that cannot be read, refuses or
    is cut short is a failure, never a score; a row without its reference is skipped. Answers that say nothing (empty,
    ``":"``, ``"Thought process:"``) get 0.0 without being asked about.

    Metrics of a score: ``grade/<criterion>``, ``requests``, ``cached``, ``prompt_tokens``, ``completion_tokens``,
    ``cost_usd`` where the model has a price; with several samples ``samples`` and ``spread``; with likelihoods
    ``mass/<criterion>``; ``prefiltered`` where it was not asked.

    Args:
        model: The model's name, as its server knows it.
        criteria: What is graded; by default what the template has of its own.
        scale: Lowest and highest grade, whole numbers.
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
        default: The score that stands in for a failed call; ``None`` leaves the completion out of the baseline.
        name: The reward's name.
        asking: How the model is asked, see :class:`JudgeModel`: ``base_url``, ``key_env``, ``temperature`` (0.0, or
            0.7 for several samples), ``max_tokens``, ``deadline_s``, ``budget``, ``prices``, ``cache``, ``load``,
            ``retry``, ``format``, ``options``, ``client``.

    Raises:
        JudgeSetupError: A setting makes no sense; names it and the fix.

    Example:
        >>> from rewardkit.testing import FakeJudge
        >>> says = FakeJudge('{"correct": {"reason": "It is 4.", "score": 5}}')
        >>> judge = LLMJudge("any", [Criterion("correct", "Is it right?")], reference="answer", client=says)
        >>> asyncio.run(judge(prompt="2+2=", completion="4", answer="4")).value
        1.0
    """

    def __init__(
        self,
        model: str,
        criteria: Sequence[Criterion] | None = None,
        *,
        scale: tuple[int, int] = (1, 5),
        reference: str | None = None,
        template: str | Template | None = None,
        columns: Mapping[str, str] | None = None,
        samples: int = 1,
        likelihoods: bool = False,
        prefilter: bool = True,
        max_chars: int = MAX_CHARS,
        reason_chars: int | None = None,
        default: float | None = None,
        name: str = "judge",
        **asking: Unpack[Asking],
    ) -> None:
        chosen = chosen_template(template, "rubric" if reference is None else "correctness", pairwise=False)
        if samples != 1:
            asking.setdefault("temperature", _SAMPLING_TEMPERATURE)
        asked = JudgeModel(model, **asking)
        _check_samples(samples, asked)
        check_length("max_chars", max_chars, 2)
        check_length("reason_chars", reason_chars, 20)
        grading = Grading(
            name,
            asked,
            Rubric(_criteria(criteria, chosen), scale),
            chosen,
            filled_by(chosen, reference, columns),
            samples,
            likelihoods,
            prefilter,
            max_chars,
            reason_chars,
        )
        super().__init__(grading, judging_options(name, asked, default))

    @property
    def model(self) -> JudgeModel:
        """The model behind it."""
        assert isinstance(self._judging, Grading)
        return self._judging.model


def judging_options(name: str, asked: JudgeModel, default: float | None, times: int = 1) -> Any:
    """Gives the options of a reward whose calls make so many judgements one after another."""
    timeout_s = times * asked.deadline_s + MARGIN_S
    calls = math.ceil(_CALLS_A_REQUEST * asked.load.concurrency)
    return judge_options(name, timeout_s, default, score_range=(0, 1), concurrency=calls)


def chosen_template(given: str | Template | None, usual: str, *, pairwise: bool) -> Template:
    """Gives the template that is asked for.

    Raises:
        JudgeSetupError: There is none of that name, or it is of the other kind of judge.
    """
    chosen = given if isinstance(given, Template) else builtin_template(usual if given is None else given)
    if chosen.is_pairwise != pairwise:
        kind, other = ("a PairwiseJudge", "an LLMJudge") if chosen.is_pairwise else ("an LLMJudge", "a PairwiseJudge")
        raise JudgeSetupError(f"template {chosen.name!r} is for {kind}, and this is {other}")
    return chosen


def filled_by(
    template: Template, reference: str | None, columns: Mapping[str, str] | None, *, group: bool = False
) -> Columns:
    """Gives the columns that fill a template.

    Raises:
        JudgeSetupError: A field has no column, or a column no field.
    """
    given = dict(columns or {}) | ({} if reference is None else {"reference": reference})
    ours = {"prompt", "completion", "first", "second", "criteria", "scale"}
    fields = sorted(template.uses - ours)
    for field, column in given.items():
        if field not in fields:
            raise JudgeSetupError(f"column {column!r}: template {template.name!r} has no field {{{field}}}")
        if not isinstance(column, str) or not column.isidentifier() or column in _RESERVED:
            raise JudgeSetupError(f"column {column!r} for {{{field}}}: expected the name of a dataset column")
    if "reference" in fields and "reference" not in given:
        raise JudgeSetupError(
            f"template {template.name!r} needs the right answer: name its dataset column, as reference='answer'"
        )
    return Columns({field: given.get(field, field) for field in fields}, "prompt" in template.uses, group)


def check_length(setting: str, value: int | None, least: int) -> None:
    """Raise where a number of characters makes no sense."""
    if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < least):
        raise JudgeSetupError(f"{setting}={value!r}: expected a whole number of characters, at least {least}")


def _criteria(given: Sequence[Criterion] | None, template: Template) -> Sequence[Criterion]:
    if given is not None:
        return given
    if not template.criteria:
        raise JudgeSetupError(
            f"criteria: template {template.name!r} has none of its own; give [Criterion('correct', 'Is it right?')]"
        )
    return template.criteria


def _check_samples(samples: int, asked: JudgeModel) -> None:
    if isinstance(samples, bool) or not isinstance(samples, int) or samples < 1:
        raise JudgeSetupError(f"samples={samples!r}: expected a whole number, 1 or more")
    if samples > 1 and not asked.can_vary:
        raise JudgeSetupError(
            f"samples={samples} at temperature={asked.temperature} are one answer {samples} times; "
            f"set temperature={_SAMPLING_TEMPERATURE}"
        )
