"""The 25 kinds of verifiable instructions by their id, and what of a text the loose check looks at."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from builtin_rewards.ifeval import layout, wording
from builtin_rewards.ifeval.arguments import Arguments, Checker, UnusableInstructionError
from builtin_rewards.reading.turn import unframed
from builtin_rewards.reading.typography import shows

KINDS: Mapping[str, Callable[[Arguments], Checker]] = {
    "change_case:capital_word_frequency": wording.capital_word_frequency,
    "change_case:english_capital": wording.english_capital,
    "change_case:english_lowercase": wording.english_lowercase,
    "combination:repeat_prompt": layout.repeat_prompt,
    "combination:two_responses": layout.two_responses,
    "detectable_content:number_placeholders": layout.number_placeholders,
    "detectable_content:postscript": layout.postscript,
    "detectable_format:constrained_response": layout.constrained_response,
    "detectable_format:json_format": layout.json_format,
    "detectable_format:multiple_sections": layout.multiple_sections,
    "detectable_format:number_bullet_lists": layout.number_bullet_lists,
    "detectable_format:number_highlighted_sections": layout.number_highlighted_sections,
    "detectable_format:title": layout.title,
    "keywords:existence": wording.keywords_exist,
    "keywords:forbidden_words": wording.forbidden_words,
    "keywords:frequency": wording.keyword_frequency,
    "keywords:letter_frequency": wording.letter_frequency,
    "language:response_language": wording.response_language,
    "length_constraints:nth_paragraph_first_word": wording.nth_paragraph_first_word,
    "length_constraints:number_paragraphs": wording.number_paragraphs,
    "length_constraints:number_sentences": wording.number_sentences,
    "length_constraints:number_words": wording.number_words,
    "punctuation:no_comma": wording.no_comma,
    "startend:end_checker": layout.end_checker,
    "startend:quotation": layout.quotation,
}
"""For each kind, what makes its checker from its arguments."""


@dataclass(frozen=True, slots=True)
class Instruction:
    """One instruction of a row, ready to check texts.

    Attributes:
        kind: Its id without a language's prefix, such as ``punctuation:no_comma``.
        details: Its arguments on one line, for a reason; empty where it has none.
        check: Whether a text that is not blank follows it.
    """

    kind: str
    details: str
    check: Checker

    def followed_by(self, text: str, *, loose: bool = False) -> bool:
        """Whether a text follows it; loosely, whether any of its :func:`loose_variants` does."""
        text = unframed(text)
        if not loose:
            return shows(text) and self.check(text)
        return any(self.check(variant) for variant in loose_variants(text) if shows(variant))


def build_instruction(instruction_id: str, arguments: Mapping[str, Any]) -> Instruction:
    """Gives an instruction from its id, with or without the prefix ``en:``, and its arguments.

    Raises:
        UnusableInstructionError: The id is unknown, or an argument is missing or unusable.
    """
    kind = instruction_id.removeprefix("en:")
    make = KINDS.get(kind)
    if make is None:
        raise UnusableInstructionError(f"unknown instruction {instruction_id[:80]!r}")
    given = Arguments(arguments)
    try:
        return Instruction(kind, given.described(), make(given))
    except UnusableInstructionError as fault:
        raise UnusableInstructionError(f"{kind}: {fault}") from None


def loose_variants(text: str) -> Iterator[str]:
    """Gives a text, then it without its first line, its last line, and both; and the four without ``*``.

    Those that are the same as one before are left out.
    """
    seen = set()
    first, last = text.find("\n"), text.rfind("\n")
    without_first = text[first + 1 :].strip() if first >= 0 else ""
    without_last = text[:last].strip() if last >= 0 else ""
    without_both = text[first + 1 : last].strip() if first < last else ""
    variants = (text, without_first, without_last, without_both)
    for strip_stars in (False, True):
        for variant in variants:
            shown = variant.replace("*", "") if strip_stars else variant
            if shown not in seen:
                seen.add(shown)
                yield shown
