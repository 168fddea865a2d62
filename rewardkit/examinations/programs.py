"""The examination of rows of code: can their tests be run, do they accept the reference, and can they fail?

Tried on each row: its reference, an empty program, one whose functions return ``None``, one whose function returns an
object that says yes to every method, the output that most tests expect, and mutants of the reference.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rewardkit.audit.constant_outputs import constant_source, expected_values, is_constant_paid, most_frequent
from rewardkit.audit.honest import right_answers
from rewardkit.audit.polyglot_programs import empty_function, empty_program
from rewardkit.audit.probe import Family, Probe
from rewardkit.audit.programs import agreeing, code_in, code_language, fenced, function_under_test, language_shown
from rewardkit.audit.rows import TEST_COLUMNS, AuditRow
from rewardkit.declare.decorator import Reward
from rewardkit.declare.spec import Kind
from rewardkit.examinations.code_mutants import code_mutants, returning_none
from rewardkit.examinations.examination import Flaw, FlawKind, RowTrial, RowTrialResult
from rewardkit.shown.text import shortened
from rewardkit.types import Outcome, Status
from sandbox import LANGUAGES, PYTHON, language_name, why_not_run

MUTANTS = 8  # mutants of a reference that are tried
_SOLUTIONS = ("solutions", "answers")  # columns with a list of references, or its JSON
_TESTS = [name for name in TEST_COLUMNS if name != "entry_point"]
_OUTPUT_CHARS = 40
_CANNOT_FAIL = "cannot fail"  # in the reason of a reward that sees by itself that tests pay everything, and skips them
_REFERENCE, _EMPTY, _MUTANT, _OBJECT, _CONSTANT = "reference", "empty", "mutant", "object", "constant"
_CONSTANT_SHARE = 0.5  # of full pay; a row is named on which a constant output earns as much

_KINDS = {
    "other_language": FlawKind("the jail does not run the row's language, so it is skipped", False),
    "reference_language": FlawKind("the reference is in another language than the row says", True),
    "cannot_run": FlawKind("the tests cannot be run, so the row is skipped", True),
    "reference_fails": FlawKind("the reference does not pass the tests", True),
    "no_assert": FlawKind("nothing in the tests can fail, so the row is skipped", True),
    "cannot_fail": FlawKind("a program without a solution passes the tests", True),
    "trusts_objects": FlawKind("the tests take the word of an object that the completion returns", False),
    "constant_passes": FlawKind("one output for every input passes half of the tests or more", False),
    "mutants_live": FlawKind("a reference changed in one place passes the tests", False),
    "no_reference": FlawKind("there is no reference, so no mutants are tried", False),
}


_TRUST = (
    "an object whose every method returns True passes them; compare with '==', or check isinstance(value, str) first"
)


class ProgramExamination:
    """The doctor of rows of code; see :class:`~rewardkit.examinations.examination.Examination`."""

    name = "programs"
    kinds: Mapping[str, FlawKind] = _KINDS
    untold_reason = "their tests tell nothing"

    def suits(self, reward: Reward[..., Any], gold_column: str | None) -> bool:
        """Return whether a reward of single completions reads tests."""
        return reward.spec.kind is not Kind.GROUP and not set(_TESTS).isdisjoint(reward.spec.named_columns)

    def applies(self, row: AuditRow) -> bool:
        """Return whether a row has tests."""
        return any(row.columns.get(name) for name in _TESTS)

    def trials(self, row: AuditRow) -> Sequence[RowTrial]:
        """Return the reference, the programs without a solution, and mutants of the reference."""
        source, language = _reference(row), code_language(row)
        if language != PYTHON:
            return _polyglot_trials(row, source, language)
        if source is None:
            stub = f"def {function_under_test(row)}(*arguments, **named):\n    return None"
            stub_trial = _trial(_EMPTY, "a function that returns None", stub)
            return [_trial(_EMPTY, "an empty program", "pass"), stub_trial, *_objects(row), *_constant(row, language)]
        trials = [_trial(_REFERENCE, "the reference", source), _trial(_EMPTY, "an empty program", "pass")]
        stub_of_reference = returning_none(source)
        if stub_of_reference is not None:
            trials.append(_trial(_EMPTY, "the reference with functions that return None", stub_of_reference))
        trials += [*_objects(row), *_constant(row, language)]
        return [*trials, *(_trial(_MUTANT, mutant.label, mutant.source) for mutant in code_mutants(source, MUTANTS))]

    def flaws(
        self, reward: Reward[..., Any], row: AuditRow, results: Sequence[RowTrialResult]
    ) -> Sequence[Flaw] | None:
        """Return what is wrong with a row; where its tests cannot be run or fail, nothing is said of mutants.

        ``None`` where the reward skips the row and says nothing of its tests, or reads no test that the row has.
        """
        mismatch = _language_flaw(reward, row, _reference(row))
        if mismatch is not None:
            return [mismatch]
        scored = {role: [result for result in results if result.trial.role == role] for role in (_EMPTY, _MUTANT)}
        first = results[0].outcome
        if any(result.outcome.is_lost for result in results):
            return []
        if first.status is Status.SKIPPED and not (first.reason and _has_tests_for(reward, row)):
            return None
        if first.status is not Status.SCORED:
            reason = first.reason or first.error or "it was not scored"
            return [Flaw("no_assert" if _CANNOT_FAIL in reason else "cannot_run", reason)]
        reference = next((result.outcome for result in results if result.trial.role == _REFERENCE), None)
        full = _full_score(reward, reference)
        flaws = [] if reference is not None else [Flaw("no_reference", "no column holds a solution")]
        if reference is not None and not _is_paid(reference, full):
            flaws.append(Flaw("reference_fails", f"it scores {reference.score:g}: {reference.reason or 'no reason'}"))
        lazy = [result.trial.probe.name for result in scored[_EMPTY] if _is_paid(result.outcome, full)]
        if lazy:
            return [*flaws, Flaw("cannot_fail", f"{lazy[0]} scores {full:g}")]
        if any(result.trial.role == _OBJECT and _is_paid(result.outcome, full) for result in results):
            flaws.append(Flaw("trusts_objects", _TRUST))
            return flaws
        flaws += _paid_constant(results, full)
        living = [result.trial.probe.name for result in scored[_MUTANT] if _is_paid(result.outcome, full)]
        if living and {flaw.kind for flaw in flaws} <= {"constant_passes"}:
            count = f"{len(living)} of {len(scored[_MUTANT])} mutants"
            flaws.append(Flaw("mutants_live", f"{count} pass, such as {living[0]}"))
        return flaws


def _has_tests_for(reward: Reward[..., Any], row: AuditRow) -> bool:
    """Return whether a row has a value in a column of tests that the reward reads."""
    return any(row.columns.get(name) for name in _TESTS if name in reward.spec.named_columns)


def _objects(row: AuditRow) -> list[RowTrial]:
    """Return the program whose result says yes to every method, where tests could ask it."""
    return [_trial(_OBJECT, "what says yes to every method", agreeing(row))] if row.columns.get("tests") else []


def _constant(row: AuditRow, language: str) -> list[RowTrial]:
    """Return the program that gives what several tests expect, whatever its input; ``[]`` where each expects another.

    A row's only test, or two that differ, say nothing of constants: no output is right on other rows too.
    """
    outputs = expected_values(row)
    output, count = most_frequent(outputs) if outputs else (None, 0)
    source = constant_source(row, output) if count > 1 else None
    if source is None:
        return []
    label = f"{shortened(repr(output), _OUTPUT_CHARS)}, expected by {count:,} of {len(outputs):,} tests,"
    return [_trial(_CONSTANT, label, source, language)]


def _paid_constant(results: Sequence[RowTrialResult], full: float) -> list[Flaw]:
    return [
        Flaw("constant_passes", f"{result.trial.probe.name} earns {result.outcome.score:g} of {full:g} for any input")
        for result in results
        if result.trial.role == _CONSTANT and is_constant_paid(result.outcome.score, 0.0, full, _CONSTANT_SHARE)
    ]


def _polyglot_trials(row: AuditRow, source: str | None, language: str) -> list[RowTrial]:
    """Return the reference of a row in another language, and programs without a solution."""
    function = empty_function(row, language)
    return [
        *([] if source is None else [_trial(_REFERENCE, "the reference", source, language)]),
        _trial(_EMPTY, "an empty program", empty_program(language), language),
        _trial(_EMPTY, "a program that prints hello", LANGUAGES[language].hello, language),
        *([] if function is None else [_trial(_EMPTY, "a function that computes nothing", function, language)]),
        *_constant(row, language),
    ]


def _trial(role: str, label: str, source: str, language: str = PYTHON) -> RowTrial:
    return RowTrial(role, Probe(Family.CODE, label, fenced(source, language)))


def _full_score(reward: Reward[..., Any], reference: Outcome | None) -> float:
    """Return what a right program earns: the reward's highest score, or else what the reference earns."""
    if reward.options.score_range is not None:
        return float(reward.options.score_range[1])
    return 1.0 if reference is None or not reference.score else reference.score


def _is_paid(outcome: Outcome, full: float) -> bool:
    return outcome.score is not None and outcome.cause is None and outcome.score >= full


def _reference(row: AuditRow) -> str | None:
    """Return the source of a row's reference; of several, the first."""
    forms = right_answers(row) if row.references and row.is_code else []
    if forms:
        return code_in(forms[0].text)
    texts = [text for name in _SOLUTIONS for text in _listed(row.columns.get(name))]
    return code_in(texts[0]) if texts else None


def _listed(value: object) -> Iterable[str]:
    """Return the texts of a list, or of JSON that holds one."""
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError:
            return []
    return [text for text in value if isinstance(text, str) and text.strip()] if isinstance(value, list) else []


_ALIKE = (frozenset({"c", "cpp"}), frozenset({"javascript", "typescript"}))
"""Languages whose source can be of either."""


def _language_flaw(reward: Reward[..., Any], row: AuditRow, source: str | None) -> Flaw | None:
    """Return what is wrong with a row's language: its reference is in another one, or the jail does not run it."""
    named = row.columns.get("language") if "language" in reward.spec.named_columns else None
    if not named:
        return None
    language = language_name(str(named))
    own = None if source is None else language_shown(source, language)
    if own is not None and own != language and not any({own, language} <= alike for alike in _ALIKE):
        return Flaw("reference_language", f"the row says {language}, and its reference is in {own}")
    reason = why_not_run(str(named))
    return None if reason is None else Flaw("other_language", reason)
