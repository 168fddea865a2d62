"""Which rows a client of reward servers sends in which request, and how they are written as JSON."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from rewardkit.coercion.plain_json import json_default
from rewardkit.errors import DataError
from rewardkit.groups import group_key, group_places
from rewardkit.runtime.plan import CallerRows
from rewardkit.serving.layers import ROW_DEPTH, is_deep, within
from rewardkit.types import Rollout

ROWS, ROWS_BYTES = 256, 8 * 2**20
"""Rows of a request, and their bytes; fewer rows where a server takes fewer. A group is never split."""
_OPEN_REQUESTS = 8  # Requests, the latest, in which a group may still find room: looking through all takes too long


class RowIndex(NamedTuple):
    """Which row it is: the caller's index, and the row's among the caller's."""

    part: int
    row: int


@dataclass(slots=True)
class PackedRequest:
    """Rows that are sent together, the keys of their groups, and how long they are."""

    rows: list[RowIndex] = field(default_factory=list)
    keys: set[bytes] = field(default_factory=set)
    size_bytes: int = 0


def pack_rows(parts: Sequence[CallerRows], encoded: Sequence[Sequence[bytes]], most_rows: int) -> list[PackedRequest]:
    """Return which rows go into which request: groups whole, and never two groups of one prompt in one request."""
    requests: list[PackedRequest] = []
    for number, part in enumerate(parts):
        for group in group_places(part.rollouts):
            key = group_key(part.rollouts[group[0]], group[0])
            size = sum(len(encoded[number][index]) for index in group)
            candidates = requests[-_OPEN_REQUESTS:]
            fitting = (request for request in candidates if _fits(request, key, len(group), size, most_rows))
            request = next(fitting, None)
            if request is None:
                requests.append(request := PackedRequest())
            request.rows += [RowIndex(number, index) for index in group]
            request.keys.add(key)
            request.size_bytes += size
    return requests


def _fits(request: PackedRequest, key: bytes, rows: int, size_bytes: int, most_rows: int) -> bool:
    """Whether there is room in a request for a group, and none of its prompt is in it."""
    has_room = len(request.rows) + rows <= most_rows and request.size_bytes + size_bytes <= ROWS_BYTES
    return has_room and key not in request.keys


def encode_rollout(rollout: Rollout) -> bytes:
    """Return a rollout as JSON; what is nested too deep in its completion, which a model wrote, as text."""
    row: dict[str, object] = {
        "prompt": rollout.prompt,
        "completion": rollout.completion,
        "example": dict(rollout.example),
    }
    if rollout.completion_ids is not None:
        row["completion_ids"] = [int(token) for token in rollout.completion_ids]
    with contextlib.suppress(RecursionError):
        encoded = as_json(row)
        if encoded.count(b"[") + encoded.count(b"{") <= ROW_DEPTH or not is_deep(row["completion"], ROW_DEPTH - 1):
            return encoded
    return as_json({**row, "completion": within(rollout.completion, ROW_DEPTH - 1)})


def as_json(row: Mapping[str, object]) -> bytes:
    """Return a row as JSON; raise DataError for what JSON cannot hold."""
    try:
        return json.dumps(row, allow_nan=False, default=json_default).encode()
    except (TypeError, ValueError) as error:
        raise DataError(f"a row cannot travel to a reward server: {error}") from error


def score_body(rows: Sequence[bytes], step: int | None, epoch: float | None) -> bytes:
    """Return the body of a request to ``/v1/score`` for rows as :func:`encode_rollout` gives them."""
    fields = json.dumps({"step": step, "epoch": epoch, "gather": False}).encode()  # groups are whole
    return b'{"rollouts": [' + b", ".join(rows) + b"], " + fields[1:]
