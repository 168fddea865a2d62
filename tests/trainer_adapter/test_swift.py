"""ms-swift's shape, as recorded of 4.6: a class by name, made with the settings, called with a process's batch."""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from fated_rewards import FATES

from rewardkit import ConfigError, DataError, MissingColumnError
from trainer_adapter import swift
from trainer_adapter.trainer_rewards import close_all

BOTH = "fated_rewards:right,fated_rewards:brave"


@pytest.fixture(autouse=True, scope="module")
def _ended() -> Iterator[None]:
    yield
    close_all()


def _keywords(rows: int, prompts: list[str] | None = None) -> dict[str, Any]:
    """What ms-swift passes beside the completions: columns, its own lists, and objects."""
    return {
        "answer": ["4"] * rows,
        "messages": [[{"role": "user", "content": "2+2="}, {"role": "assistant", "content": "4"}]] * rows,
        "prompt_id": prompts or ["p"] * rows,
        "request_id": [f"r{row}" for row in range(rows)],
        "response_token_ids": [[row] for row in range(rows)],
        "trainer_state": SimpleNamespace(global_step=3),
    }


def _made(registered: type[Any], **settings: Any) -> Any:
    """An instance, as ms-swift makes one: with its settings and what the signature asks for."""
    names = [name for name in inspect.signature(registered.__init__).parameters if name not in ("self", "args")]
    assert ["keywords"] == names
    return registered(args=SimpleNamespace(**settings))


@pytest.mark.parametrize("is_async", [False, True], ids=["ORM", "AsyncORM"])
def test_each_fate_is_told_as_the_table_says(is_async: bool, caplog: pytest.LogCaptureFixture) -> None:
    """All numbers are floats; the unknown one is the default, and that is told once."""
    orm = _made(swift.swift_async_orm(BOTH, default=-5) if is_async else swift.swift_orm(BOTH, default=-5))
    assert is_async == inspect.iscoroutinefunction(orm.__call__)
    texts = list(FATES)
    with caplog.at_level(logging.WARNING, "trainer_adapter"):
        for _ in range(2):
            called = orm(texts, **_keywords(len(texts)))
            numbers = asyncio.run(called) if is_async else called
    assert [2.0, -5.0, -1.0, -5.0] == numbers
    assert {float} == set(map(type, numbers))
    (warning,) = caplog.messages
    assert "1 of 4 rewards are unknown, and ms-swift takes -5 for each: reward 'right'" in warning


@pytest.mark.parametrize("registered", [swift.ORM, swift.AsyncORM], ids=["ORM", "AsyncORM"])
def test_registered_as_they_are_they_take_the_environments_rewards(
    registered: type[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also a reward of groups, whose size ms-swift tells."""
    monkeypatch.setenv("REWARDKIT_REWARDS", "fated_rewards:rank")
    called = _made(registered, num_generations=2)(["aa", "b"], **_keywords(2))
    assert [1.0, 0.0] == (asyncio.run(called) if inspect.iscoroutine(called) else called)
    with pytest.raises(ConfigError, match=r"--num_generations"):
        _made(registered)


def test_faults_leave_the_others_scores_alone() -> None:
    """A batch with a fifth of faulty rows has the right number in every other row."""
    texts = ["4", "5", "4", "5", "unknown"] * 40
    orm = _made(swift.swift_orm(BOTH))
    assert [{"4": 2.0, "5": 1.0, "unknown": 0.0}[text] for text in texts] == orm(texts, **_keywords(200))


def test_whole_groups_are_scored_and_parts_are_refused() -> None:
    """A process's batch is cut into the groups of its prompts; a part of one names the settings."""
    orm = _made(swift.swift_orm("fated_rewards:rank", group_size=2), num_generations=2)
    assert [1.0, 0.0, 0.0, 1.0] == orm(["aa", "b", "a", "bb"], **_keywords(4, ["p", "q", "p", "q"]))
    with pytest.raises(DataError, match=r"--per_device_train_batch_size.*--num_generations"):
        orm(["aa", "b", "a"], **_keywords(3, ["p", "q", "p"]))


def test_a_group_whose_reward_takes_every_column_stays_whole() -> None:
    """Ids that ms-swift gives each completion part no group."""
    orm = swift.swift_orm("fated_rewards:rank_by_all", group_size=2, workers=1)()
    assert [0.0, 1.0, 1.0, 0.0] == orm(["4", "44", "55", "5"], **_keywords(4, ["p", "p", "q", "q"]))


def test_bad_input_names_swifts_settings(tmp_path: Path) -> None:
    """Group rewards without a size or with another one, a file that is not there, and a column that did not come."""
    with pytest.raises(ConfigError, match="--num_generations"):
        swift.swift_orm("fated_rewards:rank")
    with pytest.raises(ConfigError, match="group_size=2, but --num_generations is 8"):
        _made(swift.swift_orm("fated_rewards:rank", group_size=2), num_generations=8)
    with pytest.raises(Exception, match=r"ms-swift: .*--reward_funcs"):
        swift.swift_orm(str(tmp_path / "nowhere.py"))
    with pytest.raises(MissingColumnError, match=r"ms-swift: .*'answer'.*--columns"):
        _made(swift.swift_orm(BOTH))(["4"])


def test_the_prompt_is_the_conversation_without_its_answer() -> None:
    """A reward sees what the model was asked."""
    assert [4.0] == _made(swift.swift_orm("fated_rewards:asked"))(["4"], **_keywords(1))
