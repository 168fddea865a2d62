"""What a saved page has of a view: each panel declares it, in a line for a view."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping
from enum import StrEnum
from typing import Any, TypeAlias

from rewardkit.dashboard.readers import OpenRun

ViewQuery: TypeAlias = Mapping[str, object]
"""The parameters of a request."""
MOST_ROWS = 10_000  # Rows of a table in a saved page; each page of it is one of these


class Per(StrEnum):
    """What an answer is of."""

    RUN = "run"  # The whole run: it has no parameter of its own
    STEP = "step"  # A step, by `step` and `split`
    PROMPT = "prompt"  # A prompt, by `prompt`
    COMPLETION = "completion"  # A completion, by `id`


PARAMETERS: Mapping[Per, tuple[str, ...]] = {
    Per.RUN: (), Per.STEP: ("step", "split"), Per.PROMPT: ("prompt",), Per.COMPLETION: ("id",),
}  # fmt: skip
"""The parameters by which an answer's subject is named."""


def once(opened: OpenRun, subject: ViewQuery) -> Iterable[ViewQuery]:
    """Return one request without further parameters."""
    return ({},)


def by_offset(answer: Mapping[str, Any], rows: int) -> ViewQuery | None:
    """Return what the next page of a table is asked for with; ``None`` behind its last row."""
    return {"offset": rows} if rows < answer["matched"] else None


class Saved:
    """The answers of a view that a saved page has, as the page asks for them.

    A saved page finds an answer by its subject and its ``keys``, and ignores what it cannot answer otherwise: of a
    table, ``join`` names the rows, which the page itself sorts, filters and turns over. Such an answer is asked for
    page by page.
    """

    def __init__(
        self,
        view: str,
        per: Per = Per.RUN,
        requests: Callable[[OpenRun, ViewQuery], Iterable[ViewQuery]] = once,
        *,
        keys: tuple[str, ...] = (),
        applied: tuple[str, ...] = (),
        join: str | None = None,
        further: Callable[[Mapping[str, Any], int], ViewQuery | None] = by_offset,
        own: str | None = None,
        gathered: bool = False,
        of_whole: bool = False,
        narrow: Callable[[dict[str, Any], Container[int]], dict[str, Any]] | None = None,
        shorten: Callable[[dict[str, Any]], dict[str, Any]] = dict,
    ) -> None:
        """Declare the answers of a view.

        Args:
            view: Its name.
            per: What each answer is of.
            requests: Returns the requests of a subject, beside its own parameters.
            keys: Parameters of ``requests`` that tell answers of one subject apart.
            applied: Further parameters that the page applies to the answer by itself; with any other it has no answer.
            join: The list in an answer that holds its rows.
            further: What the next page is asked for with, from a page and the rows so far.
            own: The field of a row that has its completion's number, or with ``per`` run its prompt's; rows of others
                than those that are saved are left out where a part of a run is saved.
            gathered: Whether the rows of all subjects are one table, found without the subject's parameters.
            of_whole: Whether it is saved with a whole run alone.
            narrow: Takes from an answer what is of other completions than these, where a part of a run is saved.
            shorten: Makes an answer shorter, where it may be long.
        """
        self.view, self.per, self.requests, self.join, self.further = view, per, requests, join, further
        self.own, self.gathered, self.of_whole = own, gathered, of_whole
        self.applied = applied
        self.narrow, self.shorten = narrow, shorten
        self.keys = keys if gathered else (*PARAMETERS[per], *keys)

    def key(self, name: str, request: ViewQuery) -> str:
        """Return under what an answer lies in the page, whose name for this declaration is ``name``."""
        pairs = sorted(f"{key}={request[key]}" for key in self.keys if request.get(key) not in (None, ""))
        return f"{name}?{'&'.join(pairs)}"

    def as_json(self, name: str) -> dict[str, Any]:
        """Return what the page needs to find its answers."""
        return {"name": name, "keys": self.keys, "applied": self.applied, "join": self.join}
