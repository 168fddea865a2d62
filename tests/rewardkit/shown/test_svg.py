"""Line charts as SVG: well-formed, without anything that runs, with gaps where a value is not known."""

from __future__ import annotations

import itertools
import math
import re
import xml.etree.ElementTree as ET

import pytest

from rewardkit.shown.svg import CURVES, POINTS, STYLE, Chart, Curve, Marker, chart_svg, nice_ticks

HOSTILE = '<script>alert(1)</script>" onload="x" & \x1b[31m\x00\u202e\ud800 <img src=x onerror=alert(1)>'
TAGS = {"svg", "g", "path", "text", "title", "circle"}
SVG = "{http://www.w3.org/2000/svg}"


def _parsed(chart: Chart) -> ET.Element:
    """Return the chart's root, after looking for what has no place in it."""
    text = chart_svg(chart)
    root = ET.fromstring(text)
    assert TAGS >= {one.tag.removeprefix(SVG) for one in root.iter()}
    names = {name for one in root.iter() for name in one.attrib}
    assert not [name for name in names if name.startswith("on") or "href" in name]
    assert "nan" not in text
    assert "inf" not in text.lower().replace("info", "")
    return root


def _chart(*values: float | None, **more: object) -> Chart:
    return Chart("a title", range(len(values)), [Curve("one", values)], **more)  # type: ignore[arg-type]


def _classed(root: ET.Element, kind: str) -> list[ET.Element]:
    return [one for one in root.iter() if kind in one.get("class", "").split()]


def _texts(root: ET.Element) -> list[str]:
    return [one.text or "" for one in root.iter(f"{SVG}text")]


def test_a_chart_tells_what_it_shows_to_those_who_cannot_see_it() -> None:
    """It is an image with a label: title, axis, the ends of the curve, and what happened."""
    root = _parsed(_chart(0.25, 0.5, 1.0, markers=[Marker(1, "format@2")]))
    label = root.get("aria-label") or ""
    assert "img" == root.get("role")
    for words in ("a title", "3 places of step from 0 to 2", "from 0.25 to 1", "format@2 at 1"):
        assert words in label


def test_a_value_that_is_not_known_is_a_gap() -> None:
    """The line is broken there, and a value alone between two gaps is a dot."""
    root = _parsed(_chart(0.5, 0.6, None, 0.7, math.nan, 0.8, 0.9))
    lines = _classed(root, "line")
    assert 2 == len(lines)
    assert [2, 2] == [len(re.findall("[ML]", one.get("d", ""))) for one in lines]
    assert 1 == len([one for one in _classed(root, "f1") if one.tag == f"{SVG}circle"])
    assert "2 not known" in (root.get("aria-label") or "")


@pytest.mark.parametrize(("kind", "other"), [("gap", "failures"), ("failures", "gap")])
def test_a_gap_says_why_below_the_axis(kind: str, other: str) -> None:
    """No value stands there, or calls failed; circles that would lie on each other are one that tells of all."""
    whys = [Marker(at, "all 8 failed (timeout)", kind) for at in (10, 50, 51, 52)]
    values = [None if at in (10, 50, 51, 52) else 1.0 * at for at in range(400)]
    root = _parsed(_chart(*values, markers=whys))
    circles = _classed(root, kind)
    assert (2, 0) == (len(circles), len(_classed(root, other)))
    lines = "".join(one.get("d", "") for one in _classed(root, "rule"))
    axis = max(float(one) for one in re.findall(r" ([\d.]+)H", lines))
    assert all(float(one.get("cy", 0)) > axis for one in circles)
    hints = [one.text for one in root.iter(f"{SVG}title")]
    assert {"all 8 failed (timeout), at 10", "all 8 failed (timeout), at 50; 2 more up to 52"} <= {*hints}


def test_an_unknown_value_does_not_move_the_axis() -> None:
    """Nothing is drawn for it, and the axis does not begin at 0 for it."""
    ticks = [float(one) for one in _texts(_parsed(_chart(5.0, None, 6.0)))[2:] if "." in one or one in ("5", "6")]
    assert ticks
    assert 5 <= min(ticks)
    heights = {one.get("cy") for one in _classed(_parsed(_chart(5.0, None, 6.0)), "hit")}
    assert 2 == len(heights)


@pytest.mark.parametrize("values", [(), (None, None), (math.nan,), (math.inf, -math.inf)])
def test_without_a_known_value_the_chart_says_so(values: tuple[float | None, ...]) -> None:
    """No line is drawn, and no value is named."""
    root = _parsed(_chart(*values))
    assert [] == _classed(root, "line")
    assert "no values are known" in _texts(root)


@pytest.mark.parametrize(
    "values", [(0.0,), (1.0, 1.0), (0.0, 0.0), (-3.0,), (1e308, -1e308), (1e-300, 2e-300), (1e17, 1e17)]
)
def test_every_range_has_an_axis(values: tuple[float, ...]) -> None:
    """One value, the same values, and very large and very small ones stay inside of the picture."""
    root = _parsed(_chart(*values))
    _, _, wide, high = map(float, (root.get("viewBox") or "").split())
    for one in _classed(root, "hit"):
        assert 0 <= float(one.get("cx", "nan")) <= wide
        assert 0 <= float(one.get("cy", "nan")) <= high


def test_a_band_is_drawn_where_both_of_its_edges_are_known() -> None:
    """It has the gaps of its edges, not of the line."""
    curve = Curve("one", [1.0, 1.0, 1.0, 1.0, 1.0], [0.5, 0.5, None, 0.5, 0.5], [1.5] * 5)
    root = _parsed(Chart("t", range(5), [curve]))
    assert 2 == len(_classed(root, "band"))
    assert 1 == len(_classed(root, "line"))


def test_hostile_text_is_shown_as_text() -> None:
    """In a title, a name, a marker and an axis; control characters are written out."""
    chart = Chart(HOSTILE, [0, 1], [Curve(HOSTILE, [0.0, 1.0])] * 2, [Marker(1, HOSTILE)], axis=HOSTILE)
    text = chart_svg(chart)
    _parsed(chart)
    for one in ("\x1b", "\x00", "\u202e", "\ud800", "<script", "<img"):
        assert one not in text
    text.encode()


def test_a_version_is_a_line_with_its_name_and_a_flag_a_triangle() -> None:
    """What lies outside of the axis is not drawn."""
    markers = [Marker(1, "format@2"), Marker(2, "ceiling: all is best", "flag"), Marker(99, "later")]
    root = _parsed(_chart(0.0, 1.0, 2.0, 3.0, markers=markers))
    assert 1 == len(_classed(root, "version"))
    assert 1 == len(_classed(root, "flag"))
    assert "format@2" in _texts(root)
    assert "later" not in _texts(root)


def test_names_of_versions_do_not_lie_on_each_other() -> None:
    """Where there is no room for a name its line has it as a hint."""
    root = _parsed(_chart(*[0.0] * 50, markers=[Marker(at, f"a_long_name@{at}") for at in range(10, 20)]))
    lines = _classed(root, "version")
    labels = [one for one in root.iter(f"{SVG}text") if "@" in (one.text or "")]
    assert 10 == len(lines)
    assert 0 < len(labels) < 10
    spans = sorted(_span(one) for one in labels)
    assert all(one[1] <= two[0] for one, two in itertools.pairwise(spans))


def _span(text: ET.Element) -> tuple[float, float]:
    x, wide = float(text.get("x", "nan")), 6.0 * len(text.text or "")
    return (x - wide, x) if text.get("text-anchor") == "end" else (x, x + wide)


def test_several_curves_are_named_and_differ_in_more_than_colour() -> None:
    """Each has a class of its own and, beside the first, dashes; what is too many is counted."""
    curves = [Curve(f"reward {place}", [0.0, float(place)]) for place in range(CURVES + 3)]
    root = _parsed(Chart("t", [0, 1], curves))
    lines = [one for one in _classed(root, "line") if "L" in one.get("d", "")]
    assert CURVES == len(lines)
    assert CURVES == len({one.get("class") for one in lines})
    assert any("3 more" in one for one in _texts(root))


def test_a_long_run_is_drawn_as_the_means_of_its_parts() -> None:
    """The picture's size has an end, and the label names the real ends."""
    chart = _chart(*[float(place % 100) for place in range(10_000)])
    root = _parsed(chart)
    (line,) = _classed(root, "line")
    assert POINTS == len(re.findall("[ML]", line.get("d", "")))
    assert len(chart_svg(chart)) < 20_000
    assert "10,000 places" in (root.get("aria-label") or "")


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (0, 1, [0, 0.5, 1]),
        (0, 100, [0, 50, 100]),
        (-1, 1, [-1, 0, 1]),
        (2, 2, [2]),
        (0.59, 1.01, [0.6, 0.8, 1.0]),
        (-0.02, 0.05, [-0.02, 0, 0.02, 0.04]),
    ],
)
def test_ticks_are_round_numbers(low: float, high: float, expected: list[float]) -> None:
    """At least three of them."""
    assert pytest.approx(expected) == nice_ticks(low, high, 3)


def test_the_style_has_every_class_and_loads_nothing() -> None:
    """All colours are properties that the page can set."""
    for place in range(1, CURVES + 1):
        assert f".s{place}" in STYLE
        assert f"--s{place}," in STYLE
    assert "url(" not in STYLE
    assert "@import" not in STYLE
