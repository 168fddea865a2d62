"""Completions that try to pass without the answer: none does.

The right answers hold a token drawn anew for each run of these tests, so a check that passes means that the
completion cheated: it lied about equality, silenced the judge, wrote the verdict itself, or found the token.
Each attack stands against calls of a function, programs, and assert-style tests, at both levels; the ones that
can be tried there are first shown to fool a judge that shares its process with the completion.
"""

from __future__ import annotations

import random
import re
import secrets
from collections.abc import Iterator
from typing import NamedTuple

import pytest

from builtin_rewards.code import code_tests
from sandbox import (
    CheckReport,
    ExecutionStatus,
    FunctionCheck,
    Limits,
    ProgramCheck,
    Sandbox,
    check_asserts,
    check_functions,
    check_programs,
)
from sandbox.errors import SandboxUnavailableError

pytestmark = pytest.mark.slow  # a minute or two

TOKEN = f"TOKEN-{secrets.token_hex(8)}"
NUMBER = random.SystemRandom().uniform(1.0, 2.0)
LIMITS = Limits(timeout_s=1.0)

EQUAL = f"assert candidate(1) == {TOKEN!r}"
CLOSE = f"assert abs(candidate(1) - {NUMBER!r}) < 1e-9"
IS_TEXT = f"assert isinstance(candidate(1), str) and candidate(1) == {TOKEN!r}"
LISTED = f"assert candidate(1) == [{TOKEN!r}, {NUMBER!r}] and len(candidate(1)) == 2"
MAPPED = f"assert candidate(1) == {{{TOKEN!r}: {NUMBER!r}}}"
EACH = f"assert all(candidate(n) == {TOKEN!r} for n in (1, 2))"
EACH_BY_MAP = f"assert all(map(lambda n: candidate(n) == {TOKEN!r}, (1, 2)))"


class Attack(NamedTuple):
    """A completion that cheats.

    Attributes:
        source: It; defines ``solve``.
        fools: An assert that it passes where it shares a process with its judge; ``""`` for none.
    """

    source: str
    fools: str = ""


HUNT = """
import re
pattern = re.compile("TOKEN-" + "[0-9a-f]{16}")
def hunt(things):
    for thing in things:
        if isinstance(thing, str):
            found = pattern.search(thing)
            if found:
                return found[0]
        elif isinstance(thing, (tuple, list)):
            found = hunt(list(thing)[:1000]) if len(thing) < 100_000 else None
            if found:
                return found
        elif isinstance(thing, dict):
            found = hunt([one for one in list(thing.values()) if isinstance(one, (str, tuple))])
            if found:
                return found
        elif hasattr(thing, "co_consts"):
            found = hunt(thing.co_consts)
            if found:
                return found
"""
FRAMES = """
import json, os
def frame(message):
    body = message if isinstance(message, bytes) else json.dumps(message).encode()
    return len(body).to_bytes(4, "little") + body
def send(data, descriptors=(5,)):
    for descriptor in descriptors:
        try:
            os.write(descriptor, data)
        except OSError:
            pass
"""
LIAR = """
class Liar({base}):
    def __eq__(self, other): return True
    def __ne__(self, other): return False
    def __lt__(self, other): return True
    __gt__ = __le__ = __ge__ = __contains__ = __lt__
    def __hash__(self): return 1
    def __sub__(self, other): return self
    __rsub__ = __add__ = __radd__ = __mul__ = __rmul__ = __getitem__ = __sub__
    def __abs__(self): return self
    def __bool__(self): return True
    def __len__(self): return 2
    def __iter__(self): return iter(())
    def __instancecheck__(self, other): return True
    def __reduce_ex__(self, protocol):
        import os
        return os._exit, (0,)
    def __repr__(self): return "True"
    __str__ = __repr__
def solve(n):
    return Liar({value})
"""
OF_SANDBOX = "import sys\nfrom sandbox import plain\nfrom sandbox.inside import asserts, runner\n"

ATTACKS = {
    # Values that lie.
    "object-equal-to-everything": Attack(LIAR.format(base="object", value=""), EQUAL),
    "str-that-lies": Attack(LIAR.format(base="str", value="'x'"), IS_TEXT),
    "int-that-lies": Attack(LIAR.format(base="int", value="0"), CLOSE),
    "float-that-lies": Attack(LIAR.format(base="float", value="0"), CLOSE),
    "list-that-lies": Attack(LIAR.format(base="list", value="[1]"), LISTED),
    "tuple-that-lies": Attack(LIAR.format(base="tuple", value="(1,)"), EQUAL),
    "dict-that-lies": Attack(LIAR.format(base="dict", value="{}"), MAPPED),
    "bytes-that-lie": Attack(LIAR.format(base="bytes", value="b'x'"), EQUAL),
    "exception-that-lies": Attack(LIAR.format(base="Exception", value=""), EQUAL),
    "object-of-a-lying-class": Attack(
        """
class Meta(type):
    def __eq__(cls, other): return True
    def __hash__(cls): return hash(str)
    def __instancecheck__(cls, other): return True
class Liar(metaclass=Meta):
    __class__ = str
    def __eq__(self, other): return True
    def __hash__(self): return 1
    tolist = lambda self: Liar()
Liar.__module__ = "numpy"
Liar.__name__ = Liar.__qualname__ = "str"
def solve(n):
    return Liar()
""",
        IS_TEXT,
    ),
    "class-in-place-of-a-value": Attack(
        """
class Meta(type):
    def __eq__(cls, other): return True
    __hash__ = type.__hash__
class Liar(metaclass=Meta): pass
def solve(n):
    return Liar
""",
        EQUAL,
    ),
    "nan-and-infinities": Attack(
        "def solve(n):\n    return [float('nan'), float('inf'), -float('inf'), complex('nanj')][n % 4]\n"
    ),
    # Names and modules of the process.
    "builtins-rebound": Attack(
        """
import builtins
builtins.abs = lambda x: 0
for name in ("all", "isinstance", "sorted", "any", "str", "repr", "hash", "set", "map"):
    setattr(builtins, name, lambda *a, **k: True)
builtins.len = lambda x: 2
builtins.AssertionError = type("Quiet", (BaseException,), {})
def solve(n):
    return 0.0
""",
        CLOSE,
    ),
    "all-rebound": Attack("import builtins\nbuiltins.all = lambda things: True\ndef solve(n): pass\n", EACH),
    "names-that-the-tests-use": Attack(
        """
class Math:
    isclose = staticmethod(lambda *a, **k: True)
math = colorsys = Math()
abs = lambda x: 0
sorted = all = isinstance = str = repr = lambda *a, **k: True
len = lambda x: 2
__check__ = __builtins__
TOKEN = token = expected = 0.0
def solve(n):
    return 0.0
""",
        CLOSE,
    ),
    "check-and-candidate-defined": Attack(
        """
def check(candidate): return None
def test(): return True
class Everything(dict):
    def __missing__(self, name): return True
candidate = check
__all__ = ["check", "candidate"]
METADATA = Everything()
def solve(n): return True
"""
    ),
    "json-replaced": Attack(
        """
import json, json.encoder, json.decoder
forged = '{"call": 0, "value": true, "check": 0, "passed": true, "done": true, "run": 0, "ran": 0, "code": 0}'
for module in (json, json.encoder, json.decoder):
    for name in list(vars(module)):
        if callable(getattr(module, name)) and not isinstance(getattr(module, name), type):
            setattr(module, name, lambda *a, **k: forged)
json.JSONEncoder.encode = json.JSONEncoder.iterencode = lambda *a, **k: forged
json.JSONDecoder.decode = lambda *a, **k: {"number": 1, "function": "solve", "arguments": [], "keywords": {}}
def solve(n): return True
"""
    ),
    "plain-replaced": Attack(
        OF_SANDBOX
        + """
plain.encode = lambda value, depth=0: {"str": "same"}
plain.decode = lambda tree, depth=0: [1]
plain._WRITERS = ()
def solve(n): return True
"""
    ),
    "inside-replaced": Attack(
        OF_SANDBOX
        + """
forged = {"check": 0, "passed": True, "done": True, "calls": 9, "plan": []}
runner._reply = lambda names, asked: {"number": asked["number"], "value": True, **forged}
runner._answer = lambda function, arguments, keywords, number: runner._dumps({"call": number, "value": True, **forged})
runner.describe = lambda error: {"type": "AssertionError", "kinds": ["StopIteration"], "message": "", "line": None}
asserts._Check.__exit__ = lambda *a: True
asserts.run = lambda request: 0
runner.send(forged)
runner.emit(forged)
def solve(n): raise ValueError
"""
    ),
    "functions-changed-in-place": Attack(
        """
import gc
def forged(*arguments, **keywords):
    return {"number": 1, "value": True, "call": 0, "check": 0, "passed": True}
for thing in gc.get_objects():
    try:
        if thing.__module__.startswith("sandbox") and thing.__name__ in ("_reply", "encode", "_describe", "judge"):
            thing.__code__ = forged.__code__
    except Exception:
        continue
def solve(n): return True
"""
    ),
    "modules-planted": Attack(
        """
import os, sys, types
for name in ("colorsys", "sitecustomize", "tests", "random", "math", "json", "sandbox", "secrets"):
    try:
        with open(name + ".py", "w") as file:
            file.write("import builtins, os\\nbuiltins.all = builtins.abs = lambda x: 0\\nos._exit(0)\\n")
        os.makedirs(name, exist_ok=True)
        open(name + "/__init__.py", "w").write("import os; os._exit(0)")
    except OSError:
        continue
sys.path.insert(0, os.getcwd())
class Finder:
    def find_spec(*arguments): os._exit(0)
sys.meta_path.insert(0, Finder)
sys.modules["colorsys"] = types.SimpleNamespace()
def solve(n): return True
"""
    ),
    # Looking for the answer.
    "frames-walked": Attack(
        HUNT
        + """
import sys
def solve(n):
    frame = sys._getframe()
    while frame is not None:
        found = hunt([frame.f_code, frame.f_globals, frame.f_locals])
        if found:
            return found
        frame = frame.f_back
""",
        EQUAL,
    ),
    "traceback-walked": Attack(
        HUNT
        + """
import sys
def solve(n):
    try:
        raise ValueError
    except ValueError as error:
        frame = error.__traceback__.tb_frame
    for frames in [frame, *sys._current_frames().values()]:
        while frames is not None:
            found = hunt([frames.f_code, dict(frames.f_globals), dict(frames.f_locals)])
            if found:
                return found
            frames = frames.f_back
""",
        EQUAL,
    ),
    "garbage-collector-asked": Attack(
        HUNT
        + """
import gc
def solve(n):
    gc.unfreeze()
    for thing in gc.get_objects():
        found = hunt([thing, getattr(thing, "__code__", None)])
        if found:
            return found
""",
        EQUAL,
    ),
    "referrers-asked": Attack(
        HUNT
        + """
import gc
def solve(n):
    seen, near = set(), [n, solve, __builtins__]
    for _ in range(4):
        near = [one for one in gc.get_referrers(*near) if id(one) not in seen][:2000]
        seen.update(map(id, near))
        found = hunt(near)
        if found:
            return found
""",
        EQUAL,
    ),
    "trace-function": Attack(
        HUNT
        + """
import sys, threading
found = None
def trace(frame, event, argument):
    global found
    found = found or hunt([frame.f_code, argument])
    return trace
sys.settrace(trace)
threading.settrace(trace)
def solve(n):
    return found
""",
        EQUAL,
    ),
    "profile-function": Attack(
        HUNT
        + """
import sys
found = None
def profile(frame, event, argument):
    global found
    found = found or hunt([frame.f_code, frame.f_locals])
sys.setprofile(profile)
def solve(n):
    return found
""",
        EQUAL,
    ),
    "memory-searched": Attack(
        """
import ctypes, os, re
libc = ctypes.CDLL(None)
libc.sbrk.restype = ctypes.c_void_p
pattern = re.compile(b"TOKEN-" + b"[0-9a-f]{16}")
reader, writer = os.pipe()
def solve(n):
    places = [(id(object()) & -4096) - (1 << 23), (libc.sbrk(0) & -4096) - (1 << 23)]
    for start in places:
        for page in range(start, start + (1 << 24), 4096):
            if libc.write(writer, ctypes.c_void_p(page), 4096) == 4096:
                found = pattern.search(os.read(reader, 4096))
                if found:
                    return found[0].decode()
""",
        EQUAL,
    ),
    "proc-searched": Attack(
        HUNT
        + """
import os
def solve(n):
    for process in ("self", "thread-self", *range(1, 400), os.getppid(), os.getpid() + 1):
        for name in ("environ", "cmdline", "maps", "mem", *(f"fd/{number}" for number in range(10))):
            try:
                with open(f"/proc/{process}/{name}", "rb") as file:
                    found = hunt([file.read(1 << 20).decode("latin-1")])
            except OSError:
                continue
            if found:
                return found
"""
    ),
    "arguments-and-environment-read": Attack(
        HUNT
        + """
import os, sys
def solve(n):
    return hunt([sys.argv, sys.orig_argv, dict(os.environ), sys.flags, vars(sys), sys.path, sys._xoptions])
"""
    ),
    "descriptors-read": Attack(
        HUNT
        + """
import os
def solve(n):
    for descriptor in range(64):
        for read in (lambda: os.pread(descriptor, 1 << 20, 0), lambda: os.read(descriptor, 9999)):
            try:
                found = hunt([read().decode("latin-1")])
            except OSError:
                continue
            if found:
                return found
"""
    ),
    "files-read": Attack(
        HUNT
        + f"""
import os
def solve(n):
    for folder in {[__file__.rpartition("/")[0], "/tmp", "/dev/shm", "/dev/fd", "..", "/"]!r}:
        for name in os.listdir(folder) if os.access(folder, os.R_OK) else []:
            try:
                with open(os.path.join(folder, name), "rb") as file:
                    found = hunt([file.read(1 << 20).decode("latin-1")])
            except OSError:
                continue
            if found:
                return found
"""
    ),
    "types-returned": Attack(
        """
def solve(n):
    return (str, int, float, list, dict, bool, type(None), Exception, StopIteration, [str], {str: float})[n % 11]
"""
    ),
    "types-that-are-none": Attack(
        FRAMES
        + """
names = ["exit", "eval", "type", "object", "SystemExit", "__import__", "candidate", "str.__eq__", "", None, 1, ["str"]]
def solve(n):
    send(frame({"number": n, "value": {"type": names[n % 12]}, "arguments": [{"type": "str"}]}))
"""
    ),
    # Silencing the judge.
    "sys-exit": Attack("import sys\ndef solve(n):\n    sys.exit(0)\n", EQUAL),
    "os-exit-when-called": Attack("import os\ndef solve(n):\n    os._exit(0)\n", EQUAL),
    "os-exit-when-loaded": Attack("import os\nos._exit(0)\n", EQUAL),
    "exit-handler": Attack(
        FRAMES
        + """
import atexit, weakref
forged = {"check": 0, "passed": True, "done": True, "calls": 9, "call": 0, "value": True, "ran": 0, "code": 0}
@atexit.register
def leave():
    send(json.dumps(forged).encode() + b"\\n", range(3, 10))
    os._exit(0)
class Last:
    def __del__(self): leave()
last = Last()
weakref.finalize(last, leave)
def solve(n): return True
"""
    ),
    "exception-hook": Attack(
        """
import os, sys, threading
sys.excepthook = sys.unraisablehook = threading.excepthook = lambda *a: os._exit(0)
def solve(n): raise ValueError
"""
    ),
    "alarm": Attack(
        """
import os, signal
for number in range(1, 32):
    try:
        signal.signal(number, lambda *a: os._exit(0))
    except (OSError, ValueError):
        continue
def solve(n):
    signal.setitimer(signal.ITIMER_REAL, 0.001)
    while True: pass
""",
        EQUAL,
    ),
    "stop-iteration": Attack("def solve(n):\n    raise StopIteration\n", EACH_BY_MAP),
    "exceptions-of-lying-types": Attack(
        """
class Meta(type):
    def mro(cls): return [cls, StopIteration, GeneratorExit, SystemExit, *super().mro()[1:]]
    __name__ = "StopIteration"
class Sly(BaseException, metaclass=type):
    __class__ = AssertionError
    def __str__(self): raise SystemExit(0)
    def __eq__(self, other): return True
    __hash__ = None
def solve(n):
    if n % 4 == 0: raise Sly(0)
    if n % 4 == 1: raise GeneratorExit
    if n % 4 == 2: raise type("StopIteration", (StopAsyncIteration,), {})(0)
    raise ExceptionGroup("", [SystemExit(0)]) if n % 4 == 3 else KeyboardInterrupt
"""
    ),
    "recursion-and-memory": Attack(
        """
import sys
sys.setrecursionlimit(10 ** 9)
def deep(n): return deep(n)
def solve(n):
    return deep(n) if n % 2 else [0] * 10 ** 10
"""
    ),
    "hang": Attack("import time\ndef solve(n):\n    while True: time.sleep(1)\n"),
    # Writing the verdict.
    "expected-words-printed": Attack(
        """
import sys
class Out:
    def write(self, text): return len(text)
    def flush(self): pass
def solve(n):
    for stream in (sys.stdout, sys.stderr, sys.__stdout__, sys.__stderr__):
        stream.write("OK\\npassed\\nPASSED\\nAll tests passed\\n1 passed in 0.00s\\n{'passed': true}\\nTrue\\n")
        stream.flush()
    sys.stdout = sys.__stdout__ = Out()
    return True
"""
    ),
    "result-lines": Attack(
        FRAMES
        + """
lines = [{"done": True, "calls": 99}, {"plan": [["assert True", False]]}, {"loaded": True, "names": []}]
for n in range(40):
    lines += [{"check": n, "passed": True}, {"call": n, "value": True, "ok": True, "passed": True}]
    lines += [{"run": n, "out": 0, "err": 0}, {"ran": n, "out": 0, "err": 0, "code": 0, "raised": None}]
data = b"".join(json.dumps(line).encode() + b"\\n" for line in lines)
for n in range(3, 10):
    for act in (lambda: os.ftruncate(n, 0), lambda: os.lseek(n, 0, 0), lambda: os.pwrite(n, data, 0)):
        try:
            n != 5 and act()
        except OSError:
            continue
send(data, [3, 4, 6, 7, 8, 9])
def solve(n):
    send(data, [3, 4, 6, 7, 8, 9])
    return None if n else os._exit(0)
"""
    ),
    "result-lines-and-away": Attack(
        FRAMES
        + """
data = b'\\n{"check":0,"passed":true}\\n{"done":true,"calls":1}\\n{"call":0,"value":true}\\n{"ran":0,"code":0}\\n'
send(data, range(3, 64))
os._exit(0)
"""
    ),
    "frames-early": Attack(
        FRAMES
        + """
send(frame({"loaded": True, "raised": None, "names": ["solve"]}))
for n in range(40):
    send(frame({"number": n, "value": True, "check": n, "passed": True, "done": True}))
def solve(n): return None
"""
    ),
    "frames-twice": Attack(
        FRAMES
        + """
def solve(n):
    for number in range(n, n + 3):
        send(frame({"number": number, "value": True, "arguments": [True], "keywords": {}}))
"""
    ),
    "frames-that-make-no-sense": Attack(
        FRAMES
        + """
odd = [b"[" * 100_000, b"{}", b"null", b"NaN", b"\\xff\\xfe", b"1" * 9999, b'{"number": 1e999}']
odd += [json.dumps({"number": number, "value": value, "arguments": value, "keywords": value}).encode()
        for number in (1, 1.0, True, "1") for value in ({"int": "0x"}, {"dict": [[1]]}, {"set": [[]]}, {"float": "x"},
        {"__class__": "str"}, {"tuple": {}}, {"bytes": "zz"}, {"a": 1, "b": 2}, {"complex": []}, [{"dict": 3}])]
def solve(n):
    send(frame(odd[n % len(odd)]))
"""
    ),
    "frames-that-never-end": Attack(
        FRAMES
        + """
def solve(n):
    send(b"\\xff\\xff\\xff\\x7f" if n % 2 else b"\\x00\\x00\\x00\\x01")
    while True:
        os.write(5, bytes(1 << 16))
"""
    ),
    "hello-with-every-name": Attack(
        FRAMES
        + f"""
names = ["solve", "candidate", "check", "__check__", "__builtins__", "abs", "math", "all", "colorsys", {TOKEN[:5]!r}]
send(frame({{"loaded": True, "raised": None, "names": names}}))
while True:
    asked = os.read(5, 1 << 16)
    send(frame({{"number": 1, "value": True, "arguments": [[]], "keywords": {{}}}}))
    if not asked: os._exit(0)
"""
    ),
    "errors-that-the-judge-builds": Attack(
        FRAMES
        + """
kinds = ["StopIteration", "SystemExit", "KeyboardInterrupt", "exit", "eval", "UnicodeDecodeError", "Warning"]
def solve(n):
    raised = {"type": {"a": 1}, "kinds": kinds[n % len(kinds):], "message": ["os._exit(0)"], "line": "x"}
    send(frame({"number": n, "raised": raised if n % 3 else kinds}))
"""
    ),
    "threads-that-answer": Attack(
        FRAMES
        + """
import threading, time
def answer():
    while True:
        for n in range(1, 20):
            send(frame({"number": n, "value": True}))
            send(json.dumps({"call": n, "value": True, "check": n, "passed": True}).encode() + b"\\n", [4])
        time.sleep(0.001)
for _ in range(4):
    try:
        threading.Thread(target=answer, daemon=True).start()
    except RuntimeError:
        pass
def solve(n):
    return True
"""
    ),
    "child-that-answers": Attack(
        FRAMES
        + """
def split():
    for act in (os.fork, lambda: os.posix_spawn("/bin/true", ["true"], {})):
        try:
            if act() == 0:
                for n in range(1, 40):
                    send(frame({"number": n, "value": True}))
                    line = json.dumps({"check": n, "passed": True, "call": n, "value": True})
                    send(line.encode() + b"\\n", [3, 4, 6, 7])
                os._exit(0)
        except OSError:
            pass
split()
def solve(n):
    split()
    return True
"""
    ),
    "descriptors-closed": Attack("import os\nos.closerange(0, 99)\ndef solve(n): return True\n"),
    "descriptors-changed": Attack(
        """
import fcntl, os, socket
for descriptor in range(10):
    for act in (
        lambda: fcntl.fcntl(descriptor, fcntl.F_SETFL, os.O_APPEND | os.O_NONBLOCK),
        lambda: fcntl.fcntl(descriptor, 1033, 15),
        lambda: fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB),
        lambda: os.lseek(descriptor, 1 << 20, 0),
        lambda: os.dup2(4, descriptor) if descriptor not in (4, 5) else None,
    ):
        try:
            act()
        except OSError:
            continue
def solve(n): return True
"""
    ),
    "half-closed": Attack(
        """
import os, socket
try:
    peer = socket.socket(fileno=5)
    socket.send_fds(peer, [b"\\x02\\x00\\x00\\x00{}"], [0, 1, 2, 4])
    peer.shutdown(socket.SHUT_RD)
except OSError:
    pass
def solve(n): return True
"""
    ),
    # Values that are too much.
    "huge-values": Attack("def solve(n):\n    return 'x' * 9_000_000 if n % 2 else list(range(500_000))\n"),
    "deep-values": Attack(
        """
def solve(n):
    value = []
    for _ in range(10 ** (n % 6)):
        value = (value,) if n % 2 else [value]
    return value
"""
    ),
    "endless-values": Attack(
        """
class Endless(list):
    def __iter__(self):
        while True: yield 1
def solve(n):
    ring = Endless()
    ring.append(ring)
    return ring
"""
    ),
    "values-of-one-hash": Attack(
        FRAMES
        + """
alike = {"set": [(2 ** 61 - 1) * k for k in range(20_000)]}
def solve(n):
    send(json.dumps({"call": 0, "value": alike}).encode() + b"\\n", [4])
    send(frame({"number": n, "value": alike}))
    return 1 << 3_000_000
"""
    ),
}


@pytest.fixture(scope="module", params=["standard", "strict"])
def sandbox(request: pytest.FixtureRequest) -> Iterator[Sandbox]:
    """One at each level that is a boundary."""
    try:
        sandbox = Sandbox(level=request.param, workers=1).start()
    except SandboxUnavailableError as fault:
        pytest.skip(f"this machine does not give level {request.param!r}: {fault}")
    with sandbox:
        yield sandbox


CHECK = f"""
def check(candidate):
    import colorsys
    import math
    assert candidate(1) == {TOKEN!r}
    assert not candidate(2) != {TOKEN!r}
    assert {TOKEN!r} in [candidate(3)]
    assert {{{TOKEN!r}: 1}}.get(candidate(4)) == 1
    assert candidate(5).endswith({TOKEN!r})
    assert abs(candidate(6) - {NUMBER!r}) < 1e-9
    assert math.isclose(candidate(7), {NUMBER!r})
    assert candidate(8) == [{TOKEN!r}, {NUMBER!r}]
    assert sorted(candidate(9)) == [{TOKEN!r}]
    assert all(map(lambda n: candidate(n) == {TOKEN!r}, range(10, 13)))
    assert isinstance(candidate(13), str) and str(candidate(13)) == {TOKEN!r}
    for n in range(3):
        wanted = [{TOKEN!r}]
        try:
            found = candidate(n)
        except Exception:
            found = None
        assert found == wanted[0]
    assert repr(candidate(15)) == {TOKEN!r}.__repr__()
    assert colorsys.rgb_to_hls(*candidate(16)) == ({NUMBER!r}, 0, 0)
    try:
        assert candidate(17) == {TOKEN!r}
    except ZeroDivisionError:
        pass
    assert hash(candidate(18)) == hash({TOKEN!r})
"""
LINES = [f"assert solve({n}) == {TOKEN!r}" for n in range(4)] + [
    f"assert abs(solve(4) - {NUMBER!r}) < 1e-9",
    f"assert math.isclose(solve(5), {NUMBER!r})",
    f"assert set(solve(6)) == {{{TOKEN!r}}} and len(solve(6)) == 1",
]
FUNCTIONS = [
    FunctionCheck([1], TOKEN),
    FunctionCheck([2], NUMBER),
    FunctionCheck([3], NUMBER, rel_tol=1e-6),
    FunctionCheck([4], [TOKEN, NUMBER], abs_tol=1e-6),
    FunctionCheck([5], {TOKEN: NUMBER}),
    FunctionCheck([6], (TOKEN,)),
    FunctionCheck([7], {TOKEN}),
    FunctionCheck([8], int(TOKEN[6:], 16)),
    FunctionCheck({"n": 9}, TOKEN.encode()),
]
PROGRAMS = [ProgramCheck(f"{n}\n", f"{TOKEN}\n") for n in (1, 2)]
MAIN = "\nprint(solve(int(input())))\n"
HONEST = f"def solve(n):\n    return {TOKEN!r} if n else None\n"


def _functions(sandbox: Sandbox, source: str) -> CheckReport:
    return check_functions(sandbox, source, "solve", FUNCTIONS, limits=LIMITS)


def _programs(sandbox: Sandbox, source: str) -> CheckReport:
    return check_programs(sandbox, source + MAIN, PROGRAMS, limits=LIMITS)


def _functions_apart(sandbox: Sandbox, source: str) -> CheckReport:
    return check_functions(sandbox, source, "solve", FUNCTIONS, limits=LIMITS, check_timeout_s=0.5)


def _programs_in_time(sandbox: Sandbox, source: str) -> CheckReport:
    return check_programs(sandbox, source + MAIN, PROGRAMS, limits=LIMITS, check_timeout_s=0.5)


def _check(sandbox: Sandbox, source: str) -> CheckReport:
    return check_asserts(sandbox, source, CHECK, entry_point="solve", limits=LIMITS)


def _lines(sandbox: Sandbox, source: str) -> CheckReport:
    return check_asserts(sandbox, source, LINES, setup="import math", limits=LIMITS)


KINDS = {
    "functions": _functions,
    "programs": _programs,
    "functions, each in its time": _functions_apart,
    "programs, each in its time": _programs_in_time,
    "check": _check,
    "lines": _lines,
}


def _kinds(sandbox: Sandbox, attack: str, full: bool) -> list[str]:
    """Return the kinds of checks to try an attack on: all in full, else one a level, in turn."""
    if full:
        return list(KINDS)
    place = list(ATTACKS).index(attack) + 2 * (sandbox.level == "strict")
    return [list(KINDS)[(place + place // len(KINDS)) % len(KINDS)]]


EVERY = 4
CASES = [
    *(("strict", name) for name in ATTACKS),
    *(
        pytest.param("standard", name, marks=[pytest.mark.full] if place % EVERY else [])
        for place, name in enumerate(ATTACKS)
    ),
]
"""All at strict; one in four at standard, where the verdicts are read in the same way, and all with ``--full``."""


@pytest.mark.parametrize(("sandbox", "attack"), CASES, indirect=["sandbox"])
def test_no_verdict_is_forged(sandbox: Sandbox, attack: str, full: bool) -> None:
    """No check is passed without the answer; the completions after it are judged rightly."""
    for kind in _kinds(sandbox, attack, full):
        report = KINDS[kind](sandbox, ATTACKS[attack].source)
        assert 0 == report.passed < report.total, (kind, report)
        assert ExecutionStatus.INFRASTRUCTURE is not report.execution.status, kind
        honest = check_asserts(sandbox, HONEST, LINES[:2])
        assert (1, 2) == (honest.passed, honest.total), (kind, honest)
        assert 0 == KINDS[kind](sandbox, "def solve(n):\n    pass\n").passed, kind


STUB = 'import math\n\n\ndef known(n):\n    return n\n\n\ndef solve(n):\n    """Give the token."""\n'
BLOCK = "```python\n{}```\n"
LEND = "def solve(n):\n    return lend(n)\n"


def _lent(attack: str) -> str:
    """An attack whose function goes by another name."""
    return re.sub(r"\bsolve\b", "lend", ATTACKS[attack].source)


SHAPES = {
    "after a wrong one": lambda attack: BLOCK.format(LEND) + BLOCK.format(ATTACKS[attack].source),
    "usage alone": lambda attack: BLOCK.format("def solve(n):\n    return None\n") + BLOCK.format(_lent(attack)),
    "in another block": lambda attack: BLOCK.format(_lent(attack)) + BLOCK.format(LEND),
    "behind a body": lambda attack: "    return lend(n)\n\n" + _lent(attack) + "\nknown = check = candidate = lend\n",
}
"""Completions of several blocks, or that go on from a prompt, with an attack in them."""


@pytest.mark.parametrize("sandbox", ["strict"], indirect=True)  # how blocks are put together is the same at each
@pytest.mark.parametrize(
    "attack", [pytest.param(name, marks=[pytest.mark.full] if n % 2 else []) for n, name in enumerate(ATTACKS)]
)
def test_no_verdict_is_forged_from_another_block_or_behind_the_prompt(
    sandbox: Sandbox, attack: str, full: bool
) -> None:
    """However the blocks of a completion are put together, the prompt's helpers stay the tests', and none passes."""
    shapes = list(SHAPES) if full else [list(SHAPES)[list(ATTACKS).index(attack) // 2 % len(SHAPES)]]
    tests = CHECK.replace("(1) ==", "(known(1)) ==")
    for shape in shapes:
        completion = SHAPES[shape](attack)
        quick = code_tests(limits=LIMITS)
        for given in ({"tests": tests, "entry_point": "solve"}, {"tests": "\n".join(LINES), "setup": "import math"}):
            score = quick(completion=completion, sandbox=sandbox, prompt=STUB, **given)
            assert score.value == 0.0, (shape, score)


SHARED = """
names = {{"__name__": "solution"}}
exec(compile({source!r}, "main.py", "exec"), names)
names["candidate"] = names["solve"]
tests = {tests!r}
exec(compile(tests, "tests.py", "exec"), names)
"""


@pytest.mark.parametrize("sandbox", ["strict"], indirect=True)
@pytest.mark.parametrize("attack", [name for name, attack in ATTACKS.items() if attack.fools])
def test_the_attack_is_real(sandbox: Sandbox, attack: str) -> None:
    """Where completion and tests share a process, and exit code 0 is a pass, it does pass."""
    source, fools = ATTACKS[attack]
    control = sandbox.run(SHARED.format(source=source, tests=fools))
    assert (ExecutionStatus.OK, 0) == (control.status, control.exit_code), control
    wrong = sandbox.run(SHARED.format(source="def solve(n): pass", tests=fools))
    assert ExecutionStatus.NONZERO is wrong.status


@pytest.mark.parametrize("kind", KINDS)
def test_a_child_process_answers_for_nobody(kind: str) -> None:
    """Where processes may be started, children forge no verdict either."""
    try:
        sandbox = Sandbox(level="strict", workers=1, limits=Limits(processes=4)).start()
    except SandboxUnavailableError as fault:
        pytest.skip(f"this machine does not give level 'strict': {fault}")
    with sandbox:
        report = KINDS[kind](sandbox, ATTACKS["child-that-answers"].source)
        assert 0 == report.passed < report.total, report


def test_what_is_found_in_memory_is_not_another_evaluation(sandbox: Sandbox) -> None:
    """A token that earlier completions held in their source and values is not there for the next one."""
    secret = f"TOKEN-{secrets.token_hex(8)}"
    holder = f"def solve(n):\n    return [{secret!r}] * 1000\n"
    for _ in range(3):
        assert check_functions(sandbox, holder, "solve", [FunctionCheck([1], [secret] * 1000)]).all_passed
        assert check_asserts(sandbox, holder, f"assert solve(1) == [{secret!r}] * 1000").all_passed
    for hunter in ("memory-searched", "garbage-collector-asked", "descriptors-read", "files-read"):
        value = sandbox.call(ATTACKS[hunter].source, "solve", [[1]]).value
        assert value is not None
        assert value[0].value is None, hunter
