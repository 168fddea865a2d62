"""Instructions about keywords: whether, how often and where a word stands in a text.

What is forbidden (words, ``less than`` n keywords or letters) is searched in the text as a reader sees it: without
zero-width characters, with full-width, Cyrillic and Greek look-alikes as Latin letters. What is required is searched as
written, apart from the form of quotation marks.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from builtin_rewards.instructions.kind import LESS, InstructionKind, is_bounded
from builtin_rewards.instructions.tokens import is_mark, split_sentences, split_tokens
from builtin_rewards.reading.normalisation import fold, is_spaced, plain_quotes

_LOOK_ALIKES = (
    "a:\u0430\u03b1 c:\u0441 d:\u0501 e:\u0435 g:\u0261 h:\u04bb i:\u0456\u0131\u03b9 j:\u0458 "
    "k:\u043a\u03ba l:\u04cf o:\u043e\u03bf p:\u0440\u03c1 q:\u051b s:\u0455 u:\u03c5 v:\u03bd\u0475 "
    "w:\u051d x:\u0445\u03c7 y:\u0443 A:\u0410\u0391 B:\u0412\u0392 C:\u0421 E:\u0415\u0395 "
    "H:\u041d\u0397 I:\u0406\u0399 J:\u0408 K:\u041a\u039a M:\u041c\u039c N:\u039d O:\u041e\u039f "
    "P:\u0420\u03a1 S:\u0405 T:\u0422\u03a4 X:\u0425\u03a7 Y:\u04ae\u03a5 Z:\u0396"
)
# Cyrillic and Greek letters, and a few Latin ones, by the Latin letter that they look like.
_LOOK_LATIN = str.maketrans({char: entry[0] for entry in _LOOK_ALIKES.split() for char in entry[2:]})
_TIMES = (1, 2, 3, 5, 7)  # how often IFBench's five keywords are to be used


def _as_read(text: str) -> str:
    return fold(text).translate(_LOOK_LATIN).lower()


def _as_written(text: str) -> str:
    return plain_quotes(text).lower()


def count_keyword(text: str, keyword: str) -> int:
    """Return how often a keyword stands in a text as words of their own, also in the plural: ``wars``, not ``warm``.

    Letters of scripts without blanks between words have no such borders.
    """
    pattern = r"\s+".join(map(re.escape, keyword.split())) or re.escape(keyword)
    after = r"(?:'?s|es)?(?![^\W_])" if is_spaced(keyword[-1:]) else ""
    matches = re.finditer(pattern + after, text)  # a border in front of the pattern would take much longer
    return sum(not (is_spaced(keyword[:1]) and text[match.start() - 1 : match.start()].isalnum()) for match in matches)


def _uses(text: str, keyword: str, relation: str = "", frequency: int = 1) -> bool:
    normalise = _as_read if relation == LESS else _as_written
    return is_bounded(count_keyword(normalise(text), normalise(keyword) or keyword), relation, frequency)


def _has_letters(text: str, letter: str, let_relation: str, let_frequency: int) -> bool:
    normalise = _as_read if let_relation == LESS else str.lower
    return is_bounded(normalise(text).count(normalise(letter) or letter), let_relation, let_frequency)


def _forbids(text: str, forbidden_words: Sequence[str]) -> bool:
    alternatives = "|".join(re.escape(_as_read(word).strip() or word) for word in forbidden_words)
    return not re.search(rf"(?<!\w)(?:{alternatives})(?!\w)", _as_read(text))


def _uses_in_sentence(text: str, word: str, N: int) -> bool:
    sentences = split_sentences(text)
    return len(sentences) >= N and _uses(sentences[N - 1], word)


def _bare_tokens(text: str) -> list[str]:
    return [token for token in split_tokens(_as_written(text)) if not all(map(is_mark, token))]


def _has_word_at(text: str, keyword: str, n: int, m: int) -> bool:
    tokens = [_bare_tokens(sentence) for sentence in split_sentences(text)[n - 1 : n]]
    return [keyword.lower()] == [word for sentence in tokens for word in sentence[m - 1 : m]]


def _has_second_words(text: str, keyword: str) -> bool:
    tokens = _bare_tokens(text)
    return len(tokens) > 1 and tokens[1] == tokens[-2] == keyword.lower()


IFEVAL: Mapping[str, InstructionKind] = {
    "keywords:existence": InstructionKind(
        "Each keyword is there, in any case, as a word of its own or its plural.",
        lambda text, keywords: all(_uses(text, keyword) for keyword in keywords),
    ),
    "keywords:forbidden_words": InstructionKind("None of the words is there as a whole word, in any case.", _forbids),
    "keywords:frequency": InstructionKind(
        "The keyword is there at least, or less than, so many times, counted as for `keywords:existence`.", _uses
    ),
    "keywords:letter_frequency": InstructionKind(
        "The letter is there at least, or less than, so many times, in any case.", _has_letters
    ),
}
IFBENCH: Mapping[str, InstructionKind] = {
    "count:keywords_multiple": InstructionKind(
        "The five keywords are there exactly once, twice, and three, five and seven times.",
        lambda text, keyword1, keyword2, keyword3, keyword4, keyword5: (
            tuple(
                count_keyword(_as_written(text), _as_written(keyword))
                for keyword in (keyword1, keyword2, keyword3, keyword4, keyword5)
            )
            == _TIMES
        ),
    ),
    "sentence:keyword": InstructionKind("The keyword stands in the sentence with the number.", _uses_in_sentence),
    "words:keywords_specific_position": InstructionKind(
        "The keyword is word `m` of sentence `n`, in any case; marks are no words.", _has_word_at
    ),
    "words:words_position": InstructionKind(
        "The keyword is the second word and the last but one, in any case; marks are no words.", _has_second_words
    ),
}
