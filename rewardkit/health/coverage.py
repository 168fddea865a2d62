"""What a look at a run covers, and what it comes to in words: the same on the page, in commands and in logs."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple

from rewardkit.health.detectors import DETECTORS, NEEDS
from rewardkit.health.flag import Flag, stretch_text
from rewardkit.record.table import CompletionTable
from rewardkit.shown.text import counted

_GRAVEST = ("hacking", "faults", "signal", "noise")
_NAMED_FLAGS = 4


@dataclass(frozen=True, slots=True)
class CallCounts:
    """What became of a reward's calls."""

    scored: int = 0
    skipped: int = 0
    failed: Mapping[str, int] = field(default_factory=dict)  # By cause, the most frequent first

    def __add__(self, other: CallCounts) -> CallCounts:
        failed = Counter(self.failed) + Counter(other.failed)
        return CallCounts(self.scored + other.scored, self.skipped + other.skipped, dict(failed.most_common()))

    @property
    def calls(self) -> int:
        """All calls."""
        return self.scored + self.skipped + sum(self.failed.values())

    def __str__(self) -> str:
        """Return the counts as a line: ``334 scored, 0 skipped, 66 failed (16.5%: 66 exception)``."""
        text = f"{self.scored:,} scored, {self.skipped:,} skipped, {sum(self.failed.values()):,} failed"
        causes = ", ".join(f"{count:,} {cause}" for cause, count in self.failed.items())
        return f"{text} ({sum(self.failed.values()) / self.calls:.1%}: {causes})" if causes else text


def calls_of(table: CompletionTable) -> dict[str, CallCounts]:
    """Return by reward how many calls were scored and skipped, and how many failed by each cause."""
    counts = {}
    for name, status in table.status.items():
        causes = Counter(table.causes[name][status == "f"].tolist())
        counts[name] = CallCounts(int((status == "s").sum()), int((status == "k").sum()), dict(causes.most_common()))
    return counts


class Unflagged(NamedTuple):
    """Completions most of whose groups give no gradient, which is no flag."""

    steps: tuple[int, int] | None  # The first and last step; `None` for rows without steps
    reason: str  # What is so, and why it is no flag


@dataclass(frozen=True, slots=True)
class Coverage:
    """How much of a run the detectors looked at.

    Attributes:
        completions: Completions that were looked at.
        steps: The first and last step; ``None`` for rows without steps.
        step_count: How many steps that are.
        windows: Windows of steps, each of which the detectors looked at by itself; 0 for rows without steps.
        texts: Completions whose texts were read.
        texts_missing: Completions whose texts would have been read, and are not in the record.
        repeats: Whether a prompt came in two groups or more.
        duration_s: Seconds from the scoring of the first to that of the last of these steps; ``None`` where not known.
        baseline: The first and last of the earlier steps that they were compared with, where steps were left out.
        left_out: The first and last of each stretch of the run's steps that was not looked at, because the run is long.
        calls: By reward, what became of its calls.
        unflagged: The last window most of whose groups give no gradient and that is no flag; ``None`` without one.
    """

    completions: int = 0
    steps: tuple[int, int] | None = None
    step_count: int = 0
    windows: int = 0
    texts: int = 0
    texts_missing: int = 0
    repeats: bool = False
    duration_s: float | None = None
    baseline: tuple[int, int] | None = None
    left_out: tuple[tuple[int, int], ...] = ()
    calls: Mapping[str, CallCounts] = field(default_factory=dict)
    unflagged: Unflagged | None = None

    @property
    def extent(self) -> str:
        """What was looked at: ``steps 0 to 59 (60 steps in 2 h 3 min), 7,680 completions``."""
        rows = counted(self.completions, "row" if self.steps is None else "completion")
        if self.steps is None:
            return rows
        time = "" if self.duration_s is None else f" in {duration_text(self.duration_s)}"
        return f"{stretch_text(self.steps)} ({counted(self.step_count, 'step')}{time}), {rows}"

    @property
    def depth(self) -> str:
        """How closely it was looked at: ``in 6 windows and read the texts of a sample of 1,536``."""
        windows = f" in {counted(self.windows, 'window')}" if self.windows else ""
        sample = "all texts" if self.texts == self.completions else f"the texts of a sample of {self.texts:,}"
        texts = f" and read {sample}" if self.texts else " and read no texts"
        return f"{windows}{texts}"

    @property
    def unscored(self) -> str:
        """What gave no score, by reward: ``66 of 400 calls of judge failed``; skips only where they are most calls."""
        counts = [
            (count, verb, name, calls.calls)
            for name, calls in self.calls.items()
            for count, verb in (
                (sum(calls.failed.values()), "failed"),
                (calls.skipped if 2 * calls.skipped > calls.calls else 0, "were skipped"),
            )
            if count
        ]
        return "; ".join(
            f"{count:,} of {counted(calls, 'call')} of {name} {verb}" for count, verb, name, calls in counts
        )

    @property
    def news(self) -> str:
        """What must be told where nothing is flagged: calls without a score, and groups without a gradient."""
        return "; ".join(filter(None, (self.unscored, self.flat_groups)))

    @property
    def flat_groups(self) -> str:
        """Why groups without a gradient, most of a window, are no flag; empty for a window with few of them."""
        if self.unflagged is None:
            return ""
        steps = self.unflagged.steps
        where = "" if steps is None or steps == self.steps else f"in {stretch_text(steps)} "
        return f"{where}{self.unflagged.reason}"

    def as_row(self) -> dict[str, Any]:
        """Return it as a dictionary ready for JSON."""
        return asdict(self) | {"unflagged": None if self.unflagged is None else self.unflagged._asdict()}


def duration_text(seconds: float) -> str:
    """Return a duration in its two largest units: ``2 h 3 min``, ``48 s``."""
    whole = round(seconds)
    parts = [(whole // 86400, "d"), (whole // 3600 % 24, "h"), (whole // 60 % 60, "min"), (whole % 60, "s")]
    largest = next((index for index, (number, _) in enumerate(parts) if number), len(parts))
    units = [f"{number} {unit}" for number, unit in parts[largest : largest + 2] if number]
    return " ".join(units) or "under 1 s"


def summary_of(flags: Sequence[Flag], looked: Sequence[str], coverage: Coverage) -> str:
    """Return in a sentence what the detectors found, and over what; without a flag also how closely they looked."""
    detectors = counted(len(looked), "detector")
    if not flags:
        outcome = f"; {coverage.news}" if coverage.news else ", and found nothing"
        return f"No flag in {coverage.extent}: {detectors} looked{coverage.depth}{outcome}."
    gravest = sorted(flags, key=lambda flag: _GRAVEST.index(DETECTORS[flag.detector].family))
    names = [_flag_name(flag) for flag in gravest]
    more = f"; and {len(names) - _NAMED_FLAGS} more" if len(names) > _NAMED_FLAGS else ""
    return f"{counted(len(flags), 'flag')} in {coverage.extent}: {'; '.join(names[:_NAMED_FLAGS])}{more}."


def _flag_name(flag: Flag) -> str:
    """Return a flag's name with its reward and its steps: ``timeouts of judge (2 times, steps 3 to 40)``."""
    name = flag.detector.replace("_", " ")
    name += "" if flag.reward is None else f" of {flag.reward}"
    first, last = flag.first_step, flag.last_step
    if first is None or last is None:
        return name
    when = stretch_text((first, last))
    return f"{name} ({f'{len(flag.spans)} times, ' if len(flag.spans) > 1 else ''}{when})"


def with_run(text: str, run: str) -> str:
    """Return a text with what commands call the run in place of ``RUN``, so that the commands in it can be copied."""
    return re.sub(r"(?<= )RUN(?=[ ).,]|$)", lambda _: run, text)


def blind_spots_of(not_looked: Mapping[str, str], coverage: Coverage, run: str) -> list[str]:
    """Return what cannot be seen in what was looked at: a line each, why first, then what that hides."""
    by_reason: dict[str, list[str]] = {}
    for name, reason in not_looked.items():
        by_reason.setdefault(reason, []).append(name)
    lines = [f"{_with_steps(reason, coverage)}: {', '.join(names)}" for reason, names in by_reason.items()]
    if coverage.left_out:
        stretches = " and ".join(map(stretch_text, coverage.left_out))
        lines.append(f"{stretches} were left out: rewardkit diagnose RUN --all looks at them")
    if coverage.texts and coverage.texts_missing:
        lines.append(f"{coverage.texts_missing:,} completions have no text in the record: what they say")
    if coverage.completions and coverage.steps is not None and not coverage.repeats:
        lines.append("no prompt came twice: whether the answers to one prompt got worse")
    return [with_run(line, run) for line in lines]


def _with_steps(reason: str, coverage: Coverage) -> str:
    if reason != NEEDS["baseline"].reason or coverage.steps is None:
        return reason
    return f"too few steps ({coverage.step_count}), {reason}"
