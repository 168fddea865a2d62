"""Rewards of overlap with a reference text: BLEU, chrF and ROUGE.

They measure likeness to a reference, as for translations and summaries, not truth: a negation changes them little.
The column ``answer`` holds one reference or a list of them. What is compared of the completion is told at
``exact_match``.
"""

from __future__ import annotations

import functools
import string
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import compress
from typing import Any, TypeVar

from builtin_rewards.adjustable import adjustable
from builtin_rewards.extras import extra
from builtin_rewards.reading.answer import final_answer
from rewardkit import Reward, Score, reward

_Units = TypeVar("_Units", str, tuple[str, ...])
"""A text as its units: characters, or words."""

_NO_GOLD = Score(None, reason="the row has no reference")
_TOKENIZERS = ("13a", "intl", "zh", "char", "none")
_KEPT = 8
"""References whose n-grams are kept: a group's completions are compared with the same ones."""
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


def _bleu_words(metric: Any, text: str) -> tuple[str, ...]:
    """Gives a text's words by the metric's tokenizer, whose caches of 65,536 texts each are not left to grow."""
    words = tuple(metric.tokenizer((text.lower() if metric.lowercase else text).rstrip()).split())
    for kind in (type(metric.tokenizer), extra("sacrebleu.tokenizers.tokenizer_re").TokenizerRegexp):
        getattr(kind.__call__, "cache_clear", tuple)()
    return words


@functools.lru_cache(maxsize=_KEPT)
def _bleu_gold(metric: Any, references: tuple[str, ...]) -> tuple[list[Counter[tuple[str, ...]]], list[int]]:
    """Gives the references' n-grams, each as often as one of them has it at most, and their lengths in words."""
    texts = [_bleu_words(metric, reference) for reference in references]
    grams = [_counted(text, metric.max_ngram_order) for text in texts]
    return [functools.reduce(Counter.__or__, order) for order in zip(*grams, strict=True)], list(map(len, texts))


def _bleu(metric: Any, completion: str, references: tuple[str, ...]) -> Any:
    """Gives what ``metric.sentence_score`` gives, with the references' n-grams counted once, and only those."""
    order = metric.max_ngram_order
    gold, lengths = _bleu_gold(metric, references)
    words = _bleu_words(metric, completion)
    size = len(words)
    return metric.compute_bleu(
        correct=_matches(words, gold),
        total=[max(0, size - n) for n in range(order)],
        sys_len=size,
        ref_len=min(lengths, key=lambda length: (abs(size - length), length)),
        smooth_method=metric.smooth_method,
        smooth_value=metric.smooth_value,
        effective_order=metric.effective_order,
        max_ngram_order=order,
    )


def _counted(units: _Units, orders: int) -> list[Counter[_Units]]:
    """Gives how often each n-gram occurs, for each n from 1 on."""
    return [Counter(units[place : place + n] for place in range(len(units) - n + 1)) for n in range(1, orders + 1)]


def _matches(units: _Units, gold: Sequence[Mapping[_Units, int]]) -> list[int]:
    """Gives how many of a text's n-grams are the gold's, none counted more often than there, for each n from 1 on.

    Where a gold n-gram stands, a shorter one begins: so each order is looked for where the one before it was found.
    """
    found: list[int] = []
    places: Iterable[int] = range(len(units))
    grams: Iterable[Any] = units if isinstance(units, str) else list(zip(units, strict=True))
    for n, wanted in enumerate(gold, start=1):
        if n > 1:
            grams = [units[place : place + n] for place in places]
        known = list(map(wanted.__contains__, grams))
        counts = Counter(compress(grams, known))
        found.append(sum(map(min, counts.values(), map(wanted.__getitem__, counts))))
        places = list(compress(places, known))
    return found


@functools.lru_cache(maxsize=_KEPT)
def _chrf_gold(reference: str, order: int) -> list[Counter[str]]:
    return _counted("".join(reference.split()), order)


def _chrf(completion: str, references: Sequence[str], order: int, beta: int) -> float:
    """Gives the chrF of characters, without words, as sacrebleu's ``sentence_score`` does, 0 to 100."""
    said = "".join(completion.split())
    best = 0.0
    for reference in references:
        gold = _chrf_gold(reference, order)
        matched = _matches(said, gold)
        made = [max(0, len(said) - n) for n in range(order)]
        counts = zip(matched, made, map(Counter.total, gold), strict=True)
        best = max(best, _f_beta([each for each in counts if all(each[1:])], beta**2))
    return best


def _f_beta(counts: Sequence[tuple[int, int, int]], factor: int) -> float:
    """Gives the F-score of the mean precision and recall of orders: matches, n-grams made, n-grams of the gold."""
    precision = recall = 0.0
    for match, made, gold in counts:  # added one by one, as sacrebleu does: sum() rounds otherwise from Python 3.12 on
        precision += match / made
        recall += match / gold
    if not precision + recall:
        return 0.0
    precision, recall = precision / len(counts), recall / len(counts)
    return 100 * ((1 + factor) * precision * recall / (factor * precision + recall))


@functools.lru_cache(maxsize=32)
def _chrf_metric(char_order: int, word_order: int, beta: int, lowercase: bool) -> Any:
    metrics = extra("sacrebleu.metrics")
    return metrics.CHRF(char_order=char_order, word_order=word_order, beta=beta, lowercase=lowercase)


@adjustable
def bleu(*, max_order: int = 4, tokenize: str = "13a", lowercase: bool = False) -> Reward[..., Score]:
    """Settings of ``bleu``.

    Args:
        max_order: The longest word n-grams that count.
        tokenize: sacrebleu's tokenizer: ``13a``, ``intl``, ``zh`` (Chinese), ``char`` or ``none``.
        lowercase: Upper and lower case are the same.

    Raises:
        ValueError: The order is not from 1 to 9, or there is no such tokenizer.
    """
    if not 1 <= max_order <= 9:
        raise ValueError(f"max_order: expected 1 to 9, got {max_order}")
    if tokenize not in _TOKENIZERS:
        raise ValueError(f"tokenize: expected one of {', '.join(_TOKENIZERS)}, got {tokenize!r}")

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
        found = _bleu(_bleu_metric(max_order, tokenize, lowercase), completion, tuple(references))
        metrics = {"brevity_penalty": float(found.bp)}
        return Score(_share(found.score / 100), reason=f"BLEU {found.score:.1f}", metrics=metrics)

    return bleu


@adjustable
def chrf(*, char_order: int = 6, word_order: int = 0, beta: int = 2, lowercase: bool = False) -> Reward[..., Score]:
    """Settings of ``chrf``.

    Args:
        char_order: The longest character n-grams that count.
        word_order: The longest word n-grams that count; 2 makes it chrF++.
        beta: How many times as much recall weighs as precision.
        lowercase: Upper and lower case are the same.

    Raises:
        ValueError: An order or ``beta`` is out of range.
    """
    for name, value, least in (("char_order", char_order, 1), ("word_order", word_order, 0), ("beta", beta, 1)):
        if not least <= value <= 9:
            raise ValueError(f"{name}: expected {least} to 9, got {value}")

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
        if word_order:
            metric = _chrf_metric(char_order, word_order, beta, lowercase)
            score = metric.sentence_score(completion, references).score
        else:
            case = str.lower if lowercase else str
            score = _chrf(case(completion), list(map(case, references)), char_order, beta)
        return Score(_share(score / 100), reason=f"chrF {score:.1f}")

    return chrf


def _share(value: float) -> float:
    return min(1.0, max(0.0, float(value)))


_ALNUM = (
    bytes(code if chr(code) in string.ascii_lowercase + string.digits else ord(" ") for code in range(128)) + b" " * 128
)


def _rouge_tokens(text: str, use_stemmer: bool) -> list[str]:
    """Gives a text's words as rouge-score's tokenizer does; to stem them is left to it."""
    if not use_stemmer:
        return text.lower().encode("ascii", "replace").translate(_ALNUM).decode().split()
    words: list[str] = _rouge_stemmer().tokenize(text)
    return words


@functools.cache
def _rouge_stemmer() -> Any:
    return extra("rouge_score.tokenizers").DefaultTokenizer(True)


@functools.lru_cache(maxsize=_KEPT)
def _rouge_gold(references: tuple[str, ...], use_stemmer: bool) -> list[list[str]]:
    """Gives the words of the references that have some. Not to be changed."""
    return [words for words in (_rouge_tokens(reference, use_stemmer) for reference in references) if words]


@functools.lru_cache(maxsize=16)
def _rouge_scorer(kind: str, use_stemmer: bool) -> Any:
    tokenizer = extra("rouge_score.tokenizers").DefaultTokenizer(use_stemmer)
    return extra("rouge_score.rouge_scorer").RougeScorer([kind], tokenizer=tokenizer)


_ROUGE = ("rougeL", *(f"rouge{order}" for order in range(1, 10)))


@adjustable
def rouge(kind: str = "rougeL", *, use_stemmer: bool = False) -> Reward[..., Score]:
    """Settings of ``rouge``.

    Args:
        kind: ``rougeL`` for the longest common subsequence, ``rouge1`` to ``rouge9`` for n-grams.
        use_stemmer: Compare English words by their stems.

    Raises:
        ValueError: There is no such kind.
    """
    if kind not in _ROUGE:
        raise ValueError(f"kind: expected rougeL or rouge1 to rouge9, got {kind!r}")

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
        gold = _rouge_gold(tuple(references), use_stemmer)
        if not gold:
            return Score(None, reason="the references have no Latin letter or digit, which is all that ROUGE reads")
        completion = final_answer(completion)
        unfit = _unfit(completion, references)
        if unfit is not None:
            return unfit
        if kind == "rougeL":
            said = _rouge_tokens(completion, use_stemmer)
            best = max(_rouge_l(said, words) for words in gold)
        else:
            best = _rouge_scorer(kind, use_stemmer).score_multi(references, completion)[kind].fmeasure
        return Score(_share(best), reason=f"{kind} {best:.3f}")

    return rouge


def _rouge_l(said: list[str], gold: list[str]) -> float:
    """Gives ROUGE-L's F-measure. rapidfuzz finds the subsequence: rouge-score's own table is slow in Python."""
    shared = list(filter(frozenset(gold).__contains__, said))
    common = int(extra("rapidfuzz.distance.LCSseq").similarity(shared, gold))
    return 2 * common / (len(said) + len(gold))
