"""Names that tests leave unbound although they are not of the code under test: modules and what they usually import.

They are the tests' own, so that no completion can replace what judges it: libraries, their functions, and functions
that by their names say whether something is right. One that is nowhere to be had is the tests' fault. Which names these
are is decided from the text of the tests alone.
"""

from __future__ import annotations

import _ast
import importlib
import importlib.util
import re
import sys
from typing import Any

from sandbox.inside.test_text import walk

_ALIASES = {"np": "numpy", "pd": "pandas", "dt": "datetime", "mock": "unittest.mock", "plt": "matplotlib.pyplot"}
_LIBRARIES = (  # names of modules that are not the standard library's
    "numpy", "pandas", "matplotlib", "scipy", "sympy", "torch", "tensorflow", "tf", "sklearn", "networkx", "nx",
    "pytest", "hypothesis", "seaborn", "sns", "bs4", "requests", "yaml", "dateutil", "PIL", "cv2", "jax", "jnp",
)  # fmt: skip
_MEMBERS: dict[str, str] = {
    name: module
    for module, names in {
        "math": "isclose trunc sqrt ceil floor pi inf nan isnan isinf isfinite factorial gcd lcm comb perm prod hypot "
        "log log2 log10 exp sin cos tan radians degrees fabs fsum e tau",
        "collections": "Counter OrderedDict defaultdict deque namedtuple ChainMap",
        "itertools": "permutations combinations product chain accumulate groupby count cycle islice zip_longest repeat "
        "combinations_with_replacement",
        "functools": "reduce partial lru_cache cmp_to_key wraps",
        "fractions": "Fraction", "decimal": "Decimal", "copy": "deepcopy", "io": "StringIO BytesIO", "pathlib": "Path",
        "dataclasses": "dataclass field asdict", "enum": "Enum IntEnum", "random": "randint choice shuffle",
        "datetime": "timedelta date timezone", "string": "ascii_lowercase ascii_uppercase ascii_letters digits",
        "contextlib": "redirect_stdout redirect_stderr suppress contextmanager",
        "operator": "itemgetter attrgetter", "statistics": "mean median mode stdev",
        "unittest": "TestCase", "unittest.mock": "patch MagicMock Mock", "time": "perf_counter",
        "typing": "Any Callable Dict Iterable Iterator List Optional Sequence Set Tuple Type Union",
        "abc": "ABC abstractmethod",
        "numpy.testing": "assert_allclose assert_array_equal assert_almost_equal assert_equal",
        "numpy": "allclose array_equal", "pytest": "approx raises",
    }.items()
    for name in names.split()
}  # fmt: skip
_JUDGING_MEMBERS = dict.fromkeys(("eq", "ne", "is_", "is_not", "truth", "not_"), "operator")  # where they judge a call
_JUDGING = re.compile(  # names of functions that say whether what they are called with is right
    r"assert\w*|expect(?:_\w*)?|same|equals?|(?:float|array)_?eq(?:uals?)?"
    r"|(?:(?:is|are|check|verify|float)_?)?(?:almost|nearly|approx(?:imately)?|roughly)(?:_?(?:equals?|eq|same))?"
    r"|(?:is|are|all|np|float|nearly)_?close(?:_to|_enough)?|close(?:_to|_enough)"
    r"|(?:is|are|check|verify)_?(?:equal|same|correct)",
    re.IGNORECASE,
)
_HOMONYMS = ("datetime", "copy", "pprint", "random", "time")  # modules with a member of the same name


def usual_names(tree: _ast.Module, unbound: list[str], *, with_entry: bool) -> dict[str, Any]:
    """Return what the tests' side binds to some of the names that test text leaves unbound.

    A name is a module's where the text takes attributes of it and never calls it. Without an entry point the code under
    test is one of the names: where all the others would be usual ones too, those that are called within the arguments
    of another stay the code's, or all of them. A name that says that it judges is the tests' where it does.

    Raises:
        ImportError: A library that the tests use is not there.
        NameError: What judges is nobody's.
    """
    if not unbound:
        return {}
    called, bases = _uses(tree)
    modules = {name for name in unbound if name in bases and name not in called and _is_module(name)}
    members = [name for name in unbound if name not in modules and (name in _MEMBERS or name in _HOMONYMS)]
    rest = [name for name in unbound if name not in modules and name not in members and name != "*"]
    outer = _outer_calls(tree, [*members, *rest])
    if not with_entry and not rest:
        members = [name for name in members if name in outer]
    bound = {name: importlib.import_module(_ALIASES.get(name, name)) for name in modules}
    for name in members:
        module = _MEMBERS.get(name, name)
        bound[name] = getattr(importlib.import_module(module), name)
    for name in rest if with_entry else outer.intersection(rest):
        if name in _JUDGING_MEMBERS:
            bound[name] = getattr(importlib.import_module(_JUDGING_MEMBERS[name]), name)
        elif _JUDGING.fullmatch(name) and not with_entry:
            raise NameError(f"the tests judge with {name}, which nothing on their side defines")
    for name in _HOMONYMS:
        if name in modules and any(not hasattr(bound[name], attribute) for attribute in bases[name]):
            bound[name] = getattr(bound[name], name)
    return bound


def _is_module(name: str) -> bool:
    return name in _ALIASES or name in _LIBRARIES or name in sys.stdlib_module_names


def _uses(tree: _ast.Module) -> tuple[set[str], dict[str, set[str]]]:
    """Return the names that are called, and those whose attributes are taken with these attributes."""
    called: set[str] = set()
    bases: dict[str, set[str]] = {}
    for node in walk(tree):
        if isinstance(node, _ast.Call) and isinstance(node.func, _ast.Name):
            called.add(node.func.id)
        elif isinstance(node, _ast.Attribute) and isinstance(node.value, _ast.Name):
            bases.setdefault(node.value.id, set()).add(node.attr)
    return called, bases


def _outer_calls(tree: _ast.Module, names: list[str]) -> set[str]:
    """Return the names in whose calls' arguments another of the names is called."""
    outer: set[str] = set()
    for node in walk(tree):
        if isinstance(node, _ast.Call) and isinstance(node.func, _ast.Name) and node.func.id in names:
            inner = {getattr(part.func, "id", "") for value in (*node.args, *node.keywords) for part in walk(value)
                     if isinstance(part, _ast.Call)}  # fmt: skip
            if inner & (set(names) - {node.func.id}):
                outer.add(node.func.id)
    return outer
