"""``rewardkit show``: a run at a glance, one of its steps, or one of its prompts through the epochs."""

from __future__ import annotations

import json
import math
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, TypeAlias

from rich.text import Text

from rewardkit.cli.arguments import AsJson, option
from rewardkit.cli.completion_lines import completion_json, completion_name, print_completions, prompt_name
from rewardkit.cli.exits import finish
from rewardkit.cli.group_by import GroupSearch, show_groups
from rewardkit.cli.matches import Matches, Search, show_matches
from rewardkit.cli.render import (
    ENDLESS,
    NONE,
    STATE_STYLES,
    Cells,
    Screen,
    align,
    causes,
    count_or_none,
    day,
    duration,
    group_by_key,
    number,
    one_line,
    screen,
    table,
)
from rewardkit.cli.run_argument import RunPlace
from rewardkit.cli.saved import write_saved
from rewardkit.cli.spread import show_spread
from rewardkit.cli.summary import Link, Spending, costs_text, link_text, recorded_links, spending_of
from rewardkit.errors import ConfigError, RecordError
from rewardkit.record.overview import RewardOverview, overviews
from rewardkit.record.places import run_path
from rewardkit.record.run_end import RunEnd, RunState
from rewardkit.record.values import Completion, StepSummary
from rewardkit.replay.glance import CANARY, METRICS, head_of, metric_points
from rewardkit.replay.recorded_run import Run
from rewardkit.shown.sparkline import sparkline
from rewardkit.shown.text import counted, plain, shortened

if TYPE_CHECKING:
    from rewardkit.dashboard.saved.scope import Scope

_ENDS = 3
_FLAGS = 5
_NAME_CHARS = 20
_SPARK = 20
_LISTS = ("--sort", "--limit", "--group-by", "--spread")  # Options of a list in the terminal
_LISTED = 20  # Completions that a search lists unless told


_Step: TypeAlias = Annotated[int | None, option("Show this step.", "N", min=0)]
_Prompt: TypeAlias = Annotated[
    int | None, option("Show all completions of this prompt through the epochs.", "N", min=0)
]
_Split: TypeAlias = Annotated[str, option("What is shown: train or eval; of a list also all.", "SPLIT")]
_Grep: TypeAlias = Annotated[str | None, option("List completions with a match of this regular expression.", "TEXT")]
_Where: TypeAlias = Annotated[list[str] | None, option("List completions that fit; may be repeated.", "judge<0.2")]
_Sort: TypeAlias = Annotated[str | None, option("List completions by this, -NAME the highest first.", "NAME")]
_Limit: TypeAlias = Annotated[int | None, option("List at most so many completions, or groups.", "N", min=1)]
_GroupBy: TypeAlias = Annotated[str | None, option("Show the mean of each group by this column of the data.", "COLUMN")]
_Reward: TypeAlias = Annotated[str | None, option("Of --group-by: this reward's own scores.", "NAME")]
_Spread: TypeAlias = Annotated[
    str | None, option("Show how this reward's values, or `reward`, lie over the steps.", "NAME")
]
_To: TypeAlias = Annotated[
    Path | None, option("Save the dashboard's page of it to this file instead.", "FILE", "--html")
]
_MaxMb: TypeAlias = Annotated[
    float | None, option("The size of that file at most, in MB; 20 unless given.", "N", min=1)
]
_Force: TypeAlias = Annotated[bool, option("Replace the file of --html if it is there.", None, "--force")]


class _Request(NamedTuple):
    """What is to be shown of a run."""

    step: int | None
    prompt: int | None
    search: Search
    group_by: str | None
    reward: str | None
    spread: str | None
    to: Path | None
    max_mb: float | None
    force: bool

    @property
    def searching(self) -> list[str]:
        """The options given that choose or list completions of the whole run."""
        values = {
            "--grep": self.search.grep, "--where": self.search.where or None, "--sort": self.search.sort,
            "--limit": self.search.limit, "--group-by": self.group_by, "--spread": self.spread,
        }  # fmt: skip
        return [name for name, value in values.items() if value is not None]

    def check(self) -> None:
        """Raise ConfigError where options do not go with each other."""
        search, searching = self.search, self.searching
        if self.step is not None and self.prompt is not None:
            raise ConfigError("--step and --prompt: give one of them")
        is_list = bool(searching) and self.group_by is None and self.spread is None and self.to is None
        if search.split not in ("train", "eval", *(["all"] if is_list else [])):
            lists = "; all goes with a list, by --sort, --where, --grep or --limit" if search.split == "all" else ""
            raise ConfigError(f"--split {search.split}: expected train or eval{lists}")
        if searching and (self.step is not None or self.prompt is not None):
            part = "write --where step=N or --where prompt=N for a part"
            raise ConfigError(f"{searching[0]}: lists completions of the run; {part}")
        if self.reward is not None and self.group_by is None:
            raise ConfigError(f"--reward {self.reward}: goes with --group-by COLUMN; list completions with --where")
        if self.group_by is not None and self.spread is not None:
            raise ConfigError("--group-by and --spread: give one of them")
        groups = next((name for name in searching if name in ("--group-by", "--spread")), None)
        order = next((name for name in searching if name in ("--sort", "--grep")), None)
        if groups is not None and order is not None:
            raise ConfigError(f"{groups} and {order}: choose completions with --where")
        self._check_saving([name for name in searching if name in _LISTS])

    def _check_saving(self, listing: Sequence[str]) -> None:
        if self.to is not None and listing:
            raise ConfigError(f"--html and {listing[0]}: a page sorts and lists by itself; leave it out")
        needing = {"--force": self.force or None, "--max-mb": self.max_mb}
        name = next((name for name, value in needing.items() if value is not None), None)
        if self.to is None and name is not None:
            raise ConfigError(f"{name}: is about the file of --html; name it")


def show_command(
    run: RunPlace,
    step: _Step = None,
    prompt: _Prompt = None,
    split: _Split = "train",
    grep: _Grep = None,
    where: _Where = None,
    sort: _Sort = None,
    limit: _Limit = None,
    group_by: _GroupBy = None,
    reward: _Reward = None,
    spread: _Spread = None,
    to: _To = None,
    max_mb: _MaxMb = None,
    force: _Force = False,
    as_json: AsJson = False,
) -> None:
    """Show a recorded RUN: its rewards over the steps, what failed, the worst and best completions, the versions.

    A reward's curve has its mean at each step, and `·` where no call scored; `zero variance` is the share of groups
    whose scores are all the same. --step shows one step in the same way; --prompt shows what became of one prompt, from
    its first completion to its last. Off a terminal, text is neither wrapped nor cut.

    --html saves the page of `rewardkit ui` with its data inside: one file, which a browser opens without a server and
    without the network. It has the run; with --step, --prompt, --where or --grep that part. What does not fit in
    --max-mb is left out, evenly over the steps; the page and this command say what.

    --grep, --where and --sort list completions of the whole run. --where takes a number of each (reward, plain_sum,
    advantage, tokens, step, prompt, id), a reward's own score, status or cause, or a column of the data; --sort takes
    texts too: completion, prompt_text, judge.reason, judge.error. --split all lists training and evaluations.

    --group-by shows the mean reward of each group of the data, such as each level, with a 95 % interval and a curve;
    --reward takes one reward's scores instead, --where a part of the completions, --limit sets the number of groups.
    Completions that were skipped or failed are in no mean. Many numbers become ranges, many values a rest.

    --spread shows which share of a reward's values, or of `reward`, the weighted sum, lies where, in --limit stretches
    of steps, and what moved from the first to the last.

    Examples:

    [bold]rewardkit show one
    rewardkit show runs/one --step 12
    rewardkit show one --prompt 0 --json
    rewardkit show one --grep 'or 363' --where 'judge<0.2' --where step=40 --sort=-reward
    rewardkit show one --where judge=timeout --where level=hard
    rewardkit show one --group-by level --reward correct --where 'step>=100'
    rewardkit show one --spread correct
    rewardkit show one --html one.html
    rewardkit show one --html errors.html --where judge=timeout[/]
    """
    search = Search(split, grep, where or [], sort, limit)
    request = _Request(step, prompt, search, group_by, reward, spread, to, max_mb, force)
    request.check()
    with Run.open(run_path(run)) as opened:
        _show(opened, request, as_json=as_json)


def _show(run: Run, request: _Request, *, as_json: bool) -> None:
    """Print what is asked for, or save the page of it."""
    search = request.search
    split, where, limit = search.split, search.where, search.limit
    if request.to is not None:
        write_saved(run, _scope_of(run, request), request.to, request.max_mb, force=request.force, as_json=as_json)
    elif request.group_by is not None:
        show_groups(run, GroupSearch(request.group_by, split, request.reward, where, limit), as_json=as_json)
    elif request.spread is not None:
        show_spread(run, request.spread, split, where, limit, as_json=as_json)
    elif request.searching:
        show_matches(run, search._replace(limit=limit or _LISTED), as_json=as_json)
    elif request.prompt is not None:
        _show_prompt(run, request.prompt, as_json=as_json)
    elif request.step is not None:
        _show_step(run, request.step, split, as_json=as_json)
    else:
        _show_run(run, split, as_json=as_json)


def _scope_of(run: Run, request: _Request) -> Scope:
    """Return what of a run is saved."""
    from rewardkit.dashboard.saved import scope

    search = request.search
    if request.step is not None:
        return scope.of_step(run, request.step, search.split)
    if request.prompt is not None:
        return scope.of_prompt(run, request.prompt)
    if search.grep is None and not search.where:
        return scope.whole_run(search.split)
    matches = Matches(run, search)
    ids = matches.selection.ids.tolist() if search.grep is None else [listed.row.id for listed in matches]
    if matches.is_stopped:
        raise KeyboardInterrupt
    text = [] if search.grep is None else [f"a match of {search.grep!r}"]
    return scope.of_matches(run, search.split, " and ".join([*search.where, *text]), ids)


def _show_run(run: Run, split: str, *, as_json: bool) -> None:
    """Print a run at a glance: its head, rewards, metrics, worst and best completions, versions and flags."""
    summaries = run.summaries(split=split)
    rewards = overviews(summaries)
    names = {*run.metric_names(split)}
    prefix = "" if split == "train" else "eval_"
    ordered = [*(f"{prefix}{name}" for name in METRICS), *sorted(name for name in names if name.startswith(CANARY))]
    metrics = {name: metric_points(run, name, split) for name in ordered if name in names}
    last = next((summary.step for summary in reversed(summaries) if summary.step is not None), None)
    ends = {end: run.by_id(run.ranked(last, _ENDS, best=end == "best", split=split)) for end in ("worst", "best")}
    totals = run.total_series(split)
    head = head_of(run)
    facts = ("reward", "number", "first_step", "digits")
    versions = [{name: getattr(version, name) for name in facts} for version in run.own_versions]
    flags = [event for event in run.events if event["kind"] == "flag"]
    calls = run.measured_calls(split)
    billed = {name: [call.metrics for call in own if not call.cached] for name, own in calls.items()}
    spending = spending_of(billed, failing={row.reward for row in rewards if row.failed})
    links = recorded_links(calls, spending)

    def show() -> None:
        console = screen(ENDLESS)
        _print_head(head, console)
        if not rewards:
            console.say(f"nothing is recorded of {split}", fit="wrap")
        else:
            _print_scores(rewards, totals, console)
            _print_calls(rewards, spending, links, console)
        _print_metrics(metrics, console)
        if rewards:
            _print_ends(ends, "" if last is None else f" of step {last}", console)
            if any(outcome.reason for rows in ends.values() for row in rows for outcome in row.outcomes.values()):
                of_step = "" if last is None else f" --step {last}"
                console.say(
                    (f"rewardkit logs {run.path.label}{of_step} lists the reasons of scores", "dim"), fit="wrap"
                )
            _print_versions(versions, console)
        _print_flags(flags, run.path.label, console)

    result = {
        **head,
        "split": split,
        "totals": totals,
        "rewards": [asdict(overview) for overview in rewards],
        "costs": {name: asdict(spent)["costs"] for name, spent in spending.items()},
        "link_costs": {name: asdict(spent)["links"] for name, spent in spending.items() if spent.links},
        "links": {name: {link: asdict(own) for link, own in chain.items()} for name, chain in links.items()},
        "metrics": metrics,
        **{end: [completion_json(row) for row in completions] for end, completions in ends.items()},
        "versions": versions,
        "flags": flags,
    }
    finish(result, show, as_json=as_json)


def _print_head(head: Mapping[str, Any], console: Screen) -> None:
    """Print where and when a run ran and how large it is, with a warning where its record is not whole."""
    end = RunEnd(RunState(head["state"]), head["state_reason"])
    state = (end.text, STATE_STYLES[end.state])
    time = NONE if head["began"] is None else f"{day(head['began'])}, {duration(head['seen'] - head['began'])}"
    console.say((head["name"], "bold"), "  ", state, f"  {time}", fit="wrap")
    machine, packages = head["machine"], head["packages"]
    versions = [f"{name} {packages[name]}" for name in ("torch", "transformers", "trl") if name in packages]
    cores = [counted(machine["processors"], "core")] if machine.get("processors") else []
    facts = [machine.get("host", ""), *cores, f"Python {head['python']}" if head["python"] else "", *versions]
    console.say((", ".join(filter(None, facts)), "dim"), fit="wrap")
    size = f"{counted(head['completions'], 'completion')} of {counted(head['prompts'], 'prompt')}"
    console.say(f"{head['steps_told']}, {size}", fit="wrap")
    warning = ("warning: ", "yellow")
    if end.state is RunState.KILLED:
        console.say(warning, f"killed: {end.reason}", fit="wrap")
    if not head["processes"]:
        reason = "a copy of a run that is being written lacks what its log, record.db-wal, has"
        console.say(warning, f"no process stands in it: {reason}", fit="wrap")
    if head["left_out"]:
        console.say(warning, f"{head['left_out']:,} without their text: the disk was slower than the run", fit="wrap")


def _print_scores(rewards: Sequence[RewardOverview], totals: Sequence[tuple[int, float]], console: Screen) -> None:
    """Print each reward's means, and below them the mean totals, where there are any."""
    console.print()
    rows: list[Cells] = [
        [
            console.name(row.reward, _NAME_CHARS),
            sparkline(row.means, _SPARK),
            *map(number, (row.first, row.last, row.std)),
            NONE if row.flat_share is None else f"{row.flat_share:.0%}",
        ]
        for row in rewards
    ]
    values = [value for _, value in totals]
    if values:
        ends = map(number, (values[0], values[-1]))
        rows.append([Text("total, weighted", style="bold"), sparkline(values, _SPARK), *ends, NONE, NONE])
    _print_curves(["reward", "mean", "first", "last", "std", "zero variance"], rows, console)
    if any(row.failed or row.skipped for row in rewards):
        console.print(Text(_MEANS, style="dim"))


_MEANS = "a reward's mean is over its scored calls; in the total a failed call counts with its reward's default"


def _print_curves(head: Sequence[str], rows: Sequence[Cells], console: Screen) -> None:
    curves = table(*head, left=2, rows=rows)
    curves.columns[1].no_wrap = True
    console.print(curves)


def _print_calls(
    rewards: Sequence[RewardOverview],
    spending: Mapping[str, Spending],
    links: Mapping[str, Mapping[str, Link]],
    console: Screen,
) -> None:
    """Print each reward's failed and skipped calls and their times, the slowest reward first, and what they cost."""
    console.print()
    rows: list[Cells] = [
        [
            console.name(row.reward, _NAME_CHARS),
            causes(row.failed, ", "),
            count_or_none(row.skipped),
            duration(row.p50_s),
            duration(row.p95_s),
        ]
        for row in sorted(rewards, key=lambda row: -(row.p95_s or 0.0))
    ]
    console.print(table("calls, slowest first", "failed", "skipped", "p50", "p95", left=2, rows=rows))
    for name in dict.fromkeys([*spending, *links]):
        spent = spending.get(name, Spending({}, {}))
        console.say((shortened(name, _NAME_CHARS), "bold"), f" took {costs_text(spent.costs)}")
        chain = links.get(name, {})
        for link_name in dict.fromkeys([*chain, *spent.links]):
            if link_name in chain:
                console.say(f"  {plain(link_text(link_name, chain[link_name]))}", fit="wrap")
            if link_name in spent.links:
                owner = " " if link_name in chain else shortened(link_name, _NAME_CHARS)
                console.say(f"  {owner} took {costs_text(spent.links[link_name])}")


def _print_metrics(metrics: Mapping[str, Sequence[tuple[int, float]]], console: Screen) -> None:
    """Print the trainer's metrics as curves, with their first and last number."""
    if not metrics:
        return
    console.print()
    rows: list[Cells] = []
    for name, series in metrics.items():
        values = [value for _, value in series]
        finite = [value for value in values if not math.isnan(value)] or [math.nan]
        rows.append([Text(name, style="bold"), sparkline(values, _SPARK), number(finite[0]), number(finite[-1])])
    _print_curves(["the trainer's", "curve", "first", "last"], rows, console)


def _print_ends(ends: Mapping[str, Sequence[Completion]], of_step: str, console: Screen) -> None:
    """Print the worst and the best completions, once where all have the same reward."""
    rewards = {row.reward for rows in ends.values() for row in rows}
    if len(rewards) == 1:
        ends = {"equally paid": ends["best"]}
    for end, rows in ends.items():
        if rows:
            lines = [
                (number(row.reward), completion_name(row), prompt_name(row), one_line(row.completion)) for row in rows
            ]
            _print_lines(f"{end} completions{of_step}", lines, console)


def _print_lines(title: str, rows: Sequence[Sequence[str]], console: Screen) -> None:
    console.heading(title)
    for line in align(rows):
        console.say(line, fit="cut")


def _print_versions(versions: Sequence[Mapping[str, Any]], console: Screen) -> None:
    rows = [
        (f"{row['reward']}@{row['number']}", row["digits"],
         "" if row["first_step"] is None else f"from step {row['first_step']}")
        for row in versions
    ]  # fmt: skip
    _print_lines("versions", rows, console)


def _print_flags(flags: Sequence[Mapping[str, Any]], name: str, console: Screen) -> None:
    """Print the last flags of the health checks that ran during the training."""
    if not flags:
        return
    last = f", the last {_FLAGS} of them" if len(flags) > _FLAGS else ""
    console.heading(f"{counted(len(flags), 'flag')}{last}")
    for flag in flags[-_FLAGS:]:
        body = flag["body"]
        text = body.get("words") or body.get("message") or json.dumps(body, ensure_ascii=False)
        step = "" if flag["step"] is None else f"step {flag['step']}  "
        reward = f"  {body['reward']}" if body.get("reward") else ""
        detector = str(body.get("detector", flag["kind"]))
        console.say((step, "dim"), (detector, "yellow"), reward, f"  {shortened(str(text), 400)}", fit="cut")
    console.say((f"rewardkit diagnose {shlex.quote(name)} says more", "dim"))


def _show_step(run: Run, step: int, split: str, *, as_json: bool) -> None:
    """Print a step: its rewards, its completions by prompt, and the trainer's metrics that are of no reward."""
    steps = run.steps(split)
    if step not in steps:
        have = f"it has those from {steps[0]} to {steps[-1]}" if steps else "it has no steps"
        raise RecordError(f"{run.name}: no step {step} of {split}; {have}")
    summaries = [summary for summary in run.summaries(split=split) if summary.step == step]
    logged = step + 1 if split == "train" else step  # the trainer counts a step when it is done, and evaluates then
    names, span = run.metric_names(split), (logged, logged)
    metrics = {name: value for name in names for _, value in metric_points(run, name, split, span)}
    completions = list(run.completions(step=step, split=split))

    def show() -> None:
        console = screen(ENDLESS)
        epoch = next((f", epoch {row.epoch:.2f}" for row in completions if row.epoch is not None), "")
        count = counted(len(completions), "completion")
        console.say((f"{run.name}, step {step}", "bold"), f"{epoch}, {count}", fit="wrap")
        _print_step(summaries, console)
        for group in group_by_key((row.prompt_index, row) for row in completions).values():
            console.heading(prompt_name(group[0]))
            console.say((one_line(group[0].prompt), "dim"), fit="cut")
            print_completions(group, console, when=False)
        general = {name: value for name, value in metrics.items() if not _is_of_a_reward(name, run.rewards)}
        if general:
            _print_lines("the trainer's", [(name, number(value)) for name, value in sorted(general.items())], console)

    result = {
        "name": run.name,
        "step": step,
        "split": split,
        "rewards": [summary._asdict() for summary in summaries],
        "metrics": metrics,
        "completions": [completion_json(row) for row in completions],
    }
    finish(result, show, as_json=as_json)


def _is_of_a_reward(metric: str, rewards: Sequence[str]) -> bool:
    """Whether a metric is that of one reward, such as ``rewards/format/mean``; these have a table of their own."""
    return any(name in rewards for name in metric.split("/")[1:])


def _print_step(summaries: Sequence[StepSummary], console: Screen) -> None:
    console.print()
    rows: list[Cells] = [
        [
            console.name(f"{row.reward}@{row.version}", _NAME_CHARS),
            *map(number, (row.mean, row.std, row.low, row.high)),
            count_or_none(row.skipped),
            causes(row.failed),
            f"{row.flat_groups} of {row.groups}" if row.groups else NONE,
        ]
        for row in summaries
    ]
    head = ["reward", "mean", "std", "min", "max", "skipped", "failed", "zero variance"]
    console.print(table(*head, left=1, rows=rows))


def _show_prompt(run: Run, index: int, *, as_json: bool) -> None:
    """Print a prompt with its columns, and all of its completions; of a scored file those of all rows of its text."""
    prompt = run.prompt(index)
    is_file = not run.steps() and not run.steps("eval")
    completions = (
        run.by_id(run.table(split=None, question=index).ids.tolist())
        if is_file
        else list(run.completions(prompt=index))
    )
    rows = len({row.prompt_index for row in completions})

    def show() -> None:
        console = screen(ENDLESS)
        count = counted(len(completions), "completion")
        several = f" of {rows:,} rows with its text" if rows > 1 else ""
        console.say((f"{run.name}, prompt {index}", "bold"), f": {count}{several}", fit="wrap")
        console.block(prompt.prompt if isinstance(prompt.prompt, str) else one_line(prompt.prompt), "  ")
        for name, value in prompt.columns.items():
            text = one_line(value if isinstance(value, str) else json.dumps(value))
            console.say((f"  {name}: ", "dim"), text, fit="cut")
        console.print()
        print_completions(completions, console, when=True)

    result = {
        "name": run.name,
        "index": index,
        "prompt": prompt.prompt,
        "columns": dict(prompt.columns),
        "completions": [completion_json(row) for row in completions],
    }
    finish(result, show, as_json=as_json)
