"""Runs in the trainers' environment: skyrl-gym's own code makes the environment that the docs show, and steps it."""

from __future__ import annotations

import json
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import skyrl_gym
from fault_mix import REWARDS, completions
from skyrl_gym.envs.base_text_env import BaseTextEnv
from skyrl_gym.envs.registration import register

from rewardkit.serving import RemoteRuntime
from trainer_adapter import TrainerRewards


def stepped(name: str, texts: list[str], threads: int = 64) -> list[list[Any]]:
    """Make an environment for each text, as SkyRL's generator does, and step it in a thread."""

    def one(text: str) -> list[Any]:
        extras = {"reward_spec": {"method": "rule", "ground_truth": "4"}, "data_source": "sums"}
        environment = skyrl_gym.make(name, env_config={}, extras=extras)
        messages, _ = environment.init([{"role": "user", "content": "2+2="}])
        output = environment.step(text)
        environment.close()
        assert messages
        assert output["done"]
        return [text, output["reward"], output["metadata"], type(output["reward"]).__name__]

    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(one, texts))


def main(count: int, costly: int, snippet: str, url: str) -> None:
    texts = completions(count, costly)
    source = Path(snippet).read_text().replace("class SumsEnv:", "class SumsEnv(BaseTextEnv):")
    seen: dict[str, Any] = {}
    for name, rewards in (("function", REWARDS), ("http", RemoteRuntime([url]))):
        options = {"workers": 2} if name == "function" else {}
        with closing(TrainerRewards(rewards, asks="SkyRL", on_unknown="zero", **options)) as lenient:  # type: ignore
            names: dict[str, Any] = {"Any": Any, "BaseTextEnv": BaseTextEnv, "lenient": lenient}
            exec(compile(source, snippet, "exec"), names)  # the class as the docs have it
            register(id=name, entry_point=names["SumsEnv"])
            seen[name] = stepped(name, texts)
    print(json.dumps(seen))


if __name__ == "__main__":
    main(**json.loads(sys.argv[1]))
