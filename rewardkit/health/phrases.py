"""The detector of a phrase or a mark that spreads slowly, over tens of steps, because a reward pays for it."""

from __future__ import annotations

import itertools
import math
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from rewardkit.health.evidence import Evidence
from rewardkit.health.flag import Detection
from rewardkit.health.jumps import FORMATS
from rewardkit.health.measures import by_group, highest, inside_groups, without_nan
from rewardkit.record.table import Floats, Mask, Whole

READ_CHARS = 1_200  # Characters of a text that are read, half of them from each end
MOST_TOKENS = 3  # Words of a phrase that is looked for; it is then told in full
TOLD_TOKENS = 12  # Words that are told of it, at most
MOST_PHRASES = 40  # Phrases that are held against the rewards, those that rose most
RISEN = 0.2  # By how much the share of completions with it rises, at least
GAIN = 0.2  # Standard deviations of single scores by which a reward rose, from which texts are read
TIED = 0.4  # Correlation inside groups from which a reward of several values pays it
TIED_VERDICTS = 0.5  # The same of a reward with two or three values
BY_DESIGN = 0.95  # From this correlation on such a reward is one for the form
RIGHT = 0.25  # Correlation with a check from which the phrase goes with right answers
VERDICTS = 3  # Different scores of a check, at most
NEIGHBOURS = 0.8  # Share of its holders that have the same next word

_BLANKS = str.maketrans(dict.fromkeys(".,;:!?\u3002\uff0c\uff1a\uff01\uff1f\u3001", " "))
_IDEOGRAPH = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_FENCED = re.compile(r"```.*?(?:```|\Z)", re.DOTALL)
_EMOJI = re.compile("[\u2600-\u27bf\U0001f300-\U0001faff]")
_IN_BRACKETS = re.compile(r"\[\d{1,3}\]")
_MARKS: Mapping[str, Callable[[str], bool]] = {
    "emoji": lambda text: not text.isascii() and _EMOJI.search(text) is not None,
    "exclamation marks": lambda text: "!" in text,
    "several numbers in brackets": lambda text: "]" in text and len(_IN_BRACKETS.findall(text)) >= 3,
}
"""Marks that no task asks for by itself."""
_FORMS = ("headings", "lists", "bold text", "tables")
_FORM = re.compile(r"[\"{}\[\]<>`#|\\$*_=/()]|^\d+$")


def phrase_spread(window: Evidence, baseline: Evidence) -> Detection | None:
    """A phrase or a mark spreads, however slowly, and a reward pays for it.

    Formula: for each run of one to three words of the sampled completions (the first and last 600 characters, without
    code in fences), and for emoji, exclamation marks, three numbers in brackets, headings, lists, bold text and tables,
    the share of completions that have it. Flagged where the share is 0.2 above the baseline's, with
    bounds that do not meet, and inside groups a paid reward goes with it (Pearson's correlation of 0.4 and, by Fisher's
    z, surely 0.2), which rose by 0.2 standard deviations of single scores. Not where a check, a reward of three values
    or fewer, goes with it too (0.25): the phrase then goes with right answers. A paid reward that is such a check must
    go with it by 0.5 to 0.95, because nearly 1 is a reward for a form, and but for emoji, exclamation marks and numbers
    another check must not. Words with signs of a format, and what stands in most of the rows' prompts or columns, are
    left out.

    Source: own; a policy that has found what a judge likes says it ever more often (arXiv 2507.08794).
    Limits: an exploit in other words each time, or one that a run of a single reward of two values pays, is not seen.
    """
    gained = [reward for reward in window.paid if _gain(window, baseline, reward) >= GAIN]
    if not gained:
        return None
    candidates = [*_risen_marks(window, baseline), *itertools.islice(_risen_phrases(window, baseline), MOST_PHRASES)]
    ties = [tie for phrase in candidates for reward in gained if (tie := _tie(window, phrase, reward)) is not None]
    for tie in sorted(ties, key=lambda tie: (round(tie.r, 2), len(tie.phrase.tokens)), reverse=True):
        text = "" if tie.phrase.mark else _in_full(window, tie.phrase)
        if not _is_of_the_rows(window, tie.phrase, text):
            return _detection(window, tie, text)
    return None


def _gain(window: Evidence, baseline: Evidence, reward: str) -> float:
    """Return by how many standard deviations of single scores a reward rose, by its weight's sign."""
    if reward not in baseline.table.scores:
        return 0.0
    before, after = (without_nan(part.table.scores[reward]) for part in (baseline, window))
    spread = float(np.concatenate([before, after]).std()) if len(before) and len(after) else 0.0
    if not 0 < spread < np.inf:
        return 0.0
    return float((after.mean() - before.mean()) / spread * np.sign(window.weights[reward]))


class _Phrase(NamedTuple):
    """A run of words, and how often sampled completions have it."""

    tokens: tuple[str, ...]
    has: Mask  # Whether each sampled completion of the window has it
    before: float  # Share of the baseline's sampled completions that have it
    after: float  # Share of the window's
    mark: str = ""  # What completions with a mark have; empty of a phrase


class _Tie(NamedTuple):
    """A phrase that a reward pays for."""

    r: float  # Their correlation inside groups
    phrase: _Phrase
    reward: str


def _documents(evidence: Evidence) -> list[list[str]]:
    """Return the words of each sampled text: ideographs by themselves, and without what ends a sentence."""
    return evidence.cached("documents", lambda: [_tokens(text) for text in evidence.sampled().texts])


def _tokens(text: str) -> list[str]:
    if "```" in text:
        text = _FENCED.sub(" ", text[:20_000])
    text = _ends(text)
    if not text.isascii():
        text = _IDEOGRAPH.sub(r" \g<0> ", text)
    return text.casefold().translate(_BLANKS).split()


def _risen_phrases(window: Evidence, baseline: Evidence) -> Iterator[_Phrase]:
    """Yield phrases whose share surely rose by RISEN, those that rose most first."""
    after, before = _documents(window), _documents(baseline)
    if min(len(after), len(before)) < 20:
        return
    least = max(1, math.ceil(RISEN * len(after)))
    counts = Counter(itertools.chain.from_iterable(map(set, after)))
    frequent = sorted(word for word, count in counts.items() if count >= least and _FORM.search(word) is None)
    runs, runs_before = _Runs(after, frequent), _Runs(before, frequent)
    rises = []
    for size in range(1, MOST_TOKENS + 1):
        shares = runs_before.shares(size)
        rises += [(share - shares.get(code, 0.0), size, code) for code, share in runs.shares(size).items()]
    groups, groups_before = window.sampled().table.groups, baseline.sampled().table.groups
    for _, size, code in sorted((rise for rise in rises if rise[0] >= RISEN), reverse=True):
        has, had = runs.has(size, code), runs_before.has(size, code)
        if by_group(has, groups).low > by_group(had, groups_before).high:
            yield _Phrase(runs.tokens_of(size, code), has, float(had.mean()), float(has.mean()))


def _ends(text: str) -> str:
    return text if len(text) <= READ_CHARS else f"{text[: READ_CHARS // 2]} \n {text[-READ_CHARS // 2 :]}"


def _risen_marks(window: Evidence, baseline: Evidence) -> Iterator[_Phrase]:
    """Yield marks whose share surely rose by RISEN."""
    parts = window, baseline
    if min(len(part.sampled().texts) for part in parts) < 20:
        return
    for mark in (*_MARKS, *_FORMS):
        has, had = (_marks_of(part)[mark] for part in parts)
        if has.mean() - had.mean() < RISEN:
            continue
        groups, groups_before = (part.sampled().table.groups for part in parts)
        if by_group(has, groups).low > by_group(had, groups_before).high:
            yield _Phrase((), has, float(had.mean()), float(has.mean()), mark)


def _marks_of(evidence: Evidence) -> dict[str, Mask]:
    """Return, by mark, which sampled completions have it."""
    return evidence.cached("marks", lambda: _find_marks(evidence))


def _find_marks(evidence: Evidence) -> dict[str, Mask]:
    texts = [_ends(text) for text in evidence.sampled().texts]
    own = {mark: np.array([has_mark(text) for text in texts], dtype=bool) for mark, has_mark in _MARKS.items()}
    return own | {name: np.array([FORMATS[name].search(text) is not None for text in texts], bool) for name in _FORMS}


class _Runs:
    """The runs of words of a vocabulary in some documents, a number for each: its words are the digits."""

    def __init__(self, documents: Sequence[Sequence[str]], vocabulary: Sequence[str]) -> None:
        self._vocabulary, self._count, self._base = vocabulary, len(documents), len(vocabulary) + 1
        numbers = dict(zip(vocabulary, itertools.count(1)))
        unknown = itertools.repeat(0)
        flat: list[int] = []
        for document in documents:
            flat.extend(map(numbers.get, document, unknown))
            flat.append(0)  # no run goes on into the next document
        self._numbers: Whole = np.array(flat, dtype=np.int64)
        self._documents: Whole = np.repeat(np.arange(self._count), [len(document) + 1 for document in documents])

    def _occurrences(self, size: int) -> tuple[Whole, Whole]:
        """Return the number of each run of a size and its document, in the order of the text."""
        end = max(len(self._numbers) - size + 1, 0)
        codes, complete = np.zeros(end, np.int64), np.ones(end, dtype=bool)
        for start in range(size):
            part = self._numbers[start : start + end]
            codes, complete = codes * self._base + part, complete & (part > 0)
        return codes[complete], self._documents[:end][complete]

    def shares(self, size: int) -> dict[int, float]:
        """Return, by run, the share of the documents that have it."""
        codes, documents = self._occurrences(size)
        pairs = np.sort(codes * self._count + documents)  # several times as fast as np.unique
        holders = pairs[np.r_[True, np.diff(pairs) > 0]] // self._count if len(pairs) else pairs
        firsts = np.flatnonzero(np.r_[True, np.diff(holders) > 0]) if len(holders) else holders
        counts = np.diff(np.r_[firsts, len(holders)]) / self._count
        return dict(zip(holders[firsts].tolist(), counts.tolist(), strict=True))

    def has(self, size: int, code: int) -> Mask:
        """Return whether each document has a run."""
        codes, documents = self._occurrences(size)
        marks: Mask = np.zeros(self._count, dtype=bool)
        marks[documents[codes == code]] = True
        return marks

    def tokens_of(self, size: int, code: int) -> tuple[str, ...]:
        """Return the words of a run."""
        digits = [code // self._base**power % self._base for power in reversed(range(size))]
        return tuple(self._vocabulary[digit - 1] for digit in digits)


def _tie(window: Evidence, phrase: _Phrase, reward: str) -> _Tie | None:
    """Return how a reward pays for a phrase; ``None`` where it does not, or the phrase goes with right answers."""
    scores = window.table.scores
    is_check = _is_check(scores[reward])
    bound = TIED_VERDICTS if is_check else TIED
    r, low = _correlation(window, phrase, reward)
    if r < bound or low < bound - 0.2:
        return None
    checks = [name for name in scores if name != reward and _is_check(scores[name])]
    if is_check and (r > BY_DESIGN or (phrase.mark not in _MARKS and (not checks or len(phrase.tokens) < 2))):
        return None
    if any(_correlation(window, phrase, check)[0] > RIGHT for check in checks):
        return None
    return _Tie(r, phrase, reward)


def _correlation(window: Evidence, phrase: _Phrase, reward: str) -> tuple[float, float]:
    """Return the correlation inside groups of a phrase and a reward, by its weight's sign, and its lower bound."""
    table = window.sampled().table
    worth = table.scores[reward] * (-1.0 if window.weights.get(reward, 0.0) < 0 else 1.0)
    correlation = inside_groups(phrase.has, worth, table.groups)
    return (correlation.r, correlation.low) if correlation is not None else (0.0, 0.0)


def _is_check(scores: Floats) -> bool:
    return len(np.unique(np.round(without_nan(scores), 6))) <= VERDICTS


def _in_full(window: Evidence, phrase: _Phrase) -> str:
    """Return a phrase with the words around it that nearly all of its holders have."""
    documents, tokens = _documents(window), list(phrase.tokens)
    holders = [documents[index] for index in np.flatnonzero(phrase.has)]
    for step in (1, -1):
        while len(tokens) < TOLD_TOKENS:
            neighbours = Counter(_neighbour(document, tokens, step) for document in holders)
            ((word, count),) = neighbours.most_common(1)
            if word is None or count < NEIGHBOURS * len(holders) or _FORM.search(word) is not None:
                break
            tokens = [*tokens, word] if step > 0 else [word, *tokens]
    joint = "" if all(_IDEOGRAPH.fullmatch(word) for word in tokens) else " "
    return joint.join(tokens)


def _neighbour(document: Sequence[str], tokens: Sequence[str], step: int) -> str | None:
    """Return the word behind the first of a run of words in a document, or before it; ``None`` without one."""
    size = len(tokens)
    for start in range(len(document) - size + 1):
        if document[start] == tokens[0] and list(document[start : start + size]) == list(tokens):
            at = start + size if step > 0 else start - 1
            return document[at] if 0 <= at < len(document) else None
    return None


def _is_of_the_rows(window: Evidence, phrase: _Phrase, text: str) -> bool:
    """Return whether a phrase stands in the prompts or columns of most completions that have it."""
    ids = window.sampled().table.ids[phrase.has].tolist()
    rows = [row for row in window.prompts(ids) if row is not None]
    core, with_phrase = " ".join(phrase.tokens), 0
    has_mark = _MARKS.get(phrase.mark) or (lambda part: FORMATS[phrase.mark].search(part) is not None)
    for row in rows:
        parts = [row.prompt, *(value for value in row.columns.values() if isinstance(value, str))]
        if phrase.mark:
            with_phrase += any(map(has_mark, parts))
        else:
            with_phrase += any(core in " ".join(_tokens(part)) or text in part.casefold() for part in parts)
    return 2 * with_phrase > len(rows)


def _detection(window: Evidence, tie: _Tie, text: str) -> Detection:
    phrase, table = tie.phrase, window.table
    subject = f"completions with {phrase.mark} go" if phrase.mark else "completions with a certain phrase go"
    message = f"{subject} from {phrase.before:.0%} to {phrase.after:.0%}, and inside groups"
    message += f" {tie.reward} pays for it (r = {tie.r:.2f})"
    action = f"Take the {phrase.mark or 'phrase'} out of some completions and let {tie.reward} score them again: if the"
    action += " score falls, it is paid by itself. Then mend the reward, or tell its judge to pass over it."
    holders = np.flatnonzero(np.isin(table.ids, window.sampled().table.ids[phrase.has]))
    rows = holders[highest(table.scores[tie.reward][holders] * np.sign(window.weights[tie.reward]))]
    rise = phrase.after - phrase.before
    return Detection(rise, RISEN, message, action, phrase.before, rows, tie.reward, quote=text)
