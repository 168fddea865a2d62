"""``rewardkit check`` examines rows: what it prints at 80 columns, its JSON, its file of flaws and its exit codes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from rewardkit.audit.skips import AUDIT_NAMES, FLAW_NAMES
from rewardkit.cli.program import app
from rewardkit.examinations.catalogue import EXAMINATIONS

ADD = "def add(a, b):\n    return a + b\n"
SOUND = {"prompt": "Write add.", "solution": ADD, "tests": "assert add(1, 2) == 3\nassert add(0, 5) == 5"}
WEAK = {**SOUND, "tests": "assert add(0, 0) == 0"}
WRONG = {**SOUND, "solution": "def add(a, b):\n    return a * b\n"}
FAULTY = {**SOUND, "tests": "assert add(1, 2) =="}


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    return tmp_path


def _check(work: Path, rows: list[dict[str, Any]], *options: str) -> tuple[int, str]:
    lines = [json.dumps({"task_id": f"T/{number}", **row}) for number, row in enumerate(rows)]
    (work / "rows.jsonl").write_text("".join(f"{line}\n" for line in lines))
    command = ["check", "builtin_rewards.code:code_tests", "rows.jsonl", "--workers", "1", "--rows", "0", *options]
    result = CliRunner().invoke(app, command)
    return result.exit_code, result.output


def test_sound_rows_have_no_flaw(work: Path) -> None:
    code, out = _check(work, [SOUND])
    assert 0 == code
    assert "code_tests: programs of 1 of 1 row, " in out
    assert "completions: no flaw\n" in out


def test_each_kind_is_counted_with_its_first_row(work: Path) -> None:
    """The worst kinds come first, and no line is wider than the screen."""
    code, out = _check(work, [SOUND, WEAK, WRONG, WRONG, FAULTY])
    assert 1 == code
    assert "completions: flaws in 4 rows\n" in out
    lines = out.splitlines()
    assert "  1 row: the tests cannot be run, so the row is skipped" in lines
    assert "  2 rows: the reference does not pass the tests" in lines
    assert "  1 row: a reference changed in one place passes the tests" in lines
    assert any(line.startswith("    line 3 (T/2): it scores 0: 0 of 2 checks passed") for line in lines)
    assert 80 >= max(map(len, lines))


def test_living_mutants_leave_the_exit_code(work: Path) -> None:
    """A mutant may be as right as the reference."""
    code, out = _check(work, [WEAK])
    assert 0 == code
    assert "mutants pass, such as line 2: " in out
    assert "where code_tests means it so, give --skip mutants_live" in " ".join(out.split())  # nobody edits a built-in
    assert "means it so" not in _check(work, [WEAK], "--examine", "0")[1]
    assert "means it so" not in _check(work, [WRONG])[1]


def test_an_option_accepts_a_kind_of_flaw_and_still_shows_it(work: Path) -> None:
    code, out = _check(work, [SOUND, WEAK], "--skip", "mutants_live", "--out", "flaws.jsonl")
    assert 0 == code
    assert "no flaw but accepted ones, in 1 row" in " ".join(out.split())
    assert "passes the tests; accepted: with --skip" in " ".join(out.split())
    assert "means it so" not in out
    flaws = [json.loads(line) for line in (work / "flaws.jsonl").read_text().splitlines()]
    assert [("mutants_live", "with --skip")] == [
        (flaw["kind"], flaw["accepted"]) for flaw in flaws if flaw["examination"] == "programs"
    ]


@pytest.mark.parametrize("name", ["empty", "reference_fails", ""])
def test_what_cannot_be_accepted_is_refused(work: Path, name: str) -> None:
    """A family of an audit, a flaw that fails the check, and nothing; the message lists what can."""
    code, out = _check(work, [SOUND], "--skip", name)
    assert 2 == code
    assert f"--skip: no kind of flaw that check accepts {name!r}; expected paid_like_gold" in " ".join(out.split())


def test_check_accepts_every_kind_of_flaw_that_does_not_fail_it() -> None:
    kinds = {name: kind for examination in EXAMINATIONS for name, kind in examination.kinds.items()}
    assert sorted(FLAW_NAMES) == sorted(name for name, kind in kinds.items() if not kind.is_failure)
    assert not set(FLAW_NAMES) & set(AUDIT_NAMES)


NEAR = """from rewardkit import reward

@reward(score_range=(0, 1))
def near(completion: str, answer: str) -> float:
    # audit: skip {comment}
    try:
        return float(abs(float(completion) - float(answer)) < 2)
    except ValueError:
        return float(completion == answer)
"""
_ACCEPTED = [
    ("not_recognised,paid_like_gold,work it is lenient", set()),
    ("paid_like_gold near is enough", {"not_recognised"}),
    ("work it has none", {"not_recognised", "paid_like_gold"}),
]


@pytest.mark.parametrize(("comment", "named"), _ACCEPTED)
def test_a_comment_of_the_reward_accepts_what_it_names(work: Path, comment: str, named: set[str]) -> None:
    """What it accepts is shown with the reason, and the hint names the other kinds alone."""
    (work / "near.py").write_text(NEAR.format(comment=comment))
    rows = [{"prompt": f"{gold}?", "answer": str(gold)} for gold in range(10, 30)]
    (work / "rows.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    result = CliRunner().invoke(app, ["check", "near.py", "rows.jsonl", "--workers", "1"])
    assert 0 == result.exit_code, result.output
    text = " ".join(result.output.split())
    names, _, reason = comment.partition(" ")
    accepted = [name for name in names.split(",") if name in FLAW_NAMES]
    assert len(accepted) == text.count(f"; accepted: {reason}")
    assert bool(named) == ("write `# audit: skip" in text)
    assert named == {name for name in ("not_recognised", "paid_like_gold") if f"--skip {name}" in text}


def test_the_json_and_the_file_have_every_flaw(work: Path) -> None:
    code, out = _check(work, [SOUND, WRONG, FAULTY], "--json", "--out", "flaws.jsonl")
    assert 1 == code
    examination = json.loads(out)["rewards"][0]["examinations"][0]
    assert ("programs", 3, 3) == tuple(examination[name] for name in ("examination", "rows", "total_rows"))
    assert ["cannot_run", "reference_fails"] == list(examination["flaws"])
    flaws = [json.loads(line) for line in (work / "flaws.jsonl").read_text().splitlines()]
    assert [("T/1", "reference_fails"), ("T/2", "cannot_run")] == [
        (flaw["id"], flaw["kind"]) for flaw in flaws if flaw["examination"] == "programs"
    ]
    assert {"data", "programs"} <= {flaw["examination"] for flaw in flaws}
    assert {"reward", "examination", "line", "id", "kind", "detail", "accepted"} == set(flaws[0])


def test_the_number_of_rows_is_an_option(work: Path) -> None:
    code, out = _check(work, [SOUND, WRONG, WRONG], "--examine", "1")
    assert 0 == code
    assert "programs of 1 of 3 rows" in out
    code, out = _check(work, [WRONG], "--examine", "0")
    assert 0 == code
    assert "programs" not in out


def test_a_file_that_cannot_be_written_is_a_mistake_of_the_user(work: Path) -> None:
    code, out = _check(work, [SOUND], "--out", "no/such/folder/flaws.jsonl")
    assert 2 == code
    assert "--out 'no/such/folder/flaws.jsonl': No such file or directory" in out
