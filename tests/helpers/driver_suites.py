"""Suites of each language, with a completion that is right and one that is wrong: public sets' forms, written anew."""

from __future__ import annotations

from dataclasses import dataclass

from sandbox.languages.language import Suite


@dataclass(frozen=True)
class JudgedSuite:
    """A suite, the rest of the function that its declaration begins, and a wrong rest."""

    language: str
    id: str
    suite: Suite
    right: str
    wrong: str

    def completion(self, rest: str) -> str:
        """Return a completion: the declaration and a rest of the function."""
        return self.suite.declaration + rest


_CPP_HEAD = "#include <vector>\n#include <string>\nusing namespace std;\nint twice(int x) { return 2 * x; }\n"
SUITES = [
    JudgedSuite(
        "cpp",
        "HumanEvalPack",
        Suite(
            "#undef NDEBUG\n#include <assert.h>\nint main() { vector<float> a = {1.0, 2.5};\n"
            "assert(close(a, 2.0)); assert(not close({1.0, 2.5}, 1)); assert(twice(2) == 4); }\n",
            "close",
            _CPP_HEAD + "bool close(vector<float> numbers, float threshold){\n",
        ),
        "return numbers[1] - numbers[0] < threshold; }\n",
        "return numbers[1] - numbers[0] > threshold; }\n",
    ),
    JudgedSuite(
        "cpp",
        "MultiPL-E, in place",
        Suite(
            "}\nint main() { auto candidate = add; vector<long> x = {1};\nassert(candidate(x, 2) == 3);"
            "assert(x == (vector<long>{1, 2})); }\n",
            "add",
            "#include <assert.h>\n#include <bits/stdc++.h>\nlong add(std::vector<long>& x, const long y) {\n",
            "using namespace std;\n",
        ),
        "x.push_back(y); long sum = 0; for (long z : x) sum += z; return sum; }\n",
        "return 3; }\n",
    ),
    JudgedSuite(
        "cpp",
        "a function without a result, and an entry point of another name",
        Suite(
            '#include <cassert>\nint main() { std::string s = "ab"; turned(s); assert(s == "ba"); }\n',
            "turn",
            "#include <string>\n#include <algorithm>\nvoid turned(std::string &s)\n{\n",
        ),
        "std::reverse(s.begin(), s.end()); }\n",
        "}\n",
    ),
    JudgedSuite(
        "cpp",
        "a function with overloads of its own",
        Suite(
            "#include <cassert>\nint main() { vector<ll> x = {1, 2}; assert(total(x, 2) == 5 && x.size() == 3); }\n",
            "total",
            "#include <vector>\nusing namespace std;\n#define ll long long\nll total(vector<ll>& x, int n) {\n",
        ),
        "x.push_back(n); ll sum = 0; for (ll y : x) sum += y; return sum; }\n"
        "ll total(const vector<ll>& x) { auto y = x; return total(y, 0); }\n"
        "double total(double x, double y = 1, const char* = nullptr) { return x + y; }\n"
        "template <class T> void total(T*);\n",
        "return 5; }\nll total(int x) { return x; }\n",
    ),
    JudgedSuite(
        "javascript",
        "HumanEvalPack, whose test is never called",
        Suite(
            "const testClose = () => {\n  console.assert(close([1.0, 2.5], 2.0) === true)\n"
            "  console.assert(close([1.0, 2.5], 1) === false)\n}\n",
            "close",
            "\nconst gap = (x) => x[1] - x[0];\n\nconst close = (numbers, threshold) => {\n",
        ),
        "  return gap(numbers) < threshold\n}\n",
        "  return gap(numbers) > threshold\n}\n",
    ),
    JudgedSuite(
        "javascript",
        "MultiPL-E, in place",
        Suite(
            "const assert = require('node:assert');\nfunction test() {\n  let candidate = add; const x = [1];\n"
            "  assert.deepEqual(candidate(x, {a: 2}), undefined); assert.deepEqual(x, [1, {a: 2}]);\n}\ntest();\n",
            "add",
            "//Adds.\nfunction add(x, y){\n",
        ),
        "  x.push(y)\n}\n",
        "  x.push(1)\n}\n",
    ),
    JudgedSuite(
        "java",
        "HumanEvalPack",
        Suite(
            "public class Main {\n    public static void main(String[] args) {\n        Solution s = new Solution();\n"
            "        List<Boolean> correct = Arrays.asList(\n"
            "            s.close(new ArrayList<>(Arrays.asList(1.0, 2.5)), 2.0),\n"
            "            !s.close(new ArrayList<>(Arrays.asList(1.0, 2.5)), 1.0));\n"
            "        if (correct.contains(false)) throw new AssertionError();\n    }\n}\n",
            "close",
            "import java.util.*;\nimport java.lang.*;\n\nclass Solution {\n    /** Doc { with a brace. */\n"
            "    public boolean close(List<Double> numbers, double threshold) {\n",
        ),
        "        return numbers.get(1) - numbers.get(0) < threshold;\n    }\n}\n",
        "        return numbers.get(1) - numbers.get(0) > threshold;\n    }\n}\n",
    ),
    JudgedSuite(
        "java",
        "MultiPL-E, in place",
        Suite(
            "    }\n    public static void main(String[] args) {\n    int[] x = {3, 1};\n    assert(sort(x) == 2l);\n"
            "    assert(x[0] == 1);\n    }\n\n}\n",
            "sort",
            "import java.util.*;\nclass Problem {\n    public static long sort(int[] x) {\n",
        ),
        "        Arrays.sort(x); return x.length; } }\n",
        "        return x.length; } }\n",
    ),
    JudgedSuite(
        "java",
        "MultiPL-E, whose prompts all import org.javatuples",
        Suite(
            "    }\n    public static void main(String[] args) {\n"
            "    assert(both((new ArrayList<Long>(Arrays.asList((long)2l, (long)3l)))).equals((Pair.with(5l, 6l))));\n"
            "    }\n\n}\n",
            "both",
            "import java.util.*;\nimport org.javatuples.*;\nimport java.util.stream.*;\nclass Problem {\n"
            "    public static Pair<Long, Long> both(ArrayList<Long> numbers) {\n",
        ),
        "        return Pair.with(numbers.get(0) + numbers.get(1), numbers.get(0) * numbers.get(1)); } }\n",
        "        return Pair.with(numbers.get(0) * numbers.get(1), numbers.get(0) + numbers.get(1)); } }\n",
    ),
    JudgedSuite(
        "java",
        "a main in the class of the method",
        Suite(
            "    public static void main(String[] args) { assert next(1) == 2; assert next(4) == 5; }\n}\n",
            "next",
            "public class Main {\n    static int next(int x) {\n",
        ),
        "        return x + 1; } }\n",
        "        return x; } }\n",
    ),
    JudgedSuite(
        "go",
        "HumanEvalPack",
        Suite(
            "func TestClose(t *testing.T) {\n    assert := assert.New(t)\n"
            "    assert.Equal(true, Close([]float64{1.0, 2.5}, 2.0))\n"
            "    assert.Equal(false, Close([]float64{1.0, 2.5}, 1))\n}\n",
            "Close",
            'import (\n    "math"\n)\n\nfunc Close(numbers []float64, threshold float64) bool {\n',
            'package main\n\nimport (\n    "testing"\n    "github.com/stretchr/testify/assert"\n)\n',
        ),
        "    return math.Abs(numbers[1]-numbers[0]) < threshold\n}\n",
        "    return math.Abs(numbers[1]-numbers[0]) > threshold\n}\n",
    ),
    JudgedSuite(
        "go",
        "values of any type",
        Suite(
            "func TestIntegers(t *testing.T) {\n    assert := assert.New(t)\n"
            "    assert.Equal([]int{4, 9}, Integers([]interface{}{4, nil, 23.0, 9, \"a\", int8(3), 'c'}))\n"
            "    assert.Nil(Integers([]interface{}{}))\n    assert.Equal(2.0, First([]interface{}{2.0}))\n}\n"
            "func First(x []interface{}) interface{} { return x[0] }\n",
            "Integers",
            "func Integers(values []interface{}) []int {\n",
        ),
        "    var r []int\n"
        "    for _, v := range values { x, ok := v.(int); if ok { r = append(r, x) } }\n    return r\n}\n",
        "    r := []int{}\n"
        "    for _, v := range values { x, ok := v.(int); if ok { r = append(r, x) } }\n    return r\n}\n",
    ),
    JudgedSuite(
        "go",
        "MultiPL-E, in place",
        Suite(
            "func TestSort(t *testing.T) {\n  candidate := sorted\n  type test struct { actual int; expected int }\n"
            "  x := []int{3, 1}\n   tests := []test{ { actual: candidate(x), expected: 2 } }\n"
            '    for i, tc := range tests {\n        t.Run(fmt.Sprintf("test num % d", i), func(t *testing.T) {\n'
            '            if tc.actual != tc.expected || fmt.Sprintf("%v", x) != "[1 3]" { t.Errorf("wrong %v", x) }\n'
            "        })\n    }\n}\n",
            "sorted",
            'package sort_test\n\nimport (\n    "testing"\n    "fmt"\n)\n\n// sorts\nfunc sorted(x []int) int {\n',
        ),
        "    if x[0] > x[1] { x[0], x[1] = x[1], x[0] }\n    return len(x)\n}\n",
        "    return len(x)\n}\n",
    ),
    JudgedSuite(
        "go",
        "a main of its own, results with names, an error and a struct",
        Suite(
            'package main\n\nimport "os"\n\nfunc main() {\n    x, err := half(point{3, 8})\n'
            "    _, bad := half(point{3, 7})\n"
            '    if x.y != 4 || err != nil || bad == nil || bad.Error() != "odd" { os.Exit(1) }\n}\n',
            "half",
            "package main\n\ntype point struct{ x, y int }\n\nfunc half(p point) (r point, err error) {\n",
        ),
        '    if p.y%2 == 1 { return p, errors.New("odd") }\n    p.y /= 2\n    return p, nil\n}\n',
        "    p.y /= 2\n    return p, nil\n}\n",
    ),
    JudgedSuite(
        "rust",
        "HumanEvalPack",
        Suite(
            "\n#[cfg(test)]\nmod tests {\n    use super::*;\n\n    #[test]\n    fn test_close() {\n"
            "        assert_eq!(close(vec![1.0, 2.5], 2.0), true);\n"
            "        assert_eq!(close(vec![1.0, 2.5], 1.0), false);\n    }\n\n}\n",
            "close",
            "\nfn main(){\n } \n\nuse std::{slice::Iter, cmp::{max, self}};\nuse rand::Rng;\nuse md5;\n"
            "fn close(numbers:Vec<f32>, threshold: f32) -> bool{\n",
        ),
        "    numbers[1] - numbers[0] < threshold\n}\n",
        "    numbers[1] - numbers[0] > threshold\n}\n",
    ),
    JudgedSuite(
        "rust",
        "MultiPL-E, in place",
        Suite(
            "}\n\nfn main() {\n    let candidate = sort; let mut x = vec![3, 1];\n"
            '    assert_eq!(candidate(&mut x, "a"), Some(String::from("a")));\n    assert_eq!(x, vec![1, 3]);\n}\n',
            "sort",
            "fn sort(x: &mut Vec<isize>, s: &str) -> Option<String> {\n",
        ),
        "    x.sort(); Some(s.to_string())\n}\n",
        "    Some(s.to_string())\n}\n",
    ),
    JudgedSuite(
        "php",
        "MultiPL-E",
        Suite(
            "function candidate(...$args) {\n    return close(...$args);\n}\n\nfunction test(): void {\n"
            '    if (candidate([1.0, 2.5], 2.0) !== true) { throw new Exception("Test failed!"); }\n'
            '    if (candidate([1.0, 2.5], 1) !== false) { throw new Exception("Test failed!"); }\n}\n\ntest();',
            "close",
            "<?php\n// It's close.\nfunction gap($x) { return $x[1] - $x[0]; }\n"
            "function close($numbers, $threshold) {\n",
        ),
        "    return gap($numbers) < $threshold;\n}\n",
        "    return gap($numbers) > $threshold;\n}\n",
    ),
    JudgedSuite(
        "php",
        "in place, with types and exceptions",
        Suite(
            "$x = [3, 1]; sorted($x); assert($x === [1, 3]); sorted($x, 5, 'k'); assert($x === [1, 3, 'k' => 5]);\n"
            "$y = [1]; try { sorted($y, 7); assert(false); } catch (Exception $e) { }",
            "sort",
            "<?php\nfunction sorted(array &$x, int|string ...$more): void\n{\n",
        ),
        "    sort($x); if (count($more) == 1) throw new Exception(); if ($more) $x[$more[1]] = $more[0];\n}\n",
        "    sort($x);\n}\n",
    ),
    JudgedSuite(
        "ruby",
        "MultiPL-E",
        Suite(
            "require 'test/unit'\nclass TestHumanEval < Test::Unit::TestCase\n  def test_close\n"
            "    candidate = method(:close)\n    assert_equal(true, candidate.call([1.0, 2.5], 2.0))\n"
            "    assert_equal(false, candidate.call([1.0, 2.5], 1))\n  end\nend\n",
            "close",
            "# Close.\ndef gap(x) = x[1] - x[0]\ndef close(numbers, threshold)\n",
        ),
        "  gap(numbers) < threshold\nend\n",
        "  gap(numbers) > threshold\nend\n",
    ),
    JudgedSuite(
        "ruby",
        "Minitest, in place, with an exception",
        Suite(
            "end\nrequire 'minitest/autorun'\nclass TestAdd < Minitest::Test\n  def setup = @x = [1]\n"
            "  def test_adds\n    add(@x, { 'a' => 2.5 })\n    assert_equal [1, { 'a' => 2.5 }], @x\n"
            "    assert_raises(RuntimeError) { add(@x, nil) }\n    assert_nil add(@x, 1)\n  end\nend\n",
            "add",
            "def add(x, y)\n",
        ),
        "  raise 'no' if y.nil?\n  x << y\n  nil\nend\n",
        "  x << y\n  nil\nend\n",
    ),
]
