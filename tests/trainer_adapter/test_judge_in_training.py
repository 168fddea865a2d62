"""A judge in a real TRL run: its server is killed for many steps and comes back, and training goes on through it."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import fault_server
import pytest
import tiny_grpo

from builtin_rewards.judge import Criterion, LLMJudge, Load, RetryPolicy
from rewardkit import reward
from trainer_adapter import RewardAdapter

PLAIN = 0.125
"""What the plain link gives; no grade of the judge comes to it."""

ANSWER = re.compile(r"<completion-(\w+)>\n(.*)\n</completion-\1>", re.DOTALL)


def grade(shown: str) -> int:
    """Return the judge's grade of a completion as it is shown to it: by its characters, from 1 to 5."""
    return sum(map(ord, shown)) % 5 + 1


def script(number: int, body: Mapping[str, Any], headers: Mapping[str, str]) -> Any:
    """What the judge's server does, in a process of its own."""
    found = ANSWER.search(body["messages"][-1]["content"])
    assert found is not None
    return fault_server.ok(json.dumps({"correct": {"reason": "by its characters", "score": grade(found[2])}}))


@reward
def by_rule(completion: str) -> float:
    """What scores where the judge cannot."""
    return PLAIN


@dataclass
class Outage:
    """Kills the server before one step and starts it again before another.

    Attributes:
        server: The judge's server.
        first: The first step without it.
        last: The last step without it.
        judged: Requests that the server had seen when each step's scoring began, as far as it ran then.
    """

    server: Any
    first: int
    last: int
    seen: dict[int, int] = field(default_factory=dict)

    def before(self, step: int) -> None:
        """Takes note of a step that is about to be scored."""
        if step == self.first:
            self.seen[step] = len(self.server.seen)
            self.server.stop()
        if step == self.last + 1:
            self.seen[step] = len(self.server.seen)
            self.server.start()


@dataclass
class Watched:
    """Stands between TRL and the judge's function, tells the outage of each step, and keeps what went to and fro."""

    function: Any
    outage: Outage
    calls: list[tuple[list[str], tiny_grpo.Scores]] = field(default_factory=list)

    @property
    def __name__(self) -> str:
        name: str = self.function.__name__
        return name

    def __call__(self, /, **call: Any) -> tiny_grpo.Scores:
        self.outage.before(call["trainer_state"].global_step)
        scores: tiny_grpo.Scores = self.function(**call)
        self.calls.append((list(call["completions"]), scores))
        return scores


@tiny_grpo.third_party_warnings
@pytest.mark.trainers
def test_training_goes_on_while_the_judges_server_is_gone(
    tiny: Path, full: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """40 steps with 20 of outage (10 with 3 in short form): no score is invented, and the logs show who scored."""
    steps, first, last = (40, 10, 29) if full else (10, 3, 5)
    with contextlib.ExitStack() as stack:
        server = stack.enter_context(fault_server.FaultServer(script, process=True))
        judge = LLMJudge(
            "m",
            [Criterion("correct", "Is it right?")],
            base_url=server.url,
            prefilter=False,
            retry=RetryPolicy(attempts=2, first_wait_s=0.02, longest_wait_s=0.05),
            load=Load(rest_s=0.2),
        )
        adapter = stack.enter_context(RewardAdapter([judge.fallback(by_rule)]))
        outage = Outage(server, first, last)
        monkeypatch.setattr(tiny_grpo, "Relay", lambda function: Watched(function, outage))
        rows = [{"prompt": f"{number}+{number}="} for number in range(4 * steps)]
        run = tiny_grpo.train(tiny, adapter, rows, steps=steps)
        judged = len(server.seen)

    assert run.weights_are_finite()
    calls = run.relays["judge"].calls
    assert [tiny_grpo.ROWS] * steps == [len(scores) for _, scores in calls]
    shares = run.logged("reward_metrics/judge/link/judge")
    assert shares == [1 - share for share in run.logged("reward_metrics/judge/link/by_rule")]
    assert steps == len(shares)

    for share, (completions, scores) in zip(shares, calls, strict=True):
        by_judge = [score != PLAIN for score in scores]
        assert share == pytest.approx(sum(by_judge) / tiny_grpo.ROWS)
        own = [_score(completion) if mine else PLAIN for completion, mine in zip(completions, by_judge, strict=True)]
        assert own == scores

    assert [1.0] * first == shares[:first]
    assert [0.0] * (last - first + 1) == shares[first : last + 1]
    assert 1.0 in shares[last + 1 :]
    back = shares.index(1.0, last + 1)
    assert [1.0] * (steps - back) == shares[back:]
    assert outage.seen[first] == outage.seen[last + 1] < judged
    assert [0.0] * steps == run.logged("reward_errors/judge")


def _score(completion: str) -> float:
    from builtin_rewards.judge.prompt import escape_controls

    return (grade(escape_controls(completion)) - 1) / 4
