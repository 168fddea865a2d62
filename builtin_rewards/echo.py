"""The reward for not repeating the prompt."""

from __future__ import annotations

import string

from builtin_rewards.adjustable import adjustable, require
from builtin_rewards.reading.normalisation import fold
from builtin_rewards.reading.thoughts import after_thinking
from builtin_rewards.repetition import grams
from rewardkit import Reward, Score, reward

_MARKS = str.maketrans(dict.fromkeys(string.punctuation, " "))
_LEAST_WORDS = 4  # shorter runs repeat by chance


@adjustable
def no_prompt_echo(n: int = 8) -> Reward[..., Score]:
    """Return ``no_prompt_echo`` with these settings.

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
        tokens = _tokenise(answer)
        if not tokens:
            return Score(float(bool(fold(answer).strip())), reason="no words in the completion")
        prompt_tokens = _tokenise(prompt)
        width = max(_LEAST_WORDS, min(n, len(prompt_tokens)))
        if len(tokens) < width:
            return Score(float(tokens != prompt_tokens), reason=None if tokens != prompt_tokens else "it is the prompt")
        # The words before the last run make it whole.
        starts = [*range(0, len(tokens) - width + 1, width), *([len(tokens) - width] if len(tokens) % width else [])]
        prompt_grams = set(grams(prompt_tokens, width))
        echoes, runs = sum(tuple(tokens[start : start + width]) in prompt_grams for start in starts), len(starts)
        return Score(1 - echoes / runs, reason=f"{echoes} of {runs} runs of {width} words are the prompt's")

    return no_prompt_echo


def _tokenise(text: str) -> list[str]:
    return fold(text).lower().translate(_MARKS).split()
