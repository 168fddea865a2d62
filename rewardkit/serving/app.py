"""The reward server's addresses: who may ask, how much a request may hold, and what each is answered.

It reads a body within limits, has :mod:`~rewardkit.serving.translate` make rollouts of it, scores them through
:mod:`~rewardkit.serving.gathering` or :mod:`~rewardkit.serving.joining`, and answers in the trainer's own shape.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
import time
from collections.abc import Mapping, Sequence
from functools import lru_cache
from hmac import compare_digest
from itertools import chain
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, urlsplit

from starlette.requests import ClientDisconnect
from starlette.types import Receive, Scope, Send

from rewardkit import __version__
from rewardkit.declare.compose import Composable
from rewardkit.declare.spec import ColumnMisfit
from rewardkit.errors import DataError, FullError, InfrastructureError, RewardError, RuntimeClosedError
from rewardkit.runtime.names import missing_columns
from rewardkit.score_batch import ScoreBatch
from rewardkit.serving.bodies import RefusedError, a_list, an_object, dumps, loads, preview
from rewardkit.serving.contract import RowFate, form_of, told_rows
from rewardkit.serving.failure_log import FailureLog
from rewardkit.serving.gathering import GROUP_WAIT_S, Gathering
from rewardkit.serving.joining import MOST_ROWS, Joining, PartsScorer
from rewardkit.serving.metrics import KIND, Metrics
from rewardkit.serving.openapi import description
from rewardkit.serving.refusal_log import RefusalLog
from rewardkit.serving.remote_reward import PROTOCOL, signature_of
from rewardkit.serving.shared_counts import SharedCounts
from rewardkit.serving.translate import TRANSLATIONS, Raw, ScoreRequest, gym_metrics, native_row
from rewardkit.web.listening import is_loopback

BODY_BYTES = 32 * 2**20  # Bytes of one request's body
ALL_BYTES = 256 * 2**20  # Bytes of all bodies that are inside
BODY_S = 30.0  # Seconds for a body to arrive
_LOOK_S = 0.5  # Seconds between two looks for bodies that have not arrived in time
SHORT_BYTES = 64 * 2**10
"""Bytes of a body that is read to its end though its request is refused, so that the connection can be used again."""
LINGER_S, LINGER_BYTES = 2.0, 2 * BODY_BYTES
"""How much of a longer one is still read and dropped, so that a client that reads after it has sent sees the answer."""
ROWS = 8_192  # Rows of one request
ANSWER_S = 900.0  # Seconds for an answer; a reward's own timeouts end far earlier
NDJSON = "application/x-ndjson"
JSON = "application/json"
_HEADERS = ((b"x-content-type-options", b"nosniff"), (b"cache-control", b"no-store"))
_log = logging.getLogger("rewardkit.serving")


class RewardApp:
    """The ASGI application of a reward server.

    Clients send the ``token`` as a bearer or in the address; with ``None`` only this machine asks. ``group_size`` rows
    make a group, late after ``group_wait_s`` seconds; with ``None`` requests hold whole groups. At most ``most_rows``
    rows wait or are scored at once. ``counts`` are those of all processes that serve beside this one.
    """

    def __init__(
        self,
        runtime: PartsScorer,
        *,
        token: str | None = None,
        group_size: int | None = None,
        group_wait_s: float = GROUP_WAIT_S,
        most_rows: int = MOST_ROWS,
        counts: SharedCounts | None = None,
    ) -> None:
        self._token = token
        self._shared_counts = counts
        self._joining = Joining(
            runtime, most_rows=most_rows, on_batch=lambda callers, rows: self.metrics.count_batch(rows)
        )
        self._max_rows = min(ROWS, most_rows)  # a larger request could never be admitted
        self._groups = groups_among(runtime.rewards)
        waits = group_size is not None and self._groups  # without rewards of groups no row need wait
        self._gathering = Gathering(self._joining, group_size or 1, group_wait_s) if waits else None
        self.metrics = Metrics(
            lambda: self._joining.rows, lambda: 0 if self._gathering is None else self._gathering.waiting
        )
        self._rewards = runtime.rewards
        self._description = {
            "rewardkit": __version__,
            "protocol": PROTOCOL,
            "rewards": {name: "group" if name in self._groups else "single" for name in runtime.names},
            "weights": runtime.weights,
            "versions": {name: reward.version for name, reward in runtime.rewards.items()},
            "group_size": group_size,
            "most_rows": self._max_rows,
        }
        self._openapi = description(self._description)
        self._description["signatures"] = {name: signature_of(reward) for name, reward in runtime.rewards.items()}
        self._bytes = 0  # Of the bodies that are inside
        self._readers: dict[_Request, _Reader] = {}  # Of the bodies that are arriving
        self._look: asyncio.TimerHandle | None = None  # The next look at them
        self._refusals = RefusalLog()
        self._failures = FailureLog()
        self.active = 0  # Requests whose body was read and that are not answered yet
        self.draining = False  # Whether no more requests are taken

    def drain(self) -> None:
        """Refuse further rows, and score groups that wait as they are; rows taken before are answered."""
        self.draining = True
        self._refusals.flush()
        self._joining.end("the server is ending; ask another one, or try again later")
        if self._gathering is not None:
            self._gathering.flush("the group is not whole, and the server is ending")

    def end_logs(self) -> None:
        """Log what the rewards' calls came to, where most of them failed or were skipped."""
        self._failures.flush()

    def publish(self) -> None:
        """Let the other processes of this server see its numbers, where there are others."""
        if self._shared_counts is not None:
            self._shared_counts.publish(self.metrics.counts)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            if scope["type"] == "websocket":
                await send({"type": "websocket.close", "code": 1008})
            return
        request = _Request(scope, receive)
        try:
            await self._request(request, send)
        finally:
            self._bytes -= request.held_bytes
            self.active -= request.is_active

    async def _request(self, request: _Request, send: Send) -> None:
        """Answer a request, every error included, and count it."""
        start = time.monotonic()
        route = "refused"
        try:
            route = self._route_of(request)
            answer = await self._answer(route, request)
        except RefusedError as error:
            self._refusals.warn((route, error.status), f"{route}: {error.status}: {error}")  # without its token
            answer = _json({"error": str(error)}, error.status, error.headers)
        except ClientDisconnect:
            return
        except Exception as error:
            _log.exception("%s: a fault of rewardkit's own", route)
            message = f"a fault of rewardkit's own, {type(error).__name__}; the server's log says more"
            answer = _json({"error": message}, 500)
        if answer.status >= 400 and not request.is_read and _may_send_on(request, answer):
            await _answer_early(answer, request.receive, send)
        else:
            await answer.send(send)
        self.metrics.count_request(route, answer.status, time.monotonic() - start)

    def _route_of(self, request: _Request) -> str:
        """Return the address that a request asks for, without its token; refuse one that may not ask."""
        scope = request.scope
        path: str = scope["path"]
        token = ""
        if path.startswith("/t/"):
            token, _, rest = path[3:].partition("/")
            path = f"/{rest}"
        if path[-1:] == "/" and path[:-1] in ADDRESSES:  # as clients write it that append to an address
            path = path[:-1]
        if path not in ADDRESSES or b"%" in (scope.get("raw_path") or b""):  # one spelling an address
            path = "none"  # told only to those who may ask
        if path not in OPEN and self._token is not None:
            bearer = request.header(b"authorization")
            token = bearer[7:].strip() if bearer[:7].lower() == "bearer " else token
            if not compare_digest(token.encode("utf-8", "replace"), self._token.encode()):  # equal time, wrong or right
                reason = "wrong token" if token else "no token; send `Authorization: Bearer TOKEN`, or ask /t/TOKEN/..."
                raise RefusedError(401, reason, {"www-authenticate": "Bearer"})
        if self._token is None and not _is_local(request):
            raise RefusedError(401, "without a token only programs on this machine are answered; start with --token")
        if path == "none":
            raise RefusedError(404, f"there is nothing at this address; there are {', '.join(ADDRESSES)}")
        method = ADDRESSES[path]
        if scope["method"] != method and not (method == "GET" and scope["method"] == "HEAD"):
            raise RefusedError(405, f"{path} answers {method}, not {scope['method']}", {"allow": method})
        return path

    async def _answer(self, route: str, request: _Request) -> _Answer:
        """Return the answer of an address; the body is read where the address takes one."""
        if route == "/metrics":
            counts = self.metrics.counts
            if self._shared_counts is not None:
                counts = self._shared_counts.with_others(counts)
            return _Answer(counts.render(), kind=KIND)
        if route == "/readyz":
            return _json({"ok": not self.draining}, 503 if self.draining else 200)
        if ADDRESSES[route] == "GET":
            replies = {
                "/livez": {"ok": True},
                "/health": {"ok": True},
                "/openapi.json": self._openapi,
                "/v1/rewards": self._description,
            }
            return _json(replies[route])
        if self.draining:
            raise _busy("the server is ending; ask another one, or try again later")
        body = _body_of(loads(await self._body(request)), route)
        if route == "/seed_session":
            return _json({})  # Gym wants a session, and scores need none
        if route == "/aggregate_metrics":
            return _json(gym_metrics(body))
        request.is_active = True
        self.active += 1
        if route == "/v1/check":
            return _json({"misfits": await self._misfits(body)})
        return await self._score(route, request, body)

    async def _misfits(self, body: Mapping[str, Any]) -> list[ColumnMisfit]:
        """Return the values that a reward's annotations refuse; nothing is scored."""
        reward = self._rewards.get(str(body.get("reward")))
        if reward is None:
            raise RefusedError(
                422, f"reward: expected one of {', '.join(self._rewards)}, got {preview(body.get('reward'))}"
            )
        rows = a_list(body, "examples", self._max_rows)
        examples = [an_object(row, f"examples[{number}]") for number, row in enumerate(rows)]
        columns = [await asyncio.to_thread(leaf.misfits, examples) for leaf in reward.leaves]  # authors' validators
        columns += [list(missing_columns(leaf, examples)) for leaf in reward.leaves]
        return sorted(dict.fromkeys(chain(*columns)), key=lambda misfit: misfit.row)

    async def _score(self, route: str, request: _Request, body: dict[str, Any]) -> _Answer:
        """Score what a request asks for, and answer as its trainer reads it."""
        read_body, write_reply = TRANSLATIONS[route]
        raw_query = request.scope["query_string"]
        query = dict(parse_qsl(raw_query.decode("latin-1"), keep_blank_values=True)) if raw_query else {}
        try:
            wish = read_body(body, query, self._max_rows)
        except RefusedError as error:
            is_of_form = any(sign in str(error) for sign in ("unknown field", " is missing", "got null"))
            if error.status != 422 or not is_of_form or (route == "/v1/score" and "rollouts" in body):
                raise
            raise RefusedError(422, f"{error}; {form_of(route)}") from None
        if self._groups and route != "/v1/score" and self._gathering is None and wish.rollouts:
            raise RefusedError(
                422, f"reward {self._groups[0]!r} scores the completions of a prompt together; start with --group-size"
            )
        if wish.doubt:
            self._refusals.warn((route, 1), f"{route}: {wish.doubt}")
        rows = told_rows(await self._batch(wish, request))
        self.metrics.count_rows(rows)
        self._failures.note(rows)
        lost = [row for row in rows if row.fate is RowFate.UNKNOWN]
        if lost and route != "/v1/score":
            message = f"no score is known of {len(lost)} of {len(rows)} rollouts: {lost[0].why}"
            self._refusals.warn((route, 0), f"{route}: {message}")
        if route == "/v1/score" and NDJSON in request.header(b"accept"):
            lines = b"".join(dumps({"row": number, **native_row(row)}) + b"\n" for number, row in enumerate(rows))
            return _Answer(lines, kind=NDJSON)
        reply = write_reply(body, query, rows)
        return _json({**reply, "versions": self._description["versions"]} if route == "/v1/score" else reply)

    async def _batch(self, wish: ScoreRequest, request: _Request) -> ScoreBatch:
        """Score rollouts, alone or with their groups; every error becomes a refusal with its status."""
        try:
            if self._gathering is None or not wish.gather:
                return await self._joining.score(wish.rollouts, step=wish.step, epoch=wish.epoch, within_s=ANSWER_S)
            return await self._gather(self._gathering, wish, request)
        except DataError as error:
            raise RefusedError(422, str(error)) from error
        except (FullError, RuntimeClosedError) as error:
            raise _busy(str(error)) from error
        except InfrastructureError as error:
            raise _busy(str(error), 5) from error
        except RewardError as error:
            raise RefusedError(500, str(error)) from error

    async def _gather(self, gathering: Gathering, wish: ScoreRequest, request: _Request) -> ScoreBatch:
        """Return the scores of rows that wait for their group; a client that hangs up may ask for them again."""
        scoring = asyncio.create_task(
            gathering.score(wish.rollouts, samples=wish.samples, step=wish.step, epoch=wish.epoch, within_s=ANSWER_S)
        )
        hang_up = asyncio.create_task(_hang_up(request))
        try:
            await asyncio.wait({scoring, hang_up}, return_when=asyncio.FIRST_COMPLETED)
            if scoring.done():
                return scoring.result()
            raise ClientDisconnect
        finally:
            for task in (scoring, hang_up):
                task.cancel()

    async def _body(self, request: _Request) -> bytes:
        """Read a request's body, whose bytes count until it is answered; refuse one packed, too large or late."""
        if request.header(b"content-encoding").strip().lower() not in ("", "identity"):
            raise RefusedError(400, "content-encoding: expected a body that is not packed")
        if BODY_BYTES < request.announced_bytes < math.inf:
            raise _too_large()
        parts: list[bytes] = []
        task = asyncio.current_task()
        assert task is not None
        self._readers[request] = _Reader(task, time.monotonic() + BODY_S)
        self._look_later()
        try:
            while not request.is_read:
                parts.append(await self._part(request))
        except asyncio.CancelledError:
            if not request.is_late:
                raise
            task.uncancel()
            raise RefusedError(408, f"the body did not arrive within {BODY_S:g} s", {"connection": "close"}) from None
        finally:
            del self._readers[request]
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def _look_later(self) -> None:
        """Have bodies that are late be looked for; a timer for each body takes many times as long."""
        if self._look is None:
            self._look = asyncio.get_running_loop().call_later(_LOOK_S, self._end_late_readers)

    def _end_late_readers(self) -> None:
        """End the reading of bodies that have not arrived in time."""
        self._look = None
        now = time.monotonic()
        for request, reader in self._readers.items():
            if reader.deadline <= now and not request.is_late:
                request.is_late = True
                reader.task.cancel()
        if self._readers:
            self._look_later()

    async def _part(self, request: _Request) -> bytes:
        """Return the next part of a body and count its bytes; refuse a body, or all bodies, that are too large."""
        message = await request.receive()
        if message["type"] != "http.request":
            raise ClientDisconnect
        part: bytes = message.get("body", b"")
        request.held_bytes += len(part)
        self._bytes += len(part)
        if request.held_bytes > BODY_BYTES:
            raise _too_large()
        if self._bytes > ALL_BYTES:
            raise _busy(f"the bodies of all requests have more than {ALL_BYTES:,} bytes; try again later")
        request.is_read = not message.get("more_body", False)
        return part


def _body_of(value: object, route: str) -> dict[str, Any]:
    """Return the object of a body; refuse anything else, with what a route for rollouts takes."""
    if type(value) is not dict and route in TRANSLATIONS:
        raise RefusedError(422, f"the body: expected an object, got {preview(value)}; {form_of(route)}")
    return an_object(value)


class _Reader(NamedTuple):
    """A task that reads a body, and when that must have come, on the monotonic clock."""

    task: asyncio.Task[Any]
    deadline: float


class _Request:
    """A request, how much of it was read, and whether it is counted as active."""

    def __init__(self, scope: Scope, receive: Receive) -> None:
        self.scope, self.receive = scope, receive
        self._headers: dict[bytes, bytes] = dict(scope["headers"])
        self.held_bytes = 0
        self.is_read = self.is_active = False
        self.is_late = False  # Whether its body did not arrive in time

    def header(self, name: bytes) -> str:
        """Return a header's value; ``""`` for a header that was not sent."""
        return self._headers.get(name, b"").decode("latin-1")

    @property
    def announced_bytes(self) -> float:
        """The announced length of the body; infinite where none is announced."""
        if b"transfer-encoding" in self._headers:
            return math.inf
        length = self._headers.get(b"content-length", b"0")
        return int(length) if length.isdigit() else math.inf


class _Answer:
    """One answer, with its headers as bytes: a web framework's would be made of texts for each request anew."""

    def __init__(
        self, body: bytes, status: int = 200, headers: Mapping[str, str] | None = None, kind: str = JSON
    ) -> None:
        self.body, self.status = body, status
        self.headers = [
            *_HEADERS,
            (b"content-type", kind.encode()),
            (b"content-length", b"%d" % len(body)),
            *((name.encode(), value.encode()) for name, value in (headers or {}).items()),
        ]

    async def send(self, send: Send) -> None:
        await send({"type": "http.response.start", "status": self.status, "headers": self.headers})
        await send({"type": "http.response.body", "body": self.body})


ADDRESSES: Mapping[str, str] = {
    **dict.fromkeys(TRANSLATIONS, "POST"),
    "/seed_session": "POST",
    "/aggregate_metrics": "POST",
    "/v1/check": "POST",
    "/v1/rewards": "GET",
    "/livez": "GET",
    "/health": "GET",
    "/readyz": "GET",
    "/metrics": "GET",
    "/openapi.json": "GET",
}
"""Every address with its method; no other is answered."""
OPEN: Sequence[str] = ("/livez", "/health", "/readyz")  # Addresses that need no token: an orchestrator's probes


def groups_among(rewards: Mapping[str, Composable]) -> list[str]:
    """Return the names of the rewards that score whole groups, or have a part that does."""
    return [name for name, reward in rewards.items() if reward.scores_groups]


def _json(value: object, status: int = 200, headers: Mapping[str, str] | None = None) -> _Answer:
    return _Answer(bytes(value) if isinstance(value, Raw) else dumps(value), status, headers)


def _busy(reason: str, after_s: int = 1) -> RefusedError:
    return RefusedError(503, reason, {"retry-after": str(after_s)})


def _too_large() -> RefusedError:
    return RefusedError(413, f"the body has more than {BODY_BYTES:,} bytes; send fewer rows at once")


def _may_send_on(request: _Request, answer: _Answer) -> bool:
    """Whether a refused client may send for long, and its connection is not closed anyway."""
    return request.announced_bytes > SHORT_BYTES and (b"connection", b"close") not in answer.headers


async def _answer_early(answer: _Answer, receive: Receive, send: Send) -> None:
    """Answer a client that still sends, and drop a little of what comes: if cut off, it would not see the answer."""
    headers = [*answer.headers, (b"connection", b"close")]
    await send({"type": "http.response.start", "status": answer.status, "headers": headers})
    await send({"type": "http.response.body", "body": answer.body, "more_body": True})
    dropped_bytes = 0
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(LINGER_S):
            while dropped_bytes < LINGER_BYTES:
                message = await receive()
                if not message.get("more_body", False):
                    break
                dropped_bytes += len(message["body"])
    await send({"type": "http.response.body", "body": b""})


def _is_local(request: _Request) -> bool:
    """Whether a request comes from a program of this machine, and not from a page in a browser."""
    return not request.header(b"origin") and _names_this_machine(request.header(b"host"))


@lru_cache(256)
def _names_this_machine(host: str) -> bool:
    try:
        return is_loopback(urlsplit(f"//{host}").hostname or "")
    except ValueError:
        return False


async def _hang_up(request: _Request) -> None:
    """Return when the client hangs up."""
    while (await request.receive())["type"] != "http.disconnect":
        pass
