"""Folders that are no whole reward model are refused with what helps, and a head loses no precision."""

from __future__ import annotations

import json
import logging
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from builtin_rewards.reward_model import RewardModelDescription, RewardModelReward, write_description
from builtin_rewards.reward_model.loading import checkpoints_of
from rewardkit import ConfigError, Rollout

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
tiny = pytest.importorskip("tiny_reward_model")
saved_model: Callable[..., Path] = tiny.saved_model

pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning", "ignore::UserWarning")
SHAPE = {**tiny.SHAPE, "num_key_value_heads": 2}
FAMILIES: dict[str, Any] = {
    "llama": transformers.LlamaConfig, "qwen2": transformers.Qwen2Config, "bert": transformers.BertConfig,
    "roberta": transformers.RobertaConfig, "gpt2": transformers.GPT2Config, "deberta": transformers.DebertaV2Config,
    "gemma": transformers.Gemma2Config, "mistral": transformers.MistralConfig, "qwen3": transformers.Qwen3Config,
}  # fmt: skip


def without_tokenizer(family: str, folder: Path, tokenizer_config: dict[str, Any] | None = None) -> Path:
    """Save a model's weights without the files of a tokenizer."""
    model = transformers.AutoModelForSequenceClassification.from_config(FAMILIES[family](**SHAPE))
    model.save_pretrained(folder)
    if tokenizer_config is not None:
        (folder / "tokenizer_config.json").write_text(json.dumps(tokenizer_config))
    return folder


@pytest.mark.parametrize("tokenizer_config", [None, {}, {"tokenizer_class": "PreTrainedTokenizerFast"}])
@pytest.mark.parametrize("family", FAMILIES)
def test_a_whole_model_without_its_tokenizer_is_refused(
    family: str, tokenizer_config: dict[str, Any] | None, tmp_path: Path
) -> None:
    """When the reward is made, whatever transformers would make of its absence."""
    folder = without_tokenizer(family, tmp_path / "m", tokenizer_config)
    with pytest.raises(ConfigError, match=r"m: it has weights and no tokenizer .*; save the one"):
        RewardModelReward(folder, device="cpu")


def test_a_tokenizer_without_words_is_refused(tmp_path: Path) -> None:
    """One that somebody saved after transformers had made it of nothing."""
    folder = without_tokenizer("qwen2", tmp_path / "m")
    transformers.AutoTokenizer.from_pretrained(str(folder)).save_pretrained(folder)
    with pytest.raises(ConfigError, match="its tokenizer has no words; save the one"):
        RewardModelReward(folder, device="cpu").score_batch([Rollout("?", "a cat")])


def test_an_adapter_takes_the_tokenizer_of_its_base(tmp_path: Path) -> None:
    """And is refused where neither has one."""
    peft = pytest.importorskip("peft")
    base = saved_model(tmp_path / "base")
    model = transformers.AutoModelForSequenceClassification.from_pretrained(base)
    peft.get_peft_model(model, peft.LoraConfig(task_type="SEQ_CLS", r=2)).save_pretrained(tmp_path / "adapter")
    (score,) = RewardModelReward(tmp_path / "adapter", device="cpu").score_batch([Rollout("?", "a cat")])
    assert isinstance(score, float)
    for path in base.glob("token*"):
        path.unlink()
    with pytest.raises(ConfigError, match="base: it has weights and no tokenizer"):
        RewardModelReward(tmp_path / "adapter", device="cpu")


@pytest.mark.parametrize(("kind", "head"), [("llama", "sequence"), ("bert", "sequence"), ("llama", "token")])
@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_the_head_computes_in_float32(kind: str, head: str, dtype: str, tmp_path: Path) -> None:
    """With its weights as they stand in the file; the rest has the dtype that was asked for."""
    folder = saved_model(tmp_path / "m", kind, head=head)
    exact = transformers.AutoModelForSequenceClassification if head == "sequence" else None
    reward = RewardModelReward(folder, device="cpu", dtype=dtype, text_form="chat", aggregate=None)
    model = reward.function.scorer().members[0].model  # type: ignore[attr-defined]
    kinds = {name.partition(".")[0]: weight.dtype for name, weight in model.named_parameters()}
    base = model.base_model_prefix
    assert getattr(torch, dtype) == kinds.pop(base)
    assert [torch.float32] == [*{*kinds.values()}]
    if exact is not None:
        weights = exact.from_pretrained(folder).state_dict()
        for name, weight in model.state_dict().items():
            assert name.startswith(base) or torch.equal(weights[name], weight)
    scores = reward.score_batch([Rollout("is it well ?", text) for text in ("the cat sat", "badly", "a " * 20)])
    assert [float] * 3 == [type(score) for score in scores]


def test_near_scores_do_not_tie_in_bfloat16(tmp_path: Path) -> None:
    """A head whose scores lie near 100 tells texts apart that bfloat16 would round to the same half."""
    folder = saved_model(tmp_path / "m")
    from safetensors.torch import load_file, save_file

    weights = load_file(folder / "model.safetensors")
    weights["score.weight"] *= 0.01
    weights["score.weight"][0, :2] += 0.0001
    save_file(weights, folder / "model.safetensors", {"format": "pt"})
    rollouts = [Rollout("is it well ?", "the cat " * count) for count in range(1, 9)]
    scores = RewardModelReward(folder, device="cpu", dtype="bfloat16", text_form="chat").score_batch(rollouts)
    rounded = torch.tensor([float(score) for score in scores if isinstance(score, float)])
    assert 8 == len({*rounded.tolist()})
    assert not torch.equal(rounded, rounded.bfloat16().float())


def test_an_adapters_head_is_exact_too(tmp_path: Path) -> None:
    """PEFT copies the base's head before it reads the adapter's own."""
    peft = pytest.importorskip("peft")
    base = saved_model(tmp_path / "base")
    model = transformers.AutoModelForSequenceClassification.from_pretrained(base)
    torch.manual_seed(3)
    adapted = peft.get_peft_model(model, peft.LoraConfig(task_type="SEQ_CLS", r=2))
    with torch.no_grad():
        adapted.base_model.model.score.modules_to_save["default"].weight.copy_(torch.randn(1, 32) / 3)
    expected = adapted.base_model.model.score.modules_to_save["default"].weight.detach().clone()
    adapted.save_pretrained(tmp_path / "adapter")
    reward = RewardModelReward(tmp_path / "adapter", device="cpu", dtype="bfloat16", text_form="chat")
    head = reward.function.scorer().members[0].classifier.score  # type: ignore[attr-defined]
    assert torch.equal(expected, head.modules_to_save["adapter_0"].weight)


@pytest.mark.parametrize("kind", ["llama", "bert"])
@pytest.mark.parametrize("says", [None, "chat", "description"])
def test_a_guessed_form_is_warned_of(kind: str, says: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Once a reward, unless an option or the folder says it."""
    folder = saved_model(tmp_path / "m", kind)
    if says == "description":
        write_description(folder, RewardModelDescription())
    with caplog.at_level(logging.WARNING, logger="rewardkit"):
        reward = RewardModelReward(folder, device="cpu", text_form="chat" if says == "chat" else None)
        reward.score_batch([Rollout("?", "a cat")])
    warnings = [record.getMessage() for record in caplog.records if "the form is a guess" in record.getMessage()]
    assert (0 if says else 1) == len(warnings)


@pytest.mark.parametrize("place", ["", "checkpoints"])
def test_a_trainers_folder_names_its_newest_checkpoint(place: str, tmp_path: Path) -> None:
    """By number, of those whose weights are there; that path is a reward model."""
    for step in (9, 10):
        saved_model(tmp_path / "out" / place / f"checkpoint-{step}")
    (tmp_path / "out" / place / "checkpoint-11").mkdir()  # killed while it was saved
    (tmp_path / "out" / "training_args.bin").write_bytes(b"")
    newest = checkpoints_of(tmp_path / "out")[-1]
    assert "checkpoint-10" == newest.name
    with pytest.raises(ConfigError, match=rf"no model; name one of them: {newest}$"):
        RewardModelReward(tmp_path / "out")
    assert np.isfinite(RewardModelReward(newest, device="cpu").score_batch([Rollout("?", "a cat")])).all()
    shutil.copytree(newest, tmp_path / "out", dirs_exist_ok=True)
    assert "out" == RewardModelReward(tmp_path / "out").name
