"""What the detectors say of a run: flags with the completions that show them, and the diagnosis in words."""

from __future__ import annotations

import shlex
import threading
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from rewardkit.dashboard.query import Query
from rewardkit.dashboard.readers import Kept, Opened, Stamp
from rewardkit.errors import RecordError
from rewardkit.health.about import FAMILIES, about
from rewardkit.health.detectors import DETECTORS
from rewardkit.health.examine import Diagnosis, diagnose_run
from rewardkit.health.flag import Flag
from rewardkit.record.reader import RunReader
from rewardkit.record.values import Completion
from rewardkit.text import completion_text

AGAIN_S = 10.0
"""Seconds from the end of one diagnosis to the beginning of the next, at least."""
SHARE = 5.0
"""A diagnosis that takes long waits this many times as long before the next: a fifth of a core, at most."""
FIRST_S = 1.0
"""Seconds that a request waits for a run's first diagnosis."""
TEXT_CHARS = 400
"""Characters of a completion that are shown as evidence."""


_GRAVEST = ("hacking", "faults", "signal", "noise")


class Looked(NamedTuple):
    """A diagnosis, and of what.

    Attributes:
        found: The diagnosis; ``None`` where the record cannot be looked at.
        problem: Why not.
        version: The state of the record that was looked at.
        step: The last training step that it had.
        seconds: How long the looking took.
        ended: When it ended, on the clock of this process.
    """

    found: Diagnosis | None
    problem: str | None
    version: Stamp
    step: int | None
    seconds: float
    ended: float


class Looking:
    """The newest diagnosis of a run. A new one is made in a thread of its own, one at a time."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._looked: Looked | None = None
        self._at_work = False

    def newest(self, path: Path, version: Stamp) -> tuple[Looked | None, bool]:
        """Return the newest diagnosis and whether another one is being made, which is begun where it is due.

        Args:
            path: The record.
            version: Its state now.
        """
        with self._changed:
            self._begin(path, version)
            if self._looked is None:
                self._changed.wait_for(lambda: self._looked is not None, FIRST_S)
            return self._looked, self._at_work

    def flags(self) -> int | None:
        """Return how many flags the newest diagnosis has; ``None`` where there is no diagnosis."""
        with self._changed:
            found = None if self._looked is None else self._looked.found
            return None if found is None else len(found.flags)

    def begin(self, path: Path, version: Stamp) -> bool:
        """Begin another diagnosis where it is due, wait for nothing, and return whether one is being made."""
        with self._changed:
            self._begin(path, version)
            return self._at_work

    def _begin(self, path: Path, version: Stamp) -> None:
        if self._at_work or not self._is_due(version):
            return
        self._at_work = True
        threading.Thread(target=self._look, args=(path, version), name="rewardkit-diagnosis", daemon=True).start()

    def _is_due(self, version: Stamp) -> bool:
        if self._looked is None:
            return True
        wait = max(AGAIN_S, SHARE * self._looked.seconds)
        return version != self._looked.version and time.monotonic() >= self._looked.ended + wait

    def _look(self, path: Path, version: Stamp) -> None:
        began = time.monotonic()
        found, problem, step = None, None, None
        try:
            with RunReader(path) as run:
                step = max(run.steps(), default=None)
                found = diagnose_run(run)
        except RecordError as wrong:
            problem = str(wrong)
        except Exception as fault:  # a fault of a detector is told on the page, and ends no thread in silence
            problem = f"the detectors failed: {type(fault).__name__}: {fault}"
        now = time.monotonic()
        with self._changed:
            self._looked = Looked(found, problem, version, step, now - began, now)
            self._at_work = False
            self._changed.notify_all()


def view(opened: Opened, query: Query) -> dict[str, Any]:
    """Return what the detectors say, as of which step, what the training flagged, and what each detector is."""
    run = opened.run
    looking = looking_of(opened.kept)
    looked, at_work = looking.newest(run.path, opened.version)
    told: dict[str, Any] = {
        "looking": at_work,
        "families": dict(FAMILIES),
        "detectors": _detectors(),
        "versions": [
            {"reward": one.reward, "version": one.number, "first_step": one.first_step} for one in run.own_versions
        ],
        "live": [
            one["body"] | {"time": one["time"], "event": one["id"]} for one in run.events if one["kind"] == "flag"
        ],
        "last_step": max(run.steps(), default=None),
        "audit": audit_of(run),
        "diagnosis": None,
        "problem": None,
    }
    if looked is None:
        return told
    told |= {"as_of_step": looked.step, "seconds": looked.seconds, "current": looked.version == opened.version}
    found = looked.found
    if found is None:
        return told | {"problem": looked.problem}
    shown = opened.kept.get(("health", "shown"), looked.ended, lambda: _diagnosis(run, found))
    return told | {"diagnosis": shown}


def looking_of(kept: Kept) -> Looking:
    """Return what looks at a run: one for the tab and for the list of runs, so that both tell one number of flags."""
    return kept.get(("health", "looking"), 0, Looking)


def audit_of(run: RunReader) -> str:
    """Return the command that tries the run's best completions, changed, on its rewards."""
    newest = {one.reward: one for one in run.own_versions}
    files = {(one.reference or "").rpartition(":")[0] for one in newest.values()}
    file = files.pop() if len(files) == 1 else ""
    rewards = file if file.endswith(".py") else "rewards.py"
    return f"rewardkit audit {shlex.quote(rewards)} --run {shlex.quote(str(run.path.parent))}"


def _detectors() -> list[dict[str, Any]]:
    """Return what each detector says of itself."""
    return [
        {
            "name": name,
            "family": one.family,
            "each": one.each,
            "at_once": one.at_once,
            "summary": told.summary,
            **{part.lower(): words for part, words in told.parts.items()},
        }
        for name, one in DETECTORS.items()
        for told in [about(one)]
    ]


def _diagnosis(run: RunReader, found: Diagnosis) -> dict[str, Any]:
    ids = list(dict.fromkeys(one for flag in found.flags for one in flag.rows))
    rows = {one.id: one for one in run.by_id(ids)}
    return found.as_row() | {
        "words": words_of(found),
        "gradient": found.gradient,
        "flags": [_flag(flag, rows) for flag in found.flags],
        "not_looked": [{"reason": words, "detectors": names} for words, names in found.not_looked_by_reason.items()],
    }


def words_of(found: Diagnosis) -> str:
    """Return a diagnosis in a sentence or two."""
    over = f"{found.completions:,} completions"
    if found.steps is not None:
        first, last = found.steps
        over = f"steps {first:,} to {last:,}, {over}" if first != last else f"step {first:,}, {over}"
    if not found.flags:
        return f"No flag in {over}: {len(found.looked)} detectors looked and found nothing."
    kinds: dict[tuple[str, str | None], list[Flag]] = defaultdict(list)
    for flag in sorted(found.flags, key=lambda flag: _GRAVEST.index(DETECTORS[flag.detector].family)):
        kinds[flag.detector, flag.reward].append(flag)
    told = [_named(flags) for flags in kinds.values()]
    more = f"; and {len(told) - 4} more" if len(told) > 4 else ""
    count = "1 flag" if len(found.flags) == 1 else f"{len(found.flags)} flags"
    return f"{count} in {over}: {'; '.join(told[:4])}{more}."


def _named(flags: Sequence[Flag]) -> str:
    """Return what the flags of one detector and reward are, and when they were up."""
    name = flags[0].detector.replace("_", " ")
    name += "" if flags[0].reward is None else f" of {flags[0].reward}"
    first, last = flags[0].first_step, flags[-1].last_step
    if first is None or last is None:
        return name
    when = f"step {first:,}" if first == last else f"steps {first:,} to {last:,}"
    return f"{name} ({f'{len(flags)} times, ' if len(flags) > 1 else ''}{when})"


def _flag(flag: Flag, rows: Mapping[int, Completion]) -> dict[str, Any]:
    shown = [_evidence(rows[one], flag.reward) for one in flag.rows if one in rows]
    return flag.as_row() | {"family": DETECTORS[flag.detector].family, "rows": shown}


def _evidence(one: Completion, reward: str | None) -> dict[str, Any]:
    """Return what is shown of a completion as evidence: its text, and the score that the flag is about."""
    outcome = None if reward is None else one.outcomes.get(reward)
    text = None if one.completion is None else completion_text(one.completion)
    return {
        "completion": one.id,
        "step": one.step,
        "prompt_index": one.prompt_index,
        "text": None if text is None else text[:TEXT_CHARS],
        "cut": text is not None and len(text) > TEXT_CHARS,
        "tokens": one.tokens,
        "score": one.reward if outcome is None else outcome.score,
        "status": None if outcome is None else str(outcome.status),
        "cause": None if outcome is None or outcome.cause is None else str(outcome.cause),
    }
