"""A toolchain half installed: its rows are skipped with the reason, and no completion fails for it."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator

import pytest

from sandbox import LANGUAGES, Artefact, ExecutionResult, ExecutionStatus, Limits, Suite, why_not_run
from sandbox.errors import LanguageUnavailableError, SandboxUnavailableError
from sandbox.evaluation import unrun
from sandbox.jail.levels import Level
from sandbox.languages.language import Kit, Language, Program, Tool
from sandbox.programs import calls
from sandbox.programs.engine import Programs

LIMITS = Limits()
NOTHING = "/usr/bin/true"  # says that it runs, and makes nothing


@pytest.fixture
def programs() -> Iterator[Programs]:
    programs = Programs(Level.STRICT, 1)
    yield programs
    programs.close()


def with_tools(name: str, path: str) -> Language:
    """Return a language all of whose tools are one program."""
    language = LANGUAGES[name]
    tools = tuple(dataclasses.replace(tool, candidates=(path,)) for tool in language.tools)
    return dataclasses.replace(language, tools=tools)


def without_headers(name: str) -> Language:
    """Return a language whose compiler finds no headers."""
    language = LANGUAGES[name]
    assert language.compile
    command, *others = language.compile.commands
    stage = dataclasses.replace(language.compile, commands=((*command, "-nostdinc"), *others))
    kit = language.kit
    if kit:
        first, *rest = kit.stage.commands
        kit = Kit(kit.files, dataclasses.replace(kit.stage, commands=((*first, "-nostdinc"), *rest)))
    return dataclasses.replace(language, compile=stage, kit=kit)


BROKEN = {
    "gcc without headers": (without_headers, ("c",), "stdio.h"),
    "g++ without headers": (without_headers, ("cpp",), "what cpp needs could not be made"),
    "go without its programs": (with_tools, ("go", NOTHING), "what go needs could not be made"),
    "a javac that makes nothing": (with_tools, ("java", NOTHING), "what java needs could not be made"),
    "a rustc that makes nothing": (with_tools, ("rust", NOTHING), "the compiler made nothing"),
    "an interpreter that does nothing": (with_tools, ("lua", NOTHING), "it printed something else"),
}


@pytest.mark.parametrize(("make", "arguments", "reason"), BROKEN.values(), ids=list(BROKEN))
def test_what_is_half_installed_does_not_run(
    programs: Programs, make: Callable[..., Language], arguments: tuple[str, ...], reason: str
) -> None:
    """Whatever is asked of it, and it is tried once."""
    if missing := why_not_run(arguments[0]):
        pytest.skip(missing)
    language = make(*arguments)
    asked = [
        lambda: calls.run_inputs(programs, language, language.hello, [""], {}, (), LIMITS),
        lambda: calls.build_source(programs, language, language.hello, LIMITS),
        lambda: calls.call_function(programs, language, "", "f", [[1]], LIMITS),
        lambda: calls.run_suite(programs, language, "", Suite("", "f"), LIMITS),
    ]
    try:
        for number, ask in enumerate(asked):
            with pytest.raises(LanguageUnavailableError, match=reason) as caught:
                ask()
            assert language.name == caught.value.language
            if not number:
                programs.build = None  # type: ignore[assignment] # what was tried is not tried again
    except SandboxUnavailableError as fault:
        pytest.skip(f"no jail here: {fault}")


def test_a_tool_that_does_not_start_is_missing() -> None:
    """Its row is skipped before anything is run."""
    broken = dataclasses.replace(LANGUAGES["lua"], tools=(Tool("lua", ("/usr/bin/false",), install="buy one"),))
    programs = Programs(Level.STRICT, 1)
    with pytest.raises(LanguageUnavailableError, match=r"/usr/bin/false ends with 1.* \(to have it: buy one\)"):
        programs.prove(broken)


class LostPrograms(Programs):
    """Programs whose sandbox fails so many times before it works."""

    losses = 1

    def build(self, language: Language, program: Program, limits: Limits) -> Artefact | ExecutionResult:
        if self.losses:
            self.losses -= 1
            return unrun(ExecutionStatus.INFRASTRUCTURE, "the sandbox failed", self.level)
        return super().build(language, program, limits)


def test_a_sandbox_that_fails_once_says_nothing_of_the_language() -> None:
    """Its rows are not skipped for it: the first program is lost, or runs, and the language is tried again."""
    language = next((LANGUAGES[name] for name in ("lua", "perl", "ruby") if why_not_run(name) is None), None)
    if language is None:
        pytest.skip("none of Lua, Perl and Ruby is on this machine")
    programs = LostPrograms(Level.STRICT, 1)
    try:
        for _ in range(2):
            (result,) = calls.run_inputs(programs, language, language.hello, [""], {}, (), LIMITS)
            assert "hello\n" == result.stdout
    except SandboxUnavailableError as fault:
        pytest.skip(f"no jail here: {fault}")
    finally:
        programs.close()


def test_functions_in_c_are_not_judged_without_a_compiler_of_cpp(programs: Programs) -> None:
    """Its programs still are."""
    if missing := why_not_run("c"):
        pytest.skip(missing)
    language = dataclasses.replace(LANGUAGES["c"], driver_language=with_tools("cpp", "/usr/bin/false"))
    with pytest.raises(LanguageUnavailableError, match="cpp does not run on this machine: /usr/bin/false ends with 1"):
        calls.call_function(programs, language, "int f(int x) { return x; }", "f", [[1]], LIMITS)
    result = calls.run_inputs(programs, language, language.hello, [""], {}, (), LIMITS)[0]
    assert (ExecutionStatus.OK, "hello\n") == (result.status, result.stdout)
