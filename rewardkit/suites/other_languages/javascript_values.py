"""Values that tests in JavaScript expect: literals, names that have one, cells of the rows of a loop."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from rewardkit.suites.other_languages.leaves import LeafChange, digit_slots, text_slots, truth_slots
from rewardkit.suites.other_languages.trees import SyntaxTree, field, inner_nodes, without_parentheses
from rewardkit.suites.text_changes import AnyChange, TextChange

if TYPE_CHECKING:
    from tree_sitter import Node

_JUMPS = ("break_statement", "continue_statement", "return_statement")
FUNCTIONS = ("arrow_function", "function_expression", "function_declaration", "generator_function", "method_definition")

Ways: TypeAlias = "list[Node]"  # the nodes of which one is changed


class NameScope(NamedTuple):
    """What names stand for at a place of a file.

    Attributes:
        roles: What of the test runner and of its asserts a name is.
        values: The literals of constants and of loops' variables, of which one is changed.
        cells: Of a variable that holds a loop's rows, those literals by property.
        lists: The arrays and objects of constants.
    """

    roles: Mapping[str, str]
    values: Mapping[str, Ways]
    cells: Mapping[str, Mapping[str, Ways]]
    lists: Mapping[str, Node]


def leaf_changes(tree: SyntaxTree, node: Node) -> list[LeafChange]:
    """Return the changes of the literals of which a value consists; none for one that is computed."""
    node = without_parentheses(node)
    start = tree.span(node)[0]
    text = tree.segment(node)
    changes: list[LeafChange] = []
    match node.type:
        case "number":
            changes = [LeafChange(start, text, list(digit_slots(text)), is_number=True)]
        case "string":
            changes = [LeafChange(start, text, list(text_slots(text)))]
        case "template_string" if all(child.type != "template_substitution" for child in node.children):
            changes = [LeafChange(start, text, list(text_slots(text)))]
        case "true" | "false":
            changes = [LeafChange(start, text, list(truth_slots(text)))]
        case "unary_expression" if text[:1] in "+-":
            changes = [change for child in node.named_children for change in leaf_changes(tree, child)]
        case "array":
            changes = [change for child in node.named_children for change in leaf_changes(tree, child)]
        case "object":
            pairs = [child for child in node.named_children if child.type == "pair"]
            if len({property_name(tree, pair) for pair in pairs}) == len(node.named_children):
                values = [field(pair, "value") for pair in pairs]
                changes = [change for value in values if value for change in leaf_changes(tree, value)]
    return [change for change in changes if change.is_possible()]


def value_change(tree: SyntaxTree, node: Node) -> TextChange | None:
    """Return the change of one literal of a value, drawn among all."""
    changes = leaf_changes(tree, node)
    return AnyChange(changes) if changes else None


def is_literal(node: Node) -> bool:
    """Return whether nothing of a value is computed."""
    node = without_parentheses(node)
    if node.type in ("array", "object", "pair", "unary_expression"):
        return all(is_literal(child) for child in node.named_children if child.type != "comment")
    return node.type in ("number", "string", "true", "false", "null", "undefined", "property_identifier", "regex") or (
        node.type == "template_string" and all(child.type != "template_substitution" for child in node.children)
    )


def parameters_of(function: Node) -> Node | None:
    """Return the parameters of a function, which of an arrow function may be one name."""
    return field(function, "parameters") or field(function, "parameter")


def first_parameter(function: Node) -> Node | None:
    """Return a function's first parameter."""
    parameters = parameters_of(function)
    if parameters is None or parameters.type != "formal_parameters":
        return parameters
    return parameters.named_children[0] if parameters.named_children else None


def property_name(tree: SyntaxTree, pair: Node) -> str:
    """Return the name of an object's property."""
    key = field(pair, "key")
    return tree.segment(key).strip("'\"`") if key else ""


def own_nodes(node: Node) -> Iterator[Node]:
    """Yield a node and those below it that are not in functions of their own."""
    yield node
    for child in node.children:
        if child.type not in FUNCTIONS:
            yield from own_nodes(child)


def has_jump(body: Node) -> bool:
    """Return whether a loop's round may end before its last statement."""
    return any(node.type in _JUMPS for child in body.children for node in own_nodes(child))


def uses(tree: SyntaxTree, node: Node, name: str) -> list[Node]:
    """Return the places below a node at which a name is read or bound."""
    kinds = ("identifier", "shorthand_property_identifier", "shorthand_property_identifier_pattern")
    return [inner for inner in inner_nodes(node) if inner.type in kinds and tree.segment(inner) == name]


def constants(tree: SyntaxTree, statements: list[Node], within: Node) -> dict[str, Node]:
    """Return the values of ``const`` names that are literals, arrays or objects, and are read once below a node."""
    values = {}
    for statement in statements:
        if statement.type != "lexical_declaration" or not tree.segment(statement).startswith("const"):
            continue
        for declarator in statement.named_children:
            name, value = field(declarator, "name"), field(declarator, "value")
            if name is None or value is None or name.type != "identifier":
                continue
            if len(uses(tree, within, tree.segment(name))) == 2:  # where it is declared, and where it is read
                values[tree.segment(name)] = without_parentheses(value)
    return values


def rows_of(tree: SyntaxTree, node: Node, lists: Mapping[str, Node]) -> list[list[Node]] | None:
    """Return the rows of an array, or of ``Object.entries`` of an object, each as its one value or key and value."""
    node = without_parentheses(node)
    if node.type == "identifier":
        node = lists.get(tree.segment(node), node)
    if node.type == "array":
        elements = [child for child in node.named_children if child.type != "comment"]
        return [[element] for element in elements] if all(e.type != "spread_element" for e in elements) else None
    function, arguments = field(node, "function"), field(node, "arguments")
    if function is not None and arguments is not None and tree.segment(function) == "Object.entries":
        table = arguments.named_children[0] if arguments.named_children else arguments
        if table.type == "identifier":
            table = lists.get(tree.segment(table), table)
        pairs = table.named_children if table.type == "object" else []
        cells = [[field(pair, "key"), field(pair, "value")] for pair in pairs if pair.type == "pair"]
        if cells and len(cells) == len(pairs):
            return [[cell for cell in row if cell is not None] for row in cells]
    return None


def bind_rows(
    tree: SyntaxTree, pattern: Node, rows: list[list[Node]], scope: NameScope, body: Node
) -> NameScope | None:
    """Return a scope with the variables of a loop over rows, of those that all rows have."""
    values, cells = dict(scope.values), dict(scope.cells)
    if pattern.type == "identifier":
        name = tree.segment(pattern)
        flat = [row[0] for row in rows if len(row) == 1]
        values.pop(name, None)
        if len(flat) == len(rows):
            if len(uses(tree, body, name)) == 1:
                values[name] = flat
            cells[name] = _by_property(tree, flat)
    elif pattern.type == "array_pattern":
        table = [row if len(row) == 2 else _elements(row[0]) for row in rows]
        for index, part in enumerate(pattern.named_children):
            _bind(tree, part, [row[index] for row in table if index < len(row)], len(rows), values, body)
    elif pattern.type == "object_pattern":
        columns = _by_property(tree, [row[0] for row in rows if len(row) == 1])
        for part in pattern.named_children:
            target = field(part, "value") if part.type == "pair_pattern" else part
            name = property_name(tree, part) if part.type == "pair_pattern" else tree.segment(part)
            if target is not None:
                _bind(tree, target, columns.get(name, []), len(rows), values, body)
    return scope._replace(values=values, cells=cells)


def _bind(tree: SyntaxTree, target: Node, column: list[Node], count: int, values: dict[str, Ways], body: Node) -> None:
    """Bind one variable to its literals, if every row has one and one place reads it."""
    if target.type not in ("identifier", "shorthand_property_identifier_pattern"):
        return
    name = tree.segment(target)
    values.pop(name, None)
    if len(column) == count and len(uses(tree, body, name)) == 1:
        values[name] = column


def _elements(node: Node) -> list[Node]:
    node = without_parentheses(node)
    return [child for child in node.named_children if child.type != "comment"] if node.type == "array" else []


def _by_property(tree: SyntaxTree, rows: list[Node]) -> dict[str, Ways]:
    """Return the values of each property that all rows have."""
    columns: dict[str, Ways] = {}
    for row in rows:
        for pair in without_parentheses(row).named_children:
            value = field(pair, "value") if pair.type == "pair" else None
            if value is not None:
                columns.setdefault(property_name(tree, pair), []).append(value)
    return {name: column for name, column in columns.items() if len(column) == len(rows)}
