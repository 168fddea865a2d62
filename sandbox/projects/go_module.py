"""The tests of one package of a Go module, compiled with the packages that they need, and linked.

The go command is not asked: it would start processes, look for modules and keep a cache. What it decides is decided
here: which files belong to a package, in what order packages are compiled, and which tests a program runs.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from sandbox.languages.go import LANGUAGE, LIBRARY
from sandbox.languages.language import Program
from sandbox.projects.project import FOLDER, Project, ProjectError, placed

_ARCHIVES = "archives"
_MODULE = re.compile(r"^\s*module\s+\"?([^\s\"]+)", re.MULTILINE)
_VERSION = re.compile(r"^\s*go\s+(1\.\d+)", re.MULTILINE)
_PACKAGE = re.compile(r"^[ \t]*package[ \t]+(\w+)", re.MULTILINE)
_IMPORTS = re.compile(r"^[ \t]*import\b[ \t]*(?:\(([^)]*)\)|([^\n;]*))", re.MULTILINE)
_PATH = re.compile(r"[\"`]([^\"`\n]+)[\"`]")
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_CONSTRAINT = re.compile(r"^//go:build[ \t]+(.+)$", re.MULTILINE)
_TERM = re.compile(r"\s*(&&|\|\||!|\(|\)|[\w.]+)")
_SYSTEMS = frozenset(
    (
        *("aix", "android", "darwin", "dragonfly", "freebsd", "illumos", "ios", "js", "linux", "netbsd", "openbsd"),
        *("plan9", "solaris", "wasip1", "windows"),
    )
)
_PROCESSORS = frozenset(
    (
        *("386", "amd64", "arm", "arm64", "loong64", "mips", "mips64", "mips64le", "mipsle", "ppc64", "ppc64le"),
        *("riscv64", "s390x", "wasm"),
    )
)
"""What may stand behind an underscore in a file's name: https://pkg.go.dev/cmd/go#hdr-Build_constraints."""


class GoTest(NamedTuple):
    """A test function: the file that declares it, and its name; not ``TestMain``."""

    file: str
    name: str


class _Package(NamedTuple):
    """The files of a package, and the packages that they import."""

    name: str
    files: tuple[str, ...]
    imports: frozenset[str]


class GoModule:
    """The packages of a folder.

    Args:
        files: All files, by name.
        processor: The machine's, as Go names it.

    Raises:
        ProjectError: There is no ``go.mod``.
    """

    def __init__(self, files: Mapping[str, bytes], processor: str) -> None:
        self._files = files
        self._processor = processor
        settings = files.get("go.mod", b"").decode("utf-8", "replace")
        module, version = _MODULE.search(settings), _VERSION.search(settings)
        if module is None:
            raise ProjectError("the folder has no go.mod that names its module")
        self._path = module[1]
        self._version = f"go{version[1]}" if version else "go1.16"
        self._folders: dict[str, list[str]] = {}
        for name in files:
            if name.endswith(".go"):
                self._folders.setdefault(name.rpartition("/")[0], []).append(name)

    def project(self, folder: str, tests: Sequence[GoTest]) -> Project:
        """Return the program that runs the tests of a folder's package; raise ProjectError where it has no package."""
        path = self._path_of(folder)
        inner = self._package(folder, is_test=True, is_outer=False)
        outer = self._package(folder, is_test=True, is_outer=True)
        plain = self._package(folder, is_test=False, is_outer=False)
        tested = _Package(
            (plain or inner or _Package("main", (), frozenset())).name,
            (*(plain.files if plain else ()), *(inner.files if inner else ())),
            (plain.imports if plain else frozenset()) | (inner.imports if inner else frozenset()),
        )
        packages = {path: tested, **({f"{path}_test": outer} if outer else {})}
        order: list[str] = []
        for needed in list(packages):
            self._add(needed, packages, order, ())
        texts = {name: self._files[name] for package in order for name in packages[package].files}
        main = _main_source(folder, path, tests, texts, has_inner=bool(tested.files))
        sources = {name: content.decode("utf-8", "surrogateescape") for name, content in placed(texts).items()}
        folders = {f"{_ARCHIVES}/{package.rpartition('/')[0]}".rstrip("/") for package in order}
        placeholders = {f"{folder}/.keep": "" for folder in sorted(folders)}
        commands = [self._compiled(package, packages[package].files) for package in order]
        commands.append(self._compiled("main", ("main.go",), at=""))
        link = (
            "{link}",
            "-s",
            "-w",
            "-L",
            f"{{kit}}/{LIBRARY}",
            "-L",
            _ARCHIVES,
            "-o",
            "program",
            f"{_ARCHIVES}/main.a",
        )
        assert LANGUAGE.compile is not None
        stage = dataclasses.replace(LANGUAGE.compile, commands=(*commands, link))
        program = Program({"main.go": main, **sources, **placeholders}, compile=stage)
        return Project("go", program, placed(self._files), ("-test.v=test2json", "-test.paniconexit0"))

    def _compiled(self, package: str, files: Sequence[str], at: str = f"{FOLDER}/") -> tuple[str, ...]:
        options = ("-p", package, "-complete", f"-lang={self._version}", "-I", f"{{kit}}/{LIBRARY}", "-I", _ARCHIVES)
        return ("{compile}", *options, "-o", f"{_ARCHIVES}/{package}.a", *(at + name for name in files))

    def _add(self, path: str, packages: dict[str, _Package], order: list[str], above: tuple[str, ...]) -> None:
        """Append a package behind those that it imports."""
        if path in order:
            return
        if path in above:
            raise ProjectError(f"import cycle: {' imports '.join([*above, path])}")
        if path not in packages:
            folder = self._folder_of(path)
            package = self._package(folder, is_test=False, is_outer=False) if folder is not None else None
            if package is None:
                return  # the standard library's; what is neither the compiler says
            packages[path] = package
        for other in sorted(packages[path].imports):
            self._add(other, packages, order, (*above, path))
        order.append(path)

    def _path_of(self, folder: str) -> str:
        return f"{self._path}/{folder}" if folder else self._path

    def _folder_of(self, path: str) -> str | None:
        """Return the folder of an imported package; ``None`` for those of others."""
        if path == self._path:
            return ""
        if path.startswith(f"{self._path}/"):
            return path[len(self._path) + 1 :]
        return f"vendor/{path}" if f"vendor/{path}" in self._folders else None

    def _package(self, folder: str, *, is_test: bool, is_outer: bool) -> _Package | None:
        """Return the files of a folder that are tests or not, of its own package or of the one of outer tests."""
        files, names, imports = [], [], set()
        for name in sorted(self._folders.get(folder, ())):
            if name.endswith("_test.go") is not is_test or not is_built_go(name, self._files[name], self._processor):
                continue
            text = _COMMENT.sub(" ", self._files[name].decode("utf-8", "replace"))
            package = _PACKAGE.search(text)
            if package is None or (is_test and package[1].endswith("_test")) is not is_outer:
                continue
            files.append(name)
            names.append(package[1])
            imports |= {path for match in _IMPORTS.finditer(text) for path in _PATH.findall(match[1] or match[2] or "")}
        return _Package(names[0], tuple(files), frozenset(imports)) if files else None


def is_built_go(name: str, content: bytes, processor: str) -> bool:
    """Return whether the name of a file of Go and its constraint are for this machine."""
    stem = name.rpartition("/")[2].removesuffix(".go").removesuffix("_test")
    if stem.startswith(("_", ".")):
        return False
    parts = stem.split("_")[1:][-2:]
    if any(part in _SYSTEMS and part != "linux" for part in parts):
        return False
    if parts and parts[-1] in _PROCESSORS and parts[-1] != processor:
        return False
    constraint = _CONSTRAINT.search(_PACKAGE.split(content.decode("utf-8", "replace"), maxsplit=1)[0])
    tags = {"linux", "unix", "gc", processor, *(f"go1.{minor}" for minor in range(1, 100))}
    return constraint is None or _holds(constraint[1], tags)


def _holds(constraint: str, tags: set[str]) -> bool:
    """Return whether a build constraint holds; one that cannot be read does not."""
    tokens = [*_TERM.findall(constraint), ""]

    def alternatives() -> bool:
        value = conjunction()
        while tokens[0] == "||":
            tokens.pop(0)
            value = conjunction() or value
        return value

    def conjunction() -> bool:
        value = term()
        while tokens[0] == "&&":
            tokens.pop(0)
            value = term() and value
        return value

    def term() -> bool:
        word = tokens.pop(0) if len(tokens) > 1 else ""
        if word == "!":
            return not term()
        if word == "(":
            value = alternatives()
            if tokens[0] == ")":
                tokens.pop(0)
            return value
        return word in tags

    return alternatives()


def _main_source(
    folder: str, path: str, tests: Sequence[GoTest], texts: Mapping[str, bytes], *, has_inner: bool
) -> str:
    """Return the text of the program's main package, as the go command writes it for tests."""
    names = {test.file: _package_name(texts[test.file]) for test in tests if test.file in texts}
    tests = [test for test in tests if test.file in names]
    own_mains = {name: _has_main(content) for name, content in texts.items() if _is_of(name, folder)}
    main_of = next((name for name, has_main in own_mains.items() if has_main), None)
    uses = {"outer" if names[test.file].endswith("_test") else "inner" for test in tests}
    start = "os.Exit(m.Run())"
    if main_of is not None:
        side = "outer" if _package_name(texts[main_of]).endswith("_test") else "inner"
        uses.add(side)
        start = f"{side}.TestMain(m)"
    imports = [f'inner "{path}"'] if "inner" in uses else [f'_ "{path}"'] if has_inner else []
    imports += [f'outer "{path}_test"'] if "outer" in uses else []
    listed = "".join(
        f'{{"{test.name}", {"outer" if names[test.file].endswith("_test") else "inner"}.{test.name}}},\n'
        for test in tests
    )
    return (
        "package main\n"
        'import ("os"; "testing"; "testing/internal/testdeps"; ' + "; ".join(imports) + ")\n"
        f"var tests = []testing.InternalTest{{\n{listed}}}\n"
        "func main() {\n"
        f'\tif os.Chdir("{FOLDER}/{folder}") != nil {{ os.Exit(3) }}\n'
        "\tm := testing.MainStart(testdeps.TestDeps{}, tests, nil, nil, nil)\n"
        f"\t{start}\n"
        "}\n"
    )


def _is_of(name: str, folder: str) -> bool:
    return name.rpartition("/")[0] == folder and name.endswith("_test.go")


def _package_name(content: bytes) -> str:
    match = _PACKAGE.search(_COMMENT.sub(" ", content.decode("utf-8", "replace")))
    return match[1] if match else ""


def _has_main(content: bytes) -> bool:
    return re.search(rb"^func[ \t]+TestMain[ \t]*\(", content, re.MULTILINE) is not None
