"""The reward for verifiable instructions: each kind's rule, hostile completions, rows at fault."""

from __future__ import annotations

import pickle
import subprocess
import sys
from typing import Any

import pytest

from builtin_rewards.instructions import instructions
from builtin_rewards.instructions.arguments import UnusableInstructionError
from builtin_rewards.instructions.counts import count_capital_words, count_sentences
from builtin_rewards.instructions.kinds import IFEVAL, KINDS
from builtin_rewards.instructions.languages import text_language
from builtin_rewards.instructions.reward import build_instruction, loose_variants
from rewardkit import Rollout, Runtime, Status

ARGUMENTS: dict[str, Any] = {
    "keywords": ["sun", "moon"],
    "forbidden_words": ["bad", "no way"],
    "keyword": "tree",
    "relation": "at least",
    "frequency": 2,
    "letter": "q",
    "let_relation": "less than",
    "let_frequency": 2,
    "language": "de",
    "num_sentences": 2,
    "num_paragraphs": 2,
    "num_words": 4,
    "nth_paragraph": 2,
    "first_word": "Then",
    "num_placeholders": 2,
    "postscript_marker": "P.S.",
    "num_bullets": 2,
    "num_highlights": 2,
    "section_spliter": "SECTION",
    "num_sections": 2,
    "prompt_to_repeat": "Say hello.",
    "end_phrase": "Any questions?",
    "capital_relation": "at least",
    "capital_frequency": 2,
    "N": 2,
    "n": 2,
    "m": 3,
    "small_n": 2,
    "min_words": 3,
    "max_words": 5,
    "percentage": 20,
    "reference_text": "a tree and the sun",
    "options": "yes/no/maybe",
    "sep": "!?!?",
    "word": "tree",
    "n_start": 1,
    "n_end": 3,
    **{f"keyword{number}": f"tree{number}" for number in range(1, 6)},
}
"""Arguments for every kind; a kind ignores those that it does not have."""

ENGLISH = "this is a plain sentence of the english language, and here is another one that follows it."

RULES: list[tuple[str, str, bool]] = [
    ("keywords:existence", "The sun and the MOON", True),
    ("keywords:existence", "suns, _moon_", True),
    ("keywords:existence", "Sunlight and the MOON", False),
    ("keywords:existence", "the sun alone", False),
    ("keywords:existence", "s\u200bun and moon", False),
    ("keywords:frequency", "a tree, Trees", True),
    ("keywords:frequency", "a tree", False),
    ("keywords:frequency", "The tree's leaves, the trees' shade", True),
    ("keywords:frequency", "a tree in the street", False),
    ("keywords:forbidden_words", "a badge of honour", True),
    ("keywords:forbidden_words", "BAD.", False),
    ("keywords:forbidden_words", "badly, then bad", False),
    ("keywords:forbidden_words", "b\u200bad", False),
    ("keywords:forbidden_words", "b\u0430d", False),
    ("keywords:forbidden_words", "\uff42\uff41\uff44", False),
    ("keywords:forbidden_words", "in no way", False),
    ("keywords:forbidden_words", "no_way bad_ _bad badly", True),
    ("keywords:forbidden_words", "it is so bad-looking", False),
    ("keywords:letter_frequency", "Quick", True),
    ("keywords:letter_frequency", "Quick queen", False),
    ("keywords:letter_frequency", "Quick \uff51ueen", False),
    ("language:response_language", "Das ist ein ganz normaler Satz in deutscher Sprache.", True),
    ("language:response_language", ENGLISH, False),
    ("language:response_language", "12345 ...", False),
    ("length_constraints:number_sentences", "One is here. Two is there.", True),
    ("length_constraints:number_sentences", "Dr. Smith met Mr. Jones at 3.30 p.m. today", False),
    ("length_constraints:number_words", "one two, three-four", True),
    ("length_constraints:number_words", "one two three", False),
    ("length_constraints:number_paragraphs", "one\n***\ntwo", True),
    ("length_constraints:number_paragraphs", "***\none\n***\ntwo\n***", True),
    ("length_constraints:number_paragraphs", "one\n***\n\n***\ntwo", False),
    ("length_constraints:number_paragraphs", "one\n\ntwo", False),
    ("length_constraints:nth_paragraph_first_word", 'First.\n\n"then, came the rest', True),
    ("length_constraints:nth_paragraph_first_word", "First.\n\nThenceforth", False),
    ("length_constraints:nth_paragraph_first_word", "First.\n\nThen\n\nThird", False),
    ("length_constraints:nth_paragraph_first_word", "First.\n\n\n\nThen", False),
    *(
        ("length_constraints:nth_paragraph_first_word", f"First.\n\n{start} it came", True)
        for start in (
            "Then;",
            "Then\u2014",
            "\u201cThen\u201d",
            "**Then**",
            "Then\u2026",
            "(then)",
            "\u00a1Then!",
            "Then\u2019s",
        )
    ),
    ("length_constraints:nth_paragraph_first_word", "First.\n\nThen-and-there", False),
    ("length_constraints:nth_paragraph_first_word", "First.\n\n# Then", False),
    ("detectable_content:number_placeholders", "[name] lives at [address]", True),
    ("detectable_content:number_placeholders", "[name]", False),
    ("detectable_content:number_placeholders", "[] and [ ] and [\n]", False),
    ("detectable_content:postscript", "Bye\n\nP. S. I forgot", True),
    ("detectable_content:postscript", "Bye\n\nPS I forgot", False),
    ("detectable_format:number_bullet_lists", "* one\n  - two\n**bold**", True),
    ("detectable_format:number_bullet_lists", "* one\n* two\n* three", False),
    *(
        ("detectable_format:number_bullet_lists", f"{rule}\n- one\n- two\n\n{rule}", True)
        for rule in ("---", "----", "***", "* * *", "- - -", "-- Ann", "|---|---|", "-", "\u2014 Ann")
    ),
    ("detectable_format:constrained_response", "I think: My answer is maybe.", True),
    ("detectable_format:constrained_response", "My answer is perhaps.", False),
    ("detectable_format:constrained_response", "My answer is yes. My answer is no.", False),
    ("detectable_format:number_highlighted_sections", "*one* and **two**", True),
    ("detectable_format:number_highlighted_sections", "*one* and ** ** and **", False),
    ("detectable_format:multiple_sections", "SECTION 1\nfoo\nSECTION2\nbar", True),
    ("detectable_format:multiple_sections", "SECTION 1\nfoo\nsection 2", False),
    ("detectable_format:multiple_sections", "SECTION I\nfoo\n**SECTION II**\nbar", True),
    ("detectable_format:multiple_sections", "SECTION IV: foo\nSECTION V. bar", True),
    ("detectable_format:multiple_sections", "SECTION I think\nSECTION IVORY", False),
    ("detectable_format:json_format", '{"a": [1, 2.5, null]}', True),
    ("detectable_format:json_format", '```json\n{"a": 1}\n```', True),
    ("detectable_format:json_format", "1" * 10_000, True),
    ("detectable_format:json_format", 'Here it is: {"a": 1}', False),
    ("detectable_format:json_format", "{'a': 1}", False),
    ("detectable_format:title", "<<poem of joy>>\nRoses", True),
    ("detectable_format:title", "<< >> and <<>>>", False),
    ("detectable_format:title", "<<poem\n>>", False),
    ("combination:two_responses", "one\n******\ntwo", True),
    ("combination:two_responses", "one\n******\none", False),
    ("combination:two_responses", "one\n******\ntwo\n******\nthree", False),
    ("combination:repeat_prompt", " say hello. Hello!", True),
    ("combination:repeat_prompt", "Hello! Say hello.", False),
    ("startend:end_checker", 'Bye. any questions?"\n', True),
    ("startend:end_checker", "Any questions? No.", False),
    ("startend:quotation", '\n"All of it."\n', True),
    ("startend:quotation", '"', False),
    ("startend:quotation", "\u201cAll of it.\u201d", True),
    ("startend:quotation", "\u201eAll of it.\u201c", True),
    ("startend:quotation", "\u2018All of it.\u2019", False),
    ("startend:end_checker", "Bye. Any questions?\u201d", True),
    ("startend:quotation", '"Some" of it', False),
    ("change_case:english_capital", ENGLISH.upper(), True),
    ("change_case:english_capital", ENGLISH.upper() + " a", False),
    ("change_case:english_lowercase", ENGLISH, True),
    ("change_case:english_lowercase", ENGLISH.capitalize(), False),
    *(("change_case:english_capital", text, True) for text in ("NO", "NO SMOKING", "YES", "STOP", "HELLO WORLD!")),
    *(("change_case:english_capital", text, False) for text in ("BONJOUR MES AMIS", "RAUCHEN VERBOTEN", "42", "NO x")),
    *(("change_case:english_lowercase", text, True) for text in ("no problem at all", "etchings", "ok.")),
    *(("change_case:english_lowercase", text, False) for text in ("je ne sais pas", "wie geht es dir", "grazie mille")),
    *(("language:response_language", text, True) for text in ("Kein Problem.", "Rauchen verboten", "Ja.")),
    *(
        ("language:response_language", text, False)
        for text in ("No problem at all, my friend.", "je ne sais pas", "\u043d\u0435\u0442")
    ),
    ("change_case:english_lowercase", "das ist ein ganz normaler satz in deutscher sprache.", False),
    ("change_case:capital_word_frequency", "NASA and the U.S. sent it", True),
    ("change_case:capital_word_frequency", "NASA sent It", False),
    ("punctuation:no_comma", "no commas; none", True),
    ("punctuation:no_comma", "one, two", False),
    ("punctuation:no_comma", "one\uff0c two", False),
    ("punctuation:no_comma", "\u0648\u0627\u062d\u062f\u060c", False),
]


@pytest.mark.parametrize(("kind", "text", "followed"), RULES, ids=[f"{kind}-{n}" for n, (kind, *_) in enumerate(RULES)])
def test_the_rule_of_each_kind(kind: str, text: str, followed: bool) -> None:
    """The strict verdict is the rule's; a blank completion follows nothing."""
    score = instructions(completion=text, instruction_id_list=[kind], kwargs=[ARGUMENTS])
    assert score.value == float(followed), score.reason
    assert score.metrics == {kind: float(followed)}


@pytest.mark.parametrize("loose", [False, True], ids=["strict", "loose"])
def test_what_shows_nothing_follows_nothing(loose: bool) -> None:
    """Invisible characters and stop tokens are blank; a comma in the thoughts is none of the answer's."""
    made = instructions(loose=loose)
    columns = {"instruction_id_list": ["punctuation:no_comma"], "kwargs": [{}]}
    for text in ("", " \n", "\u200b", "\0\u00a0", "\ufeff", "<|im_end|>", "<think>none", "<think>none</think>"):
        assert 0.0 == made(completion=text, **columns).value
    for text in ("...", "none<|im_end|>", "\ufeffnone", "<think>a, b</think> none"):
        assert 1.0 == made(completion=text, **columns).value


def test_every_kind_has_its_rules_tested() -> None:
    """The table has a text that follows and one that does not, for each of the 25 kinds."""
    assert {kind for kind, _, followed in RULES if followed} == set(IFEVAL)
    assert {kind for kind, _, followed in RULES if not followed} == set(IFEVAL)
    assert len(IFEVAL) == 25


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("", 0),
        (" \n", 0),
        ("no end", 1),
        ("One. Two? Three! four", 4),
        ("Wait... what?! Yes!!!", 2),
        ('"Go." He went.', 2),
        ("(It is so.) And so.", 2),
        ("Mr. J. Bach, e.g. at 3.14 a.m. in the U.S. army", 1),
        ("It is in the U.S. The end", 2),
        ("1. first point. 2. second point", 2),
        ("1. First point. 2. Second point", 4),
        ("**Bold.** More.", 2),
        ("see example.com/a.b and v1.2.3", 1),
    ],
)
def test_sentences(text: str, count: int) -> None:
    """The splitter ends sentences where punkt does."""
    assert count_sentences(text) == count


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("", 0),
        ("I'm here", 1),
        ("I\u2019m here", 1),
        ("IT'S", 2),
        ("CANNOT", 2),
        ("NASA's AI-POWERED X-15, (ESA)", 4),
        ("Nasa 123 -- ...", 0),
    ],
)
def test_capital_words(text: str, count: int) -> None:
    """Words in capitals are counted as nltk's word tokenizer divides them."""
    assert count_capital_words(text) == count


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("startend:quotation", 'Sure!\n"All of it."'),
        ("startend:end_checker", "Bye. Any questions?\nHere you are."),
        ("detectable_format:json_format", 'Sure:\n{"a": 1}\nHope this helps!'),
        ("combination:repeat_prompt", "**Say hello.** Hello!"),
        ("punctuation:no_comma", "Sure, here:\nnone"),
    ],
)
def test_loose_forgives_an_introduction_a_farewell_and_stars(kind: str, text: str) -> None:
    """What the strict check refuses for one line too many or for bold type, the loose one takes."""
    row = {"instruction_id_list": [kind], "kwargs": [ARGUMENTS]}
    assert instructions(completion=text, **row).value == 0.0
    assert instructions(loose=True)(completion=text, **row).value == 1.0


def test_loose_variants_are_the_eight_of_the_paper() -> None:
    """Duplicates are left out; a text of one line has no text without it."""
    assert list(loose_variants("*a*\nb\n*c*")) == ["*a*\nb\n*c*", "b\n*c*", "*a*\nb", "b", "a\nb\nc", "b\nc", "a\nb"]
    assert list(loose_variants("*a*")) == ["*a*", "", "a"]
    assert list(loose_variants("a\nb")) == ["a\nb", "b", "a", ""]


def test_share_metrics_and_reason() -> None:
    """The score is the share followed, the metrics are by kind, the reason names what was not followed."""
    ids = ["en:punctuation:no_comma", "length_constraints:number_words", "length_constraints:number_words"]
    row = {
        "instruction_id_list": ids,
        "kwargs": [
            {},
            {"num_words": 2, "relation": "at least", "language": None},
            {"num_words": 9.0, "relation": "at least"},
        ],
    }
    score = instructions(completion="three short words", **row)
    assert score.value == pytest.approx(2 / 3)
    assert score.metrics == {"punctuation:no_comma": 1.0, "length_constraints:number_words": 0.5}
    assert score.reason == (
        "2 of 3 instructions followed; not followed: "
        "length_constraints:number_words (num_words=9.0, relation='at least')"
    )
    assert instructions(all_or_nothing=True)(completion="three short words", **row).value == 0.0
    long = instructions(all_or_nothing=True)(completion="one two three four five six seven eight nine", **row)
    assert long.value == 1.0


def test_columns_of_text_and_without_arguments() -> None:
    """Columns may be JSON text; ``kwargs`` may be left out, or hold nulls, where no kind needs any."""
    ids = '["punctuation:no_comma"]'
    assert instructions(completion="a", instruction_id_list=ids, kwargs='[{"num_words": null}]').value == 1.0
    assert instructions(completion="a", instruction_id_list=ids).value == 1.0
    assert instructions(completion="a", instruction_id_list=ids, kwargs=[None]).value == 1.0


@pytest.mark.parametrize(
    ("ids", "kwargs", "words"),
    [
        (None, None, "no instructions"),
        ([], [], "no instructions"),
        (["punctuation:no_comma"], [{}, {}], "1 instructions and 2 objects"),
        (["punctuation:no_dots"], [{}], "unknown instruction 'punctuation:no_dots'"),
        (["es:punctuation:no_comma"], [{}], "unknown instruction"),
        (["\ud800"], [{}], "unknown instruction"),
        (["keywords:existence"], [{}], "'keywords' is missing"),
        (["keywords:existence"], None, "'keywords' is missing"),
        (["keywords:existence"], [{"keywords": None}], "'keywords' is missing"),
        (["keywords:existence"], [{"keywords": []}], "a list of texts"),
        (["keywords:existence"], [{"keywords": "sun"}], "a list of texts"),
        (["keywords:existence"], [{"keywords": ["sun", " "]}], "not blank"),
        (["keywords:forbidden_words"], [{"forbidden_words": [1]}], "not blank"),
        (["keywords:letter_frequency"], [{**ARGUMENTS, "letter": "qu"}], "one character"),
        (["keywords:frequency"], [{**ARGUMENTS, "relation": "about"}], "'less than' or 'at least'"),
        (["keywords:frequency"], [{**ARGUMENTS, "relation": ["about"]}], "'less than' or 'at least'"),
        (["keywords:frequency"], [{**ARGUMENTS, "frequency": "two"}], "a whole number"),
        (["keywords:frequency"], [{**ARGUMENTS, "frequency": 2.5}], "a whole number"),
        (["keywords:frequency"], [{**ARGUMENTS, "frequency": float("nan")}], "a whole number"),
        (["keywords:frequency"], [{**ARGUMENTS, "frequency": True}], "a whole number"),
        (["keywords:frequency"], [{**ARGUMENTS, "frequency": -1}], "a whole number"),
        (["language:response_language"], [{"language": "xx"}], "a language that can be told"),
        (
            ["length_constraints:nth_paragraph_first_word"],
            [{**ARGUMENTS, "nth_paragraph": 3}],
            "3 is more than num_paragraphs 2",
        ),
        (["startend:end_checker"], [{"end_phrase": ""}], "not blank"),
    ],
)
def test_rows_at_fault_are_skipped(ids: Any, kwargs: Any, words: str) -> None:
    """It is not the completion's fault, so it is no 0; the reason says what is wrong."""
    score = instructions(completion="Any text.", instruction_id_list=ids, kwargs=kwargs)
    assert score.value is None
    assert words in (score.reason or "")


HOSTILE = {
    "empty": "",
    "blank": " \n\t\u00a0",
    "nul": "\0" * 1_000,
    "surrogates": "\ud800\udfff" * 500,
    "tags": "<answer></answer>",
    "deep": "[" * 10_000,
    "stars": "*" * 10_001,
    "open brackets": "[<<" * 10_000,
    "no white space": "a" * 100_000,
    "lines": "\n" * 100_000 + "x",
    "sentences": "Ab. " * 2_000 + "? " * 2_000,
}


@pytest.mark.cases(10)
@pytest.mark.parametrize("completion", HOSTILE.values(), ids=HOSTILE.keys())
@pytest.mark.parametrize("loose", [False, True])
def test_hostile_completions_are_scored(completion: str, loose: bool) -> None:
    """Every kind gives a verdict on every text, and blank ones follow nothing."""
    ids = sorted(KINDS)
    score = instructions(loose=loose)(completion=completion, instruction_id_list=ids, kwargs=[ARGUMENTS] * len(ids))
    assert score.value is not None
    assert 0.0 <= score.value < 1.0
    if not completion.strip():
        assert score.value == 0.0
    assert score.reason is not None
    score.reason.encode()


MEGABYTE = {
    "open brackets": "[",
    "open titles": "<<",
    "stars": "*",
    "blank lines": "\n",
    "blanks": "a" + " " * 99,
    "sentence ends": "a.)",
    "deep JSON": '{"a":',
    "addresses": "a@",
    "combining marks": "\u0315\u0300",
    "surrogates": "\udc80",
}


@pytest.mark.cases(4)
@pytest.mark.slow
@pytest.mark.parametrize("unit", MEGABYTE.values(), ids=MEGABYTE.keys())
def test_a_megabyte_is_scored(unit: str, full: bool) -> None:
    """No checker is worse than linear: one that were would take hours for 1 MB, and minutes for the short form."""
    size = 1_000_000 if full else 60_000
    completion = (unit * (size // len(unit) + 1))[:size]
    ids = sorted(KINDS)
    score = instructions(loose=True)(completion=completion, instruction_id_list=ids, kwargs=[ARGUMENTS] * len(ids))
    assert score.value is not None


def test_the_language_is_told_the_same_way_each_time() -> None:
    """langdetect's draws have a seed of their own, and its global one is left alone."""
    from langdetect import DetectorFactory

    text = "ja no si, une table de l'an due"
    assert len({text_language(text) for _ in range(5)}) == 1
    assert DetectorFactory.seed is None
    assert text_language("12 34") is None


def test_instructions_are_built_from_read_only_arguments() -> None:
    """Building neither changes the arguments nor takes an unknown id."""
    given = {"num_words": 2, "relation": "less than"}
    assert build_instruction("length_constraints:number_words", given).followed_by("one")
    assert given == {"num_words": 2, "relation": "less than"}
    with pytest.raises(UnusableInstructionError):
        build_instruction("length_constraints", given)


def test_unknown_settings_are_refused() -> None:
    with pytest.raises(TypeError, match="loose"):
        instructions(lax=True)


def test_the_reward_travels() -> None:
    """Plain and adjusted, it is the same after pickling."""
    adjusted = instructions(loose=True, all_or_nothing=True).with_options(name="strictest")
    for made in (instructions, adjusted):
        again = pickle.loads(pickle.dumps(made))
        assert (again.name, again.version) == (made.name, made.version)
    text = 'Sure!\n"All, of it."'
    row = {"instruction_id_list": ["startend:quotation"], "kwargs": [{}]}
    assert pickle.loads(pickle.dumps(adjusted))(completion=text, **row).value == 1.0


def test_in_a_run_a_bad_row_costs_itself_alone() -> None:
    """A row is scored, skipped or failed by itself."""
    rows: list[dict[str, Any]] = [
        {"instruction_id_list": '["punctuation:no_comma"]', "kwargs": "[{}]"},
        {"instruction_id_list": ["punctuation:none"], "kwargs": [{}]},
        {"instruction_id_list": "not a list", "kwargs": [{}]},
    ]
    with Runtime([instructions], workers=1) as runtime:
        batch = runtime.score([Rollout("p", "no commas", row) for row in rows])
    outcomes = batch.outcomes["instructions"]
    assert [one.status for one in outcomes] == [Status.SCORED, Status.SKIPPED, Status.FAILED]


def test_importing_it_loads_no_language_library() -> None:
    """langdetect is loaded by the first instruction that needs it."""
    code = "import sys, builtin_rewards.instructions; print('langdetect' in sys.modules)"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=300)
    assert shown.stdout.strip() == "False"
