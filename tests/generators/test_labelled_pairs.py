"""Built-in rewards agree with labels that are right by construction, on pairs that each run draws anew."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

import pytest
from labelled_pairs import disagreements, draw_pairs, frame_answer, frame_document, frame_marked

from builtin_rewards.consistency import self_consistency
from builtin_rewards.matching import (
    contains_all,
    edit_similarity,
    exact_match,
    fuzzy_match,
    multiple_choice,
    normalized_match,
    numeric_list,
    set_f1,
    token_f1,
)
from builtin_rewards.math import math_answer, numeric_close
from builtin_rewards.structured import json_fields
from builtin_rewards.tools import tool_call
from rewardkit import Reward
from rewardkit.renderings.closed_forms import MultipleOfPi, RootNumber
from rewardkit.renderings.collections import NumberSet, Point
from rewardkit.renderings.documents import JsonDocument, ToolCalls
from rewardkit.renderings.intervals import NumberRange
from rewardkit.renderings.kinds import KINDS, read_value
from rewardkit.renderings.numbers import PlainNumber
from rewardkit.renderings.phrases import ChoiceLetter, Phrase, PhraseList, TruthWord
from rewardkit.renderings.writing import Value, Writing

PAIRS, PAIRS_IN_FULL = 300, 5_000
# What a mark behind a number means is left to mathematics: elsewhere `5!` is 5 with punctuation.
_PUNCTUATION = frozenset({("number", "a factorial")})
# Lists of numbers are compared without their brackets.
_BRACKETS = frozenset(
    {("set", "a point"), ("set", "an interval"), ("point", "in square brackets"), ("point", "in braces")}
)
# Terms are looked for as they stand, whatever else a completion says.
_LITERAL = frozenset(("words", name) for name in ("with a second answer", "in text", "in bold", "with a full stop"))
# Several answers, and what is joined with "or", are no consistent answer.
_DOCUMENTS = (JsonDocument, ToolCalls)
_ONE_ANSWER = tuple(kind for kind in KINDS if kind not in (NumberSet, NumberRange, PhraseList, *_DOCUMENTS))

Verdict = Callable[[str, str], bool | None]  # of a completion and a gold; None where the reward skips them


def _by(scored: Reward[..., Any]) -> Verdict:
    """Return whether a reward pays a completion in full."""

    def is_right(completion: str, gold: str) -> bool | None:
        score = scored(completion=completion, answer=gold).value
        return None if score is None else score == 1

    return is_right


def _consistent(completion: str, gold: str) -> bool:
    first, second = self_consistency(completions=[f"\\boxed{{{gold}}}", completion])
    return first.value == second.value == 1


@dataclass(frozen=True)
class Case:
    """A reward with the kinds of values that it reads, and the writings that its page rules otherwise."""

    name: str
    is_right: Verdict
    kinds: Sequence[type[Value]]
    frame: Callable[[Writing, Random], str] = frame_answer
    left_out: frozenset[tuple[str, str]] = field(default=frozenset())
    only_usual: bool = False
    usual_golds: bool = False


CASES = [
    Case("math_answer", _by(math_answer), [kind for kind in KINDS if kind not in (PhraseList, *_DOCUMENTS)]),
    # In a sentence, words behind a comma end an answer.
    Case("math_answer, lists of words", _by(math_answer), (PhraseList,), frame_marked),
    Case("set_f1", _by(set_f1), (PhraseList,), frame_marked),
    Case("contains_all", _by(contains_all), (Phrase,), left_out=_LITERAL),
    # Two answers are the same where either would be right for the other: an open half of the day is any.
    Case("self_consistency", _consistent, _ONE_ANSWER, left_out=frozenset({("time", "without the half of the day")})),
    Case(
        "numeric_close",
        _by(numeric_close(rel=1e-9)),
        (PlainNumber, RootNumber, MultipleOfPi),
        left_out=frozenset({("number", "as a long decimal")}),
    ),
    Case("exact_match", _by(exact_match), KINDS, frame_marked, only_usual=True),
    Case(
        "normalized_match",
        _by(normalized_match),
        (PlainNumber, Phrase, TruthWord),
        frame_marked,
        left_out=_PUNCTUATION,
        only_usual=True,
    ),
    Case("fuzzy_match", _by(fuzzy_match), (PlainNumber, Phrase), frame_marked, left_out=_PUNCTUATION, only_usual=True),
    Case("edit_similarity", _by(edit_similarity), KINDS, frame_marked, only_usual=True),
    Case(
        "token_f1",
        _by(token_f1),
        (PlainNumber, Phrase, TruthWord),
        frame_marked,
        left_out=_PUNCTUATION,
        only_usual=True,
    ),
    Case("multiple_choice", _by(multiple_choice), (ChoiceLetter,)),
    Case("numeric_list", _by(numeric_list), (NumberSet,), frame_marked, left_out=_BRACKETS),
    Case("numeric_list, ordered", _by(numeric_list(ordered=True)), (Point,), frame_marked, left_out=_BRACKETS),
    Case("json_fields", _by(json_fields), _DOCUMENTS[:1], frame_document, usual_golds=True),
    Case("tool_call", _by(tool_call), _DOCUMENTS[1:], frame_document, usual_golds=True),
]


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_a_reward_agrees_with_labels_right_by_construction(case: Case, *, full: bool, draw_seed: int) -> None:
    """Each rendering of a gold is paid in full, and none of its perturbations is."""
    random = Random(f"{draw_seed} {case.name}")
    count = PAIRS_IN_FULL if full else PAIRS
    pairs = draw_pairs(
        case.kinds,
        count,
        random,
        frame=case.frame,
        left_out=case.left_out,
        only_usual=case.only_usual,
        usual_golds=case.usual_golds,
    )
    wrong = disagreements(case.is_right, pairs)
    assert not wrong, "\n".join([f"{len(wrong)} of {count} pairs; draw them again by --draw-seed {draw_seed}:", *wrong])


@pytest.mark.parametrize("kind", KINDS, ids=[kind.kind for kind in KINDS])
def test_a_value_is_read_from_its_own_text(kind: type[Value], *, full: bool, draw_seed: int) -> None:
    """The text of each value drawn is read as this value, or as one of a kind that is asked before it."""
    random = Random(f"{draw_seed} {kind.kind}")
    for _ in range(PAIRS_IN_FULL if full else PAIRS):
        value = kind.draw(random)
        reading = read_value(value.text)
        assert reading == value or (kind.kind, getattr(reading, "kind", "")) == ("interval", "point")


@pytest.mark.parametrize("kind", KINDS, ids=[kind.kind for kind in KINDS])
def test_no_perturbation_is_a_rendering(kind: type[Value], *, full: bool, draw_seed: int) -> None:
    """No value has a text that is both right and wrong."""
    random = Random(f"{draw_seed} {kind.kind} apart")
    for _ in range(PAIRS_IN_FULL if full else PAIRS):
        value = kind.draw(random)
        texts = {value.text, *(writing.text for writing in value.renderings())}
        assert set() == texts & {writing.text for writing in value.perturbations()}
