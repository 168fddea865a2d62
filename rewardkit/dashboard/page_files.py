"""The files of the page, and its HTML, into which the table of panels is written."""

from __future__ import annotations

import html
import json
import mimetypes
from pathlib import Path

from starlette.responses import HTMLResponse, Response
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

from rewardkit.dashboard.panels import PANELS

ROOT = Path(__file__).parent / "page"

mimetypes.add_type("text/javascript", ".js")  # the system's table may have another type, which browsers do not run


class PageFiles(StaticFiles):
    """Serves the page's files; the list of runs and each address of a run are the page itself."""

    def __init__(self) -> None:
        super().__init__(directory=ROOT)
        self._index = index_html()

    async def get_response(self, path: str, scope: Scope) -> Response:
        is_index = path in (".", "index.html") or path.partition("/")[0] == "runs"
        response = await super().get_response("index.html" if is_index else path, scope)
        if is_index:
            response = HTMLResponse(self._index)
        response.headers["cache-control"] = "no-cache"  # kept, and asked for each time whether it is still the same
        return response


def index_html() -> str:
    """Return the HTML of the page: its template with the table of panels and the links to their styles and modules."""
    links = []
    for panel in PANELS:
        style = ROOT / "tabs" / f"{panel.name}.css"
        modules = [ROOT / "tabs" / f"{panel.name}.js", *sorted((ROOT / "tabs" / panel.name).glob("*.js"))]
        links += [f'<link rel="stylesheet" href="/tabs/{panel.name}.css">'] if style.is_file() else []
        links += [f'<link rel="modulepreload" href="/{path.relative_to(ROOT).as_posix()}">' for path in modules]
    table = json.dumps([{"name": panel.name, "title": panel.title, "key": panel.key} for panel in PANELS])
    template = (ROOT / "index.html").read_text(encoding="utf-8")
    return template.replace("<!-- panels -->", "\n    ".join(links)).replace("{panels}", html.escape(table))
