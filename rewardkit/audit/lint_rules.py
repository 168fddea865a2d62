"""The rules of the lint: how each known mistake looks in a syntax tree, why it is one, and what to write instead."""

from __future__ import annotations

import ast
import random
import re
import types
from collections.abc import Callable, Container, Iterator
from typing import Any, NamedTuple, TypeAlias

from rewardkit.audit.source import FunctionSource
from rewardkit.versions.names_used import imported

_TAG = re.compile(r"<[\\/a-zA-Z]")
_ANY_IN_TAGS = re.compile(r">[^<]*(?<!\\)\.[*+{][^<]*<\\?/")  # a dot that is repeated between two tags
_OTHER_FLAGS = {"re", "regex", "I", "IGNORECASE", "M", "MULTILINE", "X", "VERBOSE", "A", "ASCII", "U", "UNICODE"}
_MATCHING = {"search", "match", "fullmatch", "findall", "finditer"}
_RANDOM = ("random", "numpy.random", "secrets")
_SEEDED = {"Random", "default_rng", "RandomState", "Generator", "seed", "SystemRandom"}
_NETWORK = ("requests", "httpx", "urllib.request", "urllib3", "socket", "http.client", "aiohttp", "openai", "anthropic")
_CLOCK = {"time.time", "time.monotonic", "time.perf_counter", "time.time_ns", "time.localtime", "time.process_time"}
_TODAY = {"now", "today", "utcnow"}
_EXECUTES = {"eval", "exec", "compile", "sympy.sympify", "sympy.parse_expr", "pickle.loads", "os.system", "os.popen"}
_CHANGES = {"append", "add", "update", "extend", "insert", "pop", "clear", "setdefault", "remove", "discard", "popitem"}

Find: TypeAlias = Callable[[FunctionSource], Iterator[ast.AST]]  # return the nodes of a function that make a mistake


class LintRule(NamedTuple):
    """One known mistake: its name, what is wrong with it, what to write instead, and what finds it."""

    name: str
    why: str
    fix: str
    find: Find


RULES: list[LintRule] = []  # the rules, in the order in which they are documented


def _rule(name: str, why: str, fix: str) -> Callable[[Find], Find]:
    """Return a decorator that adds a function to :data:`RULES`."""

    def add(find: Find) -> Find:
        RULES.append(LintRule(name, why, fix, find))
        return find

    return add


def _calls(piece: FunctionSource) -> Iterator[ast.Call]:
    return (node for node in ast.walk(piece.tree) if isinstance(node, ast.Call))


def _dotted(node: ast.AST, piece: FunctionSource) -> str:
    """Return a callee's full name, such as ``numpy.random.rand``; ``""`` where it is not a plain name."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return ""
    return ".".join([_meaning(node.id, piece), *reversed(parts)])


def _meaning(name: str, piece: FunctionSource) -> str:
    """Return what a name stands for: the full name of a module or a callable, else the name itself."""
    if (target := _imports(piece).get(name)) is not None:
        return target
    value = piece.names.get(name)
    if isinstance(value, types.ModuleType):
        return value.__name__
    if isinstance(getattr(value, "__self__", None), random.Random):
        return f"random.{name}"
    module = getattr(value, "__module__", None)
    qualified = getattr(value, "__qualname__", None)
    return f"{module}.{qualified}" if module and qualified and callable(value) else name


def _imports(piece: FunctionSource) -> dict[str, str]:
    """Return what the imports inside the function bind."""
    nodes = (node for node in ast.walk(piece.tree) if isinstance(node, ast.Import | ast.ImportFrom))
    targets = {name: target for node in nodes for name, target in imported(node).items() if target.module}
    return {name: ".".join(filter(None, (target.module, target.name))) for name, target in targets.items()}


def _derived_names(piece: FunctionSource, names: frozenset[str]) -> set[str]:
    """Return the names, and all names whose values assignments make of them."""
    derived = set(names)
    for _ in range(5):  # an assignment may stand before what it depends on, in a loop
        before = len(derived)
        for node in ast.walk(piece.tree):
            if isinstance(node, ast.Assign) and _mentions(node.value, derived):
                targets = (child for target in node.targets for child in ast.walk(target))
                derived |= {child.id for child in targets if isinstance(child, ast.Name)}
            elif isinstance(node, ast.NamedExpr) and _mentions(node.value, derived):
                derived.add(node.target.id)
        if len(derived) == before:
            break
    return derived


def _mentions(node: ast.AST, names: set[str]) -> bool:
    return any(isinstance(child, ast.Name) and child.id in names for child in ast.walk(node))


@_rule(
    "bool_of_column",
    "bool() of a column of strings is True for 'False' and '0' too.",
    "Annotate the parameter as bool; rewardkit then reads 'true', 'no', '0' and so on.",
)
def _bool_of_column(piece: FunctionSource) -> Iterator[ast.AST]:
    for call in _calls(piece):
        if isinstance(call.func, ast.Name) and call.func.id == "bool" and len(call.args) == 1:
            inside = call.args[0]
            if isinstance(inside, ast.Name) and piece.columns.get(inside.id) in ("str", "Any", "str | None", "object"):
                yield call


@_rule(
    "silent_except",
    "Whatever goes wrong becomes a score, also the reward's own mistakes; nobody sees them.",
    "Catch the errors that a wrong completion causes by name (ValueError); let others fail, with their cause.",
)
def _silent_except(piece: FunctionSource) -> Iterator[ast.AST]:
    for node in ast.walk(piece.tree):
        if not isinstance(node, ast.ExceptHandler):
            continue
        statement = node.body[0] if len(node.body) == 1 else None
        if node.type is None:
            is_silent = isinstance(statement, ast.Pass | ast.Continue | ast.Return)
        elif getattr(node.type, "id", "") in ("Exception", "BaseException"):
            scores = isinstance(statement, ast.Return) and _is_number(statement.value)
            is_silent = scores or isinstance(statement, ast.Pass)
        else:
            is_silent = False
        if is_silent:
            yield node


def _is_number(node: ast.AST | None) -> bool:
    """Return whether a node is a number, with a sign, or in ``Score(...)`` or ``float(...)``."""
    if isinstance(node, ast.UnaryOp):
        node = node.operand
    if isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("Score", "float") and node.args:
        return _is_number(node.args[0])
    return isinstance(node, ast.Constant) and isinstance(node.value, int | float)


@_rule(
    "unanchored_format",
    "The pattern of a format also matches where the format is only a part of the text.",
    "Use re.fullmatch, or anchor it with \\A and \\Z.",
)
def _unanchored_format(piece: FunctionSource) -> Iterator[ast.AST]:
    parents = {child: node for node in ast.walk(piece.tree) for child in ast.iter_child_nodes(node)}
    for call in _calls(piece):
        match = _pattern(call, piece)
        if match is None:
            continue
        method, pattern = match
        has_start = method == "match" or pattern.lstrip("(?sximuaL)").startswith(("^", "\\A"))
        has_end = pattern.rstrip(")").endswith(("$", "\\Z"))
        is_format = bool(_TAG.search(pattern)) or pattern.startswith(("^", "\\A"))
        if is_format and not (has_start and has_end) and _is_only_tested(call, parents, piece):
            yield call


@_rule(
    "dot_without_lines",
    "'.' stands for no line break, so what is written on several lines between the tags does not match.",
    "Give the flag re.DOTALL, or write (?s) at the start of the pattern.",
)
def _dot_without_lines(piece: FunctionSource) -> Iterator[ast.AST]:
    for call in _calls(piece):
        match = _pattern(call, piece, _MATCHING)
        if match is None or not _ANY_IN_TAGS.search(match[1]):
            continue
        flags = " ".join(map(ast.unparse, [*call.args[2:], *(keyword.value for keyword in call.keywords)]))
        inline = re.match(r"\(\?([a-zA-Z]+)\)", match[1])
        if _OTHER_FLAGS.issuperset(re.findall(r"\w+", flags)) and (inline is None or "s" not in inline[1]):
            yield call


def _pattern(
    call: ast.Call, piece: FunctionSource, methods: Container[str] = ("search", "match")
) -> tuple[str, str] | None:
    """Return method and pattern of a call that matches a regular expression; inline flags are part of the pattern."""
    if not isinstance(call.func, ast.Attribute) or call.func.attr not in methods:
        return None
    if _dotted(call.func, piece).rpartition(".")[0] in ("re", "regex"):
        first: Any = call.args[0] if call.args else None
        if isinstance(first, ast.Name):
            first = _assigned(first.id, piece) or ast.Constant(piece.names.get(first.id))
        value = first.value if isinstance(first, ast.Constant) else None
    else:
        value = piece.names.get(call.func.value.id) if isinstance(call.func.value, ast.Name) else None
    if isinstance(value, re.Pattern):
        value = f"(?s){value.pattern}" if value.flags & re.DOTALL else value.pattern
    return (call.func.attr, value) if isinstance(value, str) else None


def _assigned(name: str, piece: FunctionSource) -> ast.expr | None:
    """Return what a function gives its own variable; ``None`` where it gives it nothing, or several things."""
    values = [
        node.value
        for node in ast.walk(piece.tree)
        if isinstance(node, ast.Assign) and [ast.unparse(target) for target in node.targets] == [name]
    ]
    return values[0] if len(values) == 1 else None


def _is_only_tested(call: ast.Call, parents: dict[ast.AST, ast.AST], piece: FunctionSource) -> bool:
    """Return whether a match is only tested for truth, and nothing is taken out of it."""
    parent = parents.get(call)
    if isinstance(parent, ast.Assign | ast.NamedExpr):
        target = parent.targets[0] if isinstance(parent, ast.Assign) else parent.target
        uses = [n for n in ast.walk(piece.tree) if isinstance(n, ast.Name) and n.id == getattr(target, "id", "")]
        return not any(isinstance(parents.get(n), ast.Subscript | ast.Attribute) for n in uses)
    return not isinstance(parent, ast.Subscript | ast.Attribute)


@_rule(
    "substring_answer",
    "'in' finds the answer anywhere: '4' in '14', in a list of guesses, in 'not 4'; '' is in every text.",
    "Take the final answer out of the completion and compare it with ==.",
)
def _substring_answer(piece: FunctionSource) -> Iterator[ast.AST]:
    completions = _derived_names(piece, piece.completions)
    containers = ("list", "set", "dict", "tuple")
    texts = (name for name, annotation in piece.columns.items() if not annotation.startswith(containers))
    golds = _derived_names(piece, frozenset(texts))

    def is_pair(gold: ast.AST, completion: ast.AST) -> bool:
        return _mentions(gold, golds) and _mentions(completion, completions) and not _mentions(gold, completions)

    for node in ast.walk(piece.tree):
        if not isinstance(node, ast.Compare) or not isinstance(node.ops[0], ast.In | ast.NotIn):
            continue
        left, right = node.left, node.comparators[0]
        is_search = is_pair(left, right) or is_pair(right, left)
        if is_search and not isinstance(right, ast.List | ast.Set | ast.Tuple | ast.Dict):
            yield node


@_rule(
    "eval",
    "It runs what the model wrote: 9**9**9**9 hangs it, and code does what it likes.",
    "Use ast.literal_eval, Fraction or a parser on a short text; for code, take a parameter of type Sandbox.",
)
def _eval(piece: FunctionSource) -> Iterator[ast.AST]:
    completions = _derived_names(piece, piece.completions)
    for call in _calls(piece):
        name = _dotted(call.func, piece).removeprefix("builtins.")
        runs = name in _EXECUTES or name.startswith("subprocess.") or name.endswith((".sympify", ".parse_expr"))
        if runs and (not piece.completions or any(_mentions(argument, completions) for argument in call.args)):
            yield call


@_rule(
    "randomness",
    "The same completion gets different scores; the advantage is then noise.",
    "Seed a random.Random of the call's own from the completion or the row.",
)
def _randomness(piece: FunctionSource) -> Iterator[ast.AST]:
    for call in _calls(piece):
        name = _dotted(call.func, piece)
        module, _, last = name.rpartition(".")
        seeded = last in _SEEDED and (call.args or call.keywords)
        if (module in _RANDOM or name in ("os.urandom", "uuid.uuid4", "uuid.uuid1")) and not seeded:
            yield call


@_rule(
    "network_or_clock",
    "The score depends on what is outside the rollout: it cannot be repeated, and fails when that does.",
    "Put what is needed in a column; for a server, declare the reward async and raise InfrastructureError.",
)
def _network_or_clock(piece: FunctionSource) -> Iterator[ast.AST]:
    for call in _calls(piece):
        name = _dotted(call.func, piece)
        uses_network = any(name == module or name.startswith(f"{module}.") for module in _NETWORK)
        reads_date = name.startswith("datetime.") and name.rpartition(".")[2] in _TODAY
        if uses_network or reads_date or name in _CLOCK:
            yield call


@_rule(
    "global_state",
    "Calls change each other's scores, and every worker has a state of its own.",
    "Keep all that a score depends on in its parameters; a cache belongs in @reward(cache=True).",
)
def _global_state(piece: FunctionSource) -> Iterator[ast.AST]:
    nodes = list(ast.walk(piece.tree))
    local_names = {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    local_names |= {node.arg for node in nodes if isinstance(node, ast.arg)}

    def is_shared(node: ast.AST | None) -> bool:
        return isinstance(node, ast.Name) and node.id not in local_names and _is_container(piece.names.get(node.id))

    for node in nodes:
        if isinstance(node, ast.Global):
            yield node
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            defaults = [*node.args.defaults, *node.args.kw_defaults]
            yield from (default for default in defaults if default is not None and _is_mutable(default))
        elif isinstance(node, ast.Subscript | ast.Call) and is_shared(_write_target(node)):
            yield node


def _write_target(node: ast.Subscript | ast.Call) -> ast.AST | None:
    """Return the container that a node changes, by writing an item or calling a method of it; else ``None``."""
    if isinstance(node, ast.Subscript):
        return None if isinstance(node.ctx, ast.Load) else node.value
    function = node.func
    return function.value if isinstance(function, ast.Attribute) and function.attr in _CHANGES else None


def _is_mutable(node: ast.AST) -> bool:
    is_call = isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("list", "dict", "set")
    return is_call or isinstance(node, ast.List | ast.Dict | ast.Set)


def _is_container(value: Any) -> bool:
    return isinstance(value, list | dict | set) or type(value).__name__ in ("Counter", "defaultdict", "deque")
