"""Rewards of overlap with a reference text: BLEU, chrF and ROUGE.

They measure likeness to a reference, as for translations and summaries, not truth: a negation changes them little.
The column ``answer`` holds one reference or a list of them. What is compared of the completion is told at
``exact_match``.
"""

from __future__ import annotations

import functools
from typing import Any

from builtin_rewards.adjustable import adjustable, require
from builtin_rewards.extras import extra
from builtin_rewards.reading.answer import final_answer
from rewardkit import Reward, Score, reward

_NO_GOLD = Score(None, reason="the row has no reference")
_TOKENIZERS = ("13a", "intl", "zh", "char", "none")
_SPARE_CHARS = 20_000
_TIMES_AS_LONG = 50


def _references(answer: list[str] | str | None) -> list[str]:
    given = [answer] if isinstance(answer, str) else answer or []
    return [reference for reference in given if reference.strip()]


def _unfit(completion: str, references: list[str]) -> Score | None:
    """Gives the score of a completion that is not worth comparing, for the time it would take; else ``None``."""
    if not completion.strip():
        return Score(0.0, reason="the completion is empty")
    most = max(_SPARE_CHARS, _TIMES_AS_LONG * max(map(len, references)))
    if len(completion) > most:
        return Score(0.0, reason=f"{len(completion)} characters, over {most}")
    return None


@functools.lru_cache(maxsize=32)
def _bleu_metric(max_order: int, tokenize: str, lowercase: bool) -> Any:
    metrics = extra("sacrebleu.metrics")
    return metrics.BLEU(effective_order=True, max_ngram_order=max_order, tokenize=tokenize, lowercase=lowercase)


def _forget(tokenizer: Any) -> None:
    """Empties sacrebleu's caches of tokenized texts: each would keep the last 65,536 of them."""
    for kind in (type(tokenizer), extra("sacrebleu.tokenizers.tokenizer_re").TokenizerRegexp):
        getattr(kind.__call__, "cache_clear", tuple)()


@functools.lru_cache(maxsize=32)
def _chrf_metric(char_order: int, word_order: int, beta: int, lowercase: bool) -> Any:
    metrics = extra("sacrebleu.metrics")
    return metrics.CHRF(char_order=char_order, word_order=word_order, beta=beta, lowercase=lowercase)


@adjustable
def bleu(*, max_order: int = 4, tokenize: str = "13a", lowercase: bool = False) -> Reward[..., Score]:
    """Settings of ``bleu``.

    Args:
        max_order: The longest word n-grams that count, 1 to 9.
        tokenize: sacrebleu's tokenizer: ``13a``, ``intl``, ``zh`` (Chinese), ``char`` or ``none``.
        lowercase: Upper and lower case are the same.
    """
    require(1 <= max_order <= 9, "1 to 9", max_order=max_order)
    require(tokenize in _TOKENIZERS, f"one of {', '.join(_TOKENIZERS)}", tokenize=tokenize)

    @reward(score_range=(0, 1))
    def bleu(completion: str, answer: list[str] | str | None) -> Score:
        """The sentence BLEU of the completion against the references, 0 to 1.

        Formula: brevity penalty times the geometric mean of the n-gram precisions (Papineni et al. 2002), as
        sacrebleu computes it for one sentence: effective order, exponential smoothing, divided by 100. 0.0 for an
        empty completion, and unread for one over 20,000 characters that is 50 times as long as its reference.
        Columns: ``answer``, a reference or a list of them. ``None`` where the row has none.
        """
        # audit: skip echo a measure of likeness: it pays for what the two texts share, whatever stands around it
        # audit: skip misplaced a measure of likeness: it pays for what the two texts share, whatever stands around it
        # audit: skip negated a measure of likeness: it pays for what the two texts share, whatever stands around it
        references = _references(answer)
        if not references:
            return _NO_GOLD
        completion = final_answer(completion)
        unfit = _unfit(completion, references)
        if unfit is not None:
            return unfit
        metric = _bleu_metric(max_order, tokenize, lowercase)
        found = metric.sentence_score(completion, references)
        _forget(metric.tokenizer)
        metrics = {"brevity_penalty": float(found.bp)}
        return Score(_share(found.score / 100), reason=f"BLEU {found.score:.1f}", metrics=metrics)

    return bleu


@adjustable
def chrf(*, char_order: int = 6, word_order: int = 0, beta: int = 2, lowercase: bool = False) -> Reward[..., Score]:
    """Settings of ``chrf``.

    Args:
        char_order: The longest character n-grams that count, 1 to 9.
        word_order: The longest word n-grams that count, 0 to 9; 2 makes it chrF++.
        beta: How many times as much recall weighs as precision, 1 to 9.
        lowercase: Upper and lower case are the same.
    """
    for name, value, least in (("char_order", char_order, 1), ("word_order", word_order, 0), ("beta", beta, 1)):
        require(least <= value <= 9, f"{least} to 9", **{name: value})

    @reward(score_range=(0, 1))
    def chrf(completion: str, answer: list[str] | str | None) -> Score:
        """The chrF of the completion against the best of its references, 0 to 1.

        Formula: (1 + beta^2) P R / (beta^2 P + R) over character n-grams (Popovic 2015), as sacrebleu computes it
        for one sentence, divided by 100. 0.0 for an empty completion, and unread for one over 20,000 characters
        that is 50 times as long as its reference. Columns: ``answer``, a reference or a list of them. ``None`` where
        the row has none.
        """
        # audit: skip echo a measure of likeness: it pays for what the two texts share, whatever stands around it
        # audit: skip stuffing a measure of likeness: it pays for what the two texts share, whatever stands around it
        # audit: skip misplaced a measure of likeness: it pays for what the two texts share, whatever stands around it
        # audit: skip negated a measure of likeness: it pays for what the two texts share, whatever stands around it
        references = _references(answer)
        if not references:
            return _NO_GOLD
        completion = final_answer(completion)
        unfit = _unfit(completion, references)
        if unfit is not None:
            return unfit
        score = _chrf_metric(char_order, word_order, beta, lowercase).sentence_score(completion, references).score
        return Score(_share(score / 100), reason=f"chrF {score:.1f}")

    return chrf


def _share(value: float) -> float:
    return min(1.0, max(0.0, float(value)))


@functools.cache
def _rouge_tokenizer(use_stemmer: bool) -> Any:
    return extra("rouge_score.tokenizers").DefaultTokenizer(use_stemmer)


@functools.lru_cache(maxsize=16)
def _rouge_scorer(kind: str, use_stemmer: bool) -> Any:
    return extra("rouge_score.rouge_scorer").RougeScorer([kind], tokenizer=_rouge_tokenizer(use_stemmer))


_ROUGE = ("rougeL", *(f"rouge{order}" for order in range(1, 10)))


@adjustable
def rouge(kind: str = "rougeL", *, use_stemmer: bool = False) -> Reward[..., Score]:
    """Settings of ``rouge``.

    Args:
        kind: ``rougeL`` for the longest common subsequence, ``rouge1`` to ``rouge9`` for n-grams.
        use_stemmer: Compare English words by their stems.
    """
    require(kind in _ROUGE, "rougeL or rouge1 to rouge9", kind=kind)

    @reward(score_range=(0, 1))
    def rouge(completion: str, answer: list[str] | str | None) -> Score:
        """The ROUGE F-measure of the completion against the best of its references, 0 to 1.

        Formula: 2 P R / (P + R), with P and R the shares of the completion's and the reference's words in their
        longest common subsequence, or of their n-grams in common (Lin 2004), with rouge-score's tokens: Latin
        letters and digits, in lower case. 0.0 for an empty completion, and unread for one over 20,000 characters
        that is 50 times as long as its reference. Columns: ``answer``, a reference or a list of them. ``None`` where
        the row has none, or none with a Latin letter or a digit.
        """
        # audit: skip echo a measure of likeness: it pays for what the two texts share, whatever stands around it
        # audit: skip misplaced a measure of likeness: it pays for what the two texts share, whatever stands around it
        # audit: skip negated a measure of likeness: it pays for what the two texts share, whatever stands around it
        references = _references(answer)
        if not references:
            return _NO_GOLD
        tokens = _rouge_tokenizer(use_stemmer).tokenize
        if not any(gold := list(map(tokens, references))):
            return Score(None, reason="the references have no Latin letter or digit, which is all that ROUGE reads")
        completion = final_answer(completion)
        unfit = _unfit(completion, references)
        if unfit is not None:
            return unfit
        if kind == "rougeL":
            said = tokens(completion)
            best = max(_rouge_l(said, words) for words in gold)
        else:
            best = _rouge_scorer(kind, use_stemmer).score_multi(references, completion)[kind].fmeasure
        return Score(_share(best), reason=f"{kind} {best:.3f}")

    return rouge


def _rouge_l(said: list[str], gold: list[str]) -> float:
    """Gives ROUGE-L's F-measure. rapidfuzz finds the subsequence: rouge-score's own table takes quadratic time."""
    common = int(extra("rapidfuzz.distance.LCSseq").similarity(said, gold))
    return 2 * common / (len(said) + len(gold)) if gold else 0.0
