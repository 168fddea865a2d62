"""Fifty sound rewards of all kinds, as people write them; the audit must accuse none of them."""

import json
import re
from collections import Counter
from datetime import datetime
from fractions import Fraction
from typing import Any

from rewardkit import reward

_BOX = re.compile(r"\\boxed\{([^{}]{0,60})\}")
_LABELS = {"pos": "positive", "neg": "negative", "good": "positive", "bad": "negative"}
_SCALES = {"mm": 0.001, "cm": 0.01, "m": 1.0, "km": 1000.0}


def _number(text: str) -> Fraction | None:
    text = text.strip().strip("$").replace(",", "")
    return Fraction(text) if re.fullmatch(r"-?\d{1,15}(\.\d{1,15}|/[1-9]\d{0,8})?", text) else None


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _words(text: str) -> list[str]:
    return re.findall(r"[a-z0-9]+", text[:20_000].lower())


def _f1(left: list[str], right: list[str]) -> float:
    common = sum((Counter(left) & Counter(right)).values())
    return 2 * common / (len(left) + len(right)) if common else 0.0


@reward(score_range=(0, 1))
def boxed_number(completion: str, answer: str) -> float:
    """1.0 where the one box holds the number."""
    boxes = _BOX.findall(completion)
    return float(len(boxes) == 1 and _number(boxes[0]) is not None and _number(boxes[0]) == _number(answer))


@reward(score_range=(0, 1))
def last_hashes(completion: str, answer: str) -> float:
    """1.0 where the last line is '#### ' and the final number of the worked solution."""
    last = completion.strip().rpartition("\n")[2]
    return float(last == f"#### {answer.rpartition('#### ')[2].strip()}")


@reward(score_range=(0, 1))
def final_call(completion: str, answer: str) -> float:
    """1.0 only for FINAL(answer)."""
    return float(completion.strip() == f"FINAL({answer})")


@reward(score_range=(0, 1))
def last_final(completion: str, answer: str) -> float:
    """1.0 where the text ends with its only FINAL(...), and that is the answer."""
    found = re.findall(r"FINAL\(([^()]{0,40})\)", completion)
    return float(found == [answer] and completion.rstrip().endswith(f"FINAL({answer})"))


@reward(score_range=(0, 1))
def python_call(completion: str, answer: str) -> float:
    """1.0 for the call of the tool, with any blanks."""
    return float("".join(completion.split()) == f'get_weather(city="{answer}")')


@reward(score_range=(0, 1))
def tool_object(completion: str, answer: str) -> float:
    """1.0 for the tool's call as a JSON object."""
    return float(_json(completion) == {"name": "get_weather", "arguments": {"city": answer}})


@reward(score_range=(0, 1))
def two_lines(completion: str, answer: str) -> float:
    """1.0 for a heading and the answer below it."""
    return float(completion.strip().split("\n") == ["## City", answer])


@reward(score_range=(0, 1))
def letter_home(completion: str, answer: str) -> float:
    """1.0 for the letter with the right place in it."""
    return float(" ".join(completion.split()) == f"Dear Ann, we meet in {answer} on Monday. Yours, Ben")


@reward(score_range=(0, 1))
def reasoned(completion: str, answer: str) -> float:
    """1.0 for some reasoning behind its label, then the answer behind its own."""
    found = re.fullmatch(r"Reasoning: [^\n]{5,2000}\nAnswer: ([^\n]{1,60})\s*", completion)
    return float(found is not None and found[1] == answer)


@reward(score_range=(0, 1))
def think_answer(completion: str, answer: str) -> float:
    """1.0 for the answer in its tags behind thoughts in theirs."""
    found = re.fullmatch(r"\s*<think>([^<>]*)</think>\s*<answer>([^<>]*)</answer>\s*", completion)
    return float(found is not None and found[2].strip() == answer and bool(found[1].strip()))


@reward(score_range=(0, 1))
def json_value(completion: str, answer: Any) -> float:
    """1.0 for the gold as JSON."""
    return float(_json(completion) == answer)


@reward(score_range=(0, 1))
def json_as_text(completion: str, answer: str) -> float:
    """1.0 for JSON that is equal to the gold's text of JSON."""
    value = _json(completion)
    return float(value is not None and value == _json(answer))


@reward(score_range=(0, 1))
def as_set(completion: str, answer: list[str]) -> float:
    """1.0 for the gold's items with commas between, in any order."""
    return float({part.strip() for part in completion.split(",")} == set(answer))


@reward(score_range=(0, 1))
def set_of_json(completion: str, answer: list[str]) -> float:
    """1.0 for a JSON list with the gold's items in any order."""
    value = _json(completion)
    return float(isinstance(value, list) and all(isinstance(v, str) for v in value) and set(value) == set(answer))


@reward(score_range=(0, 1))
def item_f1(completion: str, answer: list[str]) -> float:
    """The F1 of the items, one a line."""
    items = [line.strip("- ").strip() for line in completion.splitlines() if line.strip()]
    return _f1(items, answer)


@reward(score_range=(0, 1))
def any_of(completion: str, answer: list[str]) -> float:
    """1.0 for one of the answers that are right."""
    return float(completion.strip().lower() in {text.lower() for text in answer})


@reward(score_range=(0, 1))
def in_order(completion: str, answer: list[int]) -> float:
    """1.0 for the numbers in their order, with commas."""
    return float([part.strip() for part in completion.split(",")] == [str(number) for number in answer])


@reward(score_range=(0, 1))
def truth_word(completion: str, answer: bool) -> float:
    """1.0 for yes or no."""
    return float(completion.strip().lower().rstrip(".") == ("yes" if answer else "no"))


@reward(score_range=(0, 1))
def tagged_truth(completion: str, answer: bool) -> float:
    """1.0 for the truth value in its tags."""
    found = re.fullmatch(r"<answer>\s*(true|false)\s*</answer>", completion.strip(), re.IGNORECASE)
    return float(found is not None and (found[1].lower() == "true") == answer)


@reward(score_range=(0, 1))
def same_label(completion: str, label: str) -> float:
    """1.0 for the label, in any case."""
    return float(completion.strip().lower() == label.lower())


@reward(score_range=(0, 1))
def like_label(completion: str, label: str) -> float:
    """1.0 for the label or another word for it."""
    said, gold = (_LABELS.get(text, text) for text in (completion.strip().lower(), label.lower()))
    return float(said == gold)


@reward(score_range=(0, 1))
def same_day(completion: str, answer: str) -> float:
    """1.0 for the day, as ISO or in words."""
    return float(_day(completion.strip()) is not None and _day(completion.strip()) == _day(answer))


def _day(text: str) -> datetime | None:
    for form in ("%Y-%m-%d", "%d %B %Y"):
        try:
            return datetime.strptime(text[:40], form)
        except ValueError:
            continue
    return None


@reward(score_range=(0, 1))
def same_length(completion: str, answer: str) -> float:
    """1.0 for the length in any unit."""
    return float(_metres(completion) is not None and _metres(completion) == _metres(answer))


def _metres(text: str) -> float | None:
    found = re.fullmatch(r"\s*(\d{1,9}(?:\.\d{1,6})?)\s*(mm|cm|m|km)\s*", text)
    return round(float(found[1]) * _SCALES[found[2]], 6) if found else None


@reward(score_range=(0, 1))
def same_fraction(completion: str, answer: str) -> float:
    """1.0 for the same number, as a fraction or a decimal."""
    return float(_number(completion) is not None and _number(completion) == _number(answer))


@reward(score_range=(0, 1))
def same_share(completion: str, answer: str) -> float:
    """1.0 for the share, in percent or as a number."""
    return float(_share(completion) is not None and _share(completion) == _share(answer))


def _share(text: str) -> Fraction | None:
    text = text.strip()
    number = _number(text.removesuffix("%"))
    return number / 100 if number is not None and text.endswith("%") else number


@reward(score_range=(0, 1))
def same_time(completion: str, answer: str) -> float:
    """1.0 for the time of day, of 24 or of 12 hours."""
    return float(_minutes(completion) is not None and _minutes(completion) == _minutes(answer))


def _minutes(text: str) -> int | None:
    found = re.fullmatch(r"\s*([01]?\d|2[0-3]):([0-5]\d)(?: ?([ap])m)?\s*", text, re.IGNORECASE)
    if found is None:
        return None
    hour = int(found[1])
    if found[3]:
        hour = hour % 12 + 12 * (found[3].lower() == "p")
    return hour * 60 + int(found[2])


@reward(score_range=(0, 1))
def closeness(completion: str, answer: float) -> float:
    """1.0 for the number, less the farther away."""
    number = _number(completion)
    return 0.0 if number is None else max(0.0, 1.0 - abs(float(number) - answer) / abs(answer))


@reward(score_range=(0, 1))
def amount_of_money(completion: str, answer: str) -> float:
    """1.0 for the amount in dollars."""
    found = re.fullmatch(r"\$(\d{1,9}(?:\.\d\d)?)", completion.strip())
    return float(found is not None and Fraction(found[1]) == Fraction(answer.strip("$")))


@reward(score_range=(0, 1))
def one_letter(completion: str, answer: str) -> float:
    """1.0 for the letter, bare or in brackets."""
    found = re.fullmatch(r"\(?([A-D])\)?\.?", completion.strip())
    return float(found is not None and found[1] == answer)


@reward(score_range=(0, 1))
def several_letters(completion: str, answer: str) -> float:
    """1.0 for exactly the right letters, in any order."""
    said = re.fullmatch(r"[A-D](?:, ?[A-D])*", completion.strip())
    return float(said is not None and set(re.findall("[A-D]", said[0])) == set(re.findall("[A-D]", answer)))


@reward(score_range=(0, 1))
def same_move(completion: str, answer: str) -> float:
    """1.0 for the move of chess, with or without its marks."""
    return float(completion.strip().rstrip("+#!?") == answer.rstrip("+#!?"))


@reward(score_range=(0, 1))
def word_f1(completion: str, answer: str) -> float:
    """The F1 of the words."""
    return _f1(_words(completion), _words(answer))


@reward(score_range=(0, 1))
def summary_overlap(completion: str, reference: str) -> float:
    """The F1 of the words with those of the reference summary."""
    return _f1(_words(completion), _words(reference))


@reward(score_range=(0, 1))
def cited_f1(completion: str, answer: list[str]) -> float:
    """The F1 of the documents that are cited."""
    return _f1(sorted(set(re.findall(r"\[(\w{1,20})\]", completion))), sorted(answer))


@reward(score_range=(0, 1))
def cites_something(completion: str, documents: list[dict[str, Any]]) -> float:
    """1.0 for a sentence that cites documents, all of which there are."""
    cited = set(re.findall(r"\[(\w{1,20})\]", completion))
    ids = {document["id"] for document in documents}
    return float(bool(cited) and cited <= ids and len(_words(completion)) >= 5 + len(cited))


@reward(score_range=(0, 1))
def words_between(completion: str) -> float:
    """1.0 for 20 to 200 words."""
    return float(20 <= len(completion.split()) <= 200)


@reward(score_range=(0, 1))
def words_near(completion: str, target: int) -> float:
    """1.0 for as many words as the row asks for, less the farther away."""
    return max(0.0, 1.0 - abs(len(completion.split()) - target) / target)


@reward(score_range=(-1, 0))
def not_too_long(completion: str) -> float:
    """0.0 up to 2,000 characters, then falling to -1.0."""
    return -min(1.0, max(0, len(completion) - 2_000) / 2_000)


@reward(score_range=(0, 1))
def grows_to_a_bound(completion: str) -> float:
    """More for more words, up to 400."""
    return min(1.0, len(completion.split()) / 400)


@reward(score_range=(0, 1))
def greets_and_thanks(completion: str) -> float:
    """Half for a greeting, half for thanks."""
    text = completion.lower()
    return 0.5 * bool(re.match(r"\s*(hello|hi|dear)\b", text)) + 0.5 * ("thank" in text)


@reward(score_range=(0, 1))
def calm(completion: str) -> float:
    """1.0 for words without exclamation marks and capitals all through."""
    words = re.findall(r"[A-Za-z]{2,}", completion[:20_000])
    return float(bool(words) and "!" not in completion and not any(word.isupper() for word in words))


@reward(score_range=(0, 1))
def in_chinese(completion: str) -> float:
    """The share of letters that are Chinese."""
    letters = [char for char in completion[:20_000] if char.isalpha()]
    return sum("\u4e00" <= char <= "\u9fff" for char in letters) / len(letters) if letters else 0.0


@reward(score_range=(0, 1))
def german_sentence(completion: str, answer: str) -> float:
    """1.0 for the answer in its German sentence."""
    return float(completion.strip() == f"Die Antwort ist {answer}.")


@reward(score_range=(0, 1))
def covers(completion: str, keywords: list[str]) -> float:
    """The share of the row's keywords that are mentioned."""
    text = completion.lower()
    return sum(word.lower() in text for word in keywords) / len(keywords)


@reward(score_range=(0, 1))
def avoids(completion: str, forbidden: list[str]) -> float:
    """1.0 for words without any of those that are forbidden."""
    words = _words(completion)
    return float(bool(words) and not set(words) & set(forbidden))


@reward(score_range=(0, 1))
def different_words(completion: str) -> float:
    """The share of words that are different."""
    words = _words(completion)
    return len(set(words)) / len(words) if words else 0.0


@reward(score_range=(0, 1))
def table_of(completion: str) -> float:
    """1.0 for a table with a heading, a rule and two rows of two cells."""
    lines = [line for line in completion.strip().split("\n") if line.strip()]
    rows = [re.fullmatch(r"\|[^|\n]*\w[^|\n]*\|[^|\n]*\w[^|\n]*\|", line) for line in lines[2:4]]
    return float(len(lines) >= 4 and bool(re.fullmatch(r"\|(?: ?-+ ?\|){2}", lines[1])) and all(rows))


@reward(score_range=(0, 1))
def has_fields(completion: str) -> float:
    """1.0 for an object with a name and an age, half for one of them."""
    value = _json(completion)
    if not isinstance(value, dict):
        return 0.0
    return 0.5 * isinstance(value.get("name"), str) + 0.5 * (type(value.get("age")) is int)


@reward(score_range=(0, 1))
def right_and_neat(completion: str, answer: str) -> float:
    """0.8 for the number in the one box, 0.2 more for a short text around it."""
    boxes = _BOX.findall(completion)
    right = len(boxes) == 1 and _number(boxes[0]) is not None and _number(boxes[0]) == _number(answer)
    return 0.8 * right + 0.2 * (right and len(completion) < 500)


@reward(score_range=(-1, 1))
def signed(completion: str, answer: str) -> float:
    """1.0 for the answer in its tags, -0.5 for another, -1.0 without tags."""
    found = re.fullmatch(r"<answer>([^<>]*)</answer>", completion.strip())
    if found is None:
        return -1.0
    return 1.0 if found[1].strip() == answer else -0.5


@reward(score_range=(0, 1))
def last_message(completion: list[dict[str, Any]], answer: str) -> float:
    """1.0 where the last message is the answer."""
    return float(str(completion[-1]["content"]).strip() == answer)


@reward(score_range=(0, 1))
def in_range(completion: str, low: float, high: float) -> float:
    """1.0 for a number between the row's bounds."""
    number = _number(completion)
    return float(number is not None and low <= number <= high)
