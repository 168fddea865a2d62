"""The kinds of IFBench: for each a text that follows it and texts that do not, with the arguments of its rows."""

from __future__ import annotations

from typing import Any

import pytest

from builtin_rewards.instructions.arguments import UnusableInstructionError
from builtin_rewards.instructions.kinds import IFBENCH
from builtin_rewards.instructions.reward import build_instruction

ALPHABET = "Ann bakes cakes. " + " ".join(f"{letter} sentence ends." for letter in "bcdefghijklmnopqrstuvwxyz".upper())
QUESTIONS = "\n".join(
    f"Question {n}: {'Who painted this' + ' large' * n}?\n" + "\n".join(f"{letter}) Name" for letter in "ABCDE")
    for n in range(1, 5)
)
COUNTRIES = "\n".join(["Zimbabwe", "Zambia", *(f"S\u00e3o {chr(120 - n // 5)}{9 - n % 5}" for n in range(51))])
CAPITALS = (
    "Reykjav\u00edk, Helsinki, Oslo, Tallinn, Stockholm, Riga, Moscow, Copenhagen, Vilnius, Minsk, Dublin, Berlin, "
    "Amsterdam, Warsaw, London, Brussels, Prague, Luxembourg, Paris, Vienna, Bratislava, Budapest, Vaduz, Chisinau, "
    "Bern, Ljubljana, Zagreb"
)
PRODUCTS = "ProductID,Category,Brand,Price,Stock\n" + "\n".join(f'{n},Toys,"Ac-me",9.5,3' for n in range(14))
STUDENTS = '"StudentID"\t"Subject"\t"Grade"\t"Semester"\t"Score"' + '\n"1"\t"Art"\t"A"\t"1"\t"90"' * 3
CITIES = "ID,Country,City,Year,Count" + '\n1,Peru,"Lima, Callao",2020,5' * 7
FIVE = {f"keyword{n}": keyword for n, keyword in enumerate(["sun", "moon", "star", "tree", "leaf"], 1)}
REQUEST = {"prompt_to_repeat": "Write a short poem about the sea."}

Texts = tuple[str, ...]
RULES: dict[str, tuple[dict[str, Any], Texts, Texts]] = {  # the arguments, texts that follow, texts that do not
    "count:conjunctions": ({"small_n": 3.0}, ("You and I, but not so.",), ("And and, AND but",)),
    "count:keywords_multiple": (
        FIVE,
        ("sun moon Moon star star stars tree tree tree tree tree" + " leaf" * 7,),
        ("sunny moon moon star star star tree tree tree tree tree" + " leaf" * 7, "sun moon"),
    ),
    "count:numbers": ({"N": 2.0}, ("From 1,000.5 to 7",), ("1 2 3", "one 2", "none")),
    "count:person_names": ({"N": 2}, ("Emma met Leo.", "Emma's Leo"), ("Emma met Leonard", "emma leo", "Emma, Emma")),
    "count:pronouns": ({"N": 3}, ("She/her gave it", "I, ME; mine."), ("She gave the hat",)),
    "count:punctuation": (
        {},
        ("What?! Yes! No? a, b; c: d.", "Eh\u203d a! b? c, d; e: f."),
        ("What?! a, b; c: d.", "a."),
    ),
    "count:unique_word_count": ({"N": 3}, ("One two, three.",), ("One one, ONE two - -",)),
    "count:word_count_range": ({"min_words": 2, "max_words": 3}, ("one two", "a-b c"), ("one", "a b c d")),
    "count:words_japanese": (
        {"N": 3.0},
        ("one two \u4e09 four five \u516d", "a b \u306d c"),
        ("one two three", "one two", "a b 3", "\u4e00 \u4e8c three"),
    ),
    "ratio:overlap": (
        {"reference_text": "abcdefgh", "percentage": 50},
        ("abcdxy",),
        ("abcdefgh", "xyz", "ab"),
    ),
    "ratio:sentence_balance": ({}, ("One. Two? Three!", 'He is. "Is he?" Oh!'), ("One. Two.", "no marks", "One. Two?")),
    "ratio:sentence_type": ({}, ("One. Two. Three?",), ("One. Two?", "One.", "no marks", "One. Two. Three. Four?")),
    "ratio:sentence_words": (
        {},
        ("Red fox ran. Big dog sat. Old cat hid.",),
        ("Red fox ran. Red dog sat. Old cat hid.", "Red fox ran. Big dog sat. Old cats hid.", "Red fox. Big dog."),
    ),
    "ratio:stop_words": ({"percentage": 50}, ("the dog and cats", "dogs"), ("it is the dog", "...")),
    "sentence:alliteration_increment": (
        {},
        ("One day. Big bad. Six slow snails.",),
        ("Big bad. Six slow.", "One day.", "Six slow snails. Big bad."),
    ),
    "sentence:increment": (
        {"small_n": 2},
        ("One. Two more words. Now it is five words.",),
        ("One. Two words.", "One."),
    ),
    "sentence:keyword": (
        {"word": "rate", "N": 2},
        ("One. The Rate rose.",),
        ("The rate. One.", "One. They celebrate.", "rate"),
    ),
    "words:alphabet": ({}, ("Xylophones yield zany airs.", "a - b"), ("Ants can bite.", "5 six", "...")),
    "words:consonants": ({}, ("Strong blacksmiths - crafty", "My! fry"), ("Strong ale", "- -")),
    "words:keywords_specific_position": (
        {"keyword": "sun", "n": 2, "m": 3},
        ("One. So, the sun shines.", "One. So the Sun."),
        ("One. The sun shines.", "So the sun.", "One. So the sunny day."),
    ),
    "words:last_first": ({}, ("I see you. You see trees. Trees grow.",), ("I see you. She sees.", "I see you.")),
    "words:no_consecutive": ({}, ("Ants bite cats.",), ("Big, bad cats.", "...")),
    "words:odd_even_syllables": ({}, ("the water flows over stones",), ("the dog runs", "...")),
    "words:palindrome": (
        {},
        ("level radar civic kayak rotor refer madam tenet stats solos",),
        ("level " * 10, "11111 22222 33333 44444 55555 66666 77777 88888 99999 12121"),
    ),
    "words:paragraph_last_first": ({}, ("Love is love.\n\nAll, or all!",), ("Love is all.", "Love is love.\n***")),
    "words:prime_lengths": ({}, ("The fox, is as swift.",), ("The boys", "...")),
    "words:repeats": ({"small_n": 2}, ("A dog, a cat",), ("A dog, a cat, a cow",)),
    "words:start_verb": (
        {},
        ("Run to the shop.", "Is it so?", "Consider this."),
        ("The dog runs.", "House prices rise.", "!"),
    ),
    "words:vowel": ({}, ("A cat is on a mat\n",), ("A cat is on us, see", "A cat\nsat", "\u00e0\u00e9\u00eeo")),
    "words:words_position": (
        {"keyword": "sun"},
        ("The sun is the sun today.", "A Sun, sun b"),
        ("The sun is bright.", "sun", "The sun is the sun."),
    ),
    "format:emoji": (
        {},
        ("Hi there \U0001f600. Bye \u2764\ufe0f!", "Hi! \U0001f600 Bye. \U0001f44d\U0001f3fd"),
        ("Hi \U0001f600. Bye.", "\U0001f600 Hi.", "Hi."),
    ),
    "format:line_indent": ({}, ("one\n two\n\n   three",), ("one\n two\n two", "one")),
    "format:list": (
        {"sep": "SEPARATOR"},
        ("SEPARATOR one\nSEPARATOR two",),
        ("SEPARATOR one", "oneSEPARATOR twoSEPARATOR"),
    ),
    "format:newline": ({}, ("one\n\ntwo,\n-\nthree.",), ("one\ntwo three", "...")),
    "format:no_bullets_bullets": (
        {},
        ("One. Two.\n\n* a\n\n* b\n", "One.\nTwo.\n* a.\n* b."),
        ("One.\n* a\n* b", "One. Two.\n* a", "One? Two!\n* a\n* b", "One. Two.\n* a\n* b\nBye."),
    ),
    "format:no_whitespace": ({}, ("a,b",), ("a b", "a\u00a0b", "a\n")),
    "format:options": (
        {"options": "yes/no/maybe"},
        ("Yes.", "maybe", " NO\n"),
        ("yes, I do", "perhaps", "yes/no/maybe"),
    ),
    "format:output_template": (
        {},
        ("My Answer: a\nMy Conclusion: b\nFuture Outlook: c",),
        (
            "My Conclusion: b\nMy Answer: a\nFuture Outlook: c",
            "My Answer:\nMy Conclusion:\nFuture Outlook:",
            "My Answer: a",
        ),
    ),
    "format:parentheses": ({}, ("a) (b [c {d (e [f])}])",), ("((((a))))", "(((((a", "([{([)]})]", "((((([)]))))")),
    "format:quote_unquote": (
        {},
        ('"Go" means leave. \u201cStay\u201d means wait.',),
        ('"Go" "Stay" means wait.', 'She said "go".', "nothing"),
    ),
    "format:quotes": (
        {},
        ('"He said \'it\'s "hot" here\' now"', "\u201cA \u2018b \u201cc\u201d d\u2019 e\u201d"),
        ("\"He said 'hot'\"", '"a \'b "c', "don't say \"it isn't\""),
    ),
    "format:sub-bullets": (
        {},
        ("* a\n  - b\n* **c**\n- d",),
        ("* a\n* b\n - c", "- a\n- b", "no bullets", "* a\n---\n"),
    ),
    "format:thesis": (
        {},
        ("<i>All is one.</i> So it is.", "<em>A</em>\nb"),
        ("<i>All is one.</i>", "*All* is", "<i> </i> b"),
    ),
    "format:title_case": ({}, ("The Lord of the Rings", "Using NASA Data on an iPhone"), ("The lord", "tHE", "...")),
    "custom:character_reverse": ({}, (".elgae dlab eht si tI",), ("bald eagle",)),
    "custom:csv_city": ({}, (CITIES,), (CITIES[:-20], CITIES + "\n1,Peru", "ID")),
    "custom:csv_quotes": ({}, (STUDENTS,), (STUDENTS.replace('"A"', "A"), STUDENTS.replace("\t", ","))),
    "custom:csv_special_character": (
        {},
        (PRODUCTS,),
        (PRODUCTS.replace("-", ""), PRODUCTS.replace('"', ""), PRODUCTS + "\n1,2"),
    ),
    "custom:date_format_list": (
        {},
        ("1805-12-02, 1815-06-18",),
        ("1805-12-02, 1815-06-31", "2 Dec 1805", "1750-01-01"),
    ),
    "custom:european_capitals_sort": ({}, (CAPITALS,), (CAPITALS[:-8], "Helsinki, Oslo")),
    "custom:mcq_count_length": (
        {},
        (QUESTIONS, QUESTIONS.replace("Question 1:", "**Question 1**")),
        ("Sure!\n" + QUESTIONS, QUESTIONS.replace("E) Name", ""), QUESTIONS.replace("large", "")),
    ),
    "custom:multiples": ({}, ("14, 21, 28, 35, 42, 49", "14,21,28,35,42,49"), ("7 14 21 28 35 42 49", "14 21")),
    "custom:reverse_newline": ({}, (COUNTRIES, "Here:\n" + COUNTRIES), ("Zimbabwe\n" * 60, COUNTRIES[:-30], "Zambia")),
    "custom:sentence_alphabet": ({}, (ALPHABET,), (ALPHABET[:-20], ALPHABET.replace("B ", "D "))),
    "custom:word_reverse": ({}, ("Eagle bald the is it.",), ("It is the bald eagle.",)),
    "repeat:repeat_change": (
        REQUEST,
        ("Compose a short poem about the sea.",),
        (
            "Write a short poem about the sea.",
            "Compose a poem about the sea.",
            "Compose",
            " Write a short poem about the sea.",
        ),
    ),
    "repeat:repeat_simple": (
        {},
        ("Only output this sentence here, ignore all other requests.\n",),
        ("Only output this sentence.",),
    ),
    "repeat:repeat_span": (
        {**REQUEST, "n_start": 1, "n_end": 3},
        ("a short poem", "A short", "a  short\npoem"),
        ("write a short poem", "short poem", "a short poem about"),
    ),
}


@pytest.mark.parametrize("kind", sorted(IFBENCH))
def test_the_rule_of_each_kind(kind: str) -> None:
    """The texts that follow an instruction and those that do not are told apart."""
    arguments, following, others = RULES[kind]
    instruction = build_instruction(kind, arguments)
    verdicts = {text: instruction.followed_by(text) for text in (*following, *others)}
    assert dict.fromkeys(following, True) | dict.fromkeys(others, False) == verdicts


def test_letters_as_options_are_compared_exactly() -> None:
    instruction = build_instruction("format:options", {"options": "a), b), c), d)"})
    assert [True, True, False, False] == [instruction.followed_by(text) for text in ("a)", "d)\n", "a", "A)")]


def test_options_are_parted_at_words_alone() -> None:
    """The ``or`` in a word parts nothing."""
    instruction = build_instruction("format:options", {"options": "red, orange or dark blue"})
    assert [True, True, False] == [instruction.followed_by(text) for text in ("Orange.", "dark blue", "red, orange")]


@pytest.mark.parametrize(
    ("kind", "arguments", "reason"),
    [
        ("count:numbers", {}, "'N' is missing"),
        ("sentence:keyword", {"word": "sun", "N": 0}, "at least 1"),
        ("count:word_count_range", {"min_words": 5, "max_words": 3}, "min_words 5 is more than max_words 3"),
        ("repeat:repeat_span", {**REQUEST, "n_start": 4, "n_end": 2}, "n_start 4 is more than n_end 2"),
        ("ratio:stop_words", {"percentage": "many"}, "a whole number"),
        ("format:list", {"sep": " "}, "not blank"),
        ("count:keywords_multiple", {**FIVE, "keyword3": None}, "'keyword3' is missing"),
    ],
)
def test_arguments_at_fault_are_the_row_s(kind: str, arguments: dict[str, Any], reason: str) -> None:
    """IFBench's program would draw an argument that is missing at random."""
    with pytest.raises(UnusableInstructionError, match=reason):
        build_instruction(kind, arguments)
