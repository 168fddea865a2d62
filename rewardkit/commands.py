"""Public: the names with which other packages build commands that read and print as rewardkit's own do.

A package adds a command by an entry point of the group ``rewardkit.commands``. Importing this module loads the
libraries of the command line.
"""

from rewardkit.audit.rows import drawn, rows_in, unit_of
from rewardkit.audit.run import Tick
from rewardkit.audit.texts import MASTER_KEYS
from rewardkit.cli.audit import RowCount, Seed, check_share, progress
from rewardkit.cli.audit_report import counts, excerpt, print_labelled, print_reasons
from rewardkit.cli.exits import FAILED, INTERRUPTED
from rewardkit.cli.rewards import quiet
from rewardkit.cli.screen import screen
from rewardkit.cli.text import shortened
from rewardkit.data import Row
from rewardkit.registry import resolve

__all__ = [
    "FAILED",
    "INTERRUPTED",
    "MASTER_KEYS",
    "Row",
    "RowCount",
    "Seed",
    "Tick",
    "check_share",
    "counts",
    "drawn",
    "excerpt",
    "print_labelled",
    "print_reasons",
    "progress",
    "quiet",
    "resolve",
    "rows_in",
    "screen",
    "shortened",
    "unit_of",
]
