"""Text that others wrote, made safe to be shown: what reaches a terminal or a log goes through here."""

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


def one_line(text: str) -> str:
    """Return the text as one line of a log, which cannot pass for two; the end of a long one is left out."""
    cut = text if len(text) <= MAX_LINE_CHARS else text[: MAX_LINE_CHARS - 1] + "…"
    return plain(cut).replace("\n", "\\n").replace("\t", " ")
