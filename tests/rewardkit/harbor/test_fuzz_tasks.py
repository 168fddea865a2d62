"""Tasks whose files are broken at random: each is read, names what it needs, or is refused by name.

A failure names its seed: ``draw_files(seed)`` gives the files again.
"""

from __future__ import annotations

import random
import secrets
import shutil
import time
from pathlib import Path

import pytest
from harbor_folders import FILES, write_task

from rewardkit import from_harbor
from rewardkit.errors import SuiteError

FULL_S, SHORT_S = 300.0, 2.0
READ = (
    "task.toml",
    "instruction.md",
    "environment/Dockerfile",
    "tests/test.sh",
    "tests/checks.py",
    "tests/reward.toml",
)
NOISE = (
    *(
        '"',
        "'",
        "\\\n",
        "<<EOF\n",
        "$(",
        "`",
        "[",
        "]",
        "{",
        "}",
        "(",
        ")",
        ";;",
        "&&",
        "|",
        "\0",
        "\ud800",
        "# ",
        "\t",
    ),
    *("RUN ", "COPY ", "COPY [", "ADD --from=x ", "FROM ", "FROM --platform=x ", "WORKDIR ..\n", "ENV A", "\r\n"),
    *("pytest ", "uv run ", "--with", "cd ", "-r", "pip install ", "x" * 5000, "[[", "'''", "version = 1\n", "[a.b]\n"),
    *("= 3", "criteria.", "rewardkit /tests\n"),
)
CRITERIA = {
    "tests/test.sh": "rewardkit /tests\n",
    "tests/checks.py": "from rewardkit import criteria\ncriteria.file_exists('a')\n",
    "tests/reward.toml": '[[reward]]\nname = "reward"\n',
}


def draw_files(seed: int) -> dict[str, bytes]:
    """Return the files of a task, of which some are broken."""
    dice = random.Random(seed)
    files = {**FILES, **(CRITERIA if dice.random() < 0.3 else {})}
    for _ in range(dice.randint(1, 3)):
        name = dice.choice([name for name in READ if name in files])
        text = files[name]
        for _ in range(dice.randint(1, 4)):
            start = dice.randrange(len(text) + 1)
            text = text[:start] + dice.choice(NOISE) + text[start + dice.choice((0, 0, 0, 1, 5, 30)) :]
        files[name] = text
    return {name: text.encode("utf-8", "surrogatepass") for name, text in files.items()}


@pytest.mark.fuzz
@pytest.mark.filterwarnings("ignore::SyntaxWarning")  # of criteria that are nearly Python
def test_no_broken_task_raises_anything_else(tmp_path: Path, full: bool) -> None:
    """Five minutes in full; reading has both ends in either form."""
    seed = secrets.randbits(32) if full else 0
    read = refused = 0
    end = time.monotonic() + (FULL_S if full else SHORT_S)
    while time.monotonic() < end or not (read and refused):
        seed += 1
        folder = write_task(tmp_path / str(seed), draw_files(seed))
        try:
            from_harbor(folder)
            read += 1
        except SuiteError:
            refused += 1
        except Exception as fault:
            raise AssertionError(f"seed {seed}") from fault
        shutil.rmtree(folder)
