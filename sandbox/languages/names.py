"""The names of programming languages, as data sets, judges and fences write them, and which of them the jail runs."""

from __future__ import annotations

import re

PYTHON = "python"
JAIL_LANGUAGES = frozenset(
    {PYTHON, "bash", "c", "cpp", "go", "java", "javascript", "lua", "perl", "php", "ruby", "rust", "typescript"}
)
"""The languages that the jail knows; :func:`~sandbox.languages.catalogue.why_not_run` says whether one runs here."""

_ALIASES = {
    PYTHON: "py pypy cpython ipython",
    "bash": "sh shell zsh",
    "c": "gcc clang",
    "cpp": "c++ cc cxx g++ clang++ msvc++",
    "csharp": "c# cs dotnet mono",
    "dart": "",
    "elixir": "ex",
    "fsharp": "f# fs",
    "go": "golang",
    "haskell": "hs ghc",
    "java": "openjdk",
    "javascript": "js node nodejs node.js ecmascript",
    "julia": "jl",
    "kotlin": "kt",
    "lua": "",
    "ocaml": "ml",
    "pascal": "delphi fpc freepascal",
    "perl": "pl",
    "php": "",
    "python2": "py2 pypy2",
    "r": "",
    "ruby": "rb",
    "rust": "rs",
    "scala": "",
    "sql": "",
    "swift": "",
    "typescript": "ts",
    "yaml": "yml",
}
_BY_NAME = {name: language for language, names in _ALIASES.items() for name in (language, *names.split())}
_MAKER = re.compile(r"^(?:gnu|microsoft|ms|visual)[\s-]+")
_VERSION = re.compile(r"[\s._-]*v?\d[\d.\s_-]*$")


def language_name(text: str) -> str:
    """Return a language's name for many ways of writing it, such as ``"cpp"`` for ``"GNU C++17 (64)"``.

    Versions and what stands in brackets do not matter, but for Python 2, which is ``"python2"``. What is not known
    is returned in lower case.
    """
    if text in _BY_NAME:  # nearly always, and asked for each program
        return _BY_NAME[text]
    name = _MAKER.sub("", re.sub(r"\([^()]*\)", "", text.casefold()).strip())
    if name in _BY_NAME:
        return _BY_NAME[name]
    stem = _VERSION.sub("", name)
    language = _BY_NAME.get(stem, stem)
    is_old = language == PYTHON and name[len(stem) :].lstrip(" ._-v").startswith("2")
    return "python2" if is_old else language
