"""Public: what an adapter to a trainer needs for rewards that change while it trains; see :class:`Updates`.

A loop of one's own needs only :class:`LiveRuntime`.
"""

from rewardkit.record.changes import Action
from rewardkit.record.place import RecordPlace
from rewardkit.record.places import has_record, place_of_record
from rewardkit.replay.updates import Changeable, LiveRuntime, RewardState, Updates, group_rewards_of

__all__ = [
    "Action", "Changeable", "LiveRuntime", "RecordPlace", "RewardState", "Updates", "group_rewards_of", "has_record",
    "place_of_record",
]  # fmt: skip
