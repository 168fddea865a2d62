"""Completions in other languages that write what drivers write, at random: none is right by it, and none harms another.

A failure names its seed: ``draw_completion(seed)`` gives the language and the source again.
"""

from __future__ import annotations

import random
import secrets
import time
from collections.abc import Iterator, Mapping
from typing import NamedTuple

import pytest
from fuzz_answers import draw_answers

from sandbox import CheckStatus, ExecutionStatus, FunctionCheck, Limits, Sandbox, check_functions, why_not_run

FULL_S, SHORT_S = 600.0, 4.0
PROCESSOR_S = 2.0
"""More than the documented bound, which is a second of the caller's processor for what an evaluation left."""
TOKEN = f"TOKEN-{secrets.token_hex(8)}"
HOSTILE = Limits(timeout_s=1.0, memory_bytes=512 << 20, output_bytes=1 << 20)
CHECKS = [FunctionCheck((number,), TOKEN) for number in range(3)]


class Writing(NamedTuple):
    """How a language does what a hostile completion would do; ``{fd}`` and ``{hex}`` are drawn.

    Attributes:
        acts: Statements.
        places: Sources with ``@`` where statements stand: at the start, in the call, late, at the end.
        right: A source that is right.
    """

    acts: tuple[str, ...]
    places: tuple[str, ...]
    right: str


_LUA_TEXT = '("{hex}"):gsub("..", function(c) return string.char(tonumber(c, 16)) end)'
_LUA_WRITE = (
    'for n = 1, 9 do local i = debug.getinfo(n, "f") for u = 1, i and 9 or 0 do'
    f' local _, f = debug.getupvalue(i.func, u) if io.type(f) == "file" then pcall(f.write, f,'
    f" ({_LUA_TEXT})) end end end"
)
_BASH_TEXT = "echo '{hex}' | sed 's/../\\\\x&/g'"
_BASH_WRITE = f'printf "$({_BASH_TEXT})" >&{{fd}}'
_JS_WRITE = 'try {{ require("fs").writeSync({fd}, Buffer.from("{hex}", "hex")) }} catch (e) {{}}'
WRITINGS: Mapping[str, Writing] = {
    "bash": Writing(
        (
            _BASH_WRITE,
            _BASH_WRITE + "; exit 0",
            f"(sleep 0.05; {_BASH_WRITE}) &",
            f"rewardkit_answer() {{{{ {_BASH_WRITE}; }}}}",
            "exec {fd}>&-",
            "read -r -t 1 -u {fd} line",
            "builtin() {{ :; }}; declare() {{ :; }}; exit() {{ :; }}",
        ),
        ("@@\nsolve() { echo 1; }", 'solve() { @@\necho "$1$1"; }', "trap '@@' EXIT\nsolve() { return 0; }"),
        f"solve() {{ echo '{TOKEN}'; }}",
    ),
    "javascript": Writing(
        (
            _JS_WRITE,
            _JS_WRITE + " process.exit(0);",
            'try {{ require("fs").closeSync({fd}) }} catch (e) {{}}',
            'try {{ require("fs").readSync({fd}, Buffer.alloc(65536)) }} catch (e) {{}}',
            'JSON.stringify = () => Buffer.from("{hex}", "hex").toString();',
            "Object.prototype.toJSON = function () {{ return 1 }};",
            "Buffer.from = () => Buffer.alloc(9, 10);",
            "Array.prototype.push = function () {{ return 0 }};",
            "throw {{ toString() {{ process.exit(0) }} }};",
        ),
        (
            "@\nfunction solve(n) { return 1 }",
            "function solve(n) { @ return new Proxy({}, { get() { return 1 } }) }",
            "process.on('exit', () => { @ });\nfunction solve(n) { return [n] }",
            "setTimeout(() => { @ }, 1);\nfunction solve(n) { return Promise.resolve(n) }",
        ),
        f"function solve(n) {{ return '{TOKEN}' }}",
    ),
    "ruby": Writing(
        (
            'begin; IO.for_fd({fd}, autoclose: false).syswrite(["{hex}"].pack("H*")); rescue Exception; end',
            'begin; IO.for_fd({fd}, autoclose: false).syswrite(["{hex}"].pack("H*")); rescue Exception; end; exit!(0)',
            "begin; IO.for_fd({fd}).close; rescue Exception; end",
            "begin; IO.for_fd({fd}, autoclose: false).sysread(65536); rescue Exception; end",
            'class Object; def to_json(*a) = ["{hex}"].pack("H*"); end',
            "class String; def ==(other) = true; end",
            "class Array; def each; self; end; end",
        ),
        ("@\ndef solve(n) = 1", "def solve(n)\n@\n[n]\nend", "at_exit { @ }\ndef solve(n) = {n => n}"),
        f"def solve(n) = '{TOKEN}'",
    ),
    "php": Writing(
        (
            '@fwrite(@fopen("php://fd/{fd}", "w"), hex2bin("{hex}"));',
            '@fwrite(@fopen("php://fd/{fd}", "w"), hex2bin("{hex}")); exit(0);',
            '@fread(@fopen("php://fd/{fd}", "r"), 65536);',
            'ob_start(fn($x) => hex2bin("{hex}"));',
            "set_error_handler(fn() => exit(0));",
        ),
        (
            "<?php\n@@ function solve($n) {{ return 1; }}",
            "<?php\nfunction solve($n) { @@ return [$n]; }",
            "<?php\nregister_shutdown_function(function () { @@ });\nfunction solve($n) { return null; }",
        ),
        f"<?php\nfunction solve($n) {{ return '{TOKEN}'; }}",
    ),
    "lua": Writing(
        (
            _LUA_WRITE,
            _LUA_WRITE + " os.exit(0)",
            f"io.stderr:write(({_LUA_TEXT}))",
            "io.stdin:close() io.stdout:close()",
            f"string.format = function() return ({_LUA_TEXT}) end table.concat = string.format",
            "local t = {{}} setmetatable(_G, {{ __index = function() return t end }})",
            "debug.sethook(function() os.exit(0) end, 'c')",
        ),
        (
            "do @ end\nfunction solve(n) return 1 end",
            "local function solve(n) do @ end return { n } end",
            "setmetatable({}, { __gc = function() @ end }) collectgarbage()\nfunction solve(n) return n, n end",
        ),
        f"function solve(n) return '{TOKEN}' end",
    ),
    "perl": Writing(
        (
            'if (open(my $f, "+>&=", {fd})) {{ syswrite $f, pack("H*", "{hex}") }}',
            'if (open(my $f, "+>&=", {fd})) {{ syswrite $f, pack("H*", "{hex}") }} exit 0;',
            'if (open(my $f, "<&=", {fd})) {{ sysread $f, my $text, 65536 }}',
            'if (open(my $f, "<&=", {fd})) {{ close $f }}',
            'no warnings; *RewardkitDriver::encode = sub {{ pack("H*", "{hex}") }};',
            '$\\ = pack("H*", "{hex}"); $, = $/ = "\\n";',
            "$SIG{{__DIE__}} = sub {{ exit 0 }}; die;",
        ),
        (
            "@@\nsub solve { return 1 }",
            "sub solve { my ($n) = @_; @@; return [$n] }",
            "END { @@ }\nsub solve { return {1 => 2} }",
            "BEGIN { @@ }\nsub solve { return }",
        ),
        f"sub solve {{ return '{TOKEN}' }}",
    ),
}


def draw_completion(seed: int) -> tuple[str, str]:
    """Return a language and a source in it."""
    dice = random.Random(seed)
    language = dice.choice(sorted(WRITINGS))
    writing = WRITINGS[language]
    statements = "\n".join(_statement(dice, writing) for _ in range(dice.randint(1, 3)))
    place = dice.choice(writing.places)
    return language, place.replace("@@" if language in ("bash", "perl", "php") else "@", statements)


def _statement(dice: random.Random, writing: Writing) -> str:
    data = draw_answers(dice.randrange(1 << 32))[0][: dice.choice((40, 400, 4_000, 40_000))]
    if dice.random() < 0.2:
        data = dice.randbytes(dice.choice((1, 64, 5_000)))
    return dice.choice(writing.acts).format(fd=dice.choice((0, 1, 2, 3, 4, 4, 4, 5, 6, 9)), hex=data.hex())


@pytest.fixture
def jail() -> Iterator[Sandbox]:
    with Sandbox(workers=1) as sandbox:
        yield sandbox


@pytest.mark.fuzz
def test_no_completion_is_right_by_what_it_writes(jail: Sandbox, full: bool) -> None:
    """Ten minutes in full: each fails by its own fault, in bounded time, and right code behind it is right."""
    languages = {language for language in WRITINGS if not why_not_run(language)}
    if not languages:
        pytest.skip(f"none of {', '.join(WRITINGS)} runs here")
    seed = secrets.randbits(32) if full else 0
    tried, end = 0, time.monotonic() + (FULL_S if full else SHORT_S)
    while time.monotonic() < end or tried < 3:
        seed += 1
        language, source = draw_completion(seed)
        if language not in languages:
            continue
        tried += 1
        began = time.thread_time()
        report = check_functions(jail, source, "solve", CHECKS, limits=HOSTILE, language=language)
        case = (f"seed {seed}", language, source[:2_000])
        assert 0 == report.passed < report.total, (case, report)
        assert ExecutionStatus.INFRASTRUCTURE is not report.execution.status, (case, report)
        assert CheckStatus.INFRASTRUCTURE not in {check.status for check in report.checks}, (case, report)
        assert time.thread_time() - began <= PROCESSOR_S, case
        honest = check_functions(jail, WRITINGS[language].right, "solve", CHECKS, language=language)
        assert honest.all_passed, (case, honest)
