"""The measures of a text_similarity grader, each 0 to 1. They need the extra ``rewards``."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

from rewardkit.errors import ConfigError, RewardDefinitionError


def similarity(metric: str, text: str, reference: str) -> float:
    """Return how alike two texts are, 0 to 1.

    OpenAI's guide names the measures and not all of their settings. ``fuzzy_match`` is rapidfuzz's ``WRatio`` after
    its ``default_process``, as in the guide's own Python grader; ``bleu`` sacrebleu's of a sentence; ``gleu`` and
    ``meteor`` are nltk's over words; ``rouge_*`` the F-measure of rouge-score, without stemming.

    Raises:
        ConfigError: A package is not installed, or WordNet, which ``meteor`` reads, is not there.
        ValueError: ``rouge_*``, which reads a-z and 0-9 alone, has nothing of the reference to read.
    """
    return min(1.0, max(0.0, float(_MEASURES[metric](text, reference))))


def check_metric(metric: str, where: str) -> None:
    """Raise :class:`RewardDefinitionError` for a measure that is not one of these."""
    if metric == "cosine":
        raise RewardDefinitionError(
            f"{where}: evaluation_metric 'cosine' compares embeddings of a hosted model; use "
            "'fuzzy_match' or 'rouge_l', or a reward model"
        )
    if metric not in _MEASURES:
        raise RewardDefinitionError(f"{where}: evaluation_metric {metric!r}: expected {', '.join(_MEASURES)}")


def load(metric: str) -> None:
    """Load what a measure needs, such as a package that is slow to import; raise ConfigError where it is missing."""
    similarity(metric, "one two", "three four")  # words that are not the same, for which WordNet is asked


def _package(module: str) -> Any:
    try:
        return importlib.import_module(module)
    except ImportError as reason:
        raise ConfigError(
            f"a text_similarity grader needs the package {module.partition('.')[0]!r} ({reason}); it comes with the "
            "extra 'rewards'"
        ) from reason


def _fuzzy(text: str, reference: str) -> float:
    process = _package("rapidfuzz.utils").default_process
    return float(_package("rapidfuzz.fuzz").WRatio(text, reference, processor=process)) / 100


def _bleu(text: str, reference: str) -> float:
    return float(_package("sacrebleu").sentence_bleu(text, [reference]).score) / 100


def _gleu(text: str, reference: str) -> float:
    if not text.split() or not reference.split():
        return 0.0
    return float(_package("nltk.translate.gleu_score").sentence_gleu([reference.split()], text.split()))


def _meteor(text: str, reference: str) -> float:
    try:
        return float(_package("nltk.translate.meteor_score").meteor_score([reference.split()], text.split()))
    except LookupError as reason:
        raise ConfigError(
            "evaluation_metric 'meteor' reads WordNet, which is not installed: run nltk.download('wordnet') once, or "
            "take another measure"
        ) from reason


def _rouge(kind: str) -> Callable[[str, str], float]:
    def measure(text: str, reference: str) -> float:
        tokenizer = _package("rouge_score.tokenizers").DefaultTokenizer(False)  # given: the default one is logged
        if reference.strip() and not tokenizer.tokenize(reference):
            raise ValueError(
                f"rouge reads the letters a-z and digits alone, and the reference {reference!r:.40} has none of them; "
                "take 'fuzzy_match', 'bleu' or 'gleu'"
            )
        scorer = _package("rouge_score.rouge_scorer").RougeScorer([kind], tokenizer=tokenizer)
        return float(scorer.score(reference, text)[kind].fmeasure)

    return measure


_MEASURES: dict[str, Callable[[str, str], float]] = {
    "fuzzy_match": _fuzzy,
    "bleu": _bleu,
    "gleu": _gleu,
    "meteor": _meteor,
    **{f"rouge_{order}": _rouge(f"rouge{order}") for order in range(1, 6)},
    "rouge_l": _rouge("rougeL"),
}
