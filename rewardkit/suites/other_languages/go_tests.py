"""The tests of a file for ``go test``, and what can be changed in them: what failing conditions compare."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

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
from rewardkit.suites.soft_statements import StatementChange
from rewardkit.suites.text_changes import AnyChange, TextChange, TextSwap

if TYPE_CHECKING:
    from tree_sitter import Node

_NAME = re.compile(r"Test(?![a-z])\w*")
_SILENT = re.compile(r"\.Fail(?:Now)?\(\)")  # what fails a test without a word, and so without a line
_FAILURES = frozenset(["Error", "Errorf", "Fatal", "Fatalf", "Fail", "FailNow"])
_SKIPS = frozenset(["Skip", "Skipf", "SkipNow"])
_EQUALS = frozenset(["reflect.DeepEqual", "slices.Equal", "maps.Equal", "bytes.Equal", "cmp.Equal"])
_ASSERTS = frozenset(f"{kind}.{name}" for kind in ("assert", "require") for name in ("Equal", "EqualValues", "Exactly"))
"""Of https://pkg.go.dev/github.com/stretchr/testify: the expected value may be either."""
_ORDERS = {"<": ">=", "<=": ">", ">": "<=", ">=": "<"}
_JUMPS = ("break_statement", "continue_statement", "return_statement", "goto_statement")
_SCALARS = frozenset(
    f"{kind}{bits}"
    for kind in ("int", "uint", "float", "byte", "rune", "string", "bool")
    for bits in ("", 8, 16, 32, 64)
)
Ways: TypeAlias = "list[Node]"


class _Names(NamedTuple):
    """What names stand for at a place: literals, of which one is changed; those of a row's fields; tables."""

    values: Mapping[str, Ways]
    fields: Mapping[str, Mapping[str, Ways]]
    tables: Mapping[str, Node]
    test: str  # the name of the *testing.T


def is_go_test(name: str) -> bool:
    """Return whether ``go test`` takes a file for one of tests by its name."""
    base = name.rpartition("/")[2]
    return base.endswith("_test.go") and not base.startswith(("_", ".")) and "testdata/" not in name


def go_tests(name: str, text: str) -> list[ScannedTest]:
    """Return the test functions of a file.

    Raises:
        ValueError: It cannot be parsed.
    """
    return list(_File(SyntaxTree(name, text, "go")).tests())


class _File:
    """The tests of one file."""

    def __init__(self, tree: SyntaxTree) -> None:
        self._tree = tree
        self._structs = self._named_structs()

    def tests(self) -> Iterator[ScannedTest]:
        root = self._tree.root
        constants = self._constants(root.children, root)
        tables = {name: values[0] for name, values in constants.items() if values[0].type == "composite_literal"}
        for node in root.children:
            name, body = field(node, "name"), field(node, "body")
            if node.type != "function_declaration" or name is None or body is None:
                continue
            title, parameter = self._tree.segment(name), self._parameter(node)
            if _NAME.fullmatch(title) and parameter:
                names = _Names(constants, {}, tables, parameter)
                asserts = sum(self._method(inner) in _FAILURES for inner in inner_nodes(body))
                is_excused = any(self._method(inner) in _SKIPS for inner in inner_nodes(body))
                changes = () if is_excused else tuple(self._changes(_statements(body), body, names))
                yield ScannedTest(f"{self._tree.name}::{title}", asserts, changes)

    def _parameter(self, function: Node) -> str:
        """Return the name of a function's one parameter, a ``*testing.T``."""
        parameters = field(function, "parameters")
        declared = parameters.named_children if parameters else []
        if len(declared) != 1 or not re.search(r"\*\s*testing\.T$", self._tree.segment(declared[0])):
            return ""
        name = field(declared[0], "name")
        return self._tree.segment(name) if name else "_"

    def _method(self, node: Node) -> str:
        """Return the name of the method that a node calls."""
        function = field(node, "function") if node.type == "call_expression" else None
        member = field(function, "field") if function is not None and function.type == "selector_expression" else None
        return self._tree.segment(member) if member is not None else ""

    def _named_structs(self) -> dict[str, list[str]]:
        """Return the fields of the file's structs, by their names."""
        structs = {}
        for node in inner_nodes(self._tree.root):
            name, kind = field(node, "name"), field(node, "type")
            if node.type == "type_spec" and name is not None and kind is not None and kind.type == "struct_type":
                structs[self._tree.segment(name)] = self._field_names(kind)
        return structs

    def _field_names(self, struct: Node) -> list[str]:
        declarations = [node for part in struct.named_children for node in part.named_children]
        return [
            self._tree.segment(node)
            for declaration in declarations
            for node in declaration.named_children
            if node.type == "field_identifier"
        ]

    def _constants(self, statements: Iterable[Node], within: Node) -> dict[str, Ways]:
        """Return the literals of names that are given once, and are read nowhere but in the conditions of tests."""
        values: dict[str, Ways] = {}
        for statement in statements:
            for name, value in _bound(statement):
                if is_literal(self._tree, value) or value.type == "composite_literal":
                    text = self._tree.segment(name)
                    if text in values or any(_is_stored(use) for use in self._uses(within, text) if use != name):
                        values.pop(text, None)
                    else:
                        values[text] = [value]
        return values

    def _uses(self, node: Node, name: str) -> list[Node]:
        return [
            inner for inner in inner_nodes(node) if inner.type == "identifier" and self._tree.segment(inner) == name
        ]

    def _changes(self, statements: list[Node], block: Node, names: _Names) -> Iterator[Perturbation]:
        """Yield the changes of the statements that a test which passes has gone through."""
        own = self._constants(statements, block)
        tables = {name: values[0] for name, values in own.items() if values[0].type == "composite_literal"}
        names = names._replace(values={**names.values, **own}, tables={**names.tables, **tables})
        for statement in statements:
            match statement.type:
                case "if_statement" if self._fails(field(statement, "consequence"), names):
                    condition = field(statement, "condition")
                    is_silent = _SILENT.search(self._tree.segment(statement)) is not None
                    if condition is not None:
                        for kind, change in self._of_condition(condition, statement, block, names):
                            made = perturbation(self._tree, kind, statement, change)
                            yield made._replace(statement=StatementChange()) if is_silent else made
                case "for_statement":
                    yield from self._of_loop(statement, names)
                case "block":
                    yield from self._changes(_statements(statement), statement, names)
                case "expression_statement":
                    yield from self._of_call(statement, block, names)
            if self._may_leave(statement, names):
                return

    def _may_leave(self, node: Node, names: _Names) -> bool:
        """Return whether what follows a statement may not be gone through although the test passes."""
        if node.type in _JUMPS:
            return True
        consequence = field(node, "consequence")
        ended = consequence if self._fails(consequence, names) else None
        children = (child for child in node.children if child.type != "func_literal" and child != ended)
        return any(self._may_leave(child, names) for child in children)

    def _fails(self, block: Node | None, names: _Names) -> bool:
        """Return whether a block is certain to fail the test."""
        calls = [inner for node in _statements(block) if node.type == "expression_statement" for inner in node.children]
        return any(
            self._method(call) in _FAILURES and self._tree.segment(call).startswith(f"{names.test}.") for call in calls
        )

    def _of_call(self, statement: Node, block: Node, names: _Names) -> Iterator[Perturbation]:
        """Yield the changes of a subtest, or of an assert of testify."""
        call = statement.named_children[0] if statement.named_children else statement
        function, arguments = field(call, "function"), field(call, "arguments")
        if function is None or arguments is None:
            return
        passed = [node for node in arguments.named_children if node.type != "comment"]
        text = self._tree.segment(function)
        if text == f"{names.test}.Run" and len(passed) == 2 and passed[1].type == "func_literal":
            parameter, body = self._parameter(passed[1]), field(passed[1], "body")
            if parameter and body is not None:
                yield from self._changes(_statements(body), body, names._replace(test=parameter))
        elif text in _ASSERTS and len(passed) >= 3 and self._tree.segment(passed[0]) == names.test:
            for change in self._values(passed[1], passed[2], statement, block, names):
                yield perturbation(self._tree, "value", statement, change)

    def _of_condition(
        self, node: Node, statement: Node, block: Node, names: _Names
    ) -> Iterator[tuple[str, TextChange]]:
        """Yield the changes by which a condition that was false is true."""
        node = without_parentheses(node)
        tree = self._tree
        left, right, operator = field(node, "left"), field(node, "right"), field(node, "operator")
        if node.type == "binary_expression" and left is not None and right is not None and operator is not None:
            sign = tree.segment(operator)
            if sign == "||":
                yield from self._of_condition(left, statement, block, names)
                yield from self._of_condition(right, statement, block, names)
            elif sign == "!=":
                yield from (("value", change) for change in self._values(left, right, statement, block, names))
                yield "polarity", TextSwap(*tree.span(operator), ("==",))
            elif sign == "==":
                yield "polarity", TextSwap(*tree.span(operator), ("!=",))
            elif sign in _ORDERS:
                yield "order", TextSwap(*tree.span(operator), (_ORDERS[sign],))
        elif node.type == "unary_expression" and tree.segment(node).startswith("!"):
            call = without_parentheses(node.named_children[0])
            function, arguments = field(call, "function"), field(call, "arguments")
            if function is not None and arguments is not None and tree.segment(function) in _EQUALS:
                sides = arguments.named_children
                if len(sides) == 2:
                    ways = self._values(sides[0], sides[1], statement, block, names)
                    yield from (("value", change) for change in ways)
            start = tree.span(node)[0]
            yield "polarity", TextSwap(start, start + 1, ("",))
        elif node.type in ("identifier", "call_expression", "selector_expression"):
            start, end = tree.span(node)
            yield "polarity", TextSwap(start, end, (f"!{tree.text[start:end]}",))

    def _values(self, first: Node, second: Node, statement: Node, block: Node, names: _Names) -> Iterator[TextChange]:
        """Yield the changes of the expected side of a comparison, if it is one side."""
        sides = [without_parentheses(first), without_parentheses(second)]
        literal = [side for side in sides if is_literal(self._tree, side)]
        if len(literal) == 2:
            return
        ways = [(side, self._ways(side, statement, block, names)) for side in sides]
        chosen = [changes for side, changes in ways if changes and (side in literal or not literal)]
        if len(chosen) == 1:
            yield from chosen[0]

    def _ways(self, node: Node, statement: Node, block: Node, names: _Names) -> list[TextChange]:
        tree = self._tree
        nodes: Ways = []
        if node.type == "identifier":
            name = tree.segment(node)
            if name in names.values and self._is_compared_alone(name, "", statement):
                nodes = list(names.values[name])
        elif node.type == "selector_expression":
            inner, member = field(node, "operand"), field(node, "field")
            if inner is not None and member is not None:
                name, property_name = tree.segment(inner), tree.segment(member)
                if self._is_compared_alone(name, property_name, statement):
                    nodes = list(names.fields.get(name, {}).get(property_name, []))
        else:
            nodes = [node]
        changes = [leaf_changes(tree, value) for value in nodes]
        return [AnyChange(leaves) for leaves in changes if leaves]

    def _is_compared_alone(self, name: str, member: str, statement: Node) -> bool:
        """Return whether a name, or a row's field, is read in one condition alone, and else where the test has failed.

        The whole row, or all of its function, is looked through: what else reads it may depend on it.
        """
        scope = statement
        while scope.parent is not None and scope.type not in ("function_declaration", "method_declaration"):
            if member and scope.type == "for_statement":
                break
            scope = scope.parent
        consequence = field(statement, "consequence")
        reads = 0
        for use in self._uses(scope, name):
            if _is_stored(use) or (consequence is not None and _is_within(use, consequence)):
                continue
            above = use.parent
            if member and above is not None and above.type == "selector_expression":
                read = field(above, "field")
                if read is not None and self._tree.segment(read) != member:
                    continue
            reads += 1
        return reads == 1

    def _of_loop(self, statement: Node, names: _Names) -> Iterator[Perturbation]:
        """Yield the changes of a loop over a table that is written in the file."""
        clause = next((child for child in statement.named_children if child.type == "range_clause"), None)
        body = field(statement, "body")
        if clause is None or body is None or self._may_leave(body, names):
            return
        left, right = field(clause, "left"), field(clause, "right")
        variables = [self._tree.segment(node) for node in left.named_children] if left is not None else []
        if right is None or len(variables) != 2:
            return
        table = names.tables.get(self._tree.segment(right), right)
        if table is not right and len(self._uses(self._tree.root, self._tree.segment(right))) != 2:
            return
        rows = self._rows(table)
        if rows:
            values = {name: ways for name, ways in names.values.items() if name not in variables}
            cells = {name: ways for name, ways in names.fields.items() if name not in variables}
            values[variables[1]], cells[variables[1]] = rows, self._columns(table, rows)
            inner = names._replace(values=values, fields=cells)
            yield from self._changes(_statements(body), body, inner)

    def _rows(self, table: Node) -> list[Node]:
        """Return the values of a composite literal's elements."""
        kind, body = field(table, "type"), field(table, "body")
        if table.type != "composite_literal" or kind is None or body is None:
            return []
        if kind.type not in ("slice_type", "array_type", "map_type", "implicit_length_array_type"):
            return []
        return [_element(node) for node in body.named_children if node.type in ("literal_element", "keyed_element")]

    def _columns(self, table: Node, rows: list[Node]) -> dict[str, Ways]:
        """Return the values of each field that all rows of structs give."""
        kind = field(table, "type")
        element = (field(kind, "element") or field(kind, "value")) if kind is not None else None
        if element is not None and element.type == "pointer_type":
            element = element.named_children[0]
        fields: list[str] = []
        if element is not None:
            fields = (
                self._field_names(element)
                if element.type == "struct_type"
                else self._structs.get(self._tree.segment(element), [])
            )
        columns: dict[str, Ways] = {}
        for row in rows:
            body = field(row, "body") if row.type == "composite_literal" else row
            parts = body.named_children if body is not None and body.type == "literal_value" else []
            for index, part in enumerate(part for part in parts if part.type != "comment"):
                if part.type == "keyed_element":
                    columns.setdefault(self._tree.segment(part.named_children[0]), []).append(_element(part))
                elif index < len(fields):
                    columns.setdefault(fields[index], []).append(_element(part))
        return columns  # a row that gives no value leaves the type's own, which is not changed


def leaf_changes(tree: SyntaxTree, node: Node) -> list[LeafChange]:
    """Return the changes of the literals of which a value consists; none for one that is computed."""
    node = without_parentheses(node)
    start, text = tree.span(node)[0], tree.segment(node)
    changes: list[LeafChange] = []
    match node.type:
        case "int_literal" | "float_literal":
            changes = [LeafChange(start, text, list(digit_slots(text)), is_number=True)]
        case "interpreted_string_literal" | "rune_literal":
            changes = [LeafChange(start, text, list(text_slots(text)))]
        case "raw_string_literal":
            changes = [LeafChange(start, text, list(text_slots(text, is_raw=True)))]
        case "true" | "false":
            changes = [LeafChange(start, text, list(truth_slots(text)))]
        case "unary_expression" if text[:1] in "+-&":
            changes = leaf_changes(tree, node.named_children[0])
        case "composite_literal":
            body = field(node, "body")
            changes = leaf_changes(tree, body) if body is not None else []
        case "literal_value":
            changes = [change for part in node.named_children for change in leaf_changes(tree, _element(part))]
        case "type_conversion_expression" | "call_expression" if is_literal(tree, node):
            changes = leaf_changes(tree, _converted(node) or node)
    return [change for change in changes if change.is_possible()]


def is_literal(tree: SyntaxTree, node: Node) -> bool:
    """Return whether nothing of a value is computed."""
    node = without_parentheses(node)
    if node.type in ("composite_literal", "literal_value"):
        body = field(node, "body") if node.type == "composite_literal" else node
        return body is not None and all(is_literal(tree, _element(part)) for part in body.named_children)
    if node.type == "unary_expression" and tree.segment(node)[:1] in "+-&":
        return is_literal(tree, node.named_children[0])
    if node.type in ("type_conversion_expression", "call_expression"):
        kind = field(node, "type") or field(node, "function")
        value = _converted(node)
        name = tree.segment(kind).removeprefix("[]") if kind is not None else ""
        return name in _SCALARS and value is not None and is_literal(tree, value)
    return node.type in (
        *("int_literal", "float_literal", "interpreted_string_literal", "raw_string_literal", "rune_literal"),
        *("true", "false", "nil", "comment"),
    )


def _converted(node: Node) -> Node | None:
    """Return what a conversion converts."""
    operand, arguments = field(node, "operand"), field(node, "arguments")
    if operand is not None:
        return operand
    return arguments.named_children[0] if arguments is not None and len(arguments.named_children) == 1 else None


def _element(node: Node) -> Node:
    """Return the value of an element of a composite literal."""
    if node.type == "keyed_element":
        node = node.named_children[-1]
    return node.named_children[0] if node.type == "literal_element" and node.named_children else node


def _statements(block: Node | None) -> list[Node]:
    """Return the statements of a block."""
    parts = block.named_children if block is not None else []
    return [node for part in parts for node in (part.named_children if part.type == "statement_list" else [part])]


def _bound(statement: Node) -> Iterator[tuple[Node, Node]]:
    """Yield the names that a statement declares, one value each."""
    if statement.type == "short_var_declaration":
        left, right = field(statement, "left"), field(statement, "right")
        if left is not None and right is not None and len(left.named_children) == len(right.named_children):
            yield from zip(left.named_children, right.named_children, strict=True)
    elif statement.type in ("var_declaration", "const_declaration"):
        for spec in inner_nodes(statement):
            value = field(spec, "value") if spec.type in ("var_spec", "const_spec") else None
            names = [child for child in spec.named_children if child.type == "identifier"] if value else []
            if value is not None and len(names) == len(value.named_children) == 1:
                yield names[0], value.named_children[0]


def _is_stored(node: Node) -> bool:
    """Return whether a name is bound or given a value there."""
    above = node.parent
    if above is not None and above.type == "expression_list":
        node, above = above, above.parent
    if above is None:
        return False
    if above.type in ("short_var_declaration", "assignment_statement", "range_clause"):
        return field(above, "left") == node
    return above.type in ("var_spec", "const_spec", "parameter_declaration", "inc_statement", "dec_statement") and (
        field(above, "value") != node
    )


def _is_within(node: Node, outer: Node) -> bool:
    return outer.start_byte <= node.start_byte and node.end_byte <= outer.end_byte
