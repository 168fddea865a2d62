"""The errors that the sandbox raises: mistakes of the caller and faults of its own.

    SandboxError
    ├── WorkerStartError     worker processes cannot be started, or cannot load what they are to run
    └── PoolClosedError      a pool is used after it was closed, or in a forked child

What the isolated code did is never one of these; it is a :class:`~sandbox.workers.pool.CallResult`.
"""

from __future__ import annotations


class SandboxError(Exception):
    """The root of every error that the sandbox raises."""


class WorkerStartError(SandboxError):
    """Worker processes cannot be started or cannot load their targets. The message carries the worker's words."""


class PoolClosedError(SandboxError):
    """A pool is used after it was closed, or in a forked child of the process that made it."""
