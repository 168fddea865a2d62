"""Harbor's criteria that look at files alone, by their names there."""

from __future__ import annotations

import csv
import inspect
import io
import json
import posixpath
import re
from collections.abc import Callable, Mapping, Sequence
from difflib import SequenceMatcher
from typing import NamedTuple, TypeAlias

Files: TypeAlias = Mapping[str, bytes]
_MOST_COMPARED = 100_000
"""Characters beyond which a similarity, whose time grows with the square, is 0.0."""


class FileCriterionKind(NamedTuple):
    """A kind of criterion: what it returns for files and arguments, the first of which are ``paths`` names of files."""

    function: Callable[..., float | bool]
    paths: int = 1

    def bound(
        self, values: Sequence[object], options: Mapping[str, object], workdir: str
    ) -> Callable[[Files], float] | None:
        """Return the share that files earn with these arguments; ``None`` where they do not fit or lead outside."""
        try:
            arguments = inspect.signature(self.function).bind({}, *values, **options).arguments
        except TypeError:
            return None
        rest = dict(list(arguments.items())[1:])
        for name in list(rest)[: self.paths]:
            path = rest[name]
            inside = posixpath.relpath(posixpath.join(workdir, path), workdir) if isinstance(path, str) else ".."
            if inside.split("/")[0] == "..":
                return None
            rest[name] = inside
        return lambda files: float(self.function(files, **rest))


def _text(files: Files, path: str) -> str | None:
    content = files.get(path)
    return None if content is None else content.decode("utf-8", "replace").replace("\r\n", "\n").replace("\r", "\n")


def _document(files: Files, path: str) -> object:
    """Return a file's JSON; an object of its own, equal to nothing, where it has none."""
    try:
        return json.loads(files.get(path, b""))
    except (ValueError, RecursionError):
        return object()


def _exists(files: Files, path: str) -> bool:
    return path == "." or path in files or any(name.startswith(f"{path}/") for name in files)


def _not_exists(files: Files, path: str) -> bool:
    return not _exists(files, path)


def _contains(files: Files, path: str, text: str) -> bool:
    content = _text(files, path)
    return content is not None and text in content


def _contains_regex(files: Files, path: str, pattern: str) -> bool:
    content = _text(files, path)
    return content is not None and re.search(pattern, content) is not None


def _matches(files: Files, path: str, expected: str) -> bool:
    content = _text(files, path)
    return content is not None and content.strip() == expected.strip()


def _equal(files: Files, path1: str, path2: str) -> bool:
    first, second = _text(files, path1), _text(files, path2)
    return first is not None and second is not None and first.strip() == second.strip()


def _similarity(files: Files, path: str, expected: str) -> float:
    content = _text(files, path)
    if content is None or len(content) > _MOST_COMPARED:
        return 0.0
    return SequenceMatcher(None, content.strip(), expected.strip()).ratio()


def _json_key(files: Files, path: str, key: str, expected: object) -> bool:
    document = _document(files, path)
    return isinstance(document, dict) and key in document and document[key] == expected


def _json_path(files: Files, path: str, json_path: str, expected: object) -> bool:
    value = _document(files, path)
    for segment in json_path.split("."):
        if isinstance(value, dict) and segment in value:
            value = value[segment]
        elif (
            isinstance(value, list) and re.fullmatch(r"-?\d{1,9}", segment) and -len(value) <= int(segment) < len(value)
        ):
            value = value[int(segment)]
        else:
            return False
    return value == expected


def _csv_cell(files: Files, path: str, row: int, col: int | str, expected: str) -> bool:
    content = files.get(path)
    if content is None:
        return False
    stream = io.StringIO(content.decode("utf-8", "replace"), newline="")
    try:
        rows: list[object] = list(csv.DictReader(stream) if isinstance(col, str) else csv.reader(stream))
    except csv.Error:
        return False
    if not 0 <= row < len(rows):
        return False
    cells = rows[row]
    if isinstance(cells, dict):
        return bool(cells.get(col) == expected)
    return (
        isinstance(cells, list)
        and isinstance(col, int)
        and -len(cells) <= col < len(cells)
        and bool(cells[col] == expected)
    )


FILE_CRITERIA: Mapping[str, FileCriterionKind] = {
    "file_exists": FileCriterionKind(_exists),
    "file_not_exists": FileCriterionKind(_not_exists),
    "file_contains": FileCriterionKind(_contains),
    "file_contains_regex": FileCriterionKind(_contains_regex),
    "file_matches": FileCriterionKind(_matches),
    "files_equal": FileCriterionKind(_equal, paths=2),
    "diff_ratio": FileCriterionKind(_similarity),
    "json_key_equals": FileCriterionKind(_json_key),
    "json_path_equals": FileCriterionKind(_json_path),
    "csv_cell_equals": FileCriterionKind(_csv_cell),
}
