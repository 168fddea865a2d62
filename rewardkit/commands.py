"""Public: the names with which other packages build commands that read and print as rewardkit's own do.

A package adds a command by an entry point of the group ``rewardkit.commands``. Importing this module loads the
libraries of the command line.
"""

from rewardkit.audit.engine import Rounds, Tick
from rewardkit.audit.result import AuditLimits, AuditResult
from rewardkit.audit.rows import drawn
from rewardkit.audit.texts import MASTER_KEYS
from rewardkit.cli.arguments import (
    AsJson,
    Data,
    DataOption,
    RowCount,
    Seed,
    Timeout,
    Workers,
    argument,
    check_share,
    data_path,
    option,
    share_option,
)
from rewardkit.cli.exits import FAILED, INTERRUPTED, audit_code, finish
from rewardkit.cli.output import check_writable, write_rows
from rewardkit.cli.progress import told_progress
from rewardkit.cli.render import counts, excerpt, print_labelled, print_reasons, screen
from rewardkit.cli.rewards import Leaves, one_of, only
from rewardkit.cli.run_argument import RunPlace
from rewardkit.loading.registry import RewardSet
from rewardkit.record.places import run_path
from rewardkit.rows import Row, read_rows
from rewardkit.rows import read_rows as rows_in  # the name that it had before
from rewardkit.rows.files import unit_of
from rewardkit.shown.text import shortened

__all__ = [
    "FAILED",
    "INTERRUPTED",
    "MASTER_KEYS",
    "AsJson",
    "AuditLimits",
    "AuditResult",
    "Data",
    "DataOption",
    "Leaves",
    "RewardSet",
    "Rounds",
    "Row",
    "RowCount",
    "RunPlace",
    "Seed",
    "Tick",
    "Timeout",
    "Workers",
    "argument",
    "audit_code",
    "check_share",
    "check_writable",
    "counts",
    "data_path",
    "drawn",
    "excerpt",
    "finish",
    "one_of",
    "only",
    "option",
    "print_labelled",
    "print_reasons",
    "read_rows",
    "rows_in",
    "run_path",
    "screen",
    "share_option",
    "shortened",
    "told_progress",
    "unit_of",
    "write_rows",
]
