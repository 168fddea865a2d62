"""The laws: each is found broken where it is, held where it holds, and its report says what to do."""

from __future__ import annotations

import asyncio
import os
import pickle
import random
import re
import threading
import time
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from hypothesis import strategies
from numpy.typing import NDArray

from rewardkit import (
    ConfigError,
    DataError,
    InfrastructureError,
    RewardTransportError,
    Score,
    gate,
    group_reward,
    reward,
)
from rewardkit.testing import Law, LawBroken, assert_laws
from rewardkit.testing.hostile import HOSTILE, completions
from rewardkit.testing.search import Found, search

ANSWERS = [{"prompt": "2+2=", "answer": "4"}, {"prompt": "?", "answer": 0.5, "completion": "0.5"}]
_last: list[str] = []
_seen: dict[int, str] = {}


@reward(score_range=(0, 1))
def sound(completion: str, answer: float) -> Score:
    """Keeps every law."""
    try:
        given = float(completion)
    except ValueError:
        return Score(0.0, reason="no number")
    return Score(float(given == answer))


@reward
async def waits(completion: str, answer: float) -> float | None:
    """Keeps every law, awaited."""
    await asyncio.sleep(0)
    return 1.0 if completion else None


@group_reward(score_range=(0, 1))
def unlike(completions: list[str]) -> list[float]:
    """Keeps every law, of a group."""
    return [1.0 / completions.count(one) for one in completions]


@reward
def talks(completion: list[dict[str, Any]], completion_ids: list[int], messages: list[dict[str, Any]]) -> float:
    """Keeps every law, of a conversation."""
    return float(completion[-1]["role"] == "assistant" and len(messages) == 2 and completion_ids is not None)


@reward
def reads_an_array(completion: str, numbers: NDArray[np.float64]) -> float:
    """Keeps every law, with a column that is not compared at once."""
    return float(numbers.sum())


@pytest.mark.parametrize(
    ("one", "rows", "lane"),
    [
        pytest.param(sound, ANSWERS, "worker", id="single"),
        pytest.param(waits, ANSWERS, "inline", id="async"),
        pytest.param(unlike, [{"prompt": "a"}, {"prompt": "b"}], "inline", id="group"),
        pytest.param(talks, None, "inline", id="messages"),
        pytest.param(reads_an_array, [{"numbers": "[1, 2]"}], "inline", id="array"),
        pytest.param(0.5 * sound + 0.5 * gate(sound, unlike), ANSWERS[:1], "inline", id="composition"),
    ],
)
def test_a_sound_reward_keeps_every_law(one: Any, rows: Any, lane: str) -> None:
    """No law is found broken where none is."""
    assert_laws(one, rows, max_examples=10, lane=lane)


@reward
def raises(completion: str, answer: float) -> float:
    return float(float(completion) == answer)


@reward
def raises_on_surrogates(completion: str) -> float:
    return float(len(completion.encode()))


@reward
def raises_on_many_digits(completion: str) -> float:
    found = re.search(r"\d+", completion)
    return float(int(found[0]) > 0) if found else 0.0


@reward
def raises_on_the_right_answer(completion: str, answer: str) -> float:
    return 1 / (completion != f"\\boxed{{{answer}}}")


@reward
def dies(completion: str) -> float:
    if "<think>" in completion:
        os._exit(3)
    return 0.0


@reward
def not_finite(completion: str) -> float:
    return float("inf") if "9**9" in completion else 0.0


@reward(score_range=(0, 1))
def out_of_range(completion: str) -> float:
    return completion.count("a") / 500


@reward(timeout_s=0.3)
def slow(completion: str) -> float:
    return float(bool(re.match(r"(a|aa)+$", completion)))


@reward
def throws_dice(completion: str) -> float:
    return random.random() if "{" in completion else 0.0


@reward(cache=True)
def throws_dice_once(completion: str) -> float:
    return random.random()


@reward
def remembers_the_last(completion: str) -> float:
    before, _last[:] = list(_last), [completion]
    return float(bool(before) and before != [completion] and completion != "" and before != [""])


@reward
def remembers_the_first(completion: str) -> float:
    return float(_seen.setdefault(len(completion), completion) == completion)


@reward
def hashes(completion: str) -> float:
    return float(hash(completion) % 100)


@group_reward
def by_place(completions: list[str]) -> list[float]:
    return [float(place) for place, _ in enumerate(completions)]


@group_reward
def too_few(completions: list[str]) -> list[float]:
    return [0.0 for one in completions if one]


@reward
def sorts_in_place(completion: str, tags: list[str]) -> float:
    tags.sort()
    return 0.0


@reward
async def takes_from_messages(messages: list[dict[str, Any]]) -> float:
    messages.pop()
    return 0.0


def _holding_a_lock() -> Any:
    lock = threading.Lock()

    @reward
    def holds_a_lock(completion: str) -> float:
        with lock:
            return 0.0

    return holds_a_lock


locked = _holding_a_lock()


NEED_A_WORKER = ("dies", "slow", "remembers_the_first", "hashes")


@pytest.mark.parametrize(
    ("one", "rows", "law", "completion"),
    [
        pytest.param(raises, ANSWERS, Law.NEVER_RAISES, None, id="raises"),
        pytest.param(raises_on_surrogates, None, Law.NEVER_RAISES, "\ud800", id="surrogates"),
        pytest.param(raises_on_many_digits, None, Law.NEVER_RAISES, "1" * 10_000, id="digits"),
        pytest.param(
            raises_on_the_right_answer, [{"answer": "Rome"}], Law.NEVER_RAISES, "\\boxed{Rome}", id="right-answer"
        ),
        pytest.param(dies, None, Law.NEVER_RAISES, "<think>", id="dies"),
        pytest.param(not_finite, None, Law.IN_RANGE, "9**9**9", id="not-finite"),
        pytest.param(out_of_range, None, Law.IN_RANGE, "a" * 10_000, id="out-of-range"),
        pytest.param(too_few, None, Law.IN_RANGE, None, id="too-few"),
        pytest.param(slow, None, Law.IN_TIME, None, id="slow"),
        pytest.param(throws_dice, None, Law.DETERMINISTIC, "{", id="dice"),
        pytest.param(throws_dice_once, None, Law.DETERMINISTIC, "", id="dice-cached"),
        pytest.param(remembers_the_last, None, Law.DETERMINISTIC, None, id="last"),
        pytest.param(remembers_the_first, None, Law.INDEPENDENT, None, id="first"),
        pytest.param(hashes, None, Law.INDEPENDENT, None, id="hash"),
        pytest.param(by_place, None, Law.INDEPENDENT, None, id="place"),
        pytest.param(sorts_in_place, [{"tags": ["b", "a"]}], Law.KEEPS_INPUT, None, id="sorts"),
        pytest.param(takes_from_messages, None, Law.KEEPS_INPUT, "", id="messages"),
        pytest.param(locked, None, Law.PICKLABLE, None, id="lock"),
    ],
)
def test_a_broken_law_is_found(
    one: Any, rows: Any, law: Law, completion: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The report names law, reward, the first listed or the smallest generated completion, and the remedy."""
    monkeypatch.delenv("PYTHONHASHSEED", raising=False)  # for the reward that goes by hashes
    with pytest.raises(LawBroken) as broken:
        assert_laws(one, rows, max_examples=20, lane="worker" if one.name in NEED_A_WORKER else "inline")
    words = str(broken.value)
    assert law is broken.value.law
    assert words.startswith(f"law {law} does not hold for reward {one.name!r}\n")
    assert words.splitlines()[-1].startswith("  remedy ")
    assert all(line in words for line in ("  happened ",))
    if completion is not None:
        assert (completion,) == broken.value.completions


def test_a_report_shows_the_row_and_what_happened() -> None:
    """With the reward's own line, where it raised."""
    with pytest.raises(LawBroken) as broken:
        assert_laws(raises, ANSWERS[:1])
    assert str(broken.value).splitlines()[:5] == [
        "law never_raises does not hold for reward 'raises'",
        "  prompt        '2+2='",
        "  column        answer = '4'",
        "  completion    ''",
        "  happened      failed (exception): ValueError: could not convert string to float: ''",
    ]
    assert "return float(float(completion) == answer)" in str(broken.value)


def test_a_broken_law_pickles() -> None:
    """As it must where tests run in several processes."""
    broken = LawBroken("what", Law.IN_TIME, ["a"])
    again = pickle.loads(pickle.dumps(broken))
    assert (str(broken), broken.law, broken.completions) == (str(again), again.law, again.completions)


def test_only_the_laws_asked_for_are_tried() -> None:
    """Others may be broken."""
    assert_laws(throws_dice_once, laws=["never_raises", Law.IN_RANGE], max_examples=5, lane="inline")
    assert_laws(sorts_in_place, [{"tags": ["b", "a"]}], laws=[*_but(Law.KEEPS_INPUT)], max_examples=5, lane="inline")


def _but(law: Law) -> set[Law]:
    return set(Law) - {law}


def test_a_row_s_own_completions_are_tried() -> None:
    """A completion that comes with its row is tried as it is, a group's as well."""

    @reward
    def picky(completion: str) -> float:
        return 1 / (completion != "an unlikely one")

    with pytest.raises(LawBroken) as broken:
        assert_laws(picky, [{"completion": "an unlikely one"}], lane="inline")
    assert ("an unlikely one",) == broken.value.completions
    with pytest.raises(LawBroken) as broken:
        assert_laws(by_place, [{"completions": ["x", "y"]}], laws=["independent"], lane="inline")


def test_completions_can_be_given_a_strategy() -> None:
    """One's own kind of completions, lists of messages for example, beside the listed ones."""

    @reward
    def calls(messages: list[dict[str, Any]]) -> float:
        return 1 / (messages[-1].get("tool") != 3)

    tools = strategies.integers(0, 9).map(lambda tool: [{"role": "assistant", "content": "", "tool": tool}])
    with pytest.raises(LawBroken) as broken:
        assert_laws(calls, completions=tools, lane="inline")
    assert ([{"role": "assistant", "content": "", "tool": 3}],) == broken.value.completions


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        (None, "reward 'sound' needs column 'answer'; give assert_laws rows that have it: rows=[{'answer': ...}]"),
        ([], "rows: expected at least one row"),
        (["x"], "rows[0]: expected a dict of columns, got str"),
        ([{"answer": 1}, {"anwser": 1}], "rows[1]: reward 'sound' needs column 'answer'"),
        (
            [{"answer": "x"}],
            "rows[0]: column 'answer' of example 0: expected float, got 'x'; it is the row that is wrong",
        ),
    ],
    ids=["none", "empty", "no-dict", "lacks", "coercion"],
)
@pytest.mark.parametrize("laws", [None, ["keeps_input"]], ids=["all", "input"])
def test_a_wrong_row_is_the_caller_s_mistake(rows: Any, said: str, laws: Any) -> None:
    """No law is said to be broken, and the reward is not blamed."""
    with pytest.raises(DataError) as refused:
        assert_laws(sound, rows, laws=laws, max_examples=5, lane="inline")
    assert said in str(refused.value)


def test_other_mistakes_are_told() -> None:
    """A law that there is not, a judge out of reach, a reward that cannot travel where that was not asked."""
    with pytest.raises(ConfigError, match="there is no law 'fast'; the laws are picklable, never_raises"):
        assert_laws(sound, ANSWERS, laws=["fast"])

    @reward
    def lost(completion: str) -> float:
        raise InfrastructureError("the judge is down")

    with pytest.raises(InfrastructureError, match="the judge is down"):
        assert_laws(lost, lane="inline")
    with pytest.raises(RewardTransportError, match="cannot travel"):
        assert_laws(locked, laws=["in_range"])


def test_inline_a_debugger_can_stop_in_the_reward() -> None:
    """The lane inline runs in this process, where time is measured and not limited."""
    here = []

    @reward(timeout_s=0.001)
    def sleeps(completion: str) -> float:
        here.append(os.getpid())
        time.sleep(0.005)
        return 0.0

    with pytest.raises(LawBroken, match=r"scored 0\.0, after \d+(\.\d+)? s"):
        assert_laws(sleeps, laws=["in_time"], lane="inline")
    assert {os.getpid()} == set(here)


# the search


def test_the_list_has_what_tests_forget() -> None:
    """Empty, NUL, lone surrogates, unclosed tags, a million characters, deep nesting."""
    assert "" == HOSTILE[0]
    assert {"\0", "\ud800", "<answer>", "\\boxed{", "[" * 10_000, "a" * 1_000_000} <= set(HOSTILE)
    assert len(set(HOSTILE)) == len(HOSTILE)


def test_generated_completions_hold_the_columns_texts() -> None:
    """What is right is generated too; how soon depends on the modules that are loaded, whose constants are drawn."""
    found = search(
        completions(["Rome"]), lambda text: Found("law", ((0, (text,)),), "") if "Rome" in text else None, 5000
    )
    assert found is not None
    assert ((0, ("Rome",)),) == found.units


def test_a_finding_that_does_not_come_again_counts() -> None:
    """Once broken is broken, also where hypothesis cannot see it again."""
    tried: list[str] = []

    def once(text: str) -> Found | None:
        tried.append(text)
        return Found("law", ((0, (text,)),), "once") if len(tried) == 3 else None

    found = search(completions(), once, 50)
    assert found is not None
    assert "once" == found.happened


def test_a_slow_finding_is_not_made_smaller() -> None:
    """Each further try would cost the whole deadline."""
    tried = []

    def slow_one(text: str) -> Found | None:
        tried.append(text)
        return Found("law", ((0, (text,)),), "", None, True)

    assert search(completions(), slow_one, 50) is not None
    assert 1 == len(tried)


def test_an_error_of_the_check_is_raised_as_it_is() -> None:
    """A mistake of the caller is no finding."""

    def wrong(text: Any) -> Found | None:
        raise DataError("row 3")

    with pytest.raises(DataError, match="row 3"):
        search(completions(), wrong, 50)


def test_rows_may_be_any_mapping() -> None:
    """A reward may read the whole row."""

    @reward
    def reads_all(completion: str, example: dict[str, Any], **columns: Any) -> float:
        return float(isinstance(example, Mapping) and columns == {"a": [1]})

    assert_laws(reads_all, [{"a": [1]}], max_examples=5, laws=["never_raises", "keeps_input"], lane="inline")
