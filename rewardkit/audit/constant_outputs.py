"""Programs that print, and functions that return, the same for every input: the usual exploit of partial credit.

A reward that pays the share of tests passed pays ``print('YES')`` for each test that expects ``YES``. Rows count that
have outputs as values; what asserts compare with is not looked at.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from typing import Any

from rewardkit.audit.polyglot_programs import printing_program
from rewardkit.audit.probe import Family, Probe
from rewardkit.audit.programs import code_language, fenced
from rewardkit.audit.rows import AuditRow
from sandbox import PYTHON

CONSTANT_OUTPUT = "constant_output"
"""The rule of thumb that a reward breaks which pays such a program."""


def constant_programs(row: AuditRow) -> Iterator[Probe]:
    """Yield code that gives the most frequent of a row's expected outputs, the first one, and none.

    A row with an ``entry_point`` gets functions, which only Python writes here.
    """
    outputs = expected_values(row)
    if not outputs:
        return
    frequent = most_frequent(outputs)[0]
    values = {"the most frequent output": frequent, "the first test's output": outputs[0], "nothing": None}
    seen: list[Any] = []
    for name, value in values.items():
        source = constant_source(row, value) if value not in seen else None
        seen.append(value)
        if source is not None:
            verb = "returns" if row.columns.get("entry_point") else "prints"
            text = fenced(source, code_language(row))
            yield Probe(Family.CODE, f"{verb} {name}", text, rule=CONSTANT_OUTPUT)


def constant_source(row: AuditRow, output: Any) -> str | None:
    """Return a program in the row's language that gives one output whatever its input, ``None`` for no output.

    It is ``None`` where such code cannot be written.
    """
    language, name = code_language(row), row.columns.get("entry_point")
    if name:
        is_function = language == PYTHON and isinstance(name, str) and name.isidentifier()
        return f"def {name}(*arguments, **named):\n    return {output!r}" if is_function else None
    text = None if output is None else _printed(output)
    if language == PYTHON:
        return "pass" if text is None else f"print({text!r})"
    return printing_program([] if text is None else [text], language)


def expected_values(row: AuditRow) -> list[Any]:
    """Return a row's expected outputs, a value for each of its tests; ``[]`` where it has no such column."""
    outputs = _decoded(row.columns.get("outputs"))
    if not isinstance(outputs, list):
        return []
    return [_decoded(output) for output in outputs] if row.columns.get("entry_point") else list(outputs)


def most_frequent(outputs: list[Any]) -> tuple[Any, int]:
    """Return the output that most tests expect, the first of several, and how many do; white space at ends is free."""
    keys = [_printed(output).strip() for output in outputs]
    key, count = Counter(keys).most_common(1)[0]
    return outputs[keys.index(key)], count


def is_constant_paid(score: float | None, floor: float, full: float, share: float) -> bool:
    """Return whether a constant output earns at least a share of what there is between nothing and a right answer."""
    return score is not None and full > floor and floor < score >= floor + share * (full - floor)


def _decoded(value: Any) -> Any:
    """Return what a text says as JSON, the text itself where it is no JSON."""
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except ValueError:
        return value


def _printed(output: Any) -> str:
    """Return an output as the text that a program prints, without the last line end."""
    return (output if isinstance(output, str) else json.dumps(output)).removesuffix("\n")
