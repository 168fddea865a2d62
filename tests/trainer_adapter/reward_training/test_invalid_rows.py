"""``invalid_rows="drop"``: a row that cannot be read or made tokens is left out and counted, and no other with it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tiny_grpo import third_party_warnings
from tiny_reward import tiny_decoder, tiny_encoder
from typer.testing import CliRunner

from rewardkit import ConfigError, DataError
from rewardkit.cli.program import app
from rewardkit.extending import InvalidRows
from trainer_adapter.reward_training.batches import fit_groups
from trainer_adapter.reward_training.reading import read_groups

pytest.importorskip("trl", reason="real training runs need the extra 'train'")

pytestmark = [third_party_warnings, pytest.mark.filterwarnings("ignore::DeprecationWarning")]
RIGHT: dict[str, dict[str, Any]] = {
    "bradley_terry": {"chosen": "good", "rejected": "bad", "margin": 0},
    "orm": {"completion": "c", "correct": True},
    "prm": {"steps": ["a"], "labels": [1]},
    "plackett_luce": {"completions": ["a", "b"], "ranks": [0, 1]},
}
WRONG: list[tuple[str, dict[str, Any]]] = [
    ("bradley_terry", {"chosen": ""}),
    ("bradley_terry", {"rejected": "good"}),
    ("bradley_terry", {"rejected": ...}),
    ("bradley_terry", {"margin": "wide"}),
    ("bradley_terry", {"chosen": "cut \ud83d"}),
    ("bradley_terry", {"prompt": "cut \ud83d"}),
    ("bradley_terry", {"chosen": [{"role": "assistant", "content": ""}]}),
    *[
        (kind, {side: [{"role": role, "content": content}]})
        for kind, side, role in [
            ("bradley_terry", "chosen", "assistant"),
            ("bradley_terry", "prompt", "user"),
            ("orm", "completion", "assistant"),
            ("orm", "prompt", "user"),
            ("plackett_luce", "prompt", "user"),
        ]
        for content in (7, {"text": "a"}, True, 1.5)
    ],
    ("orm", {"correct": 2}),
    ("orm", {"completion": "  "}),
    ("orm", {"completion": "cut \udc00"}),
    ("prm", {"labels": [3]}),
    ("prm", {"labels": [1, 1]}),
    ("prm", {"steps": ["cut \ud83d"]}),
    ("plackett_luce", {"ranks": [1, 1]}),
    ("plackett_luce", {"completions": ["a"]}),
    ("plackett_luce", {"completions": ["cut \ud83d", "b"]}),
    ("plackett_luce", {"prompt": ""}),
]
"""A kind, and what makes a row of it wrong."""


def rows_of(kind: str, change: dict[str, Any]) -> list[dict[str, Any]]:
    """Return four right rows, with a wrong one in their middle."""
    rows = [{"prompt": f"say {letter}", **RIGHT[kind]} for letter in "abcd"]
    wrong = {"prompt": "say e", **RIGHT[kind], **change}
    rows.insert(2, {name: value for name, value in wrong.items() if value is not ...})
    return rows


@pytest.mark.parametrize("of_file", [True, False])
@pytest.mark.parametrize(("kind", "change"), WRONG)
def test_the_rest_is_as_without_the_row(kind: Any, change: dict[str, Any], of_file: bool, tmp_path: Path) -> None:
    """From a file or from a list: the other rows' tokens are the same, and one row is counted."""
    import transformers

    tokenizer = transformers.AutoTokenizer.from_pretrained(tiny_decoder(tmp_path / "base"))
    rows = rows_of(kind, change)
    source: Any = rows
    if of_file:
        source = tmp_path / "rows.jsonl"
        source.write_text("".join(json.dumps(row) + "\n" for row in rows))
    invalid = InvalidRows("drop")
    fitted = fit_groups(tokenizer, read_groups(kind, source, invalid=invalid), 64, invalid=invalid)
    expected = fit_groups(tokenizer, read_groups(kind, [*rows[:2], *rows[3:]]), 64)
    assert invalid.count >= 1
    assert [group.texts for group in expected.groups] == [
        group.texts for group in fitted.groups if group.group.key != "say e"
    ]
    with pytest.raises(DataError):
        fit_groups(tokenizer, read_groups(kind, source), 64)


def test_a_training_counts_what_it_left_out(tmp_path: Path) -> None:
    """In the result and the card; the same training again says the same."""
    from trainer_adapter.reward_training import RewardModelConfig, train_reward_model

    rows = [*rows_of("bradley_terry", {"chosen": ""}), *rows_of("bradley_terry", {"rejected": "good"})]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows) + "{no json\n")
    config = RewardModelConfig(
        dataset=tmp_path / "rows.jsonl", output_dir=tmp_path / "out", base_model=str(tiny_encoder(tmp_path / "base")),
        invalid_rows="drop", train_steps=1, use_cpu=True, save_steps=None,
    )  # fmt: skip
    assert [3, 3] == [train_reward_model(config).rows_dropped for _ in range(2)]
    assert "| rows left out as invalid | 3 |" in (tmp_path / "out" / "README.md").read_text()


def test_an_evaluation_counts_what_it_left_out(tmp_path: Path) -> None:
    """Accuracy is that of the rows that are left."""
    number: dict[str, Any] = {"chosen": [{"role": "assistant", "content": 7}], "rejected": "1"}
    rows: list[dict[str, Any]] = [
        {"prompt": "q", "chosen": "2", "rejected": "1"},
        {"prompt": "q", "chosen": "", "rejected": "1"},
        {"prompt": "q", **number},
    ]
    path = tmp_path / "pairs.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows) + "{no json\n")
    (tmp_path / "rw.py").write_text(
        "from rewardkit import reward\n@reward\ndef number(completion: str) -> float:\n    return float(completion)\n"
    )
    command = ["rm", "eval", f"{tmp_path}/rw.py:number", str(path), "--inline", "--json"]
    refused = CliRunner().invoke(app, command)
    assert refused.exit_code == 2
    assert "pairs.jsonl:4" in refused.output
    done = CliRunner().invoke(app, [*command, "--invalid-rows", "drop"])
    assert done.exit_code == 0, done.output
    report = json.loads(done.stdout)
    assert (3, 1, 1.0) == (report["rows_dropped"], report["overall"]["rows"], report["overall"]["accuracy"]["rate"])


def test_a_file_without_a_right_row_is_refused(tmp_path: Path) -> None:
    """The error names the first of its rows."""
    path = tmp_path / "rows.jsonl"
    path.write_text('{"prompt": "a", "chosen": "", "rejected": "b"}\n' * 3)
    with pytest.raises(DataError, match=r"none of its 3 rows can be read; the first: .*rows.jsonl:1: column 'chosen'"):
        read_groups("bradley_terry", path, invalid=InvalidRows("drop"))


@pytest.mark.parametrize("handling", ["skip", "", None, True])
def test_another_handling_is_refused(handling: Any) -> None:
    """The error has the choices."""
    with pytest.raises(ConfigError, match="expected 'refuse' or 'drop'"):
        InvalidRows(handling)
