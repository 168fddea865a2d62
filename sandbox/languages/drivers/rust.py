"""Calls of functions in Rust, by the types that they declare."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from sandbox.languages.drivers import runtime_text
from sandbox.languages.drivers.row_types import RowType, signatures_of
from sandbox.languages.drivers.scanning import blank, check_name, clean, closing, split_list
from sandbox.languages.language import CannotDriveError, Program, Suite

_LIFETIME = re.compile(r"'(?=[A-Za-z_]\w*\b(?!'))")
_FUNCTION = r"\bfn\s+({name})\s*(?:<[^(){{}};]*>)?\s*\("
_MAIN = re.compile(r"^([ \t]*(?:pub\s+)?fn\s+)main\b", re.MULTILINE)
_USE = re.compile(
    r"^[ \t]*(?:use\s+(?P<crate>\w+)(?P<rest>(?:::[^;]*)?);|extern\s+crate\s+(?P<extern>\w+)\s*;)", re.MULTILINE
)
_OWN_CRATES = frozenset({"std", "core", "alloc", "self", "super", "crate"})
_TEST = re.compile(r"#\[test\]\s*(?:#\[[^\]]*\]\s*)*(?:pub\s+)?fn\s+(\w+)")
_MODULE = re.compile(r"#\[cfg\(test\)\]\s*(?:pub\s+)?mod\s+(\w+)")


class RustDriver:
    """The driver of Rust."""

    def answerer(self, source: str, entry_point: str, calls: Sequence[Any] = ()) -> Program:
        """Return the completion, its ``main`` under another name, and a ``main`` that answers calls."""
        owner, _, name = check_name(entry_point).rpartition(".")
        source = _without_foreign_crates(clean(source))
        bare = _blank(source)
        if (
            not owner
            and re.search(r"\bimpl\s+Solution\b", bare)
            and not re.search(rf"^fn\s+{name}\b", bare, re.MULTILINE)
        ):
            owner = "Solution"
        lacks_owner = owner and not re.search(rf"\b(?:struct|enum|type)\s+{owner}\b", bare)
        count = len(_parameters(source, bare, name))
        path = f"super::{owner}::{name}" if owner else f"super::{name}"
        path += _type_arguments(source, bare, name, calls)
        source = _MAIN.sub(r"\1rewardkit_completion_main", source) + (f"\nstruct {owner};\n" if lacks_owner else "")
        return Program({"main.rs": f"{source}{runtime_text('rk.rs')}{_answering_main(path, count)}"})

    def function_name(self, suite: Suite) -> str:
        """Return the name of the function that a suite's declaration declares."""
        return _declared(clean(suite.declaration), suite.entry_point)[1]

    def tester(self, suite: Suite) -> Program:
        """Return the tests with a function that asks the answerer, in place of the declared one."""
        declaration = clean(suite.declaration)
        start, name = _declared(declaration, suite.entry_point)
        bare = _blank(declaration)
        body = bare.find("{", closing(bare, bare.index("(", start)))
        if body < 0:
            raise CannotDriveError("tests do not fit: the declaration has no function's body")
        stub = f"{declaration[start:body]} {_asking_body(_parameters(declaration[start:], bare[start:], name))}\n"
        helpers = _MAIN.sub(r"\1rewardkit_declared_main", declaration[:start])
        tests = re.sub(r"\A\s*\}", "", clean(suite.tests))
        own_main, calls = _MAIN.search(_blank(tests)), _calls_of_tests(tests)
        if own_main:
            calls.append("rewardkit_tests_main();")
        if not calls:
            raise CannotDriveError("tests do not fit: they have neither a test function nor a main")
        tests = re.sub(r"#\[cfg\(test\)\]|#\[test\]", "", _TEST.sub(lambda match: f"pub fn {match[1]}", tests))
        tests = _MAIN.sub(r"\1rewardkit_tests_main", tests)
        text = _without_foreign_crates(f"{clean(suite.setup)}{helpers}\n{stub}{tests}")
        main = f"fn main() {{ {' '.join(calls)} rewardkit_driver::finish_tests() }}\n"
        return Program({"main.rs": f"{text}{runtime_text('rk.rs')}{main}"})


def _blank(text: str) -> str:
    return blank(_LIFETIME.sub(" ", text))


def _parameters(text: str, bare: str, name: str) -> list[str]:
    """Return the parameters of the last function of a name."""
    matches = list(re.finditer(_FUNCTION.format(name=re.escape(name)), bare))
    end = closing(bare, matches[-1].end() - 1) if matches else 0
    return split_list(text[matches[-1].end() : end]) if end else []


def _type_arguments(source: str, bare: str, name: str, calls: Sequence[Any]) -> str:
    """Return the types of a row for those that a function leaves open, as ``::<i64>``; ``""`` where it leaves none."""
    heads = list(re.finditer(rf"\bfn\s+{re.escape(name)}\s*<", bare))
    if not heads or not calls:
        return ""
    opening = bare.find("(", heads[-1].end())
    listed = split_list(source[heads[-1].end() : bare.rfind(">", heads[-1].end(), opening)])
    names = [part.removeprefix("const ").split(":")[0].strip() for part in listed if not part.startswith("'")]
    signatures = signatures_of(calls)
    if not names or len(signatures) != 1:
        return ""
    types: dict[str, str] = {}
    for parameter, kind in zip(_parameters(source, bare, name), signatures[0], strict=False):
        _match_types(parameter.partition(":")[2], kind, types)
    return f"::<{', '.join(types.get(name, '_') for name in names)}>"


def _match_types(text: str, kind: RowType, types: dict[str, str]) -> None:
    """Note for each name in the text of a type which type of a row it stands for."""
    text = re.sub(r"^(?:&|\s|'\w+|\bmut\b|\bdyn\b)+", "", text).strip()
    if not text:
        return
    if text.startswith("["):
        parts = [text[1:].split(";")[0].rstrip("] ")]
    elif "<" in text:
        outer, _, rest = text.partition("<")
        parts = split_list(rest.rpartition(">")[0])
        if outer.strip().rpartition("::")[2] in ("Box", "Rc", "Arc", "Cow"):
            _match_types(parts[-1], kind, types)
            return
    else:
        types.setdefault(text, kind.text(_TYPE_TEXTS))
        return
    for part, inner in zip(parts, kind.parts, strict=False):
        _match_types(part, inner, types)


_TYPE_TEXTS = {
    "bool": "bool",
    "int": "i64",
    "long": "i64",
    "float": "f64",
    "str": "String",
    "any": "i64",
    "none": "Option<i64>",
    "optional": "Option<{0}>",
    "list": "Vec<{0}>",
    "set": "std::collections::HashSet<{0}>",
    "dict": "std::collections::HashMap<{0}, {1}>",
}


def _answering_main(path: str, count: int) -> str:
    reads = "".join(f"let mut a{index} = Held::read(arguments, {index})?; " for index in range(count))
    passes = ", ".join(f"Parameter::pass(&mut a{index})" for index in range(count))
    notes = "".join(f"a{index}.note({index}, &mut changed); " for index in range(count))
    check = f'if arguments.len() != {count} {{ return Err("the function takes another number of arguments".into()); }}'
    return f"""
mod rewardkit_main {{
    use super::rewardkit_driver::{{finish, result, serve, Held, Parameter}};
    pub fn run() {{
        serve(|arguments, tester| {{
            {check}
            {reads}
            let value = result({path}({passes}));
            #[allow(unused_mut)]
            let mut changed = Vec::new();
            {notes}
            Ok(finish(value, changed, tester))
        }})
    }}
}}
fn main() {{ rewardkit_main::run() }}
"""


def _declared(declaration: str, entry_point: str) -> tuple[int, str]:
    """Return start and name of the last function of the entry point's name, or else of the last function."""
    functions = list(re.finditer(_FUNCTION.format(name=r"\w+"), _blank(declaration)))
    named = [function for function in functions if function[1] == entry_point]
    if not functions:
        raise CannotDriveError(f"tests do not fit: the declaration does not declare {entry_point}")
    function = (named or functions)[-1]
    return function.start(), function[1]


def _asking_body(parameters: list[str]) -> str:
    """Return the body of a function that asks the answerer, and puts back what a call changes."""
    names, back = [], []
    for index, parameter in enumerate(parameters):
        match = re.match(r"(?:mut\s+)?(\w+)\s*:\s*(&\s*(?:'\w+\s+)?mut\s*(\[)?)?", parameter)
        if match is None:
            raise CannotDriveError(f"tests do not fit: a parameter that is no name: {parameter}")
        names.append(f"rewardkit_driver::argument(&{match[1]})")
        if match[2]:
            put = "write_back_slice" if match[3] else "write_back"
            back.append(f"rewardkit_driver::{put}(&changed, {index}, {match[1]});")
    return (
        f"{{ #[allow(unused)] let (result, changed) = rewardkit_driver::ask(&[{', '.join(names)}]);"
        f" {' '.join(back)} result }}"
    )


def _calls_of_tests(tests: str) -> list[str]:
    module = _MODULE.search(tests)
    path = f"{module[1]}::" if module else ""
    return [f"{path}{name}();" for name in _TEST.findall(tests)]


def _without_foreign_crates(text: str) -> str:
    """Return a text without imports of crates that it does not use: HumanEvalPack has the same for all its rows."""

    def keep(match: re.Match[str]) -> str:
        crate = match["crate"] or match["extern"]
        names = {crate, *re.findall(r"\w+", match["rest"] or "")}
        rest = _USE.sub("", bare)
        is_used = any(re.search(rf"\b{name}\b", rest) for name in names)
        return match[0] if crate in _OWN_CRATES or is_used else ""

    bare = _blank(text)
    return _USE.sub(keep, text)
