"""What the scores of attacks on rows mean: what each family wrongly pays for, and which honest forms it refuses."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from rewardkit.audit.addends import AddendPay, payer_of
from rewardkit.audit.assessment import ROUNDING, Assessment
from rewardkit.audit.engine import AuditSettings, ScoredProbe, Trials, form_probe
from rewardkit.audit.gold import gold_of
from rewardkit.audit.probe import NEEDS_FRAME, Family
from rewardkit.audit.result import FamilyCounts, RewardAudit
from rewardkit.audit.rows import REFERENCE_COLUMNS, TEST_COLUMNS, ChosenRows
from rewardkit.audit.rules_of_thumb import KINDS, rule_of
from rewardkit.declare.compose import Composable
from rewardkit.declare.options import WORST
from rewardkit.types import Outcome, Status

_MAX_GOLD_CHARS = 200
_LIKE_GOLD = re.compile(r"gold|answer|label|target|correct|expected|relevant|truth|support|class|is_", re.IGNORECASE)


class RewardAssessment(Assessment[RewardAudit]):
    """Decides what the scores of attacks on rows mean, of a composition with what its addends pay."""

    def __init__(
        self,
        reward: Composable,
        rows: ChosenRows,
        trials: Trials,
        settings: AuditSettings,
        addends: Sequence[AddendPay] = (),
    ) -> None:
        super().__init__(reward, rows, trials, settings)
        self._addends = [addend for addend in addends if addend.reads_answer]
        if self._addends:  # degrees of what reads no answer say nothing of how near an answer is
            self._graded &= frozenset().union(*(addend.graded for addend in self._addends))

    def as_addend(self) -> AddendPay:
        """Return what was seen of the reward where it is an addend of a composition that was tried."""
        attacks = enumerate(self._trials.attacks)
        paid = frozenset(
            index
            for index, trial in attacks
            if self._is_judged(trial) and self._wrongly_pays(trial) and self._is_above_silence(trial)
        )
        traits, (_, everything) = self.traits, self._read_columns()
        # What else it depends on is no sign: the forms were chosen by what the whole pays.
        reads_answer = traits.declares_gold or traits.tests or traits.references or (everything and traits.depends)
        return AddendPay(self._reward.name, paid, frozenset(self._graded), reads_answer)

    def result(self) -> RewardAudit:
        families = {family: FamilyCounts(not_applicable=self._reasons[family]) for family in Family}
        forms = [
            ScoredProbe(index, form_probe(form), outcome)
            for index, row_forms in enumerate(self._trials.honest)
            for form, outcome in row_forms
        ]
        for trial in forms:
            self._count_trial(families[trial.probe.family], trial)
        for index, trial in enumerate(self._trials.attacks):
            self._count_trial(families[trial.probe.family], trial, payer_of(self._addends, index))
        self._judge_amounts(families[Family.AMOUNT])
        for counts in families.values():
            counts.finish()
        return RewardAudit(
            **self._common(),
            paid_forms=self._paid_forms(),
            families=families,
            left_out={name: reason for name, reason in self._settings.skipped.items() if name in KINDS},
            hint=self._hint(),
            frames=self._trials.attacked_frames,
            graded_rows=len(self._graded),
        )

    def _hint(self) -> str:
        """Return which column that the reward reads may hold the golds; ``""`` without one."""
        columns, _ = self._read_columns()
        excluded = {self._rows.gold_column, *TEST_COLUMNS, *REFERENCE_COLUMNS}
        values: dict[str, set[str]] = {}
        for row in self._rows.rows:
            for name in sorted(columns - excluded):
                gold = gold_of(row.columns.get(name))
                if gold is not None and len(gold.text) <= _MAX_GOLD_CHARS:  # a longer one is a source
                    values.setdefault(name, set()).add(repr(row.columns[name]))
        likely = [name for name, texts in values.items() if len(texts) > 1 or len(self._rows.rows) == 1]
        likely.sort(key=lambda name: not _LIKE_GOLD.search(name))
        if self.traits.answer:
            return ""
        if not likely:
            column = self._rows.gold_column
            return f"; it does not read the gold in {column!r}" if column is not None and self._levels else ""
        return f"; it reads {', '.join(map(repr, likely[:3]))}: if that is the right answer, give --gold {likely[0]}"

    def _judge_amounts(self, counts: FamilyCounts) -> None:
        """Judge the ladders, of which each is one trial in all: only its last completion can be wrongly paid."""
        if counts.not_applicable is None:
            counts.judged = counts.tried
        for trial in self._overpaid():
            counts.accepted.append(self._example(trial.row, trial.probe, trial.outcome))

    def _count_trial(self, counts: FamilyCounts, trial: ScoredProbe, payer: str | None = None) -> None:
        """Add a trial to the counts of its family, and judge it where its pay says something.

        ``payer`` is the addend that wrongly pays it, ``None`` where no addend does.
        """
        index, probe, outcome = trial.row, trial.probe, trial.outcome
        example = self._count(counts, index, probe, outcome)
        if self._pays_failure(index, outcome):
            counts.judged += 1
            counts.accepted.append(example)
            return
        if probe.family is Family.AMOUNT or counts.not_applicable is not None:
            return
        if (reason := self._why_unjudged(trial)) is not None:
            counts.unjudged[reason] += 1
            return
        counts.judged += 1
        if probe.family is Family.FORMS:
            if not self._earns(trial):
                counts.refused.append(example)
        elif self._wrongly_pays(trial):
            counts.accepted.append(example)
        elif payer is not None and self._is_above_silence(trial):
            counts.accepted.append(replace(example, payer=payer))

    def _is_judged(self, trial: ScoredProbe) -> bool:
        """Return whether a trial's pay says something about the reward."""
        family = trial.probe.family
        return family is not Family.AMOUNT and self._reasons[family] is None and self._why_unjudged(trial) is None

    def _wrongly_pays(self, trial: ScoredProbe) -> bool:
        """Return whether a trial that is judged is paid, and other words are not."""
        return self._earns(trial) and not self._any_words_are_paid(trial.row, trial.probe.family)

    def _is_above_silence(self, trial: ScoredProbe) -> bool:
        """Return whether a trial earns more than the least that nothing, or another row's gold, does."""
        outcomes = [*self._trials.base[trial.row], self._trials.rivals.get(trial.row, trial.outcome)]
        least = min((outcome.score for outcome in outcomes if outcome.score is not None), default=self._zero)
        return trial.outcome.score is not None and trial.outcome.score > least + ROUNDING

    def _pays_failure(self, index: int, outcome: Outcome) -> bool:
        """Return whether the author's default stands in for a failure and is more than a wrong answer earns."""
        declared = any(leaf.options.default not in (None, WORST) for leaf in self._reward.leaves)
        if not declared or outcome.status is not Status.FAILED or outcome.is_lost or outcome.score is None:
            return False
        return index in self._levels and outcome.score > self._levels[index].floor + ROUNDING

    def _why_unjudged(self, trial: ScoredProbe) -> str | None:
        """Return why a trial's pay says nothing about the reward; ``None`` where it does."""
        probe, rule = trial.probe, rule_of(trial.probe)
        if trial.row not in self._levels or (trial.row in self._unaudited and probe.family in NEEDS_FRAME):
            return "its rows could not be audited"
        if trial.outcome.is_lost:
            return "the calls were lost"
        if rule in self._settings.skipped:
            return f"left out: {self._settings.skipped[rule]}"
        return None if probe.judged and not self._is_right_for_any_item(probe) else "what was tried may be right"

    def _paid_forms(self) -> dict[str, tuple[int, int]]:
        """Return on how many rows each honest form was paid and tried, the one paid most often first."""
        paid: dict[str, list[bool]] = {}
        for index in self._levels:
            for form, outcome in self._trials.honest[index]:
                paid.setdefault(form.name, []).append(self._is_paid(index, outcome.score))
        ordered = sorted(paid.items(), key=lambda pair: -sum(pair[1]) / len(pair[1]))
        return {name: (sum(flags), len(flags)) for name, flags in ordered}
