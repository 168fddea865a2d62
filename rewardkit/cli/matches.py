"""Completions that a search lists: ``rewardkit show RUN --where "judge<0.2" --sort=-reward --grep TEXT``."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import typer

from rewardkit.cli.completion_lines import (
    completion_json,
    completion_name,
    moment_of,
    print_completions,
    prompt_name,
    score_text,
    short_number,
)
from rewardkit.cli.exits import INTERRUPTED, finish
from rewardkit.cli.progress import SearchLine, told_progress
from rewardkit.cli.render import ENDLESS, Screen, screen
from rewardkit.record.conditions import Condition, all_conditions
from rewardkit.record.reader import RunReader
from rewardkit.record.search_pattern import SearchPattern
from rewardkit.record.selection import RunTable, Selection, names_of
from rewardkit.record.text_search import TextMatch, TextSearch
from rewardkit.record.values import Completion
from rewardkit.shown.text import counted

READ_S = 0.5  # Seconds of reading between two looks at the clock
SEARCH_S = 0.1


class Search(NamedTuple):
    """Which completions are listed, and in which order."""

    split: str  # `all` for both
    grep: str | None
    where: Sequence[str]  # Conditions, all of which must hold
    sort: str | None
    limit: int | None  # `None` for all

    @property
    def conditions(self) -> list[Condition]:
        """The conditions; RecordError where a text has another form."""
        return all_conditions(self.where)


class Listed(NamedTuple):
    """A completion that a search lists."""

    row: Completion
    match: TextMatch | None  # Where the text stands that was looked for

    @property
    def match_json(self) -> dict[str, Any] | None:
        """The match, ready for JSON."""
        if self.match is None:
            return None
        return {"field": self.match.field, "name": self.match.name, **self.match.excerpt._asdict()}


class Matches:
    """The completions of a search, one after the other as they are found.

    Attributes:
        searched: How many of the selection were looked at so far.
        is_stopped: Whether Ctrl-C ended the search.
    """

    def __init__(self, run: RunReader, search: Search) -> None:
        """Choose the completions; RecordError for a wrong condition, order or expression."""
        self._run, self._search = run, search
        self._pattern = None if search.grep is None else SearchPattern(search.grep)
        conditions = search.conditions
        table = read_table(run, names_of(conditions, search.sort))
        split = None if search.split == "all" else search.split
        self.selection = Selection(run, split, conditions, search.sort, table=table)
        self.searched = 0
        self.is_stopped = False

    def __iter__(self) -> Iterator[Listed]:
        if self._pattern is None:
            yield from self._all()
        else:
            yield from self._with_match(self._pattern)

    def _all(self) -> Iterator[Listed]:
        count = len(self.selection) if self._search.limit is None else min(self._search.limit, len(self.selection))
        for start in range(0, count, _AT_ONCE):
            page = self.selection.page(start, min(_AT_ONCE, count - start))
            for row in self._run.by_id(page.tolist()):
                yield Listed(row, None)

    def _with_match(self, pattern: SearchPattern) -> Iterator[Listed]:
        """Yield those with a match, until there are enough or Ctrl-C; say on stderr how far the search is."""
        search, line = TextSearch(self._run, pattern), SearchLine(self._run.name)
        count, listed = len(self.selection), 0
        try:
            while self.searched < count and listed != self._search.limit:
                room = count if self._search.limit is None else self._search.limit - listed
                page = search.page(self.selection, self.searched, room, SEARCH_S)
                self.searched = page.end
                if page.matches:
                    line.clear()
                    rows = self._run.by_id(list(page.matches))
                    listed += len(rows)
                    yield from (Listed(row, page.matches[row.id]) for row in rows)
                line.say(self.searched, count, listed)
        except KeyboardInterrupt:
            self.is_stopped = True
        finally:
            line.clear()


_AT_ONCE = 50


def read_table(run: RunReader, names: Sequence[str]) -> RunTable:
    """Return what a selection by these names needs of a run, read with progress."""
    table = RunTable()
    progress = table.update(run, names, READ_S)
    if progress.unfinished:
        with told_progress(run.name) as tick:
            _read_on(run, table, names, tick)
    return table


def _read_on(run: RunReader, table: RunTable, names: Sequence[str], tick: Callable[..., None]) -> None:
    while (progress := table.update(run, names, READ_S)).unfinished:
        tick(progress.done, progress.of)


def show_matches(run: RunReader, search: Search, *, as_json: bool) -> None:
    """Print the completions that a search finds, each as soon as it is found, and what was looked at."""
    matches = Matches(run, search)
    if as_json:
        result: dict[str, object] = {"name": run.name, "split": search.split, "fitting": len(matches.selection)}
        listing = list(matches)
        if search.grep is None:
            rows = [completion_json(listed.row) for listed in listing]
        else:
            rows = [completion_json(listed.row) | {"match": listed.match_json} for listed in listing]
            result |= {"searched": matches.searched, "stopped": matches.is_stopped}
        code = INTERRUPTED if matches.is_stopped else 0
        finish({**result, "completions": rows}, lambda: None, as_json=True, code=code)
    elif search.grep is None:
        _print_fitting(run.name, matches, screen(ENDLESS))
    else:
        _print_found(run.name, matches, search.grep, screen(ENDLESS))


def _print_fitting(name: str, matches: Matches, console: Screen) -> None:
    rows = [listed.row for listed in matches]
    console.say((name, "bold"), f": {len(rows):,} of {counted(len(matches.selection), 'completion')}", fit="wrap")
    if rows:
        console.print()
        print_completions(rows, console, when=True)


def _print_found(name: str, matches: Matches, grep: str, console: Screen) -> None:
    """Print each completion with a match as it is found, and then how many were looked at; 130 after Ctrl-C."""
    count = 0
    for listed in matches:
        _print_match(listed, console)
        count += 1
    of_all = counted(len(matches.selection), "completion")
    stopped = "; stopped, there may be more" if matches.is_stopped else ""
    searched = f"{matches.searched:,} of {of_all}{stopped}"
    console.say((name, "bold"), f": {count:,} with a match of {grep!r} in {searched}")
    if matches.is_stopped:
        raise typer.Exit(INTERRUPTED)


def _print_match(listed: Listed, console: Screen) -> None:
    """Print a completion with a match, and below it the match with what stands around it."""
    row, match = listed.row, listed.match
    scores = ", ".join(f"{name} {score_text(outcome)}" for name, outcome in row.outcomes.items())
    step, epoch = moment_of(row)
    facts = f"step {step}  epoch {epoch}  {prompt_name(row)}  reward {short_number(row.reward)}  {scores}"
    console.say((completion_name(row), "bold"), f"  {facts}", fit="wrap")
    if match is not None:
        owner = match.field if match.name is None else f"{match.field} {match.name}"
        before, middle, after = map(_on_line, match.excerpt)
        console.say((f"  {owner}: ", "dim"), before, (middle, "bold green"), after, fit="cut")


def _on_line(text: str) -> str:
    """Return a part of a text on one line; its spaces at both ends stay."""
    return " ".join(text.split("\n")).replace("\t", " ")
