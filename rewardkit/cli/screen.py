"""The terminal: its width, the look of tables, progress. Imported only when something is shown."""

from __future__ import annotations

import contextlib
import functools
import os
import sys
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

from rich import box
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderableType
from rich.measure import Measurement
from rich.segment import Segment
from rich.table import Table

from rewardkit.runtime.settle import Finished
from rewardkit.shown.text import plain
from rewardkit.types import Outcome

PIPED_WIDTH = 100
"""Columns where the output goes to a file or a pipe and ``$COLUMNS`` is not set."""
WIDEST = 10_000
"""Columns of a table that is not shown on a terminal, at most."""
_REFRESH_S = 0.1
_TOLD_EACH_S = 30.0


class PlainConsole(Console):
    """A console that writes out control characters in whatever it is given to show; its own colours stay."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """As the console's own: all that is shown passes through here."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else segment._replace(text=plain(segment.text))


def screen() -> Console:
    """Return the console for results, on stdout."""
    console = PlainConsole(highlight=False)
    told = console.is_terminal or os.environ.get("COLUMNS", "").isdigit()
    return console if told else PlainConsole(highlight=False, width=PIPED_WIDTH)


def table(*columns: str) -> Table:
    """Return an empty table, ruled only under its head."""
    shown = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False, header_style="bold", show_edge=False)
    for column in columns:
        shown.add_column(column, overflow="fold")
    return shown


def fitting(console: Console, made: Callable[[Collection[str]], Table], *groups: Sequence[str]) -> Table:
    """Return a table with all of its columns, or without the first groups of them that make it fit the console.

    Args:
        made: Makes the table without the columns that it is given. A column with a ``min_width`` may be as narrow.
        groups: Columns by name, those that are missed least first.
    """
    left_out: list[str] = []
    shown = made(left_out)
    for group in groups:
        if _least_width(console, shown) <= console.width:
            break
        left_out += group
        shown = made(left_out)
    return shown


def _least_width(console: Console, shown: Table) -> int:
    width = Measurement.get(console, console.options.update(max_width=WIDEST), shown).maximum
    for column in shown.columns:
        if column.min_width is not None:
            lines = [line for cell in (column.header, *column.cells) for line in str(cell).splitlines()]
            width -= max(0, max(map(cell_len, lines)) - column.min_width)
    return width


def print_table(shown: Table, console: Console) -> None:
    """Print a table; off a terminal it is as wide as what is in it, so that nothing is wrapped."""
    console.print(shown, width=None if console.is_terminal else WIDEST)


@contextlib.contextmanager
def told_progress(name: str) -> Iterator[Callable[..., None]]:
    """Return a function of calls done, calls known and calls failed: it moves a bar, or prints a line now and then.

    The bar is on stderr where that is a terminal; the line comes every half minute where it is not.
    """
    terminal = sys.stderr.isatty()
    with _bar(name) if terminal else contextlib.nullcontext() as update:
        began = told = time.monotonic()

        def tick(done: int, known: int, failed: int = 0) -> None:
            nonlocal told
            now = time.monotonic()
            if update is not None and (now - told >= _REFRESH_S or done == known):
                told = now
                update(completed=done, total=known, failed=f"[red]{failed} failed[/]" if failed else "")
            elif update is None and now - told >= _TOLD_EACH_S:
                told = now
                print(f"{name}: {done:,} of {known:,} so far, {now - began:.0f} s", file=sys.stderr, flush=True)

        yield tick


def collected(what: str, finished: Iterable[Finished], names: Iterable[str], rows: int) -> dict[str, list[Outcome]]:
    """Return the outcomes of some rewards, by reward and row, when a stream of them has ended; tell the progress.

    Args:
        what: What is going on.
        finished: The outcomes, in any order; those of other rewards are passed over.
        names: The rewards, each of which scores every row.
        rows: How many rows there are.
    """
    found: dict[str, dict[int, Outcome]] = {name: {} for name in names}
    done = failed = 0
    with told_progress(what) as tick:
        for row, name, outcome in finished:
            if name in found:
                found[name][row] = outcome
                done, failed = done + 1, failed + (outcome.cause is not None)
                tick(done, len(found) * rows, failed)
    return {name: [by_row[row] for row in range(rows)] for name, by_row in found.items()}


@contextlib.contextmanager
def _bar(name: str) -> Iterator[Callable[..., None]]:
    """Return what updates a progress bar on stderr."""
    from rich import progress as bars

    columns = (bars.TextColumn("{task.description}"), bars.BarColumn(), bars.MofNCompleteColumn())
    more = (bars.TextColumn("{task.fields[failed]}"), bars.TimeElapsedColumn(), bars.TimeRemainingColumn())
    with bars.Progress(*columns, *more, console=PlainConsole(stderr=True), transient=True) as bar:
        yield functools.partial(bar.update, bar.add_task(name, total=None, failed=""))
