"""Which part of a completion is its final answer: one stated rule for all rewards that look for one.

Owns the finding; reading the answer as a number or a formula is left to :mod:`builtin_rewards.reading.numbers` and
:mod:`builtin_rewards.reading.formulas`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from builtin_rewards.reading.announcements import MAX_MARKS, announced
from builtin_rewards.reading.denials import (
    calls_wrong,
    clause_denies,
    denied_before,
    denies,
    objection,
    withdrawn_after,
)
from builtin_rewards.reading.labels import label_at, read_label
from builtin_rewards.reading.marks import boxes, tags
from builtin_rewards.reading.markup import without_markup
from builtin_rewards.reading.numbers import CHANGES_NUMBER, NUMBER, clean, in_latex, read_quantity
from builtin_rewards.reading.turn import after_thinking
from builtin_rewards.reading.typography import SHOWN_OTHERWISE, shown_otherwise

MAX_ANSWER_CHARS = 4_000
"""A marked answer that is longer is no answer."""


class Rule(StrEnum):
    """By which rule an answer was found, in the order in which they are tried."""

    BOXED = "boxed"
    """The last ``\\boxed{...}``, ``\\fbox{...}`` or ``\\boxed 5``."""
    TAG = "answer_tag"
    """The last ``<answer>...</answer>``; without an end, up to the end of the text."""
    PHRASE = "phrase"
    """The last of "the answer is ...", "final answer: ...", a line ``#### n``, a line ``A: n`` or ``Answer: n``."""
    WHOLE = "whole"
    """The completion itself: one short line that is a formula, or that has no number."""
    LAST_NUMBER = "last_number"
    """The last number with its unit, or the formula in delimiters that it stands in or that the text ends with."""
    VERDICT = "verdict"
    """The yes, no, true or false that a completion begins with; read for such a gold alone."""
    NONE = "none"
    """There is no answer."""


MARKED = (Rule.BOXED, Rule.TAG)
"""The rules by which an answer is marked, in the order in which they are tried."""
UNMARKED = (Rule.WHOLE, Rule.LAST_NUMBER, Rule.NONE)
"""The rules of a completion that neither marks nor announces an answer."""


@dataclass(frozen=True, slots=True)
class Extraction:
    """A completion's final answer.

    Attributes:
        answer: Its text as it stands; ``None`` where there is none.
        rule: By which rule it was found.
        candidates: The distinct final answers, in their order; more than one is answer stuffing, unless the
            question asks for several.
        problem: Why the answer cannot count, such as a denial before it; empty if it can.
    """

    answer: str | None
    rule: Rule
    candidates: tuple[str, ...] = ()
    problem: str = ""

    @property
    def stuffed(self) -> bool:
        """Whether several distinct final answers stand there."""
        return len(self.candidates) > 1


_NOTHING = Extraction(None, Rule.NONE, (), "no answer in the completion")

_THOUSANDS_MARK = re.compile(r"(?<=\d)(?:,\\!\s?|\{,\}|\\,)(?=\d{3}(?!\d))")
_FULL_WIDTH = re.compile("[\uff01-\uff5e]")
_CHANGED = re.compile(rf"(?:{CHANGES_NUMBER})[\s$\u20ac\u00a3(*]*$", re.IGNORECASE)
_INSTEAD_OF = re.compile(
    r"\d(?: [A-Za-z]{1,20}){0,2}(?P<not>,\s(?:and |but )?not\s|\s(?:and |but )?not\s)$", re.IGNORECASE
)
_FIRST_ITEM = re.compile(r"\s*(?:#{1,6}|>|1[.)])\s+(?=[^\s#>]+\s*$)")
_FOREIGN_WORD = re.compile(r"[^\W\d_\x00-\x7f]{2,}")
_ALTERNATIVE = re.compile(
    r"\s*(?:,|;|\|)?\s*(?:\\(?:text|mbox|mathrm)\s*\{\s*(?:or|and)\s*\}|\b(?:or|and)\b)\s*(?:maybe|perhaps|possibly)?\s*"
)
_LIST_GAP = re.compile(r"\s*(?:[;|\n]|,(?!\d{3}(?!\d))|,\s)\s*|\s+")
_COMMAND_OR_NAME = re.compile(
    r"\\[A-Za-z]+|\b(?:pi|sqrt|sin|cos|tan|cot|sec|csc|log|ln|exp|or|and|inf|infty|frac|oo)\b"
)


def extract_answer(completion: str) -> Extraction:
    """Gives a completion's final answer, the rule that found it, and whether several distinct ones stand there.

    The rules are tried in the order of :class:`Rule`; the first that finds anything counts. Thoughts are not read (see
    :func:`builtin_rewards.reading.turn.after_thinking`). Markdown emphasis, stop tokens at the end, footnote marks and
    emoji are left out. Marks with nothing in them are no marks. A last box that never closes and a last number that
    words before it change ("twice 42", "at least 42") are no answers.

    What is denied or doubted is no answer ("not \\boxed{42}", "I doubt that it is 42"), nor is what is withdrawn: taken
    back by plain words in its own sentence or the next ("The answer is 41. Wait, that is wrong."). "Wait" alone
    withdraws nothing, nor does a check, nor a withdrawal that names another answer, nor one inside a box. A withdrawn
    answer is not compared and not held against another one. Where the last answer is withdrawn there is none, though
    others may stand before it. There is no bound on withdrawals, for none is needed: whoever goes through all numbers
    with "No," between them is judged by the last one alone, as if that were all that was said.

    Several distinct final answers are: different boxes; a box, a tag or a plainly stated answer ("The answer is
    41.") that say different things; different stated answers; a list of numbers, or of anything joined with "or",
    where one answer is expected; before a last number, other numbers that it is listed with. Numbers on the way to
    the answer are not. Answers that are the same number in other writing are one.

    Args:
        completion: The model's text. Full-width letters, digits and signs are read as the ASCII ones.
    """
    text = without_markup(after_thinking(completion))
    if shown_otherwise(text):
        return Extraction(None, Rule.LAST_NUMBER, (), SHOWN_OTHERWISE)
    if not text.isascii() and _FULL_WIDTH.search(text):
        text = in_latex(text)
    if "\\" in text or "{,}" in text:
        text = _THOUSANDS_MARK.sub(",", text)
    marked = _marked(text, MARKED)
    if marked is None:
        return _stated(text) or _whole(text) or _last_number(text)
    answers, rule, problem = marked
    if answers and len(answers[-1]) > MAX_ANSWER_CHARS:
        return Extraction(None, rule, (), f"the answer is longer than {MAX_ANSWER_CHARS} characters")
    if answers and calls_wrong(answers[-1]):
        problem = problem or "the answer is said to be wrong"
    if rule is Rule.TAG:
        answers = [said for answer in answers for said in _spoken(answer)]
    return _extraction(answers, rule, problem) if answers else Extraction(None, rule, (), problem)


def _extraction(answers: list[str], rule: Rule, problem: str = "") -> Extraction:
    """The last of several answers, with the distinct ones among them, each taken apart where it is a list."""
    if len(answers) == 1 and answers[0].isdecimal() and answers[0].isascii():
        return Extraction(answers[0], rule, (answers[0],), problem)
    distinct: dict[object, str] = {}
    for answer in answers:
        for part in _alternatives(answer):
            key = _key(part)
            distinct.pop(key, None)
            distinct[key] = part
    return Extraction(answers[-1], rule, tuple(distinct.values()), problem)


def _key(answer: str) -> object:
    text = clean(answer)
    if (label := read_label(text)) is not None:
        return label
    quantity = read_quantity(text) if len(text) <= 200 else None
    if quantity is None and "=" in text:
        quantity = read_quantity(text.rpartition("=")[2].strip())
    if quantity is None:
        return "".join(text.split()).casefold()
    return (quantity.value, quantity.percent)


def _alternatives(answer: str) -> list[str]:
    """The parts of a bare list of numbers, or of anything joined with "or"; else the answer itself."""
    if len(answer) > 500:
        return [answer]
    text = clean(answer)
    if read_quantity(text) is not None:
        return [answer]
    either = text.lower().startswith("either ")
    parts = [part for part in _ALTERNATIVE.split(text[7:] if either else text) if part]
    pieces = [piece for part in parts for piece in (_LIST_GAP.split(part) if read_quantity(part) is None else [part])]
    if len(pieces) > 1 and all(read_quantity(piece) is not None for piece in pieces if piece):
        return [piece for piece in pieces if piece]
    if len(parts) > 1 and re.search(r"\bor\b", text):
        return parts
    return [answer]


# Boxes and tags


def _marked(text: str, rules: Sequence[Rule]) -> tuple[list[str], Rule, str] | None:
    """What the boxes or else the tags of a text hold that stand, the last one at the end; with what is said against it.

    A tag that holds no box, and a number that a phrase announces, are held against a box.
    """
    for rule in rules:
        found = boxes(text) if rule is Rule.BOXED else tags(text)
        if not found:
            continue
        last = found[-1]
        if rule is Rule.BOXED and not last.closed:
            return [], rule, "the last box never closes"
        others = []
        if rule is Rule.BOXED:
            if Rule.TAG in rules:
                others = [said for tag in tags(text)[-1:] if not boxes(tag.content) for said in _spoken(tag.content)]
            others += [said.answer for said in announced(text) if not said.problem and _is_number(said.answer)]
        standing = [
            mark.content for mark in found[-MAX_MARKS:-1] if not objection(text, mark.start, mark.end, mark.content)
        ]
        problem = objection(text, last.start, last.end, last.content)
        return [*others, *standing, last.content], rule, problem
    return None


def _is_number(answer: str) -> bool:
    return read_quantity(clean(answer)) is not None


def _spoken(content: str) -> list[str]:
    """The answers that phrases in a tag announce, if the last one stands, else the tag's content."""
    said = announced(content) if len(content) <= MAX_ANSWER_CHARS else []
    return [each.answer for each in said if not each.problem] if said and not said[-1].problem else [content]


# Phrases


def _stated(text: str) -> Extraction | None:
    said = announced(text)
    if not said:
        return None
    before = [each.answer for each in said[:-1] if not each.problem and _says_something(each.answer)]
    return _extraction([*before, said[-1].answer], Rule.PHRASE, said[-1].problem)


def _says_something(tail: str) -> bool:
    """Whether what an earlier phrase is followed by is an answer too, and not a remark about the answer."""
    if any(sign in tail for sign in "$\\=") or any(digit.isdigit() for digit in tail):
        return read_quantity(clean(tail)) is not None or not re.search(r"[A-Za-z]{3,} +[A-Za-z]{2,} ", tail)
    words = tail.lower().split()
    return 0 < len(words) <= 2 and words[0] not in ("a", "an", "the", "not")


# The completion itself, and its last number


def _whole(text: str) -> Extraction | None:
    stripped = text.strip()
    if (mark := _FIRST_ITEM.match(stripped)) is not None:
        stripped = stripped[mark.end() :]
    if not stripped or len(stripped) > 200 or "\n" in stripped:
        return None
    numbers = read_label(clean(stripped)) is None and any(character.isdigit() for character in stripped)
    ending = None if any(map(str.isdigit, stripped)) else _ending_formula(stripped)
    if ending is not None and re.search(r"[A-Za-z]{2,}", stripped[: ending[0]]):
        return None
    if numbers and re.search(r"[A-Za-z]{2,}", _COMMAND_OR_NAME.sub(" ", _without_text(stripped))):
        return None
    if numbers and not stripped.isascii() and _FOREIGN_WORD.search(stripped):
        return None
    formula = numbers or any(map(stripped.__contains__, "\\$=+^*/<>\u2260\u00ac"))
    problem = "the answer is denied" if formula and denies(stripped) else ""
    return _extraction([stripped], Rule.WHOLE, problem)


def _without_text(text: str) -> str:
    """The text without ``\\text{...}``: a formula's words do not make it a sentence."""
    return re.sub(r"\\(?:text|mbox|mathrm|begin|end)\s*\{[^{}]*\}", " ", text)


_NUMBER_OR_FRACTION = NUMBER + r"(?: ?/ ?\d+(?!\d|\.\d))?"
_TOKEN = re.compile(
    r"(?<![\w.])[+\u2212-]?(?:US)?[$€£¥₹]?-?(?:\\?[dt]?frac\{[^{}]{1,40}\}\{[^{}]{1,40}\}|"
    + r"\d+ \d+ ?/ ?\d+(?!\d|\.\d)|"
    + _NUMBER_OR_FRACTION
    + ")|"
    + _NUMBER_OR_FRACTION
)
_AFTER_NUMBER = re.compile(r"\s?[%$]|[\u00b9\u00b2\u00b3\u2070-\u2079]+|(?:[^\S\n]|[A-Za-z\u03c0/'^-])*")
_FORMULA_BEFORE = re.compile(
    r"(?:(?:[\d)}\]]|(?<![A-Za-z])[A-Za-z])[ \t]*[-+*/^_\u2212\u00d7\u00f7\u00b7\u2261]"
    r"|[+*/^_\u00d7\u00f7\u221a])[ \t]*[({]?$"
    r"|\b(?:log|ln|sin|cos|tan|mod)[ \t]$"
    r"|[A-Za-z)}\]][({]?$"
)
_FORMULA_RUN = re.compile(
    r"(?:[\d\s+*/^_().{}\u221a\u00d7\u00f7\u00b7\u2261-]|\b(?:log|ln|sin|cos|tan|mod)\b|(?<![A-Za-z])[A-Za-z](?![A-Za-z])|\\[A-Za-z]+)*$"
)
_LISTING_WORDS = ("%", "or", "and", "maybe", "perhaps", "possibly", "either", "it's", "is it")
_BULLET = re.compile(r"^[ \t]*[-*][ \t]+", re.MULTILINE)
_LISTED_BEFORE = re.compile(
    rf"(?<![=+*/^\w.-])(?<![=+*/^-]\s)[$€£]?({NUMBER})%?\s*(?:[,;|/&]\s*)?"
    r"(?:\b(?:or|and|maybe|perhaps|possibly|either|it's|is it)\b[\s,]*)*(?:\n\s*[-*]?\s*)?$",
    re.IGNORECASE,
)


def _last_number(text: str, *, once: bool = True) -> Extraction:
    """The last number; of ``5, not 4`` the one before, if that may be asked once more."""
    last = max(text.rfind(digit) for digit in "0123456789")
    if (ending := _ending_formula(text, last)) is not None:
        return _standing(text, *ending, formula=True)
    if last < 0:
        return _NOTHING
    begin = max(0, last - 400)
    window = text[begin : last + 400]
    place = last - begin
    if (formula := _around(window, place)) is not None:
        return _standing(window, *formula, formula=True)
    if (label := label_at(window, place)) is not None and not _FORMULA_BEFORE.search(window[: label[0]][-8:]):
        return _standing(window, *label)
    start = place
    while start > 0 and window[start - 1] in "0123456789.,/ " and not window.startswith("  ", start - 1):
        start -= 1
    # A fraction in LaTeX without delimiters begins before its digits.
    start = max(0, start - 60) if "frac" in window[max(0, place - 60) : place] else max(0, start - 5)
    token = next((match for match in _TOKEN.finditer(window, start) if match.start() <= place < match.end()), None)
    if token is None or (begin and token.start() == 0):
        return Extraction(None, Rule.LAST_NUMBER, (), "the last number is too long")
    before = window[: token.start()]
    if once and before[-4:-1] == "not" and (instead := _INSTEAD_OF.search(before[-60:])) is not None:
        return _last_number(before[: len(before) - len(instead["not"])][-400:], once=False)
    after = _AFTER_NUMBER.match(window, token.end())
    run = _FORMULA_RUN.search(before[-120:]) if _FORMULA_BEFORE.search(before[-8:]) else None
    return _standing(window, *token.span(), run[0].lstrip() if run else "", after[0].rstrip() if after else "")


def _standing(
    text: str, start: int, end: int, ahead: str = "", behind: str = "", *, formula: bool = False
) -> Extraction:
    """An answer at a place, with those that it is listed with right before it, and with what speaks against it.

    What denies the first of a list denies the last, unless it is set against that: ``it isn't 3, it's 4``. The answer
    goes with what stands ahead of it and behind it.
    """
    before = text[max(0, start - 400) : start]
    if formula:
        before = before.rstrip("$\\([")
    listed, head, contrast = _listed(before, _LISTED_FORMULA if formula else _LISTED_BEFORE)
    answer = text[start:end] if formula else text[start:end].strip()
    problem = _denial_in(before.rstrip()) if formula else _denial_in(before)
    problem = problem or objection(text, start, end, answer)
    head = before[: len(before) - len(ahead)] if ahead else head
    if not problem and denied_before(head, len(head)):
        listed, problem = ([], "") if contrast else (listed, "the answer is denied before it")
    return _extraction([*listed, ahead + answer + behind], Rule.LAST_NUMBER, problem)


_DELIMITED = r"\$\$?([^$\n]{1,200})\$\$?|\\\(([^\n]{1,200}?)\\\)|\\\[(.{1,200}?)\\\]|(?<!\S)(\u03c0)"
_FORMULA_NEAR_END = re.compile(rf"(?:{_DELIMITED})[A-Za-z\s.*!]{{0,40}}$", re.DOTALL)
_FORMULA_AT_END = re.compile(rf"(?:{_DELIMITED})[\s.*!]*$", re.DOTALL)
_BARE_NAME = re.compile(r"\s*(?:[A-Za-z]+|\\(?!pi|infty|emptyset)[A-Za-z]+)(?:_\w|_\{\w+\})?\s*")
_LISTED_FORMULA = re.compile(
    r"(?:(?:\$([^$\n]{1,100})\$|\\\(([^\n]{1,100}?)\\\)),?\s*\b(?:or|and)(?: maybe| perhaps| possibly)?"
    r"|(?:\$([^$\n=]{1,100})\$|\\\(([^\n=]{1,100}?)\\\))[,;/])\s*$"
)


def _ending_formula(text: str, last: int = -1) -> tuple[int, int] | None:
    """Where the formula without digits stands that a text ends with; words may follow where no number is."""
    ending = (_FORMULA_NEAR_END if last < 0 else _FORMULA_AT_END).search(text, max(0, len(text) - 400, last))
    if ending is None or ending.lastindex is None or _BARE_NAME.fullmatch(ending[ending.lastindex]):
        return None
    return ending.span(ending.lastindex)


def _around(window: str, place: int) -> tuple[int, int] | None:
    """Where the formula in delimiters stands that a place is in."""
    for opening, closing in (("\\[", "\\]"), ("\\(", "\\)"), ("$$", "$$")):
        start = window.rfind(opening, 0, place)
        end = window.find(closing, place)
        if start >= 0 and end >= 0 and (opening == closing or closing not in window[start:place]):
            return start + 2, end
    line = window.rfind("\n", 0, place) + 1
    if window.count("$", line, place) % 2 and (end := window.find("$", place)) > 0 and "\n" not in window[place:end]:
        return window.rfind("$", line, place) + 1, end
    return None


def _listed(before: str, listing: re.Pattern[str]) -> tuple[list[str], str, bool]:
    """What an answer is listed with right before it, the text before that, and whether ``it's`` parts the two."""
    found: list[str] = []
    contrast = False
    if listing is _LISTED_BEFORE:
        before = _BULLET.sub("", before[-160:])
        ending = before[-12:].rstrip(" \t\n,;|/&*-")[-8:].lower()
        if not (ending[-1:].isdigit() or ending.endswith(_LISTING_WORDS)):
            return found, before, contrast
    while len(found) < 20 and (match := listing.search(before[-140:])) is not None:
        found.insert(0, next(filter(None, match.groups())))
        contrast = contrast or "it's" in match[0].lower()
        before = before[-140:][: match.start()]
    return found, before, contrast


def _denial_in(before: str) -> str:
    """Says that the clause before a number denies it."""
    if _CHANGED.search(before[-40:]):
        return "what stands before the number changes it"
    return "the answer is denied: 'not' stands before it" if clause_denies(before, len(before)) else ""


_VERDICT = re.compile(
    r"[\s*_]*(yes|no|true|false)\b[*_]*(?=\s*(?:$|[,.;:!\u2014]|(?:because|since|it|that|this|they|there|he|she)\b))",
    re.IGNORECASE,
)
_OPPOSITE = {"yes": "no(?:pe)?", "no": "yes", "true": "false", "false": "true"}


def opening_verdict(completion: str) -> str | None:
    """Gives the yes, no, true or false that a completion begins with: ``Yes, it is.``

    None where it is taken back, or where its opposite follows at the end of a clause (``Yes, but no.``).
    """
    text = after_thinking(completion)
    verdict = _VERDICT.match(text)
    if verdict is None or withdrawn_after(text, verdict.end()):
        return None
    word = verdict[1].casefold()
    denied = re.search(rf"\b{_OPPOSITE[word]}\b(?=[*_]*\s*(?:$|[,.;:!?)]))", text[verdict.end() :], re.IGNORECASE)
    return None if denied else word


# The answer as a whole text


def answer_as_text(completion: str, rules: Sequence[Rule] = MARKED) -> Extraction:
    """Gives a completion's answer as a text, for the rewards that compare it as a whole or parse it.

    Where an answer is marked it is the one that :func:`extract_answer` reads, as it stands there: the last box, else
    the last tag. Where none is, or where marked answers differ, or the last one is denied, withdrawn or a box that
    never closes, it is all that the completion says after its thoughts, with the reason in ``problem``.

    Args:
        completion: The model's text.
        rules: Which marks count, of :data:`MARKED`. What may hold boxes of its own, such as JSON, reads tags alone.
    """
    text = after_thinking(completion)
    if shown_otherwise(text):
        return Extraction(None, Rule.WHOLE, (), SHOWN_OTHERWISE)
    answers, rule, problem = _marked(text, rules) or ([], Rule.WHOLE, "")
    if not problem and len(set(map(_key, answers))) > 1:
        problem = f"marked answers that differ ({rule})"
    if problem or not answers:
        return Extraction(text, Rule.WHOLE, (text,), problem)
    return Extraction(answers[-1], rule, (answers[-1],))


def final_answer(completion: str, rules: Sequence[Rule] = MARKED) -> str:
    """Gives the text of :func:`answer_as_text`."""
    return answer_as_text(completion, rules).answer or ""
