"""Forms of tests in JavaScript, Go and Java, each right for every number, and the code that they test.

In a form ``#n`` is its number, ``#v`` and ``#w`` the number and the word that the code makes of it, ``#e`` whether it
is even, and ``<<...>>`` is written three times, for ``#n`` and the two numbers after it, with commas between.
"""

from __future__ import annotations

import re


def number(n: int) -> int:
    """Return what ``number`` makes of a number."""
    return n * 7919 % 1009 + 100


def word(n: int) -> str:
    """Return what ``word`` makes of it."""
    return "".join(chr(97 + (n * index) % 26) for index in range(1, 6))


def written(form: str, n: int) -> str:
    """Return a form for a number."""
    form = re.sub(r"<<(.*?)>>", lambda rows: ", ".join(written(rows[1], k) for k in range(n, n + 3)), form, flags=re.S)
    values = {
        "n": n, "v": number(n), "w": word(n), "e": str(n % 2 == 0).lower(), "k": ["Type", "Range", "Syntax"][n % 3],
        "l": chr(97 + n % 26), "s": 250 + n % 6,
    }  # fmt: skip
    return re.sub(r"#([nvweksl])", lambda mark: str(values[mark[1]]), form)


NODE_LIB = """
exports.number = (n) => (n * 7919) % 1009 + 100;
exports.word = (n) => [1, 2, 3, 4, 5].map((i) => String.fromCharCode(97 + (n * i) % 26)).join('');
exports.list = (n) => [exports.number(n), exports.word(n), { deep: [n % 2 === 0, -n] }];
exports.same = (value) => value;
exports.fail = (n) => { throw new [TypeError, RangeError, SyntaxError][n % 3](exports.word(n)); };
"""
NODE_HEAD = """
const { test, describe, it } = require('node:test');
const assert = require('node:assert');
const { strictEqual: same, deepEqual } = assert;
const lib = require('../lib.js');
"""
NODE_FORMS = r"""
test('a#n', () => { assert.equal(lib.number(#n), #v); });

test('b#n', () => { same('#w', lib.word(#n), 'a message'); });

it('c#n', async () => { assert.deepStrictEqual(await lib.list(#n), [#v, "#w", { deep: [#e, -#n] }]); });

describe('d', () => { const want = [#v, '#w', { 'deep': [#e, -#n] }];
  it('e#n', () => { deepEqual(lib.list(#n), want) }) });

test('f#n', () => { for (const [k, v] of [<<[#n, #v]>>]) {
  assert.ok(lib.number(k) === v); } });

test('g#n', () => { [<<{ in: #n, out: `#w` }>>].forEach(({ in: k, out }) => {
  assert.strictEqual(out, lib.word(k)); }); });

for (const row of [<<{ k: #n, want: [#v, '#w', { deep: [#e, -#n] }] }>>]) {
  test(`h#n ${row.k}`, () => { assert.deepEqual(lib.list(row.k), row.want); });
}

describe('i', () => {
  for (const [k, want] of Object.entries({ <<'#n': #v>> }))
    test('j#n ' + k, () => { assert.equal(lib.number(Number(k)), want); }); });

test('k#n', () => { assert.throws(() => lib.fail(#n), #kError); });

test('l#n', () => { assert.throws(() => lib.fail(#n), { message: '#w' }); });

test('m#n', async (t) => { await t.test('sub', () => { assert.equal(lib.number(#n), #v); });
  assert.ok(lib.number(#n) <= #v); });

test('n#n', (t) => { t.assert.strictEqual(lib.same(-#n.5), -#n.5); assert(lib.same(#n) < #n.5); });

test('o#n', () => { assert.match(lib.word(#n), /#w/); assert.notEqual(lib.number(#n), 3); });

test('p#n', () => { if (lib.number(#n) > 0) return; assert.equal(lib.number(#n), #v); });

test('q#n', { skip: #e }, () => { assert.equal(lib.number(#n), #v); });

test('r#n', () => { let want = #v; want = lib.number(#n); assert.equal(lib.number(#n), want); });

test('s#n', () => { const want = #v; assert.equal(lib.same(want), want); });

test('t#n', () => { try { assert.equal(lib.number(#n), #v); } catch { } });

const UP#n = #v;
test('u#n', () => { assert.equal(lib.number(#n), UP#n); });

test('v#n', () => { assert.deepEqual([lib.number(#n), lib.same('é\n')], [#v, 'é\n']); });

test('w#n', () => { [1, #n].map((k) => assert.equal(lib.same(k), k)); same(lib.same(1#nn), 1#nn); });

test('x#n', (t, done) => { setTimeout(() => { assert.equal(1, 1); done(); }, 1); same(lib.number(#n), #v); });

test('y#n', () => { for (const k of [<<#n>>]) { if (k < 0) continue; assert.equal(lib.same(k), k); } });
""".strip().split("\n\n")

GO_LIB = """package lib

import "errors"

type Pair struct {
	Name string
	Size int
}

func Number(n int) int { return n*7919%1009 + 100 }
func Word(n int) string {
	text := ""
	for i := 1; i < 6; i++ {
		text += string(rune(97 + n*i%26))
	}
	return text
}
func List(n int) []string        { return []string{Word(n), Word(n)} }
func Made(n int) Pair            { return Pair{Word(n), Number(n)} }
func Table(n int) map[string]int { return map[string]int{Word(n): Number(n)} }
func Small(n int) uint8          { return uint8(250 + n%6) }
func Least() int8                { return -128 }
func Even(n int) bool            { return n%2 == 0 }
func Half(n int) float64         { return float64(n) + 0.5 }
func Letter(n int) rune          { return rune(97 + n%26) }
func Raw(n int) []byte           { return []byte(Word(n)) }
func Fail(n int) error {
	if n == 0 {
		return nil
	}
	return errors.New(Word(n))
}
"""
GO_HEAD = """package lib

import (
	"bytes"
	"reflect"
	"testing"
)

var _ = bytes.Equal
var _ = reflect.DeepEqual

"""
GO_FORMS = r"""
func TestA#n(t *testing.T) { if got := Number(#n); got != #v { t.Errorf("%d", got) } }

func TestB#n(t *testing.T) { if "#w" != Word(#n) { t.Fatal(`no`); return }
	if Even(#n) != #e { t.Fail() } }

func TestC#n(t *testing.T) {
	want := []string{"#w", `#w`}
	if got := List(#n); !reflect.DeepEqual(got, want) { t.Errorf("%v %v", got, want) } }

func TestD#n(t *testing.T) {
	if !reflect.DeepEqual(Made(#n), Pair{Name: "#w", Size: #v}) || Small(#n) != #s { t.Fatal() } }

func TestE#n(t *testing.T) {
	for _, tt := range []struct { n int; want string }{<<{#n, "#w"}>>} {
		if got := Word(tt.n); got != tt.want { t.Errorf("%q %q", got, tt.want) } } }

var cases#n = map[string]struct { in, out int }{<<"#w": {out: #v, in: #n}>>}
func TestF#n(t *testing.T) {
	for name, tt := range cases#n {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := Number(tt.in); got != tt.out { t.Fatalf("%d", got) } }) } }

func TestG#n(t *testing.T) {
	for in, want := range map[int]int{<<#n: #v>>} { if Number(in) != want { t.Fatalf("%d %d", in, want) } } }

func TestH#n(t *testing.T) {
	if Least() != -128 { t.Fatal() }
	if Half(#n) != #n.5 { t.Fatal() }
	if Letter(#n) != '#l' { t.Fatal() } }

func TestI#n(t *testing.T) {
	if !bytes.Equal(Raw(#n), []byte("#w")) { t.Fatal() }
	if Number(#n) > #v { t.Fatal() }
	if Number(#n) <= 99 { t.Error() } }

func TestJ#n(t *testing.T) {
	err := Fail(0)
	if err != nil { t.Fatal(err) }
	if err := Fail(1#n); err == nil || err.Error() != Word(1#n) { t.Fatal(err) } }

func TestK#n(t *testing.T) {
	if got := Table(#n); !reflect.DeepEqual(got, map[string]int{"#w": #v}) { t.Fatal(got) } }

const most#n = #v
func TestL#n(t *testing.T) { if got := Number(#n); got != most#n { t.Error(got) } }

func TestM#n(t *testing.T) { if !Even(0) { return }
	if Number(#n) != #v { t.Fatal() } }

func TestN#n(t *testing.T) { want := #v; want += 0
	if got := Number(#n); got != want { t.Fatal() } }

func TestO#n(t *testing.T) { want := #n
	if got := Number(want) * 0 + want; got != want { t.Fatal() } }

func TestP#n(t *testing.T) {
	for _, tt := range []*Pair{<<{"#w", #v}>>} {
		if tt.Name == "" { continue }
		if tt.Size == 0 && tt.Size != #v { t.Fatal() } } }

func TestQ#n(t *testing.T) {
	for _, tt := range []*Pair{<<{"#w", #n}>>} { if Word(tt.Size) != tt.Name { t.Fatal(tt.Name) } } }

func TestR#n(t *testing.T) { if testing.Short() { t.Skip() }
	if Number(#n) != #v { t.Fatal() } }

func TestS#n(t *testing.T) {
	for i, want := range []int64{<<#v>>} { if got := int64(Number(#n + i)); got != want { t.Fatal(got) } } }
""".strip().split("\n\n")

JAVA_LIB = """package lib;

import java.util.*;

public class Lib {
    public static int number(int n) { return n * 7919 % 1009 + 100; }
    public static String word(int n) {
        StringBuilder text = new StringBuilder();
        for (int i = 1; i < 6; i++) text.append((char) (97 + n * i % 26));
        return text.toString();
    }
    public static List<Object> list(int n) { return List.of(number(n), word(n)); }
    public static int[] numbers(int n) { return new int[] {number(n), -n}; }
    public static byte least() { return -128; }
    public static long huge() { return 9007199254740993L; }
    public static boolean even(int n) { return n % 2 == 0; }
    public static double half(int n) { return n + 0.5; }
    public static char letter(int n) { return (char) (97 + n % 26); }
    public static int fail(int n) { if (n > 0) throw new IllegalStateException(word(n)); return n; }
}
"""
JAVA_HEAD = """package lib;

import static org.junit.jupiter.api.Assertions.*;

import java.util.*;
import org.junit.jupiter.api.*;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.*;

class LibTest {
"""
JAVA_FORMS = r"""
@Test void a#n() { assertEquals(#v, Lib.number(#n)); }

@Test void b#n() { assertEquals(Lib.word(#n), "#w", "a message"); }

@Test void c#n() { int want = #v; String text = "#w";
    assertEquals(want, Lib.number(#n)); assertEquals(text, Lib.word(#n)); }

@Test void d#n() { assertArrayEquals(new int[] {#v, -#n}, Lib.numbers(#n));
    assertEquals(List.of(#v, "#w"), Lib.list(#n)); }

@Test void e#n() { assertEquals(-128, Lib.least()); assertEquals(9007199254740993L, Lib.huge()); }

@Test void f#n() { assertEquals(#n.5, Lib.half(#n), 1e-9); Assertions.assertEquals('#l', Lib.letter(#n)); }

@Test void g#n() { assertTrue(Lib.number(#n) == #v && Lib.word(#n).equals("#w")); assertTrue(Lib.number(#n) <= #v); }

@Test void h#n() { assertThrows(IllegalStateException.class, () -> Lib.fail(1#n)); }

@Test void i#n() { assertNotNull(Lib.word(#n)); assertFalse(Lib.number(#n) < 0, () -> "never"); }

@ParameterizedTest @CsvSource({<<"#n, #v">>}) void j#n(int n, int want) { assertEquals(want, Lib.number(n)); }

@Test void k#n() { if (Lib.even(0)) return; assertEquals(#v, Lib.number(#n)); }

@Disabled @Test void l#n() { assertEquals(#v, Lib.number(#n)); }

@Test void m#n() { for (int n : new int[] {<<#n>>}) assertEquals(n, n); assertEquals((byte) -128, Lib.least()); }

@Test void o#n() { try { assertEquals(#v, Lib.number(#n)); } finally { Lib.word(1); }
    assertEquals("#w", Lib.word(#n)); }
""".strip().split("\n\n")
