"""The lane in the caller's own process: for unit tests and debuggers.

The same code runs on the same bytes as in a worker, so a reward cannot change what others see, and
its output is captured. There is no isolation: a crash is the caller's crash, and no deadline is kept.
"""

from __future__ import annotations

import contextvars
import json
import threading
import time
from collections.abc import Coroutine, Sequence
from typing import Any

from rewardkit.decorator import Reward
from rewardkit.runtime.attempt import attempt, attempt_async, encode
from rewardkit.runtime.scoring import RewardCall, Scoring
from rewardkit.runtime.target import rollout_of
from rewardkit.spec import CallContext
from sandbox.workers.capture import inline_capture
from sandbox.workers.job import CallResult, CallStatus


def run_inline(
    scoring: Scoring,
    calls: Sequence[RewardCall],
    rewards: Sequence[Reward[..., Any]],
    segments: Sequence[bytes],
    context: CallContext,
) -> None:
    """Runs every call of a batch, one after another, with its retries."""
    for call in calls:
        while again := scoring.take([_run(rewards[call.target], call, segments, context)]):
            time.sleep(again[0][0])


def _run(reward: Reward[..., Any], call: RewardCall, segments: Sequence[bytes], context: CallContext) -> CallResult:
    rollouts = [rollout_of(segments[place]) for place in call.places]
    with inline_capture() as log:
        began = time.monotonic()
        if reward.spec.is_async:
            finding = _wait_for(attempt_async(reward.spec, rollouts, context, call.places))
        else:
            finding = attempt(reward.spec, rollouts, context, call.places)
        duration_s = time.monotonic() - began
    encoded = encode(finding)
    answer = json.loads(encoded) if isinstance(encoded, str) else encoded
    return CallResult(call, CallStatus.ANSWERED, answer, duration_s, log.finish())


def _wait_for(coroutine: Coroutine[Any, Any, Any]) -> Any:
    """Runs a coroutine to its end, also where this thread has an event loop running already."""
    import asyncio  # slow to import, and only async rewards need it

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(coroutine)
    answer: list[Any] = []
    context = contextvars.copy_context()
    thread = threading.Thread(target=lambda: answer.append(context.run(asyncio.run, coroutine)))
    thread.start()
    thread.join()
    return answer[0]
