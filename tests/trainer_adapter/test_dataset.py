"""One reading of rows: what a reward sees of a file is the same from a command and from a training."""

from __future__ import annotations

import gzip
import json
import pickle
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import pytest
import tiny_grpo
from hypothesis import given, settings
from hypothesis import strategies as st

from rewardkit import DataError, Message, Reward, Rollout, Runtime, Score, reward
from rewardkit.record.reader import RunReader
from rewardkit.rows import read_rows
from trainer_adapter import RewardAdapter

pytest.importorskip("trl", reason="the extra train is not installed")
import datasets  # type: ignore[import-untyped]

from trainer_adapter.config import GRPOConfig
from trainer_adapter.dataset import read_dataset
from trainer_adapter.train import train

pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning:torch"),
    pytest.mark.filterwarnings("ignore::UserWarning:peft"),
]

ANNOTATIONS: Mapping[str, Any] = {
    "none": None,
    "Any": Any,
    "object": object,
    "str": str,
    "int": int,
    "float": float,
    "bool": bool,
    "int | str": int | str,
    "float | None": float | None,
    "str | None": str | None,
    "list": list,
    "list[int]": list[int],
    "list[str]": list[str],
    "list[float | str]": list[float | str],
    "list[dict]": list[dict],
    "dict": dict,
    "dict[str, int]": dict[str, int],
    "dict[str, Any]": dict[str, Any],
    "list | str": list | str,
    "dict | list | None": dict | list | None,
    "tuple[int, ...]": tuple[int, ...],
    "set[str]": set[str],
    "Literal": Literal["a", 1, True, None],
}


def _report(value: object) -> Score:
    """Return a score that tells what a reward saw, type and content."""
    text = f"{type(value).__name__} {value!r}"
    return Score(1.0 + zlib.crc32(text.encode("utf-8", "backslashreplace")), reason=text[:300])


def _reward_of(name: str, annotation: Any) -> Reward[..., Any]:
    def see(completion: str, value) -> Score:  # type: ignore[no-untyped-def]
        return _report(value)

    see.__name__ = name
    if annotation is not None:
        see.__annotations__["value"] = annotation
    return reward(see)


REWARDS = [_reward_of(f"as_{index}", annotation) for index, annotation in enumerate(ANNOTATIONS.values())]

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12) | st.sampled_from(
    ["", "3", "3.0", "null", "true", "None", "[1, 2]", '{"a": 1}', "a\u2028b", "\x00", "NaN", "1e400", '"quoted"']
)
NUMBERS = st.integers() | st.integers(-(2**80), 2**80) | st.floats(allow_nan=False, allow_infinity=False)
SCALARS = st.none() | st.booleans() | NUMBERS | TEXT
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3), max_leaves=8
)
KINDS: Sequence[st.SearchStrategy[Any]] = [
    st.booleans(),
    st.integers(-5, 5),
    NUMBERS,
    TEXT,
    st.lists(st.integers() | st.none(), max_size=3),
    st.lists(SCALARS, max_size=3),
    st.dictionaries(st.sampled_from("abc"), SCALARS, max_size=3),
    VALUES,
]
COLUMNS = st.one_of(*(st.lists(kind | st.none(), min_size=1, max_size=4) for kind in KINDS))


def _as_trl_asks(adapter: RewardAdapter, rows: Any) -> list[list[float | None]]:
    """Return what each reward function answers for rows as TRL's dataloader yields them."""
    examples = [pickle.loads(pickle.dumps(rows[index])) for index in range(len(rows))]
    columns = {name: [example[name] for example in examples] for name in examples[0] if name != "prompt"}
    texts = [f"completion {index}" for index in range(len(rows))]
    return [
        function(
            prompts=[example["prompt"] for example in examples],
            completions=texts,
            completion_ids=[[1]] * len(rows),
            **columns,
        )
        for function in adapter.reward_funcs
    ]


def test_a_reward_sees_the_same_in_training_as_from_a_command(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    """For any values and annotation, whatever stands beside them in the column: over 5,000 pairs with --full."""
    pairs = 0
    examples = 240 if request.config.getoption("--full") else 60
    with Runtime(REWARDS, lane="inline") as runtime, RewardAdapter(REWARDS, lane="inline") as adapter:

        @settings(max_examples=examples)
        @given(COLUMNS, st.sampled_from(["rows.jsonl", "rows.json", "rows.jsonl.gz"]))
        def law(values: list[Any], name: str) -> None:
            nonlocal pairs
            rows = [{"prompt": f"p{index}", "value": value} for index, value in enumerate(values)]
            text = json.dumps(rows) if name == "rows.json" else "".join(json.dumps(row) + "\n" for row in rows)
            path = tmp_path / name
            path.write_bytes(gzip.compress(text.encode()) if name.endswith("gz") else text.encode())
            seen = read_rows(path)
            assert repr(values) == repr([row.values["value"] for row in seen])
            batch = runtime.score(
                [
                    Rollout(row.values["prompt"], f"completion {index}", {"value": row.values["value"]})
                    for index, row in enumerate(seen)
                ]
            )
            expected = [[outcome.score for outcome in batch[reward.name]] for reward in REWARDS]
            assert expected == _as_trl_asks(adapter, read_dataset(path))
            pairs += len(values) * len(REWARDS)

        law()
    assert (5_000 if examples > 100 else 1_000) <= pairs


def test_conversations_keep_the_keys_of_each_message(tmp_path: Path) -> None:
    """A tool call in one row gives the messages of another no empty one."""
    prompts = [
        [{"role": "user", "content": "a"}],
        [{"role": "assistant", "content": None, "tool_calls": [{"id": "1"}]}, {"role": "tool", "content": "b"}],
    ]
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(json.dumps({"prompt": prompt}) + "\n" for prompt in prompts))

    @reward
    def see(prompt: list[Message], completion: str) -> Score:
        return _report(prompt)

    with Runtime([see], lane="inline") as runtime, RewardAdapter([see], lane="inline") as adapter:
        here = runtime.score([Rollout(row.values["prompt"], "c") for row in read_rows(path)])["see"]
        assert [[outcome.score for outcome in here]] == _as_trl_asks(adapter, read_dataset(path))
    assert prompts == [row.values["prompt"] for row in read_rows(path)]


ODD = {
    "object": {"low": 1, "high": None},
    "text": "3",
    "list": [1, "a", [2.5]],
    "big": 10**20,
    "none": None,
    "flag": True,
}


def _odd_rows(path: Path) -> Path:
    rows = [{"prompt": f"{index} + 1 =", "value": value} for index, value in enumerate(ODD.values())] * 2
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.mark.trainers
def test_rewards_of_a_training_see_what_check_saw(tmp_path: Path) -> None:
    """A run over a file of objects, mixed and big values: the record has what an inline runtime reports of the file."""
    path = _odd_rows(tmp_path / "rows.jsonl")

    @reward
    def see(prompt: str, completion: str, value: Any) -> Score:
        return _report((prompt, value))

    rows = read_rows(path)
    with Runtime([see], lane="inline") as runtime:
        here = runtime.score([Rollout(row.values["prompt"], "", {"value": row.values["value"]}) for row in rows])
    expected = {outcome.reason for outcome in here["see"]}
    model = str(tiny_grpo.tiny_model(tmp_path / "tiny", chat=False))
    config = GRPOConfig(
        base_model=model, reward_fns=[see], train_steps=6, num_generations=2, effective_batch_size=4, rank=2,
        sampling_params={"max_tokens": 4}, use_cpu=True, workers=1, seed=0,
    )  # fmt: skip
    run = train(config, path, tmp_path / "run")
    with RunReader(run.output_dir) as reader:
        reasons = [row.outcomes["see"].reason for row in reader.completions()]
    assert 24 == len(reasons)
    assert set(reasons) == expected


def test_a_data_set_of_datasets_is_read_from_its_folder_and_its_files(tmp_path: Path) -> None:
    """Saved folder, Arrow file and Parquet: each gives the values that were saved, of JSON columns too."""
    rows = [{"prompt": f"p{index}", "value": value} for index, value in enumerate(ODD.values())]
    ours = read_dataset(rows)
    ours.save_to_disk(str(tmp_path / "ours"))
    ours.to_parquet(str(tmp_path / "ours.parquet"))
    theirs = datasets.Dataset.from_list([{"prompt": "p", "n": 1, "xs": ["a"]}, {"prompt": "q", "n": None, "xs": []}])
    theirs.save_to_disk(str(tmp_path / "theirs"))
    assert rows == [row.values for row in read_rows(tmp_path / "ours")]
    assert rows == [row.values for row in read_rows(tmp_path / "ours.parquet")]
    assert theirs.to_list() == [row.values for row in read_rows(tmp_path / "theirs")]
    assert theirs.to_list() == [row.values for row in read_rows(next((tmp_path / "theirs").glob("*.arrow")))]
    assert rows == list(datasets.load_from_disk(str(tmp_path / "ours")))
    assert rows == read_dataset(tmp_path / "ours").to_list()


def test_json_columns_of_datasets_are_values(tmp_path: Path) -> None:
    """``datasets`` keeps mixed values as JSON of its own."""
    mixed = datasets.Dataset.from_list(
        [{"prompt": "p", "value": {"a": 1}}, {"prompt": "q", "value": {"b": [1, "x"]}}], on_mixed_types="use_json"
    )
    mixed.save_to_disk(str(tmp_path / "mixed"))
    assert [{"a": 1}, {"b": [1, "x"]}] == [row.values["value"] for row in read_rows(tmp_path / "mixed")]


def test_a_folder_of_splits_names_them(tmp_path: Path) -> None:
    """One of them has to be chosen."""
    split = datasets.Dataset.from_list([{"prompt": "p"}])
    datasets.DatasetDict({"train": split, "test": split}).save_to_disk(str(tmp_path / "both"))
    with pytest.raises(DataError, match=r"both: holds several splits; name one: .*both/train, .*both/test$"):
        read_rows(tmp_path / "both")
    assert [{"prompt": "p"}] == [row.values for row in read_rows(tmp_path / "both" / "test")]


def test_values_stay_when_a_data_set_is_worked_on() -> None:
    """Selected, shuffled, mapped, concatenated and pickled, the values of a column of JSON are the same."""
    rows = read_dataset([{"prompt": "p", "value": value} for value in ODD.values()])
    values = list(ODD.values())
    assert values == list(rows["value"]) == [row["value"] for row in rows] == rows.to_dict()["value"]
    assert values[::-1] == list(rows.select(range(len(values) - 1, -1, -1))["value"])
    assert values == list(rows.map(lambda row: {"size": 1})["value"])
    assert values * 2 == list(datasets.concatenate_datasets([rows, rows])["value"])
    assert values == list(pickle.loads(pickle.dumps(rows))["value"])
    assert sorted(map(repr, values)) == sorted(map(repr, rows.shuffle(seed=0)["value"]))


@pytest.mark.parametrize(
    "text",
    [
        "",
        '{"prompt": ""}',
        '{"prompt": "p"}\n{"prompt": [{"role": "user", "content": "q"}]}',
        '{"prompt": "p", "n": NaN}',
        '{"prompt": "\\ud800"}',
        '{"prompt": "p", "prompt": "q"}',
        '{"prompt": "p"}\n{"promt": "q"}',
        '[{"prompt": "p"}]',
        "prompt,answer\np,1",
    ],
)
def test_a_training_refuses_a_file_in_the_words_of_a_command(text: str, tmp_path: Path) -> None:
    """Both read it with one reader."""
    path = tmp_path / "rows.jsonl"
    path.write_text(text)
    with pytest.raises(DataError) as of_commands:
        read_rows(path)
    with pytest.raises(DataError) as of_training:
        read_dataset(path)
    assert str(of_commands.value) == str(of_training.value)
