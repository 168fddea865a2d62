"""What each node of a cluster gives: asked of all at once, without rewards."""

from __future__ import annotations

import contextlib
import sys
import time
from dataclasses import dataclass, field

from rewardkit.errors import ClusterError
from rewardkit.runtime.nodes.cluster import HostLink, NodeCluster
from rewardkit.runtime.nodes.orders import NodeFacts, facts, why_no_part

SURVEY_S = 120.0  # Seconds that the nodes may take to answer, the start of their hosts included


@dataclass(slots=True)
class NodeReport:
    """What a node gives.

    Attributes:
        levels: Each level of jail, whether it is reached, and why not.
        why_not: Why it could take no part in scoring; ``None`` where it could, as far as is known without rewards.
    """

    node: str  # The name of the machine and the id's beginning
    facts: NodeFacts | None = None  # What it is; `None` where it did not say
    levels: list[tuple[str, bool, str]] = field(default_factory=list)
    why_not: str | None = "it did not answer in time"


def survey(cluster: NodeCluster, timeout_s: float = SURVEY_S) -> list[NodeReport]:
    """Return a report of each node, in the order of their names.

    Raises:
        ClusterError: The cluster does not answer.
    """
    end = time.monotonic() + timeout_s
    links: list[HostLink] = []
    reports, replies = [], []
    try:
        for node, name in sorted(cluster.nodes().items(), key=lambda item: (item[1], item[0])):
            reports.append(report := NodeReport(name))
            try:
                links.append(link := cluster.host(node, sys.path))
                replies.append((report, link.ask("hello"), link.ask("trials")))
            except ClusterError as error:
                report.why_not = str(error)
        for report, hello, trials in replies:
            with contextlib.suppress(TimeoutError):
                try:
                    report.facts = NodeFacts(*hello.result(max(0.0, end - time.monotonic())))
                    report.levels = [tuple(trial) for trial in trials.result(max(0.0, end - time.monotonic()))]
                    report.why_not = why_no_part(facts(), report.facts)
                except ClusterError as error:
                    report.why_not = str(error)
        return reports
    finally:
        for link in links:
            link.end()
