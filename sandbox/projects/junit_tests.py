"""The tests of a folder of Java, compiled and run with stand-ins of our own for JUnit 4 and 5.

JUnit itself is no part of a JDK. What most tests use of it is here: annotations, rows of parameters, assertions and
assumptions. Other libraries than those of the JDK a folder has to bring as sources.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from sandbox.languages.java import compiled
from sandbox.languages.language import Program
from sandbox.projects.project import Project, ProjectError, placed

_PACKAGE = re.compile(r"^\s*package\s+([\w.]+)\s*;", re.MULTILINE)
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_STAND_INS = "rewardkit-junit"
_FIVE = "org.junit.jupiter.api"
_MARKS = {  # annotations by package, with their members
    _FIVE: {
        "Test": "", "BeforeEach": "", "AfterEach": "", "BeforeAll": "", "AfterAll": "", "Nested": "",
        "Disabled": 'String value() default "";', "DisplayName": "String value();", "Tag": "String value();",
        "Order": "int value();", "Timeout": "long value(); java.util.concurrent.TimeUnit unit() default "
        "java.util.concurrent.TimeUnit.SECONDS;",
    },
    "org.junit.jupiter.params": {"ParameterizedTest": 'String name() default "";'},
    "org.junit.jupiter.params.provider": {
        "CsvSource": "String[] value(); char delimiter() default ',';",
        "MethodSource": "String[] value() default {};",
        "ValueSource": "int[] ints() default {}; long[] longs() default {}; double[] doubles() default {}; "
        "String[] strings() default {}; boolean[] booleans() default {}; char[] chars() default {};",
    },
    "org.junit": {
        "Before": "", "After": "", "BeforeClass": "", "AfterClass": "", "Ignore": 'String value() default "";',
        "Test": "Class<? extends Throwable> expected() default None.class; long timeout() default 0L; "
        "class None extends Throwable { private None() {} }",
    },
}  # fmt: skip
_ABORTED = "new org.junit.rewardkit.Checks.Aborted"
_ASSUMPTIONS = (
    f'public static void assumeTrue(boolean holds) {{ if (!holds) throw {_ABORTED}("an assumption does not hold"); }} '
    f'public static void assumeFalse(boolean holds) {{ if (holds) throw {_ABORTED}("an assumption does not hold"); }} '
    f"public static void assumeTrue(boolean holds, String message) {{ if (!holds) throw {_ABORTED}(message); }}"
)
_TYPES = {  # what else has no file of its own
    f"{_FIVE}.Assumptions": f"public class Assumptions {{ {_ASSUMPTIONS} }}",
    f"{_FIVE}.function.Executable": "public interface Executable { void execute() throws Throwable; }",
    f"{_FIVE}.function.ThrowingSupplier": "public interface ThrowingSupplier<T> { T get() throws Throwable; }",
    "org.junit.Assume": f"public class Assume {{ {_ASSUMPTIONS} }}",
    "org.junit.jupiter.params.provider.Arguments": "public interface Arguments { Object[] get(); "
    "static Arguments of(Object... values) { return () -> values; } "
    "static Arguments arguments(Object... values) { return () -> values; } }",
}
_TEXTS = {
    "org.junit.rewardkit": "Checks",
    _FIVE: "Assertions",
    "org.junit": "Assert",
    "": "RewardkitTests",
}


def junit_project(files: Mapping[str, bytes], modules: Sequence[str], mark: str) -> Project:
    """Return the program that runs the tests of classes, one after the other.

    Args:
        files: All files, by name.
        modules: Those that have tests, each of the class that it is named after.
        mark: What stands before each line on a test.

    Raises:
        ProjectError: No file has a class.
    """
    sources = {name: content for name, content in files.items() if name.endswith(".java")}
    classes = [argument for name in modules if name in sources for argument in (name, _class_of(name, sources[name]))]
    if not classes:
        raise ProjectError("the folder has no file of Java with tests")
    own = {
        name: content.decode("utf-8", "surrogateescape")
        for name, content in placed(sources).items()
        if not name.endswith(("/package-info.java", "/module-info.java"))
    }
    stage = compiled([*_stand_ins(), *own])
    program = Program({**_stand_ins(), **own}, compile=stage, entry="RewardkitTests")
    return Project("java", program, files, (mark, *classes))


def _class_of(name: str, content: bytes) -> str:
    """Return the full name of the class that a file is named after."""
    package = _PACKAGE.search(_COMMENT.sub(" ", content.decode("utf-8", "replace")))
    base = name.rpartition("/")[2].removesuffix(".java")
    return f"{package[1]}.{base}" if package else base


@functools.cache
def _stand_ins() -> dict[str, str]:
    """Return the sources that stand in for JUnit, and the runner."""
    texts = dict(_TYPES)
    for package, marks in _MARKS.items():
        for name, members in marks.items():
            runtime = "@java.lang.annotation.Retention(java.lang.annotation.RetentionPolicy.RUNTIME)"
            texts[f"{package}.{name}"] = f"{runtime} public @interface {name} {{ {members} }}"
    sources = {
        f"{_STAND_INS}/{name.replace('.', '/')}.java": f"package {name.rpartition('.')[0]};\n{text}\n"
        for name, text in texts.items()
    }
    for package, name in _TEXTS.items():
        text = (Path(__file__).with_name("junit") / f"{name}.java").read_text(encoding="utf-8")
        sources["/".join([_STAND_INS, *package.split("."), f"{name}.java"]).replace("//", "/")] = text
    return sources
