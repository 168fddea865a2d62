"""``rewardkit score``: rewards over a file of rollouts, and the record of what they gave."""

from __future__ import annotations

import contextlib
import shlex
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import typer

from rewardkit.cli.arguments import AsJson, Data, DataOption, LoadTimeout, Rewards, Timeout, Workers, data_path, option
from rewardkit.cli.exits import FAILED, finish
from rewardkit.cli.output import check_writable, write_rows
from rewardkit.cli.progress import told_progress
from rewardkit.cli.render import screen
from rewardkit.cli.rewards import Leaves, chosen
from rewardkit.cli.score_report import SHOWN_FAILURES, print_report
from rewardkit.cli.summary import Summary, summarize
from rewardkit.declare.compose import Composable, Composite
from rewardkit.errors import ConfigError, RewardError
from rewardkit.groups import group_places
from rewardkit.loading.registry import RewardSet
from rewardkit.record.places import run_path
from rewardkit.rows.reader import read_rollouts
from rewardkit.runtime.settings import weights_of
from rewardkit.score_batch import ScoreBatch
from rewardkit.serving.choice import scorer_of
from rewardkit.serving.server_link import without_token
from rewardkit.shown.text import plain
from rewardkit.types import Outcome, Rollout
from sandbox import LOAD_TIMEOUT_S

_CHUNK_ROWS = 1000
Keep: TypeAlias = Callable[[ScoreBatch], None]


def score_command(  # long because typer reads the options from the signature, and the help from the docstring
    rewards: Rewards,
    data: Data = None,
    data_option: DataOption = None,
    out: Annotated[Path | None, option("Write every row with its outcomes here, as JSON Lines.", "FILE")] = None,
    workers: Workers = None,
    timeout: Timeout = None,
    load_timeout: LoadTimeout = LOAD_TIMEOUT_S,
    weights: Annotated[
        str | None,
        option(
            "Weights in the total, in the rewards' order; by default 1, and 0 for a composition's parts.", "0.8,0.2"
        ),
    ] = None,
    inline: Annotated[bool, option("Run in this process, without isolation and timeouts.", None, "--inline")] = False,
    as_json: AsJson = False,
    record: Annotated[
        str | None, option("Record the outcomes in this run: a path such as runs/one, or a name.", "RUN")
    ] = None,
    append: Annotated[bool, option("Let --record add to a run that has a record.", None, "--append")] = False,
    limit: Annotated[int | None, option("Score only the first N rows.", "N", min=1)] = None,
    fail_on_error: Annotated[bool, option("Exit with code 1 if any call failed.", None, "--fail-on-error")] = False,
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
    numbers = None if weights is None else _numbers(weights)
    reward_set = chosen(rewards, timeout)
    rollouts = read_rollouts(path, limit=limit)
    about = {"command": "score", "rewards": without_token(rewards), "data": str(path)}
    with recording(record, reward_set, about, append=append) as keep:
        scoring = _Scoring(reward_set, rollouts, weights_of(reward_set.rewards, numbers or reward_set.weights), keep)
        summary = scoring.run(workers, out, inline=inline, load_timeout_s=load_timeout)

    def show() -> None:
        print_report(summary, screen())
        if out is not None:
            typer.echo(f"wrote {out}")
        if record is not None:
            run = run_path(record)
            typer.echo(plain(f"recorded in {run.label}; rewardkit show {shlex.quote(run.label)} shows it"))

    files = {"out": None if out is None else str(out), "record": None if record is None else run_path(record).label}
    result = {**summary.as_json(SHOWN_FAILURES), **files}
    finish(result, show, as_json=as_json, code=FAILED if fail_on_error and summary.failures else 0)


def _numbers(weights: str) -> list[float]:
    try:
        return [float(part) for part in weights.split(",")]
    except ValueError:
        raise ConfigError(f"--weights {weights}: expected numbers separated by commas, such as 0.8,0.2") from None


class _Scoring:
    """One file on its way: its outcomes as they come in, and the batch that the finished rows make.

    The runtime gets the plain rewards, so that each outcome arrives at once; the compositions are made of them here.
    """

    def __init__(
        self, reward_set: RewardSet, rollouts: Sequence[Rollout], weights: Mapping[str, float], keep: Keep
    ) -> None:
        self._keep_batch = keep
        self._recorded: set[int] = set()
        self._rewards = reward_set.rewards
        self._rollouts = rollouts
        self._weights = weights
        self._leaves = Leaves(reward_set)
        names = [leaf.name for leaf in self._leaves.leaves]
        self._outcomes: dict[str, list[Outcome | None]] = {name: [None] * len(rollouts) for name in names}

    def run(self, workers: int | None, out: Path | None, *, inline: bool, load_timeout_s: float) -> Summary:
        """Score everything and write the rows; what was finished is kept where that is cut short."""
        start = time.monotonic()
        lane = "inline" if inline else "worker"
        try:
            with scorer_of(self._leaves, workers=workers, lane=lane, load_timeout_s=load_timeout_s) as scorer:
                with told_progress("scoring") as tick:
                    total, failed = len(self._outcomes) * len(self._rollouts), 0
                    for done, finished in enumerate(scorer.stream(self._rollouts), 1):
                        self._outcomes[finished.reward][finished.row] = finished.outcome
                        failed += finished.outcome.cause is not None
                        tick(done, total, failed)
                seconds = time.monotonic() - start
            batch = self._batch(range(len(self._rollouts)))
            if out is not None:
                write_rows(out, self._to_rows(range(len(self._rollouts))))
            self._record()
        except BaseException:
            if out is not None:
                self._keep(out.with_name(f"{out.name}.partial"))
            with contextlib.suppress(OSError, RewardError):  # the fault that brought us here is the one to tell
                self._record()
            raise
        compositions = frozenset(name for name, reward in self._rewards.items() if isinstance(reward, Composite))
        return summarize(batch, self._outcomes, seconds, compositions)

    def _batch(self, rows: Sequence[int]) -> ScoreBatch:
        outcomes = {name: [self._outcome(reward, row) for row in rows] for name, reward in self._rewards.items()}
        return ScoreBatch([self._rollouts[row] for row in rows], outcomes, self._weights)

    def _outcome(self, reward: Composable, row: int) -> Outcome:
        outcomes = {leaf: self._outcomes[leaf.name][row] for leaf in reward.leaves}
        return reward.combine({leaf: outcome for leaf, outcome in outcomes.items() if outcome is not None})

    def _record(self) -> None:
        """Hand the finished rows that were not yet handed over to the record, whole groups together."""
        chunks = chunks_of_groups(
            self._rollouts, _CHUNK_ROWS, lambda row: self._is_finished(row) and row not in self._recorded
        )
        for rows in chunks:
            self._recorded.update(rows)
            self._keep_batch(self._batch(rows))

    def _is_finished(self, row: int) -> bool:
        return all(column[row] is not None for column in self._outcomes.values())

    def _to_rows(self, rows: Sequence[int]) -> Iterator[dict[str, Any]]:
        """Return finished rows as :meth:`~rewardkit.ScoreBatch.to_rows` does, a thousand at a time."""
        for start in range(0, len(rows), _CHUNK_ROWS):
            chunk = rows[start : start + _CHUNK_ROWS]
            for row, columns in zip(chunk, self._batch(chunk).to_rows(), strict=True):
                yield {**columns, "row": row}

    def _keep(self, partial: Path) -> None:
        """Write the rows for which every reward's outcome is known, and say so."""
        rows = list(filter(self._is_finished, range(len(self._rollouts))))
        if rows:
            with contextlib.suppress(OSError, RewardError):  # the fault that brought us here is the one to tell
                write_rows(partial, self._to_rows(rows))
                print(f"kept {len(rows):,} finished rows of {len(self._rollouts):,} in {partial}", file=sys.stderr)


@contextlib.contextmanager
def recording(run: str | None, reward_set: RewardSet, about: Mapping[str, Any], *, append: bool) -> Iterator[Keep]:
    """Give a function that records batches; nothing is recorded where no run is named.

    A run without a batch, because an error came first, is taken away again. Raises RecordError where the run has a
    record and ``append`` is false, or it cannot be written, and OSError where not all of it is in the file.
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
    """Yield the places of rollouts, ``rows`` or more at a time, those of a group together.

    A group in which one place is not finished is left out.
    """
    chunk: list[int] = []
    for places in group_places(rollouts):
        if all(map(is_finished, places)):
            chunk += places
        if len(chunk) >= rows:
            yield sorted(chunk)
            chunk = []
    if chunk:
        yield sorted(chunk)
