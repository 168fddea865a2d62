"""What a user gives wrongly to ``rewardkit rm train`` is told in one line, before anything is trained."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tiny_grpo import third_party_warnings
from tiny_reward import tiny_decoder, tiny_encoder

pytest.importorskip("trl", reason="real training runs need the extra 'train'")

from rewardkit.cli.program import app

pytestmark = [third_party_warnings, pytest.mark.filterwarnings("ignore::DeprecationWarning")]
GOOD = [{"prompt": f"say {n}", "chosen": "good", "rejected": "bad"} for n in "abcd"]


def told_by_command(folder: Path, capfd: pytest.CaptureFixture[str], rows: Any, **fields: Any) -> str:
    """Run the command on a YAML file and return the one line that it tells; it ends with an error and no weights."""
    text = rows if isinstance(rows, str) else "".join(json.dumps(row) + "\n" for row in rows)
    (folder / "rows.jsonl").write_text(text, encoding="utf-8")
    settings = {"dataset": "rows.jsonl", "output_dir": "out", "use_cpu": True, **fields}
    (folder / "rm.yaml").write_text("".join(f"{name}: {json.dumps(value)}\n" for name, value in settings.items()))
    capfd.readouterr()
    with pytest.raises(SystemExit) as ended:
        app(["rm", "train", str(folder / "rm.yaml")], prog_name="rewardkit")
    told = capfd.readouterr()
    assert ended.value.code not in (0, None)
    assert not told.out
    assert "Traceback" not in told.err
    lines = told.err.splitlines()
    assert len(lines) == 1, told.err
    assert lines[0].startswith("error: ")
    assert len(lines[0]) < 400 + len(str(folder)) * 2, lines[0]
    assert not list((folder / "out").glob("*.safetensors"))
    return lines[0].replace(str(folder), "DIR")


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(tiny_encoder(tmp_path_factory.mktemp("encoder")))


ROWS: list[tuple[str, Any, str]] = [
    ("bradley_terry", {"chosen": ""}, r"DIR/rows.jsonl:5: column 'chosen' is empty; a preference takes .* both sides"),
    ("bradley_terry", {"rejected": None}, r"rows.jsonl:5: column 'rejected' is empty"),
    ("bradley_terry", {"rejected": "good"}, r"rows.jsonl:5: column 'chosen' equals 'rejected': 'good'; .* differ"),
    ("bradley_terry", {"rejected": ...}, r"rows.jsonl:5: lacks 'rejected', which line 1 has; all rows need the same"),
    ("bradley_terry", {"prompt": ...}, r"rows.jsonl:5: lacks 'prompt', which line 1 has"),
    ("bradley_terry", {"margin": "wide"}, r"rows.jsonl:5: column 'margin' expected a finite number, got 'wide'"),
    ("orm", {"completion": "c", "correct": 2}, r"rows.jsonl:5: column 'correct' expected true or false, .* got 2"),
    ("bradley_terry", {"prompt": None}, r"rows.jsonl:5: column 'prompt' is missing, and a side is text without"),
    ("orm", {"correct": None}, r"rows.jsonl:5: column 'correct' is missing \(or 'label'\); it has 'prompt', 'comp"),
    ("prm", {"steps": ["a"], "labels": [3]}, r"rows.jsonl:5: column 'labels' of step 0: expected \+1, 0, -1.* got 3"),
    ("prm", {"steps": ["a", "b"], "labels": [1]}, r"rows.jsonl:5: column 'labels' has 1 labels for 2 steps"),
    ("plackett_luce", {"completions": ["a", "b", "c"], "ranks": [0, 1, 2]}, r"group_size=2 does not divide"),
    ("plackett_luce", {"completions": ["a", "b"], "ranks": [1, 1]}, r"the same rank for all completions"),
]  # fmt: skip
RIGHT: dict[str, dict[str, Any]] = {
    "bradley_terry": {"chosen": "good", "rejected": "bad", "margin": 0},
    "orm": {"completion": "c", "correct": True},
    "prm": {"steps": ["a"], "labels": [1]},
    "plackett_luce": {"completions": ["a", "b"], "ranks": [0, 1]},
}


@pytest.mark.parametrize(("kind", "change", "words"), ROWS)
def test_a_wrong_row_is_named(
    kind: str, change: dict[str, Any], words: str, encoder: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """The fifth row is wrong: the line has the file, the row, the column, its value and what was expected."""
    rows = [{"prompt": f"say {n}", **RIGHT[kind]} for n in "abcd"]
    wrong = {"prompt": "say e", **RIGHT[kind], **change}
    rows.append({name: value for name, value in wrong.items() if value is not ...})
    more = {"group_size": 2} if kind == "plackett_luce" else {}
    told = told_by_command(tmp_path, capfd, rows, base_model=encoder, kind=kind, **more)
    assert re.search(words, told), told


@pytest.mark.parametrize(
    ("rows", "fields", "words"),
    [
        ("", {}, r"DIR/rows.jsonl.* no rows"),
        ('{"prompt": ', {}, r"DIR/rows.jsonl:1: "),
        (GOOD, {"dataset": "none.jsonl"}, r"DIR/none.jsonl"),
        (GOOD[:1], {}, r"1 prompt: nothing can be held out by prompt; .* holdout: 0"),
        (GOOD, {"base_model": "./nowhere"}, r"base_model='DIR/nowhere': there is no such folder"),
        (GOOD, {"max_length": 65}, r"max_length=65: base_model=.* has places for 64 tokens at most"),
        ([{"prompt": "p", "chosen": "a"}] * 2, {}, r"rows.jsonl\S*: .*'rejected'"),
        (GOOD, {"pad_token": "<none>"}, r"pad_token='<none>': the tokenizer does not know it; name a token"),
        (GOOD, {"group_size": 2}, r"group_size=2: only kind='plackett_luce' has groups"),
        (GOOD, {"batch_size": 6, "per_device_batch_size": 4}, r"per_device_batch_size=4: expected a divisor of batch"),
        (GOOD, {"kind": "dpo"}, r"kind='dpo'"),
        (GOOD, {"trl": {"weight_decy": 0.1}}, r"trl.weight_decy: RewardConfig of trl .* did you mean 'weight_decay'"),
        (GOOD, {"trl": {"num_train_epochs": 2}}, r"trl.num_train_epochs: rewardkit's own field 'epochs' sets it"),
        (GOOD, {"epoch": 2}, r"unknown field 'epoch'; did you mean 'epochs'"),
        ([{"prompt": f"p {n}", "chosen": "a " * 70, "rejected": "b " * 70} for n in range(4)], {},
         r"no row is left: of \d groups none .* max_length=64 tokens; raise max_length"),
        ([{"prompt": f"p {n}", "chosen": "a " * 70, "rejected": "b " * 70} for n in range(4)], {"over_long": "refuse"},
         r"rows.jsonl:\d: completion 0 has \d+ tokens too many for max_length=64 .* raise max_length"),
    ],
)  # fmt: skip
def test_a_wrong_setting_is_named(
    rows: Any, fields: dict[str, Any], words: str, encoder: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """The line has the setting, its value and what to do."""
    told = told_by_command(tmp_path, capfd, rows, **{"base_model": encoder, **fields})
    assert re.search(words, told), told


def without_pad(folder: Path) -> None:
    tiny_decoder(folder, pad_token=None)


def of_two_labels(folder: Path) -> None:
    from transformers import AutoModelForSequenceClassification

    tiny_encoder(folder)
    AutoModelForSequenceClassification.from_pretrained(folder, num_labels=2).save_pretrained(folder)


def of_tokens(folder: Path) -> None:
    from transformers import AutoModelForTokenClassification

    tiny_encoder(folder)
    AutoModelForTokenClassification.from_pretrained(folder, num_labels=1).save_pretrained(folder)


def with_nan(folder: Path) -> None:
    import torch
    from transformers import BertModel

    model = BertModel.from_pretrained(tiny_encoder(folder))
    with torch.no_grad():
        model.embeddings.word_embeddings.weight[3] = float("nan")
    model.save_pretrained(folder)


def without_tokenizer(folder: Path) -> None:
    for path in tiny_encoder(folder).glob("token*"):
        path.unlink()


def broken(folder: Path) -> None:
    (tiny_encoder(folder) / "model.safetensors").write_bytes(b"nothing")


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (without_pad, r"the tokenizer has no padding token; name one in pad_token \(its special tokens are "),
        (of_two_labels, r"base_model='DIR/base': .*its head has another number of outputs; give a base model without"),
        (of_tokens, r"base_model='DIR/base': its head is BertForTokenClassification's, and kind='bradley_terry' "),
        (with_nan, r"base_model='DIR/base': the weight embeddings?\S+ has values that are not finite|word_embeddings"),
        (without_tokenizer, r"base_model='DIR/base': there is no tokenizer in it, .*; save it beside the weights"),
        (broken, r"base_model='DIR/base': cannot be loaded: "),
    ],
)
def test_a_wrong_base_model_is_named(
    make: Callable[[Path], None], words: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """No padding token, another head, two labels, weights that are nan or no weights: told at the load."""
    make(tmp_path / "base")
    told = told_by_command(tmp_path, capfd, GOOD, base_model="./base")
    assert re.search(words, told), told
