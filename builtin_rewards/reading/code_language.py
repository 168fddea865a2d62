"""In which language the code of a row and of its completion is."""

from __future__ import annotations

from builtin_rewards.reading.markdown import split_fences
from rewardkit import Score
from sandbox import PYTHON, language_name, signs_of

_WHOLE = "the completion has no fenced block, so all of it counts as code"


def no_code_reason(completion: str, language: str = PYTHON) -> str:
    """Return why a completion without code in a language holds none, as far as its blocks tell it."""
    reason = f"no block of {'Python' if language == PYTHON else language} code in the completion"
    blocks = [block for block in split_fences(completion)[0] if block.body.strip()]
    languages = [language_name(block.mark) if block.mark else signs_of(block.body) for block in blocks]
    other = next((language for language in reversed(languages) if language), None)
    return f"{reason}: its code is in {other}" if other else reason


def with_fence_hint(score: Score, completion: str) -> Score:
    """Return a score whose reason says, where prose was read as code, that a fence was missing."""
    is_unread = score.value == 0.0 and any(
        kind in (score.reason or "") for kind in (": SyntaxError", "IndentationError")
    )
    if not is_unread or "```" in completion or "~~~" in completion:
        return score
    return Score(score.value, reason=f"{score.reason}; {_WHOLE}", metrics=score.metrics)
