"""What the tab on changing a reward shows, and what it asks for: a trial, or a change of the training.

Trying a reward and asking for one run code that came from the browser: the server refuses both without its write token
before it reads anything, and ``POSTS`` is what it guards so.
"""

from __future__ import annotations

import contextlib
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from rewardkit.dashboard.as_json import attributes
from rewardkit.dashboard.edited import function_of, own_lines, write_source
from rewardkit.dashboard.jobs import ASK_S, TRY_S, Jobs
from rewardkit.dashboard.query import Query
from rewardkit.dashboard.readers import NotThere, OpenRun
from rewardkit.dashboard.saving import Per, Saved, ViewQuery
from rewardkit.errors import ConfigError, RecordError, RewardError, UpdateRefusedError
from rewardkit.record.changes import Action, ChangeState, RewardChange, Trainer
from rewardkit.record.sqlite_file import FILE
from rewardkit.record.values import Version
from rewardkit.replay.recorded_run import Run
from rewardkit.replay.reward_state import is_taken, shadow_of, untaken_reason
from rewardkit.replay.stored import version_of
from rewardkit.replay.update import RunningReward, config_of, running, trainers_in
from rewardkit.shown.text import shortened

MOST_TRIED = 2_000  # Completions on which a reward is tried, at most
MOST_CHANGES = 200  # Changes in the list, the newest ones, at most
_MOST_CHARS = 1_000  # Characters of a text in a request, at most; a reward's source may be longer
_BUTTONS = {
    Action.REPLACE: "Apply", Action.SHADOW: "Run as shadow", Action.WEIGHT: "Set weight", Action.REMOVE: "Remove",
    Action.ADD: "Add",
}  # fmt: skip
_NAME = re.compile(r"[A-Za-z_][\w.\- ]{0,79}")

Answer = dict[str, Any]


def view(opened: OpenRun, query: Query) -> Answer:
    """Return the rewards with their versions, the requested changes, the running job, and the refused actions.

    ``only=job`` asks for the job alone; ``version`` and ``other`` ask for the texts of versions too, ``texts=all`` for
    those of all versions.
    """
    run = opened.run
    job = None if opened.jobs is None else opened.jobs.of(run.path)
    job_state = None if job is None else job.as_json()
    if query.choice("only", ("job",)) is not None:
        return {"job": job_state}
    trainer, why = _trainer(run)
    labels = [label for label in (query.text("version"), query.text("other")) if label]
    if query.choice("texts", ("all",)) is not None:
        labels = [version.label for version in run.versions]
    steps = run.steps()
    step = None if trainer is None else _step(run, trainer)
    return {
        "can_write": opened.can_write,
        "refused": why,
        "trainer": None if trainer is None else {"step": step, "ranks": trainer.ranks},
        "blocked": {} if trainer is None else _blocked(trainer),
        "rewards": _rewards(run, trainer),
        "columns": list(run.prompt(0).columns) if run.prompt_count else [],
        "steps": [steps[0], steps[-1], len(steps)] if steps else None,
        "most_tried": MOST_TRIED,
        "changes": [_change(change, step) for change in run.changes[-MOST_CHANGES:]][::-1],
        "texts": {label: _version_source(run, label) for label in labels},
        "job": job_state,
    }


def try_reward(opened: OpenRun, body: Mapping[str, Any]) -> Answer:
    """Begin a trial on stored completions, which applies nothing. Raises RewardError where the request is wrong."""
    run = opened.run
    name = _text_of(body, "reward")
    if name not in run.rewards:
        raise NotThere(f"no reward {shortened(name, 40)!r} in the run; it has {', '.join(run.rewards) or 'none'}")
    old = version_of(run, _text_of(body, "old") if body.get("old") else name).label
    new = _new(run, name, body)
    steps = _steps(body)
    job = {"kind": "try", "old": old, "new": new, "steps": steps, "limit": MOST_TRIED, "weight": _weight(body)}
    about = {"reward": name, "old": old, "new": _title(run, new), "steps": steps}
    return _start(opened, name, job, about, TRY_S)


def ask(opened: OpenRun, body: Mapping[str, Any]) -> Answer:
    """Begin to check a change, and then to ask the training for it; raise RewardError where it is not possible."""
    run = opened.run
    action = _action(body)
    name = _text_of(body, "reward")
    if action is Action.ADD and _NAME.fullmatch(name) is None:
        raise ConfigError(f"reward {shortened(name, 40)!r}: expected a name of letters, digits and _")
    trainer, why = _trainer(run)
    if trainer is None:
        raise UpdateRefusedError(f"{why}; trying a reward still works")
    waiting = [change for change in run.changes if change.state is ChangeState.ASKED]
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
    about = {"reward": name, "action": action.value, "new": None if new is None else _title(run, new), "weight": weight}
    return _start(opened, name, job, about, ASK_S)


def cancel(opened: OpenRun, body: Mapping[str, Any]) -> Answer:
    """End the job that is running for the run."""
    job = _jobs(opened).cancel(opened.run.path)
    return {"job": None if job is None else job.as_json()}


POSTS: Mapping[str, Callable[[OpenRun, Mapping[str, Any]], Answer]] = {"try": try_reward, "ask": ask, "cancel": cancel}
"""What the page sends to ``/api/runs/{run}/change/...``, each with the write token alone."""


# What the tab shows.


def _trainer(run: Run) -> tuple[Trainer | None, str | None]:
    """Return the process that trains, or why nothing can be changed."""
    try:
        return running(run), None
    except (UpdateRefusedError, RecordError) as error:
        return None, str(error).removeprefix(f"{run.path}: ").removesuffix("; nothing is changed")


def _step(run: Run, trainer: Trainer) -> int:
    """Return the last step known to have begun, by the process's sign of every few seconds or its newest scores."""
    last = run.by_id([run.last_id]) if trainer.step >= 0 else []
    steps = [row.step for row in last if row.split == "train" and row.step is not None]
    return max([trainer.step, *steps])


def _blocked(trainer: Trainer) -> dict[str, str]:
    return {
        action.value: untaken_reason(action, button)
        for action, button in _BUTTONS.items()
        if not is_taken(action, "", trainer.actions, frozenset())
    }


def _rewards(run: Run, trainer: Trainer | None) -> list[Answer]:
    """Return the rewards, each with the versions that it has had, those of its shadow among them."""
    names = list(dict.fromkeys(version.reward for version in run.versions))
    current = _current(run, trainer)
    names += [name for name in current if name not in names]
    shadows = {shadow_of(name): name for name in names}
    absent = _Current(None, None)
    return [
        {
            "name": name,
            "weight": current.get(name, absent).weight,
            "digits": current.get(name, absent).digits,
            "now": name in current,
            "has_shadow": shadow_of(name) in current,
            "versions": [
                _version(version, shadow=version.reward != name)
                for version in run.versions
                if version.reward in (name, shadow_of(name))
            ],
        }
        for name in names
        if shadows.get(name) not in names
    ]


class _Current(NamedTuple):
    weight: float | None
    digits: str | None  # Of the version


def _current(run: Run, trainer: Trainer | None) -> dict[str, _Current]:
    """Return weight and version of each reward as it is now, or was when the training ended."""
    if trainer is not None:
        config = config_of(run)
        rewards = [reward for reward in config.reward_fns.functions.values() if isinstance(reward, RunningReward)]
        return {reward.name: _Current(reward.weight, reward.digits) for reward in rewards}
    with contextlib.suppress(RecordError):  # of a record that has no place for them
        for last in trainers_in(run):
            return {name: _Current(reward.weight, reward.digits) for name, reward in last.rewards.items()}
    by_session = [session["about"].get("rewards") for session in run.sessions]
    weights = next((rewards for rewards in reversed(by_session) if isinstance(rewards, dict)), None)
    if weights is None:  # a Runtime records, which names no rewards before it scores
        weights = run.weights_of(run.last_id)
    return {name: _Current(_finite(weight), None) for name, weight in weights.items() if name in run.rewards}


def _version(version: Version, *, shadow: bool) -> Answer:
    has_source = version.source is not None or version.module is not None
    row = attributes(version, "label", "number", "digits", "origin", "reference", "first_step", "began")
    return row | {"shadow": shadow, "has_source": has_source}


def _version_source(run: Run, label: str) -> Answer:
    """Return a version's source as the page shows it.

    It is the version's whole file, or its function alone where the file is not recorded; then which function it is, its
    own lines in that text, and the function's source.
    """
    try:
        version = version_of(run, label)
    except RecordError as error:
        raise NotThere(str(error)) from None
    is_file = version.module is not None
    text = version.module if is_file else version.source
    function = _function_name(version, text)
    lines = own_lines(text, function) if text is not None and function is not None else None
    return {"text": text, "whole": is_file, "function": function, "source": version.source, "own_lines": lines}


def _function_name(version: Version, text: str | None) -> str | None:
    """Return the name of a version's function: the one in its reference, else that of the text's only function."""
    if version.reference is not None and (name := version.reference.rpartition(":")[2]):
        return name
    try:
        return None if text is None else function_of(text, "")
    except RewardError:
        return None


def _change(change: RewardChange, step: int | None) -> Answer:
    """Return a row of the list of changes; ``step`` is that of the running training, ``None`` where none runs."""
    states = {
        ChangeState.ASKED: "asked", ChangeState.REFUSED: "refused", ChangeState.DROPPED: "dropped",
        ChangeState.ACCEPTED: "accepted" if step is not None and step < (change.step or 0) else "applied",
    }  # fmt: skip
    return {
        **attributes(change, "id", "asked", "reward", "step", "words"),
        **{key: change.body.get(key) for key in ("weight", "digits", "reference")},
        "action": change.action.value,
        "state": states[change.state],
        "unheard": change.state is ChangeState.ASKED and step is None,
    }


# What the tab asks for.


def _jobs(opened: OpenRun) -> Jobs:
    if opened.jobs is None:
        raise ConfigError("rewards cannot be changed here; start `rewardkit ui` with --write")
    return opened.jobs


def _start(opened: OpenRun, name: str, job: Mapping[str, Any], about: Mapping[str, Any], deadline_s: float) -> Answer:
    path, folders = opened.run.path, [str(folder) for folder in _folders(opened.run, name)]
    full_job = {**job, "run": path.locator, "reward": name, "folders": folders}
    return {"job": _jobs(opened).start(path, full_job, about, deadline_s).as_json()}


def _new(run: Run, name: str, body: Mapping[str, Any], *, bring: bool = False) -> str:
    """Return the new reward's reference (a text is written to a file) or a version's label, which ``bring`` refuses."""
    sources = [key for key in ("source", "reference", "version") if body.get(key)]
    if len(sources) != 1:
        raise ConfigError("nothing to try: give the source of a reward, or file.py:function")
    if sources == ["source"]:
        function = function_of(_text_of(body, "source", limit=None), _text_of(body, "function", optional=True))
        return f"{write_source(run.path.home / FILE, name, body['source'])}:{function}"
    if sources == ["version"]:
        if bring:
            raise ConfigError("a version of the run comes in by its source; choose it and apply what is in the editor")
        return version_of(run, _text_of(body, "version")).label
    reference = _text_of(body, "reference").strip()
    path, _, function = reference.rpartition(":")
    if reference.endswith(".py") or not path or not function:
        raise ConfigError(f"{shortened(reference, 80)!r}: expected file.py:function, such as new.py:{name}")
    if path.endswith(".py") and not Path(path).is_file():
        raise ConfigError(f"{path}: no such file on the server's machine; it looks from {Path.cwd()}")
    return reference


def _title(run: Run, new: str) -> str:
    """Return what a reward that comes in is called on the page."""
    return new.removeprefix(f"{run.path.home.resolve()}/")


def _folders(run: Run, name: str) -> Iterator[Path]:
    """Yield the folders of the files that a reward came from: what its text imports lies there."""
    names = (name, shadow_of(name))
    references = [version.reference or "" for version in run.versions if version.reward in names]
    for file in dict.fromkeys(reference.rpartition(":")[0] for reference in references):
        if file.endswith(".py") and Path(file).parent.is_dir():
            yield Path(file).parent


def _action(body: Mapping[str, Any]) -> Action:
    try:
        return Action(str(body.get("action")))
    except ValueError:
        action = shortened(str(body.get("action")), 40)
        raise ConfigError(f"action={action!r}: expected {', '.join(Action)}") from None


def _text_of(body: Mapping[str, Any], key: str, *, optional: bool = False, limit: int | None = _MOST_CHARS) -> str:
    """Return a text of a request; ConfigError where it is longer than ``limit``, or absent or empty unless optional."""
    value = body.get(key, "" if optional else None)
    if not isinstance(value, str) or (value == "" and not optional):
        raise ConfigError(f"{key}={shortened(str(value), 40)!r}: expected a text")
    if limit is not None and len(value) > limit:
        raise ConfigError(f"{key}={shortened(value, 40)!r}: expected at most {limit:,} characters")
    return value


def _weight(body: Mapping[str, Any]) -> float | None:
    value = body.get("weight")
    if value is None:
        return None
    number = _finite(value)
    if number is None:
        raise ConfigError(f"weight={shortened(str(value), 40)}: expected a finite number")
    return number


def _finite(value: Any) -> float | None:
    is_finite = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    return float(value) if is_finite else None


def _steps(body: Mapping[str, Any]) -> Sequence[int] | None:
    """Return the first step and the last that a trial is limited to; ``None`` where the request names none."""
    value = body.get("steps")
    if value is None:
        return None
    is_pair = isinstance(value, list) and len(value) == 2 and all(type(step) is int for step in value)
    if not is_pair or value[0] > value[1]:
        raise ConfigError(f"steps={shortened(str(value), 40)}: expected the first step and the last")
    return [int(step) for step in value]


def _all_texts(opened: OpenRun, subject: ViewQuery) -> Iterable[ViewQuery]:
    yield {"texts": "all"}


SAVED = (Saved("change", Per.RUN, _all_texts, applied=("version", "other")),)
"""What a saved page has of this view."""
