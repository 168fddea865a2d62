"""Rewards for mathematics: is the final answer the gold one, or a number near it.

Plain numbers are compared exactly (:mod:`builtin_rewards.reading.numbers`), everything else by value at a few points
(:mod:`builtin_rewards.reading.formulas`).
"""

from __future__ import annotations

import functools
import math
import re
from dataclasses import dataclass
from fractions import Fraction

from builtin_rewards.adjustable import adjustable, require
from builtin_rewards.reading import numbers
from builtin_rewards.reading.answer import UNMARKED, AnswerRule, Extraction, extract_answer, opening_verdict
from builtin_rewards.reading.expressions import FUNCTION
from builtin_rewards.reading.formulas import number_of, right_side, same_formula, split_unit, unread
from builtin_rewards.reading.labels import Label, bare_number, labels_in, read_label, same_label
from builtin_rewards.reading.negation import clause_denies, denied_after, denies
from builtin_rewards.reading.numbers import Quantity, Unit, clean, read_quantity, same_quantity
from builtin_rewards.reading.thoughts import after_thinking
from rewardkit import Reward, Score, reward

DEADLINE_S = 30.0
"""Seconds that one call may take; a formula needs milliseconds, and the first call loads mpmath."""


@dataclass(frozen=True, slots=True)
class _Gold:
    """A gold answer, read once: as a number, as a label, as words, or else as a formula.

    ``text`` is compared where it is words or a formula; ``unit`` is that of a number or a formula.
    """

    text: str
    number: Quantity | None = None
    label: Label | None = None
    unit: Unit | None = None
    words: bool = False


_WORDS = re.compile(
    r"(?!.*(?:^|\s)[-+*/](?:\s|$))(?!(?:[A-Za-z]{1,2}[-'])+[A-Za-z]{1,2}$)"
    r"(?:[A-Za-z][A-Za-z' -]*[A-Za-z]|\(?[A-Za-z]\)?"
    r"|(?=.{,40}$)(?:(?=.*[A-Za-z]).*:.*|(?=.* )(?=.*\d)"
    rf"(?!.*\b(?:and|or|root|choose|plus|minus|times|squared|cubed|over|{FUNCTION})\b)"
    r"(?:[A-Za-z0-9][A-Za-z0-9.',#-]* )*[A-Za-z]{3,}[A-Za-z0-9.,'# -]*))",
    re.ASCII,
)
"""Words, a choice letter, or a name with digits, such as ``Route 66`` or a time with its zone."""
_CHOICE = re.compile(r"\(?([A-Za-z])[).:](?:\s|$)|\(([A-Za-z])\)")
_MATHEMATICAL = re.compile(
    r"[+*/^=<>|\\%#~]|(?<!\w)-(?=\s*\w)|(?<![A-Za-z]{3})(?<!\bno)(?<!\d)[!'?](?!\w)", re.IGNORECASE
)
"""What makes a formula of a word: ``-kP`` and ``x!`` are, ``Paris!`` and ``- Paris`` in a list are words."""
_BULLET = re.compile(r"\A(?:[-#>]+ )+(?=[A-Za-z]{3}|no\b)", re.IGNORECASE)
_NOT_WORKED_OUT = "arithmetic that is not worked out"
_REPEATED = "it repeats an expression of the prompt"
_NO_NUMBER = "no number in the gold's unit"


@functools.lru_cache(maxsize=1024)
def _read_gold(answer: str) -> _Gold | str:
    """Return the gold, or why it cannot be read."""
    if not answer.strip():
        return "the row has no gold: 'answer' is empty"
    marked = answer.rpartition("####")[2]
    if "\\boxed" in marked or "\\fbox" in marked:
        marked = extract_answer(marked).answer or ""
    text = clean(marked)
    if not any(character.isalnum() for character in text) and "\\" not in text:
        return "the gold is empty"
    if (read := read_label(text) or read_quantity(text)) is not None:
        return _Gold(text, label=read) if isinstance(read, Label) else _Gold(text, read, unit=read.unit)
    if "\\" not in text and _WORDS.fullmatch(text):
        return _Gold(text, words=True)
    formula, unit = split_unit(marked)
    return _Gold(formula, unit=unit)


@reward(timeout_s=DEADLINE_S, score_range=(0, 1))
def math_answer(completion: str, answer: str | None = None, prompt: str = "") -> Score:
    """1.0 if the completion's final answer equals the gold one, otherwise 0.0; with what was compared.

    Column ``answer``: a number, fraction, percentage, amount with a unit, label, word, choice letter, or a formula in
    LaTeX or plain text (expressions, equations, intervals, sets, matrices). In a worked GSM8K solution the part after
    ``####`` is the gold, in a worked MATH solution its last box.

    The completion's answer is found by the rules of :func:`builtin_rewards.reading.answer.extract_answer`, without
    copies of the prompt; several distinct final answers are answer stuffing and score 0.0, unless the gold is a list of
    them. ``docs/how-to/reward-math.md`` has a table of what equals what:

    - Numbers are compared exactly, in the gold's unit; a unit that only one side has changes nothing. A decimal of six
      places or more stands for a fraction. ``x%`` is ``x/100``, or x where only one side has the sign and the gold is
      above 1.
    - Labels (numerals in a base, times, dates, ratios, codes such as versions) equal labels of their kind alone.
    - Arithmetic that is not worked out (``17*23``, ``2^{10}``) does not answer a gold that is a number; ``36/2`` does.
    - An answer that the prompt has in the same writing does not count, unless the gold is written so.
    - Words are compared as words, without case and punctuation; formulas by their values
      (:func:`builtin_rewards.reading.formulas.same_formula`). A formula that is not understood (an integral), or is
      beyond the bounds (``9**9**9``, never evaluated), equals its own text only, and so does one with look-alike
      letters.

    ``None``: the row has no gold, or one that can be compared as text only and the answer is another.
    """
    gold = _read_gold(answer or "")
    if isinstance(gold, str):
        return Score(None, reason=gold)
    completion = _without_prompt(completion, prompt)
    found = extract_answer(completion)
    if gold.words and found.rule in UNMARKED:
        if opening_verdict(completion) == gold.text.casefold():
            return Score(1.0, reason=f"it begins with {_shown(gold.text)} ({AnswerRule.VERDICT})")
        if not found.problem and _same_words(gold.text, clean(after_thinking(completion))):
            return Score(1.0, reason=f"it is {_shown(gold.text)}")
    if found.stuffed and not found.problem and (right := _several_right(gold, found, completion, prompt)):
        return Score(1.0, reason=f"{right} {_shown(gold.text)}")
    if (refused := _refused(found)) is not None:
        return refused
    text = found.answer or ""
    fault = _differs(gold, text, prompt, prose=_may_be_prose(found))
    if fault is None:
        return Score(1.0, reason=f"{_shown(text)} ({found.rule}) equals {_shown(gold.text)}")
    if gold == _Gold(gold.text, unit=gold.unit) and (unclear := unread(gold.text)) is not None:
        return Score(None, reason=f"the gold can be compared as text only: {unclear}")
    return Score(0.0, reason=f"{_shown(text)} ({found.rule}): {fault}")


def _may_be_prose(found: Extraction) -> bool:
    """Whether an answer may be a sentence around its number; in a box only if it begins as text."""
    return found.rule in (AnswerRule.TAG, AnswerRule.PHRASE) or (found.answer or "").lstrip().startswith("\\text{")


def _without_prompt(completion: str, prompt: str) -> str:
    """Return a completion without copies of the question, since repeating it is no answer."""
    asked = prompt.strip()
    return completion.replace(asked, " ") if len(asked) >= 12 and " " in asked else completion


def _refused(found: Extraction) -> Score | None:
    if found.answer is None or found.problem:
        shown = f": {_shown(found.answer)}" if found.answer is not None else ""
        return Score(0.0, reason=f"{found.problem or 'no answer in the completion'}{shown}")
    shown = ", ".join(_shown(candidate) for candidate in found.candidates[-4:])
    several = f"answer stuffing: {len(found.candidates)} distinct final answers ({found.rule}), the last are {shown}"
    return Score(0.0, reason=several) if found.stuffed else None


def _shown(text: str) -> str:
    text = " ".join(text[:200].split())
    return repr(text if len(text) <= 60 else f"{text[:57]}...")


def _several_right(gold: _Gold, found: Extraction, completion: str, prompt: str) -> str:
    """Return why several distinct answers are right: all equal the gold, or they are the list that it is.

    Arithmetic on the way to the last one is no answer, and is left out. Empty where they are not right.
    """
    count, listed = len(found.candidates), found.candidates
    if gold == _Gold(gold.text, unit=gold.unit):
        tail, first, last = completion[-600:], re.escape(listed[0]), re.escape(listed[-1])
        glued = re.search(rf"[^\W\d_]\\?[({{\[]*{first}[\s\S]*{last}|{last}[\\)}}\]]*[^\W\d_]", tail)
        denied = clause_denies(tail, max(0, tail.rfind(listed[0])))
        together = ", ".join(right_side(clean(candidate)) for candidate in listed[:50])
        stands = found.rule is not AnswerRule.LAST_NUMBER or not (glued or denied)
        if stands and _differs(gold, together, prompt, prose=False) is None:
            return f"the {count} answers together equal"
    faults = (_differs(gold, candidate, prompt, prose=False) for candidate in reversed(listed))
    right = count <= 5 and next(faults) is None and all(fault in (None, _NOT_WORKED_OUT) for fault in faults)
    return f"all {count} answers equal" if right else ""


def _differs(gold: _Gold, answer: str, prompt: str, *, prose: bool) -> str | None:
    """Return how an answer differs from the gold, or why it is not final; ``None`` if it is right."""
    text = clean(answer)
    if gold.words:
        return None if _same_words(gold.text, text) else f"not the gold {_shown(gold.text)}"
    given = _read(text, prose=prose, attached=gold.unit is not None)
    fault: str | None = f"not the gold {_shown(gold.text)}"
    if gold.label is not None or isinstance(given, Label):
        fault = None if _same_label(gold, given, right_side(text)) else fault
    elif gold.number is None or given is None:
        fault = None if text == gold.text else _formula_differs(gold, answer)
    elif same_quantity(gold.number, given):
        fault = None
    elif gold.number.value == given.value or not numbers.readings(gold.number, given):
        fault = f"another unit than the gold {_shown(gold.text)}"
    return _REPEATED if fault is None and prompt and _restates(gold, right_side(text), prompt) else fault


def same_answer(first: str, second: str) -> bool:
    """Whether two final answers are equal as :func:`math_answer` compares them, whichever of them is the gold."""
    for gold, answer in ((first, second), (second, first)):
        read = _read_gold(gold)
        if not isinstance(read, str) and _differs(read, answer, "", prose=False) is None:
            return True
    return False


def _same_label(gold: _Gold, given: Quantity | Label | None, text: str) -> bool:
    """Whether gold and answer are the same, where at least one of them is a label.

    A gold's base, its "o'clock" and the colon of a ratio may be left out: ``52`` answers ``52_8``, ``3/4`` ``3:4``.
    """
    if gold.number is not None and isinstance(given, Label):
        return gold.number.value == bare_number(given) or read_label(_slashed(gold.text).replace("/", ":")) == given
    if gold.label is None:
        return False
    left_out = {"numeral": f"_{gold.label.parts[0]}", "time": "" if gold.label.half else " o'clock"}
    bare = read_label(_slashed(text).replace("/", ":") + left_out.get(gold.label.kind, ""))
    return any(isinstance(label, Label) and same_label(gold.label, label) for label in (given, bare))


def _formula_differs(gold: _Gold, answer: str) -> str | None:
    """Return how an answer differs from the gold, where at least one of them is a formula."""
    formula, unit = split_unit(answer)
    if numbers.factor_between(gold.unit, unit) != 1:
        return f"another unit than the gold {_shown(gold.text)}"
    if gold.number is not None and numbers.has_operation(right_side(formula)):
        return _NOT_WORKED_OUT
    wanted = gold.text if gold.number is None else f"({gold.number.value}){'%' * gold.number.percent}"
    if same_formula(wanted, formula):
        return None
    fault = unread(formula)
    return f"not the gold {_shown(gold.text)}" if fault is None else f"not read: {fault}"


_NUMBER_IN_PROSE = re.compile(rf"[-+]?[$€£¥₹]?-?(?:\\frac\{{\d+\}}\{{\d+\}}|{numbers.NUMBER}(?: ?/ ?\d+)?)", re.ASCII)
_HEDGED = re.compile(
    rf"\b(?:or|maybe|perhaps|possibly|either|between|unsure|unknown|wrong|incorrect|but|{FUNCTION})\b"
    rf"|(?:{numbers.CHANGES_NUMBER})\b|[\\^_<>|]|[-+*/]\s*$|\w\($",
    re.IGNORECASE,
)
_AS_WRITTEN = re.compile(
    rf"[-+$€£¥₹]*(?:\\frac\{{\d+\}}\{{\d+\}}|(?:\d+ )?\d+ ?/ ?\d+|{numbers.NUMBER}(?:\s*(?:%|\\?[A-Za-z]+))?)"
)
_DIVIDED = re.compile(r"\\frac\s*\{(?P<top>\w{1,40})\}\s*\{(?P<under>\w{1,40})\}|\b (?:divided by|over|\\div) +\b")
_MARKS = re.compile(r"\\[A-Za-z]+|\.0+(?!\d)|[^A-Za-z0-9]+")


def _slashed(text: str) -> str:
    return _DIVIDED.sub(r"\g<top>/\g<under>", text)


def _restates(gold: _Gold, text: str, prompt: str) -> bool:
    """Whether an answer stands in the prompt as it is written, and the gold is written otherwise."""
    if gold.number is not None and (number := _AS_WRITTEN.search(text)) is not None:
        text = number[0]
    written, wanted = (_MARKS.sub("", each).lower() for each in (text, gold.text))
    if written in wanted:
        return False
    text, asked = _slashed(text), _slashed(clean(prompt))
    sought = r"\s*".join(map(re.escape, "".join(text.split())))
    return re.search(rf"(?<![\w.]){sought}(?!\w|\.\d)", asked) is not None


def _read(text: str, *, prose: bool, attached: bool) -> Quantity | Label | None:
    """Read a cleaned answer as one number or label: alone, as the last side of an equation, or alone in a sentence.

    ``prose`` permits a sentence without denial or comparison, ``attached`` one letter right behind the number as unit.
    """
    alone = right_side(text)
    value = read_label(alone) or read_quantity(alone, attached=attached)
    if value is not None or not prose:
        return value
    labels = labels_in(text)
    spans = labels or [number.span() for number in _NUMBER_IN_PROSE.finditer(text)]
    if len(spans) != 1:
        return None
    (start, end), before = spans[0], text[: spans[0][0]]
    if _HEDGED.search(before) or denies(before) or clause_denies(text, start) or denied_after(text, end):
        return None
    if not labels:
        return read_quantity(text[start:], attached=attached) if re.search(r"[\s:]", before) else None
    return read_label(text[start:end]) if numbers.harmless(text[end:]) and not re.search(r"\d", before) else None


def _same_words(gold: str, text: str) -> bool:
    """Whether two texts are the same words; a choice letter may have its choice's text behind it."""
    wanted, given = (re.sub(r"[^a-z0-9]+", " ", each.lower()).strip() for each in (gold, text))
    if not text.isascii() and text.strip(" .()").lower() != gold.strip(" .()").lower():
        return False
    if {*_MATHEMATICAL.findall(_BULLET.sub("", text, 1))} - {*_MATHEMATICAL.findall(gold)}:
        return False
    if wanted in (given, re.sub(r"^there (?:is|are) (?=no )", "", given)):
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
        require(0 <= bound < math.inf, "a finite number from 0 up", **{name: bound})

    @reward(timeout_s=DEADLINE_S, score_range=(0, 1))
    def numeric_close(completion: str, answer: str | None = None, prompt: str = "") -> Score:
        """1.0 if the completion's final number is within a tolerance of the gold one, otherwise 0.0.

        Formula: ``|given - gold| <= max(rel * |gold|, abs)``. The final number is found and read as in ``math_answer``,
        with its rules for units, percent signs, labels, arithmetic and repeated prompts; a formula without variables
        that is not a fraction, such as ``\\sqrt{2}``, counts as its value.

        Column ``answer``: the gold number. ``None``: it is missing, or no number. Metric ``error``: the distance from
        the gold, where the completion has a number.
        """
        # audit: skip tolerance it pays what is within the tolerance that it was made with, 0.1% by default
        gold = _read_gold(answer or "")
        if isinstance(gold, str):
            return Score(None, reason=gold)
        wanted = None if gold.label else _number(gold.number, gold.text, gold.unit)
        if wanted is None:
            return Score(None, reason=f"the gold is no number: {_shown(gold.text)}")
        found = extract_answer(_without_prompt(completion, prompt))
        if (refused := _refused(found)) is not None:
            return refused
        text, (formula, unit) = clean(found.answer or ""), split_unit(found.answer or "")
        read = _read(text, prose=_may_be_prose(found), attached=gold.unit is not None)
        given = _number(read, formula, unit)
        comes_out = given and math.isclose(given.value.limit_denominator(10**5), given.value, rel_tol=1e-12)
        if given is None or not numbers.readings(wanted, given):
            return Score(0.0, reason=f"{_shown(text)} ({found.rule}): {_NO_NUMBER}")
        if read is None and gold.number and numbers.has_operation(right_side(formula)) and comes_out:
            return Score(0.0, reason=f"{_shown(text)} ({found.rule}): {_NOT_WORKED_OUT}")
        score = _close(wanted, given, rel, abs)
        repeated = bool(score.value) and prompt and _restates(gold, right_side(text), prompt)
        return Score(0.0, reason=_REPEATED, metrics=score.metrics) if repeated else score

    return numeric_close


_LARGEST = 10**250  # a float holds smaller numbers in any unit


def _number(value: Quantity | Label | None, formula: str, unit: Unit | None) -> Quantity | None:
    """Return the number that a value is or a formula comes to; ``None`` for none, and beyond a float."""
    if isinstance(value, Label):
        number = bare_number(value)
        value = None if number is None else Quantity(Fraction(number))
    elif value is None and (found := number_of(formula)) is not None and math.fabs(found.imag) <= 1e-12:
        value = Quantity(Fraction(found.real), unit)
    return value if value is not None and abs(value.value) < _LARGEST else None


def _close(wanted: Quantity, given: Quantity, rel: float, absolute: float) -> Score:
    """Return the score of a number, its percent sign read in the way that is nearer to the gold."""
    gold = float(wanted.value)
    value = min(map(float, numbers.readings(wanted, given)), key=lambda each: math.fabs(each - gold))
    error, allowed = math.fabs(value - gold), max(rel * math.fabs(gold), absolute)
    reason = f"{value:g} is {'within' if error <= allowed else 'further than'} {allowed:g} of {gold:g}"
    return Score(float(error <= allowed), reason, {"error": error})
