"""The program: its commands, those that other packages add, and the border where errors become exit codes."""

from __future__ import annotations

import ast
import functools
import importlib.metadata
import importlib.util
import inspect
import json
import os
import re
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer
import typer.core

from rewardkit import __version__
from rewardkit.cli.exits import EXIT_CODES, as_result, code_of
from rewardkit.cli.output import tolerate_lost_reader
from rewardkit.errors import ConfigError, RewardError
from rewardkit.shown.text import plain

COMMANDS = "rewardkit.commands"
"""The entry-point group under which packages add commands: functions that typer reads as its own, or groups of them."""
_OWN = {
    "score": "rewardkit.cli.score:score_command",
    "audit": "rewardkit.cli.audit:audit_command",
    "check": "rewardkit.cli.check:check_command",
    "test": "rewardkit.cli.testing:cases_command",
    "runs": "rewardkit.cli.runs:runs_command",
    "compare": "rewardkit.cli.compare:compare_command",
    "show": "rewardkit.cli.show:show_command",
    "profile": "rewardkit.cli.profile:profile_command",
    "logs": "rewardkit.cli.logs:logs_command",
    "export": "rewardkit.cli.export:export_command",
    "list": "rewardkit.cli.listing:list_command",
    "diagnose": "rewardkit.cli.diagnose:diagnose_command",
    "doctor": "rewardkit.cli.doctor:doctor_command",
    "integrity": "rewardkit.cli.integrity:integrity_command",
    "new": "rewardkit.cli.new:new_command",
    "diff": "rewardkit.cli.diff:diff_command",
    "rescore": "rewardkit.cli.rescore:rescore_command",
    "verify": "rewardkit.cli.verify:verify_command",
    "update": "rewardkit.cli.update:update_command",
    "serve": "rewardkit.cli.serve:serve_command",
    "ui": "rewardkit.cli.ui:ui_command",
}


_OUR_PACKAGES = ("rewardkit", "builtin_rewards", "trainer_adapter")
_LISTING = f"{__name__}.listing"
"""Key of a context's notes: whether its commands are listed alone, for which none need be imported."""


class CommandGroup(typer.core.TyperGroup):
    """The group of commands, each of which is loaded when it is asked for, or listed."""

    def list_commands(self, ctx: Any) -> list[str]:
        return list(_commands())

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        listed = _listed(cmd_name) if ctx.meta.get(_LISTING) else None
        command = _join_help_lines(super().get_command(ctx, cmd_name) or listed or _load(cmd_name))
        for part in (command, *getattr(command, "commands", {}).values()):
            _hide_flag_types(part, ctx)
        return command

    def format_help(self, ctx: Any, formatter: Any) -> None:
        _hide_flag_types(self, ctx)
        ctx.meta[_LISTING] = True
        super(CommandGroup, _join_help_lines(self)).format_help(ctx, formatter)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        ctx.meta[__name__] = "--json" in args
        names: dict[str, Any] = dict.fromkeys(_commands())
        self.commands = {**names, **self.commands}  # near ones are offered for a wrong name
        return super().parse_args(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        """Run a command; with ``--json`` an error that ends it is printed as the result, too."""
        try:
            return super().invoke(ctx)
        except (KeyboardInterrupt, Exception) as error:
            _name_options(error)
            if ctx.meta[__name__] and not isinstance(error, typer.Exit | typer.Abort):
                typer.echo(json.dumps(as_result(error), indent=2))
            if isinstance(error, KeyboardInterrupt):
                _say("interrupted")
                raise typer.Exit(code_of(error)) from None
            raise

    def main(self, *arguments: Any, **options: Any) -> Any:
        """Run a command line and end the process with one of the documented exit codes."""
        tolerate_lost_reader("stdout")
        tolerate_lost_reader("stderr")
        try:
            return super().main(*arguments, **options)
        except Exception as error:
            if isinstance(error, RewardError | OSError):
                _say(f"error: {error}")
            else:
                _say(traceback.format_exc())
                _say("error: this is a fault of rewardkit's own; please report it with the lines above")
            sys.exit(code_of(error))


_EXTRA = "unexpected extra argument"
_DATA_FILE = r"\.(jsonl?|ndjson|csv|tsv|parquet|arrow|gz)$"
_OPTIONS_OF_FILES = {
    r"\.(py|ya?ml)(:\w+)?(,|$)": ("--rewards", "--reward"),
    _DATA_FILE: ("--data",),
}
"""Options that take a file which stands where no argument is expected, by what its name ends with."""
_CONFIG = "CONFIG.yaml"
"""What commands that read all from one file call it; its field ``dataset`` names the rows."""


def _name_options(error: BaseException) -> None:
    """Add to an error about an argument too many the options of its command that take such a file, or the field."""
    message, context = getattr(error, "message", ""), getattr(error, "ctx", None)
    if not isinstance(message, str) or context is None:
        return
    is_data_option = getattr(error, "option_name", None) == "--data"
    if is_data_option or _EXTRA in message:
        files = re.findall(r"[^\s()]+", message.partition("(")[2])
        data = next((file for file in files if re.search(_DATA_FILE, file)), "rows.jsonl" if is_data_option else None)
        if data is not None and _CONFIG in [parameter.metavar for parameter in context.command.params]:
            setattr(error, "message", f"{message}; {_CONFIG} names the rows, as dataset: {data}")  # noqa: B010 - as below
            return
    if _EXTRA not in message:
        return
    options = {option for parameter in context.command.params for option in parameter.opts}
    hints = [
        f"{option} {file}"
        for file in files
        for pattern, names in _OPTIONS_OF_FILES.items()
        for option in names
        if option in options and re.search(pattern, file)
    ]
    if hints:
        setattr(error, "message", f"{message}; give {' and '.join(hints)}")  # noqa: B010 - no class here has it


def _join_help_lines(command: Any) -> Any:
    """Join the lines of each paragraph of a command's help, except those that begin with markup; return the command."""
    if command is not None and command.help:
        paragraphs = inspect.cleandoc(command.help).split("\n\n")
        command.help = "\n\n".join(text if text.startswith("[") else " ".join(text.split()) for text in paragraphs)
    return command


def _hide_flag_types(command: Any, ctx: Any) -> None:
    """Make a command's help show its flags without a type, which typer would add: they take no value."""
    if command is not None:
        for parameter in (*command.params, command.get_help_option(ctx)):
            if getattr(parameter, "is_flag", False):
                parameter.metavar = ""


def _say(message: str) -> None:
    print(plain(message), file=sys.stderr)


def _commands() -> dict[str, importlib.metadata.EntryPoint]:
    """Return the commands' entry points by name: our own, which cannot be replaced, then those of other packages."""
    own = {name: importlib.metadata.EntryPoint(name, target, COMMANDS) for name, target in _OWN.items()}
    return {**own, **{point.name: point for point in _added(tuple(sys.path)) if point.name not in own}}


@functools.cache
def _added(_path: tuple[str, ...]) -> list[importlib.metadata.EntryPoint]:
    """Return the entry points of other packages by name; all distributions on the path are read for them, and once."""
    return sorted(importlib.metadata.entry_points(group=COMMANDS), key=lambda point: point.name)


def _listed(name: str) -> Any:
    """Return a command that has its help alone, read from its source; ``None`` where it must be loaded.

    To import all commands takes two seconds, and their sources have the same docstrings.
    """
    point = _commands()[name]
    package, *folders = point.module.split(".")
    spec = importlib.util.find_spec(package) if package in _OUR_PACKAGES else None
    if spec is None or not spec.submodule_search_locations:
        return None
    file = Path(spec.submodule_search_locations[0], *folders).with_suffix(".py")
    head = rf"(?:def {point.attr}|@{point.attr}\.callback\(\)\ndef \w+)\("
    docstring = re.search(rf'^{head}.*?\n    (""".*?""")', file.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    return None if docstring is None else typer.core.TyperCommand(name, help=ast.literal_eval(docstring[1]))


def _load(name: str) -> Any:
    """Return the command of a name, or one that raises ConfigError if it does not load; ``None`` without the name."""
    point = _commands().get(name)
    if point is None:
        return None
    try:
        function = point.load()
    except Exception as error:
        function = _unavailable(point.value, f"{type(error).__name__}: {error}")
    if isinstance(function, typer.Typer):
        return _group(name, function)
    program = typer.Typer(add_completion=False, rich_markup_mode="rich")
    parameters = inspect.signature(function).parameters.values()
    needs_arguments = any(parameter.default is parameter.empty for parameter in parameters)
    program.command(name, no_args_is_help=needs_arguments, epilog=EXIT_CODES)(function)
    return typer.main.get_command(program)


def _group(name: str, commands: typer.Typer) -> Any:
    """Return a group of commands, which are shown as single ones are."""
    group: Any = typer.main.get_group(commands)
    group.name, group.no_args_is_help, group.epilog = name, True, EXIT_CODES
    for name, command in group.commands.items():
        command.name, command.epilog = name, EXIT_CODES
        command.no_args_is_help = any(parameter.required for parameter in command.params)
        _join_help_lines(command)
    return group


def _unavailable(target: str, reason: str) -> Callable[[], None]:
    """Return a command that raises ConfigError, and whose help says why."""

    def unavailable() -> None:
        raise ConfigError(f"{target} does not load: {reason}")

    unavailable.__doc__ = f"Not available: {reason}"
    return unavailable


app = typer.Typer(
    cls=CommandGroup,
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog=EXIT_CODES,
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"rewardkit {__version__}")
        raise typer.Exit


@app.callback()
def rewardkit(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and stop.")
    ] = False,
) -> None:
    """Write, check and run reward functions for RL fine-tuning of language models.

    The first command writes a reward and its test; the second scores a file with it:

    [bold]rewardkit new correct
    rewardkit score correct.py rollouts.jsonl[/]
    """
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())  # so that module:name finds what lies here, as under python -m
