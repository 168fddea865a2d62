"""verifiers' own tasks score by our functions, in 0.4 and 0.3, and the Rubric of 0.3 does."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from fault_mix import FAILED, FATES, SCORED, SKIPPED, UNKNOWN
from trainer_environment import HERE, seen_by

pytestmark = pytest.mark.trainers

OTHER = {"other": [0.25, 1.0]}
PARTS = {"4": [1.0, 1.0], "5": [0.0, 1.0], "fail": [0.0, -1.0]}
"""The parts of ``right`` and ``brave`` in the total."""


@pytest.fixture(scope="module", params=["0_4", pytest.param("0_3", marks=pytest.mark.full)])
def seen(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What one version's own code made of our functions."""
    pins = HERE / f"verifiers_{request.param}.txt"
    result = seen_by("real_verifiers", pins, folder=str(tmp_path_factory.mktemp(request.param)))
    assert result["version"].startswith(request.param.replace("_", "."))
    return result


def _plugged(scores: list[float]) -> dict[str, list[float]]:
    return {name: [score, 2.0] for name, score in zip(("right", "brave"), scores, strict=True)}


def test_a_plugged_reward_has_keyed_scores_and_each_fate(seen: dict[str, Any]) -> None:
    """Each reward is an entry with the weight of the plug; one that was skipped has no entry."""
    fates = {fate: [text for text, (of, _) in FATES.items() if of == fate] for fate in (SCORED, SKIPPED, FAILED)}
    for text in fates[SCORED] + fates[FAILED]:
        assert (text, OTHER | _plugged(PARTS[text])) == (text, seen["fates"][text]["rewards"])
    for text in fates[SKIPPED]:
        assert OTHER == seen["fates"][text]["rewards"]
    assert [1.0, 0.0] == [seen["fates"][text]["metrics"]["failed/brave"] for text in ("fail", "4")]
    assert [1.0, 0.0] == [seen["fates"][text]["metrics"]["skipped/brave"] for text in ("skip", "4")]


def test_an_unknown_reward_says_what_becomes_of_the_others(seen: dict[str, Any]) -> None:
    """The task's other reward has no score either; the metrics still have the scores that there are."""
    for text, (fate, _) in FATES.items():
        if fate != UNKNOWN:
            continue
        scored = seen["fates"][text]
        assert {"other": None, "sums": None} == scored["rewards"], text
        assert "TaskError" in scored["error"]
        assert "unknown: reward 'right': " in scored["error"]
        assert "records no reward of the trace, not those that were scored either" in scored["error"]
        assert (1.0, 1.0) == (scored["metrics"]["reward/brave"], scored["metrics"]["failed/right"])
        assert "reward/right" not in scored["metrics"]


def test_a_trace_has_what_each_turn_earned(seen: dict[str, Any]) -> None:
    """``turn_rewards`` is what the numbers add up to after each turn; a trace without credit has neither."""
    info = seen["turns"]["info"]
    assert ([1.0, 0.25], [1.0, 1.25]) == (info["turn_numbers"], info["turn_rewards"])
    assert OTHER | {"acted": [0.625, 1.0], "judged_by_level": [3.0, 1.0]} == seen["turns"]["rewards"]
    assert "turn_numbers" not in seen["steps"]["info"]


def test_messages_prompt_and_columns_come_from_task_and_trace(seen: dict[str, Any]) -> None:
    """A step reward sees the call with its answer, another reward the prompt, a column and the last text."""
    assert OTHER | {"called_add": [1.0, 1.0], "judged_by_level": [3.0, 1.0]} == seen["steps"]["rewards"]


def test_functions_declared_in_a_task_do_not_hide_each_other(seen: dict[str, Any]) -> None:
    """They have names of their own, by which verifiers tells its rewards apart."""
    assert {"brave": [1.0, 2.0], "asked": [4.0, 1.0]} == seen["declared"]["rewards"]


def test_a_trace_without_a_message_of_the_model_has_no_score(seen: dict[str, Any]) -> None:
    """Nothing was said, so nothing is scored; the reply that a trace names counts as said."""
    assert "no message of the model" in seen["silent"]["error"]
    right = 1.0 if seen["version"].startswith("0.4") else 0.0  # a trace of 0.3 names no reply
    assert [right, 2.0] == seen["reply"]["rewards"]["right"]


def test_finalize_scores_the_traces_of_a_group_together(seen: dict[str, Any]) -> None:
    """Ranks of three of four: the one that ended with an error is in no group, and gets nothing."""
    assert [2.0, 0.0, None, 1.0] == seen["group"]["totals"] == seen["group"]["rewards"]


def test_functions_that_move_in_score_as_in_verifiers(seen: dict[str, Any]) -> None:
    """A function of task and trace, and a method with keyed scores, on text and on a use of tools."""
    pairs = [pair for pairs in seen["moved"] for pair in pairs]
    assert 6 == len(pairs)
    assert [theirs for theirs, _ in pairs] == [ours for _, ours in pairs]


def test_the_rubric_of_03_takes_the_same_function(seen: dict[str, Any]) -> None:
    """It logs an error and takes 0.0; 0.4 has no Rubric."""
    expected = None if seen["version"].startswith("0.4") else [number for _, number in FATES.values()]
    assert expected == seen.get("rubric")


def test_the_docs_name_the_tested_versions(seen: dict[str, Any], root: Path) -> None:
    """The page on trainers says with which versions this runs."""
    page = (root / "docs/how-to/use-with-other-trainers.md").read_text()
    assert f"verifiers {seen['version']}" in page.split("## What is refused at the start")[1].split("\n## ")[0]
