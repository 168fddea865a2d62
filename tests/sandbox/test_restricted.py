"""The gate for functions given as text: what it lets through, what it refuses and where, and the jail behind it."""

from __future__ import annotations

import dataclasses
import marshal
import pickle
import textwrap
import warnings
from typing import Any

import pytest

from sandbox import CallValue, Sandbox
from sandbox.errors import RestrictedSourceError
from sandbox.inside import guards, text_rules
from sandbox.restricted import MAX_TEXT_CHARS, check_source

ADDED = marshal.dumps(compile("def _leave(value):\n    return {'value': value}\nUNIT = 7\n", "added.py", "exec"))


def _told(sandbox: Sandbox, text: str, **arguments: Any) -> dict[str, Any]:
    """What calling ``f`` of a text says."""
    result = sandbox.call(*check_source(text).call("f", ADDED, arguments))
    assert result.value is not None, result
    (value,) = result.value
    assert isinstance(value, CallValue)
    assert value.ok, (value, result)
    told: dict[str, Any] = value.value
    return {**told, "stdout": result.stdout}


def _body(text: str) -> str:
    """A function ``f`` with that body."""
    return "def f(x=None):\n" + textwrap.indent(textwrap.dedent(text).strip("\n"), "    ") + "\n"


def _text(text: str) -> str:
    return textwrap.dedent(text).strip("\n") + "\n"


MODULES = """
return [
    math.sqrt(4), re.findall('a', 'aba'), json.loads('[1]'), statistics.mean([1, 3]), string.digits[:2],
    list(itertools.chain([1], [2])), functools.reduce(max, [1, 3]), str(D('1.50')), str(fractions.Fraction(1, 2)),
    datetime.date(2024, 1, 2).isoformat(), unicodedata.name('a'), difflib.SequenceMatcher(None, 'ab', 'ab').ratio(),
    isinstance({}, Mapping), collections.abc.Sized is not None, decimal.Decimal('2') == 2,
]
"""
BUILTINS = """
a = [3, 1, 2]
return [
    sorted(a), tuple(a), list(zip(a, 'ab')), sum(a), min(a), max(a), list(enumerate(a))[0], any(a), all(a),
    list(map(str, a)), list(filter(None, [0, 1])), list(reversed(a)), next(iter(a)), list(range(2)), round(1.25, 1),
    abs(-1), dict(a=1), set(a), frozenset(a), divmod(7, 2), pow(2, 3), ord('a'), chr(97), hex(9), bin(2), repr('a'),
    isinstance(1, int), len(a), bool(a), format(3, '>2'), callable(len), bytes([65]), complex(1, 2),
]
"""
IMPORTS = "".join(f"import {name}\n" for name in sorted(text_rules.MODULES))
ALLOWED: dict[str, tuple[str, Any]] = {
    "a decorator that wraps": (
        _text("""
        import functools

        def twice(of):
            @functools.wraps(of)
            def again(x=None):
                return 2 * of(x)
            return again

        @twice
        def f(x=None):
            return 4
        """),
        8,
    ),
    "in-place operators": (
        _body("""
            n = 1
            n += 2
            d = {'a': [1]}
            d['a'] += [2]
            d['a'][0] *= 5
            return n, d
        """),
        (3, {"a": [5, 2]}),
    ),
    "classes": (
        _text("""
            class A:
                kind = 'a'
                def __init__(self, n):
                    self.n = n
                    self.n += 1
                @property
                def twice(self):
                    return self.n * 2
                def __len__(self):
                    return self.n

            class B(A):
                @staticmethod
                def one():
                    return 1

            def f():
                return [B(3).twice, B.one(), len(B(2)), B.kind]
        """),
        [8, 1, 3, "a"],
    ),
    "unpacking": (_body("(a, (b, *c)), d = (1, (2, 3, 4)), 5\nreturn [a, b, c, d]"), [1, 2, [3, 4], 5]),
    "unpacking in a loop": (_body("return [i * a for i, (a, b) in enumerate(zip([1, 2], 'ab'))]"), [0, 2]),
    "comprehensions": (
        _body("return [v for v in range(3) if v], {v for v in 'aa'}, {k: v for k, v in [(1, 2)]}, sum(v for v in [1])"),
        ([1, 2], {"a"}, {1: 2}, 1),
    ),
    "annotations": (
        _text("""
            from __future__ import annotations
            LIMIT: Final[int] = 3
            def f(x: Unknown[int] = None, *y: int, **z: str) -> Whatever:
                n: int = 2
                m: str
                return LIMIT + n
        """),
        5,
    ),
    "f-strings": (_body("a = 1.5\nreturn f'{a:.2f} {a!r:>5} {a=}'"), "1.50   1.5 a=1.5"),
    "str.format": (_body("return '{:.1f} {b[1]} {a.real}'.format(1.25, a=2, b=[3, 4])"), "1.2 4 2"),
    "str.format as a function": (_body("return list(map(str.format, ['{}!'] * 2, 'ab'))"), ["a!", "b!"]),
    "format_map": (_body("return '{a}'.format_map({'a': 1})"), "1"),
    "starred calls": (
        _body("""
            def g(*a, **k):
                return a, k
            return g(*[1], *(2,), **{'c': 3})
        """),
        ((1, 2), {"c": 3}),
    ),
    "nonlocal and global": (
        _text("""
            N = 1
            def f():
                global N
                N += 1
                m = 0
                def g():
                    nonlocal m
                    m += 5
                g()
                return N + m
        """),
        7,
    ),
    "names with one underscore": (
        "_LIMIT = 2\ndef _half(n):\n    return n / _LIMIT\n" + _body("_ = 3\nreturn _half(_)"),
        1.5,
    ),
    "exceptions": (
        _body("""
            try:
                int('x')
            except (ValueError, TypeError) as e:
                return str(e)[:7]
            finally:
                pass
        """),
        "invalid",
    ),
    "generators": (
        _body("""
            def g():
                yield 1
                yield from [2]
            return list(g())
        """),
        [1, 2],
    ),
    "walrus, lambda, conditional": (
        _body("return [y for v in [1, 2] if (y := (lambda t: t + 1)(v)) > 2] if True else 0"),
        [3],
    ),
    "getattr and hasattr": (
        _body("return getattr('a', 'upper')(), hasattr('a', 'no'), getattr('a', 'no', 4)"),
        ("A", False, 4),
    ),
    "type of one argument": (_body("return type(3) is int"), True),
    "changing collections": (
        "from collections import Counter, defaultdict\n"
        + _body("""
            d = defaultdict(list)
            d['a'].append(1)
            c = Counter('ab')
            c['a'] += 1
            del c['b']
            return dict(d), dict(c)
        """),
        ({"a": [1]}, {"a": 2}),
    ),
    "a name of ours": (_body("return UNIT"), 7),
    "a name that hides a builtin": ("def open(n):\n    return n\n" + _body("return open(4)"), 4),
    "dates read and written": (
        "import datetime\nfrom datetime import datetime as dt\n"
        + _body("return dt.strptime('2024-02-03', '%Y-%m-%d').day, datetime.date(2024, 1, 2).strftime('%A')"),
        (3, "Tuesday"),
    ),
    "text that is no JSON": (
        "import json\n"
        + _body("""
            found = []
            for text in ('["a', '{', '[1', '', '{"a" 1}'):
                try:
                    json.loads(text)
                except json.JSONDecodeError as e:
                    found.append(e.pos)
            return found
        """),
        [1, 1, 2, 0, 5],
    ),
    "numbers of many digits": (_body("return len(str(10 ** 4000)), int('9' * 4000) > 1"), (4001, True)),
    "decorators with wraps": (
        _text("""
            import functools

            def plus_one(function):
                @functools.wraps(function)
                def inner(*values):
                    "Stands in."
                    return function(*values) + 1
                return inner

            @plus_one
            def g(n):
                return n

            @functools.total_ordering
            class A:
                def __init__(self, n):
                    self.n = n
                def __lt__(self, other):
                    return self.n < other.n

            def f():
                return g(1), A(2) >= A(1), functools.update_wrapper(functools.partial(g, 2), g)()
        """),
        (2, True, 3),
    ),
    "names of one's own that others watch": (
        _text("""
            class Node:
                def __init__(self, obj):
                    self.obj = obj
                    self.mro = 2
                def format(self, width):
                    return width

            def f():
                try:
                    Node(1).nothing
                except AttributeError as error:
                    return Node(1).obj, Node(1).mro, Node(1).format(3), error.name, hasattr(error, 'obj')
        """),
        (1, 2, 3, "nothing", False),
    ),
    "super of an AttributeError": (
        "class E(AttributeError):\n    def g(self):\n        try:\n            return super().obj\n"
        "        except AttributeError as e:\n            return str(e)\n"
        + _body("return E('', obj=3).g()"),
        "the attribute 'obj' of an AttributeError is not available here",
    ),
    "changes in place of what a class has": (
        "import functools\nclass A:\n    n = 1\n    __m = 2\n    def f(self):\n        self.__m += 1\n"
        "        A.n += 1\n        A.__m += 1\n        self.n += 5\n        return self.__m, A.n, self.n\n"
        "@functools.lru_cache(maxsize=None)\ndef g(x):\n    return x\n@functools.lru_cache\ndef h(x):\n    return x\n"
        + _body("return A().f(), g(1), h(2), g.cache_info().misses, functools.cache(A)().n"),
        ((3, 2, 7), 1, 2, 1, 2),
    ),
    "methods as functions": (
        "from collections import Counter, OrderedDict\nfrom datetime import date\nfrom fractions import Fraction\n"
        "class A(Counter):\n    best = staticmethod(max)\n"
        + _body("""
            counts = list(map(Counter.most_common, [Counter('aab'), A('b')]))
            halves = sorted([Fraction(1, 2), Fraction(1, 3)], key=Fraction.limit_denominator)
            match date(2024, 1, 2):
                case date(year=year, day=day):
                    return counts, str(halves[0]), A.best(1, 2), list(OrderedDict.fromkeys('ab')), year + day
        """),
        ([[("a", 2), ("b", 1)], [("b", 1)]], "1/3", 2, ["a", "b"], 2026),
    ),
    "names of typing": (
        "import typing\nfrom typing import Annotated, NotRequired, ParamSpec, Protocol, final, runtime_checkable\n"
        "P = ParamSpec('P')\n@runtime_checkable\nclass A(Protocol[P]):\n    x: Annotated[int, 3]\n"
        + _body("return issubclass(A, object), isinstance([], typing.Iterable), typing.TYPE_CHECKING"),
        (True, True, False),
    ),
    "UserString": (
        "from collections import UserString\n" + _body("return UserString('{a.real}').format(a=1)"),
        "1",
    ),
    "literal_eval": (
        "from ast import literal_eval\nimport ast\n" + _body("return literal_eval('[1]') + ast.literal_eval('[2]')"),
        [1, 2],
    ),
    "every module": (
        IMPORTS + "from collections.abc import Mapping\nfrom decimal import Decimal as D\n" + _body(MODULES),
        [
            2.0, ["a", "a"], [1], 2, "01", [1, 2], 3, "1.50", "1/2", "2024-01-02", "LATIN SMALL LETTER A", 1.0,
            True, True, True,
        ],
    ),
    "the everyday builtins": (
        _body(BUILTINS),
        [
            [1, 2, 3], (3, 1, 2), [(3, "a"), (1, "b")], 6, 1, 3, (0, 3), True, True,
            ["3", "1", "2"], [1], [2, 1, 3], 3, [0, 1], 1.2,
            1, {"a": 1}, {1, 2, 3}, frozenset({1, 2, 3}), (3, 1), 8, 97, "a", "0x9", "0b10", "'a'",
            True, 3, True, " 3", True, b"A", 1 + 2j,
        ],
    ),
}  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), ALLOWED.values(), ids=ALLOWED)
def test_everyday_python_runs(sandbox: Sandbox, text: str, expected: Any) -> None:
    """What everyday code needs passes the gate and gives in the jail what it gives in Python."""
    told = _told(sandbox, text)
    assert {"value": expected, "dropped": 0, "stdout": ""} == told


REFUSED = {
    "an import": ("import os", (1, 1), "import os"),
    "an import from": ("x = 1\nfrom subprocess import run", (2, 1), "import subprocess"),
    "an import in a function": (_body("import socket"), (2, 5), "import socket"),
    "a module inside an allowed one": ("import json.decoder", (1, 1), "import json.decoder"),
    "a module that an allowed one has imported": ("from statistics import sys", (1, 1), "statistics.sys"),
    "the same as an attribute": ("import statistics as s\ns.sys.modules", (2, 3), "statistics.sys"),
    "ast.parse": ("import ast\nx = ast.parse('1')", (2, 9), "ast.parse"),
    "compile of ast": ("from ast import literal_eval, parse", (1, 1), "ast.parse"),
    "string.Formatter": ("from string import Formatter", (1, 1), "string.Formatter"),
    "everything": ("from math import *", (1, 1), "math.*"),
    "a relative import": ("from . import x", (1, 1), "import ."),
    "importlib by name": ("__import__('os')", (1, 1), "__import__"),
    "open": (_body("return open('/etc/passwd').read()"), (2, 12), "open"),
    "eval": (_body("return eval('1')"), (2, 12), "eval"),
    "exec under another name": ("run = exec", (1, 7), "exec"),
    "compile": ("compile('1', '', 'eval')", (1, 1), "compile"),
    "globals": ("globals()", (1, 1), "globals"),
    "vars": ("vars()", (1, 1), "vars"),
    "input": ("input()", (1, 1), "input"),
    "delattr": ("delattr(len, 'a')", (1, 1), "delattr"),
    "a dunder attribute": (_body("return ().__class__.__bases__"), (2, 25), "__bases__"),
    "an attribute with an underscore": ("'é'; x._y", (1, 8), "_y"),
    "an attribute in an f-string": ("f'{x.__dict__}'", (1, 6), "__dict__"),
    "a frame": (_body("return (i for i in x).gi_frame"), (2, 27), "gi_frame"),
    "a dunder name": ("x = __builtins__", (1, 5), "__builtins__"),
    "__name__ set": ("__name__ = 'a'", (1, 1), "__name__"),
    "a guard's name": ("def _getattr_(of, name): pass", (1, 1), "_getattr_"),
    "a guard's name as an argument": ("lambda _write_: 1", (1, 8), "_write_"),
    "a guard's name by import": ("import math as _getattr_", (1, 1), "_getattr_"),
    "a guard's name as a global": (_body("global _write_"), (2, 5), "_write_"),
    "a dangerous method": ("class A:\n    def __del__(self): pass", (2, 5), "__del__"),
    "a metaclass": ("class A(metaclass=B): pass", (1, 1), "A"),
    "async def": ("\nasync def f(): pass", (2, 1), "async def"),
    "an inner attribute in a pattern": ("match x:\n    case A(gi_frame=r): pass", (2, 10), "gi_frame"),
    "an attribute in a pattern whose value decides": ("match x:\n    case str(format=r): pass", (2, 10), "format"),
    "a guard's name in a pattern": ("match x:\n    case [*_getattr_]: pass", (2, 11), "_getattr_"),
    "a guard's name for a whole pattern": ("match x:\n    case {**_write_}: pass", (2, 10), "_write_"),
    "a pattern's inner value": ("match x:\n    case a.gi_frame: pass", (2, 12), "gi_frame"),
    "names of a pattern's places": ("class A:\n    __match_args__ = ('gi_frame',)", (2, 5), "__match_args__"),
    "super by itself": ("x = super", (1, 5), "super"),
    "super of others": ("class A:\n    def f(self): return super(A, self).f", (2, 25), "super"),
    "super's own type": ("class A:\n    def f(self): return super().__self_class__", (2, 33), "__self_class__"),
    "an attribute changed in place": ("e.obj += x", (1, 3), "obj"),
    "a method whose guard another would miss": ("class A:\n    __exit__ = f", (2, 5), "__exit__"),
    "__getattribute__": ("class A:\n    def __getattribute__(self, n): pass", (2, 5), "__getattribute__"),
    "an inner name as a field": ("class A:\n    __annotations__: int", (2, 5), "__annotations__"),
    "an operator's name as a field": ("class A:\n    __eq__: int = 3", (2, 5), "__eq__"),
    "annotations of one's own": ("class A:\n    __annotations__ = x", (2, 5), "__annotations__"),
    "singledispatch": ("from functools import singledispatch", (1, 1), "functools.singledispatch"),
    "partialmethod": ("import functools\nfunctools.partialmethod", (2, 11), "functools.partialmethod"),
    "get_type_hints": ("from typing import get_type_hints", (1, 1), "typing.get_type_hints"),
    "ForwardRef": ("from typing import ForwardRef", (1, 1), "typing.ForwardRef"),
    "make_dataclass": ("from dataclasses import make_dataclass", (1, 1), "dataclasses.make_dataclass"),
    "ABCMeta": ("from abc import ABCMeta", (1, 1), "abc.ABCMeta"),
    "EnumType": ("from enum import EnumType", (1, 1), "enum.EnumType"),
    "ExitStack": ("from contextlib import ExitStack", (1, 1), "contextlib.ExitStack"),
    "except*": ("try: pass\nexcept* ValueError: pass", (1, 1), "except*"),
    "what is no Python": ("x = 1\n  y = 2", (2, 2), "syntax"),
    "a return outside": ("return 1", (1, 1), "syntax"),
    "NUL": ("x = '\0'", (1, 1), "characters"),
}  # fmt: skip


@pytest.mark.parametrize(("text", "place", "construct"), REFUSED.values(), ids=REFUSED)
def test_what_leads_further_is_refused_with_its_place(text: str, place: tuple[int, int], construct: str) -> None:
    """The error names line, column and construct, and nothing is run."""
    with pytest.raises(RestrictedSourceError) as caught:
        check_source(text)
    error = caught.value
    if construct == "syntax":  # where Python sees a fault in syntax differs between its versions
        assert (place[0], construct) == (error.line, error.construct)
    else:
        assert (*place, construct) == (error.line, error.column, error.construct)
    assert str(error).startswith(f"line {error.line}, column {error.column}: ")
    again = pickle.loads(pickle.dumps(error))
    assert (str(error), error.construct) == (str(again), again.construct)


@pytest.mark.parametrize(
    "text",
    [
        "-" * 90_000 + "1",
        "a" + ".b" * 40_000,
        "x" + "+x" * 45_000,
        "[" * 5_000 + "]" * 5_000,
        "if x: pass\n" + "elif x: pass\n" * 7_000,
        "lambda: " * 10_000 + "1",
        "'\ud800'",
        "x" * (MAX_TEXT_CHARS + 1),
        "9" * 50_000,
    ],
    ids=["minus", "attributes", "sum", "brackets", "elif", "lambdas", "surrogate", "long", "digits"],
)
def test_a_text_made_to_break_the_gate_is_refused(text: str) -> None:
    """Deep nesting, odd characters and great length end in the named error, and this process lives on."""
    with pytest.raises(RestrictedSourceError):
        check_source(text)


def test_refusals_say_what_to_do() -> None:
    """What people try first has a hint."""
    with pytest.raises(RestrictedSourceError, match="; test the type with isinstance"):
        check_source("from functools import singledispatch")
    with pytest.raises(RestrictedSourceError, match="allowed are abc, ast, bisect, collections"):
        check_source("import subprocess")


def test_all_refusals_of_a_text_are_named_at_once() -> None:
    """Each with its line, in the order of the text, and once."""
    text = "import os\nimport math\ndef f(x):\n    eval(x.__dict__)\n    return open(x), x._y, [eval(a) for a in x]\n"
    with pytest.raises(RestrictedSourceError) as caught:
        check_source(text)
    refusals = [caught.value, *caught.value.others]
    expected = [
        (1, 1, "import os"),
        (4, 5, "eval"),
        (4, 12, "__dict__"),
        (5, 12, "open"),
        (5, 23, "_y"),
        (5, 28, "eval"),
    ]
    assert expected == [(refusal.line, refusal.column, refusal.construct) for refusal in refusals]
    assert [f"line {line}, column {column}: " for line, column, _ in expected] == [
        line[: line.index(": ") + 2] for line in str(caught.value).split("\n")
    ]
    assert str(caught.value) == str(pickle.loads(pickle.dumps(caught.value)))


def test_the_refusals_of_one_text_are_bounded() -> None:
    """A text of nothing but refusals does not make a message without end."""
    with pytest.raises(RestrictedSourceError) as caught:
        check_source("import os\n" * 5_000)
    assert 50 == len(str(caught.value).split("\n"))


def test_lines_are_counted_as_python_counts_them() -> None:
    """A form feed, U+2028 and their like end no line, a lone carriage return does; columns are characters."""
    text = "s = '\u2028\x1c\x85'\n\x0cn = 1\rt = 'é'; eval(s)\r\nopen(s)"
    with pytest.raises(RestrictedSourceError) as caught:
        check_source(text)
    assert [(3, 10), (4, 1)] == [(refusal.line, refusal.column) for refusal in (caught.value, *caught.value.others)]


def test_odd_but_legal_texts_warn_nobody() -> None:
    """A text with an odd escape or comparison is the author's affair."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert {"f"} == set(check_source("def f(x):\n    return x is 1 or '\\d'\n").functions)


AT_RUN_TIME = {
    "getattr": (_body("return getattr((), '__cl' + 'ass__')"), "AttributeError", 2),
    "getattr with a default": (_body("return getattr((), '__cl' + 'ass__', 3)"), "AttributeError", 2),
    "getattr under another name": (_body("return list(map(getattr, [()], ['__class__']))"), "AttributeError", 2),
    "a name that is a str of its own": (
        "class S(str):\n    pass\n" + _body("return getattr((), S('__class__'))"),
        "TypeError",
        4,
    ),
    "a frame": (_body("return getattr((i for i in []), 'gi_' + 'frame')"), "AttributeError", 2),
    "str.format": (_body("return '{0.__class__}'.format(1)"), "AttributeError", 2),
    "str.format with a nested specification": (_body("return '{0:{0.__class__}}'.format(1)"), "AttributeError", 2),
    "format of a derived str": (
        "class S(str):\n    pass\n" + _body("return S('{0.__class__}').format(1)"),
        "AttributeError",
        4,
    ),
    "str.format as a function": (_body("return list(map(str.format, ['{0.__class__}'], [1]))"), "AttributeError", 2),
    "format_map": (_body("return '{a.__class__}'.format_map({'a': 1})"), "AttributeError", 2),
    "a module's module": (
        "import statistics\nstatistics = statistics\n" + _body("return statistics.sys"),
        "AttributeError",
        4,
    ),
    "changing a module": ("import json\n" + _body("json.loads = len"), "TypeError", 3),
    "changing a module's globals": (
        "import functools, json\n"
        + _body("return functools.update_wrapper(f, json.dumps, assigned=(), updated=('__glo' + 'bals__',))"),
        "TypeError",
        3,
    ),
    "an attribute by wraps": (
        "from functools import wraps\n" + _body("return wraps(max, assigned=('__self__',))(f)"),
        "TypeError",
        3,
    ),
    "changing a builtin type": (_body("int.real = 3"), "TypeError", 2),
    "changing another's function": ("import re\n" + _body("re.sub.name = 3"), "TypeError", 3),
    "an attribute by setattr": (_body("setattr(f, '__code' + '__', 3)"), "AttributeError", 2),
    "another's attribute by setattr": ("import re\n" + _body("setattr(re, 'sub', 3)"), "TypeError", 3),
    "a private attribute of another class": (
        "import string\nclass A(string.Template):\n    def f(self):\n        self._invalid = 1\n"
        + _body("return A('')._invalid"),
        "AttributeError",
        6,
    ),
    "a class's operator, for another's objects": (
        "from dataclasses import dataclass\n@dataclass\nclass A:\n    obj: int\n" + _body("return A.__eq__(x, x)"),
        "AttributeError",
        6,
    ),
    "a class's __init__, for another's objects": (
        "import json\nfrom dataclasses import dataclass\n@dataclass\nclass A:\n    encode: int\n"
        + _body("A.__init__(json.JSONEncoder, 3)"),
        "AttributeError",
        7,
    ),
    "another's __init__": (_body("property.__init__(x)"), "AttributeError", 2),
    "others' objects in an abstract class": (
        "from abc import ABC\nclass A(ABC):\n    pass\n" + _body("A.register(int)"),
        "AttributeError",
        5,
    ),
    "an enumeration of names that are data": (
        "from enum import Enum\n" + _body("return Enum('A', [('__annotations__', {})])"),
        "TypeError",
        3,
    ),
    "a dataclass of another's class": (
        "import json, dataclasses\n" + _body("dataclasses.dataclass(json.JSONEncoder)"),
        "TypeError",
        3,
    ),
    "a field whose name is code": (
        "import dataclasses\nclass F(type(dataclasses.field())):\n    @property\n    def name(self):\n"
        "        return 'x=print(1)'\n    @name.setter\n    def name(self, value):\n        pass\n"
        "class B:\n    x = F(3, dataclasses.field, True, True, True, True, {}, False)\n"
        + _body("class A(B):\n    x: int\nreturn dataclasses.dataclass(A)"),
        "TypeError",
        14,
    ),
    "a field that is another each time": (
        "import dataclasses\n"
        + _body("class A:\n    x: int = classmethod(property(len))\nreturn dataclasses.dataclass(A)"),
        "TypeError",
        5,
    ),
    "the __init__ of an exception in Python": (
        "import re\n" + _body("re.error.__init__(f, 'm', 'p', 1)"),
        "AttributeError",
        3,
    ),
    "type, by a method for objects": (
        "from collections import Counter\nclass A:\n    pass\n" + _body("return Counter.copy(A)"),
        "TypeError",
        5,
    ),
    "a class of names that are data, by a method for objects": (
        "from collections import ChainMap\nclass A:\n    pass\nA.maps = ((), {'__getattr__': len})\n"
        + _body("return ChainMap.new_child(A, 'B')"),
        "TypeError",
        6,
    ),
    "a method for objects, by an alias": (
        "from collections import Counter\nclass A:\n    pass\n" + _body("return type(list[int])(Counter, ()).copy(A)"),
        "TypeError",
        5,
    ),
    "a method for objects, by super": (
        "from collections import Counter\nclass A(Counter):\n    @classmethod\n    def f(cls):\n"
        "        return super().copy(cls)\n" + _body("pass") + "f = A.f\n",
        "TypeError",
        5,
    ),
    "a method for objects, by a pattern": (
        _body("match x:\n    case object(copy=copy):\n        pass"),
        "TypeError",
        3,
    ),
    "a method for objects, by a pattern of aliases": (
        "Alias = type(list[int])\n" + _body("match x:\n    case Alias(copy=copy):\n        pass"),
        "TypeError",
        4,
    ),
    "the property of another's class": (
        "from collections import ChainMap\n" + _body("return classmethod(ChainMap.parents)"),
        "AttributeError",
        3,
    ),
    "a method for objects, changed in place": (
        "from collections import Counter\nclass A(Counter):\n    pass\nclass Spy:\n    def __radd__(self, other):\n"
        "        return other\n" + _body("A.copy += Spy()\nreturn A.copy"),
        "TypeError",
        8,
    ),
    "a method for objects, as a default": (
        "import collections, dataclasses\n"
        + _body("class A(collections.Counter):\n    copy: int\nreturn dataclasses.dataclass(A)"),
        "TypeError",
        5,
    ),
    "a method for objects, by a cache": (
        "import collections, functools\n" + _body("return functools.cache(collections.Counter).copy"),
        "AttributeError",
        3,
    ),
    "a method for objects, by a context manager": (
        "import collections, contextlib\n" + _body("return contextlib.contextmanager(collections.Counter).copy"),
        "AttributeError",
        3,
    ),
    "cached_property as a base": (
        "import functools\n" + _body("class A(functools.cached_property):\n    pass"),
        "TypeError",
        3,
    ),
    "attrgetter": ("import operator\n" + _body("return operator.attrgetter('real.__class__')(1)"), "AttributeError", 3),
    "methodcaller": ("import operator\n" + _body("return operator.methodcaller('__dir__')(1)"), "AttributeError", 3),
    "type of three arguments": (_body("return type('A', (), {})"), "TypeError", 2),
    "type of a class": (_body("return type(int)"), "TypeError", 2),
    "a class that type itself makes": (_body("return type(type(3))('A', (), {'__del__': f})"), "TypeError", 2),
    "the type of an enumeration": ("import re\n" + _body("return type(type(re.I))"), "TypeError", 3),
    "bases by mro": ("import re\n" + _body("return re.RegexFlag.mro()"), "AttributeError", 3),
    "bases by mro of an alias": (_body("return list[int].mro()"), "AttributeError", 2),
    "update_wrapper on another's class": (
        "import functools, json\nclass A:\n    pass\n" + _body("functools.update_wrapper(json.JSONEncoder, A)"),
        "TypeError",
        5,
    ),
    "update_wrapper on another's function": (
        "import functools, json\n" + _body("return functools.update_wrapper(json.dumps, f)"),
        "TypeError",
        3,
    ),
    "update_wrapper on print": ("import functools\n" + _body("functools.update_wrapper(print, f)"), "TypeError", 3),
    "wraps on another's function": (
        "import functools, re\n" + _body("return functools.wraps(f)(re.sub)"),
        "TypeError",
        3,
    ),
    "total_ordering of another's class": (
        "import functools, fractions\n" + _body("return functools.total_ordering(fractions.Fraction)"),
        "TypeError",
        3,
    ),
    "what had no such attribute": (
        _body("""
            try:
                x.nothing
            except AttributeError as e:
                return e.obj
        """),
        "AttributeError",
        5,
    ),
    "what had no such attribute, by getattr": (
        _body("""
            try:
                getattr(f, 'nothing')
            except AttributeError as e:
                return getattr(e, 'o' + 'bj', 3)
        """),
        "AttributeError",
        5,
    ),
    "what had no such attribute, by an alias": (
        _body("""
            try:
                x.nothing
            except AttributeError as e:
                return type(list[int])(e, ()).obj
        """),
        "AttributeError",
        5,
    ),
    "format by an alias": (_body("return type(list[int])('{0.__class__}', ()).format(1)"), "AttributeError", 2),
    "format by a method": (
        "class S(str):\n    def __call__(self):\n        pass\n    def m(self):\n        pass\n"
        + _body("return type(S().m)(S('{0.__class__}'), 1).format(1)"),
        "AttributeError",
        7,
    ),
    "format of a UserString": (
        "import collections\n" + _body("return collections.UserString('{0.__class__}').format(1)"),
        "AttributeError",
        3,
    ),
    "format of a derived UserString": (
        "import collections\nclass S(collections.UserString):\n    pass\n"
        + _body("return S('{a.__class__}').format_map({'a': 1})"),
        "AttributeError",
        5,
    ),
    "format of UserString as a function": (
        "from collections import UserString as U\n" + _body("return U.format(U('{0.__class__}'), 1)"),
        "AttributeError",
        3,
    ),
    "print to a file": (_body("print(1, file=x)"), "TypeError", 2),
    "a name that nobody defines": (_body("return nothing"), "NameError", 2),
}  # fmt: skip


@pytest.mark.parametrize(("text", "kind", "line"), AT_RUN_TIME.values(), ids=AT_RUN_TIME)
def test_what_only_shows_at_run_time_is_refused_there(sandbox: Sandbox, text: str, kind: str, line: int) -> None:
    """The guards raise in the jail, at a line of the text."""
    raised = _told(sandbox, text)["raised"]
    assert (kind, [(line, "f")]) == (raised["type"], raised["frames"])


def test_a_text_that_slips_through_the_gate_is_still_in_the_jail(sandbox: Sandbox) -> None:
    """Code that has every builtin of Python gains nothing by it."""
    text = _body("return _getattr_.__globals__['builtins'].__import__('socket').socket()")
    ungated = marshal.dumps(compile(text, text_rules.FILE_NAME, "exec"))
    checked = dataclasses.replace(check_source(_body("pass")), code=ungated)
    result = sandbox.call(*checked.call("f", ADDED, {}))
    assert result.value is not None
    assert "PermissionError" == result.value[0].value["raised"]["type"]


def test_prints_leave_the_jail_up_to_a_limit(sandbox: Sandbox) -> None:
    """Characters beyond the limit are counted and not written; lone surrogates are escaped."""
    text = _body(f"""
        print('a', 1, sep='-', end='!')
        print('\\ud800')
        print('x' * {guards.PRINTED_CHARS})
        print('y')
    """)
    told = _told(sandbox, text)
    whole = "a-1!\ud800\n" + "x" * guards.PRINTED_CHARS + "\ny\n"
    kept = whole[: guards.PRINTED_CHARS].replace("\ud800", "\\ud800")
    assert (kept, len(whole) - guards.PRINTED_CHARS) == (told["stdout"], told["dropped"])


def test_errors_have_the_lines_of_the_text(sandbox: Sandbox) -> None:
    """The frames are the text's own, by the lines that its author wrote, from the outermost in."""
    text = _text("""
        import re

        def g(n):
            counts = {}
            counts['a'] += n


        def f(n):
            return [g(m)
                    for m in [n]]
    """)
    raised = _told(sandbox, text, n=1)["raised"]
    assert ("KeyError", "'a'", (9, "f"), (5, "g")) == (
        raised["type"],
        raised["message"],
        raised["frames"][0],
        raised["frames"][-1],
    )


def test_two_calls_of_a_text_share_nothing(sandbox: Sandbox) -> None:
    """Each evaluation runs the text anew."""
    text = "SEEN = []\n" + _body("SEEN.append(1)\nreturn len(SEEN)")
    assert [1, 1] == [_told(sandbox, text)["value"] for _ in range(2)]


def test_every_builtin_is_given_guarded_or_left_out_on_purpose() -> None:
    """The builtins that read, write, evaluate or look inside are not among those given."""
    given = text_rules.SAFE_BUILTINS | text_rules.GUARDED_BUILTINS
    dangerous = {"open", "eval", "exec", "compile", "input", "globals", "locals", "vars", "dir", "delattr",
                 "memoryview", "breakpoint", "help", "super", "exit", "quit"}  # fmt: skip
    assert set() == given & dangerous
