"""How a judge's prompt is made of a template and of what is graded.

Owns :class:`Template`: its checks, and its one-pass filling with fenced data. The built-in templates are in
``templates.py``.

Covered:

- A completion that holds ``{reference}`` or any other field: text that was filled in is not read again.
- A completion that closes its fence: each fence carries a code that stands in none of the texts.
- Characters that JSON, HTTP or a log choke on: lone surrogates and control characters are written as escapes, and so
  are Unicode's tag characters, which hide readable text.
- A message that passes for another: between the turns of a conversation stand lines with the fence's code.
- Length: of a long text the two ends are kept, of a long conversation the system prompt, the last question, and what is
  to be graded before all else, and the judge is told what is missing.

Not covered: a judge that obeys what stands inside a fence. The prompt says that it is material; whether a model keeps
to that is measured by ``rewardkit audit-judge``, not promised.
"""

from __future__ import annotations

import difflib
import hashlib
import itertools
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar

from builtin_rewards.judge.conversation import Image, Turn, Turns
from builtin_rewards.judge.errors import JudgeSetupError
from builtin_rewards.judge.rubric import Criterion

MAX_CHARS = 32_000
"""Characters of one fenced text that a judge is shown, unless told otherwise: some 8,000 tokens of English."""

T = TypeVar("T")
Value: TypeAlias = str | Turns
"""What a field is filled with: a text, or turns."""

_ANSWER = "completion"
_CONVERSATION = "conversation"
_PAIR = ("first", "second")
_DATA = ("prompt", _ANSWER, _CONVERSATION, "reference", "source", *_PAIR)
"""Fields whose text comes from the model or the dataset: they are fenced."""
_OURS = ("criteria", "scale")
"""Fields whose text comes from the judge's settings: they are not."""
_INSTRUCTIONS = ("system", "developer", "tools")
_HEAD_CHARS = 24
"""Characters of a head's brackets, code and line ends."""
_LEAST_CHARS, _LEAST_TURNS, _LEAST_PARTS = 200, 64, 8
"""Of more turns or parts than have so many characters each, the middle is left out; never of so few."""
_BRACES = re.compile(r"\{\{|\}\}|\{([^{}]*)\}|[{}]")
_FIELD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_CODE_DIGITS = 12
_UNSAFE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\U000e0000-\U000e007f]")
"""Controls other than tab and line ends, lone surrogates, and the tag characters."""


@dataclass(frozen=True, slots=True)
class Template:
    r"""The text of a judge's prompt, with fields to fill in.

    ``{completion}`` is the answer to grade, ``{conversation}`` all turns, that of the completion included. A pairwise
    template has ``{first}`` and ``{second}`` instead, and its ``{conversation}`` ends before them. Others are
    ``{prompt}``, the last that the user says, ``{reference}``, ``{source}``, ``{criteria}`` and ``{scale}``. A literal
    brace is written twice.

    Attributes:
        name: Names it in errors and logs.
        version: Changes when the text does.
        system: The system message; empty for none. It may hold no data fields.
        user: The user message.
        fields: Further dataset columns that the text may name; they are fenced as the other data.
        criteria: What is graded where the user gives no criteria of their own.

    Raises:
        JudgeSetupError: No completion in it, a field that is not known, a lone brace, data in the system message.

    Example:
        >>> polite = Template("polite", "1", "", "Is this polite?\n{completion}\n{criteria}\nGrades are {scale}.")
        >>> sorted(polite.uses)
        ['completion', 'criteria', 'scale']
    """

    name: str
    version: str
    system: str
    user: str
    fields: tuple[str, ...] = ()
    criteria: tuple[Criterion, ...] = ()

    def __post_init__(self) -> None:
        for setting in ("name", "version", "system", "user"):
            if not isinstance(getattr(self, setting), str):
                raise JudgeSetupError(f"a template's {setting} is text, not {getattr(self, setting)!r}")
        if odd := _UNSAFE.search(self.system + self.user):
            raise JudgeSetupError(f"template {self.name!r} holds the character {odd.group()!r}; take it out")
        self._check_own_fields()
        self._check_names()
        self._check_answers()

    @property
    def uses(self) -> frozenset[str]:
        """The fields that the text names."""
        return self.instructs | frozenset(_names(self.user))

    @property
    def instructs(self) -> frozenset[str]:
        """The fields that the system message names."""
        return frozenset(_names(self.system))

    @property
    def is_pairwise(self) -> bool:
        """Whether it compares two answers."""
        return _PAIR[0] in self.uses

    def fill(
        self,
        values: Mapping[str, Value],
        *,
        max_chars: int = MAX_CHARS,
        images: Sequence[Image] = (),
    ) -> tuple[Mapping[str, Any], ...]:
        """Gives the chat messages for these values. The same values give the same messages.

        Data is put between lines ``<completion-CODE>`` and ``</completion-CODE>``. The code is made of the text's own
        hash, and again with a counter as long as any of the texts holds it, so no text can hold the line that closes
        a fence. That the code can be computed helps nobody: writing it into a completion makes it another. A field's
        code hangs on that field, so completions of one prompt share the head of their messages, which servers cache.

        Args:
            values: Text or turns for each field that the template uses; others are ignored.
            max_chars: Characters kept of each data field; see :func:`shortened`. Escapes are not counted.
            images: What follows the text of the user message, each under its name.

        Raises:
            JudgeSetupError: A field has no text.
        """
        texts = {name: self._text(name, values, max_chars) for name in self.uses}
        low_texts = [text.lower() for text in texts.values()]
        codes = {name: _code(name, text, low_texts) for name, text in texts.items() if name not in _OURS}
        coded = {name: self._text(name, values, max_chars, code) for name, code in codes.items()}
        filled = texts | {name: _fenced(name, text, codes[name]) for name, text in coded.items()}
        system, user = (_filled(text, filled) for text in (self.system, self.user))
        messages = [("system", system), ("user", _with_images(user, images) if images else user)]
        return tuple({"role": role, "content": content} for role, content in messages if content)

    def _text(self, name: str, values: Mapping[str, Value], max_chars: int, code: str = "") -> str:
        value = values.get(name)
        if isinstance(value, tuple):
            return escaped(transcript(value, max_chars, code))
        if not isinstance(value, str):
            raise JudgeSetupError(f"template {self.name!r} needs text for {{{name}}}, got {value!r}")
        return escaped(value if name in _OURS else shortened(value, max_chars))

    def _check_own_fields(self) -> None:
        if isinstance(self.fields, str):
            raise JudgeSetupError(f"template {self.name!r}: fields={self.fields!r} is text; write ({self.fields!r},)")
        for name in self.fields:
            if not isinstance(name, str) or not _FIELD.fullmatch(name) or name in _DATA + _OURS:
                raise JudgeSetupError(
                    f"template {self.name!r}: {name!r} cannot be a further field; give a column's name in letters, "
                    f"digits and '_' that is none of {', '.join(_DATA + _OURS)}"
                )

    def _check_names(self) -> None:
        known = (*_DATA, *_OURS, *self.fields)
        for part in ("system", "user"):
            for name in _names(getattr(self, part), f"template {self.name!r}, {part}"):
                if name not in known:
                    raise JudgeSetupError(
                        f"template {self.name!r}: no field {{{name}}}; {near_names(name, known)}. A literal brace is "
                        f"written twice; a dataset column is named in fields"
                    )
        in_system = sorted(set(_names(self.system)) - set(_OURS))
        if in_system:
            raise JudgeSetupError(
                f"template {self.name!r}: {in_system} in the system message, which is for instructions only; "
                f"put the data into the user message"
            )

    def _check_answers(self) -> None:
        answers = self.uses & {_ANSWER, *_PAIR}
        if answers not in ({_ANSWER}, set(_PAIR)) and (answers or _CONVERSATION not in self.uses):
            raise JudgeSetupError(
                f"template {self.name!r} has {sorted(answers) or 'no completion field'}: put {{completion}} where the "
                f"answer belongs, or {{conversation}} for all turns; for a comparison both {{first}} and {{second}}"
            )


def shortened(text: str, max_chars: int = MAX_CHARS) -> str:
    """Gives the text, or of a longer one the two ends with the number of characters left out between them.

    Of ``max_chars`` characters the first half, rounded up, is the text's beginning, the rest its end.

    Raises:
        JudgeSetupError: ``max_chars`` is below 2.
    """
    if max_chars < 2:
        raise JudgeSetupError(f"max_chars={max_chars!r}: at least 2 characters of a text are shown")
    if len(text) <= max_chars:
        return text
    tail = max_chars // 2
    left_out = len(text) - max_chars
    return f"{text[: max_chars - tail]}\n[... {left_out:,} characters left out ...]\n{text[-tail:]}"


def transcript(turns: Sequence[Turn], max_chars: int = MAX_CHARS, code: str = "") -> str:
    """Gives turns as text; of too many characters some turns are shortened and some left out, and what, is told.

    What the system says, the tools there were, the user's last turn, that of the prompt too, and what is to be graded
    are always shown, each shortened to its share. The others have what those leave, at least a quarter of the
    characters: the last ones whole, as many as fit.

    Args:
        turns: The turns.
        max_chars: Characters of the turns' heads and texts.
        code: Stands before each head.
    """
    lines: list[str] = []
    for is_shown, group in itertools.groupby(
        zip(turns, _shares(turns, max_chars), strict=True), lambda one: one[1] > 0
    ):
        if is_shown:
            lines += [line for turn, chars in group for line in _lines(turn, chars, code)]
        else:
            lines.append(f"[{code} ... {sum(1 for _ in group)} turns left out ...]")
    return "\n".join(lines)


def chars_left_out(value: Value, max_chars: int) -> int:
    """Gives how many characters of a text or of turns are not shown."""
    if isinstance(value, str):
        return max(0, len(value) - max_chars)
    return sum(map(_size, value)) - sum(_shares(value, max_chars))


def _shares(turns: Sequence[Turn], max_chars: int) -> list[int]:
    """Gives how many characters of each turn are shown, its heads included; of one that is left out none."""
    sizes = [_size(turn) for turn in turns]
    if sum(sizes) <= max_chars:
        return sizes
    kept = _ends(_first_served(turns), max(_LEAST_TURNS, max_chars // _LEAST_CHARS))
    others = sorted(set(range(len(turns))).difference(kept), reverse=True)
    room = max_chars - min(max_chars // 4, sum(sizes[place] for place in others))
    shares = dict(zip(kept, _levelled([sizes[place] for place in kept], room), strict=True))
    rest = max_chars - sum(shares.values())
    for place in others:
        if sizes[place] <= rest:
            shares[place] = sizes[place]
            rest -= sizes[place]
    too_long = next((place for place in others if place not in shares), None)
    if too_long is not None and rest >= _LEAST_CHARS:
        shares[too_long] = rest
    return [shares.get(place, 0) for place in range(len(turns))]


def _first_served(turns: Sequence[Turn]) -> list[int]:
    """Gives the places of what is always shown; of nothing such the last."""
    users = [place for place, turn in enumerate(turns) if turn.role == "user"]
    graded = next((place for place, turn in enumerate(turns) if turn.graded), len(turns))
    questions = {*users[-1:], *[place for place in users if place < graded][-1:]}
    served = [n for n, turn in enumerate(turns) if n in questions or turn.graded or turn.role in _INSTRUCTIONS]
    return served or [len(turns) - 1]


def _ends(given: list[T], most: int) -> list[T]:
    """Gives the first and the last where there are more than so many."""
    return given if len(given) <= most else given[: most // 2] + given[len(given) - (most - most // 2) :]


def _levelled(sizes: Sequence[int], room: int) -> list[int]:
    """Gives each its size, or as much of it as leaves the same to all that want more; at least 1."""
    most = max(sizes, default=0)
    for place, size in enumerate(sorted(sizes)):
        if size > (most := max(1, room // (len(sizes) - place))):
            break
        room -= size
    return [min(size, most) for size in sizes]


def _size(turn: Turn) -> int:
    return sum(_HEAD_CHARS + len(head) + len(text) for head, text in turn.parts)


def _lines(turn: Turn, chars: int, code: str) -> Iterator[str]:
    parts = _ends([*turn.parts], len(turn.parts) if _size(turn) <= chars else max(_LEAST_PARTS, chars // _LEAST_CHARS))
    room = chars - sum(_HEAD_CHARS + len(head) for head, _ in parts)
    shares = _levelled([len(text) for _, text in parts], room)
    for place, ((head, text), share) in enumerate(zip(parts, shares, strict=True)):
        if place == len(parts) // 2 and len(parts) < len(turn.parts):
            yield f"[{code} ... {len(turn.parts) - len(parts)} parts left out ...]"
        yield f"[{code} {head}]"
        yield shortened(text, max(2, share))


def _with_images(text: str, images: Sequence[Image]) -> list[Mapping[str, Any]]:
    parts: list[Mapping[str, Any]] = [{"type": "text", "text": text}]
    for image in dict.fromkeys(images):
        parts.append({"type": "text", "text": f"[image {image.name}]:"})
        parts.append({"type": "image_url", "image_url": {"url": image.url}})
    return parts


def escaped(text: str) -> str:
    r"""Gives the text with what JSON, HTTP or a reader cannot bear as visible escapes: ``\x00``, ``\ud800``.

    Tabs and line ends stay. A backslash stays as it is, so a text that spells such an escape looks the same.
    """
    return _UNSAFE.sub(_escape, text)


def near_names(name: str, known: Collection[str]) -> str:
    """Gives the hint of an error about an unknown name: those that look like it, or all."""
    near = difflib.get_close_matches(name, known, n=2)
    return f"did you mean {' or '.join(map(repr, near))}?" if near else f"there are {', '.join(known)}"


def _escape(match: re.Match[str]) -> str:
    code = ord(match.group())
    if code > 0xFFFF:
        return f"\\U{code:08x}"
    return f"\\u{code:04x}" if code > 0xFF else f"\\x{code:02x}"


def _names(text: str, where: str = "template") -> Iterator[str]:
    """Gives the names of a text's fields.

    Raises:
        JudgeSetupError: A brace stands alone.
    """
    for match in _BRACES.finditer(text):
        if match.group() in ("{", "}"):
            near = text[max(0, match.start() - 20) : match.end() + 20]
            raise JudgeSetupError(f"{where}: a lone {match.group()!r} in {near!r}; a literal brace is written twice")
        if match.group(1) is not None:
            yield match.group(1)


def _filled(text: str, values: Mapping[str, str]) -> str:
    return _BRACES.sub(
        lambda match: match.group()[0] if match.group(1) is None else values[match.group(1)],
        text,
    )


def _fenced(name: str, text: str, code: str) -> str:
    return f"<{name}-{code}>\n{text}\n</{name}-{code}>"


def _code(name: str, text: str, low_texts: Collection[str]) -> str:
    """Gives the first code for a text that stands in none of the texts, whatever the case of its letters."""
    digest = hashlib.sha256(f"{name}\n{text}".encode()).hexdigest()
    codes = (hashlib.sha256(f"{digest} {count}".encode()).hexdigest()[:_CODE_DIGITS] for count in itertools.count())
    return next(code for code in codes if not any(code in other for other in low_texts))
