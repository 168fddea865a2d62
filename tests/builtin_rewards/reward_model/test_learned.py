"""A trained reward model as a reward, on tiny models with random weights."""

from __future__ import annotations

import math
import os
import pickle
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from patience import wait_for
from typer.testing import CliRunner

from builtin_rewards.reward_model import (
    EncodedText,
    RewardModelDescription,
    RewardModelReward,
    ScoreReference,
    encode_text,
    learned,
    loading,
    packing,
    write_description,
)
from rewardkit import Cause, ConfigError, DataError, InfrastructureError, RewardLoadError, Rollout, Runtime, step_reward
from rewardkit.cli.program import app

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
tiny = pytest.importorskip("tiny_reward_model")
PLACES, saved_model, saved_tokenizer = tiny.PLACES, tiny.saved_model, tiny.saved_tokenizer

pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning", "ignore::UserWarning")


def adapter_on(base: Path, folder: Path) -> Path:
    """Save an adapter of random weights, with a head of its own, on a base."""
    peft = pytest.importorskip("peft")
    model = transformers.AutoModelForSequenceClassification.from_pretrained(base)
    torch.manual_seed(len(folder.name))
    adapted = peft.get_peft_model(model, peft.LoraConfig(task_type="SEQ_CLS", r=2, init_lora_weights=False))
    adapted.save_pretrained(folder)
    return folder


TEXTS = ["the cat sat", "a dog ran on the mat and is well", "two and two is four .", "badly", "the " * 30]
ROLLOUTS = [Rollout("is the cat well ?", text) for text in TEXTS]


def raw_scores(scorer: Any, rows: list[list[int]]) -> list[float]:
    """Return what the first model gives to rows of tokens in one batch."""
    texts = [EncodedText(tuple(row), 0) for row in rows]
    return [float(logits[0]) for logits in scorer._logits(scorer.members[0], texts)]


@pytest.mark.parametrize("kind", ["llama", "bert"])
def test_a_text_alone_scores_as_in_a_batch(tmp_path: Path, kind: str) -> None:
    """The padding of shorter texts changes no score."""
    reward = RewardModelReward(saved_model(tmp_path / "m", kind), dtype="float32", device="cpu")
    scorer = reward.function.scorer()  # type: ignore[attr-defined]
    rows = [[2, 7, 9, 12], [2, 8, 8, 8, 9, 10, 11, 6], [2, 6]]
    alone = [score for row in rows for score in raw_scores(scorer, [row])]
    np.testing.assert_allclose(raw_scores(scorer, rows), alone, atol=1e-5)
    assert np.ptp(alone) > 1e-3


@pytest.mark.parametrize("pad", ["<pad>", "</s>"])
def test_a_batch_scores_as_transformers_own_forward(tmp_path: Path, pad: str) -> None:
    """Scores are those of the model's own forward on each text alone, also where the padding is the end token."""
    folder = saved_model(tmp_path / "m", pad=pad)
    reward = RewardModelReward(folder, dtype="float32", device="cpu", token_budget=40, text_form="chat")
    scorer = reward.function.scorer()  # type: ignore[attr-defined]
    model = transformers.AutoModelForSequenceClassification.from_pretrained(folder).eval()
    expected = []
    for one in ROLLOUTS:
        ids = encode_text(scorer.members[0].tokenizer, one.prompt, one.completion, max_length=PLACES).ids
        with torch.inference_mode():
            expected.append(float(model(torch.tensor([ids])).logits[0, 0]))
    np.testing.assert_allclose(reward.score_batch(ROLLOUTS), expected, atol=1e-5)
    last = RewardModelReward(folder, dtype="float32", device="cpu", read_at="last", text_form="chat").score_batch(
        ROLLOUTS
    )
    assert (np.abs(np.subtract(last, expected)).max() > 1e-3) == (pad == "</s>")


def test_it_is_loaded_once_in_one_worker_process(tmp_path: Path) -> None:
    """A runtime with several workers has one process for it, which gives the scores of this process."""
    reward = RewardModelReward(saved_model(tmp_path / "m"), device="cpu")
    expected = reward.score_batch(ROLLOUTS)
    assert expected[0] == pytest.approx(reward(prompt=ROLLOUTS[0].prompt, completion=TEXTS[0]).value, abs=1e-5)
    with Runtime([pickle.loads(pickle.dumps(reward))], workers=2, memory_bytes=None) as runtime:
        batch = runtime.score(ROLLOUTS)
        np.testing.assert_allclose([one.score for one in batch.outcomes["m"]], expected, atol=1e-5)
        assert len(runtime.processes) == 1


@pytest.mark.full
def test_a_killed_models_process_costs_no_score(tmp_path: Path) -> None:
    """Its calls under way are nobody's fault and run again in a new process, with the same scores."""
    reward = RewardModelReward(saved_model(tmp_path / "m"), device="cpu")
    rollouts = [Rollout("is it well ?", f"{text} {place}") for place in range(400) for text in TEXTS]
    expected = reward.score_batch(rollouts)
    with Runtime([reward], memory_bytes=None) as runtime:
        runtime.wait_loaded()
        (first,) = runtime.processes
        scored = {}
        for done, finished in enumerate(runtime.stream(rollouts)):
            scored[finished.row] = finished.outcome
            if done == 100:
                os.kill(first, signal.SIGKILL)
        assert first not in runtime.processes
    assert len(scored) == len(rollouts)
    np.testing.assert_allclose([scored[row].score for row in range(len(rollouts))], expected, atol=1e-5)


@pytest.mark.parametrize("lane", ["worker", "inline"])
def test_what_is_wrong_with_weights_is_told_before_the_first_call(tmp_path: Path, lane: str) -> None:
    """No batch is scored, and no call fails for it: the runtime says which model and what to do."""
    folder = saved_model(tmp_path / "unpadded", pad=None)
    with (
        pytest.raises((RewardLoadError, ConfigError), match=r"(?s)unpadded.* no padding token; name one"),
        Runtime([RewardModelReward(folder, device="cpu")], lane=lane, memory_bytes=None) as runtime,
    ):
        runtime.score(ROLLOUTS)


def test_check_tells_of_a_model_that_does_not_load(tmp_path: Path) -> None:
    """In a line, also where the data has no right answer that could be scored."""
    folder = saved_model(tmp_path / "unpadded", pad=None)
    rewards = tmp_path / "rewards.py"
    rewards.write_text(
        "from builtin_rewards.reward_model import RewardModelReward\n"
        f"helpful = RewardModelReward({str(folder)!r}, device='cpu', name='helpful')\n"
    )
    (tmp_path / "rows.jsonl").write_text('{"prompt": "?", "completion": "a cat"}\n')
    told = CliRunner().invoke(app, ["check", f"{rewards}:helpful", str(tmp_path / "rows.jsonl")])
    assert told.exit_code == 2, told.output
    assert "no padding token; name one" in " ".join(told.output.split())
    assert "Traceback" not in told.output


def test_adapters_share_one_base_and_switch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An ensemble of adapters holds one base, tried once; each member scores as if it were alone, the base without."""
    base = saved_model(tmp_path / "base")
    folders = [adapter_on(base, tmp_path / name) for name in ("one", "other")]
    off = RewardModelReward(base, device="cpu").score_batch(ROLLOUTS)
    alone = [RewardModelReward(folder, device="cpu").score_batch(ROLLOUTS) for folder in folders]
    trials: list[Any] = []
    monkeypatch.setattr(loading, "can_pack", lambda model: trials.append(model) or packing.can_pack(model))
    both = RewardModelReward(folders, reduce="min", device="cpu")
    np.testing.assert_allclose(both.score_batch(ROLLOUTS), np.min(alone, axis=0), atol=1e-5)
    assert 1 == len(trials)
    first, second = both.function.scorer().members  # type: ignore[attr-defined]
    assert first.model is second.model
    assert np.abs(np.subtract(alone[0], alone[1])).max() > 1e-3
    assert np.abs(np.subtract(alone[0], off)).max() > 1e-3
    low = RewardModelReward(folders, reduce="lower", spread=2.0, device="cpu").score_batch(ROLLOUTS)
    np.testing.assert_allclose(low, np.mean(alone, axis=0) - 2 * np.std(alone, axis=0, ddof=1), atol=1e-4)


def test_a_model_of_steps_reads_the_steps_ends(tmp_path: Path) -> None:
    """The score is the least probability of a step being right; a step's is that of the steps up to it."""
    folder = saved_model(tmp_path / "m", head="token", labels=3)
    write_description(folder, RewardModelDescription(kind="prm", step_separator=".", aggregate="min"))
    reward = RewardModelReward(folder, device="cpu")
    whole = reward(prompt="?", completion="the cat sat . a dog ran . well")
    assert whole.metrics["steps"] == 3
    listed = RewardModelReward(folder, device="cpu", steps_column="parts", aggregate="last")
    last = listed(prompt="?", completion="the cat sat . a dog ran . well", parts=["the cat sat", "a dog ran"])
    assert 0 <= whole.value <= last.value <= 1
    told = ['["the cat sat", "a dog ran"]', ["the cat sat", "a dog ran"], None, "the cat sat"]
    rollouts = [Rollout("?", "the cat sat . a dog ran . well", {"parts": parts}) for parts in told]
    assert listed.score_batch(rollouts[:2]) == pytest.approx([last.value] * 2, abs=1e-5)
    for wrong, why in ((rollouts[2], "it has no steps in the column 'parts'"), (rollouts[3], "'parts'")):
        score, error = listed.score_batch([rollouts[0], wrong])
        assert score == pytest.approx(last.value, abs=1e-5)
        assert isinstance(error, DataError)
        assert why in str(error)
        assert error.__notes__ == ["in rollout 1"]
    turns = step_reward(RewardModelReward(folder, device="cpu", steps="whole"), each="turn", reduce="min")
    said = [{"role": "assistant", "content": "the cat sat"}, {"role": "assistant", "content": "a dog"}]
    assert 0 <= turns(prompt="?", completion=said).value <= 1


def test_a_fork_of_a_process_with_a_model_is_refused_and_does_not_wait(tmp_path: Path) -> None:
    """No thread comes along: neither the model's own nor torch's, and what waited for them would wait for ever."""
    reward = RewardModelReward(saved_model(tmp_path / "m"), device="cpu")
    assert math.isfinite(reward(prompt="?", completion="a cat").value)
    child = os.fork()
    if child == 0:
        told = []
        for score in (lambda: reward(prompt="?", completion="a cat"), lambda: reward.score_batch(ROLLOUTS)):
            try:
                score()
            except InfrastructureError as refused:
                told.append("no thread came along" in str(refused))
        os._exit(0 if told == [True, True] else 1)
    codes: list[int] = []

    def has_ended() -> bool:
        ended, status = os.waitpid(child, os.WNOHANG)
        codes.extend([os.waitstatus_to_exitcode(status)] if ended else [])
        return bool(ended)

    if not wait_for(has_ended):
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    assert codes == [0]
    assert len(reward.score_batch(ROLLOUTS)) == len(ROLLOUTS)


def test_a_fork_while_another_thread_loads_is_refused_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The lock of the thread that loads stays held in the fork, where nobody would open it."""
    monkeypatch.setattr(learned, "_models", learned._Models())
    monkeypatch.setattr(learned, "_has_one_thread", lambda: False)
    learned._before_fork()
    assert learned._models.outlive_fork
    with learned._models._loading:
        learned._before_fork()
        assert not learned._models.outlive_fork
    learned._in_fork()
    reward = RewardModelReward(saved_model(tmp_path / "m"), device="cpu")
    with pytest.raises(InfrastructureError, match="no thread came along"):
        reward.score_batch(ROLLOUTS)


def test_scores_are_normalized_against_the_stored_reference(tmp_path: Path) -> None:
    """The z-score and the quantile are by the scores beside the weights; a model without them is refused."""
    folder = saved_model(tmp_path / "m")
    with pytest.raises(ConfigError, match="needs the reference"):
        RewardModelReward(folder, normalize="reference")
    raw = RewardModelReward(folder, device="cpu", text_form="chat").score_batch(ROLLOUTS)
    write_description(folder, RewardModelDescription(reference=ScoreReference.of(raw, "here"), center=1.5))
    z = RewardModelReward(folder, device="cpu", normalize="reference").score_batch(ROLLOUTS)
    np.testing.assert_allclose(z, (np.array(raw) - np.mean(raw)) / np.std(raw, ddof=1), atol=1e-4)
    shares = RewardModelReward(folder, device="cpu", normalize="quantile").score_batch(ROLLOUTS)
    assert (np.min(shares), np.max(shares)) == (pytest.approx(0, abs=1e-3), pytest.approx(1, abs=1e-3))


def test_what_does_not_fit_or_has_no_content_fails_and_is_named(tmp_path: Path) -> None:
    """A long prompt is cut and told; a completion that does not fit, or is empty, fails without a score."""
    folder = saved_model(tmp_path / "m")
    reward = RewardModelReward(folder, device="cpu", max_length=16)
    assert reward(prompt="the " * 40, completion="a cat").metrics["cut_tokens"] > 20
    with Runtime([reward], lane="inline") as runtime:
        outcomes = runtime.score([Rollout("?", "a " * 40), Rollout("?", "  "), Rollout("?", "a cat")]).outcomes["m"]
    assert [one.cause for one in outcomes] == [Cause.EXCEPTION, Cause.EXCEPTION, None]
    assert [one.score is None for one in outcomes] == [True, True, False]
    (error,) = reward.score_batch([Rollout("?", "a " * 40)])
    assert "longer than the 16 that fit" in str(error)
    cutting = RewardModelReward(folder, device="cpu", max_length=16, truncation="completion")
    assert [type(score) for score in cutting.score_batch([Rollout("?", "a " * 40)])] == [float]


@pytest.mark.parametrize(
    ("made", "words"),
    [
        ({"head": "lm"}, "not a reward model's"),
        ({"labels": 2}, "2 labels"),
        ({"head": "token", "labels": 5}, "5 labels a token"),
    ],
)
def test_another_head_is_refused(tmp_path: Path, made: dict[str, Any], words: str) -> None:
    """A checkpoint whose head is no reward model's is named before any weight is read."""
    with pytest.raises(ConfigError, match=words):
        RewardModelReward(saved_model(tmp_path / "m", **made))


def test_wrong_weights_are_refused_at_load(tmp_path: Path) -> None:
    """NaN weights, no padding token, pickled weights, no folder and one of checkpoints are named with the fix."""
    with pytest.raises(ConfigError, match="there is no such folder"):
        RewardModelReward(tmp_path / "nowhere")
    for step in (9, 10):
        saved_model(tmp_path / "out" / f"checkpoint-{step}")
    with pytest.raises(ConfigError, match=r"name one of them: .*checkpoint-10$"):
        RewardModelReward(tmp_path / "out")
    folder = saved_model(tmp_path / "unpadded", pad=None)
    with pytest.raises(ConfigError, match="pad_token='</s>'"):
        RewardModelReward(folder, device="cpu").score_batch(ROLLOUTS)
    assert len(RewardModelReward(folder, device="cpu", pad_token="</s>").score_batch(ROLLOUTS)) == len(ROLLOUTS)
    from safetensors.torch import load_file, save_file

    folder = saved_model(tmp_path / "nan")
    weights = load_file(folder / "model.safetensors")
    weights["score.weight"][0, 3] = float("nan")
    save_file(weights, folder / "model.safetensors", {"format": "pt"})
    with pytest.raises(ConfigError, match=r"score\.weight has values that are not finite"):
        RewardModelReward(folder, device="cpu").score_batch(ROLLOUTS)
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    with pytest.raises(ConfigError, match="pickled weights"):
        RewardModelReward(folder)


def test_a_checkpoint_of_trl_loads(tmp_path: Path) -> None:
    """What TRL's RewardTrainer saves after a step scores as its model does."""
    trl = pytest.importorskip("trl")
    datasets = pytest.importorskip("datasets")
    folder = saved_model(tmp_path / "start")
    rows = [{"prompt": "? ", "chosen": "the cat sat", "rejected": "badly"}] * 2
    arguments = trl.RewardConfig(
        output_dir=str(tmp_path / "out"), max_steps=1, report_to=[], use_cpu=True, bf16=False,
        per_device_train_batch_size=2, disable_tqdm=True, save_strategy="no", gradient_checkpointing=False,
    )  # fmt: skip
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model = transformers.AutoModelForSequenceClassification.from_pretrained(folder)
    trainer = trl.RewardTrainer(
        model, args=arguments, train_dataset=datasets.Dataset.from_list(rows), processing_class=tokenizer
    )
    trainer.train()
    trainer.save_model(str(tmp_path / "trained"))
    reward = RewardModelReward(tmp_path / "trained", device="cpu")
    ids = [[2, 6, 8, 10, 3], [2, 14, 3]]
    with torch.inference_mode():
        expected = [float(trainer.model.eval()(torch.tensor([row])).logits[0, 0]) for row in ids]
    scorer = reward.function.scorer()  # type: ignore[attr-defined]
    np.testing.assert_allclose(raw_scores(scorer, ids), expected, atol=1e-5)
