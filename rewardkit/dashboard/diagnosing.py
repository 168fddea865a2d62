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
from collections.abc import Mapping
from typing import Any

from rewardkit.dashboard.as_json import attributes
from rewardkit.dashboard.jobs import end_with_server
from rewardkit.errors import RecordError
from rewardkit.health.detectors import DETECTORS
from rewardkit.health.examine import MOST_COMPLETIONS, Diagnosis, diagnose_run
from rewardkit.health.flag import Flag
from rewardkit.messages import completion_text
from rewardkit.record.reader import RunReader
from rewardkit.record.values import Completion

TEXT_CHARS = 400  # Characters of a completion that are shown as evidence
_NICE = 15  # whatever else runs on the machine, the training above all, goes first


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
        "gradient": result.gradient,
        "flags": [_flag(flag, rows) for flag in result.flags],
    }


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
