"""Which changes fit the rewards of a training."""

from __future__ import annotations

import pytest

from rewardkit import RewardDefinitionError
from rewardkit.record.changes import Action
from rewardkit.replay.reward_state import check_change

NAMES = dict.fromkeys(["a", "a_shadow", "b", "b_shadow"])  # b_shadow is a reward of its own
REFUSED = {
    "one more of a name": (Action.ADD, "a", "there is a reward 'a' already"),
    "an unknown one": (Action.REPLACE, "c", "no reward 'c'; the training has a, a_shadow, b, b_shadow"),
    "a shadow's shadow": (Action.SHADOW, "a_shadow", "'a_shadow' cannot have a shadow: it is one$"),
    "a shadow of a taken name": (Action.SHADOW, "b", "'b' cannot have a shadow: 'b_shadow' is a reward"),
    "a shadow's weight": (Action.WEIGHT, "a_shadow", "'a_shadow' is a shadow, which the trainer does not see"),
}


@pytest.mark.parametrize(("action", "name", "message"), REFUSED.values(), ids=REFUSED)
def test_a_change_that_does_not_fit_is_refused(action: Action, name: str, message: str) -> None:
    """The refusal names the reward and what stands against the change."""
    with pytest.raises(RewardDefinitionError, match=message):
        check_change(action, name, NAMES, frozenset({"a_shadow"}))


def test_the_last_reward_that_the_trainer_sees_stays() -> None:
    """A shadow is no reward that a training could go on with."""
    names = dict.fromkeys(["a", "a_shadow"])
    check_change(Action.REMOVE, "a_shadow", names, frozenset({"a_shadow"}))
    with pytest.raises(RewardDefinitionError, match="'a' is the only reward"):
        check_change(Action.REMOVE, "a", names, frozenset({"a_shadow"}))
