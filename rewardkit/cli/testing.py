"""``rewardkit test``: tables of cases, without a test file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal

from rich.text import Text

from rewardkit.cli.arguments import AsJson, DataOption, argument, data_path, option
from rewardkit.cli.exits import FAILED, finish
from rewardkit.cli.output import check_writable, replacing
from rewardkit.cli.progress import told_progress
from rewardkit.cli.render import screen, table
from rewardkit.cli.rewards import importing, only
from rewardkit.declare.compose import Composable
from rewardkit.errors import ConfigError, DataError
from rewardkit.loading.registry import resolve
from rewardkit.serving.choice import is_address
from rewardkit.serving.server_link import without_token
from rewardkit.shown.text import counted, plain, shortened
from rewardkit.testing.accept import Acceptance, accept
from rewardkit.testing.expectation import outcome_words
from rewardkit.testing.source import SUFFIXES, has_cases
from rewardkit.testing.table import Table, read_table
from rewardkit.testing.verdict import Bench, CaseResult

_NAME_CHARS = 40


def cases_command(
    rewards: Annotated[
        str, argument("The reward to test; where the tables name theirs, DATA may stand here alone.", "REWARDS")
    ],
    data: Annotated[Path | None, argument("A table of cases, YAML or JSON Lines, or a folder of them.", "DATA")] = None,
    data_option: DataOption = None,
    reward: Annotated[str | None, option("REWARDS, given by name.", "REF")] = None,
    accepting: Annotated[
        bool, option("Write the scores that came into the table as the expected ones.", None, "--accept")
    ] = False,
    lane: Annotated[
        Literal["inline", "worker"] | None, option("This process, or an isolated one; by default what the cases need.")
    ] = None,
    junit: Annotated[Path | None, option("Write a JUnit report, which CI servers read, to FILE.", "FILE")] = None,
    as_json: AsJson = False,
) -> None:
    """Run tables of cases through a reward, and show each case that is not as expected.

    A table names its reward, unless REWARDS does, and lists completions with what is expected of them:

    [dim]reward: my_rewards.py:correct
    cases:
    - {completion: "4", answer: 4, expect: 1.0}[/]

    Exit code 1 means that a case is not as expected. A failed call is never accepted by --accept.

    Examples:

    [bold]rewardkit test cases.yaml
    rewardkit test my_rewards.py:correct cases.jsonl --accept
    rewardkit test cases.yaml --junit report.xml
    rewardkit test cases.yaml --json[/]
    """
    if is_address(rewards):
        reason = "the address of a server; this needs the rewards themselves, as file.py:name"
        raise ConfigError(f"{without_token(rewards)}: {reason}")
    reference: str | None = rewards
    if data is None and data_option is None:
        reference, data = None, Path(rewards)
    if reference is not None and reward is not None and reference != reward:
        raise ConfigError(f"two different REWARDS: {reference!r} and --reward {reward!r}; give one of them")
    reference = reference or reward
    if reference is not None:
        _refuse_table(reference)
    tables = _tables(data_path(data, data_option), reference)
    if junit is not None:
        check_writable(junit, [table.path for table in tables if table.path is not None], "--junit")
    results = [_run_table(table, reference, lane, accepting=accepting) for table in tables]
    if junit is not None:
        _write_junit(junit, results)
    code = FAILED if any(result.left for result in results) else 0
    finish(_as_json(results), lambda: _print(results), as_json=as_json, code=code)


@dataclass(frozen=True, slots=True)
class _Result:
    """One table, run with the reward of a name; notes are what may make it say something else than the data will."""

    table: Table
    reward: str
    verdicts: Sequence[CaseResult]
    acceptance: Acceptance | None
    notes: Sequence[str]

    @property
    def failed(self) -> list[CaseResult]:
        """The verdicts that are not as expected."""
        return [verdict for verdict in self.verdicts if not verdict.passed]

    @property
    def left(self) -> list[CaseResult]:
        """Those of them that were not accepted."""
        return [verdict for verdict in self.failed if verdict.case.id not in self.accepted_ids]

    @property
    def accepted_ids(self) -> frozenset[str]:
        """The cases that hold after accepting."""
        return frozenset() if self.acceptance is None else frozenset(self.acceptance.accepted)


def _refuse_table(reference: str) -> None:
    """Raise :class:`ConfigError` where the reward's argument is a table of cases, as the first of two tables is."""
    path = Path(reference)
    if path.suffix not in SUFFIXES or not path.is_file():
        return
    try:
        read_table(path)
    except DataError:
        return  # a configuration of rewards
    raise ConfigError(f"{reference}: a table of cases where REWARDS belong; to run several tables name their folder")


def _tables(path: Path, reward: str | None) -> list[Table]:
    """Read all tables before any is run or changed; DataError where one is wrong or lacks a reward, or none exists."""
    tables = _tables_in(path) if path.is_dir() else [read_table(path)]
    for cases in tables:
        if reward is None and cases.reward is None:
            raise DataError(
                f"{cases.name}: names no reward; begin it with 'reward: my_rewards.py:correct' "
                '({"reward": "my_rewards.py:correct"} in JSON Lines), or name one before DATA'
            )
    return tables


def _tables_in(folder: Path) -> list[Table]:
    """Read the tables of a folder, and pass over its files of rows and of settings; DataError where it has no table."""
    paths = sorted(file for file in folder.iterdir() if file.suffix in SUFFIXES and file.is_file())
    tables = [read_table(file) for file in paths if has_cases(file)]
    if not tables:
        endings = f"no files that end with {', '.join(SUFFIXES)}"
        others = f"{', '.join(file.name for file in paths)} have no case that says what to 'expect'"
        raise DataError(f"{folder}: no tables of cases in it, {others if paths else endings}")
    return tables


def _run_table(cases: Table, reference: str | None, lane: str | None, *, accepting: bool) -> _Result:
    """Run a table's cases; with ``accepting``, write the accepted expectations to its file."""
    if reference is not None:
        reward = only(reference)
    else:
        with importing(cases.name):
            reward = resolve(cases.reward or "")
    cases.check(reward)
    verdicts: list[CaseResult] = []
    with Bench(reward, cases.lane(lane)) as bench, told_progress(cases.name) as tick:
        for case in cases.cases:
            verdicts.append(bench.run(case))
            tick(len(verdicts), len(cases.cases), sum(not verdict.passed for verdict in verdicts))
    result = _Result(cases, bench.reward, verdicts, None, list(_notes(cases, reward)))
    if not accepting or not result.failed:
        return result
    acceptance = accept(cases, result.failed)
    if acceptance.changes:
        assert cases.path is not None
        try:
            with replacing(cases.path.resolve()) as file:
                file.write(acceptance.text)
        except OSError as error:
            raise ConfigError(f"--accept: cannot write {cases.path}: {error.strerror or error}") from error
    return replace(result, acceptance=acceptance)


def _write_junit(path: Path, results: Sequence[_Result]) -> None:
    """Write the report of all tables; ConfigError where the file cannot be written."""
    from rewardkit.testing.junit import JunitSuite, junit  # what few runs write

    suites = [JunitSuite(result.table.name, result.reward, result.verdicts, result.accepted_ids) for result in results]
    try:
        with replacing(path) as file:
            file.write(junit(suites))
    except OSError as error:
        raise ConfigError(f"--junit: cannot write {path}: {error.strerror or error}") from error


def _notes(cases: Table, reward: Composable) -> Iterator[str]:
    """Yield warnings of keys that nothing reads, and of columns without annotation whose values are no text.

    As text these would be scored otherwise.
    """
    yield from cases.unread(reward)
    bare = [(leaf, name) for leaf in reward.leaves for name in leaf.spec.bare_columns]
    for leaf, name in bare:
        values = [(case.where, case.rollouts[0].example.get(name)) for case in cases.cases]
        odd = [(where, value) for where, value in values if value is not None and not isinstance(value, str)]
        if odd:
            where, value = odd[0]
            yield (
                f"{where}: reward {leaf.name!r} takes {name!r} without annotation, so it gets "
                f"{type(value).__name__} here, and text where the data has text; annotate the parameter"
            )


def _print(results: Sequence[_Result]) -> None:
    """Print a table of the cases that failed, then each of them whole, and the closing lines."""
    console = screen()
    failures = [(result, verdict) for result in results for verdict in result.left]
    if failures:
        got_chars = max(20, console.width // 3)
        rows = [
            [
                Text(shortened(f"{verdict.case.id} [{index}]" if verdict.case.group else verdict.case.id, _NAME_CHARS),
                     style="bold"),
                Text(shortened(result.reward, _NAME_CHARS)),
                Text(str(expected)),
                Text(shortened(outcome_words(outcome), got_chars)),
            ]
            for result, verdict in failures
            for index, expected, outcome in verdict.differences()
        ]  # fmt: skip
        console.print(table("case", "reward", "expected", "got", rows=rows))
        console.print()
    for result, verdict in failures:
        for line in verdict.diff().splitlines():
            console.say((plain(line), {"-": "red", "+": "green"}.get(line[:1], "")))
        refusal = None if result.acceptance is None else result.acceptance.refused.get(verdict.case.id)
        if refusal is not None:
            console.say((f"  not accepted: {refusal}", "yellow"))
        console.print()
    for line in _closing(results):
        console.say(plain(line))


def _closing(results: Sequence[_Result]) -> Iterator[str]:
    """Yield the closing lines: the warnings, the accepted changes and the counts."""
    for result in results:
        yield from (f"warning   {note}" for note in result.notes)
        for change in result.acceptance.changes if result.acceptance is not None else ():
            case = change.verdict.case
            index = f" [{change.steps[1]}]" if case.group else ""
            yield f"accepted  {case.where}: {case.id!r}{index}: {change.was} is now {change.now}"
    kinds = ("verdicts", "failed", "left")
    cases, failed, left = (sum(len(getattr(result, kind)) for result in results) for kind in kinds)
    figures = [f"{cases - failed:,} as expected"]
    figures += [f"{left:,} not as expected"] if left else []
    figures += [f"{failed - left:,} accepted"] if failed > left else []
    tables = f" in {len(results):,} tables" if len(results) > 1 else ""
    yield f"{counted(cases, 'case')}{tables}: {', '.join(figures)}"


def _as_json(results: Sequence[_Result]) -> dict[str, Any]:
    """Return the counts of all tables, and each completion whose outcome is not as expected."""
    tables = [
        {
            "table": result.table.name,
            "reward": result.reward,
            "cases": len(result.verdicts),
            "not_as_expected": len(result.failed),
        }
        for result in results
    ]
    return {
        "cases": sum(len(result.verdicts) for result in results),
        "not_as_expected": sum(len(result.failed) for result in results),
        "accepted": sum(len(result.failed) - len(result.left) for result in results),
        "tables": tables,
        "warnings": [note for result in results for note in result.notes],
        "failures": [
            {
                "where": verdict.case.where,
                "id": verdict.case.id,
                "reward": result.reward,
                "completion": verdict.case.rollouts[index].completion,
                "place": index if verdict.case.group else None,
                "expected": str(expected),
                "got": outcome.as_json(),
                "accepted": verdict.case.id in result.accepted_ids,
            }
            for result in results
            for verdict in result.failed
            for index, expected, outcome in verdict.differences()
        ],
    }
