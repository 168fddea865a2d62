"""A task in Harbor's form: what an agent is given, and how what it left is graded."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rewardkit.errors import SuiteError
from rewardkit.harbor.criteria import Layout, evaluate, read_criteria
from rewardkit.harbor.harbor_verdict import HarborVerdict
from rewardkit.harbor.image import read_image
from rewardkit.harbor.solution import solved_files
from rewardkit.harbor.task_file import read_task_file
from rewardkit.harbor.test_script import plain_packages, read_test_script
from rewardkit.jailed.sealed import SealedWorkspace
from rewardkit.jailed.workspace import Workspace
from rewardkit.suites.collection import starts_processes
from rewardkit.suites.grading import SuiteOptions, grade_suite, sealed_of
from rewardkit.suites.packages import missing_packages
from rewardkit.suites.suite_verdict import SuiteStatus

_MOST_BYTES = 256 << 20
_GROUPS = ("fail_to_pass", "pass_to_pass")


@dataclass(frozen=True, slots=True)
class HarborTask:
    """A task of a folder; made by :func:`from_harbor`.

    Attributes:
        folder: Where it lies.
        name: As ``[task]`` has it, else the folder's name.
        instruction: What the agent is told.
        metadata: The table ``[metadata]``.
        needs: What grading needs that only an image has, and why; ``()`` for a task that is graded here.
        start: The files that the agent finds, by name relative to ``workdir``.
        tests: The files of ``tests/``, by name relative to it.
        solution: The files of ``solution/``, by name relative to it.
        workdir: The folder in which the agent works, such as ``"/app"``.
        packages: The Python distributions that the tests and the image install.
        timeout_s: Seconds that the verifier may take.
        targets: The files and folders of tests that ``test.sh`` runs, relative to ``tests/``.
        arguments: The arguments of pytest that load plugins.
    """

    folder: Path
    name: str
    instruction: str
    metadata: Mapping[str, Any]
    needs: tuple[str, ...]
    start: Mapping[str, bytes]
    tests: Mapping[str, bytes]
    solution: Mapping[str, bytes]
    workdir: str
    packages: tuple[str, ...]
    timeout_s: float
    targets: tuple[str, ...] = ()
    arguments: tuple[str, ...] = ()
    _criteria: Layout = field(default_factory=dict, repr=False)

    def write_start(self, folder: str | os.PathLike[str]) -> Workspace:
        """Write what the agent finds into a folder, which is made where it is missing; return it as a workspace.

        Raises:
            OSError: A file cannot be written.
        """
        root = Path(folder)
        root.mkdir(parents=True, exist_ok=True)
        for name, content in self.start.items():
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        return Workspace(root)

    def solved(self) -> SealedWorkspace:
        """Return what the task's own solution makes of the start, in a jail.

        Raises:
            SuiteError: There is no solution, or it cannot be run here.
        """
        return SealedWorkspace(solved_files(self.start, self.solution, self.workdir))

    def grade(
        self, workspace: Workspace | SealedWorkspace | str | os.PathLike[str], *, confidence: float = 1e-3
    ) -> HarborVerdict:
        """Grade what an agent left in its folder.

        Args:
            workspace: The folder that stands for ``workdir``, or what it was when it was sealed.
            confidence: The chance of a forgery that is accepted, as :func:`check_suite <rewardkit.check_suite>` has it.

        Raises:
            WorkspaceError: The folder cannot be read, or is too large.
            InfrastructureError: The jail itself failed.
        """
        sealed = sealed_of(workspace)
        if self.needs:
            error = f"task {self.name}: it needs {'; '.join(self.needs[:3])}"
            return HarborVerdict(SuiteStatus.UNSUITABLE, digest=sealed.digest, error=error)
        if self._criteria:
            rewards, results = evaluate(self._criteria, sealed.files)
            passed = all(value >= 1 for value in rewards.values())
            status = SuiteStatus.PASSED if passed else SuiteStatus.FAILED
            return HarborVerdict(status, rewards, tuple(results), digest=sealed.digest)
        tests_folder = self._tests_folder()
        options = SuiteOptions(
            expected=self._expected(),
            packages=self.packages,
            confidence=confidence,
            arguments=self.arguments,
            timeout_s=self.timeout_s,
            targets=tuple(f"{tests_folder}/{target}".rstrip("/") for target in self.targets),
            absolute={self.workdir: ".", "/tests": tests_folder},
        )
        tests = {f"{tests_folder}/{name}": content for name, content in self.tests.items() if name != "test.sh"}
        verdict = grade_suite(sealed, tests, options)
        rewards = {"reward": float(verdict.passed)}
        return HarborVerdict(
            verdict.status, rewards, verdict.results, verdict, digest=sealed.digest, error=verdict.error
        )

    def _tests_folder(self) -> str:
        """Return the name of the folder of tests beside the agent's files, which may have one of that name."""
        names = {name.split("/")[0] for name in self.start}
        return "tests" if "tests" not in names else "harbor_tests"

    def _expected(self) -> dict[str, list[str]] | None:
        """Return the names of tests that the metadata list, by group, where it does so."""
        groups = {group: self.metadata.get(group) for group in _GROUPS}
        lists = {group: names for group, names in groups.items() if isinstance(names, list) and names}
        if not lists or not all(isinstance(name, str) for names in lists.values() for name in names):
            return None
        tests_folder = self._tests_folder()
        start = re.compile(r"^/?tests/")
        return {group: [start.sub(f"{tests_folder}/", name) for name in names] for group, names in lists.items()}


def from_harbor(folder: str | os.PathLike[str]) -> HarborTask:
    """Read a task that was written for Harbor, of what its folder has.

    Of scripts and the Dockerfile nothing is run. What they do besides copying files, installing Python's packages and
    running pytest or criteria of files is listed in ``needs``, and such a task is not graded here.

    Args:
        folder: The task's folder.

    Raises:
        SuiteError: There is no ``task.toml``, ``instruction.md`` or ``tests/test.sh``, the version is another one, or a
            file cannot be read.
    """
    root = Path(folder)
    settings = read_task_file(root / "task.toml")
    try:
        instruction = (root / "instruction.md").read_text(encoding="utf-8")
    except (OSError, ValueError) as wrong:
        raise SuiteError(f"task {str(root)!r:.200}: instruction.md cannot be read: {wrong}") from None
    tests, solution, context = (_files(root / name) for name in ("tests", "solution", "environment"))
    if "test.sh" not in tests and not settings.steps:
        raise SuiteError(f"task {str(root)!r:.200}: there is no tests/test.sh")
    needs = settings.needs()
    dockerfile = context.pop("Dockerfile", None)
    if dockerfile is None and settings.environment.docker_image is None and "docker-compose.yaml" not in context:
        needs.append("an image, for environment/ has no Dockerfile")
    needs += ["several containers, for environment/ has a compose file"] if _composes(context) else []
    text = _decoded(dockerfile or f"FROM {settings.environment.docker_image or 'scratch'}".encode(), root, "Dockerfile")
    image = read_image(text, context, settings.environment.workdir)
    script = read_test_script(_decoded(tests.get("test.sh", b""), root, "test.sh"), image.workdir)
    needs += [*image.needs, *script.needs]
    packages = plain_packages([*image.packages, *script.packages])
    criteria: Layout = {}
    if script.criteria:
        criteria, more = read_criteria({name: tests[name] for name in tests if name != "test.sh"}, image.workdir)
        needs += more
    else:
        needs += [f"the package {name!r}, which is not installed here" for name in missing_packages(packages)]
        needs += _needs_of_tests(tests, image.workdir)
    return HarborTask(
        root,
        settings.task.name or root.resolve().name,
        instruction,
        settings.metadata,
        tuple(dict.fromkeys(needs)),
        image.files,
        tests,
        solution,
        image.workdir,
        packages,
        settings.verifier.timeout_sec,
        tuple(dict.fromkeys(script.targets)),
        tuple(script.arguments),
        criteria,
    )


def _files(folder: Path) -> dict[str, bytes]:
    """Return the plain files of a part of the task, which its author wrote, by relative name.

    Raises:
        SuiteError: They are too large, or one cannot be read.
    """
    files: dict[str, bytes] = {}
    left = _MOST_BYTES
    for path in sorted(folder.rglob("*")):
        if not path.is_file() or "__pycache__" in path.parts:
            continue
        try:
            left -= path.stat().st_size
            if left < 0:
                raise SuiteError(
                    f"task {str(folder.parent)!r:.200}: {folder.name}/ has more than {_MOST_BYTES:,} bytes"
                )
            files[path.relative_to(folder).as_posix()] = path.read_bytes()
        except OSError as wrong:
            raise SuiteError(f"task {str(folder.parent)!r:.200}: {path.name!r:.80} cannot be read: {wrong}") from None
    return files


def _decoded(content: bytes, root: Path, name: str) -> str:
    try:
        return content.decode()
    except ValueError as wrong:
        raise SuiteError(f"task {str(root)!r:.200}: {name} is no UTF-8: {wrong}") from None


def _composes(context: Mapping[str, bytes]) -> bool:
    return any(name in context for name in ("docker-compose.yaml", "docker-compose.yml", "compose.yaml"))


def _needs_of_tests(tests: Mapping[str, bytes], workdir: str) -> list[str]:
    """Return what tests use that the jail does not have: processes, and files of the container elsewhere."""
    needs = []
    for name, content in tests.items():
        if not name.endswith(".py"):
            continue
        if starts_processes(content):
            needs.append("several processes, for its tests start some")
        for path in _OPENED.findall(content.decode("utf-8", "replace")):
            if not f"{path}/".startswith((f"{workdir.rstrip('/')}/", "/tests/", "/dev/null/")):
                needs.append(f"{path!r:.80} of its container, for tests/{name} reads it")
    return needs


_OPENED = re.compile(
    r"""\b(?:Path|open|exists|isfile|isdir|listdir|getsize|chdir|load|loadtxt|read_\w+)\(\s*f?["'](/[\w.-][^"']*)["']"""
)
