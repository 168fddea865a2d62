"""What a turn says without its stop tokens and thoughts."""

from __future__ import annotations

import pytest

from builtin_rewards.reading.thoughts import (
    after_thinking,
    ends_in_thought,
    ends_with_opening,
    leaves_thought_open,
    strip_frame,
    without_thoughts,
)

STOPS = (
    *("<|im_end|>", "<|endoftext|>", "<|eot_id|>", "<|eom_id|>", "<|end_of_text|>", "</s>", "<eos>", "<|eos|>"),
    *("<end_of_turn>", "<|end|>", "<|return|>", "<|call|>", "<|END_OF_TURN_TOKEN|>", "<|eot|>", "<|eom|>", "<|user|>"),
    *("<|observation|>", "<\uff5cend\u2581of\u2581sentence\uff5c>", "<|EOT|>", "<|end_of_turn|>", "<turn|>", "<pad>"),
    *("<|end_of_sentence|>", "<seed:eos>", "[EOS]", "[|endofturn|]", "<eoa>", "[e~[", "<|finetune_right_pad_id|>"),
)
THOUGHTS = (
    *(("<think>", "</think>"), ("<THINK>", "</Think>"), ("< think >", "</ think>"), ("<thinking>", "</thinking>")),
    *(("<thought>", "</thought>"), ("<reasoning>", "</reasoning>"), ("<scratchpad>", "</scratchpad>")),
    *(("[THINK]", "[/THINK]"), ("\u25c1think\u25b7", "\u25c1/think\u25b7"), ("<seed:think>", "</seed:think>")),
    *(("<|START_THINKING|>", "<|END_THINKING|>"), ("<|begin_of_thought|>", "<|end_of_thought|>")),
    ("<|channel|>analysis<|message|>", "<|end|><|start|>assistant<|channel|>final<|message|>"),
    ("<|channel>thought\n", "<channel|>"),
)


@pytest.mark.parametrize("stop", STOPS)
def test_what_ends_a_turn_is_no_content(stop: str) -> None:
    """Each token goes, alone, with blanks around it, several times and behind another one."""
    for text in (
        f"42{stop}",
        f"42 {stop}\n",
        f"42{stop}{stop} {stop}",
        f"42<|im_end|>\n{stop}",
        "42" + f"{stop} \n" * 10_000,
    ):
        assert "42" == strip_frame(text)


@pytest.mark.parametrize("text", ["42", "42 \n", "<|im_end|> 42", "42 </s", "a </s> b", "2 < 3 | 4 >", "", "\n"])
def test_a_text_without_a_stop_token_at_its_end_stays_as_it_is(text: str) -> None:
    """A token inside a text, or a part of one, is content."""
    assert text == strip_frame(text)


@pytest.mark.parametrize(("opening", "closing"), THOUGHTS)
def test_a_thought_is_not_what_is_said(opening: str, closing: str) -> None:
    """It counts neither whole, nor without its beginning, nor where it never ends."""
    assert "42" == after_thinking(f"{opening}41{closing}42")
    assert "42" == after_thinking(f"41{closing}42")
    assert "42" == after_thinking(f"{opening}40{closing}41{opening}41{closing}42<|im_end|>")
    assert "" == after_thinking(f"{opening}The answer is 41").strip()
    assert "42 " == after_thinking(f"{opening}41{closing}42 {opening}43")
    assert "" == after_thinking(f"{opening}41{closing}")


@pytest.mark.parametrize(
    "text",
    [
        "think of 42",
        "Put your reasoning between `<think>` and `</think>`: 42",
        "a < thinker > b",
        "analysis of 42",
        "<answer>42</answer>",
        "[1, 2]",
        "<|channel|>commentary to=functions.f<|message|>{}",
    ],
)
def test_what_is_no_thought_is_said(text: str) -> None:
    """Words alone, marks in backticks and other tags open no thought."""
    assert text == after_thinking(text)


def test_channels_are_read_without_their_marks_too() -> None:
    """gpt-oss decoded without special tokens; a call in the commentary stays, the thought before it goes."""
    assert "It is 42." == after_thinking("analysisIt may be 41.assistantfinalIt is 42.")
    call = "<|channel|>commentary to=functions.f <|constrain|>json<|message|>{}"
    assert call == after_thinking(f"<|channel|>analysis<|message|>f?<|end|><|start|>assistant{call}<|call|>")


@pytest.mark.parametrize(
    "mark", ["<think>", "</think>", "</s>", "<pad> ", "<|channel|>analysis", "[THINK]", "\u25c1", "< "]
)
def test_repeated_marks_are_read_in_one_pass(mark: str) -> None:
    """300,000 characters of a mark and nothing else say nothing, or themselves; quadratic reading would not end."""
    text = mark * (300_000 // len(mark))
    assert len(after_thinking(text)) <= len(text)


FENCED = "```python\nre.search(r'<think>(.*?)</think>', text)\n```"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (f"<think>a</think>Use\n{FENCED}\n42", f"Use\n{FENCED}\n42"),
        (f"Use\n{FENCED}", f"Use\n{FENCED}"),
        ("```\n</think>\n```\n42", "```\n</think>\n```\n42"),
        (f"<think>\n{FENCED}\nso</think>42", "42"),
        ("<think>\n```\nf\n</think>\n```python\ng\n```", "\n```python\ng\n```"),
        ("Say ```<think>``` inline<think>a</think>42", "42"),
        ("```\n<think>41", "```\n"),
    ],
)
def test_marks_in_a_code_fence_of_the_answer_are_text(text: str, said: str) -> None:
    """The fence opens outside a thought and closes; in a thought the first mark that ends it counts."""
    assert said == after_thinking(text)


@pytest.mark.parametrize(("opening", "closing"), THOUGHTS)
def test_a_thought_may_begin_in_the_prompt(opening: str, closing: str) -> None:
    """A text that begins within one and never ends it says nothing; a prompt's own mark says that it begins so."""
    assert ["", "", "42"] == [after_thinking(text, inside=True) for text in ("41", f"{opening}41", f"41{closing}42")]
    for prompt in (f"What is 6 * 7?\n{opening}", f"a{opening}b{closing}c {opening}\n"):
        assert [True, True] == [ends_with_opening(prompt), ends_in_thought(prompt)]
        assert [True, True] == [leaves_thought_open(prompt), leaves_thought_open([assistant(f"{prompt} Hm,")])]
    for prompt in ("", "What?", f"{opening}a{closing}", f"Use {opening} and say more", f"`{opening}"):
        assert not leaves_thought_open(prompt)
        assert not leaves_thought_open([{"role": "user", "content": f"{prompt}{opening}"}])
    assert not leaves_thought_open([])


def assistant(content: object, **fields: object) -> dict[str, object]:
    return {"role": "assistant", "content": content, **fields}


IMAGE = {"type": "image_url", "image_url": {"url": "x"}}
MESSAGES = {
    "text": (assistant("<think>a</think>\n\nb "), assistant("b"), 16),
    "no thought": (assistant(" b \n", name="n"), assistant(" b \n", name="n"), 0),
    "fields": (assistant("b", reasoning_content="aa", thinking="c", reasoning=None), assistant("b"), 3),
    "blocks": (
        assistant([{"type": "thinking", "thinking": "aa"}, {"type": "text", "text": "b"}]),
        assistant([{"type": "text", "text": "b"}]),
        2,
    ),
    "a mark over blocks": (
        assistant(["<think>a", IMAGE, {"type": "text", "text": "a</think>b"}, "c"]),
        assistant([IMAGE, {"type": "text", "text": "b"}, "c"]),
        17,
    ),
    "a channel": (assistant("aa", channel="analysis"), assistant("", channel="analysis"), 2),
    "nothing": (assistant(None, tool_calls=[1]), assistant(None, tool_calls=[1]), 0),
    "no content": ({"role": "assistant", "tool_calls": [1]}, {"role": "assistant", "tool_calls": [1]}, 0),
}


@pytest.mark.parametrize(("message", "expected", "thoughts"), MESSAGES.values(), ids=MESSAGES)
def test_a_message_loses_its_thoughts_and_nothing_else(message: object, expected: object, thoughts: int) -> None:
    assert (expected, thoughts) == without_thoughts(message)  # type: ignore[arg-type]
