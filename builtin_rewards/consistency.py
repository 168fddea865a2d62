"""A reward without gold answers: how many completions of a group arrive at the same final answer."""

from __future__ import annotations

from builtin_rewards.adjustable import adjustable, require
from builtin_rewards.math import DEADLINE_S, same_answer
from builtin_rewards.reading.answer import answer_as_text, extract_answer
from builtin_rewards.reading.normalisation import normalise
from rewardkit import Reward, Score, group_reward

_SHOWN_CHARS = 60
_COMPARED_AS = ("math", "text")


@adjustable
def self_consistency(compared_as: str = "math", *, majority: bool = False) -> Reward[..., list[Score]]:
    """Settings of ``self_consistency``.

    Args:
        compared_as: ``math`` finds and compares final answers as ``math_answer`` does; ``text`` compares what is
            marked, in a box or in answer tags, else all that follows the thoughts, as ``normalized_match`` does.
        majority: Score 1.0 for the answer that most completions give and 0.0 for the others, in place of the share.
    """
    require(compared_as in _COMPARED_AS, f"one of {', '.join(_COMPARED_AS)}", compared_as=compared_as)

    @group_reward(timeout_s=DEADLINE_S, score_range=(0, 1))
    def self_consistency(completions: list[str]) -> list[Score]:
        """The share of a group's completions that have this completion's final answer, its own among them, 0 to 1.

        Formula: (completions with an equal final answer) / (completions of the group); with ``majority`` 1.0 where no
        answer is given more often and 0.0 elsewhere. Sources: self-consistency of Wang et al., arXiv 2203.11171; the
        majority's answer as a reward is of TTRL, Zuo et al., arXiv 2504.16084. A completion without a final answer, or
        with several, scores 0.0 and counts to the group. It needs no gold and pays agreement, not truth: a model may
        learn to give one answer to everything, so watch a held-out set with golds. No columns. ``None`` in a group of
        one; with ``majority`` also for all that answer, where several answers are given equally often.
        """
        if len(completions) == 1:
            return [Score(None, reason="a group of one: nothing to agree with")]
        read = [_answer(text, compared_as) for text in completions]
        classes = _classes(read, compared_as)
        sizes = [sum(one == other for other in classes) if one is not None else 0 for one in classes]
        most = max(sizes)
        tied = len({one for one, size in zip(classes, sizes, strict=True) if one is not None and size == most}) > 1
        scores = []
        for answer, size in zip(read, sizes, strict=True):
            said = f"{size} of {len(completions)} answer {_shown(answer)}" if answer is not None else "no final answer"
            value: float | None = size / len(completions)
            if majority and answer is not None:
                value = None if tied else float(size == most)
                said += ", and others are as many" if tied else ""
            scores.append(Score(value, reason=said))
        return scores

    return self_consistency


def _answer(completion: str, compared_as: str) -> str | None:
    """Return a completion's one final answer; ``None`` where it has no answer, or several."""
    found = extract_answer(completion) if compared_as == "math" else answer_as_text(completion)
    if found.answer is None or found.problem or found.stuffed:
        return None
    text = found.answer if compared_as == "math" else normalise(found.answer)
    return text if text.strip() else None


def _classes(answers: list[str | None], compared_as: str) -> list[int | None]:
    """Return a number for each answer, the same for equal ones."""
    firsts: list[str] = []
    known: dict[str, int] = {}
    for answer in answers:
        if answer is None or answer in known:
            continue
        same = (place for place, one in enumerate(firsts) if compared_as == "math" and same_answer(one, answer))
        known[answer] = next(same, len(firsts))
        if known[answer] == len(firsts):
            firsts.append(answer)
    return [None if answer is None else known[answer] for answer in answers]


def _shown(text: str) -> str:
    return repr(text if len(text) <= _SHOWN_CHARS else text[:_SHOWN_CHARS] + "...")
