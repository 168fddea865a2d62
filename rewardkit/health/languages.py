"""The detector of completions that go over to another script or language than their prompt's."""

from __future__ import annotations

import re
from collections import Counter

import numpy as np

from rewardkit.health.evidence import Evidence, PromptRow
from rewardkit.health.flag import Detection
from rewardkit.health.measures import by_group
from rewardkit.record.table import Floats, Mask

READ_CHARS = 600  # Characters of a text that are read, half of them from each end
RISEN = 0.2  # By how much the share of completions rises, at least
LEAST_LETTERS = 5  # Letters of a script that a text has, at least
LEAST_TOKENS = 3  # Function words of a language, at least
LEAST_SHARE = 0.08  # Share of them among the words, at least

_SCRIPTS = (
    ("Latin letters", 0.5, ((0x41, 0x5A), (0x61, 0x7A), (0xC0, 0x24F))),
    ("Greek letters", 0.5, ((0x370, 0x3FF),)),
    ("Cyrillic letters", 0.1, ((0x400, 0x52F),)),
    ("Hebrew letters", 0.1, ((0x590, 0x5FF),)),
    ("Arabic letters", 0.1, ((0x600, 0x6FF),)),
    ("Devanagari letters", 0.1, ((0x900, 0x97F),)),
    ("Thai letters", 0.1, ((0xE00, 0xE7F),)),
    ("Japanese syllables", 0.1, ((0x3040, 0x30FF),)),
    ("Chinese characters", 0.1, ((0x3400, 0x9FFF), (0x20000, 0x2FA1F))),
    ("Korean syllables", 0.1, ((0xAC00, 0xD7AF),)),
)
"""Scripts, the share of a text's letters from which it is written in one, and their ranges in Unicode.

Formulas have Latin and Greek letters in any language.
"""
_FUNCTION_WORDS = {
    "English": "the of and to that is it for with as was this are not be which at by from have has we so if its when",
    "German": "der die das und ist nicht ein eine den dem des mit sich auf von zu auch es im wenn weil oder wird sind",
    "French": "le les des est une dans et que pour qui sur pas ne avec au du ce il elle sont nous mais ou donc cette",
    "Spanish": "el los las y del con por una para es pero como lo su porque cuando si esta este más o también son",
    "Portuguese": "o os do da dos das em um uma para com não que se por mais como mas é são ao pela pelo isso quando",
    "Italian": "il gli di che è per non una con sono della nel alla come ma se anche questo dei più perché quando",
    "Dutch": "de het een en van niet dat met voor zijn op is te aan er maar om ook bij wordt naar uit deze als",
}
_LANGUAGES = tuple(_FUNCTION_WORDS)
_LANGUAGE_OF = {
    word: tuple(index for index, text in enumerate(_FUNCTION_WORDS.values()) if word in text.split())
    for text in _FUNCTION_WORDS.values()
    for word in text.split()
}
_SIGNS = ".,;:!?\"'()"
KINDS = tuple(name for name, _, _ in _SCRIPTS) + _LANGUAGES
_BOUNDS = sorted(
    (start, end, index) for index, (_, _, ranges) in enumerate(_SCRIPTS) for start, end in ranges
)  # fmt: skip
_STARTS, _ENDS, _INDICES = (np.array(column) for column in zip(*_BOUNDS, strict=True))


def language_switch(window: Evidence, baseline: Evidence) -> Detection | None:
    """Completions go over to another script or language than their prompt's, wholly or in parts.

    Formula: for each of ten scripts, the share of the sampled completions that have a tenth of their letters or more in
    it (half of them of Latin and Greek, which formulas have); for each of seven languages in Latin letters, of those
    whose function words are three or more, 8% of the words, and twice those of the next language, where the prompt is
    in another language that is known. What the completion's own prompt is written in does not count. Flagged where the
    share of one is 0.2 above the baseline's, with bounds that do not meet.

    Source: DeepSeek-R1 (arXiv 2501.12948), whose thoughts mix languages where only answers are paid.
    Limits: of a text the first and last 300 characters are read. A prompt of a few words has no language, only a
    script. A task of translation whose rows come later in the run is flagged.
    """
    if min(len(part.sampled().texts) for part in (window, baseline)) < 20:
        return None
    now, before = (_shares(part) for part in (window, baseline))
    rises = {
        kind: mean - before[kind][0]
        for kind, (mean, low, _) in now.items()
        if mean - before[kind][0] >= RISEN and low > before[kind][2]
    }
    if not rises:
        return None
    kind = max(rises, key=lambda name: (rises[name], name in _LANGUAGES))
    old, new = before[kind][0], now[kind][0]
    message = f"completions in another language than their prompt: {old:.0%} had {kind} at first, {new:.0%} have now"
    if kind in _LANGUAGES:
        message = (
            f"completions in another language than their prompt: {old:.0%} were {kind} at first, {new:.0%} are now"
        )
    action = (
        "Read the rows. Where readers or a judge need the prompt's language, ask for it and pay for it: a reward for"
    )
    action += " the share of the text that is in it."
    marks = _foreign(window)[:, KINDS.index(kind)] > 0
    rows = np.isin(window.table.ids, window.sampled().table.ids[marks])
    return Detection(new - old, RISEN, message, action, baseline=old, rows=rows)


def _shares(evidence: Evidence) -> dict[str, tuple[float, float, float]]:
    """Return, by script and language, the share of the completions that go over to it, with its bounds."""
    foreign, groups = _foreign(evidence), evidence.sampled().table.groups
    shares = {}
    for index, kind in enumerate(KINDS):
        parts = by_group(foreign[:, index], groups)
        shares[kind] = float(foreign[:, index].mean()), parts.low, parts.high
    return shares


def _foreign(evidence: Evidence) -> Floats:
    """Return 1 for each script and language that a sampled completion has and its prompt has not: (n, kinds)."""
    return evidence.cached("foreign", lambda: _foreign_anew(evidence))


def _foreign_anew(evidence: Evidence) -> Floats:
    sample = evidence.sampled()
    prompts = sample.table.prompts.tolist()
    of_prompt = {
        prompt: kinds_of((row or PromptRow("", {})).question) for prompt, row in evidence.prompts_of_sample().items()
    }
    pairs = zip(sample.texts, prompts, strict=True)
    return np.array([_beside(kinds_of(text), of_prompt[prompt]) for text, prompt in pairs], dtype=np.float64)


def _beside(kinds: Mask, of_prompt: Mask) -> Mask:
    """Return what a text is written in and its prompt is not; only scripts beside a prompt in no known language."""
    foreign: Mask = kinds & ~of_prompt
    in_latin_letters = bool(of_prompt[0]) or not of_prompt.any()
    if in_latin_letters and not of_prompt[len(_SCRIPTS) :].any():
        foreign[len(_SCRIPTS) :] = False
    return foreign


def kinds_of(text: str) -> Mask:
    """Return which scripts and languages a text is written in, in the order of the tables."""
    text = text if len(text) <= READ_CHARS else f"{text[: READ_CHARS // 2]} {text[-READ_CHARS // 2 :]}"
    kinds = np.zeros(len(KINDS), dtype=bool)
    kinds[: len(_SCRIPTS)] = _scripts_of(text)
    if kinds[0]:
        language = _language_of(text)
        if language is not None:
            kinds[len(_SCRIPTS) + language] = True
    return kinds


def _scripts_of(text: str) -> Mask:
    if text.isascii():
        return np.array([re.search("[A-Za-z]", text) is not None, *[False] * (len(_SCRIPTS) - 1)])
    codes = np.frombuffer(text.encode("utf-32-le", "replace"), dtype=np.uint32)
    ranges = np.searchsorted(_STARTS, codes, side="right") - 1
    inside = (ranges >= 0) & (codes <= _ENDS[ranges])
    counts = np.bincount(_INDICES[ranges[inside]], minlength=len(_SCRIPTS))
    least = np.maximum(np.array([share for _, share, _ in _SCRIPTS]) * counts.sum(), LEAST_LETTERS)
    enough: Mask = counts >= least
    return enough


def _language_of(text: str) -> int | None:
    """Return the place of the language whose function words a text has; ``None`` where it is not sure."""
    tokens = [token.strip(_SIGNS) for token in text.lower().split()]
    hits = Counter(index for token in tokens for index in _LANGUAGE_OF.get(token, ()))
    if not hits:
        return None
    (first, most), *others = hits.most_common(2)
    sure = most >= max(LEAST_TOKENS, LEAST_SHARE * len(tokens)) and (not others or most >= 2 * others[0][1])
    return first if sure else None
