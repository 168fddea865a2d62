"""Perl."""

from __future__ import annotations

from sandbox.languages.drivers.perl import PerlDriver
from sandbox.languages.language import Language, Stage, Tool, Walls
from sandbox.languages.notation import Notation

_WALLS = Walls(
    executable=("{perl}",),
    readable=("/usr/share/perl", "/usr/share/perl5", "/usr/lib/x86_64-linux-gnu/perl-base", "/etc/perl"),
)

LANGUAGE = Language(
    name="perl",
    source_name="main.pl",
    tools=(Tool("perl", ("perl",), version=("-e", 'print "perl $^V"'), install="apt-get install perl"),),
    run=Stage(
        commands=(("{perl}", "{scratch}/main.pl"),),
        walls=_WALLS,
    ),
    check=Stage(commands=(("{perl}", "-c", "{scratch}/main.pl"),), walls=_WALLS),
    hello='print "hello\\n";\n',
    memory_texts=("Out of memory!",),
    driver=PerlDriver(),
    notation=Notation(scalars=True),
)
