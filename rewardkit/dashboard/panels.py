"""The table of the dashboard's panels, which names the server's addresses and the page's tabs."""

from __future__ import annotations

import html
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from rewardkit.dashboard.query import Query
from rewardkit.dashboard.readers import OpenRun
from rewardkit.dashboard.saving import Saved
from rewardkit.dashboard.views import (
    breakdown,
    change,
    completion_table,
    completions,
    graphs,
    health,
    logs,
    pictures,
    saved_completions,
)
from rewardkit.dashboard.views.runs import overview

ROOT = Path(__file__).parent / "page"
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
    saved: Sequence[Saved] = ()  # What of its views a saved page has; without any it has no such tab


PANELS = (
    Panel(
        "graphs", "Graphs", "g", graphs.view,
        {"columns": breakdown.columns, "groups": breakdown.groups, "histogram": breakdown.histogram_view,
         "times": graphs.times, "costs": graphs.costs},
        saved=(*graphs.SAVED, *breakdown.SAVED),
    ),
    Panel("logs", "Logs", "l", logs.view, saved=logs.SAVED),
    Panel(
        "completions", "Completions", "c", completions.completions,
        {"prompts": completions.prompts, "prompt": completions.prompt, "completion": completions.completion,
         "profile": breakdown.profile, "prompt_rows": breakdown.prompt_rows,
         "table": completion_table.table, "picture_data": pictures.picture_data},
        saved=saved_completions.SAVED,
    ),
    Panel("health", "Health", "h", health.view, saved=health.SAVED),
    Panel("change", "Change", "u", change.view, actions=change.POSTS, saved=change.SAVED),
)  # fmt: skip
"""The panels in the order of their tabs; the first one opens with a run."""

VIEWS: dict[str, View] = {"overview": overview}
"""The views of a run by their names, at ``GET /api/runs/{run}/{view}``."""
for _panel in PANELS:
    VIEWS |= {_panel.name: _panel.view, **_panel.views}


def index_html() -> str:
    """Return the HTML of the page: its template with the table of panels and the links to their styles and modules."""
    links = []
    for panel in PANELS:
        styles = [ROOT / "tabs" / f"{panel.name}.css", *sorted((ROOT / "tabs" / panel.name).glob("*.css"))]
        modules = [ROOT / "tabs" / f"{panel.name}.js", *sorted((ROOT / "tabs" / panel.name).glob("*.js"))]
        styles = [path for path in styles if path.is_file()]
        links += [f'<link rel="stylesheet" href="/{path.relative_to(ROOT).as_posix()}">' for path in styles]
        links += [f'<link rel="modulepreload" href="/{path.relative_to(ROOT).as_posix()}">' for path in modules]
    template = (ROOT / "index.html").read_text(encoding="utf-8")
    return template.replace("<!-- panels -->", "\n    ".join(links)).replace(
        "{panels}", html.escape(panel_table(PANELS))
    )


def panel_table(panels: Sequence[Panel]) -> str:
    """Return the table of some panels as the page reads it."""
    return json.dumps([{"name": panel.name, "title": panel.title, "key": panel.key} for panel in panels])
