"""What "Share" of the page asks for: a saved page of a run or of a part of it, with how far it is before the file."""

from __future__ import annotations

import asyncio
import json
import logging
import tempfile
import threading
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from typing import IO, Any

from rewardkit.dashboard.as_json import json_bytes
from rewardkit.dashboard.query import SPLITS, Query
from rewardkit.dashboard.readers import OpenRun, Readers
from rewardkit.dashboard.saved.document import MEGABYTES, SavedPage, write_page
from rewardkit.dashboard.saved.scope import Scope, of_matches, of_prompt, of_step, whole_run
from rewardkit.dashboard.workers import Workers
from rewardkit.errors import RewardError
from rewardkit.record.conditions import conditions_of
from rewardkit.record.search_pattern import SearchPattern
from rewardkit.record.selection import RunTable, Selection, names_of
from rewardkit.record.text_search import TextSearch

SHARE_S = 3600.0  # Seconds that a page has to be written
MOST_MB = 500
LOOK_S = 0.2  # Seconds between two messages on how far it is
_CHUNK = 1 << 20
_log = logging.getLogger("rewardkit.dashboard")
_SEARCH_S = 0.5


class _StoppedError(Exception):
    """Nobody waits for the page any longer."""


@dataclass
class Share:
    """A page that is being written; the thread writes ``done`` and ``of``, the event loop reads them."""

    query: Query
    done: int = 0
    of: int = 0
    stopped: threading.Event = field(default_factory=threading.Event)

    def write(self, opened: OpenRun, file: IO[bytes]) -> SavedPage:
        """Write the page. Raises RewardError for a wrong query, and ends early when it is stopped."""
        scope = scope_of(opened, self.query, self._tick)
        megabytes = self.query.number("max_mb", MEGABYTES)
        with tempfile.TemporaryFile("w+", encoding="utf-8") as text:
            saved = write_page(opened.run, scope, text, megabytes=min(max(megabytes, 1.0), MOST_MB), tick=self._tick)
            text.seek(0)
            while part := text.read(_CHUNK):
                file.write(part.encode())
        return saved

    def _tick(self, done: int, of: int) -> None:
        self.done, self.of = done, of
        if self.stopped.is_set():
            raise _StoppedError


def scope_of(opened: OpenRun, query: Query, tick: Any = lambda done, of: None) -> Scope:
    """Return what a query asks to be saved. Raises RecordError where the run has no such part.

    Query: ``step`` with ``split``, or ``prompt``, or ``where`` and ``find`` or ``grep`` as of the table of completions;
    the whole run unless given. ``max_mb`` is the size of the page.
    """
    run = opened.run
    split = query.choice("split", SPLITS, "train")
    step, prompt = query.integer("step", low=0), query.integer("prompt", low=0)
    where, grep, text = query.text("where", ""), query.text("grep"), query.text("find")
    if step is not None:
        return of_step(run, step, split)
    if prompt is not None:
        return of_prompt(run, prompt)
    if not (where or grep or text):
        return whole_run(split)
    conditions = conditions_of(where)
    table = RunTable()
    while (progress := table.update(run, names_of(conditions, None), _SEARCH_S)).unfinished:
        tick(0, progress.of)
    selection = Selection(run, split, conditions, None, table=table)
    ids = selection.ids.tolist()
    if pattern := grep or text:
        search, start, ids = TextSearch(run, SearchPattern(pattern, is_plain=grep is None)), 0, []
        while start < len(selection):
            page = search.page(selection, start, len(selection), _SEARCH_S)
            ids += list(page.matches)
            start = page.end
            tick(0, len(selection))
    named = [where] if where else []
    return of_matches(run, split, " and ".join([*named, *([f"a match of {pattern!r}"] if pattern else [])]), ids)


async def stream(workers: Workers, run: str, query: Query) -> AsyncGenerator[bytes]:
    """Yield lines of JSON on how far the page is, a last one with its size or its ``error``, and then the page."""
    share = Share(query)
    file = tempfile.TemporaryFile()  # noqa: SIM115 - a thread may go on writing when this is left

    def task(readers: Readers) -> SavedPage:
        return share.write(readers.get(run), file)

    work = asyncio.ensure_future(workers.ask(task, SHARE_S))
    try:
        while not work.done():
            yield json.dumps({"done": share.done, "of": share.of}).encode() + b"\n"
            await asyncio.wait([work], timeout=LOOK_S)
        try:
            saved: SavedPage = work.result()
        except RewardError as error:
            yield json_bytes({"error": str(error)}) + b"\n"
            return
        except Exception as error:
            _log.exception("a page was not saved")
            reason = error.strerror if isinstance(error, OSError) else "its terminal says more"
            yield json_bytes({"error": f"the page was not saved: {type(error).__name__}, {reason}"}) + b"\n"
            return
        size = file.tell()
        yield json_bytes({"bytes": size, "completions": saved.completions, "left_out": saved.left_out}) + b"\n"
        file.seek(0)
        while part := file.read(_CHUNK):
            yield part
    finally:
        share.stopped.set()
        if work.done():
            file.close()
        else:
            work.add_done_callback(lambda _: file.close())
