"""A check of a form is no reward of length, though what it asks for makes completions longer."""

from __future__ import annotations

import numpy as np
import pytest
from synthetic_runs import Drawn, Plant, run_of


def _paying_form(graded: bool) -> Plant:
    """Return a plant of headings that add tokens, and of a reward for them: a check, or one in many grades."""

    def plant(drawn: Drawn) -> None:
        count = len(drawn.groups)
        headings = drawn.rng.integers(0, 12, count) if graded else 12 * drawn.rng.integers(0, 2, count)
        drawn.tokens = np.round(100 + 30 * headings + drawn.rng.normal(0, 5, count))
        drawn.scores["structure"] = headings / 12
        drawn.weights["structure"] = 0.3

    return plant


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("graded", "flagged"), [(False, []), (True, ["structure"])], ids=["check", "grades"])
def test_only_a_reward_of_many_scores_pays_length_by_itself(graded: bool, flagged: list[str], seed: int) -> None:
    """The check has two scores, the other one grows with every heading."""
    flags = run_of(_paying_form(graded), seed=seed, steps=20, words=3).watched().flags
    assert flagged == [flag.reward for flag in flags if flag.detector == "length_reward" and flag.reward]
