"""Case files as text: their values, with the line of each key and the place of each expectation in the text.

A YAML file is a list of cases, or a mapping with ``cases`` and settings. A JSON Lines file has a case a line; its
first line may hold the settings. Places are kept so that an expectation can be changed and nothing else.
"""

from __future__ import annotations

import functools
import json
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, NoReturn, Protocol

from rewardkit.errors import DataError
from rewardkit.loading.config import key_twice
from rewardkit.rows.reader import object_in

SUFFIXES = (".jsonl", ".yaml", ".yml")  # Endings of files that may hold cases

SETTINGS = ("reward", "tolerance", "cases")  # Keys of a table's own

Steps = tuple[str | int, ...]  # The way into a value: keys and places, outermost first


class Span(NamedTuple):
    """A part of a file's text: the characters from ``start`` to before ``end``."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Entry:
    """One case or the settings, as written.

    Attributes:
        span: Returns the place in the text of the value of a key, or of something in it; ``None`` for a value without
            a place of its own, such as one that a YAML alias or merge brings in.
    """

    where: str  # What to call its place in errors: file and line, or the place in a Python list
    values: dict[str, Any]  # Its keys and values
    lines: Mapping[str, str] = field(default_factory=dict)  # The line of each key, where they differ from the first
    span: Callable[[Steps], Span | None] = lambda steps: None

    def without_span(self) -> Entry:
        """Return the entry without places to change it at."""
        return Entry(self.where, self.values, self.lines)

    def refuse(self, key: str | None, what: str) -> NoReturn:
        """Raise :class:`DataError` naming file, line and key."""
        where = self.where if key is None else f"{self.lines.get(key, self.where)}: {key!r}"
        raise DataError(f"{where}: {what}") from None


class Source(NamedTuple):
    """A file's cases and settings."""

    settings: Entry  # the settings; an entry without values for a file without settings
    entries: Sequence[Entry]  # the cases


def read_text(path: Path) -> str:
    """Return a file's text with its line ends as they are; raise DataError where it cannot be read, or is not UTF-8."""
    try:
        return path.read_bytes().decode("utf-8")
    except UnicodeDecodeError as wrong:
        before = wrong.object[: wrong.start]
        line, byte = before.count(b"\n") + 1, len(before) - before.rfind(b"\n") - 1
        raise DataError(f"{path}:{line}: not UTF-8: {wrong.reason} at byte {byte}; save it in UTF-8") from None
    except OSError as reason:
        raise DataError(f"{path}: {reason.strerror or reason}") from reason


def parse(path: Path, text: str) -> Source:
    """Return the cases and settings in a file's text.

    Raises:
        DataError: It is not what its ending says, or no table of cases; names file and line.
    """
    if path.suffix not in SUFFIXES:
        raise DataError(f"{path}: expected a table of cases, a file that ends with {', '.join(SUFFIXES)}")
    try:
        return _from_jsonl(path, text) if path.suffix == ".jsonl" else _from_yaml(path, text)
    except RecursionError:
        raise DataError(f"{path}: nested too deeply") from None


def has_cases(path: Path) -> bool:
    """Return whether a file of a folder is meant as a table of cases, and not as rows, completions, flaws or settings.

    JSON Lines are, where a line has ``expect``, or the first has only settings; YAML is, where it is a list or has
    ``cases``. A file that cannot be read is left to :func:`parse`, which says why.
    """
    text = read_text(path)
    try:
        source = parse(path, text)
    except DataError:
        if path.suffix == ".jsonl":
            return not _is_object(text)
        return "cases:" in text or text.lstrip().startswith("-")
    settings = source.settings.values
    has_settings = bool(settings) and settings.keys() <= {*SETTINGS}
    is_table = has_settings or any("expect" in entry.values for entry in source.entries)
    is_empty = not source.entries and not settings
    return is_table or path.suffix != ".jsonl" or is_empty


def _is_object(text: str) -> bool:
    """Return whether a text is one JSON object over several lines, as a command prints with ``--json``."""
    try:
        return isinstance(json.loads(text), dict)
    except (ValueError, RecursionError):
        return False


# JSON Lines


def _from_jsonl(path: Path, text: str) -> Source:
    """Return the cases of JSON Lines; the first line is the settings if it has a reward and no completion."""
    entries: list[Entry] = []
    start = 1 if text.startswith("\ufeff") else 0
    for number, line in enumerate(text[start:].split("\n"), 1):
        values = object_in(str(path), number, line.encode())
        if values is not None:
            entries.append(Entry(f"{path}:{number}", values, span=functools.partial(_json_span, line, start)))
        start += len(line) + 1
    if entries and "reward" in entries[0].values and not {"completion", "completions"} & entries[0].values.keys():
        return Source(entries[0], entries[1:])
    return Source(Entry(str(path), {}), entries)


def _json_span(line: str, offset: int, steps: Steps) -> Span | None:
    """Return the span of a value in a line of JSON, which is YAML too; ``None`` for a line that PyYAML refuses."""
    import yaml

    try:
        root: Any = yaml.compose(line, yaml.SafeLoader)
    except yaml.YAMLError:
        return None
    span = _yaml_span({key.value: value for key, value in root.value}, steps)
    return None if span is None else Span(offset + span.start, offset + span.end)


# YAML

_SCALARS = (
    ("null", r"~|null|Null|NULL|", "~nN\0"),
    ("bool", r"true|True|TRUE|false|False|FALSE", "tTfF"),
    ("int", r"[-+]?(?:0|[1-9][0-9]*)", "-+0123456789"),
    (
        "float",
        r"[-+]?(?:\.[0-9]+|[0-9]+\.[0-9]*)(?:[eE][-+]?[0-9]+)?|[-+]?[0-9]+[eE][-+]?[0-9]+|[-+]?\.inf|\.nan",
        "-+.0123456789",
    ),
    ("merge", r"<<", "<"),
)
_TEXTS = ("prompt", "completion", "completions")


@functools.cache
def _loader() -> Any:
    """Return a safe loader that reads what YAML 1.2 calls a number or a truth value as that, and the rest as text.

    YAML 1.1 would make an answer ``no`` false, ``12:30`` 750 and ``010`` 8.
    """
    import yaml

    class Loader(yaml.SafeLoader):
        yaml_implicit_resolvers: dict[str, Any] = {}  # noqa: RUF012 - as PyYAML has it

    for name, pattern, first in _SCALARS:
        letters = ["" if letter == "\0" else letter for letter in first]
        Loader.add_implicit_resolver(f"tag:yaml.org,2002:{name}", re.compile(rf"^(?:{pattern})$"), letters)
    return Loader


def _from_yaml(path: Path, text: str) -> Source:
    """Return the cases and settings of YAML; DataError for anything else, and for a key that a case has twice."""
    import yaml

    try:
        loader = _loader()(text)
        root = loader.get_single_node()
        twice = key_twice(root)
        if twice is not None:
            raise DataError(f"{path}:{_line(twice)}: {twice.value!r}: the case has this key twice")
        if isinstance(root, yaml.MappingNode):
            return _table(path, loader, root)
        if isinstance(root, yaml.SequenceNode):
            return Source(Entry(str(path), {}), _cases(path, loader, root))
    except (yaml.YAMLError, ValueError) as wrong:
        raise DataError(f"{path}: not YAML: {' '.join(str(wrong).split())}") from None
    raise DataError(f"{path}: expected a list of cases, or a mapping with 'cases'")


class _YamlNode(Protocol):
    """A node of yaml's, which is imported late."""

    id: str
    value: Any  # text of a scalar, nodes of a sequence, pairs of nodes of a mapping
    flow_style: bool
    start_mark: Any
    end_mark: Any


def _table(path: Path, loader: Any, root: Any) -> Source:
    """Return the cases and settings of a YAML mapping; take its key ``cases`` out of ``root``."""
    cases = _own(path, root).get("cases")
    root.value = [pair for pair in root.value if pair[0].value != "cases"]
    settings = _yaml_entry(path, loader, root)
    if cases is None or cases.id != "sequence":
        settings.refuse("cases", "expected a list of cases")
    return Source(settings, _cases(path, loader, cases))


def _cases(path: Path, loader: Any, listed: Any) -> list[Entry]:
    """Return the cases of a list; those that share an expectation through an alias have no span to change it at.

    A change for one of them would change the others.
    """
    expectations: list[Any] = []
    entries = []
    for node in listed.value:
        if node.id != "mapping":
            raise DataError(f"{path}:{_line(node)}: expected a case, a mapping with 'completion' and 'expect'")
        expectations.append(_own(path, node).get("expect"))
        entries.append(_yaml_entry(path, loader, node))
    counts = Counter(id(node) for node in expectations if node is not None)  # an alias of YAML is one node
    return [
        entry.without_span() if counts[id(node)] > 1 else entry
        for entry, node in zip(entries, expectations, strict=True)
    ]


def _yaml_entry(path: Path, loader: Any, node: _YamlNode) -> Entry:
    """Return a mapping as an entry; its prompt and completions are text as written, whatever YAML makes of them."""
    own = _own(path, node)
    lines = {key.value: f"{path}:{_line(key)}" for key, _ in node.value}
    texts = {key: text for key in _TEXTS if key in own and (text := _as_written(own[key])) is not None}
    values = loader.construct_document(node)
    return Entry(f"{path}:{_line(node)}", {**values, **texts}, lines, functools.partial(_yaml_span, own))


def _own(path: Path, node: _YamlNode) -> dict[str, Any]:
    """Return the nodes of a mapping's own keys, without those that a merge brings."""
    own: dict[str, Any] = {}
    for key, value in node.value:
        if key.id != "scalar":
            raise DataError(f"{path}:{_line(key)}: expected a key that is a word")
        own[key.value] = value
    return own


def _as_written(node: _YamlNode) -> Any:
    """Return a prompt or completion as text, ``"4"`` for ``completion: 4``; ``None`` for anything but text."""
    if node.id == "scalar":
        return node.value
    if node.id == "sequence" and all(item.id == "scalar" for item in node.value):
        return [item.value for item in node.value]
    return None


def _line(node: _YamlNode) -> int:
    return int(node.start_mark.line) + 1


def _yaml_span(own: Mapping[str, Any], steps: Steps) -> Span | None:
    """Return where the value lies that steps lead to from a mapping's own keys; ``None`` where they lead nowhere."""
    node: Any = own.get(str(steps[0]))
    for step in steps[1:]:
        if node is None:
            return None
        if node.id == "sequence" and isinstance(step, int):
            node = node.value[step]
        else:
            node = next((value for key, value in node.value if key.value == step), None)
    return None if node is None else Span(int(node.start_mark.index), _end(node))


def _end(node: _YamlNode) -> int:
    """Return the index of the character after a value; a block ends with its last part."""
    if node.id == "scalar" or node.flow_style or not node.value:
        return int(node.end_mark.index)
    last_node = node.value[-1]
    return _end(last_node[1] if isinstance(last_node, tuple) else last_node)
