"""An audit as data, ready for JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from rewardkit.audit.thumbs import THUMBS
from rewardkit.audit.verdict import Audit, Example, FamilyVerdict, passed

JSON_EXAMPLES = 10
"""Examples of a kind that are in the JSON for a family; the counts tell of all."""
_JSON_CHARS = 2_000


def as_json(audit: Audit, limits: Mapping[str, Any]) -> dict[str, Any]:
    """Return everything about an audit, ready for JSON."""
    return {
        "reward": audit.reward,
        "passed": passed(audit, limits),
        "rows": audit.rows,
        "total_rows": audit.total_rows,
        "audited_rows": audit.audited,
        "unaudited": {str(line): why for line, why in audit.unaudited.items()},
        "gold_column": audit.gold_column,
        "reads": asdict(audit.traits),
        "false_accepts": audit.false_accepts,
        "false_reject_share": audit.false_reject_share,
        "failed_calls": audit.failed,
        "untried": audit.untried,
        "left_out": dict(audit.left_out),
        "findings": [asdict(one) for one in audit.findings],
        "flaws": {name: {**THUMBS[name]._asdict(), "count": len(found)} for name, found in audit.flaws.items()},
        "families": {str(family): _family(one) for family, one in audit.families.items()},
        "forms": {name: {"paid": paid, "tried": tried} for name, (paid, tried) in audit.paid_forms.items()},
        "lint": [asdict(one) for one in audit.lint],
        "unread": audit.unread,
    }


def _family(verdict: FamilyVerdict) -> dict[str, Any]:
    kinds = {"accepted": verdict.accepted, "refused": verdict.refused, "slow": verdict.slow, "crashed": verdict.crashed}
    return {
        "not_applicable": verdict.not_applicable,
        "tried": verdict.tried,
        "judged": verdict.judged,
        "lost": verdict.lost,
        **{kind: len(examples) for kind, examples in kinds.items()},
        "examples": {kind: [_example(one) for one in found[:JSON_EXAMPLES]] for kind, found in kinds.items()},
    }


def _example(example: Example) -> dict[str, Any]:
    told = asdict(example)
    text = example.completion
    told["completion"] = text if len(text) <= _JSON_CHARS else f"{text[:_JSON_CHARS]}… [{len(text):,} characters]"
    return told
