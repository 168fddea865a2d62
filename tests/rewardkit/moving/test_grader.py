"""``from_grader``: the graders of OpenAI's guide give the scores that their fields say, and wrong ones are named."""

from __future__ import annotations

import json
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rewardkit import Cause, ConfigError, Outcome, RewardDefinitionError, Rollout, Runtime, Status
from rewardkit.moving import from_grader
from rewardkit.testing import FakeJudge

SAID = "{{ sample.output_text }}"


def check(operation: str, text: str = SAID, reference: str = "{{ item.answer }}") -> dict[str, Any]:
    """Return a string_check grader."""
    return {"type": "string_check", "name": "s", "input": text, "reference": reference, "operation": operation}


def alike(metric: str) -> dict[str, Any]:
    """Return a text_similarity grader, with the threshold that only says what passes."""
    form = {"type": "text_similarity", "name": "t", "input": SAID, "reference": "{{ item.answer }}"}
    return {**form, "evaluation_metric": metric, "pass_threshold": 0.8}


def python(source: str) -> dict[str, Any]:
    """Return a python grader."""
    return {"type": "python", "name": "p", "source": source, "image_tag": "2025-05-08"}


def nested(times: int) -> dict[str, Any]:
    """A multi-grader of multi-graders."""
    made: dict[str, Any] = check("eq")
    for _ in range(times):
        made = multi("a", a=made)
    return made


def multi(formula: str, **graders: Any) -> dict[str, Any]:
    """Return a multi-grader."""
    return {"type": "multi", "name": "m", "graders": graders, "calculate_output": formula}


def outcomes(config: Any, *completions: Any, asking: Any = None, **row: Any) -> list[Outcome]:
    """Return the outcomes of completions of one row."""
    made = from_grader(config, asking=asking)
    with Runtime([made], lane="inline") as runtime:
        return list(runtime.score([Rollout("q", one, row) for one in completions])[made.name])


WORDED = "one two three four five"
CITY = '{"city": "Paris", "zip": [75001]}'
WORDS = "def grade(sample, item):\n    return len(set(sample['output_text'].split()) & set(item['words'])) / 2"
GUIDE: dict[str, tuple[dict[str, Any], list[Any], dict[str, Any], list[float]]] = {
    "a string that is equal": (check("eq"), ["4", " 4"], {"answer": "4"}, [1.0, 0.0]),
    "one that differs": (check("ne"), ["4", "5"], {"answer": "4"}, [0.0, 1.0]),
    "one that contains": (check("like"), ["It is Paris.", "it is paris"], {"answer": "Paris"}, [1.0, 0.0]),
    "one that contains, whatever the case": (check("ilike"), ["in PARIS", "Rome"], {"answer": "paris"}, [1.0, 0.0]),
    "a field of structured output": (
        check("eq", "{{ sample.output_json.city }}"), [CITY], {"answer": "Paris"}, [1.0],
    ),
    "a place in a list, beside words": (
        check("eq", "zip {{sample.output_json.zip[0]}}", "zip {{item.place.zip}}"), [CITY], {"place": {"zip": 75001}},
        [1.0],
    ),
    "a tool that was called": (
        check("eq", "{{ sample.output_tools[0].function.name }}"),
        [[{"role": "assistant", "content": None, "tool_calls": [{"function": {"name": "find", "arguments": "{}"}}]}]],
        {"answer": "find"}, [1.0],
    ),
    "words in order": (alike("rouge_l"), ["the cat sat on a mat"], {"answer": "the cat sat on the mat"}, [5 / 6]),
    "words that are alike": (alike("fuzzy_match"), ["Paris!", ""], {"answer": "paris"}, [1.0, 0.0]),
    "a function of one's own": (python(WORDS), ["a b c", "x"], {"words": ["a", "b"]}, [1.0, 0.0]),
    "several together": (
        multi("0.7 * city + 0.3 * max(0, zip)", city=check("like"), zip=check("like", SAID, "75001")),
        [CITY, "Paris"], {"answer": "Paris"}, [1.0, 0.7],
    ),
    "powers and roots": (
        multi("sqrt(a)^3 - floor(b / 2) + abs(-1)", a=check("eq"), b=alike("bleu")), ["4"], {"answer": "4"}, [2.0],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", GUIDE)
def test_a_grader_gives_the_score_that_it_says(name: str) -> None:
    """Twelve configurations, of each type that needs no model, as the guide writes them."""
    config, completions, row, expected = GUIDE[name]
    found = outcomes(config, *completions, **row)
    assert [one.error for one in found] == [None] * len(expected)
    assert [one.score for one in found] == pytest.approx(expected)


@pytest.mark.parametrize("metric", ["bleu", "gleu", "rouge_1", "rouge_2", "rouge_3", "rouge_4", "rouge_5"])
def test_each_measure_is_within_0_and_1(metric: str) -> None:
    """The same text is 1, another one less, and none 0."""
    same, other, empty = outcomes(alike(metric), WORDED, "five one", "", answer=WORDED)
    assert (same.score, empty.score) == (pytest.approx(1.0), 0.0)
    assert other.score is not None
    assert 0 <= other.score < 1


@pytest.mark.parametrize("metric", ["rouge_1", "rouge_l"])
def test_a_reference_that_rouge_cannot_read_is_no_score(metric: str) -> None:
    """It reads a-z and digits alone; equal texts of other letters would score 0."""
    for reference in ("你好世界", "你好 2023", "Версия 5"):
        (outcome,) = outcomes(alike(metric), "2023 5", answer=reference)
        assert Status.FAILED is outcome.status
        assert "rouge reads the letters a-z and digits alone" in (outcome.error or "")
    assert [0.0, 0.0] == [one.score for one in outcomes(alike(metric), "你好", "", answer="hello")]


def test_a_measure_without_its_data_says_what_to_fetch(monkeypatch: pytest.MonkeyPatch) -> None:
    """METEOR reads WordNet, which no package brings along; the first batch says so, and nothing is scored."""
    monkeypatch.setattr("nltk.data.path", [])
    with pytest.raises(ConfigError, match=r"nltk\.download\('wordnet'\)"):
        outcomes(alike("meteor"), "one", answer="one")


REPLY = json.dumps({"reasoning": "It is well said.", "result": 7})
RATED = {
    "type": "score_model",
    "name": "rated",
    "model": "a-model",
    "range": [0, 10],
    "input": [
        {"role": "system", "content": "You rate."},
        {"role": "user", "content": [{"type": "input_text", "text": f"Rate {SAID}"}]},
    ],
    "sampling_params": {"temperature": 1, "max_completions_tokens": 50, "seed": 3, "reasoning_effort": "low"},
}
LABELLED = {
    "type": "label_model",
    "name": "labelled",
    "model": "a-model",
    "labels": ["good", "bad"],
    "passing_labels": ["good"],
    "input": [{"role": "user", "content": f"Label {SAID}"}],
}
NO_GRADES = ['{"reasoning": "", "result": 11}', "seven", '{"result": 7}', '{"reasoning": "", "result": NaN}']


def test_a_model_is_asked_the_graders_own_messages() -> None:
    """Messages, sampling and range are the grader's; the reply's reason is kept."""
    fake = FakeJudge(REPLY)
    (found,) = outcomes(RATED, "well", asking={"client": fake})
    assert (found.score, found.reason) == (7.0, "It is well said.")
    (asked,) = fake.asked
    assert [message["content"] for message in asked.messages] == ["You rate.", "Rate well"]
    options = asked.options
    assert (options["temperature"], options["max_tokens"], options["seed"]) == (1, 50, 3)
    assert options["reasoning_effort"] == "low"


@pytest.mark.parametrize("reply", NO_GRADES)
def test_a_reply_that_is_no_grade_is_a_failure(reply: str) -> None:
    """A number outside the range, words, and a reply without its reason are no score."""
    (found,) = outcomes(RATED, "well", asking={"client": FakeJudge(reply)})
    assert found.status is Status.FAILED


def test_a_label_passes_or_not() -> None:
    """The reason names the label."""
    replies = [json.dumps({"reasoning": "So it is.", "result": label}) for label in ("good", "bad")]
    fake = FakeJudge({"Label a": replies[0], "Label b": replies[1]})
    found = outcomes(LABELLED, "a", "b", asking={"client": fake})
    assert [(one.score, one.reason) for one in found] == [(1.0, "good: So it is."), (0.0, "bad: So it is.")]


def test_models_are_parts_of_several_graders() -> None:
    """A formula combines what models and strings say; each part's score and the costs are metrics."""
    config = multi("right * rated / 10", right=check("eq"), rated=RATED)
    right, wrong = outcomes(config, "4", "5", asking={"client": FakeJudge(REPLY)}, answer="4")
    assert (right.score, wrong.score) == (pytest.approx(0.7), 0.0)
    assert {"grade/right": 1.0, "grade/rated": 7.0, "requests": 1.0}.items() <= right.metrics.items()


@pytest.mark.parametrize(
    ("config", "completion", "words"),
    [
        (
            check("eq", "{{ sample.output_json.city }}"),
            "no JSON",
            "there is no sample.output_json; the completion is not JSON",
        ),
        (check("eq", SAID, "{{ item.answer.deep }}"), "4", "there is no item.answer.deep"),
        (python("def grade(sample, item):\n    return 1 / 0"), "4", "ZeroDivisionError"),
        (python("def grade(sample, item):\n    return 'high'"), "4", "expected a finite number"),
        (multi("1 / (a - 1)", a=check("eq")), "4", "ZeroDivisionError"),
        (multi("exp(1000 * a)", a=check("eq")), "4", "OverflowError"),
        (multi("sqrt(a - 2)", a=check("eq")), "4", "ValueError"),
        (multi("a", a=python("def grade(sample, item):\n    return None")), "4", None),
    ],
)
def test_what_the_service_gives_0_is_told(config: dict[str, Any], completion: str, words: str | None) -> None:
    """A missing variable, an error of a part and a formula without a value fail, with the reason."""
    (found,) = outcomes(config, completion, answer="4")
    assert found.status is (Status.SKIPPED if words is None else Status.FAILED)
    assert (words or "") in (found.error or "")


@pytest.mark.parametrize("column", ["class", "step", "completion_ids", "completions", "example"])
def test_a_column_of_any_name_is_a_variable(column: str) -> None:
    """A word of Python's and one that means something else to a reward are read from the row too."""
    (found,) = outcomes(check("eq", SAID, f"{{{{ item.{column} }}}}"), "4", **{column: "4"})
    assert (found.status, found.score) == (Status.SCORED, 1.0), found.error


def test_the_prompt_is_a_variable() -> None:
    """A dataset's column ``prompt`` is the rollout's prompt."""
    (found,) = outcomes(check("eq", SAID, "{{ item.prompt }}"), "q")
    assert (found.status, found.score) == (Status.SCORED, 1.0), found.error


@pytest.mark.parametrize(
    ("said", "value"),
    [
        ("4", np.int64(4)), ("2020-01-31", date(2020, 1, 31)), ("4.50", Decimal("4.50")), ("[1, 2]", np.array([1, 2])),
        ('{"a": "4.50"}', {"a": Decimal("4.50")}),
    ],
)  # fmt: skip
def test_a_value_that_json_lacks_is_read_as_its_text(said: str, value: object) -> None:
    """A date has no quotes around it, a number of numpy's is one, and neither ends a python grader."""
    (found,) = outcomes(check("eq"), said, answer=value)
    assert (found.status, found.score) == (Status.SCORED, 1.0), found.error
    (found,) = outcomes(python("def grade(sample, item):\n    return 1.0"), said, answer=value)
    assert (found.status, found.score) == (Status.SCORED, 1.0), found.error


def test_what_clients_of_the_service_write_is_read() -> None:
    """A range that is not set, other names of the most tokens, and a formula over two lines."""
    for name in ("max_completions_tokens", "max_completion_tokens", "max_tokens"):
        fake = FakeJudge(json.dumps({"reasoning": "", "result": 1}))
        asked = {**RATED, "range": None, "sampling_params": {name: 50}}
        (found,) = outcomes(multi("a\n + rated", a=check("eq"), rated=asked), "4", asking={"client": fake}, answer="4")
        assert found.score == 2.0, found.error
        options = fake.asked[0].options
        assert (options["max_tokens"], "max_completion_tokens" in options) == (50, False)


def test_a_package_that_the_jail_lacks_is_named() -> None:
    """The jail has none of the packages that are installed, and the failure says so."""
    (found,) = outcomes(python("import pydantic\ndef grade(sample, item):\n    return 1.0"), "4")
    assert "No module named 'pydantic'; the jail has Python's standard library alone" in (found.error or "")


def test_a_python_grader_runs_in_a_jail() -> None:
    """Its source reaches no file of the machine, and a loop without end is ended."""
    source = "def grade(sample, item):\n    return float(len(open('/etc/passwd').read()))"
    (found,) = outcomes(python(source), "4")
    assert found.status is Status.FAILED
    assert found.cause is Cause.EXCEPTION


@pytest.mark.parametrize("said", ["[" * 100_000 + "4", "[" * 900 + "4" + "]" * 900], ids=["open", "closed"])
@pytest.mark.parametrize(
    "grader",
    [check("like"), python("def grade(sample, item):\n    return float(item['answer'] in sample['output_text'])")],
    ids=["text", "jail"],
)
def test_json_nested_without_end_is_text_alone(grader: dict[str, Any], said: str) -> None:
    """A completion cannot end a grader that reads its text; ``sample.output_json`` is not there."""
    (found,) = outcomes(grader, said, answer="4")
    assert (found.status, found.score) == (Status.SCORED, 1.0), found.error
    (found,) = outcomes(check("eq", "{{ sample.output_json }}"), said, answer="4")
    assert "the completion is not JSON" in (found.error or "")


def test_columns_that_it_reads_are_missed_before_anything_runs() -> None:
    """The variables of ``item`` are columns of the dataset; ``messages`` are the prompt's."""
    made = from_grader(multi("a + b", a=check("eq"), b=check("eq", "{{ item.messages[0].content }}", "{{ item.b.c }}")))
    assert made.spec.required_columns == ("answer", "b")
    assert made(prompt="4", completion="4", answer="4", b={"c": "4"}).value == 2.0


def test_it_is_read_from_json_and_from_a_file(tmp_path: Path) -> None:
    """The same grader as an object, as text and in a file is the same reward."""
    path = tmp_path / "grader.json"
    path.write_text(json.dumps(check("eq")))
    versions = {from_grader(one).version for one in (check("eq"), json.dumps(check("eq")), path, str(path))}
    assert len(versions) == 1
    assert from_grader({**check("eq"), "id": "s-2eaf48d7"}).version in versions
    assert from_grader(check("ne")).version not in versions
    assert from_grader(check("eq")).options.score_range == (0.0, 1.0)
    path.write_bytes(b'{"name": "\xe9"}')
    with pytest.raises(RewardDefinitionError, match="not UTF-8"):
        from_grader(path)


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ({"type": "regex_check"}, "type 'regex_check': expected string_check, text_similarity, python"),
        ({"name": "x"}, "expected an object with 'type'"),
        ("{", "not JSON"),
        ("no/such.json", "No such file"),
        ([], "expected an object"),
        ({**check("eq"), "operation": "neq"}, "operation 'neq': expected eq, ne, like or ilike"),
        ({**check("eq"), "referense": "x"}, "referense: Extra inputs"),
        ({"type": "string_check", "input": "x", "operation": "eq"}, "reference: Field required"),
        (check("eq", "{{ answer }}"), "{{ answer }} is not a variable"),
        (check("eq", "{{ sample.text }}"), "not sample.text"),
        (alike("cosine"), "compares embeddings"),
        (alike("levenshtein"), "expected fuzzy_match, bleu"),
        (python("def grade(sample, item) return 1"), "does not compile"),
        (python("def score(sample, item):\n    return 1"), "defines no function grade"),
        (multi("a + c", a=check("eq")), "no grader is named 'c'"),
        (multi("a.real", a=check("eq")), "Attribute is not arithmetic"),
        (multi("__import__('os')", a=check("eq")), "can be called"),
        (multi("a +", a=check("eq")), "is not a formula"),
        (multi("abs(a, a)", a=check("eq")), "abs takes one number, and is given 2"),
        (multi("a + min", a=check("eq")), "no grader is named 'min'"),
        (multi("-" * 1500 + "a", a=check("eq")), "more than 300 deep"),
        (multi("9" * 1900 + " * a", a=check("eq")), "beyond 1.8e308"),
        (multi("1e999 * a", a=check("eq")), "beyond 1.8e308"),
        (check("eq", "{{ item.answer"), "'{{ item.answer' has no end"),
        (nested(2_000), "objects are nested without end"),
        ("[" * 100_000, "objects are nested without end"),
        (multi("a", a=multi("b", b=check("eq"))), "is a multi-grader itself"),
        ({**RATED, "range": [1, 0]}, "the lower number first"),
        ({**RATED, "input": [{"role": "user", "content": {"type": "input_image", "image_url": "x"}}]}, "no images"),
        ({**LABELLED, "passing_labels": ["fine"]}, "'fine' is not one of"),
    ],
)  # fmt: skip
def test_a_grader_that_makes_no_sense_is_refused_at_once(config: Any, words: str) -> None:
    """The message names the field, its value and what was expected."""
    with pytest.raises(RewardDefinitionError) as refused:
        from_grader(config)
    assert words in str(refused.value)
