"""What ``diagnose`` asks: all windows of a recorded run, or scored rows without steps."""

from __future__ import annotations

import itertools
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from rewardkit.errors import RecordError
from rewardkit.groups import group_numbers
from rewardkit.health.chains import fallback_chains, fallback_line, link_shares
from rewardkit.health.coverage import Coverage, Unflagged, blind_spots_of, calls_of, summary_of, with_run
from rewardkit.health.detectors import DETECTORS, flags_of, missing_need
from rewardkit.health.evidence import CLIPPED, ErrorsOf, Evidence, PromptRow, Ranges, Undeclared, join_tables
from rewardkit.health.flag import Flag
from rewardkit.health.flat_groups import FlatShare, FlatShares, alone_words, flat_shares
from rewardkit.health.gradient import unflagged_share
from rewardkit.health.measures import by_group
from rewardkit.health.noise import Noise, noise_of
from rewardkit.health.score_ranges import ranges_of
from rewardkit.health.watch import BASELINE_STEPS, WINDOW_STEPS, Watch
from rewardkit.messages import completion_text, message_text
from rewardkit.record.audit_notes import audit_notes
from rewardkit.record.batch_rows import LETTERS
from rewardkit.record.passes import second_scores
from rewardkit.record.reader import RunReader
from rewardkit.record.table import CAUSE_TYPE, CompletionTable, Floats, Whole
from rewardkit.score_batch import ScoreBatch
from rewardkit.types import Outcome, Rollout, Text

MOST_COMPLETIONS = 100_000  # About how many completions are looked at, the newest ones
READ_STEPS = 50  # Steps that are read of a record at once
_LEAST_WINDOWS = 3


Again = Callable[[CompletionTable], Mapping[str, Floats]]


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """What the detectors say of a run or of rows.

    Attributes:
        flags: Their flags, in the order of the steps.
        completions: How many completions were looked at.
        steps: The first and last step; ``None`` for rows without steps.
        rewards: The rewards' names.
        groups: Groups with two rewards or more.
        flat: The share of them whose rewards are all the same; ``None`` without groups.
        alone: The same of each reward by itself; empty where only one has a weight.
        looked: The detectors that looked.
        not_looked: The others, and why they could not.
        noise: By reward, what two scorings of the same completions say; empty without a second scoring.
        coverage: How much was looked at, in steps, windows and texts.
        run: What commands call the run.
        fallbacks: By chain whose later links gave more than a fifth of the scores, the share of each link.
    """

    flags: Sequence[Flag]
    completions: int
    steps: tuple[int, int] | None
    rewards: Sequence[str]
    groups: int
    flat: float | None
    looked: Sequence[str]
    not_looked: Mapping[str, str]
    noise: Mapping[str, Noise]
    coverage: Coverage
    run: str = "RUN"
    alone: Mapping[str, FlatShare] = field(default_factory=dict)
    fallbacks: Mapping[str, Mapping[str, float]] = field(default_factory=dict)

    @property
    def summary(self) -> str:
        """A sentence on what was found, and over what; without a flag also how closely it was looked at."""
        return summary_of(self.flags, self.looked, self.coverage)

    @property
    def blind_spots(self) -> list[str]:
        """What cannot be seen in this run: a line each, why first, then what that hides."""
        return blind_spots_of(self.not_looked, self.coverage, self.run)

    @property
    def gradient(self) -> str:
        """A sentence on the share of groups that give no gradient: for each of several rewards, then for their sum."""
        if self.flat is None:
            return "no group has two completions with a reward, so nothing can be said of gradients"
        is_part = self.coverage.baseline is not None
        where = "on these rows " if self.steps is None else "over these steps " if is_part else "over all steps "
        flat = round(self.flat * self.groups)
        return (
            f"{alone_words(self.alone)}{where}{self.flat:.0%} of groups give no gradient ({flat:,} of {self.groups:,})"
        )

    @property
    def fallback_lines(self) -> list[str]:
        """A sentence on each chain whose later links gave more than a fifth of the scores."""
        why = "rewardkit score says" if self.run == "RUN" else f"rewardkit show {self.run} says"
        return [fallback_line(name, shares, f"{why} why it did not answer") for name, shares in self.fallbacks.items()]

    def as_row(self) -> dict[str, Any]:
        """Return the diagnosis as a dictionary ready for JSON."""
        return {
            "summary": self.summary,
            "completions": self.completions,
            "steps": None if self.steps is None else list(self.steps),
            "rewards": list(self.rewards),
            "groups": self.groups,
            "no_gradient": self.flat,
            "no_gradient_alone": {name: share._asdict() for name, share in self.alone.items()},
            "flags": [flag.as_row() for flag in self.flags],
            "fallbacks": {name: dict(shares) for name, shares in self.fallbacks.items()},
            "looked": list(self.looked),
            "not_looked": dict(self.not_looked),
            "blind_spots": self.blind_spots,
            "coverage": self.coverage.as_row(),
            "noise": {name: result._asdict() for name, result in self.noise.items()},
        }


def diagnose_run(
    run: RunReader,
    *,
    steps: tuple[int, int] | None = None,
    every: int = WINDOW_STEPS,
    again: Again | None = None,
    most: int | None = MOST_COMPLETIONS,
) -> Diagnosis:
    """Return the detectors' diagnosis of a recorded run's training completions.

    A record without steps, as ``rewardkit score --record`` makes, is looked at as rows.

    Args:
        run: The run.
        steps: From this step to that one, both included, whatever ``most`` is; all unless given.
        every: Steps of a window.
        again: Returns a second scoring of a table's completions; by default the newest passes of the record.
        most: About how many completions are looked at, the newest, in whole windows and three at least; of a longer
            run only the baseline is read besides. ``None`` for all.

    Raises:
        RecordError: The run has no completions.
    """
    if not run.count():
        raise RecordError(f"{run.path}: the run has no completions")
    again = again or _again_of(run)
    run_steps = [step for step in run.steps() if steps is None or steps[0] <= step <= steps[1]]
    prompts = prompts_of(run)
    if not run_steps:
        table = run.table()
        second = again(table) if again else {}
        notes, declared = audit_notes(run), ranges_of(run)._asdict()
        evidence = Evidence(table, run.texts, prompts, again=second, audits=notes, errors=errors_of(run), **declared)
        return _for_commands(_diagnose_evidence(evidence), run, table.ids)
    declared_ranges = ranges_of(run)
    watch = Watch(
        texts=run.texts,
        prompts=prompts,
        every=every,
        metrics=metrics_of(run),
        again=again,
        audits=audit_notes(run),
        errors=errors_of(run),
        **declared_ranges._asdict(),
    )
    early, newest = _parts(run, run_steps, every, most if steps is None else None)
    for table in _tables(run, early):
        watch.observe(table)
    if early:
        watch.pass_over(_means_between(run, run_steps, early[-1], newest[0]))
    flat, groups, scored, alone = 0, 0, [], FlatShares(declared_ranges.ranges)
    ends: list[int] = []  # The least and the greatest number of each table's completions
    for table in _tables(run, newest):
        watch.observe(table)
        ends += [int(end) for end in (table.ids.min(), table.ids.max())] if len(table) else []
        alone.add(table)
        parts = by_group(table.rewards, table.groups)
        flat += int(parts.flat.sum())
        groups += int((parts.counts > 1).sum())
        if again is not None:
            scored.append((table, again(table)))
    watch.finish()
    diagnosis = Diagnosis(
        flags=sorted(watch.flags, key=lambda flag: (flag.first_step or 0, list(DETECTORS).index(flag.detector))),
        completions=watch.coverage.completions,
        steps=(newest[0], newest[-1]),
        rewards=run.rewards,
        groups=groups,
        flat=flat / groups if groups else None,
        looked=watch.looked,
        not_looked=watch.not_looked_at,
        noise=_noise(scored),
        alone=alone.results,
        coverage=replace(
            watch.coverage,
            duration_s=run.duration_s((newest[0], newest[-1])),
            baseline=(early[0], early[-1]) if early else None,
            left_out=_left_out(run_steps, [*early, *newest]),
        ),
    )
    return _for_commands(diagnosis, run, np.array([min(ends), max(ends)] if ends else []))


def _for_commands(diagnosis: Diagnosis, run: RunReader, ids: Whole) -> Diagnosis:
    """Return a diagnosis with its chains, whose words name the run, so that the commands in them can be copied."""
    name = shlex.quote(run.path.label)
    flags = [replace(flag, action=with_run(flag.action, name)) for flag in diagnosis.flags]
    first, last = (int(ids.min()), int(ids.max())) if len(ids) else (1, 0)
    calls = run.measured_calls(since=first, until=last)
    shares = {reward: link_shares(call.metrics for call in own) for reward, own in calls.items()}
    return replace(diagnosis, flags=flags, run=name, fallbacks=fallback_chains(shares))


def _parts(run: RunReader, steps: list[int], every: int, most: int | None) -> tuple[list[int], list[int]]:
    """Return the steps of the baseline (from the newest versions on) and the newest steps; all of a short run."""
    if most is None:
        return [], steps
    windows = max(_LEAST_WINDOWS, most * len(steps) // (run.count() * every))
    if len(steps) <= windows * every + BASELINE_STEPS:  # what would be left out is less than a baseline
        return [], steps
    newest = steps[-windows * every :]
    firsts = (version.first_step for version in run.own_versions if version.first_step is not None)
    begin = max((step for step in firsts if step <= newest[0]), default=steps[0])
    return [step for step in steps if begin <= step < newest[0]][:BASELINE_STEPS], newest


def _left_out(steps: Sequence[int], looked_at: Sequence[int]) -> tuple[tuple[int, int], ...]:
    """Return the first and last step of each stretch of steps that were not looked at."""
    seen = set(looked_at)
    stretches = [list(stretch) for is_seen, stretch in itertools.groupby(steps, seen.__contains__) if not is_seen]
    return tuple((stretch[0], stretch[-1]) for stretch in stretches)


def _tables(run: RunReader, steps: Sequence[int]) -> Iterator[CompletionTable]:
    for start in range(0, len(steps), READ_STEPS):
        part = steps[start : start + READ_STEPS]
        yield run.table((part[0], part[-1]))


def _means_between(run: RunReader, steps: Sequence[int], after: int, before: int) -> dict[str, list[float]]:
    """Return each reward's means at the steps between two, ``nan`` where it has none."""
    series = {name: dict(run.series(name)) for name in run.rewards}
    between = [step for step in steps if after < step < before]
    return {name: [means.get(step, np.nan) for step in between] for name, means in series.items()}


def diagnose_rows(batch: ScoreBatch, ranges: Ranges | None = None, undeclared: Undeclared | None = None) -> Diagnosis:
    """Return the diagnosis of scored rollouts by the detectors that need no steps; a group has one prompt.

    Args:
        batch: The rollouts and their scores.
        ranges: By reward, its ``score_range``; without those that declare none.
        undeclared: By reward without one, which rewards in it declare none; for the advice.
    """
    rollouts = batch.rollouts

    def texts(ids: Sequence[int]) -> list[str | None]:
        return [completion_text(rollouts[row].completion) for row in ids]

    def prompts(ids: Sequence[int]) -> list[PromptRow | None]:
        return [_prompt_row(rollouts[row]) for row in ids]

    def errors(ids: Sequence[int], reward: str) -> list[str | None]:
        return [batch.outcomes[reward][row].error for row in ids]

    evidence = Evidence(
        table_of(batch),
        texts,
        prompts,
        errors=errors,
        recorded=False,
        ranges=ranges or {},
        undeclared=undeclared or {},
    )
    metrics = {name: (outcome.metrics for outcome in column) for name, column in batch.outcomes.items()}
    shares = {name: link_shares(own) for name, own in metrics.items()}
    return replace(_diagnose_evidence(evidence), fallbacks=fallback_chains(shares))


def _diagnose_evidence(evidence: Evidence) -> Diagnosis:
    """Return the diagnosis of completions without steps, so without a baseline."""
    table = evidence.table
    parts = by_group(table.rewards, table.groups)
    able = parts.counts > 1
    sample = evidence.sampled()
    reasons = {name: missing_need(detector, evidence, None) for name, detector in DETECTORS.items()}
    return Diagnosis(
        flags=flags_of(evidence),
        completions=len(table),
        steps=None,
        rewards=list(table.scores),
        groups=int(able.sum()),
        flat=float(parts.flat[able].mean()) if able.any() else None,
        looked=[name for name, reason in reasons.items() if reason is None],
        not_looked={name: reason for name, reason in reasons.items() if reason is not None},
        noise=_noise([(table, evidence.again)] if evidence.again else []),
        alone=flat_shares(table, evidence.ranges),
        coverage=Coverage(
            len(table),
            texts=len(sample.texts),
            texts_missing=len(sample.drawn) - len(sample.texts),
            calls=calls_of(table),
            unflagged=Unflagged(None, reason) if (reason := unflagged_share(evidence, None)) else None,
        ),
    )


def _noise(scored: Sequence[tuple[CompletionTable, Mapping[str, Floats]]]) -> dict[str, Noise]:
    """Return the noise of each reward over all completions with two scores; rewards without these are left out."""
    if not scored:
        return {}
    table = join_tables([table for table, _ in scored])
    by_reward = {}
    for name in dict.fromkeys(name for _, again in scored for name in again):
        second = np.concatenate([again.get(name, np.full(len(table), np.nan)) for table, again in scored])
        result = noise_of(table.scores[name], second, table.groups)
        if result.completions:
            by_reward[name] = result
    return by_reward


def table_of(batch: ScoreBatch) -> CompletionTable:
    """Return scored rollouts as columns, without steps; an id is the rollout's place."""
    count = len(batch.rollouts)
    groups = np.array(group_numbers(batch.rollouts), np.int64)
    tokens = [None if rollout.completion_ids is None else len(rollout.completion_ids) for rollout in batch.rollouts]
    weighed = {name: column for name, column in batch.outcomes.items() if batch.weights[name] != 0}
    plain = ScoreBatch(batch.rollouts, weighed, dict.fromkeys(weighed, 1.0))
    unknown = np.full(count, np.nan)

    def columns(value: Callable[[Outcome], object], kind: str = "f8") -> dict[str, Any]:
        return {name: np.array([value(outcome) for outcome in column], kind) for name, column in batch.outcomes.items()}

    return CompletionTable(
        ids=np.arange(count),
        steps=np.full(count, -1),  # no step is known
        prompts=groups,
        groups=groups,
        tokens=_numbers(tokens),
        truncated=unknown,
        plain_sums=_numbers(plain.totals),
        rewards=_numbers(batch.totals),
        advantages=unknown,
        scores=columns(lambda outcome: np.nan if outcome.score is None else outcome.score),
        status=columns(lambda outcome: LETTERS[outcome.status], "<U1"),
        causes=columns(lambda outcome: "" if outcome.cause is None else outcome.cause.value, CAUSE_TYPE),
        seconds=columns(lambda outcome: outcome.duration_s),
        versions=columns(lambda outcome: 1, "i8"),
        weights={name: np.full(count, batch.weights[name]) for name in batch.outcomes},
    )


def _numbers(values: Sequence[float | None]) -> Floats:
    return np.array([np.nan if value is None else value for value in values], dtype=np.float64)


def _prompt_row(rollout: Rollout) -> PromptRow:
    prompt = rollout.prompt
    questions = [] if isinstance(prompt, str) else [message for message in prompt if message.get("role") == "user"]
    return PromptRow(_all_text(prompt), rollout.example, message_text(questions[-1]) if questions else "")


def _all_text(text: Text) -> str:
    if isinstance(text, str):
        return text
    return "\n".join(message_text(message) for message in text)


def _again_of(run: RunReader) -> Again | None:
    passes = [(scoring, run.pass_columns(scoring.id)) for scoring in run.passes]
    return (lambda table: second_scores(table, passes)) if passes else None


def metrics_of(run: RunReader) -> Callable[[int, int], dict[str, list[float]]]:
    """Return a function of two steps that reads the trainer's metrics between them, both included."""

    def metrics(first: int, last: int) -> dict[str, list[float]]:
        logged = first + 1, last + 1  # the trainer counts a step when it is done
        values = [value for _, value in run.metrics(CLIPPED, steps=logged)]
        return {CLIPPED: values} if values else {}

    return metrics


def errors_of(run: RunReader) -> ErrorsOf:
    """Return a function of ids and a reward that reads the messages of the reward's failed calls in a run."""

    def errors(ids: Sequence[int], reward: str) -> list[str | None]:
        outcomes = {row.id: row.outcomes.get(reward) for row in run.by_id(ids, [reward])}
        return [None if (outcome := outcomes.get(row_id)) is None else outcome.error for row_id in ids]

    return errors


def prompts_of(run: RunReader) -> Callable[[Sequence[int]], list[PromptRow | None]]:
    """Return a function of ids that reads prompts and columns of a run's completions."""

    def prompts(ids: Sequence[int]) -> list[PromptRow | None]:
        rows: list[Any] = run.rollouts(ids)
        return [None if row is None else _prompt_row(row) for row in rows]

    return prompts
