"""What a judge reads of a dataset's row: texts, passages, and criteria of the row's own.

Owns the rules by which columns become these, in a run and in ``rewardkit check``. What they mean is ``rubric``'s.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from builtin_rewards.judge.conversation import from_json
from builtin_rewards.judge.errors import JudgeSetupError, is_number
from builtin_rewards.judge.prompt import near_names
from builtin_rewards.judge.rubric import Criterion, Rubric
from rewardkit.extending import ColumnValueError, Rule, TextOrder, build_coercer, shorten

_KEYS = {
    **dict.fromkeys(("text", "criterion", "description"), "text"),
    **dict.fromkeys(("weight", "points"), "weight"),
    **{key: key for key in ("kind", "must", "name", "id", "title", "tags")},
}
"""What the keys of a criterion mean, of several for one the first; the last three are passed over."""
_MOST_CHARS = 4000
"""Characters that one criterion may have, white space folded."""
_text = build_coercer(str | None)


def passages(value: object) -> str | None:
    """Return a column's text; of a list of several texts all that say something, numbered; refuses others."""
    listed = value if isinstance(value, str) else from_json(value)
    if not isinstance(listed, list | tuple):
        return _text(listed)  # type: ignore[return-value]  # as annotated
    if not all(isinstance(one, str) for one in listed):
        raise ColumnValueError.of("text or a list of texts", value)
    texts = [_text(one) for one in listed]
    if len(texts) == 1:
        return texts[0]  # type: ignore[return-value]  # as annotated
    return "\n\n".join(f"[{number}] {text}" for number, text in enumerate(texts, 1) if text is not None) or None


PASSAGES = Annotated[Any, Rule("text or a list of texts", passages, TextOrder.OTHER)]
"""The annotation of a column that fills a field."""


def rubric_annotation(like: Rubric) -> Any:
    """Return the annotation of a column of rubrics, whose scale and cap are those of another rubric."""

    def convert(value: object) -> Rubric | None:
        try:
            return row_rubric(value, like)
        except JudgeSetupError as wrong:
            raise ColumnValueError.of("a list of criteria", value, str(wrong)) from None

    return Annotated[Any, Rule("a list of criteria", convert, TextOrder.OTHER)]


def row_rubric(value: object, like: Rubric) -> Rubric | None:
    """Return the rubric in a column: a list, or one as JSON, of texts or objects; ``None`` where there is nothing.

    Raises:
        JudgeSetupError: It is no such list; names the criterion and what is wrong with it.
    """
    listed = from_json(value)
    if listed is None or (isinstance(listed, str) and _text(listed) is None):
        return None
    if not isinstance(listed, list | tuple):
        raise JudgeSetupError(f"it is no list, nor JSON of one, but {type(listed).__name__}")
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
