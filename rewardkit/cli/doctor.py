"""``rewardkit doctor``: what this machine gives, and what stands in the way."""

from __future__ import annotations

import importlib.metadata
import sys
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from rich.text import Text

from rewardkit.cli.arguments import AsJson, option
from rewardkit.cli.exits import FAILED, finish
from rewardkit.cli.screen import screen, table
from rewardkit.shown.text import counted
from sandbox import cores, machine, trials

_OWN_NAMES = ("rewardkit", "sandbox", "builtin_rewards", "trainer_adapter")


def doctor_command(
    level: Annotated[
        Literal["auto", "strict", "standard", "seccomp-only"], option("The level of isolation that is needed.")
    ] = "auto",
    ray: Annotated[bool, option("Show what each node of a Ray cluster gives as well.", None, "--ray")] = False,
    ray_address: Annotated[
        str, option("The cluster: auto for this machine's, or its head's HOST:PORT.", "ADDRESS")
    ] = "auto",
    as_json: AsJson = False,
) -> None:
    """Show how far this machine can isolate the code that models write, and why not further.

    Every level is tried out with attacks. Exit code 1 means that the level asked for is not reached;
    [bold]auto[/] asks for standard or better. With [bold]--ray[/] every node is to reach it too, and to be one that
    could take part in scoring.

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
    report["advice"] = advice(report["machine"])
    reached = [one["level"] for one in report["levels"] if one["reached"]]
    report["level"] = next((one for one in ("strict", "standard") if one in reached), None)
    report["asked"] = level
    reached_it = report["level"] is not None if level == "auto" else level in reached
    if ray:
        report["nodes"] = _nodes(ray_address)
        wanted = {"strict", "standard"} if level == "auto" else {level}
        reached_it &= all(one["why_not"] is None and wanted & {*one["levels"]} for one in report["nodes"])
    finish(report, lambda: _print(report, ok=reached_it), as_json=as_json, code=0 if reached_it else FAILED)


def _nodes(address: str) -> list[dict[str, Any]]:
    """Return what each node of a cluster gives."""
    from rewardkit.runtime.nodes.ray_cluster import connect  # Ray takes a second to import
    from rewardkit.runtime.nodes.survey import survey

    return [
        {
            "node": one.node,
            "python": one.facts and one.facts.python,
            "rewardkit": one.facts and one.facts.rewardkit,
            "cores": one.facts and one.facts.cores,
            "levels": [level for level, reached, _ in one.levels if reached],
            "why_no_level": {level: why for level, reached, why in one.levels if not reached},
            "why_not": one.why_not,
        }
        for one in survey(connect(address, with_own=True))
    ]


def advice(facts: Mapping[str, str]) -> list[str]:
    """Return what is otherwise here than on a Linux machine of one's own, a line each.

    Args:
        facts: What :func:`sandbox.machine` says of this one.
    """
    said = []
    if "notebook" in facts:
        said.append(
            f"Google Colab: {counted(cores(), 'core')}, so leave workers at their default; after an installation that "
            "replaces packages in use, restart the session once; record under /content and copy the run to Drive when "
            "it has ended, because Drive does not keep up with a database that is being written"
        )
    if sys.platform == "darwin":
        said.append(
            "macOS: rewards run in workers, without the memory limit; code that models write has no jail here, so "
            "rewards that run it need Linux, such as a container"
        )
    return said


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
    if "nodes" in report:
        console.print()
        nodes = table("node", "Python", "rewardkit", "cores", "levels", "takes no part because")
        for one in report["nodes"]:
            cells = [one["node"], one["python"], one["rewardkit"], one["cores"], ", ".join(one["levels"])]
            nodes.add_row(*(Text(str(cell or "-")) for cell in cells), Text(one["why_not"] or "-"))
        console.print(nodes)
    for line in report["advice"]:
        console.print(Text(f"\n{line}"))
    for name, others in report["names_taken"].items():
        console.print(
            Text(
                f"\nwarning: {', '.join(others)} also installs a package named {name!r}; "
                f"`import {name}` may give theirs. Uninstall it: pip uninstall {others[0]}",
                style="yellow",
            )
        )
    where = "here and on every node" if "nodes" in report else "here"
    words = f"the level asked for, {report['asked']}, is not reached {where}; see the reasons above"
    if ok:
        level = report["level"] if report["asked"] == "auto" else report["asked"]
        words = f"code that models write can be run {where}, at level {level}"
    console.print(Text(f"\n{words}", style="bold"))
