"""The reward for not repeating the prompt."""

from __future__ import annotations

import pickle

import pytest

from builtin_rewards.echo import no_prompt_echo

PROMPT = "Explain in two sentences why the old bridge over the river should be repaired and not replaced by a tunnel."


@pytest.mark.parametrize(
    ("completion", "prompt", "score"),
    [
        (PROMPT, PROMPT, 0.0),
        (PROMPT.upper().replace(" ", "  "), PROMPT, 0.0),
        ("**" + PROMPT.replace("bridge", "br\u200bidge") + "**", PROMPT, 0.0),
        ("It costs less. People also like how it looks.", PROMPT, 1.0),
        (PROMPT + " " + "It costs much less than one might think and people like it a lot, so why not.", PROMPT, 0.5),
        ("Paris", "Is it Paris or Rome?", 1.0),
        ("Is it Paris or Rome", "Is it Paris or Rome?", 0.0),
        ("Paris", "paris", 0.0),
        ("The river should be repaired, they say, which is odd", PROMPT, 1.0),
        ("", PROMPT, 0.0),
        ("\u200b \n", PROMPT, 0.0),
        ("!!!", PROMPT, 1.0),
        ("anything at all that is said here", "", 1.0),
        ("\ud800\0", PROMPT, 1.0),
        ("x " * 500_000, PROMPT, 1.0),
        ("[" * 10_000, "[" * 10_000, 1.0),
        ("<think>" + PROMPT + "</think>It costs less, and people like how it looks.", PROMPT, 1.0),
        ("<think>Some thought of my own, and a long one too.</think>" + PROMPT, PROMPT, 0.0),
    ],
    ids=range(18),
)
def test_echoes(completion: str, prompt: str, score: float) -> None:
    """Runs of words that the prompt has cost their share."""
    assert no_prompt_echo(completion=completion, prompt=prompt).value == pytest.approx(score, abs=0.11)


@pytest.mark.parametrize("n", [3, 101])
def test_senseless_settings_are_named(n: int) -> None:
    """An echo has 4 to 100 words."""
    with pytest.raises(ValueError, match="n="):
        no_prompt_echo(n)


def test_it_travels() -> None:
    """With its settings."""
    for made in (no_prompt_echo, no_prompt_echo(5)):
        assert pickle.loads(pickle.dumps(made))(completion=PROMPT, prompt=PROMPT).value == 0.0
