"""``reward_model.json``, the file beside a reward model's weights; without it a model is a Bradley-Terry one."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from builtin_rewards.reading.thoughts import Shows
from rewardkit import ConfigError

DESCRIPTION_FILE = "reward_model.json"

ModelKind: TypeAlias = Literal["bradley_terry", "plackett_luce", "orm", "prm"]
"""Learned from pairs, from rankings, from outcomes of whole completions, or from the labels of their steps."""
Aggregation: TypeAlias = Literal["mean", "min", "product", "last"]
"""How the probabilities of tokens or steps become one score."""
_Finite = Annotated[float, Field(allow_inf_nan=False)]


class ScoreReference(BaseModel):
    """The scores of a known set of completions, against which later scores are normalized.

    Attributes:
        count: Completions in the set.
        mean: Their mean score.
        std: Their standard deviation, of n - 1; 0 for one completion.
        quantiles: 101 scores, ascending: the 0 %, 1 %, ... 100 % quantiles.
        source: Which completions they were.
    """

    model_config = ConfigDict(frozen=True)

    count: int = Field(ge=1)
    mean: _Finite
    std: float = Field(ge=0, allow_inf_nan=False)
    quantiles: tuple[_Finite, ...] = Field(min_length=101, max_length=101)
    source: str = ""

    @classmethod
    def of(cls, scores: ArrayLike, source: str) -> ScoreReference:
        """Return the reference that scores make, shape (n,), n of 1 or more.

        Raises:
            ConfigError: There is no score, or one is not finite.
        """
        values = np.asarray(scores, dtype=np.float64).reshape(-1)
        if not len(values) or not np.isfinite(values).all():
            raise ConfigError(f"reference of {source}: expected finite scores, one or more")
        quantiles = np.quantile(values, np.linspace(0, 1, 101))
        spread = float(values.std(ddof=1)) if len(values) > 1 else 0.0
        return cls(
            count=len(values), mean=float(values.mean()), std=spread, quantiles=tuple(quantiles.tolist()), source=source
        )


class RewardModelDescription(BaseModel):
    """What a trained reward model is, as its file says.

    Attributes:
        kind: What it learned from. ``bradley_terry`` and ``plackett_luce`` have one logit a sequence; ``orm`` one a
            token, that the completion is right; ``prm`` three a token (wrong, neutral, right), read at the steps' ends.
        rewardkit: The version that trained it.
        max_length: Tokens of prompt and completion that it was trained with at most.
        base: The model that it was trained from.
        step_separator: What stands between the steps of a completion that is one text.
        shows: What it was trained on of what a model wrote: its answer alone, or with ``all`` its thoughts too.
        aggregate: How tokens or steps become a score; ``None`` where there is one logit a sequence.
        reference: The scores of held-out completions.
        center: What is to be subtracted from a score for a mean of 0.
        evaluation: Figures on held-out prompts, each with ``value``, ``low``, ``high`` and ``of``.
    """

    model_config = ConfigDict(frozen=True)

    kind: ModelKind = "bradley_terry"
    rewardkit: str = ""
    max_length: int | None = Field(default=None, ge=1)
    base: str = ""
    step_separator: str = "\n"
    shows: Shows = "answer"
    aggregate: Aggregation | None = None
    reference: ScoreReference | None = None
    center: _Finite = 0.0
    evaluation: Mapping[str, Any] = Field(default_factory=dict)


def read_description(folder: str | os.PathLike[str]) -> RewardModelDescription | None:
    """Return what the file in a model's folder says; ``None`` where there is no such file.

    Raises:
        ConfigError: The file cannot be read, or is not of this format.
    """
    path = Path(folder) / DESCRIPTION_FILE
    try:
        return RewardModelDescription.model_validate_json(path.read_bytes())
    except FileNotFoundError:
        return None
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(map(str, first["loc"])) or "content"
        raise ConfigError(f"{path}: {field}: {first['msg']}; train the model again, or remove the file") from error
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error}") from error


def write_description(folder: str | os.PathLike[str], description: RewardModelDescription) -> Path:
    """Write the file into a model's folder, whole or not at all, and return its path."""
    path = Path(folder) / DESCRIPTION_FILE
    fresh = path.with_suffix(".json.new")
    fresh.write_text(json.dumps(description.model_dump(), indent=2, allow_nan=False) + "\n", encoding="utf-8")
    fresh.replace(path)
    return path
