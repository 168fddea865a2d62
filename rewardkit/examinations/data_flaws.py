"""What is odd about the rows of a data set, whatever reward reads them: the flaws that ``check`` names once.

None of them fails a check, since each may be meant: a prompt may have several right answers.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any, NamedTuple

from rewardkit.audit.gold import GoldShape, gold_of
from rewardkit.audit.rows import GOLD_COLUMNS, PROMPT_COLUMNS, REFERENCE_COLUMNS
from rewardkit.coercion.plain_json import legible
from rewardkit.messages import prompt_text
from rewardkit.rows.reader import Row
from rewardkit.runtime.row_names import ID_COLUMNS
from rewardkit.shown.text import counted

_USUAL_SHARE = 0.9  # golds of one kind are the usual ones where so many are of it
_LEAST_ROWS = 10  # of fewer rows no kind is usual
_SHOWN = 8
_SHOWN_SETS = 4
_INPUT_CHARS = 40  # a text of more is an input beside the prompt, such as a source, and no label or id
_NAMES_OF_ONE_ROW = tuple(name for name in ID_COLUMNS if name != "name")
_NO_INPUTS = frozenset({*GOLD_COLUMNS, *REFERENCE_COLUMNS, *PROMPT_COLUMNS, "completions", "completion_ids"})


class DataFlaw(NamedTuple):
    """Rows with one flaw.

    Attributes:
        kind: The flaw's name.
        meaning: What it says of the rows.
        lines: Their lines.
        sets: The lines of the rows that are wrong beside each other: those of each prompt, or of each row with its
            copies; ``()`` where each row is wrong by itself.
    """

    kind: str
    meaning: str
    lines: tuple[int, ...]
    sets: tuple[tuple[int, ...], ...] = ()

    def describe(self, unit: str) -> str:
        """Return it as a line, with the first rows' lines, set by set; ``unit`` names what these count."""
        count = counted(len(self.lines), "row") + (f" in {len(self.sets):,} sets" if len(self.sets) > 1 else "")
        wrong, sets = set(self.lines), self.sets[:_SHOWN_SETS] or [self.lines]
        texts = []
        for lines in sets:
            source = next((f" of {unit} {line}" for line in lines if line not in wrong), "")
            texts.append(f"{unit} {_listed([line for line in lines if line in wrong])}{source}")
        texts += [f"{len(self.sets) - _SHOWN_SETS:,} more"] if len(self.sets) > _SHOWN_SETS else []
        return f"{count} ({'; '.join(texts)}): {self.meaning}"

    def by_line(self) -> Iterator[tuple[int, str]]:
        """Yield the lines, each with what it says of that row: beside which others it is wrong, too."""
        wrong = set(self.lines)
        yield from ((line, self.meaning) for line in self.lines if not self.sets)
        for lines in self.sets:
            for line in wrong.intersection(lines):
                others = [other for other in lines[: _SHOWN + 2] if other != line]
                yield line, f"{self.meaning}; beside {_listed(others)}"

    def as_json(self) -> dict[str, Any]:
        lines = {"lines": list(self.lines), "sets": [list(lines) for lines in self.sets]}
        return {"kind": self.kind, "meaning": self.meaning, "rows": len(self.lines), **lines}


def _listed(lines: Sequence[int]) -> str:
    """Return lines as a text, of many the first."""
    return ", ".join(map(str, lines[:_SHOWN])) + (", …" if len(lines) > _SHOWN else "")


def data_flaws(rows: Sequence[Row], gold_column: str | None) -> list[DataFlaw]:
    """Return the flaws of a data set's rows, the worst first, each kind at most once.

    Args:
        rows: All rows, each with the same columns.
        gold_column: The column with the golds; ``None`` without one, where nothing is said of golds.
    """
    prompt = next((name for name in PROMPT_COLUMNS if rows and name in rows[0].values), None)
    flaws = [
        *(_contradictions(rows, prompt, gold_column) if prompt and gold_column else ()),
        *(_odd_golds(rows, gold_column) if gold_column else ()),
        *(_empty_prompts(rows, prompt) if prompt else ()),
        *(_packed_prompts(rows, prompt) if prompt else ()),
        *_copies(rows, prompt),
    ]
    return [flaw for flaw in flaws if flaw.lines]


def _contradictions(rows: Sequence[Row], prompt: str, gold_column: str) -> Iterator[DataFlaw]:
    """Yield the rows that have one prompt, and one of every other long text, and golds that differ."""
    golds: defaultdict[str, list[tuple[int, object]]] = defaultdict(list)
    for row in rows:
        gold = gold_of(row.values[gold_column])
        inputs = [value for name, value in row.values.items() if name not in _NO_INPUTS and name != gold_column]
        long = [value for value in inputs if isinstance(value, list | dict) or len(str(value)) > _INPUT_CHARS]
        if gold is not None:
            golds[_key([_folded(row.values[prompt]), *long])].append((row.line, gold.key))
    groups = [group for group in golds.values() if len({key for _, key in group}) > 1]
    sets = tuple(tuple(line for line, _ in group) for group in groups)
    meaning = f"one prompt, and golds in {gold_column!r} that differ"
    yield DataFlaw("contradictory_golds", meaning, tuple(sorted(chain(*sets))), sets)


def _odd_golds(rows: Sequence[Row], gold_column: str) -> Iterator[DataFlaw]:
    """Yield the rows without a gold, and those whose gold is of another kind than nearly all."""
    values = [(row.line, row.values[gold_column]) for row in rows]
    lacking = tuple(line for line, value in values if gold_of(value) is None)
    yield DataFlaw("no_gold", f"nothing in {gold_column!r}", lacking)
    empty = [line for line, value in values if _is_empty_object(value)]
    if len(empty) < len(rows):  # where all are, that is what is asked
        meaning = f"an empty object in {gold_column!r}, for which no field can be right"
        yield DataFlaw("empty_gold", meaning, tuple(empty))
    usual, odd = _odd_lines([(line, _shape_of(value)) for line, value in values])
    first = next((value for line, value in values if line in odd), None)
    example = f"such as {json.dumps(first, ensure_ascii=False, default=legible)[:_INPUT_CHARS]}, {_shape_of(first)}"
    meaning = f"a gold in {gold_column!r} that is not {usual}, as the others are, {example}"
    yield DataFlaw("odd_gold", meaning, tuple(odd))
    usual, odd = _odd_lines([(line, _type_of(value)) for line, value in values])
    types = " or ".join(sorted({str(_type_of(value)) for line, value in values if line in odd}))
    meaning = f"a gold in {gold_column!r} that is {types} in the file, where the others are {usual}"
    yield DataFlaw("odd_type", meaning, tuple(odd))


def _odd_lines(kinds: Sequence[tuple[int, str | None]]) -> tuple[str, list[int]]:
    """Return the kind that nearly all rows with a gold have, and the lines of the others; none where it is not so."""
    counts = Counter(kind for _, kind in kinds if kind is not None)
    usual, count = counts.most_common(1)[0] if counts else ("", 0)
    if counts.total() < _LEAST_ROWS or count < _USUAL_SHARE * counts.total():
        return usual, []
    return usual, [line for line, kind in kinds if kind not in (None, usual)]


def _is_empty_object(value: object) -> bool:
    return value == {} or (isinstance(value, str) and value.split() in (["{}"], ["{", "}"]))


def _shape_of(value: object) -> str | None:
    """Return what a gold says, in words, be it a text or a number in the file; ``None`` without one."""
    gold = gold_of(value)
    return None if gold is None else _SHAPES[gold.shape]


def _type_of(value: object) -> str | None:
    """Return as what a gold stands in the file, in words; ``None`` without one."""
    if gold_of(value) is None:
        return None
    names = {str: "text", bool: "true or false", int: "a number", float: "a number", list: "a list", dict: "an object"}
    return names.get(type(value), type(value).__name__)


_SHAPES = {
    GoldShape.NUMBER: "a number",
    GoldShape.MEASURE: "a number with a unit",
    GoldShape.LETTER: "a letter",
    GoldShape.TRUTH: "true or false",
    GoldShape.JSON: "JSON",
    GoldShape.TEXT: "a text",
}


def _empty_prompts(rows: Sequence[Row], column: str) -> Iterator[DataFlaw]:
    lines = tuple(row.line for row in rows if not _text_of(row.values[column]).strip())
    yield DataFlaw("empty_prompt", f"no words in {column!r}", lines)


def _packed_prompts(rows: Sequence[Row], column: str) -> Iterator[DataFlaw]:
    lines = tuple(row.line for row in rows if _has_packed_messages(row.values[column]))
    yield DataFlaw("packed_prompt", f"{column!r} is text that is JSON of messages; write the list itself", lines)


def _has_packed_messages(value: object) -> bool:
    if not isinstance(value, str) or not value.lstrip().startswith("["):
        return False
    try:
        messages = json.loads(value)
    except (ValueError, RecursionError):
        return False
    return bool(messages) and all(isinstance(message, dict) and "role" in message for message in messages)


def _text_of(value: object) -> str:
    return prompt_text(value) if isinstance(value, str | list) else "" if value is None else str(value)


def _copies(rows: Sequence[Row], prompt: str | None) -> Iterator[DataFlaw]:
    """Yield the rows that an earlier row has with all columns, or with all but its id, and those that have its id.

    Blanks of a prompt do not count.
    """
    columns = rows[0].values if rows else {}
    name = next((name for name in ID_COLUMNS if name in columns), None)
    by_key: defaultdict[str, list[Row]] = defaultdict(list)
    by_id: defaultdict[str, list[Row]] = defaultdict(list)
    contents: dict[int, str] = {}
    for row in rows:
        values = {column: value for column, value in row.values.items() if column != name}
        contents[row.line] = _key(values | ({} if prompt is None else {prompt: _folded(values.get(prompt))}))
        by_key[contents[row.line]].append(row)
        if name is not None and row.values[name] not in (None, ""):
            by_id[_key(row.values[name])].append(row)
    whole, renamed = [], []
    for group in by_key.values():
        first_of: dict[str, Row] = {}
        for row in group:
            first_of.setdefault("" if name is None else _key(row.values[name]), row)
        copies = {row.line for row in group} - {row.line for row in first_of.values()}
        for own in first_of:
            same = [row.line for row in group if name is None or _key(row.values[name]) == own]
            whole += [tuple(same)] if len(same) > 1 else []
        lines = tuple(row.line for row in group if row.line not in copies)
        renamed += [lines] if len(lines) > 1 else []
    yield _repeating("copies", "a copy of an earlier row" + ("" if name is None else f", {name!r} too"), whole)
    yield _repeating("renamed_copies", f"a copy of an earlier row but for {name!r}", renamed)
    if name in _NAMES_OF_ONE_ROW and 2 * len(by_id) > len(rows):  # else the column names something else
        shared = [group for group in by_id.values() if len({contents[row.line] for row in group}) > 1]
        lines_of = [tuple(row.line for row in group) for group in shared]
        yield _repeating("repeated_id", f"the {name!r} of an earlier row that differs elsewhere", lines_of)


def _repeating(kind: str, meaning: str, sets: Sequence[tuple[int, ...]]) -> DataFlaw:
    """Return the flaw of sets of rows of which each but the first repeats the first."""
    return DataFlaw(kind, meaning, tuple(sorted(line for lines in sets for line in lines[1:])), tuple(sets))


def _folded(value: object) -> object:
    """Return a prompt with each stretch of blanks as one; messages as they are."""
    return " ".join(value.split()) if isinstance(value, str) else value


def _key(value: object) -> str:
    return json.dumps(value, sort_keys=True, default=legible)
