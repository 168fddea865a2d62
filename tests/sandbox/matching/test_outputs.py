"""Rules of outputs: what a contest's judge accepts is the same, what it refuses is not."""

from __future__ import annotations

import random

import pytest

from sandbox import output_matcher
from sandbox.errors import CheckError

SAME = {
    "tokens": [
        ("0.333333333\n", "0.3333333333333333\n"),
        ("0.30000000000000004", "0.3"),
        ("0.333334", "0.333333"),
        ("1 2 3\n", "1\n2\n3\n"),
        ("1\n2\n3", "1 2 3"),
        ("1  2\t3 \r\n", "1 2 3"),
        ("\n42\n", "42"),
        (" 6 \n", "6"),
        ("3", "3.0"),
        ("2.5", "2.50"),
        ("1e3", "1000.0"),
        ("1000000.5", "1000000.1"),
        ("-0.0", "0.0"),
        (".5", "0.5"),
        ("0.5", ".5"),
        ("5.", "5.0"),
        ("+1.5", "1.5"),
        ("1000000000000000000", "1e18"),
        ("nan", "nan"),
        ("1e999.5", "1e999.5"),
        ("", ""),
        ("\n \n", ""),
        ("Case #1: 0.1000000001", "Case #1: 0.1"),
    ],
    "lines": [("a \r\n\n\n", "a"), ("a\nb", "a \nb\n"), ("", "\n")],
    "float": [("3.0000001", "3"), ("2999999999", "3000000000"), ("x 1", "x 1.0")],
    "unordered": [
        ("3 1 2", "1 2 3"),
        ("3\n1\n2", "1\n2\n3"),
        ("3 1 2", "1\n2\n3"),
        ("b 2\na 1", "a 1\nb 2"),
        ("0.5000000001 x\n0.5 y", "0.5 y\n0.5 x"),
        ("0.1 5\n0.1000000001 3", "0.1 3\n0.1 5"),
        ("2 a\n1.5 b", "1.5 b\n2.0 a"),
    ],
    "yes_no": [("Yes", "YES"), ("no\nYES", "NO yes"), ("yes 0.5000000001", "YES 0.5")],
}
DIFFERENT = {
    "tokens": [
        ("0.3333", "0.3333333333333333"),
        ("0.33334", "0.33333"),
        ("1 2", "1 2 3"),
        ("1 2 3 4", "1 2 3"),
        ("3 2 1", "1 2 3"),
        ("12 3", "1 23"),
        ("123", "1 2 3"),
        ("Yes", "YES"),
        ("3.0", "3"),
        ("1000001", "1000000"),
        ("3.0000001", "3"),
        ("07", "7"),
        ("-0", "0"),
        ("-1.5", "1.5"),
        ("inf", "1.5"),
        ("nan", "1.5"),
        ("1_0.0", "10.0"),
        ("\N{ARABIC-INDIC DIGIT ONE}.5", "1.5"),
        ("1,5", "1.5"),
        ("1e400.0", "1.5"),
        ("1e500", "1e400"),
        ("1.5x", "1.5"),
        ("", "0"),
        ("0", ""),
        ("0.3", "1/3"),
    ],
    "lines": [("1 2 3", "1\n2\n3"), (" a", "a"), ("\na", "a"), ("a  b", "a b"), ("0.30000000000000004", "0.3")],
    "float": [("3.1", "3"), ("x", "3"), ("3", "x"), ("3 3", "3")],
    "unordered": [
        ("1 2\n3 4", "1 3\n2 4"),
        ("2 1\n4 3", "1 2\n3 4"),
        ("1 1 2", "1 2 2"),
        ("1 2", "1 2 2"),
        ("0.1 0.1 0.2", "0.1 0.2 0.2"),
    ],
    "yes_no": [("yes", "no"), ("Y", "YES"), ("Yes.", "YES"), ("Abc", "ABC"), ("", "NO")],
}


@pytest.mark.parametrize(("match", "output", "expected"), [(m, *pair) for m, pairs in SAME.items() for pair in pairs])
def test_what_a_judge_accepts_is_the_same(match: str, output: str, expected: str) -> None:
    assert output_matcher(match)(output, expected)


@pytest.mark.parametrize(
    ("match", "output", "expected"), [(m, *pair) for m, pairs in DIFFERENT.items() for pair in pairs]
)
def test_what_a_judge_refuses_is_not_the_same(match: str, output: str, expected: str) -> None:
    assert not output_matcher(match)(output, expected)


@pytest.mark.parametrize("match", ["lines", "tokens", "float", "unordered", "yes_no"])
def test_every_rule_takes_a_tolerance(match: str) -> None:
    """A decimal that is off by a hundredth is right with a tolerance of 0.1, and wrong with one of 1e-3 or 0."""
    assert output_matcher(match, 0.1)("0.51", "0.5")
    assert not output_matcher(match, 1e-3)("0.51", "0.5")
    assert not output_matcher(match, 0)("0.51", "0.5")
    assert output_matcher(match, 0)("0.50", "0.5")
    assert not output_matcher(match, 0)("0.5000000000000000000000001", "0.5")


@pytest.mark.parametrize(
    ("match", "tolerance", "words"),
    [
        ("token", None, "match='token': expected one of 'lines', 'tokens', 'float', 'unordered', 'yes_no'"),
        ("", None, "match=''"),
        ("tokens", -1.0, "tolerance=-1.0: expected a number, 0 or more and below 1"),
        ("tokens", 1, "tolerance=1"),
        ("tokens", True, "tolerance=True"),
        ("tokens", float("nan"), "tolerance=nan"),
        ("lines", "1", "tolerance='1'"),
    ],
)
def test_a_rule_that_makes_no_sense_is_refused(match: str, tolerance: float | None, words: str) -> None:
    with pytest.raises(CheckError, match=words.replace("'", ".")):
        output_matcher(match, tolerance)


def _drawn(chooser: random.Random) -> float | str:
    kind = chooser.randrange(3)
    return chooser.uniform(-1e3, 1e3) if kind == 0 else str(chooser.randrange(10**6)) if kind == 1 else "word"


def _written(value: float | str, chooser: random.Random) -> str:
    """Return a value in one of the ways in which programs write it."""
    if isinstance(value, str):
        return value
    return chooser.choice([repr(value), f"{value:.9f}", f"{value:.12e}", repr(value * (1 + 1e-9))])


def _perturbed(values: list[float | str], chooser: random.Random) -> list[float | str]:
    """Return values of which one is missing, doubled, or another."""
    index = chooser.randrange(len(values))
    value = values[index]
    other: float | str = value + "x" if isinstance(value, str) else value + chooser.choice([-1, 1]) * (1 + abs(value))
    part: list[float | str] = chooser.choice([[], [value, value], [other]])
    return values[:index] + part + values[index + 1 :]


@pytest.mark.parametrize("match", ["tokens", "float", "unordered", "yes_no"])
def test_drawn_outputs_are_the_same_however_written_and_others_are_not(match: str, full: bool) -> None:
    """Values in another writing and spacing are the same; with one dropped, doubled or changed they are not."""
    seed = random.SystemRandom().randrange(1 << 32)
    chooser = random.Random(seed)
    matches = output_matcher(match)
    for _ in range(5_000 if full else 300):
        values = [_drawn(chooser) for _ in range(chooser.randint(1, 8))]
        expected = " ".join(str(value) for value in values)
        written = list(values)
        if match == "unordered":
            chooser.shuffle(written)
        output = "".join(_written(value, chooser) + chooser.choice([" ", "\n", " \n "]) for value in written)
        assert matches(output, expected), f"seed {seed}: {output!r} for {expected!r}"
        wrong = " ".join(_written(value, chooser) for value in _perturbed(written, chooser))
        assert not matches(wrong, expected), f"seed {seed}: {wrong!r} for {expected!r}"


def test_many_lines_in_another_order_are_compared() -> None:
    """Where there are more lines than are paired off exactly, they are paired in the order of their numbers."""
    expected = [f"{number}.5 row" for number in range(3_000)]
    output = [f"{number}.50000001 row" for number in reversed(range(3_000))]
    assert output_matcher("unordered")("\n".join(output), "\n".join(expected))
    assert not output_matcher("unordered")("\n".join([*output[:-1], "7.5 row"]), "\n".join(expected))
