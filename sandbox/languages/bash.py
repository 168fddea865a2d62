"""Bash."""

from __future__ import annotations

from sandbox.languages.language import Language, Stage, Tool, Walls

_WALLS = Walls(
    executable=("/usr/bin", "/bin"),  # a script calls programs: they are what it can do
    readable=("/usr/share/awk",),
    tasks=32,
    forks=True,
)

LANGUAGE = Language(
    name="bash",
    source_name="main.sh",
    tools=(Tool("bash", ("bash",), install="apt-get install bash"),),
    run=Stage(
        commands=(("{bash}", "--norc", "--noprofile", "{scratch}/main.sh"),),
        walls=_WALLS,
    ),
    check=Stage(commands=(("{bash}", "--norc", "--noprofile", "-n", "{scratch}/main.sh"),), walls=_WALLS),
    hello="echo hello\n",
    memory_texts=("cannot allocate", "Cannot allocate memory"),
)
