"""What verl's manager checks as it is made: rewards that load, and data that has their columns."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rewardkit import ConfigError, RewardLoadError
from trainer_adapter import verl
from trainer_adapter.trainer_rewards import close_all
from trainer_adapter.verl_start import check_start


@pytest.fixture(autouse=True, scope="module")
def _ended() -> Iterator[None]:
    yield
    close_all()


async def _with_kwargs(function: Any, settings: Any, *args: Any, **kwargs: Any) -> Any:
    return await function(*args, **kwargs, **settings)


def _as_verl_has_it(function: Any, **settings: Any) -> Any:
    return functools.partial(_with_kwargs, function, settings)


def _config(*files: Path) -> dict[str, Any]:
    return {"data": {"train_files": [str(one) for one in files]}}


def _file(folder: Path, **extra_info: Any) -> Path:
    path = folder / f"{'_'.join(extra_info)}.parquet"
    pq.write_table(pa.Table.from_pylist([{"data_source": "sums", "extra_info": extra_info}]), path)
    return path


def test_a_column_that_the_data_lacks_is_named_with_its_file(tmp_path: Path) -> None:
    """Each file is looked at; columns that verl sends, and fields that are there, are not missing."""
    whole, lacking = _file(tmp_path, index=0, hardness=3), _file(tmp_path, index=0)
    hard, right = (_as_verl_has_it(verl.verl_score(f"fated_rewards:{name}")) for name in ("hard", "right"))
    check_start(hard, _config(whole))
    check_start(right, _config(whole, lacking))
    with pytest.raises(ConfigError, match=r"verl: .*'hardness'.*index\.parquet, of data\.train_files.*only index"):
        check_start(hard, _config(whole, lacking))


def test_settings_without_a_file_of_ones_own_are_made_at_the_start() -> None:
    """``pkg://trainer_adapter.verl`` makes its rewards with the first call otherwise."""
    with pytest.raises(RewardLoadError, match=r"verl: .*nowhere\.py"):
        check_start(_as_verl_has_it(verl.compute_score, rewards="nowhere.py"), {})
    with pytest.raises(ConfigError, match=r"actor_rollout_ref\.rollout\.n"):
        check_start(_as_verl_has_it(verl.compute_score, rewards="fated_rewards:rank"), {})
    check_start(_as_verl_has_it(verl.compute_score, rewards="fated_rewards:right", unused=1), {})


def test_what_cannot_be_told_is_left_to_the_first_completion(tmp_path: Path) -> None:
    """Data elsewhere, of another kind, or whose fields are no columns of parquet; and functions that are not ours."""
    text = tmp_path / "text.parquet"
    pq.write_table(pa.table({"extra_info": ["{}"]}), text)
    lines = tmp_path / "train.jsonl"
    lines.write_text("{}\n")
    hard = _as_verl_has_it(verl.verl_score("fated_rewards:hard"))
    check_start(hard, _config(text, lines, tmp_path / "nowhere.parquet"))
    check_start(hard, {"data": {"train_files": "hdfs://there/train.parquet"}})
    check_start(hard, {"data": None})
    check_start(_as_verl_has_it(print), _config(_file(tmp_path, index=0)))
