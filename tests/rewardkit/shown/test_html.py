"""What a notebook shows of a run, a batch and an outcome: small tables in which nothing of a completion is markup."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path

from rewardkit import Outcome, Rollout, Run, Runtime, Score, ScoreBatch, Status, reward
from rewardkit.shown.html import COLUMNS, ROWS, table_html

HOSTILE = '<script>alert("x")</script> \x1b[31m\u202e & \' <img src=x onerror=alert(1)>'
TAGS = {"div", "p", "table", "tr", "th", "td"}
CHART = {"svg", "g", "path", "text", "circle", "style"}
ATTRIBUTES = {"style", "title"}


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: set[str] = set()
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes |= {name for name, _ in attrs}

    def handle_data(self, data: str) -> None:
        self.text += data


def _read(html: str, *, charts: bool = False) -> _Reader:
    reader = _Reader()
    reader.feed(html)
    assert set(reader.tags) - {"title"} <= TAGS | (CHART if charts else set())
    assert charts or reader.attributes <= ATTRIBUTES
    assert not [name for name in reader.attributes if name.startswith("on") or name in ("href", "src")]
    assert "\x1b" not in html
    assert "\u202e" not in html
    return reader


@reward(name="<b>odd")
def odd(completion: str) -> Score:
    """Has a name of markup."""
    return Score(1.0, completion)


def test_a_batch_is_a_table_of_its_first_rows() -> None:
    """Twenty of them, with the number of those that are left out; names and texts are escaped."""
    with Runtime([odd], lane="inline") as runtime:
        batch = runtime.score([Rollout(HOSTILE, HOSTILE * 100)] * 30)
    shown = batch._repr_html_()
    read = _read(shown)
    assert 1 + ROWS == read.tags.count("tr")
    assert "and 10 more" in read.text
    assert '<script>alert("x")</script>' in read.text
    assert "<b>odd" in read.text
    assert len(shown) < 100_000


def test_a_batch_says_what_became_of_calls_without_a_score() -> None:
    """A skip and a failure are told apart from a score, and a default says that it stands in."""
    column = [Outcome(Status.SKIPPED, None), Outcome(Status.FAILED, 0.0, cause=None), Outcome(Status.SCORED, 0.25)]
    batch = ScoreBatch([Rollout("a", "b")] * 3, {"one": column}, {"one": 1.0})
    text = _read(batch._repr_html_()).text
    assert "skipped" in text
    assert "failed, 0 stands in" in text
    assert "0.25" in text


def test_an_outcome_is_a_table_of_what_it_says() -> None:
    """Fields that are empty are left out."""
    shown = _read(Outcome(Status.SCORED, 0.0, reason=HOSTILE, metrics={"n": 1.0})._repr_html_())
    assert "reason" in shown.text
    assert "score0.0" in shown.text.replace("'", "")
    assert "traceback" not in shown.text


def test_a_run_is_a_table_of_its_rewards(tmp_path: Path) -> None:
    """With its size, whether it still runs, and a graph of the total and of each reward."""
    with Runtime([odd], lane="inline", record=tmp_path / "<i>run") as runtime:
        for step in range(3):
            runtime.score([Rollout("a", "b")] * 2, step=step)
    with Run.open(tmp_path / "<i>run") as run:
        read = _read(run._repr_html_(), charts=True)
    assert "<i>run: 6 completions of 1 prompts, 3 steps (0 to 2), finished" in read.text
    assert "<b>odd" in read.text
    assert 2 == read.tags.count("svg")


def test_a_run_without_steps_has_no_graphs(tmp_path: Path) -> None:
    """Its table stands alone."""
    with Runtime([odd], lane="inline", record=tmp_path / "one") as runtime:
        runtime.score([Rollout("a", "b")] * 2)
    with Run.open(tmp_path / "one") as run:
        assert "svg" not in _read(run._repr_html_()).tags


def test_a_wide_table_is_cut() -> None:
    """Columns have a limit as rows do."""
    names = [f"c{n}" for n in range(50)]
    read = _read(table_html("wide", names, [names]))
    assert (COLUMNS, COLUMNS) == (read.tags.count("th"), read.tags.count("td"))
    assert "and 35 more" in read.text
