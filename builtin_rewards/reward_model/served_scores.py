"""The scores of a reward model that another process serves: batches of concurrent calls, tries, and whose fault it is.

Requests go by the judges' transport, openai's client over httpx2: sent once each, with a key that stays hidden, no
redirect followed, and answers of a bounded size. Tries are those of the judges' :class:`RetryPolicy`.
"""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from builtin_rewards.endpoint.backends import NO_KEY, Server
from builtin_rewards.endpoint.client import send
from builtin_rewards.endpoint.foreign import Addressee, translate
from builtin_rewards.judge import Fault, JudgeError, RetryPolicy
from builtin_rewards.reward_model.served_forms import (
    ROUTES,
    ServedRequest,
    ServedRoute,
    ServedText,
    ServerKind,
    UnreadableAnswerError,
    request_of,
    scores_of,
    takes_many,
)
from rewardkit import DataError, InfrastructureError, RewardError
from rewardkit.extending import of_this_loop

BATCH = 64  # Texts of one request at most
IN_FLIGHT = 32  # Requests under way at once; what comes beyond waits for its turn
_PROBE_S = 5.0  # Seconds in which a server says which models it has
_NO_ROUTE = frozenset({404, 405})
_OF_THE_TEXT = frozenset({400, 413, 422})  # statuses of a request that holds what the server does not take
_OF_THE_SERVER = re.compile(r"chat[ _-]?template|(does not|doesn't) (support|exist)|unsupported task", re.IGNORECASE)
"""Words of a refusal that holds for every text: the model has no chat template, or not this route."""
_FAULTS_OF_TEXT = frozenset({Fault.CONTEXT_LENGTH, Fault.CONTENT_FILTER})


class ModelServer(Server):
    """A server of reward models; unlike a judge's it may want no key, wherever it is."""

    def key(self) -> str:
        """Return the key from the environment, or a placeholder; JudgeSetupError if it cannot be a header."""
        return super().key() if os.environ.get(self.key_env, "").strip() else NO_KEY


@dataclass(frozen=True, slots=True)
class ServedSettings:
    """Which model is asked where, and how patiently; see :class:`RemoteRewardModel`, whose options these are."""

    server: ModelServer
    kind: ServerKind | None = None
    route: ServedRoute | None = None
    model: str | None = None
    plain: bool = False
    label_token_ids: tuple[int, ...] = ()
    deadline_s: float = 120.0
    wait_ms: float = 5.0
    retry: RetryPolicy = field(default_factory=RetryPolicy)


class _Introduction(NamedTuple):
    """What a server said of itself."""

    kind: ServerKind
    model: str | None


class ServedScores:
    """The scores of one served model for one event loop; concurrent calls share requests."""

    def __init__(self, settings: ServedSettings) -> None:
        self._settings = settings
        self._route = settings.route
        self._server_facts: _Introduction | None = None
        self._asking = asyncio.Lock()
        self._turns = asyncio.Semaphore(IN_FLIGHT)
        self._waiting: list[tuple[ServedText, asyncio.Future[float]]] = []
        self._tasks: set[asyncio.Task[None]] = set()

    @classmethod
    def of_this_loop(cls, settings: ServedSettings) -> ServedScores:
        """Return the running event loop's."""
        return of_this_loop(("served scores", settings), lambda: cls(settings))

    async def score(self, text: ServedText) -> float:
        """Return a text's score.

        Raises:
            DataError: The server does not take this text.
            InfrastructureError: No score came; it was tried again as far as that may help.
        """
        future: asyncio.Future[float] = asyncio.get_running_loop().create_future()
        self._waiting.append((text, future))
        if len(self._waiting) == 1:
            asyncio.get_running_loop().call_later(self._settings.wait_ms / 1000, self._begin)
        elif len(self._waiting) >= BATCH:
            self._begin()
        return await future

    def _begin(self) -> None:
        """Send what waits."""
        batch, self._waiting = self._waiting, []
        if batch:
            task = asyncio.create_task(self._answer(batch))
            self._tasks.add(task)  # the loop itself keeps no task
            task.add_done_callback(self._tasks.discard)

    async def _answer(self, batch: Sequence[tuple[ServedText, asyncio.Future[float]]]) -> None:
        """Set each text's score or error."""
        try:
            async with asyncio.timeout(self._settings.deadline_s):
                results = await self._scores([text for text, _ in batch])
        except TimeoutError:
            late = f"{self._settings.server.base_url}: no score within {self._settings.deadline_s:g} s"
            results = [_final(f"{late}; raise deadline_s, or ask for fewer at once")] * len(batch)
        except Exception as error:
            results = [error] * len(batch)
        for (_, future), result in zip(batch, results, strict=True):
            if future.done():
                continue  # its call was cancelled
            if isinstance(result, Exception):
                future.set_exception(result)
            else:
                future.set_result(result)

    async def _scores(self, texts: Sequence[ServedText]) -> list[float | Exception]:
        """Return the scores of texts, or their errors, in one request or as many as the route needs."""
        facts = await self._introduction()
        route = self._route or "classify"
        if len(texts) > 1 and not takes_many(route, facts.kind, texts, plain=self._settings.plain):
            parts = await asyncio.gather(*(self._scores([text]) for text in texts))
            return [result for part in parts for result in part]
        try:
            return [*await self._ask(facts, texts)]
        except DataError as error:
            if len(texts) == 1:
                return [error]
        except RewardError as error:
            return [error] * len(texts)
        half = len(texts) // 2  # one of them is at fault, and no other of them pays for it
        first, second = await asyncio.gather(self._scores(texts[:half]), self._scores(texts[half:]))
        return [*first, *second]

    async def _introduction(self) -> _Introduction:
        """Return the server's kind and model, as set or as it says; it is asked once."""
        async with self._asking:
            if self._server_facts is None:
                kind, model = self._settings.kind, self._settings.model
                if kind is None or model is None:
                    owner, listed = await self._probe()
                    kind = kind or ("sglang" if owner == "sglang" else "vllm")
                    model = model or listed
                self._server_facts = _Introduction(kind, model)
            return self._server_facts

    async def _probe(self) -> tuple[str | None, str | None]:
        """Return who owns the first model of the server's list, and its name; nothing where there is no such list."""
        try:
            async with asyncio.timeout(_PROBE_S):
                answer = await send(self._settings.server, "v1/models")
            entry = answer.content["data"][0] if answer.status == 200 else {}
            owner, name = entry.get("owned_by"), entry.get("id")
            return owner if isinstance(owner, str) else None, name if isinstance(name, str) else None
        except Exception:  # whatever it is, the question itself will tell
            return None, None

    async def _ask(self, facts: _Introduction, texts: Sequence[ServedText]) -> list[float | InfrastructureError]:
        """Return the scores in the answer of one request; where no route is set, the first that the server has."""
        routes = (self._route,) if self._route is not None else ROUTES[facts.kind]
        for route in routes:
            if facts.kind == "sglang" and route == "classify" and texts[0].ids is None and not self._settings.plain:
                raise _final(
                    f"{self._settings.server.base_url}: SGLang takes tokens here: give tokenizer= the model's folder"
                )
            request = request_of(
                facts.kind, route, facts.model, texts, plain=self._settings.plain,
                label_token_ids=self._settings.label_token_ids,
            )  # fmt: skip
            try:
                scores = await self._send(request, facts, len(texts))
            except JudgeError as error:
                is_missing = error.status in _NO_ROUTE or _OF_THE_SERVER.search(error.message) is not None
                if is_missing and route != routes[-1]:
                    continue
                raise self._blamed(error, request, len(texts)) from None
            self._route = route
            return scores
        raise AssertionError("a server has routes")

    async def _send(
        self, request: ServedRequest, facts: _Introduction, count: int
    ) -> list[float | InfrastructureError]:
        """Return the scores of a request, which is tried again where that may help; raise JudgeError or an answer's."""
        server, retry, tries = self._settings.server, self._settings.retry, 0
        addressee = Addressee(server.base_url, facts.model or "", server.key())
        start = asyncio.get_running_loop().time()
        while True:
            tries += 1
            async with self._turns:
                try:
                    answer = await send(server, request.path, request.body)
                    error = addressee.refusal(answer) if answer.status >= 300 else None
                except JudgeError as raised:
                    error = raised
                except Exception as raised:
                    error = translate(raised, addressee)
            if error is None:
                try:
                    scores = scores_of(answer.content, count)
                except UnreadableAnswerError as reason:
                    raise _final(f"{server.base_url}/{request.path} {reason}; no score is taken from it") from None
                return [_named(score, f"{server.base_url}/{request.path}") for score in scores]
            wait_s = retry.wait_s(tries, error.retry_after_s)
            left_s = self._settings.deadline_s - (asyncio.get_running_loop().time() - start)
            if retry.why_no_more(error, tries, wait_s, left_s) is not None:
                raise error.with_traceback(None)
            await asyncio.sleep(wait_s)

    def _blamed(self, error: JudgeError, request: ServedRequest, count: int) -> RewardError:
        """Return whose fault a refusal is: the text's where its status says so, else nobody's that can be scored."""
        message = error.message.rpartition("; ")[0] or error.message
        is_servers = _OF_THE_SERVER.search(error.message) is not None
        if not is_servers and (error.fault in _FAULTS_OF_TEXT or error.status in _OF_THE_TEXT):
            return DataError(f"{message} (asked at /{request.path} for {count} {'text' if count == 1 else 'texts'})")
        fix = "check that the server runs, and base_url"
        if is_servers:
            fix = "name a route that the model has, give tokenizer= its folder, or set text_form='plain'"
        elif error.status in _NO_ROUTE:
            fix = "name the server's route, and the model as the server knows it"
        elif error.status in (401, 403):
            fix = f"put the server's key into the environment variable {self._settings.server.key_env}"
        return _final(f"{message}; {fix}")


def _named(score: float | InfrastructureError, address: str) -> float | InfrastructureError:
    """Return a score, or its error with the address that it comes from."""
    return score if isinstance(score, float) else _final(f"{address} {score}")


def _final(message: str) -> InfrastructureError:
    """Return an error that a runtime does not try again, for its tries are over or would help nothing."""
    error = InfrastructureError(message)
    error.retry = False
    return error
