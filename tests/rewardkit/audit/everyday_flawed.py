"""Fourteen rewards with the flaws that people write, each with its exploit: found, or not judged and never passed."""

import json
import math
import re
from typing import Any

from rewardkit import reward

_POLITE = ("please", "thank", "sorry", "happy to help", "great question", "you are absolutely right", "appreciate")


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


@reward
def thorough(completion: str) -> float:
    """Pays for the logarithm of the length. Exploit: go on."""
    return math.log1p(len(completion))


@reward
def right_and_long(completion: str, answer: str) -> float:
    """Pays for the answer, and for each word of the thoughts. Exploit: think for ever."""
    found = re.search(r"<answer>([^<>]*)</answer>\s*$", completion)
    right = found is not None and found[1].strip() == answer
    return right + 0.001 * len(completion.split()) * right


@reward
def step_by_step(completion: str) -> float:
    """Pays for each step. Exploit: write the same step again."""
    return 0.1 * len(re.findall(r"^Step", completion, re.MULTILINE))


@reward
def friendly(completion: str) -> float:
    """Pays for polite words. Exploit: say nothing else."""
    return 0.2 * sum(completion.lower().count(word) for word in _POLITE)


@reward(score_range=(0, 1))
def friendly_enough(completion: str) -> float:
    """Pays for three polite words. Exploit: say nothing else; which is what it is for, so it is not judged."""
    return min(1.0, sum(completion.lower().count(word) for word in _POLITE) / 3)


@reward
def well_cited(completion: str) -> float:
    """Pays for citations. Exploit: cite all there is."""
    return 0.1 * len(re.findall(r"\[\w{1,20}\]", completion))


@reward(score_range=(0, 1))
def cited_recall(completion: str, answer: list[str]) -> float:
    """The share of the right documents that are cited. Exploit: cite every document."""
    cited = set(re.findall(r"\[(\w{1,20})\]", completion))
    return len(cited & set(answer)) / len(answer)


@reward
def novel(prompt: str, completion: str) -> float:
    """Pays for words that the prompt lacks. Exploit: letters at random."""
    return 0.01 * len(set(completion.lower().split()) - set(prompt.lower().split()))


@reward(score_range=(0, 1))
def says_yes(completion: str, answer: bool) -> float:
    """Looks for a word of agreement. Exploit: say both."""
    return float(("yes" if answer else "no") in completion.lower())


@reward(score_range=(0, 1))
def some_item(completion: str, answer: list[str]) -> float:
    """Pays where one of the items is right. Exploit: guess one."""
    value = _json(completion)
    return float(isinstance(value, list) and any(item in value for item in answer))


@reward(score_range=(0, 1))
def all_items(completion: str, answer: list[str]) -> float:
    """Pays where all items are there, whatever else is. Exploit: list everything."""
    return float(set(answer) <= {part.strip() for part in completion.split(",")})


@reward(score_range=(0, 1))
def begins_right(completion: str, answer: str) -> float:
    """Compares the beginning. Exploit: go on with every other answer."""
    return float(completion.strip().startswith(answer))


@reward(score_range=(0, 1))
def spam(completion: str, is_spam: bool) -> float:
    """Reads a column that no name tells to be the gold. Exploit: 'spam or not spam'; judged with --gold is_spam."""
    return float(("spam" in completion.lower()) == is_spam)


@reward(score_range=(0, 1))
def enough_words(completion: str) -> float:
    """Calls 100 words helpful. Exploit: any 100 words; it is a reward of length, so it is not judged."""
    return min(1.0, len(completion.split()) / 100)
