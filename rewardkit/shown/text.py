"""How text and numbers are shown: what others wrote is made safe here before it reaches a terminal or a log."""

from __future__ import annotations

import difflib
import functools
import reprlib
from collections.abc import Iterable, Sequence

MAX_LINE_CHARS = 1_000  # Characters of a line in a log that others wrote


def plain(text: str) -> str:
    """Return the text with control characters written out, so that a completion cannot steer the terminal.

    Line breaks and tabs stay. What goes besides: escapes (also those of one character, C1), carriage returns,
    marks that turn the direction of writing, characters without width, halves of surrogate pairs.
    """
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() or char in "\n\t" else repr(char)[1:-1] for char in text)


def shortened(text: str, chars: int = MAX_LINE_CHARS, *, around: str | None = None) -> str:
    """Return the text on one line of at most ``chars`` characters, with an ellipsis where a part is left out.

    Args:
        text: The text, which others wrote.
        chars: The most characters; a few more where ``around`` is given, for the ellipses.
        around: The part in whose surroundings the reader is interested, the last place of it; ``""`` for the head and
            the end of a long text. Without it, the beginning is shown.
    """
    if around is None:
        text = plain(" ".join(text[: 8 * chars].split()))  # blanks are many in what is cut anyhow
        return text if len(text) <= chars else text[: chars - 1] + "…"
    text, around = " ".join(text.split()), " ".join(around.split())[:chars]
    if len(text) <= chars:
        return plain(text)
    index = text.rfind(around) if around else -1
    if index < 0:
        return plain(f"{text[: chars // 4]} … {text[-chars // 4 * 3 :]}")
    start = max(0, index - (chars - len(around)) // 2)
    end = start + chars
    return plain(f"{'… ' if start else ''}{text[start:end]}{' …' if end < len(text) else ''}")


def with_break_marks(text: str) -> str:
    """Return the text with ``⏎`` for each line break, as what is shown on one line."""
    return text.replace("\r\n", "\n").replace("\n", "⏎")


def beginning(text: str, chars: int) -> str:
    """Return the text, or its first characters with the number that it has; line breaks stay."""
    return text if len(text) <= chars else f"{text[:chars]}… [{len(text):,} characters]"


def shorten(value: object, chars: int = 80) -> str:
    """Return a value's repr of at most ``chars`` characters, at a bounded cost; its type's name if it has no repr."""
    if type(value) is str and len(value) <= chars // 2:
        return repr(value)
    try:
        text = _bounded_repr(chars).repr(value)
    except Exception:  # a repr is foreign code, and an int of over 4300 digits has none
        return f"<{type(value).__name__}>"
    return text if len(text) <= chars else text[: chars - 3] + "..."


@functools.cache
def _bounded_repr(chars: int) -> reprlib.Repr:
    bounded = reprlib.Repr()
    bounded.maxstring = bounded.maxother = bounded.maxlong = chars
    return bounded


def counted(count: int, noun: str) -> str:
    """Return a number with its noun: ``1 run``, ``1,000 runs``."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def meant(name: str, names: Iterable[str]) -> str:
    """Return the end of a message about an unknown name, the question whether a near one was meant; ``""`` for none."""
    near = difflib.get_close_matches(name, list(names), n=1)
    return f"; did you mean {near[0]!r}?" if near else ""


def near_names(name: str, names: Sequence[str], most: int = 40) -> str:
    """Return the end of a message about an unknown name: the names near it, and those that there are."""
    near = difflib.get_close_matches(name, names, n=2)
    advice = f"near it: {' or '.join(shortened(choice, 60) for choice in near)}; " if near else ""
    listed = ", ".join(shortened(choice, 60) for choice in names[:most])
    rest = f" and {len(names) - most:,} more" if len(names) > most else ""
    return f"; {advice}there are {listed}{rest}" if names else "; there are no names at all"
