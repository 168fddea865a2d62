"""Which completions a saved page has: all of a run, or a part of it, in the order in which they are written."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import NamedTuple
from urllib.parse import urlencode

import numpy as np

from rewardkit.dashboard.jobs import JobState
from rewardkit.dashboard.query import SPLITS
from rewardkit.dashboard.trial import difference_row
from rewardkit.errors import RecordError
from rewardkit.record.reader import RunReader
from rewardkit.record.table import CompletionTable
from rewardkit.replay.difference import Difference


class Scope(NamedTuple):
    """What of a run is saved."""

    label: str  # What it is called: `step 3 of train`; empty for the whole run
    tab: str  # The tab that the page opens with
    query: str = ""  # And the query of its address
    ids: frozenset[int] | None = None  # The completions' numbers in the record; `None` for all
    prompts: frozenset[int] | None = None  # The numbers of their prompts
    step: tuple[int, str] | None = None  # The step and split that is saved whole
    split: str = "train"  # The split of which the completions come first
    trial: Mapping[str, object] | None = None  # A difference of two versions, which stands under Change

    @property
    def is_whole(self) -> bool:
        """Whether the whole run is saved."""
        return self.ids is None

    @property
    def has_whole_steps(self) -> bool:
        """Whether all completions of a saved step are saved."""
        return self.ids is None or self.step is not None


def whole_run(split: str = "train") -> Scope:
    """Return the scope of a whole run; it opens with the graphs of a split."""
    return Scope("", "graphs", "" if split == "train" else urlencode({"split": split}), split=split)


def of_step(run: RunReader, step: int, split: str) -> Scope:
    """Return the scope of a step. Raises RecordError where the run has no such step."""
    steps = run.steps(split)
    if step not in steps:
        range_text = f"it has those from {steps[0]} to {steps[-1]}" if steps else "it has no steps"
        raise RecordError(f"{run.name}: no step {step} of {split}; {range_text}")
    table = run.table((step, step), split)
    query = {"list": "steps", "step": step, **({} if split == "train" else {"split": split})}
    return Scope(f"step {step} of {split}", "completions", urlencode(query), *_numbers(table), (step, split), split)


def of_prompt(run: RunReader, prompt: int) -> Scope:
    """Return the scope of a prompt with all of its completions. Raises RecordError where there is no such prompt."""
    run.prompt(prompt)
    table = run.table(split=None, prompt=prompt)
    return Scope(f"prompt {prompt}", "completions", urlencode({"prompt": prompt}), *_numbers(table))


def of_matches(run: RunReader, split: str, search: str, ids: Sequence[int]) -> Scope:
    """Return the scope of the completions that a search found; RecordError where it found none."""
    if not len(ids):
        raise RecordError(f"{run.name}: no completion of {split} has {search}; there is nothing to save")
    table = run.table(split=split)
    matches = table.where(np.isin(table.ids, ids))
    query = {"list": "all", **({} if split == "train" else {"split": split})}
    return Scope(f"the completions with {search}", "completions", urlencode(query), *_numbers(matches), None, split)


def of_difference(run: RunReader, reward: str, difference: Difference) -> Scope:
    """Return the scope of a difference of two versions of a reward: it and the completions that change most."""
    examples = difference.examples
    ids = frozenset(example.id for example in examples)
    prompts = frozenset(row.prompt_index for row in run.by_id(sorted(ids)))
    about = {"reward": reward, "old": difference.old, "new": difference.new}
    trial = asdict(JobState(1, "try", about, state="done", result=difference_row(difference)))
    label = f"the difference of {difference.old} and {difference.new}"
    return Scope(label, "change", urlencode({"reward": reward}), ids, prompts, trial=trial)


def _numbers(table: CompletionTable) -> tuple[frozenset[int], frozenset[int]]:
    """Return the numbers of a table's completions, and those of their prompts."""
    return frozenset(table.ids.tolist()), frozenset(table.prompts.tolist())


class SavedPiece(NamedTuple):
    """Some completions of one prompt at one step, which are saved together or not at all."""

    step: int | None
    split: str
    prompt: int
    ids: list[int]


def pieces(run: RunReader, scope: Scope) -> Iterator[SavedPiece]:
    """Yield what is saved, piece by piece: the last step, the first, the middle, and so on, evenly chosen."""
    for split in sorted(SPLITS, key=lambda split: split != scope.split):
        if scope.ids is None:
            yield from _of_split(run, split)
        else:
            table = run.table(split=split) if scope.step is None else run.table((scope.step[0],) * 2, split)
            table = table.where(np.isin(table.ids, list(scope.ids)))
            for step in spread(np.unique(table.steps).tolist()):
                yield from _by_prompt(table.where(table.steps == step), None if step < 0 else step, split)


def _of_split(run: RunReader, split: str) -> Iterator[SavedPiece]:
    """Yield all of a split; what was scored at no step comes last."""
    for step in spread(run.steps(split)):
        yield from _by_prompt(run.table((step, step), split), step, split)
    if any(step is None for _, step in run.batches(split)[1]):
        table = run.table(split=split)
        yield from _by_prompt(table.where(table.steps < 0), None, split)


def spread(steps: Sequence[int]) -> list[int]:
    """Return steps in an order of which every beginning is spread evenly: last, first, middle, quarters, and so on."""
    count = len(steps)
    if count < 2:
        return list(steps)
    indices = dict.fromkeys([count - 1, 0])
    gap = 1 << (count - 1).bit_length()
    while gap > 1:
        gap //= 2
        indices |= dict.fromkeys(range(gap, count, 2 * gap))
    return [steps[index] for index in indices]


def _by_prompt(table: CompletionTable, step: int | None, split: str) -> Iterator[SavedPiece]:
    order = np.argsort(table.prompts, kind="stable")
    prompts, starts = np.unique(table.prompts[order], return_index=True)
    for prompt, own in zip(prompts.tolist(), np.split(table.ids[order], starts[1:])[: len(prompts)], strict=True):
        yield SavedPiece(step, split, prompt, own.tolist())
