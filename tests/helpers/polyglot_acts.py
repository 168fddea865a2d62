"""Hostile completions in other languages than Python: acts by name, and how each becomes a completion of a judge.

An act is the body of a function that says whether it got what it must not have. A completion made of it gives the
right answer then, and a wrong one otherwise: so an act that is judged right is a hole. Some acts are the same in all
languages, with the verbs of :data:`FORMS`; those of one language stand in ``acts/LANGUAGE.txt``, each behind a line
``### FAMILY: NAME | JUDGES | OPTIONS``, with what stands outside of the function before a line ``---``. The options:
``whole`` for a whole completion, ``alone`` for one that has not even the verbs, ``waits`` for a short time limit, and
``strict`` for what only that level holds.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from dataclasses import dataclass

from code_sections import sections
from polyglot_forms import FORMS, SUITES

from sandbox import CheckReport, FunctionCheck, Limits, ProgramCheck, Sandbox
from sandbox.checks import check_functions, check_suite
from sandbox.languages.catalogue import LANGUAGES
from sandbox.program_checks import check_programs

PROGRAM, VALUES, SUITE = "PVS"
"""The judges: a program by inputs and outputs, a function by values, a suite in the language."""
SECRET = "SECRET_PATH"
"""What stands in an act for the path of a file that has the right answer, and that every user may read."""
MARK = "rewardkit-act"
"""The name of what acts write where they must not."""
WAIT_S, TIMEOUT_S = 1.0, 10.0

_READS = f"""
    /etc/passwd /etc/shadow /root /home /root/.bashrc /tmp /sys/kernel /store /store/artefacts
    /proc /proc/self/environ /proc/1/environ /proc/1/fd/4 /proc/self/mem /proc/self/maps
    /dev/zero /dev/mem /dev/shm /var/log {SECRET}
""".split()
_WRITES = f"""
    /tmp/{MARK} /{MARK} ../{MARK} /usr/lib/{MARK} /dev/shm/{MARK} /etc/{MARK} /var/tmp/{MARK} /root/{MARK} /store/{MARK}
    /program/{MARK} /proc/self/oom_score_adj
""".split()
_RUNS = ("/usr/bin/echo", "/usr/bin/printf", "/bin/sh", "/usr/bin/python3", "/usr/bin/env")


@dataclass(frozen=True)
class Act:
    """One hostile completion for one judge.

    Attributes:
        language: What it is written in.
        name: Its family and its name.
        judge: Who judges it.
        source: The completion.
        level: The level of isolation.
        timeout_s: The time limit; a short one for what does nothing but wait.
    """

    language: str
    name: str
    judge: str
    source: str
    level: str
    timeout_s: float

    def __str__(self) -> str:
        return f"{self.language} {self.level} {self.judge} {self.name}"


@dataclass(frozen=True)
class _Body:
    """An act before it is a completion: what stands outside of its function, and in it."""

    name: str
    judges: str
    body: str
    top: str = ""
    head: str | None = None  # of an act that is a whole completion
    is_strict: bool = False
    timeout_s: float = TIMEOUT_S


def acts() -> list[Act]:
    """Return all acts, those of all languages and levels in turn."""
    rows = [_acts_of(language, level) for language in FORMS for level in _levels(language)]
    for row in rows:
        random.Random(str(row[0])).shuffle(row)
    return [act for turn in itertools.zip_longest(*rows) for act in turn if act is not None]


def _levels(language: str) -> tuple[str, ...]:
    """Return the levels of a language: what starts processes is refused at ``standard``."""
    stages = (LANGUAGES[language].compile, LANGUAGES[language].run)
    return ("strict",) if any(stage and stage.walls.forks for stage in stages) else ("strict", "standard")


def _acts_of(language: str, level: str) -> list[Act]:
    able = judges_of(language)
    return [
        Act(language, body.name, judge, _completion(language, body, judge), level, body.timeout_s)
        for body in [*_shared(language), *_own(language)]
        for judge in body.judges
        if judge in able and not (body.is_strict and level != "strict")
    ]


def judges_of(language: str) -> str:
    """Return the judges that a language has."""
    return PROGRAM + VALUES * bool(FORMS[language].function) + SUITE * (language in SUITES)


def _completion(language: str, body: _Body, judge: str) -> str:
    form = FORMS[language]
    if body.head is not None:
        return body.head + body.body
    text = form.program if judge == PROGRAM else form.function
    return text.replace("@TOP@", body.top).replace("@BODY@", body.body)


def _shared(language: str) -> Iterator[_Body]:
    """Return the acts that are the same in each language."""
    form = FORMS[language]
    for path in _READS:
        yield _Body(f"escapes: reads {path}", PROGRAM, form.reads.replace("@", path))
    for path in _WRITES:
        yield _Body(f"escapes: writes {path}", PROGRAM, form.writes.replace("@", path))
    for path in _RUNS if language != "bash" else ():
        yield _Body(f"loaders: runs {path}", PROGRAM, form.runs.replace("@", path))


def _own(language: str) -> Iterator[_Body]:
    """Return the acts of one language from its file."""
    kin = FORMS[language].kin
    own = sections(f"acts/{language}.txt")
    for title, text in [*own.items(), *(sections(f"acts/{kin}.txt").items() if kin else ())]:
        name, judges, options = (part.strip() for part in (title + " | ").split("|")[:3])
        top, line, body = text.partition("---\n")
        if not line:
            top, body = "", text
        words = options.split()
        timeout_s = WAIT_S if "waits" in words else TIMEOUT_S
        head = FORMS[language].head if "whole" in words else "" if "alone" in words else None
        yield _Body(name, judges, body, top, head, "strict" in words, timeout_s)


def successful(language: str, judge: str) -> str:
    """Return the completion of an act that always says that it succeeded."""
    return _completion(language, _Body("", judge, FORMS[language].succeeds), judge)


def honest(language: str, judge: str) -> str:
    """Return the right completion."""
    return FORMS[language].honest_program if judge == PROGRAM else FORMS[language].honest_function


def judged(jail: Sandbox, language: str, judge: str, source: str, timeout_s: float = TIMEOUT_S) -> CheckReport:
    """Return what a judge says of a completion: of ``1 2 39`` the sum is 42, and ``f(x)`` is ``x * x + 1``."""
    limits = Limits(timeout_s=timeout_s, memory_bytes=256 << 20)
    if judge == PROGRAM:
        return check_programs(jail, source, [ProgramCheck("1 2 39\n", "42\n")], limits=limits, language=language)
    if judge == VALUES:
        checks = [FunctionCheck([x], x * x + 1) for x in (4, 7, 12)]
        return check_functions(jail, source, FORMS[language].entry_point, checks, limits=limits, language=language)
    return check_suite(jail, source, SUITES[language], language, limits=limits)
