"""Public: the names with which other packages build rewards and adapters to trainers, beside those of ``rewardkit``.

Judges and the trainer adapter use these; commands use :mod:`rewardkit.commands`. Other modules of rewardkit are its
own and may change with any version.
"""

from rewardkit.coerce import build_coercer
from rewardkit.coercion.rule import Coercer, ColumnValueError, TextOrder, shorten
from rewardkit.config import read_yaml
from rewardkit.data import Row, read_rows
from rewardkit.datafile import records
from rewardkit.forms import why_no_text
from rewardkit.function import RewardFunction, Versioned
from rewardkit.groups import group_places
from rewardkit.loops import finished, of_this_loop, turns
from rewardkit.own_columns import ENVIRONMENT_COLUMN, ENVIRONMENTS_COLUMN, LiveObject, OwnText
from rewardkit.packages import cache_folder
from rewardkit.registry import resolve
from rewardkit.runtime.attempt import score_of
from rewardkit.runtime.names import hint_at
from rewardkit.runtime.plan import check_rollouts
from rewardkit.score_batch import costs_told, per_1000
from rewardkit.shown import plain, shortened
from rewardkit.spec import CallContext
from rewardkit.strict_json import decode
from rewardkit.svg import Chart, Curve, Marker, chart_file
from rewardkit.text import ROLES
from rewardkit.types import COST_METRICS

__all__ = [
    "COST_METRICS",
    "ENVIRONMENTS_COLUMN",
    "ENVIRONMENT_COLUMN",
    "ROLES",
    "CallContext",
    "Chart",
    "Coercer",
    "ColumnValueError",
    "Curve",
    "LiveObject",
    "Marker",
    "OwnText",
    "RewardFunction",
    "Row",
    "TextOrder",
    "Versioned",
    "build_coercer",
    "cache_folder",
    "chart_file",
    "check_rollouts",
    "costs_told",
    "decode",
    "finished",
    "group_places",
    "hint_at",
    "of_this_loop",
    "per_1000",
    "plain",
    "read_rows",
    "read_yaml",
    "records",
    "resolve",
    "score_of",
    "shorten",
    "shortened",
    "turns",
    "why_no_text",
]
