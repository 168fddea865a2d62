"""Heavy attacks, tried on few rows: very long texts, formulas that never end, texts that parsers choke on.

None of them writes, kills, connects or forks, so that a reward which runs them hurts only its own worker.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain, starmap

from rewardkit.audit.gold import Gold, mentions
from rewardkit.audit.honest import Frame, in_frames
from rewardkit.audit.probe import Family, Probe, Wrong

_MEGABYTE = 1_000_000
_DEEP = 20_000
FORMULAS = (
    "9**9**9**9", "9^9^9^9", "1e999999999", "-1e-999999999", "nan", "NaN", "inf", "-inf", "Infinity", "1e999", "1/0",
    "0/0", "True", "null", "[]", "{}", "\\frac{1}{0}", "10**10**8", "float('nan')",
)  # fmt: skip
EXITS = (
    "__import__('os')._exit(0)",
    "exit()",
    "(_ for _ in ()).throw(SystemExit)",
    "type('E', (), {'__eq__': lambda *a: True, '__hash__': lambda s: 0})()",
)


def bombs(gold: Gold | None, frames: Sequence[Frame]) -> Iterator[Probe]:
    """Yield formulas, code and nested texts, bare and in a frame that is paid; not judged where they hold the gold."""
    first = [frame for frame in frames if frame.label][:1]
    own = gold.text.strip().casefold() if gold else None
    for text in (*FORMULAS, *EXITS):
        if text.casefold() != own:
            yield from in_frames(Family.BOMB, [Wrong(text, text)], first, judged=not mentions(text, gold))
    for probe in chain(_for_regexes(first), _nested()):
        yield replace(probe, judged=gold is None or gold.text.casefold() not in probe.text.casefold())


def _for_regexes(frames: Sequence[Frame]) -> Iterator[Probe]:
    """Yield texts on which a regular expression may try every split."""
    long = {
        "30 letters and a '!'": "a" * 30 + "!",
        "5,000 letters and a '!'": "a" * 5_000 + "!",
        "40 digits and a '!'": "1" * 40 + "!",
        "40 blanks and a '!'": " " * 40 + "!",
        "words and a '!'": "the word " * 12 + "!",
        "40 words of a letter": "a " * 40 + "!",
        "commas and digits": "1," * 40 + "!",
        "dots": "1." * 40 + "!",
    }
    yield from in_frames(Family.BOMB, starmap(Wrong, long.items()), frames)
    yield Probe(Family.BOMB, "200,000 blanks in a tag", "<answer>" + " " * 200_000 + "<")
    yield Probe(Family.BOMB, "20,000 line breaks in a tag", "<think>" + "\n" * _DEEP + "</think")


def _nested() -> Iterator[Probe]:
    """Yield texts nested so deep that a parser may end its process."""
    deep = {
        "JSON lists": "[" * _DEEP + "]" * _DEEP,
        "JSON objects": '{"a":' * _DEEP + "1" + "}" * _DEEP,
        "round brackets": "(" * _DEEP + "1" + ")" * _DEEP,
        "\\sqrt": "\\boxed{" + "\\sqrt{" * _DEEP + "1" + "}" * (_DEEP + 1),
        "\\frac not closed": "\\frac{" * _DEEP,
        "minus signs": "-" * _DEEP + "1",
        "tags": "<a>" * _DEEP + "</a>" * _DEEP,
    }
    for name, text in deep.items():
        yield Probe(Family.BOMB, f"{name}, 20,000 deep", text)


def long_texts(gold: Gold | None) -> Iterator[Probe]:
    """Yield very long texts; only those without the gold count as wrongly paid."""
    texts = {
        "a megabyte of one letter": "x" * _MEGABYTE,
        "a megabyte of digits": "9" * _MEGABYTE,
        "a megabyte of NULs": "\0" * _MEGABYTE,
        "a megabyte of words": "lorem ipsum dolor sit amet " * (_MEGABYTE // 27),
        "a megabyte of lines": "no\n" * (_MEGABYTE // 3),
        "50,000 open tags": "<think>" * 50_000,
        "50,000 open boxes": "\\boxed{" * 50_000,
        "50,000 fences": "```\n" * 50_000,
        "lone surrogates": "\ud800" * 10_000,
        "a number of 5,000 digits": "7" * 5_000,
        "a box of 5,000 digits": "\\boxed{" + "7" * 5_000 + "}",
    }
    for name, text in texts.items():
        yield Probe(Family.LONG, name, text, judged=gold is None or gold.text not in text)
    if gold is not None:
        yield Probe(Family.LONG, "the gold 1,000 times", f"{gold.text} " * 1_000, judged=False)
        yield Probe(Family.LONG, "the gold behind a megabyte", "x " * (_MEGABYTE // 2) + gold.text, judged=False)
