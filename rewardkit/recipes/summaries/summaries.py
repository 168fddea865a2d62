"""Summaries: of the asked length, with what must be in them, in words of their own."""

from typing import Any

from builtin_rewards.echo import no_prompt_echo
from builtin_rewards.length import length_between
from builtin_rewards.matching import contains_all
from builtin_rewards.repetition import repetition_penalty
from rewardkit import Composite

brief = length_between(8, 40).with_options(name="brief")
covered = contains_all.with_options(name="covered")
summary = (0.4 * covered + 0.3 * brief + 0.3 * no_prompt_echo + repetition_penalty).named("summary")


def judged_summary(model: str, **asking: Any) -> Composite:
    """Return the same with a judge's grade for what rules do not read; ``asking`` is as LLMJudge has it."""
    from builtin_rewards.judge import Criterion, LLMJudge

    rubric = [
        Criterion("true", "Everything that it says stands in the text.", weight=2),
        Criterion("readable", "A reader who does not know the text understands it."),
    ]
    judge = LLMJudge(model, rubric, scale=(1, 5), **asking)
    whole: Composite = (0.6 * summary + 0.4 * judge).named("judged_summary")
    return whole
