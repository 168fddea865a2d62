"""Reads ``tests/test.sh`` for which tests it runs with which runner, and for what else it does."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Collection
from dataclasses import dataclass, field

from rewardkit.harbor.image import pip_packages
from rewardkit.harbor.shell_text import ShellCommand, shell_commands

_SILENT = frozenset(
    {"set", "cd", "mkdir", "export", "source", ".", "echo", "printf", "exit", "true", "false", ":", "[", "[[", "test"}
    | {"apt-get", "apt", "apk", "curl", "sh", "rm", "tee", "cat", "python3-config", "trap", "local", "shift", "return"}
)
"""Commands that prepare a container or write down the reward."""
_CONDITIONS = frozenset({"[", "[[", "test"})
_ASKED = re.compile(r"\$\?|\$\{?(PWD|\w*(status|STATUS|code|CODE|rc|RC|exit|EXIT|result|RESULT|ret|RET)\w*)\b")
"""What conditions may ask for: how a command ended, or where the script runs."""
_REWARD = re.compile(r">>?\s*[\"']?\S*reward", re.IGNORECASE)
_REWARDS = frozenset({"0", "1", "0.0", "1.0"})
_SHOWING = re.compile(r"-[vqslx]+|-r\w+|--tb(=\w+)?|--(verbose|quiet|no-header|no-summary|color=\w+|durations=\d+)")
_WITH_VALUE = frozenset({"--ctrf", "--junitxml", "--junit-xml", "--json-report-file", "--rootdir", "--tb", "-o", "-c"})
_PASSED_ON = frozenset({"-p"})
_TOOLS = frozenset(
    {"pytest", "pytest-json-ctrf", "pytest-json-report", "pytest-timeout", "pip", "uv", "harbor-rewardkit"}
)
_SEPARATORS = re.compile(r"[=<>!~;\[@ ]")


@dataclass(slots=True)
class TestScript:
    """What a script runs.

    Attributes:
        targets: Files and folders of tests that it runs, relative to the folder of tests; ``""`` for all there.
        arguments: Arguments of pytest that load plugins.
        packages: Python distributions that it installs for the tests.
        criteria: Whether it runs Harbor's criteria.
        needs: What it does that is not done here.
    """

    __test__ = False  # no class of tests

    targets: list[str] = field(default_factory=list)
    arguments: list[str] = field(default_factory=list)
    packages: list[str] = field(default_factory=list)
    criteria: bool = False
    needs: list[str] = field(default_factory=list)


def read_test_script(text: str, workdir: str = "/app") -> TestScript:
    """Return what ``tests/test.sh`` runs."""
    script = TestScript()
    try:
        commands = shell_commands(text)
    except ValueError as wrong:
        script.needs.append(f"a shell, for tests/test.sh cannot be read: {wrong}")
        return script
    runs = 0
    here = workdir
    for command in commands:
        tokens = _without_runner(command, script)
        if command.name == "cd" and len(command.arguments) > 1:
            here = posixpath.normpath(posixpath.join(here, command.arguments[1]))
        elif tokens and tokens[0] == "pytest":
            runs += 1
            _read_pytest(tokens[1:], here, workdir, script)
        elif tokens and tokens[0] == "rewardkit":
            runs += 1
            script.criteria = True
        elif tokens and tokens[0] in _CONDITIONS and not _ASKED.search(" ".join(tokens)):
            script.needs.append(f"a container, for tests/test.sh looks whether {' '.join(tokens)!r:.100}")
        elif tokens and tokens[0] in ("echo", "printf") and _REWARD.search(command.line):
            if tokens[-1].strip() not in _REWARDS and not tokens[-1].startswith("$"):
                script.needs.append(f"a container, for tests/test.sh writes the reward {tokens[-1]!r:.40}")
        elif tokens and tokens[0] not in _SILENT:
            script.needs.append(f"a container, for tests/test.sh runs {' '.join(tokens)!r:.100}")
    if runs > 1:
        script.needs.append("a container, for tests/test.sh runs tests more than once")
    if not runs and not script.needs:
        script.needs.append("a container, for tests/test.sh runs neither pytest nor Harbor's criteria")
    return script


def plain_packages(requirements: Collection[str]) -> tuple[str, ...]:
    """Return the names of distributions, without versions and without what runs tests."""
    names = (_SEPARATORS.split(requirement.strip())[0].lower() for requirement in requirements)
    return tuple(dict.fromkeys(name for name in names if name and name not in _TOOLS))


def _without_runner(command: ShellCommand, script: TestScript) -> list[str]:
    """Return a command's arguments from the program that matters on; note the packages that it installs."""
    tokens = list(command.arguments)
    installed = pip_packages(command)
    if installed is not None:
        script.packages += installed
        return []
    if command.name in ("uvx", "uv"):
        tokens = _without_uv(tokens, script)
    if tokens and re.fullmatch(r"python[\d.]*", tokens[0].rpartition("/")[2]) and tokens[1:3] == ["-m", "pytest"]:
        tokens = tokens[2:]
    if tokens:
        tokens[0] = tokens[0].rpartition("/")[2]
        tokens[0] = "pytest" if tokens[0] in ("py.test", "pytest") else tokens[0]
    return tokens


def _without_uv(tokens: list[str], script: TestScript) -> list[str]:
    """Return what uv runs, and note what it brings along; ``[]`` where it only prepares."""
    name, *rest = tokens
    if name.endswith("uv"):
        if rest[:1] == ["add"]:
            script.packages += [word for word in rest[1:] if not word.startswith("-")]
        if rest[:1] != ["run"]:
            return []
        rest = rest[1:]
    while rest and rest[0].startswith("-"):
        option = rest.pop(0)
        if option in ("-w", "--with", "-p", "--python", "--from", "--index", "--project", "--directory") and rest:
            value = rest.pop(0)
            if option in ("-w", "--with"):
                script.packages.append(value)
    return rest


def _read_pytest(tokens: list[str], here: str, workdir: str, script: TestScript) -> None:
    waiting = list(tokens)
    targets = []
    while waiting:
        word = waiting.pop(0)
        if word in _PASSED_ON and waiting:
            script.arguments += [word, waiting.pop(0)]
        elif word.split("=")[0] in _PASSED_ON:
            script.arguments.append(word)
        elif word.split("=")[0] in _WITH_VALUE:
            if "=" not in word and waiting:
                waiting.pop(0)
        elif not word.startswith("-"):
            targets.append(word)
        elif not _SHOWING.fullmatch(word):
            script.needs.append(f"a container, for pytest is given {word!r:.60}")
    for target in targets or [here]:
        path = posixpath.normpath(posixpath.join(here, target.replace('"', "")))
        if path != "/tests" and not path.startswith("/tests/"):
            script.needs.append(
                f"a container, for tests/test.sh runs tests in {path!r:.80}, which the agent may change"
            )
        if "::" in path or "*" in path or "$" in path:
            script.needs.append(f"a container, for tests/test.sh chooses tests by {target!r:.80}")
        script.targets.append(path.removeprefix("/tests").lstrip("/"))
