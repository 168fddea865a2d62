"""The errors that the sandbox raises: mistakes of the caller and faults of its own.

    SandboxError
    ├── WorkerStartError          worker processes cannot be started, or cannot load what they are to run
    ├── PoolClosedError           a pool or sandbox is used after it was closed, or in a forked child
    ├── SandboxUnavailableError   this machine does not give the isolation that was asked for
    ├── NotPlainError             a value is not one that may enter or leave a jail
    └── CheckError                the tests of a completion are at fault, not the completion

What the isolated code did is never one of these; it is a :class:`~sandbox.workers.pool.CallResult` or an
:class:`~sandbox.results.ExecutionResult`.
"""

from __future__ import annotations


class SandboxError(Exception):
    """The root of every error that the sandbox raises."""


class WorkerStartError(SandboxError):
    """Worker processes cannot be started or cannot load their targets. The message carries the worker's words."""


class PoolClosedError(SandboxError):
    """A pool is used after it was closed, or in a forked child of the process that made it."""


class SandboxUnavailableError(SandboxError):
    """This machine does not give the isolation that was asked for. The message says what failed and what to do."""


class NotPlainError(SandboxError, ValueError):
    """A value is not plain: only Python's literals may enter or leave a jail."""


class CheckError(SandboxError, ValueError):
    """The tests of a completion are at fault, not the completion. Mend the example that they are of."""
