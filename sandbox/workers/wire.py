"""What passes between the parent, the warden and the workers.

Down, from the parent: frames of pickled tuples, because the parent is trusted. Up: frames and records of JSON; nothing
that a worker wrote is ever unpickled, and all of it is bounded and checked: a call may write to any descriptor of its
worker. A batch's data travels once, as one anonymous file that every worker maps and none can write to.
"""

from __future__ import annotations

import array
import contextlib
import ctypes
import errno
import fcntl
import json
import math
import mmap
import os
import pickle
import resource
import socket
import struct
import threading
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

_LENGTH = struct.Struct("<I")
_MAX_FRAME_BYTES = 1 << 20  # of a worker's message
_MAP_FIXED = 0x10  # on Linux and macOS
_MAP_NORESERVE = getattr(mmap, "MAP_NORESERVE", 0)
_READ_BYTES = 1 << 16  # more is a mapping of memory for each read, which takes as long as all else of it
_MAX_FDS = 8
_PIECES = 512  # below IOV_MAX everywhere
_LARGE_BYTES = 4 << 20
RECORDS_BYTES = 1 << 28  # size of a results file; memory is taken only for what is written
_MAX_RECORD_BYTES = 1 << 26
_PIECE_BYTES = 1 << 16
_SMALL_BATCH_BYTES = 1 << 18  # up to which a batch may be without a file
_MESSAGE_BYTES = 1 << 16  # of segments in one message: what a socket takes though nobody reads
_POPULATE = getattr(mmap, "MAP_POPULATE", 0)
LOW_DESCRIPTORS = 32  # lower numbers are /dev/null in a worker: code may write to one that was its log file elsewhere
_OWN_DESCRIPTORS_FROM = 400  # a worker's own descriptors have numbers above those of a reward's files


class MalformedError(ValueError):
    """A worker's own code does not send such data: some call wrote it."""


@contextlib.contextmanager
def naming_open_files() -> Iterator[None]:
    """Have the error for too many open files name the limit."""
    try:
        yield
    except OSError as error:
        if error.errno != errno.EMFILE:
            raise
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        reason = f"this process may have {soft} files open, and the workers need more; raise it with ulimit -n"
        raise OSError(errno.EMFILE, f"{reason} (up to {hard}), or have fewer workers") from error


def own_descriptors_from() -> int:
    """Return the lowest number for a worker's own descriptors: 400, or less where few files may be open."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return _OWN_DESCRIPTORS_FROM if soft == resource.RLIM_INFINITY else min(_OWN_DESCRIPTORS_FROM, soft // 2)


def raise_descriptor(descriptor: int) -> int:
    """Move a descriptor above those of a reward's own files."""
    own = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, own_descriptors_from())
    os.close(descriptor)
    return own


@naming_open_files()
def anonymous_file(name: str, size: int = 0) -> int:
    """Return the descriptor of a new file in memory that no other process can name.

    Its size is sealed, where possible, because a worker that cut it short would end its parent; without one it grows.
    """
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create(name, os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        if size:
            os.ftruncate(descriptor, size)
            fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL)
        return descriptor
    import tempfile  # slow to import, and only needed where there is no memfd_create

    with tempfile.TemporaryFile() as file:
        if size:
            os.ftruncate(file.fileno(), size)
        return os.dup(file.fileno())


def read_only(descriptor: int) -> int:
    """Return a descriptor through which a file in memory can only be read, where the system can give one."""
    with contextlib.suppress(OSError):
        return os.open(f"/proc/self/fd/{descriptor}", os.O_RDONLY | os.O_CLOEXEC)
    with naming_open_files():
        return os.dup(descriptor)


def map_shared(descriptor: int, size: int, *, writable: bool) -> mmap.mmap:
    """Map a file without keeping a descriptor of it.

    Python keeps a duplicate under a low number, which a reward may take for a log file and write over messages. So
    Python maps anonymous memory, and the file is mapped over that.
    """
    block = mmap.mmap(-1, size, flags=mmap.MAP_SHARED | mmap.MAP_ANONYMOUS | _MAP_NORESERVE)
    protection = mmap.PROT_READ | (mmap.PROT_WRITE if writable else 0)
    flags = mmap.MAP_SHARED | _MAP_FIXED | (0 if writable else _POPULATE)
    address = ctypes.addressof(ctypes.c_char.from_buffer(block))
    if _libc.mmap(address, size, protection, flags, descriptor, 0) != address:
        raise OSError(ctypes.get_errno(), "cannot map shared memory")
    return block


_libc = ctypes.CDLL(None, use_errno=True)
_libc.mmap.restype = ctypes.c_void_p
_libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]


def encode_json(value: object) -> str:
    """Return a value as JSON, by what no call can patch: classes of the library have methods in Python."""
    return "".join(_json_pieces(value, 0))


_json_pieces = json.encoder.c_make_encoder(  # type: ignore[attr-defined]  # the one of json.dumps
    None, json.JSONEncoder().default, json.encoder.encode_basestring_ascii, None, ": ", ", ", False, False, True
)


class Channel:
    """Frames over a stream socket, with descriptors where wanted; those that come may have ``most_bytes`` bytes."""

    def __init__(self, sock: socket.socket, most_bytes: int | None = None) -> None:
        self.sock = sock
        self._most_bytes = most_bytes
        self._buffer = bytearray()
        self._descriptors: list[int] = []

    def fileno(self) -> int:
        return self.sock.fileno()

    def send(self, body: bytes, descriptors: Sequence[int] = ()) -> None:
        """Send one frame with descriptors, blocking; raise ``OSError`` if the other side is gone or reads nothing."""
        data = _LENGTH.pack(len(body)) + body
        if descriptors:
            sent = socket.send_fds(self.sock, [data], list(descriptors))
            data = data[sent:]
        if data:
            self.sock.sendall(data)

    def send_pickle(self, message: tuple[Any, ...], descriptors: Sequence[int] = ()) -> None:
        self.send(pickle.dumps(message, protocol=5), descriptors)

    def send_json(self, message: list[Any]) -> None:
        self.send(encode_json(message).encode())

    def receive(self) -> Iterator[bytes]:
        """Yield the frames that a blocking read completes; raise ``EOFError`` or ``MalformedError``."""
        data, descriptors, _, _ = socket.recv_fds(self.sock, _READ_BYTES, _MAX_FDS)
        self._descriptors.extend(descriptors)
        if not data:
            raise EOFError
        self._buffer += data
        while len(self._buffer) >= _LENGTH.size:
            (length,) = _LENGTH.unpack_from(self._buffer)
            if self._most_bytes is not None and length > self._most_bytes:
                raise MalformedError(f"a frame of {length:,} bytes")
            if len(self._buffer) < _LENGTH.size + length:
                return
            body = bytes(self._buffer[_LENGTH.size : _LENGTH.size + length])
            del self._buffer[: _LENGTH.size + length]
            yield body

    def take_descriptors(self, count: int) -> list[int]:
        """Return the next descriptors that came with the frames read so far."""
        descriptors, self._descriptors = self._descriptors[:count], self._descriptors[count:]
        return descriptors

    def close(self) -> None:
        self.sock.close()


@naming_open_files()
def channel_pair(send_s: int = 5) -> tuple[Channel, socket.socket]:
    """Return our channel, which waits ``send_s`` seconds for a peer that does not read, and the peer's socket."""
    ours, theirs = socket.socketpair()
    ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("@ll", send_s, 0))
    return Channel(ours, _MAX_FRAME_BYTES), theirs


class BatchFile:
    """A batch's segments in one anonymous file: count, offsets, then the segments; its last holder closes it.

    It may grow while workers read, through :meth:`for_workers`, a descriptor by which nothing can be written. A small
    batch has no file until a worker needs one: making, mapping and closing it takes longer than a few short calls.
    """

    def __init__(self, count: int) -> None:
        self._lock = threading.Lock()  # protects the descriptor against being closed and used anew while written to
        self._holders = 1
        self._count = count
        self._base = 8 + 8 * (count + 1)
        self._ends = array.array("Q", [0])  # where each segment ends, counted from the base
        self._small: list[bytes] | None = []  # the segments while there is no file; ``None`` with one, or once closed
        self._descriptor = self._read_only = -1

    def append(self, segments: Sequence[bytes]) -> None:
        """Take the next segments; do nothing if the batch is closed already."""
        first = len(self._ends)
        end = self._ends[-1]
        for segment in segments:
            end += len(segment)
            self._ends.append(end)
        with self._lock:
            if self._small is not None:
                self._small += segments
                if end > _SMALL_BATCH_BYTES:
                    self._make_file()
            elif self._descriptor >= 0:
                self._write(segments, first)

    def _make_file(self) -> None:
        """Move the segments that have come into a file."""
        self._descriptor = anonymous_file("batch")
        self._read_only = read_only(self._descriptor)
        os.write(self._descriptor, struct.pack("<Q", self._count))
        os.ftruncate(self._descriptor, self._base)
        os.lseek(self._descriptor, self._base, os.SEEK_SET)
        segments, self._small = self._small or [], None
        self._write(segments, 1)

    def _write(self, segments: Sequence[bytes], first: int) -> None:
        """Write segments behind those that are there, and where each ends, from the ``first`` end on."""
        _write_all(self._descriptor, segments)
        os.pwrite(self._descriptor, self._ends[first:].tobytes(), 8 + 8 * first)

    def for_workers(self) -> int:
        """Return the descriptor by which workers read, or a negative number if the batch is closed."""
        with self._lock:
            if self._small is not None:
                self._make_file()
            return self._read_only

    def to_send(self, indices: Iterable[int]) -> dict[int, bytes] | None:
        """Return segments by index where they are few bytes and in no file, so that they can travel with a message."""
        with self._lock:
            if self._small is None:
                return None
            segments = {index: self._small[index] for index in indices}
        return segments if sum(map(len, segments.values())) <= _MESSAGE_BYTES else None

    def size_of(self, index: int) -> int:
        return self._ends[index + 1] - self._ends[index]

    def read(self, indices: Sequence[int]) -> list[bytes]:
        """Return segments that were appended, to be sent to another machine; none if the file is closed already."""
        with self._lock:
            if self._small is not None:
                return [self._small[i] for i in indices]
            if self._descriptor < 0:
                return []
            return [os.pread(self._descriptor, self.size_of(i), self._base + self._ends[i]) for i in indices]

    def share(self) -> BatchFile:
        """Return the file for one more job, which closes it as well."""
        with self._lock:
            self._holders += 1
        return self

    def close(self) -> None:
        """Let go of the file; workers that mapped it keep it until they drop it."""
        with self._lock:
            self._holders -= 1
            if self._holders > 0:
                return
            self._small = None
            if self._descriptor >= 0:
                os.close(self._descriptor)
                os.close(self._read_only)
                self._descriptor = self._read_only = -1


def _write_all(descriptor: int, pieces: Sequence[bytes]) -> None:
    """Write pieces one after another, without copying them together first."""
    for start in range(0, len(pieces), _PIECES):
        batch = pieces[start : start + _PIECES]
        size, written = sum(map(len, batch)), os.writev(descriptor, batch)
        if written < size:  # the kernel takes at most 2 GiB at once
            rest = memoryview(b"".join(batch))[written:]
            while rest:
                rest = rest[os.write(descriptor, rest) :]


class BatchView:
    """A worker's view of a :class:`BatchFile`, with what is common to its calls."""

    def __init__(self, descriptor: int, common: object) -> None:
        self.common = common
        self._descriptor = descriptor
        (count,) = struct.unpack("<Q", os.pread(descriptor, 8, 0))
        self._base = 8 + 8 * (count + 1)
        self._map()

    def _map(self) -> None:
        self._file = map_shared(self._descriptor, os.fstat(self._descriptor).st_size, writable=False)
        self._view = memoryview(self._file).toreadonly()
        with self._view[8 : self._base] as table, table.cast("Q") as offsets:
            self._offsets = [self._base + offset for offset in offsets]
        self._mapped = len(self._file)

    def segment(self, index: int) -> memoryview:
        offsets = self._offsets
        end = offsets[index + 1]
        if end == self._base or end > self._mapped:  # the file has grown since; what is out keeps the old mapping
            self._map()
            offsets = self._offsets
            end = offsets[index + 1]
        return self._view[offsets[index] : end]

    def close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
        self._view.release()
        self._file.close()


class RecordWriter:
    """The worker's end of its results file: JSON lines in shared memory, which outlive the worker.

    Zeros follow the last record, so one that is being written has a zero in it, or no end of line yet.
    """

    def __init__(self, descriptor: int) -> None:
        self._lock = threading.Lock()  # protects the end
        self._end = 0
        self._map = map_shared(descriptor, RECORDS_BYTES, writable=True)

    def write(self, record: bytes) -> None:
        """Add a record; drop it if there is no room for it."""
        with self._lock:
            end = self._end + len(record)
            if end < len(self._map):
                self._map[self._end : end] = record
                self._end = end

    def restart(self) -> None:
        """Begin again with an empty file."""
        with self._lock:
            if hasattr(mmap, "MADV_REMOVE"):
                self._map.madvise(mmap.MADV_REMOVE)  # the memory is given back, and zeros are read
            else:
                self._map[: self._end] = bytes(self._end)
            self._end = 0


Record = tuple[int, float, str, Any]
"""One result, as a worker wrote it: the call's ticket, the seconds it ran, what it printed, and the target's answer.

The answer is ``None`` where the call's time was up, and one of the three texts below where the lane says so."""

CANCELLED, DISTURBED, BESET = "cancelled", "disturbed", "beset"
"""Answers that say: the call was cancelled; what others left may have changed its result; its time was up while the
collector ran what others left."""


class RecordReader:
    """The parent's end of a worker's results file: complete JSON lines, in the order written."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._position = 0

    def read(self) -> list[Record]:
        """Return the records completed since the last call; raise ``MalformedError`` for what is not a record."""
        data = bytearray()
        while piece := os.pread(self._descriptor, _PIECE_BYTES, self._position + len(data)):
            data += piece
            if piece[-1] == 0:
                break
            if len(data) > _MAX_RECORD_BYTES and data.find(b"\n") < 0:
                raise MalformedError(f"a record of more than {_MAX_RECORD_BYTES:,} bytes")
        zero = data.find(0)
        complete = data.rfind(b"\n", 0, None if zero < 0 else zero) + 1
        if not complete:
            return []
        self._position += complete
        lines = parse_json(b"[" + data[: complete - 1].replace(b"\n", b",") + b"]")
        if not all(map(_is_record, lines)):
            raise MalformedError("a line that is not a record")
        records: list[Record] = lines
        return records

    @property
    def large(self) -> bool:
        """Whether it is time to have the worker empty the file."""
        return self._position > _LARGE_BYTES

    def restart(self) -> None:
        """Read from the beginning again: the worker has emptied the file."""
        self._position = 0


def parse_json(data: bytes) -> Any:
    """Return what JSON from a worker stands for; raise ``MalformedError`` for data that is not JSON."""
    try:
        return json.loads(data)
    except (ValueError, RecursionError) as error:  # nested too deeply is the second
        raise MalformedError(str(error)) from None


def _is_record(line: object) -> bool:
    if type(line) is not list or len(line) != 4:
        return False
    ticket, duration_s, logs, _ = line
    return type(ticket) is int and type(duration_s) is float and 0.0 <= duration_s < math.inf and type(logs) is str
