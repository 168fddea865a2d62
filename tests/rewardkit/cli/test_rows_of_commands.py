"""Every command that reads a data set refuses a wrong one in the same words."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from rewardkit.cli.program import app

REWARD = """
from rewardkit import reward

@reward
def correct(completion: str, answer: int) -> float:
    return float(completion.strip() == str(answer))
"""
GOOD = '{"prompt": "1+1=", "completion": "2", "answer": 2}\n'
COMMANDS = {
    "check": ["check", "rw.py", "{}"],
    "score": ["score", "rw.py", "{}"],
    "audit": ["audit", "rw.py", "{}"],
    "diff": ["diff", "rw.py", "rw.py", "--data", "{}"],
    "diagnose": ["diagnose", "{}", "--rewards", "rw.py"],
}
WRONG = {
    "no file": (None, "{}: No such file or directory"),
    "empty": (b"", "{}: no rows in it; expected one JSON object a line"),
    "other keys": (GOOD + '{"prompt": "p", "completion": "2"}', "{}:2: lacks 'answer', which line 1 has"),
    "a key twice": (GOOD[:-2] + ', "answer": 3}', "{}:1: key 'answer' stands there twice"),
    "NaN": (GOOD + GOOD.replace('"answer": 2', '"answer": NaN'), "{}:2: NaN is not a JSON number; write null"),
    "half a pair": (
        GOOD.replace('"1+1="', '"\\ud83d"'),
        "{}:1: column 'prompt': half of a surrogate pair, \\ud83d; write the whole character, or \\ufffd",
    ),
    "no data set": (b"\x89PNG\r\n\x1a\n" + b"\x00" * 40, "{}:1: not UTF-8: invalid start byte at byte 0"),
    "a list": (b"[1, 2]", "{}:1: expected a JSON object, got '[1, 2]'; rows are one object a line; a list of them is"),
    "a prompt of a number": (GOOD.replace('"1+1="', "5"), "{}:1: 'prompt': expected a string or a list of messages"),
    "no role": (GOOD.replace('"1+1="', '[{"role": 5}]'), "{}:1: 'prompt': expected messages with 'role' and"),
}


def _run(arguments: list[str], path: Path) -> tuple[int, str]:
    result = CliRunner().invoke(app, [argument.format(path) for argument in arguments], env={"COLUMNS": "1000"})
    return result.exit_code, result.output


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize(("text", "message"), WRONG.values(), ids=WRONG)
def test_a_wrong_data_set_is_refused_in_the_same_words(
    command: str, text: str | bytes | None, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One line with file, line, mistake and what to write; the exit code is that of wrong input."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rw.py").write_text(REWARD)
    path = tmp_path / "rows.jsonl"
    if text is not None:
        path.write_bytes(text.encode() if isinstance(text, str) else text)
    code, output = _run(COMMANDS[command], path)
    assert 2 == code, output
    assert message.format(path) in output
    assert "Traceback" not in output


def test_cells_of_ten_megabytes_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are long, and not wrong."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rw.py").write_text(REWARD)
    path = tmp_path / "rows.jsonl"
    path.write_text(
        "".join(
            json.dumps({"prompt": "p" * 10**7, "completion": "2", "answer": answer, "note": "x" * 10**7}) + "\n"
            for answer in (1, 2)
        )
    )
    code, output = _run(["score", "rw.py", "{}", "--json"], path)
    assert 0 == code, output
    assert 0.5 == json.loads(output)["rewards"]["correct"]["scores"]["mean"]


@pytest.mark.parametrize("column", ["completion", "completions", "trainer_state", "environments"])
def test_check_names_columns_that_a_trainer_refuses(
    column: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rewards suit the data, so it is a warning."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rw.py").write_text(REWARD)
    path = tmp_path / "rows.jsonl"
    path.write_text(json.dumps({"prompt": "1+1=", "answer": 2, column: "2"}) + "\n")
    code, output = _run(["check", "rw.py", "{}"], path)
    assert (0, True) == (code, f"warning: column '{column}': TRL refuses a data set with it" in output)
    assert 1 == len(json.loads(_run(["check", "rw.py", "{}", "--json"], path)[1])["warnings"])
