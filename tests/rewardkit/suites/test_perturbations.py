"""What can be changed in a test: each form of assert by its kind, certain to fail on right code, and what is weak."""

from __future__ import annotations

import datetime
import decimal
import fractions
import unittest
from collections import Counter
from random import Random
from typing import Any

import pytest

from rewardkit.suites.twins import SuiteTwins

DRAWS = 50
T = "def test_it():\n    "
P = "import pytest\n" + T
FORMS: dict[str, tuple[str, Any, str]] = {
    # kind, what f gives, the test
    "variable": ("value", [1, 2], T + "e: list = [1, 2]\n    assert f(2) == e\n"),
    "variable used for more": ("polarity", 4, T + "e = 4\n    assert f(e) == e\n"),
    "variable used later": ("value", 4, T + "e = 4\n    assert f(2) == e\n    assert f(e) == e\n"),
    "variable used in finally": (
        "polarity",
        4,
        T + "e = 4\n    try:\n        assert f(2) == e\n    finally:\n        f(e)\n",
    ),
    "variable in an earlier function": ("polarity", 4, T + "e = 4\n    g = lambda: e\n    assert f(2) == e\n"),
    "joined": ("value", "a\nb", T + "e = '\\n'.join(['a', 'b'])\n    assert f(2) == e\n"),
    "joined, computed": ("polarity", "a\nb", T + "e = '\\n'.join([f(2)])\n    assert f(2) == e\n"),
    "dedented": ("value", "a\nb", "import textwrap\n" + T + "assert f(2) == textwrap.dedent('  a\\n  b')\n"),
    "encoded": ("value", b"abc", T + "assert f(2) == ' abc '.strip().encode()\n"),
    "a method of no text": ("polarity", [1], T + "assert f(2) == [1].copy()\n"),
    "helper": ("value", 4, "def same(e, r):\n    print(e)\n    assert e == r\n" + T + "same(4, f(2))\n"),
    "helper, by name": ("value", 4, "def same(e, r):\n    assert e == r\n" + T + "same(r=f(2), e=4)\n"),
    "helper, near": (
        "value",
        4.0,
        "from pytest import approx\ndef same(e, r):\n    assert e == approx(r, abs=0.5)\n" + T + "same(4.0, f(2))\n",
    ),
    "helper that returns": (
        "",
        4,
        "def same(e, r):\n    if e:\n        return\n    assert e == r\n" + T + "same(4, f(2))\n",
    ),
    "helper that sets": ("", 4, "def same(e, r):\n    e = r\n    assert e == r\n" + T + "same(4, f(2))\n"),
    "helper that yields": ("", 4, "def same(e, r):\n    assert e == r\n    yield\n" + T + "same(4, f(2))\n"),
    "helper, wrapped": (
        "",
        4,
        "def lax(g):\n    return print\n@lax\ndef same(e, r):\n    assert e == r\n" + T + "same(4, f(2))\n",
    ),
    "helper of a parameter's name": (
        "",
        4,
        "def same(e, r):\n    assert e == r\ndef test_it(same=print):\n    same(4, f(2))\n",
    ),
    "helper, of many": ("", 4, "def same(e, r):\n    assert e == r\n" + T + "same(*(4, f(2)))\n"),
    "variable set twice": ("polarity", 4, T + "e = 3\n    e = 4\n    assert f(2) == e\n"),
    "rows of a loop": ("value", 4, T + "for x, e in [(1, 4), (2, 4)]:\n        assert f(x) == e\n"),
    "after a loop": ("polarity", 4, T + "for x, e in [(1, 3), (2, 4)]:\n        pass\n    assert f(x) == e\n"),
    "items of a loop": ("value", 4, T + "for x, e in {1: 4}.items():\n        assert f(x) == e, x\n"),
    "loop over a variable": ("value", 4, T + "r = [(1, 4)]\n    for x, e in r:\n        assert f(x) == e\n"),
    "loop with a break": ("", 4, T + "for x in [1, 2]:\n        assert f(x) == 4\n        break\n"),
    "loop over a call": ("", 4, T + "for x in list(range(f(1))):\n        assert f(x) == 4\n"),
    "approx": ("value", 1000001, "from pytest import approx\n" + T + "assert f(2) == approx(1000001)\n"),
    "approx, rel": ("value", [1.5, 2.5], P + "assert f(2) == pytest.approx([1.5, 2.5], rel=0.05)\n"),
    "approx, computed": ("polarity", 1.5, P + "assert f(2) == pytest.approx(1.5, rel=f(3))\n"),
    "isclose": ("value", 2.5, "import math\n" + T + "assert math.isclose(f(2), 2.5, abs_tol=0.1)\n"),
    "Decimal": (
        "value",
        decimal.Decimal("1.2"),
        "from decimal import Decimal as D\n" + T + "assert f(2) == D('1.20')\n",
    ),
    "Fraction": (
        "value",
        fractions.Fraction(1, 3),
        "import fractions\n" + T + "assert f(2) == fractions.Fraction(1, 3)\n",
    ),
    "date": (
        "value",
        datetime.date(2020, 12, 31),
        "from datetime import date\n" + T + "assert f(2) == date(2020, 12, 31)\n",
    ),
    "Counter": ("value", Counter("aab"), "from collections import Counter\n" + T + "assert f(2) == Counter('aab')\n"),
    "its own class": ("polarity", 3, "def D(x):\n    return 3\ndef test_it():\n    assert f(2) == D('3')\n"),
    "a part of a list": ("value", [1, 3], T + "a = f(0)[0]\n    assert f(2) == [a, 3]\n"),
    "a part of a dict": ("value", {"a": 1, "b": 3}, T + "a = f(0)['a']\n    assert f(2) == {'a': a, 'b': 3}\n"),
    "and": ("value", 4, T + "assert f(1) == 4 and f(2)\n"),
    "or": ("polarity", 4, T + "assert f(1) == 4 or f(2) == 5\n"),
    "not": ("polarity", 0, T + "assert not f(1)\n"),
    "not, in parentheses": ("polarity", 0, T + "assert not(f(1) or f(2))\n"),
    "unequal": ("polarity", 5, T + "assert(f(1) != 4)\n"),
    "truth": ("polarity", 5, T + "assert(f(1))\n"),
    "chain": ("value", 3, T + "assert f(1) == f(2) == 3\n"),
    "order": ("order", 3, T + "assert 1 < f(1) <= (  # <\n    9)\n"),
    "is None": ("polarity", None, T + "assert f(1) is None\n"),
    "is True": ("value", True, T + "assert f(1) is True\n"),
    "not in": ("polarity", 3, T + "assert f(1) not in (1, 2)\n"),
    "after a return": ("", 4, T + "if f(1):\n        return\n    assert f(1) == 4\n"),
    "with": (
        "value",
        4,
        "from contextlib import nullcontext\n" + T + "with nullcontext():\n        assert f(1) == 4\n",
    ),
    "suppress": (
        "",
        4,
        "from contextlib import suppress\n" + T + "with suppress(Exception):\n        assert f(1) == 4\n",
    ),
    "try and except": ("", 4, T + "try:\n        assert f(1) == 4\n    except Exception:\n        pass\n"),
    "finally": ("value", 4, T + "try:\n        pass\n    finally:\n        assert f(1) == 4\n"),
    "finally, returned": ("", 4, T + "try:\n        assert f(1) == 4\n    finally:\n        return\n"),
    "raises": ("exception", 0, P + "with pytest.raises(ZeroDivisionError):\n        1 / f(1)\n"),
    "raises anything": ("", 0, P + "with pytest.raises(Exception):\n        1 / f(1)\n"),
    "xfail": ("", 3, "import pytest\n@pytest.mark.xfail\n" + T + "assert f(2) == 3\n"),
    "generator": ("", 3, T + "yield\n    assert f(2) == 3\n"),
    "f-string": ("polarity", "3a", T + "assert f(2) == f'{3}a'\n"),
    "empty": ("polarity", [], T + "assert f(2) == []\n"),
    "not a number": ("polarity", 4, T + "assert f(2) == f(2) != float('nan')\n"),
}
METHODS: dict[str, tuple[str, Any, str]] = {
    "assertAlmostEqual": ("value", 3.14159, "self.assertAlmostEqual(f(2), 3.14, places=2)"),
    "delta": ("value", 314, "self.assertAlmostEqual(f(2), 314, delta=5)"),
    "assertRaises": ("exception", 0, "self.assertRaises((ZeroDivisionError, OSError), lambda: 1 / f(2))"),
    "assertRaises, with": ("exception", 0, "with self.assertRaises(ZeroDivisionError): 1 / f(2)"),
    "assertGreater": ("order", 4, "self.assertGreater(f(2), 3)"),
    "assertTrue of a comparison": ("value", 4, "self.assertTrue(f(2) == 4)"),
    "assertTrue": ("polarity", 4, "self.assertTrue(f(2))"),
    "assertFalse": ("polarity", 0, "self.assertFalse(f(2))"),
    "assertIsNone": ("polarity", None, "self.assertIsNone(f(2))"),
    "assertIn": ("polarity", 4, "self.assertIn(f(2), [4])"),
    "assertCountEqual": ("value", [2, 1, 2], "self.assertCountEqual(f(2), [1, 2, 2])"),
    "assertDictEqual": ("value", {"a": 1}, "self.assertDictEqual({'a': 1}, f(2))"),
    "two literals": ("polarity", 4, "self.assertEqual(4, 4)"),
}
FORMS |= {
    name: (
        kind,
        answer,
        f"from unittest import TestCase\nclass TestIt(TestCase):\n    def test_it(self):\n        {line}\n",
    )
    for name, (kind, answer, line) in METHODS.items()
}


def passes(text: str, answer: Any) -> bool:
    """Return whether the test of a file passes where its ``f`` gives an answer."""
    names: dict[str, Any] = {"f": lambda *_: answer}
    exec(compile(text, "test_it.py", "exec"), names)
    if "TestIt" in names:
        result = unittest.TestResult()
        names["TestIt"]("test_it").run(result)
        return result.wasSuccessful()
    try:
        names["test_it"]()
    except Exception:
        return False
    return True


@pytest.mark.parametrize("form", FORMS)
def test_a_form_has_its_kind_and_right_code_fails_each_change(form: str) -> None:
    """Each form is changed as its kind says, and what passes it as written fails all draws."""
    kind, answer, text = FORMS[form]
    twins = SuiteTwins({"test_it.py": text})
    (test,) = twins.tests
    assert (kind, bool(kind)) == (test.kind, test.perturbable > 0)
    assert passes(text, answer)
    for seed in range(DRAWS if kind else 0):
        assert not passes(drawn(twins, test.name, seed), answer)


def drawn(twins: SuiteTwins, name: str, seed: int) -> str:
    """Return the file of tests with one test changed."""
    return twins.draw([name], Random(seed)).files["test_it.py"]


ROWS = {
    "rows": "[(1, 4), pytest.param(2, 4, id='b'), (3, 4)]",
    "a value without parts": "[(1, 4), (2, None), (3, 'x')]",
}


@pytest.mark.parametrize("rows", ROWS.values(), ids=ROWS)
@pytest.mark.parametrize("behind_name", [False, True], ids=["written there", "behind a name"])
def test_every_row_of_parameters_is_changed(rows: str, behind_name: bool) -> None:
    """The expected value of each row is another one, or that of another row."""
    values = "ROWS" if behind_name else rows
    text = f"import pytest\nROWS = {rows if behind_name else None}\n@pytest.mark.parametrize('x, e', {values})\n"
    text += "def test_it(x, e):\n    assert f(x) == e\n"
    twins = SuiteTwins({"test_it.py": text})
    assert ["value"] == [test.kind for test in twins.tests]
    for seed in range(DRAWS):
        before, after = (_rows(one) for one in (text, drawn(twins, "test_it.py::test_it", seed)))
        assert [x for x, _ in before] == [x for x, _ in after]
        assert all(old != new for (_, old), (_, new) in zip(before, after, strict=True))


def _rows(text: str) -> list[Any]:
    names: dict[str, Any] = {}
    exec(compile(text, "test_it.py", "exec"), names)
    return [getattr(row, "values", row) for row in names["test_it"].pytestmark[0].args[1]]


@pytest.mark.parametrize(
    "mark", ["marks=pytest.mark.xfail", "*X"], ids=["a row that may fail", "a row that is computed"]
)
def test_rows_that_cannot_be_changed_leave_the_polarity(mark: str) -> None:
    """Where one row has no certain change, no row is changed."""
    row = f"pytest.param(2, 4, {mark})" if "=" in mark else "(*X,)"
    text = f"import pytest\nX = 2, 4\n@pytest.mark.parametrize('x, e', [(1, 4), {row}])\n"
    text += "def test_it(x, e):\n    assert f(x) == e\n"
    assert ["polarity"] == [test.kind for test in SuiteTwins({"test_it.py": text}).tests]


def _literal(random: Random, depth: int = 2) -> str:
    kind = random.randrange(9 if depth else 5)
    if kind == 0:
        return str(random.randrange(-300, 300))
    if kind == 1:
        return repr(round(random.uniform(-9, 9), random.randrange(1, 5)))
    if kind == 2:
        return repr("".join(random.choices("abcXYZ 019.'\n\\é", k=random.randrange(5))))
    if kind == 3:
        return random.choice(["True", "False", "None", "0", "1", "0.0", "-0.0", "1.0"])
    if kind == 4:
        return repr(bytes(random.choices(range(256), k=random.randrange(4))))
    parts = [_literal(random, depth - 1) for _ in range(random.randrange(1, 4))]
    if kind == 5:
        return f"({', '.join(parts)},)"
    if kind == 6:
        return "{" + ", ".join(f"{random.randrange(99)}: {part}" for part in parts) + "}"
    if kind == 7:
        return "{" + ", ".join(str(random.randrange(20)) for _ in parts) + "}"
    return f"[{', '.join(parts)}]"


def _drawn_test(random: Random) -> tuple[str, list[Any]]:
    """Return a test of some asserts, and what right code gives for 0, 1, 2 and so on."""
    literals = [_literal(random) for _ in range(random.randrange(1, 5))]
    lines = ["def test_it():"]
    for at, literal in enumerate(literals):
        lines += random.choice(
            [
                [f"    assert f({at}) == {literal}"],
                [f"    assert ({literal}) == f({at}), 'why'"],
                [f"    e{at} = {literal}", f"    assert f({at}) == e{at}"],
                [f"    for x, e{at} in [({at}, {literal}), ({at}, {literal})]:", f"        assert f(x) == e{at}"],
                [f"    if f({at}):", f"        assert f({at}) == {literal}"],
                [f"    r = f({at})", f"    assert [r, {literal}] == [f({at}), r]"],
                [f"    assert f({at}) == {literal} and True"],
            ]
        )
    return "\n".join([*lines, ""]), [eval(literal) for literal in literals]


@pytest.mark.cases(100)
@pytest.mark.parametrize("seed", range(1000))
def test_right_code_fails_every_twin_of_a_drawn_test(seed: int) -> None:
    """A thousand drawn tests, with the code that is right for them: whatever can be changed fails it."""
    text, answers = _drawn_test(Random(seed))
    twins = SuiteTwins({"test_it.py": text})
    (test,) = twins.tests
    assert _holds(text, answers)
    if test.kind:
        assert not _holds(drawn(twins, test.name, seed), answers)


def _holds(text: str, answers: list[Any]) -> bool:
    names: dict[str, Any] = {"f": answers.__getitem__}
    exec(compile(text, "test_it.py", "exec"), names)
    try:
        names["test_it"]()
    except AssertionError:
        return False
    return True
