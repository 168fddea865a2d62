"""A proxy reward against a gold one over √KL, as Gao et al. draw it (arXiv 2210.10760): where more of it does harm.

Owns the curve, Gao's form fitted to it, and the flag where the gold falls while the proxy rises. The gold is a reward
that the training does not follow: of weight 0 in the run, or a pass of ``rewardkit rescore``.
"""

from __future__ import annotations

import math
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from builtin_rewards.reward_model import best_of_n_curve
from rewardkit import DataError, RecordError, Run
from rewardkit.extending import Chart, Curve, Marker, chart_file
from rewardkit.health import Flag
from rewardkit.statistics import Interval, mean_interval
from trainer_adapter.run_identity import counted

DETECTOR = "over_optimisation"
LEAST_POINTS = 16  # Points of a training that a flag takes at least
_WINDOWS = 8
_RISK = 0.01  # The chance that noise alone raises a flag, over all places where the gold may have been highest
_ACTION = "stop where the gold was highest, or hold the policy closer (a larger beta); then refresh the proxy"
_SMALLER_N = "choose of no more than the n at which the gold was highest; then refresh the proxy"

_Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class OverOptimisation:
    """A proxy and a gold reward over the square root of the divergence from the first policy.

    Attributes:
        how: ``"training"`` or ``"best_of_n"``.
        places: What each point is of: a step, or n.
        sqrt_kl: √KL of each point, in the root of nats.
        proxy: The proxy's mean at each point.
        gold: The gold's.
        fitted: Gao's form of the gold at each point; empty where it does not fit.
        peak: √KL at which that form is highest, if it lies within what was measured.
        flag: Where the gold falls while the proxy rises, by more than noise; ``None`` if it does not.
        no_verdict_reason: Why there can be no flag; ``None`` if there can.
        left_out: Points without a finite KL, a proxy or a gold, or whose scores hold defaults of failed calls.
        unit: What KL is of: ``sequence``, ``token`` or what a caller says.
    """

    how: str
    places: tuple[int, ...]
    sqrt_kl: tuple[float, ...]
    proxy: tuple[Interval, ...] = field(repr=False)
    gold: tuple[Interval, ...] = field(repr=False)
    fitted: tuple[float, ...] = field(repr=False)
    peak: float | None
    flag: Flag | None
    no_verdict_reason: str | None
    left_out: int = 0
    unit: str = "sequence"

    @property
    def chart(self) -> Chart:
        """The chart, with points in the order of √KL; √KL is of the axis, rewards are of the curves."""
        order = sorted(range(len(self.sqrt_kl)), key=lambda index: self.sqrt_kl[index])
        curves = [_curve("proxy", self.proxy, order), _curve("gold", self.gold, order)]
        if self.fitted:
            curves.append(Curve("gold, Gao's form", [self.fitted[index] for index in order]))
        marks = [Marker(self.peak, "gold highest")] if self.peak is not None else []
        if self.flag is not None:
            marks.append(Marker(self.sqrt_kl[-1], self.flag.words, "flag"))
        return Chart(
            "rewards over √KL", [self.sqrt_kl[index] for index in order], curves, marks, axis="√KL", whole=False
        )

    def as_json(self) -> dict[str, Any]:
        """Return it as plain values."""
        points = [
            {"place": step, "sqrt_kl": distance, "proxy": proxy.rate, "gold": gold.rate}
            for step, distance, proxy, gold in zip(self.places, self.sqrt_kl, self.proxy, self.gold, strict=True)
        ]
        values = {"how": self.how, "unit": self.unit, "points": points, "fitted": list(self.fitted), "peak": self.peak}
        flag = None if self.flag is None else self.flag.as_row()
        return {**values, "flag": flag, "untold": self.no_verdict_reason, "left_out": self.left_out}

    def svg(self) -> str:
        """Return the chart as one SVG file with its own style."""
        return chart_file(self.chart)


def over_optimisation(
    kl: Sequence[float],
    proxy: Sequence[float],
    gold: Sequence[float],
    *,
    places: Sequence[int] | None = None,
    how: str = "training",
    unit: str = "sequence",
) -> OverOptimisation:
    """Return the curve of points in the order of the training, or of n.

    Gao's form is gold = c + d (a - b log d) of a training and c + d (a - b d) of best of n, with d = √KL, fitted by
    least squares. The flag compares the means of windows of points: the gold of the last is below that of the highest,
    and the proxy above, each by more than the noise inside windows allows (one in a hundred, over all windows). Steps
    that are much alike make that noise look smaller than it is.

    Args:
        kl: Divergence from the first policy at each point, in nats; an estimate below 0 counts as 0.
        proxy: The proxy's mean at each point.
        gold: The gold's.
        places: The step, or n, of each point; by default 0, 1, 2.
        how: ``"training"`` or ``"best_of_n"``, for the form; only a training has a flag.
        unit: What ``kl`` is of, for whoever reads the result.

    Raises:
        DataError: The lengths differ, there are fewer than two points, or a number is not finite.
    """
    if not len(kl) == len(proxy) == len(gold) == len(places if places is not None else kl):
        raise DataError(f"{len(kl)} of KL, {len(proxy)} of the proxy, {len(gold)} of the gold: expected equal numbers")
    if len(kl) < 2:
        raise DataError(f"over-optimisation of {len(kl)} points: a curve takes two or more")
    for name, values in (("kl", kl), ("proxy", proxy), ("gold", gold)):
        for index, value in enumerate(values):
            if not math.isfinite(value):
                raise DataError(f"{name}[{index}] is {value!r}: expected a finite number; leave the point out")
    steps = tuple(range(len(kl)) if places is None else places)
    proxies, golds = ([Interval(float(v), float(v), float(v), 1) for v in values] for values in (proxy, gold))
    distances, proxy_values, gold_values = (np.array(values, dtype=float) for values in (kl, proxy, gold))
    flag, no_verdict_reason = (None, None) if how != "training" else _flag(steps, proxy_values, gold_values)
    return _result(how, steps, distances, proxies, golds, flag, no_verdict_reason, unit=unit)


def best_of_n_over_optimisation(
    proxy: Sequence[Sequence[float | None]], gold: Sequence[Sequence[float | None]], n: int
) -> OverOptimisation:
    """Return the curve of the best of 1 to n completions by the proxy, over prompts: no training is needed for it.

    The flag compares the gold of the best of n with that of the n at which it is highest, prompt by prompt.

    Args:
        proxy: For each prompt the proxy's scores of its completions; ``None`` for one without a score.
        gold: The gold's, in the same order.
        n: The last point.

    Raises:
        DataError: The two do not fit each other, or no prompt has n completions with both scores.
    """
    proxies, golds = best_of_n_curve(proxy, n, chosen_by=proxy), best_of_n_curve(gold, n, chosen_by=proxy)
    flag = _flag_of_prompts(proxy, gold, golds.expected, proxies.expected)
    return _result("best_of_n", proxies.n, np.array(proxies.kl), proxies.expected, golds.expected, flag, None)


def run_over_optimisation(run: Run, proxy: str, gold: str) -> OverOptimisation:
    """Return the curve of a recorded run, one point a step.

    KL is the trainer's ``kl``, a mean over tokens, times the mean length of the step's completions: the divergence of
    whole completions, as Gao et al. have it. Where a step lacks its length, all KL is per token, and ``unit`` says so.
    A step is left out whose KL or mean is not finite, or whose scores hold defaults of failed calls.

    Args:
        run: The run.
        proxy: The reward that the training follows; ``reward`` is the trainer's weighted sum of all.
        gold: The name of another recorded reward, or of a reward that ``rewardkit rescore`` has scored the run with.

    Raises:
        RecordError: There is no such reward, or the run has no ``kl``; says what to do.
    """
    kl = {step: value for step, value in run.metrics("kl") if math.isfinite(value)}
    if not kl:
        raise RecordError(f"{run.name}: the trainer logged no 'kl'; train with beta above 0, such as 0.001, to have it")
    lengths = {step: value for step, value in run.metrics("completions/mean_length") if math.isfinite(value)}
    proxies, golds = _means(run, proxy), _means(run, gold)
    steps = sorted(step - 1 for step in kl)  # the trainer logs a step after it
    both = [step for step in steps if proxies.get(step) is not None and golds.get(step) is not None]
    has_lengths = bool(lengths) and all(step + 1 in lengths for step in both)
    if len(both) < 2:
        raise RecordError(
            f"{run.name}: {counted(len(both), 'step')} with kl, {proxy!r} and {gold!r}; a curve takes two or more"
        )
    curve = over_optimisation(
        [kl[step + 1] * (lengths[step + 1] if has_lengths else 1.0) for step in both],
        [proxies[step] or 0.0 for step in both],
        [golds[step] or 0.0 for step in both],
        places=both,
        unit="sequence" if has_lengths else "token",
    )
    return replace(curve, left_out=len({*proxies, *golds}) - len(both))


def _means(run: Run, name: str) -> dict[int, float | None]:
    """Return a reward's mean at each step, ``None`` where it is unknown; raise ``RecordError`` for an unknown reward.

    It is unknown where no call scored or some failed, or the trainer logged no finite number.
    """
    if name == "reward" and name not in run.rewards:
        return {step - 1: value if math.isfinite(value) else None for step, value in run.metrics("reward")}
    summaries = run.summaries(name)
    if summaries:
        return {
            summary.step: None if summary.failed else summary.mean for summary in summaries if summary.step is not None
        }
    passes = [rescoring for rescoring in run.passes if rescoring.reward == name]
    if not passes:
        names = sorted({*run.rewards, *(rescoring.reward for rescoring in run.passes)})
        raise RecordError(
            f"{run.name}: no reward {name!r}; it has {', '.join(map(repr, names))}. Score it with another: "
            f"rewardkit rescore {shlex.quote(run.path.label)} --reward gold.py:{name}"
        )
    return _means_of_pass(run, passes[-1].id)


def _means_of_pass(run: Run, number: int) -> dict[int, float | None]:
    """Return the mean at each step of the scores that a rescoring has given."""
    table, scored = run.table(), run.pass_columns(number)
    step_of = dict(zip(table.ids.tolist(), table.steps.tolist(), strict=True))
    by_step: dict[int, list[float]] = {}
    for completion, score, status in zip(scored.ids.tolist(), scored.scores.tolist(), scored.status, strict=True):
        if completion in step_of and status == "s" and math.isfinite(score):
            by_step.setdefault(step_of[completion], []).append(score)
    return {step: math.fsum(scores) / len(scores) for step, scores in by_step.items()}


def _result(
    how: str,
    places: Sequence[int],
    kl: _Floats,
    proxy: Sequence[Interval],
    gold: Sequence[Interval],
    flag: Flag | None,
    no_verdict_reason: str | None,
    unit: str = "sequence",
) -> OverOptimisation:
    """Return the points as a curve, with Gao's form fitted to it."""
    distance = np.sqrt(np.maximum(kl, 0.0))  # an estimate from samples may lie below 0
    fitted, peak = _gao(distance, np.array([point.rate for point in gold], dtype=float), how)
    sqrt_kl = tuple(distance.tolist())
    return OverOptimisation(
        how, tuple(places), sqrt_kl, tuple(proxy), tuple(gold), fitted, peak, flag, no_verdict_reason, unit=unit
    )


def _gao(d: _Floats, gold: _Floats, how: str) -> tuple[tuple[float, ...], float | None]:
    """Return Gao's form at each point and where it is highest, if that lies inside; equations 1 and 2 of the paper."""
    bend = d * np.log(np.maximum(d, 1e-12)) if how == "training" else d * d
    columns = np.stack([np.ones_like(d), d, -bend], axis=1)
    is_level = float(np.ptp(gold)) <= 1e-9 * float(np.abs(gold).max())  # what would be fitted is rounding
    if is_level or len(set(d.tolist())) < 4 or np.linalg.matrix_rank(columns) < 3:
        return (), None
    (level, rise, fall), *_ = np.linalg.lstsq(columns, gold, rcond=None)
    if fall <= 0:
        highest = math.inf  # it never falls
    elif how == "training":
        highest = math.exp(min(700.0, rise / fall - 1))  # exp(710) overflows
    else:
        highest = rise / (2 * fall)
    fitted = level + d * rise - bend * fall
    return tuple(fitted.tolist()), float(highest) if float(d.min()) < highest < float(d.max()) else None


class _Windows(NamedTuple):
    """Means of windows of points side by side, and what noise allows between two of them."""

    means: _Floats
    error: float
    freedom: int

    @classmethod
    def of(cls, values: _Floats, size: int) -> _Windows:
        count = len(values) // size
        parts = values[len(values) - count * size :].reshape(count, size)
        spread = float(np.sqrt(parts.var(axis=1, ddof=1).mean()))
        return cls(parts.mean(axis=1), spread * math.sqrt(2 / size), count * (size - 1))


def _flag(places: Sequence[int], proxy: _Floats, gold: _Floats) -> tuple[Flag | None, str | None]:
    """Return the flag of a training, or why it cannot be judged."""
    if len(gold) < LEAST_POINTS:
        return None, f"{len(gold)} points: {LEAST_POINTS} or more tell a fall from noise"
    size = len(gold) // _WINDOWS
    golds, proxies = _Windows.of(gold, size), _Windows.of(proxy, size)
    best = int(np.argmax(golds.means))
    if best == len(golds.means) - 1:
        return None, None
    fall = float(golds.means[best] - golds.means[-1])
    rise = float(proxies.means[-1] - proxies.means[best])
    allowed = _quantile(_RISK / (len(golds.means) - 1), golds.freedom) * golds.error  # Bonferroni over windows
    if fall <= allowed or rise <= _quantile(0.05, proxies.freedom) * proxies.error:
        return None, None
    first = len(gold) - (len(golds.means) - best) * size
    where = f"from step {places[first]} to {places[-1]}"
    return _fall_flag(places[first], places[-1], -allowed, fall, rise, where, _ACTION), None


def _flag_of_prompts(
    proxy: Sequence[Sequence[float | None]],
    gold: Sequence[Sequence[float | None]],
    golds: Sequence[Interval],
    proxies: Sequence[Interval],
) -> Flag | None:
    """Return the flag of best of n: prompt by prompt, the gold at n against that at its best n."""
    rates = [point.rate or 0.0 for point in golds]
    best = max(range(len(rates)), key=lambda index: rates[index])
    n = len(rates)
    if best == n - 1 or n < 2:
        return None
    changes = []  # of the gold from its best n to n, one a prompt that has n completions with both scores
    for proxy_scores, gold_scores in zip(proxy, gold, strict=True):
        both = [pair for pair in zip(proxy_scores, gold_scores, strict=True) if None not in pair]
        if len(both) >= n:
            curve = best_of_n_curve([gold_scores], n, chosen_by=[proxy_scores]).expected
            changes.append((curve[-1].rate or 0.0) - (curve[best].rate or 0.0))
    change = mean_interval(changes)
    if change.rate is None or change.of < 2:
        return None
    error = (change.high - change.rate) / NormalDist().inv_cdf(0.975)  # back from the 95 % interval
    allowed = _quantile(_RISK / (n - 1), change.of - 1) * error
    rise = (proxies[-1].rate or 0.0) - (proxies[best].rate or 0.0)
    if -change.rate <= allowed or rise <= 0:
        return None
    where = f"from the best of {best + 1} to that of {n}"
    return _fall_flag(best + 1, n, -allowed, -change.rate, rise, where, _SMALLER_N)


def _fall_flag(first: int, last: int, threshold: float, fall: float, rise: float, where: str, action: str) -> Flag:
    return Flag(
        detector=DETECTOR,
        reward=None,
        first_step=first,
        last_step=last,
        value=-fall,
        threshold=threshold,
        baseline=None,
        words=f"{where} the gold falls by {fall:.3g} while the proxy rises by {rise:.3g}, more than noise",
        action=action,
    )


def _quantile(risk: float, freedom: int) -> float:
    """Return Student's quantile for a one-sided risk: Abramowitz and Stegun, 26.7.5, three terms."""
    z = NormalDist().inv_cdf(1 - risk)
    terms = ((z**3 + z) / 4, (5 * z**5 + 16 * z**3 + 3 * z) / 96, (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384)
    return z + math.fsum(term / freedom**power for power, term in enumerate(terms, 1))


def _curve(name: str, points: Sequence[Interval], order: Sequence[int]) -> Curve:
    ordered = [points[index] for index in order]
    has_band = any(point.of > 1 for point in ordered)
    low, high = ([point.low for point in ordered], [point.high for point in ordered]) if has_band else ([], [])
    return Curve(name, [point.rate for point in ordered], low, high)
