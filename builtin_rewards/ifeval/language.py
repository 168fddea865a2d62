"""The language of a text, by langdetect with a fixed seed.

langdetect draws at random which parts of a text to look at; with a seed of our own the same text always gives the
same language, and the library's global seed stays as it is.
"""

from __future__ import annotations

import functools
from typing import Any

from builtin_rewards.extras import extra

_SEED = 0
_LOOKED_AT = 20_000
"""Characters handed to langdetect. It looks at 10,000 itself, after it has taken out addresses."""


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
    failed = extra("langdetect.lang_detect_exception").LangDetectException
    try:
        found = str(detector.detect())
    except failed:
        return None
    return None if found == detector.UNKNOWN_LANG else found
