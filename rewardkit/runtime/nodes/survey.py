"""What each node of a cluster gives: asked of all at once, without rewards."""

from __future__ import annotations

import concurrent.futures
import contextlib
import sys
import time
from dataclasses import dataclass
from typing import Any

from rewardkit.errors import ClusterError
from rewardkit.runtime.nodes.cluster import HostLink, NodeCluster
from rewardkit.runtime.nodes.orders import NodeFacts, facts, why_no_part

SURVEY_S = 120.0
"""Seconds that the nodes may take to answer, the start of their hosts included."""


@dataclass(frozen=True, slots=True)
class NodeReport:
    """What a node gives.

    Attributes:
        node: Words that name it.
        facts: What it is; ``None`` where it did not say.
        levels: Each level of jail, whether it is reached, and why not.
        why_not: Why it could take no part in scoring; ``None`` where it could, as far as can be told without rewards.
    """

    node: str
    facts: NodeFacts | None
    levels: list[tuple[str, bool, str]]
    why_not: str | None


def survey(cluster: NodeCluster, timeout_s: float = SURVEY_S) -> list[NodeReport]:
    """Return what each node gives, in the order of their names.

    Raises:
        ClusterError: The cluster does not answer.
    """
    end = time.monotonic() + timeout_s
    links: dict[str, HostLink] = {}
    try:
        asked: dict[str, list[concurrent.futures.Future[Any]] | str] = {}
        for node, name in sorted(cluster.nodes().items(), key=lambda item: (item[1], item[0])):
            try:
                links[name] = cluster.host(node, sys.path)
                asked[name] = [links[name].ask(method) for method in ("hello", "trials")]
            except ClusterError as reason:
                asked[name] = str(reason)
        return [_report(name, futures, end) for name, futures in asked.items()]
    finally:
        for link in links.values():
            link.end()


def _report(name: str, futures: list[concurrent.futures.Future[Any]] | str, end: float) -> NodeReport:
    if isinstance(futures, str):
        return NodeReport(name, None, [], futures)
    said: NodeFacts | None = None
    why: str | None = "it did not answer in time"
    levels: list[tuple[str, bool, str]] = []
    with contextlib.suppress(concurrent.futures.TimeoutError):
        try:
            said = NodeFacts(*futures[0].result(max(0.0, end - time.monotonic())))
            levels = [tuple(one) for one in futures[1].result(max(0.0, end - time.monotonic()))]
            why = why_no_part(facts(), said)
        except ClusterError as reason:
            why = str(reason)
    return NodeReport(name, said, levels, why)
