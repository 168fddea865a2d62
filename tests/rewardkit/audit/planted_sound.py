"""Ten rewards without a flaw, of the kinds that people write; the audit must accuse none of them."""

import json
import math
import re
from typing import Any

from rewardkit import Score, reward


def _object(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _number(text: str) -> float | None:
    text = text.strip().replace(",", "")
    return float(text) if re.fullmatch(r"-?[0-9]{1,15}(\.[0-9]{1,15})?", text) else None


@reward(score_range=(0, 1))
def close_number(completion: str, answer: float) -> Score:
    """1.0 for a number in one box that is the gold up to rounding, 1e-6 of it."""
    boxes = re.findall(r"\\boxed\{([^{}]{0,40})\}", completion)
    found = _number(boxes[0]) if len(boxes) == 1 else None
    return Score(float(found is not None and math.isclose(found, answer, rel_tol=1e-6)), reason=f"{found} in the box")


@reward(score_range=(0, 1))
def rounded_number(completion: str, answer: str) -> float:
    """1.0 for a number that is the gold when it is rounded to the places which the gold is given with."""
    places = len(answer.partition(".")[2])
    found = _number(completion)
    right = found == float(answer) if places == 0 else found is not None and round(found, places) == float(answer)
    return float(right)


@reward(score_range=(0, 1))
def same_words(completion: str, answer: str) -> float:
    """1.0 for the gold's words, in any case and with any blanks."""
    return float(completion.casefold().split() == answer.casefold().split())


@reward(score_range=(0, 1))
def letter(completion: str, answer: str) -> float:
    """1.0 for the gold's letter, bare or in brackets, in tags."""
    found = re.fullmatch(r"(?:<think>[^<>]*</think>\s*)?<answer>\s*\(?([A-D])\)?\s*</answer>\s*", completion)
    return float(found is not None and found[1] == answer)


@reward(score_range=(0, 1))
def same_object(completion: str, answer: dict[str, Any]) -> float:
    """1.0 for the gold object."""
    return float(_object(completion) == answer)


@reward(score_range=(0, 1))
def right_fields(completion: str, answer: dict[str, Any]) -> float:
    """The share of fields that are right, of all that either side has: partial credit, in full only for all."""
    found = _object(completion)
    if not isinstance(found, dict):
        return 0.0
    right = sum(key in found and found[key] == value for key, value in answer.items())
    return right / len(set(found) | set(answer))


@reward(score_range=(0, 1))
def same_calls(completion: str, answer: list[dict[str, Any]]) -> float:
    """1.0 for the expected calls in tags, in their order, and nothing else."""
    rest = re.sub(r"<tool_call>[^<>]*</tool_call>", "", completion).strip()
    found = [_object(one) for one in re.findall(r"<tool_call>([^<>]*)</tool_call>", completion)]
    return float(found == answer and not rest)


@reward(score_range=(0, 1))
def talk(completion: list[dict[str, Any]], answer: str) -> float:
    """1.0 where the one message is the gold."""
    return float(len(completion) == 1 and completion[0]["content"].strip() == answer)


@reward(score_range=(0, 1))
def talk_calls(completion: list[dict[str, Any]], answer: list[dict[str, Any]]) -> float:
    """1.0 where the last message makes the expected calls."""
    made = [one["function"] for one in completion[-1].get("tool_calls") or []]
    found = [{"name": one["name"], "arguments": _object(one["arguments"])} for one in made]
    return float(found == answer)


@reward(score_range=(0, 1))
def after_a_tool(completion: list[dict[str, Any]], answer: str) -> float:
    """1.0 for the gold in the last message, where a tool was asked before."""
    asked = any(message["role"] == "tool" for message in completion[:-1])
    return float(asked and completion[-1]["content"].strip().rstrip(".") == f"It is {answer}")
