"""The pictures of a run: what the page is told of those in a text or in a row, and the pictures themselves."""

from __future__ import annotations

import base64
import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rewardkit.dashboard.as_json import Part
from rewardkit.dashboard.query import Query
from rewardkit.dashboard.readers import NotThere, OpenRun
from rewardkit.record.pictures.scaling import Picture
from rewardkit.record.pictures.sources import picture_references
from rewardkit.record.reader import RunReader

MOST_PICTURES = 50  # Pictures of a column, or of a conversation, that are shown


def column_pictures(run: RunReader, columns: Mapping[str, Any]) -> dict[str, list[dict[str, Any]]]:
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


def with_pictures(run: RunReader, body: dict[str, Any] | None) -> dict[str, Any] | None:
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


def picture_data(opened: OpenRun, query: Query) -> dict[str, Any]:
    """Return a picture as a data URL, for a page without a server. Query: ``key``."""
    recorded = picture(opened, query.text("key", ""))
    data = base64.b64encode(recorded.body).decode("ascii")
    return {"url": f"data:{recorded.media_type};base64,{data}"}


def keys_of_prompt(opened: OpenRun, number: int) -> list[str]:
    """Return the keys of the pictures of a prompt and of its row that the record has."""
    recorded = opened.run.prompt(number)
    return _stored(opened.run, [recorded.prompt, dict(recorded.columns)])


def keys_of_completion(opened: OpenRun, number: int) -> list[str]:
    """Return the keys of the pictures of a completion that the record has, without those of its prompt."""
    rows = opened.run.by_id([number])
    of_prompt = {key for row in rows for key in keys_of_prompt(opened, row.prompt_index)}
    return [key for key in _stored(opened.run, [row.completion for row in rows]) if key not in of_prompt]


def _stored(run: RunReader, values: Sequence[object]) -> list[str]:
    keys = [reference.key for value in values for reference in picture_references(value)]
    return [key for key, about in run.pictures(keys).items() if about.reason is None]


def picture(opened: OpenRun, key: str) -> Picture:
    """Return a picture of a run.

    Raises:
        NotThere: The record has no such picture.
    """
    recorded = opened.run.picture(key)
    if recorded is None:
        raise NotThere(f"{opened.run.name}: no picture {key[:40]!r}")
    return recorded
