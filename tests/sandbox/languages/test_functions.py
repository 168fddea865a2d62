"""Functions of each language, judged by values in the jail: what is right passes, and what is wrong fails."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest

from sandbox import FunctionCheck, Sandbox, check_functions, why_not_run
from sandbox.errors import CheckError, NotPlainError

_Pairs = list[tuple[list[Any], Any]]


class Judged(NamedTuple):
    """A row of values with completions.

    Attributes:
        language: What they are written in.
        id: What the row has.
        pairs: Arguments and expected values.
        right: Completions that are right, by forms that the language has for the same.
        wrong: Completions that are not.
        entry_point: The function's name.
    """

    language: str
    id: str
    pairs: _Pairs
    right: list[str]
    wrong: list[str]
    entry_point: str = "f"


_EVEN: _Pairs = [([4], True), ([7], False)]
_SQUARES: _Pairs = [([[1, 2, 3]], [1, 4, 9]), ([[]], []), ([[2]], [4])]
_COUNTS: _Pairs = [(["abca"], {"a": 2, "b": 1, "c": 1}), ([""], {})]
_SORTED: _Pairs = [([[3, 1, 2]], [1, 2, 3]), ([[1, 2]], [1, 2]), ([[]], [])]
_SORTING = {
    "javascript": ("function f(x) { x.sort(); }", "function f(x) { x.reverse(); }", "function f(x) { [...x].sort(); }"),
    "lua": ("function f(x) table.sort(x) end", "function f(x) x[1] = nil end", "function f(x) end"),
    "perl": ("sub f { my $x = shift; @$x = sort @$x; return }", "sub f { $_[0][0] = 1; return }", "sub f { return }"),
    "php": ("<?php function f(&$x) { sort($x); }", "<?php function f(&$x) { rsort($x); }", "<?php function f($x) {}"),
    "ruby": ("def f(x)\n  x.sort!\n  nil\nend", "def f(x) = (x.reverse!; nil)", "def f(x) = (x.sort; nil)"),
}
JUDGED = [
    *(Judged(language, "in place", _SORTED, [right], [*wrong]) for language, (right, *wrong) in _SORTING.items()),
    Judged(
        "javascript",
        "large whole numbers",
        [([60], 2**60), ([0], 1), ([69], 2.0**69)],
        ["const f = (n) => 2 ** n"],
        [
            "const f = (n) => 2 ** n + (n > 9) * 1000",
            "const f = (n) => 2 ** (n + 1e-12)",
            "const f = (n) => String(2 ** n)",
        ],
    ),
    Judged(
        "perl",
        "truth",
        _EVEN,
        [
            "sub f { my ($n) = @_; return $n % 2 == 0 }",
            "sub f { $_[0] % 2 ? 0 : 1 }",
            "sub f { return 1 if $_[0] % 2 == 0; return; }",
            "use strict; use warnings; sub f { my $n = shift; return $n =~ /[02468]$/ ? 1 : ''; }",
        ],
        ["sub f { return $_[0] }", "sub f { return 'true' }", "sub f { return 0 }", "sub g { 1 }", "sub f { die", "("],
    ),
    Judged(
        "perl",
        "lists",
        _SQUARES,
        [
            "sub f { my ($x) = @_; my @y = map { $_ * $_ } @$x; return \\@y }",
            "sub f { my ($x) = @_; return [map { $_ ** 2 } @{$x}] }",
            "sub f { my ($x) = @_; return map { $_ * $_ } @$x }",
            'sub f { my ($x) = @_; return [map { "" . $_ * $_ } @$x] }',
            "sub f { my ($x) = @_; $_ *= $_ for @$x; return $x }",
        ],
        ["sub f { my ($x) = @_; return scalar @$x }", "sub f { return $_[0] }", "sub f { my ($x) = @_; undef }"],
    ),
    Judged(
        "perl",
        "hashes",
        _COUNTS,
        ["sub f { my %n; $n{$_}++ for split //, shift; return \\%n }"],
        ["sub f { my %n; $n{$_}++ for split //, shift; return %n }", "sub f { return {} }"],
    ),
    Judged(
        "perl",
        "numbers and texts",
        [(["12"], 12), (["x"], None), (["0.5"], 0.5)],
        ["sub f { return $_[0] =~ /^([\\d.]+)$/ ? $1 : undef }", "sub f { $_[0] =~ /\\d/ ? $_[0] + 0 : undef }"],
        ["sub f { return 0 + $_[0] }", "sub f { return '' }"],
    ),
    Judged(
        "lua",
        "truth",
        _EVEN,
        ["local function f(n) return n % 2 == 0 end", "f = function(n) return (n & 1) == 0 end print(f(4))"],
        [
            "function f(n) return n end",
            "function f(n) return 'true' end",
            "function f(n) return n % 2 end",
            "f = 1",
            "(",
        ],
    ),
    Judged(
        "lua",
        "lists",
        _SQUARES,
        [
            "local function f(t) local r = {} for i, v in ipairs(t) do r[i] = v * v end return r end",
            "local M = {} function M.f(t) for i = 1, #t do t[i] = t[i] ^ 2 end return t end return M",
        ],
        ["function f(t) return t end", "function f(t) return {} end", "function f(t) return #t end"],
    ),
    Judged(
        "lua",
        "mappings, of which the empty one is a list",
        _COUNTS,
        ["function f(s) local t = {} for c in s:gmatch('.') do t[c] = (t[c] or 0) + 1 end return t end"],
        ["function f(s) return {} end", "function f(s) return nil end"],
    ),
    Judged(
        "lua",
        "the first of several results",
        [(["a-b"], "a_b"), (["x"], "x")],
        ["function f(s) return s:gsub('-', '_') end", "function f(s) return (s:gsub('-', '_')) end"],
        ["function f(s) return 0, s:gsub('-', '_') end", "function f(s) return { s:gsub('-', '_') } end"],
    ),
    Judged(
        "bash",
        "truth",
        _EVEN,
        [
            "f() { if (($1 % 2)); then echo false; else echo true; fi; }",
            "f() { (($1 % 2)) || { echo true; exit; }; echo false; }",
        ],
        ["f() { return $(($1 % 2)); }", "f() { echo true; }", "f() { exit; }", "g() { :; }", "exit", "f() {", "f=1"],
    ),
    Judged(
        "bash",
        "lists",
        _SQUARES,
        [
            'f() { local r=() n; for n in $1; do r+=($((n * n))); done; echo "${r[*]}"; }',
            "f() { for n in $1; do echo $((n * n)); done; }",
            'f() { echo "$1" | awk \'{ for (i = 1; i <= NF; i++) printf "%d ", $i * $i }\'; }',
        ],
        ['f() { echo "$1"; }', "f() { :; }", "f() { echo 1 4 9 4; }"],
    ),
    Judged(
        "bash",
        "mappings",
        _COUNTS,
        [
            "f() { declare -A n; local i; for ((i = 0; i < ${#1}; i++)); do ((++n[${1:i:1}])); done\n"
            'for i in "${!n[@]}"; do echo "$i,${n[$i]}"; done; }',
            'f() { echo -n "$1" | fold -w 1 | sort | uniq -c | awk \'{ print $2 "," $1 }\'; }',
        ],
        ["f() { echo; }", "f() { echo a,2; }"],
    ),
    Judged(
        "bash",
        "lists of lists and floats",
        [([[[1, 2], [3]]], [[2.5, 3.5], [4.5]])],
        ["f() { awk '{ for (i = 1; i <= NF; i++) $i += 1.5; print }' <<< \"$1\"; }"],
        ["f() { awk '{ for (i = 1; i <= NF; i++) print $i + 1.5 }' <<< \"$1\"; }"],
    ),
    Judged(
        "c",
        "truth",
        _EVEN,
        [
            "#include <stdbool.h>\nbool f(int n) { return n % 2 == 0; }",
            "int f(int n) { return n % 2 == 0; }",
            "static _Bool f(long n) { return !(n & 1); }\nint main(void) { return 7; }",
        ],
        [
            "int f(int n) { return 1; }",
            'char *f(int n) { return n % 2 ? "false" : "true"; }',
            "int g(int n) { return 1; }",
            "struct S { int x; }; struct S f(int n) { struct S s = {n}; return s; }",
            "int f(int n",
            "void f(int n) {}",
        ],
    ),
    Judged(
        "c",
        "lists",
        _SQUARES,
        [
            "int* f(int* a, int n, int* returnSize) { int* r = malloc(n * sizeof(int)); *returnSize = n;\n"
            "for (int i = 0; i < n; i++) r[i] = a[i] * a[i]; return r; }",
            "void f(double x[], size_t n) { for (size_t i = 0; i < n; i++) x[i] *= x[i]; }",
        ],
        [
            "int* f(int* a, int n, int* returnSize) { *returnSize = n; return a; }",
            "int* f(int* a, int n, int* returnSize) { *returnSize = 1000000000; return a; }",
            "int* f(int* a, int n) { for (int i = 0; i < n; i++) a[i] *= a[i]; return a; }",
            "int f(int* a, int n) { return n; }",
        ],
    ),
    Judged(
        "c",
        "texts",
        [(["ab"], "AB"), ([""], "")],
        ["#include <ctype.h>\nchar *f(char *s) { for (char *p = s; *p; p++) *p = toupper(*p); return s; }"],
        ["char *f(char *s) { return s; }", "char *f(char *s) { return 0; }", "char f(char *s) { return *s - 32; }"],
    ),
    Judged(
        "php",
        "mappings, of which the empty one is a list",
        _COUNTS,
        ["<?php function f($x) { return $x === '' ? [] : array_count_values(str_split($x)); }"],
        ["<?php function f($x) { return []; }", "<?php function f($x) { return null; }"],
    ),
    Judged(
        "php",
        "keys that are numbers and texts",
        [([["a", "1"]], {"a": 0, "1": 1})],
        ["<?php function f($x) { return array_flip($x); }"],
        ["<?php function f($x) { return $x; }"],
    ),
]


@pytest.mark.slow
@pytest.mark.cases(6)
@pytest.mark.parametrize("row", JUDGED, ids=lambda row: f"{row.language}: {row.id}")
def test_what_is_right_passes_and_what_is_wrong_fails(sandbox: Sandbox, row: Judged) -> None:
    """A right completion passes every check, a wrong one not every."""
    if reason := why_not_run(row.language):
        pytest.skip(reason)
    checks = [FunctionCheck(*pair, float_tol=1e-9) for pair in row.pairs]
    for source in (*row.right, *row.wrong):
        report = check_functions(sandbox, source, row.entry_point, checks, language=row.language)
        assert report.all_passed == (source in row.right), (source, report)


@pytest.mark.parametrize(
    ("language", "arguments", "expected", "entry_point"),
    [
        ("c", ["a"], {"a": 1}, "f"),
        ("c", [{"a": 1}], 1, "f"),
        ("c", [[[[1]]]], 1, "f"),
        ("c", [[1, "a"]], 1, "f"),
        ("c", [1], 1, "A.f"),
        ("bash", ["a"], ["a b"], "f"),
        ("bash", [["a b"]], "a", "f"),
        ("bash", ["a"], "a", "A.f"),
        ("perl", [1], 1, "f("),
    ],
)
def test_a_row_that_the_language_has_no_values_for_is_at_fault(
    sandbox: Sandbox, language: str, arguments: list[Any], expected: Any, entry_point: str
) -> None:
    """Nothing is said of the completion."""
    if reason := why_not_run(language):
        pytest.skip(reason)
    with pytest.raises((NotPlainError, CheckError)):
        check_functions(sandbox, "", entry_point, [FunctionCheck(arguments, expected)], language=language)
