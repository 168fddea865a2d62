"""Completions of a run, as they can be scored again: chosen by steps, read a portion at a time."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rewardkit.declare.compose import Composable, Composite
from rewardkit.declare.spec import Kind
from rewardkit.errors import ConfigError, RecordError, WorkspaceError
from rewardkit.record.pictures.sources import picture_references
from rewardkit.record.reader import RunReader
from rewardkit.record.table import CompletionTable, Whole
from rewardkit.record.values import Completion, Version
from rewardkit.replay.graded_folders import GradedFolders
from rewardkit.replay.single_scorer import PORTION_ROWS, Portion
from rewardkit.types import Rollout

NO_TEXT = "its text was left out of the record"
NO_PICTURE = "the record has its picture scaled, and the reward may read it"
NO_GROUP = "another completion of its group cannot be scored again"
_STEPS = re.compile(r"(\d+)(?:-(\d+))?")
_LABEL = re.compile(r"(?P<reward>.+)@(?P<number>\d+)")


class Needs(NamedTuple):
    """What scoring a reward needs to be the same as it was."""

    position: bool  # Whether step or epoch may decide the score, so that batches are scored apart
    groups: bool  # Whether the completions of one prompt in a batch are scored together
    columns: frozenset[str] | None = frozenset()  # The columns that it reads; ``None`` for all
    workspaces: frozenset[str] = frozenset()  # The columns in which it reads a folder that an agent left

    def __or__(self, other: Needs) -> Needs:
        """Return what both need."""
        is_all = self.columns is None or other.columns is None
        columns = None if is_all else (self.columns or frozenset()) | (other.columns or frozenset())
        workspaces = self.workspaces | other.workspaces
        return Needs(self.position or other.position, self.groups or other.groups, columns, workspaces)


@dataclass(frozen=True, slots=True)
class Stored:
    """Chosen completions of a run."""

    table: CompletionTable  # Their numbers
    batches: Whole  # The number of each one's batch, from 0

    def where(self, mask: NDArray[np.bool_]) -> Stored:
        """Return those for which a mask holds."""
        return Stored(self.table.where(mask), self.batches[mask])

    def of(self, ids: Whole) -> Stored:
        """Return those with these numbers."""
        return self.where(np.isin(self.table.ids, ids))

    def __len__(self) -> int:
        return len(self.table)


class Read(NamedTuple):
    """A portion as it is read."""

    completions: Sequence[Completion]  # What the record has of each
    portion: Portion  # The same, ready to be scored


def steps_of(text: str | None) -> tuple[int, int] | None:
    """Return the first and last step that ``--steps`` names (``10-20``, ``7``); ``None`` is all. Raises ConfigError."""
    if text is None:
        return None
    match = _STEPS.fullmatch(text.strip())
    if match is None:
        raise ConfigError(f"--steps {text}: expected a step or two, such as 7 or 10-20")
    first, last = int(match[1]), int(match[2] or match[1])
    if first > last:
        raise ConfigError(f"--steps {text}: the first step is after the last")
    return first, last


def choose(run: RunReader, steps: tuple[int, int] | None = None, split: str = "train") -> Stored:
    """Return the completions of some steps, both included, or of all; RecordError says which steps the run has."""
    recorded = run.steps(split)
    if steps is not None and (not recorded or steps[0] < recorded[0] or steps[1] > recorded[-1]):
        has = f"steps {recorded[0]} to {recorded[-1]}" if recorded else "no steps"
        word = f"step {steps[0]}" if steps[0] == steps[1] else f"steps {steps[0]}-{steps[1]}"
        raise RecordError(f"{run.name}: no {word} in it; of the split {split} it has {has}")
    table = run.table(steps, split)
    if not len(table):
        raise RecordError(f"{run.name}: it has no completions of the split {split}")
    return Stored(table, np.searchsorted(run.batch_starts(), table.ids, side="right").astype(np.int64))


def version_of(run: RunReader, label: str) -> Version:
    """Return the version that ``format@2`` names, or ``format``, the last one used; RecordError says which exist."""
    match = _LABEL.fullmatch(label)
    name = match["reward"] if match is not None and match["reward"] in run.rewards else label
    versions = [version for version in run.versions if version.reward == name]
    if not versions:
        wanted = match["reward"] if match is not None else label
        raise RecordError(f"{run.name}: no reward {wanted!r}; it has {', '.join(run.rewards) or 'none'}")
    if name == label:
        return ([version for version in versions if version.origin == "run"] or versions)[-1]
    assert match is not None
    matches = [version for version in versions if version.number == int(match["number"])]
    if not matches:
        raise RecordError(f"{run.name}: no version {label}; it has {', '.join(version.label for version in versions)}")
    return matches[0]


def is_label(run: RunReader, text: str) -> bool:
    """Whether words name a version in the run and not a place where a reward is defined."""
    return text in run.rewards or (_LABEL.fullmatch(text) is not None and ":" not in text and "/" not in text)


def needs_of(reward: Composable) -> Needs:
    """Return what scoring a reward needs; a composition may have a schedule, whose weight depends on the step."""
    parts = [part for leaf in reward.leaves for part in (leaf, *leaf.inner)]
    reads_position = any(parameter.name in ("step", "epoch") for part in parts for parameter in part.spec.parameters)
    groups = any(leaf.spec.kind is Kind.GROUP for leaf in reward.leaves)
    wanted = [part.spec.wanted_columns for part in parts]
    columns = None if None in wanted else frozenset[str]().union(*(names for names in wanted if names is not None))
    workspaces = frozenset(name for part in parts for name in part.spec.workspaces)
    return Needs(reads_position or isinstance(reward, Composite), groups, columns, workspaces)


def with_their_groups(stored: Stored, ids: Whole) -> Stored:
    """Return the completions with these numbers, and all that stand with one of them in a batch under its prompt."""
    table = stored.table
    keys = np.unique(np.stack([stored.batches, table.prompts]), axis=1, return_inverse=True)[1].reshape(-1)
    return stored.where(np.isin(keys, keys[np.isin(table.ids, ids)]))


def portions(
    run: RunReader,
    stored: Stored,
    needs: Needs,
    left_out: Counter[str],
    rewards: Collection[str] = (),
    *,
    folders: GradedFolders,
) -> Iterator[Read]:
    """Yield completions in the order of recording, as many at once as memory should hold.

    Where groups are needed, the stored ones are whole. ``left_out`` counts those that cannot be scored, by the reason.
    The completions have the recorded outcomes of ``rewards``. ``folders`` unpacks what was graded; it is open for as
    long as a portion is scored, which is longer than this goes on.
    """
    has_pictures = run.has_pictures
    wanted = None if needs.workspaces and not rewards else rewards
    for places in _cut(stored, needs):
        completions = run.by_id(stored.table.ids[places].tolist(), wanted)
        usable = _usable(completions, needs, _has_text)
        if len(usable) < len(completions):
            left_out[NO_TEXT] += len(completions) - len(usable)
        if has_pictures:
            with_text, usable = usable, _usable(usable, needs, lambda completion: not _has_picture(completion, needs))
            if len(usable) < len(with_text):
                left_out[NO_PICTURE] += len(with_text) - len(usable)
        columns = {completion.id: completion.columns for completion in usable}
        if needs.workspaces:
            usable, columns = _with_folders(usable, needs, folders, left_out)
        if usable:
            rollouts = [Rollout(row.prompt, row.completion or "", columns[row.id]) for row in usable]
            first = usable[0]
            yield Read(usable, Portion([row.id for row in usable], rollouts, first.step, first.epoch))


def _with_folders(
    completions: Sequence[Completion], needs: Needs, folders: GradedFolders, left_out: Counter[str]
) -> tuple[list[Completion], dict[int, Mapping[str, Any]]]:
    """Return those whose graded folder can be had again, and their columns with its path, by number."""
    columns: dict[int, Mapping[str, Any]] = {}
    folders.begin_portion()
    for completion in completions:
        try:
            columns[completion.id] = folders.columns(completion, needs.workspaces)
        except WorkspaceError as reason:
            left_out[str(reason)] += 1
    usable = _usable(completions, needs, lambda completion: completion.id in columns)
    if len(usable) < len(columns):
        left_out[NO_GROUP] += len(columns) - len(usable)
    return usable, columns


def _cut(stored: Stored, needs: Needs) -> Iterator[Whole]:
    """Yield the indices to score at once: of one batch if ``needs.position``, whole batches if ``needs.groups``."""
    count = len(stored)
    if not needs.position and not needs.groups:
        yield from (np.arange(start, min(start + PORTION_ROWS, count)) for start in range(0, count, PORTION_ROWS))
        return
    edges = np.flatnonzero(np.r_[True, stored.batches[1:] != stored.batches[:-1], True])
    for start, stop in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True):
        size = stop - start if needs.groups else PORTION_ROWS
        yield from (np.arange(first, min(first + size, stop)) for first in range(start, stop, size))


def _has_text(completion: Completion) -> bool:
    return completion.completion is not None


def _has_picture(completion: Completion, needs: Needs) -> bool:
    """Whether a needed column has a picture that the record has not as the row had it."""
    columns = completion.columns
    names = columns if needs.columns is None else needs.columns & columns.keys()
    references = (reference for name in names for reference in picture_references(columns[name]))
    return any(not reference.is_path for reference in references)


def _usable(
    completions: Sequence[Completion], needs: Needs, is_usable: Callable[[Completion], bool]
) -> list[Completion]:
    """Return the usable completions; of groups that are scored together, those that are whole."""
    if not needs.groups:
        return [completion for completion in completions if is_usable(completion)]
    broken = {completion.prompt_index for completion in completions if not is_usable(completion)}
    return [completion for completion in completions if completion.prompt_index not in broken]
