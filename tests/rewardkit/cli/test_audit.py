"""``rewardkit audit`` and ``rewardkit check``: what they print and their exit codes."""

from __future__ import annotations

import functools
import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from rewardkit.audit.engine import AuditSettings
from rewardkit.cli.program import app
from rewardkit.commands import excerpt

REWARDS = """\
from typing import Literal
from rewardkit import reward

@reward(timeout_s=5)
def correct(completion: str, answer: int) -> float:
    return float(completion.strip() == str(answer))

@reward
def loose(completion: str, answer: str) -> float:
    return float(answer in completion)

@reward(default=None)
def picky(completion: str, answer: str) -> float:
    return {answer: 1.0}[completion]

@reward
def brief(completion: str) -> float:
    return 1 / (1 + len(completion))

@reward
def never(completion: str, kind="") -> None:
    return None

@reward
def kind_of(completion: str, kind: Literal["easy", "hard"], note: str = "") -> float:
    return 1.0
"""


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with rewards and data; audits leave out the heavy probes, which are no claim of these tests."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr("rewardkit.cli.audit.AuditSettings", functools.partial(AuditSettings, heavy_rows=0))
    (tmp_path / "mine.py").write_text(REWARDS)
    rows = [{"prompt": f"{n}+1=", "answer": str(n + 1), "kind": "easy"} for n in (41, 16, 127)]
    _write(tmp_path / "rows.jsonl", rows)
    _write(tmp_path / "bad.jsonl", [*rows[:2], {"prompt": "6+1=", "answer": "seven", "kind": "odd"}])
    return tmp_path


def _write(path: Path, rows: list[dict[str, Any]]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def _run(*arguments: str) -> tuple[int, str, str]:
    done = CliRunner().invoke(app, list(arguments), prog_name="rewardkit")
    return done.exit_code, done.stdout, done.stderr


def test_audit_passes_a_sound_reward_and_tells_zero_from_not_judged(work: Path) -> None:
    """Exit code 0 and a line a family: attacks can be wrongly paid, honest forms refused; the other cell has a dash."""
    code, out, _ = _run("audit", "mine.py:correct", "rows.jsonl", "--workers", "1")
    assert 0 == code
    assert "3 of 3 rows audited" in out
    assert "few rows  3 rows show little of what differs; give 5 or more" in out
    assert ["stuffing"] == [line.split()[0] for line in out.splitlines() if line.startswith("stuffing")]
    assert "passed: 0 wrongly paid" in out
    assert "always paid  bare" in out
    attacked = "attacked wrong answers were tried bare; other ways of writing were not attacked"
    assert attacked in " ".join(out.split())
    cells = {line.split()[0]: line.split()[2:] for line in out.splitlines() if line.startswith(("empty ", "forms "))}
    assert {"empty": ["0", "-", "0", "0"], "forms": ["-", *cells["forms"][1:]]} == cells
    assert cells["forms"][1].isdigit()


def test_audit_says_what_it_tried_where_no_answer_is_read(work: Path) -> None:
    """The table has the completions that were tried, dashes for what was not judged, and a verdict of its own."""
    given = ("audit", "mine.py:brief", "rows.jsonl", "--rows", "1", "--workers", "1")
    code, out, _ = _run(*given)
    cells = next(line.split() for line in out.splitlines() if line.startswith("empty "))
    assert 4 == code
    assert ["-", "-", "0", "0"] == cells[2:]
    assert "not judged: nothing of this reward's kind was tried" in " ".join(out.split())
    code, out, _ = _run(*given, "--json")
    told = json.loads(out)
    reason = "nothing of this reward's kind was tried; it does not read the gold in 'answer'"
    assert (4, False, "not judged", False, reason) == (
        code,
        told["ok"],
        told["rewards"][0]["verdict"],
        told["rewards"][0]["passed"],
        told["rewards"][0]["not_judged"],
    )
    assert 1 == _run("audit", "mine.py", "rows.jsonl", "--rows", "1", "--workers", "1")[0]  # what failed comes first


def test_audit_names_the_column_that_may_be_the_gold(work: Path) -> None:
    """A reward that reads a column of no usual name is not judged, until --gold names it."""
    rows = [{"prompt": f"Spam? {n}", "is_spam": n % 2 == 0} for n in range(4)]
    _write(work / "spam.jsonl", rows)
    (work / "spam.py").write_text(
        "from rewardkit import reward\n\n@reward(score_range=(0, 1))\n"
        "def spam(completion: str, is_spam: bool) -> float:\n"
        "    return float(('yes' in completion.lower()) == is_spam)\n"
    )
    given = ("audit", "spam.py:spam", "spam.jsonl", "--workers", "1")
    code, out, _ = _run(*given)
    assert 4 == code
    assert "it reads 'is_spam': if that is the right answer, give --gold is_spam" in " ".join(out.split())
    assert 1 == _run(*given, "--gold", "is_spam")[0]


def test_audit_shows_what_is_wrongly_paid_and_the_lint(work: Path) -> None:
    """Exit code 1; an example has the completion and what it earns, the lint file and line."""
    code, out, _ = _run("audit", "mine.py:loose", "rows.jsonl", "--workers", "1")
    assert 1 == code
    assert "“The answer is not 42.” earns 1, a right answer 1" in out
    assert "lint substring_answer  mine.py:10: return float(answer in completion)" in out
    assert "NOT passed" in out


def test_audit_tells_failed_from_skipped(work: Path) -> None:
    """A failed call without a default earns nothing; skipped is another thing, and one row is one row."""
    code, out, _ = _run("audit", "mine.py:picky", "rows.jsonl", "--rows", "1", "--workers", "1")
    assert 1 == code
    assert "1 of 1 row audited (3 in the file)" in out
    assert "“” fails and earns nothing, a right answer 1 exception: KeyError: ''" in " ".join(out.split())
    assert "skipped" not in out
    told = json.loads(_run("audit", "mine.py:picky", "rows.jsonl", "--rows", "1", "--json")[1])
    assert "failed" == told["rewards"][0]["families"]["empty"]["examples"]["crashed"][0]["status"]
    _, out, _ = _run("audit", "mine.py:never", "rows.jsonl", "--rows", "1", "--workers", "1")
    assert "not audited  1 row (line " in out


def test_audit_names_the_rows_whose_reference_is_refused_and_every_kind_of_crash(work: Path) -> None:
    """Text and JSON agree on the references; a row whose gold makes each call fail is told from a completion."""
    (work / "figures.py").write_text(
        "import re\nfrom rewardkit import reward\n\n@reward(score_range=(0, 1))\n"
        "def figures(completion: str, answer: str) -> float:\n"
        "    values = [float(text) for text in re.findall(r'-?[0-9][0-9,]*', completion)]\n"
        "    return float(float(answer) in values)\n"
    )
    rows = [{"prompt": f"{n}?", "answer": str(n), "reference_completion": f"It is {n}."} for n in range(12, 19)]
    rows[1]["answer"], rows[3]["answer"], rows[5]["reference_completion"] = "", "seventy", "It is in the text."
    _write(work / "mixed.jsonl", rows)
    given = ("audit", "figures.py", "mixed.jsonl", "--workers", "1", "--skip", "bomb")
    code, out, _ = _run(*given)
    words = " ".join(out.split())
    assert 1 == code
    assert "references 1 reference of the data earn" in words
    assert "line 6 earns 0: gold '17'" in words
    assert "whatever is tried fails alike, so the fault is the row's, with the gold “seventy”" in words
    assert words.index("could not convert string to float: ''") != words.index("could not convert string to float: 's")
    assert "could not convert string to float: '1" in words.replace("'-1", "'1")
    assert "give a right completion in a column 'reference'" not in words
    (told,) = json.loads(_run(*given, "--json")[1])["rewards"]
    assert ["6"] == list(told["refused_references"])


def test_the_limits_of_an_audit_decide_its_exit_code(work: Path) -> None:
    """--max-false-accept, --max-false-reject and --fail-on-lint move the border between 0 and 1; so says the JSON."""
    data = ("rows.jsonl", "--rows", "1", "--workers", "1", "--json")
    enough = ("--max-false-accept", "10000", "--skip", "sign", "--skip", "negated", "--skip", "bomb")
    code, out, _ = _run("audit", "mine.py:loose", *data, *enough)
    (told,) = json.loads(out)["rewards"]
    assert (0, "loose", True) == (code, told["reward"], told["passed"])
    assert told["families"]["stuffing"]["accepted"] > 0
    assert "substring_answer" == told["lint"][0]["rule"]
    assert "left out: with --skip" == told["families"]["bomb"]["not_applicable"]
    assert {"sign": "with --skip"} == told["left_out"]
    assert not {"sign", "negated"} & set(told["flaws"])
    assert 1 == _run("audit", "mine.py:loose", *data, *enough, "--fail-on-lint")[0]
    assert 1 == _run("audit", "mine.py:correct", *data, "--max-false-reject", "0.1")[0]


@pytest.mark.parametrize("columns", ["80", "120"])
def test_a_report_names_the_rule_and_the_cause_and_is_not_cut(
    work: Path, monkeypatch: pytest.MonkeyPatch, columns: str
) -> None:
    """At any width the rule of thumb, its cause, what was paid and the part of a long completion that matters."""
    monkeypatch.setenv("COLUMNS", columns)
    work_shown = "It is bought and sold. " * 20
    (work / "near.py").write_text(
        "import re\nfrom rewardkit import reward\n\n@reward\ndef near(completion: str, answer: float) -> float:\n"
        '    found = re.search(r"So it is ([0-9.]{1,9})[.]$", completion)\n'
        "    return float(found is not None and abs(float(found[1]) - answer) <= 0.05 * answer)\n"
    )
    rows = [{"prompt": "?", "answer": str(n), "reference": f"{work_shown}So it is {n}."} for n in (420, 317)]
    _write(work / "long.jsonl", rows)
    _, out, _ = _run("audit", "near.py:near", "long.jsonl", "--workers", "1", "--skip", "bomb")
    told = " ".join(out.split())
    assert "wrongly paid, tolerance" in told
    assert "rule A number near the right one is another number. cause It allows a difference" in told
    assert "one more" in told
    assert "So it is 421.” earns 1, a right answer 1" in told
    assert all(len(line) <= int(columns) for line in out.splitlines())
    assert "…" not in out.replace("… ", "").replace(" …", "")


def test_the_middle_of_a_long_text_is_shown_around_its_point() -> None:
    """Before and behind it, with marks where something is left out; without a point the head and the end."""
    long = "a" * 500 + " 42 " + "b" * 500
    assert "… " + "a" * 78 + " 42 " + "b" * 78 + " …" == excerpt(long, "42")
    assert excerpt(long, "").startswith("a" * 40 + " … b")
    assert "short" == excerpt("short", "")


def test_an_audit_ends_at_its_time_limit(work: Path) -> None:
    """What was not tried is told, is no refusal, and the audit does not pass."""
    data = ("rows.jsonl", "--rows", "1", "--workers", "1")
    code, out, _ = _run("audit", "mine.py:correct", *data, "--time-limit", "0.01", "--json")
    told = json.loads(out)["rewards"][0]
    assert (1, False) == (code, told["passed"])
    assert told["untried"] > 0
    assert 0 == told["families"]["forms"]["refused"]
    _, out, _ = _run("audit", "mine.py:correct", *data, "--time-limit", "0.01")
    assert "stopped by --time-limit with" in out
    assert "--time-limit 0: expected" in _run("audit", "mine.py:correct", *data, "--time-limit", "0")[2]


def test_a_rule_of_thumb_is_left_out_alone(work: Path) -> None:
    """By its name in the source; the rest of its family is judged."""
    (work / "kind.py").write_text(
        "from rewardkit import reward\n\n@reward\ndef kind(completion: str, answer: float) -> float:\n"
        "    # audit: skip tolerance it pays what is near\n    try:\n"
        "        return float(abs(float(completion[:20]) - answer) <= 0.2 * abs(answer))\n"
        "    except ValueError:\n        return 0.0\n"
    )
    data = ("rows.jsonl", "--workers", "1", "--json")
    told = json.loads(_run("audit", "kind.py:kind", *data)[1])["rewards"][0]
    assert {"tolerance": "it pays what is near"} == told["left_out"]
    assert "tolerance" not in told["flaws"]
    assert told["families"]["neighbour"]["judged"] > 0


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--gold", "truth"), "no column 'truth'"),
        (("--skip", "nonsense"), "no family or rule of thumb 'nonsense'"),
        (("--accept-share", "2"), "--accept-share 2: expected a share"),
    ],
    ids=["gold", "skip", "share"],
)
def test_audit_refuses_options_without_sense(work: Path, options: tuple[str, ...], said: str) -> None:
    """The error names the option's value; nothing is scored."""
    code, _, err = _run("audit", "mine.py:correct", "rows.jsonl", *options)
    assert 2 == code
    assert said in err


@pytest.mark.parametrize("command", ["audit", "check"])
def test_the_time_to_load_is_an_option(work: Path, command: str) -> None:
    """What takes longer is given up, and the error names the option, whose value must make sense."""
    (work / "slow_there.py").write_text(f"import os, time\nos.getpid() == {os.getpid()} or time.sleep(600)\n{REWARDS}")
    given = (command, "slow_there.py:loose", "rows.jsonl", "--workers", "1", "--load-timeout")
    for seconds, said in (("1.5", "longer than 1.5 s"), ("0", "--load-timeout 0: expected a number of seconds")):
        code, _, err = _run(*given, seconds)
        assert 2 == code
        assert said in err
        assert "--load-timeout" in err


def test_check_passes_data_that_suits(work: Path) -> None:
    """Exit code 0; the gold itself is scored, and the call's time stands beside the timeout."""
    code, out, _ = _run("check", "mine.py:correct", "rows.jsonl", "--workers", "1")
    cells = next(line.split() for line in out.splitlines() if line.startswith("correct"))
    assert 0 == code
    assert ["correct", "3", "-", "3", "1.0000", "-"] == cells[:6]
    assert ["5", "s"] == cells[-2:]


def test_check_offers_a_near_column(work: Path) -> None:
    """A misspelt column of the data is named, as by score."""
    _write(work / "misspelt.jsonl", [{"prompt": "1+1=", "anwser": "2"}])
    _, out, _ = _run("check", "mine.py:correct", "misspelt.jsonl", "--workers", "1")
    hint = "the data has the near name 'anwser': use one name in data and reward"
    assert f"correct: line 1: column 'answer' is missing; {hint}" in " ".join(out.split())


def test_check_leaves_columns_out_on_a_narrow_screen(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The names and what fails are whole on 60 columns."""
    monkeypatch.setenv("COLUMNS", "60")
    _, out, _ = _run("check", "mine.py:correct", "bad.jsonl", "--workers", "1")
    assert ["reward", "rows", "failing", "score", "p50", "timeout"] == out.splitlines()[1].split()
    assert ["correct", "3", "1"] == out.splitlines()[3].split()[:3]


def test_check_lists_each_row_and_column_that_fails(work: Path) -> None:
    """Exit code 1; every failing column of every reward is listed, in the JSON as well."""
    code, out, _ = _run("check", "mine.py:correct,mine.py:kind_of", "bad.jsonl", "--workers", "1")
    assert 1 == code
    assert "correct: line 3: column 'answer': expected int, got 'seven'" in out
    assert "kind_of: line 3: column 'kind': expected Literal['easy', 'hard'], got 'odd'" in out
    code, out, _ = _run("check", "mine.py", "bad.jsonl", "--rows", "0", "--json")
    told = {one["reward"]: one for one in json.loads(out)["rewards"]}
    assert 1 == code
    assert [(3, "answer")] == [(one["line"], one["column"]) for one in told["correct"]["misfits"]]
    assert told["loose"]["ok"]


def test_check_tells_a_column_once(work: Path) -> None:
    """However many rows fail in it: with their number, their lines and the first error."""
    _write(work / "many.jsonl", [{"prompt": "1+1=", "answer": word} for word in ("two", "zwei", "dos")])
    _, out, _ = _run("check", "mine.py:correct,mine.py:kind_of", "many.jsonl", "--workers", "1")
    assert "kind_of: 3 rows (line 1, 2, 3): column 'kind' is missing\n" in out
    assert "correct: 3 rows (line 1, 2, 3), the first: column 'answer': expected int, got 'two'\n" in out
    assert "correct: --json lists all 3\n" in out
    assert "kind_of: --json" not in out  # its line has all


def test_audit_tells_once_why_rows_were_not_audited(work: Path) -> None:
    """However much their values differ: with their lines, the first reason, and no place of its own trial."""
    _write(work / "many.jsonl", [{"prompt": "1+1=", "answer": word} for word in ("two", "zwei")])
    _, out, _ = _run("audit", "mine.py:correct", "many.jsonl", "--workers", "1")
    said = (
        "not audited 2 rows (line 1, 2), the first: every honest form failed: coercion: column 'answer': expected int"
    )
    assert said in " ".join(out.split())


def test_check_warns_where_silence_or_failing_pays(work: Path) -> None:
    """A default above the low end, and a completion that answers nothing and is skipped; the exit code stays 0."""
    (work / "pays.py").write_text(
        "import re, warnings\nfrom rewardkit import reward\nwarnings.simplefilter('ignore')\n"
        "@reward(score_range=(-1, 1), default=0)\n"
        "def paid(completion: str, answer: int) -> float | None:\n"
        "    numbers = re.findall(r'[0-9]+', completion)\n"
        "    return None if not numbers else 2.0 * (int(numbers[-1]) == answer) - 1\n"
        "@reward(score_range=(-1, 1))\n"
        "def sound(completion: str, answer: int) -> float:\n"
        "    return 2.0 * (completion == str(answer)) - 1\n"
        "@reward(score_range=(-1, 1))\n"
        "def by_row(prompt: str, completion: str, answer: int) -> float | None:\n"
        "    return None if answer == 42 else 2.0 * (completion == str(answer)) - 1\n"
    )
    code, out, _ = _run("check", "pays.py", "rows.jsonl", "--workers", "1")
    assert 0 == code
    words = " ".join(out.split())
    assert "paid: warning: default=0 is more than -1, the worst score of its score_range" in words
    assert "paid: warning: '' is skipped, and leaves the group's baseline" in words
    assert "sound: warning" not in words
    assert "by_row: warning" not in words  # the row has nothing to score by, whatever the completion says


def test_check_names_columns_that_no_reward_reads(work: Path) -> None:
    _write(work / "noted.jsonl", [{"prompt": "1+1=", "answer": 2, "note": "x"}])
    code, out, _ = _run("check", "mine.py:correct", "noted.jsonl", "--workers", "1")
    assert (0, True) == (code, "no reward reads the column 'note'" in out)


def test_check_names_a_parameter_whose_misspelt_name_keeps_its_default(work: Path) -> None:
    """The column is as the data has it, so the line does not ask whether the parameter's name was meant."""
    (work / "graded.py").write_text(
        "from rewardkit import reward\n"
        "@reward\n"
        "def graded(completion: str, answer: str, dificulty: int = 1) -> float:\n"
        "    return float(answer in completion)\n"
    )
    _write(work / "graded.jsonl", [{"prompt": "1+1=", "answer": "2", "difficulty": 3}])
    code, out, _ = _run("check", "graded.py", "graded.jsonl", "--workers", "1")
    hint = "the reward 'graded' has a parameter of the near name 'dificulty', which keeps its default"
    assert 0 == code
    assert f"no reward reads the column 'difficulty' ({hint}: use one name in data and reward)" in " ".join(out.split())


def test_check_warns_of_a_reward_that_does_not_apply(work: Path) -> None:
    """Every right answer skipped is a warning, as is a column without annotation; the exit code stays 0."""
    code, out, _ = _run("check", "mine.py:never", "rows.jsonl", "--workers", "1")
    assert 0 == code
    assert "never: warning: all 3 right answers were skipped: " in out
    assert "does not seem to apply to this data, or lacks a return" in " ".join(out.split())
    assert "never: warning: column 'kind' has no annotation, so it is passed on as it is in the data (str)" in out
    told = json.loads(_run("check", "mine.py:never,mine.py:correct", "rows.jsonl", "--workers", "1", "--json")[1])[
        "rewards"
    ]
    assert {"never": 2} == {one["reward"]: len(one["warnings"]) for one in told if one["warnings"]}


def test_check_tells_a_missing_column(work: Path) -> None:
    """A column that a reward needs and no row has is a failure of every row, a default's is none."""
    _write(work / "few.jsonl", [{"prompt": "1+1=", "answer": "2"}])
    code, out, _ = _run("check", "mine.py:kind_of", "few.jsonl", "--workers", "1")
    assert 1 == code
    assert "kind_of: line 1: column 'kind' is missing" in out
    assert "note" not in out


@pytest.mark.parametrize("skipped", [0, 5, 8])
def test_a_verdict_says_on_how_many_rows_it_rests(work: Path, skipped: int) -> None:
    """A reward that skips most rows passes on the others; on none of them nothing is judged."""
    source = "from rewardkit import reward\n\n@reward\n"
    source += "def some(completion: str, answer: str, skip: bool) -> float | None:\n"
    (work / "some.py").write_text(f"{source}    return None if skip else float(completion.strip() == answer)\n")
    _write(work / "some.jsonl", [{"prompt": f"{n}?", "answer": f"{n * 37}", "skip": n < skipped} for n in range(8)])
    code, out, _ = _run("audit", "some.py", "some.jsonl", "--workers", "1")
    verdicts = {
        0: (0, "passed: 0 wrongly paid"),
        5: (0, "passed on 3 of 8 rows: 0 wrongly paid"),
        8: (4, "not judged: nothing of this reward's kind was tried: no right answer is known on any row"),
    }
    assert verdicts[skipped][0] == code
    assert verdicts[skipped][1] in " ".join(out.split())
