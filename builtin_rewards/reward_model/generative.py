"""A language model that scores by the probability of its own verdict: :class:`GenerativeRewardModel`.

It is a judge of one criterion, so it has a judge's fallback, budget, cache and deadlines; only what it is asked and how
its verdict is weighted are set here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Unpack

from builtin_rewards.judge.errors import JudgeSetupError
from builtin_rewards.judge.fallback import JudgeReward
from builtin_rewards.judge.llm import GradingFunction, LLMJudge
from builtin_rewards.judge.rubric import Criterion, Rubric
from builtin_rewards.judge.settings import JudgeSettings, check_names

MODES = ("yes", "critique")
_CRITERION = Criterion("good", "The answer is right and does what was asked.")
_RIGHT = Criterion("good", "The answer gives the same result as the reference answer, perhaps in other words.")


class GenerativeRewardModel(LLMJudge):
    """A language model whose score is the probability of its verdict that an answer is good, 0 to 1.

    ``mode="yes"`` asks for the verdict alone: the score is p(yes) / (p(yes) + p(no)) of its one token, as the direct
    generative verifier of Zhang et al. (arXiv 2408.15240, section 3.2). ``mode="critique"`` has the model write a
    critique first, and takes that probability after it; several ``samples`` are several critiques, whose mean is the
    score (GenRM-CoT, section 3.3).

    A server that gives no log-probabilities leaves the verdict as it was sampled; the metric ``mass/<criterion>`` is 0
    then. Failures, skips and metrics are those of :class:`~builtin_rewards.judge.LLMJudge`.

    Args:
        model: The model's name, as its server knows it.
        criterion: What an answer must be to be good, a text or a :class:`~builtin_rewards.judge.Criterion`.
        mode: ``"yes"`` or ``"critique"``.
        samples: Critiques for each completion; 1 with ``"yes"``, whose probability needs no second draw.
        scale: Lowest and highest grade; the score of a scale such as (1, 5) is the expected grade, as a share of it.
        settings: What all judges share, such as ``base_url``, ``reference``, ``budget``, ``cache`` and ``client``.

    Raises:
        JudgeSetupError: A setting is wrong; names it and the fix.

    Example:
        >>> from rewardkit.testing import FakeJudge
        >>> model = GenerativeRewardModel("any", "It is right.", client=FakeJudge.verdict(good=1))
        >>> model(prompt="2+2=", completion="4").value
        1.0
    """

    def __init__(
        self,
        model: str,
        criterion: Criterion | str | None = None,
        *,
        mode: str = "yes",
        samples: int = 1,
        scale: tuple[int, int] = (0, 1),
        **settings: Unpack[JudgeSettings],
    ) -> None:
        check_names(settings, GenerativeRewardModel, [LLMJudge])
        if mode not in MODES:
            raise JudgeSetupError(f"mode={mode!r}: expected one of {', '.join(MODES)}")
        if mode == "yes" and (samples != 1 or tuple(scale) != (0, 1)):
            raise JudgeSetupError(
                f"mode='yes' with samples={samples}, scale={tuple(scale)}: it asks once for yes or no, and takes the "
                "probability; several critiques, or grades, are mode='critique'"
            )
        if settings.get("template") is None:
            settings["template"] = _template(mode, settings)
        super().__init__(
            model, [_as_criterion(criterion, settings)], scale=scale, samples=samples, likelihoods=True, **settings
        )
        grading = self._judging
        if mode == "yes" and isinstance(grading, GradingFunction):
            rubric = Rubric(grading.rubric.criteria, grading.rubric.scale, reasoned=False)
            bare = replace(grading, rubric=rubric, columns=replace(grading.columns, like=rubric))
            JudgeReward.__init__(self, bare, self.options)


def _template(mode: str, settings: JudgeSettings) -> str:
    """Return the name of the template for a mode, with a reference or without."""
    names: Mapping[tuple[str, bool], str] = {
        ("yes", False): "yes_no",
        ("yes", True): "yes_no_reference",
        ("critique", False): "rubric",
        ("critique", True): "correctness",
    }
    return names[mode, settings.get("reference") is not None]


def _as_criterion(criterion: Criterion | str | None, settings: JudgeSettings) -> Criterion:
    """Return the criterion, under the name ``good`` where it is text."""
    if criterion is None:
        return _CRITERION if settings.get("reference") is None else _RIGHT
    return Criterion("good", criterion) if isinstance(criterion, str) else criterion
