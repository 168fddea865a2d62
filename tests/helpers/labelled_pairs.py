"""Golds and completions whose label is right by construction: drawn from a seed, written by the grammar of values."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from random import Random
from typing import NamedTuple

from rewardkit.renderings.writing import Value, Writing, other_texts

_WORK = "Let me think about it.\n"
MARKED = ("\\boxed{%}", "So we get $\\boxed{%}$.", "<answer>%</answer>", f"{_WORK}\\[\\boxed{{%}}\\]")
FORMULA_FRAMES = (*MARKED, "The answer is $%$.", f"{_WORK}The final answer is $%$.")
TEXT_FRAMES = (*MARKED, "The answer is %.", "Answer: %", "#### %", f"{_WORK}The final answer is %.")
DOCUMENT_FRAMES = ("%", "\n%\n", "<answer>%</answer>", "<think>I think it over.</think>\n\n%")
OTHER_GOLDS = 0.3  # the share of golds that are written in another way than the usual one


class LabelledPair(NamedTuple):
    """A gold and a completion, and whether its answer is the gold's."""

    kind: str
    gold: Writing
    answer: Writing
    completion: str
    is_equal: bool

    def __str__(self) -> str:
        label = "equal" if self.is_equal else "other"
        names = f"{self.kind}, {self.gold.name}; {self.answer.name}"
        return f"{label}: {self.gold.text!r} and {self.completion!r} ({names})"


def frame_answer(writing: Writing, random: Random) -> str:
    """Return a completion with an answer in it."""
    return random.choice(FORMULA_FRAMES if writing.is_formula else TEXT_FRAMES).replace("%", writing.text)


def frame_marked(writing: Writing, random: Random) -> str:
    """Return a completion with an answer in a box or tags, or with nothing around it."""
    return random.choice((*MARKED, "%")).replace("%", writing.text)


def frame_document(writing: Writing, random: Random) -> str:
    """Return a completion that is a document, in tags or behind a thought or not."""
    return random.choice(DOCUMENT_FRAMES).replace("%", writing.text)


def draw_pairs(
    kinds: Sequence[type[Value]],
    count: int,
    random: Random,
    *,
    frame: Callable[[Writing, Random], str] = frame_answer,
    left_out: Collection[tuple[str, str]] = (),
    only_usual: bool = False,
    usual_golds: bool = False,
) -> Iterator[LabelledPair]:
    """Yield so many pairs, as many equal as not.

    ``left_out`` has the kinds and names of writings that a reward's page rules otherwise; ``only_usual`` leaves out all
    renderings but the value's own text, ``usual_golds`` writes the golds in no other way than that.
    """
    for _ in range(count // 2):
        value = random.choice(kinds).draw(random)
        usual = Writing("as usual", value.text)
        equal = [] if only_usual else _allowed(value, other_texts(value.text, value.renderings()), left_out)
        others = _allowed(value, value.perturbations(), left_out)
        gold = random.choice(equal) if equal and not usual_golds and random.random() < OTHER_GOLDS else usual
        for answers, is_equal in (([usual, *equal], True), (others, False)):
            answer = random.choice(answers)
            yield LabelledPair(value.kind, gold, answer, frame(answer, random), is_equal)


def _allowed(value: Value, writings: Iterable[Writing], left_out: Collection[tuple[str, str]]) -> list[Writing]:
    return [writing for writing in writings if (value.kind, writing.name) not in left_out]


def disagreements(is_right: Callable[[str, str], bool | None], pairs: Iterable[LabelledPair]) -> list[str]:
    """Return the pairs whose label a reward does not confirm; it is asked with a completion and a gold."""
    verdicts = ((is_right(pair.completion, pair.gold.text), pair) for pair in pairs)
    return [f"{verdict}, {pair}" for verdict, pair in verdicts if verdict != pair.is_equal]
