"""The completion in a query, which is how OpenRLHF sends one: the tokens of prompt and completion, decoded together.

OpenRLHF keeps special tokens when it decodes, and cuts a prompt that is too long at its beginning.
"""

from __future__ import annotations

import re

_END = re.compile(r"(?:<[|\uff5c][^\s<>|\uff5c]{1,40}[|\uff5c]>|</s>|<eos>|<end_of_turn>|<turn\|>|\[EOS\])\Z")
"""The one special token that ends a turn, as most models write it."""
_END_CHARS = 48
_LAST_CHARS = (">", "]")  # With which such a token ends
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
    match = _END.search(tail) if tail.endswith(_LAST_CHARS) else None
    return text[: len(text) - len(tail) + match.start()] if match else text


def follows_prompt(query: str, prompt: str) -> bool:
    """Return whether :func:`completion_in` sees where the completion of a query begins.

    >>> follows_prompt("2+2=4", "2+2="), follows_prompt("3+3=4", "2+2=")
    (True, False)
    """
    return query.startswith(prompt) or len(_text_behind(query, prompt)) < len(query)


def _text_behind(query: str, prompt: str) -> str:
    """Return the text behind the prompt, which may stand behind a special token or be cut at its beginning."""
    if query.startswith(prompt):
        return query[len(prompt) :]
    start = query.find(prompt, 0, len(prompt) + _END_CHARS)
    if start >= 0:
        return query[start + len(prompt) :]
    head, cut = query[:_HEAD], -1  # where in the prompt the query may begin
    for _ in range(_MAX_TRIES if len(head) == _HEAD else 0):
        cut = prompt.find(head, cut + 1)
        if cut < 0:
            break
        if query.startswith(prompt[cut:]):
            return query[len(prompt) - cut :]
    return query
