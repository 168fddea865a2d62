"""The catalogue: every language by every name, and sources as compilers are given them."""

from __future__ import annotations

import pytest

from sandbox.errors import LanguageUnavailableError
from sandbox.languages.catalogue import (
    LANGUAGES,
    MOST_SOURCE_BYTES,
    SourceError,
    language_of,
    prepared_source,
    why_not_run,
)
from sandbox.languages.language import Stage
from sandbox.languages.names import language_name


@pytest.mark.parametrize(
    ("text", "name"),
    [("C++", "cpp"), ("GNU C++17 (64)", "cpp"), ("js", "javascript"), ("Node.js", "javascript"), ("ts", "typescript"),
     ("golang", "go"), ("Java 8", "java"), ("rs", "rust"), ("sh", "bash"), ("rb", "ruby"), ("PHP", "php"),
     ("lua", "lua"), ("pl", "perl"), ("C11", "c")],
)  # fmt: skip
def test_a_language_is_found_by_the_names_that_people_write(text: str, name: str) -> None:
    assert name == language_of(text).name


def test_a_language_that_nobody_knows_is_refused_with_those_that_are_known() -> None:
    with pytest.raises(LanguageUnavailableError, match=r"the language 'Klingon', but bash, c, .*, python") as info:
        language_of("Klingon")
    assert "klingon" == info.value.language
    assert "Klingon" in str(why_not_run("Klingon"))


def test_python_runs() -> None:
    assert why_not_run("Python 3") is None


@pytest.mark.parametrize("name", LANGUAGES)
def test_a_language_says_what_it_must(name: str) -> None:
    """Its name is the one that all spellings lead to, each tool can be had, and processes are said to be started."""
    language = LANGUAGES[name]
    assert name == language_name(name) == language.name
    assert all(tool.install for tool in language.tools)
    kit_stage = language.kit and language.kit.stage
    for stage in (language.compile, kit_stage):
        assert stage is None or (stage.takes and stage.walls.most_memory and stage.walls.open_files)
    assert isinstance(language.run, Stage)
    assert () == language.run.takes


JAVA = {
    "Main stays": ("public class Main { public static void main(String[] a) {} }", None),
    "another name": (
        "public class Foo { public static void main(String[] a) {} }",
        "       class Foo { public static void main(String[] a) {} }\n"
        "class Main { public static void main(String[] args) throws Throwable { Foo.main(args); } }\n",
    ),
    "a package": ("package a.b;\nclass Main { static void main(String[] a) {} }", "\x20" * 12 + "\nclass Main "),
    "two mains": (
        "class A { public static void main(String[] a) {} }\npublic class B { public static void main(String[] a) {} }",
        "B.main(args);",
    ),
    "a Main without main": (
        "class Main { int x; }\nclass B { public static void main(String[] a) {} }",
        "class Main { public static void main(String[] args) throws Throwable { B.main(args); } int x; }",
    ),
    "words in texts": (
        "// public class X {\nclass Main { String s = \"public class Y { }\"; /* } */ char c = '}';\n"
        "public static void main(String[] a) {} }",
        None,
    ),
    "a text block": (
        'class Main { String s = """\n } public class Z { " \n"""; public static void main(String[] a) {} }',
        None,
    ),
    "inner mains do not count": (
        "class A { static class B { public static void main(String[] a) {} } }",
        None,
    ),
    "no class": ("int x;", None),
    "an open comment": ("/* class A {", None),
}


@pytest.mark.parametrize(("source", "part"), JAVA.values(), ids=list(JAVA))
def test_a_java_program_has_the_main_class_main(source: str, part: str | None) -> None:
    """With ``None`` the source stays as it is; in any case every line keeps its number."""
    prepared = prepared_source(LANGUAGES["java"], source)
    assert (part is None and prepared == source) or (part is not None and part in prepared), prepared
    assert prepared.count("\n") - source.count("\n") in (0, 2)  # a class behind the source has two


OTHERS = {
    "go": [("func main() {}", "package main; func main() {}"), ("// a\npackage x\n", "// a\npackage main\n")],
    "php": [("echo 1;", "<?php echo 1;"), ("<?PHP echo 1;", "<?PHP echo 1;"), ("<?= 1 ?>", "<?= 1 ?>")],
    "c": [("int x;\r\n", "int x;\n"), ("\ufeffint x;", "int x;")],
}


@pytest.mark.parametrize(
    ("name", "source", "expected"), [(name, *pair) for name, pairs in OTHERS.items() for pair in pairs]
)
def test_a_source_is_made_ready(name: str, source: str, expected: str) -> None:
    assert expected == prepared_source(LANGUAGES[name], source)


@pytest.mark.parametrize("name", LANGUAGES)
def test_a_source_that_is_too_large_is_refused_with_its_size(name: str) -> None:
    with pytest.raises(SourceError, match=r"the source has 5\.0 MB, and at most 1\.0 MB are run"):
        prepared_source(LANGUAGES[name], "é" * 2_500_000)
    assert prepared_source(LANGUAGES[name], " " * MOST_SOURCE_BYTES)


def test_a_source_that_is_no_text_is_refused() -> None:
    with pytest.raises(SourceError, match="half a character at 4"):
        prepared_source(LANGUAGES["c"], "int \ud800;")
