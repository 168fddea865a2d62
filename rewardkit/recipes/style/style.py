"""A house style by a rubric: rules that can be counted, each with its weight, beside a judge for the rest."""

import re
from typing import Any

from builtin_rewards.length import length_between
from builtin_rewards.matching import contains_none
from rewardkit import Composite, Score, reward

HYPE = ["revolutionary", "game-changing", "cutting-edge", "seamlessly", "leverage", "unlock"]

plain = contains_none(terms=HYPE).with_options(name="plain")
short = length_between(5, 60).with_options(name="short")


@reward(score_range=(0, 1))
def sentences(completion: str) -> Score:
    """The share of sentences with at most 20 words."""
    sentences = [sentence for sentence in re.split(r"(?<=[.!?])\s+", completion.strip()) if sentence]
    good = sum(len(sentence.split()) <= 20 for sentence in sentences)
    return Score(good / len(sentences) if sentences else 0.0, f"{good} of {len(sentences)} sentences are short")


@reward(score_range=(0, 1))
def calm(completion: str) -> Score:
    """No exclamation marks and no words in capitals; each one costs a third."""
    loud = completion.count("!") + len(re.findall(r"\b[A-Z]{4,}\b", completion))
    return Score(max(0.0, 1 - loud / 3) if completion.strip() else 0.0, f"{loud} loud places")


style = (0.3 * plain + 0.2 * short + 0.25 * sentences + 0.25 * calm).named("style")


def judged_style(model: str, **asking: Any) -> Composite:
    """Return the same with a judge's grade for what cannot be counted; ``asking`` is as LLMJudge has it."""
    from builtin_rewards.judge import Criterion, LLMJudge

    rubric = [
        Criterion("concrete", "It says what the thing does, and praises nothing."),
        Criterion("kind", "It speaks to the reader as a neighbour would."),
    ]
    judge = LLMJudge(model, rubric, scale=(1, 5), **asking)
    whole: Composite = (0.5 * style + 0.5 * judge).named("judged_style")
    return whole
