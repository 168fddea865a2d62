"""C, by gcc."""

from __future__ import annotations

from sandbox.languages import cpp
from sandbox.languages.c_values import CNotation
from sandbox.languages.drivers.c import CDriver
from sandbox.languages.gcc import COMPILER_WALLS, GCC, PROGRAM
from sandbox.languages.language import Language, MissingMain, Stage

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
    driver=CDriver(compile=cpp.WITH_C),
    driver_language=cpp.LANGUAGE,
    notation=CNotation(),
    hello='#include <stdio.h>\nint main(void) { puts("hello"); }\n',
    main=MissingMain("undefined reference to `main'", "\nint main(void) { return 0; }\n"),
)
