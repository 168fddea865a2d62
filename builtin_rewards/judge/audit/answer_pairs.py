"""The labelled rows that a judge is audited with, in any form, and a right and a wrong answer for each."""

from __future__ import annotations

import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from builtin_rewards.judge.own_labels import truth
from rewardkit import DataError
from rewardkit.commands import Row, drawn, read_rows, unit_of

NO_ANSWER = "I do not know."
_LLMBAR, _PAIR, _COMPLETION = "LLMBar pairs", "chosen and rejected", "completions with labels"
_FORMS = {  # the columns that tell each form
    _LLMBAR: ("input", "output_1", "output_2", "label"),
    _PAIR: ("prompt", "chosen", "rejected"),
    _COMPLETION: ("prompt", "completion", "label"),
}
_NEEDS = (
    "an audit needs prompt, chosen and rejected; prompt, completion and label; prompt and the judge's reference "
    "column; or LLMBar's input, output_1, output_2 and label"
)


class Labelled(NamedTuple):
    """An answer, whether the data calls it right, and the model that wrote it, ``""`` if unknown."""

    text: str
    right: bool
    model: str


@dataclass(frozen=True, slots=True)
class JudgeRow:
    """One row: its prompt and other columns, the answers that the data labels, and a ``good`` one if there is any."""

    line: int  # in the file, from 1
    prompt: Any
    columns: Mapping[str, Any]
    answers: tuple[Labelled, ...]  # two of a pair
    good: str | None
    bad: str

    def gives_away(self, text: str) -> bool:
        """Return whether a text holds the right answer as a whole word, so that a judge may rightly accept it."""
        good = (self.good or "").strip()
        return bool(good) and re.search(rf"(?<!\w){re.escape(good)}(?!\w)", text) is not None


class AuditRows(NamedTuple):
    """The chosen rows, how many the file has, their form, and the unit that their numbers count, in words."""

    rows: list[JudgeRow]
    total: int
    form: str
    unit: str


def load(path: Path, *, count: int, seed: int, reference: str | None) -> AuditRows:
    """Return rows of a file, chosen by the seed; ``reference`` is the right answer's column. Raises DataError."""
    lines = read_rows(path)
    columns = lines[0].values
    form = next((form for form, names in _FORMS.items() if all(name in columns for name in names)), "")
    if not form and ("prompt" not in columns or reference not in columns):
        problem = "nothing tells a right answer from a wrong one" if "prompt" in columns else "no column 'prompt'"
        raise DataError(f"{path}: {problem}; it has {', '.join(map(repr, columns))}. To mend it: {_NEEDS}")
    rows = [_row(f"{path}:{line.line}", line, form, reference) for line in lines]
    usable = [row for row in rows if (row.answers or row.good) and row.good != row.bad]
    if not usable:
        raise DataError(f"{path}: no row has an answer that is right or wrong; {_NEEDS}")
    chooser = random.Random(seed)  # noqa: S311 - a sample, no secret
    sample = drawn(usable, count, chooser)
    pairs = [row if row.bad else replace(row, bad=_wrong_answer(row, rows, chooser)) for row in sample]
    form = form or f"right answers in {reference!r}, wrong ones of other rows"
    return AuditRows(pairs, len(lines), form, unit_of(path))


def _row(where: str, row: Row, form: str, reference: str | None) -> JudgeRow:
    """Return a row of a form; without a form it has no labelled answers, and the reference is the good one."""
    values = row.values
    prompt = values["input" if form == _LLMBAR else "prompt"]
    if not isinstance(prompt, str | list):
        raise DataError(f"{where}: 'prompt': expected text or messages, got {str(prompt)[:40]!r}")
    answers = []
    for name, is_right in _labels(where, values, form).items():
        if not isinstance(values[name], str):
            raise DataError(f"{where}: {name!r}: expected text, got {str(values[name])[:40]!r}")
        model = values.get("model" if form == _COMPLETION else f"{name}_model")
        answers.append(Labelled(values[name], is_right, model.strip() if isinstance(model, str) else ""))
    text_by_label = {answer.right: answer.text for answer in answers}
    good = text_by_label.get(True) if form else str(values[reference or ""] or "") or None
    columns = {name: value for name, value in values.items() if name not in ("prompt", "completion")}
    return JudgeRow(row.line, prompt, columns, tuple(answers), good, text_by_label.get(False, ""))


def _labels(where: str, values: Mapping[str, Any], form: str) -> dict[str, bool]:
    """Return by column of an answer whether it is right."""
    if form == _PAIR:
        return {"chosen": True, "rejected": False}
    if form == _COMPLETION:
        return {"completion": truth(values, "label", where)}
    if form != _LLMBAR:
        return {}
    if values["label"] not in (1, 2):
        raise DataError(f"{where}: 'label': expected 1 or 2, got {values['label']!r}")
    return {"output_1": values["label"] == 1, "output_2": values["label"] == 2}


def _wrong_answer(own: JudgeRow, rows: Sequence[JudgeRow], chooser: random.Random) -> str:
    """Return another row's answer that lacks this row's right one; ``NO_ANSWER`` where 40 rows have none."""
    for row in drawn(rows, 40, chooser):
        text = row.good or row.bad
        if text and row.prompt != own.prompt and not own.gives_away(text) and text != own.good:
            return text
    return NO_ANSWER
