"""Reads the commands of a simple shell script, of which nothing is run."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from typing import NamedTuple

_HEREDOC = re.compile(r"<<-?\s*(['\"]?)(\w+)\1")
_JOINED = re.compile(r"\\\n\s*")
_ENDS = frozenset({"&&", "||", ";", "|", "&", ";;"})
_KEYWORDS = frozenset(
    {"if", "then", "else", "elif", "fi", "do", "done", "while", "!", "{", "}", "(", ")", "time", "exec"}
)
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*\+?=")
_REDIRECTION = re.compile(r"&?(>>?|<)&?")
_DESCRIPTOR = re.compile(r"(?<=\s)[012](?=[<>])")


class ShellCommand(NamedTuple):
    """A command of a script.

    Attributes:
        arguments: Its name and arguments, without redirections and assignments before it; ``()`` for these alone.
        line: The line in which it stands, as written.
    """

    arguments: tuple[str, ...]
    line: str

    @property
    def name(self) -> str:
        """The program's name without its folder; ``""`` for an assignment alone."""
        return self.arguments[0].rpartition("/")[2] if self.arguments else ""


def shell_commands(script: str) -> list[ShellCommand]:
    """Return the commands of a script in order: of pipes and lists each, conditions too; heredocs' texts are left out.

    Raises:
        ValueError: A line cannot be split into arguments.
    """
    commands = []
    for line in _lines(script):
        try:
            tokens = _tokens(line)
        except ValueError as wrong:
            raise ValueError(f"{wrong}: {line.strip()!r:.200}") from None
        commands += [ShellCommand(arguments, line.strip()) for arguments in _split(tokens)]
    return commands


def _lines(script: str) -> Iterator[str]:
    """Yield the script's lines, those that continue joined, without heredocs' texts."""
    end = ""
    waiting = ""
    for line in _JOINED.sub(" ", script).split("\n"):
        if end:
            end = "" if line.strip() == end else end
            continue
        waiting += line
        if waiting.lstrip().startswith("#"):
            waiting = ""
            continue
        if heredoc := _HEREDOC.search(waiting):
            end = heredoc[2]
            waiting = waiting[: heredoc.start()] + waiting[heredoc.end() :]
        if _is_open(waiting):
            waiting += "\n"
            continue
        if waiting.strip():
            yield waiting
        waiting = ""
    if waiting.strip():
        yield waiting


def _is_open(line: str) -> bool:
    """Return whether a quotation goes on in the next line."""
    try:
        _tokens(line)
    except ValueError as wrong:
        return "quotation" in str(wrong)
    return False


def _tokens(line: str) -> list[str]:
    lexer = shlex.shlex(_DESCRIPTOR.sub("", line), posix=True, punctuation_chars="();<>|&")
    lexer.commenters = ""
    lexer.whitespace_split = True
    tokens = []
    for token in lexer:
        if token.startswith("#"):
            break
        tokens.append(token)
    return tokens


def _split(tokens: list[str]) -> Iterator[tuple[str, ...]]:
    arguments: list[str] = []
    skips = False
    for token in [*tokens, ";"]:
        if token in _ENDS or token in ("(", ")"):
            if arguments:
                yield _command(arguments)
            arguments = []
        elif skips:
            skips = False
        elif _REDIRECTION.fullmatch(token):
            skips = True
        elif token in _KEYWORDS and not arguments:
            continue
        else:
            arguments.append(token)


def _command(arguments: list[str]) -> tuple[str, ...]:
    while arguments and _ASSIGNMENT.match(arguments[0]):
        arguments = arguments[1:]
    return tuple(arguments)
