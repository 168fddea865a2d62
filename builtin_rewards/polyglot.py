"""Code in other languages than Python: which code of a completion counts, and whether its language runs here."""

from __future__ import annotations

import logging
import re

from builtin_rewards.reading.answer import AnswerRule, final_answer
from builtin_rewards.reading.markdown import code_blocks, split_fences
from sandbox import LANGUAGES, PYTHON, language_name, why_not_run

_log = logging.getLogger("rewardkit")
_logged: set[str] = set()
_SHELLS = frozenset({"bash"})  # blocks of a shell mostly say how the program is called


def language_of_row(setting: str | None, column: str | None) -> str | None:
    """Return the language that a setting or else a row's column names; ``None`` where neither does."""
    named = setting or column
    return (language_name(named) or PYTHON) if named else None


def skip_reason(language: str | None) -> str | None:
    """Return why the jail cannot run the language of a row, and log it once; ``None`` where it can."""
    reason = None if language is None else why_not_run(language)
    if reason is not None and language not in _logged:
        _logged.add(str(language))
        _log.warning(f"rows are skipped: {reason}")
    return reason


def fenced_language(completion: str) -> str:
    """Return the language of the block that counts, by its fence: Python where there is any, else the last known."""
    blocks, _ = split_fences(final_answer(completion, (AnswerRule.TAG,)))
    names = [language_name(block.mark) for block in blocks if block.mark and block.body.strip()]
    known = [name for name in names if name in LANGUAGES]
    if PYTHON in names or not known:
        return PYTHON
    return next((name for name in reversed(known) if name not in _SHELLS), known[-1])


def code_in_language(completion: str, language: str, entry_point: str | None, prefix: str) -> str | None:
    """Return the code of a completion that counts: the last block in the language, or the last unmarked one.

    With an ``entry_point`` it is the last block that names it; where none does, the last follows the prefix, as a body.
    """
    text = final_answer(completion, (AnswerRule.TAG,))
    blocks = code_blocks(text, Marks(language))
    if not blocks:
        return None
    name = (entry_point or "").rpartition(".")[2]
    if not name:
        return blocks[-1]
    definition = re.compile(rf"\b{re.escape(name)}\b")
    defining = [block for block in blocks if definition.search(block)]
    return defining[-1] if defining else f"{prefix.rstrip()}\n{blocks[-1]}"


class Marks:
    """The marks of fences that stand for a language."""

    def __init__(self, language: str) -> None:
        self._language = language

    def __contains__(self, mark: object) -> bool:
        return isinstance(mark, str) and bool(mark) and language_name(mark) == self._language
