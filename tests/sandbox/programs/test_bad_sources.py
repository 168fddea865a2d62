"""Bad sources in every language: each has a bounded end that is the completion's own, and harms no other program."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import pytest
from code_sections import sections

from sandbox import LANGUAGES, CheckStatus, ExecutionResult, ExecutionStatus, Limits, ProgramCheck, Sandbox, why_not_run
from sandbox.program_checks import check_programs
from sandbox.programs import engine

OK, NONZERO, TIMEOUT = ExecutionStatus.OK, ExecutionStatus.NONZERO, ExecutionStatus.TIMEOUT
MEMORY, KILLED = ExecutionStatus.MEMORY, ExecutionStatus.KILLED
LIMITS = Limits(timeout_s=20.0)


@pytest.fixture(scope="module")
def jail() -> Iterator[Sandbox]:
    with Sandbox(workers=1) as sandbox:
        yield sandbox


def run(jail: Sandbox, language: str, source: str) -> ExecutionResult:
    """Run a bad source, and then a good one, in the same launcher."""
    if reason := why_not_run(language):
        pytest.skip(reason)
    result = jail.run(source, language=language, limits=LIMITS)
    innocent = jail.run(LANGUAGES[language].hello, language=language, limits=LIMITS)
    assert (OK, "hello\n") == (innocent.status, innocent.stdout), innocent
    assert len(result.stderr) <= 1 << 20
    assert len(result.error or "") <= 400
    return result


def nested(brackets: str, count: int, inside: str = "0") -> str:
    return brackets[0] * count + inside + brackets[1] * count


COMMENTS = {
    **dict.fromkeys(("c", "cpp", "java", "go", "rust", "javascript", "typescript"), "// x\n/* int main() {} */\n"),
    **dict.fromkeys(("bash", "perl", "ruby"), "# x\n"),
    "php": "<?php // x\n",
    "lua": "-- x\n",
}
EXPRESSIONS = {
    "bash": "x=$((@))",
    "c": "int main(void) { return @; }",
    "cpp": "int main() { return @; }",
    "go": "func main() { _ = @ }",
    "java": "class Main { public static void main(String[] a) { int x = @; } }",
    "javascript": "let x = @",
    "lua": "x = @",
    "perl": "$x = @;",
    "php": "<?php $x = @;",
    "ruby": "x = @",
    "rust": "fn main() { let _x = @; }",
    "typescript": "let x: number = @",
}
"""A program of each language around an expression."""
ODD: Mapping[str, Callable[[str], str]] = {
    "empty": lambda language: "",
    "blank": lambda language: " \t\r\n\n",
    "comments": COMMENTS.__getitem__,
    "NUL behind": lambda language: LANGUAGES[language].hello + "\0",
    "NUL in a text": lambda language: LANGUAGES[language].hello.replace("hello", "he\0llo"),
    "NUL first": lambda language: "\0" + LANGUAGES[language].hello,
    "two marks of order": lambda language: "\ufeff\ufeff" + LANGUAGES[language].hello,
    "a mark of order within": lambda language: LANGUAGES[language].hello.replace("\n", "\ufeff\n"),
    "half a character": lambda language: LANGUAGES[language].hello + "\ud800",
    "hard blanks": lambda language: LANGUAGES[language].hello.replace(" ", "\u00a0"),
    "written backwards": lambda language: LANGUAGES[language].hello + "\u202e",
    "the end of a file of DOS": lambda language: LANGUAGES[language].hello + "\x1a",
    "all bytes": lambda language: "".join(map(chr, range(256))),
    "five megabytes": lambda language: LANGUAGES[language].hello + "\n" * 5_000_000,
    "brackets in brackets": lambda language: EXPRESSIONS[language].replace("@", nested("()", 2_000)),
    "brackets without end": lambda language: EXPRESSIONS[language].replace("@", "(" * 20_000),
    "a long line": lambda language: EXPRESSIONS[language].replace("@", "1+" * 2_000 + "1"),
}


@pytest.mark.cases(20)
@pytest.mark.parametrize("language", sorted(LANGUAGES))
@pytest.mark.parametrize("kind", ODD)
def test_an_odd_source_has_an_end_of_its_own(jail: Sandbox, language: str, kind: str) -> None:
    """It runs as its language takes it, or fails: never for want of the sandbox, and never without an end."""
    result = run(jail, language, ODD[kind](language))
    assert result.status in (OK, NONZERO, KILLED, MEMORY, TIMEOUT, ExecutionStatus.OUTPUT_LIMIT), result
    if kind == "five megabytes":
        assert "the source has 5.0 MB" in str(result.error)
    elif kind == "half a character":
        assert "the source is no text" in str(result.error)
    elif kind in ("empty", "blank", "comments"):
        assert (NONZERO if LANGUAGES[language].compile else OK) == result.status, result


SOURCES = {
    tuple(part.strip() for part in title.split("|")): source for title, source in sections("bad_sources.txt").items()
} | {
    ("java: calls in calls", "nonzero", "StackOverflowError"): (
        "class Main { static <A> A f(A a) { return a; }\n"
        f"public static void main(String[] x) {{ Object o = {nested('()', 3_000, '1').replace('(', 'f(')}; }} }}"
    ),
    ("java: too long a name", "nonzero", "does not compile"): f"class {'C' * 300} {{}}",
}
"""By language and name, the statuses that a source may end with, and what is said or printed: the sources."""


@pytest.mark.cases(16)
@pytest.mark.parametrize(
    ("title", "statuses", "text"), SOURCES, ids=[title.replace("/", " ") for title, _, _ in SOURCES]
)
def test_a_source_that_compilers_stumble_over_has_an_end_of_its_own(
    jail: Sandbox, title: str, statuses: str, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A compiler has seconds, memory and output of its own; what is odd and right is right."""
    language, _, _ = title.partition(": ")
    if "timeout" in statuses:
        assert not run(jail, language, LANGUAGES[language].hello).error  # which makes what the language needs once
        monkeypatch.setattr(engine, "_COMPILE_S", 3.0)
    result = run(jail, language, SOURCES[title, statuses, text])
    assert result.status in statuses.split(), result
    assert text in f"{result.error}\n{result.stderr}\n{result.stdout}", result


def test_more_threads_than_a_program_may_have_are_refused_by_the_kernel(jail: Sandbox) -> None:
    """Each time, and not only where somebody looks: a verdict does not depend on how long a thread lives."""
    source = (
        "#include <pthread.h>\n#include <stdio.h>\n#include <unistd.h>\nvoid* f(void* x) { pause(); return x; }\n"
        "int main(void) { pthread_t t; int n = 1; while (n < 99 && pthread_create(&t, 0, f, 0) == 0) n++;\n"
        'printf("%d", n); fflush(stdout); _exit(0); }'
    )
    limits = Limits(timeout_s=20.0, memory_bytes=2 << 30)
    assert ["8"] * 3 == [jail.run(source, language="c", limits=limits).stdout for _ in range(3)]


@pytest.mark.parametrize("language", ["c", "java", "javascript", "lua"])
def test_a_bad_source_is_the_completions_failure(jail: Sandbox, language: str) -> None:
    """Its checks are errors, and none says that nothing is known."""
    if reason := why_not_run(language):
        pytest.skip(reason)
    for kind in ("empty", "half a character", "five megabytes"):
        report = check_programs(jail, ODD[kind](language), [ProgramCheck("", "hello\n")], language=language)
        assert not report.all_passed
        assert {check.status for check in report.checks} <= {CheckStatus.FAILED, CheckStatus.ERROR}, report
