"""The pytest plugin and ``cases`` as pytest runs them: what start-up costs, the fixtures, ids and reports."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
HEAVY = (
    *("numpy", "pydantic", "hypothesis", "yaml", "rich", "typer", "tenacity", "torch", "openai", "pebble"),
    *("rewardkit.testing", "rewardkit.cli", "sandbox.workers.pool", "sandbox.client"),
)

REWARDS = """\
from rewardkit import Score, reward

@reward
def correct(completion: str, answer: int) -> Score:
    print("judging", completion)
    return Score(float(completion == str(answer)), reason=f"expected {answer}")
"""


def _pytest(folder: Path, *arguments: str) -> tuple[int, str]:
    """Runs pytest with the plugin and no other, whether or not it is installed as an entry point."""
    done = subprocess.run(
        [
            *(sys.executable, "-W", "error", "-m", "pytest", "-p", "rewardkit.pytest_plugin", "-p", "no:cacheprovider"),
            *("-W", "error", "--rootdir", str(folder), *arguments),
        ],
        capture_output=True,
        text=True,
        timeout=120,
        cwd=folder,
        env={**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONPATH": str(ROOT), "PYTEST_ADDOPTS": ""},
    )
    return done.returncode, done.stdout + done.stderr


def test_the_plugin_loads_nothing_heavy_at_start_up(tmp_path: Path) -> None:
    """On an empty folder nothing is loaded beyond pytest, the standard library and what `import rewardkit` brings."""
    (tmp_path / "conftest.py").write_text(
        "import sys\n"
        "def pytest_unconfigure(config):\n"
        f"    print('LOADED', *[one for one in {HEAVY!r} if one in sys.modules])\n"
    )
    code, out = _pytest(tmp_path, "--collect-only", "-q")
    assert 5 == code, out  # no tests
    assert "LOADED" in out.splitlines(), out


def test_the_plugin_module_itself_loads_nothing_of_ours() -> None:
    """Beyond what `import rewardkit` and `import pytest` load it brings itself alone."""
    probe = (
        "import sys, pytest, rewardkit\n"
        "before = set(sys.modules)\n"
        "import rewardkit.pytest_plugin\n"
        "print(*sorted(set(sys.modules) - before))"
    )
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True, cwd=ROOT)
    assert ["rewardkit.pytest_plugin"] == done.stdout.split()


def test_cases_fixtures_and_reports(tmp_path: Path) -> None:
    """Readable ids, a diff without a traceback, and fixtures whose workers are closed with the module."""
    (tmp_path / "rewards.py").write_text(REWARDS)
    (tmp_path / "correct.yaml").write_text(
        "- {id: right, completion: 4, answer: 4, expect: 1}\n- {completion: four, answer: 4, expect: 1}\n"
    )
    (tmp_path / "test_it.py").write_text(
        "import os\n"
        "from rewards import correct\n"
        "from rewardkit.testing import cases, rollouts_from_rows\n"
        "test_correct = cases(correct, 'correct.yaml')\n"
        "test_isolated = cases(correct, 'correct.yaml', lane='worker')\n"
        "ROWS = rollouts_from_rows([{'completion': '4', 'answer': 4}])\n"
        "kept = []\n"
        "def test_worker(runtime):\n"
        "    made = runtime([correct])\n"
        "    kept.append(made)\n"
        "    assert made.score(ROWS).totals == [1.0] and made.processes\n"
        "def test_worker_again(runtime):\n"
        "    assert runtime(correct) is kept[0]\n"
        "def test_inline(inline_runtime):\n"
        "    made = inline_runtime([correct])\n"
        "    assert made.score(ROWS).totals == [1.0] and not made.processes\n"
    )
    (tmp_path / "test_later.py").write_text(
        "import test_it\ndef test_closed():\n    assert test_it.kept[0].processes == []\n"
    )
    code, out = _pytest(tmp_path, "-v")
    assert 1 == code, out
    for name in ("test_correct[right]", "test_isolated[right]", "test_worker", "test_worker_again", "test_inline"):
        assert f"test_it.py::{name} PASSED" in out, out
    assert "test_later.py::test_closed PASSED" in out, out
    assert "test_it.py::test_correct[four] FAILED" in out
    assert "2 failed, 6 passed" in out
    report = out[out.index("correct.yaml:2: case 'four'") :].splitlines()
    assert [
        "  column        answer = 4",
        "  completion    'four'",
        "- expected      scored 1.0 (within 1e-06)",
        "+ got           scored 0.0",
        "  reason        expected 4",
        "  logs          │ judging four",
    ] == report[1:7]
    assert "traceback" not in out.lower()
    assert "verdict.py" not in out


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("cases(correct, 'none.yaml')", "none.yaml: No such file"),
        ("cases(correct, [{'completion': 'a', 'answer': 1, 'expect': 'x'}])", "cases[0]: 'expect': expected a score"),
    ],
    ids=["file", "row"],
)
def test_a_wrong_table_is_an_error_of_collection(tmp_path: Path, line: str, said: str) -> None:
    """It says file, place and key."""
    (tmp_path / "rewards.py").write_text(REWARDS)
    (tmp_path / "test_it.py").write_text(
        f"from rewards import correct\nfrom rewardkit.testing import cases\ntest_correct = {line}\n"
    )
    code, out = _pytest(tmp_path, "-q")
    assert 2 == code, out
    assert said in out
    assert "error" in out


def test_what_is_missing_is_named(tmp_path: Path) -> None:
    """Without pytest or hypothesis the message names the one missing; the rest of the package works without both."""
    probe = (
        "import sys\n"
        "sys.modules['pytest'] = sys.modules['hypothesis'] = None\n"
        "from rewardkit import reward\n"
        "from rewardkit.testing import FakeJudge, assert_laws, cases, read_table\n"
        "@reward\n"
        "def zero(completion: str) -> float: return 0.0\n"
        "for call in (lambda: cases(zero, []), lambda: assert_laws(zero)):\n"
        "    try: call()\n"
        "    except ImportError as missing: print(missing)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", probe], capture_output=True, text=True, check=True, cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert ["pytest", "hypothesis"] == [line.rpartition("pip install ")[2] for line in done.stdout.splitlines()]
