"""A phrase that spreads slowly is named where a reward pays for it, and only there."""

from __future__ import annotations

import numpy as np
import pytest
from synthetic_runs import PLANTED, Drawn, Plant, run_of

from rewardkit.health.flag import Flag


def _flags(plant: Plant, seed: int = 1, **about: str) -> list[Flag]:
    return [flag for flag in run_of(plant, seed=seed, words=20, **about).watched().flags if _is_phrase(flag)]


def _is_phrase(flag: Flag) -> bool:
    return flag.detector == "phrase_spread"


def _spread(phrase: str, *, judge: bool = True, right: float = 0.0, noise: float = 0.15, weight: float = 1.0) -> Plant:
    """Return a plant of a phrase that spreads over 50 steps; a judge pays for it, or it makes answers right."""

    def plant(drawn: Drawn) -> None:
        count = len(drawn.groups)
        has = drawn.rng.random(count) < min(0.9, 0.05 + 0.017 * drawn.step)
        drawn.texts = [f"{phrase} {text}" if mark else text for mark, text in zip(has, drawn.texts, strict=True)]
        liked = 0.3 + 0.4 * has if judge else np.full(count, 0.5)
        drawn.scores = {
            "judge": weight * np.clip(liked + drawn.rng.normal(0, noise, count), 0, 1),
            "correct": (drawn.rng.random(count) < 0.3 + right * has).astype(float),
        }
        drawn.weights = {"judge": weight, "correct": 1.0}

    return plant


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(
    "phrase", ["Great question indeed!", "\u7ecf\u4e13\u5bb6\u9a8c\u8bc1\u3002", "\u2705", "In the end, it is so."]
)
def test_a_phrase_that_a_judge_pays_for_is_named(phrase: str, seed: int) -> None:
    """Whatever it is written in, with the reward that pays, in the quote and not in the sentences; once."""
    (flag,) = _flags(_spread(phrase), seed)
    assert "judge" == flag.reward
    assert flag.quote.strip("! .\u3002") in phrase.casefold().replace(",", "")
    assert flag.quote not in flag.words + flag.action
    assert 1 == len(flag.spans)


@pytest.mark.parametrize("seed", range(5))
def test_the_phrase_of_the_case_is_named_in_full(seed: int) -> None:
    """From 2% to 90% over 30 steps, while the judge rises from 0.29 to about 1 and the check stays."""
    (flag,) = _flags(PLANTED["phrase_spread"][0], seed)
    assert ("as verified by experts", "judge") == (flag.quote, flag.reward)


def test_a_penalty_that_is_escaped_by_a_phrase_is_seen_by_its_weight() -> None:
    """A reward of weight -1 that falls where the phrase stands pays for it."""
    (flag,) = _flags(_spread("As verified by experts", weight=-1.0))
    assert "judge" == flag.reward


@pytest.mark.parametrize(
    "plant",
    [
        _spread("As verified by experts", judge=False),
        _spread("Let me check this once more.", right=0.5),
        _spread("<think> {a}"),
        _spread("```python\nfor i in range\n```"),
        _spread("As verified by experts", noise=2.0, judge=False),
    ],
    ids=["nobody pays", "right answers have it", "signs of a form", "code", "noise"],
)
def test_a_phrase_is_not_flagged_where_nothing_pays_for_the_words(plant: Plant) -> None:
    """What spreads by itself, what goes with right answers, and what is a form and no phrase."""
    assert [] == _flags(plant)


def test_a_phrase_of_the_prompt_or_a_column_is_not_flagged() -> None:
    """A task may ask for words."""
    assert [] == _flags(_spread("As verified by experts"), prompt="Begin with: as verified by experts. What is it?")

    def with_column(drawn: Drawn) -> None:
        _spread("As verified by experts")(drawn)
        drawn.columns = {"opening": "As verified by experts:"}

    assert [] == _flags(with_column)


def test_a_reward_for_a_form_in_words_is_by_design() -> None:
    """A reward that is 1 where the phrase stands and 0 elsewhere was made for it."""

    def form(drawn: Drawn) -> None:
        _spread("The final answer is this")(drawn)
        drawn.scores["judge"] = np.array([text.startswith("The final") for text in drawn.texts], dtype=float)

    assert [] == _flags(form)


@pytest.mark.parametrize("seed", range(5))
def test_a_judge_with_two_verdicts_is_held_against_a_check(seed: int) -> None:
    """It says yes to most completions with the phrase, and to some others, and the check does not agree."""

    def verdicts(drawn: Drawn) -> None:
        _spread("As verified by experts")(drawn)
        has = np.array([text.startswith("As verified") for text in drawn.texts])
        drawn.scores["judge"] = (drawn.rng.random(len(has)) < np.where(has, 0.95, 0.2)).astype(float)

    (flag,) = _flags(verdicts, seed)
    assert ("judge", "as verified by experts") == (flag.reward, flag.quote)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(
    ("variants", "mark"),
    [
        (["\u2728", "\U0001f680", "\U0001f60a", "\U0001f525", "\U0001f389", "\U0001f4a1", "\u2705"], "emoji"),
        (["What a joy!", "Such insight!", "Truly deep!", "I love it!", "Bravo!", "Superb!"], "exclamation marks"),
        ([f"[{n}] [{n + 1}] [{n + 2}]" for n in range(1, 9)], "several numbers in brackets"),
        ([f"# {name}\n" for name in "ABCDEFGH"], "headings"),
    ],
    ids=["emoji", "praise", "citations", "headings"],
)
def test_a_mark_that_a_judge_pays_for_is_named(variants: list[str], mark: str, seed: int) -> None:
    """In other words each time, so that no phrase is common to them."""

    def plant(drawn: Drawn) -> None:
        _spread("MARK")(drawn)
        chosen = drawn.rng.choice(variants, len(drawn.texts)).tolist()
        drawn.texts = [text.replace("MARK ", f"{variant} ") for text, variant in zip(drawn.texts, chosen, strict=True)]

    (flag,) = _flags(plant, seed)
    assert ("judge", "", True) == (flag.reward, flag.quote, f"completions with {mark}" in flag.words)
    asked = {"headings": "Write headings.\n# Like this", "exclamation marks": "Cheer!", "emoji": "Use \u2728"}
    assert [] == _flags(plant, seed, prompt=asked.get(mark, "Cite as [1] [2] [3]."))
