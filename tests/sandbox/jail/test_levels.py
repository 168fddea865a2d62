"""Levels: the same attacks as nobody and in Docker; what auto chooses, what is warned of and what is refused."""

from __future__ import annotations

import errno
import json
import os
import runpy
import struct
import subprocess
import sys
import warnings
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from other_user import NOBODY, ask, readable_copy

from sandbox import ExecutionStatus, Limits, Sandbox
from sandbox.errors import SandboxUnavailableError
from sandbox.jail import kernel, probe, seccomp
from sandbox.jail.levels import Level

pytestmark = pytest.mark.slow  # a minute: the attacks are tried once more, as others

CORE = """
    read-etc-passwd read-etc-shadow list-homes read-a-file-open-to-all write-a-file-open-to-all create-files-outside
    symlink-then-read symlink-then-write hard-link-from-outside rename-across-the-border dot-dot path-descriptors
    proc-self-mem proc-1 proc-of-the-client proc-self-fd memory-and-disk-devices chmod-outside truncate-outside
    delete-outside special-files write-the-standard-library tcp-connect udp-send unix-socket-by-path
    unix-socket-abstract datagram-pair-to-a-path dns netlink-and-raw-sockets fork clone-and-vfork clone3 exec execveat
    subprocess ptrace memory-of-other-processes pidfd kill-the-zygote kill-process-1-and-all kill-the-client
    signals-to-threads queued-signals signals-by-descriptors limits-of-other-processes priorities-and-cores
    daemon-by-setsid io-uring bpf userfaultfd kernel-keys mount unshare-and-setns chroot-and-pivot-root
    execute-from-memory loosen-the-filter unknown-calls endless-loop every-signal-ignored sleep memory-at-once
    output-flood error-flood many-large-files files-in-a-directory-that-cannot-be-read room-for-files-without-size
    locked-directories many-threads descriptor-leak catastrophic-regex tower-of-powers segfault abort
    exit-code-0-at-once every-descriptor-closed flags-of-shared-descriptors the-zygotes-objects
"""
"""Those of the attacks that are tried everywhere."""

# A client on its own: it tries each attack, each time with a sound program after it, and prints what came of them.
CLIENT = """
import json, os, sys, warnings
warnings.simplefilter("error")
asked = json.load(sys.stdin)
sys.path.insert(0, asked["root"])
from sandbox import Limits, Sandbox
from sandbox.errors import SandboxUnavailableError
told = {"user": os.getuid(), "results": {}}
try:
    with Sandbox(level=asked["level"], workers=1, limits=Limits(**asked["limits"])) as sandbox:
        told["level"] = str(sandbox.level)
        world = {**asked["world"], "client": os.getpid(), "parent": os.getppid(), "level": told["level"]}
        for name, (source, limits) in asked["attacks"].items():
            zygotes = sandbox.processes
            result = sandbox.run(source, args=[json.dumps(world)], limits=Limits(**limits))
            after = sandbox.run("print(open('a').read(), input())", stdin="b", files={"a": "c"})
            told["results"][name] = [result.status, result.stdout, result.error, after.status, after.stdout,
                                     zygotes == sandbox.processes]
except SandboxUnavailableError as error:
    told["unavailable"] = str(error)
print(json.dumps(told))
"""

# Docker's default profile, as far as it matters here, entered before the client is executed.
DOCKER = """
import os, sys
sys.path.insert(0, sys.argv[1])
from sandbox.jail.bpf import Installer
Installer(bytes.fromhex(sys.argv[2])).enter()
os.execv(sys.executable, [sys.executable, "-I", "-c", sys.argv[3]])
"""
NOT_IN_DOCKER = """
    unshare setns mount umount2 pivot_root bpf keyctl add_key userfaultfd perf_event_open ptrace process_vm_readv
    pidfd_getfd io_uring_setup personality
"""


@pytest.fixture(scope="module")
def attacks() -> dict[str, Any]:
    """The attacks of all tests, from the module that holds them."""
    return runpy.run_path(str(Path(__file__).parents[1] / "test_attacks.py"))


@pytest.fixture(scope="module")
def readable(root: Path) -> Iterator[Path]:
    """A copy of the package that everyone may read, and a file beside it that everyone may write."""
    with readable_copy(root) as folder:
        outside = folder / "outside"
        outside.mkdir()
        (outside / "secret").write_text("what lies outside\n")
        (outside / "empty").mkdir()
        (outside / "empty").chmod(0o755)
        (outside / "secret").chmod(0o666)
        outside.chmod(0o777)
        yield folder


def client(
    readable: Path, attacks: dict[str, Any], level: str, *, as_nobody: bool = False, in_docker: bool = False,
    names: str = CORE,
) -> dict[str, Any]:  # fmt: skip
    """Try attacks in a client of its own; gives what it told."""
    table = attacks["ATTACKS"]
    numbers = {**kernel.NUMBERS, **attacks["EXTRA_NUMBERS"][kernel.MACHINE], **attacks["NEW_NUMBERS"]}
    outside = readable / "outside"
    world = {
        "secret": str(outside / "secret"), "outside": str(outside), "empty": str(outside / "empty"), "victim": 1,
        "client_folder": "/", "tests": __file__, "tcp": 9, "udp": 9, "unix_stream": "/run/x", "unix_datagram": "/run/x",
        "abstract": "x", "numbers": numbers,
    }  # fmt: skip
    asked = {
        "root": str(readable), "level": level, "world": world,
        "limits": asdict(attacks["LIMITS"]),
        "attacks": {
            name: (attacks["program"](table[name]), asdict(table[name].limits)) for name in names.split()
        },
    }  # fmt: skip
    command = [DOCKER, str(readable), docker_filter().hex(), CLIENT] if in_docker else [CLIENT]
    told: dict[str, Any] = ask(command, asked, as_nobody=as_nobody)
    if as_nobody:
        assert NOBODY == told["user"]
    return told


def docker_filter() -> bytes:
    """Return a filter as Docker's: namespaces and mounts are refused, clone3 is not there."""
    refuse, ways = 0x00050000 | errno.EPERM, [kernel.NUMBERS[name] for name in NOT_IN_DOCKER.split()]
    steps = [
        (0x20, 0, 0, 4),
        (0x15, 1, 0, kernel.AUDIT_ARCH[kernel.MACHINE]),
        (0x06, 0, 0, 0x80000000),
        (0x20, 0, 0, 0),
    ]
    steps += [(0x15, 0, 1, kernel.NUMBERS["clone3"]), (0x06, 0, 0, 0x00050000 | errno.ENOSYS)]
    for number in ways:
        steps += [(0x15, 0, 1, number), (0x06, 0, 0, refuse)]
    steps += [(0x15, 0, 3, kernel.NUMBERS["clone"]), (0x20, 0, 0, 16), (0x45, 0, 1, kernel.CLONE_NEW_ANY)]
    steps += [(0x06, 0, 0, refuse), (0x06, 0, 0, 0x7FFF0000)]
    return b"".join(struct.pack("=HBBI", *step) for step in steps)


def share(full: bool, first: int, every: int) -> str:
    """Return the attacks to try: all in full, else one in so many."""
    names = CORE.split()
    return " ".join(names if full else names[first::every])


def expect_all_failed(told: dict[str, Any], attacks: dict[str, Any], readable: Path, names: str) -> None:
    """Look that no attack came to anything, that each ended as it must, and that the next program was right."""
    assert set(names.split()) == set(told["results"]), told
    for name, (status, stdout, error, next_status, next_stdout, same) in told["results"].items():
        tried = attacks["ATTACKS"][name]
        assert "BREACH" not in stdout, (name, stdout)
        assert status in tried.ends, (name, status, error)
        assert not tried.completes or stdout.endswith("tried\n"), (name, stdout, error)
        assert ("ok", "c b\n") == (next_status, next_stdout), name
        assert same, f"{name}: the zygote ended"
    outside = readable / "outside"
    assert "what lies outside\n" == (outside / "secret").read_text()
    assert ["empty", "secret"] == sorted(os.listdir(outside))
    assert 0o666 == (outside / "secret").stat().st_mode & 0o7777


def namespaces_work(readable: Path, attacks: dict[str, Any], *, as_nobody: bool) -> bool:
    """Whether this machine gives that user namespaces."""
    return "unavailable" not in client(readable, attacks, "strict", as_nobody=as_nobody, names="fork")


@pytest.mark.parametrize("level", ["standard", "strict"])
def test_attacks_fail_as_nobody(readable: Path, attacks: dict[str, Any], level: str, full: bool) -> None:
    """An unprivileged user gets both levels, and the attacks fail at each."""
    if level == "strict" and not namespaces_work(readable, attacks, as_nobody=True):
        pytest.skip("this machine gives unprivileged users no namespaces")
    names = share(full, first=2 * (level == "strict"), every=4)
    told = client(readable, attacks, level, as_nobody=True, names=names)
    assert level == told["level"]
    expect_all_failed(told, attacks, readable, names)


@pytest.mark.cases(1)
@pytest.mark.parametrize("as_nobody", [False, True], ids=["own-user", "nobody"])
def test_attacks_fail_in_docker(readable: Path, attacks: dict[str, Any], as_nobody: bool, full: bool) -> None:
    """Where namespaces are refused, auto gives standard, and the attacks fail."""
    names = share(full, first=int(as_nobody), every=2)  # of the two cases together: all
    told = client(readable, attacks, "auto", as_nobody=as_nobody, in_docker=True, names=names)
    assert "standard" == told["level"]
    expect_all_failed(told, attacks, readable, names)


@pytest.mark.parametrize("as_nobody", [False, True], ids=["own-user", "nobody"])
def test_strict_is_refused_in_docker(readable: Path, attacks: dict[str, Any], as_nobody: bool) -> None:
    """Where namespaces are refused, strict is refused with the call that failed, and not replaced by less."""
    told = client(readable, attacks, "strict", as_nobody=as_nobody, in_docker=True)
    assert {} == told["results"]
    assert "'strict'" in told["unavailable"]
    assert "unshare: Operation not permitted" in told["unavailable"]


def test_auto_gives_the_best_that_is_proved(readable: Path, attacks: dict[str, Any]) -> None:
    """Auto gives strict where strict works."""
    expected = "strict" if namespaces_work(readable, attacks, as_nobody=False) else "standard"
    with Sandbox(workers=1) as sandbox:
        assert expected == str(sandbox.level)
        assert expected == sandbox.run("pass").level


# Explicit requests for less.


@pytest.mark.parametrize("level", ["seccomp-only", "none"])
def test_less_isolation_is_warned_of_at_each_start_and_stamped(level: str) -> None:
    """Each start warns, naming the level and what is lost, and each result carries it."""
    for _ in range(2):
        with pytest.warns(UserWarning, match=f"'{level}', on explicit request"):
            sandbox = Sandbox(level=level, workers=1).start()
        with sandbox:
            assert level == str(sandbox.level)
            assert [level] * 3 == [result.level for result in sandbox.run_many(["print(1)", "1 / 0", "#" * (2 << 20)])]
            assert level == sandbox.call("def f(x): return x", "f", [(1,)]).level


@pytest.mark.parametrize("level", ["auto", "standard", "strict"])
def test_isolation_is_not_warned_of(level: str) -> None:
    """The levels that isolate warn of nothing."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with Sandbox(level=level, workers=1) as sandbox:
            assert "1\n" == sandbox.run("print(1)").stdout


def test_seccomp_only_keeps_system_calls_refused(attacks: dict[str, Any]) -> None:
    """At seccomp-only files are open, and the attacks by system calls still fail."""
    names = """
        tcp-connect fork exec ptrace kill-the-zygote kill-the-client io-uring bpf mount unshare-and-setns
        execute-from-memory signals-to-threads clone-and-vfork loosen-the-filter
    """
    numbers = {**kernel.NUMBERS, **attacks["EXTRA_NUMBERS"][kernel.MACHINE], **attacks["NEW_NUMBERS"]}
    world = {"client": os.getpid(), "parent": os.getppid(), "victim": os.getpid(), "numbers": numbers, "tcp": 9}
    with pytest.warns(UserWarning, match="can read this user's files"):
        sandbox = Sandbox(level="seccomp-only", workers=1).start()
    with sandbox:
        assert "True\n" == sandbox.run("print(len(open('/etc/passwd').read()) > 0)").stdout
        for name in names.split():
            tried = attacks["ATTACKS"][name]
            result = sandbox.run(attacks["program"](tried), args=[json.dumps(world)], limits=tried.limits)
            attacks["expect_no_breach"](result, tried)


def test_none_still_limits_and_recovers() -> None:
    """Without isolation limits hold, and where the code ends the zygote, the next evaluation works."""
    with pytest.warns(UserWarning, match="not isolated at all"):
        sandbox = Sandbox(level="none", workers=1, limits=Limits(timeout_s=60, memory_bytes=256 << 20)).start()
    with sandbox:
        assert ExecutionStatus.TIMEOUT == sandbox.run("while True: pass", limits=Limits(timeout_s=1)).status
        assert ExecutionStatus.MEMORY == sandbox.run("bytes(1 << 40)").status
        killing = sandbox.run("import os; os.kill(os.getppid(), 9); import time; time.sleep(60)")
        assert ExecutionStatus.INFRASTRUCTURE == killing.status
        assert "1\n" == sandbox.run("print(1)").stdout


# The probe.


@pytest.mark.parametrize("level", ["auto", "standard", "strict"])
@pytest.mark.parametrize("part", [probe.FILES, probe.SYSTEM])
def test_a_probe_attack_that_succeeds_is_named(monkeypatch: pytest.MonkeyPatch, level: str, part: str) -> None:
    """Where an attack succeeds there is no sandbox, at auto neither with less isolation; the error names the attack."""
    monkeypatch.setitem(probe.ATTACKS, "add one and one", (part, "1 + 1"))
    with pytest.raises(SandboxUnavailableError, match="it is possible to add one and one") as refusal:
        Sandbox(level=level, workers=1).start()
    assert repr(level) in str(refusal.value)


def test_a_probe_that_cannot_be_run_is_no_proof(monkeypatch: pytest.MonkeyPatch) -> None:
    """An attack that ends the probe is not taken for one that failed."""
    for end in ("os._exit(0)", "exec('raise SystemExit(0)')", "1 / 0", "os.abort()"):
        monkeypatch.setitem(probe.ATTACKS, "end the probe", (probe.SYSTEM, end))
        with pytest.raises(SandboxUnavailableError, match="could not be tried"):
            Sandbox(level="standard", workers=1).start()


def test_the_probes_attacks_succeed_without_a_jail(monkeypatch: pytest.MonkeyPatch) -> None:
    """The attacks are attacks: most of them succeed where nothing isolates."""
    monkeypatch.delitem(probe.ATTACKS, "trace a process")  # whose success would stop the probe
    with pytest.warns(UserWarning, match="not isolated"):
        sandbox = Sandbox(level="none", workers=1, limits=Limits(memory_bytes=1 << 31)).start()
    with sandbox:
        found = probe.succeeded(lambda source: sandbox.run(source).stdout, Level.STANDARD)
    always = {"read a file outside", "open a TCP socket", "start a process", "make an anonymous file to execute"}
    always |= {"map memory that stays when it is unmapped", "wait for several descriptors at once"}
    always |= {"give a thread a table of descriptors of its own"}
    assert always <= set(found), found


def test_attacks_of_each_level() -> None:
    """All are tried at the levels that isolate, those on files not at seccomp-only, none at none."""
    assert set(probe.ATTACKS) == set(probe.attacks_on(Level.STRICT)) == set(probe.attacks_on(Level.STANDARD))
    assert {n for n, (part, _) in probe.ATTACKS.items() if part == probe.SYSTEM} == set(
        probe.attacks_on(Level.SECCOMP_ONLY)
    )
    assert {} == probe.attacks_on(Level.NONE)


def test_other_systems_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a system whose calls are not known there is no sandbox, and the error names it."""
    monkeypatch.setattr(kernel, "NUMBERS", {})
    with pytest.raises(SandboxUnavailableError, match="Linux on x86_64 and aarch64 only"):
        Sandbox(workers=1).start()


def test_a_filter_can_be_entered_only_whole() -> None:
    """A program that the kernel does not take is an error, not a jail without a filter."""
    code = "from sandbox.jail import bpf; bpf.Installer(bytes(8)).enter()"
    assert seccomp.base_filter()
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert 1 == done.returncode
    assert "seccomp: Invalid argument" in done.stderr
