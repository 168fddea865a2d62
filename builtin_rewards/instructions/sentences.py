"""Instructions about each sentence, line or paragraph and the one before it."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Mapping

from builtin_rewards.instructions.kind import InstructionKind
from builtin_rewards.instructions.tokens import first_letters, split_sentences, split_words

_EMOJI = re.compile(
    "[\u203c\u2049\u20e3\u2122\u2139\u2194-\u21aa\u231a-\u23ff\u24c2\u25aa-\u27bf\u2934-\u2b55\u3030\u303d\u3297\u3299"
    "\U0001f000-\U0001faff]"
)


def _sentence_words(text: str) -> list[list[str]]:
    return [tokens for sentence in split_sentences(text) if (tokens := split_words(sentence))]


def _grows(sizes: Iterable[int]) -> bool:
    return all(size < next_size for size, next_size in itertools.pairwise(sizes))


def _count_alliterative(tokens: list[str]) -> int:
    """Return how many words have a neighbour that begins with the same letter."""
    runs = (len(list(run)) for _, run in itertools.groupby(first_letters(tokens)))
    return sum(run for run in runs if run > 1)


def _alliterates_more(text: str) -> bool:
    counts = list(map(_count_alliterative, _sentence_words(text)))
    return len(counts) > 1 and _grows(counts)


def _adds_words(text: str, small_n: int) -> bool:
    sizes = list(map(len, _sentence_words(text)))
    return len(sizes) > 1 and all(after - before == small_n for before, after in itertools.pairwise(sizes))


def _chains_sentences(text: str) -> bool:
    sentences = _sentence_words(text)
    return len(sentences) > 1 and all(before[-1] == after[0] for before, after in itertools.pairwise(sentences))


def _has_emoji_first(characters: Iterable[str]) -> bool:
    """Return whether an emoji comes before the first letter, digit or blank."""
    return any(map(_EMOJI.match, itertools.takewhile(lambda char: not (char.isalnum() or char.isspace()), characters)))


def _ends_in_emoji(text: str) -> bool:
    sentences = [sentence.strip() for sentence in split_sentences(text)]
    return all(
        _has_emoji_first(reversed(sentence)) or _has_emoji_first(behind)
        for sentence, behind in itertools.pairwise([*sentences, ""])
    )


def _are_equally_long(text: str) -> bool:
    sentences = split_sentences(text)
    tokens = split_words(" ".join(sentences))
    return len(sentences) == 3 and len(set(map(len, sentences))) == 1 and len(set(tokens)) == len(tokens)


def _ends_as_it_began(text: str) -> bool:
    paragraphs = [split_words(line) for line in text.split("\n") if line.strip()]
    return all(tokens and tokens[0] == tokens[-1] for tokens in paragraphs)


def _climbs(text: str) -> bool:
    lines = [line.expandtabs() for line in text.split("\n") if line.strip()]
    return len(lines) > 1 and _grows(len(line) - len(line.lstrip()) for line in lines)


IFBENCH: Mapping[str, InstructionKind] = {
    "format:emoji": InstructionKind(
        "Each sentence has an emoji at its end, before or behind the end mark.", _ends_in_emoji
    ),
    "format:line_indent": InstructionKind("Two lines or more, each indented further than the one before.", _climbs),
    "ratio:sentence_words": InstructionKind(
        "Three sentences of as many characters each, in which no word occurs twice.", _are_equally_long
    ),
    "sentence:alliteration_increment": InstructionKind(
        "Each sentence has more words with the first letter of a neighbour than the one before; two at least.",
        _alliterates_more,
    ),
    "sentence:increment": InstructionKind(
        "Each sentence has exactly so many words more than the one before; two at least.", _adds_words
    ),
    "words:last_first": InstructionKind(
        "Each sentence begins with the last word of the one before; two at least.", _chains_sentences
    ),
    "words:paragraph_last_first": InstructionKind(
        "Each line that is not blank ends with the word that it begins with.", _ends_as_it_began
    ),
}
