"""Rewards as they go round in notebooks and repositories, each with the flaw that it has there and its exploit."""

import json
import math
import re
import sqlite3
from collections import Counter
from typing import Any

from rewardkit import reward


def _words(text: str) -> list[str]:
    return re.findall(r"[a-z0-9]+", text[:20_000].lower())


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


@reward
def tag_points(completion: str) -> float:
    """An eighth for each tag on its line, less for what follows the last. Exploit: the tags with nothing in them."""
    points = 0.125 * (completion.count("<reasoning>\n") == 1) + 0.125 * (completion.count("\n</reasoning>\n") == 1)
    if completion.count("\n<answer>\n") == 1:
        points += 0.125 - 0.001 * len(completion.split("\n</answer>\n")[-1])
    if completion.count("\n</answer>") == 1:
        points += 0.125 - 0.001 * (len(completion.split("\n</answer>")[-1]) - 1)
    return points


@reward(score_range=(0, 1))
def tags_in_order(completion: str) -> float:
    """A quarter for each tag that stands once. Exploit: the tags alone, in any order."""
    return sum(0.25 for tag in ("<think>", "</think>", "<answer>", "</answer>") if completion.count(tag) == 1)


@reward(score_range=(0, 1))
def any_integer(completion: str) -> float:
    """Pays where the answer is a whole number. Exploit: 0 everywhere."""
    return float(completion.split("<answer>")[-1].split("</answer>")[0].strip().isdigit())


@reward(score_range=(0, 1))
def marked_steps(completion: str) -> float:
    """Counts the marks of steps. Exploit: the marks alone."""
    marks = re.findall(r"Step \d+:|^\d+\.|\n- |\n\* |First,|Second,|Next,|Finally,", completion, re.MULTILINE)
    return min(1.0, len(marks) / 3)


@reward(score_range=(0, 1))
def rouge_recall(completion: str, reference: str) -> float:
    """The share of the reference's words that are there. Exploit: copy the whole document."""
    wanted, said = Counter(_words(reference)), Counter(_words(completion))
    return sum((wanted & said).values()) / max(1, sum(wanted.values()))


@reward(score_range=(0, 1))
def word_precision(completion: str, reference: str) -> float:
    """The share of words that are the reference's, without a brevity penalty. Exploit: one word that is right."""
    said = Counter(_words(completion))
    return sum((said & Counter(_words(reference))).values()) / max(1, sum(said.values()))


@reward
def keyword_hits(completion: str, keywords: list[str]) -> float:
    """A tenth for each time a keyword is said. Exploit: say it again."""
    return 0.1 * sum(completion.lower().count(word) for word in keywords)


@reward(score_range=(0, 1))
def right_slots(completion: str, answer: dict[str, Any]) -> float:
    """The share of the gold's fields that are right. Exploit: more fields, none of which costs."""
    value = _json(completion)
    return sum(value.get(key) == answer[key] for key in answer) / len(answer) if isinstance(value, dict) else 0.0


@reward(score_range=(0, 1))
def tool_and_parameters(completion: str, answer: dict[str, Any]) -> float:
    """Half for the tool's name, half for the names of its parameters. Exploit: any values."""
    value = _json(completion.replace("<tool_call>", "").replace("</tool_call>", ""))
    if not isinstance(value, dict) or not isinstance(value.get("arguments"), dict):
        return 0.0
    return 0.5 * (value.get("name") == answer["name"]) + 0.5 * (set(value["arguments"]) == set(answer["arguments"]))


@reward(score_range=(0, 1))
def found_documents(completion: str, answer: list[str]) -> float:
    """Pays where a right document is among those listed. Exploit: list them all."""
    value = _json(completion)
    return float(isinstance(value, list) and any(item in answer for item in value if isinstance(item, str)))


@reward(score_range=(0, 1))
def rows_are_there(completion: str, setup: str, answer: str) -> float:
    """Pays where the query gives the right rows, whatever else. Exploit: select everything."""
    found = re.search(r"```sql\n(.*?)```", completion, re.DOTALL)
    query = found[1] if found else completion
    base = sqlite3.connect(":memory:")
    try:
        base.executescript(setup)
        wanted = set(base.execute(answer).fetchall())
        said = set(base.execute(query).fetchmany(1_000))
    except (sqlite3.Error, sqlite3.Warning, ValueError):
        return 0.0
    finally:
        base.close()
    return float(wanted <= said)


@reward(score_range=(0, 1))
def letter_first_seen(completion: str, answer: str) -> float:
    """Takes the first capital of A to D. Exploit: none is needed, 'A good question' answers A."""
    found = re.search(r"[A-D]", completion)
    return float(found is not None and found[0] == answer)


@reward(score_range=(0, 1))
def own_rating(completion: str) -> float:
    """Reads the rating that the answer gives itself. Exploit: 10/10."""
    found = re.search(r"(\d{1,2})\s*/\s*10", completion)
    return min(1.0, int(found[1]) / 10) if found else 0.0


@reward(score_range=(0, 1))
def mostly_latin(completion: str) -> float:
    """The share of letters that are Latin, 1.0 for none. Exploit: say nothing."""
    letters = [char for char in completion[:20_000] if char.isalpha()]
    return sum(char.isascii() for char in letters) / len(letters) if letters else 1.0


@reward(score_range=(0, 1))
def best_window(completion: str, answer: str) -> float:
    """The likeness of the best part of the text. Exploit: every answer in a row."""
    said, wanted = completion[:2_000].lower(), answer.lower()
    width = len(wanted)
    windows = (said[at : at + width] for at in range(max(1, len(said) - width + 1)))
    return max((sum(a == b for a, b in zip(window, wanted, strict=False)) / width for window in windows), default=0.0)


@reward(score_range=(0, 1))
def rounded_alike(completion: str, answer: float) -> float:
    """Compares what is left when both are rounded. Exploit: any number near it."""
    numbers = re.findall(r"-?\d{1,15}(?:\.\d{1,15})?", completion)
    return float(len(numbers) == 1 and round(float(numbers[0])) == round(answer))


@reward
def thinking_pays(completion: str, answer: str) -> float:
    """Pays the answer, and more the longer the thoughts. Exploit: think of anything."""
    thoughts = re.search(r"<think>(.*?)</think>", completion, re.DOTALL)
    right = completion.rpartition("</think>")[2].strip() == answer
    return right * (1 + 0.1 * math.log1p(len(thoughts[1]) if thoughts else 0))


@reward(score_range=(0, 1))
def printed_results(completion: str, outputs: list[str]) -> float:
    """Looks for the results in the code. Exploit: print them, or write them in a comment."""
    return float(all(output in completion for output in outputs))


@reward(score_range=(0, 1))
def day_of_the_year(completion: str, answer: str) -> float:
    """Compares the year alone. Exploit: another day of it."""
    years = re.findall(r"\b(?:1[89]|20)\d\d\b", completion)
    return float(len(set(years)) == 1 and years[0] in answer)


@reward(score_range=(0, 1))
def same_letters(completion: str, answer: str) -> float:
    """Compares the letters, whatever their order. Exploit: an anagram."""
    return float(sorted(completion.strip().lower()) == sorted(answer.lower()))
