"""Which tool's answer belongs to which call: by id, else by the tool's name, else by place; a function of values.

The calls are those of one round: of the assistant's turns in a row, with the answers up to its next turn.

1. An id that one call and one answer have pairs these two, whatever their names. Ids are compared as text.
2. Of what is left, calls and answers of one name are paired in order where there are as many of each. TRL sends no ids
   and puts the answers of async tools, and not those of wrong arguments, behind all others.
3. Of what is left, calls and answers are paired in order where there are as many of each.

An answer with another id or name than the call, or before it, is never its own. What these rules do not pair is not
guessed: the call has no answer, and words why.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import NamedTuple

from rewardkit.shown.text import counted, shorten

_WRONG_ARGUMENTS = re.compile(  # what Python says where TRL calls a tool with arguments that do not fit
    r"\{['\"]error['\"]: .*(?:unexpected keyword argument \\?'(?P<unexpected>[^'\\]*)"
    r"|must be a mapping, not (?P<kind>\w+)|missing \d+ required [\w-]+(?: [\w-]+)? arguments?: (?P<missing>.*))",
    re.DOTALL,
)
_MOST_ERROR_CHARS = 2_000
_QUOTED = re.compile(r"\\?'([^'\\]*)\\?'")


class Marked(NamedTuple):
    """What a call, or an answer, is known by."""

    position: tuple[int, int]  # its message, and its place in it
    id: str | None  # the id of the call; ``None`` without
    name: str | None  # the name of the tool; ``None`` without
    content: object = None  # the arguments of a call, or the text of an answer


class CallAnswer(NamedTuple):
    """What became of a call: the place of its answer among the answers, or why it has none."""

    answer: int | None
    problem: str | None = None


def pair(calls: Sequence[Marked], answers: Sequence[Marked]) -> list[CallAnswer]:
    """Return for each call of a round its answer, by the rules of this module."""
    pairs = _by_id(calls, answers)
    unclear: set[int] = set()
    for name, named_calls in _by_name(calls, pairs.keys()).items():
        named_answers = _by_name(answers, set(pairs.values())).get(name, [])
        order = _order_of(named_calls, named_answers, calls, answers)
        pairs |= _in_order(named_calls, order or (), calls, answers)
        unclear |= set() if order is not None else set(named_calls)
    left = [index for index in range(len(calls)) if index not in pairs and index not in unclear]
    candidates = _Candidates(answers, set(pairs.values()))
    fitting = {index: candidates.of(calls[index]) for index in left}
    wanted = sorted({answer for indices in fitting.values() for answer in indices})
    pairs |= _in_order([index for index in left if fitting[index]], wanted, calls, answers)
    open_answers = _Candidates(answers, set(pairs.values()))
    return [
        CallAnswer(pairs[index])
        if index in pairs
        else CallAnswer(None, _problem(call, calls, answers, open_answers, pairs))
        for index, call in enumerate(calls)
    ]


class _Candidates:
    """The answers that no call has yet, by their ids."""

    def __init__(self, answers: Sequence[Marked], taken: Collection[int]) -> None:
        self._answers = answers
        self._indices: dict[str | None, list[int]] = {}
        for index, answer in enumerate(answers):
            if index not in taken:
                self._indices.setdefault(answer.id, []).append(index)

    def of(self, call: Marked) -> list[int]:
        """Return those that may be a call's."""
        groups: list[list[int]] = [*self._indices.values()]
        if call.id is not None:
            groups = [self._indices.get(call.id, []), self._indices.get(None, [])]
        return [index for indices in groups for index in indices if _fits(call, self._answers[index])]


def _by_name(entries: Sequence[Marked], taken: Collection[int]) -> dict[str, list[int]]:
    """Return the indices of those that are not taken, by name."""
    indices: dict[str, list[int]] = {}
    for index, entry in enumerate(entries):
        if entry.name is not None and index not in taken:
            indices.setdefault(entry.name, []).append(index)
    return indices


def _by_id(calls: Sequence[Marked], answers: Sequence[Marked]) -> dict[int, int]:
    """Return the pairs of a call and an answer with an id that no other call and no other answer has."""
    of_calls, of_answers = (Counter(entry.id for entry in entries) for entries in (calls, answers))
    indices = {answer.id: index for index, answer in enumerate(answers)}
    return {
        index: indices[call.id]
        for index, call in enumerate(calls)
        if call.id is not None and of_calls[call.id] == of_answers[call.id] == 1
        if answers[indices[call.id]].position > call.position
    }


def _in_order(
    open_calls: Sequence[int], open_answers: Sequence[int], calls: Sequence[Marked], answers: Sequence[Marked]
) -> dict[int, int]:
    """Return the pairs in order; none where there are not as many of each, or a pair does not fit."""
    if len(open_calls) != len(open_answers):
        return {}
    pairs = dict(zip(open_calls, open_answers, strict=True))
    return pairs if all(_fits(calls[call], answers[answer]) for call, answer in pairs.items()) else {}


def _fits(call: Marked, answer: Marked) -> bool:
    """Return whether an answer may be a call's: it stands behind it, and has no other id and no other name."""
    same_id = None in (call.id, answer.id) or call.id == answer.id
    same_name = None in (call.name, answer.name) or call.name == answer.name
    return answer.position > call.position and same_id and same_name


def _order_of(
    named_calls: Sequence[int], named_answers: Sequence[int], calls: Sequence[Marked], answers: Sequence[Marked]
) -> list[int] | None:
    """Return the answers of one name in the order of its calls; ``None`` where this order is not known.

    TRL puts errors of wrong arguments before the other answers where the tool is async. Without ids the error itself
    says which call's arguments are wrong; it is not known whose it is where it fits more calls than there are errors.
    """
    errors: dict[object, list[int]] = {}
    checks: dict[object, Callable[[object], bool]] = {}
    for index in named_answers:
        if (check := _wrong_arguments(answers[index])) is not None:
            errors.setdefault(answers[index].content, []).append(index)
            checks[answers[index].content] = check
    if not errors or len(named_calls) != len(named_answers) or len(named_calls) == 1:
        return [*named_answers]
    order: dict[int, int] = {}
    for text, indices in errors.items():
        wrong = [call for call in named_calls if checks[text](calls[call].content)]
        if len(wrong) != len(indices) or order.keys() & wrong:
            return None
        order |= zip(wrong, indices, strict=True)
    others = iter([index for index in named_answers if index not in order.values()])
    return [order[call] if call in order else next(others) for call in named_calls]


def _wrong_arguments(answer: Marked) -> Callable[[object], bool] | None:
    """Return what tells whether a call's arguments are those that an error names; ``None`` for other answers."""
    text = answer.content if isinstance(answer.content, str) and answer.id is None else ""
    error = _WRONG_ARGUMENTS.match(text[:_MOST_ERROR_CHARS])
    if error is None:
        return None
    if error["kind"]:
        return lambda arguments: not isinstance(arguments, Mapping)
    if error["unexpected"] is not None:
        return lambda arguments: isinstance(arguments, Mapping) and error["unexpected"] in arguments
    names = _QUOTED.findall(error["missing"])
    return lambda arguments: isinstance(arguments, Mapping) and not any(name in arguments for name in names)


def _problem(
    call: Marked,
    calls: Sequence[Marked],
    answers: Sequence[Marked],
    open_answers: _Candidates,
    pairs: Mapping[int, int],
) -> str:
    """Return why a call has no answer."""
    candidates = [answers[index] for index in open_answers.of(call)]
    if not candidates:
        is_before = any(call.id is not None and answer.id == call.id for answer in answers)
        return "its answer stands before it" if is_before else "no answer"
    rivals = [rival for index, rival in enumerate(calls) if index not in pairs]
    of = ""
    if call.id is not None and all(answer.id == call.id for answer in candidates):
        rivals, of = [rival for rival in rivals if rival.id == call.id], f" with the id {shorten(call.id)}"
    elif call.name is not None and all(answer.name == call.name for answer in candidates):
        rivals, of = [rival for rival in rivals if rival.name == call.name], f" of {shorten(call.name)}"
    numbers = f"{counted(len(rivals), 'call')} and {counted(len(candidates), 'answer')}"
    return f"{numbers}{of} cannot be paired; give each call an id of its own"
