"""The pictures of a record in its database: each distinct one once, and which of them a key means.

Their tables are made with the first picture, so that a record without pictures is as it was before there were any, and
an older record is read as it is.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from rewardkit.record.opened_record import OpenedRecord
from rewardkit.record.pictures.scaling import KINDS, Picture, ScaledPicture
from rewardkit.record.store import RecordConnection

TABLES = """
CREATE TABLE IF NOT EXISTS picture (
    id INTEGER PRIMARY KEY,
    digest TEXT NOT NULL UNIQUE,
    kind TEXT NOT NULL,
    width INTEGER NOT NULL,
    height INTEGER NOT NULL,
    body BLOB NOT NULL
);
CREATE TABLE IF NOT EXISTS picture_key (
    key TEXT PRIMARY KEY NOT NULL,
    picture INTEGER REFERENCES picture,
    reason TEXT,
    width INTEGER,
    height INTEGER
) WITHOUT ROWID;
"""
_KEY = (
    "INSERT INTO picture_key VALUES (?, ?, ?, ?, ?) ON CONFLICT (key) DO UPDATE SET picture = excluded.picture,"
    " reason = excluded.reason, width = excluded.width, height = excluded.height WHERE picture_key.picture IS NULL"
)
_ABOUT = (
    "SELECT key, reason, picture_key.width, picture_key.height, picture.width, picture.height FROM picture_key"
    " LEFT JOIN picture ON picture.id = picture_key.picture WHERE key IN ({})"
)
_PICTURE = (
    "SELECT kind, picture.width, picture.height, body FROM picture JOIN picture_key"
    " ON picture_key.picture = picture.id WHERE key = ?"
)
_LARGEST = 32 << 20  # Bytes of a stored picture, at most
_ABSENT = "not in the record: the run ended before it was written, or has not written it yet"


class PictureAbout(NamedTuple):
    """What is known of a picture without its pixels."""

    key: str  # What a reference has behind ``picture:``
    reason: str | None  # Why it is not in the record; ``None`` where it is
    width: int | None  # Of the stored one, in pixels
    height: int | None
    original_width: int | None  # Of the one that the row had
    original_height: int | None
    is_absent: bool = False  # Whether the record says nothing of it


def store_picture(connection: RecordConnection, key: str, scaled: ScaledPicture) -> None:
    """Store a picture where it is new, and what became of its key, in the transaction that is open."""
    if not connection.cache.get("pictures"):
        connection.make(TABLES)
        connection.cache["pictures"] = True
    number = None if scaled.picture is None else _number_of(connection, scaled.picture)
    connection.execute(_KEY, (key, number, scaled.reason, scaled.width, scaled.height))


def _number_of(connection: RecordConnection, picture: Picture) -> int:
    digest = hashlib.blake2b(picture.body, digest_size=16).hexdigest()
    row = connection.execute("SELECT id FROM picture WHERE digest = ?", (digest,)).fetchone()
    return connection.insert("picture", {"digest": digest, **picture._asdict()}) if row is None else int(row[0])


class RecordedPictures(OpenedRecord):
    """A record whose pictures can be read."""

    def pictures(self, keys: Iterable[str]) -> Mapping[str, PictureAbout]:
        """Return what is known of pictures by their keys, which references have behind ``picture:``.

        Raises:
            RecordError: The record cannot be read.
        """
        names = list(dict.fromkeys(keys))
        rows = self._picture_rows(_ABOUT, names) if names and self.has_pictures else []
        abouts = {row[0]: _about(*row) for row in rows}
        return {
            name: abouts.get(name) or PictureAbout(name, _ABSENT, None, None, None, None, is_absent=True)
            for name in names
        }

    def picture(self, key: str) -> Picture | None:
        """Return a picture; ``None`` where the record has none of this key, or what it has is no picture.

        Raises:
            RecordError: The record cannot be read.
        """
        rows = self._tuples(_PICTURE, key) if self.has_pictures else []
        for kind, width, height, body in rows:
            if kind in KINDS and isinstance(body, bytes) and body.startswith(KINDS[kind]) and len(body) <= _LARGEST:
                return Picture(kind, int(width), int(height), body)
        return None

    @property
    def has_pictures(self) -> bool:
        """Whether any row had a picture, be it in the record or left out."""
        with self._errors():
            return self._connection.has_table("picture_key")

    def _picture_rows(self, query: str, keys: list[str]) -> list[tuple[str, str | None, *tuple[int | None, ...]]]:
        rows: list[tuple[str, str | None, *tuple[int | None, ...]]] = []
        for start in range(0, len(keys), 500):
            page = keys[start : start + 500]
            rows += self._tuples(query.format(",".join("?" * len(page))), *page)
        return rows


def _about(key: str, reason: str | None, *sizes: int | None) -> PictureAbout:
    original_width, original_height, width, height = sizes
    if width is None and reason is None:
        reason = _ABSENT
    return PictureAbout(key, reason, width, height, original_width, original_height)
