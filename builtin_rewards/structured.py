"""Rewards for JSON: is it one JSON value, does it satisfy the row's JSON Schema, are its fields the row's."""

from __future__ import annotations

import functools
import json
import math
import os
import re
from collections import Counter
from collections.abc import Mapping
from typing import Any, NamedTuple

from builtin_rewards.adjustable import adjustable, require
from builtin_rewards.extras import extra
from builtin_rewards.reading.completion_json import completion_json
from builtin_rewards.reading.json_values import (
    GoldObject,
    count_leaves,
    count_nulls,
    counted_names,
    deeper_than,
    expected_json,
    read_json,
    same_json,
)
from builtin_rewards.reading.normalisation import normalise
from rewardkit import Reward, Score, reward
from rewardkit.extending import plain_json, shorten

_DRAFTS = ("3", "4", "6", "7", "2019-09", "2020-12")
_KINDS: dict[str, type] = {"any": object, "object": dict, "array": list}
_SURELY_SHALLOW = 64  # where a value is no deeper than this, a validation that recurses too deep is the schema's fault
_SHOWN_CHARS = 200
# What the library raises for broken schemas that their draft's own schema accepts.
_BROKEN = (AttributeError, LookupError, OverflowError, RecursionError, TypeError, ValueError, re.error)


def _value_in(completion: str) -> Any:
    """Return the one JSON value in a completion, or the score of a completion without one."""
    try:
        return completion_json(completion)
    except ValueError as error:
        return Score(0.0, reason=str(error))


@adjustable
def json_valid(kind: str = "any") -> Reward[..., Score]:
    """Return ``json_valid`` with these settings.

    Args:
        kind: What the value must be: ``any``, ``object`` or ``array``.
    """
    require(kind in _KINDS, f"one of {', '.join(_KINDS)}", kind=kind)

    @reward(score_range=(0, 1))
    def json_valid(completion: str) -> Score:
        """1.0 if the completion is one JSON value, otherwise 0.0 with the reason.

        It reads the last fenced block marked ``json``, else the last unmarked one, else the whole answer: the text
        after the last thought, or in it the last ``<answer>`` tags, if there are any and they do not differ. A
        completion that is JSON as it stands is the answer. A block that the words right before or behind it deny or
        take back does not count. It ignores a byte order mark, and stop tokens at the end (``<|im_end|>``, ``</s>`` and
        the like).

        Strict by RFC 8259: no ``NaN`` or ``Infinity``, no comments, no trailing comma, no text before or after the
        value. It also refuses an object with a key twice, numbers beyond a double's range, and nesting of about 1,000
        levels or more. A bare ``42`` or ``null`` is JSON too. Never ``None``.
        """
        value = _value_in(completion)
        if isinstance(value, Score):
            return value
        fits = isinstance(value, _KINDS[kind])
        return Score(float(fits), reason="one JSON value" if fits else f"JSON, but no {kind}")

    return json_valid


# Keywords that assert nothing, beside those that a draft's validator checks.
_ANNOTATIONS = frozenset({
    *("$anchor", "$comment", "$defs", "$id", "$schema", "$vocabulary", "contentEncoding", "contentMediaType"),
    *("contentSchema", "default", "definitions", "deprecated", "description", "else", "examples", "id", "readOnly"),
    *("then", "title", "writeOnly"),
})  # fmt: skip


def _schema_help(schema: object) -> str:
    """Return what a schema of a wrong type should be."""
    makers = [name for name in ("model_json_schema", "json_schema") if callable(getattr(schema, name, None))]
    if makers:
        return f"JSON text, a dict or a bool: the schema of a pydantic model is what its {makers[0]}() returns"
    if isinstance(schema, os.PathLike):
        return "JSON text, a dict or a bool; read a file with Path(...).read_text()"
    return "JSON text, a dict or a bool; that of a type is pydantic.TypeAdapter(...).json_schema()"


def _require_schema(schema: object, validator: Any) -> None:
    """Raise a ValueError for a setting of which no validator was made, or that has no keyword, as an example has."""
    is_path = isinstance(schema, str) and schema.endswith(".json")
    advice = "; read a file with Path(...).read_text()" if is_path else ""
    require(not isinstance(validator, str), f"a valid schema: {validator}{advice}", schema=schema)
    keys = validator.schema.keys() if isinstance(validator.schema, dict) else ()
    has_keyword = not keys or not _ANNOTATIONS.union(validator.VALIDATORS).isdisjoint(keys)
    require(has_keyword, "a JSON Schema, with keywords such as 'type' and 'properties'; this has none", schema=schema)


def _without_nulls(schema: Any) -> Any:
    """Return a row's schema without the keywords that are null, with which Arrow pads.

    A ``{"const": null}`` stays, also beside keywords such as ``$schema``: it is all that such a schema says.
    """
    if isinstance(schema, dict):
        is_const = "const" in schema and all(name == "const" or name.startswith("$") for name in schema)
        return {name: _without_nulls(part) for name, part in schema.items() if part is not None or is_const}
    return [_without_nulls(part) for part in schema] if isinstance(schema, list) else schema


def _read_schema(draft: str, remotes: Any, text: str) -> Any:
    """Return jsonschema's validator of a schema's text, or what is wrong with it."""
    library, specification = extra("jsonschema"), extra("referencing.jsonschema").specification_with
    try:
        schema = read_json(text)
        if not isinstance(schema, dict | bool):
            return f"a schema is an object or a bool, not {type(schema).__name__}"
        default = getattr(library, f"Draft{draft.replace('-', '')}Validator")
        validator = library.validators.validator_for(schema, default=default)
        validator.check_schema(schema)
        if not isinstance(remotes, extra("referencing").Registry):
            registry = extra("referencing").Registry()  # unlike jsonschema's own, it fetches nothing
            default_specification = specification(default.META_SCHEMA["$schema"])
            remotes = registry.with_contents((remotes or {}).items(), default_specification=default_specification)
        registry = extra("jsonschema_specifications").REGISTRY.combine(remotes)
        root = specification(validator.META_SCHEMA["$schema"]).create_resource(schema)
        _check_references(root, registry)
        return validator(schema, registry=registry)
    except library.SchemaError as error:
        return f"{error.json_path}: {error.message}"[:_SHOWN_CHARS]
    except (*_BROKEN, extra("referencing.exceptions").Unresolvable) as error:
        return f"{type(error).__name__}: {error}"[:_SHOWN_CHARS]


def _check_references(root: Any, registry: Any) -> None:
    """Raise where a reference leads nowhere, even if unused: else a completion could choose between score and skip."""
    pending = [(registry.resolver_with_root(root), root)]
    visits: set[int] = set()
    while pending:
        resolver, resource = pending.pop()
        if id(resource.contents) in visits or not isinstance(resource.contents, Mapping):
            continue
        visits.add(id(resource.contents))
        for reference in (resource.contents.get(keyword) for keyword in ("$ref", "$dynamicRef")):
            if isinstance(reference, str):
                match = resolver.lookup(reference)
                target = type(resource).from_contents(match.contents, default_specification=resource._specification)
                pending.append((match.resolver, target))
        pending.extend((resolver.in_subresource(part), part) for part in resource.subresources())


def _schema_score(validator: Any, value: object, partial: bool) -> Score:
    names = validator.schema.get("required") if isinstance(validator.schema, dict) else None
    required = set(names if isinstance(names, list) else ())
    present = required & value.keys() if isinstance(value, dict) else set()
    faulty: set[object] = set()
    first = None
    try:
        for error in validator.iter_errors(value):
            first = first or error
            faulty.update(present.intersection(list(error.absolute_path)[:1]))
    except RecursionError:
        if deeper_than(value, _SURELY_SHALLOW):
            return Score(0.0, reason="nested too deep to be validated")
        return Score(None, reason="the row's schema cannot be used: its references lead round in a circle")
    except (re.error, OverflowError, extra("referencing.exceptions").Unresolvable) as problem:
        reason = f"the row's schema cannot be used: {type(problem).__name__}: {problem}"
        return Score(None, reason=reason[:_SHOWN_CHARS])
    total, good = len(required), len(present) - len(faulty)
    metrics = {"required": float(total), "satisfied": float(good)}
    if first is None:
        return Score(1.0, reason="valid", metrics=metrics)
    share = good / total if good < total else total / (total + 1)
    reason = f"not valid, {good} of {total} required properties satisfied; {first.json_path}: {first.message}"
    return Score(share if partial else 0.0, reason=reason[:_SHOWN_CHARS], metrics=metrics)


@adjustable
def json_schema(
    schema: Any = None, *, remotes: Any = None, draft: str = "2020-12", partial: bool = True
) -> Reward[..., Score]:
    """Return ``json_schema`` with these settings.

    Args:
        schema: The schema of all rows, as text, dict or bool; ``None`` reads the column ``schema``.
        remotes: What ``$ref`` may point to besides the schema itself: a dict from URI to schema, or a
            ``referencing.Registry``. A registry of one's own may fetch if it is made to; nothing else does.
        draft: The draft of schemas without ``$schema``: ``3``, ``4``, ``6``, ``7``, ``2019-09`` or ``2020-12``.
        partial: Give partial credit; otherwise a value that is not valid scores 0.0.
    """
    require(draft in _DRAFTS, f"one of {', '.join(_DRAFTS)}", draft=draft)
    require(schema is None or isinstance(schema, str | Mapping | bool), _schema_help(schema), schema=schema)
    schema_in = functools.lru_cache(256)(functools.partial(_read_schema, draft, remotes))
    default = schema if schema is None or isinstance(schema, str) else json.dumps(schema)
    if default is not None:
        _require_schema(schema, schema_in(default))

    @reward(score_range=(0, 1))
    def json_schema(completion: str, schema: Any = None) -> Score:
        """1.0 if the completion is JSON that satisfies the schema, less by the share of required properties otherwise.

        Formula, for a value that is not valid: s / r, with r the names in the schema's top-level ``required`` and s
        those that are present with nothing wrong inside; r / (r + 1) where s = r and some other rule is broken. 0.0 for
        a value that is not an object, for a schema that requires nothing, and for text that is not JSON, which is found
        and read as in ``json_valid``.

        Column ``schema``: a JSON Schema as JSON text, dict or bool; in a dict a keyword that is null does not count, as
        Arrow pads rows so. ``$schema`` names its draft, by default 2020-12.
        Regular expressions are Python's, and may take exponential time, which the worker's deadline bounds. ``format``
        is not asserted. ``$ref`` is never fetched: it leads to the schema, the drafts' own schemas or the setting
        ``remotes``. The validator is the library jsonschema.

        ``None`` where the row has no schema or a broken one: no JSON, not valid by its draft, a reference that leads
        nowhere or round in a circle.
        """
        source = schema if default is None else default
        if source is None or (isinstance(source, str) and source.strip() in ("", "null", "None")):
            return Score(None, reason="the row has no schema")
        try:
            validator = schema_in(source if isinstance(source, str) else json.dumps(_without_nulls(plain_json(source))))
        except (TypeError, ValueError, RecursionError) as error:
            validator = f"no JSON: {error}"
        if isinstance(validator, str):
            return Score(None, reason=f"the row's schema cannot be used: {validator}")
        value = _value_in(completion)
        return value if isinstance(value, Score) else _schema_score(validator, value, partial)

    return json_schema


# How many times the expected fields may be given, and how many fields may be compared without order.
_MAX_EXTRA, _MAX_UNORDERED = 10, 200
_MISSING = object()  # no JSON value equals it
_NAMED = 3  # fields of a kind that a reason names
_KIND_NAMES: dict[type, str] = {
    dict: "an object",
    list: "a list",
    str: "a text",
    bool: "a bool",
    int: "a number",
    float: "a number",
    type(None): "null",
}
_normal = functools.lru_cache(maxsize=4096)(normalise)


def _sizes(tally: Counter[str]) -> tuple[int, ...]:
    """Return how many values a tally counts: expected ones, and extra ones by kind."""
    return tally["fields"], tally["names"], tally["items"]


class _Comparison(NamedTuple):
    ordered: bool
    text: str
    rel: float
    abs: float
    extra: float
    partial: bool
    per_field: bool

    def field_metrics(self, expected: object, value: object) -> dict[str, float]:
        """Return the share of each of the answer's own fields that is right; nothing unless it is set."""
        if not self.per_field or not isinstance(expected, dict):
            return {}
        shares = {name: tally["right"] / sum(_sizes(tally)) for name, tally in self._by_field(expected, value).items()}
        return {f"field/{name}": share for name, share in shares.items()}

    def score(self, expected: dict[str, Any] | list[Any], value: object) -> Score:
        """Return the share of the expected fields that are right."""
        fields = count_leaves(expected)
        if (total := count_leaves(value)) > _MAX_EXTRA * (fields + count_nulls(expected) + 1):
            reason = f"{total} values given, {fields} expected"
            return Score(0.0, reason=reason, metrics=self.field_metrics(expected, _MISSING))
        tally = self.tally(expected, value)
        surplus = tally["names"] + tally["items"]
        share = tally["right"] / (fields + self.extra * tally["names"] + tally["items"])
        metrics = {"right": float(tally["right"]), "fields": float(fields), "extra": float(surplus)}
        metrics |= self.field_metrics(expected, value)
        reason = f"{tally['right']} of {fields} fields right, {surplus} extra"
        if share < 1.0 or surplus:
            reason += self._differences(expected, value)
        return Score(share if self.partial or share == 1.0 else 0.0, reason=reason, metrics=metrics)

    def _differences(self, expected: dict[str, Any] | list[Any], value: object) -> str:
        """Return the names of an answer that are wrong, missing or extra, as a part of a reason; at most 3 of each."""
        kind = dict if isinstance(expected, dict) else list
        if type(value) is not kind:
            return f": {_KIND_NAMES[type(value)]}, not {_KIND_NAMES[kind]}"
        if not isinstance(expected, dict) or not isinstance(value, dict):
            return ""
        tallies = self._by_field(expected, value)
        extra_names = counted_names(expected, value) - expected.keys()
        names = {
            "wrong": [name for name, own in tallies.items() if name in value and own["right"] < sum(_sizes(own))],
            "missing": [name for name in expected if name not in value],
            "extra": [name for name in value if name in extra_names],
        }
        parts = [f"{kind} {', '.join(map(shorten, own[:_NAMED]))}" for kind, own in names.items() if own]
        return "".join(f"; {part}" for part in parts)

    def _by_field(self, expected: dict[str, Any], value: object) -> dict[str, Counter[str]]:
        fields = value if isinstance(value, dict) else {}
        return {name: self.tally(part, fields.get(name, _MISSING)) for name, part in expected.items()}

    def tally(self, expected: object, value: object) -> Counter[str]:
        """Count the fields expected, those that are right, and what is extra: under ``names``, and ``items``."""
        self._count(expected, value, tally := Counter[str]())
        return tally

    def _count(self, expected: Any, value: Any, tally: Counter[str]) -> None:
        lists = isinstance(expected, list) and isinstance(value, list)
        if not expected or not (lists or (isinstance(expected, dict) and isinstance(value, dict))):
            tally["right"] += self._is_right(expected, value)
            tally["fields"] += count_leaves(expected)
            return
        if lists:
            value = dict(enumerate(value)) if self.ordered else self._arrange(expected, value)
            expected = dict(enumerate(expected))
        for name, part in expected.items():
            self._count(part, value.get(name, _MISSING), tally)
        extra_names = counted_names(expected, value) - expected.keys()
        for name in extra_names:
            is_null = isinstance(expected, GoldObject) and name in expected.nulls  # a value in its place is a wrong one
            tally["items" if lists or is_null else "names"] += 1 if is_null else count_leaves(value[name])

    def _arrange(self, expected: list[Any], values: list[Any]) -> dict[int, Any]:
        """Return the items by index, each at that of its partner, the others at free ones."""
        items, arrangement = dict(enumerate(values)), dict[int, Any]()
        pairs = (
            (-self._likeness(item, value), index, position)
            for index, item in enumerate(expected)
            for position, value in enumerate(values)
        )
        for worth, index, position in sorted(pairs):
            if worth and index not in arrangement and position in items:
                arrangement[index] = items.pop(position)
        gaps = [index for index in range(len(expected) + len(items)) if index not in arrangement]
        return arrangement | dict(zip(gaps, items.values(), strict=False))

    def _likeness(self, expected: object, value: object) -> float:
        tally = self.tally(expected, value)
        total = tally["fields"] + tally["names"] + tally["items"]
        return 2.0 if same_json(expected, value) else tally["right"] / total  # equal items are paired first

    def _is_right(self, expected: object, value: object) -> bool:
        is_normalised = self.text == "normalised" and isinstance(expected, str) and isinstance(value, str)
        if is_normalised and _normal(expected) == _normal(value):
            return True
        if same_json(expected, value):
            return True
        if isinstance(expected, bool) or isinstance(value, bool):
            return False
        if not isinstance(expected, int | float) or not isinstance(value, int | float):
            return False
        return abs(value - expected) <= max(self.abs, self.rel * abs(expected))


@adjustable
def json_fields(
    *,
    ordered: bool = True,
    text: str = "exact",
    rel: float = 0.0,
    abs: float = 0.0,
    extra: float = 1.0,
    partial: bool = True,
    per_field: bool = False,
) -> Reward[..., Score]:
    """Return ``json_fields`` with these settings.

    Args:
        ordered: Compare lists item by item. Otherwise equal items are paired first, then those that agree most, each
            item once, and what is left in its order.
        text: How text is compared: ``exact``, to the letter, or ``normalised``, as ``normalized_match`` does it.
        rel: How far a number may be off, as a share of the expected one; from 0 to below 1.
        abs: How far a number may be off; the larger of the two counts.
        extra: How many right fields one under an unexpected name costs; 0 allows such names.
        partial: Give partial credit; otherwise a value with any field missing, wrong or extra scores 0.0.
        per_field: Add a metric ``field/<name>`` for each name of an answer that is an object: the share of the values
            below it that are right, 0.0 where the completion is not JSON.
    """
    require(text in ("exact", "normalised"), "exact or normalised", text=text)
    for name, number, below in (("rel", rel, 1.0), ("abs", abs, math.inf), ("extra", extra, math.inf)):
        require(0 <= number < below, f"a number from 0 up, below {below:g}", **{name: number})
    comparison = _Comparison(ordered, text, rel, abs, extra, partial, per_field)

    @reward(score_range=(0, 1))
    def json_fields(completion: str, answer: Any) -> Score:
        """The share of the answer's fields that the completion's JSON has right, 0 to 1; extra ones cost.

        Formula: right / (fields + extra). ``fields`` counts the values in ``answer`` that hold no others, however deep:
        each text, number, ``true``, ``false`` and ``null``, and each empty object and list. A field is right if the
        completion has the same value at its path of names and list positions. ``extra`` counts the completion's values
        at paths that ``answer`` does not have. A value of another kind makes the field at its path wrong, and is not
        extra. A completion with more than ten times as many values as the answer, and ten more, scores 0.0.

        Values are equal as JSON: 1 is 1.0, and neither ``true`` nor ``"1"``; ``null`` is a value, and not a missing
        one; text counts to the letter, and names always do. Text is found and read as in ``json_valid``: 0.0 for
        anything but one JSON value.

        Column ``answer``: an object or a list, as JSON text or as it is. In an object that is not text, a name whose
        value is null may be missing, as data sets pad rows so: it is no field, null in its place is no extra one, and
        any other value in its place is a wrong one; a date or time that a library read there is right in every text of
        ISO 8601 that names it. ``None`` where the row has no answer, where it
        is nested more than 100 deep or empty, and, where lists are unordered, where it has more than 200 fields.
        Metrics: ``right``, ``fields``, ``extra``, and with ``per_field`` one for each field.
        """
        try:
            expected = expected_json(answer)
        except ValueError as error:
            return Score(None, reason=str(error))
        is_null = isinstance(expected, GoldObject) and bool(expected.nulls)  # which is right without any value
        if not isinstance(expected, dict | list) or not (expected or is_null):
            return Score(None, reason="the row's answer has no fields: expected an object or a list that is not empty")
        if not ordered and count_leaves(expected) > _MAX_UNORDERED:
            return Score(None, reason=f"the row's answer has more than {_MAX_UNORDERED} fields, too many without order")
        value = _value_in(completion)
        if isinstance(value, Score):
            return Score(value.value, value.reason, comparison.field_metrics(expected, _MISSING))
        return comparison.score(expected, value)

    return json_fields
