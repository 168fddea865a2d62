"""A proxy against a gold reward over √KL: Gao's form is found, a fall is flagged, and noise is not."""

from __future__ import annotations

import json
import math
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from typer.testing import CliRunner

from rewardkit import DataError, Recorder, RecordError, Rollout, Run, Runtime, reward
from rewardkit.cli.program import app
from trainer_adapter.reward_evaluation import (
    best_of_n_over_optimisation,
    over_optimisation,
    run_over_optimisation,
)
from trainer_adapter.reward_training.cli import rm


def training(alpha: float, beta: float, noise: float, seed: int = 0, count: int = 80) -> tuple[list[float], ...]:
    """KL, proxy and gold of a training whose gold has Gao's form."""
    random = np.random.default_rng(seed)
    d = np.linspace(0.05, 6, count)
    gold = 1 + d * (alpha - beta * np.log(d)) + random.normal(0, noise, count)
    proxy = 1 + d + random.normal(0, noise, count)
    return (d**2).tolist(), proxy.tolist(), gold.tolist()


def test_the_form_and_its_peak_are_found() -> None:
    """Planted 1 and 0.6 have their peak at exp(1 / 0.6 - 1)."""
    found = over_optimisation(*training(1.0, 0.6, 0.02))
    assert found.peak == pytest.approx(math.exp(1 / 0.6 - 1), rel=0.05)
    assert found.flag is not None
    assert "over_optimisation" == found.flag.detector
    assert found.flag.first_step is not None
    assert abs(found.flag.first_step - 80 * found.peak / 6) < 15
    assert 79 == found.flag.last_step


def test_noise_raises_a_flag_once_in_a_hundred() -> None:
    """A gold that stays, beside a proxy that rises: of 400 trainings at most 2 % are flagged."""
    flags = 0
    for seed in range(400):
        kl, proxy, _ = training(1.0, 0.0, 0.3, seed)
        gold = np.random.default_rng(1000 + seed).normal(0, 0.3, len(kl)).tolist()
        flags += over_optimisation(kl, proxy, gold).flag is not None
    assert flags <= 8


def test_a_gold_that_rises_or_a_proxy_that_falls_too_is_no_over_optimisation() -> None:
    """Both rising, and both falling: the second is a training that broke, which other checks tell."""
    kl, proxy, gold = training(1.0, 0.6, 0.02)
    assert over_optimisation(kl, proxy, proxy).flag is None
    assert over_optimisation(kl, gold, gold).flag is None


def test_few_points_have_a_curve_and_no_verdict() -> None:
    """Fifteen points say why there is no flag."""
    found = over_optimisation(*(one[:15] for one in training(1.0, 0.6, 0.02)))
    assert found.flag is None
    assert "15 points" in str(found.no_verdict_reason)


def test_the_chart_is_in_the_order_of_the_distance_and_a_file_of_its_own() -> None:
    """KL that goes back and forth, an estimate below 0, and an SVG that parses."""
    found = over_optimisation([1.0, -0.1, 4.0], [1, 0, 2], [1, 0, 0.5])
    assert [0.0, 1.0, 2.0] == list(found.chart.x)
    assert [0.0, 1.0, 0.5] == list(found.chart.curves[1].values)
    root = ElementTree.fromstring(found.svg())
    assert "√KL" in root.attrib["aria-label"]
    assert over_optimisation(*training(1.0, 0.6, 0.02)).svg().count('class="flag"') == 1


def test_best_of_n_is_flagged_where_the_proxy_chooses_what_gold_dislikes() -> None:
    """A proxy that pays for its own mistakes at the far end, and one that is the gold."""
    random = np.random.default_rng(5)
    gold = random.normal(size=(300, 32))
    proxy = np.where(random.random((300, 32)) < 0.05, 9.0, gold)
    wrong = np.where(proxy == 9.0, -3.0, gold)
    found = best_of_n_over_optimisation(proxy.tolist(), wrong.tolist(), 16)
    assert found.flag is not None
    assert found.gold[-1].low < found.gold[-1].rate < found.gold[-1].high  # type: ignore[operator]
    assert best_of_n_over_optimisation(gold.tolist(), gold.tolist(), 16).flag is None


@pytest.mark.parametrize(
    ("kl", "proxy", "gold", "words"),
    [
        ([1.0, 2.0], [1.0], [1.0, 2.0], "expected equal numbers"),
        ([1.0], [1.0], [1.0], "two or more"),
        ([1.0, 2.0], [1.0, math.nan], [1.0, 2.0], r"proxy\[1\] is nan"),
    ],
    ids=["lengths", "one", "nan"],
)
def test_what_makes_no_curve_is_named(kl: list[float], proxy: list[float], gold: list[float], words: str) -> None:
    """The error says which number."""
    with pytest.raises(DataError, match=words):
        over_optimisation(kl, proxy, gold)


QUALITY = """
from rewardkit import reward

@reward
def quality(completion: str) -> float:
    if completion.endswith(" 3"):
        raise ValueError("three")
    return float(completion.split()[1])
"""


@reward
def proxy(completion: str) -> float:
    """The first number of a completion."""
    return float(completion.split()[0])


@reward
def gold(completion: str) -> float:
    """The second."""
    return float(completion.split()[1])


def recorded(run: Path, with_kl: bool = True) -> Path:
    """Write a run whose gold falls from the middle on while the proxy rises."""
    with Recorder(run) as recorder, Runtime([proxy, gold], weights=[1, 0], lane="inline") as runtime:
        for step in range(40):
            second = min(step, 40 - step)
            texts = [f"{step + n % 2} {second + n % 3}" for n in range(4)]
            batch = runtime.score([Rollout("p", text) for text in texts], step=step)
            recorder.record(batch, step=step, rewards={"proxy": proxy, "gold": gold})
            kl = {"kl": 0.01 * (step + 1)} if with_kl else {}
            recorder.metrics(step + 1, {**kl, "completions/mean_length": 25.0})
    return run


def test_a_record_gives_the_curve_of_whole_completions(tmp_path: Path) -> None:
    """KL a token times the length, at the step whose completions it is of; the trainer logs it one later."""
    with Run.open(recorded(tmp_path / "one")) as run:
        found = run_over_optimisation(run, "proxy", "gold")
        with pytest.raises(RecordError, match="no reward 'quality'; it has 'gold', 'proxy'"):
            run_over_optimisation(run, "proxy", "quality")
    assert (40, "sequence", 0) == (len(found.places), found.unit, found.left_out)
    assert pytest.approx(math.sqrt(0.01 * 25)) == found.sqrt_kl[0]
    assert found.flag is not None
    assert 15 <= (found.flag.first_step or 0) <= 25


def test_a_gold_that_was_rescored_since_gives_the_same_curve(tmp_path: Path) -> None:
    """A pass of ``rewardkit rescore`` stands in for a reward that the run did not have; failures are no zeros."""

    (tmp_path / "rw.py").write_text(QUALITY)
    path = recorded(tmp_path / "one")
    done = CliRunner().invoke(app, ["rescore", f"{path}", "--reward", f"{tmp_path}/rw.py:quality", "--workers", "1"])
    assert 0 == done.exit_code, done.output
    with Run.open(path) as run:
        found = run_over_optimisation(run, "proxy", "quality")
        golds = dict(run.series("gold"))
    assert 40 == len(found.places)
    assert [golds[step] for step in range(8, 30)] == [one.rate for one in found.gold[8:30]]
    assert found.gold[3].rate != golds[3]


def test_a_run_without_kl_says_how_to_have_it(tmp_path: Path) -> None:
    """Beta is 0 by default, and then there is no KL."""
    with (
        Run.open(recorded(tmp_path / "one", with_kl=False)) as run,
        pytest.raises(RecordError, match="train with beta above 0"),
    ):
        run_over_optimisation(run, "proxy", "gold")


def test_the_command_prints_writes_the_graph_and_fails_on_a_flag(tmp_path: Path) -> None:
    """Within 80 columns, as JSON, and with an SVG; the exit code is 1."""
    run, svg = recorded(tmp_path / "one"), tmp_path / "gold.svg"
    arguments = ["over-optimisation", f"{run}", "proxy", "gold"]
    done = CliRunner().invoke(rm, [*arguments, "--svg", str(svg)], env={"COLUMNS": "80"})
    assert 1 == done.exit_code
    assert "OVER-OPTIMISED" in done.stdout
    assert max(map(len, done.stdout.splitlines()[:-1])) <= 80
    assert "√KL" in svg.read_text()
    told = json.loads(CliRunner().invoke(rm, [*arguments, "--json"]).stdout)
    assert (40, False) == (len(told["points"]), told["ok"])


def test_the_graph_never_takes_the_place_of_the_record(tmp_path: Path) -> None:
    """Neither as a file nor through a link; and a proxy is held against another reward, not itself."""
    run = recorded(tmp_path / "one")
    (tmp_path / "link.svg").symlink_to(run / "record.db")
    for arguments, words in (
        (["proxy", "gold", "--svg", f"{run}/record.db"], "which is read; name another"),
        (["proxy", "gold", "--svg", f"{tmp_path}/link.svg"], "which is read; name another"),
        (["proxy", "proxy"], "PROXY and GOLD are both 'proxy'"),
    ):
        done = CliRunner().invoke(rm, ["over-optimisation", f"{run}", *arguments])
        assert words in str(done.exception)
    with Run.open(run) as held:
        assert 160 == held.count()


def test_a_step_whose_kl_is_no_number_is_left_out(tmp_path: Path) -> None:
    """The others have their curve, and the step is told."""
    path = recorded(tmp_path / "one", with_kl=False)
    with Recorder(path, append=True) as recorder:
        for step in range(40):
            recorder.metrics(step + 1, {"kl": math.nan if step == 3 else 0.01 * (step + 1)})
    with Run.open(path) as run:
        found = run_over_optimisation(run, "proxy", "gold")
    assert (39, 1) == (len(found.places), found.left_out)
    assert 3 not in found.places


def test_a_step_without_a_finite_reward_or_length_is_left_out(tmp_path: Path) -> None:
    """The trainer's sum may be NaN; a length that is none makes all KL that of a token."""
    path = recorded(tmp_path / "one", with_kl=False)
    with Recorder(path, append=True) as recorder:
        for step in range(40):
            recorder.metrics(step + 1, {"kl": 0.01 * (step + 1), "reward": math.nan if step == 3 else float(step)})
        recorder.metrics(6, {"completions/mean_length": math.nan})
    with Run.open(path) as run:
        curve = run_over_optimisation(run, "reward", "gold")
    assert (39, 1) == (len(curve.places), curve.left_out)
    assert 3 not in curve.places


def test_a_gold_that_never_moves_has_no_highest_point() -> None:
    """What a fit finds in it is rounding."""
    kl, proxy, _ = training(1.0, 0.6, 0.02)
    found = over_optimisation(kl, proxy, [0.1] * len(kl))
    assert ((), None, None) == (found.fitted, found.peak, found.flag)
