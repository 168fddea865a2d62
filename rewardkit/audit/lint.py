"""Known mistakes in a reward's source, read from its syntax tree; nothing is run.

A finding is silenced by ``# audit: ok REASON`` on its line, and a family of probes that makes no sense for a reward
or a rule of thumb is left out by ``# audit: skip NAME REASON`` anywhere in its function, several by
``# audit: skip NAME,NAME REASON``; both need the reason.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from rewardkit.audit.lint_rules import RULES
from rewardkit.audit.probe import Family
from rewardkit.audit.rules_of_thumb import KINDS
from rewardkit.audit.source import FunctionSource, pieces_of
from rewardkit.declare.decorator import Reward
from rewardkit.errors import RewardDefinitionError


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


def skips_of(reward: Reward[..., Any]) -> dict[str, str]:
    """Return the families and rules of thumb that the author's comments call not applicable, with the reasons.

    Raises RewardDefinitionError where a comment names neither, or gives no reason.
    """
    reasons: dict[str, str] = {}
    pieces = pieces_of(reward)
    if not pieces:
        return reasons
    function = pieces[0]
    for comment in function.comments(1, len(function.lines)):
        verb, _, rest = comment.partition(" ")
        if verb == "skip":
            names, _, reason = rest.strip().partition(" ")
            where = f"reward {reward.name!r}: # audit: {comment}"
            reasons.update((skippable(name, where), reason.strip()) for name in names.split(","))
            if not reason.strip():
                raise RewardDefinitionError(f"{where}: give the reason behind it")
    return reasons


def skippable(name: str, where: str) -> str:
    """Return the name of a family or of a rule of thumb; raise RewardDefinitionError for any other."""
    names = list(dict.fromkeys([*map(str, Family), *KINDS]))
    if name not in names:
        raise RewardDefinitionError(f"{where}: no family or rule of thumb {name!r}; expected {', '.join(names)}")
    return name


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
