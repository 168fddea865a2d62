"""How a judge's prompt is made of a template and what is graded, which no filled-in text escapes or breaks."""

from __future__ import annotations

import hashlib
import itertools
import re
import string
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from builtin_rewards.endpoint.errors import JudgeSetupError, near_names
from builtin_rewards.judge.conversation import Image, Turn, Turns
from builtin_rewards.judge.rubric import Criterion
from builtin_rewards.reading.chat_tokens import split_chat_tokens

MAX_CHARS = 32_000  # characters of one fenced text that a judge is shown by default: some 8,000 tokens of English

Value: TypeAlias = str | Turns  # what a field is filled with: a text, or turns

_ANSWER = "completion"
_PAIR = ("first", "second")
_LIST = "answers"
_DATA = ("prompt", _ANSWER, "conversation", "reference", "source", *_PAIR, _LIST)  # of model or dataset: fenced
_UNFENCED = ("criteria", "scale")  # of the judge's settings: not fenced
_INSTRUCTIONS = ("system", "developer", "tools")
_HEAD_CHARS = 24  # characters of a head's brackets, code and line ends
_LEAST_CHARS, _LEAST_PARTS = 200, 64  # with fewer characters a part, the middle ones are left out of more parts
# Controls other than tab and line ends, lone surrogates, and the tag characters.
_UNSAFE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\U000e0000-\U000e007f]")


@dataclass(frozen=True, slots=True)
class Template:
    r"""The text of a judge's prompt, with fields to fill in.

    ``{completion}`` is the answer to grade, ``{conversation}`` all turns, the completion's included. A pairwise
    template has ``{first}`` and ``{second}`` instead, a listwise one ``{answers}``, and their ``{conversation}`` ends
    before these. Others are ``{prompt}``, the user's last text, ``{reference}``, ``{source}``, ``{criteria}`` and
    ``{scale}``. A literal brace is written twice.

    Attributes:
        name: Names it in errors and logs.
        version: Changes when the text does.
        system: The system message, without data fields; empty for none.
        user: The user message.
        fields: Further dataset columns that the text may name; they are fenced like other data.
        criteria: What is graded if the user gives no criteria.

    Raises:
        JudgeSetupError: It has no completion, an unknown field, a lone brace, or data in the system message.
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
        if isinstance(self.fields, str):
            raise JudgeSetupError(f"template {self.name!r}: fields={self.fields!r} is text; write ({self.fields!r},)")
        for setting in ("fields", "criteria"):  # a list has no hash
            object.__setattr__(self, setting, tuple(getattr(self, setting)))
        reserved = (*_DATA, *_UNFENCED)
        fields = [*reserved, *map(str, self.fields)]
        invalid = [name for name in self.fields if not str(name).isidentifier() or name in reserved]
        unknown = sorted(self.uses.difference(fields))
        hint = near_names(unknown[0], fields) if unknown else ""
        in_system = sorted(self.instructs.difference(_UNFENCED))
        answers = sorted(self.uses & {_ANSWER, *_PAIR, _LIST})
        is_complete = answers in ([_ANSWER], [*_PAIR], [_LIST]) or (not answers and "conversation" in self.uses)
        problems = {
            "characters that do not print; take them out of the text": _UNSAFE.findall(self.system + self.user),
            f"no further fields; name columns as Python writes names, none of them {', '.join(reserved)}": invalid,
            f"no such field; a literal brace is written twice, a dataset column is named in fields; {hint}": unknown,
            "data in the system message, which is for instructions only; put it into the user message": in_system,
        }
        for problem, names in problems.items():
            if names:
                raise JudgeSetupError(f"template {self.name!r}: {', '.join(map(repr, names))}: {problem}")
        if not is_complete:
            lacks = {"": "has no completion field", "first": "lacks {second}", "second": "lacks {first}"}
            problem = lacks.get("".join(answers), f"is for several kinds of judges, with {', '.join(answers)}")
            raise JudgeSetupError(
                f"template {self.name!r} {problem}: put {{completion}} where the answer belongs, or {{conversation}} "
                "for all turns; for a comparison both {first} and {second}, for all answers of a group {answers}"
            )

    @property
    def uses(self) -> frozenset[str]:
        """The fields that the text names."""
        return self.instructs | frozenset(_field_names(self.user, self.name))

    @property
    def instructs(self) -> frozenset[str]:
        """The fields that the system message names."""
        return frozenset(_field_names(self.system, self.name))

    @property
    def judge(self) -> str:
        """The kind of judge that it serves, in words."""
        groups = "a PairwiseJudge" if _PAIR[0] in self.uses else "a ListwiseJudge" if _LIST in self.uses else ""
        return groups or "an LLMJudge"

    def fill(
        self,
        values: Mapping[str, Value],
        *,
        max_chars: int = MAX_CHARS,
        images: Sequence[Image] = (),
        split_special_tokens: bool = False,
    ) -> tuple[Mapping[str, Any], ...]:
        """Return the chat messages for these values, always the same.

        Data stands between lines ``<completion-CODE>`` and ``</completion-CODE>``. The code is a hash of the text, with
        a counter until no text holds it: so no text can close a fence, and the messages of one prompt's completions
        begin alike, which servers cache.

        Args:
            values: Text or turns for each field that the template uses; others are ignored. ``{answers}`` takes all
                values named ``answer-...`` in their order, each between lines with its name.
            max_chars: Characters kept of each data field; see :func:`cut_middle`. Escapes are not counted.
            images: Images that follow the user message's text, each under its name.
            split_special_tokens: Whether tokens of chat templates in the data are broken up; see
                :func:`~builtin_rewards.reading.chat_tokens.split_chat_tokens`.
        """
        if split_special_tokens:
            values = {name: value if name in _UNFENCED else _split_tokens(value) for name, value in values.items()}
        answers = [name for name in values if name.startswith("answer-")] if _LIST in self.uses else []
        texts = {name: self._text(name, values, max_chars) for name in (self.uses - {_LIST}).union(answers)}
        low_texts = [text.lower() for text in texts.values()]
        fields = dict(texts)
        for name in texts.keys() - set(_UNFENCED):
            code = _code(name, texts[name], low_texts)
            fields[name] = f"<{name}-{code}>\n{self._text(name, values, max_chars, code)}\n</{name}-{code}>"
        fields[_LIST] = "\n\n".join(fields[name] for name in answers)
        user: Any = self.user.format_map(fields)
        if images:
            user = [{"type": "text", "text": user}]
        for image in dict.fromkeys(images):
            user.append({"type": "text", "text": f"[image {image.name}]:"})
            user.append({"type": "image_url", "image_url": {"url": image.url}})
        messages = (("system", self.system.format_map(fields)), ("user", user))
        return tuple({"role": role, "content": content} for role, content in messages if content)

    def _text(self, name: str, values: Mapping[str, Value], max_chars: int, code: str = "") -> str:
        value = values.get(name)
        if isinstance(value, tuple):
            return escape_controls(transcript(value, max_chars, code))
        if not isinstance(value, str):
            raise JudgeSetupError(f"template {self.name!r} needs text for {{{name}}}, got {value!r}")
        return escape_controls(value if name in _UNFENCED else cut_middle(value, max_chars))


def _split_tokens(value: Value) -> Value:
    if isinstance(value, str):
        return split_chat_tokens(value)
    return tuple(
        replace(turn, parts=tuple((head, split_chat_tokens(text)) for head, text in turn.parts)) for turn in value
    )


def cut_middle(text: str, max_chars: int = MAX_CHARS) -> str:
    """Return the text, or the two ends of a longer one, ``max_chars`` (at least 2) in all, and what is left out."""
    if len(text) <= max_chars:
        return text
    tail = max_chars // 2
    return f"{text[: max_chars - tail]}\n[... {len(text) - max_chars:,} characters left out ...]\n{text[-tail:]}"


def transcript(turns: Sequence[Turn], max_chars: int = MAX_CHARS, code: str = "") -> str:
    """Return turns as text with the code in each head, cut as docs/reference/judge.md, Templates, says."""
    parts = [part for turn in turns for part in turn.parts]
    lines: list[str] = []
    shares = _shares(turns, max_chars)
    for is_visible, group in itertools.groupby(zip(parts, shares, strict=True), lambda pair: pair[1] > 0):
        if is_visible:
            for (head, text), share in group:
                lines += [f"[{code} {head}]", cut_middle(text, max(2, share - _size(head)))]
        else:
            lines.append(f"[{code} ... {len([*group])} parts of the conversation left out ...]")
    return "\n".join(lines)


def omitted_chars(value: Value, max_chars: int) -> int:
    """Return how many characters of a text or of turns are not shown."""
    if isinstance(value, str):
        return max(0, len(value) - max_chars)
    return sum(_size(*part) for turn in value for part in turn.parts) - sum(_shares(value, max_chars))


def _size(head: str, text: str = "") -> int:
    return _HEAD_CHARS + len(head) + len(text)


def _shares(turns: Sequence[Turn], max_chars: int) -> list[int]:
    """Return how many characters of each part are shown, its head included; 0 if it is left out."""
    sizes = [{(n, at): _size(*part) for at, part in enumerate(turn.parts)} for n, turn in enumerate(turns)]
    whole = {key: size for turn in sizes for key, size in turn.items()}
    if sum(whole.values()) <= max_chars:
        return list(whole.values())
    first = dict.fromkeys(_priority_turns(turns))
    later = [sizes[n] for n in reversed(range(len(turns))) if n not in first]
    room = max_chars - min(max_chars // 4, sum(sum(turn.values()) for turn in later))
    shares = _level_sizes({key: size for n in first for key, size in sizes[n].items()}, room)
    rest = max_chars - sum(shares.values())
    too_long: dict[tuple[int, int], int] = {}
    for turn in later:
        if (size := sum(turn.values())) <= rest:
            shares |= turn
            rest -= size
        else:
            too_long = too_long or turn
    if rest >= _LEAST_CHARS:
        shares |= _level_sizes(too_long, rest)
    return [shares.get(key, 0) for key in whole]


def _priority_turns(turns: Sequence[Turn]) -> list[int]:
    """Return the indices of the turns that are always shown, or else the last index."""
    users = [n for n, turn in enumerate(turns) if turn.role == "user" and turn.said]
    graded = next((n for n, turn in enumerate(turns) if turn.graded), len(turns))
    questions = {*users[-1:], *[n for n in users if n < graded][-1:]}
    first = [n for n, turn in enumerate(turns) if n in questions or turn.graded or turn.role in _INSTRUCTIONS]
    first.sort(key=lambda n: (turns[n].graded, turns[n].role == "tools"))  # the middle is what many parts lose
    return first or [len(turns) - 1]


def _level_sizes(sizes: Mapping[tuple[int, int], int], room: int) -> dict[tuple[int, int], int]:
    """Return each part's size, cut to an equal share of the room; of too many parts the middle ones get none."""
    keys, limit = list(sizes), max(_LEAST_PARTS, room // _LEAST_CHARS)
    if len(keys) > limit:
        keys = keys[: limit // 2] + keys[limit // 2 - limit :]
    share = room
    for index, size in enumerate(sorted(sizes[key] for key in keys)):
        share = max(1, room // (len(keys) - index))
        if size > share:
            break
        room -= size
    return {key: min(sizes[key], share) for key in keys}


def escape_controls(text: str) -> str:
    r"""Return the text with controls (no tabs or line ends), surrogates and tag characters as ``\x00``."""
    return _UNSAFE.sub(lambda match: ascii(match.group())[1:-1], text)


def _field_names(text: str, template: str) -> Iterator[str]:
    """Yield the names of a text's fields, as they stand in it; raise JudgeSetupError for a lone brace."""
    try:
        for _, name, form, conversion in string.Formatter().parse(text):
            if name is not None:
                yield name + (f"!{conversion}" if conversion else "") + (f":{form}" if form else "")
    except ValueError as error:
        raise JudgeSetupError(f"template {template!r}: {error}; a literal brace is written twice") from None


def _code(name: str, text: str, low_texts: Collection[str]) -> str:
    """Return the first code for a text that no text holds, in upper or lower case."""
    digest = hashlib.sha256(f"{name}\n{text}".encode()).hexdigest()
    codes = (hashlib.sha256(f"{digest} {count}".encode()).hexdigest()[:12] for count in itertools.count())
    return next(code for code in codes if not any(code in other for other in low_texts))
