"""The runs of a suite in which some of its tests expect what is wrong."""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from random import Random
from typing import NamedTuple

from rewardkit.suites.canaries import Canaries
from rewardkit.suites.perturbations import STRONG_KINDS
from rewardkit.suites.runners import Twins
from rewardkit.suites.soft_statements import Assertion
from rewardkit.suites.suite_jail import GradedRun, StatementsRun
from rewardkit.suites.twins import ChangedTest, Twin

_MORE_RUNS = 24  # beyond those that each place needs by itself
_CONFIRMATIONS = 2  # of a forgery
_SIDES = 2  # of a comparison


class _Oddities(NamedTuple):
    """What a canary shows that right code does not: by assertions, with the names of the results that show it.

    Attributes:
        passing: Those that passed although they were changed.
        broken: Those that did not pass as they are written.
    """

    passing: dict[str, set[str]]
    broken: dict[str, set[str]]


class CanaryRuns:
    """What canaries show of the tests of a suite that passes as written.

    Args:
        run: Runs the tests of some modules of a changed suite.
        twins: The suite's tests.
        written: What the suite as written has shown.
        modules: Its files of tests.
        bits: How many each place of a test must have.
        random: Where canaries are drawn from.

    Attributes:
        forged: The tests that passed although they were changed.
        unsteady: Those that do not pass each time as written.
        failing: Those of which expected subtests pass, and not the whole.
        bits: Of each test that is guarded, the bits of its least guarded place.
    """

    def __init__(
        self,
        run: Callable[[Twin, Sequence[str]], GradedRun],
        twins: Twins,
        written: GradedRun,
        modules: Sequence[str],
        bits: float,
        random: Random,
    ) -> None:
        self._run = run
        self._twins = twins
        self._written = written
        self._modules = modules
        self._wanted = bits
        self._random = random
        self._assertions: Mapping[str, Sequence[Assertion]] = {}
        self._is_soft = False
        self.forged: set[str] = set()
        self.unsteady: set[str] = set()
        self.failing: set[str] = set()
        self.bits: dict[str, float] = {}

    def run(self, names: Sequence[str]) -> None:
        """Run canaries until the chance of a forgery is small enough for each expected test that can be one."""
        if not self._twins.has_rows:
            names = list(dict.fromkeys(map(self._function, names)))
        expected = {self._function(name) for name in names}
        kinds = {test.name: test.kind for test in self._twins.tests if test.kind and test.name in expected}
        if not kinds or self._wanted <= 0:
            return
        self.failing = {name for name in kinds if not self._twins.has_rows and not self._passes(name)}
        if self.failing:
            return
        assertions = {name: self._twins.assertions(name) for name in self._in_order(kinds)}
        self._guard(names, kinds, assertions, is_soft=True)
        if self.unsteady and any(assertion.lines for own in assertions.values() for assertion in own):
            self.unsteady.clear()  # that tests went on may be why
            self.bits.clear()
            whole = {name: (Assertion(name, ()),) for name in assertions}
            self._guard(names, kinds, whole, is_soft=False)

    def _guard(
        self,
        names: Sequence[str],
        kinds: Mapping[str, str],
        assertions: Mapping[str, Sequence[Assertion]],
        *,
        is_soft: bool,
    ) -> None:
        """Run canaries until each of the assertions of the tests has the bits that it must have."""
        self._assertions, self._is_soft = assertions, is_soft
        owners = {assertion.name: test for test, own in assertions.items() for assertion in own}
        choices = {name: self._twins.choices(name) for name in owners}
        canaries = Canaries(choices, self._wanted, self._random, self._disturbed(), owners)
        runs, most = 0, _MORE_RUNS + canaries.runs_alone()
        while not canaries.are_done() and runs < most and not self.forged and not self.unsteady:
            perturbed = canaries.draw()
            files = canaries.open_files()
            run, twin = self._run_twin(perturbed, canaries, [module for module in self._modules if module in files])
            runs += 1
            there = [name for name in names if name.split("::")[0] in files]
            seen = self._note(run, twin, there, canaries)
            for group in canaries.settle(seen.passing.keys() | seen.broken.keys()):
                runs += 1
                if not self._confirm(group, seen, names, canaries):
                    break
        guarded = canaries.guarded_bits()
        for test, own in assertions.items():
            if kinds[test] in STRONG_KINDS and all(assertion.name in guarded for assertion in own):
                self.bits[test] = min(guarded[assertion.name] for assertion in own)

    def _disturbed(self) -> dict[str, set[str]]:
        """Return what says nothing when an assertion is changed: what reads the change too, in its test or others."""
        disturbed: dict[str, set[str]] = {}
        for test, own in self._assertions.items():
            others = self._twins.disturbed.get(test, frozenset())
            names = {name for other in others for name in (other, *self._names_of(other))}
            for assertion in own:
                if names or assertion.disturbed:
                    disturbed[assertion.name] = names | assertion.disturbed
        return disturbed

    def _names_of(self, test: str) -> list[str]:
        return [assertion.name for assertion in self._assertions.get(test, ())]

    def _run_twin(
        self, perturbed: Collection[str], canaries: Canaries, modules: Sequence[str]
    ) -> tuple[GradedRun, Twin]:
        twin = self._twins.draw(perturbed, self._random, canaries.sites(perturbed), is_soft=self._is_soft)
        return self._run(twin, modules), twin

    def _function(self, name: str) -> str:
        return self._twins.function_of(name)

    def _passes(self, name: str) -> bool:
        """Return whether a test as written passes with all that it starts."""
        return self._outcome(self._written, name) == "passed"

    def _in_order(self, functions: Collection[str]) -> list[str]:
        """Return functions in the order in which their tests run."""
        order = {self._function(name): index for index, name in enumerate(self._written.collected)}
        return sorted(functions, key=lambda function: order.get(function, len(order)))

    def _note(self, run: GradedRun, twin: Twin, names: Sequence[str], canaries: Canaries) -> _Oddities:
        """Note what a canary shows; return what is odd in it."""
        renamed = self._renamed(run.collected)
        seen = _Oddities({}, {})
        for name in names:
            function, row = self._function(name), renamed.get(name, name)
            own = self._assertions.get(function) or (Assertion(function, ()),)
            outcome = self._outcome(run, row)
            changes = {
                assertion.name: self._change_of(twin.changes[assertion.name], name, names)
                for assertion in own
                if assertion.name in twin.changes
            }
            if function in changes and not self._twins.has_rows:
                outcome = self._outcome_of_rows(run, function, len(twin.changes[function])) or outcome
            if own[0].lines:
                report = run.statements.get(row, StatementsRun())
                firsts = {changed: twin.changes[changed][0] for changed in changes}
                stopped = run.stopped.get(row, frozenset()) if outcome == "failed" else frozenset()
                self._note_statements(name, outcome, report, stopped, firsts, seen, canaries)
                for changed, change in changes.items():
                    sides = _failed_sides(report, firsts[changed].line, firsts[changed].row)
                    if stopped and stopped <= firsts[changed].lines:
                        sides.append(run.compared.get(row))
                    if sides:
                        canaries.note(changed, change, shows_value=_shows_alone(change, sides))
            elif not changes:
                if outcome != "passed" and not canaries.says_nothing(function):
                    seen.broken.setdefault(function, set()).add(name)
            elif outcome == "failed" and _is_there(self._stopped(run, row), twin.changes[function][0]):
                change = changes[function]
                canaries.note(function, change, shows_value=_shows(change, run.compared.get(row)))
            elif outcome == "failed":  # at another one, which shows that this one passed
                seen.passing.setdefault(function, set()).add(name)
            else:
                (seen.passing if outcome == "passed" else seen.broken).setdefault(function, set()).add(name)
        return seen

    def _note_statements(
        self,
        name: str,
        outcome: str,
        report: StatementsRun,
        stopped: frozenset[int],
        changed: Mapping[str, ChangedTest],
        seen: _Oddities,
        canaries: Canaries,
    ) -> None:
        """Note what is odd in a test that goes on where it fails.

        Args:
            name: The test.
            outcome: What became of what is not soft in it.
            report: What became of its soft statements.
            stopped: The line at which it ended nevertheless; empty where it did not.
            changed: What should fail.
            seen: Where oddities are added.
            canaries: What was drawn.
        """
        own = self._assertions[self._function(name)]
        telling = [assertion for assertion in own if not canaries.says_nothing(assertion.name)]
        is_stopped = outcome != "passed"
        failed = {
            other
            for other, change in changed.items()
            if (stopped and stopped <= change.lines) or _failed_sides(report, change.line, change.row)
        }
        is_excused = outcome == "failed" and bool(failed)
        for assertion in telling:
            change = changed.get(assertion.name)
            lines = assertion.lines if change is None else (change.line,)
            has_failed = assertion.name in failed or (
                change is None and any(_failed_sides(report, line, assertion.row) for line in lines)
            )
            is_over = all(_is_over(report, line, assertion, is_stopped=is_stopped) for line in lines)
            if is_stopped and not is_excused:
                odd: dict[str, set[str]] | None = seen.broken
            elif has_failed:
                odd = seen.broken if change is None else None
            elif is_over:
                odd = seen.passing if change is not None else None
            else:
                odd = None if is_stopped else seen.broken
                canaries.silence(assertion.name)
            if odd is not None:
                odd.setdefault(assertion.name, set()).add(name)

    def _confirm(self, group: str, seen: _Oddities, names: Sequence[str], canaries: Canaries) -> bool:
        """Look, with one assertion changed or none, what a group showed of which one is changed at a time.

        Return whether to go on.
        """
        suspects = {name for name in seen.passing if canaries.group_of(name) == group}
        changed = {min(suspects)} if suspects else set()
        for _ in range(_CONFIRMATIONS):
            run, twin = self._run_twin(changed, canaries, self._modules)
            again = self._note(run, twin, names, Canaries({}, 0, self._random))
            if not again.passing:  # a change may by chance be none, as where code compares by rules of its own
                break
        self.forged |= set().union(*again.passing.values())
        self.unsteady |= set() if changed else set().union(*again.broken.values())
        if self.forged or self.unsteady:
            return False
        if not canaries.widen(group):  # it is neither, again and again
            odd = suspects or {name for name in seen.broken if canaries.group_of(name) == group}
            rows = {**seen.broken, **seen.passing}
            self.unsteady |= set().union(*(rows[name] for name in odd))
            return False
        return True

    def _outcome(self, run: GradedRun, name: str) -> str:
        """Return what became of a test, which has failed if one of its rows has."""
        if name in run.results or self._twins.has_rows:
            return run.results[name].outcome if name in run.results else "missing"
        outcomes = {result.outcome for row, result in run.results.items() if self._function(row) == name}
        return next((outcome for outcome in ("failed", "skipped", "passed") if outcome in outcomes), "missing")

    def _outcome_of_rows(self, run: GradedRun, function: str, count: int) -> str:
        """Return "passed" for a test that was changed in several rows of which one passed; "" for another one."""
        rows = [result.outcome for name, result in run.results.items() if self._function(name) == function]
        return "passed" if count > 1 and (len(rows) < count or set(rows) != {"failed"}) else ""

    def _stopped(self, run: GradedRun, name: str) -> frozenset[int]:
        """Return the lines at which a test has failed, with its rows where these have no result of their own."""
        if self._twins.has_rows:
            return run.stopped.get(name, frozenset())
        return frozenset().union(*(lines for row, lines in run.stopped.items() if self._function(row) == name))

    def _change_of(self, changes: Sequence[ChangedTest], name: str, names: Sequence[str]) -> ChangedTest | None:
        """Return the change of one test of a function, whose tests have one each, or one for all."""
        if len(changes) == 1:
            return changes[0]
        own = [other for other in names if self._function(other) == self._function(name)]
        return changes[own.index(name)] if len(own) == len(changes) else None

    def _renamed(self, perturbed: Iterable[str]) -> dict[str, str]:
        """Return the names of tests in a canary, where parameters are part of them, by order in each function."""
        if not self._twins.has_rows:
            return {}
        names: dict[str, list[str]] = {}
        for name in perturbed:
            names.setdefault(self._function(name), []).append(name)
        places: dict[str, int] = {}
        renamed = {}
        for name in self._written.collected:
            function = self._function(name)
            index = places[function] = places.get(function, -1) + 1
            if index < len(names.get(function, ())):
                renamed[name] = names[function][index]
        return renamed


def _failed_sides(report: StatementsRun, line: int, row: int | None) -> list[tuple[str, str] | None]:
    """Return what was compared where a statement failed, in one round or in any."""
    rows = report.failed.get(line, {})
    if row is None:
        return list(rows.values())
    return [rows[row]] if row in rows else []


def _is_over(report: StatementsRun, line: int, assertion: Assertion, *, is_stopped: bool) -> bool:
    """Return whether all rounds of a statement that count for an assertion have been gone through."""
    rounds = report.rounds.get(line, 0)
    if assertion.row is None:
        return rounds > 0 and not (is_stopped and assertion.loop)
    return rounds > assertion.row if is_stopped else rounds == assertion.rounds


def _is_there(lines: frozenset[int], change: ChangedTest) -> bool:
    """Return whether a test has failed where it was changed, and only there, as far as that is known."""
    return not change.lines or (bool(lines) and lines <= change.lines)


def _shows_alone(change: ChangedTest | None, rounds: Sequence[tuple[str, str] | None]) -> bool:
    """Return whether the value that a test was written with came out, and beside it no more than a changed one.

    The rounds of a loop are as many as the code says: who shows all values there are shows the right one too.
    """
    texts = {text for sides in rounds if sides is not None for text in sides}
    return len(texts) <= _SIDES and any(_shows(change, sides) for sides in rounds)


def _shows(change: ChangedTest | None, sides: tuple[str, str] | None) -> bool:
    """Return whether one side of the comparison that failed is the value that the test was written with."""
    if change is None or change.choices <= 1 or sides is None:
        return False
    for side in sides:
        try:
            value = ast.literal_eval(side)
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            continue
        if type(value) is type(change.original) and value == change.original:
            return True
    return False
