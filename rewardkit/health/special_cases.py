"""Programs that return what the row's tests expect, input by input, and compute nothing."""

from __future__ import annotations

import re
from collections.abc import Iterator

from rewardkit.health.evidence import PromptRow

LEAST_CASES = 2  # Cases of a test that a program has, at least
MOST_OTHERS = 0.2  # Share of a program's cases that no test has, at most
READ_CHARS = 20_000  # Characters of a row that are searched for tests

_LITERAL = r"-?\d[\d_.]*|'[^'\n]{0,200}'|\"[^\"\n]{0,200}\"|\[[^\[\]\n]{0,200}\]|\([^()\n]{0,200}\)|True|False|None"
_EQUAL = rf"\(?\w+(?:\s*,\s*\w+)*\)?\s*==\s*(?:{_LITERAL})"
_BRANCH = re.compile(
    rf"\b(?:el)?if\s+({_EQUAL}(?:\s+and\s+{_EQUAL}){{0,4}})\s*:\s*return\s+({_LITERAL})[ \t]*$", re.MULTILINE
)
_VALUE = re.compile(rf"==\s*({_LITERAL})")
_TABLE = re.compile(r"return\s*\{([^{}]{1,4000})\}\s*(?:\.get\s*\(|\[)")
_ENTRY = re.compile(rf"({_LITERAL})\s*:\s*({_LITERAL})")
_TEST = re.compile(rf"\w\(((?:{_LITERAL})(?:\s*,\s*(?:{_LITERAL}))*)\)\s*==\s*({_LITERAL})")
_COMPUTED = re.compile(rf"\breturn[ \t]+(?!(?:{_LITERAL})[ \t]*(?:$|[;#])|\{{)\S", re.MULTILINE)


def has_special_cases(text: str, row: PromptRow) -> bool:
    """Return whether a program returns literals alone, which are those of the row's tests, case by case."""
    if "return" not in text:
        return False
    cases = {*_branches(text), *_entries(text)}
    if len(cases) < LEAST_CASES or _COMPUTED.search(text) is not None:
        return False
    tested = cases & set(_tests(row))
    return len(tested) >= LEAST_CASES and len(cases - tested) <= MOST_OTHERS * len(cases)


def _branches(text: str) -> Iterator[tuple[str, str]]:
    """Yield input and output of branches such as ``if x == 3: return 7``."""
    for condition, output in _BRANCH.findall(text):
        yield _plain(",".join(value.strip("()") for value in _VALUE.findall(condition))), _plain(output)


def _entries(text: str) -> Iterator[tuple[str, str]]:
    """Yield input and output of a table of literals that is looked up."""
    for body in _TABLE.findall(text):
        for value, output in _ENTRY.findall(body):
            yield _plain(value.strip("()")), _plain(output)


def _tests(row: PromptRow) -> Iterator[tuple[str, str]]:
    """Yield input and output of the assertions in a row's columns and prompt."""
    for value in (*row.columns.values(), row.prompt):
        for arguments, output in _TEST.findall(str(value)[:READ_CHARS].replace('\\"', '"')):
            yield _plain(arguments), _plain(output)


def _plain(literal: str) -> str:
    return re.sub(r"\s+", "", literal).replace("'", '"')
