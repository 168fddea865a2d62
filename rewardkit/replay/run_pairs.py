"""Two runs compared on the same rows: scored files, or evaluations of trainings."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np

from rewardkit.coercion.plain_json import legible
from rewardkit.errors import RecordError
from rewardkit.record.identities import Identities
from rewardkit.record.reader import RunReader
from rewardkit.record.table import CompletionTable, Whole
from rewardkit.record.texts import digest_of
from rewardkit.replay.pairing import (
    TOTAL,
    PairedDifference,
    Pairs,
    changes_of,
    paired_difference,
    pairs_of,
    reward_measure,
    total_measure,
)
from rewardkit.replay.stored import choose
from rewardkit.shown.text import counted, shortened

EXAMPLES = 10  # Rows that are named, those that change most
LEVELS = ("completion", "row", "prompt")
"""What makes two completions of the same row: all texts are equal; prompt and columns are; the prompt is."""
_LEAST = 0.5  # The share of the smaller run's completions that a way to match must reach to be chosen by itself


class RunPart(NamedTuple):
    """The completions of a run that are compared."""

    name: str  # The run's name
    what: str  # Which completions these are, in words
    table: CompletionTable
    identities: Identities
    column: Callable[[str], Whole | None]  # Digests of a column of the data; `None` where the run has no such column
    columns: Sequence[str]  # The names of the data's columns, in its order


class ChangedRow(NamedTuple):
    """A row whose value changes much."""

    first_id: int  # The number of its first completion in the first run
    other_id: int  # The same in the other
    first: float  # Its value in the first run
    other: float
    prompt: str  # The beginning of its prompt


@dataclass(frozen=True, slots=True)
class RunComparison:
    """Two runs on the rows that both have.

    Attributes:
        by: What makes two completions of the same row: one of :data:`LEVELS`, or a column of the data.
        repeated: In the first run and in the other, rows with more than one completion: their mean counts.
        measures: The total, where the runs weigh the same, and each reward that both have.
        notes: What else is to be known, each a sentence.
    """

    first: str  # The first run's name
    other: str
    first_what: str  # Which of its completions are compared
    other_what: str
    by: str
    rows: int  # Rows that both have
    first_alone: int  # Rows that only the first has
    other_alone: int
    repeated: tuple[int, int]
    measures: Sequence[PairedDifference]
    examples: Sequence[ChangedRow]  # The rows that change most in the first measure, the largest change first
    notes: Sequence[str]

    def as_json(self) -> dict[str, Any]:
        """Return it ready for JSON."""
        return {**asdict(self), "examples": [example._asdict() for example in self.examples]}


def part_of(run: RunReader, steps: tuple[int, int] | None = None, split: str | None = None) -> RunPart:
    """Return the completions of a run to compare.

    Unless steps or a split are given, these are the rows of a scored file; of a training those of its last evaluation,
    or without evaluations all of it. Raises RecordError where it has no such completions.
    """
    if steps is None and split is None:
        if run.file_means() is not None:
            table = run.table()
            table = table.where(table.steps < 0)
            return _part(run, table, counted(len(table), "scored row"))
        evaluations = run.steps("eval")
        split = "eval" if evaluations else "train"
        steps = (evaluations[-1], evaluations[-1]) if evaluations else None
    split = split or "train"
    table = choose(run, steps, split).table
    span = (
        "" if steps is None else f" of step {steps[0]}" if steps[0] == steps[1] else f" of steps {steps[0]}-{steps[1]}"
    )
    return _part(run, table, f"{counted(len(table), 'completion')} of {split}{span}")


def _part(run: RunReader, table: CompletionTable, what: str) -> RunPart:
    identities = run.identities(table)
    columns: dict[str, dict[int, int]] = {}
    for prompt in run.prompts():
        for name, value in prompt.columns.items():
            columns.setdefault(name, {})[prompt.index] = digest_of(_text_of(value))

    def column(name: str) -> Whole | None:
        digests = columns.get(name)
        if digests is None:
            return None
        missing = digest_of(f"\x00no {name}")
        return np.array([digests.get(index, missing) for index in table.prompts.tolist()], np.int64)

    return RunPart(run.name, what, table, identities, column, list(columns))


def _text_of(value: object) -> str:
    """Return a column's value as text: 7 and "7" are the same id, whatever kind of file they come from."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, sort_keys=True, default=legible)


def _names_rows(column: str) -> bool:
    name = column.lower()
    return name in ("id", "uid", "uuid", "index", "idx", "key") or name.endswith(("_id", "-id"))


def compare_runs(
    first: RunPart,
    other: RunPart,
    *,
    by: str | None = None,
    rewards: Sequence[str] = (),
    right: float | None = None,
    examples: int = EXAMPLES,
    prompt_text: Callable[[int], str] = lambda index: "",
) -> RunComparison:
    """Return how two runs differ on the rows that both have.

    Args:
        first: The reference.
        other: What is compared with it: a difference above 0 says that it is better.
        by: One of :data:`LEVELS`, or a column of the data whose value tells rows apart. Unless given it is the most
            exact level that pairs all that the next one pairs, see the documentation.
        rewards: The rewards to compare; the total and all that both have unless given.
        right: From which value on a row counts as right; see :class:`PairedDifference`.
        examples: How many of the rows that change most to name.
        prompt_text: Returns the prompt with an index in the first run.

    Raises:
        RecordError: The runs have no row or no such reward or column in common; says what there is.
    """
    by, keys = _keys(first, other, by)
    units = np.unique(np.concatenate(keys), return_inverse=True)[1].reshape(-1).astype(np.int64)
    sides = units[: len(keys[0])], units[len(keys[0]) :]
    count = int(units.max(initial=-1)) + 1
    sizes = [np.bincount(side, minlength=count) for side in sides]
    both = (sizes[0] > 0) & (sizes[1] > 0)
    clusters = _clusters(first, sides[0], count, np.flatnonzero(both))
    names = _labels(first.name, other.name)
    pairs = _pairs(first, other, sides, rewards)
    measures = [paired_difference(name, some, clusters, names, right) for name, some in pairs.items()]
    return RunComparison(
        first.name,
        other.name,
        first.what,
        other.what,
        by,
        rows=int(both.sum()),
        first_alone=int(((sizes[0] > 0) & ~both).sum()),
        other_alone=int(((sizes[1] > 0) & ~both).sum()),
        repeated=(int((sizes[0] > 1).sum()), int((sizes[1] > 1).sum())),
        measures=measures,
        examples=_examples(first, other, sides, next(iter(pairs.values())), examples, prompt_text),
        notes=_notes(first, other, names),
    )


def _labels(first: str, other: str) -> tuple[str, str]:
    """Return names that tell two runs apart in a sentence."""
    return (first, other) if first != other else (f"{first} (first)", f"{other} (other)")


def _keys(first: RunPart, other: RunPart, by: str | None) -> tuple[str, tuple[Whole, Whole]]:
    """Return what makes rows the same, and each completion's key in both runs."""
    chosen, keys = _chosen_keys(first, other, by)
    if not np.isin(*keys).any():
        raise RecordError(
            f"{first.name} and {other.name}: no row in common by {chosen};"
            " name a column that tells rows apart with --by"
        )
    return chosen, keys


def _chosen_keys(first: RunPart, other: RunPart, by: str | None) -> tuple[str, tuple[Whole, Whole]]:
    if by is not None and by not in LEVELS:
        columns = first.column(by), other.column(by)
        if columns[0] is None or columns[1] is None:
            lacking = ", ".join(part.name for part, own in zip((first, other), columns, strict=True) if own is None)
            raise RecordError(
                f"--by {by}: no such column in {lacking}; expected a column of both, or {', '.join(LEVELS)}"
            )
        return by, (columns[0], columns[1])
    levels = {level: (_level(first.identities, level), _level(other.identities, level)) for level in LEVELS}
    best = by or _best_level(levels)
    if best is not None:
        return best, levels[best]
    return _id_column(first, other, _common(*levels["prompt"])) or ("prompt", levels["prompt"])


def _level(identities: Identities, level: str) -> Whole:
    if level == "completion":
        return identities.rows * 31 + identities.completions  # wraps around, as digests may
    return identities.rows if level == "row" else identities.questions


def _best_level(levels: Mapping[str, tuple[Whole, Whole]]) -> str | None:
    """Return the level on which the runs are the same rows; ``None`` where prompt and columns do not say so.

    Completions tell rows apart only where each row has the same ones in both, as far as the smaller side goes: of two
    models' answers some are equal by chance, and pairs of these alone would hide all that differs.
    """
    if _coverage(*levels["row"]) < _LEAST:
        return None
    return "completion" if _same_completions(levels) else "row"


def _id_column(first: RunPart, other: RunPart, prompts: int) -> tuple[str, tuple[Whole, Whole]] | None:
    """Return the first column that is named like an id and tells as many rows apart as the prompts do."""
    for name in filter(_names_rows, first.columns):
        own, theirs = first.column(name), other.column(name)
        if own is None or theirs is None:
            continue
        if _coverage(own, theirs) >= _LEAST and _common(own, theirs) >= prompts:
            return name, (own, theirs)
    return None


def _common(own: Whole, theirs: Whole) -> int:
    """Return how many different rows both sides have."""
    return len(np.intersect1d(own, theirs))


def _same_completions(levels: Mapping[str, tuple[Whole, Whole]]) -> bool:
    """Return whether each row of both has the same completions, less some of one side in at most half of the rows."""
    own, theirs = levels["row"]
    is_common = np.isin(own, theirs), np.isin(theirs, own)
    rows, unit = np.unique(np.concatenate([own[is_common[0]], theirs[is_common[1]]]), return_inverse=True)
    first = int(is_common[0].sum())
    keys = [keys[mask] for keys, mask in zip(levels["completion"], is_common, strict=True)]
    units = unit.reshape(-1)[:first], unit.reshape(-1)[first:]
    matched = [np.isin(keys[0], keys[1]), np.isin(keys[1], keys[0])]
    lacking = [np.bincount(side[~mask], minlength=len(rows)) for side, mask in zip(units, matched, strict=True)]
    sizes = [np.bincount(side, minlength=len(rows)) for side in units]
    is_same = (lacking[0] == 0) & (lacking[1] == 0) & (sizes[0] == sizes[1])
    is_part = (lacking[0] == 0) | (lacking[1] == 0)
    return bool(is_part.all() and is_same.mean() >= _LEAST) if len(rows) else False


def _coverage(own: Whole, theirs: Whole) -> float:
    """Return the share of the smaller side's completions whose row the other has."""
    if len(own) > len(theirs):
        own, theirs = theirs, own
    return float(np.isin(own, theirs).mean()) if len(own) else 0.0


def _clusters(part: RunPart, units: Whole, count: int, common: Whole) -> Whole:
    """Return the question of each unit: its prompt's text.

    Rows of one prompt are not independent. A unit is its own question where it has several prompts, and where all
    common ones have the same, such as an instruction for many images.
    """
    questions = np.zeros(count, np.int64)
    questions[units] = part.identities.questions
    is_one_prompt = (questions[units] == part.identities.questions).all()
    return questions if is_one_prompt and len(np.unique(questions[common])) > 1 else np.arange(count)


def _pairs(first: RunPart, other: RunPart, sides: tuple[Whole, Whole], rewards: Sequence[str]) -> dict[str, Pairs]:
    """Return the pairs of each measure by its name; RecordError for a reward that one of them lacks."""
    shared = [name for name in first.table.scores if name in other.table.scores]
    for name in rewards:
        if name not in (TOTAL, *shared):
            have = ", ".join(shared) or "none"
            raise RecordError(f"{name}: no reward of both {first.name} and {other.name}, which share {have}")
    pairs = {}
    weighed = [name for name in shared if all((part.table.weights[name] != 0).any() for part in (first, other))]
    for name in rewards or (TOTAL, *shared):
        if name == TOTAL:
            measures = [total_measure(part.table, weighed) for part in (first, other)]
        else:
            measures = [reward_measure(part.table, name) for part in (first, other)]
        pairs[name] = pairs_of(measures[0], measures[1], *sides)
    return pairs


def _examples(
    first: RunPart,
    other: RunPart,
    sides: tuple[Whole, Whole],
    pairs: Pairs,
    limit: int,
    prompt_text: Callable[[int], str],
) -> list[ChangedRow]:
    """Return the rows that change most, those that lose first among equals."""
    changes = changes_of(pairs)
    order = [index for index in np.lexsort((changes, -np.abs(changes))).tolist() if changes[index]][:limit]
    examples = []
    for index in order:
        unit = pairs.units[index]
        own, theirs = (int(np.flatnonzero(side == unit)[0]) for side in sides)
        text = shortened(" ".join(prompt_text(int(first.table.prompts[own])).split()), 200)
        ids = int(first.table.ids[own]), int(other.table.ids[theirs])
        examples.append(ChangedRow(*ids, float(pairs.first[index]), float(pairs.other[index]), text))
    return examples


def _notes(first: RunPart, other: RunPart, names: tuple[str, str]) -> list[str]:
    """Return notes on totals that are made of different rewards or weights, and on versions that differ."""
    weights = [_weights(part.table) for part in (first, other)]
    notes = []
    if weights[0] != weights[1]:
        sums = [" + ".join(f"{weight:g} {name}" for name, weight in own.items()) or "nothing" for own in weights]
        notes.append(f"the totals are made of different things: {names[0]} of {sums[0]}, {names[1]} of {sums[1]}")
    return notes


def _weights(table: CompletionTable) -> dict[str, float]:
    """Return the last weights of the rewards that weigh anything."""
    return {name: float(weights[-1]) for name, weights in table.weights.items() if len(weights) and weights[-1]}
