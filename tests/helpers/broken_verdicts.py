"""Replies of judges, written in the broken ways in which models write, whose grades are right by construction."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random

from builtin_rewards.judge.formats import Format
from builtin_rewards.judge.rubric import Rubric

NAMES = ("correct", "model_config", "c1", "Is-it_short")
_PIECES = (
    r"the root \( x^2 \) agrees",
    r"\[ \frac{1}{2} \sqrt{2} \]",
    r"\text{So} $\pi \times \theta$, \begin{cases}",
    r"in C:\new\dir, or C:\Users\u",
    "first line\nsecond line",
    "a\tcolumn",
    "it's right, isn't it",
    r"it\'s so",
    "no {brace} is [closed",
    "see http://x.org/a#4 // not 5",
    "so: 3 of 5",
    "half a \ud83d pair",
    r"\\( escaped \\)",
    "“smart” and \u2018single\u2019",
    "score 5, correct 1",
    "a `code` ```fence```",
    r"\u00e9 and \underline{x}",
)
_QUOTED = ('the "chain rule" holds', 'he says "yes", which is "right"', r"says \"no\" of it", '"all" of it is "so"')
_TAILS = ("", ".", "\\", " \\)", "\n", "}", '"')
_THOUGHT_MARKS = (
    *(("<think>", "</think>"), ("", "</think>"), ("<reasoning>", "</reasoning>"), ("[THINK]", "[/THINK]")),
    *(("\u25c1think\u25b7", "\u25c1/think\u25b7"), ("<|START_THINKING|>", "<|END_THINKING|>")),
    ("<|channel|>analysis<|message|>", "<|end|><|start|>assistant<|channel|>final<|message|>"),
)
_MARKS = {'"': ('"', '"'), "'": ("'", "'"), "smart": ("“", "”")}


@dataclass(frozen=True)
class BrokenReply:
    """A reply with the grades that it states, and the seed's choices as words."""

    text: str
    format: Format
    rubric: Rubric
    grades: dict[str, int | None]
    faults: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        return f"{self.format}, {self.faults}: {self.text!r} states {self.grades}"


class Writer:
    """One way in which a model writes an object."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.faults: list[str] = []
        self.mark = random.choice(['"', '"', '"', "'", "smart"])
        self.is_bare = random.random() < 0.05

    def chance(self, share: float, fault: str) -> bool:
        """Return whether a fault is made, and note it."""
        if is_made := self.random.random() < share:
            self.faults.append(fault)
        return is_made

    def key(self, name: str) -> str:
        if self.is_bare:
            return name
        if self.chance(0.03, "an escaped underscore"):
            name = name.replace("_", r"\_")
        opens, closes = _MARKS[self.mark]
        return f"{opens}{name}{closes}"

    def reason(self) -> str:
        """Return a text as it stands in the reply, with its quotation marks."""
        opens, closes = _MARKS[self.mark]
        pieces = self.random.sample(_PIECES, self.random.randint(0, 3))
        if self.mark == '"' and self.chance(0.3, "bare quotation marks"):
            pieces.insert(self.random.randint(0, len(pieces)), self.random.choice(_QUOTED))
        if self.mark == "smart":
            pieces = [piece for piece in pieces if "“" not in piece]
        return f"{opens}{' '.join(pieces)}{self.random.choice(_TAILS)}{closes}"

    def object(self, members: list[tuple[str, str]], indent: str) -> str:
        lines = [f"{self.key(name)}: {value}" for name, value in members]
        separator = (
            "\n" if self.chance(0.04, "no comma") and len(lines) > 1 else f",{self.random.choice([' ', indent])}"
        )
        comment = (
            self.random.choice(["// as asked\n", "# so\n", "/* a note */"]) if self.chance(0.06, "comment") else ""
        )
        comma = "," if self.chance(0.1, "a last comma") else ""
        return f"{{{comment}{separator.join(lines)}{comma}{indent}}}"


Part = Callable[[Writer, str, "int | None"], str]


def write_part(writer: Writer, name: str, grade: int | None) -> str:
    """Return the part of one criterion."""
    none = writer.random.choice(["null", "None"])
    digits = none if grade is None else f"{grade}.0" if writer.chance(0.05, "4.0") else str(grade)
    members = [("reason", writer.reason()), ("score", digits)]
    if writer.chance(0.1, "the grade first"):
        members.reverse()
    if writer.chance(0.04, "the grade twice"):
        members.append(("score", digits))
    return writer.object(members, writer.random.choice(["", "\n  "]))


def draw_reply(random: Random, part: Part = write_part, frame: bool = True) -> BrokenReply:
    """Return a reply whose grade is clear, if each part is."""
    writer, format = Writer(random), random.choice(list(Format))
    scale, names = random.choice([(0, 1), (1, 5), (0, 10)]), random.sample(NAMES, random.randint(1, len(NAMES)))
    rubric = Rubric(names, scale, not_applicable=random.random() < 0.2)
    values = [*range(scale[0], scale[1] + 1), *([None] if rubric.not_applicable else [])]
    grades = {name: random.choice(values) for name in names}
    members = [(name, part(writer, name, grade)) for name, grade in grades.items()]
    if random.random() < 0.1:
        random.shuffle(members)
    text = writer.object(members, random.choice(["", "\n"]))
    return BrokenReply(_framed(writer, text, format) if frame else text, format, rubric, grades, writer.faults)


def _framed(writer: Writer, text: str, format: Format) -> str:
    """Return an object with what may stand around it."""
    if writer.chance(0.05, "a brace too many"):
        text += "}"
    elif not re.search(r",\s*\}$", text) and writer.chance(0.05, "a brace too few"):
        text = text.rstrip().removesuffix("}")
    if writer.chance(0.2, "a fence"):
        closing = "" if writer.chance(0.1, "that is open") else "\n```"
        text = f"```{writer.random.choice(['json', '', 'JSON', 'python', 'json5'])}\n{text}{closing}"
    if format is Format.TEXT and writer.chance(0.3, "words before"):
        text = f'It "seems" {{so}}, by \\frac{{1}}{{2}}.\n{text}'
    if writer.chance(0.1, "a thought"):
        opening, closing = writer.random.choice(_THOUGHT_MARKS)
        text = f'{opening}Is it "score": 5? {{"correct": 1}}{closing}\n{text}'
    return text + ("<|im_end|>" if writer.chance(0.05, "a stop token") else "")
