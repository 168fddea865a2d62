"""``rewardkit score``: rewards over a file of rollouts, the record of what they gave, and the report for people."""

from __future__ import annotations

import contextlib
import functools
import shlex
import sys
import textwrap
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import typer
from rich.table import Table
from rich.text import Text

from rewardkit.cli.arguments import (
    AsJson,
    Data,
    DataOption,
    LoadTimeout,
    Rewards,
    Timeout,
    Weights,
    Workers,
    data_path,
    option,
    share_option,
    weight_numbers,
)
from rewardkit.cli.exits import FAILED, finish
from rewardkit.cli.output import check_writable, write_rows
from rewardkit.cli.progress import told_progress
from rewardkit.cli.render import Cells, Screen, causes, count_or_none, duration, number, screen, table
from rewardkit.cli.rewards import Leaves, load_rewards
from rewardkit.cli.summary import Spread, Summary, costs_text, link_text, summarize
from rewardkit.declare.compose import Composable, Composite
from rewardkit.errors import ConfigError, RewardError
from rewardkit.function import described
from rewardkit.groups import group_places
from rewardkit.loading.registry import RewardSet
from rewardkit.record.call_costs import is_cost_metric
from rewardkit.record.places import run_path
from rewardkit.rows.files import name_of, unit_of
from rewardkit.rows.reader import numbered_rollouts
from rewardkit.runtime.plan import check_columns
from rewardkit.runtime.settings import weights_of
from rewardkit.score_batch import ScoreBatch
from rewardkit.serving.choice import scorer_of
from rewardkit.serving.client_weights import client_weights
from rewardkit.serving.server_link import without_token
from rewardkit.shown.text import counted, plain, shortened
from rewardkit.types import Outcome, Rollout
from sandbox import LOAD_TIMEOUT_S

_CHUNK_ROWS = 1000
_SHOWN_FAILURES = 5  # kinds of failure that are shown
_NAME_CHARS = 28
_TIMES = ("p50", "p95")
_SPREADS = ("std", "min", "max")
_LOG_LINES = 3
_REASON_CHARS = 200
_LEAST_USD = 0.00005  # a smaller difference of what was spent is not shown
_ERROR_LINES, _LINK_LINES = 4, 6  # of a failure and a link, whose last words say what helps
Keep: TypeAlias = Callable[[ScoreBatch], None]


_LostShare: TypeAlias = Annotated[
    float,
    share_option("Share of a reward's calls, 0 to 1, that may be lost to infrastructure; 1 stops at no share."),
]


def score_command(
    rewards: Rewards,
    data: Data = None,
    data_option: DataOption = None,
    out: Annotated[Path | None, option("Write every row with its outcomes here, as JSON Lines.", "FILE")] = None,
    workers: Workers = None,
    timeout: Timeout = None,
    load_timeout: LoadTimeout = LOAD_TIMEOUT_S,
    weights: Weights = None,
    inline: Annotated[bool, option("Run in this process, without isolation and timeouts.", None, "--inline")] = False,
    as_json: AsJson = False,
    record: Annotated[
        str | None, option("Record the outcomes in this run: a path such as runs/one, or a name.", "RUN")
    ] = None,
    append: Annotated[bool, option("Let --record add to a run that has a record.", None, "--append")] = False,
    limit: Annotated[int | None, option("Score only the first N rows.", "N", min=1)] = None,
    max_lost: _LostShare = 0.5,
    fail_on_error: Annotated[bool, option("Exit with code 1 if any call failed.", None, "--fail-on-error")] = False,
    metrics: Annotated[
        bool, option("Print each reward's metrics too, such as those of fields.", None, "--metrics")
    ] = False,
) -> None:
    """Score the rollouts in DATA with REWARDS, and show how each reward did.

    A row has a prompt, a completion and the columns that the rewards read:

    [dim]{"prompt": "2+2=", "completion": "4", "answer": "4"}[/]

    Examples:

    [bold]rewardkit score my_rewards.py rollouts.jsonl
    rewardkit score a.py:correct,b.py:short rollouts.jsonl --weights 0.8,0.2
    rewardkit score my_rewards.py rollouts.jsonl --out scored.jsonl --json
    rewardkit score my_rewards.py rollouts.jsonl --record runs/one
    rewardkit score http://rewards:8000 rollouts.jsonl[/]
    """
    path = data_path(data, data_option)
    if append and record is None:
        raise ConfigError("--append: says how --record is meant; name its run with --record")
    if out is not None:
        check_writable(out, [path, *(Path(part.partition(":")[0].strip()) for part in rewards.split(","))])
    numbers = weight_numbers(weights)
    reward_set = load_rewards(rewards, timeout)
    numbered = numbered_rollouts(path, limit=limit)
    rollouts = [rollout for _, rollout in numbered]
    check_columns(Leaves(reward_set).leaves, rollouts[0].example, name_of(path))
    about = {"command": "score", "rewards": without_token(rewards), "data": str(path)}
    with recording(record, reward_set, about, append=append) as keep:
        if reward_set.weights is None:
            weighting = weights_of(reward_set.rewards, numbers)
        else:
            weighting = client_weights(reward_set.rewards, reward_set.weights, numbers)
        scoring = _Scoring(reward_set, numbered, unit_of(path), weighting, keep)
        options = {"load_timeout_s": load_timeout, "max_infrastructure_rate": max_lost}
        summary = scoring.run(out, workers=workers, lane="inline" if inline else "worker", **options)

    def show() -> None:
        _print_report(summary, screen(), with_metrics=metrics)
        if out is not None:
            typer.echo(f"wrote {out}")
        if record is not None:
            run = run_path(record)
            typer.echo(plain(f"recorded in {run.label}; rewardkit show {shlex.quote(run.label)} shows it"))

    files = {"out": None if out is None else str(out), "record": None if record is None else run_path(record).label}
    result = {**summary.as_json(_SHOWN_FAILURES), **files}
    finish(result, show, as_json=as_json, code=FAILED if fail_on_error and summary.failures else 0)


def _charges(leaves: Leaves) -> dict[str, float]:
    """Return the USD that the ledgers of all rewards count so far, by path; rewards may share one."""
    rewards = [reward for leaf in leaves.leaves for reward in (leaf, *leaf.inner)]
    return {path: usd for reward in rewards for path, usd in described(reward.spec.function).charges.items()}


class _Scoring:
    """One file on its way: its outcomes as they come in, and the batch that the finished rows make.

    The runtime gets the plain rewards, so that each outcome arrives at once; the compositions are made of them here.
    """

    def __init__(
        self,
        reward_set: RewardSet,
        numbered: Sequence[tuple[int, Rollout]],
        unit: str,
        weights: Mapping[str, float],
        keep: Keep,
    ) -> None:
        self._record_batch = keep
        self._recorded: set[int] = set()  # Indices of rows
        self._rewards = reward_set.rewards
        self._rollouts = rollouts = [rollout for _, rollout in numbered]
        self._lines = [line for line, _ in numbered]
        self._unit = unit  # What the lines count, for what failures call the rows
        self._weights = weights
        self._leaves = Leaves(reward_set, weights=weights)
        names = [leaf.name for leaf in self._leaves.leaves]
        self._outcomes: dict[str, list[Outcome | None]] = {name: [None] * len(rollouts) for name in names}  # By row

    def run(self, out: Path | None, **options: Any) -> Summary:
        """Score, write and record all rows, with options of a runtime; return the summary.

        After an error keep the finished rows and raise it.
        """
        start = time.monotonic()
        try:
            with scorer_of(self._leaves, **options) as scorer:
                charges = _charges(self._leaves)
                with told_progress("scoring") as tick:
                    total, failed = len(self._outcomes) * len(self._rollouts), 0
                    for done, finished in enumerate(scorer.stream(self._rollouts), 1):
                        self._outcomes[finished.reward][finished.row] = finished.outcome
                        failed += finished.outcome.cause is not None
                        tick(done, total, failed)
                seconds = time.monotonic() - start
                charged_usd = [usd - charges.get(path, 0.0) for path, usd in _charges(self._leaves).items()]
            batch = self._batch(range(len(self._rollouts)))
            if out is not None:
                write_rows(out, self._to_rows(range(len(self._rollouts))))
            self._record()
        except BaseException:
            if out is not None:
                self._write_finished(out.with_name(f"{out.name}.partial"))
            with contextlib.suppress(OSError, RewardError):  # the fault that brought us here is the one to tell
                self._record()
            raise
        compositions = frozenset(name for name, reward in self._rewards.items() if isinstance(reward, Composite))
        labels = [f"{self._unit} {line}" for line in self._lines]
        summary = summarize(batch, self._outcomes, seconds, compositions, labels.__getitem__)
        return replace(summary, charged_usd=sum(charged_usd) if charged_usd else None)

    def _batch(self, rows: Sequence[int]) -> ScoreBatch:
        outcomes = {name: [self._outcome(reward, row) for row in rows] for name, reward in self._rewards.items()}
        return ScoreBatch([self._rollouts[row] for row in rows], outcomes, self._weights)

    def _outcome(self, reward: Composable, row: int) -> Outcome:
        outcomes = {leaf: self._outcomes[leaf.name][row] for leaf in reward.leaves}
        return reward.combine({leaf: outcome for leaf, outcome in outcomes.items() if outcome is not None})

    def _record(self) -> None:
        """Record the finished rows that are not yet recorded, whole groups together."""
        chunks = chunks_of_groups(
            self._rollouts, _CHUNK_ROWS, lambda row: self._is_finished(row) and row not in self._recorded
        )
        for rows in chunks:
            self._recorded.update(rows)
            self._record_batch(self._batch(rows))

    def _is_finished(self, row: int) -> bool:
        return all(column[row] is not None for column in self._outcomes.values())

    def _to_rows(self, rows: Sequence[int]) -> Iterator[dict[str, Any]]:
        """Yield finished rows as :meth:`~rewardkit.ScoreBatch.to_rows` has them, built a thousand at a time."""
        for start in range(0, len(rows), _CHUNK_ROWS):
            chunk = rows[start : start + _CHUNK_ROWS]
            for row, columns in zip(chunk, self._batch(chunk).to_rows(), strict=True):
                yield {**columns, "row": row, "line": self._lines[row], "weights": dict(self._weights)}

    def _write_finished(self, partial: Path) -> None:
        """Write the finished rows, and print how many; pass over a file that cannot be written."""
        rows = list(filter(self._is_finished, range(len(self._rollouts))))
        if rows:
            with contextlib.suppress(OSError, RewardError):  # the fault that brought us here is the one to tell
                write_rows(partial, self._to_rows(rows))
                print(f"kept {len(rows):,} finished rows of {len(self._rollouts):,} in {partial}", file=sys.stderr)


@contextlib.contextmanager
def recording(run: str | None, reward_set: RewardSet, about: Mapping[str, Any], *, append: bool) -> Iterator[Keep]:
    """Yield a function that records batches; it does nothing where ``run`` is ``None``.

    A new run that has no batch at the end, because an error came first, is removed. Raises RecordError where the run
    has a record and ``append`` is false, or it cannot be written, and OSError where not all of it is in the file.
    """
    if run is None:
        yield lambda batch: None
        return
    from rewardkit.record.recorder import Recorder  # it brings numpy and sqlite3 along

    record = run_path(run)
    is_new = not record.exists()
    recorder = Recorder(record, append=append, about=about, env=reward_set.env)
    batches = 0

    def keep(batch: ScoreBatch) -> None:
        nonlocal batches
        recorder.record(batch, rewards=reward_set.rewards)
        batches += 1
        if not recorder.flush():  # one batch at a time, so that no text is left out
            raise OSError(f"{recorder.path}: cannot be written; the scores are not recorded")

    try:
        yield keep
    finally:
        written = recorder.close()
        if is_new and not batches:
            record.remove()
    if not written:
        raise OSError(f"{recorder.path}: not all was written; the record is not whole")


def chunks_of_groups(rollouts: Sequence[Rollout], rows: int, is_finished: Callable[[int], bool]) -> Iterator[list[int]]:
    """Yield the indices of rollouts, ``rows`` or more at a time, those of a group together.

    A group in which one rollout is not finished is left out.
    """
    chunk: list[int] = []
    for group in group_places(rollouts):
        if all(map(is_finished, group)):
            chunk += group
        if len(chunk) >= rows:
            yield sorted(chunk)
            chunk = []
    if chunk:
        yield sorted(chunk)


def _print_report(summary: Summary, console: Screen, *, with_metrics: bool) -> None:
    """Print the table, that of metrics where it is wanted, the failures and a line of totals."""
    console.fitted_table(functools.partial(_rewards_table, summary), _TIMES, _SPREADS)
    if with_metrics:
        _print_own_metrics(summary, console)
    if summary.failures:
        _print_failures(summary, console)
    if summary.links or summary.costs or summary.uncertain_usd >= _LEAST_USD:
        _print_links_and_costs(summary, console)
    for name, reward in summary.rewards.items():
        if summary.rows > 1 and reward.skipped == summary.rows:
            reason = reward.skip_reason or "it does not apply, or lacks a return"
            warning = f"every row was skipped: {shortened(reason, _REASON_CHARS)}"
            console.say((f"{name}: ", "bold"), ("warning: ", "yellow"), warning, fit="wrap")
    console.say((_closing(summary), "dim"), fit="wrap")


def _rewards_table(summary: Summary, left_out: Collection[str]) -> Table:
    """Return the table of rewards without the columns ``left_out``; the weights only where one is not 1."""
    has_weights = any(reward.weight != 1 for reward in summary.rewards.values())
    names = ["reward", *(["weight"] if has_weights else []), "mean", *_SPREADS, "skipped", "failed", *_TIMES]
    rewards = table(*(name for name in names if name not in left_out), left=1)
    for column in rewards.columns:
        column.overflow = "ellipsis"
    rewards.columns[0].min_width = min(10, max(len(name) for name in summary.rewards))  # it alone gives way
    for name, reward in summary.rewards.items():
        cells: dict[str, str | Text] = {
            "reward": Text(shortened(name, _NAME_CHARS), style="bold", no_wrap=True, overflow="ellipsis"),
            "weight": f"{reward.weight:.3g}",
            **_spread(reward.scores),
            "skipped": count_or_none(reward.skipped),
            "failed": causes(reward.failed),
            "p50": duration(reward.p50_s),
            "p95": duration(reward.p95_s),
        }
        rewards.add_row(*(cells[str(column.header)] for column in rewards.columns))
    rewards.add_section()
    label = "weighted sum" if "total" in summary.rewards else "total"
    totals: dict[str, str | Text] = {"reward": Text(label, style="bold"), **_spread(summary.totals)}
    rewards.add_row(*(totals.get(str(column.header), "") for column in rewards.columns))
    return rewards


def _print_own_metrics(summary: Summary, console: Screen) -> None:
    """Print what each reward's metrics were over the calls that have them, without those of links and costs."""
    own = {
        name: {metric: spread for metric, spread in spreads.items() if not is_cost_metric(metric)}
        for name, spreads in summary.metrics.items()
    }
    rows: list[Cells] = [
        [
            Text(shortened(name, _NAME_CHARS), style="bold"),
            shortened(metric, _NAME_CHARS),
            f"{spread.count:,}",
            *map(number, (spread.mean, spread.min, spread.max)),
        ]
        for name, spreads in own.items()
        for metric, spread in spreads.items()
    ]
    if not rows:
        console.say("no reward has metrics; a reward returns them as Score(number, metrics={...})", fit="wrap")
        return
    console.print(table("reward", "metric", "calls", "mean", "min", "max", left=2, rows=rows))


def _print_failures(summary: Summary, console: Screen) -> None:
    """Print the most frequent kinds of failure, each with its first row, its error and the last lines it printed."""
    kinds = len(summary.failures)
    part = f", {_SHOWN_FAILURES} of {kinds} kinds" if kinds > _SHOWN_FAILURES else ""
    console.say(("failures", "bold"), f" (most frequent first{part})", fit="wrap")
    room = max(20, console.width - 8)
    for failure in summary.failures[:_SHOWN_FAILURES]:
        more = "" if failure.calls == 1 else f" and {failure.calls - 1:,} more"
        name = shortened(failure.reward, _NAME_CHARS)
        console.say("  ", (name, "bold"), "  ", (failure.cause, "red"), f"  {failure.name}{more}", fit="wrap")
        for line in textwrap.wrap(plain(failure.error), room, max_lines=_ERROR_LINES, placeholder=" …"):
            console.say(f"      {line}", fit="cut")
        logs = [line for line in failure.logs.splitlines() if line.strip()]
        for line in logs[-_LOG_LINES:]:
            console.say((f"      │ {shortened(line, room - 2)}", "dim"), fit="cut")
    console.print()


def _print_links_and_costs(summary: Summary, console: Screen) -> None:
    """Print what each reward took, with the links of a chain below it."""
    names = dict.fromkeys([*summary.links, *summary.costs])
    has_failures = not names.keys().isdisjoint(failure.reward for failure in summary.failures)
    unknown = "; what failed calls took is not known" if has_failures else ""
    console.say(("links and costs", "bold"), f" (with all tries{unknown})", fit="wrap")
    room = max(20, console.width - 8)
    for name in names:
        costs = costs_text(summary.costs.get(name, {}))
        console.indented(Text.assemble((shortened(name, _NAME_CHARS), "bold"), f"  {costs}"))
        for link_name, link in summary.links.get(name, {}).items():
            for line in textwrap.wrap(plain(link_text(link_name, link)), room, max_lines=_LINK_LINES, placeholder=" …"):
                console.say(f"      {line}", fit="cut")
            if link.costs:
                console.indented(Text(f"      took {costs_text(link.costs)}"))
    if summary.uncertain_usd >= _LEAST_USD:
        reason = f"{number(summary.uncertain_usd)} USD more, because a request without usage counts at its most"
        console.indented(Text(f"  the budget counts {number(summary.charged_usd)} USD: {reason}"))
    console.print()


def _closing(summary: Summary) -> str:
    """Return the last lines: rows, time and rate, rows without a total, and whether failed calls count."""
    text = f"{counted(summary.rows, 'row')} in {duration(summary.seconds)}"
    if summary.seconds > 0:
        text += f", {counted(round(summary.rows / summary.seconds), 'row')}/s"
    rows_without_total = summary.rows - summary.totals.count
    if rows_without_total:
        text += f"; {rows_without_total:,} without a total"
    has_defaults = any(reward.scores.count > reward.scored for reward in summary.rewards.values())
    if has_defaults:  # scores in the place of failed calls
        text += "\nin these means a failed call counts with its reward's default"
    return text


def _spread(spread: Spread) -> dict[str, str]:
    return {name: number(getattr(spread, name)) for name in ("mean", *_SPREADS)}
