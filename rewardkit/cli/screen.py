"""The terminal: its width, the look of tables, progress. Imported only when something is shown."""

from __future__ import annotations

import contextlib
import functools
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Protocol

from rich import box
from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.table import Table

from rewardkit.shown import plain

PIPED_WIDTH = 100
"""Columns where the output goes to a file or a pipe and ``$COLUMNS`` is not set."""
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


class Ticker(Protocol):
    """Told of each call that is finished."""

    def __call__(self, *, failed: bool) -> None: ...


@contextlib.contextmanager
def progress(total: int) -> Iterator[Ticker]:
    """Return a ticker that moves a progress bar on stderr; it does nothing where that is not a terminal."""
    if not sys.stderr.isatty():
        yield lambda *, failed: None
        return
    with _bar("scoring", total) as update:
        done = failures = 0
        shown_at = 0.0

        def tick(*, failed: bool) -> None:
            nonlocal done, failures, shown_at
            done += 1
            failures += failed
            now = time.monotonic()
            if now - shown_at >= _REFRESH_S or done == total:
                shown_at = now
                update(completed=done, failed=f"[red]{failures} failed[/]" if failures else "")

        yield tick


@contextlib.contextmanager
def told_progress(name: str) -> Iterator[Callable[[int, int], None]]:
    """Return what is told of calls done and calls known: it moves a bar, or prints a line every half minute."""
    if sys.stderr.isatty():
        with _bar(name, None) as update:
            yield lambda done, known: update(completed=done, total=known)
        return
    began = told = time.monotonic()

    def tick(done: int, known: int) -> None:
        nonlocal told
        now = time.monotonic()
        if now - told >= _TOLD_EACH_S:
            told = now
            words = f"audit of {name}: {done:,} of {known:,} completions so far, {now - began:.0f} s"
            print(words, file=sys.stderr, flush=True)

    yield tick


@contextlib.contextmanager
def _bar(name: str, total: int | None) -> Iterator[Callable[..., None]]:
    """Return what updates a progress bar on stderr."""
    from rich import progress as bars

    columns = (bars.TextColumn("{task.description}"), bars.BarColumn(), bars.MofNCompleteColumn())
    more = (bars.TextColumn("{task.fields[failed]}"), bars.TimeElapsedColumn(), bars.TimeRemainingColumn())
    with bars.Progress(*columns, *more, console=PlainConsole(stderr=True), transient=True) as bar:
        yield functools.partial(bar.update, bar.add_task(name, total=total, failed=""))
