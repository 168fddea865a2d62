"""What ``GRPOTrainer._compute_loss`` of TRL reads, without a model: arrays, and a trainer that gives them."""

from __future__ import annotations

import functools
from collections import defaultdict
from types import SimpleNamespace
from typing import Any

import numpy as np


def token_arrays(seed: int = 0, rows: int = 6, tokens: int = 5) -> dict[str, Any]:
    """Return log-probabilities of three models, advantages, and a mask with a row of one token and one of none."""
    drawn = np.random.default_rng(seed)
    lengths = [0, 1, *drawn.integers(1, tokens + 1, size=rows - 2)]
    mask = (np.arange(tokens) < np.asarray(lengths)[:, None]).astype(int)
    logps = -drawn.exponential(size=(rows, tokens))
    return {
        "logps": logps,
        "old_logps": logps + drawn.normal(size=logps.shape) * 0.3,
        "ref_logps": logps + drawn.normal(size=logps.shape) * 0.5,
        "advantages": drawn.normal(size=rows),
        "mask": mask,
    }


def trainer_of(torch: Any, logps: Any, normalization: str, level: str, beta: float, **settings: Any) -> Any:
    """Return what ``_compute_loss`` reads of its trainer, whose model gives these log-probabilities.

    The settings are TRL's; ``entropies`` are those of the tokens.
    """
    from trl import GRPOTrainer

    arguments = {
        "use_bias_correction_kl": False,
        "delta": None,
        "steps_per_generation": 1,
        "sapo_temperature_pos": 1.0,
        "sapo_temperature_neg": 1.05,
        "vespo_k_pos": 2.0,
        "vespo_lambda_pos": 3.0,
        "vespo_k_neg": 3.0,
        "vespo_lambda_neg": 2.0,
    }
    entropies = settings.get("entropies", torch.ones_like(logps))
    same = SimpleNamespace(
        num_processes=1,
        gather=lambda one: one,
        pad_across_processes=lambda one, **named: one,
        reduce=lambda one, reduction: one,
        gather_for_metrics=lambda one: one,
        sync_gradients=True,
    )
    trainer = SimpleNamespace(
        _get_per_token_logps_and_entropies=lambda *given, **named: (logps, entropies, None),
        get_off_policy_mask=GRPOTrainer.get_off_policy_mask,
        get_gamma_weights=GRPOTrainer.get_gamma_weights,
        vllm_importance_sampling_correction=True,
        args=SimpleNamespace(**{name: settings.get(name, value) for name, value in arguments.items()}),
        model=SimpleNamespace(training=True),
        accelerator=same,
        _metrics={"train": defaultdict(list)},
        loss_type=normalization,
        importance_sampling_level=level,
        beta=beta,
        epsilon_low=0.2,
        epsilon_high=settings.get("epsilon_high", 0.28),
        max_completion_length=9,
        current_gradient_accumulation_steps=1,
        top_entropy_quantile=settings.get("top_entropy_quantile", 1.0),
        off_policy_mask_threshold=settings.get("off_policy_mask_threshold"),
        aux_loss_enabled=False,
        use_vllm=settings.get("use_vllm", False),
        _entropy_bonus_enabled=False,
    )
    trainer.get_high_entropy_mask = functools.partial(GRPOTrainer.get_high_entropy_mask, trainer)
    return trainer


def inputs_of(torch: Any, given: dict[str, Any]) -> dict[str, Any]:
    """Return a batch as TRL lays it out."""
    ids = torch.zeros_like(given["mask"])
    return {
        "prompt_ids": ids,
        "prompt_mask": torch.ones_like(ids),
        "completion_ids": ids,
        "completion_mask": given["mask"],
        "advantages": given["advantages"],
        "old_per_token_logps": given["old_logps"],
        "ref_per_token_logps": given["ref_logps"],
        "num_items_in_batch": given["mask"].sum(),
    }
