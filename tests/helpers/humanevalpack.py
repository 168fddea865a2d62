"""Rows of HumanEvalPack: a suite in the language, a solution that is right and one that is not."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from sandbox.languages.language import Suite

FILES = {"cpp": "humanevalpack_cpp.jsonl", "javascript": "humanevalpack_js.jsonl"}
NOT_JUDGED = {
    ("cpp", 22): "boost/any.hpp is not on the machine",
    ("cpp", 137): "boost/any.hpp is not on the machine",
    ("cpp", 162): "programs are not linked with libcrypto",
    ("javascript", 162): "the module js-md5 is not on the machine",
}
"""Rows whose solutions do not run on the bare machine either, by its compiler without further options."""


@dataclass(frozen=True)
class PackRow:
    """A row: the whole programs of both solutions, and the tests of the function."""

    number: int
    suite: Suite
    canonical: str
    buggy: str


def read_rows(data: Path, language: str) -> list[PackRow]:
    """Return the 164 rows of a language from the folder of data sets."""
    lines = (data / "humanevalpack" / FILES[language]).read_text("utf-8").splitlines()
    return [_row(number, json.loads(line)) for number, line in enumerate(lines)]


def _row(number: int, row: dict[str, str]) -> PackRow:
    # A declaration may go on into the function's body, which a solution has whole: then the prompt is its beginning.
    goes_on = row["declaration"].rstrip().splitlines()[-1].startswith(" ")
    head = row["prompt"] if goes_on else row["declaration"]
    suite = Suite(row["test"], row["entry_point"], row["declaration"])
    return PackRow(number, suite, head + row["canonical_solution"], head + row["buggy_solution"])
