"""A process of another user that judges acts: ``nobody`` where the tests run as root, else this user.

As a program it is asked by lines of JSON, and answers each with one: ``python judging_process.py FOLDER PACKAGES``,
where ``FOLDER`` has the package and the helpers, and ``PACKAGES`` the wheels of toolchains.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any, NamedTuple

HELPERS = "tests/helpers"


class Verdict(NamedTuple):
    """What a judge says of a completion.

    Attributes:
        all_passed: Whether it is right.
        statuses: Those of its checks.
        report: The whole, as a text.
        processes: The launchers that are alive.
        skipped: Why it was not judged; ``""`` if it was.
    """

    all_passed: bool = False
    statuses: tuple[str, ...] = ()
    report: str = ""
    processes: tuple[int, ...] = ()
    skipped: str = ""


class JudgingProcess:
    """Judges completions as another user.

    Args:
        folder: A folder that this user may read, with the package and the helpers in it.
    """

    def __init__(self, folder: Path) -> None:
        from other_user import NOBODY, interpreter

        user: dict[str, Any] = {"user": NOBODY, "group": NOBODY, "extra_groups": []} if os.getuid() == 0 else {}
        command = [interpreter(os.getuid() == 0), "-I", str(folder / HELPERS / Path(__file__).name), str(folder)]
        self._process = subprocess.Popen(
            [*command, sysconfig.get_path("purelib")],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd="/", env={"PATH": "/usr/bin:/bin"}, **user,
        )  # fmt: skip

    def judged(self, level: str, language: str, judge: str, source: str, timeout_s: float) -> Verdict:
        """Return what is said of a completion at a level."""
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(json.dumps([level, language, judge, source, timeout_s]) + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        assert answer, f"it ended with {self._process.wait()}"
        return Verdict(*json.loads(answer))

    def close(self) -> None:
        """End it, with its jails."""
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()


def verdict_of(jail: Any, language: str, judge: str, source: str, timeout_s: float) -> Verdict:
    """Return what is said of a completion in a jail of this process."""
    from polyglot_acts import judged

    from sandbox import why_not_run

    if reason := why_not_run(language):
        return Verdict(skipped=reason)
    report = judged(jail, language, judge, source, timeout_s)
    statuses = tuple(str(check.status) for check in report.checks)
    return Verdict(report.all_passed, statuses, repr(report), tuple(jail._programs().processes))


def main() -> None:
    """Answer until nobody asks any more."""
    folder, packages = sys.argv[1:]
    sys.path[:0] = [folder, f"{folder}/{HELPERS}"]
    sys.path.append(packages)  # behind this Python's own, for the files of wheels
    from sandbox import Sandbox
    from sandbox.errors import SandboxUnavailableError

    jails: dict[str, Any] = {}
    for line in sys.stdin:
        level, *asked = json.loads(line)
        try:
            if level not in jails:
                jails[level] = Sandbox(workers=1, level=level).start()
            verdict = verdict_of(jails[level], *asked)
        except SandboxUnavailableError as reason:
            verdict = Verdict(skipped=f"no jail here: {reason}")
        print(json.dumps(verdict), flush=True)
    for jail in jails.values():
        jail.close()


if __name__ == "__main__":
    main()
