"""Answers as a driver's descriptor can hold them, drawn at random."""

from __future__ import annotations

import json
import random
from typing import Any

from one_hash import items_with_one_hash

PRIME = (1 << 61) - 1
ALIKE = items_with_one_hash(2_000)
TAGS = ("$u", "$f", "$i", "$m", "$s", "$t", "$o", "$x", "v", "a", "e", "$", "")


def draw_answers(seed: int) -> tuple[bytes, int]:
    """Return what a descriptor holds, and the number of calls that were asked."""
    dice = random.Random(seed)
    count = dice.randint(1, 4)
    lines = [_line(dice) for _ in range(count + dice.choice((0, 0, 0, 0, 1, -1)))]
    return b"".join(lines) + dice.choice((b"", b"", b"", b"\n", b"x")), count


def _line(dice: random.Random) -> bytes:
    text = json.dumps({dice.choice("vvvvvae"): _tree(dice, 0)}, separators=(",", ":")).encode()
    if dice.random() < 0.1:  # bytes that are no text, or an end in the midst
        at = dice.randrange(len(text))
        noise = bytes(dice.choices(b'\x00\xff{}[]",:\\ \n', k=dice.randint(0, 4)))
        text = text[:at] + noise + text[at + dice.randint(0, 3) :]
    return text + b"\n"


def _tree(dice: random.Random, depth: int) -> Any:
    kind = dice.randrange(14 if depth < 5 else 6)
    many = dice.choice((0, 1, 2, 3, 50, 201, 2_000)) if depth < 3 else 2
    if kind < 3:
        return dice.choice((0, 1, -1, 2.5, 1e308, 10**400, True, None, "", "x" * many, "\ud800", "NaN", PRIME))
    if kind == 3:
        return {"$i": dice.choice(("0", "-1", str(PRIME), "9" * 19, "9" * 4_000, "-" + "9" * 4_400, "", "-", "٣"))}
    if kind == 4:
        return {"$f": dice.choice(("NaN", "Infinity", "-Infinity", "1", 3, None))}
    if kind == 5:
        return {dice.choice(TAGS): dice.choice((0, "", [], {}, [[]], [[1, 2], [1, 3]]))}
    if kind == 6:
        return {"$s": [1 + number * PRIME for number in range(many)]}
    if kind == 7:
        return {"$s": [_wrapped(dice, [[key, {"$i": str(value)}] for key, value in ALIKE[:many]])]}
    if kind == 8:
        return {"$m": [[_tree(dice, depth + 1), _tree(dice, depth + 1)] for _ in range(min(many, 50))]}
    if kind == 9:
        return {"$s": [_tree(dice, depth + 1) for _ in range(min(many, 50))]}
    if kind == 10:
        return {"$o": [[f"k{number}", _tree(dice, 5)] for number in range(many)]}
    if kind == 11:
        return _deep(dice.choice((10, 99, 100, 101, 300, 900)))
    if kind == 12:
        return [[[key, value] for key, value in ALIKE[:many]], {"$s": [[key, value] for key, value in ALIKE[:many]]}]
    return [_tree(dice, depth + 1) for _ in range(min(many, 50))]


def _wrapped(dice: random.Random, pairs: list[Any]) -> Any:
    return dice.choice(({"$m": pairs}, [{"$m": pairs}], {"$s": pairs}, {"$m": [[{"$m": pairs}, 1]]}))


def _deep(depth: int) -> Any:
    tree: Any = []
    for _ in range(depth):
        tree = [tree]
    return tree
