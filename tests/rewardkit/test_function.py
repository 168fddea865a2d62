"""What a reward reads of a function that is an object, and what it takes where the function is a plain one."""

from __future__ import annotations

import inspect
import subprocess
import sys
from collections.abc import Mapping
from typing import Any

import pytest

from rewardkit import Kind, Reward, RewardDefinitionError, RewardOptions, Runtime, reward, step_reward
from rewardkit.function import RewardFunction, Versioned, described
from rewardkit.versions.fingerprint import Fingerprint


@reward
def asked(completion: str) -> float:
    return float(len(completion))


class Doubled(RewardFunction, Versioned):
    """Scores by another reward, and tells its annotations, its version and what it needs."""

    set_ups = 0

    def __init__(self, version: str) -> None:
        self._version = version
        self.__signature__ = inspect.Signature([inspect.Parameter("completion", inspect.Parameter.KEYWORD_ONLY)])

    @property
    def version(self) -> str:
        return self._version

    @property
    def hints(self) -> Mapping[str, Any]:
        return {"completion": str}

    @property
    def inner(self) -> tuple[Any, ...]:
        return (asked,)

    def set_up(self) -> None:
        Doubled.set_ups += 1

    def __call__(self, completion: str) -> float:
        return 2 * asked(completion=completion)


def _made(version: str = "1") -> Reward[..., Any]:
    return Reward(Doubled(version), Kind.SINGLE, RewardOptions("doubled"))


def test_a_function_that_is_an_object_tells_of_itself() -> None:
    """Its annotations, the rewards that it calls, what it needs once a runtime, and its version count."""
    made = _made()
    assert ({"completion": str}, (asked,)) == (made.spec.hints, made.inner)
    assert 4.0 == made(completion=[{"role": "assistant", "content": "ab"}])
    with Runtime([made], lane="inline"):
        assert 1 == Doubled.set_ups
    assert made.version == _made("1").version != _made("2").version


def test_a_plain_function_has_the_defaults() -> None:
    """Whatever attributes of these names it has: only what derives from RewardFunction is asked."""

    def plain(completion: str) -> float:
        return 1.0

    plain.inner, plain.source_text = (asked,), "def f(): ..."  # type: ignore[attr-defined]
    made = reward(plain)
    assert (None, (), None) == (described(plain).hints, made.inner, described(plain).source_text)
    assert not made.spec.jailed
    with pytest.raises(RewardDefinitionError, match="reward 'plain' has no client: it is not a judge"):
        made.with_client(object())


def test_a_value_that_states_its_version_counts_by_it() -> None:
    """Also inside a container, and each time that it is met."""
    one, other = Doubled("1"), Doubled("2")
    assert Fingerprint([one, one]).digits == Fingerprint([Doubled("1"), one]).digits
    assert Fingerprint([one]).digits != Fingerprint([other]).digits


def test_a_missing_argument_is_named_by_every_reward() -> None:
    """A plain one, one of steps, and one of steps by a reward: before anything is called."""
    for made in (asked, step_reward(asked, name="asked")):
        with pytest.raises(TypeError, match=r"^asked\(\) lacks 'completion'; it takes "):
            made(prompt="2+2=") if made is not asked else made()
        with pytest.raises(TypeError, match="'completions' was given: did you mean 'completion'"):
            made(completions="4", prompt="2+2=")


def test_step_rewards_are_loaded_when_they_are_asked_for() -> None:
    """They are public names like all others, and importing rewardkit does not load their modules."""
    probe = (
        "import sys, rewardkit\n"
        "assert not [one for one in sys.modules if one.startswith('rewardkit.step')]\n"
        "assert {'StepReward', 'step_reward'} <= set(dir(rewardkit))\n"
        "from rewardkit import *\n"
        "assert callable(step_reward) and isinstance(StepReward, type)\n"
        "assert not hasattr(rewardkit, 'StepRewards')\n"
    )
    subprocess.run([sys.executable, "-c", probe], check=True)
