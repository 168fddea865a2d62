"""Texts that are computed side by side score as transformers scores each alone, in every architecture that packs."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from builtin_rewards.reward_model import (
    RewardModelDescription,
    RewardModelReward,
    ScoreReference,
    encode_text,
    packing,
    scorer,
    write_description,
)
from builtin_rewards.reward_model.packing import ATTENTION, Pack, can_pack
from rewardkit import ConfigError, Rollout

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
tiny = pytest.importorskip("tiny_reward_model")

pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning", "ignore::UserWarning")
SHAPE = {**tiny.SHAPE, "num_key_value_heads": 2}
PACKED: dict[str, dict[str, Any]] = {
    "Llama": {}, "Qwen2": {}, "Qwen3": {}, "Mistral": {"sliding_window": 5}, "Gemma": {}, "Bert": {}, "Roberta": {},
    "DistilBert": {}, "ModernBert": {}, "GPT2": {}, "GPTNeoX": {}, "Phi3": {},
}  # fmt: skip
"""Families that are packed, with what they have beside the shape."""
PADDED = ("DebertaV2", "Bloom", "Gemma2", "Falcon")
"""Families whose attention computes what the packed one does not: they are padded."""
TEXTS = ["a cat", "the cat sat on mat . " * 4, "badly", "two and two is four . a dog ran", "the " * 30, "well ?"] * 3


def saved(folder: Path, family: str, head: str = "sequence", **beside: Any) -> Path:
    """Save a tiny model of a family with random weights, and a tokenizer of whole words."""
    torch.manual_seed(1)
    encoder = family in ("Bert", "Roberta", "DistilBert", "ModernBert", "DebertaV2")
    tiny.saved_tokenizer(folder, bert=encoder)
    path: Path = tiny.saved_of(getattr(transformers, f"{family}Config")(**{**SHAPE, **beside}), folder, head)
    return path


def scores_alone(folder: Path, texts: list[str]) -> list[float]:
    """Return transformers' own score of each text."""
    model = transformers.AutoModelForSequenceClassification.from_pretrained(folder).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    scores = []
    for text in texts:
        ids = encode_text(tokenizer, "is it well ?", text, max_length=60).ids
        with torch.inference_mode():
            scores.append(float(model(torch.tensor([ids])).logits[0, 0]))
    return scores


@pytest.mark.parametrize("family", [*PACKED, *PADDED])
@pytest.mark.parametrize("budget", [None, 50])
def test_packed_texts_score_as_transformers_scores_each_alone(family: str, budget: int | None, tmp_path: Path) -> None:
    """Within 1e-5 in float32, all in one row or in several, and one alone."""
    folder = saved(tmp_path / "m", family, **PACKED.get(family, {}))
    reward = RewardModelReward(folder, device="cpu", text_form="chat", token_budget=budget, max_length=60)
    (member,) = reward.function.scorer().members  # type: ignore[attr-defined]
    assert (family in PACKED) == member.packs
    expected = scores_alone(folder, TEXTS)
    assert np.ptp(expected) > 1e-2
    rollouts = [Rollout("is it well ?", text) for text in TEXTS]
    np.testing.assert_allclose(reward.score_batch(rollouts), expected, atol=1e-5)
    np.testing.assert_allclose(reward.score_batch(rollouts[1:2]), expected[1:2], atol=1e-5)


@pytest.mark.parametrize("family", ["Llama", "Bert"])
def test_heads_of_tokens_are_packed_too(family: str, tmp_path: Path) -> None:
    """A model of outcomes has in a row the probabilities that it has alone."""
    folder = saved(tmp_path / "m", family, head="token")
    reward = RewardModelReward(folder, device="cpu", text_form="chat", max_length=60)
    rollouts = [Rollout("is it well ?", text) for text in TEXTS]
    assert reward.function.scorer().members[0].packs  # type: ignore[attr-defined]
    alone = [reward.score_batch([rollout])[0] for rollout in rollouts]
    np.testing.assert_allclose(reward.score_batch(rollouts), alone, atol=1e-5)


def test_threads_make_tokens_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Hundreds of texts in chunks of two have the scores that each has alone, whatever thread read them."""
    monkeypatch.setattr(scorer, "_CHUNK", 2)
    folder = saved(tmp_path / "m", "Llama")
    reward = RewardModelReward(folder, device="cpu", text_form="chat", max_length=60)
    expected = scores_alone(folder, TEXTS[:6])
    results = reward.score_batch([Rollout("is it well ?", text) for text in TEXTS[:6] * 40])
    np.testing.assert_allclose(results, expected * 40, atol=1e-5)


@pytest.mark.parametrize(
    ("descriptions", "readings"),
    [
        ([{}, {}], 1),
        ([{"reference": ScoreReference.of([0.0, score], "held out")} for score in (1.0, 2.0)], 1),
        ([{"shows": "answer"}, {"shows": "all"}], 2),
    ],
    ids=["alike", "of other references", "that read other texts"],
)
def test_members_with_one_tokenizer_share_what_it_read(
    descriptions: list[dict[str, Any]], readings: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An ensemble makes the tokens of a text once, unless its members read other parts of it."""
    folders = [saved(tmp_path / name, "Llama") for name in "ab"]
    for folder, description in zip(folders, descriptions, strict=True):
        write_description(folder, RewardModelDescription(**description))
    reward = RewardModelReward(folders, device="cpu", text_form="chat")
    calls: list[object] = []
    encode = reward.function.scorer()._encode_or_error  # type: ignore[attr-defined]
    monkeypatch.setattr(reward.function.scorer(), "_encode_or_error", lambda *of: calls.append(of) or encode(*of))  # type: ignore[attr-defined]
    reward.score_batch([Rollout("?", text) for text in TEXTS])
    assert readings * len(TEXTS) == len(calls)


def test_outside_a_row_the_attention_is_transformers_own(tmp_path: Path) -> None:
    """A packed model that is called as usual, padded on either side, has the logits that it had."""
    folder = saved(tmp_path / "m", "Llama")
    model = transformers.AutoModelForSequenceClassification.from_pretrained(folder).eval()
    ids = torch.tensor([[7, 8, 9, 10, 11], [12, 13, 0, 0, 0], [0, 0, 0, 14, 15]])
    mask = (ids != 0).long()
    with torch.inference_mode():
        expected = model(ids, attention_mask=mask).logits
        assert can_pack(model)
        assert ATTENTION == model.config._attn_implementation
        assert torch.allclose(expected, model(ids, attention_mask=mask).logits, atol=1e-6)


def test_a_pack_holds_each_token_at_its_place() -> None:
    """Its positions begin anew with each text."""
    pack = Pack.of([np.array([5, 6, 7]), np.array([8]), np.array([9, 10])], torch.device("cpu"))
    assert [[5, 6, 7, 8, 9, 10]] == pack.ids.tolist()
    assert [[0, 1, 2, 0, 0, 1]] == pack.positions.tolist()
    assert ([0, 3, 4], [0, 3, 4, 6]) == (pack.starts.tolist(), pack.bounds.tolist())


@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("window", [None, 3])
def test_torchs_varlen_attention_is_asked_for_what_the_loop_computes(causal: bool, window: int | None) -> None:
    """Its window counts the tokens before one, and its texts are told by their bounds: checked by plain attention."""
    calls: list[dict[str, Any]] = []

    def varlen(query: Any, key: Any, value: Any, bounds: Any, *_: Any, **options: Any) -> Any:
        calls.append(options)
        left, right = options["window_size"]
        results = []
        for start, end in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
            places = torch.arange(end - start)
            behind = places[:, None] - places[None, :]
            mask = ((left < 0) | (behind <= left)) & ((right < 0) | (-behind <= right))
            parts = [part[start:end].transpose(0, 1)[None] for part in (query, key, value)]
            output = torch.nn.functional.scaled_dot_product_attention(
                *parts, attn_mask=mask, scale=options["scale"], enable_gqa=options["enable_gqa"]
            )
            results.append(output[0].transpose(0, 1))
        return torch.cat(results)

    torch.manual_seed(0)
    pack = Pack.of([np.arange(5), np.arange(1), np.arange(7)], torch.device("cpu"))
    query, key, value = torch.randn(1, 4, 13, 8), torch.randn(1, 2, 13, 8), torch.randn(1, 2, 13, 8)
    heads = packing._Heads(query, key, value, 0.3, causal, window)
    expected = packing._attention_by_text(pack, heads)
    actual = packing._attention_at_once(varlen, pack, heads)
    assert torch.allclose(expected, actual, atol=1e-5)
    assert len(calls) == 1


def test_models_of_one_process_share_a_queue(tmp_path: Path) -> None:
    """Calls of several come in one batch, each with its own model's score; one that does not load fails alone."""
    folders = [saved(tmp_path / name, family) for name, family in (("one", "Llama"), ("two", "Bert"))]
    broken = saved(tmp_path / "broken", "Llama")
    rewards = [RewardModelReward(folder, device="cpu", text_form="chat") for folder in (*folders, broken)]
    (broken / "model.safetensors").write_bytes(b"nothing")
    expected = [reward.score_batch([Rollout("?", text) for text in TEXTS[:4]]) for reward in rewards[:2]]

    async def ask() -> list[Any]:
        calls = [reward(prompt="?", completion=text) for text in TEXTS[:4] for reward in rewards]
        return await asyncio.gather(*calls, return_exceptions=True)

    results = asyncio.run(ask())
    for number in range(2):
        np.testing.assert_allclose([result.value for result in results[number::3]], expected[number], atol=1e-5)
    assert [ConfigError] * 4 == [type(result) for result in results[2::3]]
