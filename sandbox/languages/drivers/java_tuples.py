"""The classes of ``org.javatuples`` that data sets use, for Java's texts that import them: MultiPL-E's all do."""

from __future__ import annotations

import re

from sandbox.languages.drivers.scanning import blank, outer_types

_SIZES = {"Unit": 1, "Pair": 2, "Triplet": 3, "Quartet": 4, "Quintet": 5, "Sextet": 6, "Septet": 7, "Octet": 8}
_IMPORT = re.compile(r"^[ \t]*import\s+org\.javatuples\.(?:\*|\w+)\s*;", re.MULTILINE)
_BASE = """
abstract class RewardkitTuple implements Iterable<java.lang.Object>, java.io.Serializable {
    final java.util.List<java.lang.Object> values;
    RewardkitTuple(java.lang.Object... values) { this.values = java.util.Arrays.asList(values); }
    public java.util.List<java.lang.Object> toList() { return new java.util.ArrayList<>(values); }
    public java.lang.Object[] toArray() { return values.toArray(); }
    public int getSize() { return values.size(); }
    public java.lang.Object getValue(int index) { return values.get(index); }
    public boolean contains(java.lang.Object value) { return values.contains(value); }
    public int indexOf(java.lang.Object value) { return values.indexOf(value); }
    public java.util.Iterator<java.lang.Object> iterator() { return toList().iterator(); }
    public java.lang.String toString() { return values.toString(); }
    public int hashCode() { return values.hashCode(); }
    public boolean equals(java.lang.Object other) {
        return other != null && getClass() == other.getClass() && values.equals(((RewardkitTuple) other).values);
    }
}
"""


def with_tuples(text: str) -> str:
    """Return a text without imports of ``org.javatuples``, and with the classes of them that it names."""
    bare = blank(text)
    imports = list(_IMPORT.finditer(bare))
    if not imports:
        return text
    own = set(outer_types(text))
    names = [name for name in _SIZES if name not in own and re.search(rf"(?<!\.)\b{name}\b", _IMPORT.sub("", bare))]
    for match in reversed(imports):
        text = text[: match.start()] + " " * len(match[0]) + text[match.end() :]
    return text + (_BASE + "".join(_class_text(name, _SIZES[name]) for name in names) if names else "")


def _class_text(name: str, size: int) -> str:
    """Return the class of the tuples of a size."""
    types = ", ".join(f"A{index}" for index in range(size))
    parameters = ", ".join(f"A{index} a{index}" for index in range(size))
    values = [f"a{index}" for index in range(size)]
    methods = []
    for index in range(size):
        changed_types = ", ".join("X" if other == index else f"A{other}" for other in range(size))
        changed = ", ".join("x" if other == index else f"getValue{other}()" for other in range(size))
        methods.append(
            f'    @SuppressWarnings("unchecked") public A{index} getValue{index}() '
            f"{{ return (A{index}) values.get({index}); }}\n"
            f"    public <X> {name}<{changed_types}> setAt{index}(X x) {{ return new {name}<>({changed}); }}\n"
        )
    return (
        f"final class {name}<{types}> extends RewardkitTuple {{\n"
        f"    public {name}({parameters}) {{ super({', '.join(values)}); }}\n"
        f"    public static <{types}> {name}<{types}> with({parameters})"
        f" {{ return new {name}<>({', '.join(values)}); }}\n"
        f"{''.join(methods)}}}\n"
    )
