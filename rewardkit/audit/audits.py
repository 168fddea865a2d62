"""The audits of rewards, on rows and on a run's completions: rounds are scored, and an assessment judges the scores."""

from __future__ import annotations

from dataclasses import replace
from typing import TypeVar

from rewardkit.audit.addends import addends_of, trials_of
from rewardkit.audit.attacks import AttackRounds
from rewardkit.audit.engine import AuditSettings, Tick
from rewardkit.audit.exploits import ExploitAssessment, ExploitAudit, MutantRounds
from rewardkit.audit.lint import has_source, lint
from rewardkit.audit.result import Audit, RewardAudit
from rewardkit.audit.reward_assessment import RewardAssessment
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
    settings = _with_skips(reward, settings)
    rounds = AttackRounds(reward, rows, settings, scorer, tick)
    trials = rounds.run()
    addends = []
    for addend in () if reward.scores_groups else addends_of(reward):
        own = trials_of(trials, addend, rounds.leaf_outcomes)
        addends.append(RewardAssessment(addend, rows, own, _with_skips(addend, settings)).as_addend())
    return _with_lint(RewardAssessment(reward, rows, trials, settings, addends).result(), reward)


def audit_completions(
    reward: Composable, rows: ChosenRows, settings: AuditSettings, scorer: Scorer, tick: Tick
) -> ExploitAudit:
    """Score the changed completions of a run, as ``recorded.rows_of`` has them; raise as :func:`audit_rows` does."""
    settings = _with_skips(reward, settings)
    trials = MutantRounds(reward, rows, settings, scorer, tick).run()
    return _with_lint(ExploitAssessment(reward, rows, trials, settings).result(), reward)


def _with_skips(reward: Composable, settings: AuditSettings) -> AuditSettings:
    """Return settings that also leave out what the source of a reward that is no composition does."""
    leaves = reward.leaves
    own = audit_skips(leaves[0]) if len(leaves) == 1 else {}
    return replace(settings, skipped={**own, **settings.skipped})


def _with_lint(audit: A, reward: Composable) -> A:
    """Return an audit with what the lint says of the source of the reward's parts."""
    audit.lint = [mistake for leaf in reward.leaves for mistake in lint(leaf)]
    audit.unread = [leaf.name for leaf in reward.leaves if not has_source(leaf)]
    return audit
