"""``rewardkit train``: a GRPO run from a YAML file. The command line finds it by its entry point.

It reads the file and shows the result; :mod:`trainer_adapter.config` checks, :mod:`trainer_adapter.train` trains.
"""

from __future__ import annotations

import contextlib
import json
import logging
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from rewardkit import ConfigError
from rewardkit.extending import plain

if TYPE_CHECKING:
    from trainer_adapter.config import GRPOConfig
    from trainer_adapter.train import TrainResult

_MISTAKE = 2
_ROWS = frozenset({".jsonl", ".ndjson", ".parquet", ".csv"})
_SHOWN_METRICS = ("reward", "reward_std", "loss", "kl")


class Plan(NamedTuple):
    """What a configuration file asks for.

    Attributes:
        config: Model, hyperparameters and rewards.
        dataset: Rows to train on.
        eval_dataset: Rows to evaluate on, if any.
        output_dir: Where checkpoints go; ``None`` where the file does not say.
    """

    config: GRPOConfig
    dataset: Path
    eval_dataset: Path | None
    output_dir: Path | None


def train_command(
    config: Annotated[
        Path,
        typer.Argument(
            help="The fields of GRPOConfig, and dataset, eval_dataset, output_dir. Paths in it start from its folder.",
            metavar="CONFIG.yaml",
            show_default=False,
        ),
    ],
    output: Annotated[
        Path | None,
        typer.Option(help="Folder of checkpoints and of what was trained, instead of the file's.", metavar="DIR"),
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume/--no-resume", help="Go on from the folder's last checkpoint, if it has one.")
    ] = True,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Train a model with GRPO on the rewards that CONFIG.yaml names. Needs the extra: rewardkit\\[train].

    Ctrl-C leaves a checkpoint of the last whole step; the same command goes on from there. A run goes on with the
    rewards, settings and rows that it began with; with others the command names what differs, and runs nothing.

    Example: [bold]rewardkit train grpo.yaml --output runs/first[/], where grpo.yaml begins

    [dim]base_model: Qwen/Qwen3-0.6B[/]

    [dim]dataset: train.jsonl[/]

    [dim]reward_fns: \\[rewards.py][/]
    """
    plan = read_plan(config)
    output_dir = output or plan.output_dir
    if output_dir is None:
        raise ConfigError(f"{config}: no output_dir in it; add it, or give --output DIR")
    try:
        from trainer_adapter.train import train

        with _log_shown():
            result = train(
                plan.config,
                plan.dataset,
                output_dir,
                eval_dataset=plan.eval_dataset,
                callbacks=_watchers(),
                resume=resume,
            )
    except KeyboardInterrupt as stop:
        for note in getattr(stop, "__notes__", ()):
            print(plain(note), file=sys.stderr)
        raise
    except ModuleNotFoundError as missing:
        print(f"error: {missing}", file=sys.stderr)
        raise typer.Exit(_MISTAKE) from missing
    _tell(result, as_json=as_json)


def read_plan(path: Path) -> Plan:
    """Return what a configuration file asks for.

    Raises:
        ConfigError: There is no such file, it is not YAML, or a field is wrong.
    """
    from rewardkit.extending import read_yaml
    from trainer_adapter.config import GRPOConfig

    if path.is_file() and _ROWS.intersection(path.suffixes):
        raise ConfigError(
            f"{path}: expected a YAML file of settings, got rows; name them there, as dataset: {path.name}"
        )
    data = read_yaml(path)
    if not isinstance(data, dict):
        raise ConfigError(f"{path}: expected a mapping of fields, got {data!r}")
    base = path.resolve().parent
    dataset, eval_dataset, output_dir = (
        _place(path, base, data, name) for name in ("dataset", "eval_dataset", "output_dir")
    )
    if dataset is None:
        raise ConfigError(f"{path}: field 'dataset' is missing: the path of a JSONL file")
    fields = {name: value for name, value in data.items() if name not in ("dataset", "eval_dataset", "output_dir")}
    return Plan(GRPOConfig.from_dict(fields, where=str(path), base=base), dataset, eval_dataset, output_dir)


def _place(path: Path, base: Path, data: dict[str, Any], name: str) -> Path | None:
    value = data.get(name)
    if value is None:
        return None
    if not isinstance(value, str) or not value:
        raise ConfigError(f"{path}: {name}={value!r}: expected a path")
    return base / value


def _watchers() -> list[Any]:
    """Return a progress bar where a person watches."""
    if not sys.stderr.isatty():
        return []
    from trainer_adapter.models import needing_extra

    with needing_extra():
        from transformers import ProgressCallback

    return [ProgressCallback()]


@contextlib.contextmanager
def _log_shown() -> Iterator[None]:
    """Show what the trainer logs, as where a run goes on; by itself Python shows warnings alone."""
    logger, handler = logging.getLogger("trainer_adapter"), logging.StreamHandler()
    level = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    try:
        yield
    finally:
        logger.setLevel(level)
        logger.removeHandler(handler)


def _tell(result: TrainResult, *, as_json: bool) -> None:
    metrics: dict[str, Any] = {}
    for entry in result.log_history:
        metrics.update({name: entry[name] for name in _SHOWN_METRICS if name in entry})
    if as_json:
        told = {
            "output_dir": str(result.output_dir),
            "trained": str(result.trained),
            "steps": result.steps,
            "seconds": result.seconds,
            "already_finished": result.already_finished,
            "metrics": metrics,
        }
        typer.echo(json.dumps(told, indent=2))
        return
    last = ", ".join(f"{name} {value:.4g}" for name, value in metrics.items())
    if result.already_finished:
        typer.echo(f"already finished, nothing run: {_steps(result)} done, in {result.output_dir}")
        typer.echo(f"trained: {result.trained}")
        return
    typer.echo(f"{_steps(result)} in {result.seconds:,.0f} s; at the end {last or 'no metrics were logged'}")
    typer.echo(f"wrote {result.trained}")


def _steps(result: TrainResult) -> str:
    return f"{result.steps:,} step{'' if result.steps == 1 else 's'}"
