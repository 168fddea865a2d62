"""The completion in a query, which is how OpenRLHF sends one: the tokens of prompt and completion, decoded together.

OpenRLHF keeps special tokens when it decodes, and cuts a prompt that is too long at its beginning.
"""

from __future__ import annotations

import re

_END = re.compile(r"(?:<[|\uff5c][^\s<>|\uff5c]{1,40}[|\uff5c]>|</s>|<eos>|<end_of_turn>|<turn\|>|\[EOS\])\Z")
"""The one special token that ends a turn, as most models write it."""
_END_CHARS = 48
_HEAD = 12  # Characters by which the beginning of a query is looked for in a prompt that was cut
_MAX_TRIES = 1_000  # Places of such a beginning that are looked at


def completion_in(query: str, prompt: str) -> str:
    """Return what follows the prompt in a query, without the token that ends the turn.

    A special token may stand before the prompt, and the prompt's beginning may be missing. A query that begins
    otherwise is returned as it is.

    >>> completion_in("<s>2+2=4</s>", "2+2=")
    '4'
    """
    text = _text_behind(query, prompt)
    tail = text[-_END_CHARS:]
    match = _END.search(tail)
    return text[: len(text) - len(tail) + match.start()] if match else text


def _text_behind(query: str, prompt: str) -> str:
    if query.startswith(prompt):
        return query[len(prompt) :]
    at = query.find(prompt, 0, len(prompt) + _END_CHARS)
    if at >= 0:
        return query[at + len(prompt) :]
    head, at = query[:_HEAD], -1
    for _ in range(_MAX_TRIES if len(head) == _HEAD else 0):
        at = prompt.find(head, at + 1)
        if at < 0:
            break
        if query.startswith(prompt[at:]):
            return query[len(prompt) - at :]
    return query
