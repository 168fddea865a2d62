"""What a program in another language may not do in the jail, and that nothing of it is left."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from sandbox import ExecutionResult, ExecutionStatus, Limits, Sandbox, jail_process, why_not_run
from sandbox.programs.engine import MAX_ATTEMPTS

PROBE = Path(__file__).parents[2] / "helpers" / "wall_probe.c"


@pytest.fixture(scope="module")
def jail() -> Iterator[Sandbox]:
    if reason := why_not_run("c"):
        pytest.skip(reason)
    with Sandbox(workers=1) as sandbox:
        if sandbox.level != "strict":
            pytest.skip("only at level 'strict' may a compiler run")
        yield sandbox


def test_no_act_against_the_walls_succeeds(jail: Sandbox) -> None:
    """Files, processes, namespaces, sockets, memory and programs that are not its own."""
    result = jail.run(PROBE.read_text(), language="c", limits=Limits(timeout_s=10))
    assert (ExecutionStatus.OK, "end\n") == (result.status, result.stdout), result


def test_what_a_program_leaves_is_gone_for_the_next(jail: Sandbox) -> None:
    """Its files are, whatever it made of them."""
    leave = '#include <stdio.h>\nint main(){FILE*f=fopen("left","w");fputs("x",f);fclose(f);puts("left");}'
    look = '#include <stdio.h>\nint main(){puts(fopen("left","r")?"there":"gone");}'
    assert "left\n" == jail.run(leave, language="c").stdout
    assert "gone\n" == jail.run(look, language="c").stdout


def test_background_processes_of_a_script_end_with_it(jail: Sandbox) -> None:
    """None writes after its script has ended, and none is left."""
    if reason := why_not_run("bash"):
        pytest.skip(reason)
    script = "(sleep 1; echo late) &\n(trap '' TERM HUP; sleep 50) &\ndisown -a\necho done\n"
    result = jail.run(script, language="bash", limits=Limits(timeout_s=10))
    assert (ExecutionStatus.OK, "done\n") == (result.status, result.stdout)
    below = {process.name() for process in psutil.Process().children(recursive=True)}
    assert set() == below & {"sleep", "bash"}


@pytest.mark.parametrize("include", ["/etc/passwd", "/etc/shadow", "/proc/self/environ", "/root/.bashrc"])
def test_a_compiler_sees_no_file_of_the_machine(jail: Sandbox, include: str) -> None:
    """Beyond headers and itself."""
    source = f'#if __has_include("{include}")\n#error there\n#endif\nint main(){{return 0;}}'
    assert ExecutionStatus.OK == jail.run(source, language="c").status
    included = jail.run(f'#include "{include}"\nint main(){{return 0;}}', language="c")
    assert ExecutionStatus.NONZERO == included.status
    assert "No such file" in included.stderr or "Permission denied" in included.stderr


def test_a_compiler_that_reads_without_end_is_ended(jail: Sandbox) -> None:
    """It costs its own completion, and the next one compiles."""
    endless = jail.run('#include "/dev/urandom"\nint main(){return 0;}', language="c")
    assert endless.status is not ExecutionStatus.OK
    assert ExecutionStatus.OK == jail.run("int main(){return 0;}", language="c").status


def test_equal_sources_are_compiled_once(jail: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also by another sandbox."""
    source = "int main(void){return 0;} /* compiled once */"
    assert ExecutionStatus.OK == jail.run(source, language="c").status
    with Sandbox(workers=1) as other:
        built = other.build(source, "c")
        monkeypatch.setattr("sandbox.programs.engine.Programs._compile", None)
        assert built == other.build(source, "c")


def test_a_launcher_that_cannot_clean_up_after_a_program_reports_its_end_and_is_replaced(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """At the level where the directory lies on the disk, to empty it may take longer than the launcher waits."""
    if reason := why_not_run("perl"):
        pytest.skip(reason)
    late = "from sandbox.inside import workfolder; workfolder.WorkFolder.clean = lambda self: False; del sys.path[0]; "
    monkeypatch.setattr(jail_process, "_BOOT", jail_process._BOOT.replace("del sys.path[0]; ", late))
    leaves = 'open(F, ">", "left") and print "left"'
    with Sandbox(level="standard") as jail:
        for _ in range(2 * MAX_ATTEMPTS):
            assert (ExecutionStatus.OK, "left") == _end_of(jail.run(leaves, language="perl"))
        assert (ExecutionStatus.OK, "0") == _end_of(jail.run('print -e "left" ? 1 : 0', language="perl"))


def _end_of(result: ExecutionResult) -> tuple[ExecutionStatus, str]:
    return result.status, result.stdout
