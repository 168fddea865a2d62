"""What a saved page has of the views of completions."""

from __future__ import annotations

import json
import math
from collections.abc import Container, Iterable, Mapping
from typing import Any

from rewardkit.dashboard.query import Query
from rewardkit.dashboard.readers import OpenRun
from rewardkit.dashboard.saving import Per, Saved, ViewQuery
from rewardkit.dashboard.views.completion_table import MOST as MOST_IN_TABLE
from rewardkit.dashboard.views.completion_table import table
from rewardkit.dashboard.views.completions import MOST
from rewardkit.dashboard.views.pictures import keys_of_completion, keys_of_prompt

MOST_BY_REWARD = 100_000  # Completions of a run up to which its prompts are saved by each reward: each reads them all


def narrowed(answer: dict[str, Any], ids: Container[int]) -> dict[str, Any]:
    """Return what the view of a prompt answers of these completions alone, with two of them to compare."""
    totals = {row["id"]: -math.inf if row["total"] is None else row["total"] for row in answer["rows"]}
    epochs = []
    for epoch in answer["epochs"]:
        own = [number for number in epoch["ids"] if number in ids]
        if own:
            best = max(own, key=lambda number: totals.get(number, -math.inf))
            epochs.append(epoch | {"ids": own, "completions": len(own), "best": best})
    ends = (epochs[0], epochs[-1]) if epochs else ()
    left, right = (end["best"] for end in ends) if ends else (None, None)
    if len(epochs) == 1:
        left = min(epochs[0]["ids"], key=lambda number: totals.get(number, math.inf))
    count = sum(epoch["completions"] for epoch in epochs)
    return answer | {"epochs": epochs, "completions": count, "left": left, "right": right}


def _whole(opened: OpenRun, subject: ViewQuery) -> Iterable[ViewQuery]:
    """Yield the request of a text that is not cut."""
    yield {"rest": 1}


def _ups(opened: OpenRun, subject: ViewQuery) -> Iterable[ViewQuery]:
    """Yield the request of a prompt's completions in the order of recording."""
    yield {"order": "up", "limit": MOST, "rest": 1}


def _by_reward(opened: OpenRun, subject: ViewQuery) -> Iterable[ViewQuery]:
    """Yield the requests of the table of prompts by the totals and, of a run that is not long, by each reward's."""
    rewards = opened.run.rewards if opened.run.count() <= MOST_BY_REWARD else ()
    yield from ({"limit": MOST, "reward": reward} for reward in (None, *rewards))


def _at_steps(opened: OpenRun, subject: ViewQuery) -> Iterable[ViewQuery]:
    """Yield the request of a step's completions by prompt; nothing where they were scored at no step."""
    if "step" in subject:
        yield {}


def _pictures_of_prompt(opened: OpenRun, subject: ViewQuery) -> Iterable[ViewQuery]:
    """Yield the requests of the pictures of a prompt."""
    yield from ({"key": key} for key in keys_of_prompt(opened, int(str(subject["prompt"]))))


def _pictures_of_completion(opened: OpenRun, subject: ViewQuery) -> Iterable[ViewQuery]:
    """Yield the requests of the pictures of a completion."""
    yield from ({"key": key} for key in keys_of_completion(opened, int(str(subject["id"]))))


def _rows_of_step(opened: OpenRun, subject: ViewQuery) -> Iterable[ViewQuery]:
    """Yield the request of a step's rows in the table of all completions, with the columns that a row shows."""
    while (first := table(opened, Query({"limit": "1"})))["reading"]:
        pass  # each answer reads on
    columns = first["data"]
    where = f"step={subject['step']}" if "step" in subject else "step=none"
    yield {"where": where, "step": None, "limit": MOST_IN_TABLE, "columns": json.dumps(columns)}


def _further(answer: Mapping[str, Any], rows: int) -> ViewQuery | None:
    return None if answer["matched"] is None or answer["end"] >= answer["matched"] else {"from": answer["end"]}


SAVED = (
    Saved("table", Per.STEP, _rows_of_step, join="rows", further=_further, own="id", gathered=True),
    Saved("prompts", Per.RUN, _by_reward, keys=("reward",), join="rows", own="index"),
    Saved("completions", Per.STEP, _at_steps, join="groups"),
    Saved("prompt", Per.PROMPT, _ups, join="rows", own="id", narrow=narrowed),
    Saved("completion", Per.COMPLETION, _whole, applied=("rest",)),
    Saved("picture_data", Per.PROMPT, _pictures_of_prompt, keys=("key",), gathered=True),
    Saved("picture_data", Per.COMPLETION, _pictures_of_completion, keys=("key",), gathered=True),
)
"""What a saved page has of these views."""
