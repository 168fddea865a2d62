"""Throughput and memory of a reward model: 1,000 texts of 5 to 250 words, several ways, interleaved in one run.

``ours`` computes texts side by side while threads make tokens of later ones; ``sorted 32`` is transformers' own forward
over batches of 32 texts of like lengths, padded; ``trl`` over batches of 32 in the order of the texts, as TRL scores
inside a trainer; ``loop`` is one text after the other, of the first 100 texts. On a CPU each runs in a process of its
own, so that its peak memory is its own; the clock starts at the texts, so that tokens count.

    python tests/benchmarks/bench_reward_model.py FOLDER [--texts 1000] [--rounds 3] [--device auto]

FOLDER is any reward model with places for the longest text, some 500 tokens; a folder of a plain backbone gets a head
of random weights (``--headless``), and ``--random`` makes a Qwen2 of 0.36 B with random weights and the tokenizer of
FOLDER. On a card it ends within two minutes, and prints which share of the card's peak the passes over real tokens are:
two operations a weight and token.
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

    from builtin_rewards.reward_model.packing import ATTENTION
    from rewardkit import Rollout

    member = reward.function.scorer().members[0]
    count = min(count, LOOP_TEXTS) if way == "loop" else count
    rollouts = [Rollout("Say more.", text) for text in texts(count)]
    model = member.model
    if member.packs:
        model.set_attn_implementation(ATTENTION if way == "ours" else "sdpa")
    on_gpu = model.device.type == "cuda"

    def run(rows: list[Any]) -> list[Any]:
        if way != "ours":
            return padded_scores(member, rows, way)
        scores = reward.score_batch(rows)
        for error in (score for score in scores if isinstance(score, Exception)):
            raise error  # its time would be that of fewer texts
        return scores

    run(rollouts[:40])  # kernels are chosen, and memory is taken
    memory_before = memory_mb("VmRSS")
    if on_gpu:
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()
    else:
        Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew: loading the weights has one of its own
    start = time.perf_counter()
    scores = run(rollouts)  # all ways end with numbers on the CPU
    seconds = time.perf_counter() - start
    tokens = sum(len(ids) for ids in encoded(member, rollouts))
    figures = {"seconds": seconds, "texts": count, "mean": statistics.fmean(scores[:LOOP_TEXTS]), "tokens": tokens}
    figures["memory_mb"] = torch.cuda.max_memory_allocated() / 2**20 if on_gpu else memory_mb("VmHWM") - memory_before
    weights = sum(weight.numel() for weight in model.parameters()) - model.get_input_embeddings().weight.numel()
    figures["flops"] = 2 * weights * tokens / seconds
    if on_gpu:
        name = torch.cuda.get_device_name()
        peak = next((value for key, value in PEAK_FLOPS.items() if key in name), 0.0)
        if peak:
            figures["share"] = figures["flops"] / peak
    return figures


def encoded(member: Any, rollouts: list[Any]) -> list[list[int]]:
    """Return the tokens of each text, as the model reads them."""
    from builtin_rewards.reward_model import encode_text

    length, tokenizer = member.max_length, member.tokenizer
    return [[*encode_text(tokenizer, row.prompt, row.completion, max_length=length).ids] for row in rollouts]


def padded_scores(member: Any, rollouts: list[Any], way: str) -> list[float]:
    """Return the scores of transformers' own forward over padded batches, in the order of the texts."""
    import torch

    model, rows = member.model, encoded(member, rollouts)
    order = sorted(range(len(rows)), key=lambda index: len(rows[index])) if way == "sorted 32" else [*range(len(rows))]
    size = 1 if way == "loop" else BATCH
    scores = [0.0] * len(rows)
    with torch.inference_mode():
        for start in range(0, len(order), size):
            indices = order[start : start + size]
            batch = member.tokenizer.pad({"input_ids": [rows[index] for index in indices]}, return_tensors="pt")
            logits = model(**batch.to(model.device)).logits[:, 0].float().tolist()
            for index, score in zip(indices, logits, strict=True):
                scores[index] = score
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
    arguments = parser.parse_args()
    if arguments.way:
        print(json.dumps(measure(arguments.way, loaded(arguments.folder, arguments.device), arguments.texts)))
        return
    with tempfile.TemporaryDirectory() as made:
        folder = arguments.folder
        if arguments.random or arguments.headless:
            folder = (random_model if arguments.random else with_head)(folder, made)
        figures = measure_in_turn(folder, arguments.device, arguments.texts, arguments.rounds)
    print_figures(figures)


def measure_in_turn(folder: str, device: str, count: int, rounds: int) -> dict[str, list[dict[str, float]]]:
    """Return the figures of each way: of each round one, on a CPU of a process of its own."""
    import torch

    on_card = device != "cpu" and torch.cuda.is_available()
    reward = loaded(folder, device) if on_card else None
    figures: dict[str, list[dict[str, float]]] = {way: [] for way in WAYS}
    for way in WAYS * rounds:
        if reward is not None:
            figures[way].append(measure(way, reward, count))
            continue
        command = [sys.executable, __file__, folder, "--texts", str(count), "--device", device, "--way", way]
        process = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)  # its errors are shown
        figures[way].append(json.loads(process.stdout.splitlines()[-1]))
    return figures


def print_figures(figures: dict[str, list[dict[str, float]]]) -> None:
    """Print a line for each way, and the ratios."""
    rates = {way: statistics.median(run["texts"] / run["seconds"] for run in runs) for way, runs in figures.items()}
    for way, runs in figures.items():
        flops = max(run["flops"] for run in runs) / 1e12
        share = f", {100 * max(run['share'] for run in runs):.1f} % of the card's peak" if "share" in runs[0] else ""
        memory = statistics.median(run["memory_mb"] for run in runs)
        mean = runs[0]["mean"]
        print(f"{way:9} {rates[way]:8.1f} texts/s, {memory:8.0f} MB, {flops:7.2f} TFLOP/s{share}, mean {mean:.4f}")
    for way in WAYS[1:]:
        print(f"ours / {way}: {rates['ours'] / rates[way]:.2f} times the texts/s")


if __name__ == "__main__":
    main()
