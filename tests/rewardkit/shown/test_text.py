"""How long texts are cut for a reader."""

import pytest

from rewardkit.shown.text import beginning, shorten


@pytest.mark.parametrize(
    ("text", "expected"),
    [("", ""), ("ab\nc", "ab\nc"), ("ab\ncd", "ab\nc… [5 characters]")],
    ids=["empty", "fits", "cut"],
)
def test_a_text_that_is_cut_says_how_long_it_is(text: str, expected: str) -> None:
    """Line breaks stay; a text that fits is itself."""
    assert expected == beginning(text, 4)


def test_a_value_is_written_at_a_bounded_length() -> None:
    """Both ends of a long text are shown, and a value whose repr raises by its type."""
    assert repr("x" * 38) == shorten("x" * 38)
    assert 80 == len(shorten("ab" * 10_000))
    assert "<int>" == shorten(10**5000)
