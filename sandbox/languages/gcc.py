"""What gcc executes and reads, and how a program that it made is run: for the languages that it compiles or links."""

from __future__ import annotations

from sandbox.languages.language import MIB, Stage, Tool, Walls

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
