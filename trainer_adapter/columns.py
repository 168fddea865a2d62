"""A trainer's keyword lists, made into rollouts.

TRL calls a reward function with ``prompts``, ``completions``, ``completion_ids``, one list for every dataset
column, and keywords of its own. This module tells columns from TRL's keywords, copies what it keeps, and computes
a digest of the batch: a later call with the same digest is about the same completions.
"""

from __future__ import annotations

import hashlib
import io
import pickle
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from rewardkit import DataError, Rollout
from rewardkit.extending import ENVIRONMENTS_COLUMN, LiveObject
from rewardkit.rows import KEYWORDS


class Frozen(NamedTuple):
    """A value as it was when the trainer called."""

    content: bytes  # The pickled value, equal for equal values; for a live value its identity
    live: object = None  # The value itself if it cannot be pickled: it cannot travel to a reward

    @classmethod
    def of(cls, value: object) -> Frozen:
        """Return the pickle of a value, or the value itself where it cannot be pickled."""
        for fast in (True, False):
            buffer = io.BytesIO()
            pickler = pickle.Pickler(buffer, protocol=5)
            # Without the memo equal values have equal bytes, whichever of their parts are one object; but no cycles.
            pickler.fast = fast
            try:
                pickler.dump(value)
            except Exception:  # noqa: S112 - pickling runs the value's own code, which may raise anything
                continue
            return cls(buffer.getvalue())
        return cls(b"live %d" % id(value), value)

    def thaw(self) -> Any:
        """Return a copy of the value, or the live value itself."""
        return pickle.loads(self.content) if self.live is None else self.live  # noqa: S301 - pickled just above


class FrozenBatch:
    """One call of a trainer, with copies of its lists, each of which is as long as ``prompts``.

    ``step`` and ``epoch`` count optimizer steps and passes over the data, ``None`` if the trainer does not say.
    ``digest`` is equal for two calls only if every prompt, completion, token id, column, step and epoch is.
    """

    def __init__(
        self,
        prompts: Sequence[Any],
        completions: Sequence[Any],
        completion_ids: Sequence[Any] | None,
        keywords: Mapping[str, Any],
    ) -> None:
        state = keywords.get("trainer_state")
        self.step: int | None = getattr(state, "global_step", None)
        self.epoch: float | None = getattr(state, "epoch", None)
        columns = {name: values for name, values in keywords.items() if name not in KEYWORDS}
        live = keywords.get(ENVIRONMENTS_COLUMN)
        if live and all(isinstance(value, LiveObject) for value in live):  # a reward takes them
            columns[ENVIRONMENTS_COLUMN] = live
        self._live = live  # what tickets stand for stays in memory as long as they do
        rows = len(prompts)
        _check_length("completions", completions, rows)
        if completion_ids is not None:
            _check_length("completion_ids", completion_ids, rows)
        for name, values in columns.items():
            _check_length(f"column {name!r}", values, rows)
        self._names = tuple(columns)
        self._shared = [
            tuple(map(Frozen.of, (prompts[row], *(values[row] for values in columns.values())))) for row in range(rows)
        ]
        self._own = [
            (Frozen.of(completions[row]), Frozen.of(None if completion_ids is None else completion_ids[row]))
            for row in range(rows)
        ]
        self.digest = self._digest()

    def __len__(self) -> int:
        return len(self._own)

    def _digest(self) -> bytes:
        digest = hashlib.blake2b(repr((self._names, self.step, self.epoch)).encode(), digest_size=16)
        for shared, own in zip(self._shared, self._own, strict=True):
            for value in (*shared, *own):
                digest.update(len(value.content).to_bytes(8, "big"))
                digest.update(value.content)
        return digest.digest()

    def rollouts(self) -> list[Rollout]:
        """Return the rollouts in the trainer's order; rows with equal prompt and columns share one example object."""
        return _rollouts(self._names, self._shared, self._own)

    def pack(self, rows: Sequence[int]) -> PackedRows:
        """Return some rows as they travel to another process; a live value stays, see :class:`Left`."""
        shared = [tuple(map(_content, self._shared[row])) for row in rows]
        own = [(_content(completion), _content(ids)) for completion, ids in (self._own[row] for row in rows)]
        return PackedRows(self._names, shared, own)


class PackedRows(NamedTuple):
    """Rows of a batch as they travel between processes; ``None`` for a value that cannot be pickled."""

    names: tuple[str, ...]  # The columns' names
    shared: Sequence[tuple[bytes | None, ...]]  # The pickled prompt and columns of each row
    own: Sequence[tuple[bytes | None, bytes | None]]  # The pickled completion and token ids of each row

    def only(self, rows: Sequence[int]) -> PackedRows:
        """Return some of the rows."""
        return PackedRows(self.names, [self.shared[row] for row in rows], [self.own[row] for row in rows])

    def rollouts(self) -> list[Rollout]:
        """Return the rollouts, in their order."""
        shared = [tuple(map(_frozen_of, values)) for values in self.shared]
        own = [(_frozen_of(completion), _frozen_of(ids)) for completion, ids in self.own]
        return _rollouts(self.names, shared, own)


class Left:
    """Stands for a value that could not be pickled, in another process than its own. No reward can read it either."""

    def __reduce__(self) -> str:
        raise TypeError("this value stayed in the process of the training that has it, because it cannot be pickled")


def _content(value: Frozen) -> bytes | None:
    return value.content if value.live is None else None


def _frozen_of(content: bytes | None) -> Frozen:
    return Frozen(b"live", Left()) if content is None else Frozen(content)


def _rollouts(
    names: Sequence[str], shared: Sequence[tuple[Frozen, ...]], own: Sequence[tuple[Frozen, Frozen]]
) -> list[Rollout]:
    """Return the rollouts of rows; those with equal prompt and columns share one example object."""
    examples: dict[tuple[bytes, ...], tuple[Any, dict[str, Any]]] = {}  # The prompt and columns of equal contents
    rollouts = []
    for values, (completion, ids) in zip(shared, own, strict=True):
        key = tuple(value.content for value in values)
        if key not in examples:
            prompt, *columns = (value.thaw() for value in values)
            examples[key] = prompt, dict(zip(names, columns, strict=True))
        prompt, example = examples[key]
        rollouts.append(Rollout(prompt, completion.thaw(), example, ids.thaw()))
    return rollouts


def _check_length(what: str, values: object, rows: int) -> None:
    """Raise ``DataError`` for what is no list, array or the like of one value a row."""
    is_text_or_mapping = isinstance(values, str | bytes | Mapping)
    if is_text_or_mapping or not hasattr(values, "__getitem__") or not hasattr(values, "__len__"):
        raise DataError(f"{what}: expected a list of {rows} values, one a completion, got {type(values).__name__}")
    if len(values) != rows:
        raise DataError(f"{what}: expected {rows} values, one a completion, got {len(values)}")
