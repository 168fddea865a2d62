"""Perl."""

from __future__ import annotations

from sandbox.languages.drivers.perl import PerlDriver
from sandbox.languages.language import Language, Stage, Tool, Walls
from sandbox.languages.notation import Notation

_OF_DEBIAN = tuple(f"/usr/lib/{machine}-linux-gnu/perl-base" for machine in ("x86_64", "aarch64"))
_WALLS = Walls(
    executable=("{perl}",),
    readable=("/usr/share/perl", "/usr/share/perl5", *_OF_DEBIAN, "/etc/perl"),
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
