"""What may be examined: a ready harness by its name, a function, a command line, or an address.

A target is a mapping of texts, so that it can be handed to the process that loads it.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import shlex
import subprocess
import sys
import urllib.request
from collections.abc import Mapping
from typing import Any

from .harnesses import Grade, GradedText, Harness, HarnessVerdict
from .secret_task import SecretTask

TARGET_TIMEOUT_S = 10.0
_PLACEHOLDERS = ("completion", "tests", "program", "folder", "task")
_SUFFIXES = {"python": "py", "javascript": "js", "cpp": "cpp", "go": "go", "java": "java", "bash": "sh"}


def harness_of(target: Mapping[str, str]) -> Harness:
    """Return the harness that a target names.

    Raises:
        ValueError: There is no such harness, or the target says too little.
        ImportError: Its package is missing.
    """
    kind = target.get("kind", "ready")
    if kind == "ready":
        return _ready(target["name"], target.get("language", ""))
    makers = {"function": _function, "command": _command, "http": _http}
    if kind not in makers:
        raise ValueError(f"target kind {kind!r}: expected ready, {', '.join(makers)}")
    shape, language = target.get("shape") or "call", target.get("language") or "python"

    def build(task: SecretTask) -> Grade:
        return makers[kind](target, task, shape, language)

    name = target.get("name") or target[kind]
    is_inline = kind == "function" and bool(target.get("own_isolation"))
    frame = target.get("frame") or "ANSWER"
    return Harness(name, build, shape, language, note=f"{kind}: {target[kind]}", is_inline=is_inline, frame=frame)


def _ready(name: str, language: str) -> Harness:
    from .ready import ready_harnesses

    harnesses = ready_harnesses()
    if name not in harnesses:
        raise ValueError(f"harness {name!r}: nobody has made it ready; expected one of {', '.join(harnesses)}")
    harness = harnesses[name]
    if language and language != harness.language:
        raise ValueError(f"harness {name!r} grades {harness.language}, not {language}")
    return harness


def _function(target: Mapping[str, str], task: SecretTask, shape: str, language: str) -> Grade:
    """Return a function ``(task, completion)`` that returns whether it passes, or a score of which 1 passes."""
    path, _, name = target["function"].rpartition(":")
    if path.endswith(".py"):
        spec = importlib.util.spec_from_file_location("examined_harness", os.path.abspath(path))
        if spec is None or spec.loader is None:
            raise ValueError(f"function {target['function']!r}: cannot be read")
        folder = os.path.dirname(os.path.abspath(path))
        if folder not in sys.path:
            sys.path.append(folder)  # last, as other commands have it: what lies beside the file is no library's name
        module = importlib.util.module_from_spec(spec)
        sys.modules["examined_harness"] = module
        spec.loader.exec_module(module)
    else:
        sys.path.insert(0, target.get("cwd") or os.getcwd())
        module = importlib.import_module(path)
    function = getattr(module, name)

    def grade(completion: GradedText) -> HarnessVerdict:
        return read_verdict(function(task, completion))

    return grade


_VERDICT_KEYS = ("passed", "score", "reward", "value")
"""What a verdict is called in a mapping, or in an object such as :class:`~rewardkit.Score` and an outcome."""


def read_verdict(value: Any) -> HarnessVerdict:
    """Return a verdict of what a function or a server says.

    Raises:
        ValueError: It is neither a truth value nor a number, and has neither by a name such as ``passed`` or ``score``.
    """
    if isinstance(value, HarnessVerdict):
        return value
    content = value if isinstance(value, Mapping) else {key: getattr(value, key, None) for key in _VERDICT_KEYS}
    for key in _VERDICT_KEYS:
        if content.get(key) is not None:
            return read_verdict(content[key])
    if getattr(value, "shape", None) == ():  # a number of numpy or torch
        return read_verdict(value.item())
    if isinstance(value, bool):
        return HarnessVerdict(value)
    if isinstance(value, int | float):
        return HarnessVerdict(value >= 1.0, f"score {value:g}")
    raise ValueError(f"the harness answered {value!r:.100}: expected true, false, a score, or passed or score by name")


def _command(target: Mapping[str, str], task: SecretTask, shape: str, language: str) -> Grade:
    """Return what runs a command line over files of the completion and of the tests.

    It passes with ``passes`` as a line of its output, or without that with exit code 0.
    """
    template = shlex.split(target["command"])
    if not any("{" + name + "}" in word for word in template for name in _PLACEHOLDERS):
        names = ", ".join("{" + name + "}" for name in _PLACEHOLDERS)
        raise ValueError(f"command {target['command']!r}: it reads nothing; expected one of {names} in it")
    template = [_own_path(word, index, target.get("cwd") or os.getcwd()) for index, word in enumerate(template)]
    marker = target.get("passes") or ""
    timeout_s = float(target.get("timeout_s") or TARGET_TIMEOUT_S)

    def grade(completion: GradedText) -> HarnessVerdict:
        paths = write_files(task, completion, shape, language)
        command = template
        for name, path in paths.items():
            command = [word.replace("{" + name + "}", path) for word in command]
        try:
            ended = subprocess.run(
                command, cwd=completion.folder, capture_output=True, timeout=timeout_s, check=False, errors="replace"
            )
        except subprocess.TimeoutExpired:
            return HarnessVerdict(False, f"more than {timeout_s:g} s")
        passed = marker in ended.stdout.splitlines() if marker else ended.returncode == 0
        return HarnessVerdict(passed, f"exit code {ended.returncode} {ended.stdout[-80:]} {ended.stderr[-80:]}")

    return grade


def _own_path(word: str, index: int, folder: str) -> str:
    """Return a word of a command line, as a whole path where it is a file of the folder in which it was written."""
    path = os.path.join(folder, word)
    is_path = "/" in word if index == 0 else "{" not in word  # a program without a slash is looked for as ever
    return os.path.abspath(path) if is_path and os.path.isfile(path) else word


def write_files(task: SecretTask, completion: GradedText, shape: str, language: str) -> dict[str, str]:
    """Write what a command line reads beside the completion's folder, and return the paths by placeholder."""
    folder = os.path.dirname(completion.folder)
    suffix = _SUFFIXES.get(language, "txt")
    tests = "\n".join(task.asserts) + "\n"
    if shape == "program":
        tests = json.dumps([{"input": a, "output": b} for a, b in zip(task.stdin, task.stdout, strict=True)])
    elif shape == "folder":
        tests = task.pytest
    elif language != "python":
        tests = json.dumps(
            [{"arguments": [*pair], "expected": b} for pair, b in zip(task.inputs, task.expected, strict=True)]
        )
    is_text = shape == "folder" or (shape == "call" and language == "python")
    contents = {
        "completion": (f"completion.{suffix}", completion.text),
        "tests": (f"tests.{'py' if is_text else 'json'}", tests),
        "program": (f"program.{suffix}", f"{completion.text}\n{tests}" if language == "python" else completion.text),
        "task": ("task.json", json.dumps(request_of(task, completion))),
    }
    paths = {"folder": completion.folder}
    for name, (file, text) in contents.items():
        paths[name] = os.path.join(folder, file)
        with open(paths[name], "w", encoding="utf-8", errors="surrogatepass") as out:
            out.write(text)
    return paths


def request_of(task: SecretTask, completion: GradedText) -> dict[str, Any]:
    """Return what a server is sent, and a command finds in ``{task}``."""
    return {
        "prompt": task.prompt,
        "entry_point": task.entry_point,
        "completion": completion.text,
        "files": dict(completion.files),
        "tests": task.asserts,
        "inputs": [list(pair) for pair in task.inputs],
        "outputs": task.expected,
        "stdin": task.stdin,
        "stdout": task.stdout,
        "gold": task.gold,
    }


def _http(target: Mapping[str, str], task: SecretTask, shape: str, language: str) -> Grade:
    address = target["http"]
    if not address.startswith(("http://", "https://")):
        raise ValueError(f"address {address!r}: expected http:// or https://")
    timeout_s = float(target.get("timeout_s") or TARGET_TIMEOUT_S)

    def grade(completion: GradedText) -> HarnessVerdict:
        body = json.dumps({**request_of(task, completion), "shape": shape, "language": language}).encode()
        request = urllib.request.Request(address, body, {"Content-Type": "application/json"})  # noqa: S310 - checked
        with urllib.request.urlopen(request, timeout=timeout_s) as reply:  # noqa: S310 - checked
            return read_verdict(json.loads(reply.read(1 << 20)))

    return grade
