"""Reads Python's syntax, and nothing else of this process meanwhile.

CPython counts the depth of a tree that it makes in one place for all. A collection while it does may end an object
whose last words are a logged traceback, which is read as a tree as well; the outer one is then a ``SystemError``
("AST constructor recursion depth mismatch"). Seen on 3.11 with the exception of a task that nobody had awaited.
"""

from __future__ import annotations

import ast

from sandbox.workers.collector import CollectorPaused


def parse(text: str) -> ast.Module:
    """Return the tree of a module's text; raise what ``ast.parse`` raises."""
    with CollectorPaused():
        return ast.parse(text)


def parse_expression(text: str) -> ast.expr:
    """Return the tree of one expression; raise what ``ast.parse`` raises."""
    with CollectorPaused():
        return ast.parse(text, mode="eval").body
