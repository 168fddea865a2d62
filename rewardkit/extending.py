"""Public: the names with which other packages build rewards and adapters to trainers, beside those of ``rewardkit``.

Judges and the trainer adapter use these; commands use :mod:`rewardkit.commands`. Other modules of rewardkit are its
own and may change with any version.
"""

from rewardkit.blocks.block import UNREAD, Block, BlockKind, to_json
from rewardkit.blocks.calls import THOUGHT_FIELDS, is_thought, message_answers, message_calls, read_block
from rewardkit.blocks.content import answer_parts
from rewardkit.coercion.coerce import build_coercer
from rewardkit.coercion.moments import IsoText
from rewardkit.coercion.plain_json import plain_json
from rewardkit.coercion.rule import Coercer, ColumnValueError, TextOrder
from rewardkit.declare.spec import CallContext
from rewardkit.forms import why_no_text
from rewardkit.function import RewardFunction, Versioned
from rewardkit.groups import group_places
from rewardkit.loading.config import read_yaml
from rewardkit.loading.packages import cache_folder
from rewardkit.loading.registry import resolve
from rewardkit.loops import finished, of_this_loop, run_on, turns
from rewardkit.messages import ROLES, content_text, message_text, why_unknown_role
from rewardkit.own_columns import (
    ENVIRONMENT_COLUMN,
    ENVIRONMENTS_COLUMN,
    WORKSPACE_COLUMN,
    LiveObject,
    OwnFault,
    OwnText,
)
from rewardkit.rows.files import records
from rewardkit.rows.invalid_rows import InvalidRows, RowHandling
from rewardkit.rows.reader import Row, read_rows
from rewardkit.rows.strict_json import decode
from rewardkit.runtime.attempt import score_of
from rewardkit.runtime.names import hint_at
from rewardkit.runtime.open_batch import OpenBatch
from rewardkit.runtime.plan import check_rollouts
from rewardkit.score_batch import costs_told, per_1000, weighted_total
from rewardkit.shown.svg import Chart, Curve, Marker, chart_file
from rewardkit.shown.text import plain, shorten, shortened
from rewardkit.types import COST_METRICS, UNMETERED

__all__ = [
    "COST_METRICS",
    "ENVIRONMENTS_COLUMN",
    "ENVIRONMENT_COLUMN",
    "ROLES",
    "THOUGHT_FIELDS",
    "UNMETERED",
    "UNREAD",
    "WORKSPACE_COLUMN",
    "Block",
    "BlockKind",
    "CallContext",
    "Chart",
    "Coercer",
    "ColumnValueError",
    "Curve",
    "InvalidRows",
    "IsoText",
    "LiveObject",
    "Marker",
    "OpenBatch",
    "OwnFault",
    "OwnText",
    "RewardFunction",
    "Row",
    "RowHandling",
    "TextOrder",
    "Versioned",
    "answer_parts",
    "build_coercer",
    "cache_folder",
    "chart_file",
    "check_rollouts",
    "content_text",
    "costs_told",
    "decode",
    "finished",
    "group_places",
    "hint_at",
    "is_thought",
    "message_answers",
    "message_calls",
    "message_text",
    "of_this_loop",
    "per_1000",
    "plain",
    "plain_json",
    "read_block",
    "read_rows",
    "read_yaml",
    "records",
    "resolve",
    "run_on",
    "score_of",
    "shorten",
    "shortened",
    "to_json",
    "turns",
    "weighted_total",
    "why_no_text",
    "why_unknown_role",
]
