"""Answers in words: choices of a question, yes and no, and nouns."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from random import Random
from typing import ClassVar, Self

from rewardkit.renderings.writing import Writing

_CHOICES = "ABCDE"
_NOUNS_TEXT = """
ellipse circle parabola triangle square east west north south Tuesday Friday Evelyn Sasha blue green Paris London
copper oxygen photosynthesis democracy rhombus median infinite prism cone sphere elephant whale violin rectangle
"""
_PHRASES = ("neither", "right triangle", "carbon dioxide", "New York", "the Nile", "Marie Curie", "odd function")
_NOUNS = (*_NOUNS_TEXT.split(), *_PHRASES)
_WORDS = re.compile(r"[A-Za-z][A-Za-z'-]+(?: [A-Za-z][A-Za-z'-]+){0,4}")
_OPPOSITES = {"yes": "no", "no": "yes", "true": "false", "false": "true"}


@dataclass(frozen=True, slots=True)
class ChoiceLetter:
    """The letter of a choice."""

    kind: ClassVar[str] = "choice"

    text: str

    @classmethod
    def draw(cls, random: Random) -> Self:
        return cls(random.choice(_CHOICES))

    @classmethod
    def read(cls, text: str) -> Self | None:
        match = re.fullmatch(r"\(?([A-E])[).]?|\\text(?:bf)?\{\s*\(?([A-E])\)?\s*\}", text.strip())
        return cls(match[1] or match[2]) if match else None

    def renderings(self) -> Iterator[Writing]:
        yield Writing("in brackets", f"({self.text})")
        yield Writing("with a bracket", f"{self.text})")
        yield Writing("in text", f"\\text{{{self.text}}}")
        yield Writing("in brackets in text", f"\\text{{({self.text})}}")
        yield Writing("in bold", f"\\textbf{{({self.text})}}")
        yield Writing("in bold type", f"\\mathbf{{{self.text}}}")

    def perturbations(self) -> Iterator[Writing]:
        for letter in _CHOICES:
            if letter != self.text:
                yield Writing("another letter", letter)
                yield Writing("another letter in brackets", f"({letter})")
                yield Writing("with a second answer", f"{self.text} or {letter}")
        yield Writing("denied", f"not {self.text}")


@dataclass(frozen=True, slots=True)
class TruthWord:
    """Yes, no, true or false."""

    kind: ClassVar[str] = "verdict"

    word: str

    @classmethod
    def draw(cls, random: Random) -> Self:
        return cls(random.choice([*_OPPOSITES]))

    @classmethod
    def read(cls, text: str) -> Self | None:
        word = text.strip().lower()
        return cls(word) if word in _OPPOSITES else None

    @property
    def text(self) -> str:
        return self.word.capitalize()

    def renderings(self) -> Iterator[Writing]:
        yield Writing("in small letters", self.word)
        yield Writing("in capitals", self.word.upper())
        yield Writing("in text", f"\\text{{{self.text}}}")

    def perturbations(self) -> Iterator[Writing]:
        opposite = _OPPOSITES[self.word]
        yield Writing("the opposite", opposite.capitalize())
        yield Writing("the opposite in text", f"\\text{{{opposite}}}")
        yield Writing("both", f"{self.word} or {opposite}")
        yield Writing("in doubt", f"maybe {self.word}")


@dataclass(frozen=True, slots=True)
class PhraseList:
    """Two or more different nouns without an order."""

    kind: ClassVar[str] = "list of words"

    phrases: tuple[str, ...]

    @classmethod
    def draw(cls, random: Random) -> Self:
        return cls(tuple(sorted(random.sample(_NOUNS_TEXT.split(), random.randint(2, 4)))))

    @classmethod
    def read(cls, text: str) -> Self | None:
        items = [item.strip() for item in text.split(",")]
        are_words = len(items) > 1 and all(re.fullmatch(r"[A-Za-z]{3,}(?: [A-Za-z]{2,}){0,2}", item) for item in items)
        return cls(tuple(sorted(items))) if are_words and len({*map(str.lower, items)}) == len(items) else None

    @property
    def text(self) -> str:
        return ", ".join(self.phrases)

    def renderings(self) -> Iterator[Writing]:
        yield Writing("in another order", ", ".join(self.phrases[::-1]))
        yield Writing("in small letters", self.text.lower())
        if len(self.phrases) > 2:
            yield Writing("with a word before the last", f"{', '.join(self.phrases[:-1])} and {self.phrases[-1]}")

    def perturbations(self) -> Iterator[Writing]:
        yield Writing("a word added", f"{self.text}, zebra")
        for index, phrase in enumerate(self.phrases):
            before, behind = self.phrases[:index], self.phrases[index + 1 :]
            yield Writing("a word lost", ", ".join([*before, *behind]))
            yield Writing("another word", ", ".join([*before, "zebra", *behind]))
            yield Writing("letters in another order", ", ".join([*before, phrase[::-1], *behind]))


@dataclass(frozen=True, slots=True)
class Phrase:
    """A noun, or a few words, compared without case."""

    kind: ClassVar[str] = "words"

    text: str

    @classmethod
    def draw(cls, random: Random) -> Self:
        return cls(random.choice(_NOUNS))

    @classmethod
    def read(cls, text: str) -> Self | None:
        match = re.fullmatch(r"\\text\{\s*([^{}\\]+?)\s*\}", text.strip())
        bare = match[1] if match else text.strip()
        return cls(bare) if _WORDS.fullmatch(bare) and bare.lower() not in _OPPOSITES else None

    def renderings(self) -> Iterator[Writing]:
        yield Writing("in small letters", self.text.lower())
        yield Writing("in capitals", self.text.upper())
        yield Writing("in text", f"\\text{{{self.text}}}")
        yield Writing("with a full stop", f"{self.text}.")
        yield Writing("in bold", f"\\textbf{{{self.text}}}")

    def perturbations(self) -> Iterator[Writing]:
        other = next(noun for noun in ("hyperbola", "zebra") if noun != self.text.lower())
        yield Writing("other words", other)
        yield Writing("denied", f"not {self.text}")
        yield Writing("with a second answer", f"{self.text} or {other}")
        yield Writing("a letter lost", self.text[:-1])
        yield Writing("a letter changed", f"{self.text[:-1]}q")
        yield Writing("its first letter", self.text[0])
        yield Writing("part of a longer word", f"un{self.text.lower()}")
