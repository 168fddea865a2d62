"""The table of the dashboard's panels, from which the server takes its addresses and the page its tabs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeAlias

from rewardkit.dashboard.query import Query
from rewardkit.dashboard.readers import OpenRun
from rewardkit.dashboard.views import change, completions, graphs, health, logs

View: TypeAlias = Callable[[OpenRun, Query], dict[str, Any]]
Action: TypeAlias = Callable[[OpenRun, Mapping[str, Any]], dict[str, Any]]


class Panel(NamedTuple):
    """A tab of a run, drawn by ``page/tabs/NAME.js`` and ``.css``; its ``actions`` need the write token."""

    name: str  # Its name in addresses: `/runs/RUN/NAME` for a reader, `/api/runs/RUN/NAME` for the page
    title: str  # What its tab is called
    key: str  # The letter that opens it after `g`
    view: View  # Returns what it shows of a run
    views: Mapping[str, View] = {}  # Returns of further addresses that it asks, by name
    actions: Mapping[str, Action] = {}


PANELS = (
    Panel("graphs", "Graphs", "g", graphs.view),
    Panel("logs", "Logs", "l", logs.view),
    Panel(
        "completions", "Completions", "c", completions.completions,
        {"prompts": completions.prompts, "prompt": completions.prompt, "completion": completions.completion},
    ),
    Panel("health", "Health", "h", health.view),
    Panel("change", "Change", "u", change.view, actions=change.POSTS),
)  # fmt: skip
"""The panels in the order of their tabs; the first one opens with a run."""
