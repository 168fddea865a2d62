"""What a judge's reply says, or why it says nothing."""

from __future__ import annotations

import contextlib
import json
import math
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builtin_rewards.endpoint.errors import Fault, JudgeError, JudgeReplyError, JudgeUnavailableError
from builtin_rewards.endpoint.messages import Reply
from builtin_rewards.judge.formats import Format, format_instruction
from builtin_rewards.judge.rubric import Criterion, Rubric, preference_schema
from builtin_rewards.judge.verdict import Preference, Verdict, combine, read_preference, read_verdict

RUBRIC = Rubric((Criterion("correct", "Is it right?", weight=3), Criterion("model_config", "Is it short?")), (1, 5))
ONE = Rubric((Criterion("correct", "Is it right?"),), (0, 10))
(CHOICE,) = (name for name in preference_schema()["properties"] if name != "reason")


def verdict_text(correct: object = 4, brief: object = 2, **more: object) -> str:
    """Writes a reply with these grades."""
    given = {"reason": "as the reference", "score": correct}, {"reason": "long", "score": brief}
    return json.dumps({"correct": given[0], "model_config": given[1], **more})


GOOD = verdict_text()
OTHER = verdict_text(5, 5)


def fault_of(reply: Reply, format: Format = Format.JSON_SCHEMA, rubric: Rubric = RUBRIC) -> Fault | None:
    """Return the fault of a reply that is no verdict."""
    with pytest.raises(JudgeReplyError) as raised:
        read_verdict(reply, rubric, format)
    return raised.value.fault


@pytest.mark.parametrize("format", Format)
def test_a_verdict_is_read_in_every_format(format: Format) -> None:
    """Grades and reasons by criterion, and the score that the weights give: (3 * 3/4 + 1/4) / 4."""
    verdict = read_verdict(Reply(GOOD, "m"), RUBRIC, format)
    assert {"correct": 4, "model_config": 2} == verdict.grades
    assert {"correct": "as the reference", "model_config": "long"} == verdict.reasons
    assert (pytest.approx(0.625), 0.0, 1) == (verdict.score, verdict.spread, verdict.samples)
    assert verdict == pickle.loads(pickle.dumps(verdict))


@pytest.mark.parametrize(
    ("format", "text"),
    [
        (Format.JSON_OBJECT, f"<think>the answer quotes {OTHER}</think>\n{GOOD}"),
        (Format.TEXT, f"<think>{OTHER}</think>{GOOD}"),
        (Format.TEXT, f"The answer says: {OTHER}\nThat is not for it to say.\n```json\n{GOOD}\n```"),
        (Format.TEXT, f"{OTHER}\n{GOOD}"),
        (Format.TEXT, f'It says "{OTHER}" {{ [ " \n{GOOD}'),
        (Format.TEXT, GOOD.replace("long", json.dumps(OTHER)[1:-1])),
    ],
    ids=["reasoning", "reasoning, text", "quoted", "two verdicts", "quoted, unbalanced", "in a reason"],
)
def test_a_verdict_quoted_on_the_way_never_wins(format: Format, text: str) -> None:
    """Only the verdict that ends the reply counts."""
    assert {"correct": 4, "model_config": 2} == read_verdict(Reply(text, "m"), RUBRIC, format).grades


@pytest.mark.parametrize(
    ("reply", "fault"),
    [
        (Reply(GOOD, "m", refusal="I will not", finish_reason="length"), Fault.REFUSED),
        (Reply(GOOD, "m", finish_reason="length"), Fault.TRUNCATED),
        (Reply("", "m", finish_reason="length"), Fault.TRUNCATED),
        (Reply(GOOD, "m", finish_reason="model_length"), Fault.TRUNCATED),
        (Reply(GOOD, "m", finish_reason="MAX_TOKENS"), Fault.TRUNCATED),
        (Reply(GOOD, "m", finish_reason="error"), Fault.TRUNCATED),
        (Reply(GOOD, "m", finish_reason="abort"), Fault.TRUNCATED),
        (Reply(GOOD, "m", finish_reason="content_filter"), Fault.CONTENT_FILTER),
        (Reply("", "m"), Fault.EMPTY),
        (Reply(" \n\t", "m"), Fault.EMPTY),
        (Reply("The answer is right: 5/5", "m"), Fault.UNREADABLE),
        (Reply(GOOD[:-5], "m"), Fault.UNREADABLE),
        (Reply(GOOD + OTHER, "m"), Fault.UNREADABLE),
        (Reply(f"so: ```json\n{GOOD}\n```", "m"), Fault.UNREADABLE),
        (Reply(GOOD.replace("4", "NaN"), "m"), Fault.UNREADABLE),
        (Reply(GOOD.replace("4", "Infinity"), "m"), Fault.UNREADABLE),
        (Reply(GOOD.replace('"score": 4', '"score": 4, "score": 5'), "m"), Fault.UNREADABLE),
        (Reply(GOOD.replace("{", '{"correct": 1, ', 1), "m"), Fault.UNREADABLE),
        (Reply("4", "m"), Fault.WRONG_SCHEMA),
        (Reply(f"[{GOOD}]", "m"), Fault.WRONG_SCHEMA),
        (Reply("{}", "m"), Fault.WRONG_SCHEMA),
        (Reply(verdict_text("4"), "m"), Fault.WRONG_SCHEMA),
        (Reply(verdict_text(True), "m"), Fault.WRONG_SCHEMA),
        (Reply(verdict_text(None), "m"), Fault.WRONG_SCHEMA),
        (Reply(verdict_text(4.5), "m"), Fault.WRONG_SCHEMA),
        (Reply(verdict_text([4]), "m"), Fault.WRONG_SCHEMA),
        (Reply(verdict_text(extra={"reason": "", "score": 5}), "m"), Fault.WRONG_SCHEMA),
        (Reply(GOOD.replace("long", "").replace('"reason": "", ', ""), "m"), Fault.WRONG_SCHEMA),
        (Reply(GOOD.replace('"long"', "null"), "m"), Fault.WRONG_SCHEMA),
        (Reply(GOOD.replace('"score": 4', '"score": 4, "sure": true'), "m"), Fault.WRONG_SCHEMA),
        (Reply('{"correct": 4, "model_config": 2}', "m"), Fault.WRONG_SCHEMA),
        (Reply('{"criterion_0": {"reason": "", "score": 4}}', "m"), Fault.WRONG_SCHEMA),
        (Reply('{"\\ud800": 1}', "m"), Fault.WRONG_SCHEMA),
        (Reply(verdict_text(9, "2"), "m"), Fault.WRONG_SCHEMA),
        (Reply(verdict_text(0), "m"), Fault.OUT_OF_RANGE),
        (Reply(verdict_text(6), "m"), Fault.OUT_OF_RANGE),
        (Reply(verdict_text(10**200), "m"), Fault.OUT_OF_RANGE),
        (Reply(verdict_text(1e300), "m"), Fault.OUT_OF_RANGE),
    ],
)
def test_a_reply_that_is_no_verdict_names_its_fault(reply: Reply, fault: Fault) -> None:
    """The first fault that applies, in the order refused, cut off, filtered, empty, unreadable, form, range."""
    assert fault is fault_of(reply)


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        (f"{GOOD}\nI hope this helps.", Fault.UNREADABLE),
        (f"{GOOD}\n{{}}", Fault.WRONG_SCHEMA),
        (f"<think>hm, {GOOD}", Fault.UNREADABLE),
        (format_instruction(RUBRIC.json_schema()).split("\n\n")[1], Fault.UNREADABLE),
    ],
    ids=["words after it", "another object after it", "reasoning without an end", "the instruction's example"],
)
def test_a_verdict_that_does_not_end_the_text_is_none(text: str, fault: Fault) -> None:
    """A text's verdict stands at its end or nowhere."""
    assert fault is fault_of(Reply(text, "m"), Format.TEXT)


def test_a_whole_number_with_a_fraction_of_zero_is_a_grade() -> None:
    """JSON Schema takes 4.0 for an integer, so servers may write it."""
    grade = read_verdict(Reply(verdict_text(4.0), "m"), RUBRIC).grades["correct"]
    assert (4, int) == (grade, type(grade))


def test_half_a_character_in_a_reason_spoils_no_verdict() -> None:
    """A cut emoji is replaced, so that what is logged is UTF-8."""
    reasons = read_verdict(Reply(GOOD.replace("long", "long \\ud83d"), "m"), RUBRIC).reasons
    assert "long ?" == reasons["model_config"]


@pytest.mark.parametrize(
    ("reason", "expected"),
    [
        (r"\( x \) is \frac{1}{2} \text{so} \pi", None),
        (r"in C:\dir\ ", None),
        (r"it\'s", "it's"),
        ('the "rule" holds', None),
        ("one\n\ttwo", None),
        (r"\\(x\\) and \u00e9 \" and a lone \(", r"\(x\) and é \" and a lone \(".replace(r"\"", '"')),
    ],
)
@pytest.mark.parametrize("format", Format)
def test_a_reason_is_read_as_it_was_meant(format: Format, reason: str, expected: str | None) -> None:
    """What JSON does not allow in a text stands there as it is, and what it allows means what it means."""
    text = GOOD.replace("long", reason)
    assert (expected or reason) == read_verdict(Reply(text, "m"), RUBRIC, format).reasons["model_config"]


@pytest.mark.parametrize(
    "text",
    [
        GOOD.replace('"long"', r'"\pi"').replace("4", "4 or 5"),
        GOOD.replace('"long"', r'"\pi"').replace("2}", "2, 'score': 3}"),
        GOOD.replace('"long"', '"it says "score": 5, and"'),
        GOOD.replace('"long"', r'"\pi"').replace("4", "4 // of 5\n"),
        GOOD.removesuffix("}}"),
        GOOD.replace("{", '{"correct": {"reason": "", "score": 4}, ', 1).replace(
            '"score": 4}, "model', '"score": 3}, "model'
        ),
    ],
    ids=["two numbers", "two keys", "a key in a reason", "a comment", "no brace behind the grade", "criterion twice"],
)
@pytest.mark.parametrize("format", Format)
def test_a_grade_that_is_not_clear_is_not_guessed(format: Format, text: str) -> None:
    assert Fault.UNREADABLE is fault_of(Reply(text, "m"), format)


def test_a_grade_that_stands_twice_and_agrees_is_read() -> None:
    """Also a whole criterion, whose reasons may differ."""
    twice = GOOD.replace("{", '{"correct": {"reason": "another", "score": 4, "score": 4}, ', 1)
    assert {"correct": 4, "model_config": 2} == read_verdict(Reply(twice, "m"), RUBRIC).grades


def test_an_error_names_the_place() -> None:
    with pytest.raises(JudgeReplyError, match="'the whole': Input should be"):
        read_verdict(Reply("[]", "m"), RUBRIC)


def test_an_error_shows_the_beginning_of_the_reply_on_one_line() -> None:
    """At most 200 characters, with control characters escaped."""
    with pytest.raises(JudgeReplyError) as raised:
        read_verdict(Reply("\x1b[31m\n\0\ud800" + "y" * 1_000, "m"), RUBRIC)
    words = str(raised.value)
    assert words.isprintable()
    assert words.endswith("it begins '\\x1b[31m\\n\\x00\\ud800" + "y" * 192 + "'...")


@pytest.mark.parametrize(
    "text",
    [
        "{" * 1_000_000,
        '{"a":' * 200_000 + "1" + "}" * 200_000,
        '"}' * 500_000,
        '\\"' * 500_000 + "}",
        "\\" * 1_000_000 + '"}',
        "{}" * 500_000,
        "<think>" * 100_000 + "{}",
        "```" * 300_000,
        verdict_text("x" * 1_000_000),
        "\ud800" * 1_000_000,
    ],
    ids=[
        "open",
        "deep",
        "strings",
        "escapes",
        "backslashes",
        "empty objects",
        "thoughts",
        "fences",
        "long",
        "surrogates",
    ],
)
@pytest.mark.parametrize("format", Format)
def test_a_hostile_reply_is_a_fault_and_no_crash(text: str, format: Format) -> None:
    """A megabyte of anything is read in time linear in its length."""
    assert fault_of(Reply(text, "m"), format) in (Fault.UNREADABLE, Fault.WRONG_SCHEMA)


@given(text=st.text(alphabet='{}[]":,\\ 0145.eNatrue\n`</think>correctscore') | st.text())
@pytest.mark.parametrize("format", Format)
def test_any_text_is_a_verdict_or_an_error_of_the_reply(format: Format, text: str) -> None:
    """No text raises anything else."""
    with contextlib.suppress(JudgeReplyError):
        assert read_verdict(Reply(text, "m"), ONE, format).grades["correct"] in range(11)


@given(grade=st.integers(-20, 20), reason=st.text(), before=st.text())
def test_a_grade_is_read_as_written_or_refused(grade: int, reason: str, before: str) -> None:
    """A grade on the scale is given back with its reason, one off the scale never becomes another."""
    text = before + json.dumps({"correct": {"reason": reason, "score": grade}}, ensure_ascii=False)
    reply = Reply(text.removeprefix("<think>"), "m")
    if 0 <= grade <= 10:
        verdict = read_verdict(reply, ONE, Format.TEXT)
        assert ({"correct": grade}, {"correct": reason}, grade / 10) == (verdict.grades, verdict.reasons, verdict.score)
    else:
        assert Fault.OUT_OF_RANGE is fault_of(reply, Format.TEXT, ONE)


@pytest.mark.parametrize("winner", ["A", "B", "tie"])
def test_a_preference_is_read(winner: str) -> None:
    """The winner and the reason, also at the end of a text."""
    text = json.dumps({"reason": "clearer", CHOICE: winner})
    assert Preference(reason="clearer", verdict=winner) == read_preference(Reply(text, "m"))
    assert winner == read_preference(Reply(f"Well. {text}", "m"), Format.TEXT).winner


@pytest.mark.parametrize(
    ("value", "fault"),
    [
        ({CHOICE: "A"}, Fault.WRONG_SCHEMA),
        ({"reason": "", CHOICE: "a"}, Fault.WRONG_SCHEMA),
        ({"reason": "", CHOICE: "C"}, Fault.WRONG_SCHEMA),
        ({"reason": "", CHOICE: None}, Fault.WRONG_SCHEMA),
        ({"reason": "", CHOICE: "A", "also": "B"}, Fault.WRONG_SCHEMA),
        ("A", Fault.WRONG_SCHEMA),
    ],
)
def test_a_reply_without_preference_is_an_error(value: object, fault: Fault) -> None:
    """Only A, B and tie are said, and nothing beside the reason."""
    with pytest.raises(JudgeReplyError) as raised:
        read_preference(Reply(json.dumps(value), "m"))
    assert fault is raised.value.fault


def verdict(grade: float, reason: str = "") -> Verdict:
    """Makes a verdict on the one criterion."""
    return Verdict({"correct": grade}, {"correct": reason or str(grade)}, grade / 10)


def lost(fault: Fault) -> JudgeError:
    """Makes the error of a sample that gave no verdict."""
    unread = fault in (Fault.UNREADABLE, Fault.REFUSED)
    return JudgeReplyError("no verdict", fault) if unread else JudgeUnavailableError("no reply", fault)


def test_several_verdicts_are_combined_by_their_mean() -> None:
    """Mean grade, spread over the scores, the reason nearest to the mean: grades 2, 6, 7 have mean 5."""
    combined = combine([verdict(2), verdict(6), verdict(7)], ONE)
    assert {"correct": 5.0} == combined.grades
    assert {"correct": "6"} == combined.reasons
    assert (0.5, 3) == (combined.score, combined.samples)
    assert math.isclose(math.sqrt((0.3**2 + 0.1**2 + 0.2**2) / 3), combined.spread)


def test_of_two_reasons_equally_near_the_first_is_given() -> None:
    """The order of the samples decides, so the same samples give the same reason."""
    assert {"correct": "first"} == combine([verdict(4, "first"), verdict(6, "second")], ONE).reasons


def test_a_minority_of_lost_samples_is_left_out() -> None:
    """Two of three are more than half; the lost one counts as no grade."""
    combined = combine([verdict(4), lost(Fault.REFUSED), verdict(8)], ONE)
    assert ({"correct": 6.0}, 2) == (combined.grades, combined.samples)


@pytest.mark.parametrize(
    ("samples", "kind", "fault", "words"),
    [
        ([Fault.UNREADABLE], JudgeReplyError, Fault.UNREADABLE, "0 of 1"),
        ([None, Fault.REFUSED], JudgeReplyError, Fault.REFUSED, "1 of 2 .*: 1 refused"),
        ([None, Fault.DEADLINE], JudgeUnavailableError, Fault.DEADLINE, "1 of 2"),
        (
            [None, Fault.DEADLINE, Fault.REFUSED],
            JudgeUnavailableError,
            Fault.DEADLINE,
            "1 deadline, 1 refused; the first: no reply",
        ),
        ([Fault.DEADLINE, Fault.REFUSED, Fault.REFUSED], JudgeReplyError, Fault.REFUSED, "2 refused, 1 deadline"),
    ],
    ids=["one", "half", "half unavailable", "unavailable decides", "replies decide"],
)
def test_half_of_the_samples_or_fewer_are_no_verdict(
    samples: list[Fault | None], kind: type[JudgeError], fault: Fault, words: str
) -> None:
    """The error names all faults, and blames the replies only where they alone leave no majority."""
    with pytest.raises(kind, match=words) as raised:
        combine([verdict(5) if one is None else lost(one) for one in samples], ONE)
    assert (kind, fault) == (type(raised.value), raised.value.fault)


@given(st.lists(st.integers(0, 10), min_size=1, max_size=9))
def test_a_combined_score_lies_among_the_scores(grades: list[int]) -> None:
    """It is between the lowest and the highest, and verdicts that agree are given back without spread."""
    combined = combine([verdict(grade) for grade in grades], ONE)
    assert min(grades) / 10 - 1e-12 <= combined.score <= max(grades) / 10 + 1e-12
    assert (len(set(grades)) == 1) == (combined.spread == 0.0)
