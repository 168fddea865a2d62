"""Prints the microseconds that coercion takes for one column, by annotation.

Run: ``python tests/benchmarks/bench_coerce.py``.
"""

from __future__ import annotations

import timeit
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel

from rewardkit.coercion.coerce import build_coercer

CALLS = 5_000
"""Calls of one round; the best of REPEATS rounds counts, as the others measure the machine's other work."""
REPEATS = 7


@dataclass
class Point:
    """Two numbers."""

    x: int
    y: float


class Model(BaseModel):
    """The same two numbers, for pydantic."""

    x: int
    y: float


COLUMNS: list[tuple[str, Any, object]] = [
    ("str", str, "the answer is 42"),
    ("int", int, "42"),
    ("int, real", int, 42),
    ("float", float, "3.25"),
    ("bool", bool, "True"),
    ("list[str], JSON", list[str], '["a", "bc", "def", "g", "hi"]'),
    ("list[str], Python literal", list[str], "['a', 'bc', 'def', 'g', 'hi']"),
    ("list[str], real", list[str], ["a", "bc", "def", "g", "hi"]),
    ("list[int]", list[int], "[1, 2, 3, 4, 5]"),
    ("dict", dict, '{"x": 1, "y": [2, 3]}'),
    ("dataclass", Point, '{"x": 1, "y": 2.5}'),
    ("BaseModel", Model, '{"x": 1, "y": 2.5}'),
    ("int | None", int | None, "42"),
    ("int | str", int | str, "abc"),
]


def microseconds(annotation: Any, value: object) -> float:
    """Microseconds that one call takes, in the best round."""
    coercer = build_coercer(annotation)
    timer = timeit.Timer(lambda: coercer(value))
    return min(timer.repeat(REPEATS, CALLS)) / CALLS * 1e6


def main() -> None:
    """Prints the table; a call of a lambda, about 0.05 µs, is in each number."""
    print(f"{'column':<28}{'µs':>8}")
    for name, annotation, value in COLUMNS:
        print(f"{name:<28}{microseconds(annotation, value):>8.2f}")


if __name__ == "__main__":
    main()
