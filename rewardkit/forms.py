"""In which form a reward takes prompts and completions: as text, as a list of chat messages, or as they are.

The annotation decides, in one way for ``prompt``, ``completion`` and each of ``completions``. A conversation becomes
text where text is asked for; text is refused where messages are asked for.
"""

from __future__ import annotations

import inspect
import re
import types
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Any, NamedTuple

from rewardkit.coercion.rule import LISTS, annotation_text
from rewardkit.errors import CoercionError, RewardDefinitionError
from rewardkit.messages import ROLES, completion_text, prompt_text, role_meant, why_unknown_role
from rewardkit.shown.text import shorten
from rewardkit.types import Message

_MOST_LAYERS = 100  # Layers of an annotation that are looked through; an alias of itself has no end


class Form(StrEnum):
    """What a reward is handed of a prompt or completion."""

    TEXT = "text"  # A string; of a conversation the last message that counts
    MESSAGES = "messages"  # A list of chat messages; a string is refused
    AS_IS = "as it is"  # What the rollout holds: a string or a list of messages


def form_of(annotation: object) -> Form | None:
    """Return the form that the annotation of ``prompt`` or ``completion`` asks for; ``None`` where it fits neither.

    ``str`` and no annotation are text, a list of mappings or a bare list is messages, ``object`` and a union of both
    are whatever the rollout holds.
    """
    if _bare(annotation) in (str, typing.LiteralString):
        return Form.TEXT
    return _form(annotation, form_of, lambda elements: Form.MESSAGES if all(map(_is_message, elements)) else None)


def form_of_each(annotation: object) -> Form | None:
    """Return the form of each of ``completions``; ``None`` unless the annotation is a list of texts or conversations.

    The annotation of the elements decides, as that of ``completion`` does; a bare list is one of conversations.
    """
    return _form(
        annotation,
        form_of_each,
        lambda elements: _together([_form_of_element(element) for element in elements]) if elements else Form.MESSAGES,
    )


def _form(
    annotation: object, form_of_part: Callable[[Any], Form | None], form_of_list: Callable[[list[Any]], Form | None]
) -> Form | None:
    """Return the form of an annotation, given how to find those of a union's members and of a list's elements."""
    annotation = _bare(annotation)
    if annotation in (Any, inspect.Parameter.empty):
        return Form.TEXT
    if annotation is object or isinstance(annotation, typing.TypeVar):
        return Form.AS_IS
    origin = typing.get_origin(annotation)
    if origin in (typing.Union, types.UnionType):
        return _together([form_of_part(member) for member in typing.get_args(annotation) if member is not type(None)])
    if (origin or annotation) in (*LISTS, tuple):
        return form_of_list([argument for argument in typing.get_args(annotation) if argument is not ...])
    return None


def _bare(annotation: Any) -> Any:
    """Return what an annotation stands for, without ``NewType``, ``Annotated`` and ``type Alias = ...``."""
    for _ in range(_MOST_LAYERS):
        if isinstance(annotation, typing.NewType):
            annotation = annotation.__supertype__
        elif typing.get_origin(annotation) is typing.Annotated:
            annotation = annotation.__origin__
        elif typing.get_origin(annotation) is None and hasattr(annotation, "__value__"):
            annotation = annotation.__value__
        else:
            break
    return annotation


def _form_of_element(annotation: object) -> Form | None:
    """Return the form of a group's completions by their elements' annotation; one of a message means conversations."""
    form = form_of(annotation)
    return Form.MESSAGES if form is None and _is_message(annotation) else form


def _together(forms: Sequence[Form | None]) -> Form | None:
    """Return the form of a union: that of its members, as it is where they differ."""
    if None in forms or not forms:
        return None
    return forms[0] if len(set(forms)) == 1 else Form.AS_IS


def _is_message(annotation: object) -> bool:
    """Return whether an annotation may be that of one chat message."""
    annotation = _bare(annotation)
    if annotation in (Any, object) or isinstance(annotation, typing.TypeVar):
        return True
    origin = typing.get_origin(annotation)
    if origin in (typing.Union, types.UnionType):
        return all(map(_is_message, typing.get_args(annotation)))
    kind = origin or annotation
    return isinstance(kind, type) and (typing.is_typeddict(kind) or issubclass(kind, Mapping))


class TextParameter(NamedTuple):
    """How a reward takes its prompt, completion or completions."""

    name: str  # the parameter: ``prompt``, ``completion`` or ``completions``
    form: Form
    annotation: str  # the annotation as it is written, ``""`` where nothing is written

    @classmethod
    def of(cls, name: str, annotation: object, reward: str) -> TextParameter:
        """Return how a parameter is taken; raise RewardDefinitionError where its annotation is of something else."""
        form = (form_of_each if name == "completions" else form_of)(annotation)
        if form is None:
            text, messages = _ANNOTATIONS[name == "completions"]
            texts = "the completions' texts, or {} for their" if name == "completions" else "its text, or {} for its"
            raise RewardDefinitionError(
                f"reward {reward!r}, parameter {name!r}: it is never {annotation_text(annotation)}; annotate it "
                f"{text} for {texts.format(messages)} chat messages"
            )
        return cls(name, form, "" if annotation is Any else annotation_text(annotation))

    def form_value(self, value: Any, index: int | None = None) -> Any:
        """Return a prompt or completion in the form asked for.

        Raises CoercionError where it is neither text nor messages, or text where messages are asked for; ``index`` is
        its place in the batch, for the message.
        """
        if self.form is Form.TEXT:
            if type(value) is str:
                return value
            self._check(value, index)
            text = prompt_text(value) if self.name == "prompt" else completion_text(value)
            if not text:
                self._check_roles(value, index)
            return text
        if self.form is Form.MESSAGES:
            if isinstance(value, str):
                raise CoercionError(
                    f"{self._singular}{_of(index)}: expected a list of messages, as {self.name!r} is annotated "
                    f"{self.annotation}, got text: {shorten(value)}; for text annotate it '{self.instead}'"
                )
            self._check(value, index)
        return value

    @property
    def instead(self) -> str:
        """The annotation of the other form, as it is to be written."""
        text, messages = _ANNOTATIONS[self.name == "completions"]
        return f"{self.name}: {messages if self.form is Form.TEXT else text}"

    @property
    def _singular(self) -> str:
        return "completion" if self.name == "completions" else self.name

    def _check(self, value: object, index: int | None) -> None:
        flaw = why_no_text(value)
        if flaw is not None:
            raise CoercionError(f"{self._singular}{_of(index)}: {flaw}")

    def _check_roles(self, messages: Sequence[Message], index: int | None) -> None:
        """Raise CoercionError where no message has the role that is read and one has an unknown one, as if misspelt."""
        roles = [message["role"] for message in messages]
        role = "user" if self.name == "prompt" else "assistant"
        unknown = next((number for number, name in enumerate(roles) if name not in ROLES), None)
        if unknown is not None and role not in roles:
            raise CoercionError(
                f"{self._singular}{_of(index)}, message {unknown}: {why_unknown_role(roles[unknown])}; no message has "
                f"the role {role!r}, whose text is read"
            )


_TEXT_AS_MESSAGES = re.compile(
    r"TypeError: string indices must be integers|IndexError: string index out of range|"
    r"AttributeError: 'str' object has no attribute '(?:get|content|role|items|keys|values)'"
)
"""What Python says where the author of a reward takes text for messages."""
_MESSAGES_AS_TEXT = re.compile(
    r"AttributeError: '(?:list|dict)' object has no attribute '\w+'|"
    r"TypeError: expected string or bytes-like object, got '(?:list|dict)'|"
    r"TypeError: .*\(not \"(?:list|dict)\"\) to str"
)
"""What Python says where the author of a reward takes messages for text."""


def hint_of(error: str, taken: Iterable[TextParameter]) -> str:
    """Return words to add to the error of an author who took text for messages, or the reverse; ``""`` for others.

    They say what to write. ``taken`` is how the reward takes its prompt and completions.
    """
    as_messages, as_text = _TEXT_AS_MESSAGES.match(error), _MESSAGES_AS_TEXT.match(error)
    meant = [candidate for candidate in taken if candidate.form is Form.TEXT] if as_messages else []
    if meant:
        names = " or ".join(repr(candidate.name) for candidate in meant)
        are = "each is" if meant[0].name == "completions" else "it is" if len(meant) == 1 else "they are"
        instead = ", ".join(repr(candidate.instead) for candidate in meant)
        return f" (if {names} is meant: {are} text here; for messages annotate {instead})"
    if (as_messages or as_text) and any(candidate.form is Form.AS_IS for candidate in taken):
        have, want = ("text", "messages") if as_messages else ("messages", "text")
        example = ", such as [{'role': 'assistant', 'content': '...'}]" if as_messages else ""
        return (
            f" (if a completion is meant: it is {have} here, and the function reads {want}; give completions as {want}"
            f"{example}, and prompts too, whose form a trainer's completions have)"
        )
    return ""


_ANNOTATIONS = {False: ("str", "list[dict]"), True: ("list[str]", "list[list[dict]]")}
"""How text and messages are asked for: of one, and of a group's."""


def why_no_text(value: object) -> str | None:
    """Return why a value is neither text nor a list of chat messages; ``None`` where it is."""
    if isinstance(value, str):
        return None
    if not isinstance(value, list | tuple):
        return f"expected a string or a list of messages, got {type(value).__name__}"
    for number, message in enumerate(value):
        if type(message) is not dict and not isinstance(message, Mapping):  # the usual case is told quickly
            return (
                f"expected a list of messages such as {{'role': 'user', 'content': ...}}, but its element {number} is "
                f"{type(message).__name__} {shorten(message)}"
            )
        if not isinstance(message.get("role"), str):
            return f"message {number}: {_why_no_role(message)}"
        content = message.get("content")
        if not isinstance(content, str | list | tuple | None) and not _is_data_of_tool(message):
            hint = "; write its text, as content.decode() has it" if isinstance(content, bytes) else ""
            return f"message {number}: expected text or a list of blocks as content, got {shorten(content)}{hint}"
        if content is None and message.get("parts"):
            return f"message {number}: its 'parts' are not read; write them as a list of blocks in 'content'"
    return None


def _why_no_role(message: Mapping[str, Any]) -> str:
    """Return words on a message without a role: those of ShareGPT's form have one by another name."""
    speaker = message.get("from")
    if not isinstance(speaker, str) or "value" not in message:
        return f"expected a 'role', such as 'user' or 'assistant', in {shorten(message)}"
    instead = {"role": role_meant(speaker) or "...", "content": "..."}
    return f"it is in ShareGPT's form, {shorten(message)}; write {instead} for it"


def _is_data_of_tool(message: Mapping[str, Any]) -> bool:
    """Return whether a message is a tool's, which may give back any data."""
    return message["role"] in ("tool", "function")


def _of(index: int | None) -> str:
    return "" if index is None else f" of example {index}"
