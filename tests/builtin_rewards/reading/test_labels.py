"""Labels: each kind equals its own kind by its stated rule, and nothing else."""

from __future__ import annotations

import pytest

from builtin_rewards.reading.labels import label_at, labels_in, read_label, same_label

SAME = [
    # numerals: the same base and number, in any writing of it
    ("0x1F", "0x1f"),
    ("0x1F", "0X001F"),
    ("0x1F", "1F_{16}"),
    ("0x1F", "1F (base 16)"),
    ("0b101", "0B101"),
    ("0b101", "101_2"),
    ("0o17", "17_8"),
    ("52_8", "52_{8}"),
    ("52_8", "52 base 8"),
    ("52_8", "52 in base 8"),
    # times: the same time of day; either half where the gold leaves it open
    ("00:30", "0:30"),
    ("00:30", "12:30 am"),
    ("3:15", "03:15"),
    ("3:15", "3:15 PM"),
    ("3:15 pm", "15:15"),
    ("5 pm", "17:00"),
    ("17:00", "5 pm"),
    ("5 pm", "5:00 p.m."),
    ("5am", "5 A.M."),
    ("12 am", "00:00"),
    ("5:00", "5 o'clock"),
    ("9:45:10", "09:45:10"),
    # dates: the same day in digits or words; any year where the gold has none
    ("2024-05-03", "May 3, 2024"),
    ("2024-05-03", "3 May 2024"),
    ("2024-05-03", "2024/5/3"),
    ("May 3", "3rd of May"),
    ("May 3", "May 3rd, 2024"),
    ("May 2024", "2024-05-07"),
    ("Sept. 9, 1999", "9 September 1999"),
    ("5/3/2024", "5/3/2024"),
    # ratios: the same terms in the same order
    ("3:4", "3 : 4"),
    ("3:4", "3 to 4"),
    ("2:1:3", "2:1:3"),
    ("1,000:1", "1000:1"),
    # codes: the same signs; of many digits the digits alone
    ("192.168.0.1", "192.168.0.1"),
    ("v1.2.3", "1.2.3"),
    ("fe80::1", "FE80::1"),
    ("00:1A:2B:3C:4D:5E", "00:1a:2b:3c:4d:5e"),
    ("978-3-16-148410-0", "978-316148410-0"),
    ("(555) 123-4567", "555-123-4567"),
    ("4-12", "4-12"),
    ("H2O", "h2o".upper()),
]


@pytest.mark.parametrize(("gold", "given"), SAME)
def test_labels_that_are_the_same(gold: str, given: str) -> None:
    one, other = read_label(gold), read_label(given)
    assert one is not None
    assert other is not None
    assert same_label(one, other)


DIFFERENT = [
    ("0x1F", "0xAB"),
    ("0x1F", "0b11111"),
    ("0x10", "0b10"),
    ("0b101", "0b110"),
    ("52_8", "52_7"),
    ("52_8", "42_{10}"),
    ("00:30", "00:45"),
    ("00:30", "12:30 pm"),
    ("3:15", "4:20"),
    ("3:15 PM", "3:15"),
    ("3:15 pm", "3:15 am"),
    ("5am", "5 pm"),
    ("5:00", "17:00"),
    ("12 am", "12 pm"),
    ("17:00", "7 pm"),
    ("9:45:10", "9:45:11"),
    ("1:02", "1:2"),
    ("2024-05-03", "2024-05-04"),
    ("2024-05-03", "2023-05-02"),
    ("2024-05-03", "2024-03-05"),
    ("May 3, 2024", "May 3"),
    ("May 3", "March 3"),
    ("5/3/2024", "3/5/2024"),
    ("5/3/2024", "10/6/2024"),
    ("2:1:3", "2:3:1"),
    ("2:1:3", "4:2:6"),
    ("3:4", "6:8"),
    ("2:4", "1:2"),
    ("3:4", "4:3"),
    ("2.5:1", "5:2"),
    ("192.168.0.1", "192.168.0.2"),
    ("10.0.0.0/8", "10.0.0.0/16"),
    ("127.0.0.1:80", "127.0.0.1:8080"),
    ("1.2.3", "1.2.4"),
    ("1.2.3", "1.3.2"),
    ("1.2.3-rc1", "1.2.3"),
    ("fe80::1", "fe80::2"),
    ("978-3-16-148410-0", "978-3-16-148410-1"),
    ("555-1234", "555-1235"),
    ("4-12", "41-2"),
    ("4-12", "5-13"),
    ("12-4", "4-12"),
    ("H2O", "OH2"),
    ("1F4", "F14"),
]


@pytest.mark.parametrize(("gold", "given"), DIFFERENT)
def test_labels_that_differ(gold: str, given: str) -> None:
    one, other = read_label(gold), read_label(given)
    assert one is not None
    assert other is not None
    assert not same_label(one, other)


@pytest.mark.parametrize(
    "text",
    [
        *("5", "-5", "5.5", "1e5", "1E5", "3/4", "1 3/4", "1,234", "1 234", "4 - 12", "-4", "[2,5)", "(2,5)", "2, 5"),
        *(
            "x",
            "2x",
            "x2",
            "a_1",
            "A_1",
            "B_{12}",
            "AB",
            "5 m",
            "5 apples",
            "60%",
            "$18",
            "x=5",
            "May",
            "",
            "\uff11:\u0662",
        ),
        *("9" * 100, "1:" * 40 + "1"),
    ],
)
def test_what_is_no_label(text: str) -> None:
    """Numbers, formulas, words and intervals."""
    assert read_label(text) is None


@pytest.mark.parametrize(
    ("text", "labels"),
    [
        ("The ratio is 3:4.", ["3:4"]),
        ("It leaves at 5:30 pm.", ["5:30 pm"]),
        ("on 2024-05-03.", ["2024-05-03"]),
        ("on May 3, 2024, at noon", ["May 3, 2024"]),
        ("Its address is 192.168.0.1.", ["192.168.0.1"]),
        ("room 4-12", ["4-12"]),
        ("It is 0x1F.", ["0x1F"]),
        ("x-5-3", []),
        ("2^3:4", []),
        ("may 3 be", []),
        ("from 10 to 15", []),
        ("5 and 6", []),
        ("f(5)=3", []),
    ],
)
def test_labels_in_a_sentence(text: str, labels: list[str]) -> None:
    """A part of a formula is none, nor are two numbers with a word between them."""
    assert labels == [text[start:end] for start, end in labels_in(text)]


@pytest.mark.parametrize(
    "text", ["1:" * 50_000, "1-" * 50_000, "1." * 50_000, "A1" * 50_000, "(555) " * 20_000, "1 of " * 9]
)
def test_long_texts_are_read_in_linear_time(text: str) -> None:
    """Only what is near the place is looked at."""
    assert read_label(text) is None
    label_at(text, len(text) // 2)
