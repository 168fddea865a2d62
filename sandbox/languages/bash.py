"""Bash."""

from __future__ import annotations

from sandbox.languages.drivers.bash import BashDriver
from sandbox.languages.language import Language, Stage, Tool, Walls
from sandbox.languages.shell_values import WordNotation

_WALLS = Walls(
    executable=("/usr/bin", "/bin"),  # a script calls programs: they are what it can do
    readable=("/usr/share/awk", "/etc/alternatives"),  # awk and others are links through it
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
    driver=BashDriver(),
    notation=WordNotation(),
    memory_texts=("cannot allocate", "Cannot allocate memory"),
)
