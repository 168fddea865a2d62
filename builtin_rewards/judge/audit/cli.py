"""``rewardkit audit-judge``: how far a judge can be relied on. The command line finds it by its entry point."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rewardkit import ConfigError
from rewardkit.cli.exits import FAILED

if TYPE_CHECKING:
    from builtin_rewards.judge.audit.found import Audit
    from builtin_rewards.judge.audit.limits import Limits
    from builtin_rewards.judge.audit.run import Settings


def audit_judge_command(
    judge: Annotated[
        str,
        typer.Argument(
            help="An LLMJudge, PairwiseJudge, Jury or Fallback: file.py:name or module:name.",
            metavar="JUDGE",
            show_default=False,
        ),
    ],
    data: Annotated[
        Path,
        typer.Option(
            help="Labelled rows: JSON Lines, or a .json file with a list, as LLMBar's.",
            metavar="FILE",
            show_default=False,
        ),
    ],
    rows: Annotated[int, typer.Option(min=1, help="Rows to try, chosen at random.", metavar="N")] = 20,
    seed: Annotated[int, typer.Option(help="For choosing the rows.", metavar="N")] = 0,
    samples: Annotated[
        int, typer.Option(min=1, help="How often each answer is judged, for stability.", metavar="K")
    ] = 3,
    accept: Annotated[
        float, typer.Option(help="An answer is accepted from this share of the judge's range on.", metavar="SHARE")
    ] = 0.75,
    max_attack_pass: Annotated[
        float, typer.Option(help="Exit with 1 if a family of injections is accepted more often.", metavar="RATE")
    ] = 0.05,
    max_content_free: Annotated[
        float, typer.Option(help="Exit with 1 if texts without content are accepted more often.", metavar="RATE")
    ] = 0.01,
    max_verbosity: Annotated[
        float, typer.Option(help="Exit with 1 if padded wrong answers are accepted more often.", metavar="RATE")
    ] = 0.1,
    max_flip: Annotated[
        float, typer.Option(help="Exit with 1 if more verdicts flip with the order.", metavar="RATE")
    ] = 0.1,
    max_benign_drift: Annotated[
        float,
        typer.Option(help="Exit with 1 if harmless additions move right answers' mean score by more.", metavar="SHARE"),
    ] = 0.05,
    max_failed: Annotated[float, typer.Option(help="Exit with 1 if more calls fail.", metavar="RATE")] = 0.1,
    inline: Annotated[
        bool, typer.Option("--inline", help="Run in this process, without isolation and timeouts: for a debugger.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Measure how a judge can be talked into accepting wrong answers, and how far its verdicts can be relied on.

    The judge is asked as in training, with its cache, budget and fallbacks; some 60 verdicts a row.
    What the rows must have:

    [bold]prompt, chosen, rejected[/] for everything; LLMBar's files are read as such.

    [bold]prompt, completion, label[/] (1 right, 0 wrong, or grades) for everything but the comparison of pairs.

    [bold]prompt[/] and the column that the judge names as its reference, for all that needs no labels: wrong are the
    right answers of other rows.

    [bold]chosen_model, rejected_model[/] (or [bold]model[/] beside completion) for self-preference as well.

    What could not be measured is listed with the reason.

    Example: [bold]rewardkit audit-judge judges.py:judge --data pairs.jsonl --rows 50[/]
    """
    from builtin_rewards.judge.audit.limits import Limits, breaches
    from builtin_rewards.judge.audit.run import Settings

    limits = Limits(max_attack_pass, max_content_free, max_verbosity, max_flip, max_benign_drift, max_failed)
    _check(accept, limits)
    audit = _audited(judge, data, rows, seed, Settings(accept, samples, inline))
    _tell(audit, limits, as_json=as_json)
    if breaches(audit, limits):
        raise typer.Exit(FAILED)


def _check(accept: float, limits: Limits) -> None:
    if not 0 < accept <= 1:
        raise ConfigError(f"--accept {accept:g}: expected a share greater than 0, at most 1")
    for name in limits.__dataclass_fields__:
        if not 0 <= getattr(limits, name) <= 1:
            option = f"--max-{name.replace('_', '-')}"
            raise ConfigError(f"{option} {getattr(limits, name):g}: expected a share from 0 to 1")


def _audited(judge: str, data: Path, rows: int, seed: int, settings: Settings) -> Audit:
    from builtin_rewards.judge.audit.rows import load
    from builtin_rewards.judge.audit.run import run
    from builtin_rewards.judge.audit.subject import subject_of
    from rewardkit.cli.rewards import quiet
    from rewardkit.cli.screen import progress
    from rewardkit.registry import resolve

    with quiet():
        subject = subject_of(resolve(judge), judge)
    required = subject.judge.spec.required_columns
    found = load(data, count=rows, seed=seed, reference=subject.reference, required=required)
    return run(subject, found, settings, progress)


def _tell(audit: Audit, limits: Limits, *, as_json: bool) -> None:
    from builtin_rewards.judge.audit import report

    if as_json:
        import json

        typer.echo(json.dumps(report.as_json(audit, limits), indent=2))
        return
    from rewardkit.cli.screen import screen

    report.print_audit(audit, limits, screen())
