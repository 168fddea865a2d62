"""The command ``rewardkit``, begun above rewardkit, so that a foreign package of that name is told of."""

from rewardkit.cli import main as main
