"""Reads a Dockerfile for the files that a task starts with, and for what only its image has."""

from __future__ import annotations

import fnmatch
import itertools
import json
import posixpath
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from rewardkit.harbor.shell_text import ShellCommand, shell_commands

_JOINED = re.compile(r"\\\s*\n(?:\s*#.*\n)*")
_PLAIN_BASE = re.compile(r"(^|[/-])(python|ubuntu|debian|alpine|buildpack-deps|scratch)([-:@]|$)")
_FLAGS = re.compile(r"^(?:--\S+\s+)+")
_SILENT = frozenset(
    {"ARG", "CMD", "ENTRYPOINT", "EXPOSE", "LABEL", "MAINTAINER", "SHELL", "STOPSIGNAL", "USER", "HEALTHCHECK"}
)
_HARMLESS = frozenset(
    {
        "set",
        "cd",
        "mkdir",
        "chmod",
        "chown",
        "rm",
        "touch",
        "export",
        "true",
        ":",
        "echo",
        "useradd",
        "adduser",
        "groupadd",
    }
)
_HARMLESS_PACKAGES = re.compile(
    r"(tmux|asciinema|curl|wget|git|vim|nano|less|sudo|jq|procps|ca-certificates|bash|python3?[\w.-]*|"
    r"build-essential|gcc|make|unzip|zip|tree|locales|tzdata|patch|coreutils)(=.*)?"
)
_TOOL = re.compile(r"^--from=\S*/uv[:@]")  # what runs the tests, and what the task does not need
_INSTALLERS = frozenset({"apt-get", "apt", "apk"})


@dataclass(slots=True)
class TaskImage:
    """What a Dockerfile says.

    Attributes:
        workdir: The folder in which the agent works.
        files: The files that it copies there, by name relative to ``workdir``.
        packages: Python distributions that it installs.
        needs: What only the image has, and why.
    """

    workdir: str = "/app"
    files: dict[str, bytes] = field(default_factory=dict)
    packages: list[str] = field(default_factory=list)
    needs: list[str] = field(default_factory=list)


def read_image(dockerfile: str, context: Mapping[str, bytes], workdir: str | None = None) -> TaskImage:
    """Return what the agent finds when it begins.

    Args:
        dockerfile: The Dockerfile's text.
        context: The files beside it, by relative name.
        workdir: Where the agent works, if ``task.toml`` says so.
    """
    instructions = list(_instructions(dockerfile))
    folders = [text for name, text in instructions if name == "WORKDIR"]
    image = TaskImage(workdir or (posixpath.join("/", *folders) if folders else "/app"))
    here = "/"
    for name, text in instructions:
        if name == "WORKDIR":
            here = posixpath.normpath(posixpath.join(here, text))
        elif name in ("COPY", "ADD"):
            _copy(image, text, here, context)
        elif name == "RUN":
            image.needs += _run_needs(text, image)
        elif name == "FROM" and not _PLAIN_BASE.search(base := _FLAGS.sub("", text).partition(" ")[0]):
            image.needs.append(f"the image {base!r:.80}, from which it starts")
        elif name not in {*_SILENT, "FROM", "ENV"}:
            image.needs.append(f"an image, for the Dockerfile has {name}")
    return image


def pip_packages(command: ShellCommand) -> list[str] | None:
    """Return the requirements that a command of pip or uv installs; ``None`` for another command."""
    tokens = list(command.arguments)
    if command.name.startswith("python") and tokens[1:3] == ["-m", "pip"]:
        tokens = tokens[2:]
    if command.name == "uv" and tokens[1:2] == ["pip"]:
        tokens = tokens[1:]
    if tokens[1:2] != ["install"] or not re.fullmatch(r"pip3?(\.\d+)?", tokens[0].rpartition("/")[2]):
        return None
    rest = iter(tokens[2:])
    packages = []
    for word in rest:
        if word in ("-r", "--requirement", "-c", "--constraint", "-i", "--index-url", "--extra-index-url", "-t"):
            next(rest, None)
        elif not word.startswith(("-", ".")):
            packages.append(word)
    return packages


def _instructions(dockerfile: str) -> Iterator[tuple[str, str]]:
    for line in _JOINED.sub(" ", dockerfile).split("\n"):
        name, _, text = line.strip().partition(" ")
        if name and not name.startswith("#"):
            yield name.upper(), text.strip()


def _copy(image: TaskImage, text: str, here: str, context: Mapping[str, bytes]) -> None:
    try:
        arguments = [str(word) for word in json.loads(text)] if text.startswith("[") else text.split()
    except ValueError:
        image.needs.append(f"an image, for the Dockerfile has what cannot be read: COPY {text:.100}")
        return
    if any(word.startswith("--from") for word in arguments):
        if _TOOL.search(text):
            return
        image.needs.append(f"an image that is built in stages: COPY {text:.100}")
        return
    *sources, target = [word for word in arguments if not word.startswith("--")] or [""]
    is_folder = target.endswith("/") or target in (".", "./") or len(sources) > 1
    target_path = posixpath.normpath(posixpath.join(here, target))
    for source in sources:
        copied = _copied(source, target_path, context, is_folder=is_folder)
        outside = [name for name in copied if not _is_below(name, image.workdir)]
        if outside or not copied:
            missing = f"{outside[0]} outside of {image.workdir}" if outside else f"{source!r}, which is not beside it"
            image.needs.append(f"an image, for the Dockerfile copies {missing}")
        image.files |= {
            posixpath.relpath(name, image.workdir): content
            for name, content in copied.items()
            if _is_below(name, image.workdir)
        }


def _copied(source: str, target_path: str, context: Mapping[str, bytes], *, is_folder: bool) -> dict[str, bytes]:
    """Return the files that a source brings, by their names in the image."""
    plain = posixpath.normpath(source.removeprefix("/"))
    if plain in context:
        return {posixpath.join(target_path, posixpath.basename(plain)) if is_folder else target_path: context[plain]}
    below = {
        name: content
        for name, content in context.items()
        if plain == "." or name.startswith(f"{plain}/") or fnmatch.fnmatchcase(name, plain)
    }
    start = "" if plain == "." else plain
    return {
        posixpath.join(
            target_path, name[len(start) :].lstrip("/") if name.startswith(start) else posixpath.basename(name)
        ): content
        for name, content in below.items()
        if plain != "." or name not in ("Dockerfile", ".dockerignore", "docker-compose.yaml")
    }


def _is_below(name: str, folder: str) -> bool:
    return name.startswith(folder.rstrip("/") + "/")


def _run_needs(text: str, image: TaskImage) -> list[str]:
    """Return what the commands of a RUN make that only the image has; note the packages that they install."""
    text = _FLAGS.sub("", text)
    if text.startswith("["):
        return [f"an image, for the Dockerfile runs {text:.100}"]
    try:
        commands = shell_commands(text)
    except ValueError as wrong:
        return [f"an image, for the Dockerfile runs what cannot be read: {wrong}"]
    needs = []
    for command in commands:
        packages = pip_packages(command)
        if packages is not None:
            image.packages += packages
            needs += _listed_packages(command, image)
        elif command.name in _INSTALLERS:
            needs += [f"{name} of the image's system" for name in _system_packages(command)]
        elif command.name and command.name not in _HARMLESS:
            needs.append(f"an image, for the Dockerfile runs {' '.join(command.arguments)!r:.100}")
    return needs


def _listed_packages(command: ShellCommand, image: TaskImage) -> list[str]:
    """Note the packages of the lists that a command of pip reads; return what it needs beside them."""
    needs = []
    for option, name in itertools.pairwise(command.arguments):
        if option in ("-r", "--requirement"):
            text = image.files.get(posixpath.normpath(name.removeprefix(image.workdir).lstrip("/")))
            if text is None:
                needs.append(f"an image, for the Dockerfile installs what {name!r:.60} lists")
                continue
            lines = (line.split("#")[0].strip() for line in text.decode("utf-8", "replace").splitlines())
            image.packages += [line for line in lines if line and not line.startswith("-")]
    return needs


def _system_packages(command: ShellCommand) -> list[str]:
    """Return the packages of the system that a command installs and that grading may need."""
    if not {"install", "add"} & set(command.arguments):
        return []
    names = [word for word in command.arguments[1:] if not word.startswith("-") and word not in ("install", "add")]
    return [name for name in names if not _HARMLESS_PACKAGES.fullmatch(name)]
