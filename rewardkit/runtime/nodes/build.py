"""The pool of a runtime whose plain rewards run on a cluster too: what stays, what travels, what must be equal."""

from __future__ import annotations

import functools
import logging
from collections.abc import Mapping, Sequence
from typing import Any

from rewardkit.declare.compose import Composable
from rewardkit.declare.decorator import Reward
from rewardkit.function import described as function_of
from rewardkit.loading.carried import carried_files
from rewardkit.run_code import Package, RunReward, joined
from rewardkit.runtime.nodes.cluster import NodeCluster
from rewardkit.runtime.nodes.host import describe
from rewardkit.runtime.nodes.orders import HostOrder, NodeExpectation, RewardsDescription
from rewardkit.runtime.nodes.pool import NodePool
from rewardkit.transport import dumps
from sandbox.workers import CallPool

_log = logging.getLogger("rewardkit")


def stays_home(reward: Reward[..., Any]) -> bool:
    """Return whether a reward's calls stay in the driver's own pool.

    An ``async def`` reward and one with ``concurrency`` wait rather than work, and their limits, budgets and caches are
    to hold as a whole; so are the files of one that says that it needs one host.
    """
    spec = reward.spec
    parts = (reward, *reward.inner)
    return spec.is_async or spec.concurrency > 1 or any(function_of(part.spec.function).on_one_host for part in parts)


def node_pool(
    home: CallPool,
    home_workers: int,
    rewards: Sequence[Reward[..., Any]],
    running: Mapping[Composable, RunReward],
    cluster: NodeCluster,
    *,
    workers: int | None,
    packages: Sequence[Package],
    path: Sequence[str],
    options: Mapping[str, Any],
) -> CallPool:
    """Return a pool over the driver's own and a cluster's nodes; the driver's own where no reward's calls may leave.

    Args:
        home: The driver's own pool.
        home_workers: Its processes for plain rewards.
        rewards: The plain rewards; a call's ``target`` is a place in this list.
        running: The rewards as workers load them. Of those whose code differs, only the first ones' calls may leave.
        cluster: Where the nodes are.
        workers: Processes on each node; ``None`` for the node's cores, of more than 4 the half, 4 to 16.
        packages: What the nodes install for the workers.
        path: The driver's ``sys.path``, without folders that only it has.
        options: ``env``, ``preload``, ``memory_bytes`` and ``load_timeout_s`` of a pool.

    Raises:
        RewardTransportError: A reward, or its own files, cannot travel.
    """
    remote = {number: reward for number, reward in enumerate(rewards) if not stays_home(reward)}
    if not remote:
        _log.warning("the cluster is not used: every reward is 'async def' or has concurrency, and stays here")
        return home
    codes = joined(running[reward].code for reward in remote.values())
    remote = {number: rewards[number] for number, code in zip(remote, codes, strict=True) if code is codes[0]}
    target = RewardsDescription(list(remote.values()))
    order = HostOrder(
        targets={number: (reward.name, running[reward].payload) for number, reward in remote.items()},
        workers=workers,
        path=path,
        description=dumps(target, *remote.values()),
        packages=packages,
        carried=carried_files(codes[0]),
        **options,
    )

    @functools.cache
    def level() -> str | None:
        if not target.jailed:
            return None
        _, jail_level = describe(dumps(target, *remote.values()), {"path": path, **options})
        return jail_level

    versions = {reward.name: reward.spec.fingerprint.source for reward in remote.values()}
    expectation = NodeExpectation(versions, level)
    return NodePool(home, home_workers, set(range(len(rewards))) - {*remote}, cluster, order, expectation)
