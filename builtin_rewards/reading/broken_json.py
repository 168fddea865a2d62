"""An object that a model wrote as nearly JSON: its texts are read leniently, all else strictly, and nothing is guessed.

Read are lone backslashes, line ends, tabs and quotation marks in texts, quotation marks of other kinds, commas too many
or too few, comments without a number, Python's constants, and braces that lack or are too many at the end. A number
stands as JSON has it. A key that stands twice must say the same twice, and a text must end where only one reading ends.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Collection
from typing import Any

from builtin_rewards.reading.json_values import PYTHON_CONSTANTS, json_decoder

# Blanks and comments, both of a bounded length, so that a hostile text is read in linear time.
_GAP = r"(?>\s++|//[^\n]{0,200}+|#[^\n]{0,200}+|/\*(?>[^*]|\*(?!/)){0,200}+\*/){0,40}+"
_MARKS = "\"'\u201c\u201d\u201e\u2018\u2019"
_ENDINGS = {'"': '"', "'": "'", "\u201c": '\u201c\u201d"', "\u201e": '\u201c\u201d"', "\u2018": "\u2018\u2019'"}
_ENDS = {mark: re.compile(f"[{endings}]") for mark, endings in _ENDINGS.items()}
# Escapes that are not rather LaTeX, as in \frac and \text, and what lacks a backslash.
_ESCAPE = re.compile(r"""\\(["\\/'n]|[rt](?![a-z])|u[0-9a-fA-F]{4})?|\"""")
_WORD = re.compile(rf"[{{}}\[\],:]|[^\s{{}}\[\],:/#{_MARKS}]+")
_PROSE = frozenset({"reason", "reasoning"})  # keys whose texts may differ where an object stands twice
_gap = re.compile(_GAP)


def object_starts(text: str, keys: Collection[str]) -> list[int]:
    """Return where objects begin in a text, those with one of the keys first."""
    opens = re.compile(rf"\{{{_GAP}{_key(tuple(keys)).pattern}")
    return [match.start() for match in opens.finditer(text)]


def read_broken_json(text: str, keys: Collection[str]) -> Any:
    """Return the object that a text is, with keys of these alone; raise a ``ValueError`` where it is not clear."""
    key, parts, depth, index = _key(tuple(keys)), [""], 0, 0
    while (index := _skip_gap(text, index)) < len(text):
        last, name = parts[-1], key.match(text, index) if parts[-1] != ":" else None
        if name is not None:
            parts += [*([] if last in ("{", ",") else [","]), json.dumps(name[1].replace("\\", "")), ":"]
            index = name.end()
        elif last == ":" and text[index] in _ENDS:
            literal, index = _read_text(text, index, key)
            parts.append(literal)
        else:
            match = _WORD.match(text, index)
            if match is None:
                raise ValueError(f"{text[index]!r} is out of place")
            word, index = match[0], match.end()
            depth += (word == "{") - (word == "}")
            if word == "}" and last == ",":
                parts.pop()
            if depth >= 0:
                parts.append(PYTHON_CONSTANTS.get(word, word))
            depth = max(0, depth)
    if depth and parts[-1][-1:] not in ("}", '"'):
        raise ValueError("it is broken off")
    return _DECODER.decode(" ".join([*parts, *"}" * depth]).strip())


@functools.lru_cache
def _key(keys: tuple[str, ...]) -> re.Pattern[str]:
    """Return the pattern of a key with its colon; some models escape an underscore, as Markdown does."""
    names = "|".join(re.escape(key).replace("_", r"\\?_") for key in sorted(keys, key=len, reverse=True))
    return re.compile(rf"[{_MARKS}]?({names})[{_MARKS}]?{_GAP}:")


@functools.lru_cache
def _end(key: re.Pattern[str]) -> re.Pattern[str]:
    """Return the pattern of what follows a text: the next key, perhaps behind braces, or the end."""
    comma = rf"{_GAP}(?>,{_GAP})?+"
    return re.compile(rf"{comma}(?>\}}{comma}){{0,9}}+(?:{key.pattern}|\Z)")


def _skip_gap(text: str, index: int) -> int:
    gap = _gap.match(text, index)[0]  # type: ignore[index]  # it matches nothing too
    if any(letter.isdigit() for letter in gap):
        raise ValueError("a comment holds a number")
    return index + len(gap)


def _read_text(text: str, index: int, key: re.Pattern[str]) -> tuple[str, int]:
    """Return the text that begins at an index as JSON has it, and the index behind it."""
    for mark in _ENDS[text[index]].finditer(text, index + 1):
        if _end(key).match(text, mark.end()):
            return f'"{_ESCAPE.sub(_escape, text[index + 1 : mark.start()])}"', mark.end()
        if key.match(text, mark.start()):
            raise ValueError("a key stands in a text, so it is unclear where the text ends")
    raise ValueError("a text has no end")


def _escape(match: re.Match[str]) -> str:
    if match[0] in ('"', "\\"):
        return "\\" + match[0]
    return "'" if match[1] == "'" else match[0]


def _agreeing(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return pairs as a mapping; raise a ``ValueError`` where a key says two things."""
    result: dict[str, Any] = {}
    for key, value in pairs:
        if key not in _PROSE and _without_prose(result.setdefault(key, value)) != _without_prose(value):
            raise ValueError(f"the key {key!r} stands twice, with different values")
        result[key] = value
    return result


def _without_prose(value: Any) -> tuple[type, object]:
    if isinstance(value, dict):
        return dict, {key: part for key, part in value.items() if key not in _PROSE}
    return type(value), value


_DECODER = json_decoder(_agreeing, strict=False)
