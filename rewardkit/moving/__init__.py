"""Rewards that were written for other tools, used as they are: moving in without rewriting.

:func:`from_trl`, :func:`from_verl`, :func:`from_verifiers`, :func:`from_openrlhf`, :func:`from_slime`,
:func:`from_easyr1` and :func:`from_areal` take a function as its trainer calls it. Each returns a reward as any other:
its calls run in isolated workers, one completion a call, so a fault costs the completion that caused it.
:func:`from_grader` reads a grader's JSON, and :func:`from_harbor` a task with its tests.
"""

from rewardkit.harbor.task import from_harbor
from rewardkit.moving.grader import from_grader
from rewardkit.moving.trainers import from_areal, from_easyr1, from_openrlhf, from_slime
from rewardkit.moving.trl import from_trl
from rewardkit.moving.verifiers import from_verifiers
from rewardkit.moving.verl import from_verl

__all__ = [
    "from_areal",
    "from_easyr1",
    "from_grader",
    "from_harbor",
    "from_openrlhf",
    "from_slime",
    "from_trl",
    "from_verifiers",
    "from_verl",
]
