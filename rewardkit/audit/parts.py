"""Objects, lists and tool calls with one thing changed: a value, a key, an item, a call; as text and as messages."""

from __future__ import annotations

import json
import random
import re
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from itertools import chain, zip_longest
from typing import Any, NamedTuple

from rewardkit.audit.amounts import ids_in
from rewardkit.audit.gold import Gold, GoldShape, Span
from rewardkit.audit.honest import Frame, list_in, listings
from rewardkit.audit.probe import Family, Probe
from rewardkit.audit.rows import AuditRow
from rewardkit.audit.talk import calls_in, in_tags, is_call, message_of, objects_in, talk_text, with_last
from rewardkit.types import Message

WRONG_FIRST = "a wrong item before the others"
_MOST = 24  # changes to one value; of a large one each row tries others
_MAX_CHARS = 20_000
_INDEX = re.compile(r"\[\d+\]")
_OPENED, _CLOSED = re.compile(r"<\w+>\s*\Z"), re.compile(r"\s*</\w+>")


class ChangedPart(NamedTuple):
    """A value with one thing changed: the rule that this breaks, what was changed, and the value as it is then.

    ``spot`` is the path and the kind of change, such as ``items[].price is another``; all items of a list share it.
    ``point`` is the part of the JSON that is changed, where it can be seen there.
    """

    rule: str
    name: str
    value: Any
    spot: str = ""
    point: str = ""


class PathCount(NamedTuple):
    """How many of the changes of paths of JSON values were tried, and those that were not."""

    tried: int
    total: int
    untried: tuple[str, ...]


NO_PATHS = PathCount(0, 0, ())


class PathCoverage:
    """Chooses the changes of each row's values: first those of paths that earlier rows tried least.

    A row has too many paths to change them all; over the rows of a data set each is changed.
    """

    def __init__(self, seed: int = 0) -> None:
        self._random = random.Random(seed)  # noqa: S311 - a sample, no secret
        self._tries: Counter[tuple[str, str]] = Counter()
        self._spots: dict[str, bool] = {}  # Whether it was tried, by spot

    def changes(
        self, value: Any, source: str = "gold", *, most: int = _MOST, rules: Collection[str] = ()
    ) -> list[ChangedPart]:
        """Return a JSON value with one thing changed at a time, in at most ``most`` ways, each rule having its share.

        Args:
            value: The value that is right.
            source: Where it stands; each source counts its own tries.
            most: How many changes to return.
            rules: The rules to break; all where empty.
        """
        kinds: dict[str, list[ChangedPart]] = {}
        for change in _changes(value, ""):
            if not rules or change.rule in rules:
                kinds.setdefault(change.rule, []).append(change)
                self._spots.setdefault(change.spot, False)
        orders = [self._least_tried(parts, source, most) for parts in kinds.values()]
        chosen = [part for part in chain.from_iterable(zip_longest(*orders)) if part is not None][:most]
        for part in chosen:
            self._tries[source, part.spot] += 1
            self._spots[part.spot] = True
        return chosen

    def _least_tried(self, parts: Sequence[ChangedPart], source: str, most: int) -> list[ChangedPart]:
        """Return changes in the order in which they are tried: the spots tried least first, one of each spot."""
        tries = Counter({part.spot: self._tries[source, part.spot] for part in parts})
        remaining = dict(enumerate(self._random.sample(parts, len(parts))))
        order: list[ChangedPart] = []
        while remaining and len(order) < most:
            index = min(remaining, key=lambda number: tries[remaining[number].spot])
            order.append(remaining.pop(index))
            tries[order[-1].spot] += 1
        return order

    def count(self) -> PathCount:
        """Return how many of the changes of all paths seen were tried."""
        untried = tuple(spot for spot, is_tried in self._spots.items() if not is_tried)
        return PathCount(len(self._spots) - len(untried), len(self._spots), untried)


def changes(value: Any) -> list[ChangedPart]:
    """Return a JSON value with one thing changed at a time, as many ways as :data:`_MOST`."""
    return PathCoverage().changes(value)


def _spot(at: str, what: str) -> str:
    """Return the spot of a change: its path, with no indices, and what is changed there."""
    return f"{_INDEX.sub('[]', at) or 'it'} {what}"


def _changes(value: Any, at: str) -> Iterator[ChangedPart]:
    """Yield a value with one thing in it changed; ``at`` is the path to it, for the names of the changes."""
    if isinstance(value, dict):
        yield from _of_object(value, at)
    elif isinstance(value, list):
        yield from _of_list(value, at)
    else:
        other = _other(value)
        name = f"{at or 'it'} is {_short(other)}, not {_short(value)}"
        yield ChangedPart("value", name, other, _spot(at, "is another"), json.dumps(other, ensure_ascii=False))


def _of_object(value: dict[str, Any], at: str) -> Iterator[ChangedPart]:
    """Yield an object with one of its values or keys changed; of a tool call only the name and the arguments."""
    is_a_call = is_call(value)
    if not is_a_call:
        more = {**value, "something_else": 1}
        yield ChangedPart("key", f"{at or 'it'} has a key too many", more, _spot(at, "has a key too many"))
    for key, item in value.items():
        where = f"{at}.{key}" if at else key
        for change in _changes(item, where):
            rule = "call" if is_a_call and key == "name" else change.rule
            point = change.point if isinstance(item, dict | list) else f"{json.dumps(key)}: {change.point}"
            yield change._replace(rule=rule, value={**value, key: change.value}, point=point)
        if not is_a_call:
            rest = {name: member for name, member in value.items() if name != key}
            if item is not None:  # without a null an object may well be the same
                yield ChangedPart("key", f"{where} is missing", rest, _spot(where, "is missing"))
            renamed = {**rest, f"{key}_2": item}
            yield ChangedPart("key", f"{where} is called {key}_2", renamed, _spot(where, "is renamed"), f'"{key}_2"')


def _of_list(value: list[Any], at: str) -> Iterator[ChangedPart]:
    """Yield a list with an item missing, changed or too many, or a call made twice."""
    are_calls = bool(calls_in(value))
    rule, what, where = ("call", "call", "") if are_calls else ("item", "item", f" of {at}" if at else "")
    for index, item in enumerate(value):
        if are_calls or value.count(item) == 1:  # to a set, one of two alike is not missed
            fewer = value[:index] + value[index + 1 :]
            yield ChangedPart(rule, f"{what} {index + 1}{where} is missing", fewer, _spot(f"{at}[]", "is missing"))
        for change in _changes(item, f"{at}[{index}]"):
            yield change._replace(value=[*value[:index], change.value, *value[index + 1 :]])
    if are_calls:
        yield ChangedPart("call", "the last call is made twice", [*value, value[-1]], _spot(at, "is made twice"))
    elif value and isinstance(value[-1], str | int | float):
        more = next(part.value for part in _changes(max(value, key=_size), ""))
        yield ChangedPart("item", f"an item too many{where}", [*value, more], _spot(at, "has an item too many"))
        yield ChangedPart("item", f"{WRONG_FIRST}{where}", [more, *value], _spot(at, "has a wrong item first"))


def _other(value: Any) -> Any:
    """Return another value of the same type: a text that begins with it, a number one more."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return value + 1
    return f"{value}x" if isinstance(value, str) else "something"


def _size(value: Any) -> tuple[float, str]:
    """Return what orders values of any kinds: numbers by their size, others by their text."""
    return (float(value), "") if isinstance(value, int | float) else (0.0, str(value))


def _short(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)[:30]


def changed_parts(row: AuditRow, frames: Sequence[Frame], coverage: PathCoverage) -> Iterator[Probe]:
    """Yield the row's gold, where it is JSON, and the JSON in its references, with one thing changed at a time."""
    gold = row.gold
    if gold is None or gold.shape is not GoldShape.JSON:
        return  # what a reference has beside the gold may well be another
    if len(gold.text) <= _MAX_CHARS:
        for change in coverage.changes(json.loads(gold.text)):
            yield from _in_frames_and_calls(change, frames)
        yield from _changed_lists(row, gold, coverage)
    for text in row.references:
        conversation = row.conversations.get(text)
        if conversation is not None:
            yield from _in_messages(conversation, coverage)
        if len(text) <= _MAX_CHARS:
            yield from _in_text(text, conversation, coverage)


def _changed_lists(row: AuditRow, gold: Gold, coverage: PathCoverage) -> Iterator[Probe]:
    """Yield a list of texts and numbers, changed and as people write lists, and all that is listed anywhere."""
    items = list_in(gold)
    if not items:
        return
    others = [item for other in row.others for item in list_in(other)] + ids_in(row)
    more = [item for item in dict.fromkeys(others) if item not in items and str(item) not in map(str, items)]
    everything = ChangedPart("citing", "all that is listed anywhere", [*more[::2], *items, *more[1::2]])
    for change in [*coverage.changes(items, "listing"), *([everything] if more else [])]:
        texts = [("", json.dumps(change.value, ensure_ascii=False)), *listings(change.value)]
        yield from (_probe(change, text, frame=name) for name, text in texts)


def _in_frames_and_calls(change: ChangedPart, frames: Sequence[Frame]) -> Iterator[Probe]:
    """Yield a changed gold in the common frames, and if it is tool calls, as models and servers write them."""
    text = json.dumps(change.value, ensure_ascii=False)
    for frame in frames:
        if frame.common:
            yield _probe(change, frame.around(text), frame=frame.label)
    calls = calls_in(change.value)
    if calls:
        yield _probe(change, in_tags(calls), frame="<tool_call>")
        yield _probe(change, text, messages=[message_of(calls)], frame="tool_calls of a message")


def _probe(change: ChangedPart, text: str, *, messages: Sequence[Message] | None = None, frame: str = "") -> Probe:
    name = change.name
    rule, point = change.rule, change.point if change.point in text else ""
    return Probe(Family.NEIGHBOUR, name, text, frame=frame, rule=rule, partial=True, messages=messages, point=point)


def _in_text(text: str, conversation: Sequence[Message] | None, coverage: PathCoverage) -> Iterator[Probe]:
    """Change the JSON inside a text; of several objects one can be missing, or there twice."""
    objects = list(objects_in(text))
    for start, end, value in objects:
        for change in coverage.changes(value, "text"):
            yield _with_change(text, (start, end), json.dumps(change.value, ensure_ascii=False), change, conversation)
    for start, end, value in objects:
        opened, closed = _OPENED.search(text[:start]), _CLOSED.match(text, end)
        if is_call(value) and ((opened and closed) or len(objects) > 1):
            whole = (opened.start(), closed.end()) if opened and closed else (start, end)
            yield _with_change(text, whole, "", ChangedPart("call", "a call is missing", None), conversation)
            twice = f"{text[slice(*whole)]}\n" * 2
            yield _with_change(text, whole, twice, ChangedPart("call", "a call is made twice", None), conversation)


def _with_change(text: str, span: Span, new: str, change: ChangedPart, conversation: Sequence[Message] | None) -> Probe:
    text = text[: span[0]] + new + text[span[1] :]
    messages = None if conversation is None else with_last(conversation, text)
    return _probe(change, text, messages=messages, frame="the reference")


def _in_messages(messages: Sequence[Message], coverage: PathCoverage) -> Iterator[Probe]:
    """Change the tool calls of one message of a conversation."""
    for index, message in enumerate(messages):
        if not message.get("tool_calls"):
            continue
        for change in coverage.changes(_functions(message), "messages"):
            turn = {**message, "tool_calls": message_of(change.value)["tool_calls"]}
            new = [*messages[:index], turn, *messages[index + 1 :]]
            yield _probe(change, talk_text(new), messages=new, frame="the reference's messages")


def _functions(message: Message) -> list[Any]:
    """Return the calls of a message with their arguments as objects."""
    functions = []
    for call in message["tool_calls"]:
        function = dict(call.get("function") or call) if isinstance(call, dict) else {}
        arguments = function.get("arguments")
        if isinstance(arguments, str):
            try:
                function["arguments"] = json.loads(arguments)
            except (ValueError, RecursionError):
                return []
        functions.append({name: function[name] for name in ("name", "arguments") if name in function})
    return functions
