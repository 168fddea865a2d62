"""Problems of HumanEval in Java, Go and Rust: rows by values and by suites, with right solutions and wrong ones.

HumanEval's canonical solutions in Python, run in the jail on the inputs of their asserts, say what each call must
return. The signatures and the tests are written from the types of this table.
"""

from __future__ import annotations

import ast
import gzip
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from translated_solutions import SOLUTIONS

from sandbox import Limits, Sandbox
from sandbox.languages.language import Suite

LANGUAGES = ("go", "java", "rust")


@dataclass(frozen=True)
class Kind:
    """A type such as ``dict[str, int]``: a name and the types in its brackets."""

    name: str
    parts: tuple[Kind, ...] = ()

    @classmethod
    def read(cls, text: str) -> Kind:
        """Return the type that a text writes as Python does."""
        return cls._of(ast.parse(text, mode="eval").body)

    @classmethod
    def _of(cls, node: ast.expr) -> Kind:
        if isinstance(node, ast.Name):
            return cls(node.id)
        assert isinstance(node, ast.Subscript)
        assert isinstance(node.value, ast.Name)
        inner = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        return cls(node.value.id, tuple(map(cls._of, inner)))

    def fits(self, value: Any) -> bool:
        """Return whether a value is of this type."""
        if self.name == "optional":
            return value is None or self.parts[0].fits(value)
        if self.name == "list":
            return isinstance(value, list | tuple) and all(map(self.parts[0].fits, value))
        if self.name == "tuple":
            return (
                isinstance(value, list | tuple)
                and len(value) == len(self.parts)
                and all(part.fits(item) for part, item in zip(self.parts, value, strict=True))
            )
        if self.name == "dict":
            key, item = self.parts
            return isinstance(value, dict) and all(key.fits(name) and item.fits(value[name]) for name in value)
        if self.name == "float":
            return type(value) in (int, float)
        return type(value) is {"int": int, "long": int, "bool": bool, "str": str}[self.name]


@dataclass(frozen=True)
class Problem:
    """A problem by its number in HumanEval, with the types that its function has in the other languages."""

    number: int
    parameters: tuple[str, ...]
    result: str
    more: tuple[tuple[Any, ...], ...] = ()
    """Calls besides those of HumanEval's asserts."""


PROBLEMS = {
    "has_close_elements": Problem(0, ("list[float]", "float"), "bool", (([], 0.5),)),
    "intersperse": Problem(5, ("list[int]", "int"), "list[int]"),
    "sum_product": Problem(8, ("list[int]",), "tuple[int, int]"),
    "longest": Problem(12, ("list[str]",), "optional[str]", ((["\u00e9", "\U0001f600x", "ab"],),)),
    "rescale_to_unit": Problem(21, ("list[float]",), "list[float]"),
    "flip_case": Problem(27, ("str",), "str", (('\u00dcn\u00ef \U0001f600 "q" \\',),)),
    "fib": Problem(55, ("int",), "int"),
    "triangle_area": Problem(71, ("float", "float", "float"), "float"),
    "get_row": Problem(87, ("list[list[int]]", "int"), "list[tuple[int, int]]"),
    "next_smallest": Problem(90, ("list[int]",), "optional[int]"),
    "check_dict_case": Problem(95, ("dict[str, str]",), "bool"),
    "by_length": Problem(105, ("list[int]",), "list[str]"),
    "histogram": Problem(111, ("str",), "dict[str, int]"),
    "prod_signs": Problem(128, ("list[int]",), "optional[int]"),
    "largest_smallest_integers": Problem(136, ("list[int]",), "tuple[optional[int], optional[int]]"),
    "special_factorial": Problem(139, ("long",), "long"),
}


@dataclass(frozen=True)
class TranslatedRow:
    """A row: its calls with what they return, its suite, and two programs."""

    language: str
    name: str
    inputs: list[list[Any]]
    outputs: list[Any]
    suite: Suite
    right: str
    wrong: str


def make_rows(data: Path, jail: Sandbox, names: Sequence[str], language: str) -> list[TranslatedRow]:
    """Return the rows of problems in a language; what calls return is found in the jail."""
    lines = gzip.decompress((data / "humaneval" / "HumanEval.jsonl.gz").read_bytes()).decode().splitlines()
    tasks = {row["entry_point"]: row for row in map(json.loads, lines)}
    return [_row(tasks[name], name, jail, language) for name in names]


def _row(task: dict[str, str], name: str, jail: Sandbox, language: str) -> TranslatedRow:
    problem = PROBLEMS[name]
    kinds, result = tuple(map(Kind.read, problem.parameters)), Kind.read(problem.result)
    calls = [*_calls_of(task["test"]), *map(list, problem.more)]
    calls = [call for call in calls if all(kind.fits(value) for kind, value in zip(kinds, call, strict=True))]
    source = task["prompt"] + task["canonical_solution"]
    execution = jail.call(source, name, calls, limits=Limits(timeout_s=10.0))
    values = [value.value for value in execution.value or ()]
    assert values, (name, execution.error)
    assert all(map(result.fits, values)), (name, values)
    writer = WRITERS[language]
    head = writer.head(name, kinds, result)
    body, old, new = SOLUTIONS[name][language]
    assert old in body
    suite = writer.suite(name, head, list(zip(calls, values, strict=True)), kinds, result)
    right, wrong = (writer.program(head, text) for text in (body, body.replace(old, new)))
    return TranslatedRow(language, name, calls, json.loads(json.dumps(values)), suite, right, wrong)


def _calls_of(tests: str) -> list[list[Any]]:
    """Return the arguments of calls of ``candidate`` that are literals."""
    calls = []
    for node in ast.walk(ast.parse(tests)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "candidate":
            try:
                calls.append([ast.literal_eval(argument) for argument in node.args])
            except ValueError:
                continue
    return calls


class JavaWriter:
    """Texts in Java: MultiPL-E's tuples, HumanEvalPack's classes."""

    imports = "import java.util.*;\nimport org.javatuples.*;\n"
    scalars: ClassVar = {"int": "int", "long": "long", "float": "double", "bool": "boolean", "str": "String"}
    boxes: ClassVar = {"int": "Integer", "long": "Long", "float": "Double", "bool": "Boolean", "str": "String"}

    def type(self, kind: Kind, *, boxed: bool = False) -> str:
        """Return a type."""
        names = {"list": "List", "dict": "Map", "tuple": "Pair", "optional": "Optional"}
        if kind.name in names:
            return f"{names[kind.name]}<{', '.join(self.type(part, boxed=True) for part in kind.parts)}>"
        return (self.boxes if boxed else self.scalars)[kind.name]

    def literal(self, kind: Kind, value: Any) -> str:
        """Return a value as an expression."""
        if kind.name == "optional":
            return "Optional.empty()" if value is None else f"Optional.of({self.literal(kind.parts[0], value)})"
        if kind.name == "list":
            items = ", ".join(self.literal(kind.parts[0], item) for item in value)
            return f"new ArrayList<{self.type(kind.parts[0], boxed=True)}>(Arrays.asList({items}))"
        if kind.name == "tuple":
            return f"Pair.with({', '.join(self.literal(*pair) for pair in zip(kind.parts, value, strict=True))})"
        if kind.name == "dict":
            key, item = kind.parts
            pairs = (f"Map.entry({self.literal(key, name)}, {self.literal(item, value[name])})" for name in value)
            return f"Map.ofEntries({', '.join(pairs)})"
        return {"long": f"{value}L", "float": repr(float(value)) if kind.name == "float" else ""}.get(
            kind.name, json.dumps(value)
        )

    def head(self, name: str, kinds: Sequence[Kind], result: Kind) -> str:
        """Return the text up to the method's body."""
        parameters = ", ".join(f"{self.type(kind)} a{index}" for index, kind in enumerate(kinds))
        return f"{self.imports}class Solution {{\n    public {self.type(result)} {name}({parameters}) {{\n"

    def program(self, head: str, body: str) -> str:
        """Return a solution."""
        return f"{head}{body}\n    }}\n}}\n"

    def suite(
        self, name: str, head: str, pairs: Sequence[tuple[Any, Any]], kinds: Sequence[Kind], result: Kind
    ) -> Suite:
        """Return tests in the form of HumanEvalPack."""
        checks = []
        for arguments, value in pairs:
            values = ", ".join(self.literal(*pair) for pair in zip(kinds, arguments, strict=True))
            call, literal = f"s.{name}({values})", self.literal(result, value)
            is_plain = result.name in ("int", "long", "bool", "float")
            checks.append(
                f"        correct.add({f'{call} == {literal}' if is_plain else f'{literal}.equals({call})'});\n"
            )
        tests = (
            "public class Main {\n    public static void main(String[] args) {\n        Solution s = new Solution();\n"
            f"        List<Boolean> correct = new ArrayList<>();\n{''.join(checks)}"
            "        if (correct.contains(false)) { throw new AssertionError(); }\n    }\n}\n"
        )
        return Suite(tests, name, head)


class GoWriter:
    """Texts in Go: tuples are several results, and what may be absent is a pointer."""

    scalars: ClassVar = {"int": "int", "long": "int64", "float": "float64", "bool": "bool", "str": "string"}

    def type(self, kind: Kind) -> str:
        """Return a type."""
        if kind.name == "list" and kind.parts[0].name == "tuple":
            return "[][2]int"
        parts = [self.type(part) for part in kind.parts]
        forms = {"list": "[]{0}", "dict": "map[{0}]{1}", "optional": "*{0}", "tuple": "({0}, {1})"}
        return forms[kind.name].format(*parts) if kind.name in forms else self.scalars[kind.name]

    def literal(self, kind: Kind, value: Any) -> str:
        """Return a value as an expression."""
        if kind.name == "optional":
            inner = self.type(kind.parts[0])
            return f"(*{inner})(nil)" if value is None else f"pointer({inner}({self.literal(kind.parts[0], value)}))"
        if kind.name == "list":
            return f"{self.type(kind)}{{{', '.join(self.literal(kind.parts[0], item) for item in value)}}}"
        if kind.name == "tuple":
            return f"{{{', '.join(self.literal(*pair) for pair in zip(kind.parts, value, strict=True))}}}"
        if kind.name == "dict":
            key, item = kind.parts
            pairs = (f"{self.literal(key, name)}: {self.literal(item, value[name])}" for name in value)
            return f"{self.type(kind)}{{{', '.join(pairs)}}}"
        return json.dumps(value, ensure_ascii=False)

    def head(self, name: str, kinds: Sequence[Kind], result: Kind) -> str:
        """Return the text up to the function's body."""
        parameters = ", ".join(f"a{index} {self.type(kind)}" for index, kind in enumerate(kinds))
        return f"func {name}({parameters}) {self.type(result)} {{\n"

    def program(self, head: str, body: str) -> str:
        """Return a solution, whose imports the driver infers."""
        return f"package main\n\n{head}{body}\n}}\n"

    def suite(
        self, name: str, head: str, pairs: Sequence[tuple[Any, Any]], kinds: Sequence[Kind], result: Kind
    ) -> Suite:
        """Return tests in the form of HumanEvalPack."""
        checks = []
        for arguments, value in pairs:
            values = ", ".join(self.literal(*pair) for pair in zip(kinds, arguments, strict=True))
            if result.name == "tuple":
                first, second = (self.literal(*pair) for pair in zip(result.parts, value, strict=True))
                checks.append(
                    f"    {{ x, y := {name}({values}); assert.Equal({first}, x); assert.Equal({second}, y) }}\n"
                )
            elif result.name == "float":
                checks.append(f"    assert.InDelta({self.literal(result, value)}, {name}({values}), 1e-9)\n")
            else:
                expected = self.literal(result, value)
                expected = expected if result.name == "optional" else f"{self.type(result)}({expected})"
                checks.append(f"    assert.Equal({expected}, {name}({values}))\n")
        setup = 'package main\n\nimport (\n    "testing"\n    "github.com/stretchr/testify/assert"\n)\n'
        helper = "func pointer[T any](x T) *T { return &x }\n"
        tests = f"{helper}func TestIt(t *testing.T) {{\n    assert := assert.New(t)\n{''.join(checks)}}}\n"
        return Suite(tests, name, head, setup)


class RustWriter:
    """Texts in Rust."""

    scalars: ClassVar = {"int": "i64", "long": "i128", "float": "f64", "bool": "bool", "str": "String"}

    def type(self, kind: Kind) -> str:
        """Return a type."""
        forms = {"list": "Vec<{0}>", "dict": "HashMap<{0}, {1}>", "optional": "Option<{0}>", "tuple": "({0}, {1})"}
        parts = [self.type(part) for part in kind.parts]
        return forms[kind.name].format(*parts) if kind.name in forms else self.scalars[kind.name]

    def literal(self, kind: Kind, value: Any) -> str:
        """Return a value as an expression."""
        if kind.name == "optional":
            return "None" if value is None else f"Some({self.literal(kind.parts[0], value)})"
        if kind.name == "list":
            if not value:
                return f"Vec::<{self.type(kind.parts[0])}>::new()"
            return f"vec![{', '.join(self.literal(kind.parts[0], item) for item in value)}]"
        if kind.name == "tuple":
            return f"({', '.join(self.literal(*pair) for pair in zip(kind.parts, value, strict=True))})"
        if kind.name == "dict":
            key, item = kind.parts
            pairs = (f"({self.literal(key, name)}, {self.literal(item, value[name])})" for name in value)
            return f"HashMap::from([{', '.join(pairs)}])"
        if kind.name == "str":
            return f"String::from({json.dumps(value, ensure_ascii=False)})"
        return repr(float(value)) if kind.name == "float" else json.dumps(value)

    def head(self, name: str, kinds: Sequence[Kind], result: Kind) -> str:
        """Return the text up to the function's body."""
        parameters = ", ".join(f"a{index}: {self.type(kind)}" for index, kind in enumerate(kinds))
        return (
            "\nfn main(){\n } \n\nuse std::{cmp::{max, self}, collections::{HashSet, HashMap}};\nuse rand::Rng;\n"
            f"fn {name}({parameters}) -> {self.type(result)} {{\n"
        )

    def program(self, head: str, body: str) -> str:
        """Return a solution."""
        return f"{head}{body}\n}}\n"

    def suite(
        self, name: str, head: str, pairs: Sequence[tuple[Any, Any]], kinds: Sequence[Kind], result: Kind
    ) -> Suite:
        """Return tests in the form of HumanEvalPack."""
        checks = []
        for arguments, value in pairs:
            values = ", ".join(self.literal(*pair) for pair in zip(kinds, arguments, strict=True))
            checks.append(f"        assert_eq!({name}({values}), {self.literal(result, value)});\n")
        tests = (
            "\n#[cfg(test)]\nmod tests {\n    use super::*;\n\n    #[test]\n"
            f"    fn test_{name}() {{\n{''.join(checks)}    }}\n}}\n"
        )
        return Suite(tests, name, head)


WRITERS: dict[str, Any] = {"java": JavaWriter(), "go": GoWriter(), "rust": RustWriter()}
