"""The files of the page as the server sends them."""

from __future__ import annotations

import mimetypes

from starlette.responses import HTMLResponse, Response
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

from rewardkit.dashboard import panels

mimetypes.add_type("text/javascript", ".js")  # the system's table may have another type, which browsers do not run


class PageFiles(StaticFiles):
    """Serves the page's files; the list of runs and each address of a run are the page itself."""

    def __init__(self) -> None:
        super().__init__(directory=panels.ROOT)
        self._index = panels.index_html()

    async def get_response(self, path: str, scope: Scope) -> Response:
        is_index = path in (".", "index.html") or path.partition("/")[0] == "runs"
        response = await super().get_response("index.html" if is_index else path, scope)
        if is_index:
            response = HTMLResponse(self._index)
        response.headers["cache-control"] = "no-cache"  # kept, and asked for each time whether it is still the same
        return response
