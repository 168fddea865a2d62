"""``rewardkit train``: a GRPO run from a YAML file. The command line finds it by its entry point.

It reads the file and shows the result; :mod:`trainer_adapter.train` trains.
"""

from __future__ import annotations

import contextlib
import logging
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from rewardkit import ConfigError
from rewardkit.commands import AsJson, argument, finish, option
from rewardkit.extending import plain

if TYPE_CHECKING:
    from trainer_adapter.config import GRPOConfig
    from trainer_adapter.train import TrainResult

_ROWS = frozenset({".jsonl", ".ndjson", ".parquet", ".csv"})
_PATHS = ("dataset", "eval_dataset", "output_dir")  # What a file has beside the fields of GRPOConfig
CONFIG, RESUME = "CONFIG.yaml", "--resume/--no-resume"
_SHOWN_METRICS = ("reward", "reward_std", "loss", "kl")


class RunFile(NamedTuple):
    """The content of a configuration file; ``None`` stands for a path that the file does not name."""

    config: GRPOConfig
    dataset: Path
    eval_dataset: Path | None
    output_dir: Path | None


def train_command(
    config: Annotated[
        Path, argument(f"The fields of GRPOConfig, and {', '.join(_PATHS)}. Paths in it start from its folder.", CONFIG)
    ],
    output: Annotated[
        Path | None, option("Folder of checkpoints and of what was trained, instead of the file's.", "DIR")
    ] = None,
    resume: Annotated[bool, option("Go on from the folder's last checkpoint, if it has one.", None, RESUME)] = True,
    as_json: AsJson = False,
) -> None:
    """Train a model with GRPO on the rewards that CONFIG.yaml names. Needs the extra "train".

    Ctrl-C leaves a checkpoint of the last whole step; the same command goes on from there. A run goes on with the
    rewards, settings and rows that it began with; with others the command names what differs, and runs nothing.

    The file begins, for example, with:

    [dim]base_model: Qwen/Qwen3-0.6B
    dataset: train.jsonl
    reward_fns: \\[rewards.py][/]

    Example:

    [bold]rewardkit train grpo.yaml --output runs/first[/]
    """
    plan = read_plan(config)
    output_dir = output or plan.output_dir
    if output_dir is None:
        raise ConfigError(f"{config}: no output_dir in it; add it, or give --output DIR")
    try:
        from trainer_adapter.train import train

        with info_log():
            result = train(
                plan.config,
                plan.dataset,
                output_dir,
                eval_dataset=plan.eval_dataset,
                callbacks=watchers(),
                resume=resume,
            )
    except KeyboardInterrupt as stop:
        for note in getattr(stop, "__notes__", ()):
            print(plain(note), file=sys.stderr)
        raise
    except ModuleNotFoundError as missing:
        raise ConfigError(str(missing)) from missing
    _finish(result, as_json=as_json)


def read_plan(path: Path) -> RunFile:
    """Return the content of a configuration file; refuse one that is missing, is not YAML or has a wrong field."""
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
    dataset, eval_dataset, output_dir = (_path(path, base, data, name) for name in _PATHS)
    if dataset is None:
        raise ConfigError(f"{path}: field 'dataset' is missing: the path of a JSONL file")
    fields = {name: value for name, value in data.items() if name not in _PATHS}
    return RunFile(GRPOConfig.from_dict(fields, where=str(path), base=base), dataset, eval_dataset, output_dir)


def _path(path: Path, base: Path, data: dict[str, Any], name: str) -> Path | None:
    value = data.get(name)
    if value is None:
        return None
    if not isinstance(value, str) or not value:
        raise ConfigError(f"{path}: {name}={value!r}: expected a path")
    return base / value


def watchers() -> list[Any]:
    """Return a progress bar for a terminal, and nothing for a file or a pipe."""
    if not sys.stderr.isatty():
        return []
    from trainer_adapter.models import needing_extra

    with needing_extra():
        from transformers import ProgressCallback

    return [ProgressCallback()]


@contextlib.contextmanager
def info_log() -> Iterator[None]:
    """Show the trainer's log, such as where a run goes on and what health checks saw; Python shows only warnings."""
    handler = logging.StreamHandler()
    levels = {name: logging.getLogger(name).level for name in ("trainer_adapter", "rewardkit")}
    for name in levels:
        logging.getLogger(name).addHandler(handler)
        logging.getLogger(name).setLevel(logging.INFO)
    try:
        yield
    finally:
        for name, level in levels.items():
            logging.getLogger(name).setLevel(level)
            logging.getLogger(name).removeHandler(handler)


def _finish(result: TrainResult, *, as_json: bool) -> None:
    """Print what a run came to, or write it as JSON; of each metric the last value that was logged."""
    from trainer_adapter.run_identity import counted

    metrics: dict[str, Any] = {}
    for entry in result.log_history:
        metrics.update({name: entry[name] for name in _SHOWN_METRICS if name in entry})
    values = {
        "output_dir": str(result.output_dir),
        "trained": str(result.trained),
        "steps": result.steps,
        "seconds": result.seconds,
        "already_finished": result.already_finished,
        "record": None if result.record is None else result.record.label,
        "metrics": metrics,
    }
    # TRL logs no number where no completion of a step has a score.
    numbers = (f"{name} {'none' if value is None else format(value, '.4g')}" for name, value in metrics.items())
    last = ", ".join(numbers) or "no metrics were logged"
    steps = counted(result.steps, "step")
    message = f"{steps} in {result.seconds:,.0f} s; at the end {last}\nwrote {result.trained}"
    if result.record is not None:
        message += f"\nwhat each reward said of each completion: rewardkit show {shlex.quote(result.record.label)}"
    if result.already_finished:
        message = f"already finished, nothing run: {steps} done, in {result.output_dir}\ntrained: {result.trained}"
    finish(values, lambda: typer.echo(message), as_json=as_json)
