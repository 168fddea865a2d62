"""What the health checks cost, how often they are wrong, and how often they miss.

    python tests/benchmarks/bench_health.py [--seeds N] [--detected N]

Prints the milliseconds of a processor that each detector takes for 1,000 completions of 2 kB, the false alarms in 1,000
steps of each kind of healthy run, of so many runs with a planted problem those in which its detector spoke up, and how
many real texts have a pattern of an exploit.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import sys
import time
from collections import Counter
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "helpers"))

from synthetic_runs import HEALTHY, PLANTED, run_of

from rewardkit.health import exploits
from rewardkit.health.detectors import DETECTORS, missing_need
from rewardkit.health.evidence import Evidence, join_tables
from rewardkit.health.guesses import has_guesses
from rewardkit.health.watch import Watch

LENGTH_WORDS = 330
"""Words of about 2 kB."""
FEW_WORDS = 15
"""Words of a completion where many runs are made."""
LAYOUTS: dict[str, tuple[int | None, int | None, int]] = {
    "": (None, None, 1), ", 4 x 4": (4, 4, 1), ", 300 steps": (16, 8, 4),
}  # fmt: skip
"""By what is added to a run's name: groups of a step, completions of a group (its own: None), and times its steps."""
OFTEN = ("plain", "noisy", "new version", "skips by design", "flat", "rare penalty", "languages", "curriculum")
"""The healthy runs that are made in every layout."""


def cost() -> None:
    """Print what each detector takes for 1,000 completions, and what a watch takes for them in all."""
    run = run_of(seed=1, steps=18, words=LENGTH_WORDS)
    body = np.mean([len(text) for text in run.bodies.values()])
    windows = [join_tables(run.tables[at : at + 8]) for at in (0, 10)]
    thousand = len(windows[0]) / 1000
    print(
        f"cost in ms of a processor for 1,000 completions of {body:,.0f} bytes (texts of at most 256 of them are read)"
    )
    series = {
        name: np.concatenate([np.full(60, 0.5), np.random.default_rng(0).random(8)]) for name in ("correct", "format")
    }
    best: dict[str, float] = {}
    for _ in range(5):
        for name, detector in DETECTORS.items():
            before, after = (Evidence(table, run.texts, run.prompts, series) for table in windows)
            if missing_need(detector, after, before) is not None:
                continue
            before.sampled(), after.sampled()
            subjects = [(reward,) for reward in after.table.scores] if detector.each else [()]
            subjects += [(None,)] if detector.total else []
            began = time.process_time()
            for subject in subjects:
                detector.find(after, before, *subject)
            best[name] = min(best.get(name, 1e9), (time.process_time() - began) * 1e3 / thousand)
    for name, took in sorted(best.items(), key=lambda pair: -pair[1]):
        print(f"  {name:28} {took:8.2f}")
    took = []
    for _ in range(5):
        watch, steps = Watch(texts=run.texts, prompts=run.prompts), run.tables
        began = time.process_time()
        for table in steps:
            watch.observe(table)
        watch.finish()
        took.append((time.process_time() - began) * 1e3)
    counted = sum(map(len, run.tables))
    print(f"  {'a watch, all detectors':28} {1000 * min(took) / counted:8.2f}   ({counted:,} completions)")
    print(f"  {'a watch, each step of 128':28} {min(took) / len(steps):8.2f}")


def false_alarms(seeds: int) -> None:
    """Print the flags that come up in 1,000 steps of healthy runs."""
    print(f"\nfalse alarms in 1,000 steps of healthy runs ({seeds} seeds each)")
    print(f"  {'run':28} {'steps':>8} {'flags':>6} {'in 1,000':>9}   which")
    all_steps = all_flags = 0
    for added, (groups, size, times) in LAYOUTS.items():
        for name, kind in HEALTHY.items():
            if added and name not in OFTEN:
                continue
            steps, runs = kind.steps * times, max(1, seeds // times)
            layout = {"groups": groups or kind.groups, "size": size or kind.size}
            told: Counter[str] = Counter()
            for seed in range(runs):
                run = run_of(kind.plant, seed=1000 + seed, steps=steps, words=FEW_WORDS, **layout)
                told.update(flag.detector for flag in run.watched().flags)
            flags, looked = sum(told.values()), runs * steps
            all_steps, all_flags = all_steps + looked, all_flags + flags
            which = ", ".join(f"{one} {count}" for one, count in told.most_common())
            print(f"  {name + added:28} {looked:8,} {flags:6} {1000 * flags / looked:9.2f}   {which}", flush=True)
    print(f"  {'all':28} {all_steps:8,} {all_flags:6} {1000 * all_flags / all_steps:9.2f}")


def detected(seeds: int) -> None:
    """Print in how many runs with a planted problem its detector spoke up, and which others did that should not."""
    print(f"\nplanted problems found ({seeds} seeds each)")
    for name, (plant, also) in PLANTED.items():
        found, others = 0, Counter[str]()
        for seed in range(seeds):
            flags = {flag.detector for flag in run_of(plant, seed=2000 + seed, words=40).watched().flags}
            found += name in flags
            others.update(flags - also - {name})
        which = ", ".join(f"{one} {count}" for one, count in others.most_common())
        print(f"  {name:28} {found:4} of {seeds}   {which and 'besides: ' + which}", flush=True)


def real_texts() -> None:
    """Print how many real texts have a pattern of an exploit, of the data sets in ``$REWARDKIT_DATA``."""
    searched = {
        "tampering": lambda text: exploits._has_pattern(exploits.TAMPERING, text, ""),
        "judge_directed": lambda text: exploits._speaks_to_judge(text, ""),
        "answer_stuffing": lambda text: exploits._has_several_answers(text, ""),
        "guess_list": has_guesses,
    }
    print("\nreal texts with a pattern of an exploit")
    for path in sorted(Path(os.environ["REWARDKIT_DATA"]).glob("*/*.jsonl*")):
        with gzip.open(path, "rt") if path.suffix == ".gz" else path.open() as lines:
            rows = [json.loads(line) for line in lines]
        texts = [value for row in rows for value in row.values() if isinstance(value, str) and len(value) > 30]
        if texts:
            told = ", ".join(f"{name} {sum(map(search, texts))}" for name, search in searched.items())
            print(f"  {path.parent.name + '/' + path.name:48} {len(texts):6,} texts: {told}")


def main() -> None:
    """Read the command line and print the tables."""
    options = argparse.ArgumentParser(description="What the health checks cost and how often they are wrong.")
    options.add_argument("--seeds", type=int, default=20)
    options.add_argument("--detected", type=int, default=5)
    chosen = options.parse_args()
    cost()
    if chosen.seeds:
        false_alarms(chosen.seeds)
    if chosen.detected:
        detected(chosen.detected)
    if "REWARDKIT_DATA" in os.environ:
        real_texts()


if __name__ == "__main__":
    main()
