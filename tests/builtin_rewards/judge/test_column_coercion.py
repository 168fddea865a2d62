"""What a judge reads of a row: lists of passages, and rubrics of the row's own."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from builtin_rewards.judge import JudgeSetupError, Jury, LLMJudge, PairwiseJudge, Template
from builtin_rewards.judge.column_coercion import row_rubric
from builtin_rewards.judge.rubric import Rubric
from rewardkit import Cause, CoercionError, Outcome, Rollout, Runtime, Status
from rewardkit.cli.check import check_columns
from rewardkit.cli.program import app
from rewardkit.rows.reader import Row
from rewardkit.testing import Asked, FakeJudge

LIKE = Rubric(["any"], (0, 1))


def meets(*met: str) -> FakeJudge:
    """Return a model that says of each criterion it is asked about whether its text holds one of these words."""

    def reply(asked: Asked) -> str:
        criteria = asked.text.split("Criteria:\n")[1].split("\n\nGrades are")[0]
        named = dict(line.removeprefix("- ").split(": ", 1) for line in criteria.splitlines())
        grades = {name: int(any(word in text for word in met)) for name, text in named.items()}
        return json.dumps({name: {"reason": "So.", "score": grade} for name, grade in grades.items()})

    return FakeJudge(reply)


def judge(client: Any = None, **settings: Any) -> LLMJudge:
    return LLMJudge("m", client=client or meets("dose"), **{"criteria_column": "rubric", **settings})


def outcomes(made: Any, *examples: dict[str, Any]) -> Sequence[Outcome]:
    with Runtime([made], lane="inline", max_infrastructure_rate=1.0) as runtime:
        return list(runtime.score([Rollout("How much?", "Two a day.", one) for one in examples])[made.name])


ROWS = [
    (["Names a dose.", "Names a doctor."], 0.5),
    ('["Names a dose.", "Names a doctor."]', 0.5),
    ([{"criterion": "Names a dose.", "points": 5, "tags": ["level:example"]}, {"criterion": "?", "points": 3}], 5 / 8),
    ([{"text": "Says so.", "weight": 4}, {"text": "A wrong dose.", "weight": -2}], 0.0),
    ([{"text": "A dose.", "weight": 4}, {"text": "A bad dose.", "weight": 2, "kind": "negative"}], 0.5),
    ([{"text": "A dose.", "weight": 4}, {"text": "Warns.", "kind": "must"}], 0.0),
    ([{"text": "A dose.", "weight": 4}, {"text": "Warns.", "must": True, "weight": None, "name": "warns"}], 0.0),
    (json.dumps([{"text": "A dose.", "weight": 4}, "Warns."]), 4 / 5),
    (np.array(["Names a dose.", "Names a doctor."]), 0.5),
]
TREE = {  # PaperBench's form
    "id": "root",
    "requirements": "The paper is reproduced.",
    "weight": 1,
    "task_category": None,
    "sub_tasks": [
        {"id": "a", "requirements": "Names a dose.", "weight": 3, "sub_tasks": [], "task_category": "Code Development"},
        {
            "id": "b",
            "requirements": "It is safe.",
            "weight": 2,
            "sub_tasks": [
                {"id": "c", "requirements": "Asks a doctor.", "weight": 1, "sub_tasks": None},
                {"id": "d", "requirements": "A small dose.", "weight": 4, "sub_tasks": []},
                {"id": "e", "requirements": "Not counted.", "weight": 0, "sub_tasks": []},
            ],
        },
    ],
}
PITFALLS = [  # the form of Rubrics as Rewards
    {"title": "Dose", "description": "Essential Criteria: Names the dose.", "weight": 5},
    {"title": "Doctor", "description": "Important Criteria: Names a doctor.", "weight": 3},
    {"title": "Overdose", "description": "Pitfall Criteria: Recommends a double dose.", "weight": -2},
]


@pytest.mark.parametrize("each", [False, True])
def test_each_row_is_graded_by_its_own_rubric(each: bool) -> None:
    """Texts or objects, as a list or as JSON, asked in one question or in one each."""
    made = judge(each=each)
    scored = outcomes(made, *({"rubric": rubric} for rubric, _ in ROWS))
    assert [pytest.approx(score) for _, score in ROWS] == [outcome.score for outcome in scored]
    assert [2.0] * len(ROWS) == [outcome.metrics["criteria"] for outcome in scored]
    assert [1.0 + each] * len(ROWS) == [outcome.metrics["requests"] for outcome in scored]
    assert "c1 1 of 1: So.; c2 0 of 1: So." == scored[0].reason
    assert str(scored[5].reason).startswith("at most 0, because c2 must be met: ")


@pytest.mark.parametrize("together", ["all", "each", 2])
@pytest.mark.parametrize(
    "rubric",
    [TREE, json.dumps(TREE), {**TREE, "sub_tasks": np.array(TREE["sub_tasks"])}],
    ids=["object", "text", "as Parquet has it"],
)
def test_a_tree_of_tasks_is_read_as_its_leaves(rubric: Any, together: Any) -> None:
    """The score is that of the weighted means from the leaves up: (3 * 1 + 2 * (1 * 0 + 4 * 1) / 5) / 5."""
    outcome = outcomes(judge(together=together), {"rubric": rubric})[0]
    assert (pytest.approx((3 + 2 * 4 / 5) / 5), 3.0) == (outcome.score, outcome.metrics["criteria"])
    read = row_rubric(rubric, LIKE)
    assert read is not None
    texts = ["Names a dose.", "It is safe. > Asks a doctor.", "It is safe. > A small dose."]
    assert texts == [criterion.description for criterion in read.criteria]


def test_a_tree_may_have_more_leaves_than_a_question_has_criteria() -> None:
    """They are asked about in questions of a hundred at most."""
    leaves = [{"requirements": f"Names dose {number}.", "weight": 1} for number in range(250)]
    made = judge(meets("Names"))
    outcome = outcomes(made, {"rubric": {"requirements": "All.", "sub_tasks": leaves}})[0]
    assert (1.0, 250.0, 3.0) == (outcome.score, outcome.metrics["criteria"], outcome.metrics["requests"])


def test_pitfalls_of_rubrics_as_rewards_take_points() -> None:
    """Those that the answer falls into; what has the word "dose" is met here: (5 - 2) / 8."""
    assert pytest.approx(3 / 8) == outcomes(judge(), {"rubric": PITFALLS})[0].score


def test_anchors_of_a_row_stand_below_their_criterion() -> None:
    """By their grades, which JSON has as text; in each chunk with their own."""
    rubric = [{"text": "Names a dose.", "anchors": {"1": "The right\none.", "0": "No dose."}}, "Warns."]
    (message,) = [
        m["content"] for m in judge().render(prompt="?", completion="!", rubric=rubric) if m["role"] == "user"
    ]
    lines = "- c1: Names a dose.\n  - grade 0: No dose.\n  - grade 1: The right one.\n- c2: Warns.\n"
    assert lines in message
    parts = judge(together="each").render(prompt="?", completion="!", rubric=rubric)
    assert [True, False] == ["grade 0" in part["content"] for part in parts if part["role"] == "user"]


@pytest.mark.parametrize(
    ("criterion", "words"),
    [
        ({"text": "Does not mention an overdose.", "weight": -2}, "if that is right, turn the sign"),
        ({"description": "Pitfall Criteria: Does not mention rest.", "weight": -1}, "turn the sign"),
        ({"description": "Pitfall: Does not mention rest.", "weight": -1}, "turn the sign"),
        ({"text": "The answer never names a dose.", "kind": "negative"}, "turn the sign"),
        ({"text": "Avoids jargon.", "points": -1}, "turn the sign"),
        ({"description": "Pitfall Criteria: Recommends rest.", "weight": 2}, "a pitfall has a negative weight"),
        ({"text": "Fails to name a dose.", "weight": 1}, "a pitfall has a negative weight"),
        ({"text": "Lacks a warning.", "weight": 3}, "a pitfall has a negative weight"),
        ({"text": "The answer overlooks the interaction.", "weight": 3}, "a pitfall has a negative weight"),
        ({"text": "Makes no mention of rest.", "weight": -1}, "turn the sign"),
        ({"text": "The response didn\u2019t ask.", "weight": -1}, "turn the sign"),
        ({"text": "Lacks a warning.", "weight": -3}, None),
        ({"text": "Says what a plan that lacks funds needs.", "weight": 1}, None),
        ({"text": "Recommends an overdose.", "weight": -2}, None),
        ({"text": "Omits the dose.", "weight": -2}, None),
        ({"text": "Mentions that aspirin fails to help.", "weight": 2}, None),
        ({"text": "Explains why it fails to help.", "weight": 2}, None),
        ({"text": "Does not mention an overdose.", "weight": 2}, None),
    ],
    ids=str,
)
def test_check_says_where_a_weight_may_have_the_wrong_sign(criterion: dict[str, Any], words: str | None) -> None:
    """With the line and the criterion, as a warning."""
    made = judge()
    rows = [{"rubric": ["A."]}, {"rubric": ["A.", criterion]}, {"rubric": [criterion, "A."]}, {"rubric": "none"}]
    assert [1, 2] * bool(words) == [doubt.row for doubt in made.doubts(rows)]
    if words:
        (warning,) = check_columns(made, [Row(line, row) for line, row in enumerate(rows, 1)]).warnings
        assert warning.startswith("line 2, column 'rubric': criterion 'c2' of weight ")
        assert warning.endswith(f"{words}; 2 rows are like it")


def test_of_two_keys_for_one_thing_the_first_in_the_table_counts() -> None:
    """However they stand in the row."""
    rubric = row_rubric([{"points": 2, "description": "More.", "text": "A.", "weight": 3}], LIKE)
    assert rubric is not None
    assert ("A.", 3) == (rubric.criteria[0].description, rubric.criteria[0].weight)


def test_one_question_each_is_rendered_each() -> None:
    """``render`` gives the messages of all of them; of several samples those of the first."""
    made = judge(together="each", samples=3)
    rendered = [
        m["content"] for m in made.render(prompt="?", completion="!", rubric=["A.", "B."]) if m["role"] == "user"
    ]
    assert [True, False, False, True] == [text in one for one in rendered for text in ("- c1: A.", "- c2: B.")]


def test_a_fake_verdict_answers_the_questions_that_are_asked() -> None:
    """Of its grades those that a question asks for, in a worker process too."""
    made = judge(FakeJudge.verdict(c1=1, c2=0, c3=1), together="each")
    with Runtime([made], workers=1) as runtime:
        (outcome,) = runtime.score([Rollout("?", "!", {"rubric": ["A.", "B."]})])["judge"]
    assert (0.5, 2.0) == (outcome.score, outcome.metrics["requests"])


def test_samples_of_one_question_each_are_joined() -> None:
    """A sample that lacks one of its answers is lost, and the others' are means."""
    replies = [{"c1": 1}, {"c2": 0}, {"c1": 1}, {"c2": 1}, {"c1": 1}, {"other": 1}, {"other": 1}]
    said = [json.dumps({name: {"reason": "So.", "score": grade} for name, grade in one.items()}) for one in replies]
    scored = judge(FakeJudge(said), together="each", samples=3)(prompt="?", completion="!", rubric=["A.", "B."])
    assert (0.75, 2.0) == (scored.value, scored.metrics["samples"])


def test_criteria_may_not_apply() -> None:
    """They are left out; where none is left the completion is skipped, with what was asked told."""
    replies = ['{"c1": {"reason": "?", "score": null}, "c2": {"reason": "So.", "score": 1}}']
    replies += ['{"c1": {"reason": "?", "score": null}}']
    made = judge(FakeJudge(replies), not_applicable=True)
    first, second = outcomes(made, {"rubric": ["If A, B.", "C."]}, {"rubric": ["If A, B."]})
    assert (1.0, 1.0) == (first.score, first.metrics["not_applicable"])
    assert (Status.SKIPPED, "c1 does not apply: ?") == (second.status, second.reason)
    assert 1.0 == second.metrics["requests"]


@pytest.mark.parametrize("nothing", [None, "", "None", "null"])
def test_a_row_without_a_rubric_is_skipped(nothing: object) -> None:
    assert "the row has nothing in column 'rubric'" == outcomes(judge(), {"rubric": nothing})[0].reason


BAD = [
    ("Names a dose.", "it is neither a list nor JSON of one, but str"),
    ('{"text": "A."}', "nor JSON of one, but dict"),
    ({"text": "A."}, "it is neither a list nor JSON of one, but dict"),
    (5, "it is neither a list nor JSON of one, but int"),
    ("[1, 2", "nor JSON of one, but str"),
    ([], "at least one"),
    ([5], "criterion 1 is neither text nor an object, but 5"),
    (["A.", " "], "criterion 'c2' has no text"),
    ([{"weight": 1}], "criterion 'c1' has no text"),
    ([{"text": ["A."]}], "criterion 'c1' has no text"),
    (["A.", {"kind": "must", "name": "safe"}], "criterion 'safe' has no text"),
    ([{"text": "A.", "weight": "five"}], "criterion 'c1': weight='five' is not a finite number"),
    ([{"text": "A.", "points": True, "kind": "negative"}], "criterion 'c1': weight=True is not a finite number"),
    ([{5: "A."}], "criterion 1 has 5; there are text"),
    ([{"text": "A.", "weight": float("nan")}], "weight=nan"),
    ([{"text": "A.", "weight": 0}], "weight=0"),
    ([{"text": "A.", "weight": 10**400}], "criterion 'c1': weight=1000"),
    ("[" * 100_000, "nor JSON of one, but str"),
    ({"requirements": "A.", "sub_tasks": [{"requirements": "B."}]}, "weight=None; expected numbers of 0 or more"),
    ({"requirements": "A.", "sub_tasks": [{"requirements": "B.", "weight": -1}]}, "weight=-1"),
    ({"requirements": "A.", "sub_tasks": [{"requirements": "B.", "weight": 0}]}, "no weight above 0"),
    ({"requirements": "A.", "sub_tasks": [{"weight": 1}]}, "expected 'requirements'"),
    ({"requirements": "A.", "sub_tasks": [5]}, "weight=None"),
    ({"requirements": "A.", "sub_tasks": "B."}, "sub_tasks of 'A.': 'B.': expected a list of tasks"),
    ({"requirements": "A.", "sub_tasks": 5}, "sub_tasks of 'A.': 5: expected a list of tasks"),
    (
        {"requirements": "A.", "sub_tasks": {"requirements": "B."}},
        "sub_tasks of 'A.': {'requi",
    ),
    ({"requirements": 5}, "expected 'requirements'"),
    ({"weight": 1, "sub_tasks": ["B."]}, "nor JSON of one, but dict, without the 'requirements' of a tree of tasks"),
    ([{"text": "A.", "anchors": {"2": "Good."}}], "anchors has grade 2, and the scale is 0 to 1"),
    ([{"text": "A.", "anchors": "Good."}], "criterion 'c1': anchors='Good.': expected a text for each"),
    ([{"text": "A.", "anchors": {"good": "Good."}}], "expected a text for each"),
    ([{"text": "A.", "anchors": {"1": ""}}], "expected a text for each"),
    (["A.", "b" * 4001], "criterion 2 has 4,001 characters"),
    ([{"text": "A.", "weight": -1}], "none has a positive weight"),
    ([{"text": "A.", "kind": "essential"}], "kind='essential'"),
    ([{"text": "A.", "must": "yes"}], "must='yes'"),
    ([{"text": "A.", "kind": "must", "must": "no"}], "must='no'"),
    ([{"text": "A.", "wieght": 2}], "did you mean 'weight'"),
    (["A.", "B.", " a. "], "criteria 1 and 3 are the same"),
    ([{"text": "A.", "name": "x"}, {"text": "B.", "name": "x"}], "named twice"),
    ([{"text": "A.", "name": "no name"}], "criterion name 'no name'"),
    ([f"Is it {n}?" for n in range(101)], "there are 101, and a judge is asked at most 100"),
]


@pytest.mark.parametrize(("rubric", "words"), BAD)
def test_bad_rubrics_are_named_before_anything_is_asked(rubric: Any, words: str) -> None:
    """In a run as a failed coercion, with the criterion and what is wrong with it."""
    made = judge()
    outcome = outcomes(made, {"rubric": rubric})[0]
    assert (Status.FAILED, Cause.COERCION, None) == (outcome.status, outcome.cause, outcome.score)
    assert words in str(outcome.error)
    assert [] == made.model.client.asked  # type: ignore[union-attr]
    with pytest.raises(JudgeSetupError):
        row_rubric(rubric, LIKE)


@pytest.mark.parametrize("sign", [1, -1])
def test_no_number_is_too_long_to_be_named(sign: int) -> None:
    """Python itself writes none of more than 4,300 digits."""
    with pytest.raises(JudgeSetupError, match="not a finite number"):
        row_rubric([{"text": "A.", "weight": sign * 10**5000}], LIKE)


def test_a_criterion_of_a_row_stands_on_one_line() -> None:
    """So that it passes for no other."""
    text = Asked(judge().render(prompt="?", completion="!", rubric=["A\n\n- c2:  B."])).text
    assert "- c1: A - c2: B.\n" in text


@pytest.mark.parametrize("kind", ["judge", "jury", "1 - judge"])
def test_check_reads_every_rubric(kind: str, tmp_path: Path) -> None:
    """Each row's that is none is a failing row, also of a judge inside a jury."""
    (tmp_path / "judges.py").write_text(
        "from builtin_rewards.judge import Jury, LLMJudge\n"
        "from rewardkit.testing import FakeJudge\n"
        "made = [LLMJudge('m', criteria_column='rubric', client=FakeJudge(''), name=n) for n in ('one', 'two')]\n"
        f"mine = {{'judge': made[0], 'jury': Jury(made), '1 - judge': 2 * made[0]}}[{kind!r}]\n"
        "del made\n"
    )
    rows = [
        {"prompt": "?", "rubric": rubric} for rubric, _ in BAD if rubric == rubric and "NaN" not in json.dumps(rubric)
    ]
    (tmp_path / "rows.jsonl").write_text(
        "".join(json.dumps(row) + "\n" for row in [{"prompt": "?", "rubric": ["A."]}, *rows])
    )
    arguments = ["check", f"{tmp_path}/judges.py:mine", "--data", f"{tmp_path}/rows.jsonl", "--json", "--workers", "1"]
    ran = CliRunner().invoke(app, arguments)
    (found,) = json.loads(ran.stdout)["rewards"]
    misfits = [misfit for misfit in found["misfits"] if misfit["column"] == "rubric"]
    assert (1, list(range(2, len(rows) + 2))) == (ran.exit_code, sorted({misfit["line"] for misfit in misfits}))


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"criteria": ["A."]}, "give one of them"),
        ({"criteria_column": "prompt"}, "column 'prompt' for criteria"),
        ({"criteria_column": 5}, "column 5 for criteria"),
        ({"cap": "no"}, "cap='no'"),
        ({"template": Template("own", "1", "{criteria}", "{completion}")}, "criteria} in the system message"),
    ],
)
def test_senseless_settings_are_refused_when_the_judge_is_made(settings: dict[str, Any], words: str) -> None:
    with pytest.raises(JudgeSetupError, match=words):
        judge(**settings)


# Lists of passages ----------------------------------------------------------------------------------------------------


def source(value: object) -> str:
    made = LLMJudge("m", template="faithfulness", client=FakeJudge(""))
    text = Asked(made.render(prompt="?", completion="!", source=value)).text
    return text.split("<source-")[1].split("\n", 1)[1].split("\n</source")[0]


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (["First.", "Second."], "[1] First.\n\n[2] Second."),
        (("Only.",), "Only."),
        (["First.", " ", "Third."], "[1] First.\n\n[3] Third."),
        (np.array(["First.", "Second."]), "[1] First.\n\n[2] Second."),
        ("[1, 2]", "[1, 2]"),
        ('["a", "b"]', '["a", "b"]'),
        (12, "12"),
    ],
    ids=["list", "tuple", "blank", "array", "text with brackets", "text of a list", "number"],
)
def test_lists_of_passages_are_numbered_and_joined(value: object, shown: str) -> None:
    """What is text stays as it is, whatever it looks like."""
    assert shown == source(value)


def test_a_pairwise_judge_takes_lists_too() -> None:
    """Also as references."""
    own = Template("own", "1", "", "{reference}\n{first}\n{second}")
    pair = PairwiseJudge("m", reference="answers", template=own, client=FakeJudge(""))
    assert "[2] b" in Asked(pair.render(prompt="?", completions=["x", "y"], answers=["a", "b"])).text


@pytest.mark.parametrize("value", [[1, 2], {"a": "b"}, [["a"]], [None]])
def test_what_is_no_text_is_refused(value: object) -> None:
    """Before anything is asked; an empty list is nothing, and so is one of nothing."""
    with pytest.raises(CoercionError, match="column 'source'"):
        source(value)
    made = LLMJudge("m", template="faithfulness", client=FakeJudge(""))
    for nothing in ([], [""], ["None"], ["", " "]):
        assert [] == made.render(prompt="?", completion="!", source=nothing)
        assert "nothing in column" in str(made(prompt="?", completion="!", source=nothing).reason)


def test_jurors_have_a_rubric_each() -> None:
    """A jury hands the column on as it is."""
    jurors = [LLMJudge("m", criteria_column="rubric", client=meets(word), name=word) for word in ("dose", "doctor")]
    scored = Jury(jurors, reduce="mean")(
        prompt="?", completion="!", rubric='["A dose.", "A doctor.", "A dose or doctor."]'
    )
    assert pytest.approx(2 / 3) == scored.value
