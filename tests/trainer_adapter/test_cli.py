"""``rewardkit train``: what it reads, what it asks of the trainer, what it shows."""

from __future__ import annotations

import json
import logging
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from rewardkit import ConfigError
from rewardkit.changing import place_of_record
from trainer_adapter.cli import read_plan, train_command

CONFIG = """\
base_model: some/model
reward_fns: [rewards.py]
dataset: train.jsonl
output_dir: runs/first
"""


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """A configuration file."""
    path = tmp_path / "grpo.yaml"
    path.write_text(CONFIG)
    return path


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """What a trainer that trains nothing was asked to do."""
    seen: list[dict[str, Any]] = []

    def train(config: Any, dataset: Path, output_dir: Path, **options: Any) -> Any:
        seen.append({"config": config, "dataset": dataset, "output_dir": output_dir, **options})
        log = [{"reward": 0.25, "loss": 0.5}, {"reward": 0.75, "entropy": 1.0}, {"train_runtime": 3.0}]
        return SimpleNamespace(
            output_dir=output_dir,
            trained=output_dir / "adapter",
            steps=60,
            seconds=12.3,
            log_history=log,
            already_finished=output_dir.name == "finished",
            record=None if output_dir.name == "finished" else place_of_record(output_dir),
        )

    module = ModuleType("trainer_adapter.train")
    module.train = train  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "trainer_adapter.train", module)
    return seen


def _run(*arguments: str) -> Any:
    app = typer.Typer()
    app.command()(train_command)
    return CliRunner().invoke(app, list(arguments), catch_exceptions=False)


def test_paths_start_from_the_files_folder(config: Path, calls: list[dict[str, Any]]) -> None:
    """Dataset, output folder and reward files are found from where the configuration lies; a run is resumed."""
    assert _run(str(config)).exit_code == 0
    (call,) = calls
    folder = config.parent
    assert (call["dataset"], call["output_dir"]) == (folder / "train.jsonl", folder / "runs/first")
    assert call["config"].reward_fns == (f"{folder}/rewards.py",)
    assert (call["resume"], call["eval_dataset"], call["callbacks"]) == (True, None, [])


def test_options_come_before_the_file(config: Path, calls: list[dict[str, Any]]) -> None:
    """--output and --no-resume are what the trainer gets."""
    assert _run(str(config), "--output", "elsewhere", "--no-resume").exit_code == 0
    assert (calls[0]["output_dir"], calls[0]["resume"]) == (Path("elsewhere"), False)


def test_the_result_is_shown_with_the_last_metrics(config: Path, calls: list[dict[str, Any]]) -> None:
    """People get steps, time and the last of each metric; machines the same as JSON."""
    shown = _run(str(config), "--output", "out").stdout
    told = "what each reward said of each completion: rewardkit show ./out"
    assert shown == f"60 steps in 12 s; at the end reward 0.75, loss 0.5\nwrote out/adapter\n{told}\n"
    assert json.loads(_run(str(config), "--output", "out", "--json").stdout) == {
        "ok": True,
        "output_dir": "out",
        "trained": "out/adapter",
        "steps": 60,
        "seconds": 12.3,
        "already_finished": False,
        "record": "./out",
        "metrics": {"reward": 0.75, "loss": 0.5},
    }


def test_a_training_that_ends_without_scores_is_told_as_others(
    config: Path, calls: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """TRL logs None for the reward of a step in which no completion has a score."""
    train = sys.modules["trainer_adapter.train"].train
    log = [{"reward": 0.75, "loss": 0.5}, {"reward": None}]
    last = lambda *given, **options: SimpleNamespace(**{**vars(train(*given, **options)), "log_history": log})  # noqa: E731
    monkeypatch.setattr(sys.modules["trainer_adapter.train"], "train", last)
    assert "at the end reward none, loss 0.5" in _run(str(config), "--output", "out").stdout
    assert json.loads(_run(str(config), "--json").stdout)["metrics"] == {"reward": None, "loss": 0.5}


def test_a_finished_run_is_told_as_such(config: Path, calls: list[dict[str, Any]]) -> None:
    """Where nothing was run, the command says so, and that is no failure."""
    done = _run(str(config), "--output", "finished")
    expected = "already finished, nothing run: 60 steps done, in finished\ntrained: finished/adapter\n"
    assert (0, expected) == (done.exit_code, done.stdout)
    assert json.loads(_run(str(config), "--output", "finished", "--json").stdout)["already_finished"]


def test_an_interrupted_run_says_where_it_goes_on(config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the trainer notes and logs is shown; the interrupt goes on to whoever ends the program."""

    def train(*_: Any, **__: Any) -> None:
        logging.getLogger("trainer_adapter").info("goes on from step 2")
        stop = KeyboardInterrupt()
        stop.add_note("stopped after step 3")
        raise stop

    module = ModuleType("trainer_adapter.train")
    module.train = train  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "trainer_adapter.train", module)
    done = _run(str(config))
    assert ["goes on from step 2", "stopped after step 3"] == done.stderr.splitlines()[:2]
    assert done.exit_code != 0


def test_one_step_is_one_step(config: Path, calls: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch) -> None:
    """The noun follows the number."""
    train = sys.modules["trainer_adapter.train"].train
    one = lambda *given, **options: SimpleNamespace(**{**vars(train(*given, **options)), "steps": 1})  # noqa: E731
    monkeypatch.setattr(sys.modules["trainer_adapter.train"], "train", one)
    assert _run(str(config), "--output", "out").stdout.startswith("1 step in 12 s")
    assert ": 1 step done, in finished" in _run(str(config), "--output", "finished").stdout


@pytest.mark.parametrize("name", ["rows.jsonl", "rows.jsonl.gz", "rows.parquet"])
def test_rows_in_place_of_a_configuration_are_told_as_such(tmp_path: Path, name: str) -> None:
    """Not as faulty YAML; the field that takes them is named."""
    path = tmp_path / name
    path.write_bytes(b'{"prompt": "?"}\n{"prompt": "!"}\n')
    with pytest.raises(ConfigError, match=f"expected a YAML file of settings, got rows; .* dataset: {name}"):
        read_plan(path)


def test_faulty_yaml_is_told_with_its_place_alone(config: Path) -> None:
    """Where the reader got the text from is nobody's concern."""
    config.write_text("a: 1\nb: [\n")
    with pytest.raises(ConfigError, match=r"not YAML: .* line 3") as wrong:
        read_plan(config)
    assert "unicode string" not in str(wrong.value)


def test_a_missing_extra_is_named(config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without torch or trl the message says what to install, as the user's mistake."""

    def train(*_: Any, **__: Any) -> None:
        raise ModuleNotFoundError("training needs trl: pip install '.[train]'", name="trl")

    module = ModuleType("trainer_adapter.train")
    module.train = train  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "trainer_adapter.train", module)
    with pytest.raises(ConfigError, match=r"training needs trl: pip install '\.\[train\]'"):
        _run(str(config))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("- a\n", "expected a mapping of fields"),
        (CONFIG.replace("dataset: train.jsonl\n", ""), "field 'dataset' is missing"),
        (CONFIG.replace("train.jsonl", "[1]"), r"dataset=\[1\]: expected a path"),
        (CONFIG + "eval_dataset: 3\n", "eval_dataset=3: expected a path"),
        (CONFIG + "train_step: 3\n", "unknown field 'train_step'; did you mean 'train_steps'"),
        ("base_model: [", "not YAML"),
    ],
    ids=["no-mapping", "no-dataset", "dataset", "eval-dataset", "unknown", "no-yaml"],
)
def test_a_wrong_file_is_refused_by_name(config: Path, text: str, said: str) -> None:
    """Each mistake is a ConfigError that names the file and the field."""
    config.write_text(text)
    with pytest.raises(ConfigError, match=said) as wrong:
        read_plan(config)
    assert str(config) in str(wrong.value)


def test_an_output_folder_must_be_named(config: Path) -> None:
    """Without output_dir in the file and --output there is nowhere to write, and nothing starts."""
    config.write_text(CONFIG.replace("output_dir: runs/first\n", ""))
    with pytest.raises(ConfigError, match="no output_dir"):
        _run(str(config))
