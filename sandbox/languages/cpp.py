"""C++, by g++."""

from __future__ import annotations

import dataclasses

from sandbox.languages.drivers.cpp import CppDriver
from sandbox.languages.gcc import COMPILER_WALLS, GCC_FILES, LINKER, PROGRAM
from sandbox.languages.language import Kit, Language, MissingMain, Stage, Tool

OPTIONS = ("-O1", "-std=gnu++17")
"""Options of every compilation: a precompiled header is used only where they are those that it was made with."""
WALLS = dataclasses.replace(COMPILER_WALLS, executable=("{gxx}", *GCC_FILES, *LINKER))
_ALL_HEADERS = "bits/stdc++.h"  # the header of all headers, with which programs of contests begin
_PRECOMPILED = f"{_ALL_HEADERS}.gch"

_READING = dataclasses.replace(WALLS, readable=(*WALLS.readable, "{kit}"))
WITH_C = Stage(
    commands=(
        ("{gxx}", "-x", "c", "-O1", "-std=gnu17", "-w", "-c", "-o", "completion.o", "completion.c"),
        ("{gxx}", *OPTIONS, "-I", "{kit}", "-o", "program", "main.cpp", "completion.o", "-lm"),
    ),
    walls=_READING,
    takes=("program",),
)
"""Compiles a program whose main file calls a completion in C."""

LANGUAGE = Language(
    name="cpp",
    source_name="main.cpp",
    tools=(Tool("gxx", ("g++",), install="apt-get install g++"),),
    compile=Stage(
        commands=(("{gxx}", *OPTIONS, "-I", "{kit}", "-o", "program", "main.cpp"),),
        walls=_READING,
        takes=("program",),
    ),
    run=PROGRAM,
    hello='#include <cstdio>\nint main() { std::puts("hello"); }\n',
    memory_texts=("std::bad_alloc",),
    kit=Kit(
        files={"bits/all.hpp": f"#include <{_ALL_HEADERS}>\n"},
        stage=Stage(
            commands=(("{gxx}", *OPTIONS, "-x", "c++-header", "-o", _PRECOMPILED, "bits/all.hpp"),),
            walls=WALLS,
            takes=(_PRECOMPILED,),
        ),
    ),
    driver=CppDriver(),
    main=MissingMain("undefined reference to `main'", "\nint main() { return 0; }\n"),
)
