"""Which rewards a command line means: references, or a YAML file, with its ``--timeout``."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import re
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from rewardkit.declare.compose import Composable
from rewardkit.errors import ConfigError
from rewardkit.loading.config import RewardFunctionsConfig
from rewardkit.loading.registry import RewardSet, resolve_all, resolve_set
from rewardkit.runtime.settings import signs_of, weights_of
from rewardkit.serving.choice import is_address, served_set
from rewardkit.serving.server_link import without_token

_COMMA = re.compile(r",(?![^()]*\))")
"""A comma between references; one inside brackets belongs to a call, which is refused as a whole."""

TOLD_EACH_S = 10.0  # seconds after which an import that goes on is told, and told again
_DATA = (".jsonl", ".json", ".csv", ".parquet", ".gz")


@contextlib.contextmanager
def importing(name: str) -> Iterator[None]:
    """Send what a reward file prints to stderr, as stdout is for results, and report a long import there."""
    ended = threading.Event()

    def tell() -> None:
        start = time.monotonic()
        while not ended.wait(TOLD_EACH_S):
            print(f"{name}: importing it, {time.monotonic() - start:.0f} s so far", file=sys.stderr, flush=True)

    with contextlib.redirect_stdout(sys.stderr):
        telling = threading.Thread(target=tell, name="rewardkit-importing", daemon=True)
        telling.start()
        try:
            yield
        finally:
            ended.set()
            telling.join()  # a process with one thread can be forked


def is_config(references: str) -> bool:
    """Whether the argument is a YAML file of rewards."""
    return Path(references).suffix in (".yaml", ".yml")


def split(references: str) -> list[str]:
    """Return the references in a comma-separated list; raise ConfigError where one is empty or is a file of data."""
    parts = [part.strip() for part in _COMMA.split(references)]
    if not all(parts):
        raise ConfigError(f"{references!r}: expected file.py, file.py:name or module:name, separated by commas")
    data = [part for part in parts if part.endswith(_DATA)]
    if data:
        order = "rewards come first, as file.py, file.py:name or module:name, and the data after them"
        raise ConfigError(f"{data[0]!r} is data; {order}")
    return parts


def load_rewards(references: str, timeout_s: float | None = None, *, here: bool = False) -> RewardSet:
    """Return the rewards under their names, from comma-separated references, a YAML file, or a server's address.

    ``timeout_s`` stands in for every reward's own timeout unless it is ``None``; ``here`` refuses an address. Raises
    RewardError where a reference leads nowhere, two have one name, or the server does not answer.
    """
    if is_address(references) and not here:
        if timeout_s is not None:
            fix = f"set it there, with rewardkit serve --timeout {timeout_s:g}"
            raise ConfigError(f"--timeout {timeout_s:g}: the rewards are scored by a server; {fix}")
        return served_set(references)
    with importing(references):
        config = RewardFunctionsConfig.from_yaml(references) if is_config(references) else None
        reward_set = resolve_set(config if config is not None else split(references))
    return with_timeout(reward_set, timeout_s)


def with_timeout(reward_set: RewardSet, timeout_s: float | None) -> RewardSet:
    """Return rewards with this timeout in place of their own; ``None`` keeps theirs."""
    if timeout_s is None:
        return reward_set
    changed = functools.cache(lambda leaf: leaf.with_options(timeout_s=timeout_s))  # what is shared stays shared
    rewards = {name: reward.map_leaves(changed) for name, reward in reward_set.rewards.items()}
    return dataclasses.replace(reward_set, rewards=rewards)


def only(references: str) -> Composable:
    """Return the one reward that references name.

    Raises:
        RewardError: They name several, or lead nowhere.
    """
    return next(iter(one_of(references, here=True).rewards.values()))


def one_of(references: str, timeout_s: float | None = None, *, here: bool = False) -> RewardSet:
    """Return the one reward that references name, in a set of its own.

    Raises:
        RewardError: They name several, or lead nowhere.
    """
    reward_set = load_rewards(references, timeout_s, here=here)
    if len(reward_set.rewards) != 1:
        references = without_token(references)
        first = f"{references}{'#' if reward_set.servers else ':'}{next(iter(reward_set.rewards))}"
        raise ConfigError(f"{references!r} holds {len(reward_set.rewards)} rewards; name one: {first}")
    return reward_set


class Leaves:
    """The plain rewards among and inside those of a set, or of one of them, as a Runtime takes them.

    ``weights`` are those of the set's rewards. A part that they or a composition pay for low scores has a weight below
    0, so that what stands in for its failed calls is its worst score there, too.
    """

    def __init__(
        self, reward_set: RewardSet, reward: Composable | None = None, *, weights: Mapping[str, float] | None = None
    ) -> None:
        rewards = reward_set.rewards if reward is None else {reward.name: reward}
        self.leaves = list(dict.fromkeys(leaf for part in rewards.values() for leaf in part.leaves))
        self._reward_set = reward_set
        signs = signs_of(rewards, weights_of(rewards, weights))
        self._weights = {leaf.name: -1.0 if signs.get(leaf, 1) < 0 else 1.0 for leaf in self.leaves}

    def resolve(self) -> RewardSet:
        """Return them by name, with the folders and environment variables of the set."""
        weights = None if self._reward_set.servers else self._weights  # servers know their own
        return dataclasses.replace(self._reward_set, rewards=resolve_set(self.leaves).rewards, weights=weights)


def list_rewards(references: str) -> list[Composable]:
    """Return the rewards of references, also where two have one name; raise RewardError where one leads nowhere."""
    if is_config(references):
        return list(load_rewards(references).rewards.values())
    with importing(references):
        return [reward for reference in split(references) for reward in resolve_all(reference)]
