"""CISPO, SAPO, LUSPO, VESPO and corrections: losses and gradients of TRL's own lines, and what extremes give."""

from __future__ import annotations

import inspect
import math
import textwrap
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from trl_loss import inputs_of, token_arrays, trainer_of

from rewardkit import ObjectiveError
from trainer_adapter.objectives import (
    cispo_surrogate,
    clipped_surrogate,
    grpo_loss,
    importance_ratio,
    off_policy_mask,
    sapo_surrogate,
    top_entropy_mask,
    vespo_surrogate,
)

Arrays = dict[str, Any]


def _inner(given: Arrays) -> Arrays:
    """Return the arrays that every surrogate takes."""
    return {name: given[name] for name in ("logps", "old_logps", "advantages", "mask")}


def _cispo(given: Arrays, **named: Any) -> Any:
    return grpo_loss(**given, surrogate=cispo_surrogate(**_inner(given), high=1.1), normalization="dapo", **named)


def _sapo(given: Arrays, **named: Any) -> Any:
    surrogate = sapo_surrogate(**_inner(given), positive=0.75, negative=1.25, level=named.get("level", "token"))
    return grpo_loss(**given, surrogate=surrogate, normalization="grpo", **named)


def _vespo(given: Arrays, importance: Any = None, **named: Any) -> Any:
    surrogate = vespo_surrogate(**_inner(given), importance_ratio=importance, negative=(2.5, 1.5))
    return grpo_loss(**given, surrogate=surrogate, normalization="dapo", **named)


def _weights(given: Arrays, entropies: Any, ratio: Any) -> Any:
    """Return the product of all corrections of a batch."""
    keep = off_policy_mask(given["logps"], given["old_logps"], given["advantages"], 0.1, mask=given["mask"])
    return keep * top_entropy_mask(entropies, 0.4, mask=given["mask"]) * ratio


_CORRECTED = {"off_policy_mask_threshold": 0.1, "top_entropy_quantile": 0.4, "use_vllm": True}
_SAPO = {"sapo_temperature_pos": 0.75, "sapo_temperature_neg": 1.25}  # exact in float32, in which TRL holds them
_VESPO = {"vespo_k_neg": 2.5, "vespo_lambda_neg": 1.5}
LOSSES: dict[str, tuple[str, str, Arrays, Any]] = {
    "cispo": ("cispo", "token", {"epsilon_high": 1.1}, lambda given, extra: _cispo(given)),
    "sapo": ("sapo", "token", _SAPO, lambda given, extra: _sapo(given)),
    "sapo of sequences": ("sapo", "sequence", _SAPO, lambda given, extra: _sapo(given, level="sequence")),
    "luspo": (
        "luspo",
        "sequence",
        {},
        lambda given, extra: grpo_loss(**given, high=0.28, level="sequence", normalization="luspo"),
    ),
    "vespo": ("vespo", "token", _VESPO, lambda given, extra: _vespo(given)),
    "vespo with ratios": ("vespo", "token", {**_VESPO, "use_vllm": True}, lambda given, extra: _vespo(given, extra[1])),
    "delta": ("grpo", "token", {"delta": 1.4}, lambda given, extra: grpo_loss(**given, high=0.28, delta=1.4)),
    "delta of sequences": (
        "grpo",
        "sequence",
        {"delta": 1.1},
        lambda given, extra: grpo_loss(**given, high=0.28, delta=1.1, level="sequence"),
    ),
    "all corrections": (
        "dapo",
        "token",
        _CORRECTED,
        lambda given, extra: grpo_loss(**given, high=0.28, weights=_weights(given, *extra), normalization="dapo"),
    ),
    "cispo with all corrections": (
        "cispo",
        "token",
        {**_CORRECTED, "epsilon_high": 1.1},
        lambda given, extra: _cispo(given, weights=_weights(given, *extra)),
    ),
}
PENALTIES: dict[str, Arrays] = {"no penalty": {}, "penalty": {"beta": 0.05}, "corrected": {"beta": 0.05, "kl": True}}


@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize("name", LOSSES)
def test_loss_and_gradient_are_trls(name: str, penalty: str) -> None:
    """``GRPOTrainer._compute_loss`` of the same log-probabilities, entropies and ratios, with each kind of penalty."""
    torch = pytest.importorskip("torch", reason="TRL's loss is torch's")
    trl = pytest.importorskip("trl", reason="it is TRL's loss")
    loss_type, level, settings, ours = LOSSES[name]
    given = {key: torch.tensor(array) for key, array in token_arrays(1).items()}
    given["mask"][0, 0] = 1  # TRL's metrics have no completion without a token
    random = np.random.default_rng(5)
    entropies = torch.tensor(random.exponential(size=tuple(given["mask"].shape)), dtype=torch.float32)
    ratio = torch.where(given["mask"] == 1, torch.tensor(random.exponential(size=tuple(given["mask"].shape))), 1.0)
    beta, corrects = PENALTIES[penalty].get("beta", 0.0), PENALTIES[penalty].get("kl", False)

    theirs = given["logps"].clone().requires_grad_()
    trainer = trainer_of(
        torch, theirs, loss_type, level, beta, **settings, entropies=entropies, use_bias_correction_kl=corrects
    )
    inputs = inputs_of(torch, given)
    if settings.get("use_vllm"):
        inputs["importance_sampling_ratio"] = ratio
    expected = trl.GRPOTrainer._compute_loss(trainer, None, inputs)
    expected.backward()

    logps = given["logps"].clone().requires_grad_()
    loss = ours({**given, "logps": logps, "beta": beta, "correct_kl": corrects}, (entropies, ratio))
    loss.backward()
    assert expected.item() == pytest.approx(loss.item(), rel=1e-9)
    assert theirs.grad.numpy() == pytest.approx(logps.grad.numpy(), abs=1e-9)


@pytest.mark.parametrize(("low", "high"), [(None, 2.0), (0.5, 1.5), (0.7, None)])
@pytest.mark.parametrize("mode", ["token_truncate", "token_mask", "sequence_truncate", "sequence_mask"])
def test_ratios_of_two_engines_are_trls(mode: Any, low: float | None, high: float | None) -> None:
    """The lines of ``_generate_and_score_completions``, run as they stand, also of tokens that the engine left out."""
    torch = pytest.importorskip("torch", reason="TRL's lines are torch's")
    trl = pytest.importorskip("trl", reason="they are TRL's lines")
    source = inspect.getsource(trl.GRPOTrainer._generate_and_score_completions)
    start, end = "per_token_logps_diff = (old", "# Compute the per-token log probabilities for the reference model"
    lines = source[source.rindex("\n", 0, source.index(start)) + 1 : source.index(end)]
    given = {key: torch.tensor(array) for key, array in token_arrays(3).items()}
    given["old_logps"][2, 0] = math.nan
    names = {
        "self": SimpleNamespace(
            vllm_importance_sampling_mode=mode,
            vllm_importance_sampling_clip_min=low,
            vllm_importance_sampling_clip_max=high,
        ),
        "old_per_token_logps": given["logps"],
        "sampling_per_token_logps": given["old_logps"],
        "mask": given["mask"],
        "torch": torch,
        "math": math,
    }
    exec(textwrap.dedent(lines.rstrip()), names)
    expected = names["vllm_importance_sampling_ratio"]
    ratio = importance_ratio(given["logps"], given["old_logps"], mode=mode, low=low, high=high, mask=given["mask"])
    assert expected.numpy() == pytest.approx(ratio.numpy(), rel=1e-12)


@pytest.mark.parametrize("share", [0.0, 0.2, 0.5, 1.0])
def test_entropies_and_far_completions_are_left_out_as_in_trl(share: float) -> None:
    """``get_high_entropy_mask`` with ties, and ``get_off_policy_mask`` with tokens that no engine scored."""
    torch = pytest.importorskip("torch", reason="TRL's masks are torch's")
    trl = pytest.importorskip("trl", reason="they are TRL's masks")
    given = {key: torch.tensor(array) for key, array in token_arrays(7, rows=9).items()}
    entropies = torch.tensor(np.random.default_rng(2).integers(0, 6, size=(9, 5)) / 4, dtype=torch.float32)
    trainer = trainer_of(torch, given["logps"], "grpo", "token", 0.0)
    expected = trl.GRPOTrainer.get_high_entropy_mask(trainer, entropies, given["mask"], 1 - share)
    assert expected.tolist() == top_entropy_mask(entropies, share, mask=given["mask"]).tolist()
    given["old_logps"][3, 0] = math.nan
    for threshold in (0.001, 0.1, 0.3):
        kept = trl.GRPOTrainer.get_off_policy_mask(
            given["advantages"][:, None], given["logps"], given["old_logps"], given["mask"], threshold
        )
        ours = off_policy_mask(given["logps"], given["old_logps"], given["advantages"], threshold, mask=given["mask"])
        assert kept.bool().tolist() == ours.tolist()


SURROGATES: dict[str, Any] = {
    "clip on two sides": lambda *given, **named: clipped_surrogate(*given, delta=1.5, **named),
    "cispo": cispo_surrogate,
    "sapo": sapo_surrogate,
    "vespo": vespo_surrogate,
}


@pytest.mark.parametrize("name", ["clip on two sides", "sapo"])
def test_gradients_are_those_of_finite_differences(name: str) -> None:
    """Of the surrogates that have no weight without a gradient."""
    torch = pytest.importorskip("torch", reason="gradients are torch's")
    given = {key: torch.tensor(array) for key, array in token_arrays(2).items()}
    logps = given["logps"].requires_grad_()
    assert torch.autograd.gradcheck(
        lambda tensor: SURROGATES[name](tensor, given["old_logps"], given["advantages"], mask=given["mask"]), (logps,)
    )


@pytest.mark.parametrize("name", ["cispo", "vespo"])
def test_a_weight_without_a_gradient_leaves_that_of_the_log_probability(name: str) -> None:
    """The gradient is the objective over the log-probability: weight times advantage."""
    torch = pytest.importorskip("torch", reason="gradients are torch's")
    given = {key: torch.tensor(array) for key, array in token_arrays(2).items()}
    logps = given["logps"].requires_grad_()
    objective = SURROGATES[name](logps, given["old_logps"], given["advantages"], mask=given["mask"])
    objective.sum().backward()
    assert (objective / logps).detach().numpy() == pytest.approx(logps.grad.numpy(), rel=1e-12)


@pytest.mark.parametrize("away", [-1000.0, 0.0, 1000.0])
@pytest.mark.parametrize("advantage", [-1000.0, 0.0, 1000.0])
@pytest.mark.parametrize("name", SURROGATES)
def test_extremes_have_finite_objectives_and_gradients(name: str, away: float, advantage: float) -> None:
    """In float32, which exp(89) leaves."""
    torch = pytest.importorskip("torch", reason="gradients are torch's")
    logps = torch.full((2, 3), min(away, 0.0), requires_grad=True)
    loss = grpo_loss(
        logps, None, [0.0, 0.0], surrogate=SURROGATES[name](logps, logps.detach() - away, torch.full((2,), advantage))
    )
    loss.backward()
    assert bool(torch.isfinite(loss))
    assert bool(torch.isfinite(logps.grad).all())


@pytest.mark.parametrize("name", SURROGATES)
def test_padding_is_not_read(name: str) -> None:
    """Neither its log-probabilities nor what they would make of the gradient."""
    torch = pytest.importorskip("torch", reason="gradients are torch's")
    given = {key: torch.tensor(array) for key, array in token_arrays(4).items()}
    padding = given["mask"] == 0
    clean = SURROGATES[name](given["logps"], given["old_logps"], given["advantages"], mask=given["mask"])
    logps = given["logps"].masked_fill(padding, math.nan).requires_grad_()
    old = given["old_logps"].masked_fill(padding, -math.inf)
    objective = SURROGATES[name](logps, old, given["advantages"], mask=given["mask"])
    objective.sum().backward()
    assert clean.tolist() == objective.tolist()
    assert 0.0 == logps.grad[padding].abs().sum().item()


def test_delta_bounds_what_a_bad_completion_costs() -> None:
    """A ratio of 100 counts as 4 where the advantage is negative, and is clipped as ever where it is positive."""
    ratio = np.log(np.array([[100.0], [100.0], [0.5]]))
    objective = clipped_surrogate(ratio, np.zeros((3, 1)), np.array([-1.0, 1.0, -1.0]), delta=4.0)
    assert [-4.0, 1.2, -0.8] == pytest.approx(objective[:, 0].tolist())


def test_at_the_sampling_policy_each_gradient_is_the_advantage() -> None:
    """A ratio of 1: the soft gate, the weights and the clip have the gradient of REINFORCE."""
    torch = pytest.importorskip("torch", reason="gradients are torch's")
    for name, surrogate in SURROGATES.items():
        logps = torch.full((2, 3), -0.7, dtype=torch.float64, requires_grad=True)
        surrogate(logps, None, [2.0, -1.0]).sum().backward()
        assert [[2.0] * 3, [-1.0] * 3] == [pytest.approx(row) for row in logps.grad.tolist()], name


MISTAKES: dict[str, tuple[Any, str]] = {
    "another surrogate's clip": (
        lambda: grpo_loss([[-1.0]], None, [1.0], surrogate=[[1.0]], high=0.3),
        "low, high and delta are the clipped surrogate's",
    ),
    "shape of a surrogate": (lambda: grpo_loss([[-1.0]], None, [1.0], surrogate=[1.0]), r"surrogate \(1,\)"),
    "unknown surrogate": (
        lambda: grpo_loss([[-1.0]], None, [1.0], surrogate=[[math.nan]]),
        r"surrogate\[0, 0\] is nan",
    ),
    "shape of weights": (lambda: grpo_loss([[-1.0]], None, [1.0], weights=[1.0, 2.0]), r"weights of shape \(2,\)"),
    "unknown weight": (lambda: grpo_loss([[-1.0] * 2], None, [1.0], weights=[math.nan]), r"weights\[0\] is nan"),
    "mode": (lambda: importance_ratio([[-1.0]], [[-1.0]], mode="token"), "mode='token': expected one of token_"),  # type: ignore[arg-type]
    "no bound": (
        lambda: importance_ratio([[-1.0]], [[-1.0]], mode="token_truncate", high=None),
        "mode='token_truncate' needs low or high",
    ),
    "bounds": (lambda: importance_ratio([[-1.0]], [[-1.0]], low=3.0), "high=3.0: expected a number above 3"),
    "negative bound": (lambda: importance_ratio([[-1.0]], [[-1.0]], low=-1.0), "low=-1.0: expected a number of 0"),
    "unknown probability": (lambda: importance_ratio([[math.nan]], [[-1.0]]), r"old_logps\[0, 0\] is nan"),
    "impossible probability": (
        lambda: importance_ratio([[-1.0]], [[-math.inf]]),
        r"sampling_logps\[0, 0\] is -inf",
    ),
    "shapes": (lambda: off_policy_mask([[-1.0]], [[-1.0, 0.0]], [1.0], 0.5), r"sampling_logps \(1, 2\)"),
    "threshold": (lambda: off_policy_mask([[-1.0]], [[-1.0]], [1.0], 0), "threshold=0: expected a number above 0"),
    "share": (lambda: top_entropy_mask([[1.0]], 1.5), "share=1.5: expected a number from 0 to 1"),
    "unknown entropy": (lambda: top_entropy_mask([[math.nan]], 0.5), r"entropies\[0, 0\] is nan"),
    "axes of entropies": (lambda: top_entropy_mask([1.0], 0.5), r"entropies of shape \(1,\): expected"),
    "weight of CISPO": (lambda: cispo_surrogate([[-1.0]], None, [1.0], high=0), "high=0: expected a number above 0"),
    "temperature": (lambda: sapo_surrogate([[-1.0]], None, [1.0], negative=0), "negative=0: expected a number above"),
    "gamma": (lambda: vespo_surrogate([[-1.0]], None, [1.0], positive=2.0), "positive=2.0: expected k and lambda"),  # type: ignore[arg-type]
    "ratio of sequences": (
        lambda: vespo_surrogate([[-1.0, -1.0]], None, [1.0], importance_ratio=[[1.0]]),
        r"importance_ratio \(1, 1\)",
    ),
}


@pytest.mark.parametrize(("call", "words"), MISTAKES.values(), ids=MISTAKES)
def test_a_mistake_is_named(call: Any, words: str) -> None:
    """With the argument, its value and what was expected."""
    with pytest.raises(ObjectiveError, match=words):
        call()
