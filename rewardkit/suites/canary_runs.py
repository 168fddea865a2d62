"""The runs of a suite in which some of its tests expect what is wrong."""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Iterable, Sequence
from random import Random

from rewardkit.suites.canaries import Canaries
from rewardkit.suites.perturbations import STRONG_KINDS
from rewardkit.suites.runners import Twins
from rewardkit.suites.suite_jail import GradedRun
from rewardkit.suites.twins import ChangedTest, Twin

_MORE_RUNS = 24  # beyond those that each place needs by itself


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
        weak = {name for name, kind in kinds.items() if kind not in STRONG_KINDS}
        choices = {name: [1] if name in weak else self._twins.choices(name) for name in self._in_order(kinds)}
        canaries = Canaries(choices, self._wanted, self._random, weak, self._twins.disturbed)
        runs, most = 0, _MORE_RUNS + canaries.runs_alone()
        while not canaries.are_done() and runs < most and not self.forged and not self.unsteady:
            perturbed = canaries.draw()
            twin = self._twins.draw(perturbed, self._random, canaries.sites(perturbed))
            files = canaries.open_files()
            run = self._run(twin, [module for module in self._modules if module in files])
            runs += 1
            there = [name for name in names if name.split("::")[0] in files]
            passing, broken = self._note(run, twin, there, perturbed, canaries)
            odd = {self._function(name) for name in passing | broken}
            for group in canaries.settle(odd):
                runs += 1
                if not self._confirm(group, passing, broken, names, canaries):
                    break
        self.bits = canaries.guarded_bits()

    def _function(self, name: str) -> str:
        return self._twins.function_of(name)

    def _passes(self, name: str) -> bool:
        """Return whether a test as written passes with all that it starts."""
        return self._outcome(self._written, name) == "passed"

    def _in_order(self, functions: Collection[str]) -> list[str]:
        """Return functions in the order in which their tests run."""
        order = {self._function(name): index for index, name in enumerate(self._written.collected)}
        return sorted(functions, key=lambda function: order.get(function, len(order)))

    def _note(
        self, run: GradedRun, twin: Twin, names: Sequence[str], perturbed: Collection[str], canaries: Canaries
    ) -> tuple[set[str], set[str]]:
        """Note what a canary shows; return the changed tests that passed, and those as written that did not pass."""
        renamed = self._renamed(run.collected)
        passing: set[str] = set()
        broken: set[str] = set()
        for name in names:
            function = self._function(name)
            outcome = self._outcome(run, renamed.get(name, name))
            if function in perturbed and outcome == "failed":
                change = self._change_of(twin.changes[function], name, names)
                canaries.note(function, change, shows_value=_shows(change, run.compared.get(renamed.get(name, name))))
            elif function in perturbed:
                (passing if outcome == "passed" else broken).add(name)
            elif outcome != "passed" and not canaries.says_nothing(function):
                broken.add(name)
        return passing, broken

    def _confirm(
        self, group: str, passing: set[str], broken: set[str], names: Sequence[str], canaries: Canaries
    ) -> bool:
        """Look, with one test changed or none, what tests that are changed one at a time showed; return if to go on."""
        suspects = {name for name in passing if canaries.group_of(self._function(name)) == group}
        changed = {self._function(min(suspects))} if suspects else set()
        twin = self._twins.draw(changed, self._random, canaries.sites(changed))
        run = self._run(twin, self._modules)
        again_passing, again_broken = self._note(run, twin, names, changed, Canaries({}, 0, self._random))
        self.forged |= again_passing
        self.unsteady |= set() if changed else again_broken
        if self.forged or self.unsteady:
            return False
        if not canaries.merge():  # it is neither, again and again
            self.unsteady |= suspects or broken
            return False
        return True

    def _outcome(self, run: GradedRun, name: str) -> str:
        """Return what became of a test, which has failed if one of its rows has."""
        if name in run.results or self._twins.has_rows:
            return run.results[name].outcome if name in run.results else "missing"
        outcomes = {result.outcome for row, result in run.results.items() if self._function(row) == name}
        return next((outcome for outcome in ("failed", "skipped", "passed") if outcome in outcomes), "missing")

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
