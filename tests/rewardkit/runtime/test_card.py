"""Rewards that use a card: one without memory, and several workers at one card. Real cards only where there is one."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from rewardkit import Cause, Rollout, Runtime, Status
from rewardkit.runtime.attempt import failure_of
from rewardkit.runtime.card import FULL, lost_on_card

FULL_NOW = (
    "CUDA out of memory. Tried to allocate 20.00 GiB. GPU 0 has a total capacity of 79.10 GiB of which 3.12 GiB is "
    "free. Process 4711 has 75.97 GiB memory in use."
)
TOO_MUCH = FULL_NOW.replace("20.00 GiB", "80.00 GiB")


class OutOfMemoryError(RuntimeError):
    """Stands for torch's."""


@pytest.fixture
def torch_stand_in(monkeypatch: pytest.MonkeyPatch) -> None:
    """A torch that is imported, of which only that error is needed."""
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(OutOfMemoryError=OutOfMemoryError))


@pytest.mark.parametrize(
    ("error", "cause"),
    [
        (OutOfMemoryError(FULL_NOW), Cause.INFRASTRUCTURE),
        (OutOfMemoryError("CUDA out of memory."), Cause.INFRASTRUCTURE),
        (OutOfMemoryError("HIP out of memory. Tried to allocate 3.50 GiB. GPU 0 has ..."), Cause.INFRASTRUCTURE),
        (OutOfMemoryError(FULL_NOW.replace("20.00 GiB", "900.00 MiB")), Cause.INFRASTRUCTURE),
        (OutOfMemoryError(TOO_MUCH), Cause.EXCEPTION),
        (OutOfMemoryError(FULL_NOW.replace("20.00 GiB", "1.00 TiB")), Cause.EXCEPTION),
        (MemoryError(FULL_NOW), Cause.EXCEPTION),
        (RuntimeError(FULL_NOW), Cause.EXCEPTION),
    ],
    ids=str,
)
@pytest.mark.usefixtures("torch_stand_in")
def test_a_full_card_is_no_fault_of_the_completion(error: Exception, cause: Cause) -> None:
    """Another process may have filled it; a call that asks for more than the card has is the reward's own fault."""
    finding = failure_of(error)
    assert cause is finding.cause
    assert (FULL in (finding.error or "")) is (cause is Cause.INFRASTRUCTURE)


def test_without_torch_no_error_is_a_cards(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is imported to find out."""
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    assert lost_on_card(OutOfMemoryError(FULL_NOW)) is None
    assert "torch" not in sys.modules


def _needs_card() -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed")
    if not torch.cuda.is_available():
        pytest.skip("this machine has no card that torch can use")


ON_CARD = """
import torch
from rewardkit import reward

@reward(timeout_s=120)
def scored(completion: str) -> float:
    if completion == "too much":
        torch.empty(torch.cuda.get_device_properties(0).total_memory + (1 << 30), dtype=torch.uint8, device="cuda")
    return float(torch.full((64,), len(completion), device="cuda", dtype=torch.float32).mean().cpu())
"""


def _score(folder: Path, module: str, completions: list[str], workers: int) -> list[tuple[Status, float | None]]:
    (folder / "rewards.py").write_text(module)
    with Runtime([f"{folder / 'rewards.py'}:scored"], workers=workers, load_timeout_s=300) as runtime:
        outcomes = runtime.score([Rollout("p", completion) for completion in completions])["scored"]
    return [(outcome.status, outcome.score) for outcome in outcomes]


@pytest.mark.parametrize("workers", [2, 16])
def test_workers_share_a_card_that_the_parent_uses(tmp_path: Path, workers: int) -> None:
    """The parent's own use of it, begun before, is in no worker; many workers begin theirs after they are forked."""
    _needs_card()
    import torch

    torch.zeros(1, device="cuda")
    completions = ["x" * (n % 7 + 1) for n in range(8 * workers)]
    expected = [(Status.SCORED, float(len(completion))) for completion in completions]
    assert expected == _score(tmp_path, ON_CARD, completions, workers)


def test_a_module_that_uses_the_card_as_it_is_loaded_is_loaded_by_each_worker(tmp_path: Path) -> None:
    """A fork of what has begun to use a card could not use it."""
    _needs_card()
    module = ON_CARD.replace("@reward", "kept = torch.zeros(1, device='cuda')\n\n@reward")
    assert [(Status.SCORED, 3.0)] * 64 == _score(tmp_path, module, ["xxx"] * 64, 16)


def test_a_call_that_wants_more_than_the_card_has_fails_by_itself(tmp_path: Path) -> None:
    """Those beside it have their scores."""
    _needs_card()
    statuses = [status for status, _ in _score(tmp_path, ON_CARD, ["xxx", "too much", "xx"], 1)]
    assert [Status.SCORED, Status.FAILED, Status.SCORED] == statuses
