"""Public: from a file to the rows as a trainer hands them to rewards, by the one reader of data sets."""

from rewardkit.rows.invalid_rows import InvalidRows, RowHandling
from rewardkit.rows.reader import Row, listed_rows, read_rollouts, read_rows
from rewardkit.rows.strict_json import decode_row, encode
from rewardkit.rows.tables import JSON_FEATURE
from rewardkit.rows.trainer_names import KEYWORDS, TRAINER_NAMES, rename_hint, trainer_warnings

__all__ = [
    "JSON_FEATURE",
    "KEYWORDS",
    "TRAINER_NAMES",
    "InvalidRows",
    "Row",
    "RowHandling",
    "decode_row",
    "encode",
    "listed_rows",
    "read_rollouts",
    "read_rows",
    "rename_hint",
    "trainer_warnings",
]
