"""Evaluations that leave what is slow, odd or forged to read, each by its name.

Every one is a completion, as text. Those that answer ``f(1)`` write to the results what no honest answer looks like.
"""

from __future__ import annotations

from collections.abc import Callable

from sandbox import (
    CheckReport,
    FunctionCheck,
    Limits,
    ProgramCheck,
    Sandbox,
    check_asserts,
    check_functions,
    check_programs,
)

WRITES = """
import os
def say(text, descriptor=4):
    data = text.encode()
    while data:
        data = data[os.write(descriptor, data):]
    os._exit(0)
PRIME = (1 << 61) - 1
def alike(count, start=1):
    return [{"int": hex(start + n * PRIME)} for n in range(count)]
import json
def answer(text):
    say('{"call":0,"value":' + text + "}\\n")
def value(tree):
    answer(json.dumps(tree, separators=(",", ":")))
"""

VALUES = {
    "a flat list of numbers": "value([0] * 1_400_000)",
    "a list of empty lists": "value([[]] * 1_000_000)",
    "empty tuples": "value([{'tuple': []}] * 230_000)",
    "empty objects, a line each": "say('{}\\n' * 1_000_000)",
    "empty lines": "say('\\n' * 3_000_000)",
    "lines that are no JSON": "say('x\\n' * 1_500_000)",
    "answers to calls that nobody made": "say('{\"call\":9}\\n' * 280_000)",
    "one answer again and again": "say('{\"call\":0}\\n' * 280_000)",
    "opened and never closed": "say('[' * 3_000_000)",
    "quotation marks": "say('\"' * 3_000_000)",
    "a float of many digits": "answer('0.' + '1' * 3_000_000)",
    "floats of many digits": "answer('[' + ','.join(['0.' + '1' * 700] * 4_000) + ']')",
    "whole numbers of many digits": "answer('[' + ','.join(['9' * 4_000] * 700) + ']')",
    "hexadecimal numbers": "value([{'int': '0x' + 'f' * 3_000_000}])",
    "escapes": "say('{\"call\":0,\"value\":\"' + '\\\\u0041' * 500_000 + '\"}\\n')",
    "a text of commas": "value(',' * 3_000_000)",
    "numbers with one hash": "value({'set': alike(200)})",
    "a set of sets of alike members": "value({'set': [{'frozenset': alike(100, n)} for n in range(1, 300)]})",
    "sets of sets with one hash": (
        "value({'set': [{'frozenset': [{'tuple': [a, b]} for a in alike(40)]} for b in alike(199)]})"
    ),
    "tuples of tuples with one hash": (
        "value({'set': [{'tuple': [{'tuple': [{'frozenset': alike(100)}, a]}, b]}"
        " for a in alike(10) for b in alike(19)]})"
    ),
    "sets with one hash in sets with one hash": (
        "value({'set': [{'frozenset': [{'frozenset': [a, b, c]} for a in alike(13, 5) for b in alike(13, 9)]}"
        " for c in alike(110)]})"
    ),
    "keys with one hash": "value({'dict': [[{'tuple': [a, b]}, 0] for a in alike(14) for b in alike(14)]})",
    "keys in one row of places": (
        "chain, at = [], 0\n"
        "for _ in range(40_000):\n    chain.append(at); at = (5 * at + 1) % (1 << 17)\n"
        "value({'dict': [[one, 0] for one in chain] + [[one << 17, 0] for one in range(1, 45_000)]})"
    ),
    "members in one row of places": (
        "chain, at = [], 0\n"
        "for _ in range(60_000):\n    chain.append(at); at = (5 * at + 1) % (1 << 18)\n"
        "value({'set': chain + [one << 18 for one in range(1, 90_000)]})"
    ),
    "nested a hundred deep": "value([__import__('functools').reduce(lambda v, _: [v], range(98), 0)] * 15_000)",
    "sets nested a hundred deep": (
        "value([__import__('functools').reduce(lambda v, _: {'frozenset': [v]}, range(98), n) for n in range(1_500)])"
    ),
    "sets of sets of sets that are alike": (
        "value({'set': [{'frozenset': [{'frozenset': [c, *alike(30, 5)]} for c in alike(30, 9)] + [d]}"
        " for d in alike(40)]})"
    ),
    "a text in a hundred sets": (
        "value(__import__('functools').reduce(lambda v, _: {'frozenset': [v]}, range(98), chr(0x1F600) * 250_000))"
    ),
}
"""What a completion does in place of answering ``f(1)``."""

RAISES = """
import os
os.write(4, b'{{"ran":0,"out":0,"err":0,"code":0,"raised":{{"type":' + {} + b'}}}}\\n')
os._exit(1)
"""
OUTPUTS = {
    "bytes that are no UTF-8": "import os; os.write(1, b'\\xff' * (1 << 20))",
    "bytes that begin letters": "import os; os.write(1, b'\\xf0\\x9f\\x98' * 340_000)",
    "empty lines": "import os; os.write(1, b'\\n' * ((1 << 20) - 9) + b'x')",
    "lines of white space": "import os; os.write(1, b' \\n' * ((1 << 19) - 9) + b'x')",
    "runs of its own that overlap": (
        "import json, os\n"
        "os.write(1, b'\\xff' * (1 << 20))\n"
        "lines = ''.join(json.dumps({'ran': n, 'out': 1 << 40, 'err': 0, 'code': 0, 'raised': None}) + '\\n'\n"
        "    + json.dumps({'run': n + 1, 'out': 0, 'err': 0}) + '\\n' for n in range(1000))\n"
        "os.write(4, lines.encode())\nos._exit(0)"
    ),
    "an error whose words are a million lists": RAISES.format("b'[' + b'[],' * 900_000 + b'0]'"),
    "an error whose words are nested": RAISES.format("b'[' * 900 + b']' * 900"),
}
"""Programs."""

PEERS = {
    "a frame of empty lists": "data = b'[' + b'[],' * 340_000 + b'0]'",
    "names without end": 'data = b\'{"loaded":true,"names":[\' + b\'"a",\' * 260_000 + b\'"f"]}\'',
}
"""What a completion sends to the judge before any call."""


RUNS = 1000
"""Inputs of the programs that tell of runs of their own."""


def value_source(act: str) -> str:
    """Give the completion that does one of :data:`VALUES`."""
    return f"{WRITES}\ndef f(x):\n" + "".join(f"    {line}\n" for line in act.splitlines())


def peer_source(data: str) -> str:
    """Give the completion that sends one of :data:`PEERS`."""
    return (
        f"import os\n{data}\ndata = len(data).to_bytes(4, 'little') + data\n"
        "while data:\n    data = data[os.write(5, data):]\nimport time\ntime.sleep(0.1)\n"
    )


def evaluations(sandbox: Sandbox, limits: Limits) -> dict[str, Callable[[], CheckReport]]:
    """Give each hostile evaluation, ready to be made; none may be passed."""
    acts: dict[str, Callable[[], CheckReport]] = {}

    def function(source: str, check: FunctionCheck) -> Callable[[], CheckReport]:
        return lambda: check_functions(sandbox, source, "f", [check], limits=limits)

    def program(source: str, count: int) -> Callable[[], CheckReport]:
        return lambda: check_programs(sandbox, source, [ProgramCheck("", "y")] * count, limits=limits)

    def asserts(source: str) -> Callable[[], CheckReport]:
        return lambda: check_asserts(sandbox, source, "assert f(1) == 1", limits=limits)

    for name, act in VALUES.items():
        acts[f"value: {name}"] = function(value_source(act), FunctionCheck([1], "right"))
        acts[f"value in a list: {name}"] = function(value_source(act), FunctionCheck([1], ["right"], rel_tol=0.1))
    for name, source in OUTPUTS.items():
        acts[f"output: {name}"] = program(source, RUNS if "range(1000)" in source else 1)
    for name, data in PEERS.items():
        acts[f"socket: {name}"] = asserts(peer_source(data))
    return acts
