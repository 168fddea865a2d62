"""The commands and the pages on runs of a database, as on those of a folder."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from databases import Server
from recorded import batch
from saved_pages import SavedFile
from typer.testing import CliRunner

from rewardkit import Rollout, Run, Runtime
from rewardkit.changing import LiveRuntime, has_record
from rewardkit.cli.program import app
from rewardkit.loading.registry import resolve_set
from rewardkit.record.changes import ChangeState
from rewardkit.record.recorder import Recorder

pytestmark = pytest.mark.postgres
REWARDS = '''
from rewardkit import reward


@reward
def correct(completion: str, answer: str) -> float:
    """Pay for the answer."""
    return float(completion == answer)


@reward
def short(completion: str) -> float:
    """Pay for brevity."""
    return 1.0 / (1 + len(completion))
'''
ROWS = [{"prompt": "2+2=", "completion": text, "answer": "4"} for text in ("4", "5", "44", "4")]


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with rewards and rows, in which commands run."""
    monkeypatch.chdir(tmp_path)
    Path("rewards.py").write_text(REWARDS)
    Path("rows.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in ROWS))
    return tmp_path


def _run(*arguments: str) -> tuple[int, str]:
    done = CliRunner().invoke(app, list(arguments), prog_name="rewardkit")
    return done.exit_code, f"{done.stdout}{done.stderr}"


def _json(*arguments: str) -> Any:
    code, words = _run(*arguments, "--json")
    assert code == 0, words
    return json.loads(words)


def test_commands_take_the_address_of_a_run(postgres: Server, work: Path) -> None:
    """What is scored is recorded there, shown, searched, exported, compared, scored again and removed."""
    url, database = postgres.url("cli-one", password="hunter22"), postgres.url(password="hunter22")
    told = _json("score", "rewards.py", "rows.jsonl", "--record", url)
    assert told["record"] == postgres.url("cli-one").replace("%2F", "/")
    code, words = _run("score", "rewards.py", "rows.jsonl", "--record", url)
    assert code != 0
    assert "this run has a record; append to it" in words
    assert "hunter22" not in words
    assert (
        f"rewardkit show '{told['record']}' shows it"
        in _run("score", "rewards.py", "rows.jsonl", "--record", url, "--append")[1]
    )  # in quotes, for a shell would end the command at the & of the address
    listed = {one["name"]: one for one in _json("runs", database)["runs"]}
    assert (listed["cli-one"]["completions"], listed["cli-one"]["rewards"]) == (8, ["correct", "short"])
    assert listed["cli-one"]["bytes"] > 0
    assert "correct" in _run("show", url)[1]
    assert _run("show", url, "--html", "report.html")[0] == 0
    assert "hunter22" not in SavedFile("report.html").data
    assert _run("logs", url)[0] == 0
    assert _run("export", url, "--to", "out.jsonl")[0] == 0
    assert [json.loads(line)["correct"] for line in Path("out.jsonl").read_text().splitlines()] == [
        1.0,
        0.0,
        0.0,
        1.0,
    ] * 2
    assert _run("diagnose", url)[0] == 0
    Path("newer.py").write_text(REWARDS.replace("float(completion == answer)", "float(answer in completion)"))
    assert _json("rescore", url, "--reward", "newer.py:correct")["passes"][0]["completions"] == 8
    assert _run("verify", url)[0] == 0
    code, words = _run("audit", "--run", url)
    assert "hunter22" not in words
    assert code in (0, 1, 4), words
    code, words = _run("diff", url, "correct@1", "correct@2")
    assert code == 0, words
    removed = _json("runs", database, "--prune", "--name", "cli-one", "--yes")
    assert [one["name"] for one in removed["removed"]] == ["cli-one"]
    assert "cli-one" not in {one["name"] for one in _json("runs", database)["runs"]}
    assert "hunter22" not in _run("show", url)[1]


def test_a_run_that_is_written_is_not_removed(postgres: Server, work: Path) -> None:
    """As with a file, the run is ended first."""
    with Recorder(postgres.url("busy")) as one:
        one.record(batch(), step=0)
        assert one.flush()
        code, words = _run("runs", postgres.url(), "--prune", "--name", "busy", "--yes")
        assert (code != 0, "still being written" in words) == (True, True)


def test_an_address_that_is_none_is_told_by_a_command(work: Path) -> None:
    """Without a run, or with a password that is not written as it has to be: a line, and nothing of the password."""
    code, words = _run("show", "postgresql://me:hunter22@host/db")
    assert code != 0
    assert "names no run" in words
    assert "hunter22" not in words
    code, words = _run("show", "postgresql://me:hun/ter22@host/db?run=one")
    assert code != 0
    assert "cannot be read" in words
    assert "ter22" not in words


def test_the_rewards_of_a_training_that_records_there_are_changed(postgres: Server, work: Path) -> None:
    """A request goes through the database, is answered there, and takes effect at a step."""
    url = postgres.url("updated")
    found = resolve_set("rewards.py:short")
    with LiveRuntime(Runtime(found.rewards, workers=1, record=url)) as live:
        rollouts = [Rollout(row["prompt"], row["completion"], {"answer": row["answer"]}) for row in ROWS]
        before = live.score(rollouts, step=0)
        assert live.runtime.recorder is not None
        assert live.runtime.recorder.flush()
        Path("newer.py").write_text(REWARDS.replace("1.0 / (1 + len(completion))", "-float(len(completion))"))
        code, words = _run("update", url, "short", "newer.py:short")
        assert code == 0, words
        after = live.score(rollouts, step=1)
        assert (before.scores["short"][0], after.scores["short"][0]) == (0.5, -1.0)
    with Run.open(url) as run:
        assert [one.label for one in run.own_versions] == ["short@1", "short@2"]
        assert [one.state for one in run.changes] == [ChangeState.ACCEPTED]


def test_a_canary_is_recorded_there(postgres: Server) -> None:
    """What monitors a reward model asks a database whether there is a record, too."""
    assert not has_record(postgres.url("canary"))
    Recorder(postgres.url("canary")).close()
    assert has_record(postgres.url("canary"))
