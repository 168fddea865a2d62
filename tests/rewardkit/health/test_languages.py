"""Completions that go over to another language are named; those in the prompt's language are not."""

from __future__ import annotations

import pytest
from synthetic_runs import GERMAN, HEALTHY, RUSSIAN, Drawn, Plant, in_another_language, run_of

from rewardkit.health.flag import Flag
from rewardkit.health.languages import KINDS, kinds_of

CHINESE = "河 流 老 师 房 子 森 林 桥 梁 村 庄 市 场 因 为 所 以"


def _flags(plant: Plant, seed: int = 1, steps: int = 60, **about: str) -> list[Flag]:
    flags = run_of(plant, seed=seed, steps=steps, words=15, **about).watched().flags
    return [flag for flag in flags if flag.detector == "language_switch"]


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("wholly", [True, False], ids=["wholly", "in parts"])
@pytest.mark.parametrize(
    ("vocabulary", "name"), [(RUSSIAN, "Cyrillic letters"), (CHINESE, "Chinese characters"), (GERMAN, "German")]
)
def test_a_switch_of_language_is_named(vocabulary: str, name: str, wholly: bool, seed: int) -> None:
    """Another script, or another language in the same one, wholly or beside what was there; once."""
    prompt = "What is the sum of these, and why is it so?"
    (flag,) = _flags(in_another_language(vocabulary, wholly=wholly), seed, prompt=prompt)
    assert name in flag.words
    assert 1 == len(flag.spans)


@pytest.mark.parametrize("seed", range(5))
def test_the_prompt_s_language_is_no_switch(seed: int) -> None:
    """Answers that come to be in the language of their prompt, and rows in several languages."""
    prompt = "Почему это так, и что они могли бы ответить, если спросить?"
    assert [] == _flags(in_another_language(RUSSIAN), seed, prompt=prompt)
    assert [] == _flags(in_another_language(GERMAN), seed, prompt=f"Bitte antworte: warum {GERMAN}?")
    assert [] == _flags(HEALTHY["languages"].plant, seed)


def test_formulas_are_no_language() -> None:
    """Latin and Greek letters in the formulas of a Chinese text, that come with the format."""

    def formulas(drawn: Drawn) -> None:
        count = len(drawn.texts)
        has = drawn.rng.random(count) < drawn.step / 60
        body = CHINESE.replace(" ", "") * 3
        drawn.texts = [f"{body} $\\alpha + β = x_{n}$ \\boxed{{{n}}}" if mark else body for n, mark in enumerate(has)]

    assert [] == _flags(formulas, prompt="这是什么?")


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        ("", set()),
        ("12 + 30 = 42", set()),
        ("The river is wide, and it flows to the sea.", {"Latin letters", "English"}),
        ("Le fleuve est large et il va dans la mer avec les autres.", {"Latin letters", "French"}),
        ("El río es ancho y va por el valle, porque los montes están cerca del mar.", {"Latin letters", "Spanish"}),
        ("Il fiume è largo e va nel mare con gli altri che sono della valle.", {"Latin letters", "Italian"}),
        ("O rio é largo e vai para o mar com os outros, que não são da ilha.", {"Latin letters", "Portuguese"}),
        ("De rivier is breed en hij stroomt met het water naar de zee.", {"Latin letters", "Dutch"}),
        ("def f(x):\n    return [y for y in x]", {"Latin letters"}),
        ("Река широкая, и она течёт.", {"Cyrillic letters"}),
        ("これは川です", {"Japanese syllables"}),
        ("강은 넓다 그리고", {"Korean syllables"}),
        ("النهر واسع", {"Arabic letters"}),
        ("\ud800", set()),
    ],
)
def test_scripts_and_languages_are_told(text: str, kinds: set[str]) -> None:
    """Of a sentence; of numbers, code and half a surrogate pair no language."""
    assert kinds == {name for name, has in zip(KINDS, kinds_of(text), strict=True) if has}
