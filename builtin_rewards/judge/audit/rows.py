"""The labelled rows that a judge is audited with, in any of the forms that they come in.

Owns reading them, and choosing for each row a right answer and a wrong one. A wrong answer is the row's own where the
data has one, else another row's right answer, else ``I do not know.``
"""

from __future__ import annotations

import math
import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

from rewardkit import DataError
from rewardkit.data import Row, read_rows
from rewardkit.strict_json import decode

FORMS = (
    "prompt, chosen and rejected; prompt, completion and label; prompt and the judge's reference column; "
    "or LLMBar's input, output_1, output_2 and label"
)
"""The columns that rows may have, in words."""
NO_ANSWER = "I do not know."
_LLMBAR = ("input", "output_1", "output_2", "label")
_SHOWN_CHARS = 40


class Labelled(NamedTuple):
    """An answer with what the data says of it.

    Attributes:
        text: The answer.
        label: 1.0 for right and 0.0 for wrong, or a grade.
        model: The model that wrote it; ``None`` where the data does not say.
    """

    text: str
    label: float
    model: str | None = None


@dataclass(frozen=True, slots=True)
class JudgeRow:
    """One row.

    Attributes:
        line: Its line in the file, or its place in a JSON list; counted from 1.
        prompt: Its prompt.
        columns: All columns but prompt and completion.
        answers: Its labelled answers.
        good: A right answer; ``None`` where it has none.
        bad: A wrong answer.
        is_pair: Whether both are the row's own, labelled by the data.
    """

    line: int
    prompt: Any
    columns: Mapping[str, Any]
    answers: tuple[Labelled, ...]
    good: str | None
    bad: str
    is_pair: bool = False

    def gives_away(self, text: str) -> bool:
        """Whether a text holds the right answer, so that a judge may rightly accept it."""
        return bool(self.good) and mentions(text, self.good or "")


@dataclass(frozen=True, slots=True)
class Rows:
    """The rows to audit with.

    Attributes:
        rows: The rows chosen.
        total: Rows in the file.
        graded: Whether labels are grades, not right and wrong.
        form: Which of :data:`FORMS` they have, in words.
    """

    rows: list[JudgeRow]
    total: int
    graded: bool
    form: str


class _Found(NamedTuple):
    """A row as read: its answers, and what is right and wrong in it."""

    prompt: Any
    answers: tuple[Labelled, ...]
    good: str | None
    bad: str | None

    @property
    def is_usable(self) -> bool:
        """Whether it says something of an answer; a pair of equal answers does not."""
        return self.good != self.bad or len(self.answers) == 1


def load(path: Path, *, count: int, seed: int, reference: str | None, required: Sequence[str]) -> Rows:
    """Gives rows of a file, chosen by the seed.

    Args:
        path: JSON Lines, or a ``.json`` file with a list of objects.
        count: Rows to choose.
        seed: For choosing them, and the other rows whose answers are taken for wrong.
        reference: The column with the right answer, as the judge names it; ``None`` where it reads none.
        required: Columns without which the judge cannot be asked.

    Raises:
        DataError: The file is wrong, empty, or lacks a column; says which and what helps.
    """
    read = _json_rows(path) if path.suffix == ".json" else read_rows(path)
    columns = read[0].values
    for name in required:
        if name not in columns:
            _refuse(path, f"no column {name!r}, which the judge reads", columns, "add it, or audit with other rows")
    form = _form(path, columns, reference)
    found = [_found(path, row, form, reference) for row in read]
    if form == "completion":
        found = _by_extremes(path, found)
    chooser = random.Random(seed)  # noqa: S311 - a sample, no secret
    usable = [place for place, one in enumerate(found) if one.is_usable]
    if not usable:
        raise DataError(f"{path}: no row has an answer that is right or wrong; an audit needs {FORMS}")
    places = sorted(chooser.sample(usable, min(count, len(usable))))
    rows = [_row(read[place], found, place, chooser) for place in places]
    graded = any(one.label not in (0.0, 1.0) for row in found for one in row.answers)
    return Rows(rows, len(read), graded, _words(form, reference))


def mentions(text: str, answer: str) -> bool:
    """Whether a text holds an answer as a whole word, in the same case."""
    answer = answer.strip()
    return bool(answer) and re.search(rf"(?<!\w){re.escape(answer)}(?!\w)", text) is not None


def _json_rows(path: Path) -> list[Row]:
    try:
        listed = decode(path.read_text(encoding="utf-8-sig"))
    except OSError as reason:
        raise DataError(f"{path}: {reason.strerror or reason}") from reason
    except ValueError as wrong:
        raise DataError(f"{path}: not JSON: {wrong}; JSON Lines are read from a file named .jsonl") from wrong
    if not isinstance(listed, list) or not all(isinstance(one, dict) for one in listed):
        raise DataError(f"{path}: expected a list of objects; JSON Lines are read from a file named .jsonl")
    if not listed:
        raise DataError(f"{path}: no rows in it; expected objects with {FORMS}")
    return [Row(number, values) for number, values in enumerate(listed, 1)]


def _form(path: Path, columns: Mapping[str, Any], reference: str | None) -> str:
    """Gives the form of the rows, by the columns of the first."""
    if all(name in columns for name in _LLMBAR):
        return "llmbar"
    if "prompt" not in columns:
        _refuse(path, "no column 'prompt'", columns, f"an audit needs {FORMS}")
    if "chosen" in columns and "rejected" in columns:
        return "pair"
    if "completion" in columns and "label" in columns:
        return "completion"
    if reference is not None and reference in columns:
        return "reference"
    _refuse(path, "nothing tells a right answer from a wrong one", columns, f"an audit needs {FORMS}")


def _refuse(path: Path, what: str, columns: Mapping[str, Any], fix: str) -> NoReturn:
    raise DataError(f"{path}: {what}; it has {', '.join(map(repr, columns)) or 'nothing'}. To mend it: {fix}")


def _found(path: Path, row: Row, form: str, reference: str | None) -> _Found:
    values = row.values
    if form == "reference":
        gold = values.get(reference or "")
        return _Found(_prompt(path, row, "prompt"), (), None if gold in (None, "") else str(gold), None)
    if form == "completion":
        label = _number(path, row)
        answer = Labelled(_text(path, row, "completion"), label, _model(values, "model"))
        return _Found(_prompt(path, row, "prompt"), (answer,), None, None)
    if form == "llmbar":
        prompt, names = _prompt(path, row, "input"), ["output_1", "output_2"]
        if values.get("label") not in (1, 2):
            raise DataError(f"{path}:{row.line}: 'label': expected 1 or 2, got {values.get('label')!r}")
        names = names if values["label"] == 1 else names[::-1]
    else:
        prompt, names = _prompt(path, row, "prompt"), ["chosen", "rejected"]
    good, bad = (_text(path, row, name) for name in names)
    models = (_model(values, f"{name}_model") for name in names)
    answers = tuple(Labelled(*one) for one in zip((good, bad), (1.0, 0.0), models, strict=True))
    return _Found(prompt, answers, good, bad)


def _prompt(path: Path, row: Row, name: str) -> Any:
    value = row.values.get(name)
    if not isinstance(value, str | list):
        raise DataError(f"{path}:{row.line}: {name!r}: expected text or messages, got {str(value)[:_SHOWN_CHARS]!r}")
    return value


def _text(path: Path, row: Row, name: str) -> str:
    value = row.values.get(name)
    if not isinstance(value, str):
        raise DataError(f"{path}:{row.line}: {name!r}: expected text, got {str(value)[:_SHOWN_CHARS]!r}")
    return value


def _number(path: Path, row: Row) -> float:
    value = row.values.get("label")
    try:
        label = float(value)  # type: ignore[arg-type]  # what is no number is refused below
    except (TypeError, ValueError):
        label = math.nan
    if not math.isfinite(label):
        what = f"'label': expected 1 for right, 0 for wrong, or a grade, got {value!r}"
        raise DataError(f"{path}:{row.line}: {what}")
    return label


def _model(values: Mapping[str, Any], name: str) -> str | None:
    value = values.get(name)
    return value if isinstance(value, str) and value.strip() else None


def _by_extremes(path: Path, found: Sequence[_Found]) -> list[_Found]:
    """Takes answers labelled 1 for right and 0 for wrong; of grades, those with the highest and the lowest."""
    labels = {one.answers[0].label for one in found}
    low, high = (0.0, 1.0) if labels <= {0.0, 1.0} else (min(labels), max(labels))
    if low == high:
        raise DataError(
            f"{path}: every 'label' is {low:g}: expected 1 for right and 0 for wrong, or grades that differ"
        )
    made = []
    for one in found:
        text, label, _ = one.answers[0]
        made.append(one._replace(good=text if label == high else None, bad=text if label == low else None))
    return made


def _row(read: Row, found: Sequence[_Found], place: int, chooser: random.Random) -> JudgeRow:
    own = found[place]
    columns = {name: value for name, value in read.values.items() if name not in ("prompt", "completion")}
    bad = own.bad if own.bad is not None else _borrowed(own, found, chooser)
    is_pair = len(own.answers) == 2
    return JudgeRow(read.line, own.prompt, columns, own.answers, own.good, bad, is_pair)


def _borrowed(own: _Found, found: Sequence[_Found], chooser: random.Random) -> str:
    """Gives another row's answer, which does not hold this row's right one."""
    for one in chooser.sample(list(found), min(len(found), 40)):
        text = one.good if one.good is not None else one.bad
        if text and one.prompt != own.prompt and not mentions(text, own.good or "") and text != own.good:
            return text
    return NO_ANSWER


def _words(form: str, reference: str | None) -> str:
    return {
        "llmbar": "LLMBar pairs",
        "pair": "chosen and rejected",
        "completion": "completions with labels",
        "reference": f"right answers in {reference!r}, wrong ones of other rows",
    }[form]
