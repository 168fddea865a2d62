"""``rewardkit update``: a reward of a running training is changed."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import Annotated, Any

import typer

from rewardkit.cli.arguments import AsJson, Workers, argument, option, seconds_option
from rewardkit.cli.diff import print_difference
from rewardkit.cli.exits import finish
from rewardkit.cli.render import screen
from rewardkit.cli.run_argument import run_argument
from rewardkit.errors import ConfigError
from rewardkit.record.changes import Action, ChangeState
from rewardkit.record.places import run_path
from rewardkit.replay.recorded_run import Run
from rewardkit.replay.update import WAIT_S, Update, Wish, update
from rewardkit.serving.choice import is_address


def update_command(
    run: Annotated[str, run_argument("The run's folder, or its address in a database.", "RUN")],
    name: Annotated[str, argument("The reward in the run.", "NAME")],
    function: Annotated[str | None, argument("The new function; its name in the run stays.", "FILE.py:NAME")] = None,
    weight: Annotated[float | None, option("The reward's weight in the total.", "W")] = None,
    shadow: Annotated[
        bool, option("Score it beside the old one, as NAME_shadow with weight 0.", None, "--shadow")
    ] = False,
    add: Annotated[bool, option("Add it as a new reward, with weight 1 or --weight.", None, "--add")] = False,
    remove: Annotated[bool, option("Remove the reward, or a shadow.", None, "--remove")] = False,
    wait: Annotated[float, seconds_option("Seconds to wait for the training's answer.")] = WAIT_S,
    workers: Workers = None,
    as_json: AsJson = False,
) -> None:
    """Change a reward of a training that runs, between two of its steps.

    The new function is imported and tried on the run's last completions, and what it does to the advantages is shown.
    Then the training is asked. It starts workers with the new reward while the old one goes on, and changes over at the
    beginning of a step, in all of its processes at the same one. Where anything fails, the old reward stays, and the
    reason is told here and in the run.

    --weight, --add and --remove need a training by "rewardkit train", or one whose adapter is attached to its trainer.

    Examples:

    [bold]rewardkit update runs/one format new.py:format --shadow
    rewardkit update runs/one format new.py:format
    rewardkit update runs/one format --weight 0.5[/]
    """
    if is_address(run):
        raise ConfigError("a server has the code with which it was started; change the file and start the server again")
    wish = _wish(name, function, weight, shadow=shadow, add=add, remove=remove)
    with contextlib.closing(Run.open(run_path(run))) as opened:
        (answer,) = update(opened, [wish], wait_s=wait, workers=workers)
    finish(_as_json(answer), lambda: _print(answer, wait), as_json=as_json)


def _wish(name: str, function: str | None, weight: float | None, *, shadow: bool, add: bool, remove: bool) -> Wish:
    """Return the change that the options ask for; raise ConfigError where they ask for none, or do not go together."""
    actions = [option for option, flag in (("--shadow", shadow), ("--add", add), ("--remove", remove)) if flag]
    if len(actions) > 1:
        raise ConfigError(f"{' and '.join(actions)}: give one of them")
    if remove:
        if function is not None or weight is not None:
            raise ConfigError(f"--remove takes {name} away; it takes neither a function nor --weight")
        return Wish(name, Action.REMOVE)
    if function is None:
        if actions or weight is None:
            raise ConfigError("the new function is missing; give it as file.py:name, or a weight with --weight")
        return Wish(name, Action.WEIGHT, None, weight)
    if shadow and weight is not None:
        raise ConfigError("--shadow and --weight: a shadow has the weight 0; give the weight when it takes the place")
    action = Action.SHADOW if shadow else Action.ADD if add else Action.REPLACE
    return Wish(name, action, function, weight)


def _print(answer: Update, wait_s: float) -> None:
    console = screen()
    if answer.difference is not None:
        print_difference(answer.difference, console)
        console.print()
    for note in answer.notes:
        console.say((note, "dim"))
    typer.echo(outcome_line(answer, wait_s))


def outcome_line(answer: Update, wait_s: float) -> str:
    """Return the outcome of a change in one line."""
    if answer.state is ChangeState.ASKED:
        return (
            f"asked (change {answer.change}), and not yet applied: the training gave no answer in {wait_s:g} s. The "
            "change stands: it applies it at a step of its own, or says in the run why not"
        )
    version = "" if answer.digits is None else f" version {answer.digits}"
    what = {
        Action.REPLACE: f"{answer.name} is{version}",
        Action.SHADOW: f"{answer.name}_shadow is scored,{version}, with weight 0,",
        Action.ADD: f"{answer.name} is added,{version},",
        Action.WEIGHT: f"{answer.name} has its new weight",
        Action.REMOVE: f"{answer.name} is away",
    }[answer.action]
    return f"{what} from step {answer.step} on"


def _as_json(answer: Update) -> Mapping[str, Any]:
    return {
        "reward": answer.name,
        "action": answer.action,
        "state": answer.state,
        "step": answer.step,
        "version": answer.digits,
        "change": answer.change,
        "difference": None if answer.difference is None else answer.difference.as_json(),
        "notes": list(answer.notes),
    }
