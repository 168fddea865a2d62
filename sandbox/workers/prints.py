"""What calls have printed so far, in memory that outlives their worker: a place for each call that may be in flight.

A call that returns hands its output over itself. What is here is read where it does not: its time was up, or its worker
died. Writing copies a few bytes, waits for no other process, and a call that prints nothing writes nothing.
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
PLACE_BYTES = -(-(_TEXT_AT + _MOST_BYTES) // mmap.PAGESIZE) * mmap.PAGESIZE
"""Size of a place; memory is taken only for what is written."""


class Prints:
    """The places of one worker's calls: the worker writes, the parent reads.

    ``words`` are the memory's 64-bit words; the places begin at byte ``at``, a multiple of a word.
    """

    def __init__(self, memory: mmap.mmap, words: memoryview, at: int, places: int) -> None:
        self._map, self._words, self._at, self._places = memory, words, at, places
        self._here: Here | None = None

    def place(self, number: int) -> PrintPlace:
        """Return a place to write to."""
        self._here = self._here or Here()
        return PrintPlace(self._map, self._words, self._at + number * PLACE_BYTES, self._here)

    def of(self, ticket: int) -> str:
        """Return what a call has printed so far; ``""`` where it has printed nothing."""
        for number in range(self._places):
            at = self._at + number * PLACE_BYTES
            word = at // _WORD
            if self._words[word + _TICKET] != ticket:
                continue
            used, dropped = self._words[word + _USED], self._words[word + _DROPPED]
            text = self._map[at + _TEXT_AT : at + _TEXT_AT + min(used, _MOST_BYTES)]
            if self._words[word + _TICKET] == ticket:  # the next call may have come meanwhile, where a thread was stuck
                return told(text.decode("utf-8", "replace"), dropped)
        return ""


class PrintPlace:
    """Where one call's output is written as it comes; the next call's first text takes the place of it.

    A process that the call forks writes nothing: it may live on while the place is another call's.
    """

    def __init__(self, memory: mmap.mmap, words: memoryview, at: int, here: Here) -> None:
        self._map, self._words, self._word, self._forked = memory, words, at // _WORD, here.forked
        self._text_at = self._end = at + _TEXT_AT
        self._most = self._text_at + _MOST_BYTES
        self._ticket = 0
        # Protects the end of the text among the call's threads; a signal's handler may print while its thread writes.
        self._lock = threading.RLock()

    def add(self, ticket: int, text: str, dropped: int) -> None:
        """Add text of the call with this ticket; ``dropped`` characters of it have been left out so far.

        Its length is written when the text is there, and the ticket taken away before anything of the call before is:
        whoever finds the same ticket twice has read that call's text in between.
        """
        if self._forked():
            return
        data = text.encode("utf-8", "backslashreplace")
        with self._lock:
            if ticket != self._ticket:
                self._begin(ticket)
            start, end = self._end, self._end + len(data)
            if end > self._most:  # threads of a call may count past each other
                return
            self._end = end  # before the text: what a signal's handler prints now comes after it
            self._map[start:end] = data
            self._words[self._word + _USED] = self._end - self._text_at
            if dropped:
                self._words[self._word + _DROPPED] = dropped

    def _begin(self, ticket: int) -> None:
        words, word = self._words, self._word
        words[word + _TICKET] = words[word + _USED] = words[word + _DROPPED] = 0
        words[word + _TICKET] = self._ticket = ticket
        self._end = self._text_at


def told(text: str, dropped: int) -> str:
    """Return output as it is shown, with the number of characters that were left out of it."""
    return f"{text}\n[... {dropped:,} more characters dropped]" if dropped else text
