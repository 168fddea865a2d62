"""The audit of a composition audits what it adds up: a trainer pays each addend by its weight."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from rewardkit import clip, gate, maximum, minimum, product, reward, scheduled
from rewardkit.audit.addends import addends_of
from rewardkit.audit.engine import AuditSettings
from rewardkit.audit.result import AuditVerdict
from rewardkit.cli.audit_report import print_reward_audit
from rewardkit.declare.compose import Composable
from tests.helpers.audited import LIMITS, audit_of

NUMBERS = {42: ("Ann", "pears"), 17: ("Ben", "cups"), 1250: ("Tom", "pens")}
ROWS = [
    {
        "prompt": f"{name} has {n - 3} {thing} and buys 3 more. How many {thing} has {name} now?",
        "answer": str(n),
        "reference": f"{n - 3} + 3 = {n} {thing}.\nAnswer: {n}",
    }
    for n, (name, thing) in NUMBERS.items()
]


@reward(score_range=(0, 1))
def mentions(completion: str, answer: str) -> float:
    return float(answer in completion)


@reward(score_range=(0, 1))
def last_number(completion: str, answer: str) -> float:
    digits = "".join(char if char.isdigit() else " " for char in completion).split()
    return float(bool(digits) and digits[-1] == answer)


@reward(score_range=(0, 1))
def exact(completion: str, answer: str) -> float:
    return float(completion.strip().split("\n")[-1].removeprefix("Answer:").strip() == answer)


@reward(score_range=(0, 1))
def announced(completion: str, answer: str) -> float:
    return float(completion.split("\n")[-1] == f"Answer: {answer}")


@reward(score_range=(0, 1))
def on_topic(prompt: str, completion: str) -> float:
    asked = set(prompt.lower().split())
    return len(asked & set(completion.lower().split())) / len(asked)


@reward(score_range=(0, 1))
def short(completion: str) -> float:
    return float(len(completion) < 2000)


Whole = Callable[[Composable], Composable]
ADDED: dict[str, Whole] = {  # what pays a part by itself
    "sum of three": lambda part: 0.5 * part + 0.3 * exact + 0.2 * on_topic,
    "half": lambda part: 0.5 * part + 0.5 * exact,
    "more": lambda part: 0.6 * part + 0.4 * exact,
    "little": lambda part: 0.1 * part + 0.9 * exact,
    "named": lambda part: (0.5 * part + 0.5 * exact).named("total"),
    "nested": lambda part: 0.5 * (0.4 * part + 0.6 * exact).named("inner") + 0.5 * exact,
    "gated": lambda part: gate(short, 0.5 * part + 0.5 * exact),
    "times": lambda part: product(short, 0.5 * part + 0.5 * exact),
    "product with a floor": lambda part: product(part, 0.5 + 0.5 * exact),
    "smallest": lambda part: minimum(0.5 * part + 0.5 * exact, 1.0 * short),
    "largest": lambda part: maximum(0.5 * part, exact),
    "clipped": lambda part: clip(0.5 * part + 0.5 * exact, 0, 1),
    "penalised": lambda part: 0.5 * part + 0.5 * exact - 0.1 * (1 - short),
    "scheduled": lambda part: scheduled(0.5 * part + 0.5 * exact, lambda step: 1.0),
}
TOGETHER: dict[str, Whole] = {  # what pays a part only with another, sound one
    "product": lambda part: product(part, exact),
    "minimum": lambda part: minimum(part, exact),
    "condition": lambda part: gate(part, exact),
    "behind a condition": lambda part: gate(exact, part),
    "sum of products": lambda part: 0.5 * product(part, exact) + 0.5 * exact,
    "gate in a sum": lambda part: (0.8 * exact + 0.2 * gate(exact, part)).named("total"),
}
SOUND_PARTS = {"exact": exact, "announced": announced}
SETTINGS = AuditSettings(heavy_rows=0, amount_rows=1, repeated_rows=1)


@pytest.mark.parametrize("part", [mentions, last_number], ids=["mentions", "last_number"])
@pytest.mark.parametrize("whole", ADDED.values(), ids=ADDED)
def test_no_composition_passes_that_pays_wrong_answers_by_an_addend(whole: Whole, part: Composable) -> None:
    """Whatever its weight, and however the sum is wrapped."""
    audit = audit_of(whole(part), ROWS, SETTINGS)
    assert AuditVerdict.NOT_PASSED is audit.verdict(LIMITS)
    assert audit.false_accepts


@pytest.mark.parametrize("part", [mentions, last_number], ids=["mentions", "last_number"])
@pytest.mark.parametrize("whole", TOGETHER.values(), ids=TOGETHER)
def test_a_part_that_pays_only_with_a_sound_one_is_not_accused(whole: Whole, part: Composable) -> None:
    audit = audit_of(whole(part), ROWS, SETTINGS)
    assert ({}, AuditVerdict.PASSED) == (audit.flaws, audit.verdict(LIMITS))


@pytest.mark.parametrize("part", ["exact", "announced"])
@pytest.mark.parametrize("whole", [*ADDED.values(), *TOGETHER.values()], ids=[*ADDED, *TOGETHER])
def test_no_composition_of_sound_parts_is_accused(whole: Whole, part: str) -> None:
    audit = audit_of(whole(SOUND_PARTS[part]), ROWS, SETTINGS)
    assert ({}, AuditVerdict.PASSED) == (audit.flaws, audit.verdict(LIMITS))


@pytest.mark.parametrize("share", [0.1, 0.5, 1.0])
def test_the_report_names_the_addend_that_pays(share: float, capsys: pytest.CaptureFixture[str]) -> None:
    """Of a list it says what it earns by which addend; no share to accept lets an addend in full pass."""
    settings = AuditSettings(accept_share=share, heavy_rows=0, amount_rows=1, repeated_rows=1)
    audit = audit_of(ADDED["half"](mentions), ROWS, settings)
    print_reward_audit(audit, LIMITS)
    report = " ".join(capsys.readouterr().out.split())
    assert audit.false_accepts
    if share >= 0.5:
        assert {"mentions": audit.false_accepts} == audit.payers
        assert "earns 0.5 by mentions, a right answer 1" in report
        assert "addend mentions it wrongly pays" in report


def test_degrees_are_named() -> None:
    """Rows on which only full pay counts are counted, and degrees of a part that reads no answer make none."""

    @reward(score_range=(0, 1))
    def near(completion: str, answer: str) -> float:
        digits = "".join(char for char in completion if char.isdigit())
        return 1 / (1 + abs(int(digits[:9] or "0") - int(answer)))

    assert len(ROWS) == audit_of(near, ROWS, SETTINGS).graded_rows
    assert 0 == audit_of(0.5 * exact + 0.5 * on_topic, ROWS, SETTINGS).graded_rows


@pytest.mark.parametrize(
    ("whole", "names"),
    [
        (exact, []),
        (0.5 * exact, []),
        (exact + mentions, ["exact", "mentions"]),
        (exact - mentions, []),
        (gate(short, exact + mentions), ["gate(short, exact)", "gate(short, mentions)"]),
        (product(exact + 0.5, mentions), ["product(exact, mentions)", "product(0.5, mentions)"]),
        (maximum(exact, product(exact, mentions)), ["exact", "product(exact, mentions)"]),
        (product(*[exact + mentions] * 5), []),
    ],
    ids=str,
)
def test_the_addends_of_a_composition(whole: Composable, names: list[str]) -> None:
    """Sums are taken apart, also within gates and products; more than 16 are not."""
    assert names == [addend.name for addend in addends_of(whole)]
