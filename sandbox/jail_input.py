"""What enters a jail besides source: calls and files, looked at before they do."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any

from sandbox import plain
from sandbox.errors import NotPlainError
from sandbox.jail.scratch import MOST_FILES

MAX_CALLS = 100_000  # calls in one evaluation


def encode_calls(calls: Iterable[Any]) -> list[list[Any]]:
    """Return calls as they enter a jail; raise ``ValueError`` for more than :data:`MAX_CALLS`."""
    encoded = [_encode_call(number, call) for number, call in enumerate(calls)]
    if len(encoded) > MAX_CALLS:
        raise ValueError(f"{len(encoded):,} calls in one evaluation; at most {MAX_CALLS:,}")
    return encoded


def _encode_call(number: int, call: Iterable[Any]) -> list[Any]:
    """Return a call's arguments and keywords as they enter a jail; raise NotPlainError with the call's number."""
    arguments, keywords = ([], dict(call)) if isinstance(call, Mapping) else (list(call), {})
    try:
        return [plain.encode(arguments), plain.encode(keywords)]
    except NotPlainError as error:
        raise NotPlainError(f"call {number}: {error}") from None


def checked_files(files: Mapping[str, str | bytes], most_bytes: int) -> dict[str, str | bytes]:
    """Return the files; raise ``ValueError`` for a name that leads elsewhere, for content that is no text, or many."""
    for name, content in files.items():
        if not name or name.startswith("/") or ".." in name.split("/") or "\0" in name:
            raise ValueError(f"file name {name!r}: expected a relative one that stays in its directory")
        try:
            os.fsencode(name)
            size = len(content if isinstance(content, bytes) else content.encode("utf-8", "surrogateescape"))
        except UnicodeEncodeError as error:
            raise ValueError(f"file {name!r}: cannot be written as UTF-8: {error}") from None
        if size > most_bytes:
            raise ValueError(f"file {name!r}: {size:,} bytes; at most {most_bytes:,} (file_bytes)")
    folders = {name[:index] for name in files for index, letter in enumerate(name) if letter == "/"}
    if len(files) + len(folders) > MOST_FILES:
        raise ValueError(f"{len(files) + len(folders):,} files and folders; at most {MOST_FILES:,}")
    return dict(files)
