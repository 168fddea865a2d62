"""``rewardkit rm``: the commands about reward models. The command line finds the group by its entry point.

It reads the file and shows the result; :mod:`trainer_adapter.reward_training.train` trains.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rewardkit import ConfigError
from rewardkit.commands import AsJson, argument, finish, option
from trainer_adapter.cli import CONFIG, RESUME, info_log, watchers
from trainer_adapter.reward_evaluation.commands import eval_command, monitor_command, over_optimisation_command

if TYPE_CHECKING:
    from trainer_adapter.reward_training.reward_model_config import RewardModelConfig
    from trainer_adapter.reward_training.train import RewardModelResult

rm = typer.Typer(add_completion=False, no_args_is_help=True, rich_markup_mode="rich")
"""The group; a module adds a command by ``rm.command("name")``."""


@rm.callback()
def _group() -> None:
    """Train and judge reward models."""


@rm.command("train")
def train_reward_model_command(
    config: Annotated[Path, argument("The fields of RewardModelConfig. Paths in it start from its folder.", CONFIG)],
    output: Annotated[Path | None, option("Folder of the weights, instead of the file's output_dir.", "DIR")] = None,
    resume: Annotated[bool, option("Go on with a training that was interrupted.", None, RESUME)] = True,
    as_json: AsJson = False,
) -> None:
    """Train a reward model on pairs, rankings, outcomes or steps. Needs the extra "train".

    Rows are checked before the model loads. The folder holds the weights, reward_model.json with the figures on
    held-out prompts, and a model card. The same command goes on with a training that was killed.

    The file begins, for example, with:

    [dim]base_model: Qwen/Qwen3-0.6B
    dataset: pairs.jsonl
    output_dir: runs/rm[/]

    Example:

    [bold]rewardkit rm train reward_model.yaml[/]
    """
    plan = read_reward_plan(config, output)
    try:
        from trainer_adapter.reward_training.train import train_reward_model

        with info_log():
            result = train_reward_model(plan, callbacks=watchers(), resume=resume)
    except ModuleNotFoundError as error:
        raise ConfigError(str(error)) from error
    _finish(result, as_json=as_json)


rm.command("eval")(eval_command)
rm.command("monitor")(monitor_command)
rm.command("over-optimisation")(over_optimisation_command)


def read_reward_plan(path: Path, output: Path | None = None) -> RewardModelConfig:
    """Return the configuration in a YAML file, perhaps with another output folder."""
    from rewardkit.extending import read_yaml
    from trainer_adapter.reward_training.reward_model_config import RewardModelConfig

    data = read_yaml(path)
    if isinstance(data, dict) and output is not None:
        data = {**data, "output_dir": str(output.resolve())}
    return RewardModelConfig.from_dict(data, where=str(path), base=path.resolve().parent)


def _finish(result: RewardModelResult, *, as_json: bool) -> None:
    """Print what a training came to, with its figures, or write it as JSON."""
    from trainer_adapter.reward_training.figures import as_plain
    from trainer_adapter.run_identity import counted

    names = (
        "kind", "steps", "seconds", "training_prompts", "heldout_prompts", "prompts_cut", "completions_dropped",
        "rows_dropped", "already_finished",
    )  # fmt: skip
    values = {name: getattr(result, name) for name in names} | {
        "folder": str(result.folder),
        "figures": as_plain(result.figures),
        "reference": result.reference.model_dump(exclude={"quantiles"}),
    }
    done = f"{counted(result.steps, 'step')} in {result.seconds:,.0f} s"
    if result.already_finished:
        done = f"already finished, nothing run: {counted(result.steps, 'step')} done"
    lines = [
        f"{result.kind}: {done}, on {counted(result.training_prompts, 'prompt')}",
        f"on {counted(result.heldout_prompts, 'held-out prompt')}, with 95% intervals by a bootstrap over prompts:",
        *(f"  {name:<14} {figure}" for name, figure in result.figures.items()),
    ]
    if not result.figures:
        lines[1:] = ["nothing was held out, so nothing is known of its accuracy"]
    if result.prompts_cut or result.completions_dropped:
        lines.append(
            f"too long: {counted(result.prompts_cut, 'completion')} with a prompt cut at its beginning, "
            f"{counted(result.completions_dropped, 'completion')} left out"
        )
    if result.rows_dropped:
        lines.append(f"invalid: {counted(result.rows_dropped, 'row')} left out")
    lines.append(f"wrote {result.folder}")
    finish(values, lambda: typer.echo("\n".join(lines)), as_json=as_json)
