"""``rewardkit check``: before training, whether every row suits every reward, and what a call costs."""

from __future__ import annotations

import functools
import math
import statistics
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

from rich.table import Table
from rich.text import Text

from rewardkit.audit.engine import form_probe, rollout_of
from rewardkit.audit.rows import REFERENCE_COLUMNS, AuditRow, gold_column, row_of
from rewardkit.audit.skips import FLAW_NAMES, accepted_flaws, check_name, takes_comments
from rewardkit.cli.arguments import AsJson, Data, DataOption, Gold, LoadTimeout, Rewards, Workers, data_path, option
from rewardkit.cli.examination_report import print_examination, print_unpaid, write_flaws
from rewardkit.cli.exits import FAILED, finish
from rewardkit.cli.misfits import Misfit, print_misfits
from rewardkit.cli.progress import collect
from rewardkit.cli.render import NONE, count_or_none, duration, fold, number, screen, table
from rewardkit.cli.reward_check import (
    RewardCheck,
    composition_checks,
    describe_skips,
    describe_unscored,
    flaws_of,
    unscored_lines,
    untried_forms,
)
from rewardkit.cli.rewards import Leaves, load_rewards
from rewardkit.cli.summary import forecast
from rewardkit.declare.decorator import Reward
from rewardkit.declare.spec import Kind
from rewardkit.examinations.catalogue import EXAMINATIONS
from rewardkit.examinations.data_flaws import data_flaws
from rewardkit.examinations.examination import examine, rows_to_examine
from rewardkit.examinations.right_pay import (
    RightAnswer,
    RightPay,
    UnpaidAnswer,
    expected_forms,
    floor_of,
    group_of,
    is_paid,
    lesser_answers,
    paid_silence,
    reads_answers,
    silent_rollouts,
    skipped_silence,
    wrong_rollouts,
)
from rewardkit.examinations.without_answers import own_completions, why_no_answers
from rewardkit.rows import read_rows, trainer_warnings
from rewardkit.rows.files import unit_of
from rewardkit.rows.reader import Row
from rewardkit.runtime.names import missing_columns, unread_columns
from rewardkit.runtime.row_names import ID_COLUMNS, without_place
from rewardkit.runtime.target import time_to_load_s
from rewardkit.serving.choice import scorer_of
from rewardkit.shown.text import plain, shortened
from rewardkit.types import Outcome, Rollout, Status
from sandbox import LOAD_TIMEOUT_S

_ROWS = 16  # Rows whose right answers are scored, unless asked for more
_SPARE = 8  # times as many rows are tried as are examined, where the reward skips some
_MORE_S = 5.0  # Seconds of calls that the references of further rows may take
_LEAST_CALL_S = 1e-3
_NUMBERS_WIDTH = 69
_NUMBER_WIDTH = 9
_NAME_CHARS = 20  # a name of so many characters is not broken
_ScoreAll = Callable[[str, Sequence[Rollout]], list[Outcome]]
_GROUP = 8  # completions of a prompt, as TRL's num_generations has it


def check_command(
    rewards: Rewards,
    data: Data = None,
    data_option: DataOption = None,
    rows: Annotated[
        int | None,
        option(
            "Score the right answers of the first N rows; by default of 16, and of more with references in 5 s.",
            "N",
            min=0,
        ),
    ] = None,
    num_generations: Annotated[
        int | None,
        option("Completions of a group; by default as many as the first row's completions, else 8.", "N", min=2),
    ] = None,
    gold: Gold = None,
    examine_rows: Annotated[
        int,
        option("Examine the first N rows by completions that must pass or fail.", "N", "--examine", min=0),
    ] = 16,
    skip: Annotated[
        list[str] | None,
        option("Accept a kind of flaw that the rewards mean so, by its name; may be repeated.", "NAME"),
    ] = None,
    out: Annotated[Path | None, option("Write each flaw of each row to FILE, as JSON Lines.", "FILE")] = None,
    workers: Workers = None,
    load_timeout: LoadTimeout = LOAD_TIMEOUT_S,
    as_json: AsJson = False,
) -> None:
    """Check before you train that every row of DATA suits every one of REWARDS; or that a task can be trained on.

    Every column that a reward reads is coerced in every row. Then the right answers of the first rows are scored,
    if the data has them, and the time of a call is shown beside the reward's timeout. A reward that pays few of them
    is named in the first line.

    Golds are examined too: which wrong answers near a gold are paid like it, and in which right forms it is not paid.
    A reward that means it so says it in its function, as in "# audit: skip not_recognised REASON".

    Rows of code are examined too: whether the reference passes their tests, and whether an empty program, functions
    that return None and changed references fail.

    The folder of a task in Harbor's form, or a folder of such tasks, may stand in the place of REWARDS, without DATA.
    Its solution must pass its tests; what the agent finds, an empty folder, and the solution changed in one place at a
    time, --examine times, must not.

    Exit code 1 means that a row failed, that a reward pays few of the right answers, or that a row of code has tests
    that cannot run, cannot fail, or refuse its reference. A warning, such as that a reward skipped every right answer
    or that TRL refuses a column's name, does not change the exit code.

    Examples:

    [bold]rewardkit check my_rewards.py rows.jsonl
    rewardkit check my_rewards.py:correct rows.jsonl --gold target --json
    rewardkit check tasks/ --examine 4[/]
    """
    if folders := _task_folders(rewards):
        from rewardkit.cli.check_tasks import check_tasks  # what grades a folder takes long to import

        check_tasks(folders, examine_rows, as_json=as_json)
        return
    path = data_path(data, data_option)
    reward_set = load_rewards(rewards)
    lines = read_rows(path)
    checks = []
    skipped = {check_name(name, FLAW_NAMES, "--skip"): "with --skip" for name in skip or ()}
    scoring = _Scoring(path, rows, examine_rows, gold, workers, load_timeout, skipped)
    leaves = Leaves(reward_set).leaves
    for leaf in leaves:
        check = check_columns(leaf, lines)
        check.unit = unit_of(path)
        check.group = _group_size(leaf, lines, num_generations)
        _score(Leaves(reward_set, leaf), leaf, lines, check, scoring)
        checks.append(check)
    code = 0 if all(check.is_ok for check in checks) else FAILED
    of_leaf = dict(zip(leaves, checks, strict=True))
    for leaf, untried in untried_forms(reward_set.rewards, of_leaf).items():
        _score_forms(leaf, lines, of_leaf[leaf], scoring, Leaves(reward_set, leaf), untried)
    compositions = composition_checks(reward_set.rewards, of_leaf)
    trainers = trainer_warnings(lines[0].values)
    unread = _unread_columns(leaves, lines[0].values)
    named = [name for leaf in leaves for name in leaf.spec.named_columns]
    unscored = unscored_lines(checks)
    flaws = data_flaws(lines, gold_column(lines[0].values, gold, named, str(path)))
    if out is not None:
        write_flaws(out, [flaw for check in checks for flaw in flaws_of(check)], flaws, lines)
    result = {
        "rewards": [check.as_json() for check in checks],
        "compositions": [check.as_short_json() for check in compositions],
        "warnings": trainers,
        "unread_columns": [*unread],
        "data_flaws": [flaw.as_json() for flaw in flaws],
        "unscored_lines": unscored,
    }
    notes = [*trainers, *(flaw.describe(unit_of(path)) for flaw in flaws), *describe_unscored(unscored, unit_of(path))]
    finish(
        result,
        lambda: _print(checks, compositions, notes, [*unread.values()], unit_of(path)),
        as_json=as_json,
        code=code,
    )


def _task_folders(rewards: str) -> list[Path]:
    """Return the folders of tasks that are named: itself, or those directly below, in the order of their names."""
    root = Path(rewards)
    files = [root / "task.toml"] if (root / "task.toml").is_file() else sorted(root.glob("*/task.toml"))
    return [file.parent for file in files]


def _unread_columns(leaves: Sequence[Reward[..., Any]], columns: Collection[str]) -> dict[str, str]:
    """Return the columns that neither a reward reads nor this command, each with how a line names it; ids are neither.

    It adds which parameter has a near name that the data lacks.
    """
    others = {"prompt", "completion", "completions", "completion_ids", *REFERENCE_COLUMNS, *ID_COLUMNS}
    unread = unread_columns(leaves, columns, others)
    return {name: f"{shortened(name, 60)!r}" + (f" ({hint})" if hint else "") for name, hint in unread.items()}


_Forms = Collection[tuple[int, str]]  # Lines of rows, and a right answer's text


@dataclass(frozen=True, slots=True)
class _Scoring:
    """What of the data is scored, and how."""

    path: Path
    rows: int | None  # Rows whose right answers are scored; `None` for 16, and more where that is quick
    examined: int  # Rows that are examined
    gold: str | None
    workers: int | None
    load_timeout_s: float
    skipped: Mapping[str, str]  # Kinds of flaws that the command accepts

    def scorer_of(self, parts: Leaves) -> Any:
        return scorer_of(parts, workers=self.workers, load_timeout_s=self.load_timeout_s, max_infrastructure_rate=1.0)


def _score(parts: Leaves, leaf: Reward[..., Any], lines: Sequence[Row], check: RewardCheck, scoring: _Scoring) -> None:
    """Score the right answers of the first rows and examine rows; add what comes of it to ``check``."""
    gold = gold_column(lines[0].values, scoring.gold, leaf.spec.named_columns, str(scoring.path)) if lines else None
    rows = _ROWS if scoring.rows is None else scoring.rows
    answers = _right_answers(leaf, lines[:rows], gold, check)
    others = _other_references(leaf, lines[rows:], gold, check) if scoring.rows is None else []
    completions: list[RightAnswer] = []
    if rows and lines and not answers:
        if leaf.spec.is_async:  # what a call costs can be known without right answers
            completions = own_completions(leaf, _good_rows(lines[:rows], gold, check), check.group or 1)
        _note_no_answers(leaf, lines, rows, gold, check, has_forecast=bool(completions))
    examined = {
        item: rows_to_examine(item, leaf, _good_rows(lines, gold, check), scoring.examined * _SPARE, gold)
        for item in EXAMINATIONS
    }
    if not answers and not completions and not any(examined.values()) and not time_to_load_s(leaf):
        return
    with scoring.scorer_of(parts) as scorer:
        scorer.wait_loaded()

        def outcomes_of(title: str, tries: Sequence[Rollout]) -> list[Outcome]:
            # The rewards that it asks are scored only where it asks them.
            return collect(f"{title} of {leaf.name}", scorer.stream(tries), [leaf.name], len(tries))[leaf.name]

        if answers:
            _score_right_answers(leaf, answers, others, check, gold, outcomes_of)
        if completions:
            outcomes = outcomes_of("check", [rollout for answer in completions for rollout in answer.rollouts])
            _add_costs(check, [answer.row.line for answer in completions], outcomes, "completion")
        for examination, chosen in examined.items():
            if chosen:
                score = functools.partial(outcomes_of, examination.name)
                result = examine(examination, leaf, chosen, len(lines), score, scoring.examined)
                accepted = {**accepted_flaws(leaf), **scoring.skipped}
                check.examinations.append(replace(result, accepted=accepted, has_comments=takes_comments(leaf)))


def _score_forms(
    leaf: Reward[..., Any], lines: Sequence[Row], check: RewardCheck, scoring: _Scoring, parts: Leaves, forms: _Forms
) -> None:
    """Score golds in further forms, named by line and text, for the compositions that ``leaf`` is a part of."""
    gold = gold_column(lines[0].values, scoring.gold, leaf.spec.named_columns, str(scoring.path))
    # References are left out, for they count as they are written.
    rows = [row for row in _good_rows(lines, gold, check) if not row.reference_completions]
    tries = [(row, form) for row in rows for form in expected_forms(row) if (row.line, form.text) in forms]
    rollouts = [rollout_of([leaf], row, form_probe(form)) for row, form in tries]
    if not rollouts:
        return
    with scoring.scorer_of(parts) as scorer:
        outcomes = collect(f"check of {leaf.name}", scorer.stream(rollouts), [leaf.name], len(rollouts))[leaf.name]
    check.outcomes |= {(row.line, form.text): outcome for (row, form), outcome in zip(tries, outcomes, strict=True)}


def check_columns(reward: Reward[..., Any], lines: Sequence[Row]) -> RewardCheck:
    """Coerce every column that a reward reads in every row; return a check with the misfits and its warnings."""
    check = RewardCheck(reward.name, len(lines), reward.options.timeout_s)
    if reason := reward.options.why_failing_pays:
        check.warnings.append(reason)
    for name in reward.spec.bare_columns:
        values_of = (row.values[name] for row in lines if name in row.values)
        kinds = sorted({"float" if isinstance(value, float) else type(value).__name__ for value in values_of})
        if kinds:
            reason = f"column {name!r} has no annotation, so it is passed on as it is in the data ({', '.join(kinds)})"
            check.warnings.append(f"{reason}; annotate the parameter")
    values = [row.values for row in lines]
    misfits = [*missing_columns(reward, values), *reward.misfits(values)]
    if doubts := reward.doubts(values):
        first, more = doubts[0], f"; {len(doubts)} rows are like it" if len(doubts) > 1 else ""
        check.warnings.append(f"line {lines[first.row].line}, column {first.column!r}: {first.error}{more}")
    misfits.sort(key=lambda misfit: misfit.row)
    check.misfits = [Misfit(lines[row].line, column, error) for row, column, error in misfits]
    return check


def _right_answers(
    leaf: Reward[..., Any], lines: Sequence[Row], gold: str | None, check: RewardCheck
) -> list[RightAnswer]:
    """Return right answers to score. Groups are made of fewer rows, for the same cost."""
    rows = [(row, form) for row in _good_rows(lines, gold, check) for form in expected_forms(row)[:1]]
    size = check.group or 1
    texts = [*dict.fromkeys(form.text for _, form in rows)]
    return [
        RightAnswer(row, form, group_of(leaf, row, form, texts, size)) for row, form in rows[: -(-len(rows) // size)]
    ]


def _note_no_answers(
    leaf: Reward[..., Any], lines: Sequence[Row], rows: int, gold: str | None, check: RewardCheck, *, has_forecast: bool
) -> None:
    """Add to ``check`` why it scores no right answer, and a warning where the costs of an async reward stay unknown."""
    misfits = {misfit.line: misfit.column for misfit in reversed(check.misfits) if misfit.column is not None}
    reason = why_no_answers(lines[:rows], misfits, gold, len(lines))
    check.not_looked_at.append(f"whether it pays right answers: {reason}")
    if leaf.spec.is_async and not has_forecast:
        reason = "it cannot be called" if misfits else "no right answer and no completion was found to score"
        check.warnings.append(f"what 1,000 completions take is not known: {reason}")


def _other_references(
    leaf: Reward[..., Any], lines: Sequence[Row], gold: str | None, check: RewardCheck
) -> list[RightAnswer]:
    """Return the references of further rows; ``[]`` where a call costs requests, and for groups."""
    if leaf.spec.kind is Kind.GROUP or leaf.spec.is_async:
        return []
    rows = (row for row in _good_rows(lines, gold, check) if row.references)
    return [
        RightAnswer(row, form, [rollout_of([leaf], row, form_probe(form))])
        for row in rows
        for form in expected_forms(row)[:1]
    ]


def _score_right_answers(
    leaf: Reward[..., Any],
    answers: Sequence[RightAnswer],
    further: Sequence[RightAnswer],
    check: RewardCheck,
    gold: str | None,
    score: _ScoreAll,
) -> None:
    """Score right answers, and beside them answers that are empty or wrong; add what comes of it to ``check``.

    Of ``further`` answers so many are scored as take a few seconds.
    """
    rollouts = [rollout for answer in answers for rollout in answer.rollouts]
    silent, wrong = silent_rollouts(leaf, rollouts), wrong_rollouts(leaf, answers)
    outcomes = score("check", [*rollouts, *silent, *wrong])
    right, others = outcomes[: len(rollouts)], outcomes[len(rollouts) :]
    _add_scores(check, answers, right)
    skips = skipped_silence(answers, right, others[: len(silent)], others[len(silent) :], check.unit)
    check.warnings += [skips] if skips else []
    quick = further[: int(_MORE_S / max(check.p50_s or 0.0, _LEAST_CALL_S))]
    if quick:
        right += score("check", [rollout for answer in quick for rollout in answer.rollouts])
        answers = [*answers, *quick]
        _add_scores(check, answers, right)
    reasons = [outcome.reason for outcome in right if outcome.cause is None and outcome.score is None]
    if reasons and len(reasons) == len(right):
        check.warnings.append(describe_skips(reasons))
    scores = {line: value for line, value in check.scores.items() if value is not None}
    if not scores:
        return
    floor = floor_of(leaf, others)
    silence = paid_silence(leaf, right, others[: len(silent)], floor) if reads_answers(leaf, gold) else None
    check.warnings += [silence] if silence else []
    unpaid = [answer for answer in answers if not is_paid(leaf, scores.get(answer.row.line, math.inf), floor)]
    forms = 1 + _score_further_forms(leaf, unpaid, scores, check, score)
    lines = tuple(line for line, value in scores.items() if not is_paid(leaf, value, floor))
    noun = "reference" if any(answer.row.references for answer in answers) else "gold"
    earned = [
        UnpaidAnswer(row.line, outcome.score, form.text, row.gold.text if row.gold else None, outcome.reason)
        for (row, form, _), outcome in zip(answers, right[:: check.group or 1], strict=True)
        if outcome.status is Status.SCORED and outcome.score is not None
    ]
    refused = [answer for answer in earned if not is_paid(leaf, answer.score, floor)]
    solutions = {row.line for row, form, _ in answers if form.text in row.references} - {*lines}
    pay = RightPay(
        noun,
        len(scores),
        lines,
        forms,
        floor,
        check.unit,
        tuple(answer for answer in refused if answer.line in lines),
        tuple(answer for answer in refused if answer.line in solutions),
        tuple(lesser_answers(earned)),
    )
    check.add_pay(leaf, pay, reads_gold=reads_answers(leaf, gold))


def _score_further_forms(
    leaf: Reward[..., Any],
    unpaid: Sequence[RightAnswer],
    scores: dict[int, float],
    check: RewardCheck,
    score: _ScoreAll,
) -> int:
    """Score answers in the other forms of their rows and note the best score of each; return the most tried of a row.

    None are tried of rewards that score groups or ask a server.
    """
    if leaf.spec.kind is Kind.GROUP or leaf.spec.is_async:
        return 0
    tries = [(answer.row, form) for answer in unpaid for form in expected_forms(answer.row)[1:]]
    outcomes = score("check", [rollout_of([leaf], row, form_probe(form)) for row, form in tries]) if tries else []
    for (row, form), outcome in zip(tries, outcomes, strict=True):
        check.outcomes[row.line, form.text] = outcome
        if outcome.status is Status.SCORED and outcome.score is not None:
            scores[row.line] = max(scores[row.line], outcome.score)
    check.scores |= scores
    return max(Counter(row.line for row, _ in tries).values(), default=0)


def _good_rows(lines: Sequence[Row], gold: str | None, check: RewardCheck) -> Iterator[AuditRow]:
    """Yield the rows that suit the reward, with the golds of a column."""
    bad = {misfit.line for misfit in check.misfits}
    yield from (row_of(line.line, line.values, gold) for line in lines if line.line not in bad)


def _group_size(leaf: Reward[..., Any], lines: Sequence[Row], size: int | None) -> int | None:
    """Return how many completions a reward's groups have; ``None`` where it scores single ones."""
    if leaf.spec.kind is not Kind.GROUP:
        return None
    own = lines[0].values.get("completions") if lines else None
    return size or (len(own) if isinstance(own, list | tuple) and len(own) > 1 else _GROUP)


def _add_scores(check: RewardCheck, answers: Sequence[RightAnswer], outcomes: Sequence[Outcome]) -> None:
    """Add the outcomes of all right answers so far to ``check``: scores by line, misfits, costs and times."""
    for (row, form, _), outcome in zip(answers, outcomes[:: check.group or 1], strict=True):
        check.outcomes[row.line, form.text] = outcome
        if outcome.cause is None:
            check.scores[row.line] = outcome.score
    _add_costs(check, [answer.row.line for answer in answers], outcomes, "right answer")


def _add_costs(check: RewardCheck, lines: Sequence[int], outcomes: Sequence[Outcome], noun: str) -> None:
    """Add to ``check`` what calls took, and which rows' calls failed; ``noun`` is what of a row was scored."""
    for line, outcome in zip(lines, outcomes[:: check.group or 1], strict=True):
        if outcome.cause is not None:
            error = f"scoring its {noun}: {outcome.cause}: {without_place(outcome.error or '')}"
            check.misfits += [misfit for misfit in [Misfit(line, None, error)] if misfit not in check.misfits]
    costs = forecast(outcomes)
    check.per_1000 = {metric: cost.sum for metric, cost in costs.items()}
    check.at_least = [metric for metric, cost in costs.items() if not cost.complete]
    check.p50_s = statistics.median(outcome.duration_s for outcome in outcomes)
    check.max_s = max(outcome.duration_s for outcome in outcomes)


def _print(
    checks: Sequence[RewardCheck],
    compositions: Sequence[RewardCheck],
    warnings: Sequence[str],
    unread: Sequence[str],
    unit: str,
) -> None:
    console = screen()
    for check in checks:
        if check.unpaid:
            console.say((f"{check.reward}: ", "bold"), (check.unpaid, "red"), fit="wrap")
    console.fitted_table(
        functools.partial(_table, [*checks, *compositions], console.width), ["skipped"], ["answers", "slowest"]
    )
    for warning in warnings:
        console.say(("warning: ", "yellow"), plain(warning), fit="wrap")
    if unread:
        noun = "the column" if len(unread) == 1 else "the columns"
        console.say("no reward reads ", plain(f"{noun} {', '.join(unread)}"), fit="wrap")
    for check in checks:
        name = (f"{check.reward}: ", "bold")
        print_misfits(console, check.reward, check.misfits, unit)
        for warning in check.warnings:
            console.say(name, ("warning: ", "yellow"), plain(warning), fit="wrap")
        if check.right_answers is not None:
            print_unpaid(console, check.reward, check.right_answers)
        for reason in check.not_looked_at:
            console.say(name, "not looked at: ", plain(reason), fit="wrap")
        if check.per_1000:
            groups = "" if check.group is None else f" in groups of {check.group}"
            console.say(name, f"1,000 completions{groups} take {check.forecast}", fit="wrap")
        for result in check.examinations:
            print_examination(console, check.reward, result, unit)


def _table(checks: Sequence[RewardCheck], width: int, left_out: Collection[str]) -> Table:
    names = ["reward", "rows", "failing", "answers", "mean\nscore", "skipped", "call\np50", "slowest", "timeout"]
    longest = max(len(check.reward) for check in checks)
    room = max(min(_NAME_CHARS, longest), width - _NUMBERS_WIDTH + _NUMBER_WIDTH * len(left_out))
    rows = []
    for check in checks:
        scores = [score for score in check.scores.values() if score is not None]
        failing = len({misfit.line for misfit in check.misfits})
        times = map(duration, (check.p50_s, check.max_s, check.timeout_s))
        cells: list[str | Text] = [
            Text(fold(shortened(check.reward, 60), room), style="bold"),
            f"{check.rows:,}",
            Text(f"{failing:,}", style="red") if failing else Text(NONE),
            count_or_none(len(check.scores)),
            number(sum(scores) / len(scores) if scores else None),
            count_or_none(len(check.scores) - len(scores)),
            *times,
        ]
        rows.append([cell for name, cell in zip(names, cells, strict=True) if name not in left_out])
    return table(*(name for name in names if name not in left_out), left=1, rows=rows)
