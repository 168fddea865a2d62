"""The views on completions: the table of prompts, one prompt through the epochs, a step, one completion."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rewardkit.dashboard import as_json, prompt_index
from rewardkit.dashboard.prompt_index import ORDERS, PromptIndex
from rewardkit.dashboard.query import Query
from rewardkit.dashboard.readers import NotThere, OpenRun, RunCache
from rewardkit.dashboard.views import completions as views
from rewardkit.errors import RecordError
from rewardkit.record.recorder import Recorder
from rewardkit.replay.recorded_run import Run
from rewardkit.score_batch import ScoreBatch
from rewardkit.types import Cause, Outcome, Rollout, Status, Text

GROUP = 4


def scored(score: float, **more: Any) -> Outcome:
    return Outcome(Status.SCORED, score, version="0" * 12, **more)


def batch(prompts: Sequence[int], score: float, completion: Text = "four") -> ScoreBatch:
    """Return a batch of four completions a prompt; the totals of a prompt go up by 0.1, the last one's call fails."""
    rollouts, right = [], []
    for prompt in prompts:
        for place in range(GROUP):
            row = {"answer": str(prompt), "level": "easy" if prompt % 2 else "hard"}
            rollouts.append(Rollout(f"what is {prompt}?" + "!" * prompt, completion, row, [1] * (place + 1)))
            right.append(scored(score + place / 10, reason=f"place {place}"))
        right[-1] = Outcome(Status.FAILED, None, cause=Cause.TIMEOUT, error="too slow", version="0" * 12)
    polite = [Outcome(Status.SKIPPED, None, version="1" * 12) for _ in rollouts]
    return ScoreBatch(rollouts, {"right": right, "polite": polite}, {"right": 1.0, "polite": 0.5})


def recorded(folder: Path) -> Path:
    """Record two epochs of three prompts, and a third of the first prompt alone."""
    run = folder / "one"
    with Recorder(run) as one:
        for step, epoch, prompts in ((0, 0.0, [0, 1]), (1, 0.5, [2]), (2, 1.0, [0, 1]), (3, 1.5, [2]), (4, 2.0, [0])):
            one.record(batch(prompts, float(5 if step == 4 else step)), step=step, epoch=epoch)
    return run


@pytest.fixture
def opened(tmp_path: Path) -> Any:
    with Run.open(recorded(tmp_path)) as run:
        yield OpenRun(run, RunCache())


def asked(**given: object) -> Query:
    return Query({name: str(value) for name, value in given.items()})


def indices(found: dict[str, Any]) -> list[int]:
    return [row["index"] for row in found["rows"]]


def test_a_prompt_has_its_numbers_over_all_epochs(opened: OpenRun) -> None:
    """Completions, epochs, best and mean total; a failed call adds nothing to a total."""
    found = views.prompts(opened, asked())
    assert found["total"] == found["matched"] == 3
    assert found["reading"] is None
    first = found["rows"][0]
    assert first == {
        "index": 0, "text": "what is 0?", "length": 10, "columns": {"answer": "0", "level": "hard"}, "completions": 12,
        "epochs": 3, "first_epoch": 0, "last_epoch": 2, "best": pytest.approx(5.2),
        "mean": pytest.approx(np.mean([0, 0.1, 0.2, 2, 2.1, 2.2, 5, 5.1, 5.2])),
        "first_mean": pytest.approx(0.1), "last_mean": pytest.approx(5.1), "change": pytest.approx(5.0),
    }  # fmt: skip
    assert found["several_epochs"]


@pytest.mark.parametrize(
    ("sort", "order", "expected"),
    [
        ("index", "down", [2, 1, 0]),
        ("length", "down", [2, 1, 0]),
        ("text", "down", [2, 1, 0]),
        ("best", "down", [0, 2, 1]),
        ("mean", "up", [1, 2, 0]),
        ("completions", "up", [1, 2, 0]),
        ("epochs", "down", [0, 1, 2]),
        ("first_mean", "down", [2, 0, 1]),
        ("last_mean", "down", [0, 2, 1]),
        ("change", "up", [1, 2, 0]),
        ("column:answer", "down", [2, 1, 0]),
        ("column:level", "up", [1, 0, 2]),
    ],
)
def test_prompts_are_sorted_by_each_column(opened: OpenRun, sort: str, order: str, expected: list[int]) -> None:
    """Numbers by size, texts by their words, in both directions."""
    assert expected == indices(views.prompts(opened, asked(sort=sort, order=order)))


def test_prompts_are_searched_filtered_and_paged(opened: OpenRun) -> None:
    """Words in the text, words in a column, both, and a page of what is found."""
    assert [1] == indices(views.prompts(opened, asked(search="IS 1")))
    assert [0, 2] == indices(views.prompts(opened, asked(column="level", value="har")))
    assert [2] == indices(views.prompts(opened, asked(column="level", value="hard", search="2")))
    assert [] == indices(views.prompts(opened, asked(column="no such column", value="x")))
    page = views.prompts(opened, asked(offset=1, limit=1))
    assert ([1], 3) == (indices(page), page["matched"])
    with pytest.raises(RecordError, match="sort=colour: expected index"):
        views.prompts(opened, asked(sort="colour"))


def test_a_search_goes_on_where_the_last_answer_ended(opened: OpenRun, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the time is over, the answer says how far it came, and the next one finds the rest."""
    monkeypatch.setattr(prompt_index, "SLICE_S", 0.0)
    told = []
    while not told or told[-1] is not None:
        found = views.prompts(opened, asked(search="what"))
        told.append(found["reading"] and found["reading"]["done"])
    assert [1, 2, None] == told
    assert found["matched"] == 3


def test_the_sums_of_prompts_are_the_same_however_they_grow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Step by step, a few completions at a time, or at once."""
    monkeypatch.setattr(prompt_index, "STRETCH", 3)
    run, grown, slow = tmp_path / "one", PromptIndex(), PromptIndex()
    with Recorder(run) as one:
        for step in range(6):
            one.record(batch([step % 3, 3 + step], float(step)), step=step, epoch=step / 2)
            one.flush()
            with Run.open(run) as reader:
                assert not grown.update(reader).unfinished
    with Run.open(run) as reader:
        while slow.update(reader, 0.0).unfinished:
            pass
        whole = PromptIndex()
        whole.update(reader)
    for one_index in (grown, slow):
        assert len(whole) == len(one_index) == 9
        for name in (
            "completions",
            "epochs",
            "first_epoch",
            "last_epoch",
            "best",
            "mean",
            "first_mean",
            "last_mean",
            "change",
        ):
            np.testing.assert_allclose(getattr(whole, name), getattr(one_index, name), err_msg=name)


def test_the_prompt_that_got_worst_comes_first_and_one_epoch_is_no_change(tmp_path: Path) -> None:
    """Prompts of one epoch stand last: no change is known of them."""
    with Recorder(tmp_path / "one") as one:
        for epoch, prompts, score in ((0, [0, 1], 1.0), (0, [2], 1.0), (1, [0], 3.0), (1, [1], -2.0)):
            one.record(batch(prompts, score), step=epoch, epoch=float(epoch))
    with Run.open(tmp_path / "one") as run:
        found = views.prompts(OpenRun(run, RunCache()), asked(sort="change"))
    assert [1, 0, 2] == indices(found)
    assert [pytest.approx(-3.0), pytest.approx(2.0), None] == [row["change"] for row in found["rows"]]
    assert found["several_epochs"]


def test_a_prompt_that_got_worse_is_found_for_each_reward(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A reward's scores alone, over its versions and however they are read; what it failed at or skipped is none."""
    monkeypatch.setattr(prompt_index, "STRETCH", 3)
    with Recorder(tmp_path / "one") as one:
        for epoch, prompt, right, brief in ((0, 0, 1.0, 5.0), (0, 1, 1.0, 1.0), (1, 0, 3.0, 1.0), (1, 1, 0.5, 9.0)):
            given = batch([prompt], right)
            version = str(epoch) * 12
            given.outcomes["brief"] = [Outcome(Status.SCORED, brief, version=version) for _ in given.rollouts]
            given.outcomes["brief"][0] = Outcome(Status.FAILED, 0.0, cause=Cause.TIMEOUT, error="-", version=version)
            weights = {**given.weights, "brief": 1.0}
            one.record(ScoreBatch(given.rollouts, given.outcomes, weights), step=epoch, epoch=float(epoch))
    with Run.open(tmp_path / "one") as run:
        kept = RunCache()

        def rows(**more: object) -> list[tuple[Any, ...]]:
            found = views.prompts(OpenRun(run, kept), asked(sort="change", **more))
            return [(row["index"], row["change"], row["best"]) for row in found["rows"]]

        assert [(0, -4.0, 5.0), (1, 8.0, 9.0)] == rows(reward="brief")
        assert [(1, -0.5, 1.2), (0, 2.0, 3.2)] == [pytest.approx(row) for row in rows(reward="right")]
        assert [(0, None, None), (1, None, None)] == rows(reward="polite")
        assert [0, 1] == [row[0] for row in rows()]
        with pytest.raises(RecordError, match="reward=kind: expected right"):
            rows(reward="kind")


def test_only_a_few_orders_are_kept(opened: OpenRun) -> None:
    """Whoever sorts by a thousand columns that there are not holds no memory with it; the latest are still there."""
    for number in range(100):
        views.prompts(opened, Query({"sort": f"column:no-{number}"}))
    index = opened.cache.get("prompts", 0, PromptIndex)
    assert [(f"column:no-{number}", False) for number in range(100 - ORDERS, 100)] == [
        (by, down) for by, down, _ in index._orders
    ]


def test_a_run_that_goes_on_from_a_checkpoint_is_counted_anew(tmp_path: Path) -> None:
    """The completions of steps that are done again do not count twice."""
    run, index = recorded(tmp_path), PromptIndex()
    with Run.open(run) as reader:
        index.update(reader)
        assert [12, 8, 8] == index.completions.tolist()
        with Recorder(run, append=True) as again:
            again.rewind(2)
            again.record(batch([0], 9.0), step=2, epoch=1.0)
        index.update(reader)
        assert [8, 4, 4] == index.completions.tolist()
        assert [2, 1, 1] == index.epochs.tolist()


def test_the_best_of_the_latest_epoch_stands_on_the_right(opened: OpenRun) -> None:
    """The best of the first epoch stands on the left; in a run of one epoch the worst."""
    found = views.prompt(opened, asked(prompt=0))
    best = {one["epoch"]: one["best"] for one in found["epochs"]}
    assert (best[2], best[0]) == (found["right"], found["left"])
    assert [0, 1, 2] == [one["epoch"] for one in found["epochs"]]
    assert [GROUP] * 3 == [len(one["ids"]) for one in found["epochs"]]
    totals = {row["id"]: row["total"] for row in found["rows"]}
    assert totals[found["right"]] == max(total for total in totals.values() if total is not None)


def test_without_epochs_the_worst_stands_on_the_left(tmp_path: Path) -> None:
    """Within one epoch the best is compared with the worst."""
    with Recorder(tmp_path / "one") as one:
        one.record(batch([0], 1.0))
    with Run.open(tmp_path / "one") as run:
        found = views.prompt(OpenRun(run, RunCache()), asked(prompt=0))
    assert [None] == [one["epoch"] for one in found["epochs"]]
    assert (3, 4) == (found["right"], found["left"])


def test_a_score_says_what_it_weighs(opened: OpenRun) -> None:
    """What a shadow or a part of weight 0 scored is in no total."""
    found = views.completion(opened, asked(id=1))
    assert {"right": 1.0, "polite": 0.5} == {one["reward"]: one["weight"] for one in found["scores"]}


def test_a_prompt_shows_each_reward_and_version_in_a_column(opened: OpenRun) -> None:
    """Scored 0, skipped and failed are told apart, and no number is invented."""
    found = views.prompt(opened, asked(prompt=0, sort="total", order="up"))
    assert ["right_v1", "polite_v1"] == [one["key"] for one in found["rewards"]]
    first, last = found["rows"][0]["scores"], found["rows"][-1]["scores"]
    assert {"score": 0.0, "status": "scored", "cause": None} == first["right_v1"]
    assert {"score": None, "status": "skipped", "cause": None} == first["polite_v1"]
    assert {"score": None, "status": "failed", "cause": "timeout"} == last["right_v1"]
    assert found["rows"][-1]["total"] is None
    json.dumps(found, allow_nan=False)


def test_completions_of_a_prompt_are_sorted_filtered_and_paged(opened: OpenRun) -> None:
    """By any column and key, by a reward's status and score; the two to compare do not depend on it."""
    found = views.prompt(opened, asked(prompt=0, sort="right_v1", order="down", limit=2))
    assert [5.2, 5.1] == [round(row["scores"]["right_v1"]["score"], 3) for row in found["rows"]]
    failed = views.prompt(opened, asked(prompt=0, reward="right", status="failed"))
    assert (3, found["right"]) == (failed["matched"], failed["right"])
    high = views.prompt(opened, asked(prompt=0, reward="right", min=5, max=5.15))
    assert 2 == high["matched"]
    assert 3 == views.prompt(opened, asked(prompt=0, min=4))["matched"]
    with pytest.raises(RecordError, match="sort=colour"):
        views.prompt(opened, asked(prompt=0, sort="colour"))
    with pytest.raises(RecordError, match="no prompt 77"):
        views.prompt(opened, asked(prompt=77))


def test_a_step_is_shown_by_prompt_the_best_first(opened: OpenRun) -> None:
    """Its prompts, their completions from the best to the worst, and the steps before and after."""
    found = views.completions(opened, asked(step=2))
    assert [0, 1] == [group["prompt"] for group in found["groups"]]
    totals = [row["total"] for row in found["groups"][0]["rows"]]
    assert [2.2, 2.1, 2.0, None] == [total if total is None else round(total, 3) for total in totals]
    assert (1, 3) == (found["before"], found["next"])
    assert (None, 1) == tuple(views.completions(opened, asked(step=0))[name] for name in ("before", "next"))
    assert (4, None) == tuple(views.completions(opened, asked(step=99))[name] for name in ("before", "next"))
    some = views.completions(opened, asked(step=2, reward="right", status="failed"))
    assert [1, 1] == [group["completions"] for group in some["groups"]]


def test_a_large_group_shows_its_best_and_worst(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those between are counted, not shown."""
    monkeypatch.setattr(views, "ENDS", 1)
    with Run.open(recorded(tmp_path)) as run:
        found = views.completions(OpenRun(run, RunCache()), asked(step=0))
    assert [0.2, None] == [row["total"] for row in found["groups"][0]["rows"]]
    assert GROUP == found["groups"][0]["completions"]


def test_a_completion_has_all_that_was_said_of_it(opened: OpenRun) -> None:
    """Score with reason, failure with cause and error, version, totals, length."""
    one = views.completion(opened, asked(id=1))
    right, polite = one["scores"]
    assert ("scored", 0.0, "place 0", 1) == tuple(right[name] for name in ("status", "score", "reason", "version"))
    assert ("skipped", None) == (polite["status"], polite["score"])
    failed = views.completion(opened, asked(id=GROUP))["scores"][0]
    assert ("failed", "timeout", "too slow") == tuple(failed[name] for name in ("status", "cause", "error"))
    assert (0, 0, 1) == (one["prompt"], one["step"], one["tokens"])
    with pytest.raises(NotThere, match="no completion 999"):
        views.completion(opened, asked(id=999))


def test_a_long_text_is_sent_in_two_parts(tmp_path: Path) -> None:
    """The first 200,000 characters, and all of it on request; conversations too."""
    long = "a" * 1_000_000
    with Recorder(tmp_path / "one") as one:
        one.record(batch([0], 1.0, long), step=0)
        one.record(batch([0], 1.0, [{"role": "assistant", "content": long}]), step=1)
    with Run.open(tmp_path / "one") as run:
        opened = OpenRun(run, RunCache())
        text, talk = (views.completion(opened, asked(id=number))["completion"] for number in (1, 1 + GROUP))
        whole = views.completion(opened, asked(id=1, rest=1))["completion"]
    assert (as_json.FIRST_CHARS, 1_000_000, False) == (len(text["text"]), text["chars"], text["whole"])
    assert (as_json.FIRST_CHARS, 1_000_000, False) == (
        len(talk["messages"][0]["parts"][0]["text"]), talk["chars"], talk["whole"],
    )  # fmt: skip
    assert (long, True) == (whole["text"], whole["whole"])


def test_a_text_that_was_left_out_is_nothing(tmp_path: Path) -> None:
    """It is not shown as an empty one."""
    assert as_json.text_json(None) is None
    assert as_json.text_json("") == {"text": "", "chars": 0, "whole": True}


def test_a_conversation_becomes_parts(tmp_path: Path) -> None:
    """Text, thinking, calls of tools in three notations, results, and what is none of these."""
    found = as_json.text_json([
        {"role": "assistant", "reasoning_content": "hm", "content": None,
         "tool_calls": [{"id": "1", "function": {"name": "add", "arguments": '{"a": 1}'}}]},
        {"role": "tool", "name": "add", "content": "2"},
        {"role": "assistant", "content": [
            {"type": "thinking", "thinking": "so"}, {"type": "tool_use", "name": "mul", "input": {"b": 2}},
            {"type": "tool_result", "content": "4"}, {"type": "text", "text": "four"}, {"type": "image", "url": "x"},
        ]},
        {"role": "assistant", "function_call": {"name": "old", "arguments": "{}"}},
        "no message",
    ])  # type: ignore[list-item]  # fmt: skip
    assert found is not None
    parts = [[(part["kind"], part["name"], part["text"]) for part in one["parts"]] for one in found["messages"]]
    assert parts[0] == [("thinking", None, "hm"), ("call", "add", '{"a": 1}')]
    assert parts[1] == [("result", None, "2")]
    assert [kind for kind, _, _ in parts[2]] == ["thinking", "call", "result", "text", "picture"]
    assert parts[3] == [("call", "old", "{}")]
    assert parts[4] == [("other", None, "no message")]
    assert ["assistant", "tool"] == [one["role"] for one in found["messages"][:2]]


def test_a_thousand_columns_are_shown_in_part(tmp_path: Path) -> None:
    """A table of all would stop the browser; what is left out is counted, and memory is held for some alone."""
    with Recorder(tmp_path / "one") as one:
        example = {f"col{number}": str(number) for number in range(1000)}
        rollouts = [Rollout("p", "c", example)]
        one.record(ScoreBatch(rollouts, {"r": [Outcome(Status.SCORED, 1.0, version="v")]}, {"r": 1.0}), step=0)
    with Run.open(tmp_path / "one") as run:
        opened = OpenRun(run, RunCache())
        table = views.prompts(opened, asked(sort="column:col3"))
        assert list(example)[: views.MOST_COLUMNS] == table["columns"] == list(table["rows"][0]["columns"])
        assert 1000 == len(table["columns"]) + table["columns_left"]
        alone = views.prompt(opened, asked(prompt=0))
        assert (views.MOST_OF_PROMPT, 1000 - views.MOST_OF_PROMPT) == (len(alone["columns"]), alone["columns_left"])
        assert prompt_index.COLUMNS == len(opened.cache.get("prompts", 0, PromptIndex).column_names)


def test_an_empty_run_has_an_empty_table(tmp_path: Path) -> None:
    """It has begun and recorded nothing, which is no fault."""
    with Recorder(tmp_path / "one"):
        pass
    with Run.open(tmp_path / "one") as run:
        opened = OpenRun(run, RunCache())
        assert [] == views.prompts(opened, asked())["rows"]
        assert [] == views.completions(opened, asked())["rows"]
        assert [] == views.completions(opened, asked(step=3))["groups"]
