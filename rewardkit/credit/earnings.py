"""What each turn of a completion earned by one reward, read from its outcome, with the place of each turn."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Any, NamedTuple

from rewardkit.steps.credit_plan import COUNT, TURN
from rewardkit.types import Outcome, Status, Text


class TurnScore(NamedTuple):
    """What one turn of the assistant earned.

    Attributes:
        message: The index of its message in the completion; 0 in a text.
        score: Its number; ``None`` where it is not known.
        tokens: Its first token among the completion's, and the one behind its last; ``None`` where that is not known.
    """

    message: int
    score: float | None
    tokens: tuple[int, int] | None = None


class TurnNumbers(NamedTuple):
    """What a reward says of the turns of a completion.

    Attributes:
        numbers: One a turn, ``None`` where it is not known.
        stand_in: Counts for each turn of a call that failed; ``None`` where nothing stands in, or the call did not
            fail.
    """

    numbers: tuple[float | None, ...]
    stand_in: float | None = None


def turn_scores(
    completion: Text, outcome: Outcome, spans: Sequence[tuple[int, int]] | None = None
) -> tuple[TurnScore, ...]:
    """Return what each turn of the assistant earned, in order, by one reward.

    Args:
        completion: The completion that was scored.
        outcome: What became of it under a reward with ``credit``. Where it failed or was skipped, no number is known.
        spans: The tokens of each turn, as :func:`turn_spans` returns them; without effect where there are more or fewer
            than turns, because then it is not known whose they are.
    """
    messages = [0]
    if not isinstance(completion, str):
        messages = [index for index, message in enumerate(completion) if message["role"] == "assistant"]
    numbers = _numbers(outcome, len(messages))
    places: Sequence[tuple[int, int] | None] = [None] * len(messages)
    if spans is not None and len(spans) == len(messages):
        places = spans
    return tuple(map(TurnScore, messages, numbers, places))


def turn_numbers(completion: Text, outcome: Outcome) -> TurnNumbers:
    """Return the numbers of :func:`turn_scores` alone, and what stands in for a call that failed."""
    numbers = tuple(turn.score for turn in turn_scores(completion, outcome))
    return TurnNumbers(numbers, outcome.score if outcome.status is Status.FAILED else None)


def _numbers(outcome: Outcome, count: int) -> list[float | None]:
    """Return the numbers of ``count`` turns; none is known where a reward counted otherwise, or gave none."""
    if outcome.status is not Status.SCORED or outcome.metrics.get(COUNT) != count:
        return [None] * count
    return [outcome.metrics.get(f"{TURN}{turn}") for turn in range(count)]


def turn_spans(mask: Iterable[Any]) -> list[tuple[int, int]]:
    """Return where the model wrote: first token, and the one behind the last, of each run of true values.

    >>> turn_spans([1, 1, 0, 0, 1])
    [(0, 2), (4, 5)]
    """
    spans, start = [], 0
    for is_of_model, run in groupby(mask, key=bool):
        end = start + sum(1 for _ in run)
        if is_of_model:
            spans.append((start, end))
        start = end
    return spans
