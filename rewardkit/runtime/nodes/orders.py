"""What a node is told and what it says of itself, and whether it may take part.

A node whose scores could differ is refused, and by name: a mixed set of scores would be worse than fewer machines.
"""

from __future__ import annotations

import json
import math
import platform
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from rewardkit.declare.decorator import Reward
from rewardkit.errors import InfrastructureError
from rewardkit.run_code import Package
from rewardkit.versions.own_version import own_version
from sandbox import cores
from sandbox.workers import Answer, CallStatus

NodeAnswers = tuple[int, bool, list[tuple[Any, ...]]]
"""A driver's job, whether its answers are bare numbers, and the answers: ``(ticket, number, seconds)`` each, or
``(ticket, status, answer, seconds, logs, message)``."""
_STATUSES = frozenset(CallStatus)


class NodeFacts(NamedTuple):
    """What a node says of itself before it is told anything: plain values alone."""

    machine: str
    python: str  # without the patch: bytecode and fingerprints are a minor version's
    rewardkit: str
    cores: int


class CallOrder(NamedTuple):
    """A call as it travels."""

    ticket: int
    target: int
    places: tuple[int, ...]  # in the segments that travel with it
    timeout_s: float


@dataclass(frozen=True, slots=True)
class HostOrder:
    """What a node needs to make a pool of workers.

    Attributes:
        targets: Name and payload of each target whose calls travel, by the driver's number.
    """

    targets: Mapping[int, tuple[str, bytes]]
    workers: int | None  # Worker processes; `None` for the node's own number by default
    path: Sequence[str]  # The driver's `sys.path`; what of it is not on the node does no harm
    env: Mapping[str, str]  # Environment variables added for the workers
    preload: Sequence[str]  # Modules imported once, before workers are forked
    memory_bytes: int | None  # Memory of one worker; `None` for no limit
    load_timeout_s: float  # Seconds that loading the targets may take
    description: bytes  # Pickled `RewardsDescription`
    packages: Sequence[Package] = ()  # What the node installs for the workers
    carried: Mapping[str, bytes] = field(default_factory=dict)  # Files that travel, by the path below their folder


class HostReady(NamedTuple):
    """What a node says when its workers have loaded."""

    workers: int
    versions: Mapping[str, str]  # of the rewards, by name, as the node's own files make them
    level: str | None  # of the rewards' jails; ``None`` where no reward has one


class NodeExpectation(NamedTuple):
    """What a node has to equal: the driver's versions of the rewards, and the level of its jails."""

    versions: Mapping[str, str]
    level: Callable[[], str | None]  # may take seconds, once

    def why_other_scores(self, ready: HostReady) -> str | None:
        """Return why a node's scores could differ from the driver's; ``None`` where its answer gives no reason."""
        for name, version in self.versions.items():
            other = ready.versions.get(name)
            if other != version:
                return (
                    f"reward {name!r} has version {other} there and {version} here: a package or file that it uses "
                    "differs; install the same one"
                )
        if not (isinstance(ready.workers, int) and ready.workers > 0):
            return f"it has {ready.workers!r:.60} workers"
        level = self.level()
        if ready.level != level:
            return f"its jails reach level {ready.level!r}, and the driver's {level!r}; see rewardkit doctor --ray"
        return None


def facts() -> NodeFacts:
    """Return this machine's facts."""
    python = f"{sys.version_info.major}.{sys.version_info.minor}"
    return NodeFacts(platform.node(), python, own_version(), cores())


def why_no_part(ours: NodeFacts, theirs: NodeFacts) -> str | None:
    """Return why a node's facts keep it from taking part; ``None`` where they do not."""
    if theirs.python != ours.python:
        return f"it runs Python {theirs.python}, and the driver {ours.python}; use one minor version"
    if theirs.rewardkit != ours.rewardkit:
        return f"it has rewardkit {theirs.rewardkit}, and the driver {ours.rewardkit}; install one version"
    return None


def check_answers(answers: Sequence[NodeAnswers]) -> None:
    """Raise :class:`ValueError` for malformed answers, before any of them is used."""
    for job, is_number, rows in answers:
        if not isinstance(job, int):
            raise ValueError(f"answers of job {job!r:.60}")
        for row in rows:
            if not (_is_number(*row) if is_number else _is_result(*row)):
                raise ValueError(f"the answer {row!r:.60}")


def _is_number(ticket: object, number: object, seconds: object) -> bool:
    return isinstance(ticket, int) and isinstance(number, float) and math.isfinite(number) and _is_time(seconds)


def _is_result(ticket: object, status: object, answer: object, seconds: object, logs: object, message: object) -> bool:
    is_text = isinstance(logs, str) and isinstance(message, str)
    return isinstance(ticket, int) and status in _STATUSES and _is_time(seconds) and is_text


def _is_time(seconds: object) -> bool:
    return isinstance(seconds, int | float) and 0.0 <= seconds < math.inf


class RewardsDescription:
    """A target that says what a machine's own files make of the rewards: their versions, and the level of a jail.

    It runs in a worker, as whatever imports a reward does.
    """

    def __init__(self, rewards: Sequence[Reward[..., Any]]) -> None:
        self._rewards = list(rewards)

    @property
    def jailed(self) -> bool:
        """Whether a reward, or one that it calls itself, has a jail."""
        return any(part.spec.jailed for reward in self._rewards for part in (reward, *reward.inner))

    def __call__(self, common: object, segments: list[memoryview], places: tuple[int, ...]) -> Answer:
        versions = {reward.name: reward.spec.fingerprint.source for reward in self._rewards}
        return json.dumps([versions, _level() if self.jailed else None])


def _level() -> str:
    from rewardkit.jailed.jail import shared_sandbox  # the jail is slow to import, and few rewards have one

    try:
        return str(shared_sandbox().level)
    except InfrastructureError as error:
        return f"none ({error})"
