"""What a call changes for those after it, and how that is put back when the call is over.

State of the process (the working folder, umask, signal handlers and the like) is changed by functions. Each is
replaced by one that first notes the state as it was. The path of imports, the filters of warnings and the two streams
are changed in place, and compared. Patched names are for :mod:`~sandbox.workers.originals`.

*Not put back:* ``os.environ``, module globals, libraries that others wrote, what C code changes, and what is changed
by a function that a module took before (``from os import chdir`` in one that the warden had imported).
"""

from __future__ import annotations

import contextlib
import faulthandler
import functools
import gc
import os
import random
import signal
import sys
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from sandbox.workers import capture
from sandbox.workers.capture import CallLog
from sandbox.workers.originals import Originals
from sandbox.workers.page import Page
from sandbox.workers.steady import Here, Steady


@dataclass(frozen=True, slots=True, eq=False)
class ProcessState:
    """A state of the process: which functions of a module change it, and how it is read and put back."""

    module: str
    functions: tuple[str, ...]
    read: Callable[[], Any]
    write: Callable[[Any], object]


LONG_S = 0.01  # seconds from which on a run of the collector has taken long
earlier_states: dict[ProcessState, tuple[CallLog | None, Any]] = {}
"""By state that was changed, the call that did so, and what the state was before."""
_installed: set[tuple[str, tuple[str, ...]]] = set()


def install() -> None:
    """Have the functions of modules loaded so far note what they change. For worker processes only."""
    for state in _states():
        if (state.module, state.functions) not in _installed:
            _installed.add((state.module, state.functions))
            module = sys.modules[state.module]
            for name in state.functions:
                setattr(module, name, _wrap(state, getattr(module, name)))


def _wrap(state: ProcessState, function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that changes a state, which first notes what the state is, unless that is noted already."""
    states = earlier_states  # looked up once: a call may break builtins and empty modules

    @functools.wraps(function)
    def note(*arguments: object, **options: object) -> Any:
        if state not in states:
            with contextlib.suppress(OSError):  # the working folder is gone
                states[state] = (capture.current(), state.read())
        return function(*arguments, **options)

    return note


def put_back(log: CallLog | None = None) -> None:
    """Put back what a call changed, or every call."""
    for state, (owner, value) in list(earlier_states.items()):
        if log is None or owner is None or owner is log or owner.closed:
            del earlier_states[state]
            with contextlib.suppress(Exception):  # a folder that is gone, a handler that C set
                state.write(value)


def cancel_plans(_: object = None) -> None:
    """Cancel what a call planned for later, so that it does not hit the next one."""
    for timer in (signal.ITIMER_REAL, signal.ITIMER_VIRTUAL, signal.ITIMER_PROF):
        _setitimer(timer, 0.0)
    _cancel_dump()


_setitimer, _cancel_dump = signal.setitimer, faulthandler.cancel_dump_traceback_later
_getsignal, _SIGNALS = signal.getsignal, tuple(signal.valid_signals())


def _states() -> Iterator[ProcessState]:
    """Yield the states of modules loaded so far, with their functions as they are."""
    yield _CLOSING
    yield ProcessState("os", ("chdir", "fchdir"), os.getcwd, os.chdir)
    yield ProcessState("os", ("umask",), _read_umask, os.umask)
    yield ProcessState("sys", ("setrecursionlimit",), sys.getrecursionlimit, sys.setrecursionlimit)
    yield ProcessState("sys", ("set_int_max_str_digits",), sys.get_int_max_str_digits, sys.set_int_max_str_digits)
    yield ProcessState("sys", ("setswitchinterval",), sys.getswitchinterval, sys.setswitchinterval)
    yield ProcessState("sys", ("settrace",), sys.gettrace, sys.settrace)
    yield ProcessState("sys", ("setprofile",), sys.getprofile, sys.setprofile)
    yield ProcessState("signal", ("alarm", "setitimer"), _nothing, cancel_plans)
    yield ProcessState("faulthandler", ("dump_traceback_later",), _nothing, cancel_plans)
    yield ProcessState("signal", ("signal",), _read_handlers, functools.partial(_write_handlers, signal.signal))
    mask = functools.partial(signal.pthread_sigmask, signal.SIG_SETMASK)
    yield ProcessState(
        "signal", ("pthread_sigmask",), functools.partial(signal.pthread_sigmask, signal.SIG_BLOCK, ()), mask
    )
    filters = functools.partial(setattr, warnings, "filters")
    yield ProcessState(
        "warnings", ("simplefilter", "filterwarnings", "resetwarnings"), lambda: list(warnings.filters), filters
    )
    yield ProcessState("random", ("seed", "setstate"), random.getstate, random.setstate)
    locale, decimal, numpy = (sys.modules.get(name) for name in ("locale", "decimal", "numpy.random"))
    if locale is not None:
        yield ProcessState("locale", ("setlocale",), *[functools.partial(locale.setlocale, locale.LC_ALL)] * 2)
    if decimal is not None:
        read = functools.partial(_read_context, decimal.getcontext)
        yield ProcessState(
            "decimal", ("getcontext", "setcontext"), read, functools.partial(_write_context, decimal.setcontext)
        )
    if numpy is not None:
        yield ProcessState("numpy.random", ("seed", "set_state"), numpy.get_state, numpy.set_state)


def _nothing(_: object = None) -> None:
    """Do nothing."""


_CLOSING = ProcessState("os", ("close", "closerange"), _nothing, _nothing)


def descriptors_closed() -> bool:
    """Return whether a call has closed descriptors by number, perhaps the worker's own."""
    return _CLOSING in earlier_states


def _read_umask(umask: Callable[[int], int] = os.umask) -> int:
    mask = umask(0o077)
    umask(mask)
    return mask


def _read_handlers() -> dict[int, Any]:
    return {number: _getsignal(number) for number in _SIGNALS}


def _write_handlers(set_handler: Callable[[int, Any], object], handlers: dict[int, Any]) -> None:
    for number, handler in handlers.items():
        if _getsignal(number) is not handler:
            set_handler(number, handler)


def _read_context(current: Callable[[], Any]) -> tuple[Any, Any]:
    return current(), current().copy()


def _write_context(set_context: Callable[[Any], object], contexts: tuple[Any, Any]) -> None:
    """Give a context of decimal numbers, which calls may share, its copy's settings, and make it the present one."""
    context, copy = contexts
    for name in ("prec", "rounding", "Emin", "Emax", "capitals", "clamp", "traps"):
        setattr(context, name, getattr(copy, name))
    set_context(context)


class Keeper(Here):
    """Looks, after each call, whether this is still the worker, with what it had loaded and as it was."""

    def __init__(self, page: Page) -> None:
        super().__init__()
        self._hooks, self._hooked = [*gc.callbacks, _collector_hook(page)], gc.callbacks
        gc.callbacks[:] = self._hooks
        self._live = sys.modules
        self._modules = dict(sys.modules)
        self._loaded = len(self._modules)
        self._originals = Originals()
        self._in_place = sys.stdout, sys.stderr, list(sys.path), list(warnings.filters)
        self.is_same = self._comparison()

    def _comparison(self) -> Callable[[], bool]:
        """Return what says that nothing has changed since the last check: a closure, for it is called once a call."""
        mark, originals, live, loaded = self._mark, self._originals, self._live, self._loaded
        versions, hooked, hooks = originals.versions, self._hooked, self._hooks
        (_, _, path, filters), len, changed = self._in_place, _len, AttributeError

        def is_same() -> bool:
            try:  # streams, and other lists in the place of these, are changes of the modules' names
                return (
                    mark[0] == 1
                    and versions() == originals.last_versions
                    and len(live) >= loaded
                    and hooked == hooks
                    and sys.path == path
                    and warnings.filters == filters
                )
            except changed:
                return False

        return is_same

    def check(self) -> bool:
        """End a forked copy of this process; put back modules and patched names and return whether there were any."""
        if not self._mark[0] and self.forked():
            Steady.end(0)
        if self._hooked != self._hooks:
            self._hooked[:] = self._hooks
            capture.end_collection()  # perhaps nothing has said so
        patched = self._originals.versions() != self._originals.last_versions and self._originals.put_back()
        if _len(self._live) >= self._loaded:
            return patched
        for name, module in self._modules.items():
            self._live.setdefault(name, module)
        return True

    @property
    def has_moved(self) -> bool:
        """Whether the path of imports, the filters of warnings or a stream is another than in the beginning."""
        try:
            return (sys.stdout, sys.stderr, sys.path, warnings.filters) != self._in_place
        except AttributeError:
            return True

    @property
    def is_silent(self) -> bool:
        """Whether prints have no stream to go to."""
        return getattr(sys, "stdout", None) is None or getattr(sys, "stderr", None) is None

    def move_back(self) -> None:
        """Put them back."""
        sys.stdout, sys.stderr, path, filters = self._in_place
        sys.path, warnings.filters = list(path), list(filters)


def _collector_hook(page: Page) -> Callable[[str, object], None]:
    """Return what the collector calls before and after it has worked: what it runs is not the present call's own."""
    monotonic, current, begin, end = Steady.monotonic, capture.current, capture.begin_collection, capture.end_collection
    log, began = None, 0.0

    def note(phase: str, _: object) -> None:
        nonlocal log, began
        if phase == "start":
            log, began = current(), monotonic()
            begin()  # what finalisers print is nobody's
            page.collect(0 if log is None else log.ticket)
            return
        end()
        if log is not None:
            if monotonic() - began > LONG_S:
                log.is_beset = True
                page.collected(log.ticket)
            page.collect(0)

    return note


_len = len
