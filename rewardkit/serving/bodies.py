"""What requests and replies are made of: JSON within limits, fields of the right type, and errors that name them."""

from __future__ import annotations

import json
import math
import operator
import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import orjson

from rewardkit.forms import why_no_text
from rewardkit.rows.strict_json import decode, reason_of
from rewardkit.serving.layers import DEPTH, is_deep
from rewardkit.shown.text import shortened
from rewardkit.types import Outcome, Rollout, Status

MOST_CONTAINERS = 1_000_000  # Lists and objects of a body: each takes up to a hundred times its bytes
_STRING = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"?', re.DOTALL)  # never fails and never goes back: linear in any body
_LONG_NUMBER = re.compile(rb"[\[,:\s]-?\d{19}")
_AS_ZEROS = bytes.maketrans(b"123456789", b"0" * 9)
_STRIDE, _DIGITS_SEEN = 6, b"0" * 3
"""Of 19 digits in a row every sixth byte has at least three, so that a look at those rules most bodies out."""
_MARK = b"\xef\xbb\xbf"  # with which some programs begin a text
_FIELDS = frozenset(("prompt", "completion", "example", "completion_ids", "sample"))
_PREVIEW_CHARS = 60
_SHOWN_FIELDS = 8

_ALWAYS = frozenset({"status", "score", "cause", "reason", "duration_s", "version"})
_EMPTY = Outcome(Status.SKIPPED, None).as_json()
_further = operator.itemgetter(*(index for index, name in enumerate(Outcome._fields) if name not in _ALWAYS))
_NOTHING_FURTHER = _further(Outcome(Status.SKIPPED, None))


class RefusedError(Exception):
    """A request is not answered with scores, but with an HTTP status, further headers, and why and what to do."""

    def __init__(self, status: int, reason: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(reason)
        self.status, self.headers = status, dict(headers or {})


def loads(body: bytes) -> Any:
    """Return the JSON of a body.

    Raises RefusedError for numbers that are not finite, lists and objects too deep or too many, and what is not JSON.
    """
    body = body.removeprefix(_MARK)
    if _may_have_many(body) and _may_have_many(_STRING.sub(b"", body)):  # before they are made, which takes memory
        raise RefusedError(
            413, f"the body has more than {MOST_CONTAINERS:,} lists and objects; send fewer rows at once"
        )
    try:
        value = _decode(body) if _may_have_long(body) else orjson.loads(body)
    except orjson.JSONDecodeError:
        value = _decode(body)
    if is_deep(value):
        raise RefusedError(400, f"the body is nested deeper than {DEPTH} layers")
    return value


def _may_have_many(body: bytes) -> bool:
    """Whether a body may have too many lists and objects; brackets in texts count as well."""
    return len(body) > MOST_CONTAINERS and body.count(b"[") + body.count(b"{") > MOST_CONTAINERS


def _may_have_long(body: bytes) -> bool:
    """Whether a whole number may pass 64 bits, which the quick reader would make a float; the cheap look first."""
    return _DIGITS_SEEN in body[::_STRIDE].translate(_AS_ZEROS) and _LONG_NUMBER.search(body) is not None


def _decode(body: bytes) -> Any:
    """Read JSON that the quick reader refuses or changes, as halves of surrogate pairs; refuse anything else."""
    try:
        return decode(body.decode())
    except UnicodeDecodeError as error:
        raise RefusedError(400, f"the body is not UTF-8: {error.reason} at byte {error.start}") from None
    except RecursionError:
        raise RefusedError(400, f"the body is nested deeper than {DEPTH} layers") from None
    except ValueError as error:
        raise RefusedError(400, f"the body: {reason_of(error)}") from None


def dumps(value: object) -> bytes:
    """Return a value as JSON; halves of surrogate pairs are escaped, and numbers that are not finite are null."""
    try:
        return orjson.dumps(value)
    except TypeError:
        return json.dumps(value).encode()


def preview(value: object) -> str:
    """Return a value for an error, cut where it is long."""
    return shortened(json.dumps(value), _PREVIEW_CHARS)


def an_object(value: object, where: str = "the body") -> dict[str, Any]:
    """Return a JSON object, or refuse anything else."""
    if type(value) is not dict:
        raise RefusedError(422, f"{where}: expected an object, got {preview(value)}")
    return value


def a_list(body: Mapping[str, Any], name: str, max_rows: int) -> list[Any]:
    """Return a list of at most ``max_rows`` rows, or refuse anything else."""
    value = body.get(name)
    if name not in body:
        has = f"; it has {', '.join(map(repr, sorted(body)[:_SHOWN_FIELDS]))}" if body else ""
        raise RefusedError(422, f"{name} is missing in the body: expected a list{has}")
    if type(value) is not list:
        raise RefusedError(422, f"{name}: expected a list, got {preview(value)}")
    if len(value) > max_rows:
        raise RefusedError(413, f"{name}: {len(value):,} rows, and a request may have {max_rows:,}; send several")
    return value


def a_text(value: object, where: str) -> str | list[dict[str, Any]]:
    """Return a text, or a list of chat messages; refuse anything else."""
    if type(value) is str:
        return value
    if type(value) is not list or not value:
        raise RefusedError(422, f"{where}: expected a string or a list of messages, got {preview(value)}")
    for number, message in enumerate(value):
        if type(message) is not dict or type(message.get("role")) is not str:
            raise RefusedError(422, f"{where}[{number}]: expected a message with a role, got {preview(message)}")
    reason = why_no_text(value)
    if reason is not None:
        raise RefusedError(422, f"{where}: {reason}")
    return value


def a_number(body: Mapping[str, Any], name: str, *, whole: bool) -> Any:
    """Return a number of 0 or more, or ``None`` where the body has no such field; refuse anything else."""
    value = body.get(name)
    if value is None:
        return None
    is_number = type(value) is int or (not whole and type(value) is float and math.isfinite(value))
    if not is_number or value < 0:
        raise RefusedError(
            422, f"{name}: expected a {'whole ' if whole else ''}number of 0 or more, got {preview(value)}"
        )
    return value


def unknown_fields(names: Collection[str]) -> str:
    """Return the names of fields that nothing reads, for an error, of many the first."""
    listed = ", ".join(repr(shortened(name, _PREVIEW_CHARS)) for name in sorted(names)[:_SHOWN_FIELDS])
    more = ", …" if len(names) > _SHOWN_FIELDS else ""
    return f"unknown field{'s' if len(names) > 1 else ''} {listed}{more}"


def a_rollout(value: object, where: str) -> Rollout:
    """Return the rollout of an object of ``/v1/score``; refuse anything else."""
    row = an_object(value, where)
    if not row.keys() <= _FIELDS:
        names = "prompt, completion, example, completion_ids and sample; columns of the data go into 'example'"
        raise RefusedError(422, f"{where}: {unknown_fields(row.keys() - _FIELDS)}; there are {names}")
    example = row.get("example")
    if example is None:
        example = {}
    elif type(example) is not dict:
        raise RefusedError(422, f"{where}.example: expected an object, got {preview(example)}")
    ids = row.get("completion_ids")
    if ids is not None and (type(ids) is not list or any(type(number) is not int for number in ids)):
        raise RefusedError(422, f"{where}.completion_ids: expected a list of whole numbers, got {preview(ids)}")
    prompt = a_text(row.get("prompt"), f"{where}.prompt")
    return Rollout(prompt, a_text(row.get("completion"), f"{where}.completion"), example, ids)


def samples_of(rows: Sequence[Mapping[str, Any]]) -> list[str | None]:
    """Return each row's ``sample``, which tells equal rows apart, or ``None``; refuse one that is not a string."""
    samples = [row.get("sample") for row in rows]
    for number, sample in enumerate(samples):
        if sample is not None and type(sample) is not str:
            raise RefusedError(422, f"rollouts[{number}].sample: expected a string, got {preview(sample)}")
    return samples


def outcome_fields(outcome: Outcome) -> dict[str, Any]:
    """Return an outcome for a reply: what every one has, and of the rest what says something."""
    if _further(outcome) == _NOTHING_FURTHER:  # the usual case
        return {
            "status": outcome.status, "score": outcome.score, "reason": outcome.reason, "cause": outcome.cause,
            "duration_s": outcome.duration_s, "version": outcome.version,
        }  # fmt: skip
    fields = outcome.as_json()
    return {name: fields[name] for name in Outcome._fields if name in _ALWAYS or fields[name] != _EMPTY[name]}
