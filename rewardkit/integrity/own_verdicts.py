"""This house's own verdicts, as users call them. They isolate completions themselves."""

from __future__ import annotations

import functools
import json
from typing import Any

from .harnesses import Grade, GradedText, Harness, HarnessVerdict
from .secret_task import SecretTask

_ENDS_S = 3.0
_PACKAGES = ("rewardkit",)


def _limits() -> Any:
    from sandbox import Limits

    return Limits(timeout_s=_ENDS_S)


def _check_asserts(task: SecretTask) -> Grade:
    from sandbox import Sandbox, check_asserts

    sandbox = Sandbox(workers=1)

    def grade(completion: GradedText) -> HarnessVerdict:
        report = check_asserts(sandbox, completion.text, task.check, entry_point=task.entry_point, limits=_limits())
        return HarnessVerdict(report.all_passed, report.checks[0].reason)

    return grade


def _workspace(task: SecretTask) -> Grade:
    from rewardkit import Workspace
    from sandbox import Sandbox, check_asserts

    sandbox = Sandbox(workers=1)

    def grade(completion: GradedText) -> HarnessVerdict:
        workspace = Workspace(completion.folder)
        if not workspace.exists("solution.py"):
            return HarnessVerdict(False, "no solution.py")
        source = workspace.read_text("solution.py")
        report = check_asserts(sandbox, source, task.asserts, entry_point=task.entry_point, limits=_limits())
        return HarnessVerdict(report.all_passed, report.checks[0].reason)

    return grade


def _suite_texts(task: SecretTask, language: str, code: str) -> tuple[dict[str, str], dict[str, str], Any]:
    """Return a folder with a completion, a suite for it, and the runner of a language."""
    cases = list(enumerate(zip(task.inputs, task.expected, strict=True)))
    if language == "javascript":
        lines = [
            f"test('case {number}', () => assert.strictEqual(blend({a}, {b}), {value}));\n"
            for number, ((a, b), value) in cases
        ]
        head = "const test = require('node:test');\nconst assert = require('node:assert');\n"
        head += "const { blend } = require('./solution.js');\n"
        folder = {"solution.js": f"{code}\nmodule.exports = {{ blend }};\n"}
        return folder, {"solution.test.js": head + "".join(lines)}, "node"
    if language == "go":
        lines = [
            f"func TestCase{number}(t *testing.T) {{\n\tgot := blend({a}, {b})\n\tif got != {value} {{\n"
            f'\t\tt.Fatalf("got %v", got)\n\t}}\n}}\n'
            for number, ((a, b), value) in cases
        ]
        solution = code.replace("package main", "package solution")
        solution = solution if "package solution" in solution else f"package solution\n\n{solution}"
        folder = {"go.mod": "module solution\n\ngo 1.20\n", "solution.go": solution}
        return folder, {"solution_test.go": 'package solution\n\nimport "testing"\n\n' + "\n".join(lines)}, "go"
    lines = [
        f"    @Test\n    void case{number}() {{\n        assertEquals({value}, Solution.blend({a}, {b}));\n    }}\n"
        for number, ((a, b), value) in cases
    ]
    head = "import static org.junit.jupiter.api.Assertions.*;\nimport org.junit.jupiter.api.Test;\n\n"
    return {"Solution.java": code}, {"SolutionTest.java": f"{head}class SolutionTest {{\n{''.join(lines)}}}\n"}, "junit"


def _check_other_suite(task: SecretTask, language: str) -> Grade:
    from rewardkit import SealedWorkspace, check_suite

    def grade(completion: GradedText) -> HarnessVerdict:
        files, suite, runner = _suite_texts(task, language, completion.text)
        workspace = SealedWorkspace({name: text.encode() for name, text in files.items()})
        verdict = check_suite(workspace, suite, runner=runner, timeout_s=20.0)
        return HarnessVerdict(verdict.passed, verdict.reason())

    return grade


def _check_suite(task: SecretTask) -> Grade:
    from rewardkit import Workspace, check_suite

    suite = {"test_solution.py": task.pytest}

    def grade(completion: GradedText) -> HarnessVerdict:
        verdict = check_suite(Workspace(completion.folder).sealed(), suite, timeout_s=_ENDS_S)
        return HarnessVerdict(verdict.passed, verdict.error or str(verdict.status))

    return grade


_CHECKER = "def check(input, output, expected):\n    return int(output) == int(expected)\n"
_INTERACTOR = """
def interact(input, expected, read, write):
    write(input)
    return read().strip() == expected.strip()
"""


def _patching(task: SecretTask) -> str:
    """Return tests that patch what code uses, so that they run in one process with it."""
    tests = [
        f"def test_case_{number}():\n    with patch('os.getcwd', return_value='/here'):\n        {line}\n"
        for number, line in enumerate(task.asserts)
    ]
    return "from unittest.mock import patch\n\n" + "\n".join(tests)


def _columns(task: SecretTask, form: str) -> dict[str, Any]:
    if form == "patched":
        return {"tests": _patching(task), "entry_point": task.entry_point}
    if form in ("checker", "interactor"):
        program = _CHECKER if form == "checker" else _INTERACTOR
        return {"inputs": json.dumps(task.stdin), "outputs": json.dumps(task.stdout), form: program}
    if form == "check":
        return {"tests": task.check, "entry_point": task.entry_point}
    if form == "asserts":
        return {"tests": json.dumps(task.asserts)}
    if form == "stdin":
        return {"inputs": json.dumps(task.stdin), "outputs": json.dumps(task.stdout)}
    inputs = json.dumps([list(pair) for pair in task.inputs])
    return {"entry_point": task.entry_point, "inputs": inputs, "outputs": json.dumps(task.expected)}


def _code_tests(task: SecretTask, form: str, language: str = "python") -> Grade:
    from rewardkit import Rollout, Runtime
    from rewardkit.loading.registry import resolve

    runtime = Runtime([resolve("code_tests")], workers=1)
    runtime.__enter__()
    columns = {**_columns(task, form), **({} if language == "python" else {"language": language})}

    def grade(completion: GradedText) -> HarnessVerdict:
        is_program = form in ("stdin", "checker", "interactor")
        rollout = Rollout("blend" if is_program else task.prompt, f"```{language}\n{completion.text}\n```\n", columns)
        batch = runtime.score([rollout])
        (outcomes,) = batch.outcomes.values()
        return HarnessVerdict(batch.totals[0] == 1.0, str(outcomes[0].reason))

    return grade


def _form(form: str, shape: str, note: str) -> Harness:
    build = functools.partial(_code_tests, form=form)
    return Harness(f"rewardkit-{form}", build, shape, packages=_PACKAGES, note=f"code_tests, {note}", is_inline=True)


def _language(language: str) -> tuple[Harness, Harness]:
    notes = {"inputs": "inputs and outputs of a function", "stdin": "inputs and outputs of a program"}
    calls, stdin = (
        Harness(
            f"rewardkit-{language}{suffix}", functools.partial(_code_tests, form=form, language=language), shape,
            language, _PACKAGES, f"code_tests in {language}, {notes[form]}", is_inline=True,
        )
        for form, shape, suffix in (("inputs", "call", ""), ("stdin", "program", "-stdin"))
    )  # fmt: skip
    return calls, stdin


OWN: tuple[Harness, ...] = (
    Harness("rewardkit-check-asserts", _check_asserts, packages=_PACKAGES, note="check_asserts", is_inline=True),
    _form("check", "call", "HumanEval's check"),
    _form("asserts", "call", "MBPP's asserts"),
    _form("inputs", "call", "inputs and outputs of a function"),
    _form("patched", "call", "tests that patch, in one process with the code"),
    _form("stdin", "program", "inputs and outputs of a program"),
    _form("checker", "program", "a row's checker"),
    _form("interactor", "program", "a row's interactor"),
    Harness(
        "rewardkit-workspace", _workspace, "folder", packages=_PACKAGES, note="Workspace.read_text and check_asserts",
        is_inline=True,
    ),
    Harness("rewardkit-suite", _check_suite, "folder", packages=_PACKAGES, note="check_suite", is_inline=True),
    *(
        Harness(
            f"rewardkit-suite-{language}", functools.partial(_check_other_suite, language=language), "call", language,
            _PACKAGES, note=f"check_suite in {language}", is_inline=True,
        )
        for language in ("javascript", "go", "java")
    ),
    *_language("javascript"),
    *_language("cpp"),
    *_language("go"),
    *_language("java"),
    *_language("bash"),
)  # fmt: skip
