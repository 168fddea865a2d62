"""Templates of OpenAI's graders: texts with ``{{ item.name }}`` and ``{{ sample.output_text }}`` in them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rewardkit.errors import RewardDefinitionError
from rewardkit.messages import completion_text, conversation
from rewardkit.types import Text

_MARK = re.compile(r"\{\{([^{}]*)\}\}")
_PATH = re.compile(r"\s*(item|sample)((?:\.\w+|\[\d+\])+)\s*")
_STEP = re.compile(r"\.(\w+)|\[(\d+)\]")
_DEEPEST = 90  # Levels of a completion's JSON: the jail takes 100, of which the namespaces around it need some
_OF_SAMPLE = ("output_text", "output_json", "output_tools", "choices")


@dataclass(frozen=True, slots=True)
class GraderTemplate:
    """A text of a grader's, with its places: literal texts and, between them, paths."""

    texts: tuple[str, ...]  # one more than there are paths
    paths: tuple[tuple[str | int, ...], ...]  # namespace, then names of fields and places in lists

    @classmethod
    def of(cls, text: str, where: str) -> GraderTemplate:
        """Read a template.

        Raises RewardDefinitionError where double braces are not closed, or hold no variable of ``item`` or ``sample``.
        """
        parts = _MARK.split(text)
        for literal in parts[::2]:
            if "{{" in literal:
                raise RewardDefinitionError(
                    f"{where}: {literal[literal.index('{{') :]!r:.80} has no end; expected {{{{ item.<column> }}}}"
                )
        return cls(tuple(parts[::2]), tuple(_path(part, where) for part in parts[1::2]))

    @property
    def columns(self) -> Iterator[str]:
        """The columns of the dataset that it reads."""
        return (str(path[1]) for path in self.paths if path[0] == "item")

    def fill(self, spaces: Mapping[str, Any]) -> str:
        """Return the text with its variables filled in: texts as they are, everything else as :func:`in_json` has it.

        Raises LookupError where a variable has no value.
        """
        filled = [self.texts[0]]
        for path, text in zip(self.paths, self.texts[1:], strict=True):
            filled += [_text_of(_value_at(spaces, path)), text]
        return "".join(filled)


def sample_of(completion: Text) -> dict[str, Any]:
    """Return the namespace ``sample`` of a completion: its text, its JSON where it is some, its calls of tools.

    JSON nested deeper than 90 levels counts as none, so that no completion ends a grader that reads its text.
    """
    text = completion_text(completion)
    answers = [message for message in conversation("", completion) if message.get("role") == "assistant"]
    calls = [call for message in answers for call in message.get("tool_calls") or ()]
    message: dict[str, Any] = {"role": "assistant", "content": text, **({"tool_calls": calls} if calls else {})}
    sample = {"output_text": text, "output_tools": calls, "choices": [{"index": 0, "message": message}]}
    try:
        decoded = json.loads(text)
    except (ValueError, RecursionError):
        return sample
    return sample if _is_deep(decoded) else {**sample, "output_json": decoded}


def item_of(example: Mapping[str, Any], prompt: Any) -> dict[str, Any]:
    """Return the namespace ``item`` of a row; one without ``messages`` or ``prompt`` gets the prompt's."""
    is_talk = isinstance(prompt, Sequence) and not isinstance(prompt, str)
    messages = [dict(turn) for turn in prompt] if is_talk else [{"role": "user", "content": prompt or ""}]
    extra = {} if prompt is None else {"prompt": prompt}
    return {"messages": messages, **extra, **example}


def in_json(value: object) -> Any:
    """Return a value as a row of JSON has it: numpy's values as Python's, and what JSON lacks, such as a date, as text.

    Such a row is what the service reads.
    """
    if value is None or isinstance(value, str | int | float):
        return value
    try:
        return json.loads(json.dumps(value, default=_as_plain))
    except (TypeError, ValueError, RecursionError):
        return str(value)


def _is_deep(value: object) -> bool:
    """Return whether a value is nested deeper than a python grader's jail takes."""
    level = [value]
    for _ in range(_DEEPEST):
        inside = [part.values() if isinstance(part, dict) else part for part in level if isinstance(part, dict | list)]
        level = [part for parts in inside for part in parts]
        if not level:
            return False
    return True


def _as_plain(value: object) -> Any:
    return value.tolist() if hasattr(value, "tolist") else str(value)


def _text_of(value: object) -> str:
    """Return a variable's value as it stands in the text."""
    value = in_json(value)
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _path(text: str, where: str) -> tuple[str | int, ...]:
    """Return the path of a variable such as ``item.name``; RewardDefinitionError for anything else."""
    match = _PATH.fullmatch(text)
    if match is None:
        raise RewardDefinitionError(
            f"{where}: {{{{{text}}}}} is not a variable; expected "
            f"{{{{ item.<column> }}}} or {{{{ sample.output_text }}}}"
        )
    steps = tuple(name or int(index) for name, index in _STEP.findall(match[2]))
    if match[1] == "sample" and steps[0] not in _OF_SAMPLE:
        raise RewardDefinitionError(
            f"{where}: {{{{{text}}}}}: a completion has sample.{', sample.'.join(_OF_SAMPLE)}; not sample.{steps[0]}"
        )
    return match[1], *steps


def _value_at(spaces: Mapping[str, Any], path: tuple[str | int, ...]) -> Any:
    """Return the value at a path; LookupError names the first step that is missing."""
    value: Any = spaces
    for depth, step in enumerate(path):
        try:
            value = value[int(step)] if isinstance(value, list) else value[step]
        except (LookupError, TypeError, ValueError):
            missing = ".".join(map(str, path[: depth + 1]))
            hint = "; the completion is not JSON" if missing == "sample.output_json" else ""
            raise LookupError(
                f"{{{{ {'.'.join(map(str, path))} }}}} has no value: there is no {missing}{hint}"
            ) from None
    return value
