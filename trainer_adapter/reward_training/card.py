"""The model card: a README.md beside the weights, with what the model was trained on and how it measures."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from builtin_rewards.reward_model import RewardModelDescription
from trainer_adapter.reward_training.figures import RESAMPLES, HeldOutFigure

_MEANINGS = {
    "accuracy": "share ordered or judged rightly; a tie is no win",
    "auc": "chance that a right completion scores above a wrong one",
    "brier": "mean squared distance of probability and outcome",
    "ece": "expected calibration error",
    "margin": "mean score of chosen less rejected",
    "right_f1": "F1 of finding right steps",
    "step_accuracy": "share of steps labelled rightly",
    "step_f1": "F1 of finding wrong steps",
    "tie_rate": "share of pairs with equal scores",
}


def write_card(
    folder: Path, description: RewardModelDescription, figures: Mapping[str, HeldOutFigure], facts: Mapping[str, str]
) -> Path:
    """Write the model's card and return its path; ``facts`` are further lines of the first table, by name."""
    rows = {
        "kind": description.kind,
        "base model": description.base,
        "max_length": str(description.max_length),
        **facts,
    }
    lines = [
        "---", "library_name: transformers", "tags: [reward-model, rewardkit]", "---", "",
        f"# Reward model ({description.kind})", "",
        f"Trained by rewardkit {description.rewardkit} on TRL's RewardTrainer.", "",
        "| | |", "|---|---|", *(f"| {name} | {_cell(value)} |" for name, value in rows.items()), "",
        "## Held-out prompts", "",
    ]  # fmt: skip
    if figures:
        lines += [
            f"95 % intervals by a bootstrap over prompts ({RESAMPLES:,} resamples).", "",
            "| figure | value | of | meaning |", "|---|---|---|---|",
            *(f"| {name} | {x} | {x.of:,} | {_MEANINGS.get(name, '')} |" for name, x in figures.items()), "",
        ]  # fmt: skip
    else:
        lines += ["Nothing was held out, so nothing is known of its accuracy.", ""]
    if (reference := description.reference) is not None:
        lines += [
            "## Scores", "",
            f"Of {reference.count:,} completions ({reference.source}): mean {reference.mean:.4g}, "
            f"standard deviation {reference.std:.4g}, median {reference.quantiles[50]:.4g}, "
            f"from {reference.quantiles[0]:.4g} to {reference.quantiles[-1]:.4g}.", "",
        ]  # fmt: skip
    lines += [
        "## Limits", "",
        "It is right about texts like those it was trained on. A policy that is trained against it leaves them, so",
        "its accuracy on the policy's own completions is to be measured again during training.", "",
    ]  # fmt: skip
    path = folder / "README.md"
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


def _cell(value: str) -> str:
    return value.replace("|", "\\|").replace("\n", "\\n")
