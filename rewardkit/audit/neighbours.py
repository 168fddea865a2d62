"""Wrong answers near the gold: numbers a little off, digits in another order, sums not worked out, parts of a text."""

from __future__ import annotations

import math
import random
import re
from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction

from rewardkit.audit.gold import Gold, GoldShape, gold_of, in_other_unit, letter, mentions, next_letter, numeral
from rewardkit.audit.probe import Wrong, first_of_each
from rewardkit.audit.queries import is_query, more_rows

SHARES = (Fraction(1, 1000), Fraction(1, 100), Fraction(1, 20), Fraction(1, 10))
"""How far the nearest numbers are, as shares of the gold."""
_ALIKE = dict(zip("0123456789", "8778965134", strict=True))  # for each digit one that is easily taken for it
_WORD = re.compile(r"[^\W\d_]{4,}")
_MAX_DIGITS = 12
_MOST_NUMBERS = 2  # of a text's numbers, as many are changed
_LARGEST = 1_000_000


def neighbours(gold: Gold) -> list[Wrong]:
    """Return answers that are near the gold and wrong, each once."""
    answers: list[Wrong] = []
    if gold.number is not None:
        answers = [answer._replace(text=gold.in_unit(answer.text)) for answer in _near(gold, gold.number)]
        unit = in_other_unit(gold)
        if unit is not None:
            answers.append(Wrong("another unit", unit, "unit"))
    elif gold.shape is GoldShape.LETTER:
        answers.append(Wrong("the next letter", next_letter(letter(gold)), "letter"))
    elif gold.shape is GoldShape.TEXT and len(gold.text) >= 4:
        ends = (("its first letter", gold.text[0]), ("its last letter", gold.text[-1]))
        answers += [Wrong(name, text, "part") for name, text in ends if text.isalpha()]
        answers += more_rows(gold) if is_query(gold) else _other_order(gold.text)
    wrong = (answer for answer in answers if answer.text.strip() and not _is_gold(answer.text, gold))
    return first_of_each(wrong, lambda answer: answer.text)


def _other_order(text: str) -> Iterator[Wrong]:
    """Yield a text with digits or letters of it in another order; right in part, as a measure of likeness has it."""
    yield from (answer._replace(partial=True) for answer in _other_digits(text))
    if "\\" not in text:  # the names of LaTeX's commands are no words
        yield Wrong("its words backwards", _WORD.sub(lambda word: word[0][::-1], text), "order", partial=True)


def _is_gold(text: str, gold: Gold) -> bool:
    other = gold_of(text)
    return other is not None and other.key == gold.key


def _near(gold: Gold, number: Fraction) -> Iterator[Wrong]:
    """Yield wrong numbers near the gold's own, without its unit."""
    digits = numeral(number, gold.text).lstrip("-")
    yield Wrong("one more", numeral(number + 1, gold.text), "tolerance")
    yield Wrong("one less", numeral(number - 1, gold.text), "tolerance")
    yield from _numbers_near(number, digits)
    minus = "-" if number < 0 else ""
    for answer in _other_digits(digits):
        # One that lies near would be paid for being near as well, and would tell nothing about digits.
        if "/" in digits or abs(Fraction(answer.text.replace(",", "")) - abs(number)) > max(SHARES) * abs(number):
            yield answer._replace(text=minus + answer.text)
    yield Wrong("a digit before", f"{minus}7{digits}", "digits")
    if "/" not in digits:
        stays_near = digits.partition(".")[2] != "" and number != 0
        yield Wrong("a digit behind", f"{minus}{digits}7", "tolerance" if stays_near else "digits")
    if digits.isdigit() and len(digits) > 1:
        yield from (Wrong("its first digit", digits[0], "digits"), Wrong("its last digit", digits[-1], "digits"))
    if number:
        yield Wrong("the other sign", numeral(-number, gold.text), "sign")
        yield Wrong("ten times", numeral(number * 10, gold.text), "size")
        if number > 0 and not gold.unit[0]:
            yield Wrong("minus in words", f"minus {digits}", "sign")
            yield Wrong("a multiple in words", f"twice {digits}", "sign")


def _numbers_near(number: Fraction, digits: str) -> Iterator[Wrong]:
    """Yield numbers a share off, and the nearest whole ones; none that rounds to a decimal gold as it is written."""
    places = len(digits.partition(".")[2])
    for share in SHARES:
        for sign, word in ((1, "more"), (-1, "less")):
            near, name = number * (1 + sign * share), f"{float(share * 100):g}% {word}"
            if "/" in digits:
                yield Wrong(name, numeral(near, digits), "tolerance")
            elif not places or round(near, places) != number:
                yield Wrong(name, f"{Decimal(near.numerator) / Decimal(near.denominator):f}", "tolerance")
            if number.denominator == 1:
                toward = math.floor if near > number else math.ceil
                if toward(near) != number:
                    yield Wrong(f"{name}, a whole number", str(toward(near)), "tolerance")


def _other_digits(text: str) -> Iterator[Wrong]:
    """Yield a text with digits of one of its numbers in another order, one changed, doubled or lost."""
    matches = re.finditer(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?", text)
    runs = [run for run in matches if len(run[0]) <= _MAX_DIGITS]
    chooser = random.Random(text)  # noqa: S311 - a sample, no secret; other numbers in each row's text
    for run in chooser.sample(runs, min(_MOST_NUMBERS, len(runs))):
        for name, changed in _digit_changes(run[0]):
            if changed != run[0] and changed.strip("0.,"):
                yield Wrong(name, text[: run.start()] + changed + text[run.end() :], "digits")


def _digit_changes(number: str) -> Iterator[tuple[str, str]]:
    """Yield a number with its digits in another order, one changed, doubled or lost, each with a name."""
    places = [index for index, char in enumerate(number) if char.isdigit()]
    digits = [number[index] for index in places]

    def put(changed: list[str]) -> str:
        new = dict(zip(places, changed, strict=True))
        return "".join(new.get(index, char) for index, char in enumerate(number))

    for index in range(len(digits) - 1):
        yield "two digits swapped", put([*digits[:index], digits[index + 1], digits[index], *digits[index + 2 :]])
    yield "its digits reversed", put(digits[::-1])
    yield "its digits sorted", put(sorted(digits))
    for index in {0, len(digits) - 1}:
        yield "a digit like another", put([*digits[:index], _ALIKE.get(digits[index], "8"), *digits[index + 1 :]])
    last = places[-1]
    if number.isdigit():
        yield "a digit twice", number + number[last]
    if len(digits) > 2 and number.isdigit():
        yield "a digit lost", number[:1] + number[2:]


def unfinished(gold: Gold) -> list[Wrong]:
    """Return sums, products and powers that are the gold once somebody works them out."""
    number = gold.number
    if number is None or gold.shape is not GoldShape.NUMBER or abs(number) > _LARGEST:
        return []
    sums = [
        Wrong("a sum", f"{numeral(number - 1, gold.text)} + 1"),
        Wrong("a difference", f"{numeral(number + 1, gold.text)} - 1"),
        Wrong("a product", f"2 * {numeral(number / 2, gold.text if number.denominator > 1 else '')}"),
    ]
    if number.denominator == 1 and number > 1:
        whole = number.numerator
        sums += [Wrong("a product of wholes", f"{n} * {whole // n}") for n in range(3, 20) if whole % n == 0][:1]
        roots = [(round(whole ** (1 / power)), power) for power in range(2, 20)]
        # A power of ten is scientific notation, which is a way of writing a number.
        powers = [(base, power) for base, power in roots if base not in (1, 10) and base**power == whole]
        sums += [Wrong("a power", f"{base}^{{{power}}}") for base, power in powers[:1]]
    exact = gold.text if "." in gold.text else ""
    # A half that has more places than the gold is rounded as it is written: it is then another number.
    return [answer for answer in sums if not mentions(answer.text, gold) and (not exact or answer.name != "a product")]
