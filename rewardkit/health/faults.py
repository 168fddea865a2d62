"""Detectors of faults: calls that fail, time out, do not apply or are slow, and a template that prefills a tag."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from rewardkit.health.evidence import Evidence
from rewardkit.health.flag import SHOWN_ROWS, Detection, stretch_text
from rewardkit.health.measures import BaselineShare, by_group, highest, mean_bounds, without_nan
from rewardkit.record.table import Floats, Whole
from rewardkit.types import Cause

_OPENED = re.compile(r"<([A-Za-z][\w-]{0,30})>\s*$")
_CLOSING = re.compile(r"</([A-Za-z][\w-]{0,30})>")


def failures(window: Evidence, baseline: Evidence | None, reward: str) -> Detection | None:
    """Calls of a reward fail, for another reason than time.

    Formula: failed calls, without timeouts, over calls that were scored or failed. Flagged at once above 0.05 by its
    lower bound: what fails is missing from the advantages, however long it has failed. Flagged also where all calls of
    one step fail, 8 or more, most of them so: chance does not do that, and the step taught nothing of the reward.
    Flagged also where every call of a prompt fails, 2 or more, and chance would not do that: with the share of failed
    calls of the other prompts, fewer than 0.001 such prompts are expected. Timeouts, ended processes and lost calls do
    not count as such, since they depend on the machine.

    Source: own; the causes are those of ``rewardkit.Cause``.
    Limits: a reward that raises on malformed completions on purpose is flagged early in a run; score these 0. A row
    with a single completion cannot be told from chance.
    """
    causes = window.table.causes[reward]
    failed = (window.table.status[reward] == "f") & (causes != "timeout")
    excess, prompts = _excess_of(window, reward, failed, 0.05), _failing_prompts(window, reward)
    if excess is None and prompts is None:
        return None
    if excess is None:
        rows = np.flatnonzero(failed)
        excess = _Excess(float(failed[window.table.status[reward] != "k"].mean()), 1.0, "", rows)
    by_cause = Counter(causes[failed].tolist()).most_common()
    causes_text = ", ".join(f"{count:,} {cause}" for cause, count in by_cause)
    message = f"{excess.of_all:.0%} of the calls fail: {_extent(window, reward, failed)} ({causes_text})"
    action = f"See the errors: {window.errors_of(reward)}."
    if Cause(by_cause[0][0]).is_loss:
        action = f"Mend the server, then ask again what failed: rewardkit rescore RUN --only-failed {reward}."
    if prompts is None:
        return Detection(excess.value, 0.05, message + excess.where, action, rows=excess.rows)
    message += f"{excess.where}; {prompts}"
    action = f"Mend these rows, or let {reward} read them: chance does not fail a prompt every time. {action}"
    return Detection(excess.value, 0.05, message, action, rows=prompts.rows, quote=prompts.error)


def timeouts(window: Evidence, baseline: Evidence | None, reward: str) -> Detection | None:
    """Calls of a reward run out of time.

    Formula: calls with the cause ``timeout``, over calls that were scored or failed. Flagged at once above 0.02 by its
    lower bound: each costs a worker its whole time, and a completion its score. Flagged also where all calls of one
    step fail, 8 or more, most of them so.

    Source: own.
    Limits: a policy that writes code which does not end is flagged as well, and so is, where a step has a single group,
    one prompt that makes a reward hang.
    """
    late = (window.table.status[reward] == "f") & (window.table.causes[reward] == "timeout")
    excess = _excess_of(window, reward, late, 0.02)
    if excess is None:
        return None
    message = f"{excess.of_all:.0%} of the calls time out: {_extent(window, reward, late)}{excess.where}"
    action = f"Raise timeout_s of {reward} if it needs the time; else see on which completions it hangs."
    return Detection(excess.value, 0.02, message, action, rows=excess.rows)


def _extent(window: Evidence, reward: str, failed: Any) -> str:
    """Return of how many calls of a reward so many failed, and in which steps: ``30 of 40 in steps 20 to 29``."""
    status, steps = window.table.status[reward], window.table.steps
    is_call = (status == "f") | (status == "s")
    scope = " that it did not skip" if (status == "k").any() else ""
    span = f" in {stretch_text((int(steps.min()), int(steps.max())))}" if window.timed else ""
    return f"{int(failed[is_call].sum()):,} of {int(is_call.sum()):,}{scope}{span}"


class _FailingPrompts(NamedTuple):
    """Prompts of which every call of a reward fails, more than chance explains."""

    failing: int  # How many they are
    prompts: int  # How many prompts the reward was asked about
    numbers: tuple[int, ...]  # Their numbers in the record; empty without a record
    rows: Whole  # The place of a completion of each
    error: str  # Their most frequent error

    def __str__(self) -> str:
        numbers = ", ".join(map(str, self.numbers[:SHOWN_ROWS])) + (", …" if len(self.numbers) > SHOWN_ROWS else "")
        names = f" (prompt {numbers})" if numbers else ""
        return f"every call of {self.failing:,} of {self.prompts:,} prompts{names} fails"


_LEAST_CHANCE = 0.001  # Prompts that may fail wholly by chance, in all


def _failing_prompts(window: Evidence, reward: str) -> _FailingPrompts | None:
    """Return the prompts whose every call fails by no fault of the machine; ``None`` where chance explains them."""
    table = window.table
    status, causes = table.status[reward], table.causes[reward]
    by_chance = [cause.value for cause in Cause if cause.is_by_chance]
    failed = (status == "f") & ~np.isin(causes, by_chance)
    places = np.flatnonzero((status == "f") | (status == "s"))
    if not failed.any():
        return None
    _, firsts, prompts, calls = np.unique(
        table.prompts[places], return_index=True, return_inverse=True, return_counts=True
    )
    failures_P = np.bincount(prompts, weights=failed[places], minlength=len(calls))
    is_lost = (failures_P == calls) & (calls > 1)
    if not is_lost.any():
        return None
    # one call more of each kind, so that a share is known of few calls too
    share = (failures_P[~is_lost].sum() + 1) / (calls[~is_lost].sum() + 2)
    if (share ** calls[calls > 1]).sum() >= _LEAST_CHANCE:
        return None
    rows = places[firsts[is_lost]]
    numbers = tuple(table.prompts[rows].tolist()) if window.recorded else ()
    errors = Counter(filter(None, window.errors(table.ids[rows].tolist(), reward)))
    return _FailingPrompts(len(rows), len(calls), numbers, rows, errors.most_common(1)[0][0] if errors else "")


class _Excess(NamedTuple):
    """Failed calls of which there are too many."""

    of_all: float  # Their share of the window's calls
    value: float  # Their share of what is flagged: the window's calls, or those of one step
    where: str  # Words that name a step at which all failed; empty without one
    rows: Any  # Places of the failed calls, those of that step first


def _excess_of(window: Evidence, reward: str, failed: Any, bound: float) -> _Excess | None:
    """Return the failed calls, where their share is above a bound or they are a whole step; else ``None``."""
    table = window.table
    status = table.status[reward]
    is_call = (status == "f") | (status == "s")
    if is_call.sum() < 20:
        return None
    shares = by_group(np.where(is_call, failed, np.nan), table.groups)
    above = shares.low > bound
    lost = _lost_steps(table.steps[is_call], status[is_call] == "f", failed[is_call]) if window.timed else []
    if not above and not lost:
        return None
    of_all = float(failed[is_call].mean())
    rows = np.flatnonzero(failed)
    rows = rows[np.argsort(~np.isin(table.steps[rows], lost[:1]), kind="stable")]
    return _Excess(of_all, of_all if above else 1.0, _at(lost), rows)


def _lost_steps(steps: Whole, all_failed: Any, failed: Any) -> list[int]:
    """Return the steps at which 8 calls or more were made and all failed, at least half of them as ``failed`` marks."""
    numbers, places, counts = np.unique(steps, return_inverse=True, return_counts=True)
    every, mine = (np.bincount(places, weights=flags, minlength=len(numbers)) for flags in (all_failed, failed))
    lost = (counts >= 8) & (every == counts) & (2 * mine >= counts)
    return [int(step) for step in numbers[lost]]


def _at(lost: Sequence[int]) -> str:
    if not lost:
        return ""
    return f"; at step {lost[0]}" + (f" and {len(lost) - 1} more" if len(lost) > 1 else "") + " all calls fail"


MIXED_ROWS = 16  # Rows of groups with calls of both kinds that a comparison within groups needs


class _Margin(NamedTuple):
    """What completions earned above the worst of their groups, over the groups that have both kinds."""

    share: float  # Share of them that earned more
    mean: float  # Mean of what they earned
    worst: float  # Mean of the worst of their groups
    rows: Whole  # Places of those that earned more


def _margin(earned: Floats, looked_at: Any, scored: Any, groups: Whole) -> _Margin | None:
    """Compare completions with the worst scored ones of their groups; ``None`` with fewer than 16 rows to compare."""
    _, places = np.unique(groups, return_inverse=True)
    worst = np.full(int(places.max(initial=-1)) + 1, np.inf)
    np.minimum.at(worst, places[scored], earned[scored])
    mixed = np.isfinite(worst)[places] & (np.bincount(places, weights=looked_at, minlength=len(worst)) > 0)[places]
    compared = looked_at & mixed
    if ((looked_at | scored) & mixed).sum() < MIXED_ROWS:
        return None
    above = compared & (earned > worst[places] + 1e-9)
    return _Margin(
        float(above.sum() / compared.sum()),
        float(earned[compared].mean()),
        float(worst[places[compared]].mean()),
        np.flatnonzero(above),
    )


def failing_pays(window: Evidence, baseline: Evidence | None, reward: str) -> Detection | None:
    """A call that fails earns more than the worst answer, so that a model learns to make it fail.

    Formula: the failed calls that a score stands in for, in groups that have scored calls too; the share of them whose
    stand-in is above the lowest score of the group (the highest under a weight below 0). Flagged at once above 0.5,
    over 16 rows of such groups or more. Flagged at once also where the stand-ins of 8 failed calls or more lie on the
    mean above the mean of the scores, by the upper bound of the latter, in whatever groups they are.

    Source: own; docs/explanation/decisions/0009-what-a-failure-earns.md.
    Limits: a failure without a stand-in earns the advantage 0, and is not counted.
    """
    status = window.table.status[reward]
    worth = window.table.scores[reward] * (-1.0 if window.weights.get(reward, 1.0) < 0 else 1.0)
    has_score = ~np.isnan(worth)
    margin = _margin(worth, (status == "f") & has_score, (status == "s") & has_score, window.table.groups)
    if margin is None or margin.share <= 0.5:
        return _pays_above_mean(window, reward, worth)
    message = f"{margin.share:.0%} of the failed calls earn more than the worst answer of their group: "
    message += f"{margin.mean:.3g} on the mean, and the worst {margin.worst:.3g}"
    action = _without_default(reward)
    return Detection(margin.share, 0.5, message, action, rows=margin.rows)


def _without_default(reward: str) -> str:
    action = f"Take default out of {reward}, or of the parts that a composition has, and declare score_range there"
    return f"{action}: a failure then counts as the worst score."


def _pays_above_mean(window: Evidence, reward: str, worth: Floats) -> Detection | None:
    """Return where stand-ins are worth more on the mean than the scores of the calls that did not fail."""
    status, has_worth = window.table.status[reward], ~np.isnan(worth)
    failed, scored = (status == "f") & has_worth, (status == "s") & has_worth
    if failed.sum() < 8 or not scored.any():
        return None
    groups = by_group(np.where(scored, worth, np.nan), window.table.groups).means
    mean, bound = float(worth[failed].mean()), mean_bounds(groups).high
    if not mean > bound:
        return None
    message = f"{int(failed.sum()):,} failed calls earn {mean:.3g} on the mean, and those that are scored "
    message += f"{float(worth[scored].mean()):.3g}"
    action = _without_default(reward)
    return Detection(mean, bound, message, action, rows=failed)


def _silence_pays(window: Evidence, reward: str) -> Detection | None:
    """Return where completions that a reward skips earn more in total than the worst scored ones of their group."""
    table = window.table
    status = table.status[reward]
    means = by_group(table.rewards, table.groups)
    totals = np.where(np.isnan(table.rewards), means.means[means.places], table.rewards)  # no total: the advantage 0
    has_total = ~np.isnan(totals)
    margin = _margin(totals, (status == "k") & has_total, (status == "s") & has_total, table.groups)
    if margin is None or margin.share <= 0.5 or reward not in window.paid or _is_rare_penalty(window, reward):
        return None
    message = f"{margin.share:.0%} of the completions that it skips earn more in total than the worst of their group: "
    message += f"{margin.mean:.3g} on the mean, and the worst {margin.worst:.3g}"
    action = f"Return the worst score where the answer is missing: None of {reward} says that the row has no answer."
    return Detection(margin.share, 0.5, message, action, rows=margin.rows)


def _is_rare_penalty(window: Evidence, reward: str) -> bool:
    """Return whether a reward only ever takes away, and applies to a quarter of the completions or fewer."""
    scored = window.table.status[reward] == "s"
    worth = window.table.scores[reward][scored] * np.nan_to_num(window.table.weights[reward][scored])
    return bool(scored.any()) and float(scored.mean()) <= 0.25 and float(worth.max()) <= 0


def skips(window: Evidence, baseline: Evidence | None, reward: str) -> Detection | None:
    """A reward no longer applies to completions that it applied to before, or to none, or silence earns more.

    Formula: skipped calls over all. Flagged at once where it is every one of 100 (8 without steps), and above 0.2 where
    its lower bound is 0.2 above the baseline's upper bound. Flagged at once also where more than half of the skipped
    completions, in groups of which others are scored, have a total above the lowest of these; over 16 rows of such
    groups or more.

    Source: own; docs/explanation/decisions/0009-what-a-failure-earns.md.
    Limits: a steady share of skips is taken for design where whole groups are skipped, and where a reward that applies
    to a quarter of the completions or fewer only takes away.
    """
    is_call = window.table.status[reward] != ""
    skipped = window.table.status[reward] == "k"
    if is_call.sum() < (100 if window.timed else 8):
        return _silence_pays(window, reward)
    share = float(skipped[is_call].mean())
    shares = by_group(np.where(is_call, skipped, np.nan), window.table.groups)
    before = None
    if baseline is not None and reward in baseline.table.status and (baseline.table.status[reward] != "").any():
        parts = by_group(baseline.table.status[reward] == "k", baseline.table.groups)
        before = BaselineShare(float(parts.means.mean()), parts.high)
    bound = 0.2 + before.high if before is not None else 1.0
    if share < 1 and not shares.low > bound:
        return _silence_pays(window, reward)
    message = f"{share:.0%} of the calls are skipped"
    message += "" if before is None else f", {before.share:.0%} in the baseline"
    action = f"See when {reward} returns None: a column that is missing, a form that the policy no longer writes?"
    old_share = None if before is None else before.share
    return Detection(share, min(bound, 1.0), message, action, baseline=old_share, rows=skipped)


def slow_rewards(window: Evidence, baseline: Evidence | None, reward: str) -> Detection | None:
    """A reward's calls take much longer than before, or very long.

    Formula: 95th percentile of a call's seconds. Flagged at once above 30 s; above 1 s where it is also 3 times the
    baseline's.

    Source: own; trainers report the 95th percentile of reward latency.
    Limits: seconds of one call: whether the step waits for them depends on workers and concurrency.
    """
    took = without_nan(window.table.seconds[reward])
    if len(took) < 20:
        return None
    now, before = float(np.quantile(took, 0.95)), None
    old_seconds = without_nan(baseline.table.seconds.get(reward, np.empty(0))) if baseline is not None else np.empty(0)
    if len(old_seconds) >= 20:
        before = float(np.quantile(old_seconds, 0.95))
    bound = max(1.0, 3 * before) if before is not None else 30.0
    if now <= min(bound, 30.0):
        return None
    message = f"the slowest 5% of calls take {now:.1f} s or longer"
    message += "" if before is None else f"; in the baseline {before:.2g} s"
    action = f"See what {reward} waits for (a server, growing completions); raise concurrency or workers, or cache."
    rows = highest(window.table.seconds[reward])
    return Detection(now, min(bound, 30.0), message, action, baseline=before, rows=rows)


def prefilled(window: Evidence, baseline: Evidence | None, reward: str) -> Detection | None:
    """The chat template writes the opening tag that a format reward waits for, so it never pays.

    Formula: the completions that close a tag without opening it, over the sampled ones with that closing tag, is above
    0.9 (8 or more of them), and the reward gives all of these one score, which is its lowest. Flagged at once: the
    template does not change in a run. Where the recorded prompt ends with the tag, the words say so.

    Source: github.com/huggingface/trl/issues/6966: ``think_format_reward`` is 0 for every
    completion after a prompt that ends in ``<think>``.
    Limits: looks at sampled texts. A reward that pays such completions for other things is not found.
    """
    sample = window.sampled()
    scores = sample.table.scores[reward]
    for tag in _tags(sample.texts):
        closing = np.array([f"</{tag}>" in text for text in sample.texts])
        lacking = closing & np.array([f"<{tag}>" not in text for text in sample.texts])
        scores_of_tag = without_nan(scores[lacking])
        if lacking.sum() < 8 or lacking.sum() < 0.9 * closing.sum() or not len(scores_of_tag):
            continue
        lowest = min(float(without_nan(window.table.scores[reward]).min()), 0.0)
        if reward not in window.paid or np.ptp(scores_of_tag) > 1e-9 or float(scores_of_tag[0]) > lowest + 1e-9:
            continue
        row = window.prompts(sample.table.ids[lacking].tolist()[:1])[0]
        opened = _OPENED.search(row.prompt[-200:]) if row is not None else None
        where = "the prompt ends with the opening tag" if opened and opened[1] == tag else "they never open it"
        message = f"{int(lacking.sum())} of {int(closing.sum())} sampled completions that close a tag"
        message += f" get {scores_of_tag[0]:g}: {where}"
        action = f"Let {reward} take the opening tag from the prompt, or a template that does not write it."
        share = float(lacking.sum() / closing.sum())
        rows = np.isin(window.table.ids, sample.table.ids[lacking])
        return Detection(share, 0.9, message, action, rows=rows, quote=f"</{tag}>")
    return None


def _tags(texts: list[str]) -> list[str]:
    counts = Counter(tag for text in texts for tag in set(_CLOSING.findall(text)))
    return [tag for tag, count in counts.most_common(3) if count >= 8]
