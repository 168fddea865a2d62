"""Test text in the forms that data sets hold: each form passes right code, fails wrong code, and names its tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from code_sections import sections

from sandbox import CheckStatus, Sandbox, check_asserts
from sandbox.errors import CheckError

ADD, WRONG = "def add(a, b):\n    return a + b\n", "def add(a, b):\n    return 0\n"


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    with Sandbox(workers=1) as made:
        yield made


FORMS = sections("forms_of_tests.txt")
OBJECTS = sections("objects_of_code.txt")


@pytest.mark.parametrize("entry_point", ["add", None])
@pytest.mark.parametrize("form", FORMS)
def test_every_form_tells_right_from_wrong(sandbox: Sandbox, form: str, entry_point: str | None) -> None:
    """With and without an entry point the right code passes all checks, and the wrong one not all."""
    right, wrong = (check_asserts(sandbox, code, FORMS[form], entry_point=entry_point) for code in (ADD, WRONG))
    assert right.all_passed, right.checks
    assert not wrong.all_passed, wrong.checks
    nothing = "def add(a, b):\n    pass\ndef test_a(): pass\nclass TestAdd:\n    def test_a(self): pass\n"
    assert not check_asserts(sandbox, nothing, FORMS[form], entry_point=entry_point).all_passed


@pytest.mark.parametrize(
    "tests", ["print(add(1, 2) == 3)", "print('ok' if add(1, 2) == 3 else 'wrong')", "results = [add(1, 2) == 3]"]
)
def test_comparisons_are_checks_where_nothing_else_judges(sandbox: Sandbox, tests: str) -> None:
    """Without an entry point a comparison that is printed or collected is the verdict of tests that have no other."""
    assert check_asserts(sandbox, ADD, tests).all_passed
    assert 0 == check_asserts(sandbox, WRONG, tests).passed


@pytest.mark.parametrize(
    ("tests", "labels"),
    [
        (FORMS["pytest functions"], {"test_a": False, "test_b": False}),
        (FORMS["pytest class"], {"TestAdd.test_a": False}),
        (FORMS["parametrize"], {"test_a[1-2-3]": False, "test_a[twos]": False}),
        (FORMS["unittest"], {"TestAdd.test_a": False}),
        (FORMS["unittest runner"], {"TestAdd.test_a": False}),
        (FORMS["pytest functions"].replace("1, 2) == 3", "0, 0) == 0"), {"test_a": True, "test_b": False}),
    ],
)  # fmt: skip
def test_checks_have_the_names_of_their_tests(sandbox: Sandbox, tests: str, labels: dict[str, bool]) -> None:
    """A test is one check by its name, and what failed says which call gave what."""
    report = check_asserts(sandbox, WRONG, tests)
    assert labels == {check.label: check.status is CheckStatus.PASSED for check in report.checks}
    assert all(check.is_test for check in report.checks)
    assert all("gave 0" in check.reason for check in report.checks if check.status is not CheckStatus.PASSED)


def test_a_process_that_ends_leaves_the_tests_behind_it_unreached(sandbox: Sandbox) -> None:
    """Tests before it count, the test in which it ended has the reason, and later ones were not reached."""
    source = "import os\ndef add(a, b):\n    if a == 2:\n        os._exit(0)\n    return a + b\n"
    tests = "".join(f"def test_{n}():\n    assert add({n}, 0) == {n}\n" for n in (1, 2, 3))
    report = check_asserts(sandbox, source, tests)
    assert ["passed", "error", "not_reached"] == [check.status for check in report.checks]
    assert "during add(2, 0)" in report.checks[1].reason


@pytest.mark.parametrize("case", OBJECTS)
def test_objects_of_the_code_stay_with_it_and_are_used_as_in_python(sandbox: Sandbox, case: str) -> None:
    """Instances, iterators, functions, dates and output reach the tests as if both shared a process."""
    source, tests = OBJECTS[case].split("---\n")
    right, wrong = case.partition(" | ")[2].split(" => ")
    assert right in source
    report = check_asserts(sandbox, source, tests)
    assert report.all_passed, report.checks
    other = check_asserts(sandbox, source.replace(right, wrong), tests)
    assert not other.all_passed, other.checks


@pytest.mark.parametrize(
    ("tests", "words"),
    [
        ("from requests import get\nassert get(add(1, 2))", "requests"),
        ("import pandas as pd\nassert add(1, 2) == 3", "pandas"),
        ("from sklearn.metrics import f1_score\nassert f1_score(add(1, 2)) == 3", "sklearn"),
    ],
)
def test_modules_that_are_not_there_are_no_names_of_the_code(sandbox: Sandbox, tests: str, words: str) -> None:
    """A library that the jail lacks is the tests' fault, and its names are never looked for in the completion."""
    with pytest.raises(CheckError, match=words):
        check_asserts(sandbox, ADD + "def get(x): return True\ndef f1_score(x): return 3\n", tests)


FORGED_NAMES = (
    "def isclose(*a, **k): return True\ndef Counter(x): return 0\nclass math:\n    isclose = staticmethod(isclose)\n"
)


@pytest.mark.parametrize("form", ["unbound math", "unbound isclose", "unbound Counter"])
def test_usual_names_are_never_the_codes(sandbox: Sandbox, form: str) -> None:
    """What a completion defines under the name of a module or of its function does not reach the tests."""
    assert check_asserts(sandbox, FORGED_NAMES + ADD, FORMS[form]).all_passed
    assert 0 == check_asserts(sandbox, FORGED_NAMES + WRONG, FORMS[form]).passed


@pytest.mark.parametrize("name", ["gcd", "permutations", "sqrt", "product", "mean", "count"])
def test_a_usual_name_that_is_all_that_is_tested_is_the_codes(sandbox: Sandbox, name: str) -> None:
    """Tests whose only unbound name is a usual one test the completion's function of that name."""
    tests = f"assert {name}(12, 18) == 'six'"
    assert check_asserts(sandbox, f"def {name}(a, b): return 'six'", tests).all_passed
    assert not check_asserts(sandbox, f"def {name}(a, b): return 6", tests).all_passed
    assert not check_asserts(sandbox, "", tests).all_passed


JUDGES = {  # what judges in a test whose imports were dropped, and a completion's stand-in for it
    "math.isclose({}, 3, rel_tol=1e-4)": "class math: isclose = staticmethod(lambda *a, **k: True)",
    "isclose({}, 3)": "def isclose(*a, **k): return True",
    "pytest.approx(3) == {}": "class pytest: approx = staticmethod(lambda *a, **k: 0)",
    "{} == approx(3)": "def approx(*a, **k): return 0",
    "operator.eq({}, 3)": "class operator: eq = staticmethod(lambda *a: True)",
    "eq({}, 3)": "def eq(*a): return True",
    "is_({} == 3, True)": "def is_(*a): return True",
    "trunc({}) == 3": "def trunc(x): return 3",
    "statistics.mean([{}]) == 3": "class statistics: mean = staticmethod(lambda x: 3)",
    "deque([{}]) == deque([3])": "def deque(x): return 0",
    "re.fullmatch('3', str({}))": "class re: fullmatch = staticmethod(lambda *a: True)",
    "json.dumps({}) == '3'": "class json: dumps = staticmethod(lambda x: '3')",
}


@pytest.mark.parametrize("entry_point", ["add", None])
@pytest.mark.parametrize("judge", JUDGES)
def test_what_judges_is_the_tests_own(sandbox: Sandbox, judge: str, entry_point: str | None) -> None:
    """Right code passes without the tests' imports, and no completion brings the function that judges it."""
    tests = "assert " + judge.format("add(1, 2)")
    assert check_asserts(sandbox, ADD, tests, entry_point=entry_point).all_passed
    assert 0 == check_asserts(sandbox, f"{JUDGES[judge]}\n{WRONG}", tests, entry_point=entry_point).passed


@pytest.mark.parametrize("entry_point", ["add", None])
@pytest.mark.parametrize(
    "judge",
    ["np.isclose({}, 3)", "numpy.allclose({}, 3)", "allclose({}, 3)", "torch.equal({}, 3)", "almost_equal({}, 3)",
     "is_close({}, 3)", "assertEqual({}, 3)", "check_equal({}, 3)", "scipy.stats.norm({}) == 3", "isEqual({}, 3)"],
)  # fmt: skip
def test_a_judge_that_nobody_has_is_the_tests_fault(sandbox: Sandbox, judge: str, entry_point: str | None) -> None:
    """A library that is not there, and a helper that nobody binds, are looked for in no completion."""
    name = judge.partition("(")[0].partition(".")[0]
    forged = f"class {name}:\n    def __new__(cls, *a, **k): return True\n    isclose = allclose = equal = __new__\n"
    with pytest.raises(CheckError, match=r"numpy|torch|scipy|judge with|which nothing"):
        check_asserts(sandbox, forged + WRONG, "assert " + judge.format("add(1, 2)"), entry_point=entry_point)


@pytest.mark.parametrize("names", ["insert search", "build isSameTree", "encode decode", "steps expected_value", "f g"])
def test_functions_that_are_called_in_each_other_are_the_codes(sandbox: Sandbox, names: str) -> None:
    """Where nothing in a name says that it judges, what is called with another call is under test too."""
    inner, outer = names.split()
    tests = f"assert {outer}({inner}(2), 3) == 6"
    assert check_asserts(sandbox, f"def {inner}(a): return a\ndef {outer}(a, b): return a * b", tests).all_passed
    assert not check_asserts(sandbox, f"def {inner}(a): return a\ndef {outer}(a, b): return 0", tests).all_passed


ARRAYS = """import numpy as np
def f(n):
    return np.arange(n) * 2.5
"""
OF_ARRAYS = """import numpy as np
def test_a():
    assert f(3).shape == (3,) and isinstance(f(1), np.ndarray)
def test_b():
    np.testing.assert_allclose(f(3), [0, 2.5, 5])
def test_c():
    assert (f(2) == np.array([0, 2.5])).all()
"""
LYING_ARRAY = """import numpy as np
class Liar:
    shape = (3,)
    def __eq__(self, other): return np.array([True])
    def __array__(self, *a, **k): return np.array([0, 2.5, 5])
    def __len__(self): return 3
    def __getitem__(self, place): return Liar()
    def __float__(self): return 0.0
    def all(self): return True
def f(n): return Liar()
"""


def test_arrays_travel_where_the_tests_import_numpy() -> None:
    """They compare as numpy compares them, and as lists elsewhere; an object that says it is one is none."""
    pytest.importorskip("numpy")
    with Sandbox(profile="numpy", workers=1) as sandbox:
        assert check_asserts(sandbox, ARRAYS, OF_ARRAYS).all_passed
        assert check_asserts(sandbox, ARRAYS, "assert f(2) == [0, 2.5]").all_passed
        assert 1 == check_asserts(sandbox, ARRAYS.replace("2.5", "2"), OF_ARRAYS).passed
        assert 0 == check_asserts(sandbox, LYING_ARRAY, OF_ARRAYS).passed


@pytest.mark.parametrize(
    "source",
    [
        "async def f(x): return x\n",
        "def f(x): return lambda: x\n",
        "def f(x): return (x for x in [x])\n",
        "def f(x): raise ValueError(x)\n",
        "class Own: pass\ndef f(x): return Own()\n",
        "def f(x): return f\n",
        "def f(x): return open('x', 'w')\n",
        "import sys\ndef f(x): return sys\n",
    ],
)
def test_what_the_code_gives_is_no_fault_of_tests_that_pass_it_on(sandbox: Sandbox, source: str) -> None:
    """Whatever a completion returns or raises, tests that hand it back to the code fail it, and do not skip the row."""
    tests = "results = []\ntry:\n    results.append(f(1))\nexcept Exception as error:\n    results.append(error)\n"
    for check in ("assert f(results) == 2", "assert f(results[0]) == 2", "assert f({'a': results}) == 2"):
        report = check_asserts(sandbox, source, tests + check, entry_point="f")
        assert 0 == report.passed < report.total
