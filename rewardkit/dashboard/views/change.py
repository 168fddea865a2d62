"""What the tab on changing a reward shows, and what it asks for: a trial, or a change of the training.

Trying a reward and asking for one run code that came from the browser: the server refuses both without its write token
before it reads anything, and ``POSTS`` is what it guards so.
"""

from __future__ import annotations

import contextlib
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from rewardkit.dashboard.edited import function_of, written
from rewardkit.dashboard.jobs import ASK_S, TRY_S, Jobs
from rewardkit.dashboard.own_lines import own_lines
from rewardkit.dashboard.query import Query
from rewardkit.dashboard.readers import NotThere, Opened
from rewardkit.errors import ConfigError, RecordError, RewardError, UpdateRefusedError
from rewardkit.record.changes import Action, ChangeState, RewardChange, Trainer
from rewardkit.record.sqlite_file import FILE
from rewardkit.record.stores import home_of, opening_words
from rewardkit.record.values import Version
from rewardkit.replay.recorded_run import Run
from rewardkit.replay.stored import version_of
from rewardkit.replay.update import RunningReward, config_of, running, trainers_in
from rewardkit.replay.updates import shadow_of, takes, unattached
from rewardkit.shown.text import shortened

MOST_TRIED = 2_000
"""Completions on which a reward is tried, at most."""
MOST_CHANGES = 200
"""Changes that are shown, the last ones."""
_BUTTONS = {
    Action.REPLACE: "Apply", Action.SHADOW: "Run as shadow", Action.WEIGHT: "Set weight", Action.REMOVE: "Remove",
    Action.ADD: "Add",
}  # fmt: skip
_NAME = re.compile(r"[A-Za-z_][\w.\- ]{0,79}")

Answer = dict[str, Any]


def view(opened: Opened, query: Query) -> Answer:
    """Return the rewards with their versions, the changes asked for, what is under way, and what is not possible.

    ``only=job`` asks for what is under way alone; ``version`` and ``other`` ask for the texts of versions too.
    """
    run = opened.run
    job = None if opened.jobs is None else opened.jobs.of(run.path)
    under_way = None if job is None else job.as_json()
    if query.choice("only", ("job",)) is not None:
        return {"job": under_way}
    trainer, why = _trainer(run)
    labels = [label for label in (query.text("version"), query.text("other")) if label]
    steps = run.steps()
    step = None if trainer is None else _step(run, trainer)
    return {
        "can_write": opened.can_write,
        "refused": why,
        "trainer": None if trainer is None else {"step": step, "ranks": trainer.ranks},
        "blocked": {} if trainer is None else _blocked(trainer),
        "rewards": _rewards(run, trainer),
        "columns": _columns(run),
        "steps": [steps[0], steps[-1], len(steps)] if steps else None,
        "most_tried": MOST_TRIED,
        "changes": [_change(one, step) for one in run.changes[-MOST_CHANGES:]][::-1],
        "texts": {label: _text(run, label) for label in labels},
        "job": under_way,
    }


def try_reward(opened: Opened, body: Mapping[str, Any]) -> Answer:
    """Begin a trial of a reward on stored completions; nothing is applied.

    Raises:
        RewardError: What was asked for makes no sense, or another trial is under way.
    """
    run = opened.run
    name = _known(run, _words(body, "reward"))
    old = version_of(run, _words(body, "old") if body.get("old") else name).label
    new = _new(run, name, body)
    steps = _steps(body)
    job = {"kind": "try", "old": old, "new": new, "steps": steps, "limit": MOST_TRIED, "weight": _weight(body)}
    about = {"reward": name, "old": old, "new": _shown(run, new), "steps": steps}
    return _started(opened, name, job, about, TRY_S)


def ask(opened: Opened, body: Mapping[str, Any]) -> Answer:
    """Begin to check a change, and then to ask the training for it.

    Raises:
        RewardError: What was asked for makes no sense, the training has ended, or another change is under way.
    """
    run = opened.run
    action = _action(body)
    name = _words(body, "reward")
    if action is Action.ADD and _NAME.fullmatch(name) is None:
        raise ConfigError(f"reward {shortened(name, 40)!r}: expected a name of letters, digits and _")
    trainer, why = _trainer(run)
    if trainer is None:
        raise UpdateRefusedError(f"{why}; trying a reward still works")
    waiting = [one for one in run.changes if one.state is ChangeState.ASKED]
    if waiting:
        first = waiting[0]
        raise UpdateRefusedError(
            f"change {first.id} ({first.action} of {first.reward!r}) is asked for and not answered yet; wait for the "
            "training's answer"
        )
    weight = _weight(body)
    if action is Action.WEIGHT and weight is None:
        raise ConfigError("weight: expected a number")
    brings = action in (Action.REPLACE, Action.SHADOW, Action.ADD)
    new = _new(run, name, body, bring=True) if brings else None
    weight = weight if action in (Action.REPLACE, Action.ADD, Action.WEIGHT) else None
    job = {"kind": "ask", "action": action.value, "new": new, "weight": weight}
    about = {"reward": name, "action": action.value, "new": None if new is None else _shown(run, new), "weight": weight}
    return _started(opened, name, job, about, ASK_S)


def cancel(opened: Opened, body: Mapping[str, Any]) -> Answer:
    """End what is under way in the run."""
    job = _jobs(opened).cancel(opened.run.path)
    return {"job": None if job is None else job.as_json()}


POSTS: Mapping[str, Callable[[Opened, Mapping[str, Any]], Answer]] = {
    "try": try_reward,
    "ask": ask,
    "cancel": cancel,
}
"""What the page sends to ``/api/runs/{run}/change/...``, each with the write token alone."""


# What is shown.


def _trainer(run: Run) -> tuple[Trainer | None, str | None]:
    """Return the process that trains, or why nothing can be changed."""
    try:
        return running(run), None
    except (UpdateRefusedError, RecordError) as reason:
        return None, str(reason).removeprefix(f"{run.path}: ").removesuffix("; nothing is changed")


def _step(run: Run, trainer: Trainer) -> int:
    """Return the last step that is known to have begun: the process says so every few seconds, its scores at once."""
    last = run.by_id([run.last_id]) if trainer.step >= 0 else []
    return max([trainer.step, *(one.step for one in last if one.split == "train" and one.step is not None)])


def _blocked(trainer: Trainer) -> dict[str, str]:
    """Return why actions are not possible in this training."""
    return {
        action.value: unattached(action, words)
        for action, words in _BUTTONS.items()
        if not takes(action, "", trainer.actions, frozenset())
    }


def _rewards(run: Run, trainer: Trainer | None) -> list[Answer]:
    """Return the rewards, each with the versions that it has had, those of its shadow among them."""
    versions = run.versions
    names = list(dict.fromkeys(one.reward for one in versions))
    standing = _standing(run, trainer)
    names += [name for name in standing if name not in names]
    shadows = {shadow_of(name): name for name in names}
    return [
        {
            "name": name,
            "weight": standing[name][0] if name in standing else None,
            "digits": standing[name][1] if name in standing else None,
            "now": name in standing,
            "has_shadow": shadow_of(name) in standing,
            "versions": [
                _version(one, shadow=one.reward != name) for one in versions if one.reward in (name, shadow_of(name))
            ],
        }
        for name in names
        if shadows.get(name) not in names
    ]


def _standing(run: Run, trainer: Trainer | None) -> dict[str, tuple[float | None, str | None]]:
    """Return weight and version of each reward as it is now, or was when the training ended."""
    if trainer is not None:
        config = config_of(run)
        rewards = [one for one in config.reward_fns.functions.values() if isinstance(one, RunningReward)]
        return {one.name: (one.weight, one.digits) for one in rewards}
    with contextlib.suppress(RecordError):  # of a record that has no place for them
        for last in trainers_in(run):
            return {name: (one.weight, one.digits) for name, one in last.rewards.items()}
    told = [one["about"].get("rewards") for one in run.sessions]
    weights = next((one for one in reversed(told) if isinstance(one, dict)), {})
    return {name: (_finite(weight), None) for name, weight in weights.items() if name in run.rewards}


def _version(one: Version, *, shadow: bool) -> Answer:
    return {
        "label": one.label,
        "number": one.number,
        "digits": one.digits,
        "origin": one.origin,
        "shadow": shadow,
        "reference": one.reference,
        "first_step": one.first_step,
        "began": one.began,
        "has_source": one.source is not None or one.module is not None,
    }


def _text(run: Run, label: str) -> Answer:
    """Return the text of a version: its whole file where that is known, else its function with nothing around it."""
    try:
        version = version_of(run, label)
    except RecordError as absent:
        raise NotThere(str(absent)) from None
    whole = version.module is not None
    text = version.module if whole else version.source
    named = version.reference.rpartition(":")[2] if version.reference is not None else None
    function = named or _only_function(text)
    own = own_lines(text, function) if text is not None and function is not None else None
    return {"text": text, "whole": whole, "function": function, "source": version.source, "own_lines": own}


def _only_function(text: str | None) -> str | None:
    try:
        return None if text is None else function_of(text, "")
    except RewardError:
        return None


def _columns(run: Run) -> list[str]:
    return list(run.prompt(0).columns) if run.prompt_count else []


def _change(one: RewardChange, step: int | None) -> Answer:
    body = one.body
    told = {
        ChangeState.ASKED: "asked", ChangeState.REFUSED: "refused", ChangeState.DROPPED: "dropped",
        ChangeState.ACCEPTED: "accepted" if step is not None and step < (one.step or 0) else "applied",
    }  # fmt: skip
    return {
        "id": one.id,
        "asked": one.asked,
        "reward": one.reward,
        "action": one.action.value,
        "state": told[one.state],
        "step": one.step,
        "words": one.words,
        "weight": body.get("weight"),
        "digits": body.get("digits"),
        "reference": body.get("reference"),
        "unheard": one.state is ChangeState.ASKED and step is None,
    }


# What is asked for.


def _jobs(opened: Opened) -> Jobs:
    if opened.jobs is None:
        raise ConfigError("rewards cannot be changed here; start `rewardkit ui` with --write")
    return opened.jobs


def _started(opened: Opened, name: str, job: Mapping[str, Any], about: Mapping[str, Any], deadline_s: float) -> Answer:
    run = opened.run
    whole = {
        **job,
        "run": opening_words(run.path),
        "reward": name,
        "folders": [str(one) for one in _folders(run, name)],
    }
    return {"job": _jobs(opened).start(run.path, whole, about, deadline_s).as_json()}


def _new(run: Run, name: str, body: Mapping[str, Any], *, bring: bool = False) -> str:
    """Return the reward that comes in, as a reference or the label of a version; a text becomes a file.

    Args:
        run: The run.
        name: The reward's name.
        body: What the page sent.
        bring: Whether it is brought into the training: then it has to be a reference.
    """
    given = [key for key in ("source", "reference", "version") if body.get(key)]
    if len(given) != 1:
        raise ConfigError("nothing to try: give the source of a reward, or file.py:function")
    if given == ["source"]:
        function = function_of(_words(body, "source", most=None), _words(body, "function", empty=True))
        return f"{written(home_of(run.path) / FILE, name, body['source'])}:{function}"
    if given == ["version"]:
        if bring:
            raise ConfigError("a version of the run comes in by its source; choose it and apply what is in the editor")
        return version_of(run, _words(body, "version")).label
    reference = _words(body, "reference").strip()
    place, _, function = reference.rpartition(":")
    if reference.endswith(".py") or not place or not function:
        raise ConfigError(f"{shortened(reference, 80)!r}: expected file.py:function, such as new.py:{name}")
    if place.endswith(".py") and not Path(place).is_file():
        raise ConfigError(f"{place}: no such file on the server's machine; it looks from {Path.cwd()}")
    return reference


def _shown(run: Run, new: str) -> str:
    """Return what a reward that comes in is called on the page."""
    home = str(home_of(run.path).resolve())
    return new.removeprefix(f"{home}/")


def _folders(run: Run, name: str) -> Iterator[Path]:
    """Yield the folders of the files that a reward came from: what its text imports lies there."""
    names = (name, shadow_of(name))
    places = [one.reference.rpartition(":")[0] for one in run.versions if one.reward in names and one.reference]
    for place in dict.fromkeys(places):
        if place.endswith(".py") and Path(place).parent.is_dir():
            yield Path(place).parent


def _known(run: Run, name: str) -> str:
    if name not in run.rewards:
        raise NotThere(f"no reward {shortened(name, 40)!r} in the run; it has {', '.join(run.rewards) or 'none'}")
    return name


def _action(body: Mapping[str, Any]) -> Action:
    try:
        return Action(str(body.get("action")))
    except ValueError:
        said = shortened(str(body.get("action")), 40)
        raise ConfigError(f"action={said!r}: expected {', '.join(Action)}") from None


def _words(body: Mapping[str, Any], key: str, *, empty: bool = False, most: int | None = 1000) -> str:
    value = body.get(key, "" if empty else None)
    if not isinstance(value, str) or not (value or empty) or (most is not None and len(value) > most):
        raise ConfigError(f"{key}={shortened(str(value), 40)!r}: expected a text")
    return value


def _weight(body: Mapping[str, Any]) -> float | None:
    value = body.get("weight")
    if value is None:
        return None
    found = _finite(value)
    if found is None:
        raise ConfigError(f"weight={shortened(str(value), 40)}: expected a finite number")
    return found


def _finite(value: Any) -> float | None:
    number = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    return float(value) if number else None


def _steps(body: Mapping[str, Any]) -> Sequence[int] | None:
    value = body.get("steps")
    if value is None:
        return None
    whole = isinstance(value, list) and len(value) == 2 and all(type(one) is int for one in value)
    if not whole or value[0] > value[1]:
        raise ConfigError(f"steps={shortened(str(value), 40)}: expected the first step and the last")
    return [int(one) for one in value]
