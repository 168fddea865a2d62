"""Times programs in other languages in the jail and bare, interleaved: what the jail adds to a run and to a compile.

    python tests/benchmarks/bench_programs.py [LANGUAGE ...] [--rounds N]

Bare is a fork and exec of the same commands in a temporary directory. Medians in milliseconds; languages that this
machine does not run are left out with the reason. Run it on a machine that does nothing else.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from rich.console import Console
from rich.table import Table

from sandbox import LANGUAGES, Limits, Sandbox, why_not_run
from sandbox.languages.language import MIB, Language, Stage
from sandbox.languages.toolchains import Toolchain, expand, find_toolchain

LIMITS = Limits(timeout_s=20.0)


def bare(language: Language, toolchain: Toolchain, folder: Path, number: int) -> tuple[float, float]:
    """Return the seconds of a compile, which is new each time, and of a run, without the jail."""
    source = language.hello + _comment(language, number)
    text = language.prepare(source) if language.prepare else source
    (folder / language.source_name).write_text(text)
    compile_s = 0.0
    if language.compile is not None:
        compile_s = _time(_commands(language.compile, toolchain, folder), folder)
    return compile_s, _time(_commands(language.run, toolchain, folder), folder)


def make_kit(language: Language, toolchain: Toolchain, folder: Path) -> None:
    """Make what a language's compiler needs once, as the jail has it, without the jail."""
    if language.kit is None:
        return
    for name, text in language.kit.files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    stage = expand(language.kit.stage, toolchain, scratch=str(folder), memory_mb=512, kit=str(folder))
    _time(stage.commands, folder, {**os.environ, **dict(stage.walls.environment)})


def _commands(stage: Stage, toolchain: Toolchain, folder: Path) -> tuple[tuple[str, ...], ...]:
    place = str(folder)
    return expand(stage, toolchain, scratch=place, artefact=place, memory_mb=512, kit=place).commands


def jailed(sandbox: Sandbox, language: Language, number: int) -> tuple[float, float]:
    """Return the same in the jail."""
    source = language.hello + _comment(language, number)
    began = time.perf_counter()
    sandbox.build(source, language.name, limits=LIMITS) if language.compile else None
    built = time.perf_counter()
    result = sandbox.run(source, language=language.name, limits=LIMITS)
    if result.status != "ok":
        raise SystemExit(f"{language.name}: {result.error} {result.stderr}")
    return built - began, time.perf_counter() - built


def _comment(language: Language, number: int) -> str:
    mark = "#" if language.name in ("bash", "perl", "ruby") else "--" if language.name == "lua" else "//"
    return f"\n{mark} {time.time_ns()} {number}\n"


def _time(commands: tuple[tuple[str, ...], ...], folder: Path, environment: dict[str, str] | None = None) -> float:
    began = time.perf_counter()
    for command in commands:
        subprocess.run(command, cwd=folder, env=environment, check=True, capture_output=True)
    return time.perf_counter() - began


def main() -> None:
    """Print a table of all languages."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("languages", nargs="*", default=sorted(LANGUAGES))
    parser.add_argument("--rounds", type=int, default=15)
    arguments = parser.parse_args()
    table = Table("language", "compile bare", "jail", "ratio", "run bare", "jail", "added", "ratio")
    with Sandbox(workers=1) as sandbox:
        for name in arguments.languages:
            language = LANGUAGES[name]
            if reason := why_not_run(name):
                print(f"left out: {reason}", file=sys.stderr)
                continue
            toolchain = find_toolchain(language)
            assert isinstance(toolchain, Toolchain)
            rounds = []
            with tempfile.TemporaryDirectory() as folder:
                make_kit(language, toolchain, Path(folder))
                jailed(sandbox, language, -1)
                for number in range(arguments.rounds):
                    rounds.append(
                        (*bare(language, toolchain, Path(folder), number), *jailed(sandbox, language, number))
                    )
            bare_compile, bare_run, jail_compile, jail_run = (
                1000 * statistics.median(values) for values in zip(*rounds, strict=True)
            )
            compiles = ["", "", ""]
            if language.compile is not None:
                compiles = [f"{bare_compile:.0f}", f"{jail_compile:.0f}", f"{jail_compile / bare_compile:.2f}x"]
            table.add_row(
                name,
                *compiles,
                f"{bare_run:.1f}",
                f"{jail_run:.1f}",
                f"{jail_run - bare_run:.1f}",
                f"{jail_run / bare_run:.2f}x",
            )
    Console(width=80).print(table)
    print(f"medians of {arguments.rounds} rounds in ms; memory of a program {LIMITS.memory_bytes // MIB} MiB")


if __name__ == "__main__":
    main()
