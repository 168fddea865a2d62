"""Special tokens that a completion spells, such as ``</s>`` or ``<|im_end|>``: they are text, and no turn ends there.

Covered: special tokens of the tokenizer, and other added tokens in pipes (DeepSeek's ``<\uff5cUser\uff5c>`` is one), in
all text of messages, tool calls included, also where a chat template joins them to one text before it is read. Not
covered: words that a template writes without a token of their own, such as ``Human:``, and the marks of thoughts.

A spelled token is hidden behind a character of the last private use area, which a template carries along. The whole
text is then read as the tokenizer reads it, and each token that stands where one was spelled is read again in parts.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from builtin_rewards.reading.thoughts import is_mark

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

_FIRST, _LAST = 0x100000, 0x10FFFD  # the last private use area, of which characters stand for spelled tokens
_PRIVATE = re.compile(f"[{chr(_FIRST)}-{chr(_LAST)}]")
_SEPARATE = re.compile(f"({_PRIVATE.pattern})")
_PIPED = re.compile(r"[<\[][|\uff5c].+[|\uff5c][>\]]", re.DOTALL)


@dataclass(slots=True)
class SpelledTokens:
    """The special tokens that the messages of one text spell, and how these messages' text is read."""

    tokenizer: PreTrainedTokenizerBase
    pattern: re.Pattern[str] | None
    ids: frozenset[int]
    _characters: dict[str, str] = field(default_factory=dict)  # what stands for a text, by the text

    @classmethod
    def of(cls, tokenizer: PreTrainedTokenizerBase) -> SpelledTokens:
        """Return an empty record for the messages of one text."""
        return cls(tokenizer, *_turn_tokens(tokenizer))

    def hide(self, value: Any) -> Any:
        """Return a message, or a value in it, with a character in place of each special token that it spells."""
        if isinstance(value, str):
            value = _PRIVATE.sub(self._hide, value)
            return self.pattern.sub(self._hide, value) if self.pattern else value
        if isinstance(value, Mapping):
            return {key: part if key == "role" else self.hide(part) for key, part in value.items()}
        return [self.hide(part) for part in value] if isinstance(value, list | tuple) else value

    def _hide(self, match: re.Match[str]) -> str:
        return self._characters.setdefault(match[0], chr(min(_FIRST + len(self._characters), _LAST)))

    def restore(self, text: str) -> str:
        """Return a text with what was hidden in it."""
        return "".join(part for part, _ in self._parts(text))

    def _parts(self, text: str) -> list[tuple[str, bool]]:
        """Return the parts of a text, and whether each was hidden."""
        if not self._characters:
            return [(text, False)]
        texts = {character: hidden for hidden, character in self._characters.items()}
        return [(texts.get(part, part), part in texts) for part in _SEPARATE.split(text) if part]

    def encode(self, text: str, *, special: bool) -> tuple[list[int], list[tuple[int, int]]]:
        """Return the tokens of a text, and the characters of its restored form that each stands for.

        ``special`` adds what the tokenizer puts around a text.
        """
        parts = self._parts(text)
        whole, spelled, end = "".join(part for part, _ in parts), list[tuple[int, int]](), 0
        for part, is_hidden in parts:
            start, end = end, end + len(part)
            if is_hidden:
                spelled.append((start, end))
        ids, spans = self._read(whole, special)
        if not spelled:
            return ids, spans
        result, result_spans = list[int](), list[tuple[int, int]]()
        for token, (first, last) in zip(ids, spans, strict=True):
            is_spelled = token in self.ids and any(first < end and start < last for start, end in spelled)
            pieces = self._in_parts(whole[first:last]) if is_spelled else [(token, (0, last - first))]
            result += [piece for piece, _ in pieces]
            result_spans += [(first + start, first + end) for _, (start, end) in pieces]
        return result, result_spans

    def _read(self, text: str, special: bool = False) -> tuple[list[int], list[tuple[int, int]]]:
        encoding = self.tokenizer(
            text, add_special_tokens=special, return_offsets_mapping=True, truncation=False, verbose=False
        )
        return list(encoding["input_ids"]), [*encoding["offset_mapping"]]

    def _in_parts(self, text: str) -> list[tuple[int, tuple[int, int]]]:
        """Return the tokens of a text that is a special token, read as text."""
        pieces: list[tuple[int, tuple[int, int]]] = []
        start = len(text) - len(text.lstrip())
        for first, last in ((0, start + 1), (start + 1, len(text))):  # no part of one is a special token
            ids, spans = self._read(text[first:last])
            pieces += [(token, (first + at, first + end)) for token, (at, end) in zip(ids, spans, strict=True)]
        return pieces


@functools.lru_cache(16)
def _turn_tokens(tokenizer: PreTrainedTokenizerBase) -> tuple[re.Pattern[str] | None, frozenset[int]]:
    """Return the added tokens that make turns, as a pattern of their texts, the longest first, and as ids."""
    texts = {
        token.content: number
        for number, token in tokenizer.added_tokens_decoder.items()
        if (token.special or _PIPED.fullmatch(token.content)) and not is_mark(token.content)
        if len(token.content.strip()) > 1  # one character has no parts
    }
    alternatives = "|".join(re.escape(text) for text in sorted(texts, key=len, reverse=True))
    return re.compile(alternatives) if texts else None, frozenset(texts.values())
