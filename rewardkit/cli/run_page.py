"""The page of a run that is sent to somebody: what :mod:`rewardkit.cli.show` tells, with graphs and completions."""

from __future__ import annotations

import difflib
import itertools
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rewardkit.cli.page_completions import (
    SIDE_CHARS,
    completion_place,
    completions_section,
    prompts_section,
    step_of,
    whole_completion,
)
from rewardkit.cli.page_parts import (
    NONE,
    Markup,
    RunReport,
    difference,
    document,
    element,
    figure,
    folded_away,
    pairs,
    seconds_text,
    section,
    table,
    text_block,
)
from rewardkit.cli.render import day, duration
from rewardkit.health.examine import diagnose_run
from rewardkit.health.flag import Flag
from rewardkit.record.overview import overviews
from rewardkit.record.run_end import RunEnd, RunState
from rewardkit.record.values import Completion, FailedKind, Version
from rewardkit.replay.charts import curves_of, other_charts, reward_charts, version_markers
from rewardkit.replay.glance import CANARY, head_of
from rewardkit.replay.recorded_run import Run
from rewardkit.shown.svg import Marker, chart_svg
from rewardkit.shown.text import counted, shortened

METRICS = ("loss", "kl", "entropy", "grad_norm")  # the trainer's metrics that have a graph, where they were recorded
_FAILURES, _EVIDENCE, _PROCESSES = 20, 2, 8
_CONFIG_CHARS = 200
_CODE_CHARS = 20_000
_LINES = 400


def run_page(run: Run, split: str = "train") -> tuple[str, list[str]]:
    """Return the HTML page of a run's split, ``"train"`` or ``"eval"``, and what it leaves out."""
    sessions = run.sessions
    report = RunReport(
        run, split, head_of(run), overviews(run.summaries(split=split)), sessions[0]["about"] if sessions else {},
        diagnose_run(run) if split == "train" and run.count() else None,
    )  # fmt: skip
    parts = {
        "rewards": ("Rewards", _rewards(report)),
        "graphs": ("Graphs", _graphs(report)),
        "changes": ("Changes", _changes(report)),
        "health": ("Health", _health(report)),
        "failures": ("Failures", _failures(report)),
        "completions": ("Completions", completions_section(report)),
        "prompts": ("Prompts", prompts_section(report)),
        "configuration": ("Configuration", _configuration(report)),
    }
    contents = [(name, title) for name, (title, _) in parts.items()]
    whole = document(f"{run.name}: a run's report", contents, _head(report), *(part for _, part in parts.values()))
    return whole, report.left_out


def _head(report: RunReport) -> Markup:
    """Return the top of the page: name and state, what a reader should be warned of, size, machine and packages."""
    head = report.head
    end = RunEnd(RunState(head["state"]), head["state_reason"])
    machine, packages = head["machine"], head["packages"]
    cores = counted(machine["processors"], "core") if machine.get("processors") else ""
    where = ", ".join(filter(None, [machine.get("host", ""), cores, machine.get("system", "")]))
    beginning = NONE if head["began"] is None else f"{day(head['began'])}, {duration(head['seen'] - head['began'])}"
    python = [f"Python {head['python']}"] if head["python"] else []
    rows = [
        ("Size", f"{head['steps_told']}, {counted(head['completions'], 'completion')} of "
         f"{counted(head['prompts'], 'prompt')}"),
        ("Began", beginning),
        ("Machine", where or NONE),
        ("Packages", ", ".join([*python, *(f"{name} {version}" for name, version in packages.items())]) or NONE),
        ("Program", f"{report.about.get('program') or NONE}, {counted(head['processes'], 'process')}"),
        ("Seeds", _seeds(report.about)),
    ]  # fmt: skip
    notes = [element("p", note, kind="note") for note in _warnings(report)]
    title = element("h1", head["name"], element("span", end.text, kind=f"state {end.state}"))
    return element("header", title, *notes, pairs(rows))


def _seeds(about: Mapping[str, Any]) -> str:
    settings = about.get("training") or {}
    seeds = {name: settings[name] for name in ("seed", "data_seed") if settings.get(name) is not None}
    return ", ".join(f"{name} {value}" for name, value in seeds.items()) or "not recorded"


def _warnings(report: RunReport) -> Iterator[str]:
    """Yield what a reader should know of the page, each a sentence."""
    if report.split != "train":
        yield f"Of the split {report.split}."
    if report.head["left_out"]:
        yield f"{report.head['left_out']:,} completions are without their text: the disk was slower than the run."
    if report.head["running"]:
        yield "The run was still going on when this page was made."


def _rewards(report: RunReport) -> Markup:
    """Return the section with the table of the rewards."""
    if not report.rewards:
        return section("rewards", "Rewards", element("p", f"Nothing is recorded of {report.split}.", kind="quiet"))
    weights = _weights(report)
    rows = [
        [
            row.reward, f"{weights[row.reward]:g}" if row.reward in weights else NONE,
            *map(figure, (row.first, row.last, row.std, row.low, row.high)),
            f"{row.scored:,}", _count(row.skipped, "skipped"), _failed(row.failed), seconds_text(row.p50_s),
            seconds_text(row.p95_s), NONE if row.flat_share is None else f"{row.flat_share:.0%}",
        ]
        for row in report.rewards
    ]  # fmt: skip
    head = ["reward", "weight", "first", "last", "std", "min", "max", "scored", "skipped", "failed", "p50",
            "p95", "zero variance"]  # fmt: skip
    note = (
        "Weights are those of the last step. First and last are the mean scores of the first and the last step with a"
        " score; std is of the last. Scored, skipped and failed are calls. Zero variance is the share of groups whose"
        " scores are all the same."
    )
    return section("rewards", "Rewards", table(head, rows), note=note)


def _weights(report: RunReport) -> Mapping[str, float]:
    """Return the rewards' weights at the last step; without steps, those that the first process began with."""
    steps = report.run.steps(report.split)
    if not steps:
        weights: Mapping[str, float] = report.about.get("rewards") or {}
        return weights
    table = report.run.table((steps[-1], steps[-1]), report.split)
    steps_by_reward = {name: numbers > 0 for name, numbers in table.versions.items()}
    return {name: float(table.weights[name][scored][-1]) for name, scored in steps_by_reward.items() if scored.any()}


def _count(count: int, kind: str) -> str:
    return element("span", f"{count:,}", kind=kind if count else "")


def _failed(causes: Mapping[str, int]) -> str:
    text = ", ".join(f"{cause} {count:,}" for cause, count in causes.items())
    return element("span", text, kind="failed") if text else "0"


def _graphs(report: RunReport) -> Markup:
    """Return the section of the graphs, with marks for new versions and flags."""
    names = [row.reward for row in report.rewards]
    recorded = report.run.metric_names(report.split)
    canaries = [name for name in recorded if name.startswith(CANARY)]
    part = curves_of(report.run, report.split, [*(name for name in METRICS if name in recorded), *canaries])
    if not part.steps:
        reason = "There are no graphs: nothing says at which steps this was scored."
        return section("graphs", "Graphs", element("p", reason, kind="quiet"))
    versions = version_markers(report.run) if report.split == "train" else []
    flags = [
        Marker(flag.last_step, f"{flag.detector}: {flag.words}", "flag", flag.reward)
        for flag in (report.diagnosis.flags if report.diagnosis else ())
        if flag.last_step is not None
    ]
    charts = [*reward_charts(part, names, [*versions, *flags]), *other_charts(part, names, versions, duration)]
    graphs = [element("div", Markup(chart_svg(chart)), kind="graph") for chart in charts]
    note = (
        "A band is one standard deviation to each side, for a length from the shortest to the longest. A gap is a step"
        " of which the number is not known; a hollow circle says of one why, and a small full one"
        " which failed calls a value is without. A dashed line marks a new version of a reward, a triangle a flag."
    )
    return section("graphs", "Graphs", element("div", *graphs, kind="graphs"), note=note)


def _health(report: RunReport) -> Markup:
    """Return the section of the diagnosis: the gradient, the flags, and the detectors that could not look."""
    diagnosis = report.diagnosis
    if diagnosis is None:
        reason = "The health checks look at training completions." if report.split != "train" else "No completions."
        return section("health", "Health", element("p", reason, kind="quiet"))
    parts = [element("p", f"{diagnosis.gradient[0].upper()}{diagnosis.gradient[1:]}.")]
    if not diagnosis.flags:
        parts.append(element("p", diagnosis.summary, kind="up"))
    parts += [_flag(report, flag) for flag in diagnosis.flags]
    if diagnosis.blind_spots:
        parts.append(folded_away("What cannot be seen", *(element("p", line) for line in diagnosis.blind_spots)))
    note = "A flag is a reason to read the completions that it names, and no proof."
    return section("health", "Health", *parts, note=note)


def _flag(report: RunReport, flag: Flag) -> Markup:
    """Return a flag with its figures, its next action, and some of the completions that show it."""
    steps = f"steps {flag.steps}" if flag.steps else ""
    title = ", ".join(filter(None, (flag.detector, flag.reward, steps)))
    at_first = "" if flag.baseline is None else f", at first {flag.baseline:.3g}"
    numbers = f"{flag.value:.3g}, threshold {flag.threshold:.3g}{at_first}"
    completions = report.run.by_id(flag.rows[:_EVIDENCE])
    rows = f"Evidence: {len(completions)} of {counted(len(flag.rows), 'completion')} ({', '.join(map(str, flag.rows))})"
    evidence = [folded_away(rows, *map(whole_completion, completions))] if completions else []
    return element(
        "div", element("h3", title), element("p", flag.words), element("p", numbers, kind="quiet"),
        element("p", flag.action, kind="next"), *evidence, kind="flag",
    )  # fmt: skip


def _failures(report: RunReport) -> Markup:
    """Return the section of failed calls, by kind, the most frequent first."""
    kinds = report.run.failed_calls(report.split)
    if not kinds:
        return section("failures", "Failures", element("p", "No call failed.", kind="up"))
    cut = report.note_limit("kinds of failure", _FAILURES, len(kinds))
    note = f"Each kind with its first call, the most frequent first. {cut}"
    preview = kinds[:_FAILURES]
    ends = {row.id: row for row in report.run.by_id([number for kind in preview for number in (kind.first, kind.last)])}
    parts = [_failure(kind, ends[kind.first], ends[kind.last]) for kind in preview if kind.first in ends]
    return section("failures", "Failures", *parts, note=note)


def _failure(kind: FailedKind, first: Completion, last: Completion) -> Markup:
    """Return a kind of failure: where it came first and last, and the first call's error, output and completion."""
    outcome = first.outcomes[kind.reward]
    title = element("h3", element("span", kind.cause, kind="failed"),
                    f" in {kind.reward}@{first.versions[kind.reward]}: {counted(kind.calls, 'call')}")  # fmt: skip
    until = f"; last at {step_of(last)}" if kind.calls > 1 else ""
    where = element("p", f"First at {completion_place(first)}{until}.", kind="quiet")
    parts = [where, text_block(outcome.error or "", chars=2_000)]
    if outcome.traceback:
        parts.append(folded_away("Traceback", text_block(outcome.traceback[-SIDE_CHARS:], "code")))
    if outcome.logs:
        parts.append(folded_away("What it printed", text_block(outcome.logs)))
    return element("div", title, *parts, folded_away("The completion", whole_completion(first)), kind="failure")


def _configuration(report: RunReport) -> Markup:
    parts = []
    for session in report.run.sessions[:_PROCESSES]:
        title = f"Process {session['id']}: rank {session['rank']}, {session['purpose']}, {day(session['began'])}"
        settings = table(["setting", "value"], list(_flatten(session["about"])), left=2, wide=("value",))
        parts.append(folded_away(title, settings))
    note = report.note_limit("processes", _PROCESSES, len(report.run.sessions))
    return section("configuration", "Configuration", *parts, note=note)


def _flatten(settings: Mapping[str, Any], above: str = "") -> Iterator[list[str]]:
    """Yield pairs of a setting's name and value; a nested setting has the names above it as a prefix."""
    for name, value in settings.items():
        if isinstance(value, Mapping) and value:
            yield from _flatten(value, f"{above}{name}.")
        else:
            text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
            yield [f"{above}{name}", shortened(text, _CONFIG_CHARS)]


def _changes(report: RunReport) -> Markup:
    """Return the section on the rewards' versions and on the changes that were requested during the run."""
    versions = report.run.own_versions
    rows = [
        [version.label, NONE if version.first_step is None else f"{version.first_step:,}", day(version.began),
         version.digits, version.reference or NONE]
        for version in versions
    ]  # fmt: skip
    head = ["version", "from step", "recorded", "fingerprint", "defined in"]
    parts: list[Markup] = [table(head, rows, left=len(head), wide=("defined in",))]
    parts += [_difference(old, new) for old, new in _successive_versions(versions)]
    changed = {version.reward for version in versions if version.number > 1}
    parts += [
        folded_away(f"{version.label}: source", text_block(_code(version) or _settings(version), "code", _CODE_CHARS))
        for version in versions
        if version.reward not in changed
    ]
    rows = [
        [day(request.asked), request.reward, str(request.action), str(request.state),
         NONE if request.step is None else str(request.step), request.words or NONE]
        for request in report.run.changes
    ]  # fmt: skip
    if rows:
        head = ["when", "reward", "what", "answer", "at step", "why"]
        parts += [element("h3", "Asked for while the run went on"), table(head, rows, left=len(head), wide=("why",))]
    return section("changes", "Changes of the rewards", *parts)


def _successive_versions(versions: Sequence[Version]) -> Iterator[tuple[Version, Version]]:
    """Yield pairs of a reward's version and the next one."""
    ordered = sorted(versions, key=lambda version: (version.reward, version.number))
    for old, new in itertools.pairwise(ordered):
        if old.reward == new.reward:
            yield old, new


def _difference(old: Version, new: Version) -> Markup:
    """Return the difference of two versions' sources, or of their settings where the sources are the same."""
    before, after = _code(old), _code(new)
    if before == after:
        before, after = _settings(old), _settings(new)
    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), old.label, new.label, lineterm="", n=5)
    excerpt = list(itertools.islice(lines, _LINES + 1))
    rest = ["… and more"] if len(excerpt) > _LINES else []
    title = f"{old.label} → {new.label}" + ("" if new.first_step is None else f", from step {new.first_step:,}")
    nothing = element("p", "No difference of the source is recorded.", kind="quiet")
    return folded_away(title, difference([*(line[:500] for line in excerpt[:_LINES]), *rest]) if excerpt else nothing)


def _code(version: Version) -> str:
    return (version.source or version.module or "")[:_CODE_CHARS]


def _settings(version: Version) -> str:
    return json.dumps(version.settings, indent=2, sort_keys=True, default=str)[:_CODE_CHARS]
