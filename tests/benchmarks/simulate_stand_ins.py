"""What a policy earns by failing or by saying nothing, under each rule for what stands in for a missing score.

    python tests/benchmarks/simulate_stand_ins.py [--groups 4000] [--steps 150]

A policy chooses among a right answer, a wrong one and a third act: a hang (parts 1 and 2) or silence (part 3). The
tables say how often the third act beats the worst answer of its group, what it and a wrong answer earn, and how often
a policy that starts with a fifth of it still chooses it after so many steps by these advantages. In part 2 a tenth of
the calls, or of the groups, fails through no fault of the policy: what do those that failed lose?
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from rewardkit.advantages import group_advantages

Numbers: TypeAlias = NDArray[np.float64]
Acts: TypeAlias = NDArray[np.int64]
Rule: TypeAlias = Callable[[Numbers, "float | None"], "Numbers | float"]
RIGHT, WRONG, OTHER = range(3)
START = np.array([0.2, 0.6, 0.2])
SIZE = 8  # completions a group
GROUPS_A_STEP, RATE = 16, 0.3


class Scores(NamedTuple):
    """The scores of a reward: uniform between two bounds for each kind of answer, or normal around their middle."""

    name: str
    right: tuple[float, float]
    wrong: tuple[float, float]
    low: float | None  # the low end of the range that is declared
    normal: bool = False

    def of(self, rng: np.random.Generator, acts: Acts) -> Numbers:
        """Return the scores of acts, shape (groups, size); ``nan`` for the third."""
        ends = np.where(acts[..., None] == RIGHT, self.right, self.wrong)
        draws = rng.normal(ends.mean(-1), 2.0) if self.normal else rng.uniform(ends[..., 0], ends[..., 1])
        return np.where(acts == OTHER, np.nan, draws)


SCORES = (
    Scores("[0, 1]", (1, 1), (0, 0), 0.0),
    Scores("[-1, 1]", (1, 1), (-1, -1), -1.0),
    Scores("[-2, 0]", (-1, 0), (-2, -1), -2.0),
    Scores("0 or 1, no range", (1, 1), (0, 0), None),
    Scores("-1 or 1, no range", (1, 1), (-1, -1), None),
    Scores("unbounded", (1, 1), (-1, -1), None, normal=True),
)


def _lowest(scores: Numbers, axis: int | None) -> Numbers:
    return np.minimum(0.0, np.min(np.nan_to_num(scores, nan=0.0), axis=axis, keepdims=True))


RULES: Mapping[str, Rule] = {
    "0.0": lambda scores, low: 0.0,
    "nothing": lambda scores, low: np.nan,
    "low end; without a range 0.0": lambda scores, low: 0.0 if low is None else low,
    "low end; without a range nothing": lambda scores, low: np.nan if low is None else low,
    "low end; without a range the group's lowest": lambda scores, low: _lowest(scores, 1) if low is None else low,
    "low end; without a range the batch's lowest": lambda scores, low: _lowest(scores, None) if low is None else low,
}


def filled(scores: Numbers, rule: Rule, low: float | None) -> Numbers:
    """Return the scores with what stands in for those that are missing."""
    return np.where(np.isnan(scores), rule(scores, low), scores)


def advantages(scores: Numbers, scale: str) -> Numbers:
    """Return TRL's advantages of groups in rows."""
    return np.asarray(group_advantages(scores, SIZE, scale=scale)).reshape(scores.shape)


def beaten(acts: Acts, earned: Numbers) -> float:
    """Return the share of groups with both in which the third act earns more than the worst answer."""
    worst = np.where(acts == OTHER, np.inf, earned).min(axis=1)
    best = np.where(acts == OTHER, earned, -np.inf).max(axis=1)
    mixed = np.isfinite(worst) & np.isfinite(best)
    return float((best[mixed] > worst[mixed] + 1e-9).mean())


def trained(earn: Callable[[Acts], Numbers], steps: int, seed: int) -> Numbers:
    """Return the shares of the acts after steps of REINFORCE on the advantages that ``earn`` returns."""
    rng, logits = np.random.default_rng(seed), np.log(START)
    for _ in range(steps):
        shares = np.exp(logits) / np.exp(logits).sum()
        acts = rng.choice(3, (GROUPS_A_STEP, SIZE), p=shares)
        earned = earn(acts)
        logits += RATE * np.array([(earned * ((acts == act) - shares[act])).mean() for act in range(3)])
    return np.exp(logits) / np.exp(logits).sum()


def row(earn: Callable[[Acts], Numbers], groups: int, steps: int) -> list[str]:
    """Return the cells of one rule."""
    acts = np.random.default_rng(7).choice(3, (groups, SIZE), p=START)
    earned = earn(acts)
    end = np.mean([trained(earn, steps, seed) for seed in range(5)], axis=0)
    means = [f"{earned[acts == act].mean():+.2f}" for act in (OTHER, WRONG)]
    return [f"{beaten(acts, earned):.0%}", *means, f"{end[OTHER]:.1%}", f"{end[RIGHT]:.1%}"]


def hangs(groups: int, steps: int, scale: str) -> Table:
    """Compare the rules for a call that fails."""
    table = _table(f"1. a hang, advantages scaled by {scale}", "scores", "what stands in", *_CELLS)
    for scores in SCORES:
        for name, rule in RULES.items():
            rng = np.random.default_rng(3)

            def earn(acts: Acts, scores: Scores = scores, rule: Rule = rule) -> Numbers:
                return advantages(filled(scores.of(rng, acts), rule, scores.low), scale)  # noqa: B023 - used at once

            table.add_row(scores.name, name, *row(earn, groups, steps))
        table.add_section()
    return table


def innocents(groups: int) -> Table:
    """Say what completions lose whose calls fail at random, beside what they would have earned."""
    table = _table(
        "2. a tenth fails through no fault of the policy", "fails", "what stands in", "would earn", "earns"
    )  # fmt: skip
    rng, scores = np.random.default_rng(5), SCORES[1]
    acts = rng.choice(2, (groups, SIZE), p=[0.3, 0.7])
    whole = scores.of(rng, acts)
    for fails, failed in (
        ("calls", rng.random(acts.shape) < 0.1),
        ("whole groups", np.broadcast_to(rng.random((groups, 1)) < 0.1, acts.shape)),
    ):
        right = failed & (acts == RIGHT)
        for name in ("nothing", "low end; without a range 0.0"):
            earned = advantages(filled(np.where(failed, np.nan, whole), RULES[name], scores.low), "group")
            would = advantages(whole, "group")
            table.add_row(fails, name.partition(";")[0], f"{would[right].mean():+.2f}", f"{earned[right].mean():+.2f}")
    return table


COUNTED: Mapping[str, Callable[[Numbers, Numbers, float], Numbers]] = {
    "left out": lambda a, b, low: np.where(np.isnan(a), 0.2 * b, 0.8 * a + 0.2 * b),
    "the others' weights raised to 1": lambda a, b, low: np.where(np.isnan(a), b, 0.8 * a + 0.2 * b),
    "the row left out": lambda a, b, low: 0.8 * a + 0.2 * b,
    "its low end": lambda a, b, low: 0.8 * np.where(np.isnan(a), low, a) + 0.2 * b,
    "product, left out": lambda a, b, low: np.where(np.isnan(a), b, a * b),
    "product, its low end": lambda a, b, low: np.where(np.isnan(a), low, a) * b,
}


def silence(groups: int, steps: int) -> Table:
    """Compare what 0.8 * a + 0.2 * b and product(a, b) do where a skips what the model did not say."""
    table = _table("3. silence, which a skips and b scores as any other text", "a", "a skipped part", *_CELLS)
    for scores in SCORES[:2]:
        for name, counted in COUNTED.items():
            if name.startswith("product") and scores.low:
                continue  # products are for scores of 0 and above
            rng = np.random.default_rng(3)

            def earn(acts: Acts, scores: Scores = scores, counted: Callable[..., Numbers] = counted) -> Numbers:
                b = rng.uniform(0.2, 1.0, acts.shape)  # noqa: B023 - used at once
                return advantages(counted(scores.of(rng, acts), b, scores.low or 0.0), "group")  # noqa: B023

            table.add_row(scores.name, name, *row(earn, groups, steps))
        table.add_section()
    return table


_CELLS = ("beats the worst", "it earns", "wrong earns", "at the end", "right")


def _table(title: str, *columns: str) -> Table:
    table = Table(title=title)
    for column in columns:
        table.add_column(column)
    return table


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--groups", type=int, default=4000, help="groups of the tables' means (default: 4000)")
    parser.add_argument("--steps", type=int, default=150, help="steps of training (default: 150)")
    options = parser.parse_args()
    console = Console(width=120)
    for scale in ("group", "batch"):
        console.print(hangs(options.groups, options.steps, scale))
    console.print(innocents(options.groups))
    console.print(silence(options.groups, options.steps))


if __name__ == "__main__":
    main()
