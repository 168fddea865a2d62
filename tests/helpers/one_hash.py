"""Pairs that a hash table cannot tell apart by their hashes."""

from __future__ import annotations


def items_with_one_hash(count: int) -> list[tuple[int, int]]:
    """Return pairs of one hash, whose first parts are 1, 2 and on: CPython's hash of a pair, solved for the second."""
    mask = (1 << 64) - 1
    first, second, start = 11400714785074694791, 14029467366897019727, 2870177450012600261
    pairs, key = [], 0
    while len(pairs) < count:
        key += 1
        state = (start + key * second) & mask
        state = ((state << 31 | state >> 33) & mask) * first & mask
        value = (12345678901234567 - state) * pow(second, -1, 1 << 64) & mask
        value -= (value >> 63) << 64
        if abs(value) < (1 << 61) - 1:
            pairs.append((key, value))
    return pairs
