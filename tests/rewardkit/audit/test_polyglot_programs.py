"""Attacks in other languages: they are programs of these languages, a sound reward pays none, an unsound one does."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from audited import LIMITS, audited

from rewardkit.audit.honest import right_answers
from rewardkit.audit.polyglot_programs import IDIOMS, empty_function, empty_program, polyglot_programs
from rewardkit.audit.programs import code_in, code_language, names_language
from rewardkit.audit.result import AuditVerdict
from rewardkit.audit.rows import AuditRow, row_of
from sandbox import JAIL_LANGUAGES, PYTHON, Sandbox, why_not_run

HERE = Path(__file__).parent
FUNCTIONS = {
    "bash": 'most() {\n  local -a list=($1)\n  echo "${list[0]}"\n}',
    "c": "int most(const int *list, int n) {\n    return list[0];\n}",
    "lua": "local function most(list)\n  return list[1]\nend",
    "perl": "sub most {\n    my ($list) = @_;\n    return $list->[0];\n}",
    "ruby": "def most(list)\n  list[0]\nend",
    "cpp": "#include <vector>\nint most(std::vector<int> list) {\n    return list[0];\n}",
    "go": 'package main\n\nimport (\n\t"fmt"\n)\n\nfunc most(list []int) int {\n\tfmt.Print()\n\treturn list[0]\n}',
    "java": "import java.util.*;\nclass Solution {\n  int most(List<Integer> list) { return list.get(0); }\n}",
    "javascript": "const most = (list) => {\n  return list[0];\n}",
    "php": "<?php\nfunction most($list) { return $list[0]; }",
    "rust": "fn most(list: Vec<i64>) -> i64 { list[0] }",
    "typescript": "function most(list: number[]): number { return list[0]; }",
}
"""By language, a function under test."""


@pytest.fixture(scope="module")
def jail() -> Iterator[Sandbox]:
    with Sandbox(workers=1) as sandbox:
        yield sandbox


def skip_where_missing(language: str) -> None:
    if reason := why_not_run(language):
        pytest.skip(reason)


def row(**columns: Any) -> AuditRow:
    return row_of(1, {"prompt": "Write it.", **columns}, None)


def test_every_language_of_the_jail_has_an_idiom() -> None:
    assert {PYTHON, *IDIOMS} == JAIL_LANGUAGES


@pytest.mark.cases(3)
@pytest.mark.parametrize("language", sorted(IDIOMS))
def test_attacks_on_programs_are_programs(jail: Sandbox, language: str) -> None:
    """What exits exits with 0, what prints prints what is expected, and what does nothing prints nothing."""
    skip_where_missing(language)
    expected = ['it\'s "5"', "a\\b $x #{y} %d @z"]
    probes = {
        probe.name: code_in(probe.text)
        for probe in polyglot_programs(row(language=language, inputs=["1", "2"], outputs=expected), language)
    }
    outputs = {"does nothing": "", "exits with 0": "", "prints the expectation": "\n".join([*expected, ""])}
    for name, output in outputs.items():
        result = jail.run(probes[name], language=language)
        assert ("ok", output) == (result.status, result.stdout), (name, result.error, result.stderr)
    assert "ok" == jail.run(empty_program(language), language=language).status


@pytest.mark.cases(2)
@pytest.mark.parametrize("language", sorted(FUNCTIONS))
def test_attacks_on_functions_compile_and_answer_no_call_rightly(jail: Sandbox, language: str) -> None:
    """One that does not compile shows nothing of a reward."""
    skip_where_missing(language)
    example = row(language=language, entry_point="most", inputs=[[[7]]], outputs=[7], reference=FUNCTIONS[language])
    probes = {probe.name: code_in(probe.text) for probe in polyglot_programs(example, language)}
    names = ("does nothing", "exits when called", "exits before it is called", "replaces the asserts")
    tried = {name: probes[name] for name in names if name in probes}
    assert {"does nothing", "exits when called"} <= tried.keys()
    assert tried["does nothing"].strip() == str(empty_function(example, language)).strip()
    for name, source in tried.items():
        result = jail.call(source, "most", [[[7]]], language=language)
        assert not result.error.startswith("it does not compile"), (name, result.stderr)
        assert result.value is not None
        assert not (result.value[0].ok and result.value[0].value == 7), name


@pytest.mark.parametrize(
    ("columns", "language", "named"),
    [
        ({"language": "GNU C++17 (64)", "reference": "int main() {}"}, "cpp", True),
        ({"reference": "```rs\nfn main() {}\n```"}, "rust", False),
        ({"reference": "#include <iostream>\nint main() { std::cout << 1; }"}, "cpp", False),
        ({"reference": "print(1)"}, PYTHON, False),
        ({"language": "Kotlin", "reference": "fun main() {}"}, PYTHON, False),
        ({"language": "en", "reference": "print(1)"}, PYTHON, False),
        ({}, PYTHON, False),
    ],
)
def test_the_language_of_a_rows_code(columns: dict[str, Any], language: str, named: bool) -> None:
    """Its column names it, or else its reference shows it."""
    example = row(inputs=["1"], outputs=["1"], **columns)
    assert (language, named) == (code_language(example), names_language(example))


def test_honest_forms_are_in_the_rows_language() -> None:
    """A body is read behind its declaration; code without a fence is honest only where the row names its language."""
    body = {"declaration": "int one() {\n", "canonical_solution": "    return 1;\n}\n", "entry_point": "one"}
    named = right_answers(row(language="c++", tests="assert(one() == 1);", **body))
    whole = "```cpp\nint one() {\n    return 1;\n}\n\n```"
    assert whole == named[0].text
    assert whole.replace("\n", "\r\n") in [form.text for form in named]
    assert "bare code" in [form.name for form in named]
    unnamed = right_answers(row(inputs=["1"], outputs=["1"], reference="```go\npackage main\nfunc main() {}\n```"))
    assert unnamed[0].text.startswith("```go\n")
    assert "bare code" not in [form.name for form in unnamed]


SUM = {"inputs": ["3 4", "20 22", "1 8"], "outputs": ["7", "42", "9"]}
ROWS: dict[str, list[dict[str, Any]]] = {
    "programs": [
        {
            "language": "cpp",
            "solution": "#include <iostream>\nint main() { int a, b; std::cin >> a >> b; std::cout << a + b; }",
            **SUM,
        },
        {
            "language": "javascript",
            "solution": "const [a, b] = require('fs').readFileSync(0, 'utf8').split(' ');\nconsole.log(+a + +b);",
            **SUM,
        },
    ],
    "functions": [
        {"language": language, "solution": FUNCTIONS[language], "entry_point": "most", "inputs": [[[7]], [[9, 1]]],
         "outputs": [7, 9]}
        for language in ("bash", "c", "cpp", "lua", "perl", "php", "ruby", "javascript")
    ],
    "suites": [
        {
            "language": "cpp",
            "declaration": "#include <cassert>\nusing namespace std;\nint add(int a, int b) {\n",
            "canonical_solution": "    return a + b;\n}\n",
            "entry_point": "add",
            "tests": "int main() { assert(add(3, 4) == 7); assert(add(20, 22) == 42); }\n",
        },
        {
            "language": "javascript",
            "declaration": "const add = (a, b) => {\n",
            "canonical_solution": "  return a + b;\n}\n",
            "entry_point": "add",
            "tests": "console.assert(add(3, 4) === 7);\nconsole.assert(add(20, 22) === 42);\n",
        },
    ],
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", ROWS)
def test_rewards_of_code_are_not_accused(name: str, full: bool) -> None:
    """They pay every honest form, and no attack."""
    rows = ROWS[name] if full else ROWS[name][-1:]
    for each in rows:
        skip_where_missing(each["language"])
    result = audited("builtin_rewards.code:code_tests", [{"prompt": "Write it.", **each} for each in rows], full=full)
    assert len(rows) == result.audited
    assert {} == {rule: [example.completion[:200] for example in flaws] for rule, flaws in result.flaws.items()}
    assert AuditVerdict.PASSED is result.verdict({**LIMITS, "false_reject": 0.0})


@pytest.mark.full
@pytest.mark.slow
def test_a_reward_that_trusts_the_exit_code_is_accused() -> None:
    """It pays a program that does nothing as well as a right one."""
    skip_where_missing("javascript")
    rows = [{"prompt": "Write it.", **ROWS["suites"][1]}]
    result = audited(f"{HERE}/bad_rewards.py:trusts_the_exit_code", rows, full=False)
    assert "code" in result.flaws
    assert AuditVerdict.NOT_PASSED is result.verdict(LIMITS)
