"""Rewards as people write them: no sound one is accused, and none that is gamed passes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from everyday_rows import ROWS

from rewardkit.audit.audits import audit_rows
from rewardkit.audit.engine import AuditSettings
from rewardkit.audit.result import AuditVerdict, RewardAudit
from rewardkit.audit.rows import choose_rows
from rewardkit.loading.registry import resolve
from rewardkit.rows.reader import Row
from rewardkit.runtime.runtime import Runtime, RuntimeLane

HERE = Path(__file__).parent
LIMITS = {"false_accept": 0, "false_reject": 1.0, "failed": 0}

SOUND = {
    "boxed_number": "numbers",
    "last_hashes": "solutions",
    "final_call": "calls",
    "last_final": "calls",
    "python_call": "tool_calls",
    "tool_object": "tool_objects",
    "two_lines": "headings",
    "letter_home": "letters_home",
    "reasoned": "reasoned",
    "think_answer": "places",
    "json_value": "objects",
    "json_as_text": "json_texts",
    "as_set": "tags",
    "set_of_json": "twice",
    "item_f1": "tags",
    "any_of": "synonyms",
    "in_order": "orders",
    "truth_word": "truths",
    "tagged_truth": "truths",
    "same_label": "labels",
    "like_label": "loose_labels",
    "same_day": "days",
    "same_length": "lengths",
    "same_fraction": "fractions",
    "same_share": "shares",
    "same_time": "times",
    "closeness": "measured",
    "amount_of_money": "money",
    "one_letter": "choices",
    "several_letters": "several",
    "same_move": "moves",
    "word_f1": "sentences",
    "summary_overlap": "summaries",
    "cited_f1": "sources",
    "cites_something": "documents",
    "words_between": "prompts",
    "words_near": "targets",
    "not_too_long": "prompts",
    "grows_to_a_bound": "prompts",
    "greets_and_thanks": "prompts",
    "calm": "prompts",
    "in_chinese": "prompts",
    "german_sentence": "places",
    "covers": "keywords",
    "avoids": "forbidden",
    "different_words": "prompts",
    "table_of": "prompts",
    "has_fields": "prompts",
    "right_and_neat": "numbers",
    "signed": "places",
    "last_message": "talks",
    "in_range": "ranges",
}
"""By reward, the rows that it is audited with."""

FLAWED = {
    "thorough": ("prompts", "length"),
    "right_and_long": ("places", "length"),
    "step_by_step": ("prompts", "repetition"),
    "friendly": ("prompts", "courtesy"),
    "friendly_enough": ("prompts", None),
    "well_cited": ("documents", "citing"),
    "cited_recall": ("sources", "citing"),
    "novel": ("prompts", "noise"),
    "says_yes": ("truths", "stuffing"),
    "some_item": ("tags", "item"),
    "all_items": ("tags", "item"),
    "begins_right": ("places", "negated"),
    "spam": ("spam", None),
    "enough_words": ("prompts", None),
}
"""By reward, the rows that it is audited with, and the rule that is named; ``None`` where nothing is judged."""

Auditor = Callable[..., RewardAudit]


@pytest.fixture
def audit(full: bool) -> Auditor:
    """Return what audits a reward of a file here with some of the rows; in the short form without the heavy probes."""

    def audited(reference: str, data: str, gold: str | None = None) -> RewardAudit:
        reward: Any = resolve(str(HERE / reference))
        settings = AuditSettings(heavy_rows=int(full), repeated_rows=1)
        lines = [Row(place + 1, dict(row)) for place, row in enumerate(ROWS[data])]
        named = [parameter.name for parameter in reward.spec.parameters if parameter.column]
        rows = choose_rows(lines, data, count=20, seed=0, gold=gold, named=named)
        lane = RuntimeLane.INLINE
        with Runtime([reward], workers=1, lane=lane, cache_entries=0, max_infrastructure_rate=1.0) as runtime:
            return audit_rows(reward, rows, settings, runtime, lambda done, known: None)

    return audited


@pytest.mark.slow
@pytest.mark.parametrize(("name", "data"), SOUND.items(), ids=SOUND)
def test_no_sound_reward_is_accused(audit: Auditor, name: str, data: str) -> None:
    """Nothing is wrongly paid, slow or crashed, and nothing is found; it passes, or says that nothing was judged."""
    result = audit(f"everyday_sound.py:{name}", data)
    assert {} == {rule: [example.completion[:200] for example in flaws] for rule, flaws in result.flaws.items()}
    assert [] == result.findings
    assert AuditVerdict.NOT_PASSED is not result.verdict(LIMITS)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "data", "rule"), [(n, *told) for n, told in FLAWED.items()], ids=FLAWED)
def test_no_gamed_reward_passes(audit: Auditor, name: str, data: str, rule: str | None) -> None:
    """The rule that its exploit breaks is named, or it is not judged, and the reason says so."""
    result = audit(f"everyday_flawed.py:{name}", data)
    assert rule is None or rule in result.flaws
    assert (AuditVerdict.NOT_JUDGED if rule is None else AuditVerdict.NOT_PASSED) is result.verdict(LIMITS)
    if rule is None:
        assert "nothing of this reward's kind was tried" in (result.why_unjudged or "")
