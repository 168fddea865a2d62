"""The language in which completions are chosen: what it reads, and what it refuses in one line."""

from __future__ import annotations

import hypothesis
import pytest
from hypothesis import strategies

from rewardkit.errors import RecordError
from rewardkit.record.conditions import Condition, conditions_of, unknown_name


@pytest.mark.parametrize(
    ("text", "conditions"),
    [
        ("", []),
        ("judge<0.2", [("judge", "<", "0.2")]),
        ("  judge  >=  -1e3 ", [("judge", ">=", "-1e3")]),
        ("judge==1", [("judge", "=", "1")]),
        ("judge≤1 AND step≠3", [("judge", "<=", "1"), ("step", "!=", "3")]),
        ("my column=easy", [("my column", "=", "easy")]),
        ("a.b.version=2", [("a.b.version", "=", "2")]),
        ("level=hard and judge@2<.5", [("level", "=", "hard"), ("judge@2", "<", ".5")]),
        ('"a<b"="x and y"', [("a<b", "=", "x and y")]),
        ("`say \"it's\"`=' <b> '", [('say "it\'s"', "=", " <b> ")]),
        ("answer=it's 5\" long", [("answer", "=", "it's 5\" long")]),
        ('answer="five" or six', [("answer", "=", '"five" or six')]),
        (r"answer=\boxed{x = 3}", [("answer", "=", r"\boxed{x = 3}")]),
        ("band=1 and sand=2", [("band", "=", "1"), ("sand", "=", "2")]),
        ("answer=", [("answer", "=", "")]),
    ],
)
def test_conditions_are_read(text: str, conditions: list[tuple[str, str, str]]) -> None:
    """Names and values with spaces, dots, signs and quotes, joined by `and`."""
    assert [Condition(*parts) for parts in conditions] == conditions_of(text)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("judge", "expected a name, a sign and a value, such as judge<0.2"),
        ("<0.2", "expected a name, a sign and a value"),
        ("judge=<0.2", "no sign '=<'; there are <=, >=, !=, =, <, >"),
        ("judge<<0.2", "no sign '<<'"),
        ("judge<>0.2", "no sign '<>'"),
        ("judge=~x", "no sign '=~'"),
        ("judge!3", "no sign '!'"),
        ('"judge<0.2', 'the quote " does not end'),
        ("level='easy", "the quote ' does not end"),
        ("level=salt and pepper", "a value that has `and` is quoted"),
        ("level=hard and ", "expected a condition behind `and`"),
    ],
)
def test_what_is_no_condition_is_refused_in_a_line(text: str, reason: str) -> None:
    """With what is expected."""
    with pytest.raises(RecordError) as refusal:
        conditions_of(text)
    assert reason in str(refusal.value)
    assert "\n" not in str(refusal.value)


PART = strategies.text(min_size=1).filter(lambda text: not all(quote in text for quote in "\"'`"))


@hypothesis.given(strategies.lists(strategies.tuples(PART, strategies.sampled_from(["=", "!=", "<", ">="]), PART)))
def test_a_condition_is_read_as_it_is_written(parts: list[tuple[str, str, str]]) -> None:
    """Whatever stands in names and values."""
    conditions = [Condition(*part) for part in parts]
    assert conditions == conditions_of(" and ".join(condition.text for condition in conditions))


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("judg", "nothing is called 'judg'; near: judge"),
        ("JUDGE", "near: judge"),
        ("my colum", 'near: "my col=umn"'),
        ("zzz", "nothing is called 'zzz'; there are judge, tokens, \"my col=umn\""),
    ],
)
def test_a_name_that_is_not_there_is_answered_with_those_near(name: str, message: str) -> None:
    """Or with all, as a condition has them."""
    assert message in str(unknown_name(name, ["judge", "tokens", "my col=umn"]))
