"""Expressions computed: what a formula without relations and lists comes to, with numbers in place of its letters.

Nothing is dropped or guessed: whatever is not understood, such as a sum, an integral, an unknown command or two numbers
side by side, makes an expression unreadable. Numbers have 700 digits (mpmath), so that integers are exact.
"""

from __future__ import annotations

import functools
import re
import zlib
from collections.abc import Iterable, Sequence
from itertools import accumulate
from typing import Any

from builtin_rewards.extras import extra

DIGITS = 700
MAX_DIGITS = 600
"""A number with more digits before or after its point is not compared."""
MAX_FACTORIAL = 200
MAX_ARGUMENT = 1_000_000
MAX_CALLS = 40
POINTS = 4
"""At so many points are expressions compared: small, above 1, negative, and of both signs."""


class UnreadError(Exception):
    """An expression is not understood, has no value, or has a number beyond the bounds."""


@functools.cache
def _mp() -> Any:
    context = extra("mpmath").MPContext()
    context.dps = DIGITS
    return context


_GREEK = (
    "alpha beta gamma delta epsilon varepsilon zeta eta theta vartheta iota kappa lambda mu nu xi rho varrho sigma tau "
    "upsilon phi varphi chi psi omega Gamma Delta Theta Lambda Xi Pi Sigma Upsilon Phi Psi Omega ell hbar infty"
)
LETTERS = frozenset(f"\\{name}" for name in _GREEK.split())
_MARKS = "vec hat bar tilde dot ddot overline widehat widetilde overrightarrow mathbb mathcal mathfrak angle triangle"
MARKED = frozenset(f"\\{name}" for name in _MARKS.split())
_FUNCTIONS = {
    **{f"\\{name}": name for name in ["sin", "cos", "tan", "cot", "sec", "csc", "sinh", "cosh", "tanh", "exp", "ln"]},
    **{f"\\arc{name}": f"a{name}" for name in ["sin", "cos", "tan"]},
    "\\log": "log10",
}
_PLAIN = f"pi|sqrt|infinity|inf|inf|degrees|or|and|arcsin|arccos|arctan|log|{_GREEK.replace(' ', '|')}|" + "|".join(
    _FUNCTIONS.values()
)
_PLAIN_NAME = re.compile(rf"(?<![\\A-Za-z])(?:{_PLAIN})(?![A-Za-z])")
_REPEATING = re.compile(r"(\d*)\.(\d*)\\(?:overline|bar|dot)\s*(?:\{(\d{1,60})\}|(\d))")
_SLASHED_DERIVATIVE = re.compile(r"(?<![A-Za-z\\])(d(?:\^\d)?[A-Za-z]?)\s*/\s*(d[A-Za-z](?:\^\d)?)(?![A-Za-z])")
_THOUSANDS = re.compile(r"(?<![\d,({\[])\d{1,3}(?:,\d{3})+(?![\d,]|\s*[)\]}])")
_TOKEN = re.compile(r"\\[A-Za-z]+|\\.|\d+(?:\.\d+)?|\.\d+|[A-Za-z]+|\*\*|[<>!]=|\S", re.ASCII)
_SPACES = frozenset(("\\,", "\\;", "\\:", "\\!", "\\ ", "\\quad", "\\qquad", "$", "\\left", "\\right"))
_SAME = """* \\cdot \\times \\ast
^ **
/ \\div
| \\lvert \\rvert \\vert
% \\%
< \\lt
> \\gt
\\le \\leq \\leqslant <=
\\ge \\geq \\geqslant >=
\\ne \\neq !=
\\emptyset \\varnothing
\\setminus \\backslash
\\binom \\dbinom \\tbinom
\\infty \\infinity \\inf
\\{ \\lbrace
\\} \\rbrace"""
_SAME_TOKEN = {other: first for first, *others in map(str.split, _SAME.splitlines()) for other in others}


@functools.lru_cache(maxsize=512)
def tokens_of(text: str) -> tuple[str, ...]:
    """A cleaned formula's tokens, each thing in one writing; a run of letters is one sign."""
    if "." in text:
        text = _REPEATING.sub(_repeating, text)
    text = re.sub(r"\\(begin|end)\s*\{[pb]?matrix\}", r"\\matrix\1 ", text)
    text = _SLASHED_DERIVATIVE.sub(r"\\frac{\1}{\2}", text)
    text = re.sub(r"(?<=\d) ?x ?(?=\d)", "*", text)
    if text.count(",") == 1 and not set("([{") & set(text.partition(",")[0]):
        text = _THOUSANDS.sub(lambda number: number[0].replace(",", ""), text)
    text = _PLAIN_NAME.sub(lambda name: f"\\{name[0]} ", text)
    found = (_SAME_TOKEN.get(sign, sign) for sign in _TOKEN.findall(text))
    return tuple(sign for sign in found if sign not in _SPACES)


def _repeating(found: re.Match[str]) -> str:
    fixed, period = found[2], found[3] or found[4]
    nines = 10 ** len(period) - 1
    return f"\\frac{{{int(found[1] + fixed or 0) * nines + int(period)}}}{{{nines * 10 ** len(fixed)}}}"


def names_in(tokens: Iterable[str]) -> frozenset[str]:
    """The letters and Greek letters among tokens that stand for something unknown."""
    letters = (letter for sign in tokens for letter in (sign if sign.isalpha() else [sign]))
    return frozenset(each for each in letters if (each.isalpha() and each not in "ei") or each in LETTERS - {"\\infty"})


OPENERS = {"(": ")", "[": "]", "{": "}", "\\{": "\\}", "\\langle": "\\rangle", "\\matrixbegin": "\\matrixend"}
_CLOSERS = frozenset(OPENERS.values())


def depth_change(sign: str) -> int:
    """1 for an opening bracket, -1 for a closing one."""
    return (sign in OPENERS) - (sign in _CLOSERS)


def closing(tokens: Sequence[str], start: int) -> int:
    """Where the bracket closes that opens at a place."""
    depths = accumulate(map(depth_change, tokens[start:]))
    if (length := next((length for length, depth in enumerate(depths) if depth == 0), None)) is None:
        raise UnreadError("a bracket that never closes")
    return start + length


_GROUPS = {"(": ")", "[": "]", "{": "}", "\\lfloor": "\\rfloor", "\\lceil": "\\rceil"}
_BEGINS = frozenset((*_GROUPS, "\\frac", "\\sqrt", "\\binom", "\\pi", *LETTERS, *MARKED, *_FUNCTIONS))
_CALLED = frozenset(("f", "g", "F", "G", "\\Gamma", "\\zeta"))
_NUMBERS = re.compile(r"\\frac(?:\{(\d+)\}\{(\d+)\}|(\d)(\d))")


class _Expression:
    """Reads an expression and computes it in one pass."""

    def __init__(self, tokens: Sequence[str], point: int, *, folded: bool) -> None:
        self._tokens = list(tokens)
        self._at = 0
        self._in_bars = self._in_function = False
        self._calls = 0
        self._point = point
        self._folded = folded

    def value(self) -> Any:
        value = self._total()
        if self._at != len(self._tokens):
            raise UnreadError(f"{self._next!r} is not understood")
        if value and not -MAX_DIGITS < _mp().mag(value) / 3.33 < MAX_DIGITS:
            raise UnreadError(f"a power of more than {MAX_DIGITS} digits")
        return value

    @property
    def _next(self) -> str:
        return self._tokens[self._at] if self._at < len(self._tokens) else ""

    def _take(self, *tokens: str) -> str:
        sign = self._next
        if tokens and sign not in tokens:
            return ""
        self._at += 1
        return sign

    def _total(self) -> Any:
        value = self._term()
        while sign := self._take("+", "-"):
            value = value + self._term() if sign == "+" else value - self._term()
        return value

    def _term(self) -> Any:
        """Signs, and factors joined by multiplication and division; those without a sign between them go first."""
        sign = 1
        while found := self._take("+", "-"):
            sign = -sign if found == "-" else sign
        value = self._run()
        while operator := self._take("*", "/"):
            sign = -sign if self._take("-") else sign
            value = value * self._run() if operator == "*" else value / self._run()
        return sign * value

    def _run(self, *, in_function: bool = False) -> Any:
        value = self._factor()
        while not (in_function and self._next in _FUNCTIONS) and self._begins():
            value = value * self._factor()
        return value

    def _begins(self) -> bool:
        """Whether a factor follows without a sign; a number does so behind brackets only."""
        sign = self._next
        behind = sign[:1].isdigit() and self._tokens[self._at - 1] == ")"
        return behind or sign in _BEGINS or sign.isalpha() or (sign == "|" and not self._in_bars)

    def _factor(self) -> Any:
        value = self._atom()
        while sign := self._take("^", "!", "%", "\\degrees"):
            if sign == "^":
                value = _power(value, self._exponent())
            elif sign == "!":
                if not is_real(value) or value > MAX_FACTORIAL or self._next == "!":
                    raise UnreadError(f"a double factorial, or one of more than {MAX_FACTORIAL}")
                value = self._called("factorial", value)
            else:
                value = value / 100 if sign == "%" else value * _mp().pi / 180 if self._in_function else value
        return value

    def _exponent(self) -> Any:
        sign = -1 if self._take("-") else 1
        value = self._atom()
        return sign * (_power(value, self._exponent()) if self._take("^") else value)

    def _argument(self) -> Any:
        """A command's argument: a group, one digit or one name."""
        sign = self._next
        if sign.isdigit() and len(sign) > 1:
            self._tokens[self._at] = sign[1:]
            return _mp().mpf(sign[0])
        return self._atom()

    def _atom(self) -> Any:
        sign = self._take()
        if sign[:1].isdigit() or sign[:1] == ".":
            return self._number(sign)
        if sign in _GROUPS:
            value = self._inside(_GROUPS[sign])
            return value if len(sign) == 1 else (_mp().floor if sign == "\\lfloor" else _mp().ceil)(value)
        if sign == "|":
            return abs(self._inside("|"))
        if sign in _FUNCTIONS:
            return self._function(_FUNCTIONS[sign])
        if sign == "\\frac":
            return self._derivative() or self._argument() / self._argument()
        if sign == "\\sqrt":
            return self._root()
        if sign == "\\binom":
            return self._called("binomial", _bounded(self._argument(), 2_000), _bounded(self._argument(), 2_000))
        if sign == "\\pi" and self._next != "_":
            return +_mp().pi
        if sign.isalpha() or sign in LETTERS or sign in MARKED or sign == "\\pi":
            return self._name(sign)
        raise UnreadError(f"{sign!r} is not understood" if sign else "something is missing")

    def _inside(self, end: str) -> Any:
        outside, self._in_bars = self._in_bars, end == "|"
        value = self._total()
        if not self._take(end):
            raise UnreadError(f"{end!r} is missing")
        self._in_bars = outside
        return value

    def _number(self, sign: str) -> Any:
        """A number, or a mixed one with the proper fraction behind it; digits of another base are a name."""
        if self._next == "_":
            return self._name(sign)
        value = _mp().mpf(sign)
        fraction = _NUMBERS.match("".join(self._tokens[self._at : self._at + 7])) if sign.isdigit() else None
        above, below = (int(each) for each in fraction.groups() if each) if fraction else (0, 0)
        return value + self._atom() if 0 < above < below else value

    def _function(self, name: str) -> Any:
        base = power = None
        while sign := self._take("_", "^"):
            if sign == "_":
                base = self._argument()
            else:
                power = self._exponent()
        if power == -1 and name in ("sin", "cos", "tan"):
            name, power = f"a{name}", None
        outside, self._in_function = self._in_function, True
        argument = _bounded(self._atom() if self._next in ("(", "{", "[") else self._run(in_function=True))
        self._in_function = outside
        if base is None:
            value = self._called(name, argument)
        elif name == "log10":
            value = self._called("ln", argument) / self._called("ln", base)
        else:
            raise UnreadError("a function with an index")
        return value if power is None else _power(value, power)

    def _called(self, name: str, *arguments: Any) -> Any:
        self._calls += 1
        if self._calls > MAX_CALLS:
            raise UnreadError(f"more than {MAX_CALLS} functions")
        return getattr(_mp(), name)(*arguments)

    def _derivative(self) -> Any:
        """The value of a derivative as a name of its own; ``None`` where the fraction is none."""
        if self._next != "{":
            return None
        middle = closing(self._tokens, self._at)
        above, below = self._tokens[self._at + 1], "".join(self._tokens[middle + 2 : middle + 4])
        if not above.startswith(("d", "\\partial")) or not re.match(r"(?:d|\\partial)[A-Za-z\\]", below):
            return None
        return self._named("\\frac" + self._until(closing(self._tokens, middle + 1)))

    def _until(self, end: int) -> str:
        start, self._at = self._at, end + 1
        return "".join(self._tokens[start : end + 1])

    def _root(self) -> Any:
        index = self._inside("]") if self._take("[") else _mp().mpf(2)
        value = self._argument()
        odd = is_real(value) and value < 0 and is_real(index) and index % 2 == 1
        return -_power(-value, 1 / index) if odd else _power(value, 1 / index)

    def _name(self, sign: str) -> Any:
        """The value of a name with its index and primes, and of what it is applied to, if it is a function."""
        if sign.isalpha() and len(sign) > 1:
            self._tokens[self._at - 1 : self._at] = list(sign)
            sign = sign[0]
        if sign in ("e", "i") and self._next not in ("_", "'"):
            return _mp().e + 0 if sign == "e" else _mp().mpc(0, 1)
        name = sign + (self._marked() if sign in MARKED else "")
        while mark := self._take("_", "'", *("^" if self._counts_derivatives() else ())):
            name += mark + (self._marked() if mark != "'" else "")
        if self._next != "(" or (sign not in _CALLED and "'" not in name):
            return self._named(name)
        argument = self._atom()
        if is_real(argument) and (name == "\\Gamma" or (name == "\\zeta" and argument in range(2, 100))):
            return self._called(name[1:].lower(), _bounded(argument, MAX_FACTORIAL))
        return 1 / (argument * argument * self._named(name) + argument + 7)

    def _counts_derivatives(self) -> bool:
        """Whether an index in parentheses is raised, as in ``f^{(2)}``: the second derivative, and no square."""
        raised = self._tokens[self._at : self._at + 6]
        return raised[:3] + raised[4:] == ["^", "{", "(", ")", "}"]

    def _marked(self) -> str:
        """The text of an index, or of what stands under an accent."""
        if self._next == "{":
            return self._until(closing(self._tokens, self._at))[1:-1]
        return self._take()

    def _named(self, name: str) -> Any:
        """The number that a name stands for at the point."""
        if self._folded and "\\" not in name:
            name = name.lower()
        seed = zlib.crc32(f"{name}|{self._point}".encode())
        value = _mp().mpf(seed % 1009 + 1) / 4040
        value = 1 - value if self._point % 2 == 0 else 1 + value
        return -value if self._point == 2 or (self._point == 3 and seed & 4096) else value


def _bounded(value: Any, bound: int = MAX_ARGUMENT) -> Any:
    if not abs(value) <= bound:
        raise UnreadError(f"an argument of more than {bound}")
    return value


def _power(base: Any, exponent: Any) -> Any:
    if base and not abs(exponent) * (abs(_mp().ln(abs(base))) + 4) <= MAX_ARGUMENT:
        raise UnreadError(f"a power of more than {MAX_DIGITS} digits")
    return base**exponent


def is_real(value: Any) -> bool:
    """Whether a value is no complex number."""
    return not hasattr(value, "_mpc_")


@functools.lru_cache(maxsize=2048)
def value_at(tokens: tuple[str, ...], point: int, *, folded: bool = False) -> Any:
    """An expression's value with a number of its own in place of each name.

    Args:
        tokens: What :func:`tokens_of` gives.
        point: Which numbers, from 0 to ``POINTS``.
        folded: Whether capitals are the same names as small letters.
    """
    try:
        return _Expression(tokens, point, folded=folded).value()
    except (ArithmeticError, ValueError, RecursionError, _mp().NoConvergence) as fault:
        raise UnreadError("an expression without a value") from fault


def near(one: Any, other: Any) -> bool:
    """Whether two values are the same, to all digits but the last few."""
    tolerance = _mp().mpf(10) ** -(MAX_DIGITS + 40)
    return bool(abs(one - other) <= tolerance * max(1, abs(one), abs(other)))


def equal(gold: tuple[str, ...], given: tuple[str, ...], *, folded: bool) -> bool:
    """Whether two expressions have the same value at all points; where letters are negative, if both are real."""
    if gold == given:
        return True
    for point in range(POINTS):
        try:
            one, other = (value_at(each, point, folded=folded) for each in (gold, given))
        except UnreadError:
            return False
        if point > 1 and not (is_real(one) and is_real(other)):
            continue
        if not near(one, other) and not _stands_for(gold, one, other) and not _stands_for(given, other, one):
            return False
    return True


def _stands_for(tokens: tuple[str, ...], decimal: Any, value: Any) -> bool:
    """Whether the first is a decimal of six places or more that is the second one rounded."""
    places = len(tokens[-1].partition(".")[2]) if len(tokens) == 1 or (tokens[0] == "-" and len(tokens) == 2) else 0
    return places >= 6 and abs(decimal - value) <= min(0.501 * _mp().mpf(10) ** -places, 2e-6 * abs(value))
