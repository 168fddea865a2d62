"""The audits of rewards, on rows and on a run's completions: rounds are scored, and an assessment judges the scores."""

from __future__ import annotations

from dataclasses import replace
from typing import TypeVar

from rewardkit.audit.assessment import Assessment, RewardAssessment
from rewardkit.audit.attacks import AttackRounds
from rewardkit.audit.engine import AuditSettings, ProbeRounds, Tick
from rewardkit.audit.exploits import ExploitAssessment, ExploitAudit, MutantRounds
from rewardkit.audit.lint import has_source, lint
from rewardkit.audit.result import Audit, RewardAudit
from rewardkit.audit.rows import ChosenRows
from rewardkit.audit.skips import audit_skips
from rewardkit.declare.compose import Composable
from rewardkit.scorer import Scorer

A = TypeVar("A", bound=Audit)


def audit_rows(
    reward: Composable, rows: ChosenRows, settings: AuditSettings, scorer: Scorer, tick: Tick
) -> RewardAudit:
    """Attack a reward with the rows of a file, by a scorer of its plain parts, without a cache.

    Raises RewardError where the reward cannot be run: a column is missing, or a worker cannot load it.
    """
    return _audit(AttackRounds, RewardAssessment, reward, rows, settings, scorer, tick)


def audit_completions(
    reward: Composable, rows: ChosenRows, settings: AuditSettings, scorer: Scorer, tick: Tick
) -> ExploitAudit:
    """Score the changed completions of a run, as ``recorded.rows_of`` has them; raise as :func:`audit_rows` does."""
    return _audit(MutantRounds, ExploitAssessment, reward, rows, settings, scorer, tick)


def _audit(
    rounds: type[ProbeRounds],
    assessment: type[Assessment[A]],
    reward: Composable,
    rows: ChosenRows,
    settings: AuditSettings,
    scorer: Scorer,
    tick: Tick,
) -> A:
    """Return an audit by these rounds and this assessment, with what the lint says of the reward's source."""
    leaves = reward.leaves
    own = audit_skips(leaves[0]) if len(leaves) == 1 else {}
    settings = replace(settings, skipped={**own, **settings.skipped})
    trials = rounds(reward, rows, settings, scorer, tick).run()
    audit = assessment(reward, rows, trials, settings).result()
    audit.lint = [mistake for leaf in leaves for mistake in lint(leaf)]
    audit.unread = [leaf.name for leaf in leaves if not has_source(leaf)]
    return audit
