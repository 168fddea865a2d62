"""Columns of rows of code that hold a text or a list of its parts: tests, and the inputs and outputs of programs."""

from __future__ import annotations

import ast
import contextlib
import json
from datetime import date, time
from typing import Any

from rewardkit.extending import plain_json
from sandbox import parse_expression

_PAIRS = "the row's tests cannot be run: 'tests' holds inputs and outputs; name the columns 'inputs' and 'outputs'"

_OBJECT = (
    "the row's tests cannot be run: 'tests' holds an object with {}, and not the text of tests or a list of asserts"
)


def join_asserts(tests: str) -> str:
    """Return test text; a list of lines in it, as JSON or as Python writes it, becomes their text."""
    if not tests.lstrip().startswith("["):
        return tests
    for read in (json.loads, _read_literal):
        with contextlib.suppress(ValueError, SyntaxError, RecursionError, MemoryError):
            lines = read(tests)
            if isinstance(lines, list) and all(isinstance(line, str) for line in lines):
                return "\n".join(lines)
    return tests


def why_no_tests(tests: str) -> str | None:
    """Return why test text cannot be run: it is data, as APPS has inputs and outputs; ``None`` where not."""
    if tests.lstrip()[:1] not in ("[", "{"):
        return None
    for read in (json.loads, _read_literal):
        with contextlib.suppress(ValueError, SyntaxError, RecursionError, MemoryError):
            data = read(tests)
            rows = data if isinstance(data, list) else [data]
            if rows and all(map(_is_pair, rows)):
                return _PAIRS
            return _OBJECT.format(", ".join(map(repr, data))) if isinstance(data, dict) and data else None
    return None


def _is_pair(row: Any) -> bool:
    return isinstance(row, dict) and all({name, f"{name}s"} & row.keys() for name in ("input", "output"))


def join_lines(text: Any) -> Any:
    """Return the text of a program's input or output, which some data sets give as a list of its lines."""
    is_lines = isinstance(text, list | tuple) and all(isinstance(line, str) for line in text)
    return "\n".join(line.rstrip("\n") for line in text) if is_lines else text


def dates_as_text(value: Any) -> Any:
    """Return a function's input or output with the dates in it, which a library read from text, as that text."""
    if isinstance(value, dict):
        return {key: dates_as_text(part) for key, part in value.items()}
    if isinstance(value, list):
        return [dates_as_text(part) for part in value]
    return str(plain_json(value)) if isinstance(value, date | time) else value


def _read_literal(text: str) -> Any:
    return ast.literal_eval(parse_expression(text.strip()))
