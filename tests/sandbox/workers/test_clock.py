"""The clock of a call: what stops it, and what no longer does."""

from __future__ import annotations

import contextvars
import os
import threading
from collections.abc import Iterator

import pytest

from sandbox.workers import clock
from sandbox.workers.page import Page, page_bytes
from sandbox.workers.wire import anonymous_file, map_shared


@pytest.fixture
def page() -> Iterator[Page]:
    """A page on which a call began at second 1."""
    descriptor = anonymous_file("page", page_bytes(1))
    made = Page(map_shared(descriptor, page_bytes(1), writable=True), 1)
    made.begin(0, 7, 1.0, tainted=False)
    yield made
    made.close()
    os.close(descriptor)


def _in_context(page: Page) -> tuple[clock.CellClock, contextvars.Context]:
    timer, context = clock.CellClock(page, 0), contextvars.copy_context()
    context.run(clock.use, timer)
    return timer, context


def test_it_goes_on_when_all_who_stopped_it_have_let_it_go(page: Page) -> None:
    """Stopped within a stop, and by a thread of the call, it counts the time once; the call seems to begin later."""
    timer, context = _in_context(page)

    def nested() -> list[bool]:
        with clock.stopped():
            thread = threading.Thread(target=contextvars.copy_context().run, args=(_stop_shortly,))
            thread.start()
            thread.join()
            with clock.stopped():
                pass
            return [one.stopped for one in page.running()]

    assert not timer.touched
    assert [True] == context.run(nested)
    assert timer.touched
    assert [(7, 1.0 + timer.stopped_s(), False, False)] == page.running()


def _stop_shortly() -> None:
    with clock.stopped():
        pass


def test_what_a_call_left_running_stops_no_later_calls_clock(page: Page) -> None:
    """Once the call is over, the page is the next one's; what stood still until then stays counted."""
    timer, context = _in_context(page)

    def outlive() -> float:
        with clock.stopped():
            timer.end()
            page.begin(0, 8, 5.0, tainted=False)
            return timer.stopped_s()

    counted = context.run(outlive)
    context.run(_stop_shortly)
    assert counted == timer.stopped_s() > 0
    assert [(8, 5.0, False, False)] == page.running()


def test_a_fork_stops_no_clock(page: Page) -> None:
    """A process that the call forked shares the page, and its time is not the call's."""
    _, context = _in_context(page)
    child = os.fork()
    if not child:
        context.run(_stop_shortly)
        os._exit(0)
    os.waitpid(child, 0)
    assert [(7, 1.0, False, False)] == page.running()


def test_where_no_call_runs_there_is_nothing_to_stop() -> None:
    """A sandbox of one's own is used without any clock."""
    contextvars.Context().run(_stop_shortly)
