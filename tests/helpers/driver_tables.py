"""What functions of each language are called with, and what they are to answer."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

TEXTS = ["", "plain", 'quo"te \\ back', "line\nline\ttab\r\b\f", "\x00\x01\x1f", "\u00e9\u20ac", "\U0001f600\U0010ffff"]
FLOATS = [0.0, -0.0, 0.1, -2.5, 1e-300, 1.7e308, math.inf, -math.inf, math.nan]


@dataclass(frozen=True)
class Calls:
    """A completion, the function in it, and calls with their answers; an error is ``Raises``."""

    language: str
    source: str
    calls: list[tuple[list[Any], Any]]
    entry_point: str = "f"
    id: str = ""


class Raises:
    """Stands for a call that must raise."""

    def __repr__(self) -> str:
        return "Raises"


RAISES = Raises()


def same(values: list[list[Any]]) -> list[tuple[list[Any], Any]]:
    """Return calls with arguments of which the function gives back the list."""
    return [(arguments, arguments) for arguments in values]


_CPP_ALL = """#include <bits/stdc++.h>
using namespace std;
"""
CPP = [
    Calls(
        "cpp",
        _CPP_ALL
        + "using All = tuple<int, long long, unsigned long long, double, bool, char, string>;\n"
        + "All f(int a, long long b, unsigned long long c, double d, bool e, char g, const string& h)"
        + "{ return {a, b, c, d, e, g, h}; }\n",
        [
            *same([[-(2**31), -(2**63), 2**64 - 1, number, True, "x", "s"] for number in FLOATS]),
            *same([[2**31 - 1, 2**63 - 1, 0, 1.0, False, '"', text] for text in TEXTS]),
            ([3.0, 2e3, 1, 4, True, "x", ""], [3, 2000, 1, 4.0, True, "x", ""]),
            ([2**31, 0, 0, 0.0, True, "x", ""], RAISES),
            ([0, 2**63, 0, 0.0, True, "x", ""], RAISES),
            ([0, 0, -1, 0.0, True, "x", ""], RAISES),
            ([0.5, 0, 0, 0.0, True, "x", ""], RAISES),
            ([0, 0, 0, "1", True, "x", ""], RAISES),
            ([0, 0, 0, 0.0, 1, "x", ""], RAISES),
            ([0, 0, 0, 0.0, True, "xy", ""], RAISES),
            ([0, 0, 0, 0.0, True, "x", None], RAISES),
            ([0], RAISES),
        ],
        id="scalars",
    ),
    Calls(
        "cpp",
        _CPP_ALL
        + "auto f(vector<vector<int>> a, map<string, vector<double>> b, unordered_map<int, string> c, set<int> d,"
        + " unordered_set<string> e, pair<int, string> g, optional<int> h, array<int, 2> i, list<bool> j,"
        + " deque<char> k, vector<bool> l) { return make_tuple(a, b, c, d, e, g, h, i, j, k, l); }\n",
        [
            *same(
                [
                    [[], {}, {}, set(), set(), [1, "x"], None, [1, 2], [], [], []],
                    [
                        [[1], [], [2, 3]],
                        {"a": [1.5]},
                        {7: "x"},
                        {3, 1},
                        {"u"},
                        [-1, "\U0001f600"],
                        5,
                        [0, -1],
                        [True, False],
                        ["a", "b"],
                        [True],
                    ],
                ]
            ),
            (
                [[], {}, {}, [2, 1, 2], [], [1, "x"], None, [1, 2], [], [], []],
                [[], {}, {}, {1, 2}, set(), [1, "x"], None, [1, 2], [], [], []],
            ),
            ([[[1], 2], {}, {}, [], [], [1, ""], None, [1, 2], [], [], []], RAISES),
            ([[], {}, {}, [], [], [1, "x", 3], None, [1, 2], [], [], []], RAISES),
            ([[], {}, {}, [], [], [1, "x"], None, [1], [], [], []], RAISES),
        ],
        id="containers",
    ),
    Calls(
        "cpp",
        "#include <map>\nint f(const std::map<int, int>& x, std::map<double, int> y) { return x.at(7) + y[0.5]; }",
        [([{"7": 1}, {"0.5": 2}], 3), ([{7: 1}, {}], 1), ([{"x": 1}, {}], RAISES)],
        id="texts as the keys of JSON's objects",
    ),
    Calls("cpp", "float f(float x) { return x; }", [([0.3], 0.3), ([1e300], math.inf)], id="floats keep their digits"),
    Calls(
        "cpp",
        "#include <vector>\n#include <algorithm>\nvoid f(std::vector<int>& x) { std::sort(x.begin(), x.end()); }",
        [([[3, 1, 2]], [1, 2, 3])],
        id="what is changed in place",
    ),
    Calls(
        "cpp",
        "long long f(const int* x, int n) { long long s = 0; while (n--) s += *x++; return s; }",
        [([[1, 2, 3], 3], 6)],
        id="a pointer and its length",
    ),
    Calls(
        "cpp",
        "#include <string_view>\nbool f(std::string_view a, const char* b) { return a == b; }",
        [(["x", "x"], True), (["x", "y"], False)],
        id="views of texts",
    ),
    Calls(
        "cpp",
        '#include <stdexcept>\nint f(int x) { if (x == 1) throw std::runtime_error("no"); if (x) throw x; return x; }',
        [([0], 0), ([1], RAISES), ([2], RAISES)],
        id="exceptions",
    ),
    Calls(
        "cpp",
        "\ufeff#include <cstdio>\r\n#define int long long\r\n#define f g\r\n#undef f\r\n#define value 3\r\n"
        'int f(int x) { return x * value; }\r\nsigned main() { std::puts("demo"); }\r\n',
        [([2], 6)],
        id="a main, macros, a mark and carriage returns",
    ),
    Calls(
        "cpp",
        "#include <iostream>\nnamespace rk { int serve; }\nint read, write, line, Value, next_;\n"
        "template <class... T> void put(T&&...) {}\nstruct Reader {};\nstruct Lines {};\n"
        "int answer(int x) { return x; }\n",
        [([2], 2)],
        entry_point="answer",
        id="names of the driver",
    ),
    Calls(
        "cpp",
        "#include <cstdio>\n#include <algorithm>\nusing namespace std;\n"
        "int read() { return 1; }\nssize_t write(int) { return 2; }\nint max_element(int x) { return x + read(); }\n",
        [([2], 3)],
        entry_point="max_element",
        id="names of the library",
    ),
    Calls(
        "cpp",
        "#include <vector>\nclass Solution { int n = 0; public:\n"
        "int f(std::vector<int> x) const { return x.size() + n; } };",
        [([[1, 2]], 2), ([[]], 0)],
        id="a method of Solution",
    ),
    Calls(
        "cpp",
        "struct Sum { static int of(int a, int b) { return a + b; } };",
        [([1, 2], 3)],
        entry_point="Sum.of",
        id="a method of a named class",
    ),
    Calls(
        "cpp",
        "#include <map>\n#include <string>\n#include <vector>\ntemplate <class T>\n"
        "T f(const std::vector<T>& x, std::map<std::string, T> y) { return x.at(0) + y.begin()->second; }\n"
        "std::string f(const std::string& x, bool) { return x; }\nint f(auto x) { return sizeof x; }\n",
        [([[1], {"a": 2}], 3), ([[2**40], {"a": 2**41}], 3 * 2**40), (["x", True], "x"), ([[], {"a": 1}], RAISES)],
        id="templates and overloads, by the types of the row",
    ),
    Calls(
        "cpp",
        "#include <vector>\nclass Solution { public:\ntemplate <class T> void f(std::vector<T>& x, int y = 3)"
        " { x.push_back(y); } };",
        [([[1]], [1, 3])],
        id="a method that is a template, and has a parameter of its own value",
    ),
    Calls("cpp", "int map[9], set, string, count; int f(int x) { return map[x] + count; }", [([1], 0)], id="no header"),
    Calls(
        "cpp",
        "/* struct ListNode {}; */\nclass Solution { public: ListNode* f(vector<ListNode*>& lists, int turn) {\n"
        "ListNode *head = lists[0], *last = nullptr; if (turn) return head->next = head;\n"
        "while (head) { swap(head->next, last); swap(head, last); } return last; } };",
        [([[[1, 2, 3]], 0], [3, 2, 1]), ([[[]], 0], []), ([[[1]], 1], RAISES)],
        id="LeetCode's linked lists, which it only uses",
    ),
    Calls(
        "cpp",
        "#include <utility>\nstruct TreeNode { double val; TreeNode *left; TreeNode *right;\n"
        "TreeNode(double x) : val(x), left(nullptr), right(nullptr) {} };\n"
        "void f(TreeNode* r) { if (r) { std::swap(r->left, r->right); f(r->left); f(r->right); } }",
        [([[1, 2.5, 3, None, 4]], [1.0, 3.0, 2.5, None, None, 4.0]), ([[]], []), ([[1, None, None, 2]], RAISES)],
        id="a tree of its own, changed in place",
    ),
    Calls(
        "go",
        'import "cmp"\nfunc f[S ~[]E, E cmp.Ordered](s S, v E) int { for i, x := range s { if x == v { return i } }\n'
        "return -1 }",
        [([["x", "y"], "y"], 1), ([[], "x"], -1)],
        id="functions whose types are open, by the types of the row",
    ),
    Calls(
        "go",
        "func f[K comparable, V any](m map[K]V, n int) int { return len(m) + n }",
        [([{"a": 1.5}, 2], 3)],
        id="a function of maps whose types are open",
    ),
    Calls(
        "rust",
        "fn f<'a, T: PartialOrd + Copy, U>(xs: &'a [T], m: std::collections::HashMap<String, U>) -> T {\n"
        "let mut best = xs[m.len()]; for &x in xs { if x > best { best = x } } best }",
        [([[1.5, 4.5, 2.0], {"a": 1}], 4.5), ([[1, 2, 3], {}], 3.0)],
        id="functions whose types are open, by the types of the row",
    ),
]

_JSON_VALUES: list[Any] = [
    None, True, False, 0, -1, 2**53, [], [[], [[]]], {}, {"a": {"b": [1]}}, {"__proto__": 1}, {1, "x"},
    *TEXTS, *FLOATS,
]  # fmt: skip
_DEEP: list[Any] = []
for _ in range(90):
    _DEEP = [_DEEP]

JAVASCRIPT = [
    Calls(
        "javascript",
        "function f(x) { return x }",
        [([value], value) for value in _JSON_VALUES if value != 0.0 or str(value) == "-0.0"],
        id="identity",
    ),
    Calls(
        "javascript",
        "const f = (n) => [10n ** BigInt(n), new Map([[1, 'a']]), undefined, new Set([n]), new Int8Array([n]), [, n]]",
        [([20], [10**20, {1: "a"}, None, {20}, [20], [None, 20]])],
        id="values that JSON lacks",
    ),
    Calls(
        "javascript",
        "const f = (n) => [2 ** n, -(2 ** n)]",
        [([exponent], [2**exponent, -(2**exponent)]) for exponent in (52, 53, 60, 69)]
        + [([70], [2.0**70, -(2.0**70)])],
        id="large whole numbers",
    ),
    Calls(
        "javascript",
        "const f = (x) => { const y = []; y.push(y); return [y, () => 1, Symbol(), new Date()][x] }",
        [([0], RAISES)],
        id="what is in itself",
    ),
    Calls("javascript", "function f(x) { x.sort() }", [([["b", "a"]], ["a", "b"])], id="what is changed in place"),
    Calls("javascript", "exports.f = (a, b) => a + b", [([1, 2], 3)], id="exports"),
    Calls("javascript", "module.exports = (a) => -a", [([2], -2)], id="module.exports"),
    Calls("javascript", "module.exports = { f: (a) => -a }", [([2], -2)], id="module.exports with names"),
    Calls("javascript", "class Solution { f(a) { return this.g(a) } g(a) { return a } }", [([2], 2)], id="Solution"),
    Calls("javascript", "class A { static f(a) { return a } }", [([2], 2)], entry_point="A.f", id="a static method"),
    Calls("javascript", "export const f = (a) => a;\nexport default f;", [([2], 2)], id="a module that exports"),
    Calls(
        "javascript",
        "import path from 'path';\nexport function f(a) { return path.basename(a) }",
        [(["a/b"], "b")],
        id="a module that imports",
    ),
    Calls("javascript", "async function f(x) { return x + 1 }", [([1], 2)], id="a promise"),
    Calls(
        "javascript",
        "\ufeff#!/usr/bin/env node\r\n'use strict'\r\nfunction f(x) { if (x) throw new Error('no'); return 0 }\r\n"
        "console.log(f(0)); setTimeout(() => {}, 100000) // demo",
        [([0], 0), ([1], RAISES)],
        id="a demo, a mark and carriage returns",
    ),
    Calls(
        "javascript",
        "const fs = 1, serve = 2, ask = 3, encode = 4, Lines = 5; var util = 6; \nlet f = (x) => x + fs",
        [([1], 2)],
        id="names of the driver",
    ),
    Calls("javascript", "function f(x) { return x }", [([_DEEP], _DEEP)], id="deep"),
]

TYPESCRIPT = [
    Calls(
        "typescript",
        "enum Word { A = 1 }\ninterface Box<T> { v: T }\nfunction f<T>(x: T): Box<T>[] { return [{ v: x }] }",
        [([[1, "a"]], [{"v": [1, "a"]}])],
        id="types and enums",
    ),
    Calls("typescript", "export const f = (a: number): number => -a;", [([2], -2)], id="a module that exports"),
]

_JAVA_ALL = """import java.util.*;
class Solution {
    Object f(int a, long b, double c, String d, List<Integer> e, Map<String, List<Double>> g, int[][] h, char i,
        Optional<Integer> j, Set<String> k, Object l, TreeMap<Integer, String> m, ArrayList<Boolean> n, float o) {
        return Arrays.asList(a, b, c, d, e, g, h, i, j, k, l, m, n, o);
    }
}
"""
_JAVA_VALUES: list[Any] = [
    *(-(2**31), 2**63 - 1, 0.1, "", [1], {"a": [1.5], }, [[1], []], "x", None, {"u"}, {1: [2, None, -0.0]}, {3: "x"}),
    *([True], 0.3),
]  # fmt: skip
JAVA = [
    Calls(
        "java",
        _JAVA_ALL,
        [
            *same([[*_JAVA_VALUES[:2], number, *_JAVA_VALUES[3:]] for number in FLOATS]),
            *same([[*_JAVA_VALUES[:3], text, *_JAVA_VALUES[4:]] for text in TEXTS]),
            ([2**31, *_JAVA_VALUES[1:]], RAISES),
            ([0, 2**63, *_JAVA_VALUES[2:]], RAISES),
            ([0.5, *_JAVA_VALUES[1:]], RAISES),
            ([0], RAISES),
        ],
        id="every type",
    ),
    Calls(
        "java",
        "import java.util.*; public class Sorting { void f(int[] x) { Arrays.sort(x); } }",
        [([[3, 1, 2]], [1, 2, 3])],
        id="a class of another name, and what is changed in place",
    ),
    Calls(
        "java",
        "package a.b;\nimport java.math.*;\npublic class Main {\n"
        "static BigInteger f(BigInteger x) { return x.pow(2); }\n"
        "public static void main(String[] a) { System.out.println(1); } }",
        [([10**20], 10**40)],
        id="a package, a main and big integers",
    ),
    Calls(
        "java",
        "class Solution { int f(int x) { return x; } String f(String x) { throw new IllegalStateException(x); } }\n"
        "class List {} class Reader {} class Object2 {}",
        [([1], 1), (["no"], RAISES)],
        id="overloads, exceptions and names of the driver",
    ),
    Calls(
        "java",
        "import java.util.*;\nclass A { static <T extends Comparable<T>> T f(List<T> x) { return Collections.max(x);"
        "} }",
        [([[3, 1, 2]], 3), ([["a", "b"]], "b")],
        entry_point="A.f",
        id="a generic method",
    ),
    Calls(
        "java",
        "import java.util.*;\nimport org.javatuples.*;\nclass Solution { record Point(int x, String name) {}\n"
        "Object f(Point p, Map<Integer, Double> keys, Pair<String, Integer> pair, int... rest) {"
        " return Triplet.with(p, keys.get(7), pair.setAt1(rest.length)); }\n"
        "}",
        [
            ([[1, "a"], {"7": 0.5}, ["b", 0]], [[1, "a"], 0.5, ["b", 0]]),
            ([[1, "a"], {7: 0.5}, ["b", 0], 1, 2], [[1, "a"], 0.5, ["b", 2]]),
            ([[1, "a"], {}, ["b", 0], [1, 2, 3]], [[1, "a"], None, ["b", 3]]),
            ([[1], {}, ["b", 0]], RAISES),
            ([[1, "a"], {}, ["b"]], RAISES),
        ],
        id="records, tuples, texts as keys, and variadic parameters",
    ),
    Calls(
        "java",
        'class Solution { static class Inner { static String f(double x) { return "double"; }\n'
        'static String f(int x) { return "int"; } } }',
        [([1], "int"), ([1.5], "double")],
        id="overloads in a nested class",
    ),
    Calls(
        "java",
        "import java.util.*;\nimport java.util.stream.*;\n"
        "static List<Integer> twice(List<Integer> x) { return x; }\n"
        "static IntStream f(List<Integer> x) { return twice(x).stream().mapToInt(y -> 2 * y); }",
        [([[1, 2]], [2, 4])],
        id="methods without a class, and a stream",
    ),
]

_GO_ALL = """// of a package
package foo
import "sort"
func f(a int, b uint8, c float64, d string, e []int, g map[string][]float64, h interface{}, j []interface{}, k *int,
    m [2]string, n [][]bool, o float32) []interface{} {
    return []interface{}{a, b, c, d, e, g, h, j, k, m, n, o}
}
func s(x []int) { sort.Ints(x) }
func main() { println("demo") }
"""
_GO_VALUES: list[Any] = [
    *(-(2**63), 255, 0.1, "", [1], {"a": [1.5]}, [1, 2.0, {"b": None}], [1, 1.5, "x", None], 3, ["a", "b"]),
    *([[True], []], 0.3),
]
GO = [
    Calls(
        "go",
        _GO_ALL,
        [
            *same([[*_GO_VALUES[:2], number, *_GO_VALUES[3:]] for number in FLOATS]),
            *same([[*_GO_VALUES[:3], text, *_GO_VALUES[4:]] for text in TEXTS]),
            ([0, 256, *_GO_VALUES[2:]], RAISES),
            ([0.5, *_GO_VALUES[1:]], RAISES),
            (["5", *_GO_VALUES[1:]], RAISES),
            ([2**63, *_GO_VALUES[1:]], RAISES),
            ([0], RAISES),
        ],
        id="every type",
    ),
    Calls(
        "go",
        "package main\nfunc f(x map[int]string, y map[rune]int) (string, int) { return x[10], y['1'] + y['a'] }",
        [([{"10": "ten"}, {"1": 1, "a": 2}], ["ten", 3]), ([{10: "ten"}, {}], ["ten", 0]), ([{"x": ""}, {}], RAISES)],
        id="texts as the keys of JSON's objects",
    ),
    Calls("go", _GO_ALL, [([[3, 1, 2]], [1, 2, 3])], entry_point="s", id="what is changed in place"),
    Calls(
        "go",
        'package main\nimport "math/big"\nfunc f(x *big.Int, y ...string) (*big.Int, int) {\n'
        'if len(y) > 1 { panic("no") }; return x.Mul(x, x), len(y) }',
        [([10**20, ["a"]], [10**40, 1]), ([1, ["a", "b"]], RAISES)],
        id="big integers, variadic parameters, several results and a panic",
    ),
    Calls(
        "go",
        'package main\nimport "errors"\ntype point struct { x int; Name string }\ntype Solution struct{}\n'
        "func (s *Solution) f(p point, letters []byte, letter rune, rest ...float64) (point, []byte, rune, int,"
        " error) {\n"
        'if len(rest) > 2 { return p, nil, 0, 0, errors.New("no") }\n'
        "p.x++; letters[0]++; return p, letters, letter + 1, len(rest), nil }",
        [
            ([[1, "a"], "bc", "x"], [[2, "a"], [99, 99], 121, 0]),
            ([[1, "a"], ["b"], "x", 1, 2.5], [[2, "a"], [99], 121, 2]),
            ([[1, "a"], [98], 120, [1]], [[2, "a"], [99], 121, 1]),
            ([[1, "a"], "b", "x", 1, 2, 3], RAISES),
            ([[1], "b", "x"], RAISES),
            ([[1, "a"], "b", "xy"], RAISES),
        ],
        id="structs, letters, variadic parameters, a method by its name alone, and an error",
    ),
]

_RUST_ALL = """use std::collections::*;
use rand::Rng;
type Head = (i32, u64, f64, String, Vec<Vec<i64>>, HashMap<String, f64>, Option<i8>);
type Tail = (Vec<String>, char, BTreeSet<i32>, [u8; 2], f32);
fn f(a: i32, b: u64, c: f64, d: &str, e: Vec<Vec<i64>>, g: &HashMap<String, f64>, h: Option<i8>, i: &[&str], j: char,
    k: BTreeSet<i32>, l: [u8; 2], m: f32) -> (Head, Tail) {
    ((a, b, c, d.to_string(), e, g.clone(), h), (i.iter().map(|x| x.to_string()).collect(), j, k, l, m))
}
fn s(x: &mut [i32]) -> () { if x.is_empty() { panic!("no") } x.sort() }
fn main() { println!("demo"); }
"""
_RUST_VALUES: list[Any] = [
    *(-(2**31), 2**64 - 1, 0.1, "", [[1], []], {"a": 1.5}, None, ["p", "q"], "x", {1, 2}, [1, 2], 0.3)
]


def _rust_call(arguments: list[Any]) -> tuple[list[Any], Any]:
    return arguments, [arguments[:7], arguments[7:]]


RUST = [
    Calls(
        "rust",
        _RUST_ALL,
        [
            *(_rust_call([*_RUST_VALUES[:2], number, *_RUST_VALUES[3:]]) for number in FLOATS),
            *(_rust_call([*_RUST_VALUES[:3], text, *_RUST_VALUES[4:]]) for text in TEXTS),
            ([2**31, *_RUST_VALUES[1:]], RAISES),
            ([0, -1, *_RUST_VALUES[2:]], RAISES),
            ([0], RAISES),
        ],
        id="every type",
    ),
    Calls(
        "rust", _RUST_ALL, [([[3, 1, 2]], [1, 2, 3]), ([[]], RAISES)], entry_point="s", id="what is changed in place"
    ),
    Calls(
        "rust",
        "use std::collections::*;\n"
        'fn f(x: &HashMap<i32, i32>, y: BTreeMap<String, i32>) -> (i32, i32) { (x[&7], y["7"]) }',
        [([{"7": 1}, {"7": 2}], [1, 2]), ([{7: 1}, {"7": 2}], [1, 2]), ([{"x": 1}, {}], RAISES)],
        id="texts as the keys of JSON's objects",
    ),
    Calls(
        "rust",
        "impl Solution { pub fn f<'a>(x: &'a str, n: i32) -> Result<&'a str, String> {\n"
        'if n < 0 { return Err("no".into()); } Ok(&x[..n as usize]) } }',
        [(["abc", 2], "ab"), (["abc", -1], RAISES)],
        id="a method of Solution, lifetimes and an Err",
    ),
]

RUBY = [
    Calls(
        "ruby",
        "require 'json'\r\ndef f(x)\r\n  x\r\nend\r\nputs f(1)\r\n__END__\r\ndata",
        [([value], value) for value in [*_JSON_VALUES, 10**30, {1: [2], None: {3}}]],
        id="identity",
    ),
    Calls(
        "ruby",
        "class Solution\n  def f(x, y)\n    raise 'no' if x == 1\n\n    x + y\n  end\nend",
        [([2, 3], 5), ([1, 1], RAISES), ([1], RAISES)],
        id="a method of Solution",
    ),
]

_PHP_VALUES = [
    value for value in _JSON_VALUES if not isinstance(value, set) and value != {} and value != {"__proto__": 1}
]
PHP = [
    Calls(
        "php",
        "<?php\r\nnamespace A;\nfunction f($x) { return $x; } echo f(1);\n?>",
        [([value], value) for value in [*_PHP_VALUES, {1: [2], "a": None}]],
        id="identity in a namespace",
    ),
    Calls("php", "<?php function f(&$x) { sort($x); }", [([[2, 1]], [1, 2])], id="what is changed in place"),
    Calls(
        "php",
        "<?php class Solution { function f($x, $y) { if ($x == 1) throw new Exception('no'); return $x + $y; } }",
        [([2, 3], 5), ([1, 1], RAISES), ([1], RAISES)],
        id="a method of Solution",
    ),
]

_PERL_VALUES = [
    value for value in _JSON_VALUES if not isinstance(value, bool | set) and (type(value) is not float or value)
]
PERL = [
    Calls(
        "perl",
        "#!/usr/bin/perl\r\nuse strict;\r\nuse warnings;\r\nsub f {\r\n    my ($x) = @_;\r\n    return $x;\r\n}\r\n"
        "print f(1);\r\nmain() unless caller;\r\n$@ = 1; $, = '-'; $\\ = '-';\r\n__END__\r\ndata",
        [([value], value) for value in [*_PERL_VALUES, 2**63 - 1, -(2**63), "7", "1e5", "nan"]],
        id="identity",
    ),
    Calls(
        "perl",
        "sub f { return ([1], !!0, !!1, 0.0, 10**30, {}) }",
        [([True], ([1], "", 1, 0, 1e30, {})), ([False], ([1], "", 1, 0, 1e30, {}))],
        id="several results, truth and large numbers",
    ),
    Calls("perl", "sub f { return }", [([1], ())], id="no result"),
    Calls(
        "perl", "sub f { my $x = shift; @$x = sort @$x; return }", [([[2, 1]], [1, 2])], id="what is changed in place"
    ),
    Calls(
        "perl",
        "use strict; package Solution; sub new { return bless {}, shift } sub f { my ($self, $x, $y) = @_;\n"
        "die 'no' if $x == 1; return $x + $y } package Other; sub f { 9 }\nsub Other::g { 8 } 0;",
        [([2, 3], 5), ([1, 1], RAISES)],
        id="a method of a package",
    ),
    Calls("perl", "package A::B; sub f { return \\@_ } 1;", [([2, "x"], [2, "x"])], id="a function of a package"),
    Calls(
        "perl",
        "my $n = 0; our %seen; sub f { my $s = shift; $_ = $s; s/\u00e9/e/; $n += length $s;"
        " chomp(my $d = <DATA> // '');\n"
        "return [$_, $n, $d] }\n__DATA__\nline\n",
        [(["\u00e9t\u00e9"], ["et\u00e9", 3, "line"]), ([""], ["", 3, ""])],
        id="text is characters, and data stands behind it",
    ),
]

_LUA_VALUES = [value for value in _JSON_VALUES if not isinstance(value, set) and value != {}]
LUA = [
    Calls(
        "lua",
        "#!/usr/bin/env lua\r\nlocal function f(x)\r\n  return x\r\nend\r\nprint(f(1), io.read())\r\n"
        "io.stderr:write('demo')\r\nstring, table, math, tostring, type, pcall, next = nil\r\n",
        [([value], value) for value in [*_LUA_VALUES, 2**63 - 1, -(2**63), {1: [2], "a": True}, [1, None, 3]]],
        id="identity of a local function, and no library",
    ),
    Calls(
        "lua",
        "function f(x, n) local t = {} for i = 1, n do t[i] = x[i] end t[5] = n return #x, t end",
        [([[1, None, 3], 2], (3, [1, None, None, None, 2])), ([[None, None], 0], (0, [None] * 4 + [0]))],
        id="lists with nothing in some places",
    ),
    Calls(
        "lua",
        "function f(x) return ({ x, nil, { [0] = x }, { [1.0] = x, [9] = x }, { [1.5] = x, y = {} }, 2^53, 10 // 3,"
        " {} })[x] end",
        [
            ([1], 1),
            ([2], None),
            ([3], {0: 3}),
            ([4], [4, *[None] * 7, 4]),
            ([5], {1.5: 5, "y": []}),
            ([6], 2.0**53),
            ([7], 3),
            ([8], []),
        ],
        id="tables and numbers",
    ),
    Calls(
        "lua", "function f(x) x[2], x.n = 7, 1 end", [([[1, 2]], {1: 1, 2: 7, "n": 1})], id="what is changed in place"
    ),
    Calls("lua", "local M = {}\nfunction M.f(a, b) return a .. b end\nreturn M", [(["x", "y"], "xy")], id="a module"),
    Calls("lua", "local M = {}\nreturn function(a) return -a end", [([2], -2)], id="a chunk that returns a function"),
    Calls(
        "lua",
        "Solution = {} Solution.__index = Solution\nfunction Solution.new() return setmetatable({n = 1}, Solution)"
        " end\nfunction Solution:f(x) if x == 1 then error({}) end self.n = self.n + x return self.n end",
        [([2], 3), ([1], RAISES), ([3], 4)],
        id="a method of Solution",
    ),
    Calls(
        "lua",
        "local A = {} A.B = 1 function A.f(x) return x end function A:g() return self.B end",
        [([2], 2)],
        entry_point="A.f",
        id="a function of a named table",
    ),
    Calls(
        "lua",
        "function f(x) if x == 1 then return f(1) + 1 end if x == 2 then local t = {} t[1] = t return t end"
        " return x.y.z end",
        [([1], RAISES), ([2], RAISES), ([3], RAISES)],
        id="calls without end, a table in itself, and nothing indexed",
    ),
]

_C_SCALARS = (
    "#include <stdint.h>\n#include <stdbool.h>\n#include <stdlib.h>\ntypedef unsigned long long ull;\n"
    "#define real double\nint main(void) { return 1; }\n"
)
C = [
    Calls(
        "c",
        _C_SCALARS + "static real f(int8_t a, ull b, real c, float d, bool e, char g, const size_t h)\n"
        "{ return g == 'x' && h == 7 && e && a == -5 && b == 18446744073709551615ull ? c : d; }",
        [
            *(([-5, 2**64 - 1, number, 0, True, "x", 7], number) for number in FLOATS),
            ([0, 0, 1, 0.5, 1, "x", True], 0.5),
            ([128, 0, 0, 0, True, "x", 7], RAISES),
            ([0, 0, 0, 0, True, "xy", 7], RAISES),
            ([0, 0, 0, 0, True, "x", -1], RAISES),
        ],
        id="scalars, by the types of the function",
    ),
    Calls(
        "c",
        "char *f(char *s, const char* t) { return t ? s : 0; }",
        [*(([text, ""], text) for text in TEXTS if "\0" not in text), (["\0", ""], RAISES), (["", None], None)],
        id="texts, and nothing",
    ),
    Calls(
        "c",
        "int* f(int* nums, int numsSize, int target, int* returnSize) {\n"
        "    int *r = malloc(sizeof(int) * (numsSize + 1)); memcpy(r, nums, numsSize * sizeof(int)); free(nums);\n"
        "    r[numsSize] = target; *returnSize = target ? numsSize + 1 : -1; return r; }",
        [([[1, 2], 5], [1, 2, 5]), ([[], -7], [-7]), ([[], 0], RAISES)],
        id="LeetCode's arrays, without its headers",
    ),
    Calls(
        "c",
        "int** f(int** a, int n, int* cols, int* returnSize, int** returnColumnSizes)\n"
        "{ *returnSize = n; *returnColumnSizes = cols; if (n) a[0][0]++; return a; }",
        [([[[1, 2], [3], []]], [[2, 2], [3], []]), ([[]], [])],
        id="arrays of arrays",
    ),
    Calls(
        "c",
        "char** f(char** words, int n, int* returnSize) { *returnSize = n > 1 ? 1 : n; return words + (n > 1); }",
        [([["a", "b\n"]], ["b\n"]), ([["x"]], ["x"]), ([[]], [])],
        id="arrays of texts",
    ),
    Calls(
        "c",
        "void f(int n, double x[]) { for (int i = 0; i < n; i++) x[i] *= 2; }",
        [([[1, 2.5]], [2.0, 5.0]), ([[]], [])],
        id="what is changed in place, behind its length",
    ),
    Calls("c", "void f(char* s, int n) { s[0] = n; }", [([["a", "b"]], ["\2", "b"])], id="letters, changed in place"),
    Calls("c", "long f(const int *a, int n) { return a[n - 1]; }", [([[1, 2], 1], 1)], id="a length in the row"),
    Calls(
        "c",
        "struct ListNode* f(struct ListNode* head, int turn) { struct ListNode *p = 0;\n"
        "if (turn) return head->next = head;\n"
        "while (head) { struct ListNode *n = head->next; head->next = p; p = head; head = n; } return p; }",
        [([[1, 2, 3], 0], [3, 2, 1]), ([[], 0], []), ([None, 0], []), ([[1], 1], RAISES)],
        id="a linked list",
    ),
    Calls(
        "c",
        "typedef struct TreeNode TreeNode;\n"
        "void f(TreeNode* r) { if (r) { TreeNode *t = r->left; r->left = r->right; r->right = t; f(t); f(r->left); } }",
        [([[1, 2, 3, None, 4]], [1, 3, 2, None, None, 4]), ([[]], [])],
        id="a tree",
    ),
    Calls(
        "c",
        "int f(struct ListNode** lists, int n) { return lists[n - 1]->val; }",
        [([[[1], [2, 3]]], 2)],
        id="several lists",
    ),
    Calls("c", "int f() { return 3; } int read(void); int size, value, line;", [([], 3)], id="no arguments"),
    Calls(
        "c", "int max(int a, int b) { return a > b ? a : b; }", [([1, 2], 2)], entry_point="max", id="a library's name"
    ),
]
BASH = [
    Calls(
        "bash",
        "#!/bin/bash\r\nset -euo pipefail\r\nf() {\r\n  local x=$1\r\n  printf '%s' \"$x\"\r\n  return 3\r\n}\r\n"
        '[[ "${BASH_SOURCE[0]}" == "$0" ]] && read -r x && f "$x"\r\necho demo\r\n'
        "IFS=:; shopt -s nocasematch; set -f\r\n",
        [
            *(([text], text.rstrip("\n")) for text in TEXTS if "\0" not in text),
            *[([7], "7"), ([-0.5], "-0.5"), ([True], "true"), ([None], "None"), ([[]], ""), ([["*", 2]], "* 2")],
            *[([[["a", "b"], [], [1]]], "a b\n\n1"), ([{"k": 1, 2: "x,y"}], "k,1\n2,x,y"), (["x\n\n"], "x")],
            *[
                (["'\"$(echo no)`echo no`!\\\\ & "], "'\"$(echo no)`echo no`!\\\\ & "),
                (["\x01\x7f\x1f"], "\x01\x7f\x1f"),
            ],
        ],
        id="words of every type",
    ),
    Calls(
        "bash",
        'n=0\nfunction f { n=$((n + 1)); cat; echo "$n $# ${2-}"; exit 3; }\n'
        "text() { :; }; printf() { :; }; code=1 letter=2",
        [([1, "a  b"], "1 2 a  b"), ([[]], "1 1 "), ([], "1 0 ")],
        id="a function that ends its shell, reads, and has names of the driver",
    ),
]

CALLS = [*CPP, *JAVASCRIPT, *TYPESCRIPT, *JAVA, *GO, *RUST, *RUBY, *PHP, *PERL, *LUA, *C, *BASH]
