"""Completions that are scored while TRL generates others: the scores, order, groups and record of a plain training."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import tiny_grpo
from spread_rewards import messages_of, spread, standing
from tiny_grpo import ROWS, G
from trl_rows import read

import rewardkit
from rewardkit import ConfigError, MissingColumnError
from trainer_adapter import RewardAdapter
from trainer_adapter.early import EarlyScores
from trainer_adapter.generation import watched
from trainer_adapter.overlapped_rollout import BEGUN_EARLY

pytestmark = [tiny_grpo.third_party_warnings, pytest.mark.filterwarnings("ignore:You are using 'rollout_func'")]
LONG = {"max_completion_length": 40, "generation_kwargs": {"suppress_tokens": [0, *range(42, 265)]}}
"""Completions of some forty kinds of tokens, of which one is the end: few are as long as the longest."""


def rows_of(chat: bool) -> list[dict[str, Any]]:
    """Return prompts with an answer each, as texts or messages."""
    texts = [f"what is {number} and two" for number in range(8)]
    prompts: Sequence[Any] = [[{"role": "user", "content": text}] for text in texts] if chat else texts
    return [{"prompt": prompt, "answer": f"{number}"} for number, prompt in enumerate(prompts)]


def trained(tiny: Path, folder: Path, *, chat: bool = False, **options: Any) -> tuple[tiny_grpo.Run, list[Any]]:
    """Return a training of two steps and an evaluation, with the rows of its record."""
    with RewardAdapter([spread, standing, messages_of], workers=2, record=folder) as adapter:
        run = tiny_grpo.train(
            tiny, adapter, rows_of(chat), steps=2, attach=True, eval_rows=rows_of(chat)[:4], **LONG, **options
        )
        adapter.close()
    return run, [row for split in ("train", "eval") for row in read(folder, split)]


@pytest.mark.cases(1)
@pytest.mark.trainers
@pytest.mark.parametrize("chat", [False, True], ids=["texts", "messages"])
def test_a_training_is_the_same_with_and_without(tiny: Path, tmp_path: Path, chat: bool) -> None:
    """Completions, scores, what TRL logs of them and the record are equal; some were scored before the last ended."""
    plain, plain_rows = trained(tiny, tmp_path / "plain", chat=chat)
    early, early_rows = trained(tiny, tmp_path / "early", chat=chat, waves=1)
    for name, relay in plain.relays.items():
        calls = [(call["completions"], scores) for call, scores in relay.calls]
        assert calls == [(call["completions"], scores) for call, scores in early.relays[name].calls]
        assert plain.logged(f"rewards/{name}/mean") == early.logged(f"rewards/{name}/mean")
    assert 3 * ROWS == len(plain_rows)
    assert [_stable(row) for row in plain_rows] == [_stable(row) for row in early_rows]
    shares = early.logged(BEGUN_EARLY)
    assert 2 == len(shares)
    assert all(0.5 < share < 1 for share in shares)
    assert [] == plain.logged(BEGUN_EARLY)


def _stable(row: Any) -> Any:
    """Return what a recorded row has beside its times."""
    return row.split, row.step, row.prompt, row.completion, row.scores


@pytest.mark.full
@pytest.mark.trainers
def test_waves_are_whole_groups_in_their_order(tiny: Path, tmp_path: Path) -> None:
    """The prompts of a batch keep their places, and its groups their rows."""
    run, rows = trained(tiny, tmp_path / "waves", waves=3)
    sizes = {score // 100 for _, scores in run.relays["standing"].calls for score in scores if score is not None}
    assert {G} == sizes
    for call, _ in run.relays["spread"].calls:
        prompts = call["prompts"]
        assert prompts == [prompt for prompt in prompts[::G] for _ in range(G)]
    assert all(share >= 0.5 for share in run.logged(BEGUN_EARLY))
    assert rows


@pytest.mark.full
@pytest.mark.trainers
def test_a_trainer_that_is_not_known_overlaps_from_its_second_batch_on(
    tiny: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, "trainer_adapter"), RewardAdapter([spread], workers=1) as adapter:
        run = tiny_grpo.train(tiny, adapter, rows_of(False), steps=2, waves=1, **LONG)
    assert 1 == len(run.logged(BEGUN_EARLY))
    assert 1 == sum("adapter.attach(trainer)" in record.getMessage() for record in caplog.records)


def test_a_column_that_is_missing_is_told_before_the_training(tiny: Path) -> None:
    """The function adds no columns, unlike others of its kind."""
    with RewardAdapter([spread], lane="inline") as adapter, pytest.raises(MissingColumnError, match="'answer'"):
        tiny_grpo.train(tiny, adapter, [{"prompt": "a"}] * 8, steps=1, waves=1, attach=True)


def test_what_is_no_adapter_is_refused() -> None:
    with pytest.raises(ConfigError, match="expected a RewardAdapter"):
        rewardkit.overlap([spread])  # type: ignore[arg-type]
    with RewardAdapter([spread], lane="inline") as adapter:
        for waves in (0, True, 1.5):
            with pytest.raises(ConfigError, match=f"waves={waves}"):
                rewardkit.overlap(adapter, waves=waves)  # type: ignore[arg-type]
        with pytest.raises(ConfigError, match="SimpleNamespace has no _generate_and_score_completions"):
            rewardkit.overlap(adapter).attach(SimpleNamespace())


def test_scores_of_rewards_before_a_change_are_given_up() -> None:
    """A batch that was begun with other rewards, or in another step, does not answer."""
    from rewardkit import Rollout

    with RewardAdapter([spread], workers=1) as adapter:
        early = adapter.begin_early(3, 0.5)
        assert isinstance(early, EarlyScores)
        rollout = Rollout("p", "ab", {"answer": "1"})
        early.add({0: rollout}, [])
        assert early.score([rollout], 4, 0.5) is None
        early = adapter.begin_early(3, 0.5)
        assert early is not None
        early.add({0: rollout}, [])
        adapter.take(adapter.runtime.changeable, frozenset())  # type: ignore[arg-type]
        assert early.score([rollout], 3, 0.5) is None
        early = adapter.begin_early(3, 0.5)
        assert early is not None
        early.add({0: rollout}, [])
        scored = early.score([rollout], 3, 0.5)
        assert scored is not None
        assert [2.0] == scored.totals


class Engine:
    """Stands for vLLM's engine: requests end in another order than they came in, two a step."""

    def __init__(self) -> None:
        self.waiting: list[str] = []

    def add_request(self, request_id: str, prompt: Any) -> None:
        """Take a request."""
        self.waiting.append(request_id)

    def step(self) -> list[Any]:
        """Return two requests that have ended, and one that has not."""
        ended = [self.waiting.pop() for _ in range(min(2, len(self.waiting)))]
        outputs = [(name, True) for name in ended] + [(name, False) for name in self.waiting[:1]]
        return [
            SimpleNamespace(request_id=name, finished=done, outputs=[SimpleNamespace(token_ids=(int(name), 1))])
            for name, done in outputs
        ]


def test_requests_that_end_in_vllms_engine_are_told_by_their_places() -> None:
    """Only in that context, in which the engine's methods are replaced."""
    engine, seen = Engine(), list[dict[int, list[int]]]()
    generation = SimpleNamespace(llm=SimpleNamespace(llm_engine=engine), tensor_parallel_size=1)
    trainer = SimpleNamespace(use_vllm=True, vllm_generation=generation)
    with watched(trainer, lambda ended: seen.append(dict(ended))):
        for number in range(30, 33):
            engine.add_request(f"{number}", None)
        while engine.waiting:
            engine.step()
    assert [{2: [32, 1], 1: [31, 1]}, {0: [30, 1]}] == seen
    assert {"waiting"} == set(vars(engine))
    generation.tensor_parallel_size = 2  # each process sees the requests of all
    with watched(trainer, lambda ended: seen.append(dict(ended))):
        assert {"waiting"} == set(vars(engine))
