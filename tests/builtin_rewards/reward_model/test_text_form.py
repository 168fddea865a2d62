"""A model that TRL trained on rows of text is scored on the tokens that TRL gave it."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest
from tiny_grpo import third_party_warnings
from tiny_reward import tiny_decoder, tiny_encoder

pytest.importorskip("trl", reason="TRL's own trainer makes the tokens")

from builtin_rewards.reward_model import RewardModelReward, encode_text
from rewardkit import ConfigError, DataError, Rollout

pytestmark = [third_party_warnings, pytest.mark.filterwarnings("ignore::DeprecationWarning")]
ROWS = [
    {"prompt": "say a: ", "chosen": "good", "rejected": "bad"},
    {"prompt": "? ", "chosen": "a b c", "rejected": "d e"},
]


def started_by_trl(folder: Path, base: Path) -> Any:
    """TRL's trainer of a base on rows of text, not yet run."""
    import datasets
    import transformers
    import trl

    tokenizer = transformers.AutoTokenizer.from_pretrained(base)
    tokenizer.eos_token = tokenizer.eos_token or tokenizer.sep_token
    model = transformers.AutoModelForSequenceClassification.from_pretrained(base, num_labels=1)
    arguments = trl.RewardConfig(
        output_dir=str(folder), max_steps=1, report_to=[], use_cpu=True, bf16=False, disable_tqdm=True,
        save_strategy="no", gradient_checkpointing=False,
    )  # fmt: skip
    rows = datasets.Dataset.from_list(ROWS)
    return trl.RewardTrainer(model, args=arguments, train_dataset=rows, processing_class=tokenizer)


def base_of(kind: str, folder: Path) -> Path:
    if kind == "encoder":
        return tiny_encoder(folder)
    return tiny_decoder(folder, chat=kind == "chat")


@pytest.mark.parametrize("kind", ["no template", "chat", "encoder"])
def test_the_plain_form_is_what_trl_makes_of_text(kind: str, tmp_path: Path) -> None:
    """Of three kinds of tokenizers, the tokens of each side are those of RewardTrainer's data set."""
    trainer = started_by_trl(tmp_path / "out", base_of(kind, tmp_path / "base"))
    for row, made in zip(ROWS, trainer.train_dataset, strict=True):
        for side in ("chosen", "rejected"):
            found = encode_text(trainer.processing_class, row["prompt"], row[side], form="plain")
            assert list(found.ids) == made[f"{side}_ids"]


@pytest.mark.parametrize("kind", ["no template", "chat"])
def test_a_checkpoint_of_trl_is_scored_as_it_was_trained(
    kind: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Without a template that is found, with one it has to be said; a warning names the option in both."""
    import torch

    trainer = started_by_trl(tmp_path / "out", base_of(kind, tmp_path / "base"))
    trainer.train()
    trainer.save_model(str(tmp_path / "rm"))
    trainer.processing_class.save_pretrained(tmp_path / "rm")
    with torch.inference_mode():
        model = trainer.model.eval()
        expected = [float(model(torch.tensor([row["chosen_ids"]])).logits) for row in trainer.train_dataset]
    rollouts = [Rollout(row["prompt"], row["chosen"]) for row in ROWS]
    with caplog.at_level(logging.WARNING, logger="rewardkit"):
        told = RewardModelReward(tmp_path / "rm", device="cpu").score_batch(rollouts)
    plain = RewardModelReward(tmp_path / "rm", device="cpu", text_form="plain").score_batch(rollouts)
    assert plain == pytest.approx(expected, abs=1e-5)
    warned = [one.getMessage() for one in caplog.records if "text_form" in one.getMessage()]
    if kind == "chat":
        assert told != pytest.approx(expected, abs=1e-5)
    else:
        assert told == pytest.approx(expected, abs=1e-5)
    assert len(warned) == 1
    assert "text_form='plain'" in warned[0]


def test_plain_text_is_cut_at_its_beginning_alone(tmp_path: Path) -> None:
    """The tokenizer's first token and the completion stay, and steps end at their own last tokens."""
    import transformers
    from tokenizers import processors

    tokenizer = transformers.AutoTokenizer.from_pretrained(tiny_encoder(tmp_path))
    marks = [(one, tokenizer.convert_tokens_to_ids(one)) for one in ("[CLS]", "[SEP]")]
    marked = processors.TemplateProcessing(single="[CLS] $A [SEP]", special_tokens=marks)
    tokenizer.backend_tokenizer.post_processor = marked
    whole = encode_text(tokenizer, "a b c d ", "good; bad", form="plain", steps=["good;", "bad"])
    assert whole.prompt_length == 5
    assert tokenizer.convert_ids_to_tokens(list(whole.ids)) == [
        "[CLS]", *"abcd", "good", ";", "bad", "[SEP]",
    ]  # fmt: skip
    assert whole.step_ends == (6, 7)
    short = encode_text(tokenizer, "a b c d ", "good; bad", form="plain", max_length=6, steps=["good;", "bad"])
    assert tokenizer.convert_ids_to_tokens(list(short.ids)) == ["[CLS]", "d", "good", ";", "bad", "[SEP]"]
    assert (short.step_ends, short.cut, short.excess) == ((3, 4), 3, 0)


def test_what_cannot_be_pasted_is_refused(tmp_path: Path) -> None:
    """Several messages would run together, and there is no third form."""
    import transformers

    tokenizer = transformers.AutoTokenizer.from_pretrained(tiny_decoder(tmp_path))
    turns = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}, {"role": "user", "content": "c"}]
    with pytest.raises(DataError, match="3 and 1 messages, and the form 'plain' pastes one"):
        encode_text(tokenizer, turns, "d", form="plain")
    with pytest.raises(ConfigError, match="text_form='pasted': expected one of None, 'chat', 'plain'"):
        RewardModelReward(tmp_path, text_form="pasted")  # type: ignore[arg-type]
