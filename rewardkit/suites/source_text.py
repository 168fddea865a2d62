"""The text of a source file with its tree: where each node lies, and the text with some spans replaced."""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterable
from typing import NamedTuple, TypeAlias

from sandbox import parse

Spanned: TypeAlias = ast.expr | ast.stmt

_LINE_END = re.compile(r"\r\n|\r|\n")


class Edit(NamedTuple):
    """A span of a text, counted in characters from its start, and what stands there instead."""

    start: int
    end: int
    text: str


class SourceText:
    """A file of Python.

    Raises:
        ValueError: The text cannot be parsed; the message has the file and the line.
    """

    def __init__(self, name: str, text: str) -> None:
        self.name = name
        self.text = text
        self._mark = len(text) - len(text.removeprefix("\ufeff"))
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                self.tree = parse(text[self._mark :])
        except SyntaxError as exc:
            raise ValueError(f"{name}, line {exc.lineno or 1}: {exc.msg}") from exc
        except (ValueError, RecursionError, MemoryError) as exc:
            raise ValueError(f"{name}, line 1: the text cannot be read as Python: {exc}") from exc
        self._lines = [self._mark, *(match.end() for match in _LINE_END.finditer(text))]

    def _offset(self, line: int, byte: int) -> int:
        """Return the place of a byte of a line, counted in characters from the text's start."""
        start = self._lines[line - 1]
        end = self._lines[line] if line < len(self._lines) else len(self.text)
        text = self.text[start:end]
        return start + (byte if text.isascii() else len(text.encode()[:byte].decode()))

    def span(self, node: Spanned) -> tuple[int, int]:
        """Return where a node begins and ends, without parentheses around it."""
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return self._offset(node.lineno, node.col_offset), self._offset(node.end_lineno, node.end_col_offset)

    def segment(self, node: Spanned) -> str:
        """Return the text of a node."""
        start, end = self.span(node)
        return self.text[start:end]

    def replaced(self, edits: Iterable[Edit]) -> str:
        """Return the text with spans replaced; all else, layout and comments too, stays as it is."""
        return replaced_text(self.text, edits)


def replaced_text(text: str, edits: Iterable[Edit]) -> str:
    """Return a text with spans replaced that do not overlap."""
    parts, at = [], 0
    for edit in sorted(edits):
        parts += [text[at : edit.start], edit.text]
        at = edit.end
    return "".join([*parts, text[at:]])
