"""The final answer of a completion, found by one stated rule for all rewards that look for one."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from builtin_rewards.reading.boxes_and_tags import boxes, tags
from builtin_rewards.reading.expressions import FUNCTION
from builtin_rewards.reading.labels import label_at, read_label
from builtin_rewards.reading.latex import clean, in_latex
from builtin_rewards.reading.negation import (
    calls_wrong,
    clause_denies,
    denied_before,
    denies,
    objection,
    withdrawn_after,
)
from builtin_rewards.reading.normalisation import SHOWN_OTHERWISE, shown_otherwise, without_markup
from builtin_rewards.reading.numbers import CHANGES_NUMBER, NUMBER, REFERS_TO_NUMBER, read_quantity
from builtin_rewards.reading.stated_answers import DENIED, MAX_MARKS, StatedAnswer, stated_answers, wordless
from builtin_rewards.reading.thoughts import after_thinking
from builtin_rewards.reading.unit_names import MONEY, MONEY_BEHIND

MAX_ANSWER_CHARS = 4_000  # a longer marked text is no answer


class AnswerRule(StrEnum):
    """The rule that found an answer; the rules are tried in this order."""

    BOXED = "boxed"  # The last `\boxed{...}`, `\fbox{...}` or `\boxed 5`
    TAG = "answer_tag"  # The last `<answer>...</answer>`; without an end, up to the end of the text
    PHRASE = "phrase"
    """The last of "the answer is ...", "final answer: ...", a line ``#### n``, ``A: n`` or ``Answer: n``, a line
    below ``Answer`` or ``Answer:``."""
    WHOLE = "whole"  # The completion itself: one short line that is a formula, or that has no number
    LAST_NUMBER = "last_number"
    """The last number with its unit, or the formula in delimiters that it stands in or that the text ends with."""
    VERDICT = "verdict"  # The yes, no, true or false that a completion begins with; read for such a gold alone
    NONE = "none"  # There is no answer


MARKED = (AnswerRule.BOXED, AnswerRule.TAG)  # the rules for marked answers, in the order in which they are tried
# The rules of a completion that neither marks nor announces an answer.
UNMARKED = (AnswerRule.WHOLE, AnswerRule.LAST_NUMBER, AnswerRule.NONE)


@dataclass(frozen=True, slots=True)
class Extraction:
    answer: str | None  # Its text as it stands; `None` for a completion without an answer
    rule: AnswerRule  # The rule that found it
    candidates: tuple[str, ...] = ()  # The distinct final answers, in order
    problem: str = ""  # Why the answer cannot count, such as a denial before it; empty if it can

    @property
    def stuffed(self) -> bool:
        """Whether there are several distinct final answers, which only a question for several allows."""
        return len(self.candidates) > 1


_NOTHING = Extraction(None, AnswerRule.NONE, (), "no answer in the completion")

_THOUSANDS_MARK = re.compile(r"(?<=\d)(?:,\\!\s?|\{,\}|\\,)(?=\d{3}(?!\d))")  # LaTeX's comma without a space: `1{,}000`
_FULL_WIDTH = re.compile("[\uff01-\uff5e]")
_ALTERNATIVE = re.compile(  # what joins two answers: `3 or 4`
    r"\s*(?:,|;|\|)?\s*(?:\\(?:text|mbox|mathrm)\s*\{\s*(?:or|and)\s*\}|\b(?:or|and)\b)\s*(?:maybe|perhaps|possibly)?\s*"
)
_LIST_GAP = re.compile(r"\s*(?:[;|\n]|,(?!\d{3}(?!\d))|,\s)\s*|\s+")  # a comma before three digits is part of a number


def extract_answer(completion: str) -> Extraction:
    """Return a completion's final answer, the rule that found it, and all distinct final answers.

    The first rule of :class:`AnswerRule` that finds anything counts; ``docs/how-to/reward-math.md`` describes the
    rules. Thoughts, markdown emphasis, stop tokens at the end, footnote marks, emoji and empty marks are not read. An
    answer that is denied, doubted or withdrawn in its own sentence or the next has a ``problem``, and so has a box that
    never closes, or a last number that words before it change ("twice 42"). Withdrawn answers before the last one are
    ignored. The distinct answers are different boxes, tags or stated answers, a box and a number stated beside it, a
    list of numbers, or anything joined with "or", but no numbers on the way; one number in two writings counts once.
    """
    text = without_markup(after_thinking(completion))
    if shown_otherwise(text):
        return Extraction(None, AnswerRule.LAST_NUMBER, (), SHOWN_OTHERWISE)
    text = in_latex(text) if _FULL_WIDTH.search(text) else text
    text = _THOUSANDS_MARK.sub(",", text) if "\\" in text or "{,}" in text else text
    marks = _marked_answers(text, MARKED)
    if marks is None:
        return _listed_solutions(text) or _stated_answer(text) or _whole_answer(text) or _last_number_answer(text)
    answers, rule, problem = marks
    if answers and len(answers[-1]) > MAX_ANSWER_CHARS:
        return Extraction(None, rule, (), f"the answer is longer than {MAX_ANSWER_CHARS} characters")
    if answers and calls_wrong(answers[-1]):
        problem = problem or "the answer is said to be wrong"
    if rule is AnswerRule.TAG:
        answers = [phrase for answer in answers for phrase in _phrased_answers(answer)]
    return _extraction(answers, rule, problem) if answers else Extraction(None, rule, (), problem)


def _extraction(answers: list[str], rule: AnswerRule, problem: str = "") -> Extraction:
    """Return an extraction of the last answer, with all distinct answers as candidates, lists taken apart."""
    distinct: dict[object, str] = {}
    for answer in answers:
        for part in _alternatives(answer):
            key = _key(part)
            distinct.pop(key, None)
            distinct[key] = part
    return Extraction(answers[-1], rule, tuple(distinct.values()), problem)


def reread(extraction: Extraction, answer: str) -> Extraction:
    """Return an extraction with its last answer in another writing."""
    parts = _extraction([extraction.answer or ""], extraction.rule).candidates
    earlier = [candidate for candidate in extraction.candidates if candidate not in parts]
    return _extraction([*earlier, answer], extraction.rule, extraction.problem)


def _key(answer: str) -> object:
    text = clean(answer)
    if (label := read_label(text)) is not None:
        return label
    sides = (text, text.rpartition("=")[2].strip()) if len(text) <= 200 else ()
    quantity = next(filter(None, map(read_quantity, sides)), None)
    return (quantity.value, quantity.percent) if quantity else "".join(text.split()).casefold()


def _alternatives(answer: str) -> list[str]:
    """Return the parts of a bare list of numbers, or of anything joined with "or"; else the answer."""
    text = clean(answer) if len(answer) <= 500 else ""
    if not text or read_quantity(text) is not None:
        return [answer]
    parts = [part for part in _ALTERNATIVE.split(text.removeprefix("either ").removeprefix("Either ")) if part]
    pieces = [piece for part in parts for piece in ([part] if read_quantity(part) else _LIST_GAP.split(part)) if piece]
    if len(pieces) > 1 and all(map(read_quantity, pieces)):
        return pieces
    return parts if len(parts) > 1 and re.search(r"\bor\b", text) else [answer]


# Boxes, tags and phrases


def _marked_answers(text: str, rules: Sequence[AnswerRule]) -> tuple[list[str], AnswerRule, str] | None:
    """Return the boxes that are not denied, else such tags, the final answer last; the rule; and its problem."""
    tag_marks = tags(text) if AnswerRule.TAG in rules else []
    marks = (boxes(text) if AnswerRule.BOXED in rules else []) or tag_marks
    if not marks:
        return None
    last, rule, answers = marks[-1], AnswerRule.TAG if marks is tag_marks else AnswerRule.BOXED, list[str]()
    if rule is AnswerRule.BOXED:
        if not last.closed:
            return [], rule, "the last box never closes"
        if tag_marks and not boxes(tag_marks[-1].content):
            answers += _phrased_answers(tag_marks[-1].content)
        answers += filter(lambda answer: read_quantity(clean(answer)), _unopposed(stated_answers(text)))
    problems = {mark: objection(text, mark.start, mark.end, mark.content) for mark in marks[-MAX_MARKS:]}
    answers += (mark.content for mark in marks[-MAX_MARKS:-1] if not problems[mark])
    return [*answers, last.content], rule, problems[last]


def _unopposed(statements: Sequence[StatedAnswer]) -> list[str]:
    return [statement.answer for statement in statements if not statement.problem]


def _phrased_answers(content: str) -> list[str]:
    """Return the answers that phrases in a tag announce, if the last one stands, else the tag's content."""
    statements = stated_answers(content) if len(content) <= MAX_ANSWER_CHARS else []
    return _unopposed(statements) if statements and not statements[-1].problem else [content]


_SOLUTIONS = re.compile(
    r"\b(?:solutions|roots|zeros|zeroes)(?: (?:of|to) [^.:\n]{1,60})?\s?(?:are:?|:)\s", re.IGNORECASE
)
_SOLUTION_GAP = re.compile(r"\s*(?:\n\s*(?:(?:[-*\u2022]|\(?\d{1,2}[.)])\s+)?|;\s*|,\s+(?:and\s+)?|\s+and\s+)")
_SOLUTION = re.compile(r"\$?(?:(?P<name>[A-Za-z])(?:_\{?\d\}?)?\s*=)?\s*(?P<value>[^$=]{1,40}?)\$?")


def _listed_solutions(text: str) -> Extraction | None:
    """Return the numbers that a text lists at its end as solutions: ``The roots are x = 3 and x = -3.``"""
    head = next(reversed([*_SOLUTIONS.finditer(text, max(0, len(text) - MAX_ANSWER_CHARS))]), None)
    if head is None:
        return None
    parts = map(_SOLUTION.fullmatch, _SOLUTION_GAP.split("\n" + text[head.end() :].strip(" \t\n.$"))[1:])
    items = [(part["name"], part["value"].strip()) if part else ("", "") for part in parts]
    if (
        len(items) < 2
        or len({name for name, _ in items}) > 1
        or not all(read_quantity(clean(item)) for _, item in items)
    ):
        return None
    answer = ", ".join(item for _, item in items)
    return _extraction([answer], AnswerRule.PHRASE, objection(text, head.end(), len(text), since=head.start()))


_CLOSING_MARK = re.compile(r"^[ *_]{0,4}####[ \t]*([^\d\n]{1,100})\s*\Z", re.MULTILINE)
# Text behind an earlier phrase that is a remark and no answer: `a multiple of 7`.
_REMARK = re.compile(r"[A-Za-z]{3,} +[A-Za-z]{2,} |^\W*(?:(?:an?|the|not)\b|(?:false\W*)?$)", re.IGNORECASE)


def _stated_answer(text: str) -> Extraction | None:
    """Return the last answer that a phrase announces; a denial of another number does not count against it."""
    if (closing := _CLOSING_MARK.search(text, max(0, len(text) - 200))) is not None:
        return _extraction([closing[1]], AnswerRule.PHRASE)
    statements = stated_answers(text)
    if not statements:
        return None
    standing_key = next(map(_key, reversed(_unopposed(statements))), None)
    while standing_key and statements[-1].problem == DENIED:
        denied_number = clean(statements[-1].answer.partition("not ")[2])
        if read_quantity(denied_number) is None or _key(denied_number) == standing_key:
            break
        statements.pop()
    *earlier, last = statements
    answers = [text for text in _unopposed(earlier) if read_quantity(clean(text)) or not _REMARK.search(text)]
    return _extraction([*answers, last.answer], AnswerRule.PHRASE, last.problem)


# The completion itself, and its last number

_FIRST_ITEM = re.compile(r"(?:#{1,6}|>|1[.)])\s+(?=[^\s#>]+\s*$)")


def _whole_answer(text: str) -> Extraction | None:
    text = text.strip()
    item = _FIRST_ITEM.match(text)
    line = text[item.end() :] if item else text
    if not line or len(line) > 200 or "\n" in line:
        return None
    numbers = any(map(str.isdigit, line))
    ending = None if numbers else _formula_at(line, -1)
    head = line[: ending[0]] if ending else line if numbers and not read_label(clean(line)) else ""
    if not wordless(head):
        return None
    is_denied = (numbers or re.search("[\\\\$=+^*/<>\u2260\u00ac]", line)) and denies(line)
    return _extraction([line], AnswerRule.WHOLE, "the answer is denied" if is_denied else "")


_NUMBER_OR_FRACTION = NUMBER + r"(?: ?/ ?\d+(?!\d|\.\d))?"
_FIRST_UNIT = re.compile(r"(?<![\w.,/-])-?[\d.,]*\d ?[A-Za-z]{1,7}\.?(?:,? and|,)? $")
# The end of a quantity in two units: `minutes` in `3 hours and 30 minutes`.
_SECOND_UNIT = re.compile(r"\s?[A-Za-z]{1,7}\b(?=\W*$|[.!?)*\n]| (?:in|to|for|of|per|long|tall|high|old|and|total)\b)")
_TOKEN = re.compile(  # a number as it is written, with its sign, currency or fraction
    rf"(?<![\w.])[+\u2212-]?(?:{MONEY}\s?)?-?(?:\\?[dt]?frac\{{[^{{}}]{{1,40}}\}}\{{[^{{}}]{{1,40}}\}}"
    r"|\d{1,3}(?:[.' ]\d{3})*,\d{1,2}(?!\d|[.,]\d)"
    rf"|\d+ \d+ ?/ ?\d+(?!\d|\.\d)|{_NUMBER_OR_FRACTION})|{_NUMBER_OR_FRACTION}"
)
_BEHIND = re.compile(  # the text that continues a number: a sign, a formula, or words such as its unit
    rf"(?:\s|\\,)?(?:\s?\\?[%\u2030]|{MONEY_BEHIND})|[\u00b9\u00b2\u00b3\u2070-\u2079]+"
    r"|[^\S\n]*(?:[+*\u00d7\u00b7\u00f7](?=\s*(?:[A-Za-z]{1,2}\b|[\\(]))|\u221a"
    rf"|\\(?:cdot|times|div|pm|[dt]?frac|pi|int|sum|{FUNCTION})\b)"
    r"[^\S\n]*\S*|(?:[^\S\n]|[A-Za-z\u03c0/'^-])*"
)
_FUNCTION = rf"\b(?:{FUNCTION}|base)(?![A-Za-z])"
_JOINED = re.compile(
    r"(?:(?:[\d)}\]]|(?<![A-Za-z</])[A-Za-z\u03c0])[ \t]*"
    r"(?:[-+*/^_\u2212\u2013\u00d7\u00f7\u00b7\u2261\u2264\u2265]|[<>]=?)"
    r"|[+*/^_\u00d7\u00f7\u221a]|\\(?:[lg]eq?|[lg]t|times|cdot|div|pm|sqrt|equiv)\b)[ \t]*[({]?$"
    r"|(?:\b(?:is|are|was|be|gets?|equals?)|=)[ \t]*(?P<sign>[-\u2212\u2013][ \t])$"
    r"|(?P<words>(?:\d[\d.,/]*|\b(?:one|two|three|four|five|six|seven|eight|nine|ten|[a-z](?= to the)))"
    r"[ \t](?:to(?: the)?|in|of|out of|per|through|from|by|remainder)[ \t])$"
    rf"|{_FUNCTION}[ \t]$|[A-Za-z]-$|[A-Za-z)}}\]]$|[\w)}}\]][({{]$"
)  # an operation, a function or words such as `3 to 4`, which make an expression of the number behind
_CHANGES_TO = re.compile(  # a change, whose second number stands alone: `It rises from 30 to 40`
    r"(?:\b(?:ris|ros|rais|increas|gr[eo]w|drop|f[ae]ll|decreas|climb|reduc|improv|jump|shr[ia]nk)\w*"
    r"|\b(?:goes|went|changes|changed|moves|moved))\s[^.;\n]{0,40}?\bfrom \S{1,20} to (?:the )?$"
)
_RUN = re.compile(  # the expression that a number ends
    r"(?:[\d\s+*/^_().{}<>\u221a\u00d7\u00f7\u00b7\u2212\u2013\u2261\u2264\u2265\u03c0-]"
    rf"|{_FUNCTION}|(?<![A-Za-z])[A-Za-z](?![A-Za-z])|(?<=[A-Za-z])-|\\[A-Za-z]+"
    r"|(?<=[\d)}] )or(?= [A-Za-z] ?(?:[<>\u2264\u2265]|\\[lg]eq?\b)))*$"
)
_INSTEAD_OF = re.compile(  # `5, not 4`
    rf"\d(?: [A-Za-z]{{1,20}}){{0,2}}(?P<not>,?\s(?:and |but )?not\s[$€£]?{NUMBER}\D*\Z)", re.IGNORECASE
)
_NEAR, _LONGEST = 400, 200  # characters around the last digit that are read, and those of a number


def _last_number_answer(text: str) -> Extraction:
    """Return the last number with its expression; in ``5, not 4`` the one before."""
    if (instead := _INSTEAD_OF.search(text, max(0, len(text) - _NEAR))) is not None:
        text = text[: instead.start("not")]
    last = max(map(text.rfind, "0123456789"))
    if (formula := _formula_at(text, last)) is not None:
        return _number_answer(text, *formula, formula=True)
    if last < 0:
        return _NOTHING
    low, high = max(0, last - _LONGEST), last + _NEAR
    label = label_at(text, last)
    if label is not None and not _JOINED.search(text[max(0, label[0] - 20) : label[0]]):
        return _number_answer(text, *label)
    if (quantity := _quantity_with_power(text, last)) is not None:
        return _number_answer(text, *quantity)
    token = next((match for match in _TOKEN.finditer(text, low, high) if match.start() <= last < match.end()), None)
    if token is None or (low and token.start() == low):
        return Extraction(None, AnswerRule.LAST_NUMBER, (), "the last number is too long")
    start, end = label or token.span()
    ahead, behind = "", _BEHIND.match(text, end, high)
    first, second = _FIRST_UNIT.search(text, max(0, start - 20), start), _SECOND_UNIT.match(text, end, high)
    if first and second and read_quantity(clean(text[first.start() : second.end()])):
        return _number_answer(text, first.start(), second.end())
    joined = _JOINED.search(text[max(0, start - 20) : start])
    if joined is not None and _CHANGES_TO.search(text[max(0, start - 100) : start]) is None:
        run = _RUN.search(text[max(0, start - 120) : start])
        ahead = joined["words"] or joined["sign"] or (run[0].lstrip() if run else "")
    return _number_answer(text, start, end, ahead, behind[0].rstrip() if behind else "")


_POWER_OF_UNIT = re.compile(  # `5 kg m^2/s^2`, up to its last power
    rf"(?<![\w.,^/*+-])-?{NUMBER}(?:\s?(?:x|\\times|\*)\s?10\^\{{?-?\d{{1,3}}\}}?)?\s?"
    r"(?:[A-Za-z]{1,6}(?:\^[{(]?-?\d[})]?)?[ */]{0,3}){1,6}$"
)


def _quantity_with_power(text: str, last: int) -> tuple[int, int] | None:
    """Return where the quantity stands whose unit has the last digit as its power, if it has one."""
    if re.search(r"\^[{(]?-?$", text[max(0, last - 3) : last]) is None:
        return None
    end = last + 1 + (text[last + 1 : last + 2] in ("}", ")"))
    low = max(0, last - 60)
    match = _POWER_OF_UNIT.search(text[low:end])
    if match is None or _JOINED.search(text[max(0, low + match.start() - 20) : low + match.start()]):
        return None
    quantity = read_quantity(clean(match[0]))
    return (low + match.start(), end) if quantity and quantity.unit and quantity.unit.factors else None


_FORMULA = r"\$\$?([^$\n]{1,200})\$\$?|\\\(([^\n]{1,200}?)\\\)|\\\[(.{1,200}?)\\\]|(?<!\S)(\u03c0)"
_AT_END = re.compile(rf"(?:{_FORMULA})(?=[A-Za-z\s.*!]{{0,40}}$)", re.DOTALL)
_BARE_NAME = re.compile(r"\s*(?:[A-Za-z]+|\\(?!pi|infty|emptyset|varnothing)[A-Za-z]+)(?:_\w|_\{\w+\})?\s*")


def _formula_at(text: str, last: int) -> tuple[int, int] | None:
    """Return the span of the formula in delimiters around the last digit, or behind it at the end of the text."""
    ending = _AT_END.search(text, max(0, len(text) - _NEAR, last))
    formula = ending.lastindex if ending and (last < 0 or not re.search("[A-Za-z]", text[ending.end() :])) else None
    if ending and formula and not _BARE_NAME.fullmatch(ending[formula]):
        return ending.span(formula)
    line, low = text.rfind("\n", 0, max(0, last)) + 1, max(0, last - _NEAR)
    for opening, closing in (("\\[", "\\]"), ("\\(", "\\)"), ("$$", "$$"), ("$", "$")) if last >= 0 else ():
        start = text.rfind(opening, low, last) + len(opening)
        end = text.find(closing, last, last + _NEAR)
        if opening == "$":
            is_inside = text.count("$", max(line, low), last) % 2 and "\n" not in text[last:end]
        else:
            is_inside = start > 1 and (opening == closing or closing not in text[start:last])
        if is_inside and end >= 0:
            return start, end
    return None


_CHANGED = re.compile(  # words right before a number that change what it means
    rf"(?:{CHANGES_NUMBER}|{REFERS_TO_NUMBER}|\b(?:step|case|equation|problem|question))[\s$\u20ac\u00a3(*]*$",
    re.IGNORECASE,
)
_UNIT_BEHIND = re.compile(r"\s?(?:\u00b0|\^\s?\{?\\circ\}?|\\(?:text|mathrm)\s?\{[^{}]{1,20}\})")
_NAMED = re.compile(r"\b[A-Za-z](?:\([A-Za-z]\))?\s?=\s?$")  # `x = ` before the number
_BULLET = re.compile(r"^[ \t]*[-*][ \t]+", re.MULTILINE)
_OTHER = rf"(?<![=+*/^\w.-])(?<![=+*/^-]\s)[$€£]?{NUMBER}%?(?=[\s,;|/&])"
_HEDGES = r"(?:\b(?:or|and|maybe|perhaps|possibly|either|it's|is it)\b[\s,]*)"
_LISTED = re.compile(  # numbers or formulas listed right before the last one
    rf"(?:{_OTHER}\s*(?:[,;|/&]\s*)?{_HEDGES}*(?:\n\s*[-*]?\s*)?"
    rf"|(?:\$[^$\n]{{1,100}}\$|\\\([^\n]{{1,100}}?\\\)),?\s*{_HEDGES}+"
    r"|(?:\$[^$\n=]{1,100}\$|\\\([^\n=]{1,100}?\\\))[,;/]\s*)+$",
    re.IGNORECASE,
)
_ROW = re.compile(  # a table's only row, up to its column of answers: `| x | answer |`, a line, `| 1 | `
    r"\|[ \t]*(?:final )?(?:answer|result|total)[ \t]*\|[ \t]*\n[ \t]*\|[-:| \t]+\|[ \t]*\n[ \t]*\|[^\n]*$",
    re.IGNORECASE,
)
_LISTED_ONE = re.compile(rf"{_OTHER}|\$[^$\n]{{1,100}}\$|\\\([^\n]{{1,100}}?\\\)")


def _number_answer(
    text: str, start: int, end: int, ahead: str = "", behind: str = "", *, formula: bool = False
) -> Extraction:
    """Return the answer at a place, with those listed right before it, and its problem."""
    before = text[max(0, start - _NEAR) : start - len(ahead)]
    before = before.rstrip("$\\([") if formula else before
    answer = text[start:end] if formula else text[start:end].strip()
    unit = None if formula else _UNIT_BEHIND.match(text, end)
    problem = objection(text, start, unit.end() if unit else end, answer)
    if _CHANGED.search(before[-40:]):
        problem = "what stands before the number changes it"
    elif clause_denies(before, len(before)):
        problem = DENIED
    head = _BULLET.sub("", before[-160:])
    run = None if ahead or _ROW.search(before) else _LISTED.search(head)
    alternatives = _LISTED_ONE.findall(run[0]) if run else []
    head = _NAMED.sub("", head[: run.start()] if run else head)
    if not problem and denied_before(head, len(head)):
        contrast = run is not None and "it's" in run[0].lower()
        alternatives, problem = ([], "") if contrast else (alternatives, "the answer is denied before it")
    return _extraction([*alternatives, ahead + answer + behind], AnswerRule.LAST_NUMBER, problem)


_VERDICT = re.compile(  # a verdict alone, or with its reason behind it
    r"[\s*_]*(yes|no|true|false)\b[*_]*(?=\s*(?:$|[,.;:!\u2014]|(?:because|since|it|that|this|they|there|he|she)\b))",
    re.IGNORECASE,
)
_AGREES_WITH_NO = re.compile(r"[\s,*_]*(?:it|that|this|they|there|he|she) \w{2,6}(?: not|n['\u2019]t)\b", re.IGNORECASE)
_OPPOSITE = {"yes": "no(?:pe)?", "no": "yes", "true": "false", "false": "true"}


def opening_verdict(completion: str) -> str | None:
    """Return a completion's first yes, no, true or false; ``None`` where it is withdrawn (``Yes, but no.``)."""
    text = after_thinking(completion)
    verdict = _VERDICT.match(text)
    if verdict is None:
        return None
    word = verdict[1].casefold()
    agrees = _AGREES_WITH_NO.match(text, verdict.end()) if word in ("no", "false") else None
    if withdrawn_after(text, (agrees or verdict).end()):
        return None
    opposite = re.compile(rf"\b{_OPPOSITE[word]}\b(?=[*_]*\s*(?:$|[,.;:!?)]))", re.IGNORECASE)
    return None if opposite.search(text, verdict.end()) else word


def answer_as_text(completion: str, rules: Sequence[AnswerRule] = MARKED) -> Extraction:
    """Return a completion's answer as text, for rewards that compare or parse it as a whole.

    It is the last box, else the last tag. Where neither exists, or marked answers differ, or the last one is denied,
    withdrawn or never closes, it is all that follows the thoughts, with the reason in ``problem``. ``rules`` are of
    :data:`MARKED`: text with boxes of its own, such as JSON, is read by tags alone.
    """
    text = after_thinking(completion)
    if shown_otherwise(text):
        return Extraction(None, AnswerRule.WHOLE, (), SHOWN_OTHERWISE)
    answers, rule, problem = _marked_answers(text, rules) or ([], AnswerRule.WHOLE, "")
    if not problem and len(set(map(_key, answers))) > 1:
        problem = f"marked answers that differ ({rule})"
    if problem or not answers:
        return Extraction(text, AnswerRule.WHOLE, (text,), problem)
    return Extraction(answers[-1], rule, (answers[-1],))


def final_answer(completion: str, rules: Sequence[AnswerRule] = MARKED) -> str:
    """Return the text of :func:`answer_as_text`."""
    return answer_as_text(completion, rules).answer or ""
