"""``rewardkit test``: tables run without a test file, what is shown, exit codes, and what --accept changes."""

from __future__ import annotations

import json
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from rewardkit.cli.program import app

REWARDS = '''\
"""Rewards for the tests."""
from rewardkit import Score, group_reward, reward

print("this file prints as it is imported")

@reward(timeout_s=3)
def correct(completion: str, answer: int = 4) -> Score | None:
    """1 if the completion is the answer."""
    print("judging", completion)
    if completion == "boom":
        raise ValueError("cannot read \\x1b[31m")
    if completion == "sleep":
        import time
        time.sleep(30)
    if not completion:
        return None
    return Score(float(completion == str(answer)), reason=f"expected {answer}")

@group_reward
def unlike(completions: list[str]) -> list[float]:
    """1 for a completion that the group has once."""
    return [1.0 / completions.count(one) for one in completions]
'''

TABLE = """\
# What correct should make of answers.
reward: rewards.py:correct

cases:
- completion: 4   # the usual one
  expect: 1.0
- {id: wrong, completion: "5", expect: 0.0}
"""


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with rewards and a table."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setattr(sys, "path", list(sys.path))
    (tmp_path / "rewards.py").write_text(REWARDS)
    (tmp_path / "t.yaml").write_text(TABLE)
    return tmp_path


def _run(*arguments: str) -> tuple[int, str, str]:
    done = CliRunner().invoke(app, ["test", *arguments], prog_name="rewardkit")
    return done.exit_code, done.stdout, done.stderr


def test_all_as_expected_is_one_line_and_exit_code_0(work: Path) -> None:
    """Stdout holds the count; what the reward file prints goes to stderr."""
    code, out, err = _run("t.yaml")
    assert (0, "2 cases: 2 as expected\n") == (code, out)
    assert "this file prints" in err


def test_a_table_s_reward_is_looked_for_beside_it(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Wherever the command is given."""
    (work / "elsewhere").mkdir()
    monkeypatch.chdir(work / "elsewhere")
    assert 0 == _run("../t.yaml")[0]


def test_a_case_that_is_not_as_expected_is_shown_with_its_diff(work: Path) -> None:
    """A table of them, then of each completion, expected, got, reason and logs, then the count; exit code 1."""
    (work / "t.yaml").write_text(
        TABLE.replace("1.0", "0.5") + '- {completion: boom, expect: null}\n- {completion: "", expect: null}\n'
    )
    code, out, _ = _run("t.yaml")
    lines = out.splitlines()
    assert 1 == code
    assert ["case", "reward", "expected", "got"] == lines[0].split()
    assert ["4", "correct", "scored", "0.5", "(within", "1e-06)", "scored", "1.0"] == lines[2].split()
    assert [
        "t.yaml:5: case '4' of reward 'correct'",
        "  completion    '4'",
        "- expected      scored 0.5 (within 1e-06)",
        "+ got           scored 1.0",
        "  reason        expected 4",
        "  logs          │ judging 4",
        "",
        "t.yaml:8: case 'boom' of reward 'correct'",
        "  completion    'boom'",
        "- expected      skipped",
        "+ got           failed (exception): ValueError: cannot read \\x1b[31m",
    ] == lines[5:16]
    assert "4 cases: 2 as expected, 2 not as expected" == lines[-1]


def test_json_has_the_counts_and_the_failures(work: Path) -> None:
    """One object, and nothing else on stdout."""
    (work / "t.yaml").write_text(TABLE.replace("1.0", "[0, 0.5]"))
    code, out, _ = _run("t.yaml", "--json")
    told = json.loads(out)
    assert 1 == code
    assert (2, 1, 0) == (told["cases"], told["not_as_expected"], told["accepted"])
    assert [{"table": "t.yaml", "reward": "correct", "cases": 2, "not_as_expected": 1}] == told["tables"]
    (failure,) = told["failures"]
    assert ("t.yaml:5", "4", "4", "scored 0.0 to 0.5", None, False) == tuple(
        failure[key] for key in ("where", "id", "completion", "expected", "place", "accepted")
    )
    assert ("scored", 1.0, "expected 4", "judging 4\n") == tuple(
        failure["got"][key] for key in ("status", "score", "reason", "logs")
    )


@pytest.mark.parametrize(
    ("name", "text", "warned"),
    [
        ("t.yaml", "reward: bare.py\ncases:\n- {completion: a, n: 4, expect: 1}\n", True),
        ("t.jsonl", '{"reward": "bare.py"}\n{"completion": "a", "n": 4, "expect": 1}\n', True),
        ("t.yaml", 'reward: bare.py\ncases:\n- {completion: a, n: "4", expect: 0}\n', False),
        ("t.jsonl", '{"reward": "bare.py"}\n{"completion": "a", "n": "4", "expect": 0}\n', False),
    ],
    ids=["yaml-number", "jsonl-number", "yaml-text", "jsonl-text"],
)
def test_a_column_without_annotation_is_what_is_written(work: Path, name: str, text: str, warned: bool) -> None:
    """In either format, as in `rewardkit score`; a value that is no text is warned of."""
    (work / "bare.py").write_text(
        "from rewardkit import reward\n@reward\ndef bare(completion: str, n) -> float:\n    return float(n == 4)\n"
    )
    (work / name).write_text(text)
    code, out, _ = _run(name)
    assert 0 == code
    assert warned is ("reward 'bare' takes 'n' without annotation, so it gets int here" in out)
    assert warned is bool(json.loads(_run(name, "--json")[1])["warnings"])


def test_a_folder_of_tables_is_run_in_the_order_of_names(work: Path) -> None:
    """YAML and JSON Lines, not other files and not folders in it."""
    (work / "cases").mkdir()
    (work / "cases" / "a.yml").write_text(TABLE.replace("rewards.py", "../rewards.py"))
    (work / "cases" / "b.jsonl").write_text('{"reward": "../rewards.py:correct"}\n{"completion": "4", "expect": 0}\n')
    (work / "cases" / "notes.txt").write_text("not a table")
    code, out, _ = _run("cases")
    assert 1 == code
    assert "b.jsonl:2: case '4' of reward 'correct'" in out
    assert out.endswith("3 cases in 2 tables: 2 as expected, 1 not as expected\n")


def test_a_reward_given_stands_in_for_the_table_s(work: Path) -> None:
    """A table need not name one then; it is looked for from the working folder."""
    (work / "t.jsonl").write_text('{"completions": ["a", "a", "b"], "expect": [0.5, 0.5, 1]}\n')
    assert (0, "1 case: 1 as expected\n") == _run("t.jsonl", "--reward", "rewards.py:unlike")[:2]


def test_a_timeout_is_told_by_a_worker(work: Path) -> None:
    """Without being asked, for a case that expects it; and as an option."""
    (work / "t.yaml").write_text(TABLE + "- {completion: sleep, expect: {failed: timeout}}\n")
    assert (0, "3 cases: 3 as expected\n") == _run("t.yaml")[:2]
    assert 2 == _run("t.yaml", "--lane", "inline")[0]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["none.yaml"], "none.yaml: No such file"),
        (["rewards.py"], "rewards.py: expected a table of cases"),
        (["empty"], "empty: no tables of cases in it"),
        (["bare.yaml"], "bare.yaml: names no reward; begin it with 'reward: my_rewards.py:correct'"),
        (["bare.yaml", "--reward", "rewards.py"], "holds 2 rewards; name one"),
        (["bare.yaml", "--reward", "rewards.py:corect"], "did you mean 'correct'"),
        (["bare.yaml", "--reward", "other.py:f"], "needs column 'gold'"),
        (["t.yaml", "--lane", "fast"], "is not one of"),
        (["wrong.yaml"], "wrong.yaml:3: 'expect': expected a score"),
        (["t.yaml", "bare.yaml"], "t.yaml: a table of cases where REWARDS belong; to run several"),
    ],
)
def test_a_mistake_is_told_with_exit_code_2(work: Path, arguments: list[str], said: str) -> None:
    """One message on stderr that names the file or option; nothing is run."""
    (work / "empty").mkdir()
    (work / "bare.yaml").write_text("- {completion: a, expect: 1}\n")
    (work / "wrong.yaml").write_text("reward: rewards.py:correct\ncases:\n- {completion: a, expect: yes}\n")
    (work / "other.py").write_text(
        "from rewardkit import reward\n@reward\ndef f(completion: str, gold: str): return 0.0\n"
    )
    code, out, err = _run(*arguments)
    assert (2, "") == (code, out)
    assert said in err


def test_nothing_is_accepted_where_a_later_table_is_wrong(work: Path) -> None:
    """All tables are read before any is changed."""
    before = TABLE.replace("1.0", "0.5")
    (work / "t.yaml").write_text(before)
    (work / "z.yaml").write_text("- 4")
    assert 2 == _run(".", "--accept")[0]
    assert before == (work / "t.yaml").read_text()


def test_a_folder_is_run_with_other_files_beside_its_tables(work: Path) -> None:
    """Rows, completions and settings are passed over; a folder without a table names what there is."""
    folder = work / "project"
    folder.mkdir()
    others = {
        "rows.jsonl": '{"prompt": "p", "answer": "4"}\n',
        "rollouts.jsonl": '{"prompt": "p", "completion": "4"}\n',
        "rewards.yaml": "functions:\n  correct: rewards.py:correct\n",
        "recipe.yaml": "title: A recipe\n",
    }
    for name, text in others.items():
        (folder / name).write_text(text)
    code, _, err = _run("rewards.py:correct", "project")
    assert (2, True) == (code, f"no tables of cases in it, {', '.join(sorted(others))} have no case" in err)
    (folder / "cases.jsonl").write_text('{"completion": "4", "answer": 4, "expect": 1.0}\n')
    (folder / "cases.yaml").write_text("- {completion: '4', answer: 4, expect: 1.0}\n")
    code, out, _ = _run("rewards.py:correct", "project")
    assert (0, "2 cases in 2 tables: 2 as expected") == (code, out.strip())


ROWS = [{"prompt": f"{n}+1=", "completion": str(n + n % 2), "answer": n + 1} for n in range(6)]
DATA, REWARD = "written/rows.jsonl", "rewards.py:correct"
WRITERS = {  # commands that write rows to a file, or a result to stdout
    "check --out": ["check", REWARD, DATA, "--out", "written/flaws.jsonl"],
    "score --out": ["score", REWARD, DATA, "--inline", "--out", "written/scored.jsonl"],
    "export --to": ["export", "runs/one", "--to", "written/run.jsonl"],
    "export --out": ["export", "runs/one", "--out", "written/run.jsonl"],
    "profile --out": ["profile", "runs/one", "--drop", "1..1", "--out", "written/prompts.jsonl"],
    "check": ["check", REWARD, DATA, "--json"],
    "score": ["score", REWARD, DATA, "--inline", "--json"],
    "audit": ["audit", REWARD, DATA, "--json"],
    "diagnose": ["diagnose", DATA, "--rewards", REWARD, "--json"],
    "show": ["show", "runs/one", "--json"],
    "profile": ["profile", "runs/one", "--json"],
    "logs": ["logs", "runs/one", "--json"],
    "list": ["list", "rewards.py", "--json"],
    "runs": ["runs", "--json"],
    "verify": ["verify", "runs/one", "--json"],
    "compare": ["compare", "runs/one", "runs/two", "--json"],
    "rescore": ["rescore", "runs/one", "--reward", REWARD, "--json"],
    "diff": ["diff", REWARD, "rewards.py:short", "--data", DATA, "--json"],
    "test": ["test", REWARD, "written/cases.yaml", "--json"],
}


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with rewards, a table, rows, and two runs of these."""
    folder = tmp_path_factory.mktemp("written")
    (folder / "written").mkdir()
    (folder / "rewards.py").write_text(
        "from rewardkit import reward\n"
        "@reward\ndef correct(completion: str, answer: int) -> float: return float(completion == str(answer))\n"
        "@reward\ndef short(completion: str) -> float: return float(len(completion) == 1)\n"
    )
    (folder / "written/rows.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in ROWS))
    (folder / "written/cases.yaml").write_text("- {completion: '4', answer: 4, expect: 1.0}\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for run in ("one", "two"):
            recording = ["score", REWARD, DATA, "--inline", "--record", f"runs/{run}"]
            assert 0 == CliRunner().invoke(app, recording).exit_code
    return folder


@pytest.mark.parametrize("arguments", WRITERS.values(), ids=WRITERS)
def test_a_folder_is_run_with_what_our_commands_wrote_into_it(
    arguments: list[str], written: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each file is passed over, whatever its keys are, such as ``reward`` of a flaw."""
    monkeypatch.chdir(written)
    before = {*Path("written").iterdir()}
    try:
        result = CliRunner().invoke(app, arguments)
        assert result.exit_code in (0, 1), result.output
        if {*Path("written").iterdir()} == before:
            Path("written/result.jsonl").write_text(result.stdout)
        code, out, err = _run(REWARD, "written")
        assert (0, "1 case: 1 as expected") == (code, out.strip()), err
    finally:
        for path in {*Path("written").iterdir()} - before:
            path.unlink()


def test_every_command_that_writes_rows_is_among_the_writers() -> None:
    """The commands of rewardkit with an option ``--out``."""
    group: Any = typer.main.get_command(app)
    context = typer.Context(group)
    commands = {name: group.get_command(context, name) for name in group.list_commands(context)}
    own = {name for name, command in commands.items() if any("--out" in option.opts for option in command.params)}
    assert {"check", "score", "export", "profile"} <= own
    assert {f"{name} --out" for name in own} <= WRITERS.keys()


def test_a_misspelt_setting_of_a_table_in_a_folder_is_named(work: Path) -> None:
    """A table is one by its cases, though its first line has an unknown key."""
    lines = ['{"reward": "rewards.py:correct", "tolerence": 0.1}', '{"completion": "4", "expect": 1.0}']
    (work / "cases.jsonl").write_text("\n".join(lines))
    code, _, err = _run(".")
    assert (2, True) == (code, "'tolerence': no such setting" in err)


# --accept

YAML_BEFORE = """\
# Comments stay.
reward: rewards.py:correct   # here too

cases:
- completion: 4      # the usual one
  expect: 0.5        # to be seen
- {completion: '5', expect: [0.5, 1], id: flow}   # a line
- id: tolerant
  expect:
    score: 0.25      # roughly
    tolerance: 0.1
  completion: "4"
- id: block range

  completion: "4"
  expect:
  - 0
  - 0.5  # high
- id: left empty
  completion: "4"
  expect:
- id: fine
  completion: ""
  expect: ~
- id: skips
  expect: {score: 1, tolerance: 0}
  completion: ""
- id: raises
  completion: boom
  expect: 1
"""

YAML_AFTER = """\
# Comments stay.
reward: rewards.py:correct   # here too

cases:
- completion: 4      # the usual one
  expect: 1.0        # to be seen
- {completion: '5', expect: 0.0, id: flow}   # a line
- id: tolerant
  expect:
    score: 1.0      # roughly
    tolerance: 0.1
  completion: "4"
- id: block range

  completion: "4"
  expect:
    1.0  # high
- id: left empty
  completion: "4"
  expect: 1.0
- id: fine
  completion: ""
  expect: ~
- id: skips
  expect: null
  completion: ""
- id: raises
  completion: boom
  expect: 1
"""


@pytest.mark.parametrize("ends", ["\n", "\r\n"], ids=["lf", "crlf"])
@pytest.mark.parametrize("bom", ["", "\ufeff"], ids=["plain", "bom"])
def test_accept_changes_expectations_in_yaml_and_nothing_else(work: Path, ends: str, bom: str) -> None:
    """Comments, order and layout stay; a failed call is never accepted and exit code 1 says so; each change is told."""
    table = work / "t.yaml"
    table.write_bytes((bom + YAML_BEFORE.replace("\n", ends)).encode())
    table.chmod(0o640)
    code, out, _ = _run("t.yaml", "--accept")
    assert 1 == code
    assert (bom + YAML_AFTER.replace("\n", ends)) == table.read_bytes().decode()
    assert 0o640 == table.stat().st_mode & 0o777
    assert "not accepted: a failed call is never accepted; write {failed: CAUSE} if it is meant" in out
    assert "accepted  t.yaml:5: '4': scored 0.5 (within 1e-06) is now 1.0" in out
    assert out.endswith("8 cases: 1 as expected, 1 not as expected, 6 accepted\n")
    code, out, _ = _run("t.yaml", "--accept")
    assert 1 == code
    assert out.endswith("8 cases: 7 as expected, 1 not as expected\n")


JSONL_BEFORE = """\
{"reward": "rewards.py:correct"}

{"completion" : "4", "expect":0.5,"note": "caf\\u00e9", "id": "a,\\"expect\\": 2"}
{"expect": {"tolerance": 0.1, "score": 0}, "completion": "4"}
{"completion": "5", "expect": [0.5, 1]  }
{"completion": "", "expect": 1e0}
"""
JSONL_AFTER = """\
{"reward": "rewards.py:correct"}

{"completion" : "4", "expect":1.0,"note": "caf\\u00e9", "id": "a,\\"expect\\": 2"}
{"expect": {"tolerance": 0.1, "score": 1.0}, "completion": "4"}
{"completion": "5", "expect": 0.0  }
{"completion": "", "expect": null}
"""


def test_accept_changes_expectations_in_json_lines_and_nothing_else(work: Path) -> None:
    """Other fields, escapes and spaces stay; exit code 0 where all was accepted."""
    (work / "t.jsonl").write_text(JSONL_BEFORE)
    code, out, _ = _run("t.jsonl", "--accept")
    assert 0 == code
    assert JSONL_AFTER == (work / "t.jsonl").read_text()
    assert out.endswith("4 cases: 0 as expected, 4 accepted\n")


def test_accept_changes_only_the_places_of_a_group_that_differ(work: Path) -> None:
    """A flow list, a block list, and elements with a tolerance of their own."""
    (work / "g.yaml").write_text(
        "reward: rewards.py:unlike\ncases:\n"
        "- {completions: [a, b, a], expect: [0.5, 0, [0, 1]]}\n"
        "- completions: [a, a]\n  expect:\n  - {score: 0, tolerance: 0.1} # one\n  - [0, 0.2]\n"
    )
    code, out, _ = _run("g.yaml", "--accept")
    assert 0 == code
    assert (work / "g.yaml").read_text().splitlines()[2:] == [
        "- {completions: [a, b, a], expect: [0.5, 1.0, [0, 1]]}",
        "- completions: [a, a]",
        "  expect:",
        "  - {score: 0.5, tolerance: 0.1} # one",
        "  - 0.5",
    ]
    assert "g.yaml:3: " in out
    assert "[1]: scored 0.0 (within 1e-06) is now 1.0" in out


def test_accept_leaves_what_several_cases_share(work: Path) -> None:
    """An alias or a merge is changed by hand, for the change would reach further."""
    text = (
        "reward: rewards.py:correct\ncases:\n"
        "- {id: a, completion: '4', expect: &low 0}\n"
        "- {id: b, completion: '5', expect: *low}\n"
        "- &base {id: c, completion: '4', expect: 0}\n"
        "- {<<: *base, id: d}\n"
        "- {id: e, completion: '4', expect: &n 0, note: 1}\n"
        "- {id: f, completion: '5', expect: 0, other: *n}\n"
        "- {id: g, completion: '4', expect: 0}\n"
    )
    (work / "t.yaml").write_text(text)
    code, out, _ = _run("t.yaml", "--accept")
    assert 1 == code
    after = text.replace("{id: g, completion: '4', expect: 0}", "{id: g, completion: '4', expect: 1.0}")
    assert after == (work / "t.yaml").read_text()
    assert 4 == out.count("not accepted: its expectation cannot be changed alone (an alias, a merge")


def test_accept_writes_nothing_where_all_is_as_expected(work: Path) -> None:
    """The file keeps its time."""
    before = (work / "t.yaml").stat().st_mtime_ns
    assert 0 == _run("t.yaml", "--accept")[0]
    assert before == (work / "t.yaml").stat().st_mtime_ns


def test_accept_follows_a_link(work: Path) -> None:
    """The target is changed, and the link stays one."""
    (work / "t.yaml").rename(work / "real.yaml")
    (work / "real.yaml").write_text(TABLE.replace("1.0", "0.5"))
    (work / "t.yaml").symlink_to("real.yaml")
    assert 0 == _run("t.yaml", "--accept")[0]
    assert (work / "t.yaml").is_symlink()
    assert TABLE == (work / "real.yaml").read_text()


def test_json_says_what_was_accepted(work: Path) -> None:
    """Beside what the case expected before."""
    (work / "t.yaml").write_text(TABLE.replace("1.0", "0.5"))
    code, out, _ = _run("t.yaml", "--accept", "--json")
    told: dict[str, Any] = json.loads(out)
    assert 0 == code
    assert (1, True, "scored 0.5 (within 1e-06)") == (
        told["accepted"],
        told["failures"][0]["accepted"],
        told["failures"][0]["expected"],
    )


ODD = """\
reward: rewards.py:correct
cases:
- {completion: "4", expect: 1.0}
- {completion: "", expect: null}
- {id: "odd \\x07 <&> \\U0001F600", completion: "5", expect: 1.0}
- {id: raises, completion: boom, expect: 0.0}
- {id: as expected, completion: boom, expect: {failed: exception}}
"""


def _report(path: Path) -> list[tuple[str, str, str]]:
    """The cases of a report: class, name, and what became of each."""
    cases = ElementTree.parse(path).getroot().iter("testcase")
    return [(one.get("classname", ""), one.get("name", ""), one[0].tag if len(one) else "passed") for one in cases]


def test_a_junit_report_tells_failures_from_errors(work: Path) -> None:
    """A skip that is expected passes, a call that failed is an error, and XML holds no character that it cannot."""
    (work / "odd.yaml").write_text(ODD)
    code, out, _ = _run("odd.yaml", "--junit", "out.xml")
    assert 1 == code
    assert "2 not as expected" in out
    outcomes = [what for _, _, what in _report(work / "out.xml")]
    assert ["passed", "passed", "failure", "error", "passed"] == outcomes
    root = ElementTree.parse(work / "out.xml").getroot()
    counts = {name: root.get(name) for name in ("tests", "failures", "errors", "skipped")}
    assert {"tests": "5", "failures": "1", "errors": "1", "skipped": "0"} == counts
    assert ("correct", "odd \\x07 <&> \U0001f600", "failure") == _report(work / "out.xml")[2]
    failure, error = (root.find(f".//{tag}") for tag in ("failure", "error"))
    assert failure is not None
    assert error is not None
    assert "expected scored 1.0 (within 1e-06), got 0.0" == failure.get("message")
    assert "cannot read \ufffd[31m" in (error.get("message") or "")
    assert ("exception", "scored") == (error.get("type"), failure.get("type"))
    assert "case 'raises' of reward 'correct'" in (error.text or "")


def test_the_error_of_a_group_names_the_call_that_failed(work: Path) -> None:
    """Also where an earlier completion of the group has a wrong score."""
    (work / "group.yaml").write_text(
        'reward: rewards.py:correct\ncases:\n- {completions: ["5", boom], expect: [1.0, 1.0], prompt: "2 + 2"}\n'
    )
    _run("group.yaml", "--junit", "out.xml")
    error = ElementTree.parse(work / "out.xml").getroot().find(".//error")
    assert error is not None
    assert (error.get("message") or "").startswith("completion 1: expected scored 1.0 (within 1e-06), got ")
    assert "cannot read" in (error.get("message") or "")
    assert "exception" == error.get("type")


def test_a_junit_report_has_a_suite_for_each_table(work: Path) -> None:
    """Beside JSON, which stays alone on stdout; an accepted case passes."""
    (work / "tables").mkdir()
    for name in ("a", "b"):
        (work / "tables" / f"{name}.yaml").write_text(
            TABLE.replace("rewards.py", "../rewards.py").replace("1.0", "0.5")
        )
    code, out, _ = _run("tables", "--accept", "--json", "--junit", "out.xml")
    assert (0, 4) == (code, json.loads(out)["cases"])
    root = ElementTree.parse(work / "out.xml").getroot()
    assert ["tables/a.yaml", "tables/b.yaml"] == [one.get("name") for one in root]
    assert ["passed"] * 4 == [what for _, _, what in _report(work / "out.xml")]


@pytest.mark.parametrize("path", ["none/out.xml", "t.yaml", "."])
def test_a_report_that_cannot_be_written_is_told_before_the_run(work: Path, path: str) -> None:
    """And a table is not overwritten."""
    code, _, err = _run("t.yaml", "--junit", path)
    assert 2 == code
    assert f"--junit {path}" in err
    assert "this file prints" not in err
    assert TABLE == (work / "t.yaml").read_text()
