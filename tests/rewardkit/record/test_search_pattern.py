"""A search of one text ends, whatever the expression and the text."""

from __future__ import annotations

import pytest

from rewardkit.errors import RecordError
from rewardkit.record import search_pattern
from rewardkit.record.search_pattern import SearchPattern


@pytest.mark.parametrize(
    ("expression", "is_plain", "excerpt"),
    [
        ("or 363", False, ("x = 1 ", "or 363", " at last")),
        ("OR 36", True, ("x = 1 ", "or 36", "3 at last")),
        (r"\d{3}", False, ("x = 1 or ", "363", " at last")),
        ("absent", False, None),
        ("1 .r", True, None),
    ],
)
def test_a_match_is_shown_with_what_stands_around_it(
    expression: str, is_plain: bool, excerpt: tuple[str, str, str] | None
) -> None:
    """A plain text is looked for as it is, in any case."""
    assert excerpt == SearchPattern(expression, is_plain=is_plain).excerpt("x = 1 or 363 at last", "completion 1")


@pytest.mark.parametrize(
    ("expression", "text"), [(r"(a|aa)+$", "a" * 60 + "b"), (r"(\w+\s?)*$", "word " * 5_000 + "!")]
)
def test_an_expression_that_explodes_is_ended_in_a_line(
    expression: str, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It names the expression, the text and the way out."""
    monkeypatch.setattr(search_pattern, "BOUND_S", 0.05)
    with pytest.raises(RecordError, match=r"takes too long on completion 7, a text of .* characters; write") as refusal:
        SearchPattern(expression).excerpt(text, "completion 7")
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize("expression", ["(", "a" * 2_001, "(" * 900 + ")" * 900, "[z-a]", "*", r"\1"])
def test_what_is_no_expression_is_refused_in_a_line(expression: str) -> None:
    """Too long and too deep ones too."""
    with pytest.raises(RecordError, match=r"^grep=") as refusal:
        SearchPattern(expression)
    assert "\n" not in str(refusal.value)
