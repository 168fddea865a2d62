"""How ``check`` shows what its examinations found, and writes the rows with flaws to a file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from rewardkit.cli.output import json_line
from rewardkit.cli.render import Screen
from rewardkit.errors import ConfigError
from rewardkit.examinations.data_flaws import DataFlaw
from rewardkit.examinations.examination import ExaminationResult, row_id
from rewardkit.examinations.right_pay import RightPay
from rewardkit.rows.reader import Row
from rewardkit.shown.text import counted, plain, shortened

_DETAIL_CHARS = 300
_SHOWN_ANSWERS = 12
_SHOWN_LINES = 8


def print_examination(console: Screen, reward: str, result: ExaminationResult, unit: str) -> None:
    """Print how many rows were examined, and for each kind of flaw its count and its first row."""
    name = (f"{reward}: ", "bold")
    by_kind = result.by_kind()
    scope = f"{result.name} of {result.rows:,} of {counted(result.total_rows, 'row')}, {result.trials:,} completions"
    console.say(name, f"{scope}: {_verdict(result)}", fit="wrap")
    if result.skipped:
        more = ", …" if len(result.skipped) > _SHOWN_LINES else ""
        lines = ", ".join(map(str, result.skipped[:_SHOWN_LINES])) + more
        rows = counted(len(result.skipped), "row")
        console.indented(f"not examined: {rows} that the reward skips ({unit} {lines})", "dim")
    if result.failed:
        rows = counted(len(result.failed), "row")
        console.say((f"  {rows}: ", "red"), plain(result.failure), fit="wrap")
    if result.untold > len(result.failed):
        silent = result.untold - len(result.failed)
        verb = "shows" if silent == 1 else "show"
        console.indented(f"{counted(silent, 'row')} {verb} nothing: {result.untold_reason}", "dim")
    for kind, flaws in by_kind.items():
        first, style = flaws[0], "red" if result.kinds[kind].is_failure else "yellow"
        style = "dim" if kind in result.accepted else style
        row = f"{unit} {first.line}" + (f" ({first.row_id})" if first.row_id != str(first.line) else "")
        count = (f"  {counted(len(flaws), 'row')}: ", style)
        reason = f"; accepted: {result.accepted[kind]}" if kind in result.accepted else ""
        console.say(count, plain(result.kinds[kind].meaning + reason), fit="wrap")
        console.say(f"    {row}: ", plain(shortened(first.flaw.detail, _DETAIL_CHARS)), fit="wrap")
    if result.open_flaws and not result.has_failures:
        kinds = ",".join(kind for kind in by_kind if kind not in result.accepted)
        comment = f"write `# audit: skip {kinds} REASON` in its function, or " if result.has_comments else ""
        way = f"{comment}give {' '.join(f'--skip {kind}' for kind in kinds.split(','))}"
        console.indented(f"such rows do not fail the check; where {reward} means it so, {way}", "dim")


def _verdict(result: ExaminationResult) -> str:
    """Return what an examination found in a few words, and how many rows of those examined it rests on."""
    if result.open_flaws:
        return f"flaws in {counted(len({row.line for row in result.open_flaws}), 'row')}"
    if result.untold >= result.rows and not result.flaws:
        return "not looked at"
    verdict = f"no flaw in {result.rows - result.untold:,} of them" if result.untold else "no flaw"
    if result.flaws:
        verdict = f"{verdict} but accepted ones, in {counted(len({row.line for row in result.flaws}), 'row')}"
    return verdict


def print_unpaid(console: Screen, reward: str, pay: RightPay) -> None:
    """Print the right answers that a reward does not pay, with what it said of them."""
    answers = [*pay.answers, *(pay.solutions if pay.note else ())]
    if answers:
        console.say((f"{reward}: ", "bold"), "right answers that it does not pay", fit="wrap")
    for answer in answers[:_SHOWN_ANSWERS]:
        console.indented(plain(answer.describe(pay.unit)))
    if len(answers) > _SHOWN_ANSWERS:
        console.indented(f"and {len(answers) - _SHOWN_ANSWERS:,} more, which --json and --out list", "dim")


class FlawLine(NamedTuple):
    """A flaw of a row as ``--out`` writes it."""

    reward: str | None  # `None` for a flaw of the data, whatever reward reads it
    examination: str
    line: int
    kind: str
    detail: str
    accepted: str | None = None  # The reason why it is meant so; `None` for a flaw that counts


def write_flaws(path: Path, flaws: Sequence[FlawLine], of_data: Sequence[DataFlaw], rows: Sequence[Row]) -> None:
    """Write a JSON line for each flaw of each row, in the order of the rows.

    Raises:
        ConfigError: The file cannot be written.
    """
    data = [FlawLine(None, "data", line, flaw.kind, text) for flaw in of_data for line, text in flaw.by_line()]
    ids = {row.line: row_id(row.values, row.line) for row in rows}
    ordered = sorted([*flaws, *data], key=lambda flaw: flaw.line)
    text = "".join(json_line({**flaw._asdict(), "id": ids.get(flaw.line, str(flaw.line))}) for flaw in ordered)
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"--out {str(path)!r}: {error.strerror or error}") from error
