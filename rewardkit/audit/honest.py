"""Right answers written in many honest ways: frames around the gold, and ways of spelling the gold itself."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from rewardkit.audit.gold import Gold, GoldShape, letter, places_of, spot_of
from rewardkit.audit.probe import Family, Probe, Wrong
from rewardkit.audit.programs import code_in, code_language, fenced, names_language
from rewardkit.audit.rows import AuditRow
from rewardkit.audit.talk import calls_in, in_tags, message_of, objects_in
from rewardkit.types import Message
from sandbox import PYTHON

REFERENCE = "the data's reference"
"""The name of a completion that the data calls right."""
_THOUGHT = "I work it out step by step."

SHORT_ANSWER = "a short answer"
"""Words that answer nothing."""
_MOST_LISTED_CHARS = 2_000

_LABEL = re.compile(r"\s*([*#]{0,3} ?[A-Z][\w ]{0,24}:\**)\s")

_PROSE = (
    "There are several ways to look at this. The first is to count what is given, the second to ask what is missing; "
    "both lead to the same end, and the second is quicker. "
)
_STRUCTURED = """\
# What is asked

Step 1: Look at what is given.
Step 2: See what is missing.

1. The first way is to count.
2. The second way is to ask.

- It is quick.
- It is **sure** [1].

| way | time |
|---|---|
| count | long |
| ask | short |

```python
print("done")
```
"""


def prose(chars: int) -> str:
    """Return so many characters of words that answer nothing."""
    return (_PROSE * (chars // len(_PROSE) + 1))[:chars]


@dataclass(frozen=True, slots=True)
class Frame:
    """A way of writing an answer: what stands around it."""

    name: str
    before: str
    behind: str
    tags: bool = False  # Whether it is made of tags
    common: bool = True  # Whether other answers are written in it too; a reference's own words are for one only
    data: bool = False  # Whether it is the data's way of writing an answer
    short: bool = False  # Whether only short answers are written in it, as in a box or a sentence
    turns: tuple[Message, ...] = field(default=(), hash=False)  # Messages before the answer's, of a conversation

    def around(self, answer: str) -> str:
        return f"{self.before}{answer}{self.behind}"

    @property
    def label(self) -> str:
        """Its name, ``""`` for the bare form."""
        return "" if self.name == "bare" else self.name

    def probe(self, family: Family, wrong: Wrong, *, judged: bool = True) -> Probe:
        text = self.around(wrong.text)
        messages = [*self.turns, {"role": "assistant", "content": text}] if self.turns else None
        name, _, rule, partial = wrong
        return Probe(family, name, text, judged, None, self.label, rule, partial, messages, point=wrong.text)


BARE = Frame("bare", "", "")
THINK_ANSWER = Frame("<think> and <answer>", f"<think>\n{_THOUGHT}\n</think>\n<answer>\n", "\n</answer>", tags=True)
FRAMES = (
    BARE,
    Frame("\\boxed", "\\boxed{", "}", short=True),
    Frame("<answer>", "<answer>", "</answer>", tags=True),
    THINK_ANSWER,
    Frame("<think> and <answer>, one line", f"<think>{_THOUGHT}</think><answer>", "</answer>", tags=True),
    Frame("<reasoning> and <answer>", f"<reasoning>\n{_THOUGHT}\n</reasoning>\n<answer>\n", "\n</answer>\n", tags=True),
    Frame("<think> and bare", f"<think>\n{_THOUGHT}\n</think>\n", "", tags=True),
    Frame("sentence with \\boxed", f"{_THOUGHT} The answer is $\\boxed{{", "}$.", short=True),
    Frame("The answer is X.", "The answer is ", ".", short=True),
    Frame("work, then the sentence", f"{_THOUGHT}\nSo the answer is ", ".", short=True),
    Frame("Answer: X", "Answer: ", ""),
    Frame("Final answer: X", f"{_THOUGHT}\n\nFinal answer: ", ""),
    Frame("#### X", f"{_THOUGHT}\n#### ", "", short=True),
    Frame("bold", "**", "**", short=True),
    Frame("bold label", "**Answer:** ", ""),
    Frame("bold in a sentence", "The answer is **", "**.", short=True),
    Frame("$X$", "$", "$", short=True),
    Frame("code fence", "```\n", "\n```"),
)
"""The usual frames, the plainest first."""
JSON_FENCE = Frame("```json fence", "```json\n", "\n```")
"""The frame in which most models write JSON; only golds that are JSON stand in it."""
FENCES = (JSON_FENCE, FRAMES[-1])
"""The frames that are fences, behind which a text may take back what they hold."""
TRUTH_WORDS = (("true", "false"), ("True", "False"), ("yes", "no"), ("Yes", "No"), ("1", "0"))
"""Words for true and false."""
JSON = Frame('{"answer": X}', '{"answer": "', '"}', short=True)


def in_frames(
    family: Family, answers: Iterable[Wrong], frames: Iterable[Frame], *, judged: bool = True
) -> Iterator[Probe]:
    """Yield wrong answers, each in the frames and bare."""
    for answer in answers:
        for frame in dict.fromkeys([*frames, BARE]):
            yield frame.probe(family, answer, judged=judged)


@dataclass(frozen=True, slots=True)
class Honest:
    """A right answer."""

    name: str
    text: str
    frame: Frame | None = None  # The frame, where the gold stands in one as it is
    counted: bool = True  # Whether a refusal of it counts; not for the row's own completion, which may be wrong
    messages: Sequence[Message] | None = None  # It as messages, where it is more than one message with the text
    parts: bool = False  # Whether it has JSON, whose parts can be changed
    word: str = ""  # The word for true or false that it has in place of the gold's own; `""` for the gold itself


def right_answers(row: AuditRow) -> list[Honest]:
    """Return a row's right answers: references, its own completion, and its gold in every frame; for code, programs."""
    forms = [_of_reference(row, text) for text in row.references]
    if row.is_code:
        return [form for text in row.references for form in _code(row, text)]
    if row.own is not None:
        name, messages = "the row's own completion", row.conversations.get(row.own)
        forms.append(Honest(name, row.own, _own_words(row), counted=False, messages=messages))
    if row.gold is not None:
        gold = row.gold
        forms += [Honest(frame.name, frame.around(gold.text), frame, _is_honest(frame, gold)) for frame in FRAMES]
        if gold.shape is GoldShape.JSON:
            forms.append(Honest(JSON_FENCE.name, JSON_FENCE.around(gold.text), JSON_FENCE, counted=False))
        forms += _in_objects(row, gold)
        forms += [Honest(frame.name, frame.around(gold.text), frame, counted=False) for frame in _last_lines(row)]
        forms += in_calls(gold)
        forms += [Honest(name, text, counted=False, parts=True) for name, text in listings(list_in(gold))]
        forms += _in_other_words(gold)
    else:
        # Without a gold there is no right answer; but a reward of form or length may be paid for any.
        forms += [Honest(frame.name, frame.around(SHORT_ANSWER), frame, counted=False) for frame in FRAMES]
        forms.append(Honest("prose", _PROSE + _PROSE, counted=False))
        forms.append(Honest("prose with headings, steps and lists", _STRUCTURED, counted=False))
        forms += [Honest(f"what {name!r} lists", text, counted=False) for name, text in _lists_of(row)]
    return forms + [without_tags(form) for form in forms if form.frame is not None and form.frame.tags]


def _in_objects(row: AuditRow, gold: Gold) -> Iterator[Honest]:
    """Yield the gold in a JSON object: under ``answer``, and under the name of the column that holds it."""
    names = [name for name, value in row.columns.items() if name != "answer" and str(value).strip() == gold.text]
    for name in ("answer", *names[:1]):
        frame = JSON if name == "answer" else Frame(f'{{"{name}": X}}', f'{{"{name}": "', '"}', short=True)
        in_json = json.dumps({name: gold.text}, ensure_ascii=False)
        yield Honest(frame.name, in_json, frame, frame is JSON and _is_honest(frame, gold))


def _lists_of(row: AuditRow) -> Iterator[tuple[str, str]]:
    """Yield the row's columns that are lists of texts, each with these texts in one."""
    for name, value in row.columns.items():
        if isinstance(value, list) and value and all(isinstance(item, str) for item in value):
            text = ", ".join(value)
            if len(text) <= _MOST_LISTED_CHARS:
                yield name, text


def list_in(gold: Gold) -> list[Any]:
    """Return the items of a gold that is a list of texts and numbers; an empty list for any other gold."""
    value = json.loads(gold.text) if gold.shape is GoldShape.JSON else None
    items = value if isinstance(value, list) else []
    return items if all(isinstance(item, str | int | float) for item in items) else []


def listings(items: Sequence[Any]) -> list[tuple[str, str]]:
    """Return a list as people write one, without the marks of JSON, each way with its name."""
    texts = [str(item) for item in items]
    if not texts:
        return []
    return [
        ("a list with commas", ", ".join(texts)),
        ("a list on lines", "\n".join(texts)),
        ("a list with dashes", "\n".join(f"- {text}" for text in texts)),
        ("a list in brackets", " ".join(f"[{text}]" for text in texts)),
    ]


def _in_other_words(gold: Gold) -> list[Honest]:
    """Return a gold that is true or false in the other usual words for it, in the frames."""
    if gold.shape is not GoldShape.TRUTH:
        return []
    spellings = [pair[gold.text.lower() in ("false", "no")] for pair in TRUTH_WORDS]
    return [
        Honest(f"{word!r}, {frame.name}", frame.around(word), frame, counted=False, word=word)
        for word in spellings
        if word != gold.text
        for frame in FRAMES
    ]


def _is_honest(frame: Frame, gold: Gold) -> bool:
    """Return whether people write such a gold in a frame: JSON stands alone, fenced or in tags, without a label."""
    if gold.shape is GoldShape.JSON:
        return frame.tags or frame.name in ("bare", "code fence")
    return gold.short or not frame.short


def without_tags(form: Honest) -> Honest:
    """Return a text of the same length without tags: what pays it as well does not read tags."""
    return Honest(untagged(form.name), form.text.replace("<", "(").replace(">", ")"), counted=False)


def untagged(name: str) -> str:
    """Return the name of a tagged form's counterpart without tags."""
    return f"{name}, in round brackets"


def spellings_in(gold: Gold, frame: Frame) -> list[Honest]:
    """Return the gold in one frame, spelled in other honest ways."""
    return [Honest(f"{name}, {frame.name}", frame.around(text)) for name, text in _spellings(gold)]


def _spellings(gold: Gold) -> list[tuple[str, str]]:
    """Return other honest ways to write the gold, each with its name."""
    text = gold.text
    spellings = [("blanks around", f"  {text} \n")]
    if gold.short:
        spellings += [("full stop", f"{text}."), ("bold", f"**{text}**")]
    if gold.shape is GoldShape.NUMBER and gold.number is not None:
        spellings.append(("in dollars", f"${text}$"))
        if gold.unit == ("", ""):
            spellings += [("bold, then a unit", f"**{text}** dollars"), ("bold dollars", f"**${text}** per day")]
        if gold.number.denominator == 1:
            whole = gold.number.numerator
            spellings.append(("decimal point", f"{whole}.0"))
            if abs(whole) >= 1000:
                spellings += [("thousands separators", f"{whole:,}"), ("no separators", str(whole))]
        elif "/" in text:
            spellings.append(("\\frac", f"\\frac{{{gold.number.numerator}}}{{{gold.number.denominator}}}"))
    if gold.shape is GoldShape.LETTER:
        choice = letter(gold)
        spellings += [("brackets", f"({choice})"), ("one bracket", f"{choice})")]
        spellings += [("Option", f"Option {choice}"), ("letter", choice)]
    if gold.shape is GoldShape.TRUTH:
        spellings += [("lower case", text.lower()), ("capital", text.capitalize())]
    if gold.shape is GoldShape.TEXT and "\n" not in text:
        spellings.append(("quotes", f'"{text}"'))
    return [(name, spelling) for name, spelling in spellings if spelling != text]


def _of_reference(row: AuditRow, text: str) -> Honest:
    """Return a reference; where it holds the gold as a word or number, what is around it frames other answers."""
    places = places_of(text, row.gold) if row.gold is not None else []
    start, end = places[-1] if places else (0, 0)
    messages = row.conversations.get(text)
    turns = messages[:-1] if messages is not None and messages[-1].get("content") == text else ()
    if not places or (not turns and text.strip() == text[start:end]):
        has_json = next(objects_in(text), None) is not None
        return Honest(REFERENCE, text, messages=messages, parts=has_json)
    frame = Frame("the reference's own words", text[:start], text[end:], common=False, turns=turns)
    return Honest(REFERENCE, text, frame, messages=messages)


def in_calls(gold: Gold) -> list[Honest]:
    """Return a gold that is a tool call, or a list of such, as servers and models write them."""
    calls = calls_in(json.loads(gold.text)) if gold.shape is GoldShape.JSON else []
    if not calls:
        return []
    return [
        Honest("<tool_call>", in_tags(calls), parts=True),
        Honest("tool_calls of a message", gold.text, messages=[message_of(calls)], parts=True),
    ]


def _own_words(row: AuditRow) -> Frame | None:
    """Return what is around the gold in the row's own completion, where it is the final answer."""
    spot = spot_of(row.own, row.gold) if row.own is not None and row.gold is not None else None
    if row.own is None or spot is None or row.own.strip() == row.own[spot[0] : spot[1]]:
        return None
    return Frame("the completion's own words", row.own[: spot[0]], row.own[spot[1] :], common=False)


def _last_lines(row: AuditRow) -> list[Frame]:
    """Return the frames in which the data itself writes a final answer."""
    usual = {(frame.before, frame.behind) for frame in FRAMES}
    endings = [(a, b) for a, b in row.endings if (a, b) not in usual]
    frames = [Frame(f"last line '{a}X{b}'", a, b, data=True) for a, b in endings]
    labels = dict.fromkeys(match[1] for text in row.references if (match := _LABEL.match(text)))
    return frames + [
        Frame(f"'{label}' and the last line '{a}X{b}'", f"{label} {_THOUGHT}\n{a}", b, data=True)
        for label in labels
        for a, b in row.endings
    ]


def _code(row: AuditRow, text: str) -> list[Honest]:
    """Return a reference program as a reward may be given it: fenced, bare, and behind words."""
    code, language = code_in(text), code_language(row)
    declaration = row.columns.get("declaration")
    if code[:1].isspace():  # a body, to be read behind its head
        is_head = language == PYTHON and "def " in row.prompt_words
        head = row.prompt_words if is_head else declaration if language != PYTHON else None
        code = f"{head}{code}" if isinstance(head, str) else code
    block = fenced(code, language)
    forms = [Honest("fenced code", block)]
    if language == PYTHON or names_language(row):  # where the row does not name another language, the fence does
        forms.append(Honest("bare code", code))
    if language != PYTHON:
        forms.append(Honest("fenced code with line ends of Windows", block.replace("\n", "\r\n")))
    return [*forms, Honest("words and fenced code", f"Here is the solution:\n\n{block}\n\nIt passes.")]
