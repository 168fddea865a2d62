"""A folder that is sealed is read once, and is what it was then."""

from __future__ import annotations

import os
import pickle
import socket
import zipfile
from pathlib import Path

import pytest

from rewardkit import Workspace, WorkspaceError
from rewardkit.jailed.sealed import SealedWorkspace


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "left"
    (folder / "src" / "__pycache__").mkdir(parents=True)
    (folder / "src" / "main.py").write_text("x = 1\n")
    (folder / "src" / "__pycache__" / "main.pyc").write_bytes(b"x")
    (folder / "odd\nname").write_bytes(b"\xff")
    (folder / os.fsdecode(b"\xff")).write_bytes(b"1")
    return folder


def test_nothing_written_later_is_in_it(folder: Path) -> None:
    """Neither a change of a file nor a new one."""
    sealed = Workspace(folder).sealed()
    (folder / "src" / "main.py").write_text("x = 2\n")
    (folder / "new.py").write_text("")
    assert [b"\xff", b"x = 1\n", b"1"] == [sealed.files[name] for name in ("odd\nname", "src/main.py", "\udcff")]
    assert 3 == len(sealed.files)


def test_what_is_no_plain_file_is_refused_and_named(folder: Path) -> None:
    """Links to files, to folders and to nothing, pipes and sockets."""
    for name, target in (("file", "/etc/passwd"), ("folder", "/etc"), ("nothing", "gone"), ("inner", "src")):
        (folder / name).symlink_to(target)
    os.mkfifo(folder / "pipe")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(os.path.relpath(folder / "socket"))
        sealed = Workspace(folder).sealed()
    links = dict.fromkeys(("file", "folder", "inner", "nothing"), "a link")
    assert links | {"pipe": "a pipe", "socket": "a socket"} == dict(sealed.left_out)


def test_the_digest_is_that_of_names_and_contents(folder: Path) -> None:
    """It is the same wherever the files lie, and another after any change."""
    sealed = Workspace(folder).sealed()
    assert sealed.digest == SealedWorkspace(dict(sorted(sealed.files.items(), reverse=True))).digest
    digests = {
        SealedWorkspace(files).digest
        for files in ({}, {"a": b""}, {"a": b"b"}, {"ab": b""}, {"a": b"", "b": b""}, {"b": b"", "c": b""})
    }
    assert 6 == len(digests)


def test_it_is_kept_and_found_again(folder: Path, tmp_path: Path) -> None:
    """By its digest, with all names; a pickle has it too."""
    sealed = Workspace(folder).sealed()
    path = sealed.save(tmp_path / "kept")
    assert (f"{sealed.digest}.zip", path) == (path.name, sealed.save(tmp_path / "kept"))
    for again in (SealedWorkspace.load(path), pickle.loads(pickle.dumps(sealed))):
        assert (sealed.digest, sealed.files) == (again.digest, again.files)


@pytest.mark.parametrize("content", [b"", b"PK\x05\x06" + bytes(18), b"garbage"])
def test_what_is_no_kept_workspace_is_refused(tmp_path: Path, content: bytes) -> None:
    """As is one whose content is another's."""
    path = tmp_path / "0.zip"
    path.write_bytes(content)
    with pytest.raises(WorkspaceError, match="sealed workspace"):
        SealedWorkspace.load(path)
    other = SealedWorkspace({"a": b"1"}).save(tmp_path)
    with pytest.raises(WorkspaceError, match="digest"):
        SealedWorkspace.load(other.rename(tmp_path / f"{'0' * 64}.zip"))


def test_a_workspace_of_another_form_is_refused(tmp_path: Path) -> None:
    """Its own mark says which form it has."""
    path = SealedWorkspace({"a": b"1"}).save(tmp_path)
    with zipfile.ZipFile(path, "a") as archive:
        archive.comment = b"rewardkit sealed workspace 2"
    with pytest.raises(WorkspaceError, match="of another form"):
        SealedWorkspace.load(path)


def test_a_folder_that_is_too_large_is_refused(folder: Path) -> None:
    """By the bytes of all files together."""
    with pytest.raises(WorkspaceError, match="more than 4 bytes"):
        Workspace(folder).sealed(most_bytes=4)
