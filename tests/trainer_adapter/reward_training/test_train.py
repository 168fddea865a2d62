"""Reward models of every kind are trained from tiny random models, measured, saved, and gone on with."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tiny_grpo import third_party_warnings
from tiny_reward import tiny_decoder, tiny_encoder

pytest.importorskip("trl", reason="real training runs need the extra 'train'")

from builtin_rewards.reward_model import encode_text, read_description
from rewardkit import ConfigError, DataError
from trainer_adapter.reward_training import RewardModelConfig, train_reward_model

pytestmark = [third_party_warnings, pytest.mark.filterwarnings("ignore::DeprecationWarning")]
LETTERS = "abcdefghijkl"


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_encoder(tmp_path_factory.mktemp("encoder"))


@pytest.fixture(scope="module")
def decoder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_decoder(tmp_path_factory.mktemp("decoder"))


def pairs(number: int) -> list[dict[str, Any]]:
    """Pairs whose chosen side says "good" and whose other says "bad"."""
    draw = random.Random(0)
    words = [" ".join(draw.choices(LETTERS, k=3)) for _ in range(number)]
    return [{"prompt": f"say {i} {w}", "chosen": f"{w} good", "rejected": f"{w} bad"} for i, w in enumerate(words)]


def configured(base: Path, folder: Path, rows: Any, **fields: Any) -> RewardModelConfig:
    return RewardModelConfig.model_validate(
        {"base_model": str(base), "dataset": rows, "output_dir": folder, "learning_rate": 3e-3, "use_cpu": True,
         "holdout": 0.25, **fields}
    )  # fmt: skip


def weights(folder: Path) -> dict[str, Any]:
    from safetensors.numpy import load_file

    return load_file(next(folder.glob("*.safetensors")))


def assert_near(one: dict[str, Any], other: dict[str, Any]) -> None:
    """On average over each weight the two differ by less than a hundredth of one of Adam's steps of 3e-3.

    Adam makes whole steps of gradients that are nothing but rounding, as that of the head's bias, which pairs leave
    free.
    """
    for name in one.keys() - {"classifier.bias"}:
        assert np.abs(one[name] - other[name]).mean() < 3e-5, name


def test_pairs_make_a_model_that_loads_again(encoder: Path, tmp_path: Path) -> None:
    """The folder has weights, what is known of them and a card; transformers loads it, and it prefers what it saw."""
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    result = train_reward_model(configured(encoder, tmp_path / "rm", pairs(48), epochs=4, batch_size=4))
    assert (result.training_prompts, result.heldout_prompts, result.steps) == (36, 12, 36)
    assert result.figures["accuracy"].value == 1.0
    assert result.figures["margin"].low is not None
    assert result.figures["margin"].low > 0
    told = read_description(result.folder)
    assert told is not None
    assert told.reference is not None
    assert (told.kind, told.max_length, told.reference.count) == ("bradley_terry", 64, 24)
    assert told.evaluation["accuracy"]["of"] == 12
    assert told.center == told.reference.mean
    assert "| accuracy | 1.000" in (result.folder / "README.md").read_text()
    model = AutoModelForSequenceClassification.from_pretrained(result.folder)
    tokenizer = AutoTokenizer.from_pretrained(result.folder)
    import torch

    texts = [encode_text(tokenizer, "say z", f"x {word}").ids for word in ("good", "bad")]
    good, bad = (float(model(torch.tensor([ids])).logits.detach()) for ids in texts)
    assert good > bad


def test_a_model_is_trained_on_answers_alone(encoder: Path) -> None:
    """Rows with thoughts have the tokens of rows without; with ``shows="all"`` they have their own."""
    from transformers import AutoTokenizer

    from trainer_adapter.reward_training.batches import fit_groups
    from trainer_adapter.reward_training.reading import read_groups

    tokenizer = AutoTokenizer.from_pretrained(encoder)
    rows = pairs(3)
    thinking = [
        {**row, **{side: f"<think> a b </think> {row[side]}" for side in ("chosen", "rejected")}} for row in rows
    ]
    ids = {
        (name, shows): [
            text.ids
            for group in fit_groups(tokenizer, read_groups("bradley_terry", data), 64, shows=shows).groups
            for text in group.texts
        ]
        for name, data in (("plain", rows), ("thinking", thinking))
        for shows in ("answer", "all")
    }
    assert ids["plain", "answer"] == ids["thinking", "answer"]
    assert ids["plain", "all"] != ids["thinking", "all"]


def test_a_model_of_pairs_is_that_of_trls_trainer(encoder: Path, tmp_path: Path) -> None:
    """On pairs of different prompts the weights are those of plain RewardTrainer, given the same tokens and order."""
    from datasets import Dataset
    from transformers import AutoModelForSequenceClassification, AutoTokenizer, set_seed
    from trl import RewardConfig, RewardTrainer

    rows = pairs(12)
    config = configured(encoder, tmp_path / "ours", rows, holdout=0, batch_size=4, save_steps=None)
    train_reward_model(config)
    tokenizer = AutoTokenizer.from_pretrained(encoder)
    sides = {
        f"{side}_ids": [list(encode_text(tokenizer, row["prompt"], row[side]).ids) for row in rows]
        for side in ("chosen", "rejected")
    }
    set_seed(config.seed)
    model = AutoModelForSequenceClassification.from_pretrained(encoder, num_labels=1)
    arguments = {**config.to_trl(), "output_dir": str(tmp_path / "plain")}
    trainer = RewardTrainer(
        model=model, args=RewardConfig(**arguments), processing_class=tokenizer, train_dataset=Dataset.from_dict(sides)
    )
    trainer.train()
    plain = {name: value.detach().numpy() for name, value in trainer.model.state_dict().items()}
    assert_near(weights(tmp_path / "ours"), plain)


def test_training_prints_nothing(encoder: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """No bar for reading or writing weights, no table and no metrics; the bars are as they were afterwards."""
    from transformers.utils import logging as told

    had_bars = told.is_progress_bar_enabled()
    try:
        for switch in (told.enable_progress_bar, told.disable_progress_bar):
            switch()
            wanted = told.is_progress_bar_enabled()
            folder = tmp_path / f"rm{wanted}"
            train_reward_model(configured(encoder, folder, pairs(8), train_steps=2, save_steps=1, logging_steps=1))
            assert told.is_progress_bar_enabled() == wanted
    finally:
        (told.enable_progress_bar if had_bars else told.disable_progress_bar)()
    assert capfd.readouterr() == ("", "")


def test_all_pairs_of_a_prompt_are_in_one_batch(encoder: Path, tmp_path: Path) -> None:
    """Three pairs of one prompt are one group, of which each completion is read once."""
    from transformers import AutoTokenizer

    from trainer_adapter.reward_training.batches import batch_of, fit_groups
    from trainer_adapter.reward_training.reading import read_groups

    rows = [
        {"prompt": "p", "chosen": one, "rejected": other, "margin": "0.5"}
        for one, other in (("a", "b"), ("b", "c"), ("a", "c"))
    ]
    tokenizer = AutoTokenizer.from_pretrained(encoder)
    fitted = fit_groups(tokenizer, read_groups("bradley_terry", [*rows, *pairs(1)]), 64)
    batch = batch_of("bradley_terry", fitted.groups, 0)
    assert batch["input_ids"].shape[0] == 5
    assert batch["pairs"].tolist() == [[0, 1], [1, 2], [0, 2], [3, 4]]
    assert batch["pair_group"].tolist() == [0, 0, 0, 1]
    assert batch["margins"].tolist() == [0.5, 0.5, 0.5, 0.0]


def test_accumulated_batches_give_the_weights_of_one(encoder: Path, tmp_path: Path) -> None:
    """Groups of uneven size, one a forward pass or four: the same weights, because each prompt weighs the same."""
    rows = [
        {"prompt": f"say {one}", "chosen": f"{one} good {two}", "rejected": f"{two} bad"}
        for one in range(8)
        for two in LETTERS[: 1 + one % 3]
    ]
    for name, micro in (("whole", 4), ("parts", 1)):
        config = configured(
            encoder, tmp_path / name, rows, holdout=0, batch_size=4, per_device_batch_size=micro, save_steps=None
        )
        train_reward_model(config)
    assert_near(weights(tmp_path / "whole"), weights(tmp_path / "parts"))


def test_a_tokenizer_whose_pad_is_eos_gets_another(tmp_path: Path, decoder: Path) -> None:
    """Without a chat template texts end with eos; padding with it would move the place that is read."""
    plain = tiny_decoder(tmp_path / "plain", chat=False)
    result = train_reward_model(configured(plain, tmp_path / "rm", pairs(8), train_steps=2, batch_size=2))
    config = json.loads((result.folder / "config.json").read_text())
    assert config["pad_token_id"] != 256 + 0 or config["eos_token_id"] != config["pad_token_id"]
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(result.folder)
    assert tokenizer.pad_token_id == config["pad_token_id"] != tokenizer.eos_token_id


def test_lora_saves_an_adapter(tmp_path: Path, decoder: Path) -> None:
    """With an adapter the folder has the adapter and the head; PEFT loads it on the base."""
    from peft import AutoPeftModelForSequenceClassification

    config = configured(decoder, tmp_path / "rm", pairs(8), adapter="lora", rank=4, train_steps=2, batch_size=2)
    result = train_reward_model(config)
    assert (result.folder / "adapter_config.json").is_file()
    assert any("score" in name for name in weights(result.folder))
    assert AutoPeftModelForSequenceClassification.from_pretrained(result.folder, num_labels=1) is not None


def rankings(number: int, strengths: dict[str, float]) -> list[dict[str, Any]]:
    """Fours drawn by Plackett and Luce's model from the strengths of letters."""
    draw = np.random.default_rng(0)
    rows = []
    for place in range(number):
        four = draw.choice(list(strengths), 4, replace=False).tolist()
        noisy = [strengths[one] + draw.gumbel() for one in four]
        ranks = np.argsort(np.argsort(-np.asarray(noisy))).tolist()
        rows.append({"prompt": f"say {place}", "completions": four, "ranks": ranks})
    return rows


def test_rankings_recover_planted_strengths(encoder: Path, tmp_path: Path) -> None:
    """From noisy rankings of fours the scores of the twelve letters have the order of their strengths."""
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    strengths = {letter: 0.7 * place for place, letter in enumerate(LETTERS)}
    config = configured(
        encoder, tmp_path / "rm", rankings(240, strengths), kind="plackett_luce", epochs=3, batch_size=8,
        save_steps=None, learning_rate=5e-3, group_size=4,
    )  # fmt: skip
    result = train_reward_model(config)
    import torch

    model = AutoModelForSequenceClassification.from_pretrained(result.folder).eval()
    tokenizer = AutoTokenizer.from_pretrained(result.folder)
    scores = [
        float(model(torch.tensor([encode_text(tokenizer, "say 1", one).ids])).logits.detach()) for one in strengths
    ]
    order = np.argsort(np.argsort(scores))
    assert np.corrcoef(order, np.arange(len(order)))[0, 1] >= 0.95


def sums(number: int, *, seed: int = 0) -> list[dict[str, Any]]:
    """Chains of sums of one digit modulo ten with known steps: each is right, or wrong from one step on."""
    draw = random.Random(seed)
    rows = []
    for place in range(number):
        steps, labels = [], []
        for _ in range(draw.randint(2, 4)):
            a, b = draw.randint(0, 4), draw.randint(0, 4)
            wrong = draw.random() < 0.35
            said = a + b + (draw.choice((1, 2, 3)) if wrong else 0)
            steps.append(f"{a}+{b} ={said}")
            labels.append(-1 if wrong else 1)
        rows.append({"prompt": f"say {place}", "steps": steps, "labels": labels})
    return rows


SUMS = [*(f"{a}+{b}" for a in range(5) for b in range(5)), *(f"={said}" for said in range(12)), "say"]
"""The words of the sums."""


def outcomes(number: int, *, seed: int = 0) -> list[dict[str, Any]]:
    return [
        {"prompt": row["prompt"], "completion": row["steps"][0], "correct": row["labels"][0] == 1}
        for row in sums(number, seed=seed)
    ]


@pytest.mark.full
@pytest.mark.parametrize(("kind", "figure"), [("orm", "auc"), ("prm", "step_f1")])
@pytest.mark.slow
def test_arithmetic_with_known_steps(kind: str, figure: str, tmp_path: Path) -> None:
    """From labelled sums a model finds on held-out ones what is wrong: AUC, and F1 of wrong steps, 0.9 or more."""
    rows = outcomes(1500) if kind == "orm" else sums(800)
    base = tiny_encoder(tmp_path / "base", words=SUMS)
    config = configured(
        base, tmp_path / "rm", rows, kind=kind, epochs=14 if kind == "orm" else 16, batch_size=16,
        per_device_batch_size=16, save_steps=None, learning_rate=5e-3, lr_scheduler_type="cosine",
    )  # fmt: skip
    result = train_reward_model(config)
    value = result.figures[figure].value
    assert value is not None
    assert value >= 0.9, result.figures
    told = read_description(result.folder)
    assert told is not None
    assert told.aggregate == {"orm": "last", "prm": "min"}[kind]


@pytest.mark.parametrize("kind", ["orm", "prm"])
def test_a_few_steps_of_tokenwise_kinds(kind: str, decoder: Path, tmp_path: Path) -> None:
    """Models of outcomes and steps have a token classifier of one and three outputs, and probabilities as scores."""
    rows = outcomes(16) if kind == "orm" else sums(16)
    result = train_reward_model(configured(decoder, tmp_path / "rm", rows, kind=kind, train_steps=2, batch_size=4))
    config = json.loads((result.folder / "config.json").read_text())
    assert config["architectures"] == ["LlamaForTokenClassification"]
    assert len(config["id2label"]) == (1 if kind == "orm" else 3) if "id2label" in config else kind == "prm"
    assert 0 <= result.reference.quantiles[0] <= result.reference.quantiles[-1] <= 1


KILLED = """
import sys
from pathlib import Path
import torch
torch.set_num_threads(1)
sys.path[:0] = [{helpers!r}, {here!r}]
from test_train import configured, pairs
from trainer_adapter.reward_training import train_reward_model
from transformers import TrainerCallback
class Slow(TrainerCallback):
    def on_save(self, args, state, control, **rest):
        print("saved", state.global_step, flush=True)
        if state.global_step >= 4:
            import time
            time.sleep(600)
config = configured(Path({base!r}), Path({folder!r}), pairs(24), holdout=0.25, batch_size=2, save_steps=2)
train_reward_model(config, callbacks=[Slow()])
"""


def test_a_killed_training_ends_with_the_same_weights(encoder: Path, tmp_path: Path) -> None:
    """Killed mid-way and started again in the same way, a training ends with the weights of one that was not."""
    here = Path(__file__).parent
    code = KILLED.format(
        helpers=str(here.parents[1] / "helpers"), here=str(here), base=str(encoder), folder=str(tmp_path / "killed")
    )
    child = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, env={**os.environ})
    assert child.stdout is not None
    try:
        assert "saved 4" in "".join(next(child.stdout) for _ in range(2))
    finally:
        os.kill(child.pid, signal.SIGKILL)
        child.communicate(timeout=60)
    rows = pairs(24)
    again = train_reward_model(configured(encoder, tmp_path / "killed", rows, batch_size=2, save_steps=2))
    whole = train_reward_model(configured(encoder, tmp_path / "whole", rows, batch_size=2, save_steps=2))
    assert again.steps == whole.steps == 9
    killed = weights(tmp_path / "killed")
    for name, value in weights(tmp_path / "whole").items():
        np.testing.assert_array_equal(value, killed[name], err_msg=name)
    assert again.figures == whole.figures
    once_more = train_reward_model(configured(encoder, tmp_path / "killed", rows, batch_size=2, save_steps=2))
    assert once_more.already_finished
    assert once_more.figures == again.figures


def test_other_settings_in_the_same_folder_are_refused(encoder: Path, tmp_path: Path) -> None:
    """A folder with another training is not gone on with: the message names what differs; starting anew is allowed."""
    train_reward_model(configured(encoder, tmp_path / "rm", pairs(8), train_steps=1))
    with pytest.raises(ConfigError, match=r"(?s)seed: 42 -> 7.*resume=False"):
        train_reward_model(configured(encoder, tmp_path / "rm", pairs(8), train_steps=1, seed=7))
    anew = train_reward_model(configured(encoder, tmp_path / "rm", pairs(8), train_steps=1, seed=7), resume=False)
    assert not anew.already_finished


def test_what_cannot_be_trained_is_said_before_training(encoder: Path, tmp_path: Path) -> None:
    """No padding token, weights that are nan, a head of two outputs, a length beyond the model's places."""
    import torch
    from transformers import AutoModelForSequenceClassification, BertModel

    with pytest.raises(ConfigError, match="has no padding token; name one in pad_token"):
        train_reward_model(configured(tiny_decoder(tmp_path / "nopad", pad_token=None), tmp_path / "rm", pairs(8)))
    with pytest.raises(ConfigError, match=r"max_length=999: .* has places for 64"):
        train_reward_model(configured(encoder, tmp_path / "rm", pairs(8), max_length=999))
    broken = tiny_encoder(tmp_path / "broken")
    model = BertModel.from_pretrained(broken)
    with torch.no_grad():
        model.embeddings.word_embeddings.weight[3] = float("nan")
    model.save_pretrained(broken)
    with pytest.raises(ConfigError, match=r"word_embeddings\.weight has values that are not finite"):
        train_reward_model(configured(broken, tmp_path / "rm1", pairs(8)))
    two = tiny_encoder(tmp_path / "two")
    AutoModelForSequenceClassification.from_pretrained(encoder, num_labels=2).save_pretrained(two)
    with pytest.raises(ConfigError, match="its head has another number of outputs"):
        train_reward_model(configured(two, tmp_path / "rm2", pairs(8)))
    with pytest.raises(DataError, match=r"no row is left.*raise max_length"):
        train_reward_model(configured(encoder, tmp_path / "rm3", [
            {"prompt": f"p {n}", "chosen": "a " * 70, "rejected": "b " * 70} for n in range(4)
        ]))  # fmt: skip
    assert not any((tmp_path / name / "model.safetensors").exists() for name in ("rm", "rm1", "rm2", "rm3"))


def test_the_command_trains(encoder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """``rm train`` reads the file, with paths from its folder, and prints the figures."""
    from typer.testing import CliRunner

    from trainer_adapter.reward_training.cli import rm

    (tmp_path / "pairs.jsonl").write_text("".join(json.dumps(row) + "\n" for row in pairs(8)))
    (tmp_path / "rm.yaml").write_text(
        f"base_model: {encoder}\ndataset: pairs.jsonl\noutput_dir: out\ntrain_steps: 1\nlearning_rate: 1e-4\n"
    )
    done = CliRunner().invoke(rm, ["train", str(tmp_path / "rm.yaml"), "--json"], catch_exceptions=False)
    told = json.loads(done.stdout)
    assert (told["kind"], told["steps"], told["folder"]) == ("bradley_terry", 1, str(tmp_path / "out"))
    assert set(told["figures"]) == {"accuracy", "tie_rate", "margin", "ece", "brier"}
    words = CliRunner().invoke(rm, ["train", str(tmp_path / "rm.yaml")], catch_exceptions=False).stdout
    assert "already finished" in words
    assert "accuracy" in words
    (tmp_path / "rm.yaml").write_text("base_model: x\ndatasets: pairs.jsonl\noutput_dir: out\n")
    with pytest.raises(ConfigError, match=r"rm\.yaml: unknown field 'datasets'; did you mean 'dataset'"):
        CliRunner().invoke(rm, ["train", str(tmp_path / "rm.yaml")], catch_exceptions=False)
