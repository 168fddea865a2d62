"""Planted flaws are named by the rule of thumb that they break, and sound rewards are not accused."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rewardkit.audit.audits import audit_rows
from rewardkit.audit.engine import AuditSettings
from rewardkit.audit.result import RewardAudit
from rewardkit.audit.rows import choose_rows
from rewardkit.loading.registry import resolve
from rewardkit.rows.reader import Row
from rewardkit.runtime.runtime import Runtime
from rewardkit.runtime.settings import RuntimeLane

HERE = Path(__file__).parent
LIMITS = {"false_accept": 0, "false_reject": 1.0, "failed": 0}
NUMBERS = (42, 317, 1250)
CITIES = ("Rome", "Oslo", "Lima")


def _call(city: str, unit: str = "celsius") -> dict[str, Any]:
    return {"name": "get_weather", "arguments": {"city": city, "unit": unit}}


def _looked_up(number: int) -> list[dict[str, Any]]:
    function = {"name": "look_up", "arguments": '{"what": "the price"}'}
    return [
        {"role": "assistant", "content": "", "tool_calls": [{"id": "1", "type": "function", "function": function}]},
        {"role": "tool", "tool_call_id": "1", "content": f"price: {number}"},
        {"role": "assistant", "content": f"It is {number}."},
    ]


DATA: dict[str, list[dict[str, Any]]] = {
    "numbers": [{"prompt": f"What are {n - 3} apples and three more?", "answer": str(n)} for n in NUMBERS],
    "decimals": [{"prompt": "How long is it, in meters?", "answer": text} for text in ("3.14", "12.5", "0.75")],
    "sums": [{"prompt": f"{n - 9}+9=", "answer": str(n)} for n in NUMBERS],
    "dates": [
        {"prompt": "When was it?", "answer": text}
        for text in ("12 May 1905", "the 3rd of July 1847", "Saint Petersburg")
    ],
    "letters": [{"prompt": "Which? (A) red (B) blue (C) green (D) grey", "answer": one} for one in "BDA"],
    "objects": [{"prompt": "Say it as JSON.", "answer": {"city": c, "people": 7, "coast": True}} for c in CITIES],
    "records": [{"prompt": "As JSON.", "answer": {f"part_{n}": f"{c} {n}" for n in range(20)}} for c in CITIES],
    "lists": [{"prompt": "Count.", "answer": [n, n + 1, n + 2]} for n in NUMBERS],
    "calls": [{"prompt": f"Weather in {c} and Paris?", "answer": [_call(c), _call("Paris")]} for c in CITIES],
    "looked_up": [
        {"prompt": [{"role": "user", "content": "What does it cost?"}], "answer": str(n), "reference": _looked_up(n)}
        for n in NUMBERS
    ],
    "completed": [
        {"prompt": f"{n - 9} and 9?", "answer": str(n), "completion": f"{n - 9} + 9 = {n}\nA: {n}"} for n in NUMBERS
    ],
}

FLAWS = {
    "five_percent": ("numbers", "tolerance"),
    "half_percent": ("numbers", "tolerance"),
    "same_digits": ("numbers", "digits"),
    "works_out": ("sums", "unfinished"),
    "right_keys": ("objects", "value"),
    "nothing_wrong": ("objects", "key"),
    "all_but_the_last_value": ("records", "value"),
    "all_but_the_last_key": ("records", "key"),
    "some_call": ("calls", "call"),
    "shorter_list": ("lists", "item"),
    "first_announced": ("numbers", "withdrawn"),
    "anywhere_in_the_talk": ("numbers", "stuffing"),
    "alike": ("dates", "digits"),
    "own_sums": ("completed", "other_gold"),
}
"""By reward, the rows that it is audited with, and the rule of thumb that must be named."""

SOUND = {
    "close_number": "numbers",
    "rounded_number": "decimals",
    "same_words": "dates",
    "letter": "letters",
    "same_object": "objects",
    "right_fields": "objects",
    "same_calls": "calls",
    "talk": "numbers",
    "talk_calls": "calls",
    "after_a_tool": "looked_up",
}

Auditor = Callable[[str, str], RewardAudit]


@pytest.fixture
def audit(full: bool) -> Auditor:
    """Return what audits a reward of a file here with some of the rows; in the short form inline, no heavy probes."""

    def audited(reference: str, data: str) -> RewardAudit:
        reward: Any = resolve(str(HERE / reference))
        settings = AuditSettings(heavy_rows=int(full), repeated_rows=1)
        lines = [Row(place + 1, dict(row)) for place, row in enumerate(DATA[data])]
        named = [p.name for p in reward.spec.parameters if p.column]
        rows = choose_rows(lines, data, count=3, seed=0, gold=None, named=named)
        lane = RuntimeLane.WORKER if full else RuntimeLane.INLINE
        with Runtime([reward], workers=1, lane=lane, cache_entries=0, max_infrastructure_rate=1.0) as runtime:
            return audit_rows(reward, rows, settings, runtime, lambda done, known: None)

    return audited


@pytest.mark.slow
@pytest.mark.parametrize(("name", "data", "rule"), [(n, *told) for n, told in FLAWS.items()], ids=FLAWS)
def test_a_planted_flaw_is_named(audit: Auditor, name: str, data: str, rule: str) -> None:
    """The rule of thumb that the reward breaks is among those told, and the audit does not pass."""
    found = audit(f"planted_flaws.py:{name}", data)
    assert 3 == found.audited
    assert rule in found.flaws
    assert not found.passed(LIMITS)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "data"), SOUND.items(), ids=SOUND)
def test_a_sound_reward_is_not_accused(audit: Auditor, name: str, data: str) -> None:
    """Nothing is wrongly paid, slow or crashed, nothing is found, and every row says something."""
    found = audit(f"planted_sound.py:{name}", data)
    assert {} == {rule: [one.completion[:200] for one in seen] for rule, seen in found.flaws.items()}
    assert [] == found.findings
    assert {} == found.unaudited
    assert found.passed(LIMITS)
