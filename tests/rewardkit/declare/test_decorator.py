"""Declaring rewards: signatures, options, plain calls, pickles, versions."""

from __future__ import annotations

import asyncio
import functools
import os
import pickle
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from rewardkit import CoercionError, Reward, RewardDefinitionError, RewardError, Score, clip, group_reward, reward

if TYPE_CHECKING:
    from decimal import Decimal


@reward
def exact(completion: str, answer: str) -> float:
    """Whether the completion is the answer."""
    return float(completion == answer)


@dataclass
class Case:
    given: int
    wanted: list[str]


def test_a_reward_is_still_a_plain_function() -> None:
    """It has the function's name and docstring, takes arguments by place or name, and gives what it gives."""
    assert ("exact", "Whether the completion is the answer.") == (exact.__name__, exact.__doc__)
    assert 1.0 == exact("4", "4") == exact(completion="4", answer="4") == exact.function("4", "4")
    with pytest.raises(TypeError, match="answer"):
        exact(completion="4")
    with pytest.raises(TypeError, match="unexpected keyword argument 'anser'"):
        exact(completion="4", answer="4", anser="4")
    with pytest.raises(TypeError, match="multiple values for argument 'completion'"):
        exact("4", completion="4")


def test_a_plain_call_coerces_columns() -> None:
    """The same text that a dataset holds works in a unit test, and a wrong one is named."""

    @reward
    def sees(completion: str, case: Case, flag: bool, rate: float = 0.5, **rest: Any) -> Any:
        return case, flag, rate, rest

    seen = sees(completion="c", case='{"given": 1, "wanted": ["a"]}', flag="False", other="x")
    assert (Case(1, ["a"]), False, 0.5, {"other": "x"}) == seen
    with pytest.raises(CoercionError, match="column 'flag': expected bool, got 'perhaps'"):
        sees(completion="c", case=Case(1, []), flag="perhaps")


def test_a_plain_call_turns_a_conversation_into_text() -> None:
    """Messages given for a str parameter become the text that a run would give."""
    assert 1.0 == exact(completion=[{"role": "assistant", "content": "4"}], answer="4")


def test_a_call_with_a_whole_batch_says_what_to_hand_a_trainer() -> None:
    """A trainer that was handed the reward itself is told of the adapter, also where **columns would take its lists."""

    @group_reward
    def brief(completions: list[str], **columns: Any) -> list[float]:
        return [1.0] * len(completions)

    @reward
    def any_row(completion: str, **columns: Any) -> float:
        return 1.0

    for one in (exact, brief, any_row):
        with pytest.raises(TypeError, match=rf"reward_funcs=RewardAdapter\(\[{one.name}\]\).reward_funcs"):
            one(prompts=["p", "p"], completions=["a", "b"], completion_ids=[[1], [2]], answer=["4", "4"])


def test_an_async_reward_is_awaited() -> None:
    """Calling it gives a coroutine, as the function would."""

    @reward
    async def waits(completion: str) -> float:
        return 1.0

    assert waits.spec.is_async
    assert 1.0 == asyncio.run(waits(completion="c"))  # type: ignore[arg-type]


def test_a_reward_pickles() -> None:
    """By reference or by value, the copy has the same name, options and version, and scores alike."""
    import cloudpickle

    again = pickle.loads(cloudpickle.dumps(exact))
    assert (exact.name, exact.options, exact.version) == (again.name, again.options, again.version)
    assert 1.0 == again(completion="4", answer="4")


class Callable_:
    def __init__(self, bonus: float) -> None:
        self.bonus = bonus

    def __call__(self, completion: str, answer: int) -> float:
        return answer + self.bonus


def _of(bonus: float, completion: str) -> float:
    return bonus


def test_callable_objects_and_partials_are_rewards() -> None:
    """Their names come from the class or the inner function, their columns from their signatures."""
    made = reward(Callable_(0.5))
    assert ("Callable_", 4.5) == (made.name, made(completion="", answer="4"))
    part = reward(functools.partial(_of, 2.0))
    assert ("_of", 2.0) == (part.name, part(completion=""))


@dataclass(frozen=True)
class Scorer:
    """A reward's function with settings."""

    weights: dict[str, float]
    pattern: re.Pattern[str]
    inner: Reward[..., Any]

    def __call__(self, completion: str) -> float:
        return 1.0


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"weights": {"a": 1.0}}, {"weights": {"a": 2.0}}),
        ({"pattern": re.compile("a")}, {"pattern": re.compile("a", re.IGNORECASE)}),
        ({"inner": exact}, {"inner": exact.with_options(timeout_s=5)}),
    ],
    ids=["a mapping", "a pattern", "a reward"],
)
def test_the_version_follows_settings_that_are_objects(one: dict[str, Any], other: dict[str, Any]) -> None:
    """A called object's fields count, and so do objects that a function closes over, the same in a new process."""

    def make(settings: dict[str, Any]) -> tuple[str, str]:
        usual = {"weights": {}, "pattern": re.compile("x"), "inner": exact}
        scorer = Scorer(**{**usual, **settings})

        def closed(completion: str) -> float:
            return scorer(completion)

        return reward(name="scorer")(scorer).version, reward(closed).version

    assert make(one) == make(dict(one))
    assert all(first != second for first, second in zip(make(one), make(other), strict=True))


def test_the_version_is_the_same_in_another_process() -> None:
    """Sets and objects without a meaning of their own do not make it depend on hash seeds or addresses."""
    text = (
        "from rewardkit import reward\nheld = ({'a', 'b', 'c'}, object(), {'x': len})\n"
        "def make(held):\n    def f(completion: str) -> float:\n        return float(len(held))\n    return f\n"
        "print(reward(make(held)).version)"
    )
    versions = {
        subprocess.run(
            [sys.executable, "-c", text], env={**os.environ, "PYTHONHASHSEED": seed}, check=True, capture_output=True
        ).stdout
        for seed in "123"
    }
    assert 1 == len(versions)


def test_the_version_follows_code_options_and_what_is_closed_over() -> None:
    """The same code has the same version; another constant, option or closed-over value has another."""

    def make(factor: float, **options: Any) -> Reward[..., float]:
        @reward(**options)
        def scaled(completion: str) -> float:
            return factor * len(completion)

        return scaled

    versions = [make(1.0).version, make(2.0).version, make(1.0, timeout_s=5.0).version]
    assert make(1.0).version == versions[0]
    assert 3 == len(set(versions))
    assert all(len(version) == 12 and int(version, 16) >= 0 for version in versions)


def test_with_options_changes_only_what_it_names() -> None:
    """A copy with another deadline; the original keeps its own."""
    longer = exact.with_options(timeout_s=30.0, name="slow exact")
    assert (30.0, "slow exact", 10.0) == (longer.options.timeout_s, longer.name, exact.options.timeout_s)
    with pytest.raises(RewardDefinitionError, match="unknown option 'timeout'"):
        exact.with_options(timeout=3)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"timeout_s": -1}, "timeout_s=-1: expected a number of seconds greater than 0"),
        ({"timeout_s": 0}, "timeout_s=0"),
        ({"timeout_s": "2"}, "timeout_s='2'"),
        ({"timeout_s": float("inf")}, "timeout_s=inf"),
        ({"retries": -1}, "retries=-1: expected a whole number"),
        ({"retries": 1.5}, "retries=1.5"),
        ({"default": float("nan")}, "default=nan: expected a finite number"),
        ({"default": "0"}, "default='0'"),
        ({"score_range": (1, 0)}, r"score_range=\(1, 0\): expected the lowest score first"),
        ({"score_range": 1}, "score_range=1: expected a pair"),
        ({"name": ""}, "name=''"),
        ({"name": "a/b"}, "name='a/b'"),
        ({"cache": "yes"}, "cache='yes'"),
        ({"on_infrastructure": "retry"}, "on_infrastructure='retry': expected 'skip', 'default' or 'raise'"),
        ({"concurrency": 0}, "concurrency=0"),
        ({"timeout": 3}, r"unknown option 'timeout'; did you mean 'timeout_s'\? The options are cache, "),
    ],
    ids=lambda value: str(value)[:40],
)
def test_a_wrong_option_is_named(options: dict[str, Any], words: str) -> None:
    """The message has the option, its value and what was expected."""
    with pytest.raises(RewardDefinitionError, match=words):
        reward(**options)(lambda completion: 1.0)


def _positional(completion: str, /) -> float:
    return 1.0


def _starred(*completions: str) -> float:
    return 1.0


def _plural(completions: list[str]) -> float:
    return 1.0


def _singular(completion: str) -> list[float]:
    return [1.0]


def _typed_elsewhere(completion: str, price: Decimal) -> float:
    return 1.0


def _no_such_column(completion: str, act: Callable[[], None]) -> float:
    return 1.0


@pytest.mark.parametrize(
    ("mark", "function", "words"),
    [
        (reward, _positional, "takes its value by position"),
        (reward, _starred, "takes its value by position"),
        (reward, _plural, "name it 'completion', or declare the reward with @group_reward"),
        (group_reward, _singular, "it takes 'completions', a list"),
        (reward, _typed_elsewhere, "'Decimal', which is not defined where the reward is"),
        (reward, _no_such_column, "parameter 'act'"),
        (reward, 7, "marks functions, not 7"),
        (reward, exact, "is marked already"),
    ],
)
def test_a_signature_that_cannot_be_filled_is_refused(mark: Any, function: Any, words: str) -> None:
    """The mistake is said at decoration, with the remedy."""
    with pytest.raises(RewardDefinitionError, match=words):
        mark(function)


def test_every_mistake_is_a_reward_error() -> None:
    """One except clause catches them all."""
    with pytest.raises(RewardError):
        clip(exact, 1, 0)
    with pytest.raises(RewardError):
        exact * float("nan")
    with pytest.raises(TypeError):
        exact + "1"  # type: ignore[operator]


def test_a_composition_has_a_readable_name() -> None:
    """The formula as it was written, or the name that it was given."""
    other = exact.with_options(name="other")
    assert "0.8*exact + 0.2*other" == (0.8 * exact + 0.2 * other).name
    assert "exact + -1*other" == (exact - other).name
    assert "clip(exact)" == clip(exact, 0, 1).name
    assert "total" == (exact + other).named("total").name
    assert (exact, other) == (0.8 * exact + 0.2 * other + exact).leaves


def test_a_score_holds_what_a_reward_says() -> None:
    """Score compares by value and does not change."""
    assert Score(1.0, reason="r") == Score(1.0, "r", {})
    with pytest.raises(AttributeError):
        Score(1.0).value = 2.0  # type: ignore[misc]
