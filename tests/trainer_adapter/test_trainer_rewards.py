"""The core of the thin adapters: where rewards come from, what is refused at the start, and what a process holds."""

from __future__ import annotations

import asyncio
import os
import pickle
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import pytest
from fated_rewards import FATES, KEYS, brave, rank, right
from held_rewards import counted_batches

from rewardkit import (
    ConfigError,
    MissingColumnError,
    RewardDefinitionError,
    RewardFailedError,
    RewardLoadError,
    Rollout,
    Runtime,
)
from rewardkit.serving import RemoteRuntime, RowFate, ToldRow
from trainer_adapter import TrainerAsks, TrainerRewards, openrlhf, slime, swift, verl
from trainer_adapter.trainer_rewards import close_all
from trainer_adapter.verl import ComputeScore, verl_score

BOTH = "fated_rewards:right, fated_rewards:brave"
FIXED = TrainerAsks("a trainer", "--reward", frozenset({"label"}), None, "--samples")


@pytest.fixture(autouse=True, scope="module")
def _ended() -> Iterator[None]:
    yield
    close_all()


def _core(rewards: object = BOTH, **options: object) -> TrainerRewards:
    return TrainerRewards(rewards, workers=1, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize("completion", FATES)
def test_a_row_is_told_as_the_table_says(completion: str) -> None:
    """Number, flags and names are those of the table, whatever becomes of a completion."""
    core = _core(on_unknown="zero")
    row = core.score_one("2+2=", completion, {"answer": "4"})
    known = core.known(row)
    assert FATES[completion] == (core.number(row), row.flags)
    assert known.keys() == KEYS
    assert {float} == {type(value) for value in [*known.values(), core.number(row)]}


@pytest.mark.parametrize("trainer", ["verl", "verl's file", "OpenRLHF", "slime", "ms-swift"])
def test_the_environment_may_name_a_server(trainer: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a trainer calls without a file of the user's takes an address as it takes references."""
    pytest.importorskip("uvicorn", reason="a reward server needs the extra 'server'")
    from reward_servers import reward_server

    async def asked(score: ComputeScore) -> float:
        return (await score("", "4", "4", {"index": 0}))["score"]

    async def sample() -> float:
        return await slime.custom_rm(None, SimpleNamespace(prompt="2+2=", response="4", label="4", metadata={}))

    calls: dict[str, Callable[[], float]] = {
        "verl": lambda: asyncio.run(asked(verl.compute_score)),
        "verl's file": lambda: asyncio.run(asked(verl_score())),
        "OpenRLHF": lambda: float(openrlhf.openrlhf_reward()(["2+2=4"], ["2+2="], ["4"])["rewards"]),
        "slime": lambda: asyncio.run(sample()),
        "ms-swift": lambda: swift.swift_orm()()(["4"], answer=["4"])[0],
    }
    with Runtime([right], workers=1) as runtime, reward_server(runtime) as served:
        monkeypatch.setenv("REWARDKIT_REWARDS", served.url)
        try:
            assert 1.0 == calls[trainer]()
        finally:
            close_all()
            for module in (verl, slime):
                getattr(module, "_from_settings", getattr(module, "_default", None)).cache_clear()


def test_a_servers_group_reward_has_its_groups_whole() -> None:
    """A client's rows wait for their group, which a server takes as it is sent; without its size it is refused."""
    pytest.importorskip("uvicorn", reason="a reward server needs the extra 'server'")
    from reward_servers import reward_server

    with Runtime([rank], workers=1) as runtime, reward_server(runtime) as served:
        refused = pytest.raises(ConfigError, match="'rank' scores the completions of a prompt together")
        with RemoteRuntime(served.url) as remote, refused:
            verl_score(remote)
        score = verl_score(RemoteRuntime(served.url), group_size=2)

        async def both() -> list[dict[str, float]]:
            return await asyncio.gather(*(score("", said, "4", {"index": 1}) for said in ("4", "44")))

        assert [0.0, 1.0] == [told["score"] for told in asyncio.run(both())]
        close_all()


def test_an_unknown_total_is_raised_where_it_shall_be() -> None:
    """The error names the trainer, the reward and the reason; a default that stands in raises nothing."""
    core = _core(asks="verl")
    with pytest.raises(RewardFailedError, match=r"verl: the reward of a completion is unknown: reward 'right'.*nobody"):
        core.number(core.score_one("", "unknown", {"answer": "4"}))
    assert -1.0 == core.number(core.score_one("", "fail", {"answer": "4"}))


def test_a_call_that_is_lost_or_ends_its_worker_costs_nobody_else() -> None:
    """Among single calls that are lost, or kill the process that they run in, all others have their scores."""
    core, texts = _core(on_unknown="zero"), ["4", "5", "4", "lost", "crash"]

    async def all_at_once() -> list[ToldRow]:
        return await asyncio.gather(*(core.ascore_one("", texts[n % 5], {"answer": "4"}) for n in range(20)))

    rows = asyncio.run(all_at_once())
    assert [{"4": 2.0, "5": 1.0}.get(texts[n % 5]) for n in range(20)] == [row.total for row in rows]
    assert [texts[n % 5] in ("lost", "crash") for n in range(20)] == [row.fate is RowFate.UNKNOWN for row in rows]


def test_importing_the_adapters_imports_no_trainer() -> None:
    """None of the five loads a trainer or torch; of verl's, only the manager's module would."""
    adapters = ", ".join(f"trainer_adapter.{name}" for name in ("openrlhf", "slime", "swift", "verifiers", "verl"))
    heavy = {"torch", "trl", "openrlhf", "slime", "swift", "verifiers", "verl", "transformers"}
    probe = f"import sys, {adapters}; print(sorted({heavy!r} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, timeout=300)
    assert ("[]\n", "") == (done.stdout, done.stderr)


def test_calls_of_threads_and_of_loops_become_few_batches() -> None:
    """512 single calls at once are a few batches, and each caller has its own score."""
    core = _core(on_unknown="zero")
    core.score_one("", "4", {"answer": "4"})
    with counted_batches() as batches, ThreadPoolExecutor(16) as threads:
        rows = threads.map(lambda n: core.score_one("", str(n % 7), {"answer": "4"}), range(512))
        assert [1.0 + (n % 7 == 4) for n in range(512)] == [row.total for row in rows]

    async def all_at_once() -> list[float | None]:
        rows = await asyncio.gather(*(core.ascore_one("", str(n % 7), {"answer": "4"}) for n in range(512)))
        return [row.total for row in rows]

    with counted_batches() as loop_batches:
        assert [1.0 + (n % 7 == 4) for n in range(512)] == asyncio.run(all_at_once())
    assert 512 == sum(batches) == sum(loop_batches)
    assert len(loop_batches) <= 128


def test_no_batch_of_a_trainers_is_too_large() -> None:
    """Neither a list of 20,000 rows nor two of them at once: a trainer cannot ask again later, as a client can."""
    core = _core("fated_rewards:brave")

    async def twice() -> list[list[ToldRow]]:
        return await asyncio.gather(*(core.ascore([Rollout("", "4", {})] * 20_000) for _ in range(2)))

    assert [{1.0}, {1.0}] == [{row.total for row in rows} for rows in asyncio.run(twice())]


def test_rewards_come_from_references_files_yaml_and_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A text, a path, objects, a YAML file and the variable name the same rewards."""
    file = tmp_path / "my_rewards.py"
    file.write_text("from rewardkit import reward\n\n@reward\ndef exact(completion: str) -> float:\n    return 3.0\n")
    yaml = tmp_path / "rewards.yaml"
    yaml.write_text("functions:\n  exact: my_rewards.py:exact\n")
    monkeypatch.setenv("REWARDKIT_REWARDS", f"{file}:exact")
    for rewards in (file, f"{file}:exact", yaml, None):
        core = _core(rewards)
        assert 3.0 == core.number(core.score_one("", "x")), rewards
        core.close()
    assert _core([right, brave]).columns == {"answer"}


def test_a_process_holds_equal_rewards_once() -> None:
    """What is made twice, and what is unpickled, has one set of workers; other settings have their own."""
    core, again, copy = _core(), _core(), pickle.loads(pickle.dumps(_core()))
    assert core.joined is again.joined is copy.joined
    assert core.joined is not _core(weights=[1, 0]).joined
    assert 2.0 == copy.score_one("", "4", {"answer": "4"}).total


def test_another_process_has_workers_of_its_own(tmp_path: Path) -> None:
    """What is pickled scores in a process that has nothing of this one."""
    file = tmp_path / "core.pickle"
    file.write_bytes(pickle.dumps(_core()))
    probe = (
        "import pickle, sys\n"
        "if __name__ == '__main__':\n"
        "    core = pickle.loads(open(sys.argv[1], 'rb').read())\n"
        "    print(core.score_one('', '4', {'answer': '4'}).total)\n"
    )
    path = os.pathsep.join([str(Path(__file__).parents[2]), str(Path(__file__).parents[1] / "helpers")])
    done = subprocess.run(
        [sys.executable, "-c", probe, str(file)],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "PYTHONPATH": path},
    )
    assert ("2.0\n", "") == (done.stdout, done.stderr)


def test_a_column_that_the_trainer_cannot_send_is_refused_at_the_start() -> None:
    """Where a trainer sends fixed columns the mistake is told before any call, with what it sends."""
    with pytest.raises(ConfigError, match=r"a trainer: a reward needs column 'answer'.*sends only label"):
        _core(asks=FIXED)


def test_a_column_that_did_not_come_is_told_with_the_trainers_setting() -> None:
    """Where the dataset decides, the first call tells it, and how the column gets there."""
    core = _core(asks=TrainerAsks("a trainer", more="put it into extra_info"))
    with pytest.raises(
        MissingColumnError, match=r"a trainer: .*'answer'.*the near name 'anser'.*put it into extra_info"
    ):
        core.score_one("", "4", {"anser": "4"})


def test_group_rewards_without_a_group_size_are_refused_at_the_start() -> None:
    """The error names the reward and the setting that has the number."""
    with pytest.raises(ConfigError, match=r"a trainer: reward 'rank' scores.*group_size=, equal to --samples"):
        _core("fated_rewards:rank", asks=FIXED)


def test_single_calls_of_a_group_are_scored_together() -> None:
    """With a group size calls wait for each other; columns that no reward reads tell no groups apart."""
    core = _core("fated_rewards:rank", group_size=4, group_wait_s=30)
    texts = ["aaa", "a", "aaaa", "aa"]

    async def ask() -> list[float | None]:
        asked = (core.ascore_one("p", text, {"turn": n}, group=7) for n, text in enumerate(texts))
        return [row.total for row in await asyncio.gather(*asked)]

    assert [2.0, 0.0, 3.0, 1.0] == asyncio.run(ask())


def test_without_rewards_of_groups_no_call_waits() -> None:
    """A group size that no reward needs holds up nobody."""
    assert 2.0 == _core(group_size=8, group_wait_s=60).score_one("", "4", {"answer": "4"}).total


@pytest.mark.parametrize(
    ("text", "words"),
    [("raise ValueError('broken')\n", "broken"), ("import a_module_that_is_not_there\n", "a_module_that_is_not_there")],
    ids=["raises", "imports"],
)
def test_a_file_that_does_not_import_names_the_setting(tmp_path: Path, text: str, words: str) -> None:
    """The error has the file, its own reason, and the trainer's setting."""
    file = tmp_path / "broken_rewards.py"
    file.write_text(text)
    with pytest.raises(RewardLoadError, match=rf"(?s)a trainer: .*broken_rewards\.py.*{words}.*--reward"):
        _core(str(file), asks=FIXED)


def test_no_rewards_at_all_names_the_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where nothing names rewards the error says what to set."""
    monkeypatch.delenv("REWARDKIT_REWARDS", raising=False)
    with pytest.raises(ConfigError, match=r"a trainer: .*REWARDKIT_REWARDS.*--reward"):
        _core(None, asks=FIXED)


@pytest.mark.parametrize("options", [{"on_unknown": "drop"}, {"group_size": 0}, {"group_wait_s": 0.0}], ids=str)
def test_an_option_that_makes_no_sense_is_refused_at_the_start(options: dict[str, object]) -> None:
    """The error has the option and the value."""
    ((name, value),) = options.items()
    with pytest.raises(RewardDefinitionError, match=f"{name}={value!r}: expected"):
        _core(**options)


def test_the_first_calls_of_many_threads_make_one_runtime() -> None:
    """Threads that call at once meet one set of workers."""
    core = _core([brave, right])
    barrier = threading.Barrier(8)

    def first(_: int) -> object:
        barrier.wait(30)
        return core.joined

    with ThreadPoolExecutor(8) as threads:
        assert 1 == len(set(map(id, threads.map(first, range(8)))))


def test_processes_of_a_host_share_its_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a launcher started several, each has its share of workers, and one at least; a number given is taken."""
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "64")
    assert 1 == TrainerRewards(BOTH)._runtime.workers
    assert 3 == TrainerRewards(BOTH, workers=3)._runtime.workers
