"""``rewardkit rm eval`` and ``rewardkit rm monitor``: how good a reward is, once and over time."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from rewardkit.commands import FAILED, AsJson, RunPlace, Timeout, Workers, argument, finish, option, share_option

if TYPE_CHECKING:
    from rewardkit.extending import InvalidRows
    from trainer_adapter.reward_evaluation.preference_report import PreferenceReport, SubsetReport

_MODEL = "A reward model's folder; or any reward, as file.py:name, module:name, a built-in's name, or a YAML file."
_PAIRS = "Preferences: JSON Lines, plain or packed with gzip, CSV, or Parquet; - for standard input."
_STEP = "The training step measured; by default the run's last, or one more than before."

Model = Annotated[str, argument(_MODEL, "MODEL")]
Scale = Annotated[
    Literal["logit", "probability"] | None,
    option("What a score is, for ECE; by default probability if the reward's range is 0 to 1, else logit."),
]
Bins = Annotated[int, option("Bins of the calibration error.", "N", min=1)]
Inline = Annotated[bool, option("Run in this process, without isolation and timeouts.", None, "--inline")]
MaxFailed = Annotated[float, share_option("Exit with 1 if a greater share of the rows fails.")]
Seed = Annotated[int, option("Seed of the order that pairs are put in, for ECE.", "N", min=0)]
InvalidRowHandling = Annotated[
    Literal["refuse", "drop"], option("What becomes of a row that cannot be read: all are refused, or it is left out.")
]
Limit = Annotated[int | None, option("Read only the first N rows.", "N", min=1)]
Subset = Annotated[str | None, option("The column of subsets; by default 'subset', if there is one.", "COLUMN")]


def eval_command(
    model: Model,
    pairs: Annotated[Path, argument(_PAIRS, "PAIRS")],
    subset: Subset = None,
    scale: Scale = None,
    bins: Bins = 10,
    limit: Limit = None,
    invalid_rows: InvalidRowHandling = "refuse",
    out: Annotated[Path | None, option("Write each row's scores here, as JSON Lines.", "FILE")] = None,
    min_accuracy: Annotated[float | None, share_option("Exit with 1 if the accuracy is below.")] = None,
    max_failed: MaxFailed = 0.1,
    workers: Workers = None,
    timeout: Timeout = None,
    inline: Inline = False,
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Measure how often MODEL prefers what people chose in PAIRS, and how far its scores can be taken as probabilities.

    A row has a prompt, what was chosen and what was rejected, as text or as messages:

    [dim]{"prompt": "2+2=", "chosen": "4", "rejected": "5"}[/]

    Without a prompt, chosen and rejected are whole conversations that begin alike. A list of rejected completions makes
    a row of best-of-several, a list of chosen ones a row of ties; both count as RewardBench counts them. A tie is no
    win. A row that could not be scored counts as neither won nor lost, and is reported. A row that cannot be read ends
    the command, unless [bold]--invalid-rows drop[/] leaves it out; the report counts those.

    Examples:

    [bold]rewardkit rm eval runs/reward-model pairs.jsonl
    rewardkit rm eval judges.py:judge pairs.parquet --subset topic --limit 200
    rewardkit rm eval my_rewards.py:correct pairs.csv --json --min-accuracy 0.7[/]
    """
    from builtin_rewards.reward_model import read_preferences
    from rewardkit.commands import check_writable, write_rows
    from rewardkit.extending import InvalidRows
    from trainer_adapter.reward_evaluation.preference_scoring import evaluate, reward_of, subset_of
    from trainer_adapter.reward_evaluation.scored_row import plain_row

    if out is not None:
        check_writable(out, [pairs, Path(model.partition(":")[0])])
    reward = reward_of(model, timeout)
    invalid = InvalidRows(invalid_rows)
    rows = read_preferences(pairs, limit=limit, invalid=invalid)
    column = subset_of(rows, subset)
    scored, report = evaluate(
        reward, rows, subset_column=column, scale=scale, bins=bins, seed=seed, workers=workers, inline=inline
    )
    if out is not None:
        write_rows(out, [plain_row(row) for row in scored])
    breaches = _breaches(report.overall, min_accuracy, max_failed)
    ending = {"out": out and str(out), "rows_dropped": invalid.count, "breaches": breaches}
    values = {**report.as_json(), "pairs": str(pairs), **ending}
    finish(
        values,
        lambda: _print_evaluation(report, invalid, out, breaches),
        as_json=as_json,
        code=FAILED if breaches else 0,
    )


def _print_evaluation(report: PreferenceReport, invalid: InvalidRows, out: Path | None, breaches: list[str]) -> None:
    """Print a report, the rows that are not in it, where it was written and which limits it breaks."""
    from rewardkit.commands import screen
    from trainer_adapter.reward_evaluation.report_printing import print_report

    print_report(report, screen())
    if invalid.count:
        typer.echo(f"{invalid.count:,} rows left out as they cannot be read; the first: {invalid.first}")
    if out is not None:
        typer.echo(f"wrote {out}")
    if breaches:
        typer.echo(f"NOT passed: {'; '.join(breaches)}")


def _breaches(whole: SubsetReport, min_accuracy: float | None, max_failed: float) -> list[str]:
    """Return a message for each limit that a report breaks."""
    breaches = []
    if not whole.scored:
        breaches.append("no row was scored")
    if whole.failed > max_failed * whole.rows:
        breaches.append(f"{whole.failed:,} of {whole.rows:,} rows failed (at most {max_failed:.0%})")
    if min_accuracy is not None and whole.accuracy.rate is not None and whole.accuracy.rate < min_accuracy:
        breaches.append(f"accuracy {whole.accuracy.rate:.1%} (at least {min_accuracy:.1%})")
    return breaches


def monitor_command(
    run: RunPlace,
    model: Model,
    canary: Annotated[Path, argument(_PAIRS, "CANARY")],
    step: Annotated[int | None, option(_STEP, "N", min=0)] = None,
    name: Annotated[str | None, option("The canary set's name in the record; by default the file's.", "NAME")] = None,
    new_baseline: Annotated[bool, option("Compare with this measurement from now on.", None, "--new-baseline")] = False,
    min_accuracy: Annotated[float | None, share_option("Also flag an accuracy that is surely below.")] = None,
    scale: Scale = None,
    bins: Bins = 10,
    limit: Limit = None,
    max_failed: MaxFailed = 0.1,
    workers: Workers = None,
    timeout: Timeout = None,
    inline: Inline = False,
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Measure MODEL on a CANARY set of preferences, and keep accuracy and ECE in RUN's record, beside the training.

    The first measurement is the baseline. A later one whose accuracy is lower, or whose calibration error is higher, by
    more than noise (99 %) raises the flag `refresh`: the reward model no longer knows what it is asked about. The exit
    code is then 1, as it is where too many rows failed or none was scored: nothing is recorded then. `rewardkit show
    RUN` and the dashboard show the curves `canary/NAME/accuracy` and `canary/NAME/ece`.

    Give it canaries of what the policy writes now: a set that stays the same shows a model that changed, a fresh one
    also a policy that moved away from what the model was trained on.

    Examples:

    [bold]rewardkit rm monitor one runs/reward-model canary.jsonl
    rewardkit rm monitor runs/one judges.py:judge canary-300.jsonl --name canary --step 300[/]
    """
    from builtin_rewards.reward_model import read_preferences
    from rewardkit.commands import run_path, screen
    from trainer_adapter.reward_evaluation.canary import Canary, canary_name
    from trainer_adapter.reward_evaluation.preference_scoring import evaluate, reward_of

    path = run_path(run)
    canaries = Canary(path, canary_name(canary if name is None else name), step)
    rows = read_preferences(canary, limit=limit)
    reward = reward_of(model, timeout)
    _, report = evaluate(reward, rows, scale=scale, bins=bins, seed=seed, workers=workers, inline=inline)
    breaches = _breaches(report.overall, None, max_failed)
    if breaches:
        finish(
            {**report.as_json(), "breaches": breaches, "recorded": False},
            lambda: typer.echo(f"NOT recorded: {'; '.join(breaches)}; the first: {report.first_error}"),
            as_json=as_json,
            code=FAILED,
        )
        raise typer.Exit(FAILED)  # as finish does; nothing below may be recorded
    measured = canaries.keep(report, new_baseline=new_baseline, min_accuracy=min_accuracy)

    def show() -> None:
        measured.print(screen())
        if canaries.is_new:
            typer.echo(f"{path.label}: a new record, because none was there yet")

    values = {**measured.as_json(), "run": path.label, "new_record": canaries.is_new}
    finish(values, show, as_json=as_json, code=FAILED if measured.flags else 0)


def over_optimisation_command(
    run: RunPlace,
    proxy: Annotated[str, argument("The reward that the training follows.", "PROXY")],
    gold: Annotated[str, argument("A better reward: recorded beside it, or scored since by rescore.", "GOLD")],
    svg: Annotated[Path | None, option("Write the graph here.", "FILE")] = None,
    as_json: AsJson = False,
) -> None:
    """Hold the PROXY of a recorded RUN against a GOLD reward over the distance from the first policy, √KL.

    Up to some distance both rise; beyond it the gold falls while the proxy goes on: the policy then learns the proxy's
    mistakes (Gao et al. 2022). Where that is more than noise the exit code is 1.

    The gold is a reward of weight 0 in the run, or one that [bold]rewardkit rescore[/] has scored it with; the run
    needs the trainer's kl, so a beta above 0.

    Examples:

    [bold]rewardkit rm over-optimisation one my_model quality
    rewardkit rm over-optimisation runs/one reward gold --svg gold.svg[/]
    """
    from rewardkit import ConfigError, Run
    from rewardkit.commands import check_writable, run_path, screen
    from trainer_adapter.reward_evaluation.over_optimisation import run_over_optimisation
    from trainer_adapter.reward_evaluation.report_printing import print_over_optimisation

    if proxy == gold:
        raise ConfigError(f"PROXY and GOLD are both {proxy!r}: name as GOLD a reward that the training does not follow")
    path = run_path(run)
    if svg is not None:
        check_writable(svg, path.files, "--svg")
    with Run.open(path) as opened:
        result = run_over_optimisation(opened, proxy, gold)
    if svg is not None:
        svg.write_text(result.svg(), encoding="utf-8")

    def show() -> None:
        print_over_optimisation(result, proxy, gold, screen())
        if svg is not None:
            typer.echo(f"wrote {svg}")

    values = {**result.as_json(), "svg": None if svg is None else str(svg)}
    finish(values, show, as_json=as_json, code=FAILED if result.flag else 0)
