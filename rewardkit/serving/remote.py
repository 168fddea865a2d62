"""A client of reward servers with the interface of a runtime, for those whose rewards are scored elsewhere.

This module owns which server is asked for which group, what is tried again, and what of it counts as lost. How one
server is asked is :mod:`~rewardkit.serving.server_link`'s. Both need nothing beyond Python's own library.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import json
import os
import queue
import random
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from typing import Any, TypeAlias, TypeVar

from rewardkit.declare.spec import ColumnMisfit
from rewardkit.errors import (
    ConfigError,
    InfrastructureError,
    RewardDefinitionError,
    RewardError,
    RuntimeClosedError,
)
from rewardkit.runtime.alarms import Alarms
from rewardkit.runtime.batch import check_lost
from rewardkit.runtime.plan import CallerRows, check_rollouts
from rewardkit.runtime.settings import check_open, require
from rewardkit.runtime.settle import Finished
from rewardkit.score_batch import ScoreBatch
from rewardkit.serving.client_weights import client_weights
from rewardkit.serving.outages import OutageLog
from rewardkit.serving.packing import ROWS, ROWS_BYTES, RowIndex, as_json, encode_rollout, pack_rows, score_body
from rewardkit.serving.remote_reward import PROTOCOL, RemoteReward
from rewardkit.serving.server_link import TOKEN_VARIABLE, AgainError, OtherVersionError, ServerLink
from rewardkit.shown.text import shortened
from rewardkit.types import Cause, Outcome, Rollout, Status

CONNECTIONS = 16  # Requests that are under way at once
FIRST_WAIT_S, LONGEST_WAIT_S = 0.1, 5.0  # Seconds before a request is tried again, doubled with each further try
NOTED_WAIT_S = 10.0  # Seconds that a client which is being made must be ready to wait for a warning that it waits
_PARTS = ("rewards", "weights", "versions")  # What all servers tell alike
_Reply = TypeVar("_Reply")
_RowOutcomes: TypeAlias = Mapping[str, Outcome]
_jitter = random.SystemRandom()  # a training's seed would have all of its processes retry at once


class RemoteRuntime:
    """Rewards that servers score, in place of a :class:`rewardkit.Runtime`.

    ``RewardAdapter(RemoteRuntime("http://rewards:8000", token="..."))`` trains with them. Groups are spread over the
    servers. A request that no server answers is tried again, on the next one, until ``retry_s`` is over; then its rows
    are lost: failed with cause ``infrastructure`` and without a score. An answer counts only if its rewards have
    the versions that the servers had when the client was made.

    Args:
        urls: Where the servers are, such as ``"http://10.0.0.7:8000"``: one or several, which serve the same rewards.
        token: The servers' token; by default the variable ``REWARDKIT_SERVE_TOKEN``, if it is set.
        timeout_s: Seconds, above 0, that a server may take to answer a request, to its last byte.
        retry_s: Seconds, 0 or more, for which a request is tried again; each server is asked once in any case. After
            three seconds without an answer a warning says so, once until a server answers, which a line says too; of
            a server that comes back with another version it says so at once.
        max_infrastructure_rate: Share of one reward's calls in a batch, 0 to 1, that may be lost.
        connect_s: Seconds, above 0, that a server has to tell its rewards when the client is made; by default it has
            ``retry_s``, and ``timeout_s`` for each answer. A client that may wait long for them logs a warning after
            the first seconds.
        names: Names of the servers' rewards that count; by default all.
        weights: Each reward's weight in the totals that this client makes, in the order of the rewards that count or
            by name; by default, and for names that it leaves out, the servers' own.

    Attributes:
        weights: Each reward's weight in the totals, by name.

    Raises:
        ConfigError: An address or the token makes no sense or is wrong, the servers serve different rewards or lack
            one of ``names``, or they run a rewardkit that this one cannot talk to.
        RewardDefinitionError: ``retry_s``, ``connect_s`` or ``max_infrastructure_rate`` is not in its range; or
            weights do not match the rewards, or have another sign than on the servers, whose failed calls have the
            worst score under theirs.
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
        connect_s: float | None = None,
        names: Sequence[str] | None = None,
        weights: Sequence[float] | Mapping[str, float] | None = None,
    ) -> None:
        self.urls = [urls] if isinstance(urls, str) else list(urls)
        self._settings: dict[str, Any] = {
            "token": token, "timeout_s": timeout_s, "retry_s": retry_s, "connect_s": connect_s, "names": names,
            "max_infrastructure_rate": max_infrastructure_rate, "weights": weights,
        }  # fmt: skip
        token = os.environ.get(TOKEN_VARIABLE) or None if token is None else token
        self._links = [ServerLink(url, token, timeout_s) for url in self.urls]
        if not self._links:
            raise ConfigError("urls: expected the address of a server, got none")
        self._retry_s: float = require("retry_s", retry_s, lambda seconds: seconds >= 0, "seconds, 0 or more")
        if connect_s is not None:
            require("connect_s", connect_s, lambda seconds: seconds > 0, "seconds, above 0")
        self._most_lost: float = require(
            "max_infrastructure_rate", max_infrastructure_rate, lambda rate: 0 <= rate <= 1, "a share from 0 to 1"
        )
        self._closed, self._alarms, self._outages = False, Alarms(), OutageLog("retry_s", retry_s)
        self._owner = os.getpid()
        wait_s = timeout_s if connect_s is None else min(timeout_s, connect_s)
        setting, tries_s = ("retry_s", retry_s) if connect_s is None else ("connect_s", connect_s)
        description = self._introduction(
            [ServerLink(url, token, wait_s) for url in self.urls], tries_s, OutageLog(setting, tries_s, NOTED_WAIT_S)
        )
        self._threads = ThreadPoolExecutor(CONNECTIONS, "rewardkit-remote")
        unknown = [name for name in names or () if name not in description["rewards"]]
        if unknown:
            raise ConfigError(
                f"{self._links[0].url} serves no {unknown[0]!r}; it serves {', '.join(description['rewards'])}"
            )
        selection = description["rewards"] if names is None else names
        address = ",".join(link.url for link in self._links)  # for records
        try:
            server_weights = {name: float(description["weights"][name]) for name in selection}
            self._rewards = {
                name: RemoteReward(
                    name,
                    description["versions"][name],
                    {**description["signatures"][name], "server": address},
                    functools.partial(self._misfits, name),
                )
                for name in selection
            }
        except (KeyError, TypeError, ValueError, RewardDefinitionError) as error:
            raise ConfigError(
                f"{self._links[0].url} tells of its rewards what this rewardkit cannot read: {error}"
            ) from error
        self.weights: dict[str, float] = client_weights(self._rewards, server_weights, weights)

    def _introduction(self, links: Sequence[ServerLink], retry_s: float, outages: OutageLog) -> Mapping[str, Any]:
        """Return the servers' description of their rewards, and set the most rows; ConfigError if they differ."""
        try:
            replies = [
                self._ask([link], 0, "GET", "/v1/rewards", None, _introduction_in, retry_s, outages) for link in links
            ]
        finally:
            for link in links:
                link.close()  # scores have links of their own, with a longer timeout
        for url, reply in zip((link.url for link in links), replies, strict=True):
            if reply.get("protocol") != PROTOCOL:
                raise ConfigError(
                    f"{url} runs another version of rewardkit ({reply.get('rewardkit', 'an older one')}), which this "
                    "one cannot talk to; install the same on both"
                )
            if any(reply[part] != replies[0][part] for part in _PARTS):
                first = f"{links[0].url} {_summary(replies[0])}"
                raise ConfigError(f"{url} serves {_summary(reply)}, and {first}: expected the same")
        self._most_rows = min(ROWS, *(reply.get("most_rows", ROWS) for reply in replies))
        return replies[0]

    @property
    def names(self) -> list[str]:
        """The rewards' names, in their order."""
        return list(self._rewards)

    @property
    def rewards(self) -> Mapping[str, RemoteReward]:
        """The rewards by name, with the parameters and options that they have on the servers."""
        return self._rewards

    @property
    def changeable(self) -> None:
        """``None``: what servers score is not changed from here."""

    def with_weights(self, weights: Sequence[float] | Mapping[str, float]) -> RemoteRuntime:
        """Return another client of the same servers, with these weights; close both. It raises as a new one does."""
        return RemoteRuntime(self.urls, **{**self._settings, "weights": weights})

    def start(self) -> RemoteRuntime:
        """Return the runtime; the servers run already."""
        check_open(self._owner, closed=self._closed)
        return self

    def wait_loaded(self) -> None:
        """Return at once: a server answers only when its workers have loaded the rewards, and all have answered."""
        check_open(self._owner, closed=self._closed)

    def check(self, rollouts: Sequence[Rollout]) -> None:
        """Raise :class:`~rewardkit.errors.DataError` where rollouts are wrong or lack a column; ask no server."""
        check_rollouts(list(self._rewards.values()), rollouts)

    def score(self, rollouts: Iterable[Rollout], *, step: int | None = None, epoch: float | None = None) -> ScoreBatch:
        """Score rollouts, whole groups of them, and wait for the last one; raise as :meth:`rewardkit.Scorer.score`."""
        check_open(self._owner, closed=self._closed)
        rows = list(rollouts)
        self.check(rows)
        (batch,) = self._score([CallerRows(rows)], step, epoch)
        self._check_lost(batch)
        return batch

    def stream(
        self, rollouts: Iterable[Rollout], *, step: int | None = None, epoch: float | None = None
    ) -> Iterator[Finished]:
        """Yield (row, reward, outcome) as servers answer the requests, in no order; raise as :meth:`score`.

        Leaving the loop early drops the requests that have not been sent.
        """
        check_open(self._owner, closed=self._closed)
        part = CallerRows(list(rollouts))
        self.check(part.rollouts)
        rows: list[_RowOutcomes] = [{}] * len(part.rollouts)
        with contextlib.closing(self._answers([part], step, epoch)) as answers:
            for row, outcomes in answers:
                rows[row.row] = outcomes
                yield from (Finished(row.row, name, outcome) for name, outcome in outcomes.items())
        self._check_lost(self._batch(part, rows))

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
        for link in self._links:
            link.close()

    def __enter__(self) -> RemoteRuntime:
        return self.start()

    def __exit__(self, *error: object) -> None:
        self.close()

    def __reduce__(self) -> tuple[Callable[..., RemoteRuntime], tuple[object, ...]]:
        return _remade, (self.urls, self._settings)

    def _score(self, parts: Sequence[CallerRows], step: int | None, epoch: float | None) -> list[ScoreBatch]:
        """Return each caller's scores; calls that no server answered are failed, however many they are."""
        columns: list[list[_RowOutcomes]] = [[{}] * len(part.rollouts) for part in parts]
        for row, outcomes in self._answers(parts, step, epoch):
            columns[row.part][row.row] = outcomes
        return [self._batch(part, rows) for part, rows in zip(parts, columns, strict=True)]

    def _answers(
        self, parts: Sequence[CallerRows], step: int | None, epoch: float | None
    ) -> Generator[tuple[RowIndex, _RowOutcomes], None, None]:
        """Ask servers for the rows, and yield each row's outcomes as they come."""
        check_open(self._owner, closed=self._closed)
        encoded = [[encode_rollout(rollout) for rollout in part.rollouts] for part in parts]
        requests = [request.rows for request in pack_rows(parts, encoded, self._most_rows)]
        bodies = [score_body([encoded[row.part][row.row] for row in rows], step, epoch) for rows in requests]
        del encoded  # the bodies hold all of it once more
        waiting = {
            self._threads.submit(self._outcomes, number, body, len(rows)): rows
            for number, (rows, body) in enumerate(zip(requests, bodies, strict=True))
        }
        # Not concurrent.futures.as_completed: it never learns of those that the executor's shutdown cancels.
        done: queue.SimpleQueue[Future[list[dict[str, Outcome]] | InfrastructureError]] = queue.SimpleQueue()
        for future in waiting:
            future.add_done_callback(done.put)
        try:
            for _ in range(len(waiting)):
                future = done.get()
                answer = future.result()
                if isinstance(answer, InfrastructureError):
                    answer = [{name: _lost(str(answer)) for name in self._rewards}] * len(waiting[future])
                yield from zip(waiting[future], answer, strict=True)
        except CancelledError:
            raise RuntimeClosedError("this runtime was closed before all was scored") from None
        finally:
            for future in waiting:
                future.cancel()

    def _check_lost(self, batch: ScoreBatch) -> None:
        """Warn of what a batch shows; InfrastructureError where too many calls of a reward were lost."""
        self._alarms.look_at(batch, batch.rollouts)
        for name, column in batch.items():
            check_lost(name, column, self._most_lost)

    def _batch(self, part: CallerRows, rows: Sequence[_RowOutcomes]) -> ScoreBatch:
        """Return a caller's scores; the rewards of groups were not run on a group that came late."""
        outcomes = {name: [row[name] for row in rows] for name in self._rewards}
        if part.late is not None:
            groups = [name for name, reward in self._rewards.items() if reward.scores_groups]
            outcomes |= {name: [_lost(part.late)] * len(rows) for name in groups}
        return ScoreBatch(list(part.rollouts), outcomes, self.weights)

    def _outcomes(self, first: int, body: bytes, rows: int) -> list[dict[str, Outcome]] | InfrastructureError:
        """Return the outcomes of a request's rows, or why they are lost."""
        parse = functools.partial(self._outcomes_in, rows=rows)
        try:
            return self._ask(self._links, first, "POST", "/v1/score", body, parse, self._retry_s, self._outages)
        except InfrastructureError as error:
            return error

    def _outcomes_in(self, reply: object, rows: int) -> list[dict[str, Outcome]]:
        """Return the outcomes in a server's answer; raise AgainError where rows or the rewards' versions differ."""
        with _odd_replies():
            answer = _object_in(reply)
            outcomes = [
                {name: Outcome.from_json(row["outcomes"][name]) for name in self._rewards} for row in answer["rows"]
            ]
            versions = {name: str(answer["versions"][name]) for name in self._rewards}
        if len(outcomes) != rows:
            raise AgainError(f"answered {len(outcomes)} rows where {rows} were asked")
        for name, reward in self._rewards.items():
            if versions[name] != reward.version:
                raise OtherVersionError(
                    f"serves {name} {versions[name]} now, and {reward.version} when this client was made; start the "
                    "server with that version again, or stop what asks it"
                )
        return outcomes

    def _misfits(self, name: str, examples: Sequence[Mapping[str, Any]]) -> list[ColumnMisfit]:
        """Return the columns' values that a reward cannot take; the servers know its annotations."""
        encoded = [as_json(dict(example)) for example in examples]
        misfits: list[ColumnMisfit] = []
        first = 0
        while first < len(encoded):
            last, size = first + 1, len(encoded[first])
            while last < min(first + self._most_rows, len(encoded)) and size + len(encoded[last]) <= ROWS_BYTES:
                size += len(encoded[last])
                last += 1
            body = b'{"reward": %b, "examples": [%b]}' % (json.dumps(name).encode(), b", ".join(encoded[first:last]))
            rows = self._ask(self._links, 0, "POST", "/v1/check", body, _misfits_in, self._retry_s, self._outages)
            numbered = [misfit._replace(row=misfit.row + first) for misfit in rows]
            misfits += [misfit for misfit in numbered if misfit.column in examples[misfit.row]]  # not those missing
            first = last
        for link in self._links:
            link.drop()  # this thread may ask nothing more
        return misfits

    def _ask(
        self,
        links: Sequence[ServerLink],
        first: int,
        method: str,
        path: str,
        body: bytes | None,
        parse: Callable[[object], _Reply],
        retry_s: float,
        outages: OutageLog,
    ) -> _Reply:
        """Return a server's parsed answer; where it fails through nobody's fault, ask the next one, and again.

        Each server is asked once at least, and then until ``retry_s`` seconds are over; then InfrastructureError is
        raised. ``outages`` logs what is waited for.
        """
        begin = time.monotonic()
        until = begin + retry_s
        tries = 0
        while True:
            link = links[(first + tries) % len(links)]
            try:
                reply = parse(link.ask(method, path, body))
                outages.note_answer(link.url)
                return reply
            except AgainError as error:
                tries += 1
                rounds = tries // len(links)
                wait_s = min(FIRST_WAIT_S * 2 ** min(rounds, 10), LONGEST_WAIT_S) * _jitter.uniform(0.5, 1.0)
                next_try = time.monotonic() + wait_s
                reason = shortened(f"{link.url} {error}")
                if self._closed or (next_try > until and rounds):
                    outages.note_lost()
                    raise InfrastructureError(f"{reason} ({tries} {'try' if tries == 1 else 'tries'})") from error
                outages.note_failure(reason, begin, next_try, until, is_final=isinstance(error, OtherVersionError))
                time.sleep(wait_s)


def _object_in(reply: object) -> Mapping[str, Any]:
    if not isinstance(reply, dict):
        raise TypeError(f"{type(reply).__name__} is not an object")
    return reply


def _introduction_in(reply: object) -> Mapping[str, Any]:
    """Return a server's description of its rewards; AgainError for any other reply."""
    if not isinstance(reply, dict) or not reply.keys() >= {*_PARTS}:
        raise AgainError("is not a reward server: it answers /v1/rewards with something else")
    return reply


def _misfits_in(reply: object) -> list[ColumnMisfit]:
    """Return the misfits in a server's answer; AgainError where it is no such answer."""
    with _odd_replies():
        return [ColumnMisfit(int(row), str(column), str(error)) for row, column, error in _object_in(reply)["misfits"]]


@contextlib.contextmanager
def _odd_replies() -> Iterator[None]:
    """Raise AgainError for a reply in which something is missing or of another kind."""
    try:
        yield
    except (KeyError, TypeError, ValueError) as error:
        raise AgainError(f"answered something else than a reward server does: {error!r}") from error


def _remade(urls: list[str], settings: Mapping[str, Any]) -> RemoteRuntime:
    return RemoteRuntime(urls, **settings)


def _summary(description: Mapping[str, Any]) -> str:
    versions, weights = description["versions"], description["weights"]
    return ", ".join(f"{name} {versions.get(name)} * {weights.get(name):g}" for name in description["rewards"])


def _lost(why: str) -> Outcome:
    return Outcome(Status.FAILED, None, cause=Cause.INFRASTRUCTURE, error=why)
