"""Harbor's criteria of files earn here what harbor-rewardkit pays for them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from harbor_folders import write_task

from rewardkit import SealedWorkspace, from_harbor
from rewardkit.errors import SuiteError
from rewardkit.harbor.criteria import evaluate, read_criteria

RECORDED = [json.loads(line) for line in Path(__file__).with_name("criteria.jsonl").read_text().splitlines()]
SCRIPT = "#!/bin/bash\nuvx --from harbor-rewardkit rewardkit /tests\n"


@pytest.mark.parametrize("case", RECORDED, ids=range(len(RECORDED)))
def test_rewards_are_those_that_were_recorded(case: dict[str, Any]) -> None:
    """Of drawn folders, by harbor-rewardkit 0.2.3, which rounds to four digits."""
    layout, needs = read_criteria({name: text.encode() for name, text in case["tests"].items()}, "/app")
    rewards = evaluate(layout, {name: text.encode() for name, text in case["files"].items()}).rewards
    assert [] == needs
    assert pytest.approx(case["rewards"], abs=2e-4) == rewards


def test_a_folder_is_scored_by_its_criteria(tmp_path: Path) -> None:
    """The score is the reward of that name, and all are metrics."""
    criteria = (
        "import rewardkit as rk\nfrom rewardkit import criteria\n"
        "criteria.file_matches('/app/answer.txt', '42', weight=3.0)\nrk.file_exists('notes.md')\n"
    )
    task = from_harbor(
        write_task(tmp_path, {"tests/test.sh": SCRIPT, "tests/checks.py": criteria, "tests/test_outputs.py": None})
    )
    assert () == task.needs
    verdict = task.grade(SealedWorkspace({"answer.txt": b"42\n"}))
    assert (0.75, {"reward": 0.75}) == (verdict.score().value, verdict.score().metrics)
    assert "1 of 2 criteria pass; not: checks::file_exists('notes.md')" == verdict.reason()
    assert task.grade(SealedWorkspace({"answer.txt": b"42", "notes.md": b""})).passed


@pytest.mark.parametrize(
    "line",
    [
        "criteria.command_succeeds('python main.py')",
        "criteria.file_exists(name)",
        "criteria.file_exists('../secret')",
        "criteria.file_exists('/etc/passwd')",
        "criteria.file_exists()",
        "criteria.file_contains('a', 'b', weight=float('inf'))",
        "@criterion\ndef own(workspace): return True",
        "print(1)",
    ],
)
def test_what_is_no_criterion_of_files_is_a_need(line: str) -> None:
    """It is not run, and nothing is scored without it."""
    _, needs = read_criteria({"checks.py": f"from rewardkit import criteria\n{line}\n".encode()}, "/app")
    assert 1 == len(needs)


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"reward.toml": "x ="}, "no TOML"),
        ({"reward.toml": "[scoring.nothing]"}, r"scoring\.nothing"),
        ({"reward.toml": "[[reward]]\nname='a'\nweights = {b = 1.0}"}, "'b' is not among 'checks'"),
        ({"reward.toml": "[[reward]]\nname='a'\naggregation = 'best'"}, "'best'"),
        ({"reward.toml": "[[reward]]\naggregation = 'all-pass'"}, "needs a name"),
        ({"reward.toml": "colour = 1"}, "colour"),
        ({"g/reward.toml": "[[reward]]\nname = 'x'", "g/a.py": ""}, "without a name"),
        ({"g/reward.toml": "[[reward]]", "g/a.py": ""}, "no criteria"),
        ({"bad.py": "criteria.("}, "no Python"),
    ],
)
def test_a_wrong_file_is_refused_by_name(files: dict[str, str], message: str) -> None:
    """With the value and what was expected."""
    tests = {"checks.py": "criteria.file_exists('a')", **files}
    with pytest.raises(SuiteError, match=message):
        read_criteria({name: text.encode() for name, text in tests.items()}, "/app")
