"""The server: where it listens, what it prints, and that it ends when it is told to."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from served import TOKEN, free_port, recorded_run, serving, states
from typer.testing import CliRunner

from rewardkit.cli import ui
from rewardkit.cli.program import app
from rewardkit.dashboard import serve as serving_module
from rewardkit.dashboard.serve import Address, address_of, check, serve
from rewardkit.errors import ConfigError
from rewardkit.record.runs_folder import RunsFolder
from rewardkit.web import listening
from rewardkit.web.listening import PORTS_TRIED

ALL_IS_WELL, CTRL_C = 0, 130


@contextlib.contextmanager
def _started(*arguments: str | Path) -> Iterator[tuple[subprocess.Popen[str], dict[str, Any]]]:
    """Start the command, and give it with what it printed as JSON."""
    command = [sys.executable, "-m", "rewardkit", "ui", *map(str, arguments), "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            lines = []
            while not lines or lines[-1].rstrip() != "}":
                lines.append(process.stdout.readline())
                assert lines[-1], process.stderr and process.stderr.read()
            yield process, json.loads("".join(lines))
        finally:
            process.kill()


def _port(told: dict[str, Any]) -> int:
    return int(re.findall(r":(\d+)/", told["url"])[0])


def _get(told: dict[str, Any]) -> int:
    """Return the status of the page at the address that was printed."""
    with contextlib.closing(http.client.HTTPConnection("127.0.0.1", _port(told), timeout=60)) as connection:
        connection.request("GET", told["url"].partition(str(_port(told)))[2])
        return connection.getresponse().status


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_serves_and_ends_though_streams_hang_on_it(tmp_path: Path, number: signal.Signals) -> None:
    """The printed address opens the page; Ctrl-C ends the process, and every stream with it."""
    recorded_run(tmp_path / "runs" / "one")
    with _started(tmp_path / "runs", "--token", TOKEN, "--port", str(free_port())) as (process, told):
        assert (303, True, str(tmp_path / "runs"), None) == (
            _get(told), told["ok"], told["folder"], told["write_token"]
        )  # fmt: skip
        assert told["tunnel"].startswith(f"ssh -N -L {_port(told)}:127.0.0.1:{_port(told)} you@")
        connection = http.client.HTTPConnection("127.0.0.1", _port(told), timeout=60)
        connection.request("GET", f"/?token={TOKEN}")
        cookie = connection.getresponse().headers["set-cookie"].partition(";")[0]
        connection.close()
        with contextlib.ExitStack() as stack:
            streams = []
            for window in range(8):
                stream = stack.enter_context(socket.create_connection(("127.0.0.1", _port(told)), timeout=60))
                stream.sendall(
                    f"GET /api/runs/one/live HTTP/1.1\r\nHost: localhost\r\nUser-Agent: {window}\r\n"
                    f"Cookie: {cookie}\r\n\r\n".encode()
                )
                assert b"200 OK" in stream.recv(4096)
                streams.append(stream)
            process.send_signal(number)
            out, err = process.communicate(timeout=60)
            assert all(_ends(stream) for stream in streams)
        assert "" == out
        assert "Traceback" not in err
        if number == signal.SIGINT:
            assert (CTRL_C, "stopped\n") == (process.returncode, err)


def _ends(stream: socket.socket) -> bool:
    with contextlib.suppress(ConnectionError):
        while stream.recv(4096):
            pass
    return True


def test_a_taken_port_moves_to_the_next(tmp_path: Path) -> None:
    """Two dashboards stand side by side, and each says where."""
    first = free_port()
    with _started(tmp_path, "--port", str(first)) as (_, one), _started(tmp_path, "--port", str(first)) as (_, two):
        assert _port(one) < _port(two) < first + PORTS_TRIED
        assert [303, 303] == [_get(one), _get(two)]
        assert one["url"].partition("token=")[2] != two["url"].partition("token=")[2]


def test_connections_without_a_request_are_closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Half a request, or none, holds a place for a while only; a stream is kept."""
    recorded_run(tmp_path / "one")
    with serving(tmp_path) as served, served.enter().stream("one") as lines:
        found = states(lines)
        assert "finished" == next(found)["state"]
        slow = [socket.create_connection(("127.0.0.1", served.port), timeout=60) for _ in range(40)]
        with contextlib.ExitStack() as stack:
            for one in slow:
                stack.enter_context(one)
                one.sendall(b"GET / HTTP/1.1\r\nHost: ")
            monkeypatch.setattr(listening, "IDLE_S", 0.0)
            assert all(_ends(one) for one in slow)
        recorded_run(tmp_path / "one", steps=1, first=3)
        assert any(one["last_id"] == 32 for one in found)


def test_the_ports_that_are_tried_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where none is free, the message says which were tried."""
    monkeypatch.setattr(listening, "PORTS_TRIED", 1)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(ConfigError, match=rf"^--port {port}: is not free: "):
            serve(RunsFolder(tmp_path), port=port)


def test_an_address_of_no_machine_is_told(tmp_path: Path) -> None:
    """In one line, with the option."""
    with pytest.raises(ConfigError, match=r"^--host 192\.0\.2\.1: "):
        serve(RunsFolder(tmp_path), host="192.0.2.1", token=TOKEN)


@pytest.mark.parametrize("host", ["0.0.0.0", "192.168.1.2", "::", "box.example"])
def test_what_others_reach_needs_a_token_of_the_users_own(tmp_path: Path, host: str) -> None:
    """Random tokens are for this machine."""
    with pytest.raises(ConfigError, match=rf"^--host {re.escape(host)}: others can reach this address; give a --token"):
        check(RunsFolder(tmp_path), host, None)
    check(RunsFolder(tmp_path), host, TOKEN)
    check(RunsFolder(tmp_path), "127.0.0.1", None)


@pytest.mark.parametrize(
    ("host", "url", "target"),
    [
        ("127.0.0.1", "http://127.0.0.1:8642/?token=abc", "127.0.0.1"),
        ("localhost", "http://localhost:8642/?token=abc", "localhost"),
        ("::1", "http://[::1]:8642/?token=abc", "[::1]"),
        ("0.0.0.0", f"http://{socket.gethostname()}:8642/?token=abc", "127.0.0.1"),
        ("192.0.2.1", "http://192.0.2.1:8642/?token=abc", "192.0.2.1"),
    ],
)
def test_the_printed_address_leads_there(host: str, url: str, target: str) -> None:
    """Directly, and through SSH from another machine."""
    found = address_of(host, 8642, "abc", None)
    assert (url, f"ssh -N -L 8642:{target}:8642 you@{socket.gethostname()}") == (found.url, found.tunnel)


@pytest.mark.parametrize("token", ["", "with space", "a&b=cdefgh", "ümlaut-token", "a" * 201, "line\nbreak"])
def test_a_token_can_stand_in_an_address(tmp_path: Path, token: str) -> None:
    """Others are refused, and not repeated."""
    with pytest.raises(ConfigError, match=r"^--token: expected at most 200 letters") as refused:
        check(RunsFolder(tmp_path), "127.0.0.1", token)
    assert token == "" or token not in str(refused.value)


def test_a_file_is_no_folder_of_runs(tmp_path: Path) -> None:
    """Said before anything listens."""
    (tmp_path / "file").touch()
    with pytest.raises(ConfigError, match=r"file: is a file; expected a folder of runs"):
        serve(RunsFolder(tmp_path / "file"))


def test_the_command_prints_where_it_listens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The address, the tunnel and the write token, each on a line of its own; no token in the command's own words."""
    told = Address("http://127.0.0.1:8642/?token=abc", "ssh -N -L 8642:127.0.0.1:8642 you@box", 8642, "write-abc")
    monkeypatch.setattr(serving_module, "serve", lambda *given, tell, **options: tell(told))
    done = CliRunner().invoke(app, ["ui", str(tmp_path), "--write"])
    assert ALL_IS_WELL == done.exit_code
    lines = [line.strip() for line in done.stdout.splitlines()]
    assert told.url in lines
    assert "write token, to change rewards: write-abc" in lines
    assert f"from another machine: {told.tunnel}" in lines
    assert f"runs of {tmp_path}/ at" == lines[0]
    done = CliRunner().invoke(app, ["ui", str(tmp_path / "rnus")])
    assert f"runs of {tmp_path}/rnus/, which is not there yet, at" == done.stdout.splitlines()[0]


def test_the_command_passes_further_names_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As often as one is given."""
    given: dict[str, Any] = {}
    monkeypatch.setattr(serving_module, "serve", lambda *places, **options: given.update(options))
    done = CliRunner().invoke(app, ["ui", str(tmp_path), "--allow-host", "a.example", "--allow-host", "b.example"])
    assert done.exit_code == ALL_IS_WELL
    assert given["names"] == ["a.example", "b.example"]


def test_a_missing_extra_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the command that mends it."""
    monkeypatch.setattr(ui, "_NEEDED", ("starlette", "absent_for_sure"))
    done = CliRunner().invoke(app, ["ui"], prog_name="rewardkit")
    assert 2 == done.exit_code
    assert "error: rewardkit ui needs absent_for_sure: pip install starlette absent_for_sure\n" == done.stderr


def test_the_token_may_come_from_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where other users of the machine do not see it."""
    given: list[object] = []
    monkeypatch.setattr(serving_module, "serve", lambda *those, **options: given.extend(those))
    monkeypatch.setenv("REWARDKIT_UI_TOKEN", TOKEN)
    assert ALL_IS_WELL == CliRunner().invoke(app, ["ui", str(tmp_path)]).exit_code
    assert [str(tmp_path), "127.0.0.1", 8642, TOKEN] == [str(given[0]), *given[1:]]


def test_the_core_needs_no_web_framework() -> None:
    """Neither the package nor another command loads what only the dashboard needs."""
    script = "import sys, rewardkit.cli.program, rewardkit.cli.ui; print({'starlette', 'uvicorn'} & set(sys.modules))"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, env=environment)
    assert "set()\n" == done.stdout
