"""Ways through the gate for texts: those that were open once, and a walk over all that a text can reach."""

from __future__ import annotations

import marshal
import subprocess
import sys
import textwrap

import gate_walk
import pytest

from sandbox import Sandbox
from sandbox.errors import RestrictedSourceError
from sandbox.restricted import check_source


def _dedented(text: str) -> str:
    return textwrap.dedent(text).strip("\n") + "\n"


def _printed(sandbox: Sandbox, text: str) -> str:
    """What ``f`` of a text prints."""
    added = marshal.dumps(compile("def _leave(value):\n    return {'value': value}\n", "added.py", "exec"))
    return sandbox.call(*check_source(_dedented(text)).call("f", added, {})).stdout


_ANNOTATED = """
        import functools
        class C(functools.cached_property):
            pass
        def f(x=None):
            hints = C(lambda self: {"x": "__import__('os').getpid()"})
            class A:
                a = hints
                def __call__(self): pass
            hints.attrname = "__annotations__"
            a = A()
            a.a
"""  # The instance `a` has annotations that are evaluated where they are read
_REAL_TYPE = """
        import functools
        class Spy:
            def dispatch(self, kind):
                self.kind = kind
        class D(functools.singledispatchmethod):
            pass
        def f(x=None):
            d, spy = D(len), Spy()
            d.dispatcher = spy
            class A:
                m = d
            try:
                A().m(int)
            except AttributeError:
"""  # `spy.kind` is the class of a class
WAYS_THROUGH = {
    "annotations set by a cached property, read by singledispatch": _ANNOTATED
    + """
            functools.singledispatch(len).register(a)
    """,
    "the same through the wrapper of a cache": _ANNOTATED
    + """
            functools.singledispatch(len).register(functools.lru_cache(a))
    """,
    "the same through a method's dispatcher": _ANNOTATED
    + """
            functools.singledispatchmethod(len).dispatcher.register(a)
    """,
    "the type of a class, handed to a dispatcher": _REAL_TYPE
    + """
                return str(spy.kind)
    """,
    "a class with annotations, made by that type": _REAL_TYPE
    + """
                made = spy.kind("B", (), {"__annotations__": {"x": "__import__('os').getpid()"}, "__call__": len})
                functools.singledispatch(len).register(made())
    """,
}


@pytest.mark.parametrize("text", WAYS_THROUGH.values(), ids=WAYS_THROUGH)
def test_ways_that_once_led_through_the_gate_are_closed(text: str) -> None:
    """Each ran what a text may not, and where the level is none nothing else had stood in its way."""
    with pytest.raises(RestrictedSourceError, match="singledispatch"):
        check_source(_dedented(text))


def _walk(plant: str) -> list[str]:
    """The findings of a walk over what a text can reach, in a process of its own."""
    command = [sys.executable, "-W", "ignore", gate_walk.__file__, plant]
    done = subprocess.run(command, capture_output=True, text=True, timeout=200, check=True)
    return done.stdout.splitlines()


def test_nothing_a_text_can_reach_leads_into_the_interpreter() -> None:
    """Reading, calling, deriving, entering, writing with spies: no type, frame, module or evaluation is handed out."""
    *findings, visited = _walk("")
    assert [] == findings
    assert int(visited) > 2_000


@pytest.mark.parametrize("plant", [plant for plant in gate_walk.PLANTS if plant])
def test_the_walk_finds_what_is_planted(plant: str) -> None:
    """What hands out a type, a traceback, a frame or any attribute is found where it is reachable."""
    assert [] != _walk(plant)[:-1]


def test_a_pattern_reads_of_its_own_classes_alone(sandbox: Sandbox) -> None:
    """Fields named as what leads inside are the class's own: no other object passes for one of it."""
    text = """
        from dataclasses import dataclass
        from abc import ABC

        @dataclass
        class A(ABC):
            obj: int = 7

        def f(x=None):
            for thing in (A(), AttributeError("a", obj=3)):
                match thing:
                    case A(value):
                        print(value)
    """
    assert "7\n" == _printed(sandbox, text)


def test_a_text_sees_no_traceback(sandbox: Sandbox) -> None:
    """The third argument of ``__exit__`` is None, and ``__getattr__`` is asked for no inner name."""
    text = """
        import copy

        class A:
            def __enter__(self):
                return self
            def __exit__(self, kind, error, trace):
                print(kind.__name__, str(error), trace)
                return True
            def __getattr__(self, name):
                print(name)
                raise AttributeError(name)

        def f(x=None):
            with copy.copy(A()):
                1 / 0
            hasattr(A(), "other")
    """
    assert "ZeroDivisionError division by zero None\nother\n" == _printed(sandbox, text)
