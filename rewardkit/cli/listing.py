"""``rewardkit list``: the rewards at hand."""

from __future__ import annotations

import inspect
from typing import Annotated, Any

import typer

from rewardkit.compose import Composable, Composite
from rewardkit.decorator import Reward


def list_command(
    rewards: Annotated[
        str | None,
        typer.Argument(
            help="file.py, file.py:name, module or module:name, comma-separated, or a YAML file; "
            "without it, what installed packages offer.",
            metavar="REWARDS",
            show_default=False,
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON: a list of objects, one a reward.")] = False,
) -> None:
    """Show rewards: name, kind, the columns they need, and what they say of themselves.

    A column in brackets is optional: the reward has a default for it. Without REWARDS each has one line.

    Examples: [bold]rewardkit list[/], [bold]rewardkit list my_rewards.py --json[/]
    """
    described = _installed() if rewards is None else _named(rewards)
    if as_json:
        import json

        typer.echo(json.dumps(described, ensure_ascii=False, indent=2))
    elif described:
        _print_table(described) if rewards is not None else _print_lines(described)
    else:
        typer.echo("no installed package offers rewards; name a file: rewardkit list my_rewards.py")


def describe(reward: Composable) -> dict[str, Any]:
    """Gives a reward's name, kind, columns and first docstring line, ready for JSON."""
    if isinstance(reward, Composite):
        leaves = reward.leaves
        kind, doc = "composition", f"made of {', '.join(leaf.name for leaf in leaves)}"
    else:
        assert isinstance(reward, Reward)
        leaves = (reward,)
        kind = f"async {reward.spec.kind}" if reward.spec.is_async else str(reward.spec.kind)
        doc = (inspect.getdoc(reward.spec.function) or "").partition("\n")[0]
    required = dict.fromkeys(column for leaf in leaves for column in leaf.spec.required_columns)
    named = dict.fromkeys(p.name for leaf in leaves for p in leaf.spec.parameters if p.column)
    return {
        "name": reward.name,
        "kind": kind,
        "columns": list(required),
        "optional_columns": [column for column in named if column not in required],
        "doc": doc,
    }


def _named(references: str) -> list[dict[str, Any]]:
    from rewardkit.cli.rewards import listed

    return [describe(reward) for reward in listed(references)]


def _installed() -> list[dict[str, Any]]:
    """Describes what packages offer; one that does not load says so and does not hide the others."""
    from rewardkit.cli.rewards import quiet
    from rewardkit.registry import entry_points, resolve

    found = []
    for name, point in sorted(entry_points().items()):
        try:
            with quiet():
                described = describe(resolve(name))
        except Exception as fault:
            described = {"name": name, "kind": "unavailable", "columns": [], "optional_columns": [], "doc": str(fault)}
        found.append({**described, "name": name, "from": point.value})
    return found


def _print_lines(described: list[dict[str, Any]]) -> None:
    """Print a line a reward; the end of a long description is left out."""
    from rewardkit.cli.screen import screen

    console = screen()
    widest = max(len(one["name"]) for one in described)
    for one in described:
        words = f"({one['kind']}) {one['doc']}" if one["kind"] != "single" else one["doc"]
        console.print(f"{one['name']:{widest}}  {words}", markup=False, no_wrap=True, overflow="ellipsis")
    typer.echo("rewardkit list NAME shows a reward's columns and its whole description")


def _print_table(described: list[dict[str, Any]]) -> None:
    from rich.text import Text

    from rewardkit.cli.screen import screen, table

    shown = table("reward", "kind", "columns", "what it does")
    for one in described:
        columns = ", ".join([*one["columns"], *(f"[{column}]" for column in one["optional_columns"])])
        shown.add_row(Text(one["name"], style="bold"), one["kind"], Text(columns or "-"), Text(one["doc"]))
    screen().print(shown)
