"""How likely a text is in each language, by py3langid, whose model is loaded once for all rewards that ask it."""

from __future__ import annotations

import functools
from typing import Any

from builtin_rewards.extras import extra

_READ_CHARS = 1_000  # the detector's time grows with the text


@functools.cache
def detector() -> Any:
    module = extra("py3langid.langid")
    return module.LanguageIdentifier.from_model_file(module.MODEL_FILE, norm_probs=True)


def language_shares(text: str) -> dict[str, float]:
    """Return the probability of each language by its code, judged by a text's first 1,000 characters."""
    return {code: float(share) for code, share in detector().rank(text[:_READ_CHARS])}
