"""The author's rows as audits of rewards and judges see them: prompt, gold, references, and another row's gold."""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

from rewardkit.audit.gold import Gold, final_of, gold_of, mentions, other_gold, spot_of
from rewardkit.audit.talk import messages_in, talk_text
from rewardkit.errors import DataError
from rewardkit.messages import prompt_text
from rewardkit.rows.files import unit_of
from rewardkit.rows.reader import Row
from rewardkit.types import Message, Text

GOLD_COLUMNS = ("answer", "gold", "target", "solution", "label", "ground_truth", "expected", "final_answer", "gt")
"""Columns in which a gold is looked for, the first that the data has; those that the reward names come first."""
REFERENCE_COLUMNS = ("reference", "reference_completion", "solution", "canonical_solution", "code", "completion")
"""Columns with a right completion, all that the data has. ``completion`` may be wrong: it is not an honest form."""
COMPLETION_COLUMNS = REFERENCE_COLUMNS[:2]
"""Those of them that hold a whole completion, as a model should write it, and not a solution or a program."""
TEST_COLUMNS = ("tests", "test", "test_list", "inputs", "outputs", "entry_point")  # columns that make a row one of code
_OTHER_COMPLETIONS = 3
_OTHER_GOLDS = 4
PROMPT_COLUMNS = ("prompt", "question", "problem", "instruction")

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class AuditRow:
    """One row, by its line in the file, counted from 1. What it lacks is ``None`` or empty."""

    line: int
    prompt: Text
    columns: Mapping[str, Any]
    gold: Gold | None
    references: tuple[str, ...] = ()  # Completions that the data calls right
    reference_completions: tuple[str, ...] = ()  # Those of them that are whole completions, not solutions or programs
    own: str | None = None  # The row's own completion, right or wrong
    others: tuple[Gold, ...] = ()  # Golds of other rows that differ; one is made up where no other row has one
    swapped: Mapping[str, Any] | None = None  # The columns with another row's gold and references in place of its own
    other_reference: str | None = None  # A reference of that row
    other_completions: tuple[str, ...] = ()  # What the model wrote on rows with another gold, without this row's gold
    conversations: Mapping[str, tuple[Message, ...]] = field(default_factory=dict)  # By text, of those in messages
    donors: tuple[AuditRow, ...] = ()  # The rows whose golds, references and completions are tried on this one
    endings: tuple[tuple[str, str], ...] = ()  # What is before and behind the gold in a last line, here or mostly

    @property
    def prompt_words(self) -> str:
        """The prompt as text."""
        return prompt_text(self.prompt)

    def is_reference(self, text: str, messages: Sequence[Message] | None = None) -> bool:
        """Return whether a completion is one that the data calls right, but for blanks."""
        folded = " ".join(text.split())
        return any(
            folded == " ".join(reference.split())
            and (messages is None or tuple(messages) == self.conversations.get(reference))
            for reference in self.references
        )

    @property
    def is_code(self) -> bool:
        """Whether the row has tests for code."""
        return any(self.columns.get(name) for name in TEST_COLUMNS[:4])


@dataclass(frozen=True, slots=True)
class ChosenRows:
    """The rows chosen, the column with their gold (``None`` without one), and how many rows the file has."""

    rows: list[AuditRow]
    gold_column: str | None
    total: int
    unit: str = "line"  # What their numbers count, as `unit_of` has it
    seed: int = 0  # For what is drawn at random of these rows
    scores: Mapping[int, float | None] = field(default_factory=dict)  # By number, recorded for a run's completions
    tokens: Mapping[int, int] = field(default_factory=dict)  # Their lengths, where these are recorded


def drawn(rows: Sequence[T], count: int, chooser: random.Random) -> list[T]:
    """Return at most ``count`` rows, drawn at random, in their order."""
    return [rows[index] for index in sorted(chooser.sample(range(len(rows)), min(count, len(rows))))]


def choose_rows(
    lines: Sequence[Row],
    where: str,
    *,
    count: int,
    seed: int,
    gold: str | None,
    named: Sequence[str],
    places: Sequence[int] | None = None,
) -> ChosenRows:
    """Return rows of a file, those at ``places`` or ``count`` drawn by the seed, each with other rows' gold to try.

    ``where`` is what errors call the file. The gold's column is looked for where ``gold`` is ``None``, first among
    those that the reward names; DataError is raised where there is no such column.
    """
    column = gold_column(lines[0].values, gold, named, where)
    chooser = random.Random(seed)  # noqa: S311 - a sample, no secret
    indices = drawn(range(len(lines)), count, chooser) if places is None else places
    rows = [row_of(line.line, line.values, column) for line in lines]
    usual = _usual_ending(rows)
    picked = [_with_others(rows, index, column, chooser) for index in indices]
    picked = [replace(row, endings=tuple(dict.fromkeys([*usual, *row.endings]))) for row in picked]
    return ChosenRows(picked, column, len(lines), unit_of(Path(where)), seed)


def gold_column(columns: Mapping[str, Any], requested: str | None, named: Sequence[str], where: str) -> str | None:
    """Return the column that holds the gold, or ``None``; raise DataError if the requested column is missing."""
    if requested is not None:
        if requested not in columns:
            raise DataError(f"{where}: no column {requested!r} (--gold); it has {', '.join(map(repr, columns))}")
        return requested
    candidates = [name for name in GOLD_COLUMNS if name in columns]
    return next((name for name in candidates if name in named), candidates[0] if candidates else None)


def row_of(line: int, values: Mapping[str, Any], column: str | None) -> AuditRow:
    """Return a row as the audit sees it, without other rows to try."""
    prompt = next((values[name] for name in PROMPT_COLUMNS if values.get(name)), "")
    columns = {name: value for name, value in values.items() if name not in ("prompt", "completion", "completion_ids")}
    conversations: dict[str, tuple[Message, ...]] = {}

    def text_in(name: str) -> str | None:
        """Return a column's text, or ``None`` without one; keep the messages it is made of in ``conversations``."""
        value = values.get(name)
        messages = messages_in(value)
        text = talk_text(messages) if messages is not None else value
        if messages is not None:
            conversations[str(text)] = messages
        return text if isinstance(text, str) and text.strip() else None

    own = text_in("completion")
    texts = [text for name in REFERENCE_COLUMNS[:-1] if (text := text_in(name)) is not None]
    gold = (text_in(column) if messages_in(values[column]) else values[column]) if column is not None else None
    if isinstance(gold, str) and final_of(gold) != gold.strip():
        texts.append(gold)  # a gold that is a worked solution is a reference too
    answer = gold_of(gold)
    endings = (_ending(text, answer) for text in (*texts, own or "") if answer is not None)
    return AuditRow(
        line=line,
        prompt=prompt if isinstance(prompt, str | list) else str(prompt),
        columns=columns,
        gold=answer,
        references=tuple(dict.fromkeys(texts)),
        reference_completions=tuple(text for name in COMPLETION_COLUMNS if (text := text_in(name)) is not None),
        own=own,
        conversations=conversations,
        endings=tuple(dict.fromkeys(ending for ending in endings if ending is not None)),
    )


def _ending(text: str, gold: Gold) -> tuple[str, str] | None:
    """Return what stands around the gold in a text's last sentence; ``None`` if it is missing, repeated or alone."""
    spot = spot_of(text, gold)
    if spot is None:
        return None
    start = max(match.end() for match in re.finditer(r"\A\s*|\n|[.!?]\s", text[: spot[0]]))
    ending = text[start : spot[0]], text[spot[1] :].rstrip()
    alone = not text[:start].strip() or not any(ending)
    return None if alone or mentions(" ".join(ending), gold) else ending


def _usual_ending(rows: Sequence[AuditRow]) -> list[tuple[str, str]]:
    """Return the ending that most rows share, with no number of one row's own in it; nothing where none do."""
    counts = Counter(ending for row in rows for ending in row.endings if not re.search(r"\d", "".join(ending)))
    return [ending for ending, count in counts.most_common(1) if count > 1]


def _with_others(rows: Sequence[AuditRow], index: int, column: str | None, chooser: random.Random) -> AuditRow:
    """Return a row with what some other rows have to try on it: golds, a reference and completions.

    Where no other row has another gold, one is made up.
    """
    row = rows[index]
    sample = [rows[other] for other in chooser.sample(range(len(rows)), min(len(rows), 40)) if other != index]
    if row.gold is None or column is None:
        donor = next((other for other in sample if other.references and other.references != row.references), None)
        row = _with_completions(row, [other for other in sample if other.prompt != row.prompt])
        solved = tuple(other for other in sample if other.references)[:_OTHER_GOLDS]
        return replace(row, other_reference=donor.references[0] if donor else None, donors=solved)
    donors = [other for other in sample if other.gold is not None and _differ(row.gold, other.gold)]
    return with_donors(row, donors, column)


def with_donors(row: AuditRow, donors: Sequence[AuditRow], column: str) -> AuditRow:
    """Return a row with golds, a reference and completions of ``donors``, rows whose golds differ from its own."""
    if row.gold is None:
        return row
    others = list({donor.gold.key: donor.gold for donor in donors if donor.gold}.values())
    if not others and (made := other_gold(row.gold)) is not None:
        others = [made]
    if not others:
        return replace(row, others=(), swapped=None, other_reference=None, other_completions=(), donors=())
    swapped: dict[str, Any] = dict(row.columns)
    if donors:
        names = {column, *GOLD_COLUMNS, *REFERENCE_COLUMNS} & swapped.keys()
        swapped |= {name: donors[0].columns[name] for name in names}
    else:
        swapped[column] = _like(row.columns[column], others[0])
    reference = next((other.references[0] for other in donors if other.references), None)
    row = _with_completions(row, donors)
    golds = tuple(others[:_OTHER_GOLDS])
    return replace(row, others=golds, swapped=swapped, other_reference=reference, donors=tuple(donors))


def _with_completions(row: AuditRow, donors: Sequence[AuditRow]) -> AuditRow:
    """Return a row with what the model wrote on others, as far as it does not mention the row's gold."""
    written = [own for donor in donors if (own := donor.own) and own != row.own and not mentions(own, row.gold)]
    conversations = {text: messages for donor in donors for text, messages in donor.conversations.items()}
    return replace(
        row,
        other_completions=tuple(dict.fromkeys(written[:_OTHER_COMPLETIONS])),
        conversations={**conversations, **row.conversations},
    )


def _differ(gold: Gold, other: Gold) -> bool:
    """Return whether two golds are different answers, neither a part of the other."""
    a, b = str(gold.text).casefold(), str(other.text).casefold()
    are_numbers = gold.number is not None and other.number is not None
    return gold.key != other.key and (are_numbers or (a not in b.split() and b not in a.split()))


def _like(value: Any, made: Gold) -> Any:
    """Return a made-up gold in the type of the column's value."""
    if isinstance(value, bool):
        return made.text == "true"
    if isinstance(value, int) and made.number is not None:
        return int(made.number)
    return float(made.number) if isinstance(value, float) and made.number is not None else made.text
