"""The tests of a class for JUnit 4 or 5, and what can be changed in them: what their assertions compare."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from random import Random
from typing import TYPE_CHECKING

from rewardkit.suites.other_languages.leaves import LeafChange, digit_slots, text_slots, truth_slots
from rewardkit.suites.other_languages.scanned import ScannedTest
from rewardkit.suites.other_languages.trees import (
    SyntaxTree,
    field,
    inner_nodes,
    perturbation,
    without_parentheses,
)
from rewardkit.suites.perturbations import Perturbation
from rewardkit.suites.source_text import Edit
from rewardkit.suites.text_changes import AnyChange, TextChange, TextSwap, ValuelessChange

if TYPE_CHECKING:
    from tree_sitter import Node

_MODULE = re.compile(r"(?:^|/)(?:Test[A-Z0-9_]\w*|\w*(?:Test|Tests|TestCase))\.java$")
"""What Maven's Surefire runs: https://maven.apache.org/surefire/maven-surefire-plugin/examples/inclusion-exclusion.html."""
_TESTS = frozenset(["Test", "ParameterizedTest"])
_EXCUSES = frozenset(["Disabled", "Ignore"])
_EQUAL = frozenset(["assertEquals", "assertArrayEquals", "assertIterableEquals", "assertLinesMatch"])
_OPPOSITES = {"assertTrue": "assertFalse", "assertNull": "assertNotNull", "assertSame": "assertNotSame"}
_OPPOSITES |= {second: first for first, second in _OPPOSITES.items()}
_ORDERS = {"<": ">=", "<=": ">", ">": "<=", ">=": "<"}
_LISTS = frozenset(["List.of", "Arrays.asList", "Set.of", "Map.of", "Stream.of", "Optional.of"])
_ERRORS = (
    *("IllegalArgumentException", "IllegalStateException", "NullPointerException", "IndexOutOfBoundsException"),
    *("ArithmeticException", "UnsupportedOperationException", "ClassCastException", "NegativeArraySizeException"),
)
"""Classes of java.lang of which none derives from another."""
_SELDOM = ("ArrayStoreException", "NegativeArraySizeException")  # which no class of a library derives from
_GENERAL = frozenset(["Throwable", "Exception", "RuntimeException", "Error"])
_MOST_DELTA = 0.5
"""Of a comparison within a tolerance: a change of a whole digit is larger."""


def is_java_test(name: str) -> bool:
    """Return whether a file has tests, by its name."""
    return _MODULE.search(name) is not None


def java_tests(name: str, text: str) -> list[ScannedTest]:
    """Return the test methods of a file.

    Raises:
        ValueError: It cannot be parsed.
    """
    return list(_File(SyntaxTree(name, text, "java")).tests())


class EachRow(ValuelessChange):
    """A change of a cell in each row of a test's parameters.

    Args:
        changes: One for each row.
    """

    __slots__ = ("changes",)

    def __init__(self, changes: tuple[TextChange, ...]) -> None:
        self.changes = changes

    def draw(self, random: Random) -> Edit:
        """Return the change of one of the rows."""
        return random.choice(self.changes).draw(random)


class _File:
    """The tests of one file."""

    def __init__(self, tree: SyntaxTree) -> None:
        self._tree = tree
        self._rows: dict[str, EachRow] = {}  # of the method that is read
        text = "\n".join(tree.segment(node) for node in tree.root.children if node.type == "import_declaration")
        self._has_message_first = re.search(r"\borg\.junit\.(?:Assert|\*)", text) is not None

    def tests(self) -> Iterator[ScannedTest]:
        base = self._tree.name.rpartition("/")[2].removesuffix(".java")
        for node in self._tree.root.children:
            name, body = field(node, "name"), field(node, "body")
            if node.type != "class_declaration" or name is None or body is None or self._tree.segment(name) != base:
                continue
            if "abstract" in self._modifiers(node) or self._marks(node) & _EXCUSES:
                continue
            for method in body.named_children:
                yield from self._of_method(method)

    def _of_method(self, method: Node) -> Iterator[ScannedTest]:
        name, body = field(method, "name"), field(method, "body")
        marks = self._marks(method) if method.type == "method_declaration" else set()
        if name is None or body is None or not marks & _TESTS or marks & _EXCUSES:
            return
        asserts = sum(self._assertion(node)[0].startswith("assert") for node in inner_nodes(body))
        is_expected = "expected" in self._modifiers(method)  # an exception ends it: what comes after is not reached
        self._rows = self._columns(method, body)
        changes = () if is_expected else tuple(self._changes(body))
        yield ScannedTest(f"{self._tree.name}::{self._tree.segment(name)}", asserts, changes)

    def _modifiers(self, node: Node) -> str:
        return " ".join(self._tree.segment(child) for child in node.children if child.type == "modifiers")

    def _marks(self, node: Node) -> set[str]:
        """Return the names of a declaration's annotations."""
        modifiers = [child for child in node.children if child.type == "modifiers"]
        marks = [mark for part in modifiers for mark in part.named_children if "annotation" in mark.type]
        names = [field(mark, "name") for mark in marks]
        return {self._tree.segment(name).rpartition(".")[2] for name in names if name is not None}

    def _assertion(self, node: Node) -> tuple[str, Node | None, list[Node]]:
        """Return the name of the assertion that a node calls, the node of that name, and its arguments."""
        name, arguments, owner = field(node, "name"), field(node, "arguments"), field(node, "object")
        if node.type != "method_invocation" or name is None or arguments is None:
            return "", None, []
        if owner is not None and self._tree.segment(owner).rpartition(".")[2] not in ("Assertions", "Assert"):
            return "", None, []
        return self._tree.segment(name), name, [node for node in arguments.named_children if "comment" not in node.type]

    def _changes(self, body: Node) -> Iterator[Perturbation]:
        """Yield the changes of the statements that a test which passes has gone through."""
        constants = self._constants(body)
        for statement in body.named_children:
            call = statement.named_children[0] if statement.type == "expression_statement" else statement
            name, callee, arguments = self._assertion(call)
            if callee is not None and name.startswith("assert"):
                for kind, change in self._of_assertion(name, callee, arguments, constants):
                    if isinstance(change, EachRow):
                        yield Perturbation(kind, self._tree.span(statement)[0], change.changes)
                    else:
                        yield perturbation(self._tree, kind, statement, change)
            if any(node.type in ("return_statement", "yield_statement") for node in _own_nodes(statement)):
                return

    def _columns(self, method: Node, body: Node) -> dict[str, EachRow]:
        """Return the changes of the cells of ``@CsvSource``, by the parameters that a test reads once."""
        parameters = field(method, "parameters")
        declared = [node for node in parameters.named_children if node.type == "formal_parameter"] if parameters else []
        names, kinds = (
            [self._tree.segment(part) for node in declared if (part := field(node, of)) is not None]
            for of in ("name", "type")
        )
        sources = [
            mark
            for part in method.children
            if part.type == "modifiers"
            for mark in part.named_children
            if "Source" in self._tree.segment(mark).partition("(")[0]
        ]
        texts = [node for source in sources for node in inner_nodes(source) if node.type == "string_literal"]
        if len(sources) != 1 or not re.match(r"@CsvSource\s*\(\s*[{\"]", self._tree.segment(sources[0])):
            return {}
        table = [self._cells(node) for node in texts]
        if not table or any(len(row) != len(names) for row in table):
            return {}
        columns = {}
        for name, kind, cells in zip(names, kinds, zip(*table, strict=True), strict=True):
            changes = [self._cell_change(kind, *cell) for cell in cells]
            possible = tuple(change for change in changes if change is not None and change.is_possible())
            reads = sum(self._is_name(node, name) for node in inner_nodes(body))
            if len(possible) == len(table) and reads == 1:
                columns[name] = EachRow(possible)
        return columns

    def _cells(self, node: Node) -> list[tuple[int, str]]:
        """Return where each cell of a row stands, and its text; none for a row with quotes or escapes."""
        text, start = self._tree.segment(node), self._tree.span(node)[0]
        if not re.fullmatch(r'"[^"\\\']*"', text):
            return []
        return [
            (start + match.start(1), match[1]) for match in re.finditer(r"(?<=[\",])\s*([^,\"]*?)\s*(?=[,\"])", text)
        ]

    @staticmethod
    def _cell_change(kind: str, start: int, text: str) -> LeafChange | None:
        """Return the change of a cell of a parameter's type."""
        if kind == "String":
            return LeafChange(start, text, [slot for slot in text_slots(text, 0) if not slot.is_mark])
        if kind == "boolean" and text in ("true", "false"):
            return LeafChange(start, text, list(truth_slots(text)))
        if kind in ("int", "long", "short", "double", "float") and re.fullmatch(r"-?\d+(\.\d+)?", text):
            digits = text.lstrip("-")
            return LeafChange(start + len(text) - len(digits), digits, list(digit_slots(digits)), is_number=True)
        return None

    def _constants(self, body: Node) -> dict[str, Node]:
        """Return the literals of variables that are given once, and read once."""
        values = {}
        for statement in body.named_children:
            if statement.type != "local_variable_declaration":
                continue
            for declarator in statement.named_children:
                name, value = field(declarator, "name"), field(declarator, "value")
                if declarator.type != "variable_declarator" or name is None or value is None:
                    continue
                text = self._tree.segment(name)
                uses = [node for node in inner_nodes(body) if self._is_name(node, text)]
                if len(uses) == 2:  # where it is declared, and where it is read
                    values[text] = value
        return values

    def _is_name(self, node: Node, text: str) -> bool:
        return node.type == "identifier" and self._tree.segment(node) == text

    def _of_assertion(
        self, name: str, callee: Node, arguments: list[Node], constants: Mapping[str, Node]
    ) -> Iterator[tuple[str, TextChange]]:
        if name in _EQUAL and len(arguments) >= 2:
            if self._has_message_first and len(arguments) >= 3 and self._is_message(arguments[0]):
                arguments = arguments[1:]
            rest = arguments[2] if len(arguments) > 2 else None
            has_delta = rest is not None and self._is_delta(rest)
            if rest is None or has_delta or self._is_message(rest):  # else nobody knows how near they must be
                changes = self._values(arguments[0], arguments[1], constants, has_delta=has_delta)
                yield from (("value", change) for change in changes)
        elif name in ("assertTrue", "assertFalse") and arguments:
            condition = arguments[-1] if self._has_message_first else arguments[0]
            if name == "assertTrue":
                yield from self._of_condition(without_parentheses(condition), constants)
        elif name == "assertThrows" and arguments:
            yield from self._of_error(arguments[1 if self._is_message(arguments[0]) else 0])
        if name in _OPPOSITES:
            yield "polarity", TextSwap(*self._tree.span(callee), (_OPPOSITES[name],))

    def _is_message(self, node: Node) -> bool:
        """Return whether an argument is text, written or joined of parts, or a function that makes it."""
        texts = ("string_literal", "lambda_expression")
        return node.type in texts or (node.type == "binary_expression" and '"' in self._tree.segment(node))

    def _is_delta(self, node: Node) -> bool:
        """Return whether an argument is a tolerance that is smaller than a change of a whole digit."""
        text = self._tree.segment(node).rstrip("fFdD")
        return node.type == "decimal_floating_point_literal" and float(text) < _MOST_DELTA

    def _of_condition(self, node: Node, constants: Mapping[str, Node]) -> Iterator[tuple[str, TextChange]]:
        """Yield the changes by which a condition that was true is false."""
        left, right, operator = field(node, "left"), field(node, "right"), field(node, "operator")
        if node.type == "binary_expression" and left is not None and right is not None and operator is not None:
            sign = self._tree.segment(operator)
            if sign == "&&":
                yield from self._of_condition(without_parentheses(left), constants)
                yield from self._of_condition(without_parentheses(right), constants)
            elif sign == "==":
                yield from (("value", change) for change in self._values(left, right, constants))
            elif sign in _ORDERS:
                yield "order", TextSwap(*self._tree.span(operator), (_ORDERS[sign],))
        name, owner, arguments = field(node, "name"), field(node, "object"), field(node, "arguments")
        if name is None or owner is None or arguments is None or len(arguments.named_children) != 1:
            return
        if self._tree.segment(name) == "equals":
            changes = self._values(owner, arguments.named_children[0], constants)
            yield from (("value", change) for change in changes)

    def _of_error(self, node: Node) -> Iterator[tuple[str, TextChange]]:
        """Yield the change of the class that a test expects to be thrown."""
        kind = node.named_children[0] if node.type == "class_literal" and node.named_children else None
        if kind is None:
            return
        text = self._tree.segment(kind)
        if text in _ERRORS:
            yield "exception", TextSwap(*self._tree.span(kind), tuple(error for error in _ERRORS if error != text))
        elif text not in _GENERAL and text not in _SELDOM:
            yield "polarity", TextSwap(*self._tree.span(kind), _SELDOM)

    def _values(
        self, first: Node, second: Node, constants: Mapping[str, Node], *, has_delta: bool = False
    ) -> Iterator[TextChange]:
        """Yield the change of the expected side of a comparison, if it is one side."""
        sides = [without_parentheses(first), without_parentheses(second)]
        literal = [side for side in sides if is_literal(self._tree, side)]
        if len(literal) == 2:
            return
        ways: list[TextChange] = []
        for side in sides:
            if (row := self._rows.get(self._tree.segment(side))) is not None and not literal and not has_delta:
                ways.append(row)
                continue
            value = constants.get(self._tree.segment(side), side) if side.type == "identifier" else side
            leaves = leaf_changes(self._tree, value, has_delta=has_delta)
            if leaves and (side in literal or not literal):
                ways.append(AnyChange(leaves))
        if len(ways) == 1:
            yield ways[0]


def leaf_changes(tree: SyntaxTree, node: Node, *, has_delta: bool = False) -> list[LeafChange]:
    """Return the changes of the literals of which a value consists; none for one that is computed.

    With a tolerance only whole digits are changed.
    """
    node = without_parentheses(node)
    start, text = tree.span(node)[0], tree.segment(node)
    changes: list[LeafChange] = []
    if node.type in ("decimal_integer_literal", "hex_integer_literal", "decimal_floating_point_literal"):
        point = text.find(".") if "." in text else len(text)
        slots = [slot for slot in digit_slots(text) if not has_delta or slot.start < point]
        is_scaled = has_delta and "e" in text.lower()
        changes = [] if is_scaled else [LeafChange(start, text, slots, is_number=True)]
    elif (node.type == "string_literal" and not text.startswith('"""')) or node.type == "character_literal":
        changes = [LeafChange(start, text, list(text_slots(text)))]
    elif node.type in ("true", "false"):
        changes = [LeafChange(start, text, list(truth_slots(text)))]
    elif node.type == "unary_expression" and text[:1] in "+-":
        changes = leaf_changes(tree, node.named_children[-1], has_delta=has_delta)
    elif node.type in ("array_creation_expression", "array_initializer", "cast_expression") or _is_list(tree, node):
        parts = _parts(node)
        changes = [change for part in parts for change in leaf_changes(tree, part, has_delta=has_delta)]
    return [change for change in changes if change.is_possible()]


def is_literal(tree: SyntaxTree, node: Node) -> bool:
    """Return whether nothing of a value is computed."""
    node = without_parentheses(node)
    if node.type == "unary_expression" and tree.segment(node)[:1] in "+-":
        return is_literal(tree, node.named_children[-1])
    if node.type in ("array_creation_expression", "array_initializer", "cast_expression") or _is_list(tree, node):
        return all(is_literal(tree, part) for part in _parts(node))
    return node.type.endswith("_literal") or node.type in ("true", "false")


def _is_list(tree: SyntaxTree, node: Node) -> bool:
    name, owner = field(node, "name"), field(node, "object")
    if node.type != "method_invocation" or name is None or owner is None:
        return False
    return f"{tree.segment(owner)}.{tree.segment(name)}" in _LISTS


def _parts(node: Node) -> list[Node]:
    """Return the values of which an array, a list or a cast consists."""
    if node.type == "cast_expression":
        value = field(node, "value")
        return [value] if value is not None else []
    inner = field(node, "value") if node.type == "array_creation_expression" else field(node, "arguments")
    holder = inner if inner is not None else node
    return [child for child in holder.named_children if "comment" not in child.type]


def _own_nodes(node: Node) -> Iterator[Node]:
    """Yield a node and those below it that are in no function or class of their own."""
    yield node
    for child in node.children:
        if child.type not in ("lambda_expression", "class_body"):
            yield from _own_nodes(child)
