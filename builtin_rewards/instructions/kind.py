"""What a kind of instruction is: a line that says its rule, and a check whose parameters are the arguments of a row."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import NamedTuple

LESS, LEAST = "less than", "at least"


class InstructionKind(NamedTuple):
    """A kind of instruction.

    ``check`` tells, in time linear in the text, whether a text that is not blank follows an instruction of the kind;
    its parameters after the text have the names of the arguments in the column ``kwargs``.
    """

    rule: str
    check: Callable[..., bool]

    @property
    def parameters(self) -> tuple[str, ...]:
        return tuple(inspect.signature(self.check).parameters)[1:]


def is_bounded(count: int, relation: str, limit: int) -> bool:
    """Return whether a count is less than a limit, or at least that."""
    return count < limit if relation == LESS else count >= limit
