"""Limits of isolated code."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, fields, replace

LOAD_TIMEOUT_S = 60.0
"""Seconds that a worker may take to load the rewards."""
DEFAULT_MEMORY_BYTES = 4 << 30
"""Memory of one worker, as the kernel counts private data (RLIMIT_DATA)."""

MAX_SECONDS = 1_000_000  # the longest time, about twelve days: what the kernel's calls can count in milliseconds
MAX_COUNT = 1 << 50  # the largest of the other limits


@dataclass(frozen=True, slots=True)
class Limits:
    """What one evaluation in a jail may use. The network is always off.

    Attributes:
        timeout_s: Wall-clock seconds.
        cpu_s: Seconds of processor time, rounded up to whole ones; ``None`` for one more than ``timeout_s`` is,
            so that a busy loop is ended by the clock.
        memory_bytes: Address space (RLIMIT_AS). What the profile has imported counts: about 15 MB for
            ``python``, 135 MB for ``numpy``.
        output_bytes: Standard output and standard error, each; also the values given back.
        processes: Processes at once; more than 1 only at level ``strict``.
        open_files: Open descriptors.
        file_bytes: The scratch directory's files together, and each of them.
    """

    timeout_s: float = 10.0
    cpu_s: float | None = None
    memory_bytes: int = 512 << 20
    output_bytes: int = 1 << 20
    processes: int = 1
    open_files: int = 64
    file_bytes: int = 16 << 20

    def __post_init__(self) -> None:
        """Check every limit.

        Raises:
            ValueError: A limit is not a number in its range; the message names it and its value.
        """
        for field in fields(self):
            value = getattr(self, field.name)
            if field.name == "cpu_s" and value is None:
                continue
            most = MAX_SECONDS if field.name.endswith("_s") else MAX_COUNT
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= most:
                raise ValueError(f"{field.name}={value!r}: expected a number above 0, and at most {most:,}")
            if not field.name.endswith("_s") and not isinstance(value, int):
                raise ValueError(f"{field.name}={value!r}: expected a whole number")

    @property
    def whole_cpu_s(self) -> int:
        """Seconds of processor time as the kernel counts them."""
        return math.ceil(self.timeout_s) + 1 if self.cpu_s is None else math.ceil(self.cpu_s)

    def until(self, deadline: float) -> Limits:
        """Return these limits with the seconds that are left until a deadline on the monotonic clock, at least 0.001.

        They are for an evaluation that goes on in a new process.
        """
        return replace(self, timeout_s=max(0.001, deadline - time.monotonic()))
