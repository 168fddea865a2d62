"""What the dashboard runs in a process of its own: the detectors, over the newest steps of a run.

``python -m rewardkit.dashboard.diagnosing`` reads a line with the record, whose address may hold a password, and writes
one line of JSON: what they found, ready for the page. It leaves the processor to whatever else wants it, and ends
with the server.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from rewardkit.dashboard.as_json import attributes
from rewardkit.dashboard.jobs import end_with_server
from rewardkit.errors import RecordError
from rewardkit.health.detectors import DETECTORS
from rewardkit.health.examine import Diagnosis, diagnose_run
from rewardkit.health.flag import Flag
from rewardkit.messages import completion_text
from rewardkit.record.reader import RunReader
from rewardkit.record.values import Completion
from rewardkit.shown.text import counted

MOST_COMPLETIONS = 100_000  # About how many completions are looked at, the newest ones
TEXT_CHARS = 400  # Characters of a completion that are shown as evidence
_NICE = 15  # whatever else runs on the machine, the training above all, goes first
_GRAVEST = ("hacking", "faults", "signal", "noise")


def main() -> None:
    """Look at the record that standard input names, and print what the detectors found."""
    end_with_server()
    os.nice(_NICE)
    record = json.loads(sys.stdin.buffer.readline())
    print(json.dumps(diagnosis_of(record), default=lambda value: value.tolist()), flush=True)


def diagnosis_of(record: str, most: int = MOST_COMPLETIONS) -> dict[str, Any]:
    """Return a diagnosis of about ``most`` completions or why it has none, the last step, and processor seconds."""
    answer: dict[str, Any] = {"diagnosis": None, "problem": None, "step": None}
    try:
        with RunReader(record) as run:
            answer["step"] = max(run.steps(), default=None)
            answer["diagnosis"] = diagnosis(run, diagnose_run(run, most=most))
    except RecordError as error:
        answer["problem"] = str(error)
    except Exception as error:  # a fault of a detector is told on the page, and ends nothing in silence
        answer["problem"] = f"the detectors failed: {type(error).__name__}: {error}"
    return answer | {"processor_s": time.process_time()}


def diagnosis(run: RunReader, result: Diagnosis) -> dict[str, Any]:
    """Return a diagnosis as the page shows it, with the completions that its flags name."""
    ids = list(dict.fromkeys(row_id for flag in result.flags for row_id in flag.rows))
    rows = {row.id: row for row in run.by_id(ids)}
    return result.as_row() | {
        "words": sentence_of(result),
        "gradient": result.gradient,
        "baseline": result.baseline,
        "flags": [_flag(flag, rows) for flag in result.flags],
        "not_looked": [{"reason": reason, "detectors": names} for reason, names in result.not_looked_by_reason.items()],
    }


def sentence_of(result: Diagnosis) -> str:
    """Return a diagnosis in a sentence or two."""
    over = f"{result.completions:,} completions"
    if result.steps is not None:
        first, last = result.steps
        over = f"steps {first:,} to {last:,}, {over}" if first != last else f"step {first:,}, {over}"
    if not result.flags:
        return f"No flag in {over}: {len(result.looked)} detectors looked and found nothing."
    kinds: dict[tuple[str, str | None], list[Flag]] = defaultdict(list)
    for flag in sorted(result.flags, key=lambda flag: _GRAVEST.index(DETECTORS[flag.detector].family)):
        kinds[flag.detector, flag.reward].append(flag)
    names = [_flag_name(flags) for flags in kinds.values()]
    more = f"; and {len(names) - 4} more" if len(names) > 4 else ""
    count = counted(len(result.flags), "flag")
    return f"{count} in {over}: {'; '.join(names[:4])}{more}."


def _flag_name(flags: Sequence[Flag]) -> str:
    """Return a name for the flags of one detector and reward, with their count and steps."""
    name = flags[0].detector.replace("_", " ")
    name += "" if flags[0].reward is None else f" of {flags[0].reward}"
    first, last = flags[0].first_step, flags[-1].last_step
    if first is None or last is None:
        return name
    when = f"step {first:,}" if first == last else f"steps {first:,} to {last:,}"
    return f"{name} ({f'{len(flags)} times, ' if len(flags) > 1 else ''}{when})"


def _flag(flag: Flag, rows: Mapping[int, Completion]) -> dict[str, Any]:
    evidence = [_evidence(rows[row_id], flag.reward) for row_id in flag.rows if row_id in rows]
    return flag.as_row() | {"family": DETECTORS[flag.detector].family, "rows": evidence}


def _evidence(completion: Completion, reward: str | None) -> dict[str, Any]:
    """Return a completion as evidence: the beginning of its text, and the score that the flag is about."""
    outcome = None if reward is None else completion.outcomes.get(reward)
    text = None if completion.completion is None else completion_text(completion.completion)
    return {
        **attributes(completion, "step", "prompt_index", "tokens"),
        "completion": completion.id,
        "text": None if text is None else text[:TEXT_CHARS],
        "cut": text is not None and len(text) > TEXT_CHARS,
        "score": completion.reward if outcome is None else outcome.score,
        "status": None if outcome is None else str(outcome.status),
        "cause": None if outcome is None or outcome.cause is None else str(outcome.cause),
    }


if __name__ == "__main__":
    main()
