"""Forty sound rewards over all kinds of rows, in the ways of notebooks and repositories; none may be accused."""

import ast
import itertools
import json
import math
import re
import sqlite3
from collections import Counter
from datetime import date
from fractions import Fraction
from typing import Any

from rewardkit import reward
from sandbox import Sandbox, check_asserts

_ROMAN = {"I": 1, "V": 5, "X": 10, "L": 50, "C": 100}
_MONTHS = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
]
_SECONDS = {"h": 3600, "min": 60, "s": 1}


def _words(text: str) -> list[str]:
    return re.findall(r"[a-z0-9]+", text[:20_000].lower())


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _number(text: str) -> Fraction | None:
    text = text.strip().replace(",", "")
    return Fraction(text) if re.fullmatch(r"-?\d{1,15}(\.\d{1,15}|/[1-9]\d{0,8})?", text) else None


def _tagged(text: str, tag: str) -> str | None:
    """Return what the one pair of tags at the end holds."""
    found = re.fullmatch(rf"[^<>]*(?:<think>[^<>]*</think>[^<>]*)?<{tag}>([^<>]*)</{tag}>\s*", text[:50_000])
    return found[1].strip() if found else None


def _common(left: list[str], right: list[str]) -> int:
    """Return the length of the longest common subsequence."""
    best = [0] * (len(right) + 1)
    for a in left:
        before = 0
        for at, b in enumerate(right, 1):
            before, best[at] = best[at], before + 1 if a == b else max(best[at], best[at - 1])
    return best[-1]


def _f1(common: float, left: int, right: int) -> float:
    return 2 * common / (left + right) if common else 0.0


@reward(score_range=(0, 2))
def notebook_correct(completion: str, answer: str) -> float:
    """2.0 for the number in the one pair of answer tags."""
    return 2.0 * (_tagged(completion, "answer") == answer)


@reward(score_range=(0, 1))
def cosine_if_right(completion: str, answer: str) -> float:
    """For the right number 1.0, falling by a cosine to 0.5 at 4,000 characters; nothing for another."""
    said = _tagged(completion, "answer")
    if said is None or _number(said) is None or _number(said) != _number(answer):
        return 0.0
    return 0.75 + 0.25 * math.cos(math.pi * min(1.0, len(completion) / 4_000))


@reward(score_range=(-1, 1))
def right_less_overlong(completion: str, answer: str) -> float:
    """1.0 for the right line at the end, less up to 1.0 beyond 3,000 characters."""
    right = completion.strip().rpartition("\n")[2] == f"#### {answer}"
    return right - min(1.0, max(0, len(completion) - 3_000) / 1_000)


@reward(score_range=(0, 1))
def sum_in_words(completion: str, answer: str) -> float:
    """1.0 for a line 'a + b = c' of which c is the gold, and the sum is right."""
    found = re.fullmatch(r"(\d{1,9}) \+ (\d{1,9}) = (\d{1,9})", completion.strip())
    return float(found is not None and found[3] == answer and int(found[1]) + int(found[2]) == int(found[3]))


@reward(score_range=(0, 1))
def within_rounding(completion: str, answer: float) -> float:
    """1.0 for a bare decimal number equal to the gold but for a millionth."""
    number = _number(completion)
    return float(number is not None and math.isclose(float(number), answer, rel_tol=1e-6))


@reward(score_range=(0, 1))
def percent_sign(completion: str, answer: str) -> float:
    """1.0 for the percentage, sign and all, whatever zeros follow."""
    found = re.fullmatch(r"\s*(-?\d{1,6}(?:\.\d{1,6})?) ?%\s*", completion)
    return float(found is not None and Fraction(found[1]) == Fraction(answer.strip(" %")))


@reward(score_range=(0, 1))
def roman(completion: str, answer: str) -> float:
    """1.0 for the number in Roman numerals, in either case."""
    return float(_roman(completion.strip().upper()) == _roman(answer))


def _roman(text: str) -> int | None:
    if not re.fullmatch(r"(XC|XL|L?X{0,3})(IX|IV|V?I{0,3})", text) or not text:
        return None
    values = [_ROMAN[char] for char in text]
    return sum(-v if at + 1 < len(values) and v < values[at + 1] else v for at, v in enumerate(values))


@reward(score_range=(0, 1))
def same_duration(completion: str, answer: str) -> float:
    """1.0 for the duration in hours, minutes or seconds."""
    said = _seconds(completion)
    return float(said is not None and said == _seconds(answer))


def _seconds(text: str) -> int | None:
    found = re.fullmatch(r"\s*(\d{1,6}) ?(h|min|s)\s*", text)
    return int(found[1]) * _SECONDS[found[2]] if found else None


@reward(score_range=(0, 1))
def calendar_day(completion: str, answer: str) -> float:
    """1.0 for the day in words or in figures, day first."""
    said = _day(completion.strip())
    return float(said is not None and said == _day(answer))


def _day(text: str) -> date | None:
    found = re.fullmatch(r"(\d{1,2})(?:\. ?| )(\d{1,2}|[A-Z][a-z]{2,8})(?:\. ?| )(\d{4})", text)
    if found is None or not (found[2].isdigit() or found[2] in _MONTHS):
        return None
    month = int(found[2]) if found[2].isdigit() else _MONTHS.index(found[2]) + 1
    try:
        return date(int(found[3]), month, int(found[1]))
    except ValueError:
        return None


@reward(score_range=(0, 1))
def tuple_of_numbers(completion: str, answer: str) -> float:
    """1.0 for the point, with any blanks."""
    said = re.fullmatch(r"\(\s*(-?\d{1,9})\s*,\s*(-?\d{1,9})\s*\)", completion.strip())
    gold = re.findall(r"-?\d+", answer)
    return float(said is not None and [str(int(part)) for part in said.groups()] == gold)


@reward(score_range=(0, 1))
def same_matrix(completion: str, answer: list[list[int]]) -> float:
    """1.0 for the matrix as a list of lists."""
    return float(_json(completion) == answer)


@reward(score_range=(0, 1))
def choice_in_tags(completion: str, answer: str) -> float:
    """1.0 for the letter in its tags, with or without brackets."""
    said = _tagged(completion, "answer")
    return float(said is not None and said.strip("().") == answer)


@reward(score_range=(0, 1))
def choice_or_its_text(completion: str, answer: str, options: dict[str, str]) -> float:
    """1.0 for the letter, or for the text of that option."""
    return float(completion.strip().rstrip(".") in (answer, f"({answer})", options[answer]))


@reward(score_range=(0, 1))
def all_letters(completion: str, answer: list[str]) -> float:
    """The share of letters that both name, of those that either names."""
    said = (
        set(re.findall(r"\b[A-D]\b", completion)) if re.fullmatch(r"[A-D]([ ,]+[A-D])*", completion.strip()) else set()
    )
    return len(said & set(answer)) / len(said | set(answer))


@reward(score_range=(0, 1))
def one_of_five(completion: str, label: int) -> float:
    """1.0 for the number of stars, less a quarter for each star apart."""
    text = completion.strip()
    return 1.0 - abs(int(text) - label) / 4 if text in ("1", "2", "3", "4", "5") else 0.0


@reward(score_range=(0, 1))
def brier(completion: str, label: bool) -> float:
    """One minus the squared distance of a stated probability from the truth."""
    found = re.fullmatch(r"\s*(0(?:\.\d{1,6})?|1(?:\.0{1,6})?)\s*", completion)
    return 1.0 - (float(found[1]) - label) ** 2 if found else 0.0


@reward(score_range=(0, 1))
def entailment(completion: str, label: str) -> float:
    """1.0 for the class in its JSON."""
    value = _json(completion)
    return float(isinstance(value, dict) and value == {"label": label})


@reward(score_range=(0, 1))
def normalized_name(completion: str, answer: str) -> float:
    """1.0 for the name, whatever its case, its article and the full stop behind it."""
    return float(_name(completion) == _name(answer))


def _name(text: str) -> str:
    return re.sub(r"^(the|a|an) ", "", " ".join(text.lower().strip().rstrip(".").split()))


@reward(score_range=(0, 1))
def edit_ratio(completion: str, answer: str) -> float:
    """One minus the edit distance over the longer text."""
    said = completion.strip()[:300]
    if len(completion.strip()) > 300:
        return 0.0
    row = [*range(len(answer) + 1)]
    for at, char in enumerate(said, 1):
        before, row[0] = row[0], at
        for to, wanted in enumerate(answer, 1):
            before, row[to] = row[to], min(row[to] + 1, row[to - 1] + 1, before + (char != wanted))
    return 1.0 - row[-1] / max(1, len(said), len(answer))


@reward(score_range=(0, 1))
def rouge_l(completion: str, reference: str) -> float:
    """The F1 of the longest common subsequence of words."""
    said, wanted = _words(completion)[:400], _words(reference)
    return _f1(_common(said, wanted), len(_words(completion)), len(wanted))


@reward(score_range=(0, 1))
def bigram_f1(completion: str, reference: str) -> float:
    """The F1 of pairs of words."""
    said, wanted = (Counter(itertools.pairwise(words)) for words in (_words(completion), _words(reference)))
    return _f1(sum((said & wanted).values()), said.total(), wanted.total())


@reward(score_range=(0, 1))
def brevity_bleu(completion: str, reference: str) -> float:
    """The share of words that are the reference's, less for a text that is shorter."""
    said, wanted = Counter(_words(completion)), Counter(_words(reference))
    if not said:
        return 0.0
    short = min(1.0, math.exp(1 - wanted.total() / said.total()))
    return short * sum((said & wanted).values()) / said.total()


@reward(score_range=(0, 1))
def card_fields(completion: str, answer: dict[str, Any]) -> float:
    """The share of fields that are right, of all that either has."""
    value = _json(completion)
    if not isinstance(value, dict):
        return 0.0
    return sum(key in value and value[key] == answer[key] for key in answer) / len(answer.keys() | value.keys())


@reward(score_range=(0, 1))
def card_with_schema(completion: str, answer: dict[str, Any]) -> float:
    """1.0 for the card, 0.2 for an object of the right fields and types."""
    found = re.fullmatch(r"\s*(?:```json\n)?(\{.*\})\s*(?:```)?\s*", completion, re.DOTALL)
    value = _json(found[1]) if found else None
    if not isinstance(value, dict) or {k: type(v) for k, v in value.items()} != {k: type(v) for k, v in answer.items()}:
        return 0.0
    return 1.0 if value == answer else 0.2


@reward(score_range=(0, 1))
def call_f1(completion: str, answer: list[dict[str, Any]]) -> float:
    """The F1 of the calls in their tags, each with name and arguments."""
    said = [_json(text) for text in re.findall(r"<tool_call>([^<>]*)</tool_call>", completion)]
    left = [json.dumps(call, sort_keys=True) for call in said]
    right = [json.dumps(call, sort_keys=True) for call in answer]
    return _f1(sum((Counter(left) & Counter(right)).values()), len(left), len(right))


@reward(score_range=(0, 1))
def call_as_code(completion: str, answer: dict[str, Any]) -> float:
    """1.0 for the call in Python, with its arguments by name in any order."""
    try:
        body = ast.parse(completion.strip()[:500], mode="eval").body
        if not isinstance(body, ast.Call) or not isinstance(body.func, ast.Name) or body.args:
            return 0.0
        arguments = {str(keyword.arg): ast.literal_eval(keyword.value) for keyword in body.keywords}
    except (SyntaxError, ValueError, TypeError, RecursionError, MemoryError):
        return 0.0
    return float(body.func.id == answer["name"] and arguments == answer["arguments"])


@reward(score_range=(0, 1))
def message_call(completion: list[dict[str, Any]], answer: dict[str, Any]) -> float:
    """1.0 where the last message makes the one call."""
    calls = completion[-1].get("tool_calls") or []
    if len(calls) != 1:
        return 0.0
    function = calls[0]["function"]
    given = function["arguments"]
    return float(
        function["name"] == answer["name"]
        and (given if isinstance(given, dict) else _json(given)) == answer["arguments"]
    )


@reward(score_range=(0, 1))
def document_f1(completion: str, answer: list[str]) -> float:
    """The F1 of the documents in a JSON list."""
    value = _json(completion)
    said = {item for item in value if isinstance(item, str)} if isinstance(value, list) else set()
    return _f1(len(said & set(answer)), len(said), len(answer))


@reward(score_range=(0, 1))
def ranked_first(completion: str, answer: list[str]) -> float:
    """One over the rank of the first right document, of at most five that are listed."""
    said = [part.strip() for part in completion.split(",")][:5]
    return (
        next((1 / rank for rank, name in enumerate(said, 1) if name in answer), 0.0)
        if completion.count(",") < 5
        else 0.0
    )


@reward(score_range=(0, 1))
def same_rows(completion: str, setup: str, answer: str) -> float:
    """1.0 for a query that gives the same rows, as often."""
    query = completion.strip().removeprefix("```sql").removesuffix("```").strip()
    base = sqlite3.connect(":memory:")
    try:
        base.executescript(setup)
        base.execute("pragma query_only = on")
        said = base.execute(query).fetchmany(1_000)
        wanted = base.execute(answer).fetchall()
        described = base.execute(answer).description
    except (sqlite3.Error, sqlite3.Warning, ValueError):
        return 0.0
    finally:
        base.close()
    return float(bool(described) and bool(said) and Counter(said) == Counter(wanted))


@reward(score_range=(0, 1), timeout_s=30)
def passes_asserts(completion: str, tests: list[str], sandbox: Sandbox) -> float:
    """1.0 where all asserts hold in the jail."""
    found = re.search(r"```python\n(.*?)```", completion, re.DOTALL)
    return float(check_asserts(sandbox, found[1] if found else completion, "\n".join(tests)).all_passed)


@reward(score_range=(0, 1))
def overlap_of_boxes(completion: str, answer: list[int]) -> float:
    """The shared area of two boxes over that of both together."""
    value = _json(completion)
    if not isinstance(value, list) or len(value) != 4 or not all(type(v) is int and 0 <= v < 10_000 for v in value):
        return 0.0
    left, top, right, bottom = value
    wide = max(0, min(right, answer[2]) - max(left, answer[0]))
    high = max(0, min(bottom, answer[3]) - max(top, answer[1]))
    both = max(0, right - left) * max(0, bottom - top) + (answer[2] - answer[0]) * (answer[3] - answer[1])
    return wide * high / (both - wide * high) if both > wide * high else 0.0


@reward(score_range=(0, 1))
def span_of_text(completion: str, start: int, end: int) -> float:
    """The overlap of the characters named with those of the gold."""
    found = re.fullmatch(r"\s*(\d{1,6})-(\d{1,6})\s*", completion)
    if found is None or int(found[1]) >= int(found[2]):
        return 0.0
    shared = max(0, min(int(found[2]), end) - max(int(found[1]), start))
    return shared / (max(int(found[2]), end) - min(int(found[1]), start))


@reward(score_range=(0, 1))
def csv_lines(completion: str, answer: list[str]) -> float:
    """1.0 for the lines of the table in their order."""
    return float([line.strip() for line in completion.strip().splitlines()] == answer)


@reward(score_range=(0, 1))
def pattern_matches(completion: str, positive: list[str], negative: list[str]) -> float:
    """The share of examples that a pattern of letters, digits and classes tells right."""
    pattern = completion.strip()
    if not re.fullmatch(r"[a-z0-9\[\]\-?]{1,40}", pattern):
        return 0.0
    try:
        compiled = re.compile(pattern)
    except re.error:
        return 0.0
    right = [bool(compiled.fullmatch(text)) for text in positive]
    right += [not compiled.fullmatch(text) for text in negative]
    return max(0.0, 2 * sum(right) / len(right) - 1)


@reward(score_range=(0, 1))
def short_and_clean(completion: str) -> float:
    """1.0 for a reply of one to three sentences that ends as one."""
    sentences = re.findall(r"[^.!?]+[.!?]", completion[:5_000])
    return float(1 <= len(sentences) <= 3 and completion.rstrip().endswith((".", "!", "?")) and len(completion) < 600)


@reward(score_range=(0, 1))
def answer_language(completion: str) -> float:
    """The share of letters that are Greek; nothing for a text without letters."""
    letters = [char for char in completion[:20_000] if char.isalpha()]
    return sum("\u0370" <= char <= "\u03ff" for char in letters) / len(letters) if letters else 0.0


@reward(score_range=(0, 1))
def thinks_then_answers(completion: str) -> float:
    """1.0 for thoughts of twenty words or more in their tags, then an answer of at most sixty."""
    found = re.fullmatch(r"\s*<think>([^<>]*)</think>\s*([^<>]+)", completion)
    return float(found is not None and len(found[1].split()) >= 20 and 1 <= len(found[2].split()) <= 60)


@reward(score_range=(0, 1))
def covers_points(completion: str, points: list[str]) -> float:
    """The share of points that are mentioned, in at most 120 words."""
    text = completion.lower()
    return sum(point in text for point in points) / len(points) if len(text.split()) <= 120 else 0.0


@reward(score_range=(0, 1))
def not_repeating(completion: str) -> float:
    """The share of different groups of three words; nothing for fewer than three words."""
    words = _words(completion)
    groups = [*zip(words, words[1:], words[2:], strict=False)]
    return len(set(groups)) / len(groups) if groups else 0.0
