"""Expressions computed with 700 digits (mpmath), so that integers are exact; what is not understood is no value."""

from __future__ import annotations

import functools
import math
import operator
import re
import zlib
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeAlias

from builtin_rewards.extras import extra

DIGITS = 700  # more than MAX_DIGITS, so that rounding never decides
MAX_DIGITS = 600  # a number with more digits before or after its point is not compared
MAX_FACTORIAL = 200  # 200! has 375 digits
MAX_ARGUMENT = 1_000_000  # the time of mpmath's functions grows with the argument
POINTS = 4  # how many points expressions are compared at: small, above 1, negative, and of both signs


Number: TypeAlias = Any  # mpmath's mpf or mpc, which has no types


class UnreadError(Exception):
    """An expression is not understood, has no value, or has a number beyond the bounds."""


@functools.cache
def _mp() -> Any:
    context = extra("mpmath").MPContext()
    context.dps = DIGITS
    return context


GREEK = (
    "alpha|beta|gamma|delta|epsilon|varepsilon|zeta|eta|theta|vartheta|iota|kappa|lambda|mu|nu|xi|rho|varrho|sigma|tau|"
    "upsilon|phi|varphi|chi|psi|omega|Gamma|Delta|Theta|Lambda|Xi|Pi|Sigma|Upsilon|Phi|Psi|Omega|ell|hbar"
)
_MARKS = "vec|hat|bar|tilde|d?dot|overline|wide(?:hat|tilde)|overrightarrow|math(?:bb|cal|frak)|angle|triangle"
_CALLS = ("sin", "cos", "tan", "cot", "sec", "csc", "sinh", "cosh", "tanh", "exp", "ln", "log")
_FUNCTIONS = {f"\\{name}": name for name in _CALLS} | {f"\\arc{name}": f"a{name}" for name in _CALLS[:3]}
FUNCTION_NAMES = (*_CALLS, *(name[1:] for name in _FUNCTIONS if name.startswith("\\arc")), "lg", "sqrt", "mod")
# A pattern of a function's name with its index: `log_2`.
FUNCTION = rf"(?:{'|'.join(sorted(FUNCTION_NAMES, key=len, reverse=True))})(?:_(?:\{{\w+\}}|\w+))?"
_PLAIN = "|".join(("pi|sqrt|inf(?:inity)?|degrees|or|and", GREEK, *(name[1:] for name in _FUNCTIONS)))
_SPACES = frozenset(("\\,", "\\;", "\\:", "\\!", "\\ ", "\\quad", "\\qquad", "$", "\\left", "\\right", "\\middle"))
_SAME = r"""
* \cdot \times \ast | ^ ** | / \div | % \% | < \lt | > \gt | \le \leq \leqslant <= | \ge \geq \geqslant >=
| \ne \neq != | \emptyset \varnothing | \setminus \backslash | \binom \dbinom \tbinom | \{ \lbrace | \} \rbrace
| \infty \infinity \inf | \or \lor \vee | \and \land \wedge | : \colon
"""
_SAME_TOKEN = {other: first for first, *others in map(str.split, _SAME.split("|")) for other in others}
_SAME_TOKEN |= dict.fromkeys(("\\lvert", "\\rvert", "\\vert"), "|")


def _repeating(match: re.Match[str]) -> str:
    prefix, period = match[2], match[3] or match[4]
    nines = 10 ** len(period) - 1
    return f"\\frac{{{int(match[1] + prefix or 0) * nines + int(period)}}}{{{nines * 10 ** len(prefix)}}}"


def _mixed(match: re.Match[str]) -> str:
    top, bottom = match[2] or match[4], match[3] or match[5]
    return f"({match[1]}+\\frac{{{top}}}{{{bottom}}})" if 0 < int(top) < int(bottom) else match[0]


def _turned(match: re.Match[str]) -> str:
    """Return an interval whose brackets are turned outwards, ``]0, 1]``, as ``(0, 1]``."""
    opening, ends, closing = match.groups()
    return f"{'(' if opening == ']' else '['}{ends}{')' if closing == '[' else ']'}"


_NO_SOLUTION = r"(?:there (?:is|are|exists?) )?no (?:real )?(?:solutions?|roots?)|(?:the )?empty set|none"
_REWRITTEN: tuple[tuple[re.Pattern[str], str | Callable[[re.Match[str]], str]], ...] = (
    (re.compile(r"(?<!\d)(\d{0,600})\.(\d{0,600})\\(?:overline|bar|dot)\s*(?:\{(\d{1,60})\}|(\d))"), _repeating),
    (re.compile(r"(?<![\w.^])(\d{1,99})\s*\\frac\s*(?:\{\s*(\d{1,99})\s*\}\s*\{\s*(\d{1,99})\s*\}|(\d)(\d))"), _mixed),
    (re.compile(r"\\\\\s*\[-?[\d.]+\s*[a-z]{2}\]"), r"\\\\ "),
    (re.compile(r"\\(begin|end)\s*\{array\}(?:\s*\{[lcr|\s]*\})?"), r"\\\1{matrix}"),
    (re.compile(r"(?:\\\\\s*(?=\\end))?\\(begin|end)\s*\{(?:small|[pb])?matrix\}"), r"\\matrix\1 "),
    (re.compile(r"([\[\]])([^()\[\],;]*[^()\[\],;\s]\s*[,;]\s*[^()\[\],;\s][^()\[\],;]*)([\[\]])"), _turned),
    (re.compile(r"\\mathbb\s*(?:\{\s*[Rr]\s*\}|[Rr](?![A-Za-z]))(?!\s*[\^_])|\\Reals(?![A-Za-z])"), r"\\reals "),
    (re.compile(r"\b(?:all|any|every)(?: the)? real(?:s\b| numbers?\b)(?: x\b)?", re.IGNORECASE), r"\\reals "),
    (re.compile(r"\\reals\s+(?:except|excluding)(?: for)?\s+(?:x\s*=\s*)?([^\\{}]+)$"), r"\\reals \\setminus\\{\1\\}"),
    (re.compile(rf"^\s*(?:{_NO_SOLUTION})\s*$", re.IGNORECASE), r"\\emptyset "),
    (re.compile(r"(?<![A-Za-z\\])(d(?:\^\d)?[A-Za-z]?)\s*/\s*(d[A-Za-z](?:\^\d)?)(?![A-Za-z])"), r"\\frac{\1}{\2}"),
    (re.compile(r"(?<=\d) ?x ?(?=\d)"), "*"),
    (re.compile(r"^([^,(\[{]*(?<!\d)\d{1,3}),(\d{3}(?!\d|\s*[)\]}])[^,]*)$"), r"\1\2"),
    (re.compile(rf"(?<![\\A-Za-z])(?:{_PLAIN})(?![A-Za-z])"), r"\\\g<0> "),
)  # other writings, and what they become: repeating decimals, mixed numbers, and plain text
_GROUP = r"\{(?:[^{}]|\{[^{}]*\})*\}"
_CHANGE = r"\{\s*(?:d|\\partial(?![A-Za-z]))"
_TOKEN = re.compile(
    rf"(?P<name>[A-Za-z]+(?![A-Za-z]|\s*[_'^])|[ei](?=\^)|(?:\\frac\s*{_CHANGE}(?:[^{{}}]|\{{[^{{}}]*\}})*\}}\s*"
    rf"{_CHANGE}\s*[A-Za-z\\](?:[^{{}}]|\{{[^{{}}]*\}})*\}}|\\(?:{_MARKS})(?![A-Za-z])\s*(?:{_GROUP}|[A-Za-z]+)"
    rf"|\\(?:{GREEK})(?![A-Za-z])|(?:\\pi|\d+)(?=\s*_)|[A-Za-z])"
    rf"(?:\s*_\s*(?:{_GROUP}|\\?[A-Za-z]+|\d+)|\s*'|\^\{{\(\w\)\}})*)"
    r"|\\[A-Za-z]+|\\.|\d+(?:\.\d+)?|\.\d+|\*\*|[<>!]=|\S",
    re.ASCII,
)


@functools.lru_cache(maxsize=512)
def tokens_of(text: str) -> tuple[str, ...]:
    """Return a cleaned formula's tokens; ``@`` begins a name with its index, primes or accent, and a derivative."""
    for pattern, replacement in _REWRITTEN:
        text = pattern.sub(replacement, text)
    return tuple(map(_token, (match for match in _TOKEN.finditer(text) if match[0] not in _SPACES)))


def _token(match: re.Match[str]) -> str:
    if not match["name"] or match[0].isalpha():
        return _SAME_TOKEN.get(match[0], match[0])
    return "@" + re.sub(r"[\s{}]", "", match[0])


def is_name(sign: str) -> bool:
    return sign.isalpha() or sign[:1] == "@" != sign


def names_in(tokens: Iterable[str]) -> frozenset[str]:
    """Return the names among tokens, each letter for itself, that stand for something unknown."""
    names = (letter for token in tokens if is_name(token) for letter in (token if token.isalpha() else [token]))
    return frozenset(name for name in names if name not in "ei")


_SUM, _PRODUCT, _OF_FUNCTION, _SIDE_BY_SIDE, _BEHIND, _POWER = range(1, 7)
_STRENGTHS = {"+": _SUM, "-": _SUM, "*": _PRODUCT, "/": _PRODUCT, "^": _POWER}
_STRENGTHS |= dict.fromkeys(("!", "%", "\\degrees"), _BEHIND) | dict.fromkeys(_FUNCTIONS, _OF_FUNCTION)
_GROUPS = {"(": ")", "[": "]", "{": "}", "\\lfloor": "\\rfloor", "\\lceil": "\\rceil", "|": "|"}
_BRACKET_FUNCTIONS = {"\\lfloor": "floor", "\\lceil": "ceil", "|": "fabs"}
_STRENGTHS |= dict.fromkeys((*_GROUPS, "\\frac", "\\sqrt", "\\binom", "\\pi", "\\infty"), _SIDE_BY_SIDE)
"""How strongly a sign binds, or a factor right behind another."""
_CALLED = frozenset(("f", "g", "F", "G", "\\Gamma", "\\zeta"))  # letters that are functions before brackets


class _Expression:
    """An expression, parsed and computed in one pass."""

    def __init__(self, tokens: Sequence[str], point: int) -> None:
        self._tokens = [letter for sign in tokens for letter in (sign if sign.isalpha() else [sign])]
        self._at = 0
        self._in_bars = self._in_function = False
        self._point = point

    @property
    def next(self) -> str:
        """The next token; empty at the end."""
        return self._tokens[self._at] if self._at < len(self._tokens) else ""

    def _take(self, *tokens: str) -> str:
        sign = self.next
        if tokens and sign not in tokens:
            return ""
        self._at += 1
        return sign

    def parse(self, weakest: int = _SUM) -> Number:
        """Read on, and return the value of the terms that signs of at least this strength join."""
        if sign := self._take("+", "-"):
            value = self.parse(max(weakest, _PRODUCT))
            value = -value if sign == "-" else value
        else:
            value = self._atom()
        while (strength := self._strength()) >= weakest:
            if self._take("!"):
                value = self._factorial(value)
            elif sign := self._take("%", "\\degrees"):
                value = value / 100 if sign == "%" else value * _mp().pi / 180 if self._in_function else value
            elif sign := self._take("+", "-", "*", "/"):
                works = {"+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv}
                value = works[sign](value, self.parse(strength + 1))
            elif self._take("^"):
                value = _power(value, self.parse(_POWER))
            else:
                value = value * self.parse(_BEHIND)
        return value

    def _strength(self) -> int:
        """Return how strongly the next sign binds to what precedes it; a number does so only behind brackets."""
        sign = self.next
        if (sign == "|" and self._in_bars) or (sign[:1].isdigit() and self._tokens[self._at - 1] != ")"):
            return 0
        return _SIDE_BY_SIDE if is_name(sign) or sign[:1].isdigit() else _STRENGTHS.get(sign, 0)

    def _factorial(self, value: Number) -> Number:
        """Return the factorial; between integers any function with n! = n * (n - 1)! that is cheap."""
        if value.imag or not -MAX_FACTORIAL <= value.real <= MAX_FACTORIAL or self.next == "!":
            raise UnreadError(f"a double factorial, or one of more than {MAX_FACTORIAL}")
        steps = int(_mp().floor(value.real))
        fraction = value.real - steps
        numerator = math.prod((fraction + step for step in range(1, steps + 1)), start=1 + fraction * (1 - fraction))
        return numerator / math.prod(fraction - step for step in range(-steps))

    def _argument(self) -> Number:
        sign = self.next
        if sign.isdigit() and len(sign) > 1:
            self._tokens[self._at] = sign[1:]
            return _mp().mpf(sign[0])
        return self._atom()

    def _atom(self) -> Number:
        sign = self._take()
        if sign[:1].isdigit() or (sign[:1] == "." and sign != "."):
            return _mp().mpf(sign)
        if sign in _GROUPS:
            value = self._inside(_GROUPS[sign])
            return getattr(_mp(), _BRACKET_FUNCTIONS[sign])(value) if sign in _BRACKET_FUNCTIONS else value
        if sign in _FUNCTIONS:
            return self._function(_FUNCTIONS[sign])
        if sign == "\\frac":
            return self._argument() / self._argument()
        if sign == "\\sqrt":
            return self._root()
        if sign == "\\binom":
            above, below = self._argument(), self._argument()
            return self._factorial(above) / self._factorial(below) / self._factorial(above - below)
        if sign in ("\\pi", "e"):
            return +(_mp().pi if sign == "\\pi" else _mp().e)
        if sign == "i":
            return _mp().mpc(0, 1)
        if is_name(sign) or sign == "\\infty":
            return self._name(sign.removeprefix("@"))
        raise UnreadError(f"{sign!r} is not understood" if sign else "something is missing")

    def _inside(self, end: str) -> Number:
        was_in_bars, self._in_bars = self._in_bars, end == "|"
        value = self.parse()
        if not self._take(end):
            raise UnreadError(f"{end!r} is missing")
        self._in_bars = was_in_bars
        return value

    def _function(self, name: str) -> Number:
        base = power = None
        while sign := self._take("^", "_" if name == "log" else "^"):
            base, power = (base, self.parse(_POWER)) if sign == "^" else (self._argument(), power)
        if power == -1 and name in ("sin", "cos", "tan"):
            name, power = f"a{name}", None
        was_in_function, self._in_function = self._in_function, True
        argument = self._atom() if self.next in ("(", "{", "[") else self.parse(_SIDE_BY_SIDE)
        self._in_function = was_in_function
        if not abs(argument) <= MAX_ARGUMENT:
            raise UnreadError(f"an argument of more than {MAX_ARGUMENT}")
        value = getattr(_mp(), name)(argument, *([base or 10] if name == "log" else []))
        return value if power is None else _power(value, power)

    def _root(self) -> Number:
        index = self._inside("]") if self._take("[") else _mp().mpf(2)
        value = self._argument()
        is_odd_root = not value.imag and value.real < 0 and not index.imag and index.real % 2 == 1
        return -_power(-value, 1 / index) if is_odd_root else _power(value, 1 / index)

    def _name(self, name: str) -> Number:
        """Return the number that a name stands for at the point; applied to an argument, that of a function."""
        seed = zlib.crc32(f"{name}|{self._point}".encode())
        value = 1 + _mp().mpf(seed % 1009 + 1) / 4040 * (-1 if self._point % 2 == 0 else 1)  # at most 1/4 off 1
        value = -value if self._point == 2 or (self._point == 3 and seed & 4096) else value
        if self.next != "(" or not (name in _CALLED or "'" in name):
            return value
        argument = self._atom()
        return 1 / (argument * argument * value + argument + 7)  # any function, neither even nor odd


def _power(base: Number, exponent: Number) -> Number:
    if base and not abs(exponent) * (abs(_mp().ln(abs(base))) + 4) <= MAX_ARGUMENT:
        raise UnreadError(f"a power of more than {MAX_DIGITS} digits")
    return base**exponent


@functools.lru_cache(maxsize=2048)
def value_at(tokens: tuple[str, ...], point: int = 0) -> Number:
    """Return an expression's value at one of the points, where each name has a number of its own."""
    expression = _Expression(tokens, point)
    try:
        value = expression.parse()
    except (ArithmeticError, ValueError, TypeError, RecursionError, _mp().NoConvergence) as error:
        raise UnreadError("an expression without a value") from error
    if expression.next:
        raise UnreadError(f"{expression.next!r} is not understood")
    if value and not -MAX_DIGITS < _mp().mag(value) / 3.33 < MAX_DIGITS:
        raise UnreadError(f"a power of more than {MAX_DIGITS} digits")
    return value


def near(first: Number, second: Number) -> bool:
    """Return whether two values agree in all digits but the last few."""
    return bool(first == second or abs(first - second) <= _tolerance() * max(1, abs(first), abs(second)))


@functools.cache
def _tolerance() -> Number:
    return _mp().mpf(10) ** -(MAX_DIGITS + 40)


def equal(gold: tuple[str, ...], answer: tuple[str, ...]) -> bool:
    """Whether two expressions have the same value at all points; where letters are negative, only if both are real.

    Where one side alone has absolute values, as in ``\\ln|x|``, the other must be real as well.
    """
    if gold == answer:
        return True
    is_strict = ("|" in gold) != ("|" in answer)
    for point in range(POINTS):
        try:
            gold_value, answer_value = (value_at(side, point) for side in (gold, answer))
        except UnreadError:
            return False
        if point > 1 and (gold_value.imag or answer_value.imag):
            if is_strict and not (gold_value.imag and answer_value.imag):
                return False
            continue
        is_rounded = _stands_for(gold, gold_value, answer_value) or _stands_for(answer, answer_value, gold_value)
        if not is_rounded and not near(gold_value, answer_value):
            return False
    return True


def _stands_for(tokens: tuple[str, ...], decimal: Number, exact: Number) -> bool:
    """Return whether the first is a decimal of six places or more, and the second rounds to it."""
    places = len(tokens[-1].partition(".")[2]) if len(tokens) == 1 or (tokens[0] == "-" and len(tokens) == 2) else 0
    return places >= 6 and abs(decimal - exact) <= min(0.501 * _mp().mpf(10) ** -places, 2e-6 * abs(exact))
