"""The kinds of values that the grammar has, and the one that a gold is."""

from __future__ import annotations

from random import Random

from rewardkit.renderings.closed_forms import MultipleOfPi, RootNumber
from rewardkit.renderings.collections import NumberMatrix, NumberSet, Point
from rewardkit.renderings.documents import JsonDocument, ToolCalls
from rewardkit.renderings.functions import FunctionTerm, LineQuotient
from rewardkit.renderings.intervals import NumberRange
from rewardkit.renderings.moments import Angle, CalendarDay, ClockTime
from rewardkit.renderings.numbers import PlainNumber
from rewardkit.renderings.phrases import ChoiceLetter, Phrase, PhraseList, TruthWord
from rewardkit.renderings.polynomials import LineEquation, Polynomial
from rewardkit.renderings.quantities import Measure, Money
from rewardkit.renderings.writing import Value

KINDS: tuple[type[Value], ...] = (
    PlainNumber,
    RootNumber,
    MultipleOfPi,
    Money,
    Measure,
    Angle,
    CalendarDay,
    ClockTime,
    NumberRange,
    Point,
    NumberSet,
    NumberMatrix,
    LineEquation,
    FunctionTerm,
    LineQuotient,
    ChoiceLetter,
    TruthWord,
    ToolCalls,
    JsonDocument,
    Polynomial,
    PhraseList,
    Phrase,
)
"""The kinds, in the order in which a gold is read: the first that reads a text decides."""


def draw_value(random: Random) -> Value:
    """Return a value of a kind drawn at random."""
    return random.choice(KINDS).draw(random)


def read_value(text: str) -> Value | None:
    """Return the value that a gold's text is; ``None`` where no kind reads it."""
    return next((value for kind in KINDS if (value := kind.read(text)) is not None), None)
