"""Mixed data: the rows that a reward skips are no flaw of theirs, whatever they are beside."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

import pytest
from typer.testing import CliRunner

from rewardkit import Outcome, Rollout, Status, reward
from rewardkit.audit.rows import row_of
from rewardkit.cli.program import app
from rewardkit.examinations.examination import Examination, ExaminationResult, examine, rows_to_examine
from rewardkit.examinations.golds import GoldExamination
from rewardkit.examinations.programs import ProgramExamination


@reward(score_range=(0, 1))
def mixed(completion: str, tests: str | None = None, answer: str | None = None) -> float | None:
    """Stand for any reward of rows with tests or golds; the table says what it returns."""
    return None


SOURCE = "def add(a, b):\n    return a + b\n"
CODE = {"prompt": "Write add.", "solution": SOURCE, "tests": "assert add(1, 2) == 3"}
PROGRAM = {"prompt": "Double it.", "solution": "print(int(input()) * 2)", "inputs": ["2"], "outputs": ["4"]}
GOLD = {"prompt": "What is 3 + 4?", "answer": "7"}
SKIP, REASON = Outcome(Status.SKIPPED, None), Outcome(Status.SKIPPED, None, reason="not for this reward")
FAILED = Outcome(Status.FAILED, 0.0, error="ValueError: no tests")

ROWS: dict[str, tuple[Examination, dict[str, Any], Outcome, bool, list[str]]] = {
    "skipped": (ProgramExamination(), CODE, SKIP, True, []),
    "skipped, for it reads nothing of the row": (ProgramExamination(), PROGRAM, REASON, True, []),
    "skipped, for its tests": (ProgramExamination(), CODE, REASON, False, ["cannot_run"]),
    "failed": (ProgramExamination(), CODE, FAILED, False, ["cannot_run"]),
    "a gold that is skipped": (GoldExamination(), GOLD, REASON, True, []),
    "a gold that fails": (GoldExamination(), GOLD, FAILED, False, []),
}


@pytest.mark.parametrize("case", ROWS)
def test_a_skip_is_no_flaw_unless_it_speaks_of_the_tests(case: str) -> None:
    """Skips without a word leave a row out; a reason on a row with tests, and a failure, are seen as before."""
    examination, columns, outcome, is_skipped, kinds = ROWS[case]
    rows = [row_of(3, columns, "answer" if "answer" in columns else None)]
    result = examine(examination, mixed, rows, 9, lambda rollouts: [outcome for _ in rollouts])
    assert kinds == [flaw.flaw.kind for flaw in result.flaws]
    assert ([3] if is_skipped else [], 0 if is_skipped else 1) == (list(result.skipped), result.rows)
    assert list(result.skipped) == result.as_json()["skipped_lines"]
    assert (result.trials > 0) is not is_skipped


@pytest.mark.parametrize("seed", range(40))
def test_skipped_rows_count_for_nothing_wherever_they_stand(seed: int) -> None:
    """Rows of any mixture: those that are scored are examined, up to the most, and all that were tried are told."""
    random = Random(seed)
    is_scored = [random.random() < random.choice((0.1, 0.5, 0.9)) for _ in range(random.randint(1, 30))]
    most = random.randint(1, 12)
    rows = [row_of(line, {**CODE, "answer": str(scored)}, None) for line, scored in enumerate(is_scored, 1)]

    def score(rollouts: Sequence[Rollout]) -> list[Outcome]:
        right = SOURCE.strip()
        return [
            Outcome(Status.SCORED, float(right in str(row.completion))) if row.example["answer"] == "True" else SKIP
            for row in rollouts
        ]

    result: ExaminationResult = examine(
        ProgramExamination(), mixed, rows_to_examine(ProgramExamination(), mixed, rows, len(rows)), 99, score, most
    )
    scored_lines = [line for line, scored in enumerate(is_scored, 1) if scored]
    assert scored_lines[:most] == list(result.lines)
    assert [] == list(result.flaws)
    last = max([0, *result.lines]) if len(scored_lines) >= most else len(rows)
    assert {line for line in range(1, last + 1) if line not in scored_lines} <= set(result.skipped)
    assert not set(result.skipped) & set(scored_lines)


REWARDS = """
from rewardkit import reward


def _pays(completion: str, answer: str) -> float:
    return float(completion.strip("` \\n").endswith(answer))


@reward(score_range=(0, 1))
def stdio(completion: str, inputs: list[str] | None = None, answer: str = "") -> float | None:
    return _pays(completion, answer) if inputs else None


@reward(score_range=(0, 1))
def function(completion: str, tests: str | None = None, answer: str = "") -> float | None:
    return _pays(completion, answer) if tests else None


total = (stdio + function).named("total")
"""
_ANY = {"inputs": None, "tests": None}
MIXED = [
    {"prompt": "a", **_ANY, "reference": "one", "answer": "one", "inputs": ["1"]},
    {"prompt": "b", **_ANY, "reference": "two", "answer": "two", "tests": "assert f"},
    {"prompt": "c", **_ANY, "reference": "six", "answer": "six"},
]


@pytest.mark.parametrize("named", ["rewards.py", "rewards.py:total"])
@pytest.mark.parametrize("rows", [MIXED[:2], MIXED], ids=["each row has a reward", "a row has none"])
def test_mixed_data_passes_the_check(
    named: str, rows: list[dict[str, Any]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each reward's own rows are examined, the others are named, and a row that none scores is a warning."""
    monkeypatch.chdir(tmp_path)
    Path("rewards.py").write_text(REWARDS)
    Path("rows.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    command = ["check", named, "rows.jsonl", "--workers", "1"]
    done = CliRunner().invoke(app, [*command, "--json"])
    checks = json.loads(done.output)
    assert 0 == done.exit_code, done.output
    skipped = {
        check["reward"]: sorted({line for result in check["examinations"] for line in result["skipped_lines"]})
        for check in checks["rewards"]
    }
    assert {"stdio": [2], "function": [1]} == {name: [n for n in lines if n < 3] for name, lines in skipped.items()}
    assert ([3] if len(rows) == 3 else []) == checks["unscored_lines"]
    printed = CliRunner().invoke(app, command).output
    assert "not examined: 1 row that the reward skips (line 2)" in printed.replace("\n", " ") or len(rows) == 3
    assert (len(rows) == 3) is ("1 row (line 3): no reward scores it" in printed)
