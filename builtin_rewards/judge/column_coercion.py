"""What a judge reads from a dataset row: texts, passages, and the row's own criteria.

Owns how columns are coerced to these, in a run and in ``rewardkit check``; ``rubric`` owns what they mean.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from builtin_rewards.judge.conversation import from_json
from builtin_rewards.judge.errors import JudgeSetupError, is_number
from builtin_rewards.judge.prompt import near_names
from builtin_rewards.judge.rubric import Criterion, Rubric
from rewardkit.extending import Coercer, ColumnValueError, TextOrder, build_coercer, shorten

_KEYS = {
    **dict.fromkeys(("text", "criterion", "description"), "text"),
    **dict.fromkeys(("weight", "points"), "weight"),
    **{key: key for key in ("kind", "must", "name", "id", "title", "tags")},
}
"""What the keys of a criterion mean. Of several keys for one thing the first counts; the last three are ignored."""
_MOST_CHARS = 4000  # characters that one criterion may have, white space folded
_text = build_coercer(str | None)


def passages(value: object) -> str | None:
    """Return a column's text, or of a list of texts all that are not empty, numbered; refuse other values."""
    listed = value if isinstance(value, str) else from_json(value)
    if not isinstance(listed, list | tuple):
        return _text(listed)  # type: ignore[return-value]  # as annotated
    if not all(isinstance(one, str) for one in listed):
        raise ColumnValueError.of("text or a list of texts", value)
    texts = [_text(one) for one in listed]
    if len(texts) == 1:
        return texts[0]  # type: ignore[return-value]  # as annotated
    return "\n\n".join(f"[{number}] {text}" for number, text in enumerate(texts, 1) if text is not None) or None


PASSAGES = Annotated[Any, Coercer("text or a list of texts", passages, TextOrder.OTHER)]
"""The annotation of a column that fills a field."""


def rubric_annotation(like: Rubric) -> Any:
    """Return the annotation of a column of rubrics, which take scale and cap from another rubric."""

    def convert(value: object) -> Rubric | None:
        try:
            return row_rubric(value, like)
        except JudgeSetupError as wrong:
            raise ColumnValueError.of("a list of criteria", value, str(wrong)) from None

    return Annotated[Any, Coercer("a list of criteria", convert, TextOrder.OTHER)]


def row_rubric(value: object, like: Rubric) -> Rubric | None:
    """Return the rubric in a column, a list of texts or objects or its JSON; ``None`` if the column is empty.

    Raises:
        JudgeSetupError: It is no such list; names the criterion and what is wrong with it.
    """
    listed = from_json(value)
    if listed is None or (isinstance(listed, str) and _text(listed) is None):
        return None
    if not isinstance(listed, list | tuple):
        raise JudgeSetupError(f"it is neither a list nor JSON of one, but {type(listed).__name__}")
    criteria = [_criterion(one, number) for number, one in enumerate(listed, 1)]
    return Rubric(criteria, like.scale, not_applicable=like.not_applicable, cap=like.cap)


def _criterion(given: object, number: int) -> Criterion:
    if isinstance(given, str):
        given = {"text": given}
    if not isinstance(given, Mapping):
        raise JudgeSetupError(f"criterion {number} is neither text nor an object, but {shorten(given)}")
    held = {key: value for key, value in given.items() if value is not None}  # data sets fill up what a row lacks
    if odd := [key for key in held if key not in _KEYS]:
        raise JudgeSetupError(f"criterion {number} has {odd[0]!r}; {near_names(str(odd[0]), _KEYS)}")
    known = {_KEYS[key]: held[key] for key in reversed(_KEYS) if key in held}
    text, kind, weight = known.get("text", ""), known.get("kind", "positive"), known.get("weight", 1.0)
    if kind not in ("positive", "negative", "must"):
        raise JudgeSetupError(f"criterion {number}: kind={shorten(kind)}: expected one of positive, negative, must")
    text = " ".join(text.split()) if isinstance(text, str) else ""
    if len(text) > _MOST_CHARS:
        raise JudgeSetupError(f"criterion {number} has {len(text):,} characters; a judge is shown {_MOST_CHARS:,}")
    weight = -abs(weight) if kind == "negative" and is_number(weight) else weight
    return Criterion(known.get("name", f"c{number}"), text, weight, known.get("must", False) or kind == "must")
