"""The absolute paths of a container in a text: the agent's folder, and those of tests and solution."""

from __future__ import annotations

import re
from collections.abc import Mapping


def with_paths(text: str, places: Mapping[str, str]) -> str:
    """Return a text in which folders such as ``/app`` stand for others, where they are whole parts of paths.

    Args:
        text: A script's or a program's.
        places: What stands in the place of each folder.
    """
    if not places:
        return text
    names = "|".join(map(re.escape, sorted(places, key=len, reverse=True)))
    return re.sub(rf"(?<![\w./-])({names})(?![\w.-])", lambda match: places[match[1]], text)
