"""Chains of attack: code that starves, outlives or misleads who ends it and cleans up after it, at both levels."""

from __future__ import annotations

import contextlib
import os
import signal
import stat
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest
from hostile import EXCHANGE, FILES, FORKS, RAW_THREADS, SPIN, needs_machine_code
from other_user import ask
from patience import alive, wait_for

from sandbox import ExecutionStatus, Limits, Sandbox
from sandbox.errors import PoolClosedError
from sandbox.folders import remove, sweep
from sandbox.inside import children
from sandbox.inside.zygote import MAX_THREADS
from sandbox.jail import kernel, probe, scratch
from sandbox.jail.levels import Level
from sandbox.process import GRACE_S, ZygoteProcess

LIMITS = Limits(timeout_s=60, memory_bytes=256 << 20)
OK, TIMEOUT, FORBIDDEN = ExecutionStatus.OK, ExecutionStatus.TIMEOUT, ExecutionStatus.FORBIDDEN
LEVELS = ["standard", "strict"]


@pytest.fixture(params=LEVELS)
def own(request: pytest.FixtureRequest) -> Iterator[Sandbox]:
    """A sandbox with one zygote, of this test alone."""
    with Sandbox(level=request.param, workers=1, limits=LIMITS) as sandbox:
        yield sandbox


@pytest.fixture(scope="module", params=LEVELS)
def shared(request: pytest.FixtureRequest) -> Iterator[Sandbox]:
    """A sandbox with one zygote, for tests that break nothing."""
    with Sandbox(level=request.param, workers=1, limits=LIMITS) as sandbox:
        yield sandbox


ONE_LEVEL = pytest.mark.parametrize("own", ["strict", pytest.param("standard", marks=pytest.mark.full)], indirect=True)
"""Of tests of the supervision alone, which is the same at each level: at standard with ``--full``."""

# Files outside.

TRIALS = """
import json, os, signal, sys, time
asked = json.load(sys.stdin)
sys.path.insert(0, asked["root"])
from sandbox import Limits, Sandbox
from sandbox.errors import SandboxUnavailableError
outside = asked["outside"]
def look():
    found = [(outside, os.stat(outside).st_mode)]
    for path, folders, files in os.walk(outside):
        found += [(os.path.join(path, name), os.stat(os.path.join(path, name)).st_mode) for name in folders + files]
    return sorted(found)
def interrupt(*_):
    raise KeyboardInterrupt
signal.signal(signal.SIGALRM, interrupt)
told = {"user": os.getuid(), "harmed": 0, "ends": {}}
try:
    with Sandbox(level=asked["level"], workers=1) as sandbox:
        sandbox.run("pass")
        for number in range(asked["trials"]):
            os.makedirs(outside + "/folder", exist_ok=True)
            for name in (*(f"f{n}" for n in range(100)), "folder/f0"):
                open(os.path.join(outside, name), "w").close()
            os.chmod(outside, 0o755)
            before = look()
            end = "interrupted"
            try:
                if asked["way"] == "ctrl-c":
                    signal.setitimer(signal.ITIMER_REAL, 0.05 + 0.01 * (number % 5))
                result = sandbox.run(asked["source"], args=[json.dumps({"outside": outside})],
                                     limits=Limits(timeout_s=0.2 if asked["way"] == "deadline" else 60))
                end = str(result.status)
                signal.setitimer(signal.ITIMER_REAL, 0)
            except KeyboardInterrupt:
                pass
            told["ends"][end] = told["ends"].get(end, 0) + 1
            told["harmed"] += before != look()
        after = sandbox.run("import os; print(os.listdir())")
        told["after"] = [str(after.status), after.stdout]
except SandboxUnavailableError as error:
    told["unavailable"] = str(error)
print(json.dumps(told))
"""


@needs_machine_code
@pytest.mark.slow
@pytest.mark.parametrize(
    ("level", "as_nobody", "way"),
    [
        pytest.param(
            level, as_nobody, way, id=f"{level}-{'nobody' if as_nobody else 'own-user'}-{way}",
            marks=[] if (level == "strict") ^ as_nobody ^ (way == "ctrl-c") else [pytest.mark.full],
        )
        for level in LEVELS for as_nobody in (False, True) for way in ("ctrl-c", "deadline")
    ],
)  # fmt: skip
def test_files_outside_are_as_before(readable: Path, full: bool, level: str, as_nobody: bool, way: str) -> None:
    """Code that exchanges its directories with links while it is ended has nothing outside removed or changed."""
    outside = Path(tempfile.mkdtemp(prefix="outside-", dir="/tmp"))
    if as_nobody and os.getuid() == 0:
        os.chown(outside, 65534, 65534)
    asked = {
        "root": str(readable), "level": level, "way": way, "outside": str(outside), "trials": 200 if full else 4,
        "source": RAW_THREADS + EXCHANGE,
    }  # fmt: skip
    try:
        told = ask([TRIALS], asked, as_nobody=as_nobody)
    finally:
        subprocess.run(["rm", "-rf", outside], check=True)
    if "unavailable" in told:
        pytest.skip("this machine gives unprivileged users no namespaces")
    assert 0 == told["harmed"], told
    assert ["ok", "[]\n"] == told["after"]
    assert {"interrupted" if way == "ctrl-c" else "timeout"} == set(told["ends"]), told


def exchanging(folder: Path, outside: Path) -> subprocess.Popen[bytes]:
    """Start a process that exchanges directories in a folder with links to what lies outside, for ever."""
    for number in range(8):
        (folder / f"a{number}" / "inner").mkdir(parents=True)
        for inner in range(100):
            (folder / f"a{number}" / f"f{inner}").touch()
        (folder / f"b{number}").symlink_to(outside)
    source = (
        "import ctypes, os, sys\nos.chdir(sys.argv[1])\nlibc = ctypes.CDLL(None)\nprint(flush=True)\nwhile True:\n"
        "    for n in range(8): libc.syscall(int(sys.argv[2]), -100, b'a%d' % n, -100, b'b%d' % n, 2)"
    )
    command = [sys.executable, "-c", source, folder, str(kernel.NUMBERS["renameat2"])]
    process = subprocess.Popen(command, stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline()
    return process


def look_and_empty(folder: Path) -> None:
    """Look at what a folder holds, and empty it."""
    opened = os.open(folder, os.O_RDONLY)
    try:
        with contextlib.suppress(OSError):
            scratch.check_used(opened, 1 << 20)
        scratch.empty(opened)
    finally:
        os.close(opened)
    folder.rmdir()


@pytest.mark.parametrize("way", [look_and_empty, lambda folder: remove(str(folder))], ids=["zygote", "client"])
def test_emptying_follows_no_link(tmp_path: Path, way: Callable[[Path], None], full: bool) -> None:
    """However directories are exchanged with links meanwhile, nothing outside is listed, changed or removed."""
    outside = tmp_path / "outside"
    (outside / "inner").mkdir(parents=True)
    for number in range(100):
        (outside / f"f{number}").touch()
    (outside / "inner").chmod(0o500)
    for number in range(20 if full else 2):
        folder = tmp_path / str(number)
        folder.mkdir(mode=0o700)
        with exchanging(folder, outside) as other:
            way(folder)
            other.kill()
        assert 101 == len(os.listdir(outside))
        assert 0o500 == stat.S_IMODE((outside / "inner").stat().st_mode)
        assert not folder.exists()


def test_directories_that_cannot_be_read_are_emptied(tmp_path: Path) -> None:
    """Modes hinder the emptying at no depth, and as little do names that it uses itself."""
    inner = tmp_path
    for number in range(150):
        inner = inner / f".moved-{number % 3}"
        inner.mkdir()
        (inner / "file").touch()
    (tmp_path / "locked" / "in").mkdir(parents=True)
    for path, mode in ((tmp_path / "locked" / "in", 0), (tmp_path / "locked", 0o300), (inner, 0o300)):
        path.chmod(mode)
    opened = os.open(tmp_path, os.O_RDONLY)
    os.listdir(opened)  # from where it has been read up to, there would be nothing
    scratch.empty(opened)
    os.close(opened)
    assert [] == list(tmp_path.iterdir())


@pytest.mark.parametrize("newer", [False, True], ids=["by-place", "by-name"])
def test_a_lock_is_taken_off_a_directory_and_never_behind_a_link(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, newer: bool
) -> None:
    """Also on kernels that cannot change a mode without following links."""
    if not newer:
        monkeypatch.setattr(kernel, "syscall", lambda *_: (_ for _ in ()).throw(PermissionError(1, "not there")))
    (tmp_path / "locked").mkdir(mode=0)
    (tmp_path / "outside").mkdir(mode=0o500)
    (tmp_path / "link").symlink_to(tmp_path / "outside")
    parent = os.open(tmp_path, os.O_RDONLY)
    monkeypatch.setattr(scratch, "_open_inner", lambda *_: (_ for _ in ()).throw(PermissionError(13, "not to be read")))
    scratch._unlock(parent, "locked")
    with contextlib.suppress(OSError):
        scratch._unlock(parent, "link")
    os.close(parent)
    assert 0o700 == stat.S_IMODE((tmp_path / "locked").stat().st_mode)
    assert 0o500 == stat.S_IMODE((tmp_path / "outside").stat().st_mode)


def test_the_helper_may_touch_its_folder_alone(tmp_path: Path) -> None:
    """Who empties a folder for a client could not write elsewhere, whatever it came upon."""
    if Level.STANDARD and not scratch.landlock.abi():
        pytest.skip("this kernel has no Landlock")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "file").touch()
    source = (
        "import os\nfrom sandbox.jail import scratch\n"
        "def attack(folder):\n    os.unlink('file', dir_fd=folder)\n    os.rmdir(os.environ['OUTSIDE'])\n"
        "scratch.empty = attack\nscratch.main(3)"
    )
    outside = tmp_path / "outside"
    outside.mkdir()
    opened = os.open(tmp_path / "folder", os.O_RDONLY)
    child = os.posix_spawn(
        sys.executable, [sys.executable, "-c", source],
        {**os.environ, "OUTSIDE": str(outside), "PYTHONPATH": os.pathsep.join(sys.path)},
        file_actions=[(os.POSIX_SPAWN_DUP2, opened, 50), (os.POSIX_SPAWN_DUP2, 50, 3)],
    )  # fmt: skip
    os.close(opened)
    assert 1 == os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert [] == os.listdir(tmp_path / "folder")
    assert outside.is_dir()


def test_only_private_folders_of_this_user_are_swept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What others may have put into the temporary directory under such a name is left as it is."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with subprocess.Popen(["true"]) as dead:
        pass
    name = f"rewardkit-test-{os.stat('/proc/self/ns/pid').st_ino}-{dead.pid}-"
    for kind, mode in (("ours", 0o700), ("open", 0o755), ("target", 0o700), ("theirs", 0o700)):
        (tmp_path / (kind if kind == "target" else name + kind)).mkdir(mode=mode)
    for folder in list(tmp_path.iterdir()):
        (folder / "file").touch()
    (tmp_path / f"{name}link").symlink_to(tmp_path / "target")
    if os.getuid() == 0:
        os.chown(tmp_path / f"{name}theirs", 1, 1)
    sweep("rewardkit-test-")
    left = {name + kind for kind in ("open", "link", *(("theirs",) if os.getuid() == 0 else ()))}
    assert {*left, "target"} == set(os.listdir(tmp_path))
    assert ["file"] == os.listdir(tmp_path / "target")
    assert ["file"] == os.listdir(tmp_path / f"{name}open")


def test_a_folder_that_is_no_more_is_removed_in_silence(tmp_path: Path) -> None:
    """Two clients may sweep at once."""
    remove(str(tmp_path / "gone"))
    assert [] == list(tmp_path.iterdir())


# Who ends what.


def group(process: int) -> list[psutil.Process]:
    """Return the processes of a zygote's group that can still do something."""
    found = []
    for one in psutil.process_iter():
        with contextlib.suppress(psutil.Error, ProcessLookupError):
            if os.getpgid(one.pid) == process and one.status() != psutil.STATUS_ZOMBIE:
                found.append(one)
    return found


@pytest.mark.parametrize("zygote", ["alive", "killed", "stopped"])
def test_closing_leaves_no_process_and_no_folder(own: Sandbox, zygote: str) -> None:
    """Once a sandbox is closed amid an evaluation, all that ran in it is gone, and its files too."""
    source = "import os, threading, time\nthreading.stack_size(1 << 16)\n"
    source += "for n in range(50): threading.Thread(target=time.sleep, args=(600,)).start()\n"
    source += "os.makedirs('a/b')\nwhile True: open('a/b/c', 'w').close()"

    def run() -> None:
        with contextlib.suppress(PoolClosedError):
            own.run(source)

    own.run("pass")
    (process,) = own.processes
    thread = threading.Thread(target=run)
    thread.start()
    idle = 1 if own.level == "strict" else 0
    assert wait_for(lambda: len(group(process)) > 2 + idle)
    before = group(process)
    if zygote != "alive":
        os.kill(process, signal.SIGKILL if zygote == "killed" else signal.SIGSTOP)
    own._closed = True  # what was killed is not to be replaced
    own.close()
    assert [] == group(process)
    thread.join()
    assert [] == alive(before)
    assert [] == list(Path(tempfile.gettempdir()).glob(f"rewardkit-jail-*-{os.getpid()}-*"))


@ONE_LEVEL
def test_late_code_is_late_whoever_does_not_say_so(own: Sandbox) -> None:
    """A zygote that is held up under an evaluation costs a timeout, once, and the next evaluation is right."""
    limits = Limits(timeout_s=2)
    own.run("pass", limits=limits)
    (zygote,) = own.processes
    inner = psutil.Process(zygote).children()[0] if own.level == "strict" else psutil.Process(zygote)
    with ThreadPoolExecutor(1) as thread:
        late = thread.submit(own.run, "import time; time.sleep(600)", limits=limits)
        assert wait_for(lambda: len(inner.children()) == 2)  # the evaluation, and the next one's child
        inner.suspend()
        result = late.result()
    assert (TIMEOUT, "not done within 2 s") == (result.status, result.error)
    assert [] == own.processes
    assert (OK, "42\n") == ((after := own.run("print(6 * 7)")).status, after.stdout)


@ONE_LEVEL
def test_a_machine_that_stands_still_costs_no_zygote(own: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where client and zygote both miss the end of an evaluation's time, the zygote may still report it."""
    hear, stands = ZygoteProcess._hear, [True]
    own.run("pass")
    before = own.processes

    def hears(zygote: ZygoteProcess, timeout_s: float) -> bytes:
        if stands:
            stands.clear()
            os.killpg(zygote.process, signal.SIGSTOP)
            time.sleep(timeout_s + 2 * GRACE_S)
            threading.Timer(GRACE_S / 4, os.killpg, (zygote.process, signal.SIGCONT)).start()
            raise TimeoutError
        return hear(zygote, timeout_s)

    monkeypatch.setattr(ZygoteProcess, "_hear", hears)
    assert TIMEOUT == own.run("import time; time.sleep(600)", limits=Limits(timeout_s=0.2)).status
    assert before == own.processes


@pytest.mark.parametrize("stands", [1, children.PARTS])
def test_who_stands_still_while_it_waits_loses_a_part_of_the_wait(monkeypatch: pytest.MonkeyPatch, stands: int) -> None:
    """What is waited for has no time meanwhile either; but nobody waits for ever."""
    waits: list[float] = []

    class Late:
        def register(self, *_: int) -> None:
            """Take whatever is to be waited for."""

        def poll(self, patience_ms: float) -> list[int]:
            waits.append(patience_ms)
            return [] if len(waits) <= stands else [1]

    monkeypatch.setattr(children, "select", SimpleNamespace(poll=Late, POLLIN=1))
    assert (stands < children.PARTS) == children.wait_readable(0, 0.6)
    assert [600 / children.PARTS] * min(stands + 1, children.PARTS) == waits


@needs_machine_code
@pytest.mark.slow
@pytest.mark.parametrize("level", LEVELS)
def test_nothing_holds_up_its_supervisor(full: bool, level: str) -> None:
    """Threads, forks and full directories are told as what they are, in time, and the next evaluation is right."""
    ends = {TIMEOUT, FORBIDDEN, ExecutionStatus.OUTPUT_LIMIT, ExecutionStatus.NONZERO}
    times = 1000 if full else 8
    with Sandbox(level=level, workers=1, limits=LIMITS) as sandbox:
        for number in range(times):
            source = (EXCHANGE, SPIN, FILES, FORKS)[number % 4]
            forks = 16 if source is FORKS and level == "strict" else 1
            limits = Limits(timeout_s=0.2, processes=forks)
            began = time.monotonic()
            result = sandbox.run(RAW_THREADS + source, args=['{"outside": "/tmp"}'], limits=limits)
            assert result.status in ends, result
            assert time.monotonic() - began < 20, "its supervisor was held up"
            if number % 4 == 3:
                assert "1\n" == sandbox.run("print(1)").stdout
        processes = sandbox.processes
    assert [] == [one for process in processes for one in group(process)]


# Threads.


@needs_machine_code
@pytest.mark.parametrize("flags", [0x10F00, 0x3D0B00, 0x3D0D00, 0x3D0F00 & ~0x40000])
def test_a_thread_with_a_table_of_its_own_is_none(shared: Sandbox, flags: int) -> None:
    """Threads share descriptors, folder and all else: otherwise each would have limits of its shared."""
    result = shared.run(RAW_THREADS + f"print(start(3, [endless(24)], {flags}), ctypes.get_errno())")
    assert (OK, "0") == (result.status, result.stdout.split()[0]), result


@needs_machine_code
def test_threads_are_bounded(shared: Sandbox) -> None:
    """There are only so many at once, whoever the user is: the kernel starts no more, or the zygote ends it."""
    sleep = f"endless({kernel.NUMBERS['pause']})" if "pause" in kernel.NUMBERS else ""
    result = shared.run(RAW_THREADS + f"print(start(3000, [{sleep}]), flush=True)\ntime.sleep(2)\nos._exit(0)")
    if result.status is FORBIDDEN:
        assert f"more than {MAX_THREADS} threads" == result.error
    else:
        assert "strict" == shared.level
        assert MAX_THREADS <= int(result.stdout) <= MAX_THREADS + 10
    assert "1\n" == shared.run("print(1)").stdout


@ONE_LEVEL
def test_a_hundred_threads_are_allowed(own: Sandbox) -> None:
    """A program that uses many threads as programs do works as ever."""
    source = """
import threading
from concurrent.futures import ThreadPoolExecutor
threading.stack_size(1 << 17)
gate = threading.Barrier(100)
with ThreadPoolExecutor(100) as pool:
    print(sum(pool.map(lambda n: gate.wait() * 0 + n, range(100))))
"""
    for _ in range(3):
        result = own.run(source)
        assert (OK, "4950\n") == (result.status, result.stdout), result


# What outlives an evaluation.

MARKS = """
import os
print([(os.fstat(n).st_size, os.fstat(n).st_mtime_ns, os.fstat(n).st_atime_ns) for n in (1, 2, 4)])
here = os.stat(".")
print(here.st_size, here.st_nlink, here.st_mtime_ns, here.st_atime_ns, here.st_mode)
"""
TRACES = {
    "files-that-are-gone": "for n in range(500): os.mkdir('n' * 200 + str(n))\nfor n in os.listdir(): os.rmdir(n)",
    "files": "for n in range(500): os.mkdir('n' * 200 + str(n))",
    "a-look": "os.listdir()",
    "output": "os.write(2, b'x'); os.write(4, b'x'); os.ftruncate(2, 0); os.ftruncate(4, 0)",
    "locks": "import fcntl\nfor n in (0, 1, 2, 4): fcntl.flock(n, fcntl.LOCK_EX)",
}


@pytest.mark.parametrize("trace", TRACES)
def test_an_evaluation_leaves_no_trace(shared: Sandbox, trace: str) -> None:
    """Sizes, times and numbers of links of what evaluations share are for each as they were for the first."""
    first = shared.run(MARKS)
    assert OK == shared.run(f"import os\n{TRACES[trace]}").status
    assert (OK, first.stdout) == ((after := shared.run(MARKS)).status, after.stdout)


def test_locks_are_taken_back() -> None:
    """A lock on a shared descriptor would be seen by whoever opens the file again."""
    with Sandbox(level="standard", workers=1, limits=LIMITS) as sandbox:
        look = (
            "import fcntl, os\nagain = os.open('/proc/self/fd/1', os.O_RDWR)\n"
            "fcntl.flock(again, fcntl.LOCK_EX | fcntl.LOCK_NB)\nprint('free')"
        )
        for _ in range(2):
            assert "free\n" == (seen := sandbox.run(look)).stdout, seen
            assert OK == sandbox.run("import fcntl\nfcntl.flock(1, fcntl.LOCK_EX)").status


def test_the_directory_above_cannot_be_changed(shared: Sandbox) -> None:
    """Nothing can be left beside the directory that each evaluation is given."""
    source = """
import os
def tried(act):
    try:
        act()
    except OSError:
        return
    print("BREACH", act)
tried(lambda: open("../f", "w"))
tried(lambda: os.mkdir("../d"))
tried(lambda: os.rename(".", "../other"))
tried(lambda: os.rename(os.getcwd(), os.path.dirname(os.getcwd()) + "/other"))
tried(lambda: os.rmdir(os.getcwd()))
tried(lambda: os.symlink("x", "../link"))
tried(lambda: os.utime("..", (1, 1)))
tried(lambda: os.chmod("..", 0o777))
"""
    result = shared.run(source)
    assert (OK, "") == (result.status, result.stdout), result
    assert "[]\n" == shared.run("import os; print(os.listdir())").stdout


# What tells of the host.


def test_the_host_is_not_told_of(shared: Sandbox) -> None:
    """Neither its name, nor its load, nor the command line of the zygote; what programs ask for still answers."""
    source = """
import ctypes, os, platform, socket, sys, uuid
libc = ctypes.CDLL(None, use_errno=True)
print(sys.orig_argv, os.uname().nodename, platform.node(), platform.system(), bool(uuid.uuid4()))
print(libc.uname(bytes(1024)), libc.sysinfo(bytes(1024)))
try:
    print(socket.gethostname())
except OSError:
    print("refused")
"""
    result = shared.run(source)
    assert OK == result.status, result
    assert "[] jail jail Linux True\n-1 -1\nrefused\n" == result.stdout
    assert os.uname().nodename not in result.stdout.split()


def test_nobody_is_told_who_is_at_the_other_end(shared: Sandbox) -> None:
    """A pair of sockets sends and receives, and gives no process, no counter and no data out of band."""
    source = """
import socket
ours, theirs = socket.socketpair()
ours.sendall(b"plain")
print(theirs.recv(10, socket.MSG_PEEK), theirs.recv(10), ours.getsockopt(socket.SOL_SOCKET, socket.SO_TYPE))
for act in (lambda: ours.send(b"x", socket.MSG_OOB), lambda: theirs.recv(1, socket.MSG_OOB | socket.MSG_DONTWAIT),
            lambda: ours.getsockopt(1, 77), lambda: ours.getsockopt(1, socket.SO_PEERCRED, 12),
            lambda: ours.getsockopt(1, 57, 8)):
    try:
        print("BREACH", act())
    except PermissionError:
        pass
"""
    result = shared.run(source)
    assert (OK, "b'plain' b'plain' 1\n") == (result.status, result.stdout), result


@pytest.mark.skipif(kernel.MACHINE != "x86_64", reason="only that machine has these calls")
@pytest.mark.parametrize("number", [335, 336])
def test_calls_of_probes_come_to_nothing(shared: Sandbox, number: int) -> None:
    """The kernel lets them past every filter since Linux 6.14; who calls them without a probe is ended or refused."""
    source = f"import ctypes\nlibc = ctypes.CDLL(None, use_errno=True)\nprint(libc.syscall({number}, 0, 0, 0))"
    result = shared.run(source)
    assert result.signal == signal.SIGILL or "-1\n" == result.stdout, result
    assert "1\n" == shared.run("print(1)").stdout


def test_the_probes_file_has_a_name_that_nobody_can_foresee(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the proof of a level tries to write cannot stand there already, and does not stay where it succeeds."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    name = "write outside its directory"
    monkeypatch.setattr(probe, "ATTACKS", {name: probe.ATTACKS[name]})
    with pytest.warns(UserWarning, match="not isolated"):
        sandbox = Sandbox(level="none", workers=1, limits=Limits(memory_bytes=1 << 31)).start()
    sources: list[str] = []

    def run(source: str) -> str:
        sources.append(source)
        return sandbox.run(source).stdout

    with sandbox:
        assert [[name]] * 2 == [probe.succeeded(run, Level.STANDARD) for _ in range(2)]
    assert sources[0] != sources[1]
    assert [] == list(tmp_path.glob("rewardkit-probe*"))
