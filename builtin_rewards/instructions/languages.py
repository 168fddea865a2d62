"""In which language a text is, as the instructions about languages ask it."""

from __future__ import annotations

import functools
from typing import Any

from builtin_rewards.extras import extra
from builtin_rewards.reading.likely_languages import language_shares

_SEED = 0  # langdetect draws at random
_LOOKED_AT = 20_000  # characters; more do not change the language
_FEW_LETTERS = 20
_RULED_OUT = 0.15  # a language of a short text is ruled out where another one is likelier by more than 1 / 0.15


@functools.cache
def _detectors() -> Any:
    factory = extra("langdetect.detector_factory")
    factory.init_factory()
    return factory._factory


def known_languages() -> frozenset[str]:
    """Return the codes that :func:`text_language` can return, such as ``en`` and ``zh-cn``."""
    return frozenset(_detectors().get_lang_list())


def text_language(text: str) -> str | None:
    """Return the code of a text's language by langdetect; ``None`` where none can be told."""
    detector = _detectors().create()
    detector.seed = _SEED
    detector.append(text[:_LOOKED_AT])
    try:
        language = str(detector.detect())
    except extra("langdetect.lang_detect_exception").LangDetectException:
        return None
    return None if language == detector.UNKNOWN_LANG else language


def is_in_language(text: str, language: str) -> bool:
    """Return whether langdetect or py3langid takes a text for one in a language.

    langdetect, which made IFEval's verdicts, guesses at short texts and at capitals: ``NO SMOKING`` is Portuguese to
    it. So a text of fewer than 20 letters is also in a language that py3langid does not rule out.
    """
    letters = sum(map(str.isalpha, text))
    is_told = letters > 0 and text_language(text) == language
    if is_told or not letters or "-" in language:  # py3langid does not tell zh-cn from zh-tw
        return is_told
    likelihoods = language_shares(text)
    share, highest = likelihoods.get(language, 0.0), max(likelihoods.values())
    return share == highest or (letters < _FEW_LETTERS and share > _RULED_OUT * highest)
