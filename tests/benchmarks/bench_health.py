"""What the health checks cost, how often they are wrong, and how often they miss.

    python tests/benchmarks/bench_health.py [--seeds N] [--detected N]

Prints three tables: the milliseconds that each detector takes for 1,000 completions of 2 kB, the false alarms in 1,000
steps of each kind of healthy run, and of so many runs with a planted problem those in which its detector spoke up.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "helpers"))

from synthetic_runs import HEALTHY, PLANTED, run_of

from rewardkit.health.detectors import DETECTORS, lacking
from rewardkit.health.evidence import Evidence, joined
from rewardkit.health.watch import Watch

LENGTH_WORDS = 330
"""Words of about 2 kB."""


def cost() -> None:
    """Print what each detector takes for 1,000 completions, and what a watch takes for them in all."""
    run = run_of(seed=1, steps=18, words=LENGTH_WORDS)
    body = np.mean([len(text) for text in run.bodies.values()])
    windows = [joined(run.tables[at : at + 8]) for at in (0, 10)]
    thousand = len(windows[0]) / 1000
    print(f"cost in ms for 1,000 completions of {body:,.0f} bytes (texts of at most 256 of them are read)")
    series = {
        name: np.concatenate([np.full(60, 0.5), np.random.default_rng(0).random(8)]) for name in ("correct", "format")
    }
    best: dict[str, float] = {}
    for _ in range(5):
        for name, detector in DETECTORS.items():
            before, after = (Evidence(table, run.texts, run.asked, series) for table in windows)
            if lacking(detector, after, before) is not None:
                continue
            before.sampled(), after.sampled()
            subjects = list(after.table.scores) if detector.each else [None]
            began = time.perf_counter()
            for subject in subjects:
                detector.find(after, before, subject)
            best[name] = min(best.get(name, 1e9), (time.perf_counter() - began) * 1e3 / thousand)
    for name, took in sorted(best.items(), key=lambda pair: -pair[1]):
        print(f"  {name:28} {took:8.2f}")
    took = []
    for _ in range(5):
        watch, steps = Watch(texts=run.texts, asked=run.asked), run.tables
        began = time.perf_counter()
        for table in steps:
            watch.observe(table)
        watch.finish()
        took.append((time.perf_counter() - began) * 1e3)
    counted = sum(map(len, run.tables))
    print(f"  {'a watch, all detectors':28} {1000 * min(took) / counted:8.2f}   ({counted:,} completions)")
    print(f"  {'a watch, each step of 128':28} {min(took) / len(steps):8.2f}")


def false_alarms(seeds: int) -> None:
    """Print the flags that come up in 1,000 steps of healthy runs."""
    print(f"\nfalse alarms in 1,000 steps of healthy runs ({seeds} seeds each)")
    print(f"  {'run':20} {'steps':>8} {'flags':>6} {'in 1,000':>9}   which")
    all_steps = all_flags = 0
    for name, (plant, steps) in HEALTHY.items():
        told: Counter[str] = Counter()
        for seed in range(seeds):
            told.update(flag.detector for flag in run_of(plant, seed=1000 + seed, steps=steps).watched().flags)
        flags, looked = sum(told.values()), seeds * steps
        all_steps, all_flags = all_steps + looked, all_flags + flags
        which = ", ".join(f"{one} {count}" for one, count in told.most_common())
        print(f"  {name:20} {looked:8,} {flags:6} {1000 * flags / looked:9.2f}   {which}", flush=True)
    print(f"  {'all':20} {all_steps:8,} {all_flags:6} {1000 * all_flags / all_steps:9.2f}")


def detected(seeds: int) -> None:
    """Print in how many runs with a planted problem its detector spoke up, and which others did that should not."""
    print(f"\nplanted problems found ({seeds} seeds each)")
    for name, (plant, also) in PLANTED.items():
        found, others = 0, Counter[str]()
        for seed in range(seeds):
            flags = {flag.detector for flag in run_of(plant, seed=2000 + seed).watched().flags}
            found += name in flags
            others.update(flags - also - {name})
        which = ", ".join(f"{one} {count}" for one, count in others.most_common())
        print(f"  {name:28} {found:4} of {seeds}   {which and 'besides: ' + which}", flush=True)


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


if __name__ == "__main__":
    main()
