"""All kinds of instructions, by their ids."""

from __future__ import annotations

from collections.abc import Mapping

from builtin_rewards.instructions import counts, documents, keywords, layouts, sentences, whole_texts, words
from builtin_rewards.instructions.kind import InstructionKind

IFEVAL: Mapping[str, InstructionKind] = {**counts.IFEVAL, **layouts.IFEVAL, **keywords.IFEVAL, **whole_texts.IFEVAL}
IFBENCH: Mapping[str, InstructionKind] = {
    **counts.IFBENCH,
    **documents.IFBENCH,
    **layouts.IFBENCH,
    **keywords.IFBENCH,
    **sentences.IFBENCH,
    **whole_texts.IFBENCH,
    **words.IFBENCH,
}
KINDS: Mapping[str, InstructionKind] = {**IFEVAL, **IFBENCH}
