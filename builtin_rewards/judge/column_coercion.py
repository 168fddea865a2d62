"""What a judge reads from a dataset row, and how columns are coerced to it; ``rubric`` owns what that means."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Any

from builtin_rewards.judge.conversation import from_json
from builtin_rewards.judge.errors import JudgeSetupError, is_number
from builtin_rewards.judge.prompt import near_names
from builtin_rewards.judge.rubric import MOST_CRITERIA, Criterion, Rubric
from rewardkit.extending import Coercer, ColumnValueError, TextOrder, build_coercer, shorten

_KEYS = {  # what a criterion's keys mean; of several for one thing the first counts, the last three are ignored
    **dict.fromkeys(("text", "criterion", "description"), "text"),
    **dict.fromkeys(("weight", "points"), "weight"),
    **{key: key for key in ("kind", "must", "name", "anchors", "id", "title", "tags")},
}
_MOST_TASKS, _DEEPEST = 1_000, 20  # leaves and levels of a task tree: some times what PaperBench's have
# Words with which a criterion of Rubrics as Rewards says that the answer leaves something out, or makes a mistake.
_LEAVES_OUT = re.compile(r"(?i)(?:pitfall criteria:\s*)?(?:\w+\s+){0,4}(?:does not|doesn't|never|avoids?|refrains)\b")
_PITFALL = re.compile(r"(?i)pitfall\b|(?:\w+\s+){0,3}(?:fails? to|omits?|neglects?)\b")
_MOST_CHARS = 4000  # characters that one criterion may have, white space folded
_text = build_coercer(str | None)


def passages(value: object) -> str | None:
    """Return a column's text, or a list's numbered texts without empty ones; raise ColumnValueError for others."""
    texts = value if isinstance(value, str) else from_json(value)
    if not isinstance(texts, list | tuple | Mapping):
        return _text(texts)  # type: ignore[return-value]  # as annotated
    # An object would pass as JSON text, but a judge is to be shown passages.
    if isinstance(texts, Mapping) or not all(isinstance(text, str) for text in texts):
        raise ColumnValueError.of("text or a list of texts", value)
    coerced = [_text(text) for text in texts]
    if len(coerced) == 1:
        return coerced[0]  # type: ignore[return-value]  # as annotated
    return "\n\n".join(f"[{number}] {text}" for number, text in enumerate(coerced, 1) if text is not None) or None


# The annotation of a column that fills a field.
PASSAGES = Annotated[Any, Coercer("text or a list of texts", passages, TextOrder.OTHER)]


def rubric_annotation(like: Rubric) -> Any:
    """Return the annotation of a column of rubrics, which take scale and cap from another rubric."""

    def convert(value: object) -> Rubric | None:
        try:
            return row_rubric(value, like)
        except JudgeSetupError as error:
            raise ColumnValueError.of("a list of criteria", value, str(error)) from None

    return Annotated[Any, Coercer("a list of criteria", convert, TextOrder.OTHER, doubt=_doubt)]


def _doubt(rubric: Rubric | None) -> str | None:
    """Return which criterion's weight may have the wrong sign; ``None`` if no sign is in doubt."""
    for criterion in () if rubric is None else rubric.criteria:
        text = f"criterion {criterion.name!r} of weight {criterion.weight:g} says {shorten(criterion.description)}"
        if criterion.weight < 0 and _LEAVES_OUT.match(criterion.description):
            return f"{text}: an answer that leaves it out loses points; if that is right, turn the sign"
        if criterion.weight > 0 and _PITFALL.match(criterion.description):
            return f"{text}: an answer with the mistake gains points; a pitfall has a negative weight"
    return None


def row_rubric(value: object, like: Rubric) -> Rubric | None:
    """Return a column's rubric (texts, objects, a tree of tasks or JSON); JudgeSetupError names the wrong criterion."""
    entries = from_json(value)
    most = MOST_CRITERIA
    if isinstance(entries, Mapping) and "requirements" in entries:
        entries, most = [*_leaves(entries)], _MOST_TASKS
    if entries is None or (isinstance(entries, str) and _text(entries) is None):
        return None
    if not isinstance(entries, list | tuple):
        raise JudgeSetupError(f"it is neither a list nor JSON of one, but {type(entries).__name__}")
    criteria = [_criterion(entry, number) for number, entry in enumerate(entries, 1)]
    return Rubric(criteria, like.scale, not_applicable=like.not_applicable, cap=like.cap, most=most)


def _leaves(task: object, share: float = 1.0, path: tuple[str, ...] = ()) -> Iterator[dict[str, object]]:
    """Yield the leaves of PaperBench's tree of tasks as criteria (arXiv 2504.01848, section 3).

    A task's score is the mean of its sub-tasks' scores by their weights, so a leaf weighs the product of its own and
    its parents' shares. Its text has its parents', without the root's. A weight of 0 leaves a task out.
    """
    text = task.get("requirements") if isinstance(task, Mapping) else None
    if not isinstance(task, Mapping) or not isinstance(text, str) or len(path) > _DEEPEST:
        expected = f"expected 'requirements', 'weight' and 'sub_tasks', at most {_DEEPEST} levels"
        raise JudgeSetupError(f"task {shorten(task)} below {' > '.join(path)!r}: {expected}")
    tasks = task.get("sub_tasks") or []
    weights: list[Any] = [part.get("weight") if isinstance(part, Mapping) else None for part in tasks]
    wrong = [weight for weight in weights if not is_number(weight) or weight < 0]
    if wrong or (tasks and not any(weights)):
        problem = f"weight={shorten(wrong[0])}" if wrong else "no weight above 0"
        raise JudgeSetupError(f"sub_tasks of {shorten(text)}: {problem}; expected numbers of 0 or more, not all 0")
    if not tasks:
        yield {"text": " > ".join((*path[1:], text)), "weight": share}
    total = math.fsum(weights)
    for part, weight in zip(tasks, weights, strict=True):
        if weight:
            yield from _leaves(part, share * weight / total, (*path, text))


def _criterion(entry: object, number: int) -> Criterion:
    """Return the criterion of a text or an object; JudgeSetupError names it by its number."""
    if isinstance(entry, str):
        entry = {"text": entry}
    if not isinstance(entry, Mapping):
        raise JudgeSetupError(f"criterion {number} is neither text nor an object, but {shorten(entry)}")
    values = {key: value for key, value in entry.items() if value is not None}  # data sets fill up what a row lacks
    if unknown := [key for key in values if key not in _KEYS]:
        raise JudgeSetupError(f"criterion {number} has {unknown[0]!r}; {near_names(str(unknown[0]), _KEYS)}")
    fields = {_KEYS[key]: values[key] for key in reversed(_KEYS) if key in values}  # so that the first key counts
    text, kind, weight = fields.get("text", ""), fields.get("kind", "positive"), fields.get("weight", 1.0)
    if kind not in ("positive", "negative", "must"):
        raise JudgeSetupError(f"criterion {number}: kind={shorten(kind)}: expected one of positive, negative, must")
    text = " ".join(text.split()) if isinstance(text, str) else ""
    if len(text) > _MOST_CHARS:
        raise JudgeSetupError(f"criterion {number} has {len(text):,} characters; a judge is shown {_MOST_CHARS:,}")
    weight = -abs(weight) if kind == "negative" and is_number(weight) else weight
    must = fields.get("must", False) or kind == "must"
    return Criterion(fields.get("name", f"c{number}"), text, weight, must, fields.get("anchors", {}))
