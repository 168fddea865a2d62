"""How a batch's data reaches workers: with the message where it is small, else in a file that all of them map."""

from __future__ import annotations

import os

import pytest

from sandbox.workers.wire import BatchFile, BatchView

SMALL, LARGE = b"x" * 1_000, b"y" * 300_000


def _open_files() -> int:
    return len(os.listdir("/proc/self/fd"))


def test_a_small_batch_needs_no_file() -> None:
    """Its segments travel with the message that asks for them, and none but those."""
    before = _open_files()
    batch = BatchFile(3)
    batch.append([b"a", b"b"])
    batch.append([SMALL])
    assert {0: b"a", 2: SMALL} == batch.to_send([2, 0])
    assert before == _open_files()
    assert [b"b"] == batch.read([1])
    batch.close()
    assert (before, [], None, -1) == (_open_files(), batch.read([0]), batch.to_send([0]), batch.for_workers())


@pytest.mark.parametrize(
    "pieces", [[[SMALL, LARGE]], [[SMALL], [LARGE]], [[LARGE], [SMALL]]], ids=["at once", "grown", "grows"]
)
def test_a_large_batch_is_a_file(pieces: list[list[bytes]]) -> None:
    """Each segment is read there as it was, whenever it came."""
    segments = [segment for piece in pieces for segment in piece]
    batch = BatchFile(len(segments))
    for piece in pieces:
        batch.append(piece)
    assert batch.to_send([0]) is None
    view = BatchView(os.dup(batch.for_workers()), None)
    assert segments == [bytes(view.segment(index)) for index in range(len(segments))]
    assert segments == batch.read(range(len(segments)))
    view.close()
    batch.close()


def test_segments_too_large_for_a_message_are_read_from_a_file() -> None:
    """A worker that was stopped reads no message, and a long one would hold up its parent."""
    batch = BatchFile(200)
    batch.append([SMALL] * 200)
    assert [*range(60)] == list(batch.to_send(range(60)) or ())
    assert batch.to_send(range(200)) is None
    view = BatchView(os.dup(batch.for_workers()), None)
    assert SMALL == bytes(view.segment(199))
    assert batch.to_send([0]) is None
    view.close()
    batch.close()


def test_its_last_holder_closes_it() -> None:
    """A job that shares a batch can still read it when the other one has ended."""
    batch = BatchFile(1)
    batch.append([b"a"])
    shared = batch.share()
    batch.close()
    assert {0: b"a"} == shared.to_send([0])
    shared.close()
    shared.append([b"b"])
    assert shared.to_send([0]) is None
