"""The lane of an event loop: ``async def`` calls (judges, HTTP), many at once in one thread.

Each call has its deadline inside the loop, which nothing that blocks it obeys. So every step of every coroutine is
marked on the page with its call; the parent sees a step that outlives its call's deadline, kills the process, and
blames that call alone. No call can stop the loop, take its clock, or cancel what another has begun.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import selectors
import threading
from asyncio import _get_running_loop, _set_running_loop
from collections.abc import Callable, Coroutine, Generator
from concurrent.futures import Executor, ThreadPoolExecutor
from typing import Any

from sandbox.workers import capture, clock, surroundings
from sandbox.workers.desk import BROKEN, QUOTED_BESET, QUOTED_CANCELLED, QUOTED_DISTURBED, Desk, Order, cells_of
from sandbox.workers.job import Answer, is_failure
from sandbox.workers.steady import Steady

BEAT_S = 0.25  # seconds between two signs of life of the loop
LAG_S = 0.005  # seconds by which the loop may be late for another reason than steps; more moves the deadlines too
STEP_S = 0.1  # seconds that a step has in any case, so that one begun late does not cost the process

_call: contextvars.ContextVar[_Call | None] = contextvars.ContextVar("call", default=None)


class _Call(clock.Clock):
    timer: asyncio.TimerHandle  # gives it up

    def __init__(self, order: Order, lane: LoopLane) -> None:
        super().__init__()
        self.order = order
        self.lane = lane
        self.began = Steady.monotonic()
        self.stolen_before = lane.stolen_s
        self.own_s = 0.0  # seconds that its own steps took
        self.deadline = self.began + order.timeout_s
        self.cell = lane.free_cells.pop()
        self.log = capture.CallLog(lane.desk.page.prints.writer(self.cell), order.ticket)
        self.over = False
        self.is_disturbed = False  # whether names were patched in a step of its own
        self.threads: ThreadPoolExecutor | None = None

    def due(self) -> float:
        """Return when its time is up: the time for which others kept the loop does not count, nor a stopped clock."""
        stolen_s = self.lane.stolen_s - self.stolen_before - self.own_s
        return self.began + self.order.timeout_s + stolen_s + (self.stopped_s() if self.touched else 0.0)

    def _halt(self, now: float) -> None:
        if threading.get_ident() == self.lane.thread:  # in a step of its own; elsewhere the loop goes on
            self.lane.desk.page.halt_step(now)

    def _resume(self, took: float) -> None:
        self.deadline += took
        if threading.get_ident() == self.lane.thread:
            self.lane.desk.page.resume_step(self.deadline)


class _Marked(Coroutine[Any, Any, Any]):
    """A coroutine that marks each of its steps on the page as one of its call's."""

    def __init__(self, coroutine: Coroutine[Any, Any, Any], call: _Call) -> None:
        self._coroutine = coroutine
        self.call = call
        self.__name__ = getattr(coroutine, "__name__", "call")
        self.__qualname__ = getattr(coroutine, "__qualname__", "call")

    def __getattr__(self, name: str) -> Any:
        return getattr(self._coroutine, name)  # its state, which some libraries look at

    def send(self, value: object) -> Any:
        return self._step(self._coroutine.send, value)

    def throw(self, *error: Any) -> Any:
        return self._step(self._coroutine.throw, *error)

    def close(self) -> None:
        self._coroutine.close()

    def __await__(self) -> Generator[Any, Any, Any]:
        return (yield from self._coroutine.__await__())

    def _step(self, advance: Callable[..., Any], *arguments: object) -> Any:
        """Take a step, marked on the page, and count its seconds as stolen from the other calls."""
        call = self.call
        page, began, loop = call.lane.desk.page, Steady.monotonic(), call.lane.loop
        was_over = call.over
        call.deadline = max(call.due(), began + STEP_S)
        page.step(call.order.ticket, began, call.deadline)
        try:
            return advance(*arguments)
        finally:
            if was_over or not call.over:  # the end of a call looks by itself
                call.lane.look_after(call)
            if _get_running_loop() is not loop:
                _set_running_loop(loop)
            page.step_over()
            took = Steady.monotonic() - began
            call.own_s += took
            call.lane.stolen_s += took
            call.lane.steps_s += took


class _Selector(selectors.DefaultSelector):
    """A selector that adds to what the lane's calls have lost the time for which no step ran and the loop was late.

    That is callbacks, and a process that was stopped or had no processor.
    """

    def __init__(self, lane: LoopLane) -> None:
        super().__init__()
        self._lane = lane
        self._woke, self._steps_s = Steady.monotonic(), 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """Wait for events, and count by how much the loop was late before and woke late after it."""
        lane, began = self._lane, Steady.monotonic()
        steps_s = lane.steps_s - self._steps_s
        late = began - self._woke - steps_s  # what the loop took since it woke, but for the steps, which count apart
        events = super().select(timeout)
        self._woke, self._steps_s = Steady.monotonic(), lane.steps_s
        overslept = 0.0 if timeout is None else self._woke - began - max(0.0, timeout)
        lane.stolen_s += sum(lag for lag in (late, overslept) if lag > LAG_S)
        return events


class _Loop(asyncio.SelectorEventLoop):
    """An event loop whose clock is the worker's own, and whose methods no call can replace."""

    @property
    def time(self) -> Callable[[], float]:
        return Steady.monotonic

    def __setattr__(self, name: str, value: object) -> None:
        if name in _METHODS:
            raise AttributeError(f"{name!r} of the event loop cannot be replaced: other calls run on it")
        super().__setattr__(name, value)

    def run_in_executor(self, executor: Executor | None, func: Callable[..., Any], *args: object) -> Any:
        """Run a function in a thread; the default threads are the call's own, so that a stuck one blocks no other."""
        call = _call.get()
        if executor is None and call is not None:
            call.threads = call.threads or ThreadPoolExecutor()
            executor = call.threads
        return super().run_in_executor(executor, func, *args)

    def set_default_executor(self, executor: object) -> None:
        """Do nothing: each call has its own."""

    async def shutdown_default_executor(self, *_: object) -> None:
        """Do nothing: a call's own ends with the call."""

    def set_task_factory(self, factory: Any) -> None:
        """Set the lane's factory only; a call's own would run for the other calls too."""
        if _call.get() is None:
            super().set_task_factory(factory)


_METHODS = frozenset(name for name in dir(_Loop) if name == "time" or callable(getattr(_Loop, name)))


class _Task(asyncio.Task[Any]):
    """A task; while the call that started it is in progress only that call and the lane can cancel it."""

    def cancel(self, msg: Any | None = None) -> bool:
        coroutine = self.get_coro()
        owner = coroutine.call if isinstance(coroutine, _Marked) else None
        if owner is not None and not owner.over and _call.get() not in (None, owner):
            return False
        return super().cancel(msg)


class LoopLane:
    """Runs calls as tasks of one event loop."""

    def __init__(self, desk: Desk, width: int) -> None:
        self.desk = desk
        self.stolen_s = 0.0  # seconds for which some call could not go on because others kept the loop
        self.steps_s = 0.0  # seconds that steps took, of these
        self.mover: _Call | None = None  # the call that moved the streams or the path, and may put them back itself
        self.thread = threading.get_ident()
        self.free_cells = list(range(cells_of("asyncio", width)))
        self.loop = _Loop(_Selector(self))
        self._tasks: dict[_Call, asyncio.Task[Any]] = {}  # also of calls that are over and do not end
        self._wake_due = False
        self._gone = False

    def run(self) -> int:
        """Serve until the parent is gone. A call that stops the loop, or a task of it that exits, ends only itself."""
        asyncio.set_event_loop(self.loop)
        self.loop.set_task_factory(_task_factory)
        self.loop.add_reader(self.desk.channel.fileno(), self._read)
        self._beat()
        while not self._gone:
            with contextlib.suppress(KeyboardInterrupt, SystemExit):
                self.loop.run_forever()
            self.desk.keeper.check()
        return 0

    def look_after(self, call: _Call) -> None:
        """Put back the names that a step, or a callback before it, patched; note whose step moved what all share."""
        keeper = self.desk.keeper
        if keeper.is_same():
            return
        if keeper.check():
            call.is_disturbed = True
        if self.mover is None and not call.over and keeper.has_moved:
            self.mover = call

    def _read(self) -> None:
        self.desk.keeper.check()  # what the parent sends is not for a fork that a callback made
        try:
            for frame in self.desk.channel.receive():
                self.desk.obey(frame, self._start)
        except EOFError:
            self._gone = True
            self.loop.stop()
        except BaseException:
            Steady.end(BROKEN)  # calls would be lost: the loop only logs what a reader raises

    def _beat(self) -> None:
        self.desk.page.beat(Steady.monotonic())
        self.loop.call_later(BEAT_S, self._beat)

    def _start(self, orders: list[tuple[Any, ...]]) -> None:
        for order in orders:
            call = _Call(Order(*order), self)
            self._tasks[call] = contextvars.copy_context().run(self._begin, call)
            self._expire_at(call.deadline, call)

    def _begin(self, call: _Call) -> asyncio.Task[Any]:
        """Make the task of a call, in whose context this runs."""
        _call.set(call)
        capture.use(call.log)
        clock.use(call)
        return self.loop.create_task(self._run_call(call))

    def _expire_at(self, deadline: float, call: _Call) -> None:
        call.timer = self.loop.call_at(self.loop.time() + (deadline - Steady.monotonic()), self._expire, call)

    async def _run_call(self, call: _Call) -> None:
        try:
            answer = await self.desk.targets[call.order.target](*self.desk.arguments(call.order))
        except asyncio.CancelledError:  # not for its deadline, or the call is over
            answer = QUOTED_CANCELLED
        except BaseException:
            Steady.end(BROKEN)  # the loop would only log it, and the call never be answered
        if not call.over:
            self._finish(call, answer)
        del self._tasks[call]

    def _expire(self, call: _Call) -> None:
        """Give a call up, unless others' steps or its stopped clock have moved its deadline."""
        if call.over:
            return
        deadline = call.due()
        if deadline > Steady.monotonic() + 0.001:
            self._expire_at(deadline, call)
            return
        self._finish(call, QUOTED_BESET if call.log.is_beset else "null")
        task = self._tasks[call]
        task.add_done_callback(lambda _: self._tasks.pop(call, None))  # one that never began has no end of its own
        task.cancel()

    def _finish(self, call: _Call, answer: Answer) -> None:
        """Write the call's result; ``null`` and "beset" mean that its time was up."""
        self.look_after(call)
        if (is_failure(answer) and capture.others_threw(call.log)) or (call.is_disturbed and len(self._tasks) > 1):
            answer = QUOTED_DISTURBED  # another call may have patched what this one used, or raised this
        call.over = True
        call.timer.cancel()
        call.end()
        if call.threads is not None:
            call.threads.shutdown(wait=False, cancel_futures=True)
        if surroundings.earlier_states:
            self.desk.put_back(call.log)
        if self.mover is None or self.mover.over:
            self.mover = None
            if self.desk.keeper.has_moved:
                self.desk.keeper.move_back()
        took = Steady.monotonic() - call.began - call.stopped_s()
        self.desk.record(call.order.ticket, took, call.log.finish(), answer)
        self.free_cells.append(call.cell)
        if not self._wake_due:
            self._wake_due = True
            asyncio.get_running_loop().call_soon(self._wake)

    def _wake(self) -> None:
        self._wake_due = False
        self.desk.wake()


def _task_factory(loop: asyncio.AbstractEventLoop, coroutine: Any, **options: Any) -> asyncio.Task[Any]:
    """Mark the steps of every task that a call starts as that call's."""
    call = _call.get()
    return _Task(coroutine if call is None else _Marked(coroutine, call), loop=loop, **options)
