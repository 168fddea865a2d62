"""Grades weighted by how likely the judge was to give them, from the log-probabilities of its tokens.

The formula is G-Eval's (arXiv 2303.16634, section 2): score = sum over grades s of p(s) * s. A grade is a digit, so it
lies in one token. An alternative token counts if it is a digit followed by its end, a blank, a comma or a brace. The
*mass* is the probability of all that counts, and the mean is taken over the mass scaled to 1, so it is off by at most
(1 - mass) * (highest - lowest grade). This is exact if the server holds the model to the schema.
"""

from __future__ import annotations

import itertools
import math
import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import replace

from builtin_rewards.judge.formats import object_start
from builtin_rewards.judge.messages import Reply, Token
from builtin_rewards.judge.rubric import Rubric, Scale
from builtin_rewards.judge.verdict import Verdict

MINIMUM_MASS = 0.5  # the least mass with which a weighted grade replaces the sampled one: more than half is known

# A key with its object or its digit. No JSON string holds such a text, because its quotation marks are escaped.
_KEY = re.compile(r'"([A-Za-z0-9_-]{1,64})"\s*:\s*(?:\{|([0-9])(?=\s*[,}]))')
_GRADE = re.compile(r"\s*([0-9])(?![^\s,}])")


def weigh_grades(
    reply: Reply, verdict: Verdict, rubric: Rubric, minimum_mass: float = MINIMUM_MASS
) -> tuple[Verdict, dict[str, float]]:
    """Return a reply's verdict with each grade replaced by its mean, and the masses by criterion.

    A grade stays as sampled if its mass is below ``minimum_mass`` (0 to 1): the reply has no tokens that spell the
    verdict, the grade is not a digit (``4.0``), or its token came without alternatives.
    """
    tokens, grades, masses = reply.tokens or (), dict(verdict.grades), dict[str, float]()
    text = "".join(token.text for token in tokens)
    ends = list(itertools.accumulate(len(token.text) for token in tokens))
    for name, position in _digit_positions(text):
        index = bisect_right(ends, position)
        token = tokens[index]
        likely = likelihoods(token, position - ends[index] + len(token.text), rubric.scale)
        total = math.fsum(likely.values())
        if total and verdict.grades.get(name) == int(text[position]):
            masses[name] = min(1.0, total)
            if masses[name] >= minimum_mass:
                mean = math.fsum(grade * likelihood for grade, likelihood in likely.items()) / total
                grades[name] = min(max(mean, min(likely)), max(likely))
    return replace(verdict, grades=grades, score=rubric.normalised(grades)), masses


def _digit_positions(text: str) -> Iterator[tuple[str, int]]:
    """Return each criterion with the index of its digit in a text's last object, perhaps before end-of-turn tokens."""
    text = text[: text.rfind("}") + 1]
    start, criterion = object_start(text), ""
    for key in [] if start is None else _KEY.finditer(text, start):
        if key[2] is None:
            criterion = key[1]
        elif key[1] == "score":
            yield criterion, key.start(2)


def likelihoods(token: Token, position: int, scale: Scale) -> dict[int, float]:
    """Return the probability of each grade that a token, with its digit at this position, could have given instead.

    Some servers list the sampled token among the alternatives, even twice, and some never do.
    """
    head = token.text[:position].rstrip()
    spelled: dict[str, float] = {}
    for text, logprob in ((token.text, token.logprob), *token.top) if token.top else ():
        probability = 0.0 if math.isnan(logprob) else math.exp(min(0.0, logprob))
        spelled[text] = max(probability, spelled.get(text, 0.0))
    masses: dict[int, float] = {}
    for text, probability in spelled.items():
        grade = _GRADE.match(text.removeprefix(head)) if text.startswith(head) else None
        if grade and scale.low <= int(grade[1]) <= scale.high and probability:
            masses[int(grade[1])] = masses.get(int(grade[1]), 0.0) + probability
    return masses
