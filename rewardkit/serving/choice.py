"""The one place where it is chosen what scores: a runtime in this process, or servers at an address."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import Any

from rewardkit.errors import RewardDefinitionError
from rewardkit.loading.registry import HasRewards, RewardSet
from rewardkit.runtime.runtime import Runtime
from rewardkit.serving.joining import PartsScorer
from rewardkit.serving.remote import RemoteRuntime

CONNECT_S = 5.0  # Seconds that a server has to tell its rewards, where an address is named in place of rewards
_DEFAULTS = {name: parameter.default for name, parameter in inspect.signature(Runtime).parameters.items()}
_SCHEMES = ("http://", "https://")
_FIXES = {
    "workers": "set it there, with rewardkit serve --workers",
    "load_timeout_s": "set it there, with rewardkit serve --load-timeout",
    "max_infrastructure_rate": "give it to RemoteRuntime(..., max_infrastructure_rate=...)",
}
"""What to do about an option of a runtime that is given where servers score."""


def is_address(rewards: object) -> bool:
    """Whether rewards are named by the address of a server that scores them."""
    return isinstance(rewards, str) and rewards.strip().lower().startswith(_SCHEMES)


def connect(address: str, **options: Any) -> RemoteRuntime:
    """Return the client of the servers at one address or several, separated by commas.

    What follows ``#`` in the last one names the one reward of the servers that counts: ``http://rewards:8000#correct``.
    Options and errors are those of :class:`RemoteRuntime`.
    """
    addresses, _, name = address.partition("#")
    urls = [url.strip() for url in addresses.split(",")]
    return RemoteRuntime(urls, **{"connect_s": CONNECT_S, "names": [name] if name else None, **options})


def served_set(address: str) -> RewardSet:
    """Return the rewards of the servers at an address, which :func:`scorer_of` scores there."""
    client = connect(address)  # left open: its rewards ask it what they cannot know
    return RewardSet(dict(client.rewards), weights=client.weights, servers=client.urls)


def scorer_of(
    rewards: object,
    *,
    weights: Sequence[float] | Mapping[str, float] | None = None,
    defaults: Mapping[str, Any] | None = None,
    **options: Any,
) -> PartsScorer:
    """Return the scorer of rewards: a runtime, or a client of the servers that score them.

    Args:
        rewards: Rewards as for :class:`rewardkit.Runtime`, a server's address, or a :class:`RemoteRuntime`, which
            is returned as it is, or with weights as its :meth:`RemoteRuntime.with_weights`.
        weights: Each reward's weight in the totals; by default, where servers score, as they have it.
        defaults: Options that a runtime here has unless they are given; for a server they do not count.
        options: The other options of :class:`rewardkit.Runtime`.

    Raises:
        RewardDefinitionError: Options are given for a server, which has its own, or weights of another sign than there.
        RewardError: As :class:`rewardkit.Runtime` and :class:`RemoteRuntime`.
    """
    if isinstance(rewards, HasRewards):
        rewards = rewards.resolve()
    if isinstance(rewards, RewardSet) and rewards.servers:
        rate = {**(defaults or {}), **options}.get("max_infrastructure_rate", _DEFAULTS["max_infrastructure_rate"])
        options.pop("max_infrastructure_rate", None)  # the one option that is a client's, too
        client = RemoteRuntime(
            rewards.servers,
            names=list(rewards.rewards),
            connect_s=CONNECT_S,
            max_infrastructure_rate=rate,
            weights=weights,
        )
    elif isinstance(rewards, str) and is_address(rewards):
        client = connect(rewards, weights=weights)
    elif isinstance(rewards, RemoteRuntime):
        client = rewards if weights is None else rewards.with_weights(weights)
    else:
        return Runtime(rewards, weights=weights, **{**(defaults or {}), **options})
    option = next((name for name, value in options.items() if value not in (None, _DEFAULTS.get(name))), None)
    if option is not None:
        fix = _FIXES.get(option, "leave it away, because it has no effect there")
        raise RewardDefinitionError(f"{option}: the rewards are scored by a server; {fix}")
    return client
