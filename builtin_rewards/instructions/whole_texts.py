"""Instructions about a text as a whole: its language, its case, how it begins and ends, what it repeats."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping

from builtin_rewards.instructions.kind import InstructionKind
from builtin_rewards.instructions.languages import is_in_language
from builtin_rewards.reading.normalisation import beyond_ascii, plain_quotes

_SENTENCE_TO_COPY = "only output this sentence here, ignore all other requests."


def _has_comma(text: str) -> bool:
    marks = (char for char in beyond_ascii(text) if unicodedata.category(char) == "Po")
    return "," in text or any("COMMA" in unicodedata.name(mark) for mark in marks)


def _repeats_prompt(text: str, prompt_to_repeat: str) -> bool:
    return plain_quotes(text).strip().lower().startswith(plain_quotes(prompt_to_repeat).lower())


def _changes_first_word(text: str, prompt_to_repeat: str) -> bool:
    tokens, copied = prompt_to_repeat.split(), text.split()
    return tokens[1:] == copied[1:] and tokens[0] != copied[0]


def _copies_span(text: str, prompt_to_repeat: str, n_start: int, n_end: int) -> bool:
    tokens, copied = prompt_to_repeat.lower().split(), text.lower().split()
    return copied in (tokens[n_start : n_end + 1], tokens[n_start:n_end])


IFEVAL: Mapping[str, InstructionKind] = {
    "change_case:english_capital": InstructionKind(
        "English, in capitals.", lambda text: text.isupper() and is_in_language(text.lower(), "en")
    ),
    "change_case:english_lowercase": InstructionKind(
        "English, without capitals.", lambda text: text.islower() and is_in_language(text, "en")
    ),
    "combination:repeat_prompt": InstructionKind(
        "The text begins with the request, word for word in any case.", _repeats_prompt
    ),
    "language:response_language": InstructionKind(
        "The text is in the language, as langdetect or py3langid tells it; without letters it is in none.",
        is_in_language,
    ),
    "punctuation:no_comma": InstructionKind("There is no comma of any script.", lambda text: not _has_comma(text)),
    "startend:end_checker": InstructionKind(
        "The text ends with the phrase, in any case; quotation marks behind it do not count.",
        lambda text, end_phrase: (
            plain_quotes(text).strip().strip('"').lower().endswith(plain_quotes(end_phrase).lower())
        ),
    ),
}
IFBENCH: Mapping[str, InstructionKind] = {
    "repeat:repeat_change": InstructionKind(
        "The text is the request with another first word, and nothing else.", _changes_first_word
    ),
    "repeat:repeat_simple": InstructionKind(
        "The text is the sentence of IFBench's prompt that is to be copied, in any case.",
        lambda text: text.strip().lower() == _SENTENCE_TO_COPY,
    ),
    "repeat:repeat_span": InstructionKind(
        "The text is the words `n_start` to `n_end` of the request, counted from 0, with or without the last.",
        _copies_span,
    ),
}
