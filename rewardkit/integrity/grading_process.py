"""The process that has loaded a harness: it reads completions, grades each in a child of its own, and reports.

It runs in the harness's own environment, from this folder's files alone. A line of JSON comes in for each completion
and one goes out, over descriptors that no child has. A child says its verdict through a pipe, with a number that is
drawn for it, so that what an act writes to every descriptor is no verdict.
"""

from __future__ import annotations

import fcntl
import json
import os
import platform
import secrets
import select
import shutil
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from .containment import adopt_orphans, end_descendants, excess, limit_this_process, shut_in
from .harnesses import GradedText, Harness, HarnessVerdict
from .secret_task import SecretTask
from .targets import harness_of

_HIGH = 80
_LOOK_S = 0.25
_dumps, _write, _kill, _getpid = json.dumps, os.write, os.kill, os.getpid  # as they were before any act


def serve(request: str) -> None:
    """Load the harness that a request names, and grade what comes over standard input until it ends."""
    incoming, outgoing = (fcntl.fcntl(number, fcntl.F_DUPFD_CLOEXEC, _HIGH) for number in (0, 1))
    wanted: dict[str, Any] = json.loads(request)
    run_folder: str = wanted["folder"]
    files = shut_in(run_folder) if wanted["namespaces"] else "no namespaces here"
    os.chdir(run_folder)  # which is another mount now
    _redirect(os.path.join(run_folder, "log.txt"))
    adopt_orphans()
    with open(incoming, encoding="utf-8") as lines, open(outgoing, "w", encoding="utf-8", buffering=1) as replies:
        try:
            harness = harness_of(wanted["target"])
            grade = harness.build(SecretTask.from_json(wanted["task"]))
        except BaseException as error:  # whatever the harness raises while it is loaded
            replies.write(json.dumps({"fault": _shorten(f"{type(error).__name__}: {error}")}) + "\n")
            return
        replies.write(json.dumps({**_describe(harness), "files": files}) + "\n")
        for line in lines:
            replies.write(json.dumps(_answer(harness, grade, json.loads(line), run_folder)) + "\n")
    end_descendants()


def _redirect(log: str) -> None:
    null = os.open(os.devnull, os.O_RDONLY)
    written = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    for number, source in ((0, null), (1, written), (2, written)):
        os.dup2(source, number)


def _describe(harness: Harness) -> dict[str, Any]:
    import importlib.metadata as metadata

    versions = {}
    for package in harness.packages:
        try:
            versions[package] = metadata.version(package)
        except metadata.PackageNotFoundError:  # rewardkit's distribution has another name than the package
            if version := getattr(sys.modules.get(package), "__version__", ""):
                versions[package] = version
    return {
        "name": harness.name,
        "shape": harness.shape,
        "language": harness.language,
        "note": harness.note,
        "warning": harness.warning,
        "frame": harness.frame,
        "isolation": "the harness's own" if harness.is_inline or harness.has_own_walls else "",
        "versions": {**versions, "python": platform.python_version()},
    }


def _answer(harness: Harness, grade: Callable[..., Any], request: dict[str, Any], run_folder: str) -> dict[str, Any]:
    folder = os.path.join(run_folder, f"act-{secrets.token_hex(6)}")
    work = os.path.join(folder, "work")
    os.makedirs(work)
    for name, text in request["files"].items():
        path = Path(work, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    completion = GradedText(request["text"], request["files"], work)
    started = time.monotonic()
    try:
        if harness.is_inline:
            outcome = _verdict(grade, completion)
        else:
            outcome = _grade_in_child(grade, completion, folder, request["deadline_s"])
    finally:
        os.chdir(run_folder)
        shutil.rmtree(folder, ignore_errors=True)
    return {**outcome, "seconds": round(time.monotonic() - started, 2)}


def _verdict(grade: Callable[..., Any], completion: GradedText) -> dict[str, Any]:
    os.chdir(completion.folder)
    try:
        verdict = grade(completion)
    except BaseException as error:  # a harness that raises gives no verdict
        return {"passed": None, "detail": _shorten(f"{type(error).__name__}: {error}")}
    if not isinstance(verdict, HarnessVerdict):
        return {"passed": None, "detail": _shorten(f"no verdict: {verdict!r}")}
    return {"passed": bool(verdict.passed), "detail": _shorten(verdict.detail)}


def _grade_in_child(
    grade: Callable[..., Any], completion: GradedText, folder: str, deadline_s: float
) -> dict[str, Any]:
    reader, writer = os.pipe()
    high = fcntl.fcntl(writer, fcntl.F_DUPFD_CLOEXEC, _HIGH + 20)
    os.close(writer)
    number = secrets.token_hex(16)
    child = os.fork()
    if child == 0:
        _grade_and_end(grade, completion, folder, high, number)
    os.close(high)
    try:
        return _hear(reader, number, folder, deadline_s)
    finally:
        os.close(reader)
        end_descendants()


def _grade_and_end(grade: Callable[..., Any], completion: GradedText, folder: str, writer: int, number: str) -> None:
    own = _getpid()
    try:
        os.setsid()
        limit_this_process()
        os.environ["TMPDIR"] = os.environ["HOME"] = folder
        import tempfile

        tempfile.tempdir = None
        outcome = _verdict(grade, completion)
        if _getpid() == own:  # and not a copy of it that an act made
            _write(writer, f"\n{number}{_dumps(outcome)}\n".encode())
    finally:
        _kill(_getpid(), 9)


def _hear(reader: int, number: str, folder: str, deadline_s: float) -> dict[str, Any]:
    """Return the verdict that a child writes, or why it writes nothing."""
    heard = b""
    end = time.monotonic() + deadline_s
    mark = f"\n{number}".encode()
    while mark not in heard or not heard.partition(mark)[2].count(b"\n"):
        if time.monotonic() > end:
            return {"passed": None, "detail": f"no verdict within {deadline_s:g} s"}
        if over := excess(folder):
            return {"passed": None, "detail": f"no verdict: {over}"}
        if select.select([reader], [], [], _LOOK_S)[0]:
            piece = os.read(reader, 1 << 16)
            if not piece:
                return {"passed": None, "detail": "no verdict: the harness's process ended"}
            heard = (heard + piece)[-(1 << 20) :]
    try:
        outcome = json.loads(heard.partition(mark)[2].partition(b"\n")[0])
        return {"passed": outcome["passed"], "detail": outcome["detail"]}
    except (ValueError, KeyError, TypeError):
        return {"passed": None, "detail": "no verdict: the harness's process says nothing that can be read"}


def _shorten(text: str) -> str:
    return " ".join(str(text).split())[:200]


if __name__ == "__main__":
    sys.exit("this is started by the examiner")
