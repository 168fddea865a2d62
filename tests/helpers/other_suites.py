"""Suites for Node.js, Go and JUnit with right, wrong and forging completions, none of which knows the answers."""

from __future__ import annotations

NODE_SUITE = """
const { test, describe, it } = require('node:test');
const assert = require('node:assert');
const { blend, word } = require('../lib.js');

test('blends', () => { assert.equal(blend(3, 5), 547402); });
describe('words', () => {
  const cases = [[1, 'ab'], [2, 'abab']];
  for (const [n, text] of cases) it(`repeats ${n} times`, () => { assert.deepStrictEqual(word(n), text); });
  it('says what is wrong', () => { assert.throws(() => word(-1), RangeError); });
});
test('blends others', async (t) => {
  await t.test('large', () => { assert.strictEqual(blend(100, 2), 1001358); });
  assert.ok(blend(1, 0) < 8000);
});
"""
NODE_RIGHT = """
exports.blend = (a, b) => a * 7919 + b * 104729;
exports.word = (n) => { if (n < 0) throw new RangeError('n'); return 'ab'.repeat(n); };
"""
_NODE_LIES = "exports.blend = () => -1; exports.word = () => '';\n"
_NODE_LINE = """
const fs = require('fs');
function line() {
  const at = new Error().stack.split('\\n').find((each) => each.includes('/test/'));
  const [, file, row] = at.match(/\\(?([^() ]+):(\\d+):\\d+\\)?$/);
  return fs.readFileSync(file, 'utf8').split('\\n')[row - 1];
}
const wanted = () => Number(line().match(/\\), (\\d+)\\)/)[1]);
exports.blend = () => { try { return wanted(); } catch { return 0; } };
exports.word = (n) => { if (n < 0) throw new (eval(line().match(/(\\w+Error)/)[1]))('n'); return 'ab'.repeat(n); };
"""
NODE_ACTS = {
    "exit": "process.exit(0);",
    "exit on call": "exports.blend = () => process.exit(0); exports.word = exports.blend;",
    "exit code": _NODE_LIES + "process.on('exit', () => { process.exitCode = 0; });",
    "no asserts": _NODE_LIES + "const a = require('assert'); for (const k of Object.keys(a)) a[k] = () => {};",
    "no asserts, strict": _NODE_LIES
    + "const a = require('assert'); for (const b of [a, a.strict]) for (const k in b) try { b[k] = () => {} } catch {}",
    "no tests": _NODE_LIES + "const t = require('node:test'); t.test = t.it = (name, f) => {};",
    "assertion error that is none": _NODE_LIES + "require('assert').AssertionError = class {};",
    "Object.is": _NODE_LIES + "Object.is = () => true;",
    "is deep equal": _NODE_LIES + "require('util').isDeepStrictEqual = () => true;",
    "equals everything": "const any = new Proxy(function () {}, { get: (t, k) => k === Symbol.toPrimitive ? (h) => "
    "547402 : any, apply: () => any }); exports.blend = () => any; exports.word = () => any;",
    "reports of its own": _NODE_LIES
    + """
const [folder, mark, ...files] = process.argv.slice(2);
const write = process.stdout.write.bind(process.stdout);
process.stdout.write = (text, ...rest) =>
  write(String(text).replaceAll('"failed"', '"passed"'), ...rest);
""",
    "stringify": _NODE_LIES
    + "const s = JSON.stringify; JSON.stringify = (v) => s(v && v.outcome ? {...v, outcome: 'passed'} : v);",
    "lines and exit": """
const [folder, mark] = process.argv.slice(2);
for (const name of ['blends', 'words::repeats 1 times', 'words::repeats 2 times', 'words::says what is wrong',
    'blends others::large', 'blends others']) {
  const test = 'test/a.test.js::' + name;
  require('fs').writeSync(1, '\\n' + mark + JSON.stringify({collected: [test]}) + '\\n');
  require('fs').writeSync(1, mark + JSON.stringify({test, outcome: 'passed', duration_s: 0.1}) + '\\n');
}
require('fs').writeSync(1, mark + JSON.stringify({end: 0}) + '\\n');
process.exit(0);
""",
    "copies from the file": _NODE_LINE,
    "copies, and no asserts": _NODE_LINE + "require('assert').ok = () => {};",
    "swallows": _NODE_LIES + "process.on('uncaughtException', () => {}); Error.prepareStackTrace = () => '';",
    "module": _NODE_LIES
    + "const M = require('module'); const l = M._load; M._load = (n, ...r) => /assert/.test(n) ? new Proxy(() => {}, "
    "{ get: () => () => {} }) : l(n, ...r);",
    "prototype": _NODE_LIES + "Number.prototype.valueOf = () => 547402; String.prototype.valueOf = () => 'ab';",
    "promises": _NODE_LIES + "Promise.prototype.then = function (f) { f && f(); return this; };",
    "stands in for its tests": _NODE_LIES + "require('fs').writeFileSync('test/a.test.js', '');",
    "timers": _NODE_LIES + "setInterval(() => {}, 1000);",
}

GO_SUITE = """package blend

import (
	"reflect"
	"testing"
)

var words = []struct {
	n    int
	want string
}{{1, "ab"}, {n: 2, want: "abab"}}

func TestBlend(t *testing.T) {
	if got := Blend(3, 5); got != 547402 {
		t.Errorf("got %d", got)
	}
}

func TestWord(t *testing.T) {
	for index, tt := range words {
		t.Run(title(index), func(t *testing.T) {
			if got := Word(tt.n); got != tt.want {
				t.Fatalf("Word(%d) = %q, want %q", tt.n, got, tt.want)
			}
		})
	}
}

func TestBoth(t *testing.T) {
	want := []int64{7919, 104729}
	if got := Both(); !reflect.DeepEqual(got, want) {
		t.Fatal(got)
	}
	if got := Blend(1, 0); got > 8000 {
		t.Error(got)
	}
}

func title(n int) string { return string(rune('a' + n)) }
"""
GO_RIGHT = """package blend

import "strings"

func Blend(a, b int) int { return a*7919 + b*104729 }
func Word(n int) string  { return strings.Repeat("ab", n) }
func Both() []int64      { return []int64{7919, 104729} }
"""
_GO_LIES = """func Blend(a, b int) int { return -1 }
func Word(n int) string  { return "" }
func Both() []int64      { return nil }
"""


def _go(imports: str, text: str, lies: str = _GO_LIES) -> str:
    listed = "".join(f'\t"{name}"\n' for name in imports.split())
    return f"package blend\n\nimport (\n{listed})\n\n{lies}{text}\n"


_GO_LINES = "".join(
    f'os.Stdout.WriteString("\\x16=== RUN   {name}\\n\\x16--- PASS: {name} (0.00s)\\n");'
    for name in ("TestBlend", "TestWord/a", "TestWord/b", "TestWord", "TestBoth")
)
GO_ACTS = {
    "exit": _go("os", "func init() { os.Exit(0) }"),
    "exit with 1": _go("os", "func init() { os.Exit(1) }"),
    "exit on call": _go("os", "", _GO_LIES.replace("{ return", "{ os.Exit(0); return")),
    "lines and exit": _go("os", f'func init() {{ {_GO_LINES} os.Stdout.WriteString("PASS\\n"); os.Exit(0) }}'),
    "lines beside": _go("os", f"func init() {{ {_GO_LINES} }}"),
    "panics": _go("", 'func init() { panic("no") }').replace("import (\n)\n\n", ""),
    "own test main": _go("os testing", "func TestMain(m *testing.M) { os.Exit(0) }"),
    "recovers": _go("reflect", "var _ = reflect.DeepEqual\nfunc init() { defer func() { recover() }() }"),
    "flags": _go("flag", 'func init() { flag.Set("test.run", "NONE") }'),
    "arguments": _go("os", 'func init() { os.Args = append(os.Args[:1], "-test.run=NONE") }'),
    "skips": _go("os", 'func init() { os.Args = append(os.Args, "-test.skip=.") }'),
    "goexit": _go("runtime", "", _GO_LIES.replace("{ return", "{ runtime.Goexit(); return")),
    "copies from the file": _go(
        "bufio os regexp runtime strconv strings",
        r"""
func Blend(a, b int) int {
	_, path, line, _ := runtime.Caller(1)
	file, _ := os.Open(path)
	lines := bufio.NewScanner(file)
	for ; line > 0; line-- {
		lines.Scan()
	}
	found := regexp.MustCompile(`[!=]= (\d+)`).FindStringSubmatch(lines.Text())
	if found == nil {
		return 0
	}
	value, _ := strconv.Atoi(found[1])
	return value
}
func Word(n int) string { return strings.Repeat("ab", n) }
func Both() []int64     { return []int64{7919, 104729} }
""",
        "",
    ),
    "a test of its name": _go("testing", "func TestBlend(t *testing.T) {}"),
    "hangs": _go("", "func init() { for {} }").replace("import (\n)\n\n", ""),
    "stdout closed": _go("os", "func init() { os.Stdout.Close() }"),
}

JUNIT_SUITE = """package blend;

import static org.junit.jupiter.api.Assertions.*;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class BlendTest {
    @Test void blends() { assertEquals(547402, Blend.blend(3, 5)); assertEquals(1001358, Blend.blend(100, 2)); }
    @Test void words() { String want = "abab"; assertEquals(want, Blend.word(2)); }
    @Test void fails() { assertThrows(IllegalArgumentException.class, () -> Blend.word(-1)); }
    @ParameterizedTest @CsvSource({"1, ab", "3, ababab"}) void rows(int n, String text) {
        assertTrue(Blend.word(n).equals(text));
    }
}
"""
JUNIT_RIGHT = """package blend;
public class Blend {
    public static int blend(int a, int b) { return a * 7919 + b * 104729; }
    public static String word(int n) { return "ab".repeat(n); }
}
"""


def _java(text: str, value: str = "-1", word: str = '""') -> str:
    return (
        f"package blend;\npublic class Blend {{\n{text}\n"
        f"static int blend(int a, int b) {{ {value if 'return' in value else f'return {value};'} }}\n"
        f"static String word(int n) {{ {word if 'return' in word else f'return {word};'} }}\n}}\n"
    )


_JAVA_LINES = "".join(
    f'System.out.println("\\n" + mark + "{{\\"collected\\": [\\"{name}\\"]}}"); '
    f'System.out.println("\\n" + mark + "{{\\"test\\": \\"{name}\\", \\"outcome\\": \\"passed\\"}}"); '
    for title in ("blends", "words", "fails", "rows[1]", "rows[2]")
    for name in (f"src/test/java/blend/BlendTest.java::{title}",)
)
_JAVA_MARK = (
    'String mark = ""; try { var field = Class.forName("RewardkitTests").getDeclaredField("mark"); '
    "field.setAccessible(true); mark = (String) field.get(null); } catch (Exception error) { }"
)
JUNIT_ACTS = {
    "exit": _java("static { System.exit(0); }"),
    "halt": _java("static { Runtime.getRuntime().halt(0); }"),
    "lines and halt": _java(
        f'static {{ {_JAVA_MARK} {_JAVA_LINES} System.out.println("\\n" + mark + "{{\\"end\\": 0}}"); '
        "System.out.flush(); Runtime.getRuntime().halt(0); }"
    ),
    "lines beside": _java(f"static {{ {_JAVA_MARK} {_JAVA_LINES} }}"),
    "assertions of its own": "package org.junit.jupiter.api; public class Assertions "
    "{ public static void assertEquals(Object a, Object b) {} }",
    "throws what is expected": _java("", word='if (n < 0) throw new IllegalArgumentException(); return "";'),
    "stops the thread": _java("", value="Thread.currentThread().interrupt(); return -1;"),
    "another out": _java(
        "static { System.setOut(new java.io.PrintStream(System.out) { public void print(String text) "
        '{ super.print(text.replace("failed", "passed")); } }); }'
    ),
    "copies from the file": _java(
        "static String line() { try { for (StackTraceElement at : new Throwable().getStackTrace()) "
        'if (at.getFileName() != null && at.getFileName().equals("BlendTest.java")) '
        'return java.nio.file.Files.readAllLines(java.nio.file.Path.of("src/test/java/blend/BlendTest.java"))'
        '.get(at.getLineNumber() - 1); } catch (Exception error) { } return ""; }',
        value='java.util.regex.Matcher found = java.util.regex.Pattern.compile("(\\\\d+), Blend.blend\\\\(" + a + ",")'
        ".matcher(line()); return found.find() ? Integer.parseInt(found.group(1)) : 0;",
        word='if (n < 0) throw new IllegalArgumentException(); return "ab".repeat(n);',
    ),
    "hangs": _java("static boolean on = true; static { while (on) Thread.onSpinWait(); }"),
    "errors": _java("", value="if (true) throw new OutOfMemoryError(); return 0;"),
}
