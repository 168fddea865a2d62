"""A run's graphs as charts, for a notebook."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

from rewardkit.record.reader import RunReader
from rewardkit.record.values import Version
from rewardkit.replay.curves import HIGH, LOW, VALUES, Curves, Part
from rewardkit.shown.svg import Chart, Curve, Marker

_Lines: TypeAlias = dict[str, dict[str, Sequence[float | None]]]
"""The numbers of a graph, by line and by which of the line's numbers they are."""


def curves_of(run: RunReader, split: str = "train", metrics: Sequence[str] = ()) -> Part:
    """Return all curves of a split of a run, with the trainer's metrics of these names."""
    curves = Curves(split)
    part = curves.part(run, 0, metrics, None)
    while part.unread:
        part = curves.part(run, 0, metrics, None)
    return part


def version_markers(run: RunReader) -> list[Marker]:
    """Return the marks of :func:`later_versions`."""
    return [Marker(step, version.label, of=version.reward) for step, version in later_versions(run)]


def later_versions(run: RunReader) -> list[tuple[int, Version]]:
    """Return the versions of rewards that first scored after the run's first step, each behind its own first step."""
    starts = [(version.first_step, version) for version in run.own_versions if version.first_step is not None]
    begin = min((step for step, _ in starts), default=None)
    return [(step, version) for step, version in starts if step != begin]


def reward_charts(part: Part, rewards: Sequence[str], markers: Sequence[Marker]) -> Iterator[Chart]:
    """Yield the total reward and each reward: the mean of each step, with a band of one standard deviation."""
    total = _lines(part, "total_reward")
    total.pop("plain sum", None)  # it is not what trains
    if _has_values(total):
        yield Chart("total_reward", part.steps, _curves(total), [*markers, *_gaps(part, "total_reward")])
    for name in rewards:
        lines = {key: line for key, line in _lines(part, f"reward/{name}").items() if key == "mean"}
        if lines:
            own = [marker for marker in markers if marker.of in (None, name)]
            yield Chart(name, part.steps, _curves(lines, mean=name), [*own, *_gaps(part, f"reward/{name}")])


def _gaps(part: Part, graph: str) -> Iterator[Marker]:
    """Yield a mark with the reason for each step at which a graph has no value, or one without failed calls."""
    lines = _lines(part, graph)
    main = lines.get("total") or lines["mean"]
    empty = {step for step, value in zip(part.steps, main[VALUES], strict=True) if value is None}
    for step, note in part.notes.get(graph, ()):
        yield Marker(step, note, "gap" if step in empty else "failures")


def _lines(part: Part, graph: str) -> _Lines:
    """Return a graph's lines by name."""
    lines: _Lines = {}
    for (key, line, which), column in part.columns.items():
        if key == graph:
            lines.setdefault(line, {})[which] = column
    return lines


def _has_values(lines: _Lines) -> bool:
    return any(value is not None for line in lines.values() for value in line.get(VALUES, ()))


def _curves(lines: Mapping[str, Mapping[str, Sequence[float | None]]], **names: str) -> list[Curve]:
    """Return lines as curves, under the titles in ``names`` or their own names."""
    return [
        Curve(names.get(name, name), line.get(VALUES, ()), line.get(LOW, ()), line.get(HIGH, ()))
        for name, line in lines.items()
    ]
