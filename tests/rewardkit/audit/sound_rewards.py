"""Rewards that do what they say; the audit must call none of them bad."""

import json
import re
from fractions import Fraction
from typing import Any

from rewardkit import Score, reward


@reward(score_range=(0, 1))
def exact(completion: str, answer: str) -> float:
    """1.0 for the answer itself."""
    return float(completion.strip() == answer)


@reward(score_range=(0, 1))
def boxed_number(completion: str, answer: str) -> Score:
    """1.0 if all boxes hold one number and it is the answer."""
    gold = _number(answer)
    if gold is None:
        return Score(None, reason="the gold is no number")
    boxes = {_number(inside) for inside in re.findall(r"\\boxed\{([^{}]{0,60})\}", completion)}
    return Score(float(boxes == {gold}), reason=f"{len(boxes)} different boxes")


def _number(text: str) -> Fraction | None:
    text = text.strip().strip("$*. ").replace(",", "")
    if re.fullmatch(r"[+-]?[0-9]{1,40}(?:\.[0-9]{1,40}|/[0-9]{0,40}[1-9])?", text) is None:
        return None
    return Fraction(text)


@reward(score_range=(0, 1))
def person(completion: str) -> float:
    """1.0 for a JSON object with a name and an age; 0.5 where one of them is there."""
    try:
        value: Any = json.loads(completion)
    except (ValueError, RecursionError):
        return 0.0
    if not isinstance(value, dict):
        return 0.0
    age = value.get("age")
    return 0.5 * isinstance(value.get("name"), str) + 0.5 * (isinstance(age, int) and not isinstance(age, bool))


@reward(score_range=(0, 1))
def choice(completion: str, answer: str) -> float:
    """1.0 if the one letter that is said is the answer."""
    last = completion[-200:].strip().rpartition("\n")[2]
    said = re.fullmatch(r"(?:so )?(?:the answer is |answer: |option )?(?:\*\*|\(|\$)?([A-J])[).*$]{0,3}", last, re.I)
    return float(said is not None and last.isascii() and said[1].upper() == answer.strip("()."))


@reward(score_range=(0, 1))
def marked(completion: str, answer: str) -> float:
    """1.0 if the last line, marked as the answer, is the answer."""
    return float(completion.rpartition("\n")[2] == f"A: {answer}")


@reward(score_range=(0, 1))
def tags(completion: str) -> float:
    """1.0 for thoughts and an answer in their tags, both with words in them, and nothing else."""
    found = re.fullmatch(r"\s*<think>([^<>]*)</think>\s*<answer>([^<>]*)</answer>\s*", completion)
    return float(found is not None and all(re.search(r"\w", part) for part in found.groups()))


@reward(score_range=(0, 1))
def length(completion: str) -> float:
    """1.0 for 40 to 400 characters, falling to 0.0 on both sides."""
    size = len(completion)
    return min(1.0, size / 40) if size <= 400 else max(0.0, 1.0 - (size - 400) / 400)


@reward(score_range=(-1, 1))
def graded(completion: str, answer: str) -> float:
    """1.0 for the answer in its tags, -0.5 for another in tags, -1.0 for no tags."""
    found = re.fullmatch(r"(?:<think>[^<>]*</think>\s*)?<answer>([^<>]*)</answer>", completion.strip())
    if found is None:
        return -1.0
    return 1.0 if found[1].strip() == answer else -0.5
