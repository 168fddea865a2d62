"""One request well sent: settings that check themselves, clients that end with their loop, keys that stay hidden."""

from __future__ import annotations

import asyncio
import functools
import gc
import importlib.util
import pickle
import subprocess
import sys
import threading
import traceback
from collections.abc import Callable
from types import ModuleType
from typing import Any

import cloudpickle
import openai
import pytest

from builtin_rewards.endpoint.backends import NO_KEY, OPENAI_URL, Backend, Server, lazy_client
from builtin_rewards.endpoint.client import ask_once, prepare, verify
from builtin_rewards.endpoint.errors import Fault, JudgeError, JudgeReplyError, JudgeSetupError, JudgeUnavailableError
from builtin_rewards.endpoint.messages import Reply, Request, Usage
from builtin_rewards.judge import LLMJudge, RetryPolicy
from rewardkit import Cause, DataError, RewardTransportError, Rollout, Runtime
from rewardkit.testing import FakeJudge

Serve = Callable[..., Any]


def _request(words: str = "Good?", **options: Any) -> Request:
    return Request("m", ({"role": "user", "content": words},), options)


async def create(backend: Backend, request: Request) -> Reply:
    """Return the reply, or raises the error that tells why there is none."""
    outcome = await ask_once(backend, request)
    if isinstance(outcome, JudgeError):
        raise outcome
    return outcome


@pytest.mark.usefixtures("canary")
def test_a_servers_address_is_tidied() -> None:
    """Addresses that mean the same are equal."""
    one = Server("http://127.0.0.1:1/v1/")

    assert Server("http://127.0.0.1:1/v1") == one
    assert hash(pickle.loads(pickle.dumps(one))) == hash(one)


@pytest.mark.usefixtures("canary")
def test_no_address_is_the_environments_else_openais(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is not named is settled when the server is made, so that copies in other processes mean the same."""
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    assert OPENAI_URL == Server().base_url

    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:1/v1")
    assert "http://127.0.0.1:1/v1" == Server().base_url


BAD = {
    "no scheme": ({"base_url": "localhost:8000/v1"}, "base_url: expected an address such as .*got 'localhost:8000/v1'"),
    "other scheme": ({"base_url": "ftp://host/v1"}, "base_url: expected an address"),
    "empty": ({"base_url": ""}, "base_url: expected an address"),
    "no text": ({"base_url": 7}, "base_url: expected an address .*got int"),
    "a fragment": ({"base_url": "http://host/v1#hidden"}, "base_url: holds .* or a fragment; take it out"),
    "bad port": ({"base_url": "http://host:99999/v1"}, "base_url: expected an address"),
    "space": ({"base_url": "http://host/v 1"}, "base_url: expected an address"),
    "credentials": ({"base_url": "https://me:hidden@host/v1"}, "base_url: holds a user name, password or query"),
    "query": ({"base_url": "https://host/v1?key=hidden"}, "base_url: holds a user name, password or query"),
    "whole call": ({"base_url": "http://host/v1/chat/completions"}, "base_url: .* end it before"),
    "key as name": ({"key_env": "sk-hidden"}, "key_env: expected the name of an environment variable in capitals"),
    "other key as name": ({"key_env": "gsk_hidden"}, "key_env: expected the name"),
    "no key": ({"base_url": "https://host/v1", "key_env": "NO_SUCH_KEY"}, "set the environment variable NO_SUCH_KEY"),
}


@pytest.mark.usefixtures("canary")
@pytest.mark.parametrize(("settings", "words"), BAD.values(), ids=BAD)
def test_settings_that_make_no_sense_are_refused(settings: dict[str, Any], words: str) -> None:
    """The error names the setting and the fix, and shows nothing that may be a secret."""
    with pytest.raises(JudgeSetupError, match=words) as caught:
        LLMJudge("m", template="helpfulness", **settings)

    assert "hidden" not in _everything(caught.value)


@pytest.mark.parametrize("key", ["sk-a b", "sk-a\nb", "sk-\u00e9"], ids=["space", "line", "letter"])
def test_a_key_that_is_no_header_is_refused(key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A key that cannot be sent is told when the judge is made, without the key."""
    monkeypatch.setenv("OPENAI_API_KEY", key)
    with pytest.raises(JudgeSetupError, match="the key in OPENAI_API_KEY holds a space") as caught:
        Server("https://host/v1")

    assert key not in str(caught.value)
    assert repr(key)[1:-1] not in _everything(caught.value)


def test_a_judge_that_was_never_made_can_be_shown() -> None:
    """A traceback with locals shows it, half made."""
    assert "<LLMJudge>" == repr(LLMJudge.__new__(LLMJudge))


HOSTS = {"127.0.0.1": True, "127.9.9.9": True, "[::1]": True, "localhost": True, "a.localhost": True, "10.0.0.1": False}


@pytest.mark.usefixtures("canary")
@pytest.mark.parametrize(("host", "expected"), HOSTS.items(), ids=HOSTS)
def test_loopback_is_known(host: str, expected: bool) -> None:
    """Only this machine counts as loopback."""
    assert expected == Server(f"http://{host}:8000/v1").on_loopback


def test_a_server_on_loopback_needs_no_key(serve: Serve, faults: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where there is no key, a placeholder is sent."""
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    sent: list[str] = []

    def script(number: int, body: Any, headers: Any) -> Any:
        sent.append(headers["authorization"])
        return faults.ok()

    server = serve(script)
    asyncio.run(create(Server(server.url), _request()))

    assert [f"Bearer {NO_KEY}"] == sent


def test_a_key_that_is_gone_at_use_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker without the key in its environment says so, and names the variable."""
    monkeypatch.setenv("JUDGE_KEY", "sk-canary-1234567890")
    server = pickle.loads(pickle.dumps(Server("https://host.invalid/v1", key_env="JUDGE_KEY")))
    monkeypatch.delenv("JUDGE_KEY")

    with pytest.raises(JudgeSetupError, match="set the environment variable JUDGE_KEY"):
        asyncio.run(create(server, _request()))


def test_a_request_is_sent_as_asked(serve: Serve, faults: ModuleType, canary: str) -> None:
    """One request with model, messages, options of any server and key; the reply has what the server said."""
    server = serve([faults.ok("4")])
    asked = _request(temperature=0.5, min_p=0.1, extra_body={"top_k": 1})
    reply = asyncio.run(create(Server(server.url), asked))
    (seen,) = server.seen

    assert Reply("4", "served", usage=Usage(9, 3)) == reply
    assert "/v1/chat/completions" == seen.path
    assert {
        "model": "m",
        "messages": [{"role": "user", "content": "Good?"}],
        "temperature": 0.5,
        "min_p": 0.1,
        "top_k": 1,
    } == seen.body
    assert seen.authorization


def test_a_loop_has_its_own_client(serve: Serve, faults: ModuleType, canary: str) -> None:
    """The same server is asked from one event loop after another, and nothing is left open."""
    server = serve([faults.ok()])
    asked = Server(server.url)
    for _ in range(3):
        asyncio.run(create(asked, _request()))
    gc.collect()  # what was left open warns here, and warnings are errors

    assert 3 == len(server.seen)


def test_a_loop_closed_by_hand_is_forgotten(serve: Serve, faults: ModuleType, canary: str) -> None:
    """A loop that is ended step by step closes its clients too."""
    server = serve([faults.ok()])
    loop = asyncio.new_event_loop()
    loop.run_until_complete(create(Server(server.url), _request()))
    loop.run_until_complete(loop.shutdown_asyncgens())
    loop.close()
    del loop
    gc.collect()
    asyncio.run(create(Server(server.url), _request()))

    assert 2 == len(server.seen)


def test_loops_in_several_threads_share_nothing(serve: Serve, faults: ModuleType, canary: str) -> None:
    """Several loops at once ask the same server, each on its own connections."""
    server = serve([faults.ok(delay_s=0.02)])
    asked, replies = Server(server.url), []
    threads = [
        threading.Thread(target=lambda: replies.append(asyncio.run(create(asked, _request())))) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert 4 == len(replies)


def test_many_requests_are_in_flight_at_once(serve: Serve, faults: ModuleType, canary: str) -> None:
    """No limit of the library's holds 150 requests back, and every reply is of its own request."""
    server = serve(
        lambda number, body, headers: faults.replace(faults.ok(body["messages"][0]["content"]), together=150)
    )

    async def ask_all() -> list[Reply]:
        asked = Server(server.url)
        await prepare(asked)
        return await asyncio.gather(*(create(asked, _request(str(place))) for place in range(150)))

    assert [str(place) for place in range(150)] == [reply.text for reply in asyncio.run(ask_all())]
    assert 150 == server.most_in_flight


@pytest.mark.parametrize("way", ["stall", "dribble"])
def test_a_cancelled_request_leaves_the_client_usable(serve: Serve, faults: ModuleType, canary: str, way: str) -> None:
    """A reply that is no longer waited for blocks nothing after it, and what is left of one half read is not read."""
    server = serve([getattr(faults, way)(), faults.ok("after")])

    async def ask() -> Reply:
        unanswered = asyncio.create_task(create(Server(server.url), _request()))
        await asyncio.to_thread(server.wait_for, 1)
        await asyncio.sleep(0.2)  # for some of the body
        unanswered.cancel()
        await asyncio.wait({unanswered})
        assert unanswered.cancelled()
        return await create(Server(server.url), _request())

    assert "after" == asyncio.run(ask()).text


def test_a_stand_in_is_asked_in_place_of_a_server() -> None:
    """Whatever has an OpenAI client's shape will do; its errors are translated as well."""
    judge = FakeJudge(["4", TimeoutError("silent"), DataError("mine")])
    reply = asyncio.run(create(judge, _request(temperature=0.0)))
    with pytest.raises(JudgeUnavailableError, match="the client FakeJudge, model 'm': TimeoutError: silent") as caught:
        asyncio.run(create(judge, _request()))
    with pytest.raises(DataError, match="mine"):
        asyncio.run(create(judge, _request()))

    assert ("4", {"temperature": 0.0}) == (reply.text, judge.asked[0].options)
    assert Fault.CONNECTION is caught.value.fault


def _everything(error: BaseException) -> str:
    """Return all that may be shown of an error: also the locals of its frames, those of this file aside."""
    trace = traceback.TracebackException.from_exception(error, capture_locals=True)
    trace.stack = traceback.StackSummary.from_list([frame for frame in trace.stack if frame.filename != __file__])
    return "\n".join([str(error), repr(error), *trace.format(), str(vars(error)), repr(pickle.dumps(error))])


def test_errors_pickle_with_what_they_say(serve: Serve, faults: ModuleType, canary: str) -> None:
    """An error that crosses processes keeps status, wait and count."""
    server = serve([faults.too_many("7")])
    with pytest.raises(JudgeUnavailableError) as caught:
        asyncio.run(create(Server(server.url), _request()))
    copy = pickle.loads(pickle.dumps(caught.value))

    assert (429, 7.0, 1, Fault.RATE_LIMIT) == (copy.status, copy.retry_after_s, copy.requests, copy.fault)
    assert not isinstance(copy, JudgeReplyError)


def test_importing_loads_no_client_library() -> None:
    """All modules of judges are quick to import: what asks, and numpy, comes with the function that needs it."""
    code = (
        "import sys, builtin_rewards.judge, builtin_rewards.judge.audit.rounds;"
        "print([name for name in ('openai', 'httpx2', 'tenacity', 'numpy') if name in sys.modules])"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=300)

    assert "[]" == shown.stdout.strip()


def test_a_request_is_in_no_log_of_a_call(
    serve: Serve, faults: ModuleType, canary: str, caplog: pytest.LogCaptureFixture
) -> None:
    """What a call logs is its author's; a line for each request would bury it."""
    with caplog.at_level("INFO"):
        asyncio.run(create(Server(serve([faults.ok()]).url), _request()))
    assert [] == caplog.records


def test_a_missing_extra_is_told_when_the_server_is_named(canary: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not by the first judgement of a run."""
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(JudgeSetupError, match=r"needs openai: pip install 'openai>=3.0'"):
        Server("http://127.0.0.1:1/v1")


def test_a_proxy_of_the_environment_is_used_for_others_than_loopback(
    serve: Serve, faults: ModuleType, canary: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As other programs do; what is on this machine is asked directly."""
    proxy, server = serve([faults.ok("by proxy")]), serve([faults.ok("directly")])
    monkeypatch.setenv("http_proxy", proxy.url.removesuffix("/v1"))
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)
    assert "by proxy" == asyncio.run(create(Server("http://judge.invalid/v1"), _request())).text
    assert "directly" == asyncio.run(create(Server(server.url), _request())).text


@pytest.fixture
def no_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    """An environment that names no proxy and bypasses none."""
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


@pytest.mark.usefixtures("no_proxies", "canary")
@pytest.mark.parametrize("user", ["", "user:hunter2@"])
def test_a_proxy_without_its_scheme_is_used(
    serve: Serve, faults: ModuleType, monkeypatch: pytest.MonkeyPatch, user: str
) -> None:
    """Other programs take it as http."""
    proxy = serve([faults.ok("by proxy")])
    monkeypatch.setenv("http_proxy", user + proxy.url.removesuffix("/v1").removeprefix("http://"))
    assert "by proxy" == asyncio.run(create(Server("http://judge.invalid/v1"), _request())).text


PROXIES = ["socks9://user:hunter2@proxy:1", "http://user:hunter2@proxy:port", "http://user:hunter2@[::1"]


@pytest.mark.usefixtures("no_proxies", "canary")
@pytest.mark.parametrize("proxy", PROXIES)
def test_a_proxy_that_cannot_be_used_is_told_without_its_password(monkeypatch: pytest.MonkeyPatch, proxy: str) -> None:
    """When a judge is set up by its variables' names; a call fails for the machine's sake."""
    monkeypatch.setenv("all_proxy", proxy)
    server = Server("http://judge.invalid/v1")
    with pytest.raises(JudgeSetupError, match="http_proxy, https_proxy or all_proxy") as caught:
        verify(server, "m")
    assert "hunter2" not in _everything(caught.value)
    judge = LLMJudge("m", template="helpfulness", base_url=server.base_url, verify=False)
    with Runtime([judge], lane="inline", max_infrastructure_rate=1.0) as runtime:
        (outcome,) = runtime.score([Rollout("p", "It is 4.")])["judge"]
    assert Cause.INFRASTRUCTURE is outcome.cause
    assert "hunter2" not in repr(outcome)


@pytest.mark.usefixtures("no_proxies", "canary")
def test_a_socks_proxy_without_its_package_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error names what to install."""
    monkeypatch.setitem(sys.modules, "socksio", None)
    monkeypatch.setenv("ALL_PROXY", "socks5://127.0.0.1:1")
    with pytest.raises(JudgeSetupError, match="install socksio"):
        asyncio.run(prepare(Server("http://judge.invalid/v1")))


def test_openais_own_client_can_be_asked(serve: Serve, faults: ModuleType, canary: str) -> None:
    """Its completions are read and its errors translated."""
    server = serve([faults.ok("4"), faults.too_many("7")])

    async def ask() -> Reply:
        async with openai.AsyncOpenAI(base_url=server.url, max_retries=0) as client:
            reply = await create(client, _request(temperature=0.0))
            with pytest.raises(JudgeUnavailableError) as caught:
                await create(client, _request())
            assert (Fault.RATE_LIMIT, 7.0, 429) == (caught.value.fault, caught.value.retry_after_s, caught.value.status)
            return reply

    assert Reply("4", "served", usage=Usage(9, 3)) == asyncio.run(ask())


VERDICT = '{"good": {"reason": "r", "score": 5}}'
VERSION = "2024-10-21"


def _azure(url: str) -> openai.AsyncAzureOpenAI:
    return openai.AsyncAzureOpenAI(
        azure_endpoint=url.removesuffix("/v1"), api_version=VERSION, default_headers={"X-Team": "evals"}
    )


CLIENTS: dict[str, Callable[[str], Any]] = {
    "Azure's": _azure,
    "OpenAI's": lambda url: openai.AsyncOpenAI(base_url=url, default_query={"v": "1"}, default_headers={"X-Team": "a"}),
    "a partial": lambda url: functools.partial(
        openai.AsyncAzureOpenAI, azure_endpoint=url.removesuffix("/v1"), api_version=VERSION
    ),
    "a function": lambda url: functools.partial(_made_by_hand, url),
}


def _made_by_hand(url: str) -> openai.AsyncOpenAI:
    return openai.AsyncOpenAI(base_url=url, http_client=openai.DefaultAsyncHttpxClient(), max_retries=5)


@pytest.fixture
def azure_key(canary: str, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("AZURE_OPENAI_API_KEY", canary)
    return canary


@pytest.mark.cases(3)
@pytest.mark.parametrize("lane", ["inline", "pool"])
@pytest.mark.parametrize("client", CLIENTS)
def test_a_client_is_made_anew_in_each_process(
    serve: Serve, faults: ModuleType, azure_key: str, client: str, lane: str
) -> None:
    """With its own headers and queries, no tries of its own, and no key in what travels."""
    seen: list[dict[str, str]] = []

    def script(number: int, body: Any, headers: Any) -> Any:
        seen.append(headers)
        return faults.status(503) if number == 0 else faults.ok(VERDICT)

    judge = LLMJudge("m", ["good"], client=CLIENTS[client](serve(script).url), retry=RetryPolicy(2, 0.01))
    travels = cloudpickle.dumps(judge)
    assert azure_key.encode() not in travels
    assert azure_key not in repr(vars(pickle.loads(travels).model))
    with Runtime([judge], lane="inline") if lane == "inline" else Runtime([judge], workers=1) as runtime:
        (outcome,) = runtime.score([Rollout("p", "c")])["judge"]
    assert (1.0, 2.0) == (outcome.score, outcome.metrics["requests"])
    assert 2 == len(seen)
    if client in ("Azure's", "a partial"):
        assert f"/openai/deployments/m/chat/completions?api-version={VERSION}" == seen[0][":path"]
        assert azure_key == seen[0]["api-key"]
    if client == "OpenAI's":
        assert (["/v1/chat/completions?v=1"] * 2, "a") == ([one[":path"] for one in seen], seen[0]["x-team"])


def test_a_client_whose_key_no_variable_holds_stays_in_its_process(serve: Serve, faults: ModuleType) -> None:
    """It is asked as it is, and a worker is refused it."""
    client = openai.AsyncOpenAI(base_url=serve([faults.ok(VERDICT)]).url, api_key="sk-of-nobodys-environment")
    judge = LLMJudge("m", ["good"], client=client)

    async def ask() -> Any:
        async with client:
            return (await judge(prompt="p", completion="c")).value

    assert 1.0 == asyncio.run(ask())
    with pytest.raises(RewardTransportError, match="cannot travel to a worker process"):
        Runtime([judge], workers=1)


@pytest.mark.usefixtures("canary")
@pytest.mark.parametrize("setting", ["default_headers", "default_query"])
def test_a_client_with_a_secret_beside_its_key_stays_in_its_process(setting: str) -> None:
    """A header or query that may be a secret neither travels nor stands in what a run records of the judge."""
    secret: Any = {setting: {"subscription-key": "hidden"}}
    client = openai.AsyncOpenAI(base_url="http://127.0.0.1:1/v1", **secret)
    judge = LLMJudge("m", ["good"], client=client)
    assert "hidden" not in judge.version
    with pytest.raises(RewardTransportError, match="cannot travel to a worker process"):
        Runtime([judge], workers=1)


@pytest.mark.usefixtures("canary")
@pytest.mark.parametrize("count", [1, 16])
def test_an_event_loop_makes_a_client_once(count: int) -> None:
    """However many questions begin together, each of which waits for openai's import."""
    made: list[openai.AsyncOpenAI] = []

    def make() -> openai.AsyncOpenAI:
        made.append(openai.AsyncOpenAI(base_url="http://127.0.0.1:1/v1"))
        return made[-1]

    async def begin() -> None:
        backend = lazy_client(make)
        await asyncio.gather(*(prepare(backend) for _ in range(count)))

    asyncio.run(begin())
    assert 1 == len(made)


@pytest.mark.usefixtures("azure_key")
@pytest.mark.parametrize("client", CLIENTS)
def test_judges_with_one_client_share_its_limits(client: str) -> None:
    """Else two judges of one server would have twice its requests in flight."""
    one = CLIENTS[client]("http://127.0.0.1:1/v1")
    models = [LLMJudge(name, ["good"], client=one).model for name in ("m", "n")]
    other = LLMJudge("m", ["good"], client=CLIENTS[client]("http://127.0.0.1:2/v1")).model
    assert models[0].server_key == models[1].server_key
    assert models[0].server_key != other.server_key


@pytest.mark.usefixtures("canary")
def test_connections_are_no_part_of_what_a_client_is() -> None:
    """Their place in memory would make each run's cache another."""

    def served() -> str:
        http = openai.DefaultAsyncHttpxClient()
        made = functools.partial(openai.AsyncOpenAI, base_url="http://127.0.0.1:1/v1", http_client=http)
        return LLMJudge("m", ["good"], client=made).model.served

    first = served()
    assert "http://127.0.0.1:1/v1" in first
    assert "http_client" not in first
    assert first == served()


def test_a_client_that_cannot_be_made_is_told_without_a_key(monkeypatch: pytest.MonkeyPatch) -> None:
    """When a runtime is made, by its class and what it lacks."""
    for name in ("AZURE_OPENAI_API_KEY", "AZURE_OPENAI_AD_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    client = functools.partial(openai.AsyncAzureOpenAI, azure_endpoint="https://x.invalid", api_version=VERSION)
    with pytest.raises(JudgeSetupError, match="AsyncAzureOpenAI cannot be made in this process: OpenAIError: Missing"):
        Runtime([LLMJudge("m", ["good"], client=client)])


@pytest.mark.usefixtures("canary")
@pytest.mark.parametrize("form", ["a client", "a class", "a partial"])
def test_a_client_that_blocks_is_refused(form: str) -> None:
    """It is paid for each answer, and no answer of it can be awaited."""
    partial = functools.partial(openai.OpenAI, base_url="http://127.0.0.1:1/v1")
    client = {"a client": partial, "a class": lambda: openai.OpenAI, "a partial": lambda: partial}[form]()
    with pytest.raises(JudgeSetupError, match="client: OpenAI blocks and cannot be awaited; take AsyncOpenAI"):
        LLMJudge("m", ["good"], client=client)


@pytest.mark.parametrize("client", [int, functools.partial(dict), lambda: 3], ids=["class", "partial", "function"])
def test_what_makes_no_client_is_told_before_a_question(client: Any) -> None:
    """When a runtime is made, and not as each question's failure."""
    with pytest.raises(JudgeSetupError, match=r"client: .* makes a (int|dict), which has no chat\.completions\.create"):
        Runtime([LLMJudge("m", ["good"], client=client)])


def test_a_function_that_wants_arguments_makes_no_client() -> None:
    """It is called with none, which the error says."""
    with pytest.raises(JudgeSetupError, match=r"cannot be made in this process: TypeError; .* and takes no arguments"):
        Runtime([LLMJudge("m", ["good"], client=lambda url: openai.AsyncOpenAI(base_url=url))])


@pytest.mark.parametrize("setting", ["default_headers", "default_query"])
def test_headers_beside_a_client_are_refused(setting: str) -> None:
    """The client has its own, and would send none of them."""
    with pytest.raises(JudgeSetupError, match=f"{setting}: AsyncOpenAI would not send them; give them to the client"):
        LLMJudge("m", ["good"], client=openai.AsyncOpenAI, **{setting: {"X-Team": "evals"}})


def test_a_partial_that_holds_a_key_is_refused() -> None:
    """It would travel to every worker."""
    for hidden in ({"api_key": "hidden"}, {"default_headers": {"api-key": "hidden"}}):
        client = functools.partial(openai.AsyncOpenAI, base_url="http://127.0.0.1:1/v1", **hidden)
        with pytest.raises(JudgeSetupError, match="would travel with the judge; let its environment") as caught:
            LLMJudge("m", ["good"], client=client)
        assert "hidden" not in str(caught.value)


def test_a_clients_key_is_in_no_error(serve: Serve, faults: ModuleType, azure_key: str) -> None:
    """Though the server says it."""
    server = serve([faults.status(401, f"no {azure_key}, that is {azure_key[:9]}****{azure_key[-4:]}")])
    with pytest.raises(JudgeError) as caught:
        LLMJudge("m", ["good"], client=_azure(server.url), verify=False)(prompt="p", completion="c")
    assert caught.value.refuses_key
    assert azure_key not in _everything(caught.value)
    assert azure_key[-4:] not in str(caught.value)


def test_headers_and_queries_go_with_each_request(serve: Serve, faults: ModuleType, canary: str) -> None:
    """Also the list of models, and a version that stands in the address; a cache tells such servers apart."""
    seen: list[dict[str, str]] = []

    def script(number: int, body: Any, headers: Any) -> Any:
        seen.append(headers)
        return faults.ok(VERDICT)

    def models(headers: Any) -> Any:
        seen.append(headers)
        return faults.completion({"data": []})

    url = serve(script, models=models).url
    more: Any = {"default_headers": {"X-Team": "evals"}, "default_query": {"v": "1"}}
    judge = LLMJudge("m", ["good"], base_url=f"{url}/?api-version={VERSION}", **more)
    with Runtime([judge], lane="inline") as runtime:
        assert [1.0] == runtime.score([Rollout("p", "c")]).scores["judge"]
    paths = [f"/v1/{path}?api-version={VERSION}&v=1" for path in ("models", "chat/completions")]
    assert paths == [headers[":path"] for headers in seen]
    assert {"evals"} == {headers["x-team"] for headers in seen}
    assert judge.model.served.endswith(f"/v1?api-version={VERSION}&v=1")


@pytest.mark.usefixtures("canary")
@pytest.mark.parametrize("setting", ["default_headers", "default_query"])
def test_a_cache_tells_servers_by_their_headers_and_queries(setting: str) -> None:
    """A gateway may choose the model's provider by either, for a judge's settings and for a client's."""
    one: Any = {"base_url": "http://127.0.0.1:1/v1", setting: {"provider": "a"}}
    other = {**one, setting: {"provider": "b"}}
    by_settings = [LLMJudge("m", ["good"], **settings) for settings in (one, other, one)]
    by_client = [LLMJudge("m", ["good"], client=openai.AsyncOpenAI(**settings)) for settings in (one, other, one)]
    for first, second, third in (by_settings, by_client):
        assert first.model.served == third.model.served
        assert first.model.served != second.model.served


SECRETS: dict[str, tuple[dict[str, Any], str]] = {
    "header": ({"default_headers": {"api-key": "hidden"}}, "default_headers: 'api-key' may be a secret"),
    "bearer": ({"default_headers": {"Authorization": "hidden"}}, "default_headers: 'Authorization' may be a secret"),
    "query": ({"default_query": {"subscription-key": "hidden"}}, "default_query: 'subscription-key' may be a secret"),
    "line": (
        {"default_headers": {"X-Team": "hidden\n"}},
        "default_headers: 'X-Team': expected a name and a text of printable ASCII",
    ),
    "no text": ({"default_query": {"v": 1}}, "default_query: 'v': expected a name and a text of printable"),
    "no mapping": ({"default_headers": "hidden"}, "default_headers='hidden': expected headers by name"),
}


@pytest.mark.usefixtures("canary")
@pytest.mark.parametrize(("settings", "words"), SECRETS.values(), ids=SECRETS)
def test_a_header_that_may_be_a_secret_is_refused(settings: dict[str, Any], words: str) -> None:
    """Settings travel, and a key is read from the environment."""
    with pytest.raises(JudgeSetupError, match=words):
        LLMJudge("m", ["good"], base_url="http://127.0.0.1:1/v1", **settings)
