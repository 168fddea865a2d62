"""``from_trl``, ``from_verl`` and ``from_verifiers``: what is passed, what a fault costs, and what is refused."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from rewardkit import Cause, Outcome, Reward, RewardDefinitionError, Rollout, Runtime, Status, reward
from rewardkit.cli.check import check_columns
from rewardkit.moving import from_areal, from_grader, from_trl, from_verifiers, from_verl
from rewardkit.rows.reader import Row


def outcomes(made: Reward[..., Any], completions: list[Any], **row: Any) -> list[Outcome]:
    """Return the outcomes of completions of one row."""
    with Runtime([made], lane="inline") as runtime:
        return list(runtime.score([Rollout("q", one, row) for one in completions], step=3, epoch=0.5)[made.name])


def test_a_fault_costs_the_completion_that_caused_it() -> None:
    """A function of TRL's raises for the whole batch; moved in, the other completions keep their scores."""

    def halves(completions: list[str], **kwargs: Any) -> list[float]:
        return [1 / int(one) for one in completions]

    found = outcomes(from_trl(halves), ["2", "zero", "4"])
    assert [one.score for one in found] == [0.5, 0.0, 0.25]
    assert [one.status for one in found] == [Status.SCORED, Status.FAILED, Status.SCORED]
    assert "'zero'" in (found[1].error or "")


def test_it_gets_what_trl_passes() -> None:
    """Lists of one, the trainer's state, and nothing that it does not take."""
    got: dict[str, Any] = {}

    def looks(prompts: Any, completions: Any, completion_ids: Any, level: Any, trainer_state: Any) -> list[float]:
        got.update(locals())
        return [0.0]

    outcomes(from_trl(looks), ["c"], level="3", other=1)
    state = got.pop("trainer_state")
    assert (state.global_step, state.epoch) == (3, 0.5)
    assert {name: got[name] for name in ("prompts", "completions", "completion_ids", "level")} == {
        "prompts": ["q"], "completions": ["c"], "completion_ids": [None], "level": ["3"],
    }  # fmt: skip


def test_a_columns_default_is_the_functions_own() -> None:
    """A column with a default need not be in the row; one without is missed before anything runs."""

    def either(completions: list[str], bonus: Any = (2.0,), **kwargs: Any) -> list[float]:
        return [float(bonus[0])]

    made = from_trl(either)
    assert [one.score for one in outcomes(made, ["c"])] == [2.0]
    assert [one.score for one in outcomes(made, ["c"], bonus=5)] == [5.0]
    assert made.spec.required_columns == ()

    def needs(completions: list[str], answer: list[str]) -> list[float]:
        return [0.0]

    assert from_trl(needs).spec.required_columns == ("answer",)


@pytest.mark.parametrize(
    ("returned", "words"),
    [
        (1.0, "returned 1.0; TRL expects a list with a score for each completion, 1 here"),
        (itertools.count(), "returned a list of 2 for 1 completion"),
        ([1.0, 2.0], "returned a list of 2 for 1 completion; TRL expects one score each"),
        ([float("nan")], "returned nan"),
        (["high"], "returned str 'high'"),
    ],
)
def test_what_is_no_score_is_a_failure(returned: object, words: str) -> None:
    """A wrong list, a nan and a text are told, and no score is made of them."""
    (found,) = outcomes(from_trl(lambda completions: returned, name="odd"), ["c"])
    assert (found.status, found.cause) == (Status.FAILED, Cause.BAD_RETURN)
    assert words in (found.error or "")


@pytest.mark.parametrize(
    "returned", [np.array([1.0]), (True,), [np.float32(1)], [SimpleNamespace(item=lambda: 1.0)], iter([1])]
)
def test_arrays_and_truth_are_scores(returned: object) -> None:
    """What torch, numpy and comparisons return is taken as the number that it is."""
    (found,) = outcomes(from_trl(lambda completions: returned, name="array"), ["c"])
    assert (found.status, found.score) == (Status.SCORED, 1.0)


def test_one_bad_score_of_a_group_costs_one_completion() -> None:
    """Where a function has the whole group, a None in its list skips one, and a nan fails one."""

    def group(completions: list[str], **kwargs: Any) -> list[float | None]:
        return [None, float("nan"), 1.0]

    found = outcomes(from_trl(group, in_groups=True), ["a", "b", "c"])
    assert [one.status for one in found] == [Status.SKIPPED, Status.FAILED, Status.SCORED]


def test_a_metric_that_is_no_number_costs_no_score() -> None:
    """A ``nan`` in ``log_metric`` is in the logs, and the other metrics and the score stay."""

    def tells(completions: list[str], log_metric: Any, **kwargs: Any) -> list[float]:
        log_metric("ratio", float("nan"))
        log_metric("length", 2)
        return [0.5]

    (found,) = outcomes(from_trl(tells), ["c"])
    assert (found.status, found.score, dict(found.metrics)) == (Status.SCORED, 0.5, {"length": 2.0})
    assert "ratio: nan" in (found.logs or "")


@pytest.mark.parametrize("info", ["{bad", "[" * 100_000], ids=["bad", "deep"])
def test_an_info_that_is_no_json_is_named(info: str) -> None:
    """The failure names the column, not a place in a text that nobody sees."""

    def level(completion: Any, info: Any) -> float:
        return float(info.get("level", 0))

    (found,) = outcomes(from_verifiers(level), ["c"], info=info)
    assert found.status is Status.FAILED
    assert "'info' is a text that is not JSON" in (found.error or "")
    assert [one.score for one in outcomes(from_verifiers(level), ["c"], info="null")] == [0.0]


def test_a_function_of_task_and_trace_reads_row_and_messages() -> None:
    """Plain, async or a method; keyed scores are summed, and what it notes is a metric."""

    def right(task: Any, trace: Any) -> dict[str, float]:
        trace.record_metric("turns", trace.num_turns)
        return {"right": float(trace.last_reply == task.answer), "asked": float(task.prompt_text == "q")}

    async def later(trace: Any) -> float:
        return float([turn.role for turn in trace.messages] == ["user", "assistant"])

    def of_class(self: Any, trace: Any) -> float:
        return float(self.data.answer == trace.task.data.answer == "4")

    batch = outcomes(from_verifiers(right), ["4", [{"role": "assistant", "content": "5"}]], answer="4")
    assert [(2.0, {"right": 1.0, "asked": 1.0, "turns": 1.0}), (1.0, {"right": 0.0, "asked": 1.0, "turns": 1.0})] == [
        (outcome.score, dict(outcome.metrics)) for outcome in batch
    ]
    for function in (later, of_class):
        assert [1.0] == [outcome.score for outcome in outcomes(from_verifiers(function), ["4"], answer="4")]


@pytest.mark.parametrize(
    ("read", "words"),
    [
        (lambda task, trace: task.gold, "task.gold: the row has no column 'gold'"),
        (lambda task, trace: trace.usage, "trace.usage is of an agent's run"),
    ],
    ids=["column", "run"],
)
def test_what_a_stand_in_lacks_is_a_failure_that_names_it(read: Callable[..., Any], words: str) -> None:
    """No score is made of what is not there."""

    def score(task: Any, trace: Any) -> float:
        return float(read(task, trace))

    (outcome,) = outcomes(from_verifiers(score), ["4"], answer="4")
    assert (Status.FAILED, True) == (outcome.status, words in (outcome.error or ""))


def test_keyed_scores_without_keys_are_skipped() -> None:
    """A trace without rewards has none."""

    def nothing(trace: Any) -> dict[str, float]:
        return {}

    assert [Status.SKIPPED] == [outcome.status for outcome in outcomes(from_verifiers(nothing), ["4"], answer="4")]


def test_columns_of_a_direct_call_reach_a_rubrics_function() -> None:
    """As in a run: ``info``, ``task`` and others may be given by name, for one completion and for a group."""

    def level(completion: Any, info: Any, task: str, state: Any) -> float:
        return float((info["level"], task, state["kind"]) == (2, "sums", "hard"))

    def levels(completions: Any, infos: Any) -> list[float]:
        return [float(info["level"]) for info in infos]

    assert 1.0 == from_verifiers(level)(completion="c", info='{"level": 2}', task="sums", kind="hard")
    assert [2.0, 2.0] == from_verifiers(levels)(completions=["c", "d"], info={"level": 2})


def test_an_extra_info_nested_without_end_is_no_object() -> None:
    """verl's function gets the whole row then, as where there is no such column."""

    def compute_score(data_source: str, solution_str: str, ground_truth: Any, extra_info: Any = None) -> float:
        return float(extra_info["ground_truth"] == solution_str)

    (found,) = outcomes(from_verl(compute_score), ["4"], ground_truth="4", extra_info="[" * 100_000)
    assert (found.status, found.score) == (Status.SCORED, 1.0), found.error


def test_each_is_a_decorator_with_options_too() -> None:
    """A file can mark the function where it stands, and a reward is called by keyword as any other."""

    @from_trl(timeout_s=3, name="short one")
    def short(completions: list[str], **kwargs: Any) -> list[float]:
        return [float(len(one) < 5) for one in completions]

    assert (short.name, short.options.timeout_s, short(completion="four")) == ("short one", 3.0, 1.0)


def test_a_change_of_the_function_or_of_how_it_is_called_is_another_version() -> None:
    """The version is of the author's code and of the way in which it is called."""

    def one(completions: list[str], **kwargs: Any) -> list[float]:
        return [1.0 for _ in completions]

    def two(completions: list[str], **kwargs: Any) -> list[float]:
        return [2.0 for _ in completions]

    versions = [from_trl(one), from_trl(two), from_trl(one, in_groups=True), from_trl(functools.partial(one, x=1))]
    assert len({made.version for made in versions}) == len(versions)
    assert from_trl(one).version == from_trl(one).version


def test_verls_settings_are_set_by_a_partial() -> None:
    """What verl takes from reward_kwargs is set before, and a row's columns do not fill it."""

    def compute_score(solution_str: str, ground_truth: str, *, bonus: float) -> float:
        return bonus * (solution_str == ground_truth)

    made = from_verl(functools.partial(compute_score, bonus=3.0))
    assert [one.score for one in outcomes(made, ["4"], answer="4", bonus=9)] == [3.0]


def test_a_row_without_a_ground_truth_says_where_it_was_looked_for() -> None:
    """The error names the columns, and the setting that names another."""

    def compute_score(solution_str: str, ground_truth: str) -> float:
        return 1.0

    (found,) = outcomes(from_verl(compute_score), ["4"], truth="4")
    assert found.status is Status.FAILED
    assert "'reward_model.ground_truth' and no 'ground_truth' and no 'answer'" in (found.error or "")
    assert "from_verl(ground_truth='...')" in (found.error or "")
    assert from_verl(compute_score, ground_truth="truth.value").spec.required_columns == ("truth",)


def test_a_function_for_batches_gets_what_verl_passes_it() -> None:
    """Lists alone, also where it takes any keyword, and a row without a ground truth is told."""

    def one(data_source: str, solution_str: str, ground_truth: str, extra_info: Any, **kwargs: Any) -> float:
        return float(solution_str == ground_truth)

    def many(data_sources: Any, solution_strs: Any, ground_truths: Any, extra_infos: Any, **kwargs: Any) -> list[float]:
        rows = zip(data_sources, solution_strs, ground_truths, extra_infos, strict=True)
        return [one(*row, **kwargs) for row in rows]

    assert [found.score for found in outcomes(from_verl(many), ["4", "5"], answer="4")] == [1.0, 0.0]
    (found,) = outcomes(from_verl(many), ["4"], truth="4")
    assert "the row has no 'reward_model.ground_truth'" in (found.error or "")


def test_the_prompt_is_asked_for_where_it_is_read() -> None:
    """A trainer that has none can use the others."""

    def trls(completions: list[str]) -> list[float]:
        return [1.0]

    def trls_prompts(prompts: Any, completions: list[str]) -> list[float]:
        return [1.0]

    def verifiers(completion: Any) -> float:
        return 1.0

    def verifiers_state(completion: Any, state: Any) -> float:
        return 1.0

    text = {"type": "string_check", "input": "{{ item.answer }}", "reference": "4", "operation": "eq"}
    said = {**text, "reference": "{{ item.messages[0].content }}"}
    many = {"type": "multi", "graders": {"a": text, "b": said}, "calculate_output": "a + b"}
    source = {"type": "python", "source": "def grade(sample, item):\n    return 1.0"}
    made = [from_trl(trls), from_verifiers(verifiers), from_grader(text)]
    made += [from_trl(trls_prompts), from_verifiers(verifiers_state), *map(from_grader, (said, many, source))]
    read = ["prompt" in {parameter.name for parameter in one.spec.parameters} for one in made]
    assert read == [False] * 3 + [True] * 5


def test_no_check_asks_for_annotations_that_nothing_reads() -> None:
    """The columns of a function that moves in, and of a grader, are passed on as they are."""

    def trls(completions: list[str], answer: list[str]) -> list[float]:
        return [1.0]

    def verifiers(completion: Any, answer: str) -> float:
        return 1.0

    text = {"type": "string_check", "input": "{{ item.answer }}", "reference": "4", "operation": "eq"}
    made = [from_trl(trls), from_trl(trls, in_groups=True), from_verifiers(verifiers), from_grader(text)]
    made += [from_verl(lambda solution_str: 1.0, ground_truth="answer")]
    for one in made:
        check = check_columns(one, [Row(1, {"answer": "4"})])
        assert (one.spec.required_columns, check.warnings) == (("answer",), [])


def _trl(completions, answer, **kwargs):  # type: ignore[no-untyped-def]
    return [1.0]


def _single(completion, answer):  # type: ignore[no-untyped-def]
    return 1.0


def _areal(prompt, completions, prompt_ids, completion_ids, answer):  # type: ignore[no-untyped-def]
    return 1.0


MOVED_BARE = {
    "trl": lambda: from_trl(_trl),
    "trl in groups": lambda: from_trl(_trl, in_groups=True),
    "verifiers": lambda: from_verifiers(_single),
    "areal": lambda: from_areal(_areal),
}


@pytest.mark.parametrize("moved", MOVED_BARE)
def test_a_column_without_annotation_is_warned_of_as_in_a_native_reward(moved: str) -> None:
    """However the function came: the data's type reaches it as it is, and check says which."""
    native = check_columns(reward(_single), [Row(1, {"answer": 4})])
    check = check_columns(MOVED_BARE[moved](), [Row(1, {"answer": 4})])
    assert native.warnings == check.warnings
    assert "column 'answer' has no annotation, so it is passed on as it is in the data (int)" in check.warnings[0]


def test_a_ground_truth_that_the_row_lacks_is_not_passed() -> None:
    """A function of any keywords that reads it fails, and does not compare with None."""

    def any_keyword(solution_str: str, **kwargs: Any) -> float:
        return float(solution_str == kwargs["ground_truth"])

    (found,) = outcomes(from_verl(any_keyword), ["4"], truth="4")
    assert "KeyError" in (found.error or "")


@pytest.mark.parametrize("column", ["final-answer", "step", "class"])
def test_a_ground_truth_may_have_any_name(column: str) -> None:
    """A column that no parameter can have the name of is read from the row."""

    def compute_score(solution_str: str, ground_truth: str) -> float:
        return float(solution_str == ground_truth)

    (found,) = outcomes(from_verl(compute_score, ground_truth=column), ["4"], **{column: "4"})
    assert (found.status, found.score) == (Status.SCORED, 1.0), found.error


@pytest.mark.parametrize("in_groups", [False, True])
@pytest.mark.parametrize("column", ["messages", "example", "step", "epoch"])
def test_a_column_of_trls_with_a_name_of_ours_is_the_column(column: str, in_groups: bool) -> None:
    """To a reward of ours these names mean something else, and TRL passes the column."""

    def any_keyword(completions: list[str], **kwargs: Any) -> list[float]:
        return [float(one == "4") for one in kwargs[column]]

    names: dict[str, Any] = {}
    exec(f"def named(completions, {column}): return [float(one == '4') for one in {column}]", names)
    for function in (any_keyword, names["named"]):
        (found,) = outcomes(from_trl(function, in_groups=in_groups), ["c"], **{column: "4"})
        assert (found.status, found.score) == (Status.SCORED, 1.0), found.error


def test_a_dictionary_without_a_score_is_a_failure() -> None:
    """verl would raise a KeyError in its own process."""
    made = from_verl(lambda solution_str: {"acc": 1.0}, name="odd")
    (found,) = outcomes(made, ["4"])
    assert found.cause is Cause.BAD_RETURN
    assert "under 'score'" in (found.error or "")


def _no_completions(texts: list[str]) -> list[float]:
    return []


def _one_completion(completion: str) -> float:
    return 0.0


def _environments(completions: list[str], environments: Any) -> list[float]:
    return []


def _by_place(completions: list[str], /) -> list[float]:
    return []


def _no_solution(text: str) -> float:
    return 0.0


def _router(solution_str: str, reward_router_address: str) -> float:
    return 0.0


def _on_machine(trace: Any, runtime: Any) -> float:
    return 0.0


def _client(completion: Any, judge: Any) -> float:
    return 0.0


@pytest.mark.parametrize(
    ("move", "function", "words"),
    [
        (from_trl, _no_completions, "takes no 'completions'"),
        (from_trl, _one_completion, "mark it with @reward"),
        (from_trl, _by_place, "by position alone"),
        (from_trl, "file.py:f", "marks functions, not 'file.py:f'"),
        (from_trl, reward(_one_completion), "is a reward already"),
        (from_verl, _no_solution, "takes no 'solution_str'"),
        (from_verl, _router, "functools.partial(_router, reward_router_address=...)"),
        (from_verifiers, _on_machine, "the machine of an agent's run"),
        (from_verifiers, _client, "objects={'judge': ...}"),
        (from_verifiers, lambda: 0.0, "it must take 'completion'"),
    ],
)
def test_what_cannot_move_in_is_refused_at_once(move: Callable[..., Any], function: Any, words: str) -> None:
    """The message names the function, the parameter and the fix, before anything is scored."""
    with pytest.raises(RewardDefinitionError) as refused:
        move(function)
    assert words in str(refused.value)
