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


def _check_suite(task: SecretTask) -> Grade:
    from rewardkit import Workspace, check_suite

    suite = {"test_solution.py": task.pytest}

    def grade(completion: GradedText) -> HarnessVerdict:
        verdict = check_suite(Workspace(completion.folder).sealed(), suite, timeout_s=_ENDS_S)
        return HarnessVerdict(verdict.passed, verdict.error or str(verdict.status))

    return grade


def _columns(task: SecretTask, form: str) -> dict[str, Any]:
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
        rollout = Rollout(
            "blend" if form == "stdin" else task.prompt, f"```{language}\n{completion.text}\n```\n", columns
        )
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
    _form("stdin", "program", "inputs and outputs of a program"),
    Harness(
        "rewardkit-workspace", _workspace, "folder", packages=_PACKAGES, note="Workspace.read_text and check_asserts",
        is_inline=True,
    ),
    Harness("rewardkit-suite", _check_suite, "folder", packages=_PACKAGES, note="check_suite", is_inline=True),
    *_language("javascript"),
    *_language("cpp"),
    *_language("go"),
    *_language("java"),
    *_language("bash"),
)  # fmt: skip
