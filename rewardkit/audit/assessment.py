"""What the scores of an audit mean: levels of rows, what the reward reads, what it wrongly pays for and refuses."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any, Generic, TypeVar

from rewardkit.audit.climbing import overpaid
from rewardkit.audit.constant_outputs import CONSTANT_OUTPUT, is_constant_paid
from rewardkit.audit.ends import highest_pay, lowest_pay
from rewardkit.audit.engine import BASE, AuditSettings, ScoredForm, ScoredProbe, Trials, best_of, differ
from rewardkit.audit.gold import share_parts
from rewardkit.audit.honest import REFERENCE, untagged
from rewardkit.audit.parts import WRONG_FIRST
from rewardkit.audit.probe import NEEDS_FRAME, Family, Probe
from rewardkit.audit.programs import LAZY
from rewardkit.audit.result import Audit, AuditFinding, Example, FamilyCounts, PayRange, Traits
from rewardkit.audit.rows import REFERENCE_COLUMNS, TEST_COLUMNS, AuditRow, ChosenRows
from rewardkit.audit.texts import WORDS_IN_TAGS
from rewardkit.declare.compose import Composable
from rewardkit.declare.spec import Kind
from rewardkit.runtime.row_names import without_place
from rewardkit.shown.text import shortened
from rewardkit.types import Cause, Outcome, Status

_ENOUGH_ROWS = 3
_ALIKE = 0.8  # an answer that earns this share of what the right one does is paid alike
_DEGREES = 3  # scores between floor and full that show that a row's answers are paid by degrees
ROUNDING = 1e-6  # what a sum of shares may lack of the full level

A = TypeVar("A", bound=Audit)


class Assessment(ABC, Generic[A]):
    """Decides what the scores of an audit mean, and makes its result of them."""

    def __init__(self, reward: Composable, rows: ChosenRows, trials: Trials, settings: AuditSettings) -> None:
        self._reward = reward
        self._rows = rows
        self._trials = trials
        self._settings = settings
        self._timeout_s = min(leaf.options.timeout_s for leaf in reward.leaves)
        self._top = highest_pay(reward)
        self._zero = lowest_pay(reward, self._all_outcomes())
        self._tests = self._reads_tests()
        self._levels: dict[int, PayRange] = {}
        self._unaudited: dict[int, str] = {}
        for index, row in enumerate(rows.rows):
            self._find_level(index, row)
        if self._reads_a_setting():
            self._leave_out_gold()
        self._graded = self._graded_rows()
        self._takes_any_item = self._pays_any_item()
        self.traits = self._traits()
        if self.traits.answer and not self._is_of_groups:
            self._find_unframed()
        self._reasons = {family: self._not_applicable(family) for family in Family}

    @abstractmethod
    def result(self) -> A:
        """Return what the scores come to; the source is not read."""

    def _common(self) -> dict[str, Any]:
        """Return, by name, the fields that an :class:`~rewardkit.audit.result.Audit` has of every reward."""
        refused = self._refused_references()
        return {
            "reward": self._reward.name,
            "rows": len(self._rows.rows),
            "total_rows": self._rows.total,
            "gold_column": self._rows.gold_column,
            "traits": self.traits,
            "unaudited": {self._rows.rows[index].line: reason for index, reason in self._unaudited.items()},
            "findings": self._findings(),
            "unpaid_references": len(refused) if refused and all(refused.values()) else 0,
            "refused_references": {line: text for line, text in refused.items() if text is not None},
            "equal_golds": self._trials.equal_golds,
            "paths": self._trials.paths,
            "untried": self._trials.untried,
            "is_interrupted": self._trials.is_interrupted,
            "unit": self._rows.unit,
        }

    def _refused_references(self) -> dict[int, str | None]:
        """Return by line, of rows whose references were scored, what was said where all earn what silence does."""
        refused: dict[int, str | None] = {}
        for index, row in enumerate(self._rows.rows if not self._is_of_groups else ()):
            own = [(form, o) for form, o in self._trials.honest[index] if form.counted and o.status is Status.SCORED]
            stated = [o for form, o in own if form.text in row.reference_completions]
            scored = [o for o in stated or [o for _, o in own] if o.score is not None]
            best = max(scored, key=lambda outcome: outcome.score or 0.0, default=None)
            base = (o for o in self._trials.base[index] if o.status is Status.SCORED)
            silence = [outcome.score for outcome in base if outcome.score is not None]
            if row.references and best is not None and best.score is not None:
                is_refused = best.score <= min(silence, default=self._zero) + ROUNDING
                gold = f"gold {row.gold.text!r}" if row.gold is not None else "no gold"
                refused[row.line] = f"earns {best.score:g}: {best.reason or gold}" if is_refused else None
        return refused

    def _all_outcomes(self) -> Iterable[Outcome]:
        """Return every outcome of a completion, apart from the comparisons."""
        yield from (outcome for forms in self._trials.honest for _, outcome in forms)
        yield from (outcome for base in self._trials.base for outcome in base)
        yield from (trial.outcome for trial in self._trials.attacks)

    def _find_level(self, index: int, row: AuditRow) -> None:
        """Store a row's level in ``_levels``, or in ``_unaudited`` the reason why it has no level."""
        forms = self._trials.honest[index]
        best = best_of(forms)
        full = best.outcome.score if best is not None else None
        if row.is_code and self._tests and not row.references:
            if self._top is None:
                self._unaudited[index] = "it has tests, but no reference solution whose score could be the full level"
                return
            full = self._top
        elif full is None or best is None or full <= self._zero or best.outcome.status is not Status.SCORED:
            echo = self._paid_echo(index)
            if echo is None:
                self._unaudited[index] = self._why_unpaid(index, forms)
            else:
                self._levels[index] = PayRange(self._zero, echo)
            return
        wrong = list(self._trials.base[index])
        if index in self._trials.rivals:
            wrong.append(self._trials.rivals[index])
        floor = min((outcome.score for outcome in wrong if outcome.score is not None), default=self._zero)
        if row.is_code and self._tests:
            lazy = (t.outcome.score for t in self._trials.attacks if t.row == index and t.probe.name in LAZY)
            floor = max(floor, self._zero, *(score for score in lazy if score is not None))
        self._levels[index] = PayRange(floor if floor < full else self._zero, full)

    def _reads_a_setting(self) -> bool:
        """Return whether, on most rows, the gold's column changes what is paid, and the answer does not.

        Such a column holds no answer, but what is asked of one, such as its length.
        """
        tells = []
        for index, level in self._levels.items():
            swapped, rival = self._trials.swapped.get(index), self._trials.rivals.get(index)
            if swapped is None or rival is None:
                continue
            is_alike = (level.progress(rival.score) or 0.0) >= _ALIKE
            moves = swapped.score is not None and abs(swapped.score - level.full) > (1 - _ALIKE) * level.full
            tells.append(is_alike and moves)
        return sum(tells) * 2 > len(tells)

    def _leave_out_gold(self) -> None:
        """Audit no row: what counted as right answers is something else."""
        column = self._rows.gold_column
        for index in self._levels:
            self._unaudited[index] = (
                f"{column!r} changes what any answer earns, and no answer is told from another, so it holds no right "
                "answer; give right completions in a column 'reference', or another --gold"
            )
        self._levels.clear()

    def _find_unframed(self) -> None:
        """Store rows on which no frame is paid in ``_unaudited``: attacks on the answer tell nothing there."""
        for index in self._levels:
            row, forms = self._rows.rows[index], self._trials.honest[index]
            paid = [form for form, outcome in forms if self._is_paid(index, outcome.score)]
            if row.gold is not None and not row.is_code and not any(form.frame or form.parts for form in paid):
                what = paid[0].name if paid else "the prompt"
                self._unaudited[index] = (
                    f"what is paid is {what!r}, and no attack on the answer can be written in its form; give a right "
                    "completion with the answer in its last line in a column 'reference', or another --gold"
                )

    def _paid_echo(self, index: int) -> float | None:
        """Return what the prompt earns on a row; ``None`` if that is nothing, or if other words earn as much."""
        echoes = [trial for trial in self._trials.attacks if trial.row == index and trial.probe.family is Family.ECHO]
        own = max((s for trial in echoes if (s := trial.outcome.score) is not None), default=self._zero)
        other = self._trials.unrelated.get(index)
        if own <= self._zero or other is None or other.score is None:
            return None
        return own if other.score - self._zero <= self._settings.accept_share * (own - self._zero) else None

    def _why_unpaid(self, index: int, forms: Sequence[ScoredForm]) -> str:
        """Return why no honest form of a row is paid: they failed, were skipped, or earn nothing."""
        failed = next((outcome for _, outcome in forms if outcome.status is Status.FAILED), None)
        if failed is not None and all(outcome.status is not Status.SCORED for _, outcome in forms):
            return f"every honest form failed: {failed.cause}: {without_place(str(failed.error))}"
        if forms and all(outcome.status is Status.SKIPPED for _, outcome in forms):
            reason = next((outcome.reason for _, outcome in forms if outcome.reason), None)
            return "the reward skips the row" + (f": {reason}" if reason else "")
        gold = self._rows.rows[index].gold
        fix = "give a right completion in a column 'reference'"
        if self._rows.rows[index].references:
            holds = "nothing" if gold is None else repr(shortened(gold.text, 40))
            fix = f"neither is the row's reference: the gold in {self._rows.gold_column!r} is {holds}"
        reason = f"no honest form is paid more than {self._zero:g}; {fix}"
        paid = [t for t in self._trials.attacks if t.row == index and (t.outcome.score or self._zero) > self._zero]
        best_paid = max(paid, key=lambda trial: trial.outcome.score or 0.0, default=None)
        return reason if best_paid is None else f"{reason}; what is paid is {best_paid.probe.full_name!r}"

    def _overpaid(self) -> list[ScoredProbe]:
        """Return what shows that more of one thing is paid without end; nothing for a group reward."""
        skipped = self._settings.skipped
        return [] if self._is_of_groups or Family.AMOUNT in skipped else overpaid(self._trials, self._zero, skipped)

    @property
    def _is_of_groups(self) -> bool:
        return any(leaf.spec.kind is Kind.GROUP for leaf in self._reward.leaves)

    def _read_columns(self) -> tuple[set[str], bool]:
        """Return the columns that the reward names, and whether it may read all."""
        leaves = self._reward.leaves
        columns = {name for leaf in leaves for name in leaf.spec.named_columns}
        return columns, any(leaf.spec.wanted_columns is None for leaf in leaves)

    def _reads_tests(self) -> bool:
        columns, everything = self._read_columns()
        return any(row.is_code for row in self._rows.rows) and (everything or bool(columns & {*TEST_COLUMNS[:4]}))

    def _traits(self) -> Traits:
        """Return what the reward reads: by its parameters, and by what its scores depend on."""
        columns, _ = self._read_columns()
        swapped, rivals = self._trials.swapped.items(), self._trials.rivals.items()
        swaps_full = [self._is_full(index, outcome.score) for index, outcome in swapped if index in self._levels]
        rivals_paid = [self._is_paid(index, outcome.score) for index, outcome in rivals if index in self._levels]
        parameters = {p.name for leaf in self._reward.leaves for p in leaf.spec.parameters}
        return Traits(
            declares_gold=self._rows.gold_column in columns,
            depends=bool(swaps_full) and swaps_full.count(False) * 2 > len(swaps_full),
            tells_apart=len(rivals_paid) >= _ENOUGH_ROWS and rivals_paid.count(False) >= 0.8 * len(rivals_paid),
            tests=self._tests,
            references=self._rows.gold_column is None and not self._tests and bool(columns & {*REFERENCE_COLUMNS}),
            prompt=bool(parameters & {"prompt", "messages"}),
        )

    def _not_applicable(self, family: Family) -> str | None:
        """Return why a family says nothing about the reward; ``None`` for a family that does."""
        if family in self._settings.skipped:
            return f"left out: {self._settings.skipped[family]}"
        if family is Family.AMOUNT:
            return "a group reward: a score depends on the other completions" if self._is_of_groups else None
        if not self._levels:
            return "no row could be audited"
        if self._is_of_groups:
            return "a group reward: a score depends on the other completions"
        if family is Family.CODE:
            return None if self.traits.tests else "the rows have no tests that it reads"
        if family is Family.WORK:
            return None if self._reads_work() else "it does not read work: it pays the answer alone"
        if family is Family.FORMAT:
            return None if self._reads_format() else "it pays no frame in particular"
        if self.traits.answer or (family is Family.ECHO and self.traits.prompt):
            return None
        if self._rows.gold_column is None:
            return "the data has no gold column"
        return f"it does not read the gold column {self._rows.gold_column!r}"

    def _reads_work(self) -> bool:
        """Return whether on most rows references are paid and the bare answer in every frame is not."""
        rows = 0
        for index in self._levels:
            paid = [form for form, outcome in self._trials.honest[index] if self._is_paid(index, outcome.score)]
            framed = [form for form in paid if form.frame is not None]
            pays_reference = any(form.name == REFERENCE for form in framed)
            pays_answer = any(form.frame.common for form in framed if form.frame is not None)
            rows += pays_reference and not pays_answer
        return rows * 2 > len(self._levels)

    def _reads_format(self) -> bool:
        """Return whether it reads the answer, or on most rows pays any text in tags, and not the same text without."""
        if self.traits.answer:
            return True
        tagged_words = [trial for trial in self._trials.attacks if trial.probe.name == WORDS_IN_TAGS]
        pays_words = {trial.row for trial in tagged_words if trial.row in self._levels and self._earns(trial)}
        rows = 0
        for index in self._levels:
            if tagged_words and index not in pays_words:
                continue
            forms = self._trials.honest[index]
            paid = {form.name: self._is_paid(index, outcome.score) for form, outcome in forms}
            tagged = [form.name for form, _ in forms if form.frame is not None and form.frame.tags]
            rows += any(paid[name] and not paid.get(untagged(name)) for name in tagged)
        return rows * 2 > len(self._levels)

    def _is_paid(self, index: int, score: float | None) -> bool:
        """Return whether a score on a row is more than the share that counts as paid."""
        progress = self._levels[index].progress(score)
        return progress is not None and (progress > self._settings.accept_share or progress >= 1.0)

    def _is_full(self, index: int, score: float | None) -> bool:
        """Return whether a score on a row is all that a right answer earns, but for rounding."""
        progress = self._levels[index].progress(score)
        return progress is not None and progress >= 1.0 - ROUNDING

    def _earns(self, trial: ScoredProbe) -> bool:
        """Return whether a trial is paid; one that is right in part only if it is paid in full."""
        probe, gold = trial.probe, self._rows.rows[trial.row].gold
        if probe.rule == CONSTANT_OUTPUT:
            full = self._levels[trial.row].full
            return is_constant_paid(trial.outcome.score, self._zero, full, self._settings.accept_share)
        partial = probe.partial or (self.traits.references and probe.family is not Family.FORMS)
        if not partial and trial.row in self._graded and probe.family is not Family.FORMS:
            partial = probe.family in NEEDS_FRAME or share_parts(gold, probe.text)
        return (self._is_full if partial else self._is_paid)(trial.row, trial.outcome.score)

    def _graded_rows(self) -> set[int]:
        """Return the rows on which answers are paid by degrees, as by a measure of likeness or of closeness.

        They earn several shares on the row itself, or, as on a scale of few steps, two there and several on all rows.
        """
        families = (Family.NEIGHBOUR, Family.OTHER_GOLD)
        tried = [(t.row, t.probe.family, t.outcome.score) for t in self._trials.attacks if t.probe.family in families]
        tried += [(row, Family.FORMS, o.score) for row, forms in enumerate(self._trials.honest) for _, o in forms]
        shares: dict[int, set[float]] = {}
        near: dict[int, set[float]] = {}
        for row, family, score in tried:
            level = self._levels.get(row)
            if level is not None and score is not None and level.floor < score < level.full - ROUNDING:
                shares.setdefault(row, set()).add(round((score - level.floor) / (level.full - level.floor), 4))
                if family is not Family.OTHER_GOLD:
                    near.setdefault(row, set()).add(round(score, 4))
        on_a_scale = len(set().union(*shares.values())) >= _DEGREES
        return {
            row
            for row, row_shares in shares.items()
            if len(near.get(row, ())) >= _DEGREES or (on_a_scale and len(row_shares) >= _DEGREES - 1)
        }

    def _pays_any_item(self) -> bool:
        """Return whether a gold that is a list holds several right answers, as each item that is missing costs nothing.

        It is paid in full without any one of its items, and less with a wrong one before them, as by the rank of the
        first that is right.
        """
        without: dict[int, dict[str, bool]] = {}
        for row, probe, outcome in self._trials.attacks:
            if probe.rule == "item" and row in self._levels and probe.name.endswith("is missing"):
                names = without.setdefault(row, {})
                names[probe.name] = names.get(probe.name, False) or self._is_full(row, outcome.score)
        lists = [names for names in without.values() if len(names) > 1]
        return bool(lists) and all(all(names.values()) for names in lists)

    def _is_right_for_any_item(self, probe: Probe) -> bool:
        """Return whether a changed list is right where one right item is enough: the items before the change are."""
        return self._takes_any_item and probe.rule in ("item", "value") and not probe.name.startswith(WRONG_FIRST)

    def _any_words_are_paid(self, index: int, family: Family) -> bool:
        """Return whether a reward that reads no answers pays other words like the prompt, as one of length does."""
        if family is not Family.ECHO or self.traits.answer:
            return False
        other = self._trials.unrelated.get(index)
        return other is None or self._is_paid(index, other.score)

    def _count(self, counts: FamilyCounts, index: int, probe: Probe, outcome: Outcome) -> Example:
        """Add what was tried on a row to ``counts``, and return it as an example."""
        example = self._example(index, probe, outcome)
        counts.tried += 1
        if outcome.cause is Cause.TIMEOUT or outcome.duration_s > self._settings.slow_share * self._timeout_s:
            counts.slow.append(example)
        elif outcome.cause is not None:
            if outcome.cause.is_breakage:
                counts.crashed.append(example)
            counts.lost += outcome.is_lost
        return example

    def _example(self, index: int, probe: Probe, outcome: Outcome) -> Example:
        """Return a completion that was tried on a row as an example."""
        level, row = self._levels.get(index), self._rows.rows[index]
        gold = row.gold.text if row.gold is not None else None
        return Example(row.line, probe, outcome, level.full if level else None, gold)

    def _findings(self) -> list[AuditFinding]:
        """Return the faults of the reward as a whole; none for a group reward, whose scores cannot be compared."""
        findings: list[AuditFinding] = []
        if self._is_of_groups:
            return findings
        scores = {outcome.score for outcome in self._all_outcomes() if outcome.score is not None}
        scores_silence = any(base[BASE.index("")].score is not None for base in self._trials.base)
        if self._levels and len(scores) == 1 and scores_silence:
            reason = f"it pays {scores.pop():g} for everything that was tried, also for ''"
            findings.append(AuditFinding("constant", reason))
        traits = self.traits
        compared = any(index in self._levels for index in self._trials.swapped)
        if traits.declares_gold and compared and not traits.depends:
            column = self._rows.gold_column
            reason = f"it takes the column {column!r}, but a right answer is paid under another row's gold as well"
            findings.append(AuditFinding("ignores_gold", reason))
        silence = self._silence() if traits.answer else []
        if silence:
            findings.append(AuditFinding("silence_pays", f"{len(silence)} of {len(self._levels)} rows: {silence[0]}"))
        unsteady = [repeat for repeat in self._trials.again if differ(repeat.first, repeat.second)]
        if unsteady:
            repeat = unsteady[0]
            share = f"{len(unsteady)} of {len(self._trials.again)} completions got another score when asked again"
            where = f"{repeat.form.name!r} on {self._rows.unit} {self._rows.rows[repeat.row].line}"
            reason = f"{share}; the first: {_describe(repeat.first)}, then {_describe(repeat.second)} for {where}"
            findings.append(AuditFinding("unsteady", reason))
        return findings

    def _silence(self) -> list[str]:
        """Return a sentence for each row on which a completion without an answer earns more than a wrong answer."""
        better: list[str] = []
        for index in self._levels:
            rival = self._trials.rivals.get(index)
            if rival is None or rival.score is None or rival.cause is not None or self._is_paid(index, rival.score):
                continue
            wrong = f"a wrong answer earns {rival.score:g}"
            for text, outcome in zip(BASE, self._trials.base[index], strict=True):
                if outcome.status is Status.SKIPPED:
                    better.append(f"{text!r} is skipped, which leaves the group's baseline, and {wrong}")
                    break
                if not text and outcome.score is not None and outcome.score > rival.score + ROUNDING:
                    better.append(f"{text!r} earns {outcome.score:g}, and {wrong}")
                    break
        return better


def _describe(outcome: Outcome) -> str:
    has_own_score = outcome.status is not Status.FAILED and outcome.score is not None
    return f"{outcome.score:g}" if has_own_score else str(outcome.status)
