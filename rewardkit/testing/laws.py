"""Laws: what holds for every reward whatever the completion, tried on generated completions.

Rewards run in a worker process, which ends a call that does not return and survives a crash. Only whether a reward
changes its input is found by calling it here, after it was found to keep its deadline.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import copy
import io
import pickle
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from enum import StrEnum
from random import Random
from typing import Any, NoReturn

from rewardkit.declare.compose import Composable
from rewardkit.declare.decorator import Reward
from rewardkit.declare.spec import CallContext, Kind
from rewardkit.errors import CoercionError, ConfigError, DataError, RewardLoadError, RewardTransportError
from rewardkit.forms import Form
from rewardkit.loading.registry import RewardLike, resolve
from rewardkit.messages import completion_text
from rewardkit.runtime.runtime import Runtime
from rewardkit.testing.expectation import outcome_words
from rewardkit.testing.hostile import HOSTILE, LONG, TOKENS, dressed
from rewardkit.testing.hostile import completions as hostile_completions
from rewardkit.testing.search import Found, Unit, search
from rewardkit.testing.words import line, quoted, row_lines
from rewardkit.transport import dumps
from rewardkit.types import Cause, Outcome, Rollout, Status, Text

_NOT_COLUMNS = ("prompt", "completion", "completions")
_MAX_TOKENS, _TOKEN_CHARS = 20, 200
_GROUP = 4
_MAX_IDS = 10_000


class Law(StrEnum):
    """What holds for every reward."""

    PICKLABLE = "picklable"
    """It travels to a worker process."""
    NEVER_RAISES = "never_raises"
    """No completion makes it raise or ends its process."""
    IN_RANGE = "in_range"
    """It returns finite numbers in its ``score_range``, or ``None``."""
    IN_TIME = "in_time"
    """It returns within its ``timeout_s``."""
    DETERMINISTIC = "deterministic"
    """The same input gives the same score again."""
    INDEPENDENT = "independent"
    """Neither the order of a batch nor its other rows matter; in a group, permuting completions permutes scores."""
    KEEPS_INPUT = "keeps_input"
    """It does not change what it is given."""


_REMEDIES = {
    Law.PICKLABLE: "make clients, files and locks inside the function, or at the top of a module that workers import",
    Law.NEVER_RAISES: "give such a completion a score, or None where the reward does not apply to the row",
    Law.IN_RANGE: "clip the score, mend the formula, or declare the score_range that is meant",
    Law.IN_TIME: "look for a regular expression that backtracks or a loop over pairs; "
    "cut the completion, or declare a longer timeout_s",
    Law.DETERMINISTIC: "seed what is random with the input, ask no clock, and keep no state between calls",
    Law.INDEPENDENT: "keep no state between calls: no globals that are written, no counters; "
    "no ties broken by place, and no hash() of text, which each process has its own of",
    Law.KEEPS_INPUT: "work on a copy: list(tags), dict(row), sorted(numbers)",
}
_PER_CALL = (Law.NEVER_RAISES, Law.IN_RANGE, Law.IN_TIME, Law.DETERMINISTIC)


class LawBroken(AssertionError):
    """A reward broke a law.

    Attributes:
        law: The law.
        completions: The completions that broke it, made small where hypothesis generated them.
    """

    def __init__(self, message: str, law: Law, completions: Sequence[Text]) -> None:
        super().__init__(message)
        self.law = law
        self.completions = tuple(completions)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (str(self), self.law, self.completions)


def assert_laws(
    reward: RewardLike,
    rows: Iterable[Mapping[str, Any]] | None = None,
    *,
    laws: Collection[str] | None = None,
    max_examples: int = 50,
    completions: object = None,
    lane: str = "worker",
) -> None:
    """Try the laws on a reward with hostile and generated completions, the same ones on every run.

    >>> from rewardkit import reward
    >>> @reward(score_range=(0, 1))
    ... def correct(completion: str, answer: str) -> float:
    ...     return float(completion.strip() == answer)
    >>> assert_laws(correct, [{"answer": "4"}], max_examples=5)

    Args:
        reward: A reward, a composition, a function, or a reference such as ``"my_rewards.py:correct"``.
        rows: Dictionaries of columns, perhaps with ``prompt``. A ``completion`` or ``completions`` in one is tried
            as well. Columns are part of what completions are put together from. May be left out where the reward
            needs no columns.
        laws: Names of the laws to try, of :class:`Law`; by default all.
        max_examples: Completions, or batches of them, to generate for each kind of law.
        completions: A hypothesis strategy of completions, strings or lists of messages, instead of the usual one.
        lane: ``"worker"``, or ``"inline"`` for a debugger; then nothing ends a call that does not return.

    Raises:
        ConfigError: There is no law of that name.
        DataError: A row is wrong: it lacks a column, or a column's value does not coerce. The reward is not to blame.
        InfrastructureError: What the reward depends on cannot be reached.
        LawBroken: A law does not hold; names it, the completion, what happened and the remedy.
    """
    __tracebackhide__ = True
    try:
        import hypothesis  # noqa: F401
    except ImportError as missing:
        raise ImportError("assert_laws(...) needs hypothesis: pip install hypothesis") from missing
    selection = _select(laws)
    subject = _Subject(resolve(reward), rows)
    breach = _first_breach(subject, selection, max_examples, completions, lane)
    if breach is not None:
        texts = [text for _, unit in breach.units for text in unit]
        raise LawBroken(_report(subject, breach), Law(breach.law), texts)


def _select(laws: Collection[str] | None) -> list[Law]:
    """Return the laws of these names, or all, in the order of :class:`Law`; ConfigError for a name that no law has."""
    selection = [laws] if isinstance(laws, str) else list(Law) if laws is None else list(laws)
    for name in selection:
        if name not in list(Law):
            raise ConfigError(f"laws: there is no law {name!r}; the laws are {', '.join(Law)}")
    return [law for law in Law if law in selection]


def _first_breach(
    subject: _Subject, chosen: Sequence[Law], max_examples: int, completions: object, lane: str
) -> Found | None:
    """Return the first law that is broken, in an order in which each may rely on those before it."""
    if Law.PICKLABLE in chosen and (breach := _pickling_breach(subject)):
        return breach
    texts = hostile_completions(subject.tokens()) if completions is None else completions
    units = subject.units(texts)
    with Runtime([subject.reward], workers=1, lane=lane, cache_entries=0) as runtime:
        trial = _Trial(subject, runtime, [law for law in chosen if law in _PER_CALL])
        try:
            trial.outcomes(subject.unit(""))
        except (RewardLoadError, RewardTransportError) as refused:
            if Law.PICKLABLE not in chosen:
                raise
            return Found(Law.PICKLABLE, (), str(refused))
        if trial.laws:
            breach = trial.unit(subject.unit("")) or trial.tokens() or _on_the_list(subject, trial.unit, LONG)
            if breach := breach or search(units, trial.unit, max_examples):
                return breach
        if Law.INDEPENDENT in chosen:
            breach = search(subject.batches(units), trial.batch, max_examples) or trial.elsewhere(lane)
            if breach is not None:
                return breach
    if Law.KEEPS_INPUT not in chosen:
        return None
    return _on_the_list(subject, subject.input_breach, HOSTILE) or search(units, subject.input_breach, max_examples)


def _pickling_breach(subject: _Subject) -> Found | None:
    """Return the breach where a plain reward does not survive pickling, else ``None``."""
    for leaf in subject.leaves:
        try:
            pickle.loads(dumps(leaf, leaf))  # noqa: S301 - it was written just now
        except Exception as refused:
            return Found(Law.PICKLABLE, (), str(refused))
    return None


def _on_the_list(subject: _Subject, check: Callable[[Unit], Found | None], texts: Sequence[str]) -> Found | None:
    """Return what a row's own completions or a listed one breaks."""
    units = (*subject.row_units(), *(subject.unit(text) for text in texts))
    return next(filter(None, map(check, units)), None)


class _Subject:
    """A reward with the rows that it is tried on."""

    def __init__(self, reward: Composable, rows: Iterable[Mapping[str, Any]] | None) -> None:
        self.reward = reward
        self.leaves = reward.leaves
        self.group = any(leaf.spec.kind is Kind.GROUP for leaf in self.leaves)
        self.timeout_s = min(leaf.options.timeout_s for leaf in self.leaves)
        self.rows = self._check_rows(rows)
        self._wants_messages = any(map(_wants_messages, self.leaves))
        self._wants_ids = any(leaf.spec.wants_completion_ids for leaf in self.leaves)

    def _check_rows(self, rows: Iterable[Mapping[str, Any]] | None) -> list[Mapping[str, Any]]:
        """Return the rows, one without columns for ``None``; DataError where one lacks a column that a reward needs."""
        needed = dict.fromkeys(column for leaf in self.leaves for column in leaf.spec.required_columns)
        listed = [{}] if rows is None else list(rows)
        if not listed:
            raise DataError("rows: expected at least one row")
        for index, row in enumerate(listed):
            if not isinstance(row, Mapping):
                raise DataError(f"rows[{index}]: expected a dict of columns, got {type(row).__name__}")
            for column in (column for column in needed if column not in row):
                message = f"reward {self.reward.name!r} needs column {column!r}"
                remedy = f"give assert_laws rows that have it: rows=[{{{column!r}: ...}}]"
                raise DataError(f"{message}; {remedy}" if rows is None else f"rows[{index}]: {message}")
        return listed

    def tokens(self) -> list[str]:
        """Return the columns' values as text: completions that hold the right answer take other paths."""
        values = (value for row in self.rows for key, value in row.items() if key not in _NOT_COLUMNS)
        texts = dict.fromkeys(value if isinstance(value, str) else str(value) for value in values)
        return [text[:_TOKEN_CHARS] for text in texts if text][:_MAX_TOKENS]

    def unit(self, text: str) -> Unit:
        """Return a listed completion with the first row, in a group beside others."""
        return (0, (text, "a", text[::-1])) if self.group else (0, (text,))

    def row_units(self) -> list[Unit]:
        """Return the completions that rows came with, and those that give a column's value as the answer."""
        units: list[Unit] = []
        for index, row in enumerate(self.rows):
            own = list(row.get("completions", ())) + ([row["completion"]] if "completion" in row else [])
            if not self.group:
                units += [(index, (text,)) for text in own]
            elif own:
                units.append((index, tuple(own)))
        return units + [self.unit(text) for value in self.tokens() for text in dressed(value)]

    def units(self, texts: Any) -> Any:
        """Return a strategy of units whose texts are those of a strategy."""
        from hypothesis import strategies

        group = strategies.lists(texts, min_size=1, max_size=_GROUP).map(tuple)
        unit = group if self.group else strategies.tuples(texts)
        return strategies.tuples(strategies.integers(0, len(self.rows) - 1), unit)

    def batches(self, units: Any) -> Any:
        """Return the strategy of batches: some units, and the order to put them and their completions in."""
        from hypothesis import strategies

        lists = strategies.lists(units, min_size=1 if self.group else 2, max_size=3)
        return strategies.tuples(lists, strategies.randoms(use_true_random=False))

    def rollouts(self, unit: Unit) -> list[Rollout]:
        """Return the rollouts of a unit."""
        index, texts = unit
        row = self.rows[index]
        example = {column: value for column, value in row.items() if column not in _NOT_COLUMNS}
        prompt = row.get("prompt", "")
        return [Rollout(prompt, self._text(text), example, self._token_ids(text)) for text in texts]

    def _token_ids(self, text: Text) -> list[int] | None:
        """Return made-up token ids, one a character, if a reward reads them."""
        if not self._wants_ids:
            return None
        return [ord(letter) % 32_000 for letter in completion_text(text)[:_MAX_IDS]]

    def _text(self, text: Text) -> Text:
        """Return a completion as a message if a reward reads messages."""
        if isinstance(text, str) and self._wants_messages:
            return [{"role": "assistant", "content": text}]
        return text

    def arguments(self, leaf: Reward[..., Any], unit: Unit) -> dict[str, Any]:
        """Return a plain reward's arguments for a unit; raise DataError where a column's value does not coerce."""
        row, texts = unit
        try:
            return leaf.spec.bind(self.rollouts(unit), CallContext(), (row,) * len(texts))
        except CoercionError as wrong:
            raise self.wrong_row(unit, str(wrong)) from None

    def wrong_row(self, unit: Unit, error: str) -> DataError:
        """Return the error that says that a unit's row is wrong."""
        return DataError(f"rows[{unit[0]}]: {error}; it is the row that is wrong, not reward {self.reward.name!r}")

    def input_breach(self, unit: Unit) -> Found | None:
        """Call each plain reward on a unit; return the breach where it changed an argument, else ``None``."""
        for leaf in self.leaves:
            arguments = self.arguments(leaf, unit)
            supplied = {parameter.name for parameter in leaf.spec.parameters if parameter.supplied}
            before = {name: copy.deepcopy(value) for name, value in arguments.items() if name not in supplied}
            _call(leaf, arguments)
            for name, value in before.items():
                if not _seems_unchanged(value, arguments[name]):
                    was, left = quoted(value, 80), quoted(arguments[name], 80)
                    return Found(Law.KEEPS_INPUT, (unit,), f"{leaf.name}() was given {name} = {was} and left {left}")
        return None


class _Trial:
    """A subject scored in a runtime."""

    def __init__(self, subject: _Subject, runtime: Runtime, laws: Sequence[Law]) -> None:
        self._subject = subject
        self._runtime = runtime
        self.laws = laws

    def outcomes(self, *units: Unit) -> list[list[Outcome]]:
        """Return the outcomes of units scored in one batch, by unit; DataError where a row's columns do not coerce."""
        rollouts = [self._subject.rollouts(unit) for unit in units]
        batch = self._runtime.score([rollout for unit_rollouts in rollouts for rollout in unit_rollouts])
        flat = iter(batch[self._subject.reward.name])
        outcomes = [[next(flat) for _ in unit_rollouts] for unit_rollouts in rollouts]
        for unit, unit_outcomes in zip(units, outcomes, strict=True):
            for outcome in unit_outcomes:
                if outcome.cause is Cause.COERCION:
                    self._refuse_row(unit, outcome)
        return outcomes

    def _refuse_row(self, unit: Unit, outcome: Outcome) -> NoReturn:
        """Raise the DataError of a row that does not coerce: binding it again names its place in ``rows``."""
        for leaf in self._subject.leaves:
            self._subject.arguments(leaf, unit)
        raise self._subject.wrong_row(unit, outcome.error or "")

    def many(self, units: Sequence[Unit]) -> list[list[Outcome]]:
        """Return the outcomes of units of one row; one batch of groups would be one group."""
        if self._subject.group:
            return [self.outcomes(unit)[0] for unit in units]
        return self.outcomes(*units)

    def unit(self, unit: Unit) -> Found | None:
        """Score a unit; return the law that it breaks, ``None`` where all hold."""
        (outcomes,) = self.outcomes(unit)
        if breach := self._breach_of(unit, outcomes):
            return breach
        return self._repeat_breach(unit, outcomes, self.outcomes(unit)[0]) if Law.DETERMINISTIC in self.laws else None

    def tokens(self) -> Found | None:
        """Score the short completions on the list at once; return the first breach, ``None`` where all laws hold."""
        units = [self._subject.unit(text) for text in ("", *TOKENS)]
        scored = self.many(units)
        for unit, outcomes in zip(units, scored, strict=True):
            if breach := self._breach_of(unit, outcomes):
                return breach
        again = self.many(units) if Law.DETERMINISTIC in self.laws else scored
        return next(filter(None, map(self._repeat_breach, units, scored, again)), None)

    def _breach_of(self, unit: Unit, outcomes: Sequence[Outcome]) -> Found | None:
        """Return the first breach of a law about an outcome alone, else ``None``."""
        for outcome in outcomes:
            for law in self.laws:
                if _breaks(law, outcome, self._subject.timeout_s):
                    slow = law is Law.IN_TIME
                    took = f", after {outcome.duration_s:.3g} s" if slow and outcome.cause is None else ""
                    return Found(law, (unit,), f"{outcome_words(outcome)}{took}", outcome.traceback, slow)
        return None

    def _repeat_breach(self, unit: Unit, outcomes: Sequence[Outcome], again: Sequence[Outcome]) -> Found | None:
        return _outcome_breach(Law.DETERMINISTIC, (unit,), outcomes, again, "first", "then")

    def batch(self, drawn: tuple[list[Unit], Any]) -> Found | None:
        """Return the breach where a unit's score depends on its batch or on an order, else ``None``."""
        units, random = drawn
        if self._subject.group:  # completions of one row would be one group
            rows = [row for row, _ in units]
            units = [unit for index, unit in enumerate(units) if unit[0] not in rows[:index]]
        alone = [self.outcomes(unit)[0] for unit in units]
        order = _another_order(len(units), random)
        together = self.outcomes(*(units[index] for index in order))
        for index, beside in zip(order, together, strict=True):
            then = f"in a batch in the order {order}"
            if breach := _outcome_breach(Law.INDEPENDENT, tuple(units), alone[index], beside, "alone", then):
                return breach
        return self._permutation_breach(units[0], alone[0], random) if self._subject.group else None

    def elsewhere(self, lane: str) -> Found | None:
        """Return the breach where a completion scores otherwise in a process that met others before, else ``None``."""
        units = [self._subject.unit(text) for text in TOKENS]
        here = self.many(units)
        with Runtime([self._subject.reward], workers=1, lane=lane, cache_entries=0) as runtime:
            there = _Trial(self._subject, runtime, self.laws).many(units[::-1])
        then = "in another that had met other completions"
        for unit, before, other in zip(units, here, reversed(there), strict=True):
            if breach := _outcome_breach(Law.INDEPENDENT, (unit,), before, other, "in one process", then):
                return breach
        return None

    def _permutation_breach(self, unit: Unit, outcomes: Sequence[Outcome], random: Random) -> Found | None:
        """Return the breach where a group's scores do not follow its completions into another order, else ``None``."""
        order = _another_order(len(unit[1]), random)
        (permuted,) = self.outcomes((unit[0], tuple(unit[1][index] for index in order)))
        before = [outcomes[index] for index in order]
        return _outcome_breach(Law.INDEPENDENT, (unit,), before, permuted, "in this order", f"in the order {order}")


def _another_order(count: int, random: Random) -> list[int]:
    """Return a random order of indices, another than their own where there is another."""
    order = list(range(count))
    random.shuffle(order)
    return order[::-1] if order == sorted(order) else order


def _outcome_breach(
    law: Law, units: tuple[Unit, ...], outcomes: Sequence[Outcome], again: Sequence[Outcome], label: str, other: str
) -> Found | None:
    """Return a breach at the first completion with two outcomes, else ``None``; the labels say when each came."""
    for first, second in zip(outcomes, again, strict=True):
        if _essence(first) != _essence(second):
            return Found(law, units, f"{label} {outcome_words(first)}, {other} {outcome_words(second)}")
    return None


def _breaks(law: Law, outcome: Outcome, timeout_s: float) -> bool:
    """Whether an outcome breaks one of the laws that look at an outcome alone."""
    if law is Law.NEVER_RAISES:
        return outcome.cause is not None and outcome.cause.is_breakage and outcome.cause is not Cause.BAD_RETURN
    if law is Law.IN_RANGE:
        return outcome.cause is Cause.BAD_RETURN
    return law is Law.IN_TIME and (outcome.cause is Cause.TIMEOUT or outcome.duration_s > timeout_s)


def _essence(outcome: Outcome) -> tuple[Status, float | None, Cause | None]:
    """Return what must be the same again; a reason may name a time."""
    return outcome.status, outcome.score, outcome.cause


def _wants_messages(leaf: Reward[..., Any]) -> bool:
    """Whether a reward takes completions as lists of messages and not as text."""
    texts = (parameter.taken for parameter in leaf.spec.parameters if parameter.name in ("completion", "completions"))
    return any(text is not None and text.form is not Form.TEXT for text in texts)


def _call(leaf: Reward[..., Any], arguments: dict[str, Any]) -> None:
    """Call the plain function, on a thread if it is async; drop its output and errors, which other laws judge."""
    with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(Exception):
        if leaf.spec.is_async:
            with concurrent.futures.ThreadPoolExecutor(1) as thread:
                thread.submit(lambda: asyncio.run(leaf.spec.function(**arguments))).result()
        else:
            leaf.spec.function(**arguments)


def _seems_unchanged(before: object, after: object) -> bool:
    """Return whether a value equals its copy from before a call, or can be neither compared nor pickled."""
    try:
        equal = before == after
        if isinstance(equal, bool) and type(before).__eq__ is not object.__eq__:  # without its own, no copy is equal
            return equal
        return pickle.dumps(before) == pickle.dumps(after)  # an array compares element by element
    except Exception:
        return True


def _report(subject: _Subject, breach: Found) -> str:
    """Return the error's text: the law, rows and completions, what happened and the remedy."""
    lines = [f"law {breach.law!s} does not hold for reward {subject.reward.name!r}"]
    for number, (index, texts) in enumerate(breach.units):
        is_same_row = number > 0 and index == breach.units[number - 1][0]
        if not is_same_row:
            row = subject.rows[index]
            lines += row_lines(row.get("prompt"), {k: v for k, v in row.items() if k not in _NOT_COLUMNS})
        lines += [line("completion", quoted(text)) for text in texts]
    lines.append(line("happened", breach.happened))
    lines += [line("", frame) for frame in (breach.trace or "").splitlines()]
    lines.append(line("remedy", _REMEDIES[Law(breach.law)]))
    return "\n".join(lines)
