"""What pictures cost a run: how long a training waits for a step's, how long they take beside it, and their bytes.

    python tests/benchmarks/bench_pictures.py [--steps 20] [--side 1000]

A step is 64 completions of 8 prompts, each prompt with a photograph of its own; the same steps without pictures are
recorded in turns with them.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from pathlib import Path

from PIL import Image

from rewardkit.record.recorder import Recorder
from rewardkit.score_batch import ScoreBatch
from rewardkit.types import Outcome, Rollout, Status

PROMPTS, GROUP = 8, 8


def photograph(side: int, seed: int) -> Image.Image:
    """Return a picture of many colours, smooth in the large as photographs are."""
    bands = [Image.effect_noise((side // 16, side // 16), 40 + seed + band).resize((side, side)) for band in range(3)]
    return Image.merge("RGB", bands)


def step(number: int, side: int | None) -> ScoreBatch:
    """Return a step's completions, with pictures of this side or without."""
    rows = [
        {"answer": str(number * PROMPTS + place)} | ({} if side is None else {"image": photograph(side, place)})
        for place in range(PROMPTS)
    ]
    rollouts = [Rollout(f"What is it? {row['answer']}", "a text " * 200, row) for row in rows for _ in range(GROUP)]
    outcomes = [Outcome(Status.SCORED, 1.0, version="0" * 12) for _ in rollouts]
    return ScoreBatch(rollouts, {"right": outcomes}, {"right": 1.0})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--side", type=int, default=1000)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        waits: dict[bool, list[float]] = {True: [], False: []}
        beside: list[float] = []
        recorders = {has: Recorder(Path(folder, str(has))) for has in waits}
        for number in range(arguments.steps):
            for has, recorder in recorders.items():
                batch = step(number, arguments.side if has else None)
                began = time.perf_counter()
                recorder.record(batch, step=number)
                waits[has].append(time.perf_counter() - began)
                recorder.flush()
                if has:
                    beside.append(time.perf_counter() - began)
        for recorder in recorders.values():
            recorder.close()
        sizes = {has: Path(folder, str(has), "record.db").stat().st_size for has in waits}
    pictures = arguments.steps * PROMPTS
    print(f"a step waits: {statistics.median(waits[False]) * 1e3:.1f} ms without pictures,", end=" ")
    print(f"{statistics.median(waits[True]) * 1e3:.1f} ms with {PROMPTS} of {arguments.side} by {arguments.side}")
    print(f"until they are in the file: {statistics.median(beside) * 1e3:.0f} ms")
    print(f"bytes a picture: {(sizes[True] - sizes[False]) / pictures:,.0f}")


if __name__ == "__main__":
    main()
