"""How many refusals a server's log tells of: each is in a line of its own or in a count."""

from __future__ import annotations

import asyncio
import re

import pytest

from rewardkit.serving.refusal_log import RefusalLog


def _total(messages: list[str]) -> int:
    """Return how many warnings lines tell of."""
    counts = [re.match(r"([\d,]+) more like it", message) for message in messages]
    return sum(int(count[1].replace(",", "")) if count else 1 for count in counts)


@pytest.mark.parametrize("warnings", [1, 2, 5, 1200])
def test_every_warning_is_told_or_counted(warnings: int, caplog: pytest.LogCaptureFixture) -> None:
    """The first as it is, the others by their number and the last; other topics have lines of their own."""

    async def run() -> None:
        log = RefusalLog(every_s=600.0)
        for number in range(warnings):
            log.warn(("/score", 422), f"/score: 422: row {number}")
        log.warn(("/score", 413), "too large")
        log.flush()
        log.flush()

    asyncio.run(run())
    assert "/score: 422: row 0" == caplog.messages[0]
    assert warnings + 1 == _total(caplog.messages)
    assert 2 + (warnings > 1) == len(caplog.messages)
    if warnings > 1:
        assert f"{warnings - 1:,} more like it, the last: /score: 422: row {warnings - 1}" == caplog.messages[-1]


def test_a_count_comes_without_a_further_warning(caplog: pytest.LogCaptureFixture) -> None:
    """A timer tells it, and begins another pause; a topic that was quiet begins anew."""

    async def run() -> None:
        log = RefusalLog(every_s=0.01)
        for _ in range(3):
            log.warn("topic", "refused")
        await asyncio.sleep(0.05)
        await asyncio.sleep(0)  # timers that are due run before

    asyncio.run(run())
    assert ["refused", "2 more like it, the last: refused"] == caplog.messages


def test_a_pause_ends_with_its_event_loop(caplog: pytest.LogCaptureFixture) -> None:
    """Nothing stays silent because the loop of the first warning is gone."""
    log = RefusalLog(every_s=0.0)

    async def warn() -> None:
        log.warn("topic", "refused")

    asyncio.run(warn())
    asyncio.run(warn())
    assert ["refused", "refused"] == caplog.messages
