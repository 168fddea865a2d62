"""The weights with which a client of reward servers adds up their scores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rewardkit.declare.compose import Composable
from rewardkit.errors import RewardDefinitionError
from rewardkit.runtime.settings import weights_of


def client_weights(
    rewards: Mapping[str, Composable],
    server_weights: Mapping[str, float],
    weights: Sequence[float] | Mapping[str, float] | None,
) -> dict[str, float]:
    """Return each reward's weight in a client's totals, by name.

    Args:
        rewards: The rewards that count, by name.
        server_weights: Their weights on the server, by name.
        weights: The client's own, in the rewards' order or by name; names that it leaves out, and ``None``, have the
            server's.

    Raises:
        RewardDefinitionError: They do not match the rewards, or one has the other sign than on the server. The server
            has scored failed calls as the worst under its own sign, which would be the best under the other one.
    """
    if weights is None:
        return dict(server_weights)
    if isinstance(weights, Mapping):
        weights = {**server_weights, **weights}
    checked = weights_of(rewards, weights)
    for name, weight in checked.items():
        if weight and (weight < 0) != (server_weights[name] < 0):
            raise RewardDefinitionError(
                f"weights: {name!r} weighs {weight:g} here and {server_weights[name]:g} on its server, which scores "
                "failed calls as the worst under its own sign; give that sign, or start the server with the weight: "
                "rewardkit serve REWARDS --weights"
            )
    return checked
