"""Who changes a reward of a running training is told what the change does, and whether and when it holds."""

from __future__ import annotations

import contextlib
import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from rewardkit import (
    MissingColumnError,
    RecordError,
    RewardDefinitionError,
    RewardError,
    RewardLoadError,
    Rollout,
    Run,
    Runtime,
    Score,
    UpdateRefusedError,
    reward,
)
from rewardkit.cli.program import app
from rewardkit.record import changes
from rewardkit.record.changes import Action, ChangeState
from rewardkit.replay import update as module
from rewardkit.replay.live_runtime import LiveRuntime
from rewardkit.replay.update import RunConfig, RunningReward, RunningRewards, wishes

ROWS = [
    Rollout(f"{prompt}+1=", completion, {"answer": str(prompt + 1)})
    for prompt in range(3)
    for completion in ("1", "22", "333", "4444")
]


@reward
def brief(completion: str) -> float:
    """The first version: long is good."""
    return float(len(completion))


@reward
def other(completion: str) -> float:
    """A reward beside it."""
    return 0.5


def brief_v2(completion: str, answer: int) -> Score:
    """The second version: short is good."""
    return Score(float(answer > 0) - len(completion), "shorter")


def failing(completion: str) -> float:
    """A reward that never works."""
    raise ValueError("never")


def lacking(completion: str, gold: str) -> float:
    """A reward of a column that nobody has."""
    return float(completion == gold)


@contextlib.contextmanager
def live(folder: Path, lane: str = "worker") -> Iterator[LiveRuntime]:
    """Give a loop that has done one step."""
    with LiveRuntime(Runtime([brief, other], workers=1, lane=lane, record=folder / "run")) as runtime:
        runtime.score(ROWS, step=0)
        recorder = runtime.runtime.recorder
        assert recorder is not None
        recorder.flush()
        yield runtime


def test_a_configuration_is_changed_as_its_owner_would(tmp_path: Path) -> None:
    """A function put under a reward's name takes its place at the step after, and what it does is told."""
    with live(tmp_path) as runtime, Run.open(tmp_path / "run") as run:
        config = run.get_config()
        before = config.reward_fns.functions["brief"]
        assert isinstance(before, RunningReward)
        assert (before.digits, before.version and before.version.label) == (brief.version, "brief@1")
        config.reward_fns.functions["brief"] = brief_v2
        (update,) = run.update_config(config)
        assert (update.name, update.action, update.state, update.step) == (
            "brief", Action.REPLACE, ChangeState.ACCEPTED, 1,
        )  # fmt: skip
        assert update.difference is not None
        assert update.difference.comparison.sign_flips == len(ROWS)
        batch = runtime.score(ROWS, step=1)
        assert batch.scores["brief"][:4] == [0.0, -1.0, -2.0, -3.0]
        assert runtime.runtime.rewards["brief"].version == update.digits
        (change,) = run.changes
        assert change.body["text"] == Path(__file__).read_text(encoding="utf-8")
    with Run.open(tmp_path / "run") as run:
        assert [(one.label, one.digits) for one in run.versions if one.reward == "brief"] == [
            ("brief@1", brief.version), ("brief@2", update.digits),
        ]  # fmt: skip


def test_a_function_that_no_file_defines_goes_by_value(tmp_path: Path) -> None:
    """What is defined inside a function, with what it closes over, scores in the training's workers."""
    factor = 10.0

    def longer(completion: str) -> float:
        return factor * len(completion)

    with live(tmp_path) as runtime, Run.open(tmp_path / "run") as run:
        config = run.get_config()
        config.reward_fns.functions["brief"] = longer
        config.reward_fns.functions["more"] = {"source": "def more(completion: str) -> float:\n    return 2.0\n"}
        config.reward_weights["other"] = 4.0
        assert {ChangeState.ACCEPTED} == {one.state for one in run.update_config(config)}
        batch = runtime.score(ROWS[:1], step=1)
        assert (batch.scores, batch.totals) == ({"brief": [10.0], "other": [0.5], "more": [2.0]}, [14.0])


REFUSED: dict[str, tuple[Any, type[RewardError], str]] = {
    "never works": (failing, UpdateRefusedError, "failed on all of the 12 completions of step 0 .* ValueError: never"),
    "a column": (lacking, MissingColumnError, "'gold'"),
    "no file": ("nowhere.py:brief", RewardLoadError, "nowhere.py: No such file"),
    "no function": (f"{__file__}:nothing", RewardLoadError, "no 'nothing' in it"),
    "no name": (__file__, RewardLoadError, "name the function"),
    "no reward": (3, RewardDefinitionError, "3 is not a reward"),
}


@pytest.mark.parametrize(("like", "error", "words"), REFUSED.values(), ids=list(REFUSED))
def test_what_fails_its_check_is_not_asked(tmp_path: Path, like: Any, error: type[RewardError], words: str) -> None:
    """The training never hears of it."""
    with live(tmp_path, "inline"), Run.open(tmp_path / "run") as run:
        config = run.get_config()
        config.reward_fns.functions["brief"] = like
        with pytest.raises(error, match=words):
            run.update_config(config)
        assert run.changes == []


def test_a_training_that_has_ended_says_so(tmp_path: Path) -> None:
    """Neither Python nor the command line leaves a request behind."""
    with live(tmp_path, "inline"):
        pass
    with Run.open(tmp_path / "run") as run, pytest.raises(UpdateRefusedError, match="the training ended at"):
        run.get_config()
    done = CliRunner().invoke(app, ["update", str(tmp_path / "run"), "brief", f"{__file__}:brief_v2", "--json"])
    assert done.exit_code == 2
    assert json.loads(done.stdout)["error"]["type"] == "UpdateRefusedError"


def test_a_run_that_never_took_changes_has_ended_too(tmp_path: Path) -> None:
    """A run that only recorded says that it is over, and who would take a change."""
    with Runtime([brief], lane="inline", record=tmp_path / "run") as runtime:
        runtime.score(ROWS, step=0)
        with Run.open(tmp_path / "run") as run, pytest.raises(UpdateRefusedError, match="no training has taken") as now:
            run.get_config()
    assert "ended" not in str(now.value)
    with Run.open(tmp_path / "run") as run, pytest.raises(UpdateRefusedError, match="the run has ended"):
        run.get_config()


def test_a_configuration_has_the_changes_to_come(tmp_path: Path) -> None:
    """Between the answer and its step a configuration shows what will hold, so a second change builds on the first."""
    with live(tmp_path) as runtime, Run.open(tmp_path / "run") as run:
        config = run.get_config()
        config.reward_fns.functions["again"] = f"{__file__}:brief_v2"
        config.reward_weights["again"] = 0.5
        del config.reward_fns.functions["other"]
        run.update_config(config)
        coming = run.get_config()
        assert list(coming.reward_fns.functions) == ["brief", "again"]
        assert coming.reward_weights == {"brief": 1.0, "again": 0.5}
        coming.reward_fns.functions["again"] = f"{__file__}:brief"
        (update,) = run.update_config(coming)
        assert (update.action, update.step) == (Action.REPLACE, 1)
        runtime.score(ROWS, step=1)
        now = run.get_config()
        assert now.reward_fns.functions["again"].digits == update.digits
        assert now.reward_weights == coming.reward_weights


def test_no_answer_in_time_is_no_refusal(tmp_path: Path) -> None:
    """Who does not wait is told that the change is asked for, and it is applied all the same."""
    with live(tmp_path, "inline") as runtime, Run.open(tmp_path / "run") as run:
        config = run.get_config()
        config.reward_weights["brief"] = 2.0
        (update,) = run.update_config(config, wait_s=0.0)
        assert update.state in (ChangeState.ASKED, ChangeState.ACCEPTED)
        while run.changes[0].state is ChangeState.ASKED:
            continue
        assert runtime.score(ROWS[:1], step=1).totals == [2.5]


def test_changes_that_cannot_all_be_asked_for_are_not_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The disk is full at the second one: the first is taken back, as the words say."""

    def ask(connection: sqlite3.Connection, name: str, *said: Any) -> int:
        if name == "other":
            raise sqlite3.OperationalError("database or disk is full")
        return changes.ask(connection, name, *said)

    monkeypatch.setattr(module, "ask", ask)
    with live(tmp_path, "inline"), Run.open(tmp_path / "run") as run:
        config = run.get_config()
        config.reward_weights |= {"brief": 0.25, "other": 0.75}
        with pytest.raises(RecordError, match="disk is full; nothing is asked"):
            run.update_config(config)
        assert [] == run.changes


def test_the_command_shows_what_a_change_does(tmp_path: Path) -> None:
    """A shadow first, then the change; a weight, and a reward that goes."""
    place, run = f"{__file__}:brief_v2", str(tmp_path / "run")

    def command(*words: str) -> str:
        done = CliRunner().invoke(app, ["update", run, *words])
        assert done.exit_code == 0, done.output
        return str(done.stdout)

    with live(tmp_path) as runtime:
        said = command("brief", place, "--shadow")
        assert "sign flips       12 of 12 advantages (100.0%)" in said
        assert said.endswith("with weight 0, from step 1 on\n")
        assert list(runtime.score(ROWS, step=1).scores) == ["brief", "other", "brief_shadow"]
        assert "from step 2 on" in command("brief", place)
        assert list(runtime.score(ROWS, step=2).scores) == ["brief", "other"]
        assert "brief has its new weight from step 3 on\n" == command("brief", "--weight", "0.25")
        assert "other is away from step 3 on\n" == command("other", "--remove")
        told = json.loads(command("again", place, "--add", "--json"))
        assert (told["ok"], told["action"], told["state"], told["step"]) == (True, "add", "accepted", 3)
        assert runtime.score(ROWS, step=3).weights == {"brief": 0.25, "again": 1.0}


WRONG: dict[str, tuple[list[str], str]] = {
    "nothing": ([], "the new function is missing"),
    "two": (["a.py:b", "--shadow", "--add"], "--shadow and --add: give one of them"),
    "removed with a function": (["a.py:b", "--remove"], "--remove takes x away"),
    "shadow with a weight": (["a.py:b", "--shadow", "--weight", "1"], "a shadow has the weight 0"),
}


@pytest.mark.parametrize(("words", "said"), WRONG.values(), ids=list(WRONG))
def test_a_command_line_without_a_meaning_is_refused(words: list[str], said: str) -> None:
    """Before the run is looked at."""
    done = CliRunner().invoke(app, ["update", "nowhere", "x", *words])
    assert (done.exit_code, said in done.stderr) == (2, True)


def test_a_configuration_becomes_the_changes_that_lead_to_it() -> None:
    """What is equal asks for nothing; a name that is gone is removed; what cannot change is refused."""

    def config(functions: dict[str, Any], **weights: float) -> RunConfig:
        return RunConfig(RunningRewards(functions), weights)

    a, b = (RunningReward(name, "", 1.0) for name in "ab")
    now = config({"a": a, "b": b}, a=1.0, b=1.0)
    assert wishes(config({"a": a, "b": b}, a=1.0, b=1.0), now) == []
    found = wishes(config({"a": brief, "c": other}, a=2.0, c=0.5), now)
    assert [(one.name, one.action, one.weight) for one in found] == [
        ("a", Action.REPLACE, 2.0), ("c", Action.ADD, 0.5), ("b", Action.REMOVE, None),
    ]  # fmt: skip
    (shadow,) = wishes(config({"a": brief, "b": b}), now, shadow=True)
    assert shadow.action is Action.SHADOW
    with pytest.raises(RewardDefinitionError, match="reward_weights name 'z'"):
        wishes(config({"a": a, "b": b}, z=1.0), now)
    with pytest.raises(RewardDefinitionError, match="is the running 'a'; give a function"):
        wishes(config({"a": a, "b": a}), now)
