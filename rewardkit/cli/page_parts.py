"""The parts of a page that is sent to somebody: every text in it is escaped, and nothing in it can be executed.

What the page of a run is made of stands here too: the run, read once, and its figures as text.
"""

from __future__ import annotations

import html
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
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

    def limited(self, noun: str, most: int, count: int) -> str:
        """Return how much of something the page has, and note what it leaves out; ``""`` where it has all."""
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
    """Return an element around its parts; what is not markup is escaped."""
    values = ({"class": kind} if kind else {}) | attributes
    written = "".join(f' {name.replace("_", "-")}="{escaped(value)}"' for name, value in values.items())
    return Markup(f"<{tag}{written}>{''.join(map(escaped, parts))}</{tag}>")


def section(name: str, title: str, *parts: str, note: str = "") -> Markup:
    """Return a part of the page with its heading, to which the list of contents leads."""
    about = [element("p", note, kind="note")] if note else []
    return element("section", element("h2", title), *about, *parts, id=name)


def folded_away(title: str, *parts: str) -> Markup:
    """Return what is seen once its title is clicked."""
    return element("details", element("summary", title), *parts)


def text_block(text: str, kind: str = "text", chars: int = TEXT_CHARS) -> Markup:
    """Return a text with its lines, cut where it is longer than so many characters."""
    if not text:
        return element("pre", element("i", "(empty)"), kind=kind)
    more = len(text) - chars
    rest = [element("i", f"… {more:,} more characters")] if more > 0 else []
    return element("pre", text[:chars], *rest, kind=kind)


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
    return element("pre", *(element("span", f"{line}\n", kind=kinds.get(line[:1], "")) for line in lines), kind="code")


def document(title: str, contents: Sequence[tuple[str, str]], *parts: str) -> str:
    """Return the whole page, which loads and runs nothing; ``contents`` are the names and titles of its sections."""
    links = [element("a", label, href=f"#{name}") for name, label in contents]
    body = element("body", element("nav", *links, aria_label="Contents"), element("main", *parts))
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_CSP}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n<meta name="referrer" content="no-referrer">\n'
        f"<title>{escaped(shortened(title))}</title>\n<style>{STYLE}{CHART_STYLE}</style>\n</head>\n"
        f"{body}\n</html>\n"
    )


_LIGHT = """
--ink:#1c2024;--ink-2:#55606b;--line:#dfe3e8;--ground:#fbfcfd;--panel:#fff;--accent:#0b63b5;
--good:#0a7048;--bad:#b42318;--warn:#9a5b00;--skip:#5d5793;--plus:#e4f5ec;--minus:#fdeceb;
--s1:#0072b2;--s2:#d55e00;--s3:#00875f;--s4:#b75a8e;--s5:#a87400;--s6:#3a93c9;--s7:#77780a;--s8:#6b7280;
"""
_DARK = """
--ink:#e6e9ec;--ink-2:#a3adb8;--line:#2e343b;--ground:#131619;--panel:#1a1e22;--accent:#6cb6f5;
--good:#5fcf9b;--bad:#ff8a80;--warn:#e9b04c;--skip:#b4aef0;--plus:#14301f;--minus:#3a1d1c;
--s1:#56b4e9;--s2:#ef8438;--s3:#2fbf94;--s4:#e09ac4;--s5:#e6b422;--s6:#8fd0f5;--s7:#d8d75a;--s8:#a3adb8;
"""
STYLE = (
    f"""
:root{{color-scheme:light dark;{_LIGHT}}}
@media (prefers-color-scheme:dark){{:root{{{_DARK}}}}}
"""
    + """
*{box-sizing:border-box}
html{scroll-behavior:smooth;scroll-padding-top:56px;-webkit-text-size-adjust:100%}
@media (prefers-reduced-motion:reduce){html{scroll-behavior:auto}}
body{margin:0;background:var(--ground);color:var(--ink);font:14px/1.5 system-ui,-apple-system,"Segoe UI",sans-serif}
main{max-width:1240px;margin:0 auto;padding:24px 24px 64px}
nav{position:sticky;top:0;z-index:1;background:var(--ground);border-bottom:1px solid var(--line);
padding:8px 24px;overflow-x:auto;white-space:nowrap}
nav a{color:var(--ink-2);text-decoration:none;margin-right:16px;display:inline-block;padding:4px 0}
nav a:hover{color:var(--ink)}
:focus-visible{outline:2px solid var(--accent);outline-offset:2px;border-radius:2px}
h1{font-size:24px;line-height:1.25;margin:0 0 4px;overflow-wrap:anywhere}
h2{font-size:18px;line-height:1.3;margin:0 0 8px}
h3{font-size:14px;margin:24px 0 8px;overflow-wrap:anywhere}
section{margin-top:40px}
p{margin:0 0 8px;max-width:76ch;overflow-wrap:anywhere}
.note,.quiet{color:var(--ink-2)}
.state{font-size:14px;font-weight:400;color:var(--ink-2);margin-left:8px;white-space:nowrap}
.state.running{color:var(--good)}
dl{display:grid;grid-template-columns:minmax(88px,max-content) 1fr;gap:4px 16px;margin:12px 0}
dt{color:var(--ink-2)}dd{margin:0;overflow-wrap:anywhere;min-width:0}
.box{overflow-x:auto;border:1px solid var(--line);border-radius:6px;background:var(--panel);margin:8px 0}
table{border-collapse:collapse;width:100%;font-variant-numeric:tabular-nums}
th,td{text-align:left;padding:6px 12px;border-top:1px solid var(--line);vertical-align:top}
thead th{border-top:0;color:var(--ink-2);font-weight:500;font-size:12px;white-space:nowrap}
td{overflow-wrap:break-word;max-width:420px}
.wide{min-width:220px;overflow-wrap:anywhere}
.side .wide{min-width:120px}
.n{text-align:right;white-space:nowrap}
td svg{vertical-align:middle}
.graphs{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(100%,340px),1fr));gap:16px}
.graph{background:var(--panel);border:1px solid var(--line);border-radius:6px;padding:12px;min-width:0}
.graph .rk-chart{max-width:none}
pre{font:12px/1.5 ui-monospace,"SF Mono",Menlo,Consolas,monospace;margin:8px 0;padding:8px 12px;border-radius:6px;
border:1px solid var(--line);background:var(--panel);overflow:auto;max-height:480px;tab-size:4}
pre.text{white-space:pre-wrap;overflow-wrap:anywhere}
pre i,.unknown{color:var(--ink-2)}
pre .plus{background:var(--plus);display:block}pre .minus{background:var(--minus);display:block}
pre .place{color:var(--ink-2);display:block}
details{border:1px solid var(--line);border-radius:6px;background:var(--panel);margin:8px 0;padding:0 12px}
summary{cursor:pointer;padding:8px 0;overflow-wrap:anywhere}
details[open]>summary{border-bottom:1px solid var(--line);margin-bottom:8px}
details>pre{background:var(--ground)}
.flag{border-left:3px solid var(--warn);padding:4px 0 4px 16px;margin:16px 0}
.flag h3,.failure h3{margin:0 0 4px}
.failure{border-left:3px solid var(--bad);padding:4px 0 4px 16px;margin:16px 0}
.sides{display:grid;grid-template-columns:1fr 1fr;gap:16px}
.pair{margin:0 0 32px}.side{min-width:0}
.short{white-space:nowrap}
details .box,.side .box{margin-bottom:4px}.side td,.side th{padding:4px 12px}
.side h4{margin:0;font-size:13px;font-weight:500;color:var(--ink-2)}
.scored{color:var(--ink)}.skipped{color:var(--skip)}.failed{color:var(--bad);font-weight:600}
.role{font-size:12px;color:var(--ink-2);margin:8px 0 -4px}
.up{color:var(--good)}.down{color:var(--bad)}
.next::before{content:"Next: ";font-weight:600}
@media (max-width:720px){main{padding:16px 12px 48px}nav{padding:8px 12px}.sides{grid-template-columns:1fr}
dl{grid-template-columns:1fr;gap:0}dd{margin-bottom:8px}th,td{padding:6px 8px}}
@media print{:root{"""
    + _LIGHT
    + """--ground:#fff}
body{font-size:10pt}nav{display:none}main{max-width:none;padding:0}
pre{max-height:none;overflow:visible;white-space:pre-wrap;overflow-wrap:anywhere}
.box{overflow:visible}details::details-content{content-visibility:visible;display:block;height:auto}
.graph,.flag,.failure,tr{break-inside:avoid}h2,h3,summary{break-after:avoid}
.graphs{grid-template-columns:1fr 1fr}section{margin-top:24px}}
"""
)
