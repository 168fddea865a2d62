"""How a trainer's settings lay out a batch: the size of a group, and whether its rows are split between processes.

What is said of a trainer holds for TRL's GRPOTrainer and RLOOTrainer, whose attributes these are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeGuard

from rewardkit import ConfigError
from trainer_adapter.ranks import Ranks

if TYPE_CHECKING:
    import torch
    from transformers import TrainerState, TrainingArguments

_OF_A_TRAINER = ("args", "model", "accelerator", "reward_funcs", "state")


class TrlTrainer(Protocol):
    """What is read and changed of a trainer of TRL's."""

    args: TrainingArguments
    model: torch.nn.Module
    accelerator: Any  # accelerate ships no types
    state: TrainerState
    reward_funcs: list[Any]
    reward_func_names: list[str]
    reward_processing_classes: list[Any]
    reward_weights: torch.Tensor


class Sizes(NamedTuple):
    """How many rows of a batch a process has."""

    rows: int  # Rows of one process
    settings: str  # The settings that say so
    option: str  # The setting that says how many rows a group has
    generations: int  # Rows of a group

    @property
    def is_split(self) -> bool:
        """Whether some group has rows in several processes."""
        return self.rows % self.generations != 0


def is_trainer(candidate: object) -> TypeGuard[TrlTrainer]:
    """Return whether something has what a trainer of TRL's has."""
    return all(hasattr(candidate, name) for name in _OF_A_TRAINER)


def split_of(trainer: TrlTrainer) -> str:
    """Return ``"train"`` or ``"eval"``, by what TRL goes as well."""
    return "train" if trainer.model.training else "eval"  # an evaluation calls model.eval()


def generations_of(args: object, split: str) -> int | None:
    """Return the rows of a group; ``None`` where a trainer's settings do not say."""
    generations: int | None = getattr(args, "num_generations", None)
    return generations if split == "train" else getattr(args, "num_generations_eval", None) or generations


def sizes_of(args: Any) -> Iterator[Sizes]:  # fields of several classes of TRL's
    """Yield the sizes in training, and those of an evaluation where there is one."""
    generations = generations_of(args, "train")
    if not generations or not hasattr(args, "steps_per_generation"):  # AsyncGRPO hands over whole groups
        return
    steps, batch = args.steps_per_generation or 1, args.per_device_train_batch_size
    settings = f"per_device_train_batch_size={batch} times steps_per_generation={steps}"
    yield Sizes(batch * steps, settings, "num_generations", generations)
    if str(getattr(args.eval_strategy, "value", args.eval_strategy)) != "no":
        batch = args.per_device_eval_batch_size
        settings = f"per_device_eval_batch_size={batch}"
        yield Sizes(batch, settings, "num_generations_eval", generations_of(args, "eval") or generations)


def check_groups(group_rewards: Sequence[str], args: object) -> None:
    """Raise where a reward needs whole groups and no process can have them.

    Either the settings do not say how large a group is, and several processes have parts of the batch; or groups are
    split between processes that cannot exchange rows.
    """
    processes = int(getattr(args, "world_size", 1) or 1)
    if not group_rewards:
        return
    reward = f"reward {group_rewards[0]!r} scores whole groups"
    if processes > 1 and generations_of(args, "train") is None:
        raise ConfigError(
            f"{reward}, but the trainer's settings do not say how many completions a group has: set num_generations, "
            f"or train with one process in place of {processes}"
        )
    if processes > 1 and Ranks.of(processes) is not None:
        return
    for sizes in sizes_of(args):
        if sizes.is_split:
            why = "" if processes == 1 else ", and the processes cannot exchange rows through torch.distributed"
            raise ConfigError(
                f"{reward}, but a process has {sizes.rows} completions in a batch ({sizes.settings}), which is not "
                f"a multiple of {sizes.option}={sizes.generations}: a group would be split{why}"
            )
