"""``check`` and ``audit`` do not pass a reward that refuses what the data calls right, and accuse no other."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from typer.testing import CliRunner

from rewardkit.audit.engine import BASE
from rewardkit.audit.honest import Honest
from rewardkit.audit.rows import row_of
from rewardkit.cli.program import app
from rewardkit.examinations.right_pay import RightAnswer, UnpaidAnswer, lesser_answers, skipped_silence
from rewardkit.types import Outcome, Status

REWARDS = """
import re
from rewardkit import group_reward, reward

@reward
def never(completion: str, answer: str) -> float:
    return float(completion == f"Answer={answer}!")

@reward
def rarely(completion: str, answer: str) -> float:
    return float(answer == "3" and completion.endswith(answer))

@reward
def always_minus(completion: str, answer: str) -> float:
    return -1.0

@reward(score_range=(-1, 1))
def inside_its_range(completion: str, answer: str) -> float:
    return 1.0 if completion == f"Answer={answer}!" else -0.5

@reward
def by_type(completion: str, answer: int) -> float:
    return float(completion == answer)

@reward
def last_word(completion: str, answer: str) -> float:
    return float(completion.split()[-1:] == [answer])

@reward
def boxed(completion: str, answer: str) -> float:
    return float(f"boxed{{{answer}}}" in completion)

@reward
def penalty(completion: str, answer: str) -> float:
    return 0.0 if completion.split()[-1:] in ([], [answer]) else -1.0

@reward
def constant(completion: str, answer: str) -> float:
    return 1.0

@reward
def tags(completion: str) -> float:
    return float("<think>" in completion)

@group_reward
def best_of_group(completions: list[str], answer: str) -> list[float]:
    return [float(text.split()[-1:] == [answer]) for text in completions]
"""
REFERENCES = [{"prompt": f"{n}+0?", "answer": str(n), "reference": f"It is easy.\n#### {n}"} for n in range(1, 7)]
GOLDS = [{"prompt": row["prompt"], "answer": row["answer"]} for row in REFERENCES]


class Case(NamedTuple):
    """How many right answers of each data a reward pays; ``None`` where nothing can be said."""

    references: int | None
    golds: int | None
    is_found: tuple[bool, bool]


CASES = {
    "never": Case(0, 0, (True, True)),
    "rarely": Case(1, 1, (True, True)),
    "always_minus": Case(0, 0, (True, True)),
    "inside_its_range": Case(0, 0, (True, True)),
    "by_type": Case(0, 0, (True, True)),
    "last_word": Case(6, 6, (False, False)),
    "boxed": Case(0, 6, (True, False)),
    "penalty": Case(6, 6, (False, False)),
    "constant": Case(0, 0, (True, True)),
    "tags": Case(None, None, (False, False)),
    "best_of_group": Case(1, 1, (False, False)),
}


SOME = '''\
from rewardkit import Score, reward


@reward
def some(completion: str, answer: str) -> Score:
    """1 for the answer."""
    right = bool(answer) and completion == f"It is {answer}."
    return Score(float(right), reason="right" if right else f"not the gold {answer!r}")
'''


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(REWARDS)
    for name, rows in {"references": REFERENCES, "golds": GOLDS}.items():
        (tmp_path / f"{name}.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return tmp_path


def _run(*arguments: str) -> tuple[int, str]:
    done = CliRunner().invoke(app, [*arguments, "--workers", "1"])
    return done.exit_code, done.output


@pytest.mark.cases(1)
@pytest.mark.parametrize("data", ["references", "golds"])
def test_a_reward_that_pays_few_right_answers_is_found(work: Path, data: str) -> None:
    """Of a table of rewards exactly those are found that pay less than half of what the data calls right."""
    code, out = _run("check", "mine.py", f"{data}.jsonl", "--json")
    checks: dict[str, Any] = {check["reward"]: check for check in json.loads(out)["rewards"]}
    right = {name: check["right_answers"] for name, check in checks.items()}
    assert 1 == code
    assert {name: getattr(case, data) for name, case in CASES.items()} == {
        name: pay and pay["paid"] for name, pay in right.items()
    }
    found = {name: case.is_found[data == "golds"] for name, case in CASES.items()}
    assert found == {name: bool(pay and pay["finding"]) for name, pay in right.items()}
    assert found == {name: not check["ok"] for name, check in checks.items()}


def test_the_finding_stands_in_the_first_line(work: Path) -> None:
    code, out = _run("check", "mine.py:never", "references.jsonl")
    assert (1, True) == (code, out.startswith("never: pays 0 of 6 references more than a wrong answer (line 1, 2, "))
    assert "6 rows show nothing: the reward pays no right answer" in " ".join(out.split())


@pytest.mark.parametrize("extra", [(), ("--rows", "60")], ids=["quick", "asked"])
def test_rows_whose_right_answer_is_not_paid_are_named(work: Path, extra: tuple[str, ...]) -> None:
    """Few among 60 are a warning with line, score and reason, beyond the first rows too; --out has every flaw."""
    (work / "some.py").write_text(SOME)
    rows = [{"prompt": f"{n}?", "answer": str(n), "reference_completion": f"It is {n}."} for n in range(60)]
    rows[4]["answer"], rows[39]["answer"], rows[50]["answer"] = "5", "77", ""
    (work / "some.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    code, out = _run("check", "some.py", "some.jsonl", "--out", "flaws.jsonl", *extra)
    assert 0 == code
    words = " ".join(out.split())
    assert "warning: 3 of 60 references earn no more than a wrong answer" in words
    assert "line 5 earns 0: “It is 4.”: not the gold '5'" in words
    assert "line 40 earns 0: “It is 39.”: not the gold '77'" in words
    flaws = [json.loads(line) for line in (work / "flaws.jsonl").read_text().splitlines()]
    assert [5, 40, 51, 51] == [flaw["line"] for flaw in flaws]
    assert {"unpaid", "no_gold"} == {flaw["kind"] for flaw in flaws}
    assert {"some", None} == {flaw["reward"] for flaw in flaws}


@pytest.mark.parametrize(("refused", "is_noted"), [(0, False), (2, True), (29, True), (31, False), (60, False)])
def test_solutions_that_are_not_paid_as_they_are_written_are_noted(work: Path, refused: int, is_noted: bool) -> None:
    """Where most are paid, the others are written otherwise; a reward that asks for another form pays none of them."""
    (work / "some.py").write_text(SOME.replace('f"It is {answer}."', 'f"The answer is {answer}."'))
    form = {True: "In all {}.", False: "The answer is {}."}
    rows = [{"prompt": f"{n}?", "answer": str(n), "solution": form[n < refused].format(n)} for n in range(60)]
    (work / "some.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    code, out = _run("check", "some.py", "some.jsonl", "--examine", "0", "--out", "flaws.jsonl")
    words = " ".join(out.split())
    assert (0, is_noted) == (code, f"the solutions of {refused} of 60 rows earn nothing as they are written" in words)
    assert (is_noted and refused > 1) == ("line 2 earns 0: “In all 1.”: not the gold '1'" in words), out
    flaws = [json.loads(line) for line in (work / "flaws.jsonl").read_text().splitlines()]
    assert [n + 1 for n in range(refused) if is_noted] == [flaw["line"] for flaw in flaws]
    assert {"unpaid_solution"} >= {flaw["kind"] for flaw in flaws}


@pytest.mark.parametrize(("rows", "skipped", "is_warned"), [(17, 1, False), (20, 4, False), (17, 17, True)])
def test_all_right_answers_are_looked_at_for_what_is_said_of_all(
    work: Path, rows: int, skipped: int, is_warned: bool
) -> None:
    """The first 16 are scored before the others: a skip of the last row alone is no word on the reward."""
    (work / "some.py").write_text(SOME.replace("    right =", "    if answer == 'x':\n        return\n    right ="))
    answers = [*map(str, range(rows - skipped)), *["x"] * skipped]
    table = [{"prompt": f"{n}?", "answer": a, "reference": f"It is {a}."} for n, a in enumerate(answers)]
    (work / "some.jsonl").write_text("".join(json.dumps(row) + "\n" for row in table))
    _, out = _run("check", "some.py", "some.jsonl", "--examine", "0")
    assert is_warned == ("does not seem to apply to this data" in " ".join(out.split())), out


def test_more_rows_are_not_scored_where_a_call_is_slow(work: Path) -> None:
    """A reward that takes a second scores the first 16 rows and no more than the calls of five seconds."""
    (work / "slow.py").write_text(SOME.replace("    right =", "    __import__('time').sleep(0.4)\n    right ="))
    rows = [{"prompt": f"{n}?", "answer": str(n), "reference_completion": f"It is {n}."} for n in range(60)]
    (work / "some.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    code, out = _run("check", "slow.py", "some.jsonl", "--examine", "0", "--json")
    assert 0 == code
    assert 16 <= len(json.loads(out)["rewards"][0]["scores"]) <= 16 + 12


def test_what_cannot_be_known_is_named(work: Path) -> None:
    """A reward that reads no gold, and data without one: neither passes as if it had been looked at."""
    code, out = _run("check", "mine.py:tags", "golds.jsonl")
    assert (0, True) == (code, "tags: not looked at: whether it pays right answers: it reads no gold" in out)
    (work / "bare.jsonl").write_text('{"prompt": "a"}\n')
    code, out = _run("check", "mine.py:tags", "bare.jsonl")
    assert (0, True) == (code, "tags: not looked at: whether it pays right answers: the data has no right" in out)
    code, out = _run("check", "mine.py:tags", "references.jsonl")
    assert (0, True) == (code, "it reads no gold, so they may lack a form" in " ".join(out.split()))


@pytest.mark.cases(2)
@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case.references == 0])
def test_an_audit_does_not_pass_what_refuses_every_reference(work: Path, name: str) -> None:
    code, out = _run("audit", f"mine.py:{name}", "references.jsonl")
    assert 1 == code
    assert "all 6 references of the data refused" in " ".join(out.split())


@pytest.mark.parametrize("name", ["never", "no_guess"])
def test_an_audit_says_that_references_earn_what_silence_does(work: Path, name: str) -> None:
    """And no more than that: of a penalty they earn the full score, as silence does."""
    function = "def no_guess(completion: str) -> float:\n    return float('?' not in completion)"
    penalty = f"@reward(score_range=(0, 1))\n{function}"
    (work / "mine.py").write_text(f"{REWARDS}\n{penalty}\n")
    _, out = _run("audit", f"mine.py:{name}", "references.jsonl")
    words = " ".join(out.split())
    assert "the reward pays all 6 references of the data no more than an empty answer" in words
    assert "pays nothing" not in words


_SILENCE = [
    ("completion in ('', answer)", "'' earns 1, and the right answer 1"),
    ("answer in completion or 'know' in completion", "'I do not know.' earns 1"),
    ("completion == answer or not completion.strip(' .WIabcdefghklmnostuvwxyLEe,')", "earns 1"),
    ("completion.endswith(answer)", None),
    ("True", None),
    ("'boxed' in completion", None),
]


@pytest.mark.parametrize(("condition", "said"), _SILENCE)
def test_an_answer_of_nothing_that_is_paid_like_the_right_one_is_a_warning(
    work: Path, condition: str, said: str | None
) -> None:
    """Of a reward that reads answers; one that pays everything alike is found as that."""
    source = "from rewardkit import reward\n\n@reward\ndef odd(completion: str, answer: str) -> float:\n"
    (work / "odd.py").write_text(f"{source}    return float({condition})\n")
    rows = [{"prompt": f"{gold}?", "answer": str(gold)} for gold in range(10, 20)]
    (work / "odd.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    result = CliRunner().invoke(app, ["check", "odd.py", "odd.jsonl", "--workers", "1", "--examine", "0", "--json"])
    warnings = [text for text in json.loads(result.stdout)["rewards"][0]["warnings"] if "a model learns to say" in text]
    assert (said is not None) == bool(warnings)
    assert said is None or said in warnings[0]


def test_unpaid_answers_stand_below_their_rewards_name(work: Path) -> None:
    """Of several rewards, too, each list has a head of its own."""
    source = "from rewardkit import reward\n" + "".join(
        f"\n@reward\ndef {name}(completion: str, answer: str) -> float:\n    return float(completion == '{name}')\n"
        for name in ("first", "second")
    )
    (work / "two.py").write_text(source)
    (work / "two.jsonl").write_text("".join(f'{{"prompt": "{n}?", "answer": "{n}"}}\n' for n in range(4)))
    lines = (
        CliRunner()
        .invoke(app, ["check", "two.py", "two.jsonl", "--workers", "1", "--examine", "0"])
        .output.splitlines()
    )
    for name in ("first", "second"):
        assert "line 1 earns 0" in lines[lines.index(f"{name}: right answers that it does not pay") + 1]


_SCORED, _SKIPPED = Outcome(Status.SCORED, 0.0), Outcome(Status.SKIPPED, None, reason="the gold is no number")
_SILENCE_PAYS, _ROW_FAULT = "is skipped, and leaves the group's baseline", "line 7: the gold is no number"


@pytest.mark.parametrize(
    ("right", "silent", "wrong", "warning"),
    [
        (_SCORED, _SCORED, [_SCORED], None),
        (_SCORED, _SKIPPED, [_SCORED], _SILENCE_PAYS),
        (_SCORED, _SKIPPED, [], _SILENCE_PAYS),  # no other row's answer is known
        (_SCORED, _SKIPPED, [_SKIPPED], _ROW_FAULT),  # another answer is skipped too
        (_SKIPPED, _SKIPPED, [_SKIPPED], None),  # a row that does not apply
    ],
    ids=["scored", "silence pays", "one row", "the row's fault", "skipped row"],
)
def test_a_skipped_silence_is_the_rewards_fault_or_the_rows(
    right: Outcome, silent: Outcome, wrong: list[Outcome], warning: str | None
) -> None:
    """A row on which an answer of another row is skipped too is named with the reward's own reason."""
    answers = [RightAnswer(row_of(7, {"prompt": "?", "answer": "4"}, "answer"), Honest("bare", "4"), [])]
    result = skipped_silence(answers, [right], [silent] * len(BASE), wrong, "line")
    assert (warning is None) is (result is None)
    assert warning is None or warning in str(result)


def test_a_gold_that_cannot_be_read_is_named_and_not_the_built_in_reward(work: Path) -> None:
    """A worked solution without its mark is text, which math_answer compares with nothing."""
    golds = ["#### 87", "I worked it out.\nno gold here", "#### 19", "#### 120"]
    rows = [json.dumps({"prompt": f"Question {n}", "answer": gold}) + "\n" for n, gold in enumerate(golds)]
    (work / "golds.jsonl").write_text("".join(rows))
    words = " ".join(_run("check", "builtin_rewards.math:math_answer", "golds.jsonl", "--workers", "1")[1].split())
    assert "other answers are skipped on line 2: the gold can be compared as text only" in words
    assert "leaves the group's baseline" not in words


SHAPE = """
from builtin_rewards.structured import json_schema
shape = json_schema({"type": "object", "properties": {"total": {"type": "number"}}, "required": ["total"]})
"""


@pytest.mark.parametrize(
    ("scores", "lesser"),
    [([1.0] * 16, []), ([1.0] * 12 + [0.5, 0.0, 0.9, 0.5], [12, 13, 14, 15]), ([1.0] * 11 + [0.5] * 5, []), ([], [])],
    ids=["all alike", "a quarter less", "more than a quarter", "none"],
)
def test_the_few_right_answers_that_earn_less_are_named(scores: list[float], lesser: list[int]) -> None:
    """Where the others earn the same; scores that vary say nothing of the data."""
    earned = [UnpaidAnswer(line, score, "a", "a", None) for line, score in enumerate(scores)]
    assert lesser == [answer.line for answer in lesser_answers(earned)]


def test_golds_that_a_reward_of_form_pays_less_are_named(work: Path) -> None:
    """In the text with the reason, and in the files."""
    golds = [json.dumps({"total": "4" if number == 3 else number}) for number in range(12)]
    rows = [{"prompt": f"p{number}", "answer": gold} for number, gold in enumerate(golds)]
    (work / "shaped.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (work / "shape.py").write_text(SHAPE)
    code, out = _run("check", "shape.py", "shaped.jsonl", "--out", "flaws.jsonl")
    text = " ".join(out.split())
    assert 0 == code
    assert "1 of 12 golds earn less than the others: line 4 earns 0: “{" in text
    (flaw,) = [json.loads(line) for line in (work / "flaws.jsonl").read_text().splitlines()]
    assert (4, "lesser", True) == (flaw["line"], flaw["kind"], "is not of type" in flaw["detail"])


_ODD_ROWS = {
    "raises": "raise ValueError('odd row')",
    "nan": "return float('nan')",
    "no score": "return 'right'",
    "skips": "return None",
}


@pytest.mark.parametrize("act", _ODD_ROWS.values(), ids=_ODD_ROWS)
@pytest.mark.parametrize("column", ["reference", "reference_completion", "solution", None])
def test_no_sentence_takes_a_call_without_a_score_for_a_zero(work: Path, act: str, column: str | None) -> None:
    """Rows whose calls all fail or are skipped are in no count of what is not paid; failures stand before warnings."""
    source = "from rewardkit import reward\n\n@reward\ndef odd(completion: str, answer: str) -> float | None:\n"
    (work / "odd.py").write_text(
        f"{source}    if answer.startswith('9'):\n        {act}\n    return float(completion.endswith(answer))\n"
    )
    golds = ["10", "11", "12", "13", "14", "15", "90", "91"]
    more = [{} if column is None else {column: f"It is {gold}"} for gold in golds]
    rows = [{"prompt": f"{gold}?", "answer": gold, **extra} for gold, extra in zip(golds, more, strict=True)]
    rows[1]["answer"] = "1"  # its answer alone is unpaid where it is written otherwise
    (work / "odd.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    code, out = _run("check", "odd.py", "odd.jsonl")
    words = " ".join(out.split())
    assert int(act != _ODD_ROWS["skips"]) == code
    for line in (7, 8):
        assert f"line {line} earns" not in words
        assert f"line {line}: the reward does not pay" not in words
    assert "of 8" not in words.partition("odd: golds of")[0]
    assert code == 0 or words.index("scoring its right answer") < (words.find("warning: ") % 10**9)
    code, out = _run("check", "odd.py", "odd.jsonl", "--json")
    right = json.loads(out)["rewards"][0]["right_answers"]
    unpaid = {answer["line"] for answer in right["unpaid"] + right["unpaid_solutions"]} | {*right["unpaid_lines"]}
    assert (6, set()) == (right["rows"], unpaid & {7, 8})
