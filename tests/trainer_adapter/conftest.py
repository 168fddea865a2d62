"""What the adapter's tests share: the folder of a tiny model for real training runs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import tiny_grpo


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A Qwen2 of two layers with random weights, and a byte-level tokenizer, in a folder."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HF_HUB_OFFLINE", "1")
        patch.setenv("TOKENIZERS_PARALLELISM", "false")
        pytest.importorskip("trl", reason="real training runs need the extra 'train'")
        yield tiny_grpo.tiny_model(tmp_path_factory.mktemp("tiny"))
