"""The languages of the jail besides Python, by the names that rows and fences give them, and whether they run here."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from sandbox.errors import LanguageUnavailableError
from sandbox.languages import (
    bash,
    c,
    cpp,
    go,
    java,
    javascript,
    lua,
    perl,
    php,
    ruby,
    rust,
    typescript,
)
from sandbox.languages.language import Language
from sandbox.languages.names import JAIL_LANGUAGES, PYTHON, language_name
from sandbox.languages.toolchains import MissingToolchain, Toolchain, find_toolchain, tools_stamp

_MODULES = (bash, c, cpp, go, java, javascript, lua, perl, php, ruby, rust, typescript)
LANGUAGES: Mapping[str, Language] = MappingProxyType({module.LANGUAGE.name: module.LANGUAGE for module in _MODULES})
"""Every language but Python, by name."""
MOST_SOURCE_BYTES = 1 << 20
"""Bytes of a program's source; compilers are slow with more, and no program that a model writes has as many."""
_MARK = "\ufeff"  # with which some editors begin a file


class SourceError(ValueError):
    """A compiler is not given this source: it is too large, or no text."""


def language_of(text: str) -> Language:
    """Return the language that a name, the mark of a fence or a row's column stands for.

    Raises:
        LanguageUnavailableError: Nobody knows it; the message names those that are known.
    """
    name = language_name(text)
    if name not in LANGUAGES:
        names = ", ".join(sorted({PYTHON, *LANGUAGES}))
        raise LanguageUnavailableError(f"the jail does not know the language {text!r}, but {names}", name)
    return LANGUAGES[name]


def why_not_run(text: str) -> str | None:
    """Return why the jail of this machine does not run a language, and ``None`` where it does.

    Who asks whether the jail runs a language asks here.
    """
    name = language_name(text)
    if name not in JAIL_LANGUAGES:
        return f"the language is {text!r}, and the jail runs {', '.join(sorted(JAIL_LANGUAGES))} only"
    toolchain = None if name == PYTHON else find_toolchain(LANGUAGES[name])
    return str(toolchain) if isinstance(toolchain, MissingToolchain) else None


def toolchain_of(text: str) -> Toolchain | None:
    """Return the tools that run a language here; ``None`` for Python, and for a language that does not run here."""
    name = language_name(text)
    toolchain = find_toolchain(LANGUAGES[name]) if name in LANGUAGES else None
    return toolchain if isinstance(toolchain, Toolchain) else None


def machine_stamp() -> str:
    """Return a digest of the files of every language's tools on this machine, of which none is started."""
    return tools_stamp(LANGUAGES.values())


def prepared_source(language: Language, source: str) -> str:
    """Return a source as its compiler is given it: its lines end as Linux ends them, and no mark stands before them.

    Raises:
        SourceError: It is larger than :data:`MOST_SOURCE_BYTES`, or has characters that UTF-8 does not have.
    """
    try:
        size = len(source.encode())
    except UnicodeEncodeError as fault:
        raise SourceError(f"the source is no text: it has half a character at {fault.start}") from None
    if size > MOST_SOURCE_BYTES:
        raise SourceError(f"the source has {size / 1e6:.1f} MB, and at most {MOST_SOURCE_BYTES / 1e6:.1f} MB are run")
    text = source.removeprefix(_MARK).replace("\r\n", "\n")
    return language.prepare(text) if language.prepare else text
