"""A card that ran out of memory: whose fault that is.

A card is shared with the trainer and the other workers, so that a call may find no room which a moment before or after
is there. Such a call is lost and tried again. One that asks for more than the whole card has is the reward's own fault.
"""

from __future__ import annotations

import re
import sys

_UNITS = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}
_SIZE = r"([0-9.]+) (B|KiB|MiB|GiB|TiB)"
_REQUEST = re.compile(rf"[Tt]ried to allocate {_SIZE}")
_CAPACITY = re.compile(rf"total capacity of {_SIZE}")
_MOST_CHARS = 400
FULL = "the card had no memory left for this call, which the trainer and other workers share"


def is_out_of_memory(error: BaseException) -> bool:
    """Return whether an error is torch's for a device without memory; torch is not imported for that."""
    kind = getattr(sys.modules.get("torch"), "OutOfMemoryError", None)
    return isinstance(kind, type) and issubclass(type(error), kind)


def lost_on_card(error: BaseException) -> str | None:
    """Return why a call was lost for want of a card's memory, in words; ``None`` where the reward is at fault.

    It is, where the error is another one, or the call asked for more than the card has.
    """
    if not is_out_of_memory(error):
        return None
    message = str(error)
    request, capacity = (_bytes(pattern.search(message)) for pattern in (_REQUEST, _CAPACITY))
    if request is not None and capacity is not None and request > capacity:
        return None
    return f"{FULL}: {message[:_MOST_CHARS]}"


def _bytes(match: re.Match[str] | None) -> float | None:
    return None if match is None else float(match[1]) * _UNITS[match[2]]
