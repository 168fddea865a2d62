"""Rewards for mathematics: is the final answer the gold one, or a number near it.

Which part of a completion is its answer: :func:`builtin_rewards.reading.answer.extract_answer`. Plain numbers are
compared exactly and without sympy (:mod:`builtin_rewards.reading.numbers`), everything else with math-verify
(:mod:`builtin_rewards.reading.formulas`).
"""

from __future__ import annotations

import functools
import math
import re
from dataclasses import dataclass
from enum import Enum, auto
from fractions import Fraction

from builtin_rewards.adjustable import adjustable
from builtin_rewards.reading.answer import UNMARKED, Extraction, Rule, extract_answer, opening_verdict
from builtin_rewards.reading.formulas import number_of, parse, plain_left_side, same_formula, split_unit, too_large
from builtin_rewards.reading.numbers import (
    CHANGES_NUMBER,
    NUMBER,
    ONE,
    Quantity,
    Unit,
    clean,
    factor_between,
    match_quantity,
    read_quantity,
    same_quantity,
)
from rewardkit import Reward, Score, reward

_QUESTION_CHARS = 12
DEADLINE_S = 30.0
"""Seconds that one call may take; a formula needs milliseconds, and the first call loads sympy."""


class _Kind(Enum):
    QUANTITY = auto()
    WORDS = auto()
    FORMULA = auto()


@dataclass(frozen=True, slots=True)
class _Gold:
    """A gold answer, read once: its cleaned text, what it is, and the number and unit it holds, if any."""

    text: str
    kind: _Kind
    quantity: Quantity | None = None
    unit: Unit | None = None


_WORDS = re.compile(r"[A-Za-z][A-Za-z' -]*[A-Za-z]|\(?[A-Za-z]\)?")
_OPERATOR = re.compile(r"(?:^|\s)[-+*/](?:\s|$)")
_CHOICE = re.compile(r"\(?([A-Za-z])[).:](?:\s|$)|\(([A-Za-z])\)")
_LETTERS = re.compile(r"[^a-z0-9]+")


@functools.lru_cache(maxsize=1024)
def _read_gold(answer: str) -> _Gold | str:
    """Reads a gold, or says why it cannot be read."""
    marked = answer.rpartition("####")[2] if "####" in answer else answer
    if "\\boxed" in marked or "\\fbox" in marked:
        marked = extract_answer(marked).answer or ""
    text = clean(marked)
    if not any(character.isalnum() for character in text) and "\\" not in text:
        return "the gold is empty"
    quantity = read_quantity(text) or read_quantity(text, attached=False)
    if quantity is not None:
        return _Gold(text, _Kind.QUANTITY, quantity, quantity.unit)
    if "\\" not in text and (_WORDS.fullmatch(text) or _is_label(text)) and not _OPERATOR.search(text):
        return _Gold(text, _Kind.WORDS)
    fault = too_large(text)
    if fault is not None:
        return f"the gold cannot be read: {fault}"
    formula, unit = split_unit(marked)
    if not parse(formula):
        return f"the gold cannot be read as a number, words or a formula: {marked[:80]!r}"
    return _Gold(formula, _Kind.FORMULA, None, unit)


def _is_label(text: str) -> bool:
    """Whether a text with digits is a name such as a time of day, and no formula: it has letters and a colon."""
    return ":" in text and any(character.isalpha() for character in text) and len(text) < 40


@reward(timeout_s=DEADLINE_S, score_range=(0, 1))
def math_answer(completion: str, answer: str | None = None, prompt: str = "") -> Score:
    """1.0 if the completion's final answer equals the gold one, otherwise 0.0; with what was compared.

    Column ``answer``: a number, fraction, percentage, amount with a unit, word, choice letter, or anything that
    math-verify reads as LaTeX (expressions, equations, intervals, sets, matrices). Of a worked GSM8K solution the
    part after ``####`` is the gold, of a worked MATH solution its last box.

    Which part of the completion counts is the rule of :func:`builtin_rewards.reading.answer.extract_answer`; several
    distinct final answers are answer stuffing and score 0.0, unless the gold itself is a list that they make up.
    What equals what:

    - Numbers are compared exactly. A decimal of six places or more stands for the fraction it approximates.
    - ``x%`` is ``x/100``, and x itself where only one side has the sign and x is at least 1.
    - A unit counts if the gold and the answer both have one: 5 feet is not 5 meters, 500 cm is 5 m, and a bare 5
      answers 5 meters, since questions name the unit they ask for. A unit where the gold has none is ignored.
    - Words are compared as words, without case and punctuation, never as products of letters.
    - Formulas are compared by math-verify, with the stricter rules of
      :func:`builtin_rewards.reading.formulas.same_formula`. One beyond its bounds (length, depth, exponents such as
      ``9**9**9``, factorials) scores 0.0 and is never evaluated.
    - A verbatim copy of the prompt in the completion is not read.
    - Full-width digits are digits; an invisible character inside an answer makes it unreadable, as do digits of
      other scripts and letters that only look alike.

    Source: math-verify (Hugging Face, https://github.com/huggingface/Math-Verify), with its timeouts switched off;
    the worker's deadline stands in for them. ``None``: the row has no gold, or one that cannot be read.
    """
    gold = _read_gold(answer) if answer and answer.strip() else "the row has no gold: 'answer' is empty"
    if isinstance(gold, str):
        return Score(None, reason=gold)
    completion = _without_prompt(completion, prompt)
    found = extract_answer(completion)
    if gold.kind is _Kind.WORDS and found.rule in UNMARKED and opening_verdict(completion) == gold.text.casefold():
        return Score(1.0, reason=f"it begins with {_shown(gold.text)} ({Rule.VERDICT})")
    if found.answer is None or found.problem:
        return Score(0.0, reason=_no_answer(found))
    if found.stuffed:
        return _judge_several(gold, found)
    fault = _differs(gold, found.answer, prose=_may_be_prose(found))
    if fault is None:
        return Score(1.0, reason=f"{_shown(found.answer)} ({found.rule}) equals {_shown(gold.text)}")
    return Score(0.0, reason=f"{_shown(found.answer)} ({found.rule}): {fault}")


def _may_be_prose(found: Extraction) -> bool:
    """Whether an answer may be a sentence around its number; in a box only one that begins as text."""
    return found.rule in (Rule.TAG, Rule.PHRASE) or (found.answer or "").lstrip().startswith("\\text{")


def _without_prompt(completion: str, prompt: str) -> str:
    """Takes copies of the question out of a completion: who repeats it has not answered it."""
    asked = prompt.strip()
    return completion.replace(asked, " ") if len(asked) >= _QUESTION_CHARS and " " in asked else completion


def _no_answer(found: Extraction) -> str:
    shown = f": {_shown(found.answer)}" if found.answer is not None else ""
    return f"{found.problem}{shown}" if found.problem else "no answer in the completion"


def _shown(text: str) -> str:
    text = " ".join(text[:200].split())
    return repr(text if len(text) <= 60 else f"{text[:57]}...")


def _judge_several(gold: _Gold, found: Extraction) -> Score:
    """Several distinct answers are right if all of them are, or if together they are the list that the gold is."""
    count = len(found.candidates)
    together = ", ".join(_right_side(clean(candidate)) for candidate in found.candidates[:50])
    if gold.kind is _Kind.FORMULA and _differs(gold, together, prose=False) is None:
        return Score(1.0, reason=f"the {count} answers together equal {_shown(gold.text)}")
    if count <= 5 and all(_differs(gold, candidate, prose=False) is None for candidate in found.candidates):
        return Score(1.0, reason=f"all {count} answers equal {_shown(gold.text)}")
    shown = ", ".join(_shown(candidate) for candidate in found.candidates[-4:])
    return Score(0.0, reason=f"answer stuffing: {count} distinct final answers ({found.rule}), the last are {shown}")


def _right_side(text: str) -> str:
    return text.rpartition("=")[2].strip() if "=" in text and plain_left_side(text) else text


def _differs(gold: _Gold, answer: str, *, prose: bool) -> str | None:
    """Says how an answer differs from the gold, or ``None`` if it does not."""
    text = clean(answer)
    if gold.kind is _Kind.WORDS:
        return None if _same_words(gold.text, text) else f"not the gold {_shown(gold.text)}"
    if gold.quantity is not None:
        given = read_number(text, prose=prose, attached=gold.unit is not None)
        if given is not None:
            return _quantity_differs(gold, gold.quantity, given)
    if not text.isascii():
        return "it has characters that cannot be read"
    if not text or not any(character.isalnum() for character in text):
        return "no answer in it"
    if (fault := too_large(text)) is not None:
        return f"not read: {fault}"
    return _formula_differs(gold, answer)


def _quantity_differs(gold: _Gold, wanted: Quantity, given: Quantity) -> str | None:
    if same_quantity(wanted, given):
        return None
    if factor_between(wanted.unit, given.unit) is None or wanted.value == given.value:
        return f"another unit than the gold {_shown(gold.text)}"
    return f"not the gold {_shown(gold.text)}"


def _formula_differs(gold: _Gold, answer: str) -> str | None:
    formula, unit = split_unit(answer)
    factor = factor_between(gold.unit, unit)
    if factor != 1:
        return f"another unit than the gold {_shown(gold.text)}"
    if gold.quantity is not None:
        wanted = _number_text(gold.text)
        if gold.quantity.base is not None:
            return f"not the gold {_shown(gold.text)}"
    else:
        wanted = gold.text
    return None if same_formula(wanted, formula) else f"not the gold {_shown(gold.text)}"


def _number_text(text: str) -> str:
    """A gold number without its unit, as a formula."""
    found = match_quantity(text)
    end = found[1] if found else len(text)
    percent = "\\%" if text[end:].lstrip().startswith("%") else ""
    return text[:end].replace(",", "").replace("$", "") + percent


_NUMBER_IN_PROSE = re.compile(rf"[-+]?[$€£¥₹]?-?(?:\\frac\{{\d+\}}\{{\d+\}}|{NUMBER}(?: ?/ ?\d+)?)", re.ASCII)
_UNREADABLE_PROSE = re.compile(
    r"\b(?:not|never|cannot|neither|nor|or|maybe|perhaps|possibly|either|between|unsure|unknown|wrong|incorrect|"
    r"but|except|other than)\b|n't\b|\u4e0d|\bno es\b|\bnicht\b|"
    rf"(?:{CHANGES_NUMBER})\b|[\\^_<>|]|[-+*/]\s*$|\w[-+*/^(]$",
    re.IGNORECASE,
)


def read_number(text: str, *, prose: bool = False, attached: bool = False) -> Quantity | None:
    """Reads a cleaned answer as one number: alone, as the last side of an equation, or the only one in a sentence.

    Args:
        text: The answer, as ``clean`` gives it.
        prose: Whether it may be a sentence with exactly one number, without denial and comparison.
        attached: Whether one letter right after the number is a unit.
    """
    if len(text) > 2_000:
        return None
    quantity = read_quantity(text, attached=attached)
    if quantity is None and "=" in text and plain_left_side(text):
        quantity = read_quantity(text.rpartition("=")[2].strip(), attached=attached)
    if quantity is None and prose:
        numbers = list(_NUMBER_IN_PROSE.finditer(text))
        if len(numbers) == 1 and numbers[0].start() and not _UNREADABLE_PROSE.search(text[: numbers[0].start()]):
            before = text[: numbers[0].start()]
            if " " in before.strip() or before.strip().endswith(":") or before[-1:].isspace():
                quantity = read_quantity(text[numbers[0].start() :], attached=attached)
    return quantity


def _same_words(gold: str, text: str) -> bool:
    """Whether two texts are the same words; a choice letter also counts with the choice's text behind it."""
    wanted, given = (_LETTERS.sub(" ", each.lower()).strip() for each in (gold, text))
    if not text.isascii() and text.strip(" .()").lower() != gold.strip(" .()").lower():
        return False
    if wanted == given:
        return True
    choice = _CHOICE.match(text)
    return len(wanted) == 1 and choice is not None and (choice[1] or choice[2]).lower() == wanted


@adjustable
def numeric_close(rel: float = 1e-3, abs: float = 0.0) -> Reward[..., Score]:
    """Settings of ``numeric_close``.

    Args:
        rel: Largest error as a share of the gold's size; 0.001 is a tenth of a percent. Finite, at least 0.
        abs: Largest error as a number, for golds at or near zero. Finite, at least 0.
    """
    for name, bound in (("rel", rel), ("abs", abs)):
        if not (math.isfinite(bound) and bound >= 0):
            raise ValueError(f"numeric_close: {name} is a finite number of at least 0, not {bound!r}")

    @reward(timeout_s=DEADLINE_S, score_range=(0, 1))
    def numeric_close(completion: str, answer: str | None = None, prompt: str = "") -> Score:
        """1.0 if the completion's final number is within a tolerance of the gold one, otherwise 0.0.

        Formula: ``|given - gold| <= max(rel * |gold|, abs)``, as in Python's ``math.isclose`` with the gold as the
        measure. The final number is found as in ``math_answer``, several distinct ones score 0.0, and units and
        percent signs are treated as there; a formula without variables, such as ``\\sqrt{2}``, counts as its value.

        Column ``answer``: the gold number. ``None``: it is missing, or no number. Metric ``error``: the distance
        from the gold, where the completion has a number.
        """
        gold = _read_gold(answer) if answer and answer.strip() else "the row has no gold: 'answer' is empty"
        if isinstance(gold, str):
            return Score(None, reason=gold)
        wanted = _gold_value(answer or "")
        if wanted is None:
            return Score(None, reason=f"the gold is no number: {_shown(gold.text)}")
        found = extract_answer(_without_prompt(completion, prompt))
        if found.answer is None or found.problem:
            return Score(0.0, reason=_no_answer(found))
        if found.stuffed:
            return Score(0.0, reason=f"answer stuffing: {len(found.candidates)} distinct final answers ({found.rule})")
        given = _value(clean(found.answer), gold.unit, gold, prose=_may_be_prose(found))
        if given is None:
            return Score(0.0, reason=f"{_shown(found.answer)} ({found.rule}) is no number in the gold's unit")
        return _close(given, wanted, rel, abs)

    return numeric_close


@functools.lru_cache(maxsize=1024)
def _gold_value(answer: str) -> float | None:
    """Gives a gold's value in its own unit; ``None`` for no number."""
    gold = _read_gold(answer)
    return None if isinstance(gold, str) else _value(gold.text, gold.unit)


def _close(given: float, wanted: float, rel: float, absolute: float) -> Score:
    error = math.fabs(given - wanted)
    allowed = max(rel * math.fabs(wanted), absolute)
    if not math.isfinite(error):
        return Score(0.0, reason=f"{given:g} is too far from {wanted:g}")
    verdict = "within" if error <= allowed else "further than"
    reason = f"{given:g} is {verdict} {allowed:g} of {wanted:g}"
    return Score(float(error <= allowed), reason=reason, metrics={"error": error})


def _value(text: str, unit: Unit | None, gold: _Gold | None = None, *, prose: bool = False) -> float | None:
    """A cleaned answer's value in a unit, or ``None`` for no number; percent signs as the gold has them."""
    quantity = read_number(text, prose=prose, attached=unit is not None)
    if quantity is not None:
        factor = factor_between(unit, quantity.unit)
        if factor is None or (gold is not None and quantity.base not in (None, _base(gold))):
            return None
        return _as_float(quantity, factor, gold)
    if not text.isascii() or not text or too_large(text) is not None:
        return None
    formula, given_unit = split_unit(text)
    factor = factor_between(unit, given_unit)
    values = [value for value in map(number_of, parse(formula)) if value is not None]
    if factor is None or not values or math.fabs(values[0].imag) > 1e-12:
        return None
    return values[0].real * float(factor)


def _base(gold: _Gold) -> int | None:
    return gold.quantity.base if gold.quantity else None


def _as_float(quantity: Quantity, factor: Fraction, gold: _Gold | None) -> float | None:
    """The number in the gold's unit; where one side has a percent sign, in the reading that is nearer to the gold."""
    readings = [quantity.value if factor is ONE else quantity.value * factor]
    wanted = gold.quantity if gold is not None else None
    if wanted is not None and wanted.percent != quantity.percent:
        scaled = readings[0] / 100 if quantity.percent else readings[0] * 100
        bare = wanted.value if quantity.percent else readings[0]
        readings = [*readings, scaled] if math.fabs(bare) >= 1 else [scaled]
    try:
        near = float(wanted.value) if wanted is not None else 0.0
        return min((float(reading) for reading in readings), key=lambda reading: math.fabs(reading - near))
    except OverflowError:
        return None
