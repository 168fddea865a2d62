"""Runs in an environment with OpenEnv and Atropos: their own code calls our rewards, and what it got is printed.

Real are OpenEnv's rubrics, actions, observations and environment, and Atropos' reward functions and their registry. Not
there: what serves an environment over HTTP.
"""

from __future__ import annotations

import asyncio
import importlib.util
import json
import logging
import sys
from types import ModuleType
from typing import Any

ROOT = importlib.util.find_spec("openenv").submodule_search_locations[0]  # type: ignore[union-attr, index]
for part in ("core", "core.env_server"):  # without the modules that serve
    module = ModuleType(f"openenv.{part}")
    module.__path__ = [f"{ROOT}/{part.replace('.', '/')}"]
    sys.modules[module.__name__] = module

from atroposlib.envs.reward_fns import CombinedReward, registry  # noqa: E402
from fault_mix import FATES, REWARDS  # noqa: E402
from openenv.core.env_server.interfaces import Environment  # noqa: E402
from openenv.core.env_server.types import Action, Observation, State  # noqa: E402
from openenv.core.rubrics import WeightedSum  # noqa: E402

from rewardkit import RewardError  # noqa: E402
from trainer_adapter.atropos import atropos_reward  # noqa: E402
from trainer_adapter.openenv import openenv_async_rubric, openenv_rubric  # noqa: E402
from trainer_adapter.trainer_rewards import close_all  # noqa: E402


class Say(Action):
    """What an agent does."""

    message: str


class Asked(Observation):
    """What it sees."""

    answer: str = "4"


class Sums(Environment):
    """An environment of one step."""

    def reset(self, *arguments: Any, **options: Any) -> Asked:
        self._reset_rubric()
        return Asked()

    def step(self, action: Say, *arguments: Any, **options: Any) -> Asked:
        seen = Asked(done=True, metadata={"prompt": "2+2="})
        seen.reward = self._apply_rubric(action, seen)
        return seen

    async def step_async(self, action: Say, *arguments: Any, **options: Any) -> Asked:
        seen = Asked(done=True)
        seen.reward = await self._apply_rubric_async(action, seen)
        return seen

    @property
    def state(self) -> State:
        return State()


def tried(call: Any) -> Any:
    """Return what a call returns, or its error in words."""
    try:
        return call()
    except RewardError as wrong:
        return f"{type(wrong).__name__}: {wrong}"


def openenv(texts: list[str]) -> dict[str, Any]:
    """Return what environments with our rubrics give, by each way."""
    strict, zero = Sums(rubric=openenv_rubric(REWARDS)), Sums(rubric=openenv_rubric(REWARDS, on_unknown="zero"))
    later = Sums(rubric=openenv_async_rubric(REWARDS, on_unknown="zero"))
    mixed = Sums(rubric=WeightedSum([openenv_rubric(REWARDS), openenv_rubric("faulty_rewards:asked")], [0.5, 0.5]))

    async def all_at_once() -> list[Any]:
        seen = await asyncio.gather(*(later.step_async(Say(message=text)) for text in texts))
        return [observation.reward for observation in seen]

    parts = []
    for text in texts:
        zero.step(Say(message=text))
        parts.append({name: child.last_score for name, child in zero.rubric.named_rubrics()})
    return {
        "strict": [tried(lambda text=text: strict.step(Say(message=text)).reward) for text in texts],
        "zero": [zero.step(Say(message=text)).reward for text in texts],
        "async": asyncio.run(all_at_once()),
        "mixed": mixed.step(Say(message="4")).reward,
        "parts": parts,
    }


def atropos(texts: list[str]) -> dict[str, Any]:
    """Return what Atropos' reward functions give."""
    strict = atropos_reward(REWARDS, weight=0.5)
    zero = atropos_reward(REWARDS, on_unknown="zero")
    ranked = atropos_reward("faulty_rewards:rank,faulty_rewards:asked")
    registry.register_function("sums", lambda completions, **columns: zero(completions, **columns))
    combined = CombinedReward(["sums"])
    messages = [[{"role": "assistant", "content": text}] for text in texts]
    return {
        "name": strict.name,
        "strict": tried(lambda: strict(texts, answer="4")),
        "weighted": strict(["4", "5"], answer=["4", "5"]),
        "zero": zero(texts, answer=["4"] * len(texts)),
        "messages": zero(messages, answer="4"),
        "choice": zero([{"message": messages[0][0]}], answer="4"),
        "combined": combined(texts, answer="4"),
        "ranked": ranked(["aa", "a"], prompt=[{"role": "user", "content": "2+2="}, {"role": "user", "content": "1+1"}]),
    }


def main(folder: str) -> None:
    logging.disable(logging.ERROR)
    texts = list(FATES)
    print(json.dumps({"openenv": openenv(texts), "atropos": atropos(texts)}))
    close_all()


if __name__ == "__main__":
    main(**json.loads(sys.argv[1]))
