"""The texts of a record: each distinct one once, compressed, found again by a digest of it."""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from rewardkit.record.store import RecordConnection
from rewardkit.record.table import Whole

LARGEST_TEXT = 128 << 20  # Bytes of one text, at most: a file of 2 MB can claim to hold one of 2 GB
_MOST_RATIO = 1100  # How often a text may be longer than it is stored; deflate reaches 1032


def digest_of(text: str) -> int:
    """Return a text's digest, a signed integer of 64 bits."""
    return _digest(_encoded(text))


def packed(text: str) -> bytes:
    """Return a text as it is stored."""
    return zlib.compress(_encoded(text), 1)


def unpacked(body: bytes) -> str:
    """Return a stored text; zlib.error if it is damaged or larger than any text, UnicodeDecodeError if not UTF-8."""
    raw = zlib.decompress(body) if len(body) * _MOST_RATIO <= LARGEST_TEXT else _decompress(body)
    return raw.decode("utf-8", "surrogatepass")


def beginning(body: bytes, count: int) -> bytes:
    """Return the first bytes of a stored text, without unpacking the rest; zlib.error if they are damaged."""
    return zlib.decompressobj().decompress(body, count)


def _decompress(body: bytes) -> bytes:
    """Return the bytes of a text that claims to be large; zlib.error where it is larger than any text."""
    unpacker = zlib.decompressobj()
    raw = unpacker.decompress(body, LARGEST_TEXT)
    if not unpacker.eof:
        raise zlib.error(f"cut short, or a text of more than {LARGEST_TEXT:,} bytes")
    return raw


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _digest(raw: bytes) -> int:
    return int.from_bytes(hashlib.blake2b(raw, digest_size=8).digest(), "little", signed=True)


class Packed(NamedTuple):
    """Texts as they are stored."""

    digests: Sequence[int]  # One a text
    bodies: dict[int, bytes]  # The compressed text of each digest


def pack_all(texts: Sequence[str]) -> Packed:
    """Compress texts as they are stored; any thread may do so: it needs no database, and zlib frees the interpreter."""
    digests: list[int] = []
    bodies: dict[int, bytes] = {}
    for text in texts:
        raw = _encoded(text)
        digest = _digest(raw)
        digests.append(digest)
        if digest not in bodies:
            bodies[digest] = zlib.compress(raw, 1)
    return Packed(digests, bodies)


class _DigestRun(NamedTuple):
    digests: Whole  # In order
    ids: Whole  # The ids of their texts


class KnownDigests:
    """The digests of all texts in a file, in memory, 16 bytes each: a few sorted runs, which double in size."""

    def __init__(self) -> None:
        self._runs: list[_DigestRun] = []
        self._last = 0

    def refresh(self, connection: RecordConnection) -> None:
        """Read the digests that this and other processes have added since the last call."""
        rows = connection.execute("SELECT id, pairs FROM digests WHERE id > ? ORDER BY id", (self._last,)).fetchall()
        for number, pairs in rows:
            added = np.frombuffer(pairs, "<i8").reshape(-1, 2)
            self._add(added[:, 0], added[:, 1])
            self._last = number

    def find(self, digests: Whole) -> Whole:
        """Return the texts' ids; 0 where a text is new."""
        ids_of = np.zeros(len(digests), np.int64)
        for run in self._runs:
            places = np.minimum(np.searchsorted(run.digests, digests), len(run.digests) - 1)
            ids_of = np.where(run.digests[places] == digests, run.ids[places], ids_of)
        return ids_of

    def _add(self, digests: Whole, ids: Whole) -> None:
        """Add a run, joined with those before it that are no longer."""
        while self._runs and len(self._runs[-1].digests) <= len(digests):
            last = self._runs.pop()
            digests, ids = np.concatenate((last.digests, digests)), np.concatenate((last.ids, ids))
        order = np.argsort(digests, kind="stable")
        self._runs.append(_DigestRun(digests[order], ids[order]))


class Texts:
    """The texts of a record, each distinct one once, as one open transaction adds to them and ends with ``commit``.

    A text that two processes add at the same moment may be stored twice, in a database in which they need not wait for
    each other; either is as good as the other.
    """

    def __init__(self, connection: RecordConnection) -> None:
        self._connection = connection
        self._known: KnownDigests = connection.cache.setdefault("texts", KnownDigests())
        self._unnoted: dict[int, int] = connection.cache.setdefault("unnoted", {})  # Ids of added texts by digest

    def ids(self, texts: Sequence[str]) -> list[int]:
        """Return the ids of texts, which are stored where they are new."""
        return self.store(pack_all(texts)) if texts else []

    def store(self, texts: Packed) -> list[int]:
        """Store those compressed texts that are new; return the ids of all, in their order."""
        self._known.refresh(self._connection)
        wanted = np.fromiter(texts.bodies, np.int64, len(texts.bodies))
        ids = self._known.find(wanted)
        for index in np.flatnonzero(ids == 0).tolist():
            ids[index] = self._unnoted.get(int(wanted[index]), 0)
        new = np.flatnonzero(ids == 0)
        if len(new):
            ids[new] = self._connection.reserve("text", len(new))
            bodies = (texts.bodies[digest] for digest in wanted[new].tolist())
            self._connection.insert_all("text", list(zip(ids[new].tolist(), bodies, strict=True)))
            self._unnoted.update(zip(wanted[new].tolist(), ids[new].tolist(), strict=True))
            if self._connection.is_alone:
                self.note()
        ids_of = dict(zip(wanted.tolist(), ids.tolist(), strict=True))
        return [ids_of[digest] for digest in texts.digests]

    def note(self) -> None:
        """Publish the digests of the added texts to other writers, who read in order: only while nobody else writes."""
        if self._unnoted:
            pairs = np.array(list(self._unnoted.items()), "<i8").tobytes()
            self._connection.insert("digests", {"pairs": pairs})
            self._unnoted.clear()


def alone(connection: RecordConnection) -> None:
    """Wait until nobody else writes to the record, and note the texts that this transaction has added before."""
    connection.alone()
    Texts(connection).note()
