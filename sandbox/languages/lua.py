"""Lua 5.4."""

from __future__ import annotations

from sandbox.languages.drivers.lua import LuaDriver
from sandbox.languages.language import Language, Stage, Tool, Walls
from sandbox.languages.notation import Notation

_WALLS = Walls(executable=("{lua}",))

LANGUAGE = Language(
    name="lua",
    source_name="main.lua",
    tools=(Tool("lua", ("lua5.4", "lua"), version=("-v",), install="apt-get install lua5.4"),),
    run=Stage(commands=(("{lua}", "{scratch}/main.lua"),), walls=_WALLS),
    check=Stage(commands=(("{lua}", "-e", "assert(loadfile('{scratch}/main.lua'))"),), walls=_WALLS),
    hello='print("hello")\n',
    memory_texts=("not enough memory",),
    driver=LuaDriver(),
    channel=(0, 2),
    notation=Notation(first_index=1),
)
