"""What all commands have in common: their help, DATA by place or by name, and ``--json``."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
import typer
from rich.text import Text
from typer.testing import CliRunner

from rewardkit.cli.program import app

PROGRAM: Any = typer.main.get_command(app)
CONTEXT = PROGRAM.make_context("rewardkit", ["list"])


def _groups_and_commands() -> tuple[list[str], list[str]]:
    """Return the names of the groups, and those of all commands, as they are typed."""
    groups, commands = [""], []
    for name in PROGRAM.list_commands(CONTEXT):
        members = getattr(_command(name), "commands", None)
        (commands if members is None else groups).append(name)
        commands += [f"{name} {member}" for member in members or ()]
    return groups, commands


def _command(name: str) -> Any:
    found = PROGRAM
    for word in name.split():
        found = found.get_command(CONTEXT, word)
    return found


GROUPS, COMMANDS = _groups_and_commands()
WITH_DATA = ["score", "check", "audit", "audit-judge", "test"]

REWARDS = '''\
from rewardkit import reward

print("this file prints as it is imported")

@reward(timeout_s=5)
def correct(completion: str, answer: int) -> float:
    """1 if the completion is the answer."""
    return float(completion == str(answer))
'''


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with a reward, rows and a table of cases."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    Path("mine.py").write_text(REWARDS)
    rows = [{"prompt": f"{n}+1=", "completion": str(n + 1), "answer": str(n + 1)} for n in (41, 16, 127)]
    Path("rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    Path("wrong.jsonl").write_text('{"prompt": "1+1=", "completion": "2", "answer": "two"}\n')
    Path("cases.yaml").write_text("reward: mine.py\ncases:\n- {completion: '4', answer: 4, expect: 1.0}\n")
    Path("failing.yaml").write_text("reward: mine.py\ncases:\n- {completion: '4', answer: 5, expect: 1.0}\n")
    return tmp_path


def _run(*arguments: str) -> tuple[int, str, str]:
    done = CliRunner().invoke(app, list(arguments), prog_name="rewardkit")
    return done.exit_code, done.stdout, done.stderr


@pytest.mark.parametrize("width", [80, 60])
@pytest.mark.parametrize("name", [*GROUPS, *COMMANDS])
def test_help_teaches_and_nothing_of_it_is_cut(name: str, width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A description, an example and the exit codes; every sentence and option is whole, and no line is too wide."""
    monkeypatch.setenv("COLUMNS", str(width))
    command = _command(name)
    shown = _run(*name.split(), "--help")[1]
    words = " ".join(shown.replace("│", " ").split())
    paragraphs = command.help.split("\n\n")
    assert max(map(len, shown.splitlines())) <= width
    assert "…" not in shown
    assert "bool" not in shown.lower()  # a flag takes no value
    assert [] == [one for one in paragraphs if " ".join(Text.from_markup(one).plain.split()) not in words]
    assert [] == [one for one in paragraphs if "\n" in one and not one.startswith("[")]
    options = [option for one in command.params for option in one.opts if option.startswith("--")]
    assert [] == [option for option in options if option not in words]
    assert f"rewardkit {name}" in words.partition("Usage" if name in GROUPS else "Example")[2]
    assert "Exit codes: 0" in words


def test_the_first_help_names_every_command(monkeypatch: pytest.MonkeyPatch) -> None:
    """Groups of commands that other packages add are named as well."""
    monkeypatch.setenv("COLUMNS", "80")
    shown = _run("--help")[1]
    named = {line[1:].split()[0] for line in shown.splitlines() if line.startswith("│ ") and line[2] != " "}
    assert {one.split()[0] for one in [*GROUPS, *COMMANDS] if one} <= named


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_json(name: str) -> None:
    """One flag of one meaning."""
    flags = {option: one for one in _command(name).params for option in one.opts}
    assert "Print the result as one JSON object." == flags["--json"].help


@pytest.mark.parametrize("name", WITH_DATA)
def test_rewards_come_first_and_data_second_or_by_name(name: str) -> None:
    """`rewardkit COMMAND REWARDS DATA` everywhere, and --data in the place of DATA."""
    parameters = PROGRAM.get_command(CONTEXT, name).params
    placed = [one for one in parameters if not one.opts[0].startswith("--")]
    assert ["DATA"] == [one.metavar for one in placed[1:]]
    assert [True] == [not one.required for one in parameters if "--data" in one.opts]


RUNS = {
    "score": (["score", "mine.py"], "rows.jsonl", ["--inline"]),
    "check": (["check", "mine.py"], "rows.jsonl", ["--rows", "0"]),
    "test": (["test", "mine.py"], "cases.yaml", []),
}


@pytest.mark.parametrize(("command", "data", "more"), RUNS.values(), ids=RUNS)
def test_data_by_place_and_by_name_are_the_same(work: Path, command: list[str], data: str, more: list[str]) -> None:
    """Either, or both where they agree; a difference is an error that names both, and so is their absence."""
    results = [_run(*command, *given, *more, "--json") for given in ([data], ["--data", data], [data, "--data", data])]
    assert [0, 0, 0] == [code for code, _, _ in results]
    assert 1 == len({json.dumps({**json.loads(out), "seconds": 0, "rewards": 0}) for _, out, _ in results})
    code, out, err = _run(*command, data, "--data", "other.jsonl", *more)
    assert (2, "") == (code, out)
    assert f"error: 2 different DATA: '{data}' and --data 'other.jsonl'; give one of them" in err
    code, out, err = _run(*command, "--data", data, "--data", "other.jsonl", *more)
    assert (2, "") == (code, out)
    assert f"error: 2 different DATA: --data '{data}' and --data 'other.jsonl'; give one of them" in err
    if command[0] != "test":
        assert "error: DATA is missing; name its file after the rewards, or with --data FILE" in _run(*command)[2]


def test_a_table_is_tested_with_the_reward_of_either_place(work: Path) -> None:
    """The reward of a file may stand before the table or behind --reward; two that differ are an error."""
    for arguments in (["cases.yaml"], ["mine.py:correct", "cases.yaml"], ["cases.yaml", "--reward", "mine.py"]):
        assert (0, "1 case: 1 as expected\n") == _run("test", *arguments)[:2]
    code, _, err = _run("test", "mine.py", "cases.yaml", "--reward", "other.py")
    assert (2, True) == (code, "error: two different REWARDS: 'mine.py' and --reward 'other.py'" in err)


RESULTS = {
    "score": (["score", "mine.py", "rows.jsonl", "--inline"], 0, "rewards"),
    "score that failed": (["score", "mine.py", "wrong.jsonl", "--inline", "--fail-on-error"], 1, "failures"),
    "check": (["check", "mine.py", "rows.jsonl", "--rows", "0"], 0, "rewards"),
    "check that failed": (["check", "mine.py", "wrong.jsonl", "--rows", "0"], 1, "rewards"),
    "test": (["test", "cases.yaml"], 0, "tables"),
    "test that failed": (["test", "failing.yaml"], 1, "failures"),
    "list": (["list", "mine.py"], 0, "rewards"),
    "runs": (["runs"], 0, "runs"),
    "score into a run": (["score", "mine.py", "rows.jsonl", "--inline", "--record", "one"], 0, "record"),
    "no such run to show": (["show", "absent"], 2, "error"),
    "no such run to read the logs of": (["logs", "absent"], 2, "error"),
    "no such run to export": (["export", "absent", "--to", "run.csv"], 2, "error"),
    "new": (["new", "fresh"], 0, "reward_file"),
    "unknown option": (["check", "mine.py", "--nothing"], 2, "error"),
    "unknown command": (["chekc", "mine.py"], 2, "error"),
    "no such data": (["audit", "mine.py", "absent.jsonl"], 2, "error"),
    "no such rewards": (["audit-judge", "absent.py", "rows.jsonl"], 2, "error"),
    "no such configuration": (["train", "absent.yaml"], 2, "error"),
    "new that exists": (["new", "mine"], 2, "error"),
}


@pytest.mark.parametrize(("arguments", "code", "key"), RESULTS.values(), ids=RESULTS)
def test_json_is_one_object_that_says_how_it_ended(work: Path, arguments: list[str], code: int, key: str) -> None:
    """Nothing else stands on stdout; ``ok`` is true for exit code 0; what ends a command early is an ``error``."""
    given, out, err = _run(*arguments, "--json")
    told = json.loads(out)
    assert (code, code == 0) == (given, told["ok"])
    assert key in told
    if key == "error":
        assert {"type", "message", "exit_code"} == set(told["error"])
        assert code == told["error"]["exit_code"]
        assert " ".join(told["error"]["message"].split())[:30] in " ".join(err.replace("│", " ").split())


def test_an_interrupted_command_says_so_in_json(work: Path) -> None:
    """Exit code 130, and an error as data."""
    Path("stops.py").write_text("raise KeyboardInterrupt\n")
    code, out, err = _run("list", "stops.py", "--json")
    assert (130, "interrupted\n") == (code, err)
    assert {"type": "KeyboardInterrupt", "message": "interrupted", "exit_code": 130} == json.loads(out)["error"]


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        (["diagnose", "http://127.0.0.1:1", "mine.py"], "--rewards mine.py"),
        (["diagnose", "rows.jsonl", "rewards.yaml"], "--rewards rewards.yaml"),
        (["score", "mine.py", "rows.jsonl", "more.jsonl"], "--data more.jsonl"),
        (["show", "one", "two"], None),
    ],
    ids=["a reward", "a configuration", "data", "neither"],
)
def test_a_file_too_many_is_answered_with_the_option_that_takes_it(
    work: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], hint: str | None
) -> None:
    """The message names the option; where no option takes such a file it is as it was."""
    monkeypatch.setenv("COLUMNS", "200")
    code, _, err = _run(*arguments)
    assert 2 == code
    assert "unexpected extra argument" in err
    assert (hint is None) == ("; give " not in err)
    assert hint is None or f"; give {hint}" in err


@pytest.mark.parametrize("command", [["train"], ["rm", "train"]], ids=" ".join)
@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        (["rows.jsonl"], "dataset: rows.jsonl"),
        (["rows.csv", "out"], "dataset: rows.csv"),
        (["--data", "rows.jsonl"], "dataset: rows.jsonl"),
        (["out"], None),
        (["--date", "rows.jsonl"], None),
    ],
    ids=["rows", "rows and folder", "option", "folder", "other option"],
)
def test_a_command_with_a_configuration_says_that_it_names_the_rows(
    work: Path, monkeypatch: pytest.MonkeyPatch, command: list[str], arguments: list[str], hint: str | None
) -> None:
    """Rows beside the configuration belong into its field; another argument too many is refused as before."""
    monkeypatch.setenv("COLUMNS", "200")
    code, _, err = _run(*command, "run.yaml", *arguments)
    assert 2 == code
    assert (hint is None) == ("CONFIG.yaml names the rows" not in err)
    assert hint is None or f"; CONFIG.yaml names the rows, as {hint}" in err


@pytest.mark.parametrize("chars", [10, 15, 20, 30, 60])
def test_names_are_whole_in_80_columns(work: Path, monkeypatch: pytest.MonkeyPatch, chars: int) -> None:
    """The name of a run is not broken up to 30 characters, and that of a reward up to 20. Nothing is wider."""
    monkeypatch.setenv("COLUMNS", "80")
    reward, run = ("colleague_" * 6)[:chars].rstrip("_") + "r", ("a-run_of_mine-" * 6)[:chars]
    Path("named.py").write_text(REWARDS.replace("def correct", f"def {reward}").replace('print("this', '("this'))
    assert 0 == _run("score", "named.py", "rows.jsonl", "--inline", "--record", f"runs/{run}")[0]
    lines = _run("runs")[1].splitlines()
    assert chars > 30 or any(run in line for line in lines)
    checked = _run("check", "named.py", "rows.jsonl", "--workers", "1")[1].splitlines()
    assert chars > 19 or any(line.startswith(f"{reward} ") for line in checked)
    for table in (lines, checked):
        assert max(map(len, table)) <= 80
