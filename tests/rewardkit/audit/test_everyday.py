"""Rewards as people write them: no sound one is accused, and none that is gamed passes."""

from __future__ import annotations

from pathlib import Path

import pytest
from audited import LIMITS, audited
from everyday_rows import ROWS

from rewardkit.audit.result import AuditVerdict

HERE = Path(__file__).parent

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


@pytest.mark.cases(20)
@pytest.mark.slow
@pytest.mark.parametrize(("name", "data"), SOUND.items(), ids=SOUND)
def test_no_sound_reward_is_accused(name: str, data: str, full: bool) -> None:
    """Nothing is wrongly paid, slow or crashed, and nothing is found; it passes, or says that nothing was judged."""
    result = audited(f"{HERE}/everyday_sound.py:{name}", ROWS[data], full=full)
    assert {} == {rule: [example.completion[:200] for example in flaws] for rule, flaws in result.flaws.items()}
    assert [] == result.findings
    assert AuditVerdict.NOT_PASSED is not result.verdict(LIMITS)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "data", "rule"), [(n, *told) for n, told in FLAWED.items()], ids=FLAWED)
def test_no_gamed_reward_passes(name: str, data: str, rule: str | None, full: bool) -> None:
    """The rule that its exploit breaks is named, or it is not judged, and the reason says so."""
    result = audited(f"{HERE}/everyday_flawed.py:{name}", ROWS[data], full=full)
    assert rule is None or rule in result.flaws
    assert (AuditVerdict.NOT_JUDGED if rule is None else AuditVerdict.NOT_PASSED) is result.verdict(LIMITS)
    if rule is None:
        assert "nothing of this reward's kind was tried" in (result.why_unjudged or "")
