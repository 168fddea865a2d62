"""Grades weighted by likelihood, against distributions computed by hand and by a tokenizer that knows the truth."""

from __future__ import annotations

import itertools
import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builtin_rewards.endpoint.messages import Reply, Token
from builtin_rewards.judge.formats import Format
from builtin_rewards.judge.rubric import Criterion, Rubric
from builtin_rewards.judge.verdict import likelihoods, read_verdict, weigh_grades

FIVE = Rubric((Criterion("correct", "Is it right?"),), (1, 5))
NINE = Rubric((Criterion("correct", "Is it right?"),), (0, 9))
BEFORE = '{"correct": {"reason": "4", "score"'


def token(text: str, alternatives: Mapping[str, float] | None = None) -> Token:
    """Makes a token from the probabilities of all that might stand in its place; itself, with 1, where none given."""
    shares = {text: 1.0} if alternatives is None else alternatives
    top = tuple((other, math.log(share) if share else -9999.0) for other, share in shares.items())
    return Token(text, dict(top).get(text, -9999.0), top)


def likelihood(tokens: Sequence[Token], rubric: Rubric = FIVE) -> tuple[float, float] | None:
    """Return the mean of the one grade of a reply that these tokens spell, and its mass."""
    reply = Reply("".join(one.text for one in tokens), "m", tokens=tuple(tokens))
    verdict, masses = weigh_grades(reply, read_verdict(reply, rubric), rubric, 0.0)
    grade = verdict.grades["correct"]
    return (grade, masses["correct"]) if grade is not None and masses else None


@pytest.mark.parametrize(
    ("tokens", "probabilities", "mass"),
    [
        ([token(":"), token(" "), token("4", {"4": 0.5, "5": 0.3, "3": 0.2}), token("}}")],
         {3: 0.2, 4: 0.5, 5: 0.3}, 1.0),
        ([token(":"), token(" 4", {" 4": 0.5, " 5": 0.25, "5": 0.05, ' "': 0.2}), token("}}")],
         {4: 0.5 / 0.8, 5: 0.3 / 0.8}, 0.8),
        ([token('": 4', {'": 4': 0.6, '": 2': 0.2, '":': 0.2})], {2: 0.25, 4: 0.75}, 0.8),
        ([token(":"), token(" 4}}", {" 4}}": 0.5, " 5": 0.25, " 3\n": 0.25})], {3: 0.25, 4: 0.5, 5: 0.25}, 1.0),
        ([token(":"), token(" ", {" ": 0.9, "2": 0.1}), token("4", {"4": 0.5, "5": 0.5}), token("}}")],
         {4: 0.5, 5: 0.5}, 1.0),
        ([token(":"), token("4", {"4": 0.4, "7": 0.2, "4.": 0.1, "44": 0.1, "-": 0.1, "x": 0.1}), token("}}")],
         {4: 1.0}, 0.4),
        ([token(": 4}}")], {4: 1.0}, 1.0),
    ],
    ids=["single", "with a blank", "with the colon", "with the end", "a blank before", "no grades", "in one"],
)  # fmt: skip
def test_the_distribution_is_that_computed_by_hand(
    tokens: list[Token], probabilities: dict[int, float], mass: float
) -> None:
    """Sums over a grade's spellings, given the tokens before; what is no grade is left out of the mass."""
    whole = [token(BEFORE.removesuffix('"') if tokens[0].text.startswith('"') else BEFORE), *tokens]
    if not whole[-1].text.endswith("}}"):
        whole.append(token("}}"))

    assert pytest.approx((sum(grade * share for grade, share in probabilities.items()), mass)) == likelihood(whole)


@pytest.mark.parametrize(
    "tokens",
    [
        None,
        (),
        (token(BEFORE + ":"), Token("4", -0.1), token("}}")),
        (token(BEFORE + ":"), token("5"), token("}}")),
        (token("something else"),),
        (token("}"),),
        (token(BEFORE + ": nonsense }}"),),
        (token('"\\1{[,},}'),),
        (token(BEFORE + ":"), Token("4", math.nan, (("4", math.nan),)), token("}}")),
        (token(BEFORE + ":"), Token("4", -math.inf, (("4", -math.inf),)), token("}}")),
    ],
    ids=["none", "no tokens", "bare", "another grade", "another text", "brace", "no JSON", "unbalanced", "nan", "zero"],
)
def test_a_grade_without_known_likelihood_stays_as_sampled(tokens: tuple[Token, ...] | None) -> None:
    """The verdict is the one that was read, and no likelihood is told."""
    reply = Reply(BEFORE + ":4}}", "m", tokens=tokens)
    verdict = read_verdict(reply, FIVE)

    assert (verdict, {}) == weigh_grades(reply, verdict, FIVE)


def test_a_grade_not_written_as_a_plain_whole_number_stays_as_sampled() -> None:
    """For 4.0 the digits after the point would have to be weighed too."""
    assert None is likelihood([token(BEFORE + ":"), token("4"), token(".0"), token("}}")])


@pytest.mark.parametrize(("minimum_mass", "expected"), [(0.4, 2.0), (0.5, 2.0), (0.51, 1.0)])
def test_a_grade_with_too_little_mass_stays_as_sampled(minimum_mass: float, expected: float) -> None:
    """Half of the probability is seen, on 1 and 3: the mean is 2, the sampled grade 1."""
    tokens = (token(BEFORE + ":"), token("1", {"1": 0.25, "3": 0.25}), token("}}"))
    reply = Reply(BEFORE + ":1}}", "m", tokens=tokens)

    verdict, masses = weigh_grades(reply, read_verdict(reply, FIVE), FIVE, minimum_mass)

    assert (pytest.approx(expected), pytest.approx((expected - 1) / 4)) == (verdict.grades["correct"], verdict.score)
    assert {"correct": pytest.approx(0.5)} == masses


@pytest.mark.parametrize(
    ("logprob", "top"),
    [
        (math.log(0.6), (("2", math.log(0.4)),)),
        (math.log(0.6), (("4", math.log(0.6)), ("4", math.log(0.6)), ("2", math.log(0.4)))),
        (-9999.0, (("4", math.log(0.6)), ("2", math.log(0.4)))),
    ],
    ids=["sampled one not listed", "listed twice", "listed with another"],
)
def test_the_sampled_token_counts_once(logprob: float, top: tuple[tuple[str, float], ...]) -> None:
    """Servers differ in whether the sampled token is among the alternatives."""
    assert pytest.approx({2: 0.4, 4: 0.6}) == likelihoods(Token("4", logprob, top), 0, FIVE.scale)


def test_what_follows_a_grades_end_in_its_token_does_not_matter() -> None:
    """A token may reach into the next criterion, or into a fence; a longer number is none."""
    seen = {'4},"': 0.4, "5}}\n```": 0.3, "3, and": 0.2, "2.5": 0.05, "10": 0.05}
    assert {4: 0.4, 5: 0.3, 3: 0.2} == pytest.approx(likelihoods(token('4},"', seen), 0, FIVE.scale))


def test_each_criterion_has_its_own_distribution() -> None:
    """What stands in a reason or in another criterion is never taken for the grade; the fence and the end stay out."""
    rubric = Rubric((Criterion("a", "A?"), Criterion("b", "B?")), (1, 5))
    pieces = [
        token('<think>{"a": {"reason": "", "score": '), token("1", {"1": 0.5, "2": 0.5}), token("}}</think>```json\n"),
        token('{"a": {"reason": "\\"score\\": 1", "score": '), token("4", {"4": 0.5, "5": 0.5}),
        token('}, "b": {"score": '), token("2", {"2": 0.75, "1": 0.25}), token(', "reason": "3"}}'), token("\n```"),
    ]  # fmt: skip
    text = "".join(piece.text for piece in pieces)
    reply = Reply(text, "m", tokens=(*pieces, token("<|im_end|>"), token("")))

    verdict, _ = weigh_grades(reply, read_verdict(reply, rubric, Format.TEXT), rubric)

    assert {"a": pytest.approx(4.5), "b": pytest.approx(1.75)} == verdict.grades


def split(text: str, cuts: Sequence[int]) -> list[str]:
    """Cuts a text at these places."""
    places = sorted({0, len(text), *(cut % (len(text) + 1) for cut in cuts)})
    return [text[start:end] for start, end in itertools.pairwise(places)]


@given(
    grades=st.lists(st.integers(0, 9), min_size=1, max_size=4),
    reason=st.text(),
    cuts=st.lists(st.integers(0, 10_000), max_size=60),
    indent=st.sampled_from([None, 0, 2]),
)
def test_a_grade_that_was_certain_is_the_sampled_one(
    grades: list[int], reason: str, cuts: list[int], indent: int | None
) -> None:
    """Wherever the tokens' boundaries fall, what is told of a grade is its own: with probability 1 it is the mean."""
    rubric = Rubric([Criterion(f"c{at}", f"{at}?") for at in range(len(grades))], (0, 9))
    given = {f"c{at}": {"reason": reason, "score": grade} for at, grade in enumerate(grades)}
    text = json.dumps(given, indent=indent)
    each = [*split(text, cuts)]
    found = {}
    for pieces in (each, [*text]):
        reply = Reply(text, "m", tokens=tuple(token(piece) for piece in pieces))
        verdict = read_verdict(reply, rubric)
        same, found = weigh_grades(reply, verdict, rubric)
        assert verdict == same
        assert {1.0} >= set(found.values())
    assert set(given) == set(found)


@dataclass
class TrueModel:
    """A model that is known whole: every way it may go on, as tokens, with its grade and its probability."""

    ways: list[tuple[tuple[str, ...], int, float]]

    def after(self, written: tuple[str, ...]) -> list[tuple[str, int, float]]:
        """Return the next token, the grade and the probability of all ways that begin so."""
        size = len(written)
        return [(way[size], grade, share) for way, grade, share in self.ways if way[:size] == written]

    def tokens(self, way: tuple[str, ...]) -> tuple[Token, ...]:
        """Return a way with the true likelihood of each token."""
        made = []
        for at, text in enumerate(way):
            likely: dict[str, float] = {}
            nexts = self.after(way[:at])
            for other, _, share in nexts:
                likely[other] = likely.get(other, 0.0) + share / sum(each for _, _, each in nexts)
            made.append(token(text, likely))
        return tuple(made)

    def truth(self, written: tuple[str, ...]) -> dict[int, float]:
        """Return how likely each grade is after these tokens."""
        nexts = self.after(written)
        whole = math.fsum(share for _, _, share in nexts)
        return {
            grade: math.fsum(share for _, other, share in nexts if other == grade) / whole
            for grade in {grade for _, grade, _ in nexts}
        }


@st.composite
def true_models(draw: st.DrawFn) -> tuple[TrueModel, tuple[str, ...], tuple[int, int]]:
    """Draws a model of a few grades, each spelled and cut into tokens in several ways, and the way it went."""
    scale = draw(st.sampled_from([(1, 5), (0, 1), (0, 9)]))
    ways: dict[tuple[str, ...], tuple[int, float]] = {}
    for _ in range(draw(st.integers(1, 12))):
        grade = draw(st.integers(*scale))
        blank, end = draw(st.sampled_from(["", " ", "\n  "])), draw(st.sampled_from(["}}", " }}", "\n}}"]))
        text = f"{BEFORE}:{blank}{grade}{end}"
        start = len(BEFORE) - draw(st.integers(0, 3))
        cuts = [start + cut for cut in draw(st.lists(st.integers(0, len(text) - start), max_size=8))]
        ways[tuple(split(text, cuts))] = (grade, draw(st.floats(0.01, 1.0)))
    model = TrueModel([(way, grade, share) for way, (grade, share) in ways.items()])
    return model, draw(st.sampled_from([way for way, _, _ in model.ways])), scale


@given(true_models())
def test_what_is_told_of_a_model_known_whole_is_true(drawn: tuple[TrueModel, tuple[str, ...], tuple[int, int]]) -> None:
    """No grade is told more than its true probability, the mass is what is told, and the mean keeps its bound.

    So with a mass of 1 the distribution is the true one, given the tokens before the grade.
    """
    model, way, scale = drawn
    rubric = Rubric((Criterion("correct", "Is it right?"),), scale)
    ends = list(itertools.accumulate(len(piece) for piece in way))
    digit = len(BEFORE) + re.search(r"[0-9]", "".join(way)[len(BEFORE) :]).start()  # type: ignore[union-attr]
    truth = model.truth(way[: next(at for at, end in enumerate(ends) if end > digit)])

    at = next(at for at, end in enumerate(ends) if end > digit)
    told = likelihoods(model.tokens(way)[at], digit - ends[at] + len(way[at]), rubric.scale)
    mean, mass = likelihood(model.tokens(way), rubric) or (0.0, 0.0)
    if not told:  # what follows the digit in its token is more than the end
        return
    for grade in {*truth, *told}:
        assert told.get(grade, 0.0) - 1e-9 <= truth.get(grade, 0.0) <= told.get(grade, 0.0) + 1 - mass + 1e-9
    true_mean = math.fsum(grade * share for grade, share in truth.items())
    assert abs(mean - true_mean) <= (1 - mass) * (scale[1] - scale[0]) + 1e-9
    assert scale[0] <= mean <= scale[1]


LOGPROBS = st.floats(max_value=2.0) | st.just(math.nan)
PIECES = st.sampled_from(["1", "0", "10", " 1", "5", "7", "-", "", " ", "}", ",", "x", ": 3", "\ufffd"])


@given(
    grade=st.integers(0, 9),
    cuts=st.lists(st.integers(0, 100), max_size=20),
    tops=st.lists(st.lists(st.tuples(PIECES, LOGPROBS), max_size=5), min_size=1, max_size=40),
    logprob=LOGPROBS,
)
def test_a_weighted_grade_lies_on_the_scale_whatever_a_server_says(
    grade: int, cuts: list[int], tops: list[list[tuple[str, float]]], logprob: float
) -> None:
    """Log-probabilities that are positive, NaN, infinite or sum to more than 1 give no grade off the scale."""
    text = f"{BEFORE}: {grade}}}}}"
    pieces = split(text, cuts)
    tokens = tuple(Token(piece, logprob, tuple(top)) for piece, top in zip(pieces, itertools.cycle(tops), strict=False))
    reply = Reply(text, "m", tokens=tokens)

    verdict, masses = weigh_grades(reply, read_verdict(reply, NINE), NINE, minimum_mass=0.0)

    assert 0 <= verdict.grades["correct"] <= 9
    assert 0 <= verdict.score <= 1
    assert all(0 < mass <= 1 for mass in masses.values())


def test_a_reply_of_many_tokens_is_weighed_in_linear_time() -> None:
    """Fifty thousand tokens of blanks and quotation marks before and after the grade are no trouble."""
    blanks = [token(" ") for _ in range(20_000)]
    junk = [token('"\\"') for _ in range(20_000)]
    tokens = [*junk, token(BEFORE + ":"), *blanks, token("4", {"4": 0.5, "5": 0.5}), *blanks, token("}}")]
    reply = Reply("".join(each.text for each in tokens), "m", tokens=tuple(tokens))

    verdict, _ = weigh_grades(reply, read_verdict(reply, FIVE, Format.TEXT), FIVE)

    assert 4.5 == verdict.grades["correct"]
