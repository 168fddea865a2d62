"""Notes in a run's record by who does not record the run: events, written at once and by no session."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Mapping, Sequence
from typing import Any

from rewardkit.record.batch_rows import storable
from rewardkit.record.place import RecordPlace
from rewardkit.record.secrets import Secrets
from rewardkit.record.store import transaction


def add_notes(run: RecordPlace, kind: str, bodies: Sequence[Mapping[str, Any]], step: int | None = None) -> None:
    """Add events to a record that is there, also while its run goes on; secrets of the environment are hidden.

    Without any the record stays as it is: whoever watches it sees no change.

    Raises:
        RecordError: The record cannot be written.
    """
    if not bodies:
        return
    hide = Secrets(run.secrets).hide
    with run.errors(), contextlib.closing(run.connect_to_write()) as connection, transaction(connection):
        for body in bodies:
            text = storable(hide(json.dumps(dict(body), default=repr)))
            connection.insert("event", {"time": time.time(), "step": step, "kind": kind, "body": text})
