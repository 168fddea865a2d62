"""The tests of a file for Node.js's own runner, ``node:test`` with ``node:assert``, and what can be changed in them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from rewardkit.suites.other_languages.javascript_values import (
    FUNCTIONS,
    NameScope,
    bind_rows,
    constants,
    first_parameter,
    has_jump,
    is_literal,
    leaf_changes,
    own_nodes,
    parameters_of,
    property_name,
    rows_of,
    uses,
    value_change,
)
from rewardkit.suites.other_languages.scanned import ScannedTest
from rewardkit.suites.other_languages.trees import (
    SyntaxTree,
    field,
    inner_nodes,
    perturbation,
    without_parentheses,
)
from rewardkit.suites.perturbations import Perturbation
from rewardkit.suites.text_changes import AnyChange, TextChange, TextSwap

if TYPE_CHECKING:
    from tree_sitter import Node

_RUNNERS = ("node:test", "test")
_ASSERTS = ("assert", "node:assert", "assert/strict", "node:assert/strict")
_TESTS = {"test": "test", "it": "test", "describe": "suite", "suite": "suite"}
_EQUAL = frozenset(["equal", "strictEqual", "deepEqual", "deepStrictEqual"])
_OPPOSITES = {
    "equal": "notEqual", "strictEqual": "notStrictEqual", "deepEqual": "notDeepEqual",
    "deepStrictEqual": "notDeepStrictEqual", "match": "doesNotMatch", "throws": "doesNotThrow",
    "rejects": "doesNotReject",
}  # fmt: skip
_OPPOSITES |= {second: first for first, second in _OPPOSITES.items()}
_ORDERS = {"<": ">=", "<=": ">", ">": "<=", ">=": "<"}
_ERRORS = ("TypeError", "RangeError", "SyntaxError", "ReferenceError", "URIError", "EvalError")
"""Classes of which none derives from another."""
_SELDOM = ("EvalError", "URIError")  # which no class of a library derives from, or almost none
_UNTITLED = "<anonymous>"
_EXCUSES = re.compile(r"\b(?:skip|todo|only)\b")
_MODULE = re.compile(r"(?:^|[/_.-])tests?(?:[-_][^/]*)?\.[cm]?js$|(?:^|/)test-[^/]*\.[cm]?js$|(?:^|/)test/.*\.[cm]?js$")
"""What ``node --test`` runs: https://nodejs.org/api/test.html#running-tests-from-the-command-line."""


def is_node_test(name: str) -> bool:
    """Return whether the runner takes a file for one of tests by its name."""
    return _MODULE.search(name) is not None and "node_modules/" not in name


def node_tests(name: str, text: str) -> list[ScannedTest]:
    """Return the tests that a file is certain to have.

    Raises:
        ValueError: It cannot be parsed.
    """
    return _File(SyntaxTree(name, text, "javascript")).tests()


class _File:
    """The tests of one file."""

    def __init__(self, tree: SyntaxTree) -> None:
        self._tree = tree
        self._dynamic: Counter[str] = Counter()

    def tests(self) -> list[ScannedTest]:
        root = self._tree.root
        lists = constants(self._tree, root.children, root)
        values = {name: [node] for name, node in lists.items()}
        scope = NameScope(self._roles(root), values, {}, lists)
        scanned = list(self._tests_in(root.children, [self._tree.name], scope))
        return [test for test in scanned if test.results is None or self._dynamic[test.name.rpartition("::")[0]] == 1]

    def _roles(self, root: Node) -> dict[str, str]:
        """Return what the names that the file imports are: ``test``, ``suite``, ``assert`` or ``assert.NAME``."""
        roles: dict[str, str] = {}
        for statement in root.children:
            if statement.type == "import_statement" and (source := field(statement, "source")):
                for clause in (child for child in statement.children if child.type == "import_clause"):
                    self._bind_import(clause, self._tree.segment(source).strip("'\""), roles)
            elif statement.type in ("lexical_declaration", "variable_declaration"):
                for declarator in statement.named_children:
                    name, value = field(declarator, "name"), field(declarator, "value")
                    if name is not None and value is not None:
                        self._bind_target(name, self._required(value, roles), roles)
        return {name: role for name, role in roles.items() if role}

    def _bind_import(self, clause: Node, module: str, roles: dict[str, str]) -> None:
        whole = _module_role(module)
        for part in clause.named_children:
            if part.type == "identifier":
                roles[self._tree.segment(part)] = whole
            elif part.type == "namespace_import":
                roles[self._tree.segment(part.named_children[0])] = whole
            elif part.type == "named_imports":
                for specifier in part.named_children:
                    names = [self._tree.segment(child) for child in specifier.named_children]
                    roles[names[-1]] = whole if names[0] == "default" else _member_role(whole, names[0])

    def _bind_target(self, target: Node, role: str, roles: dict[str, str]) -> None:
        if target.type == "identifier":
            roles[self._tree.segment(target)] = role
        elif target.type == "object_pattern":
            for part in target.named_children:
                if part.type == "shorthand_property_identifier_pattern":
                    roles[self._tree.segment(part)] = _member_role(role, self._tree.segment(part))
                elif part.type == "pair_pattern" and (value := field(part, "value")):
                    roles[self._tree.segment(value)] = _member_role(role, property_name(self._tree, part))

    def _required(self, value: Node, roles: Mapping[str, str]) -> str:
        """Return the role of what a declaration requires, or takes from what another one did."""
        if value.type == "call_expression" and (function := field(value, "function")):
            if self._tree.segment(function) == "require" and (arguments := field(value, "arguments")):
                return _module_role(self._tree.segment(arguments).strip("()'\"` "))
            return ""
        return self._role(value, roles)

    def _role(self, callee: Node, roles: Mapping[str, str]) -> str:
        """Return what a called expression is."""
        if callee.type == "identifier":
            return roles.get(self._tree.segment(callee), "")
        if callee.type == "call_expression":
            return self._required(callee, roles)
        if callee.type == "member_expression":
            inner, member = field(callee, "object"), field(callee, "property")
            if inner is not None and member is not None:
                return _member_role(self._role(inner, roles), self._tree.segment(member))
        return ""

    def _call(self, statement: Node) -> tuple[Node, Node, list[Node]] | None:
        """Return the call that a statement, or the expression of an arrow function, consists of, and its parts."""
        if statement.type == "expression_statement" and statement.named_children:
            call = without_parentheses(statement.named_children[0])
        elif statement.type in ("call_expression", "await_expression", "parenthesized_expression"):
            call = without_parentheses(statement)
        else:
            return None
        if call.type == "await_expression":
            call = without_parentheses(call.named_children[0])
        function, arguments = field(call, "function"), field(call, "arguments")
        if call.type != "call_expression" or function is None or arguments is None:
            return None
        return call, function, [child for child in arguments.named_children if child.type != "comment"]

    def _tests_in(self, statements: list[Node], path: list[str], scope: NameScope) -> Iterator[ScannedTest]:
        """Yield the tests that statements define, each of which is certain to be gone through."""
        for statement in statements:
            if loop := self._loop(statement, scope):
                yield from self._tests_in(loop[0], path, loop[1])
            elif call := self._call(statement):
                _, function, arguments = call
                role = self._role(function, scope.roles)
                callback = arguments[-1] if arguments and arguments[-1].type in FUNCTIONS else None
                if role not in ("test", "suite") or callback is None or self._is_excused(arguments[:-1]):
                    continue
                title, results = self._title(arguments[0], path)
                if role == "suite" and results is None:
                    yield from self._tests_in(_statements_of(callback), [*path, title], self._inner(callback, scope))
                elif role == "test":
                    yield self._scanned("::".join([*path, title]), results, callback, scope)

    def _is_excused(self, arguments: list[Node]) -> bool:
        return any(_EXCUSES.search(self._tree.segment(node)) for node in arguments if node.type == "object")

    def _title(self, node: Node, path: list[str]) -> tuple[str, re.Pattern[str] | None]:
        """Return a test's title, and what those match that are made of it when it runs."""
        text = self._tree.segment(node)
        if node.type == "string" and "\\" not in text:
            return text[1:-1] or _UNTITLED, None
        if node.type in FUNCTIONS:
            name = field(node, "name")
            return (self._tree.segment(name) if name else _UNTITLED), None
        if node.type == "template_string" and "\\" not in text:
            parts = re.split(r"\$\{(?:[^{}]|\{[^{}]*\})*\}", text[1:-1])
            if len(parts) == 1:
                return parts[0], None
            pattern = ".*".join(map(re.escape, parts))
        else:
            pattern = ".*"
        self._dynamic["::".join(path)] += 1
        return text, re.compile(re.escape("::".join(path) + "::") + pattern, re.DOTALL)

    def _inner(self, callback: Node, scope: NameScope) -> NameScope:
        """Return the scope of a callback's body, with its constants and without what its parameters hide."""
        body, parameters = field(callback, "body"), parameters_of(callback)
        hidden = {self._tree.segment(node) for node in inner_nodes(parameters)} if parameters else set()
        own = constants(self._tree, body.children if body else [], body) if body else {}
        values = {name: ways for name, ways in scope.values.items() if name not in hidden}
        return scope._replace(
            values={**values, **{name: [node] for name, node in own.items()}}, lists={**scope.lists, **own}
        )

    def _loop(self, statement: Node, scope: NameScope) -> tuple[list[Node], NameScope] | None:
        """Return the body of a loop over rows that are written in the file, and its scope."""
        pattern = rows = body = None
        if (
            statement.type == "for_in_statement"
            and self._tree.segment(field(statement, "operator") or statement) == "of"
        ):
            pattern, body = field(statement, "left"), field(statement, "body")
            rows = field(statement, "right")
        elif (call := self._call(statement)) and call[1].type == "member_expression" and call[2]:
            member = field(call[1], "property")
            if member is not None and self._tree.segment(member) == "forEach" and call[2][0].type in FUNCTIONS:
                pattern, body = first_parameter(call[2][0]), field(call[2][0], "body")
                rows = field(call[1], "object")
        if pattern is None or rows is None or body is None or has_jump(body):
            return None
        table = rows_of(self._tree, rows, scope.lists)
        inner = bind_rows(self._tree, pattern, table, scope, body) if table else None
        statements = body.children if body.type == "statement_block" else [body]
        return (statements, inner) if inner else None

    def _scanned(self, name: str, results: re.Pattern[str] | None, callback: Node, scope: NameScope) -> ScannedTest:
        inner = self._inner(callback, scope)
        first = first_parameter(callback)
        if first is not None and first.type == "identifier":
            inner = inner._replace(roles={**inner.roles, self._tree.segment(first): "context"})
        asserts = sum(self._is_assert(node, inner.roles) for node in inner_nodes(callback))
        return ScannedTest(name, asserts, tuple(self._changes(_statements_of(callback), inner)), results)

    def _is_assert(self, node: Node, roles: Mapping[str, str]) -> bool:
        function = field(node, "function") if node.type == "call_expression" else None
        return function is not None and self._role(function, roles).startswith("assert")

    def _changes(self, statements: list[Node], scope: NameScope) -> Iterator[Perturbation]:
        """Yield the changes of the statements that a test which passes has gone through."""
        for statement in statements:
            if loop := self._loop(statement, scope):
                yield from self._changes(loop[0], loop[1])
            elif call := self._call(statement):
                role = self._role(call[1], scope.roles)
                callback = call[2][-1] if call[2] and call[2][-1].type in FUNCTIONS else None
                if role == "test" and callback is not None and not self._is_excused(call[2][:-1]):
                    if self._tree.segment(statement).startswith("await"):
                        yield from self._subtest(callback, scope)
                elif role.startswith("assert"):
                    for kind, change in self._of_assert(role, call[1], call[2], statement, scope):
                        yield perturbation(self._tree, kind, statement, change)
            elif statement.type == "statement_block":
                yield from self._changes(statement.children, scope)
            if any(node.type == "return_statement" for node in own_nodes(statement)):
                return

    def _subtest(self, callback: Node, scope: NameScope) -> Iterator[Perturbation]:
        yield from self._scanned("", None, callback, scope).perturbations

    def _of_assert(
        self, role: str, function: Node, arguments: list[Node], statement: Node, scope: NameScope
    ) -> Iterator[tuple[str, TextChange]]:
        name = role.partition(".")[2] or "ok"
        is_awaited = self._tree.segment(statement).startswith("await")
        if name in _EQUAL and len(arguments) >= 2:
            yield from (("value", change) for change in self._values(arguments[0], arguments[1], scope))
        elif name == "ok" and arguments:
            yield from self._of_condition(without_parentheses(arguments[0]), scope)
        elif (name == "throws" or (name == "rejects" and is_awaited)) and len(arguments) >= 2:
            yield from self._of_error(arguments[1])
        if name in _OPPOSITES and function.type == "member_expression" and (is_awaited or "eject" not in name):
            member = field(function, "property")
            if member is not None:
                yield "polarity", TextSwap(*self._tree.span(member), (_OPPOSITES[name],))
        elif name == "ok" and arguments and arguments[0].type != "spread_element":
            start, end = self._tree.span(arguments[0])
            yield "polarity", TextSwap(start, end, (f"!({self._tree.text[start:end]})",))

    def _of_condition(self, node: Node, scope: NameScope) -> Iterator[tuple[str, TextChange]]:
        left, right, operator = field(node, "left"), field(node, "right"), field(node, "operator")
        if node.type != "binary_expression" or left is None or right is None or operator is None:
            return
        sign = self._tree.segment(operator)
        if sign == "&&":
            yield from self._of_condition(without_parentheses(left), scope)
            yield from self._of_condition(without_parentheses(right), scope)
        elif sign in ("==", "==="):
            yield from (("value", change) for change in self._values(left, right, scope))
        elif sign in _ORDERS:
            yield "order", TextSwap(*self._tree.span(operator), (_ORDERS[sign],))

    def _of_error(self, node: Node) -> Iterator[tuple[str, TextChange]]:
        """Yield the changes of what a test says of an error: its class, or its properties."""
        text = self._tree.segment(node)
        if node.type == "object":
            properties = {property_name(self._tree, pair): field(pair, "value") for pair in node.named_children}
            texts = [value for value in properties.values() if value is not None and value.type == "string"]
            changes = [change for value in texts for change in leaf_changes(self._tree, value)]
            if changes:
                yield "value", AnyChange(changes)
        elif node.type == "identifier" and text in _ERRORS:
            yield "exception", TextSwap(*self._tree.span(node), tuple(error for error in _ERRORS if error != text))
        elif node.type == "identifier" and text[:1].isupper() and text not in _SELDOM:
            yield "polarity", TextSwap(*self._tree.span(node), _SELDOM)

    def _values(self, first: Node, second: Node, scope: NameScope) -> Iterator[TextChange]:
        """Yield the changes of the expected side of a comparison, if it is one side."""
        sides = [without_parentheses(first), without_parentheses(second)]
        literal = [side for side in sides if is_literal(side)]
        if len(literal) == 2:
            return
        ways = [(side, self._ways(side, scope)) for side in sides]
        chosen = [changes for side, changes in ways if changes and (side in literal or not literal)]
        if len(chosen) == 1:
            yield from chosen[0]

    def _ways(self, node: Node, scope: NameScope) -> list[TextChange]:
        tree = self._tree
        if node.type == "identifier":
            nodes = scope.values.get(tree.segment(node), [])
        elif node.type == "member_expression":
            inner, member = field(node, "object"), field(node, "property")
            nodes = []
            if inner is not None and member is not None and inner.type == "identifier":
                name = tree.segment(inner)
                if self._is_read_once(node, name, tree.segment(member)):
                    nodes = scope.cells.get(name, {}).get(tree.segment(member), [])
        else:
            nodes = [node]
        changes = [value_change(tree, value) for value in nodes]
        return [change for change in changes if change is not None]

    def _is_read_once(self, node: Node, name: str, member: str) -> bool:
        """Return whether no other place of the loop reads a property of a row, or hands the whole row on."""
        loop = node
        while loop.parent is not None and not _binds(self._tree, loop, name):
            loop = loop.parent
        reads = [use.parent for use in uses(self._tree, loop, name) if use.parent is not None]
        members = [read for read in reads if read.type == "member_expression"]
        others = [read for read in reads if read.type != "member_expression" and not _is_pattern(read)]
        return not others and sum(self._tree.segment(read).endswith(f".{member}") for read in members) == 1


def _statements_of(callback: Node) -> list[Node]:
    """Return the statements of a function; of an arrow function without braces its one expression."""
    body = field(callback, "body")
    if body is None:
        return []
    return body.children if body.type == "statement_block" else [body]


def _is_pattern(node: Node) -> bool:
    """Return whether a name is bound there, not read."""
    return node.type in ("for_in_statement", "formal_parameters", *FUNCTIONS)


def _binds(tree: SyntaxTree, node: Node, name: str) -> bool:
    """Return whether a node is the loop, or the callback, whose variable has a name."""
    pattern = field(node, "left") if node.type == "for_in_statement" else None
    if node.type in FUNCTIONS:
        pattern = parameters_of(node)
    return pattern is not None and bool(uses(tree, pattern, name))


def _module_role(module: str) -> str:
    return "test" if module in _RUNNERS else "assert" if module in _ASSERTS else ""


def _member_role(role: str, member: str) -> str:
    if role in ("test", "suite"):
        return _TESTS.get(member, role if member in ("only", "default") else "")
    if role == "context":
        return "test" if member == "test" else "assert" if member == "assert" else ""
    if role == "assert":
        return "assert" if member in ("strict", "default") else f"assert.{member}"
    return ""
