"""A language model that grades one completion by criteria: :class:`LLMJudge`, a reward as any other.

Owns what becomes of one completion: whether it is asked about at all, how many samples are asked, and the score with
its reason and metrics. The prompt, the reading and the asking are the other modules'.
"""

from __future__ import annotations

import asyncio
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
from builtin_rewards.judge.prompted import Prompted, PromptedReward, chosen_template, filled_by, judging_options
from builtin_rewards.judge.rubric import Criterion, Rubric
from builtin_rewards.judge.verdict import Verdict, combine, read_verdict
from rewardkit import Score

_SAMPLING_TEMPERATURE = 0.7
"""Of several samples, where none is given: that of the self-consistency paper (arXiv 2203.11171, section 3.1)."""
_SHOWN_REASON_CHARS = 400


class Read(NamedTuple):
    """What was read from one reply."""

    verdict: Verdict
    likelihoods: Mapping[str, GradeLikelihood]


@dataclass(frozen=True, eq=False, kw_only=True)
class Grading(Prompted):
    """The function of an :class:`LLMJudge`: grades one completion."""

    rubric: Rubric
    samples: int
    likelihoods: bool

    @property
    def rounds(self) -> int:
        # As many calls are under way as questions at once: the last sample waits for all the others of each call.
        return 1 + self.samples

    async def __call__(self, **columns: Any) -> Score:
        asked = self._questions(columns)
        if isinstance(asked, Score):
            return asked
        left_out = self.left_out(turns_of(columns.get("prompt", ""), "prompt"))
        scored = self._score(await self._ask(asked))
        return replace(scored, metrics={**scored.metrics, **left_out})

    def rendered(self, columns: Mapping[str, Any]) -> tuple[Question, ...]:
        asked = self._questions(columns)
        return () if isinstance(asked, Score) else tuple(asked[:1])

    def _questions(self, columns: Mapping[str, Any]) -> list[Question] | Score:
        """Gives the question of each sample; the score where none is asked."""
        if why := self.columns.missing(columns):
            return Score(None, why)
        prompt, answer = turns_of(columns.get("prompt", ""), "prompt"), turns_of(columns["completion"], "completion")
        values = self.columns.values(columns)
        if why := self.unseen(prompt, answer):
            return Score(None, why)
        if why := self.says_nothing(answer, values.get("reference")):
            return Score(0.0, f"not asked: {why}", {"prefiltered": 1.0})
        view = self.view(prompt, {"completion": answer})
        messages = view.template.fill(
            {**view.values, **values, **self.rubric.words()}, max_chars=self.max_chars, images=view.images
        )
        schema = self.rubric.json_schema(self.reason_chars)
        return [Question(messages, schema, self.prompt_version, at, self.likelihoods) for at in range(self.samples)]

    async def _ask(self, questions: Sequence[Question]) -> list[Answer[Read | JudgeReplyError] | JudgeError]:
        if len(questions) == 1:
            return [await self.attempt(questions[0], self._read)]
        asked = (self.attempt(question, self._read) for question in questions)
        came = await asyncio.gather(*asked, return_exceptions=True)
        for one in came:
            if isinstance(one, BaseException) and (isinstance(one, JudgeSetupError) or not isinstance(one, JudgeError)):
                raise one  # no sample that was lost: none can be had so
        return came  # type: ignore[return-value]  # everything else was raised

    def _read(self, reply: Reply, format: Format) -> Read:
        verdict = read_verdict(reply, self.rubric, format)
        return Read(*weighted(reply, verdict, self.rubric)) if self.likelihoods else Read(verdict, {})

    def _score(self, came: Sequence[Answer[Read | JudgeReplyError] | JudgeError]) -> Score:
        answers = [one for one in came if isinstance(one, Answer)]
        values = [one.value if isinstance(one, Answer) else one for one in came]
        verdicts = [value.verdict if isinstance(value, Read) else value for value in values]
        verdict = _only(verdicts[0]) if len(verdicts) == 1 else combine(verdicts, self.rubric)
        metrics = self._metrics(verdict, [value for value in values if isinstance(value, Read)], len(came))
        return Score(verdict.score, self._words(verdict), metrics | cost_metrics(answers))

    def _words(self, verdict: Verdict) -> str:
        high = self.rubric.scale.high
        each = (
            f"{name} {verdict.grades[name]:.3g} of {high}: {verdict.reasons[name][:_SHOWN_REASON_CHARS]}"
            for name in self.rubric.names
        )
        return "; ".join(each)

    def _metrics(self, verdict: Verdict, read: Sequence[Read], asked: int) -> dict[str, float]:
        metrics = {f"grade/{name}": float(grade) for name, grade in verdict.grades.items()}
        if asked > 1:
            metrics |= {"samples": float(verdict.samples), "spread": verdict.spread}
        if self.likelihoods:
            known = [one.likelihoods for one in read]
            for name in self.rubric.names:
                masses = [one[name].mass if name in one else 0.0 for one in known]
                metrics[f"mass/{name}"] = sum(masses) / len(masses)
        return metrics


class LLMJudge(PromptedReward):
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
        scale: tuple[int, int] = (1, 5),
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
        chosen = chosen_template(template, "rubric" if reference is None else "correctness", pairwise=False)
        if samples != 1:
            asking.setdefault("temperature", _SAMPLING_TEMPERATURE)
        rubric = Rubric(_criteria(criteria, chosen), scale)
        filling = filled_by(chosen, reference, columns)
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
