"""The exit codes, in one place for code, help and documentation."""

from __future__ import annotations

FAILED = 1
"""The work was done, but something failed that the user asked to be told of."""
MISTAKE = 2
"""The user's mistake: bad data, an unknown option, a reward file that does not import."""
INFRASTRUCTURE = 3
"""Not the user's mistake: workers lost, a full disk, a fault of our own."""
INTERRUPTED = 130
"""Ctrl-C."""

EXIT_CODES = (
    "[dim]Exit codes: 0 all is well; 1 done, but calls failed and --fail-on-error was given, "
    "or doctor, test, audit or check found a fault; "
    "2 a mistake in the input; 3 a fault of the infrastructure; 130 Ctrl-C.[/]"
)
"""For the foot of each help page."""
