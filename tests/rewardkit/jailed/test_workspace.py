"""A workspace is read and run in, and nothing that an agent puts there leads out of it, waits, or has no bound."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import pickle
import py_compile
import random
import shutil
import socket
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rewardkit import (
    Cause,
    RewardDefinitionError,
    Rollout,
    Runtime,
    Status,
    Workspace,
    WorkspaceError,
    group_reward,
    reward,
)
from rewardkit.jailed import folder as folder_module
from rewardkit.jailed import workspace
from rewardkit.own_columns import OwnText
from sandbox import ExecutionStatus, Limits

MAIN = "import helper, sys\nprint(helper.f(), sys.argv, sys.stdin.read())\nopen('new', 'w').write('x')\nsys.exit(3)\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A small project."""
    made = tmp_path / "left"
    (made / "src").mkdir(parents=True)
    (made / "src" / "main.py").write_text(MAIN)
    (made / "src" / "helper.py").write_text("def f():\n    return 42\n")
    (made / "notes.txt").write_text("größer")
    (made / "raw.bin").write_bytes(b"\xff\0\x80")
    return made


@reward
def exits(workspace: Workspace, command: list[str]) -> float | None:
    """The exit code of a command."""
    code = workspace.run(*command).exit_code
    return None if code is None else float(code)


@reward
def noted(workspace: Workspace | None = None) -> float | None:
    """Whether there are notes; unknown without a workspace."""
    return None if workspace is None else float(workspace.exists("notes.txt"))


@group_reward
def sizes(completions: list[str], workspace: list[Workspace]) -> list[float]:
    """Each completion's own workspace."""
    return [float(len(one.files())) for one in workspace]


def test_files_are_listed_and_read(folder: Path) -> None:
    """By names relative to the folder; a pattern goes through folders too."""
    found = Workspace(folder)
    assert ["notes.txt", "raw.bin", "src/helper.py", "src/main.py"] == found.files()
    assert ["src/helper.py", "src/main.py"] == found.files("*.py")
    assert "größer" == found.read_text("notes.txt") == found.read_text("./src/../notes.txt".replace("src/../", ""))
    assert b"\xff\0\x80" == found.read_bytes("raw.bin")
    assert hashlib.sha256(b"\xff\0\x80").hexdigest() == found.digest("raw.bin")
    assert [True, False, False] == [found.exists(name) for name in ("notes.txt", "src/none.py", "none/notes.txt")]
    assert str(found) == str(pickle.loads(pickle.dumps(found))) == f"Workspace({str(folder)!r})"


def test_commands_run_over_a_copy(folder: Path) -> None:
    """With arguments and input; what they write is gone afterwards, and the next begins with what the agent left."""
    found, before = Workspace(folder), sorted(os.walk(folder))
    for _ in range(2):
        ran = found.run("python", "src/main.py", "a b", stdin="said")
        assert (3, "42 ['src/main.py', 'a b'] said\n") == (ran.exit_code, ran.stdout)
    assert (
        "raw b'\\xff\\x00\\x80'"
        == found.run("python", "-c", "print('raw', open('raw.bin', 'rb').read())").stdout.strip()
    )
    assert "['-c', '7']\n" == found.run("python3", "-c", "import sys; print(sys.argv)", "7").stdout
    assert ExecutionStatus.TIMEOUT is found.run("python", "-c", "while True: pass", timeout_s=0.5).status
    assert ExecutionStatus.TIMEOUT is found.run("python", "-c", "while True: pass", limits=Limits(timeout_s=0.5)).status
    assert before == sorted(os.walk(folder))


def test_its_own_tests_are_run(folder: Path) -> None:
    """By the standard library's runner, whose exit code says how they went."""
    case = (
        "import unittest, src.helper\n"
        "class T(unittest.TestCase):\n"
        "    def test(self):\n"
        "        self.assertEqual({}, src.helper.f())\n"
    )
    for wanted, code in ((42, 0), (41, 1)):
        (folder / "test_it.py").write_text(case.format(wanted))
        assert code == Workspace(folder).run("python", "-m", "unittest").exit_code


def test_bytecode_that_the_agent_left_is_not_taken_for_the_source(folder: Path) -> None:
    """Python never compares bytecode that says it is unchecked with the source beside it."""
    (folder / "test_it.py").write_text(
        "import unittest\nclass T(unittest.TestCase):\n    def test(self):\n        1 / 0\n"
    )
    (folder / "forged.py").write_text(
        "import unittest\nclass T(unittest.TestCase):\n    def test(self):\n        pass\n"
    )
    cached = importlib.util.cache_from_source(str(folder / "test_it.py"))
    unchecked = py_compile.PycInvalidationMode.UNCHECKED_HASH
    py_compile.compile(str(folder / "forged.py"), cfile=cached, invalidation_mode=unchecked, doraise=True)
    (folder / "forged.py").unlink()
    ran = Workspace(folder).run("python", "-m", "unittest")
    assert (1, True) == (ran.exit_code, "ZeroDivisionError" in ran.stderr)


def test_a_rewards_parameter_is_made_of_the_column(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A path in a worker; what is no workspace fails its row alone; nothing given is nothing."""
    monkeypatch.chdir(folder.parent)
    rows = [
        {"workspace": str(folder), "command": '["python", "src/main.py"]'},
        {"workspace": "left", "command": ["python", "-c", "0"]},
        {"workspace": "/usr", "command": "[]"},
    ]
    with Runtime([exits, noted], workers=1) as runtime:
        first, second, third = runtime.score([Rollout("p", "c", row) for row in rows]).outcomes["exits"]
        unknown = runtime.score([Rollout("p", "c", {**rows[1], "workspace": ""})])
    assert [3.0, 0.0] == [first.score, second.score]
    assert (Status.FAILED, Cause.COERCION) == (third.status, third.cause)
    assert "column 'workspace' of example 2: expected Workspace, got '/usr' (workspace '/usr': outside" in str(
        third.error
    )
    assert [Status.SKIPPED] == [one.status for one in unknown.outcomes["noted"]]
    assert exits.spec.jailed


def test_a_group_has_a_workspace_for_each_completion(folder: Path) -> None:
    """An environment's folder is its completion's, and splits no group."""
    (folder.parent / "right").mkdir()
    rollouts = [Rollout("p", "c", {"workspace": OwnText(path)}) for path in (folder, folder.parent / "right")]
    with Runtime([sizes], workers=1) as runtime:
        assert [4.0, 0.0] == runtime.score(rollouts).totals


def test_a_group_may_lack_some_of_its_workspaces(folder: Path) -> None:
    """An environment may have none; one workspace for all of a group is refused, as it would be the first one's."""

    @group_reward
    def some(completions: list[str], workspace: list[Workspace | None]) -> list[float]:
        return [float(one is not None) for one in workspace]

    @group_reward
    def first(completions: list[str], workspace: Workspace) -> list[float]:
        return [1.0 for _ in completions]

    assert some.spec.jailed
    rollouts = [Rollout("p", "c", {"workspace": OwnText(path)}) for path in (folder, "")]
    with Runtime([some, first], lane="inline") as runtime:
        scored = runtime.score(rollouts)
    assert [1.0, 0.0] == scored.scores["some"]
    assert "has a value for each completion; annotate it as such: list[Workspace]" in str(scored["first"][1].error)


def test_scores_of_a_workspace_are_not_kept_for_later() -> None:
    """A later agent may leave other files at the same path."""
    with pytest.raises(RewardDefinitionError, match="cache=True keeps a score for a path"):

        @reward(cache=True)
        def kept(workspace: Workspace | None) -> float:
            return 1.0


def test_a_groups_row_has_what_its_completions_share() -> None:
    """What is of one completion is not in ``example`` nor in ``**columns``, where it would be the first one's."""

    @group_reward
    def told(completions: list[str], example: dict[str, Any], **columns: object) -> list[float]:
        return [float(example.keys() == columns.keys() == {"answer"}) for _ in completions]

    rows = [{"answer": "4", "workspace": OwnText(name), "environment_reward": 1.0} for name in ("a", "b")]
    with Runtime([told], lane="inline") as runtime:
        assert [1.0, 1.0] == runtime.score([Rollout("p", "c", row) for row in rows]).totals


def test_a_groups_environment_rewards_are_a_list() -> None:
    """One number for all of a group would be the first one's."""
    with pytest.raises(RewardDefinitionError, match=r"one a completion; annotate it: list\[float \| None\]"):

        @group_reward
        def same(completions: list[str], environment_reward: float) -> list[float]:
            return [environment_reward for _ in completions]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("", "expected the path of a folder"),
        ("a\0b", "expected the path of a folder"),
        ("nowhere", "'nowhere': no such folder"),
        ("left/notes.txt", "no such folder"),
        ("/", "'/': outside the folders of workspaces, "),
        ("left/../../..", "outside the folders of workspaces, "),
        ("out", "outside the folders of workspaces, "),
    ],
)
def test_what_is_no_workspace_is_refused(given: str, words: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also by a link that leads elsewhere."""
    (folder.parent / "out").symlink_to("/usr")
    monkeypatch.chdir(folder.parent)
    monkeypatch.setenv("REWARDKIT_WORKSPACES", str(folder.parent))
    with pytest.raises(WorkspaceError, match=words):
        Workspace(given)


def test_the_folders_of_workspaces_are_a_setting(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Several may be named, each absolute; one that begins alike is another one."""
    monkeypatch.setenv("REWARDKIT_WORKSPACES", f"/usr:{folder}")
    assert ["/usr", str(folder)] == workspace.workspace_roots()
    assert Workspace(folder).path == folder
    (folder.parent / "left2").mkdir()
    with pytest.raises(WorkspaceError, match="outside"):
        Workspace(folder.parent / "left2")
    monkeypatch.setenv("REWARDKIT_WORKSPACES", "here")
    with pytest.raises(WorkspaceError, match="REWARDKIT_WORKSPACES='here': 'here' is not an absolute path"):
        Workspace(folder)


@pytest.mark.parametrize("name", ["", "/etc/passwd", "../left/notes.txt", "src/../../x", "a\0b", ".", "src/..", "/"])
def test_names_stay_in_the_folder(name: str, folder: Path) -> None:
    """Whatever is asked of them."""
    found = Workspace(folder)
    for act in (found.read_bytes, found.exists, found.digest, lambda name: found.run("python", name)):
        with pytest.raises(WorkspaceError, match="expected a name that stays within the folder"):
            act(name)


def _link(place: Path) -> None:
    place.symlink_to("/etc/passwd")


def _socket(place: Path) -> None:
    with socket.socket(socket.AF_UNIX) as one:
        here = os.getcwd()
        os.chdir(place.parent)  # a socket's path is short
        one.bind(place.name)
        os.chdir(here)


def _device(place: Path) -> None:
    try:
        os.mknod(place, stat.S_IFCHR | 0o666, os.makedev(1, 5))  # /dev/zero, which never ends
    except PermissionError:
        pytest.skip("only root makes devices")


def _folder_link(place: Path) -> None:
    place.symlink_to("/etc")


@pytest.mark.parametrize("make", [_link, _socket, _device, _folder_link, os.mkfifo, Path.mkdir])
def test_what_is_no_plain_file_is_not_opened(make: Callable[[Any], Any], folder: Path) -> None:
    """It is refused by name at once, is not listed, and does not keep a command from running."""
    make(folder / "odd")
    found = Workspace(folder)
    with pytest.raises(WorkspaceError, match=r"workspace file 'odd': (no plain file|a link, which is not followed)"):
        found.read_bytes("odd")
    assert "odd" not in found.files()
    assert [False, False] == [found.exists(name) for name in ("odd", "notes.txt/odd")]
    with pytest.raises(WorkspaceError, match="too long"):
        found.exists("o" * 300)
    assert 0 == found.run("python", "-c", "import os, sys; sys.exit(os.path.exists('odd'))").exit_code


def test_a_linked_folder_is_not_entered(folder: Path) -> None:
    """Not on the way to a file either."""
    (folder / "etc").symlink_to("/etc")
    with pytest.raises(WorkspaceError, match="a link"):
        Workspace(folder).read_bytes("etc/passwd")


def test_every_size_has_a_bound(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a file, of all files that a command gets, of their number, and of folders in one another."""
    found = Workspace(folder)
    with pytest.raises(WorkspaceError, match=r"'notes.txt': more than 7 bytes"):
        found.read_bytes("notes.txt", most_bytes=7)
    assert 8 == len(found.read_bytes("notes.txt", most_bytes=8))
    with (folder / "large").open("wb") as large:
        large.truncate(workspace.MOST_COPIED_BYTES)  # no room is taken
    with pytest.raises(WorkspaceError, match="too large to run in"):
        found.run("python", "-c", "0")
    monkeypatch.setattr(folder_module, "MOST_FILES", 4)
    with pytest.raises(WorkspaceError, match="more than 4 files and folders"):
        found.files()
    monkeypatch.undo()
    (folder / "/".join(["deep"] * 80)).mkdir(parents=True)
    with pytest.raises(WorkspaceError, match="folders more than 64 deep"):
        found.files()


@pytest.mark.parametrize(
    "command",
    [(), ("make",), ("python",), ("python", "-m"), ("python", "-c"), ("python main.py",), ("bash", "-c", "ls"), (1,)],
)
def test_other_commands_are_refused(command: tuple[Any, ...], folder: Path) -> None:
    """With what the jail can run."""
    with pytest.raises(WorkspaceError, match=r"the jail runs Python alone|one by one|expected strings"):
        Workspace(folder).run(*command)


@pytest.mark.parametrize(
    ("command", "words"),
    [(("python", "none.py"), "has no file 'none.py'"), (("python", "-m", "a;b"), "not a module's name")],
)
def test_a_command_names_what_is_missing(command: tuple[str, ...], words: str, folder: Path) -> None:
    """Before anything runs."""
    with pytest.raises(WorkspaceError, match=words):
        Workspace(folder).run(*command)


def test_text_that_is_none_is_named(folder: Path) -> None:
    """As bytes it can be read."""
    with pytest.raises(WorkspaceError, match=r"'raw.bin': no UTF-8 text"):
        Workspace(folder).read_text("raw.bin")


# While the agent goes on


def test_a_folder_that_becomes_a_link_is_the_one_that_it_was(folder: Path, tmp_path: Path) -> None:
    """Wherever its path leads later; a step on the way that is a link when it is opened is refused."""
    workspace = Workspace(folder)
    handed_on = pickle.dumps(workspace)
    folder.rename(tmp_path / "moved")
    folder.symlink_to("/etc")
    assert ["notes.txt", "raw.bin", "src/helper.py", "src/main.py"] == workspace.files()
    assert not workspace.exists("passwd")
    assert "42" in workspace.run("python", "src/main.py").stdout
    with pytest.raises(WorkspaceError, match="outside the folders of workspaces"):
        pickle.loads(handed_on)
    folder.unlink()
    folder.mkdir()
    with pytest.raises(WorkspaceError, match="another folder than the one that was handed on"):
        pickle.loads(handed_on)
    (tmp_path / "link").symlink_to("/etc")
    for path in (tmp_path / "link", tmp_path / "link" / "ssl"):
        with pytest.raises(OSError, match=r"Not a directory|Too many levels"):
            folder_module.OpenFolder(str(path), str(tmp_path))


def test_a_folder_that_is_deleted_is_told(folder: Path) -> None:
    """By every way to read it, in one line with what to do; its files would read as if they had never been."""
    workspace = Workspace(folder)
    shutil.rmtree(folder)
    reads: list[Callable[[], object]] = [
        workspace.files,
        workspace.unreadable,
        lambda: workspace.read_text("notes.txt"),
        lambda: workspace.exists("notes.txt"),
        lambda: workspace.run("python", "-c", "1"),
    ]
    for read in reads:
        with pytest.raises(WorkspaceError, match=r"it has been deleted; keep it until its completion has been scored$"):
            read()
    with pytest.raises(WorkspaceError, match="no such folder"):
        Workspace(folder)


def test_as_many_files_as_are_documented_run(tmp_path: Path) -> None:
    """Ten thousand files and folders; one more is an error that names the limit."""
    for number in range(99):
        (tmp_path / f"d{number}").mkdir()
        for inner in range(100):
            (tmp_path / f"d{number}" / f"f{inner}").write_text("x")
    (tmp_path / "last").touch()
    count = "import os; print(sum(len(files) for _, _, files in os.walk('.')))"
    assert "9901\n" == Workspace(tmp_path).run("python", "-c", count, timeout_s=60).stdout
    with pytest.raises(WorkspaceError, match=r"take 40,550,400 bytes in whole pages, and limits.file_bytes is 16,777"):
        Workspace(tmp_path).run("python", "-c", count, limits=Limits())
    (tmp_path / "more").touch()
    with pytest.raises(WorkspaceError, match="more than 10,000 files and folders"):
        Workspace(tmp_path).run("python", "-c", count)


def test_bytes_are_run_over_as_they_are(tmp_path: Path) -> None:
    """Those that are no text too."""
    content = random.Random(0).randbytes(1 << 20)
    (tmp_path / "raw").write_bytes(content)
    command = "import hashlib; print(hashlib.sha256(open('raw', 'rb').read()).hexdigest())"
    assert hashlib.sha256(content).hexdigest() == Workspace(tmp_path).run("python", "-c", command).stdout.strip()
