"""Instructions about how much of something a text has: words, sentences, paragraphs, and shares of them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping

from builtin_rewards.instructions.kind import InstructionKind, is_bounded
from builtin_rewards.instructions.tokens import is_mark, split_sentences, split_tokens, split_words
from builtin_rewards.reading.normalisation import plain_quotes

_WORD = re.compile(r"\w+")
_CONJUNCTIONS = frozenset(("and", "but", "for", "nor", "or", "so", "yet"))
_PRONOUNS = (
    "i me my mine myself we us our ours ourselves you your yours yourself yourselves he him his himself she her hers "
    "herself it its itself they them their theirs themselves"
)
_PRONOUN_SET = frozenset(_PRONOUNS.split())
_FUNCTION_WORDS = (  # of English, and what apostrophes leave of them
    "a an the this that these those what which who whom am is are was were be been being have has had having do does "
    "did doing will should can and but or nor if because as until while of at by for with about against between into "
    "through during before after above below to from up down in out on off over under again further then once here "
    "there when where why how all any both each few more most other some such no not only own same so than too very "
    "just now s t d m o y ll re ve ma don ain aren couldn didn doesn hadn hasn haven isn mightn mustn needn shan "
    "shouldn wasn weren won wouldn"
)
_STOP_WORDS = _PRONOUN_SET | frozenset(_FUNCTION_WORDS.split())
_NAMES = (  # those of IFBench's prompts
    "Emma Liam Sophia Jackson Olivia Noah Ava Lucas Isabella Mason Mia Ethan Charlotte Alexander Amelia Benjamin "
    "Harper Leo Zoe Daniel Chloe Samuel Lily Matthew Grace Owen Abigail Gabriel Ella Jacob Scarlett Nathan Victoria "
    "Elijah Layla Nicholas Audrey David Hannah Christopher Penelope Thomas Nora Andrew Aria Joseph Claire Ryan "
    "Stella Jonathan"
)
_NAME_SET = frozenset(_NAMES.split())
_JAPANESE = re.compile("[\u3040-\u30ff\u4e00-\u9fff]")
_INTERROBANG = re.compile(r"\?!|!\?|\u203d")


def count_sentences(text: str) -> int:
    """Return the number of sentences; text after the last end mark counts as one."""
    return len(split_sentences(text))


def count_capital_words(text: str) -> int:
    """Return the number of words in capitals (``NASA``, ``I``, ``U.S.``); nltk splits ``IT'S`` in two."""
    return sum(map(str.isupper, split_tokens(text)))


def is_divided(text: str, mark: str, count: int) -> bool:
    """Return whether marks divide a text into so many parts, with no blank part between two marks."""
    parts = [part.strip() for part in re.split(mark, text)]
    return all(parts[1:-1]) and sum(map(bool, parts)) == count


def _has_first_word(text: str, num_paragraphs: int, nth_paragraph: int, first_word: str) -> bool:
    paragraphs = text.split("\n\n")
    tokens = paragraphs[nth_paragraph - 1].split(maxsplit=1) if len(paragraphs) >= nth_paragraph else []
    token = plain_quotes(tokens[0]).lower() if tokens else ""
    bare = token.strip("".join(filter(is_mark, token)))
    forms = {token, bare, re.split(r"[^\w-]", bare, maxsplit=1)[0]}
    return sum(bool(paragraph.strip()) for paragraph in paragraphs) == num_paragraphs and first_word.lower() in forms


def _share_of_trigrams(text: str, reference_text: str) -> float:
    grams, reference = ({part[start : start + 3] for start in range(len(part) - 2)} for part in (text, reference_text))
    return len(grams & reference) / len(grams) if grams else 0.0


def _count_ends(text: str) -> tuple[int, int, int]:
    """Return how many sentences end in a full stop, a question mark and an exclamation mark."""
    ends = Counter(sentence.rstrip("\"')*_ \u201d\u2019")[-1:] for sentence in split_sentences(text))
    return ends["."], ends["?"], ends["!"]


def _has_stop_words(text: str, percentage: int) -> bool:
    tokens = _WORD.findall(text.lower())
    return bool(tokens) and 100 * sum(word in _STOP_WORDS for word in tokens) <= percentage * len(tokens)


def _covers_marks(text: str) -> bool:
    interrobang = _INTERROBANG.search(text)
    rest = text.replace(interrobang[0], "", 1) if interrobang else ""
    return set(".,!?;:") <= set(rest)


def _has_japanese(text: str, N: int) -> bool:
    tokens = [word for word in text.split()[N - 1 :: N] if not all(map(is_mark, word))]
    return bool(tokens) and all(map(_JAPANESE.search, tokens))


IFEVAL: Mapping[str, InstructionKind] = {
    "change_case:capital_word_frequency": InstructionKind(
        "At least, or less than, so many words are in capitals, divided as nltk divides them.",
        lambda text, capital_relation, capital_frequency: is_bounded(
            count_capital_words(text), capital_relation, capital_frequency
        ),
    ),
    "length_constraints:nth_paragraph_first_word": InstructionKind(
        "So many paragraphs are divided by blank lines, and the nth begins with the word, marks around it or not.",
        _has_first_word,
    ),
    "length_constraints:number_paragraphs": InstructionKind(
        "So many paragraphs, none of them blank, are divided by `***`.",
        lambda text, num_paragraphs: is_divided(text, r"\s?\*\*\*\s?", num_paragraphs),
    ),
    "length_constraints:number_sentences": InstructionKind(
        "At least, or less than, so many sentences.",
        lambda text, relation, num_sentences: is_bounded(count_sentences(text), relation, num_sentences),
    ),
    "length_constraints:number_words": InstructionKind(
        "At least, or less than, so many words: runs of letters, digits and underscores.",
        lambda text, relation, num_words: is_bounded(len(_WORD.findall(text)), relation, num_words),
    ),
}
IFBENCH: Mapping[str, InstructionKind] = {
    "count:conjunctions": InstructionKind(
        "At least so many different words of and, but, for, nor, or, so, yet.",
        lambda text, small_n: len(_CONJUNCTIONS & set(split_words(text))) >= small_n,
    ),
    "count:numbers": InstructionKind(
        "Exactly so many numbers; punctuation inside one, as in 1,000.5, does not divide it.",
        lambda text, N: len(re.findall(r"\d+", "".join(char for char in text if not is_mark(char)))) == N,
    ),
    "count:person_names": InstructionKind(
        "At least so many different names of the list in IFBench's prompts, as whole words.",
        lambda text, N: len(_NAME_SET & set(_WORD.findall(text))) >= N,
    ),
    "count:pronouns": InstructionKind(
        "At least so many personal and possessive pronouns.",
        lambda text, N: sum(word in _PRONOUN_SET for word in split_words(text.replace("/", " "))) >= N,
    ),
    "count:punctuation": InstructionKind("Each of . , ! ? ; : is there, and an interrobang besides.", _covers_marks),
    "count:unique_word_count": InstructionKind(
        "At least so many different words, in any case and without punctuation.",
        lambda text, N: len(set(split_words(text))) >= N,
    ),
    "count:word_count_range": InstructionKind(
        "From `min_words` to `max_words` words, counted as for `length_constraints:number_words`.",
        lambda text, min_words, max_words: min_words <= len(_WORD.findall(text)) <= max_words,
    ),
    "count:words_japanese": InstructionKind(
        "Every Nth word, of those between blanks, has a Japanese character, and there is one.", _has_japanese
    ),
    "ratio:overlap": InstructionKind(
        "Of the text's different sequences of three characters, the reference has the percentage, give or take 2.",
        lambda text, reference_text, percentage: abs(100 * _share_of_trigrams(text, reference_text) - percentage) <= 2,
    ),
    "ratio:sentence_balance": InstructionKind(
        "As many sentences end in a full stop as in a question mark and in an exclamation mark, at least one each.",
        lambda text: len(set(ends := _count_ends(text))) == 1 and ends[0] > 0,
    ),
    "ratio:sentence_type": InstructionKind(
        "Twice as many sentences end in a full stop as in a question mark, of which there is one.",
        lambda text: (ends := _count_ends(text))[0] == 2 * ends[1] > 0,
    ),
    "ratio:stop_words": InstructionKind(
        "At most the percentage of the words are stop words of English.", _has_stop_words
    ),
}
