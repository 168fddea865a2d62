"""Preference rows of every form become a prompt with completions, or are refused by row and column."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from builtin_rewards.reward_model import Calibrated, preferences_of, read_preferences
from rewardkit import DataError, reward

ASK, SAY = {"role": "user", "content": "2+2="}, {"role": "assistant", "content": "4"}
WRONG = {"role": "assistant", "content": "5"}


@pytest.mark.parametrize(
    ("row", "prompt", "chosen", "rejected"),
    [
        ({"prompt": "p", "chosen": "a", "rejected": "b"}, "p", ("a",), ("b",)),
        ({"prompt": [ASK], "chosen": [SAY], "rejected": [WRONG]}, [ASK], ([SAY],), ([WRONG],)),
        ({"prompt": "2+2=", "chosen": [ASK, SAY], "rejected": [ASK, WRONG]}, "2+2=", ([SAY],), ([WRONG],)),
        ({"chosen": [ASK, SAY], "rejected": [ASK, WRONG]}, [ASK], ([SAY],), ([WRONG],)),
        ({"prompt": "p", "chosen": ["a"], "rejected": ["b", "c", "d"]}, "p", ("a",), ("b", "c", "d")),
        ({"prompt": "p", "chosen": '["a"]', "rejected": '["b", "c"]'}, "p", ("a",), ("b", "c")),
        ({"prompt": "p", "chosen": "[1, 2]", "rejected": "[2"}, "p", ("[1, 2]",), ("[2",)),
        (
            {"prompt": "p", "chosen": [[SAY]], "rejected": [[WRONG], [ASK, WRONG]]},
            "p",
            ([SAY],),
            ([WRONG], [ASK, WRONG]),
        ),
    ],
    ids=["text", "messages", "prompt repeated", "conversations", "several", "csv", "brackets", "several talks"],
)
def test_each_form_is_read(row: dict[str, Any], prompt: Any, chosen: Any, rejected: Any) -> None:
    """The prompt stands once, and each completion is what follows it."""
    (found,) = preferences_of([row])
    assert (prompt, chosen, rejected) == (found.prompt, found.chosen, found.rejected)


def test_text_of_human_and_assistant_is_a_conversation() -> None:
    """The turns that both share are the prompt, also where the last ones differ in number."""
    shared = "\n\nHuman: Hi\n\nAssistant: Hello.\n\nHuman: 2+2="
    (found,) = preferences_of([
        {"chosen": f"{shared}\n\nAssistant: 4", "rejected": f"{shared}\n\nAssistant: 5\n\nHuman: No.\n\nAssistant: 3"}
    ])  # fmt: skip
    assert ["Hi", "Hello.", "2+2="] == [one["content"] for one in found.prompt if not isinstance(one, str)]
    assert ([SAY],) == found.chosen
    assert 3 == len(found.rejected[0])


def test_a_file_may_leave_some_prompts_out(tmp_path: Path) -> None:
    """A prompt that is null or empty is what the conversations begin with; text and messages may mix."""
    sides = {"chosen": [ASK, SAY], "rejected": [ASK, WRONG]}
    rows = [{"prompt": prompt, **sides} for prompt in ("2+2=", [ASK], None, "")]
    path = tmp_path / "pairs.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert ["2+2=", [ASK], [ASK], [ASK]] == [row.prompt for row in read_preferences(path)]


def test_rows_of_one_prompt_are_groups_of_their_own() -> None:
    """Equal prompts in two rows do not make one group, and other columns go along."""
    rows = preferences_of([{"prompt": "p", "chosen": "a", "rejected": "b", "answer": 4}] * 2)
    examples = [rollout.example for row in rows for rollout in row.rollouts]
    assert examples[0] == examples[1] != examples[2]
    assert 4 == examples[0]["answer"]


def test_the_whole_of_a_real_set_is_read(data: Path) -> None:
    """All 2,312 pairs of hh-rlhf have a prompt that ends with a person, and sides that begin with the assistant."""
    rows = read_preferences(data / "hh_rlhf" / "harmless-base_test.jsonl.gz")
    assert 2312 == len(rows)
    for row in rows:
        first = [side[0]["role"] for side in (*row.chosen, *row.rejected) if not isinstance(side, str)]
        assert row.prompt
        assert len(set(first)) == 1


def test_length_of_a_real_set_is_calibrated(data: Path, tmp_path: Path) -> None:
    """A temperature fitted on 300 pairs says that a hundred characters mean less than the score does."""

    @reward
    def shorter(completion: str) -> float:
        return -len(completion) / 100

    rows = read_preferences(data / "hh_rlhf" / "harmless-base_test.jsonl.gz", limit=300)
    given = [{"prompt": row.prompt, "chosen": row.chosen[0], "rejected": row.rejected[0]} for row in rows]
    fitted = Calibrated.fit(shorter, given, output="logit", lane="inline")
    assert 300 == fitted.calibration.examples
    assert 0 < fitted.calibration.slope < 0.5


def test_conversations_without_a_shared_beginning_are_refused() -> None:
    """There is no prompt then."""
    with pytest.raises(DataError, match=r"row 0: column 'prompt' is missing, and .* do not begin"):
        preferences_of([{"chosen": [ASK, SAY], "rejected": [{"role": "user", "content": "?"}, WRONG]}])
