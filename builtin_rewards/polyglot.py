"""Code in other languages than Python: which code of a completion counts, and whether its language runs here."""

from __future__ import annotations

import dataclasses
import logging
import re
from collections.abc import Iterable
from dataclasses import dataclass

from builtin_rewards.reading.answer import AnswerRule, final_answer
from builtin_rewards.reading.markdown import code_blocks, split_fences
from rewardkit import Score
from rewardkit.extending import Versioned
from sandbox import LANGUAGES, PYTHON, ExecutionResult, ExecutionStatus, language_name, toolchain_of, why_not_run

MESSAGE_CHARS = 2_000
"""Characters of a compiler's messages, or of a program's standard error, that the log of a call keeps."""
_log = logging.getLogger("rewardkit")
_logged: set[str] = set()
_SHELLS = frozenset({"bash"})


@dataclass(frozen=True)
class LanguageSetting(Versioned):
    """The language of all rows, where a setting names it; its version is that of the tools that judge them here."""

    name: str | None

    @property
    def version(self) -> str:
        toolchain = toolchain_of(self.name) if self.name else None
        return "" if toolchain is None else toolchain.fingerprint


def judged_by(score: Score, language: str, executions: Iterable[ExecutionResult]) -> Score:
    """Return a score whose reason names the language and the version of its tools; one of Python's as it is.

    What a compiler or a program wrote to standard error before it failed goes to the call's log.
    """
    toolchain = toolchain_of(language)
    if toolchain is None:
        return score
    for execution in executions:
        if execution.status is not ExecutionStatus.OK and execution.stderr.strip():
            _log.info("%s, on standard error:\n%s", language, execution.stderr[:MESSAGE_CHARS])
    tools = f"in {language}, by {toolchain.version}"
    return dataclasses.replace(score, reason=f"{score.reason}; {tools}" if score.reason else tools)


def language_of_row(setting: str | None, column: str | None) -> str | None:
    """Return the language that a setting or else a row's column names, as it stands there; ``None`` for neither."""
    return (setting or "").strip() or (column or "").strip() or None


def skip_reason(language: str | None) -> str | None:
    """Return why the jail cannot run the language of a row, and log it once; ``None`` where it can."""
    reason = None if language is None else why_not_run(language)
    if reason is not None and language not in _logged:
        _logged.add(str(language))
        _log.warning(f"rows are skipped: {reason}")
    return reason


def language_that_counts(named: str | None, completion: str, default: str | None = None) -> str:
    """Return the language of the row where it names one, else the ``default``, or else that of the fence."""
    return language_name(named) if named else default or fenced_language(completion)


def fenced_language(completion: str) -> str:
    """Return the language of the block that counts, by its fence: Python where there is any, else the last usable.

    Blocks of a shell do not count: they mostly say how a program is started.
    """
    blocks, _ = split_fences(final_answer(completion, (AnswerRule.TAG,)))
    marks = [language_name(block.mark) for block in blocks if block.mark and block.body.strip()]
    usable = [mark for mark in marks if mark in LANGUAGES and mark not in _SHELLS]
    return PYTHON if PYTHON in marks or not usable else usable[-1]


def code_in_language(completion: str, language: str, entry_point: str | None, prefix: str) -> str | None:
    """Return the code of a completion that counts: the last block in the language, or else the last without a mark.

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
