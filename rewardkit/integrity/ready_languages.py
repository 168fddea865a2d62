"""Other languages than Python: code and tests in one program, whose exit code is the verdict, as MultiPL-E does."""

from __future__ import annotations

import functools
import os
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

from .harnesses import Grade, GradedText, Harness, HarnessVerdict
from .secret_task import SecretTask

_COMPILES_S, _ENDS_S = 30, 4


def _javascript(task: SecretTask, code: str) -> dict[str, str]:
    lines = [f"assert.deepEqual(blend({a}, {b}), {value});" for (a, b), value in _pairs(task)]
    return {"program.js": f"{code}\nconst assert = require('node:assert');\n" + "\n".join(lines) + "\n"}


def _cpp(task: SecretTask, code: str) -> dict[str, str]:
    lines = [f"    assert(blend({a}, {b}) == {value});" for (a, b), value in _pairs(task)]
    return {"program.cpp": f"{code}\n#include <cassert>\nint main() {{\n" + "\n".join(lines) + "\n    return 0;\n}\n"}


def _go(task: SecretTask, code: str) -> dict[str, str]:
    lines = [f"\tif got := blend({a}, {b}); got != {value} {{ panic(got) }}" for (a, b), value in _pairs(task)]
    solution = code if code.startswith("//go:build") else f"package main\n\n{code}"
    return {"solution.go": solution, "main.go": "package main\n\nfunc main() {\n" + "\n".join(lines) + "\n}\n"}


def _java(task: SecretTask, code: str) -> dict[str, str]:
    lines = [
        f"        if (Solution.blend({a}, {b}) != {value}) throw new AssertionError({value});"
        for (a, b), value in _pairs(task)
    ]
    main = "public class Main {\n    public static void main(String[] args) {\n" + "\n".join(lines) + "\n    }\n}\n"
    return {"Solution.java": code, "Main.java": main}


def _bash(task: SecretTask, code: str) -> dict[str, str]:
    lines = [f'[ "$(blend {a} {b})" = "{value}" ] || exit 1' for (a, b), value in _pairs(task)]
    return {"program.sh": f"{code}\n" + "\n".join(lines) + "\n"}


def _pairs(task: SecretTask) -> list[tuple[tuple[int, int], int]]:
    return list(zip(task.inputs, task.expected, strict=True))


_FORMS: Mapping[str, tuple[Callable[[SecretTask, str], dict[str, str]], list[list[str]]]] = {
    "javascript": (_javascript, [["node", "program.js"]]),
    "cpp": (_cpp, [["g++", "-std=c++17", "-o", "program", "program.cpp"], ["./program"]]),
    "go": (_go, [["go", "build", "-o", "program", "solution.go", "main.go"], ["./program"]]),
    "java": (_java, [["javac", "Solution.java", "Main.java"], ["java", "Main"]]),
    "bash": (_bash, [["bash", "program.sh"]]),
}
_TOOLS = {"javascript": "node", "cpp": "g++", "go": "go", "java": "javac", "bash": "bash"}


def _one_program(task: SecretTask, language: str) -> Grade:
    from shutil import which

    if which(_TOOLS[language]) is None:
        raise ModuleNotFoundError(f"the program {_TOOLS[language]!r} is not there")
    files_of, commands = _FORMS[language]
    cache = os.path.join(os.getcwd(), "compiled")
    environment = {"GOCACHE": cache, "GOFLAGS": "-mod=mod", "GO111MODULE": "off", "GOTOOLCHAIN": "local"}

    def grade(completion: GradedText) -> HarnessVerdict:
        for name, text in files_of(task, completion.text).items():
            Path(completion.folder, name).write_text(text, encoding="utf-8")
        for number, command in enumerate(commands, 1):
            is_last = number == len(commands)
            try:
                ended = subprocess.run(
                    command, cwd=completion.folder, capture_output=True, check=False, stdin=subprocess.DEVNULL,
                    env={**os.environ, **environment}, timeout=_ENDS_S if is_last else _COMPILES_S, errors="replace",
                )  # fmt: skip
            except subprocess.TimeoutExpired:
                return HarnessVerdict(False, "timeout")
            if ended.returncode != 0:
                return HarnessVerdict(False, f"{'ends' if is_last else 'does not compile'}: {ended.stderr[-120:]}")
        return HarnessVerdict(True)

    return grade


LANGUAGE_PATTERNS = tuple(
    Harness(
        f"{language}-exit-code", functools.partial(_one_program, language=language), language=language,
        note="code and tests in one program, exit code 0, as MultiPL-E's do",
    )
    for language in _FORMS
)  # fmt: skip
