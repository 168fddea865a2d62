"""Rewards for JSON: is it one JSON value, does it satisfy the row's JSON Schema.

It also owns how the other modules find and read JSON in a completion: :func:`json_text` and :func:`read_json`.
"""

from __future__ import annotations

import functools
import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

from builtin_rewards.adjustable import adjustable
from builtin_rewards.code import extract_code
from builtin_rewards.reading.answer import Rule, final_answer
from builtin_rewards.reading.turn import begins_in_thought, unframed
from rewardkit import Reward, Score, reward

DRAFTS = ("3", "4", "6", "7", "2019-09", "2020-12")
"""The drafts of JSON Schema that ``json_schema`` knows."""

_KINDS: dict[str, tuple[type, ...]] = {"any": (object,), "object": (dict,), "array": (list,)}
_MAX_DIGITS = 300
"""Digits of an integer; more are beyond a double, which is what most readers of JSON hold numbers in."""
_SURELY_SHALLOW = 64
"""Nesting up to which a validation that recurses too deep is the schema's fault."""
_KEPT_SCHEMAS = 256
_BROKEN = (AttributeError, LookupError, OverflowError, RecursionError, TypeError, ValueError, re.error)
"""What the library raises for schemas that are broken beyond what their draft's own schema tells."""
_SHOWN_CHARS = 200


def json_text(completion: str) -> str | None:
    """Gives the text that should be JSON, or ``None`` for none.

    The rule: what follows the thoughts counts, of it only what stands in the last ``<answer>`` tags where there are any
    and they do not differ, unless the completion begins as JSON does. In it the last fenced block marked ``json``, else
    the last unmarked one, else all where there is no fence.
    """
    completion = unframed(completion)
    is_json = completion.lstrip()[:1] in tuple('{["') and not begins_in_thought(completion)
    text = completion if is_json else final_answer(completion, (Rule.TAG,))
    return extract_code(text, "json")


def read_json(text: str) -> Any:
    """Gives the one JSON value that a text is, read strictly by RFC 8259.

    ``NaN`` and ``Infinity`` are refused, and so are an object that has a key twice, numbers beyond a double's range
    and nesting beyond what the standard library's parser takes (about 1,000 levels).

    Raises:
        ValueError: It is no such value; says why.
    """
    try:
        return _DECODER.decode(text)
    except RecursionError:
        raise ValueError("nested too deep") from None


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in made if keys.count(key) > 1)
        raise ValueError(f"the key {twice[:_SHOWN_CHARS]!r} stands twice in an object")
    return made


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON")


def _finite(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise ValueError("a number beyond a double's range")
    return number


def _integer(text: str) -> int:
    if len(text) > _MAX_DIGITS:
        raise ValueError(f"a number of more than {_MAX_DIGITS} digits")
    return int(text)


_DECODER = json.JSONDecoder(
    object_pairs_hook=_unique, parse_constant=_no_constant, parse_float=_finite, parse_int=_integer
)


@adjustable
def json_valid(kind: str = "any") -> Reward[..., Score]:
    """Settings of ``json_valid``.

    Args:
        kind: What the value must be: ``any``, ``object`` or ``array``.

    Raises:
        ValueError: There is no such kind.
    """
    if kind not in _KINDS:
        raise ValueError(f"json_valid: kind={kind!r} is none of {', '.join(_KINDS)}")

    @reward(score_range=(0, 1))
    def json_valid(completion: str) -> Score:
        """1.0 if the completion is one JSON value, otherwise 0.0 with the reason.

        What is read: the last fenced block marked ``json``, else the last unmarked one, else the whole completion;
        what follows the thoughts alone counts, and only what stands in the last ``<answer>`` tags where there are any
        and they do not differ, unless the completion begins as JSON does. A byte order mark before it and stop
        tokens at its end (``<|im_end|>``, ``</s>`` and the like) are no content.

        Strict by RFC 8259: no ``NaN`` or ``Infinity``, no comments, no trailing comma, nothing before or after the
        value. Refused besides: an object with a key twice, numbers beyond a double's range, and nesting of about
        1,000 levels or more.

        A bare ``42`` or ``null`` is JSON too; ``json_valid(kind="object")`` asks for an object. Never ``None``.
        """
        text = json_text(completion)
        if text is None:
            return Score(0.0, reason="no JSON in the completion")
        try:
            value = read_json(text)
        except ValueError as fault:
            return Score(0.0, reason=f"not JSON: {fault}")
        if not isinstance(value, _KINDS[kind]):
            return Score(0.0, reason=f"JSON, but no {kind}")
        return Score(1.0, reason="one JSON value")

    return json_valid


@dataclass(frozen=True, slots=True)
class _Schema:
    """A schema that is ready: jsonschema's validator, and the names in its top-level ``required``."""

    validator: Any
    required: frozenset[str]


class _Schemas:
    """Schemas as rows give them, made ready once each."""

    def __init__(self, draft: str, remotes: Any) -> None:
        self.draft = draft
        self.remotes = remotes
        self.ready: dict[str, _Schema | str] = {}

    def read(self, text: str) -> _Schema | str:
        """Gives the schema, or what is wrong with it."""
        found = self.ready.get(text)
        if found is None:
            if len(self.ready) >= _KEPT_SCHEMAS:
                self.ready.clear()
            found = self.ready[text] = self._make(text)
        return found

    def _make(self, text: str) -> _Schema | str:
        library = _jsonschema()
        try:
            schema = read_json(text)
            if not isinstance(schema, dict | bool):
                return f"a schema is an object or a bool, not {type(schema).__name__}"
            usual = getattr(library, f"Draft{self.draft.replace('-', '')}Validator")
            kind = library.validators.validator_for(schema, default=usual)
            kind.check_schema(schema)
            registry = _registry(self.remotes, usual)
            _check_references(schema, kind, registry)
            validator = kind(schema, registry=registry)
        except library.SchemaError as fault:
            return _short(f"{fault.json_path}: {fault.message}")
        except (*_BROKEN, _unresolvable()) as fault:
            return _short(f"{type(fault).__name__}: {fault}")
        required = schema.get("required", []) if isinstance(schema, dict) else []
        return _Schema(validator, frozenset(required if isinstance(required, list) else []))


def _schema_text(schema: Any) -> str:
    if isinstance(schema, str):
        return schema
    try:
        return json.dumps(schema)
    except (TypeError, ValueError, RecursionError) as fault:
        raise ValueError(f"no JSON: {fault}") from None


@functools.cache
def _jsonschema() -> Any:
    try:
        import jsonschema  # type: ignore[import-untyped]  # it ships no types
    except ImportError as absent:
        raise ImportError("json_schema needs the library jsonschema: pip install 'rewardkit[rewards]'") from absent
    return jsonschema


def _unresolvable() -> type[Exception]:
    from referencing.exceptions import Unresolvable

    return Unresolvable


def _registry(remotes: Any, usual: Any) -> Any:
    """Gives the registry of what may be referred to; unlike jsonschema's own, it fetches nothing."""
    from jsonschema_specifications import REGISTRY  # type: ignore[import-untyped]  # it ships no types
    from referencing import Registry, Resource

    if not isinstance(remotes, Mapping) or isinstance(remotes, Registry):
        return REGISTRY.combine(Registry() if remotes is None else remotes)
    specification = _specification(usual)
    pairs = [(uri, Resource.from_contents(one, default_specification=specification)) for uri, one in remotes.items()]
    return REGISTRY.combine(Registry().with_resources(pairs))


def _specification(kind: Any) -> Any:
    from referencing.jsonschema import specification_with

    return specification_with(kind.META_SCHEMA["$schema"])


def _check_references(schema: Any, kind: Any, registry: Any) -> None:
    """Raise where some reference leads nowhere, whether or not a value would lead there.

    Otherwise a completion could choose between a score and a skip.
    """
    root = _specification(kind).create_resource(schema)
    pending = [(registry.resolver_with_root(root), root)]
    seen: set[int] = set()
    while pending:
        resolver, resource = pending.pop()
        if id(resource.contents) in seen or not isinstance(resource.contents, Mapping):
            continue
        seen.add(id(resource.contents))
        for word in ("$ref", "$dynamicRef"):
            reference = resource.contents.get(word)
            if isinstance(reference, str):
                found = resolver.lookup(reference)
                target = type(resource).from_contents(found.contents, default_specification=resource._specification)
                pending.append((found.resolver, target))
        pending.extend((resolver.in_subresource(part), part) for part in resource.subresources())


def _judged(schema: _Schema, value: Any, partial: bool) -> Score:
    """Gives the score of a JSON value."""
    present = schema.required & value.keys() if isinstance(value, dict) else frozenset()
    spoiled: set[str] = set()
    first = None
    try:
        for error in schema.validator.iter_errors(value):
            first = first or error
            spoiled.update(step for step in list(error.absolute_path)[:1] if step in present)
    except RecursionError:
        if _deeper_than(value, _SURELY_SHALLOW):
            return Score(0.0, reason="nested too deep to be validated")
        return Score(None, reason="the row's schema cannot be used: its references lead round in a circle")
    except (re.error, OverflowError, _unresolvable()) as fault:
        return Score(None, reason=_short(f"the row's schema cannot be used: {type(fault).__name__}: {fault}"))
    wanted = len(schema.required)
    satisfied = len(present) - len(spoiled)
    metrics = {"required": float(wanted), "satisfied": float(satisfied)}
    if first is None:
        return Score(1.0, reason="valid", metrics=metrics)
    share = satisfied / wanted if satisfied < wanted else wanted / (wanted + 1)
    reason = f"not valid, {satisfied} of {wanted} required properties satisfied; {first.json_path}: {first.message}"
    return Score(share if partial else 0.0, reason=_short(reason), metrics=metrics)


def _deeper_than(value: Any, levels: int) -> bool:
    row = [value]
    for _ in range(levels):
        row = [
            inner
            for outer in row
            if isinstance(outer, dict | list)
            for inner in (outer.values() if isinstance(outer, dict) else outer)
        ]
    return bool(row)


def _short(text: str) -> str:
    return text if len(text) <= _SHOWN_CHARS else f"{text[:_SHOWN_CHARS]}..."


@adjustable
def json_schema(
    schema: Any = None, *, remotes: Any = None, draft: str = "2020-12", partial: bool = True
) -> Reward[..., Score]:
    """Settings of ``json_schema``.

    Args:
        schema: The schema of all rows, as text, dict or bool; ``None`` reads the column ``schema``.
        remotes: What ``$ref`` may point to besides the schema itself: a dict from URI to schema, or a
            ``referencing.Registry``. A registry of one's own may fetch if it is made to; nothing else does.
        draft: The draft of schemas without ``$schema``: ``3``, ``4``, ``6``, ``7``, ``2019-09`` or ``2020-12``.
        partial: Give partial credit; otherwise a value that is not valid scores 0.0.

    Raises:
        ValueError: There is no such draft, or the schema is broken.
    """
    if draft not in DRAFTS:
        raise ValueError(f"json_schema: draft={draft!r} is none of {', '.join(DRAFTS)}")
    schemas = _Schemas(draft, remotes)
    usual = None if schema is None else _schema_text(schema)
    if usual is not None and isinstance(fault := schemas.read(usual), str):
        raise ValueError(f"json_schema: schema={schema!r} is broken: {fault}")

    @reward(score_range=(0, 1))
    def json_schema(completion: str, schema: Any = None) -> Score:
        """1.0 if the completion is JSON that satisfies the schema, less by the share of required properties otherwise.

        Formula, for a value that is not valid: s / r, with r the names in the schema's top-level ``required`` and s
        those that are present with nothing wrong inside; where s = r, and some other rule is broken, r / (r + 1).
        0.0 for a value that is no object, for a schema that requires nothing, and for text that is no JSON; what is
        read and how strictly is told at ``json_valid``.

        Column ``schema``: a JSON Schema as JSON text, dict or bool. Its draft is the one that ``$schema`` names,
        else 2020-12. Regular expressions are Python's. ``format`` is not asserted. ``$ref`` is never fetched: what
        it points to lies in the schema, in the drafts' own schemas or in the setting ``remotes``.

        ``None`` where the row has no schema or a broken one: no JSON, not valid by its draft, a reference that
        leads nowhere or round in a circle. The validator is the library jsonschema. A schema's regular expression
        may take exponential time on some completions; the worker's deadline bounds it (``timeout``).
        """
        given = usual
        if given is None:
            if schema is None or (isinstance(schema, str) and schema.strip() in ("", "null", "None")):
                return Score(None, reason="the row has no schema")
            try:
                given = _schema_text(schema)
            except ValueError as fault:
                return Score(None, reason=f"the row's schema cannot be used: {fault}")
        read = schemas.read(given)
        if isinstance(read, str):
            return Score(None, reason=f"the row's schema cannot be used: {read}")
        text = json_text(completion)
        if text is None:
            return Score(0.0, reason="no JSON in the completion")
        try:
            value = read_json(text)
        except ValueError as fault:
            return Score(0.0, reason=f"not JSON: {fault}")
        return _judged(read, value, partial)

    return json_schema
