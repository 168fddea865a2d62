"""Detectors of a reward's course over steps: jumps, and a format that is learned while nothing else is."""

from __future__ import annotations

import numpy as np

from rewardkit.health.evidence import Evidence, extremes
from rewardkit.health.flag import Detection
from rewardkit.health.measures import by_group, highest, line, without_nan
from rewardkit.record.table import Floats

_SMOOTH = 5  # Steps whose mean a trend looks at


def reward_jump(window: Evidence, baseline: Evidence, reward: str | None) -> Detection | None:
    """A reward's mean jumps from one step to the next and stays there.

    Formula: a line through 20 earlier steps is carried on over the window and the 4 steps before it; the steps'
    distances from it, over its noise, add up as CUSUM does, S = max(0, S + z - 0.5). Flagged where S passes 5 and, so
    that no steady rise counts, the three steps behind the steepest place lie 0.45 standard deviations of single scores
    higher above the three before than the slopes on both sides explain (and 3.8 standard errors of a step's mean), with
    0.6 of the rise in two steps.

    Where no single reward jumps, the sum of several by their weights is looked at.

    Source: rewardspy (CUSUM with slack 0.5 and bound 5); standardised here, so that no reward's scale matters.
    Limits: an exploit that spreads over many steps rises like learning. Upward only.
    """
    if reward not in window.paid and (reward is not None or len(window.paid) < 2):
        return None
    worth, error = _worth(window, reward), _step_error(window, reward)
    steps = len(np.unique(window.table.steps)) + 4  # the last ones of the window before had nothing behind them
    series = _series(window, reward)
    before, after = series[-steps - 20 : -steps], series[-steps:]
    if len(before) < 10 or len(after) < 4 or np.isnan(before).any() or np.isnan(after).any():
        return None
    indices = _jump_indices(before, after, error)
    if not indices:
        return None
    means = np.r_[before, after]
    rises = [float(means[at : at + 3].mean() - means[at - 3 : at].mean()) for at in indices]
    rise, index = max(zip(rises, indices, strict=True))
    steady = 3 * max(0.0, (line(means[index - 8 : index]).slope + line(means[index : index + 6]).slope) / 2)
    sudden = float(max(means[at + 1] - means[at - 1] for at in (index - 1, index, index + 1)))
    spread = float(without_nan(_worth(baseline, reward, window)).std())
    if spread <= 0 or sudden < 0.6 * rise or rise - steady < max(0.45 * spread, 3.8 * error):
        return None
    step = int(np.unique(window.table.steps)[max(index - len(before) - 4, 0)])
    low, high = float(means[index - 3 : index].mean()), float(means[index : index + 3].mean())
    message = f"the mean of {reward or 'the total'} jumps from {low:.3g} to {high:.3g} at step {step}"
    action = f"Read the best completions of step {step} and after: a jump is mostly an exploit, or a changed reward."
    after_jump = np.flatnonzero(window.table.steps >= step)
    best = after_jump[highest(np.nan_to_num(worth[after_jump], nan=-np.inf))]
    return Detection((rise - steady) / spread, 0.45, message, action, rows=best)


def _jump_indices(before: Floats, after: Floats, error: float) -> range:
    """Return the indices of both series together from which CUSUM rose to its bound, with three steps behind each."""
    fitted = line(before)
    indices = np.arange(len(before), len(before) + len(after))
    noise = max(fitted.noise, error, 1e-9)
    apart = noise * np.sqrt(1 + 1 / len(before) + (indices - (len(before) - 1) / 2) ** 2 / (len(before) ** 3 / 12))
    added, start = 0.0, 0
    for index, z in enumerate((after - fitted.start - fitted.slope * indices) / apart):
        if added == 0:
            start = index
        added = max(0.0, added + float(z) - 0.5)
        if added > 5:
            return range(len(before) + start, len(before) + len(after) - 3)
    return range(0)


def _worth(evidence: Evidence, reward: str | None, weighed: Evidence | None = None) -> Floats:
    """Return a reward's scores, or where none is named the sum of all by the weights of ``weighed``, else its own."""
    scores = evidence.table.scores
    if reward is not None:
        return scores[reward]
    total = np.zeros(len(evidence.table))
    for name in (weighed or evidence).paid:
        total += (weighed or evidence).weights[name] * scores.get(name, np.full(len(total), np.nan))
    return total


def _series(window: Evidence, reward: str | None) -> Floats:
    """Return the step means of a reward, or of the sum of all by their newest weights, as far back as all are known."""
    if reward is not None:
        return window.series.get(reward, np.empty(0))
    parts = {name: window.series.get(name, np.empty(0)) for name in window.paid}
    size = min(map(len, parts.values()))
    total = np.zeros(size)
    for name, series in parts.items():
        total += window.weights[name] * series[len(series) - size :]
    return total


def _step_error(window: Evidence, reward: str | None) -> float:
    """Return the standard error of a step's mean, by how far its groups' means differ."""
    means = without_nan(by_group(_worth(window, reward), window.table.groups).means)
    groups = len(means) / max(len(np.unique(window.table.steps)), 1)
    return float(means.std() / np.sqrt(max(groups, 1.0))) if len(means) else 0.0


def format_saturated(window: Evidence, baseline: Evidence) -> Detection | None:
    """One reward is full while no other, though they have room, rises.

    Formula: since the first step from which a reward's mean over 5 steps stays at 0.95 of its range or above, 50 steps
    or more, the line through another reward's step means: its rise over these steps, with 3.5 standard errors, is below
    0.1 of its range and below half of its mean, its mean is below 0.8 of its range, and its means over 5 steps lie
    within 0.2 of its range. Flagged where that holds for every other paid reward that has such room, and the first was
    not full from the start.

    Source: Predibase's guide: format rewards rise first; the rule is our own.
    Limits: 50 steps and small batches leave the line uncertain, and then nothing is flagged. A reward that is one
    constant is left to ``constant``.
    """
    windows = [baseline, window]
    full_steps, full = max((_since_full(window, windows, name), name) for name in window.paid)
    if (
        full_steps < 50 or full_steps >= len(window.series[full]) - _SMOOTH + 1
    ):  # full from the start: nothing was learned
        return None
    flat: dict[str, float] = {}
    for name in window.paid:
        most = _most_rise(window, windows, name, full_steps) if name != full else None
        if most is not None:
            flat[name] = most
    if not flat or max(flat.values()) >= 0.1:
        return None
    idle = ", ".join(f"{name} stays at {float(window.series[name][-full_steps:].mean()):.3g}" for name in flat)
    message = f"{full} is full since {full_steps} steps, and {idle}"
    action = f"Lower the weight of {full} or make it a gate, and look whether any completion earns more of the rest."
    only = next(iter(flat)) if len(flat) == 1 else None
    return Detection(max(flat.values()), 0.1, message, action, reward=only)


def _most_rise(window: Evidence, windows: list[Evidence], reward: str, steps: int) -> float | None:
    """Return the largest likely rise in the last steps, a share of the range, 1 if unknown; ``None`` without room."""
    low, high = extremes(windows, reward)
    recent = window.series.get(reward, np.empty(0))[-steps:]
    if len(recent) < steps or np.isnan(recent).any():
        return 1.0
    if np.ptp(recent) < 1e-9 or high - low <= 0:
        return None
    mean = (float(recent.mean()) - low) / (high - low)
    if mean >= 0.8:
        return None
    if np.ptp(_smoothed(recent)) > 0.2 * (high - low):
        return 1.0
    fitted = line(recent)
    most = (fitted.slope + 3.5 * fitted.error) * len(recent) / (high - low)
    return most if most < 0.5 * mean else 1.0


def _smoothed(series: Floats) -> Floats:
    smooth: Floats = np.convolve(series, np.full(_SMOOTH, 1 / _SMOOTH), "valid")
    return smooth


def _since_full(window: Evidence, windows: list[Evidence], reward: str) -> int:
    """Return for how many steps a reward has been at 0.95 of its range or above."""
    low, high = extremes(windows, reward)
    series = window.series.get(reward, np.empty(0))
    if len(series) < 5 or np.isnan(series).any():
        return 0
    smooth = _smoothed(series)
    below = np.flatnonzero(smooth < low + 0.95 * (high - low))
    return len(smooth) - (int(below[-1]) + 1 if len(below) else 0)
