"""A source file of another language with its tree, by tree-sitter's grammar."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Iterator
from random import Random
from typing import TYPE_CHECKING

from rewardkit.errors import SuiteError
from rewardkit.suites.perturbations import Perturbation
from rewardkit.suites.soft_statements import StatementChange
from rewardkit.suites.text_changes import TextChange

if TYPE_CHECKING:
    from tree_sitter import Node, Parser

_DEEPEST = 200  # nodes in each other that are looked into


@functools.cache
def _parser(grammar: str) -> Parser:
    try:
        import tree_sitter

        module = importlib.import_module(f"tree_sitter_{grammar}")
    except ImportError as error:
        install = f"pip install tree-sitter tree-sitter-{grammar}"
        raise SuiteError(f"{error.name} is not installed, which reads tests in {grammar}: {install}") from None
    return tree_sitter.Parser(tree_sitter.Language(module.language()))


class SyntaxTree:
    """A file.

    Args:
        name: Its name, for messages.
        text: Its text.
        grammar: The language's: ``"javascript"`` or ``"go"``.

    Raises:
        ValueError: The text cannot be parsed; the message has the file and the line.
        SuiteError: tree-sitter or the grammar is not installed.
    """

    def __init__(self, name: str, text: str, grammar: str) -> None:
        self.name = name
        self.text = text
        self._data = text.encode("utf-8", "surrogatepass")
        self._is_ascii = len(self._data) == len(text)
        self.root = _parser(grammar).parse(self._data).root_node
        if self.root.has_error:
            raise ValueError(f"{name}, line {_first_error(self.root)}: cannot be read as {grammar}")

    def span(self, node: Node) -> tuple[int, int]:
        """Return where a node begins and ends, in characters."""
        return self._offset(node.start_byte), self._offset(node.end_byte)

    def _offset(self, byte: int) -> int:
        return byte if self._is_ascii else len(self._data[:byte].decode("utf-8", "surrogatepass"))

    def segment(self, node: Node) -> str:
        """Return the text of a node."""
        return self._data[node.start_byte : node.end_byte].decode("utf-8", "surrogatepass")


def perturbation(tree: SyntaxTree, kind: str, statement: Node, change: TextChange) -> Perturbation:
    """Return the change of a statement, with its lines where the change stands in it.

    What is changed elsewhere, as in a constant, other statements may compare too.
    """
    start, end = tree.span(statement)
    is_within = start <= change.draw(Random(0)).start < end  # noqa: S311 - any draw tells where
    lines = range(statement.start_point[0] + 1, statement.end_point[0] + 2) if is_within else ()
    return Perturbation(kind, start, (change,), StatementChange(frozenset(lines)))


def _first_error(root: Node) -> int:
    for node in inner_nodes(root):
        if node.is_error or node.is_missing:
            return node.start_point[0] + 1
    return root.start_point[0] + 1


def inner_nodes(node: Node, depth: int = 0) -> Iterator[Node]:
    """Yield a node and those below it, in order."""
    yield node
    if depth < _DEEPEST:
        for child in node.children:
            yield from inner_nodes(child, depth + 1)


def field(node: Node, name: str) -> Node | None:
    """Return the child of a field."""
    return node.child_by_field_name(name)


def without_parentheses(node: Node) -> Node:
    """Return an expression without parentheses around it."""
    while node.type == "parenthesized_expression" and len(node.named_children) == 1:
        node = node.named_children[0]
    return node
