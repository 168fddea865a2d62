"""Prints of calls so far, in memory that outlives their worker: a region for each call that may be in flight.

A call that returns hands its output over itself. These are read if it does not: its time was up, or its worker died.
Writing copies a few bytes, waits for no other process, and a call that prints nothing writes nothing.
"""

from __future__ import annotations

import mmap
import threading

from sandbox.workers.steady import Here

LOG_CHARS = 16_384  # characters kept of one call's output; what comes after is counted and dropped

_TICKET, _USED, _DROPPED = range(3)
_WORD = 8
_TEXT_AT = 3 * _WORD
_MOST_BYTES = 6 * LOG_CHARS  # a lone surrogate, written out, has six
REGION_BYTES = -(-(_TEXT_AT + _MOST_BYTES) // mmap.PAGESIZE) * mmap.PAGESIZE  # taken only for what is written


class Prints:
    """The regions of a worker's calls, which the parent reads; they begin at byte ``at``, a multiple of 8."""

    def __init__(self, memory: mmap.mmap, integers: memoryview, at: int, regions: int) -> None:
        self._map, self._integers, self._at, self._regions = memory, integers, at, regions
        self._here: Here | None = None

    def writer(self, number: int) -> PrintWriter:
        self._here = self._here or Here()
        return PrintWriter(self._map, self._integers, self._at + number * REGION_BYTES, self._here)

    def of(self, ticket: int) -> str:
        """Return what a call has printed so far; ``""`` where it has printed nothing."""
        for number in range(self._regions):
            at = self._at + number * REGION_BYTES
            word = at // _WORD
            if self._integers[word + _TICKET] != ticket:
                continue
            used, dropped = self._integers[word + _USED], self._integers[word + _DROPPED]
            text = self._map[at + _TEXT_AT : at + _TEXT_AT + min(used, _MOST_BYTES)]
            if self._integers[word + _TICKET] == ticket:  # after a stuck thread, the next call may have come meanwhile
                return note_dropped(text.decode("utf-8", "replace"), dropped)
        return ""


class PrintWriter:
    """Writes a call's output as it comes, in the place of the last call's; a process that it forks writes none.

    Order of writing, for a reader that takes no lock: ``_begin`` sets the ticket to 0, clears the counts, then sets the
    new ticket; ``add`` writes the text before its length. A reader that finds the same ticket before and after reading
    has text of that call alone; the count of dropped characters may be one print behind.
    """

    def __init__(self, memory: mmap.mmap, integers: memoryview, at: int, here: Here) -> None:
        self._map, self._integers, self._word, self._forked = memory, integers, at // _WORD, here.forked
        self._text_at = self._end = at + _TEXT_AT
        self._text_limit = self._text_at + _MOST_BYTES
        self._ticket = 0
        # Protects the end of the text among the call's threads; a signal's handler may print while its thread writes.
        self._lock = threading.RLock()

    def add(self, ticket: int, text: str, dropped: int) -> None:
        """Add a call's text; ``dropped`` is how many characters of the call's output are left out so far."""
        if self._forked():
            return
        data = text.encode("utf-8", "backslashreplace")
        with self._lock:
            if ticket != self._ticket:
                self._begin(ticket)
            start, end = self._end, self._end + len(data)
            if end > self._text_limit:  # two threads may both have had room by CallLog's count
                return
            self._end = end  # before the text: what a signal's handler prints now comes after it
            self._map[start:end] = data
            self._integers[self._word + _USED] = self._end - self._text_at
            if dropped:
                self._integers[self._word + _DROPPED] = dropped

    def _begin(self, ticket: int) -> None:
        integers, word = self._integers, self._word
        integers[word + _TICKET] = integers[word + _USED] = integers[word + _DROPPED] = 0
        integers[word + _TICKET] = self._ticket = ticket
        self._end = self._text_at


def note_dropped(text: str, dropped: int) -> str:
    """Return output with a note of how many characters were left out of it."""
    return f"{text}\n[... {dropped:,} more characters dropped]" if dropped else text
