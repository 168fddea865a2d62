"""Rewards that compare text: what is the same, contained, chosen, alike or listed, and what only looks so."""

from __future__ import annotations

import pickle
import string
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest

from builtin_rewards.matching import (
    contains_all,
    contains_any,
    contains_none,
    edit_similarity,
    exact_match,
    fuzzy_match,
    multiple_choice,
    normalized_match,
    numeric_list,
    set_f1,
    token_f1,
)
from builtin_rewards.reading.normalisation import fold, normalise
from rewardkit import Rollout, Runtime

EVERY = (
    exact_match,
    normalized_match,
    contains_all,
    contains_any,
    contains_none,
    multiple_choice,
    fuzzy_match,
    edit_similarity,
    token_f1,
    numeric_list,
    set_f1,
)
GOLDS = {"multiple_choice": "B", "numeric_list": "[1, 2]"}
HOSTILE = {
    "empty": "",
    "blank": " \n\t ",
    "nul": "\0" * 1000,
    "surrogate": "\ud800 \udfff",
    "zero-width": "\u200b\u200c\ufeff",
    "rtl": "\u202e\u202d",
    "tags": "<answer></answer><answer>" * 1000,
    "deep": "[" * 10_000 + "]" * 10_000,
    "boxes": "\\boxed{" * 10_000,
    "letters": "a" * 1_000_000,
    "digits": "9" * 1_000_000,
    "commas": "1,000," * 50_000,
    "blanks": "not" + " " * 1_000_000,
    "brackets": "]" * 500_000 + "[" * 500_000,
    "wide": "\uff21\ufe0f" * 200_000,
}


def column(made: Any) -> str:
    return "forbidden" if made is contains_none else "answer"


def value(made: Any, completion: str, **columns: Any) -> float | None:
    score = made(completion=completion, **columns).value
    return None if score is None else float(score)


@pytest.mark.slow
@pytest.mark.parametrize("completion", HOSTILE.values(), ids=HOSTILE.keys())
@pytest.mark.parametrize("made", EVERY, ids=lambda made: made.name)
def test_hostile_completions_earn_nothing(made: Any, completion: str, full: bool) -> None:
    """No completion crashes a reward, and none without the answer is paid; the short form cuts out the middle."""
    completion = completion if full else completion[:100_000] + completion[-100_000:]
    scored = made(completion=completion, **{column(made): GOLDS.get(made.name, "Paris, France")})
    if made is contains_none and fold(completion).strip():
        assert scored.value == 1.0
    else:
        assert scored.value is not None
        assert scored.value <= 0.2
        assert scored.reason


@pytest.mark.parametrize("made", EVERY, ids=lambda made: made.name)
@pytest.mark.parametrize("answer", ["", None, "null", "  "], ids=["empty", "none", "null", "blank"])
def test_rows_without_an_answer_are_skipped(made: Any, answer: str | None) -> None:
    """A missing gold is not the completion's fault."""
    assert made(completion="anything", **{column(made): answer}).value is None


@pytest.mark.parametrize("made", EVERY, ids=lambda made: made.name)
def test_they_travel(made: Any) -> None:
    """Plain rewards pickle by name."""
    assert pickle.loads(pickle.dumps(made)).name == made.name


@pytest.mark.parametrize(
    ("made", "completion", "columns"),
    [
        (contains_all("cat"), "a cat", {}),
        (contains_none(["cat"]), "a dog", {}),
        (contains_any(terms=("cat", "dog"), words=False), "dogs", {}),
        (multiple_choice(letters="WXYZ"), "W", {"answer": "w"}),
        (fuzzy_match(0.5), "Pariss", {"answer": "Paris"}),
        (numeric_list(ordered=True, rel=0.1), "[1, 2]", {"answer": "[1, 2.1]"}),
    ],
    ids=lambda entry: getattr(entry, "name", None),
)
def test_adjusted_rewards_travel(made: Any, completion: str, columns: dict[str, Any]) -> None:
    """Settings go along."""
    travelled = pickle.loads(pickle.dumps(made))
    assert value(travelled, completion, **columns) == value(made, completion, **columns)
    assert value(made, completion, **columns) > 0.8


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: contains_all([]), "terms"),
        (lambda: contains_any(" "), "terms"),
        (lambda: contains_none(()), "terms"),
        (lambda: multiple_choice(letters="AA"), "letters"),
        (lambda: multiple_choice(letters="A1"), "letters"),
        (lambda: multiple_choice(first_index=-1), "first_index"),
        (lambda: fuzzy_match(1.5), "threshold"),
        (lambda: numeric_list(rel=-1.0), "rel"),
        (lambda: numeric_list(abs=float("inf")), "abs"),
    ],
)
def test_senseless_settings_are_named(make: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        make()


def test_importing_loads_no_library() -> None:
    """The extra's libraries come at the first use."""
    modules = "builtin_rewards.matching, builtin_rewards.overlap, builtin_rewards.language, builtin_rewards.groups"
    extras = "{'rapidfuzz', 'sacrebleu', 'rouge_score', 'nltk', 'langdetect', 'py3langid', 'numpy', 'pydantic'}"
    code = f"import {modules}, sys; assert not {extras} & set(sys.modules), {extras} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("\uff34\uff48\uff45  \uff35\uff33\uff01", "us"),
        ("Don\u2019t", "dont"),
        ("4\u200b2", "42"),
        ("\u22125", "-5"),
        ("5\u00b2", "5^2"),
        ("2\u00bd", "2 1/2"),
        ("H\u2082O", "h2o"),
        ("70\u2080", "70_0"),
        ("Cafe\u0301", "caf\u00e9"),
        ("\u00ab Paris \u00bb", "paris"),
        ("STRASSE", "strasse"),
        ("Stra\u00dfe", "strasse"),
        ("-5", "-5"),
        ("(-.5)", "-.5"),
        ("1,234,567.", "1234567"),
        ("1,23", "1,23"),
        ("3.5%", "3.5%"),
        ("10:30 / 1/2", "10:30 1/2"),
        ("C++ & C#", "c++ c#"),
        ("well-known", "wellknown"),
        ("$42", "42"),
        ("20\\%", "20%"),
        ("**The answer**", "answer"),
        ("A", "a"),
        ("the", "the"),
        ("?!", "?!"),
        ("", ""),
    ],
)
def test_normalising(text: str, plain: str) -> None:
    """Typography and case go; what makes another number or name stays."""
    assert normalise(text) == plain


@pytest.mark.parametrize(
    ("completion", "answer", "exact", "normal"),
    [
        ("Paris", "Paris", 1.0, 1.0),
        ("\n Paris \t", "Paris", 1.0, 1.0),
        ("paris.", "Paris", 0.0, 1.0),
        ("The Eiffel  Tower", "eiffel tower", 0.0, 1.0),
        ("**Paris**", "Paris", 0.0, 1.0),
        ("\uff30\uff41\uff52\uff49\uff53", "Paris", 0.0, 1.0),
        ("Pa\u200bris", "Paris", 0.0, 1.0),
        ("P\u0430ris", "Paris", 0.0, 0.0),
        ("not Paris", "Paris", 0.0, 0.0),
        ("Paris Paris", "Paris", 0.0, 0.0),
        ("Paris or Rome", "Paris", 0.0, 0.0),
        ("It is Paris", "Paris", 0.0, 0.0),
        ("42", "-42", 0.0, 0.0),
        ("42", "4.2", 0.0, 0.0),
        ("52", "5\u00b2", 0.0, 0.0),
        ("5\u2082", "52", 0.0, 0.0),
        ("12", "1/2", 0.0, 0.0),
        ("5", "5%", 0.0, 0.0),
        ("C", "C++", 0.0, 0.0),
        ("1,000", "1000", 0.0, 1.0),
        ("a", "A", 0.0, 1.0),
        ("the", "A", 0.0, 0.0),
        ("", "A", 0.0, 0.0),
        ("4", 4, 1.0, 1.0),
    ],
)
def test_matches(completion: str, answer: Any, exact: float, normal: float) -> None:
    assert value(exact_match, completion, answer=answer) == exact
    assert value(normalized_match, completion, answer=answer) == normal


WHOLE = (exact_match, normalized_match, fuzzy_match, edit_similarity, token_f1)


@pytest.mark.parametrize(
    "completion",
    [
        "<think>hm</think><answer>Eiffel Tower</answer>",
        "<think>Rome? <answer>Rome</answer></think>\n\nIt is this:\n<answer>\nEiffel Tower\n</answer>\n",
        "I think aloud. <answer>Eiffel Tower</answer><|im_end|>",
        "The tags <answer> and </answer> will hold it. <answer>Eiffel Tower</answer>",
        "<think>hm</think> Eiffel Tower",
        "Eiffel Tower<|eot_id|>",
        "Eiffel Tower</s>\n",
        "\ufeffEiffel Tower <|im_end|><|endoftext|>",
    ],
)
@pytest.mark.parametrize("made", WHOLE, ids=lambda made: made.name)
def test_the_final_answer_is_compared(made: Any, completion: str) -> None:
    """It stands after the thoughts, in the one pair of tags, before stop tokens."""
    assert value(made, completion, answer="Eiffel Tower") == 1.0


@pytest.mark.parametrize(
    "completion",
    [
        "Eiffel Tower <answer>Rome</answer>",
        "<think>Eiffel Tower</think><answer>Rome</answer>",
        "<answer>Eiffel Tower</answer><answer>Rome</answer>",
        "<answer>Rome</answer><answer>Eiffel Tower</answer>",
        "<answer>Eiffel Tower</answer> is wrong",
        "It is not <answer>Eiffel Tower</answer>",
        "It isn't the <answer>Eiffel Tower</answer>",
        "anything but <answer>Eiffel Tower</answer>",
        "</answer>Eiffel Tower<answer>",
        "<think>Eiffel Tower</think>",
        "<think>hm</think>Eiffel Tower</think>",
        "Eiffel Tower<|im_end|>Rome",
    ],
)
@pytest.mark.parametrize("made", WHOLE, ids=lambda made: made.name)
def test_other_ways_of_tagging_are_not_paid_in_full(made: Any, completion: str) -> None:
    """Words outside the tags do not count, nor do tags that differ, are denied or stand elsewhere."""
    assert value(made, completion, answer="Eiffel Tower") <= (0.0 if made in WHOLE[:3] else 0.8)


@pytest.mark.parametrize("made", [normalized_match, fuzzy_match, token_f1], ids=lambda made: made.name)
def test_latex_commands_for_text_are_not_part_of_an_answer(made: Any) -> None:
    for completion in (
        r"\boxed{\text{Eiffel Tower}}",
        r"\boxed{\textbf{Eiffel} \mathrm{Tower}}",
        r"\text{Eiffel Tower}",
    ):
        assert value(made, completion, answer="Eiffel Tower") == 1.0


@pytest.mark.parametrize(
    ("completion", "answer", "share"),
    [
        ("cats and a dog", ["cat", "dog"], 0.5),
        ("Cat, DOG", '["cat", "dog"]', 1.0),
        ("the cat", "cat", 1.0),
        ("concatenate", "cat", 0.0),
        ("c\u200bat", "cat", 1.0),
        ("new\nyork", "New York", 1.0),
        ("newyork", "New York", 0.0),
        ("cat cat cat", ["cat", "cat", "dog"], 0.5),
        ("it is not Paris", "Paris", 0.0),
        ("it isn't **Paris**", "Paris", 0.0),
        ("neither Rome nor Paris", ["Rome", "Paris"], 0.0),
        ("not equal to 42", "42", 0.0),
        ("No, Paris", "Paris", 1.0),
        ("not only Paris", "Paris", 1.0),
        ("Why not try Paris?", "Paris", 1.0),
        ("do not try Paris", "Paris", 0.0),
        ("not Rome but Paris", "Paris", 1.0),
        ("not Paris. Well, Paris", "Paris", 1.0),
        ("3.42", "42", 0.0),
        ("42.5", "42", 0.0),
        ("1,042", "42", 0.0),
        ("-42", "42", 0.0),
        ("42%", "42", 0.0),
        ("142", "42", 0.0),
        ("(42)", "42", 1.0),
        ("It is 42.", "42", 1.0),
        ("x=42", "42", 1.0),
        ("2020-42", "42", 1.0),
        ("C++ is", "C++", 1.0),
        ("I use C++.", "C", 0.0),
        ("I use C#.", "C", 0.0),
        ("grade A+.", "A", 0.0),
        ("C and D, A+B", ["C", "A"], 1.0),
        ("It is 5,172.", "5172", 1.0),
        ("It is 1234567.", "1,234,567", 1.0),
        ("It is 51,72.", "5172", 0.0),
        ("It is 5,172,000.", "5172", 0.0),
        ("It is 15,172.", "5172", 0.0),
        ("\u7b54\u6848\u662f\u5df4\u9ece\u3002", "\u5df4\u9ece", 1.0),
        ("P\u0430ris", "Paris", 0.0),
        ("\u00ac42 meters", "42 meters", 0.0),
        ("\u2260 Paris", "Paris", 0.0),
        ("x != 42", "42", 0.0),
    ],
)
def test_containing(completion: str, answer: Any, share: float) -> None:
    """Terms stand alone and are not negated."""
    assert value(contains_all, completion, answer=answer) == share
    assert value(contains_any, completion, answer=answer) == float(share > 0)


def test_containing_by_settings() -> None:
    assert value(contains_all(["not"]), "it is not so") == 1.0
    assert value(contains_all("cat", words=False), "concatenate") == 1.0
    assert value(contains_all("Cat", ignore_case=False), "cat") == 0.0
    assert value(contains_all("Paris", negated=True), "not Paris") == 1.0
    assert value(contains_all, "x", answer=[]) is None
    assert value(contains_all, "x") is None


@pytest.mark.parametrize(
    ("completion", "score"),
    [
        ("a dog", 1.0),
        ("a cat", 0.0),
        ("not a CAT", 0.0),
        ("c\u200bat", 0.0),
        ("concatenate", 1.0),
        ("", 0.0),
        (" ", 0.0),
    ],
)
def test_containing_none(completion: str, score: float) -> None:
    assert value(contains_none, completion, forbidden=["cat", "cow"]) == score


CITIES = ["Rome", "Paris", "London", "A city in Spain"]


@pytest.mark.parametrize(
    "completion",
    [
        "B",
        "b",
        " B \n",
        "(b)",
        "(B)",
        "[B]",
        "B.",
        "B)",
        "B:",
        "**B**",
        "**B.**",
        "__B__",
        "`B`",
        '"B"',
        "\uff22",
        "\u24b7",
        "\uff08\uff22\uff09",
        "Answer: B",
        "Answer: (B)",
        "**Answer:** B",
        "**Answer: B**",
        "Answer\uff1aB",
        "ANSWER: b",
        "Answer B",
        "Final answer: B.",
        "the answer is (B)",
        "The answer is B",
        "The answer is B.",
        "The answer is: **B**",
        "The correct answer is option B.",
        "The best choice is (B), because it is",
        "So the answer is therefore B",
        "The answer to this question is B",
        "the answer is b because rivers",
        "The answer is B, since A is wrong.",
        "The answer is B and A is not",
        "My answer would be B",
        "\\boxed{B}",
        "$\\boxed{B}$",
        "\\boxed{\\text{B}}",
        "\\boxed{\\textbf{(B)}}",
        "\\boxed{\\mathrm{B}}",
        "\\boxed{\\text{(B) Paris}}",
        "\\boxed {B}",
        "option B",
        "Option B is correct.",
        "(B) is the right answer",
        "B is the best",
        "I choose B",
        "I would pick option B.",
        "I'd go with B",
        "#### B",
        "<answer>B</answer>",
        "<answer> (B) </answer>",
        "<answer>The answer is B</answer>",
        "<ANSWER>b</ANSWER>",
        "<think>The answer is A. No: C?</think>\n<answer>B</answer>",
        "<think>A or C</think> B",
        "B. Paris",
        "B) Paris",
        "(B) Paris",
        "B: Paris",
        "B - Paris",
        "**B) Paris**",
        "B\nParis is the capital of France.",
        "Let us see. A is a city.\nB",
        "Options: A. Rome\nB. Paris\nC. London\n\nAnswer: B",
        "Paris",
        "paris.",
        "The answer is Paris.",
        "<answer>Paris</answer>",
        "\\boxed{\\text{Paris}}",
        "It follows that the box \\boxed{42} is none. The answer is B.",
        "The wrong answer is A. The right answer is B.",
        "It is not A. The answer is B.",
        "\u7b54\u6848\u662fB",
        "\u7b54\u6848\uff1aB\u3002",
        "\u9009B",
        "Therefore, B.",
        "I think it's B",
        "It's (B).",
        "B, because Paris lies on the Seine.",
        "B because it is",
        "B is the answer",
        "B is my answer.",
        "Paris is correct",
        "I think Paris is the answer.",
        "Not A, but B.",
        "A and D are too small. That leaves B.",
        "C is no city, which leaves only (B).",
        "The answer is the second option, B.",
        "Selected: B",
        "B\n\nA) is wrong, for it lies in Italy.\nC) is wrong too.",
        "Chosen: (B)",
        "B<|im_end|>",
    ],
)
def test_every_way_of_choosing(completion: str) -> None:
    """Honest writings of one letter all score 1.0, and 0.0 where another letter is right."""
    assert value(multiple_choice, completion, answer="B", choices=CITIES) == 1.0
    assert value(multiple_choice, completion, answer="C", choices=CITIES) == 0.0


@pytest.mark.parametrize(
    "completion",
    [
        "",
        "A cat sat on the mat",
        "A",
        "ABCD",
        "A B C D",
        "A, B, C, D",
        "A or B",
        "A\nB\nC\nD",
        "B\nC",
        "\\boxed{A} \\boxed{B}",
        "\\boxed{A, B}",
        "<answer>A</answer><answer>B</answer>",
        "<answer>B</answer> \\boxed{C}",
        "<answer>A or B</answer>",
        "The answer is A. The answer is B.",
        "The answer is A or B",
        "The answer is (B) or (C)",
        "Answer: A, B",
        "The answer is A/B",
        "B) London",
        "The answer is B. London",
        "\\boxed{B) Rome}",
        "The answer is not B",
        "The answer isn't B",
        "not B",
        "The wrong answer is B",
        "B is not correct",
        "B is wrong",
        "I would not choose B",
        "\u0412",
        "The answer is \u0412",
        "\u0392",
        "The answer is blue",
        "The answer is B12",
        "The answer is B-52",
        "The answer is E",
        "Z",
        "\\boxed{B",
        "<think>The answer is B</think>",
        "the answer is a thing",
        "Plan B",
        "Paris or Rome",
        "Rome, Paris, London",
        "Choose A, B, C or D.",
        "Vitamin B is good for you, I guess.",
        "Answer: A. Rome\nAnswer: B. Paris",
        "The answer is B is a common mistake.",
        "B is a common mistake",
        "B is the answer is a common mistake",
        "The answer is B, which is wrong.",
        "Not B is correct",
        "Not Paris is correct",
        "B is the answer? C",
        "Not B, but A.",
        "That leaves B and C.",
        "Nothing leaves B out",
        "*" * 1000 + "B" * 1000,
        "answer is " * 1000,
    ],
)
def test_what_is_no_choice(completion: str) -> None:
    """No letter, another letter, several letters, a denied letter and a look-alike score 0.0."""
    assert value(multiple_choice, completion, answer="B", choices=CITIES) == 0.0


@pytest.mark.parametrize(
    ("answer", "choices", "completion", "score"),
    [
        ("B", None, "B", 1.0),
        ("(b)", None, "B", 1.0),
        ("B.", None, "B", 1.0),
        ("1", CITIES, "B", 1.0),
        (1, CITIES, "B", 1.0),
        ("1", None, "B", 1.0),
        ("Paris", CITIES, "B", 1.0),
        ("J", None, "J", 1.0),
        ("Z", None, "Z", None),
        ("E", CITIES, "E", None),
        ("9", CITIES, "B", None),
        ("Berlin", CITIES, "B", None),
        ("A, B", CITIES, "A", None),
        ("1", ["1", "2"], "A", None),
        ("0", ["0", "2"], "A", 1.0),
        ("7", ["5", "7"], "B", 1.0),
        ("A", ["B", "A"], "A", None),
        ("A", '["x", "y"]', "A", 1.0),
        ("B. London", None, "B", 1.0),
        ("B. London", None, "C", 0.0),
        ("B. London", CITIES, "B", None),
        ("(B) Paris", CITIES, "B", 1.0),
        ("B", "A) Rome\nB) Paris\nC) London", "Paris", 1.0),
        ("Paris", "A. Rome\nB. Paris", "B", 1.0),
        ("B", ["A) Rome", "B) Paris"], "Paris", 1.0),
        ("B", "Rome or Paris", "B", None),
        ("same", ["same", "same"], "A", None),
        ("B) False", None, "B", 1.0),
        ("B", ["True", "False"], "\\boxed{(B) False}", 1.0),
        ("B", ["True", "False"], "\\boxed{(B) is false}", 0.0),
        ("A", [str(place) for place in range(20)], "A", 1.0),
    ],
)
def test_what_the_answer_column_may_hold(answer: Any, choices: Any, completion: str, score: float | None) -> None:
    """A letter, an index or a text; a row where that is none or two choices is skipped."""
    assert value(multiple_choice, completion, answer=answer, choices=choices) == score
    assert value(multiple_choice(first_index=1), "A", answer="1") == 1.0


@pytest.mark.parametrize("article", ["A", "I"])
def test_words_are_no_letters(article: str) -> None:
    """The English article and pronoun do not choose; as a bare letter they do."""
    for text in (f"{article} think so", f"The answer is {article} thing", f"Choose {article} way"):
        assert value(multiple_choice, text, answer=article) == 0.0
    for text in (
        article,
        f"The answer is {article}.",
        f"The answer is ({article})",
        f"The answer is {article} because",
    ):
        assert value(multiple_choice, text, answer=article) == 1.0


@pytest.mark.parametrize(
    ("completion", "answer", "least", "most"),
    [
        ("Paris, France", "paris france", 1.0, 1.0),
        ("Pariss", "Paris", 0.9, 0.92),
        ("900000000", "900,000,000", 1.0, 1.0),
        ("3250 metres", "3,250 metres", 1.0, 1.0),
        ("Rome", "Paris", 0.0, 0.0),
        ("born in 1943", "born in 1942", 0.0, 0.0),
        ("it was not the case in Rome", "it was the case in Rome", 0.0, 0.0),
        ("it wasn't the case in Rome", "it was the case in Rome", 0.0, 0.0),
        ("Paris " * 20, "Paris", 0.0, 0.0),
        ("Tchaikovsky", "Tchaikovski", 0.85, 0.99),
        ("The treaty ended the war in Europe is wrong.", "The treaty ended the war in Europe", 0.0, 0.0),
        ("The treaty ended the wrong war in Europe", "The treaty ended the war in Europe", 0.0, 0.0),
        ("\u202e42\u202c", "42", 0.0, 0.0),
        ("A\u03364\u0336", "A4", 0.0, 0.0),
        ("A\u03364\u0336", "A\u03364\u0336", 1.0, 1.0),
        ("x \u2260 four", "x =\u0338 four", 1.0, 1.0),
    ],
)
def test_fuzzy(completion: str, answer: str, least: float, most: float) -> None:
    """Slips are forgiven, other numbers and negations are not."""
    assert least <= (value(fuzzy_match, completion, answer=answer) or 0.0) <= most


def test_fuzzy_compares_an_answer_without_letters_as_it_stands() -> None:
    """What has nothing but marks keeps them, as in ``normalized_match``."""
    assert value(fuzzy_match, "x", answer="?!") == 0.0
    assert value(fuzzy_match, "?!", answer="?!") == 1.0


def test_edits() -> None:
    """One edit in five characters leaves four fifths."""
    assert value(edit_similarity, "Paris", answer=" Paris") == 1.0
    assert value(edit_similarity, "Parix", answer="Paris") == pytest.approx(0.8)
    assert value(edit_similarity, "", answer="Paris") == 0.0


def _squad_f1(completion: str, answer: str) -> float:
    """The formula as the SQuAD paper has it."""
    plain = str.maketrans("", "", string.punctuation)
    said, gold = (
        [word for word in text.lower().translate(plain).split() if word not in ("a", "an", "the")]
        for text in (completion, answer)
    )
    shared = (Counter(said) & Counter(gold)).total()
    if not shared:
        return 0.0
    precision, recall = shared / len(said), shared / len(gold)
    return 2 * precision * recall / (precision + recall)


@pytest.mark.parametrize(
    ("completion", "answer"),
    [
        ("the Eiffel Tower", "Eiffel Tower"),
        ("It is the Eiffel Tower, in Paris.", "Eiffel Tower"),
        ("tower tower tower", "Eiffel Tower"),
        ("Rome", "Eiffel Tower"),
        ("A man, a plan, a canal", "the man's canal"),
        ("", "Eiffel"),
    ],
)
def test_token_f1_is_squads(completion: str, answer: str) -> None:
    assert value(token_f1, completion, answer=answer) == pytest.approx(_squad_f1(completion, answer))


@pytest.mark.parametrize(
    ("completion", "answer", "score"),
    [
        ("[1, 2, 3]", [1, 2, 3], 1.0),
        ("[3, 1, 2]", "[1, 2, 3]", 1.0),
        ("1, 2 and 3", "1, 2, 3", 1.0),
        ("The roots are\n- 1\n- 2\n- 3", [1, 2, 3], 1.0),
        ("1. 10\n2. 20\n3. 30", [10, 20, 30], 1.0),
        ("1. 10\n2. 20\n\nAnd also:\n1. 30", [10, 20, 30], 1.0),
        ("01. 10\n02. 20", [10, 20], 1.0),
        ("2. 10\n3. 20", [10, 20], 2 / 3),
        ("first [9], then [1, 2, 3].", [1, 2, 3], 0.0),
        ("first [3, 2, 1], then [1, 2, 3].", [1, 2, 3], 1.0),
        ("\\{1, 2, 3\\}", [1, 2, 3], 1.0),
        ("<think>[7]</think> [1, 2, 3]", [1, 2, 3], 1.0),
        ("[1, 2]", [1, 2, 3], 0.8),
        ("[1, 1, 1]", [1, 2, 3], 1 / 3),
        ("[1, 1, 2]", [1, 1, 2], 1.0),
        ("[1, 2, 3, 4, 5, 6, 7, 8, 9]", [1, 2, 3], 0.5),
        ("[-1]", [1], 0.0),
        ("\u22121", [-1], 1.0),
        ("1/2", [0.5], 1.0),
        ("The total for May and June was $\\boxed{940}$ dollars.", [940], 1.0),
        ("Polly could stand $\\boxed{200}$ feet outside", [200], 1.0),
        ("The most that he could have is 12.", [12], 1.0),
        ("The false alarm rate is 12%.", [12], 1.0),
        ("Her wrong turn cost her 12 minutes.", [12], 1.0),
        ("It could be [3]", [3], 0.0),
        ("One might say [3]", [3], 0.0),
        ("It may also be 3", [3], 0.0),
        ("The wrong list is [1, 2]", [1, 2], 0.0),
        ("12 3/5", [12.6], 1.0),
        ("\\boxed{12 \\frac{3}{5}}", "12\\frac{3}{5}", 1.0),
        ("\\boxed{-1\\frac{1}{2}}", [-1.5], 1.0),
        ("-\\frac{1}{2}", [-0.5], 1.0),
        ("[1, 2 1/2]", [1, 2.5], 1.0),
        ("[1 1/2]", [1, 0.5], 0.0),
        ("1 2 1/2", [1, 2, 0.5], 1.0),
        ("1 3/2", [1, 1.5], 1.0),
        ("1,000", [1000], 1.0),
        ("[1,000]", [1000], 0.0),
        ("1e3", [1000], 1.0),
        ("not 42", [42], 0.0),
        ("42", 42, 1.0),
        ("[[1, 2], [3]]", [1, 2, 3], 1.0),
        ("none", [1], 0.0),
        ("1/0", [1], 0.0),
        ("<answer>[1, 2]</answer>", [1, 2], 1.0),
        ("It is $\\boxed{\\{1, 2\\}}$.", [1, 2], 1.0),
        ("<answer>\\boxed{[1, 2]}</answer>", [1, 2], 1.0),
        ("\\boxed{[1, 2]}, that is \\boxed{1, 2}", [1, 2], 1.0),
        ("I am not sure. The answer is [1, 2].", [1, 2], 1.0),
        ("There is nothing wrong here:\n\n[1, 2]", [1, 2], 1.0),
        ("\\boxed{\\frac{1}{2}, 3}", [0.5, 3], 1.0),
        ("\\boxed{[3]} [1, 2]", [1, 2], 0.0),
        ("\\boxed{[3]} \\boxed{[1, 2]}", [1, 2], 0.0),
        ("<answer>[3], [1, 2]</answer>", [1, 2], 0.0),
        ("<answer>none</answer> [1, 2]", [1, 2], 0.0),
        ("The answer is not [1, 2].", [1, 2], 0.0),
        ("The answer is not\n[1, 2].", [1, 2], 0.0),
        ("The answer isn\u2019t \\boxed{[1, 2]}", [1, 2], 0.0),
        ("Anything but 1, 2", [1, 2], 0.0),
        ("[1, 2] is wrong.", [1, 2], 0.0),
        ("1 and 2 meters is wrong", [1, 2], 0.0),
        ("1, 2 is false.", [1, 2], 0.0),
        ("1% and 2% is wrong", [1, 2], 0.0),
        ("1 and 2 do not work", [1, 2], 0.0),
        ("The answer is [1, 2]? No, it is not.", [1, 2], 0.0),
        ("I considered [1, 2] and rejected it.", [1, 2], 0.0),
        ("\\boxed{[1, 2]} is not the answer", [1, 2], 0.0),
        ("\u2260[1, 2]", [1, 2], 0.0),
        ("\\boxed{\\neq [1, 2]}", [1, 2], 0.0),
        ("[1\u0336, 2\u0336]", [1, 2], 0.0),
        ("un[1, 2]ish", [1, 2], 0.0),
        ("This is wrong: [1, 2]", [1, 2], 0.0),
        ("That is not right:\n1, 2", [1, 2], 0.0),
        ("Incorrect: [1, 2]", [1, 2], 0.0),
        ("This is the list: [1, 2]", [1, 2], 1.0),
        ("Here is a wrong list: [1, 2]", [1, 2], 0.0),
        ("The sorted list is [1, 2].", [1, 2], 1.0),
        ("It is not hard: [1, 2]", [1, 2], 1.0),
        ("[1, 2]" + " " * 100_000, [1, 2], 0.0),
        ("[3]. Wait, that is wrong. [1, 2]", [1, 2], 1.0),
        ("[1, 2]. Wait, that is wrong. [3]", [1, 2], 0.0),
        ("\\boxed{[3]}. Wait, that is wrong. \\boxed{[1, 2]}", [1, 2], 1.0),
        ("\\boxed{[1, 2]}. Wait, that is wrong.", [1, 2], 0.0),
        ("<answer>[3]</answer> is wrong. <answer>[1, 2]</answer>", [1, 2], 1.0),
        ("Not [3], but [1, 2].", [1, 2], 1.0),
        ("[1, 2]. Not [2, 1].", [1, 2], 0.0),
        ("not \\boxed{1, 2} \\boxed{[1, 2]}", [1, 2], 0.0),
        ("It is false that the roots are [1, 2].", [1, 2], 0.0),
        ("If the roots are 1, 2", [1, 2], 0.0),
        ("Here are some roots: [1, 2]", [1, 2], 1.0),
        ("Not [1, 2], but [3].", [1, 2], 0.0),
        ("[1, 2]\nNo, that is not right.", [1, 2], 0.0),
        ("<thinking>[3]</thinking>[1, 2]<|end|>", [1, 2], 1.0),
        ("<think>[1, 2]", [1, 2], 0.0),
        ("1", "no number", None),
        ("1", [], None),
        ("1", "1/0", None),
    ],
)
def test_numbers_listed(completion: str, answer: Any, score: float | None) -> None:
    """Order does not count, repetition and invention do."""
    got = value(numeric_list, completion, answer=answer)
    assert got == (None if score is None else pytest.approx(score))


def test_numbers_in_order_and_within_tolerance() -> None:
    assert value(numeric_list(ordered=True), "[1, 3, 2]", answer=[1, 2, 3]) == pytest.approx(1 / 3)
    assert value(numeric_list(abs=0.1), "[1.05]", answer=[1]) == 1.0
    assert value(numeric_list, "[1.05]", answer=[1]) == 0.0


@pytest.mark.parametrize(
    ("completion", "answer", "score"),
    [
        ("red, green, blue", ["red", "green", "blue"], 1.0),
        ("The colours are: Red, green and the blue.", ["red", "green", "blue"], 1.0),
        ("- red\n- green\n- blue", ["red", "green", "blue"], 1.0),
        ("1. Red\n2) Green\n3. Blue", "red; green; blue", 1.0),
        ("1. red\n2. green\n\nAnd also:\n1. blue", ["red", "green", "blue"], 1.0),
        ("0. red\n1. green\n2. blue", ["red", "green", "blue"], 1.0),
        ("01. red\n02. green", ["red", "green"], 1.0),
        ("2. red\n3. green\n4. blue", ["red", "green", "blue"], 1.0),
        ("1. red\n2. green\n2. blue", ["red", "green", "blue"], 1.0),
        ("1. warm:\n   1. red\n2. cold:\n   1. green", ["red", "green"], 2 / 3),
        ("1. warm\n  a. red\n  b. yellow\n2. cold", ["warm", "red", "yellow", "cold"], 1.0),
        ("A. Lincoln\nA. Johnson", ["A. Lincoln", "A. Johnson"], 1.0),
        ('["red", "green", "blue"]', ["red", "green", "blue"], 1.0),
        ("<think>white</think>red, green, blue", '["red", "green", "blue"]', 1.0),
        ("red, red, red", ["red", "green"], 2 / 3),
        ("\\boxed{\\frac{4}{11}}", ["\\frac{4}{11}"], 1.0),
        ("\\sqrt{2}", ["\\sqrt{2}"], 1.0),
        ("1\\frac{9}{10}", ["1\\frac{9}{10}"], 1.0),
        ("\\frac{4}{11}", ["\\frac{41}{1}"], 0.0),
        ("red", ["red", "green", "green"], 2 / 3),
        ("red, a, b, c, d, e, f, g", ["red"], 2 / 9),
        ("not red", ["red"], 0.0),
        ("\\boxed{\\text{red, green}}", ["red", "green"], 1.0),
        ("<answer>red, green</answer>", ["red", "green"], 1.0),
        ("not red, green", ["not red", "green"], 1.0),
        ("not red, green", ["red", "green"], 0.0),
        ("red, green is wrong", ["red", "green"], 0.0),
        ("anything but [red, green]", ["red", "green"], 0.0),
        ("[blue], [red, green]", ["red", "green"], 0.0),
        ("[red, green], [green, red]", ["red", "green"], 1.0),
        ("\\boxed{blue} [red, green]", ["red", "green"], 0.0),
        ("\u2260red, green", ["red", "green"], 0.0),
        ("Wrong answer: red, green", ["red", "green"], 0.0),
        ("This is wrong: red, green", ["red", "green"], 0.0),
        ("Incorrect: [red, green]", ["red", "green"], 0.0),
        ("", ["red"], 0.0),
        ("red", [], None),
        ("red", ["  "], None),
        ("12:30, 14:00", ["12:30", "14:00"], 1.0),
        ("12:30, 14:00", "12:30, 14:00", 1.0),
        ("At: 12:30, 14:00", ["12:30", "14:00"], 1.0),
        ("- **red**: warm\n- **green**: cold", ["red", "green"], 1.0),
        ("- **red:** warm\n- **green** - cold, and dark", ["red", "green"], 1.0),
        ("rock and roll, jazz", ["rock and roll", "jazz"], 1.0),
        ("Jazz and Rock and Roll", ["rock and roll", "jazz"], 1.0),
        ("Trinidad and Tobago; Washington, D.C.", ["Trinidad and Tobago", "Washington, D.C."], 1.0),
        ("[Washington, D.C., Paris]", ["Washington, D.C.", "Paris"], 1.0),
        ("Star Wars: A New Hope, Alien", ["Star Wars: A New Hope", "Alien"], 1.0),
        ("The colours are red, green, and blue.", ["red", "green", "blue"], 1.0),
        ("The colours are: red, green, and blue.", ["red", "green", "blue"], 1.0),
        ("Sure! red, green", ["red", "green"], 1.0),
        ("Sure, here they are: red, green", ["red", "green"], 1.0),
        ("a. red\nb. green\nc. blue", ["red", "green", "blue"], 1.0),
        ("(A) red\n(B) green", ["red", "green"], 1.0),
        ("red | green | blue", ["red", "green", "blue"], 1.0),
        ("赤、青", ["赤", "青"], 1.0),
        ("赤、青", "青、赤", 1.0),
        (
            "\u0623\u062d\u0645\u0631\u060c \u0623\u0632\u0631\u0642",
            ["\u0623\u062d\u0645\u0631", "\u0623\u0632\u0631\u0642"],
            1.0,
        ),
        ("both red and green", ["red", "green"], 1.0),
        ("The colours are both red and green", ["red", "green"], 1.0),
        ("both sides", ["both sides"], 1.0),
        ("red/green", ["red", "green"], 1.0),
        ("1/2, red", ["1/2", "red"], 1.0),
        ("| Colour |\n|---|\n| red |\n| green |", ["red", "green"], 1.0),
        ("All but red, green", ["red", "green"], 0.0),
        ("other than red, green", ["red", "green"], 0.0),
        ("The colours are not red, green", ["red", "green"], 0.0),
        ("The colours aren't red, green", ["red", "green"], 0.0),
        ("It is false that the colours are red, green", ["red", "green"], 0.5),
        ("Washington, D.C., Rome", ["Washington", "Rome"], 0.8),
        ("Washington\ue000 D.C.", ["Washington, D.C."], 0.0),
        ("[blue]. Wait, that is wrong. [red, green]", ["red", "green"], 1.0),
        ("[red, green]. Wait, that is wrong. [blue]", ["red", "green"], 0.0),
        ("[red, green] is wrong.", ["red", "green"], 0.0),
        ("Everything except red, green", ["red", "green"], 0.0),
        ("\nAll but red/green", ["red", "green"], 0.0),
        ("\nnot\nred, green", ["red", "green"], 0.0),
        ("It is wrong that they are [red, green]", ["red", "green"], 0.0),
        ("I doubt red, green", ["red", "green"], 0.0),
        ("<thinking>blue</thinking>red, green<|end|>", ["red", "green"], 1.0),
    ],
)
def test_items_listed(completion: str, answer: Any, score: float | None) -> None:
    got = value(set_f1, completion, answer=answer)
    assert got == (None if score is None else pytest.approx(score))


def test_in_the_runtime_columns_are_texts() -> None:
    """Workers find plain and adjusted rewards and read string columns."""
    rewards: Sequence[Any] = [multiple_choice, contains_any, numeric_list(abs=0.5).with_options(name="near")]
    row = {"answer": "1", "choices": '["x", "y"]'}
    with Runtime(rewards, workers=1) as runtime:
        batch = runtime.score([Rollout("?", "The answer is B", row), Rollout("?", "1.4", row)])
    assert batch.scores["multiple_choice"] == [1.0, 0.0]
    assert batch.scores["contains_any"] == [0.0, 0.0]
    assert batch.scores["near"] == [0.0, 1.0]


def test_long_runs_of_combining_marks_are_cut() -> None:
    """Thirty marks in a row stay; what becomes a mark counts as one."""
    assert len(fold("q" + "\u0315\u0300" * 20_000)) == 31
    assert len(fold("q" + "\uff9e\u0315" * 20_000)) == 31
    assert fold("e\u0301") == "\u00e9"


@pytest.mark.parametrize("sign", ["\u2260", "\u00ac", "=\u0338"])
def test_signs_deny_what_they_stand_before(sign: str) -> None:
    """An unequal sign says not; where the answer has it too, a blank behind it is a slip."""
    assert value(fuzzy_match, f"{sign}Paris", answer="Paris") == 0.0
    assert 0.9 < (value(fuzzy_match, f"{sign}Paris", answer=f"{sign} Paris") or 0.0) < 1.0


def test_choices_stand_in_the_last_characters() -> None:
    """A choice far before the end of a long text does not count."""
    assert value(multiple_choice, "Answer: A\n" + "no\n" * 20_000 + "Answer: B", answer="B") == 1.0
    assert value(multiple_choice, "Answer: B\n" + "no\n" * 20_000, answer="B") == 0.0


@pytest.mark.parametrize("made", [*WHOLE[:3], numeric_list])
@pytest.mark.parametrize("completion", ["\u202e42\u202c", "\u202d42\u202c", "\\boxed{\u202e42}"])
def test_what_is_shown_otherwise_than_it_is_written_is_no_answer(made: Any, completion: str) -> None:
    """A mark that overrides the direction shows 24 where 42 is written."""
    assert value(made, completion, answer="42") == 0.0
