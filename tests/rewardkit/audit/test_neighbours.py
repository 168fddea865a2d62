"""Wrong answers near a gold: what is tried, and what is left out since it might be right."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from rewardkit.audit.gold import Gold, gold_of, mentions, share_parts
from rewardkit.audit.neighbours import neighbours, unfinished
from rewardkit.audit.parts import PathCoverage, changed_parts, changes
from rewardkit.audit.rows import choose_rows, row_of
from rewardkit.audit.talk import talk_text
from rewardkit.rows.reader import Row

CALL = {"name": "add", "arguments": {"a": 1, "b": [2, 3]}}


def _gold(value: Any) -> Gold:
    gold = gold_of(value)
    assert gold is not None
    return gold


NEAR = {
    "tolerance": ("1250", {"1251", "1249", "1251.25", "1262.5", "1312.5", "1375", "1125", "1187.5"}),
    "swapped digits": ("317", {"137", "371", "713"}),
    "sorted digits": ("42", {"24"}),
    "a digit like another": ("42", {"92", "47"}),
    "separators": ("1,250", {"2150", "1520", "1312.5"}),
    "decimals": ("0.75", {"0.57", "0.7575", "0.825", "7.50"}),
    "a fraction": ("3/4", {"63/80", "7/4", "8/4"}),
    "a negative number": ("-17", {"-71", "-18", "17", "-170", "-17.17"}),
    "a unit": ("42 meters", {"24 meters", "44.1 meters", "42 feet"}),
    "a decimal with a unit": ("2.5 kg", {"3.5 kg", "5.2 kg", "25.0 kg"}),
    "an amount": ("$15", {"$51", "$15.75", "€15"}),
    "a year": ("12 May 1905", {"21 May 1905", "12 May 9105", "12 May 1906"}),
    "a formula": ("\\frac{12}{5}", {"\\frac{21}{5}"}),
    "a letter": ("B", {"C"}),
}
"""By what it is about: a gold, and neighbours that are tried."""

NOT_NEAR = {
    "rounds to the gold": ("0.75", {"0.75075"}),
    "is paid by closeness as well": ("1250", {"1205"}),
    "the same set": ("\\{1,2,3\\}", {"\\{2,1,3\\}", "\\{3,2,1\\}"}),
    "the gold": ("11", {"11"}),
    "zero": ("0", {"0", "0.0", "-0"}),
    "a typing error of a word": ("Paris", {"Pairs", "Parris"}),
    "the number without its unit": ("5 \\text{ cm}", {"5"}),
}


@pytest.mark.parametrize(("text", "expected"), NEAR.values(), ids=NEAR)
def test_near_answers_are_tried(text: str, expected: set[str]) -> None:
    """Numbers a share off, digits in another order or changed, in the gold's own unit."""
    assert set() == expected - {one.text for one in neighbours(_gold(text))}


@pytest.mark.parametrize(("text", "unexpected"), NOT_NEAR.values(), ids=NOT_NEAR)
def test_what_might_be_right_is_not_tried(text: str, unexpected: set[str]) -> None:
    """Nor what is evidence of two flaws at once."""
    assert set() == unexpected & {one.text for one in neighbours(_gold(text))}


@pytest.mark.parametrize("text", ["13", "42", "128", "2.5", "3/4", "0", "1", "-8"])
def test_sums_not_worked_out_are_the_gold_and_do_not_say_it(text: str) -> None:
    """Each has the gold's value, an operation, and not the gold itself."""
    gold = _gold(text)
    found = unfinished(gold)
    for one in found:
        told = one.text.replace("^", "**").replace("{", "(").replace("}", ")")
        assert eval(told) == float(gold.number or 0), one
        assert not mentions(one.text, gold)
    assert found
    assert [] == unfinished(_gold("Paris")) == unfinished(_gold("5 km"))
    assert "a power" not in {one.name for one in unfinished(_gold("100"))}


def test_one_thing_of_an_object_is_changed_at_a_time() -> None:
    """Each value, each key, each item; of calls the name, a call missing and one made twice."""
    found = [(one.rule, one.value) for one in changes({"a": 1, "b": {"c": True}, "d": ["x", "y"]})]
    for expected in (
        ("value", {"a": 2, "b": {"c": True}, "d": ["x", "y"]}),
        ("value", {"a": 1, "b": {"c": False}, "d": ["x", "y"]}),
        ("key", {"b": {"c": True}, "d": ["x", "y"]}),
        ("key", {"a": 1, "b": {}, "d": ["x", "y"]}),
        ("key", {"a": 1, "b": {"c": True}, "d": ["x", "y"], "something_else": 1}),
        ("item", {"a": 1, "b": {"c": True}, "d": ["y"]}),
        ("value", {"a": 1, "b": {"c": True}, "d": ["xx", "y"]}),
    ):
        assert expected in found
    called = [(one.rule, one.value) for one in changes([CALL, CALL])]
    for expected in (
        ("call", [CALL]),
        ("call", [CALL, CALL, CALL]),
        ("call", [{**CALL, "name": "addx"}, CALL]),
        ("value", [{**CALL, "arguments": {"a": 2, "b": [2, 3]}}, CALL]),
    ):
        assert expected in called
    assert all(json.dumps(one.value) != json.dumps([CALL, CALL]) for one in changes([CALL, CALL]))


def test_changes_are_bounded() -> None:
    """Of a large object some parts are changed, each kind of change having its share."""
    found = changes({str(n): list(range(100)) for n in range(100)})
    assert len(found) <= 24
    assert {"value", "key", "item"} == {one.rule for one in found}
    rules = [one.rule for one in changes({str(n): n for n in range(100)})]
    assert {"value": 12, "key": 12} == {rule: rules.count(rule) for rule in rules}


@pytest.mark.parametrize("fields", [3, 10, 40], ids="{} fields".format)
def test_every_path_of_large_objects_is_changed_over_the_rows(fields: int) -> None:
    """Each value is changed and each key lost and renamed in some row, in whichever order the objects have them."""
    coverage, chooser = PathCoverage(), random.Random(fields)
    names = [f"field_{n}" for n in range(fields)]
    tried: set[str] = set()
    for row in range(12):
        record = dict.fromkeys(chooser.sample(names, fields), row) | {"parts": [{"price": row, "size": 1}] * 30}
        tried |= {one.spot for one in coverage.changes(record)}
    count = coverage.count()
    assert ((), count.total) == (count.untried, count.tried)
    for name in (*names, "parts[].price", "parts[].size"):
        assert {f"{name} is another", f"{name} is missing", f"{name} is renamed"} <= tried


def test_what_too_few_rows_leave_untried_is_counted() -> None:
    """The count names the changes that no row tried."""
    coverage = PathCoverage()
    coverage.changes({str(n): n for n in range(30)})
    count = coverage.count()
    assert (24, 91, 67) == (count.tried, count.total, len(count.untried))


def test_numbers_anywhere_in_a_text_are_changed() -> None:
    """Over several texts the last number is changed as the first is."""
    changed = {"first": 0, "last": 0}
    for text in (f"from {n}1 to {n}2, then {n}3, then {n}4" for n in range(10, 30)):
        near = [one.text for one in neighbours(_gold(text)) if one.rule == "digits"]
        changed["first"] += any(text.split()[1] not in other for other in near)
        changed["last"] += any(not other.endswith(text.split()[-1]) for other in near)
    assert min(changed.values()) > 3


def test_calls_in_references_are_changed_where_they_stand() -> None:
    """In text with what is around them, in messages as tool_calls; nothing where the gold is no JSON."""
    text = f"I ask. <tool_call>{json.dumps(CALL)}</tool_call>"
    function = {"name": "add", "arguments": json.dumps(CALL["arguments"])}
    said = [{"role": "assistant", "content": "", "tool_calls": [{"type": "function", "function": function}]}]
    for reference, expected in ((text, "I ask. "), (said, "[]")):
        row = row_of(1, {"prompt": "?", "answer": [CALL], "reference": reference}, "answer")
        missing = [one for one in changed_parts(row, [], PathCoverage()) if one.rule == "call" and one.text == expected]
        assert all(one.partial for one in missing)
        assert missing
    row = row_of(1, {"prompt": "?", "answer": "7", "reference": text}, "answer")
    assert [] == list(changed_parts(row, [], PathCoverage()))


def test_references_and_completions_may_be_messages() -> None:
    """Their text is that of the last assistant message, or its calls; the messages are kept beside it."""
    said = [{"role": "assistant", "content": "Let me see."}, {"role": "assistant", "content": "It is 42."}]
    row = row_of(1, {"prompt": "?", "answer": "42", "reference": said, "completion": said[:1]}, "answer")
    assert (("It is 42.",), "Let me see.") == (row.references, row.own)
    assert tuple(said) == row.conversations["It is 42."]
    gold = row_of(1, {"prompt": "?", "answer": said[1:]}, "answer").gold
    assert gold is not None
    assert "It is 42." == gold.text
    function = {"name": "add", "arguments": "{}"}
    assert json.dumps([function]) == talk_text([{"role": "assistant", "tool_calls": [{"function": function}]}])


def test_what_was_written_on_other_rows_is_tried() -> None:
    """As far as the row's gold differs, and the text does not mention it."""
    texts = {"7": "I say 7", "8": "I say 8, not 7", "9": "I say 9"}
    lines = [Row(n, {"prompt": "", "answer": a, "completion": c}) for n, (a, c) in enumerate(texts.items(), 1)]
    rows = choose_rows(lines, "rows", count=3, seed=0, gold=None, named=[]).rows
    assert [{"I say 9"}, {"I say 7", "I say 9"}] == [set(row.other_completions) for row in rows[:2]]


@pytest.mark.parametrize(
    ("gold", "text", "expected"),
    [
        ({"a": "x", "b": 1}, '{"a": "x", "b": 2}', True),
        (["red"], '["blue"]', False),
        ("12 May 1905", "3 May 1847", True),
        ("Jane Austen", "Emily", False),
        ("42", "42", False),
    ],
)
def test_an_answer_that_has_parts_of_the_gold_may_earn_a_share(gold: Any, text: str, expected: bool) -> None:
    """A number has no parts."""
    assert expected == share_parts(_gold(gold), text)


@pytest.mark.parametrize(("one", "same"), [("1e6", "1,000,000"), ("d", "(D)."), ("0.5", "0.50"), ("Oslo", "oslo")])
def test_golds_that_mean_the_same_are_not_tried_for_each_other(one: str, same: str) -> None:
    """However they are written on the other row."""
    lines = [Row(n, {"prompt": "", "answer": text}) for n, text in enumerate((one, same, "7"), 1)]
    rows = choose_rows(lines, "rows", count=3, seed=0, gold=None, named=[]).rows
    assert ["7"] == [other.text for other in rows[0].others]
