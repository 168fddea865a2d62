"""Formulas compared with math-verify, behind bounds that are checked on the text before sympy sees it.

math-verify's own time limits use signals, which work in the main thread only, so they are switched off: the bounds
keep what is parsed small, and the deadline of the worker ends what is slow all the same.
"""

from __future__ import annotations

import functools
import math
import re
from importlib import import_module
from typing import Any

from builtin_rewards.reading.numbers import Unit, clean, read_unit

MAX_CHARS = 600
MAX_DEPTH = 10
MAX_DIGITS = 100
MAX_EXPONENT = 3_000
MAX_FACTORIAL = 200
MAX_FUNCTIONS = 6

_NEEDED = "math_verify is needed to compare formulas: pip install 'rewardkit[rewards]'"
_HEAVY = re.compile(r"\\(?:i*int|oint|sum|prod|lim|coprod|bigcup|bigcap|underbrace|cdots?s|dots)(?![A-Za-z])")
_FUNCTION = re.compile(r"(?:sin|cos|tan|cot|sec|csc|log|ln|exp|sinh|cosh|tanh)(?![a-z])")
_EXPONENT = re.compile(r"\^|\*\*")
_SHORT = re.compile(r"\s*-?\s*(\d+|\\?[A-Za-z]+)")
_COMMAND = re.compile(r"\\[A-Za-z]+")
_OPENING, _CLOSING = "([{", ")]}"


def too_large(text: str) -> str | None:
    """Says why a cleaned formula is not compared, or ``None`` if it may be."""
    if len(text) > MAX_CHARS:
        return f"longer than {MAX_CHARS} characters"
    depth = deepest = braces = 0
    for character in text:
        depth += (character in _OPENING) - (character in _CLOSING)
        braces += (character == "{") - (character == "}")
        deepest = max(deepest, depth)
        if braces < 0:
            break
    if braces:
        return "braces that do not balance"
    if deepest > MAX_DEPTH:
        return f"nested deeper than {MAX_DEPTH}"
    if re.search(rf"\d{{{MAX_DIGITS + 1}}}", text):
        return f"a number of more than {MAX_DIGITS} digits"
    if _HEAVY.search(text):
        return "a sum, integral, product or limit that is not worked out"
    if len(_FUNCTION.findall(text)) > MAX_FUNCTIONS:
        return f"more than {MAX_FUNCTIONS} functions"
    return _too_large_number(text)


def _too_large_number(text: str) -> str | None:
    factorials = re.findall(r"(\d+|[)\]}!])\s*!", text)
    if any(not literal.isdecimal() or int(literal) > MAX_FACTORIAL for literal in factorials):
        return f"a factorial of more than {MAX_FACTORIAL}"
    if ("binom" in text or "choose" in text) and any(int(literal) > 2_000 for literal in re.findall(r"\d+", text)):
        return "a binomial coefficient of large numbers"
    if any(len(literal) > 4 for literal in re.findall(r"\d\s*[eE]\s*[+-]?(\d+)", text)):
        return f"a power of more than {MAX_EXPONENT}"
    together = 1
    symbolic = any(letter.isalpha() for letter in _COMMAND.sub("", text))
    for match in _EXPONENT.finditer(text):
        power = _power(text, match.end())
        before = text[: match.start()].rstrip()
        grouped = before[-1:] in _CLOSING
        together *= power if grouped or together > 1 else 1
        digits = len(before) - len(before.rstrip("0123456789."))
        if power * max(digits, 1) > MAX_EXPONENT or together > MAX_EXPONENT or (grouped and symbolic and power > 50):
            return f"a power of more than {MAX_EXPONENT}"
    return None


def _power(text: str, start: int) -> int:
    """A bound on the exponent that begins at a place of the text: its numbers multiplied, a tower as a power."""
    while text[start : start + 1].isspace():
        start += 1
    if text[start : start + 1] in ("{", "("):
        depth, end = 0, start
        for end in range(start, len(text)):
            depth += (text[end] in _OPENING) - (text[end] in _CLOSING)
            if depth == 0:
                break
        group, after = text[start : end + 1], end + 1
    else:
        short = _SHORT.match(text, start)
        group, after = (short[0], short.end()) if short else ("", start)
    if _EXPONENT.match(text[after:].lstrip()):
        group += text[after:]
    literals = [min(int(literal), MAX_EXPONENT + 1) for literal in re.findall(r"\d+", group)]
    towers = len(_EXPONENT.findall(group))
    if towers > 1 and literals:
        return MAX_EXPONENT + 1
    if towers:
        largest = max(literals, default=1)
        return largest**largest if largest < 10 else MAX_EXPONENT + 1
    return max(1, math.prod(max(literal, 1) for literal in literals))


_TEXT_UNIT = re.compile(r"\\(?:text|mbox|mathrm)\s*\{\s*([A-Za-z][^{}]*)\}\s*(\^\s*\{?\s*\d\s*\}?)?[\s.$]*$")
_UNIT_WORD = re.compile(r"(?<![\\A-Za-z])[A-Za-z]{2,}")


def split_unit(text: str) -> tuple[str, Unit | None]:
    """Gives an answer's formula, cleaned, and the unit that stands after it."""
    if len(text) > 2 * MAX_CHARS:
        return clean(text), None
    if (named := _TEXT_UNIT.search(text)) is not None and named.start():
        unit, rest = read_unit(f" {named[1].strip()}{named[2] or ''}")
        if unit is not None and not unit.words and not rest.strip():
            return clean(text[: named.start()]), unit
    text = clean(text)
    for word in _UNIT_WORD.finditer(text):
        unit, rest = read_unit(" " + text[word.start() :])
        if word.start() and unit is not None and not unit.words and not rest.strip():
            return text[: word.start()].rstrip(), unit
    return text, None


@functools.cache
def _library() -> Any:
    try:
        library = import_module("math_verify")
        modules = [import_module(f"math_verify.{name}") for name in ("grader", "parser")]
    except ImportError as missing:
        raise ImportError(_NEEDED) from missing
    # The limits are switched off on purpose; without this each worker would log a warning of it, once.
    for module in modules:
        setattr(module, "TIMEOUT_WARNING_SHOWN", True)  # noqa: B010 - not among the module's public names
    return library


@functools.lru_cache(maxsize=256)
def parse(text: str) -> tuple[Any, ...]:
    """The sympy objects that a cleaned formula within the bounds may mean; empty where it cannot be read."""
    library = _library()
    written = text.replace("\n", " ").replace("$", "").strip()
    found = library.parse(
        f"${written}$",
        extraction_config=[library.LatexExtractionConfig()],
        fallback_mode="no_fallback",
        parsing_timeout=None,
    )
    return tuple(found)


def same_formula(gold: str, given: str) -> bool:
    """Whether two cleaned formulas within the bounds are equal, as math-verify sees it and by four rules more.

    - What stands in brackets is not what stands in others or in none: ``(2, 4)`` is neither ``\\{2, 4\\}`` nor
      ``2, 4`` nor ``[2, 4]``.
    - An equation answers a gold without one only if its left side is a name or a calculation: ``x = 3``,
      not ``2x = 6``.
    - Numbers must also agree to six digits, however small they are: ``10^{-20}`` is not ``10^{-30}``.
    - Words are no products of letters: they are compared as words before this.
    """
    if _compact(gold) == _compact(given):
        return True
    if _brackets(gold) != _brackets(given) and None not in (_brackets(gold), _brackets(given)):
        return False
    if "=" in given and "=" not in gold and not plain_left_side(given):
        return False
    golds, givens = list(parse(gold)), list(parse(given))
    if not golds or not givens:
        return False
    same = _library().verify(golds, givens, allow_set_relation_comp=True, timeout_seconds=None)
    return bool(same) and not any(_far(one, other) for one in golds for other in givens)


def _compact(text: str) -> str:
    return "".join(text.split())


_STRUCTURE = re.compile(
    r"\\(?:cup|cap|setminus|in|begin|le|ge|leq|geq|pm|mathbb|emptyset)(?![A-Za-z])|[<>=]|\bor\b|\band\b"
)


def _brackets(text: str) -> str | None:
    """The brackets around the whole of a list, ``,`` for a bare list or braces, ``None`` where there is no list."""
    text = text.strip()
    if "," not in text or _STRUCTURE.search(text):
        return None
    for opening, closing in (("\\{", "\\}"), ("(", ")"), ("[", "]"), ("(", "]"), ("[", ")")):
        if text.startswith(opening) and text.endswith(closing) and text.count(opening[-1]) == 1:
            return "," if opening == "\\{" else opening + closing
    return None if text[:1] in ("(", "[") or text.startswith("\\{") else ","


_NAME = re.compile(r"\\?[A-Za-z]+(?:\s*_\s*(?:\{[^{}]*\}|\w))?'*(?:\s*\([^()=]*\))?")

_OPERATOR = re.compile(r"\\times(?![A-Za-z])|\\cdot(?![A-Za-z])|[-+*/]|(?<=[\d ])x(?= ?\$?\d)")
_SHORT_WORD = re.compile(r"(?<![A-Za-z])[A-Za-z]{1,2}(?![A-Za-z])|[^A-Za-z\d\s.,$%()]")


def _is_calculation(side: str) -> bool:
    """Whether a side is numbers with their units, and an operator at least: ``18 eggs \\times 1``."""
    rest, operators = _OPERATOR.subn(" ", side)
    return operators > 0 and any(map(str.isdigit, rest)) and _SHORT_WORD.search(rest) is None


def plain_left_side(text: str) -> bool:
    """Whether all but the last side of an equation are names, calls, words or calculations with numbers."""
    *sides, last = (side.strip() for side in text.split("="))
    for side in sides:
        if side[-1:] in ("<", ">", "!", "\\") or not side or side.endswith("\\ne"):
            return False
        if re.fullmatch(r"-?[\d.,]+", side) and _compact(side) != _compact(last):
            return False
        letters = any(letter.isalpha() for letter in _COMMAND.sub("", side))
        words = re.fullmatch(r"[A-Za-z ]+", side) is not None or _is_calculation(side)
        if letters and not words and _NAME.fullmatch(side) is None:
            return False
    return True


def _far(gold: Any, given: Any) -> bool:
    """Whether two expressions are numbers that differ in their first six digits; percentages are left out."""
    one, other = number_of(gold), number_of(given)
    if one is None or other is None or "1/100" in f"{gold} {given}":
        return False
    return abs(one - other) > 2e-6 * max(abs(one), abs(other))


def number_of(expression: Any) -> complex | None:
    """The value of a sympy expression without variables; of an assignment, its right side's."""
    if getattr(expression, "is_Relational", False):
        expression = expression.rhs
    try:
        value = complex(expression.evalf(30))
    except Exception:  # sympy raises of every kind on what is no number
        return None
    return value if math.isfinite(value.real) and math.isfinite(value.imag) else None
