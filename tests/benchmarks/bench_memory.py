"""What workers take of the memory where a reward imports torch: what each has alone, and what they share.

    python tests/benchmarks/bench_memory.py [--workers 32] [--library torch]

PSS, the proportional set size, counts a page that n processes share as an n-th of it in each. The first worker loads by
itself; the others are forked of a process that has loaded, where there are 16 or more.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from pathlib import Path

from rewardkit import Rollout, Runtime

MODULE = """
import {library}
from rewardkit import reward

@reward(timeout_s=60)
def scored(completion: str) -> float:
    return float(len(completion))
"""


def _memory(process: int) -> tuple[float, float]:
    """Return a process's PSS and what it has alone, in MiB."""
    sizes = {}
    for line in Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()[1:]:
        name, _, size = line.partition(":")
        sizes[name] = int(size.split()[0]) / 1024
    return sizes["Pss"], sizes["Private_Dirty"] + sizes["Private_Clean"]


def main() -> None:
    """Start the workers, score with all of them, and print what they take."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--workers", type=int, default=32, help="worker processes (default: 32)")
    parser.add_argument("--library", default="torch", help="what the reward's module imports (default: torch)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "measured.py").write_text(MODULE.format(library=options.library))
        began = time.perf_counter()
        with Runtime([f"{folder}/measured.py:scored"], workers=options.workers, load_timeout_s=600) as runtime:
            runtime.wait_loaded()
            loaded_s = time.perf_counter() - began
            batch = [Rollout("p", "x" * 2000)] * (64 * options.workers)
            for _ in range(3):
                assert all(outcome.score == 2000.0 for outcome in runtime.score(batch)["scored"])
            figures = [_memory(process) for process in runtime.processes]
            pss, private = zip(*figures, strict=True)
            print(f"{options.workers} workers that import {options.library} are loaded after {loaded_s:.1f} s")
            print(f"PSS of all: {sum(pss):,.0f} MiB, of a worker {statistics.median(pss):.1f} MiB")
            print(f"alone in a worker: {statistics.median(private):.1f} MiB")


if __name__ == "__main__":
    main()
