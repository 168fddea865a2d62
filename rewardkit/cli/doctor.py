"""``rewardkit doctor``: what this machine gives, and what stands in the way."""

from __future__ import annotations

import importlib.metadata
import re
import sys
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

from rich.table import Table
from rich.text import Text

from rewardkit.cli.arguments import AsJson, option
from rewardkit.cli.exits import FAILED, finish
from rewardkit.cli.render import NONE, screen, table
from rewardkit.loading.same_name import DISTRIBUTION, PACKAGES, WAY_OUT, own_distributions
from rewardkit.shown.text import counted
from rewardkit.versions.own_version import own_version
from sandbox import cores, language_trials, machine, trials

_VERSION = re.compile(r"\d+(?:\.\d+)+")  # in what a tool prints, which may be a whole sentence


def doctor_command(
    level: Annotated[
        Literal["auto", "strict", "standard", "seccomp-only"], option("The level of isolation that is needed.")
    ] = "auto",
    ray: Annotated[bool, option("Show what each node of a Ray cluster gives as well.", None, "--ray")] = False,
    ray_address: Annotated[
        str, option("The cluster: auto for this machine's, or its head's HOST:PORT.", "ADDRESS")
    ] = "auto",
    bench: Annotated[
        bool, option("Measure calls a second by the number of workers as well, for some seconds.", None, "--bench")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Show how far this machine can isolate the code that models write, why not further, and in which languages.

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
            {"level": str(trial.level), "reached": trial.reached, "why_not": trial.why, "attacks": trial.attacks}
            for trial in trials()
        ],
        "languages": [
            {"name": trial.name, "version": trial.version, "level": str(trial.level)}
            | {"why_not": trial.why, "install": trial.install}
            for trial in language_trials()
        ],
        "version": own_version(),
        "distributions": installed_as(),
        "names_taken": taken_names(),
    }
    report["advice"] = [*advice(report["machine"]), *distribution_advice(report["distributions"])]
    reached = [row["level"] for row in report["levels"] if row["reached"]]
    report["level"] = next((name for name in ("strict", "standard") if name in reached), None)
    report["asked"] = level
    reached_it = report["level"] is not None if level == "auto" else level in reached
    if ray:
        report["nodes"] = _nodes(ray_address)
        wanted = {"strict", "standard"} if level == "auto" else {level}
        reached_it &= all(node["why_not"] is None and wanted & {*node["levels"]} for node in report["nodes"])
    if bench:
        report["bench"] = _bench()
    finish(report, lambda: _print(report, ok=reached_it), as_json=as_json, code=0 if reached_it else FAILED)


def _bench() -> dict[str, Any]:
    """Return the rows of :mod:`rewardkit.cli.core_scaling`, and how many workers this machine carries, in a line."""
    from rewardkit.cli import core_scaling  # the runtime is not needed otherwise

    rows = core_scaling.short_form()
    return {"rows": [row._asdict() for row in rows], "verdict": core_scaling.verdict(rows)}


def _nodes(address: str) -> list[dict[str, Any]]:
    """Return what each node of a cluster gives; its facts are ``None`` where it could not be asked."""
    from rewardkit.runtime.nodes.ray_cluster import connect  # Ray takes a second to import
    from rewardkit.runtime.nodes.survey import survey

    return [
        {
            "node": node.node,
            **{name: node.facts and getattr(node.facts, name) for name in ("python", "rewardkit", "cores")},
            "levels": [level for level, reached, _ in node.levels if reached],
            "why_no_level": {level: why for level, reached, why in node.levels if not reached},
            "why_not": node.why_not,
        }
        for node in survey(connect(address, with_own=True))
    ]


def advice(facts: Mapping[str, str]) -> list[str]:
    """Return advice for Google Colab and macOS, a line each; ``facts`` are those of :func:`sandbox.machine`."""
    lines = []
    if "notebook" in facts:
        lines.append(
            f"Google Colab: {counted(cores(), 'core')}, so leave workers at their default; after an installation that "
            "replaces packages in use, restart the session once; record under /content and copy the run to Drive when "
            "it has ended, because Drive does not keep up with a database that is being written"
        )
    if sys.platform == "darwin":
        lines.append(
            "macOS: rewards run in workers, without the memory limit; code that models write has no jail here, so "
            "rewards that run it need Linux, such as a container"
        )
    return lines


def taken_names() -> dict[str, list[str]]:
    """Return this project's import names that other installed distributions hold, too, with those distributions."""
    holders = importlib.metadata.packages_distributions()
    own = {*own_distributions(holders)}
    taken = {name: sorted({*holders.get(name, ())} - own) for name in PACKAGES}
    return {name: distributions for name, distributions in taken.items() if distributions}


def installed_as() -> dict[str, str]:
    """Return the installed distributions that are this project, with their versions; none where a checkout runs."""
    names = own_distributions(importlib.metadata.packages_distributions())
    return {name: importlib.metadata.version(name) for name in names}


def distribution_advice(distributions: Mapping[str, str]) -> list[str]:
    """Return what to do about installations of this project under another name than today's, in a line at most."""
    others = [name for name in distributions if name != DISTRIBUTION]
    if not others:
        return []
    names = " ".join(dict.fromkeys([*others, *distributions]))
    return [
        f"this project is installed as {' and '.join(others)}, and its distribution is called {DISTRIBUTION}: "
        f"run `pip uninstall {names}`, then install it again"
    ]


def languages_table(languages: Sequence[Mapping[str, str]]) -> Table:
    """Return the languages of programs, with their versions, or why they do not run and how they are had."""
    rows = []
    for row in languages:
        number = _VERSION.search(row["version"])
        version = Text(number[0] if number else row["version"] or NONE)
        remark = f"{row['why_not']}; to have it: {row['install']}" if row["why_not"] else ""
        rows.append((Text(row["name"], style="bold"), version, Text(row["level"]), Text(remark)))
    return table("language", "version", "needs level", "why not", rows=rows)


def _print(report: dict[str, Any], *, ok: bool) -> None:
    """Print the machine, the levels with the attacks on them, the nodes, the advice, and the verdict."""
    console = screen()
    installed = " and ".join(f"{name} {version}" for name, version in report["distributions"].items())
    own = {"rewardkit": f"{report['version']}, {f'installed as {installed}' if installed else 'not installed by pip'}"}
    machine_facts = {**own, **report["machine"]}
    facts = [(Text(name, style="bold"), Text(value)) for name, value in machine_facts.items()]
    console.print(table("this machine", "", rows=facts))
    console.print()
    levels = report["levels"]
    marks = {True: Text("yes", style="green"), False: Text("no", style="red")}
    rows = [(Text(row["level"], style="bold"), marks[row["reached"]], Text(row["why_not"] or NONE)) for row in levels]
    console.print(table("level", "reached", "why not", rows=rows))
    console.print()
    outcomes = {None: Text(NONE), True: Text("SUCCEEDED", style="red"), False: Text("refused")}
    attacks = dict.fromkeys(name for row in levels for name in row["attacks"])
    if attacks:
        cells = [[name, *(outcomes[row["attacks"].get(name)] for row in levels)] for name in attacks]
        console.print(table("attack", *(row["level"] for row in levels), rows=cells))
    console.print()
    console.print(languages_table(report["languages"]))
    if "nodes" in report:
        console.print()
        values = [
            (node["node"], node["python"], node["rewardkit"], node["cores"], ", ".join(node["levels"]), node["why_not"])
            for node in report["nodes"]
        ]
        nodes = [[Text(str(value or NONE)) for value in row] for row in values]
        console.print(table("node", "Python", "rewardkit", "cores", "levels", "takes no part because", rows=nodes))
    if "bench" in report:
        from rewardkit.cli import core_scaling

        console.print()
        rows_of_bench = core_scaling.table_rows([core_scaling.ScalingRow(**row) for row in report["bench"]["rows"]])
        console.print(table(*core_scaling.COLUMNS, rows=rows_of_bench))
        console.say(report["bench"]["verdict"], fit="wrap")
    for line in report["advice"]:
        console.say(f"\n{line}", fit="wrap")
    for name, distributions in report["names_taken"].items():
        clash = f"{', '.join(distributions)} also installs a package named {name!r}; `import {name}` may give theirs."
        console.say((f"\nwarning: {clash} The way out: {WAY_OUT}.", "yellow"), fit="wrap")
    where = "here and on every node" if "nodes" in report else "here"
    verdict = f"the level asked for, {report['asked']}, is not reached {where}; see the reasons above"
    if ok:
        level = report["level"] if report["asked"] == "auto" else report["asked"]
        verdict = f"code that models write can be run {where}, at level {level}"
    console.say((f"\n{verdict}", "bold"), fit="wrap")
