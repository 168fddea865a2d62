"""verl, OpenRLHF and skyrl-gym: their own code asks our adapters, and every fifth completion is faulty.

Each trainer's programs run once, in an environment of the trainers' own, and the tests look at what came out.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import faulty_rewards
import pytest
from fault_mix import FAILED, FATES, FLAGS, NAMES, SCORED, SKIPPED, UNKNOWN, completions, flags
from reward_servers import reward_server
from trainer_environment import seen_by

from rewardkit import Runtime

pytestmark = pytest.mark.trainers


@pytest.fixture(scope="module")
def size(full: bool) -> dict[str, int]:
    """How many completions, and how many of them are slow or end their worker."""
    return {"count": 1024, "costly": 16} if full else {"count": 320, "costly": 2}


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    """A server of the rewards that are added up."""
    rewards = [faulty_rewards.right, faulty_rewards.brave]
    with Runtime(rewards, workers=2) as runtime, reward_server(runtime, connections=4096) as served:
        yield served.url


@pytest.fixture(scope="module")
def verl(size: dict[str, int], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return seen_by("real_verl", **size, folder=str(tmp_path_factory.mktemp("verl")))


@pytest.fixture(scope="module")
def openrlhf(size: dict[str, int], url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    groups = [faulty_rewards.rank, faulty_rewards.asked]
    with Runtime(groups, workers=1) as runtime, reward_server(runtime, group_size=4) as served:
        urls = {"url": f"{url}/get_reward", "group_url": f"{served.url}/get_reward"}
        yield seen_by("real_openrlhf", **size, **urls, folder=str(tmp_path_factory.mktemp("openrlhf")))


@pytest.fixture(scope="module")
def skyrl(size: dict[str, int], url: str, root: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    page = (root / "docs/how-to/use-with-other-trainers.md").read_text()
    (block,) = (one for one in re.findall(r"```python\n(.*?)```", page, re.DOTALL) if "class SumsEnv" in one)
    snippet = tmp_path_factory.mktemp("skyrl") / "sums_env.py"
    snippet.write_text(block)
    return seen_by("real_skyrl", **size, snippet=str(snippet), url=url)


def _said(page: Path) -> dict[str, dict[str, str]]:
    """What the docs' table says of each fate, by trainer."""
    text = page.read_text().split("## What becomes of a failure")[1].split("\n## ")[0]
    head, _, *rows = [
        [cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if "|" in line
    ]
    return {row[0]: dict(zip(head[1:], row[1:], strict=True)) for row in rows}


def _check(text: str, number: float, extra: dict[str, float], said: dict[str, str], names: set[str]) -> None:
    """Hold one reply against the docs' row of its fate."""
    fate, expected = FATES[text]
    assert ("total" if fate in (SCORED, FAILED) else "0.0") in said[fate]
    assert (text, expected) == (text, number)
    assert flags(fate) == {name: extra[name] for name in FLAGS}, text
    assert names == extra.keys()
    assert all(type(value) is float and math.isfinite(value) for value in extra.values())


def _alone(value: Any, how: str) -> Any:
    """Return a number of one sample, which a server's reply has in a list."""
    if not how.startswith("http"):
        return value
    (number,) = value
    return number


def _all_kinds(rows: list[list[Any]], size: dict[str, int]) -> None:
    """Nothing is missing: as many rows as were asked for, of every kind, a fifth of them faulty."""
    assert completions(**size) == [row[0] for row in rows]
    kinds = Counter(FATES[row[0]][0] for row in rows)
    assert {SCORED, SKIPPED, FAILED, UNKNOWN} == kinds.keys()
    assert size["count"] // 5 == size["count"] - kinds[SCORED]


def test_verls_managers_get_every_reply_under_the_same_names(
    verl: dict[str, Any], size: dict[str, int], root: Path
) -> None:
    """Through ``load_reward_manager`` and ``run_single``, by a file and by ``pkg://``, with ``on_unknown="zero"``."""
    said = _said(root / "docs/how-to/use-with-other-trainers.md")["verl"]
    _all_kinds(verl["naive"]["rows"], size)
    for how in ("naive", "package"):
        assert ("NaiveRewardManager", True) == (verl[how]["manager"], verl[how]["is_async"])
        assert (1, ["float"]) == (verl[how]["key_sets"], verl[how]["types"])
        for text, number, extra in verl[how]["rows"]:
            assert number == extra.pop("score")
            _check(text, number, extra, said, NAMES)


def test_a_step_of_verls_earlier_trainers_is_assembled(verl: dict[str, Any]) -> None:
    """The controller takes the first sample's names for all, and finds them; each score is at its response's end."""
    texts, step = completions(40, 0), verl["step"]
    assert [FATES[text][1] for text in texts] == step["scores"] == step["columns"]["score"]
    assert NAMES | {"score"} == step["columns"].keys()
    assert {40} == {len(column) for column in step["columns"].values()}


def test_verls_controller_gets_a_score_at_the_end_of_each_turn(verl: dict[str, Any]) -> None:
    """By our manager, where verl says which tokens the model wrote; else the completion's number is at the end."""
    first, last = map(str, verl["ends"])
    assert {first: 1.0, last: 0.25} == verl["credit"]["mask"]
    assert {last: 0.625} == verl["credit"]["tokens"]
    assert {last} == verl["credit"]["naive"].keys()


def test_verls_v1_marks_a_group_with_an_unknown_reward_and_goes_on(verl: dict[str, Any]) -> None:
    """By default the group of an unknown reward is a failure and others are whole; with ``"zero"`` all are."""
    strict, zero = verl["v1"]["strict"], verl["v1"]["zero"]
    assert {"u0": "finished", "u1": "failure", "u2": "finished", "u3": "finished"} == strict["status"]
    assert {"u1_0_0", "u1_3_0"} == {key for key in strict["samples"] if key.startswith("u1")}
    assert {"finished"} == set(zero["status"].values())
    assert 16 == len(zero["samples"])
    assert (0.0, 1.0) == (zero["samples"]["u1_1_0"]["score"], zero["samples"]["u1_1_0"]["unknown"])
    assert [0.0, -1.0, 2.0, 1.0] == [zero["samples"][f"u2_{n}_0"]["score"] for n in range(4)]


def test_verl_finds_our_manager_and_it_tells_prompt_and_group(verl: dict[str, Any]) -> None:
    """By the entry point and by its path; the question is 4 characters, and a rank within 4 completions comes to it."""
    assert "rewardkit" in verl["registered"]
    for how, rows in (("ranked", 32), ("by_path", 4)):
        assert "RewardkitRewardManager" == verl[how]["manager"]
        assert [4.0, 5.0, 6.0, 7.0] * (rows // 4) == [number for _, number, _ in verl[how]["rows"]]
    ranked = verl["v1_ranked"]
    assert {"u0": "finished", "u1": "finished", "u2": "finished"} == ranked["status"]
    assert [4.0, 6.0, 5.0, 7.0] * 3 == [ranked["samples"][f"u{u}_{n}_0"]["score"] for u in range(3) for n in range(4)]


def test_verl_refuses_what_is_wrong_before_the_first_completion(verl: dict[str, Any]) -> None:
    """With our manager: a column that the file of ``data.train_files`` lacks, and a reward file that is not there."""
    column, file = verl["refused"]
    assert re.match(r"ConfigError: verl: .*'hardness'.*train\.parquet.*has only index.*extra_info", column)
    assert re.match(r"RewardLoadError: verl: .*nowhere\.py.*reward\.custom_reward_function\.path", file)


def test_verls_managers_hand_over_turns_and_calls(verl: dict[str, Any]) -> None:
    """From text, tokens, a mask or an agent loop's messages: a call with its answer, and never a forged one."""
    expected = dict.fromkeys(("naive", "tokens", "mask", "forged", "forged tokens", "messages"), 2.0)
    assert expected | {"one turn": 0.0} == verl["turns"]


def test_verls_remote_manager_is_refused_by_name(verl: dict[str, Any]) -> None:
    """It takes no coroutine function; the error says which managers do."""
    assert re.match(
        r"ConfigError: verl: reward\.reward_manager\.name=remote .*take naive, dapo, gdpo or", verl["remote"]
    )


def test_verls_gdpo_takes_the_scores_of_each_reward(verl: dict[str, Any]) -> None:
    """By the names that the docs say, with weights; what differs in a group has an advantage."""
    rights, advantages = verl["step"]["columns"]["reward/right"], verl["gdpo"]
    assert all(map(math.isfinite, advantages))
    group = [row for row in range(4) if rights[row] == 1.0]
    assert group
    assert min(advantages[row] for row in group) > max(advantages[row] for row in range(4) if row not in group)


@pytest.mark.parametrize("how", ["file", "http"])
def test_openrlhfs_batches_have_a_number_for_every_sample(
    how: str, openrlhf: dict[str, Any], size: dict[str, int], root: Path
) -> None:
    """Through the executor, and on into one ``Experience``: no reward is missing, no name either."""
    rows, batch = openrlhf[how]["rows"], openrlhf[how]
    _all_kinds(rows, size)
    numbers = [FATES[row[0]][1] for row in rows]
    page, key = ("use-with-other-trainers", "OpenRLHF") if how == "file" else ("serve-rewards", "`/get_reward`")
    said = _said(root / f"docs/how-to/{page}.md")[key]
    for text, *reply in rows:
        reward, score, *logs = [_alone(one, how) for one in [*reply[:2], *reply[2].values()]]
        _check(text, reward, dict(zip(reply[2], logs, strict=True)), said, NAMES)
        assert min(1.0, max(0.0, reward)) == score
    assert numbers == [_alone(one, how) for one in batch["rewards"]]
    assert {size["count"]} == {len(values) for values in batch["info"].values()}


def test_openrlhfs_groups_are_gathered(openrlhf: dict[str, Any]) -> None:
    """By a file and by a server, single samples are ranked within the four of their prompt."""
    for how in ("ranked", "http ranked"):
        numbers = [_alone(row[1], how) for row in openrlhf[how]["rows"]]
        assert [0.0, 1.0, 2.0, 3.0] * 8 == [number - numbers[0] for number in numbers]


def test_openrlhfs_completions_are_without_its_end_token_and_the_cut_prompt(openrlhf: dict[str, Any]) -> None:
    """The query is decoded with special tokens, and begins with the prompt's end where the prompt was too long."""
    assert [2.0, 1.0] == [row[1] for row in openrlhf["cut"]["rows"]]


@pytest.mark.full
@pytest.mark.parametrize("how", ["function", "http"])
def test_skyrls_environments_end_their_turn_with_a_number(
    how: str, skyrl: dict[str, Any], size: dict[str, int]
) -> None:
    """The class that the docs show, made and stepped by skyrl-gym in threads."""
    rows = skyrl[how]
    _all_kinds(rows, size)
    assert {"float"} == {row[3] for row in rows}
    said = {SCORED: "total", SKIPPED: "0.0", FAILED: "total", UNKNOWN: "0.0"}
    for text, number, extra, _ in rows:
        _check(text, number, extra, said, NAMES)
