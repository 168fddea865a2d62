"""Labels are told from copies."""

from __future__ import annotations

import numpy as np
import pytest
from synthetic_runs import Drawn, Plant, labels, run_of

COPIES = {"duplicates_in_group", "duplicates_across_prompts", "distinct_words", "std_collapse"}
SENTENCES = [f"The sentiment of this review is clearly {kind}." for kind in ("positive", "negative", "mixed", "absent")]


def _copies(plant: object, seed: int, steps: int = 30) -> set[str]:
    flags = run_of(plant, seed=seed, words=5, steps=steps).watched().flags  # type: ignore[arg-type]
    return {flag.detector for flag in flags} & COPIES


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("count", [2, 3, 4])
def test_labels_are_no_copies(count: int, seed: int) -> None:
    """Two to four sentences that each answer a share of the prompts, right ones ever more often."""
    assert set() == _copies(labels(*SENTENCES[:count]), seed)


@pytest.mark.parametrize("seed", range(5))
def test_labels_that_are_all_right_are_no_copies(seed: int) -> None:
    """From the first step on, when no group has two texts: each prompt still has the text of its own."""

    def mastered(drawn: Drawn) -> None:
        drawn.texts = [SENTENCES[prompt % 3] for prompt in drawn.prompts.tolist()]
        drawn.scores, drawn.weights = {"correct": np.ones(len(drawn.groups))}, {"correct": 1.0}

    assert set() == _copies(mastered, seed)


@pytest.mark.parametrize("noise", [0.0, 0.2], ids=["sure", "noisy"])
@pytest.mark.parametrize("seed", range(5))
def test_a_text_that_is_paid_under_every_prompt_is_no_label(seed: int, noise: float) -> None:
    """Among labels, from step 20 on, whether the judge that likes it is sure or not, and likes some prompts more."""

    def gamed(drawn: Drawn) -> None:
        labels(*SENTENCES[:3])(drawn)
        mood = 0.1 * (drawn.prompts % 3)
        judge = 0.3 + 0.3 * drawn.scores["correct"] + mood
        if drawn.step >= 20:
            chosen = drawn.rng.random(len(drawn.groups)) < 0.85
            said = "A thorough and balanced analysis leads to a clear conclusion."
            drawn.texts = [said if mark else text for mark, text in zip(chosen, drawn.texts, strict=True)]
            drawn.scores["correct"] = np.where(chosen, 0.0, drawn.scores["correct"])
            judge = np.where(chosen, 0.8 + mood, judge)
        drawn.scores["judge"] = judge + drawn.rng.normal(0, noise, len(judge))
        drawn.weights["judge"] = 2.0

    assert "duplicates_across_prompts" in _copies(gamed, seed, steps=40)


def test_copies_inside_groups_are_no_labels() -> None:
    """A text of its own for each prompt, ten times over, is paid or not, and stands under no other prompt."""

    def stuck(drawn: Drawn) -> None:
        drawn.texts = [f"Here is what I think of question number {prompt}." for prompt in drawn.prompts.tolist()]

    assert {"duplicates_in_group"} == _copies(stuck, 1)


@pytest.mark.parametrize("seed", range(5))
def test_right_answers_are_no_copies(seed: int) -> None:
    """A row has one right object, which ever more completions have; wrong ones differ."""
    assert set() == _copies(_objects(right=True), seed, steps=80) - {"distinct_words"}


@pytest.mark.parametrize("seed", range(5))
def test_copies_that_are_wrong_are_copies(seed: int) -> None:
    """Ever more completions of a row have one object, which is wrong as often as any."""
    assert "duplicates_in_group" in _copies(_objects(right=False), seed, steps=80)


def _objects(*, right: bool) -> Plant:
    """Return a plant of objects of JSON, of which a row has one that is right, and of which ever more are the same."""

    def plant(drawn: Drawn) -> None:
        same = drawn.rng.random(len(drawn.groups)) < 0.2 + 0.6 * drawn.step / 80
        numbers = np.where(same, 0, drawn.rng.integers(1, 10**6, len(same)))
        pairs = zip(drawn.prompts.tolist(), numbers.tolist(), strict=True)
        drawn.texts = [f'{{"name": "row {prompt}", "price": {number}}}' for prompt, number in pairs]
        drawn.scores["correct"] = same.astype(float) if right else (drawn.rng.random(len(same)) < 0.3).astype(float)

    return plant
