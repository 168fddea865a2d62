"""Audits of rewards of a file on rows of a table, in this process; in the short form without the heavy probes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rewardkit.audit.audits import audit_rows
from rewardkit.audit.engine import AuditSettings
from rewardkit.audit.result import RewardAudit
from rewardkit.audit.rows import choose_rows
from rewardkit.declare.compose import Composable
from rewardkit.loading.registry import resolve
from rewardkit.rows.reader import Row
from rewardkit.runtime.runtime import Runtime
from rewardkit.runtime.settings import RuntimeLane

LIMITS = {"false_accept": 0, "false_reject": 1.0, "failed": 0}


def audited(reference: str, rows: Sequence[Mapping[str, Any]], *, full: bool, gold: str | None = None) -> RewardAudit:
    """Return the audit of the reward that ``FILE:NAME`` names, on all rows."""
    return audit_of(resolve(reference), rows, AuditSettings(heavy_rows=int(full), repeated_rows=1), gold=gold)


def audit_of(
    reward: Composable, rows: Sequence[Mapping[str, Any]], settings: AuditSettings, *, gold: str | None = None
) -> RewardAudit:
    """Return the audit of a reward or a composition, on all rows."""
    lines = [Row(number, dict(row)) for number, row in enumerate(rows, 1)]
    named = [name for leaf in reward.leaves for name in leaf.spec.named_columns]
    chosen = choose_rows(lines, "the table", count=20, seed=0, gold=gold, named=named)
    lane = RuntimeLane.INLINE
    with Runtime(list(reward.leaves), workers=1, lane=lane, cache_entries=0, max_infrastructure_rate=1.0) as runtime:
        return audit_rows(reward, chosen, settings, runtime, lambda done, known: None)
