"""Grades weighted by how likely the judge was to give them, from the log-probabilities of its tokens.

The formula is G-Eval's (arXiv 2303.16634, section 2): score = sum over grades s of p(s) * s. It owns where a grade's
tokens are and what they say of the other grades; asking for log-probabilities is the judge's, reading ``verdict``'s.

A grade's characters are rarely a token: `` 4``, ``": 4``, ``4}``, ``1`` then ``0``. So the tokens are followed from the
first that reaches past the colon before the grade. Each alternative in its place is read as JSON together with what
was written since the colon:

- it settles a grade: a blank, a comma or a brace follows the digits, or no other grade begins with these digits;
- or it leaves several open (``1`` on a scale of 0 to 10). For the token that was sampled the next token's
  alternatives tell, and the probabilities are multiplied. For another nothing is known of what would follow;
- or it is the beginning of no grade.

The probability that settles grades is the *mass*; the rest, open, beyond the alternatives a server lists or on no grade
at all, is unknown, and the distribution is that of the mass, scaled to 1.

Exact, where the server's log-probabilities are: the share of each settled spelling of a grade, several spellings of one
added up, given all tokens before. Where all that is unknown lies on grades too, the mean is off by at most
(1 - mass) * (highest - lowest grade).

Approximate: digits that begin one grade only count as that grade whatever would follow, which is exact where the server
holds the model to the schema. The distribution is given this reply's reasons and earlier grades, and not over all
replies; several samples (``verdict.combine``) average over those. Some servers report the model's probabilities before
they hold it to a schema, which lowers the mass.
"""

from __future__ import annotations

import bisect
import itertools
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from builtin_rewards.judge.endpoint.values import Reply, Token
from builtin_rewards.judge.formats import object_start
from builtin_rewards.judge.rubric import Rubric
from builtin_rewards.judge.verdict import Verdict
from builtin_rewards.reading.values import read_json

MINIMUM_MASS = 0.5
"""The mass from which on a weighted grade replaces the one that was sampled: more is known than is not."""

_BLANK = " \t\n\r"
_BEGUN = re.compile(r"[ \t\n\r]*(-?[0-9]*)")
_PART = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|[{}\[\]:,]|[^\s{}\[\]:,"]+', re.DOTALL)
"""A string, a mark or a number of JSON."""


@dataclass(frozen=True, slots=True)
class GradeLikelihood:
    """How likely each grade was in the place of one.

    Attributes:
        sampled: The grade that was given.
        probabilities: By grade, of those seen with any probability; their sum is 1.
        mass: The probability that they are known to have together, up to 1.
    """

    sampled: int
    probabilities: Mapping[int, float]
    mass: float

    @property
    def mean(self) -> float:
        """The expected grade."""
        mean = math.fsum(grade * share for grade, share in self.probabilities.items())
        return min(max(mean, min(self.probabilities)), max(self.probabilities))


class Weighted(NamedTuple):
    """A verdict with weighted grades, and what they were weighted with, by criterion."""

    verdict: Verdict
    likelihoods: Mapping[str, GradeLikelihood]


def weighted(reply: Reply, verdict: Verdict, rubric: Rubric, minimum_mass: float = MINIMUM_MASS) -> Weighted:
    """Gives a reply's verdict with each grade replaced by its mean, where that is known.

    A grade stays as sampled where nothing is known of its likelihood or less mass than ``minimum_mass`` is; the
    likelihoods tell which.

    Args:
        reply: What the judge replied, asked with ``logprobs`` and ``top_logprobs``.
        verdict: What was read from this reply.
        rubric: What was asked.
        minimum_mass: From 0 to 1.
    """
    found = grade_likelihoods(reply, verdict, rubric)
    means = {name: known.mean for name, known in found.items() if known.mass >= minimum_mass}
    grades = {**verdict.grades, **means}
    return Weighted(replace(verdict, grades=grades, score=rubric.normalised(grades)), found)


def grade_likelihoods(reply: Reply, verdict: Verdict, rubric: Rubric) -> dict[str, GradeLikelihood]:
    """Gives how likely each grade was, by criterion.

    A criterion is left out where the reply has no tokens, or tokens that do not spell the verdict, where its grade is
    not written as a plain whole number (``4.0``), and where a token of it came without alternatives.
    """
    tokens = reply.tokens or ()
    text = "".join(token.text for token in tokens)
    ends = list(itertools.accumulate(len(token.text) for token in tokens))
    spellings = {str(grade): grade for grade in range(rubric.scale[0], rubric.scale[1] + 1)}
    found = {}
    for name, place in _places(text).items():
        sampled = spellings.get(place.literal)
        if sampled is None or sampled != verdict.grades.get(name):
            continue
        first = bisect.bisect_right(ends, place.after_colon)
        lead = tokens[first].text[: place.after_colon - ends[first]]
        masses = _masses(tokens[first:], lead, spellings)
        if masses:
            total = math.fsum(masses.values())
            shares = {grade: mass / total for grade, mass in sorted(masses.items())}
            found[name] = GradeLikelihood(sampled, shares, min(1.0, total))
    return found


class _Place(NamedTuple):
    """Where a grade stands: the place after the colon before it, and how it is written."""

    after_colon: int
    literal: str


def _places(text: str) -> dict[str, _Place]:
    """Gives where the grades stand in the object that ends a text, end-of-turn tokens and a fence aside."""
    text = text[: text.rfind("}") + 1]
    start = object_start(text)
    if start is None or not _is_json(text[start:]):
        return {}
    places: dict[str, _Place] = {}
    keys: list[str] = []
    last, after_colon = "", 0
    for part in _PART.finditer(text, start):
        if part[0] == "{":
            keys.append("")
        elif part[0] == "}":
            keys.pop()
        elif part[0] == ":" and keys:
            keys[-1], after_colon = last[1:-1], part.end()
        elif part[0] not in "[],:" and keys[1:] == ["score"]:
            places.setdefault(keys[0], _Place(after_colon, part[0]))
        last = part[0]
    return places


def _is_json(text: str) -> bool:
    try:
        read_json(text)
    except ValueError:
        return False
    return True


def _masses(tokens: Sequence[Token], lead: str, spellings: Mapping[str, int]) -> dict[int, float]:
    """Gives the probability known of each grade; of none where a token has no alternatives.

    Args:
        tokens: From the first that reaches past the colon.
        lead: What that one has before the place after the colon.
        spellings: Each grade's digits.
    """
    masses: dict[int, float] = {}
    reached, written = 1.0, ""
    for token in tokens:
        if not token.top:
            return {}
        goes_on = 0.0
        for text, probability in _alternatives(token).items():
            if not probability or not text.startswith(lead):
                continue
            begun = _grades_begun(written + text[len(lead) :], spellings)
            if len(begun) == 1:
                masses[begun[0]] = masses.get(begun[0], 0.0) + reached * probability
            elif text == token.text:
                goes_on = probability
        if not goes_on:
            break
        reached *= goes_on
        written, lead = (written + token.text[len(lead) :]).lstrip(_BLANK), ""
    return {grade: mass for grade, mass in masses.items() if mass > 0}


def _alternatives(token: Token) -> dict[str, float]:
    """Gives the probability of each token seen in a place. Some servers list the sampled one twice, some never."""
    found: dict[str, float] = {}
    for text, logprob in ((token.text, token.logprob), *token.top):
        probability = 0.0 if math.isnan(logprob) else math.exp(min(0.0, logprob))
        found[text] = max(probability, found.get(text, 0.0))
    return found


def _grades_begun(written: str, spellings: Mapping[str, int]) -> list[int]:
    """Gives the grades that what stands after the colon can be or become: one is settled, none is no grade."""
    begun = _BEGUN.match(written)
    assert begun is not None  # it matches the empty text
    digits, rest = begun[1], written[begun.end() :]
    if rest:
        return [spellings[digits]] if digits in spellings and rest[0] in _BLANK + ",}" else []
    return [grade for spelling, grade in spellings.items() if spelling.startswith(digits)]
