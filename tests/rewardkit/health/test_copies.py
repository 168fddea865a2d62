"""Completions that repeat their prompt are named as such; tasks whose answers are in the prompt are not accused."""

from __future__ import annotations

import pytest
from synthetic_runs import Drawn, Plant, run_of

from rewardkit import Rollout
from rewardkit.health.examine import diagnose_rows
from rewardkit.health.flag import Flag
from rewardkit.score_batch import ScoreBatch
from rewardkit.types import Outcome, Status

PASSAGE = (
    "Say in one sentence what the river does in spring, when the snow of the mountains melts and the dams are full."
)


def _flags(plant: Plant, seed: int = 1, **about: str) -> list[Flag]:
    flags = run_of(plant, seed=seed, steps=60, words=15, **about).watched().flags
    return [flag for flag in flags if flag.detector in ("prompt_copies", "duplicates_in_group", "distinct_words")]


def _echo(*forms: str, since: int = 0) -> Plant:
    """Return a plant of forms of a text that take the place of ever more completions."""

    def plant(drawn: Drawn) -> None:
        echo = drawn.rng.random(len(drawn.groups)) < (0.9 if since < 0 else 0.016 * max(0, drawn.step - since))
        texts = enumerate(zip(echo, drawn.texts, strict=True))
        drawn.texts = [forms[number % len(forms)] if mark else text for number, (mark, text) in texts]

    return plant


@pytest.mark.cases(3)
@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(
    "forms",
    [
        (PASSAGE,),
        (PASSAGE.upper(), f"Here: {PASSAGE}", PASSAGE[16:]),
        (f"You ask: {PASSAGE} That is a good question.",),
    ],
    ids=["whole", "with changes", "with more"],
)
def test_copies_of_the_prompt_are_named(forms: tuple[str, ...], seed: int) -> None:
    """Whole or most of it; and nothing else is said of these copies inside groups."""
    names = {flag.detector for flag in _flags(_echo(*forms), seed, prompt=PASSAGE)}
    assert {"prompt_copies"} == names


def test_the_prompt_itself_is_flagged_at_once() -> None:
    """From the first step on, without a baseline; a text that is mostly in the prompt is not, as of a correction."""
    (flag,) = _flags(_echo(PASSAGE, since=-1), prompt=PASSAGE)
    assert ("prompt_copies", 0) == (flag.detector, flag.first_step)
    corrected = [f"{PASSAGE[20:].replace('snow', f'snow number {n}')}" for n in range(40)]
    assert "prompt_copies" not in {
        flag.detector for flag in _flags(_echo(*corrected, since=-1), prompt=f"Correct: {PASSAGE}")
    }


def test_an_answer_that_names_the_question_is_no_copy() -> None:
    """It says the question first, and then more than it is long."""
    own = "The water rises over the banks and spreads over the meadows of the valley. " * 3
    forms = [f"{PASSAGE} {own} So it was in year {n}, and so it is." for n in range(60)]
    assert [] == [flag for flag in _flags(_echo(*forms), prompt=PASSAGE) if flag.detector == "prompt_copies"]


def test_the_last_message_of_a_conversation_is_what_is_copied() -> None:
    """The system's message before it is as long as you like."""
    prompt = [{"role": "system", "content": "Be brief. " * 40}, {"role": "user", "content": PASSAGE}]
    rollouts = [Rollout([*prompt[:1], {"role": "user", "content": f"{PASSAGE} {n // 4}"}], "", {}) for n in range(64)]
    copies = [
        Rollout(rollout.prompt, str(rollout.prompt[1]["content"]), {"row": n // 4})
        for n, rollout in enumerate(rollouts)
    ]
    outcomes = [Outcome(Status.SCORED, float(n % 2)) for n in range(64)]
    diagnosis = diagnose_rows(ScoreBatch(copies, {"overlap": outcomes}, {"overlap": 1.0}))
    assert ["prompt_copies"] == [flag.detector for flag in diagnosis.flags]
