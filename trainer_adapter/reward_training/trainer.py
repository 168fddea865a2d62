"""TRL's ``RewardTrainer`` with the losses of :mod:`trainer_adapter.objectives`, on batches of whole groups.

In each optimizer step every prompt weighs the same, as in InstructGPT: the loss is a sum over prompts, divided by the
prompts of all forward passes and processes of the step. So gradient accumulation and data-parallel processes give the
gradient of one large batch, also where groups are uneven and where the last batch is not full.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from builtin_rewards.reward_model import ModelKind
from trainer_adapter.models import needing_extra
from trainer_adapter.objectives import bradley_terry_loss, orm_loss, plackett_luce_loss, prm_loss
from trainer_adapter.reward_training.batches import EncodedGroup, batch_of
from trainer_adapter.reward_training.model import Backbone
from trainer_adapter.reward_training.reward_model_config import RewardModelConfig
from trainer_adapter.trl_settings import check_settings, make_config

if TYPE_CHECKING:
    import torch
    from transformers import TrainerCallback
    from trl import RewardTrainer  # type: ignore[attr-defined]  # it is, lazily


def group_losses(kind: ModelKind, logits: torch.Tensor, batch: dict[str, Any], center: float = 0.0) -> torch.Tensor:
    """Return the loss of each prompt of a batch, (P,); ``center`` weighs the squared sum of a pair's scores.

    Logits are (N, 1) of pairs and rankings, (N, L, 1) of outcomes, (N, L, 3) of steps; the batch is that of
    :func:`~trainer_adapter.reward_training.batches.batch_of`, as tensors.
    """
    import torch

    if kind == "bradley_terry":
        scores, pairs = logits[:, 0], batch["pairs"]
        chosen, rejected = scores[pairs[:, 0]], scores[pairs[:, 1]]
        of_groups = [batch["pair_group"] == number for number in batch["pair_group"].unique()]
        terms = [
            bradley_terry_loss(chosen[own], rejected[own], margin=batch["margins"][own], center=center)
            for own in of_groups
        ]
    elif kind == "plackett_luce":
        rankings = zip(logits[:, 0][batch["places"]], batch["ranks"], strict=True)
        terms = [plackett_luce_loss(scores[None], ranks[None]) for scores, ranks in rankings]
    else:
        by_row = zip(logits, batch["token_labels"], strict=True)
        terms = [
            orm_loss(row[None, :, 0], label[None]) if kind == "orm" else prm_loss(row[None], label[None])
            for row, label in by_row
        ]
    return torch.stack(terms)


def _trainer_class(config: RewardModelConfig) -> type[RewardTrainer]:
    """Return TRL's trainer with the loss of whole groups; a function, because TRL is imported late."""
    import torch
    from trl import RewardTrainer  # type: ignore[attr-defined]

    class GroupTrainer(RewardTrainer):
        loss_is_scaled_for_ga = True  # compute_loss divides by the prompts of the whole optimizer step

        def _prepare_dataset(self, dataset: Any, *_: Any, **__: Any) -> Any:
            return dataset  # the groups are tokens already

        def get_batch_samples(self, epoch_iterator: Any, num_batches: int, device: Any) -> tuple[list[Any], Any]:
            """Return the batches of a step, and how many prompts all processes have in it."""
            samples, _ = super().get_batch_samples(epoch_iterator, num_batches, device)
            progress = self.accelerator.gradient_state
            if samples and progress.end_of_dataloader and progress.remainder > 0:
                # Where the last prompts are not enough for all processes, accelerate fills up with the first ones.
                rows = samples[-1]["weights"]
                own = progress.remainder - self.accelerator.process_index * self.args.train_batch_size
                rows[max(0, own) :] = 0.0
            prompts = torch.stack([batch["weights"].sum() for batch in samples]).sum() if samples else torch.tensor(0.0)
            return samples, self.accelerator.reduce(prompts.to(device), reduction="sum")

        def compute_loss(
            self, model: Any, inputs: Any, return_outputs: Any = False, num_items_in_batch: Any = None
        ) -> Any:
            """Return the batch's share in the mean loss of the step's prompts, and note the accuracy of pairs."""
            outputs = model(input_ids=inputs["input_ids"], attention_mask=inputs["attention_mask"])
            weights = inputs["weights"]
            total = (group_losses(config.kind, outputs.logits.float(), inputs, config.center) * weights).sum()
            prompts = weights.sum() if num_items_in_batch is None else num_items_in_batch
            # Data-parallel training takes the mean of the processes' gradients.
            loss = total * (self.accelerator.num_processes / prompts)
            if config.kind == "bradley_terry":
                self._note_pairs(outputs.logits[:, 0].detach().float(), inputs)
            return (loss, outputs) if return_outputs else loss

        def _note_pairs(self, scores: Any, inputs: Any) -> None:
            """Keep the accuracy and the margin of a forward pass, of all processes, for the log."""
            pairs = inputs["pairs"]
            counts = inputs["weights"][inputs["pair_group"]]
            gaps = scores[pairs[:, 0]] - scores[pairs[:, 1]]
            sums = torch.stack([((gaps > 0) * counts).sum(), (gaps * counts).sum(), counts.sum()])
            wins, margin, count = self.accelerator.reduce(sums, reduction="sum").tolist()
            self._metrics["train"]["accuracy"].append(wins / count)
            self._metrics["train"]["margin"].append(margin / count)

        def _save_checkpoint(self, model: Any, trial: Any) -> None:
            # Past RewardTrainer's own, which writes a model card that says nothing of this run.
            super(RewardTrainer, self)._save_checkpoint(model, trial)

    return GroupTrainer


def make_trainer(
    config: RewardModelConfig,
    backbone: Backbone,
    groups: Sequence[EncodedGroup],
    callbacks: Sequence[TrainerCallback] = (),
) -> RewardTrainer:
    """Return TRL's trainer of a model on groups; with an adapter, the model is wrapped."""
    with needing_extra():
        import torch
        from datasets import Dataset  # type: ignore[import-untyped]
        from peft import LoraConfig
        from transformers import PrinterCallback
        from trl import RewardConfig  # type: ignore[attr-defined]

    pad_id = int(backbone.tokenizer.pad_token_id)

    def collate(rows: Sequence[dict[str, int]]) -> dict[str, Any]:
        batch = batch_of(config.kind, [groups[row["place"]] for row in rows], pad_id)
        tensors = {name: torch.from_numpy(array) for name, array in batch.items()}
        return tensors | {"weights": torch.ones(len(rows))}

    lora = config.to_peft()
    arguments = config.to_trl(has_cuda=torch.cuda.is_available()) | check_settings("RewardConfig", config.trl)
    settings: Any = backbone.model.config
    names = settings.id2label
    settings.num_labels = 1  # RewardTrainer takes no other number, and reads it here alone
    trainer = _trainer_class(config)(
        model=backbone.model,
        args=make_config(RewardConfig, arguments),
        processing_class=backbone.tokenizer,
        data_collator=collate,
        train_dataset=Dataset.from_dict({"place": list(range(len(groups)))}),
        peft_config=None if lora is None else LoraConfig(**lora),
        callbacks=list(callbacks),
    )
    settings.id2label = names  # put back, for the saved configuration
    settings.label2id = {name: number for number, name in names.items()}
    trainer.remove_callback(PrinterCallback)
    return trainer
