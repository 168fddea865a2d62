"""The page's modules as one script, and its styles as one sheet: a page that is opened from a file may import nothing.

Each module becomes an async function that returns its exports and is called once, when it is first imported. What
stands in a module besides its imports and exports is left as it is.
"""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Iterator
from pathlib import Path

_NAMES = r"\{(?P<names>[^}]*)\}"
_FROM = rf"(?:{_NAMES}|(?P<default>\w+))\s*from\s*"
_IMPORT = re.compile(rf'^import\s+(?:{_FROM})?"(?P<path>[^"]+)";?$', re.MULTILINE)
_LATER = re.compile(r'(?<![\w$.])import\((?P<quote>["`])(?P<path>[^"`]+)(?P=quote)\)')
_PASSED_ON = re.compile(rf'^export\s+{_NAMES}\s*from\s*"(?P<path>[^"]+)";?$', re.MULTILINE)
_DEFAULT = re.compile(r"^export default (?=(?:async )?function (?P<name>\w+))", re.MULTILINE)
_DECLARED = re.compile(r"^export (?=(?:async )?(?:function|class|const) (?P<name>\w+))", re.MULTILINE)
_LISTED = re.compile(rf"(?:^|(?<=;))export\s*{_NAMES};?\s*(?://[^\n]*\s*)*\Z", re.MULTILINE)
_LEFT = re.compile(r"^\s*(?:import|export)\b(?! *[\w$]* *[(:=]).*$", re.MULTILINE)
_LEFT_IN_VENDORED = re.compile(r"^(?:import\b.*\bfrom\b|export\s*[{*]).*$", re.MULTILINE)
_CSS_IMPORT = re.compile(r'^@import url\("(?P<path>[^"]+)"\);$', re.MULTILINE)
_ENDS = re.compile(r"</script|<script|<!--", re.IGNORECASE)
"""What ends the script that it stands in, or hides its end; in strings and expressions ``\\x3C`` is the same letter."""

_LOADER = """\
const $started = {};
const $import = (name) => ($started[name] ??= $modules[name]());
const $from = (folder) => (path) => $import(new URL(path, `http://page/${folder}`).pathname.slice(1));
await $import(%s);
"""


def script(root: Path, first: str) -> str:
    """Return the module ``first`` of a folder and all modules beside and below it as the text of one module.

    No text of a module ends the script. Raises ValueError for an import or export in a form that is not known here.
    """
    names = sorted(path.relative_to(root).as_posix() for path in root.rglob("*.js"))
    bodies = [f"{json.dumps(name)}: async () => {{\n{_wrapped(name, _read(root / name))}\n}}," for name in names]
    text = "const $modules = {\n" + "\n".join(bodies) + "\n};\n" + _LOADER % json.dumps(first)
    return _ENDS.sub(lambda match: rf"\x3C{match[0][1:]}", text)


def style(root: Path, names: list[str]) -> str:
    """Return sheets of a folder as one, each with what it imports before it, once."""
    return "\n".join(_sheets(root, names, set()))


def _sheets(root: Path, names: list[str], seen: set[str]) -> Iterator[str]:
    for name in names:
        if name in seen:
            continue
        seen.add(name)
        text = _read(root / name)
        yield from _sheets(root, [_resolved(name, match["path"]) for match in _CSS_IMPORT.finditer(text)], seen)
        yield _CSS_IMPORT.sub("", text)


def _read(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def _resolved(name: str, path: str) -> str:
    return posixpath.normpath(posixpath.join(posixpath.dirname(name), path))


def _wrapped(name: str, text: str) -> str:
    """Return a module's text as the body of a function that returns its exports."""
    exports: dict[str, str] = {}

    def imported(match: re.Match[str]) -> str:
        source = f"await $import({json.dumps(_resolved(name, match['path']))})"
        if match.groupdict().get("default"):
            return f"const {{ default: {match['default']} }} = {source};"
        return f"const {{ {_pairs(match['names'], ': ')} }} = {source};" if match["names"] else f"{source};"

    def passed_on(match: re.Match[str]) -> str:
        names = [pair.split(" as ")[-1].strip() for pair in match["names"].split(",") if pair.strip()]
        exports.update({exported: exported for exported in names})
        return (
            f"const {{ {_pairs(match['names'], ': ')} }} = await $import({json.dumps(_resolved(name, match['path']))});"
        )

    def listed(match: re.Match[str]) -> str:
        for pair in filter(str.strip, match["names"].split(",")):
            own, _, exported = pair.strip().partition(" as ")
            exports[exported or own] = own
        return ""

    def default(match: re.Match[str]) -> str:
        exports["default"] = match["name"]
        return ""

    def declared(match: re.Match[str]) -> str:
        exports[match["name"]] = match["name"]
        return ""

    changes = {_PASSED_ON: passed_on, _IMPORT: imported, _DEFAULT: default, _DECLARED: declared, _LISTED: listed}
    is_vendored = name.startswith("vendor/")  # it exports a list at its end, and may have more in its comments
    for pattern, change in {_LISTED: listed}.items() if is_vendored else changes.items():
        text = pattern.sub(change, text)
    text = _LATER.sub(lambda match: f"$from({json.dumps(name)})({match['quote']}{match['path']}{match['quote']})", text)
    unknown = (_LEFT_IN_VENDORED if is_vendored else _LEFT).search(text)
    if unknown is not None:
        raise ValueError(f"{name}: {unknown[0].strip()[:80]!r}: this form of import or export is not known")
    return f"{text.rstrip()}\nreturn {{ {', '.join(f'{key}: {own}' for key, own in exports.items())} }};"


def _pairs(names: str, between: str) -> str:
    """Return the names of an import as those of a destructuring: ``a as b`` becomes ``a: b``."""
    return ", ".join(between.join(name.strip().split(" as ")) for name in names.split(",") if name.strip())
