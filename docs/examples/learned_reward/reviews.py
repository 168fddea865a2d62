"""The example's small world: reviews of hotels in some sixty words, and what a guest makes of one (the gold reward)."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence

from rewardkit import reward

PLACES = "paris rome oslo lima cairo delhi kyoto quito".split()  # noqa: SIM905 - a list of words reads as one
THINGS = "room bed bath view food staff lobby pool garden bar".split()  # noqa: SIM905
GOOD = "lovely clean quiet warm bright fresh calm cosy neat kind".split()  # noqa: SIM905
BAD = "dirty loud cold dark stale rude damp broken slow dull".split()  # noqa: SIM905
NEUTRAL = "old new large blue green wooden round plain modern tall".split()  # noqa: SIM905
OTHERS = "review the in : was and it .".split()  # noqa: SIM905
WORDS = (*OTHERS, *PLACES, *THINGS, *GOOD, *BAD, *NEUTRAL)
"""All words that there are; a token each."""


@reward
def gold(completion: str) -> float:
    """What a guest makes of a review: each praise counts 1, each complaint -1, and each word said again -1."""
    said = [word for word in completion.split() if word in GOOD or word in BAD or word in NEUTRAL]
    praise = len({word for word in said if word in GOOD})
    complaints = len({word for word in said if word in BAD})
    return float(praise - complaints - (len(said) - len(set(said))))


def prompts() -> list[str]:
    """Return all prompts: each thing in each place."""
    return [f"review the {thing} in {place} :" for place in PLACES for thing in THINGS]


def written(count: int, seed: int) -> list[tuple[str, str]]:
    """Return prompts with reviews of one to four sentences, in which no word of praise or blame is said twice."""
    dice = random.Random(seed)
    asked = prompts()
    found = []
    for _ in range(count):
        prompt = dice.choice(asked)
        sentences = dice.randint(1, 4)
        told = iter(dice.sample([*GOOD, *BAD, *NEUTRAL], 2 * sentences))
        subjects = [f"the {prompt.split()[2]}", *["it"] * (sentences - 1)]
        found.append((prompt, " ".join(f"{subject} was {next(told)} and {next(told)} ." for subject in subjects)))
    return found


def preferences(drawn: Sequence[tuple[str, str, str]], seed: int) -> list[dict[str, str]]:
    """Return a preference for each prompt with two completions, as a guest has it who is not always sure.

    The chance that the first is chosen is 1 / (1 + exp(-d)), with d the difference of the gold: Bradley and Terry's
    model of a judge with noise. Two completions that are equal make no preference.
    """
    dice = random.Random(seed)
    rows = []
    for prompt, one, other in drawn:
        if one.strip() and other.strip() and one != other:
            ahead = gold(completion=one) - gold(completion=other)
            first = dice.random() < 1 / (1 + math.exp(-ahead))
            chosen, rejected = (one, other) if first else (other, one)
            rows.append({"prompt": prompt, "chosen": chosen, "rejected": rejected})
    return rows
