"""A scored batch is written whole, and read back as it was."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from recorded import batch

from rewardkit import Rollout, Runtime, Score, ScoreBatch, Status, reward
from rewardkit.errors import RecordError
from rewardkit.record.notes import add_notes
from rewardkit.record.places import place_of_record
from rewardkit.record.reader import RunReader
from rewardkit.record.recorder import Recorder
from rewardkit.record.secrets import Secrets


@reward
def exact(completion: str, answer: str) -> Score:
    """Pay for the answer itself, and say so."""
    print("looked at", completion)
    return Score(float(completion == answer), "equal" if completion == answer else "other", {"length": len(completion)})


@reward(default=0.25)
def fragile(completion: str) -> float | None:
    """Fail on ``bad``, skip ``none``."""
    if completion == "bad":
        raise ValueError("cannot")
    return None if completion == "none" else 1.0


def rollouts(*completions: str) -> list[Rollout]:
    """Return rollouts of one prompt."""
    example = {"answer": "4"}
    return [Rollout("2+2=", completion, example) for completion in completions]


def test_what_was_scored_is_read_back(place: Any) -> None:
    """Outcomes, sums, versions and the prompt's index come back from the file as the batch had them."""
    with Runtime([exact, fragile], workers=1, record=place / "one") as runtime:
        batch = runtime.score(rollouts("4", "bad", "none", "4"), step=3, epoch=0.5)
    with RunReader(place / "one") as run:
        found = list(run.completions())
        for place, one in enumerate(found):
            for name, column in batch.items():
                took = pytest.approx(column[place].duration_s, rel=1e-5)
                assert one.outcomes[name] == column[place]._replace(duration_s=took)
        assert [one.total for one in found] == [2.0, 0.25, 0.0, 2.0]
        assert {(one.step, one.epoch, one.split, one.prompt_index, one.rank) for one in found} == {
            (3, 0.5, "train", 0, 0)
        }
        assert [one.completion for one in found] == ["4", "bad", "none", "4"]
        assert (found[0].prompt, found[0].columns) == ("2+2=", {"answer": "4"})
        versions = {one.reward: one for one in run.versions}
        assert versions["exact"].digits == exact.version
        assert "looked at" in (versions["exact"].source or "")
        assert (versions["exact"].reference or "").endswith(("test_record:exact", "test_record.py:exact"))
        (summary,) = run.summaries("fragile")
        assert (summary.scored, summary.skipped, summary.counted, summary.failed) == (2, 1, 2, {"exception": 1})
        assert 1.0 == summary.mean, "without the default"
        assert [(3, 1.0)] == run.series("fragile")
        table = run.table()
        assert table.status["fragile"].tolist() == ["s", "f", "k", "s"]
        assert table.causes["fragile"].tolist() == ["", "exception", "", ""]
        assert run.texts(table.ids[:2].tolist()) == ["4", "bad"]


def test_the_plain_sum_is_of_the_rewards_that_weigh_anything(place: Any) -> None:
    """A reward of weight 0 is watched, and not in the total; a weight of 0.5 changes the weighted sum alone."""
    with Runtime([exact, fragile], weights=[0.5, 0], workers=1, record=place) as runtime:
        runtime.score(rollouts("4", "5"))
    with RunReader(place) as run:
        rows = list(run.completions())
        assert [(1.0, 0.5, 0.5), (0.0, 0.0, 0.0)] == [(row.plain_sum, row.total, row.reward) for row in rows]


def test_where_no_reward_weighs_anything_there_is_no_total(place: Any) -> None:
    """Rewards that are only watched have scores, and add up to nothing that is known."""
    with Runtime([exact], weights=[0], workers=1, record=place) as runtime:
        runtime.score(rollouts("4"))
    with RunReader(place) as run:
        (one,) = run.completions()
        assert (one.total, one.outcomes["exact"].score) == (None, 1.0)


@pytest.mark.parametrize("text", ["", "\x01", "\x02\x01[]", '\x01[{"role": "user"}]', "\x03", "\ud800", "a\x00b"])
def test_any_text_is_read_back(place: Any, text: str) -> None:
    """Whatever letters a model put out, also those that the record itself uses."""
    with Runtime([exact], lane="inline", record=place) as runtime:
        runtime.score([Rollout(text, text, {"answer": text})])
    with RunReader(place) as run:
        (one,) = run.completions()
        assert (text, text, {"answer": text}) == (one.prompt, one.completion, one.columns)
        assert run.texts([one.id]) == [text]


def test_numbers_of_numpy_are_numbers_in_the_record(place: Any) -> None:
    """A step that was counted with numpy is read back as that step; one that is no number costs its batch only."""
    with Recorder(place) as recorder, Runtime([exact], lane="inline", record=recorder) as runtime:
        runtime.score(rollouts("4"), step=np.int64(7), epoch=np.float32(0.5))
        recorder.advantages(np.int64(7), "train", np.array([0.25], np.float32))
        recorder.metrics(np.int64(8), {"loss": np.float32(0.5)})
        recorder.event("seen", {}, step=np.int64(7))
        runtime.score(rollouts("5"), step=1.5)  # type: ignore[arg-type]
        assert not recorder.flush()
        assert recorder.lost == 1
    with RunReader(place) as run:
        (one,) = run.completions()
        assert (one.step, one.epoch, one.advantage) == (7, 0.5, 0.25)
        assert (run.steps(), run.metrics("loss"), run.events[0]["step"]) == ([7], [(8, 0.5)], 7)


def test_of_two_that_begin_a_run_at_one_moment_one_is_refused(place: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both have found nothing there; their rows would stand in one run as if they were of one training."""
    monkeypatch.setattr(type(place_of_record(place)), "exists", lambda run: False)
    with Recorder(place) as first:
        with pytest.raises(RecordError, match="another recorder has begun there"):
            Recorder(place)
        first.record(batch(), step=0)
    with RunReader(place) as run:
        assert (len(run.sessions), run.count()) == (1, 8)


def test_columns_of_numpy_are_what_a_reward_can_be_given_again(place: Any) -> None:
    """A number of a data frame is a number in the record, so that a replay scores as the run did."""
    row = {"n": np.int64(3), "x": np.float32(0.5), "yes": np.bool_(True), "many": np.arange(2), "odd": b"x"}
    with Runtime([exact], lane="inline", record=place) as runtime:
        runtime.score([Rollout("p", "c", {"answer": "4", **row})])
    with RunReader(place) as run:
        columns = run.prompt(0).columns
    assert columns == {"answer": "4", "n": 3, "x": 0.5, "yes": True, "many": [0, 1], "odd": "b'x'"}


class Picture:
    """An image: its words name its address and not what it shows."""

    def __init__(self, shown: str) -> None:
        self.shown = shown


def test_a_row_with_an_image_is_one_prompt_in_all_epochs(place: Any) -> None:
    """Each batch has a copy of its own; another image makes another prompt."""
    kept = [Picture(shown) for shown in ("a cat", "a cat", "a dog")]
    with Runtime([exact], lane="inline", record=place / "one") as runtime:
        for picture in kept:
            prompt = [{"role": "user", "content": [{"type": "image", "image": picture}]}]
            runtime.score([Rollout(prompt, "yes", {"image": picture, "answer": "yes"})])
    with RunReader(place / "one") as run:
        assert [0, 0, 1] == [one.prompt_index for one in run.completions()]


def test_a_note_is_added_while_the_run_goes_on(place: Any) -> None:
    """By another process, without a session of its own, and without the secrets of the environment."""
    with Recorder(place) as recorder:
        recorder.record(batch(2, "a"))
        recorder.flush()
        add_notes(recorder.path, "alert", [{"detector": "ceiling", "reward": None}, {"bad": "\ud800"}], step=3)
        recorder.record(batch(2, "b"))
    with RunReader(place) as run:
        assert [("alert", 3), ("alert", 3)] == [(event["kind"], event["step"]) for event in run.events]
        assert {"detector": "ceiling", "reward": None} == run.events[0]["body"]
        assert (1, 4) == (len(run.sessions), run.count())


def test_runtimes_share_a_recorder(place: Any) -> None:
    """One that a ``with`` statement holds goes on when a runtime has ended; another ends with its runtime."""
    with Recorder(place / "one") as recorder:
        for step in range(2):
            with Runtime([exact], lane="inline", record=recorder) as runtime:
                runtime.score(rollouts("4"), step=step)
    with RunReader(place / "one") as run:
        assert (run.steps(), recorder.lost, run.running) == ([0, 1], 0, False)
    with Runtime([exact], lane="inline", record=Recorder(place / "two")) as runtime:
        runtime.score(rollouts("4"), step=0)
    with RunReader(place / "two") as run:
        assert not run.running


def test_failed_calls_are_found_by_reward(place: Any) -> None:
    """Also behind a page's last one; those of another reward are not, and one with a score limit finds none."""
    with Runtime([exact, fragile], workers=1, record=place / "one") as runtime:
        for step in range(3):
            runtime.score(rollouts("bad", "4", "bad"), step=step)
    with RunReader(place / "one") as run:
        failed = [one.id for one in run.completions(reward="fragile", status=Status.FAILED)]
        assert failed == [one.id for one in run.completions() if one.completion == "bad"]
        assert [one.id for one in run.completions(reward="fragile", status="failed", after=failed[2])] == failed[3:]
        assert list(run.completions(reward="exact", status="failed")) == []
        assert list(run.completions(reward="fragile", status="failed", min_score=2.0)) == []


def test_searches_find_what_fits(place: Any) -> None:
    """Scores, status and prompt narrow a search, page by page."""
    with Runtime([exact, fragile], workers=1, record=place / "one") as runtime:
        runtime.score(rollouts("4", "bad", "5"), step=0)
        runtime.score(rollouts("4", "none"), step=1)
    with RunReader(place / "one") as run:
        assert [one.completion for one in run.completions(reward="exact", min_score=0.5)] == ["4", "4"]
        assert [one.completion for one in run.completions(reward="exact", max_score=0.5)] == ["bad", "5", "none"]
        assert [one.completion for one in run.completions(reward="fragile", status=Status.FAILED)] == ["bad"]
        assert [one.completion for one in run.completions(step=1)] == ["4", "none"]
        assert [one.completion for one in run.completions(prompt=0, limit=2)] == ["4", "bad"]
        assert [entry.completion for entry in run.logs(reward="fragile")] == [2]
        assert [entry.outcome.logs for entry in run.logs(grep="at none")] == ["looked at none\n"]
        with pytest.raises(RecordError, match="no reward 'exat'; it has exact, fragile"):
            list(run.completions(reward="exat"))


def test_a_run_with_a_record_is_refused_unless_appended_to(place: Any) -> None:
    """A second recorder on one run needs to say that it appends."""
    with Recorder(place) as recorder:
        recorder.record(batch(), step=0)
    with pytest.raises(RecordError, match="has a record"):
        Recorder(place)
    assert Recorder(place, append=True).close()


def test_a_start_that_ended_before_its_first_batch_blocks_no_other(place: Any) -> None:
    """Closed or not, by this process or by one that was killed; its session is gone, and no record is moved aside."""
    Recorder(place).close()
    Recorder(place)  # never closed, and garbage
    script = f"import os; from rewardkit import Recorder; kept = Recorder({str(place)!r}); os._exit(1)"
    subprocess.run([sys.executable, "-c", script], check=False)
    with Recorder(place, anew=True) as recorder:
        recorder.record(batch(), step=0)
    with RunReader(place) as run:
        assert (1, 8) == (len(run.sessions), run.count())


def test_an_open_recorder_blocks_another_also_before_its_first_batch(place: Any) -> None:
    """Of this process, or of one that lives: two trainings would stand in one record."""
    with Recorder(place), pytest.raises(RecordError, match="has a record"):
        Recorder(place)
    script = f"from rewardkit import Recorder; kept = Recorder({str(place)!r}); print('made', flush=True); input()"
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen([sys.executable, "-c", script], **pipes) as other:
        assert other.stdout is not None
        assert b"made\n" == other.stdout.readline()
        with pytest.raises(RecordError, match="has a record"):
            Recorder(place)
        other.kill()


def test_a_batch_without_rewards_is_recorded(place: Any) -> None:
    """Its completions are there, and a command can show them."""
    with Recorder(place) as recorder:
        recorder.record(ScoreBatch(rollouts("4", "5"), {}, {}), step=0)
        assert recorder.flush()
    with RunReader(place) as run:
        assert ["4", "5"] == [completion.completion for completion in run.completions()]
        assert [0] == run.steps()


def test_a_record_is_moved_aside_whole(tmp_path: Path) -> None:
    """With what is not yet in the file itself; a second one of the same second has a name of its own."""
    for number in range(3):
        with Runtime([exact], lane="inline", record=Recorder(tmp_path, anew=True)) as runtime:
            runtime.score(rollouts("4"), step=number)
    old = sorted(tmp_path.glob("record-*.db"))
    assert 2 == len(old)
    for place in (tmp_path, *old):
        with RunReader(place) as run:
            assert 1 == run.count()
    assert place_of_record(tmp_path / "none").move_aside() is None


def test_what_is_done_again_is_taken_out(place: Any) -> None:
    """From the checkpoint's step on; evaluations and metrics of that very step, and what is scored later, stay."""
    with Recorder(place) as recorder, Runtime([exact, fragile], lane="inline") as runtime:
        batch = runtime.score(rollouts("4", "bad"))
        for step in (0, 1, 2):
            for split in ("train", "eval"):
                recorder.record(batch, step=step, split=split, rewards=runtime.rewards)
            recorder.metrics(step + 1, {"reward": 1.0})
        recorder.rewind(1)
        recorder.record(batch, step=1, rewards=runtime.rewards)
    with RunReader(place) as run:
        assert ([0, 1], [0, 1], 8) == (run.steps(), run.steps("eval"), run.count())
        assert [(1, 1.0)] == run.metrics("reward")
        assert 4 == len(list(run.logs(reward="fragile")))


def test_what_is_done_again_is_taken_out_whatever_the_clocks_say(place: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The machine that goes on may be behind the one that was killed."""
    with Runtime([exact], lane="inline") as runtime:
        batch = runtime.score(rollouts("4"))
        with Recorder(place) as one:
            for step in (0, 1):
                one.record(batch, step=step, rewards=runtime.rewards)
        now = time.time()
        monkeypatch.setattr(time, "time", lambda: now - 3600)
        with Recorder(place, append=True) as one:
            one.rewind(1)
            one.record(batch, step=1, rewards=runtime.rewards)
    with RunReader(place) as run:
        assert [0, 1] == [one.step for one in run.completions()]


def test_what_becomes_known_later_is_in_the_session(tmp_path: Path) -> None:
    """Without keys, by the name of the setting; a process of a higher rank makes no file to say it."""
    with Recorder(tmp_path, about={"seed": 1}) as recorder:
        recorder.add_about({"training": {"hub_token": "hf-abc", "seed": 2}})
    with RunReader(tmp_path) as run:
        (session,) = run.sessions
    assert (1, {"hub_token": "***", "seed": 2}) == (session["about"]["seed"], session["about"]["training"])
    with Recorder(tmp_path / "other", rank=1) as recorder:
        recorder.add_about({"seed": 1})
    assert not (tmp_path / "other").exists()


def test_secrets_of_the_environment_reach_no_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a reward prints of a key is written as the key's name."""
    monkeypatch.setenv("JUDGE_API_KEY", "sk-very-secret")

    @reward
    def leaking(completion: str) -> float:
        print("sk-very-secret")
        return 1.0

    with Runtime([leaking], lane="inline", record=tmp_path) as runtime:
        runtime.score(rollouts("4"))
    with RunReader(tmp_path) as run:
        (one,) = run.logs()
        assert one.outcome.logs == "<JUDGE_API_KEY>\n"
    assert not any(b"sk-very-secret" in file.read_bytes() for file in tmp_path.iterdir())


def test_a_secret_is_hidden_as_json_writes_it() -> None:
    """A key with quotes, a backslash or letters beyond ASCII is hidden in settings and configuration as well."""
    key = 'p"w\\d-schlüssel'
    secrets = Secrets({"KEY": key}, {})
    for text in (key, json.dumps({"a": key}), json.dumps({"a": key}, ensure_ascii=False)):
        assert "<KEY>" in secrets.hide(text)
        assert "schl" not in secrets.hide(text)
