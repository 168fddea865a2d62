"""Functions of a suite that compare: found in other files by the names that an import gives them."""

from __future__ import annotations

from random import Random

import pytest

from rewardkit import SealedWorkspace, check_suite
from rewardkit.suites.twins import SuiteTwins

COMMON = "def assert_equal(expected, result):\n    print(expected)\n    assert expected == result\n"
TEST = "from {module} import assert_equal{alias}\n\ndef test_it():\n    {name}(1234, f())\n"
IMPORTS = {
    "beside it": ("common", "", "tests/common.py"),
    "from the root": ("tests.common", "", "tests/common.py"),
    "at the root": ("common", "", "common.py"),
    "relative": (".common", "", "tests/common.py"),
    "relative, above": ("..common", "", "common.py"),
    "by another name": ("common", " as same", "tests/common.py"),
}


def _files(module: str, alias: str, path: str) -> dict[str, str]:
    test = TEST.format(module=module, alias=alias, name=alias.rpartition(" ")[2] or "assert_equal")
    return {"tests/test_it.py": test, path: COMMON}


@pytest.mark.parametrize("imported", IMPORTS.values(), ids=IMPORTS)
def test_a_helper_of_another_file_is_found(imported: tuple[str, str, str]) -> None:
    """What it is given to compare is changed as in an assert."""
    if imported[0].startswith(".."):
        files = {f"tests/{name}": text for name, text in _files(*imported).items()}
    else:
        files = _files(*imported)
    twins = SuiteTwins(files)
    (test,) = twins.tests
    assert ("value", 1, 1) == (test.kind, test.asserts, test.perturbable)
    assert "1234" not in twins.draw([test.name], Random(0)).files[test.name.split("::")[0]]


@pytest.mark.parametrize(
    ("text", "extra"),
    [
        (COMMON + COMMON, {}),
        (COMMON, {"common.py": "def assert_equal(expected, result):\n    pass\n"}),
        ("def assert_equal(expected, result):\n    assert result in expected\n", {}),
        ("import os\nassert_equal = print\n", {}),
        ("def (:\n", {}),
    ],
    ids=["defined twice", "two files of the name", "another comparison", "no function", "no Python"],
)
def test_what_may_not_compare_is_no_helper(text: str, extra: dict[str, str]) -> None:
    files = {**_files("common", "", "tests/common.py"), "tests/common.py": text, **extra}
    assert [""] == [test.kind for test in SuiteTwins(files).tests]


def test_what_a_helper_compares_is_shown() -> None:
    """So a value that must be guessed among many needs one canary or two, and a forger is caught."""
    tests = {"tests/test_it.py": "from common import assert_equal\nfrom code_ import f\n\ndef test_it():\n"
             "    assert_equal('a long text', f())\n", "tests/common.py": COMMON}  # fmt: skip
    right = check_suite(SealedWorkspace({"code_.py": b"def f():\n    return 'a long text'\n"}), tests)
    assert ("passed", ()) == (right.status, right.weak)
    assert right.runs <= 4
    forger = b"class Any(str):\n    def __eq__(self, other): return True\n    __hash__ = None\n"
    forged = check_suite(SealedWorkspace({"code_.py": forger + b"def f():\n    return Any()\n"}), tests)
    assert "forged" == forged.status
