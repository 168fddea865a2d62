"""The public API as users write it; `mypy tests/typing` must find nothing."""

from __future__ import annotations

import warnings
from typing import Annotated, Any

from rewardkit import (
    Cause,
    Composable,
    Composite,
    Finished,
    HarborTask,
    HarborVerdict,
    Kind,
    Message,
    OnInfrastructure,
    Outcome,
    Recorder,
    Reward,
    RewardDefinitionWarning,
    RewardFunctionsConfig,
    RewardFunctionsRuntimeConfig,
    RewardOptions,
    Rollout,
    Run,
    Runtime,
    Score,
    ScoreBatch,
    Scorer,
    SealedWorkspace,
    Status,
    Step,
    StepReward,
    SuiteVerdict,
    Unanswered,
    Workspace,
    check_suite,
    clip,
    from_harbor,
    gate,
    group_reward,
    maximum,
    minimum,
    overlap,
    product,
    reward,
    reward_from_source,
    scheduled,
    step_reward,
)
from rewardkit.extending import Coercer, TextOrder
from rewardkit.serving import JoinedRuntime, RemoteRuntime, scorer_of
from sandbox import Sandbox

warnings.simplefilter("error", RewardDefinitionWarning)


@reward
def exact(completion: str, answer: str) -> float:
    return float(completion == answer)


@reward(name="correct", timeout_s=2.0, retries=1, default=None, score_range=(0, 1), on_infrastructure="skip")
def correct(prompt: str, completion: str, answer: float, choices: list[str] | None = None) -> Score | float | None:
    return Score(0.5, reason="right method, wrong sum", metrics={"distance": 3})


@reward(concurrency=8)
async def judged(prompt: str, completion: str) -> float:
    return 1.0


@group_reward
def diverse(completions: list[str], answer: float) -> list[float | None]:
    return [None for _ in completions]


@step_reward(each="tool_call", reduce="discounted", discount=0.9, score_range=(0, 1))
def right_tool(part: Step, expected: list[str]) -> float | None:
    return float(part.name in expected) if part.arguments is not None else None


@reward(timeout_s=30.0)
def runs(completion: str, sandbox: Sandbox) -> float:
    return float(sandbox.run(completion).status == "ok")


text: Reward[..., object] = reward_from_source("def f(): return 1", "f", timeout_s=2.0, score_range=(0, 1))
plain: Score | float | None = correct(completion="4", prompt="2+2=", answer="4.0")
exact_types: float = exact.function("4", "4")
total = 0.8 * correct + 0.2 * exact
each_turn: StepReward = step_reward(judged, each="turn", reduce="min", name="turns")
progress: StepReward = step_reward(judged, credit="potential", start=0.5, name="progress")
credit: str | None = progress.credit
stepped = 0.5 * right_tool + each_turn
gated = gate(exact, clip(total, 0, 1)).named("gated")
longer: Reward[..., float] = exact.with_options(timeout_s=30.0)


class Overlapped:
    """What an adapter has."""

    def overlapping(self, *, waves: int) -> bytes:
        return bytes(waves)


generated: bytes = overlap(Overlapped(), waves=2)
best: Composite = maximum(exact, minimum(correct, product(judged, 1 - exact)))
later: list[Composable] = [best, scheduled(exact, lambda step: min(1.0, step / 100))]
options: RewardOptions = exact.options


@reward
def left(workspace: Workspace) -> float:
    names: list[str] = workspace.files("*.py")
    code: int | None = workspace.run("python", names[0], timeout_s=5).exit_code
    return float(code == 0)


@reward
def fixed(workspace: Workspace) -> Score:
    sealed: SealedWorkspace = workspace.sealed()
    verdict: SuiteVerdict = check_suite(
        sealed, {"test_a.py": "def test_a(): assert 1 == 1"}, expected=["test_a.py::test_a"]
    )
    is_cached: bool = verdict.cached
    return verdict.score({"expected": 1.0} if is_cached else None)


@reward
def solved(workspace: Workspace, task: str) -> Score:
    harbor_task: HarborTask = from_harbor(task)
    verdict: HarborVerdict = harbor_task.grade(workspace, confidence=1e-3)
    return verdict.score()


grouped: bool = diverse.spec.kind is Kind.GROUP and options.on_infrastructure is OnInfrastructure.SKIP
turn: Message = {"role": "user", "content": "2+2="}
config = RewardFunctionsConfig({"exact": exact, "best": best}, RewardFunctionsRuntimeConfig(packages=["numpy"]))
Halves = Annotated[Any, Coercer("half a number", lambda value: float(str(value)) / 2, TextOrder.OTHER)]

with Runtime(
    [correct, exact, diverse, total, gated, "my_rewards.py:other"], workers=2, weights=[1, 1, 0, 0, 0, 1]
) as rt:
    batch: ScoreBatch = rt.score([Rollout(prompt="2+2=", completion="4", example={"answer": "4.0"})], step=3)
    outcome: Outcome = batch["correct"][0]
    passed_over: tuple[Unanswered, ...] = outcome.unanswered
    totals: list[float | None] = batch.totals
    scores: dict[str, list[float | None]] = batch.scores
    for row, name, streamed in rt.stream([Rollout("p", "c")]):
        print(row + 1, name.upper(), streamed.duration_s)
    first: Finished = next(iter(rt.stream([Rollout([turn], "c")])))
    late: bool = first.outcome.status is Status.FAILED and first.outcome.cause is Cause.TIMEOUT


async def scored() -> ScoreBatch:
    return await rt.ascore([Rollout("p", "c")])


def recorded(recorder: Recorder) -> list[str]:
    recorder.record(batch, step=3, epoch=0.5, split="train")
    recorder.metrics(4, {"reward": 0.5})
    written: bool = recorder.close()
    with Run.open("runs/one") as run:
        means: list[tuple[int, float]] = run.series("correct")
        failed = [entry.outcome.error for entry in run.logs(reward="correct", status=Status.FAILED)]
        best = [one.scores["correct"] for one in run.completions(reward="correct", min_score=0.5, limit=len(means))]
        print(run.to_pandas(), failed, best, run.versions[0].label, written)
        return run.rewards


def mean_total(scorer: Scorer, rows: list[Rollout]) -> float:
    with scorer:
        totals = [total for total in scorer.score(rows, step=1).totals if total is not None]
    return sum(totals) / len(totals)


def scorers() -> list[Scorer]:
    runtime = Runtime([exact])
    return [runtime, JoinedRuntime(runtime), RemoteRuntime("http://rewards:8000"), scorer_of("http://rewards:8000")]
