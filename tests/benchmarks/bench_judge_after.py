"""What a judge after a cheap reward saves, and how many signs of advantages it keeps: drawn verdicts, and LLMBar's.

Each completion has a quality; the judge sees it with one noise, the cheap reward with another, both held in 0 to 1.
`python tests/benchmarks/bench_judge_after.py [--data ../shared/data]`
"""

from __future__ import annotations

import argparse
import json
import math
from pathlib import Path
from typing import Any

import numpy as np

from rewardkit.advantages import undecided_advantages

GROUPS, JUDGE_NOISE, ROUNDS = 1_000, 0.03, 4


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--data", type=Path)
    data = arguments.parse_args().data
    print("| groups | of | cheap noise | margin | spared | equal signs | rounds |\n|---|---|---|---|---|---|---|")
    for kind in ("right or wrong", "graded"):
        for size in (4, 8, 16):
            for noise, margin in ((0.05, 0.1), (0.1, 0.15), (0.1, 0.2)):
                draw = np.random.default_rng(7)
                row(kind, size, noise, margin, quality(kind, size, draw), draw)
    if data is not None:
        rows = [line for path in sorted((data / "llmbar").glob("*.json")) for line in json.loads(path.read_text())]
        better = np.array([[0.8, 0.2] if int(line["label"]) == 1 else [0.2, 0.8] for line in rows])
        row("LLMBar's pairs", 2, 0.15, 0.2, better, np.random.default_rng(3))


def quality(kind: str, size: int, draw: Any) -> Any:
    if kind == "graded":
        return draw.random((GROUPS, size))
    is_right = draw.random((GROUPS, size)) < draw.random((GROUPS, 1))
    return np.where(is_right, 0.85, 0.15) + draw.normal(0, 0.07, (GROUPS, size))


def row(kind: str, size: int, noise: float, margin: float, truth: Any, draw: Any) -> None:
    first, judge = (np.clip(truth + draw.normal(0, spread, truth.shape), 0, 1) for spread in (noise, JUDGE_NOISE))
    scores, final, rounds = first.copy(), np.zeros(truth.shape, dtype=bool), 0
    for index in range(len(scores)):
        for number in range(1, ROUNDS + 1):
            next_ones = undecided_advantages(scores[index].tolist(), final[index].tolist(), margin)
            if not len(next_ones):
                break
            asking = np.arange(size) if number == ROUNDS else next_ones
            scores[index, asking], final[index, asking] = judge[index, asking], True
            rounds += 1
    equal = np.mean(signs(scores) == signs(judge))
    shown = f"{1 - final.mean():.0%} | {math.floor(1000 * equal) / 10:.1f}% | {rounds / len(scores):.1f}"
    print(f"| {kind} | {size} | {noise:g} | {margin:g} | {shown} |")


def signs(scores: Any) -> Any:
    centred = scores - scores.mean(axis=1, keepdims=True)
    return np.where(np.abs(centred) < 1e-9, 0, np.sign(centred))


if __name__ == "__main__":
    main()
