"""The example of a learned reward goes its whole road: in short form a few steps of each part."""

from __future__ import annotations

import importlib
import importlib.util
import json
import runpy
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from rewardkit import Run


@pytest.fixture
def example(root: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The example's folder, from which its modules can be imported by their names."""
    folder = root / "docs" / "examples" / "learned_reward"
    names = [file.stem for file in folder.glob("*.py")]
    monkeypatch.syspath_prepend(folder)
    yield folder
    for name in names:
        sys.modules.pop(name, None)


@pytest.mark.full
@pytest.mark.trainers
@pytest.mark.filterwarnings("ignore")  # those of torch and trl: nothing of ours
def test_the_example_goes_from_pairs_to_the_plot(
    example: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Pairs, a reward model, best of n, a recorded GRPO run and both graphs are there; the gold is not followed."""
    for module in ("torch", "trl"):
        if importlib.util.find_spec(module) is None:
            pytest.skip(f"{module} is not installed; `make setup` installs it")
    set_here = {"OMP_WAIT_POLICY": "passive", "HF_HUB_OFFLINE": "1", "HF_HUB_DISABLE_PROGRESS_BARS": "1"}
    for name, value in {**set_here, "TRANSFORMERS_VERBOSITY": "error"}.items():
        monkeypatch.setenv(name, value)  # taken back; the example sets what is not set
    short = {"steps": 2, "pairs": 40, "teaching": 30, "prompts": 2, "epochs": 1, "output": tmp_path}
    options = [part for name, value in short.items() for part in (f"--{name}", str(value))]
    monkeypatch.setattr(sys, "argv", ["learned_reward.py", *options])
    runpy.run_path(str(example / "learned_reward.py"), run_name="__main__")
    shown = capfd.readouterr().out
    assert [] == [line for line in shown.splitlines() if len(line) > 80 and str(tmp_path) not in line]
    assert "learned against gold" in shown
    rows = [json.loads(line) for line in (tmp_path / "pairs.jsonl").read_text().splitlines()]
    assert {"prompt", "chosen", "rejected"} == set(rows[0])
    assert "bradley_terry" == json.loads((tmp_path / "reward-model" / "reward_model.json").read_text())["kind"]
    for name in ("best-of-n.svg", "over-optimisation.svg"):
        assert "√KL" in ElementTree.fromstring((tmp_path / name).read_text()).attrib["aria-label"]
    summary = json.loads((tmp_path / "summary.json").read_text())
    assert (2, 32) == (len(summary["training"]["points"]), len(summary["best_of_n"]["points"]))
    with Run.open(tmp_path / "run") as run:
        assert (128, [0, 1], {"learned", "gold"}) == (run.count(), run.steps(), set(run.rewards))
        totals = dict(run.metrics("reward"))
        assert pytest.approx(totals) == dict(run.metrics("rewards/learned/mean"))


@pytest.fixture
def reviews(example: Path) -> Any:
    """The example's world."""
    return importlib.import_module("reviews")


@pytest.mark.parametrize(
    ("review", "worth"),
    [
        ("", 0.0),
        ("the room was lovely and clean .", 2.0),
        ("the room was lovely and dirty .", 0.0),
        ("the room was lovely and lovely . it was lovely and old .", -1.0),
        ("the the the", 0.0),
        ("old old", -1.0),
    ],
    ids=["nothing", "praise", "both", "repeated", "no judgement", "repeated fact"],
)
def test_a_guest_likes_praise_and_no_repetition(reviews: Any, review: str, worth: float) -> None:
    """Each word of praise counts once, and each repetition against it."""
    assert worth == reviews.gold(completion=review)


def test_preferences_are_those_of_bradley_and_terry(reviews: Any) -> None:
    """A review that is better by 1 is chosen in 73 % of 4,000 pairs; two that are equal make no pair."""
    good, plain = "the room was lovely .", "the room was old ."
    rows = reviews.preferences([("p", good, plain)] * 2_000 + [("p", plain, good)] * 2_000, seed=0)
    assert pytest.approx(0.731, abs=0.02) == sum(row["chosen"] == good for row in rows) / len(rows)
    assert [] == reviews.preferences([("p", good, good), ("p", " ", good)], seed=0)
