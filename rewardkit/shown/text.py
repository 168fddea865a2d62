"""How text and numbers are shown: what others wrote is made safe here before it reaches a terminal or a log."""

from __future__ import annotations

MAX_LINE_CHARS = 1_000
"""Characters of a line in a log that others wrote."""


def plain(text: str) -> str:
    """Return the text with control characters written out, so that a completion cannot steer the terminal.

    Line breaks and tabs stay. What goes besides: escapes (also those of one character, C1), carriage returns,
    marks that turn the direction of writing, characters without width, halves of surrogate pairs.
    """
    if text.isprintable():
        return text
    return "".join(one if one.isprintable() or one in "\n\t" else repr(one)[1:-1] for one in text)


def shortened(text: str, chars: int = MAX_LINE_CHARS) -> str:
    """Return the text on one line of at most so many characters, an ellipsis at its end where it was longer."""
    text = plain(" ".join(text[: 8 * chars].split()))
    return text if len(text) <= chars else text[: chars - 1] + "…"


def counted(count: int, noun: str) -> str:
    """Return a number with its noun: ``1 run``, ``1,000 runs``."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
