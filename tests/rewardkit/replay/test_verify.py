"""``rewardkit verify``: recorded scores are tried again by the versions that gave them."""

from __future__ import annotations

import json
import os
import sqlite3
import sys
from pathlib import Path
from typing import Any

import pytest
from small_run import COMPLETIONS, command, recorded, told

from builtin_rewards.repetition import distinct_n
from rewardkit import Rollout, Runtime, reward, reward_from_source
from rewardkit.replay.recorded_run import Run
from rewardkit.replay.versions import VersionFinder


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    return tmp_path


def _results(found: dict[str, Any]) -> dict[str, str]:
    return {one["version"]: one["result"] for one in found["versions"]}


def test_a_deterministic_run_is_all_the_same(work: Path) -> None:
    """Scores, skips and failures of a reward that reads the step, of a group reward and of a composition."""
    run = recorded(work, {"steady": 1.0, "longest": 1.0, "both": 0.0})
    found = told("verify", run, "--all", "--workers", "1")
    assert {"steady@1": "same", "longest@1": "same", "both@1": "same"} == _results(found)
    assert [(COMPLETIONS, COMPLETIONS, 0)] * 3 == [
        (one["calls"], one["same"], one["different"]) for one in found["versions"]
    ]


def test_a_nondeterministic_reward_is_found_by_its_name(work: Path) -> None:
    """With the completions that differ; the exit code is 1, and the others are the same."""
    run = recorded(work, {"steady": 1.0, "coin": 0.5, "longest": 1.0})
    found = told("verify", run, "--sample", "10", "--workers", "1", code=1)
    assert {"steady@1": "same", "coin@1": "nondeterministic", "longest@1": "same"} == _results(found)
    assert [10, 0, 10] == [one["same"] for one in found["versions"]]
    (coin,) = [one for one in found["versions"] if one["version"] == "coin@1"]
    assert (10, 3) == (coin["different"], len(coin["examples"]))
    assert all(one["recorded"]["score"] != one["now"]["score"] for one in coin["examples"])
    code, out, _ = command("verify", run, "--sample", "10", "--workers", "1")
    assert 1 == code
    assert ["coin@1", "48", "-", "10", "-", "nondeterministic"] in [line.split() for line in out.splitlines()]
    assert "coin@1  step " in out


def test_what_a_reward_reads_may_have_changed(work: Path) -> None:
    """The code is the recorded one and agrees with itself, but not with the record: that is another finding."""
    Path("table.json").write_text('{"yes": 1.0}')
    Path("mine.py").write_text(
        "import json\nfrom pathlib import Path\n\nfrom rewardkit import reward\n\n\n@reward\n"
        "def looked_up(completion: str) -> float:\n"
        "    return json.loads(Path('table.json').read_text()).get(completion, 0.0)\n"
    )
    run = recorded(work, {"looked_up": 1.0})
    assert {"looked_up@1": "same"} == _results(told("verify", run, "--all", "--workers", "1"))
    Path("table.json").write_text('{"yes": 0.5}')
    found = told("verify", run, "--all", "--workers", "1", code=1)
    assert {"looked_up@1": "different"} == _results(found)
    assert {"yes"} == {one["completion"] for one in found["versions"][0]["examples"]}


def test_a_file_that_has_changed_is_run_as_it_was(work: Path) -> None:
    """Its text is in the record; what it imports from its folder is found, and must be as it was."""
    Path("beside.py").write_text("BONUS = 0.25\n")
    text = (
        "from beside import BONUS\n\nfrom rewardkit import reward\n\n\n@reward\n"
        "def paid(completion: str) -> float:\n    return len(completion) + BONUS\n"
    )
    Path("mine.py").write_text(text)
    run = recorded(work, {"paid": 1.0})
    Path("mine.py").write_text(text.replace("+ BONUS", "- BONUS"))
    assert {"paid@1": "same"} == _results(told("verify", run, "--all", "--workers", "1"))
    Path("mine.py").unlink()
    assert {"paid@1": "same"} == _results(told("verify", run, "--all", "--workers", "1"))
    Path("beside.py").write_text("BONUS = 0.5\n")
    sys.modules.pop("beside", None)
    found = told("verify", run, "--all", "--workers", "1")
    assert {"paid@1": "not reproducible"} == _results(found)
    assert "mine.py: no such file; its recorded text gives another version, too" in found["versions"][0]["why"]


def test_a_source_that_is_gone_is_named_and_no_difference(work: Path) -> None:
    """The exit code is 0: nothing was found to differ."""
    run = recorded(work, {"steady": 1.0, "longest": 1.0})
    with sqlite3.connect(run / "record.db") as connection:
        connection.execute("UPDATE version SET module = NULL")
    connection.close()
    Path("mine.py").write_text(Path("mine.py").read_text().replace("step / 100", "step / 10"))
    found = told("verify", run, "--workers", "1")
    assert {"steady@1": "not reproducible", "longest@1": "same"} == _results(found)
    assert "mine.py:steady has changed: it is version " in found["versions"][0]["why"]
    Path("mine.py").write_text("this is no Python")
    code, out, _ = command("verify", run)
    assert 0 == code
    assert 2 == out.count("SyntaxError: invalid syntax")


def test_a_reward_of_a_script_or_a_text(work: Path) -> None:
    """A function that no reference leads to cannot be had again; a reward given as text is all there."""

    def local(completion: str) -> float:
        return 1.0

    text = "def short(completion: str) -> float:\n    return float(len(completion) < 5)\n"
    rewards = [reward(local), reward_from_source(text, timeout_s=5)]
    with Runtime(rewards, workers=1, record="runs/one") as runtime:
        runtime.score([Rollout("p", one) for one in ("yes", "a long one")], step=0)
    found = told("verify", "runs/one", "--workers", "1")
    assert {"local@1": "not reproducible", "short@1": "same"} == _results(found)
    assert "it was defined in a script, a notebook or a function" in found["versions"][0]["why"]


OWN = """
from builtin_rewards.formats import format_tags
from builtin_rewards.repetition import distinct_n
from rewardkit import reward


@reward
def plain(completion: str) -> float:
    return float(len(completion))


varied = distinct_n(3)
other_name = distinct_n.with_options(name="form", timeout_s=7)
total = (0.5 * plain + 0.5 * varied).named("total")
weighed = 0.5 * plain + 0.5 * distinct_n
"""
NAMED = {
    "a built-in with settings": "builtin_rewards.formats:format_tags",
    "a built-in of code": "builtin_rewards.code:code_tests",
    "a built-in without settings": "builtin_rewards.math:math_answer",
    "a built-in by its own name": "distinct_n",
    "a built-in that a file imports": "mine.py:format_tags",
    "one with other settings": "mine.py:varied",
    "one with another name and options": "mine.py:other_name",
    "one of its own": "mine.py:plain",
    "a composition": "mine.py:total",
    "a composition without a name": "mine.py:weighed",
}


@pytest.mark.parametrize("is_mapped", [False, True], ids=["its own name", "a mapping's name"])
@pytest.mark.parametrize("reference", NAMED.values(), ids=NAMED)
def test_every_kind_of_reward_is_had_again_under_a_name_of_the_run(work: Path, reference: str, is_mapped: bool) -> None:
    """Its reference leads to it, and settings, options and name are those of the run."""
    Path("mine.py").write_text(OWN)
    named: Any = {"renamed": reference} if is_mapped else [reference]
    with Runtime(named, workers=1, record="runs/one") as runtime:
        (name,) = runtime.rewards
        rows = [Rollout("p", one, {"answer": "4", "tests": ["assert True"]}) for one in ("4", "a longer one")]
        runtime.score(rows, step=0)
    with Run.open(Path("runs/one")) as run, VersionFinder() as finder:
        versions = {version.reward: finder.find(version) for version in run.own_versions}
        (version,) = [version for version in run.own_versions if version.reward == name]
    assert dict.fromkeys(versions, "") == {name: found.why for name, found in versions.items()}
    again = versions[name].reward
    assert again is not None
    assert (name, version.digits) == (again.name, again.version)


def test_a_setting_that_no_reference_has_is_not_taken_for_another(work: Path) -> None:
    """A built-in that a script gave settings of its own is not the built-in with its defaults."""
    with Runtime({"varied": distinct_n(4)}, workers=1, record="runs/one") as runtime:
        runtime.score([Rollout("p", "a b")], step=0)
    found = told("verify", "runs/one", "--workers", "1")
    assert {"varied@1": "not reproducible"} == _results(found)


def test_what_a_fault_of_the_infrastructure_hid_is_not_judged(work: Path) -> None:
    """Neither a judge that was down in the run, nor one that is down now, says that a score does not hold."""
    run = recorded(work, {"judge": 1.0})
    (one,) = told("verify", run, "--all", "--workers", "1")["versions"]
    lost = one["not_judged"]["failed by infrastructure in the run"]
    assert ("same", COMPLETIONS) == (one["result"], one["same"] + lost)
    Path("up").touch()
    second = recorded(work, {"judge": 1.0}, "two")
    Path("up").unlink()
    (one,) = told("verify", second, "--all", "--workers", "1")["versions"]
    assert ("same", {"failed by infrastructure now": lost}) == (one["result"], one["not_judged"])


def test_a_sample_is_drawn_by_a_seed(work: Path) -> None:
    """The same seed tries the same completions."""
    run = recorded(work, {"coin": 1.0})

    def ids(seed: str) -> list[int]:
        found = told("verify", run, "--sample", "3", "--seed", seed, "--workers", "1", code=1)
        return [one["id"] for one in found["versions"][0]["examples"]]

    assert ids("1") == ids("1") != ids("2")


def test_only_some_rewards_are_verified(work: Path) -> None:
    """Those that are named, as a judge costs money; an unknown one is an error."""
    run = recorded(work, {"steady": 1.0, "coin": 1.0, "longest": 1.0})
    found = told("verify", run, "--reward", "steady", "--reward", "longest", "--workers", "1")
    assert ["steady@1", "longest@1"] == list(_results(found))
    code, _, err = command("verify", run, "--reward", "stedy")
    assert (2, True) == (code, "one: no reward 'stedy'; it has steady, coin, longest" in err)


def test_a_version_that_cannot_be_run_keeps_none_from_being_verified(work: Path) -> None:
    """It imports here and not in a worker, which is said of it alone."""
    Path("mine.py").write_text(
        "import os\n\nfrom rewardkit import reward\n\nhome = os.getpid()\n"
        "if os.environ.get('PARENT') not in (None, str(home)):\n    raise RuntimeError('not in a worker')\n\n\n"
        "@reward\ndef here(completion: str) -> float:\n    return 1.0\n"
    )
    run = recorded(work, {"here": 1.0})
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("PARENT", str(os.getpid()))
        (one,) = told("verify", run, "--workers", "1")["versions"]
    assert ("not reproducible", "it cannot be run: RuntimeError: not in a worker") == (one["result"], one["why"])


def test_conversations_are_scored_again_as_they_were(work: Path) -> None:
    """Messages and nested columns come back from the record."""
    Path("mine.py").write_text(
        "from rewardkit import reward\n\n@reward\n"
        "def talk(completion: list[dict[str, str]], answers: list[str], n: int) -> float:\n"
        "    return sum(one in completion[-1]['content'] for one in answers) / n\n"
    )
    with Runtime(["mine.py:talk"], lane="inline", record="runs/one") as runtime:
        prompt = [{"role": "user", "content": "2+2="}]
        talks = [[{"role": "assistant", "content": one}] for one in ("It is 4", "No \ud800 idea\x01")]
        runtime.score([Rollout(prompt, talk, {"answers": ["4", "four"], "n": 2}) for talk in talks], step=0)
    found = told("verify", "runs/one", "--all", "--workers", "1")
    assert {"talk@1": "same"} == _results(found)
    assert 2 == found["versions"][0]["same"]


def test_mistakes_are_one_line(work: Path) -> None:
    """Exit code 2; with --json they are the result."""
    recorded(work, {"steady": 1.0})
    for arguments, words in (
        (["runs/none"], "runs/none/record.db: there is no record"),
        (["runs/one", "--steps", "7-8"], "one: no steps 7-8 in it; of the split train it has steps 0 to 3"),
        (["runs/one", "--sample", "5", "--all"], "--sample 5 and --all: give one of them"),
    ):
        code, out, err = command("verify", *arguments, "--json")
        assert (2, True) == (code, words in err)
        assert words in json.loads(out)["error"]["message"]
