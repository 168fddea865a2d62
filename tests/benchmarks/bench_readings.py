"""Which completions two checkouts read differently: classes of difference with counts and examples, and who agrees.

    git worktree add ../before HEAD~20
    python tests/benchmarks/bench_readings.py ../before . [--examples 3]

Every completion of the data sets (``REWARDKIT_DATA``) is read in a process for each checkout: the final answer with its
rule, the final answer as a whole text, and ``math_answer`` where there is a gold. A class is how the rule or the
verdict changed. The exit code is 1 where a data set's agreement with its labels fell.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from rich.console import Console
from rich.table import Table

LATE_S = 1800.0
SHOWN_CHARS = 110


class Case(NamedTuple):
    """A completion of a data set.

    Attributes:
        source: The data set's name.
        completion: The text.
        gold: Its gold answer; empty where there is none.
        right: Whether it is labelled as right; ``None`` without a label.
    """

    source: str
    completion: str
    gold: str = ""
    right: bool | None = None


class Reading(NamedTuple):
    """How a checkout reads a completion: the final answer, its rule and verdict, the answer as a whole, the score."""

    answer: str | None
    rule: str
    verdict: str
    whole: str
    score: float | None


def _lines(path: Path) -> Iterator[Any]:
    opened = gzip.open(path, "rt", encoding="utf-8") if path.suffix == ".gz" else path.open(encoding="utf-8")
    with opened as file:
        yield from map(json.loads, file)


def cases(data: Path) -> Iterator[Case]:
    """Give every completion of the data sets."""
    for row in _lines(data / "gsm8k" / "test.jsonl"):
        yield Case("gsm8k solutions", row["answer"], row["answer"], True)
    for row in _lines(data / "gsm8k" / "example_model_solutions.jsonl"):
        gold = row["ground_truth"].rpartition("A:")[2].strip()
        for model in ("6b_finetuning", "6b_verification", "175b_finetuning", "175b_verification"):
            yield Case("gsm8k model answers", row[model]["solution"], gold, row[model]["is_correct"])
    for row in _lines(data / "gsm8k_predictions" / "tora-70b-v1.0.jsonl"):
        right = _same_number(row["pred"][0], row["gt"])
        yield Case("tora predictions", row["pred"][0], row["gt"], right)
        yield Case("tora programs", row["code"][0], row["gt"], right)
    for row in json.loads((data / "math" / "math500_qwen3_answers.json").read_text(encoding="utf-8")):
        yield Case("math500 answers", row["prediction"], row["answer"])
    for row in _lines(data / "math" / "math500_prm800k_test.jsonl"):
        yield Case("math500 solutions", row["solution"], row["answer"], True)
    for row in _lines(data / "math" / "qwen_math_cot_100.jsonl"):
        for response, right in zip(row["code"], row["score"], strict=True):
            yield Case("qwen math responses", response, row["gt"], right)
    for row in _lines(data / "ifeval" / "gpt-4o-2024-08-06_strict.jsonl"):
        yield Case("ifeval responses", row["response"])
    for path in sorted((data / "llmbar").glob("*.json")):
        for row in json.loads(path.read_text(encoding="utf-8")):
            yield Case("llmbar outputs", row["output_1"])
            yield Case("llmbar outputs", row["output_2"])
    for row in _lines(data / "hh_rlhf" / "harmless-base_test.jsonl.gz"):
        for kind in ("chosen", "rejected"):
            yield Case("hh replies", row[kind].rpartition("\n\nAssistant:")[2].strip())


def _same_number(one: str, other: str) -> bool:
    try:
        return float(one.replace(",", "")) == float(other.replace(",", ""))
    except ValueError:
        return one == other


def _data() -> Path:
    return Path(os.environ.get("REWARDKIT_DATA", Path(__file__).parents[3] / "shared" / "data"))


def _measure(checkout: str) -> None:
    """Read everything here, and print a line for each completion."""
    import builtin_rewards
    from builtin_rewards.math import math_answer
    from builtin_rewards.reading.answer import extract_answer, final_answer

    if not Path(builtin_rewards.__file__).is_relative_to(checkout):
        sys.exit(f"builtin_rewards was imported from {builtin_rewards.__file__}, which is not in {checkout}")
    for case in cases(_data()):
        found = extract_answer(case.completion)
        verdict = found.problem or ("stuffed" if found.stuffed else "one answer")
        whole: Any = final_answer(case.completion)
        score = math_answer.function(case.completion, case.gold).value if case.gold else None
        text = whole if isinstance(whole, str) else whole.text
        print(json.dumps([found.answer, str(found.rule), verdict, text, score]))


def readings(checkout: Path) -> list[Reading]:
    """Give how a checkout reads every completion, measured in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [sys.executable, str(Path(__file__).resolve()), "--measure", str(checkout.resolve())],
            env={**os.environ, "PYTHONPATH": str(checkout.resolve()), "REWARDKIT_DATA": str(_data().resolve())},
            cwd=folder,
            stdout=subprocess.PIPE,
            text=True,
            check=True,
            timeout=LATE_S,
        )
    return [Reading(*json.loads(line)) for line in done.stdout.splitlines()]


def classes_of(source: str, before: Reading, after: Reading) -> Iterator[str]:
    """Give the classes of difference that a completion's two readings belong to."""
    if (before.rule, before.verdict) != (after.rule, after.verdict):
        yield f"answer: {before.rule}, {before.verdict} -> {after.rule}, {after.verdict}"
    elif before.answer != after.answer:
        yield f"answer: other text by the rule {after.rule}"
    if before.whole != after.whole:
        yield f"answer as a whole text, of {source}"
    if before.score != after.score:
        yield f"math_answer: {before.score} -> {after.score}"


def _shown(text: str | None) -> str:
    return repr(text if text is None or len(text) <= SHOWN_CHARS else f"...{text[-SHOWN_CHARS:]}")


def main() -> int:
    """Print the classes and the agreement; the exit code is 1 where an agreement fell."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("before", type=Path, nargs="?", help="folder of the checkout that is compared with")
    parser.add_argument("after", type=Path, nargs="?", default=Path(), help="folder of the other (default: here)")
    parser.add_argument("--examples", type=int, default=3, help="examples of each class (default: 3)")
    parser.add_argument("--measure", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        _measure(options.measure)
        return 0
    if options.before is None:
        parser.error("name the checkout to compare with")
    old, new = readings(options.before), readings(options.after)
    found: dict[str, list[tuple[Case, Reading, Reading]]] = defaultdict(list)
    agree: Counter[tuple[str, str]] = Counter()
    for case, before, after in zip(cases(_data()), old, new, strict=True):
        agree[case.source, "completions"] += 1
        for each in classes_of(case.source, before, after):
            found[each].append((case, before, after))
        if case.gold:
            label = 1.0 if case.right is None else float(case.right)
            agree[case.source, "before"] += before.score == label
            agree[case.source, "after"] += after.score == label
    console = Console(width=160, highlight=False)
    table = Table(title="completions, and verdicts of math_answer that agree with the label (without one: paid)")
    for column in ("data set", "completions", "agree before", "agree after"):
        table.add_column(column, justify="left" if column == "data set" else "right")
    for source in dict.fromkeys(source for source, _ in agree):
        table.add_row(source, *(str(agree[source, column]) for column in ("completions", "before", "after")))
    console.print(table)
    for name, rows in sorted(found.items(), key=lambda item: -len(item[1])):
        console.print(f"\n{len(rows):5}  {name}", markup=False)
        for case, before, after in rows[: options.examples]:
            console.print(f"       {case.source}: {_shown(case.completion)}", markup=False)
            if name.startswith("answer as"):
                console.print(f"         {_shown(before.whole)} -> {_shown(after.whole)}", markup=False)
            else:
                console.print(f"         {_shown(before.answer)} -> {_shown(after.answer)}", markup=False)
    return int(any(agree[source, "after"] < agree[source, "before"] for source, _ in agree))


if __name__ == "__main__":
    sys.exit(main())
