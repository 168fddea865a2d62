"""Prints the microseconds that one call of each built-in reward takes on a completion of 2 kB.

    python tests/benchmarks/bench_builtins.py [NAME ...]

The rows are those of ``docs/examples/rewards``, their completions made longer by a text before them. Columns are
coerced beforehand (see bench_coerce.py), and the first call, which loads what a reward needs, does not count. Of a
reward that compares a group of eight, it is the time for each of them.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from rewardkit.declare.spec import Kind, coerce_column
from rewardkit.loading.registry import entry_points, resolve
from sandbox import Sandbox

ROWS = Path(__file__).parents[2] / "docs" / "examples" / "rewards"
SIZE = 2048
AIM_US = 500
NO_AIM = ("code_compiles", "code_runs", "code_tests", "sql_result", "language_is", "math_answer", "bleu", "chrf")
"""What they cost is running code or queries, telling languages, reading formulas, or sacrebleu's work.

sacrebleu counts all n-grams in Python: with its references prepared beforehand, BLEU takes 0.7 ms and chrF 2.0 ms.
"""
GROUP = 8
"""Completions of a group; its call is shown for one of them."""
SECONDS_EACH = 0.3
_FILLER = (
    "Let us go through this step by step, with care for what was asked and what was not. First the given "
    "facts are put in order; then each is used once, and what follows from it is written down beside it. "
)


def lengthened(completion: str) -> str:
    """Return a completion of about :data:`SIZE` characters that ends as it did."""
    missing = SIZE - len(completion)
    return (_FILLER * (missing // len(_FILLER) + 1))[: max(0, missing)].strip() + "\n\n" + completion


def call(made: Any, row: dict[str, Any]) -> Any:
    """Return a function that scores the row once."""
    columns = {parameter.name for parameter in made.spec.parameters}
    text = lengthened(row["completion"])
    given = {name: value for name, value in row.items() if name in columns}
    if "sandbox" in columns:
        given["sandbox"] = Sandbox(workers=1).start()
    if made.spec.kind is Kind.GROUP:
        given |= {"completions": [text + str(number) for number in range(GROUP)]}
        given |= {"completion_ids": [list(range(500))] * GROUP} if "completion_ids" in columns else {}
    else:
        given |= {"completion": text} if "completion" in columns else {}
        given |= {"completion_ids": list(range(500))} if "completion_ids" in columns else {}
    plan = {parameter.name: parameter.coercer for parameter in made.spec.parameters}
    for name, value in given.items():
        coercer = plan[name]
        given[name] = value if coercer is None else coerce_column(coercer, name, value, None)
    return lambda: made.function(**given)


def measured(act: Any) -> float:
    """Return the median microseconds of a call."""
    act()
    taken: list[float] = []
    until = time.perf_counter() + SECONDS_EACH
    while time.perf_counter() < until or len(taken) < 5:
        began = time.perf_counter()
        act()
        taken.append(time.perf_counter() - began)
    return statistics.median(taken) * 1e6


def main() -> None:
    """Measure and print one table."""
    table = Table(title=f"one call on {SIZE} characters, Python {sys.version.split()[0]}")
    for column, side in (("reward", "left"), ("µs", "right"), ("aim", "right")):
        table.add_column(column, justify=side)  # type: ignore[arg-type]
    for name in sys.argv[1:] or sorted(entry_points()):
        made = resolve(name)
        first = (ROWS / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()[0]
        aim = "" if name in NO_AIM else f"<= {AIM_US}"
        shared = GROUP if made.spec.kind is Kind.GROUP else 1
        table.add_row(name, f"{measured(call(made, json.loads(first))) / shared:,.0f}", aim)
    Console(width=80).print(table)


if __name__ == "__main__":
    main()
