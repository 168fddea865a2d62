"""A client of reward servers with the interface of a runtime, for a trainer whose rewards are scored elsewhere.

This module owns which server is asked for which group, what is tried again, and what of it counts as lost. How one
server is asked is :mod:`~rewardkit.serving.server_link`'s. Both need nothing beyond Python's own library.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import queue
import random
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from rewardkit.declare.compose import Composable
from rewardkit.errors import ConfigError, DataError, InfrastructureError, RewardError, RuntimeClosedError
from rewardkit.groups import group_key, group_places
from rewardkit.runtime.batch import check_lost
from rewardkit.runtime.plan import CallerRows, check_rollouts
from rewardkit.runtime.settings import checked
from rewardkit.runtime.settle import Finished
from rewardkit.score_batch import ScoreBatch
from rewardkit.serving.server_link import AgainError, ServerLink
from rewardkit.shown.text import shortened
from rewardkit.types import Cause, Outcome, Rollout, Status

if TYPE_CHECKING:
    from rewardkit.declare.decorator import Reward

ROWS, ROWS_BYTES = 256, 8 * 2**20
"""Rows of a request, and their bytes; fewer rows where a server takes fewer. A group is never split."""
CONNECTIONS = 16
"""Requests that are under way at once."""
FIRST_WAIT_S, LONGEST_WAIT_S = 0.1, 5.0
"""Seconds before a request is tried again, doubled with each further try."""
_PARTS = ("rewards", "weights", "versions")
"""What all servers tell alike."""
_Read = TypeVar("_Read")
_drawn = random.SystemRandom()


@dataclass(frozen=True, slots=True)
class RemoteReward(Composable):
    """A reward that a server scores, as far as it is known here.

    Attributes:
        title: Its name.
        digits: Its version on the servers.
        is_group: Whether it scores the completions of a prompt together.
    """

    title: str
    digits: str
    is_group: bool

    @property
    def name(self) -> str:
        return self.title

    @property
    def version(self) -> str:
        """Its version on the servers."""
        return self.digits

    @property
    def leaves(self) -> tuple[Reward[..., Any], ...]:
        return ()

    @property
    def scores_groups(self) -> bool:
        return self.is_group


class _Row(NamedTuple):
    """A row's caller, and its place among the caller's rows."""

    part: int
    place: int


class RemoteRuntime:
    """Rewards that servers score, in place of a :class:`rewardkit.Runtime`.

    ``RewardAdapter(RemoteRuntime("http://rewards:8000", token="..."))`` trains with them. Groups are spread over the
    servers. A request that no server answers is tried again, on the next one, until ``retry_s`` is over; then its rows
    are lost: failed with cause ``infrastructure`` and without a score. An answer counts only if its rewards have
    the versions that the servers had when the client was made.

    Args:
        urls: Where the servers are, such as ``"http://10.0.0.7:8000"``: one or several, which serve the same rewards.
        token: What the servers ask for; ``None`` for servers on this machine that ask for none.
        timeout_s: Seconds, above 0, that a server may take to answer a request, to its last byte.
        retry_s: Seconds, 0 or more, for which a request is tried again; each server is asked once in any case.
        max_infrastructure_rate: Share of one reward's calls in a batch, 0 to 1, that may be lost.

    Attributes:
        weights: Each reward's weight in the totals, by name, as the servers have it.

    Raises:
        ConfigError: An address or the token makes no sense or is wrong, or the servers serve different rewards.
        RewardDefinitionError: ``retry_s`` or ``max_infrastructure_rate`` is not in its range.
        InfrastructureError: A server does not answer.
    """

    def __init__(
        self,
        urls: str | Sequence[str],
        *,
        token: str | None = None,
        timeout_s: float = 900.0,
        retry_s: float = 120.0,
        max_infrastructure_rate: float = 0.5,
    ) -> None:
        self.urls = [urls] if isinstance(urls, str) else list(urls)
        self._settings = {
            "token": token, "timeout_s": timeout_s, "retry_s": retry_s,
            "max_infrastructure_rate": max_infrastructure_rate,
        }  # fmt: skip
        self._servers = [ServerLink(url, token, timeout_s) for url in self.urls]
        if not self._servers:
            raise ConfigError("urls: expected the address of a server, got none")
        self._retry_s: float = checked("retry_s", retry_s, lambda seconds: seconds >= 0, "seconds, 0 or more")
        self._most_lost: float = checked(
            "max_infrastructure_rate", max_infrastructure_rate, lambda rate: 0 <= rate <= 1, "a share from 0 to 1"
        )
        self._closed = False
        self._owner = os.getpid()
        self._threads = ThreadPoolExecutor(CONNECTIONS, "rewardkit-remote")
        try:
            told = self._introduced()
        except BaseException:
            self.close()
            raise
        self.weights: dict[str, float] = told["weights"]
        self._rewards = {
            name: RemoteReward(name, told["versions"][name], kind == "group") for name, kind in told["rewards"].items()
        }

    def _introduced(self) -> Any:
        """Return what all servers tell of their rewards.

        Raises:
            ConfigError: They serve different ones.
        """
        told = [self._asked(at, "GET", "/v1/rewards", None, _told, others=False) for at in range(len(self._servers))]
        first = f"{self.urls[0]} {_served(told[0])}"
        for url, one in zip(self.urls, told, strict=True):
            if any(one[part] != told[0][part] for part in _PARTS):
                raise ConfigError(f"{url} serves {_served(one)}, and {first}: expected the same")
        self._most_rows = min(ROWS, *(one.get("most_rows", ROWS) for one in told))
        return told[0]

    @property
    def names(self) -> list[str]:
        """The rewards' names, in their order."""
        return list(self._rewards)

    @property
    def rewards(self) -> Mapping[str, Composable]:
        """The rewards by name: their names and versions, and whether they score groups."""
        return self._rewards

    def start(self) -> RemoteRuntime:
        """Return the runtime; the servers run already."""
        self._check_open()
        return self

    def wait_loaded(self) -> None:
        """Return at once: a server answers only when its workers have loaded the rewards, and all have answered."""
        self._check_open()

    def check(self, rollouts: Sequence[Rollout]) -> None:
        """Raise :class:`~rewardkit.errors.DataError` where rollouts are wrong; columns are the servers' to check."""
        check_rollouts([], rollouts)

    def score(self, rollouts: Iterable[Rollout], *, step: int | None = None, epoch: float | None = None) -> ScoreBatch:
        """Score rollouts and wait for the last of them.

        Args:
            rollouts: What to score, groups whole.
            step: Optimizer steps done.
            epoch: Passes over the data done.

        Raises:
            DataError: A server says that the rollouts are wrong.
            InfrastructureError: More calls were lost than may be.
            RuntimeClosedError: The runtime is closed.
        """
        rows = list(rollouts)
        self.check(rows)
        (batch,) = self._score([CallerRows(rows)], step, epoch)
        self._check_lost(batch)
        return batch

    def stream(
        self, rollouts: Iterable[Rollout], *, step: int | None = None, epoch: float | None = None
    ) -> Iterator[Finished]:
        """Return (row, reward, outcome) as servers answer the requests, in no order.

        Leaving the loop early drops the requests that have not been sent.

        Raises:
            RewardError: As :meth:`score`.
        """
        part = CallerRows(list(rollouts))
        self.check(part.rollouts)
        found: list[Mapping[str, Outcome]] = [{}] * len(part.rollouts)
        with contextlib.closing(self._answers([part], step, epoch)) as answers:
            for row, outcomes in answers:
                found[row.place] = outcomes
                yield from (Finished(row.place, name, outcome) for name, outcome in outcomes.items())
        self._check_lost(self._batch(part, found))

    async def ascore(
        self, rollouts: Iterable[Rollout], *, step: int | None = None, epoch: float | None = None
    ) -> ScoreBatch:
        """Score as :meth:`score` does, from code that runs on an event loop."""
        return await asyncio.to_thread(self.score, rollouts, step=step, epoch=epoch)

    async def ascore_parts(
        self, parts: Sequence[CallerRows], *, step: int | None = None, epoch: float | None = None
    ) -> list[ScoreBatch | RewardError]:
        """Score several callers' rollouts, as :meth:`rewardkit.Runtime.ascore_parts` does."""
        return list(await asyncio.to_thread(self._score, parts, step, epoch))

    def close(self) -> None:
        """Close the connections, also those on which an answer is awaited: its rows are lost. The servers go on."""
        if os.getpid() != self._owner:
            return  # the connections are the other process's
        self._closed = True
        self._threads.shutdown(wait=False, cancel_futures=True)
        for server in self._servers:
            server.close()

    def __enter__(self) -> RemoteRuntime:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __reduce__(self) -> tuple[Any, ...]:
        return _again, (self.urls, self._settings)

    def _check_open(self) -> None:
        if self._closed:
            raise RuntimeClosedError("this runtime is closed; make a new one")
        if os.getpid() != self._owner:  # a fork has none of its threads
            raise RuntimeClosedError("this runtime belongs to the process that made it, not to a fork of it")

    def _score(self, parts: Sequence[CallerRows], step: int | None, epoch: float | None) -> list[ScoreBatch]:
        """Return the scores of each caller's rows."""
        found: list[list[Mapping[str, Outcome]]] = [[{}] * len(part.rollouts) for part in parts]
        for row, outcomes in self._answers(parts, step, epoch):
            found[row.part][row.place] = outcomes
        return [self._batch(part, rows) for part, rows in zip(parts, found, strict=True)]

    def _answers(
        self, parts: Sequence[CallerRows], step: int | None, epoch: float | None
    ) -> Generator[tuple[_Row, Mapping[str, Outcome]], None, None]:
        """Ask servers for the rows, and yield each row's outcomes as they come."""
        self._check_open()
        encoded = [[_encoded(one) for one in part.rollouts] for part in parts]
        requests = _requests(parts, encoded, self._most_rows)
        bodies = [_body([encoded[row.part][row.place] for row in rows], step, epoch) for rows in requests]
        del encoded
        asked = {
            self._threads.submit(self._outcomes, at, body, len(rows)): rows
            for at, (rows, body) in enumerate(zip(requests, bodies, strict=True))
        }
        # Not concurrent.futures.as_completed: it never learns of those that the executor's shutdown cancels.
        done: queue.SimpleQueue[Future[Any]] = queue.SimpleQueue()
        for future in asked:
            future.add_done_callback(done.put)
        try:
            for _ in range(len(asked)):
                future = done.get()
                answers: Any = future.result()
                if isinstance(answers, InfrastructureError):
                    answers = [{name: _lost(str(answers)) for name in self._rewards}] * len(asked[future])
                yield from zip(asked[future], answers, strict=True)
        except CancelledError:
            raise RuntimeClosedError("this runtime was closed before all was scored") from None
        finally:
            for future in asked:
                future.cancel()

    def _check_lost(self, batch: ScoreBatch) -> None:
        for name, column in batch.items():
            check_lost(name, column, self._most_lost)

    def _batch(self, part: CallerRows, rows: Sequence[Mapping[str, Outcome]]) -> ScoreBatch:
        outcomes = {name: [row[name] for row in rows] for name in self._rewards}
        if part.late is not None:
            groups = [name for name, reward in self._rewards.items() if reward.is_group]
            outcomes |= {name: [_lost(part.late)] * len(rows) for name in groups}
        return ScoreBatch(list(part.rollouts), outcomes, self.weights)

    def _outcomes(self, at: int, body: bytes, rows: int) -> list[dict[str, Outcome]] | InfrastructureError:
        """Return the outcomes of a request's rows, or why they are lost."""
        try:
            return self._asked(at, "POST", "/v1/score", body, lambda told: self._read(told, rows))
        except InfrastructureError as lost:
            return lost

    def _read(self, told: Any, rows: int) -> list[dict[str, Outcome]]:
        """Return the outcomes in a server's answer.

        Raises:
            AgainError: It is no answer to so many rows by the rewards that the servers had at the start.
        """
        try:
            found = [{name: Outcome.from_json(row["outcomes"][name]) for name in self._rewards} for row in told["rows"]]
            versions = {name: str(told["versions"][name]) for name in self._rewards}
        except (KeyError, TypeError, ValueError) as odd:
            raise AgainError(f"answered something else than a reward server does: {odd!r}") from odd
        if len(found) != rows:
            raise AgainError(f"answered {len(found)} rows where {rows} were asked")
        for name, reward in self._rewards.items():
            if versions[name] != reward.version:
                raise AgainError(f"serves {name} {versions[name]} now, and {reward.version} when this client was made")
        return found

    def _asked(
        self,
        first: int,
        method: str,
        path: str,
        body: bytes | None,
        read: Callable[[Any], _Read],
        *,
        others: bool = True,
    ) -> _Read:
        """Return what is read from a server's answer; ask the next one, and again, while nobody is at fault.

        Each server is asked once, and then there are ``retry_s`` in all.

        Raises:
            InfrastructureError: No server answered in time.
        """
        until = time.monotonic() + self._retry_s
        there = len(self._servers)
        tries = 0
        while True:
            at = (first + (tries if others else 0)) % there
            try:
                return read(self._servers[at].ask(method, path, body))
            except AgainError as again:
                tries += 1
                rounds = tries // there if others else tries
                wait_s = min(FIRST_WAIT_S * 2 ** min(rounds, 10), LONGEST_WAIT_S) * _drawn.uniform(0.5, 1.0)
                is_late = time.monotonic() + wait_s > until and rounds
                if self._closed or is_late:
                    words = shortened(f"{self.urls[at]} {again}")
                    raise InfrastructureError(f"{words} ({tries} {'try' if tries == 1 else 'tries'})") from again
                time.sleep(wait_s)


def _told(told: Any) -> Any:
    """Return what a server tells of its rewards.

    Raises:
        AgainError: It is something else.
    """
    if not isinstance(told, dict) or not told.keys() >= {*_PARTS}:
        raise AgainError("is not a reward server: it answers /v1/rewards with something else")
    return told


def _again(urls: list[str], settings: Mapping[str, Any]) -> RemoteRuntime:
    """Return a runtime made with the settings of another, which was pickled."""
    return RemoteRuntime(urls, **settings)


def _served(told: Any) -> str:
    return ", ".join(f"{name} {told['versions'].get(name)} * {told['weights'].get(name):g}" for name in told["rewards"])


def _requests(parts: Sequence[CallerRows], encoded: Sequence[Sequence[bytes]], most: int) -> list[list[_Row]]:
    """Return which rows go into which request: groups whole, and never two groups of one prompt in one request."""
    requests: list[list[_Row]] = []
    keys: list[set[bytes]] = []
    sizes: list[int] = []
    for number, part in enumerate(parts):
        for places in group_places(part.rollouts):
            key = group_key(part.rollouts[places[0]], places[0])
            size = sum(len(encoded[number][place]) for place in places)
            fits = (
                at
                for at in range(max(0, len(requests) - 8), len(requests))
                if key not in keys[at] and len(requests[at]) + len(places) <= most and sizes[at] + size <= ROWS_BYTES
            )
            at = next(fits, len(requests))
            if at == len(requests):
                requests.append([])
                keys.append(set())
                sizes.append(0)
            requests[at] += [_Row(number, place) for place in places]
            keys[at].add(key)
            sizes[at] += size
    return requests


def _encoded(one: Rollout) -> bytes:
    """Return a rollout as it travels.

    Raises:
        DataError: It holds something that is not JSON.
    """
    told: dict[str, Any] = {"prompt": one.prompt, "completion": one.completion, "example": dict(one.example)}
    if one.completion_ids is not None:
        told["completion_ids"] = [int(number) for number in one.completion_ids]
    try:
        return json.dumps(told, allow_nan=False, default=_listed).encode()
    except (TypeError, ValueError) as odd:
        raise DataError(f"a row cannot travel to a reward server: {odd}") from odd


def _listed(value: Any) -> Any:
    """Return numbers or an array of numpy's or torch's as Python's own."""
    if not hasattr(value, "tolist"):
        raise TypeError(f"{type(value).__name__} is not JSON")
    return value.tolist()


def _body(rows: Sequence[bytes], step: int | None, epoch: float | None) -> bytes:
    beside = json.dumps({"step": step, "epoch": epoch, "gather": False}).encode()  # groups are whole
    return b'{"rollouts": [' + b", ".join(rows) + b"], " + beside[1:]


def _lost(why: str) -> Outcome:
    return Outcome(Status.FAILED, None, cause=Cause.INFRASTRUCTURE, error=why)
