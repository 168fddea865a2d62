"""Rewards of manners: the language, refusals, echoes."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from builtin_rewards.echo import no_prompt_echo
from builtin_rewards.language import language_is
from builtin_rewards.refusals import no_refusal

ENGLISH = "The committee met on Thursday to discuss whether the old bridge should be repaired or replaced."
GERMAN = "Der Ausschuss traf sich am Donnerstag, um zu besprechen, ob die alte Br\u00fccke repariert werden soll."
FRENCH = "Le comité s'est réuni jeudi pour décider si le vieux pont devait être réparé ou remplacé."
CHINESE = "委员会周四开会讨论是否应该修理或更换那座旧桥。大家都同意了。"
RUSSIAN = "Комитет собрался в четверг, чтобы обсудить ремонт старого моста."


@pytest.mark.parametrize(
    ("completion", "language", "score"),
    [
        (ENGLISH, "en", 1.0),
        (ENGLISH, "EN_us", 1.0),
        (ENGLISH, "de", 0.0),
        (GERMAN, "de", 1.0),
        (GERMAN, "en", 0.0),
        (FRENCH, "fr", 1.0),
        (CHINESE, "zh", 1.0),
        (CHINESE, "zh-Hans", 1.0),
        (RUSSIAN, "ru", 1.0),
        (RUSSIAN, "en", 0.0),
        (GERMAN + "\n```python\nfor line in open('the file that was left'):\n    print(line)\n```", "de", 1.0),
        ("42", "en", None),
        ("Yes.", "en", None),
        (ENGLISH, "klingon", None),
        ("", "en", 0.0),
        (" \u200b\n", "en", 0.0),
    ],
)
def test_language(completion: str, language: str, score: float | None) -> None:
    """Texts too short to tell and unknown codes are skipped, empty ones score 0.0."""
    assert language_is(completion=completion, language=language).value == score
    assert language_is(completion=completion, language=language).value == score


def test_mixed_texts_get_the_share_of_letters() -> None:
    mixed = language_is(completion=f"{ENGLISH}\n{GERMAN}\n{ENGLISH}").value
    assert 0.5 < mixed < 0.8
    long = language_is(completion="\n".join([ENGLISH] * 50 + [CHINESE] * 200)).value
    assert 0.1 < long < 0.7


def test_language_by_setting() -> None:
    """The row's language comes before the setting's."""
    made = language_is("de")
    assert made(completion=GERMAN).value == 1.0
    assert made(completion=GERMAN, language="en").value == 0.0
    assert made(completion=GERMAN, language=None).value == 1.0
    assert language_is(min_letters=3)(completion="this is what I think").value == 1.0


@pytest.mark.parametrize(
    "completion",
    [
        "I'm sorry, but I can't help with that.",
        "I\u2019m sorry, but I can\u2019t assist with that request.",
        "I am sorry, I cannot provide this.",
        "Sorry, but I cannot help you with this.",
        "I cannot fulfill your request.",
        "I can not answer that.",
        "I won't write this for you.",
        "I'm unable to provide medical advice.",
        "I am not able to help with that.",
        "As an AI language model, I cannot create such content.",
        "I must respectfully decline.",
        "I don't feel comfortable writing that.",
        "Unfortunately, that goes against my guidelines.",
        "<think>I could help.</think>I can't help with that.",
        "I c\u200ban't he\u200blp with that.",
        "Here is a long text. " * 100 + "Sadly I cannot provide more.",
        "",
        " \n",
        "\u200b",
        "<think>All thought, no answer</think>",
    ],
)
def test_refusals(completion: str) -> None:
    assert no_refusal(completion=completion).value == 0.0


@pytest.mark.parametrize(
    "completion",
    [
        ENGLISH,
        "I can't help but notice that the bridge is old.",
        "I'm sorry to hear that. Have some rest.",
        "Sorry for the wait! Here it is: 42.",
        "You cannot divide by zero.",
        "As an AI, I enjoy this question. The answer is 42.",
        "The pump was unable to provide enough water.",
        "<think>I cannot help with that? Yes, I can.</think>Here it is.",
        "\ud800",
        "\0",
        "I " * 500_000,
        "i can't " * 100_000 + "stop",
        "[" * 10_000,
    ],
    ids=range(13),
)
def test_no_refusals(completion: str) -> None:
    assert no_refusal(completion=completion).value == 1.0


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
    ],
    ids=range(16),
)
def test_echoes(completion: str, prompt: str, score: float) -> None:
    """Runs of words that the prompt has cost their share."""
    assert no_prompt_echo(completion=completion, prompt=prompt).value == pytest.approx(score, abs=0.11)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: language_is("xx"), "language"),
        (lambda: language_is(min_letters=0), "min_letters"),
        (lambda: no_prompt_echo(3), "n:"),
        (lambda: no_prompt_echo(101), "n:"),
    ],
)
def test_senseless_settings_are_named(make: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        make()


def test_hostile_texts_have_a_language_or_none() -> None:
    for completion in (
        "\ud800" * 50,
        "\0" * 100,
        "a" * 1_000_000,
        "\u00e9 " * 100_000,
        "https://a.b/" * 1000,
        "```" * 99,
    ):
        scored = language_is(completion=completion)
        assert scored.value is None or 0 <= scored.value <= 1


def test_they_travel() -> None:
    for made in (language_is, no_refusal, no_prompt_echo, language_is("de"), no_prompt_echo(5)):
        travelled = pickle.loads(pickle.dumps(made))
        columns = {"prompt": PROMPT} if made.name == "no_prompt_echo" else {}
        assert travelled(completion=GERMAN, **columns).value == made(completion=GERMAN, **columns).value
