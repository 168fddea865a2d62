"""Tiny reward models with random weights: two layers of 32 dimensions, and a tokenizer of whole words."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

WORDS = "the a cat dog sat ran on mat well badly two and is four one three . : Human Assistant ?".split()  # noqa: SIM905
PLACES = 64
"""Positions of the tiny models."""
SHAPE = {
    "vocab_size": 64, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4,
    "max_position_embeddings": PLACES, "num_labels": 1, "pad_token_id": 0,
}  # fmt: skip


def saved_tokenizer(folder: Path, *, pad: str | None = "<pad>", bert: bool = False) -> Any:
    """Save a tokenizer of whole words into a folder."""
    from tokenizers import Tokenizer, models, pre_tokenizers

    special = ["<pad>", "<unk>", "<s>", "</s>", "[CLS]", "[SEP]"]
    core = Tokenizer(models.WordLevel({word: at for at, word in enumerate([*special, *WORDS])}, unk_token="<unk>"))
    core.pre_tokenizer = pre_tokenizers.Whitespace()
    named = {"cls_token": "[CLS]", "sep_token": "[SEP]"} if bert else {"bos_token": "<s>", "eos_token": "</s>"}
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_object=core, unk_token="<unk>", pad_token=pad, **named)
    tokenizer.save_pretrained(folder)
    return tokenizer


def saved_model(
    folder: Path, kind: str = "llama", *, labels: int = 1, pad: str | None = "<pad>", head: str = "sequence"
) -> Path:
    """Save a model of 2 layers and 32 dimensions with its tokenizer, and return its folder."""
    torch.manual_seed(len(folder.name))
    bert = kind == "bert"
    tokenizer = saved_tokenizer(folder, pad=pad, bert=bert)
    shape = {**SHAPE, "num_labels": labels, "pad_token_id": tokenizer.pad_token_id}
    return saved_of((transformers.BertConfig if bert else transformers.LlamaConfig)(**shape), folder, head)


def saved_of(config: Any, folder: Path, head: str = "sequence") -> Path:
    """Save a model of a configuration with weights that are drawn, and return its folder."""
    makers = {
        "sequence": transformers.AutoModelForSequenceClassification,
        "token": transformers.AutoModelForTokenClassification,
        "lm": transformers.AutoModelForCausalLM,
    }
    model = makers[head].from_config(config)
    with torch.no_grad():
        for weight in model.parameters():
            weight.copy_(torch.randn_like(weight) * 0.2 if weight.ndim > 1 else weight)
    model.save_pretrained(folder)
    return folder
