"""The answers that a saved page has inside, computed by the views as the server computes them."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from rewardkit.dashboard.as_json import json_bytes
from rewardkit.dashboard.panels import PANELS, VIEWS
from rewardkit.dashboard.query import Query
from rewardkit.dashboard.readers import OpenRun
from rewardkit.dashboard.saved.scope import SavedPiece, Scope
from rewardkit.dashboard.saving import MOST_ROWS, Per, Saved, ViewQuery
from rewardkit.errors import RecordError

OVERVIEW = Saved("overview", shorten=lambda answer: answer | {"path": answer["name"]})  # where it lies stays here
READ_S = 60.0  # Seconds in which a view that reads in parts must come to its end


class SavedAnswer(NamedTuple):
    """An answer, under the name by which the page finds it; several of one name are one table."""

    key: str
    body: bytes
    rows_left_out: int = 0  # Rows of the table that the page has not


def declared(scope: Scope) -> list[Saved]:
    """Return what is saved of a scope's views."""
    declarations = [OVERVIEW, *(saved for panel in PANELS for saved in panel.saved)]
    return [saved for saved in declarations if scope.is_whole or not saved.of_whole]


class Answers:
    """The answers of one run, for one page."""

    def __init__(self, opened: OpenRun, scope: Scope) -> None:
        self._opened, self._scope, self._ids = opened, scope, scope.ids
        self._declared = {f"{index}.{saved.view}": saved for index, saved in enumerate(declared(scope))}
        self._seen: set[str] = set()

    def specs(self) -> dict[str, list[dict[str, Any]]]:
        """Return by view how the page finds its answers."""
        specs: dict[str, list[dict[str, Any]]] = {}
        for name, saved in self._declared.items():
            specs.setdefault(saved.view, []).append(saved.as_json(name))
        return specs

    def of_run(self) -> Iterator[SavedAnswer]:
        """Yield what is of the whole run."""
        yield from self._of(Per.RUN, {})

    def of_piece(self, piece: SavedPiece) -> Iterator[SavedAnswer]:
        """Yield what is of a piece: its step and, but for tables, its prompt, where these are new; its completions."""
        step = {} if piece.step is None else {"step": piece.step}
        yield from self._of(Per.STEP, {**step, "split": piece.split})
        yield from self._of(Per.PROMPT, {"prompt": piece.prompt}, tables=False)
        for number in piece.ids:
            yield from self._of(Per.COMPLETION, {"id": number})

    def of_prompts(self, prompts: Iterable[int], ids: frozenset[int] | None) -> Iterator[SavedAnswer]:
        """Yield the tables of prompts, with rows of these completions alone; of all with ``None``."""
        self._ids = ids
        for prompt in prompts:
            yield from self._of(Per.PROMPT, {"prompt": prompt}, tables=True)

    def _of(self, per: Per, subject: ViewQuery, *, tables: bool | None = None) -> Iterator[SavedAnswer]:
        """Yield the answers on a subject that were not given before; those that are tables or not, or all."""
        seen = f"{per}{sorted(subject.items())}{tables}"
        if seen in self._seen:
            return
        self._seen.add(seen)
        for key, saved in self._declared.items():
            if saved.per is per and self._is_apart(saved) and tables in (None, saved.join is not None):
                for request in saved.requests(self._opened, subject):
                    yield from self._pages(key, saved, {**subject, **request})

    def _is_apart(self, saved: Saved) -> bool:
        """Whether the answers on a step can be had without completions that are not saved."""
        return saved.per is not Per.STEP or saved.own is not None or self._scope.has_whole_steps

    def _pages(self, name: str, saved: Saved, request: ViewQuery) -> Iterator[SavedAnswer]:
        """Yield an answer, a table page by page."""
        key = saved.key(name, request)
        if saved.join is None and key in self._seen:  # two completions may have one picture
            return
        self._seen.add(key)
        if saved.join is None:
            yield SavedAnswer(key, json_bytes(saved.shorten(self._ask(saved, request))))
            return
        rows = 0
        further: ViewQuery | None = {}
        while further is not None:
            body = self._ask(saved, {**request, **further})
            page = body[saved.join]
            rows += len(page)
            body[saved.join] = self._own(saved, page)
            if saved.narrow is not None and self._ids is not None:
                body = saved.narrow(body, self._ids)
            further = saved.further(body, rows) if page else None
            is_cut = further is not None and rows >= MOST_ROWS
            left_out = int(body.get("matched", rows + 1)) - rows if is_cut else 0
            yield SavedAnswer(key, json_bytes(saved.shorten(body)), left_out)
            if is_cut:
                return

    def _own(self, saved: Saved, rows: list[Any]) -> list[Any]:
        """Return the rows of what is saved, where a part of the run is."""
        own = self._scope.prompts if saved.per is Per.RUN else self._ids
        if saved.own is None or own is None:
            return rows
        return [row for row in rows if row[saved.own] in own]

    def _ask(self, saved: Saved, request: ViewQuery) -> dict[str, Any]:
        """Return what a view answers, when all of it is read."""
        query = Query({name: str(value) for name, value in request.items() if value is not None})
        until = time.monotonic() + READ_S
        while True:
            body = VIEWS[saved.view](self._opened, query)
            if not (body.get("reading") or body.get("unread")):
                return body | {"job": self._scope.trial} if saved.view == "change" else body
            if time.monotonic() > until:
                raise RecordError(f"{self._opened.run.name}: {saved.view} was not read after {READ_S:.0f} s")
