"""What passes between the parent, the warden and the workers.

Down, from the parent: frames of pickled tuples, for the parent is trusted. Up: frames and records
of JSON; nothing that a worker wrote is ever unpickled. A batch's data travels once, as one anonymous
file that every worker maps.
"""

from __future__ import annotations

import array
import json
import mmap
import os
import pickle
import socket
import struct
import threading
from collections.abc import Iterator, Sequence
from typing import Any

_LENGTH = struct.Struct("<I")
_READ_BYTES = 1 << 18
_MAX_FDS = 8
_PIECES = 512  # below IOV_MAX everywhere
_LARGE_BYTES = 4 << 20
_RECORDS_BYTES = 1 << 20  # of a results file at first; memory is taken only for what is written
_PIECE_BYTES = 1 << 16
_POPULATE = getattr(mmap, "MAP_POPULATE", 0)


def anonymous_file(name: str) -> int:
    """Gives the descriptor of a new file in memory that no other process can name."""
    if hasattr(os, "memfd_create"):
        return os.memfd_create(name, os.MFD_CLOEXEC)
    import tempfile  # slow to import, and only needed where there is no memfd_create

    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())


class Channel:
    """Frames over a stream socket, with descriptors where wanted."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self._buffer = bytearray()
        self._descriptors: list[int] = []

    def fileno(self) -> int:
        """The socket's descriptor, for selectors."""
        return self.sock.fileno()

    def send(self, body: bytes, descriptors: Sequence[int] = ()) -> None:
        """Send one frame and the descriptors that go with it, blocking until the kernel has it."""
        data = _LENGTH.pack(len(body)) + body
        if descriptors:
            sent = socket.send_fds(self.sock, [data], list(descriptors))
            data = data[sent:]
        if data:
            self.sock.sendall(data)

    def send_pickle(self, message: tuple[Any, ...], descriptors: Sequence[int] = ()) -> None:
        """Send a message downwards."""
        self.send(pickle.dumps(message, protocol=5), descriptors)

    def send_json(self, message: list[Any]) -> None:
        """Send a message upwards."""
        self.send(json.dumps(message).encode())

    def receive(self) -> Iterator[bytes]:
        """Reads what has come, blocking for at least a byte, and gives the frames completed by it.

        Raises:
            EOFError: The other side is gone.
        """
        data, descriptors, _, _ = socket.recv_fds(self.sock, _READ_BYTES, _MAX_FDS)
        self._descriptors.extend(descriptors)
        if not data:
            raise EOFError
        self._buffer += data
        while len(self._buffer) >= _LENGTH.size:
            (length,) = _LENGTH.unpack_from(self._buffer)
            if len(self._buffer) < _LENGTH.size + length:
                return
            body = bytes(self._buffer[_LENGTH.size : _LENGTH.size + length])
            del self._buffer[: _LENGTH.size + length]
            yield body

    def take_descriptors(self, count: int) -> list[int]:
        """Gives the next descriptors that came with the frames read so far."""
        taken, self._descriptors = self._descriptors[:count], self._descriptors[count:]
        return taken

    def close(self) -> None:
        """Close the socket."""
        self.sock.close()


def channel_pair() -> tuple[Channel, socket.socket]:
    """Gives this side's channel and the socket for the other side."""
    ours, theirs = socket.socketpair()
    return Channel(ours), theirs


class BatchFile:
    """A batch's segments in one anonymous file: count, offsets, then the segments back to back.

    Segments may be appended while workers read the earlier ones.

    Args:
        count: Segments that there will be.
    """

    def __init__(self, count: int) -> None:
        self._lock = threading.Lock()  # protects the descriptor against being closed and used anew while written to
        self._written = 0
        self._end = 0
        self.descriptor = anonymous_file("batch")
        os.write(self.descriptor, struct.pack("<Q", count))
        base = 8 + 8 * (count + 1)
        os.ftruncate(self.descriptor, base)
        os.lseek(self.descriptor, base, os.SEEK_SET)

    def append(self, segments: Sequence[bytes]) -> None:
        """Write the next segments; nothing, where the file is closed already."""
        offsets = array.array("Q")
        for segment in segments:
            self._end += len(segment)
            offsets.append(self._end)
        with self._lock:
            if self.descriptor >= 0:
                _write_all(self.descriptor, segments)
                os.pwrite(self.descriptor, offsets.tobytes(), 8 + 8 * (self._written + 1))
        self._written += len(segments)

    def close(self) -> None:
        """Let go of the file; workers that mapped it keep it until they drop it."""
        with self._lock:
            if self.descriptor >= 0:
                os.close(self.descriptor)
                self.descriptor = -1


def _write_all(descriptor: int, pieces: Sequence[bytes]) -> None:
    """Write pieces one after another, without copying them together first."""
    for start in range(0, len(pieces), _PIECES):
        some = pieces[start : start + _PIECES]
        wanted, written = sum(map(len, some)), os.writev(descriptor, some)
        if written < wanted:  # the kernel takes at most 2 GiB at once
            rest = memoryview(b"".join(some))[written:]
            while rest:
                rest = rest[os.write(descriptor, rest) :]


class BatchView:
    """A worker's view of a :class:`BatchFile`, with what is common to its calls."""

    def __init__(self, descriptor: int, common: Any) -> None:
        self.common = common
        self._descriptor = descriptor
        (count,) = struct.unpack("<Q", os.pread(descriptor, 8, 0))
        self._base = 8 + 8 * (count + 1)
        self._map()

    def _map(self) -> None:
        self._file = mmap.mmap(self._descriptor, 0, flags=mmap.MAP_SHARED | _POPULATE, prot=mmap.PROT_READ)
        self._view = memoryview(self._file)
        with self._view[8 : self._base] as table, table.cast("Q") as offsets:
            self._offsets = [self._base + offset for offset in offsets]
        self._mapped = len(self._file)

    def segment(self, index: int) -> memoryview:
        """Gives one segment's bytes, not copied."""
        offsets = self._offsets
        end = offsets[index + 1]
        if end == self._base or end > self._mapped:  # the file has grown since; what is out keeps the old mapping
            self._map()
            offsets = self._offsets
            end = offsets[index + 1]
        return self._view[offsets[index] : end]

    def close(self) -> None:
        """Let go of the memory."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
        self._view.release()
        self._file.close()


class RecordWriter:
    """The worker's end of its results file: JSON lines in shared memory, which outlive the worker.

    What follows the last record is zeros; so a record that is being written, in whatever order its bytes
    are seen, has a zero in it or no end of line yet.
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._lock = threading.Lock()  # protects the place to write at, and the file's size
        self._end = 0
        os.ftruncate(descriptor, _RECORDS_BYTES)
        self._map = mmap.mmap(descriptor, _RECORDS_BYTES)

    def write(self, record: bytes) -> None:
        """Add a record."""
        with self._lock:
            end = self._end + len(record)
            if end >= len(self._map):
                self._map.resize(2 * end)
            self._map[self._end : end] = record
            self._end = end

    def restart(self) -> None:
        """Begin again with an empty file."""
        with self._lock:
            os.ftruncate(self._descriptor, 0)
            os.ftruncate(self._descriptor, len(self._map))
            self._end = 0


class RecordReader:
    """The parent's end of a worker's results file: complete JSON lines, in the order written."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._position = 0

    def read(self) -> list[Any]:
        """Gives the records completed since the last call.

        Raises:
            ValueError: The file holds what is no record; the worker is not to be trusted further.
        """
        data = bytearray()
        while piece := os.pread(self._descriptor, _PIECE_BYTES, self._position + len(data)):
            data += piece
            if piece[-1] == 0:
                break
        zero = data.find(0)
        complete = data.rfind(b"\n", 0, None if zero < 0 else zero) + 1
        if not complete:
            return []
        self._position += complete
        records: list[Any] = json.loads(b"[" + data[: complete - 1].replace(b"\n", b",") + b"]")
        return records

    @property
    def large(self) -> bool:
        """Whether it is time to have the worker empty the file."""
        return self._position > _LARGE_BYTES

    def restart(self) -> None:
        """Read from the beginning again: the worker has emptied the file."""
        self._position = 0
