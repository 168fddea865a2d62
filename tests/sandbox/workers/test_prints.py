"""What a call has printed stays where its worker cannot take it along, and is nobody else's."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator

import pytest

from sandbox.workers.capture import CallLog
from sandbox.workers.page import Page, page_bytes
from sandbox.workers.prints import LOG_CHARS, Prints
from sandbox.workers.wire import anonymous_file, map_shared

PLACES = 3


@pytest.fixture
def prints() -> Iterator[Prints]:
    """The places of a worker with three calls in flight."""
    descriptor = anonymous_file("page", page_bytes(PLACES))
    page = Page(map_shared(descriptor, page_bytes(PLACES), writable=True), PLACES)
    yield page.prints
    page.close()
    os.close(descriptor)


def test_calls_in_flight_have_places_of_their_own(prints: Prints) -> None:
    """Each ticket has its own text, and one that printed nothing has none."""
    logs = {ticket: CallLog(prints.writer(ticket - 7), ticket) for ticket in (7, 8, 9)}
    for ticket in (7, 8, 7):
        logs[ticket].write(f"of {ticket}\n")
    assert ["of 7\nof 7\n", "of 8\n", "", ""] == [prints.of(ticket) for ticket in (7, 8, 9, 10)]


def test_the_next_call_begins_with_an_empty_place(prints: Prints) -> None:
    """What the call before it printed there is gone with its first text, and is never told as its own."""
    CallLog(prints.writer(0), 1).write("the first call's\n" * 100)
    second = CallLog(prints.writer(0), 2)
    assert "" == prints.of(2)
    second.write("the second's\n")
    assert ["", "the second's\n"] == [prints.of(1), prints.of(2)]


@pytest.mark.parametrize("text", ["x" * 5, "ä😀\ud800", "\ud800" * (LOG_CHARS + 5), "😀" * (3 * LOG_CHARS)])
def test_the_parent_reads_what_the_call_would_have_handed_over(prints: Prints, text: str) -> None:
    """Both ways have the same limit, the same count of what was dropped, and the same signs for what is no text."""
    log = CallLog(prints.writer(0), 1)
    log.write(text)
    assert prints.of(1) == log.finish() != ""


def test_what_comes_after_the_end_of_a_call_is_left_out(prints: Prints) -> None:
    """A thread that outlives its call does not write to a place that may be another call's."""
    log = CallLog(prints.writer(0), 1)
    log.write("in time")
    log.finish()
    log.write("too late")
    assert "in time" == prints.of(1)


def test_threads_of_one_call_lose_no_line(prints: Prints) -> None:
    """Lines of many threads at once are all there, each whole."""
    log = CallLog(prints.writer(0), 1)
    threads = [
        threading.Thread(target=lambda n=n: [log.write(f"{n} {i}\n") for i in range(100)])  # type: ignore[misc]
        for n in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {f"{n} {i}" for n in range(8) for i in range(100)} == set(prints.of(1).splitlines())


def test_a_fork_of_a_worker_writes_to_nobody_elses_place(prints: Prints) -> None:
    """A child that a call forked may print while the next call has the place."""
    log = CallLog(prints.writer(0), 1)
    log.write("the parent's")
    child = os.fork()
    if child == 0:
        log.write("the child's")
        os._exit(0)
    os.waitpid(child, 0)
    assert "the parent's" == prints.of(1)


def test_lengths_that_a_call_wrote_over_are_not_believed(prints: Prints) -> None:
    """Memory that a call can write to may say anything; what is read of it is bounded."""
    CallLog(prints.writer(0), 1).write("text")
    words = prints._integers
    at = prints._at // 8
    words[at + 1] = 2**63
    assert prints.of(1).startswith("text")
    assert len(prints.of(1)) <= 6 * LOG_CHARS
