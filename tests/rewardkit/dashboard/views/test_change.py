"""A reward is tried and asked for from the page in a process of its own, and nothing is applied that was not asked."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from patience import wait_for

from rewardkit import ConfigError, RecordError, Rollout, Run, Runtime, UpdateRefusedError, reward
from rewardkit.changing import LiveRuntime
from rewardkit.dashboard.edited import function_of, write_source
from rewardkit.dashboard.jobs import Jobs
from rewardkit.dashboard.query import Query
from rewardkit.dashboard.readers import NotThere, OpenRun, RunCache
from rewardkit.dashboard.trial import in_one_line
from rewardkit.dashboard.views.change import POSTS, view
from rewardkit.errors import RewardLoadError
from rewardkit.record.changes import Action, Standing, join
from rewardkit.record.changes import ask as request

ROWS = [Rollout("2+2=", completion, {"answer": "4"}) for completion in ("4", "5", "4", "44")]


@reward
def brief(completion: str) -> float:
    """The first version: the completion's length."""
    return float(len(completion))


@reward
def other(completion: str) -> float:
    """A reward beside it."""
    return 0.5


def source(score: str, name: str = "brief", more: str = "", top: str = "") -> str:
    """Return the text of a reward with this expression."""
    return f"{top}\n\ndef {name}(completion: str{more}) -> float:\n    return {score}\n"


@pytest.fixture
def recorded(tmp_path: Path) -> Iterator[OpenRun]:
    """Give a run that has ended."""
    with LiveRuntime(Runtime([brief, other], lane="inline", record=tmp_path / "one")) as live:
        for step in range(2):
            live.score(ROWS, step=step)
    with Run.open(tmp_path / "one") as run, contextlib.closing(Jobs()) as jobs:
        yield OpenRun(run, RunCache(), jobs)


@pytest.fixture
def training(tmp_path: Path) -> Iterator[tuple[OpenRun, LiveRuntime]]:
    """Give a run that goes on."""
    with LiveRuntime(Runtime([brief, other], workers=1, record=tmp_path / "one")) as live:
        live.score(ROWS, step=0)
        assert live.runtime.recorder is not None
        assert live.runtime.recorder.flush()
        with Run.open(tmp_path / "one") as run, contextlib.closing(Jobs()) as jobs:
            yield OpenRun(run, RunCache(), jobs), live


def send(opened: OpenRun, what: str, /, **body: Any) -> dict[str, Any]:
    """Send what the page sends, and return how far it is."""
    job: dict[str, Any] = POSTS[what](opened, body)["job"]
    return job


def until(claim: Callable[[], Any]) -> Any:
    """Wait until a claim holds, which it does in the end."""
    assert wait_for(claim), "it never came to hold"
    return claim()


def ended(opened: OpenRun) -> Mapping[str, Any]:
    """Wait for the end of what is under way."""

    def job() -> Any:
        found = view(opened, Query({"only": "job"}))["job"]
        return found if found["state"] != "running" else None

    found: Mapping[str, Any] = until(job)
    return found


def test_a_trial_tells_what_a_changed_reward_does_and_applies_nothing(recorded: OpenRun) -> None:
    """It has the numbers, the completions that change most and the cost; the run is as before."""
    before = [one.label for one in recorded.run.versions]
    began = send(recorded, "try", reward="brief", source=source("-float(len(completion))"))
    assert began["state"] == "running"
    assert began["about"]["new"].startswith("rewards/edited/brief_")
    job = ended(recorded)
    assert (job["state"], job["problem"]) == ("done", None)
    found = job["result"]
    assert (found["completions"], found["old_mean"], found["new_mean"]) == (8, 1.25, -1.25)
    assert found["sign_flips"] == 8
    assert found["examples"][0]["completion"] == "44"
    assert (found["examples"][0]["old"]["score"], found["examples"][0]["new"]["score"]) == (2.0, -2.0)
    assert found["new_cost"]["seconds"] > 0
    assert [one.label for one in recorded.run.versions] == before
    assert recorded.run.changes == []


def test_two_recorded_versions_and_a_file_of_the_server_are_compared_too(recorded: OpenRun, tmp_path: Path) -> None:
    """A file is named as file.py:function, a version by its label."""
    file = tmp_path / "new.py"
    file.write_text(source("3.0"))
    send(recorded, "try", reward="brief", reference=f"{file}:brief", steps=[1, 1])
    assert ended(recorded)["result"]["completions"] == 4
    send(recorded, "try", reward="brief", version="brief@1", old="brief@1")
    assert ended(recorded)["result"]["changed"] == 0


@pytest.mark.parametrize(
    ("text", "function", "words"),
    [
        ("def brief(:\n    pass", "", "line 1: "),
        ("x = 1\n\ny = (", "", "line 3: '\\(' was never closed"),
        (source("1.0"), "breif", "no function 'breif' in the source; did you mean 'brief'?"),
        (source("1.0") + source("2.0", "two"), "", "the source has 2 functions, brief, two: say which one"),
        ("x = 1", "", "no function in the source"),
        ("  \n", "", "the source is empty"),
        ("a\0b", "", "null byte"),
        ("#" * 500_001, "", "500,001 bytes: expected at most 500,000"),
    ],
    ids=["syntax", "open bracket", "near name", "several", "none", "empty", "null", "large"],
)
def test_a_text_that_cannot_be_a_reward_is_refused_before_it_runs(
    recorded: OpenRun, text: str, function: str, words: str
) -> None:
    """Nothing is started or written."""
    with pytest.raises(RewardLoadError, match=words):
        send(recorded, "try", reward="brief", source=text, function=function)
    assert not (recorded.run.path.home / "rewards").exists()


def test_the_function_is_found_where_only_one_can_be_meant() -> None:
    """The one that is marked, else the only public one."""
    assert function_of(source("helper()") + source("1.0", "_helper"), "") == "brief"
    assert function_of("from rewardkit import reward\n@reward(cache=True)\ndef a(): ...\ndef b(): ...", "") == "a"
    assert function_of("mixed = 0.5 * one", "mixed") == "mixed"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (source("1.0", top="import nothing_of_this_name"), "No module named 'nothing_of_this_name' (line 1)"),
        (source("1.0", more=", secret_column: str"), "secret_column"),
        ("def brief(completion, *args):\n    return 0.0\n", "args"),
        (source("1.0", top="import os\nos._exit(7)"), "its process ended with exit status 7"),
    ],
    ids=["import", "column", "signature", "exit"],
)
def test_what_goes_wrong_in_a_trial_is_told_in_one_line(recorded: OpenRun, text: str, words: str) -> None:
    """A file that does not import, a column that the run lacks, a wrong signature, and a file that ends its process."""
    send(recorded, "try", reward="brief", source=text)
    job = ended(recorded)
    assert job["state"] == "failed"
    assert words in job["problem"]
    assert "\n" not in job["problem"]


def test_one_trial_at_a_time_and_it_can_be_cancelled(recorded: OpenRun, tmp_path: Path) -> None:
    """A second one is refused by name; a cancelled one ends with its process, and then the next one begins."""
    told = tmp_path / "pid"
    hanging = source("1.0", top=f"import os, time\nopen({str(told)!r}, 'w').write(str(os.getpid()))\ntime.sleep(600)")
    send(recorded, "try", reward="brief", source=hanging)
    with pytest.raises(UpdateRefusedError, match="a trial of 'brief' is under way in this run since"):
        send(recorded, "try", reward="other", source=source("1.0"))
    process = int(until(lambda: told.is_file() and told.read_text()))
    assert send(recorded, "cancel")["state"] == "cancelled"
    until(lambda: not Path(f"/proc/{process}").exists())
    send(recorded, "try", reward="brief", source=source("1.0"))
    assert ended(recorded)["state"] == "done"


def test_a_trial_has_a_deadline(recorded: OpenRun, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that hangs ends, and says so."""
    monkeypatch.setattr("rewardkit.dashboard.views.change.TRY_S", 0.5)
    send(recorded, "try", reward="brief", source=source("1.0", top="import time\ntime.sleep(600)"))
    assert "not done after 0 s, which is all that it has" in str(ended(recorded)["problem"])


def test_a_trial_ends_with_its_server(recorded: OpenRun, tmp_path: Path) -> None:
    """The end of its input ends it, also where the file hangs and holds on."""
    told = tmp_path / "pid"
    stubborn = (
        f"import os, signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\n"
        f"open({str(told)!r}, 'w').write(str(os.getpid()))\nwhile True: pass"
    )
    send(recorded, "try", reward="brief", source=source("1.0", top=stubborn))
    process = int(until(lambda: told.is_file() and told.read_text()))
    assert recorded.jobs is not None
    job = recorded.jobs._jobs[recorded.run.path.resolve()]
    assert job.process is not None
    assert job.process.stdin is not None
    job.process.stdin.close()
    until(lambda: not Path(f"/proc/{process}").exists())


def test_a_change_is_asked_for_and_followed_to_its_step(training: tuple[OpenRun, LiveRuntime]) -> None:
    """The view tells that it is accepted and from which step on, then that it is applied."""
    opened, live = training
    send(opened, "ask", reward="brief", action="replace", source=source("-1.0"), weight=2.0)
    job = ended(opened)
    assert (job["state"], job["problem"]) == ("done", None)
    assert job["result"]["difference"]["completions"] == 4

    def answered() -> Any:
        (change,) = view(opened, Query())["changes"]
        return change if change["state"] != "asked" else None

    change = until(answered)
    assert (change["id"], change["state"], change["step"]) == (job["result"]["change"], "accepted", 1)
    assert change["reference"].startswith(str(opened.run.path.home / "rewards" / "edited"))
    assert live.score(ROWS, step=1).totals == [-1.5] * 4
    until(lambda: view(opened, Query())["changes"][0]["state"] == "applied")
    found = next(one for one in view(opened, Query())["rewards"] if one["name"] == "brief")
    assert (found["weight"], found["now"]) == (2.0, True)
    labels = until(lambda: [one["label"] for one in view(opened, Query())["rewards"][0]["versions"]][1:])
    assert labels == ["brief@2"]
    text = view(opened, Query({"version": "brief@2"}))["texts"]["brief@2"]
    assert (text["text"], text["function"], text["whole"]) == (source("-1.0"), "brief", True)


def test_a_shadow_a_weight_and_a_removal_are_asked_for(training: tuple[OpenRun, LiveRuntime]) -> None:
    """A shadow is listed with its reward, whose versions have its source."""
    opened, live = training
    bodies: list[dict[str, Any]] = [
        {"action": "shadow", "reward": "brief", "source": source("9.0")},
        {"action": "weight", "reward": "other", "weight": 3.0},
        {"action": "remove", "reward": "brief_shadow"},
        {"action": "remove", "reward": "other"},
    ]
    for step, body in enumerate(bodies, 1):
        send(opened, "ask", **body)
        assert (ended(opened)["state"], ended(opened)["problem"]) == ("done", None)
        until(lambda: view(opened, Query())["changes"][0]["state"] == "accepted")
        live.score(ROWS, step=step)
        until(lambda: view(opened, Query())["changes"][0]["state"] == "applied")
        shown = view(opened, Query())
        if body["action"] == "shadow":
            assert [one["has_shadow"] for one in shown["rewards"]] == [True, False]
    assert [one["action"] for one in shown["changes"]] == ["remove", "remove", "weight", "shadow"]
    assert {one["name"]: one["now"] for one in shown["rewards"]} == {"brief": True, "other": False}


def test_a_change_that_does_not_fit_is_refused_with_the_reason(training: tuple[OpenRun, LiveRuntime]) -> None:
    """The checks of ``rewardkit update`` are those of the page."""
    opened, _ = training
    send(opened, "ask", reward="nothing", action="replace", source=source("1.0"))
    assert "no reward 'nothing'; the training has brief, other" in str(ended(opened)["problem"])
    send(opened, "ask", reward="brief", action="replace", source=source("1 / 0"))
    assert "failed on all of the 4 completions of step 0" in str(ended(opened)["problem"])
    with pytest.raises(ConfigError, match="weight: expected a number"):
        send(opened, "ask", reward="brief", action="weight")
    with pytest.raises(ConfigError, match="action='explode': expected replace, shadow"):
        send(opened, "ask", reward="brief", action="explode")
    with pytest.raises(ConfigError, match="weight=nan"):
        send(opened, "ask", reward="brief", action="weight", weight=float("nan"))
    assert opened.run.changes == []


def test_a_run_that_has_ended_is_tried_on_and_not_changed(recorded: OpenRun) -> None:
    """The view says in one line why, and what is asked for is refused."""
    shown = view(recorded, Query())
    assert shown["trainer"] is None
    assert "the training ended at" in shown["refused"]
    assert [(one["name"], one["weight"]) for one in shown["rewards"]] == [("brief", 1.0), ("other", 1.0)]
    with pytest.raises(UpdateRefusedError, match="the training ended at"):
        send(recorded, "ask", reward="brief", action="weight", weight=0.5)


def test_a_second_change_waits_for_the_answer_to_the_first(recorded: OpenRun) -> None:
    """Two browsers do not change a training at once."""
    with contextlib.closing(recorded.run.path.connect_to_write()) as connection:
        rewards = {"brief": Standing(brief.version, 1.0), "other": Standing(other.version, 1.0)}
        join(connection, rank=0, ranks=1, step=1, actions=list(Action), rewards=rewards, anew=True)
        request(connection, "brief", Action.WEIGHT, {"weight": 1.0})
    assert [one["state"] for one in view(recorded, Query())["changes"]] == ["asked"]
    with pytest.raises(UpdateRefusedError, match=r"\(weight of 'brief'\) is asked for and not answered yet"):
        send(recorded, "ask", reward="brief", action="weight", weight=0.5)


def test_a_version_that_scored_none_of_the_steps_is_told(training: tuple[OpenRun, LiveRuntime]) -> None:
    """The words say what helps."""
    opened, live = training
    send(opened, "ask", reward="brief", action="replace", source=source("-1.0"))
    assert ended(opened)["state"] == "done"
    until(lambda: view(opened, Query())["changes"][0]["state"] == "accepted")
    live.score(ROWS, step=1)
    until(lambda: view(opened, Query())["steps"] == [0, 1, 2])
    send(opened, "try", reward="brief", old="brief@1", source=source("2.0"), steps=[1, 1])
    assert "brief@1 has scored none of these completions; choose steps at which it did" in str(ended(opened)["problem"])


def test_a_record_that_never_took_changes_is_shown_all_the_same(recorded: OpenRun) -> None:
    """Where the record lacks the table of processes, that is the reason why nothing can be applied."""
    with contextlib.closing(recorded.run.path.connect_to_write()) as connection:
        connection.execute("DROP TABLE process")
    shown = view(recorded, Query())
    assert "no such table: process" in shown["refused"]
    assert [one["name"] for one in shown["rewards"]] == ["brief", "other"]


def test_wrong_requests_are_told_with_what_is_expected(recorded: OpenRun, tmp_path: Path) -> None:
    """Each names the thing, the value and the fix."""
    with pytest.raises(NotThere, match="no reward 'nothing' in the run; it has brief, other"):
        send(recorded, "try", reward="nothing", source=source("1.0"))
    with pytest.raises(RecordError, match="no version brief@7"):
        send(recorded, "try", reward="brief", old="brief@7", source=source("1.0"))
    with pytest.raises(ConfigError, match="nothing to try"):
        send(recorded, "try", reward="brief")
    with pytest.raises(ConfigError, match=r"expected file.py:function, such as new.py:brief"):
        send(recorded, "try", reward="brief", reference="new.py")
    with pytest.raises(ConfigError, match=r"gone.py: no such file on the server's machine"):
        send(recorded, "try", reward="brief", reference=f"{tmp_path}/gone.py:brief")
    with pytest.raises(ConfigError, match="expected the first step and the last"):
        send(recorded, "try", reward="brief", source=source("1.0"), steps=[3, 1])
    with pytest.raises(ConfigError, match=r"reward=\"\[1\]\"|reward='\[1\]'"):
        send(recorded, "try", reward=[1], source=source("1.0"))
    with pytest.raises(ConfigError, match=r"reward='x+…': expected at most 1,000 characters"):
        send(recorded, "try", reward="x" * 1_001, source=source("1.0"))
    with pytest.raises(NotThere, match="no version brief@9"):
        view(recorded, Query({"version": "brief@9"}))


def test_edited_sources_stay_in_their_folder(tmp_path: Path) -> None:
    """A name never leads out, a link is not followed, and a file that was tampered with is written again."""
    record = tmp_path / "one" / "record.db"
    record.parent.mkdir()
    file = write_source(record, "../../etc/x\0y", "a = 1\n")
    assert file.parent == tmp_path / "one" / "rewards" / "edited"
    assert file.name.startswith("______etc_x_y_")
    file.write_text("tampered")
    assert write_source(record, "../../etc/x\0y", "a = 1\n").read_text() == "a = 1\n"
    other = tmp_path / "two" / "record.db"
    (other.parent / "rewards").mkdir(parents=True)
    outside = tmp_path / "outside"
    outside.mkdir()
    os.symlink(outside, other.parent / "rewards" / "edited")
    with pytest.raises(RewardLoadError, match="a link that leads elsewhere"):
        write_source(other, "brief", "a = 1\n")
    assert list(outside.iterdir()) == []


def test_a_traceback_is_told_in_one_line() -> None:
    """The file and the last line, with the place."""
    words = (
        'x.py does not import:\nTraceback\n  File "x.py", line 3, in <module>\n    1 / 0\n'
        '  File "other.py", line 9, in one\nZeroDivisionError: zero'
    )
    assert in_one_line(words) == "x.py does not import: ZeroDivisionError: zero (line 3)"
    assert in_one_line("one line") == "one line"


def _is_gone(process: int) -> bool:
    """Whether a process has ended; one that nobody has waited for has."""
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return True
    return state == "Z"


@pytest.mark.skipif(sys.platform != "linux", reason="what a trial left behind is found in /proc")
@pytest.mark.parametrize("own_session", [False, True])
def test_what_a_trial_starts_ends_with_it(recorded: OpenRun, tmp_path: Path, own_session: bool) -> None:
    """A child that the file leaves in the trial's group, and one that has left it."""
    noted = tmp_path / "children"
    noted.mkdir()
    top = (
        "import pathlib, subprocess\n"
        f"child = subprocess.Popen(['sleep', '600'], start_new_session={own_session})\n"
        f"pathlib.Path({str(noted)!r}, str(child.pid)).touch()"  # each process that loads the file starts one
    )
    send(recorded, "try", reward="brief", source=source("1.0", top=top))
    assert "done" == ended(recorded)["state"]
    children = [int(one.name) for one in noted.iterdir()]
    assert children
    until(lambda: all(map(_is_gone, children)))


def test_a_trial_whose_process_is_gone_has_failed_though_a_child_holds_its_pipes(recorded: OpenRun) -> None:
    """A fork that sleeps on does not keep the job under way."""
    top = "import os, time\nif os.fork() == 0:\n    time.sleep(600)\nos._exit(7)"
    send(recorded, "try", reward="brief", source=source("1.0", top=top))
    job = ended(recorded)
    assert ("failed", True) == (job["state"], "exit status 7" in job["problem"])


def test_a_file_that_writes_into_the_answers_fails_in_words(recorded: OpenRun) -> None:
    """It is in the trial's process, and can write anywhere; the server takes nothing else from it."""
    top = (
        "import os\nfor one in range(3, 40):\n    try:\n"
        "        os.write(one, b'[1]\\n{\"state\": 5}\\n')\n    except OSError:\n        pass"
    )
    send(recorded, "try", reward="brief", source=source("1.0", top=top))
    job = ended(recorded)
    assert "failed" == job["state"]


def test_a_line_without_end_is_kept_in_parts(recorded: OpenRun) -> None:
    """What a file prints while it is imported takes little memory, however much it is."""
    top = "import sys\nfor _ in range(30):\n    sys.stderr.write('x' * 1_000_000)"
    send(recorded, "try", reward="brief", source=source("1.0", top=top))
    job = ended(recorded)
    assert "done" == job["state"]
    assert 0 < len(job["printed"]) <= 40 * 500


def test_the_end_of_the_server_ends_a_trial_at_once(recorded: OpenRun, tmp_path: Path) -> None:
    """Also one that hears nothing, with all that it has started."""
    noted = tmp_path / "child"
    top = (
        "import pathlib, subprocess\nchild = subprocess.Popen(['sleep', '600'])\n"
        f"pathlib.Path({str(noted)!r}).write_text(str(child.pid))\nwhile True:\n    pass"
    )
    send(recorded, "try", reward="brief", source=source("1.0", top=top))
    until(lambda: noted.exists() and noted.read_text())
    assert recorded.jobs is not None
    recorded.jobs.close()
    assert "cancelled" == view(recorded, Query({"only": "job"}))["job"]["state"]
    until(lambda: _is_gone(int(noted.read_text())))


def test_a_run_that_a_runtime_recorded_has_the_weights_of_its_last_batch(tmp_path: Path) -> None:
    """A runtime names no weights before it scores."""
    with Runtime([brief, other], weights=[0.5, -2.0], lane="inline", record=tmp_path / "one") as runtime:
        runtime.score(ROWS, step=0)
    with Run.open(tmp_path / "one") as run, contextlib.closing(Jobs()) as jobs:
        rewards = view(OpenRun(run, RunCache(), jobs), Query({}))["rewards"]
        assert {"brief": 0.5, "other": -2.0} == {row["name"]: row["weight"] for row in rewards}
