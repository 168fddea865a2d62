"""Answers that programs read: JSON values and tool calls, in the ways in which models write them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, ClassVar, Self

from rewardkit.renderings.writing import Writing
from rewardkit.shown.text import shortened

_KEYS = ["name", "city", "price", "tags", "stock", "owner", "unit", "size", "due", "note", "parts", "is_new"]
_TEXTS = ("Oslo", "red wine", "5", "true", "null", "", " kg", "7.0", "Łódź", "東京", 'say "no"', "a/b", "x\ny", "{}")
_TOOLS = ("get_weather", "search", "book.flight", "sendMail", "add")
_PARAMETERS = ("city", "query", "limit", "units", "options", "is_draft")
_DEEPEST = 3
_AROUND = 60  # characters of a value, and before and behind a difference
_ADDED = "extra"  # a name that no drawn value has


def _draw_value(random: Random, depth: int) -> Any:
    number = random.choice((random.randint(-30, 3000), random.randint(-80, 80) / 4, 0, 1))
    choices: list[Any] = [number, number, random.choice(_TEXTS), random.choice(_TEXTS), True, False, None]
    if depth < _DEEPEST:
        choices += [_draw_object(random, depth + 1), _draw_list(random, depth + 1), {}, []]
    return random.choice(choices)


def _draw_object(random: Random, depth: int, keys: Sequence[str] = _KEYS, least: int = 1) -> dict[str, Any]:
    return {key: _draw_value(random, depth) for key in random.sample(keys, random.randint(least, 4))}


def _draw_list(random: Random, depth: int) -> list[Any]:
    return [_draw_value(random, depth) for _ in range(random.randint(1, 3))]


def _read_json(text: str) -> Any:
    """Return the JSON value that a text is; ``None`` for any other text."""
    try:
        return json.loads(text) if text.lstrip()[:1] in ("{", "[") else None
    except (ValueError, RecursionError):
        return None


def _write(
    value: object,
    *,
    number: Callable[[int | float], str] = json.dumps,
    text: Callable[[str], str] = json.dumps,
    turned: bool = False,
) -> str:
    """Return JSON with numbers and texts in a writing of their own, and the keys of objects turned round if asked."""
    if isinstance(value, dict):
        items = [f"{text(key)}: {_write(part, number=number, text=text, turned=turned)}" for key, part in value.items()]
        return f"{{{', '.join(items[::-1] if turned else items)}}}"
    if isinstance(value, list):
        return f"[{', '.join(_write(part, number=number, text=text, turned=turned) for part in value)}]"
    if isinstance(value, str):
        return text(value)
    return number(value) if isinstance(value, int | float) and not isinstance(value, bool) else json.dumps(value)


def _escaped(text: str) -> str:
    """Return a text in JSON whose first character is written by its code."""
    return rf'"\u{ord(text[0]):04x}{json.dumps(text[1:])[1:]}' if text else json.dumps(text)


def _renderings(value: object) -> Iterator[Writing]:
    """Yield one JSON value in other writings."""
    yield Writing("without blanks", json.dumps(value, separators=(",", ":")))
    yield Writing("in lines", json.dumps(value, indent=2))
    yield Writing("in its own letters", json.dumps(value, ensure_ascii=False))
    yield Writing("with keys in another order", _write(value, turned=True))
    yield Writing("with a point in whole numbers", _write(value, number=lambda number: f"{float(number)}"))
    yield Writing("with exponents", _write(value, number=lambda number: f"{number}e0"))
    yield Writing("with escapes", _write(value, text=_escaped))


def _changes(value: object) -> Iterator[tuple[str, Any]]:
    """Yield other JSON values near one, each with what is changed in it."""
    if isinstance(value, dict):
        yield from _changes_of_object(value)
    elif isinstance(value, list):
        yield from _changes_of_list(value)
    elif isinstance(value, bool):
        yield "the opposite", not value
        yield "a truth value as a number", int(value)
        yield "a truth value as text", json.dumps(value)
    elif isinstance(value, int | float):
        yield "another number", value + 1
        yield "another sign", -value or 2
        yield "a number as text", json.dumps(value)
    elif isinstance(value, str):
        yield "another text", f"{value}x"
        yield "a blank more", f"{value} "
        yield "a text in a list", [value]
    else:
        yield "false for null", False
        yield "a text for null", "null"


def _changes_of_object(value: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    yield "a field more", {**value, _ADDED: None}
    yield "an object in a list", [value]
    for key, part in value.items():
        if part is not None:  # without a null an object may well be the same
            yield "a field lost", {name: other for name, other in value.items() if name != key}
        yield "a field renamed", {f"{name}s" if name == key else name: other for name, other in value.items()}
        for change, other_part in _changes(part):
            yield change, {**value, key: other_part}


def _changes_of_list(value: list[Any]) -> Iterator[tuple[str, Any]]:
    yield "an item more", [*value, "extra"]
    if not value:
        yield "an object for a list", {}
    if json.dumps(value) != json.dumps(value[::-1]):
        yield "a list in another order", value[::-1]
    for index, part in enumerate(value):
        yield "an item lost", [*value[:index], *value[index + 1 :]]
        for change, other_part in _changes(part):
            yield change, [*value[:index], other_part, *value[index + 1 :]]


def difference(text: str, other: str) -> str:
    """Return what differs between two long texts: the first path of JSON with both values, else what is not shared."""
    values = _read_json(text), _read_json(other)
    if None not in values and _differ(*values):
        return _first_difference(*values, "")
    start = next((index for index, (a, b) in enumerate(zip(text, other, strict=False)) if a != b), 0)
    return f"…{shortened(other[max(0, start - _AROUND) : start + _AROUND], 2 * _AROUND)}…"


def _differ(value: object, other: object) -> bool:
    """Return whether two JSON values are written differently: ``true`` is not ``1``."""
    return json.dumps(value) != json.dumps(other)


def _first_difference(value: Any, other: Any, at: str) -> str:
    """Return the first path at which two JSON values differ, with what stands there in both."""
    keys: list[Any] = []
    if isinstance(value, dict) and isinstance(other, dict):
        keys = [
            key for key in {**value, **other} if key not in value or key not in other or _differ(value[key], other[key])
        ]
        absent = [key for key in keys if key not in value or key not in other]
        if absent:
            name = f"{at}.{absent[0]}" if at else absent[0]
            renamed = f", and {absent[1]} is there" if len(absent) > 1 else ""
            return f"{name} is {'missing' if absent[0] in value else 'too many'}{renamed}"
        path = f"{at}.{keys[0]}" if at else str(keys[0])
    elif isinstance(value, list) and isinstance(other, list) and len(value) == len(other):
        keys = [index for index, pair in enumerate(zip(value, other, strict=True)) if _differ(*pair)]
        path = f"{at}[{keys[0]}]" if keys else at
    if keys:
        return _first_difference(value[keys[0]], other[keys[0]], path)
    texts = [shortened(json.dumps(part, ensure_ascii=False), _AROUND) for part in (other, value)]
    return f"{at or 'it'} is {texts[0]}, not {texts[1]}"


@dataclass(frozen=True, slots=True)
class JsonDocument:
    """An object, or a list of more than numbers, with values of all types, also nested."""

    kind: ClassVar[str] = "JSON"

    text: str

    @classmethod
    def draw(cls, random: Random) -> Self:
        records = [_draw_object(random, 1) for _ in range(random.randint(1, 2))]
        return cls(json.dumps(random.choice((records[0], records[0], records))))

    @classmethod
    def read(cls, text: str) -> Self | None:
        value = _read_json(text)
        parts = value.values() if isinstance(value, dict) else value or ()
        is_listing = isinstance(value, list) and not any(isinstance(part, dict | list) for part in parts)
        return cls(text.strip()) if parts and not is_listing else None

    def renderings(self) -> Iterator[Writing]:
        yield from _renderings(json.loads(self.text))
        yield Writing("in a fence", f"```json\n{self.text}\n```")
        yield Writing("in a fence without a mark", f"```\n{self.text}\n```")

    def perturbations(self) -> Iterator[Writing]:
        value = json.loads(self.text)
        for change, other in _changes(value):
            yield Writing(change, json.dumps(other))
        yield Writing("in a sentence", f"The answer is {self.text}.")
        yield Writing("twice", f"{self.text}\n{self.text}")
        yield Writing("with a comma at its end", f"{self.text[:-1]},{self.text[-1]}")
        yield Writing("cut off", self.text[:-1])


@dataclass(frozen=True, slots=True)
class ToolCalls:
    """Calls of different tools, with arguments by name."""

    kind: ClassVar[str] = "tool calls"

    text: str

    @classmethod
    def draw(cls, random: Random) -> Self:
        tools = random.sample(_TOOLS, random.choice((1, 1, 2)))
        calls = [{"name": name, "arguments": _draw_object(random, 2, _PARAMETERS, 0)} for name in tools]
        return cls(json.dumps(calls if len(calls) > 1 else calls[0]))

    @classmethod
    def read(cls, text: str) -> Self | None:
        value = _read_json(text)
        calls = value if isinstance(value, list) else [value]
        are_calls = calls and all(
            isinstance(call, dict) and isinstance(call.get("arguments"), dict) and isinstance(call.get("name"), str)
            for call in calls
        )
        return cls(text.strip()) if are_calls else None

    @property
    def _calls(self) -> list[dict[str, Any]]:
        value = json.loads(self.text)
        return value if isinstance(value, list) else [value]

    def renderings(self) -> Iterator[Writing]:
        calls = self._calls
        yield from _renderings(calls)
        yield from _renderings(json.loads(self.text))
        yield Writing("in another order", json.dumps(calls[::-1]))
        renamed = [{"name": call["name"], "parameters": call["arguments"]} for call in calls]
        yield Writing("with parameters", json.dumps(renamed))
        yield Writing("in a fence", f"```json\n{self.text}\n```")
        functions = [{"name": call["name"], "arguments": json.dumps(call["arguments"])} for call in calls]
        openai = [{"id": "call_1", "type": "function", "function": function} for function in functions]
        yield Writing("as a message has them", json.dumps({"tool_calls": openai}))
        yield Writing("in tags", "\n".join(map(_in_tags, calls)))
        yield Writing("behind one mark", f"[TOOL_CALLS]{json.dumps(calls)}")
        yield Writing("behind Llama's mark", f"<|python_tag|>{'; '.join(map(json.dumps, renamed))}")
        yield Writing("in Python", f"[{', '.join(map(_in_python, calls))}]")
        yield Writing("in a block of Python", "```tool_code\n" + "\n".join(map(_in_python, calls)) + "\n```")
        yield Writing("in tags for each argument", "\n".join(map(_in_tags_for_each, calls)))

    def perturbations(self) -> Iterator[Writing]:
        calls = self._calls
        first, *others = calls
        changes: list[tuple[str, list[dict[str, Any]]]] = [
            ("another tool", [{**first, "name": f"{first['name']}_all"}, *others]),
            ("a call twice", [first, *calls]),
            ("a call more", [*calls, {"name": "extra", "arguments": {}}]),
        ]
        for index, call in enumerate(calls):
            before, behind = calls[:index], calls[index + 1 :]
            for change, arguments in _changes(call["arguments"]):
                changes.append((change, [*before, {**call, "arguments": arguments}, *behind]))
        if others:
            changes.append(("a call lost", others))
        for change, other in changes:
            yield Writing(change, json.dumps(other))
            yield Writing(f"{change}, in tags", "\n".join(map(_in_tags, other)))
        yield Writing("in a sentence", f"I would call {self.text}.")
        yield Writing("cut off", f"<tool_call>\n{self.text[:-1]}\n</tool_call>")
        yield Writing("no call", f"The tool {first['name']} is the one for this.")


def _in_tags(call: Mapping[str, Any]) -> str:
    return f"<tool_call>\n{json.dumps(call)}\n</tool_call>"


def _in_python(call: Mapping[str, Any]) -> str:
    return f"{call['name']}({', '.join(f'{name}={value!r}' for name, value in call['arguments'].items())})"


def _in_tags_for_each(call: Mapping[str, Any]) -> str:
    """Return a call whose arguments stand in tags without types: a text as it is, other values as JSON."""
    texts = {key: value if isinstance(value, str) else json.dumps(value) for key, value in call["arguments"].items()}
    tags = "".join(f"<parameter={key}>\n{text}\n</parameter>\n" for key, text in texts.items())
    return f"<tool_call>\n<function={call['name']}>\n{tags}</function>\n</tool_call>"
