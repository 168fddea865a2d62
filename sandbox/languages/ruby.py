"""Ruby, without gems of others."""

from __future__ import annotations

from sandbox.languages.drivers.ruby import RubyDriver
from sandbox.languages.language import Language, Stage, Tool, Walls

_OPTIONS = ("--disable-gems",)

_WALLS = Walls(
    executable=("{ruby}",),
    readable=("/usr/lib/ruby", "/usr/share/rubygems-integration"),
    tasks=4,
)

LANGUAGE = Language(
    name="ruby",
    source_name="main.rb",
    tools=(Tool("ruby", ("ruby",), version=(*_OPTIONS, "--version"), install="apt-get install ruby"),),
    run=Stage(
        commands=(("{ruby}", *_OPTIONS, "{scratch}/main.rb"),),
        walls=_WALLS,
    ),
    check=Stage(commands=(("{ruby}", *_OPTIONS, "-c", "{scratch}/main.rb"),), walls=_WALLS),
    hello='puts "hello"\n',
    memory_texts=("failed to allocate memory (NoMemoryError)",),
    start_s=0.1,
    driver=RubyDriver(),
)
