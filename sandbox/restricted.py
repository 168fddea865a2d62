"""The gate for functions given as text: RestrictedPython, with our own rules for what everyday code needs.

*Covered:* a text that goes beyond plain computation is refused before it runs, with line, column and construct of each
thing that is refused, and what to write instead: other imports than those of :mod:`sandbox.inside.text_rules`,
attributes and names that lead into the interpreter, builtins that read, write or evaluate. :mod:`sandbox.inside.guards`
refuses what only shows at run time.

*Not covered:* a text that finds a way around the gate. RestrictedPython says of itself that it is no sandbox. So
what passes runs in a jail all the same, and the jail is the boundary.

RestrictedPython rewrites iteration and item access too, for objects with permissions. Here no object has any, so those
rewritings are left out; unpacking, in-place operators and the builtins that iterate in C then work.
"""

from __future__ import annotations

import ast
import builtins
import functools
import importlib.util
import marshal
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeGuard

from RestrictedPython.transformer import RestrictingNodeTransformer, copy_locations

from sandbox.errors import RestrictedSourceError
from sandbox.inside import guards, stand_ins, text_rules
from sandbox.inside.runner import source_lines
from sandbox.inside.test_text import bound_names
from sandbox.syntax import parse

MAX_TEXT_CHARS = 100_000  # length of a text; a longer one is refused

_PROGRAM = """\
import marshal, sys, types
def answer(ours, added, code, function, arguments):
    for name, data in ours:
        module = sys.modules[name] = types.ModuleType(name)
        exec(marshal.loads(data), vars(module))
    names_added = {"__name__": "added"}
    exec(marshal.loads(added), names_added)
    stand_ins = getattr(module, "STAND_INS", {})
    guards = sys.modules["sandbox.inside.guards"]
    return guards.answer(marshal.loads(code), function, arguments, names_added, stand_ins)
"""
_GONE_BUILTINS = frozenset(vars(builtins)) - text_rules.SAFE_BUILTINS - text_rules.GUARDED_BUILTINS
_DEFINABLE = text_rules.OPERATORS | text_rules.INITIALISERS | guards.METHOD_GUARDS.keys()
_NAME_LISTS = frozenset({"__slots__", "__match_args__"})  # a class may have them, as names that are written out
_MAX_REFUSALS = 50  # named of a text
_STATEMENTS = {
    "AsyncFunctionDef": "async def", "AsyncFor": "async for", "AsyncWith": "async with", "Await": "await",
    "TryStar": "except*", "TypeAlias": "type", "TypeVar": "a type parameter", "ParamSpec": "a type parameter",
    "TypeVarTuple": "a type parameter",
}  # fmt: skip
_INSTEAD = {
    "async def": "write 'def': a text has nothing to wait for", "async for": "write 'for'",
    "async with": "write 'with'", "await": "call the function", "except*": "write 'except'",
    "type": "write 'Name = ...'", "a type parameter": "leave it out: annotations are not evaluated",
    "open": "what a reward reads comes as a column, in a parameter", "input": "what a reward reads is its parameters",
    "eval": "ast.literal_eval reads literals, json.loads reads JSON", "exec": "write the code itself",
    "compile": "re.compile is for patterns; other code is written out", "__import__": "write 'import'",
    "globals": "keep values in a dictionary", "locals": "keep values in a dictionary",
    "vars": "name the attributes", "dir": "name the attributes", "__dict__": "name the attributes",
    "delattr": "write 'del thing.name'", "sys": "print writes to the logs", "logging": "print writes to the logs",
    "super": "write 'super().name' inside a method", "memoryview": "slice the bytes",
    "ExceptionGroup": "raise the exceptions one by one", "exit": "raise an exception", "quit": "raise an exception",
    "__file__": "a text is no file", "__new__": "set the attributes in '__init__'", "__del__": "write '__exit__'",
    "__setattr__": "set the attributes by name", "__mro__": "test with isinstance", "__bases__": "test with isinstance",
    "__subclasses__": "list the classes", "__traceback__": "str(error) and type(error).__name__ describe an error",
    "os": "a reward reads its parameters alone", "random": "a reward gives the same score each time",
    "numpy": "with numpy, write the reward in a file", "asyncio": "a text has nothing to wait for",
    "functools.singledispatch": "test the type with isinstance", "rewardkit": "Score is there without an import",
    "functools.singledispatchmethod": "test the type with isinstance", "functools.partialmethod": "write a method",
    "functools.namedtuple": "it is in collections", "typing.get_type_hints": "annotations are not evaluated",
    "dataclasses.make_dataclass": "write the class out", "string.Formatter": "str.format and f-strings format",
    "dataclasses.InitVar": "write '__init__'", "dataclasses.KW_ONLY": "write @dataclass(kw_only=True)",
    "abc.ABCMeta": "derive from abc.ABC", "ast.parse": "ast.literal_eval reads literals",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class CheckedSource:
    """A text that has passed the gate."""

    text: str  # as it was given
    lines: tuple[str, ...] = field(repr=False)  # of the text, as Python counts them
    functions: Mapping[str, ast.FunctionDef] = field(repr=False)  # by name, those at its top level, as it was given
    modules: frozenset[str] = field(repr=False)  # that it imports
    code: bytes = field(repr=False)  # compiled for the jail: :mod:`marshal` data of this very version of Python

    def call(self, function: str, added: bytes, arguments: Mapping[str, Any]) -> tuple[str, str, list[tuple[Any, ...]]]:
        """Return what :meth:`Sandbox.call <sandbox.Sandbox.call>` is to be called with, to call a function of the text.

        Args:
            function: Its name.
            added: A module of ours, from :func:`module_code`. Its public names are there for the text; its
                ``_leave`` turns what the function returns into a dictionary of plain values, which the call gives.
            arguments: Its keyword arguments, plain values.

        See :func:`sandbox.inside.guards.answer` for what the call returns where the text raises.
        """
        modules = [text_rules, guards, stand_ins] if self.modules & stand_ins.STAND_INS.keys() else [text_rules, guards]
        ours = [(module.__name__, module_code(module.__name__)) for module in modules]
        return _PROGRAM, "answer", [(ours, added, self.code, function, dict(arguments))]

    def position(self, node: ast.AST) -> tuple[int, int]:
        """Return the line and the column, both from 1, at which a node of the text begins."""
        return _position(self.lines, node)


def check_source(text: str) -> CheckedSource:
    """Return a text of Python functions, made ready for the jail.

    Raises:
        RestrictedSourceError: It does not compile, or does what a text may not; names line, column and construct of
            each thing that it may not, up to 50.
    """
    if len(text) > MAX_TEXT_CHARS:
        raise RestrictedSourceError(f"the text has {len(text):,} characters; at most {MAX_TEXT_CHARS:,} are taken")
    if "\0" in text:  # a fault in syntax to some versions of Python, to others not
        raise RestrictedSourceError("not Python: it has a NUL character", construct="characters")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about odd escapes and comparisons: the author's affair, not this process's
        try:
            tree, lines = parse(text), tuple(source_lines(text))
            gate = _Gate(lines, tree)
            gated = gate.visit(parse(text))
            gate.raise_refusals()
            code = compile(gated, text_rules.FILE_NAME, "exec", dont_inherit=True, optimize=0)
        except SyntaxError as error:
            line, column = error.lineno or 1, error.offset or 1
            raise RestrictedSourceError(f"not Python: {error.msg}", line, column, "syntax") from None
        except (RecursionError, MemoryError):
            raise RestrictedSourceError("nested too deep", construct="nesting") from None
        except RestrictedSourceError:
            raise
        except ValueError as error:  # lone surrogates
            raise RestrictedSourceError(f"not Python: {error}", construct="characters") from None
    functions = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
    return CheckedSource(text, lines, functions, frozenset(gate.imported), marshal.dumps(code))


@functools.cache
def module_code(name: str) -> bytes:
    """Return a module of ours compiled, without docstrings: :mod:`marshal` data to be sent into a jail."""
    spec = importlib.util.find_spec(name)
    assert spec is not None
    assert spec.origin is not None
    source = Path(spec.origin).read_bytes()  # not from the loader: under pytest that is one of its own
    return marshal.dumps(compile(source, f"{name}.py", "exec", dont_inherit=True, optimize=2))


class _Gate(RestrictingNodeTransformer):
    """RestrictedPython's policy with our changes; it gathers all that a text may not do."""

    def __init__(self, lines: Sequence[str], tree: ast.Module) -> None:
        super().__init__()
        self._lines = lines
        self._bound = Counter(bound_names(tree))
        self._modules = dict(_imported(tree))
        self._set_attributes = {node.attr for node in ast.walk(tree) if _is_set(node)}
        self._scopes: list[ast.AST] = []  # the classes and functions around a node, from the outermost
        self.imported: set[str] = set()  # modules
        self._pattern_checks: list[ast.stmt] = []  # of the match statement around a node
        self._pattern_count = 0
        self._refusals: dict[tuple[int, int, str], RestrictedSourceError] = {}

    def raise_refusals(self) -> None:
        """Raise the first refusal with the others, if there are any."""
        refusals = [self._refusals[key] for key in sorted(self._refusals)]
        if refusals:
            first = refusals[0]
            others = refusals[1:_MAX_REFUSALS]
            raise RestrictedSourceError(first.reason, first.line, first.column, first.construct, others)

    def error(self, node: ast.AST, info: str) -> None:
        """Refuse, in RestrictedPython's words."""
        self._refuse(node, info[:1].lower() + info[1:].rstrip("."), _construct(node))

    def not_allowed(self, node: ast.AST) -> None:
        """Refuse a kind of statement or expression, and look inside."""
        construct = _construct(node)
        self._refuse(node, f"{construct} is not allowed", construct)
        self.node_contents_visit(node)

    def _refuse(self, node: ast.AST, reason: str, construct: str, instead: str | None = None) -> None:
        line, column = _position(self._lines, node)
        instead = instead or _INSTEAD.get(construct)
        error = RestrictedSourceError(f"{reason}; {instead}" if instead else reason, line, column, construct)
        self._refusals.setdefault((line, column, construct), error)

    def check_name(self, node: ast.AST, name: str | None, allow_magic_methods: bool = False) -> None:
        """Allow names that begin with an underscore, except those with a meaning to Python or to the gate."""
        if name is None or not _is_reserved(name):
            return
        if allow_magic_methods and name in _DEFINABLE and self._in_class():
            return
        self._refuse(
            node,
            f"the name {name!r} is not allowed: it has a meaning of its own",
            name,
            _INSTEAD.get(name, f"write {name.strip('_')!r}"),
        )

    def _in_class(self) -> bool:
        return bool(self._scopes) and isinstance(self._scopes[-1], ast.ClassDef)

    def check_function_argument_names(self, node: object) -> None:
        """Leave that to each argument, which has its own line and column."""

    def visit_Name(self, node: ast.Name) -> ast.AST:
        """Refuse a builtin that a text may not have, and a name that is reserved."""
        is_read = isinstance(node.ctx, ast.Load)
        if is_read and node.id == "__name__":
            return node
        if is_read and node.id in _GONE_BUILTINS and not self._bound[node.id]:
            self._refuse(node, f"the builtin {node.id!r} is not available", node.id)
        else:
            self.check_name(node, node.id, node.id not in guards.METHOD_GUARDS)
        return node

    def visit_Attribute(self, node: ast.Attribute) -> Any:
        """Have a guard asked before an attribute is read, or before the object is changed; ``super()`` is passed on."""
        is_read = isinstance(node.ctx, ast.Load)
        name = self._check_attribute(node)
        value = node.value if _is_super(node.value) and is_read else self.visit(node.value)
        if not is_read:
            node.value = _call(node.value, "_write_", value)
            return node
        return _call(node, "_type_", value) if name == "__class__" else _call(node, "_getattr_", value, name)

    def _check_attribute(self, node: ast.Attribute) -> str:
        """Refuse an attribute that no object may be asked for; return its name as it is in a class."""
        name = node.attr
        if name in text_rules.INNER_NAMES or not self._is_open(node):
            own = "only attributes that the text itself sets may begin with an underscore"
            self._refuse(node, f"the attribute {name!r} is not available", name, None if _is_reserved(name) else own)
        module = self._modules.get(node.value.id) if isinstance(node.value, ast.Name) else None
        if module is not None and self._bound[node.value.id] == 1:  # type: ignore[attr-defined]  # as just seen
            self._check_public(node, module, name)
        return self._mangled(name)

    def _mangled(self, name: str) -> str:
        """Return a name as Python has it in the class around it."""
        classes = [scope for scope in self._scopes if isinstance(scope, ast.ClassDef)]
        is_mangled = classes and name.startswith("__") and not name.endswith("__")
        return f"_{classes[-1].name.lstrip('_')}{name}" if is_mangled else name

    def _is_open(self, node: ast.Attribute) -> bool:
        """Return whether the name of an attribute is one that a text may have to do with."""
        if not node.attr.startswith("_") or (isinstance(node.ctx, ast.Load) and node.attr in _READABLE):
            return True
        return not _is_reserved(node.attr) and (node.attr in self._set_attributes or self._bound[node.attr] > 0)

    def _check_public(self, node: ast.AST, module: str, name: str) -> None:
        if name not in text_rules.public_names(module) and f"{module}.{name}" not in text_rules.MODULES:
            self._refuse(node, f"{module}.{name} is not available", f"{module}.{name}")

    def visit_Import(self, node: ast.Import) -> Any:
        for alias in node.names:
            self._check_module(node, alias.name)
            self.check_name(node, alias.asname)
        return node

    def visit_ImportFrom(self, node: ast.ImportFrom) -> Any:
        """Refuse what may not be imported; ``annotations`` of ``__future__`` is left out."""
        if node.module == "__future__" and [alias.name for alias in node.names] == ["annotations"]:
            return ast.copy_location(ast.Pass(), node)
        module = "." * node.level + (node.module or "")
        if self._check_module(node, module):
            for alias in node.names:
                self._check_public(node, module, alias.name)
                self.check_name(node, alias.asname or alias.name)
        return node

    def _check_module(self, node: ast.AST, module: str) -> bool:
        if module in text_rules.MODULES:
            self.imported.add(module)
            return True
        allowed = f"allowed are {', '.join(sorted(text_rules.MODULES))}"
        instead = _INSTEAD.get(module.partition(".")[0], allowed)
        self._refuse(node, f"import of {module!r} is not allowed", f"import {module}", instead)
        return False

    def visit_AnnAssign(self, node: ast.AnnAssign) -> Any:
        """Let annotations stand, unevaluated; an annotated name may be a field's, and then it is set on objects."""
        self.check_name(node.target, getattr(node.target, "id", None))
        if node.value is None:
            return ast.copy_location(ast.Pass(), node)
        return self.visit(ast.copy_location(ast.Assign([node.target], node.value), node))

    def visit_AugAssign(self, node: ast.AugAssign) -> Any:
        """Refuse what reads one of the attributes whose value decides, without asking for it."""
        if isinstance(node.target, ast.Attribute) and node.target.attr in guards.WATCHED:
            name = node.target.attr
            self._refuse(node.target, f"{name!r} is not changed in place", name, f"write 'x.{name} = x.{name} + ...'")
        gated: Any = self.node_contents_visit(node)
        if isinstance(node.target, ast.Attribute):
            guarded: Any = node.target.value
            guarded.func.id = "_change_"
            guarded.args.append(ast.copy_location(ast.Constant(self._mangled(node.target.attr)), node))
        return gated

    def visit_arg(self, node: ast.arg) -> Any:
        self.check_name(node, node.arg)
        node.annotation = None
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> Any:
        self.check_name(node, node.name, allow_magic_methods=True)
        node.returns = None
        gated: Any = self._visit_scope(node)
        if node.name in guards.METHOD_GUARDS:
            guard = ast.Name(f"_guard{node.name}", ast.Load())
            copy_locations(guard, node)
            gated.decorator_list.insert(0, guard)
        return gated

    def visit_Lambda(self, node: ast.Lambda) -> Any:
        return self._visit_scope(node)

    def _visit_scope(self, node: ast.AST) -> Any:
        self._scopes.append(node)
        try:
            return self.node_contents_visit(node)
        finally:
            self._scopes.pop()

    def visit_ClassDef(self, node: ast.ClassDef) -> Any:
        """Refuse keywords, and keep lists of names and the fields' names, which the gate itself would refuse."""
        self.check_name(node, node.name)
        for keyword in node.keywords:
            if keyword.arg == "total":  # of a typed dictionary, which is a plain one here
                continue
            metaclass = "derive from abc.ABC" if keyword.arg == "metaclass" else "set it in the class's body"
            self._refuse(node, f"the keyword {keyword.arg!r} of a class is not allowed", node.name, metaclass)
        fields = {part.target.id: None for part in node.body if _is_field(part)}  # type: ignore[attr-defined]
        lists = [part for part in node.body if _is_name_list(part)]
        node.body = [part for part in node.body if part not in lists]
        gated: Any = self._visit_scope(node)
        if fields:  # for dataclasses and named tuples, without what the annotations say
            lists.append(ast.parse(f"__annotations__ = {fields}").body[0])
            copy_locations(lists[-1], node)
        gated.body[:0], gated.keywords = lists, []
        return gated

    def visit_Nonlocal(self, node: ast.Nonlocal | ast.Global) -> Any:
        for name in node.names:
            self.check_name(node, name)
        return node

    visit_Global = visit_Nonlocal

    def visit_Match(self, node: ast.Match) -> Any:
        outer, self._pattern_checks = self._pattern_checks, []
        gated: Any = self.node_contents_visit(node)
        checks, self._pattern_checks = self._pattern_checks, outer
        return [*checks, gated]

    def visit_MatchClass(self, node: ast.MatchClass) -> Any:
        """Take a pattern's attributes where anyone may read them: a pattern asks no guard."""
        for name in node.kwd_attrs:
            if name.startswith("_") or name in text_rules.INNER_NAMES or name in guards.WATCHED:
                self._refuse(
                    node, f"the attribute {name!r} is not available in a pattern", name, "read it after 'case'"
                )
        if node.patterns or node.kwd_attrs:  # of a class that is checked before, under a name that no text has
            name = f"_match{self._pattern_count}_"
            self._pattern_count += 1
            check = ast.Assign([ast.Name(name, ast.Store())], _call(node.cls, "_pattern_", self.visit(node.cls)))
            copy_locations(check, node)
            self._pattern_checks.append(check)
            node.cls = ast.copy_location(ast.Name(name, ast.Load()), node)
        else:
            self._check_pattern_name(node.cls)
        node.patterns = [self.visit(pattern) for pattern in node.patterns]
        node.kwd_patterns = [self.visit(pattern) for pattern in node.kwd_patterns]
        return node

    def visit_MatchMapping(self, node: ast.MatchMapping) -> Any:
        self.check_name(node, node.rest)
        for key in node.keys:
            self._check_pattern_name(key)
        node.patterns = [self.visit(pattern) for pattern in node.patterns]
        return node

    def visit_MatchValue(self, node: ast.MatchValue) -> Any:
        self._check_pattern_name(node.value)
        return node

    def _check_pattern_name(self, node: ast.expr) -> None:
        """Check a name of a pattern, such as ``Color.RED``, which must stay as it is."""
        if not isinstance(node, ast.Attribute):
            self.visit(node)
            return
        self._check_attribute(node)
        if node.attr.startswith("_") or node.attr in guards.WATCHED:
            self._refuse(
                node, f"the attribute {node.attr!r} is not available in a pattern", node.attr, "name it before"
            )
        self._check_pattern_name(node.value)

    def visit_MatchAs(self, node: ast.MatchAs | ast.MatchStar) -> Any:
        self.check_name(node, node.name)
        return self.node_contents_visit(node)

    visit_MatchStar = visit_MatchAs

    def _visit_unchanged(self, node: ast.AST) -> Any:
        return self.node_contents_visit(node)

    # What RestrictedPython rewrites for objects with permissions; see the module's docstring.
    visit_Subscript = visit_For = visit_comprehension = visit_Assign = visit_With = visit_Call = _visit_unchanged
    # What it does not know yet, and what it forbids for all.
    visit_MatMult = visit_match_case = visit_MatchSequence = visit_MatchOr = visit_MatchSingleton = _visit_unchanged
    inject_print_collector = staticmethod(lambda node, position=0: None)


_READABLE = text_rules.OPERATORS | text_rules.INITIALISERS | text_rules.NAMING | text_rules.TUPLE_NAMES | {"__class__"}


def _position(lines: Sequence[str], node: Any) -> tuple[int, int]:
    """Return a node's line and column, from 1 and in characters; of an attribute those of its name."""
    line, offset = getattr(node, "lineno", 1), getattr(node, "col_offset", 0)
    if isinstance(node, ast.Attribute):  # not the beginning of what it is an attribute of
        line, offset = node.end_lineno or line, (node.end_col_offset or 0) - len(node.attr.encode())
    before = lines[line - 1].encode()[:offset] if line <= len(lines) else b""
    return line, len(before.decode("utf-8", "replace")) + 1


def _call(node: ast.expr, guard: str, value: ast.expr, *constants: str) -> ast.Call:
    """Return a call of a guard in place of a node."""
    call = ast.Call(ast.Name(guard, ast.Load()), [value, *map(ast.Constant, constants)], [])
    copy_locations(call, node)
    return call


def _is_reserved(name: str) -> bool:
    """Return whether a name is one of Python's own or one of a guard's: underscores at both ends."""
    return name.startswith("_") and name.endswith("_") and name.strip("_") != ""


def _is_set(node: ast.AST) -> TypeGuard[ast.Attribute]:
    return isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)


def _is_super(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "super" and not node.args


def _is_field(node: ast.stmt) -> bool:
    """Return whether a statement of a class's body annotates a field."""
    if not isinstance(node, ast.AnnAssign) or not isinstance(node.target, ast.Name):
        return False
    return not any(getattr(part, "id", getattr(part, "attr", "")) == "ClassVar" for part in ast.walk(node.annotation))


def _is_name_list(node: ast.stmt) -> bool:
    """Return whether a statement sets ``__slots__`` or ``__match_args__`` to names that a text may have."""
    match node:
        case ast.Assign([ast.Name(id=name)], ast.Tuple(parts) | ast.List(parts)) if name in _NAME_LISTS:
            names = [part.value if isinstance(part, ast.Constant) else None for part in parts]
            hidden = text_rules.INNER_NAMES | guards.WATCHED.keys()
            return all(isinstance(name, str) and not _is_reserved(name) and name not in hidden for name in names)
    return False


def _construct(node: ast.AST) -> str:
    """Return the name of what a node stands for, as its author would say it."""
    kind = type(node).__name__
    for name in ("attr", "id", "name"):
        value = getattr(node, name, None)
        if isinstance(value, str) and kind not in _STATEMENTS:
            return value
    return _STATEMENTS.get(kind, kind)


def _imported(tree: ast.AST) -> Iterator[tuple[str, str]]:
    """Return the names that stand for modules, each with its module."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                outermost = alias.name.partition(".")[0]
                yield (alias.asname, alias.name) if alias.asname else (outermost, outermost)
