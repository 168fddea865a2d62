"""Numbers with units: every value in every writing of its unit is paid, and with another number or unit it is not."""

from __future__ import annotations

import itertools
from fractions import Fraction
from typing import NamedTuple

import pytest

from builtin_rewards.math import math_answer, numeric_close
from builtin_rewards.reading.locales import with_points, writes_comma
from builtin_rewards.reading.numbers import read_quantity
from builtin_rewards.reading.unit_names import _SYMBOL_UNITS, _WORD_UNITS, unit_name
from builtin_rewards.reading.units import Conversion, Unit, conversion


class Case(NamedTuple):
    """A unit: its writings, the same quantity in other units (how many of them are one), and units that differ."""

    writings: tuple[str, ...]
    converted: tuple[tuple[str, str], ...] = ()
    others: tuple[str, ...] = ()


CASES = (
    Case(
        (" V", " volts", r"\text{ V}", r"\,\mathrm{V}", r"~\mathrm{V}", r" \mathrm{~V}"),
        (("1000", "mV"),),
        (" A", " W"),
    ),
    Case(
        (" N", " newtons", r"\text{ N}", r"\ \mathrm{N}"), (("1", "kg m/s^2"), ("1000", r"\text{ mN}")), (" J", " N/m")
    ),
    Case((" J", " joules", r"\text{ J}"), (("0.001", "kJ"), ("1", r"\text{N}\cdot\text{m}")), (" W", " J/mol", " K")),
    Case((r" \Omega", " ohms", " Ω", r"\text{ }\Omega"), (("0.001", r"k\Omega"), ("1", "V/A")), (" V", " S")),
    Case(
        (r" \mu m", " μm", " µm", r"\,\mu\text{m}", " micrometers"), (("0.001", "mm"), ("1000", "nm")), (" s", " m^2")
    ),
    Case(
        (" m/s", r"\text{ m/s}", r"\mathrm{~m\,s^{-1}}", " meters per second", r"\text{ m s}^{-1}"),
        (("3.6", "km/h"),),
        (" m",),
    ),
    Case(
        (" m/s^2", r"\text{ m/s}^2", r"\mathrm{~m \cdot s^{-2}}", r"\frac{\text{m}}{\text{s}^2}"),
        (("1", "N/kg"),),
        (" m/s",),
    ),
    Case((" kJ/mol", r"\text{ kJ/mol}", r"\mathrm{~kJ \cdot mol^{-1}}"), (("1000", "J/mol"),), (" kJ", " kJ/kg")),
    Case(
        (" J/(kg K)", r"\text{ J/(kg K)}", " J/kg K", r"\mathrm{~J\,kg^{-1}\,K^{-1}}"),
        (("0.001", "J/(g K)"),),
        (" J/kg",),
    ),
    Case(
        (" cm^2", r"\text{ cm}^2", " square centimeters", " sq cm", " cm²", " cm2"),
        (("100", "mm^2"),),
        (" cm", " cm^3"),
    ),
    Case((" L", " liters", r"\text{ L}", " litres"), (("1000", "mL"), ("1000", "cm^3")), (" kg",)),
    Case((" hours", " h", " hrs", r"\text{ h}", " hour"), (("60", "minutes"), ("3600", "s")), (" days", " meters")),
    Case((" rad/s", r"\text{ rad/s}"), (), (" rad", " m/s")),
    Case((" J/(kg °C)", " J/(kg K)", r"\text{ J/(kg}\cdot^\circ\text{C)}"), (("0.001", "J/(g °C)"),), (" J/kg",)),
    Case((" °C/min", " K/min", r"^\circ\text{C/min}"), (("1.8", "°F/min"),), (" °C", " K/s")),
    Case((" weeks", " wk", " wks", r"\text{ week}"), (("7", "days"),), (" months", " m")),
    Case((" decades", " decade"), (("10", "years"), ("0.1", "centuries")), (" rad", " m")),
    Case((" dB", r"\text{ dB}"), (), (" m", " rad", " km/dB")),
    Case((" Hz", " hertz", r"\text{ Hz}"), (("0.001", "kHz"),), (" N",)),
    Case((" light years", " light-years", " lightyears"), (), (" light years per year", " hours")),
    Case((" dollars", " USD", r"\text{ dollars}", "$"), (("100", "cents"),), (" €", " yen", " miles")),
    Case((" €", "€", " euros", " EUR", r"\text{ €}"), (), (" £", " dollars", " kg")),
    Case(
        (" square units", r"\text{ units}^2", " units squared", r"\text{ sq. units}", " units"), (), (" cubic units",)
    ),
)
VALUES = ("3", "0.25", "-7", "1200", "2.5", "40")
MARKS = (r"\boxed{%s}", "The answer is %s.", "<answer>%s</answer>", "#### %s")


def score(gold: str, answer: str, mark: str = r"\boxed{%s}") -> float | None:
    return math_answer.function(mark % answer, gold).value  # type: ignore[no-any-return]


def decimal(value: str, times: str) -> str:
    number = Fraction(value) * Fraction(times)
    return str(float(number)).removesuffix(".0")


@pytest.mark.parametrize("case", CASES, ids=[case.writings[0].strip() for case in CASES])
def test_a_quantity_equals_itself_in_every_writing(case: Case) -> None:
    """With or without a unit on either side, in every mark of an answer."""
    for value, writing, mark in itertools.product(VALUES, case.writings, MARKS):
        answer = value + writing
        for gold in (value, value + case.writings[0], answer, f"{value}.0" if value.isdigit() else value):
            assert 1.0 == score(gold, answer, mark), (gold, mark % answer)
        assert 1.0 == score(answer, value, mark), (answer, mark % value)


@pytest.mark.parametrize("case", CASES, ids=[case.writings[0].strip() for case in CASES])
def test_a_quantity_equals_what_it_converts_to_and_nothing_else(case: Case) -> None:
    for value, (times, unit) in itertools.product(VALUES, case.converted):
        gold, gap = value + case.writings[0], " " * (unit[0] != "\\")
        assert 1.0 == score(gold, decimal(value, times) + gap + unit), (gold, times, unit)
        assert 1.0 == score(decimal(value, times) + gap + unit, gold), (gold, times, unit)
        if times != "1":
            assert 0.0 == score(gold, value + gap + unit), (gold, unit)
    for value, other in itertools.product(VALUES, case.others):
        for writing in case.writings[:-1] if case.writings[-1] == " units" else case.writings:
            assert 0.0 == score(value + writing, value + other), (value + writing, other)


@pytest.mark.parametrize("case", CASES, ids=[case.writings[0].strip() for case in CASES])
def test_another_number_is_refused_in_every_writing(case: Case) -> None:
    for value, writing in itertools.product(VALUES, case.writings):
        gold = value + writing
        sign = value[1:] if value.startswith("-") else f"-{value}"
        for other in (sign, f"{value}1", value + "0" if "." not in value else f"1{value}", f"{value}-x", f"{value}x"):
            assert 0.0 == score(gold, other), (gold, other)
            assert 0.0 == score(value, other + writing), (value, other + writing)


@pytest.mark.parametrize(
    "letters", ["xy", "ab", "mn", "x", "k", "y z", "abc", "xyz", "dx", "alpha", "theta", "nCr", "(xy)"]
)
def test_letters_that_are_no_unit_are_factors(letters: str) -> None:
    """Also behind a blank, since a number is not the number times something."""
    for value, mark in itertools.product(VALUES, MARKS[:3]):
        assert 0.0 == score(value, f"{value} {letters}", mark), (value, letters, mark)


@pytest.mark.parametrize("tail", ["-x", "-", " -", "--x", "-ab", "-x!", "---", ".-x", "-Y", "-a-b", " - x", "- k"])
def test_a_hyphen_before_letters_is_a_minus(tail: str) -> None:
    for value, lead in itertools.product(("5", "12", "-3"), ("", "x=", "f(x) = ")):
        assert 0.0 == score(value, f"{lead}{value}{tail}"), (value, lead, tail)
        assert 0.0 == numeric_close.function(f"\\boxed{{{lead}{value}{tail}}}", value).value, (value, lead, tail)


@pytest.mark.parametrize(
    "tail", ["-foot", "-digit number", "-year-old", "-mile run", "-point lead", "-person team", "-inch"]
)
def test_a_hyphen_in_a_compound_is_no_minus(tail: str) -> None:
    assert 1.0 == score("5", f"5{tail}", "The answer is a %s.")


@pytest.mark.parametrize(
    ("gold", "answers", "others"),
    [
        ("500000", ["5 lakh", "5 lakhs", "0.5 million", "500k", "500 thousand"], ["5", "5 crore", "500"]),
        (
            "5",
            ["5.0", "0.5 tens", "500 hundredths"],
            ["5 lakh", "5 bn", "5 tens", "5 hundredths", "5 gross", "5 mil", "5k"],
        ),
        ("$5 million", ["$5M", "5000000", "$5mn", "$5,000,000"], ["$5", "$5k", "$5bn"]),
        (
            "1/3",
            ["0.333...", "0.(3)", "0.\\overline{3}", "0.3 repeating", "0.333333", r"\nicefrac{1}{3}"],
            ["0.333", "0.333334"],
        ),
        ("1/6", ["0.1666...", "0.1(6)", "0.166667", r"{1 \over 6}", r"\sfrac16"], ["0.1(7)", "0.166668"]),
        ("2.5", ["2 and 1/2", "2 1/2", r"2\frac12", "2,5", "5/2"], ["21/2", "2.05", "25"]),
        (
            "45^\\circ",
            ["45", "45º", "45 degrees", r"\frac{\pi}{4}", r"\pi/4 \text{ rad}"],
            [r"\frac{\pi}{3}", "45 rad"],
        ),
        (r"\frac{\pi}{4}", [r"45^\circ", r"0.25\pi", "45 degrees"], [r"44^\circ", "45"]),
        ("45.5^\\circ", ["45^\\circ 30'", "45°30\u2032"], ["45^\\circ 31'", "45^\\circ"]),
        ("5 feet 7 inches", ["5'7\"", "5 ft 7 in", "67 inches"], ["5'8\"", "5.7 feet"]),
        ("2 hours 30 minutes", ["2h30m", "2.5 hours", "150 min", "2 h 30 min"], ["2h31m", "2.3 hours"]),
        ("-5", ["5 degrees below zero", "minus 5"], ["5", "5 below average"]),
        ("25 °C", ["298.15 K", "77 °F", "25 degrees Celsius", "25"], ["25 K", "25 °F"]),
        ("£5", ["5 pounds", "5 GBP", "5"], ["5 euros", "$5"]),
        ("$5", ["A$5", "5 dollars", "USD 5", "500 cents"], ["5 cents", "5 €"]),
        (
            "1500",
            ["R$ 1500", "Rs. 1500", "1500 zł", "1500 \u0440\u0443\u0431.", "NT$1500", "₩1500", "1500 元", "CHF 1500"],
            ["R$ 150"],
        ),
        ("460", [r"460\,", r"460~", "460{}", r"\bf 460", r"\rm{460}", r"\texttt{460}", r"{\large 460}"], [r"46\,0\,0"]),
        (r"\ln|x|", [r"\ln |x|", r"\ln\left|x\right|"], [r"\ln x", "x"]),
        ("42", ["42元", "42です", "42 個", "∴ 42", "42 días"], ["42x", "24元", "42 не"]),
    ],
)
def test_writings_of_numbers(gold: str, answers: list[str], others: list[str]) -> None:
    for answer in answers:
        assert 1.0 == score(gold, answer), answer
    for other in others:
        assert 0.0 == score(gold, other), other


@pytest.mark.parametrize(
    "completion",
    [
        "42 is too high",
        "42 is too large to be the answer.",
        "42 fails.",
        "42 is only an upper bound.",
        "The answer is congruent to 42.",
        "The answer is a factor of 42.",
        "The answer is written on page 42.",
        "By theorem 42.",
        "\\boxed{42 under par}",
        "\\boxed{42 and others}",
        "\\boxed{42 at least}",
        "\\boxed{42,x}",
        "\\boxed{|x| = 42}",
        "\\boxed{x=42)}",
    ],
)
def test_words_and_signs_around_a_number_that_make_it_no_answer(completion: str) -> None:
    assert 0.0 == math_answer.function(completion, "42").value


@pytest.mark.parametrize(
    ("locale", "gold", "answer", "expected"),
    [
        ("de", "1.234", "1234", 1.0),
        ("de", "1.234", "1,234", 0.0),
        ("de", "(A) 1,234", "1,234", 1.0),
        ("de", "(A) 1,234", "1234", 0.0),
        ("de", "(A) 1.234", "1234", 1.0),
        ("de", "3,14", "3.14", 1.0),
        ("de", "3,14", "3,14", 1.0),
        ("pt-BR", "1.234,5", "1234,5", 1.0),
        ("de_CH", "1'234.5", "1234.5", 1.0),
        ("en", "1,234", "1234", 1.0),
        ("en", "3.14", "3,14", 0.0),
        (None, "1234.5", "1.234,5", 1.0),
        (None, "1234", "1.234", 0.0),
        (None, "3, 14", "3,14", 1.0),
        ("tlh", "3", "3", None),
    ],
)
def test_a_locale_says_how_numbers_are_written(
    locale: str | None, gold: str, answer: str, expected: float | None
) -> None:
    assert expected == math_answer.function(f"\\boxed{{{answer}}}", gold, locale=locale).value


def test_locales() -> None:
    assert [True, False, True, False, None] == [*map(writes_comma, ("de", "de-CH", "es_ES", "es_MX", "xx"))]
    assert "1234.5 and 1.234" == with_points("1.234,5 and 1.234", comma=None)
    assert "1234.5 and 1234" == with_points("1.234,5 and 1.234", comma=True)


def test_every_unit_that_converts_is_a_factor() -> None:
    """pint's decade and decibel are logarithms, which it refuses in products."""
    names = {unit_name(name, glued=False) for name in (*_SYMBOL_UNITS, *_WORD_UNITS)}
    sides = [tuple(Unit(((length, 1), (str(name), 1))) for length in ("m", "cm")) for name in names]
    assert {None, Conversion(Fraction(1, 100))} == {conversion(*side) for side in sides}


def test_units_that_pint_reads_otherwise_are_read_as_people_do() -> None:
    """`amps` is pint's attometre picosecond, `a` its year; `5 in` alone is a length, `5 in total` is not."""
    units = {
        text: quantity.unit for text in ("5 amps", "5 a", "5 in", "5 in total") if (quantity := read_quantity(text))
    }
    assert ["amp", "in"] == [unit.factors[0][0] for unit in units.values() if unit]


@pytest.mark.parametrize(
    "answer",
    [
        f"0.{'1' * 3900}(",
        f"0.{'12' * 1900} ing",
        "5 " + "(" * 1500 + "m",
        "5 " + "h 5 " * 900,
        "5 " + "m " * 1900,
        "5 m" + "/s" * 1500,
        "5 " + r"\frac{m}{" * 400,
        r"\begin{aligned}" * 250,
    ],
    ids=["repeating", "period", "brackets", "two units", "product", "quotient", "fractions", "aligned"],
)
def test_hostile_quantities_are_read_in_bounds(answer: str) -> None:
    """None of them raises, and no pattern goes over one again for each of its characters."""
    for mark in MARKS:
        assert 0.0 == math_answer.function(mark % answer, "7 m").value


@pytest.mark.parametrize(
    ("gold", "completion", "expected"),
    [
        ("5", "The area is 5 cm^2.", 1.0),
        ("5", "Its energy is 5 kg m^2/s^2.", 1.0),
        ("0.5", "So the rate is 0.5 mol L^-1 s^-1.", 1.0),
        ("5000", "The density is 5 x 10^3 kg/m^3.", 1.0),
        ("5", "The area is 3 m^2 + 5 m^2", 0.0),
        ("5", "The polynomial is 5 x^2.", 0.0),
        ("2", "The area is 5 cm^2.", 0.0),
    ],
)
def test_the_power_of_a_unit_is_not_the_last_number(gold: str, completion: str, expected: float) -> None:
    assert expected == math_answer.function(completion, gold).value
