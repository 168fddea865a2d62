"""C, by gcc."""

from __future__ import annotations

from sandbox.languages.language import MIB, Language, MissingMain, Stage, Tool, Walls
from sandbox.languages.notation import Notation

LINKER = ("/usr/bin/as", "/usr/bin/ld")
"""What gcc executes besides its own directories, by the names that it looks for on ``PATH``."""
GCC_FILES = ("/usr/lib/gcc", "/usr/libexec/gcc")
COMPILER_WALLS = Walls(
    executable=("{gcc}", *GCC_FILES, *LINKER),
    readable=("/usr/include", "/usr/local/include"),
    tasks=16,
    forks=True,
    data_share=0.0,
    most_memory=1536 * MIB,
    open_files=256,
)
PROGRAM = Stage(commands=(("{artefact}/program",),), walls=Walls(executable=("{artefact}",), tasks=8))
"""A program that runs by itself."""
GCC = Tool("gcc", ("gcc",), install="apt-get install gcc libc6-dev")

LANGUAGE = Language(
    name="c",
    source_name="main.c",
    tools=(GCC,),
    compile=Stage(
        commands=(("{gcc}", "-O1", "-std=gnu17", "-o", "program", "main.c", "-lm"),),
        walls=COMPILER_WALLS,
        takes=("program",),
    ),
    run=PROGRAM,
    notation=Notation(letters=True, numeric_truth=True),
    hello='#include <stdio.h>\nint main(void) { puts("hello"); }\n',
    main=MissingMain("undefined reference to `main'", "\nint main(void) { return 0; }\n"),
)
