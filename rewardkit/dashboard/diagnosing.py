"""What the dashboard runs in a process of its own: the detectors, over the newest steps of a run.

``python -m rewardkit.dashboard.diagnosing`` reads a line with the record, whose address may hold a password, and writes
one line of JSON: what they found, ready for the page. It leaves the processor to whatever else wants it, and ends when
its standard input does, so that it does not outlive the server.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from rewardkit.errors import RecordError
from rewardkit.health.detectors import DETECTORS
from rewardkit.health.examine import Diagnosis, diagnose_run
from rewardkit.health.flag import Flag
from rewardkit.messages import completion_text
from rewardkit.record.reader import RunReader
from rewardkit.record.values import Completion
from rewardkit.shown.text import counted

MOST_COMPLETIONS = 100_000
"""About how many completions are looked at, the newest ones."""
TEXT_CHARS = 400
"""Characters of a completion that are shown as evidence."""
_NICE = 15
_GRAVEST = ("hacking", "faults", "signal", "noise")


def main() -> None:
    """Look at the record that is named, and tell what was found."""
    os.nice(_NICE)
    record = json.loads(sys.stdin.buffer.readline())
    threading.Thread(target=_end_with_input, daemon=True).start()
    print(json.dumps(looked(record), default=lambda value: value.tolist()), flush=True)
    os._exit(0)  # the other thread waits for ever


def _end_with_input() -> None:
    sys.stdin.buffer.read()
    os._exit(1)


def looked(record: str, most: int = MOST_COMPLETIONS) -> dict[str, Any]:
    """Return what is found in a record, or why nothing can be, as of which step, and the seconds of a processor.

    Args:
        record: The record.
        most: About how many completions are looked at.
    """
    told: dict[str, Any] = {"diagnosis": None, "problem": None, "step": None}
    try:
        with RunReader(record) as run:
            told["step"] = max(run.steps(), default=None)
            told["diagnosis"] = diagnosis(run, diagnose_run(run, most=most))
    except RecordError as wrong:
        told["problem"] = str(wrong)
    except Exception as fault:  # a fault of a detector is told on the page, and ends nothing in silence
        told["problem"] = f"the detectors failed: {type(fault).__name__}: {fault}"
    return told | {"processor_s": time.process_time()}


def diagnosis(run: RunReader, found: Diagnosis) -> dict[str, Any]:
    """Return a diagnosis as the page shows it, with the completions that its flags name."""
    ids = list(dict.fromkeys(one for flag in found.flags for one in flag.rows))
    rows = {one.id: one for one in run.by_id(ids)}
    return found.as_row() | {
        "words": words_of(found),
        "gradient": found.gradient,
        "baseline": found.baseline,
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
    count = counted(len(found.flags), "flag")
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


if __name__ == "__main__":
    main()
