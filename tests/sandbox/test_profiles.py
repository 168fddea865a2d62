"""Profiles: what code finds imported, and what of the installed packages it can read."""

from __future__ import annotations

import pytest

from sandbox import Limits, Sandbox
from sandbox.errors import SandboxUnavailableError
from sandbox.process import PROFILES

USES_NUMPY = """
import numpy
def use(count):
    drawn = numpy.random.default_rng(0).integers(5)
    return numpy.arange(count) * 1.5, numpy.float32(2.5), numpy.linalg.norm(numpy.ones(4)), int(drawn) < 5
"""


@pytest.mark.parametrize("level", ["standard", "strict"])
def test_the_numpy_profile_has_numpy_and_none_of_its_neighbours(level: str) -> None:
    """Arrays and scalars leave the jail as what they hold; other installed packages are not there."""
    pytest.importorskip("numpy")
    with Sandbox("numpy", level, workers=1) as sandbox:
        result = sandbox.call(USES_NUMPY, "use", [[3]])
        neighbour = sandbox.run("import pydantic")
    assert result.value is not None
    assert result.value[0].value == ([0.0, 1.5, 3.0], 2.5, 2.0, True)
    assert "ModuleNotFoundError: No module named 'pydantic'" in neighbour.stderr


MODULES = [*PROFILES["python"].modules, "random", "threading", "statistics", "asyncio", "unittest"]


def test_the_standard_library_can_be_imported() -> None:
    """Modules that are imported beforehand and those that are not, each in an evaluation of its own."""
    with Sandbox(workers=1) as sandbox:
        results = {module: sandbox.run(f"import {module}; print({module}.__name__)") for module in MODULES}
    for module, result in results.items():
        assert result.stdout == f"{module}\n", result.stderr


def test_event_loops_work() -> None:
    source = "import asyncio\nasync def f():\n    await asyncio.sleep(0)\n    return 7\nprint(asyncio.run(f()))"
    with Sandbox(workers=1) as sandbox:
        result = sandbox.run(source, limits=Limits(timeout_s=60.0))
    assert result.stdout == "7\n", result.stderr


def test_a_profile_whose_package_is_absent_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    absent = PROFILES["numpy"]._replace(packages=("no_such_package",))
    monkeypatch.setitem(PROFILES, "numpy", absent)
    with pytest.raises(SandboxUnavailableError, match="needs no_such_package, which is not installed"):
        Sandbox("numpy", workers=1).start()
