"""``rewardkit score``: rewards over a file of rollouts."""

from __future__ import annotations

import contextlib
import math
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rewardkit.cli.arguments import AsJson, Data, DataOption, LoadTimeout, Rewards, Timeout, Workers, data_path
from rewardkit.cli.exits import FAILED, finish
from rewardkit.errors import ConfigError, RewardError

if TYPE_CHECKING:
    from rewardkit.cli.collected import Collected
    from rewardkit.cli.summary import Summary
    from rewardkit.registry import RewardSet
    from rewardkit.runtime.runtime import Runtime
    from rewardkit.runtime.scoring import Finished
    from rewardkit.types import Rollout

_INLINE_ROWS = 64


def score_command(
    rewards: Rewards,
    data: Data = None,
    data_option: DataOption = None,
    out: Annotated[
        Path | None, typer.Option(help="Write every row with its outcomes here, as JSON Lines.", metavar="FILE")
    ] = None,
    workers: Workers = None,
    timeout: Timeout = None,
    load_timeout: LoadTimeout = None,
    weights: Annotated[
        str | None,
        typer.Option(help="Weights in the total, in the rewards' order; by default 1 each.", metavar="0.8,0.2"),
    ] = None,
    inline: Annotated[
        bool, typer.Option("--inline", help="Run in this process: no isolation, no timeouts. For a debugger.")
    ] = False,
    as_json: AsJson = False,
    limit: Annotated[int | None, typer.Option(min=1, help="Score only the first N rows.", metavar="N")] = None,
    fail_on_error: Annotated[
        bool, typer.Option("--fail-on-error", help="Exit with code 1 if any call failed.")
    ] = False,
) -> None:
    """Score the rollouts in DATA with REWARDS, and show how each reward did.

    A row has a prompt, a completion and the columns that the rewards read:

    [dim]{"prompt": "2+2=", "completion": "4", "answer": "4"}[/]

    Examples:

    [bold]rewardkit score my_rewards.py rollouts.jsonl
    rewardkit score a.py:correct,b.py:short rollouts.jsonl --weights 0.8,0.2
    rewardkit score my_rewards.py rollouts.jsonl --out scored.jsonl --json[/]
    """
    from rewardkit.cli.report import SHOWN_FAILURES, print_report
    from rewardkit.cli.rewards import chosen, load_seconds
    from rewardkit.cli.screen import screen
    from rewardkit.cli.summary import as_json as ready
    from rewardkit.data import read_rollouts

    path = data_path(data, data_option)
    if out is not None:
        from rewardkit.cli.output import check_writable

        check_writable(out, [path, *(Path(part.partition(":")[0].strip()) for part in rewards.split(","))])
    load_timeout_s = load_seconds(load_timeout)
    numbers = None if weights is None else _numbers(weights)
    found = chosen(rewards, timeout)
    task = _Task(found, read_rollouts(path, limit=limit), _weights(list(found.rewards), numbers), out)
    summary = task.run(workers, inline=inline, load_timeout_s=load_timeout_s)

    def show() -> None:
        print_report(summary, screen())
        if out is not None:
            typer.echo(f"wrote {out}")

    told = {**ready(summary, SHOWN_FAILURES), "out": None if out is None else str(out)}
    finish(told, show, as_json=as_json, code=FAILED if fail_on_error and summary.failures else 0)


def _numbers(weights: str) -> list[float]:
    numbers = []
    for part in weights.split(","):
        try:
            number = float(part)
        except ValueError:
            number = math.nan
        if not math.isfinite(number):
            raise ConfigError(f"--weights {weights}: expected numbers separated by commas, got {part.strip()!r}")
        numbers.append(number)
    return numbers


def _weights(names: Sequence[str], numbers: Sequence[float] | None) -> dict[str, float]:
    if numbers is None:
        return dict.fromkeys(names, 1.0)
    if len(numbers) != len(names):
        raise ConfigError(f"--weights: expected {len(names)}, one a reward ({', '.join(names)}), got {len(numbers)}")
    return dict(zip(names, numbers, strict=True))


@dataclass(frozen=True, slots=True)
class _Task:
    """One file to score."""

    found: RewardSet
    rollouts: list[Rollout]
    weights: dict[str, float]
    out: Path | None

    def run(self, workers: int | None, *, inline: bool, load_timeout_s: float) -> Summary:
        """Score everything and write the rows; what was finished is kept where that is cut short."""
        from rewardkit.cli.collected import Collected
        from rewardkit.cli.output import write_rows
        from rewardkit.cli.rewards import Leaves
        from rewardkit.cli.screen import progress
        from rewardkit.cli.summary import summarize
        from rewardkit.compose import Composite
        from rewardkit.runtime.runtime import Runtime

        parts = Leaves(self.found)
        leaves = parts.leaves
        collected = Collected(self.found.rewards, leaves, self.rollouts, self.weights)
        began = time.monotonic()
        try:
            lane = "inline" if inline else "worker"
            with Runtime(parts, workers=workers, lane=lane, load_timeout_s=load_timeout_s) as runtime:
                with progress(len(leaves) * len(self.rollouts)) as tick:
                    for finished in _stream(runtime, self.rollouts, inline=inline):
                        collected.take(finished)
                        tick(failed=finished.outcome.cause is not None)
                seconds = time.monotonic() - began
            batch = collected.batch()
            if self.out is not None:
                write_rows(self.out, collected.to_rows(range(len(self.rollouts))))
        except BaseException:
            self._keep(collected)
            raise
        compositions = frozenset(n for n, reward in self.found.rewards.items() if isinstance(reward, Composite))
        return summarize(batch, collected.outcomes, seconds, compositions)

    def _keep(self, collected: Collected) -> None:
        """Write what was finished beside the output, and say so."""
        from rewardkit.cli.output import write_rows

        rows = collected.finished()
        if self.out is None or not rows:
            return
        partial = self.out.with_name(f"{self.out.name}.partial")
        with contextlib.suppress(OSError, RewardError):  # the fault that brought us here is the one to tell
            write_rows(partial, collected.to_rows(rows))
            print(f"kept {len(rows):,} finished rows of {len(self.rollouts):,} in {partial}", file=sys.stderr)


def _stream(runtime: Runtime, rollouts: Sequence[Rollout], *, inline: bool) -> Iterator[Finished]:
    """Return outcomes as they become known; inline some whole groups at a time, for there a batch comes all at once."""
    if not inline:
        yield from runtime.stream(rollouts)
        return
    for places in _portions(rollouts):
        for finished in runtime.stream([rollouts[place] for place in places]):
            yield finished._replace(row=places[finished.row])


def _portions(rollouts: Sequence[Rollout]) -> Iterator[list[int]]:
    from rewardkit.groups import group_places

    portion: list[int] = []
    for group in group_places(rollouts):
        portion.extend(group)
        if len(portion) >= _INLINE_ROWS:
            yield portion
            portion = []
    if portion:
        yield portion
