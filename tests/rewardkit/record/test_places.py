"""A run's name stays in the runs folder, and removing a run takes its record alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from rewardkit.errors import RecordError
from rewardkit.record import runs_folder
from rewardkit.record.file_place import FilePlace
from rewardkit.record.places import place_of_record, run_path
from rewardkit.record.runs_folder import RunsFolder, named_run, run_below, runs_below


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with a run, and one outside of its runs."""
    monkeypatch.chdir(tmp_path)
    for folder in ("runs/one", "elsewhere/two", "runs/empty"):
        Path(folder).mkdir(parents=True)
    Path("runs/one/record.db").write_bytes(b"x" * 10)
    Path("elsewhere/two/record.db").write_bytes(b"x")
    return tmp_path


def test_a_plain_name_is_one_under_runs(work: Path) -> None:
    """Without a slash a name is looked for in runs/; with one it is a path, and taken as it is."""
    assert "runs/one" == run_path("one").label
    assert "runs/not-there" == run_path("not-there").label
    for path in ("runs/one", "elsewhere/two", "./one", "/somewhere/else", "../one"):
        assert FilePlace(Path(path, "record.db")) == run_path(path)
    assert FilePlace(Path("elsewhere/two/record.db")) == run_path(Path("elsewhere/two"))


def test_a_name_without_a_run_may_be_a_folder_with_a_record_right_here(work: Path) -> None:
    """As a training with ``--output two`` makes one; a run of that name goes before, and a label names one alone."""
    Path("two").mkdir()
    Path("two/record.db").write_bytes(b"x")
    assert "./two" == run_path("two").label == FilePlace(Path("two/record.db")).label
    Path("runs/two").mkdir()
    Path("runs/two/record.db").write_bytes(b"x")
    assert "runs/two" == run_path("two").label
    assert FilePlace(Path("two/record.db")) == run_path("./two")


@pytest.mark.parametrize("name", ["", ".", "..", ".hidden", "a\x00b", "a\\b", "../two", "a/../../b", "x" * 300])
def test_what_is_no_name_is_refused(work: Path, name: str) -> None:
    """A name has no slash, does not begin with a dot, and is not endless."""
    with pytest.raises(RecordError, match=r"not a run's name; expected one under runs/") as told:
        named_run(name)
    assert "\n" not in str(told.value)


@pytest.mark.parametrize("link", ["folder", "record"])
def test_a_link_does_not_lead_out_of_the_runs_folder(work: Path, link: str) -> None:
    """Neither a run that is a link to elsewhere nor a record that is one is taken under its name."""
    if link == "folder":
        Path("runs/away").symlink_to(work / "elsewhere" / "two")
    else:
        Path("runs/away").mkdir()
        Path("runs/away/record.db").symlink_to(work / "elsewhere" / "two" / "record.db")
    with pytest.raises(RecordError, match=r"run 'away': a link that leads out of runs/"):
        run_path("away")
    assert ["one"] == RunsFolder(Path("runs")).names()
    assert "runs/away" == run_path("runs/away/").label


def test_runs_in_subfolders_are_found_and_named_behind_them(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not those of a hidden folder, of a link, in a run or too deep; and a bound is said."""
    for folder in ("sweep/two", "sweep/more/three", ".git/four", "one/checkpoint/five", "a/b/c/six", "a/b/c/d/seven"):
        Path("runs", folder).mkdir(parents=True)
        Path("runs", folder, "record.db").write_bytes(b"x")
    Path("runs/link").symlink_to("sweep")
    names, whole = runs_below(Path("runs"))
    assert ({"sweep/two", "sweep/more/three", "a/b/c/six"}, True) == ({*names}, whole)
    assert Path("runs/sweep/more/three") == run_below("sweep/more/three", Path("runs"))
    assert Path("runs/one") == run_below("one", Path("runs"))
    monkeypatch.setattr(runs_folder, "MOST_ENTRIES", 6)
    assert ([], False) == runs_below(Path("runs"))


@pytest.mark.parametrize("name", ["a/b/c/d/seven", "sweep//two", "sweep/../one", "/one", "one/", "sweep/.two"])
def test_what_leads_elsewhere_is_no_run_of_a_subfolder(work: Path, name: str) -> None:
    """Each part of it is a name, and there are few."""
    with pytest.raises(RecordError, match=r"not a run's name|deeper than 3 folders"):
        run_below(name, Path("runs"))


def test_a_link_in_a_subfolder_does_not_lead_out_of_the_runs_folder(work: Path) -> None:
    """As for a run that lies in the folder itself."""
    Path("runs/sweep").mkdir()
    Path("runs/sweep/away").symlink_to(work / "elsewhere" / "two")
    Path("runs/out").symlink_to(work / "elsewhere")
    for name in ("sweep/away", "out/two"):
        with pytest.raises(RecordError, match="a link that leads out of"):
            run_below(name, Path("runs"))
    assert ([], True) == runs_below(Path("runs"))


def test_the_runs_folder_itself_may_be_a_link(work: Path) -> None:
    """Where runs/ is a link to a larger disk, names are those of the runs there."""
    Path("runs").rename("disk")
    Path("runs").symlink_to("disk")
    assert "runs/one" == run_path("one").label
    assert ["one"] == RunsFolder(Path("runs")).names()


def test_runs_are_the_folders_with_a_record(work: Path) -> None:
    """Other folders and files are none; a folder that is missing is named, unless it is that of all runs."""
    Path("runs/file").write_text("x")
    assert ["one"] == RunsFolder(Path("runs")).names()
    assert 10 == place_of_record("runs/one").size()
    with pytest.raises(RecordError, match="nowhere: No such file or directory; expected a folder of runs"):
        RunsFolder(Path("nowhere")).names()
    Path("runs").rename("away")
    assert [] == RunsFolder(Path("runs")).names()


def test_removing_a_run_leaves_what_else_is_in_its_folder(work: Path) -> None:
    """The record goes with SQLite's files beside it; checkpoints stay, and an empty folder goes."""
    Path("runs/one/record.db-wal").write_bytes(b"x")
    Path("runs/two").mkdir()
    for name in ("record.db", "checkpoint"):
        (Path("runs/two") / name).write_bytes(b"x")
    assert place_of_record("runs/one").remove()
    assert not Path("runs/one").exists()
    assert not place_of_record("runs/two").remove()
    assert ["checkpoint"] == [one.name for one in Path("runs/two").iterdir()]


def test_a_log_that_goes_away_meanwhile_has_no_size(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that ends between two looks takes SQLite's files with it, and is listed and removed all the same."""
    there = [Path("runs/one/record.db"), Path("runs/one/record.db-wal")]
    monkeypatch.setattr(FilePlace, "files", there)
    assert 10 == place_of_record("runs/one").size()
    assert place_of_record("runs/one").remove()


def test_a_run_that_is_a_link_is_removed_with_what_it_leads_to(work: Path) -> None:
    """Both lie in the runs folder; nothing is left of either."""
    Path("runs/link").symlink_to("one")
    assert place_of_record("runs/link").remove()
    assert ["empty"] == [one.name for one in Path("runs").iterdir()]
