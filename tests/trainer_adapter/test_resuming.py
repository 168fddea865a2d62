"""Where a training run starts, decided from identities and checkpoints; nothing is trained here."""

from __future__ import annotations

import json
import logging
import os
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from rewardkit import ConfigError, Reward, RewardFunctionsConfig, RewardFunctionsRuntimeConfig, Runtime, reward
from trainer_adapter.config import GRPOConfig
from trainer_adapter.resuming import STATE, Start, choose_start
from trainer_adapter.run_identity import FILE, RunIdentity, differences, identity_of, read_identity, write_identity

pytest.importorskip("datasets", reason="the extra train is not installed")
from trainer_adapter.dataset import read_dataset
from trainer_adapter.run_identity import dataset_identity

ROWS = [{"prompt": f"{a} + 1 =", "answer": str(a + 1)} for a in range(1, 9)]


def scoring(bonus: float, name: str = "digits") -> Reward[..., Any]:
    """Return a reward whose version follows the number."""

    def digits(completion: str) -> float:
        return bonus

    return reward(name=name)(digits)


def identity(rows: list[dict[str, Any]] = ROWS, **fields: Any) -> RunIdentity:
    """Return the identity of a run."""
    given: dict[str, Any] = {"base_model": "some/model", "reward_fns": [scoring(1.0)], "train_steps": 10, **fields}
    config = GRPOConfig(**given)
    runtime = Runtime(config.reward_fns, weights=config.reward_weights, lane="inline")
    return identity_of(config, runtime, read_dataset(rows))


def checkpoint(output_dir: Path, step: int, made: RunIdentity | None) -> Path:
    """Writes what a checkpoint is known by."""
    place = output_dir / f"checkpoint-{step}"
    place.mkdir(parents=True)
    (place / STATE).write_text(json.dumps({"global_step": step, "log_history": [{"step": step}]}))
    if made is not None:
        write_identity(place, made)
    return place


def start(folder: Path, now: RunIdentity, resume: bool | str | Path = True) -> Start:
    """Return where a run in the folder starts."""
    return choose_start(folder, folder / "adapter", now, resume)


def trained(folder: Path, steps: int, old: RunIdentity) -> None:
    """Leaves a finished run without checkpoints in the folder."""
    (folder / "adapter").mkdir(parents=True)
    (folder / "adapter" / "adapter_model.safetensors").write_bytes(b"")
    write_identity(folder, old.model_copy(update={"finished_steps": steps}))


def contents(folder: Path) -> dict[str, tuple[int, bytes]]:
    """Return every file under a folder, with its time and bytes."""
    files = sorted(one for one in folder.rglob("*") if one.is_file())
    return {str(one): (one.stat().st_mtime_ns, one.read_bytes()) for one in files}


REFUSED = {
    "a reward": ({"reward_fns": [scoring(2.0)]}, r"reward 'digits': version \w{12} -> \w{12}"),
    "another reward": ({"reward_fns": [scoring(1.0), scoring(1.0, "two")]}, r"reward 'two': not there -> version \w+"),
    "a reward that is gone": ({"reward_fns": [scoring(1.0, "new")]}, r"reward 'digits': version \w{12} -> not there"),
    "a composition's weight": ({"reward_fns": [(2 * scoring(1.0)).named("digits")]}, "reward 'digits': version"),
    "a weight": ({"reward_weights": [0.5]}, r"reward_weights.digits: 1.0 -> 0.5"),
    "the learning rate": ({"learning_rate": 1e-3}, r"learning_rate: 2e-05 -> 0.001"),
    "the sampling": ({"sampling_params": {"temperature": 0.7}}, r"sampling_params.temperature: 1.0 -> 0.7"),
    "the adapter": ({"rank": 8}, r"rank: 16 -> 8"),
    "all weights": ({"adapter": None}, r"adapter: lora -> null"),
    "the model": ({"base_model": "other/model"}, r"base_model: some/model -> other/model"),
    "the seed": ({"seed": 7}, r"seed: 42 -> 7"),
    "what failures do": ({"partial": "sum"}, r"partial: leave_out -> sum"),
    "the rows": ({"rows": ROWS[1:]}, r"dataset: 8 rows, digest \w{12} -> 7 rows, digest \w{12}"),
    "a value in a row": ({"rows": [{**ROWS[0], "answer": "x"}, *ROWS[1:]]}, r"dataset: 8 rows, .* -> 8 rows, "),
}


@pytest.mark.parametrize("finished", [True, False], ids=["finished", "interrupted"])
@pytest.mark.parametrize(("fields", "words"), REFUSED.values(), ids=list(REFUSED))
def test_another_run_is_refused_by_name(tmp_path: Path, fields: dict[str, Any], words: str, finished: bool) -> None:
    """What decides how a model is trained is named, old and new, and nothing in the folder changes."""
    old = identity()
    if finished:
        trained(tmp_path, 10, old)
    else:
        write_identity(tmp_path, old)
        checkpoint(tmp_path, 5, old)
    before = contents(tmp_path)
    with pytest.raises(ConfigError, match=words) as refused:
        start(tmp_path, identity(**fields))
    said = str(refused.value)
    assert str(tmp_path) in said
    assert "another output folder" in said
    assert "other rewards, settings or rows" in said
    assert "put these back" in said
    assert before == contents(tmp_path)


def test_everything_that_differs_is_named_at_once(tmp_path: Path) -> None:
    """Each on a line of its own, in lines that fit 80 columns."""
    write_identity(tmp_path, identity())
    checkpoint(tmp_path, 5, identity().model_copy(update={"run": read_identity(tmp_path).run}))  # type: ignore[union-attr]
    with pytest.raises(ConfigError) as refused:
        start(tmp_path, identity(reward_fns=[scoring(2.0)], seed=7, beta=0.5, learning_rate=1.0))
    lines = str(refused.value).splitlines()
    assert ["seed", "learning_rate", "beta", "reward 'digits'"] == [line.split(":")[0].strip() for line in lines[1:5]]
    assert all(len(line) <= 80 for line in lines[1:])


ALLOWED = {
    "more steps": ({"train_steps": 20}, ["train_steps: 10 -> 20"]),
    "fewer steps": ({"train_steps": 7}, ["train_steps: 10 -> 7"]),
    "checkpoints": ({"save_steps": 5}, ["save_steps: 100 -> 5"]),
    "no checkpoints": ({"save_steps": None}, ["save_steps: 100 -> null"]),
    "logging": ({"logging_steps": 5, "eval_steps": 3}, ["logging_steps: 1 -> 5", "eval_steps: null -> 3"]),
    "workers": ({"workers": 2}, ["workers: null -> 2"]),
    "memory": ({"per_device_batch_size": 8}, ["per_device_batch_size: null -> 8"]),
    "a default written out": ({"lora_alpha": 32, "reward_weights": {"digits": 1}, "target_modules": "all-linear"}, []),
}


@pytest.mark.parametrize(("fields", "changed"), ALLOWED.values(), ids=list(ALLOWED))
def test_what_decides_nothing_may_change(tmp_path: Path, fields: dict[str, Any], changed: list[str]) -> None:
    """The run goes on from its last checkpoint, and what differs is told."""
    old = identity()
    write_identity(tmp_path, old)
    place = checkpoint(tmp_path, 5, old)
    found = start(tmp_path, identity(**fields))
    assert (place, 5, False, changed) == (found.checkpoint, found.steps_done, found.finished, list(found.changed))
    assert (old.run, identity(**fields).settings) == (found.identity.run, found.identity.settings)


def test_the_last_checkpoint_of_the_run_itself_is_chosen(tmp_path: Path) -> None:
    """One of an earlier run in the folder, one without an identity and one that is half written are passed over."""
    now = identity()
    write_identity(tmp_path, now)
    checkpoint(tmp_path, 2, now)
    place = checkpoint(tmp_path, 11, now)
    checkpoint(tmp_path, 12, identity())  # of a run with the same settings that was started anew
    checkpoint(tmp_path, 13, identity(reward_fns=[scoring(2.0)]))
    checkpoint(tmp_path, 14, None)
    (tmp_path / "checkpoint-15").mkdir()
    assert (place, False) == ((found := start(tmp_path, identity(train_steps=20))).checkpoint, found.finished)
    assert start(tmp_path, identity()).finished


def test_a_run_that_left_nothing_is_no_hindrance(tmp_path: Path) -> None:
    """Where no step was saved, as after a mistake in the configuration, another run may begin."""
    write_identity(tmp_path, identity())
    found = start(tmp_path, identity(seed=7))
    assert (None, False) == (found.checkpoint, found.finished)


def test_a_finished_run_is_finished_without_checkpoints(tmp_path: Path) -> None:
    """The identity says how far it came; it is not run again, and cannot go further from nothing."""
    trained(tmp_path, 10, identity(save_steps=None))
    assert (True, 10) == ((found := start(tmp_path, identity(save_steps=None))).finished, found.steps_done)
    with pytest.raises(ConfigError, match="ended after 10 steps and left no checkpoint"):
        start(tmp_path, identity(train_steps=20))
    assert start(tmp_path, identity(train_steps=20), resume=False).checkpoint is None


@pytest.mark.parametrize("left", ["checkpoint", "adapter"])
def test_a_run_without_an_identity_is_refused(tmp_path: Path, left: str) -> None:
    """If no checkpoint has a copy of the identity either: what cannot be compared is not mixed."""
    if left == "checkpoint":
        checkpoint(tmp_path, 5, None)
    else:
        trained(tmp_path, 5, identity())
        (tmp_path / FILE).unlink()
    with pytest.raises(ConfigError, match="No checkpoint has a copy of it"):
        start(tmp_path, identity())
    assert start(tmp_path, identity(), resume=False).checkpoint is None


@pytest.mark.parametrize("left", [None, "[]"], ids=["deleted", "damaged"])
def test_a_lost_identity_is_put_back_from_a_checkpoint(tmp_path: Path, left: str | None) -> None:
    """The error names the newest copy, which is this run's, and not one of a longer run before it."""
    now = identity()
    place = checkpoint(tmp_path, 3, now)
    checkpoint(tmp_path, 9, None)
    os.utime(checkpoint(tmp_path, 11, identity()) / FILE, (0, 0))
    if left is not None:
        (tmp_path / FILE).write_text(left)
    copy = " from a checkpoint, where there is a copy" if left else f": {place / FILE} is a copy"
    with pytest.raises(ConfigError, match=f"Put it back{re.escape(copy)}"):
        start(tmp_path, now)
    shutil.copy(place / FILE, tmp_path)
    assert place == start(tmp_path, now).checkpoint


def test_both_ways_to_name_rewards_are_one_run() -> None:
    """A list of rewards has no packages and no environment, as a mapping without them has."""
    found = differences(identity(reward_fns=RewardFunctionsConfig({"digits": scoring(1.0)})), identity())
    assert ([], []) == (found.refused, found.allowed)
    found = differences(identity(), identity(reward_fns=RewardFunctionsConfig({"digits": scoring(1.0)})))
    assert ([], []) == (found.refused, found.allowed)


def test_a_named_checkpoint_is_compared_too(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """In whichever folder it is; one without an identity is taken, with a warning."""
    old = identity()
    place = checkpoint(tmp_path / "one", 5, old)
    assert (place, old.run) == ((found := start(tmp_path / "two", identity(), place)).checkpoint, found.identity.run)
    with pytest.raises(ConfigError, match="seed: 42 -> 7"):
        start(tmp_path / "two", identity(seed=7), place)
    bare = checkpoint(tmp_path / "three", 5, None)
    with caplog.at_level(logging.WARNING, "trainer_adapter"):
        assert start(tmp_path / "three", identity(), bare).checkpoint == bare
    assert "they cannot be compared" in caplog.text
    trained(tmp_path / "four", 10, identity(seed=7))
    with pytest.raises(ConfigError, match="seed: 7 -> 42"):  # it would be written over
        start(tmp_path / "four", identity(), place)


DAMAGED = {
    "cut off": (lambda text: text[:100], "cannot be read"),
    "empty": (lambda text: "", "cannot be read"),
    "bytes that are no text": (lambda text: b"\xff" + text.encode(), "cannot be read"),
    "a list": (lambda text: "[]", r"expected a JSON object, got \[\]"),
    "nested without end": (lambda text: "[" * 100_000, "cannot be read"),
    "a field that is missing": (lambda text: text.replace('"rewards"', '"rewads"'), "rewa"),
    "a version that is none": (lambda text: re.sub(r'("digits": )"\w+"', r'\1"?"', text), "rewards.digits: "),
    "a number for the run": (lambda text: re.sub(r'("run": )"\w+"', r"\g<1>3", text), "run: "),
    "no steps": (lambda text: text.replace('"finished_steps": 10', '"finished_steps": 0'), "finished_steps: "),
    "a later format": (lambda text: text.replace('"format": 1', '"format": 2'), "is of format 2"),
}


@pytest.mark.parametrize("where", ["folder", "checkpoint"])
@pytest.mark.parametrize(("damage", "words"), DAMAGED.values(), ids=list(DAMAGED))
def test_a_damaged_identity_is_named(tmp_path: Path, damage: Any, words: str, where: str) -> None:
    """The error names the file; starting anew does without it."""
    trained(tmp_path, 10, identity())
    place = checkpoint(tmp_path, 10, read_identity(tmp_path))
    file = (tmp_path if where == "folder" else place) / FILE
    worse = damage(file.read_text())
    file.write_bytes(worse.encode() if isinstance(worse, str) else worse)
    with pytest.raises(ConfigError, match=words) as refused:
        start(tmp_path, identity())
    assert str(file) in str(refused.value)
    assert start(tmp_path, identity(), resume=False).checkpoint is None


def test_a_damaged_state_is_named(tmp_path: Path) -> None:
    """So is what transformers wrote."""
    now = identity()
    write_identity(tmp_path, now)
    place = checkpoint(tmp_path, 5, now)
    for text in ("{", "[]", '{"global_step": "5"}'):
        (place / STATE).write_text(text)
        with pytest.raises(ConfigError, match=r"checkpoint-5: its trainer_state\.json cannot be read"):
            start(tmp_path, now)


def test_an_identity_is_read_as_it_was_written(tmp_path: Path) -> None:
    """Also where a reward's version is not of twelve digits; nothing of the environment's values is in it."""

    class Odd(Reward[..., Any]):
        version = property(lambda self: "words")  # type: ignore[assignment]

    odd = Odd(lambda completion: 1.0, scoring(1.0).spec.kind, scoring(1.0).options)
    runtime = RewardFunctionsRuntimeConfig(env={"KEY": "secret"})
    written = identity(reward_fns=RewardFunctionsConfig({"digits": odd}, runtime))
    write_identity(tmp_path, written)
    assert written == read_identity(tmp_path)
    assert "secret" not in (tmp_path / FILE).read_text()
    assert ["rewardkit-run.json"] == [one.name for one in tmp_path.iterdir()]


def test_only_the_first_of_several_processes_writes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The others share its folder."""
    monkeypatch.setenv("RANK", "1")
    write_identity(tmp_path, identity())
    assert read_identity(tmp_path) is None


def test_a_setting_that_the_identity_does_not_know_counts_as_equal() -> None:
    """A later release has more settings, and goes on with the runs of this one."""
    old = identity()
    kept = {name: value for name, value in old.settings.items() if name != "loss_type"}
    found = differences(old.model_copy(update={"settings": kept}), identity())
    assert ([], []) == (found.refused, found.allowed)


def test_settings_of_trl_are_of_the_identity() -> None:
    """A run of a release without them had none, so one that has some now is another run."""
    old = identity()
    before = old.model_copy(update={"settings": {name: old.settings[name] for name in old.settings if name != "trl"}})
    later = identity(trl={"importance_sampling_level": "sequence"})
    assert ([], []) == differences(before, old)
    assert ['trl: {} -> {"importance_sampling_level": "sequence"}'] == differences(before, later).refused


def test_a_models_folder_may_move(tmp_path: Path) -> None:
    """It counts by its name and content, and another content is another model."""
    for place in ("a", "b"):
        (tmp_path / place / "tiny").mkdir(parents=True)
        (tmp_path / place / "tiny" / "config.json").write_text("{}")
    models = [identity(base_model=str(tmp_path / place / "tiny")).settings["base_model"] for place in ("a", "b")]
    (tmp_path / "b" / "tiny" / "config.json").write_text('{"a": 1}')
    assert models[0] == models[1] != identity(base_model=str(tmp_path / "b" / "tiny")).settings["base_model"]


def test_rows_are_known_by_their_values(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Wherever they come from, whatever the layout of their file; of very many rows some stand for all."""
    file = tmp_path / "rows.jsonl"
    file.write_text("\n\n".join(json.dumps(dict(reversed(row.items())), indent=None) for row in ROWS))
    expected = dataset_identity(read_dataset(ROWS))
    assert expected == dataset_identity(read_dataset(file))
    assert expected != dataset_identity(read_dataset(ROWS[::-1]))
    monkeypatch.setattr("trainer_adapter.run_identity.MOST_ROWS", 4)
    assert 8 == dataset_identity(read_dataset(ROWS)).rows
    other = [{**ROWS[0], "answer": "?"}, *ROWS[1:]]
    assert dataset_identity(read_dataset(ROWS)) != dataset_identity(read_dataset(other))
