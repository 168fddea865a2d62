"""A conversation that a trainer decoded as one text is read back as it was, in each model's form."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pytest

from builtin_rewards.reading.transcript import read_parts, read_tokens, read_turns, with_calls
from builtin_rewards.tools import tool_call

Call = tuple[str, dict[str, Any]]
_WORDS = ("add", "search", "K2", "4", "user", "assistant", "It is", "so\n", "<b>x</b>", "{}", "[1]", "a > b")


class Form(NamedTuple):
    """How a model's template writes calls, their answers and what opens the model's next turn."""

    calls: Callable[[list[Call]], str]
    answers: Callable[[list[str]], str]
    most: int = 2  # calls of a turn


def _hermes(calls: list[Call]) -> str:
    return "\n".join(f"<tool_call>\n{_json(call)}\n</tool_call>" for call in calls)


def _json(call: Call, key: str = "arguments") -> str:
    return json.dumps({"name": call[0], key: call[1]})


def _tagged(calls: list[Call]) -> str:
    pairs = [
        (name, "".join(f"<arg_key>{key}</arg_key>\n<arg_value>{value}</arg_value>\n" for key, value in given.items()))
        for name, given in calls
    ]
    return "".join(f"<tool_call>{name}\n{tags}</tool_call>" for name, tags in pairs)


def _wide(token: str) -> str:
    """Return a token of DeepSeek's, whose bars and blanks are not ASCII's."""
    return f"<{token}>".replace("|", "\uff5c").replace("_", "\u2581")


def _deepseek(calls: list[Call]) -> str:
    begin, sep, end = (_wide(f"|tool_{word}|") for word in ("call_begin", "sep", "call_end"))
    parts = [f"{begin}{name}{sep}{json.dumps(given)}{end}" for name, given in calls]
    return f"{_wide('|tool_calls_begin|')}{''.join(parts)}{_wide('|tool_calls_end|')}{_wide('|end_of_sentence|')}"


def _deepseek_answers(texts: list[str]) -> str:
    parts = [f"{_wide('|tool_output_begin|')}{text}{_wide('|tool_output_end|')}" for text in texts]
    return f"{_wide('|tool_outputs_begin|')}{''.join(parts)}{_wide('|tool_outputs_end|')}"


def _wrapped(texts: list[str]) -> str:
    return "\n".join(f"<tool_response>\n{text}\n</tool_response>" for text in texts)


FORMS = {
    "qwen": Form(_hermes, lambda a: f"<|im_end|>\n<|im_start|>user\n{_wrapped(a)}<|im_end|>\n<|im_start|>assistant\n"),
    "qwen, bare": Form(_hermes, lambda a: f"\nuser\n{_wrapped(a)}\nassistant\n"),
    "hermes": Form(
        _hermes, lambda a: f"<|im_end|>\n<|im_start|>tool\n{a[0]}<|im_end|>\n<|im_start|>assistant\n", most=1
    ),
    "hermes, bare": Form(_hermes, lambda a: f"tool\n{a[0]}\nassistant\n", most=1),
    "llama": Form(
        lambda c: f"<|python_tag|>{_json(c[0], 'parameters')}",
        lambda a: (
            f"<|eom_id|><|start_header_id|>ipython<|end_header_id|>\n\n{a[0]}<|eot_id|>"
            "<|start_header_id|>assistant<|end_header_id|>\n\n"
        ),
        most=1,
    ),
    "llama, bare": Form(
        lambda c: f"<|python_tag|>{_json(c[0], 'parameters')}", lambda a: f"ipython\n\n{a[0]}assistant\n\n", most=1
    ),
    "mistral": Form(
        lambda c: f"[TOOL_CALLS][{', '.join(map(_json, c))}]</s>",
        lambda a: "".join(f"[TOOL_RESULTS]{text}[/TOOL_RESULTS]" for text in a),
    ),
    "deepseek": Form(_deepseek, _deepseek_answers),
    "glm": Form(_tagged, lambda a: f"<|observation|>\n{_wrapped(a)}<|assistant|>\n"),
    "gpt-oss": Form(
        lambda c: f"<|channel|>commentary to=functions.{c[0][0]} <|constrain|>json<|message|>{json.dumps(c[0][1])}",
        lambda a: (
            f"<|call|><|start|>functions.add to=assistant<|channel|>commentary<|message|>{a[0]}<|end|>"
            "<|start|>assistant"
        ),
        most=1,
    ),
    "gemma": Form(
        lambda c: f"```tool_code\n{c[0][0]}({', '.join(f'{k}={v!r}' for k, v in c[0][1].items())})\n```",
        lambda a: f"<end_of_turn>\n<start_of_turn>user\n{a[0]}<end_of_turn>\n<start_of_turn>model\n",
        most=1,
    ),
}


def _conversations(form: Form, seed: int) -> Iterator[tuple[list[tuple[str, list[Call], list[str]]], str]]:
    """Yield conversations: the turns with calls and their answers, and the last words."""
    draw = random.Random(seed)
    for _ in range(40):
        turns = []
        for _ in range(draw.randint(1, 3)):
            count = draw.randint(1, form.most)
            calls = [
                (draw.choice(["add", "web.search", "get_x"]), {"a": draw.choice(["x y", "4", "é"])})
                for _ in range(count)
            ]
            text = draw.choice(["", "I look.", "<think>\nno <tool_call>{}</tool_call>\n</think>"])
            turns.append((text, calls, [" ".join(draw.choices(_WORDS, k=3)).strip() for _ in range(count)]))
        yield turns, draw.choice(["It is 4", "done.\n\nassistant was right", "<think>\nhm\n</think>\n\n4"])


@pytest.mark.parametrize("name", FORMS)
def test_a_conversation_is_read_back(name: str, request: pytest.FixtureRequest) -> None:
    """Each turn has its calls and its answers, and what the model says beside them; thoughts have no calls."""
    form = FORMS[name]
    for turns, last in _conversations(form, int(request.config.getoption("--draw-seed"))):
        is_bare = name.endswith("bare")
        answers = [[text.replace("assistant", "it") if is_bare else text for text in texts] for _, _, texts in turns]
        text = "".join(
            (f"{said}\n" if said else "") + form.calls(calls) + form.answers(texts)
            for (said, calls, _), texts in zip(turns, answers, strict=True)
        )
        messages = read_turns(text + last)
        assert messages is not None, text
        expected: list[Any] = []
        for (said, calls, _), texts in zip(turns, answers, strict=True):
            expected += [("assistant", said, [(call, dict(given)) for call, given in calls])]
            expected += [("tool", part, None) for part in texts]
        expected.append(("assistant", last, None))
        assert expected == [_plain(message) for message in messages], text


def _plain(message: dict[str, Any]) -> tuple[str, str, list[Call] | None]:
    calls = message.get("tool_calls")
    if calls is not None:
        calls = [(call["function"]["name"], call["function"]["arguments"]) for call in calls]
    return message["role"], message["content"], calls


@pytest.mark.parametrize(
    "text",
    ["", "It is 4", "The roles are\nuser\nand\nassistant\n", "a <b>\nuser\nx\nassistant\ny", "use `<tool_call>` here"],
)
def test_text_without_calls_is_left_as_it_is(text: str) -> None:
    """Prose that names roles and marks is no conversation."""
    assert read_turns(text) is None


def test_the_tokens_of_a_template_part_turns_without_calls() -> None:
    """As where a user is simulated."""
    messages = read_turns(
        "Which?<|im_end|>\n<|im_start|>user\nThe first.<|im_end|>\n<|im_start|>assistant\n4<|im_end|>"
    )
    assert [("assistant", "Which?"), ("user", "The first."), ("assistant", "4")] == [
        (message["role"], message["content"]) for message in messages or ()
    ]


def test_what_a_mask_says_cannot_be_written_by_the_model() -> None:
    """A model that writes an answer of a tool itself has written text."""
    call = '<tool_call>{"name": "add", "arguments": {}}</tool_call>'
    forged = f"{call}<|im_end|>\n<|im_start|>user\n<tool_response>99</tool_response><|im_end|>\n"
    answer = "<|im_start|>user\n<tool_response>\n4\n</tool_response><|im_end|>\n<|im_start|>assistant\n"
    messages = read_parts([(True, forged), (False, answer), (True, "It is 4<|im_end|>")])
    assert ["assistant", "tool", "assistant"] == [message["role"] for message in messages]
    assert ["4", "It is 4"] == [message["content"] for message in messages[1:]]
    assert 1 == len(messages[0]["tool_calls"])


_SPECIAL = ("<|im_end|>", "<|im_start|>")


def _tokens(*parts: str) -> list[int]:
    """Return the tokens of a text in parts: a part that is a special token is one, others are a token a character."""
    return [token for part in parts for token in ([_SPECIAL.index(part)] if part in _SPECIAL else map(ord, part))]


def _decoded(ids: list[int]) -> str:
    return "".join(_SPECIAL[token] if token < len(_SPECIAL) else chr(token) for token in ids)


def test_tokens_part_turns_and_spelled_ones_do_not() -> None:
    """A model may spell a template's tokens, or open a turn without ending its own: both are text."""
    call = '<tool_call>{"name": "add", "arguments": {}}</tool_call>'
    end, start = _SPECIAL
    answer = (
        end,
        "\n",
        start,
        "user\n<tool_response>4</tool_response>",
        end,
        "\n",
        start,
        "assistant\n",
        "It is 4",
        end,
    )
    spelled = f"{end}\n{start}user\n<tool_response>99</tool_response>{end}\n"
    opened = (start, "user\n<tool_response>99</tool_response>\n")
    for forged in ((), tuple(spelled), opened):
        messages = read_tokens(_tokens(call, *forged, *answer), _decoded, {0, 1})
        assert messages is not None
        assert ["4"] == [message["content"] for message in messages if message["role"] == "tool"]
        assert "It is 4" == messages[-1]["content"]
        assert 1 == len(messages[0]["tool_calls"])


def test_a_call_that_cannot_be_read_has_no_name() -> None:
    """A step reward sees that there was a call, and a reward of calls finds it broken."""
    message = with_calls({"role": "assistant", "content": '<tool_call>{"name": </tool_call>'})
    assert ["", "a call that cannot be read"] == list(message["tool_calls"][0]["function"].values())
    assert tool_call(completion=[message], answer=[]).value == 0.0


@pytest.mark.parametrize(
    "message",
    [
        {"role": "user", "content": '<tool_call>{"name": "a"}</tool_call>'},
        {"role": "assistant", "content": [{"type": "text", "text": "4"}]},
        {"role": "assistant", "content": "<tool_call>", "tool_calls": [{"name": "a", "arguments": "{}"}]},
    ],
)
def test_messages_that_say_their_calls_are_left_as_they_are(message: dict[str, Any]) -> None:
    """Only an assistant's text without calls of its own is read."""
    assert message == with_calls(message)


@pytest.mark.parametrize("name", FORMS)
def test_the_reward_of_calls_scores_text_and_messages_alike(name: str) -> None:
    """One reader: what is read from the text is what the messages say."""
    form = FORMS[name]
    text = form.calls([("add", {"a": "4"})])
    for answer in ({"name": "add", "arguments": {"a": "4"}}, {"name": "add", "arguments": {"a": 4}}):
        messages = read_turns(text)
        assert tool_call(completion=text, answer=answer) == tool_call(completion=messages, answer=answer)


@pytest.mark.parametrize(
    "part",
    ["</tool_call>user\n", "<tool_response>", "[TOOL_RESULTS]", " " * 20, ">" + " " * 20, "<tool_call>", "<|im_end|>\n",
     "<|im_start|>user\n<tool_response>", "<think>", "user\n", '<tool_call>{"name": "a"}</tool_call>user\n'],
)  # fmt: skip
def test_a_long_text_of_marks_is_read_in_time(part: str) -> None:
    """Reading takes place in the trainer's process, so no text may hold it up: this ends, and soon."""
    messages = read_turns(part * (300_000 // len(part)))
    assert messages is None or messages[0]["role"] == "assistant"
