"""Labels of tokens: the one that is not learned from, and the refusal of wrong ones."""

from __future__ import annotations

from rewardkit import ObjectiveError
from trainer_adapter.objectives.arrays import Array

IGNORED = -100  # The label of a token that is not learned from, as in `torch.nn.functional.cross_entropy`


def refuse_row(is_wrong: Array, complaint: str) -> None:
    """Raise :class:`~rewardkit.ObjectiveError` for the first row that is marked as wrong."""
    if bool(is_wrong.any()):
        raise ObjectiveError(f"row {int(is_wrong.nonzero()[0][0])} {complaint}")


def refuse_labels(labels: Array, is_wrong: Array, expected: str) -> None:
    """Raise :class:`~rewardkit.ObjectiveError` for the first label that is marked as wrong."""
    if bool(is_wrong.any()):
        raise ObjectiveError(f"label {labels[is_wrong].reshape(-1)[0].item()!r}: expected {expected}")
