"""A judge of one criterion that scores by the probability of its own verdict: :class:`GenerativeRewardModel`."""

from __future__ import annotations

from dataclasses import replace
from typing import Unpack

from builtin_rewards.endpoint.errors import JudgeSetupError
from builtin_rewards.judge.fallback import JudgeReward
from builtin_rewards.judge.llm import GradingFunction, LLMJudge
from builtin_rewards.judge.rubric import Criterion, Rubric
from builtin_rewards.judge.settings import JudgeSettings, check_names

_TEMPLATES = {"yes": ("yes_no", "yes_no_reference"), "critique": ("rubric", "correctness")}  # without a reference, with
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
        if mode not in _TEMPLATES:
            raise JudgeSetupError(f"mode={mode!r}: expected one of {', '.join(_TEMPLATES)}")
        if mode == "yes" and (samples != 1 or tuple(scale) != (0, 1)):
            raise JudgeSetupError(
                f"mode='yes' with samples={samples}, scale={tuple(scale)}: it asks once for yes or no, and takes the "
                "probability; several critiques, or grades, are mode='critique'"
            )
        if settings.get("template") is None:
            settings["template"] = _TEMPLATES[mode][settings.get("reference") is not None]
        if criterion is None:
            criterion = _CRITERION if settings.get("reference") is None else _RIGHT
        elif isinstance(criterion, str):
            criterion = Criterion("good", criterion)
        super().__init__(model, [criterion], scale=scale, samples=samples, likelihoods=True, **settings)
        grading = self._judging
        if mode == "yes" and isinstance(grading, GradingFunction):  # no reason before the grade
            rubric = Rubric(grading.rubric.criteria, grading.rubric.scale, reasoned=False)
            short_grading = replace(grading, rubric=rubric, columns=replace(grading.columns, like=rubric))
            JudgeReward.__init__(self, short_grading, self.options)
