"""Values drawn at random go through a function that gives them back: each is right, and none is another's.

A failure names its seed.
"""

from __future__ import annotations

import random
import secrets
from typing import Any

import pytest

from sandbox import FunctionCheck, Sandbox, check_functions, why_not_run

_SEEDS_IN_FULL = 40
_CHECKS = 60
_SOURCES = {
    "bash": 'f() { printf "%s\\n" "$1"; }',
    "javascript": "function f(x) { return x; }",
    "lua": "local function f(x) return x end",
    "perl": "sub f { return $_[0] }",
    "php": "<?php function f($x) { return $x; }",
    "ruby": "def f(x) = x",
}
_LETTERS = "aZ09 _,;'\"\\$`!*?&|<>(){}[]#~%@=+-./\u00e9\u20ac\U0001f600"
_INTEGERS = {"javascript": 1 << 53}
_TEXTS = ("", "0", "1", "1e5", "07", "true", "null", "nan", "undef", "a b", "\n", "__proto__", "length")


def _text(dice: random.Random, language: str) -> str:
    if language != "bash" and dice.random() < 0.3:
        return dice.choice(_TEXTS)
    letters = [letter for letter in _LETTERS if language != "bash" or letter not in " ,"]
    return "".join(dice.choices(letters, k=dice.randint(language == "bash", 6)))


def _scalar(dice: random.Random, language: str) -> Any:
    most = _INTEGERS.get(language, 1 << 63)
    kind = dice.randrange(6)
    if kind == 0:
        return dice.random() < 0.5
    if kind == 1:
        return dice.randint(-5, 5) if dice.random() < 0.5 else dice.randint(-most + 1, most - 1)
    if kind == 2:
        return round(dice.uniform(-9, 9), dice.randint(0, 9))
    if kind == 3:
        return dice.uniform(-1, 1) * 10.0 ** dice.randint(-300, 300)
    return _text(dice, language)


def _value(dice: random.Random, language: str, depth: int = 0) -> Any:
    """Return a value that the language has."""
    kind = dice.random()
    if kind < 0.4 or depth == 4 or (depth and language == "bash"):
        return _scalar(dice, language)
    if kind < 0.45:
        return None
    size = dice.choice((0, 0, 1, 1, 2, 3, 12))
    if kind < 0.75:
        items = [_value(dice, language, depth + 1) for _ in range(size)]
        return [[item] for item in items] if language == "bash" and dice.random() < 0.3 else items
    keys = [str(dice.randint(0, 3)) if dice.random() < 0.5 else _text(dice, language) for _ in range(size)]
    table = {key: _value(dice, language, depth + 1) for key in keys}
    return {key: item for key, item in table.items() if item is not None} if language == "lua" else table


@pytest.mark.fuzz
@pytest.mark.parametrize("language", sorted(_SOURCES))
def test_what_is_given_back_is_right_and_nothing_else(sandbox: Sandbox, language: str, full: bool) -> None:
    """Each value is the expected one, and among values that differ only itself is."""
    if reason := why_not_run(language):
        pytest.skip(reason)
    first = secrets.randbits(32) if full else 0
    for seed in range(first, first + (_SEEDS_IN_FULL if full else 1)):
        dice = random.Random(seed)
        values = [_value(dice, language) for _ in range(_CHECKS)]
        right = [FunctionCheck([value], value, float_tol=1e-9) for value in values]
        report = check_functions(sandbox, _SOURCES[language], "f", right, language=language)
        failures = [(value, check.reason) for value, check in zip(values, report.checks, strict=True) if check.reason]
        assert [] == failures, seed
        wrong = [FunctionCheck([value], [[value]]) for value in values if language != "bash"]
        if wrong:
            assert 0 == check_functions(sandbox, _SOURCES[language], "f", wrong, language=language).passed, seed
