"""Progress on stderr: a bar on a terminal, a line now and then elsewhere. Imported only when something is scored."""

from __future__ import annotations

import contextlib
import functools
import sys
import time
from collections.abc import Callable, Iterable, Iterator

from rewardkit.runtime.settle import Finished
from rewardkit.types import Outcome

_REFRESH_S = 0.1
_LINE_EACH_S = 30.0


@contextlib.contextmanager
def told_progress(name: str) -> Iterator[Callable[..., None]]:
    """Yield a function of the calls done, all calls and those that failed; it moves a bar, or prints a line at times.

    The bar is on stderr where that is a terminal; the line comes every half minute where it is not.
    """
    with _bar(name) if sys.stderr.isatty() else contextlib.nullcontext() as update:
        start = shown_at = time.monotonic()

        def tick(done: int, total: int, failed: int = 0) -> None:
            """Move the bar or print a line, where enough time has passed since the last time."""
            nonlocal shown_at
            now = time.monotonic()
            if update is not None and (now - shown_at >= _REFRESH_S or done == total):
                shown_at = now
                update(completed=done, total=total, failed=f"[red]{failed} failed[/]" if failed else "")
            elif update is None and now - shown_at >= _LINE_EACH_S:
                shown_at = now
                print(f"{name}: {done:,} of {total:,} so far, {now - start:.0f} s", file=sys.stderr, flush=True)

        yield tick


class SearchLine:
    """The state of a search on stderr, as one line that is written over; nothing where stderr is no terminal."""

    def __init__(self, name: str) -> None:
        self._name, self._is_shown, self._shown_at = name, sys.stderr.isatty(), time.monotonic()

    def say(self, done: int, total: int, matches: int) -> None:
        """Say how far the search is, at most each tenth of a second."""
        now = time.monotonic()
        if self._is_shown and now - self._shown_at >= _REFRESH_S:
            self._shown_at = now
            share = f"{done / total:.0%}" if total else "all"
            text = f"{self._name}: searched {done:,} of {total:,} ({share}), {matches:,} with a match; Ctrl-C stops"
            print(f"\r\x1b[K{text}", end="", file=sys.stderr, flush=True)

    def clear(self) -> None:
        """Take the line away, before something else is printed."""
        if self._is_shown:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)


def collect(title: str, stream: Iterable[Finished], names: Iterable[str], rows: int) -> dict[str, list[Outcome]]:
    """Read a stream to its end, with progress; return the outcomes of the named rewards, by reward and row.

    Outcomes of other rewards are passed over.
    """
    outcomes: dict[str, dict[int, Outcome]] = {name: {} for name in names}
    done = failed = 0
    with told_progress(title) as tick:
        for row, name, outcome in stream:
            if name in outcomes:
                outcomes[name][row] = outcome
                done, failed = done + 1, failed + (outcome.cause is not None)
                tick(done, len(outcomes) * rows, failed)
    return {name: [column[row] for row in range(rows)] for name, column in outcomes.items()}


@contextlib.contextmanager
def _bar(name: str) -> Iterator[Callable[..., None]]:
    from rich import progress as bars

    from rewardkit.cli.render import Screen

    columns = (bars.TextColumn("{task.description}"), bars.BarColumn(), bars.MofNCompleteColumn())
    more = (bars.TextColumn("{task.fields[failed]}"), bars.TimeElapsedColumn(), bars.TimeRemainingColumn())
    with bars.Progress(*columns, *more, console=Screen(stderr=True), transient=True) as bar:
        yield functools.partial(bar.update, bar.add_task(name, total=None, failed=""))
