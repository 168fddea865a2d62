"""The file of a saved page: the page's code, and its answers as packed text that no browser runs or draws.

Covered: a completion's text cannot end the element that holds it, for it is packed and written in base64; nothing but
the page's own script and style runs, by their hashes in the page's policy, which forbids every request. Not covered:
what somebody adds to the file after it is written.
"""

from __future__ import annotations

import base64
import hashlib
import html
import math
import re
import time
import zlib
from collections.abc import Callable, Iterable
from functools import cache
from typing import IO, NamedTuple
from urllib.parse import quote

from rewardkit.dashboard.as_json import json_bytes
from rewardkit.dashboard.panels import PANELS, ROOT, index_html, panel_table
from rewardkit.dashboard.readers import DIAGNOSIS, OpenRun, RunCache
from rewardkit.dashboard.saved.answers import Answers, SavedAnswer
from rewardkit.dashboard.saved.bundle import script, style
from rewardkit.dashboard.saved.scope import SavedPiece, Scope, pieces
from rewardkit.dashboard.saving import MOST_ROWS
from rewardkit.dashboard.views.health import Looking, flag_count
from rewardkit.errors import RecordError
from rewardkit.replay.recorded_run import Run
from rewardkit.shown.text import counted, plain

BLOCK_BYTES = 256_000  # Bytes of answers that are packed together
MEGABYTE = 1_000_000  # Bytes
MEGABYTES = 20  # Size of a page, at most, unless told
_RESERVE = 1.02  # What the list of the answers may still grow to
_BASE64 = 4 / 3
_ROW_BYTES, _SCORE_BYTES = 700, 80  # Bytes of a completion in the table of its prompt, and of each of its scores there

Tick = Callable[[int, int], None]


class SavedPage(NamedTuple):
    """What was written."""

    completions: int  # Completions that the page has
    of: int  # Completions that it was to have
    left_out: list[str]  # What it leaves out, a sentence each


def write_page(
    run: Run, scope: Scope, file: IO[str], *, megabytes: float = MEGABYTES, tick: Tick = lambda done, of: None
) -> SavedPage:
    """Write the page of a run, or of a part of it, to a text file.

    Args:
        run: The run.
        scope: What of it is saved.
        file: Where it is written to; all characters are of ASCII but those of the page's own code.
        megabytes: The size of the file at most, in 1,000,000 bytes; the page says what it leaves out.
        tick: Is called with the completions that were written, and all that there are to write.

    Raises:
        RecordError: The page has no room for its code and what is of the whole run; the words say how much it needs.
    """
    opened = OpenRun(run, RunCache())
    wanted = run.count() if scope.ids is None else len(scope.ids)
    tick(0, wanted)
    if scope.is_whole and run.count():
        opened.cache.get(DIAGNOSIS, 0, Looking).look(run.path, opened.version)
    answers = Answers(opened, scope)
    writer = _Writer(file, megabytes * MEGABYTE)
    writer.write(_head(run.name, scope))
    for answer in answers.of_run():
        writer.add(answer)
    writer.check_room()
    part = _add_pieces(run, answers, writer, pieces(run, scope), lambda count: tick(count, wanted))
    ids = frozenset(number for piece in part for number in piece.ids)
    done = len(ids)
    prompts = dict.fromkeys(piece.prompt for piece in part)
    for answer in answers.of_prompts(prompts, scope.ids if done == wanted else ids):
        writer.add(answer)
    left_out = [*_left_out(run, scope, done, wanted, part, megabytes), *writer.cut_tables(), *_of_whole(scope)]
    about = {
        "run": run.name,
        "what": scope.label,
        "start": f"/runs/{quote(run.name)}/{scope.tab}" + (f"?{scope.query}" if scope.query else ""),
        "time": time.time(),
        "completions": done,
        "of": wanted,
        "flags": flag_count(opened.cache, opened.version),
        "left_out": left_out,
        "command": f"rewardkit show {plain(run.name)} --html FILE",
        "views": answers.specs(),
    }
    writer.end(about)
    return SavedPage(done, wanted, left_out)


def _add_pieces(
    run: Run, answers: Answers, writer: _Writer, parts: Iterable[SavedPiece], tick: Callable[[int], None]
) -> list[SavedPiece]:
    """Add pieces until the page is full, with room for what is of their prompts; return those that it has."""
    written, prompts = [], set()
    of_row = _ROW_BYTES + _SCORE_BYTES * len(run.rewards)
    done = 0
    for piece in parts:
        if writer.is_full:
            break
        for answer in answers.of_piece(piece):
            writer.add(answer)
        new = [] if piece.prompt in prompts else run.prompts_by_index([piece.prompt])
        writer.reserve(
            of_row * len(piece.ids)
            + sum(_ROW_BYTES + len(json_bytes([prompt.prompt, prompt.columns])) for prompt in new)
        )
        prompts.add(piece.prompt)
        written.append(piece)
        done += len(piece.ids)
        tick(done)
    return written


def _left_out(run: Run, scope: Scope, done: int, wanted: int, written: list[SavedPiece], megabytes: float) -> list[str]:
    """Return what a page leaves out for its size, and how to choose; nothing where it has all."""
    if done >= wanted:
        return []
    steps = {(piece.split, piece.step) for piece in written}
    of_steps = len(run.steps("train")) + len(run.steps("eval"))
    chosen = (
        f" of {counted(len(steps), 'step')}, evenly chosen among {of_steps:,}," if scope.is_whole and of_steps else ""
    )
    return [
        f"It has {done:,} of {wanted:,} completions{chosen} because a page of {megabytes:g} MB has room for no more."
        " Choose others with --step, --prompt, --where or --grep, or give it more room with --max-mb."
    ]


def _of_whole(scope: Scope) -> list[str]:
    """Return what a part of a run does not have at any size."""
    if scope.is_whole or scope.trial is not None:
        return []
    names = "groups by a column, pass rates and Health"
    return [f"A part has no {names}, which tell of prompts that are not in it; save the whole run for these."]


class _Writer:
    """Writes the file: answers in blocks, and at the end where each lies."""

    def __init__(self, file: IO[str], most_bytes: float) -> None:
        self._file, self._most = file, most_bytes
        self._index: dict[str, list[tuple[int, int]]] = {}
        self._block: list[bytes] = []
        self._blocks = 0
        self._bytes = self._raw = self._raw_packed = self._packed = self._names = self._reserved = 0
        self._cut: dict[str, int] = {}

    @property
    def is_full(self) -> bool:
        """Whether a further block would make the file larger than it may be."""
        return self._needed() > self._most

    def _needed(self) -> float:
        """Return how many bytes the file will have with a further block."""
        share = self._packed / self._raw_packed if self._raw_packed else 0.5
        ahead = (self._raw + self._reserved + BLOCK_BYTES) * share * _BASE64
        return (self._bytes + ahead + self._names * 0.4 * _BASE64) * _RESERVE + len(_tail())

    def check_room(self) -> None:
        """Raise RecordError where the file is full before it has a completion."""
        if self.is_full:
            least = math.ceil(self._needed() / 100_000) / 10
            own = "its code, and the graphs, tables and sources of the run, leave no room for completions"
            raise RecordError(f"a page of {self._most / MEGABYTE:g} MB: {own}; give it {least:g} MB or more (--max-mb)")

    def reserve(self, count: int) -> None:
        """Keep room for so many bytes of answers that are added later."""
        self._reserved += count

    def write(self, text: str) -> None:
        """Write markup of our own."""
        self._file.write(text)
        self._bytes += len(text.encode())

    def add(self, answer: SavedAnswer) -> None:
        """Add an answer to the block that is being filled."""
        self._index.setdefault(answer.key, []).append((self._blocks, len(self._block)))
        self._names += len(answer.key) + 12
        self._block.append(answer.body)
        self._raw += len(answer.body)
        if answer.rows_left_out:
            self._cut[answer.key] = answer.rows_left_out
        if self._raw >= BLOCK_BYTES:
            self._flush()

    def cut_tables(self) -> list[str]:
        """Return a sentence on the tables that are not whole."""
        if not self._cut:
            return []
        most = max(self._cut.values())
        return [f"A table has at most {MOST_ROWS:,} rows here; the longest one lacks {most:,}."]

    def end(self, about: dict[str, object]) -> None:
        """Write the rest, the list of the answers, and the page's code."""
        self._flush()
        index = {
            key: [number for position in positions for number in position] for key, positions in self._index.items()
        }
        self._pack("saved", json_bytes({**about, "answers": index}))
        self.write(_tail())

    def _flush(self) -> None:
        if self._block:
            body = b"[" + b",".join(self._block) + b"]"
            self._packed += self._pack(f"saved-{self._blocks}", body)
            self._raw_packed += len(body)
            self._block, self._raw = [], 0
            self._blocks += 1

    def _pack(self, name: str, body: bytes) -> int:
        packed = zlib.compress(body)
        self.write(f'<script type="application/json" id="{name}">"{base64.b64encode(packed).decode()}"</script>\n')
        return len(packed)


def _head(name: str, scope: Scope) -> str:
    """Return the page up to its answers: the template of the dashboard with its styles and the first script inside."""
    template = index_html()
    policy = (
        f"default-src 'none'; script-src {_hash(_first())} {_hash(_code())}; style-src {_hash(_style())};"
        " img-src data: blob:; media-src data: blob:; base-uri 'none'; form-action 'none'"
    )
    icon = base64.b64encode((ROOT / "icon.svg").read_bytes()).decode()
    body = template[template.index("<body>") : template.index("</body>")]
    own = [panel for panel in PANELS if any(scope.is_whole or not saved.of_whole for saved in panel.saved)]
    body = re.sub(r'data-panels="[^"]*"', lambda _: f'data-panels="{html.escape(panel_table(own))}"', body)
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="referrer" content="no-referrer">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{html.escape(plain(name))} · rewardkit</title>
<link rel="icon" href="data:image/svg+xml;base64,{icon}">
<script>{_first()}</script>
<style>{_style()}</style>
</head>
{body}"""


def _tail() -> str:
    return f'<script type="module">{_code()}</script>\n</body>\n</html>\n'


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


@cache
def _first() -> str:
    return (ROOT / "lib" / "theme-first.js").read_text(encoding="utf-8")


@cache
def _code() -> str:
    return script(ROOT, "app.js")


@cache
def _style() -> str:
    links = re.findall(r'<link rel="stylesheet" href="/([^"]+)">', index_html())
    return style(ROOT, [*links, "parts/saved-note.css"])
