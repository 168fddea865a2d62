"""What holds for every reward that comes with rewardkit, on the rows that the docs show it with."""

from __future__ import annotations

import inspect
import json
import pickle
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from builtin_rewards.adjustable import AdjustableReward
from rewardkit import Outcome, Rollout, Runtime
from rewardkit.declare.spec import Kind
from rewardkit.loading.registry import entry_points, resolve

NAMES = sorted(name for name, point in entry_points().items() if point.value.startswith("builtin_rewards."))
JAILED = ("code_compiles", "code_runs", "code_tests")
LARGE = 1_000_000
"""Characters of the large completions; a fiftieth of it in the short form."""
HOSTILE: dict[str, str] = {
    "empty": "",
    "blank": " \n\t ",
    "all NUL": "\0" * 1_000,
    "lone surrogates": "\ud800\udfff" * 200,
    "only tags": "<think></think><answer></answer>" * 20,
    "nested brackets": "[" * 10_000 + "]" * 10_000,
    "nested braces": "{" * 10_000,
    "nested boxes": "\\boxed{" * 10_000,
    "nested tags": "<a>" * 10_000,
    "combining marks": "a" + "\u0315\u0300" * 20_000,
}
REPEATED = {"a word": "word ", "no blanks": "x", "digits": "9", "open fences": "```\n", "blank lines": "\n"}
GOLDS: dict[str, Any] = {
    "missing": None,
    "empty": "",
    "blank": " ",
    "NUL": "\0",
    "surrogate": "\ud800",
    "list": [],
    "number": 3,
}


def _rows(root: Path, name: str) -> list[dict[str, Any]]:
    lines = (root / "docs" / "examples" / "rewards" / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def _rollout(row: dict[str, Any], completion: str) -> Rollout:
    columns = {key: value for key, value in row.items() if key not in ("prompt", "completion", "completion_ids")}
    ids = row.get("completion_ids")
    return Rollout(row["prompt"], completion, columns, completion_ids=ids)


def _expect_sound(made: Any, outcome: Outcome, act: str) -> None:
    """A score in the declared range, or a skip that says why."""
    assert outcome.status in ("scored", "skipped"), f"{act}: {outcome}"
    if outcome.status == "skipped":
        assert outcome.reason, act
    else:
        lowest, highest = made.options.score_range
        assert outcome.score is not None
        assert lowest <= outcome.score <= highest, act


def test_there_are_rows_for_each(root: Path) -> None:
    """No file of rows is left over, and none is missing."""
    assert NAMES == sorted(path.stem for path in (root / "docs" / "examples" / "rewards").glob("*.jsonl"))


@pytest.mark.parametrize("name", NAMES)
def test_its_rows_are_paid_in_full(root: Path, name: str) -> None:
    """An honest completion gets the most that there is to get; those of a group, what their neighbours leave."""
    made = resolve(name)
    rows = _rows(root, name)
    with Runtime([made], lane="inline") as runtime:
        outcomes = runtime.score([_rollout(row, row["completion"]) for row in rows])[name]
    for outcome in outcomes:
        _expect_sound(made, outcome, name)
        assert outcome.status == "scored", outcome
    if made.spec.kind is not Kind.GROUP and name != "compression_ratio":
        assert [pytest.approx(made.options.score_range[1], abs=1e-5)] * len(rows) == [one.score for one in outcomes]


@pytest.mark.parametrize("name", NAMES)
def test_it_describes_itself_and_travels(name: str) -> None:
    """It has a line for the list, a range, settings that are described, and pickles as it is and with settings."""
    made = resolve(name)
    doc = inspect.getdoc(made.spec.function) or ""
    assert 20 < len(doc.partition("\n")[0]) <= 120
    assert made.options.score_range is not None
    assert made is pickle.loads(pickle.dumps(made))
    if isinstance(made, AdjustableReward):
        settings = inspect.getdoc(made.make) or ""
        for parameter in inspect.signature(made.make).parameters:
            assert f"{parameter}: " in settings
        other = pickle.loads(pickle.dumps(made().with_options(name="other", timeout_s=3)))
        assert ("other", 3) == (other.name, other.options.timeout_s)


def _batches(root: Path) -> Iterator[tuple[list[str], dict[str, Any]]]:
    """Return the rewards that can read one and the same row, and that row, so that they share a runtime."""
    batches: list[tuple[list[str], dict[str, Any]]] = []
    for name in NAMES:
        row = _rows(root, name)[0]
        read = {one.name: row[one.name] for one in resolve(name).spec.parameters if one.name in row} | {
            "completion": ""
        }
        fits = (batch for batch in batches if all(batch[1].get(key, value) == value for key, value in read.items()))
        names, shared = next(fits, ([], {}))
        if not names:
            batches.append((names, shared))
        names.append(name)
        shared.update(read)
    yield from batches


@pytest.mark.slow
def test_no_completion_breaks_any(root: Path, full: bool) -> None:
    """Each hostile completion gets a score in the range or a skip, within the deadline, whatever stands beside it."""
    size = LARGE if full else LARGE // 50
    completions = HOSTILE | {act: text * (size // len(text)) for act, text in REPEATED.items()}
    tried = set()
    for names, row in _batches(root):
        made = {name: resolve(name) for name in names if name not in JAILED}
        rollouts = [_rollout({"prompt": "?", **row}, completion) for completion in completions.values()]
        with Runtime(list(made.values()), workers=1) as runtime:
            batch = runtime.score(rollouts)
        for name in made:
            tried.add(name)
            for act, outcome in zip(completions, batch[name], strict=True):
                _expect_sound(made[name], outcome, f"{name} on {act}")
    assert set(NAMES) - set(JAILED) == tried


@pytest.mark.parametrize("name", NAMES)
def test_no_row_breaks_it(root: Path, name: str) -> None:
    """Where a column is missing, empty or of another type, the call is scored, skipped, or failed for that reason."""
    made = resolve(name)
    row = _rows(root, name)[0]
    columns = [parameter.name for parameter in made.spec.parameters if parameter.column and parameter.name in row]
    rollouts = [_rollout({**row, column: gold}, row["completion"]) for column in columns for gold in GOLDS.values()]
    if not rollouts:
        pytest.skip("it reads no column")
    with Runtime([made], lane="inline") as runtime:
        outcomes = runtime.score(rollouts)[name]
    for rollout, outcome in zip(rollouts, outcomes, strict=True):
        if outcome.status == "failed":
            assert outcome.cause == "coercion", (rollout, outcome)
        else:
            _expect_sound(made, outcome, f"{name} on {rollout.example}")


def test_the_reference_page_is_up_to_date(root: Path) -> None:
    """It says what the docstrings say."""
    made = subprocess.run([sys.executable, "docs/rewards_page.py", "--check"], cwd=root, capture_output=True, text=True)
    assert 0 == made.returncode, made.stderr


def test_the_audits_page_names_every_reward_and_no_false_accept(root: Path) -> None:
    """Each reward has a row, with nothing wrongly paid, slow or crashed."""
    text = (root / "docs" / "reference" / "audit.md").read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| `(\w+)` \| (?:passed|not judged) \| [\d,]+ (\|.*)$", text, re.MULTILINE))
    assert NAMES == sorted(rows)
    for name, row in rows.items():
        assert re.fullmatch(r"\| 0 \| \d+% \| 0 \| 0 \|", row), name
