"""The language of a text by langdetect, which draws what it looks at: with a seed of our own, always the same."""

from __future__ import annotations

import functools
from typing import Any

from builtin_rewards.extras import extra

_SEED = 0
_LOOKED_AT = 20_000


@functools.cache
def _detectors() -> Any:
    factory = extra("langdetect.detector_factory")
    factory.init_factory()
    return factory._factory


def known_languages() -> frozenset[str]:
    """Gives the codes that :func:`text_language` can give, such as ``en`` and ``zh-cn``."""
    return frozenset(_detectors().get_lang_list())


def text_language(text: str) -> str | None:
    """Gives the code of a text's language; ``None`` where nothing in it belongs to any."""
    detector = _detectors().create()
    detector.seed = _SEED
    detector.append(text[:_LOOKED_AT])
    try:
        found = str(detector.detect())
    except extra("langdetect.lang_detect_exception").LangDetectException:
        return None
    return None if found == detector.UNKNOWN_LANG else found
