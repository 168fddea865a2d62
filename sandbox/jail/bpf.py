"""Programs of the kernel's packet filter (BPF), by which seccomp decides on system calls.

A program finds a call's action by bisection, since the kernel runs a new filter for every call number when it is
installed.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise

from sandbox.jail import kernel

ALLOW, KILL, ERRNO = 0x7FFF0000, 0x80000000, 0x00050000
LOAD, JUMP, EQUAL, AT_LEAST, ANY_BIT, AND, RETURN = 0x20, 0x05, 0x15, 0x35, 0x45, 0x54, 0x06
_NUMBER_AT, _ARCH_AT, _ARGUMENTS_AT = 0, 4, 16
_X32_BIT = 0x40000000
_LIMIT = 255  # a conditional jump is at most so long

Instruction = tuple[int, int, int, int]  # code, jump if true, jump if false, operand


def ret(value: int) -> Instruction:
    return (RETURN, 0, 0, value)


def load(argument: int) -> Instruction:
    """Load the lower half of a call's argument; both machines are little-endian."""
    return (LOAD, 0, 0, _ARGUMENTS_AT + 8 * argument)


def one_of(values: Iterable[int]) -> list[Instruction]:
    """Skip the instruction that follows these if the loaded value is one of some."""
    ordered = sorted(values)
    return [(EQUAL, len(ordered) - index, 0, value) for index, value in enumerate(ordered)]


def tree(actions: Mapping[int, Sequence[Instruction]], other: Sequence[Instruction]) -> list[Instruction]:
    """Return instructions that find a call's action by bisection; the call's number is loaded."""
    steps: dict[int, Sequence[Instruction]] = {0: other}  # from this number on, this action
    for number in sorted(actions):
        steps[number], steps[number + 1] = actions[number], other
    changes: list[tuple[int, Sequence[Instruction]]] = [(0, steps[0])]  # the steps that change the action
    for (_, action_before), (number, action) in pairwise(steps.items()):
        if action is not action_before:
            changes.append((number, action))
    return _bisect(changes)


def _bisect(steps: Sequence[tuple[int, Sequence[Instruction]]]) -> list[Instruction]:
    """Return instructions that jump to the action of the last step whose number is not above the loaded one."""
    if len(steps) == 1:
        ((_, action),) = steps
        return list(action)
    middle = len(steps) // 2
    below, above = _bisect(steps[:middle]), _bisect(steps[middle:])
    number, _ = steps[middle]
    if len(below) <= _LIMIT:
        return [(AT_LEAST, len(below), 0, number), *below, *above]
    return [(AT_LEAST, 0, 1, number), (JUMP, 0, 0, len(below)), *below, *above]


def program(machine: str, tree: Sequence[Instruction]) -> bytes:
    head: list[Instruction] = [
        (LOAD, 0, 0, _ARCH_AT),
        (EQUAL, 1, 0, kernel.AUDIT_ARCH[machine]),
        ret(KILL),
        (LOAD, 0, 0, _NUMBER_AT),
    ]
    if machine == "x86_64":  # the x32 calls have numbers of their own
        head += [(AT_LEAST, 0, 1, _X32_BIT), ret(KILL)]
    return b"".join(struct.pack("=HBBI", *instruction) for instruction in (*head, *tree))


class Installer:
    """A filter made ready, so that entering it is a single call."""

    def __init__(self, program: bytes) -> None:
        self._buffer = ctypes.create_string_buffer(program, len(program))
        head = struct.pack("HxxxxxxP", len(program) // 8, ctypes.addressof(self._buffer))
        self._enter = kernel.Prepared("seccomp", 1, 0, head)

    def enter(self, *, prepared: bool = False) -> None:
        """Enter the filter for ever, or raise ``OSError``; if ``prepared``, privileges were given up before."""
        if not prepared:
            kernel.no_new_privileges()
        self._enter()
