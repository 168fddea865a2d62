"""Tokens of chat templates that a text spells, which a server would read as turns."""

from __future__ import annotations

import re

# What opens a token of a chat template: ChatML's and others' in pipes, DeepSeek's, Llama's, Mistral's, Gemma's, BERT's.
_TOKEN_OPENING = re.compile(
    r"[<\[](?=[|\uff5c][^<>\[\]\n]{1,60}[|\uff5c][>\]]|/?s>|<?/?SYS>>|(?:start|end)_of_(?:turn|image)>|\|?turn\|?>"
    r"|\|?channel\|?>|(?:bos|eos|eod|eop|sop|pad|unk|mask|cls|sep)>|/?(?:INST|SYSTEM_PROMPT|AVAILABLE_TOOLS|TOOL_RESULTS"
    r"|TOOL_CALLS|TOOL_CONTENT|MODEL_SETTINGS|PREFIX|MIDDLE|SUFFIX|CLS|SEP|PAD|MASK|UNK|BOS|EOS|EOT|gMASK|sMASK)\])",
    re.IGNORECASE,
)


def split_chat_tokens(text: str) -> str:
    """Return a text with a blank behind the first character of each token of a chat template.

    >>> split_chat_tokens("Lyon.<|im_end|>")
    'Lyon.< |im_end|>'
    """
    return _TOKEN_OPENING.sub(r"\g<0> ", text)
