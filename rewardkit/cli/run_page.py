"""The page of a run that is sent to somebody: what :mod:`rewardkit.cli.show` tells, with graphs and completions."""

from __future__ import annotations

import difflib
import itertools
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rewardkit.cli.page_parts import (
    Markup,
    difference,
    document,
    element,
    folded_away,
    pairs,
    section,
    table,
    text_block,
)
from rewardkit.cli.report import duration, number
from rewardkit.cli.view import day
from rewardkit.health.examine import Diagnosis, diagnose_run
from rewardkit.health.flag import Flag
from rewardkit.record.overview import RewardOverview, overviews
from rewardkit.record.values import Completion, Version
from rewardkit.replay.charts import curves_of, other_charts, reward_charts, version_markers
from rewardkit.replay.glance import CANARY, head_of
from rewardkit.replay.recorded_run import Run
from rewardkit.shown.svg import Chart, Marker, chart_svg
from rewardkit.shown.text import counted
from rewardkit.types import Outcome, Status, Text

NONE = "\N{EN DASH}"
"""What stands for a number that is not known."""
METRICS = ("loss", "kl", "entropy", "grad_norm")
"""The trainer's metrics that have a graph, where they were recorded."""
_ENDS, _MOVED, _PROMPTS, _FAILURES, _EVIDENCE = 2, 2, 50, 20, 2
_PROMPT_CHARS, _SIDE_CHARS, _CODE_CHARS = 1_500, 6_000, 20_000
_CONFIG_CHARS = 200
_LINES = 400


@dataclass(slots=True)
class _Report:
    """A run while its page is made: what several sections need, read once."""

    run: Run
    split: str
    head: Mapping[str, Any]
    rewards: Sequence[RewardOverview]
    about: Mapping[str, Any]
    found: Diagnosis | None
    left_out: list[str] = field(default_factory=list)
    """What the page does not show, in words."""

    def shown(self, what: str, most: int, count: int) -> str:
        """Return how much of something is shown, and note what is not."""
        if count <= most:
            return ""
        words = f"{what}: {most:,} of {count:,}"
        self.left_out.append(words)
        return f"The page has {words[len(what) + 2 :]} {what}."


def run_page(run: Run, split: str = "train") -> tuple[str, list[str]]:
    """Return a run's page as HTML, and what it leaves out.

    Args:
        run: The run.
        split: ``"train"`` or ``"eval"``.
    """
    sessions = run.sessions
    report = _Report(
        run, split, head_of(run), overviews(run.summaries(split=split)), sessions[0]["about"] if sessions else {},
        diagnose_run(run) if split == "train" and run.count() else None,
    )  # fmt: skip
    parts = {
        "rewards": ("Rewards", _rewards(report)),
        "graphs": ("Graphs", _graphs(report)),
        "changes": ("Changes", _changes(report)),
        "health": ("Health", _health(report)),
        "failures": ("Failures", _failures(report)),
        "completions": ("Completions", _completions(report)),
        "prompts": ("Prompts", _prompts(report)),
        "configuration": ("Configuration", _configuration(report)),
    }
    contents = [(name, title) for name, (title, _) in parts.items()]
    whole = document(f"{run.name}: a run's report", contents, _head(report), *(part for _, part in parts.values()))
    return whole, report.left_out


def _head(report: _Report) -> Markup:
    head = report.head
    state = "running" if head["running"] else "ended"
    machine, packages = head["machine"], head["packages"]
    cores = counted(machine["processors"], "core") if machine.get("processors") else ""
    where = ", ".join(filter(None, [machine.get("host", ""), cores, machine.get("system", "")]))
    began = NONE if head["began"] is None else f"{day(head['began'])}, {duration(head['seen'] - head['began'])}"
    python = [f"Python {head['python']}"] if head["python"] else []
    rows = [
        ("Size", f"{head['steps_told']}, {counted(head['completions'], 'completion')} of "
         f"{counted(head['prompts'], 'prompt')}"),
        ("Began", began),
        ("Machine", where or NONE),
        ("Packages", ", ".join([*python, *(f"{name} {version}" for name, version in packages.items())]) or NONE),
        ("Program", f"{report.about.get('program') or NONE}, {counted(head['processes'], 'process')}"),
        ("Seeds", _seeds(report.about)),
    ]  # fmt: skip
    told = [element("p", words, kind="note") for words in _warnings(report)]
    title = element("h1", head["name"], element("span", state, kind=f"state {state}"))
    return element("header", title, *told, pairs(rows))


def _seeds(about: Mapping[str, Any]) -> str:
    settings = about.get("training") or {}
    seeds = {name: settings[name] for name in ("seed", "data_seed") if settings.get(name) is not None}
    return ", ".join(f"{name} {value}" for name, value in seeds.items()) or "not recorded"


def _warnings(report: _Report) -> Iterator[str]:
    if report.split != "train":
        yield f"Of the split {report.split}."
    if report.head["left_out"]:
        yield f"{report.head['left_out']:,} completions are without their text: the disk was slower than the run."
    if report.head["running"]:
        yield "The run was still going on when this page was made."


def _rewards(report: _Report) -> Markup:
    if not report.rewards:
        return section("rewards", "Rewards", element("p", f"Nothing is recorded of {report.split}.", kind="quiet"))
    weights = _weights(report)
    rows = [
        [
            one.reward, f"{weights[one.reward]:g}" if one.reward in weights else NONE,
            *map(_number, (one.first, one.last, one.std, one.low, one.high)),
            f"{one.scored:,}", _told(one.skipped, "skipped"), _failed(one.failed), _seconds(one.p50_s),
            _seconds(one.p95_s), NONE if one.flat_share is None else f"{one.flat_share:.0%}",
        ]
        for one in report.rewards
    ]  # fmt: skip
    head = ["reward", "weight", "first", "last", "std", "min", "max", "scored", "skipped", "failed", "p50",
            "p95", "zero variance"]  # fmt: skip
    note = (
        "Weights are those of the last step. First and last are the mean scores of the first and the last step with a"
        " score; std is of the last. Scored, skipped and failed are calls. Zero variance is the share of groups whose"
        " scores are all the same."
    )
    return section("rewards", "Rewards", table(head, rows), note=note)


def _weights(report: _Report) -> Mapping[str, float]:
    """Return the rewards' weights at the last step; of what has no steps, those that the process began with."""
    steps = report.run.steps(report.split)
    if not steps:
        began: Mapping[str, float] = report.about.get("rewards") or {}
        return began
    table = report.run.table((steps[-1], steps[-1]), report.split)
    asked = {name: numbers > 0 for name, numbers in table.versions.items()}
    return {name: float(table.weights[name][there][-1]) for name, there in asked.items() if there.any()}


def _told(count: int, kind: str) -> str:
    return element("span", f"{count:,}", kind=kind if count else "")


def _failed(causes: Mapping[str, int]) -> str:
    words = ", ".join(f"{cause} {count:,}" for cause, count in causes.items())
    return element("span", words, kind="failed") if words else "0"


def _number(value: float | None) -> str:
    return NONE if value is None else number(value)


def _seconds(value: float | None) -> str:
    return NONE if value is None else duration(value)


def _graphs(report: _Report) -> Markup:
    names = [one.reward for one in report.rewards]
    there = report.run.metric_names(report.split)
    canaries = [one for one in there if one.startswith(CANARY)]
    part = curves_of(report.run, report.split, [*(one for one in METRICS if one in there), *canaries])
    if not part.steps:
        words = "There are no graphs: nothing says at which steps this was scored."
        return section("graphs", "Graphs", element("p", words, kind="quiet"))
    versions = version_markers(report.run) if report.split == "train" else []
    flags = [
        Marker(one.last_step, f"{one.detector}: {one.words}", "flag", one.reward)
        for one in _flags(report)
        if one.last_step is not None
    ]
    charts = [
        *reward_charts(part, names, [*versions, *flags]),
        *other_charts(part, names, versions, duration),
    ]
    note = (
        "A band is one standard deviation to each side, for a length from the shortest to the longest. A gap is a step"
        " of which the number is not known; a hollow circle says of one why. A dashed line marks a new version of a"
        " reward, a triangle a flag."
    )
    return section("graphs", "Graphs", element("div", *map(_graph, charts), kind="graphs"), note=note)


def _graph(chart: Chart) -> Markup:
    return element("div", Markup(chart_svg(chart)), kind="graph")


def _flags(report: _Report) -> Sequence[Flag]:
    return report.found.flags if report.found else ()


def _changes(report: _Report) -> Markup:
    versions = report.run.own_versions
    rows = [
        [one.label, NONE if one.first_step is None else f"{one.first_step:,}", day(one.began), one.digits,
         one.reference or NONE]
        for one in versions
    ]  # fmt: skip
    parts: list[Markup] = [
        table(["version", "from step", "recorded", "fingerprint", "defined in"], rows, left=5, wide=("defined in",))
    ]
    parts += [_difference(old, new) for old, new in _following(versions)]
    changed = {one.reward for one in versions if one.number > 1}
    parts += [
        folded_away(f"{one.label}: source", _source(one)) for one in versions if one.reward not in changed
    ]  # fmt: skip
    asked = report.run.changes
    if asked:
        told = [
            [day(one.asked), one.reward, str(one.action), str(one.state), NONE if one.step is None else str(one.step),
             one.words or NONE]
            for one in asked
        ]  # fmt: skip
        head = ["when", "reward", "what", "answer", "at step", "why"]
        parts += [element("h3", "Asked for while the run went on"), table(head, told, left=6, wide=("why",))]
    return section("changes", "Changes of the rewards", *parts)


def _following(versions: Sequence[Version]) -> Iterator[tuple[Version, Version]]:
    """Yield each version with the one that it took the place of."""
    ordered = sorted(versions, key=lambda one: (one.reward, one.number))
    for old, new in itertools.pairwise(ordered):
        if old.reward == new.reward:
            yield old, new


def _difference(old: Version, new: Version) -> Markup:
    before, after = _code(old), _code(new)
    if before == after:
        before, after = _settings(old), _settings(new)
    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), old.label, new.label, lineterm="", n=5)
    shown = list(itertools.islice(lines, _LINES + 1))
    rest = ["… and more"] if len(shown) > _LINES else []
    title = f"{old.label} → {new.label}" + ("" if new.first_step is None else f", from step {new.first_step:,}")
    if not shown:
        return folded_away(title, element("p", "No difference of the source is recorded.", kind="quiet"))
    return folded_away(title, difference([*(one[:500] for one in shown[:_LINES]), *rest]))


def _code(one: Version) -> str:
    return (one.source or one.module or "")[:_CODE_CHARS]


def _settings(one: Version) -> str:
    return json.dumps(one.settings, indent=2, sort_keys=True, default=str)[:_CODE_CHARS]


def _source(one: Version) -> Markup:
    code = _code(one)
    return text_block(code, "code", _CODE_CHARS) if code else text_block(_settings(one), "code", _CODE_CHARS)


def _health(report: _Report) -> Markup:
    found = report.found
    if found is None:
        words = "The health checks look at training completions." if report.split != "train" else "No completions."
        return section("health", "Health", element("p", words, kind="quiet"))
    parts = [element("p", f"{found.gradient[0].upper()}{found.gradient[1:]}.")]
    if not found.flags:
        parts.append(element("p", f"No flags: {len(found.looked)} detectors looked and found nothing.", kind="up"))
    parts += [_flag(report, flag) for flag in found.flags]
    if found.not_looked:
        reasons = pairs((why, ", ".join(names)) for why, names in found.not_looked_by_reason.items())
        parts.append(folded_away(f"{counted(len(found.not_looked), 'detector')} could not look", reasons))
    note = "A flag is a reason to read the completions that it names, and no proof."
    return section("health", "Health", *parts, note=note)


def _flag(report: _Report, flag: Flag) -> Markup:
    whose = [flag.reward] if flag.reward else []
    title = ", ".join([flag.detector, *whose, *([f"steps {flag.steps}"] if flag.steps else [])])
    at_first = "" if flag.baseline is None else f", at first {flag.baseline:.3g}"
    numbers = f"{flag.value:.3g}, threshold {flag.threshold:.3g}{at_first}"
    shown = report.run.by_id(flag.rows[:_EVIDENCE])
    rows = f"Evidence: {len(shown)} of {counted(len(flag.rows), 'completion')} ({', '.join(map(str, flag.rows))})"
    evidence = [folded_away(rows, *map(_whole, shown))] if shown else []
    return element(
        "div", element("h3", title), element("p", flag.words), element("p", numbers, kind="quiet"),
        element("p", flag.action, kind="next"), *evidence, kind="flag",
    )  # fmt: skip


def _failures(report: _Report) -> Markup:
    kinds = report.run.failed_calls(report.split)
    if not kinds:
        return section("failures", "Failures", element("p", "No call failed.", kind="up"))
    cut = report.shown("kinds of failure", _FAILURES, len(kinds))
    note = f"Each kind with its first call, the most frequent first. {cut}"
    ends = {one.id: one for one in report.run.by_id([number for kind in kinds[:_FAILURES] for number in kind[3:]])}
    parts = [_failure(*kind[:3], ends[kind[3]], ends[kind[4]]) for kind in kinds[:_FAILURES] if kind[3] in ends]
    return section("failures", "Failures", *parts, note=note)


def _failure(reward: str, cause: str, count: int, one: Completion, last: Completion) -> Markup:
    outcome = one.outcomes[reward]
    title = element("h3", element("span", cause, kind="failed"), f" in {reward}@{one.versions[reward]}: "
                    f"{counted(count, 'call')}")  # fmt: skip
    until = f"; last at {_step(last)}" if count > 1 else ""
    parts = [
        element("p", f"First at {_place(one)}{until}.", kind="quiet"),
        text_block(outcome.error or "", chars=2_000),
    ]
    if outcome.traceback:
        parts.append(folded_away("Traceback", text_block(outcome.traceback[-_SIDE_CHARS:], "code")))
    if outcome.logs:
        parts.append(folded_away("What it printed", text_block(outcome.logs)))
    return element("div", title, *parts, folded_away("The completion", _whole(one)), kind="failure")


def _step(one: Completion) -> str:
    return "no step" if one.step is None else f"step {one.step:,}"


def _place(one: Completion) -> str:
    epoch = "" if one.epoch is None else f", epoch {one.epoch:.2f}"
    return f"{_step(one)}{epoch}, prompt {one.prompt_index:,}, completion {one.id:,}"


def _completions(report: _Report) -> Markup:
    run, split = report.run, report.split
    steps = run.steps(split)
    last = steps[-1] if steps else None
    best, worst = (run.by_id(run.ranked(last, _ENDS, best=best, split=split)) for best in (True, False))
    of_step = "" if last is None else f" of step {last:,}"
    parts: list[Markup] = []
    if not best:
        parts.append(element("p", "No completion has a reward.", kind="quiet"))
    elif best[0].reward == worst[0].reward:
        parts += [element("h3", f"All completions{of_step} have the same reward, such as"), _whole(best[0])]
    else:
        parts += [element("h3", f"Worst and best completions{of_step}, by the weighted sum")]
        parts += [
            _sides(("worst", low), ("best", high))
            for low, high in zip(worst, best, strict=False)
            if low.reward != high.reward
        ]
    parts += _most_changed(report)
    return section("completions", "Completions", *parts)


def _most_changed(report: _Report) -> Iterator[Markup]:
    """Yield the prompts whose mean reward fell and rose most, each with two completions."""
    moved = [one for one in _moves(report.run, report.split) if one.change is not None]
    ranked = sorted(moved, key=lambda one: one.change or 0.0)
    falls = [one for one in ranked[:_MOVED] if (one.change or 0.0) < 0]
    rises = [one for one in ranked[::-1][:_MOVED] if (one.change or 0.0) > 0]
    for words, those in (("got worse", falls), ("got better", rises)):
        for one in those:
            ends = _ends_of(report, one)
            if ends is None:
                continue
            yield element("h3", f"Prompt {one.index:,} {words}: mean reward {_number(one.first)} in epoch "
                          f"{one.epochs[0]:,}, {_number(one.last)} in epoch {one.epochs[-1]:,}")  # fmt: skip
            yield _sides(*ends)


@dataclass(frozen=True, slots=True)
class _Move:
    """What became of a prompt: its mean reward, the weighted sum, in its first and its last epoch."""

    index: int
    completions: int
    epochs: Sequence[int]
    first: float | None
    last: float | None
    best: float | None

    @property
    def change(self) -> float | None:
        if len(self.epochs) < 2 or self.first is None or self.last is None:
            return None
        return self.last - self.first


def _moves(run: Run, split: str) -> list[_Move]:
    rows = run.prompt_epochs(split)
    return [_move(index, [row[1:] for row in those]) for index, those in itertools.groupby(rows, lambda row: row[0])]


def _move(index: int, rows: Sequence[tuple[int | None, int, float | None, float | None]]) -> _Move:
    timed = [row for row in rows if row[0] is not None] or rows
    best = max((row[3] for row in rows if row[3] is not None), default=None)
    epochs = [row[0] for row in timed if row[0] is not None]
    return _Move(index, sum(row[1] for row in rows), epochs, timed[0][2], timed[-1][2], best)


def _ends_of(report: _Report, one: _Move) -> tuple[tuple[str, Completion], tuple[str, Completion]] | None:
    """Return a completion of the first and one of the last epoch, those that show the change best.

    ``None`` where no completion of one of these epochs has a reward.
    """
    found: list[tuple[str, Completion]] = []
    worse = (one.change or 0.0) < 0
    those = list(report.run.completions(prompt=one.index, split=report.split))
    for epoch, best in ((one.epochs[0], worse), (one.epochs[-1], not worse)):
        rewards = [
            (each.reward, -each.id, each)
            for each in those
            if each.reward is not None and each.epoch is not None and int(each.epoch) == epoch
        ]
        if not rewards:
            return None
        found.append((f"{'best' if best else 'worst'} of epoch {epoch:,}", (max if best else min)(rewards)[-1]))
    return found[0], found[1]


def _sides(left: tuple[str, Completion], right: tuple[str, Completion]) -> Markup:
    same = left[1].prompt_index == right[1].prompt_index
    above = [_prompt(left[1])] if same else []
    sides = [
        element(
            "div", element("h4", f"{words}: {_place(one)}"), *([] if same else [_prompt(one)]), _text(one.completion),
            _scores(one), kind="side",
        )
        for words, one in (left, right)
    ]  # fmt: skip
    return element("div", *above, element("div", *sides, kind="sides"), kind="pair")


def _whole(one: Completion) -> Markup:
    return element("div", element("p", _place(one), kind="quiet"), _prompt(one), _text(one.completion), _scores(one))


def _prompt(one: Completion) -> Markup:
    return folded_away(f"Prompt {one.prompt_index:,}: {_first_words(one.prompt)}", _text(one.prompt, _PROMPT_CHARS))


def _first_words(text: Text, chars: int = 80) -> str:
    words = _flat(text, 4 * chars)
    return " ".join(words.split())[:chars] + ("…" if len(words) > chars else "")


def _flat(text: Text, chars: int) -> str:
    if isinstance(text, str):
        return text[:chars]
    return " ".join(_message(one)[:chars] for one in text)[:chars]


def _message(message: Mapping[str, Any]) -> str:
    """Return what a message says: its content, and its calls of tools as JSON."""
    content = message.get("content")
    words = content if isinstance(content, str) else "" if content is None else json.dumps(content, default=str)
    calls = message.get("tool_calls")
    return "\n".join(filter(None, [words, json.dumps(calls, indent=2, default=str) if calls else ""]))


def _text(text: Text | None, chars: int = _SIDE_CHARS) -> Markup:
    if text is None:
        return element("p", "The text was not recorded.", kind="quiet")
    if isinstance(text, str):
        return text_block(text, chars=chars)
    parts = [
        part
        for one in text[:20]
        for part in (element("p", str(one.get("role", "?")), kind="role"), text_block(_message(one), chars=chars // 4))
    ]
    more = [element("p", f"and {counted(len(text) - 20, 'message')} more", kind="quiet")] if len(text) > 20 else []
    return element("div", *parts, *more)


def _scores(one: Completion) -> Markup:
    rows = [
        [f"{name}@{one.versions[name]}", _score(outcome), outcome.reason or outcome.error or ""]
        for name, outcome in one.outcomes.items()
    ]
    sums = [f"plain sum {_number(one.total)}", f"weighted sum {_number(one.reward)}"]
    sums += [] if one.advantage is None else [f"advantage {_number(one.advantage)}"]
    sums += [] if one.tokens is None else [f"{counted(one.tokens, 'token')}{', truncated' if one.truncated else ''}"]
    below = element("p", ", ".join(sums), kind="quiet")
    return element("div", table(["reward", "score", "reason"], rows, left=3, wide=("reason",)), below)


def _score(outcome: Outcome) -> Markup:
    """Return a score, or in words what became of the call in its place."""
    if outcome.status is Status.SCORED:
        return element("span", _number(outcome.score), kind="scored")
    stands_in = "" if outcome.score is None else f", {_number(outcome.score)} stands in"
    cause = f" ({outcome.cause})" if outcome.cause else ""
    return element("span", f"{outcome.status}{cause}{stands_in}", kind=str(outcome.status))


def _prompts(report: _Report) -> Markup:
    moves = _moves(report.run, report.split)
    if not moves:
        return section("prompts", "Prompts", element("p", "There are no prompts.", kind="quiet"))
    far = sorted(moves, key=lambda one: -abs(one.change or 0.0))[:_PROMPTS]
    texts = {one.index: one for one in (report.run.prompt(each.index) for each in far)}
    names = list(dict.fromkeys(name for one in texts.values() for name in one.columns))[:3]
    rows = [
        [
            f"{one.index:,}", _first_words(texts[one.index].prompt, 120),
            *(_first_words(str(texts[one.index].columns.get(name, "")), 40) for name in names),
            f"{one.completions:,}", _span(one.epochs), _number(one.first), _number(one.last), _change(one.change),
            _number(one.best),
        ]
        for one in far
    ]  # fmt: skip
    head = ["prompt", "text", *names, "completions", "epochs", "first", "last", "change", "best"]
    note = (
        "First and last are the mean rewards (weighted sums) of the prompt's first and last epoch, best is the best"
        " reward of all. The prompts that changed most come first. " + report.shown("prompts", _PROMPTS, len(moves))
    )
    return section("prompts", "Prompts", table(head, rows, left=2 + len(names), wide=("text",)), note=note)


def _span(epochs: Sequence[int]) -> str:
    if not epochs:
        return NONE
    return f"{epochs[0]:,}" if len(epochs) == 1 else f"{epochs[0]:,}-{epochs[-1]:,}"


def _change(value: float | None) -> str:
    if value is None:
        return NONE
    return element("span", f"{value:+.4g}", kind="up" if value > 0 else "down" if value < 0 else "")


def _configuration(report: _Report) -> Markup:
    parts = []
    for one in report.run.sessions[:8]:
        title = f"Process {one['id']}: rank {one['rank']}, {one['purpose']}, {day(one['began'])}"
        parts.append(
            folded_away(title, table(["setting", "value"], list(_flattened(one["about"])), left=2, wide=("value",)))
        )
    note = report.shown("processes", 8, len(report.run.sessions))
    return section("configuration", "Configuration", *parts, note=note)


def _flattened(settings: Mapping[str, Any], above: str = "") -> Iterator[list[str]]:
    """Yield settings with their values, those inside of others under both names."""
    for name, value in settings.items():
        if isinstance(value, Mapping) and value:
            yield from _flattened(value, f"{above}{name}.")
        else:
            words = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
            yield [f"{above}{name}", words[:_CONFIG_CHARS] + ("…" if len(words) > _CONFIG_CHARS else "")]
