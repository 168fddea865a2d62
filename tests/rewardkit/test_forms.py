"""Prompts and completions as text or as messages, by the annotation."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from typing import Annotated, Any, Literal, NewType, TypedDict

import pytest

from rewardkit import (
    Cause,
    CoercionError,
    DataError,
    Message,
    Reward,
    RewardDefinitionError,
    Rollout,
    Runtime,
    group_reward,
    reward,
)
from rewardkit.messages import ROLES
from rewardkit.moving import from_trl

TALK = [{"role": "assistant", "content": "4"}]
ASKED = [{"role": "user", "content": "2+2="}]
Words = NewType("Words", str)


class Turn(TypedDict):
    role: str
    content: str


TEXT = [None, str, Any, str | None, Words, Annotated[str, "the answer"]]
MESSAGES = [
    list, tuple, Sequence, list[Any], list[dict], list[dict[str, Any]], list[Message], Sequence[Message],
    Iterable[Turn], list[dict] | None, tuple[Message, ...],
]  # fmt: skip
AS_IS = [object, str | list[dict], str | Sequence[Message]]
NEITHER = [int, dict, Message, list[str], list[list], Sequence[int], Literal["a"], str | int]
TEXTS = [None, Any, list[str], Sequence[str], list[Any], list[str | None], list[str] | None, tuple[str, ...]]
CONVERSATIONS = [
    list, Sequence, list[list], list[list[dict]], Sequence[Sequence[Message]], list[list[Turn]], list[tuple],
    list[dict], list[Message], list[list[dict]] | None,
]  # fmt: skip
EACH_AS_IS = [object, list[object], list[str | list[dict]], list[str] | list[list[dict]]]
NO_COMPLETIONS = [str, int, dict, dict[str, Any], list[int], list[list[str]], Message, str | None]


def _annotated(name: str, annotation: Any) -> Any:
    """A function of one parameter that tells what it was given."""
    namespace: dict[str, Any] = {"json": json}
    exec(f"def sees({name}):\n    raise ValueError(json.dumps({name}))", namespace)
    if annotation is not None:
        namespace["sees"].__annotations__ = {name: annotation}
    return namespace["sees"]


def _seen(made: Reward[..., Any], rollout: Rollout) -> Any:
    """What the reward was given, or the error where it was given nothing."""
    with Runtime([made], lane="inline") as runtime:
        (outcome,) = runtime.score([rollout])["sees"]
    error = outcome.error or ""
    if outcome.cause is Cause.COERCION:
        return error
    return json.loads(re.sub(r" \(if .*\)$", "", error.removeprefix("ValueError: ")))


@pytest.mark.parametrize(("name", "read"), [("prompt", "user"), ("completion", "assistant")])
def test_text_of_nobody_is_refused_where_a_role_is_unknown(name: str, read: str) -> None:
    """A misspelt role would make every text empty, which a reward would score; known roles alone have no text."""
    made = reward(_annotated(name, str))
    odd, known = {"role": "modle", "content": "4"}, {"role": "tool", "content": "4"}
    spoken = {"role": read, "content": ""}
    given = {"prompt": ASKED, "completion": TALK}
    error = f"{name} of example 0, message 1: unknown role 'modle'; the roles are {', '.join(ROLES)}; no message has "
    error += f"the role '{read}', whose text is read"
    assert error in _seen(made, Rollout(**{**given, name: [known, odd]}))
    assert "" == _seen(made, Rollout(**{**given, name: [known]}))
    assert "" == _seen(made, Rollout(**{**given, name: [spoken, odd]}))


@pytest.mark.parametrize("annotation", TEXT, ids=str)
def test_text_of_a_conversation_is_handed_where_text_is_asked_for(annotation: Any) -> None:
    """The annotation decides, for prompt and completion alike."""
    rollout = Rollout(ASKED, TALK)
    assert "4" == _seen(reward(_annotated("completion", annotation)), rollout)
    assert "2+2=" == _seen(reward(_annotated("prompt", annotation)), rollout)
    assert "4" == _seen(reward(_annotated("completion", annotation)), Rollout("p", "4"))


@pytest.mark.parametrize("annotation", MESSAGES, ids=str)
def test_messages_are_handed_where_a_list_is_asked_for_and_text_is_refused(annotation: Any) -> None:
    """A string never passes for messages: the call fails, and says which annotation gives text."""
    for name in ("prompt", "completion"):
        made = reward(_annotated(name, annotation))
        assert TALK == _seen(made, Rollout(TALK, TALK))
        said = _seen(made, Rollout("2", "2"))
        assert f"{name} of example 0: expected a list of messages" in said
        assert f"got text: '2'; for text annotate it '{name}: str'" in said
        with pytest.raises(CoercionError, match="expected a list of messages"):
            made(**{name: "4"})


@pytest.mark.parametrize("annotation", AS_IS, ids=str)
def test_what_may_be_both_is_handed_on_as_it_is(annotation: Any) -> None:
    """A union of both, and object, leave the choice to the rollout."""
    for name in ("prompt", "completion"):
        made = reward(_annotated(name, annotation))
        assert (TALK, "4") == (_seen(made, Rollout(TALK, TALK)), _seen(made, Rollout("4", "4")))


@pytest.mark.parametrize(("name", "annotation"), [("completion", one) for one in NEITHER], ids=str)
def test_an_annotation_of_something_else_is_refused(name: str, annotation: Any) -> None:
    """A completion is not coerced to numbers or objects: the reward says so as it is defined."""
    with pytest.raises(RewardDefinitionError, match=r"annotate it str for its text, or list\[dict\] for its chat mess"):
        reward(_annotated(name, annotation))


@pytest.mark.parametrize("annotation", TEXTS, ids=str)
def test_completions_are_texts_where_texts_are_asked_for(annotation: Any) -> None:
    """The elements' annotation decides, as that of a single completion does."""
    made = group_reward(_annotated("completions", annotation))
    assert ["4"] == _seen(made, Rollout("p", TALK))
    with pytest.raises(ValueError, match=r'\["4", "5"\]'):
        made(completions=[TALK, "5"])


@pytest.mark.parametrize("annotation", CONVERSATIONS, ids=str)
def test_completions_are_conversations_where_lists_are_asked_for(annotation: Any) -> None:
    """A bare list is one of conversations, as a bare list of a single reward is one of messages."""
    made = group_reward(_annotated("completions", annotation))
    assert [TALK] == _seen(made, Rollout("p", TALK))
    said = _seen(made, Rollout("p", "4"))
    assert "completion of example 0: expected a list of messages, as 'completions' is annotated" in said
    assert "for text annotate it 'completions: list[str]'" in said


@pytest.mark.parametrize("annotation", EACH_AS_IS, ids=str)
def test_completions_that_may_be_both_are_handed_on_as_they_are(annotation: Any) -> None:
    """Each is what its rollout holds."""
    made = group_reward(_annotated("completions", annotation))
    assert ([TALK], ["4"]) == (_seen(made, Rollout("p", TALK)), _seen(made, Rollout("p", "4")))


@pytest.mark.parametrize("annotation", NO_COMPLETIONS, ids=str)
def test_an_annotation_of_no_list_of_completions_is_refused(annotation: Any) -> None:
    """A group's completions are a list, of texts or of conversations."""
    with pytest.raises(RewardDefinitionError, match=r"annotate it list\[str\] for the completions' texts"):
        group_reward(_annotated("completions", annotation))


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (["4"], "expected a list of messages such as {'role': .*}, but its element 0 is str '4'"),
        ([*TALK, None], "expected a list .*, but its element 1 is NoneType None"),
        ([{"content": "4"}], "message 0: expected a 'role', such as 'user' or 'assistant', in {'content': '4'}"),
        ([{"from": "gpt", "value": "4"}], "message 0: it is in ShareGPT's form, .*; write {'role': 'assistant', "),
        ([{"role": "user", "parts": [{"text": "4"}]}], "message 0: its 'parts' are not read; write them as"),
        ([*TALK, {"role": None, "content": "4"}], "message 1: expected a 'role'"),
        ([{"role": "user", "content": 4}], "message 0: expected text or a list of blocks as content, got 4"),
        (4, "expected a string or a list of messages, got int"),
        ({"role": "user", "content": "4"}, "expected a string or a list of messages, got dict"),
        (None, "expected a string or a list of messages, got NoneType"),
    ],
    ids=str,
)
def test_what_is_neither_text_nor_messages_is_refused(wrong: Any, words: str) -> None:
    """A batch is refused before anything runs, naming row and field; so is a plain call."""

    def sees(prompt: str, completion: str) -> float:
        return 1.0

    with Runtime([sees], lane="inline") as runtime:
        told = words if isinstance(wrong, list) else "expected a string or messages as {}, got"
        with pytest.raises(DataError, match=f"row 1: .*{told.replace('{}', 'completion')}"):
            runtime.score([Rollout("p", "c"), Rollout("p", wrong)])
        with pytest.raises(DataError, match=f"row 0: .*{told.replace('{}', 'prompt')}"):
            runtime.score([Rollout(wrong, "c")])
    with pytest.raises(CoercionError, match=f"^completion: {words}"):
        reward(sees)(prompt="p", completion=wrong)


def _indexes(completion: str) -> float:
    return float(completion[0]["content"] == "4")  # type: ignore[index]


def _gets(completion: Any) -> float:
    return float(completion.get("content") == "4")


def _group_indexes(completions: list[str]) -> list[float]:
    return [float(one[0]["content"] == "4") for one in completions]  # type: ignore[index]


TO_MESSAGES = "(if 'completion' is meant: it is text here; for messages annotate 'completion: list[dict]')"


@pytest.mark.parametrize(
    ("made", "words"),
    [
        (reward(_indexes), f"TypeError: string indices must be integers, not 'str' {TO_MESSAGES}"),
        (reward(_gets), f"AttributeError: 'str' object has no attribute 'get' {TO_MESSAGES}"),
        (group_reward(_group_indexes), "for messages annotate 'completions: list[list[dict]]')"),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
def test_text_taken_for_messages_is_told_with_the_annotation_that_mends_it(made: Reward[..., Any], words: str) -> None:
    """The error stands as it was, and a hint behind it."""
    with Runtime([made], lane="inline") as runtime:
        (outcome,) = runtime.score([Rollout("p", TALK)])[made.name]
    assert Cause.EXCEPTION is outcome.cause
    assert (outcome.error or "").endswith(words)


def _of_messages(completions: list[Any], **_: object) -> list[float]:
    return [float(talk[0]["content"] == "4") for talk in completions]


def _of_text(completions: list[Any], **_: object) -> list[float]:
    return [float(text.strip() == "4") for text in completions]


def _searches(completions: list[Any], **_: object) -> list[float]:
    return [float(bool(re.search("4", text))) for text in completions]


CHAT = [{"role": "assistant", "content": "4"}]


@pytest.mark.parametrize(
    ("function", "completion", "words"),
    [
        (
            _of_messages,
            "4",
            "it is text here, and the function reads messages; give completions as messages, such as [{'role'",
        ),
        (
            _of_messages,
            "",
            "it is text here, and the function reads messages; give completions as messages, such as [{'role'",
        ),
        (_of_text, CHAT, "it is messages here, and the function reads text; give completions as text, and prompts too"),
        (
            _searches,
            CHAT,
            "it is messages here, and the function reads text; give completions as text, and prompts too",
        ),
    ],
)
def test_a_moved_function_is_told_of_the_other_form(function: Any, completion: Any, words: str) -> None:
    """TRL hands over the form of the prompts, and so does a function that moved in."""
    with Runtime([from_trl(function)], lane="inline") as runtime:
        (outcome,) = runtime.score([Rollout("p", completion)])[function.__name__]
    assert words in (outcome.error or "")


def test_an_error_of_another_kind_has_no_hint() -> None:
    """A wrong index of a column, or a method that no text has, is told as it is."""

    def appends(completion: str) -> float:
        return float({}.strip())  # type: ignore[attr-defined]

    def says(completion: list) -> float:
        raise ValueError("TypeError: string indices must be integers")

    with Runtime([appends, says], lane="inline") as runtime:
        batch = runtime.score([Rollout("p", TALK)])
    assert "AttributeError: 'dict' object has no attribute 'strip'" == batch["appends"][0].error
    assert "ValueError: TypeError: string indices must be integers" == batch["says"][0].error
