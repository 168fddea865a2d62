"""What scores are made of: heads of tokens, steps, ensembles, and the tokens of a text, against plain numpy."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from builtin_rewards.reward_model import RewardModelReward, encode_text
from builtin_rewards.reward_model.scorer import ModelScorer, ScorerSettings, Text, TextScore
from rewardkit import DataError, RewardFunctionsConfig, Rollout, Runtime

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
tiny = pytest.importorskip("tiny_reward_model")
saved_model, saved_tokenizer = tiny.saved_model, tiny.saved_tokenizer

pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning", "ignore::UserWarning")
PROMPT, COMPLETION = "is the cat well ?", "the cat sat . a dog ran ."
TEXTS = [COMPLETION, "badly", "a cat and a dog and a cat sat on the mat ."]


def of(reward: RewardModelReward) -> Any:
    """Return the loaded model of a reward, with its tokenizer."""
    return reward.function.scorer().members[0]  # type: ignore[attr-defined]


def logits(member: Any, ids: tuple[int, ...]) -> Any:
    """Return the head's numbers at each token of one text, by the model's own forward."""
    with torch.inference_mode():
        return member.model(torch.tensor([ids])).logits[0].double().numpy()


@pytest.mark.parametrize(
    ("aggregate", "of_tokens"), [("last", lambda p: p[-1]), ("mean", np.mean), ("min", np.min), ("product", np.prod)]
)
def test_a_model_of_outcomes_aggregates_the_completions_tokens(tmp_path: Path, aggregate: str, of_tokens: Any) -> None:
    """The prompt's tokens count for nothing."""
    folder = saved_model(tmp_path / "orm", head="token")
    reward = RewardModelReward(folder, device="cpu", aggregate=aggregate, text_form="chat")
    member = of(reward)
    expected = []
    for text in TEXTS:
        row = encode_text(member.tokenizer, PROMPT, text)
        expected.append(of_tokens(1 / (1 + np.exp(-logits(member, row.ids)[row.prompt_length :, 0]))))
    assert reward.score_batch([Rollout(PROMPT, text) for text in TEXTS]) == pytest.approx(expected, abs=1e-5)


def test_a_model_of_steps_with_two_labels_takes_the_second(tmp_path: Path) -> None:
    """Each step's probability is read at its last token; by default the worst one is the score."""
    reward = RewardModelReward(
        saved_model(tmp_path / "prm", head="token", labels=2), device="cpu", step_separator=".", text_form="chat"
    )
    member = of(reward)
    row = encode_text(member.tokenizer, PROMPT, COMPLETION, steps=("the cat sat", "a dog ran"))
    read = np.exp(logits(member, row.ids)[list(row.step_ends)])
    expected = read[:, 1] / read.sum(-1)
    score = reward(prompt=PROMPT, completion=COMPLETION)
    assert score.value == pytest.approx(expected.min(), abs=1e-5)
    assert score.metrics["worst_step"] == expected.argmin()


def test_an_adapter_with_a_head_of_tokens_is_a_model_of_outcomes(tmp_path: Path) -> None:
    """Its own head reads the tokens; the base without it scores otherwise."""
    peft = pytest.importorskip("peft")
    base = saved_model(tmp_path / "base", head="token")
    model = transformers.AutoModelForTokenClassification.from_pretrained(base)
    torch.manual_seed(3)
    adapted = peft.get_peft_model(model, peft.LoraConfig(task_type="TOKEN_CLS", r=2, init_lora_weights=False))
    adapted.save_pretrained(tmp_path / "adapter")
    reward = RewardModelReward(tmp_path / "adapter", device="cpu", text_form="chat")
    member = of(reward)
    rollouts = [Rollout(PROMPT, text) for text in TEXTS]
    rows = [encode_text(member.tokenizer, PROMPT, text) for text in TEXTS]
    expected = [1 / (1 + np.exp(-logits(member, row.ids)[-1, 0])) for row in rows]
    assert reward.score_batch(rollouts) == pytest.approx(expected, abs=1e-5)
    plain = RewardModelReward(base, device="cpu", text_form="chat").score_batch(rollouts)
    assert np.abs(np.subtract(plain, expected)).max() > 1e-3


@pytest.mark.parametrize("reduce", ["mean", "min", "lower"])
def test_an_ensemble_is_reduced(tmp_path: Path, reduce: str) -> None:
    """By the mean, the lowest, or the mean less k sample standard deviations."""
    folders = [saved_model(tmp_path / name) for name in ("a", "bb", "ccc")]
    rollouts = [Rollout(PROMPT, text) for text in TEXTS]
    members = np.array([RewardModelReward(one, device="cpu").score_batch(rollouts) for one in folders])
    lower = members.mean(0) - 2 * members.std(0, ddof=1)
    expected = {"mean": members.mean(0), "min": members.min(0), "lower": lower}[reduce]
    reward = RewardModelReward(folders, device="cpu", reduce=reduce, spread=2)
    assert reward.score_batch(rollouts) == pytest.approx(expected.tolist(), abs=1e-5)


def test_a_configuration_names_a_model_in_a_file(tmp_path: Path) -> None:
    """As every reward: the YAML has a reference to the file that makes it."""
    folder = saved_model(tmp_path / "m")
    (tmp_path / "learned.py").write_text(
        "from builtin_rewards.reward_model import RewardModelReward\n"
        f"helpful = RewardModelReward({str(folder)!r}, device='cpu', name='helpful')\n"
    )
    config = RewardFunctionsConfig.from_dict({"functions": {"helpful": "learned.py:helpful"}}, base=tmp_path)
    assert isinstance(config.functions["helpful"], str | RewardModelReward)
    rollouts = [Rollout(PROMPT, text) for text in TEXTS]
    with Runtime(config, lane="inline") as runtime:
        scores = runtime.score(rollouts).scores["helpful"]
    assert scores == pytest.approx(RewardModelReward(folder, device="cpu").score_batch(rollouts), abs=1e-5)


@pytest.mark.parametrize("bert", [False, True])
def test_the_tokens_of_a_text(tmp_path: Path, bert: bool) -> None:
    """Only the prompt is ever cut, at its beginning; messages are as text; what has no tokens is refused."""
    tokenizer = saved_tokenizer(tmp_path, bert=bert)
    whole = encode_text(tokenizer, PROMPT, COMPLETION)
    said = len(whole.ids) - whole.prompt_length
    messages = [{"role": "user", "content": PROMPT}], [{"role": "assistant", "content": COMPLETION}]
    assert encode_text(tokenizer, *messages) == whole
    for fit in range(said, len(whole.ids) + 2):
        row = encode_text(tokenizer, PROMPT, COMPLETION, max_length=fit)
        assert row.ids[row.prompt_length :] == whole.ids[whole.prompt_length :]
        assert len(row.ids) - row.excess <= fit
        assert row.ids[0] == whole.ids[0]
        assert row.cut + len(row.ids) == len(whole.ids)
    short = encode_text(tokenizer, PROMPT, COMPLETION, max_length=3)
    assert short.excess == len(short.ids) - 3 > 0
    assert encode_text(tokenizer, "", COMPLETION).ids[-said:] == whole.ids[-said:]
    for nothing in ("", " \n", [{"role": "assistant", "content": None}]):
        with pytest.raises(DataError, match="the completion is empty"):
            encode_text(tokenizer, PROMPT, nothing)


def test_threads_take_turns_with_the_adapters_of_a_base(monkeypatch: pytest.MonkeyPatch) -> None:
    """A base has one active adapter, so a second thread would be scored with the adapter of the first."""
    both = threading.Barrier(2)

    class Two(ModelScorer):
        def _member_scores(self, member: Any, texts: Any, read: Any) -> Any:
            try:
                both.wait(0.1)
            except threading.BrokenBarrierError:  # no other thread came here meanwhile
                return [TextScore(1.0) for _ in texts]
            return [TextScore(0.0) for _ in texts]

    monkeypatch.setattr("builtin_rewards.reward_model.scorer.load_members", lambda *_: ["one"])
    scorer, text = Two(ScorerSettings(folders=())), Text(PROMPT, COMPLETION)
    with ThreadPoolExecutor(2) as threads:
        assert [[1.0], [1.0]] == [[one.value for one in found] for found in threads.map(scorer.score, [[text]] * 2)]
