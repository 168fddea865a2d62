"""Rewards for code that the model wrote: does it compile, does it run, how many of its tests does it pass.

The code runs in a jail (see :class:`sandbox.Sandbox`), and its tests are decided outside of the process that holds
it, so a completion cannot forge a pass. A jail that fails is the cause ``infrastructure``, never a score.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from builtin_rewards.adjustable import adjustable
from builtin_rewards.check_scores import DEADLINE_S, LIMITS, CheckTime, score_of
from builtin_rewards.inside import program
from builtin_rewards.one_process import check_in_one_process
from builtin_rewards.polyglot import (
    LanguageSetting,
    Marks,
    code_in_language,
    judged_by,
    language_of_row,
    language_that_counts,
    skip_reason,
)
from builtin_rewards.reading.answer import AnswerRule, final_answer
from builtin_rewards.reading.code_columns import dates_as_text, join_asserts, join_lines, why_no_tests
from builtin_rewards.reading.code_language import no_code_reason, with_fence_hint
from builtin_rewards.reading.markdown import begins_in_block, code_blocks, last_code, open_mark
from builtin_rewards.reading.replaced_names import replacement_note
from rewardkit import InfrastructureError, Reward, Score, reward
from sandbox import (
    FOREIGN_NAMES,
    PYTHON,
    Artefact,
    CheckReport,
    CheckResult,
    ExecutionResult,
    FunctionCheck,
    Limits,
    OutputMatch,
    ProgramCheck,
    Sandbox,
    Suite,
    check_asserts,
    check_dialogs,
    check_functions,
    check_programs,
    check_suite,
    language_name,
    output_matcher,
    parse,
    signs_of,
)
from sandbox.errors import CheckError, LanguageUnavailableError, NotPlainError, SharedProcessError

FLOAT_TOLERANCE = 1e-9  # How far a float may be off that a function returns, absolutely or relatively: by rounding
_MARKS = ("python", "py", "python3")
_COMPILE = "def compiles(source):\n    compile(source, 'main.py', 'exec', dont_inherit=True)\n"
_FIRST_LINE = re.compile(r"^(?:(?:from|import|def|class|async def|@)\b|[A-Za-z_]\w* *=)", re.MULTILINE)
_HINTS = re.compile(rf"\b(?:{'|'.join(sorted(program.TYPING))})\b")
_READER = Path(program.__file__).read_text(encoding="utf-8")  # it runs in the jail, so it is sent as text


def _prefix(prompt: str, language: str) -> str:
    """Return the code at the end of a prompt: its last block, in Python else all from its first line of code."""
    if language != PYTHON:
        return last_code(prompt, Marks(language)) or ""
    code = last_code(prompt, _MARKS) or ""
    first_line = _FIRST_LINE.search(code)
    return code[first_line.start() :] if first_line else ""


def _blocks(completion: str, prompt: str, context: str = "") -> list[str]:
    """Return the blocks of Python code in a completion, which may begin inside a block that the prompt opened.

    The first one then has the ``context``, which is the prompt's part of it, where it begins with an indented line.
    """
    text = final_answer(completion, (AnswerRule.TAG,))
    mark = open_mark(prompt) if "```" in prompt or "~~~" in prompt else None
    if begins_in_block(text, mark is not None):
        is_body = mark is not None and context and text.lstrip("\n")[:1] in (" ", "\t")
        text = f"```{mark or _MARKS[0]}\n{context.rstrip() if is_body else ''}\n{text}"
    return [block.lstrip("\ufeff\u200b") for block in code_blocks(text, _MARKS)]


def _read_in_jail(sandbox: Sandbox, function: str, arguments: list[Any]) -> Any:
    """Return what a function of the reader makes of code; ``None`` where the code breaks it."""
    execution = sandbox.call(_READER, function, [arguments], limits=LIMITS)
    if execution.status == "infrastructure":
        raise InfrastructureError(f"the jail failed: {execution.error}")
    is_read = execution.status == "ok" and execution.value and execution.value[0].ok
    return execution.value[0].value if execution.value and is_read else None


def _program(
    blocks: list[str], sandbox: Sandbox, entry_point: str | None = None, tests: str = "", prefix: str = ""
) -> str | None:
    """Return the program in a completion, if any, as ``assemble`` makes it; raise InfrastructureError of the jail."""
    lacks_hints = any(_HINTS.search(block) and "typing" not in block for block in blocks)
    if len(blocks) > 1 or (blocks and (prefix.strip() or lacks_hints)):
        assembled = _read_in_jail(sandbox, "assemble", [blocks, entry_point, tests, prefix])
        if assembled is not None:
            return str(assembled)
    return blocks[-1] if blocks else None


def _other_language(code: str, sandbox: Sandbox) -> str | None:
    """Return why code is not run: it is plainly of another language than Python; ``None`` where it is not."""
    language = signs_of(code)
    if language is None:
        return None
    is_python = _read_in_jail(sandbox, "is_python", [code, sorted(FOREIGN_NAMES)])
    return None if is_python else f"the code is in {language}, not in Python"


@dataclass(frozen=True, slots=True)
class _Matching:
    """How the outputs of programs are compared, by the row or else by the setting; refuses what makes no sense."""

    match: str
    tolerance: float | None
    checker: str | None
    interactor: str | None = None
    checker_language: str = PYTHON

    def __post_init__(self) -> None:
        output_matcher(self.match, self.tolerance)

    def of_row(
        self,
        match: str | None,
        tolerance: float | None,
        checker: str | None,
        interactor: str | None,
        checker_language: str | None,
    ) -> _Matching:
        """Return this with what a row says in its place."""
        tolerance = self.tolerance if tolerance is None else tolerance
        language = checker_language or (PYTHON if checker else self.checker_language)
        checker = checker or (None if match else self.checker)
        return _Matching(match or self.match, tolerance, checker, interactor, language_name(language))

    def check(
        self, sandbox: Sandbox, code: str, checks: list[ProgramCheck], time: CheckTime, language: str
    ) -> CheckReport:
        """Return the report of a program's outputs."""
        limits, check_timeout_s = time.together(len(checks)), time.check_timeout_s
        if self.interactor is None:
            return check_programs(
                sandbox,
                code,
                checks,
                match=self.match,
                tolerance=self.tolerance,
                checker=self.checker,
                checker_language=self.checker_language,
                limits=limits,
                check_timeout_s=check_timeout_s,
                language=language,
            )
        if language != PYTHON:
            raise CheckError(f"an interactor talks with programs in Python, and the row is in {language}")
        return check_dialogs(sandbox, code, checks, self.interactor, limits=limits, check_timeout_s=check_timeout_s)


def _require_python(checker: str) -> None:
    try:
        parse(checker)
    except SyntaxError as error:
        raise ValueError(f"checker: line {error.lineno}: {error.msg}") from None


@dataclass(frozen=True, slots=True)
class _Row:
    """The tests of a row, and the language in which they are run."""

    language: str
    is_named: bool  # whether the row or a setting names it, and not only the completion's fence
    entry_point: str | None
    tests: str | None
    setup: str
    context: str  # what the completion continues: code before it, or the declaration that tests are compiled against
    inputs: list[Any] | None
    outputs: list[Any]
    matching: _Matching

    def code_of(self, completion: str, prompt: str, sandbox: Sandbox) -> str | Score:
        """Return the code that counts; 0.0 with the reason where the completion has no code."""
        return _code_of(
            completion,
            prompt,
            sandbox,
            self.language,
            self.entry_point,
            f"{self.setup}\n{self.tests or ''}",
            self.context,
        )

    def score(self, code: str, sandbox: Sandbox, time: CheckTime, *, all_or_nothing: bool) -> Score:
        """Return the score of the code; ``None`` as its value where the row is at fault."""
        reports: list[CheckReport] = []
        checks: list[CheckResult] = []
        try:
            if self.tests is not None:
                try:
                    limits = time.together(1)
                    reports.append(self._run_tests(self.tests, code, sandbox, limits))
                except SharedProcessError as error:
                    checks += check_in_one_process(code, self.tests, self.entry_point, self.setup, limits, error)
            if self.inputs is not None:
                reports.append(self._check_pairs(code, self.inputs, sandbox, time))
        except (CheckError, NotPlainError) as error:
            return Score(None, reason=f"the row's tests cannot be run: {error}")
        except LanguageUnavailableError as error:
            return Score(None if self.is_named else 0.0, reason=str(error))
        note = replacement_note(code) if self.language == PYTHON and not checks else ""
        checks += [check for report in reports for check in report.checks]
        score = score_of(checks, all_or_nothing=all_or_nothing, time=time if self.tests is None else None, note=note)
        return judged_by(score, self.language, [report.execution for report in reports])

    def _run_tests(self, tests: str, code: str, sandbox: Sandbox, limits: Limits) -> CheckReport:
        if self.language == PYTHON:
            return check_asserts(
                sandbox,
                code,
                tests,
                entry_point=self.entry_point,
                setup=self.setup,
                helpers=self.context,
                limits=limits,
            )
        if self.entry_point is None:
            raise CheckError(f"tests in {self.language} need an entry_point, the function that they call")
        suite = Suite(tests, self.entry_point, self.context, self.setup)
        return check_suite(sandbox, code, suite, self.language, limits=limits)

    def _check_pairs(self, code: str, inputs: list[Any], sandbox: Sandbox, time: CheckTime) -> CheckReport:
        outputs, matching, language = self.outputs, self.matching, self.language
        if len(outputs) != len(inputs):
            raise CheckError(f"{len(inputs)} inputs and {len(outputs)} outputs")
        if self.entry_point is None:
            checks = list(map(ProgramCheck, map(join_lines, inputs), map(join_lines, outputs)))
            return matching.check(sandbox, code, checks, time, language)
        if matching.checker or matching.interactor:
            raise CheckError("a checker and an interactor judge programs, and the row has an entry_point")
        rounding = FLOAT_TOLERANCE if matching.tolerance is None else 0.0
        margins = (matching.tolerance or 0.0, matching.tolerance or 0.0, rounding)
        calls = [FunctionCheck(*pair, *margins) for pair in zip(inputs, outputs, strict=True)]
        return check_functions(
            sandbox,
            code,
            self.entry_point,
            calls,
            limits=time.together(len(calls)),
            check_timeout_s=time.check_timeout_s,
            language=language,
        )


@adjustable
def code_tests(
    *,
    all_or_nothing: bool = False,
    match: str = OutputMatch.TOKENS,
    tolerance: float | None = None,
    checker: str | None = None,
    checker_language: str = PYTHON,
    language: str | None = None,
    check_timeout_s: float | None = None,
    limits: Limits | None = None,
) -> Reward[..., Score]:
    """Return ``code_tests`` with these settings.

    Args:
        all_or_nothing: Score 1.0 if every check is passed and 0.0 otherwise, instead of the share passed.
        match: How a program's output is compared where the row does not say it: ``"lines"``, ``"tokens"``,
            ``"float"``, ``"unordered"`` or ``"yes_no"``.
        tolerance: How far numbers may be off where the row does not say it, absolutely or relative to the expected one,
            0 to below 1; ``None`` for 1e-6 in the outputs of programs, and for 1e-9 in floats that functions return.
        checker: Source of a checker for the outputs of programs of rows that name neither a checker nor a rule.
        checker_language: What that checker is written in.
        language: The language of all rows; ``None`` where the rows name it, or the completions' fences do.
        check_timeout_s: Seconds of each check of ``inputs`` and ``outputs``: one that is late fails alone, and while
            the time of all checks lasts, those after it are run. Rows with ``tests`` are skipped. ``None``: no limit of
            each, and nothing is run after a check that is late.
        limits: What one completion may use, all its checks together. ``None``: 10 s, and with ``check_timeout_s`` as
            many seconds as a row's checks may take, at most 120.

    Raises:
        ValueError: There is no such rule, the tolerance makes no sense, the checker does not compile, or
            ``check_timeout_s`` is not above 0 and below ``limits.timeout_s``.
    """
    time = CheckTime(limits, check_timeout_s)
    setting = _Matching(match, tolerance, checker, checker_language=checker_language)
    if checker is not None and checker_language == PYTHON:
        _require_python(checker)
    language_of_all = LanguageSetting(language)

    @reward(timeout_s=time.call_s, score_range=(0, 1))
    def code_tests(
        completion: str,
        sandbox: Sandbox,
        tests: str | None = None,
        entry_point: str | None = None,
        inputs: list[Any] | None = None,
        outputs: list[Any] | None = None,
        setup: str | None = None,
        prefix: str | None = None,
        match: str | None = None,
        tolerance: float | None = None,
        checker: str | None = None,
        checker_language: str | None = None,
        interactor: str | None = None,
        language: str | None = None,
        declaration: str | None = None,
        prompt: str = "",
    ) -> Score:
        """The share of a row's tests that the completion's code passes, 0 to 1.

        Formula: checks passed / checks. What the columns may hold:

        - ``tests``: test text: asserts that call functions by name, HumanEval's ``check(candidate)``, functions and
          classes as pytest collects them, classes of ``unittest``, sessions of ``doctest``; or a list of asserts
          (MBPP). ``setup`` is code that runs before it, on the tests' side.
        - ``inputs`` and ``outputs``: lists of equal length. With an ``entry_point``, each input is a call's arguments,
          a list or an object, and each output the value expected, compared strictly by type; without a ``tolerance``
          a float may be off by 1e-9, absolutely or relatively. Without an ``entry_point``, each pair is a program's
          standard input and output, as texts or lists of lines.
        - ``match``: how a program's output is compared: ``tokens``, the default (what white space separates, whole
          numbers exactly and decimals within the tolerance), ``lines`` (white space counts, but not at the ends of
          lines and of the output), ``float`` (as tokens, whole numbers within the tolerance too), ``unordered`` (lines
          in any order; tokens in any order where each line has one, or all stand on one line), ``yes_no`` (as tokens;
          yes and no in upper or lower case).
        - ``tolerance``: how far numbers may be off, absolutely or relative to the expected one, 0 to below 1; 1e-6 for
          the outputs of programs, and without it 1e-9 for the floats of functions.
        - ``checker``: source that judges the outputs of programs in place of ``match``, in a jail of its own. It
          defines ``check(input, output, expected)``, which returns a bool or a share from 0 to 1; or it is a program
          with the files ``input.txt``, ``expected.txt`` and ``output.txt`` as arguments, whose last line is yes, no or
          a share. A share counts as that part of a check. A checker that cannot judge the expected outputs is the row's
          fault; an output that it cannot judge is wrong.
        - ``interactor``: source that defines ``interact(input, expected, read, write)`` and talks with the program from
          a jail of its own; the program has no other input. It returns a bool or a share. What goes wrong in it before
          it first waits for the program is the row's fault.
        - ``entry_point``: the function under test, or ``Class.method``.
        - ``checker_language``: what the checker is written in; one in another language than Python is a program that
          may answer by its exit code, as testlib's do, with the files in testlib's order.
        - ``language``: the row's language; ``Python 3`` and ``pypy3`` are Python too. Without one, and without
          ``tests``, the fence of the completion's block decides: Python where any block or none is of Python.
        - ``declaration``: in another language than Python, text that declares the function under test, up to its body:
          ``tests`` are compiled against it, and ask the completion's code, which runs in a jail of its own.
        - ``prefix``: code that the completion continues; by default the prompt, or its last block of Python.

        Which code counts: among the blocks marked ``python``, ``py`` or ``python3`` after the last thought, or else
        the unmarked ones, the last that defines what is tested, with those that define what it uses; other blocks are
        not run. An answer without any fence is code as it stands. Where it lacks an import or helper that the prefix
        has, the prefix comes before it. Where no block defines the entry point, and the prefix ends in it without a
        body, the last block is that body. A block that the prompt opened goes on in the completion. With an
        ``entry_point``, other names that the tests call are the tests' or the prefix's; the usual ones that they leave
        unbound, such as ``math`` and ``Counter``, are never the completion's.

        Each call gets copies of its arguments. Assert-style tests see what a call changed in them only where it
        returned ``None``, as functions that work in place do.

        Objects of the code's own, such as instances and iterators, are used by the tests where they are; none of them
        equals a plain value.

        Tests that patch what the code uses, or hand it a module or a mock, run in one process with it by pytest, in
        runs of which some expect what is wrong; where these cannot guard them, the row's tests are at fault.

        0.0 where the completion holds no code, or code that is marked as another language or plainly is of one: it has
        a sign of that language, and does not read as Python or uses a name such as ``console`` that nothing binds.

        ``None`` where the row has no tests, or tests that are at fault: that cannot be run, cannot fail, end without a
        call of the code, or use a name, library or fixture that is not there; or a ``language`` that the jail does not
        run here, whatever the completion is. A language that only a fence names, and that does not run here, earns 0.0.
        """
        named = language_of_row(language_of_all.name, language)
        if reason := skip_reason(named):
            return Score(None, reason=reason)
        if not tests and inputs is None:
            return Score(None, reason="the row has no tests: neither 'tests' nor 'inputs' and 'outputs'")
        if tests and (reason := why_no_tests(tests)):
            return Score(None, reason=reason)
        if tests and check_timeout_s is not None:
            return Score(None, reason=time.refusal())
        try:
            matching = setting.of_row(match, tolerance, checker, interactor, checker_language)
        except CheckError as error:
            return Score(None, reason=f"the row's tests cannot be run: {error}")
        chosen = language_that_counts(named, completion, PYTHON if tests else None)
        row = _Row(
            language=chosen,
            is_named=named is not None,
            entry_point=entry_point.replace("()", "") if entry_point else None,
            tests=join_asserts(tests) if tests and chosen == PYTHON else tests or None,
            setup=setup or "",
            context=declaration or (_prefix(prompt, chosen) if prefix is None else prefix),
            inputs=dates_as_text(inputs),
            outputs=dates_as_text(outputs or []),
            matching=matching,
        )
        code = row.code_of(completion, prompt, sandbox)
        if isinstance(code, Score):
            return code
        return with_fence_hint(row.score(code, sandbox, time, all_or_nothing=all_or_nothing), completion)

    return code_tests


@adjustable
def code_runs(*, language: str | None = None) -> Reward[..., Score]:
    """Return ``code_runs`` with this setting.

    Args:
        language: The language of all rows; ``None`` where the rows name it, or the completions' fences do.
    """
    language_of_all = LanguageSetting(language)

    @reward(timeout_s=DEADLINE_S, score_range=(0, 1))
    def code_runs(completion: str, sandbox: Sandbox, language: str | None = None, prompt: str = "") -> Score:
        """1.0 if the completion's code runs as a program to exit code 0, without input, otherwise 0.0.

        0.0 also where the completion holds no code, or code of another language (see ``code_tests``). ``None`` only
        where the row's ``language`` is one that the jail does not run here.
        """

        def run(code: str, language: str) -> Score:
            return _outcome(sandbox.run(code, limits=LIMITS, language=language), language)

        return _score_code(completion, sandbox, language_of_row(language_of_all.name, language), prompt, run)

    return code_runs


@adjustable
def code_compiles(*, language: str | None = None) -> Reward[..., Score]:
    """Return ``code_compiles`` with this setting.

    Args:
        language: The language of all rows; ``None`` where the rows name it, or the completions' fences do.
    """
    language_of_all = LanguageSetting(language)

    @reward(timeout_s=DEADLINE_S, score_range=(0, 1))
    def code_compiles(completion: str, sandbox: Sandbox, language: str | None = None, prompt: str = "") -> Score:
        """1.0 if the completion's code, a program or functions alone, compiles, otherwise 0.0 with the error; not run.

        0.0 also where the completion holds no code, or code of another language (see ``code_tests``). ``None`` only
        where the row's ``language`` is one that the jail does not run here.
        """

        def compiles(code: str, language: str) -> Score:
            return _compile_in_jail(code, sandbox, language)

        return _score_code(completion, sandbox, language_of_row(language_of_all.name, language), prompt, compiles)

    return code_compiles


def _score_code(
    completion: str, sandbox: Sandbox, named: str | None, prompt: str, score: Callable[[str, str], Score]
) -> Score:
    """Return the score of the code in a completion; 0.0 where it has none, ``None`` where the row wants none."""
    if reason := skip_reason(named):
        return Score(None, reason=reason)
    language = language_that_counts(named, completion)
    code = _code_of(completion, prompt, sandbox, language)
    if isinstance(code, Score):
        return code
    try:
        return score(code, language)
    except LanguageUnavailableError as error:
        return Score(0.0 if named is None else None, reason=str(error))


def _code_of(
    completion: str,
    prompt: str,
    sandbox: Sandbox,
    language: str,
    entry_point: str | None = None,
    tests: str = "",
    context: str = "",
) -> str | Score:
    """Return the code of a completion that counts; 0.0 with the reason where it has none in the language."""
    if language != PYTHON:
        code = code_in_language(completion, language, entry_point, context)
        return Score(0.0, reason=no_code_reason(completion, language)) if code is None else code
    code = _program(_blocks(completion, prompt, "" if entry_point else context), sandbox, entry_point, tests, context)
    if code is None:
        return Score(0.0, reason=no_code_reason(completion))
    reason = _other_language(code, sandbox)
    return Score(0.0, reason=reason) if reason else code


def _compile_in_jail(code: str, sandbox: Sandbox, language: str) -> Score:
    """Return whether code compiles; not asked in this process, for hostile source can crash the compiler."""
    if language != PYTHON:
        built = sandbox.build(code, language, limits=LIMITS, needs_main=False)
        return judged_by(Score(1.0), language, ()) if isinstance(built, Artefact) else _outcome(built, language)
    execution = sandbox.call(_COMPILE, "compiles", [[code]], limits=LIMITS)
    if execution.status == "ok" and execution.value and not execution.value[0].ok:
        return Score(0.0, reason=execution.value[0].error)
    return _outcome(execution)


def _outcome(execution: ExecutionResult, language: str = PYTHON) -> Score:
    if execution.status == "infrastructure":
        raise InfrastructureError(f"the jail failed: {execution.error}")
    is_ok = execution.status == "ok"
    score = Score(1.0) if is_ok else Score(0.0, reason=f"{execution.status}: {execution.error}")
    return judged_by(score, language, [execution])
