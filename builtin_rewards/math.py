"""Rewards for mathematics: is the final answer the gold one, or a number near it.

Which part of a completion is its answer: :func:`builtin_rewards.reading.answer.extract_answer`. Plain numbers are
compared exactly (:mod:`builtin_rewards.reading.numbers`), everything else by value at a few points
(:mod:`builtin_rewards.reading.formulas`).
"""

from __future__ import annotations

import functools
import math
import re
from dataclasses import dataclass
from fractions import Fraction

from builtin_rewards.adjustable import adjustable
from builtin_rewards.reading.answer import UNMARKED, Extraction, Rule, extract_answer, opening_verdict
from builtin_rewards.reading.denials import clause_denies, denied_after, denies
from builtin_rewards.reading.formulas import number_of, right_side, same_formula, split_unit, unread
from builtin_rewards.reading.labels import Label, as_ratio, bare_number, labels_in, read_label, same_label, says_bare
from builtin_rewards.reading.numbers import (
    CHANGES_NUMBER,
    NUMBER,
    Quantity,
    Unit,
    clean,
    factor_between,
    harmless,
    has_operation,
    match_quantity,
    read_quantity,
    readings,
    same_quantity,
)
from builtin_rewards.reading.turn import after_thinking
from rewardkit import Reward, Score, reward

_QUESTION_CHARS = 12
DEADLINE_S = 30.0
"""Seconds that one call may take; a formula needs milliseconds, and the first call loads mpmath."""


@dataclass(frozen=True, slots=True)
class _Gold:
    """A gold answer, read once.

    Attributes:
        text: What is compared where it is a word or a formula.
        value: The number or label that it is, if it is one.
        unit: The unit of a number or a formula.
        words: Whether it is compared as words.
        fault: Why it can be compared as text only; empty if it can be otherwise.
    """

    text: str
    value: Quantity | Label | None = None
    unit: Unit | None = None
    words: bool = False
    fault: str | None = None

    @property
    def number(self) -> Quantity | None:
        return self.value if isinstance(self.value, Quantity) else None


_WORDS = re.compile(
    r"(?!.*(?:^|\s)[-+*/](?:\s|$))(?!(?:[A-Za-z]{1,2}[-'])+[A-Za-z]{1,2}$)"
    r"(?:[A-Za-z][A-Za-z' -]*[A-Za-z]|\(?[A-Za-z]\)?"
    r"|(?=.{,40}$)(?:(?=.*[A-Za-z]).*:.*|(?=.* )(?=.*\d)"
    r"(?!.*\b(?:and|or|sqrt|root|log|exp|sin|cos|tan|choose|mod|plus|minus|times|squared|cubed|over)\b)"
    r"(?:[A-Za-z0-9][A-Za-z0-9.',#-]* )*[A-Za-z]{3,}[A-Za-z0-9.,'# -]*))",
    re.ASCII,
)
"""Words, a choice letter, or a name with digits, such as ``Route 66`` or a time with its zone; no formula."""
_NOT_WORKED_OUT = "arithmetic that is not worked out"
_REPEATED = "it repeats an expression of the prompt"
_CHOICE = re.compile(r"\(?([A-Za-z])[).:](?:\s|$)|\(([A-Za-z])\)")
_LETTERS = re.compile(r"[^a-z0-9]+")
_BULLET = re.compile(r"\A(?:[-#>]+ )+(?=[A-Za-z]{3}|no\b)", re.IGNORECASE)
_MATHEMATICAL = re.compile(
    r"[+*/^=<>|\\%#~]|(?<!\w)-(?=\s*\w)|(?<![A-Za-z]{3})(?<!\bno)(?<!\d)[!'?](?!\w)", re.IGNORECASE
)
"""What makes a formula of a word: ``-kP`` and ``x!`` are, ``Paris!`` and ``- Paris`` in a list are words."""


@functools.lru_cache(maxsize=1024)
def _read_gold(answer: str) -> _Gold | str:
    """Reads a gold, or says why it cannot be read."""
    if not answer.strip():
        return "the row has no gold: 'answer' is empty"
    marked = answer.rpartition("####")[2] if "####" in answer else answer
    if "\\boxed" in marked or "\\fbox" in marked:
        marked = extract_answer(marked).answer or ""
    text = clean(marked)
    if not any(character.isalnum() for character in text) and "\\" not in text:
        return "the gold is empty"
    if (value := _value_of(text)) is not None:
        return _Gold(text, value, value.unit if isinstance(value, Quantity) else None)
    if "\\" not in text and _WORDS.fullmatch(text):
        return _Gold(text, words=True)
    formula, unit = split_unit(marked)
    return _Gold(formula, unit=unit, fault=unread(formula))


def _value_of(text: str, *, attached: bool = False) -> Quantity | Label | None:
    return read_label(text) or read_quantity(text, attached=attached)


@reward(timeout_s=DEADLINE_S, score_range=(0, 1))
def math_answer(completion: str, answer: str | None = None, prompt: str = "") -> Score:
    """1.0 if the completion's final answer equals the gold one, otherwise 0.0; with what was compared.

    Column ``answer``: a number, fraction, percentage, amount with a unit, label, word, choice letter, or a formula in
    LaTeX or plain text (expressions, equations, intervals, sets, matrices). Of a worked GSM8K solution the part after
    ``####`` is the gold, of a worked MATH solution its last box.

    Which part of the completion counts is the rule of :func:`builtin_rewards.reading.answer.extract_answer`; several
    distinct final answers are answer stuffing and score 0.0, unless the gold itself is a list that they make up.
    What equals what:

    - Numbers are compared exactly. A decimal of six places or more stands for the fraction it approximates.
    - ``x%`` is ``x/100``, and x itself where only one side has the sign and the gold is above 1; 25 feet is not 25%.
    - Labels are kinds of their own and never numbers or arithmetic: numerals in a base (``0x1F``, ``52_8``), times,
      dates, ratios, and codes such as versions and addresses, each compared exactly by the rule of
      :func:`builtin_rewards.reading.labels.same_label`.
    - Arithmetic that is not worked out (``17*23``, ``2^{10}``, ``\\sqrt{16}``) is no answer where the gold is a
      number. A fraction (``36/2`` too), a mixed number, a percentage and scientific notation are numbers.
    - An answer that stands in the prompt as it is written is none, unless the gold is written so too: for the gold
      3/4, ``72/96`` repeats "Simplify 72/96".
    - A unit counts if the gold and the answer both have one: 5 feet is not 5 meters, 500 cm is 5 m, and a bare 5
      answers 5 meters, since questions name the unit they ask for. A unit where the gold has none is ignored.
    - Words are compared as words, without case and punctuation, never as products of letters.
    - Formulas are equal if they have the same value wherever their letters stand for the same numbers, by the rules
      of :func:`builtin_rewards.reading.formulas.same_formula`: ``6x+4y=12`` is ``3x+2y=6``, and ``(2, 4)`` is not
      ``\\{2, 4\\}``. One with anything that is not understood, such as an integral, equals its own text only, as does
      one beyond the bounds (length, depth, numbers such as ``9**9**9``), which is never evaluated.
    - A verbatim copy of the prompt in the completion is not read.
    - Full-width digits are digits; an invisible character inside an answer makes it unreadable, as do digits of
      other scripts and letters that only look alike.

    ``None``: the row has no gold, or one that can be compared as text only and the answer is another.
    """
    gold = _read_gold(answer or "")
    if isinstance(gold, str):
        return Score(None, reason=gold)
    completion = _without_prompt(completion, prompt)
    found = extract_answer(completion)
    if gold.words and found.rule in UNMARKED:
        if opening_verdict(completion) == gold.text.casefold():
            return Score(1.0, reason=f"it begins with {_shown(gold.text)} ({Rule.VERDICT})")
        if not found.problem and _same_words(gold.text, clean(after_thinking(completion))):
            return Score(1.0, reason=f"it is {_shown(gold.text)}")
    if found.answer is None or found.problem:
        return Score(0.0, reason=_no_answer(found))
    if found.stuffed:
        return _judge_several(gold, found, completion, prompt)
    fault = _differs(gold, found.answer, prompt, prose=_may_be_prose(found))
    if fault is None:
        return Score(1.0, reason=f"{_shown(found.answer)} ({found.rule}) equals {_shown(gold.text)}")
    if gold.fault is not None:
        return Score(None, reason=f"the gold cannot be read but as text: {gold.fault}")
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


def _judge_several(gold: _Gold, found: Extraction, completion: str, prompt: str) -> Score:
    """Several distinct answers are right if all of them are, or if together they are the list that the gold is.

    Arithmetic on the way to the last one is no answer, and so speaks for none and against none.
    """
    count = len(found.candidates)
    stands = found.rule is not Rule.LAST_NUMBER or _list_stands(found.candidates, completion)
    if gold.value is None and not gold.words and stands:
        together = ", ".join(right_side(clean(candidate)) for candidate in found.candidates[:50])
        if _differs(gold, together, prompt, prose=False) is None:
            return Score(1.0, reason=f"the {count} answers together equal {_shown(gold.text)}")
    faults = (_differs(gold, candidate, prompt, prose=False) for candidate in reversed(found.candidates))
    if count <= 5 and next(faults) is None and all(fault in (None, _NOT_WORKED_OUT) for fault in faults):
        return Score(1.0, reason=f"all {count} answers equal {_shown(gold.text)}")
    shown = ", ".join(_shown(candidate) for candidate in found.candidates[-4:])
    return Score(0.0, reason=f"answer stuffing: {count} distinct final answers ({found.rule}), the last are {shown}")


def _list_stands(listed: tuple[str, ...], completion: str) -> bool:
    """Whether the last numbers of a completion are a list that is no part of a word and is not denied."""
    first, last = re.escape(listed[0]), re.escape(listed[-1])
    around = re.match(rf"(.*){first}.*{last}(.*)", completion[-_LONGEST_LIST:], re.DOTALL)
    if around is None:
        return True
    before, after = around[1].rstrip("\\({["), around[2].lstrip("\\)}]")
    return not (before[-1:].isalpha() or after[:1].isalpha() or clause_denies(before, len(before)))


def _differs(gold: _Gold, answer: str, prompt: str = "", *, prose: bool) -> str | None:
    """Says how an answer differs from the gold, or why it is not final; ``None`` if it is right."""
    text = clean(answer)
    if gold.words:
        return None if _same_words(gold.text, text) else f"not the gold {_shown(gold.text)}"
    fault = _unequal(gold, answer, text, prose)
    if fault is None and prompt and _restates(gold, right_side(text), prompt):
        return _REPEATED
    return fault


def _unequal(gold: _Gold, answer: str, text: str, prose: bool) -> str | None:
    """Says how an answer that is no word differs from the gold, or ``None`` if it does not."""
    given = _read(text, prose=prose, attached=gold.unit is not None)
    if gold.number is not None and isinstance(given, Quantity):
        return _quantity_differs(gold, gold.number, given)
    label = given if isinstance(given, Label) else None
    if label is not None or isinstance(gold.value, Label):
        return None if _same_label(gold, label, right_side(text)) else f"not the gold {_shown(gold.text)}"
    if text == gold.text:
        return None
    if not text.isascii():
        return "it has characters that cannot be read"
    if not any(character.isalnum() for character in text) and "".join(text.split()) != "\\{\\}":
        return "no answer in it"
    return _formula_differs(gold, answer)


def _same_label(gold: _Gold, label: Label | None, text: str) -> bool:
    """Whether a gold and an answer, of which one at least is a label, are the same."""
    if isinstance(gold.value, Label):
        return says_bare(gold.value, text) or (label is not None and same_label(gold.value, label))
    if gold.number is None or label is None:
        return False
    return gold.number.value == bare_number(label) or as_ratio(gold.text) == label


def _restates(gold: _Gold, text: str, prompt: str) -> bool:
    """Whether an answer stands in the prompt as it is written, and the gold is written otherwise."""
    if gold.number is not None and (number := _NUMBER_IN_PROSE.search(text)) is not None:
        found = match_quantity(text := text[number.start() :])
        given, end = found or (gold.number, number.end())
        if _PLAIN.fullmatch(text, 0, end):
            if given.value == gold.number.value and gold.number.places is not None:
                return False
            behind = None if gold.number.places is None else _WORD_BEHIND.match(text, end)
            end = behind.end() if behind else end
        text = text[:end]
    written, wanted = (_MARKS.sub("", _COMMAND.sub("", each)).lower() for each in (text, gold.text))
    if written in wanted:
        return False
    text, asked = (_DIVIDED.sub(r"\g<top>/\g<under>", each) for each in (text, clean(prompt)))
    sought = r"\s*".join(map(re.escape, "".join(text.split())))
    return re.search(rf"(?<![\w.]){sought}(?!\w|\.\d)", asked) is not None


def _quantity_differs(gold: _Gold, wanted: Quantity, given: Quantity) -> str | None:
    if same_quantity(wanted, given):
        return None
    unit = not readings(wanted, given) or wanted.value == given.value
    return f"{'another unit than' if unit else 'not'} the gold {_shown(gold.text)}"


def _formula_differs(gold: _Gold, answer: str) -> str | None:
    formula, unit = split_unit(answer)
    if factor_between(gold.unit, unit) != 1:
        return f"another unit than the gold {_shown(gold.text)}"
    if gold.number is not None and has_operation(right_side(formula)):
        return _NOT_WORKED_OUT
    wanted = gold.text if gold.number is None else f"({gold.number.value}){'%' * gold.number.percent}"
    if same_formula(wanted, formula):
        return None
    fault = unread(formula)
    return f"not the gold {_shown(gold.text)}" if fault is None else f"not read: {fault}"


_NUMBER_IN_PROSE = re.compile(rf"[-+]?[$€£¥₹]?-?(?:\\frac\{{\d+\}}\{{\d+\}}|{NUMBER}(?: ?/ ?\d+)?)", re.ASCII)
_HEDGED = re.compile(
    r"\b(?:or|maybe|perhaps|possibly|either|between|unsure|unknown|wrong|incorrect|but)\b"
    rf"|(?:{CHANGES_NUMBER})\b|[\\^_<>|]|[-+*/]\s*$|\w[-+*/^(]$",
    re.IGNORECASE,
)
_LONGEST_PROSE = 2_000
_LONGEST_LIST = 600
_PLAIN = re.compile(r"[-+$€£¥₹]*[\d.,]+")
_WORD_BEHIND = re.compile(r"(?:\s*(?:%|[A-Za-z]+))?")
_DIVIDED = re.compile(r"\\frac\s*\{(?P<top>\w{1,40})\}\s*\{(?P<under>\w{1,40})\}|\b (?:divided by|over|\\div) +\b")
_COMMAND, _MARKS = re.compile(r"\\[A-Za-z]+"), re.compile(r"[^A-Za-z0-9]+")


def _stands(text: str, start: int) -> bool:
    """Whether the words of a sentence before its one number or label leave it as it is."""
    before = text[:start]
    return not (_HEDGED.search(before) or denies(before) or clause_denies(text, start))


def _read(text: str, *, prose: bool, attached: bool) -> Quantity | Label | None:
    """Reads a cleaned answer as one number or label: alone, as the last side of an equation, or alone in a sentence.

    Args:
        text: The answer, as ``clean`` gives it.
        prose: Whether it may be a sentence with exactly one of them, without denial and comparison.
        attached: Whether one letter right after the number is a unit.
    """
    value = _value_of(right_side(text), attached=attached)
    if value is not None or not prose or len(text) > _LONGEST_PROSE:
        return value
    labels = labels_in(text)
    spans = labels or [number.span() for number in _NUMBER_IN_PROSE.finditer(text)]
    start, end = spans[0] if len(spans) == 1 else (0, 0)
    before, after = text[:start], text[end:]
    if not end or not _stands(text, start) or denied_after(text, end):
        return None
    if not labels:
        return read_quantity(text[start:], attached=attached) if re.search(r"[\s:]", before) else None
    return read_label(text[start:end]) if harmless(after) and not re.search(r"\d", before + after) else None


def _same_words(gold: str, text: str) -> bool:
    """Whether two texts are the same words; a choice letter also counts with the choice's text behind it."""
    wanted, given = (_LETTERS.sub(" ", each.lower()).strip() for each in (gold, text))
    if not text.isascii() and text.strip(" .()").lower() != gold.strip(" .()").lower():
        return False
    if {*_MATHEMATICAL.findall(_BULLET.sub("", text, 1))} - {*_MATHEMATICAL.findall(gold)}:
        return False
    if given in (wanted, *(f"there {verb} {wanted}" for verb in ("is", "are") if wanted.startswith("no "))):
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
            raise ValueError(f"{name} is a finite number of at least 0, not {bound!r}")

    @reward(timeout_s=DEADLINE_S, score_range=(0, 1))
    def numeric_close(completion: str, answer: str | None = None, prompt: str = "") -> Score:
        """1.0 if the completion's final number is within a tolerance of the gold one, otherwise 0.0.

        Formula: ``|given - gold| <= max(rel * |gold|, abs)``, as in Python's ``math.isclose`` with the gold as the
        measure. The final number is found as in ``math_answer``, several distinct ones score 0.0, and units and
        percent signs are treated as there, and so are labels, arithmetic and what repeats the prompt; a formula
        without variables that comes to no fraction, such as ``\\sqrt{2}``, counts as its value.

        Column ``answer``: the gold number. ``None``: it is missing, or no number. Metric ``error``: the distance
        from the gold, where the completion has a number.
        """
        # audit: skip tolerance it pays what is within the tolerance that it was made with, 0.1% by default
        gold = _read_gold(answer or "")
        if isinstance(gold, str):
            return Score(None, reason=gold)
        wanted = _gold_number(gold)
        if wanted is None:
            return Score(None, reason=f"the gold is no number: {_shown(gold.text)}")
        found = extract_answer(_without_prompt(completion, prompt))
        if found.answer is None or found.problem:
            return Score(0.0, reason=_no_answer(found))
        if found.stuffed:
            return Score(0.0, reason=f"answer stuffing: {len(found.candidates)} distinct final answers ({found.rule})")
        text = clean(found.answer)
        given = _number(gold, text, prose=_may_be_prose(found))
        score = given if isinstance(given, str) else _close(wanted, given, rel, abs)
        if isinstance(score, str):
            return Score(0.0, reason=f"{_shown(found.answer)} ({found.rule}): {score}")
        repeated = bool(score.value) and prompt and _restates(gold, right_side(text), prompt)
        return Score(0.0, reason=_REPEATED, metrics=score.metrics) if repeated else score

    return numeric_close


_NO_NUMBER = "no number in the gold's unit"


def _gold_number(gold: _Gold) -> Quantity | None:
    """The number that a gold is or comes to; ``None`` for all that is none, or is too large to measure by."""
    value = None if gold.value else number_of(gold.text)
    wanted = gold.number if value is None or value.imag else Quantity(Fraction(value.real), gold.unit)
    return wanted if wanted is not None and math.isfinite(_as_float(wanted.value)) else None


def _close(wanted: Quantity, given: Quantity, rel: float, absolute: float) -> Score | str:
    """The score of a number, in the reading of its percent sign that is nearer to the gold; or why it has none."""
    gold, values = _as_float(wanted.value), [_as_float(value) for value in readings(wanted, given)]
    if not values:
        return _NO_NUMBER
    value = min(values, key=lambda each: math.fabs(each - gold))
    error, allowed = math.fabs(value - gold), max(rel * math.fabs(gold), absolute)
    verdict = "within" if error <= allowed else "further than"
    metrics = {"error": error} if math.isfinite(error) else {}
    return Score(float(bool(metrics) and error <= allowed), f"{value:g} is {verdict} {allowed:g} of {gold:g}", metrics)


def _as_float(value: Fraction) -> float:
    return float(value) if abs(value) < _LARGEST else math.inf


def _number(gold: _Gold, text: str, *, prose: bool) -> Quantity | str:
    """A cleaned answer's number, or why it has none."""
    given = _read(text, prose=prose, attached=gold.unit is not None)
    if isinstance(given, Label):
        number = bare_number(given)
        return _NO_NUMBER if number is None else Quantity(Fraction(number))
    if given is not None:
        return given
    formula, unit = split_unit(text)
    value = number_of(formula) if text.isascii() else None
    if value is None or math.fabs(value.imag) > 1e-12:
        return _NO_NUMBER
    if gold.number and has_operation(right_side(formula)) and _comes_out(formula, value.real):
        return _NOT_WORKED_OUT
    return Quantity(Fraction(value.real), unit)


_LARGEST = 10**300
_ARITHMETIC = re.compile(r"\\(?:[dt]?frac|times|cdot|div|left|right)")


def _comes_out(formula: str, value: float) -> bool:
    """Whether arithmetic can be worked out, for it comes to a fraction; the root of 2 does not."""
    fraction = Fraction(value).limit_denominator(10**5)
    only_numbers = not any(sign.isalpha() or sign == "√" for sign in _ARITHMETIC.sub("", formula))
    return only_numbers or math.fabs(fraction - Fraction(value)) <= 1e-12 * max(1, math.fabs(value))
