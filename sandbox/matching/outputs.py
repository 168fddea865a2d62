"""Rules by which a program's output is the expected one: lines, tokens, numbers within a tolerance, in any order.

They are functions of two texts and run outside the jail, so no completion sees an expected output.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal
from enum import StrEnum

from sandbox.errors import CheckError

DEFAULT_TOLERANCE = 1e-6  # as contests have it, relative or absolute
_ROUNDING = 1e-9  # part of a tolerance by which floats may miss it, as testlib's 1e-15 is of 1e-6
_MAX_PAIRED = 200  # lines that are paired off exactly; more are paired in the order of their numbers
_NUMBER = re.compile(r"[+-]?(?:\d+(?P<point>\.\d*)?|(?P<bare>\.\d+))(?P<exponent>[eE][+-]?\d{1,9})?", re.ASCII)
_ANSWERS = frozenset({"yes", "no"})

Tokens = Sequence[str]


class OutputMatch(StrEnum):
    """The rule by which a program's output is compared with the expected one."""

    LINES = "lines"  # line by line; white space at the ends of lines and empty lines at the end do not matter
    TOKENS = "tokens"  # what white space separates, wherever it stands; decimals within the tolerance
    FLOAT = "float"  # as tokens, but whole numbers too are within the tolerance
    UNORDERED = "unordered"  # lines of tokens in any order; tokens in any order where lines hold one each, or it is one
    YES_NO = "yes_no"  # as tokens, but yes and no in upper or lower case


def output_matcher(match: str, tolerance: float | None = None) -> Callable[[str, str], bool]:
    """Return a function ``(output, expected) -> bool`` that compares by a rule.

    Args:
        match: A rule of :class:`OutputMatch`, by its name.
        tolerance: How far a number may be off, absolutely or relative to the expected one; 0 or more, below 1. By
            default :data:`DEFAULT_TOLERANCE`; the rule ``lines`` by default compares text, and numbers only if a
            tolerance is given.

    Raises:
        CheckError: There is no such rule, or the tolerance makes no sense.
    """
    if match not in tuple(OutputMatch):
        raise CheckError(f"match={match!r}: expected one of {', '.join(map(repr, map(str, OutputMatch)))}")
    if tolerance is not None and not _is_tolerance(tolerance):
        raise CheckError(f"tolerance={tolerance!r}: expected a number, 0 or more and below 1")
    rule = OutputMatch(match)
    if rule is OutputMatch.LINES and tolerance is None:
        return _same_lines
    margin = DEFAULT_TOLERANCE if tolerance is None else float(tolerance)
    return lambda output, expected: _RULES[rule](output, expected, margin)


def _is_tolerance(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 1


def _same_lines(output: str, expected: str) -> bool:
    output, expected = output.rstrip(), expected.rstrip()
    if output.count("\n") != expected.count("\n"):  # of long outputs most differ here already
        return False
    pairs = zip(output.split("\n"), expected.split("\n"), strict=True)
    return all(line.rstrip() == expected_line.rstrip() for line, expected_line in pairs)


def _match_lines(output: str, expected: str, tolerance: float) -> bool:
    lines, expected_lines = output.rstrip().split("\n"), expected.rstrip().split("\n")
    return len(lines) == len(expected_lines) and all(
        _same_tokens(line.split(), expected_line.split(), tolerance)
        for line, expected_line in zip(lines, expected_lines, strict=True)
    )


def _match_tokens(output: str, expected: str, tolerance: float) -> bool:
    return _same_tokens(output.split(), expected.split(), tolerance)


def _match_numbers(output: str, expected: str, tolerance: float) -> bool:
    return _same_tokens(output.split(), expected.split(), tolerance, whole=True)


def _match_answers(output: str, expected: str, tolerance: float) -> bool:
    return _same_tokens(_fold_answers(output.split()), _fold_answers(expected.split()), tolerance)


def _match_unordered(output: str, expected: str, tolerance: float) -> bool:
    lines, expected_lines = _token_lines(output), _token_lines(expected)
    if len(expected_lines) == 1 or all(len(line) == 1 for line in expected_lines):
        lines, expected_lines = _one_a_line(lines), _one_a_line(expected_lines)
    if len(lines) != len(expected_lines):
        return False
    counts, expected_counts = Counter(lines), Counter(expected_lines)
    rest, expected_rest = list((counts - expected_counts).elements()), list((expected_counts - counts).elements())
    return _pair_off(rest, expected_rest, tolerance)


_RULES: dict[OutputMatch, Callable[[str, str, float], bool]] = {
    OutputMatch.LINES: _match_lines,
    OutputMatch.TOKENS: _match_tokens,
    OutputMatch.FLOAT: _match_numbers,
    OutputMatch.UNORDERED: _match_unordered,
    OutputMatch.YES_NO: _match_answers,
}


def _token_lines(text: str) -> list[tuple[str, ...]]:
    return [tuple(line.split()) for line in text.split("\n") if line.strip()]


def _one_a_line(lines: Iterable[tuple[str, ...]]) -> list[tuple[str, ...]]:
    return [(token,) for line in lines for token in line]


def _fold_answers(tokens: Iterable[str]) -> list[str]:
    return [token.lower() if token.lower() in _ANSWERS else token for token in tokens]


def _same_tokens(tokens: Tokens, expected: Tokens, tolerance: float, *, whole: bool = False) -> bool:
    """Return whether tokens are the expected ones; ``whole`` numbers within the tolerance too."""
    return tokens == expected or (
        len(tokens) == len(expected)
        and all(
            token == expected_token or _is_close(token, expected_token, tolerance, whole=whole)
            for token, expected_token in zip(tokens, expected, strict=True)
        )
    )


def _is_close(token: str, expected: str, tolerance: float, *, whole: bool) -> bool:
    """Return whether a number is within the tolerance of the expected one, which is a decimal unless ``whole``."""
    expected_number = _NUMBER.fullmatch(expected)
    if expected_number is None or not (whole or any(expected_number.groups())) or not _NUMBER.fullmatch(token):
        return False
    if not tolerance:
        return Decimal(token) == Decimal(expected)
    value, target = float(token), float(expected)
    if not math.isfinite(value) or not math.isfinite(target):
        return False
    return abs(value - target) <= tolerance * (1 + _ROUNDING) * max(1.0, abs(target))


def _pair_off(lines: Sequence[Tokens], expected: Sequence[Tokens], tolerance: float) -> bool:
    """Return whether lines can be paired off with the expected ones, each used once."""
    if len(lines) > _MAX_PAIRED:
        pairs = zip(sorted(lines, key=_sizes), sorted(expected, key=_sizes), strict=True)
        return all(_same_tokens(line, expected_line, tolerance) for line, expected_line in pairs)
    choices = [
        [index for index, line in enumerate(lines) if _same_tokens(line, expected_line, tolerance)]
        for expected_line in expected
    ]
    partners: dict[int, int] = {}  # by a line's index, the index of the expected line that it is paired with

    def pair(index: int, tried: set[int]) -> bool:
        for choice in choices[index]:
            if choice not in tried:
                tried.add(choice)
                if choice not in partners or pair(partners[choice], tried):
                    partners[choice] = index
                    return True
        return False

    return all(pair(index, set()) for index in range(len(expected)))


def _sizes(line: Tokens) -> list[tuple[bool, float, str]]:
    """Return a key that sorts lines by their numbers."""
    return [(True, float(token), "") if _NUMBER.fullmatch(token) else (False, 0.0, token) for token in line]
