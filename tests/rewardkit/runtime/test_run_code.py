"""A run keeps its code: what is edited while it lives reaches none of its calls, and the next run's version says it."""

from __future__ import annotations

import hashlib
import linecache
import pickle
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from node_cluster import ThreadCluster
from patience import LONG_S, wait_for

from rewardkit import Rollout, Runtime, reward
from rewardkit.errors import RewardLoadError
from rewardkit.loading.registry import resolve
from rewardkit.runtime.nodes import ray_cluster
from sandbox.workers import link

HEAD = """
import asyncio, os, time
from rewardkit import reward
import near_kept
from pack_kept.part import part

def _sum(completion):
    if completion == "end":
        os._exit(1)
    time.sleep(0.005)
    import late_kept
    return OWN + near_kept.near() + part() + late_kept.VALUE

OWN = 0

@reward(default=None, retries=0)
def plain(completion: str) -> float:
    return _sum(completion)

@reward(default=None, retries=0)
async def waiting(completion: str) -> float:
    await asyncio.sleep(0)
    return _sum(completion)

@reward(default=None, retries=0, concurrency=2)
def threads(completion: str) -> float:
    return _sum(completion)

@reward
def spawning(completion: str) -> float:
    from multiprocessing import get_context
    queue = get_context("spawn").SimpleQueue()
    process = get_context("spawn").Process(target=near_kept.put, args=(queue,))
    process.start()
    value = queue.get()
    process.join()
    return value
"""
FILES = {
    "rewards.py": HEAD,
    "near_kept.py": "import deep_kept\ndef near():\n    return deep_kept.VALUE\ndef put(queue): queue.put(near())\n",
    "deep_kept.py": "VALUE = 0\n",
    "pack_kept/__init__.py": "",
    "pack_kept/part.py": "from . import inner\ndef part():\n    return inner.VALUE\n",
    "pack_kept/inner.py": "VALUE = 0\n",
    "late_kept.py": "VALUE = 0\n",
}
EDITS = {
    "rewards.py": HEAD.replace("OWN = 0", "OWN = 1"),
    "deep_kept.py": "VALUE = 1\n",
    "pack_kept/inner.py": "VALUE = 1\n",
    "late_kept.py": "VALUE = 1\n",
}
ROWS = [Rollout("p", str(number)) for number in range(8)]


def _write(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A project, whose modules are forgotten afterwards."""
    _write(tmp_path, FILES)
    modules = set(sys.modules)
    monkeypatch.setattr(sys, "path", [*sys.path, str(tmp_path)])
    yield tmp_path
    for name in [name for name in set(sys.modules) - modules if name.partition(".")[0].endswith("_kept")]:
        del sys.modules[name]


def _outcomes(runtime: Runtime, *before: str) -> tuple[set[float | None], set[str]]:
    """Return the scores and versions of innocents that are scored after, and among, some completions."""
    batch = runtime.score([*(Rollout("p", completion) for completion in before), *ROWS])
    outcomes = batch[runtime.names[0]][len(before) :]
    return {outcome.score for outcome in outcomes}, {outcome.version for outcome in outcomes}


@pytest.mark.cases(1)
@pytest.mark.parametrize("name", ["plain", "waiting", "threads"])
def test_workers_that_start_later_run_what_the_first_did(folder: Path, name: str) -> None:
    """Of every file of the reward's own. What is half written or gone ends no run, and the next run has it all new."""
    with Runtime([f"{folder}/rewards.py:{name}"], workers=2) as runtime:
        first = _outcomes(runtime)
        _write(folder, EDITS)
        assert first == _outcomes(runtime, "end")
        _write(folder, dict.fromkeys(FILES, "def half(:\n"))
        assert first == _outcomes(runtime, "end", "end")
        (folder / "near_kept.py").unlink()
        assert first == _outcomes(runtime, "end")
    _write(folder, {**FILES, **EDITS})
    with Runtime([f"{folder}/rewards.py:{name}"], workers=1) as runtime:
        scores, versions = _outcomes(runtime)
    assert ({0.0}, {4.0}) == (first[0], scores)
    assert not versions & first[1]


@pytest.mark.cases(2)
@pytest.mark.parametrize("edited", EDITS)
def test_the_next_runtime_of_a_process_has_another_version(folder: Path, edited: str) -> None:
    """Though the process has imported the files, and asked for the version, before they were edited."""
    marked: Any = resolve(f"{folder}/rewards.py:plain")
    before = marked.version
    with Runtime([marked], workers=1) as runtime:
        assert {before} == _outcomes(runtime)[1]
        assert runtime.rewards["plain"] is marked
    _write(folder, {edited: EDITS[edited]})
    with Runtime([f"{folder}/rewards.py:plain"], workers=1) as runtime:
        scores, versions = _outcomes(runtime)
    assert {1.0} == scores
    assert {before} != versions


def test_the_code_is_that_of_the_making(folder: Path) -> None:
    """What is edited before the first batch, of a runtime that is made already, counts no more."""
    with Runtime([f"{folder}/rewards.py:plain"], workers=1) as usual:
        expected = _outcomes(usual)
    runtime = Runtime([resolve(f"{folder}/rewards.py:plain")], workers=1)
    _write(folder, EDITS)
    with runtime:
        assert expected == _outcomes(runtime)


def test_inline_calls_import_what_the_run_began_with(folder: Path) -> None:
    with Runtime([f"{folder}/rewards.py:plain"], lane="inline") as runtime:
        _write(folder, EDITS)
        scores, _ = _outcomes(runtime)
    assert {0.0} == scores


def test_processes_that_a_call_spawns_run_the_same(folder: Path) -> None:
    with Runtime([f"{folder}/rewards.py:spawning"], workers=1) as runtime:
        _write(folder, EDITS)
        assert [0.0] == runtime.score(ROWS[:1]).totals


def test_nodes_that_join_later_run_the_same(
    folder: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the driver read when the runtime was made is what travels."""
    cluster = ThreadCluster("a", "b")
    monkeypatch.setenv("REWARDKIT_CACHE", str(tmp_path_factory.mktemp("cache")))
    monkeypatch.setattr(ray_cluster, "connect", lambda address: cluster)
    runtime = Runtime([f"{folder}/rewards.py:plain"], workers=1, lane="ray")
    _write(folder, EDITS)
    try:
        with runtime:
            assert wait_for(lambda: len(runtime.nodes) == 2)
            batch = runtime.score([Rollout("p", "end"), *(Rollout("p", str(number)) for number in range(60))])
            assert {0.0} == {outcome.score for outcome in batch["plain"][1:]}
    finally:
        for host in cluster.hosts.values():
            host.kill()


def test_an_update_brings_its_own_code_alone(folder: Path) -> None:
    """The reward that comes in has the new text of a module that both import, and the other one the old."""
    with Runtime([f"{folder}/rewards.py:plain"], workers=1) as before:
        first = _outcomes(before)
        _write(folder, EDITS)
        rewards: Any = {"new": resolve(f"{folder}/rewards.py:plain"), **before.rewards}
        with before.with_rewards(rewards, {"new": 1.0, "plain": 1.0}) as runtime:
            _write(folder, dict.fromkeys(FILES, "def half(:\n"))
            batch = runtime.score([Rollout("p", "end"), *ROWS])
    versions = {outcome.version for outcome in batch["plain"]}
    assert first == ({outcome.score for outcome in batch["plain"][1:]}, versions)
    assert {4.0} == {outcome.score for outcome in batch["new"][1:]}
    assert not versions & {outcome.version for outcome in batch["new"]}


def test_a_runtime_that_was_pickled_keeps_its_code(folder: Path) -> None:
    """As another process unpickles it: that has imported none of the files."""
    with Runtime([f"{folder}/rewards.py:plain"], workers=1) as before:
        first = _outcomes(before)
        data = pickle.dumps(before)
    for name in [name for name in sys.modules if name.startswith(("rewardkit_file_", "near_", "deep_", "pack_"))]:
        del sys.modules[name]
    _write(folder, dict.fromkeys(FILES, "def half(:\n"))
    with pickle.loads(data) as runtime:
        assert first == _outcomes(runtime, "end")


def _install(folder: Path, value: int, version: str) -> None:
    text = f"VALUE = {value}\n"
    (folder / "library_kept.py").write_text(text)
    (folder / f"library_kept-{version}.dist-info").mkdir()
    line = f"library_kept.py,sha256={hashlib.sha256(text.encode()).hexdigest()},10\n"
    (folder / f"library_kept-{version}.dist-info" / "RECORD").write_text(line)


@pytest.mark.parametrize("version", ["1.0", "1.1"])
def test_another_installed_package_is_refused(folder: Path, version: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """By its name: later workers would score with it. The same package, installed again, is none."""
    monkeypatch.setattr(link, "NURSERY_FROM_S", LONG_S)  # what a nursery loaded it keeps, and looks at no more
    site = folder / "site-packages"
    site.mkdir()
    monkeypatch.syspath_prepend(str(site))
    _install(site, 0, "1.0")
    _write(folder, {"late_kept.py": "from library_kept import VALUE\n"})
    with Runtime([f"{folder}/rewards.py:plain"], workers=1) as runtime:
        first = _outcomes(runtime)
        (site / "library_kept-1.0.dist-info" / "RECORD").unlink()
        (site / "library_kept-1.0.dist-info").rmdir()
        _install(site, 0, "1.0")
        assert first == _outcomes(runtime, "end")
        if version == "1.0":
            _write(site, {"library_kept-1.0.dist-info/RECORD": "library_kept.py,sha256=0,10\n"})
        else:
            (site / "library_kept-1.0.dist-info").rename(site / f"library_kept-{version}.dist-info")
        with pytest.raises(RewardLoadError, match=r"package library_kept 1\.0 was changed or removed after"):
            _outcomes(runtime, *["end"] * 5)  # more than the workers that had already looked at it


CELLS = {
    "helper": "def helper():\n    return deeper() + LIMIT\n",
    "deeper": "def deeper():\n    return [K().m() for _ in range(1)][0]\n",
    "class": "class B:\n    table = {'a': 0}\nclass K(B):\n    items = [0]\n    size = 0\n    def m(self):\n"
    "        return 0 + self.size + self.items[0] + self.table['a'] + self.p\n    @property\n    def p(self):\n"
    "        return 0\n",
    "globals": "LIMIT = 0\nTABLE = {'x': [0]}\n",
    "closure": "def make(k):\n    def inner():\n        return k\n    return inner\nclosed = make(0)\n",
    "object": "class O:\n    def __init__(self, v):\n        self.v = v\no = O(0)\n",
    "values": "import functools, dataclasses, enum\ndef add(a):\n    return a\npart = functools.partial(add, 0)\n"
    "@functools.cache\ndef cached():\n    return 0\n@dataclasses.dataclass\nclass D:\n    w: float = 0.0\n"
    "class E(enum.IntEnum):\n    A = 0\n",
    "score": "@reward\ndef score(completion: str) -> float:\n    return float(helper() + TABLE['x'][0] + closed() + o.v"
    " + part() + cached() + D().w + int(E.A))\n",
}
CELL_EDITS = [
    ("helper", "+ LIMIT", "+ LIMIT + 1"), ("deeper", "[0]\n", "[0] + 1\n"), ("class", "'a': 0", "'a': 1"),
    ("class", "[0]\n", "[1]\n"), ("class", "size = 0", "size = 1"), ("class", "return 0 +", "return 1 +"),
    ("class", "return 0\n", "return 1\n"), ("globals", "LIMIT = 0", "LIMIT = 1"), ("globals", "[0]", "[1]"),
    ("closure", "make(0)", "make(1)"), ("object", "O(0)", "O(1)"), ("values", "add, 0", "add, 1"),
    ("values", "return 0", "return 1"), ("values", "= 0.0", "= 1.0"), ("values", "A = 0", "A = 1"),
]  # fmt: skip
"""The cell that is edited, and what of it."""


def test_what_a_notebook_edits_between_two_runtimes_gives_another_version() -> None:
    """Helpers of helpers, classes, globals, closures and objects of other cells; the reward's cell is not run again."""
    space: dict[str, Any] = {"__name__": "__main__", "reward": reward}
    lines: list[str] = []

    def run(text: str) -> None:
        name = f"<cell {len(lines)} of a run>"
        lines.append(name)
        linecache.cache[name] = len(text), None, text.splitlines(keepends=True), name
        exec(compile(text, name, "exec"), space)

    def outcome() -> tuple[float | None, str]:
        with Runtime([space["score"]], lane="inline") as runtime:
            (scored,) = runtime.score([Rollout("p", "c")])["score"]
        return scored.score, scored.version

    for text in CELLS.values():
        run(text)
    before = outcome()
    versions = {before[1]}
    for cell, old, new in CELL_EDITS:
        assert 1 == CELLS[cell].count(old)
        run(CELLS[cell].replace(old, new))
        score, version = outcome()
        assert 1.0 == score, (cell, new)
        versions.add(version)
        run(CELLS[cell])
        assert before == outcome()
    assert 1 + len(CELL_EDITS) == len(versions)
    for name in lines:
        del linecache.cache[name]
