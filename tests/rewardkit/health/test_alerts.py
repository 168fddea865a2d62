"""Alerts: each flag of a run is told once, nobody waits for it, and the target is a secret."""

from __future__ import annotations

import contextlib
import json
import logging
import sys
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from patience import LONG_S, wait_for
from served import free_port
from synthetic_runs import PLANTED, run_of
from typer.testing import CliRunner

from rewardkit import ConfigError, Recorder, Rollout, Runtime, reward
from rewardkit.cli.program import app
from rewardkit.health import Alert, Flag, LiveHealth
from rewardkit.health.alerts import Alerts, payload_of
from rewardkit.record.reader import RunReader

SECRET = "B0xS3cretT0ken"
FLAG = Flag("tampering", None, 10, 19, 0.12, 0.02, None, "12% of them tamper", "Read the rows.", (3, 4))


class Hook:
    """A webhook on this machine, which answers as its path says."""

    def __init__(self) -> None:
        self.received: list[tuple[str, Any]] = []
        self.headers: list[Any] = []
        self.gone = threading.Event()
        hook = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                hook.received.append((self.path, json.loads(body)))
                hook.headers.append(self.headers)
                hook.answer(self)

            do_GET = do_POST

            def log_message(self, *arguments: object) -> None:
                """Say nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,))
        self._thread.start()
        self.base = f"http://127.0.0.1:{self._server.server_port}"

    def answer(self, handler: BaseHTTPRequestHandler) -> None:
        """Answer as the path says: at once, never, drop by drop, with an error, or with a redirect."""
        kind = handler.path.split("/")[1]
        with contextlib.suppress(OSError):
            if kind == "hangs":
                self.gone.wait(20)
            elif kind == "drips":
                for byte in b"HTTP/1.1 200 OK\r\n" + b"x: y\r\n" * 1000:
                    handler.wfile.write(bytes([byte]))
                    if self.gone.wait(0.05):
                        break
            elif kind == "moved":
                handler.send_response(307)
                handler.send_header("location", f"{self.base}/elsewhere/{SECRET}")
                handler.end_headers()
            else:
                handler.send_response(500 if kind == "fails" else 204)
                handler.end_headers()

    def url(self, kind: str = "ok") -> str:
        """Return an address with a secret in it."""
        return f"{self.base}/{kind}/{SECRET}?token={SECRET}"

    def close(self) -> None:
        """End the server."""
        self.gone.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


@pytest.fixture
def hook() -> Iterator[Hook]:
    """A webhook on this machine."""
    server = Hook()
    yield server
    server.close()


@reward
def always(completion: str) -> float:
    """Pay for everything alike."""
    return 1.0


def watched(run: Path, on_flag: Any, first: int = 0, rank: int = 0) -> None:
    """Record ten steps in which nothing differs, with health checks."""
    recorder = Recorder(run, append=first > 0, rank=rank)
    health = LiveHealth(recorder, every=5, on_flag=on_flag)
    with Runtime([always], lane="inline", record=recorder) as runtime:
        for step in range(first, first + 10):
            health.begins(step)
            runtime.score([Rollout(f"{row // 4}", f"my own words {row} {step}") for row in range(16)], step=step)
        health.close()


def flags_in(run: Path) -> list[str]:
    """Return the detectors of a record's flags."""
    with RunReader(run) as reader:
        return [event["body"]["detector"] for event in reader.events if event["kind"] == "flag"]


def test_a_url_is_told_of_each_flag_of_a_run_once(hook: Hook, tmp_path: Path) -> None:
    """Also where the run is stopped and goes on in its record, and where a process of another rank watches too."""
    watched(tmp_path, hook.url())
    once = len(hook.received)
    assert once == len(flags_in(tmp_path)) > 0
    watched(tmp_path, hook.url(), first=10)
    watched(tmp_path, hook.url(), first=20, rank=1)
    assert once == len(hook.received)
    assert len(flags_in(tmp_path)) == len({payload["flag"] for _, payload in hook.received})


def test_a_run_that_goes_back_to_a_checkpoint_tells_no_flag_twice(hook: Hook, tmp_path: Path) -> None:
    """The record forgets the flags of the steps that are done again; that an alert went out it keeps."""
    watched(tmp_path, hook.url())
    once = len(hook.received)
    with Recorder(tmp_path, append=True) as recorder:
        recorder.rewind(0)
    assert [] == flags_in(tmp_path)
    watched(tmp_path, hook.url(), first=10)
    assert [] != flags_in(tmp_path)
    assert once == len(hook.received)


def test_a_function_is_called_of_each_flag_of_a_run_once(tmp_path: Path) -> None:
    """As a URL is."""
    told: list[str] = []
    for first in (0, 10):
        watched(tmp_path, lambda flag: told.append(flag.detector), first)
    assert sorted(flags_in(tmp_path)) == sorted(told)


def test_the_payload_says_run_flag_steps_message_and_value(hook: Hook, tmp_path: Path) -> None:
    """And nothing that a completion says."""
    watched(tmp_path / "one", hook.url())
    path, payload = hook.received[0]
    assert f"/ok/{SECRET}?token={SECRET}" == path
    assert {
        "run", "flag", "reward", "steps", "message", "value", "threshold", "action", "completions", "time", "text",
    } == set(payload)  # fmt: skip
    assert (str(tmp_path / "one"), [[0, 4]]) == (payload["run"], payload["steps"])
    assert payload["text"] == f"{payload['run']}: {payload['flag']}, steps 0-4: {payload['message']}"
    assert "own words" not in json.dumps(hook.received)
    assert "application/json" == hook.headers[0]["content-type"]


def test_texts_go_along_where_they_are_asked_for(hook: Hook, tmp_path: Path) -> None:
    """The beginnings of three completions at most, and what the flag quotes."""
    watched(tmp_path, Alert(hook.url(), texts=True))
    payload = hook.received[0][1]
    assert 3 == len(payload["texts"])
    assert payload["texts"][0]["text"].startswith("my own words")
    assert "" == payload["quote"]


def test_no_sentence_of_a_flag_has_what_completions_say() -> None:
    """A tag that completions write is the flag's quote, which goes along with texts alone."""
    run = run_of(PLANTED["prefilled"][0], seed=1, steps=20, words=8, prompt="2+2=<think>")
    (flag,) = [flag for flag in run.watched().flags if flag.detector == "prefilled"]
    assert "think" not in json.dumps(payload_of(flag, "runs/one"))
    assert "</think>" == payload_of(flag, "runs/one", {})["quote"]


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        ("ok", None),
        ("fails", "it answered 500"),
        ("moved", "it answered 307, a redirect, which is not followed"),
        ("hangs", "no answer within 0.5 s"),
        ("drips", "no answer within 0.5 s"),
    ],
)
def test_what_a_webhook_does_is_said_in_bounded_time(hook: Hook, kind: str, reason: str | None) -> None:
    """Nothing is followed, and nothing is waited for beyond the seconds of an alert."""
    timeout_s = 0.5 if "0.5 s" in str(reason) else LONG_S
    assert reason == Alert(hook.url(kind), timeout_s=timeout_s).send({"value": float("nan")})
    assert wait_for(lambda: hook.received)
    assert [(hook.url(kind).removeprefix(hook.base), {"value": None})] == hook.received


def test_a_server_that_is_not_there_is_said(hook: Hook) -> None:
    """By the kind of error alone."""
    reason = Alert(f"http://user:{SECRET}@127.0.0.1:{free_port()}/{SECRET}").send({})
    assert "cannot be reached: ConnectionRefusedError" == reason


def test_a_user_of_the_address_is_sent_as_a_header(hook: Hook) -> None:
    """As ``Authorization``."""
    assert Alert(hook.base.replace("//", "//me:p%40ss@") + "/ok").send({}) is None
    assert "Basic bWU6cEBzcw==" == hook.headers[0]["authorization"]


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("import sys; open(sys.argv[1], 'wb').write(sys.stdin.buffer.read())", None),
        ("raise SystemExit(3)", "exit status 3"),
        ("import time; time.sleep(60)", "not done within 1.5 s"),
    ],
)
def test_a_command_gets_the_payload_on_its_standard_input(code: str, reason: str | None, tmp_path: Path) -> None:
    """One that fails or hangs is said in bounded time."""
    timeout_s = 1.5 if "1.5 s" in str(reason) else LONG_S
    alert = Alert([sys.executable, "-c", code, str(tmp_path / "told")], timeout_s=timeout_s)
    assert reason == alert.send(payload_of(FLAG, "runs/one"))
    if reason is None:
        assert "tampering" == json.loads((tmp_path / "told").read_text())["flag"]


@pytest.mark.parametrize("kind", ["hangs", "fails", "moved"])
def test_a_webhook_that_fails_is_said_once_and_its_address_nowhere(
    kind: str, hook: Hook, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Not in the log, not in the record, not on the page; and the training does not wait for it."""
    alert = Alert(hook.url(kind), timeout_s=0.3)
    with caplog.at_level(logging.DEBUG):
        alerts = Alerts(alert)
        start = time.monotonic()
        for _ in range(50):
            alerts.put(payload_of(FLAG, "runs/one"))
        assert time.monotonic() - start < 50 * alert.timeout_s
        assert not alerts.close(5)
        watched(tmp_path, alert)
    assert 3 + len(set(flags_in(tmp_path))) >= len(hook.received)
    said = [record for record in caplog.records if "on_flag" in record.getMessage()]
    assert 2 == len(said)
    assert "the webhook at 127.0.0.1" in said[0].getMessage()
    assert SECRET not in caplog.text + repr(alert) + str(vars(said[0]))
    assert all(SECRET.encode() not in path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())


def test_a_target_comes_from_the_environment(hook: Hook, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the name of its variable, so that no file has it."""
    monkeypatch.setenv("MY_HOOK", hook.url())
    assert Alert("$MY_HOOK").send({}) is None
    monkeypatch.delenv("MY_HOOK")
    with pytest.raises(ConfigError, match="the environment variable MY_HOOK is not set"):
        Alert("$MY_HOOK")


@pytest.mark.parametrize(
    "target",
    [
        f"hooks.example.com/{SECRET}",
        f"ftp://hooks.example.com/{SECRET}",
        f"https://{SECRET} x",
        f"https:///{SECRET}",
        f"https://host:port/{SECRET}",
        f"no-such-command {SECRET}",
        f"'{SECRET}",
        "",
        [],
        3,
    ],
)
def test_what_is_no_target_is_refused_without_naming_it(target: Any, tmp_path: Path) -> None:
    """As the run is set up."""
    with Recorder(tmp_path) as recorder, pytest.raises(ConfigError, match="on_flag: expected") as refused:
        LiveHealth(recorder, on_flag=target)
    assert SECRET not in str(refused.value)


def test_diagnose_tells_the_flags_that_were_not_told_before(hook: Hook, tmp_path: Path) -> None:
    """Once each, however often it is asked."""
    run = tmp_path / "one"
    run_of(PLANTED["timeouts"][0], seed=1, steps=20, words=5).record(run)
    first, second = (
        json.loads(CliRunner().invoke(app, ["diagnose", str(run), "--on-flag", hook.url(), "--json"]).stdout)
        for _ in range(2)
    )
    assert [{"sent": 1, "before": 0, "reason": None}, {"sent": 0, "before": 1, "reason": None}] == [
        first["alerts"],
        second["alerts"],
    ]
    assert ["timeouts"] == [payload["flag"] for _, payload in hook.received]
    shown = CliRunner().invoke(app, ["diagnose", str(run), "--on-flag", hook.url("fails")])
    assert "told the webhook at 127.0.0.1 of 0 flags; 1 were told before" in shown.stdout
    assert SECRET not in shown.output
    assert all(SECRET.encode() not in path.read_bytes() for path in run.rglob("*") if path.is_file())


@pytest.mark.parametrize("kind", ["fails", "hangs"])
def test_an_alert_that_failed_is_told_by_the_next_that_asks(kind: str, hook: Hook, tmp_path: Path) -> None:
    """Of a training whose hook gave no answer, by the run that goes on or by diagnose; of diagnose, by the next."""
    watched(tmp_path, Alert(hook.url(kind), timeout_s=0.2))
    failed = diagnosed(tmp_path, hook.url("fails"))
    assert (0, 0, "it answered 500") == (failed["sent"], failed["before"], failed["reason"])
    hook.received.clear()
    told = diagnosed(tmp_path, hook.url())
    assert (len(hook.received), 0, None) == (told["sent"], told["before"], told["reason"])
    assert told["sent"] > 0
    again = diagnosed(tmp_path, hook.url())
    assert (0, told["sent"]) == (again["sent"], again["before"])
    watched(tmp_path / "two", Alert(hook.url(kind), timeout_s=0.2))
    hook.received.clear()
    watched(tmp_path / "two", hook.url(), first=10)
    assert set(flags_in(tmp_path / "two")) == {payload["flag"] for _, payload in hook.received}


def diagnosed(run: Path, target: str) -> Any:
    """Return what became of the alerts of `rewardkit diagnose`."""
    arguments = ["diagnose", str(run), "--on-flag", target, "--json"]
    return json.loads(CliRunner().invoke(app, arguments).stdout)["alerts"]


def test_rows_have_nobody_to_tell(tmp_path: Path) -> None:
    """Nothing would remember which flags were told."""
    (tmp_path / "rows.jsonl").write_text("{}\n")
    done = CliRunner().invoke(app, ["diagnose", str(tmp_path / "rows.jsonl"), "--on-flag", "true"])
    assert "--on-flag: goes with a recorded run" in done.output
