"""The detector of completions that are a copy of their prompt."""

from __future__ import annotations

import numpy as np

from rewardkit.health.evidence import Evidence, PromptRow
from rewardkit.health.flag import Detection
from rewardkit.health.labels import plain_text
from rewardkit.health.measures import by_group
from rewardkit.record.table import Floats

RUN = 4  # Words of a run that a copy shares with its prompt
LEAST_TOKENS = 8  # Words of a prompt that can be copied in part
LEAST_CHARS = 10  # Characters of one that can be copied whole
MOST_TOKENS = 600  # Words of a text that are read
HAS_MOST = 0.5  # Share of the prompt's runs that a copy has, more than
IS_MOST = 0.5  # Share of the copy's runs that are the prompt's, at least
RISEN = 0.2  # By how much the share of copies rises
MOST_TIMES = 3  # A text that is so many times as long as its prompt is no copy of it
WHOLE, PART = 1.0, 0.5  # What a completion is of its prompt
AT_ONCE = 0.3  # Share of completions that are the prompt itself, from which no baseline is needed


def prompt_copies(window: Evidence, baseline: Evidence | None) -> Detection | None:
    """Completions repeat their prompt.

    Formula: sampled completions that are their prompt, or the last message of it, case and white space aside; and those
    that have more than half of its runs of four words, where these are half or more of the completion's own (of prompts
    of 8 words or more, and of the first 600 words). Flagged at once where the share of the first is above 0.3 by its
    lower bound; else where the share of both is 0.2 above the baseline's, by bounds.

    Source: own; a reward of overlap with the prompt, and a judge that likes what it knows, pay for it.
    Limits: tasks whose answers are mostly in the prompt, such as corrections, have copies by nature, and only a rise of
    theirs is flagged.
    """
    copies, before = _copies(window), None if baseline is None else _copies(baseline)
    if not len(copies):
        return None
    groups = window.sampled().table.groups
    whole, part, old, bound = by_group(copies == WHOLE, groups), by_group(copies > 0, groups), None, AT_ONCE
    risen = False
    if baseline is not None and before is not None and len(before):
        old = float((before > 0).mean())
        risen = part.low > by_group(before > 0, baseline.sampled().table.groups).high + RISEN
    if not risen and not (len(whole.counts) >= 4 and whole.low > AT_ONCE):
        return None
    share = float((copies > 0).mean() if risen else (copies == WHOLE).mean())
    bound = RISEN + (old or 0.0) if risen else AT_ONCE
    message = f"{share:.0%} of the completions repeat their prompt" + (f", {old:.0%} at first" if risen else "")
    action = "Read the rows: what does the reward find in them? Take what stands in the prompt out before it is scored."
    rows = np.isin(window.table.ids, window.sampled().table.ids[copies > 0])
    return Detection(share, bound, message, action, baseline=old, rows=rows)


def _copies(evidence: Evidence) -> Floats:
    """Return for each sampled completion whether it is its prompt (WHOLE), has most of it (PART), or neither (0)."""
    return evidence.cached("copies of prompts", lambda: _copies_anew(evidence))


def _copies_anew(evidence: Evidence) -> Floats:
    sample = evidence.sampled()
    prompts = sample.table.prompts.tolist()
    originals = {prompt: _Original(row) for prompt, row in evidence.prompts_of_sample().items() if row is not None}
    pairs = zip(sample.texts, prompts, strict=True)
    return np.array([originals[prompt].copied(text) if prompt in originals else 0.0 for text, prompt in pairs])


class _Original:
    """A prompt that may be copied."""

    def __init__(self, row: PromptRow) -> None:
        texts = [text for text in (row.prompt, row.last) if len(text) >= LEAST_CHARS]
        self._most_chars = max(map(len, texts), default=0) * MOST_TIMES
        self._whole = {plain_text(text) for text in texts}
        self._runs = [runs for runs in map(_runs_of, texts) if len(runs) > LEAST_TOKENS - RUN]

    def copied(self, text: str) -> float:
        if not LEAST_CHARS <= len(text) <= self._most_chars:
            return 0.0
        if plain_text(text) in self._whole:
            return WHOLE
        own = _runs_of(text) if self._runs else set()
        is_most = any(
            len(runs & own) > HAS_MOST * len(runs) and len(runs & own) >= IS_MOST * len(own) for runs in self._runs
        )
        return PART if is_most else 0.0


def _runs_of(text: str) -> set[tuple[str, ...]]:
    tokens = text.casefold().split(None, MOST_TOKENS)[:MOST_TOKENS]
    return set(zip(*(tokens[start:] for start in range(RUN)), strict=False))
