"""``rewardkit list``: the rewards at hand."""

from __future__ import annotations

import inspect
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.text import Text

from rewardkit.cli.arguments import AsJson, argument
from rewardkit.cli.exits import finish
from rewardkit.cli.rewards import importing, is_config, listed, split
from rewardkit.cli.screen import screen, table
from rewardkit.cli.text import folded, unmarked
from rewardkit.declare.callables import doc_of
from rewardkit.declare.compose import Composable, Composite
from rewardkit.declare.decorator import Reward
from rewardkit.loading.registry import entry_points, resolve
from rewardkit.shown.text import plain


def list_command(
    rewards: Annotated[
        list[str] | None,
        argument("As in other commands, or one by one; without any, what installed packages offer.", "REWARDS"),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show rewards: name, kind, the columns they need, and what they say of themselves.

    A reward that is named is shown whole, with its score range, columns, settings and description; the rewards of a
    file or module in a table. A column in brackets is optional: the reward has a default for it. Without REWARDS
    it shows what installed packages offer.

    Examples:

    [bold]rewardkit list math_answer
    rewardkit list my_rewards.py --json[/]
    """
    parts = [part for one in rewards or () for part in ([one] if is_config(one) else split(one))]
    groups = [[describe(reward) for reward in listed(part)] for part in parts] if rewards else [_installed()]
    described = [one for group in groups for one in group]

    def show() -> None:
        if rewards:
            _print_groups(groups)
        elif described:
            _print_installed(described)
        else:
            typer.echo("no installed package offers rewards; name a file: rewardkit list my_rewards.py")

    finish({"rewards": described}, show, as_json=as_json)


def describe(reward: Composable) -> dict[str, Any]:
    """Return what a reward says of itself, ready for JSON; of a composition, what its parts need."""
    if isinstance(reward, Composite):
        leaves = reward.leaves
        kind, text = "composition", f"made of {', '.join(leaf.name for leaf in leaves)}"
        score_range = None
    else:
        assert isinstance(reward, Reward)
        leaves = (reward,)
        kind = f"async {reward.spec.kind}" if reward.spec.is_async else str(reward.spec.kind)
        text = doc_of(reward.spec.function) or ""
        score_range = reward.options.score_range
    required = dict.fromkeys(column for leaf in leaves for column in leaf.spec.required_columns)
    types = {p.name: p.coercer.expected for leaf in leaves for p in leaf.spec.parameters if p.coercer is not None}
    return {
        "name": reward.name,
        "kind": kind,
        "columns": list(required),
        "optional_columns": [column for column in types if column not in required],
        "doc": text.partition("\n")[0],
        "types": types,
        "score_range": None if score_range is None else list(score_range),
        "description": text,
        **_settings(reward),
    }


def _settings(reward: Composable) -> dict[str, Any]:
    """Return the settings of a reward that is made by a factory, its ``make``: how it is called, and what it says."""
    make = reward.make if isinstance(reward, Reward) else None
    if make is None:
        return {"settings": None, "settings_doc": None, "import": None}
    settings = {
        p.name: None if p.default is p.empty else repr(p.default) for p in inspect.signature(make).parameters.values()
    }
    said = (inspect.getdoc(make) or "").partition("\n")[2].strip()
    return {
        "settings": settings,
        "settings_doc": said,
        "import": f"from {make.__module__} import {make.__name__}",
    }


def _installed() -> list[dict[str, Any]]:
    """Return what packages offer; a reward that does not load is listed with its error."""
    found = []
    for name, point in sorted(entry_points().items()):
        try:
            with importing(name):
                described = describe(resolve(name))
        except Exception as fault:
            described = {"name": name, "kind": "unavailable", "columns": [], "optional_columns": [], "doc": str(fault)}
        found.append({**described, "name": name, "from": point.value})
    return found


def _print_installed(described: list[dict[str, Any]]) -> None:
    shown = table("reward", "what it does")
    for one in described:
        doc = unmarked(one["doc"])
        words = f"({one['kind']}) {doc}" if one["kind"] != "single" else doc
        shown.add_row(Text(one["name"], style="bold"), Text(words))
    screen().print(shown)
    typer.echo("\nrewardkit list NAME shows a reward's columns, settings and its whole description")


def _print_groups(groups: list[list[dict[str, Any]]]) -> None:
    """Print a reward that stands alone whole, and those of a file in a table."""
    console = screen()
    for place, group in enumerate(groups):
        if place:
            console.print()
        if len(group) == 1:
            _print_whole(group[0], console)
        else:
            _print_table(group, console)


def _print_table(described: list[dict[str, Any]], console: Console) -> None:
    shown = table("reward", "kind", "columns", "what it does")
    for one in described:
        columns = ", ".join([*one["columns"], *(f"[{column}]" for column in one["optional_columns"])])
        name = Text(folded(one["name"], 24), style="bold")
        shown.add_row(name, one["kind"], Text(columns or "-"), Text(unmarked(one["doc"])))
    console.print(shown)


def _print_whole(one: dict[str, Any], console: Console) -> None:
    """Print all that is known of a reward: kind, range, columns with types, settings, the whole docstring."""

    def say(label: str, words: str) -> None:
        console.print(Text.assemble((f"{label:10}", "dim"), plain(words)), soft_wrap=True)

    scores = "any number" if one["score_range"] is None else "{:g} to {:g}".format(*one["score_range"])
    console.print(Text(one["name"], style="bold"))
    say("kind", one["kind"])
    if one["kind"] != "composition":
        say("scores", scores)
    named = [f"{column}: {one['types'][column]}" for column in one["columns"]]
    named += [f"[{column}: {one['types'][column]}]" for column in one["optional_columns"]]
    say("columns", ", ".join(named) or "none")
    if one["settings"]:
        settings = (name if value is None else f"{name}={value}" for name, value in one["settings"].items())
        say("settings", ", ".join(settings))
    if one["description"]:
        console.print()
        console.print(Text(plain(unmarked(one["description"]))), soft_wrap=True)
    if one["settings"]:
        name, value = next(iter(one["settings"].items()))
        console.print()
        console.print(Text("Settings, given in a Python file:", style="bold"))
        console.print(Text(f"    {one['import']}\n    mine = {one['name']}({name}={value})"), soft_wrap=True)
    if one["settings_doc"]:
        console.print()
        console.print(Text(plain(unmarked(one["settings_doc"]))), soft_wrap=True)
