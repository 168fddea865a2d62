"""A run as a report of OpenEnv's RFC 008, whose schema and check ids it has, so that an operator can merge it.

The form knows packages alone. What is described is the suite's own task as one, with the harness as its verifier: the
right completion is its oracle, the wrong one its floor, the acts are its canaries, and their families the policies of
an adversarial panel, whose procedure the RFC leaves to operators. Source: ``rfcs/008-environment-auto-validation.md``
and ``src/openenv/validation`` of OpenEnv 0.10.0, report schema 1, severity policy v1.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from typing import Any

from .containment import FOLDER_BYTES, MEMORY_BYTES
from .figures import ActOutcome, HarnessFigures
from .forging_acts import FOLDER

POLICY = "v1"
_MARGIN = 0.5
_MOST_NAMES = 300
_REMEDIES = {
    "semantic.oracle_max": "The verifier does not pay a right completion: see the harness's versions and its detail.",
    "semantic.floor_gap": "The verifier pays work that is wrong or never ends: compare results, and end with a limit.",
    "semantic.verifier_determinism": "The same completion passes at times: look for what depends on time or memory.",
    "semantic.canary_floor": "Completions that solve nothing pass: keep expected values and the verdict out of their "
    "process.",
    "statistical.adversarial_floor": "Completions that solve nothing pass: see the policies that are above the floor.",
}


def validation_report(figures: HarnessFigures) -> dict[str, Any]:
    """Return a run as RFC 008's report: five checks of the lane ``hub``, levels 3 and 4, and a verdict.

    ``statistical.adversarial_floor`` belongs to that lane alone. A run without a figure has its last three checks
    skipped, which the verdict shows as ``warn`` or, where a control failed, as ``fail``.
    """
    results = list(_checks(figures))
    states = {row["status"] for row in results}
    return {
        "report_schema_version": "1",
        "target": figures.harness,
        "source_digest": suite_digest(),
        "signature": "task.toml",
        "manifest": _manifest(figures),
        "policy_version": POLICY,
        "lane": "hub",
        "levels_run": [3, 4],
        "results": results,
        "verdict": "fail" if states & {"fail", "error"} else "warn" if "skip" in states else "pass",
    }


def suite_digest() -> str:
    """Return a SHA-256 over the names and texts of all acts, 64 hexadecimal digits."""
    digest = hashlib.sha256()
    for path in sorted(FOLDER.rglob("*.txt")):
        for part in (path.relative_to(FOLDER).as_posix().encode(), path.read_bytes()):
            digest.update(b"%d:" % len(part) + part)
    return digest.hexdigest()


def _manifest(figures: HarnessFigures) -> dict[str, Any]:
    """Return what RFC 008's manifest says of the suite's task; what it does not name has its default there."""
    return {
        "manifest_schema_version": "1",
        "name": f"completion-integrity-{figures.harness}",
        "version": figures.suite_version,
        "signature": "task.toml",
        "reward": {"range": [0.0, 1.0], "oracle_tolerance": 0.0, "floor_margin": _MARGIN},
        "resources": {
            "cpu": 1.0, "memory_mb": MEMORY_BYTES >> 20, "disk_mb": FOLDER_BYTES >> 20, "episode_timeout_s": 25.0,
        },
        "task_distribution": {"generator_seed": figures.seed, "dataset_version": f"suite {figures.suite_version}"},
        "capabilities": {"verifier": {"kind": "reward_channel"}, "canaries": f"acts/{figures.language}"},
        "types": {"tags": [figures.language]},
    }  # fmt: skip


def _checks(figures: HarnessFigures) -> Iterator[dict[str, Any]]:
    controls = {row.name: row for row in figures.controls}
    right = controls.get("right")
    oracle = _reward([right]) if right is not None else None
    measured: dict[str, Any] = {"oracle_reward": oracle, "declared_tolerance": 0.0}
    if right is None:
        yield _check("semantic.oracle_max", "error", measured, [figures.no_figure])
        yield _check("semantic.floor_gap", "skip", {}, ["semantic.oracle_max: there is no oracle's reward"])
    else:
        is_max = right.state == "forged"
        yield _check("semantic.oracle_max", "pass" if is_max else "fail", measured, [right.detail], right.seconds)
        floors = [row for name, row in controls.items() if name != "right"]
        floor = _reward(floors)
        measured = {"oracle_reward": oracle, "measured_floor": floor, "declared_margin": _MARGIN}
        evidence = [f"the completion that is {row.name}: {_verdict_phrase(row)}" for row in floors]
        status = "skip" if not floors else "pass" if floor == 0.0 else "fail"
        yield _check("semantic.floor_gap", status, measured, evidence or ["not tried, the oracle is not paid"])
    if figures.no_figure:
        for name in ("semantic.verifier_determinism", "semantic.canary_floor", "statistical.adversarial_floor"):
            yield _check(name, "skip", {}, [f"no figure: {figures.no_figure}"])
        return
    yield from _of_acts(figures)


def _of_acts(figures: HarnessFigures) -> Iterator[dict[str, Any]]:
    unstable = figures.names("unstable")
    paid = figures.names("forged") + unstable
    seconds = sum(row.seconds * len(row.verdicts) for row in figures.outcomes)
    measured: dict[str, Any] = {"trajectories": figures.tried, "unstable": len(unstable)}
    yield _check("semantic.verifier_determinism", "fail" if unstable else "pass", measured, unstable)
    measured = {
        "canaries": figures.tried, "above_floor": len(paid), "floor_reward": 0.0, "unstable": len(unstable),
        "no_verdict": figures.count("no verdict"), "not_run": len(figures.not_tried),
    }  # fmt: skip
    yield _check("semantic.canary_floor", "fail" if paid else "pass", measured, paid, seconds)
    by_policy = {
        family: {
            "trajectories": sum(row.name.partition(".")[0] == family for row in figures.outcomes),
            "above_floor": figures.count("forged", family) + figures.count("unstable", family),
        }
        for family in figures.families
    }
    above = [family for family, counts in by_policy.items() if counts["above_floor"]]
    measured = {"policies": len(by_policy), "above_floor": len(above), "floor_reward": 0.0, "by_policy": by_policy}
    yield _check("statistical.adversarial_floor", "fail" if above else "pass", measured, above, seconds)


def _check(
    name: str, status: str, measured: dict[str, Any], evidence: Sequence[str], seconds: float = 0.0
) -> dict[str, Any]:
    return {
        "check_id": name,
        "status": status,
        "measured": measured,
        "evidence": [line for line in evidence if line][:_MOST_NAMES],
        "remediation": _REMEDIES[name] if status == "fail" else None,
        "duration_s": round(seconds, 2),
    }


def _reward(rows: Sequence[ActOutcome]) -> float:
    return float(any(True in row.verdicts for row in rows))


def _verdict_phrase(row: ActOutcome) -> str:
    return {"forged": "passes", "unstable": "passes at times", "held": "fails"}.get(row.state, "has no verdict")
