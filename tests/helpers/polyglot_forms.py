"""How an act becomes a program and a function of each language, and what a right program and function are."""

from __future__ import annotations

from dataclasses import dataclass

from sandbox.languages.language import Suite


@dataclass(frozen=True)
class Form:
    """The texts of a language; ``@TOP@`` and ``@BODY@`` stand for an act's own, ``@`` in verbs for a path.

    Attributes:
        head: What the acts use, and what stands alone before an act that is a whole completion.
        program: Reads three numbers, and prints their sum where the act succeeds, else 0.
        function: Returns ``x * x + 1`` where the act succeeds, else 0; ``""`` where no function is called.
        reads: The body of an act that reads a file or lists a folder.
        writes: That of one that writes a file.
        runs: That of one that has a program print 42.
        honest_program: A right program.
        succeeds: The body of an act that always succeeds.
        honest_function: A right function.
        entry_point: The function's name.
        kin: Another language whose acts are acts in this one, too; ``""`` for none.
    """

    head: str
    program: str
    reads: str
    writes: str
    runs: str
    honest_program: str
    succeeds: str = "return 1;"
    function: str = ""
    honest_function: str = ""
    entry_point: str = "f"
    kin: str = ""


_CPP_HEAD = """#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <string>
#include <thread>
#include <vector>
#include <dlfcn.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
static int reads(const char* path) {
    char byte;
    int file = open(path, O_RDONLY);
    return file >= 0 && (read(file, &byte, 1) > 0 || errno == EISDIR);
}
static int writes(const char* path, const char* text = "x") {
    int file = open(path, O_CREAT | O_WRONLY, 0755);
    return file >= 0 && write(file, text, strlen(text)) > 0;
}
static void say(int file, const char* text) { if (write(file, text, strlen(text)) < 0) errno = 0; }
"""
_CPP = (
    _CPP_HEAD
    + """@TOP@
static int act() {
@BODY@
return 0; }
"""
)
_C_HEAD = """#define _GNU_SOURCE
#include <alloca.h>
#include <errno.h>
#include <fcntl.h>
#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/msg.h>
#include <sys/ptrace.h>
#include <sys/reboot.h>
#include <sys/resource.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/swap.h>
#include <sys/syscall.h>
#include <sys/time.h>
static int reads(const char* path) {
    char byte;
    int file = open(path, O_RDONLY);
    return file >= 0 && (read(file, &byte, 1) > 0 || errno == EISDIR);
}
static int writes(const char* path, const char* text) {
    int file = open(path, O_CREAT | O_WRONLY, 0755);
    return file >= 0 && write(file, text, strlen(text)) > 0;
}
static void say(int file, const char* text) { if (write(file, text, strlen(text)) < 0) errno = 0; }
"""
_C_SUM = """int main(void) { int a, b, c; if (scanf("%d %d %d", &a, &b, &c) != 3) return 1;
printf("%d\\n", @ANSWER@); }
"""
_C = (
    _C_HEAD
    + """@TOP@
static int act(void) {
@BODY@
return 0; }
"""
)
_JAVASCRIPT_HEAD = """const fs = require('fs');
const say = (file, text) => { try { fs.writeSync(file, text); } catch {} };
const tries = (call) => { try { return call() !== false; } catch (fault) { return fault.code === 'EISDIR'; } };
"""
_JAVASCRIPT = (
    _JAVASCRIPT_HEAD
    + """@TOP@
function act() { try { return (() => {
@BODY@
})() ? 1 : 0; } catch { return 0; } }
"""
)
_TYPESCRIPT = (
    _JAVASCRIPT_HEAD
    + """@TOP@
function act(): number { try { return (() => {
@BODY@
})() ? 1 : 0; } catch { return 0; } }
"""
)
_JAVA = """import java.io.*;
import java.lang.reflect.*;
import java.nio.*;
import java.nio.file.*;
import java.util.*;
class Acts {
    static void say(int number, String text) {
        try {
            Constructor<FileDescriptor> maker = FileDescriptor.class.getDeclaredConstructor(int.class);
            maker.setAccessible(true);
            FileOutputStream out = new FileOutputStream(maker.newInstance(number));
            out.write(text.getBytes());
            out.flush();
        } catch (Throwable fault) {}
    }
    static boolean reads(String path) throws Throwable {
        if (new File(path).list() != null) return true;
        try (FileInputStream in = new FileInputStream(path)) { return in.read() >= 0; }
    }
    static boolean writes(String path) throws Throwable {
        try (FileOutputStream out = new FileOutputStream(path)) { out.write(120); return true; }
    }
}
"""
_JAVA_ACT = """
@TOP@
    static int act() { try { if (System.nanoTime() != 0) {
@BODY@
    } return 0; } catch (Exception fault) { return 0; } catch (Throwable fault) { throw new Error(fault); } }
"""
_RUST_HEAD = """#![allow(warnings)]
use std::io::{Read, Write};
extern "C" {
    fn write(file: i32, text: *const u8, size: usize) -> isize;
    fn close(file: i32) -> i32;
    fn fork() -> i32;
    fn kill(process: i32, signal: i32) -> i32;
    fn getppid() -> i32;
    fn setsid() -> i32;
    fn ptrace(request: i64, process: i32, at: usize, data: usize) -> i64;
    fn unshare(flags: i32) -> i32;
    fn atexit(call: extern "C" fn()) -> i32;
    fn _exit(code: i32) -> !;
    fn dlopen(path: *const u8, flags: i32) -> *const u8;
    fn mmap(at: usize, size: usize, rights: i32, flags: i32, file: i32, from: i64) -> *mut u8;
}
fn reads(path: &str) -> bool {
    let has_text = |mut file: std::fs::File| file.read(&mut [0]).unwrap_or(0) > 0;
    std::fs::read_dir(path).is_ok() || std::fs::File::open(path).map_or(false, has_text)
}
fn say(file: i32, text: &str) { unsafe { write(file, text.as_ptr(), text.len()); } }
"""
_RUST = (
    _RUST_HEAD
    + """@TOP@
fn act() -> i32 { if std::env::args().count() > 0 {
@BODY@
} 0 }
"""
)
_RUST_SUM = """fn main() { let mut s = String::new(); std::io::stdin().read_to_string(&mut s).unwrap();
let n: i64 = s.split_whitespace().map(|w| w.parse::<i64>().unwrap()).sum(); println!("{}", @ANSWER@); }"""
_GO_HEAD = """package main
import (
    "fmt"
    "net"
    "os"
    "os/exec"
    "runtime"
    "runtime/debug"
    "strings"
    "syscall"
    "time"
    "unsafe"
)
var _, _, _, _, _ = net.Dial, exec.Command, runtime.GC, debug.FreeOSMemory, strings.Repeat
var _, _ = time.Sleep, unsafe.Sizeof(0)
func say(file int, text string) { syscall.Write(file, []byte(text)) }
func writes(path string) bool { return os.WriteFile(path, []byte("x"), 0644) == nil }
func reads(path string) bool {
    if _, fault := os.ReadDir(path); fault == nil { return true }
    file, fault := os.Open(path)
    if fault != nil { return false }
    size, _ := file.Read(make([]byte, 1))
    return size > 0
}
"""
_GO = (
    _GO_HEAD
    + """@TOP@
func act() int {
@BODY@
return 0 }
"""
)
_GO_SUM = "func main() { var a, b, c int; fmt.Scan(&a, &b, &c); sum := a + b + c\n@WRONG@ fmt.Println(sum) }\n"
_PERL_HEAD = """use strict; use warnings; use POSIX ();
sub reads { my $p = shift; return 1 if opendir(my $d, $p); open(my $f, '<', $p) or return 0; return defined(getc $f) }
sub writes { my $p = shift; open(my $f, '>', $p) or return 0; return print $f 'x' }
"""
_PERL = (
    _PERL_HEAD
    + """@TOP@
sub act {
@BODY@
;return 0; }
"""
)
_RUBY_HEAD = """def reads(path) = File.directory?(path) ? !Dir.children(path).nil? : !File.open(path).readbyte.nil?
def say(file, text) = (IO.for_fd(file, 'w', autoclose: false).syswrite(text) rescue nil)
"""
_RUBY = (
    _RUBY_HEAD
    + """@TOP@
def act
  return (begin
@BODY@
  rescue StandardError, NotImplementedError, LoadError
    false
  end)
end
"""
)
_PHP_HEAD = """<?php
function reads($path) {
    if (is_dir($path)) return (bool) @scandir($path);
    return (string) @file_get_contents($path, false, null, 0, 1) !== '';
}
function say($file, $text) { @file_put_contents("php://fd/$file", $text); }
"""
_PHP = (
    _PHP_HEAD
    + """@TOP@
function act() { try {
@BODY@
} catch (\\Exception $fault) {} return false; }
"""
)
_LUA_HEAD = """local function reads(path) local f = io.open(path) return f and f:read(1) end
local function writes(path) local f = io.open(path, 'w') return f and f:write('x') end
"""
_LUA = (
    _LUA_HEAD
    + """@TOP@
local function act() do
@BODY@
end return false end
"""
)
_BASH = """@TOP@
act() {
@BODY@
return 1
}
"""
_JAVASCRIPT_SUM = (
    "const [a, b, c] = require('fs').readFileSync(0, 'utf8').trim().split(' ').map(Number);\nconsole.log(@ANSWER@);\n"
)
_JAVA_SUM = (
    "public static void main(String[] words) { Scanner s = new Scanner(System.in);\n"
    "int sum = s.nextInt() + s.nextInt() + s.nextInt(); System.out.println(@ANSWER@); }"
)
FORMS = {
    "c": Form(
        head=_C_HEAD,
        program=_C + _C_SUM.replace("@ANSWER@", "act() ? a + b + c : 0"),
        function=_C + "int f(int x) { return act() ? x * x + 1 : 0; }\n",
        reads='return reads("@");',
        writes='return writes("@", "x");',
        runs='execl("@", "@", "42", (char*)0); execl("@", "@", "-c", "echo 42", (char*)0);',
        honest_program="#include <stdio.h>\n" + _C_SUM.replace("@ANSWER@", "a + b + c"),
        honest_function="int f(int x) { return x * x + 1; }",
    ),
    "cpp": Form(
        head=_CPP_HEAD,
        program=_CPP
        + "int main() { int a, b, c; std::cin >> a >> b >> c;\n"
        + "std::cout << (act() ? a + b + c : 0) << std::endl; }\n",
        function=_CPP + "int f(int x) { return act() ? x * x + 1 : 0; }\n",
        reads='return reads("@");',
        writes='return writes("@");',
        runs='execl("@", "@", "42", (char*)0); execl("@", "@", "-c", "echo 42", (char*)0);',
        honest_program="#include <iostream>\n"
        "int main() { int a, b, c; std::cin >> a >> b >> c; std::cout << a + b + c; }",
        honest_function="int f(int x) { return x * x + 1; }",
    ),
    "javascript": Form(
        head=_JAVASCRIPT_HEAD,
        program=_JAVASCRIPT + _JAVASCRIPT_SUM.replace("@ANSWER@", "act() ? a + b + c : 0"),
        function=_JAVASCRIPT + "function f(x) { return act() ? x * x + 1 : 0; }\n",
        reads="return tries(() => fs.readdirSync('@')) || tries(() => fs.readFileSync('@').length > 0);",
        writes="return tries(() => fs.writeFileSync('@', 'x'));",
        runs="require('child_process').execFileSync('@', ['42'], { stdio: 'inherit' });",
        honest_program=_JAVASCRIPT_SUM.replace("@ANSWER@", "a + b + c"),
        honest_function="function f(x) { return x * x + 1; }",
    ),
    "typescript": Form(
        head=_JAVASCRIPT_HEAD,
        program=_TYPESCRIPT + _JAVASCRIPT_SUM.replace("@ANSWER@", "act() ? a + b + c : 0"),
        function=_TYPESCRIPT + "function f(x: number): number { return act() ? x * x + 1 : 0; }\n",
        reads="return tries(() => fs.readdirSync('@')) || tries(() => fs.readFileSync('@').length > 0);",
        writes="return tries(() => fs.writeFileSync('@', 'x'));",
        runs="require('child_process').execFileSync('@', ['42'], { stdio: 'inherit' });",
        honest_program=_JAVASCRIPT_SUM.replace("@ANSWER@", "(a + b + c) as number"),
        honest_function="function f(x: number): number { return x * x + 1; }",
        kin="javascript",
    ),
    "java": Form(
        head=_JAVA,
        program=f"{_JAVA}public class Main {{{_JAVA_ACT}{_JAVA_SUM.replace('@ANSWER@', 'act() != 0 ? sum : 0')}}}\n",
        function=f"{_JAVA}class Solution {{{_JAVA_ACT}"
        "public int f(int x) { return act() != 0 ? x * x + 1 : 0; } }\n",
        reads='return Acts.reads("@") ? 1 : 0;',
        writes='return Acts.writes("@") ? 1 : 0;',
        runs='new ProcessBuilder("@", "42").inheritIO().start().waitFor();',
        honest_program=f"import java.util.*;\npublic class Main {{ {_JAVA_SUM.replace('@ANSWER@', 'sum')} }}\n",
        honest_function="class Solution { public int f(int x) { return x * x + 1; } }",
    ),
    "rust": Form(
        head=_RUST_HEAD,
        program=_RUST + _RUST_SUM.replace("@ANSWER@", "if act() != 0 { n } else { 0 }"),
        function=_RUST + "fn f(x: i32) -> i32 { if act() != 0 { x * x + 1 } else { 0 } }\n",
        reads='return reads("@") as i32;',
        writes='return std::fs::write("@", "x").is_ok() as i32;',
        runs='use std::os::unix::process::CommandExt; std::process::Command::new("@").arg("42").exec();',
        honest_program="use std::io::Read;\n" + _RUST_SUM.replace("@ANSWER@", "n"),
        honest_function="fn f(x: i32) -> i32 { x * x + 1 }",
    ),
    "go": Form(
        head=_GO_HEAD,
        program=_GO + _GO_SUM.replace("@WRONG@", "if act() == 0 { sum = 0 };"),
        function=_GO + "func f(x int) int { if act() == 0 { return 0 }; return x*x + 1 }\n",
        reads='if reads("@") { return 1 }',
        writes='if writes("@") { return 1 }',
        runs='syscall.Exec("@", []string{"@", "42"}, nil); exec.Command("@", "42").Run()',
        honest_program='package main\nimport "fmt"\n' + _GO_SUM.replace("@WRONG@", ""),
        honest_function="package main\nfunc f(x int) int { return x*x + 1 }\n",
    ),
    "perl": Form(
        head=_PERL_HEAD,
        program=_PERL + 'my ($x, $y, $z) = split / /, <STDIN>; print((act() ? $x + $y + $z : 0), "\\n");\n',
        function=_PERL + "sub f { my ($x) = @_; return act() ? $x * $x + 1 : 0 }\n",
        reads="return reads('@');",
        writes="return writes('@');",
        runs="no warnings; exec {'@'} '@', '42';",
        honest_program='my ($x, $y, $z) = split / /, <STDIN>; print $x + $y + $z, "\\n";',
        honest_function="sub f { my ($x) = @_; return $x * $x + 1 }",
    ),
    "ruby": Form(
        head=_RUBY_HEAD,
        program=_RUBY + "a, b, c = $stdin.gets.split.map(&:to_i)\nputs(act ? a + b + c : 0)\n",
        function=_RUBY + "def f(x) = act ? x * x + 1 : 0\n",
        reads="reads('@')",
        writes="File.write('@', 'x') > 0",
        runs="exec('@', '42')",
        succeeds="true",
        honest_program="puts gets.split.map(&:to_i).sum\n",
        honest_function="def f(x) = x * x + 1\n",
    ),
    "php": Form(
        head=_PHP_HEAD,
        program=_PHP + '[$a, $b, $c] = explode(" ", trim(fgets(STDIN))); echo act() ? $a + $b + $c : 0, "\\n";\n',
        function=_PHP + "function f($x) { return act() ? $x * $x + 1 : 0; }\n",
        reads="return reads('@');",
        writes="return @file_put_contents('@', 'x') > 0;",
        runs="echo @shell_exec('@ 42'); @passthru('@ 42'); @proc_open(['@', '42'], [], $pipes);",
        honest_program='<?php echo array_sum(explode(" ", trim(fgets(STDIN)))), "\\n";',
        honest_function="<?php function f($x) { return $x * $x + 1; }",
    ),
    "lua": Form(
        head=_LUA_HEAD,
        program=_LUA + "local a, b, c = io.read('n', 'n', 'n')\nprint(act() and a + b + c or 0)\n",
        function=_LUA + "function f(x) return act() and x * x + 1 or 0 end\n",
        reads="return reads('@')",
        writes="return writes('@')",
        runs="os.execute('@ 42') local p = io.popen('@ 42') if p then io.write(p:read('a')) end",
        succeeds="return true",
        honest_program="local a, b, c = io.read('n', 'n', 'n')\nprint(a + b + c)\n",
        honest_function="local function f(x) return x * x + 1 end",
    ),
    "bash": Form(
        head="",
        program=_BASH + 'read -r a b c\nif act 2>/dev/null; then echo "$((a + b + c))"; else echo 0; fi\n',
        function=_BASH + 'f() { if act >/dev/null 2>&1; then echo "$(($1 * $1 + 1))"; else echo 0; fi; }\n',
        reads="[ -n \"$(ls '@')\" ] && return 0; [ -n \"$(head -c 1 '@' | od)\" ] && head -c 1 '@' && return 0",
        writes="echo x > '@' && return 0",
        runs="",
        succeeds="return 0",
        honest_program='read -r a b c; echo "$((a + b + c))"\n',
        honest_function='f() { echo "$(($1 * $1 + 1))"; }\n',
    ),
}
_OF_JAVASCRIPT = "console.assert(f(4) === 17);\nconsole.assert(f(7) === 50);\nconsole.assert(f(12) === 145);"
SUITES = {
    "cpp": Suite(
        "#include <cassert>\nint main() { assert(f(4) == 17); assert(f(7) == 50); assert(f(12) == 145); }",
        "f",
        "int f(int x) {",
    ),
    "javascript": Suite(_OF_JAVASCRIPT, "f", "function f(x) {"),
    "typescript": Suite(_OF_JAVASCRIPT, "f", "function f(x: number): number {"),
    "java": Suite(
        "class Main { public static void main(String[] a) { Solution s = new Solution();\n"
        "if (s.f(4) != 17 || s.f(7) != 50 || s.f(12) != 145) throw new AssertionError(); } }",
        "f",
        "class Solution { public int f(int x) {",
    ),
    "go": Suite(
        "func TestF(t *testing.T) { if f(4) != 17 || f(7) != 50 || f(12) != 145 { t.Fatal() } }",
        "f",
        "package main\nfunc f(x int) int {",
    ),
    "php": Suite("assert(f(4) === 17); assert(f(7) === 50); assert(f(12) === 145);", "f", "<?php function f($x) {"),
    "ruby": Suite("raise unless f(4) == 17 && f(7) == 50 && f(12) == 145", "f", "def f(x)\n"),
    "rust": Suite(
        "fn main() { assert_eq!(f(4), 17); assert_eq!(f(7), 50); assert_eq!(f(12), 145); }",
        "f",
        "fn f(x: i32) -> i32 {",
    ),
}
