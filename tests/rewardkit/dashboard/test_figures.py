"""Figures of the page and of the commands, each computed again from the record by plain SQL and numpy.

The run has weights of 10, 0.05, 0, -0.5, -2 and -10 that change while it trains, failed calls with a default and
without, skips, a step at which a reward only failed, two versions of a reward, two ranks, evaluations and epochs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import small_run
from figures_run import EPOCH_STEPS, GAP_STEP, NAMES, STEPS, Plain, record_file, record_training

from rewardkit.dashboard.query import Query
from rewardkit.dashboard.readers import OpenRun, RunCache, RunCaches
from rewardkit.dashboard.views import breakdown, completions, graphs, logs, pairs, runs
from rewardkit.record.places import place_of_runs
from rewardkit.replay.recorded_run import Run

CORRECT, STYLE, JUDGE, TINY = range(len(NAMES))
LAST = STEPS - 1


class Shown:
    """What the page and the commands say of the runs; each answer is asked once."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._opened = {name: OpenRun(Run.open(folder / name), RunCache()) for name in ("one", "a", "b")}
        self.view = cache(self._view)
        self.told = cache(self._told)
        self.graph = cache(self._graph)

    def close(self) -> None:
        for opened in self._opened.values():
            opened.run.close()

    def _view(self, view: Callable[..., Any], run: str = "one", **query: Any) -> Any:
        return view(self._opened[run], Query({name: str(value) for name, value in query.items()}))

    def _told(self, *arguments: str) -> Any:
        return small_run.told(*(argument.replace("RUN", str(self.folder)) for argument in arguments))

    def _graph(self, key: str, line: str, role: str = "values", split: str = "train") -> Any:
        answer = self.view(graphs.view, split=split)
        lines = next(graph for graph in answer["graphs"] if graph["key"] == key)["lines"]
        column = next(entry for entry in lines if entry["name"] == line)[role]
        return dict(zip(answer["steps"], column, strict=True))

    def listed(self, name: str) -> Any:
        rows = runs.Listing(place_of_runs(str(self.folder)), RunCaches()).rows()["runs"]
        return next(row for row in rows if row["name"] == name)

    def overview(self, reward: str) -> Any:
        return next(row for row in self.view(runs.overview)["rewards"] if row["name"] == reward)

    def shown(self, reward: str) -> Any:
        return next(row for row in self.told("show", "RUN/one")["rewards"] if row["reward"] == reward)

    def compared(self, name: str) -> Any:
        measures = self.told("compare", "RUN/a", "RUN/b")["measures"]
        return next(measure for measure in measures if measure["name"] == name)

    def differences(self) -> Any:
        return self.told("diff", "RUN/one", "style@1", "style@1")


class Records(NamedTuple):
    """The records behind them, as plain arrays."""

    one: Plain
    a: Plain
    b: Plain


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shown]:
    folder = tmp_path_factory.mktemp("figures")
    record_training(folder / "one")
    record_file(folder / "a", 1)
    record_file(folder / "b", 2, prompts=14)
    says = Shown(folder)
    yield says
    says.close()


@pytest.fixture(scope="module")
def records(shown: Shown) -> Records:
    return Records(*(Plain(shown.folder / name) for name in ("one", "a", "b")))


def mean(values: Any) -> float:
    return float(np.nanmean(values))


def by_prompt(plain: Plain, epoch: int | None = None) -> Any:
    """Return the mean total of each prompt, of both splits, of one epoch or of all."""
    inside = np.ones(len(plain.ids), bool) if epoch is None else np.floor(plain.epochs) == epoch
    return np.array([mean(plain.totals[inside & (plain.prompts == prompt)]) for prompt in np.unique(plain.prompts)])


def change(plain: Plain) -> Any:
    return by_prompt(plain, 1) - by_prompt(plain, 0)


def flat_share(plain: Plain, reward: int, step: int) -> float:
    """Return the share of groups with equal numbers, of groups of two numbers or more; a default is a number."""
    rows = plain.train(step)
    keys = plain.batches[rows] * 1000 + plain.groups[rows]
    values = [plain.raw[rows, reward][keys == key] for key in np.unique(keys)]
    values = [own[~np.isnan(own)] for own in values]
    counted = [own for own in values if len(own) > 1]
    return float(sum(np.ptp(own) == 0 for own in counted) / len(counted))


def quantile(plain: Plain, reward: int, step: int, share: float) -> float:
    """Return the largest of the ranks' quantiles of a call's seconds."""
    rows = plain.train(step)
    return max(float(np.quantile(plain.seconds[rows & (plain.batches == batch), reward], share))
               for batch in np.unique(plain.batches[rows]))  # fmt: skip


def share(plain: Plain, reward: int, letter: str, step: int | None = None) -> float:
    return float((plain.status[plain.train(step), reward] == letter).mean())


def unfailed(plain: Plain) -> Any:
    """Return the totals of completions of which no reward that counts failed."""
    return np.where(((plain.weights != 0) & (plain.status == "f")).any(axis=1), np.nan, plain.totals)


def failures(plain: Plain, reward: int, label: str) -> int:
    return int(((plain.status[:, reward] == "f") & (plain.labels[:, reward] == label) & plain.train()).sum())


def of_level(plain: Plain, level: int) -> Any:
    return unfailed(plain)[plain.train() & (plain.prompts % 2 == level)]


def pair_values(records: Records, reward: int | None) -> tuple[Any, Any]:
    """Return both files' values of the rows that both have and both can count; rows are a prompt and a sample."""
    sides = []
    for plain in (records.a, records.b):
        values = plain.scores[:, reward] if reward is not None else unfailed(plain)
        sides.append(values[: len(records.a.ids)])  # the other file has further prompts behind these
    first, other = sides
    both = ~np.isnan(first) & ~np.isnan(other)
    if reward is None:  # what applied on one side alone would count as 0 on the other
        applied = [((plain.weights != 0) & (plain.status == "s"))[: len(first)] for plain in (records.a, records.b)]
        both &= (applied[0] == applied[1]).all(axis=1)
    return np.where(both, first, np.nan), np.where(both, other, np.nan)


def pair_changes(records: Records, reward: int | None) -> Any:
    first, other = pair_values(records, reward)
    return (other - first)[~np.isnan(first)]


def pair_low(records: Records, reward: int | None) -> float:
    """Return the lower end of the interval, clustered by prompt."""
    stats = pytest.importorskip("scipy.stats", reason="scipy is not installed")
    first, other = pair_values(records, reward)
    known = ~np.isnan(first)
    changes, prompts = (other - first)[known], np.repeat(np.arange(12), 3)[known]
    sums = np.array([(changes[prompts == prompt] - changes.mean()).sum() for prompt in np.unique(prompts)])
    error = np.sqrt(len(sums) / (len(sums) - 1) * (sums**2).sum()) / len(changes)
    return float(changes.mean() - stats.t.ppf(0.975, len(sums) - 1) * error)


def cost_per_1000(plain: Plain) -> float:
    paid = [cost for number, cost, version in plain.paid if version == 1 and plain.train()[plain.ids == number].any()]
    return float(1000 * sum(paid) / int((plain.labels[plain.train(), JUDGE] == "judge@1").sum()))


FIGURES: dict[str, tuple[Callable[[Shown], Any], Callable[[Records], Any]]] = {
    # the list of runs
    "list: reward of the last step": (
        lambda s: s.listed("one")["total"],
        lambda r: mean(r.one.totals[r.one.train(LAST)]),
    ),
    "list: curve of the reward": (
        lambda s: [value for _, value in s.listed("one")["totals"]],
        lambda r: [mean(r.one.totals[r.one.train(step)]) for step in range(STEPS) if step != GAP_STEP],
    ),
    "list: last score": (
        lambda s: s.listed("one")["rewards"][CORRECT]["last"],
        lambda r: mean(r.one.scores[r.one.train(LAST), CORRECT]),
    ),
    "list: share of failed calls": (
        lambda s: s.listed("one")["failed_share"],
        lambda r: float((r.one.status[r.one.train()] == "f").mean()),
    ),
    "list: completions": (lambda s: s.listed("one")["completions"], lambda r: len(r.one.ids)),
    "list: reward of a scored file": (lambda s: s.listed("a")["total"], lambda r: mean(r.a.totals)),
    "list: score of a scored file": (
        lambda s: s.listed("a")["rewards"][STYLE]["last"],
        lambda r: mean(r.a.scores[:, STYLE]),
    ),
    "runs: reward of the last step": (
        lambda s: next(run["total"] for run in s.told("runs", "RUN")["runs"] if run["name"] == "one"),
        lambda r: mean(r.one.totals[r.one.train(LAST)]),
    ),
    "runs: mean of a scored file": (
        lambda s: next(run["means"]["judge"] for run in s.told("runs", "RUN")["runs"] if run["name"] == "b"),
        lambda r: mean(r.b.scores[:, JUDGE]),
    ),
    # graphs
    "graph: total": (
        lambda s: [value for step, value in s.graph("total_reward", "total").items() if step != GAP_STEP],
        lambda r: [mean(r.one.totals[r.one.train(step)]) for step in range(STEPS) if step != GAP_STEP],
    ),
    "graph: total where a reward only failed": (lambda s: s.graph("total_reward", "total")[GAP_STEP], lambda r: None),
    "graph: plain sum": (
        lambda s: s.graph("total_reward", "plain sum")[0],
        lambda r: mean(
            [
                np.nansum(raw[weights != 0])
                for raw, weights in zip(r.one.raw[r.one.train(0)], r.one.weights[r.one.train(0)], strict=True)
                if not np.isnan(raw[weights != 0]).all()
            ]
        ),
    ),
    "graph: deviation of the total": (
        lambda s: s.graph("total_reward_std", "total")[2],
        lambda r: float(np.nanstd(r.one.totals[r.one.train(2)], ddof=1)),
    ),
    "graph: total of an evaluation": (
        lambda s: s.graph("total_reward", "total", split="eval")[EPOCH_STEPS - 1],
        lambda r: mean(r.one.totals[(r.one.splits == "eval") & (r.one.steps == EPOCH_STEPS - 1)]),
    ),
    "graph: mean of a reward": (
        lambda s: list(s.graph("reward/style", "mean").values()),
        lambda r: [mean(r.one.scores[r.one.train(step), STYLE]) for step in range(STEPS)],
    ),
    "graph: mean of a reward that failed with a default": (
        lambda s: s.graph("reward/judge", "mean")[1],
        lambda r: mean(r.one.scores[r.one.train(1), JUDGE]),
    ),
    "graph: mean where all failed": (lambda s: s.graph("reward/judge", "mean")[GAP_STEP], lambda r: None),
    "graph: lowest score": (
        lambda s: s.graph("reward/judge", "lowest")[1],
        lambda r: float(np.nanmin(r.one.scores[r.one.train(1), JUDGE])),
    ),
    "graph: highest score": (
        lambda s: s.graph("reward/tiny", "highest")[5],
        lambda r: float(np.nanmax(r.one.scores[r.one.train(5), TINY])),
    ),
    "graph: band": (
        lambda s: s.graph("reward/tiny", "mean", "high")[3],
        lambda r: (
            mean(r.one.scores[r.one.train(3), TINY]) + float(np.nanstd(r.one.scores[r.one.train(3), TINY], ddof=1))
        ),
    ),
    "graph: failed": (lambda s: s.graph("failed", "judge")[2], lambda r: share(r.one, JUDGE, "f", 2)),
    "graph: timeouts": (lambda s: s.graph("timeouts", "correct")[2], lambda r: 0.0),
    "graph: skipped": (lambda s: s.graph("skipped", "style")[3], lambda r: share(r.one, STYLE, "k", 3)),
    "graph: median time": (lambda s: s.graph("time_p50", "judge")[1], lambda r: quantile(r.one, JUDGE, 1, 0.5)),
    "graph: 95th percentile of time": (
        lambda s: s.graph("time_p95", "tiny")[5],
        lambda r: quantile(r.one, TINY, 5, 0.95),
    ),
    "graph: zero variance": (lambda s: s.graph("flat_groups", "correct")[0], lambda r: flat_share(r.one, CORRECT, 0)),
    "graph: length": (lambda s: s.graph("length", "mean")[3], lambda r: mean(r.one.tokens[r.one.train(3)])),
    "graph: shortest": (
        lambda s: s.graph("length", "mean", "low")[3],
        lambda r: float(r.one.tokens[r.one.train(3)].min()),
    ),
    # the overview and show
    "overview: first mean": (lambda s: s.overview("tiny")["first"], lambda r: mean(r.one.scores[r.one.train(0), TINY])),
    "overview: last deviation": (
        lambda s: s.overview("style")["std"],
        lambda r: float(np.nanstd(r.one.scores[r.one.train(LAST), STYLE], ddof=1)),
    ),
    "overview: lowest": (
        lambda s: s.overview("judge")["low"],
        lambda r: float(np.nanmin(r.one.scores[r.one.train(), JUDGE])),
    ),
    "overview: skipped": (
        lambda s: s.overview("style")["skipped"],
        lambda r: int((r.one.status[r.one.train(), STYLE] == "k").sum()),
    ),
    "overview: failed": (
        lambda s: s.overview("judge")["failed"],
        lambda r: {"timeout": int((r.one.status[r.one.train(), JUDGE] == "f").sum())},
    ),
    "overview: prompts": (lambda s: s.view(runs.overview)["prompts"], lambda r: len(np.unique(r.one.prompts))),
    "show: totals": (
        lambda s: [value for _, value in s.told("show", "RUN/one")["totals"]],
        lambda r: [mean(r.one.totals[r.one.train(step)]) for step in range(STEPS) if step != GAP_STEP],
    ),
    "show: last mean": (lambda s: s.shown("correct")["last"], lambda r: mean(r.one.scores[r.one.train(LAST), CORRECT])),
    "show: scored": (
        lambda s: s.shown("judge")["scored"],
        lambda r: int((r.one.status[r.one.train(), JUDGE] == "s").sum()),
    ),
    "show: best": (
        lambda s: s.told("show", "RUN/one")["best"][0]["reward"],
        lambda r: float(np.nanmax(r.one.totals[r.one.train(LAST)])),
    ),
    "show: worst": (
        lambda s: s.told("show", "RUN/one")["worst"][0]["reward"],
        lambda r: float(np.nanmin(r.one.totals[r.one.train(LAST)])),
    ),
    "show --step: mean of a version": (
        lambda s: next(
            row["mean"] for row in s.told("show", "RUN/one", "--step", "3")["rewards"] if row["reward"] == "judge"
        ),
        lambda r: mean(r.one.scores[r.one.train(3) & (r.one.labels[:, JUDGE] == "judge@2"), JUDGE]),
    ),
    "show --step: rewards": (
        lambda s: [row["reward"] for row in s.told("show", "RUN/one", "--step", "1")["completions"]],
        lambda r: [None if np.isnan(total) else total for total in r.one.totals[r.one.train(1)]],
    ),
    "show --prompt: completions": (
        lambda s: len(s.told("show", "RUN/one", "--prompt", "2")["completions"]),
        lambda r: int((r.one.prompts == 2).sum()),
    ),
    "show --sort: best of the run": (
        lambda s: s.told("show", "RUN/one", "--sort=-reward", "--limit", "1")["completions"][0]["reward"],
        lambda r: float(np.nanmax(r.one.totals[r.one.train()])),
    ),
    "show --where: count": (
        lambda s: s.told("show", "RUN/one", "--where", "style=skipped")["fitting"],
        lambda r: int((r.one.status[r.one.train(), STYLE] == "k").sum()),
    ),
    # completions
    "prompts: mean": (
        lambda s: [row["mean"] for row in s.view(completions.prompts)["rows"]],
        lambda r: by_prompt(r.one).tolist(),
    ),
    "prompts: best": (
        lambda s: [row["best"] for row in s.view(completions.prompts)["rows"]],
        lambda r: [float(np.nanmax(r.one.totals[r.one.prompts == prompt])) for prompt in np.unique(r.one.prompts)],
    ),
    "prompts: which got worse": (
        lambda s: [row["index"] for row in s.view(completions.prompts, sort="change", order="up")["rows"]],
        lambda r: np.argsort(change(r.one)).tolist(),
    ),
    "prompts: change": (
        lambda s: [row["change"] for row in s.view(completions.prompts, sort="change", order="up")["rows"]],
        lambda r: np.sort(change(r.one)).tolist(),
    ),
    "prompts: mean score of a reward": (
        lambda s: s.view(completions.prompts, reward="judge")["rows"][1]["mean"],
        lambda r: mean(r.one.scores[r.one.prompts == 1, JUDGE]),
    ),
    "prompt: mean of an epoch": (
        lambda s: s.view(completions.prompt, prompt=3)["epochs"][1]["mean"],
        lambda r: mean(r.one.totals[(r.one.prompts == 3) & (np.floor(r.one.epochs) == 1)]),
    ),
    "prompt: best of the last epoch": (
        lambda s: s.view(completions.prompt, prompt=0)["right"],
        lambda r: int(
            r.one.ids[
                np.nanargmax(np.where((r.one.prompts == 0) & (np.floor(r.one.epochs) == 1), r.one.totals, np.nan))
            ]
        ),
    ),
    "step: best and worst of a prompt": (
        lambda s: next(
            (group["best"], group["worst"])
            for group in s.view(completions.completions, step=1)["groups"]
            if group["prompt"] == 4
        ),
        lambda r: tuple(
            float(edge(r.one.totals[r.one.train(1) & (r.one.prompts == 4)])) for edge in (np.nanmax, np.nanmin)
        ),
    ),
    "question: mean of its solutions": (
        lambda s: s.view(completions.prompts, "a")["rows"][5]["mean"],
        lambda r: mean(r.a.totals[15:18]),
    ),
    "completion: total, negative weights and 0.05 in it": (
        lambda s: s.view(completions.completion, id=90)["total"],
        lambda r: float(r.one.totals[r.one.ids == 90][0]),
    ),
    # logs
    "logs: failed calls of a version": (
        lambda s: {
            (row["reward"], row["version"]): row["count"]
            for row in s.view(logs.view, what="counts", split="train")["faults"]
        },
        lambda r: {
            ("judge", 1): failures(r.one, JUDGE, "judge@1"),
            ("judge", 2): failures(r.one, JUDGE, "judge@2"),
            ("correct", 1): failures(r.one, CORRECT, "correct@1"),
        },
    ),
    # groups of the data
    "groups: mean of a level": (
        lambda s: {row["label"]: row["mean"] for row in s.view(breakdown.groups, column="level")["groups"]},
        lambda r: {level: mean(of_level(r.one, number)) for number, level in enumerate(("easy", "hard"))},
    ),
    # two versions, and what they cost
    "diff: mean": (lambda s: s.differences()["old"]["mean"], lambda r: mean(r.one.scores[r.one.train(), STYLE])),
    "diff: deviation": (
        lambda s: s.differences()["new"]["std"],
        lambda r: float(np.nanstd(r.one.scores[r.one.train(), STYLE], ddof=1)),
    ),
    "diff: skipped": (
        lambda s: s.differences()["old"]["skipped"],
        lambda r: int((r.one.status[r.one.train(), STYLE] == "k").sum()),
    ),
    "diff: time of 1,000": (
        lambda s: s.differences()["old_cost"]["seconds"],
        lambda r: 1000 * float(r.one.seconds[r.one.train(), STYLE].mean()),
    ),
    "diff: cost of the judge": (
        lambda s: s.told("diff", "RUN/one", "judge@1", "judge@1")["old_cost"]["cost_usd"],
        lambda r: cost_per_1000(r.one),
    ),
    # two files on the same rows
    "compare: rows": (
        lambda s: (s.told("compare", "RUN/a", "RUN/b")["rows"], s.told("compare", "RUN/a", "RUN/b")["other_alone"]),
        lambda r: (36, 6),
    ),
    "compare: difference of the reward": (
        lambda s: s.compared("reward")["difference"],
        lambda r: float(pair_changes(r, None).mean()),
    ),
    "compare: pairs": (lambda s: s.compared("reward")["pairs"], lambda r: len(pair_changes(r, None))),
    "compare: difference of a score": (
        lambda s: s.compared("judge")["difference"],
        lambda r: float(pair_changes(r, JUDGE).mean()),
    ),
    "compare: lower end": (lambda s: s.compared("tiny")["low"], lambda r: pair_low(r, TINY)),
    "compare: lower end of the reward": (lambda s: s.compared("reward")["low"], lambda r: pair_low(r, None)),
    "compare: wins, losses and ties": (
        lambda s: tuple(s.compared("correct")[name] for name in ("wins", "losses", "ties")),
        lambda r: tuple(int((np.sign(pair_changes(r, CORRECT)) == sign).sum()) for sign in (1, -1, 0)),
    ),
    "compare: mean of the first": (lambda s: s.compared("style")["first"], lambda r: mean(pair_values(r, STYLE)[0])),
    "compare: on the page": (
        lambda s: pairs.compare(s._opened["a"], s.view(pairs.part, "b"), Query())["measures"][0]["difference"],
        lambda r: float(pair_changes(r, None).mean()),
    ),
}
"""What is shown, by its name: how it is asked for, and how it is computed from the record."""


def test_there_are_sixty_figures() -> None:
    assert len(FIGURES) >= 60


@pytest.mark.parametrize("name", FIGURES)
def test_a_figure_is_what_the_record_says(name: str, shown: Shown, records: Records) -> None:
    """As plain SQL and numpy compute it; the page rounds to six digits."""
    ask, compute = FIGURES[name]
    expected = compute(records)
    if not isinstance(expected, float | list | dict | tuple) or name.startswith("logs"):
        assert expected == ask(shown)
    elif isinstance(expected, list) and None in expected:
        assert [pytest.approx(value) for value in expected] == ask(shown)
    else:
        assert pytest.approx(expected, rel=1e-5, abs=1e-9) == ask(shown)
