"""Known mistakes in a reward's source, read from its syntax tree; nothing is run.

A finding is silenced by ``# audit: ok REASON`` on its line, which needs the reason.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from rewardkit.audit.lint_rules import RULES
from rewardkit.audit.source import FunctionSource, pieces_of
from rewardkit.declare.decorator import Reward


@dataclass(frozen=True, slots=True)
class Mistake:
    """A known mistake by its rule's name, such as ``eval``, with the line of the file that makes it."""

    rule: str
    file: str
    line: int
    code: str
    why: str
    fix: str


def lint(reward: Reward[..., Any]) -> list[Mistake]:
    """Return the known mistakes in a reward's source and in the functions of its module that it calls, by line."""
    mistakes = [mistake for piece in pieces_of(reward) for mistake in _of_piece(piece)]
    return sorted(dict.fromkeys(mistakes), key=lambda mistake: (mistake.file, mistake.line, mistake.rule))


def has_source(reward: Reward[..., Any]) -> bool:
    return bool(pieces_of(reward))


def _of_piece(piece: FunctionSource) -> Iterator[Mistake]:
    """Yield the mistakes of one function that no comment on their lines silences."""
    for rule in RULES:
        for node in rule.find(piece):
            first = last = getattr(node, "lineno", 1)
            if not isinstance(node, ast.ExceptHandler):  # a comment in a handler's body is about its body
                last = getattr(node, "end_lineno", first)
            if not _is_silenced(piece, first, last):
                code = piece.lines[first - 1].strip()
                yield Mistake(rule.name, piece.file, piece.line_of(node), code, rule.why, rule.fix)


def _is_silenced(piece: FunctionSource, first: int, last: int) -> bool:
    comments = (comment.partition(" ") for comment in piece.comments(first, last))
    return any(verb == "ok" and reason.strip() for verb, _, reason in comments)
