"""What is told of a model, a key and an address when a runtime sets a judge up."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any

import pytest

from builtin_rewards.endpoint import client as verifying
from builtin_rewards.judge import JudgeSetupError, JudgeUnavailableError, LLMJudge, RetryPolicy
from rewardkit import Runtime
from rewardkit.testing import FakeJudge

Serve = Callable[..., Any]


@pytest.fixture(autouse=True)
def forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """A port may be another server's in the next test, and a busy machine's list may take its time."""
    verifying.verify.cache_clear()
    monkeypatch.setattr(verifying, "_VERIFY_S", 60.0)


def make(url: str, model: str = "gpt-x", **settings: Any) -> None:
    """Sets up a judge on a server, as a runtime does."""
    LLMJudge(model, template="helpfulness", base_url=url, **settings).set_up()


def listing(faults: ModuleType, *names: str) -> Callable[[Mapping[str, str]], Any]:
    """Answers with a list of models."""
    return lambda headers: faults.completion({"object": "list", "data": [{"id": name} for name in names]})


@pytest.mark.parametrize("listed", ["gpt-x", "gpt-x:latest", "gpt-x-2026-03-01", "openai/gpt-x"])
def test_a_model_that_the_server_has_is_taken(serve: Serve, faults: ModuleType, canary: str, listed: str) -> None:
    """Itself, a tag or a date of it, or it in a folder; no judgement is asked for that."""
    server = serve([faults.ok()], models=listing(faults, "other", listed))
    make(server.url)
    assert [] == server.seen


def test_a_model_that_the_server_has_not_is_refused(serve: Serve, faults: ModuleType, canary: str) -> None:
    """The error names those that are like it, and how to leave the check out."""
    server = serve([faults.ok()], models=listing(faults, "gpt-y", "tiny"))
    with pytest.raises(JudgeSetupError, match=r"has no model 'gpt-x'; did you mean 'gpt-y'\?; verify=False leaves"):
        make(server.url)
    make(server.url, verify=False)


def test_a_key_that_the_server_refuses_is_told(serve: Serve, faults: ModuleType, canary: str) -> None:
    """By the variable's name, and not by the key, which the server was sent."""
    sent: list[str] = []

    def models(headers: Mapping[str, str]) -> Any:
        sent.append(headers["authorization"])
        return faults.status(401)

    with pytest.raises(JudgeSetupError, match="refuses the key in the environment variable OPENAI_API_KEY") as caught:
        make(serve([faults.ok()], models=models).url)
    assert [f"Bearer {canary}"] == sent
    assert canary not in f"{caught.value!r} {caught.value.__context__!r} {vars(caught.value)}"


def test_a_list_is_asked_for_again_after_a_429(serve: Serve, faults: ModuleType, canary: str) -> None:
    """As long as there is time; then what it says counts."""
    answers = iter([faults.too_many("0.05"), faults.too_many(), listing(faults, "gpt-y")({})])
    with pytest.raises(JudgeSetupError, match="has no model 'gpt-x'"):
        make(serve([faults.ok()], models=lambda headers: next(answers)).url)


def test_a_server_that_says_429_for_longer_proves_nothing(
    serve: Serve, faults: ModuleType, canary: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The check ends in its own time, whatever the server asks to wait."""
    monkeypatch.setattr(verifying, "_VERIFY_S", 1.0)
    make(serve([faults.ok()], models=lambda headers: faults.too_many("600")).url)


@pytest.mark.parametrize(
    "action",
    [
        lambda faults: faults.status(404),
        lambda faults: faults.status(500),
        lambda faults: faults.html(),
        lambda faults: faults.truncated_json(),
        lambda faults: faults.completion({"data": None}),
        lambda faults: faults.completion({"data": [{"name": "x"}, 3]}),
    ],
    ids=["none", "broken", "page", "cut", "null", "odd"],
)
def test_a_server_without_a_list_proves_nothing(serve: Serve, faults: ModuleType, canary: str, action: Any) -> None:
    """Faults of a server are for tries and fallbacks to bear."""
    make(serve([faults.ok()], models=lambda headers: action(faults)).url)


def in_turn(*actions: Any) -> Callable[[Mapping[str, str]], Any]:
    """Answers each time with the next one."""
    rest = iter(actions)
    return lambda headers: next(rest)


def test_an_address_that_lacks_its_v1_is_refused(serve: Serve, faults: ModuleType, canary: str) -> None:
    """Nothing is served at it, and there are models one step further; the error says what to write."""
    models = in_turn(faults.status(404), listing(faults, "gpt-x")({}))
    server = serve([faults.status(404)], models=models)
    wrong = server.url.removesuffix("/v1")
    with pytest.raises(JudgeSetupError, match=f"base_url='{wrong}': no API .* set it to '{wrong}/v1'; verify=False"):
        make(wrong)
    assert [("/chat/completions", {})] == [(seen.path, seen.body) for seen in server.seen]


@pytest.mark.parametrize("lists", [False, True])
def test_an_address_without_v1_that_may_be_right_is_taken(
    serve: Serve, faults: ModuleType, canary: str, lists: bool
) -> None:
    """Without a list further on nothing tells that it is wrong; with one the judgements may be at both addresses."""
    second = listing(faults, "gpt-x")({}) if lists else faults.status(404)
    server = serve([faults.status(400 if lists else 404)], models=in_turn(faults.status(404), second))
    make(server.url.removesuffix("/v1"))
    assert int(lists) == len(server.seen)


def test_a_list_that_dribbles_is_not_waited_for(
    serve: Serve, faults: ModuleType, canary: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its bytes keep coming, so no timeout of the library's ever fires; read to its end it would refuse the model."""
    monkeypatch.setattr(verifying, "_VERIFY_S", 0.2)
    listed = listing(faults, "other")
    make(serve([faults.ok()], models=lambda headers: faults.replace(listed(headers), interval_s=0.01)).url)


def test_a_server_that_is_not_there_proves_nothing(canary: str) -> None:
    """It may come later."""
    make("http://127.0.0.1:9/v1")


def test_settings_ask_nothing_and_a_runtime_does(serve: Serve, faults: ModuleType, canary: str) -> None:
    """A judge is made without its server; a runtime says what is wrong before a worker starts, also of a link."""
    asked: list[str] = []

    def models(headers: Mapping[str, str]) -> Any:
        asked.append("models")
        return listing(faults, "other")(headers)

    server = serve([faults.ok()], models=models)
    made = LLMJudge("gpt-x", template="helpfulness", base_url=server.url)
    chain = LLMJudge("any", template="helpfulness", client=FakeJudge("4"), name="first").fallback(made)
    assert [] == asked
    for one in (made, chain, 0.5 * made):
        with pytest.raises(JudgeSetupError, match="has no model 'gpt-x'"):
            Runtime([one])
    with pytest.raises(JudgeSetupError, match="has no model 'gpt-x'"):
        Runtime([made], lane="inline")


def test_calibrating_sets_a_judge_up(serve: Serve, faults: ModuleType, canary: str) -> None:
    """What is wrong is told before anything is asked, and not as rows that failed."""
    server = serve([faults.ok()], models=listing(faults, "other"))
    made = LLMJudge("gpt-x", template="helpfulness", base_url=server.url)
    rows = [{"prompt": "p", "completion": text, "label": text == "good"} for text in ("good", "bad")]
    with pytest.raises(JudgeSetupError, match="has no model 'gpt-x'"):
        made.calibrate(rows)
    assert [] == server.seen


def test_it_is_asked_from_a_running_event_loop_too(serve: Serve, faults: ModuleType, canary: str) -> None:
    """As in a notebook."""

    async def within() -> None:
        make(serve([faults.ok()], models=listing(faults, "other")).url)

    with pytest.raises(JudgeSetupError, match="has no model 'gpt-x'"):
        asyncio.run(within())


@pytest.mark.parametrize("way", ["plain", "awaited", "in a chain"])
def test_the_first_call_sets_a_judge_up(serve: Serve, faults: ModuleType, canary: str, way: str) -> None:
    """Of eight calls one asks for the models; the wrong one is told before a judgement is asked for."""
    asked: list[str] = []

    def models(headers: Mapping[str, str]) -> Any:
        asked.append("models")
        return listing(faults, "gpt-x")(headers)

    server = serve([faults.ok('{"ok": {"reason": "so", "score": 5}}')], models=models)
    right, wrong = (LLMJudge(name, ["ok"], base_url=server.url) for name in ("gpt-x", "gpt-z"))

    async def together(judge: Any) -> list[Any]:
        return await asyncio.gather(*(judge(prompt="?", completion=str(at)) for at in range(8)))

    def call(judge: LLMJudge) -> Any:
        made = judge.fallback(right.with_options(name="other")) if way == "in a chain" else judge
        return made(prompt="?", completion="4") if way == "plain" else asyncio.run(together(made))

    with pytest.raises(JudgeSetupError, match="has no model 'gpt-z'"):
        call(wrong)
    assert [] == server.seen
    asked.clear()
    call(right)
    call(right)
    assert (["models"], 2 if way == "plain" else 16) == (asked, len(server.seen))


def test_a_call_without_a_server_is_no_error_of_its_settings(canary: str) -> None:
    """Nobody is there who could say no; the judgement's own failure is told."""
    judge = LLMJudge("gpt-x", ["ok"], base_url="http://127.0.0.1:1/v1", retry=RetryPolicy(attempts=1))
    with pytest.raises(JudgeUnavailableError):
        judge(prompt="?", completion="4")
