"""Everyday rewards, as text and as a file: both give equal scores, and what is refused says what to write."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from rewardkit import RewardDefinitionError, RewardFunctionsConfig, Rollout, Runtime
from rewardkit.declare.text_reward import reward_from_source

pytestmark = pytest.mark.usefixtures("shared_jail")

TABLE = (Path(__file__).parents[2] / "helpers" / "everyday_rewards.txt").read_text(encoding="utf-8")
TEXTS = {entry.partition("\n")[0]: entry.partition("\n")[2] for entry in re.split(r"(?m)^### ", TABLE)[1:]}
REFUSED = {
    "single dispatch": "functools.singledispatch is not available; test the type with isinstance",
    "an async helper": "async def is not allowed; write 'def'",
    "numpy": "import of 'numpy' is not allowed; with numpy, write the reward in a file",
}
COMPLETIONS = (
    "The answer is 42.", "<answer>7</answer> so x = 7", "", '{"a": [1, 2.5], "b": "x"}', "3 4 + 2 *",
)  # fmt: skip


def _scores(functions: dict[str, object]) -> dict[str, list[tuple[float | None, str]]]:
    rollouts = [Rollout("p", completion, {"answer": "42"}) for completion in COMPLETIONS]
    with Runtime(RewardFunctionsConfig(functions), lane="inline") as runtime:  # type: ignore[arg-type]
        batch = runtime.score(rollouts)
    return {name: [(outcome.score, outcome.status) for outcome in batch[name]] for name in functions}


def test_everyday_texts_score_as_the_same_code_in_a_file(tmp_path: Path) -> None:
    """Of 65 all but those that are refused by name, for each completion."""
    names = {title: f"text_{number}" for number, title in enumerate(TEXTS) if title not in REFUSED}
    assert (65, 62) == (len(TEXTS), len(names))
    files: dict[str, object] = {}
    for title, name in names.items():
        path = tmp_path / f"{name}.py"
        header = "" if "from __future__" in TEXTS[title] else "from rewardkit import Score\n"
        path.write_text(header + TEXTS[title], encoding="utf-8")
        files[name] = f"{path}:score"
    texts = {name: {"source": TEXTS[title], "name": "score"} for title, name in names.items()}
    from_files, from_texts = _scores(files), _scores({**texts})
    assert {} == {title: from_texts[name] for title, name in names.items() if from_files[name] != from_texts[name]}
    scored = {name for name, outcomes in from_files.items() if any(status == "scored" for _, status in outcomes)}
    assert set(names.values()) == scored


@pytest.mark.parametrize(("title", "reason"), REFUSED.items(), ids=REFUSED)
def test_what_is_refused_says_what_to_write_instead(title: str, reason: str) -> None:
    """The three that do not pass: what evaluates annotations, what waits, and a library."""
    with pytest.raises(RewardDefinitionError, match=re.escape(reason)):
        reward_from_source(TEXTS[title], "score")
