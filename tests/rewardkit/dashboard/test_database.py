"""The dashboard of a database: its runs are listed, shown and watched as those of a folder."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from databases import Server
from patience import wait_for
from recorded import batch
from served import Served, serving, states

from rewardkit.record.recorder import Recorder

pytestmark = pytest.mark.postgres


@pytest.fixture
def served(postgres: Server) -> Iterator[Served]:
    """The dashboard of a database with one run, entered."""
    with Recorder(postgres.url("shown", password="hunter22")) as one:
        for step in range(3):
            one.record(batch(8, f"{step}"), step=step, epoch=step / 10)
    with serving(postgres.url(password="hunter22"), write=True) as found:
        yield found.enter()
    postgres.sql("DROP SCHEMA IF EXISTS shown CASCADE")


def test_runs_of_a_database_are_listed_and_shown(served: Served) -> None:
    """Every view of a run answers, and no password is in what a browser gets."""
    listed = served.told("/runs")
    assert "hunter22" not in str(listed)
    (run,) = [one for one in listed["runs"] if one["name"] == "shown"]
    assert (run["completions"], run["steps"], run["problem"]) == (24, 3, None)
    assert run["bytes"] > 0
    for view in ("overview", "graphs", "completions", "prompts", "logs", "change", "health"):
        answer = served.ask(f"/api/runs/shown/{view}")
        assert answer.status in (200, 400, 404), (view, answer)
        assert b"hunter22" not in answer.body
        assert b"Error" not in answer.body[:200] or answer.status != 200
    assert wait_for(lambda: served.told("/runs/shown/health")["diagnosis"] is not None)


def test_a_run_of_a_database_is_watched(served: Served, postgres: Server) -> None:
    """A browser is told when something was written; a run that was removed is missing; another may have its name."""
    with served.stream("shown") as lines:
        seen = states(lines)
        assert next(seen)["last_step"] == 2
        with Recorder(postgres.url("shown"), append=True) as one:
            one.record(batch(), step=3)
            assert one.flush()
            assert next(state for state in seen if state["last_step"] == 3)["last_id"] == 32
    postgres.sql("DROP SCHEMA shown CASCADE")
    assert wait_for(lambda: served.ask("/api/runs/shown/overview").status == 404)
    with Recorder(postgres.url("shown")) as one:
        one.record(batch(4), step=0)
    assert wait_for(lambda: served.ask("/api/runs/shown/overview").status == 200)
