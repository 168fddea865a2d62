"""A reply that cannot be read is asked for once more, within deadline and budget, and what it took is counted."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from virtual_time import virtual

from builtin_rewards.endpoint.errors import Fault, JudgeError, JudgeSetupError
from builtin_rewards.judge import Budget, JudgeCache, ListwiseJudge, LLMJudge, PairwiseJudge
from rewardkit import Score
from rewardkit.testing import Asked, FakeJudge

GOOD = '{"correct": {"reason": "so", "score": 4}}'
UNREAD = {"no verdict": Fault.UNREADABLE, "{}": Fault.WRONG_SCHEMA, GOOD.replace("4", "9"): Fault.OUT_OF_RANGE}


def judge(*replies: Any, **settings: Any) -> LLMJudge:
    return LLMJudge("m", ["correct"], client=FakeJudge(list(replies)), **settings)


def questions(made: Any) -> list[Asked]:
    assert isinstance(made.model.client, FakeJudge)
    return made.model.client.asked


def fault_of(made: LLMJudge) -> tuple[Fault | None, int]:
    """Return the fault of a judgement, and how many requests its error tells of."""
    with pytest.raises(JudgeError) as raised:
        made(prompt="?", completion="It is 4.")
    return raised.value.fault, raised.value.requests


@pytest.mark.parametrize("format", [None, "json_object", "text"])
@pytest.mark.parametrize("first", UNREAD)
def test_the_second_reply_is_read(first: str, format: str | None) -> None:
    """The question says what was wrong and which form is right, and nothing of the reply; both are paid."""
    made = judge(first, GOOD, format=format)
    score = made(prompt="?", completion="It is 4.")
    before, after = (asked.messages[-1]["content"] for asked in questions(made))
    assert isinstance(score, Score)
    assert (0.75, 2.0, 1.0) == (score.value, score.metrics["requests"], score.metrics["reasked"])
    assert after.startswith(before.partition("\n\nReply with one JSON object")[0])
    assert 1 == after.count("Your reply to this could not be used") == after.count("Reply with one JSON object")
    assert "no verdict" not in after


@pytest.mark.parametrize("text", UNREAD)
def test_an_error_of_a_reply_has_the_form_of_a_right_one(text: str) -> None:
    """Of a long rubric the beginning."""
    form = '{"correct": {"reason": "<one or two sentences>", "score": <a whole number from 1 to 5>}}'
    with pytest.raises(JudgeError, match=re.escape(f"; a right reply is {form}") + "$"):
        judge(text, text)(prompt="?", completion="It is 4.")
    many = LLMJudge("m", [f"criterion{number}" for number in range(30)], client=FakeJudge(text))
    with pytest.raises(JudgeError, match=r"; a right reply is .{300}\.\.\.$"):
        many(prompt="?", completion="It is 4.")


@pytest.mark.parametrize(
    ("name", "words"),
    {
        "api_base": "the server's address is base_url",
        "max_retries": r"RetryPolicy\(attempts",
        "retries": r"RetryPolicy\(attempts",
        "system_prompt": r"template=Template\(",
        "rubric": "criteria",
        "fallback": r"judge.fallback\(",
        "max_cost": r"budget=Budget\(usd",
    }.items(),
)
def test_a_setting_by_another_librarys_name_has_its_own(name: str, words: str) -> None:
    """What is meant is plain from the name."""
    with pytest.raises(JudgeSetupError, match=f"has no setting '{name}'; .*{words}"):
        judge(**{name: "x"})


def test_a_prompt_for_a_template_has_the_way_on() -> None:
    """A text that is no name of a template is mostly a prompt."""
    with pytest.raises(JudgeSetupError, match=r"a prompt of your own is Template\(name="):
        judge(template="Grade {completion} by {criteria}")


@pytest.mark.parametrize(("reasks", "requests"), [(0, 1), (1, 2), (3, 4)])
def test_it_is_asked_for_as_often_as_is_set(reasks: int, requests: int) -> None:
    """Then the last reply's fault is the judgement's."""
    made = judge(*["no verdict"] * 3, "{}", reasks=reasks)
    fault = Fault.WRONG_SCHEMA if reasks == 3 else Fault.UNREADABLE
    assert (fault, requests, requests) == (*fault_of(made), len(questions(made)))


class Ending(FakeJudge):
    """A judge whose replies end for a reason, or are a refusal."""

    def answer(self, question: Asked) -> Any:
        response = super().answer(question)
        choice = response.choices[0]
        choice.finish_reason, choice.message.refusal = self.ending
        return response

    ending: tuple[str, str | None] = ("stop", None)


@pytest.mark.parametrize(
    ("ending", "text", "fault"),
    [
        (("stop", "I will not"), "no", Fault.REFUSED),
        (("content_filter", None), "no", Fault.CONTENT_FILTER),
        (("length", None), "no", Fault.TRUNCATED),
        (("stop", None), "", Fault.EMPTY),
    ],
    ids=lambda value: str(value),
)
def test_what_asking_does_not_mend_is_not_asked_again(ending: tuple[str, str | None], text: str, fault: Fault) -> None:
    client = Ending(text)
    client.ending = ending
    assert (fault, 1) == fault_of(LLMJudge("m", ["correct"], client=client))


def test_a_second_question_keeps_the_deadline() -> None:
    """What is left of the first one's is all that it has; the first fault is told."""
    made = LLMJudge("m", ["correct"], client=FakeJudge("no verdict", latency_s=0.4), deadline_s=0.6)
    with pytest.raises(JudgeError) as raised:
        virtual(made.function(prompt="?", completion="It is 4."))
    assert Fault.UNREADABLE is raised.value.fault


def test_a_second_question_is_within_the_budget() -> None:
    """A cap of one request lets none follow."""
    budget = Budget(requests=1)
    made = judge("no verdict", GOOD, budget=budget)
    assert ((Fault.UNREADABLE, 1), 1) == (fault_of(made), budget.spent().requests)


def test_the_second_reply_is_what_the_cache_has(tmp_path: Path) -> None:
    """The same question costs nothing then, and its score is the same."""
    made = judge("no verdict", GOOD, cache=JudgeCache(tmp_path / "judge.db"))
    first, again = (made(prompt="?", completion="It is 4.") for _ in range(2))
    assert (first.value, 2.0, 0.0) == (again.value, first.metrics["requests"], again.metrics["requests"])


def test_a_server_without_schemas_is_still_found_out() -> None:
    """Three first replies that are no verdict make the judge ask for text, though each second one is read."""
    made = judge(*["no verdict", GOOD] * 3, GOOD)
    for number in range(4):
        made(prompt="?", completion=f"It is {number}.")
    assert [True] * 5 + [False] * 2 == ["response_format" in asked.options for asked in questions(made)]


def _grade_all(asked: Asked) -> str:
    names = re.findall(r"^- (c\d+): ", asked.text, re.MULTILINE)
    is_spoilt = "c7" in names and "could not be used" not in asked.text
    return "no verdict" if is_spoilt else json.dumps({name: {"reason": "so", "score": 1} for name in names})


@pytest.mark.parametrize(
    ("together", "sizes"),
    [("all", [48] * 2), ("each", [1] * 49), (1, [1] * 49), (10, [9] * 3 + [10] * 3), (48, [48] * 2), (50, [48] * 2)],
)
def test_one_chunk_of_a_rubric_is_asked_again(together: str | int, sizes: list[int]) -> None:
    """Chunks are even, the unreadable one alone is asked for twice, and each has the tokens that its criteria need."""
    made = LLMJudge("m", criteria_column="rubric", together=together, client=FakeJudge(_grade_all))
    score = made(prompt="?", completion="!", rubric=[f"Says {number}." for number in range(48)])
    asked = sorted(len(re.findall(r"^- c\d+: ", one.text, re.MULTILINE)) for one in questions(made))
    assert (1.0, sorted(sizes)) == (score.value, asked)
    assert {max(1024, 128 * size) for size in sizes} == {one.options["max_tokens"] for one in questions(made)}


def test_tokens_that_the_user_sets_stay() -> None:
    rubric = [f"Says {number}." for number in range(48)]
    for limit in (500, None):
        made = LLMJudge("m", criteria_column="rubric", max_tokens=limit, client=FakeJudge(_grade_all))
        made(prompt="?", completion="!", rubric=rubric)
        assert {limit} == {asked.options.get("max_tokens") for asked in questions(made)}


def _once_wrong(right: Any) -> FakeJudge:
    return FakeJudge(lambda asked: right(asked) if "could not be used" in asked.text else "no verdict")


@pytest.mark.parametrize("kind", [PairwiseJudge, ListwiseJudge])
@pytest.mark.parametrize("reasks", [0, 1])
def test_judges_of_groups_ask_again_too(kind: Any, reasks: int) -> None:
    def right(asked: Asked) -> str:
        names = sorted(set(re.findall(r"<(answer-\d+)-", asked.text)))
        listed = {name: {"reason": "so", "score": number} for number, name in enumerate(names)}
        return json.dumps(listed or {"reason": "so", "verdict": "A"})

    made = kind("m", client=_once_wrong(right), reasks=reasks)
    results = made(prompt="?", completions=["It is 4.", "It is 5."])
    assert [bool(reasks)] * 2 == [isinstance(result, Score) for result in results]
    assert 2 * (1 + reasks) == len(questions(made))


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"together": 0}, "together=0: expected all, each, or how many criteria"),
        ({"together": -1}, "together=-1: "),
        ({"together": True}, "together=True: "),
        ({"together": "some"}, "together='some': "),
        ({"together": None}, "together=None: "),
        ({"reasks": -1}, "reasks=-1: expected how often an unreadable reply is asked for again, a whole number from 0"),
        ({"reasks": 1.0}, "reasks=1.0: "),
        ({"reasks": True}, "reasks=True: "),
    ],
    ids=str,
)
def test_a_wrong_setting_is_named_with_the_fix(settings: dict[str, Any], words: str) -> None:
    with pytest.raises(JudgeSetupError, match=re.escape(words)) as raised:
        judge(**settings)
    assert 1 == len(str(raised.value).splitlines())
