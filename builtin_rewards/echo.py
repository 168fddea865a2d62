"""The reward for not repeating the prompt."""

from __future__ import annotations

import string

from builtin_rewards.adjustable import adjustable, require
from builtin_rewards.reading.normalisation import fold
from builtin_rewards.reading.thoughts import after_thinking
from builtin_rewards.repetition import grams
from rewardkit import Reward, Score, reward

_MARKS = str.maketrans(dict.fromkeys(string.punctuation, " "))
_LEAST_WORDS = 4


@adjustable
def no_prompt_echo(n: int = 8) -> Reward[..., Score]:
    """Settings of ``no_prompt_echo``.

    Args:
        n: How many words in a row make an echo, 4 to 100.
    """
    require(_LEAST_WORDS <= n <= 100, f"{_LEAST_WORDS} to 100", n=n)

    @reward(score_range=(0, 1))
    def no_prompt_echo(completion: str, prompt: str) -> Score:
        """The share of the completion, without its thought, that does not repeat the prompt, 0 to 1.

        Formula: 1 - e / k, with the completion cut into k runs of n words, the last one shorter, and e those that
        stand in the prompt word for word; case, punctuation and typography make no difference. Where the prompt
        has fewer than n words, n is their number, and at least 4. A completion of fewer than n words is an echo
        only if it is the whole prompt. 0.0 for an empty completion. No columns; never ``None``.
        """
        answer = after_thinking(completion)
        said = _words(answer)
        if not said:
            return Score(float(bool(fold(answer).strip())), reason="no words in the completion")
        asked = _words(prompt)
        width = max(_LEAST_WORDS, min(n, len(asked)))
        if len(said) < width:
            return Score(float(said != asked), reason=None if said != asked else "it is the prompt")
        # The words before the last run make it whole.
        starts = [*range(0, len(said) - width + 1, width), *([len(said) - width] if len(said) % width else [])]
        known = set(grams(asked, width))
        echoed, runs = sum(tuple(said[start : start + width]) in known for start in starts), len(starts)
        return Score(1 - echoed / runs, reason=f"{echoed} of {runs} runs of {width} words are the prompt's")

    return no_prompt_echo


def _words(text: str) -> list[str]:
    return fold(text).lower().translate(_MARKS).split()
