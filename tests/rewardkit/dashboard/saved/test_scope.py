"""Which completions a saved page has, and in which order."""

from __future__ import annotations

import itertools

import pytest
from served import recorded_run

from rewardkit.dashboard.saved.scope import of_step, pieces, spread, whole_run
from rewardkit.replay.recorded_run import Run


@pytest.mark.parametrize("count", [0, 1, 2, 3, 5, 8, 9, 100, 1000])
def test_every_beginning_of_the_order_is_spread_over_all_steps(count: int) -> None:
    """Of n steps the largest gap is at most four times that of n steps that stand evenly."""
    steps = list(range(10, 10 + 3 * count, 3))
    order = spread(steps)
    assert sorted(order) == steps
    assert order[:2] == [*steps[-1:], *(steps[:1] if count > 1 else [])]
    for size in range(2, count + 1):
        beginning = sorted(order[:size])
        gaps = [later - step for step, later in itertools.pairwise(beginning)]
        assert max(gaps) <= 4 * max(3 * (count - 1) / (size - 1), 3)


def test_a_run_falls_into_pieces_without_rest(tmp_path: object) -> None:
    """Each completion once, the last step's first; a step's pieces are its completions alone."""
    with Run.open(recorded_run(tmp_path / "one")) as run:  # type: ignore[operator]
        whole = list(pieces(run, whole_run()))
        ids = [number for piece in whole for number in piece.ids]
        assert sorted(ids) == run.table(split=None).ids.tolist()
        assert whole[0].step == run.steps()[-1]
        step = list(pieces(run, of_step(run, run.steps()[0], "train")))
        assert {run.steps()[0]} == {piece.step for piece in step}
        assert run.table((run.steps()[0],) * 2).ids.tolist() == sorted(number for piece in step for number in piece.ids)
