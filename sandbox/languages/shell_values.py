"""Values as words of a shell, as data sets of functions in Bash write them (MultiPL-E's ``humaneval_to_sh.py``).

A list is its items with blanks between them, a list of lists has a line for each, and a mapping a line ``key,item`` for
each pair; truth is ``true`` and ``false``, and nothing ``None``. What no word can tell from another value is refused.
"""

from __future__ import annotations

from typing import Any

from sandbox.errors import NotPlainError
from sandbox.languages.notation import Notation, number_of

_TRUTH = {"true": True, "false": False}


def as_word(value: Any) -> str:
    """Return a value as one word; raise NotPlainError where it has none, or one that another value has, too."""
    if type(value) in (list, tuple):
        if value and all(type(item) in (list, tuple) for item in value):
            return "\n".join(" ".join(map(_part, line)) for line in value)
        return " ".join(map(_part, value))
    if type(value) is dict:
        return "\n".join(f"{_key(key)},{_part(item)}" for key, item in value.items())
    return _scalar(value)


def _scalar(value: Any) -> str:
    if type(value) is str:
        if "\0" in value or value.encode("utf-8", "replace").decode() != value:
            raise NotPlainError("a text with what no word of a shell has")
        return value
    if type(value) is bool:
        return "true" if value else "false"
    if value is None or type(value) in (int, float):
        return str(value)
    raise NotPlainError(f"a value of type {type(value).__name__} in another is no word of a shell")


def _part(value: Any) -> str:
    """Return an item of a list or mapping, which blanks end."""
    word = _scalar(value)
    if len(word.split()) != 1 or word != word.strip():
        raise NotPlainError(
            f"a text in a list that is empty or has blanks cannot be written for a shell: {word[:60]!r}"
        )
    return word


def _key(value: Any) -> str:
    key = _part(value)
    if "," in key:
        raise NotPlainError(f"a key with a comma cannot be written for a shell: {key[:60]!r}")
    return key


class WordNotation(Notation):
    """The notation of Bash: what a function printed, without the ends of lines behind it, is read by the row's type."""

    __slots__ = ()

    def check(self, expected: Any) -> None:
        """Raise NotPlainError where no word, or several values' word, is the expected value's."""
        if as_word(expected).endswith("\n") and type(expected) is str:
            raise NotPlainError("a text that ends with a line's end is no value of a command")

    def meant(self, value: Any, expected: Any) -> Any:
        """Return a text as the expected value's type, wherever it can be read so."""
        wanted = type(expected)
        if type(value) is not str or wanted is str:
            return value
        if wanted in (list, tuple):
            if expected and type(expected[0]) in (list, tuple):
                lines = value.split("\n")
                return self._meant_items([*lines, *[""] * (len(expected) - len(lines))], expected)
            return self._meant_items(value.split(), expected)
        if wanted is dict:
            return self._meant_table(value, expected)
        word = value.strip()
        if wanted is bool:
            return _TRUTH.get(word, value)
        if expected is None:
            return None if word in ("", "None") else value
        return number_of(word)

    def _meant_items(self, items: list[str], expected: Any) -> Any:
        same_size = len(items) == len(expected)
        return [self.meant(*pair) for pair in zip(items, expected, strict=True)] if same_size else items

    def _meant_table(self, text: str, expected: dict[Any, Any]) -> Any:
        keys = {as_word(key): key for key in expected}
        pairs = [line.split(",", 1) for line in text.splitlines() if line.strip()]
        if any(len(pair) != 2 for pair in pairs):
            return text
        table = {keys.get(key, key): item for key, item in pairs}
        if len(table) != len(pairs):
            return text
        return {key: self.meant(item, expected[key]) if key in expected else item for key, item in table.items()}
