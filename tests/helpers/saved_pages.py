"""A page that ``rewardkit show --html`` saved: what is in the file, read as the page itself reads it."""

from __future__ import annotations

import base64
import json
import re
import zlib
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

_DATA = re.compile(r'<script type="application/json" id="([\w-]+)">"([A-Za-z0-9+/=]*)"</script>')


class SavedFile:
    """A saved page's markup and its answers.

    Attributes:
        text: The whole file.
        tags: Its elements' names, in order.
        about: What it says of itself, with the places of its answers.
        blocks: Its answers, block by block.
    """

    def __init__(self, path: str | Path) -> None:
        self.text = Path(path).read_text(encoding="utf-8")
        data = {name: json.loads(zlib.decompress(base64.b64decode(body))) for name, body in _DATA.findall(self.text)}
        self.about: dict[str, Any] = data.pop("saved")
        self.blocks: list[list[Any]] = [data[f"saved-{place}"] for place in range(len(data))]
        self.tags = _tags(_DATA.sub("", self.text))

    def answers(self, view: str) -> dict[str, list[Any]]:
        """Return a view's answers by their parameters, each as the list of its parts."""
        found: dict[str, list[Any]] = {}
        for spec in self.about["views"].get(view, ()):
            for key, places in self.about["answers"].items():
                name, _, query = key.partition("?")
                if name == spec["name"]:
                    pairs = zip(places[::2], places[1::2], strict=True)
                    found[query] = [self.blocks[block][place] for block, place in pairs]
        return found

    def rows(self, view: str, list_name: str) -> list[Any]:
        """Return the rows of all of a view's tables."""
        parts = [part for parts in self.answers(view).values() for part in parts]
        return [row for part in parts for row in part.get(list_name, ())]

    @property
    def data(self) -> str:
        """All that is in it, as JSON."""
        return json.dumps([self.about, self.blocks], ensure_ascii=False)


class _Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)


def _tags(text: str) -> list[str]:
    parser = _Tags()
    parser.feed(text)
    return parser.tags
