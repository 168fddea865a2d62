"""Rewards for mathematics: is the final answer the gold one, or a number near it.

Plain numbers are compared exactly (:mod:`builtin_rewards.reading.numbers`), everything else by value at a few points
(:mod:`builtin_rewards.reading.formulas`).
"""

from __future__ import annotations

import functools
import json
import math
import re
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction

from builtin_rewards.adjustable import adjustable, require
from builtin_rewards.reading import numbers
from builtin_rewards.reading.answer import UNMARKED, AnswerRule, Extraction, extract_answer, opening_verdict, reread
from builtin_rewards.reading.expressions import FUNCTION
from builtin_rewards.reading.formulas import names_sign, number_of, right_side, same_formula, split_unit
from builtin_rewards.reading.labels import Label, bare_number, labels_in, read_label, same_label
from builtin_rewards.reading.latex import clean
from builtin_rewards.reading.locales import with_points, writes_comma
from builtin_rewards.reading.negation import clause_denies, denied_after, denies
from builtin_rewards.reading.numbers import Quantity, read_quantity, same_quantity
from builtin_rewards.reading.shapes import reading_fault
from builtin_rewards.reading.thoughts import after_thinking
from builtin_rewards.reading.units import DEGREE, RADIAN, SAME, Unit, conversion
from rewardkit import Reward, Score, reward
from rewardkit.extending import shorten

DEADLINE_S = 30.0  # Seconds that one call may take; a formula needs milliseconds, and the first call loads mpmath


@dataclass(frozen=True, slots=True)
class _Gold:
    """A gold answer, read once: as a number, as a label, as words, or else as a formula."""

    text: str  # compared where it is words or a formula
    number: Quantity | None = None
    label: Label | None = None
    unit: Unit | None = None  # of a number or a formula
    is_phrase: bool = False
    choice: str = ""  # the letter before it: `A` of `(A) 5`
    phrases: frozenset[str] = frozenset()  # the items of a list of words, such as `red, blue`
    side: Quantity | None = None  # what a formula that gives a name a value ends with: `5 L` of `x = 5 L`

    @property
    def is_formula(self) -> bool:
        return self.number is None and self.label is None and not self.is_phrase


_PHRASE = re.compile(  # words, a choice letter, or a name with digits, such as `Route 66` or a time with its zone
    r"(?!.*(?:^|\s)[-+*/](?:\s|$))(?!(?:[A-Za-z]{1,2}[-'])+[A-Za-z]{1,2}$)"
    r"(?:[A-Za-z][A-Za-z' -]*[A-Za-z]|\(?[A-Za-z]\)?"
    r"|(?=.{,40}$)(?:(?=.*[A-Za-z]).*:.*|(?=.* )(?=.*\d)"
    rf"(?!.*\b(?:and|or|root|choose|plus|minus|times|squared|cubed|over|{FUNCTION})\b)"
    r"(?:[A-Za-z0-9][A-Za-z0-9.',#-]* )*[A-Za-z]{3,}[A-Za-z0-9.,'# -]*))",
    re.ASCII,
)
_CHOICE = re.compile(r"\(?([A-Za-z])[).:](?:\s|$)|\(([A-Za-z])\)")  # `(B)`, or `B)` before the choice's text
_MATHEMATICAL = re.compile(  # `-kP` and `x!` are formulas, `Paris!` and `- Paris` in a list are words
    r"[+*/^=<>|\\%#~]|(?<!\w)-(?=\s*\w)|(?<![A-Za-z]{3})(?<!\bno)(?<!\d)[!'?](?!\w)", re.IGNORECASE
)
_PREDICATE = re.compile(r"[^.!?;:,\n]{1,80}\b(?:is|are|was|were) (?!not\b)([^.!?;:,\n]{1,60})[.!]?")  # of a sentence
_ARTICLE = re.compile(r"^(?:an?|the) (?=\w)")
_BULLET = re.compile(r"\A(?:[-#>]+ )+(?=[A-Za-z]{3}|no\b)", re.IGNORECASE)
_ASSIGNMENT = re.compile(r"[A-Za-z]\s*=\s*([^=]+)")  # `x = 5`
_WORD_LIST = re.compile(  # words of three letters or more behind commas, which are no products of letters
    rf"(?!.*\b(?:{FUNCTION}|pi|sqrt)\b)[A-Za-z]{{3,}}(?: [A-Za-z]{{2,}})*"
    r"(?:, ?(?:and )?[A-Za-z]{3,}(?: (?!and\b)[A-Za-z]{2,})*)+(?: and [A-Za-z]{3,}(?: [A-Za-z]{2,})*)?"
)
_BETWEEN_WORDS = re.compile(r"[,;\n]|\b(?:and|or)\b")
_JSON_TEXTS = re.compile(r'\s*\["')
_QUOTED = re.compile(r"""\s*(?P<mark>["'])(?P<text>[^"']+)(?P=mark)\s*""")
_ANNOUNCED = re.compile(r"\s*(?:(?:the |final )*answer(?::| is\b))\s*(?P<text>\S.*)", re.IGNORECASE | re.DOTALL)
_GOLD_CHOICE = re.compile(r"\(([A-J])\)\s*(\S.*)", re.DOTALL)  # `(A) 5`
_CHOSEN = re.compile(r"\(?(?P<letter>[A-J])(?:[).:]\s*(?P<rest>\S.*)?)?")
_NOT_WORKED_OUT = "arithmetic that is not worked out"
_REPEATED = "it repeats an expression of the prompt"
_NO_NUMBER = "no number in the gold's unit"


@functools.lru_cache(maxsize=1024)
def _read_gold(answer: str, locale: str = "") -> _Gold | str:
    if not answer.strip():
        return "the row has no gold: 'answer' is empty"
    if locale and writes_comma(locale) is None:
        return f"the row's locale {shorten(locale)} is not known"
    solution = answer.rpartition("####")[2]
    if "\\boxed" in solution or "\\fbox" in solution or "<answer>" in solution:
        solution = extract_answer(solution).answer or ""
    solution = with_points(solution, comma=writes_comma(locale)) if locale else solution
    solution = _unwrapped(solution)
    if (choice := _GOLD_CHOICE.fullmatch(clean(solution))) is not None:
        gold = _read_gold(choice[2])
        return gold if isinstance(gold, str) else replace(gold, choice=choice[1])
    text = clean(solution)
    if not any(character.isalnum() for character in text) and "\\" not in text:
        return "the gold is empty"
    if (value := read_label(text) or read_quantity(text)) is not None:
        return _Gold(text, label=value) if isinstance(value, Label) else _Gold(text, value, unit=value.unit)
    if "\\" not in text and _PHRASE.fullmatch(text):
        return _Gold(text, is_phrase=True)
    formula, unit = split_unit(solution)
    if _WORD_LIST.fullmatch(text):
        return _Gold(text, phrases=_phrases(text))
    equation = _ASSIGNMENT.fullmatch(text)
    return _Gold(formula, unit=unit, side=read_quantity(equation[1]) if equation else None)


def _phrases(text: str) -> frozenset[str]:
    """Return the items of a list of words, in lower case."""
    items = (re.sub(r"[^a-z0-9]+", " ", item.lower()).strip() for item in _BETWEEN_WORDS.split(text))
    return frozenset(item for item in items if item)


def _unwrapped(text: str) -> str:
    """Return a gold without quotation marks or ``Answer:`` before it; the items of a JSON list of texts as a list."""
    if _JSON_TEXTS.match(text):
        with suppress(ValueError):
            return ", ".join(map(str, json.loads(text)))
    quoted = _QUOTED.fullmatch(text) or _ANNOUNCED.fullmatch(text)
    return quoted["text"] if quoted else text


@reward(timeout_s=DEADLINE_S, score_range=(0, 1))
def math_answer(
    completion: str, answer: str | bool | None = None, prompt: str = "", locale: str | None = None
) -> Score:
    """1.0 if the completion's final answer equals the gold one, otherwise 0.0; with what was compared.

    Column ``answer``: a number, fraction, percentage, amount with a unit, label, word, choice letter, or a formula in
    LaTeX or plain text (expressions, equations, intervals, sets, matrices). In a worked GSM8K solution the part after
    ``####`` is the gold, in a worked MATH solution its last box.

    The completion's answer is found by the rules of :func:`builtin_rewards.reading.answer.extract_answer`, without
    copies of the prompt; several distinct final answers are answer stuffing and score 0.0, unless the gold is a list of
    them. ``docs/how-to/reward-math.md`` has a table of what equals what:

    - Numbers are compared exactly. A decimal of six places or more that rounds or cuts off an infinite fraction stands
      for it: 0.142857 for 1/7, and not 0.142858. ``x%`` is ``x/100``, or x where only one side has the sign and the
      gold is above 1. Magnitudes (``5 lakh``, ``5 bn``, ``5k``) and repeating decimals (``0.(3)``) are numbers.
    - Units count where both sides have one: SI units with prefixes, products, quotients and powers, everyday units and
      currencies. They are equal where they convert exactly (``5 kJ`` is ``5000 J``); a unit that only one side has
      changes nothing. ``units`` alone is of any power; square units are not cubic.
    - Letters behind a number are a unit if they are one that is listed
      (:mod:`builtin_rewards.reading.unit_names`); a longer word is a noun. All other letters belong to a formula
      (``5 xy``, ``5m``), and a hyphen before them is a minus (``5-x``), except in ``5-foot`` or ``5-digit``.
    - Angles in degrees equal those in multiples of pi: ``45^\\circ`` is ``\\frac{\\pi}{4}``.
    - ``3,14`` and ``1.234,5`` answer a gold that is one number. Column ``locale``, if the row has it (``de``,
      ``pt-BR``): numbers of gold and answer are read as that language writes them, so that ``1.234`` may be 1234.
    - Labels (numerals in a base, times, dates, ratios, codes such as versions) equal labels of their kind alone.
    - Arithmetic that is not worked out (``17*23``, ``2^{10}``) does not answer a gold that is a number; ``36/2`` does.
    - An answer that the prompt has in the same writing does not count, unless the gold is written so.
    - Sets of real numbers are equal in every writing: ``x<1 or x>3``, ``|x|<2``, ``]0, 1]``, a set with a condition,
      ``\\mathbb{R}`` or "all real numbers", ``\\emptyset`` or "no solution". A point, a column and a vector in angle
      brackets are the same, and so are matrices in round and square brackets.
    - Words are compared as words, without case, punctuation and a leading article, also at the end of a short sentence;
      lists of words have no order. A gold may stand in quotation marks, in tags or behind ``Answer:``, and of ``(A) 5``
      the letter is right as well. Formulas are compared by their values
      (:func:`builtin_rewards.reading.formulas.same_formula`). A formula that is not understood (an integral), or is
      beyond the bounds (``9**9**9``, never evaluated), equals its own text only, and so does one with look-alike
      letters.
    - A number is no answer where words next to it say so: ``42 is too high``, ``42 is an upper bound``, ``a factor of
      42``, ``on page 42``.

    ``None``: the row has no gold, one that can be compared as text only and the answer is another, or an unknown
    locale.
    """
    gold = _read_gold("" if answer is None else str(answer), locale or "")
    if isinstance(gold, str):
        return Score(None, reason=gold)
    completion = _without_prompt(completion, prompt)
    extraction = _in_points(extract_answer(completion), gold, locale)
    if gold.is_phrase and extraction.rule in UNMARKED:
        if opening_verdict(completion) == gold.text.casefold():
            return Score(1.0, reason=f"it begins with {shorten(gold.text)} ({AnswerRule.VERDICT})")
        sentence = clean(after_thinking(completion))
        predicate = _PREDICATE.fullmatch(sentence)
        texts = [sentence, predicate[1]] if predicate and not denies(sentence) else [sentence]
        if not extraction.problem and any(_same_phrase(gold.text, text) for text in texts):
            return Score(1.0, reason=f"it is {shorten(gold.text)}")
    if extraction.stuffed and not extraction.problem and (match := _list_match(gold, extraction, completion, prompt)):
        return Score(1.0, reason=f"{match} {shorten(gold.text)}")
    if (refusal := _refusal(extraction)) is not None:
        return refusal
    text = extraction.answer or ""
    fault = _difference(gold, text, prompt, prose=_may_be_prose(extraction))
    if fault is None:
        return Score(1.0, reason=f"{shorten(text)} ({extraction.rule}) equals {shorten(gold.text)}")
    if gold.is_formula and (reason := reading_fault(gold.text)) is not None:
        return Score(None, reason=f"the gold can be compared as text only: {reason}")
    return Score(0.0, reason=f"{shorten(text)} ({extraction.rule}): {fault}")


def _in_points(extraction: Extraction, gold: _Gold, locale: str | None) -> Extraction:
    """Return an answer in English writing, where the gold is one number, or its row names a locale."""
    if extraction.answer is None or (gold.number is None and not locale):
        return extraction
    text = clean(extraction.answer)
    if len(text) > _LONGEST or (english := with_points(text, comma=writes_comma(locale) if locale else None)) == text:
        return extraction
    return reread(extraction, english)


def _may_be_prose(extraction: Extraction) -> bool:
    """Return whether an answer may be a sentence around its number; in a box only if it begins as text."""
    is_text = (extraction.answer or "").lstrip().startswith("\\text{")
    return is_text or extraction.rule in (AnswerRule.TAG, AnswerRule.PHRASE)


def _without_prompt(completion: str, prompt: str) -> str:
    """Return a completion without copies of the question, since repeating it is no answer."""
    question = prompt.strip()
    return completion.replace(question, " ") if len(question) >= 12 and " " in question else completion


def _refusal(extraction: Extraction) -> Score | None:
    if extraction.answer is None or extraction.problem:
        listing = f": {shorten(extraction.answer)}" if extraction.answer is not None else ""
        return Score(0.0, reason=f"{extraction.problem or 'no answer in the completion'}{listing}")
    listing = ", ".join(shorten(candidate) for candidate in extraction.candidates[-4:])
    count = f"{len(extraction.candidates)} distinct final answers ({extraction.rule})"
    return Score(0.0, reason=f"answer stuffing: {count}, the last are {listing}") if extraction.stuffed else None


def _list_match(gold: _Gold, extraction: Extraction, completion: str, prompt: str) -> str:
    """Return why several distinct answers (arithmetic before the last left out) are right; empty where they are not."""
    count, candidates = len(extraction.candidates), extraction.candidates
    if gold.is_formula:
        answer = extraction.answer or ""
        is_whole = all("".join(part.split()) in "".join(clean(answer).split()) for part in candidates)
        if is_whole and _difference(gold, answer, prompt, prose=False) is None:
            return f"{shorten(answer)} equals"
        tail, first, last = completion[-600:], re.escape(candidates[0]), re.escape(candidates[-1])
        is_glued = re.search(rf"[^\W\d_]\\?[({{\[]*{first}[\s\S]*{last}|{last}[\\)}}\]]*[^\W\d_]", tail)
        is_denied = clause_denies(tail, max(0, tail.rfind(candidates[0])))
        combination = ", ".join(right_side(clean(candidate)) for candidate in candidates[:50])
        is_final = extraction.rule is not AnswerRule.LAST_NUMBER or not (is_glued or is_denied)
        if is_final and _difference(gold, combination, prompt, prose=False) is None:
            return f"the {count} answers together equal"
    faults = (_difference(gold, candidate, prompt, prose=False) for candidate in reversed(candidates))
    is_right = count <= 5 and next(faults) is None and all(fault in (None, _NOT_WORKED_OUT) for fault in faults)
    return f"all {count} answers equal" if is_right else ""


def _difference(gold: _Gold, answer: str, prompt: str, *, prose: bool) -> str | None:
    """Return how an answer differs from the gold, or why it is not final; ``None`` if it is right."""
    text = clean(answer)
    if gold.choice and (letter := _CHOSEN.fullmatch(text)) is not None:
        if letter["letter"] != gold.choice or not letter["rest"]:
            return None if letter["letter"] == gold.choice else f"not the choice {gold.choice}"
        text = answer = letter["rest"]
    if gold.is_phrase:
        is_same = _same_phrase(gold.text, text) or (names_sign(gold.text) and same_formula(gold.text, text))
        return None if is_same else f"not the gold {shorten(gold.text)}"
    if gold.phrases:
        are_words = not _MATHEMATICAL.search(text) and _phrases(text) == gold.phrases
        return None if are_words else f"not the gold {shorten(gold.text)}"
    value = _parse(text, prose=prose, attached=gold.unit is not None)
    if value is None and gold.number is not None and (letter := _SCALED.fullmatch(right_side(text))) is not None:
        value = read_quantity(f"{letter[1]} {'thousand' if letter[2] in 'kK' else 'million'}")
    names = {side.partition("=")[0].strip() for side in (gold.text, text)}
    if gold.side is not None and value is not None and ("=" not in text or len(names) == 1):
        gold = replace(gold, number=gold.side)
    fault: str | None = f"not the gold {shorten(gold.text)}"
    if gold.label is not None or isinstance(value, Label):
        fault = None if _same_label(gold, value, right_side(text)) else fault
    elif gold.number is None or value is None:
        fault = None if text == gold.text else _formula_differs(gold, answer)
    elif same_quantity(gold.number, value):
        fault = None
    elif gold.number.value == value.value or not numbers.readings(gold.number, value):
        fault = f"another unit than the gold {shorten(gold.text)}"
    return _REPEATED if fault is None and prompt and _restates(gold, right_side(text), prompt) else fault


def same_answer(first: str, second: str) -> bool:
    """Whether two final answers are equal as :func:`math_answer` compares them, whichever of them is the gold."""
    for gold, answer in ((first, second), (second, first)):
        gold_value = _read_gold(gold)
        if not isinstance(gold_value, str) and _difference(gold_value, answer, "", prose=False) is None:
            return True
    return False


def _same_label(gold: _Gold, value: Quantity | Label | None, text: str) -> bool:
    """Return whether a label equals the other side; a gold's base, "o'clock" and ratio colon may be left out."""
    if gold.number is not None and isinstance(value, Label):
        is_hour = gold.number.unit is None and gold.number.value == bare_number(value)
        return is_hour or read_label(_slashed(gold.text).replace("/", ":")) == value
    if gold.label is None:
        return False
    endings = {"numeral": f"_{gold.label.parts[0]}", "time": "" if gold.label.half else " o'clock"}
    bare_label = read_label(_slashed(text).replace("/", ":") + endings.get(gold.label.kind, ""))
    return any(isinstance(label, Label) and same_label(gold.label, label) for label in (value, bare_label))


def _formula_differs(gold: _Gold, answer: str) -> str | None:
    """Return how an answer differs from the gold, where at least one of them is a formula."""
    formula, unit = split_unit(answer)
    gold_formula = gold.text if gold.number is None else f"({gold.number.value}){'%' * gold.number.percent}"
    if (angle := _in_radians(gold, gold_formula, formula, unit)) is not None:
        return None if same_formula(*angle) else f"not the gold {shorten(gold.text)}"
    into = conversion(gold.unit, unit)
    if into is None or into.offset:
        return f"another unit than the gold {shorten(gold.text)}"
    formula = formula if into == SAME else f"({formula})*({into.factor})"
    if gold.number is not None and numbers.has_operation(right_side(formula)):
        return _NOT_WORKED_OUT
    if same_formula(gold_formula, formula) or (unit and not gold.unit and same_formula(gold_formula, clean(answer))):
        return None
    fault = reading_fault(formula)
    return f"not the gold {shorten(gold.text)}" if fault is None else f"not read: {fault}"


_DEGREES = re.compile(r"(.+?)\s*degrees", re.DOTALL)


def _in_radians(gold: _Gold, gold_formula: str, formula: str, unit: Unit | None) -> tuple[str, str] | None:
    """Return both angles in radians where one is in degrees and the other has pi; else ``None``."""
    degrees = _DEGREES.fullmatch(f"{right_side(formula)}{' degrees' * (unit == DEGREE)}")
    if gold.unit == DEGREE and degrees is None and "\\pi" in formula and unit in (None, RADIAN):
        return f"({gold_formula})\\pi/180", formula
    if degrees is None or gold.unit not in (None, RADIAN) or "\\pi" not in gold_formula or "degrees" in gold_formula:
        return None
    return gold_formula, f"({degrees[1]})\\pi/180"


_SCALED = re.compile(rf"(-?{numbers.NUMBER}) ?([kKM])", re.ASCII)  # `5k`; in a gold, k is a letter
_LONGEST = 200  # characters of an answer that is read as a number of another locale
_NUMBER_IN_PROSE = re.compile(rf"[-+]?[$€£¥₹]?-?(?:\\frac\{{\d+\}}\{{\d+\}}|{numbers.NUMBER}(?: ?/ ?\d+)?)", re.ASCII)
_HEDGED = re.compile(  # words before a number that make it no answer
    rf"\b(?:or|maybe|perhaps|possibly|either|between|unsure|unknown|wrong|incorrect|but|{FUNCTION})\b"
    rf"|(?:{numbers.CHANGES_NUMBER})\b|(?:{numbers.REFERS_TO_NUMBER})\s*$|[\\^_<>|]|[-+*/]\s*$|\w\($",
    re.IGNORECASE,
)
_AS_WRITTEN = re.compile(
    rf"[-+$€£¥₹]*(?:\\frac\{{\d+\}}\{{\d+\}}|(?:\d+ )?\d+ ?/ ?\d+|{numbers.NUMBER}(?:\s*(?:%|\\?[A-Za-z]+))?)"
)
_DIVIDED = re.compile(r"\\frac\s*\{(?P<top>\w{1,40})\}\s*\{(?P<under>\w{1,40})\}|\b (?:divided by|over|\\div) +\b")
_MARKS = re.compile(r"\\[A-Za-z]+|\.0+(?!\d)|[^A-Za-z0-9]+")  # what two writings of one expression may differ in


def _slashed(text: str) -> str:
    return _DIVIDED.sub(r"\g<top>/\g<under>", text)


def _restates(gold: _Gold, text: str, prompt: str) -> bool:
    """Return whether an answer stands in the prompt as it is written, and the gold is written otherwise."""
    if gold.number is not None and (number := _AS_WRITTEN.search(text)) is not None:
        text = number[0]
    answer_text, gold_text = (_MARKS.sub("", side).lower() for side in (text, gold.text))
    if answer_text in gold_text:
        return False
    text, question = _slashed(text), _slashed(clean(prompt))
    pattern = r"\s*".join(map(re.escape, "".join(text.split())))
    return re.search(rf"(?<![\w.]){pattern}(?!\w|\.\d)", question) is not None


def _parse(text: str, *, prose: bool, attached: bool) -> Quantity | Label | None:
    """Read a cleaned answer as one number or label: alone, as the last side of an equation, or alone in a sentence."""
    side = right_side(text)
    value = read_label(side) or read_quantity(side, attached=attached)
    if value is not None or not prose:
        return value
    labels = labels_in(text)
    spans = labels or [number.span() for number in _NUMBER_IN_PROSE.finditer(text)]
    if len(spans) != 1:
        return None
    (start, end), before = spans[0], text[: spans[0][0]]
    is_hedged = _HEDGED.search(before)  # audit: ok it looks for a word anywhere before the number, and for no format
    if is_hedged or denies(before) or clause_denies(text, start) or denied_after(text, end):
        return None
    if not labels:
        return read_quantity(text[start:], attached=attached) if re.search(r"[\s:]", before) else None
    return read_label(text[start:end]) if numbers.harmless(text[end:]) and not re.search(r"\d", before) else None


def _same_phrase(gold: str, text: str) -> bool:
    """Return whether two texts are the same words; a choice letter may have its choice's text behind it."""
    gold_phrase, phrase = (_ARTICLE.sub("", re.sub(r"[^a-z0-9]+", " ", side.lower()).strip()) for side in (gold, text))
    if not text.isascii() and text.strip(" .()").lower() != gold.strip(" .()").lower():
        return False
    if {*_MATHEMATICAL.findall(_BULLET.sub("", text, 1))} - {*_MATHEMATICAL.findall(gold)}:
        return False
    if gold_phrase in (phrase, re.sub(r"^there (?:is|are) (?=no )", "", phrase)):
        return True
    choice = _CHOICE.match(text)
    return len(gold_phrase) == 1 and choice is not None and (choice[1] or choice[2]).lower() == gold_phrase


@adjustable
def numeric_close(rel: float = 1e-3, abs: float = 0.0) -> Reward[..., Score]:
    """Return ``numeric_close`` with these settings.

    Args:
        rel: Largest error as a share of the gold's size; 0.001 is a tenth of a percent. Finite, at least 0.
        abs: Largest error as a number, for golds at or near zero. Finite, at least 0.
    """
    for name, bound in (("rel", rel), ("abs", abs)):
        require(0 <= bound < math.inf, "a finite number from 0 up", **{name: bound})

    @reward(timeout_s=DEADLINE_S, score_range=(0, 1))
    def numeric_close(completion: str, answer: str | None = None, prompt: str = "", locale: str | None = None) -> Score:
        """1.0 if the completion's final number is within a tolerance of the gold one, otherwise 0.0.

        Formula: ``|given - gold| <= max(rel * |gold|, abs)``. The final number is found and read as in ``math_answer``,
        with its rules for units, percent signs, labels, arithmetic and repeated prompts; a formula without variables
        that is not a fraction, such as ``\\sqrt{2}``, counts as its value.

        Columns: ``answer``, the gold number; ``locale`` as in ``math_answer``. ``None``: the gold is missing, or no
        number. Metric ``error``: the distance from the gold, where the completion has a number.
        """
        # audit: skip tolerance it pays what is within the tolerance that it was made with, 0.1% by default
        gold = _read_gold(answer or "", locale or "")
        if isinstance(gold, str):
            return Score(None, reason=gold)
        gold_number = None if gold.label else _number(gold.number, gold.text, gold.unit)
        if gold_number is None:
            return Score(None, reason=f"the gold is no number: {shorten(gold.text)}")
        extraction = _in_points(extract_answer(_without_prompt(completion, prompt)), gold, locale)
        if (refusal := _refusal(extraction)) is not None:
            return refusal
        text, (formula, unit) = clean(extraction.answer or ""), split_unit(extraction.answer or "")
        value = _parse(text, prose=_may_be_prose(extraction), attached=gold.unit is not None)
        number = _number(value, formula, unit)
        is_fraction = number and math.isclose(number.value.limit_denominator(10**5), number.value, rel_tol=1e-12)
        if number is None or not numbers.readings(gold_number, number):
            return Score(0.0, reason=f"{shorten(text)} ({extraction.rule}): {_NO_NUMBER}")
        if value is None and gold.number and numbers.has_operation(right_side(formula)) and is_fraction:
            return Score(0.0, reason=f"{shorten(text)} ({extraction.rule}): {_NOT_WORKED_OUT}")
        score = _close(gold_number, number, rel, abs)
        is_repeated = bool(score.value) and prompt and _restates(gold, right_side(text), prompt)
        return Score(0.0, reason=_REPEATED, metrics=score.metrics) if is_repeated else score

    return numeric_close


_LARGEST = 10**250  # a float holds smaller numbers in any unit


def _number(value: Quantity | Label | None, formula: str, unit: Unit | None) -> Quantity | None:
    """Return the number that a value is or a formula comes to; ``None`` without one that a float can hold."""
    if isinstance(value, Label):
        number = bare_number(value)
        value = None if number is None else Quantity(Fraction(number))
    elif value is None and (root := number_of(formula)) is not None and math.fabs(root.imag) <= 1e-12:
        value = Quantity(Fraction(root.real), unit)
    return value if value is not None and abs(value.value) < _LARGEST else None


def _close(gold_number: Quantity, number: Quantity, rel: float, absolute: float) -> Score:
    """Return the score of a number, its percent sign read in the way that is nearer to the gold."""
    gold = float(gold_number.value)
    value = min(map(float, numbers.readings(gold_number, number)), key=lambda reading: math.fabs(reading - gold))
    error, tolerance = math.fabs(value - gold), max(rel * math.fabs(gold), absolute)
    reason = f"{value:g} is {'within' if error <= tolerance else 'further than'} {tolerance:g} of {gold:g}"
    return Score(float(error <= tolerance), reason, {"error": error})
