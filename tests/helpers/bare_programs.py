"""Programs of all languages run bare, without a jail: what their modules say is tried as it stands.

Nothing holds such a program back, so only sources of the tests may run so.
"""

from __future__ import annotations

import fnmatch
import os
import resource
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from sandbox.languages.catalogue import prepared_source
from sandbox.languages.language import MIB, Language, Stage, Walls
from sandbox.languages.toolchains import Toolchain, expand, find_toolchain

MEMORY_MB = 512
RUN_S = 120.0
KIT_S = 600.0
_KITS = Path.home() / ".cache" / "rewardkit-tests" / "kits"


@dataclass(frozen=True)
class BareRun:
    """How a program ended; ``compiles`` is false where its compiler refused it, and wrote ``stderr``."""

    compiles: bool
    exit_code: int
    stdout: str
    stderr: str


def run_program(language: Language, source: str, stdin: str = "", *, memory_mb: int = MEMORY_MB) -> BareRun:
    """Compile a program where its language does that, and run it."""
    toolchain = find_toolchain(language)
    assert isinstance(toolchain, Toolchain)
    text = prepared_source(language, source)
    with tempfile.TemporaryDirectory() as folder:
        artefact, scratch = Path(folder) / "artefact", Path(folder) / "scratch"
        artefact.mkdir()
        scratch.mkdir()
        (scratch / language.source_name).write_text(text)
        if language.compile:
            kit = kit_of(toolchain)
            stage = expand(language.compile, toolchain, scratch=str(scratch), kit=kit, memory_mb=MEMORY_MB)
            compilation = _run(stage, scratch, "", RUN_S)
            if compilation.exit_code != 0:
                return BareRun(False, compilation.exit_code, compilation.stdout, compilation.stderr)
            _take(stage.takes, scratch, artefact)
        run = expand(language.run, toolchain, scratch=str(scratch), artefact=str(artefact), memory_mb=memory_mb)
        return _run(run, scratch, stdin, RUN_S, _data_bytes(run.walls, memory_mb))


def kit_of(toolchain: Toolchain) -> str:
    """Return the directory of a language's kit, which is made once on this machine; empty where it has none."""
    kit = toolchain.language.kit
    if kit is None:
        return ""
    folder = _KITS / toolchain.stamp
    if not folder.is_dir():
        _KITS.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=_KITS) as scratch, tempfile.TemporaryDirectory(dir=_KITS) as made:
            for name, text in kit.files.items():
                path = Path(scratch) / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
            stage = expand(kit.stage, toolchain, scratch=scratch, memory_mb=MEMORY_MB)
            run = _run(stage, Path(scratch), "", KIT_S)
            assert run.exit_code == 0, run.stderr
            _take(stage.takes, Path(scratch), Path(made) / "kit")
            (Path(made) / "kit").rename(folder)
    return str(folder)


def _data_bytes(walls: Walls, memory_mb: int) -> int:
    """Return the bytes of private memory that a process of a stage may have; 0 for any."""
    return int(walls.data_share * memory_mb * MIB) + walls.data_extra if walls.data_share else 0


def _run(stage: Stage, scratch: Path, stdin: str, timeout_s: float, data_bytes: int = 0) -> BareRun:
    environment = {"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", "HOME": str(scratch), "TMPDIR": str(scratch)}
    environment |= dict(stage.walls.environment)

    def bound() -> None:
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        if data_bytes:
            resource.setrlimit(resource.RLIMIT_DATA, (data_bytes, data_bytes))

    for command in stage.commands:
        done = subprocess.run(
            command, input=stdin.encode(), capture_output=True, cwd=scratch, env=environment, timeout=timeout_s,
            preexec_fn=bound,
        )  # fmt: skip
        if done.returncode != 0:
            break
    return BareRun(True, done.returncode, done.stdout.decode(), done.stderr.decode())


def _take(patterns: tuple[str, ...], scratch: Path, artefact: Path) -> None:
    names = [str(path.relative_to(scratch)) for path in scratch.rglob("*") if path.is_file()]
    for name in names:
        if any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns):
            (artefact / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(scratch / name, artefact / name)
    assert os.listdir(artefact), f"none of {patterns} was made, but {names}"
