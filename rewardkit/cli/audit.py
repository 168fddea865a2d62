"""``rewardkit audit``: attacks on a reward with its author's own rows.

The options that every audit has, :func:`check_share` and :func:`progress` are for audits of other kinds as well.
"""

from __future__ import annotations

import contextlib
import functools
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

from rewardkit.cli.exits import FAILED
from rewardkit.errors import ConfigError

if TYPE_CHECKING:
    from rewardkit.audit.rows import Rows
    from rewardkit.audit.run import Tick
    from rewardkit.audit.settings import Settings
    from rewardkit.audit.verdict import Audit
    from rewardkit.compose import Composable

_TOLD_EACH_S = 30.0

RowCount: TypeAlias = Annotated[int, typer.Option(min=1, help="Rows to try, chosen at random.", metavar="N")]
Seed: TypeAlias = Annotated[int, typer.Option(help="For choosing the rows.", metavar="N")]


def audit_command(
    rewards: Annotated[
        str,
        typer.Argument(
            help="file.py, file.py:name or module:name, several separated by commas.",
            metavar="REWARDS",
            show_default=False,
        ),
    ],
    data: Annotated[
        Path,
        typer.Option(
            help="JSON Lines, Parquet or a .json list: prompt and your data set's columns; - for standard input.",
            metavar="FILE",
            show_default=False,
        ),
    ],
    rows: RowCount = 20,
    seed: Seed = 0,
    gold: Annotated[
        str | None,
        typer.Option(help="The column with the right answer; by default it is looked for.", metavar="COLUMN"),
    ] = None,
    accept_share: Annotated[
        float, typer.Option(help="A completion is paid above this share of the way to the full score.", metavar="SHARE")
    ] = 0.5,
    slow_share: Annotated[
        float, typer.Option(help="A call is slow above this share of the reward's timeout.", metavar="SHARE")
    ] = 0.5,
    max_false_accept: Annotated[
        int, typer.Option(min=0, help="Exit with 1 if more completions are wrongly paid.", metavar="N")
    ] = 0,
    max_false_reject: Annotated[
        float, typer.Option(help="Exit with 1 if a larger share of the honest forms is refused.", metavar="SHARE")
    ] = 1.0,
    max_failed: Annotated[
        int, typer.Option(min=0, help="Exit with 1 if more calls are slow or crash.", metavar="N")
    ] = 0,
    skip: Annotated[
        list[str] | None,
        typer.Option(
            help="A family of attacks or a rule of thumb to leave out, by its name in the report; may be repeated.",
            metavar="NAME",
        ),
    ] = None,
    fail_on_lint: Annotated[
        bool, typer.Option("--fail-on-lint", help="Exit with 1 if the source has a known mistake.")
    ] = False,
    workers: Annotated[
        int | None, typer.Option(min=1, help="Worker processes; by default the cores at hand, at most 4.", metavar="N")
    ] = None,
    timeout: Annotated[
        float | None, typer.Option(help="Seconds a call may take, instead of the reward's own timeout.", metavar="S")
    ] = None,
    load_timeout: Annotated[
        float | None,
        typer.Option(help="Seconds that a worker may take to load the rewards; by default 60.", metavar="S"),
    ] = None,
    time_limit: Annotated[
        float,
        typer.Option(
            help="Stop after so many seconds a reward; what was tried is judged, and nothing passes.", metavar="S"
        ),
    ] = 1800,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON: a list of objects, one a reward.")] = False,
) -> None:
    """Attack REWARDS with the rows of your data, and show what they wrongly pay for and wrongly refuse.

    For each row it writes the right answer in many honest forms, and learns
    which of them the reward pays. In these it tries some 300 wrong completions:
    silence, the prompt, several answers at once, answers denied or taken back,
    numbers and objects nearly right, sums not worked out, other rows' answers,
    texts that hang or crash. What is paid is shown with the rule that it breaks.

    Completions are scored in isolated workers, as in training; the reward's
    source is searched for known mistakes.

    Rows need a prompt and the columns that the reward reads. Give a right
    completion in a column 'reference' where the gold alone is none. Prompts and
    completions may be text or lists of chat messages.

    Examples:

    [bold]rewardkit audit my_rewards.py:correct --data rows.jsonl[/]

    [bold]rewardkit audit my_rewards.py --data rows.jsonl --rows 50 --gold target --json > audit.json[/]
    """
    for name, share in (("--accept-share", accept_share), ("--max-false-reject", max_false_reject)):
        check_share(name, share)
    check_share("--slow-share", slow_share)
    if not time_limit > 0:
        raise ConfigError(f"--time-limit {time_limit:g}: expected a number of seconds greater than 0")
    from rewardkit.audit import rows as rows_of_audits
    from rewardkit.audit.lint import skippable
    from rewardkit.audit.settings import Settings
    from rewardkit.cli.rewards import chosen, load_seconds

    skipped = {skippable(name, "--skip"): "with --skip" for name in skip or ()}
    settings = Settings(
        accept_share=accept_share,
        slow_share=slow_share,
        workers=workers,
        load_timeout_s=load_seconds(load_timeout),
        time_limit_s=time_limit,
        skipped=skipped,
    )
    limits = {
        "false_accept": max_false_accept,
        "false_reject": max_false_reject,
        "failed": max_failed,
    }
    found = chosen(rewards, timeout).rewards.values()
    lines = rows_of_audits.rows_in(data)  # once: standard input cannot be read again
    choose = functools.partial(rows_of_audits.chosen, lines, str(data), count=rows, seed=seed, gold=gold)
    audits = [_audited(reward, choose, settings) for reward in found]
    _tell(audits, limits, as_json=as_json)
    from rewardkit.audit.verdict import passed

    if not all(passed(one, limits) for one in audits) or (fail_on_lint and any(one.lint for one in audits)):
        raise typer.Exit(FAILED)


def check_share(name: str, share: float) -> None:
    """Raises ConfigError where an option's value is no share."""
    if not 0 <= share <= 1:
        raise ConfigError(f"{name} {share:g}: expected a share from 0 to 1")


def _audited(reward: Composable, choose: Callable[..., Rows], settings: Settings) -> Audit:
    from dataclasses import replace

    from rewardkit.audit import lint
    from rewardkit.audit.judge import Judge
    from rewardkit.audit.run import run

    leaves = reward.leaves
    named = [p.name for leaf in leaves for p in leaf.spec.parameters if p.column]
    rows = choose(named=named)
    left_out = lint.left_out(leaves[0]) if len(leaves) == 1 else {}
    settings = replace(settings, skipped={**left_out, **settings.skipped})
    with progress(reward.name) as tick:
        trials = run(reward, rows, settings, tick)
    mistakes = [one for leaf in leaves for one in lint.lint(leaf)]
    unread = [leaf.name for leaf in leaves if not lint.has_source(leaf)]
    return Judge(reward, rows, trials, settings).audit(mistakes, unread)


@contextlib.contextmanager
def progress(name: str) -> Iterator[Tick]:
    """Return what is told of progress: a line on stderr that renews itself, without a terminal one in half a minute."""
    if not sys.stderr.isatty():
        yield _told_at_times(name)
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    from rewardkit.cli.screen import PlainConsole

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=PlainConsole(stderr=True), transient=True) as bar:
        task = bar.add_task(name, total=None)
        yield lambda done, known: bar.update(task, completed=done, total=known)


def _told_at_times(name: str) -> Tick:
    began = told = time.monotonic()

    def tick(done: int, known: int) -> None:
        nonlocal told
        now = time.monotonic()
        if now - told >= _TOLD_EACH_S:
            told = now
            typer.echo(f"audit of {name}: {done:,} of {known:,} completions so far, {now - began:.0f} s", err=True)

    return tick


def _tell(audits: list[Audit], limits: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        import json

        from rewardkit.audit.report import as_json as ready

        typer.echo(json.dumps([ready(one, limits) for one in audits], indent=2))
        return
    from rewardkit.cli.audit_report import print_audit
    from rewardkit.cli.screen import screen

    console = screen()
    for place, one in enumerate(audits):
        if place:
            console.print()
        print_audit(one, limits, console)
