"""Public: what an adapter to a trainer needs for rewards that change while it trains; see :class:`Updates`.

A loop of one's own needs only :class:`LiveRuntime`.
"""

from rewardkit.record.changes import Action
from rewardkit.record.place import RecordPlace
from rewardkit.record.places import has_record, place_of_record
from rewardkit.replay.live_runtime import LiveRuntime
from rewardkit.replay.reward_state import Changeable, RewardState, group_rewards_of
from rewardkit.replay.updates import Updates

__all__ = [
    "Action", "Changeable", "LiveRuntime", "RecordPlace", "RewardState", "Updates", "group_rewards_of", "has_record",
    "place_of_record",
]  # fmt: skip
