"""What a worker tells its parent is checked: a call that writes over it costs itself alone, and never the run."""

from __future__ import annotations

import asyncio
import gc
import json
import struct
from typing import Any

import pytest
from patience import in_time, kept_time

from rewardkit import Cause, Outcome, Rollout, Runtime, Status, group_reward, reward
from rewardkit.declare.spec import CallContext
from rewardkit.runtime.cache import OutcomeCache
from rewardkit.runtime.finding import decode, encode
from rewardkit.runtime.plan import Plan
from rewardkit.runtime.settle import Settler
from sandbox.workers import slot
from sandbox.workers.wire import Channel, RecordWriter

INNOCENTS = 40
TIMEOUT_S, GRACE_S = 1.5, 1.5
"""After which, one after the other, answers are given up that lie behind what cannot be read."""


def _frame(body: bytes) -> bytes:
    return struct.pack("<I", len(body)) + body


FRAMES: dict[str, bytes] = {
    "no length": b"\xff\xff\xff\xff",
    "a large length": struct.pack("<I", 1 << 21),
    "nothing": _frame(b""),
    "zeros": bytes(64),
    "no JSON": _frame(b"{"),
    "no text": _frame(b"\xff\xfe"),
    "no list": _frame(b"7"),
    "an empty list": _frame(b"[]"),
    "an unknown word": _frame(b'["hello"]'),
    "deep": _frame(b"[" * 100_000),
    "a long number": _frame(b"[" + b"9" * 10_000 + b"]"),
    "done without counts": _frame(b'["done"]'),
    "done with words": _frame(b'["done", "a", "b", "c", "d"]'),
    "done with too many": _frame(b'["done", 1, 100000, false, 0]'),
    "done with fewer than none": _frame(b'["done", 1, -1, false, 0]'),
    "done with a list": _frame(b'["done", [1], {}, false, 0]'),
    "ready again": _frame(b'["ready"]'),
    "a load error": _frame(b'["load_error", "no such module"]'),
    "emptied unasked": _frame(b'["emptied"]'),
    "half a frame": b"\x07\x00\x00\x00abc",
}
RECORDS: dict[str, bytes] = {
    "no JSON": b"{\n",
    "no text": b"\xff\xfe\n",
    "a number": b"7\n",
    "an empty list": b"[]\n",
    "too short": b"[1, 0.5]\n",
    "too long": b'[1, 0.5, "", 1.0, 1]\n',
    "a ticket of words": b'["1", 0.5, "", 1.0]\n',
    "a ticket of truth": b'[true, 0.5, "", 1.0]\n',
    "a ticket of a list": b'[[], 0.5, "", 1.0]\n',
    "no duration": b'[1, null, "", 1.0]\n',
    "an endless duration": b'[1, Infinity, "", 1.0]\n',
    "a duration that is no number": b'[1, NaN, "", 1.0]\n',
    "no logs": b"[1, 0.5, null, 1.0]\n",
    "deep": b"[" * 100_000 + b"\n",
    "many tickets": b'[999999, 0.5, "", 1.0]\n' * 1000,
    "an empty line": b"\n",
    "lines with a zero": b"[1,\0]\n",
}
ALL = [("frame", name) for name in FRAMES] + [("record", name) for name in RECORDS]


def _writes(number: int) -> float:
    kind, name = ALL[number]
    gc.unfreeze()
    wanted: Any = Channel if kind == "frame" else RecordWriter
    ours = next(one for one in gc.get_objects() if type(one) is wanted and (kind == "record" or one.fileno() >= 0))
    if kind == "frame":
        ours.sock.send(FRAMES[name])
    else:
        ours.write(RECORDS[name])
    return 0.5


def _plain(completion: str, row: int) -> float:
    return _writes(row) if completion == "bad" else float(row)


async def _awaited(completion: str, row: int) -> float:
    await asyncio.sleep(0)
    return _writes(row) if completion == "bad" else float(row)


@pytest.mark.cases(1)
@pytest.mark.parametrize(
    ("function", "options"),
    [(_plain, {}), (_plain, {"concurrency": 4}), (_awaited, {"concurrency": 32})],
    ids=["serial", "threads", "asyncio"],
)
def test_a_malformed_message_or_record_costs_its_call_alone(
    function: Any, options: dict[str, Any], full: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each is written by one call of a batch: that call has its own score or crashed, every innocent has its own.

    In short form threads and the event loop write every fourth, for the parent reads all lanes with one code.
    """
    monkeypatch.setattr(slot, "GRACE_S", GRACE_S)
    rollouts = [Rollout("p", "fine", {"row": str(row)}) for row in range(INNOCENTS)]
    for place, number in enumerate(range(0, len(ALL), 4 if options and not full else 1)):
        rollouts.insert(2 * place, Rollout("p", "bad", {"row": str(number)}))

    def score(timeout_s: float) -> list[Outcome]:
        with Runtime([reward(name="r", timeout_s=timeout_s, default=-1.0, **options)(function)], workers=2) as runtime:
            return list(runtime.score(rollouts)["r"])

    outcomes = in_time(score, lambda found: kept_time(rollouts, found), TIMEOUT_S)
    for rollout, outcome in zip(rollouts, outcomes, strict=True):
        _expect_own(rollout, outcome)


def _expect_own(rollout: Rollout, outcome: Outcome) -> None:
    scored = (outcome.status, outcome.score)
    if rollout.completion == "fine":
        assert (Status.SCORED, float(rollout.example["row"])) == scored, outcome
    else:
        assert (Status.SCORED, 0.5) == scored or outcome.cause in (Cause.CRASHED, Cause.TIMEOUT), (rollout, outcome)


@pytest.mark.parametrize(
    "answer",
    [
        "null",
        "7",
        '"words"',
        "[]",
        "[1.0]",
        '{"word": 9}',
        '{"score": null}',
        '{"score": "1.0"}',
        '{"score": true}',
        '{"score": NaN}',
        '{"score": 1e999}',
        f'{{"score": {10**400}}}',
        '{"score": 1.0, "reason": 7}',
        '{"score": 1.0, "metrics": {"m": NaN}}',
        '{"score": 1.0, "metrics": []}',
        '{"score": 1.0, "error": "words"}',
        '{"score": 1.0, "cause": "exception", "error": "words"}',
        '{"score": 1.0, "is_final": true}',
        '{"score": 1.0, "unanswered": [["judge", "empty", "words"]]}',
        '{"unanswered": [["judge", "empty", "words", 1.5]]}',
        '{"unanswered": [["judge", "empty", null, 1]]}',
        '{"reason": 2}',
        '{"metrics": {"m": "x"}}',
        '{"cause": "exception"}',
        '{"cause": "no cause", "error": "words"}',
        '{"cause": "exception", "error": null}',
        '{"cause": ["exception"], "error": "words"}',
        '{"cause": "exception", "error": "words", "is_final": false}',
        '{"cause": "exception", "error": "words", "traceback": 7}',
        '{"rows": 7}',
        '{"rows": []}',
        '{"rows": [{"score": 1.0}]}',
        '{"rows": [{"score": 1.0}, {"score": 1.0}, {"score": 1.0}]}',
        '{"rows": [{"score": 1.0}, {"rows": [{"score": 1.0}]}]}',
        '{"rows": [{"score": 1.0}, {"score": 1.0}], "score": 1.0}',
        "NaN",
        "1e999",
    ],
)
def test_an_answer_that_is_no_finding_counts_as_a_crash(answer: str) -> None:
    """No score is made of it, and no error of ours ends the run."""
    finding = decode(json.loads(answer), _rollouts_of(answer))
    assert (Cause.CRASHED, None, None) == (finding.cause, finding.score, finding.traceback)


@pytest.mark.parametrize("answer", ["1.0", '{"score": 1.0}', "{}", '{"score": 1.0, "reason": "why"}'])
def test_one_score_for_a_group_counts_as_a_crash(answer: str) -> None:
    """A group has a score for each completion, and one that a call wrote over them is nobody's."""
    assert Cause.CRASHED is decode(json.loads(answer), 2).cause


def test_one_number_for_a_group_costs_that_group_alone() -> None:
    """Also where it arrives on the short way that bare numbers take."""
    whole = group_reward(name="whole")(lambda completions: [0.0] * len(completions))
    plan = Plan([whole], [Rollout("p", "x"), Rollout("p", "y")], CallContext(), OutcomeCache())
    settler = Settler(plan, OutcomeCache(), raise_failures=False, listener=None)
    (piece,) = plan.pieces()
    assert [] == settler.take_numbers([(piece.calls[0], 1.0, 0.1)])
    assert [Cause.CRASHED] * 2 == [outcome.cause for outcome in settler.columns()[whole]]


def _rollouts_of(answer: str) -> int:
    return 2 if answer.startswith('{"rows"') else 1


@pytest.mark.parametrize(
    "answer",
    [
        "1.0",
        '{"score": 1}',
        '{"score": 1.0, "reason": "why", "metrics": {"m": 1.0}}',
        '{"score": 1.0, "unanswered": [["judge", "empty", "words", 1]]}',
        "{}",
        '{"reason": "why"}',
        '{"cause": "exception", "error": "words"}',
        '{"cause": "infrastructure", "error": "words", "traceback": "trace", "is_final": true}',
        '{"rows": [{"score": 1.0}, {}]}',
        '{"rows": [{"cause": "exception", "error": "words"}, {"score": 0.0, "metrics": {"m": 0.5}}]}',
    ],
)
def test_every_finding_is_read_as_it_was_said(answer: str) -> None:
    """What our own code says passes the check."""
    encoded = encode(decode(json.loads(answer), _rollouts_of(answer)))
    said = {"score": encoded} if isinstance(encoded, float | int) else json.loads(encoded)
    assert said == ({"score": 1.0} if answer == "1.0" else json.loads(answer))
