"""Rewards of overlap with a reference text: BLEU, chrF and ROUGE.

They measure likeness to a reference, as for translations and summaries, not truth: a negation changes them little. The
column ``answer`` holds one reference or a list of them; without one the score is ``None``. The text compared is that
of ``exact_match``. An empty one scores 0.0, and so does, unread, one of over 20,000 characters that is 50 times as long
as its longest reference.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from builtin_rewards.adjustable import adjustable, require
from builtin_rewards.extras import extra
from builtin_rewards.reading.answer import answer_as_text
from builtin_rewards.reading.normalisation import part_by_script, words_by_script
from rewardkit import Reward, Score, reward

_BY_SCRIPT = "script"
_TOKENIZERS = (_BY_SCRIPT, "13a", "intl", "zh", "char", "none")
_ROUGE = ("rougeL", *(f"rouge{order}" for order in range(1, 10)))
_SPARE_CHARS = 20_000  # a longer text is compared only with a long reference
_TIMES_AS_LONG = 50


def _compare_references(
    completion: str, answer: list[str] | str | None, compare: Callable[[str, tuple[str, ...]], Score]
) -> Score:
    """Return the score of the final answer by its references; the reason names the rule that found it."""
    texts = [answer] if isinstance(answer, str) else answer or []
    references = tuple(reference for reference in texts if reference.strip())
    if not references:
        return Score(None, reason="the row has no reference")
    extraction = answer_as_text(completion)
    text = extraction.answer or ""
    if not text.strip():
        return Score(0.0, reason="the completion is empty")
    limit = max(_SPARE_CHARS, _TIMES_AS_LONG * max(map(len, references)))
    if len(text) > limit:
        return Score(0.0, reason=f"{len(text)} characters ({extraction.rule}), over {limit}")
    score = compare(text, references)
    value = score.value if score.value is None else min(1.0, max(0.0, score.value))
    return Score(value, reason=f"{score.reason} ({extraction.rule})", metrics=score.metrics)


@functools.lru_cache(maxsize=16)
def _metric(kind: str, references: tuple[str, ...], tokenise: Callable[[str], str] = str, **settings: str | int) -> Any:
    """Return sacrebleu's metric with the references' n-grams counted, for all completions of a group."""
    streams = [[tokenise(reference)] for reference in references]
    return getattr(extra("sacrebleu.metrics"), kind)(references=streams, **settings)


def _words_of_bleu(text: str) -> str:
    """Return a text as 13a divides it, and each letter of a script without blanks between words for itself."""
    return part_by_script(extra("sacrebleu.tokenizers.tokenizer_13a").Tokenizer13a()(text))


@adjustable
def bleu(*, max_order: int = 4, tokenize: str = _BY_SCRIPT, lowercase: bool = False) -> Reward[..., Score]:
    """Return ``bleu`` with these settings.

    Args:
        max_order: The longest word n-grams that count, 1 to 9.
        tokenize: sacrebleu's tokenizer: ``13a``, ``intl``, ``zh`` (Chinese), ``char`` or ``none``; or ``script``: 13a,
            where each letter of a script without blanks between words, such as Japanese or Thai, is a word.
        lowercase: Upper and lower case are the same.
    """
    require(1 <= max_order <= 9, "1 to 9", max_order=max_order)
    require(tokenize in _TOKENIZERS, f"one of {', '.join(_TOKENIZERS)}", tokenize=tokenize)

    tokenise, tokenizer = (_words_of_bleu, "none") if tokenize == _BY_SCRIPT else (str, tokenize)
    settings = {"effective_order": True, "max_ngram_order": max_order, "tokenize": tokenizer, "lowercase": lowercase}

    def compare(text: str, references: tuple[str, ...]) -> Score:
        metric = _metric("BLEU", references, tokenise, **settings)
        result = metric.corpus_score([tokenise(text)], None)
        module = extra("sacrebleu.tokenizers.tokenizer_13a")
        for kind in (module.Tokenizer13a, module.TokenizerRegexp, type(metric.tokenizer)):
            getattr(kind.__call__, "cache_clear", tuple)()  # each would keep the last 65,536 texts
        metrics = {"brevity_penalty": float(result.bp)}
        return Score(result.score / 100, reason=f"BLEU {result.score:.1f}", metrics=metrics)

    @reward(score_range=(0, 1))
    def bleu(completion: str, answer: list[str] | str | None) -> Score:
        """The sentence BLEU of the completion against the references, 0 to 1.

        Formula: brevity penalty times the geometric mean of the n-gram precisions (Papineni et al. 2002), as
        sacrebleu computes it for one sentence: effective order, exponential smoothing, divided by 100. Column:
        ``answer``.
        """
        # audit: skip echo,misplaced,negated a measure of likeness: it pays for what the two texts share
        return _compare_references(completion, answer, compare)

    return bleu


@adjustable
def chrf(*, char_order: int = 6, word_order: int = 0, beta: int = 2, lowercase: bool = False) -> Reward[..., Score]:
    """Return ``chrf`` with these settings.

    Args:
        char_order: The longest character n-grams that count, 1 to 9.
        word_order: The longest word n-grams that count, 0 to 9; 2 makes it chrF++.
        beta: How many times as much recall weighs as precision, 1 to 9.
        lowercase: Upper and lower case are the same.
    """
    settings = {"char_order": char_order, "word_order": word_order, "beta": beta, "lowercase": lowercase}
    fit = 1 <= char_order <= 9 and 0 <= word_order <= 9 and 1 <= beta <= 9
    require(fit, "1 to 9, or 0 for word_order", **settings)

    def compare(text: str, references: tuple[str, ...]) -> Score:
        score = _metric("CHRF", references, **settings).corpus_score([text], None).score
        return Score(score / 100, reason=f"chrF {score:.1f}")

    @reward(score_range=(0, 1))
    def chrf(completion: str, answer: list[str] | str | None) -> Score:
        """The chrF of the completion against the best of its references, 0 to 1.

        Formula: (1 + beta^2) P R / (beta^2 P + R) over character n-grams (Popovic 2015), as sacrebleu computes it
        for one sentence, divided by 100. Column: ``answer``.
        """
        # audit: skip echo,stuffing,misplaced,negated a measure of likeness: it pays for what the two texts share
        return _compare_references(completion, answer, compare)

    return chrf


class _WordsByScript:
    """rouge-score's tokens, and the words or letters of other scripts, which it leaves out."""

    def __init__(self, use_stemmer: bool) -> None:
        self._stems = extra("rouge_score.tokenizers").DefaultTokenizer(True).tokenize if use_stemmer else None

    def tokenize(self, text: str) -> list[str]:
        tokens = words_by_script(text)
        if self._stems is None:
            return tokens
        return [stem for token in tokens for stem in (self._stems(token) if token.isascii() else [token])]


@functools.lru_cache(maxsize=16)
def _rouge(kind: str, use_stemmer: bool) -> tuple[_WordsByScript, Any]:
    tokenizer = _WordsByScript(use_stemmer)
    return tokenizer, extra("rouge_score.rouge_scorer").RougeScorer([kind], tokenizer=tokenizer)


@functools.lru_cache(maxsize=16)
def _gold_tokens(references: tuple[str, ...], tokenizer: _WordsByScript) -> list[list[str]]:
    """Return the references' tokens, for all completions of a group."""
    return list(map(tokenizer.tokenize, references))


@adjustable
def rouge(kind: str = "rougeL", *, use_stemmer: bool = False) -> Reward[..., Score]:
    """Return ``rouge`` with these settings.

    Args:
        kind: ``rougeL`` for the longest common subsequence, ``rouge1`` to ``rouge9`` for n-grams.
        use_stemmer: Compare English words by their stems.
    """
    require(kind in _ROUGE, "rougeL or rouge1 to rouge9", kind=kind)

    def compare(text: str, references: tuple[str, ...]) -> Score:
        tokenizer, scorer = _rouge(kind, use_stemmer)
        gold = _gold_tokens(references, tokenizer)
        if not any(gold):
            return Score(None, reason="the references have no letter or digit, which is all that ROUGE reads")
        if kind == "rougeL":  # rapidfuzz finds the subsequence: rouge-score's own table takes quadratic time
            tokens, common = tokenizer.tokenize(text), extra("rapidfuzz.distance.LCSseq").similarity
            score = max(2 * common(tokens, other) / (len(tokens) + len(other)) for other in gold if other)
        else:
            score = scorer.score_multi(references, text)[kind].fmeasure
        return Score(score, reason=f"{kind} {score:.3f}")

    @reward(score_range=(0, 1))
    def rouge(completion: str, answer: list[str] | str | None) -> Score:
        """The ROUGE F-measure of the completion against the best of its references, 0 to 1.

        Formula: 2 P R / (P + R), with P and R the shares of the completion's and the reference's words in their
        longest common subsequence, or of their n-grams in common (Lin 2004). For ASCII the words are rouge-score's:
        letters and digits, in lower case. Unlike there, letters of other scripts count too, and each one is a word
        where the script has no blanks between words, such as Chinese, Japanese or Thai. Column: ``answer``. ``None``
        also where no reference has a letter or digit.
        """
        # audit: skip echo,misplaced,negated a measure of likeness: it pays for what the two texts share
        return _compare_references(completion, answer, compare)

    return rouge
