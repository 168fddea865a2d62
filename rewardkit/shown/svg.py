"""Line charts as SVG, from plain values: for a notebook and for a page that is sent to somebody.

A chart is one ``<svg>`` without script, links or fonts of its own, and all text in it is escaped. Its ink is the
``currentColor`` of what stands around it; the colours of curves are the properties ``--s1`` to ``--s8``, with defaults
that can be seen on light and on dark ground. A value that is not known is a gap, and never 0.
"""

from __future__ import annotations

import html
import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

from rewardkit.shown.text import shortened

T = TypeVar("T")
CURVES = 8  # Curves of a chart that are drawn; there is a colour for each
POINTS = 240  # Points of a curve that are drawn; a longer one is drawn as the means of its parts
STYLE = (
    ".rk-chart{width:100%;max-width:560px;height:auto;display:block;font:11px system-ui,sans-serif;color:inherit}"
    ".rk-chart text{fill:currentColor}.rk-chart .title{font-size:13px;font-weight:600}"
    ".rk-chart .tick,.rk-chart .none{opacity:.75}"
    ".rk-chart .rule{stroke:currentColor;stroke-opacity:.16;stroke-width:1}"
    ".rk-chart .line{fill:none;stroke-width:1.75;stroke-linejoin:round;stroke-linecap:round}"
    ".rk-chart .band{stroke:none;fill-opacity:.16}"
    ".rk-chart .hit{fill:transparent;stroke:none}"
    ".rk-chart .version{stroke:currentColor;stroke-opacity:.6;stroke-width:1;stroke-dasharray:3 3}"
    ".rk-chart .flag{fill:var(--warn,#c77700);stroke:none}"
    ".rk-chart .gap{fill:transparent;stroke:currentColor;stroke-opacity:.75;stroke-width:1.25}"
    ".rk-chart .failures{fill:currentColor;fill-opacity:.75}"
    ".rk-chart .dash2{stroke-dasharray:6 3}.rk-chart .dash3{stroke-dasharray:2 3}"
    ".rk-chart .dash4{stroke-dasharray:8 3 2 3}"
) + "".join(
    f".rk-chart .s{index}{{stroke:var(--s{index},{colour})}}.rk-chart .f{index}{{fill:var(--s{index},{colour})}}"
    for index, colour in enumerate(
        ("#1f86c4", "#d9660f", "#0f9d76", "#c2689b", "#b8860b", "#3f9fdc", "#8a8a1f", "#808080"), start=1
    )
)
"""The style sheet of all charts of a page."""

_WIDTH, _HEIGHT = 380, 176
_LEFT, _RIGHT, _TOP, _BOTTOM = 46, 10, 30, 26
_ROW = 15
_LEGEND_COLUMNS, _LEGEND_CHARS = 3, 17
_TITLE_CHARS, _LABEL_CHARS = 38, 22
_LABEL_PX = 6.2
_DOTS = 60
_DASHES = 4
_TICKS_Y, _TICKS_X = 3, 4
_CIRCLE_PX = 7
_RADII = {"gap": 2.75, "failures": 1.75}  # Of the circles below the axis, by the kind of marker


@dataclass(frozen=True, slots=True)
class Curve:
    """One line of a chart.

    Attributes:
        name: Its name in the legend.
        values: Its values, one for each place on the chart's axis; ``None`` where one is not known.
        low: The lower edge of the band around it; empty for none.
        high: The upper edge.
    """

    name: str
    values: Sequence[float | None] = field(repr=False)
    low: Sequence[float | None] = field(default=(), repr=False)
    high: Sequence[float | None] = field(default=(), repr=False)


@dataclass(frozen=True, slots=True)
class Marker:
    """Something that happened at a place of the axis.

    Attributes:
        at: The place.
        label: The event, in a few words.
        kind: ``"version"`` is a dashed line with its label, ``"flag"`` a triangle on the axis, ``"gap"`` a hollow
            circle below it, at a place without a value, and ``"failures"`` a small full one, at a place whose value
            is without failed calls, each with the reason.
        of: The name of what it is about; ``None`` for everything.
    """

    at: float
    label: str
    kind: str = "version"
    of: str | None = None


@dataclass(frozen=True, slots=True)
class Chart:
    """A line chart.

    Attributes:
        title: Its title.
        x: The places on the axis, in order.
        curves: The lines; the first :data:`CURVES` are drawn.
        markers: The events along the axis.
        axis: The name of the horizontal axis.
        format: How a value is written.
        bounds: Values that the axis of the values has room for at least.
        whole: Whether the axis names whole numbers alone, as of steps.
    """

    title: str
    x: Sequence[float]
    curves: Sequence[Curve]
    markers: Sequence[Marker] = ()
    axis: str = "step"
    format: Callable[[float], str] = field(default=lambda value: f"{value:.4g}", repr=False)
    bounds: tuple[float, ...] = ()
    whole: bool = True


def chart_svg(chart: Chart) -> str:
    """Return the chart as one ``<svg>``; :data:`STYLE` has to be in the same page."""
    chart = replace(chart, curves=[_finite(curve) for curve in chart.curves])
    description = _describe(chart)
    drawn = _thin(replace(chart, curves=chart.curves[:CURVES]))
    rows = -(-len(drawn.curves) // _LEGEND_COLUMNS) if len(chart.curves) > 1 else 0
    lines = any(marker.kind == "version" for marker in chart.markers)
    plot = _Plot.of(drawn, _TOP + rows * _ROW + (_ROW if lines else 0))
    body = "".join([
        _title(chart), _legend(chart) if rows else "", _axes(plot, drawn), _markers(plot, drawn.markers),
        *(_curve(plot, drawn, index) for index in range(len(drawn.curves))),
        "" if plot.has_values else _text(plot.left + 8, plot.top + 20, "no values are known", "none"),
    ])  # fmt: skip
    head = f'class="rk-chart" viewBox="0 0 {_WIDTH} {plot.bottom + _BOTTOM:.0f}" role="img" aria-label="{description}"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {head}>{body}</svg>'


def chart_file(chart: Chart) -> str:
    """Return the chart as the text of an SVG file, with its style and a white ground."""
    head, _, body = chart_svg(chart).partition(">")
    style = html.escape(STYLE.replace("currentColor", "#1a1a1a"), quote=False)
    return f'{head}><style>{style}</style><rect width="100%" height="100%" fill="#fff"/>{body}\n'


def nice_ticks(low: float, high: float, count: int) -> list[float]:
    """Return round numbers from ``low`` to ``high``: at least ``count``, and as few of them as there can be."""
    span = high - low
    if not 0 < span < math.inf:
        return [low] if low == high else [low, high]
    size = 10.0 ** math.floor(math.log10(span / count))
    steps = (size * factor for factor in (10, 5, 2, 1, 0.5, 0.2, 0.1))
    return next((ticks for step in steps if len(ticks := _multiples(low, high, step, 4 * count)) >= count), [low, high])


def _multiples(low: float, high: float, step: float, most: int) -> list[float]:
    """Return the multiples of a step between two numbers; none where there are too many."""
    if not step:
        return []
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [index * step for index in range(first, last + 1)] if last - first <= most else []


@dataclass(frozen=True, slots=True)
class _Plot:
    """Where values come to stand."""

    top: float
    left: float
    right: float
    bottom: float
    x: tuple[float, float]
    y: tuple[float, float]
    has_values: bool

    @classmethod
    def of(cls, chart: Chart, top: float) -> _Plot:
        """Return the plot of a chart below ``top``, with room for all values, edges of bands and bounds."""
        values = [
            value
            for curve in chart.curves
            for value in itertools.chain(curve.values, curve.low, curve.high)
            if value is not None
        ]
        low, high = _room([*values, *chart.bounds] if values else [*chart.bounds, 0.0, 1.0])
        places = chart.x or [0.0]
        return cls(
            top, _LEFT, _WIDTH - _RIGHT, top + _HEIGHT - _TOP - _BOTTOM, (min(places), max(places)), (low, high),
            bool(values),
        )  # fmt: skip

    def across(self, value: float) -> float:
        return self.left + 4 + _share(value, self.x) * (self.right - self.left - 8)

    def up(self, value: float) -> float:
        return self.bottom - _share(value, self.y) * (self.bottom - self.top)


def _share(value: float, span: tuple[float, float]) -> float:
    low, high = span
    return (value / 2 - low / 2) / (high / 2 - low / 2) if high > low else 0.5


def _room(values: Sequence[float]) -> tuple[float, float]:
    """Return the lowest and highest value, a little apart where they are one."""
    low, high = min(values), max(values)
    if low == high:
        aside = abs(low) * 0.1 or 1.0
        return (low - aside, high + aside) if low else (0.0, 1.0)
    return low, high


def _finite(curve: Curve) -> Curve:
    """Return the curve with ``None`` for anything but a finite number."""

    def clean(values: Iterable[float | None]) -> list[float | None]:
        return [value if value is not None and math.isfinite(value) else None for value in values]

    return Curve(curve.name, clean(curve.values), clean(curve.low), clean(curve.high))


def _thin(chart: Chart) -> Chart:
    """Return the chart with at most :data:`POINTS` places, each with the means of its part."""
    count = len(chart.x)
    if count <= POINTS:
        return chart
    edges = list(itertools.pairwise(round(index * count / POINTS) for index in range(POINTS + 1)))

    def means(values: Sequence[float | None]) -> list[float | None]:
        if not values:  # there is no band
            return []
        return [_mean([value for value in values[start:end] if value is not None]) for start, end in edges]

    curves = [Curve(curve.name, means(curve.values), means(curve.low), means(curve.high)) for curve in chart.curves]
    return replace(chart, x=[math.fsum(chart.x[start:end]) / (end - start) for start, end in edges], curves=curves)


def _mean(values: Sequence[float]) -> float | None:
    return math.fsum(value / len(values) for value in values) if values else None


def _describe(chart: Chart) -> str:
    """Return a description of the chart, escaped, for those who cannot see it."""
    span = f"{len(chart.x):,} places of {chart.axis}"
    span += f" from {chart.x[0]:g} to {chart.x[-1]:g}" if chart.x else ""
    parts = [f"{chart.title}: line chart over {span}"]
    for curve in chart.curves[:CURVES]:
        numbers = [value for value in curve.values if value is not None]
        name = "" if len(chart.curves) == 1 else f"{curve.name} "
        ends = f"from {chart.format(numbers[0])} to {chart.format(numbers[-1])}" if numbers else "not known"
        missing = len(curve.values) - len(numbers)
        parts.append(f"{name}{ends}{f', {missing:,} not known' if numbers and missing else ''}")
    parts += [f"{marker.label} at {marker.at:g}" for marker in chart.markers]
    return _escaped(shortened("; ".join(parts), 600))


def _title(chart: Chart) -> str:
    values = [value for value in chart.curves[0].values if value is not None] if len(chart.curves) == 1 else []
    last = _text(_WIDTH - _RIGHT, 14, chart.format(values[-1]), "tick", "end") if values else ""
    return f"{_text(2, 14, shortened(chart.title, _TITLE_CHARS), 'title')}{last}"


def _legend(chart: Chart) -> str:
    """Return the curves' names with their lines; the last one says how many more there are than are drawn."""
    parts = []
    wide = (_WIDTH - 4) / _LEGEND_COLUMNS
    for index, curve in enumerate(chart.curves[:CURVES]):
        row, column = divmod(index, _LEGEND_COLUMNS)
        x, y = 2 + column * wide, _TOP + row * _ROW
        line = f'<path class="line {_classes(index)}" d="M{x:.0f} {y - 4}h14"/>'
        more = len(chart.curves) - CURVES
        last = index == CURVES - 1 and more > 0
        name = f"{shortened(curve.name, 8)}, {more} more" if last else shortened(curve.name, _LEGEND_CHARS)
        parts.append(f"<g>{_hint(curve.name)}{line}{_text(x + 18, y, name, 'tick')}</g>")
    return "".join(parts)


def _classes(index: int) -> str:
    """Return a curve's classes: its colour, and from the second on dashes too, for those who see no colours."""
    return f"s{index + 1}" + (f" dash{index % _DASHES + 1}" if index % _DASHES else "")


def _axes(plot: _Plot, chart: Chart) -> str:
    """Return the numbers beside and below the plot, and a rule across it for each value."""
    parts = []
    for value in nice_ticks(*plot.y, _TICKS_Y):
        y = plot.up(value)
        parts.append(f'<path class="rule" d="M{plot.left:.0f} {y:.1f}H{plot.right:.0f}"/>')
        parts.append(_text(plot.left - 5, y + 4, chart.format(value), "tick", "end"))
    for value in _places(plot.x, whole=chart.whole):
        text = f"{value:,.0f}" if chart.whole else f"{value:.4g}"
        parts.append(_text(plot.across(value), plot.bottom + 18, text, "tick", "middle"))
    parts.append(_text(2, plot.bottom + 18, chart.axis, "tick"))
    return "".join(parts)


def _places(span: tuple[float, float], *, whole: bool) -> list[float]:
    """Return the numbers at the ticks of the horizontal axis."""
    if span[0] == span[1]:
        return [span[0]]
    ticks = nice_ticks(*span, _TICKS_X)
    return [tick for tick in ticks if tick == round(tick) or not whole]


def _markers(plot: _Plot, markers: Sequence[Marker]) -> str:
    """Return versions as lines, their labels on the side that has room, or in the hint alone; then flags and gaps."""
    inside = sorted((marker for marker in markers if plot.x[0] <= marker.at <= plot.x[1]), key=lambda marker: marker.at)
    lines = [marker for marker in inside if marker.kind == "version"]
    ends = [plot.across(marker.at) for marker in lines[1:]] + [float(plot.right)]
    parts, free = [], 0.0
    for marker, end in zip(lines, ends, strict=False):
        x = plot.across(marker.at)
        text = shortened(marker.label, _LABEL_CHARS)
        wide = len(text) * _LABEL_PX
        label = ""
        if x + 3 + wide <= end and x + 3 >= free:
            label, free = _text(x + 3, plot.top - 7, text, "tick"), x + 3 + wide
        elif x - 3 - wide >= free:
            label, free = _text(x - 3, plot.top - 7, text, "tick", "end"), x
        line = f'<path class="version" d="M{x:.1f} {plot.top - 15:.1f}V{plot.bottom:.1f}"/>'
        parts.append(f"<g>{_hint(f'{marker.label} from {marker.at:g} on')}{line}{label}</g>")
    for marker in inside:
        if marker.kind == "flag":
            path = f"M{plot.across(marker.at) - 4:.1f} {plot.bottom + 1:.1f}h8l-4 -7z"
            parts.append(f'<g>{_hint(f"{marker.label}, at {marker.at:g}")}<path class="flag" d="{path}"/></g>')
    for kind in _RADII:
        parts += _circles(plot, kind, [marker for marker in inside if marker.kind == kind])
    return "".join(parts)


def _circles(plot: _Plot, kind: str, markers: Sequence[Marker]) -> Iterator[str]:
    """Yield circles below the axis; one circle, whose hint names their span, stands for those that would overlap."""
    while markers:
        x = plot.across(markers[0].at)
        near = [marker for marker in markers if plot.across(marker.at) < x + _CIRCLE_PX]
        markers = markers[len(near) :]
        label = f"{near[0].label}, at {near[0].at:g}"
        label += f"; {len(near) - 1} more up to {near[-1].at:g}" if len(near) > 1 else ""
        circle = f'<circle class="{kind}" cx="{x:.1f}" cy="{plot.bottom + 5:.1f}" r="{_RADII[kind]}"/>'
        yield f"<g>{_hint(label)}{circle}</g>"


def _curve(plot: _Plot, chart: Chart, index: int) -> str:
    """Return a curve with its band, a dot for a lone point, and hints at its points where they are few."""
    curve = chart.curves[index]
    parts = []
    if curve.low and curve.high:
        band = zip(chart.x, curve.low, curve.high, strict=True)
        edges = [None if low is None or high is None else (x, low, high) for x, low, high in band]
        parts += [f'<path class="band f{index + 1}" d="{_band(plot, run)}"/>' for run in _runs(edges) if len(run) > 1]
    points = [None if value is None else (x, value) for x, value in zip(chart.x, curve.values, strict=True)]
    for run in _runs(points):
        if len(run) == 1:
            ((x, value),) = run
            centre = f'cx="{plot.across(x):.1f}" cy="{plot.up(value):.1f}"'
            parts.append(f'<circle class="f{index + 1}" {centre} r="2.5"/>')
        else:
            path = "L".join(f"{plot.across(x):.1f} {plot.up(value):.1f}" for x, value in run)
            parts.append(f'<path class="line {_classes(index)}" d="M{path}"/>')
    drawn = [point for point in points if point is not None]
    if len(drawn) * len(chart.curves) <= _DOTS:
        name = "" if len(chart.curves) == 1 else f"{curve.name}, "
        for x, value in drawn:
            hint = _hint(f"{name}{chart.axis} {x:g}: {chart.format(value)}")
            centre = f'cx="{plot.across(x):.1f}" cy="{plot.up(value):.1f}"'
            parts.append(f'<circle class="hit" {centre} r="8">{hint}</circle>')
    return "".join(parts)


def _band(plot: _Plot, run: Sequence[tuple[float, float, float]]) -> str:
    """Return the path of a band, along its upper edge and back along the lower one."""
    above = [f"{plot.across(x):.1f} {plot.up(high):.1f}" for x, _, high in run]
    below = [f"{plot.across(x):.1f} {plot.up(low):.1f}" for x, low, _ in reversed(run)]
    return f"M{'L'.join(above + below)}Z"


def _runs(points: Iterable[T | None]) -> list[list[T]]:
    """Return the points that follow one another without a gap."""
    runs = itertools.groupby(points, lambda point: point is not None)
    return [[point for point in part if point is not None] for is_drawn, part in runs if is_drawn]


def _text(x: float, y: float, text: str, kind: str, anchor: str = "start") -> str:
    where = f'x="{x:.1f}" y="{y:.1f}"' + ("" if anchor == "start" else f' text-anchor="{anchor}"')
    return f'<text class="{kind}" {where}>{_escaped(shortened(text))}</text>'


def _hint(text: str) -> str:
    """Return the hint that shows where the mouse rests."""
    return f"<title>{_escaped(shortened(text, 200))}</title>"


def _escaped(text: str) -> str:
    return html.escape(text, quote=True)
