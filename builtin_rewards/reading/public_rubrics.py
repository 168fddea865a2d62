"""Forms of rubrics in public data sets: PaperBench's trees of tasks, and the pitfalls of Rubrics as Rewards."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from rewardkit.extending import shorten

_DEEPEST = 20  # levels of a tree of tasks: three times what PaperBench's have
# Words by which a criterion says that the answer leaves something out, and that it makes a mistake.
_LEAVES_OUT = re.compile(
    r"(?i)(?:pitfall(?: criteria)?:\s*)?(?:\w+\s+){0,4}(?:(?:do|does|did)(?: not|n['\u2019]t)|never|avoids?|refrains|"
    r"(?:contains?|makes?|has|gives?) no|is free of)\b"
)
_MISTAKE = re.compile(
    r"(?i)pitfall\b|(?:(?!(?:that|how|why|when|where)\b)\w+\s+){0,3}"
    r"(?:fail(?:s|ed|ure)? to|omits?|neglects?|lacks?|overlooks?|forgets?|misses|leaves? out)\b"
)


def sign_doubt(weight: float, text: str) -> str | None:
    """Return why the sign of a criterion's weight may be wrong, by its text; ``None`` if it is not in doubt."""
    claim = f"of weight {weight:g} says {shorten(text)}"
    if weight < 0 and _LEAVES_OUT.match(text):
        return f"{claim}: an answer that leaves it out loses points; if that is right, turn the sign"
    if weight > 0 and _MISTAKE.match(text):
        return f"{claim}: an answer with the mistake gains points; a pitfall has a negative weight"
    return None


def task_leaves(task: Mapping[str, Any]) -> list[dict[str, object]]:
    """Return the leaves of PaperBench's tree of tasks as criteria (arXiv 2504.01848, section 3).

    A task's score is the mean of its sub-tasks' scores by their weights, so a leaf weighs the product of its own and
    its parents' shares. Its text has its parents', without the root's. A weight of 0 leaves a task out.

    Raises:
        ValueError: A task has another form; names it.
    """
    return list(_leaves(task, 1.0, ()))


def _leaves(task: object, share: float, path: tuple[str, ...]) -> Iterator[dict[str, object]]:
    text = task.get("requirements") if isinstance(task, Mapping) else None
    if not isinstance(task, Mapping) or not isinstance(text, str) or len(path) > _DEEPEST:
        expected = f"expected 'requirements', 'weight' and 'sub_tasks', at most {_DEEPEST} levels"
        raise ValueError(f"task {shorten(task)} below {' > '.join(path)!r}: {expected}")
    value = task.get("sub_tasks")
    if value is not None and (not isinstance(value, Iterable) or isinstance(value, str | Mapping)):
        raise ValueError(f"sub_tasks of {shorten(text)}: {shorten(value)}: expected a list of tasks")
    tasks = [] if value is None else list(value)
    weights: list[Any] = [part.get("weight") if isinstance(part, Mapping) else None for part in tasks]
    wrong = [weight for weight in weights if not _is_weight(weight)]
    if wrong or (tasks and not any(weights)):
        problem = f"weight={shorten(wrong[0])}" if wrong else "no weight above 0"
        raise ValueError(f"sub_tasks of {shorten(text)}: {problem}; expected numbers of 0 or more, not all 0")
    if not tasks:
        yield {"text": " > ".join((*path[1:], text)), "weight": share}
    total = math.fsum(weights)
    for part, weight in zip(tasks, weights, strict=True):
        if weight:
            yield from _leaves(part, share * weight / total, (*path, text))


def _is_weight(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 1e300
