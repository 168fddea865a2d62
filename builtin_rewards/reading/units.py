"""Units behind a number: products, quotients and powers of named units, or a noun; pint converts them."""

from __future__ import annotations

import functools
import operator
import re
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from builtin_rewards.extras import extra
from builtin_rewards.reading.unit_names import HYPHENATED, NO_NOUN, NO_UNIT, is_formula, is_money, may_be_one, unit_name

_Factors = tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class Unit:
    """What a number counts."""

    factors: _Factors = ()  # the names of units with their powers, sorted; empty for a noun, such as apples
    stems: frozenset[str] = frozenset()  # the noun's words without their endings; empty for named units


@dataclass(frozen=True, slots=True)
class Conversion:
    """How a number in one unit becomes one in another: ``factor * number + offset``."""

    factor: Fraction = Fraction(1)
    offset: Fraction = Fraction(0)

    def of(self, value: Fraction) -> Fraction:
        return self.factor * value + self.offset


SAME = Conversion()
_OFFSET = frozenset(("degC", "degF"))  # units whose zero is not that of kelvins
DEGREE, RADIAN = Unit((("degree", 1),)), Unit((("rad", 1),))

_NAME = re.compile(
    r"(?:[ \t\r\n]+|-)?(?:(?P<before>square|sq|cubic|cu)\b\.?[ -]*)?(?P<mu>\\mu(?![A-Za-z])\s*)?"
    r"(?:(?P<sign>(?:[TGMkmunp]\s*)?\\(?:Omega|AA)(?![A-Za-z]))"
    r"|(?P<degrees>degrees?\s*(?=(?:(?i:celsius|fahrenheit)|C|F)\b))?"
    r"(?P<name>(?:(?i:light[ -]?|nautical |fl(?:uid|\.)? ))?(?:[A-Za-z]{2,}|[A-Za-z](?!-[A-Za-z]))))(?:\.(?=[ ,/]|$))?"
    r"(?:\s*(?:(?:\^|\*\*)\s*\{?\s*(?P<power>-?\d)(?!\d)(?:\s*\})?|(?P<behind>squared|cubed)\b)|(?<=m)(?P<plain>[23])(?!\w))?",
    re.ASCII,
)
_MOST_BRACKETS = 20  # the reader recurses
_TIMES = re.compile(r"\s*(?:\\cdot(?![A-Za-z])|\*)\s*|\s+(?=[A-Za-z\\])|(?=\\mu)")
_PER = re.compile(r"\s*(?:/|\bper\b|\ban?\b(?=\s))\s*")  # also `dollars a day`
_INVERSE = re.compile(r"\s*1\s*(?=/)")
_GROUP = r"\{\s*((?:[^{}]|\{[^{}]*\})*)\}"
_FRACTION = re.compile(rf"\s*\\frac\s*{_GROUP}\s*{_GROUP}")
_WORD = re.compile(r"(?P<gap>[ \t\r\n]*|-)(?P<word>(?:[A-Za-z]-(?=[A-Za-z]{3}))?[A-Za-z]+)(?:\.(?=[ ,/]|$))?")


def _product(parts: Iterable[tuple[_Factors, int]]) -> _Factors:
    powers: dict[str, int] = {}
    for factors, sign in parts:
        for name, power in factors:
            powers[name] = powers.get(name, 0) + sign * power
    return tuple(sorted((name, power) for name, power in powers.items() if power))


def read_unit(text: str, *, attached: bool = False) -> tuple[Unit | None, str]:
    """Return the unit at the start of a text (also ``m/s^2`` or a noun of no table), and the rest."""
    factors, rest = _read_factors(text, attached) if text.count("(") <= _MOST_BRACKETS else ((), text)
    if factors:
        return Unit(factors), rest
    unit, rest = _read_noun(text)
    if unit is not None and (slash := _PER.match(rest)) is not None:
        rest = _read_product(" " + rest[slash.end() :], attached=True)[1] if slash[0].strip() == "/" else rest
    return unit, rest.removeprefix(" ") if unit and not unit.stems else rest


def _read_factors(text: str, attached: bool) -> tuple[_Factors, str]:
    fraction = _FRACTION.match(text)
    if fraction is None:
        return _read_product(text, attached)
    (top, behind_top), (under, behind_under) = (_read_product(f" {fraction[side]}", True) for side in (1, 2))
    is_unit = top and under and not (behind_top + behind_under).strip()
    return (_product(((top, 1), (under, -1))), text[fraction.end() :]) if is_unit else ((), text)


def _read_product(text: str, attached: bool) -> tuple[_Factors, str]:
    """Return the units at the start of a text; all behind a slash divide, up to the next one: ``J/kg K``."""
    inverse = _INVERSE.match(text)
    factors, rest = ((), text[inverse.end() :]) if inverse else _read_factor(text, attached)
    parts, sign = [(factors, 1)], 1
    while factors or inverse:
        separator = _PER.match(rest)
        sign = -1 if separator else sign
        separator = separator or _TIMES.match(rest)
        if separator is None:
            break
        inverse = None
        factors, behind = _read_factor(" " + rest[separator.end() :], attached=True)
        is_word = not separator[0].strip() and len(factors) == 1 and len(factors[0][0]) > 4
        if not factors or is_word:
            break
        parts.append((factors, sign))
        rest = behind
    product = _product(parts)
    return (product, rest) if product else ((), text)


def _read_factor(text: str, attached: bool) -> tuple[_Factors, str]:
    """Return the unit of one name or of brackets, with its power, at the start of a text, and the rest."""
    if text.lstrip()[:1] == "(":
        factors, rest = _read_product(f" {text.lstrip()[1:]}", attached=True)
        return (factors, rest.lstrip()[1:]) if factors and rest.lstrip()[:1] == ")" else ((), text)
    match = _NAME.match(text)
    if match is None or (match["mu"] and match["before"]):
        return (), text
    rest = text[match.end() :]
    name = _name_of(match, glued=not attached and not text[:1].isspace())
    is_preposition = name == "in" and _WORD.match(rest.lstrip("."))  # else it is an inch
    is_minus = text[:1] == "-" and len(match["name"] or "-") == 1
    if name is None or is_preposition or is_minus:
        return (), text
    exponent_word = (match["before"] or match["behind"] or "").lower()
    power = int(match["power"] or match["plain"] or (2 if exponent_word.startswith("s") else 3 if exponent_word else 1))
    return ((name, power),), rest


def _name_of(match: re.Match[str], *, glued: bool) -> str | None:
    if match["sign"]:
        prefix, _, sign = match["sign"].partition("\\")
        return f"{'u' if match['mu'] else prefix.strip()}{'ohm' if sign == 'Omega' else 'angstrom'}"
    if match["degrees"]:
        return f"deg{match['name'][0].upper()}"
    text = re.sub(r"[ .-]+", " ", match["name"])
    return unit_name(f"u{text}" if match["mu"] else text, glued=glued)


def _read_noun(text: str) -> tuple[Unit | None, str]:
    """Return a noun of at most four words, or the named unit among them, and the rest."""
    stems: list[str] = []
    rest = text
    while len(stems) < 4 and (match := _WORD.match(rest)) is not None and (stems or not text[:1].isalpha()):
        name = match["word"].lower()
        is_minus = not stems and "-" in match["gap"] and name not in HYPHENATED
        is_no_noun = is_minus or (not stems and is_formula(match["word"]))
        if name in NO_NOUN or name in NO_UNIT or len(name) == 1 or is_no_noun:
            break
        factors, after = _read_product(rest, False)
        if factors and len(name) > 1:
            return Unit(factors), after
        stems.append(name.rstrip("seiy") or name)
        rest = rest[match.end() :]
    return (Unit(stems=frozenset(stems)), rest) if stems else (None, text)


# Conversion


@functools.cache
def _registry() -> Any:
    """Return pint's units, with numbers as fractions, so that a foot is 0.3048 metres exactly."""
    registry = extra("pint").UnitRegistry(non_int_type=Fraction, cache_folder=None)
    registry.define("dollar = [dollar]")
    registry.define("us_cent = dollar / 100")
    return registry


def _pint_unit(factors: _Factors) -> Any:
    """Return pint's unit of a product; degrees Celsius and Fahrenheit in it are differences, as in ``J/(kg °C)``."""
    registry, is_alone = _registry(), [power for _, power in factors] == [1]
    units = (
        registry.Unit(name if is_alone or name not in _OFFSET else f"delta_{name}") ** power for name, power in factors
    )
    return functools.reduce(operator.mul, units, registry.Unit(""))


@functools.lru_cache(maxsize=512)
def _convert(answer: _Factors, gold: _Factors) -> Conversion | None:
    names = {name for factors in (answer, gold) for name, _ in factors}
    registry = _registry()
    if any(name not in registry for name in names):
        return None
    source, target = map(_pint_unit, (answer, gold))
    if source.dimensionality != target.dimensionality:
        return None
    origin, step = (registry.Quantity(Fraction(value), source).to(target).magnitude for value in (0, 1))
    return Conversion(Fraction(step - origin), Fraction(origin))


def conversion(gold: Unit | None, answer: Unit | None) -> Conversion | None:
    """Return the conversion to the gold's unit, none where one side has no unit; ``None`` where the units differ.

    Nouns agree where they share a word. ``units`` alone says nothing of a dimension; square units are not cubic. Money
    per time or thing answers a gold that is money.
    """
    if gold is None or answer is None or gold == answer:
        return SAME
    if gold.stems or answer.stems:
        return SAME if gold.stems & answer.stems else None
    (first, power), (other, other_power) = gold.factors[0], answer.factors[0]
    if len(gold.factors) == len(answer.factors) == 1:
        if first == other == "unnamed_unit":
            return SAME if 1 in (power, other_power) else None
        if power == other_power and may_be_one(first, other):
            return SAME
    if len(gold.factors) == 1 and power == 1 and (first, 1) in answer.factors and is_money(first):
        return SAME
    return _convert(answer.factors, gold.factors)
