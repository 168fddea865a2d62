"""What a judge reads from a dataset row, and how columns are coerced to it; ``rubric`` owns what that means."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from builtin_rewards.endpoint.errors import JudgeSetupError, is_number, near_names
from builtin_rewards.judge.conversation import from_json
from builtin_rewards.judge.rubric import MOST_CRITERIA, Criterion, Rubric
from builtin_rewards.reading.public_rubrics import sign_doubt, task_leaves
from rewardkit.extending import Coercer, ColumnValueError, TextOrder, build_coercer, shorten

_KEYS = {  # what a criterion's keys mean; of several for one thing the first counts, the last three are ignored
    **dict.fromkeys(("text", "criterion", "description"), "text"),
    **dict.fromkeys(("weight", "points"), "weight"),
    **{key: key for key in ("kind", "must", "name", "anchors", "id", "title", "tags")},
}
_MOST_TASKS = 1_000  # leaves of a tree of tasks: some times what PaperBench's have
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
    criteria = () if rubric is None else rubric.criteria
    doubts = ((criterion, sign_doubt(criterion.weight, criterion.description)) for criterion in criteria)
    return next((f"criterion {criterion.name!r} {doubt}" for criterion, doubt in doubts if doubt), None)


def row_rubric(value: object, like: Rubric) -> Rubric | None:
    """Return a column's rubric (texts, objects, a tree of tasks or JSON); JudgeSetupError names the wrong criterion."""
    entries = from_json(value)
    most = MOST_CRITERIA
    if isinstance(entries, Mapping) and "requirements" in entries:
        try:
            entries, most = task_leaves(entries), _MOST_TASKS
        except ValueError as error:
            raise JudgeSetupError(str(error)) from None
    if entries is None or (isinstance(entries, str) and _text(entries) is None):
        return None
    if not isinstance(entries, list | tuple):
        lack = ", without the 'requirements' of a tree of tasks" if isinstance(entries, Mapping) else ""
        raise JudgeSetupError(f"it is neither a list nor JSON of one, but {type(entries).__name__}{lack}")
    criteria = [_criterion(entry, number) for number, entry in enumerate(entries, 1)]
    return Rubric(criteria, like.scale, not_applicable=like.not_applicable, cap=like.cap, most=most)


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
