"""A report on preferences on a terminal; 80 columns are enough."""

from __future__ import annotations

import math

from rich.console import Console
from rich.table import Table
from rich.text import Text

from rewardkit.commands import counts, print_labelled, shortened
from rewardkit.statistics import Interval, wilson
from trainer_adapter.reward_evaluation.over_optimisation import OverOptimisation
from trainer_adapter.reward_evaluation.preference_report import PreferenceReport, SubsetReport

_NAME_CHARS = 22


def print_report(report: PreferenceReport, console: Console) -> None:
    """Print the figures, the table of subsets, and what could not be scored."""
    whole = report.overall
    console.print(
        Text.assemble((report.reward, "bold"), f"  {whole.rows:,} rows, {whole.kind}; {whole.scored:,} scored")
    )
    if whole.failed or whole.skipped:
        counts_text = f"{whole.failed:,} failed, {whole.skipped:,} skipped: neither won nor lost"
        reason = f"; the first: {shortened(report.first_error, 200)}" if report.first_error else ""
        print_labelled(console, "left out", counts_text + reason, "bold yellow")
    print_labelled(console, "accuracy", _rate(whole.accuracy) + _beside_chance(whole))
    print_labelled(console, "ties", _ties(whole))
    if report.margin is not None:
        mean, deviation = report.margin
        print_labelled(console, "margin", f"{mean:.3g} ± {deviation:.3g}, chosen less rejected, of pairs")
    if report.ece.rate is not None and report.brier is not None:
        ece = f"ECE {report.ece.rate:.3f} [{report.ece.low:.3f}, {report.ece.high:.3f}], {report.bins} bins"
        scores = f"{_PLURALS[report.scale]} (--scale {report.scale})"
        print_labelled(console, "calibration", f"{ece}; Brier {report.brier:.3f}; scores as {scores}")
    if report.subsets:
        console.print()
        console.print(_table(report))
        if report.mean_of_subsets is not None:
            print_labelled(console, "mean of subsets", _mean_of_subsets(report))
    if report.worst:
        each = ", ".join(f"{where.rpartition(':')[2]} by {ahead:.3g}" for where, ahead in report.worst)
        print_labelled(console, "lost by most", f"rows {each}")


def _mean_of_subsets(report: PreferenceReport) -> str:
    """Return the mean of the subsets' scores, and what a score is where it is not the accuracy."""
    text = f"{report.mean_of_subsets:.3f}, each counted once"
    is_formula = any(_has_formula(subset) for subset in report.subsets)
    return f"{text}; a score of ties is RewardBench 2's, of at most 1.01" if is_formula else text


_PLURALS = {"logit": "logits", "probability": "probabilities"}


def _rate(share: Interval) -> str:
    if share.rate is None:
        return "unknown, because nothing is scored"
    return f"{share.rate:.1%} [{share.low:.1%}, {share.high:.1%}] of {share.of:,}"


def _ties(whole: SubsetReport) -> str:
    """Return the share of ties, and what the accuracy of pairs would be with a tie as half a win."""
    text = f"{_rate(whole.tie_rate)}; a tie is no win"
    accuracy, ties = whole.accuracy.rate, whole.tie_rate.rate
    if whole.kind != "pairs" or not ties or accuracy is None:
        return text
    return f"{text}, and as half a win the accuracy is {accuracy + ties / 2:.1%}"


def _beside_chance(whole: SubsetReport) -> str:
    """Return what the interval says beside the half that chance wins of pairs, a tie as half a win."""
    accuracy, ties = whole.accuracy.rate, whole.tie_rate.rate
    if whole.kind != "pairs" or accuracy is None or ties is None:
        return ""
    _, low, high, _ = wilson((accuracy + ties / 2) * whole.scored, whole.scored)
    return "" if low > 0.5 else "; below chance" if high < 0.5 else "; chance is within the interval"


def _table(report: PreferenceReport) -> Table:
    """Return a row a subset: what was scored, its accuracy with the interval, its ties, and RewardBench's score of it.

    The score is no share, because that of RewardBench 2's ties goes up to 1.01: it has a column of its own, where there
    are such ties.
    """
    has_formula = any(_has_formula(subset) for subset in report.subsets)
    columns = ("subset", "kind", "scored", "left out", "accuracy", "95%", "ties")
    table = counts(*columns, *(["score"] if has_formula else []))
    for subset in report.subsets:
        share, left_out = subset.accuracy, subset.failed + subset.skipped
        between = "-" if share.rate is None else f"{math.floor(100 * share.low)}-{math.ceil(100 * share.high)}%"
        accuracy = "-" if share.rate is None else f"{share.rate:.1%}"
        ties = "-" if subset.tie_rate.rate is None else f"{subset.tie_rate.rate:.0%}"
        score = "-" if subset.score is None else f"{subset.score:.3f}"
        lost = Text(f"{left_out:,}", "yellow" if left_out else "")
        name = Text(shortened(str(subset.name), _NAME_CHARS), "bold")
        kind, scored = _KINDS.get(subset.kind, subset.kind), f"{subset.scored:,}"
        table.add_row(name, kind, scored, lost, accuracy, between, ties, *([score] if has_formula else []))
    return table


def _has_formula(subset: SubsetReport) -> bool:
    """Return whether what counts in the mean of subsets is another figure than the accuracy."""
    return subset.score is not None and subset.score != subset.accuracy.rate


_KINDS = {"best of several": "best of"}


def print_over_optimisation(result: OverOptimisation, proxy: str, gold: str, console: Console) -> None:
    """Print where the gold was highest, the first and last points, and the flag."""
    steps = len(result.places)
    console.print(Text.assemble((f"{proxy} against {gold}", "bold"), f"  {steps:,} steps, KL a {result.unit}"))
    console.print(_highest_and_ends(result, proxy, gold))
    if result.left_out:
        reason = f"{result.left_out:,} steps lack kl or a score, or hold defaults of failed calls"
        print_labelled(console, "left out", reason, "bold yellow")
    if result.peak is not None:
        print_labelled(console, "Gao's form", f"the gold is highest at √KL {result.peak:.3g}")
    if result.flag is not None:
        print_labelled(console, "OVER-OPTIMISED", f"{result.flag.words}; {result.flag.action}", "bold red")
    elif result.no_verdict_reason is not None:
        print_labelled(console, "no verdict", result.no_verdict_reason)
    else:
        print_labelled(console, "no flag", "the gold does not fall while the proxy rises, beyond noise")


def _highest_and_ends(result: OverOptimisation, proxy: str, gold: str) -> Table:
    """Return the first point, the one at which the gold is highest, and the last."""
    golds = [-math.inf if point.rate is None else point.rate for point in result.gold]
    table = counts("", "step", "√KL", proxy, gold)
    for name, index in (("first", 0), ("gold highest", golds.index(max(golds))), ("last", len(golds) - 1)):
        rates = [points[index].rate for points in (result.proxy, result.gold)]
        means = ["-" if rate is None else f"{rate:.4g}" for rate in rates]
        table.add_row(Text(name, "bold"), f"{result.places[index]:,}", f"{result.sqrt_kl[index]:.3g}", *means)
    return table
