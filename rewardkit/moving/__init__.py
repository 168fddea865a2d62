"""Rewards that were written for other tools, used as they are: moving in without rewriting.

:func:`from_trl`, :func:`from_verl` and :func:`from_verifiers` take a function as its trainer calls it. Each returns a
reward as any other: its calls run in isolated workers, one completion a call, so a fault costs the completion that
caused it. :func:`from_harbor` reads a task with its tests.
"""

from rewardkit.harbor.task import from_harbor
from rewardkit.moving.grader import from_grader
from rewardkit.moving.trl import from_trl
from rewardkit.moving.verifiers import from_verifiers
from rewardkit.moving.verl import from_verl

__all__ = ["from_grader", "from_harbor", "from_trl", "from_verifiers", "from_verl"]
