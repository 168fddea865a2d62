"""The one JSON value of a completion, for rewards of one's own that shall read it as the built-in ones do."""

from __future__ import annotations

from typing import Any

from builtin_rewards.reading.json_values import answer_part, fence_objection, json_text, read_json

__all__ = ["completion_json"]


def completion_json(completion: str) -> Any:
    """Return the one JSON value in a completion, which ``json_valid``, ``json_schema`` and ``json_fields`` read.

    The value is a dict, a list, a text, a number, a bool, or ``None`` for the JSON ``null``: the last fenced block
    marked ``json``, else the last unmarked one, else the whole answer, read strictly by RFC 8259.

    Raises:
        ValueError: The completion has no JSON that counts, with the reason of ``json_valid``: ``not JSON: Extra data``.
            pydantic's ``ValidationError`` is a ``ValueError`` too, so one ``except`` covers both.
        TypeError: It is not a text.
    """
    if not isinstance(completion, str):
        kind = type(completion).__name__
        raise TypeError(f"completion_json: expected a text, got {kind}; a reward's `completion: str` is one")
    text = json_text(completion)
    if text is None:
        raise ValueError("no JSON in the completion")
    if denial := fence_objection(answer_part(completion)):
        raise ValueError(f"the JSON does not count: {denial}")
    try:
        return read_json(text)
    except ValueError as error:
        raise ValueError(f"not JSON: {error}") from None
