"""``rewardkit audit-judge``: how far a judge can be relied on. The command line finds it by its entry point."""

from __future__ import annotations

import functools
from typing import Annotated, Any

import typer

from rewardkit.commands import (
    AsJson,
    Data,
    DataOption,
    RowCount,
    Seed,
    audit_code,
    data_path,
    finish,
    share_option,
)


def _most(what: str) -> Any:
    return share_option(f"Exit with 1 if {what}.")


def audit_judge_command(
    judge: Annotated[
        str,
        typer.Argument(
            help="A judge, jury or chain of them: file.py:name or module:name.", metavar="JUDGE", show_default=False
        ),
    ],
    data: Data = None,
    data_option: DataOption = None,
    rows: RowCount = 20,
    seed: Seed = 0,
    samples: Annotated[
        int, typer.Option(min=1, help="How often each answer is judged, for stability.", metavar="K")
    ] = 3,
    accept: Annotated[float, share_option("Accept from this share of the range on; in comparisons, wins.")] = 0.75,
    max_attack_pass: Annotated[float, _most("a family of injections is accepted more often")] = 0.05,
    max_content_free: Annotated[float, _most("texts without content are accepted more often")] = 0.01,
    max_verbosity: Annotated[float, _most("padded wrong answers are accepted more often")] = 0.1,
    max_flip: Annotated[float, _most("more verdicts flip with the order")] = 0.1,
    max_benign_drift: Annotated[float, _most("harmless additions move right answers' mean score by more")] = 0.05,
    max_failed: Annotated[float, _most("more calls fail")] = 0.1,
    as_json: AsJson = False,
) -> None:
    """Measure how a judge can be talked into accepting wrong answers, and how far its verdicts can be relied on.

    The judge is asked as in training, with its cache, budget and fallbacks; some 60 verdicts a row. How many there
    will be is told first, and how long they take once the first have come. Ctrl-C ends it and shows what is known.

    Rows have [bold]prompt, chosen, rejected[/], or LLMBar's columns; [bold]prompt, completion, label[/] (1 right, 0
    wrong); or [bold]prompt[/] and the judge's reference column. [bold]chosen_model, rejected_model[/], or
    [bold]model[/] beside completion, are for self-preference. What could not be measured is listed with the reason.

    Example:

    [bold]rewardkit audit-judge judges.py:judge pairs.jsonl --rows 50[/]
    """
    path = data_path(data, data_option)
    limits = {name.removeprefix("max_"): share for name, share in locals().items() if name.startswith("max_")}
    from builtin_rewards.judge.audit.answer_pairs import load
    from builtin_rewards.judge.audit.judge_report import print_audit
    from builtin_rewards.judge.audit.rounds import JudgeRounds
    from builtin_rewards.judge.audit.subject import AuditedJudge
    from rewardkit.commands import only, screen, told_progress

    subject = AuditedJudge(only(judge), judge)
    pairs = load(path, count=rows, seed=seed, reference=subject.reference)
    with told_progress(f"audit of {subject.judge.name}") as tick:
        rounds = JudgeRounds(subject, pairs, tick, accept=accept, samples=samples)
        audit = rounds.run(functools.partial(typer.echo, err=True))
    code = audit_code([audit], limits)
    finish(audit.as_json(limits), lambda: print_audit(audit, limits, screen()), as_json=as_json, code=code)
