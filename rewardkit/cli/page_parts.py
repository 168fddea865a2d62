"""The parts of a page that is sent to somebody: every text in it is escaped, and nothing in it can be executed.

What the page of a run is made of stands here too: the run, read once, and its figures as text.
"""

from __future__ import annotations

import html
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rewardkit.cli.render import duration, number
from rewardkit.health.examine import Diagnosis
from rewardkit.record.overview import RewardOverview
from rewardkit.replay.recorded_run import Run
from rewardkit.shown.svg import STYLE as CHART_STYLE
from rewardkit.shown.text import plain, shortened

NONE = "\N{EN DASH}"  # what stands for a number that is not known
TEXT_CHARS = 6_000  # characters of a text that are shown
_CELL_CHARS = 300
_SHORT_CHARS = 32
_STYLE = Path(__file__).with_name("page.css").read_text(encoding="utf-8")
_CSP = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"


@dataclass(slots=True)
class RunReport:
    """A run while its page is made: what several sections need."""

    run: Run
    split: str
    head: Mapping[str, Any]
    rewards: Sequence[RewardOverview]
    about: Mapping[str, Any]
    diagnosis: Diagnosis | None
    left_out: list[str] = field(default_factory=list)  # what the page does not have, in words

    def note_limit(self, noun: str, most: int, count: int) -> str:
        """Return a sentence on how many ``noun`` the page has, and add it to ``left_out``; ``""`` where it has all."""
        if count <= most:
            return ""
        share = f"{most:,} of {count:,}"
        self.left_out.append(f"{noun}: {share}")
        return f"The page has {share} {noun}."


def figure(value: float | None) -> str:
    return NONE if value is None else number(value)


def seconds_text(value: float | None) -> str:
    return NONE if value is None else duration(value)


class Markup(str):
    """Text that is markup already; every other string is escaped where it is put into a page."""

    __slots__ = ()


def escaped(text: str) -> Markup:
    """Return a text as markup that shows it; characters that steer the writing are shown as their codes."""
    return Markup(text if isinstance(text, Markup) else html.escape(plain(text), quote=True))


def element(tag: str, *parts: str, kind: str = "", **attributes: str) -> Markup:
    """Return an HTML element around its parts; a part that is not :class:`Markup` is escaped."""
    values = ({"class": kind} if kind else {}) | attributes
    written = "".join(f' {name.replace("_", "-")}="{escaped(value)}"' for name, value in values.items())
    return Markup(f"<{tag}{written}>{''.join(map(escaped, parts))}</{tag}>")


def section(name: str, title: str, *parts: str, note: str = "") -> Markup:
    """Return a part of the page with its heading, to which the list of contents leads."""
    about = [element("p", note, kind="note")] if note else []
    return element("section", element("h2", title), *about, *parts, id=name)


def folded_away(title: str, *parts: str) -> Markup:
    """Return an element that shows its parts once its title is clicked."""
    return element("details", element("summary", title), *parts)


def text_block(text: str, kind: str = "text", chars: int = TEXT_CHARS) -> Markup:
    """Return a text that scrolls, with its lines, cut after ``chars`` characters."""
    if not text:
        return element("pre", element("i", "(empty)"), kind=kind)
    more = len(text) - chars
    rest = [element("i", f"… {more:,} more characters")] if more > 0 else []
    return element("pre", text[:chars], *rest, kind=kind, tabindex="0")


def table(head: Sequence[str], rows: Iterable[Sequence[str]], left: int = 1, wide: Collection[str] = ()) -> Markup:
    """Return a table that scrolls: the first ``left`` columns have text, the others numbers, ``wide`` long texts."""
    kinds = ["wide" if name in wide else "" if index < left else "n" for index, name in enumerate(head)]
    names = [element("th", name, scope="col", kind=kind) for name, kind in zip(head, kinds, strict=True)]
    lines = [element("tr", *(_cell(cell, kind) for cell, kind in zip(row, kinds, strict=True))) for row in rows]
    whole = element("table", element("thead", element("tr", *names)), element("tbody", *lines))
    return element("div", whole, kind="box", tabindex="0")


def _cell(text: str, kind: str) -> Markup:
    short = text if isinstance(text, Markup) else shortened(text, _CELL_CHARS)
    return element("td", short, kind=kind or ("short" if len(short) <= _SHORT_CHARS else ""))


def pairs(rows: Iterable[tuple[str, str]]) -> Markup:
    cells = [cell for name, value in rows for cell in (element("dt", name), element("dd", value))]
    return element("dl", *cells)


def difference(lines: Iterable[str]) -> Markup:
    """Return a unified difference with its lines coloured; the signs at their beginning say the same."""
    kinds = {"+": "plus", "-": "minus", "@": "place"}
    spans = (element("span", f"{line}\n", kind=kinds.get(line[:1], "")) for line in lines)
    return element("pre", *spans, kind="code", tabindex="0")


def document(title: str, contents: Sequence[tuple[str, str]], *parts: str) -> str:
    """Return the whole page, which loads and runs nothing; ``contents`` are the names and titles of its sections."""
    links = [element("a", label, href=f"#{name}") for name, label in contents]
    body = element("body", element("nav", *links, aria_label="Contents"), element("main", *parts))
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_CSP}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n<meta name="referrer" content="no-referrer">\n'
        f"<title>{escaped(shortened(title))}</title>\n<style>{_STYLE}{CHART_STYLE}</style>\n</head>\n"
        f"{body}\n</html>\n"
    )
