"""``judge.calibrate(rows)``: agreement with one's own labels, the best threshold, and what it takes."""

from __future__ import annotations

import asyncio
import json
import math
import signal
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from builtin_rewards.judge import JudgeSetupError, Jury, LLMJudge, Load, PairwiseJudge, Price
from builtin_rewards.judge.own_labels import (
    LabelAgreement,
    LabelledRows,
    LabelledScore,
    _held_out_thresholds,
    calibrate,
)
from rewardkit import DataError, Reward, Rollout
from rewardkit.cli.program import app
from rewardkit.score_batch import costs_told
from rewardkit.testing import Asked, FakeJudge


def grades(asked: Asked) -> str:
    """Return the grade that the completion asks for, and no verdict where it asks for none."""
    grade = asked.text.split("worth ")[1][0]
    return json.dumps({"good": {"reason": "So.", "score": int(grade) if grade.isdigit() else None}})


def judge(**settings: Any) -> LLMJudge:
    return LLMJudge("m", ["good"], client=FakeJudge(grades), **{"prices": {"m": Price(1.0, 2.0)}, **settings})


def rows(*graded: tuple[int | str, object]) -> list[dict[str, Any]]:
    return [
        {"prompt": f"p{place}", "completion": f"worth {grade}", "label": label}
        for place, (grade, label) in enumerate(graded)
    ]


def calibrated(made: Reward[..., Any], labelled: LabelledRows, **settings: Any) -> LabelAgreement:
    """Return what ``made.calibrate(labelled)`` does, asked in this process, which starts no worker."""
    return calibrate(made, labelled, **settings, lane="inline")


MIXED = rows(*[(4, True)] * 10, *[(3, True)] * 6, *[(3, False)] * 4, *[(2, False)] * 10, *[(4, False)] * 2)
"""At 0.5, which is grade 3, 16 right and 6 wrong are accepted, 10 wrong refused: 26 of 32 agree."""


def test_agreement_is_that_of_the_labels() -> None:
    """By hand: p_o = 26/32 and p_e = (22 * 16 + 10 * 16) / 32² = 1/2, so kappa is 5/8."""
    found = judge().calibrate(MIXED)
    assert (32, 32, 0) == (found.rows, found.scored, found.failed)
    assert (26 / 32, pytest.approx(0.625)) == (found.agreement.rate, found.kappa.rate)
    assert found.kappa.low < 0.625 < found.kappa.high
    assert 96 == found.more_labels


def test_scores_that_are_all_the_same_need_no_more_labels() -> None:
    """Labels are no help to a judge that tells nothing apart; what it takes is told without powers of ten."""
    found = calibrated(judge(), rows(*[(4, 1), (4, 0)] * 10))
    assert (0.0, None) == (found.kappa.rate, found.more_labels)
    assert "all scores are the same, so no labels help" in str(found)
    assert f"{found.per_1000['prompt_tokens']:,.0f} prompt_tokens" in str(found)
    assert "e+" not in str(found)


def test_what_is_printed_fits_eighty_columns() -> None:
    """With the best threshold by that name, and the area under the curve."""
    lines = str(calibrated(judge(), MIXED)).splitlines()
    assert max(map(len, lines)) <= 80
    assert [True, True] == [any(line.startswith(one) for line in lines) for one in ("best threshold 0.", "AUC 0.")]


def test_the_best_threshold_is_found() -> None:
    """A judge that grades good ones 5 and bad ones 4 is perfect, if not at 0.5; each row judged by the others'."""
    found = calibrated(judge(), rows(*[(5, 1), (4, 0)] * 20))
    assert (0.0, 0.875, 1.0, 1.0) == (found.kappa.rate, found.best_threshold, found.best_kappa.rate, found.auc)


def test_twenty_thousand_scores_that_all_differ_take_a_moment() -> None:
    """However many there are, few thresholds are tried, so that the time does not grow with their cube."""
    pairs = [LabelledScore(index / 20_000, index % 7 > 2) for index in range(20_000)]
    assert 20_000 == len(_held_out_thresholds(pairs))


def test_an_interrupt_ends_the_asking(tmp_path: Path) -> None:
    """The questions that wait are not asked."""
    asked = tmp_path / "asked"

    def script(asked_about: Asked) -> str:
        with asked.open("a") as file:
            file.write(".")
        return grades(asked_about)

    made = LLMJudge("m", ["good"], client=FakeJudge(script, latency_s=0.5), load=Load(concurrency=1))

    def interrupt() -> None:
        while not asked.exists():
            time.sleep(0.01)
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

    threading.Thread(target=interrupt).start()
    with pytest.raises(KeyboardInterrupt):
        made.calibrate(MIXED)
    assert len(asked.read_text()) < 10


def test_a_threshold_fitted_to_noise_is_told_as_such() -> None:
    """Where grades say nothing the best threshold is worth nothing on rows that it was not chosen by."""
    found = calibrated(judge(), rows(*[(grade, place % 2) for place, grade in enumerate([1, 2, 3, 4, 5] * 8)]))
    assert found.best_kappa.rate is not None
    assert found.best_kappa.rate <= 0.05


def test_what_a_thousand_rows_take_is_told() -> None:
    """Requests, tokens and cost by what these rows took; without a price no cost."""
    made = judge(samples=3)
    per_1000 = calibrated(made, MIXED).per_1000
    tokens = per_1000["prompt_tokens"] + 2 * per_1000["completion_tokens"]
    assert (3000.0, pytest.approx(tokens / 1e6)) == (per_1000["requests"], per_1000["cost_usd"])
    assert "cost_usd" not in calibrated(judge(prices={}), MIXED).per_1000


def test_rows_that_fail_are_counted_and_not_scored() -> None:
    """Neither as agreement nor as disagreement; the first few say why."""
    found = calibrated(judge(), [*MIXED, *rows(("x", True), ("y", False))])
    assert (34, 32, 2, pytest.approx(0.625)) == (found.rows, found.scored, found.failed, found.kappa.rate)
    assert "has not the form" in found.errors[0]
    assert "32 of 34 rows scored, 2 failed" in str(found)
    with pytest.raises(DataError, match="none of 2 rows was scored; the first"):
        calibrated(judge(), rows(("x", True), ("y", False)))


def test_rows_that_are_skipped_are_no_failures() -> None:
    """An image that the judge cannot see: the row is told apart from those that scored and those that failed."""
    image = [{"role": "assistant", "content": [{"type": "image_url", "image_url": {"url": "http://x/y.png"}}]}]
    found = calibrated(judge(), [*MIXED, {"prompt": "p", "completion": image, "label": True}, *rows(("no", True))])
    assert (34, 32, 1) == (found.rows, found.scored, found.failed)
    assert "32 of 34 rows scored, 1 failed, 1 skipped" in str(found)


def test_rows_are_rollouts_rows_or_a_file(tmp_path: Path) -> None:
    """All the same, inside of an event loop too."""
    file = tmp_path / "rows.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in MIXED))
    rollouts = [Rollout(row["prompt"], row["completion"], {"human": row["label"]}) for row in MIXED]

    async def inside() -> LabelAgreement:
        return judge().calibrate(MIXED)

    found = [calibrated(judge(), file), calibrated(judge(), rollouts, label="human"), asyncio.run(inside())]
    assert [calibrated(judge(), MIXED)] * 3 == found


def test_a_jury_and_a_chain_are_calibrated_too() -> None:
    """They are judges of single completions."""
    jury = Jury([judge(name="one"), judge(name="two")])
    found = [calibrated(made, MIXED).kappa.rate for made in (jury, judge().fallback(jury))]
    assert [pytest.approx(0.625)] * 2 == found


@pytest.mark.parametrize(
    ("labelled", "words"),
    [
        ([{"prompt": "p", "completion": "worth 3"}], "row 0: no label in column 'label'; columns are none"),
        ([{"prompt": "p", "completion": "worth 3", "good": 1}], "columns are 'good': name one of them, as label="),
        (
            rows((3, True), (3, "good")),
            "row 1: label in column 'label': expected true or false, 1 or 0, yes or no; got",
        ),
        (rows((3, True), (3, None)), "row 1: label in column 'label': expected true or false"),
        (rows((3, True), (4, True)), "all of one kind"),
        ([], "there are no rows"),
    ],
)
def test_bad_labels_are_named_before_anything_is_asked(labelled: list[dict[str, Any]], words: str) -> None:
    made = judge()
    with pytest.raises(DataError, match=words):
        made.calibrate(labelled)
    assert [] == made.model.client.asked  # type: ignore[union-attr]


@pytest.mark.parametrize("threshold", [5, -0.1, math.nan, True, "0.5"])
def test_a_threshold_that_no_score_reaches_is_refused(threshold: Any) -> None:
    made = judge()
    with pytest.raises(JudgeSetupError, match=f"threshold={threshold!r}: expected a number from 0 to 1"):
        made.calibrate(MIXED, threshold=threshold)
    assert [] == made.model.client.asked  # type: ignore[union-attr]


def test_a_judge_of_groups_has_no_labels() -> None:
    with pytest.raises(JudgeSetupError, match="compares completions"):
        PairwiseJudge("m", client=FakeJudge("")).calibrate(MIXED)


@pytest.mark.parametrize(
    ("made", "options", "told"),
    [
        ("LLMJudge('m', reference='answer', client=FakeJudge.verdict(correct=5), prices=prices)", [],
         "judge: 1,000 completions take 1,000 requests"),
        ("PairwiseJudge('m', client=FakeJudge.verdict('A'), prices=prices)", [],
         "preference: 1,000 completions in groups of 8 take 7,000 requests"),
        ("PairwiseJudge('m', client=FakeJudge.verdict('A'), prices=prices)", ["--num-generations", "3"],
         "preference: 1,000 completions in groups of 3 take 2,000 requests"),
    ],
    ids=["single", "groups", "groups of three"],
)  # fmt: skip
def test_check_says_what_a_thousand_completions_take(tmp_path: Path, made: str, options: list[str], told: str) -> None:
    """Before training, by what the references of the first rows took; of n in a group each meets n - 1 others."""
    (tmp_path / "judges.py").write_text(
        "from builtin_rewards.judge import LLMJudge, PairwiseJudge, Price\n"
        "from rewardkit.testing import FakeJudge\n"
        f"prices = {{'m': Price(1.0, 2.0)}}\njudge = {made}\n"
    )
    (tmp_path / "rows.jsonl").write_text('{"prompt": "2+2=", "answer": "4"}\n{"prompt": "3+3=", "answer": "6"}\n')
    files = [f"{tmp_path}/judges.py", "--data", f"{tmp_path}/rows.jsonl"]
    ran = CliRunner().invoke(app, ["check", *files, *options])
    assert 0 == ran.exit_code
    assert told in " ".join(ran.stdout.split())
    assert "cost_usd" in ran.stdout


def test_check_fits_eighty_columns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a timeout of minutes, costs and a long warning; names are whole, and one request is no requests."""
    monkeypatch.setenv("COLUMNS", "80")
    (tmp_path / "judges.py").write_text(
        "from builtin_rewards.judge import ListwiseJudge, LLMJudge, PairwiseJudge, Price\n"
        "from rewardkit.testing import FakeJudge\nfrom rewardkit import reward\n"
        "listed = ListwiseJudge('m', client=FakeJudge('none'))\n"
        "paired = PairwiseJudge('m', client=FakeJudge.verdict('A'), prices={'m': Price(1.0, 2.0)})\n"
        "@reward\ndef kind(completion: str, level) -> None:\n    return None\n"
    )
    (tmp_path / "rows.jsonl").write_text('{"prompt": "2+2=", "answer": "4", "level": "easy"}\n' * 3)
    ran = CliRunner().invoke(app, ["check", f"{tmp_path}/judges.py", "--data", f"{tmp_path}/rows.jsonl"])
    lines = ran.stdout.splitlines()
    assert max(map(len, lines)) <= 80
    assert [1, 1] == [sum(line.startswith(f"{name} ") for line in lines) for name in ("preference", "ranking")]
    assert any(line.startswith("kind: warning: ") for line in lines)
    assert "1 request, 2 prompt_tokens" == costs_told({"requests": 1.0, "prompt_tokens": 2.0})


def test_check_says_that_it_does_not_know_what_completions_take(tmp_path: Path) -> None:
    """Of rows without right answers nothing is scored."""
    (tmp_path / "judges.py").write_text(
        "from builtin_rewards.judge import LLMJudge\nfrom rewardkit.testing import FakeJudge\n"
        "judge = LLMJudge('m', ['kind'], client=FakeJudge.verdict(kind=5))\n"
    )
    (tmp_path / "rows.jsonl").write_text('{"prompt": "Say hello."}\n')
    ran = CliRunner().invoke(app, ["check", f"{tmp_path}/judges.py", "--data", f"{tmp_path}/rows.jsonl"])
    assert (0, True) == (
        ran.exit_code,
        "completions take is not known: no right answer and no completion" in " ".join(ran.stdout.split()),
    )
