"""The command line, one command a module; :mod:`rewardkit.cli.program` puts them together."""

from __future__ import annotations


def main() -> None:
    """Runs the program on the process's arguments and ends the process."""
    from rewardkit.cli.program import app

    app(prog_name="rewardkit")
