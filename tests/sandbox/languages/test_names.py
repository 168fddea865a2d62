"""Names of languages: the many ways of writing one lead to its name."""

from __future__ import annotations

import pytest

from sandbox import JAIL_LANGUAGES, LANGUAGES, language_name

NAMES = {
    "python": ["python", "Python", "py", "PY3", "python3", "Python 3", "PYTHON3", "python3.11", "PyPy 3-64", "cpython"],
    "python2": ["Python 2", "python2.7", "PyPy2", "py2", "PyPy 2-64"],
    "cpp": ["cpp", "C++", "c++17", "GNU C++17 (64)", "C++17 (GCC 7-32)", "g++", "CPP", "MS C++ 2017"],
    "c": ["C", "C11", "GNU C11", "gcc"],
    "csharp": ["C#", "c# 8", "cs"],
    "javascript": ["js", "JavaScript", "Node.js", "JavaScript (V8)", "node"],
    "java": ["Java 8", "java 21"],
    "go": ["golang", "Go 1.21"],
    "": ["", " "],
    "klingon": ["Klingon"],
}


@pytest.mark.parametrize(("name", "text"), [(name, text) for name, texts in NAMES.items() for text in texts])
def test_a_language_has_one_name(name: str, text: str) -> None:
    assert name == language_name(text)


def test_the_jail_knows_python_and_the_languages_of_the_catalogue() -> None:
    assert {"python", *LANGUAGES} == JAIL_LANGUAGES
