"""Solutions of HumanEval that are changed in one place: what Python's own run of the tests refuses is refused here."""

from __future__ import annotations

import ast
import gzip
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from builtin_rewards.code import code_tests
from sandbox import Limits, Sandbox

pytestmark = pytest.mark.slow

LIMITS = Limits(timeout_s=3.0)
OPERATORS = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Add, ast.Mod: ast.FloorDiv, ast.Lt: ast.LtE, ast.LtE: ast.Lt,
    ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.And: ast.Or, ast.Or: ast.And,
}  # fmt: skip


def mutants(source: str, entry_point: str) -> Iterator[str]:
    """Yield a solution with one operator, bound or constant of its entry point changed."""
    for number in range(sum(1 for _ in ast.walk(ast.parse(source)))):
        tree = ast.parse(source)
        function = next(one for one in tree.body if getattr(one, "name", "") == entry_point)
        target = list(ast.walk(tree))[number]
        if target not in ast.walk(function):
            continue
        if isinstance(target, ast.BinOp | ast.BoolOp) and type(target.op) in OPERATORS:
            target.op = OPERATORS[type(target.op)]()
        elif isinstance(target, ast.Compare) and type(target.ops[0]) in OPERATORS:
            target.ops[0] = OPERATORS[type(target.ops[0])]()
        elif isinstance(target, ast.Constant) and type(target.value) is int:
            target.value += 1
        elif isinstance(target, ast.Return) and target.value is not None:
            target.value = ast.List([target.value], ast.Load())
        else:
            continue
        yield ast.unparse(ast.fix_missing_locations(tree))


def test_what_python_refuses_is_refused(data: Path, full: bool) -> None:
    """A verdict is that of a plain run: no buggy twin of a right solution is accepted, and none is skipped."""
    with gzip.open(data / "humaneval" / "HumanEval.jsonl.gz", "rt", encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    judge = code_tests(all_or_nothing=True, limits=LIMITS)
    odd = {}
    with Sandbox(workers=1) as sandbox:
        for row in rows if full else rows[::16]:
            source, entry_point = row["prompt"] + row["canonical_solution"], row["entry_point"]
            columns = {"tests": row["test"], "entry_point": entry_point, "prompt": row["prompt"]}
            for number, mutant in enumerate(list(mutants(source, entry_point))[:4]):
                plain = sandbox.run(f"{mutant}\n{row['test']}\ncheck({entry_point})\n", limits=LIMITS)
                score = judge(completion=f"```python\n{mutant}\n```", sandbox=sandbox, **columns)
                if score.value != float(plain.status == "ok"):
                    odd[row["task_id"], number] = (plain.status, score, mutant)
    assert {} == odd
