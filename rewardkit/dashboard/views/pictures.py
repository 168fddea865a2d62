"""The pictures of a run: what the page is told of those in a text or in a row, and the pictures themselves."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from typing import Any

from rewardkit.dashboard.as_json import Part
from rewardkit.dashboard.readers import NotThere, OpenRun
from rewardkit.record.pictures.scaling import Picture
from rewardkit.record.pictures.sources import picture_references
from rewardkit.replay.recorded_run import Run

MOST_PICTURES = 50  # Pictures of a column, or of a conversation, that are shown


def column_pictures(run: Run, columns: Mapping[str, Any]) -> dict[str, list[dict[str, Any]]]:
    """Return what is known of the pictures in a row's columns, by column; a path counts where a picture was read."""
    references = {
        name: list(itertools.islice(picture_references(value), MOST_PICTURES)) for name, value in columns.items()
    }
    abouts = run.pictures(reference.key for column in references.values() for reference in column)
    in_columns = {
        name: [
            abouts[reference.key]._asdict()
            for reference in column
            if not (reference.is_path and abouts[reference.key].is_absent)
        ]
        for name, column in references.items()
    }
    return {name: pictures for name, pictures in in_columns.items() if pictures}


def with_pictures(run: Run, body: dict[str, Any] | None) -> dict[str, Any] | None:
    """Return a text as :func:`~rewardkit.dashboard.as_json.text_json` makes it, with what is known of its pictures."""
    parts = list(itertools.islice(_picture_parts(body), MOST_PICTURES))
    abouts = run.pictures(part["picture"] for part in parts)
    for part in parts:
        part["about"] = abouts[part["picture"]]._asdict()
    return body


def _picture_parts(body: dict[str, Any] | None) -> Iterator[Part]:
    for message in (body or {}).get("messages", ()):
        for part in message["parts"]:
            if part["kind"] == "picture" and part["picture"]:
                yield part


def picture(opened: OpenRun, key: str) -> Picture:
    """Return a picture of a run.

    Raises:
        NotThere: The record has no such picture.
    """
    recorded = opened.run.picture(key)
    if recorded is None:
        raise NotThere(f"{opened.run.name}: no picture {key[:40]!r}")
    return recorded
