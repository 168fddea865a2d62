r"""Text of a container to the container: JSON, else a Python literal, within bounds.

Covered:

- nothing is evaluated: Python literals go through ``ast.literal_eval``;
- long text, deep nesting and huge numbers are refused before or while they are read, so no
  ``RecursionError``, ``MemoryError`` or overflow of the parser's C stack comes of a text;
- only text made of literal tokens reaches Python's parser. That keeps out chains such as ``----1``, whose depth
  brackets do not show, and adjacent strings: ``"['a' 'b']"`` is how numpy prints two strings, and Python would
  read one. Comments, raw, formatted and triple-quoted strings are refused too; ``repr`` writes none of them;
- numbers that are not finite (``NaN``, ``Infinity``, ``1e999``) are refused;
- no warning escapes and no filter is touched: ``warnings.catch_warnings`` is not safe among threads before
  Python 3.14, so escapes that Python would warn of, such as ``'\d'``, are spelled out (``'\\d'``) beforehand.

Not covered: the memory of the container itself, and of many texts at once.
"""

from __future__ import annotations

import ast
import json
import math
import re

from sandbox import parse_expression

MAX_TEXT_CHARS = 10_000_000  # The most characters of text that are read as a container

MAX_LITERAL_CHARS = 1_000_000
"""The most characters that are read as a Python literal, whose syntax tree takes up to 500 times its memory."""

MAX_DEPTH = 64
"""The most containers within one another in a text."""

NEITHER = "neither JSON nor a Python literal"

_OPENERS = "[{("
_STRING = r"""(?:"(?>[^"\\\r\n]|\\(?![4-7][0-7]{2})[\s\S])*+"|'(?>[^'\\\r\n]|\\(?![4-7][0-7]{2})[\s\S])*+')"""
_REAL = r"(?:[0-9]++(?>\.[0-9]*+)?+|\.[0-9]++)(?>[eE][+-]?[0-9]++)?+"
_NUMBER = rf"[+-]?(?:0[xXoObB][0-9a-fA-F]++|{_REAL}(?>j|[+-]{_REAL}j)?+)"
_VALUE = rf"(?:[bBuU]?{_STRING}|{_NUMBER}|True|False|None|set\(\))"
_VALUE_ENDS = r"(?=\s*+(?:[,:\])}]|\Z))"

_LITERAL = re.compile(rf"(?>\s++|[\[\](){{}},:]|{_VALUE}{_VALUE_ENDS})*+")
_PREFIXED_STRING = re.compile(rf"([bBuU]?){_STRING}")
_ESCAPE = re.compile(r"\\[\s\S]")
_STR_ESCAPES = frozenset("\n\r\\'\"abfnrtv01234567xNuU")
_BYTES_ESCAPES = _STR_ESCAPES - frozenset("NuU")

# A string that never closes runs to the end of its line: it is not tried again from each of its quotes,
# which would take quadratic time, and no parser accepts it anyhow.
_BRACKET_OR_STRING = re.compile(r""""(?>[^"\\\r\n]|\\[\s\S])*+"?|'(?>[^'\\\r\n]|\\[\s\S])*+'?|[\[({\])}]""")


class TextError(ValueError):
    """A text is no container. The message says why in a few words."""


def looks_structured(text: str) -> bool:
    """Whether the text starts as a container does."""
    return text.lstrip().startswith(("[", "{", "(", "set("))


def parse_container(text: str) -> object:
    """Return the value that a bracketed text stands for, read as JSON, else as a Python literal.

    Usually a list, tuple, set or dict; ``"(1)"`` is the number, as in Python. Raises TextError where the text has no
    bracket, is beyond the bounds, holds a number that is not finite, or is neither.
    """
    if len(text) > MAX_TEXT_CHARS:
        raise TextError(f"longer than {MAX_TEXT_CHARS:,} characters")
    text = text.strip()
    if not looks_structured(text):
        raise TextError("it starts with no bracket")
    _check_depth(text)
    try:
        return _JSON.decode(text)
    except json.JSONDecodeError:
        return _parse_literal(text)
    except TextError:
        raise
    except ValueError as error:  # the interpreter's limit on the digits of an int
        raise TextError("a number in it has too many digits") from error


def _check_depth(text: str) -> None:
    """Raise TextError where brackets outside strings nest deeper than MAX_DEPTH."""
    if sum(map(text.count, _OPENERS)) <= MAX_DEPTH:
        return
    depth = 0
    for match in _BRACKET_OR_STRING.finditer(text):
        mark = text[match.start()]
        if mark in _OPENERS:
            depth += 1
            if depth > MAX_DEPTH:
                raise TextError(f"nested deeper than {MAX_DEPTH}")
        elif mark in "])}":
            depth -= 1


def _refuse_constant(name: str) -> object:
    raise TextError(f"{name} is not finite")


def _finite_float(digits: str) -> float:
    number = float(digits)
    if math.isinf(number):
        raise TextError("a number in it is not finite")
    return number


_JSON = json.JSONDecoder(parse_constant=_refuse_constant, parse_float=_finite_float)


def _parse_literal(text: str) -> object:
    """Return the value of a Python literal; TextError for another text, or a number that is not finite."""
    if len(text) > MAX_LITERAL_CHARS:
        raise TextError(f"not JSON, and longer than {MAX_LITERAL_CHARS:,} characters for a Python literal")
    if not _LITERAL.fullmatch(text):
        raise TextError(NEITHER)
    try:
        value = ast.literal_eval(parse_expression(_without_odd_escapes(text)))
    except (SyntaxError, ValueError, TypeError, MemoryError, RecursionError, OverflowError) as error:
        raise TextError(NEITHER) from error
    if not _is_finite(value):
        raise TextError("a number in it is not finite")
    return value


def _without_odd_escapes(text: str) -> str:
    r"""Return the text with ``\\d`` for ``\d``: what Python makes of it, less the warning."""
    return _PREFIXED_STRING.sub(_mend_string, text) if "\\" in text else text


def _mend_string(match: re.Match[str]) -> str:
    """Return a string literal with the backslash doubled in each escape that Python does not know."""
    escapes = _BYTES_ESCAPES if match[1] in ("b", "B") else _STR_ESCAPES
    return _ESCAPE.sub(lambda escape: escape[0] if escape[0][1] in escapes else "\\" + escape[0], match[0])


def _is_finite(value: object) -> bool:
    """Return whether every number in a value is finite."""
    if isinstance(value, float):
        return math.isfinite(value)
    if isinstance(value, complex):
        return math.isfinite(value.real) and math.isfinite(value.imag)
    if isinstance(value, dict):
        return all(map(_is_finite, value)) and all(map(_is_finite, value.values()))
    if isinstance(value, list | tuple | set):
        return all(map(_is_finite, value))
    return True
