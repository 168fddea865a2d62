"""How ``check`` shows what its examinations found, and writes the rows with flaws to a file."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from rewardkit.cli.output import json_line
from rewardkit.cli.render import Screen
from rewardkit.errors import ConfigError
from rewardkit.examinations.examination import ExaminationResult
from rewardkit.shown.text import counted, plain, shortened

_DETAIL_CHARS = 300


def print_examination(console: Screen, reward: str, result: ExaminationResult, unit: str) -> None:
    """Print how many rows were examined, and for each kind of flaw its count and its first row."""
    name = (f"{reward}: ", "bold")
    by_kind = result.by_kind()
    scope = f"{result.name} of {result.rows:,} of {counted(result.total_rows, 'row')}, {result.trials:,} completions"
    verdict = "flaws in" if by_kind else "no flaw" if result.untold < result.rows else "not looked at"
    reason = f" ({counted(result.untold, 'row')} without a right form that is paid more than a wrong one)"
    console.say(name, f"{scope}{reason if result.untold else ''}: {verdict}", fit="wrap")
    for kind, flaws in by_kind.items():
        first, style = flaws[0], "red" if result.kinds[kind].is_failure else "yellow"
        row = f"{unit} {first.line}" + (f" ({first.row_id})" if first.row_id != str(first.line) else "")
        count = (f"  {counted(len(flaws), 'row')}: ", style)
        console.say(count, plain(result.kinds[kind].meaning), fit="wrap")
        console.say(f"    {row}: ", plain(shortened(first.flaw.detail, _DETAIL_CHARS)), fit="wrap")


def write_flaws(path: Path, results: Mapping[str, Sequence[ExaminationResult]]) -> None:
    """Write a JSON line for each flaw of each row, with reward and examination.

    Raises:
        ConfigError: The file cannot be written.
    """
    text = "".join(json_line(line) for line in _flaw_lines(results))
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"--out {str(path)!r}: {error.strerror or error}") from error


def _flaw_lines(results: Mapping[str, Sequence[ExaminationResult]]) -> Iterable[dict[str, object]]:
    for reward, examinations in results.items():
        for result in examinations:
            yield from ({"reward": reward, "examination": result.name, **flaw.as_json()} for flaw in result.flaws)
