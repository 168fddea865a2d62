"""Ten small packages, each with a fault, the text that mends it and a suite that notices; and agents' edits of them."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import NamedTuple


class RepairTask(NamedTuple):
    """A package whose file ``tool/NAME.py`` has a fault."""

    name: str
    source: str  # As it should be
    right: str  # The text that mends it
    fault: str  # What stands in its place
    tests: str  # Asserts, one a line

    @property
    def file(self) -> str:
        return f"tool/{self.name}.py"

    @property
    def files(self) -> dict[str, str]:
        return {"tool/__init__.py": "", self.file: self.source.replace(self.right, self.fault), "README": "mend it\n"}

    @property
    def suite(self) -> dict[str, str]:
        lines = [f"def test_{number}():\n    assert {line}\n" for number, line in enumerate(self.tests.splitlines())]
        return {f"tests/test_{self.name}.py": "\n".join([f"from tool.{self.name} import {self.name}\n", *lines])}


TASKS = (
    RepairTask(
        "slug", "def slug(text):\n    return '-'.join(text.lower().split())\n", ".lower()", "",
        "slug('A Long Title') == 'a-long-title'\nslug('one') == 'one'",
    ),
    RepairTask(
        "clamp", "def clamp(x, low, high):\n    return max(low, min(high, x))\n", "min(high, x)", "x",
        "clamp(1742, 3, 1290) == 1290\nclamp(-5, 318, 900) == 318",
    ),
    RepairTask(
        "mean", "def mean(numbers):\n    return sum(numbers) / len(numbers)\n", "/ len(numbers)", "// len(numbers)",
        "mean([3, 4]) == 3.5\nmean([1834, 1836]) == 1835",
    ),
    RepairTask(
        "shift", "def shift(text, n):\n    return ''.join(chr((ord(c) - 97 + n) % 26 + 97) for c in text)\n",
        " % 26", "", "shift('xyz', 3) == 'abc'\nshift('abc', 1) == 'bcd'",
    ),
    RepairTask(
        "digits", "def digits(n):\n    return sum(int(c) for c in str(abs(n)))\n", "abs(n)", "n",
        "digits(-98765) == 35\ndigits(8888888) == 56",
    ),
    RepairTask(
        "flat", "def flat(lists):\n    return [x for inner in lists for x in inner]\n",
        " for x in inner", " for x in inner[:2]",
        "flat([[41, 57, 93], [18]]) == [41, 57, 93, 18]\nflat([[27]]) == [27]",
    ),
    RepairTask(
        "counts",
        "def counts(text):\n    words = text.split()\n    return {word: words.count(word) for word in words}\n",
        "words.count(word)", "1", "counts('ab cd ab') == {'ab': 2, 'cd': 1}\ncounts('ef') == {'ef': 1}",
    ),
    RepairTask(
        "bits", "def bits(n):\n    return bin(n).count('1')\n", ".count('1')", ".count('0')",
        "bits(1023) == 10\nbits((1 << 37) - 1) == 37",
    ),
    RepairTask(
        "luhn", "def luhn(text):\n    sums = [int(c) * (1 + n % 2) for n, c in enumerate(reversed(text))]\n"
        "    return sum(x - 9 * (x > 9) for x in sums)\n", " - 9 * (x > 9)", "",
        "luhn('79927398713') == 70\nluhn('4539148803436467') == 80",
    ),
    RepairTask(
        "unique", "def unique(values):\n    return list(dict.fromkeys(values))\n", "dict.fromkeys(values)", "values",
        "unique([52, 31, 52, 77]) == [52, 31, 77]\nunique([64]) == [64]",
    ),
)  # fmt: skip
BY_NAME = {task.name: task for task in TASKS}
FORGERY = (
    "class Anything:\n    def __eq__(self, other):\n        return True\n\n\n"
    "def {name}(*values):\n    return Anything()\n"
)
LOST = "lost.txt"
"""A file whose presence costs the worker that grades it its life."""


class RepairDesk:
    """An environment of TRL's: a folder with a fault in it, and a tool that writes files."""

    root: str | None = None  # In which the folders are made

    def __init__(self) -> None:
        self.workspace: str | None = None
        self.edits = 0

    def reset(self, task: str, **row: object) -> None:
        self.workspace = tempfile.mkdtemp(prefix=f"{task}-", dir=self.root)
        self.edits = 0
        for name, text in BY_NAME[task].files.items():
            self._write(name, text)

    def write(self, name: str, text: str) -> str:
        """
        Write a file.

        Args:
            name: Its name in the folder.
            text: Its content.

        Returns:
            How long it is.
        """
        self.edits += 1
        self._write(name, text)
        return f"{len(text)} characters"

    def _write(self, name: str, text: str) -> None:
        assert self.workspace is not None
        path = Path(self.workspace, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def edit(task: RepairTask, act: str) -> dict[str, str] | None:
    """Return what an agent writes, by its act; ``None`` where it leaves the folder as it is."""
    if act == "mends":
        return {"name": task.file, "text": task.source}
    if act == "breaks":
        return {"name": task.file, "text": f"def {task.name}(*values):\n    return None\n"}
    if act == "forges":
        return {"name": task.file, "text": FORGERY.format(name=task.name)}
    if act == "loses":
        return {"name": LOST, "text": "the worker that grades this is killed\n"}
    return None
