"""Rewards made of partials, methods and objects, and callables that can be none."""

from __future__ import annotations

import functools
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest

from rewardkit import RewardDefinitionError, RewardFunctionsConfig, Rollout, Runtime, ScoreBatch, group_reward, reward


def weighed(completion: str, answer: int, weight: float = 1.0) -> float:
    """Whether the completion is the answer, by weight."""
    return weight * (int(completion) == answer)


async def weighed_later(completion: str, answer: int, weight: float = 1.0) -> float:
    return weighed(completion, answer, weight)


@functools.wraps(weighed)
def wrapper(*arguments: Any, **keywords: Any) -> float:
    return weighed(*arguments, **keywords)


def with_rest(weight: float, completion: str, answer: int, **rest: int) -> float:
    return weight * (int(completion) == answer) + sum(rest.values())


class Marker:
    def plain(self, completion: str, answer: int, weight: float = 1.0) -> float:
        return weighed(completion, answer, weight)

    twice = functools.partialmethod(plain, weight=2.0)

    def __call__(self, completion: str, answer: int, weight: float = 1.0) -> float:
        return weighed(completion, answer, weight)

    @staticmethod
    def static(completion: str, answer: int) -> float:
        return weighed(completion, answer)

    @classmethod
    def of_class(cls, completion: str, answer: int) -> float:
        return weighed(completion, answer)


class Twice:
    __call__ = functools.partialmethod(Marker.plain, weight=2.0)


CALLABLES: dict[str, tuple[Callable[..., Any], float]] = {
    "a partial": (functools.partial(weighed, weight=2.0), 2.0),
    "a partial of a partial": (functools.partial(functools.partial(weighed, weight=2.0), weight=3.0), 3.0),
    "a partial without arguments": (functools.partial(weighed), 50.0),
    "a partial by place, with **rest": (functools.partial(with_rest, 2.0), 9.0),
    "a partial of an async def": (functools.partial(weighed_later, weight=2.0), 2.0),
    "a partial of a bound method": (functools.partial(Marker().plain, weight=2.0), 2.0),
    "a partial of an unbound method": (functools.partial(Marker.plain, Marker(), weight=2.0), 2.0),
    "a partial of an object": (functools.partial(Marker(), weight=2.0), 2.0),
    "a partial of a wrapper": (functools.partial(wrapper, weight=2.0), 2.0),
    "a partial of a cached function": (functools.partial(functools.lru_cache(weighed), weight=2.0), 2.0),
    "a method made of a partial": (Marker().twice, 2.0),
    "an object whose call is a partial": (Twice(), 2.0),
    "a bound method": (Marker().plain, 50.0),
    "an object": (Marker(), 50.0),
    "a static method": (Marker.static, 1.0),
    "a class method": (Marker.of_class, 1.0),
    "a wrapper": (wrapper, 50.0),
}


ROWS = ({"answer": " 4", "weight": 50}, {"answer": " 4", "weight": "50", "more": "7", "self": "1"})
"""A row for functions of named columns, and one for those that take the rest too."""


@pytest.fixture(scope="module")
def outcomes() -> ScoreBatch:
    """The callables' outcomes on both rows, scored by one runtime."""
    made = {name: reward(name=name)(function) for name, (function, _) in CALLABLES.items()}
    with Runtime(made, workers=1) as runtime:
        return runtime.score([Rollout("2+2=", "4", row) for row in ROWS])


@pytest.mark.parametrize("name", CALLABLES)
def test_it_coerces_as_its_function_does_and_keeps_what_is_set(name: str, outcomes: ScoreBatch) -> None:
    """Text becomes the annotated type, and no column stands in for an argument that a partial has set."""
    function, expected = CALLABLES[name]
    made = reward(name="made")(function)
    assert ("answer",) == made.spec.required_columns
    outcome = outcomes[name][1 if made.spec.rest else 0]
    expected += made.spec.rest is not None and "self" not in made.spec.bound
    assert (expected, None) == (outcome.score, outcome.error)


def test_a_plain_call_of_a_partial_coerces() -> None:
    """A unit test sees what a run does, and another value for what the partial has set is refused, not taken."""
    part = reward(functools.partial(weighed, weight=2.0))
    assert ("weighed", weighed.__doc__) == (part.name, part.__doc__)
    assert 2.0 == part(completion="4", answer="4")
    for weight in (3.0, "3"):
        with pytest.raises(TypeError, match=r"weighed\(\) got a value for 'weight', which functools.partial has set"):
            part(completion="4", answer="4", weight=weight)


def test_a_reserved_name_may_be_set_by_a_partial() -> None:
    """The completion that is set is the one that is scored."""
    made = reward(name="made")(functools.partial(weighed, completion="5"))
    with Runtime([made], lane="inline") as runtime:
        assert [1.0] == runtime.score([Rollout("p", "4", {"answer": "5"})]).scores["made"]


def _generator(completion: str) -> Iterator[float]:
    yield 1.0


async def _async_generator(completion: str) -> AsyncIterator[float]:
    yield 1.0


class _Yields:
    def __call__(self, completion: str) -> Iterator[float]:
        yield 1.0


NO_REWARDS: dict[str, tuple[Any, str]] = {
    "a generator function": (_generator, "'_generator': it is a generator function, as it has 'yield'"),
    "an async generator function": (_async_generator, "it is a generator function, .* use 'return'"),
    "an object that yields": (_Yields(), "'_Yields': it is a generator function"),
    "a partial that yields": (functools.partial(_generator), "'_generator': it is a generator function"),
    "a class": (Marker, r"'Marker': Marker is a class, .* mark an instance: reward\(Marker\(\.\.\.\)\)"),
    "a partial of a class": (functools.partial(Marker), "Marker is a class"),
    "a generic class": (list[int], "list is a class"),
    "a partial of a reward": (functools.partial(reward(weighed)), r"functools.partial\(weighed.function, \.\.\.\)"),
}


@pytest.mark.parametrize(("callable_", "words"), NO_REWARDS.values(), ids=NO_REWARDS)
def test_a_callable_that_can_be_no_reward_is_refused_at_definition(callable_: Any, words: str) -> None:
    """Its name, why, and what to write instead; by every way in."""
    for made in (reward, group_reward, lambda one: Runtime([one]), lambda one: Runtime({"a": one})):
        with pytest.raises(RewardDefinitionError, match=words):
            made(callable_)


def test_a_wrapper_around_a_generator_is_a_reward() -> None:
    """What counts is the code that runs when it is called."""

    @functools.wraps(_generator)
    def first(completion: str) -> float:
        return next(_generator(completion))

    assert 1.0 == reward(first)(completion="")


@pytest.mark.parametrize("thing", [None, 3, [weighed]], ids=["None", "a number", "a list"])
def test_what_is_no_reward_is_named_with_its_place(thing: Any) -> None:
    """A runtime and a configuration say which of their rewards is none; a marker says so too."""
    for make, where in (
        (lambda: Runtime([weighed, thing]), r"rewards\[1\]: "),
        (lambda: Runtime({"a": thing}), "reward 'a': "),
        (lambda: RewardFunctionsConfig({"a": thing}).resolve(), "reward 'a': "),
    ):
        with pytest.raises(RewardDefinitionError, match=f"^{where}.* is not a reward; expected a reward, a function"):
            make()
    for mark in (reward, group_reward):
        with pytest.raises(RewardDefinitionError, match="marks functions, not"):
            mark(thing)
