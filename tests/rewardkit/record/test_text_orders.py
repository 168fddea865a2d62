"""Completions are sorted by how their texts begin, by epoch and by split, whatever stands in them."""

from __future__ import annotations

import contextlib
import errno
import random
from collections.abc import Sequence
from typing import Any

import pytest

from rewardkit.errors import RecordError
from rewardkit.record import text_orders
from rewardkit.record.conditions import conditions_of
from rewardkit.record.reader import RunReader
from rewardkit.record.recorded_numbers import KEY_BYTES
from rewardkit.record.recorder import Recorder
from rewardkit.record.selection import RunTable, Selection
from rewardkit.record.values import Completion
from rewardkit.score_batch import ScoreBatch
from rewardkit.types import Cause, Outcome, Rollout, Status

BEGINNINGS = (
    "",
    " ",
    "a",
    "Z",
    "\x01",
    "\x02",
    "\N{ZERO WIDTH SPACE}",
    "\N{PILE OF POO}",
    "\ud800",
    "é",
    "\uffff",
    "x" * 300,
)


def draw_text(draw: random.Random) -> str:
    """Return a text of hostile and of common beginnings."""
    return "".join(draw.choices(BEGINNINGS, k=draw.randint(0, 3))) + draw.choice(["", "b", "B", "\n"])


def draw_batch(draw: random.Random, size: int = 12) -> ScoreBatch:
    """Return a batch of texts, messages and reasons."""
    texts: list[Any] = [draw_text(draw) for _ in range(size)]
    texts[0] = [{"role": "user", "content": draw_text(draw)}, {"role": "assistant", "content": "c"}]
    rollouts = [Rollout(draw_text(draw), text) for text in texts]
    outcomes = [
        draw.choice([
            Outcome(Status.SCORED, 1.0, version="1" * 12, reason=draw_text(draw)),
            Outcome(Status.FAILED, None, version="1" * 12, cause=Cause.EXCEPTION, error=draw_text(draw)),
        ])
        for _ in texts
    ]  # fmt: skip
    return ScoreBatch(rollouts, {"judge": outcomes}, {"judge": 1.0})


def key_of(text: Any) -> bytes | None:
    """Return by what a text is sorted."""
    if text is None or isinstance(text, str):
        return None if text is None else text.encode("utf-8", "surrogatepass")[:KEY_BYTES].rstrip(b"\0")
    return "\n".join(message["content"] for message in text if message["content"]).encode("utf-8", "surrogatepass")[
        :KEY_BYTES
    ]


KEYS = {
    "completion": lambda row: key_of(row.completion),
    "prompt_text": lambda row: key_of(row.prompt),
    "judge.reason": lambda row: key_of(row.outcomes["judge"].reason),
    "judge.error": lambda row: key_of(row.outcomes["judge"].error),
    "epoch": lambda row: row.epoch,
    "split": lambda row: row.split,
}


def in_order(rows: Sequence[Completion], name: str, *, down: bool) -> list[int]:
    """Return the numbers of completions in the order of Python's own sort; those without a value stand last."""
    has = [row for row in rows if KEYS[name](row) is not None]
    ordered = sorted(has, key=KEYS[name])
    if down:
        ordered = [
            row for key in dict.fromkeys(map(KEYS[name], ordered[::-1])) for row in has if KEYS[name](row) == key
        ]
    return [row.id for row in ordered] + [row.id for row in rows if KEYS[name](row) is None]


def test_texts_sort_as_python_sorts_them(place: Any) -> None:
    """By their characters, upwards and downwards, on both splits; equal ones in the order of recording."""
    draw = random.Random(5)
    with Recorder(place / "one") as recorder:
        for step in range(8):
            recorder.record(
                draw_batch(draw), step=step, epoch=None if step == 3 else draw.choice([0.0, 0.5, 1.5]),
                split=draw.choice(["train", "eval"]),
            )  # fmt: skip
    with RunReader(place / "one") as run:
        rows = list(run.completions())
        for name in KEYS:
            for down in (False, True):
                own = Selection(run, None, [], f"-{name}" if down else name)
                assert (name, down, in_order(rows, name, down=down)) == (name, down, own.ids.tolist())


def test_an_order_grows_with_the_run(place: Any) -> None:
    """What is new stands where it belongs, and a reading in parts comes to the same; a bound leaves new ones out."""
    draw = random.Random(6)
    table = RunTable()
    with contextlib.closing(Recorder(place / "one")) as recorder:
        for step in range(6):
            recorder.record(draw_batch(draw), step=step)
            recorder.flush()
            with RunReader(place / "one") as run:
                while table.update(run, ["judge.reason", "completion"], 0.0).unfinished:
                    pass
                rows = list(run.completions())
                for name in ("completion", "judge.reason"):
                    own = Selection(run, "train", [], name, table=table)
                    assert in_order(rows, name, down=False) == own.ids.tolist()
                early = Selection(run, "train", conditions_of("id>1"), "-completion", table=table, until=9)
                assert in_order(rows[1:9], "completion", down=True) == early.ids.tolist()


def test_two_orders_stay_in_files(place: Any) -> None:
    """Those that were asked for last; the file of another is closed."""
    with Recorder(place / "one") as recorder:
        recorder.record(draw_batch(random.Random(1)), step=0)
    with RunReader(place / "one") as run:
        table = RunTable()
        for name in ("completion", "prompt_text", "judge.reason", "judge.error"):
            table.update(run, [name])
        assert ["judge.reason", "judge.error"] == [field.name for field in table.texts._orders]


def test_a_full_disk_is_said_in_a_line(place: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the folder that can be named instead."""

    class FullFile:
        """A file on a full disk."""

        def write(self, body: bytes) -> int:
            raise OSError(errno.ENOSPC, "No space left on device")

        def close(self) -> None:
            """Do nothing."""

    monkeypatch.setattr(text_orders.tempfile, "TemporaryFile", FullFile)
    with Recorder(place / "one") as recorder:
        recorder.record(draw_batch(random.Random(1)), step=0)
    with RunReader(place / "one") as run, pytest.raises(RecordError) as refusal:
        Selection(run, "train", [], "completion")
    assert "sort by completion: a temporary file of" in str(refusal.value)
    assert "No space left on device; TMPDIR names another folder for it" in str(refusal.value)
