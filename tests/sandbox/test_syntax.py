"""Parsing while something else of the process ends, and parses as well."""

from __future__ import annotations

import ast
import gc
from collections.abc import Callable, Iterator

import pytest

from sandbox.syntax import parse, parse_expression

TEXT = "[" + ", ".join(["f(x, y[0])"] * 200) + "]"


class _Ends:
    """A part of a cycle that parses as the collector ends it, as a logged traceback does."""

    ended = 0

    def __init__(self) -> None:
        self.itself = self

    def __del__(self) -> None:
        _Ends.ended += 1
        ast.parse("1")


@pytest.fixture
def _collected_at_once() -> Iterator[None]:
    before = gc.get_threshold()
    gc.set_threshold(1)
    yield
    gc.set_threshold(*before)


@pytest.mark.usefixtures("_collected_at_once")
@pytest.mark.parametrize("parsed", [parse, parse_expression])
def test_a_finalizer_that_parses_disturbs_no_tree(parsed: Callable[[str], ast.AST]) -> None:
    """The collector waits until the tree is made; without that CPython 3.11 raises SystemError here."""
    expected, before = ast.dump(parsed(TEXT)), _Ends.ended
    for _ in range(20):
        _Ends()
        assert expected == ast.dump(parsed(TEXT))
    gc.collect()
    assert _Ends.ended == before + 20
