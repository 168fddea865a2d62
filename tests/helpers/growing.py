"""A training without a trainer: quick steps until its standard input ends, with rewards that may change meanwhile."""

from __future__ import annotations

import select
import sys
import time

from rewardkit import Rollout, Runtime, Score, reward
from rewardkit.changing import LiveRuntime

PROMPTS, GROUP, STEPS_PER_EPOCH = 8, 4, 4


@reward
def brief(completion: str) -> Score:
    """Pay for few characters."""
    return Score(1.0 / len(completion), f"{len(completion)} characters")


@reward
def right(completion: str, answer: int) -> float:
    """1 where the last word is the answer."""
    return float(completion.split()[-1] == str(answer))


def drawn(step: int) -> list[Rollout]:
    """Return a step's rollouts: two of the prompts, which come again in each epoch, with answers that get better."""
    first = 2 * (step % STEPS_PER_EPOCH)
    return [
        Rollout(f"{number}+1=", f"After {step} steps it is {number + (place <= step % GROUP)}", {"answer": number + 1})
        for number in (first, first + 1)
        for place in range(GROUP)
    ]


def main(run: str, step_s: float) -> None:
    """Train."""
    with LiveRuntime(Runtime([brief, right], workers=1, record=run)) as live:
        step = 0
        while not select.select([sys.stdin], [], [], 0)[0]:
            live.score(drawn(step), step=step, epoch=step / STEPS_PER_EPOCH)
            step += 1
            time.sleep(step_s)


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]))
