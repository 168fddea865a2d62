"""A completion is found in what OpenRLHF decodes: behind a prompt that is whole, cut or framed, and before the end."""

from __future__ import annotations

import pytest

from rewardkit.serving import completion_in

PROMPT = "<|im_start|>user\n2+2=<|im_end|>\n<|im_start|>assistant\n"


@pytest.mark.parametrize(
    ("query", "completion"),
    [
        (PROMPT + "4", "4"),
        (PROMPT + "4<|im_end|>", "4"),
        (PROMPT + "4\n<|im_end|>", "4\n"),
        (PROMPT + "4</s>", "4"),
        (PROMPT + "4<end_of_turn>", "4"),
        (PROMPT + "4<\uff5cend\u2581of\u2581sentence\uff5c>", "4"),
        ("<s>" + PROMPT + "4", "4"),
        (PROMPT[9:] + "4<|im_end|>", "4"),
        (PROMPT[-20:] + PROMPT[-20:], PROMPT[-20:]),
        (PROMPT, ""),
        (PROMPT + "a<b|c> and <|not one|>", "a<b|c> and <|not one|>"),
        (PROMPT + "<|im_end|> is a token", "<|im_end|> is a token"),
        ("something else", "something else"),
        ("", ""),
    ],
)
def test_the_completion_is_what_follows_the_prompt(query: str, completion: str) -> None:
    """The end token alone goes; blanks and tokens within the text stay."""
    assert completion == completion_in(query, PROMPT)


def test_without_a_prompt_all_of_it_is_the_completion() -> None:
    """An empty prompt, which is at every place of a text."""
    assert "4" == completion_in("4</s>", "")


def test_a_prompt_that_fits_everywhere_takes_no_time() -> None:
    """Its beginning is looked for at some places, not at each of a million."""
    query = "a" * 1_000_000 + "b"
    assert query == completion_in(query, "a" * 2_000_000)
    assert "b" == completion_in(query, "a" * 1_000_500)
