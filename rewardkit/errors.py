"""The errors that rewardkit raises to its caller.

What a model did is never one of these: a wrong answer, a timeout or a crash of one call is an
:class:`~rewardkit.types.Outcome`. These are mistakes of the caller, or faults of our own.

    RewardError
    ├── RewardDefinitionError     a reward's signature or options make no sense
    ├── RewardLoadError           a reward cannot be found, imported or loaded in a worker
    ├── RewardTransportError      a reward cannot travel to a worker process
    ├── ConfigError               a configuration file or object is wrong
    ├── PackageInstallError       the packages of a configuration could not be installed
    ├── DataError                 the dataset is wrong: a line that is not JSON, rows of different keys
    │   └── MissingColumnError    a reward needs a column that the dataset lacks
    ├── CoercionError             a column's value is not what the reward's annotation says
    ├── RewardTextError           a reward given as text raised, or was ended by its jail
    ├── BadReturnError            a step reward returned a value that is not a score
    ├── RecordError               a run's record is missing, damaged, newer, or cannot be written
    ├── SuiteError                what is asked of a suite of tests cannot be done
    ├── WorkspaceError            a workspace is missing or too large, or a name leads out of it
    ├── ObjectiveError            arrays given to a loss or a measure do not fit together
    ├── UpdateRefusedError        a running training does not take a change of its rewards
    ├── ClusterError              a cluster of machines cannot be reached or used
    ├── RuntimeClosedError        a runtime is used after it was closed, or in a forked child
    ├── InfrastructureError       too many calls failed for reasons that are not the completions' fault
    │   └── FullError             so many rows wait to be scored that no more are taken
    └── RewardFailedError         a call failed and the caller asked to stop at the first failure
"""

from __future__ import annotations


class RewardError(Exception):
    """The root of every error that rewardkit raises."""


class RewardDefinitionError(RewardError):
    """A reward's signature or options make no sense. Raised at decoration; mend the definition."""


class RewardLoadError(RewardError):
    """A reward cannot be found, imported or loaded in a worker. The message names the reference and the reason."""


class RewardTransportError(RewardError):
    """A reward cannot travel to a worker process. Move what it captures into its module, or make it inside."""


class ConfigError(RewardError):
    """A configuration file or object is wrong, or differs from that of the training run that is to continue.

    The message names the field, the value and what was expected, or all that differs.
    """


class PackageInstallError(RewardError):
    """The packages of a configuration could not be installed. The message ends with pip's own words."""


class DataError(RewardError):
    """The dataset is wrong. The message names the file and line, or the row."""


class MissingColumnError(DataError):
    """A reward needs a column that the dataset lacks. The message offers near names."""


class CoercionError(RewardError):
    """A column's value is not what the reward's annotation says.

    Inside a runtime this is an outcome with cause ``coercion``; it is raised only where a reward
    is called as a plain function.
    """


class RewardTextError(RewardError):
    """A reward given as text raised, or was ended by its jail. Inside a runtime this is an outcome.

    It is raised only where such a reward is called as a plain function.

    Args:
        message: What happened: the text's own error with its line, or why the jail ended it.
        cause: The cause that the outcome has, such as ``"exception"`` or ``"timeout"``.
        trace: The text's own frames, where it raised.
    """

    def __init__(self, message: str, cause: str = "exception", trace: str | None = None) -> None:
        super().__init__(message, cause, trace)
        self.message = message
        self.cause = cause
        self.trace = trace

    def __str__(self) -> str:
        return self.message


class BadReturnError(RewardError):
    """A step reward returned a value that is not a score. Inside a runtime this is an outcome, ``bad_return``.

    It is raised only where such a reward is called as a plain function.
    """


class RecordError(RewardError):
    """A run's record is missing, is not a record, is of a newer release, or cannot be written. Names the file."""


class WorkspaceError(RewardError):
    """A workspace is missing, too large or where none may lie, a name leads out of it, or it cannot run a command."""


class SuiteError(RewardError):
    """What was asked of a suite of tests cannot be done; the message names the argument, its value and the fix."""


class ObjectiveError(RewardError, ValueError):
    """Arrays given to an objective do not fit together, or hold what it has no value for.

    The message names the argument, its shape or the row, and what was expected.
    """


class UpdateRefusedError(RewardError):
    """A running training does not take a change of its rewards, has ended, or the new reward fails on its completions.

    The training goes on as before. The message says why.
    """


class ClusterError(RewardError):
    """A cluster of machines cannot be reached or used. The message names the address or machine and the reason."""


class RuntimeClosedError(RewardError):
    """A runtime is used after it was closed, or in a forked child of the process that made it."""


class InfrastructureError(RewardError):
    """Too many calls failed for reasons that are not the completions' fault. Nothing was scored by guess.

    A reward may raise it too, where what it depends on (a server, a database) cannot be reached: that
    call's cause is then ``infrastructure``, it is tried again, and no default is held against the completion.

    Attributes:
        retry: Whether the runtime is to try the call again. A reward that has made tries of its own raises a
            subclass that says ``False``, or sets it so; otherwise tries multiply.
    """

    retry: bool = True


class FullError(InfrastructureError):
    """The server takes no more rows: too many wait to be scored, or it is about to stop. Try again later.

    Nothing of the call was taken.
    """


class RewardFailedError(RewardError):
    """A call failed and the caller asked to stop at the first failure. Names reward, step and row."""
