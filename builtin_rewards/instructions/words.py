"""Instructions about each word of a text: its letters, its length, its syllables."""

from __future__ import annotations

import functools
import itertools
import re
import string
import unicodedata
import warnings
from collections import Counter
from collections.abc import Mapping
from typing import Any

from builtin_rewards.extras import extra
from builtin_rewards.instructions.kind import InstructionKind
from builtin_rewards.instructions.tokens import first_letters, is_mark, split_tokens, split_words
from builtin_rewards.reading.normalisation import fold

_LETTERS = string.ascii_lowercase
_CLUSTER = re.compile("[b-df-hj-np-tv-z]{2}")
_TAGGED_CHARS = 200  # what the tagger looks at for the first word
_FEWEST_PALINDROMES, _SHORTEST_PALINDROME = 10, 5
_MINOR = (
    "a an the and but or nor for so yet as at by if in into of off on onto out over per than to up upon via with from"
)
_MINOR_SET = frozenset(_MINOR.split())  # words that a title has in lower case


def _is_prime(number: int) -> bool:
    return number > 1 and all(number % divisor for divisor in range(2, int(number**0.5) + 1))


def _loops_alphabet(text: str) -> bool:
    letters = first_letters(split_words(text))
    start = _LETTERS.find(letters[:1] or " ")
    loop = itertools.islice(itertools.cycle(_LETTERS), max(start, 0), None)
    return start >= 0 and all(letter == expected for letter, expected in zip(letters, loop, strict=False))


def _has_few_vowels(text: str) -> bool:
    vowels = set(unicodedata.normalize("NFD", fold(text).lower())) & set("aeiou")
    return "\n" not in text.strip() and len(vowels) <= 3


def _has_clusters(text: str) -> bool:
    tokens = [word for word in text.lower().split() if not all(map(is_mark, word))]
    return bool(tokens) and all(map(_CLUSTER.search, tokens))


def _has_palindromes(text: str) -> bool:
    tokens = {word for word in split_words(text) if word.isalpha() and word == word[::-1]}
    return sum(len(word) >= _SHORTEST_PALINDROME for word in tokens) >= _FEWEST_PALINDROMES


@functools.cache
def _tagger() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)  # textblob leaves its files to the garbage collector
        tagger = extra("textblob.en.taggers").PatternTagger()
        tagger.tag("go", tokenize=False)  # reads its files
    return tagger


def _begins_with_verb(text: str) -> bool:
    """Return whether textblob's tagger takes the first word for a verb; a capital would make a name of it."""
    tokens = split_tokens(text.lstrip()[:_TAGGED_CHARS])
    tokens = [token.lower() if index == 0 else token for index, token in enumerate(tokens)]
    tags = _tagger().tag(" ".join(tokens), tokenize=False)
    return bool(tags) and tags[0][1].startswith("VB")


def _alternates_syllables(text: str) -> bool:
    parities = [extra("syllapy").count(word) % 2 for word in split_words(text)]
    return bool(parities) and all(parity != following for parity, following in itertools.pairwise(parities))


def _is_title(text: str) -> bool:
    """Return whether no word but the minor ones begins with a small letter; ``iPhone`` may."""
    tokens = [token for token in split_tokens(text) if token[:1].isalpha() and len(token) > 1 and "'" not in token[:1]]
    return bool(tokens) and not any(
        word[0].islower() and (word[1:].islower() or word[1:].isupper()) and word not in _MINOR_SET for word in tokens
    )


IFBENCH: Mapping[str, InstructionKind] = {
    "format:newline": InstructionKind(
        "There is a word, and no line has two.",
        lambda text: max(len(split_words(line)) for line in text.split("\n")) == 1,
    ),
    "format:title_case": InstructionKind(
        "Each word begins with a capital letter; articles, conjunctions and short prepositions need not.", _is_title
    ),
    "words:alphabet": InstructionKind(
        "Each word begins with the letter that follows the first letter of the word before, `a` after `z`.",
        _loops_alphabet,
    ),
    "words:consonants": InstructionKind("Each word has two consonants in a row, `y` among them.", _has_clusters),
    "words:no_consecutive": InstructionKind(
        "No two words in a row begin with the same letter.",
        lambda text: 0 < len(letters := first_letters(split_words(text))) == sum(1 for _ in itertools.groupby(letters)),
    ),
    "words:odd_even_syllables": InstructionKind(
        "Words with an odd and with an even number of syllables take turns, as syllapy counts them.",
        _alternates_syllables,
    ),
    "words:palindrome": InstructionKind("Ten or more different palindromes of five letters or more.", _has_palindromes),
    "words:prime_lengths": InstructionKind(
        "The number of characters of each word, without punctuation, is a prime.",
        lambda text: all(map(_is_prime, map(len, split_words(text) or [""]))),
    ),
    "words:repeats": InstructionKind(
        "No word is there more often than so many times.",
        lambda text, small_n: max(Counter(split_words(text)).values(), default=0) <= small_n,
    ),
    "words:start_verb": InstructionKind("The first word is a verb, as textblob tags it.", _begins_with_verb),
    "words:vowel": InstructionKind("One paragraph with at most three of the vowels a, e, i, o, u.", _has_few_vowels),
}
