"""The guide's functions for trainers without an adapter, called in each trainer's own shape, as recorded of them."""

from __future__ import annotations

import asyncio
import importlib
import multiprocessing
import pickle
import re
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from types import ModuleType

import pytest

from rewardkit import RewardFailedError
from trainer_adapter.trainer_rewards import close_all

TEXTS = ["4", "5", "fail", "skip", "unknown"]
NUMBERS = [1.0, 0.2, -0.2, 0.0, 0.0]
"""What the weights 0.8 and 0.2 make of the rewards ``right`` and ``brave``; 0.0 where there is no total."""
AXOLOTL = """
from fated_rewards import brave, right
from trainer_adapter import RewardAdapter
adapter = RewardAdapter([right, brave], weights=[0.8, 0.2], workers=1)
right_reward, brave_reward = adapter.reward_funcs
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder of modules, which trainers' processes import from too."""
    made = tmp_path_factory.mktemp("snippets")
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(made))
        yield made
    close_all()


@pytest.fixture(scope="module")
def snippets(folder: Path, root: Path) -> ModuleType:
    """The guide's functions as one module of a user's, over rewards that fail on request."""
    page = (root / "docs/how-to/use-with-other-trainers.md").read_text()
    blocks = re.findall(r"```python\n(.*?)```", page.split("Each function below")[1], re.DOTALL)
    text = "".join(block for block in blocks if "class SumsEnv" not in block)
    text = re.sub(r"^print\(.*\)\n", "", text, flags=re.MULTILINE)
    (folder / "my_trainer.py").write_text(text.replace('"sums.py"', '"fated_rewards:right,fated_rewards:brave"'))
    return importlib.import_module("my_trainer")


def test_areal_asks_in_a_process_of_its_own_and_hears_of_an_unknown_reward(snippets: ModuleType) -> None:
    """By the function's name, with the dataset's row; an error is what AReaL tries again and then leaves out."""
    row = {"answer": "4", "messages": [{"role": "user", "content": "2+2="}], "query_id": "7"}
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        asked = [pool.submit(snippets.areal_reward, "2+2=", text, [1, 2], [3], **row) for text in TEXTS]
        assert NUMBERS[:4] == [one.result(120) for one in asked[:4]]
        with pytest.raises(RewardFailedError, match="nobody knows"):
            asked[4].result(120)


def test_easyr1_gets_every_key_of_every_response(snippets: ModuleType) -> None:
    """A batch with faults has a number in each, and the names of the first are those of all."""
    asked = [{"response": text, "response_length": 3, "ground_truth": "4"} for text in TEXTS]
    told = snippets.compute_score(asked)
    assert NUMBERS == pytest.approx([one["overall"] for one in told])
    assert [0.0, 0.0, 0.0, 0.0, 1.0] == [one["unknown"] for one in told]
    assert 1 == len({frozenset(one) for one in told})
    assert {float} == {type(value) for one in told for value in one.values()}


def test_nemo_rl_gets_a_number_for_each_conversation(snippets: ModuleType) -> None:
    """The messages hold tokens as well, and the metadata more than the truth."""
    asked = [{"role": "user", "content": "2+2=", "token_ids": [1, 2]}]
    logs = [[*asked, {"role": "assistant", "content": text, "token_ids": [3]}] for text in TEXTS]
    told = snippets.nemo_rl_rewards(logs, [{"ground_truth": "4", "idx": place} for place in range(len(TEXTS))])
    assert NUMBERS == pytest.approx(told)


def test_tinker_gets_a_group_with_metrics(snippets: ModuleType) -> None:
    """A group's rewards come with all that is known; what its builder holds pickles."""
    told = asyncio.run(snippets.compute_group_rewards(TEXTS[:4], "4"))
    assert NUMBERS[:4] == pytest.approx([number for number, _ in told])
    assert [0.0, 0.0, 1.0, 0.0] == [metrics["failed"] for _, metrics in told]
    assert snippets.rewards.columns == pickle.loads(pickle.dumps(snippets.rewards)).columns


def test_axolotl_finds_functions_by_name_and_scores_in_its_workers(folder: Path) -> None:
    """``module.attr``, sent to processes; each call has a part of the batch, and a row without a total no score."""
    (folder / "my_axolotl.py").write_text(AXOLOTL)
    module = importlib.import_module("my_axolotl")
    part = {"prompts": ["2+2="] * 2, "completion_ids": [[1], [2]], "answer": ["4"] * 2, "trainer_state": None}
    with module.adapter, ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        functions = [getattr(module, name) for name in ("right_reward", "brave_reward")]
        told = [[pool.submit(one, completions=TEXTS[at : at + 2], **part) for at in (0, 3)] for one in functions]
        assert [[[1.0, 0.0], [None, None]], [[1.0, 1.0], [None, None]]] == [
            [o.result(120) for o in one] for one in told
        ]
