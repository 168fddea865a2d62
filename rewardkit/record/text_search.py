"""A search through the texts of completions: what the model wrote, what it was asked, the data, what rewards said."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple

from rewardkit.record.as_text import value_text, whole_text
from rewardkit.record.reader import RunReader
from rewardkit.record.recorded_numbers import CallTexts
from rewardkit.record.search_pattern import Excerpt, SearchPattern
from rewardkit.record.selection import Selection
from rewardkit.record.values import RecordedPrompt

FIRST_AT_ONCE, AT_ONCE = 8, 200  # Completions whose texts are read at once: at first, and at most
CHUNK_S = 0.05  # Seconds after which fewer are read at once: long texts must not fill the memory
MOST_PROMPTS = 50_000  # Prompts of which is remembered whether they have a match
FIELDS: Final = ("completion", "prompt", "data", "reason", "error", "traceback", "output")
"""Where is looked, in this order: ``data`` are the columns, ``output`` is what a reward printed and logged."""


class TextMatch(NamedTuple):
    """The first match in the texts of a completion."""

    field: str  # One of :data:`FIELDS`
    name: str | None  # The column, or the reward
    excerpt: Excerpt


class SearchPage(NamedTuple):
    """What a search knows after a while."""

    matches: dict[int, TextMatch]  # By the number of the completion, in the order of the selection
    end: int  # The place in the selection at which the search goes on


class TextSearch:
    """A search for a pattern in completions of a run, some at a time; it remembers what prompts have.

    Args:
        run: The run.
        pattern: What is looked for.
        fields: Where is looked, of :data:`FIELDS`.
        of_prompts: What is known of prompts already, from a search of this pattern in these fields; it is added to.
    """

    def __init__(
        self,
        run: RunReader,
        pattern: SearchPattern,
        fields: Sequence[str] = FIELDS,
        of_prompts: dict[int, TextMatch | None] | None = None,
    ) -> None:
        self._run, self._pattern, self._fields = run, pattern, frozenset(fields)
        self._of_prompts: dict[int, TextMatch | None] = {} if of_prompts is None else of_prompts

    def page(
        self,
        selection: Selection,
        start: int,
        limit: int,
        budget_s: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> SearchPage:
        """Look on from a place in a selection, for a limited time, or until so many completions have a match.

        At least some completions are looked at, so that a search gets on whatever its budget.
        """
        now = clock()
        until = now + budget_s
        size = FIRST_AT_ONCE
        matches: dict[int, TextMatch] = {}
        while start < len(selection):
            ids = selection.page(start, size).tolist()
            for number, match in self.matches(ids).items():
                matches[number] = match
                if len(matches) == limit:
                    return SearchPage(matches, start + ids.index(number) + 1)
            start += len(ids)
            began, now = now, clock()
            if now > until:
                break
            size = min(2 * size, AT_ONCE) if now - began < CHUNK_S else max(1, size // 2)
        return SearchPage(matches, start)

    def matches(self, ids: Sequence[int]) -> dict[int, TextMatch]:
        """Return the first match of each of some completions that has one, by their numbers, in the order of ``ids``.

        Raises:
            RecordError: The pattern takes too long on a text.
        """
        texts = self._run.searched_texts(ids)
        self._look_at_prompts({prompt for prompt, _ in texts.values()})
        notes = self._run.call_texts(ids) if self._fields - {"completion", "prompt", "data"} else {}
        matches = {}
        for number in ids:
            if number not in texts:
                continue
            prompt, text = texts[number]
            match = None
            if text is not None and "completion" in self._fields:
                match = self._match("completion", None, whole_text(text), f"completion {number}")
            match = match or self._of_prompts[prompt] or self._in_notes(notes.get(number, ()), number)
            if match is not None:
                matches[number] = match
        return matches

    def _match(self, field: str, name: str | None, text: str, owner: str) -> TextMatch | None:
        excerpt = self._pattern.excerpt(text, owner)
        return None if excerpt is None else TextMatch(field, name, excerpt)

    def _look_at_prompts(self, indices: set[int]) -> None:
        """Look at those prompts, and at their columns, that were not looked at before."""
        lacking = sorted(indices - self._of_prompts.keys()) if self._fields & {"prompt", "data"} else []
        if len(self._of_prompts) > MOST_PROMPTS:
            self._of_prompts.clear()
            lacking = sorted(indices)
        self._of_prompts |= dict.fromkeys(indices - self._of_prompts.keys())
        for prompt in self._run.prompts_by_index(lacking):
            self._of_prompts[prompt.index] = next(self._in_prompt(prompt), None)

    def _in_prompt(self, prompt: RecordedPrompt) -> Iterator[TextMatch]:
        owner = f"prompt {prompt.index}"
        texts = [("prompt", None, whole_text(prompt.prompt))] if "prompt" in self._fields else []
        columns = prompt.columns if "data" in self._fields else {}
        for field, name, text in (*texts, *(("data", name, value_text(value)) for name, value in columns.items())):
            match = self._match(field, name, text, owner)
            if match is not None:
                yield match

    def _in_notes(self, calls: Sequence[CallTexts], number: int) -> TextMatch | None:
        """Return the first match in what the calls of a completion said."""
        for field in ("reason", "error", "traceback", "output"):
            for call in calls if field in self._fields else ():
                text = getattr(call, field)
                match = self._match(field, call.reward, text, f"the {field} of completion {number}") if text else None
                if match is not None:
                    return match
        return None
