"""BLEU, chrF and ROUGE: the libraries' own figures, as shares, on any completion."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from builtin_rewards.matching import token_f1
from builtin_rewards.overlap import bleu, chrf, rouge

REFERENCE = "The quick brown fox jumps over the lazy dog near the river bank."
CLOSE = "A quick brown fox jumped over the lazy dog near a river."
FAR = "Completely unrelated words stand here instead of it all, my friend."
EVERY = (bleu, chrf, rouge)


def value(made: Any, completion: str, answer: Any = REFERENCE) -> float | None:
    return made(completion=completion, answer=answer).value  # type: ignore[no-any-return]


@pytest.mark.parametrize("made", EVERY, ids=lambda made: made.name)
def test_likeness_is_ordered(made: Any) -> None:
    """The reference itself scores 1.0, a close text more than a far one, and padding costs."""
    same, close, far = (value(made, text) or 0.0 for text in (REFERENCE, CLOSE, FAR))
    assert same == pytest.approx(1.0)
    assert 1 > close > far >= 0
    assert (value(made, REFERENCE + " " + FAR * 5) or 0.0) < 0.8 * same


@pytest.mark.parametrize("made", EVERY, ids=lambda made: made.name)
@pytest.mark.parametrize(
    "completion",
    ["", " \n", "\0" * 100, "\ud800", "\u200b", "\u7b54\u6848", "word " * 200_000, "a" * 1_000_000, "[" * 10_000],
    ids=["empty", "blank", "nul", "surrogate", "zero-width", "chinese", "long", "one word", "deep"],
)
def test_hostile_completions_earn_nothing(made: Any, completion: str) -> None:
    assert (value(made, completion) or 0.0) < 0.1


@pytest.mark.parametrize("made", EVERY, ids=lambda made: made.name)
def test_the_best_of_several_references_counts(made: Any) -> None:
    assert value(made, CLOSE, [FAR, CLOSE]) == pytest.approx(1.0)
    assert value(made, CLOSE, ["", CLOSE]) == pytest.approx(1.0)


@pytest.mark.parametrize("made", EVERY, ids=lambda made: made.name)
@pytest.mark.parametrize("answer", ["", None, [], [""], "  "], ids=["empty", "none", "no list", "list", "blank"])
def test_rows_without_a_reference_are_skipped(made: Any, answer: Any) -> None:
    assert value(made, CLOSE, answer) is None


def test_the_figures_are_the_libraries() -> None:
    """sacrebleu's and rouge-score's own calls give the same."""
    import sacrebleu
    from rouge_score.rouge_scorer import RougeScorer

    assert value(bleu, CLOSE) == pytest.approx(sacrebleu.sentence_bleu(CLOSE, [REFERENCE]).score / 100)
    assert value(chrf, CLOSE) == pytest.approx(sacrebleu.sentence_chrf(CLOSE, [REFERENCE]).score / 100)
    assert value(chrf(word_order=2), CLOSE) == pytest.approx(
        sacrebleu.sentence_chrf(CLOSE, [REFERENCE], word_order=2).score / 100
    )
    for kind in ("rouge1", "rouge2", "rougeL"):
        for completion in (CLOSE, FAR, REFERENCE, "the " * 20):
            wanted = RougeScorer([kind]).score(REFERENCE, completion)[kind].fmeasure
            assert value(rouge(kind), completion) == pytest.approx(wanted)


@pytest.mark.parametrize("made", EVERY, ids=lambda made: made.name)
def test_the_reason_names_the_rule_of_reading(made: Any) -> None:
    """Which part of the completion was compared can be told from it."""
    assert made(completion=CLOSE, answer=REFERENCE).reason.endswith(" (whole)")
    tagged = made(completion=f"{FAR} <answer>{REFERENCE}</answer>", answer=REFERENCE)
    assert (pytest.approx(1.0), True) == (tagged.value, tagged.reason.endswith(" (answer_tag)"))


def test_sacrebleus_caches_do_not_grow() -> None:
    """Its tokenizers would keep the last 65,536 texts each."""
    from sacrebleu.tokenizers.tokenizer_13a import Tokenizer13a
    from sacrebleu.tokenizers.tokenizer_re import TokenizerRegexp

    for number in range(5):
        value(bleu, f"the cat number {number}", "the cat")
    for kind in (Tokenizer13a, TokenizerRegexp):
        assert 0 == kind.__call__.cache_info().currsize


def test_settings_change_the_figure() -> None:
    assert value(bleu(lowercase=True), REFERENCE.upper()) == pytest.approx(1.0)
    assert value(chrf(lowercase=True), REFERENCE.upper()) == pytest.approx(1.0)
    assert value(rouge(use_stemmer=True), "jumping", "jumped") == 1.0
    assert value(
        bleu(tokenize="zh"), "\u7b54\u6848\u662f\u5df4\u9ece", "\u7b54\u6848\u662f\u5df4\u9ece"
    ) == pytest.approx(1.0)


SCRIPTS = {
    "Chinese": ("公司 2023 年盈利 5 亿元", "公司 2023 年亏损", "2023 5"),
    "Japanese": ("東京オリンピックは2021年に開催された", "東京は2021年に開催", "2021"),
    "Thai": ("กรุงเทพมหานคร 10", "กรุงเทพ", "10"),
    "Khmer": ("ភ្នំពេញ 3", "ភ្នំ", "3"),
    "Korean": ("서울은 한국의 수도이다 1", "서울은 수도이다", "1"),
    "Russian": ("Версия 5 вышла", "Версия вышла", "5"),
    "Greek": ("Σε έκδοση 3 είναι έτοιμη", "έκδοση είναι έτοιμη", "3"),
    "Arabic": ("الإصدار 4 جاهز الآن", "الإصدار جاهز", "4"),
    "Hindi": ("संस्करण 7 तैयार है", "संस्करण तैयार", "7"),
    "Bengali": ("সংস্করণ 7 প্রস্তুত আছে", "সংস্করণ প্রস্তুত", "7"),
    "French": ("L'été précédent à Orléans", "été à Orléans", "L"),
    "mixed": ("iPhone 发布于秋季, 销量大增", "iPhone 发布于秋", "iPhone"),
}


@pytest.mark.parametrize("script", SCRIPTS)
@pytest.mark.parametrize("made", [bleu(max_order=1), rouge, rouge("rouge1"), token_f1], ids=repr)
def test_letters_of_every_script_count(made: Any, script: str) -> None:
    """The same text is 1.0, half of its letters or words less, and its digits or Latin words alone least."""
    reference, half, digits = SCRIPTS[script]
    assert value(made, reference, reference) == pytest.approx(1.0)
    scores = [value(made, text, reference) or 0.0 for text in (reference, half, digits)]
    assert sorted(scores, reverse=True) == scores
    assert len(set(scores)) == 3
    assert scores[2] <= 0.5


def test_rouge_skips_references_without_letters_and_digits() -> None:
    assert value(rouge, "text", "?!\u3002") is None


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: bleu(max_order=0), "max_order"),
        (lambda: bleu(tokenize="mecab"), "tokenize"),
        (lambda: chrf(char_order=0), "char_order"),
        (lambda: chrf(word_order=-1), "word_order"),
        (lambda: chrf(beta=0), "beta"),
        (lambda: rouge("rougeLsum"), "kind"),
    ],
)
def test_senseless_settings_are_named(make: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        make()


@pytest.mark.parametrize("made", [*EVERY, bleu(max_order=2), chrf(beta=1), rouge("rouge1")], ids=repr)
def test_they_travel(made: Any) -> None:
    assert value(pickle.loads(pickle.dumps(made)), CLOSE) == value(made, CLOSE)
