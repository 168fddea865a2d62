"""Toolchains: a tool that is found is not a tool that runs, and each is tried once."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from sandbox.languages import toolchains
from sandbox.languages.language import Language, Stage, Tool, Walls
from sandbox.languages.toolchains import MissingToolchain, Toolchain, expand, find_toolchain, tools_stamp


def _script(folder: Path, name: str, body: str) -> str:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return str(path)


def _language(*tools: Tool, run: Stage | None = None) -> Language:
    return Language("klingon", "main.k", tools, run or Stage((("{tool}",),), Walls()), hello="")


BROKEN = {
    "exits": ("echo 'not today' >&2; exit 3", "ends with 3: not today"),
    "hangs": ("sleep 60", "prints no version within 0.5 s"),
    "floods": ("while :; do echo 0123456789012345678901234567890123456789; done", "prints without end"),
    "is killed": ("kill -9 $$", "ends with -9"),
}


@pytest.mark.parametrize(("body", "reason"), BROKEN.values(), ids=list(BROKEN))
def test_a_tool_that_is_found_is_not_a_tool_that_runs(
    body: str, reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(toolchains, "VERSION_S", 0.5 if "sleep" in body else 60.0)
    path = _script(tmp_path, "tool", body)
    found = find_toolchain(_language(Tool("tool", (path,), install="buy one")))
    assert MissingToolchain("klingon", f"{path} {reason}", "buy one") == found


def test_the_first_candidate_that_runs_is_taken(tmp_path: Path) -> None:
    """Those before it are no obstacle: one that is not there, one that is no program, and one that does not run."""
    (tmp_path / "text").write_text("no program")
    broken = _script(tmp_path, "broken", "exit 1")
    good = _script(tmp_path, "good", "echo; echo tool 7.1; echo more")
    candidates = (str(tmp_path / "absent"), str(tmp_path / "text"), broken, good)
    found = find_toolchain(_language(Tool("tool", candidates)))
    assert isinstance(found, Toolchain)
    assert (good, "tool 7.1") == (found.paths["tool"], found.version)


def test_no_candidate_at_all_names_the_tool() -> None:
    found = find_toolchain(_language(Tool("tool", ("no-such-tool", "/no/such/tool"), install="buy one")))
    assert MissingToolchain("klingon", "no no-such-tool on this machine", "buy one") == found
    assert "klingon does not run on this machine: no no-such-tool on this machine (to have it: buy one)" == str(found)


def test_paths_have_no_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The jail has no ``/etc/alternatives``, so a link on PATH or in a pattern leads nowhere there."""
    path = _script(tmp_path, "v1/bin/tool", "echo 1")
    (tmp_path / "tool").symlink_to(path)
    monkeypatch.setenv("PATH", str(tmp_path))
    for candidate in ("tool", str(tmp_path / "to*")):
        found = find_toolchain(_language(Tool("tool", (candidate,))))
        assert isinstance(found, Toolchain)
        assert path == found.paths["tool"]


def test_a_tool_is_looked_for_beside_one_found_before(tmp_path: Path) -> None:
    _script(tmp_path, "v1/bin/first", "echo 1")
    second = _script(tmp_path, "v1/lib/second", "echo 2")
    tools = (Tool("first", (f"{tmp_path}/*/bin/first",)), Tool("second", ("{first_home}/lib/second",)))
    found = find_toolchain(_language(*tools))
    assert isinstance(found, Toolchain)
    assert second == found.paths["second"]


def test_a_wheel_has_tools_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _script(tmp_path, "toolwheel/__init__.py", "")
    path = _script(tmp_path, "toolwheel/bin/tool", "echo 1")
    monkeypatch.syspath_prepend(tmp_path)
    found = find_toolchain(_language(Tool("tool", ("wheel:no_such_wheel/bin/tool", "wheel:toolwheel/bin/tool"))))
    assert isinstance(found, Toolchain)
    assert path == found.paths["tool"]


def test_a_tool_is_tried_once_whoever_asks(tmp_path: Path) -> None:
    """Eight threads that ask at once get the same answer, and the tool has run once."""
    log = tmp_path / "log"
    language = _language(Tool("tool", (_script(tmp_path, "tool", f"echo x >> {log}; echo 1"),)))
    barrier = threading.Barrier(8)

    def ask(_: int) -> Toolchain | MissingToolchain:
        barrier.wait()
        return find_toolchain(language)

    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(ask, range(8)))
    assert 1 == len({repr(answer) for answer in answers})
    assert "x\n" == log.read_text()


def test_a_tool_that_is_replaced_is_tried_again(tmp_path: Path) -> None:
    """Its version, its fingerprint and its stamp are then those of the new file, and so is the stamp of all tools."""
    path = _script(tmp_path, "tool", "echo 1")
    language = _language(Tool("tool", (path,)))
    before, stamp = find_toolchain(language), tools_stamp([language])
    assert before is find_toolchain(language)
    assert stamp == tools_stamp([language])
    _script(tmp_path, "tool", "echo 2.0")
    after = find_toolchain(language)
    assert isinstance(before, Toolchain)
    assert isinstance(after, Toolchain)
    assert ("1", "2.0") == (before.version, after.version)
    assert before.fingerprint != after.fingerprint
    assert before.stamp != after.stamp
    assert stamp != tools_stamp([language])


def test_the_stamp_of_all_tools_needs_none_of_them(tmp_path: Path) -> None:
    """One that is looked for beside a missing one has no place; it appears with that one."""
    language = _language(Tool("first", (f"{tmp_path}/bin/first",)), Tool("second", ("{first_home}/bin/second",)))
    _script(tmp_path, "bin/second", "echo 2")
    before = tools_stamp([language])
    _script(tmp_path, "bin/first", "echo 1")
    between = tools_stamp([language])
    _script(tmp_path, "bin/second", "echo 2.0")
    assert 3 == len({before, between, tools_stamp([language])})


def test_a_tool_that_is_removed_is_missing(tmp_path: Path) -> None:
    path = _script(tmp_path, "tool", "echo 1")
    language = _language(Tool("tool", (path,), install="buy one"))
    assert isinstance(find_toolchain(language), Toolchain)
    Path(path).unlink()
    assert MissingToolchain("klingon", "no tool on this machine", "buy one") == find_toolchain(language)


def test_a_fingerprint_is_of_what_decides_a_verdict(tmp_path: Path) -> None:
    """Another version or another wall is another fingerprint; another place of the same tool is not."""

    def fingerprint(place: str, version: str, walls: Walls) -> tuple[str, str]:
        path = _script(tmp_path, f"{place}/tool", f"echo {version}")
        found = find_toolchain(_language(Tool("tool", (path,)), run=Stage((("{tool}",),), walls)))
        assert isinstance(found, Toolchain)
        return found.fingerprint, found.stamp

    same, same_stamp = fingerprint("a", "1", Walls())
    assert same == fingerprint("b", "1", Walls())[0]
    assert same_stamp != fingerprint("b", "1", Walls())[1]
    assert same != fingerprint("c", "2", Walls())[0]
    assert same != fingerprint("a", "1", Walls(tasks=2))[0]


def test_a_stage_is_filled_in_everywhere(tmp_path: Path) -> None:
    path = _script(tmp_path, "v1/bin/tool", "echo 1")
    walls = Walls(("{tool}", "{artefact}"), ("{kit}", "{tool_home}/lib"), (("HEAP", "{heap_mb}m"),))
    stage = Stage((("{tool}", "-m{memory_mb}", "{scratch}/x"), ("{artefact}/y", "{}")), walls, ("z",))
    toolchain = find_toolchain(_language(Tool("tool", (path,)), run=stage))
    assert isinstance(toolchain, Toolchain)
    expected = Stage(
        ((path, "-m400", "/s/x"), ("/a/y", "{}")),
        Walls((path, "/a"), ("/k", f"{tmp_path}/v1/lib"), (("HEAP", "300m"),)),
        ("z",),
    )
    assert expected == expand(stage, toolchain, scratch="/s", artefact="/a", memory_mb=400, kit="/k")
    assert f"{path}!" == expand("{tool}!", toolchain)


def test_a_name_that_stands_for_nothing_is_refused(tmp_path: Path) -> None:
    toolchain = find_toolchain(_language(Tool("tool", (_script(tmp_path, "tool", "echo 1"),))))
    assert isinstance(toolchain, Toolchain)
    for text in ("{tol}", "{kit}/x", "{memory_mb}"):
        with pytest.raises(ValueError, match=r"\{\w+\}.* stands for nothing here"):
            expand(text, toolchain)
