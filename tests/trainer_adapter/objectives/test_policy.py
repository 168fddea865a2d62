"""The clipped surrogate, GRPO's loss and the estimators of the divergence: TRL's numbers, gradients and extremes."""

from __future__ import annotations

import inspect
import math
import re
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest
from trl_loss import inputs_of, token_arrays, trainer_of

from rewardkit import ObjectiveError
from trainer_adapter import GRPOConfig
from trainer_adapter.objectives import clipped_surrogate, grpo_loss, kl_estimate

LEVELS = ("token", "sequence")
NORMALIZATIONS = ("grpo", "bnpo", "dr_grpo", "dapo", "luspo")


def by_loops(
    given: dict[str, Any], *, low: float, high: float, level: str, normalization: str, beta: float, longest: int
) -> float:
    """Return GRPO's loss in plain loops over completions and tokens."""
    rows, every = [], []
    for logps, old, ref, advantage, mask in zip(
        given["logps"], given["old_logps"], given["ref_logps"], given["advantages"], given["mask"], strict=True
    ):
        kept = [place for place, one in enumerate(mask) if one]
        mean = sum(logps[place] - old[place] for place in kept) / max(len(kept), 1)
        terms = []
        for place in kept:
            ratio = math.exp(mean if level == "sequence" else logps[place] - old[place])
            clipped = min(max(ratio, 1 - low), 1 + high)
            away = ref[place] - logps[place]
            terms.append(beta * (math.exp(away) - away - 1) - min(ratio * advantage, clipped * advantage))
        rows.append(sum(terms) / max(len(kept), 1))
        every += terms
    divisor = {"bnpo": len(every), "dapo": len(every), "dr_grpo": len(rows) * longest, "luspo": len(rows)}
    return sum(rows) / len(rows) if normalization == "grpo" else sum(every) / divisor[normalization]


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("normalization", NORMALIZATIONS)
def test_the_loss_is_that_of_plain_loops_in_numpy_and_torch(level: Any, normalization: Any) -> None:
    """In float64, with a penalty and a wider upper bound."""
    torch = pytest.importorskip("torch", reason="tensors are torch's")
    given = token_arrays()
    options = {"low": 0.2, "high": 0.28, "level": level, "normalization": normalization, "beta": 0.1}
    expected = by_loops(given, longest=9, **options)
    found = grpo_loss(**given, **options, max_completion_length=9)
    of_tensors = grpo_loss(
        **{name: torch.tensor(one) for name, one in given.items()}, **options, max_completion_length=9
    )
    assert (expected, expected) == pytest.approx((float(found), of_tensors.item()), rel=1e-12)
    assert torch.float64 == of_tensors.dtype


@pytest.mark.parametrize("beta", [0.0, 0.05])
@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("normalization", NORMALIZATIONS)
def test_loss_and_gradient_are_trls(normalization: Any, level: Any, beta: float) -> None:
    """``GRPOTrainer._compute_loss`` of the same log-probabilities."""
    torch = pytest.importorskip("torch", reason="TRL's loss is torch's")
    trl = pytest.importorskip("trl", reason="it is TRL's loss")
    given = {name: torch.tensor(one) for name, one in token_arrays(1).items()}
    given["mask"][0, 0] = 1  # TRL's metrics have no completion without a token
    losses, gradients = [], []
    for _ in range(2):
        logps = given["logps"].clone().requires_grad_()
        if losses:
            loss = grpo_loss(
                **{**given, "logps": logps},
                beta=beta,
                high=0.28,
                level=level,
                normalization=normalization,
                max_completion_length=9,
            )
        else:
            trainer = trainer_of(torch, logps, normalization, level, beta)
            loss = trl.GRPOTrainer._compute_loss(trainer, None, inputs_of(torch, given))
        loss.backward()
        losses.append(loss.item())
        gradients.append(logps.grad.tolist())
    assert losses[0] == pytest.approx(losses[1], rel=1e-9)
    assert np.asarray(gradients[0]) == pytest.approx(np.asarray(gradients[1]), abs=1e-9)


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("normalization", NORMALIZATIONS)
def test_gradients_are_those_of_finite_differences(normalization: Any, level: Any) -> None:
    """For log-probabilities away from the bounds of the clipping."""
    torch = pytest.importorskip("torch", reason="gradients are torch's")
    given = {name: torch.tensor(one) for name, one in token_arrays(2).items()}
    logps = given.pop("logps").requires_grad_()
    assert torch.autograd.gradcheck(
        lambda one: grpo_loss(one, **given, beta=0.1, level=level, normalization=normalization), (logps,)
    )


@pytest.mark.parametrize("kind", ["k1", "k2", "k3"])
def test_estimators_keep_shape_and_kind(kind: Any) -> None:
    """Numpy and torch give the same numbers, and the gradient is that of finite differences."""
    torch = pytest.importorskip("torch", reason="tensors are torch's")
    given = token_arrays(3)
    away = given["ref_logps"] - given["logps"]
    expected = {"k1": -away, "k2": away**2 / 2, "k3": np.exp(away) - away - 1}[kind]
    found = kl_estimate(given["logps"], given["ref_logps"], kind)
    tensors = torch.tensor(given["logps"], requires_grad=True), torch.tensor(given["ref_logps"])
    assert found == pytest.approx(expected, abs=1e-12)
    assert kl_estimate(*tensors, kind).detach().numpy() == pytest.approx(expected, abs=1e-12)
    assert torch.autograd.gradcheck(lambda one: kl_estimate(one, tensors[1], kind), (tensors[0],))
    half = kl_estimate(tensors[0].bfloat16(), tensors[1].bfloat16(), kind)
    assert (torch.bfloat16, (6, 5)) == (half.dtype, tuple(half.shape))


def test_of_nearly_equal_models_k3_keeps_its_digits() -> None:
    """With d = 1e-9, d²/2 is far below what exp(d) - d - 1 would lose."""
    assert 0.0 <= kl_estimate(np.array([-1.0]), np.array([-1.0 + 1e-6]))[0] == pytest.approx(5e-13, rel=1e-3)


def test_what_is_masked_is_not_read() -> None:
    """Neither the padding's junk nor what it would make of the gradient."""
    torch = pytest.importorskip("torch", reason="gradients are torch's")
    given = {name: torch.tensor(one) for name, one in token_arrays(4).items()}
    padding = given["mask"] == 0
    clean = grpo_loss(**given, beta=0.1).item()
    for name, junk in (("logps", math.nan), ("old_logps", -math.inf), ("ref_logps", math.inf)):
        given[name] = given[name].masked_fill(padding, junk)
    logps = given.pop("logps").requires_grad_()
    loss = grpo_loss(logps, **given, beta=0.1)
    loss.backward()
    assert clean == pytest.approx(loss.item(), rel=1e-12)
    assert bool(torch.isfinite(logps.grad).all())
    assert 0.0 == logps.grad[padding].abs().sum().item()


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("away", [-1000.0, 0.0, 1000.0])
@pytest.mark.parametrize("advantage", [-1000.0, 0.0, 1000.0])
def test_extremes_have_finite_losses_and_gradients(level: Any, away: float, advantage: float) -> None:
    """In float32, which exp(89) leaves."""
    torch = pytest.importorskip("torch", reason="gradients are torch's")
    logps = torch.full((2, 3), min(away, 0.0), requires_grad=True)
    loss = grpo_loss(logps, logps.detach() - away, torch.full((2,), advantage), level=level)
    loss.backward()
    assert bool(torch.isfinite(loss))
    assert bool(torch.isfinite(logps.grad).all())


def test_without_old_log_probabilities_only_the_gradient_counts() -> None:
    """The ratio is 1; the gradient is that of REINFORCE, minus the advantage over the tokens."""
    torch = pytest.importorskip("torch", reason="gradients are torch's")
    logps = torch.zeros(2, 4, dtype=torch.float64, requires_grad=True)
    loss = grpo_loss(logps, None, torch.tensor([1.0, -3.0], dtype=torch.float64))
    loss.backward()
    assert 1.0 == loss.item()
    assert [-1 / 8] * 4 + [3 / 8] * 4 == pytest.approx(logps.grad.reshape(-1).tolist())


def test_a_surrogate_is_clipped_where_it_would_gain() -> None:
    """A ratio of 2 counts as 1.2 for what was good, as 2 for what was bad; 1/2 the other way round."""
    ratio = np.log(np.array([[2.0], [2.0], [0.5], [0.5]]))
    found = clipped_surrogate(ratio, np.zeros((4, 1)), np.array([1.0, -1.0, 1.0, -1.0]))
    assert [1.2, -2.0, 0.5, -0.8] == pytest.approx(found[:, 0].tolist())


def test_a_completion_has_one_ratio_at_the_level_of_sequences() -> None:
    """The exponential of the mean over its tokens; the padding stays out of it and has 0."""
    logps = np.array([[0.1, 0.3, -7.0]])
    found = clipped_surrogate(logps, np.zeros((1, 3)), np.array([-1.0]), level="sequence", mask=[[1, 1, 0]])
    assert [-math.exp(0.2), -math.exp(0.2), 0.0] == pytest.approx(found[0].tolist())


MISTAKES: dict[str, tuple[Any, str]] = {
    "kind": (lambda: kl_estimate([-1.0], [-1.0], "k4"), "kind='k4': expected 'k1', 'k2' or 'k3'"),
    "shapes of an estimator": (lambda: kl_estimate([-1.0], [[-1.0]]), r"logps \(1,\), ref_logps \(1, 1\)"),
    "one axis": (lambda: grpo_loss([-1.0], None, [1.0]), r"shape \(1,\): expected \(completions, tokens\)"),
    "old": (lambda: clipped_surrogate([[-1.0]], [[-1.0, 0.0]], [1.0]), r"old_logps \(1, 2\)"),
    "advantages": (lambda: grpo_loss([[-1.0]], None, [1.0, 2.0]), r"advantages of shape \(2,\): expected \(1,\)"),
    "unknown advantage": (lambda: grpo_loss([[-1.0, -1.0]], None, [math.nan]), r"advantages\[0\] is nan, not finite"),
    "unknown log-probability": (lambda: grpo_loss([[-1.0, math.nan]], None, [1.0]), r"logps\[0, 1\] is nan"),
    "impossible token": (lambda: clipped_surrogate([[-1.0]], [[-math.inf]], [1.0]), r"old_logps\[0, 0\] is -inf"),
    "unknown reference": (
        lambda: grpo_loss([[-1.0]], None, [1.0], ref_logps=[[math.nan]], beta=0.1),
        r"ref_logps\[0, 0\] is nan",
    ),
    "text": (lambda: grpo_loss([["a"]], None, [1.0]), r"logps=\[\['a'\]\]: expected an array of numbers"),
    "ragged rows": (lambda: grpo_loss([[-1.0], [-1.0, 0.0]], None, [1.0, 1.0]), "logps=.*: expected an array of num"),
    "text for the penalty": (lambda: grpo_loss([[-1.0]], None, [1.0], beta="0.1"), "beta='0.1': expected a number"),  # type: ignore[arg-type]
    "an endless penalty": (lambda: grpo_loss([[-1.0]], None, [1.0], beta=math.inf), "beta=inf: expected a number"),
    "mask": (lambda: grpo_loss([[-1.0]], None, [1.0], mask=[[2]]), "expected 1 on the tokens"),
    "shape of the mask": (lambda: grpo_loss([[-1.0]], None, [1.0], mask=[1]), r"mask \(1,\)"),
    "level": (lambda: grpo_loss([[-1.0]], None, [1.0], level="turn"), "level='turn'"),  # type: ignore[arg-type]
    "low": (lambda: grpo_loss([[-1.0]], None, [1.0], low=2), "low=2: expected a number from 0 to 1"),
    "beta": (lambda: grpo_loss([[-1.0]], None, [1.0], beta=-1), "beta=-1: expected a number of 0 or more"),
    "no reference": (lambda: grpo_loss([[-1.0]], None, [1.0], beta=0.1), "beta=0.1 needs ref_logps"),
    "no completion": (lambda: grpo_loss(np.zeros((0, 3)), None, np.zeros(0)), "no completions"),
    "normalization": (lambda: grpo_loss([[-1.0]], None, [1.0], normalization="x"), "normalization='x'"),  # type: ignore[arg-type]
    "longest": (
        lambda: grpo_loss([[-1.0]], None, [1.0], normalization="dr_grpo", max_completion_length=0),
        "max_completion_length=0: expected a number of 1 or more",
    ),
    "tokens": (
        lambda: grpo_loss([[-1.0]], None, [1.0], normalization="dapo", tokens_in_batch=0),
        "tokens_in_batch=0: expected a number above 0",
    ),
}


@pytest.mark.parametrize(("call", "words"), MISTAKES.values(), ids=MISTAKES)
def test_a_mistake_is_named(call: Any, words: str) -> None:
    """With the argument, its value and what was expected."""
    with pytest.raises(ObjectiveError, match=words):
        call()


PAGE = Path(__file__).parents[3] / "docs" / "explanation" / "grpo-mathematics.md"


def test_the_page_says_which_losses_of_trl_are_here() -> None:
    """The table has each loss type and level of the installed TRL, with the call that is here."""
    pytest.importorskip("trl", reason="TRL's losses are those of the extra train")
    from trl import GRPOTrainer

    source = inspect.getsource(GRPOTrainer._compute_loss)
    losses = set(re.findall(r'"(\w+)"', " ".join(re.findall(r"self\.loss_type (?:==|in) (.+):", source))))
    levels = set(re.findall(r'self\.importance_sampling_level == "(\w+)"', source))
    assert {"grpo", "vespo"} <= losses
    assert {"token", "sequence"} == levels
    rows = re.findall(r'^\| `(\w+)="(\w+)"` \| (.+?) \|', PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    here = {name: cell.split("`")[1] for _, name, cell in rows}
    assert losses == {name for setting, name, _ in rows if setting == "loss_type"}
    assert losses == set(get_args(GRPOConfig.model_fields["loss_type"].annotation))
    assert levels == {name for setting, name, _ in rows if setting == "importance_sampling_level"}
    averages = {name: name for name in NORMALIZATIONS} | {"cispo": "dapo", "sapo": "grpo", "vespo": "dapo"}
    assert {name: f'grpo_loss(normalization="{average}")' for name, average in averages.items()} | {
        name: f'level="{name}"' for name in LEVELS
    } == here
