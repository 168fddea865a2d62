"""``rewardkit list``: the rewards at hand."""

from __future__ import annotations

import inspect
import re
from typing import Annotated, Any

import typer
from rich.text import Text

from rewardkit.cli.arguments import AsJson, argument
from rewardkit.cli.exits import finish
from rewardkit.cli.render import NONE, Screen, fold, screen, table
from rewardkit.cli.rewards import importing, is_config, list_rewards, split
from rewardkit.declare.callables import doc_of
from rewardkit.declare.compose import Composable, Composite
from rewardkit.declare.decorator import Reward
from rewardkit.loading.registry import entry_points, resolve
from rewardkit.shown.text import plain, shorten

_ROLE = re.compile(r":[a-z]+(?::[a-z]+)*:`~?([^`]*)`")


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
    parts = [part for text in rewards or () for part in ([text] if is_config(text) else split(text))]
    groups = [[describe(reward) for reward in list_rewards(part)] for part in parts] if rewards else [_installed()]
    descriptions = [reward for group in groups for reward in group]

    def show() -> None:
        if rewards:
            _print_groups(groups)
        elif descriptions:
            _print_installed(descriptions)
        else:
            typer.echo("no installed package offers rewards; name a file: rewardkit list my_rewards.py")

    finish({"rewards": descriptions}, show, as_json=as_json)


def describe(reward: Composable) -> dict[str, Any]:
    """Return the description of a reward as JSON data; for a composition, the columns are those of its parts."""
    if isinstance(reward, Composite):
        leaves = reward.leaves
        kind, text = "composition", f"made of {', '.join(leaf.name for leaf in leaves)}"
    else:
        assert isinstance(reward, Reward)
        leaves = (reward,)
        kind = f"async {reward.spec.kind}" if reward.spec.is_async else str(reward.spec.kind)
        text = _text_of(reward)
    required = dict.fromkeys(column for leaf in leaves for column in leaf.spec.required_columns)
    types = {p.name: p.coercer.expected for leaf in leaves for p in leaf.spec.parameters if p.coercer is not None}
    return {
        "name": reward.name,
        "kind": kind,
        "columns": list(required),
        "optional_columns": [column for column in types if column not in required],
        "doc": text.partition("\n")[0],
        "types": types,
        "score_range": None if reward.score_range is None else list(reward.score_range),
        "description": text,
        **_settings(reward),
    }


def _text_of(reward: Reward[..., Any]) -> str:
    """Return what a reward says of itself, with the settings that were changed and the rewards that it asks."""
    if reward.changed_settings:
        changed = ", ".join(f"{name}={shorten(value)}" for name, value in reward.changed_settings.items())
        return f"With {changed}, and otherwise as by default: {doc_of(reward.spec.function) or ''}"
    has_own_text = "__doc__" in getattr(reward.spec.function, "__dict__", {})  # a step reward's tells of its inner one
    if has_own_text or not reward.inner:
        return doc_of(reward.spec.function) or ""
    text = (inspect.getdoc(type(reward)) or "").partition("\n")[0]
    return f"{text} It asks {', '.join(inner.name for inner in reward.inner)}."


def _settings(reward: Composable) -> dict[str, Any]:
    """Return the settings, their documentation and the import of a reward's factory; ``None`` for each without one."""
    make = reward.make if isinstance(reward, Reward) else None
    if make is None:
        return {"settings": None, "settings_doc": None, "import": None}
    parameters = inspect.signature(make).parameters.values()
    settings = {p.name: None if p.default is p.empty else repr(p.default) for p in parameters}
    return {
        "settings": settings,
        "settings_doc": (inspect.getdoc(make) or "").partition("\n")[2].strip(),
        "import": f"from {make.__module__} import {make.__name__}",
    }


def _installed() -> list[dict[str, Any]]:
    """Return descriptions of the rewards of installed packages; one that does not load has its error as its text."""
    rows = []
    for name, point in sorted(entry_points().items()):
        try:
            with importing(name):
                row = describe(resolve(name))
        except Exception as error:  # a package of others: one that does not load hides no other
            row = {"name": name, "kind": "unavailable", "columns": [], "optional_columns": [], "doc": str(error)}
        rows.append({**row, "name": name, "from": point.value})
    return rows


def _unmarked(text: str) -> str:
    """Return a docstring without the marks of reStructuredText: no double backquotes, no roles."""
    return _ROLE.sub(r"\1", text).replace("``", "")


def _print_installed(rewards: list[dict[str, Any]]) -> None:
    rows = []
    for reward in rewards:
        kind = f"({reward['kind']}) " if reward["kind"] != "single" else ""
        rows.append((Text(reward["name"], style="bold"), Text(kind + _unmarked(reward["doc"]))))
    screen().print(table("reward", "what it does", rows=rows))
    typer.echo("\nrewardkit list NAME shows a reward's columns, settings and its whole description")


def _print_groups(groups: list[list[dict[str, Any]]]) -> None:
    """Print a reward that stands alone whole, and those of a file in a table."""
    console = screen()
    for index, group in enumerate(groups):
        if index:
            console.print()
        if len(group) == 1:
            _print_whole(group[0], console)
        else:
            _print_table(group, console)


def _print_table(rewards: list[dict[str, Any]], console: Screen) -> None:
    rows = []
    for reward in rewards:
        columns = ", ".join([*reward["columns"], *(f"[{column}]" for column in reward["optional_columns"])])
        name = Text(fold(reward["name"], 24), style="bold")
        rows.append((name, reward["kind"], Text(columns or NONE), Text(_unmarked(reward["doc"]))))
    console.print(table("reward", "kind", "columns", "what it does", rows=rows))


def _print_whole(reward: dict[str, Any], console: Screen) -> None:
    """Print all that is known of a reward: kind, range, columns with types, settings, the whole docstring."""
    types, settings = reward["types"], reward["settings"]
    columns = [f"{column}: {types[column]}" for column in reward["columns"]]
    columns += [f"[{column}: {types[column]}]" for column in reward["optional_columns"]]
    scores = reward["score_range"]
    facts = {"kind": reward["kind"], "scores": "any number" if scores is None else "{:g} to {:g}".format(*scores)}
    facts["columns"] = ", ".join(columns) or "none"
    if settings:
        facts["settings"] = ", ".join(name if value is None else f"{name}={value}" for name, value in settings.items())
    console.print(Text(reward["name"], style="bold"))
    for label, text in facts.items():
        console.say((f"{label:10}", "dim"), plain(text))
    if reward["description"]:
        console.print()
        console.say(plain(_unmarked(reward["description"])))
    if settings:
        name, value = next(iter(settings.items()))
        console.heading("Settings, given in a Python file:")
        console.say(f"    {reward['import']}\n    mine = {reward['name']}({name}={value})")
    if reward["settings_doc"]:
        console.print()
        console.say(plain(_unmarked(reward["settings_doc"])))
