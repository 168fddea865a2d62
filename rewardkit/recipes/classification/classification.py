"""Classification with a confidence: the Brier score, which pays most for the confidence that is true."""

import json
import re

from rewardkit import Score, reward

LABELS = ("positive", "negative", "neutral")


@reward(score_range=(0, 1))
def calibrated(completion: str, label: str) -> Score:
    """1 - (confidence - right)^2, with right 1 for the row's label and 0 for another; 0 where it cannot be read.

    Source: Brier, 1950. Reads one JSON object at the end: {"label": ..., "confidence": 0 to 1}.
    """
    match = re.search(r"\{[^{}]*\}\s*$", completion)
    try:
        answer = json.loads(match[0]) if match else {}
    except (ValueError, RecursionError):  # lists in lists without end
        answer = {}
    predicted, confidence = answer.get("label"), answer.get("confidence")
    if predicted not in LABELS or isinstance(confidence, bool) or not isinstance(confidence, int | float):
        return Score(0.0, "no label with a confidence at its end")
    if not 0 <= confidence <= 1:
        return Score(0.0, f"confidence {confidence}: expected 0 to 1")
    right = float(predicted == label)
    return Score(1 - (confidence - right) ** 2, f"{predicted} at {confidence}, is {label}", {"accuracy": right})
