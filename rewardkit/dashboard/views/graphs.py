"""``graphs``: a run's curves by step, and what happened at which step."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any, NamedTuple
from urllib.parse import quote, unquote

from rewardkit.dashboard.query import SPLITS, Query
from rewardkit.dashboard.readers import OpenRun
from rewardkit.dashboard.saving import Per, Saved, ViewQuery
from rewardkit.errors import RecordError
from rewardkit.record.changes import Action, ChangeState
from rewardkit.record.sums import thin
from rewardkit.replay.charts import later_versions
from rewardkit.replay.curves import HIGH, LOW, VALUES, Curves, Number, Part
from rewardkit.replay.recorded_run import Run

MOST_METRICS = 60  # Metrics of the trainer that one answer has
MOST_SAVED = 2_000  # Steps that a saved page's graphs have
MOST_TIMES = 1000  # Steps whose times one answer has; between them time passes evenly
_USUAL = ("loss", "kl", "entropy", "grad_norm")
_CANARY = "canary/"  # How the names begin of what a reward model's monitor measured


class _About(NamedTuple):
    """What the page says of a graph."""

    title: str
    group: str
    unit: str
    help: str


_ABOUT = {
    "total_reward": _About(
        "total_reward", "rewards", "",
        "The weighted sum of a completion's scores, as the trainer computes it: the mean of each step, with a band of"
        " one standard deviation. Each step has the weights that it was trained with. Where"
        " all calls of a reward that counts failed, the line has a gap; where some did, a mark, with the reason."
        " plain sum is the sum without weights, of the rewards that weigh anything.",
    ),
    "total_reward_std": _About(
        "total_reward_std", "rewards", "",
        "The standard deviation of total_reward over the completions of a step."
        " reward_std is the trainer's own: of the weighted sum, within groups.",
    ),
    "failed": _About("failed", "failures", "share", "The share of a step's calls that failed, timeouts included."),
    "timeouts": _About("timeouts", "failures", "share", "The share of a step's calls that ran out of time."),
    "skipped": _About("skipped", "failures", "share", "The share of a step's calls that did not apply."),
    "time_p50": _About("time p50", "failures", "seconds", "The median time of a call."),
    "time_p95": _About("time p95", "failures", "seconds", "95 of 100 calls are at most so long."),
    "flat_groups": _About(
        "zero-variance groups", "training", "share",
        "The share of groups whose scores are all the same: from them this reward teaches nothing.",
    ),
    "length": _About(
        "completion length", "training", "tokens",
        "The mean length of a completion in tokens, with a band from the shortest to the longest of the step.",
    ),
    "truncated": _About(
        "truncated", "training", "share", "The share of completions that end at the token limit:"
        " TRL's completions/clipped_ratio."
    ),
}  # fmt: skip
_REWARD = (
    "The mean of the scores of each step, with a band of one standard deviation, and the lowest and highest of them."
    " The default of a failed call is no score and in none of them; TRL's rewards/<name>/mean has it in. A step at"
    " which no call scored is a gap with a hollow mark, one at which some failed has a small mark: both say why."
)
_METRIC = "{name}, as the trainer logs it after each step."


def view(opened: OpenRun, query: Query) -> dict[str, Any]:
    """Return the curves of a split, or of them the part that changed since the mark ``after``.

    Parameters: ``split`` (train), ``metrics`` (the trainer's, separated by commas, each percent-encoded), ``after``,
    and ``graphs``, the keys of those that are wanted in the same way; all unless given. With ``usual`` 1 the metrics
    are the usual ones, as far as the trainer logs them.
    """
    split = query.choice("split", SPLITS, "train")
    usual = query.integer("usual", 0, low=0, high=1)
    metrics = _usual(opened.run, split) if usual else _metrics(query.text("metrics", ""))
    with_std = list(dict.fromkeys([*metrics, _STD[split], _LENGTH[split]]))
    keys = _names(query.text("graphs", ""))
    curves = opened.cache.get(("graphs", split), 0, lambda: Curves(split))
    part = curves.part(opened.run, opened.version, with_std, query.integer("after"))
    return {
        "split": split,
        "steps": part.steps,
        "from": part.first,
        "unscored": part.unscored,
        "graphs": [
            graph
            for graph in itertools.chain(_graphs(part, opened.run.rewards, split), _metric_graphs(part, metrics))
            if not keys or graph["key"] in keys
        ],
        "usual": _usual(opened.run, split),
        "markers": opened.cache.get("markers", opened.version, lambda: markers(opened.run)),
        "mark": part.mark,
        "unread": part.unread,
    }


def times(opened: OpenRun, query: Query) -> dict[str, Any]:
    """Return when the steps of a ``split`` were scored, in seconds since 1970: pairs, at most :data:`MOST_TIMES`."""
    split = query.choice("split", SPLITS, "train")
    pairs = opened.cache.get(("times", split), opened.version, lambda: opened.run.step_times(split))
    return {"split": split, "times": thin(pairs, MOST_TIMES)}


def costs(opened: OpenRun, query: Query) -> dict[str, Any]:
    """Return what the calls of a ``split`` took of servers in all, by reward and metric; without rewards that ask none.

    Each has its ``sum``, and ``complete``, false where some calls do not say what they took.
    """
    split = query.choice("split", SPLITS, "train")
    by_reward = opened.cache.get(("costs", split), opened.version, lambda: opened.run.call_costs(split))
    return {"split": split, "rewards": [
        {"reward": reward, "costs": {metric: asdict(cost) for metric, cost in by_metric.items()}}
        for reward, by_metric in by_reward.items()
    ]}  # fmt: skip


_STD = {"train": "reward_std", "eval": "eval_reward_std"}
_LENGTH = {"train": "completions/mean_length", "eval": "eval_completions/mean_length"}


def _names(text: str) -> list[str]:
    return list(dict.fromkeys(unquote(name) for name in text.split(",") if name))


def _usual(run: Run, split: str) -> list[str]:
    return [name for name in run.metric_names(split) if name in _USUAL or name.startswith(_CANARY)][:MOST_METRICS]


def _metrics(text: str) -> list[str]:
    names = _names(text)
    if len(names) > MOST_METRICS:
        raise RecordError(f"metrics: {len(names)} names; expected at most {MOST_METRICS}")
    return names


def _graphs(part: Part, rewards: Sequence[str], split: str) -> Iterator[dict[str, Any]]:
    """Yield the graphs of the totals, each reward and the calls, with the trainer's own std and length in them."""
    lines: dict[str, dict[str, dict[str, Sequence[Number]]]] = defaultdict(lambda: defaultdict(dict))
    for (graph, line, role), column in part.columns.items():
        lines[graph][line][role] = column
    std = part.metrics.get(_STD[split], ())
    if any(value is not None for value in std):
        lines["total_reward_std"][_STD[split]][VALUES] = std
    length = part.metrics.get(_LENGTH[split], ())
    if not lines["length"] and any(value is not None for value in length):
        lines["length"][_LENGTH[split]][VALUES] = length
    total, total_std, *others = _ABOUT
    for key in [total, total_std, *(f"reward/{name}" for name in rewards), *others]:
        name = key.removeprefix("reward/")
        about = _ABOUT[key] if key in _ABOUT else _About(name, "rewards", "", _REWARD)
        notes = part.notes.get(key, ())
        ordered = [
            *(name for name in rewards if name in lines[key]),
            *(name for name in lines[key] if name not in rewards),
        ]
        yield _graph(key, about, {name: lines[key][name] for name in ordered}, notes)


def _metric_graphs(part: Part, metrics: Sequence[str]) -> Iterator[dict[str, Any]]:
    for name in metrics:
        about = _About(name, "metrics", "", _METRIC.format(name=name))
        yield _graph(f"metric/{name}", about, {name: {VALUES: part.metrics[name]}}, ()) | {"sparse": True}


def _graph(
    key: str, about: _About, lines: Mapping[str, Mapping[str, Sequence[Number]]], notes: Sequence[tuple[int, str]]
) -> dict[str, Any]:
    return {
        "key": key,
        "title": about.title,
        "group": about.group,
        "unit": about.unit,
        "words": about.help,
        "lines": [
            {"name": name, "values": columns.get(VALUES, ()), "low": columns.get(LOW), "high": columns.get(HIGH)}
            for name, columns in lines.items()
            if columns
        ],
        "notes": list(notes),
    }


def markers(run: Run) -> list[dict[str, Any]]:
    """Return what happened by step: versions after the first step, other changes of rewards, flags, resumptions."""
    events = [*_versions(run), *_changes(run), *_flags(run), *_resumptions(run)]
    return sorted(events, key=lambda event: event["step"])


def _versions(run: Run) -> Iterator[dict[str, Any]]:
    """Yield markers of the versions that came after the first step, with the version that each replaced."""
    for step, version in later_versions(run):
        before = f"{version.reward}@{version.number - 1}" if version.number > 1 else None
        message = f"{version.label} scores from here on"
        yield _marker(step, "version", version.reward, message) | {"version": version.label, "before": before}


def _changes(run: Run) -> Iterator[dict[str, Any]]:
    """Yield markers of the changes that bring no new version of a reward: new weights and removals."""
    for change in run.changes:
        if change.state is not ChangeState.ACCEPTED or change.step is None:
            continue
        if change.action is Action.WEIGHT:
            message = f"{change.reward} weighs {change.body.get('weight', '?')}"
            yield _marker(change.step, "change", change.reward, message)
        elif change.action is Action.REMOVE:
            yield _marker(change.step, "change", change.reward, f"{change.reward} is taken away")


def _flags(run: Run) -> Iterator[dict[str, Any]]:
    for event in run.events:
        if event["kind"] == "flag" and event["step"] is not None:
            body = event["body"]
            message = f"{body.get('detector', 'flag')}: {body.get('words', '')}"
            yield _marker(event["step"], "flag", body.get("reward"), message)


def _resumptions(run: Run) -> Iterator[dict[str, Any]]:
    starts = run.session_steps()
    first = min(starts, default=None)
    for session in run.sessions:
        if session["purpose"] == "run" and session["rank"] == 0 and session["id"] in starts and session["id"] != first:
            yield _marker(starts[session["id"]], "resume", None, "the training goes on from a checkpoint")


def _marker(step: int, kind: str, reward: str | None, message: str) -> dict[str, Any]:
    return {"step": step, "kind": kind, "reward": reward, "words": message}


def thinned(answer: dict[str, Any]) -> dict[str, Any]:
    """Return curves with at most :data:`MOST_SAVED` steps, evenly chosen, and those with a note besides."""
    steps = answer["steps"]
    if len(steps) <= MOST_SAVED:
        return answer
    noted = {step for graph in answer["graphs"] for step, _ in graph["notes"]}
    last = len(steps) - 1
    even = {round(index * last / (MOST_SAVED - 1)) for index in range(MOST_SAVED)}
    chosen = sorted(
        even | set(itertools.islice((index for index, step in enumerate(steps) if step in noted), MOST_SAVED))
    )

    def pick(column: Sequence[Number] | None) -> Sequence[Number] | None:
        return [column[index] for index in chosen] if column else column

    graphs = [
        graph | {"lines": [line | {name: pick(line[name]) for name in ("values", "low", "high")}
                           for line in graph["lines"]]}
        for graph in answer["graphs"]
    ]  # fmt: skip
    return answer | {"steps": [steps[index] for index in chosen], "graphs": graphs, "of_steps": len(steps)}


def _all_curves(opened: OpenRun, subject: ViewQuery) -> Iterable[ViewQuery]:
    """Yield the requests of each split's curves, with as many of the trainer's metrics as one answer has."""
    for split in SPLITS:
        names = list(dict.fromkeys([*_usual(opened.run, split), *opened.run.metric_names(split)]))[:MOST_METRICS]
        yield {"split": split, "metrics": ",".join(quote(name, safe="") for name in names)}


def _each_split(opened: OpenRun, subject: ViewQuery) -> Iterable[ViewQuery]:
    yield from ({"split": split} for split in SPLITS)


SAVED = (
    Saved("graphs", Per.RUN, _all_curves, keys=("split",), applied=("metrics", "usual"), shorten=thinned),
    Saved("times", Per.RUN, _each_split, keys=("split",)),
    Saved("costs", Per.RUN, _each_split, keys=("split",)),
)
"""What a saved page has of this view."""
