"""C++, by g++."""

from __future__ import annotations

from sandbox.languages.language import MIB, Language, Stage, Tool, Walls

COMPILER_FILES = ("/usr/bin", "/usr/lib/gcc", "/usr/libexec/gcc")
"""What gcc executes: itself, cc1plus, as, collect2 and ld."""
HEADERS = ("/usr/include", "/usr/local/include")

LANGUAGE = Language(
    name="cpp",
    source_name="main.cpp",
    tools=(Tool("gxx", ("g++",), install="apt-get install g++"),),
    compile=Stage(
        commands=(("{gxx}", "-O1", "-std=gnu++17", "-I", "{kit}", "-o", "program", "main.cpp"),),
        walls=Walls(
            executable=COMPILER_FILES,
            readable=(*HEADERS, "{kit}"),
            tasks=16,
            forks=True,
            data_share=0.0,
            most_memory=1536 * MIB,
            open_files=256,
        ),
        takes=("program",),
    ),
    run=Stage(commands=(("{artefact}/program",),), walls=Walls(executable=("{artefact}",))),
    hello='#include <cstdio>\nint main() { std::puts("hello"); }\n',
)
