"""The command line, one command a module; :mod:`rewardkit.cli.program` puts them together."""

from __future__ import annotations

__all__ = ["main"]


def main() -> None:
    """Run the program on the process's arguments and end the process."""
    from rewardkit.cli.program import app

    app(prog_name="rewardkit")
