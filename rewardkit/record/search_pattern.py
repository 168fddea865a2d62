"""What is looked for in recorded texts: a regular expression or a plain text, whose search of one text has an end."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from rewardkit.errors import RecordError
from rewardkit.shown.text import shortened

if TYPE_CHECKING:
    import regex

BOUND_S = 0.5  # Processor seconds for the search of one text
BOUND_S_PER_CHARACTER = 2e-7  # What is added for each of its characters: 2 s for 10 MB
MOST_CHARACTERS = 2_000  # Characters of an expression
EXCERPT_CHARACTERS = 60  # Characters of a text that an excerpt has before a match, and behind its beginning


class Excerpt(NamedTuple):
    """A match with what stands around it."""

    before: str
    match: str
    after: str


class SearchPattern:
    """A regular expression as `regex <https://pypi.org/project/regex/>`_ reads it, which takes those of ``re`` too.

    Raises:
        RecordError: It is no regular expression, is longer than :data:`MOST_CHARACTERS`, or :meth:`find` takes longer
            than :data:`BOUND_S` for a text.
    """

    def __init__(self, expression: str, *, is_plain: bool = False) -> None:
        """Compile an expression; with ``is_plain`` it is a text, and upper and lower case are the same."""
        import regex  # the command line starts without it

        self._label = f"{'text' if is_plain else 'grep'}={shortened(expression, 60)!r}"
        if len(expression) > MOST_CHARACTERS:
            raise RecordError(f"{self._label}: expected at most {MOST_CHARACTERS:,} characters")
        try:
            self._pattern: regex.Pattern[str] = (
                regex.compile(regex.escape(expression), regex.IGNORECASE) if is_plain else regex.compile(expression)
            )
        except regex.error as wrong:
            raise RecordError(f"{self._label}: not a regular expression: {wrong}") from None
        except (RecursionError, OverflowError, MemoryError, ValueError) as wrong:
            raise RecordError(f"{self._label}: not a regular expression that can be used: {wrong}") from None

    def find(self, text: str, owner: str) -> tuple[int, int] | None:
        """Return where the first match in a text begins and ends; ``owner`` says in an error whose text it is."""
        try:
            match = self._pattern.search(
                text, timeout=BOUND_S + BOUND_S_PER_CHARACTER * len(text), concurrent=True
            )  # other threads go on meanwhile
        except (TimeoutError, MemoryError):
            raise RecordError(
                f"{self._label}: takes too long on {owner}, a text of {len(text):,} characters; write an expression"
                " that repeats nothing within a repetition"
            ) from None
        return None if match is None else match.span()

    def excerpt(self, text: str, owner: str) -> Excerpt | None:
        """Return the first match in a text with what stands around it; ``None`` without one."""
        span = self.find(text, owner)
        if span is None:
            return None
        start, end = span
        stop = min(end, start + EXCERPT_CHARACTERS)
        before = text[max(0, start - EXCERPT_CHARACTERS) : start]
        return Excerpt(before, text[start:stop], text[stop : stop + EXCERPT_CHARACTERS] if stop == end else "…")
