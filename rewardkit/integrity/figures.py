"""What the acts gave on one harness, as values, JSON and a table, and how two runs differ."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

SUITE_VERSION = "1"
"""Of the acts, the tasks and the way they are counted."""
CONTROLS = ("right", "wrong", "hang")
_WIDTH = 80


@dataclass(frozen=True)
class ActOutcome:
    """What became of one act.

    Attributes:
        name: Of the act.
        verdicts: For each time it was tried: whether it passed, or ``None`` where the harness gave no verdict.
        seconds: The longest that it took.
        detail: What the harness says of the last time.
    """

    name: str
    verdicts: tuple[bool | None, ...]
    seconds: float = 0.0
    detail: str = ""

    @property
    def state(self) -> str:
        """``forged``, ``held``, ``unstable`` (passed at times), or ``no verdict``."""
        if True not in self.verdicts:
            return "held" if False in self.verdicts else "no verdict"
        return "forged" if set(self.verdicts) == {True} else "unstable"


@dataclass(frozen=True)
class HarnessFigures:
    """A whole run on one harness.

    Attributes:
        harness: Its name.
        shape: What it was handed.
        language: What the completions were written in.
        versions: Of its packages and of Python, by name.
        note: How it was called.
        isolation: What held the acts.
        seed: What the task was drawn from.
        controls: The right, the wrong and the hanging completion.
        outcomes: The acts.
        not_tried: Acts that need what is not there, with what.
        no_figure: Why the figures say nothing; empty where the controls hold.
        seconds: The whole run.
        warning: What the project itself says of hostile code.
        suite_version: Of the acts.
    """

    harness: str
    shape: str
    language: str
    versions: Mapping[str, str] = field(default_factory=dict)
    note: str = ""
    isolation: str = ""
    seed: int = 0
    controls: tuple[ActOutcome, ...] = ()
    outcomes: tuple[ActOutcome, ...] = ()
    not_tried: Mapping[str, str] = field(default_factory=dict)
    no_figure: str = ""
    seconds: float = 0.0
    warning: str = ""
    suite_version: str = SUITE_VERSION

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> HarnessFigures:
        """Return the figures of an object that :meth:`to_json` made.

        Raises:
            ValueError: It is no such object.
        """
        try:
            fields = {name: values[name] for name in cls.__dataclass_fields__}
            for name in ("controls", "outcomes"):
                rows = ({**row, "verdicts": tuple(row["verdicts"])} for row in fields[name])
                fields[name] = tuple(
                    ActOutcome(row["name"], row["verdicts"], row["seconds"], row["detail"]) for row in rows
                )
        except (KeyError, TypeError) as wrong:
            raise ValueError(f"no report of this suite: {wrong!r}") from None
        return cls(**fields)

    def to_json(self) -> dict[str, Any]:
        """Return it as an object of JSON, with the counts that follow from it."""
        values = asdict(self)
        for name in ("controls", "outcomes"):
            for row, outcome in zip(values[name], getattr(self, name), strict=True):
                row["state"] = outcome.state
        return {**values, "tried": self.tried, "forged": self.count("forged"), "unstable": self.count("unstable")}

    @property
    def tried(self) -> int:
        """How many acts were tried."""
        return len(self.outcomes)

    def count(self, state: str, family: str = "") -> int:
        """Return how many acts, of a family or of all, came out in a state."""
        return len(self.names(state, family))

    def names(self, state: str, family: str = "") -> list[str]:
        """Return the acts, of a family or of all, that came out in a state."""
        return [
            row.name
            for row in self.outcomes
            if row.state == state and (not family or row.name.partition(".")[0] == family)
        ]

    @property
    def families(self) -> list[str]:
        """The families of the acts that were tried."""
        return sorted({row.name.partition(".")[0] for row in self.outcomes})

    @property
    def headline(self) -> str:
        """The figure in a few words."""
        if self.no_figure:
            return "no figure"
        unstable = self.count("unstable")
        return f"{self.count('forged')} of {self.tried} forged" + (f", {unstable} unstable" if unstable else "")


def fault_of_controls(controls: Iterable[ActOutcome], fault: str = "") -> str:
    """Return why the controls do not hold, or an empty text."""
    by_name = {row.name: row for row in controls}
    if fault:
        return fault
    right = by_name.get("right")
    if right is None or set(right.verdicts) != {True}:
        detail = f" ({right.detail})" if right else ""
        return f"the right completion does not pass{detail}"
    for name in ("wrong", "hang", "empty"):
        if name in by_name and True in by_name[name].verdicts:
            return f"the completion that is {name} passes" if name != "hang" else "a completion that never ends passes"
    return ""


def table_of(figures: HarnessFigures) -> str:
    """Return the figures as lines of at most 80 columns."""
    return "\n".join(_lines(figures)) + "\n"


def _lines(figures: HarnessFigures) -> Iterator[str]:
    yield _cut(f"{figures.harness}: {figures.headline}")
    versions = ", ".join(f"{name} {version}" for name, version in figures.versions.items())
    yield from _wrapped(f"{figures.language}, {figures.shape}; {versions}; suite {figures.suite_version}")
    if figures.note:
        yield from _wrapped(f"how: {figures.note}")
    if figures.warning:
        yield from _wrapped(f"its own words: {figures.warning}")
    if figures.no_figure:
        yield from _wrapped(f"no figure: {figures.no_figure}")
        return
    yield ""
    yield f"{'family':<16}{'tried':>7}{'forged':>8}{'unstable':>10}{'no verdict':>12}"
    for family in figures.families:
        counts = [figures.count(state, family) for state in ("forged", "unstable", "no verdict")]
        tried = sum(row.name.partition(".")[0] == family for row in figures.outcomes)
        yield f"{family:<16}{tried:>7}{counts[0] or '-':>8}{counts[1] or '-':>10}{counts[2] or '-':>12}"
    for state in ("forged", "unstable"):
        if names := figures.names(state):
            yield ""
            yield from _wrapped(f"{state}: {', '.join(names)}")
    if figures.not_tried:
        yield ""
        yield from _wrapped(f"not tried: {', '.join(f'{name} ({need})' for name, need in figures.not_tried.items())}")
    yield ""
    controls = ", ".join(f"{row.name} {_verdict_word(row)}" for row in figures.controls)
    yield from _wrapped(f"controls: {controls}; {figures.isolation}; {figures.seconds:.0f} s; seed {figures.seed}")


def _verdict_word(row: ActOutcome) -> str:
    return {"forged": "passes", "held": "fails", "unstable": "passes at times"}.get(row.state, "has no verdict")


def _cut(text: str) -> str:
    return text if len(text) <= _WIDTH else text[: _WIDTH - 3] + "..."


def _wrapped(text: str) -> list[str]:
    import textwrap

    return textwrap.wrap(text, _WIDTH, subsequent_indent="  ", break_on_hyphens=False) or [""]


def compare(before: HarnessFigures, after: HarnessFigures) -> str:
    """Return what differs between two runs, as lines."""
    lines = [f"{before.harness}: {before.headline}", f"{after.harness}: {after.headline}"]
    states = [{row.name: row.state for row in figures.outcomes} for figures in (before, after)]
    for name in sorted(states[0].keys() | states[1].keys()):
        first, second = (state.get(name, "not tried") for state in states)
        if first != second:
            lines.append(f"  {name}: {first} -> {second}")
    if len(lines) == 2:
        lines.append("  no act differs")
    return "\n".join(_cut(line) for line in lines) + "\n"


def differs(before: HarnessFigures, after: HarnessFigures) -> bool:
    """Whether an act that was not forged before is forged now, or the figures are lost."""
    if after.no_figure and not before.no_figure:
        return True
    return bool(
        {*after.names("forged"), *after.names("unstable")} - {*before.names("forged"), *before.names("unstable")}
    )


def badge_of(figures: HarnessFigures) -> str:
    """Return an SVG badge with the figure."""
    label, value = "completion integrity", figures.headline
    color = "#9f9f9f" if figures.no_figure else "#4c1" if value.startswith("0 of") and "," not in value else "#e05d44"
    left, right = 6 * len(label) + 14, 6 * len(value) + 14
    texts = "".join(
        f'<text x="{x}" y="14" text-anchor="middle">{_escape(text)}</text>'
        for x, text in ((left // 2, label), (left + right // 2, value))
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + right}" height="20" role="img" '
        f'aria-label="{_escape(label)}: {_escape(value)}"><title>{_escape(figures.harness)}: {_escape(value)}</title>'
        f'<rect width="{left}" height="20" fill="#555"/><rect x="{left}" width="{right}" height="20" fill="{color}"/>'
        f'<g fill="#fff" font-family="Verdana,DejaVu Sans,sans-serif" font-size="11">{texts}</g></svg>\n'
    )


def _escape(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace('"', "&quot;")
