"""A task of Harbor is graded where it can be, names what it needs where it cannot, and is refused where it is none."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from harbor_folders import DOCKERFILE, SOLVED, START, TASK, TEST_SCRIPT, TESTS, write_task

from rewardkit import SealedWorkspace, Workspace, from_harbor
from rewardkit.errors import SuiteError, WorkspaceError
from rewardkit.suites.suite_verdict import SuiteStatus
from sandbox import why_not_run

PYTEST = "pytest /tests/test_outputs.py"
REWARD = "if [ $? -eq 0 ]; then echo 1 > /logs/verifier/reward.txt; else echo 0 > /logs/verifier/reward.txt; fi"


def test_a_right_folder_passes_and_what_solves_nothing_fails(tmp_path: Path) -> None:
    """By the tests that the script runs, in which absolute paths lead to the folder."""
    task = from_harbor(write_task(tmp_path / "shapes"))
    assert (("test_outputs.py",), (), "/app", "shapes") == (task.targets, task.needs, task.workdir, task.name)
    right = task.grade(SealedWorkspace({"shapes.py": SOLVED.encode()}))
    assert (SuiteStatus.PASSED, {"reward": 1.0}, 1.0) == (right.status, right.rewards, right.score().value)
    assert right.suite is not None
    assert right.suite.bound <= 1e-3
    start = task.grade(task.write_start(tmp_path / "work"))
    assert (SuiteStatus.FAILED, 0.0) == (start.status, start.score().value)
    assert START == (tmp_path / "work" / "shapes.py").read_text()
    assert not task.grade(SealedWorkspace({})).passed


@pytest.mark.parametrize(
    "code",
    [
        "import os; os._exit(0)",
        "class Every:\n    __eq__ = lambda *a: True\narea = lambda side: Every()",
        "import sys\ndef area(side):\n    return sys._getframe(1).f_locals['expected']",
    ],
)
def test_a_forgery_is_none_here_either(tmp_path: Path, code: str) -> None:
    """The same jail and canaries grade it."""
    verdict = from_harbor(write_task(tmp_path)).grade(SealedWorkspace({"shapes.py": code.encode()}))
    assert (False, 0.0) == (verdict.passed, verdict.score().value)


def test_the_solution_is_run_on_what_the_agent_finds(tmp_path: Path) -> None:
    """In a jail, in which ``/app`` and ``/solution`` are folders of its own."""
    if reason := why_not_run("bash"):
        pytest.skip(reason)
    script = "set -e\ncp -r /solution/files/. /app/\nmkdir -p /app/data\nprintf 'x' > /app/data/note.txt\n"
    task = from_harbor(write_task(tmp_path, {"solution/solve.sh": script, "solution/files/shapes.py": SOLVED}))
    assert {"shapes.py": SOLVED.encode(), "data/note.txt": b"x"} == dict(task.solved().files)
    failing = from_harbor(write_task(tmp_path, {"solution/solve.sh": "echo no good >&2; exit 3"}))
    with pytest.raises(SuiteError, match="no good"):
        failing.solved()
    (tmp_path / "solution" / "solve.sh").unlink()
    with pytest.raises(SuiteError, match=r"no solution/solve\.sh"):
        from_harbor(tmp_path).solved()


@pytest.mark.parametrize(
    "script",
    [
        f"set -euo pipefail\npip install -q pytest==8.4.1 >/dev/null 2>&1\nif python3 -m {PYTEST} -q; then\n"
        "  echo 1 > /logs/verifier/reward.txt\nelse\n  echo 0 > /logs/verifier/reward.txt\n  exit 1\nfi",
        f"{PYTEST} -rA\npytest_status=$?\nif [ $pytest_status -eq 0 ]; then\n  echo 1.0 > /logs/verifier/reward.txt\n"
        'else\n  echo "0.0" > /logs/verifier/reward.txt\nfi\nexit $pytest_status',
        "cd /tests\npytest test_outputs.py -v --tb=short --color=yes\n" + REWARD,
        f"reward=0\ntrap 'echo \"$reward\" > /logs/verifier/reward.txt' EXIT\nexit_code=0\nuvx --with pytest {PYTEST} "
        "|| exit_code=$?\n[ $exit_code -eq 0 ] && reward=1\nexit $exit_code",
        f"cd /app\nuv run \\\n  --with pytest==9.0.2 \\\n  {PYTEST} --ctrf /logs/c.json -rA\n{REWARD}",
        f"{PYTEST} -v > /logs/verifier/out.txt 2>&1\n{REWARD}\nexit 0",
        f"uv init\nuv add pytest==8.4.1\nuv run {PYTEST} -p no:cacheprovider -x --junitxml=/logs/x.xml\n{REWARD}",
        "pytest /tests\n" + REWARD,
    ],
)
def test_each_way_to_run_pytest_is_read(tmp_path: Path, script: str) -> None:
    """As the scripts of published tasks have them."""
    task = from_harbor(write_task(tmp_path, {"tests/test.sh": script}))
    assert () == task.needs
    assert task.targets in (("test_outputs.py",), ("",))
    assert task.grade(SealedWorkspace({"shapes.py": SOLVED.encode()}), confidence=1.0).passed


NEEDS: dict[str, tuple[Mapping[str, str], str]] = {
    "weights by a program": ({"tests/test.sh": f"{PYTEST}\npython3 << 'EOF'\nit's\nEOF\n"}, "runs 'python3'"),
    "no pytest": ({"tests/test.sh": "echo 1 > /logs/verifier/reward.txt"}, "runs neither pytest nor"),
    "another condition": ({"tests/test.sh": f"if [ ! -f /app/x ]; then exit 0; fi\n{PYTEST}"}, "looks whether"),
    "part of a reward": ({"tests/test.sh": f"{PYTEST} && echo 0.5 > /logs/verifier/reward.txt"}, "reward '0.5'"),
    "two runs": ({"tests/test.sh": f"{PYTEST}\n{PYTEST}\n"}, "more than once"),
    "single tests": ({"tests/test.sh": f"{PYTEST}::test_area"}, "chooses tests by"),
    "a choice": ({"tests/test.sh": f"{PYTEST} -k 'not slow'"}, "given '-k'"),
    "the agent's tests": ({"tests/test.sh": "cd /app && pytest tests"}, "which the agent may change"),
    "grep": ({"tests/test.sh": f"grep -q x /app/y && {PYTEST}"}, "runs 'grep -q x /app/y'"),
    "an open quotation": ({"tests/test.sh": "echo 'x"}, "cannot be read"),
    "a made file": ({"environment/Dockerfile": f"{DOCKERFILE}RUN git clone https://x\n"}, "runs 'git clone https://x'"),
    "a program": ({"environment/Dockerfile": f"{DOCKERFILE}RUN apt-get install -y ffmpeg\n"}, "ffmpeg of the image"),
    "another base": ({"environment/Dockerfile": "FROM nvidia/cuda:12\nCOPY . /app"}, "the image 'nvidia/cuda:12'"),
    "files elsewhere": ({"environment/Dockerfile": f"{DOCKERFILE}COPY shapes.py /data/\n"}, "outside of /app"),
    "a missing source": ({"environment/Dockerfile": f"{DOCKERFILE}COPY nothing /app/\n"}, "which is not beside it"),
    "a broken list": ({"environment/Dockerfile": f'{DOCKERFILE}COPY ["shapes.py", /app]\n'}, "cannot be read: COPY"),
    "stages": ({"environment/Dockerfile": f"{DOCKERFILE}COPY --from=build /x /app/\n"}, "built in stages"),
    "services": ({"environment/docker-compose.yaml": "services: {}"}, "several containers"),
    "a GPU": ({"task.toml": TASK.replace("cpus", "gpus")}, "a GPU"),
    "variables": ({"task.toml": f"{TASK}[verifier.env]\nKEY = 'x'\n"}, "the variables KEY"),
    "steps": ({"task.toml": f"{TASK}[[steps]]\nname = 'a'\n"}, "several containers one after the other"),
    "Windows": ({"task.toml": f"{TASK}os = 'windows'\n"}, "Windows"),
    "a package": ({"tests/test.sh": f"uvx -w nowhere-to-be-had==1.0 {PYTEST}"}, "'nowhere-to-be-had', which is not"),
    "processes": ({"tests/test_outputs.py": f"import subprocess\n{TESTS}"}, "several processes"),
    "files of the container": (
        {"tests/test_outputs.py": "from pathlib import Path\ndef test_a():\n    assert Path('/data/x').exists()\n"},
        "'/data/x' of its container",
    ),
    "a judge": ({"tests/test.sh": "uvx --from harbor-rewardkit rewardkit /tests", "tests/style.toml": ""}, "a judge"),
}


@pytest.mark.parametrize("case", NEEDS)
def test_what_only_an_image_has_is_named_and_nothing_is_scored(tmp_path: Path, case: str) -> None:
    """Such a task is not applicable, whatever the folder holds."""
    files, need = NEEDS[case]
    task = from_harbor(write_task(tmp_path, files))
    assert any(need in named for named in task.needs), task.needs
    verdict = task.grade(SealedWorkspace({"shapes.py": SOLVED.encode()}))
    assert (SuiteStatus.UNSUITABLE, None) == (verdict.status, verdict.score().value)
    assert need in verdict.reason()


def test_flags_and_lists_of_a_dockerfile_are_read(tmp_path: Path) -> None:
    """A platform is no image, and a list of names is as good as names."""
    dockerfile = 'FROM --platform=linux/amd64 python:3.11-slim AS base\nWORKDIR /app\nCOPY ["shapes.py", "/app/"]\n'
    task = from_harbor(write_task(tmp_path, {"environment/Dockerfile": dockerfile}))
    assert ((), {"shapes.py"}) == (task.needs, set(task.start))


def test_packages_of_image_and_script_are_those_of_the_tests(tmp_path: Path) -> None:
    """Without versions, without what runs tests, and with those of a list."""
    dockerfile = (
        f"{DOCKERFILE}RUN --mount=type=cache,target=/x pip3 install --no-cache-dir numpy==2.1 -r requirements.txt .\n"
    )
    script = f"uvx -w pytest==8.4.1 -w 'PyYAML>=6' {PYTEST}\n{REWARD}"
    files = {"environment/Dockerfile": dockerfile, "environment/requirements.txt": "rich>=13  # colours\n-i x\n"}
    task = from_harbor(write_task(tmp_path, {**files, "tests/test.sh": script}))
    assert ((), {"numpy", "pyyaml", "rich"}) == (task.needs, set(task.packages))


def test_names_in_the_metadata_are_those_that_must_pass(tmp_path: Path) -> None:
    """By group, and no others."""
    names = (
        'fail_to_pass = ["tests/test_outputs.py::test_area[7-49]"]\npass_to_pass = ["tests/test_outputs.py::test_file"]'
    )
    toml = TASK.replace('difficulty = "easy"', names)
    task = from_harbor(write_task(tmp_path, {"task.toml": toml}))
    part = "def area(side):\n    return 49\n"
    verdict = task.grade(SealedWorkspace({"shapes.py": part.encode()}))
    assert verdict.suite is not None
    assert {"fail_to_pass", "pass_to_pass"} == set(verdict.suite.groups)
    assert verdict.passed, verdict


def test_a_folder_of_tests_of_the_agents_stays_beside_those_of_the_task(tmp_path: Path) -> None:
    """Both are called ``tests``."""
    files = {
        "environment/tests/data.txt": "5",
        "tests/test_outputs.py": (
            "from pathlib import Path\ndef test_data():\n    assert Path('/app/tests/data.txt').read_text() == '5'\n"
        ),
    }
    task = from_harbor(write_task(tmp_path, files))
    verdict = task.grade(SealedWorkspace(task.start))
    assert verdict.passed, verdict


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"task.toml": None}, r"no task\.toml"),
        ({"task.toml": "x ="}, "no TOML"),
        ({"task.toml": b"\xff"}, "no TOML"),
        ({"task.toml": 'schema_version = "2.0"'}, "schema_version '2.0': tasks of version 1 are read"),
        ({"task.toml": "version = 3"}, "schema_version 3"),
        ({"task.toml": "[verifier]\ntimeout_sec = -1"}, r"verifier\.timeout_sec = -1"),
        ({"task.toml": "verifier = 1"}, "verifier = 1"),
        ({"instruction.md": None}, r"instruction\.md"),
        ({"instruction.md": b"\xff"}, r"instruction\.md"),
        ({"tests/test.sh": None}, r"no tests/test\.sh"),
        ({"tests/test.sh": b"\xff"}, r"test\.sh is no UTF-8"),
        ({"environment/Dockerfile": b"\xff"}, "Dockerfile is no UTF-8"),
    ],
)
def test_what_is_no_task_is_refused_by_name(
    tmp_path: Path, files: Mapping[str, str | bytes | None], message: str
) -> None:
    """With what is wrong with it."""
    with pytest.raises(SuiteError, match=message):
        from_harbor(write_task(tmp_path, files))


def test_a_task_may_lie_anywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only an agent's folder must lie in those of workspaces; the caches of Python are no files of a task."""
    folder = write_task(tmp_path / "task", {"tests/__pycache__/test_outputs.cpython-311.pyc": b"x"})
    monkeypatch.setenv("REWARDKIT_WORKSPACES", str(tmp_path / "agents"))
    task = from_harbor(folder)
    assert {"test.sh", "test_outputs.py"} == set(task.tests)
    with pytest.raises(WorkspaceError, match="outside"):
        task.grade(folder)


def test_a_script_that_does_anything_is_only_read(tmp_path: Path) -> None:
    """Reading runs nothing."""
    marker = tmp_path / "ran"
    script = f"touch {marker}\n{TEST_SCRIPT}"
    task = from_harbor(write_task(tmp_path / "task", {"tests/test.sh": script, "solution/solve.sh": script}))
    assert not marker.exists()
    assert any("touch" in need for need in task.needs)
    assert isinstance(task.write_start(tmp_path / "start"), Workspace)
