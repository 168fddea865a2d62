"""The audit finds each planted flaw, and calls no sound reward bad."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rewardkit.audit.audits import audit_rows
from rewardkit.audit.bulk import bombs
from rewardkit.audit.engine import AuditSettings, Tick
from rewardkit.audit.honest import BARE
from rewardkit.audit.probe import Family
from rewardkit.audit.result import AuditVerdict, RewardAudit
from rewardkit.audit.rows import choose_rows
from rewardkit.audit.rules_of_thumb import RULES_OF_THUMB, cause_of
from rewardkit.audit.skips import audit_skips
from rewardkit.cli.exits import INTERRUPTED, NOT_JUDGED, audit_code
from rewardkit.errors import DataError, RewardDefinitionError
from rewardkit.loading.registry import resolve
from rewardkit.rows.reader import read_rows
from rewardkit.runtime.runtime import Runtime
from rewardkit.runtime.settings import RuntimeLane

HERE = Path(__file__).parent
LIMITS = {"false_accept": 0, "false_reject": 1.0, "failed": 0}
NUMBERS = (42, 17, 128, 1250, 365)
HEAVY = ("nan_compare", "runs_eval", "regex_bomb", "always_one", "code_in_process", "graded")
"""Rewards that need heavy probes or workers, and a sound one; they are always audited as a command does it."""


def _work(number: int) -> str:
    steps = [f"First there are {number - 3}.", "Then 3 are bought.", f"Both together are {number}."]
    return "\n".join([*steps, f"The answer is {number}"])


DATA: dict[str, list[dict[str, Any]]] = {
    "numbers": [
        {"prompt": f"Ann has {n - 3} apples and buys 3. How many has she?", "answer": str(n), "correct": "no"}
        for n in NUMBERS
    ],
    "work": [
        {"prompt": f"Ann has {n - 3} apples and buys 3.", "answer": str(n), "reference": _work(n)} for n in NUMBERS
    ],
    "marked": [
        {"prompt": f"Ann has {n - 3} apples and buys 3.", "answer": str(n), "reference": f"{_work(n)}.\nA: {n}"}
        for n in NUMBERS
    ],
    "completed": [
        {"prompt": f"Ann has {n - 3} apples and buys 3.", "answer": str(n), "completion": f"{n - 3} + 3 = {m}\nA: {m}"}
        for n, m in zip(NUMBERS, (42, 17, 6, 7, 8), strict=True)
    ],
    "units": [{"prompt": f"How long are {n} steps?", "answer": f"{n} meters"} for n in NUMBERS],
    "letters": [
        {"prompt": f"Question {n}. (A) red (B) blue (C) green (D) grey", "answer": "ABCD"[n % 4]} for n in NUMBERS
    ],
    "people": [{"prompt": "A person as JSON.", "answer": json.dumps({"name": "Ann", "age": n})} for n in NUMBERS],
    "code": [
        {
            "prompt": f"Write add_{n}(a).",
            "tests": f"assert add_{n}(1) == {n + 1}\nassert add_{n}(2) == {n + 2}",
            "reference": f"def add_{n}(a):\n    return a + {n}",
        }
        for n in NUMBERS
    ],
}

Auditor = Callable[..., RewardAudit]


@pytest.fixture
def audit(tmp_path: Path, full: bool) -> Auditor:
    """Return what audits a reward of a file with rows; in the short form most of them inline, without heavy probes."""

    def audited(reference: str, rows: list[dict[str, Any]], tick: Tick = lambda done, known: None) -> RewardAudit:
        path = tmp_path / "rows.jsonl"
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        reward = resolve(str(reference if ":" in reference and "/" in reference else HERE / reference))
        heavy = full or reward.name in HEAVY
        settings = AuditSettings(heavy_rows=int(heavy), repeated_rows=2)
        named = [p.name for p in reward.spec.parameters if p.column]  # type: ignore[attr-defined]
        picked = choose_rows(read_rows(path), str(path), count=3, seed=0, gold=None, named=named)
        lane = RuntimeLane.WORKER if heavy else RuntimeLane.INLINE
        with Runtime([reward], workers=1, lane=lane, cache_entries=0, max_infrastructure_rate=1.0) as runtime:
            return audit_rows(reward, picked, settings, runtime, tick)

    return audited


def _evidence(audit: RewardAudit) -> set[str]:
    """Return everything that speaks against a reward, as words."""
    found = {f"paid {family}" for family, one in audit.families.items() if one.accepted}
    found |= {f"slow {family}" for family, one in audit.families.items() if one.slow}
    found |= {f"crashed {family}" for family, one in audit.families.items() if one.crashed}
    return found | {one.name for one in audit.findings} | {f"lint {one.rule}" for one in audit.lint}


BAD = {
    "substring": {"paid stuffing", "paid misplaced", "paid negated", "paid neighbour", "lint substring_answer"},
    "reversed_substring": {"paid empty", "paid neighbour", "lint substring_answer"},
    "unanchored_format": {"paid format", "lint unanchored_format"},
    "last_number": {"paid misplaced", "paid negated"},
    "accepts_echo": {"paid echo"},
    "any_box": {"paid stuffing", "paid misplaced", "lint substring_answer"},
    "empty_accepted": {"paid empty"},
    "nan_compare": {"paid bomb"},
    "truthy": {"paid other_gold", "paid echo", "ignores_gold", "lint bool_of_column"},
    "runs_eval": {"slow bomb", "crashed bomb", "paid bomb", "lint eval", "lint silent_except"},
    "folds_everything": {"paid lookalike"},
    "master_key": {"paid judge"},
    "obedient_judge": {"paid judge"},
    "always_one": {"constant", "ignores_gold", "paid empty", "paid other_gold"},
    "always_one_without_gold": {"constant"},
    "from_the_prompt": {"paid echo"},
    "regex_bomb": {"slow bomb"},
    "random_noise": {"unsteady", "lint randomness"},
    "stateful": {"unsteady", "lint global_state"},
    "bool_column": {"lint bool_of_column"},
    "ignores_gold": {"ignores_gold", "paid other_gold", "paid neighbour"},
    "negation_blind": {"paid negated"},
    "skips_silence": {"silence_pays"},
    "pays_silence": {"silence_pays"},
    "pays_failures": {"paid empty", "crashed empty"},
    "raises_on_odd_text": {"crashed empty", "crashed judge"},
}


@pytest.mark.slow
@pytest.mark.parametrize(("name", "expected"), BAD.items(), ids=BAD)
def test_every_planted_flaw_is_found(audit: Auditor, name: str, expected: set[str]) -> None:
    """Each bad reward is convicted of the very flaw that it has."""
    found = audit(f"bad_rewards.py:{name}", DATA["numbers"])
    assert set() == expected - _evidence(found)
    assert found.lint or not found.passed(LIMITS)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "data", "expected"),
    [
        ("ignores_units", "units", {"paid neighbour"}),
        ("any_work", "work", {"paid work"}),
        ("any_marked", "marked", {"paid stuffing"}),
        ("any_marked", "completed", {"paid stuffing"}),
        ("any_marked_or_one", "completed", {"paid stuffing"}),
        ("fence_anywhere", "people", {"paid negated"}),
        ("fenced_or_tagged", "people", {"paid negated"}),
        ("code_in_process", "code", {"paid code", "crashed code", "lint eval"}),
    ],
)
def test_flaws_that_need_rows_of_their_kind_are_found(audit: Auditor, name: str, data: str, expected: set[str]) -> None:
    """Units, worked references and tests in the rows bring out what is blind to them."""
    found = audit(f"bad_rewards.py:{name}", DATA[data])
    assert set() == expected - _evidence(found)


@pytest.mark.parametrize(
    ("reference", "data", "frames"),
    [
        ("bad_rewards.py:fence_anywhere", "people", {"bare", "```json fence"}),
        ("bad_rewards.py:fenced_or_tagged", "people", {"bare", "<answer>", "<think> and <answer>", "```json fence"}),
        ("sound_rewards.py:boxed_number", "numbers", {"bare", "\\boxed", "sentence with \\boxed"}),
        ("sound_rewards.py:exact", "numbers", {"bare"}),
    ],
)
def test_an_audit_names_the_frames_that_it_attacked(
    audit: Auditor, reference: str, data: str, frames: set[str]
) -> None:
    """Those of the wrong answers that were tried, with their rows; a fence of JSON is one wherever it is paid."""
    result = audit(reference, DATA[data])
    assert dict.fromkeys(frames, 3) == result.as_json(LIMITS)["frames"]
    assert "bare" == next(iter(result.frames))


SOUND = {
    "exact": "numbers",
    "boxed_number": "numbers",
    "choice": "letters",
    "tags": "numbers",
    "graded": "numbers",
}


@pytest.mark.slow
@pytest.mark.parametrize(("name", "data"), SOUND.items(), ids=SOUND)
def test_no_sound_reward_is_called_bad(audit: Auditor, name: str, data: str) -> None:
    """A reward that does what it says passes, and its source is not found fault with."""
    found = audit(f"sound_rewards.py:{name}", DATA[data])
    assert set() == _evidence(found)
    assert 3 == found.audited
    assert found.passed(LIMITS)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "data"), [("person", "people"), ("length", "numbers")])
def test_a_sound_reward_that_reads_no_answer_is_not_judged(audit: Auditor, name: str, data: str) -> None:
    """It is not accused and does not pass: nothing says whether what it pays for is what it is for."""
    found = audit(f"sound_rewards.py:{name}", DATA[data])
    assert set() == _evidence(found)
    assert AuditVerdict.NOT_JUDGED is found.verdict(LIMITS)
    assert "nothing of this reward's kind was tried; it does not read the gold in 'answer'" == found.why_unjudged
    assert NOT_JUDGED == audit_code([found], LIMITS)


@pytest.mark.slow
@pytest.mark.parametrize("data", ["marked", "completed"])
def test_an_answer_alone_in_the_words_of_the_data_is_no_work(audit: Auditor, data: str) -> None:
    """A reward that pays a last line, as references or some completions have it, is attacked there on every row."""
    found = audit("sound_rewards.py:marked", DATA[data])
    assert set() == _evidence(found)
    assert (3, 3) == found.paid_forms["last line 'A: X'"]
    assert "it does not read work: it pays the answer alone" == found.families[Family.WORK].not_applicable
    assert found.passed(LIMITS)


@pytest.mark.parametrize("calls", [1, 200])
def test_an_interrupt_shows_what_is_known(audit: Auditor, calls: int) -> None:
    """What was scored by then is judged, the rest counts as not tried, and that is no pass."""

    def interrupted(done: int, known: int) -> None:
        if done == calls:
            raise KeyboardInterrupt

    found = audit("bad_rewards.py:substring", DATA["numbers"], interrupted)
    assert (True, INTERRUPTED) == (found.is_interrupted, audit_code([found], LIMITS))
    assert f"{found.untried:,} not tried" in found.breaches(LIMITS)
    assert found.untried > 100


def test_attacks_that_could_not_be_paid_are_no_all_clear(audit: Auditor, tmp_path: Path) -> None:
    """Where the right answer is paid in none of their frames, families of answers are not judged: it does not pass."""
    file = tmp_path / "worded.py"
    file.write_text(
        "from rewardkit import reward\n\n@reward(score_range=(0, 1))\n"
        "def worded(completion: str, answer: str) -> float:\n"
        '    return float({"two": "2", "three": "3"}.get(completion.split(" ")[0]) == answer)\n'
    )
    rows = [
        {"prompt": "1+1=", "answer": "2", "completion": "two"},
        {"prompt": " ", "answer": "3", "completion": "three"},
    ]
    found = audit(f"{file}:worded", rows)
    assert [1, 2] == list(found.unaudited)
    assert 'what is paid is "the row\'s own completion"' in found.unaudited[1]
    assert 0 == found.families[Family.STUFFING].judged < found.families[Family.EMPTY].judged
    assert not found.passed(LIMITS)


def test_a_reward_of_json_is_attacked_in_json(audit: Auditor, tmp_path: Path) -> None:
    """An object with the answer is a frame as others are."""
    file = tmp_path / "in_json.py"
    file.write_text(
        "from rewardkit import reward\n\n@reward(score_range=(0, 1))\n"
        "def in_json(completion: str, answer: str) -> float:\n"
        "    return float(completion.startswith('{\"answer\": ') and answer in completion)\n"
    )
    found = audit(f"{file}:in_json", DATA["numbers"])
    assert 3 == found.audited
    assert {"paid stuffing", "paid negated", "paid neighbour"} <= _evidence(found)


def test_failures_are_no_constant_score(audit: Auditor, tmp_path: Path) -> None:
    """A reward that failed on all but the answer did not pay everything the same."""
    file = tmp_path / "picky.py"
    file.write_text(
        "from rewardkit import reward\n\n@reward(default=None)\n"
        "def picky(completion: str, answer: str) -> float:\n"
        "    return {answer: 1.0}[completion]\n"
    )
    found = audit(f"{file}:picky", DATA["numbers"][:1])
    assert [] == found.findings
    assert "crashed empty" in _evidence(found)


def test_a_row_on_which_nothing_honest_is_paid_is_not_passed_over(audit: Auditor) -> None:
    """Rows without a usable gold are listed with the reason, and an audit without any other row does not pass."""
    found = audit("sound_rewards.py:boxed_number", [{"prompt": "What is it?", "answer": "a tree"}])
    assert {1: "the reward skips the row: the gold is no number"} == found.unaudited
    assert not found.passed(LIMITS)


def test_what_does_not_read_the_gold_is_not_judged_by_it(audit: Auditor) -> None:
    """Families of answers do not apply to a reward of length, and the audit says why."""
    found = audit("sound_rewards.py:length", DATA["numbers"][:2])
    reason = "it does not read the gold column 'answer'"
    assert reason == found.families[Family.OTHER_GOLD].not_applicable
    assert reason == found.families[Family.FORMS].not_applicable
    assert 0 == found.families[Family.OTHER_GOLD].judged < found.families[Family.OTHER_GOLD].tried


GOLDS: dict[str, list[Any]] = {
    "numbers": ["42", "17"],
    "words": ["Lisbon", "Vienna"],
    "letters": ["A", "B"],
    "true or false": ["yes", "no"],
    "formulas": ["x^2 + 1", "2*y"],
    "lists": ['["red", "blue"]', '["green"]'],
    "JSON": ['{"name": "Ann", "age": 42}', '{"name": "Bob", "age": 17}'],
    "values of JSON": [{"name": "Ann", "age": 42}, {"name": "Bob", "age": 17}],
    "queries": ["SELECT a FROM t WHERE b > 42", "SELECT b FROM t WHERE a > 17"],
    "none": ["", ""],
}


@pytest.mark.parametrize("golds", GOLDS.values(), ids=GOLDS)
@pytest.mark.parametrize("score", ["float(completion == answer)", "float(same(completion, answer))", "1 / len(prompt)"])
def test_a_family_of_which_nothing_was_judged_has_a_reason(
    audit: Auditor, tmp_path: Path, golds: list[Any], score: str
) -> None:
    """Whatever kind the golds are, and whether the reward reads them: no dash of the table stays unexplained."""
    file = tmp_path / "own.py"
    file.write_text(
        "import json\nfrom rewardkit import reward\n\n"
        "def same(text, answer):\n"
        "    try:\n        return json.loads(text) == json.loads(answer)\n"
        "    except ValueError:\n        return text == answer\n\n"
        "@reward(score_range=(0, 1))\n"
        f"def own(prompt: str, completion: str, answer: str) -> float:\n    return {score}\n"
    )
    found = audit(f"{file}:own", [{"prompt": f"Question {n}?", "answer": gold} for n, gold in enumerate(golds)])
    reasons = {family: counts.not_applicable for family, counts in found.families.items() if not counts.judged}
    assert [] == [family for family, reason in reasons.items() if not reason]
    assert not [family for family, counts in found.families.items() if counts.judged and counts.not_applicable]


def test_refused_honest_forms_are_counted(audit: Auditor) -> None:
    """An exact match refuses most ways of writing; that is shown, and a fault only where a limit is given."""
    found = audit("sound_rewards.py:exact", DATA["numbers"][:1])
    assert (1, 1) == found.paid_forms["bare"]
    assert (0, 1) == found.paid_forms["\\boxed"]
    assert 0.5 < found.false_reject_share < 1.0
    assert not found.passed({**LIMITS, "false_reject": 0.5})


def test_an_audit_is_ready_for_json(audit: Auditor) -> None:
    """The JSON has each family with its counts, and shortens long completions."""
    found = audit("bad_rewards.py:always_one", DATA["numbers"][:1]).as_json(LIMITS)
    told = json.loads(json.dumps(found))
    assert list(map(str, Family)) == list(told["families"])
    assert told["families"]["long"]["accepted"] > 0
    assert all(len(one["completion"]) < 2_100 for one in told["families"]["long"]["examples"]["accepted"])


def test_conversational_rows_are_answered_by_messages(audit: Auditor, tmp_path: Path) -> None:
    """Where the prompt is a list of messages, so is the completion."""
    file = tmp_path / "talk.py"
    file.write_text(
        "from rewardkit import reward\n\n@reward\n"
        "def talk(completion: list, answer: str) -> float:\n"
        '    return float(completion[0]["role"] == "assistant" and completion[0]["content"].strip() == answer)\n'
    )
    rows = [{"prompt": [{"role": "user", "content": f"Say {n}."}], "answer": str(n)} for n in NUMBERS]
    found = audit(f"{file}:talk", rows)
    assert set() == _evidence(found)
    assert 3 == found.audited


def test_the_author_leaves_out_a_family_with_a_reason(audit: Auditor, tmp_path: Path) -> None:
    """A comment in the reward's source leaves families out; the reason is in the report."""
    file = tmp_path / "similar.py"
    file.write_text(
        "import difflib\nfrom rewardkit import reward\n\n@reward\n"
        "def similar(completion: str, answer: str) -> float:\n"
        "    # audit: skip negated,echo likeness knows no negation\n"
        "    return difflib.SequenceMatcher(None, completion[:200], answer).ratio()\n"
    )
    reason = "likeness knows no negation"
    similar: Any = resolve(f"{file}:similar")
    assert {Family.NEGATED: reason, Family.ECHO: reason} == audit_skips(similar)
    file.write_text(file.read_text().replace("negated,echo likeness", "nonsense likeness"))


@pytest.mark.parametrize(("comment", "said"), [("nonsense why", "accepts 'nonsense'"), ("echo", "give the reason")])
def test_a_comment_that_leaves_out_nothing_known_is_refused(tmp_path: Path, comment: str, said: str) -> None:
    """A family that there is not, or no reason, is the author's mistake."""
    file = tmp_path / f"odd_{len(comment)}.py"
    file.write_text(
        "from rewardkit import reward\n\n@reward\ndef odd(completion: str) -> float:\n"
        f"    return 1.0  # audit: skip {comment}\n"
    )
    with pytest.raises(RewardDefinitionError, match=said):
        audit_skips(resolve(f"{file}:odd"))  # type: ignore[arg-type]


def test_a_gold_column_that_is_not_there_is_refused(tmp_path: Path) -> None:
    """--gold names a column of the data."""
    path = tmp_path / "rows.jsonl"
    path.write_text('{"prompt": "a", "answer": "b"}\n')
    with pytest.raises(DataError, match="no column 'gold'"):
        choose_rows(read_rows(path), str(path), count=1, seed=0, gold="gold", named=[])


def test_the_how_to_has_every_rule(root: Path) -> None:
    """It has a row for every family, and says of every rule of thumb what the audit says."""
    page = (root / "docs" / "how-to" / "audit-a-reward.md").read_text(encoding="utf-8")
    for family in Family:
        assert f"\n| `{family}` | " in page
    for name, rule in RULES_OF_THUMB.items():
        assert f"| `{name}` | {rule.rule} | {rule.cause} |\n" in page


@pytest.mark.parametrize(
    ("names", "words"),
    [
        (["nan", "exit()"], ["nan passes"]),
        (["JSON lists, 20,000 deep", "40 blanks and a '!'"], ["Its length alone pays"]),
        (["nan", "200,000 blanks in a tag"], ["nan passes", "Its length alone pays"]),
    ],
    ids=["values", "long", "both"],
)
def test_the_cause_of_a_paid_bomb_is_what_the_paid_texts_show(names: list[str], words: list[str]) -> None:
    """A reward of length is not said to compare nan or to run what it reads."""
    probes = {probe.name: probe for probe in bombs(None, [BARE])}
    said = cause_of("bomb", [probes[name] for name in names])
    assert words == [phrase for phrase in ("nan passes", "Its length alone pays") if phrase in said]


def test_every_kind_of_probe_has_a_rule_of_thumb() -> None:
    """Each family but that of right answers has one by its own name, unless all its probes name another."""
    assert {Family.NEIGHBOUR, Family.AMOUNT, Family.FORMS} == set(Family) - set(
        map(Family, set(map(str, Family)) & set(RULES_OF_THUMB))
    )


@pytest.mark.parametrize(
    "annotation", ["completion: list[dict]", "messages: list[dict]", "prompt: list[dict], completion"]
)
def test_a_reward_of_messages_is_audited_on_rows_of_text(audit: Auditor, tmp_path: Path, annotation: str) -> None:
    """It is handed messages, and the right answer is paid."""
    file = tmp_path / "talks.py"
    taken = annotation.partition(":")[0] if "prompt" not in annotation else "completion"
    last = taken if taken == "completion" and "prompt" in annotation else f'{taken}[-1]["content"]'
    file.write_text(
        f"from rewardkit import reward\n\n@reward\ndef talks({annotation}, answer: str) -> float:\n"
        f"    return float({last}.strip() == answer)\n"
    )
    found = audit(f"{file}:talks", DATA["numbers"][:3])
    assert (3, set()) == (found.audited, _evidence(found))
