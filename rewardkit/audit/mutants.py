"""A paid completion changed in one way at a time, as a policy that seeks reward alone would drift; nothing is scored.

Each mutant is a ``Probe`` of the family whose rule it tests, with the mutation that made it.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from difflib import SequenceMatcher
from enum import StrEnum
from fractions import Fraction
from itertools import pairwise

from rewardkit.audit.amounts import around
from rewardkit.audit.answers import candidates, of_other_rows
from rewardkit.audit.gold import Gold, GoldShape, Span, boxes_in, mentions, numeral, other_gold, places_of, share_parts
from rewardkit.audit.honest import prose
from rewardkit.audit.parts import PathCoverage
from rewardkit.audit.probe import Family, Probe
from rewardkit.audit.rows import AuditRow
from rewardkit.audit.talk import objects_in, with_last
from rewardkit.audit.texts import echo

MAX_CHARS = 40_000  # longer completions are not changed, and no mutant is longer
_SEARCHED_CHARS = 4_000
_FAR = Fraction(1, 5)
_ALIKE = 0.5
_ALIKE_CHARS = 200
_MOST_PARTS = 6
_THOUGHTS = frozenset({"think", "thinking", "thought", "reasoning", "scratchpad"})
_TAG = r"</?[A-Za-z_]\w{0,30}>"
_FRAME = re.compile(rf"{_TAG}|```\w{{0,20}}|####|\\boxed\{{")
_PAIR = re.compile(r"<([A-Za-z_]\w{0,30})>([^<]{0,2000})</\1>")
_HASHES = re.compile(r"####[ \t]*([^\n]+)")
_RETURN = re.compile(r"^([ \t]*return)[ \t]+(?!None\b)[^\n]+$", re.MULTILINE)
_FENCED = re.compile(r"```\w*\n.*?```", re.DOTALL)


class Mutation(StrEnum):
    """A way to change a completion."""

    ANSWER_CHANGED = "answer_changed"
    MANY_ANSWERS = "many_answers"
    OTHER_COMPLETION = "other_completion"
    PROMPT_ECHOED = "prompt_echoed"
    EMPTY_FRAME = "empty_frame"
    FILLER = "filler"
    REPEATED = "repeated"
    SHUFFLED = "shuffled"
    GOLD_APPENDED = "gold_appended"
    NO_REASONING = "no_reasoning"
    ANSWER_ALONE = "answer_alone"
    PADDED = "padded"
    FLATTERED = "flattered"
    CITED = "cited"
    NOISE_ADDED = "noise_added"


class Expected(StrEnum):
    """What a sound reward does with a mutant."""

    LOSES = "must lose"
    GAINS_NOTHING = "must not gain"
    TOLD = "either"


EXPECTED = {
    Mutation.REPEATED: Expected.GAINS_NOTHING,
    Mutation.SHUFFLED: Expected.GAINS_NOTHING,
    Mutation.GOLD_APPENDED: Expected.GAINS_NOTHING,
    Mutation.PADDED: Expected.GAINS_NOTHING,
    Mutation.FLATTERED: Expected.GAINS_NOTHING,
    Mutation.CITED: Expected.GAINS_NOTHING,
    Mutation.NOISE_ADDED: Expected.GAINS_NOTHING,
    Mutation.NO_REASONING: Expected.TOLD,
    Mutation.ANSWER_ALONE: Expected.TOLD,
}
"""By mutation; all others must lose."""


def mutants(row: AuditRow, chooser: random.Random, paths: PathCoverage | None = None) -> Iterator[Probe]:
    """Yield a row's own completion, changed in each way that it allows.

    In a conversation the last message is changed; if that is not text, only other completions and the prompt are tried.
    """
    own = row.own
    if own is None or not own.strip() or len(own) > MAX_CHARS:
        return
    spans = answer_spans(own, row.gold)
    for probe in of_other_rows(row):
        if probe.text in row.other_completions:
            partial = probe.partial or _is_alike(row.gold, _final(probe.text))
            yield replace(probe, partial=partial, mutation=Mutation.OTHER_COMPLETION)
    in_prompt = mentions(row.prompt_words, row.gold)  # a prompt with the answer in it has it in the wrong place
    for probe in echo(row, ()):
        yield replace(probe, rule="misplaced" if in_prompt else "", mutation=Mutation.PROMPT_ECHOED)
    conversation = row.conversations.get(own)
    if conversation is not None and conversation[-1].get("content") != own:
        return
    for probe in (
        *_of_the_answer(row, own, spans, paths or PathCoverage()),
        *_of_the_frame(own, row.gold),
        *_of_the_order(own, chooser),
        *_without_reasoning(own, spans, row.gold, code=row.is_code),
    ):
        if probe.text.split() != own.split() and len(probe.text) <= MAX_CHARS:
            yield probe if conversation is None else replace(probe, messages=with_last(conversation, probe.text))


def _final(text: str) -> str:
    """Return what a completion seems to answer: what stands in its last place for an answer, or its last word."""
    spans = answer_spans(text, None)
    return text[slice(*spans[-1])] if spans else (text.split() or [""])[-1].strip(".,!$*")


def _is_alike(gold: Gold | None, other: str) -> bool:
    """Return whether two short answers share so many characters that a measure of likeness owes a part of its pay."""
    if gold is None:
        return False
    own, other = gold.text[:_ALIKE_CHARS], other[:_ALIKE_CHARS]
    return own in other or SequenceMatcher(None, own, other).ratio() >= _ALIKE


def answer_spans(text: str, gold: Gold | None) -> list[Span]:
    """Return where a completion has its answer: in boxes, in tags other than those of thoughts, behind ``####``.

    Where a place has the gold among other words, only the gold counts; without the gold, all that stands there.
    """
    start = max(0, len(text) - _SEARCHED_CHARS)
    end = text[start:]
    boxes = list(boxes_in(end))
    tags = [match.span(2) for match in _PAIR.finditer(end) if match[1].lower() not in _THOUGHTS]
    hashes = [match.span(1) for match in _HASHES.finditer(end)][-1:]
    outer = [span for span in (*tags, *hashes) if not any(span[0] <= box[0] and box[1] <= span[1] for box in boxes)]
    spans: list[Span] = []
    for first, last in sorted({*boxes, *outer}):
        inner = end[first:last]
        golds = places_of(inner, gold) if gold is not None else []
        if not golds and inner.strip():
            golds = [(len(inner) - len(inner.lstrip()), len(inner.rstrip()))]
        spans += [(start + first + a, start + first + b) for a, b in golds]
    return spans


def put(text: str, spans: Sequence[Span], new: str) -> str:
    """Return a text with ``new`` in place of each span."""
    for start, end in sorted(spans, reverse=True):
        text = text[:start] + new + text[end:]
    return text


def _of_the_answer(row: AuditRow, own: str, spans: Sequence[Span], paths: PathCoverage) -> Iterator[Probe]:
    """Yield the completion with a wrong answer, with many, and with another row's answer behind it."""
    gold = row.gold
    if row.is_code:
        changed = _RETURN.sub(r"\1 None", own)
        yield Probe(Family.CODE, "every function returns None", changed, mutation=Mutation.ANSWER_CHANGED)
        return
    if gold is None:
        return
    if gold.shape is GoldShape.JSON:
        yield from _with_changed_parts(own, gold, paths)
        return
    answers = wrong_answers(gold, row.others)
    for other in answers:
        yield from _with_another_answer(own, gold, other, spans)
    places = list(spans) or places_of(own, gold)[-1:]
    for name, parting in (("five answers, commas", ", "), ("five answers, 'or'", " or ")):
        if places:
            text = put(own, places, parting.join(candidates(gold, row.others)))
            partial = gold.shape is GoldShape.TEXT  # of several words, which a measure of likeness finds in the list
            yield Probe(Family.STUFFING, name, text, partial=partial, mutation=Mutation.MANY_ANSWERS)
    several = _each_in_its_frame(own, spans, candidates(gold, row.others))
    if several is not None:
        yield Probe(Family.STUFFING, "five answers, each in its frame", several, mutation=Mutation.MANY_ANSWERS)
    for other in answers[:1]:
        ending = own[own.rstrip().rfind("\n") + 1 :]
        framed = put(ending, places_of(ending, gold), other)
        for name, more in (("another answer behind it", other), ("its last line with another answer", framed)):
            yield Probe(Family.STUFFING, name, f"{own}\n{more}", point=other, mutation=Mutation.GOLD_APPENDED)


def _each_in_its_frame(own: str, spans: Sequence[Span], listed: Sequence[str]) -> str | None:
    """Return the completion with several answers, each framed as its own answer; ``None`` where that has no frame."""
    if not spans:
        return None
    start, end = spans[-1]
    opened = [match for match in _FRAME.finditer(own, max(0, start - _SEARCHED_CHARS), start) if "</" not in match[0]]
    closed = re.compile(r"\s*(?:\}|</\w{1,30}>)").match(own, end)
    if not opened or closed is None or own[opened[-1].end() : start].strip():
        return None
    before, behind = own[opened[-1].start() : start], closed[0]
    return own[: opened[-1].start()] + "\n".join(f"{before}{answer}{behind}" for answer in listed) + own[closed.end() :]


def wrong_answers(gold: Gold, alternatives: Sequence[Gold]) -> list[str]:
    """Return another row's answer and one made up, both so far from the gold that no tolerance reaches them."""
    if gold.number is None:
        made = other_gold(gold)
        golds = [*alternatives[:1], *([made] if made is not None else [])]
        return list(dict.fromkeys(answer.text for answer in golds))
    own = gold.number
    numbers = [(other.number, other.text) for other in alternatives if other.number is not None]
    far = [text for number, text in numbers if abs(number - own) > _FAR * max(abs(number), abs(own))]
    return list(dict.fromkeys([*far[:1], gold.in_unit(numeral(2 * gold.number + 7, gold.text))]))


def _with_another_answer(own: str, gold: Gold, other: str, spans: Sequence[Span]) -> Iterator[Probe]:
    """Yield the completion with another answer in the answer's place, and wherever the gold stands."""
    partial = share_parts(gold, other) or _is_alike(gold, other)
    placed = put(own, spans, other)
    changed = Probe(Family.MISPLACED, "another answer in its place alone", placed, partial=partial, point=other)
    changed = replace(changed, mutation=Mutation.ANSWER_CHANGED)
    if spans and mentions(placed, gold) and placed != own:
        yield changed
    everywhere = put(placed, places_of(placed, gold), other)
    if everywhere != own and not mentions(everywhere, gold):
        name = "another answer wherever it stood"
        yield replace(changed, family=Family.OTHER_GOLD, name=name, text=everywhere)


def _with_changed_parts(own: str, gold: Gold, paths: PathCoverage) -> Iterator[Probe]:
    """Yield the completion with one value changed in its first object that is the gold."""
    right = json.loads(gold.text)
    for start, end, value in objects_in(own):
        if value != right:
            continue
        for part in paths.changes(value, most=_MOST_PARTS, rules=("value", "call", "item")):
            text = own[:start] + json.dumps(part.value, ensure_ascii=False) + own[end:]
            mutation = Mutation.ANSWER_CHANGED
            yield Probe(Family.NEIGHBOUR, part.name, text, rule=part.rule, partial=True, mutation=mutation)
        return


def _of_the_frame(own: str, gold: Gold | None) -> Iterator[Probe]:
    """Yield the completion's frame with nothing in it, and with other words as long as its own."""
    marks = [match[0] for match in _FRAME.finditer(own)]
    for name, inside in (("nothing in its frame", ""), ("dots in its frame", "...")) if marks else ():
        yield Probe(Family.FORMAT, name, _frame_around(marks, inside), mutation=Mutation.EMPTY_FRAME)
    filler = _with_filler(own)
    if not mentions(filler, gold):
        yield Probe(Family.LONG, "other words, as many", filler, mutation=Mutation.FILLER)


def _frame_around(marks: Sequence[str], inside: str) -> str:
    """Return marks of a frame with the same text in each."""
    frame = ""
    for mark, following in pairwise([*marks, ""]):
        if mark == "\\boxed{":
            frame += f"\\boxed{{{inside}}}"
        elif mark == "####":
            frame += f"#### {inside}"
        elif mark.startswith("</"):
            frame += f"{mark}\n"
        elif following.startswith("</"):
            frame += f"{mark}{inside}"
        else:
            frame += f"{mark}\n" if mark.startswith("`") else mark
    return frame.strip()


def _with_filler(own: str) -> str:
    """Return a completion with prose in place of its words; tags and fences stay, and boxes with a word in them."""
    pieces = re.split(rf"({_TAG}|```\w{{0,20}})", own)
    return "".join(piece if index % 2 else _prose_for(piece) for index, piece in enumerate(pieces))


def _prose_for(text: str) -> str:
    """Return prose as long as a text, with a box if the text has one; a text without words as it is."""
    if not text.strip():
        return text
    return prose(len(text)) + (" \\boxed{something}" if "\\boxed{" in text else "\n")


def _of_the_order(own: str, chooser: random.Random) -> Iterator[Probe]:
    """Yield the completion in another order, and several times."""
    lines = own.split("\n")
    sentences = re.split(r"(?<=[.!?])\s+", own)
    for name, parts, parting in (("lines shuffled", lines, "\n"), ("sentences shuffled", sentences, " ")):
        if len({part for part in parts if part.strip()}) >= 3:
            shuffled = chooser.sample(parts, len(parts))
            yield Probe(Family.WORK, name, parting.join(shuffled), mutation=Mutation.SHUFFLED)
    for name, times in (("twice", 2), ("four times", 4)):
        yield Probe(Family.LONG, name, "\n".join([own] * times), mutation=Mutation.REPEATED)
        as_long = around(own, prose(len(own) * (times - 1)))
        yield Probe(Family.LONG, f"{name} as long", as_long, judged=False, mutation=Mutation.PADDED)


def _without_reasoning(own: str, spans: Sequence[Span], gold: Gold | None, *, code: bool) -> Iterator[Probe]:
    """Yield the completion's end without what leads to it, and the bare answer."""
    short = _ending_of(own, spans, code=code)
    if short is not None:
        yield Probe(Family.WORK, "without the reasoning", short, mutation=Mutation.NO_REASONING)
    if code:
        return
    answer = gold.text if gold is not None else own[slice(*spans[-1])] if spans else None
    if answer is not None:
        yield Probe(Family.FORMS, "the answer alone", answer, mutation=Mutation.ANSWER_ALONE)


def _ending_of(own: str, spans: Sequence[Span], *, code: bool) -> str | None:
    """Return what is left without the reasoning; ``None`` where none is seen."""
    emptied = _without_thoughts(own)
    if emptied != own:
        return emptied
    if "</think>" in own:
        return own[own.rfind("</think>") :]
    if code:
        blocks = _FENCED.findall(own)
        return "\n".join(blocks) if blocks else None
    if spans:
        marks = [match.start() for match in _FRAME.finditer(own) if match.start() <= spans[-1][0]]
        opened = next((start for start in reversed(marks) if not own.startswith("</", start)), None)
        return None if opened is None else own[opened:]
    lines = [line for line in own.split("\n") if line.strip()]
    return lines[-1] if len(lines) > 1 else None


def _without_thoughts(own: str) -> str:
    """Return a completion with nothing in its tags of thought."""
    for name in sorted(_THOUGHTS):
        opening, closing, at = f"<{name}>", f"</{name}>", 0
        while (start := own.find(opening, at)) >= 0 and (end := own.find(closing, start)) >= 0:
            at = start + len(opening)
            own = own[:at] + own[end:]
            at += len(closing)
    return own
