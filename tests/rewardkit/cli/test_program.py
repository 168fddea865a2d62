"""The command line: its commands, its words and its exit codes."""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import psutil
import pytest
from patience import LONG_S, alive, wait_for
from rich.text import Text
from typer.testing import CliRunner

from rewardkit.cli import program, rewards
from rewardkit.cli.program import app
from rewardkit.cli.render import Screen, duration, number, table
from rewardkit.shown.text import MAX_LINE_CHARS, plain, shortened

ROOT = Path(__file__).parents[3]

REWARDS = '''\
"""Rewards for the tests."""
import os
import time
from rewardkit import Score, group_reward, reward

print("this file prints as it is imported")

@reward(timeout_s=5)
def correct(completion: str, answer: int) -> float:
    """1 if the completion is the answer.

    More words.
    """
    print("judging", completion)
    if completion == "boom":
        raise ValueError("cannot read [bold]this[/]\\x1b[31m")
    return float(completion == str(answer))

@reward
def short(completion: str, limit: int = 3) -> float | None:
    """Shorter is better."""
    return 1 / len(completion) if completion else None

@reward
async def judge(completion: str) -> float:
    """Asks nobody."""
    return 0.5

@group_reward
def shortest(completions: list[str]) -> list[float]:
    """1 for the shortest of a group."""
    return [float(len(one) == min(map(len, completions))) for one in completions]

both = (0.8 * correct + 0.2 * short).named("both")
'''

SLOW = """\
import os, pathlib, time
from rewardkit import reward

@reward(timeout_s=600)
def slow(completion: str) -> float:
    if completion != "quick":
        pathlib.Path(f"asleep-{os.getpid()}").touch()
        time.sleep(600)
    return 1.0
"""


def _row(completion: str, **columns: Any) -> dict[str, Any]:
    return {"prompt": "2+2=", "completion": completion, "answer": "4", **columns}


def _write(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with rewards and data."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setattr(sys, "path", list(sys.path))
    (tmp_path / "rewards.py").write_text(REWARDS)
    _write(tmp_path / "data.jsonl", [_row("4"), _row("5"), _row("boom"), _row("")])
    return tmp_path


def _run(*arguments: str) -> tuple[int, str, str]:
    done = CliRunner().invoke(app, list(arguments), prog_name="rewardkit")
    return done.exit_code, done.stdout, done.stderr


def _score(*arguments: str) -> tuple[int, str, str]:
    return _run("score", *arguments, "--inline")


# score


def test_score_shows_a_reward_a_line_and_the_total(work: Path) -> None:
    """The table has mean, spread, skips and failures by cause of each reward, then the weighted total."""
    code, out, _ = _score("rewards.py:correct,rewards.py:short", "data.jsonl")
    lines = [line.split() for line in out.splitlines()]
    assert code == 0
    assert lines[0] == ["reward", "mean", "std", "min", "max", "skipped", "failed", "p50", "p95"]
    assert lines[2][:8] == ["correct", "0.2500", "0.5000", "0.0000", "1.0000", "-", "exception", "1"]
    assert lines[3][:7] == ["short", "0.7500", "0.4330", "0.2500", "1.0000", "1", "-"]
    assert lines[5] == ["total", "0.8125", "0.8985", "0.0000", "2.0000"]


def test_score_shows_what_failed_and_what_it_printed(work: Path) -> None:
    """A failure is shown with reward, cause, row, error and its last words, and cannot steer the terminal."""
    _, out, _ = _score("rewards.py:correct", "data.jsonl")
    assert "correct  exception  line 3\n" in out
    assert "ValueError: cannot read [bold]this[/]\\x1b[31m" in out
    assert "│ judging boom" in out


def test_a_failure_is_named_by_its_line_and_id(work: Path) -> None:
    """Blank lines count, as an editor shows them; a place among the rows is not what a person can look up."""
    (work / "typed.py").write_text(
        "from rewardkit import reward\n@reward\ndef f(answer: int) -> float:\n    return 1.0\n"
    )
    rows = [{"prompt": "p", "completion": "c", "answer": text, "task_id": f"T/{text}"} for text in ("1", "2", "four")]
    (work / "gaps.jsonl").write_text("".join(f"{json.dumps(row)}\n\n" for row in rows))
    _, out, err = _score("typed.py", "gaps.jsonl")
    assert "f  coercion  line 5 (task_id 'T/four')\n      column 'answer': expected int, got 'four'\n" in out
    assert "example" not in out + err
    (failure,) = json.loads(_score("typed.py", "gaps.jsonl", "--json")[1])["failures"]
    assert (2, "line 5 (task_id 'T/four')") == (failure["row"], failure["name"])


def test_a_reward_that_skips_every_row_is_warned_of(work: Path) -> None:
    """A forgotten return is told from a reward that has nothing to say of one row."""
    head = "from rewardkit import reward\n@reward\n"
    (work / "forgets.py").write_text(head + "def f(completion: str) -> float:\n    completion.split()\n")
    reasoned = (
        "from rewardkit import Score, reward\n@reward\ndef h(completion: str):\n    return Score(None, 'no gold')\n"
    )
    (work / "reasons.py").write_text(reasoned)
    (work / "skips.py").write_text(head + "def g(completion: str):\n    return 1 if completion else None\n")
    code, out, _ = _score("forgets.py,skips.py", "data.jsonl")
    assert 0 == code
    assert "f: warning: every row was skipped: it does not apply, or lacks a return\n" in out
    assert "g: warning" not in out
    assert "h: warning: every row was skipped: no gold\n" in _score("reasons.py", "data.jsonl")[1]
    assert "no gold" == json.loads(_score("reasons.py", "data.jsonl", "--json")[1])["rewards"]["h"]["skip_reason"]


@pytest.mark.parametrize(("default", "said"), [("0.0", True), ("None", False)])
def test_the_default_is_spoken_of_where_it_stands_in(work: Path, default: str, said: bool) -> None:
    """A failed call without a default has no score, and none is spoken of."""
    head = f"from rewardkit import reward\n@reward(default={default})\n"
    (work / "fails.py").write_text(head + "def f(completion): return 1 / (completion == '4')\n")
    _, out, _ = _score("fails.py", "data.jsonl")
    assert "exception" in out
    assert said == ("a failed call counts with its reward's default" in out)


def test_the_table_fits_its_width(work: Path) -> None:
    """No line is wider than the screen, and every column of the head is whole at 100 columns and at 80."""
    long = REWARDS.replace('named("both")', 'named("a_name_that_is_much_too_long_for_any_table")')
    (work / "long.py").write_text(long.replace("async def judge", "async def another_long_name_for_a_reward"))
    arguments = ("long.py", "data.jsonl", "--weights", "1,-0.25,3,4,5")
    _, out, _ = _score(*arguments)
    assert max(map(len, out.splitlines())) <= 100
    assert "…" not in "".join(re.findall(r"^(?:reward|correct|short|judge|total).*", out, re.M))
    assert " ".join(out.splitlines()[0].split()) == "reward weight mean std min max skipped failed p50 p95"


def test_a_narrow_table_leaves_columns_out_and_cuts_none(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """First the times, then the spread: names, means and what failed are whole on 60 columns."""
    for width, head in (
        (80, "reward weight mean std min max skipped failed"),
        (60, "reward weight mean skipped failed"),
    ):
        monkeypatch.setenv("COLUMNS", str(width))
        _, out, _ = _score("rewards.py", "data.jsonl", "--weights", "1,2,3,4,5")
        lines = out.splitlines()
        assert head == " ".join(lines[0].split())
        assert "exception 1" in out
        assert max(map(len, lines)) <= width


def test_json_is_the_only_thing_on_stdout(work: Path) -> None:
    """With --json stdout is one JSON object, also where the reward file prints as it is imported."""
    code, out, err = _score("rewards.py", "data.jsonl", "--json", "--weights", "0.8,0.2,0,0,0")
    told = json.loads(out)
    assert code == 0
    assert "this file prints" in err
    assert told["rows"] == 4
    assert list(told["rewards"]) == ["correct", "short", "judge", "shortest", "both"]
    assert told["rewards"]["correct"]["failed"] == {"exception": 1}
    assert told["rewards"]["short"]["skipped"] == 1
    assert told["rewards"]["correct"]["weight"] == 0.8
    assert None is told["rewards"]["both"]["p50_s"]
    assert [(one["reward"], one["row"], one["cause"], one["calls"]) for one in told["failures"]] == [
        ("correct", 2, "exception", 1)
    ]


def test_a_long_import_is_told(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its file is named on stderr as long as it goes on; a short one is not, and stdout is for results alone."""
    monkeypatch.setattr(rewards, "TOLD_EACH_S", 0.01)
    (work / "slow.py").write_text("import time\ntime.sleep(0.5)\n" + REWARDS)
    code, out, err = _run("list", "slow.py", "--json")
    assert code == 0
    assert json.loads(out)
    assert re.search(r"^slow\.py: importing it, \d s so far$", err, re.MULTILINE)
    monkeypatch.undo()
    assert "importing it" not in _run("list", str(work / "rewards.py"), "--json")[2]


def test_the_parts_of_a_composition_count_through_it_alone(work: Path) -> None:
    """Where no weights are given a part that stands beside its composition has weight 0, as in a Runtime."""
    told = json.loads(_score("rewards.py:correct,rewards.py:judge,rewards.py:both", "data.jsonl", "--json")[1])
    assert {"correct": 0.0, "judge": 1.0, "both": 1.0} == {name: one["weight"] for name, one in told["rewards"].items()}


def test_json_has_no_infinity(work: Path) -> None:
    """The spread of the largest floats is more than a float holds: null in the JSON, which any reader then takes."""
    (work / "huge.py").write_text("def huge(completion): return 1e308 if completion == '4' else -1e308\n")
    _, out, _ = _score("huge.py:huge", "data.jsonl", "--json")
    assert None is json.loads(out, parse_constant=pytest.fail)["rewards"]["huge"]["scores"]["std"]


def test_out_has_a_row_for_each_rollout(work: Path) -> None:
    """--out writes what ScoreBatch.to_rows gives, and weights, a JSON object a line, and leaves nothing beside it."""
    code, out, _ = _score("rewards.py:both,rewards.py:shortest", "data.jsonl", "--out", "scored.jsonl")
    rows = [json.loads(line) for line in (work / "scored.jsonl").read_text().splitlines()]
    assert code == 0
    assert "wrote scored.jsonl" in out
    assert [row["row"] for row in rows] == [0, 1, 2, 3]
    assert [1, 2, 3, 4] == [row["line"] for row in rows]
    assert {"row", "line", "prompt", "completion", "example", "total", "weights", "rewards"} == set(rows[0])
    assert {"both", "shortest"} == set(rows[0]["rewards"])
    assert rows[0]["rewards"]["both"]["score"] == 1.0
    assert sorted(p.name for p in work.iterdir() if p.is_file()) == ["data.jsonl", "rewards.py", "scored.jsonl"]


def test_out_holds_any_text(work: Path) -> None:
    """Half a surrogate pair, which UTF-8 cannot say, survives in the output file as JSON says it."""
    (work / "odd.jsonl").write_text('{"prompt": "ü", "completion": "\\ud800", "answer": "4"}')
    code, _, _ = _score("rewards.py:correct", "odd.jsonl", "--out", "scored.jsonl")
    assert code == 0
    assert json.loads((work / "scored.jsonl").read_text())["completion"] == "\ud800"


def test_limit_scores_the_first_rows(work: Path) -> None:
    """--limit 2 scores two rows."""
    assert json.loads(_score("rewards.py:correct", "data.jsonl", "--json", "--limit", "2")[1])["rows"] == 2


def test_fail_on_error_tells_by_its_code(work: Path) -> None:
    """A failed call makes the exit code 1 only where that was asked for; skips and zeros never do."""
    assert _score("rewards.py:correct", "data.jsonl")[0] == 0
    assert _score("rewards.py:correct", "data.jsonl", "--fail-on-error")[0] == 1
    assert _score("rewards.py:short", "data.jsonl", "--fail-on-error")[0] == 0


def test_a_config_file_names_rewards(work: Path) -> None:
    """A YAML file gives rewards their names, and its references start from its folder."""
    (work / "conf").mkdir()
    (work / "conf" / "r.py").write_text(REWARDS)
    (work / "conf" / "r.yaml").write_text("functions: {exact: 'r.py:correct'}")
    assert list(json.loads(_score("conf/r.yaml", "data.jsonl", "--json")[1])["rewards"]) == ["exact"]


def test_a_module_in_the_working_folder_is_found(work: Path) -> None:
    """module:name finds a module that lies in the folder one works in."""
    (work / "module_of_the_test.py").write_text(REWARDS)
    code, out, _ = _score("module_of_the_test:judge", "data.jsonl", "--json")
    assert (code, list(json.loads(out)["rewards"])) == (0, ["judge"])


def test_timeout_stands_in_for_every_rewards_own(work: Path) -> None:
    """--timeout reaches rewards inside compositions too; the calls that exceed it fail with that cause."""
    (work / "slow.py").write_text(SLOW + 'twice = (2 * slow).named("twice")\n')
    _write(work / "slow.jsonl", [_row("quick"), _row("hang")])
    code, out, _ = _run("score", "slow.py:twice", "slow.jsonl", "--timeout", "0.3", "--workers", "1", "--json")
    assert code == 0
    assert json.loads(out)["rewards"]["twice"]["failed"] == {"timeout": 1}


MISTAKES = {
    "no-file": (["rewards.py:short", "absent.jsonl"], "absent.jsonl: No such file"),
    "empty": (["rewards.py:short", "empty.jsonl"], "empty.jsonl: no rows in it"),
    "not-json": (["rewards.py:short", "bad.jsonl"], "bad.jsonl:2: not JSON"),
    "other-keys": (["rewards.py:short", "keys.jsonl"], "keys.jsonl:2: has 'extra', which line 1 lacks"),
    "no-column": (
        ["typo.py", "data.jsonl"],
        "needs column 'anwser', which data.jsonl lacks; the data has the near name 'answer'",
    ),
    "no-rewards-file": (["absent.py", "data.jsonl"], "absent.py: no such file"),
    "no-import": (["broken.py", "data.jsonl"], "ModuleNotFoundError: No module named 'no_such_module_at_all'"),
    "user-traceback": (["broken.py", "data.jsonl"], 'broken.py", line 3, in load'),
    "no-reward": (["none.py", "data.jsonl"], "none.py: no reward in it"),
    "no-mark": (["plain.py", "data.jsonl"], "or name one, which then needs no mark: plain.py:scored"),
    "one-name-twice": (["twice.py", "data.jsonl"], "two rewards are named 'same'"),
    "one-name-twice-built-in": (["length_between,length_between", "data.jsonl"], ".with_options(name=...) where it is"),
    "settings": (
        ["rewards.py:short,length_between(2,5)", "data.jsonl"],
        "from builtin_rewards.length import length_between mine = length_between(2,5) and refer to my_rewards.py:mine",
    ),
    "settings-of-a-file": (["rewards.py:short(limit=2)", "data.jsonl"], "from rewards import short mine = short("),
    "no-such-reward": (["rewards.py:shrt", "data.jsonl"], "did you mean 'short'"),
    "data-first": (["data.jsonl", "rewards.py:short"], "'data.jsonl' is data; rewards come first"),
    "no-reference": (["rewards.py:short,", "data.jsonl"], "separated by commas"),
    "no-yaml": (["absent.yaml", "data.jsonl"], "absent.yaml: No such file"),
    "weights-count": (["rewards.py:short", "data.jsonl", "--weights", "1,2"], "2 weights for 1 rewards (short)"),
    "weights-words": (["rewards.py:short", "data.jsonl", "--weights", "lots"], "expected numbers separated by commas"),
    "weights-nan": (["rewards.py:short", "data.jsonl", "--weights", "nan"], "is nan: expected a finite number"),
    "timeout": (["rewards.py:short", "data.jsonl", "--timeout", "-1"], "--timeout -1: expected a number of seconds"),
    "timeout-nan": (["rewards.py:short", "data.jsonl", "--timeout", "nan"], "--timeout nan: expected a number"),
    "workers": (["rewards.py:short", "data.jsonl", "--workers", "0"], "--workers"),
    "load timeout": (["rewards.py:short", "data.jsonl", "--load-timeout", "0"], "--load-timeout 0"),
    "limit": (["rewards.py:short", "data.jsonl", "--limit", "0"], "--limit"),
    "unknown-option": (["rewards.py:short", "data.jsonl", "--unknown"], "No such option"),
    "out-folder": (["rewards.py:never", "data.jsonl", "--out", "absent/x"], "cannot write to absent"),
    "out-under-a-file": (["rewards.py:never", "data.jsonl", "--out", "rewards.py/x"], "cannot write to rewards.py"),
    "out-is-folder": (["rewards.py:never", "data.jsonl", "--out", "."], "is a folder"),
    "out-is-data": (["rewards.py:never", "data.jsonl", "--out", "./data.jsonl"], "is data.jsonl itself, which is read"),
}


@pytest.mark.parametrize(("arguments", "said"), MISTAKES.values(), ids=MISTAKES)
def test_a_mistake_is_named_and_nothing_is_written(work: Path, arguments: list[str], said: str) -> None:
    """The user's mistake gives one clear message on stderr, exit code 2, and no file."""
    (work / "empty.jsonl").touch()
    (work / "bad.jsonl").write_text('{"prompt": "", "completion": ""}\n{"prompt')
    _write(work / "keys.jsonl", [_row("4"), _row("4", extra=1)])
    (work / "none.py").write_text("x = 1\n")
    (work / "plain.py").write_text("from os import getcwd\ndef _own(): pass\ndef scored(completion): return 1.0\n")
    (work / "broken.py").write_text("def load():\n    # first\n    import no_such_module_at_all\n\nload()\n")
    marked = "@reward(name='same')\ndef {}(completion): return 1.0\n"
    (work / "twice.py").write_text("from rewardkit import reward\n" + marked.format("a") + marked.format("b"))
    (work / "typo.py").write_text("from rewardkit import reward\n@reward\ndef f(anwser: int): return 1.0\n")
    before = {path: path.read_bytes() for path in work.iterdir() if path.is_file()}
    if "--out" not in arguments:
        arguments = [*arguments, "--out", "scored.jsonl"]
    code, out, err = _score(*arguments)
    assert code == 2
    assert said in re.sub(r"[│\s]+", " ", err)
    assert out == ""
    assert before == {path: path.read_bytes() for path in work.iterdir() if path.is_file()}


def test_infrastructure_is_another_code_than_a_mistake(work: Path) -> None:
    """Calls lost through no fault of the completions end the run with 3, and what was finished is kept."""
    lost = "import os, signal\nfrom rewardkit import reward\n@reward\ndef lost(completion: str) -> float:\n"
    lost += "    if completion != 'quick': os.kill(os.getpid(), signal.SIGKILL)\n    return 1.0\n"
    (work / "lost.py").write_text(lost)
    _write(work / "lost.jsonl", [_row("quick"), _row("4"), _row("5")])
    code, _, err = _run("score", "lost.py", "lost.jsonl", "--workers", "1", "--out", "scored.jsonl")
    assert code == 3
    assert "error: reward 'lost': 67% of 3 calls were lost" in err
    assert not (work / "scored.jsonl").exists()
    assert len((work / "scored.jsonl.partial").read_text().splitlines()) == 3


# The real program, in a process of its own.


def _start(folder: Path, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "rewardkit", *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def _wakes(process: int) -> int:
    """Return how often the threads of a process have waited for something."""
    told = ""
    for task in Path(f"/proc/{process}/task").iterdir():
        with contextlib.suppress(OSError):  # a thread that has just ended
            told += (task / "status").read_text()
    return sum(map(int, re.findall(r"^voluntary_ctxt_switches:\s+(\d+)$", told, re.MULTILINE)))


def _wait_for_sleepers(process: subprocess.Popen[str], folder: Path, count: int) -> set[psutil.Process]:
    """Return the program's descendants once so many of them have come to sleep in the slow reward."""
    if not wait_for(lambda: process.poll() is not None or len(list(folder.glob("asleep-*"))) >= count):
        process.kill()
    if process.poll() is not None:
        raise AssertionError(f"no workers: {process.communicate()}")
    before = _wakes(process.pid)  # their results from before are on the way: it is to look for them now and then
    assert wait_for(lambda: _wakes(process.pid) >= before + 10)
    return set(psutil.Process(process.pid).children(recursive=True))


def test_ctrl_c_leaves_no_process_and_keeps_what_was_finished(work: Path) -> None:
    """SIGINT ends every worker, writes the finished rows to FILE.partial, says so, and exits with 130."""
    (work / "slow.py").write_text(SLOW)
    _write(work / "slow.jsonl", [*[_row("quick")] * 5, *[_row("hang")] * 3])
    process = _start(work, "score", "slow.py", "slow.jsonl", "--workers", "2", "--out", "scored.jsonl")
    workers = _wait_for_sleepers(process, work, 2)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=LONG_S)
    rows = [json.loads(line) for line in (work / "scored.jsonl.partial").read_text().splitlines()]
    assert process.returncode == 130
    assert out == ""
    assert err == "kept 5 finished rows of 8 in scored.jsonl.partial\ninterrupted\n"
    assert [row["row"] for row in rows] == [0, 1, 2, 3, 4]
    assert [row["total"] for row in rows] == [1.0] * 5
    assert not (work / "scored.jsonl").exists()
    assert len(workers) >= 3  # two workers, and the process that starts them
    assert alive(workers) == []


def test_a_reward_file_needs_no_main_guard(work: Path) -> None:
    """Code at the top of a reward file runs as it is imported, and does not start the program over."""
    (work / "script.py").write_text(REWARDS + "\nprint(correct(completion='4', answer='4'))\n")
    process = _start(work, "score", "script.py:correct", "data.jsonl", "--workers", "2", "--json")
    out, err = process.communicate(timeout=300)
    assert (process.returncode, json.loads(out)["rows"]) == (0, 4)
    assert err.count("this file prints") == 1


def test_help_loads_nothing_heavy(work: Path) -> None:
    """`rewardkit --help` loads no torch, trl, transformers or openai, and no progress bars."""
    code = (
        "import sys\nfrom typer.testing import CliRunner\nfrom rewardkit.cli.program import app\n"
        "assert CliRunner().invoke(app, ['--help']).exit_code == 0\n"
        "print([n for n in ('torch', 'trl', 'transformers', 'openai', 'rich.progress') if n in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300, check=False)
    assert (done.stdout, done.stderr) == ("[]\n", "")


def test_python_m_is_the_same_program(work: Path) -> None:
    """python -m rewardkit calls itself rewardkit."""
    out, _ = _start(work, "--help").communicate(timeout=300)
    assert "Usage: rewardkit [OPTIONS] COMMAND" in out


def test_a_narrow_encoding_is_no_fault(work: Path) -> None:
    """Where the output cannot hold a letter, it is written out instead."""
    (work / "umlaut.py").write_text("from rewardkit import reward\n@reward\ndef prüfe(completion): 1/0\n")
    process = subprocess.run(
        [sys.executable, "-m", "rewardkit", "score", "umlaut.py", "data.jsonl", "--inline"],
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONIOENCODING": "ascii"},
        capture_output=True,
        timeout=300,
        check=False,
    )
    assert (process.returncode, process.stderr) == (0, b"")
    assert b"ZeroDivisionError" in process.stdout


# list


def test_list_describes_the_rewards_of_a_file(work: Path) -> None:
    """Name, kind, columns and the first line of the docstring, ready for a machine."""
    code, out, _ = _run("list", "rewards.py", "--json")
    told = {one["name"]: one for one in json.loads(out)["rewards"]}
    assert code == 0
    assert {name: one["kind"] for name, one in told.items()} == {
        "correct": "single",
        "short": "single",
        "judge": "async single",
        "shortest": "group",
        "both": "composition",
    }
    assert (told["correct"]["columns"], told["correct"]["optional_columns"]) == (["answer"], [])
    assert (told["short"]["columns"], told["short"]["optional_columns"]) == ([], ["limit"])
    assert (told["both"]["columns"], told["both"]["optional_columns"]) == (["answer"], ["limit"])
    assert told["correct"]["doc"] == "1 if the completion is the answer."


def test_list_shows_a_table(work: Path) -> None:
    """People get a line a reward; optional columns stand in brackets."""
    _, out, _ = _run("list", "rewards.py")
    assert re.search(r"^short +single +\[limit\] +Shorter is better\.", out, re.M)


def test_list_shows_a_named_reward_whole(work: Path) -> None:
    """Range, columns with types, settings with the lines that give them, and the docstring without its marks."""
    code, out, _ = _run("list", "format_tags", "rewards.py:correct,numeric_close")
    tags, correct, close = re.split(r"\n\n(?=correct\n|numeric_close\n)", out)
    assert code == 0
    assert "`" not in out
    assert "scores    0 to 1" in tags
    assert "settings  tags=('think', 'answer'), nonempty=True" in tags
    assert "from builtin_rewards.formats import format_tags\n    mine = format_tags(tags=('think', 'answer'))" in tags
    assert "\n    nonempty: Whether each " in tags
    assert correct.splitlines() == [
        *("correct", "kind      single", "scores    any number", "columns   answer: int", ""),
        *("1 if the completion is the answer.", "", "More words."),
    ]
    assert "answer: " in close.splitlines()[3]


def test_list_gives_a_reward_whole_to_a_machine(work: Path) -> None:
    """Types, range, description and settings are in the JSON; null where there are none."""
    length, short = json.loads(_run("list", "length_between", "rewards.py:short", "--json")[1])["rewards"]
    assert length["settings"] == {"lo": "10", "hi": "400", "unit": "'words'"}
    assert length["score_range"] == [0, 1]
    assert (short["settings"], short["types"], short["score_range"]) == (None, {"limit": "int"}, None)


def test_list_shows_what_packages_offer(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rewards come from entry points; one that does not load says so, and hides no other."""
    _package(work, "[rewardkit.rewards]\ngood = offered:correct\nbad = offered:missing\n")
    (work / "offered.py").write_text(REWARDS)
    monkeypatch.syspath_prepend(str(work))
    told = {one["name"]: one for one in json.loads(_run("list", "--json")[1])["rewards"]}
    assert (told["good"]["kind"], told["good"]["from"]) == ("single", "offered:correct")
    assert told["bad"]["kind"] == "unavailable"
    assert "missing" in told["bad"]["doc"]
    lines = _run("list")[1].splitlines()
    assert [1, 1] == [sum(line.startswith(name) for line in lines) for name in ("good ", "bad ")]
    assert all(len(line) <= 100 for line in lines)


def test_list_of_a_wrong_file_is_a_mistake(work: Path) -> None:
    """A reference that leads nowhere exits with 2."""
    assert _run("list", "absent.py")[0] == 2


# new


def test_new_writes_a_reward_that_passes_its_own_audit(work: Path) -> None:
    """The commands that it prints end with 0, in their order; nothing wrong is scored as right."""
    code, out, _ = _run("new", "last_number")
    assert (0, True) == (code, "wrote last_number.py, last_number.yaml and last_number.jsonl" in out)
    commands = [line.removeprefix("next:").split()[1:] for line in out.splitlines()[1:]]
    assert ["test", "check", "audit"] == [command[0] for command in commands]
    results = [_run(*command) for command in commands]
    assert [0, 0, 0] == [result[0] for result in results], results
    assert [] == [text for _, text, _ in results if "few rows" in text or "warning" in text]
    report = json.loads(_run(*commands[2], "--json")[1])["rewards"][0]
    assert (0, "passed") == (report["false_accepts"], report["verdict"])


def test_new_writes_where_it_is_told(work: Path) -> None:
    """--dir names the folder."""
    (work / "inner").mkdir()
    assert _run("new", "elsewhere", "--dir", "inner")[0] == 0
    written = ["elsewhere.jsonl", "elsewhere.py", "elsewhere.yaml"]
    assert sorted(path.name for path in (work / "inner").iterdir()) == written
    (work / "my rewards").mkdir()
    assert "\nnext:  rewardkit test 'my rewards/spaced.yaml'\n" in _run("new", "spaced", "--dir", "my rewards")[1]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["my-reward"], "try 'my_reward'"),
        (["class"], "try 'reward_class'"),
        (["1st"], "try 'reward_1st'"),
        (["test_me"], "try 'me'"),
        (["json"], "would hide"),
        (["numpy"], "would hide"),
        (["mine", "--dir", "absent"], "--dir absent: no such folder; make it first"),
        (["rewards"], "rewards.py is there already"),
        (["taken"], "taken.yaml is there already"),
    ],
    ids=["hyphen", "keyword", "digit", "test", "stdlib", "installed", "folder", "there", "cases-there"],
)
def test_new_refuses_and_writes_nothing(work: Path, arguments: list[str], said: str) -> None:
    """A name that cannot be, or files that are there, are the user's mistake; nothing is written or changed."""
    (work / "taken.yaml").write_text("mine")
    before = {path: path.read_bytes() for path in work.iterdir()}
    code, _, err = _run("new", *arguments)
    assert (2, before) == (code, {path: path.read_bytes() for path in work.iterdir()})
    assert said in err


# The program as a whole


def _package(folder: Path, entry_points: str) -> None:
    """Put an installed distribution into a folder."""
    info = folder / "offering-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: offering\nVersion: 1\n")
    (info / "entry_points.txt").write_text(entry_points)


def test_packages_add_commands(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A function under the entry-point group rewardkit.commands is a command, with its own options and help."""
    _package(work, "[rewardkit.commands]\ngreet = greeting:greet\nlost = no_such_module_at_all:x\nscore = x:y\n")
    (work / "greeting.py").write_text(
        "from rewardkit import ConfigError\n"
        'def greet(name: str, loud: bool = False) -> None:\n    """Greet someone."""\n'
        "    if name == 'nobody': raise ConfigError('nobody is there')\n    print('HELLO' if loud else 'hello', name)\n"
    )
    monkeypatch.syspath_prepend(str(work))
    _, shown, _ = _run("--help")
    assert "Greet someone." in shown
    assert "Not available: ModuleNotFoundError" in shown
    assert _run("greet", "you", "--loud") == (0, "HELLO you\n", "")
    assert _run("greet", "nobody") == (2, "", "error: nobody is there\n")
    assert _run("lost")[0] == 2
    assert "fail-on-error" in _run("score", "--help")[1]


def test_packages_add_groups_of_commands(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A typer.Typer under the entry-point group is a group of commands, each with its help and exit codes."""
    _package(work, "[rewardkit.commands]\npets = pets:pets\n")
    (work / "pets.py").write_text(
        "import typer\nfrom rewardkit import ConfigError\n"
        'pets = typer.Typer(help="Feed and wash.", no_args_is_help=True)\n'
        '@pets.command()\ndef feed(name: str) -> None:\n    """Feed one."""\n'
        "    if name == 'nobody': raise ConfigError('nobody is there')\n    print('fed', name)\n"
        '@pets.command()\ndef wash(soap: bool = False) -> None:\n    """Wash all."""\n    print("washed", soap)\n'
    )
    monkeypatch.syspath_prepend(str(work))
    assert "Feed and wash." in _run("--help")[1]
    assert all(words in _run("pets", "--help")[1] for words in ("Feed one.", "Wash all.", "130"))
    assert _run("pets", "feed", "rex") == (0, "fed rex\n", "")
    assert _run("pets", "feed", "nobody") == (2, "", "error: nobody is there\n")
    assert "130" in _run("pets", "feed", "--help")[1]
    assert _run("pets", "wash", "--soap") == (0, "washed True\n", "")


def test_version_is_the_packages() -> None:
    """--version prints one line."""
    code, out, _ = _run("--version")
    assert (code, re.fullmatch(r"rewardkit \d+\.\d+\.\d+\S*\n", out) is not None) == (0, True)


def test_an_unknown_command_offers_near_ones() -> None:
    """A slip of the finger is answered with the command that was meant, and exit code 2."""
    code, _, err = _run("scoer")
    assert (code, "Did you mean 'score'" in err) == (2, True)


def test_the_reference_has_every_exit_code() -> None:
    """The codes of the documentation are those of the program."""
    reference = (ROOT / "docs" / "reference" / "cli.md").read_text()
    assert re.findall(r"^\| (\d+) \|", reference, re.M) == ["0", "1", "2", "3", "4", "130"]


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, "-"),
        (0.0, "0.0000"),
        (-0.0, "0.0000"),
        (1 / 3, "0.3333"),
        (-12.345, "-12.35"),
        (4321.7, "4322"),
        (1.5e-7, "1.50e-07"),
        (1e300, "1.00e+300"),
    ],
)
def test_numbers_have_sensible_digits(value: float | None, shown: str) -> None:
    """Small numbers have four decimals, large ones fewer, extreme ones powers of ten."""
    assert shown == number(value)


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (None, "-"),
        (2.5e-5, "25 µs"),
        (0.0123, "12.3 ms"),
        (7.0, "7 s"),
        (200, "3 min 20 s"),
        (7500, "2 h 05 min"),
        (120, "2 min"),
        (3599.9, "1 h"),
        (7200, "2 h"),
    ],
)
def test_durations_have_the_unit_that_suits(seconds: float | None, shown: str) -> None:
    """From microseconds to hours."""
    assert shown == duration(seconds)


def test_foreign_text_is_safe_and_short() -> None:
    """Control characters are written out, lines are joined, and the rest is cut with an ellipsis."""
    assert plain("a\x1b[31mb\r\nc") == "a\\x1b[31mb\\r\nc"
    assert plain("\x9b2J \u202eab\u2066 \ud800 \u200b") == "\\x9b2J \\u202eab\\u2066 \\ud800 \\u200b"
    assert shortened("a\n\n b c d", 4) == "a b…"
    assert shortened("a\nERROR b\r\t\x1b]0;c\x07") == "a ERROR b \\x1b]0;c\\x07"
    assert len(shortened("x" * 5_000)) == MAX_LINE_CHARS


def test_whatever_is_shown_on_the_screen_is_plain() -> None:
    """Text, markup, tables and bare strings lose their control characters; the console's own colours stay."""
    hostile = "\x1b[2J\x1b]0;title\x07\x9b31m\u202ecba\r!"
    for terminal in (False, True):
        file = io.StringIO()
        colours = "standard" if terminal else None
        console = Screen(file=file, force_terminal=terminal, width=200, color_system=colours, highlight=False)
        shown = table("name", hostile)
        shown.add_row(hostile, Text(hostile, style="red"))
        console.print(shown)
        console.print(Text(hostile, style="red"), hostile, Text.assemble((hostile, "bold")))
        out = file.getvalue()
        assert 6 <= out.count("\\x1b[2J")
        assert terminal == ("\x1b[31m" in out)
        own = re.sub("\x1b\\[[0-9;]*m", "", out)
        assert [] == [one for one in own if not (one.isprintable() or one == "\n")]


def test_out_never_replaces_a_device_or_a_file_that_is_read(work: Path) -> None:
    """A pipe, the reward file and the data stay what they are; a link's target is written."""
    os.mkfifo(work / "pipe")
    for place, words in (("pipe", "not an ordinary"), ("mine.py", "which is read"), ("data.jsonl", "which is read")):
        (work / "mine.py").write_text("def one(completion: str) -> float:\n    return 1.0\n")
        code, _, err = _score("mine.py:one", "data.jsonl", "--out", place)
        assert (2, True) == (code, words in " ".join(err.split())), err
    assert (work / "pipe").is_fifo()
    (work / "link").symlink_to("real.jsonl")
    assert _score("mine.py:one", "data.jsonl", "--out", "link")[0] == 0
    assert (work / "link").is_symlink()
    assert (work / "real.jsonl").read_text().startswith("{")


def test_the_list_of_commands_loads_none_and_says_what_they_say() -> None:
    """Their help is read from their sources; loading all of them would take seconds."""
    code = (
        "import sys\nfrom rewardkit.cli.program import app\nsys.argv = ['rewardkit', '--help']\n"
        "try:\n    app()\nexcept SystemExit:\n    print([name for name in sys.modules if name.startswith("
        "('numpy', 'trainer_adapter.', 'builtin_rewards.', 'rewardkit.cli.audit'))])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert "[]" == done.stdout.splitlines()[-1]
    for name in program._commands():
        listed, loaded = program._listed(name), program._load(name)
        assert " ".join(loaded.help.split()) == " ".join(listed.help.split())


@pytest.mark.parametrize(
    "command",
    [["score", "typed.py"], ["audit", "typed.py"], ["diff", "typed.py:f", "typed.py:f", "--data"]],
    ids=["score", "audit", "diff"],
)
def test_a_column_that_a_file_lacks_is_said_of_the_file(work: Path, command: list[str]) -> None:
    """All of its rows are alike, so no row is named by its place among those that are scored."""
    (work / "typed.py").write_text(
        "from rewardkit import reward\n@reward\ndef f(completion: str, anwser: int) -> float:\n    return 1.0\n"
    )
    result = CliRunner().invoke(app, [*command, "data.jsonl"])
    words = " ".join(result.output.split())
    assert 2 == result.exit_code
    assert "reward 'f' needs column 'anwser', which data.jsonl lacks; the data has the near name 'answer'" in words
