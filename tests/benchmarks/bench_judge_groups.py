"""How well judges of groups rank, and for how much: all pairs beside one question for the whole group.

    python tests/benchmarks/bench_judge_groups.py [--noise 1.0] [--bias 0.5] [--drift 0.5] [--crowding 0.0]
    python tests/benchmarks/bench_judge_groups.py --real http://127.0.0.1:8765/v1 --model NAME [--pairs 30]

Without ``--real`` the model is a fake of known strength. Each answer has a true quality. In each question the fake sees
it with noise of its own and prefers earlier places: ``bias`` is how far the first is ahead of the last. Of two answers
it names the better one; of a list it grades 5 + 2 times what it sees, held in 0 to 10, and all of a question move
together by ``drift``. Both kinds of questions have the same noise, unless ``crowding`` adds that share of it with each
doubling of the answers beyond two: whether a model has more noise in long lists is to be measured on that model.

Groups of 2 are LLMBar's pairs (folder ``llmbar`` of ``$REWARDKIT_DATA``), the chosen one better by 1. Larger ones are
an instruction of LLMBar with answers of its rows, whose qualities are drawn from a normal distribution of standard
deviation 1. Rank quality is Kendall's tau-a over all pairs of all groups: pairs in the right order less those in the
wrong one, ties neither, over all. Tokens are those of the prompts, as characters / 4, without the reply's schema.

With ``--real`` a server's model judges LLMBar's shortest pairs, and the figures are what they are.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import itertools
import json
import math
import os
import random
import re
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from rich.console import Console
from rich.table import Table

from builtin_rewards.judge import ListwiseJudge, Load, PairwiseJudge
from rewardkit import Score
from rewardkit.testing import Asked, FakeJudge

GROUPS = {2: 300, 4: 60, 8: 40, 16: 20, 32: 8}
FENCED = re.compile(r"<(first|second|answer-\d+)-([0-9a-f]{12})>\n(.*?)\n</\1-\2>", re.DOTALL)


class Case(NamedTuple):
    """A group: its instruction, its answers, and how good each is."""

    prompt: str
    answers: list[str]
    worth: list[float]


def llmbar() -> list[dict[str, Any]]:
    """Return LLMBar's rows."""
    folder = Path(os.environ.get("REWARDKIT_DATA", "../shared/data"), "llmbar")
    return [row for file in sorted(folder.glob("*.json")) for row in json.loads(file.read_text(encoding="utf-8"))]


def pairs(rows: Sequence[dict[str, Any]]) -> list[Case]:
    """Return the pairs, the chosen answer better by 1."""
    return [
        Case(row["input"], [row["output_1"], row["output_2"]], [0.5, -0.5] if row["label"] == 1 else [-0.5, 0.5])
        for row in rows
    ]


def groups(rows: Sequence[dict[str, Any]], size: int, count: int) -> list[Case]:
    """Return groups with qualities that are drawn."""
    draw = random.Random(size)
    texts = sorted({row[name] for row in rows for name in ("output_1", "output_2") if row[name].strip()})
    return [
        Case(draw.choice(rows)["input"], draw.sample(texts, size), [draw.gauss(0, 1) for _ in range(size)])
        for _ in range(count)
    ]


def fake(case: Case, arguments: argparse.Namespace, seed: int) -> Callable[[Asked], str]:
    """Return the script of a model that sees a group's qualities with noise, and prefers early places."""
    worth = dict(zip(case.answers, case.worth, strict=True))

    def script(asked: Asked) -> str:
        shown = [(name, text) for name, _, text in FENCED.findall(asked.text)]
        draw = random.Random(hashlib.sha256(f"{seed}{asked.text}".encode()).digest())
        noise = arguments.noise * (1 + arguments.crowding * math.log2(len(shown) / 2))
        drift = draw.gauss(0, arguments.drift)
        seen = {
            name: worth[text] + draw.gauss(0, noise) + arguments.bias * (0.5 - place / (len(shown) - 1))
            for place, (name, text) in enumerate(shown)
        }
        if "first" in seen:
            return json.dumps({"reason": "so", "verdict": "A" if seen["first"] > seen["second"] else "B"})
        grades = {name: min(10, max(0, round(5 + 2 * (said + drift)))) for name, said in seen.items()}
        return json.dumps({name: {"reason": "so", "score": grade} for name, grade in grades.items()})

    return script


def concordance(case: Case, scores: Sequence[float]) -> float:
    """Return the pairs in the right order less those in the wrong one."""
    found = itertools.combinations(zip(case.worth, scores, strict=True), 2)
    return sum(math.copysign(1, (a - b) * (x - y)) for (a, x), (b, y) in found if x != y)


KINDS: dict[str, Callable[..., Any]] = {
    "pairs, both orders": lambda **how: PairwiseJudge("m", **how),
    "pairs, one order": lambda **how: PairwiseJudge("m", order="first", **how),
    "list, once": lambda **how: ListwiseJudge("m", repeats=1, **how),
    "list, twice": lambda **how: ListwiseJudge("m", repeats=2, **how),
    "list, 3 times": lambda **how: ListwiseJudge("m", repeats=3, **how),
    "list, 8 times": lambda **how: ListwiseJudge("m", repeats=8, **how),
    "list, twice, 8 a question": lambda **how: ListwiseJudge("m", repeats=2, most=8, **how),
}


async def ranked(kind: str, cases: Sequence[Case], arguments: argparse.Namespace) -> list[str]:
    """Return a row of the table: what a kind of judge makes of groups, by a fake."""
    right, every, requests, tokens = 0.0, 0, 0, 0.0
    for seed, case in enumerate(cases):
        client = FakeJudge(fake(case, arguments, seed))
        scores = await KINDS[kind](client=client)(prompt=case.prompt, completions=case.answers)
        right += concordance(case, [score.value for score in scores])
        every += math.comb(len(scores), 2)
        requests += len(client.asked)
        tokens += sum(len(asked.text) for asked in client.asked) / 4
    tau, requests_each, tokens_each = right / every, requests / len(cases), tokens / len(cases)
    each = [f"{requests_each:.0f}", f"{tokens_each:,.0f}", f"{tau:.3f}"]
    return [kind, *each, f"{tau / requests_each:.4f}", f"{1000 * tau / tokens_each:.4f}"]


def by_a_fake(arguments: argparse.Namespace) -> None:
    """Print the table of a fake of known strength."""
    rows = llmbar()
    for size, count in GROUPS.items():
        cases = pairs(rows)[:count] if size == 2 else groups(rows, size, count)
        # A pair with an answer that says nothing needs no judge, and equal answers tie.
        cases = [case for case in cases if len({text.strip() for text in case.answers} - {""}) == size]
        table = Table("judge", "requests", "tokens", "tau", "tau / request", "tau / 1,000 tokens", title=f"of {size}")
        for kind in KINDS if size > 8 else list(KINDS)[:-2]:
            table.add_row(*asyncio.run(ranked(kind, cases, arguments)))
        Console().print(table)


async def by_a_model(arguments: argparse.Namespace) -> None:
    """Print what a real model makes of LLMBar's shortest pairs, as many as there is time for."""
    cases = sorted(pairs(llmbar()), key=lambda case: len(case.prompt) + sum(map(len, case.answers)))[: arguments.pairs]
    how: dict[str, Any] = {"base_url": arguments.real, "load": Load(concurrency=2), "reason_chars": 40}
    how |= {"deadline_s": 600.0, "max_tokens": 256, "verify": False}
    judges = {
        "pairs, both orders": PairwiseJudge(arguments.model, **how),
        "list, twice": ListwiseJudge(arguments.model, **how),
    }
    found = {kind: Counter[str]() for kind in judges}
    began = time.perf_counter()
    for case in cases:
        for kind, judge in judges.items():
            begun = time.perf_counter()
            scores = [
                one for one in await judge(prompt=case.prompt, completions=case.answers) if isinstance(one, Score)
            ]
            order = concordance(case, [score.value or 0.0 for score in scores]) if len(scores) == 2 else None
            found[kind]["failed" if order is None else "right" if order > 0 else "wrong" if order < 0 else "tied"] += 1
            found[kind]["moved"] += any(one.metrics.get("flips") or one.metrics.get("spread") for one in scores)
            for name in ("requests", "prompt_tokens"):
                found[kind][name] += round(sum(score.metrics.get(name, 0.0) for score in scores))
            found[kind]["seconds"] += round(time.perf_counter() - begun)
        if time.perf_counter() - began > arguments.seconds:
            break
    columns = ("right", "wrong", "tied", "failed", "moved", "requests", "prompt_tokens", "seconds")
    table = Table("judge", *columns, title="LLMBar's shortest pairs; moved: with the order")
    for kind, counts in found.items():
        table.add_row(kind, *(f"{counts[column]:,}" for column in columns))
    Console().print(table)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--noise", type=float, default=1.0)
    parser.add_argument("--bias", type=float, default=0.5)
    parser.add_argument("--drift", type=float, default=0.5)
    parser.add_argument("--crowding", type=float, default=0.0)
    parser.add_argument("--real", help="the address of a server, to ask its model and no fake")
    parser.add_argument("--model", help="its model")
    parser.add_argument("--pairs", type=int, default=30)
    parser.add_argument("--seconds", type=float, default=300.0, help="no further pair is begun after so many")
    arguments = parser.parse_args()
    if arguments.real:
        asyncio.run(by_a_model(arguments))
    else:
        by_a_fake(arguments)


if __name__ == "__main__":
    main()
