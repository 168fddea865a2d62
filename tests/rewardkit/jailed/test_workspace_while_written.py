"""A folder whose agent still runs, or that cannot all be read: what is read is its own, and all else is told."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from rewardkit import Workspace, WorkspaceError

READS = """
import json, sys
from rewardkit import Workspace

def read(act):
    try:
        return act()
    except Exception as error:
        return f"{type(error).__name__}: {error}"

workspace = Workspace(sys.argv[1])
print(json.dumps([
    read(workspace.files),
    read(workspace.unreadable),
    read(lambda: workspace.read_text("f")),
    read(lambda: workspace.read_text("dd/inner")),
    read(lambda: workspace.run("python", "ok.py").stdout),
    read(lambda: workspace.run("python", "f").stdout),
]))
"""


def _read_as(folder: Path, *before: str, **variables: str) -> list[Any]:
    environment = {**os.environ, "REWARDKIT_WORKSPACES": str(folder.parent), **variables}
    command = [*before, sys.executable, "-c", READS, str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False, timeout=120)
    assert 0 == done.returncode, done.stderr
    result: list[Any] = json.loads(done.stdout)
    return result


@pytest.mark.skipif(shutil.which("setpriv") is None, reason="setpriv is not there")
def test_what_cannot_be_read_costs_itself_alone(tmp_path: Path) -> None:
    """A file and a folder without rights, for a trainer that may not read all: the others are listed, read and run."""
    (tmp_path / "ok.py").write_text("import os; print(sorted(os.listdir('.')))")
    (tmp_path / "f").write_text("x")
    (tmp_path / "dd").mkdir()
    (tmp_path / "dd" / "inner").write_text("x")
    (tmp_path / "f").chmod(0)
    (tmp_path / "dd").chmod(0)
    capabilities = "-dac_override,-dac_read_search"
    try:
        results = _read_as(tmp_path, "setpriv", f"--bounding-set={capabilities}", f"--inh-caps={capabilities}")
    finally:
        (tmp_path / "dd").chmod(0o700)
    assert [
        ["f", "ok.py"],
        {"dd/": "permission denied", "f": "permission denied"},
        "WorkspaceError: workspace file 'f': permission denied",
        "WorkspaceError: workspace file 'dd/inner': permission denied",
        "['ok.py']\n",
        "WorkspaceError: workspace file 'f': permission denied",
    ] == results


NO_TYPES = """
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
struct dirent *readdir(DIR *folder) {
    static struct dirent *(*next)(DIR *);
    if (!next) next = dlsym(RTLD_NEXT, "readdir");
    struct dirent *entry = next(folder);
    if (entry) entry->d_type = DT_UNKNOWN;
    return entry;
}
struct dirent64 *readdir64(DIR *folder) {
    static struct dirent64 *(*next)(DIR *);
    if (!next) next = dlsym(RTLD_NEXT, "readdir64");
    struct dirent64 *entry = next(folder);
    if (entry) entry->d_type = DT_UNKNOWN;
    return entry;
}
"""


@pytest.mark.skipif(shutil.which("gcc") is None, reason="gcc is not there")
def test_a_file_system_that_does_not_say_what_an_entry_is(tmp_path: Path) -> None:
    """The same is listed and read; links are left out there too."""
    (tmp_path / "shim.c").write_text(NO_TYPES)
    shim = tmp_path / "shim.so"
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", shim, tmp_path / "shim.c", "-ldl"], check=True)
    folder = tmp_path / "left"
    (folder / "dd").mkdir(parents=True)
    (folder / "dd" / "inner").write_text("in")
    (folder / "f").write_text("print('ran')")
    (folder / "ok.py").write_text("import os; print(sorted(os.listdir('.')), os.listdir('dd'))")
    (folder / "link").symlink_to("/etc/passwd")
    (folder / "linked").symlink_to("/etc")
    files = ["dd/inner", "f", "ok.py"]
    expected = [files, {}, "print('ran')", "in", "['dd', 'f', 'ok.py'] ['inner']\n", "ran\n"]
    assert expected == _read_as(folder) == _read_as(folder, LD_PRELOAD=str(shim))


def test_a_race_of_links_leads_nowhere(tmp_path: Path) -> None:
    """A folder that is exchanged for a link to another all the time: what is read is its own, or an error."""
    folder, secret = tmp_path / "left", tmp_path / "secret"
    (folder / "a").mkdir(parents=True)
    (folder / "a" / "f").write_text("own")
    secret.mkdir()
    (secret / "f").write_text("secret")
    (folder / "b").symlink_to(secret)
    stop = threading.Event()

    def exchange() -> None:
        while not stop.is_set():
            os.rename(folder / "a", folder / "c")
            os.rename(folder / "b", folder / "a")
            os.rename(folder / "a", folder / "b")
            os.rename(folder / "c", folder / "a")

    agent = threading.Thread(target=exchange)
    agent.start()
    try:
        workspace = Workspace(folder)
        for _ in range(500):
            with contextlib.suppress(WorkspaceError, FileNotFoundError):
                assert "own" == workspace.read_text("a/f")
            assert {"a/f", "b/f", "c/f"} >= set(workspace.files())
    finally:
        stop.set()
        agent.join()


@pytest.mark.parametrize("is_replaced", [False, True], ids=["deleted", "replaced"])
def test_a_folder_that_goes_away_while_it_is_read(is_replaced: bool, tmp_path: Path) -> None:
    """Each read gives what was in it or says that it is gone; nothing of what stands in its place later is read."""
    folder = tmp_path / "left"
    for _ in range(20):
        folder.mkdir()
        for number in range(20):
            (folder / f"f{number}").write_text("own")
        workspace = Workspace(folder)
        agent = threading.Thread(target=_replace, args=(folder, is_replaced))
        agent.start()
        errors = set()
        for number in range(20):
            try:
                assert "own" == workspace.read_text(f"f{number}")
                assert {f"f{n}" for n in range(20)} >= set(workspace.files())
            except FileNotFoundError:
                pass
            except WorkspaceError as error:
                errors.add(str(error).partition("': ")[2])
        agent.join()
        assert {"it has been deleted; keep it until its completion has been scored"} >= errors
        with pytest.raises(WorkspaceError, match="it has been deleted"):
            workspace.files()
        shutil.rmtree(folder, ignore_errors=True)


def _replace(folder: Path, is_replaced: bool) -> None:
    """Delete a folder, and put another one in its place."""
    shutil.rmtree(folder)
    if is_replaced:
        folder.mkdir()
        for number in range(20):
            (folder / f"f{number}").write_text("foreign")
