"""Rewards of notebooks and repositories: what is gamed there is named or not judged, and no sound one is accused."""

from __future__ import annotations

from pathlib import Path

import pytest
from audited import LIMITS, audited
from community_rows import ROWS

from rewardkit.audit.result import AuditVerdict

HERE = Path(__file__).parent

FLAWED = {
    "tag_points": ("chat", "format"),
    "tags_in_order": ("chat", "format"),
    "any_integer": ("sums", None),
    "marked_steps": ("chat", None),
    "rouge_recall": ("summaries", "stuffing"),
    "word_precision": ("summaries", "part"),
    "keyword_hits": ("keywords", "repetition"),
    "right_slots": ("people", "key"),
    "tool_and_parameters": ("calls", "value"),
    "found_documents": ("retrieval", "citing"),
    "rows_are_there": ("sql", "item"),
    "letter_first_seen": ("choices", "misplaced"),
    "own_rating": ("chat", None),
    "mostly_latin": ("chat", None),
    "best_window": ("names", "stuffing"),
    "rounded_alike": ("measured", "tolerance"),
    "thinking_pays": ("cities", "length"),
    "printed_results": ("prints", None),
    "day_of_the_year": ("days", "digits"),
    "same_letters": ("cities", "order"),
}
"""By reward, the rows that it is audited with, and the rule that is named; ``None`` where nothing is judged."""

SOUND = {
    "notebook_correct": "sums",
    "cosine_if_right": "sums",
    "right_less_overlong": "sums",
    "sum_in_words": "worked_sums",
    "within_rounding": "measured",
    "percent_sign": "percents",
    "roman": "romans",
    "same_duration": "durations",
    "calendar_day": "days",
    "tuple_of_numbers": "points",
    "same_matrix": "matrices",
    "choice_in_tags": "choices",
    "choice_or_its_text": "options",
    "all_letters": "letters",
    "one_of_five": "stars",
    "brier": "odds",
    "entailment": "entailments",
    "normalized_name": "names",
    "edit_ratio": "names",
    "rouge_l": "summaries",
    "bigram_f1": "summaries",
    "brevity_bleu": "summaries",
    "card_fields": "people",
    "card_with_schema": "people",
    "call_f1": "several_calls",
    "call_as_code": "calls_in_python",
    "message_call": "talks",
    "document_f1": "retrieval",
    "ranked_first": "retrieval",
    "same_rows": "sql",
    "passes_asserts": "asserts",
    "overlap_of_boxes": "boxes",
    "span_of_text": "spans",
    "csv_lines": "tables",
    "pattern_matches": "patterns",
    "short_and_clean": "chat",
    "answer_language": "greek",
    "thinks_then_answers": "thoughts",
    "covers_points": "points_to_make",
    "not_repeating": "chat",
}
"""By reward, the rows that it is audited with."""

NOT_JUDGED = {
    *("span_of_text", "pattern_matches", "short_and_clean", "answer_language", "thinks_then_answers", "covers_points"),
    *("not_repeating", "call_as_code"),
}
"""Those that read no answer, or one in a form in which no other can be written."""


@pytest.mark.cases(10)
@pytest.mark.slow
@pytest.mark.parametrize(("name", "data", "rule"), [(name, *case) for name, case in FLAWED.items()], ids=FLAWED)
def test_no_gamed_reward_passes(name: str, data: str, rule: str | None, full: bool) -> None:
    """The rule that its exploit breaks is named, or it is not judged, and the reason says so."""
    result = audited(f"{HERE}/community_flawed.py:{name}", ROWS[data], full=full)
    assert rule is None or rule in result.flaws
    assert (AuditVerdict.NOT_JUDGED if rule is None else AuditVerdict.NOT_PASSED) is result.verdict(LIMITS)
    assert (rule is None) == ("nothing of this reward's kind was tried" in (result.why_unjudged or ""))


@pytest.mark.cases(16)
@pytest.mark.slow
@pytest.mark.parametrize(("name", "data"), SOUND.items(), ids=SOUND)
def test_no_sound_reward_is_accused(name: str, data: str, full: bool) -> None:
    """Nothing is wrongly paid, slow or crashed, and nothing is found; it passes, or says that nothing was judged."""
    result = audited(f"{HERE}/community_sound.py:{name}", ROWS[data], full=full)
    assert {} == {rule: [example.completion[:200] for example in flaws] for rule, flaws in result.flaws.items()}
    assert [] == result.findings
    expected = AuditVerdict.NOT_JUDGED if name in NOT_JUDGED else AuditVerdict.PASSED
    assert expected is result.verdict(LIMITS)
