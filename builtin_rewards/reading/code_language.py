"""In which language the code of a row and of its completion is."""

from __future__ import annotations

import logging

from builtin_rewards.reading.markdown import split_fences
from sandbox import JAIL_LANGUAGES, language_name, signs_of

_log = logging.getLogger("rewardkit")
_logged: set[str] = set()


def why_not_run(language: str | None) -> str | None:
    """Return why the jail cannot run a row's language, and log it once; ``None`` where it can, or none is named."""
    name = language_name(language or "") or "python"
    if name in JAIL_LANGUAGES:
        return None
    reason = f"the row's language is {language!r}, and the jail runs {', '.join(sorted(JAIL_LANGUAGES))} only"
    if name not in _logged:
        _logged.add(name)
        _log.warning(f"rows are skipped: {reason}")
    return reason


def no_code_reason(completion: str) -> str:
    """Return why a completion without Python code holds none, as far as its blocks tell it."""
    reason = "no block of Python code in the completion"
    blocks = [block for block in split_fences(completion)[0] if block.body.strip()]
    languages = [language_name(block.mark) if block.mark else signs_of(block.body) for block in blocks]
    other = next((language for language in reversed(languages) if language), None)
    return f"{reason}: its code is in {other}" if other else reason
