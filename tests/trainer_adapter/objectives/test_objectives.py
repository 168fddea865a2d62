"""What holds for all of ``trainer_adapter.objectives``."""

from __future__ import annotations

import dataclasses
import math
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rewardkit import ObjectiveError
from trainer_adapter import objectives as o

Random = np.random.Generator
Arrays = dict[str, Any]


def test_importing_the_objectives_loads_no_torch() -> None:
    """Who computes with numpy alone does not wait for torch."""
    code = (
        "import sys, trainer_adapter.objectives as o; assert o.brier([0.5], [1]) == 0.25; print('torch' in sys.modules)"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120)
    assert "False" == found.stdout.strip()


def _rewards(draw: Random) -> Arrays:
    values = draw.normal(size=12) * 10.0 ** draw.integers(-1, 2)
    values[draw.random(12) < 0.2] = np.nan
    return {"rewards": values}


def _policy(draw: Random) -> Arrays:
    rows, tokens = int(draw.integers(1, 4)), int(draw.integers(1, 6))
    logps = -draw.exponential(size=(rows, tokens))
    return {
        "logps": logps,
        "old_logps": logps + 0.3 * draw.normal(size=(rows, tokens)),
        "advantages": draw.normal(size=rows),
        "mask": (draw.random((rows, tokens)) < 0.7).astype(np.int64),
    }


def _penalized(draw: Random) -> Arrays:
    given = _policy(draw)
    return {**given, "ref_logps": given["logps"] + 0.2 * draw.normal(size=given["logps"].shape)}


def _two_models(draw: Random) -> Arrays:
    return {name: one for name, one in _penalized(draw).items() if name in ("logps", "ref_logps")}


def _weighted(draw: Random) -> Arrays:
    given = _penalized(draw)
    return {**given, "weights": draw.random(given["logps"].shape)}


def _importance(draw: Random) -> Arrays:
    given = _policy(draw)
    return {**given, "importance_ratio": draw.exponential(size=given["logps"].shape)}


def _two_engines(draw: Random) -> Arrays:
    given = _policy(draw)
    sampled = np.where(draw.random(given["logps"].shape) < 0.2, np.nan, given["old_logps"])
    return {"old_logps": given["logps"], "sampling_logps": sampled, "mask": given["mask"]}


def _far(draw: Random) -> Arrays:
    given = _two_engines(draw)
    return {"logps": given.pop("old_logps"), **given, "advantages": draw.normal(size=len(given["mask"]))}


def _entropies(draw: Random) -> Arrays:
    return {"entropies": draw.integers(0, 9, size=(3, 4)) / 4, "mask": (draw.random((3, 4)) < 0.7).astype(np.int64)}


def _sized(draw: Random) -> Arrays:
    return {**_rewards(draw), "lengths": draw.integers(0, 9, size=12)}


def _returned(draw: Random) -> Arrays:
    mask = (draw.random((12, 5)) < 0.7).astype(np.int64)
    return {"rewards": draw.normal(size=12), "mask": mask, "kl": draw.exponential(size=(12, 5))}


def _pairs(draw: Random) -> Arrays:
    many = int(draw.integers(1, 9))
    return {"chosen": 3 * draw.normal(size=many), "rejected": 3 * draw.normal(size=many)}


def _ranked(draw: Random) -> Arrays:
    ranks = draw.integers(0, 3, size=(3, 4)).astype(float)
    ranks[draw.random((3, 4)) < 0.2] = np.nan
    return {"scores": draw.normal(size=(3, 4)), "ranks": ranks}


def _prompts(draw: Random) -> Arrays:
    ranks = np.array([0.0, 1.0, *draw.integers(0, 3, size=6)])
    return {"scores": draw.normal(size=8), "ranks": ranks, "prompt_index": np.array([0, 0, *draw.integers(0, 3, 6)])}


def _probabilities(draw: Random) -> Arrays:
    probs = np.concatenate([draw.random(int(draw.integers(1, 30))), [0.0, 1.0]])
    return {"probs": probs, "labels": draw.integers(0, 2, size=len(probs))}


def _steps(draw: Random) -> Arrays:
    return {"token_probs": draw.random((3, 5)), "mask": (draw.random((3, 5)) < 0.6).astype(np.int64)}


def _labelled(draw: Random) -> Arrays:
    labels = draw.integers(0, 2, size=(3, 5))
    labels[draw.random((3, 5)) < 0.4] = -100
    labels[0, 0] = 1
    return {"logits": 4 * draw.normal(size=(3, 5)), "labels": labels}


def _classified(draw: Random) -> Arrays:
    given = _labelled(draw)
    return {**given, "logits": 4 * draw.normal(size=(3, 5, 3))}


def _lengths(draw: Random) -> Arrays:
    starts = draw.integers(0, 4, size=3)
    return {"prompt_lengths": starts, "lengths": starts + draw.integers(1, 5, size=3), "correct": draw.random(3) < 0.5}


def _ends(draw: Random) -> Arrays:
    ends = np.sort(draw.permutation(9)[:6].reshape(2, 3), axis=1)
    return {"step_ends": ends, "step_labels": draw.integers(-1, 2, size=(2, 3))}


def _shards(draw: Random) -> Arrays:
    return {"loss_sum": draw.normal(size=4), "count": np.array([3, *draw.integers(0, 9, size=3)])}


CASES: dict[str, tuple[Callable[..., Any], Callable[[Random], Arrays], Arrays]] = {
    "group_advantages": (o.group_advantages, _rewards, {"num_generations": 4}),
    "group_advantages by batch": (o.group_advantages, _rewards, {"num_generations": 4, "scale": "batch", "ddof": 0}),
    "leave_one_out_advantages": (o.leave_one_out_advantages, _rewards, {"num_generations": 4, "normalize": True}),
    "gdpo_advantages": (
        lambda rewards, other: o.gdpo_advantages([rewards, other], [1.0, 0.5], 4),
        lambda draw: {**_rewards(draw), "other": _rewards(draw)["rewards"]},
        {},
    ),
    "group_statistics": (o.group_statistics, _rewards, {"num_generations": 3}),
    "kl_estimate": (o.kl_estimate, _two_models, {}),
    "clipped_surrogate": (o.clipped_surrogate, _policy, {"high": 0.28}),
    "clipped_surrogate of sequences": (o.clipped_surrogate, _policy, {"level": "sequence"}),
    **{
        f"grpo_loss {name}": (o.grpo_loss, _penalized, {"beta": 0.1, "normalization": name})
        for name in ("grpo", "bnpo", "dr_grpo", "dapo", "luspo")
    },
    "grpo_loss weighted": (o.grpo_loss, _weighted, {"beta": 0.1, "correct_kl": True, "delta": 1.5}),
    "clipped_surrogate on two sides": (o.clipped_surrogate, _policy, {"delta": 1.1}),
    "cispo_surrogate": (o.cispo_surrogate, _policy, {"high": 1.1}),
    "sapo_surrogate": (o.sapo_surrogate, _policy, {"level": "sequence"}),
    "vespo_surrogate": (o.vespo_surrogate, _importance, {}),
    "off_policy_mask": (o.off_policy_mask, _far, {"threshold": 0.05}),
    **{
        f"importance_ratio {mode}": (o.importance_ratio, _two_engines, {"mode": mode, "low": 0.5, "high": 1.2})
        for mode in ("token_truncate", "token_mask", "sequence_truncate", "sequence_mask")
    },
    "top_entropy_mask": (o.top_entropy_mask, _entropies, {"share": 0.5}),
    "opo_advantages": (o.opo_advantages, _sized, {"num_generations": 4}),
    "reinforce_plus_plus_advantages": (o.reinforce_plus_plus_advantages, _returned, {"beta": 0.1, "discount": 0.9}),
    "reinforce_plus_plus_advantages of groups": (
        o.reinforce_plus_plus_advantages,
        _returned,
        {"num_generations": 4},
    ),
    "bradley_terry_probability": (o.bradley_terry_probability, _pairs, {}),
    "bradley_terry_loss": (o.bradley_terry_loss, _pairs, {"margin": 0.5, "center": 0.01}),
    "plackett_luce_loss": (o.plackett_luce_loss, _ranked, {}),
    "all_pairs_loss": (o.all_pairs_loss, _prompts, {}),
    "dpo_implicit_reward": (o.dpo_implicit_reward, _two_models, {"beta": 0.1}),
    "orm_labels": (o.orm_labels, _lengths, {"width": 9}),
    "orm_loss": (o.orm_loss, _labelled, {}),
    "prm_labels": (o.prm_labels, _ends, {"width": 9}),
    "prm_loss": (o.prm_loss, _classified, {}),
    **{f"aggregate {how}": (o.aggregate, _steps, {"how": how}) for how in ("mean", "min", "product", "last")},
    "pairwise_accuracy": (o.pairwise_accuracy, _pairs, {}),
    "tie_rate": (o.tie_rate, _pairs, {}),
    "whiten": (o.whiten, lambda draw: {"scores": _rewards(draw)["rewards"]}, {"groups": 4}),
    "weighted_mean_over_shards": (o.weighted_mean_over_shards, _shards, {}),
    "pair_probabilities": (o.pair_probabilities, _pairs, {"seed": 3}),
    "expected_calibration_error": (o.expected_calibration_error, _probabilities, {"bins": 7}),
    "expected_calibration_error adaptive": (
        o.expected_calibration_error,
        _probabilities,
        {"bins": 5, "adaptive": True},
    ),
    "brier": (o.brier, _probabilities, {}),
    "reliability_curve": (o.reliability_curve, _probabilities, {"bins": 4}),
    "best_of_n_expected": (o.best_of_n_expected, lambda draw: {"scores": draw.normal(size=(2, 6))}, {"n": 3}),
    "best_of_n_expected of a gold": (
        o.best_of_n_expected,
        lambda draw: {"scores": draw.integers(0, 3, size=(2, 6)).astype(float), "values": draw.normal(size=(2, 6))},
        {"n": 3},
    ),
}
_NUMBERS_ONLY = {"PRM_CLASSES", "GroupStatistics", "ReliabilityCurve", "best_of_n_kl"}


def test_every_public_function_is_compared() -> None:
    """A new one is not left out of the comparison below."""
    assert set(o.__all__) - _NUMBERS_ONLY == {name.split()[0] for name in CASES}


def _parts(found: Any) -> list[np.ndarray[Any, Any]]:
    """Return a result's arrays in float64, whatever it is made of."""
    if dataclasses.is_dataclass(found):
        found = tuple(getattr(found, field.name) for field in dataclasses.fields(found))
    parts = found if isinstance(found, tuple) else (found,)
    return [np.asarray(one.double() if hasattr(one, "double") else one, dtype=float) for one in parts]


@pytest.mark.parametrize("name", CASES)
@settings(max_examples=8, deadline=None, derandomize=True)
@given(seed=st.integers(0, 2**32 - 1))
def test_numpy_and_torch_have_one_result(name: str, seed: int) -> None:
    """For each public function, in float64 and float32, and in halves as the same numbers in float32 have it."""
    torch = pytest.importorskip("torch", reason="the objectives also work on tensors")
    call, drawn, options = CASES[name]
    arrays = drawn(np.random.default_rng(seed))
    for dtype, tolerance in (("float64", 1e-12), ("float32", 2e-5), ("float16", 2e-2), ("bfloat16", 1e-1)):
        tensors = {
            key: torch.as_tensor(one).to(getattr(torch, dtype)) if one.dtype.kind == "f" else torch.as_tensor(one)
            for key, one in arrays.items()
        }
        exact = {key: one.double().numpy() if one.is_floating_point() else one.numpy() for key, one in tensors.items()}
        expected = _parts(call(**exact, **options))
        results = [call(**tensors, **options)]
        if dtype != "bfloat16":  # which numpy has not
            results.append(call(**{key: one.numpy() for key, one in tensors.items()}, **options))
        for found in results:
            for one, other in zip(_parts(found), expected, strict=True):
                assert other.shape == one.shape
                assert np.allclose(one, other, rtol=tolerance, atol=tolerance, equal_nan=True), (dtype, one, other)


@pytest.mark.parametrize("name", CASES)
def test_integers_are_numbers(name: str) -> None:
    """Arrays of integers, and lists of them, are as the same numbers of float64."""
    call, drawn, options = CASES[name]
    arrays = drawn(np.random.default_rng(0))
    whole = {
        key: (one if key == "probs" else np.nan_to_num(one)).round().astype(np.int64) for key, one in arrays.items()
    }
    floating = {key: one.astype(float) if arrays[key].dtype.kind == "f" else one for key, one in whole.items()}
    expected = _parts(call(**floating, **options))
    for given_ in (whole, {key: one.tolist() for key, one in whole.items()}):
        for one, other in zip(_parts(call(**given_, **options)), expected, strict=True):
            assert np.allclose(one, other, rtol=1e-12, equal_nan=True)


@pytest.mark.parametrize("name", CASES)
def test_what_is_no_array_of_numbers_is_named(name: str) -> None:
    """Text and objects in the place of each array: the error is ours and has the argument and what was given."""
    call, drawn, options = CASES[name]
    arrays = drawn(np.random.default_rng(0))
    for wrong in arrays:
        named = {"other": "rewards", "step_ends": "step.end", "step_labels": "step.label"}.get(wrong, wrong)
        for value in ("text", np.full(arrays[wrong].shape, "text"), object()):
            with pytest.raises(ObjectiveError, match=f"{named}.*(text|object)"):
                call(**{**arrays, wrong: value}, **options)


SETTINGS: dict[str, tuple[Callable[[Any], Any], str]] = {
    "beta": (lambda value: o.grpo_loss([[-1.0]], None, [1.0], beta=value), "beta"),
    "low": (lambda value: o.grpo_loss([[-1.0]], None, [1.0], low=value), "low"),
    "high": (lambda value: o.clipped_surrogate([[-1.0]], [[-1.0]], [1.0], high=value), "high"),
    "max_completion_length": (
        lambda value: o.grpo_loss([[-1.0]], None, [1.0], normalization="dr_grpo", max_completion_length=value),
        "max_completion_length",
    ),
    "tokens_in_batch": (
        lambda value: o.grpo_loss([[-1.0]], None, [1.0], normalization="dapo", tokens_in_batch=value),
        "tokens_in_batch",
    ),
    "delta": (lambda value: o.grpo_loss([[-1.0]], None, [1.0], delta=value), "delta"),
    "high of CISPO": (lambda value: o.cispo_surrogate([[-1.0]], None, [1.0], high=value), "high"),
    "positive": (lambda value: o.sapo_surrogate([[-1.0]], None, [1.0], positive=value), "positive"),
    "negative": (lambda value: o.sapo_surrogate([[-1.0]], None, [1.0], negative=value), "negative"),
    "k": (lambda value: o.vespo_surrogate([[-1.0]], None, [1.0], positive=(value, 1.0)), "positive k"),
    "lambda": (lambda value: o.vespo_surrogate([[-1.0]], None, [1.0], negative=(1.0, value)), "negative lambda"),
    "threshold": (lambda value: o.off_policy_mask([[-1.0]], [[-1.0]], [1.0], value), "threshold"),
    "low of a ratio": (lambda value: o.importance_ratio([[-1.0]], [[-1.0]], low=value), "low"),
    "high of a ratio": (lambda value: o.importance_ratio([[-1.0]], [[-1.0]], high=value), "high"),
    "share": (lambda value: o.top_entropy_mask([[1.0]], value), "share"),
    "num_generations of OPO": (lambda value: o.opo_advantages([1.0, 2.0], [1, 1], value), "num_generations"),
    "beta of REINFORCE++": (lambda value: o.reinforce_plus_plus_advantages([1.0], [[1]], beta=value), "beta"),
    "discount": (lambda value: o.reinforce_plus_plus_advantages([1.0], [[1]], discount=value), "discount"),
    "beta of DPO": (lambda value: o.dpo_implicit_reward([1.0], [2.0], value), "beta"),
    "center": (lambda value: o.bradley_terry_loss([1.0], [2.0], center=value), "center"),
    "seed": (lambda value: o.pair_probabilities([1.0], [2.0], seed=value), "seed"),
    "bins": (lambda value: o.expected_calibration_error([0.5], [1], value), "bins"),
    "n": (lambda value: o.best_of_n_expected([1.0, 2.0], value), "n"),
    "n of the divergence": (o.best_of_n_kl, "n"),
    "ddof": (lambda value: o.whiten([1.0, 2.0], ddof=value), "ddof"),
    "ddof of advantages": (lambda value: o.group_advantages([1.0, 2.0], 2, ddof=value), "ddof"),
    "eps": (lambda value: o.group_advantages([1.0, 2.0], 2, eps=value), "eps"),
    "num_generations": (lambda value: o.group_advantages([1.0, 2.0], value), "num_generations"),
    "weights": (lambda value: o.gdpo_advantages([[1.0, 2.0]], [value], 2), r"weights\[0\]"),
    "width": (lambda value: o.orm_labels([1], [2], [True], width=value), "width"),
    "width of steps": (lambda value: o.prm_labels([[1]], [[1]], width=value), "width"),
}


@pytest.mark.parametrize("value", ["1", True, math.nan, math.inf, -math.inf], ids=repr)
@pytest.mark.parametrize("name", SETTINGS)
def test_a_setting_that_is_no_number_is_named(name: str, value: Any) -> None:
    """Text, a boolean, ``nan`` and infinities: with the setting and the value."""
    call, setting = SETTINGS[name]
    with pytest.raises(ObjectiveError, match=f"{setting}={value!r}"):
        call(value)


def test_a_batch_without_any_token_costs_nothing() -> None:
    """A mask of zeros, and completions of no width, have the loss 0 in every normalization but an empty width's."""
    for normalization in ("grpo", "bnpo", "dr_grpo", "dapo", "luspo"):
        masked = o.grpo_loss([[-1.0, math.nan]], None, [math.nan], mask=[[0, 0]], normalization=normalization)
        assert 0.0 == masked
        width = {"max_completion_length": 8} if normalization == "dr_grpo" else {}
        assert 0.0 == o.grpo_loss(np.zeros((2, 0)), None, [1.0, 2.0], normalization=normalization, **width)


def test_estimators_and_advantages_of_nothing_are_nothing() -> None:
    """They keep an empty shape; a mean of nothing is refused by name."""
    for found in (
        o.kl_estimate(np.zeros((0, 3)), np.zeros((0, 3))),
        o.group_advantages(np.zeros((0, 3)), 4),
        o.leave_one_out_advantages(np.zeros((0, 3)), 4),
        o.whiten(np.zeros((0, 3))),
        o.opo_advantages(np.zeros((0, 3)), np.zeros((0, 3)), 4),
        o.sapo_surrogate(np.zeros((0, 3)), None, np.zeros(0)),
        o.top_entropy_mask(np.zeros((0, 3)), 0.2),
        o.importance_ratio(np.zeros((0, 3)), np.zeros((0, 3)), mode="token_mask"),
        o.reinforce_plus_plus_advantages(np.zeros(0), np.zeros((0, 3))),
        o.bradley_terry_probability(np.zeros((0, 3)), np.zeros((0, 3))),
    ):
        assert (0, 3) == found.shape
    assert (0,) == o.best_of_n_expected(np.zeros((0, 3)), 2, values=np.zeros((0, 3))).shape
    assert [] == o.prm_labels([], []).tolist()
    for nothing in (
        lambda: o.bradley_terry_loss([], []),
        lambda: o.group_statistics([], 2),
        lambda: o.brier([], []),
        lambda: o.pairwise_accuracy([], []),
        lambda: o.weighted_mean_over_shards([], []),
    ):
        with pytest.raises(ObjectiveError, match=r"no |nothing|one or more|empty"):
            nothing()
