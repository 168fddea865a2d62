"""A judge after a cheap reward: who is asked, what counts, what it saves on recorded verdicts, and what is refused."""

from __future__ import annotations

import json
import math
import pickle
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from builtin_rewards.judge import Budget, Cascade, JudgeSetupError, LLMJudge, PairwiseJudge, RetryPolicy
from rewardkit import Cause, Outcome, Reward, Rollout, Runtime, Status, group_reward, reward
from rewardkit.testing import Asked, FakeJudge


@reward
def cheap(completion: str) -> float | None:
    """What follows the first colon, None for nothing."""
    text = completion.partition(":")[2].partition(":")[0]
    return float(text) if text else None


def grades(question: Asked) -> str:
    """The grade that stands behind a completion's second colon, from 0 to 1 on a scale of a hundred steps."""
    (line,) = [line for line in question.text.splitlines() if line.startswith("answer ")]
    score = line.split(":")[2]
    if not score:
        raise ConnectionError("no judge")
    return json.dumps({"correct": {"reason": "So.", "score": round(100 * float(score))}})


def judge(script: Any = grades, **settings: Any) -> LLMJudge:
    return LLMJudge("m", ["correct"], client=FakeJudge(script), scale=(0, 100), **settings)


def score(scorer: Reward[..., Any], completions: Sequence[str], **columns: Any) -> list[Outcome]:
    """Return the outcomes of one group."""
    with Runtime([scorer], lane="inline") as runtime:
        batch = runtime.score([Rollout("p", completion, columns) for completion in completions])
    return list(batch.outcomes[scorer.name])


def completions(pairs: Sequence[tuple[object, object]]) -> list[str]:
    """Return completions that have a cheap score and a grade."""
    return [f"answer {number}:{first}:{grade}" for number, (first, grade) in enumerate(pairs)]


def test_the_judge_is_asked_about_those_near_the_mean_and_no_others() -> None:
    """Their scores are the judge's; the others keep the cheap one, with a metric and a reason that says so."""
    fake = FakeJudge(grades)
    scorer = LLMJudge("m", ["correct"], client=fake, scale=(0, 100)).after(cheap, margin=0.1)
    outcomes = score(scorer, completions([(0.0, 1.0), (0.45, 0.2), (0.5, 0.7), (1.0, 0.0)]))
    assert [0.0, 0.2, 0.7, 1.0] == [outcome.score for outcome in outcomes]
    assert 2 == len(fake.asked)
    for name, expected in (("judge_questions", [0.0, 1.0, 1.0, 0.0]), ("spared", [1.0, 0.0, 0.0, 1.0])):
        assert expected == [outcome.metrics[name] for outcome in outcomes]
    assert "not asked: cheap gives 0, -0.475 from the group's mean" == outcomes[0].reason
    assert "correct 20 of 100: So." == outcomes[1].reason
    assert ["requests" in outcome.metrics for outcome in outcomes] == [False, True, True, False]


def test_a_score_of_another_range_is_mapped() -> None:
    """From the cheap reward's range to the judge's; a score outside of a range that is not said is judged."""

    @reward(score_range=(-2, 2))
    def wide(completion: str) -> float:
        return 4 * float(completion.split(":")[1]) - 2

    @reward
    def unbounded(completion: str) -> float:
        return 10 * float(completion.split(":")[1])

    texts = completions([(0.0, 0.5), (0.25, 0.5), (1.0, 0.9)])
    assert [0.0, 0.25, 1.0] == [outcome.score for outcome in score(judge().after(wide, margin=0.1), texts)]
    outcomes = score(judge().after(unbounded, margin=0.0), completions([(0.0, 0.5), (0.1, 0.2), (0.25, 0.6)]))
    assert [0.0, 1.0, 0.6] == [outcome.score for outcome in outcomes]
    (lost,) = outcomes[2].unanswered
    assert ("unbounded", "ValueError: score 2.5 is not in 0 to 1; give the reward its score_range") == (
        lost.name, lost.message,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("pair", "expected"),
    [(("x", 0.9), "ValueError"), (("", 0.9), None), ((0.5, 0.9), None)],
    ids=["fails", "skips", "near the mean"],
)
def test_what_the_cheap_reward_cannot_score_is_judged(pair: tuple[object, float], expected: str | None) -> None:
    """Its failure is no loss: the outcome's ``unanswered`` tells it."""
    outcomes = score(judge().after(cheap, margin=0.1), completions([(0.0, 0.3), pair, (1.0, 0.3)]))
    assert [0.0, 0.9, 1.0] == [outcome.score for outcome in outcomes]
    assert ([expected] if expected else []) == [lost.kind for lost in outcomes[1].unanswered]


def test_a_failing_judge_costs_one_completion() -> None:
    """The failure is the judge's own, with its cause, and never the cheap score; the others keep theirs."""
    texts = completions([(0.0, 0.3), (0.5, ""), (0.5, 0.6), (1.0, 0.3)])
    outcomes = score(judge(retry=RetryPolicy(attempts=1)).after(cheap, margin=0.1), texts)
    assert [Status.SCORED, Status.FAILED, Status.SCORED, Status.SCORED] == [outcome.status for outcome in outcomes]
    assert (Cause.INFRASTRUCTURE, None) == (outcomes[1].cause, outcomes[1].score)
    replaced = score(judge(retry=RetryPolicy(attempts=1), default=0.0).after(cheap, margin=0.1), texts)
    assert 0.0 == replaced[1].score


def test_a_judge_without_its_column_skips_the_row_whole() -> None:
    """Whatever the cheap reward gives, and whoever would be asked."""
    scorer = judge(reference="answer").after(cheap, margin=0.1)
    texts = completions([(0.0, 0.3), (0.5, 0.6), (1.0, 0.3)])
    outcomes = score(scorer, texts, answer=None)
    assert [(Status.SKIPPED, "the row has nothing in column 'answer'")] * 3 == [(o.status, o.reason) for o in outcomes]
    assert [0.0, 0.6, 1.0] == [outcome.score for outcome in score(scorer, texts, answer="4")]


def test_a_group_whose_cheap_scores_are_equal_is_judged_whole() -> None:
    """A verifier that gives all the same leaves the order to the judge; so is a completion alone."""
    pairs = [(1.0, 0.2), (1.0, 0.8), (1.0, 0.5)]
    assert [0.2, 0.8, 0.5] == [outcome.score for outcome in score(judge().after(cheap, margin=0), completions(pairs))]
    assert [0.2] == [outcome.score for outcome in score(judge().after(cheap, margin=0), completions(pairs[:1]))]


def test_a_spent_budget_stops_the_judge_and_not_the_cheap_reward() -> None:
    """Those that are safe keep their scores, also where a verdict would have made more questions needed."""
    scorer = judge(budget=Budget(requests=1)).after(cheap, margin=0.1)
    outcomes = score(scorer, completions([(0.0, 0.3), (0.5, 0.5), (0.5, 0.6), (1.0, 0.3)]))
    assert [0.0, 1.0] == [outcomes[0].score, outcomes[3].score]
    assert [Cause.INFRASTRUCTURE] == [outcome.cause for outcome in outcomes if outcome.status is Status.FAILED]


def test_costs_of_a_cheap_judge_count() -> None:
    """A small model may be the cheap reward: what it took stands in the metrics, also of those that it spares."""
    small = judge(lambda question: grades(question), name="small")
    outcomes = score(judge().after(small, margin=0.1), completions([(0.0, 0.0), (0.0, 0.6), (0.0, 1.0)]))
    assert [1.0, 2.0, 1.0] == [outcome.metrics["requests"] for outcome in outcomes]


def test_it_pickles_and_its_version_follows_its_settings() -> None:
    """The margin, what is kept, the judge and the cheap reward decide scores."""
    scorers = [
        judge().after(cheap, margin=0.1),
        judge().after(cheap, margin=0.2),
        judge().after(cheap, margin=0.1, keeps="rank"),
        judge(max_chars=500).after(cheap, margin=0.1),
        judge().after(cheap.with_options(score_range=(0, 2)), margin=0.1),
    ]
    assert 5 == len({scorer.version for scorer in scorers})
    first = LLMJudge("m", ["correct"], client=FakeJudge.verdict(correct=5)).after(length_of, margin=0.1)
    again = pickle.loads(pickle.dumps(first))
    assert (Cascade, first.version) == (type(again), again.version)


def test_keeping_ranks_asks_about_neighbours_too() -> None:
    """Two that are near each other may change places."""
    texts = completions([(0.0, 0.1), (0.05, 0.0), (1.0, 1.0)])
    by_sign, by_rank = (score(judge().after(cheap, margin=0.1, keeps=keeps), texts) for keeps in ("sign", "rank"))
    assert [0.0, 0.05, 1.0] == [outcome.score for outcome in by_sign]
    assert [0.1, 0.0, 1.0] == [outcome.score for outcome in by_rank]


@reward(score_range=(0, 1))
def length_of(completion: str) -> float:
    return min(1.0, len(completion) / 100)


@group_reward
def grouped(completions: list[str]) -> list[float]:
    return [0.0] * len(completions)


MISTAKES: dict[str, tuple[Callable[[], Any], str]] = {
    "below 0": (lambda: judge().after(cheap, margin=-0.1), "margin=-0.1: expected a number of 0 or more, in the"),
    "endless": (lambda: judge().after(cheap, margin=math.inf), "margin=inf: expected a number"),
    "text": (lambda: judge().after(cheap, margin="0.1"), "margin='0.1': expected a number"),  # type: ignore[arg-type]
    "a flag": (lambda: judge().after(cheap, margin=True), "margin=True: expected a number"),
    "what is kept": (lambda: judge().after(cheap, margin=0.1, keeps="all"), "keeps='all': expected 'sign' or 'rank'"),  # type: ignore[arg-type]
    "no reward": (lambda: judge().after(len, margin=0.1), "is not a reward"),  # type: ignore[arg-type]
    "groups": (lambda: judge().after(grouped, margin=0.1), "'grouped' scores groups"),
    "itself": (lambda: judge().after(judge(), margin=0.1), "two are named 'judge'; rename one"),
    "a composition": (lambda: judge().after(0.5 * cheap + 0.5 * length_of, margin=0.1), "is a composition"),  # type: ignore[arg-type]
    "no width": (
        lambda: judge().after(cheap.with_options(score_range=(1, 1)), margin=0.1),
        r"'cheap' has score_range=\(1.0, 1.0\); its scores cannot be mapped",
    ),
    "a judge of groups": (
        lambda: Cascade(PairwiseJudge("m", client=FakeJudge("")), cheap, margin=0.1),
        "scores groups",
    ),
}


@pytest.mark.parametrize(("call", "words"), MISTAKES.values(), ids=MISTAKES)
def test_a_mistake_is_one_line(call: Callable[[], Any], words: str) -> None:
    """With the setting, its value and what was expected."""
    with pytest.raises(JudgeSetupError, match=words) as raised:
        call()
    assert "\n" not in str(raised.value)


def signs(scores: Sequence[Sequence[float]]) -> Any:
    """Return the signs of the advantages of groups; a score at the mean has 0."""
    table = np.asarray(scores, dtype=float)
    centred = table - table.mean(axis=1, keepdims=True)
    return np.where(np.abs(centred) < 1e-9, 0, np.sign(centred))


def verdicts(quality: Any, noise: float, draw: Any) -> Any:
    return np.clip(quality + draw.normal(0, noise, np.shape(quality)), 0, 1).round(2)


def saved(first: Any, grades_of_all: Any, margin: float) -> tuple[float, float]:
    """Return the share of questions that groups are spared, and the share of signs that are the judge's alone."""
    groups = [completions(list(zip(*pair, strict=True))) for pair in zip(first, grades_of_all, strict=True)]
    scorer = judge().after(cheap, margin=margin)
    rollouts = [Rollout(f"p{number}", text, {}) for number, texts in enumerate(groups) for text in texts]
    with Runtime([scorer], lane="inline") as runtime:
        outcomes = runtime.score(rollouts).outcomes[scorer.name]
    found = np.array([outcome.score for outcome in outcomes], dtype=float).reshape(np.shape(first))
    spared = float(np.mean([outcome.metrics["spared"] for outcome in outcomes]))
    return spared, float(np.mean(signs(found) == signs(grades_of_all)))


@pytest.mark.cases(2)
@pytest.mark.parametrize(
    ("kind", "size"),
    [("right or wrong", 4), ("right or wrong", 8), ("right or wrong", 16), ("graded", 4), ("graded", 8)],
)
def test_on_groups_of_a_noisy_judge_half_of_the_questions_are_spared(kind: str, size: int) -> None:
    """With 99 % of the signs and more; the margin is twice the noise of the cheap reward."""
    draw = np.random.default_rng(7)
    shape = (120, size)
    if kind == "graded":
        quality = draw.random(shape)
    else:
        quality = np.where(draw.random(shape) < draw.random((120, 1)), 0.85, 0.15) + draw.normal(0, 0.07, shape)
    spared, equal = saved(verdicts(quality, 0.05, draw), verdicts(quality, 0.03, draw), margin=0.1)
    assert spared >= 0.5
    assert equal >= 0.99


def test_on_pairs_of_a_real_set_half_of_the_questions_are_spared(data: Path) -> None:
    """LLMBar's labels with noise on both sides: each pair is a group of two."""
    rows = [row for path in sorted((data / "llmbar").glob("*.json")) for row in json.loads(path.read_text())]
    quality = np.array([[0.8, 0.2] if int(row["label"]) == 1 else [0.2, 0.8] for row in rows])
    draw = np.random.default_rng(3)
    spared, equal = saved(verdicts(quality, 0.15, draw), verdicts(quality, 0.1, draw), margin=0.2)
    assert len(rows) > 300
    assert spared >= 0.5
    assert equal >= 0.99
