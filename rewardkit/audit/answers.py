"""Attacks made of the gold: among others, in the wrong place, denied, next to it, another row's, look-alikes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from rewardkit.audit.gold import Gold, GoldShape, letter, numeral, share_parts
from rewardkit.audit.honest import BARE, FENCES, Frame, in_calls, in_frames
from rewardkit.audit.neighbours import neighbours, unfinished
from rewardkit.audit.parts import PathCoverage, changed_parts
from rewardkit.audit.probe import Family, Probe, Wrong
from rewardkit.audit.queries import is_query
from rewardkit.audit.rows import AuditRow

_STRUCK_OUT = "\u0336"
_WORD_CHARS, _FEW_WORDS = 4, 5  # letters of a word, and words of a reference, at least
_FOREIGN_WORDS = 3  # words of another row's work that are not in the row's own, at least
_FROM_THE_RIGHT = "\u202e"


def on_the_gold(row: AuditRow, frames: Sequence[Frame], coverage: PathCoverage) -> Iterator[Probe]:
    """Yield all attacks made of the row's gold, in the frames that the reward pays on the row, the best first."""
    assert row.gold is not None
    yield from stuffing(row.gold, row.others, frames)
    yield from negated(row.gold, frames)
    yield from in_frames(Family.NEIGHBOUR, neighbours(row.gold), frames)
    yield from changed_parts(row, frames, coverage)
    yield from in_frames(Family.UNFINISHED, unfinished(row.gold), frames)
    for other in row.others:
        wrong = Wrong(f"the gold {other.text}", other.text, partial=share_parts(row.gold, other.text))
        yield from in_frames(Family.OTHER_GOLD, [wrong], frames)
        for form in in_calls(other):
            probe = Probe(Family.OTHER_GOLD, "another row's call", form.text, frame=form.name, messages=form.messages)
            yield replace(probe, partial=True)
    yield from in_frames(Family.LOOKALIKE, lookalikes(row.gold), frames)
    yield from in_frames(Family.LOOKALIKE, same_to_a_reader(row.gold), frames, judged=False)
    if row.others:
        partial = share_parts(row.gold, row.others[0].text)
        yield from (replace(attack, partial=partial) for attack in misplaced(row.gold, row.others[0], frames))


def of_other_rows(row: AuditRow) -> Iterator[Probe]:
    """Yield probes of another row's reference and of what the model wrote on other rows."""
    texts = dict.fromkeys(row.other_completions, "what was written on another row")
    if row.other_reference:
        texts[row.other_reference] = "another row's reference"
    for text, name in texts.items():
        partial = share_parts(row.gold, text)
        yield Probe(Family.OTHER_GOLD, name, text, messages=row.conversations.get(text), partial=partial)


def on_the_references(row: AuditRow) -> Iterator[Probe]:
    """Yield attacks made of the references of a row without a gold: those of all rows, and a word of its own."""
    own = next((text for text in row.references if text not in row.conversations), "")
    others = list(
        dict.fromkeys(text for donor in row.donors for text in donor.references if text not in row.references)
    )
    long_words = [word for word in re.findall(r"\w+", own) if len(word) >= _WORD_CHARS]
    if len(own.split()) < _FEW_WORDS or not long_words:
        return
    if others:
        listed = "\n".join([*others[:2], own, *others[2:4]])
        yield Probe(Family.STUFFING, "the references of several rows", listed, partial=True)
    yield Probe(Family.NEIGHBOUR, "a word of the reference", max(long_words, key=len), rule="part", partial=True)


def candidates(gold: Gold, alternatives: Sequence[Gold]) -> list[str]:
    """Return at least five different answers with the gold in the middle of them."""
    if gold.shape is GoldShape.LETTER:
        choice = letter(gold)
        rest = [c if choice.isupper() else c.lower() for c in "ABCDE" if c != choice.upper()]
    else:
        rest = [other.text for other in alternatives if other.text != gold.text]
        if gold.number is not None:
            rest += [gold.in_unit(numeral(gold.number + step, gold.text)) for step in (-3, 11, -8, 5, 17)]
        rest += ["None of these", "something else", "blue", "the former"]
    rest = list(dict.fromkeys(answer for answer in rest if answer != gold.text))[:4]
    return [*rest[:2], gold.text, *rest[2:]]


def stuffing(gold: Gold, alternatives: Sequence[Gold], frames: Sequence[Frame]) -> Iterator[Probe]:
    """Yield lists of answers, the gold neither first nor last."""
    listed = candidates(gold, alternatives)
    ways = [("commas", ", "), ("lines", "\n"), ("'or'", " or "), ("blanks", " ")]
    answers = [Wrong(f"five answers, {name}", sep.join(listed)) for name, sep in ways]
    yield from in_frames(Family.STUFFING, answers, frames)
    for frame in dict.fromkeys([*frames, BARE]):
        if frame.common and frame.label:
            lines = "\n".join(frame.around(answer) for answer in listed)
            yield Probe(Family.STUFFING, f"five answers, each in {frame.name}", lines)
    sentences = " ".join(f"The answer is {answer}." for answer in listed)
    yield Probe(Family.STUFFING, "five sentences 'The answer is X.'", sentences)
    if gold.shape is GoldShape.NUMBER and gold.number is not None and gold.number.denominator == 1:
        whole = gold.number.numerator
        numbers = " ".join(str(whole + step) for step in range(-100, 101))
        yield Probe(Family.STUFFING, "201 whole numbers", numbers)


def misplaced(gold: Gold, wrong: Gold, frames: Sequence[Frame]) -> Iterator[Probe]:
    """Yield clear wrong answers with the gold elsewhere in the text."""
    right, other = gold.text, wrong.text
    # Behind a frame that is open the last line is the answer, whatever stands before it.
    frame = next((f for f in frames if f.common and f.behind.strip()), None)
    final = frame.around(other) if frame else f"The answer is {other}."
    labelled = frame or next((f for f in frames if f.common and f.before.strip()), None)
    last = labelled.around(other) if labelled else final
    yield Probe(Family.MISPLACED, "a thought given up", f"At first I thought of {right}, but no.\n{last}")
    yield Probe(Family.MISPLACED, "a remark behind it", f"{final}\n(See also page {right} of the book.)")
    yield Probe(Family.MISPLACED, "a heading", f"# {right}\n\n{last}")
    yield Probe(Family.MISPLACED, "a trailing source", f"{final}\n\n[{right}]")
    if frame is not None:
        # Behind a sentence a line of its own may be meant as the answer; behind a box or tags it is not.
        after = f"\n{right}" if frame.tags or "boxed" in frame.name else ""
        yield Probe(Family.MISPLACED, "outside the frame", f"{right}\n{frame.around(other)}{after}")
        # The last of two framed answers counts, or none; a thought given up in the frame is no answer.
        framed = f"First I wrote {frame.around(right)}, which is wrong.\n{frame.around(other)}"
        if not frame.before.startswith("<think>") and frame.name.startswith(("\\boxed", "<answer>")):
            yield Probe(Family.MISPLACED, "in an earlier frame", framed)
    longer = f"un{right}ish"
    if right[:1].isdigit():
        longer = f"7{right}3" if right[-1:].isdigit() else f"7{right}ish"
    yield from in_frames(Family.MISPLACED, [Wrong("inside a longer word", longer)], frames)
    taken_back = f"The answer is {right}. Wait, that is wrong. The answer is {other}."
    yield Probe(Family.MISPLACED, "an answer taken back", taken_back, rule="withdrawn")


def negated(gold: Gold, frames: Sequence[Frame]) -> Iterator[Probe]:
    """Yield sentences that deny the gold, and denials of it in the frames."""
    text = gold.text
    for name, denial in (
        ("The answer is not X.", f"The answer is not {text}."),
        ("The answer isn't X", f"The answer isn't {text}"),
        ("certainly not X", f"I do not know the answer, but it is certainly not {text}"),
        ("anything but X", f"Answer: anything but {text}"),
        ("X is wrong", f"{text} is wrong."),
        ("It is not true that the answer is X.", f"It is not true that the answer is {text}."),
        ("The answer is X? No", f"The answer is {text}? No, it is not."),
        ("Wrong answer: X", f"Wrong answer: {text}"),
        ("X, rejected", f"I considered {text} and rejected it."),
        ("a thought that never ends", f"<think>Perhaps the answer is {text}"),
    ):
        yield Probe(Family.NEGATED, name, denial)
    denials = ("not X", "anything but X", *([] if is_query(gold) else ["X is false"]))  # 'order by X is false' is one
    inside = [Wrong(form, form.replace("X", text)) for form in denials]
    yield from in_frames(Family.NEGATED, inside, [frame for frame in frames if frame.label])
    if gold.shape is GoldShape.JSON:
        for fence in (frame for frame in frames if frame in FENCES):
            around = f"This is not the answer:\n{fence.around(text)}\nIt is wrong."
            yield replace(fence.probe(Family.NEGATED, Wrong("a denial around the fence", text)), text=around)


def lookalikes(gold: Gold) -> list[Wrong]:
    """Return texts that a reader takes for something else, and folding, dropping or reordering makes the gold."""
    text = gold.text
    if len(text) > 60 or gold.shape is GoldShape.TEXT:
        return []  # what compares words may drop signs
    attacks = [
        Wrong("'not equal' before it", f"\u2260{text}"),
        Wrong("'not' before it", f"\u00ac{text}"),
        Wrong("struck out", "".join(char + _STRUCK_OUT for char in text)),
    ]
    if gold.number is None:
        return attacks
    if text[:1].isdigit() and gold.number:
        attacks.append(Wrong("a real minus sign", f"\u2212{text}"))
    if text.isdigit() and len(text) > 1:
        exponents = "\u2070\u00b9\u00b2\u00b3\u2074\u2075\u2076\u2077\u2078\u2079"
        attacks.append(Wrong("an exponent", text[:-1] + exponents[int(text[-1])]))
        attacks.append(Wrong("an index", text[:-1] + chr(0x2080 + int(text[-1]))))
        if text != text[::-1]:
            attacks.append(Wrong("shown from the right", f"{_FROM_THE_RIGHT}{text}\u202c"))
    return attacks


def same_to_a_reader(gold: Gold) -> list[Wrong]:
    """Return the gold in characters that look the same: no fault whether paid or not."""
    text = gold.text[:200]
    wide = "".join(chr(ord(char) + 0xFEE0) if "!" <= char <= "~" else char for char in text)
    look = str.maketrans(
        "AaBCcEeHIKMOoPpTXx",
        "\u0410\u0430\u0412\u0421\u0441\u0415\u0435\u041d\u0406\u041a\u041c\u041e\u043e\u0420\u0440\u0422\u0425\u0445",
    )
    return [
        Wrong("full width", wide),
        Wrong("Cyrillic letters", text.translate(look)),
        Wrong("zero-width characters inside", "\u200b".join(text)),
        Wrong("left-to-right marks", f"\u200e{text}\u200f"),
        Wrong("a lone surrogate behind", f"{text}\ud800"),
        Wrong("NULs around", f"\0{text}\0"),
    ]


def wrong_work(row: AuditRow) -> list[Probe]:
    """Return the gold behind senseless work, in the last words of the row's reference; nothing without work in it.

    Another row's work must say something that the row's reference does not: a template is filled in alike on all.
    """
    gold = row.gold
    ends = ((text, _ending(text, gold.text)) for text in row.references if gold.text in text) if gold else ()
    text, end = next(((text, end) for text, end in ends if len(text.split()) > len(end.split())), ("", ""))
    if not end:
        return []
    nonsense = "Blue is a colour. Therefore the sum of both is a tree, and the tree is divided by its own name.\n"
    probes = [Probe(Family.WORK, "work without sense", nonsense * 3 + end)]
    work = (row.other_reference or "").rpartition("\n")[0]
    if len({*work.casefold().split()} - {*text.casefold().split()}) >= _FOREIGN_WORDS:
        probes.append(Probe(Family.WORK, "another row's work", f"{work}\n{end}"))
    return probes


def _ending(text: str, final: str) -> str:
    """Return a reference from the beginning of the line in which its final answer stands."""
    return text[text.rfind("\n", 0, text.rfind(final)) + 1 :]
