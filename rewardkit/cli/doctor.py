"""``rewardkit doctor``: what this machine gives, and what stands in the way."""

from __future__ import annotations

import importlib.metadata
from typing import Annotated, Any, Literal

from rich.text import Text

from rewardkit.cli.arguments import AsJson, option
from rewardkit.cli.exits import FAILED, finish
from rewardkit.cli.screen import screen, table
from sandbox import machine, trials

_OWN_NAMES = ("rewardkit", "sandbox", "builtin_rewards", "trainer_adapter")


def doctor_command(
    level: Annotated[
        Literal["auto", "strict", "standard", "seccomp-only"], option("The level of isolation that is needed.")
    ] = "auto",
    as_json: AsJson = False,
) -> None:
    """Show how far this machine can isolate the code that models write, and why not further.

    Every level is tried out with attacks. Exit code 1 means that the level asked for is not reached;
    [bold]auto[/] asks for standard or better.

    Examples:

    [bold]rewardkit doctor
    rewardkit doctor --level strict --json[/]
    """
    report: dict[str, Any] = {
        "machine": machine(),
        "levels": [
            {"level": str(one.level), "reached": one.reached, "why_not": one.why, "attacks": one.attacks}
            for one in trials()
        ],
        "names_taken": taken_names(),
    }
    reached = [one["level"] for one in report["levels"] if one["reached"]]
    report["level"] = next((one for one in ("strict", "standard") if one in reached), None)
    report["asked"] = level
    reached_it = report["level"] is not None if level == "auto" else level in reached
    finish(report, lambda: _print(report, ok=reached_it), as_json=as_json, code=0 if reached_it else FAILED)


def taken_names() -> dict[str, list[str]]:
    """Return the import names of ours that other installed distributions hold as well, with those distributions."""
    ours = importlib.metadata.metadata("rewardkit")["Name"]
    holders = importlib.metadata.packages_distributions()
    taken = {name: sorted({one for one in holders.get(name, []) if one != ours}) for name in _OWN_NAMES}
    return {name: others for name, others in taken.items() if others}


def _print(report: dict[str, Any], *, ok: bool) -> None:
    console = screen()
    facts = table("this machine", "")
    for name, value in report["machine"].items():
        facts.add_row(Text(name, style="bold"), Text(value))
    console.print(facts)
    console.print()
    shown = table("level", "reached", "why not")
    for one in report["levels"]:
        mark = Text("yes", style="green") if one["reached"] else Text("no", style="red")
        shown.add_row(Text(one["level"], style="bold"), mark, Text(one["why_not"] or "-"))
    console.print(shown)
    console.print()
    outcomes = table("attack", *(one["level"] for one in report["levels"]))
    marks = {None: "-", True: "[red]SUCCEEDED[/]", False: "refused"}
    for name in dict.fromkeys(name for one in report["levels"] for name in one["attacks"]):
        outcomes.add_row(name, *(marks[one["attacks"].get(name)] for one in report["levels"]))
    if outcomes.row_count:
        console.print(outcomes)
    for name, others in report["names_taken"].items():
        console.print(
            Text(
                f"\nwarning: {', '.join(others)} also installs a package named {name!r}; "
                f"`import {name}` may give theirs. Uninstall it: pip uninstall {others[0]}",
                style="yellow",
            )
        )
    words = f"the level asked for, {report['asked']}, is not reached here; see the reasons above"
    if ok:
        level = report["level"] if report["asked"] == "auto" else report["asked"]
        words = f"code that models write can be run here, at level {level}"
    console.print(Text(f"\n{words}", style="bold"))
