"""Detectors of texts that become alike: duplicates, fewer distinct words, texts that pack small. On a sample."""

from __future__ import annotations

import itertools
import zlib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import numpy as np

from rewardkit.health.evidence import Evidence
from rewardkit.health.flag import Detection
from rewardkit.health.labels import label_texts, plain_texts, right_answers
from rewardkit.health.measures import BaselineShare, lower_share, mean_bounds, mean_of, upper_share

WORDS = 200  # Words of a completion that distinct-n reads, so that longer completions compare with shorter ones
PACKED_CHARS = 2_000  # Characters of a completion that are packed
LEAST_CHARS = 20  # A text that is shorter repeats by chance: many prompts have the answer 4


def duplicates_in_group(window: Evidence, baseline: Evidence | None) -> Detection | None:
    """The completions of one prompt are copies of each other.

    Formula: 1 less distinct over all texts of a group, case and white space aside, mean over the sampled groups.
    Flagged above 0.3 where it is also 0.2 above the baseline's, by bounds; at once above 0.5 where the texts have 20
    characters or more. Labels are no copies: texts that a reward puts surely above the other completions under one
    prompt and below them under another, or of which each group has its own, see ``label_texts``. Nor are right answers
    of 200 characters or fewer, which have the best scores of all checks: a row that has one right answer has copies.

    Source: own.
    Limits: groups of short answers have copies by nature, and only a rise of theirs is flagged.
    """
    message = "of the completions of a group are copies of another"
    action = "Raise the temperature, or see which text it is: equal completions have equal rewards and teach nothing."
    return _copy_detection(window, baseline, _copies_in_groups, message, action)


def duplicates_across_prompts(window: Evidence, baseline: Evidence | None) -> Detection | None:
    """One text answers many prompts.

    Formula: sampled completions whose text, case and white space aside, another prompt has too, over all sampled.
    Flagged above 0.3 where it is also 0.2 above the baseline's, by bounds; at once above 0.5 where the texts have 20
    characters or more. Labels are no copies, as for duplicates_in_group: a reward that pays a text under one prompt and
    not under another reads the prompt.

    Source: own; a text that fits every prompt is what a gamed judge is given (arXiv 2507.08794).
    Limits: as for duplicates_in_group. Needs several prompts in the sample.
    """
    message = "of the completions stand under several prompts, word for word"
    action = "Read that text: it earns its reward without reading the prompt."
    return _copy_detection(window, baseline, _copies_across, message, action)


def _copy_detection(
    window: Evidence,
    baseline: Evidence | None,
    copies: Callable[[Evidence, _Compared], tuple[list[float], float]],
    message: str,
    action: str,
) -> Detection | None:
    """Return a detection if ``copies``, which returns shares of copies and their group size, finds many."""
    compared = _Compared(window, baseline, label_texts(window, baseline))
    shares, size = copies(window, compared)
    if len(shares) < 4:
        return None
    low, before = lower_share(shares, size), None
    if baseline is not None:
        old_shares, old_size = copies(baseline, compared)
        if len(old_shares) >= 4:
            before = BaselineShare(mean_of(old_shares), upper_share(old_shares, old_size))
    risen = before is not None and low > before.high + 0.2
    sample = window.sampled()
    is_long = float(np.median([len(text) for text in sample.texts])) >= LEAST_CHARS
    bound = 0.3 if risen else 0.5
    if not low > bound or not (risen or is_long):
        return None
    share, texts = mean_of(shares), plain_texts(window)
    ((commonest, _),) = Counter(text for text in texts if text not in compared.labels).most_common(1)
    rows = np.isin(window.table.ids, sample.table.ids[[text == commonest for text in texts]])
    old_share = None if before is None else before.share
    return Detection(share, bound, f"{share:.0%} {message}", action, baseline=old_share, rows=rows)


def _texts_by_group(evidence: Evidence) -> list[list[str]]:
    """Return the sampled texts of each group of two or more."""

    def work() -> list[list[str]]:
        sample, by_group = evidence.sampled(), defaultdict(list)
        for group, text in zip(sample.table.groups.tolist(), plain_texts(evidence), strict=True):
            by_group[group].append(text)
        return [texts for texts in by_group.values() if len(texts) > 1]

    return evidence.cached("texts_by_group", work)


class _Compared(NamedTuple):
    """A window and the baseline, and which texts are labels in them."""

    window: Evidence
    baseline: Evidence | None
    labels: frozenset[str]


def _copies_in_groups(evidence: Evidence, compared: _Compared) -> tuple[list[float], float]:
    """Return the share of copies in each group of two or more, and the groups' mean size."""
    right = right_answers(evidence, compared.window, compared.baseline).tolist()
    groups, sizes = defaultdict(list), Counter(evidence.sampled().table.groups.tolist())
    rows = zip(evidence.sampled().table.groups.tolist(), plain_texts(evidence), right, strict=True)
    for group, text, is_right in rows:
        if not is_right and text not in compared.labels:
            groups[group].append(text)
    shares = [(len(groups[group]) - len(set(groups[group]))) / size for group, size in sizes.items() if size > 1]
    return shares, sum(size for size in sizes.values() if size > 1) / max(len(shares), 1)


def _copies_across(evidence: Evidence, compared: _Compared) -> tuple[list[float], float]:
    """Return, one a prompt, the share of its texts that another prompt has, and the prompts' mean number of texts."""
    sample, prompts_of = evidence.sampled(), defaultdict(set)
    by_prompt = defaultdict(list)
    for prompt, text in zip(sample.table.prompts.tolist(), plain_texts(evidence), strict=True):
        prompts_of[text].add(prompt)
        by_prompt[prompt].append(text)
    copies = {text for text, prompts in prompts_of.items() if len(prompts) > 1 and text not in compared.labels}
    shares = [sum(text in copies for text in texts) / len(texts) for texts in by_prompt.values()]
    return shares, len(sample.texts) / max(len(by_prompt), 1)


def distinct_words(window: Evidence, baseline: Evidence) -> Detection | None:
    """The completions of a group say the same in ever fewer words.

    Formula: distinct-2 (distinct pairs of words over all pairs, of the first 200 words of each completion), mean over
    the sampled groups. Flagged below half of the baseline's, by bounds that do not meet. Labels are left out, see
    duplicates_in_group.

    Source: Li et al. (arXiv 1510.03055), distinct-n.
    Limits: a policy that settles on one good way of writing loses some variety too; half is meant to leave room.
    """
    labels = label_texts(window, baseline)
    now, before = _distinct(window, labels), _distinct(baseline, labels)
    if min(len(now), len(before)) < 4 or mean_of(now) >= 0.5 * mean_of(before):
        return None
    if mean_bounds(now).high >= mean_bounds(before).low:
        return None
    message = f"{mean_of(now):.0%} of the pairs of words in a group are distinct, {mean_of(before):.0%} at first"
    action = "Read a group side by side; raise the temperature or the KL penalty before all of it is one text."
    old, rows = mean_of(before), _of_sample(window)
    return Detection(mean_of(now), 0.5 * old, message, action, baseline=old, rows=rows)


def _distinct(evidence: Evidence, labels: frozenset[str]) -> list[float]:
    if labels:
        return _distinct_shares([text for text in texts if text not in labels] for texts in _texts_by_group(evidence))
    return evidence.cached("distinct_words", lambda: _distinct_shares(_texts_by_group(evidence)))


def _distinct_shares(groups: Iterable[Sequence[str]]) -> list[float]:
    return [share for share in map(_distinct_2, groups) if share is not None]


def _distinct_2(texts: Sequence[str]) -> float | None:
    pairs: list[tuple[str, str]] = []
    for text in texts:
        pairs += itertools.pairwise(text.split(None, WORDS)[:WORDS])
    return len(set(pairs)) / len(pairs) if pairs else None


def repetition(window: Evidence, baseline: Evidence | None) -> Detection | None:
    """Completions repeat themselves.

    Formula: bytes over bytes packed by zlib, of the first 2,000 characters of each completion of 200 characters or
    more, mean over the sample. Flagged above 1.5 times the baseline's by bounds that do not meet, and above 3; at once
    above 8, which no prose or program reaches.

    Source: Shaib et al. (arXiv 2403.00553): the compression ratio stands for the costlier measures of diversity.
    Limits: tables and lists pack well. Short completions are not looked at.
    """
    now = _packing_ratios(window)
    if len(now) < 20:
        return None
    low, before = mean_bounds(now).low, None
    if baseline is not None and len(_packing_ratios(baseline)) >= 20:
        before = _packing_ratios(baseline)
    risen = before is not None and mean_of(now) > 1.5 * mean_of(before) and low > mean_bounds(before).high
    bound = max(3.0, 1.5 * mean_of(before)) if risen and before is not None else 8.0
    if not low > min(bound, 8.0):
        return None
    message = f"completions pack {mean_of(now):.1f} to 1: they repeat themselves"
    message += "" if before is None else f" ({mean_of(before):.1f} to 1 at first)"
    action = "Read the rows for loops; a repetition penalty as a reward, or a stricter length, ends them."
    old = None if before is None else mean_of(before)
    return Detection(mean_of(now), bound, message, action, baseline=old, rows=_of_sample(window))


def _packing_ratios(evidence: Evidence) -> list[float]:
    def work() -> list[float]:
        texts = [text[:PACKED_CHARS] for text in evidence.sampled().texts if len(text) >= 200]
        raws = [text.encode("utf-8", "replace") for text in texts]  # a text may hold half of a surrogate pair
        return [len(raw) / len(zlib.compress(raw, 1)) for raw in raws]

    return evidence.cached("packed", work)


def _of_sample(window: Evidence) -> np.ndarray:
    return np.isin(window.table.ids, window.sampled().table.ids)
