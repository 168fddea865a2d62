"""A reward without gold answers: how many completions of a group arrive at the same final answer."""

from __future__ import annotations

from collections import Counter

from builtin_rewards.adjustable import adjustable, require
from builtin_rewards.math import DEADLINE_S, same_answer
from builtin_rewards.reading.answer import answer_as_text, extract_answer
from builtin_rewards.reading.normalisation import normalise
from rewardkit import Reward, Score, group_reward
from rewardkit.extending import shorten

_COMPARED_AS = ("math", "text")


@adjustable
def self_consistency(compared_as: str = "math", *, majority: bool = False) -> Reward[..., list[Score]]:
    """Return ``self_consistency`` with these settings.

    Args:
        compared_as: ``math`` finds and compares final answers as ``math_answer`` does; ``text`` compares what is
            marked, in a box or in answer tags, else all that follows the thoughts, as ``normalized_match`` does.
        majority: Score 1.0 for the answer that most completions give and 0.0 for the others, in place of the share.
    """
    require(compared_as in _COMPARED_AS, f"one of {', '.join(_COMPARED_AS)}", compared_as=compared_as)

    @group_reward(timeout_s=DEADLINE_S, score_range=(0, 1))
    def self_consistency(completions: list[str]) -> list[Score]:
        """The share of a group's completions that have this completion's final answer, its own among them, 0 to 1.

        Formula: (completions with an equal final answer) / (completions of the group); with ``majority`` 1.0 for the
        most frequent answer and 0.0 for others. Sources: self-consistency of Wang et al., arXiv 2203.11171; TTRL of Zuo
        et al., arXiv 2504.16084, rewards the majority's answer. A completion without a final answer, or with several,
        scores 0.0 and counts to the group. It needs no gold and pays agreement, not truth: a model may learn to give
        one answer to everything, so watch a held-out set with golds. No columns. ``None`` in a group of one; with
        ``majority`` also for all that answer, where several answers are equally frequent.
        """
        if len(completions) == 1:
            return [Score(None, reason="a group of one: nothing to agree with")]
        answers = [_answer(text, compared_as) for text in completions]
        classes = _classes(answers, compared_as)
        sizes = Counter(label for label in classes if label is not None)
        top = max(sizes.values(), default=0)
        is_tied = [*sizes.values()].count(top) > 1
        scores = []
        for answer, label in zip(answers, classes, strict=True):
            if answer is None or label is None:
                scores.append(Score(0.0, reason="no final answer"))
                continue
            reason = f"{sizes[label]} of {len(completions)} answer {shorten(answer)}"
            value: float | None = sizes[label] / len(completions)
            if majority:
                value = None if is_tied else float(sizes[label] == top)
                reason += ", and others are as many" if is_tied else ""
            scores.append(Score(value, reason=reason))
        return scores

    return self_consistency


def _answer(completion: str, compared_as: str) -> str | None:
    """Return a completion's one final answer; ``None`` where it has no answer, or several."""
    extraction = extract_answer(completion) if compared_as == "math" else answer_as_text(completion)
    if extraction.answer is None or extraction.problem or extraction.stuffed:
        return None
    text = extraction.answer if compared_as == "math" else normalise(extraction.answer)
    return text if text.strip() else None


def _classes(answers: list[str | None], compared_as: str) -> list[int | None]:
    """Return a number for each answer, the same for equal ones."""
    firsts: list[str] = []  # the first answer of each class
    classes: dict[str, int] = {}
    for answer in answers:
        if answer is None or answer in classes:
            continue
        equals = (index for index, first in enumerate(firsts) if compared_as == "math" and same_answer(first, answer))
        classes[answer] = next(equals, len(firsts))
        if classes[answer] == len(firsts):
            firsts.append(answer)
    return [None if answer is None else classes[answer] for answer in answers]
