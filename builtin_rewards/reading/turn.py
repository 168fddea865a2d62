"""What a turn says: the text without what ends it in a chat template, and without the thought before it."""

from __future__ import annotations

_STOP_TOKENS = ("<|im_end|>", "<|eot_id|>", "<|eom_id|>", "<|endoftext|>", "<|end_of_text|>", "<end_of_turn>", "</s>")
"""What chat models end their turn with, where it is left in the text."""


def unframed(text: str) -> str:
    """Gives the text without a byte order mark before it and without stop tokens at its very end.

    Neither is content: ``<|im_end|>``, ``<|eot_id|>``, ``<|eom_id|>``, ``<|endoftext|>``, ``<|end_of_text|>``,
    ``<end_of_turn>`` and ``</s>`` are how a model ends its turn.
    """
    text = text.removeprefix("\ufeff")
    bare = text.rstrip()
    if bare[-1:] != ">" or not bare.endswith(_STOP_TOKENS):
        return text
    for _ in range(len(_STOP_TOKENS)):
        for token in _STOP_TOKENS:
            bare = bare.removesuffix(token).rstrip()
    return bare


def after_thinking(text: str) -> str:
    """Gives what follows the last ``</think>``, the whole text where there is none, :func:`unframed`.

    Nothing follows a thought that opens the text and never ends.
    """
    text = unframed(text)
    place = text.rfind("</think>")
    if place < 0 and text.lstrip().startswith("<think>"):
        return ""
    return text if place < 0 else text[place + len("</think>") :]
