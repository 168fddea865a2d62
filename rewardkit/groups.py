"""Groups: the rollouts of one prompt."""

from __future__ import annotations

import pickle
from collections.abc import Sequence

from rewardkit.types import Rollout


def group_places(rollouts: Sequence[Rollout]) -> list[tuple[int, ...]]:
    """Gives the places of each group's rollouts, groups in order of their first.

    A group has one prompt and one example: rollouts whose prompts agree but whose rows differ are
    of different groups.
    """
    groups: dict[bytes, list[int]] = {}
    last: tuple[object, object] | None = None
    places: list[int] = []
    for place, rollout in enumerate(rollouts):
        if last is None or rollout.prompt is not last[0] or rollout.example is not last[1]:
            last = rollout.prompt, rollout.example
            key = pickle.dumps((rollout.prompt, sorted(rollout.example.items(), key=lambda item: str(item[0]))))
            places = groups.setdefault(key, [])
        places.append(place)
    return [tuple(members) for members in groups.values()]
