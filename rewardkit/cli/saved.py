"""``--html``: the dashboard's page with its data inside, as a file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from rewardkit.cli.arguments import option
from rewardkit.cli.exits import finish
from rewardkit.cli.output import check_new, replacing
from rewardkit.cli.progress import told_progress
from rewardkit.cli.render import byte_size
from rewardkit.errors import ConfigError
from rewardkit.replay.difference import Difference
from rewardkit.replay.recorded_run import Run
from rewardkit.shown.text import plain

if TYPE_CHECKING:
    from rewardkit.dashboard.saved.scope import Scope

ResultPage: TypeAlias = Annotated[
    Path | None, option("Save the dashboard's page with the result to this file.", "FILE", "--html")
]
Force: TypeAlias = Annotated[bool, option("Replace the file of --html if it is there.", None, "--force")]


def write_saved(run: Run, scope: Scope, to: Path, max_mb: float | None, *, force: bool, as_json: bool) -> None:
    """Save the page of a run or of a part of it, with progress; the file appears when it is whole.

    Raises ConfigError where the file is there and ``force`` is false, or cannot be written.
    """
    from rewardkit.dashboard.saved.document import MEGABYTES, write_page

    check_new(to, run.path.files, "--html", force=force)
    with told_progress("saving") as tick, replacing(to.resolve()) as file:
        saved = write_page(run, scope, file, megabytes=max_mb or MEGABYTES, tick=tick)
    size = to.stat().st_size
    result = {
        "run": run.name,
        "what": scope.label or "the run",
        "file": str(to),
        "bytes": size,
        "completions": saved.completions,
        "of": saved.of,
        "left_out": saved.left_out,
    }

    def show() -> None:
        typer.echo(plain(f"wrote {to}, {byte_size(size)}: {saved.completions:,} of {saved.of:,} completions"))
        for sentence in saved.left_out:
            typer.echo(plain(sentence))

    finish(result, show, as_json=as_json)


def check_result_page(to: Path | None, *, force: bool) -> None:
    """Raise ConfigError where the page of a result cannot be saved, before anything is scored."""
    if to is None and force:
        raise ConfigError("--force: is about the file of --html; name it")
    if to is not None:
        check_new(to, (), "--html", force=force)


def write_difference(run: Run, difference: Difference, to: Path, *, force: bool) -> None:
    """Save the page of a difference of two versions in a run."""
    from rewardkit.dashboard.saved.document import write_page
    from rewardkit.dashboard.saved.scope import of_difference

    check_new(to, run.path.files, "--html", force=force)
    versions = {version.label: version.reward for version in run.versions}
    reward = versions.get(difference.old) or versions.get(difference.new) or difference.new.rpartition(":")[2]
    with replacing(to.resolve()) as file:
        write_page(run, of_difference(run, reward, difference), file)
    typer.echo(plain(f"wrote {to}"), err=True)
