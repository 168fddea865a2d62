"""Parsing while something else of the process ends, and parses as well."""

from __future__ import annotations

import ast
import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from builtin_rewards.reading.tool_calls import calls_in
from rewardkit.coercion.literals import parse_container
from sandbox.syntax import parse, parse_expression

TEXT = "[" + ", ".join(["f(x, y[0])"] * 200) + "]"


class _Ends:
    """A part of a cycle that makes a tree as the collector ends it, as a logged traceback does."""

    made = ended = 0

    def __init__(self) -> None:
        self.itself = self
        _Ends.made += 1

    def __del__(self) -> None:
        _Ends.ended += 1
        compile("1", "ends.py", "eval", ast.PyCF_ONLY_AST)


@contextmanager
def _collected_at_once() -> Iterator[None]:
    """Something is left to be collected just before each tree is made, and the collector looks all the time."""

    def compiles(*arguments: Any, **options: Any) -> Any:
        _Ends()
        return compile(*arguments, **options)

    before = gc.get_threshold()
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(ast, "compile", compiles, raising=False)
        gc.set_threshold(1)
        try:
            yield
        finally:
            gc.set_threshold(*before)


READERS: dict[str, Callable[[], object]] = {
    "a module": lambda: ast.dump(parse(TEXT)),
    "an expression": lambda: ast.dump(parse_expression(TEXT)),
    "a literal of a column": lambda: parse_container("[" + "('a', 1), " * 400 + "]"),
    "calls of tools": lambda: calls_in("[" + ", ".join(["find(what='a', most=1)"] * 100) + "]"),
}


@pytest.mark.parametrize("read", READERS.values(), ids=READERS)
def test_a_finalizer_that_parses_disturbs_no_tree(read: Callable[[], object]) -> None:
    """The collector waits until the tree is made; without that CPython 3.11 raises SystemError here."""
    expected = read()
    assert expected
    with _collected_at_once():
        found = [read() for _ in range(5)]
    assert [expected] * 5 == found
    gc.collect()
    assert 5 <= _Ends.made == _Ends.ended
