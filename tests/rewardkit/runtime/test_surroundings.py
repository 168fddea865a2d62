"""What a call patches or changes for those after it is put back: each among innocents, in every lane of workers."""

from __future__ import annotations

import asyncio
import builtins
import collections
import decimal
import fractions
import json
import locale
import logging
import math
import os
import random
import re
import shutil
import signal
import statistics
import string
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from patience import LONG_S

from rewardkit import Outcome, Reward, Rollout, Runtime, Score, Status, reward
from sandbox.workers.originals import Originals

LANES: dict[str, dict[str, Any]] = {"serial": {}, "threads": {"concurrency": 8}, "asyncio": {"concurrency": 16}}
ROWS = 40


def _reward(function: Callable[[str], Any], lane: str) -> Reward[..., Any]:
    def plain(completion: str) -> Any:
        return function(completion)

    async def awaits(completion: str) -> Any:
        await asyncio.sleep(0.001)
        return function(completion)

    return reward(name="made", timeout_s=LONG_S, **LANES[lane])(awaits if lane == "asyncio" else plain)


def _outcomes(function: Callable[[str], Any], lane: str, *batches: list[str]) -> list[list[Outcome]]:
    """Score batches of completions one after another in one process."""
    with Runtime([_reward(function, lane)], workers=1) as runtime:
        return [list(runtime.score([Rollout("p", text) for text in batch])["made"]) for batch in batches]


def _refuses(*_: object, **__: object) -> Any:
    raise RuntimeError("patched")


PATCHES: dict[str, Callable[[], object]] = {
    "builtins.float": lambda: setattr(builtins, "float", int),
    "builtins.len": lambda: setattr(builtins, "len", lambda _: 0),
    "builtins.isinstance": lambda: setattr(builtins, "isinstance", lambda *_: False),
    "builtins.repr": lambda: setattr(builtins, "repr", lambda _: "0.0"),
    "builtins.max": lambda: setattr(builtins, "max", min) or setattr(builtins, "range", None),
    "builtins.int is gone": lambda: delattr(builtins, "int"),
    "builtins by its names": lambda: vars(builtins).update(float=int, type=_refuses),
    "math.isfinite": lambda: setattr(math, "isfinite", lambda _: False),
    "math.sqrt": lambda: setattr(math, "sqrt", math.floor),
    "json.loads": lambda: setattr(json, "loads", lambda _: 0.0),
    "JSONEncoder.encode": lambda: setattr(json.JSONEncoder, "encode", lambda *_: "0.0"),
    "re.sub": lambda: setattr(re, "sub", lambda *_: "0"),
    "statistics.mean": lambda: setattr(statistics, "mean", min),
    "Fraction.__float__": lambda: setattr(fractions.Fraction, "__float__", lambda _: 0.0),
    "collections.Counter": lambda: setattr(collections, "Counter", _refuses),
    "time.monotonic": lambda: setattr(time, "monotonic", lambda: 1.0),
    "sys.unraisablehook": lambda: setattr(sys, "unraisablehook", _refuses),
}


def _score(row: int) -> float:
    return row * 37 % 101 / 101


def _uses(completion: str) -> Any:
    """Patch, or compute a score with what may have been patched."""
    if completion in PATCHES:
        PATCHES[completion]()
        return 0.5
    row = int(re.sub("^row ", "", completion))
    print(completion)
    value = float(fractions.Fraction(row * 37 % 101, 101)) * math.sqrt(statistics.mean([1.0, 1.0, json.loads("1.0")]))
    assert [row] == list(collections.Counter([row]))
    return Score(value, reason="x" * max(1, len(completion)), metrics={"m": value}) if row % 2 else value


@pytest.mark.cases(1)
@pytest.mark.parametrize("lane", LANES)
def test_a_name_that_a_call_left_patched_changes_nobodys_score(lane: str) -> None:
    """What computes a score, in the reward and in the worker, is as it was; the call that patched has its own score."""
    rows = [f"row {row}" for row in range(ROWS)]
    for number, name in enumerate(PATCHES):
        rows.insert(2 * number + 3, name)
    (outcomes,) = _outcomes(_uses, lane, rows)
    for text, outcome in zip(rows, outcomes, strict=True):
        right = 0.5 if text in PATCHES else _score(int(text[4:]))
        assert (Status.SCORED, pytest.approx(right)) == (outcome.status, outcome.score), (text, outcome)
        assert (text in PATCHES and outcome.logs == "") or outcome.logs == f"{text}\n", (text, outcome.logs)


def test_a_thread_that_patches_during_the_next_call_changes_no_score() -> None:
    """The call that ran meanwhile is made again."""

    def leaves(completion: str) -> float:
        if completion == "leaves":
            threading.Timer(0.05, lambda: setattr(builtins, "float", int)).start()
            return 0.5
        time.sleep(0.1)
        return float("0.25") if completion == "float" else 0.25

    (outcomes,) = _outcomes(leaves, "serial", ["leaves", "float", "float"])
    assert [0.5, 0.25, 0.25] == [outcome.score for outcome in outcomes]


def _leaves_folder() -> None:
    folder = tempfile.mkdtemp()
    os.chdir(folder)
    shutil.rmtree(folder)


CHANGES: dict[str, Callable[[], object]] = {
    "folder": _leaves_folder,
    "umask": lambda: os.umask(0o777),
    "recursion": lambda: sys.setrecursionlimit(77),
    "digits": lambda: sys.set_int_max_str_digits(1000),
    "locale": lambda: locale.setlocale(locale.LC_ALL, "C"),
    "decimal": lambda: setattr(decimal.getcontext(), "prec", 3),
    "filters": lambda: warnings.simplefilter("error"),
    "path": lambda: sys.path.insert(0, "/nowhere"),
    "no path": lambda: setattr(sys, "path", []),
    "stdout": lambda: setattr(sys, "stdout", None),
    "stderr": lambda: delattr(sys, "stderr"),
    "seed": lambda: random.seed(0),
    "numpy's seed": lambda: np.random.seed(0),
    "signals": lambda: [signal.signal(number, signal.SIG_IGN) for number in (signal.SIGTERM, signal.SIGUSR1)],
}


def _surroundings() -> str:
    """Return what a call finds: all of it in one text."""
    mask = os.umask(0)
    os.umask(mask)
    handlers = [str(signal.getsignal(number)) for number in (signal.SIGTERM, signal.SIGUSR1)]
    limits = sys.getrecursionlimit(), sys.get_int_max_str_digits(), mask, decimal.getcontext().prec
    return str((os.getcwd(), limits, locale.setlocale(locale.LC_ALL), warnings.filters, sys.path, handlers))


def _changes(completion: str) -> Any:
    if completion in CHANGES:
        CHANGES[completion]()
        return 0.5
    print(_surroundings())
    logging.getLogger("innocent").warning("heard")
    return Score(random.random() * 1e6 + float(np.random.random()))


@pytest.mark.cases(1)
@pytest.mark.parametrize("lane", LANES)
def test_what_a_call_changed_around_it_is_put_back(lane: str) -> None:
    """Folder, limits, locale, streams, paths, filters, handlers and seeds are the next call's as they were."""
    changes = [name for name in CHANGES if lane != "threads" or name != "signals"]  # which only the main thread sets
    batches = [[batch] for name in changes for batch in (name, "innocent")]
    (first,), *outcomes = _outcomes(_changes, lane, ["innocent"], *batches)
    assert (Status.SCORED, True) == (first.status, "heard" in first.logs), first
    for (name,), (changed,), (innocent,) in zip(batches[::2], outcomes[::2], outcomes[1::2], strict=True):
        assert (0.5, first.logs) == (changed.score, innocent.logs), (name, changed, innocent)
    draws = [outcome.score for (outcome,) in [[first], *outcomes[1::2]]]
    assert len(draws) == len(set(draws))


def test_a_stream_redirected_across_an_await_is_its_calls_own() -> None:
    """A call that captures what it prints still has it when another call has ended meanwhile."""

    async def captures(completion: str) -> float:
        import contextlib
        import io

        if completion == "ends":
            await asyncio.sleep(0.05)
            return 0.5
        with contextlib.redirect_stdout(io.StringIO()) as output:
            await asyncio.sleep(0.2)
            print("captured")
        return float("captured" in output.getvalue())

    with Runtime([reward(timeout_s=LONG_S)(captures)]) as runtime:
        assert [1.0, 0.5] == runtime.score([Rollout("p", "captures"), Rollout("p", "ends")]).totals


def test_patched_names_are_noticed_and_put_back() -> None:
    """Names of modules and classes, those that are gone, and new ones; nothing is said where all is well."""
    originals = Originals()
    capwords, decode = string.capwords, json.JSONDecoder.decode
    assert not originals.put_back()
    for owner, name in ((string, "capwords"), (json.JSONDecoder, "decode"), (string, "fresh")):
        setattr(owner, name, None)
        assert originals.put_back()
    del string.capwords
    assert originals.put_back()
    assert not originals.put_back()
    assert not hasattr(string, "fresh")
    assert (capwords, decode) == (string.capwords, json.JSONDecoder.decode)
