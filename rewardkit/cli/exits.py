"""How a command ends: its exit codes, and its result as text or as one JSON object."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import typer

from rewardkit.errors import InfrastructureError, RewardError

if TYPE_CHECKING:
    from rewardkit.audit.result import AuditResult

FAILED = 1  # the work was done, but something failed that the user asked to be told of
MISTAKE = 2  # the user's mistake: bad data, an unknown option, a reward file that does not import
INFRASTRUCTURE = 3  # not the user's mistake: workers lost, a full disk, a fault of our own
NOT_JUDGED = 4  # an audit in which nothing speaks against a reward, and nothing of its kind could be judged
INTERRUPTED = 130  # Ctrl-C

EXIT_CODES = (  # for the foot of each help page
    "[dim]Exit codes: 0 all is well; 1 the work was done and something failed or did not pass; "
    "2 a mistake in the input; 3 a fault of the infrastructure; 4 an audit that judged nothing; 130 Ctrl-C.[/]"
)


def finish(result: Mapping[str, Any], show: Callable[[], None], *, as_json: bool, code: int = 0) -> None:
    """Print a command's result, as one JSON object with ``ok`` or by calling ``show``, and end with the exit code.

    A number that is not finite is ``null`` in the object.
    """
    if as_json:
        finite = json.loads(json.dumps(result), parse_constant=lambda _: None)  # JSON has no infinity
        typer.echo(json.dumps({"ok": code == 0, **finite}, indent=2))
    else:
        show()
    if code:
        raise typer.Exit(code)


def audit_code(audits: Sequence[AuditResult], limits: Mapping[str, float]) -> int:
    """Return the exit code of audits of rewards or judges: whether one was interrupted, exceeds a limit, or is open."""
    if any(audit.is_interrupted for audit in audits):
        return INTERRUPTED
    if any(audit.breaches(limits) for audit in audits):
        return FAILED
    return NOT_JUDGED if not all(audit.passed(limits) for audit in audits) else 0


def code_of(error: BaseException) -> int:
    """Return the exit code of a command that an error ends."""
    if isinstance(error, KeyboardInterrupt):
        return INTERRUPTED
    if isinstance(error, RewardError):
        return INFRASTRUCTURE if isinstance(error, InfrastructureError) else MISTAKE
    return getattr(error, "exit_code", INFRASTRUCTURE)  # a wrong option carries its own


def as_result(error: BaseException) -> dict[str, Any]:
    """Return what ``--json`` prints in place of a result where an error ends the command."""
    message = error.format_message() if hasattr(error, "format_message") else str(error) or "interrupted"
    return {"ok": False, "error": {"type": type(error).__name__, "message": message, "exit_code": code_of(error)}}
