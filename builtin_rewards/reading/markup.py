"""A completion without what is no part of an answer: markdown emphasis, footnote marks, emoji.

Owns the taking away; which part of the rest is the answer is left to :mod:`builtin_rewards.reading.answer`.
"""

from __future__ import annotations

import re

# The mark stands first in each pattern, for the search for it is quick then; what is before it is asked after.
_EMPHASIS = (
    ("***", re.compile(r"\*\*\*(?<![\w*\\)}]\*\*\*)(?=[^\s*])([^*\n]{1,300})(?<=\S)\*\*\*(?![\w*(])")),
    ("**", re.compile(r"\*\*(?<![\w*\\)}]\*\*)(?=[^\s*])((?:[^*\n]|\*(?!\*)){1,300})(?<=\S)\*\*(?![\w*(])")),
    ("*", re.compile(r"\*(?<![\w*\\)}]\*)(?=[^\s*])([^*\n]{1,300})(?<=\S)\*(?![\w*(])")),
    ("__", re.compile(r"__(?<![\w\\)}]__)(?=[^\s_])([^_\n]{1,300})(?<=\S)__(?!\w)")),
    (" _", re.compile(r"(?<= )_(?=[^\s_{])([^_\n]{1,300})(?<=\S)_(?!\w)")),
)
_FOOTNOTE = re.compile(r"\[\^\d{1,3}\]|\[(?<=[\d.!] \[)\d{1,3}\](?=[\s.]*$)|\[(?<=[.!]\[)\d{1,3}\](?=\s*$)")
_MINUS_WORD = re.compile(r"\b(?:minus|negative)\s{1,3}(?=[$\u20ac\u00a3]?\d|\\frac|\\\$)", re.IGNORECASE)
_SURENESS = re.compile(r"\bI(?:'m|\u2019m| am) \d{1,3} ?% (?:sure|certain|confident)\b", re.IGNORECASE)
# Circled digits and the marks for "wrong" are among these blocks; they stay.
_EMOJI = (
    "[\u2600-\u26d3\u26d5-\u2715\u2719-\u274b\u274d-\u2775\u2794-\u27bf\u2b50\u2b55"
    "\U0001f300-\U0001f44d\U0001f44f-\U0001f644\U0001f646-\U0001f6aa\U0001f6ac-\U0001faff]"
)
_PICTURES = re.compile(f"{_EMOJI}(?:[\u200d\ufe0f]|{_EMOJI})*")
_VULGAR = {"½": " 1/2", "⅓": " 1/3", "⅔": " 2/3", "¼": " 1/4", "¾": " 3/4", "⅕": " 1/5", "⅛": " 1/8"}


def without_markup(text: str) -> str:
    """Gives the text without what does not change its answer, and "minus 5" and ``1½`` as ``-5`` and ``1 1/2``."""
    if "*" in text or "_" in text:
        for mark, emphasis in _EMPHASIS:
            if mark in text:
                text = emphasis.sub(r"\1", text)
    if "]" in text:
        text = _FOOTNOTE.sub("", text)
    if "inus " in text or "egative " in text:
        text = _MINUS_WORD.sub("-", text)
    if "%" in text and "% " in text:
        text = _SURENESS.sub("", text)
    return text if text.isascii() else _without_pictures(text)


def _without_pictures(text: str) -> str:
    text = _PICTURES.sub(" ", text)
    for sign, written in _VULGAR.items():
        if sign in text:
            text = text.replace(sign, written)
    return text
