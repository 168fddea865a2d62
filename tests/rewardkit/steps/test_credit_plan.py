"""``@step_reward(credit=...)``: each turn has a number of its own, beside the completion's."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewardkit import Rollout, Runtime, Score, Status, Step, StepReward, step_reward
from rewardkit.credit import TurnScore, turn_scores
from rewardkit.errors import BadReturnError, RewardDefinitionError

ASK = {"role": "user", "content": "?"}


def _said(text: str) -> dict[str, Any]:
    return {"role": "assistant", "content": text}


def _completion(*texts: str) -> list[dict[str, Any]]:
    """Return a completion of these turns, with a question between each two."""
    return [message for text in texts for message in (_said(text), ASK)][:-1]


def number(part: Step) -> float | None:
    """Score a turn by the number that it is; one without text is left out."""
    return float(part.text) if part.text else None


turns = step_reward(number, credit="turns", name="turns")
potential = step_reward(number, credit="potential", name="potential")


def _numbers(reward: StepReward, *texts: str) -> tuple[float | None, list[float | None]]:
    """Return the completion's score, and its turns' numbers by their metrics."""
    score: Score = reward(completion=_completion(*texts))
    assert len(texts) == score.metrics["turns"]
    return score.value, [score.metrics.get(f"turn/{turn}") for turn in range(len(texts))]


def test_each_turn_has_its_own_score() -> None:
    assert (2.0, [1.0, None, 3.0]) == _numbers(turns, "1", "", "3")
    assert (None, [None]) == _numbers(turns, "")


def test_a_potential_gives_each_turn_what_it_changed() -> None:
    """A turn whose potential is not known has no number; the next has the whole change since the last known one."""
    assert (1.0, [3.0, None, -2.0, 0.0]) == _numbers(potential, "3", "", "1", "1")
    begun = step_reward(number, credit="potential", start=0.5, name="begun")
    assert (0.5, [-0.25, 0.75]) == _numbers(begun, "0.25", "1")


_POTENTIALS = st.lists(st.none() | st.floats(-1e300, 1e300), min_size=1, max_size=12)


@given(_POTENTIALS, st.floats(-1e300, 1e300))
def test_the_gains_of_a_potential_add_up_to_last_minus_first(levels: list[float | None], start: float) -> None:
    """Whatever the potentials, and whichever of them are not known."""
    texts = ["" if level is None else repr(level) for level in levels]
    reward = step_reward(number, credit="potential", start=start, name="any_potential")
    score, gains = _numbers(reward, *texts)
    known = [level for level in levels if level is not None]
    assert [level is None for level in levels] == [gain is None for gain in gains]
    if not known:
        assert score is None
        return
    assert known[-1] - start == score
    largest = max(map(abs, [start, *known]))
    total = math.fsum(gain for gain in gains if gain is not None)
    assert math.isclose(total, known[-1] - start, rel_tol=0.0, abs_tol=1e-9 * largest)


def test_potentials_without_finite_differences_are_refused() -> None:
    with pytest.raises(BadReturnError, match="scale them down"):
        potential(completion=_completion("1e308", "-1e308"))


def test_a_turn_of_tool_calls_has_the_mean_of_its_calls() -> None:
    """A turn without a call has no number."""

    def called(*names: str) -> dict[str, Any]:
        calls = [{"type": "function", "function": {"name": name, "arguments": "{}"}} for name in names]
        return {"role": "assistant", "content": "", "tool_calls": calls}

    @step_reward(each="tool_call", credit="turns")
    def good(part: Step) -> float:
        return float(part.name == "good")

    answer = {"role": "tool", "name": "good", "content": "1"}
    score = good(completion=[called("good", "bad"), answer, _said("so"), ASK, called("good"), answer])
    assert {"turns": 3, "turn/0": 0.5, "turn/2": 1.0}.items() <= score.metrics.items()


_WRONG = {
    "an unknown kind": ({"credit": "steps"}, "expected 'turns' or 'potential'"),
    "a start without a potential": ({"credit": "turns", "start": 1.0}, "credit='potential'"),
    "a start that is no number": ({"credit": "potential", "start": "low"}, "expected a finite number"),
    "a potential of spans": ({"credit": "potential", "each": "span", "label": "a"}, "each='turn'"),
    "a potential that is reduced": ({"credit": "potential", "reduce": "min"}, "the last potential less start"),
}


@pytest.mark.parametrize(("settings", "words"), _WRONG.values(), ids=_WRONG)
def test_settings_without_sense_are_refused(settings: dict[str, Any], words: str) -> None:
    with pytest.raises(RewardDefinitionError, match="step reward 'number'") as caught:
        step_reward(number, **settings)
    assert words in str(caught.value)


def test_a_failed_potential_counts_as_the_lowest() -> None:
    """The range is that of a potential; the completion's score has the range of its change."""
    ranged = step_reward(number, credit="potential", start=0.25, score_range=(0, 1), name="ranged")
    assert (-0.25, 0.75) == ranged.options.score_range
    completions = [_completion("0", "1"), _completion("0.5", "2"), _completion("0.5", "x")]
    with Runtime([ranged], lane="inline") as runtime:
        right, outside, raised = runtime.score([Rollout("", completion) for completion in completions])["ranged"]
    assert 0.75 == right.score
    assert [(Status.FAILED, -0.25)] * 2 == [(outcome.status, outcome.score) for outcome in (outside, raised)]
    assert "outside score_range=(0.0, 1.0)" in str(outside.error)


def test_numbers_come_with_their_places_and_a_failure_has_none() -> None:
    """Through worker processes too; a text is one turn."""
    completions: list[Any] = [_completion("1", "", "3"), _completion("1", "x"), "2"]
    with Runtime([number_by_turn], workers=1) as runtime:
        outcomes = runtime.score([Rollout("", completion) for completion in completions])["number_by_turn"]
    scored = [turn_scores(completion, outcome) for completion, outcome in zip(completions, outcomes, strict=True)]
    assert ((0, 1.0, None), (2, None, None), (4, 3.0, None)) == scored[0]
    assert (TurnScore(0, None), TurnScore(2, None)) == scored[1]
    assert (TurnScore(0, 2.0),) == scored[2]
    placed = turn_scores(completions[0], outcomes[0], [(0, 3), (5, 6), (8, 9)])
    assert [(0, 3), (5, 6), (8, 9)] == [turn.tokens for turn in placed]
    assert [None] * 3 == [turn.tokens for turn in turn_scores(completions[0], outcomes[0], [(0, 9)])]


@step_reward(credit="turns")
def number_by_turn(part: Step) -> float | None:
    return number(part)
