"""Text that others wrote, made short for a terminal."""

from __future__ import annotations

import re

from rewardkit.shown.text import plain, shortened

_ROLE = re.compile(r":[a-z]+(?::[a-z]+)*:`~?([^`]*)`")


def unmarked(text: str) -> str:
    """Return a docstring without the marks of reStructuredText: no double backquotes, no roles."""
    return _ROLE.sub(r"\1", text).replace("``", "")


def last_lines(text: str, lines: int, chars: int) -> list[str]:
    """Return the last lines that are not blank, each of at most so many characters."""
    kept = [line for line in text.splitlines() if line.strip()][-lines:]
    return [shortened(line, chars) for line in kept]


def folded(name: str, chars: int) -> str:
    """Return a name on lines of at most so many characters, broken behind underscores where it has them."""
    lines = [""]
    for part in re.findall(r"[^_]+_*|_+", plain(name)):
        if lines[-1] and len(lines[-1]) + len(part) > chars:
            lines.append("")
        lines[-1] += part
    return "\n".join(lines)
