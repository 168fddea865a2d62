"""Which tests expect something wrong in the next run, and how much of a forger's luck is used up."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from random import Random

from rewardkit.suites.twins import ChangedTest


class Canaries:
    """The draws of one grading.

    A test has places in which it can be changed, such as one for each of its asserts. In each run one of them is at
    stake, the one with the fewest bits, so that code which is right in all others is seen in that one too.

    A test of whose true value there are ``r`` candidates, for who sees only the changed one, is changed with the
    probability ``r / (r + 1)``. A forger who acts as if it were as written survives with 1 / (r + 1), and so does a
    forger who acts as if it were changed and guesses the value: log2(r + 1) bits, whatever else is known, such as how
    many runs there have been. A test that does not show its value has r = 1, and begins anew.

    The tests of a file may depend on what earlier ones did, and then right code fails some that are as written. From
    then on one test of that file is changed at a time, and what comes after it in its file says nothing.

    Tests may share the constant that has their expected values. In each run one of them may be changed, and where it
    is, the others say nothing. Which one that is does not depend on what is drawn for it.

    Args:
        choices: The candidates of each place of the tests that can be changed, by name, in the order in which they run.
        bits: How many each place must have in the end.
        random: Where they are drawn from.
        weak: Those of which the text shows whether they are changed, as ``not`` does. They must fail once where they
            are; no bits are counted for them.
        disturbed: The tests that also read what is changed of a test, by that test's name.
    """

    def __init__(
        self,
        choices: Mapping[str, Sequence[int]],
        bits: float,
        random: Random,
        weak: Collection[str] = frozenset(),
        disturbed: Mapping[str, Collection[str]] | None = None,
    ) -> None:
        self._weak = weak
        self._disturbed_by = {name: frozenset(others) for name, others in (disturbed or {}).items() if name in choices}
        self._disturbed: set[str] = set()  # in the run that was drawn
        self._sites = {name: [_Site(count) for count in counts] for name, counts in choices.items()}
        self._wanted = bits
        self._random = random
        self._order = {name: index for index, name in enumerate(choices)}
        self._failed: set[str] = set()  # those that have failed where they were changed
        self._alone: set[str] = set()  # the groups of which one test is changed at a time
        self._merged = False
        self._at_stake: set[str] = set()
        self._revealed: dict[str, int | None] = {}
        self._changed_alone: dict[str, str] = {}

    def group_of(self, name: str) -> str:
        """Return what a test shares its state with: its file, or all."""
        return "" if self._merged else _file(name)

    def _site(self, name: str) -> int:
        """Return the index of the place of a test that is at stake: the one with the fewest bits."""
        bits = [site.bits() for site in self._sites[name]]
        return bits.index(min(bits))

    def sites(self, names: Collection[str]) -> dict[str, int]:
        """Return the places at stake of tests; a weak one has none, and is changed anywhere."""
        return {name: self._site(name) for name in names if name not in self._weak}

    def _bits(self, name: str) -> float:
        return min(site.bits() for site in self._sites[name])

    def _is_guarded(self, name: str) -> bool:
        return name in self._failed and (name in self._weak or self._bits(name) >= self._wanted)

    def are_done(self) -> bool:
        return all(map(self._is_guarded, self._sites))

    def runs_alone(self) -> int:
        """Return how many runs guard all tests if one of them is changed at a time; what is weak is seen in two."""
        sites = [site for name, sites in self._sites.items() if name not in self._weak for site in sites]
        return 2 * len(self._weak) + sum(math.ceil(self._wanted / math.log2(site.choices + 1)) for site in sites)

    def guarded_bits(self) -> dict[str, float]:
        """Return the bits of each test that has as many as it must; weak ones have none."""
        return {name: self._bits(name) for name in self._sites if self._is_guarded(name) and name not in self._weak}

    def open_files(self) -> set[str]:
        """Return the files whose tests have to run again: all, where tests of several depend on each other."""
        return {_file(name) for name in self._sites if self._merged or not self._is_guarded(name)}

    def draw(self) -> set[str]:
        """Return the names of the tests that are changed in the next run of the open files."""
        self._revealed, self._changed_alone = {}, {}
        self._at_stake = set()
        waiting: set[str] = set()
        files = self.open_files()
        for name in self._sites:
            group = self.group_of(name)
            if group in self._alone:
                if group not in waiting and not self._is_guarded(name):
                    waiting.add(group)
                    self._at_stake.add(name)
            elif _file(name) in files:
                self._at_stake.add(name)
        self._at_stake -= self._rivals()
        changed = {name for name in sorted(self._at_stake) if self._random.random() < self._odds(name)}
        disturbed = set().union(*(self._disturbed_by.get(name, ()) for name in changed))
        changed -= disturbed
        self._at_stake -= disturbed
        self._disturbed = set().union(*(self._disturbed_by.get(name, ()) for name in changed))
        self._changed_alone = {self.group_of(name): name for name in changed if self.group_of(name) in self._alone}
        return changed

    def _rivals(self) -> set[str]:
        """Return the tests at stake that wait, because another one of those with their constant has its turn.

        Those that are guarded already give their turn to the others.
        """
        sharing = [name for name in sorted(self._at_stake) if name in self._disturbed_by]
        waiting = {name for name in sharing if self._is_guarded(name)}
        self._random.shuffle(sharing)
        for name in sorted(sharing, key=self._bits):
            if name not in waiting:
                waiting |= self._disturbed_by[name] & self._disturbed_by.keys()
        return waiting

    def _odds(self, name: str) -> float:
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

    def settle(self, odd: Collection[str]) -> list[str]:
        """Count what the run has shown of groups in which nothing was odd; change one at a time in the others.

        Return the groups in which something was odd although that was so already.
        """
        groups = sorted({self.group_of(name) for name in odd})
        for name in self._at_stake:
            if self.group_of(name) in groups:
                continue
            self._count(name)
        again = [group for group in groups if group in self._alone]
        self._alone.update(groups)
        return again

    def _count(self, name: str) -> None:
        site = self._sites[name][self._site(name)]
        if name in self._revealed:
            self._failed.add(name)
            choices = self._revealed[name]
            if choices is not None:
                site.choices = min(choices, site.choices)
            elif site.choices > 1:  # what it was supposed to show was never shown
                site.choices, site.runs = 1, 0
        site.runs += 1

    def merge(self) -> bool:
        """Let all tests be one group, of which one is changed at a time; return whether they were not yet."""
        was_merged, self._merged = self._merged, True
        self._alone = {""}
        return not was_merged


@dataclass(slots=True)
class _Site:
    """Where a test can be changed."""

    choices: int  # as long as it shows its value
    runs: int = 0  # in which it was at stake

    def bits(self) -> float:
        return self.runs * math.log2(self.choices + 1)


def _file(name: str) -> str:
    return name.split("::")[0]


def least_choices(changes: Sequence[ChangedTest]) -> int:
    """Return how many values each test of a function must be guessed among; a test may show two."""
    return max(1, min((change.choices for change in changes), default=1) // 2)
