"""Throughput and memory of a reward model: 1,000 texts of 5 to 250 words, several ways, interleaved in one run.

``ours`` computes texts side by side while threads make tokens of later ones; ``sorted 32`` is transformers' own forward
over batches of 32 texts of like lengths, padded; ``trl`` over batches of 32 in the order of the texts, as TRL scores
inside a trainer; ``loop`` is one text after the other, of the first 100 texts. On a CPU each runs in a process of its
own, so that its peak memory is its own; the clock starts at the texts, so that tokens count.

    python tests/benchmarks/bench_reward_model.py FOLDER [--texts 1000] [--rounds 3] [--device auto]

FOLDER is any reward model; a folder of a plain backbone gets a head of random weights (``--headless``), and
``--random`` makes a Qwen2 of 0.36 B with random weights and the tokenizer of FOLDER. On a card it ends within two
minutes, and prints which share of the card's peak the passes over real tokens are: two operations a weight and token.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

WAYS = ("ours", "sorted 32", "trl", "loop")
BATCH, LOOP_TEXTS = 32, 100
SHAPE = {
    "hidden_size": 896, "intermediate_size": 4864, "num_hidden_layers": 24, "num_attention_heads": 14,
    "num_key_value_heads": 2, "max_position_embeddings": 32_768, "tie_word_embeddings": True,
}  # fmt: skip
"""Qwen2's of 0.5 B, of which 0.36 B are in its layers."""
PEAK_FLOPS = {"H100": 989e12, "H200": 989e12, "A100": 312e12}
"""Dense bfloat16 operations a second, by NVIDIA's data sheets."""


def texts(count: int) -> list[str]:
    """Return texts of 5 to 250 words, most of them short."""
    draw = random.Random(0)
    words = [*"the answer is that a number of people think so because it was shown before".split()]  # noqa: SIM905
    return [" ".join(draw.choices(words, k=min(250, 5 + int(draw.expovariate(1 / 50))))) for _ in range(count)]


def with_head(folder: str, into: str) -> str:
    """Save a backbone with a random head of one label, and return its folder."""
    from transformers import AutoModelForSequenceClassification, AutoTokenizer, set_seed

    set_seed(0)
    AutoModelForSequenceClassification.from_pretrained(folder, num_labels=1).save_pretrained(into)
    AutoTokenizer.from_pretrained(folder).save_pretrained(into)
    return into


def random_model(folder: str, into: str) -> str:
    """Save a model of :data:`SHAPE` with random weights and the tokenizer of a folder, and return its folder."""
    from transformers import AutoTokenizer, Qwen2Config, Qwen2ForSequenceClassification, set_seed

    set_seed(0)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    config = Qwen2Config(vocab_size=len(tokenizer), num_labels=1, pad_token_id=tokenizer.pad_token_id, **SHAPE)
    Qwen2ForSequenceClassification(config).save_pretrained(into)
    tokenizer.save_pretrained(into)
    return into


def memory_mb(which: str) -> float:
    """Return what this process holds (``VmRSS``) or held at most (``VmHWM``), in MiB."""
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith(which))
    return int(line.split()[1]) / 1024


def loaded(folder: str, device: str) -> Any:
    """Return a reward model with its weights."""
    from builtin_rewards.reward_model import RewardModelReward

    reward: Any = RewardModelReward(folder, device=device, text_form="chat")
    reward.function.scorer()
    return reward


def measure(way: str, reward: Any, count: int) -> dict[str, float]:
    """Return the seconds, the peak of memory and the share of the card's peak of one way."""
    import torch

    from builtin_rewards.reward_model import encode_text
    from builtin_rewards.reward_model.packing import ATTENTION
    from rewardkit import Rollout

    member = reward.function.scorer().members[0]
    count = min(count, LOOP_TEXTS) if way == "loop" else count
    rollouts = [Rollout("Say more.", text) for text in texts(count)]
    model, tokenizer = member.model, member.tokenizer
    if member.packs:
        model.set_attn_implementation(ATTENTION if way == "ours" else "sdpa")
    on_gpu = model.device.type == "cuda"

    def run(rows: list[Any]) -> list[Any]:
        return reward.score_batch(rows) if way == "ours" else padded_scores(model, member, tokenizer, rows, way)

    run(rollouts[:40])  # kernels are chosen, and memory is taken
    held = memory_mb("VmRSS")
    if on_gpu:
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()
    else:
        Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew: loading the weights has one of its own
    began = time.perf_counter()
    scores = run(rollouts)  # all ways end with numbers on the CPU
    seconds = time.perf_counter() - began
    tokens = sum(len(encode_text(tokenizer, one.prompt, one.completion).ids) for one in rollouts)
    found = {"seconds": seconds, "texts": count, "mean": statistics.fmean(scores[:LOOP_TEXTS]), "tokens": tokens}
    found["memory_mb"] = torch.cuda.max_memory_allocated() / 2**20 if on_gpu else memory_mb("VmHWM") - held
    weights = sum(one.numel() for one in model.parameters()) - model.get_input_embeddings().weight.numel()
    found["flops"] = 2 * weights * tokens / seconds
    if on_gpu:
        name = torch.cuda.get_device_name()
        peak = next((value for key, value in PEAK_FLOPS.items() if key in name), 0.0)
        found["share"] = found["flops"] / peak if peak else 0.0
    return found


def padded_scores(model: Any, member: Any, tokenizer: Any, rollouts: list[Any], way: str) -> list[float]:
    """Return the scores of transformers' own forward over padded batches, in the order of the texts."""
    import torch

    from builtin_rewards.reward_model import encode_text

    rows = [list(encode_text(tokenizer, one.prompt, one.completion, max_length=member.max_length).ids)
            for one in rollouts]  # fmt: skip
    order = sorted(range(len(rows)), key=lambda place: len(rows[place])) if way == "sorted 32" else [*range(len(rows))]
    size = 1 if way == "loop" else BATCH
    scores = [0.0] * len(rows)
    with torch.inference_mode():
        for start in range(0, len(order), size):
            places = order[start : start + size]
            batch = tokenizer.pad({"input_ids": [rows[place] for place in places]}, return_tensors="pt")
            logits = model(**batch.to(model.device)).logits[:, 0].float().tolist()
            for place, score in zip(places, logits, strict=True):
                scores[place] = score
    return scores


def main() -> None:
    """Run all ways in turn, and print a line for each and the ratios."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder")
    parser.add_argument("--texts", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--headless", action="store_true")
    parser.add_argument("--random", action="store_true")
    parser.add_argument("--way", choices=WAYS)
    given = parser.parse_args()
    if given.way:
        print(json.dumps(measure(given.way, loaded(given.folder, given.device), given.texts)))
        return
    with tempfile.TemporaryDirectory() as place:
        folder = given.folder
        if given.random or given.headless:
            folder = (random_model if given.random else with_head)(given.folder, place)
        told: dict[str, list[dict[str, float]]] = {way: [] for way in WAYS}
        import torch

        on_card = given.device != "cpu" and torch.cuda.is_available()
        reward = loaded(folder, given.device) if on_card else None
        for _ in range(given.rounds):
            for way in WAYS:
                if reward is not None:
                    told[way].append(measure(way, reward, given.texts))
                    continue
                command = [sys.executable, __file__, folder, "--texts", str(given.texts), "--device", given.device]
                ran = subprocess.run([*command, "--way", way], capture_output=True, text=True, check=True)
                told[way].append(json.loads(ran.stdout.splitlines()[-1]))
    rates = {way: statistics.median(one["texts"] / one["seconds"] for one in runs) for way, runs in told.items()}
    for way, runs in told.items():
        flops = max(one["flops"] for one in runs) / 1e12
        share = f", {100 * max(one['share'] for one in runs):.1f} % of the card's peak" if "share" in runs[0] else ""
        memory = statistics.median(one["memory_mb"] for one in runs)
        mean = runs[0]["mean"]
        print(f"{way:9} {rates[way]:8.1f} texts/s, {memory:8.0f} MB, {flops:7.2f} TFLOP/s{share}, mean {mean:.4f}")
    for way in WAYS[1:]:
        print(f"ours / {way}: {rates['ours'] / rates[way]:.2f} times the texts/s")


if __name__ == "__main__":
    main()
