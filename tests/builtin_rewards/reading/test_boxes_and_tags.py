"""Where boxes and answer tags stand."""

from __future__ import annotations

import pytest

from builtin_rewards.reading.boxes_and_tags import Mark, boxes, tags


@pytest.mark.parametrize(
    ("text", "contents"),
    [
        ("\\boxed{42}", ["42"]),
        ("\\fbox{42} and \\boxed {43}", ["42", "43"]),
        ("\\boxed 42.", ["42"]),
        ("$\\boxed{\\frac{1}{\\sqrt{2}}}$", ["\\frac{1}{\\sqrt{2}}"]),
        ("\\boxed{\\{1, 2\\}}", ["\\{1, 2\\}"]),
        ("\\boxed{\\boxed{42}}", ["42"]),
        ("\\boxed{\\fbox{41} or \\boxed{42}}", ["\\fbox{41} or \\boxed{42}"]),
        ("{\\boxed{42}} }", ["42"]),
        ("\\boxed{} \\boxed{ ? } \\boxed{\\phantom{2}} \\boxed{\\ldots}", []),
        ("\\boxed", []),
        ("no box {42}", []),
    ],
)
def test_boxes_hold_what_stands_between_their_braces(text: str, contents: list[str]) -> None:
    """Braces pair, the outermost box counts, and one that holds nothing is none."""
    found = boxes(text)
    assert contents == [mark.content for mark in found]
    assert all(mark.closed and text[mark.start : mark.end].startswith("\\") for mark in found)


def test_a_box_that_never_closes_is_the_last_mark() -> None:
    """So that a completion that was cut off can be told."""
    assert [True, False] == [mark.closed for mark in boxes("\\boxed{1} \\boxed{2")]
    assert [Mark(0, 18, "1 \\boxed{2}", False)] == boxes("\\boxed{1 \\boxed{2}")


@pytest.mark.parametrize(
    ("text", "contents"),
    [
        ("<answer>42</answer>", ["42"]),
        ("<ANSWER> 42 </ Answer >", [" 42 "]),
        ("<final_answer>42</final_answer>", ["42"]),
        ("<answer>1</answer> <answer>2</answer>", ["1", "2"]),
        ("<answer>1 <answer>2</answer>", ["2"]),
        ("<answer></answer><answer> \n</answer>", []),
        ("42</answer>", []),
        ("<answers>42</answers> < 3", []),
    ],
)
def test_tags_hold_what_stands_between_them(text: str, contents: list[str]) -> None:
    """In any case; blank ones and lone ends are none."""
    assert contents == [mark.content for mark in tags(text)]


def test_a_tag_that_never_closes_goes_to_the_end() -> None:
    """And says so; other names may be asked for."""
    assert [Mark(3, 13, "42", False)] == tags("so <answer>42")
    assert ["B"] == [mark.content for mark in tags("<choice>B</choice>", "choice|answer")]


@pytest.mark.parametrize(
    "mark", ["\\boxed{", "\\boxed ", "{", "}", "\\fbox", "<answer>", "</answer>", "\\boxed{?", "< "]
)
def test_repeated_marks_are_found_in_one_pass(mark: str) -> None:
    """300,000 characters of a mark; quadratic reading would not end."""
    text = "\\boxed{1}" + mark * (300_000 // len(mark))
    assert len(boxes(text)) <= len(text)
    assert len(tags(text)) <= len(text)
