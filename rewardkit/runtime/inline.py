"""The lane in the caller's own process: for unit tests and debuggers.

The same code runs on the same bytes as in a worker, so a reward cannot change what others see, and
its output is captured. There is no isolation: a crash is the caller's crash, and no deadline is kept.
But a process that a reward forks ends where its call ends, and does not become a second caller.
"""

from __future__ import annotations

import contextvars
import json
import os
import threading
import time
from collections.abc import Coroutine, Sequence
from typing import Any

from rewardkit.decorator import Reward
from rewardkit.runtime.attempt import attempt, attempt_async, encode
from rewardkit.runtime.scoring import RewardCall, Scoring
from rewardkit.runtime.target import rollout_of
from rewardkit.spec import CallContext
from sandbox.workers import CallResult, CallStatus, inline_capture


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
    process = os.getpid()
    with inline_capture() as log:
        began = time.monotonic()
        try:
            if reward.spec.is_async:
                finding = _wait_for(attempt_async(reward.spec, rollouts, context, call.places))
            else:
                finding = attempt(reward.spec, rollouts, context, call.places)
        except _Cancelled:
            finding = None
        if os.getpid() != process:
            os._exit(0)
        duration_s = time.monotonic() - began
    if finding is None:
        return CallResult(call, CallStatus.CANCELLED, None, duration_s, log.finish(), "CancelledError")
    encoded = encode(finding)
    answer = json.loads(encoded) if isinstance(encoded, str) else encoded
    return CallResult(call, CallStatus.ANSWERED, answer, duration_s, log.finish())


class _Cancelled(Exception):
    """The call cancelled itself."""


def _wait_for(coroutine: Coroutine[Any, Any, Any]) -> Any:
    """Runs a coroutine to its end, also where this thread has an event loop running already.

    Raises:
        _Cancelled: The coroutine was cancelled, which nobody but itself can have done.
    """
    import asyncio  # slow to import, and only async rewards need it

    async def settled() -> Any:
        return (await asyncio.gather(asyncio.ensure_future(coroutine), return_exceptions=True))[0]

    answers: list[Any] = []
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        answers.append(asyncio.run(settled()))
    else:
        context = contextvars.copy_context()
        thread = threading.Thread(target=lambda: answers.append(context.run(asyncio.run, settled())))
        thread.start()
        thread.join()
    if isinstance(answers[0], asyncio.CancelledError):
        raise _Cancelled
    return answers[0]
