"""Rewards of code in other languages than Python: which code counts, and that its tests judge it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from reward_servers import reward_server

from builtin_rewards.code import code_compiles, code_runs, code_tests
from builtin_rewards.polyglot import code_in_language, fenced_language
from rewardkit import Rollout, Runtime
from sandbox import LANGUAGES, Sandbox, toolchain_of, why_not_run
from sandbox.languages import toolchains

SUMS = {
    "bash": 'read a b; echo "$((a + b))"',
    "c": '#include <stdio.h>\nint main(){int a,b;scanf("%d %d",&a,&b);printf("%d\\n",a+b);}',
    "cpp": "#include <iostream>\nint main(){int a,b;std::cin>>a>>b;std::cout<<a+b;}",
    "go": 'package main\nimport "fmt"\nfunc main(){var a,b int;fmt.Scan(&a,&b);fmt.Println(a+b)}',
    "java": (
        "import java.util.*;\npublic class Sum{public static void main(String[] x){"
        "Scanner s=new Scanner(System.in);System.out.println(s.nextInt()+s.nextInt());}}"
    ),
    "javascript": (
        "const [a, b] = require('fs').readFileSync(0, 'utf8').trim().split(' ').map(Number);\nconsole.log(a + b);"
    ),
    "lua": "local a, b = io.read('n', 'n')\nprint(a + b)",
    "perl": 'my ($x, $y) = split / /, <STDIN>;\nprint $x + $y, "\\n";',
    "php": '<?php [$a, $b] = explode(" ", trim(fgets(STDIN))); echo $a + $b, "\\n";',
    "ruby": "a, b = gets.split.map(&:to_i)\nputs a + b",
    "rust": (
        "use std::io::Read;\nfn main(){let mut s=String::new();std::io::stdin().read_to_string(&mut s).unwrap();"
        'let n:i64=s.split_whitespace().map(|w|w.parse::<i64>().unwrap()).sum();println!("{}",n);}'
    ),
    "typescript": (
        "const parts: number[] = require('fs').readFileSync(0, 'utf8').trim().split(' ').map(Number);\n"
        "console.log(parts[0] + parts[1]);"
    ),
}
PAIRS: dict[str, Any] = {"inputs": ["3 4\n", "20 22\n"], "outputs": ["7\n", "42\n"]}


@pytest.fixture(scope="module")
def jail() -> Iterator[Sandbox]:
    with Sandbox(workers=2) as sandbox:
        yield sandbox


def fenced(code: str, mark: str) -> str:
    return f"So:\n```{mark}\n{code}\n```\n"


def skip_where_missing(language: str) -> None:
    if reason := why_not_run(language):
        pytest.skip(reason)


@pytest.mark.cases(6)
@pytest.mark.parametrize("language", sorted(LANGUAGES))
def test_programs_are_judged_in_the_rows_language_or_in_that_of_the_fence(jail: Sandbox, language: str) -> None:
    """A right program earns 1.0, a wrong one 0.0, and one that does not compile 0.0 with the reason."""
    skip_where_missing(language)
    right, wrong = SUMS[language], SUMS[language].replace("+ b", "- b").replace("a+b", "a-b").replace("$y,", "0,")
    by_column = code_tests(completion=fenced(right, language), sandbox=jail, language=language, **PAIRS)
    by_fence = code_tests(completion=fenced(right, language), sandbox=jail, **PAIRS)
    shown_by_fence = 0.0 if language == "bash" else 1.0  # a block of a shell mostly says how a program is started
    by_setting = code_tests(language=language)(completion=fenced(right, language), sandbox=jail, **PAIRS)
    assert [1.0, 1.0, shown_by_fence] == [by_column.value, by_setting.value, by_fence.value], by_column.reason
    if wrong != right:
        assert 0.0 == code_tests(completion=fenced(wrong, language), sandbox=jail, language=language, **PAIRS).value
    broken = code_tests(completion=fenced("}} ((( nonsense '", language), sandbox=jail, language=language, **PAIRS)
    assert 0.0 == broken.value
    assert broken.reason


@pytest.mark.cases(6)
@pytest.mark.parametrize("language", sorted(LANGUAGES))
def test_programs_compile_and_run_or_not(jail: Sandbox, language: str) -> None:
    """In each language."""
    skip_where_missing(language)
    hello, broken = fenced(LANGUAGES[language].hello, language), fenced("}} ((( nonsense '", language)
    scores = [
        reward(completion=text, sandbox=jail, language=language).value
        for reward in (code_runs, code_compiles)
        for text in (hello, broken)
    ]
    assert [1.0, 0.0, 1.0, 0.0] == scores


CALLS: dict[str, Any] = {"entry_point": "add", "inputs": [[3, 4], [20, 22]], "outputs": [7, 42]}
FUNCTIONS = {
    "bash": 'add() { echo "$(($1 + $2))"; }',
    "c": "int add(int a, int b) { return a + b; }",
    "cpp": "int add(int a, int b) { return a + b; }",
    "javascript": "function add(a, b) { return a + b; }",
    "lua": "local function add(a, b) return a + b end",
    "perl": "sub add { my ($a, $b) = @_; return $a + $b; }",
    "php": "function add($a, $b) { return $a + $b; }",
    "ruby": "def add(a, b) = a + b",
}


@pytest.mark.parametrize("language", sorted(FUNCTIONS))
def test_functions_are_judged_by_values(jail: Sandbox, language: str) -> None:
    """What they return is compared outside of their jail."""
    skip_where_missing(language)
    right = FUNCTIONS[language]
    wrong = right.replace("+", "-")
    scores = [
        code_tests(completion=fenced(code, language), sandbox=jail, language=language, **CALLS)
        for code in (right, wrong)
    ]
    assert [1.0, 0.0] == [score.value for score in scores], [score.reason for score in scores]


SUITES = {
    "cpp": (
        "#include <cassert>\nusing namespace std;\nint add(int a, int b) {\n",
        "int main() { assert(add(3, 4) == 7); assert(add(20, 22) == 42); }\n",
    ),
    "javascript": (
        "const add = (a, b) => {\n",
        "console.assert(add(3, 4) === 7);\nconsole.assert(add(20, 22) === 42);\n",
    ),
    "php": ("<?php\nfunction add($a, $b) {\n", "assert(add(3, 4) === 7);\nassert(add(20, 22) === 42);\n"),
    "ruby": ("def add(a, b)\n", "raise unless add(3, 4) == 7 && add(20, 22) == 42\n"),
}


@pytest.mark.parametrize("language", sorted(SUITES))
def test_a_suite_in_the_language_asks_the_completion_from_a_jail_of_its_own(jail: Sandbox, language: str) -> None:
    """A completion that ends, or writes to all descriptors, earns nothing."""
    skip_where_missing(language)
    declaration, tests = SUITES[language]
    row = {"language": language, "declaration": declaration, "tests": tests, "entry_point": "add"}
    right = FUNCTIONS[language]
    forging = {
        "cpp": "#include <cstdlib>\nstruct S { S() { exit(0); } } s;\nint add(int a, int b) { return 0; }",
        "javascript": "console.assert = () => {}; process.exit(0); function add(a, b) { return 0; }",
        "php": "<?php ini_set('zend.assertions', 0); exit(0); function add($a, $b) { return 0; }",
        "ruby": "def raise(*) = nil\ndef add(a, b) = exit!(0)",
    }[language]
    scores = [
        code_tests(completion=fenced(code, language), sandbox=jail, **row)
        for code in (right, right.replace("+", "-"), forging)
    ]
    assert [1.0, 0.0, 0.0] == [score.value for score in scores], [score.reason for score in scores]


def test_tests_that_do_not_compile_skip_the_row_and_a_completion_that_does_not_earns_nothing(jail: Sandbox) -> None:
    """The row's fault, and the completion's."""
    skip_where_missing("cpp")
    declaration, tests = SUITES["cpp"]
    row = {"language": "cpp", "declaration": declaration, "entry_point": "add"}
    right = fenced(FUNCTIONS["cpp"], "cpp")
    assert code_tests(completion=right, sandbox=jail, tests=f"{tests} }}}}", **row).value is None
    assert 0.0 == code_tests(completion=fenced("int add(", "cpp"), sandbox=jail, tests=tests, **row).value


def test_a_language_that_nobody_knows_skips_a_row_but_earns_a_completion_nothing(jail: Sandbox) -> None:
    """What the row says is no fault of the completion; what its fence says is its own choice."""
    completion = fenced("print(7)", "brainfuck")
    assert code_tests(completion=completion, sandbox=jail, language="brainfuck", **PAIRS).value is None
    assert 0.0 == code_tests(completion=completion, sandbox=jail, **PAIRS).value


@pytest.mark.parametrize(
    ("completion", "language"),
    [
        ("print(1)", "python"),
        ("```\nint main(){}\n```", "python"),
        ("```cpp\nint main(){}\n```", "cpp"),
        ("```C++\nint main(){}\n```\nrun it:\n```bash\n./a.out\n```", "cpp"),
        ("```bash\necho 1\n```", "python"),
        ("```js\n1\n```\n```python\n1\n```", "python"),
        ("```json\n{}\n```", "python"),
    ],
)
def test_the_fence_of_the_block_that_counts_names_the_language(completion: str, language: str) -> None:
    """A shell's block mostly says how a program is started."""
    assert language == fenced_language(completion)


@pytest.mark.parametrize(
    ("completion", "entry_point", "code"),
    [
        ("```cpp\nint f();\n```\n```cpp\nint g();\n```", None, "int g();\n"),
        ("```cpp\nint f();\n```\n```cpp\nint g();\n```", "f", "int f();\n"),
        ("```cpp\n  return 1;\n}\n```", "f", "int f() {\n  return 1;\n}\n"),
        ("```python\n1\n```", None, None),
        ("int main() {}", None, "int main() {}"),
    ],
)
def test_which_code_counts(completion: str, entry_point: str | None, code: str | None) -> None:
    """The last block that defines the function; a body follows the prefix."""
    assert code == code_in_language(completion, "cpp", entry_point, "int f() {")


def test_a_verdict_names_its_language_and_tools_and_its_log_has_the_compilers_messages() -> None:
    """So the record has them: what the compiler said of a completion, and what would judge it otherwise."""
    skip_where_missing("cpp")
    wrong = "#include <iostream>\nint main() { std::cout << undeclared_sum; }"
    rollouts = [Rollout("Add.", fenced(code, "cpp"), {"language": "cpp", **PAIRS}) for code in (SUMS["cpp"], wrong)]
    with Runtime([code_tests, code_compiles], workers=1) as runtime:
        batch = runtime.score(rollouts)
    tools = toolchain_of("cpp")
    assert tools is not None
    for outcomes in batch.outcomes.values():
        assert [1.0, 0.0] == [outcome.score for outcome in outcomes]
        for outcome in outcomes:
            assert str(outcome.reason).endswith(f"in cpp, by {tools.version}")
        assert "" == outcomes[0].logs
        assert "main.cpp:2:27: error: " in outcomes[1].logs
        assert "undeclared_sum" in outcomes[1].logs


def replace_lua(folder: Path, version: str) -> None:
    """Make a tool that says that it is Lua of a version."""
    path = folder / "lua5.4"
    path.write_text(f"#!/bin/sh\necho 'Lua {version}'\n")
    path.chmod(0o755)


def test_another_compiler_is_another_version_of_a_reward_in_its_language(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where a setting names the language; a reward whose rows name it has its code's version alone."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(toolchains, "_searches", {})  # as in a new process
    versions = []
    for release in ("5.4.1", "5.4.2", "5.4.1"):
        replace_lua(tmp_path, release)
        versions.append([reward(language="lua").version for reward in (code_tests, code_runs, code_compiles)])
    assert versions[0] == versions[2]
    assert set(versions[0]).isdisjoint(versions[1])
    assert code_tests.version == code_tests().version


def test_a_score_that_is_kept_is_not_used_again_after_a_compiler_has_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    replace_lua(tmp_path, "5.4.1")
    rollout = Rollout("Add.", fenced("print(sum(map(int, input().split())))", "python"), PAIRS)
    with Runtime([code_tests.with_options(cache=True)], workers=1) as runtime:
        first, second = (runtime.score([rollout])["code_tests"][0] for _ in range(2))
        replace_lua(tmp_path, "5.4.2 of another size")
        third = runtime.score([rollout])["code_tests"][0]
    assert [1.0, 1.0, 1.0] == [outcome.score for outcome in (first, second, third)]
    assert [False, True, False] == [outcome.cached for outcome in (first, second, third)]


def test_a_reward_server_judges_by_setting_column_and_fence() -> None:
    """Over HTTP each completion is judged in its language, and the reason says in which, and by which tools."""
    skip_where_missing("javascript")
    rewards = [code_tests.with_options(name="by_row"), code_tests(language="js").with_options(name="by_setting")]
    program = SUMS["javascript"]
    rows = [
        (fenced(program, "js"), {"language": "JavaScript", **PAIRS}),
        (fenced(program, "javascript"), PAIRS),
        (program, {"language": "node", **PAIRS}),
        (fenced(program.replace("a + b", "a - b"), "js"), PAIRS),
        (fenced("print(1)", "python"), {"language": "javascript", **PAIRS}),
        (fenced("fun main() {}", "kotlin"), {"language": "Kotlin", **PAIRS}),
    ]
    rollouts = [{"prompt": "Add.", "completion": text, "example": row} for text, row in rows]
    with Runtime(rewards, workers=1) as runtime, reward_server(runtime) as served:
        reply = served.post("/v1/score", {"rollouts": rollouts})
    assert 200 == reply.status
    outcomes = {name: [row["outcomes"][name] for row in reply.json["rows"]] for name in ("by_row", "by_setting")}
    scores = {name: [outcome["score"] for outcome in column] for name, column in outcomes.items()}
    assert {"by_row": [1.0, 1.0, 1.0, 0.0, 0.0, None], "by_setting": [1.0, 1.0, 1.0, 0.0, 0.0, 0.0]} == scores
    tools = toolchain_of("javascript")
    assert tools is not None
    for column in outcomes.values():
        assert f"2 of 2 checks passed; in javascript, by {tools.version}" == column[0]["reason"]
        assert "its code is in python" in column[4]["reason"]
    assert "the language is 'Kotlin'" in outcomes["by_row"][5]["reason"]
