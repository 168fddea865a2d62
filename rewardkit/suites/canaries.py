"""Which tests expect something wrong in the next run, and how much of a forger's luck is used up."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from types import MappingProxyType

from rewardkit.suites.twins import ChangedTest


class Canaries:
    """The draws of one grading.

    What is drawn are assertions: statements of a test that goes on where they fail, or a test as a whole. An assertion
    has places in which it can be changed, such as one for each assert of a test. In each run one of them is at stake,
    the one with the fewest bits, so that code which is right in all others is seen in that one too.

    An assertion of whose true value there are ``r`` candidates, for who sees only the changed one, is changed with the
    probability ``r / (r + 1)``. A forger who acts as if it were as written survives with 1 / (r + 1), and so does a
    forger who acts as if it were changed and guesses the value: log2(r + 1) bits, whatever else is known, such as how
    many runs there have been. A test that does not show its value has r = 1, and begins anew.

    Assertions may depend on what earlier ones did, and then right code fails some that are as written. From then on one
    assertion of that test is changed at a time, and what comes after it there says nothing; then one of that file,
    then one of all.

    Tests may share the constant that has their expected values. In each run one of them may be changed, and where it
    is, the others say nothing. Which one that is does not depend on what is drawn for it.

    Args:
        choices: The candidates of each place of the assertions, by name, in the order in which they run. Weak ones,
            of which the text shows whether they are changed, as ``not`` does, have no place: they must fail once where
            they are and pass once where they are not, and no bits are counted for them.
        bits: How many each place must have in the end.
        random: Where they are drawn from.
        disturbed: The assertions and tests that also read what is changed of an assertion, by that one's name.
        tests: The tests of assertions that are no whole test.
    """

    def __init__(
        self,
        choices: Mapping[str, Sequence[int]],
        bits: float,
        random: Random,
        disturbed: Mapping[str, Collection[str]] | None = None,
        tests: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self._weak = {name for name, counts in choices.items() if not counts}
        self._disturbed_by = {name: frozenset(others) for name, others in (disturbed or {}).items() if name in choices}
        self._disturbed: set[str] = set()  # in the run that was drawn
        self._sites = {name: [_Site(count) for count in counts] for name, counts in choices.items()}
        self._wanted = bits
        self._random = random
        self._order = {name: index for index, name in enumerate(choices)}
        self._failed: set[str] = set()  # those that have failed where they were changed
        self._passed: set[str] = set()  # those that have passed where they were not
        self._tests = tests
        self._sizes = Counter(tests.get(name, name) for name in choices)
        self._alone: set[str] = set()  # the groups of which one assertion is changed at a time
        self._files: set[str] = set()  # those that are a group
        self._merged = False
        self._at_stake: set[str] = set()
        self._revealed: dict[str, int | None] = {}
        self._changed_alone: dict[str, str] = {}

    def group_of(self, name: str) -> str:
        """Return what an assertion shares its state with: its test, its file, or all."""
        if self._merged:
            return ""
        file = _file(name)
        return file if file in self._files else self._tests.get(name, name)

    def _site(self, name: str) -> int:
        """Return the index of the place of a test that is at stake: the one with the fewest bits."""
        bits = [site.bits() for site in self._sites[name]]
        return bits.index(min(bits))

    def sites(self, names: Collection[str]) -> dict[str, int]:
        """Return the places at stake of tests; a weak one has none, and is changed anywhere."""
        return {name: self._site(name) for name in names if name not in self._weak}

    def _bits(self, name: str) -> float:
        return min((site.bits() for site in self._sites[name]), default=math.inf)

    def _is_guarded(self, name: str) -> bool:
        if name in self._weak:
            return name in self._failed and name in self._passed
        return name in self._failed and self._bits(name) >= self._wanted

    def are_done(self) -> bool:
        return all(map(self._is_guarded, self._sites))

    def runs_alone(self) -> int:
        """Return how many runs guard all tests if one of them is changed at a time; what is weak is seen in two."""
        sites = [site for name, sites in self._sites.items() if name not in self._weak for site in sites]
        return 2 * len(self._weak) + sum(math.ceil(self._wanted / math.log2(site.choices + 1)) for site in sites)

    def guarded_bits(self) -> dict[str, float]:
        """Return the bits of each assertion that is guarded; infinity for weak ones, which lose none."""
        return {name: self._bits(name) for name in self._sites if self._is_guarded(name)}

    def open_files(self) -> set[str]:
        """Return the files whose tests have to run again: all, where tests of several depend on each other."""
        return {_file(name) for name in self._sites if self._merged or not self._is_guarded(name)}

    def draw(self) -> set[str]:
        """Return the names of the tests that are changed in the next run of the open files."""
        self._revealed, self._changed_alone = {}, {}
        self._at_stake = set()
        waiting: set[str] = set()
        for name in self._sites:
            group = self.group_of(name)
            if self._is_guarded(name) or group in waiting:
                continue
            self._at_stake.add(name)
            if group in self._alone:
                waiting.add(group)
        self._at_stake -= self._rivals()
        changed = {name for name in sorted(self._at_stake) if self._random.random() < self._odds(name)}
        disturbed = set().union(*(self._disturbed_by.get(name, ()) for name in changed))
        changed -= disturbed
        self._at_stake -= disturbed
        self._disturbed = set().union(*(self._disturbed_by.get(name, ()) for name in changed))
        self._changed_alone = {self.group_of(name): name for name in changed if self.group_of(name) in self._alone}
        return changed

    def _rivals(self) -> set[str]:
        """Return the tests at stake that wait, because another one of those with their constant has its turn."""
        sharing = [name for name in sorted(self._at_stake) if name in self._disturbed_by]
        waiting: set[str] = set()
        self._random.shuffle(sharing)
        for name in sorted(sharing, key=self._bits):
            if name not in waiting:
                waiting |= self._disturbed_by[name] & self._disturbed_by.keys()
        return waiting

    def _odds(self, name: str) -> float:
        if name in self._weak:  # it has no bits to lose
            return 0.0 if name in self._failed else 1.0
        choices = self._sites[name][self._site(name)].choices
        return choices / (choices + 1)

    def says_nothing(self, name: str) -> bool:
        """Return whether a test as written reads what is changed, or comes after the one of its group that is."""
        if name in self._disturbed:
            return True
        changed = self._changed_alone.get(self.group_of(name))
        return changed is not None and self._order.get(name, len(self._order)) > self._order[changed]

    def note(self, name: str, change: ChangedTest | None, *, shows_value: bool) -> None:
        """Note that a changed test failed, and whether the value that it was written with came out."""
        choices = least_choices([change]) if change is not None and shows_value else None
        before = self._revealed.get(name, choices)
        self._revealed[name] = None if before is None or choices is None else min(before, choices)

    def silence(self, name: str) -> None:
        """Take from an assertion its part in the run: it was not reached, because one before it failed."""
        self._at_stake.discard(name)

    def settle(self, odd: Collection[str]) -> list[str]:
        """Count what the run has shown of groups in which nothing was odd; change one at a time in the others.

        Return the groups in which something was odd although that was so already.
        """
        groups = {self.group_of(name) for name in odd}
        for name in self._at_stake:
            if self.group_of(name) not in groups:
                self._count(name)
        wholes = {group for group in groups if "::" in group and self._sizes[group] <= 1}
        self._files.update(map(_file, wholes))
        groups = (groups - wholes) | set(map(_file, wholes))
        again = sorted(groups & self._alone)
        self._alone |= groups
        return again

    def _count(self, name: str) -> None:
        (self._failed if name in self._revealed else self._passed).add(name)
        if name in self._weak:
            return
        site = self._sites[name][self._site(name)]
        if name in self._revealed:
            choices = self._revealed[name]
            if choices is not None:
                site.choices = min(choices, site.choices)
            elif site.choices > 1:  # what it was supposed to show did not come out, and this run was drawn for that
                site.choices, site.runs = 1, -1
        site.runs += 1

    def widen(self, group: str) -> bool:
        """Change one at a time of more than a group: of its file, or of all; return whether there is more."""
        if self._merged:
            return False
        if "::" in group:
            self._files.add(_file(group))
            self._alone.add(_file(group))
        else:
            self._merged, self._alone = True, {""}
        return True


@dataclass(slots=True)
class _Site:
    """Where an assertion can be changed."""

    choices: int  # as long as it shows its value
    runs: int = 0  # in which it was at stake

    def bits(self) -> float:
        return self.runs * math.log2(self.choices + 1)


def _file(name: str) -> str:
    return name.split("::")[0]


def least_choices(changes: Sequence[ChangedTest]) -> int:
    """Return how many values each test of a function must be guessed among; a test may show two."""
    return max(1, min((change.choices for change in changes), default=1) // 2)
