"""The errors that the sandbox raises: mistakes of the caller and faults of its own.

    SandboxError
    ├── WorkerStartError          worker processes cannot be started, or cannot load what they are to run
    ├── PoolClosedError           a pool or sandbox is used after it was closed, or in a forked child
    ├── SandboxUnavailableError   this machine does not give the isolation that was asked for
    ├── LanguageUnavailableError  programs of a language cannot run here
    ├── NotPlainError             a value is not one that may enter or leave a jail
    ├── CheckError                the tests of a completion are at fault, not the completion
    │   └── SharedProcessError    they want the completion in their own process
    └── RestrictedSourceError     a text does what texts of strangers may not do

What the isolated code did is never one of these; it is a :class:`~sandbox.workers.pool.CallResult` or an
:class:`~sandbox.results.ExecutionResult`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

__all__ = [
    "CheckError",
    "LanguageUnavailableError",
    "NotPlainError",
    "PoolClosedError",
    "RestrictedSourceError",
    "SandboxError",
    "SandboxUnavailableError",
    "SharedProcessError",
    "WorkerStartError",
]


class SandboxError(Exception):
    """The root of every error that the sandbox raises."""


class WorkerStartError(SandboxError):
    """Worker processes cannot be started or cannot load their targets. The message carries the worker's words."""


class PoolClosedError(SandboxError):
    """A pool is used after it was closed, or in a forked child of the process that made it."""


class SandboxUnavailableError(SandboxError):
    """This machine does not give the isolation that was asked for. The message says what failed.

    Attributes:
        succeeded: The attacks that succeeded, where that is why.
        reasons: Why each level that was tried is not reached.
    """

    def __init__(self, message: str, succeeded: Sequence[str] = (), reasons: Mapping[str, str] | None = None) -> None:
        super().__init__(message)
        self.succeeded = tuple(succeeded)
        self.reasons = dict(reasons or {})


class LanguageUnavailableError(SandboxError):
    """Programs of a language cannot run here. The message says what is missing and how it is had.

    Attributes:
        language: The language's name.
    """

    def __init__(self, message: str, language: str = "") -> None:
        super().__init__(message)
        self.language = language


class NotPlainError(SandboxError, ValueError):
    """A value is not plain: only Python's literals may enter or leave a jail."""


class CheckError(SandboxError, ValueError):
    """The tests of a completion are at fault, not the completion. Mend the example that they are of."""


class SharedProcessError(CheckError):
    """The tests want the completion in their own process: they patch what it uses, or hand it what cannot travel."""


class RestrictedSourceError(SandboxError, ValueError):
    """A text does what texts of strangers may not do. Mend it at each line and column that the message names.

    Args:
        reason: What is wrong, and what to write instead.
        line: The line of the text, from 1, as Python counts lines.
        column: The column in that line, from 1.
        construct: What stands there: a name, a module, or a kind of statement such as ``"async def"``.
        others: What else is wrong in the text, in its order.
    """

    def __init__(
        self,
        reason: str,
        line: int = 1,
        column: int = 1,
        construct: str = "",
        others: Sequence[RestrictedSourceError] = (),
    ) -> None:
        super().__init__(reason, line, column, construct, tuple(others))
        self.reason = reason
        self.line = line
        self.column = column
        self.construct = construct
        self.others = tuple(others)

    def __str__(self) -> str:
        return "\n".join([f"line {self.line}, column {self.column}: {self.reason}", *map(str, self.others)])
