"""A server's address in place of REWARDS: each command prints what it prints of them here, or refuses at once."""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from serve_processes import serving
from served import free_port
from typer.testing import CliRunner

from rewardkit import InfrastructureError, RewardDefinitionError, Rollout, Runtime
from rewardkit.cli.program import app
from rewardkit.serving import RemoteRuntime

REWARDS = """
import sys
from rewardkit import Score, group_reward, reward

@reward(score_range=(0, 1), timeout_s=5)
def right(completion: str, answer: float, unit="") -> Score | None:
    if not completion.strip():
        return None
    return Score(float(completion.split()[-1] == f"{answer:g}"), "its last word")

@reward(default=None)
def polite(messages: list[dict[str, str]], prompt: str, answer: str) -> float:
    if "fault" in messages[-1]["content"]:
        raise ValueError("no such thing")
    return float("please" in prompt)

@reward
async def waits(completion: str, *, hint: str | None = None) -> float:
    return float(bool(completion))

@group_reward
def shortest(completions: list[str]) -> list[float]:
    return [float(len(one) == min(map(len, completions))) for one in completions]
"""
TOKEN = "a-token-of-these-tests"
_TIMES = re.compile(r"\d+(?:\.\d+)?(?:e-?\d+)? ?(?:µs|ms|s)\b|[\d,]+ rows?/s|(?:p50|p95|time|call|slowest)\b")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("served")
    (folder / "mine.py").write_text(REWARDS)
    said = ["4", "it is 5", "", "fault", "6 or 7", "a much longer text, please: 8"]
    rows = [
        {"prompt": f"{number // 2}+1=, please", "completion": said[number % 6], "answer": str(number // 2 + 1)}
        for number in range(24)
    ]
    (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    rows[5]["answer"] = "five"
    (folder / "odd.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "bare.jsonl").write_text('{"prompt": "Say hello."}\n')
    (folder / "broken.jsonl").write_text("no JSON\n")
    return folder


@pytest.fixture(scope="module")
def url(folder: Path) -> Iterator[str]:
    with serving(folder / "mine.py", "--token", TOKEN) as served:
        yield served.url


@pytest.fixture(autouse=True)
def _here(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    monkeypatch.setenv("REWARDKIT_SERVE_TOKEN", TOKEN)


def _run(*arguments: str) -> tuple[int, str, str]:
    done = CliRunner().invoke(app, list(arguments), prog_name="rewardkit")
    return done.exit_code, done.stdout, done.stderr


def _steady(value: Any) -> Any:
    """Return a result without what takes another time in each run, and without sources, which only are here."""
    if isinstance(value, dict):
        unsteady = (
            "seconds",
            "p50_s",
            "p95_s",
            "max_s",
            "duration_s",
            "per_1000",
            "logs",
            "traceback",
            "lint",
            "unread",
        )
        return {key: _steady(inner) for key, inner in value.items() if key not in unsteady}
    return [_steady(inner) for inner in value] if isinstance(value, list) else value


@pytest.mark.cases(3)
@pytest.mark.parametrize(
    "arguments",
    [
        ("score", "rows.jsonl"),
        ("score", "rows.jsonl", "--weights", "1,0,0.5,2"),
        ("score", "odd.jsonl", "--fail-on-error"),
        ("check", "rows.jsonl"),
        ("check", "odd.jsonl"),
        ("check", "odd.jsonl", "--rows", "0"),
        ("check", "bare.jsonl"),
        ("audit", "rows.jsonl", "--rows", "3"),
    ],
    ids=" ".join,
)
def test_a_command_gives_the_same_of_a_server_as_here(arguments: tuple[str, ...], url: str) -> None:
    """Its result and exit code, whatever the rows hold: misfits, failures, skips, groups and messages."""
    command, *rest = arguments
    code, here, _ = _run(command, "mine.py", *rest, "--json")
    assert (code, _steady(json.loads(here))) == (
        (served := _run(command, url, *rest, "--json"))[0],
        _steady(json.loads(served[1])),
    )
    assert code in (0, 1)


@pytest.mark.cases(1)
@pytest.mark.parametrize("command", ["score", "check"])
def test_the_text_is_the_same(command: str, url: str) -> None:
    """What a person reads has the same lines, times aside."""
    shown = [
        re.sub(r"[\s─━]+", " ", _TIMES.sub("", _run(command, place, "odd.jsonl")[1])) for place in ("mine.py", url)
    ]
    assert shown[0] == shown[1]


def test_an_audit_says_that_it_read_no_source(url: str) -> None:
    """The lint needs the source, which a server does not send."""
    _, out, _ = _run("audit", f"{url}#right", "rows.jsonl", "--rows", "2", "--json")
    (audit,) = json.loads(out)["rewards"]
    assert ("right", [], ["right"]) == (audit["reward"], audit["lint"], audit["unread"])


def test_rows_are_written_recorded_and_scored_again(url: str, tmp_path: Path) -> None:
    """A record has the server's versions and no source, and its address without the token."""
    address = f"{url}/t/{TOKEN}"
    assert (
        0 == _run("score", address, "rows.jsonl", "--record", str(tmp_path / "run"), "--out", str(tmp_path / "out"))[0]
    )
    assert 24 == len((tmp_path / "out").read_text().splitlines())
    code, out, err = _run("rescore", str(tmp_path / "run"), "--reward", f"{address}#right", "--json")
    assert (0, "") == (code, err)
    (again,) = json.loads(out)["passes"]
    assert ("right@1", 24, again["recorded_mean"]) == (again["version"], again["completions"], again["mean"])
    code, out, _ = _run("diff", str(tmp_path / "run"), "right@1", f"{address}#right", "--json")
    assert (0, 0) == (code, json.loads(out).get("changed", 0))
    assert all(TOKEN.encode() not in file.read_bytes() for file in (tmp_path / "run").rglob("*") if file.is_file())


def test_one_reward_is_named_after_the_address(url: str) -> None:
    """Where one is needed, and where only one is wanted."""
    code, _, err = _run("rescore", "no_run", "--reward", url)
    assert (2, f"error: {url!r} holds 4 rewards; name one: {url}#right\n") == (code, err)
    _, out, _ = _run("score", f"{url}#shortest", "rows.jsonl", "--json")
    assert ["shortest"] == list(json.loads(out)["rewards"])
    code, _, err = _run("rescore", "no_run", "--reward", f"{url}/t/{TOKEN}")
    assert (2, True, False) == (code, "/t/***#right" in err, TOKEN in err)
    code, _, err = _run("score", f"{url}#longest", "rows.jsonl")
    assert (2, f"error: {url} serves no 'longest'; it serves right, polite, waits, shortest\n") == (code, err)


COMMANDS = [
    ("score", "ADDRESS", "broken.jsonl"),
    ("score", "ADDRESS", "-"),
    ("check", "ADDRESS", "broken.jsonl"),
    ("check", "ADDRESS", "-"),
    ("audit", "ADDRESS", "broken.jsonl"),
    ("audit", "ADDRESS", "-"),
    ("diagnose", "broken.jsonl", "--rewards", "ADDRESS"),
    ("diff", "mine.py:right", "ADDRESS", "--data", "broken.jsonl"),
    ("rescore", "no_run", "--reward", "ADDRESS"),
    ("rm", "eval", "ADDRESS", "broken.jsonl"),
]


class _Older(BaseHTTPRequestHandler):
    """A server that tells of its rewards as rewardkit did before clients needed more."""

    def do_GET(self) -> None:
        body = json.dumps({"rewards": {"right": "single"}, "weights": {"right": 1.0}, "versions": {"right": "0" * 12}})
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body.encode())

    def log_message(self, *arguments: object) -> None:
        pass


def _refused(arguments: tuple[str, ...], address: str) -> tuple[int, str]:
    """Return how a command ends, having printed one line and no result."""

    done = CliRunner().invoke(app, [address if one == "ADDRESS" else one for one in arguments], prog_name="rewardkit")
    assert ("", 1) == (done.stdout, done.stderr.count("\n")), done.output
    return done.exit_code, done.stderr


@pytest.mark.parametrize("arguments", COMMANDS, ids=" ".join)
def test_an_address_without_its_server_ends_the_command_before_it_reads(
    arguments: tuple[str, ...], url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No server, another version, no token, a wrong one, no address at all: one line, and the data is not read."""
    monkeypatch.setattr("rewardkit.serving.choice.CONNECT_S", 0.2)
    code, err = _refused(arguments, f"http://127.0.0.1:{free_port()}")
    assert (3, True) == (code, "does not answer" in err)
    monkeypatch.setenv("REWARDKIT_SERVE_TOKEN", "another-token")
    assert (2, f"error: {url} answered 401: wrong token\n") == _refused(arguments, url)
    monkeypatch.delenv("REWARDKIT_SERVE_TOKEN")
    code, err = _refused(arguments, url)
    assert (2, True) == (code, "no token" in err and "put the server's token into REWARDKIT_SERVE_TOKEN" in err)
    code, err = _refused(arguments, "http://rewards:80000")
    assert (2, True) == (code, "expected an address such as" in err)
    server = HTTPServer(("127.0.0.1", 0), _Older)
    thread = Thread(target=server.serve_forever)
    thread.start()
    try:
        code, err = _refused(arguments, f"http://127.0.0.1:{server.server_port}")
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
    assert (2, True) == (code, "runs another version of rewardkit" in err)


@pytest.mark.parametrize(
    "arguments",
    [
        ("serve", "ADDRESS"),
        ("list", "ADDRESS"),
        ("test", "ADDRESS", "cases.yaml"),
        ("audit-judge", "ADDRESS", "rows.jsonl"),
        ("score", "mine.py,ADDRESS", "rows.jsonl"),
    ],
    ids=" ".join,
)
def test_what_needs_the_reward_itself_says_so(arguments: tuple[str, ...], folder: Path) -> None:
    """One line; no server is asked."""
    (folder / "cases.yaml").write_text("reward: mine.py:right\ncases:\n- {completion: '4', answer: 4, expect: 1.0}\n")
    command = [one.replace("ADDRESS", "http://127.0.0.1:9") for one in arguments]
    code, out, err = _run(*command)
    assert (2, "", 1) == (code, out, err.count("\n"))
    assert err.endswith(
        "http://127.0.0.1:9: the address of a server; this needs the rewards themselves, as file.py:name\n"
    )


@pytest.mark.parametrize(
    ("option", "said"),
    [
        ("--workers 3", "workers"),
        ("--timeout 3", "--timeout 3"),
        ("--load-timeout 3", "load_timeout_s"),
    ],
)
def test_options_of_workers_are_the_servers(option: str, said: str, url: str) -> None:
    """What has no effect is refused and not dropped, and the option that it names is the server's."""
    code, _, err = _run("score", url, "rows.jsonl", *option.split())
    fix = "the rewards are scored by a server; set it there, with rewardkit serve "
    assert (2, True) == (code, err.startswith(f"error: {said}: {fix}{option.split()[0]}"))
    assert option.split()[0] in _run("serve", "--help")[1]


def test_a_total_of_a_servers_scores_has_the_weights_of_who_asks(folder: Path, tmp_path: Path) -> None:
    """Weights that a server was started with count, unless ``score`` has its own; another sign is refused."""
    with serving(f"{folder}/mine.py:right,{folder}/mine.py:waits", "--weights", "0.75,-0.5", "--token", TOKEN) as own:
        assert {"right": 0.75, "waits": -0.5} == own.told["weights"]
        for weights, expected in (("", (0.75, -0.5)), ("2,-0.25", (2.0, -0.25)), ("0,-1", (0.0, -1.0))):
            option = ["--weights", weights] if weights else []
            code, out, _ = _run("score", own.url, "rows.jsonl", "--json", "--out", str(tmp_path / "out"), *option)
            rewards = json.loads(out)["rewards"]
            assert (0, expected) == (code, (rewards["right"]["weight"], rewards["waits"]["weight"]))
            (row, *_) = map(json.loads, (tmp_path / "out").read_text().splitlines())
            assert (
                sum(weight * row["rewards"][name]["score"] for name, weight in row["weights"].items()) == row["total"]
            )
        code, _, err = _run("score", own.url, "rows.jsonl", "--weights", "1,1")
        assert (2, True) == (code, err.startswith("error: weights: 'waits' weighs 1 here and -0.5 on its server"))


@pytest.mark.parametrize("weights", ["1", "1,2,3", "one,two", "1,nan"])
def test_a_server_does_not_start_with_weights_that_do_not_match(weights: str) -> None:
    """One line says what is expected, before the port is taken."""
    code, out, err = _run("serve", "mine.py:right,mine.py:waits", "--weights", weights, "--check")
    assert (2, "", 1) == (code, out, err.count("\n"))


def test_weights_in_a_file_of_rewards_are_sent_to_where_they_belong(folder: Path) -> None:
    """The error names each way to give weights."""
    (folder / "heavy.yaml").write_text("functions: {right: mine.py:right}\nweights: {right: 0.8}\n")
    code, _, err = _run("serve", "heavy.yaml", "--check")
    assert (2, 1) == (code, err.count("\n"))
    assert all(way in err for way in ("rewardkit serve take --weights", "reward_weights", "RewardAdapter weights="))


def test_adapters_take_an_address(url: str) -> None:
    """In place of rewards, and as the text that trainers' settings hold."""
    from trainer_adapter import RewardAdapter, TrainerRewards

    with RewardAdapter(url) as adapter:
        assert ["right", "polite", "waits", "shortest"] == adapter.names
        columns = {"prompts": ["p", "p"], "completions": ["4", "44"], "answer": ["4", "4"]}
        assert [1.0, 0.0] == adapter.reward_funcs[0](**columns)
    core = TrainerRewards(f"{url}#right")
    row = core.score_one("2+2=", "4", {"answer": "4", "other": "not sent"})
    assert (1.0, frozenset({"answer", "unit"})) == (core.number(row), core.columns)
    core.close()
    with pytest.raises(RewardDefinitionError, match="'right' is scored by a server"):
        Runtime(RemoteRuntime(url).rewards)
    with Runtime(["mine.py:right"], workers=1) as runtime:
        assert runtime.score([Rollout("2+2=", "4", {"answer": "4"})]).totals == [row.number]


def test_what_a_run_of_a_server_lacks_is_named_by_its_address(url: str, folder: Path) -> None:
    """Commands that need the rewards of such a run name the server's address, which they then take."""
    from trainer_adapter import RewardAdapter

    with RewardAdapter(f"{url}#polite", record="runs/remote") as adapter:
        prompts = ["2+2=, please", "1+1="]
        messages = [[{"role": "assistant", "content": text}] for text in ("4", "fault")]
        adapter.reward_funcs[0](prompts=prompts, completions=messages, answer=["4", "2"])
    address = f"{url}#polite"
    code, _, err = _run("audit", "--run", "runs/remote")
    assert (2, 1) == (code, err.count("\n"))
    said = f"'polite' was scored by a server; name its address, as in: rewardkit audit {address} --run RUN\n"
    assert err.endswith(said)
    assert f"polite@1: it was scored by a server, {url}" in _run("verify", "runs/remote")[1]
    assert "error" not in _run("audit", address, "--run", "runs/remote")[2]
    connection = sqlite3.connect(folder / "runs/remote/record.db")
    with connection:
        connection.execute("UPDATE said SET cause = 'infrastructure' WHERE cause IS NOT NULL")
    connection.close()
    code, _, err = _run("rescore", "runs/remote", "--only-failed", "polite")
    said = f"polite@1 cannot be asked again: it was scored by a server, {url}; give --reward {address}\n"
    assert (2, said) == (code, err.removeprefix("error: "))


@pytest.mark.trainers
def test_a_training_takes_an_address(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """In its configuration; without its server the training ends before it reads the data."""
    from trainer_adapter import GRPOConfig, train

    config = GRPOConfig(base_model="builtin:smollm2-135m", reward_fns=[url], train_steps=1)
    assert url == config.reward_fns == GRPOConfig.model_validate(config.model_dump()).reward_fns
    monkeypatch.setattr("rewardkit.serving.choice.CONNECT_S", 0.2)
    dead = GRPOConfig(base_model="builtin:smollm2-135m", reward_fns=f"http://127.0.0.1:{free_port()}", train_steps=1)
    with pytest.raises(InfrastructureError, match="does not answer"):
        train(dead, "broken.jsonl", "out")
